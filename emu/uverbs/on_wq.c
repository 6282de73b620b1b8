/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive work queues and indirection tables.  Only an Ethernet port has them.
 *
 * Source: device-abi B.9, B.9.4, H.3.
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdlib.h>
#include "emu/engine/engine.h"
#include "emu/uverbs/file.h"
#include "emu/uverbs/handlers.h"

enum { WQ_MODIFY_STATE = 1, WQ_MODIFY_CURRENT = 2, WQ_MODIFY_FLAGS = 4, WQ_MODIFY_KNOWN = 7 };

#define SHIFT_MAX		31u
#define STRIDING_WQE_SHIFT_MIN	5u

static int port_check(struct uv_call *call)
{
	if (call->dev->profile->link == HW_LINK_ETHERNET)
		return 0;
	return uv_refuse(call, WHY_CMD_UNSUPPORTED, -EOPNOTSUPP);
}

/* --- queues --- */

static bool is_striding(const struct mlx5_ib_create_wq *ask)
{
	return ask->comp_mask & MLX5_IB_CREATE_WQ_STRIDING_RQ;
}

/* A WQE needs room for its header and one piece. */
static bool strides_fit(const struct mlx5_ib_create_wq *ask)
{
	return ask->single_stride_log_num_of_bytes >= WQ_STRIDE_LOG_MIN &&
	       ask->single_stride_log_num_of_bytes <= WQ_STRIDE_LOG_MAX &&
	       ask->single_wqe_log_num_of_strides >= WQ_STRIDES_LOG_MIN &&
	       ask->single_wqe_log_num_of_strides <= WQ_STRIDES_LOG_MAX &&
	       ask->rq_wqe_shift >= STRIDING_WQE_SHIFT_MIN;
}

/* Checksums in WQEs are not offered. */
static int mlx5_check(struct uv_call *call, const struct mlx5_ib_create_wq *ask)
{
	if (ask->comp_mask & ~(uint32_t)MLX5_IB_CREATE_WQ_STRIDING_RQ)
		return uv_refuse(call, WHY_CMD_UNSUPPORTED, -EOPNOTSUPP);
	if (ask->flags || ask->rq_wqe_shift > SHIFT_MAX)
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	if (is_striding(ask) && !strides_fit(ask))
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	return 0;
}

static struct striding striding_of(const struct mlx5_ib_create_wq *ask)
{
	if (!is_striding(ask))
		return (struct striding){ 0 };
	return (struct striding){
		.stride_log = (uint8_t)ask->single_stride_log_num_of_bytes,
		.strides_log = (uint8_t)ask->single_wqe_log_num_of_strides,
		.shifts_2 = ask->two_byte_shift_en,
	};
}

/* Delayed drops and padding are not offered. */
#define FLAGS_HERE	((uint64_t)(IB_UVERBS_WQ_FLAGS_CVLAN_STRIPPING | \
				    IB_UVERBS_WQ_FLAGS_SCATTER_FCS))

static int kind_check(struct uv_call *call, uint64_t type, uint64_t flags)
{
	if (type != IB_UVERBS_WQT_RQ)
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	if (flags & ~FLAGS_HERE)
		return uv_refuse(call, WHY_CMD_UNSUPPORTED, -EOPNOTSUPP);
	return port_check(call);
}

static struct frame_options frames_of(const struct uv_file *file, uint64_t flags)
{
	return (struct frame_options){
		.strips_vlan = flags & IB_UVERBS_WQ_FLAGS_CVLAN_STRIPPING,
		.scatters_fcs = flags & IB_UVERBS_WQ_FLAGS_SCATTER_FCS,
		.has_flow_tags = file->cqe_version,
	};
}

/* Both ways to ask end here; the rest of @init is filled by the caller. */
static int create(struct uv_call *call, struct wq_init *init, struct emu_wq **out)
{
	const struct mlx5_ib_create_wq *ask = uv_in(call, UVERBS_ATTR_UHW_IN);
	struct mlx5_ib_create_wq_resp reply = { .response_length = sizeof reply };
	int ret = init->cq ? mlx5_check(call, ask) :
			     uv_refuse(call, WHY_CMD_ATTRIBUTES, -EINVAL);

	if (ret)
		return ret;
	init->buf_addr = ask->buf_addr;
	init->db_addr = ask->db_addr;
	init->wqe_count = ask->rq_wqe_count;
	init->stride = 1u << ask->rq_wqe_shift;
	init->user_index = ask->user_index;
	init->striding = striding_of(ask);
	if (!init->async)
		init->async = call->file->async;
	ret = wq_create(call->dev, init, out);
	if (ret)
		return ret;
	call->created = &(*out)->obj;
	uv_put(call, UVERBS_ATTR_UHW_OUT, &reply, sizeof reply);
	return 0;
}

