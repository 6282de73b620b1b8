/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flow rules, matchers and counters; see flow.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "emu/obj/flow.h"

int flow_steering_begin(struct emu_dev *dev)
{
	int rc = numbers_init(&dev->flows, 1, NULL, NULL);

	return rc ? rc : steer_table_create(&dev->rules);
}

void flow_steering_end(struct emu_dev *dev)
{
	steer_table_destroy(dev->rules);
	dev->rules = NULL;
	numbers_free(&dev->flows);
}

/* --- rules --- */

/* A rule that is the same but for the tag could only answer with one of both. */
static bool has_other_tag(struct emu_dev *dev, const struct flow_init *init,
			  const struct steer_rule *rule)
{
	struct emu_flow *old;
	uint64_t id;

	if (!steer_equal(dev->rules, rule, &id, 1) || flow_id_member(id) != dev->flow_board.self)
		return false;
	old = flow_find(dev, flow_id_number(id));
	return old && old->tag != init->tag;
}

static void count_user(struct emu_flow *flow, int change)
{
	if (flow->qp)
		flow->qp->obj.users += change;
	if (flow->counters)
		flow->counters->obj.users += change;
	if (flow->matcher)
		flow->matcher->obj.users += change;
}

static int publish(struct emu_dev *dev, struct emu_flow *flow)
{
	const struct flow_board *board = &dev->flow_board;

	if (!board->post) {
		flow->rule.order = ++dev->rule_order;
		return 0;
	}
	return board->post(board->ctx, flow->number, &flow->rule, &flow->rule.order);
}

static void withdraw(struct emu_dev *dev, struct emu_flow *flow)
{
	if (dev->flow_board.withdraw)
		dev->flow_board.withdraw(dev->flow_board.ctx, flow->number);
}

/* Its own function knows of a rule before others do, so that what it is told can be used. */
static int install(struct emu_dev *dev, struct emu_flow *flow)
{
	int rc = publish(dev, flow);

	if (rc)
		return rc;
	flow->rule.id = flow_id(dev->flow_board.self, flow->number);
	rc = steer_add(dev->rules, &flow->rule);
	if (rc)
		withdraw(dev, flow);
	return rc;
}

static struct emu_flow *flow_alloc(struct emu_dev *dev, const struct flow_init *init)
{
	struct emu_flow *flow = calloc(1, sizeof *flow);

	if (!flow || numbers_take(&dev->flows, flow, &flow->number)) {
		free(flow);
		return NULL;
	}
	flow->obj.type = OBJ_FLOW;
	flow->dev = dev;
	flow->qp = init->qp;
	flow->counters = init->counters;
	flow->matcher = init->matcher;
	flow->tag = init->tag;
	return flow;
}

static void flow_free(struct emu_flow *flow)
{
	numbers_give(&flow->dev->flows, flow->number);
	free(flow);
}

static int refuse_limit(struct emu_dev *dev)
{
	dev_why(dev, .why = WHY_CMD_LIMIT, .side = WHY_SIDE_COMMAND, .found = dev->flows.taken);
	return -ENOMEM;
}

int flow_create(struct emu_dev *dev, const struct flow_init *init, struct emu_flow **out)
{
	struct steer_rule rule = {
		.level = init->level, .continues = init->continues,
		.mask = init->mask, .value = init->value,
	};
	struct emu_flow *flow;
	int rc;

	if (has_other_tag(dev, init, &rule))
		return -EEXIST;
	flow = flow_alloc(dev, init);
	if (!flow)
		return refuse_limit(dev);
	flow->rule = rule;
	rc = install(dev, flow);
	if (rc) {
		flow_free(flow);
		return refuse_limit(dev);
	}
	count_user(flow, 1);
	*out = flow;
	return 0;
}

void flow_destroy(struct emu_flow *flow)
{
	withdraw(flow->dev, flow);
	steer_remove(flow->dev->rules, flow->rule.id);
	count_user(flow, -1);
	flow_free(flow);
}

struct emu_flow *flow_find(struct emu_dev *dev, uint32_t number)
{
	return numbers_find(&dev->flows, number);
}

/* --- what rules stand on --- */

static int refuse_busy(struct emu_dev *dev, const struct emu_obj *obj)
{
	dev_why(dev, .why = WHY_CMD_BUSY, .side = WHY_SIDE_COMMAND, .found = obj->users);
	return -EBUSY;
}

int matcher_create(struct emu_dev *dev, uint32_t level, unsigned blocks,
		   const union steer_key *mask, struct emu_matcher **out)
{
	struct emu_matcher *matcher = calloc(1, sizeof *matcher);

	if (!matcher)
		return refuse_limit(dev);
	matcher->obj.type = OBJ_MATCHER;
	matcher->level = level;
	matcher->blocks = blocks;
	matcher->mask = *mask;
	*out = matcher;
	return 0;
}

int matcher_destroy(struct emu_dev *dev, struct emu_matcher *matcher)
{
	if (matcher->obj.users)
		return refuse_busy(dev, &matcher->obj);
	free(matcher);
	return 0;
}

int counters_create(struct emu_dev *dev, struct emu_counters **out)
{
	struct emu_counters *counters = calloc(1, sizeof *counters);

	if (!counters)
		return refuse_limit(dev);
	counters->obj.type = OBJ_COUNTERS;
	*out = counters;
	return 0;
}

int counters_destroy(struct emu_dev *dev, struct emu_counters *counters)
{
	if (counters->obj.users)
		return refuse_busy(dev, &counters->obj);
	free(counters);
	return 0;
}
