/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Matchers, rules on them, and actions that change packets, as the kernel gets them.
 *
 * Method: the attributes of each command are kept and looked at; the device would take everything.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdlib.h>
#include <string.h>
#include "script.h"
#include "verbs/dv.h"
#include "verbs/flow.h"
#include "verbs/ops.h"

#define ATTRS_MAX	10
#define MATCH_BYTES	64u
#define HANDLE		0x55u	/* of whatever is made */

static struct ibv_context *context;

/* The last command that was sent. */
static struct {
	uint16_t object, method;
	unsigned count;
	struct ib_uverbs_attr attr[ATTRS_MAX];
	uint8_t long_value[ATTRS_MAX][MATCH_BYTES];
} asked;

static void look(struct ib_uverbs_ioctl_hdr *header)
{
	asked.object = header->object_id;
	asked.method = header->method_id;
	asked.count = header->num_attrs;
	cr_assert_leq(asked.count, ATTRS_MAX);
	for (unsigned i = 0; i < asked.count; i++) {
		struct ib_uverbs_attr *attr = &header->attrs[i];

		asked.attr[i] = *attr;
		if (attr->len > sizeof attr->data)
			memcpy(asked.long_value[i], (const void *)(uintptr_t)attr->data,
			       attr->len < MATCH_BYTES ? attr->len : MATCH_BYTES);
	}
	/* What is made has no handle yet. */
	if (asked.count > 1 && !header->attrs[0].len && !header->attrs[0].data)
		header->attrs[0].data = HANDLE;
}

static void setup(void)
{
	context = script_open();
	script.on_command = look;
}

TestSuite(dv_flow, .init = setup);

static int find(unsigned id)
{
	for (unsigned i = 0; i < asked.count; i++)
		if (asked.attr[i].attr_id == id)
			return (int)i;
	return -1;
}

static uint64_t value_of(unsigned id)
{
	int at = find(id);

	cr_assert_geq(at, 0, "attribute 0x%x is not there", id);
	return asked.attr[at].data;
}

static unsigned bytes_of(unsigned id)
{
	int at = find(id);

	cr_assert_geq(at, 0, "attribute 0x%x is not there", id);
	return asked.attr[at].len;
}

/* A mask or a value whose bytes count up from @first; never freed. */
static struct mlx5dv_flow_match_parameters *match(size_t bytes, unsigned first)
{
	struct mlx5dv_flow_match_parameters *m = script_keep(calloc(1, sizeof *m + bytes));

	m->match_sz = bytes;
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)m->match_buf)[i] = (uint8_t)(first + i);
	return m;
}

static void check_match(unsigned id, unsigned first)
{
	cr_assert_eq(bytes_of(id), MATCH_BYTES);
	for (unsigned i = 0; i < MATCH_BYTES; i++)
		cr_assert_eq(asked.long_value[find(id)][i], (uint8_t)(first + i));
}

static struct mlx5dv_flow_matcher_attr matcher_attr(void)
{
	return (struct mlx5dv_flow_matcher_attr){
		.type = IBV_FLOW_ATTR_NORMAL, .priority = 0x0102, .match_criteria_enable = 5,
		.match_mask = match(MATCH_BYTES, 1),
	};
}

/* --- matchers --- */