int on_create_wq(struct uv_call *call)
{
	struct wq_init init = {
		.user_handle = uv_number(call, UVERBS_ATTR_CREATE_WQ_USER_HANDLE),
		.pd = uv_pd(call, UVERBS_ATTR_CREATE_WQ_PD_HANDLE),
		.cq = uv_cq(call, UVERBS_ATTR_CREATE_WQ_CQ_HANDLE),
		.async = uv_channel(call, UVERBS_ATTR_CREATE_WQ_EVENT_FD),
		.max_wr = (uint32_t)uv_number(call, UVERBS_ATTR_CREATE_WQ_MAX_WR),
		.frames = frames_of(call->file, uv_number(call, UVERBS_ATTR_CREATE_WQ_FLAGS)),
	};
	uint64_t max_sge = uv_number(call, UVERBS_ATTR_CREATE_WQ_MAX_SGE);
	struct emu_wq *wq;
	int ret = kind_check(call, uv_number(call, UVERBS_ATTR_CREATE_WQ_TYPE),
			     uv_number(call, UVERBS_ATTR_CREATE_WQ_FLAGS));

	if (!ret)
		ret = create(call, &init, &wq);
	if (ret)
		return ret;
	uv_put_number(call, UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR, uint32_t, init.max_wr);
	uv_put_number(call, UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE, uint32_t, (uint32_t)max_sge);
	uv_put_number(call, UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM, uint32_t, wq->qp->qpn);
	return 0;
}

int on_create_wq_ex(struct uv_call *call)
{
	const struct ib_uverbs_ex_create_wq *ask = uv_in(call, UVERBS_ATTR_CORE_IN);
	struct ib_uverbs_ex_create_wq_resp reply = {
		.response_length = sizeof reply, .max_wr = ask->max_wr, .max_sge = ask->max_sge,
	};
	struct wq_init init = {
		.user_handle = ask->user_handle, .pd = uv_pd(call, UV_PD),
		.cq = uv_cq(call, UV_CQ), .max_wr = ask->max_wr,
		.frames = frames_of(call->file, ask->create_flags),
	};
	struct emu_wq *wq;
	int ret = ask->comp_mask ? uv_refuse(call, WHY_CMD_UNSUPPORTED, -EOPNOTSUPP) :
				   kind_check(call, ask->wq_type, ask->create_flags);

	if (!ret)
		ret = create(call, &init, &wq);
	if (ret)
		return ret;
	reply.wqn = wq->qp->qpn;
	uv_put(call, UVERBS_ATTR_CORE_OUT, &reply, sizeof reply);
	return 0;
}

static int modify_check(struct uv_call *call, const struct ib_uverbs_ex_modify_wq *ask)
{
	const struct mlx5_ib_modify_wq *mlx5 = uv_in(call, UVERBS_ATTR_UHW_IN);

	if (!ask->attr_mask || ask->attr_mask > WQ_MODIFY_KNOWN)
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	if (mlx5->comp_mask || mlx5->reserved)
		return uv_refuse(call, WHY_CMD_UNSUPPORTED, -EOPNOTSUPP);
	if (ask->attr_mask & WQ_MODIFY_FLAGS &&
	    ask->flags_mask & ~(uint32_t)IB_UVERBS_WQ_FLAGS_CVLAN_STRIPPING)
		return uv_refuse(call, WHY_CMD_UNSUPPORTED, -EOPNOTSUPP);
	return 0;
}

/* Flags that the mask does not name stay. */
static void flags_modify(struct emu_wq *wq, const struct ib_uverbs_ex_modify_wq *ask)
{
	if (ask->attr_mask & WQ_MODIFY_FLAGS &&
	    ask->flags_mask & IB_UVERBS_WQ_FLAGS_CVLAN_STRIPPING)
		wq->qp->frames.strips_vlan = ask->flags & IB_UVERBS_WQ_FLAGS_CVLAN_STRIPPING;
}

/* What is not said is as it is. */
int on_modify_wq(struct uv_call *call)
{
	const struct ib_uverbs_ex_modify_wq *ask = uv_in(call, UVERBS_ATTR_CORE_IN);
	struct emu_wq *wq = uv_wq(call, UV_WQ);
	uint32_t from = ask->attr_mask & WQ_MODIFY_CURRENT ? ask->curr_wq_state : wq_state(wq);
	uint32_t to = ask->attr_mask & WQ_MODIFY_STATE ? ask->wq_state : from;
	int ret = modify_check(call, ask);

	if (!ret)
		ret = wq_modify(call->dev, wq, from, to);
	if (ret)
		return ret;
	flags_modify(wq, ask);
	engine_qp_kick(call->engine, wq->qp);
	return 0;
}

