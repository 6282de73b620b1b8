/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The write commands of this device, and INVOKE_WRITE, which carries them in an ioctl.
 *
 * A row without a handler is a command that a ConnectX has and this device does not.
 * legacy.c feeds the same rows from write().
 *
 * Source: device-abi B.3, B.9.
 */
#include <errno.h>
#include <string.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include "emu/uverbs/handlers.h"
#include "emu/uverbs/on_rss.h"
#include "emu/uverbs/rows.h"

#define EX(number) (IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_##number)

#define COMMAND(name_, run_, ...) \
	{ .name = #name_, .object = UV_WRITE_OBJECT, .method = IB_USER_VERBS_CMD_##name_, \
	  .run = run_, ATTRS(__VA_ARGS__) }
#define EARLY_COMMAND(name_, run_, ...) \
	{ .name = #name_, .object = UV_WRITE_OBJECT, .method = IB_USER_VERBS_CMD_##name_, \
	  .run = run_, .before_context = true, ATTRS(__VA_ARGS__) }
#define EX_COMMAND(name_, run_, ...) \
	{ .name = "EX_" #name_, .object = UV_WRITE_OBJECT, .method = EX(name_), \
	  .run = run_, ATTRS(__VA_ARGS__) }
#define ABSENT(name_) \
	{ .name = #name_, .object = UV_WRITE_OBJECT, .method = IB_USER_VERBS_CMD_##name_ }
#define EX_ABSENT(name_) \
	{ .name = "EX_" #name_, .object = UV_WRITE_OBJECT, .method = EX(name_) }

/* One number of CREATE_QP or CREATE_XSRQ is used or not, as the others say. */

static unsigned qp_type(const void *core_in)
{
	return ((const struct ib_uverbs_create_qp *)core_in)->qp_type;
}

static bool qp_has_xrcd(const void *core_in)
{
	return qp_type(core_in) == IB_UVERBS_QPT_XRC_TGT;
}

static bool qp_has_pd(const void *core_in)
{
	return !qp_has_xrcd(core_in);
}

static bool qp_receives(const void *core_in)
{
	return qp_has_pd(core_in) && qp_type(core_in) != IB_UVERBS_QPT_XRC_INI;
}

static bool qp_has_srq(const void *core_in)
{
	return qp_receives(core_in) && ((const struct ib_uverbs_create_qp *)core_in)->is_srq;
}

static bool srq_has_xrcd(const void *core_in)
{
	return ((const struct ib_uverbs_create_xsrq *)core_in)->srq_type == IB_UVERBS_SRQT_XRC;
}

static bool srq_has_cq(const void *core_in)
{
	return ((const struct ib_uverbs_create_xsrq *)core_in)->srq_type != IB_UVERBS_SRQT_BASIC;
}

const struct uv_method uv_commands[] = {
	EARLY_COMMAND(GET_CONTEXT, on_get_context_legacy,
		CORE_IN(ib_uverbs_get_context, response),
		CORE_OUT(ib_uverbs_get_context_resp, num_comp_vectors),
		CORE_AT(UV_MADE_FD, UV_FD_NEW, OBJ_ASYNC, ib_uverbs_get_context_resp, async_fd),
		UHW_IN(struct mlx5_ib_alloc_ucontext_req_v2, num_low_latency_bfregs, UV_MANDATORY),
		UHW_OUT(struct mlx5_ib_alloc_ucontext_resp)),
	COMMAND(QUERY_DEVICE, on_query_device,
		CORE_IN(ib_uverbs_query_device, response),
		CORE_OUT(ib_uverbs_query_device_resp, reserved)),
	EX_COMMAND(QUERY_DEVICE, on_query_device_ex,
		CORE_IN(ib_uverbs_ex_query_device, reserved),
		CORE_OUT(ib_uverbs_ex_query_device_resp, response_length),
		UHW_OUT(struct mlx5_ib_query_device_resp)),
	COMMAND(QUERY_PORT, on_query_port_legacy,
		CORE_IN(ib_uverbs_query_port, reserved),
		CORE_OUT(ib_uverbs_query_port_resp, reserved)),
	COMMAND(ALLOC_PD, on_alloc_pd,
		CORE_IN(ib_uverbs_alloc_pd, response),
		CORE_OUT(ib_uverbs_alloc_pd_resp, pd_handle),
		CORE_AT(UV_MADE, UV_NEW, OBJ_PD, ib_uverbs_alloc_pd_resp, pd_handle),
		UHW_IGNORED,
		UHW_OUT(struct mlx5_ib_alloc_pd_resp)),
	COMMAND(DEALLOC_PD, on_dealloc_pd_legacy,
		CORE_IN(ib_uverbs_dealloc_pd, pd_handle),
		CORE_AT(UV_PD, UV_DESTROY, OBJ_PD, ib_uverbs_dealloc_pd, pd_handle)),
	COMMAND(REG_MR, on_reg_mr,
		CORE_IN(ib_uverbs_reg_mr, access_flags),
		CORE_AT(UV_PD, UV_USE, OBJ_PD, ib_uverbs_reg_mr, pd_handle),
		CORE_OUT(ib_uverbs_reg_mr_resp, rkey),
		CORE_AT(UV_MADE, UV_NEW, OBJ_MR, ib_uverbs_reg_mr_resp, mr_handle),
		UHW_IGNORED),
	COMMAND(REREG_MR, on_rereg_mr,
		CORE_IN(ib_uverbs_rereg_mr, access_flags),
		CORE_AT(UV_MR, UV_USE, OBJ_MR, ib_uverbs_rereg_mr, mr_handle),
		CORE_OUT(ib_uverbs_rereg_mr_resp, rkey),
		UHW_IGNORED),
	COMMAND(DEREG_MR, on_dereg_mr_legacy,
		CORE_IN(ib_uverbs_dereg_mr, mr_handle),
		CORE_AT(UV_MR, UV_DESTROY, OBJ_MR, ib_uverbs_dereg_mr, mr_handle)),
	COMMAND(ALLOC_MW, on_alloc_mw,
		CORE_IN(ib_uverbs_alloc_mw, reserved),
		CORE_AT(UV_PD, UV_USE, OBJ_PD, ib_uverbs_alloc_mw, pd_handle),
		CORE_OUT(ib_uverbs_alloc_mw_resp, rkey),
		CORE_AT(UV_MADE, UV_NEW, OBJ_MW, ib_uverbs_alloc_mw_resp, mw_handle),
		UHW_IN(struct mlx5_ib_alloc_mw, reserved2, UV_OPTIONAL)),
	COMMAND(DEALLOC_MW, on_dealloc_mw_legacy,
		CORE_IN(ib_uverbs_dealloc_mw, mw_handle),
		CORE_AT(UV_MW, UV_DESTROY, OBJ_MW, ib_uverbs_dealloc_mw, mw_handle)),
	COMMAND(CREATE_COMP_CHANNEL, on_create_comp_channel,
		CORE_IN(ib_uverbs_create_comp_channel, response),
		CORE_OUT(ib_uverbs_create_comp_channel_resp, fd),
		CORE_AT(UV_MADE_FD, UV_FD_NEW, OBJ_CHANNEL,
			ib_uverbs_create_comp_channel_resp, fd)),
	COMMAND(CREATE_CQ, on_create_cq_legacy,
		CORE_IN(ib_uverbs_create_cq, reserved),
		CORE_AT(UV_CHANNEL, UV_FD_USE, OBJ_CHANNEL, ib_uverbs_create_cq, comp_channel),
		CORE_OUT(ib_uverbs_create_cq_resp, cqe),
		CORE_AT(UV_MADE, UV_NEW, OBJ_CQ, ib_uverbs_create_cq_resp, cq_handle),
		UHW_IN(struct mlx5_ib_create_cq, cqe_comp_res_format, UV_MANDATORY),
		UHW_OUT(struct mlx5_ib_create_cq_resp)),
	COMMAND(RESIZE_CQ, on_resize_cq,
		CORE_IN(ib_uverbs_resize_cq, cqe),
		CORE_AT(UV_CQ, UV_USE, OBJ_CQ, ib_uverbs_resize_cq, cq_handle),
		CORE_OUT(ib_uverbs_resize_cq_resp, reserved),
		UHW_IN(struct mlx5_ib_resize_cq, cqe_size, UV_MANDATORY)),
	EX_COMMAND(MODIFY_CQ, on_modify_cq,
		CORE_IN(ib_uverbs_ex_modify_cq, reserved),
		CORE_AT(UV_CQ, UV_USE, OBJ_CQ, ib_uverbs_ex_modify_cq, cq_handle)),
	COMMAND(DESTROY_CQ, on_destroy_cq_legacy,
		CORE_IN(ib_uverbs_destroy_cq, reserved),
		CORE_AT(UV_CQ, UV_DESTROY, OBJ_CQ, ib_uverbs_destroy_cq, cq_handle),
		CORE_OUT(ib_uverbs_destroy_cq_resp, async_events_reported)),
	COMMAND(CREATE_QP, on_create_qp_legacy,
		CORE_IN(ib_uverbs_create_qp, reserved),
		CORE_AT_IF(qp_has_pd, UV_PD, UV_USE, OBJ_PD, ib_uverbs_create_qp, pd_handle),
		CORE_AT_IF(qp_has_xrcd, UV_XRCD, UV_USE, OBJ_XRCD, ib_uverbs_create_qp, pd_handle),
		CORE_AT_IF(qp_has_pd, UV_CQ, UV_USE, OBJ_CQ, ib_uverbs_create_qp, send_cq_handle),
		CORE_AT_IF(qp_receives, UV_RECV_CQ, UV_USE, OBJ_CQ, ib_uverbs_create_qp,
			   recv_cq_handle),
		CORE_AT_IF(qp_has_srq, UV_SRQ, UV_USE, OBJ_SRQ, ib_uverbs_create_qp, srq_handle),
		CORE_OUT(ib_uverbs_create_qp_resp, reserved),
		CORE_AT(UV_MADE, UV_NEW, OBJ_QP, ib_uverbs_create_qp_resp, qp_handle),
		UHW_IN(union create_qp_driver, qp.bfreg_index, UV_MANDATORY),
		UHW_OUT(struct mlx5_ib_create_qp_resp)),
	COMMAND(QUERY_QP, on_query_qp,
		CORE_IN(ib_uverbs_query_qp, attr_mask),
		CORE_AT(UV_QP, UV_USE, OBJ_QP, ib_uverbs_query_qp, qp_handle),
		CORE_OUT(ib_uverbs_query_qp_resp, reserved)),
	COMMAND(MODIFY_QP, on_modify_qp,
		CORE_IN(ib_uverbs_modify_qp, reserved),
		CORE_AT(UV_QP, UV_USE, OBJ_QP, ib_uverbs_modify_qp, qp_handle)),
	EX_COMMAND(MODIFY_QP, on_modify_qp_ex,
		CORE_IN(ib_uverbs_ex_modify_qp, base),
		CORE_AT(UV_QP, UV_USE, OBJ_QP, ib_uverbs_ex_modify_qp, base.qp_handle),
		CORE_OUT(ib_uverbs_ex_modify_qp_resp, response_length),
		UHW_IN(struct mlx5_ib_modify_qp, ece_options, UV_OPTIONAL),
		UHW_OUT(struct mlx5_ib_modify_qp_resp)),
	COMMAND(DESTROY_QP, on_destroy_qp_legacy,
		CORE_IN(ib_uverbs_destroy_qp, reserved),
		CORE_AT(UV_QP, UV_DESTROY, OBJ_QP, ib_uverbs_destroy_qp, qp_handle),
		CORE_OUT(ib_uverbs_destroy_qp_resp, events_reported)),

	COMMAND(CREATE_SRQ, on_create_srq_legacy,
		CORE_IN(ib_uverbs_create_srq, srq_limit),
		CORE_AT(UV_PD, UV_USE, OBJ_PD, ib_uverbs_create_srq, pd_handle),
		CORE_OUT(ib_uverbs_create_srq_resp, srqn),
		CORE_AT(UV_MADE, UV_NEW, OBJ_SRQ, ib_uverbs_create_srq_resp, srq_handle),
		UHW_IN(struct mlx5_ib_create_srq, flags, UV_MANDATORY),
		UHW_OUT(struct mlx5_ib_create_srq_resp)),
	COMMAND(CREATE_XSRQ, on_create_xsrq,
		CORE_IN(ib_uverbs_create_xsrq, cq_handle),
		CORE_AT(UV_PD, UV_USE, OBJ_PD, ib_uverbs_create_xsrq, pd_handle),
		CORE_AT_IF(srq_has_xrcd, UV_XRCD, UV_USE, OBJ_XRCD, ib_uverbs_create_xsrq,
			   xrcd_handle),
		CORE_AT_IF(srq_has_cq, UV_CQ, UV_USE, OBJ_CQ, ib_uverbs_create_xsrq, cq_handle),
		CORE_OUT(ib_uverbs_create_srq_resp, srqn),
		CORE_AT(UV_MADE, UV_NEW, OBJ_SRQ, ib_uverbs_create_srq_resp, srq_handle),
		UHW_IN(struct mlx5_ib_create_srq, flags, UV_MANDATORY),
		UHW_OUT(struct mlx5_ib_create_srq_resp)),
	COMMAND(MODIFY_SRQ, on_modify_srq,
		CORE_IN(ib_uverbs_modify_srq, srq_limit),
		CORE_AT(UV_SRQ, UV_USE, OBJ_SRQ, ib_uverbs_modify_srq, srq_handle),
		UHW_IGNORED),
	COMMAND(QUERY_SRQ, on_query_srq,
		CORE_IN(ib_uverbs_query_srq, reserved),
		CORE_AT(UV_SRQ, UV_USE, OBJ_SRQ, ib_uverbs_query_srq, srq_handle),
		CORE_OUT(ib_uverbs_query_srq_resp, reserved)),
	COMMAND(DESTROY_SRQ, on_destroy_srq_legacy,
		CORE_IN(ib_uverbs_destroy_srq, reserved),
		CORE_AT(UV_SRQ, UV_DESTROY, OBJ_SRQ, ib_uverbs_destroy_srq, srq_handle),
		CORE_OUT(ib_uverbs_destroy_srq_resp, events_reported)),

	COMMAND(OPEN_XRCD, on_open_xrcd,
		CORE_IN(ib_uverbs_open_xrcd, oflags),
		CORE_OUT(ib_uverbs_open_xrcd_resp, xrcd_handle),
		CORE_AT(UV_MADE, UV_NEW, OBJ_XRCD, ib_uverbs_open_xrcd_resp, xrcd_handle),
		UHW_IGNORED),
	COMMAND(CLOSE_XRCD, on_close_xrcd_legacy,
		CORE_IN(ib_uverbs_close_xrcd, xrcd_handle),
		CORE_AT(UV_XRCD, UV_DESTROY, OBJ_XRCD, ib_uverbs_close_xrcd, xrcd_handle)),
	COMMAND(OPEN_QP, on_open_qp,
		CORE_IN(ib_uverbs_open_qp, reserved),
		CORE_AT(UV_XRCD, UV_USE, OBJ_XRCD, ib_uverbs_open_qp, pd_handle),
		CORE_OUT(ib_uverbs_create_qp_resp, reserved),
		CORE_AT(UV_MADE, UV_NEW, OBJ_QP, ib_uverbs_create_qp_resp, qp_handle),
		UHW_IGNORED),

	COMMAND(CREATE_AH, on_create_ah,
		CORE_IN(ib_uverbs_create_ah, attr),
		CORE_AT(UV_PD, UV_USE, OBJ_PD, ib_uverbs_create_ah, pd_handle),
		CORE_OUT(ib_uverbs_create_ah_resp, ah_handle),
		CORE_AT(UV_MADE, UV_NEW, OBJ_AH, ib_uverbs_create_ah_resp, ah_handle),
		UHW_IGNORED,
		UHW_OUT(struct mlx5_ib_create_ah_resp)),
	COMMAND(DESTROY_AH, on_destroy_ah_legacy,
		CORE_IN(ib_uverbs_destroy_ah, ah_handle),
		CORE_AT(UV_AH, UV_DESTROY, OBJ_AH, ib_uverbs_destroy_ah, ah_handle)),
	COMMAND(ATTACH_MCAST, on_attach_mcast,
		CORE_IN(ib_uverbs_attach_mcast, reserved),
		CORE_AT(UV_QP, UV_USE, OBJ_QP, ib_uverbs_attach_mcast, qp_handle)),
	COMMAND(DETACH_MCAST, on_detach_mcast,
		CORE_IN(ib_uverbs_detach_mcast, reserved),
		CORE_AT(UV_QP, UV_USE, OBJ_QP, ib_uverbs_detach_mcast, qp_handle)),

	EX_COMMAND(CREATE_WQ, on_create_wq_ex,
		CORE_IN(ib_uverbs_ex_create_wq, max_sge),
		CORE_AT(UV_PD, UV_USE, OBJ_PD, ib_uverbs_ex_create_wq, pd_handle),
		CORE_AT(UV_CQ, UV_USE, OBJ_CQ, ib_uverbs_ex_create_wq, cq_handle),
		CORE_OUT(ib_uverbs_ex_create_wq_resp, wqn),
		CORE_AT(UV_MADE, UV_NEW, OBJ_WQ, ib_uverbs_ex_create_wq_resp, wq_handle),
		UHW_IN(struct mlx5_ib_create_wq, single_stride_log_num_of_bytes, UV_MANDATORY),
		UHW_OUT(struct mlx5_ib_create_wq_resp)),
	EX_COMMAND(MODIFY_WQ, on_modify_wq,
		CORE_IN(ib_uverbs_ex_modify_wq, curr_wq_state),
		CORE_AT(UV_WQ, UV_USE, OBJ_WQ, ib_uverbs_ex_modify_wq, wq_handle),
		UHW_IN(struct mlx5_ib_modify_wq, reserved, UV_MANDATORY)),
	EX_COMMAND(DESTROY_WQ, on_destroy_wq_ex,
		CORE_IN(ib_uverbs_ex_destroy_wq, wq_handle),
		CORE_AT(UV_WQ, UV_DESTROY, OBJ_WQ, ib_uverbs_ex_destroy_wq, wq_handle),
		CORE_OUT(ib_uverbs_ex_destroy_wq_resp, reserved)),
	EX_COMMAND(CREATE_RWQ_IND_TBL, on_create_rwq_table,
		CORE_IN_LIST(ib_uverbs_ex_create_rwq_ind_table, log_ind_tbl_size),
		CORE_OUT(ib_uverbs_ex_create_rwq_ind_table_resp, ind_tbl_num),
		CORE_AT(UV_MADE, UV_NEW, OBJ_RWQ_TABLE, ib_uverbs_ex_create_rwq_ind_table_resp,
			ind_tbl_handle),
		UHW_NOTHING,
		UHW_OUT(struct mlx5_ib_create_rwq_ind_tbl_resp)),
	EX_COMMAND(DESTROY_RWQ_IND_TBL, on_destroy_rwq_table_ex,
		CORE_IN(ib_uverbs_ex_destroy_rwq_ind_table, ind_tbl_handle),
		CORE_AT(UV_RWQ_TABLE, UV_DESTROY, OBJ_RWQ_TABLE,
			ib_uverbs_ex_destroy_rwq_ind_table, ind_tbl_handle)),

	EX_COMMAND(CREATE_FLOW, on_create_flow,
		CORE_IN_LIST(ib_uverbs_create_flow, flow_attr),
		CORE_OUT(ib_uverbs_create_flow_resp, flow_handle),
		CORE_AT(UV_MADE, UV_NEW, OBJ_FLOW, ib_uverbs_create_flow_resp, flow_handle),
		ROW(UVERBS_ATTR_UHW_IN, UV_IN, UV_OPTIONAL, .has_list = true, .grows = true,
		    .size = sizeof(struct mlx5_ib_create_flow))),
	EX_COMMAND(DESTROY_FLOW, on_destroy_flow_ex,
		CORE_IN(ib_uverbs_destroy_flow, flow_handle),
		CORE_AT(UV_FLOW, UV_DESTROY, OBJ_FLOW, ib_uverbs_destroy_flow, flow_handle)),

	ABSENT(POLL_CQ),
	ABSENT(REQ_NOTIFY_CQ),
	ABSENT(POST_SEND),
	ABSENT(POST_RECV),
	ABSENT(POST_SRQ_RECV),
	EX_ABSENT(CREATE_CQ),
	EX_ABSENT(CREATE_QP),
};
const unsigned uv_command_count = ARRAY_SIZE(uv_commands);

/*
 * Which refusal a number without a row gets: the kernel keeps both sorts in tables up to
 * their highest command, and has one method for every hole.
 */
static int unknown_command(uint32_t command)
{
	uint32_t number = command & IB_USER_VERBS_CMD_COMMAND_MASK;

	if (command & ~(uint32_t)(IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_CMD_COMMAND_MASK))
		return -EINVAL;
	if (command & IB_USER_VERBS_CMD_FLAG_EXTENDED)
		return -EOPNOTSUPP;
	return number > IB_USER_VERBS_CMD_OPEN_QP ? -EINVAL : -EOPNOTSUPP;
}

int uv_command_set(struct uv_call *call, uint32_t command)
{
	const struct uv_method *row = uv_method_find(uv_commands, uv_command_count,
						     UV_WRITE_OBJECT, command);

	call->object = UV_WRITE_OBJECT;
	call->number = command;
	if (!row)
		return uv_refuse(call, WHY_CMD_UNSUPPORTED, unknown_command(command));
	if (!row->run)
		return uv_refuse(call, WHY_CMD_UNSUPPORTED, -EOPNOTSUPP);
	call->method = row;
	return 0;
}

static bool is_core(uint16_t id)
{
	return id == UVERBS_ATTR_CORE_IN || id == UVERBS_ATTR_CORE_OUT;
}

int uv_command_take(struct uv_call *call, uint16_t id, const struct uv_given *given)
{
	int row = uv_row_find(call->method, id);

	if (row < 0)
		return 0;
	if (is_core(id) && given->bytes < call->method->attr[row].min) {
		call->culprit = id;
		return uv_refuse(call, WHY_CMD_ATTRIBUTES, -ENOSPC);
	}
	return uv_take(call, (unsigned)row, given);
}

int uv_command_check(struct uv_call *call, bool wants_answer)
{
	for (unsigned i = 0; i < call->method->attr_count; i++) {
		const struct uv_attr *row = &call->method->attr[i];

		if (row->place != UV_ATTR || !is_core(row->id) || call->slot[i].is_given)
			continue;
		if (row->id == UVERBS_ATTR_CORE_OUT && !wants_answer)
			continue;
		call->culprit = row->id;
		return uv_refuse(call, WHY_CMD_ATTRIBUTES, -ENOSPC);
	}
	return 0;
}

static const uint16_t invoke_buffers[] = {
	UVERBS_ATTR_CORE_IN, UVERBS_ATTR_CORE_OUT, UVERBS_ATTR_UHW_IN, UVERBS_ATTR_UHW_OUT,
};

/* Sizes of the core structures come first: a caller that probes gets ENOSPC and no more. */
static int invoke_take(struct uv_call *outer, struct uv_call *inner)
{
	int ret = 0;

	for (unsigned i = 0; !ret && i < ARRAY_SIZE(invoke_buffers); i++) {
		int row = uv_row_find(outer->method, invoke_buffers[i]);

		if (invoke_buffers[i] == UVERBS_ATTR_UHW_IN)
			ret = uv_command_check(inner, true);
		if (!ret && outer->slot[row].is_given)
			ret = uv_command_take(inner, invoke_buffers[i], &outer->slot[row].given);
	}
	return ret;
}

static int invoke_run(struct uv_call *outer, struct uv_call *inner)
{
	uint64_t command = uv_number(outer, UVERBS_ATTR_WRITE_CMD);
	int ret;

	if (command > UINT32_MAX)
		return uv_refuse(inner, WHY_CMD_ATTRIBUTES, -EINVAL);
	ret = uv_command_set(inner, (uint32_t)command);
	if (!ret)
		ret = invoke_take(outer, inner);
	return ret ? ret : uv_call_run(inner);
}

int on_invoke_write(struct uv_call *call)
{
	struct uv_call inner = {
		.file = call->file, .dev = call->dev, .engine = call->engine, .created_fd = -1,
	};
	int ret = invoke_run(call, &inner);

	uv_call_drop(&inner);
	call->object = inner.object;
	call->number = inner.number;
	call->culprit = inner.culprit;
	call->why = inner.why;
	/* libibverbs asks in this way whether INVOKE_WRITE exists; that is no failure. */
	call->is_probe = ret == -ENOSPC && !uv_has(call, UVERBS_ATTR_CORE_IN) &&
			 !uv_has(call, UVERBS_ATTR_CORE_OUT);
	return ret;
}
