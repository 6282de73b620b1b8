/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flow rules of mlx5dv: a matcher is a mask in the hardware's own layout, a rule a value for it.
 *
 * Frames go to a QP, nowhere, or where they would without rules.  What DEVX makes (tables, TIRs,
 * counters) and actions that change a frame are not here, so their handles lead nowhere.
 *
 * Source: device-abi B.11, H.2; Linux, fs.c of mlx5_ib and fs_core.c of mlx5_core.
 */
#include <errno.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <string.h>
#include "emu/uverbs/file.h"
#include "emu/uverbs/flow_spec.h"
#include "emu/uverbs/handlers.h"
#include "emu/uverbs/privilege.h"

enum { PRIORITY_MAX = STEER_PRIORITIES - 1 };
#define GROUP_BIT	1	/* of a MAC address's first byte */

/* --- matchers --- */

/* What frames can be steered: those that come in, unless it is said otherwise, in one of two ways.
 * There is no switch inside of this device, whose tables are the third sort. */
static int table_find(struct uv_call *call, uint8_t *out)
{
	uint64_t table = uv_number(call, MLX5_IB_ATTR_FLOW_MATCHER_FT_TYPE);
	bool has_table = uv_has(call, MLX5_IB_ATTR_FLOW_MATCHER_FT_TYPE);

	if (has_table && uv_has(call, MLX5_IB_ATTR_FLOW_MATCHER_FLOW_FLAGS))
		return uv_refuse(call, WHY_CMD_ATTRIBUTES, -EINVAL);
	if (table > MLX5_IB_UAPI_FLOW_TABLE_TYPE_RDMA_TX ||
	    table == MLX5_IB_UAPI_FLOW_TABLE_TYPE_FDB)
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	if (uv_number(call, MLX5_IB_ATTR_FLOW_MATCHER_FLOW_FLAGS))
		table = MLX5_IB_UAPI_FLOW_TABLE_TYPE_NIC_TX;
	*out = (uint8_t)table;
	return 0;
}

/* The kernel's match parameters end behind the last block. */
static bool is_zero_behind(const uint8_t *bytes)
{
	for (unsigned i = STEER_KEY_BYTES; i < FLOW_MATCH_BYTES; i++)
		if (bytes[i])
			return false;
	return true;
}

/* Each block with a mask must be among the criteria. */
static bool is_beyond(const struct matcher_init *init)
{
	for (unsigned block = 0; block < STEER_BLOCK_COUNT; block++)
		for (unsigned i = 0; i < STEER_BLOCK_BYTES; i++)
			if (init->mask.block[block][i] && !(init->criteria >> block & 1))
				return true;
	return init->criteria >> STEER_BLOCK_COUNT;
}

int on_create_matcher(struct uv_call *call)
{
	const uint8_t *mask = uv_in(call, MLX5_IB_ATTR_FLOW_MATCHER_MATCH_MASK);
	struct matcher_init init = {
		.flow_type = (uint8_t)uv_choice(call, MLX5_IB_ATTR_FLOW_MATCHER_FLOW_TYPE),
		.priority = (uint16_t)uv_number(call, MLX5_IB_ATTR_FLOW_MATCHER_FLOW_TYPE),
		.criteria = (uint8_t)uv_number(call, MLX5_IB_ATTR_FLOW_MATCHER_MATCH_CRITERIA),
	};
	struct emu_matcher *matcher;
	int ret = table_find(call, &init.table);

	if (ret)
		return ret;
	memcpy(&init.mask, mask, sizeof init.mask);
	init.is_beyond = is_beyond(&init) || !is_zero_behind(mask);
	ret = matcher_create(call->dev, &init, &matcher);
	if (!ret)
		call->created = &matcher->obj;
	return ret;
}

int on_destroy_matcher(struct uv_call *call)
{
	return matcher_destroy(call->dev, (struct emu_matcher *)uv_obj(call,
						MLX5_IB_ATTR_FLOW_MATCHER_DESTROY_HANDLE));
}

/* --- rules --- */

enum { MISSES = MLX5_IB_ATTR_CREATE_FLOW_FLAGS_DEFAULT_MISS,
       DROPS = MLX5_IB_ATTR_CREATE_FLOW_FLAGS_DROP };

static bool sends(uint8_t table)
{
	return table == MLX5_IB_UAPI_FLOW_TABLE_TYPE_NIC_TX ||
	       table == MLX5_IB_UAPI_FLOW_TABLE_TYPE_RDMA_TX;
}

/* One of QP, drop and miss. */
static int target_check(struct uv_call *call, const struct matcher_init *matcher)
{
	uint64_t flags = uv_number(call, MLX5_IB_ATTR_CREATE_FLOW_FLAGS);
	const struct emu_qp *qp = uv_qp(call, MLX5_IB_ATTR_CREATE_FLOW_DEST_QP);
	bool has_two = flags == (MISSES | DROPS) ||
		       (qp && flags && matcher->table == MLX5_IB_UAPI_FLOW_TABLE_TYPE_NIC_RX);

	if (has_two || (qp && (!flow_can_reach_raw(qp) || sends(matcher->table))) ||
	    (!qp && matcher->table == MLX5_IB_UAPI_FLOW_TABLE_TYPE_RDMA_RX))
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	return 0;
}

