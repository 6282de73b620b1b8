/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: making and destroying.  States are qp_modify.c.
 *
 * Source: device-abi B.9.1, C.1, C.4; inventory 1.17.
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdlib.h>
#include "hw-models/mlx5_wqe.h"
#include "verbs/build.h"
#include "verbs/cmd.h"
#include "verbs/event.h"
#include "verbs/foreign.h"
#include "verbs/ops.h"
#include "verbs/qp.h"
#include "verbs/wqe.h"
#include "verbs/xrcd.h"

#define WQE_BYTES_MAX	(63u * MLX5_UNIT_BYTES)	/* its length has six bits of units */
#define RQ_BYTES_MIN	64u

#define KNOWN_MASK (IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_CREATE_FLAGS | \
		    IBV_QP_INIT_ATTR_MAX_TSO_HEADER | IBV_QP_INIT_ATTR_IND_TABLE | \
		    IBV_QP_INIT_ATTR_RX_HASH | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)

static uint32_t align_up(uint32_t value, uint32_t unit)
{
	return (value + unit - 1) / unit * unit;
}

/* --- sizes --- */

#define OPS_PLAIN	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | \
			 IBV_QP_EX_WITH_SEND_WITH_INV)
#define OPS_REMOTE	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | \
			 IBV_QP_EX_WITH_RDMA_READ)
#define OPS_ATOMIC	(IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
#define OPS_KEY		(IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW)

/* Bytes before the data of the largest request: by what the QP may be asked for. */
static const struct { uint64_t ops; uint32_t bytes; } overheads[] = {
	{ OPS_PLAIN,  sizeof(struct mlx5_ctrl) },
	{ OPS_REMOTE, sizeof(struct mlx5_ctrl) + sizeof(struct mlx5_raddr) },
	{ OPS_ATOMIC, sizeof(struct mlx5_ctrl) + sizeof(struct mlx5_raddr) +
		      sizeof(struct mlx5_atomic) },
	{ OPS_KEY,    sizeof(struct mlx5_ctrl) + VB_UMR_BYTES + VB_KLM_BYTES },
};

static uint32_t prefix_bytes(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_UD:
	case IBV_QPT_DRIVER:
		return sizeof(struct mlx5_datagram);
	case IBV_QPT_XRC_SEND:
		return sizeof(struct mlx5_xrc);
	case IBV_QPT_RAW_PACKET:
		return sizeof(struct mlx5_eth) + 16;
	default:
		return 0;
	}
}

static uint32_t overhead_bytes(enum ibv_qp_type type, uint64_t ops)
{
	uint32_t most = sizeof(struct mlx5_ctrl);

	for (unsigned i = 0; i < sizeof overheads / sizeof *overheads; i++)
		if (ops & overheads[i].ops && overheads[i].bytes > most)
			most = overheads[i].bytes;
	return most + prefix_bytes(type);
}

/* EINVAL: no WQE can be that long, or no ring. */
static int send_size(struct vb_qp *qp, const struct ibv_qp_cap *cap, uint64_t ops)
{
	uint32_t header = align_up(qp->eth.tso_header_max, MLX5_UNIT_BYTES);
	uint32_t overhead = overhead_bytes(qp->type, ops), wqe, with_inline = 0;
	uint32_t limit = qp->context->limits.max_sq_desc_bytes;
	uint64_t ring;

	if (!cap->max_send_wr)
		return 0;
	if (cap->max_send_sge > limit || cap->max_inline_data > limit)
		return EINVAL;
	wqe = overhead + header + cap->max_send_sge * (uint32_t)sizeof(struct mlx5_data);
	if (cap->max_inline_data)
		with_inline = overhead + align_up(MLX5_INLINE_HEADER_BYTES + cap->max_inline_data,
						  MLX5_UNIT_BYTES);
	wqe = wqe > with_inline ? wqe : with_inline;
	if (wqe > limit || wqe > WQE_BYTES_MAX)
		return EINVAL;
	wqe = align_up(wqe, VB_SQ_BLOCK_BYTES);
	ring = UINT64_C(1) << vb_log2_ceil((uint64_t)cap->max_send_wr * wqe);
	if (ring / VB_SQ_BLOCK_BYTES > qp->context->limits.max_send_wqebb)
		return EINVAL;
	qp->sq.entries = (uint32_t)(ring / VB_SQ_BLOCK_BYTES);
	qp->sq.entry_shift = 6;
	qp->sq.max_post = (uint32_t)(ring / wqe);
	qp->sq.max_sge = cap->max_send_sge;
	/* Room whose length could not be told is not used. */
	wqe = wqe < WQE_BYTES_MAX ? wqe : WQE_BYTES_MAX;
	qp->wqe_units_max = wqe / MLX5_UNIT_BYTES;
	qp->max_inline_bytes = wqe > overhead ? wqe - overhead - MLX5_INLINE_HEADER_BYTES : 0;
	return 0;
}