Test(dv_flow, a_matcher)
{
	struct mlx5dv_flow_matcher_attr attr = matcher_attr();
	struct mlx5dv_flow_matcher *m = vb_dv_create_flow_matcher(context, &attr);

	cr_assert(m);
	cr_assert_eq(asked.object, MLX5_IB_OBJECT_FLOW_MATCHER);
	cr_assert_eq(asked.method, MLX5_IB_METHOD_FLOW_MATCHER_CREATE);
	cr_assert_eq(asked.count, 4);
	check_match(MLX5_IB_ATTR_FLOW_MATCHER_MATCH_MASK, 1);
	cr_assert_eq(bytes_of(MLX5_IB_ATTR_FLOW_MATCHER_MATCH_CRITERIA), 1);
	cr_assert_eq(value_of(MLX5_IB_ATTR_FLOW_MATCHER_MATCH_CRITERIA), 5);
	cr_assert_eq(bytes_of(MLX5_IB_ATTR_FLOW_MATCHER_FLOW_TYPE), 2);
	cr_assert_eq(value_of(MLX5_IB_ATTR_FLOW_MATCHER_FLOW_TYPE), 0x0102);
	cr_assert_eq(asked.attr[find(MLX5_IB_ATTR_FLOW_MATCHER_FLOW_TYPE)]
		     .attr_data.enum_data.elem_id, MLX5_IB_FLOW_TYPE_NORMAL);
	cr_assert_eq(vb_dv_destroy_flow_matcher(m), 0);
	cr_assert_eq(asked.method, MLX5_IB_METHOD_FLOW_MATCHER_DESTROY);
	cr_assert_eq(value_of(MLX5_IB_ATTR_FLOW_MATCHER_DESTROY_HANDLE), HANDLE);
}

/* The table counts only where the mask says so, and it is 0, too, that is told then. */
Test(dv_flow, tables_and_flags_of_matchers)
{
	struct mlx5dv_flow_matcher_attr attr = matcher_attr();
	struct mlx5dv_flow_matcher *m;

	attr.ft_type = MLX5DV_FLOW_TABLE_TYPE_NIC_TX;
	m = vb_dv_create_flow_matcher(context, &attr);
	cr_assert_lt(find(MLX5_IB_ATTR_FLOW_MATCHER_FT_TYPE), 0);
	cr_assert_lt(find(MLX5_IB_ATTR_FLOW_MATCHER_FLOW_FLAGS), 0);
	cr_assert_eq(vb_dv_destroy_flow_matcher(m), 0);
	attr.comp_mask = MLX5DV_FLOW_MATCHER_MASK_FT_TYPE;
	attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS;
	m = vb_dv_create_flow_matcher(context, &attr);
	cr_assert_eq(value_of(MLX5_IB_ATTR_FLOW_MATCHER_FT_TYPE), MLX5DV_FLOW_TABLE_TYPE_NIC_TX);
	cr_assert_eq(bytes_of(MLX5_IB_ATTR_FLOW_MATCHER_FT_TYPE), 8);
	cr_assert_eq(value_of(MLX5_IB_ATTR_FLOW_MATCHER_FLOW_FLAGS), IBV_FLOW_ATTR_FLAGS_EGRESS);
	cr_assert_eq(bytes_of(MLX5_IB_ATTR_FLOW_MATCHER_FLOW_FLAGS), 8);
	cr_assert_eq(vb_dv_destroy_flow_matcher(m), 0);
	attr.ft_type = MLX5DV_FLOW_TABLE_TYPE_NIC_RX;
	m = vb_dv_create_flow_matcher(context, &attr);
	cr_assert_eq(value_of(MLX5_IB_ATTR_FLOW_MATCHER_FT_TYPE), MLX5DV_FLOW_TABLE_TYPE_NIC_RX);
	cr_assert_eq(vb_dv_destroy_flow_matcher(m), 0);
}

static void check_no_matcher(const struct mlx5dv_flow_matcher_attr *attr, int error)
{
	unsigned commands = script.commands;

	errno = 0;
	cr_assert_null(vb_dv_create_flow_matcher(context, attr));
	cr_assert_eq(errno, error);
	cr_assert_eq(script.commands, commands);
}

Test(dv_flow, matchers_that_are_refused)
{
	static const enum ibv_flow_attr_type types[] = {
		IBV_FLOW_ATTR_ALL_DEFAULT, IBV_FLOW_ATTR_MC_DEFAULT, IBV_FLOW_ATTR_SNIFFER,
	};
	struct mlx5dv_flow_matcher_attr attr = matcher_attr();

	for (unsigned i = 0; i < sizeof types / sizeof *types; i++) {
		attr.type = types[i];
		check_no_matcher(&attr, EOPNOTSUPP);
	}
	attr = matcher_attr();
	attr.comp_mask = MLX5DV_FLOW_MATCHER_MASK_FT_TYPE << 1;
	check_no_matcher(&attr, EOPNOTSUPP);
	attr = matcher_attr();
	attr.match_mask->match_sz = UINT16_MAX + 1;
	check_no_matcher(&attr, EINVAL);
	attr.match_mask->match_sz = SIZE_MAX;
	check_no_matcher(&attr, EINVAL);
	attr.match_mask = NULL;
	check_no_matcher(&attr, EINVAL);
}

