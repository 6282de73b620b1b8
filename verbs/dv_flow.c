/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flow steering with masks, values and actions as the device has them: matchers, rules on them, and
 * actions that change packets.
 *
 * What a mask means is for the device to say; here it is handed on.
 */
#include <errno.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <stdlib.h>
#include "verbs/cmd.h"
#include "verbs/dv.h"
#include "verbs/flow.h"

#define FLOW_ACTIONS_MAX	8u

struct mlx5dv_flow_matcher {
	struct ibv_context *context;
	uint32_t handle;
};

static void *refuse(int error)
{
	errno = error;
	return NULL;
}

/* An attribute has no room for more. */
static bool is_too_long(size_t bytes)
{
	return bytes > UINT16_MAX;
}

/* --- matchers --- */

static int matcher_check(const struct mlx5dv_flow_matcher_attr *attr)
{
	if (attr->comp_mask & ~(uint64_t)MLX5DV_FLOW_MATCHER_MASK_FT_TYPE ||
	    attr->type != IBV_FLOW_ATTR_NORMAL)
		return EOPNOTSUPP;
	return !attr->match_mask || is_too_long(attr->match_mask->match_sz) ? EINVAL : 0;
}

static int matcher_command(struct mlx5dv_flow_matcher *matcher,
			   const struct mlx5dv_flow_matcher_attr *attr)
{
	struct cmd cmd = cmd_new(MLX5_IB_OBJECT_FLOW_MATCHER, MLX5_IB_METHOD_FLOW_MATCHER_CREATE);
	unsigned at = cmd_object(&cmd, MLX5_IB_ATTR_FLOW_MATCHER_CREATE_HANDLE, 0);
	int error;

	cmd_in(&cmd, MLX5_IB_ATTR_FLOW_MATCHER_MATCH_MASK, attr->match_mask->match_buf,
	       attr->match_mask->match_sz);
	cmd_in(&cmd, MLX5_IB_ATTR_FLOW_MATCHER_MATCH_CRITERIA, &attr->match_criteria_enable,
	       sizeof attr->match_criteria_enable);
	cmd_in_enum(&cmd, MLX5_IB_ATTR_FLOW_MATCHER_FLOW_TYPE, MLX5_IB_FLOW_TYPE_NORMAL,
		    &attr->priority, sizeof attr->priority);
	if (attr->comp_mask & MLX5DV_FLOW_MATCHER_MASK_FT_TYPE)
		cmd_in_u64(&cmd, MLX5_IB_ATTR_FLOW_MATCHER_FT_TYPE, attr->ft_type);
	if (attr->flags)
		cmd_in_u64(&cmd, MLX5_IB_ATTR_FLOW_MATCHER_FLOW_FLAGS, attr->flags);
	error = cmd_send(&cmd, matcher->context);
	matcher->handle = cmd_handle(&cmd, at);
	return error;
}

VB_EXPORT struct mlx5dv_flow_matcher *
vb_dv_create_flow_matcher(struct ibv_context *context, const struct mlx5dv_flow_matcher_attr *attr)
{
	int error = matcher_check(attr);
	struct mlx5dv_flow_matcher *matcher = error ? NULL : calloc(1, sizeof *matcher);

	if (!matcher)
		return refuse(error ? error : ENOMEM);
	matcher->context = context;
	error = matcher_command(matcher, attr);
	if (!error)
		return matcher;
	free(matcher);
	return refuse(error);
}

VB_EXPORT int vb_dv_destroy_flow_matcher(struct mlx5dv_flow_matcher *matcher)
{
	int error = cmd_destroy(matcher->context, MLX5_IB_OBJECT_FLOW_MATCHER,
				MLX5_IB_METHOD_FLOW_MATCHER_DESTROY,
				MLX5_IB_ATTR_FLOW_MATCHER_DESTROY_HANDLE, matcher->handle);

	if (!error)
		free(matcher);
	return error;
}

/* --- rules --- */

/* What is put together for one. */
struct rule {
	struct cmd cmd;
	uint32_t flow_action[FLOW_ACTIONS_MAX];
	unsigned flow_actions;
	bool has_destination, has_tag;
};

static int one_destination(struct rule *rule)
{
	if (rule->has_destination)
		return EOPNOTSUPP;
	rule->has_destination = true;
	return 0;
}

static int to_qp(struct rule *rule, const struct mlx5dv_flow_action_attr *action)
{
	int error = one_destination(rule);

	if (!error)
		cmd_object(&rule->cmd, MLX5_IB_ATTR_CREATE_FLOW_DEST_QP, action->qp->handle);
	return error;
}

static int to_nobody(struct rule *rule, uint32_t flag)
{
	int error = one_destination(rule);

	if (!error)
		cmd_in_u32(&rule->cmd, MLX5_IB_ATTR_CREATE_FLOW_FLAGS, flag);
	return error;
}

static int drop(struct rule *rule, const struct mlx5dv_flow_action_attr *action)
{
	(void)action;
	return to_nobody(rule, MLX5_IB_ATTR_CREATE_FLOW_FLAGS_DROP);
}

static int miss(struct rule *rule, const struct mlx5dv_flow_action_attr *action)
{
	(void)action;
	return to_nobody(rule, MLX5_IB_ATTR_CREATE_FLOW_FLAGS_DEFAULT_MISS);
}

static int tag(struct rule *rule, const struct mlx5dv_flow_action_attr *action)
{
	if (rule->has_tag)
		return EINVAL;
	rule->has_tag = true;
	cmd_in_u32(&rule->cmd, MLX5_IB_ATTR_CREATE_FLOW_TAG, action->tag_value);
	return 0;
}

