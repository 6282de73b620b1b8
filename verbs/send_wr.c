/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The builder interface, ibv_wr_*: the ring's lock is held from start to complete or abort.
 *
 * A request stays open until the next one begins, so its setters may come in any order; the first
 * error makes all calls up to the end do nothing, and then nothing of them is posted.
 *
 * Source: ibv_wr_post(3); device-abi C.1 to C.3.
 */
#include <infiniband/mlx5dv/queues.h>	/* the whole names opcodes as hw-models does */
#include <stdlib.h>
#include "verbs/build.h"
#include "verbs/wqe_eth.h"

struct vb_build {
	struct mlx5dv_qp_ex dv;
	struct vb_qp *qp;
	struct wqe w;			/* the open request */
	struct wqe_header header;	/* of a frame: what its data have not filled yet */
	struct wqe last;		/* the last closed one */
	uint64_t wr_id;
	unsigned flags;
	bool is_open, is_inline;
	int error;
	/* As it was at start. */
	uint32_t head, produced;
	uint8_t fence;
};

static struct vb_qp *of(struct ibv_qp_ex *ex)
{
	return (struct vb_qp *)ex;
}

static inline void close_open(struct vb_qp *qp, struct vb_build *b)
{
	if (!b->is_open)
		return;
	if (__builtin_expect(b->header.left, 0)) {
		b->error = EINVAL;	/* a frame shorter than its header */
		return;
	}
	wqe_close(qp, &b->w, b->wr_id, b->flags);
	b->last = b->w;
	b->is_open = false;
}

/* Begins a request; NULL: there was an error, do nothing. */
static inline struct wqe *begin(struct ibv_qp_ex *ex, uint8_t opcode)
{
	struct vb_qp *qp = of(ex);
	struct vb_build *b = qp->build;

	if (__builtin_expect(b->error, 0))
		return NULL;
	close_open(qp, b);
	if (__builtin_expect(b->error, 0))
		return NULL;
	if (__builtin_expect(vb_ring_is_full(&qp->sq, 1) || !qp->may_send, 0)) {
		b->error = qp->may_send ? ENOMEM : EINVAL;	/* post_send says ENOMEM to both */
		return NULL;
	}
	wqe_open(qp, &b->w, opcode);
	b->is_open = true;
	b->is_inline = false;
	b->wr_id = ex->wr_id;
	b->flags = ex->wr_flags;
	return &b->w;
}

/* Is there room for @units more?  Setters may be called any number of times. */
static inline bool has_room(struct vb_qp *qp, const struct wqe *w, size_t units)
{
	if (__builtin_expect(units <= qp->wqe_units_max && w->units <= qp->wqe_units_max - units,
			     1))
		return true;
	qp->build->error = ENOMEM;
	return false;
}

/* The open request, or NULL. */
static inline struct wqe *open_request(struct vb_qp *qp)
{
	return __builtin_expect(qp->build->error || !qp->build->is_open, 0) ? NULL : &qp->build->w;
}

/* --- operations --- */

