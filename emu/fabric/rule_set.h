/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules of one member by their numbers: where in its file each is.  Private memory, for rules.h:
 * what a member has posted, and what a follower was told.
 */
#ifndef EMU_FABRIC_RULE_SET_H
#define EMU_FABRIC_RULE_SET_H
#include <stdbool.h>
#include <stdint.h>

struct rule_at {
	uint32_t number, unit;
	uint64_t order;
	uint32_t next;			/* of the same hash */
	uint8_t blocks;			/* of a rule that was posted */
	bool is_unwanted;		/* of one that was told: the follower has refused it */
};

/* Zero it to begin with.  The rules are @rule[0] to [@count - 1], in no order. */
struct rule_set {
	struct rule_at *rule;
	uint32_t *first;		/* by hash */
	uint32_t count, room;		/* room: of both arrays; a power of two, or 0 */
};

/* Room for one more.  -ENOMEM: as before. */
int rule_set_reserve(struct rule_set *s);
/* Into the room that was reserved, once for each number. */
struct rule_at *rule_set_add(struct rule_set *s, uint32_t number, uint32_t unit, uint64_t order);
/* NULL: it is not there.  Valid until the set changes. */
struct rule_at *rule_set_find(const struct rule_set *s, uint32_t number);
/* The last of the array takes its place. */
void rule_set_remove(struct rule_set *s, uint32_t number);
void rule_set_clear(struct rule_set *s);
#endif
