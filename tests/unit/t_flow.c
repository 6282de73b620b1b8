/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flow rules as objects: who is in use by them, which can't be together, and that they come and go
 * with the table that frames are looked up in and with the board where others read them.
 *
 * Method: rules made by hand on a world without an engine (obj_world.h).
 */
#include "tests/unit/obj_world.h"

/* A rule for frames to one MAC address, by its last byte. */
static struct flow_init rule_for(uint8_t last)
{
	struct flow_init init = { .level = STEER_LEVEL_NORMAL + 1 };

	memset(init.mask.block[STEER_OUTER] + STEER_DMAC, 0xff, 6);
	init.value.block[STEER_OUTER][STEER_DMAC + 5] = last;
	return init;
}

static struct emu_qp *qp_new(struct emu_dev *dev)
{
	static struct emu_qp qp[8];
	static unsigned count;

	qp[count].dev = dev;
	return &qp[count++];
}

static struct emu_flow *flow_find(struct emu_dev *dev, uint32_t number)
{
	return numbers_find(&dev->flows, number & ~FLOW_MISSES);
}

static bool count_one(const void *ctx, uint64_t id)
{
	(void)id;
	++*(unsigned *)(uintptr_t)ctx;
	return false;
}

static unsigned rules_like(struct emu_dev *dev, const struct emu_flow *flow)
{
	unsigned count = 0;
	uint64_t id;

	CHECK_INT(steer_equal(dev->rules, &flow->rule, count_one, &count, &id), false);
	return count;
}

Test(flow, a_rule_uses_what_it_is_made_of)
{
	struct emu_dev *dev = world_dev();
	struct flow_init init = rule_for(1);
	struct emu_flow *flow;

	init.qp = qp_new(dev);
	CHECK_INT(counters_create(dev, &init.counters), 0);
	CHECK_INT(matcher_create(dev, &(struct matcher_init){ .criteria = 1 }, &init.matcher), 0);
	CHECK_INT(flow_create(dev, &init, &flow), 0);
	CHECK_INT(flow_find(dev, flow->number) == flow, 1);
	CHECK_INT(flow->rule.id, flow_id(0, flow->number));
	CHECK_INT(init.qp->obj.users, 1);
	CHECK_REFUSED(counters_destroy(dev, init.counters), -EBUSY, WHY_CMD_BUSY);
	CHECK_REFUSED(matcher_destroy(dev, init.matcher), -EBUSY, WHY_CMD_BUSY);
	CHECK_INT(rules_like(dev, flow), 1);
	flow_destroy(flow);
	CHECK_INT(init.qp->obj.users, 0);
	CHECK_INT(counters_destroy(dev, init.counters), 0);
	CHECK_INT(matcher_destroy(dev, init.matcher), 0);
	world_end(dev);
}

Test(flow, a_rule_that_drops_keeps_its_qp)
{
	struct emu_dev *dev = world_dev();
	struct flow_init init = rule_for(1);
	struct emu_flow *flow;

	init.kept_qp = qp_new(dev);
	CHECK_INT(flow_create(dev, &init, &flow), 0);
	CHECK_INT(flow_landing_of(flow)->qp == NULL, 1);
	CHECK_INT(init.kept_qp->obj.users, 1);
	flow_destroy(flow);
	CHECK_INT(init.kept_qp->obj.users, 0);
	world_end(dev);
}

Test(flow, what_one_command_made_goes_together)
{
	struct emu_dev *dev = world_dev();
	struct flow_init first = rule_for(1), second = rule_for(2);
	struct emu_flow *flow;

	first.qp = second.qp = qp_new(dev);
	CHECK_INT(flow_create(dev, &first, &flow), 0);
	CHECK_INT(flow_create(dev, &second, &flow->next), 0);
	CHECK_INT(first.qp->obj.users, 2);
	flow_destroy(flow);
	CHECK_INT(first.qp->obj.users, 0);
	world_end(dev);
}

/* --- equal rules --- */

Test(flow, equal_rules_live_side_by_side)
{
	struct emu_dev *dev = world_dev();
	struct flow_init init = rule_for(1);
	struct emu_flow *flow[2];

	for (unsigned i = 0; i < 2; i++) {
		init.qp = qp_new(dev);
		CHECK_INT(flow_create(dev, &init, &flow[i]), 0);
	}
	CHECK_INT(rules_like(dev, flow[0]), 2);
	CHECK_INT(flow[1]->rule.order > flow[0]->rule.order, 1);
	flow_destroy(flow[0]);
	CHECK_INT(rules_like(dev, flow[1]), 1);
	flow_destroy(flow[1]);
	world_end(dev);
}