static void wr_send(struct ibv_qp_ex *ex)
{
	begin(ex, MLX5_OPCODE_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
	struct wqe *w = begin(ex, MLX5_OPCODE_SEND_IMM);

	if (w)
		w->imm = imm_data;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	struct wqe *w = begin(ex, MLX5_OPCODE_SEND_INVAL);

	if (w)
		w->imm = htobe32(invalidate_rkey);
}

static inline struct wqe *begin_remote(struct ibv_qp_ex *ex, uint8_t opcode, uint32_t rkey,
				       uint64_t remote_addr)
{
	struct wqe *w = begin(ex, opcode);

	if (w)
		wqe_raddr(of(ex), w, remote_addr, rkey);
	return w;
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	begin_remote(ex, MLX5_OPCODE_RDMA_WRITE, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      __be32 imm_data)
{
	struct wqe *w = begin_remote(ex, MLX5_OPCODE_RDMA_WRITE_IMM, rkey, remote_addr);

	if (w)
		w->imm = imm_data;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	begin_remote(ex, MLX5_OPCODE_RDMA_READ, rkey, remote_addr);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      uint64_t compare, uint64_t swap)
{
	struct wqe *w = begin_remote(ex, MLX5_OPCODE_ATOMIC_CS, rkey, remote_addr);

	if (w)
		wqe_atomic(of(ex), w, swap, compare);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
				uint64_t add)
{
	struct wqe *w = begin_remote(ex, MLX5_OPCODE_ATOMIC_FA, rkey, remote_addr);

	if (w)
		wqe_atomic(of(ex), w, add, 0);
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	struct wqe *w = begin(ex, MLX5_OPCODE_UMR);

	if (w)
		vb_wqe_local_inv(of(ex), w, invalidate_rkey);
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct wqe *w = begin(ex, MLX5_OPCODE_UMR);

	if (w)
		of(ex)->build->error = vb_wqe_bind(of(ex), w, IBV_MW_TYPE_2, mw->rkey, rkey, info);
}

/* --- setters --- */

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge, const struct ibv_sge *list)
{
	struct vb_qp *qp = of(ex);
	struct wqe *w = open_request(qp);

	if (!w || !has_room(qp, w, num_sge <= qp->sq.max_sge ? num_sge : SIZE_MAX))
		return;
	for (size_t i = 0; i < num_sge; i++)
		wqe_data(qp, w, list[i].addr, list[i].length, list[i].lkey);
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct wqe *w = open_request(of(ex));

	if (w && has_room(of(ex), w, 1))
		wqe_data(of(ex), w, addr, length, lkey);
}

/* Units that the data takes within a WQE; SIZE_MAX: none has that much. */
static size_t inline_units(const struct vb_qp *qp, size_t num_buf, const struct ibv_data_buf *list)
{
	size_t bytes = 0;

	for (size_t i = 0; i < num_buf; i++) {
		if (list[i].length > qp->max_inline_bytes - bytes)
			return SIZE_MAX;
		bytes += list[i].length;
	}
	return (MLX5_INLINE_HEADER_BYTES + bytes + MLX5_UNIT_BYTES - 1) / MLX5_UNIT_BYTES;
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf,
				    const struct ibv_data_buf *list)
{
	struct vb_qp *qp = of(ex);
	struct wqe *w = open_request(qp);
	struct wqe_inline in;

	if (!w || !has_room(qp, w, inline_units(qp, num_buf, list)))
		return;
	wqe_inline_begin(qp, w, &in);
	for (size_t i = 0; i < num_buf; i++)
		wqe_inline_add(qp, &in, list[i].addr, list[i].length);
	wqe_inline_end(qp, w, &in);
	qp->build->is_inline = true;
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf one = { .addr = addr, .length = length };

	wr_set_inline_data_list(ex, 1, &one);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn,
			   uint32_t remote_qkey)
{
	struct wqe *w = open_request(of(ex));
	struct mlx5_datagram av;

	if (!w)
		return;
	wqe_address(ah, remote_qpn, remote_qkey, &av);
	wqe_prefix(of(ex), w, &av);
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	struct wqe *w = open_request(of(ex));
	struct mlx5_xrc xrc = { { { 0 } } };

	if (!w)
		return;
	mlx5_xrc_set_srqn(&xrc, remote_srqn & 0xffffff);
	wqe_prefix(of(ex), w, &xrc);
}

/* --- frames --- */

static void wr_send_frame(struct ibv_qp_ex *ex)
{
	struct vb_qp *qp = of(ex);
	struct wqe *w = begin(ex, MLX5_OPCODE_SEND);

	if (w)
		qp->build->error = wqe_eth_open(qp, w, ex->wr_flags, qp->eth.header_bytes, 0,
						&qp->build->header);
}

static void wr_send_tso(struct ibv_qp_ex *ex, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
	struct vb_qp *qp = of(ex);
	struct wqe *w = begin(ex, MLX5_OPCODE_TSO);

	if (w)
		qp->build->error = wqe_tso_open(qp, w, ex->wr_flags, hdr, hdr_sz, mss);
}

static void frame_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge, const struct ibv_sge *list)
{
	struct vb_qp *qp = of(ex);
	struct wqe *w = open_request(qp);

	if (!w || !has_room(qp, w, num_sge <= qp->sq.max_sge ? num_sge : SIZE_MAX))
		return;
	for (size_t i = 0; i < num_sge; i++) {
		uint32_t taken = wqe_header_take(qp, &qp->build->header,
						 (const void *)(uintptr_t)list[i].addr,
						 list[i].length);

		wqe_data(qp, w, list[i].addr + taken, list[i].length - taken, list[i].lkey);
	}
}

