/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flow rules and matchers; see flow.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "emu/obj/flow.h"

#define LANDINGS_MIN	64u

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
	free(dev->landings);
	dev->landings = NULL;
	dev->landing_count = 0;
}

/* --- rules --- */

/* Of the rules of this function that are equal to another one. */
struct wanted {
	const struct emu_dev *dev;
	const struct emu_qp *qp;		/* that it leads to; NULL: anywhere */
};

static bool is_wanted(const void *ctx, uint64_t id)
{
	const struct wanted *w = ctx;
	const struct flow_landing *l = flow_id_member(id) == w->dev->flow_board.self ?
		flow_landing_find(w->dev, flow_id_number(id)) : NULL;

	return l && (!w->qp || l->qp == w->qp);
}

/* The oldest rule of this function that is equal to @rule, and leads to @qp unless that is NULL; or
 * NULL.  *id_out tells which. */
static struct flow_landing *equal_find(struct emu_dev *dev, const struct steer_rule *rule,
				       const struct emu_qp *qp, uint64_t *id_out)
{
	const struct wanted wanted = { dev, qp };

	return steer_equal(dev->rules, rule, is_wanted, &wanted, id_out) ?
	       flow_landing_find(dev, flow_id_number(*id_out)) : NULL;
}

static bool drops(const struct flow_landing *l, uint32_t number)
{
	return !l->qp && !(number & FLOW_MISSES);
}

/* To the hardware rules that are equal are one, with one tag, which drops or does not, and a list
 * of QPs. */
static int join(struct emu_dev *dev, const struct flow_init *init, struct emu_flow *flow)
{
	struct flow_landing *l = flow_landing_of(flow);
	uint64_t id;
	const struct flow_landing *old = equal_find(dev, &flow->rule, NULL, &id);

	if (!old)
		return 0;
	if (drops(old, flow_id_number(id)) != drops(l, flow->number) ||
	    (init->has_tag && init->tag != old->tag)) {
		dev_why(dev, .why = WHY_FLOW_CONFLICT, .side = WHY_SIDE_COMMAND,
			.found = flow_id_number(id));
		return -EEXIST;
	}
	l->tag = old->tag;
	l->is_repeat = l->qp && equal_find(dev, &flow->rule, l->qp, &id);
	return 0;
}

/* The next one of equal rules that lead to the same QP gets the frames now. */
static void hand_on(struct emu_dev *dev, const struct steer_rule *rule,
		    const struct flow_landing *l)
{
	uint64_t id;
	struct flow_landing *heir = l->qp && !l->is_repeat ?
		equal_find(dev, rule, l->qp, &id) : NULL;

	if (heir)
		heir->is_repeat = false;
}

static void count_user(struct emu_flow *flow, int change)
{
	const struct flow_landing *l = flow_landing_of(flow);

	if (l->qp)
		l->qp->obj.users += change;
	if (flow->kept_qp)
		flow->kept_qp->obj.users += change;
	if (l->counters)
		l->counters->obj.users += change;
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

static int landings_grow(struct emu_dev *dev, uint32_t count)
{
	struct flow_landing *grown = realloc(dev->landings, count * sizeof *grown);

	if (!grown)
		return -ENOMEM;
	memset(grown + dev->landing_count, 0, (count - dev->landing_count) * sizeof *grown);
	dev->landings = grown;
	dev->landing_count = count;
	return 0;
}

/* Of @number, for which there may be no room yet. */
static int landing_make(struct emu_dev *dev, uint32_t number, const struct flow_landing *as)
{
	uint32_t count = dev->landing_count ? dev->landing_count : LANDINGS_MIN;

	while (count <= number)
		count *= 2;
	if (count != dev->landing_count && landings_grow(dev, count))
		return -ENOMEM;
	dev->landings[number] = *as;
	return 0;
}

static int number_take(struct emu_dev *dev, struct emu_flow *flow, const struct flow_landing *as)
{
	if (numbers_take(&dev->flows, flow, &flow->number))
		return -ENOMEM;
	if (!landing_make(dev, flow->number, as))
		return 0;
	numbers_give(&dev->flows, flow->number);
	return -ENOMEM;
}

static struct emu_flow *flow_alloc(struct emu_dev *dev, const struct flow_init *init)
{
	const struct flow_landing landing = {
		.qp = init->qp, .counters = init->counters, .is_there = true,
		.is_host = init->is_host, .tag = init->has_tag ? init->tag : 0,
	};
	struct emu_flow *flow = calloc(1, sizeof *flow);

	if (!flow || number_take(dev, flow, &landing)) {
		free(flow);
		return NULL;
	}
	flow->number |= init->misses ? FLOW_MISSES : 0;
	flow->obj.type = OBJ_FLOW;
	flow->dev = dev;
	flow->kept_qp = init->kept_qp;
	flow->matcher = init->matcher;
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
	flow_landing_of(flow)->is_there = false;
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
	*out = flow;
	return 0;
}

static void flow_end(struct emu_flow *flow)
{
	const struct flow_landing *l = flow_landing_of(flow);

	withdraw(flow->dev, flow);
	steer_remove(flow->dev->rules, flow->rule.id);
	hand_on(flow->dev, &flow->rule, l);
	count_user(flow, -1);
	if (l->counters)
		counters_settle(l->counters);
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
