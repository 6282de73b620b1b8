/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hash table of rules with the same mask; see group.h.
 *
 * Open addressing, the next slot after a taken one.  Removing moves later slots back, so there
 * are no graves, and a table that has seen many rules come and go is as fast as a new one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "emu/steer/group.h"

/* For functions that are told how many words there are: a constant makes their loops go. */
#define INLINE	static inline __attribute__((always_inline))

enum { SLOTS_MIN = 4, SLOT_SHIFT_MIN = 5, LINE_BYTES = 64, HUGE_BYTES = 2 << 20 };

static inline struct steer_slot *slot_at(const struct steer_group *g, uint32_t i)
{
	return (struct steer_slot *)(g->slots + ((size_t)i << g->slot_shift));
}

/* --- hashing --- */

/* The halves of a product depend on all bits of both factors. */
static inline uint64_t mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Secrets are there because applications choose values: they shall not choose collisions. */
static uint64_t secret_of(uint64_t seed, unsigned i)
{
	uint64_t x = seed + (i + 1) * UINT64_C(0x9e3779b97f4a7c15);

	x = mix(x ^ UINT64_C(0xd6e8feb86659fd93), UINT64_C(0xe7037ed1a0b428db));
	return x | 1;
}

static inline uint64_t field_of(const struct steer_field *f, const union steer_key *key)
{
	return key->word[f->word] & f->mask;
}

/* Words don't wait for each other. */
INLINE uint32_t key_hash(const struct steer_group *g, const union steer_key *key, unsigned words)
{
	const struct steer_field *f = g->field;
	uint64_t sum = 0;

	for (unsigned i = 0; i < words; i++)
		sum += mix(field_of(&f[i], key) ^ f[i].secret, f[i].secret);
	return (uint32_t)(sum ^ sum >> 32);
}

void group_words(const struct steer_group *g, const union steer_key *key, uint64_t *value_out)
{
	for (unsigned i = 0; i < g->word_count; i++)
		value_out[i] = field_of(&g->field[i], key);
}

INLINE bool slot_matches(const struct steer_group *g, const struct steer_slot *s,
			 const union steer_key *key, unsigned words)
{
	uint64_t differs = 0;

	for (unsigned i = 0; i < words; i++)
		differs |= s->value[i] ^ field_of(&g->field[i], key);
	return !differs;
}

/* --- looking --- */

INLINE struct steer_slot *slot_find(const struct steer_group *g, const union steer_key *key,
				    unsigned words)
{
	for (uint32_t i = key_hash(g, key, words) & g->last;; i = (i + 1) & g->last) {
		struct steer_slot *s = slot_at(g, i);

		if (!s->oldest)
			return NULL;
		if (slot_matches(g, s, key, words))
			return s;
	}
}

/* And the next one: not everybody is where he belongs. */
INLINE void slot_prefetch(const struct steer_group *g, const union steer_key *key, unsigned words)
{
	uint32_t i = key_hash(g, key, words) & g->last;

	__builtin_prefetch(slot_at(g, i));
	__builtin_prefetch(slot_at(g, (i + 1) & g->last));
}

#define FINDERS(name, words)                                                                   \
	static struct steer_slot *find_##name(const struct steer_group *g,                     \
					      const union steer_key *key)                      \
	{                                                                                      \
		return slot_find(g, key, words);                                               \
	}                                                                                      \
	static void prefetch_##name(const struct steer_group *g, const union steer_key *key)   \
	{                                                                                      \
		slot_prefetch(g, key, words);                                                  \
	}

FINDERS(1, 1)
FINDERS(2, 2)
FINDERS(3, 3)
FINDERS(4, 4)
FINDERS(5, 5)
FINDERS(any, g->word_count)

/* By the number of words.  Most masks have few, and with a loop a look-up takes a quarter more. */
static const struct steer_finders finders[] = {
	{ find_any, prefetch_any }, { find_1, prefetch_1 }, { find_2, prefetch_2 },
	{ find_3, prefetch_3 },	    { find_4, prefetch_4 }, { find_5, prefetch_5 },
};

static const struct steer_finders *finders_for(unsigned words)
{
	return &finders[words < sizeof finders / sizeof *finders ? words : 0];
}

/* --- size --- */

/* Many slots are worth large pages: looking for a page costs as much as looking for a line. */
static uint8_t *memory_alloc(size_t bytes)
{
	bool is_huge = bytes >= HUGE_BYTES;
	size_t unit = is_huge ? HUGE_BYTES : LINE_BYTES, rounded = (bytes + unit - 1) & ~(unit - 1);
	uint8_t *memory = aligned_alloc(unit, rounded);

	if (memory && is_huge)
		madvise(memory, rounded, MADV_HUGEPAGE);
	return memory;
}

static int slots_alloc(struct steer_group *g, uint32_t count)
{
	size_t bytes = (size_t)count << g->slot_shift;
	uint8_t *slots = memory_alloc(bytes);

	if (!slots)
		return -ENOMEM;
	memset(slots, 0, bytes);
	g->slots = slots;
	g->last = count - 1;
	return 0;
}

static void slot_move(const struct steer_group *g, struct steer_slot *to,
		      const struct steer_slot *from)
{
	memcpy(to, from, sizeof *to + g->word_count * sizeof *to->value);
	to->oldest->slot = to;
}

/* The first free slot from where it belongs. */
static struct steer_slot *slot_unused(const struct steer_group *g, uint32_t hash)
{
	uint32_t i = hash & g->last;

