/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading completion queues, the plain way and the extended one.
 *
 * take() finds the next entry and what it completes; the rest reads fields out of the entry where
 * they are.  The plain poll is written with the readers of the extended one, so each rule is here
 * once.
 *
 * Source: device-abi C.6 to C.10.
 */
#include <errno.h>
#include <string.h>
#include "hw-models/mlx5_cqe.h"
#include "hw-models/mlx5_opcode.h"
#include "verbs/clock.h"
#include "verbs/ops.h"
#include "verbs/poll.h"
#include "verbs/scatter.h"
#include "verbs/wq.h"

/* What wc.status is for a syndrome; anything else is a general error. */
static const uint8_t status_of_syndrome[64] = {
#define STATUS(syndrome, name) [syndrome] = IBV_WC_##name
	STATUS(0x01, LOC_LEN_ERR), STATUS(0x02, LOC_QP_OP_ERR), STATUS(0x04, LOC_PROT_ERR),
	STATUS(0x05, WR_FLUSH_ERR), STATUS(0x06, MW_BIND_ERR), STATUS(0x10, BAD_RESP_ERR),
	STATUS(0x11, LOC_ACCESS_ERR), STATUS(0x12, REM_INV_REQ_ERR), STATUS(0x13, REM_ACCESS_ERR),
	STATUS(0x14, REM_OP_ERR), STATUS(0x15, RETRY_EXC_ERR), STATUS(0x16, RNR_RETRY_EXC_ERR),
	STATUS(0x22, REM_ABORT_ERR),
#undef STATUS
};

