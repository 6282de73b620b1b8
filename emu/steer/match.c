/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules of one port; see match.h.  Groups (group.c) do the hashing.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "emu/steer/group.h"

enum { BUCKETS_MIN = 16, GROUPS_MIN = 4, PREFETCHES_MAX = 8, PREFETCH_RULES_MIN = 256 };

static_assert(STEER_LEVEL_COUNT <= 64, "levels_used has a bit for each level");

struct steer_table {
	uint64_t levels_used;			/* bits: levels with groups */
	struct steer_level {
		struct steer_group **group;
		unsigned count, room;
	} level[STEER_LEVEL_COUNT];
	unsigned block_users[STEER_BLOCK_COUNT];	/* groups */
	unsigned blocks;
	uint64_t seed;
	struct steer_entry *first;		/* of all rules, in no order */
	struct steer_entry **bucket;		/* of ids */
	uint32_t bucket_last, count;
};

int steer_table_create(struct steer_table **out)
{
	struct steer_table *t = calloc(1, sizeof *t);

	if (!t)
		return -ENOMEM;
	t->bucket = calloc(BUCKETS_MIN, sizeof *t->bucket);
	if (!t->bucket) {
		free(t);
		return -ENOMEM;
	}
	t->bucket_last = BUCKETS_MIN - 1;
	t->seed = (uintptr_t)t;			/* other processes don't know it */
	*out = t;
	return 0;
}

void steer_table_destroy(struct steer_table *t)
{
	if (!t)
		return;
	for (unsigned i = 0; i < STEER_LEVEL_COUNT; i++) {
		for (unsigned k = 0; k < t->level[i].count; k++)
			group_destroy(t->level[i].group[k]);
		free(t->level[i].group);
	}
	for (struct steer_entry *e = t->first, *next; e; e = next) {
		next = e->next;
		free(e);
	}
	free(t->bucket);
	free(t);
}

/* --- ids --- */

static struct steer_entry **bucket_of(const struct steer_table *t, uint64_t id)
{
	uint64_t mixed = (id ^ t->seed) * UINT64_C(0x9e3779b97f4a7c15);

	return &t->bucket[mixed >> 32 & t->bucket_last];
}

/* The link that leads to the rule, or the end of its bucket. */
static struct steer_entry **entry_link(const struct steer_table *t, uint64_t id)
{
	struct steer_entry **at = bucket_of(t, id);

	while (*at && (*at)->id != id)
		at = &(*at)->same_bucket;
	return at;
}

static void bucket_push(struct steer_table *t, struct steer_entry *e)
{
	struct steer_entry **at = bucket_of(t, e->id);

	e->same_bucket = *at;
	*at = e;
}

static int buckets_grow(struct steer_table *t)
{
	uint32_t count = (t->bucket_last + 1) * 2;
	struct steer_entry **bucket = count ? calloc(count, sizeof *bucket) : NULL;

	if (!bucket)
		return -ENOMEM;
	free(t->bucket);
	t->bucket = bucket;
	t->bucket_last = count - 1;
	for (struct steer_entry *e = t->first; e; e = e->next)
		bucket_push(t, e);
	return 0;
}

static void entry_link_in(struct steer_table *t, struct steer_entry *e)
{
	bucket_push(t, e);
	e->next = t->first;
	if (e->next)
		e->next->prev = e;
	t->first = e;
	t->count++;
}

static void entry_unlink(struct steer_table *t, struct steer_entry **link)
{
	struct steer_entry *e = *link;

	*link = e->same_bucket;
	if (e->prev)
		e->prev->next = e->next;
	else
		t->first = e->next;
	if (e->next)
		e->next->prev = e->prev;
	t->count--;
}

/* --- groups of a level --- */

static struct steer_group *level_find(const struct steer_level *l, const union steer_key *mask)
{
	for (unsigned i = 0; i < l->count; i++)
		if (group_has_mask(l->group[i], mask))
			return l->group[i];
	return NULL;
}

static void blocks_count(struct steer_table *t, unsigned blocks, int change)
{
	for (unsigned i = 0; i < STEER_BLOCK_COUNT; i++) {
		if (!(blocks >> i & 1))
			continue;
		t->block_users[i] += change;
		t->blocks &= ~(1u << i);
		t->blocks |= (t->block_users[i] != 0) << i;
	}
}