	while (slot_at(g, i)->oldest)
		i = (i + 1) & g->last;
	return slot_at(g, i);
}

static int group_grow(struct steer_group *g)
{
	struct steer_group old = *g;
	uint32_t count = (g->last + 1) * 2;

	if (!count || slots_alloc(g, count))
		return -ENOMEM;
	for (uint32_t i = 0; i <= old.last; i++) {
		const struct steer_slot *s = slot_at(&old, i);

		if (s->oldest)
			slot_move(g, slot_unused(g, s->hash), s);
	}
	free(old.slots);
	return 0;
}

/* What is behind a slot that became free moves into it, unless that were before its place. */
static void slot_free(struct steer_group *g, struct steer_slot *s)
{
	uint32_t hole = (uint32_t)(((uint8_t *)s - g->slots) >> g->slot_shift), i = hole;

	for (;;) {
		const struct steer_slot *later = slot_at(g, i = (i + 1) & g->last);

		if (!later->oldest)
			break;
		if (((i - later->hash) & g->last) < ((i - hole) & g->last))
			continue;
		slot_move(g, slot_at(g, hole), later);
		hole = i;
	}
	slot_at(g, hole)->oldest = NULL;
	g->used--;
}

/* Half of the slots are free: most values are where they belong. */
static bool is_full(const struct steer_group *g)
{
	return (uint64_t)(g->used + 1) * 2 > (uint64_t)g->last + 1;
}

/* --- rules come and go --- */

/* The slot tells what its oldest rule is. */
static void slot_update(struct steer_slot *s, struct steer_entry *oldest)
{
	s->oldest = oldest;
	s->id = oldest->id;
	s->continues = oldest->continues;
	s->is_alone = oldest->younger == oldest;
	oldest->slot = s;
}

static void slot_begin(struct steer_group *g, struct steer_entry *e, uint32_t hash)
{
	struct steer_slot *s = slot_unused(g, hash);

	e->older = e->younger = e;
	s->hash = hash;
	memcpy(s->value, e->value, g->word_count * sizeof *s->value);
	slot_update(s, e);
	g->used++;
}

/* From the youngest on: a new rule is mostly the youngest of all.  Older than all is between the
 * youngest and the oldest, as younger than all is. */
static void ring_add(struct steer_slot *s, struct steer_entry *e)
{
	struct steer_entry *oldest = s->oldest, *before = oldest->older;

	while (before->order > e->order && before != oldest)
		before = before->older;
	if (before->order > e->order)
		before = oldest->older;
	e->older = before;
	e->younger = before->younger;
	e->older->younger = e->younger->older = e;
	oldest->slot = NULL;
	slot_update(s, e->order < oldest->order ? e : oldest);
}

int group_add(struct steer_group *g, struct steer_entry *e, const union steer_key *value)
{
	struct steer_slot *s = g->finders->find(g, value);

	if (!s && is_full(g) && group_grow(g))
		return -ENOMEM;
	if (s)
		ring_add(s, e);
	else
		slot_begin(g, e, key_hash(g, value, g->word_count));
	return 0;
}

/* Only the oldest rule knows its slot; it is next to any that makes the slot look different. */
void group_remove(struct steer_group *g, struct steer_entry *e)
{
	struct steer_slot *s = e->slot ? e->slot : e->older->slot;

	e->older->younger = e->younger;
	e->younger->older = e->older;
	if (e->younger == e)
		slot_free(g, s);
	else if (e->slot)
		slot_update(s, e->younger);
	else if (s)
		slot_update(s, e->older);
	e->slot = NULL;
}

/* --- groups --- */

static unsigned words_of(const union steer_key *mask)
{
	unsigned count = 0;

	for (unsigned i = 0; i < STEER_KEY_WORDS; i++)
		count += mask->word[i] != 0;
	return count;
}

static void fields_set(struct steer_group *g, const union steer_key *mask, uint64_t seed)
{
	for (unsigned i = 0; i < STEER_KEY_WORDS; i++) {
		if (!mask->word[i])
			continue;
		g->field[g->word_count++] = (struct steer_field){
			.mask = mask->word[i], .secret = secret_of(seed, i), .word = i,
		};
		g->blocks |= 1u << i / STEER_BLOCK_WORDS;
	}
}

static unsigned slot_shift_of(unsigned word_count)
{
	unsigned shift = SLOT_SHIFT_MIN;

	while (1u << shift < sizeof(struct steer_slot) + word_count * sizeof(uint64_t))
		shift++;
	return shift;
}

struct steer_group *group_create(unsigned level, const union steer_key *mask, uint64_t seed)
{
	unsigned words = words_of(mask);
	struct steer_group *g = calloc(1, sizeof *g + words * sizeof *g->field);

	if (!g)
		return NULL;
	g->level = level;
	g->finders = finders_for(words);
	g->slot_shift = slot_shift_of(words);
	if (slots_alloc(g, SLOTS_MIN)) {
		free(g);
		return NULL;
	}
	fields_set(g, mask, seed);
	return g;
}

void group_destroy(struct steer_group *g)
{
	free(g->slots);
	free(g);
}

bool group_has_mask(const struct steer_group *g, const union steer_key *mask)
{
	for (unsigned i = 0; i < g->word_count; i++)
		if (mask->word[g->field[i].word] != g->field[i].mask)
			return false;
	return words_of(mask) == g->word_count;
}