static int receive_size(struct vb_qp *qp, const struct ibv_qp_cap *cap)
{
	uint32_t bytes, entries;

	if (!cap->max_recv_wr)
		return 0;
	if (cap->max_recv_sge > qp->context->limits.max_rq_desc_bytes / MLX5_UNIT_BYTES ||
	    cap->max_recv_wr > qp->context->limits.max_recv_wr)
		return EINVAL;
	qp->rq.entry_shift = vb_log2_ceil((cap->max_recv_sge ? cap->max_recv_sge : 1) *
					  MLX5_UNIT_BYTES);
	bytes = 1u << qp->rq.entry_shift;
	entries = 1u << vb_log2_ceil(cap->max_recv_wr);
	qp->rq.entries = entries * bytes < RQ_BYTES_MIN ? RQ_BYTES_MIN / bytes : entries;
	qp->rq.max_post = qp->rq.entries;
	qp->rq.max_sge = bytes / MLX5_UNIT_BYTES;
	return 0;
}

/* --- the command --- */

static uint32_t uverbs_type(enum ibv_qp_type type)
{
	return type == IBV_QPT_DRIVER ? IB_UVERBS_QPT_DRIVER : (uint32_t)type;
}

static void put_handles(struct cmd *cmd, const struct ibv_qp_init_attr_ex *attr)
{
	if (attr->comp_mask & IBV_QP_INIT_ATTR_XRCD && attr->qp_type == IBV_QPT_XRC_RECV) {
		cmd_object(cmd, UVERBS_ATTR_CREATE_QP_XRCD_HANDLE, vb_xrcd_of(attr->xrcd)->handle);
		return;
	}
	cmd_object(cmd, UVERBS_ATTR_CREATE_QP_PD_HANDLE, attr->pd->handle);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE) {
		cmd_object(cmd, UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE,
			   (uint32_t)attr->rwq_ind_tbl->ind_tbl_handle);
		if (attr->cap.max_send_wr)
			cmd_object(cmd, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE,
				   attr->send_cq->handle);
		return;
	}
	if (attr->send_cq)
		cmd_object(cmd, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, attr->send_cq->handle);
	if (attr->recv_cq && attr->qp_type != IBV_QPT_XRC_SEND)
		cmd_object(cmd, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, attr->recv_cq->handle);
	if (attr->srq && attr->qp_type != IBV_QPT_XRC_SEND)
		cmd_object(cmd, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, attr->srq->handle);
}

int vb_qp_command(struct vb_qp *qp, const struct ibv_qp_init_attr_ex *attr, const void *driver,
		  size_t driver_bytes)
{
	struct ibv_qp *base = vb_qp_base(qp);
	struct cmd cmd = cmd_new(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);
	unsigned at = cmd_object(&cmd, UVERBS_ATTR_CREATE_QP_HANDLE, 0);
	struct ib_uverbs_qp_cap cap = {
		.max_send_wr = attr->cap.max_send_wr, .max_recv_wr = attr->cap.max_recv_wr,
		.max_send_sge = attr->cap.max_send_sge, .max_recv_sge = attr->cap.max_recv_sge,
		.max_inline_data = attr->cap.max_inline_data,
	}, cap_answer = { 0 };
	struct mlx5_ib_create_qp_resp driver_answer = { 0 };
	uint32_t flags = (attr->sq_sig_all ? IB_UVERBS_QP_CREATE_SQ_SIG_ALL : 0u) |
			 (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? attr->create_flags
									  : 0u);
	uint32_t qpn = 0;
	int error;

	put_handles(&cmd, attr);
	cmd_in_u64(&cmd, UVERBS_ATTR_CREATE_QP_USER_HANDLE, (uintptr_t)base);
	cmd_in(&cmd, UVERBS_ATTR_CREATE_QP_CAP, &cap, sizeof cap);
	cmd_in_u64(&cmd, UVERBS_ATTR_CREATE_QP_TYPE, uverbs_type(attr->qp_type));
	if (flags)
		cmd_in_u32(&cmd, UVERBS_ATTR_CREATE_QP_FLAGS, flags);
	cmd_fd(&cmd, UVERBS_ATTR_CREATE_QP_EVENT_FD, base->context->async_fd);
	cmd_out(&cmd, UVERBS_ATTR_CREATE_QP_RESP_CAP, &cap_answer, sizeof cap_answer);
	cmd_out(&cmd, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &qpn, sizeof qpn);
	cmd_driver(&cmd, driver, driver_bytes, &driver_answer, sizeof driver_answer);
	error = cmd_send(&cmd, base->context);
	if (error)
		return error;
	base->handle = cmd_handle(&cmd, at);
	base->qp_num = qpn;
	return 0;
}