/* By opcode of the send WQE, unless something else is remembered with the request. */
static const uint8_t opcode_of_send[256] = {
	[MLX5_OPCODE_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
	[MLX5_OPCODE_RDMA_WRITE_IMM] = IBV_WC_RDMA_WRITE,
	[MLX5_OPCODE_SEND] = IBV_WC_SEND,
	[MLX5_OPCODE_SEND_IMM] = IBV_WC_SEND,
	[MLX5_OPCODE_SEND_INVAL] = IBV_WC_SEND,
	[MLX5_OPCODE_RDMA_READ] = IBV_WC_RDMA_READ,
	[MLX5_OPCODE_ATOMIC_CS] = IBV_WC_COMP_SWAP,
	[MLX5_OPCODE_ATOMIC_FA] = IBV_WC_FETCH_ADD,
	[MLX5_OPCODE_ATOMIC_MASKED_CS] = IBV_WC_COMP_SWAP,
	[MLX5_OPCODE_ATOMIC_MASKED_FA] = IBV_WC_FETCH_ADD,
	[MLX5_OPCODE_TSO] = IBV_WC_TSO,
};


static const struct mlx5_cqe *now(const struct vb_cq *cq)
{
	return (const struct mlx5_cqe *)(const void *)cq->current;
}

static bool is_send(uint32_t kind)
{
	return kind == HW_CQE_REQ || kind == HW_CQE_REQ_ERR;
}

/* --- what the entry completes --- */

static uint64_t take_send(struct vb_cq *cq, struct vb_qp *qp)
{
	uint32_t at = mlx5_cqe_wqe_counter(now(cq)) & (qp->sq.entries - 1);

	cq->current_at = at;
	vb_order_behind_device(&qp->sq);
	/* One completion answers for all requests before it. */
	atomic_store_explicit(&qp->sq.tail, qp->sq.head_at[at] + 1, memory_order_release);
	return qp->sq.wr_id[at];
}

static uint64_t take_ring(struct vb_cq *cq, struct vb_ring *r)
{
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	cq->current_at = tail & (r->entries - 1);
	vb_order_behind_device(r);
	atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
	return r->wr_id[cq->current_at];
}

/* Several packets may be in one receive, which is done when its last stride is. */
static uint64_t take_strides(struct vb_cq *cq, struct vb_wq *wq)
{
	enum { USED_BIT = 16, USED_MASK = 0x7fff };
	uint32_t at = mlx5_cqe_wqe_id(now(cq)) & (wq->ring.entries - 1);

	if (cq->cq.status != IBV_WC_SUCCESS) {
		wq->strides_used = 0;
		return take_ring(cq, &wq->ring);
	}
	wq->strides_used += mlx5_cqe_byte_count(now(cq)) >> USED_BIT & USED_MASK;
	if (wq->strides_used >= wq->strides) {
		wq->strides_used = 0;
		take_ring(cq, &wq->ring);
	}
	cq->current_at = at;
	return wq->ring.wr_id[at];
}

static uint64_t take_work(struct vb_cq *cq, struct vb_wq *wq)
{
	return wq->strides ? take_strides(cq, wq) : take_ring(cq, &wq->ring);
}

static uint64_t take_shared(struct vb_cq *cq, struct vb_srq *srq)
{
	cq->current_at = mlx5_cqe_wqe_counter(now(cq)) & (srq->ring.entries - 1);
	vb_order_behind_device(&srq->ring);
	return srq->ring.wr_id[cq->current_at];
}

/* The entry's fields were copied by nobody yet; the memory of a receive is free when this returns,
 * so data that came within the entry is put there first. */
static uint64_t take_receive(struct vb_cq *cq, struct vb_queue *queue)
{
	struct vb_srq *srq = NULL;
	struct vb_ring *ring;
	uint64_t wr_id;

	if (queue->kind == VB_WQ)
		return take_work(cq, VB_CONTAINER(queue, struct vb_wq, queue));
	if (queue->kind == VB_QP) {
		srq = VB_CONTAINER(queue, struct vb_qp, queue)->srq;
		ring = &VB_CONTAINER(queue, struct vb_qp, queue)->rq;
	} else {
		srq = vb_srq_of_queue(queue);
		ring = &srq->ring;
	}
	wr_id = srq ? take_shared(cq, srq) : take_ring(cq, ring);
	if (mlx5_cqe_format(now(cq)) != MLX5_CQE_NO_DATA && cq->cq.status == IBV_WC_SUCCESS)
		vb_scatter_receive(cq, srq ? &srq->ring : ring, cq->current_at, srq);
	if (srq)
		vb_srq_give_back(srq, cq->current_at);
	return wr_id;
}

static enum ibv_wc_status status_now(const struct vb_cq *cq)
{
	const struct mlx5_cqe_error *e = (const void *)cq->current;
	uint32_t syndrome = mlx5_cqe_error_syndrome(e);
	uint8_t status = syndrome < sizeof status_of_syndrome ? status_of_syndrome[syndrome] : 0;

	return status ? status : IBV_WC_GENERAL_ERR;
}

static struct vb_queue *queue_now(struct vb_cq *cq)
{
	uint32_t user_index = mlx5_cqe_user_index(now(cq));

	if (!cq->last_queue || cq->last_queue->user_index != user_index)
		cq->last_queue = vb_queue_find(cq->context, user_index);
	return cq->last_queue;
}

/* The next completion becomes the current one.  ENOENT: there is none.  An entry whose queue is
 * gone is passed over. */
static inline int take(struct vb_cq *cq)
{
	struct vb_queue *queue;
	uint32_t kind;

	do {
		if (!vb_cqe_is_new(cq, cq->consumed))
			return ENOENT;
		cq->current = cq->at + (size_t)((cq->consumed & (cq->entries - 1)) + 1) *
				       cq->entry_bytes - MLX5_CQE_BYTES;
		vb_cq_consume(cq, 1);
		queue = queue_now(cq);
		if (__builtin_expect(!queue, 0))
			vb_cq_publish(cq);
	} while (__builtin_expect(!queue, 0));
	kind = mlx5_cqe_kind(now(cq));
	cq->current_queue = queue;
	cq->cq.status = __builtin_expect(kind >= HW_CQE_REQ_ERR, 0) ? status_now(cq) :
			IBV_WC_SUCCESS;
	if (is_send(kind)) {
		cq->cq.wr_id = take_send(cq, VB_CONTAINER(queue, struct vb_qp, queue));
		if (__builtin_expect(mlx5_cqe_format(now(cq)) != MLX5_CQE_NO_DATA &&
				     kind == HW_CQE_REQ, 0))
			vb_scatter_send(cq, VB_CONTAINER(queue, struct vb_qp, queue),
					cq->current_at);
	} else {
		cq->cq.wr_id = take_receive(cq, queue);
	}
	return 0;
}

/* --- fields --- */

static inline enum ibv_wc_opcode opcode_now(const struct vb_cq *cq)
{
	uint8_t meaning;

	switch (mlx5_cqe_kind(now(cq))) {
	case HW_CQE_RECV_WRITE_IMM:
		return IBV_WC_RECV_RDMA_WITH_IMM;
	case HW_CQE_REQ:
		meaning = VB_CONTAINER(cq->current_queue, struct vb_qp, queue)->
			sq.meaning[cq->current_at];
		return meaning ? meaning : opcode_of_send[mlx5_cqe_wqe_opcode(now(cq))];
	default:
		return IBV_WC_RECV;
	}
}

/* Requests that brought no data have a length all the same, which is whatever the entry says. */
static inline uint32_t byte_len_now(const struct vb_cq *cq)
{
	if (mlx5_cqe_kind(now(cq)) == HW_CQE_REQ)
		switch (mlx5_cqe_wqe_opcode(now(cq))) {
		case MLX5_OPCODE_ATOMIC_CS:
		case MLX5_OPCODE_ATOMIC_FA:
			return 8;
		default:
			break;
		}
	return mlx5_cqe_byte_count(now(cq));
}

static bool has_checksums(const struct vb_queue *queue)
{
	switch (queue->kind) {
	case VB_QP:
		return VB_CONTAINER(queue, struct vb_qp, queue)->eth.has_checksums;
	case VB_WQ:
		return VB_CONTAINER(queue, struct vb_wq, queue)->has_checksums;
	case VB_SRQ:
		break;
	}
	return false;
}

/* Of frames only, and of those that are IPv4. */
static bool checksums_are_good(const struct vb_cq *cq)
{
	enum { L3_OK = 2, L4_OK = 4, L3_IS_IPV4 = 2 };
	uint32_t ok = mlx5_cqe_checks_ok(now(cq));

	return ok & L3_OK && ok & L4_OK && mlx5_cqe_l3_type(now(cq)) == L3_IS_IPV4 &&
	       has_checksums(cq->current_queue);
}

static inline unsigned wc_flags_now(const struct vb_cq *cq)
{
	const struct mlx5_cqe *e = now(cq);
	unsigned flags = 0;

	switch (mlx5_cqe_kind(e)) {
	case HW_CQE_RECV_WRITE_IMM:
	case HW_CQE_RECV_IMM:
		flags = IBV_WC_WITH_IMM;
		break;
	case HW_CQE_RECV_INV:
		flags = IBV_WC_WITH_INV;
		break;
	case HW_CQE_RECV:
		break;
	default:
		return 0;
	}
	if (mlx5_cqe_grh(e))
		flags |= IBV_WC_GRH;
	if (checksums_are_good(cq))
		flags |= IBV_WC_IP_CSUM_OK;
	return flags;
}

/* The key that was invalidated is in host order, an immediate is as it came. */
static inline __be32 imm_now(const struct vb_cq *cq)
{
	const struct mlx5_cqe *e = now(cq);

	return mlx5_cqe_kind(e) == HW_CQE_RECV_INV ? mlx5_cqe_imm(e) : e->dw[9].raw;
}

static uint32_t vendor_err_now(const struct vb_cq *cq)
{
	return mlx5_cqe_error_vendor_err((const void *)cq->current);
}

/* --- ibv_poll_cq() --- */

static inline void wc_fill(const struct vb_cq *cq, struct ibv_wc *wc)
{
	const struct mlx5_cqe *e = now(cq);

	wc->wr_id = cq->cq.wr_id;
	wc->status = cq->cq.status;
	wc->qp_num = mlx5_cqe_qpn(e);
	wc->wc_flags = 0;
	if (__builtin_expect(wc->status != IBV_WC_SUCCESS, 0)) {
		wc->vendor_err = vendor_err_now(cq);
		return;
	}
	wc->vendor_err = 0;
	wc->opcode = opcode_now(cq);
	wc->byte_len = byte_len_now(cq);
	if (is_send(mlx5_cqe_kind(e)))
		return;
	wc->wc_flags = wc_flags_now(cq);
	wc->imm_data = imm_now(cq);
	wc->src_qp = mlx5_cqe_src_qpn(e);
	wc->pkey_index = (uint16_t)mlx5_cqe_imm(e);
	wc->slid = (uint16_t)mlx5_cqe_slid(e);
	wc->sl = (uint8_t)mlx5_cqe_sl_l3(e);
	wc->dlid_path_bits = (uint8_t)mlx5_cqe_path_bits(e);
}

static inline int poll_some(struct vb_cq *cq, int count, struct ibv_wc *wc)
{
	int found = 0;

	vb_lock(&cq->lock);
	while (found < count && !take(cq))
		wc_fill(cq, &wc[found++]);
	if (found)
		vb_cq_publish(cq);
	vb_unlock(&cq->lock);
	return found;
}

int vb_poll_cq(struct ibv_cq *base, int count, struct ibv_wc *wc)
{
	struct vb_cq *cq = vb_cq_of(base);
	int found = poll_some(cq, count, wc);

	if (found || count <= 0 || !cq->context->channel.ops->idle)
		return found;
	cq->context->channel.ops->idle();
	return poll_some(cq, count, wc);
}

/* --- extended --- */

static struct vb_cq *of_ex(struct ibv_cq_ex *ex)
{
	return (struct vb_cq *)ex;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct vb_cq *cq = of_ex(ex);
	int error;

	if (attr->comp_mask)
		return EINVAL;
	vb_lock(&cq->lock);
	error = take(cq);
	if (error && cq->context->channel.ops->idle) {
		vb_unlock(&cq->lock);
		cq->context->channel.ops->idle();
		vb_lock(&cq->lock);
		error = take(cq);
	}
	if (error)
		vb_unlock(&cq->lock);
	return error;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	return take(of_ex(ex));
}

static void end_poll(struct ibv_cq_ex *ex)
{
	struct vb_cq *cq = of_ex(ex);

	vb_cq_publish(cq);
	vb_unlock(&cq->lock);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	return opcode_now(of_ex(ex));
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
	return vendor_err_now(of_ex(ex));
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
	return byte_len_now(of_ex(ex));
}

static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
	return imm_now(of_ex(ex));
}