static void frame_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge one = { .addr = addr, .length = length, .lkey = lkey };

	frame_set_sge_list(ex, 1, &one);
}

/* What of @list is data, not header.  Nothing in the ring is overwritten: room for the header was
 * left. */
static void frame_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf,
				       const struct ibv_data_buf *list)
{
	struct vb_qp *qp = of(ex);
	struct vb_build *b = qp->build;
	struct wqe *w = open_request(qp);
	struct wqe_inline in;

	if (!w || !has_room(qp, w, 0))
		return;
	wqe_inline_begin(qp, w, &in);
	for (size_t i = 0; i < num_buf && !b->error; i++) {
		const uint8_t *at = list[i].addr;
		uint32_t taken = wqe_header_take(qp, &b->header, at, list[i].length);

		b->error = wqe_inline_add(qp, &in, at + taken, list[i].length - taken);
	}
	wqe_inline_end(qp, w, &in);
	b->is_inline = true;
}

static void frame_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf one = { .addr = addr, .length = length };

	frame_set_inline_data_list(ex, 1, &one);
}

/* --- what only the driver's own interface has --- */

static struct vb_qp *of_dv(struct mlx5dv_qp_ex *dv)
{
	return VB_CONTAINER(dv, struct vb_build, dv)->qp;
}

static void wr_set_dc_addr_stream(struct mlx5dv_qp_ex *dv, struct ibv_ah *ah, uint32_t remote_dctn,
				  uint64_t remote_dc_key, uint16_t stream_id)
{
	struct vb_qp *qp = of_dv(dv);
	struct wqe *w = open_request(qp);
	struct mlx5_datagram av;

	if (!w)
		return;
	w->stream = stream_id;
	wqe_dc_address(ah, remote_dctn, remote_dc_key, &av);
	wqe_prefix(qp, w, &av);
}

static void wr_set_dc_addr(struct mlx5dv_qp_ex *dv, struct ibv_ah *ah, uint32_t remote_dctn,
			   uint64_t remote_dc_key)
{
	wr_set_dc_addr_stream(dv, ah, remote_dctn, remote_dc_key, 0);
}

/* Longer than the ring was made for, it could overtake what is not done yet. */
static bool raw_is_too_long(const struct vb_qp *qp, uint32_t units)
{
	return !units || units * MLX5_UNIT_BYTES >
			 qp->sq.entries / qp->sq.max_post * VB_SQ_BLOCK_BYTES;
}

/* A WQE of the program's: only its place in the queue is told here.  Nothing is added to it. */
static void wr_raw_wqe(struct mlx5dv_qp_ex *dv, const void *wqe)
{
	struct vb_qp *qp = of_dv(dv);
	struct vb_build *b = qp->build;
	struct wqe *w = begin(&qp->ex, 0);
	struct mlx5_ctrl ctrl;
	uint32_t units;

	if (!w)
		return;
	b->is_open = false;
	memcpy(&ctrl, wqe, sizeof ctrl);
	units = mlx5_ctrl_ds(&ctrl);
	if (raw_is_too_long(qp, units)) {
		b->error = ENOMEM;
		return;
	}
	mlx5_ctrl_set_wqe_index(&ctrl, qp->sq.produced & 0xffff);
	w->at = w->ctrl;
	w->units = 0;
	wqe_put(qp, w, &ctrl);
	wqe_put_units(qp, w, (const uint8_t *)wqe + MLX5_UNIT_BYTES, units - 1);
	qp->fence = 0;
	wqe_remember(qp, b->wr_id, MLX5DV_WC_RAW_WQE, units);
	b->last = *w;
}

/* --- a batch --- */

static void wr_start(struct ibv_qp_ex *ex)
{
	struct vb_qp *qp = of(ex);
	struct vb_build *b = qp->build;

	vb_lock(&qp->sq.lock);
	b->is_open = false;
	b->header.left = 0;
	b->error = 0;
	b->head = qp->sq.head;
	b->produced = qp->sq.produced;
	b->fence = qp->fence;
}