static int level_reserve(struct steer_level *l)
{
	unsigned room = l->room ? l->room * 2 : GROUPS_MIN;
	struct steer_group **group;

	if (l->count < l->room)
		return 0;
	group = realloc(l->group, room * sizeof *group);
	if (!group)
		return -ENOMEM;
	l->group = group;
	l->room = room;
	return 0;
}

static struct steer_group *level_add(struct steer_table *t, const struct steer_rule *rule)
{
	struct steer_level *l = &t->level[rule->level];
	struct steer_group *g;

	if (level_reserve(l))
		return NULL;
	g = group_create(rule->level, &rule->mask, t->seed);
	if (!g)
		return NULL;
	g->at = l->count++;
	l->group[g->at] = g;
	t->levels_used |= UINT64_C(1) << g->level;
	blocks_count(t, g->blocks, 1);
	return g;
}

/* The last group takes its place. */
static void level_drop(struct steer_table *t, struct steer_group *g)
{
	struct steer_level *l = &t->level[g->level];

	l->group[g->at] = l->group[--l->count];
	l->group[g->at]->at = g->at;
	if (!l->count)
		t->levels_used &= ~(UINT64_C(1) << g->level);
	blocks_count(t, g->blocks, -1);
	group_destroy(g);
}

/* --- rules --- */

static struct steer_entry *entry_create(struct steer_group *g, const struct steer_rule *rule)
{
	struct steer_entry *e = calloc(1, sizeof *e + g->word_count * sizeof *e->value);

	if (!e)
		return NULL;
	e->group = g;
	e->id = rule->id;
	e->order = rule->order;
	e->continues = rule->continues;
	group_words(g, &rule->value, e->value);
	return e;
}

static int entry_add(struct steer_table *t, struct steer_group *g, const struct steer_rule *rule)
{
	struct steer_entry *e = entry_create(g, rule);
	int rc = e ? group_add(g, e, &rule->value) : -ENOMEM;

	if (rc) {
		free(e);
		return rc;
	}
	entry_link_in(t, e);
	return 0;
}

int steer_add(struct steer_table *t, const struct steer_rule *rule)
{
	struct steer_group *g;
	int rc;

	assert(rule->level < STEER_LEVEL_COUNT && !*entry_link(t, rule->id));
	if (t->count > t->bucket_last && buckets_grow(t))
		return -ENOMEM;
	g = level_find(&t->level[rule->level], &rule->mask);
	if (!g)
		g = level_add(t, rule);
	if (!g)
		return -ENOMEM;
	rc = entry_add(t, g, rule);
	if (!g->used)
		level_drop(t, g);
	return rc;
}

bool steer_remove(struct steer_table *t, uint64_t id)
{
	struct steer_entry **link = entry_link(t, id), *e = *link;

	if (!e)
		return false;
	entry_unlink(t, link);
	group_remove(e->group, e);
	if (!e->group->used)
		level_drop(t, e->group);
	free(e);
	return true;
}

void steer_remove_all(struct steer_table *t, uint64_t bits, uint64_t mask)
{
	for (struct steer_entry *e = t->first, *next; e; e = next) {
		next = e->next;
		if ((e->id & mask) == bits)
			steer_remove(t, e->id);
	}
}

unsigned steer_blocks(const struct steer_table *t)
{
	return t->blocks;
}

/* --- what matches --- */

/* What a look-up has found so far; more than @max are only counted. */
struct finding {
	uint64_t *id;
	unsigned max, count;
};

static inline void found(struct finding *f, uint64_t id)
{
	if (f->count < f->max)
		f->id[f->count] = id;
	f->count++;
}

/* True: all of them continue. */
static bool ring_found(struct finding *f, const struct steer_entry *oldest)
{
	const struct steer_entry *e = oldest;
	bool continues = true;

	do {
		found(f, e->id);
		continues &= e->continues;
		e = e->younger;
	} while (e != oldest);
	return continues;
}

static bool slot_found(struct finding *f, const struct steer_slot *s)
{
	if (!s->is_alone)
		return ring_found(f, s->oldest);
	found(f, s->id);
	return s->continues;
}

bool steer_equal(const struct steer_table *t, const struct steer_rule *rule, steer_fits_fn *fits,
		 const void *ctx, uint64_t *id_out)
{
	const struct steer_group *g = level_find(&t->level[rule->level], &rule->mask);
	const struct steer_slot *s = g ? g->finders->find(g, &rule->value) : NULL;
	const struct steer_entry *e = s ? s->oldest : NULL;

	while (e && !fits(ctx, e->id))
		e = e->younger == s->oldest ? NULL : e->younger;
	if (e)
		*id_out = e->id;
	return e;
}

