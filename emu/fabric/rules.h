/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Ethernet switch of a fabric: the flow rules of all its ports, and which MAC address is where.
 *
 * Each member publishes its rules in a file of its own, which the others map and read; whoever
 * sends a frame decides with them who gets it, because a rule of one process may stand before one
 * of another.  A dead member's file is garbage like its rings.
 *
 * Nothing that others wrote is trusted.  Threads: the caller serialises, per struct rules.
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
	uint32_t number;		/* its member's; not 0 */
	uint32_t level;
	uint32_t blocks;
	bool continues;
	uint64_t order;			/* its age among the rules of all members */
	const uint8_t *mask, *value;	/* RULES_BLOCK_BYTES times bits of @blocks */
};

struct rules;

/* What a follower is told.  No mask or value outlives the call.  -ENOMEM: it is told again. */
struct rules_follower {
	int (*added)(void *ctx, unsigned member, uint32_t node, const struct fabric_rule *rule);
	void (*removed)(void *ctx, unsigned member, uint32_t node, uint32_t number);
	/* All of its rules are gone. */
	void (*gone)(void *ctx, unsigned member, uint32_t node);
};

/* @node: the host that this member is on, 0 to 65534.  No file is made before the first rule. */
int rules_open(struct fabric *f, uint32_t node, struct rules **out);
/* Before fabric_leave() or fabric_abandon(); in a forked child it only unmaps. */
void rules_close(struct rules *r);

/* -ENOMEM, -ENOSPC: nothing is published.  *order_out: what @rule->order, ignored, became. */
int rules_post(struct rules *r, const struct fabric_rule *rule, uint64_t *order_out);
void rules_withdraw(struct rules *r, uint32_t number);

/* Anything new?  Cheap: for every frame. */
bool rules_have_changed(const struct rules *r);
/* Tell @follower what has changed since the last call, also of this member's own rules. */
void rules_follow(struct rules *r, const struct rules_follower *follower, void *ctx);

/* --- where addresses are --- */

/* A frame from @mac (6 bytes, not a group's) has come from @node. */
void rules_learn(struct rules *r, const uint8_t mac[6], uint32_t node);
/* The host that it was last seen on, or -1: not known, frames go to all. */
int rules_station(const struct rules *r, const uint8_t mac[6]);
#endif