static void roll_back(struct vb_qp *qp)
{
	struct vb_build *b = qp->build;

	qp->sq.head = b->head;
	qp->sq.produced = b->produced;
	qp->fence = b->fence;
	b->is_open = false;
	vb_unlock(&qp->sq.lock);
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct vb_qp *qp = of(ex);
	struct vb_build *b = qp->build;
	bool has_posted;

	if (!b->error)
		close_open(qp, b);
	if (b->error) {
		roll_back(qp);
		return b->error;
	}
	has_posted = qp->sq.head != b->head;
	if (has_posted)
		vb_send_ring(qp, &b->last, b->is_inline && qp->sq.head - b->head == 1);
	vb_unlock(&qp->sq.lock);
	if (has_posted && qp->rang)
		qp->rang(ex->qp_base.qp_num);
	return 0;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	roll_back(of(ex));
}

/* --- which of them a QP has --- */

#define OPS_SEND	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define OPS_UC		(OPS_SEND | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_WRITE | \
			 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_LOCAL_INV | \
			 IBV_QP_EX_WITH_BIND_MW)
#define OPS_RC		(OPS_UC | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
			 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)

uint64_t vb_build_ops_of(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_DRIVER:
		return OPS_RC;
	case IBV_QPT_UC:
		return OPS_UC;
	case IBV_QPT_UD:
		return OPS_SEND;
	case IBV_QPT_RAW_PACKET:
		return IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO;
	default:
		return 0;
	}
}

static void dv_fill(struct vb_qp *qp, uint64_t dv_ops)
{
	struct mlx5dv_qp_ex *dv = &qp->build->dv;

	if (dv_ops & MLX5DV_QP_EX_WITH_RAW_WQE)
		dv->wr_raw_wqe = wr_raw_wqe;
	if (qp->dc != VB_DC_INITIATOR)
		return;
	dv->wr_set_dc_addr = wr_set_dc_addr;
	dv->wr_set_dc_addr_stream = wr_set_dc_addr_stream;
}

static void frame_setters_fill(struct ibv_qp_ex *ex)
{
	ex->wr_set_sge = frame_set_sge;
	ex->wr_set_sge_list = frame_set_sge_list;
	ex->wr_set_inline_data = frame_set_inline_data;
	ex->wr_set_inline_data_list = frame_set_inline_data_list;
}

static void setters_fill(struct ibv_qp_ex *ex, enum ibv_qp_type type)
{
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	if (type == IBV_QPT_RAW_PACKET)
		frame_setters_fill(ex);
	if (type == IBV_QPT_UD)
		ex->wr_set_ud_addr = wr_set_ud_addr;
	if (type == IBV_QPT_XRC_SEND)
		ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
}

/* Keys that a queue lays out are made by commands to the hardware, which no device of ours has. */
int vb_build_begin(struct vb_qp *qp, uint64_t ops, uint64_t dv_ops)
{
	struct ibv_qp_ex *ex = &qp->ex;

	if (ops & ~vb_build_ops_of(qp->type) || dv_ops & ~(uint64_t)MLX5DV_QP_EX_WITH_RAW_WQE)
		return EOPNOTSUPP;
	qp->build = calloc(1, sizeof *qp->build);
	if (!qp->build)
		return ENOMEM;
	qp->build->qp = qp;
	dv_fill(qp, dv_ops);
	setters_fill(ex, qp->type);
#define WITH(flag, function) \
	if (ops & IBV_QP_EX_WITH_##flag) ex->function = function
	WITH(SEND, wr_send);
	WITH(TSO, wr_send_tso);
	WITH(SEND_WITH_IMM, wr_send_imm);
	WITH(SEND_WITH_INV, wr_send_inv);
	WITH(RDMA_WRITE, wr_rdma_write);
	WITH(RDMA_WRITE_WITH_IMM, wr_rdma_write_imm);
	WITH(RDMA_READ, wr_rdma_read);
	WITH(ATOMIC_CMP_AND_SWP, wr_atomic_cmp_swp);
	WITH(ATOMIC_FETCH_AND_ADD, wr_atomic_fetch_add);
	WITH(LOCAL_INV, wr_local_inv);
	WITH(BIND_MW, wr_bind_mw);
#undef WITH
	if (ex->wr_send && qp->type == IBV_QPT_RAW_PACKET)
		ex->wr_send = wr_send_frame;
	return 0;
}

struct mlx5dv_qp_ex *vb_build_dv(struct vb_qp *qp)
{
	return qp->build ? &qp->build->dv : NULL;
}

void vb_build_end(struct vb_qp *qp)
{
	free(qp->build);
}