Test(dv_flow, a_matcher_that_the_device_refuses)
{
	struct mlx5dv_flow_matcher_attr attr = matcher_attr();

	script.fail_object = MLX5_IB_OBJECT_FLOW_MATCHER;
	script.fail_method = MLX5_IB_METHOD_FLOW_MATCHER_CREATE;
	script.fail_error = EPERM;
	cr_assert_null(vb_dv_create_flow_matcher(context, &attr));
	cr_assert_eq(errno, EPERM);
}

/* --- rules --- */

static struct ibv_qp qp = { .handle = 0x77 };

static struct mlx5dv_flow_matcher *matcher(void)
{
	struct mlx5dv_flow_matcher_attr attr = matcher_attr();
	struct mlx5dv_flow_matcher *m = script_keep(vb_dv_create_flow_matcher(context, &attr));

	cr_assert(m);
	return m;
}

static int try_rule(size_t count, const struct mlx5dv_flow_action_attr *actions)
{
	struct mlx5dv_flow_matcher *m = matcher();
	unsigned commands = script.commands;
	struct ibv_flow *flow;

	errno = 0;
	flow = vb_dv_create_flow(m, match(MATCH_BYTES, 0x40), count, actions);
	if (!flow) {
		cr_assert_eq(script.commands, commands);
		return errno;
	}
	cr_assert_eq(asked.object, UVERBS_OBJECT_FLOW);
	cr_assert_eq(asked.method, MLX5_IB_METHOD_CREATE_FLOW);
	check_match(MLX5_IB_ATTR_CREATE_FLOW_MATCH_VALUE, 0x40);
	cr_assert_eq(value_of(MLX5_IB_ATTR_CREATE_FLOW_MATCHER), HANDLE);
	script.on_command = NULL;
	cr_assert_eq(flow->handle, HANDLE);
	cr_assert_eq(flow->context, context);
	cr_assert_eq(vb_destroy_flow(flow), 0);
	script.on_command = look;
	return 0;
}

Test(dv_flow, a_rule_that_leads_to_a_qp)
{
	const struct mlx5dv_flow_action_attr actions[] = {
		{ .type = MLX5DV_FLOW_ACTION_TAG, .tag_value = 0x123456 },
		{ .type = MLX5DV_FLOW_ACTION_DEST_IBV_QP, .qp = &qp },
	};

	cr_assert_eq(try_rule(2, actions), 0);
	cr_assert_eq(asked.count, 5);
	cr_assert_eq(value_of(MLX5_IB_ATTR_CREATE_FLOW_DEST_QP), 0x77);
	cr_assert_eq(value_of(MLX5_IB_ATTR_CREATE_FLOW_TAG), 0x123456);
	cr_assert_eq(bytes_of(MLX5_IB_ATTR_CREATE_FLOW_TAG), 4);
}

Test(dv_flow, rules_that_lead_nowhere)
{
	struct mlx5dv_flow_action_attr action = { .type = MLX5DV_FLOW_ACTION_DROP };

	cr_assert_eq(try_rule(1, &action), 0);
	cr_assert_eq(value_of(MLX5_IB_ATTR_CREATE_FLOW_FLAGS), MLX5_IB_ATTR_CREATE_FLOW_FLAGS_DROP);
	action.type = MLX5DV_FLOW_ACTION_DEFAULT_MISS;
	cr_assert_eq(try_rule(1, &action), 0);
	cr_assert_eq(value_of(MLX5_IB_ATTR_CREATE_FLOW_FLAGS),
		     MLX5_IB_ATTR_CREATE_FLOW_FLAGS_DEFAULT_MISS);
	cr_assert_eq(try_rule(0, NULL), 0, "the device says what it thinks of that");
	cr_assert_eq(asked.count, 3);
}

