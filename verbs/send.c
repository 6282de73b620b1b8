/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posting send requests, and ringing.
 *
 * A table says what is made of each opcode and on which QPs; a request that fails leaves nothing in
 * the ring, those before it are posted.
 *
 * Source: device-abi C.1 to C.5, F.2; inventory 1.18.
 */
#include <rdma/mlx5-abi.h>
#include "hw-models/mlx5_doorbell.h"
#include "verbs/mr.h"
#include "verbs/ops.h"
#include "verbs/wqe_eth.h"

/* --- ringing --- */

static inline void order_stores(void)
{
#if defined __x86_64__
	__builtin_ia32_sfence();	/* also what was combined for a doorbell page */
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* The whole WQE goes to the register, in pieces of 64 bytes that the device takes as one. */
static void blueflame_copy(const struct vb_qp *qp, uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	for (uint32_t done = 0; done < bytes; done += VB_SQ_BLOCK_BYTES) {
		memcpy(to + done, from, VB_SQ_BLOCK_BYTES);
		from = wqe_wrap(qp, (uint8_t *)(uintptr_t)from + VB_SQ_BLOCK_BYTES);
	}
}

static inline void register_write(struct vb_qp *qp, const struct wqe *w, bool is_alone_and_inline)
{
	struct vb_register *reg = qp->reg;
	uint32_t bytes = (w->units * MLX5_UNIT_BYTES + VB_SQ_BLOCK_BYTES - 1) &
			 ~(VB_SQ_BLOCK_BYTES - 1);
	uint64_t doorbell;

	vb_lock(&reg->lock);
	if (is_alone_and_inline && bytes <= reg->bytes) {
		blueflame_copy(qp, reg->at + reg->offset, w->ctrl, bytes);
	} else {
		memcpy(&doorbell, w->ctrl, sizeof doorbell);
		__atomic_store_n((uint64_t *)(void *)(reg->at + reg->offset), doorbell,
				 __ATOMIC_RELAXED);
	}
	order_stores();
	reg->offset ^= reg->bytes;
	vb_unlock(&reg->lock);
}

/* The record counts, the register only wakes: first the one, then the other. */
void vb_send_ring(struct vb_qp *qp, const struct wqe *w, bool is_alone_and_inline)
{
	vb_order_before_device(&qp->sq);
	__atomic_store_n(&qp->record[1], htobe32(qp->sq.produced & 0xffff), __ATOMIC_RELEASE);
	order_stores();
	register_write(qp, w, is_alone_and_inline);
}

/* --- the table --- */

enum form { FORM_NONE, FORM_SEND, FORM_WRITE, FORM_READ, FORM_CS, FORM_FA, FORM_INV, FORM_BIND,
	    FORM_TSO };

#define ATOMIC_BYTES	8u

/* Units of each form, control too, without prefix and data. */
#define UNITS(...)	((sizeof(struct mlx5_ctrl) + __VA_ARGS__) / MLX5_UNIT_BYTES)
static const uint8_t units_of_form[] = {
	[FORM_SEND] = UNITS(0),
	[FORM_TSO] = UNITS(0),
	[FORM_WRITE] = UNITS(sizeof(struct mlx5_raddr)),
	[FORM_READ] = UNITS(sizeof(struct mlx5_raddr)),
	[FORM_CS] = UNITS(sizeof(struct mlx5_raddr) + sizeof(struct mlx5_atomic)),
	[FORM_FA] = UNITS(sizeof(struct mlx5_raddr) + sizeof(struct mlx5_atomic)),
	[FORM_INV] = UNITS(VB_UMR_BYTES),
	[FORM_BIND] = UNITS(VB_UMR_BYTES + VB_KLM_BYTES),
};
#undef UNITS

static const struct verb_row {
	uint8_t form, opcode, on;
	bool has_imm;
} verb_table[] = {
	/* enum ibv_wr_opcode          form        WQE                          QPs */
	[IBV_WR_RDMA_WRITE] =         { FORM_WRITE, MLX5_OPCODE_RDMA_WRITE,     ON_CONNECTED, 0 },
	[IBV_WR_RDMA_WRITE_WITH_IMM] = { FORM_WRITE, MLX5_OPCODE_RDMA_WRITE_IMM, ON_CONNECTED, 1 },
	[IBV_WR_SEND] =               { FORM_SEND,  MLX5_OPCODE_SEND,
					ON_CONNECTED | ON_UD | ON_RAW, 0 },
	[IBV_WR_SEND_WITH_IMM] =      { FORM_SEND,  MLX5_OPCODE_SEND_IMM,
					ON_CONNECTED | ON_UD, 1 },
	[IBV_WR_RDMA_READ] =          { FORM_READ,  MLX5_OPCODE_RDMA_READ,      ON_RELIABLE, 0 },
	[IBV_WR_ATOMIC_CMP_AND_SWP] = { FORM_CS,    MLX5_OPCODE_ATOMIC_CS,      ON_RELIABLE, 0 },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = { FORM_FA,  MLX5_OPCODE_ATOMIC_FA,      ON_RELIABLE, 0 },
	[IBV_WR_LOCAL_INV] =          { FORM_INV,   MLX5_OPCODE_UMR,            ON_CONNECTED, 0 },
	[IBV_WR_BIND_MW] =            { FORM_BIND,  MLX5_OPCODE_UMR,            ON_CONNECTED, 0 },
	[IBV_WR_SEND_WITH_INV] =      { FORM_SEND,  MLX5_OPCODE_SEND_INVAL,     ON_CONNECTED, 0 },
	[IBV_WR_TSO] =                { FORM_TSO,   MLX5_OPCODE_TSO,            ON_RAW, 0 },
};

static uint8_t on_of(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return ON_RC;
	case IBV_QPT_UC:
		return ON_UC;
	case IBV_QPT_UD:
		return ON_UD;
	case IBV_QPT_XRC_SEND:
		return ON_XRC;
	case IBV_QPT_RAW_PACKET:
		return ON_RAW;
	default:
		return 0;
	}
}