static int change(struct rule *rule, const struct mlx5dv_flow_action_attr *action)
{
	if (rule->flow_actions == FLOW_ACTIONS_MAX)
		return EOPNOTSUPP;
	rule->flow_action[rule->flow_actions++] = vb_flow_action_of(action->action)->handle;
	return 0;
}

/* Objects of commands to the hardware can't be named: there are none. */
static int (*const adders[])(struct rule *rule, const struct mlx5dv_flow_action_attr *action) = {
	[MLX5DV_FLOW_ACTION_DEST_IBV_QP] = to_qp,
	[MLX5DV_FLOW_ACTION_DROP] = drop,
	[MLX5DV_FLOW_ACTION_IBV_FLOW_ACTION] = change,
	[MLX5DV_FLOW_ACTION_TAG] = tag,
	[MLX5DV_FLOW_ACTION_DEFAULT_MISS] = miss,
};

static int actions_add(struct rule *rule, size_t count,
		       const struct mlx5dv_flow_action_attr *actions)
{
	int error = 0;

	for (size_t i = 0; i < count && !error; i++) {
		unsigned type = actions[i].type;

		if (type >= sizeof adders / sizeof *adders || !adders[type])
			return EOPNOTSUPP;
		error = adders[type](rule, &actions[i]);
	}
	if (!error && rule->flow_actions)
		cmd_in(&rule->cmd, MLX5_IB_ATTR_CREATE_FLOW_ARR_FLOW_ACTIONS, rule->flow_action,
		       rule->flow_actions * sizeof *rule->flow_action);
	return error;
}

static int rule_command(struct vb_flow *flow, const struct mlx5dv_flow_matcher *matcher,
			const struct mlx5dv_flow_match_parameters *value, size_t count,
			const struct mlx5dv_flow_action_attr *actions)
{
	struct rule rule = { .cmd = cmd_new(UVERBS_OBJECT_FLOW, MLX5_IB_METHOD_CREATE_FLOW) };
	unsigned at = cmd_object(&rule.cmd, MLX5_IB_ATTR_CREATE_FLOW_HANDLE, 0);
	int error;

	cmd_in(&rule.cmd, MLX5_IB_ATTR_CREATE_FLOW_MATCH_VALUE, value->match_buf,
	       value->match_sz);
	cmd_object(&rule.cmd, MLX5_IB_ATTR_CREATE_FLOW_MATCHER, matcher->handle);
	error = actions_add(&rule, count, actions);
	if (!error)
		error = cmd_send(&rule.cmd, matcher->context);
	flow->flow.context = matcher->context;
	flow->flow.handle = cmd_handle(&rule.cmd, at);
	return error;
}

VB_EXPORT struct ibv_flow *vb_dv_create_flow(const struct mlx5dv_flow_matcher *matcher,
					     const struct mlx5dv_flow_match_parameters *value,
					     size_t count,
					     const struct mlx5dv_flow_action_attr *actions)
{
	struct vb_flow *flow;
	int error;

	if (!value || is_too_long(value->match_sz))
		return refuse(EINVAL);
	flow = calloc(1, sizeof *flow);
	error = flow ? rule_command(flow, matcher, value, count, actions) : ENOMEM;
	if (!error)
		return &flow->flow;
	free(flow);
	return refuse(error);
}

/* --- actions that change packets --- */

static struct ibv_flow_action *action_make(struct ibv_context *context, struct cmd *cmd,
					   unsigned at)
{
	struct vb_flow_action *action = calloc(1, sizeof *action);
	int error = action ? cmd_send(cmd, context) : ENOMEM;

	if (error) {
		free(action);
		return refuse(error);
	}
	action->action.context = context;
	action->handle = cmd_handle(cmd, at);
	return &action->action;
}

VB_EXPORT struct ibv_flow_action *
vb_dv_create_modify_header(struct ibv_context *context, size_t bytes, const uint64_t *actions,
			   enum mlx5dv_flow_table_type table)
{
	struct cmd cmd = cmd_new(UVERBS_OBJECT_FLOW_ACTION,
				 MLX5_IB_METHOD_FLOW_ACTION_CREATE_MODIFY_HEADER);
	unsigned at = cmd_object(&cmd, MLX5_IB_ATTR_CREATE_MODIFY_HEADER_HANDLE, 0);

	if (!bytes || is_too_long(bytes))
		return refuse(EINVAL);
	cmd_in(&cmd, MLX5_IB_ATTR_CREATE_MODIFY_HEADER_ACTIONS_PRM, actions, bytes);
	cmd_in_u64(&cmd, MLX5_IB_ATTR_CREATE_MODIFY_HEADER_FT_TYPE, table);
	return action_make(context, &cmd, at);
}

VB_EXPORT struct ibv_flow_action *
vb_dv_create_packet_reformat(struct ibv_context *context, size_t bytes, const void *data,
			     enum mlx5dv_flow_action_packet_reformat_type type,
			     enum mlx5dv_flow_table_type table)
{
	struct cmd cmd = cmd_new(UVERBS_OBJECT_FLOW_ACTION,
				 MLX5_IB_METHOD_FLOW_ACTION_CREATE_PACKET_REFORMAT);
	unsigned at = cmd_object(&cmd, MLX5_IB_ATTR_CREATE_PACKET_REFORMAT_HANDLE, 0);

	if (!data != !bytes || is_too_long(bytes))
		return refuse(EINVAL);
	if (data)
		cmd_in(&cmd, MLX5_IB_ATTR_CREATE_PACKET_REFORMAT_DATA_BUF, data, bytes);
	cmd_in_u64(&cmd, MLX5_IB_ATTR_CREATE_PACKET_REFORMAT_TYPE, type);
	cmd_in_u64(&cmd, MLX5_IB_ATTR_CREATE_PACKET_REFORMAT_FT_TYPE, table);
	return action_make(context, &cmd, at);
}