Test(dv_flow, one_way_only)
{
	static const enum mlx5dv_flow_action_type ways[] = {
		MLX5DV_FLOW_ACTION_DEST_IBV_QP, MLX5DV_FLOW_ACTION_DROP,
		MLX5DV_FLOW_ACTION_DEFAULT_MISS,
	};

	for (unsigned i = 0; i < 3; i++)
		for (unsigned k = 0; k < 3; k++) {
			const struct mlx5dv_flow_action_attr actions[] = {
				{ .type = ways[i], .qp = &qp }, { .type = ways[k], .qp = &qp },
			};

			cr_assert_eq(try_rule(2, actions), EOPNOTSUPP);
		}
}

Test(dv_flow, actions_that_are_refused)
{
	const struct mlx5dv_flow_action_attr tags[] = {
		{ .type = MLX5DV_FLOW_ACTION_TAG, .tag_value = 1 },
		{ .type = MLX5DV_FLOW_ACTION_TAG, .tag_value = 1 },
	};
	static const unsigned none[] = {
		MLX5DV_FLOW_ACTION_IBV_COUNTER, MLX5DV_FLOW_ACTION_DEST_DEVX,
		MLX5DV_FLOW_ACTION_COUNTERS_DEVX, MLX5DV_FLOW_ACTION_DEFAULT_MISS + 1, UINT32_MAX,
	};

	cr_assert_eq(try_rule(2, tags), EINVAL);
	for (unsigned i = 0; i < sizeof none / sizeof *none; i++) {
		struct mlx5dv_flow_action_attr action = {
			.type = (enum mlx5dv_flow_action_type)none[i],
		};

		cr_assert_eq(try_rule(1, &action), EOPNOTSUPP, "type %u", none[i]);
	}
}

Test(dv_flow, values_that_are_refused)
{
	struct mlx5dv_flow_match_parameters *value = match(8, 0);
	struct mlx5dv_flow_matcher *m = matcher();
	unsigned commands = script.commands;

	value->match_sz = UINT16_MAX + 1;
	cr_assert_null(vb_dv_create_flow(m, value, 0, NULL));
	cr_assert_eq(errno, EINVAL);
	cr_assert_null(vb_dv_create_flow(m, NULL, 0, NULL));
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(script.commands, commands);
}

/* --- actions that change packets --- */

Test(dv_flow, up_to_eight_changes)
{
	struct vb_flow_action made[9] = { 0 };
	struct mlx5dv_flow_action_attr actions[9];
	uint32_t first;

	for (unsigned i = 0; i < 9; i++) {
		made[i].handle = 0x100 + i;
		actions[i] = (struct mlx5dv_flow_action_attr){
			.type = MLX5DV_FLOW_ACTION_IBV_FLOW_ACTION, .action = &made[i].action,
		};
	}
	cr_assert_eq(try_rule(1, actions), 0);
	cr_assert_eq(bytes_of(MLX5_IB_ATTR_CREATE_FLOW_ARR_FLOW_ACTIONS), 4);
	cr_assert_eq(value_of(MLX5_IB_ATTR_CREATE_FLOW_ARR_FLOW_ACTIONS), 0x100);
	cr_assert_eq(try_rule(8, actions), 0);
	cr_assert_eq(bytes_of(MLX5_IB_ATTR_CREATE_FLOW_ARR_FLOW_ACTIONS), 32);
	memcpy(&first, asked.long_value[find(MLX5_IB_ATTR_CREATE_FLOW_ARR_FLOW_ACTIONS)] + 28, 4);
	cr_assert_eq(first, 0x107);
	cr_assert_eq(try_rule(9, actions), EOPNOTSUPP);
}

static void destroy(struct ibv_flow_action *action)
{
	cr_assert(action);
	cr_assert_eq(action->context, context);
	cr_assert_eq(ibv_destroy_flow_action(action), 0);
	cr_assert_eq(asked.object, UVERBS_OBJECT_FLOW_ACTION);
	cr_assert_eq(asked.method, UVERBS_METHOD_FLOW_ACTION_DESTROY);
	cr_assert_eq(value_of(UVERBS_ATTR_DESTROY_FLOW_ACTION_HANDLE), HANDLE);
}

