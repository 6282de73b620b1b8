/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flow rules to the fabric; see port_rules.h.
 */
#include <assert.h>
#include <string.h>
#include "emu/engine/engine.h"
#include "emu/fabric/rules.h"
#include "emu/obj/flow.h"
#include "emu/port_rules.h"

static bool is_used(const union steer_key *mask, unsigned block)
{
	static const uint8_t nothing[STEER_BLOCK_BYTES];

	return memcmp(mask->block[block], nothing, sizeof nothing) != 0;
}

/* The blocks that a rule looks at, without gaps. */
struct packed {
	unsigned count;
	uint8_t mask[STEER_KEY_BYTES], value[STEER_KEY_BYTES];
};

static void block_pack(struct packed *p, const struct steer_rule *rule, unsigned block)
{
	size_t at = (size_t)p->count++ * STEER_BLOCK_BYTES;

	memcpy(p->mask + at, rule->mask.block[block], STEER_BLOCK_BYTES);
	memcpy(p->value + at, rule->value.block[block], STEER_BLOCK_BYTES);
}

static int post(void *ctx, uint32_t number, const struct steer_rule *rule, uint64_t *order_out)
{
	struct packed packed = { .count = 0 };
	struct fabric_rule out = {
		.number = number, .level = rule->level, .continues = rule->continues,
		.mask = packed.mask, .value = packed.value,
	};

	for (unsigned block = 0; block < STEER_BLOCK_COUNT; block++) {
		if (!is_used(&rule->mask, block))
			continue;
		out.blocks |= 1u << block;
		block_pack(&packed, rule, block);
	}
	return rules_post(ctx, &out, order_out);
}

static void withdraw(void *ctx, uint32_t number)
{
	rules_withdraw(ctx, number);
}

int port_rules_begin(struct emu_dev *dev, struct engine *engine, struct fabric *fabric,
		     uint32_t node, struct rules **out)
{
	int error = rules_open(fabric, node, out);

	if (error)
		return error;
	dev->flow_board = (struct flow_board){
		.self = fabric_self(fabric), .post = post, .withdraw = withdraw, .ctx = *out,
	};
	engine_switch_join(engine, *out, node);
	return 0;
}
