/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flow rules made from specs: ibv_create_flow().  The order of checks is the kernel's.
 *
 * Source: device-abi H.2; inventory FL-1 to FL-10; Linux, uverbs_cmd.c and mlx5_ib.
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include "emu/uverbs/file.h"
#include "emu/uverbs/flow_spec.h"
#include "emu/uverbs/handlers.h"
#include "emu/uverbs/on_counters.h"
#include "emu/uverbs/privilege.h"

enum flow_type { FLOW_NORMAL, FLOW_ALL_DEFAULT, FLOW_MC_DEFAULT, FLOW_SNIFFER, FLOW_TYPE_COUNT };
enum { PRIORITY_MAX = STEER_PRIORITIES - 1 };

static bool is_default(uint32_t type)
{
	return type == FLOW_ALL_DEFAULT || type == FLOW_MC_DEFAULT;
}

/* What is asked for, and what was found for it. */
struct ask {
	const struct ib_uverbs_create_flow *core;
	const struct ib_uverbs_flow_attr *attr;
	struct emu_qp *qp;
	struct flow_spec spec[FLOW_SPECS_MAX];
	struct counters_ask counters;
};

/* --- what the core looks at --- */

static int core_check(struct uv_call *call, const struct ib_uverbs_create_flow *core)
{
	const struct ib_uverbs_flow_attr *a = &core->flow_attr;

	if (core->comp_mask)
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	if (!may_use_frames(call->dev))
		return uv_refuse(call, WHY_CMD_CAPABILITY, -EPERM);
	if (a->flags >= FLOW_FLAGS_END || (a->flags & FLOW_DONT_TRAP && is_default(a->type)))
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	if (a->num_of_specs > FLOW_SPECS_MAX ||
	    a->size > a->num_of_specs * FLOW_SPEC_BYTES_MAX || a->reserved[0] || a->reserved[1])
		return uv_refuse(call, WHY_FLOW_SPEC, -EINVAL);
	return 0;
}

static int target_find(struct uv_call *call, struct ask *ask)
{
	struct emu_obj *obj;
	int ret;

	if (ask->attr->port != 1)
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	ret = file_handle_find(call->file, ask->core->qp_handle, OBJ_QP, &obj);
	if (ret)
		return uv_refuse(call, WHY_CMD_HANDLE, ret);
	ask->qp = file_qp(obj);
	return flow_can_reach(ask->qp) ? 0 : uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
}

static int core_read(struct uv_call *call, struct ask *ask)
{
	uint8_t bytes[FLOW_SPECS_MAX * FLOW_SPEC_BYTES_MAX];
	const struct ib_uverbs_flow_attr *a = ask->attr;
	int ret = core_check(call, ask->core);

	if (!ret)
		ret = uv_list(call, UVERBS_ATTR_CORE_IN, bytes, a->size);
	if (!ret)
		ret = target_find(call, ask);
	return ret ? ret : flow_specs_read(call, bytes, a->size, a->num_of_specs, ask->spec);
}

/* --- what the driver looks at --- */

/* Frames on their way out are not steered, so they can't be asked for. */
static int attr_check(struct uv_call *call, const struct ib_uverbs_flow_attr *a)
{
	if (a->priority > PRIORITY_MAX)
		return uv_refuse(call, WHY_CMD_LIMIT, -ENOMEM);
	if (a->flags & FLOW_ALLOW_LOOP_BACK || (a->flags & FLOW_EGRESS && is_default(a->type)))
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	if (a->flags & FLOW_EGRESS || a->type >= FLOW_TYPE_COUNT)
		return uv_refuse(call, WHY_CMD_UNSUPPORTED, -EOPNOTSUPP);
	return 0;
}

/* A rule that goes on stands in front of those of its priority that do not.  What is for groups
 * only stands behind all priorities, so that it takes nothing from rules that look closer. */
static void level_choose(const struct ib_uverbs_flow_attr *a, const struct flow_match *match,
			 struct flow_init *init)
{
	init->continues = a->flags & FLOW_DONT_TRAP;
	if (match->is_multicast && !init->continues)
		init->level = STEER_LEVEL_MULTICAST;
	else
		init->level = STEER_LEVEL_NORMAL + 2 * a->priority + !init->continues;
}