Test(dv_flow, changed_headers)
{
	uint64_t list[2] = { 0x1122334455667788, 0x99aabbccddeeff00 };
	struct ibv_flow_action *action =
		vb_dv_create_modify_header(context, sizeof list, list,
					   MLX5DV_FLOW_TABLE_TYPE_NIC_TX);

	cr_assert_eq(asked.object, UVERBS_OBJECT_FLOW_ACTION);
	cr_assert_eq(asked.method, MLX5_IB_METHOD_FLOW_ACTION_CREATE_MODIFY_HEADER);
	cr_assert_eq(bytes_of(MLX5_IB_ATTR_CREATE_MODIFY_HEADER_ACTIONS_PRM), 16);
	cr_assert_arr_eq(asked.long_value[find(MLX5_IB_ATTR_CREATE_MODIFY_HEADER_ACTIONS_PRM)],
			 (uint8_t *)list, 16);
	cr_assert_eq(value_of(MLX5_IB_ATTR_CREATE_MODIFY_HEADER_FT_TYPE),
		     MLX5DV_FLOW_TABLE_TYPE_NIC_TX);
	destroy(action);
	cr_assert_null(vb_dv_create_modify_header(context, 0, list, 0));
	cr_assert_eq(errno, EINVAL);
	cr_assert_null(vb_dv_create_modify_header(context, UINT16_MAX + 1, list, 0));
	cr_assert_eq(errno, EINVAL);
}

Test(dv_flow, changed_tunnels)
{
	uint8_t header[50] = { 1, 2, 3 };
	struct ibv_flow_action *action = vb_dv_create_packet_reformat(
		context, sizeof header, header,
		MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_L2_TO_L3_TUNNEL,
		MLX5DV_FLOW_TABLE_TYPE_NIC_TX);

	cr_assert_eq(asked.method, MLX5_IB_METHOD_FLOW_ACTION_CREATE_PACKET_REFORMAT);
	cr_assert_eq(value_of(MLX5_IB_ATTR_CREATE_PACKET_REFORMAT_TYPE),
		     MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_L2_TO_L3_TUNNEL);
	cr_assert_eq(value_of(MLX5_IB_ATTR_CREATE_PACKET_REFORMAT_FT_TYPE),
		     MLX5DV_FLOW_TABLE_TYPE_NIC_TX);
	cr_assert_eq(bytes_of(MLX5_IB_ATTR_CREATE_PACKET_REFORMAT_DATA_BUF), 50);
	destroy(action);
	action = vb_dv_create_packet_reformat(
		context, 0, NULL, MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_L2_TUNNEL_TO_L2,
		MLX5DV_FLOW_TABLE_TYPE_NIC_RX);
	cr_assert_lt(find(MLX5_IB_ATTR_CREATE_PACKET_REFORMAT_DATA_BUF), 0);
	destroy(action);
	cr_assert_null(vb_dv_create_packet_reformat(context, 0, header, 0, 0));
	cr_assert_eq(errno, EINVAL);
	cr_assert_null(vb_dv_create_packet_reformat(context, 1, NULL, 0, 0));
	cr_assert_eq(errno, EINVAL);
	cr_assert_null(vb_dv_create_packet_reformat(context, UINT16_MAX + 1, header, 0, 0));
	cr_assert_eq(errno, EINVAL);
}

Test(dv_flow, an_action_in_use_stays)
{
	uint64_t list[1] = { 1 };
	struct ibv_flow_action *action = vb_dv_create_modify_header(context, 8, list, 0);

	cr_assert(action);
	script.fail_object = UVERBS_OBJECT_FLOW_ACTION;
	script.fail_method = UVERBS_METHOD_FLOW_ACTION_DESTROY;
	script.fail_error = EBUSY;
	cr_assert_eq(ibv_destroy_flow_action(action), EBUSY);
	cr_assert_eq(ibv_destroy_flow_action(action), 0);
}