static unsigned read_wc_flags(struct ibv_cq_ex *ex)
{
	return wc_flags_now(of_ex(ex));
}

#define READER(name, type, field)						\
	static type name(struct ibv_cq_ex *ex)					\
	{									\
		return (type)field(now(of_ex(ex)));				\
	}
READER(read_qp_num, uint32_t, mlx5_cqe_qpn)
READER(read_src_qp, uint32_t, mlx5_cqe_src_qpn)
READER(read_slid, uint32_t, mlx5_cqe_slid)
READER(read_sl, uint8_t, mlx5_cqe_sl_l3)
READER(read_dlid_path_bits, uint8_t, mlx5_cqe_path_bits)
READER(read_completion_ts, uint64_t, mlx5_cqe_timestamp)
READER(read_cvlan, uint16_t, mlx5_cqe_vlan)
READER(read_flow_tag, uint32_t, mlx5_cqe_qpn)

static uint64_t read_wallclock_ns(struct ibv_cq_ex *ex)
{
	struct vb_cq *cq = of_ex(ex);

	return vb_clock_ns(cq->context, mlx5_cqe_timestamp(now(cq)));
}

/* Which reader goes with which flag of creation; the others are always there. */
void vb_poll_fill(struct vb_cq *cq)
{
	struct ibv_cq_ex *ex = &cq->cq;

	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_wc_flags = read_wc_flags;
#define WITH(flag, reader, function) \
	if (cq->wc_flags & IBV_WC_EX_WITH_##flag) ex->reader = function
	WITH(BYTE_LEN, read_byte_len, read_byte_len);
	WITH(IMM, read_imm_data, read_imm_data);
	WITH(QP_NUM, read_qp_num, read_qp_num);
	WITH(SRC_QP, read_src_qp, read_src_qp);
	WITH(SLID, read_slid, read_slid);
	WITH(SL, read_sl, read_sl);
	WITH(DLID_PATH_BITS, read_dlid_path_bits, read_dlid_path_bits);
	WITH(COMPLETION_TIMESTAMP, read_completion_ts, read_completion_ts);
	WITH(CVLAN, read_cvlan, read_cvlan);
	WITH(FLOW_TAG, read_flow_tag, read_flow_tag);
	WITH(COMPLETION_TIMESTAMP_WALLCLOCK, read_completion_wallclock_ns, read_wallclock_ns);
#undef WITH
}