static struct flow_init init_of(const struct ask *ask, const struct flow_match *match)
{
	struct flow_init init = {
		.mask = match->mask, .value = match->value,
		.qp = match->drops ? NULL : ask->qp, .kept_qp = match->drops ? ask->qp : NULL,
		.counters = match->counters, .has_tag = match->has_tag, .tag = match->tag,
	};

	level_choose(ask->attr, match, &init);
	return init;
}

static int normal_create(struct uv_call *call, const struct ask *ask, struct emu_flow **out)
{
	struct flow_match match;
	struct flow_init init;
	int ret = flow_specs_match(call, ask->spec, ask->attr->num_of_specs, &match);

	if (!ret && match.counters)
		ret = counters_ask_apply(call, match.counters, &ask->counters);
	if (ret)
		return ret;
	init = init_of(ask, &match);
	ret = flow_key_fits(&match.mask, &match.value) ?
		      flow_create(call->dev, &init, out) :
		      uv_refuse(call, WHY_FLOW_SPEC, -EINVAL);
	if (ret && match.counters)
		counters_settle(match.counters);
	return ret;
}

/* The rules of the other types, by the group bit of the destination.  Their specs are read, and no
 * more is made of them. */
static const struct {
	uint32_t types;			/* bits by enum flow_type */
	uint32_t level;
	bool continues;
	uint8_t mask, value;
} fixed_rules[] = {
	{ 1 << FLOW_ALL_DEFAULT | 1 << FLOW_MC_DEFAULT, STEER_LEVEL_DEFAULT_MULTICAST, false,
	  1, 1 },
	{ 1 << FLOW_ALL_DEFAULT, STEER_LEVEL_DEFAULT, false, 1, 0 },
	{ 1 << FLOW_SNIFFER, STEER_LEVEL_SNIFFER, true, 0, 0 },
};

static int fixed_create(struct uv_call *call, const struct ask *ask, struct emu_flow **out)
{
	struct emu_flow **end = out;

	for (size_t i = 0; i < sizeof fixed_rules / sizeof *fixed_rules; i++) {
		struct flow_init init = { .level = fixed_rules[i].level, .qp = ask->qp,
					  .continues = fixed_rules[i].continues };
		int ret;

		if (!(fixed_rules[i].types >> ask->attr->type & 1))
			continue;
		init.mask.block[STEER_OUTER][STEER_DMAC] = fixed_rules[i].mask;
		init.value.block[STEER_OUTER][STEER_DMAC] = fixed_rules[i].value;
		ret = flow_create(call->dev, &init, end);
		if (ret) {
			*end = NULL;
			flow_destroy(*out);
			return ret;
		}
		end = &(*end)->next;
	}
	return 0;
}

/* --- commands --- */

static int rules_create(struct uv_call *call, struct ask *ask, struct emu_flow **out)
{
	int ret = core_read(call, ask);

	if (!ret)
		ret = counters_ask_read(call, &ask->counters);
	if (!ret)
		ret = attr_check(call, ask->attr);
	if (ret)
		return ret;
	return ask->attr->type == FLOW_NORMAL ? normal_create(call, ask, out) :
						fixed_create(call, ask, out);
}

int on_create_flow(struct uv_call *call)
{
	const struct ib_uverbs_create_flow *core = uv_in(call, UVERBS_ATTR_CORE_IN);
	struct ask ask = { .core = core, .attr = &core->flow_attr };
	struct ib_uverbs_create_flow_resp reply = { 0 };
	struct emu_flow *flow;
	int ret = flow_steering_is_on(call->dev) ? rules_create(call, &ask, &flow) :
		  uv_refuse(call, WHY_CMD_UNSUPPORTED, -ENXIO);

	if (ret)
		return ret;
	call->created = &flow->obj;
	uv_put(call, UVERBS_ATTR_CORE_OUT, &reply, sizeof reply);
	return 0;
}

static int destroy(struct uv_call *call, uint16_t id)
{
	flow_destroy((struct emu_flow *)uv_obj(call, id));
	return 0;
}

int on_destroy_flow(struct uv_call *call)
{
	return destroy(call, UVERBS_ATTR_DESTROY_FLOW_HANDLE);
}

int on_destroy_flow_ex(struct uv_call *call)
{
	const struct ib_uverbs_destroy_flow *ask = uv_in(call, UVERBS_ATTR_CORE_IN);

	return ask->comp_mask ? uv_refuse(call, WHY_CMD_VALUE, -EINVAL) : destroy(call, UV_FLOW);
}
