/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flow rules and matchers; see flow.h.
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

#define EQUALS_MAX	64		/* as many are looked at */

/* The oldest rule of this function that is equal to @rule and that @fits says yes to, or NULL. */
static struct emu_flow *equal_find(struct emu_dev *dev, const struct steer_rule *rule,
				   bool (*fits)(const struct emu_flow *flow, const void *ctx),
				   const void *ctx)
{
	uint64_t id[EQUALS_MAX];
	unsigned count = steer_equal(dev->rules, rule, id, EQUALS_MAX);

	for (unsigned i = 0; i < count && i < EQUALS_MAX; i++) {
		struct emu_flow *flow = flow_id_member(id[i]) == dev->flow_board.self ?
			flow_find(dev, flow_id_number(id[i])) : NULL;

		if (flow && fits(flow, ctx))
			return flow;
	}
	return NULL;
}

static bool is_any(const struct emu_flow *flow, const void *ctx)
{
	(void)ctx;
	return flow;
}

static bool leads_to(const struct emu_flow *flow, const void *qp)
{
	return flow->qp == qp;
}

static bool drops(const struct emu_flow *flow)
{
	return !flow->qp && !(flow->number & FLOW_MISSES);
}

/* To the hardware rules that are equal are one, with one tag, which drops or does not. */
static int join(struct emu_dev *dev, const struct flow_init *init, struct emu_flow *flow)
{
	const struct emu_flow *old = equal_find(dev, &flow->rule, is_any, NULL);

	if (!old)
		return 0;
	if (drops(old) != drops(flow) || (init->has_tag && init->tag != old->tag)) {
		dev_why(dev, .why = WHY_FLOW_CONFLICT, .side = WHY_SIDE_COMMAND,
			.found = old->number);
		return -EEXIST;
	}
	flow->tag = old->tag;
	return 0;
}

static void count_user(struct emu_flow *flow, int change)
{
	if (flow->qp)
		flow->qp->obj.users += change;
	if (flow->kept_qp)
		flow->kept_qp->obj.users += change;
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
	flow->number |= init->misses ? FLOW_MISSES : 0;
	flow->obj.type = OBJ_FLOW;
	flow->dev = dev;
	flow->qp = init->qp;
	flow->kept_qp = init->kept_qp;
	flow->is_host = init->is_host;
	flow->counters = init->counters;
	flow->matcher = init->matcher;
	flow->tag = init->has_tag ? init->tag : 0;
	flow->rule = (struct steer_rule){
		.level = init->level, .continues = init->continues,
		.mask = init->mask, .value = init->value,
	};
	return flow;
}

static void flow_free(struct emu_flow *flow)
{
	if (!flow)
		return;
	numbers_give(&flow->dev->flows, flow->number & ~FLOW_MISSES);
	free(flow);
}

static int refuse_limit(struct emu_dev *dev)
{
	dev_why(dev, .why = WHY_CMD_LIMIT, .side = WHY_SIDE_COMMAND, .found = dev->flows.taken);
	return -ENOMEM;
}

int flow_create(struct emu_dev *dev, const struct flow_init *init, struct emu_flow **out)
{
	struct emu_flow *flow = flow_alloc(dev, init);
	int rc = flow ? join(dev, init, flow) : refuse_limit(dev);

	if (!rc && install(dev, flow))
		rc = refuse_limit(dev);
	if (rc) {
		flow_free(flow);
		return rc;
	}
	count_user(flow, 1);
	dev->rule_changes++;
	*out = flow;
	return 0;
}

static void flow_end(struct emu_flow *flow)
{
	withdraw(flow->dev, flow);
	steer_remove(flow->dev->rules, flow->rule.id);
	count_user(flow, -1);
	flow->dev->rule_changes++;
	if (flow->counters)
		counters_settle(flow->counters);
	flow_free(flow);
}

void flow_destroy(struct emu_flow *flow)
{
	while (flow) {
		struct emu_flow *next = flow->next;

		flow_end(flow);
		flow = next;
	}
}

struct emu_flow *flow_find(struct emu_dev *dev, uint32_t number)
{
	return numbers_find(&dev->flows, number & ~FLOW_MISSES);
}

/* To the hardware equal rules are one, with a list of QPs. */
bool flow_is_repeat(struct emu_flow *flow)
{
	const struct emu_flow *older;

	if (flow->looked_at == flow->dev->rule_changes)
		return flow->is_repeat;
	flow->looked_at = flow->dev->rule_changes;
	older = equal_find(flow->dev, &flow->rule, leads_to, flow->qp);
	flow->is_repeat = older && older != flow;
	return flow->is_repeat;
}

/* Only the last level that was looked at can have rules that miss. */
unsigned flow_lookup(const struct steer_table *rules, const union steer_key *key, uint64_t *id,
		     unsigned max)
{
	unsigned count = steer_lookup(rules, key, id, max), kept = 0;
	unsigned written = count < max ? count : max;

	for (unsigned i = 0; i < written; i++)
		if (!(flow_id_number(id[i]) & FLOW_MISSES))
			id[kept++] = id[i];
	if (kept == written)
		return count;
	return count - (written - kept) +
	       steer_lookup_from(rules, STEER_LEVEL_DEFAULT_MULTICAST, key, id + kept,
				 max - kept);
}

/* --- matchers --- */

int matcher_create(struct emu_dev *dev, const struct matcher_init *init,
		   struct emu_matcher **out)
{
	struct emu_matcher *matcher = calloc(1, sizeof *matcher);

	if (!matcher)
		return refuse_limit(dev);
	matcher->obj.type = OBJ_MATCHER;
	matcher->init = *init;
	*out = matcher;
	return 0;
}

int matcher_destroy(struct emu_dev *dev, struct emu_matcher *matcher)
{
	if (matcher->obj.users) {
		dev_why(dev, .why = WHY_CMD_BUSY, .side = WHY_SIDE_COMMAND,
			.found = matcher->obj.users);
		return -EBUSY;
	}
	free(matcher);
	return 0;
}
