/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Ethernet switch of a fabric: the flow rules of all its ports, and which MAC address is where.
 *
 * Each member publishes its rules in a file of its own, which the others map and read; whoever
 * sends a frame decides with them who gets it, because a rule of one process may stand before one
 * of another.  A dead member's file is garbage like its rings.
 *
 * Nothing that others wrote is trusted: what makes no sense is not told, and whose file makes none
 * has no rules.  What rules say (level, masks, values) is the follower's business, and may be
 * anything.
 *
 * Threads: the caller serialises, per struct rules.  mem_guard_init() before.
 */
#ifndef EMU_FABRIC_RULES_H
#define EMU_FABRIC_RULES_H
#include <stdbool.h>
#include <stdint.h>
#include "emu/fabric/fabric.h"

#define RULES_BLOCKS		7	/* as STEER_BLOCK_COUNT, which is not for this layer */
#define RULES_BLOCK_BYTES	64

/* One rule; of mask and value only the blocks that @blocks names are there, in order. */
struct fabric_rule {
	uint32_t number;		/* its member's, which has no other of this number; not 0 */
	uint32_t level;
	uint32_t blocks;		/* bits 0 to RULES_BLOCKS - 1 */
	bool continues;
	uint64_t order;			/* its age among the rules of all members */
	const uint8_t *mask, *value;	/* RULES_BLOCK_BYTES times bits of @blocks */
};

struct rules;

/*
 * What a follower is told, from rules_follow(): each rule once when it is there, and once when it
 * is not any more; one that was replaced under its number is removed, then added.  No mask or
 * value outlives the call.  @node: the host that the member is on.
 */
struct rules_follower {
	/* -ENOMEM: it is told again with the next rules_follow().  Another errno: the follower does
	 * not want this rule, and hears no more of it. */
	int (*added)(void *ctx, unsigned member, uint32_t node, const struct fabric_rule *rule);
	void (*removed)(void *ctx, unsigned member, uint32_t node, uint32_t number);
	/* All rules of that member, of which it had some, are gone: it has left, died or written
	 * nonsense.  A death is noticed with fabric_changes(). */
	void (*gone)(void *ctx, unsigned member, uint32_t node);
};

/* @node: the host that this member is on, 0 to 65534.  No file is made before the first rule.
 * -ENOMEM.  Once for each membership. */
int rules_open(struct fabric *f, uint32_t node, struct rules **out);
/* Before fabric_leave() or fabric_abandon(); in a forked child it only unmaps.  Others see the
 * rules until the member has left. */
void rules_close(struct rules *r);

/* *order_out: what @rule->order, ignored, became: more than that of every rule that was posted
 * before, by any member.  -ENOMEM, -ENOSPC, -EFBIG and other errno of open, fallocate, mmap:
 * nothing is published. */
int rules_post(struct rules *r, const struct fabric_rule *rule, uint64_t *order_out);
/* What is not there is not missed. */
void rules_withdraw(struct rules *r, uint32_t number);

/* Anything new, or left over?  Cheap: for every frame. */
bool rules_have_changed(const struct rules *r);
/* Tell @follower what has changed since the last call, also of this member's own rules; in no
 * particular order.  It must not call back. */
void rules_follow(struct rules *r, const struct rules_follower *follower, void *ctx);

/* --- where addresses are --- */

/* A frame from @mac has come from @node.  What can be no station's address is not learned.  Cheap:
 * for every frame. */
void rules_learn(struct rules *r, const uint8_t mac[6], uint32_t node);
/* The host that it was last seen on by any member, or -1: not known, or silent for 300 seconds;
 * frames go to all.  As with a switch, nobody need be left on that host. */
int rules_station(const struct rules *r, const uint8_t mac[6]);
#endif