Test(flow, equal_rules_have_one_tag)
{
	struct emu_dev *dev = world_dev();
	struct flow_init init = rule_for(1);
	struct emu_flow *tagged, *untagged, *refused = NULL;

	init.qp = qp_new(dev);
	init.has_tag = true;
	init.tag = 5;
	CHECK_INT(flow_create(dev, &init, &tagged), 0);
	init.tag = 6;
	CHECK_REFUSED(flow_create(dev, &init, &refused), -EEXIST, WHY_FLOW_CONFLICT);
	CHECK_INT(refused == NULL, 1);
	CHECK_INT(init.qp->obj.users, 1);
	init.has_tag = false;			/* whatever stands in the tag */
	CHECK_INT(flow_create(dev, &init, &untagged), 0);
	CHECK_INT(flow_landing_of(untagged)->tag, 5);
	flow_destroy(tagged);
	init.has_tag = true;
	CHECK_REFUSED(flow_create(dev, &init, &refused), -EEXIST, WHY_FLOW_CONFLICT);
	flow_destroy(untagged);
	CHECK_INT(flow_create(dev, &init, &tagged), 0);
	CHECK_INT(flow_landing_of(tagged)->tag, 6);
	flow_destroy(tagged);
	world_end(dev);
}

Test(flow, a_tag_may_come_to_what_is_elsewhere)
{
	struct emu_dev *dev = world_dev();
	struct flow_init init = rule_for(1);
	struct emu_flow *flow[2];

	init.qp = qp_new(dev);
	init.has_tag = true;
	init.tag = 5;
	CHECK_INT(flow_create(dev, &init, &flow[0]), 0);
	init.level += 2;
	init.tag = 6;
	CHECK_INT(flow_create(dev, &init, &flow[1]), 0);
	flow_destroy(flow[0]);
	flow_destroy(flow[1]);
	world_end(dev);
}

Test(flow, equal_rules_drop_or_deliver)
{
	struct emu_dev *dev = world_dev();
	struct flow_init init = rule_for(1);
	struct emu_flow *flow, *refused;

	init.qp = qp_new(dev);
	CHECK_INT(flow_create(dev, &init, &flow), 0);
	init.kept_qp = init.qp;
	init.qp = NULL;
	CHECK_REFUSED(flow_create(dev, &init, &refused), -EEXIST, WHY_FLOW_CONFLICT);
	flow_destroy(flow);
	CHECK_INT(flow_create(dev, &init, &flow), 0);
	init.qp = init.kept_qp;
	init.kept_qp = NULL;
	CHECK_REFUSED(flow_create(dev, &init, &refused), -EEXIST, WHY_FLOW_CONFLICT);
	flow_destroy(flow);
	world_end(dev);
}

/* A QP gets a frame once, by the oldest of equal rules that lead to it; however many there are. */
Test(flow, the_oldest_of_equal_rules_counts)
{
	enum { RULES = 300 };
	struct emu_dev *dev = world_dev();
	struct flow_init init = rule_for(1);
	struct emu_qp *qp[2] = { qp_new(dev), qp_new(dev) };
	struct emu_flow *flow[RULES];

	for (unsigned i = 0; i < RULES; i++) {
		init.qp = qp[i % 2];
		CHECK_INT(flow_create(dev, &init, &flow[i]), 0);
		CHECK_INT(flow_landing_of(flow[i])->is_repeat, i >= 2);
	}
	flow_destroy(flow[RULES - 2]);		/* a repeat: the first one is still there */
	CHECK_INT(flow_landing_of(flow[2])->is_repeat, true);
	for (unsigned i = 0; i < RULES - 4; i++) {
		flow_destroy(flow[i]);
		CHECK_INT(flow_landing_of(flow[i + 2])->is_repeat, false);
		CHECK_INT(flow_landing_of(flow[RULES - 1])->is_repeat, true);
	}
	flow_destroy(flow[RULES - 4]);
	flow_destroy(flow[RULES - 3]);
	CHECK_INT(flow_landing_of(flow[RULES - 1])->is_repeat, false);
	flow_destroy(flow[RULES - 1]);
	world_end(dev);
}

Test(flow, a_number_that_is_no_rule_leads_nowhere)
{
	struct emu_dev *dev = world_dev();
	struct flow_init init = rule_for(1);
	struct emu_flow *flow;
	uint32_t number;

	CHECK_INT(flow_landing_find(dev, 1) == NULL, true);
	init.qp = qp_new(dev);
	CHECK_INT(flow_create(dev, &init, &flow), 0);
	number = flow->number;
	CHECK_INT(flow_landing_find(dev, number)->qp == init.qp, true);
	CHECK_INT(flow_landing_find(dev, number | FLOW_MISSES)->qp == init.qp, true);
	CHECK_INT(flow_landing_find(dev, number + 1) == NULL, true);
	CHECK_INT(flow_landing_find(dev, dev->landing_count) == NULL, true);
	CHECK_INT(flow_landing_find(dev, UINT32_MAX) == NULL, true);
	flow_destroy(flow);
	CHECK_INT(flow_landing_find(dev, number) == NULL, true);
	world_end(dev);
}

/* --- rules that miss --- */