/* --- one request --- */

static inline int put_data(const struct vb_qp *qp, struct wqe *w, const struct ibv_send_wr *wr)
{
	struct wqe_inline in;
	int error = 0;

	if (!(wr->send_flags & IBV_SEND_INLINE)) {
		for (int i = 0; i < wr->num_sge; i++)
			wqe_data(qp, w, wr->sg_list[i].addr, wr->sg_list[i].length,
				 wr->sg_list[i].lkey);
		return 0;
	}
	wqe_inline_begin(qp, w, &in);
	for (int i = 0; i < wr->num_sge && !error; i++)
		error = wqe_inline_add(qp, &in, (const void *)(uintptr_t)wr->sg_list[i].addr,
				       wr->sg_list[i].length);
	wqe_inline_end(qp, w, &in);
	return error;
}

/* The result of an atomic has 8 bytes, whatever room the program says that there is for it. */
static int put_result(const struct vb_qp *qp, struct wqe *w, const struct ibv_send_wr *wr)
{
	if (wr->send_flags & IBV_SEND_INLINE)
		return put_data(qp, w, wr);
	for (int i = 0; i < wr->num_sge; i++)
		wqe_data(qp, w, wr->sg_list[i].addr, wr->sg_list[i].length ? ATOMIC_BYTES : 0,
			 wr->sg_list[i].lkey);
	return 0;
}

/* What stands before the operation: where a datagram goes, or whose queue receives. */
static inline void put_prefix(const struct vb_qp *qp, const struct wqe *w,
			      const struct ibv_send_wr *wr)
{
	struct mlx5_datagram av;
	struct mlx5_xrc xrc = { { { 0 } } };

	if (qp->type == IBV_QPT_UD) {
		wqe_address(wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey, &av);
		wqe_prefix(qp, w, &av);
	} else if (qp->type == IBV_QPT_XRC_SEND) {
		mlx5_xrc_set_srqn(&xrc, wr->qp_type.xrc.remote_srqn & 0xffffff);
		wqe_prefix(qp, w, &xrc);
	}
}

/* --- frames --- */