/* --- making --- */

static bool has_receives(const struct vb_qp *qp, const struct ibv_qp_init_attr_ex *attr)
{
	return !attr->srq && qp->type != IBV_QPT_XRC_SEND && qp->type != IBV_QPT_XRC_RECV &&
	       qp->dc == VB_DC_NONE;
}

static bool has_sends(const struct vb_qp *qp)
{
	return qp->type != IBV_QPT_XRC_RECV && qp->dc != VB_DC_TARGET;
}

static int rings_alloc(struct vb_qp *qp)
{
	size_t rq_bytes = (size_t)qp->rq.entries << qp->rq.entry_shift;
	size_t sq_bytes = (size_t)qp->sq.entries << qp->sq.entry_shift;
	bool is_apart = qp->type == IBV_QPT_RAW_PACKET;
	size_t bytes = rq_bytes + (is_apart ? 0 : sq_bytes);
	int error = vb_ring_alloc(&qp->sq, true);

	if (!error)
		error = vb_ring_alloc(&qp->rq, false);
	if (!error && bytes)
		error = vb_buf_alloc(&qp->buf, qp->context, &qp->pd->pd, bytes, VB_RESOURCE_QP);
	if (!error && is_apart && sq_bytes)
		error = vb_buf_alloc(&qp->sq_buf, qp->context, &qp->pd->pd, sq_bytes,
				     VB_RESOURCE_QP);
	if (error)
		return error;
	qp->rq.at = qp->buf.at;
	qp->sq.at = is_apart ? qp->sq_buf.at : (uint8_t *)qp->buf.at + rq_bytes;
	qp->record = vb_record_alloc(qp->context);
	return qp->record ? 0 : ENOMEM;
}

static int sizes(struct vb_qp *qp, const struct ibv_qp_init_attr_ex *attr)
{
	uint64_t ops = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS ? attr->send_ops_flags :
		       vb_build_ops_of(qp->type);
	int error = 0;

	if (attr->comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER)
		qp->eth.tso_header_max = attr->max_tso_header;
	if (has_sends(qp))
		error = send_size(qp, &attr->cap, ops);
	if (!error && has_receives(qp, attr))
		error = receive_size(qp, &attr->cap);
	return error;
}

/* One place of the request has another meaning for targets, which have no rings. */
static void extra_fill(const struct vb_qp *qp, const struct vb_qp_extra *extra,
		       struct mlx5_ib_create_qp *driver)
{
	driver->flags |= extra->flags;
	driver->dci_streams.log_num_concurent = extra->streams_log;
	driver->dci_streams.log_num_errored = extra->failed_streams_log;
	if (qp->dc == VB_DC_TARGET)
		driver->access_key = extra->access_key;
}

static int qp_ask(struct vb_qp *qp, const struct ibv_qp_init_attr_ex *attr,
		  const struct vb_qp_extra *extra)
{
	struct mlx5_ib_create_qp driver = {
		.buf_addr = (uintptr_t)qp->buf.at, .db_addr = (uintptr_t)qp->record,
		.sq_wqe_count = qp->sq.entries, .rq_wqe_count = qp->rq.entries,
		.rq_wqe_shift = qp->rq.entries ? qp->rq.entry_shift : 0,
		.flags = qp->reg ? MLX5_QP_FLAG_UAR_PAGE_INDEX : 0,
		.uidx = qp->queue.user_index,
		.bfreg_index = qp->reg ? qp->reg->page_id : 0,
		.sq_buf_addr = (uintptr_t)qp->sq_buf.at,
	};

	if (extra)
		extra_fill(qp, extra, &driver);
	return vb_qp_command(qp, attr, &driver, sizeof driver);
}

static int register_take(struct vb_qp *qp)
{
	qp->reg = vb_register_for(qp->context, qp->pd ? vb_td_of(&qp->pd->pd) : NULL);
	return qp->reg ? 0 : ENOMEM;
}

