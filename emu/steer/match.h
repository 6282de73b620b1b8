/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rules of one port: which of them a frame matches.
 *
 * Rules of one level with the same mask share a hash table, so a look-up costs a probe for each
 * different mask and not for each rule.  Levels are searched in order.  In a level the oldest
 * rule that matches wins, together with all rules that are equal to it (same level, mask and
 * value); then the search ends, unless all of these continue: then it goes on with the next level.
 *
 * Threads: the caller serialises.
 */
#ifndef EMU_STEER_MATCH_H
#define EMU_STEER_MATCH_H
#include <stdbool.h>
#include <stdint.h>
#include "emu/steer/key.h"

/* In this order; see device-abi H.2.  A priority is 0 (first) to 15. */
enum {
	STEER_LEVEL_SNIFFER,
	STEER_LEVEL_NORMAL,		/* + 2 * priority, + 1 unless the rule continues */
	STEER_PRIORITIES = 16,
	STEER_LEVEL_MULTICAST = STEER_LEVEL_NORMAL + 2 * STEER_PRIORITIES,
	STEER_LEVEL_DEFAULT_MULTICAST,
	STEER_LEVEL_DEFAULT,
	STEER_LEVEL_HOST,		/* what nobody wants */
	STEER_LEVEL_COUNT
};

struct steer_rule {
	uint32_t level;
	bool continues;			/* the search goes on behind it */
	uint64_t order;			/* age: grows with each rule that is made */
	uint64_t id;			/* for the caller; no two rules of a table have the same */
	union steer_key mask, value;	/* value bits outside of the mask are ignored */
};

struct steer_table;

int steer_table_create(struct steer_table **out);	/* -ENOMEM */
void steer_table_destroy(struct steer_table *t);

int steer_add(struct steer_table *t, const struct steer_rule *rule);	/* -ENOMEM */
bool steer_remove(struct steer_table *t, uint64_t id);	/* false: there is none */

/* All whose ids have these bits where @mask has ones. */
void steer_remove_all(struct steer_table *t, uint64_t bits, uint64_t mask);

/* The oldest rule that is equal to this one in level, mask and value and that @fits says yes to.
 * False: there is none. */
typedef bool steer_fits_fn(const void *ctx, uint64_t id);
bool steer_equal(const struct steer_table *t, const struct steer_rule *rule, steer_fits_fn *fits,
		 const void *ctx, uint64_t *id_out);

/* Blocks that some rule looks at: bits by enum steer_block. */
unsigned steer_blocks(const struct steer_table *t);

/*
 * Ids of the rules that a frame with this key goes to, in order (equal rules by age): at most @max
 * are written.  Returns how many there are.  No allocation, no system call.
 */
unsigned steer_lookup(const struct steer_table *t, const union steer_key *key, uint64_t *id,
		      unsigned max);
/* Without the levels in front of @level. */
unsigned steer_lookup_from(const struct steer_table *t, uint32_t level,
			   const union steer_key *key, uint64_t *id, unsigned max);
/* In this level only. */
unsigned steer_lookup_level(const struct steer_table *t, uint32_t level,
			    const union steer_key *key, uint64_t *id, unsigned max);
bool steer_has_level(const struct steer_table *t, uint32_t level);	/* some rule */
/* A look-up with this key comes soon: what it would wait for is brought meanwhile.  Among a hundred
 * thousand rules that wait is most of a look-up; to read the next frames first, or to check this
 * one's payload between the two calls, takes it away. */
void steer_prefetch(const struct steer_table *t, const union steer_key *key);
/* One that looks at every rule, for tests: the same answer. */
unsigned steer_lookup_plain(const struct steer_table *t, const union steer_key *key,
			    uint64_t *id, unsigned max);
#endif