static int put_eth(const struct vb_qp *qp, struct wqe *w, const struct ibv_send_wr *wr,
		   struct wqe_header *header)
{
	*header = (struct wqe_header){ 0 };
	if (wr->opcode == IBV_WR_TSO)
		return wqe_tso_open(qp, w, wr->send_flags, wr->tso.hdr, wr->tso.hdr_sz,
				    wr->tso.mss);
	return wr->num_sge < 1 ? EINVAL : wqe_eth_open(qp, w, wr->send_flags, qp->eth.header_bytes,
						       0, header);
}

static int put_frame_inline(const struct vb_qp *qp, struct wqe *w, const struct ibv_send_wr *wr,
			    struct wqe_header *header)
{
	struct wqe_inline in;
	int error = 0;

	wqe_inline_begin(qp, w, &in);
	for (int i = 0; i < wr->num_sge && !error; i++) {
		const uint8_t *at = (const uint8_t *)(uintptr_t)wr->sg_list[i].addr;
		uint32_t taken = wqe_header_take(qp, header, at, wr->sg_list[i].length);

		error = wqe_inline_add(qp, &in, at + taken, wr->sg_list[i].length - taken);
	}
	wqe_inline_end(qp, w, &in);
	return error;
}

static uint64_t bytes_of(const struct ibv_send_wr *wr)
{
	uint64_t bytes = 0;

	for (int i = 0; i < wr->num_sge; i++)
		bytes += wr->sg_list[i].length;
	return bytes;
}

/* What the header took of the pieces is not sent a second time. */
static int put_frame(const struct vb_qp *qp, struct wqe *w, const struct ibv_send_wr *wr)
{
	struct wqe_header header;
	int error = put_eth(qp, w, wr, &header);

	if (!error && wr->opcode == IBV_WR_TSO && bytes_of(wr) > qp->eth.tso_bytes_max)
		error = EINVAL;
	if (error)
		return error;
	if (wr->send_flags & IBV_SEND_INLINE) {
		error = put_frame_inline(qp, w, wr, &header);
		return error ? error : header.left ? EINVAL : 0;
	}
	if (w->units + (uint32_t)wr->num_sge > qp->wqe_units_max)
		return ENOMEM;
	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];
		uint32_t taken = wqe_header_take(qp, &header, (const void *)(uintptr_t)sge->addr,
						 sge->length);

		wqe_data(qp, w, sge->addr + taken, sge->length - taken, sge->lkey);
	}
	return header.left ? EINVAL : 0;
}