/* Handles of an array: at most @max, and all of them must be of something. */
static int objects_check(struct uv_call *call, uint16_t id, unsigned max)
{
	unsigned count = uv_has(call, id) ? uv_count(call, id) : 0;
	struct emu_obj *obj;
	uint32_t handle;
	int ret = 0;

	if (count > max)
		return uv_refuse(call, WHY_CMD_ATTRIBUTES, -EINVAL);
	for (unsigned i = 0; !ret && i < count; i++) {
		ret = uv_read(call, id, i, &handle);
		if (ret)
			return ret;
		ret = file_handle_find(call->file, handle, OBJ_NONE, &obj);
	}
	return ret ? uv_refuse(call, WHY_CMD_HANDLE, ret) : 0;
}

static bool is_multicast(const struct matcher_init *matcher, const union steer_key *value)
{
	const uint8_t *mask = matcher->mask.block[STEER_OUTER], *bytes = value->block[STEER_OUTER];

	if (!(matcher->criteria >> STEER_OUTER & 1))
		return false;
	return mask[STEER_DMAC] & bytes[STEER_DMAC] & GROUP_BIT ||
	       (mask[STEER_DST_IPV4] >> 4 == 0xe && bytes[STEER_DST_IPV4] >> 4 == 0xe);
}

/* What the driver finds when it looks for the table that the rule belongs into. */
static int place_find(struct uv_call *call, const struct matcher_init *matcher,
		      const union steer_key *value, uint32_t *level_out)
{
	if (matcher->flow_type != MLX5_IB_FLOW_TYPE_NORMAL)
		return uv_refuse(call, WHY_CMD_UNSUPPORTED, -EOPNOTSUPP);
	if (matcher->priority > PRIORITY_MAX)
		return uv_refuse(call, WHY_CMD_LIMIT, -ENOMEM);
	if (matcher->table != MLX5_IB_UAPI_FLOW_TABLE_TYPE_NIC_RX ||
	    !flow_steering_is_on(call->dev))
		return uv_refuse(call, WHY_CMD_UNSUPPORTED, -EOPNOTSUPP);
	*level_out = is_multicast(matcher, value) ? STEER_LEVEL_MULTICAST :
		     STEER_LEVEL_NORMAL + 2u * matcher->priority + 1;
	return 0;
}

/* What the hardware itself would not take. */
static int match_check(struct uv_call *call, const struct matcher_init *matcher,
		       const struct flow_init *init)
{
	const uint8_t *value = uv_in(call, MLX5_IB_ATTR_CREATE_FLOW_MATCH_VALUE);

	if (matcher->is_beyond || !is_zero_behind(value) ||
	    !flow_key_fits(&matcher->mask, &init->value))
		return uv_refuse(call, WHY_FLOW_SPEC, -EINVAL);
	if (!init->qp && !uv_number(call, MLX5_IB_ATTR_CREATE_FLOW_FLAGS))
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	return 0;
}

static int ask_check(struct uv_call *call, const struct matcher_init *matcher)
{
	int ret = may_use_frames(call->dev) ? 0 :
		  uv_refuse(call, WHY_CMD_CAPABILITY, -EPERM);

	if (!ret)
		ret = target_check(call, matcher);
	if (!ret && uv_number(call, MLX5_IB_ATTR_CREATE_FLOW_TAG) >= FLOW_TAG_END)
		ret = uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	return ret;
}

int on_create_flow_mlx5(struct uv_call *call)
{
	struct emu_matcher *matcher =
		(struct emu_matcher *)uv_obj(call, MLX5_IB_ATTR_CREATE_FLOW_MATCHER);
	struct flow_init init = {
		.misses = uv_number(call, MLX5_IB_ATTR_CREATE_FLOW_FLAGS) == MISSES,
		.mask = matcher->init.mask, .matcher = matcher,
		.qp = uv_qp(call, MLX5_IB_ATTR_CREATE_FLOW_DEST_QP),
		.has_tag = uv_has(call, MLX5_IB_ATTR_CREATE_FLOW_TAG),
		.tag = (uint32_t)uv_number(call, MLX5_IB_ATTR_CREATE_FLOW_TAG),
	};
	struct emu_flow *flow;
	int ret = objects_check(call, MLX5_IB_ATTR_CREATE_FLOW_ARR_FLOW_ACTIONS, 2);

	memcpy(&init.value, uv_in(call, MLX5_IB_ATTR_CREATE_FLOW_MATCH_VALUE), sizeof init.value);
	if (!ret)
		ret = objects_check(call, MLX5_IB_ATTR_CREATE_FLOW_ARR_COUNTERS_DEVX, 1);
	if (!ret)
		ret = ask_check(call, &matcher->init);
	if (!ret)
		ret = place_find(call, &matcher->init, &init.value, &init.level);
	if (!ret)
		ret = match_check(call, &matcher->init, &init);
	if (!ret)
		ret = flow_create(call->dev, &init, &flow);
	if (!ret)
		call->created = &flow->obj;
	return ret;
}

int on_destroy_flow_mlx5(struct uv_call *call)
{
	flow_destroy((struct emu_flow *)uv_obj(call, MLX5_IB_ATTR_DESTROY_FLOW_HANDLE));
	return 0;
}
