/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A group: the rules of one level that have the same mask, in a hash table by value.
 *
 * With many rules a look-up costs what its cache misses cost.  So a slot has all that a look-up
 * sees, in one cache line for up to five words, half of the slots are free so that most values are
 * in their first slot, and a look-up that is known to come can have that brought before.
 *
 * Rules with equal values share a slot; a ring of them leads from the oldest to the youngest and
 * back.  Used by match.c only.
 */
#ifndef EMU_STEER_GROUP_H
#define EMU_STEER_GROUP_H
#include "emu/steer/match.h"

#define STEER_KEY_WORDS		(STEER_KEY_BYTES / 8)

struct steer_group;
struct steer_slot;

/* A rule as the table keeps it. */
struct steer_entry {
	struct steer_group *group;
	struct steer_entry *older, *younger;	/* of equal rules; a ring */
	struct steer_slot *slot;		/* the oldest of equal rules only */
	struct steer_entry *same_bucket;	/* match.c: of ids */
	struct steer_entry *prev, *next;	/* match.c: of all rules */
	uint64_t id, order;
	bool continues;
	uint64_t value[];			/* the group's words of it, masked */
};

struct steer_slot {
	struct steer_entry *oldest;		/* NULL: nothing is here */
	uint64_t id;				/* of the oldest */
	uint32_t hash;
	bool is_alone;				/* there is no equal rule */
	bool continues;				/* the oldest one */
	uint64_t value[];
};

struct steer_finders {
	/* Where rules are that this key matches, or NULL. */
	struct steer_slot *(*find)(const struct steer_group *g, const union steer_key *key);
	/* Has the slot brought that such a look-up will touch. */
	void (*prefetch)(const struct steer_group *g, const union steer_key *key);
};

struct steer_group {
	const struct steer_finders *finders;
	unsigned level, at;			/* its place among the groups of its level */
	uint8_t *slots;				/* each 1 << slot_shift bytes, on cache lines */
	uint32_t last, used, slot_shift;	/* last: number of slots less one */
	unsigned blocks;			/* that the mask looks at */
	unsigned word_count;			/* words of the mask that are not zero */
	struct steer_field {
		uint64_t mask, secret;
		unsigned word;
	} field[];
};

/* NULL: no memory.  The secrets that hashing uses come from @seed. */
struct steer_group *group_create(unsigned level, const union steer_key *mask, uint64_t seed);
void group_destroy(struct steer_group *g);	/* its rules are not freed */
bool group_has_mask(const struct steer_group *g, const union steer_key *mask);
void group_words(const struct steer_group *g, const union steer_key *key, uint64_t *value_out);

/* @value: what e->value was made from.  -ENOMEM. */
int group_add(struct steer_group *g, struct steer_entry *e, const union steer_key *value);
void group_remove(struct steer_group *g, struct steer_entry *e);
#endif