static int destroy(struct uv_call *call, struct emu_wq *wq, uint32_t *events_out)
{
	if (!wq->obj.users)
		engine_qp_forget(call->engine, wq->qp);
	return wq_destroy(call->dev, wq, events_out);
}

int on_destroy_wq(struct uv_call *call)
{
	uint32_t events;
	int ret = destroy(call, uv_wq(call, UVERBS_ATTR_DESTROY_WQ_HANDLE), &events);

	if (!ret)
		uv_put_number(call, UVERBS_ATTR_DESTROY_WQ_RESP, uint32_t, events);
	return ret;
}

int on_destroy_wq_ex(struct uv_call *call)
{
	const struct ib_uverbs_ex_destroy_wq *ask = uv_in(call, UVERBS_ATTR_CORE_IN);
	struct ib_uverbs_ex_destroy_wq_resp reply = { .response_length = sizeof reply };
	int ret;

	if (ask->comp_mask)
		return uv_refuse(call, WHY_CMD_UNSUPPORTED, -EOPNOTSUPP);
	ret = destroy(call, uv_wq(call, UV_WQ), &reply.events_reported);
	if (!ret)
		uv_put(call, UVERBS_ATTR_CORE_OUT, &reply, sizeof reply);
	return ret;
}

/* --- tables --- */

static int table_fill(struct uv_call *call, const uint32_t *handle, uint32_t count,
		      struct emu_wq **out)
{
	for (uint32_t i = 0; i < count; i++) {
		struct emu_obj *obj;
		int ret = file_handle_find(call->file, handle[i], OBJ_WQ, &obj);

		if (ret)
			return uv_refuse(call, WHY_CMD_HANDLE, ret);
		out[i] = (struct emu_wq *)obj;
	}
	return 0;
}

static int table_create(struct uv_call *call, uint32_t log, struct emu_rwq_table **out)
{
	uint32_t handle[1 << RWQ_TABLE_LOG_MAX], count = 1u << log;
	struct emu_wq *wq[1 << RWQ_TABLE_LOG_MAX];
	int ret = uv_list(call, UVERBS_ATTR_CORE_IN, handle, count * sizeof *handle);

	if (!ret)
		ret = table_fill(call, handle, count, wq);
	return ret ? ret : rwq_table_create(call->dev, wq, count, out);
}

int on_create_rwq_table(struct uv_call *call)
{
	const struct ib_uverbs_ex_create_rwq_ind_table *ask = uv_in(call, UVERBS_ATTR_CORE_IN);
	struct ib_uverbs_ex_create_rwq_ind_table_resp reply = { .response_length = sizeof reply };
	struct mlx5_ib_create_rwq_ind_tbl_resp mlx5_reply = {
		.response_length = sizeof mlx5_reply,
	};
	struct emu_rwq_table *table;
	int ret = port_check(call);

	if (ret)
		return ret;
	if (ask->comp_mask)
		return uv_refuse(call, WHY_CMD_UNSUPPORTED, -EOPNOTSUPP);
	if (ask->log_ind_tbl_size > RWQ_TABLE_LOG_MAX)
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	ret = table_create(call, ask->log_ind_tbl_size, &table);
	if (ret)
		return ret;
	call->created = &table->obj;
	reply.ind_tbl_num = table->number;
	uv_put(call, UVERBS_ATTR_CORE_OUT, &reply, sizeof reply);
	uv_put(call, UVERBS_ATTR_UHW_OUT, &mlx5_reply, sizeof mlx5_reply);
	return 0;
}

int on_destroy_rwq_table(struct uv_call *call)
{
	return rwq_table_destroy(call->dev,
				 uv_rwq_table(call, UVERBS_ATTR_DESTROY_RWQ_IND_TBL_HANDLE));
}

int on_destroy_rwq_table_ex(struct uv_call *call)
{
	const struct ib_uverbs_ex_destroy_rwq_ind_table *ask = uv_in(call, UVERBS_ATTR_CORE_IN);

	if (ask->comp_mask)
		return uv_refuse(call, WHY_CMD_UNSUPPORTED, -EOPNOTSUPP);
	return rwq_table_destroy(call->dev, uv_rwq_table(call, UV_RWQ_TABLE));
}