static int qp_begin(struct vb_qp *qp, const struct ibv_qp_init_attr_ex *attr,
		    const struct vb_qp_extra *extra)
{
	int error = sizes(qp, attr);

	if (!error && qp->dc != VB_DC_TARGET)
		error = rings_alloc(qp);
	if (!error && attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		error = vb_build_begin(qp, attr->send_ops_flags, extra ? extra->dv_ops : 0);
	if (!error)
		error = vb_queue_add(qp->context, &qp->queue);
	if (error)
		return error;
	qp->is_listed = true;
	/* A target QP of XRC never rings, but the device wants to know where. */
	if (qp->dc != VB_DC_TARGET)
		error = register_take(qp);
	return error ? error : qp_ask(qp, attr, extra);
}

static void qp_free(struct vb_qp *qp)
{
	if (qp->is_listed)
		vb_queue_remove(qp->context, &qp->queue);
	vb_record_free(qp->context, qp->record);
	vb_buf_free(&qp->buf);
	vb_buf_free(&qp->sq_buf);
	vb_ring_free(&qp->sq);
	vb_ring_free(&qp->rq);
	vb_build_end(qp);
	vb_parent_release(qp->pd ? &qp->pd->pd : NULL);
	vb_event_state_end(&vb_qp_base(qp)->mutex, &vb_qp_base(qp)->cond);
	free(qp);
}

static void locks_begin(struct vb_qp *qp)
{
	struct vb_td *td = qp->pd ? vb_td_of(&qp->pd->pd) : NULL;

	qp->sq.lock.is_unneeded = qp->rq.lock.is_unneeded = td && !td->is_shared;
}

static struct vb_qp *qp_new(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr,
			    const struct vb_qp_extra *extra)
{
	struct vb_qp *qp = calloc(1, sizeof *qp);
	struct ibv_qp *base;

	if (!qp)
		return NULL;
	base = vb_qp_base(qp);
	base->context = context;
	base->qp_context = attr->qp_context;
	base->pd = attr->pd;
	base->send_cq = attr->send_cq;
	base->recv_cq = attr->recv_cq;
	base->srq = attr->srq;
	base->qp_type = attr->qp_type;
	base->state = IBV_QPS_RESET;
	qp->queue.kind = VB_QP;
	qp->context = vb_context_of(context);
	qp->type = attr->qp_type;
	qp->dc = extra ? extra->dc : VB_DC_NONE;
	qp->pd = attr->pd ? vb_pd_of(attr->pd) : NULL;
	vb_parent_hold(attr->pd);
	qp->srq = attr->srq ? vb_srq_of(attr->srq) : NULL;
	qp->signals_all = attr->sq_sig_all;
	vb_event_state_begin(&base->mutex, &base->cond);
	locks_begin(qp);
	vb_send_begin(qp);
	return qp;
}

#define CREATE_FLAGS (IBV_QP_CREATE_BLOCK_SELF_MCAST_LB | IBV_QP_CREATE_SCATTER_FCS | \
		      IBV_QP_CREATE_CVLAN_STRIPPING | IBV_QP_CREATE_SOURCE_QPN | \
		      IBV_QP_CREATE_PCI_WRITE_END_PADDING)

/* A queue under IPoIB's number writes another kind of WQE, which no Ethernet device takes. */
static int create_flags_check(const struct ibv_qp_init_attr_ex *attr)
{
	uint32_t flags = attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? attr->create_flags : 0;

	if (flags & ~(uint32_t)CREATE_FLAGS)
		return EINVAL;
	if (!(flags & IBV_QP_CREATE_SOURCE_QPN))
		return 0;
	return attr->qp_type == IBV_QPT_UD ? EOPNOTSUPP : EINVAL;
}

/* What is known to be wrong before the device is asked. */
static int attr_check(const struct ibv_qp_init_attr_ex *attr)
{
	bool has_pd = attr->comp_mask & IBV_QP_INIT_ATTR_PD && attr->pd;
	bool has_domain = attr->comp_mask & IBV_QP_INIT_ATTR_XRCD && attr->xrcd;

	if (attr->comp_mask & ~KNOWN_MASK)
		return EINVAL;
	if (attr->qp_type == IBV_QPT_XRC_RECV ? !has_domain : !has_pd)
		return EINVAL;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER &&
	    attr->qp_type != IBV_QPT_RAW_PACKET)
		return EINVAL;
	return create_flags_check(attr);
}

static void caps_tell(const struct vb_qp *qp, struct ibv_qp_cap *cap)
{
	cap->max_send_wr = qp->sq.max_post;
	cap->max_send_sge = qp->sq.max_sge;
	cap->max_inline_data = qp->max_inline_bytes;
	cap->max_recv_wr = qp->rq.max_post;
	cap->max_recv_sge = qp->rq.max_sge;
}