static struct emu_flow *flow_at(struct emu_dev *dev, uint32_t level, bool continues, bool misses)
{
	struct flow_init init = { .level = level, .continues = continues, .misses = misses };
	struct emu_flow *flow;

	init.qp = misses ? NULL : qp_new(dev);
	CHECK_INT(flow_create(dev, &init, &flow), 0);
	return flow;
}

/* What is found, as levels. */
static unsigned levels_found(struct emu_dev *dev, uint32_t level[8], unsigned max)
{
	static const union steer_key key;
	uint64_t id[8];
	unsigned count = flow_lookup(dev->rules, &key, id, max);

	for (unsigned i = 0; i < count && i < max; i++)
		level[i] = flow_find(dev, flow_id_number(id[i]))->rule.level;
	return count;
}

Test(flow, behind_a_rule_that_misses_only_defaults_are_looked_at)
{
	struct emu_dev *dev = world_dev();
	struct emu_flow *flow[] = {
		flow_at(dev, STEER_LEVEL_SNIFFER, true, false),
		flow_at(dev, STEER_LEVEL_NORMAL + 1, false, true),
		flow_at(dev, STEER_LEVEL_NORMAL + 3, false, false),
		flow_at(dev, STEER_LEVEL_MULTICAST, false, false),
		flow_at(dev, STEER_LEVEL_DEFAULT, false, false),
	};
	uint32_t level[8];

	CHECK_INT(levels_found(dev, level, 8), 2);
	CHECK_INT(level[0], STEER_LEVEL_SNIFFER);
	CHECK_INT(level[1], STEER_LEVEL_DEFAULT);
	CHECK_INT(levels_found(dev, level, 2), 2);
	CHECK_INT(level[1], STEER_LEVEL_DEFAULT);
	flow_destroy(flow[4]);
	CHECK_INT(levels_found(dev, level, 8), 1);
	flow_destroy(flow[1]);
	CHECK_INT(levels_found(dev, level, 8), 2);
	CHECK_INT(level[1], STEER_LEVEL_NORMAL + 3);
	CHECK_INT(levels_found(dev, level, 1), 2);
	flow_destroy(flow[0]);
	flow_destroy(flow[2]);
	flow_destroy(flow[3]);
	CHECK_INT(levels_found(dev, level, 8), 0);
	world_end(dev);
}

/* Their one fate is both. */
Test(flow, a_rule_that_misses_and_one_that_delivers_do_both)
{
	struct emu_dev *dev = world_dev();
	struct emu_flow *flow[] = {
		flow_at(dev, STEER_LEVEL_NORMAL + 1, false, true),
		flow_at(dev, STEER_LEVEL_NORMAL + 1, false, false),
		flow_at(dev, STEER_LEVEL_DEFAULT, false, false),
	};
	uint32_t level[8];

	CHECK_INT(levels_found(dev, level, 8), 2);
	CHECK_INT(level[0], STEER_LEVEL_NORMAL + 1);
	CHECK_INT(level[1], STEER_LEVEL_DEFAULT);
	for (unsigned i = 0; i < 3; i++)
		flow_destroy(flow[i]);
	world_end(dev);
}

/* --- the board --- */

static struct { unsigned posted, withdrawn; uint32_t number; int error; } board;

static int post(void *ctx, uint32_t number, const struct steer_rule *rule, uint64_t *order_out)
{
	cr_assert(ctx == &board && rule->level == STEER_LEVEL_NORMAL + 1);
	if (board.error)
		return board.error;
	board.number = number;
	*order_out = 1000 + board.posted++;
	return 0;
}

static void withdraw(void *ctx, uint32_t number)
{
	cr_assert(ctx == &board);
	CHECK_INT(number, board.number);
	board.withdrawn++;
}

Test(flow, rules_are_published_while_they_live)
{
	struct emu_dev *dev = world_dev();
	struct flow_init init = rule_for(1);
	struct emu_flow *flow;

	dev->flow_board = (struct flow_board){ 7, post, withdraw, &board };
	init.qp = qp_new(dev);
	CHECK_INT(flow_create(dev, &init, &flow), 0);
	CHECK_INT(flow->rule.order, 1000);
	CHECK_INT(flow_id_member(flow->rule.id), 7);
	CHECK_INT(board.number, flow->number);
	flow_destroy(flow);
	CHECK_INT(board.withdrawn, 1);
	world_end(dev);
}

Test(flow, a_full_board_makes_no_rule)
{
	struct emu_dev *dev = world_dev();
	struct flow_init init = rule_for(1);
	struct emu_flow *flow;

	dev->flow_board = (struct flow_board){ 7, post, withdraw, &board };
	board.error = -ENOMEM;
	init.qp = qp_new(dev);
	CHECK_REFUSED(flow_create(dev, &init, &flow), -ENOMEM, WHY_CMD_LIMIT);
	CHECK_INT(init.qp->obj.users, 0);
	CHECK_INT(dev->flows.taken, 0);
	world_end(dev);
}