static int put_bind(struct vb_qp *qp, struct wqe *w, const struct ibv_send_wr *wr)
{
	const struct ibv_mw *mw = wr->bind_mw.mw;

	return vb_wqe_bind(qp, w, mw->type, mw->rkey, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
}

static inline int put_operation(struct vb_qp *qp, struct wqe *w, const struct ibv_send_wr *wr,
				enum form form)
{
	switch (form) {
	case FORM_WRITE:
	case FORM_READ:
		wqe_raddr(qp, w, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey);
		break;
	case FORM_CS:
		wqe_raddr(qp, w, wr->wr.atomic.remote_addr, wr->wr.atomic.rkey);
		wqe_atomic(qp, w, wr->wr.atomic.swap, wr->wr.atomic.compare_add);
		return put_result(qp, w, wr);
	case FORM_FA:
		wqe_raddr(qp, w, wr->wr.atomic.remote_addr, wr->wr.atomic.rkey);
		wqe_atomic(qp, w, wr->wr.atomic.compare_add, 0);
		return put_result(qp, w, wr);
	case FORM_INV:
		vb_wqe_local_inv(qp, w, wr->invalidate_rkey);
		return 0;
	case FORM_BIND:
		return put_bind(qp, w, wr);
	default:
		break;
	}
	return put_data(qp, w, wr);
}

/* The QP may have been made for shorter requests, by IBV_QP_INIT_ATTR_SEND_OPS_FLAGS: what is
 * behind its place in the ring may still be wanted.  Inline data is counted while it is copied. */
static inline bool is_too_long(const struct vb_qp *qp, const struct wqe *w,
			       const struct ibv_send_wr *wr, enum form form)
{
	bool has_list = form < FORM_INV && !(wr->send_flags & IBV_SEND_INLINE);
	uint32_t units = w->units - 1 + units_of_form[form] +
			 (has_list ? (uint32_t)wr->num_sge : 0);

	return units > qp->wqe_units_max;
}

static inline int put_request(struct vb_qp *qp, struct wqe *w, const struct ibv_send_wr *wr)
{
	const struct verb_row *row;
	int error;

	if ((unsigned)wr->opcode >= sizeof verb_table / sizeof *verb_table)
		return EINVAL;
	row = &verb_table[wr->opcode];
	if (!(row->on & qp->on_transport))
		return EINVAL;
	if (vb_ring_is_full(&qp->sq, 1) || !qp->may_send || (uint32_t)wr->num_sge > qp->sq.max_sge)
		return ENOMEM;
	wqe_open(qp, w, row->opcode);
	if (__builtin_expect(is_too_long(qp, w, wr, row->form), 0))
		return ENOMEM;
	if (row->has_imm)
		w->imm = wr->imm_data;
	else if (row->opcode == MLX5_OPCODE_SEND_INVAL)
		w->imm = htobe32(wr->invalidate_rkey);
	if (w->prefix)
		put_prefix(qp, w, wr);
	error = qp->on_transport == ON_RAW ? put_frame(qp, w, wr) :
					     put_operation(qp, w, wr, row->form);
	if (!error)
		wqe_close(qp, w, wr->wr_id, wr->send_flags);
	return error;
}

int vb_post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct vb_qp *qp = vb_qp_of(base);
	struct wqe w, last;
	bool is_inline = false, has_posted;
	uint32_t before;
	int error = 0;

	vb_lock(&qp->sq.lock);
	before = qp->sq.head;
	for (; wr; wr = wr->next) {
		error = put_request(qp, &w, wr);
		if (__builtin_expect(error, 0)) {
			*bad_wr = wr;
			break;
		}
		is_inline = wr->send_flags & IBV_SEND_INLINE;
		last = w;
	}
	has_posted = qp->sq.head != before;
	if (has_posted)
		vb_send_ring(qp, &last, is_inline && qp->sq.head - before == 1);
	vb_unlock(&qp->sq.lock);
	if (qp->rang && has_posted)
		qp->rang(base->qp_num);
	return error;
}

void vb_send_begin(struct vb_qp *qp)
{
	qp->on_transport = on_of(qp->type);
	qp->prefix_units = qp->type == IBV_QPT_UD || qp->dc == VB_DC_INITIATOR ?
			   sizeof(struct mlx5_datagram) / MLX5_UNIT_BYTES :
			   qp->type == IBV_QPT_XRC_SEND ?
			   sizeof(struct mlx5_xrc) / MLX5_UNIT_BYTES : 0;
	qp->rang = qp->context->channel.ops->rang;
	/* Every mode but that which needs nothing is content with the link's header. */
	if (qp->type == IBV_QPT_RAW_PACKET &&
	    qp->context->limits.eth_min_inline_mode != MLX5_USER_INLINE_MODE_NONE)
		qp->eth.header_bytes = ETH_HEADER_BYTES;
}

/* Type 1 windows are bound by a verb of their own, which gives them their next key. */
int vb_bind_mw(struct ibv_qp *base, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id, .opcode = IBV_WR_BIND_MW, .send_flags = bind->send_flags,
		.bind_mw = { .mw = mw, .rkey = ibv_inc_rkey(mw->rkey),
			     .bind_info = bind->bind_info },
	};
	struct ibv_send_wr *bad;
	int error;

	if (bind->bind_info.mw_access_flags & IBV_ACCESS_ZERO_BASED)
		return vb_fail(EINVAL);
	if (bind->bind_info.mr && vb_mr_of(bind->bind_info.mr)->kind != VB_MR_PROGRAM)
		return vb_fail(ENOTSUP);
	if (bind->bind_info.mr && vb_mr_of(bind->bind_info.mr)->access & IBV_ACCESS_ZERO_BASED)
		return vb_fail(EINVAL);
	error = vb_post_send(base, &wr, &bad);
	if (!error)
		mw->rkey = wr.bind_mw.rkey;
	return error;
}