struct ibv_qp *vb_qp_create(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
			    const struct vb_qp_extra *extra)
{
	struct vb_qp *qp = NULL;
	int error = attr_check(attr);

	if (!error && attr->comp_mask & (IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH))
		return vb_create_hash_qp(context, attr, extra ? extra->flags : 0);
	if (!error) {
		qp = qp_new(context, attr, extra);
		error = qp ? qp_begin(qp, attr, extra) : ENOMEM;
	}
	if (error) {
		if (qp)
			qp_free(qp);
		errno = error;
		return NULL;
	}
	caps_tell(qp, &attr->cap);
	return vb_qp_base(qp);
}

struct ibv_qp *vb_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	return vb_qp_create(context, attr, NULL);
}

VB_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex extended = {
		.qp_context = attr->qp_context, .send_cq = attr->send_cq, .recv_cq = attr->recv_cq,
		.srq = attr->srq, .cap = attr->cap, .qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = pd,
	};
	struct ibv_qp *qp;

	if (!vb_is_ours(pd->context))
		return FOREIGN(ibv_create_qp, pd, attr);
	qp = vb_create_qp_ex(pd->context, &extended);
	if (qp)
		attr->cap = extended.cap;
	return qp;
}

VB_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	if (!vb_is_ours(qp->context))
		return FOREIGN(ibv_qp_to_qp_ex, qp);
	return vb_qp_of(qp)->build ? &vb_qp_of(qp)->ex : NULL;
}

/* A target QP of an XRC domain that somebody else made. */
struct ibv_qp *vb_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	enum { NEEDED = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE };
	struct ibv_qp_init_attr_ex init = { .qp_type = attr->qp_type };
	struct ib_uverbs_open_qp request = { .qpn = attr->qp_num,
					     .qp_type = (uint8_t)attr->qp_type };
	struct ib_uverbs_create_qp_resp answer = { 0 };
	struct cmd_write w = {
		.command = IB_USER_VERBS_CMD_OPEN_QP, .in = &request, .in_bytes = sizeof request,
		.out = &answer, .out_bytes = sizeof answer,
	};
	struct vb_qp *qp = NULL;
	int error = attr->comp_mask >= IBV_QP_OPEN_ATTR_RESERVED ||
		    (attr->comp_mask & NEEDED) != NEEDED ? EINVAL : 0;

	if (!error) {
		if (attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT)
			init.qp_context = attr->qp_context;
		qp = qp_new(context, &init, NULL);
		error = qp ? 0 : ENOMEM;
	}
	if (!error) {
		request.user_handle = (uintptr_t)vb_qp_base(qp);
		request.pd_handle = vb_xrcd_of(attr->xrcd)->handle;
		error = cmd_write(&w, context);
	}
	if (error) {
		if (qp)
			qp_free(qp);
		errno = error;
		return NULL;
	}
	vb_qp_base(qp)->handle = answer.qp_handle;
	vb_qp_base(qp)->qp_num = answer.qpn;
	return vb_qp_base(qp);
}

/* --- destroying --- */

void vb_qp_clean(struct vb_qp *qp)
{
	struct ibv_qp *base = vb_qp_base(qp);
	struct vb_cq *send = base->send_cq ? vb_cq_of(base->send_cq) : NULL;
	struct vb_cq *recv = base->recv_cq ? vb_cq_of(base->recv_cq) : NULL;

	if (!qp->is_listed)
		return;
	vb_cq_lock_two(send, recv);
	if (recv)
		vb_cq_clean(recv, &qp->queue, qp->srq);
	if (send && send != recv)
		vb_cq_clean(send, &qp->queue, NULL);
	vb_cq_unlock_two(send, recv);
}

VB_EXPORT int ibv_destroy_qp(struct ibv_qp *base)
{
	struct vb_qp *qp = vb_qp_of(base);
	struct ib_uverbs_destroy_qp_resp answer = { 0 };
	struct cmd cmd = cmd_new(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY);
	int error;

	if (!vb_is_ours(base->context))
		return FOREIGN(ibv_destroy_qp, base);
	cmd_object(&cmd, UVERBS_ATTR_DESTROY_QP_HANDLE, base->handle);
	cmd_out(&cmd, UVERBS_ATTR_DESTROY_QP_RESP, &answer, sizeof answer);
	error = cmd_send(&cmd, base->context);
	if (error)
		return error;
	vb_events_await(&base->mutex, &base->cond, &base->events_completed,
			answer.events_reported);
	vb_qp_clean(qp);
	qp_free(qp);
	return 0;
}
