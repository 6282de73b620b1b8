/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hash table of rules with the same mask; see group.h.
 *
 * Open addressing, the next slot after a taken one.  Removing moves later slots back, so there are
 * no graves, and a table that has seen many rules come and go is as fast as a new one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "emu/steer/group.h"

enum { SLOTS_MIN = 4, SLOT_SHIFT_MIN = 5, LINE_BYTES = 64 };

static struct steer_slot *slot_at(const struct steer_group *g, uint32_t i)
{
	return (struct steer_slot *)(g->slots + ((size_t)i << g->slot_shift));
}

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

/* Words don't wait for each other. */
static inline uint32_t words_hash(const struct steer_group *g, const uint64_t *value)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < g->word_count; i++)
		sum += mix(value[i] ^ g->field[i].secret, g->field[i].secret);
	return (uint32_t)(sum ^ sum >> 32);
}

void group_words(const struct steer_group *g, const union steer_key *key, uint64_t *value_out)
{
	for (unsigned i = 0; i < g->word_count; i++)
		value_out[i] = key->word[g->field[i].word] & g->field[i].mask;
}

static inline bool words_equal(const uint64_t *a, const uint64_t *b, unsigned count)
{
	uint64_t differs = 0;

	for (unsigned i = 0; i < count; i++)
		differs |= a[i] ^ b[i];
	return !differs;
}

/* The slot with this value, or the free one where it belongs. */
static struct steer_slot *slot_find(const struct steer_group *g, const uint64_t *value,
				    uint32_t hash)
{
	for (uint32_t i = hash & g->last;; i = (i + 1) & g->last) {
		struct steer_slot *s = slot_at(g, i);

		if (!s->oldest ||
		    (s->hash == hash && words_equal(s->value, value, g->word_count)))
			return s;
	}
}

struct steer_slot *group_find(const struct steer_group *g, const union steer_key *key)
{
	uint64_t value[STEER_KEY_WORDS];
	struct steer_slot *s;

	group_words(g, key, value);
	s = slot_find(g, value, words_hash(g, value));
	return s->oldest ? s : NULL;
}

/* --- size --- */

static uint8_t *slots_alloc(uint32_t count, unsigned slot_shift)
{
	size_t bytes = (size_t)count << slot_shift;
	uint8_t *slots = aligned_alloc(LINE_BYTES, bytes);

	if (slots)
		memset(slots, 0, bytes);
	return slots;
}

static void slot_move(const struct steer_group *g, struct steer_slot *to,
		      const struct steer_slot *from)
{
	memcpy(to, from, sizeof *to + g->word_count * sizeof *to->value);
	to->oldest->slot = to;
}

static int group_grow(struct steer_group *g)
{
	struct steer_group old = *g;
	uint32_t count = (g->last + 1) * 2;
	uint8_t *slots = count ? slots_alloc(count, g->slot_shift) : NULL;

	if (!slots)
		return -ENOMEM;
	g->slots = slots;
	g->last = count - 1;
	for (uint32_t i = 0; i <= old.last; i++) {
		const struct steer_slot *s = slot_at(&old, i);

		if (s->oldest)
			slot_move(g, slot_find(g, s->value, s->hash), s);
	}
	free(old.slots);
	return 0;
}

/* Keeps a fifth of the slots free. */
static bool is_full(const struct steer_group *g)
{
	return (uint64_t)(g->used + 1) * 5 > (uint64_t)(g->last + 1) * 4;
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

static void slot_begin(struct steer_group *g, struct steer_slot *s, struct steer_entry *e,
		       uint32_t hash)
{
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

int group_add(struct steer_group *g, struct steer_entry *e)
{
	uint32_t hash = words_hash(g, e->value);
	struct steer_slot *s = slot_find(g, e->value, hash);

	if (s->oldest) {
		ring_add(s, e);
		return 0;
	}
	if (is_full(g)) {
		int rc = group_grow(g);

		if (rc)
			return rc;
		s = slot_find(g, e->value, hash);
	}
	slot_begin(g, s, e, hash);
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
	g->slot_shift = slot_shift_of(words);
	g->last = SLOTS_MIN - 1;
	g->slots = slots_alloc(SLOTS_MIN, g->slot_shift);
	if (!g->slots) {
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