static const struct steer_slot *level_match(const struct steer_level *l,
					    const union steer_key *key)
{
	const struct steer_slot *best = NULL;

	for (unsigned i = 0; i < l->count; i++) {
		const struct steer_slot *s = l->group[i]->finders->find(l->group[i], key);

		if (s && (!best || s->oldest->order < best->oldest->order))
			best = s;
	}
	return best;
}

/* @levels: bits; all of them are used. */
static inline unsigned lookup(const struct steer_table *t, uint64_t levels,
			      const union steer_key *key, uint64_t *id, unsigned max)
{
	struct finding f = { .id = id, .max = max };

	for (; levels; levels &= levels - 1) {
		unsigned next = (unsigned)__builtin_ctzll(levels);
		const struct steer_slot *s = level_match(&t->level[next], key);

		if (s && !slot_found(&f, s))
			break;
	}
	return f.count;
}

unsigned steer_lookup_from(const struct steer_table *t, uint32_t level,
			   const union steer_key *key, uint64_t *id, unsigned max)
{
	return lookup(t, t->levels_used & UINT64_MAX << level, key, id, max);
}

unsigned steer_lookup_level(const struct steer_table *t, uint32_t level,
			    const union steer_key *key, uint64_t *id, unsigned max)
{
	return lookup(t, t->levels_used & UINT64_C(1) << level, key, id, max);
}

unsigned steer_lookup(const struct steer_table *t, const union steer_key *key, uint64_t *id,
		      unsigned max)
{
	return lookup(t, t->levels_used, key, id, max);
}

bool steer_has_level(const struct steer_table *t, uint32_t level)
{
	return t->levels_used >> level & 1;
}

/* Small groups are in the cache anyway, and of many large ones the first few are enough. */
void steer_prefetch(const struct steer_table *t, const union steer_key *key)
{
	unsigned left = PREFETCHES_MAX;

	for (uint64_t levels = t->levels_used; levels; levels &= levels - 1) {
		const struct steer_level *l = &t->level[__builtin_ctzll(levels)];

		for (unsigned i = 0; i < l->count; i++) {
			if (l->group[i]->used < PREFETCH_RULES_MIN)
				continue;
			if (!left--)
				return;
			l->group[i]->finders->prefetch(l->group[i], key);
		}
	}
}

/* --- the same, one rule after the other: no hash, no ring, no slot --- */

static bool plain_matches(const struct steer_entry *e, const union steer_key *key)
{
	const struct steer_field *field = e->group->field;

	for (unsigned i = 0; i < e->group->word_count; i++)
		if ((key->word[field[i].word] & field[i].mask) != e->value[i])
			return false;
	return true;
}

static bool plain_equal(const struct steer_entry *a, const struct steer_entry *b)
{
	const struct steer_group *g = a->group, *h = b->group;

	if (g->level != h->level || g->word_count != h->word_count)
		return false;
	for (unsigned i = 0; i < g->word_count; i++)
		if (g->field[i].word != h->field[i].word ||
		    g->field[i].mask != h->field[i].mask || a->value[i] != b->value[i])
			return false;
	return true;
}

static const struct steer_entry *plain_oldest(const struct steer_table *t, unsigned level,
					      const union steer_key *key)
{
	const struct steer_entry *oldest = NULL;

	for (const struct steer_entry *e = t->first; e; e = e->next)
		if (e->group->level == level && (!oldest || e->order < oldest->order) &&
		    plain_matches(e, key))
			oldest = e;
	return oldest;
}

/* The oldest of the equal rules that are younger than @than, or NULL. */
static const struct steer_entry *plain_younger(const struct steer_table *t,
					       const struct steer_entry *than)
{
	const struct steer_entry *next = NULL;

	for (const struct steer_entry *e = t->first; e; e = e->next)
		if (e->order > than->order && (!next || e->order < next->order) &&
		    plain_equal(e, than))
			next = e;
	return next;
}

unsigned steer_lookup_plain(const struct steer_table *t, const union steer_key *key,
			    uint64_t *id, unsigned max)
{
	struct finding f = { .id = id, .max = max };
	bool continues = true;

	for (unsigned level = 0; continues && level < STEER_LEVEL_COUNT; level++) {
		const struct steer_entry *e = plain_oldest(t, level, key);

		for (; e; e = plain_younger(t, e)) {
			found(&f, e->id);
			continues &= e->continues;
		}
	}
	return f.count;
}
