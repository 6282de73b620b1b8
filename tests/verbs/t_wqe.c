/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is written into a send queue is what was asked for, wherever in the ring it begins.
 *
 * Method: each request is posted by ibv_post_send() and by ibv_wr_*(), once from every block of a
 * small ring, and read back with the device's decoder.  The ring is filled before, so that a byte
 * written outside the request's blocks shows.
 */
#include <criterion/criterion.h>
#include <string.h>
#include "script.h"
#include "verbs/ah.h"

#define PIECES_MAX	4u
#define INLINE_MAX	256u
#define POISON		0xa5
#define IMM		0x0badcafeu
#define INVALIDATED	0x00c0ffeeu
#define REMOTE_ADDR	UINT64_C(0xfedcba9876543210)
#define REMOTE_KEY	0xdeadbeefu
#define COMPARE		UINT64_C(0x0123456789abcdef)
#define SWAP		UINT64_C(0x1122334455667788)
#define SRQN		0xabcdefu
#define DEST_QPN	0x654321u
#define QKEY		0x80010203u
#define WINDOW_KEY	0x00777733u
#define WINDOW_TAG	0x99u
#define REGION_KEY	0x00555500u

enum on { RC = 1, UC = 2, UD = 4, XRC = 8, REMOTE = RC | UC | XRC, RELIABLE = RC | XRC,
	  ALL = REMOTE | UD };

static const struct request {
	enum hw_op op;
	enum ibv_wr_opcode opcode;
	unsigned flags, pieces;
	uint32_t bytes[PIECES_MAX];
	unsigned on;
	unsigned window_bytes;
} requests[] = {
	{ HW_OP_SEND, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, { 0 }, ALL, 0 },
	{ HW_OP_SEND, IBV_WR_SEND, IBV_SEND_SOLICITED, 4, { 1, 2, 3, 4 }, ALL, 0 },
	{ HW_OP_SEND, IBV_WR_SEND, IBV_SEND_FENCE, 4, { 1, 0, 0, 70 }, ALL, 0 },
	{ HW_OP_SEND_IMM, IBV_WR_SEND_WITH_IMM, IBV_SEND_SIGNALED, 3, { 64, 64, 64 }, ALL, 0 },
	{ HW_OP_SEND_INVAL, IBV_WR_SEND_WITH_INV, 0, 2, { 5, 6 }, REMOTE, 0 },
	{ HW_OP_WRITE, IBV_WR_RDMA_WRITE, 0, 4, { 9, 8, 7, 6 }, REMOTE, 0 },
	{ HW_OP_WRITE_IMM, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_SEND_SIGNALED, 0, { 0 }, REMOTE, 0 },
	{ HW_OP_WRITE_IMM, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 3, { 1, 1, 1 }, REMOTE, 0 },
	{ HW_OP_READ, IBV_WR_RDMA_READ, IBV_SEND_FENCE, 4, { 4, 3, 2, 1 }, RELIABLE, 0 },
	{ HW_OP_COMPARE_SWAP, IBV_WR_ATOMIC_CMP_AND_SWP, 0, 1, { 8 }, RELIABLE, 0 },
	{ HW_OP_FETCH_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 1, { 8 }, RELIABLE, 0 },
	{ HW_OP_SEND, IBV_WR_SEND, IBV_SEND_INLINE, 1, { 0 }, ALL, 0 },
	{ HW_OP_SEND, IBV_WR_SEND, IBV_SEND_INLINE, 1, { 44 }, ALL, 0 },
	{ HW_OP_SEND, IBV_WR_SEND, IBV_SEND_INLINE, 1, { 45 }, ALL, 0 },
	{ HW_OP_SEND, IBV_WR_SEND, IBV_SEND_INLINE, 4, { 12, 0, 48, 100 }, ALL, 0 },
	{ HW_OP_SEND_IMM, IBV_WR_SEND_WITH_IMM, IBV_SEND_INLINE, 1, { 256 }, ALL, 0 },
	{ HW_OP_SEND_INVAL, IBV_WR_SEND_WITH_INV, IBV_SEND_INLINE, 1, { 13 }, REMOTE, 0 },
	{ HW_OP_WRITE, IBV_WR_RDMA_WRITE, IBV_SEND_INLINE, 1, { 28 }, REMOTE, 0 },
	{ HW_OP_WRITE, IBV_WR_RDMA_WRITE, IBV_SEND_INLINE, 3, { 28, 64, 100 }, REMOTE, 0 },
	{ HW_OP_WRITE_IMM, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_SEND_INLINE, 2, { 1, 91 }, REMOTE, 0 },
	{ HW_OP_UMR, IBV_WR_LOCAL_INV, IBV_SEND_SIGNALED, 0, { 0 }, REMOTE, 0 },
	{ HW_OP_UMR, IBV_WR_BIND_MW, 0, 0, { 0 }, REMOTE, 4096 },
	{ HW_OP_UMR, IBV_WR_BIND_MW, IBV_SEND_FENCE, 0, { 0 }, REMOTE, 0 },
};
#define REQUESTS (sizeof requests / sizeof *requests)

static const struct kind {
	enum ibv_qp_type type;
	enum on on;
	enum hw_transport transport;
} kinds[] = {
	{ IBV_QPT_RC, RC, HW_RC },
	{ IBV_QPT_UC, UC, HW_UC },
	{ IBV_QPT_UD, UD, HW_UD },
	{ IBV_QPT_XRC_SEND, XRC, HW_XRC },
};
#define KINDS (sizeof kinds / sizeof *kinds)

static uint8_t data[PIECES_MAX][INLINE_MAX];
static struct vb_ah ah;
static struct ibv_mr region = { .lkey = REGION_KEY };
static struct ibv_mw window = { .type = IBV_MW_TYPE_2, .rkey = WINDOW_KEY };

static void setup(void)
{
	for (unsigned i = 0; i < PIECES_MAX; i++)
		for (unsigned k = 0; k < INLINE_MAX; k++)
			data[i][k] = (uint8_t)(i * 64 + k);
	mlx5_datagram_set_rgid_high(&ah.av, 0x2001020304050607);
	mlx5_datagram_set_rgid_low(&ah.av, 0x08090a0b0c0d0e0f);
	mlx5_datagram_set_hop_limit(&ah.av, 63);
	mlx5_datagram_set_udp_sport(&ah.av, 0xc123);
}

TestSuite(wqe, .init = setup, .timeout = 60);

static struct ibv_sge piece(const struct request *r, unsigned i)
{
	return (struct ibv_sge){ (uintptr_t)data[i], r->bytes[i], 0x1000 + i };
}

static struct ibv_mw_bind_info bind_info(const struct request *r)
{
	return (struct ibv_mw_bind_info){
		.mr = &region, .addr = 0x7700001000, .length = r->window_bytes,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
	};
}

/* --- posting --- */

static void operands_set(const struct request *r, const struct kind *k, struct ibv_send_wr *wr)
{
	wr->wr.rdma.remote_addr = REMOTE_ADDR;
	wr->wr.rdma.rkey = REMOTE_KEY;
	if (r->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || r->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr->wr.atomic.remote_addr = REMOTE_ADDR;
		wr->wr.atomic.rkey = REMOTE_KEY;
		wr->wr.atomic.swap = SWAP;
		wr->wr.atomic.compare_add = COMPARE;
	}
	if (k->on == UD) {
		wr->wr.ud.ah = &ah.ah;
		wr->wr.ud.remote_qpn = DEST_QPN;
		wr->wr.ud.remote_qkey = QKEY;
	}
	if (k->on == XRC)
		wr->qp_type.xrc.remote_srqn = SRQN;
	if (r->opcode == IBV_WR_BIND_MW) {
		wr->bind_mw.mw = &window;
		wr->bind_mw.rkey = (window.rkey & ~0xffu) | WINDOW_TAG;
		wr->bind_mw.bind_info = bind_info(r);
	}
}

static void post_old(struct vb_qp *qp, const struct request *r, const struct kind *k)
{
	struct ibv_sge sge[PIECES_MAX];
	struct ibv_send_wr *bad = NULL, wr = {
		.opcode = r->opcode, .send_flags = r->flags, .sg_list = sge,
		.num_sge = (int)r->pieces, .imm_data = htobe32(IMM),
	};

	for (unsigned i = 0; i < r->pieces; i++)
		sge[i] = piece(r, i);
	if (r->opcode == IBV_WR_SEND_WITH_INV || r->opcode == IBV_WR_LOCAL_INV)
		wr.invalidate_rkey = INVALIDATED;
	operands_set(r, k, &wr);
	cr_assert_eq(ibv_post_send(vb_qp_base(qp), &wr, &bad), 0);
	cr_assert_null(bad);
}

static void build_operation(struct ibv_qp_ex *ex, const struct request *r)
{
	struct ibv_mw_bind_info info = bind_info(r);

	switch ((int)r->opcode) {
	case IBV_WR_SEND:
		return ibv_wr_send(ex);
	case IBV_WR_SEND_WITH_IMM:
		return ibv_wr_send_imm(ex, htobe32(IMM));
	case IBV_WR_SEND_WITH_INV:
		return ibv_wr_send_inv(ex, INVALIDATED);
	case IBV_WR_RDMA_WRITE:
		return ibv_wr_rdma_write(ex, REMOTE_KEY, REMOTE_ADDR);
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return ibv_wr_rdma_write_imm(ex, REMOTE_KEY, REMOTE_ADDR, htobe32(IMM));
	case IBV_WR_RDMA_READ:
		return ibv_wr_rdma_read(ex, REMOTE_KEY, REMOTE_ADDR);
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return ibv_wr_atomic_cmp_swp(ex, REMOTE_KEY, REMOTE_ADDR, COMPARE, SWAP);
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return ibv_wr_atomic_fetch_add(ex, REMOTE_KEY, REMOTE_ADDR, COMPARE);
	case IBV_WR_LOCAL_INV:
		return ibv_wr_local_inv(ex, INVALIDATED);
	case IBV_WR_BIND_MW:
		return ibv_wr_bind_mw(ex, &window, (window.rkey & ~0xffu) | WINDOW_TAG, &info);
	}
}

static void build_data(struct ibv_qp_ex *ex, const struct request *r)
{
	struct ibv_data_buf buf[PIECES_MAX];
	struct ibv_sge sge[PIECES_MAX];

	for (unsigned i = 0; i < r->pieces; i++) {
		sge[i] = piece(r, i);
		buf[i] = (struct ibv_data_buf){ data[i], r->bytes[i] };
	}
	if (r->op == HW_OP_UMR)
		return;
	if (r->flags & IBV_SEND_INLINE && r->pieces == 1)
		ibv_wr_set_inline_data(ex, buf->addr, buf->length);
	else if (r->flags & IBV_SEND_INLINE)
		ibv_wr_set_inline_data_list(ex, r->pieces, buf);
	else if (r->pieces == 1)
		ibv_wr_set_sge(ex, sge->lkey, sge->addr, sge->length);
	else
		ibv_wr_set_sge_list(ex, r->pieces, sge);
}

static void build_address(struct ibv_qp_ex *ex, const struct request *r, const struct kind *k)
{
	if (k->on == UD)
		ibv_wr_set_ud_addr(ex, &ah.ah, DEST_QPN, QKEY);
	if (k->on == XRC && r->op != HW_OP_UMR)
		ibv_wr_set_xrc_srqn(ex, SRQN);
}

static void post_new(struct vb_qp *qp, const struct request *r, const struct kind *k)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(vb_qp_base(qp));
	bool is_data_first = qp->sq.produced & 1;	/* setters may come in any order */

	ibv_wr_start(ex);
	ex->wr_flags = r->flags & ~(unsigned)IBV_SEND_INLINE;
	build_operation(ex, r);
	ex->wr_flags = 0;
	if (is_data_first)
		build_data(ex, r);
	build_address(ex, r, k);
	if (!is_data_first)
		build_data(ex, r);
	cr_assert_eq(ibv_wr_complete(ex), 0);
}

/* --- reading back --- */

static bool is_inline(const struct request *r)
{
	return r->flags & IBV_SEND_INLINE;
}

static void check_inline(const struct hw_work *w, const struct request *r, uint64_t total)
{
	uint64_t at = 0;

	cr_assert_eq(w->sge_count, total != 0);
	for (unsigned i = 0; i < r->pieces; i++)
		for (uint32_t k = 0; k < r->bytes[i]; k++)
			cr_assert_eq(w->sge[0].inline_bytes[at++], data[i][k]);
}

static void check_data(const struct hw_work *w, const struct request *r)
{
	unsigned found = 0;
	uint64_t total = 0;

	for (unsigned i = 0; i < r->pieces; i++)
		total += r->bytes[i];
	cr_assert_eq(w->bytes, total);
	if (is_inline(r)) {
		check_inline(w, r, total);
		return;
	}
	for (unsigned i = 0; i < r->pieces; i++) {
		if (!r->bytes[i])
			continue;
		cr_assert_eq(w->sge[found].addr, (uintptr_t)data[i]);
		cr_assert_eq(w->sge[found].bytes, r->bytes[i]);
		cr_assert_eq(w->sge[found].lkey, 0x1000 + i);
		found++;
	}
	cr_assert_eq(w->sge_count, found);
}

static void check_umr(const struct hw_work *w, const struct request *r, uint32_t qpn)
{
	bool is_bind = r->opcode == IBV_WR_BIND_MW, frees = !r->window_bytes;

	cr_assert_eq(w->umr.key, is_bind ? WINDOW_KEY : INVALIDATED);
	cr_assert_eq(w->umr.frees, frees);
	cr_assert_eq(w->umr.needs_qpn, frees);
	cr_assert_eq(w->umr.needs_free, !frees);
	cr_assert_eq(w->umr.tag, is_bind ? WINDOW_TAG : 0);
	cr_assert_eq(w->umr.qpn, frees ? 0xffffff : qpn);
	cr_assert_eq(w->umr.translation_units, frees ? 0 : 4);
	if (frees)
		return;
	cr_assert_eq(w->umr.access, UMR_GIVES_REMOTE_WRITE | UMR_GIVES_ATOMIC);
	cr_assert_eq(w->umr.start, 0x7700001000);
	cr_assert_eq(w->umr.bytes, r->window_bytes);
	cr_assert_eq(w->sge[0].addr, 0x7700001000);
	cr_assert_eq(w->sge[0].bytes, r->window_bytes);
	cr_assert_eq(w->sge[0].lkey, REGION_KEY);
}

static void check_operands(const struct hw_work *w, const struct request *r)
{
	bool is_atomic = r->op == HW_OP_COMPARE_SWAP || r->op == HW_OP_FETCH_ADD;
	bool is_remote = is_atomic || r->op == HW_OP_READ || r->op == HW_OP_WRITE ||
			 r->op == HW_OP_WRITE_IMM;
	bool has_imm = r->op == HW_OP_SEND_IMM || r->op == HW_OP_WRITE_IMM;

	cr_assert_eq(w->imm, has_imm ? htobe32(IMM) : r->op == HW_OP_SEND_INVAL ? INVALIDATED : 0);
	if (is_remote) {
		cr_assert_eq(w->remote_addr, REMOTE_ADDR);
		cr_assert_eq(w->rkey, REMOTE_KEY);
	}
	if (r->op == HW_OP_COMPARE_SWAP) {
		cr_assert_eq(w->swap_add, SWAP);
		cr_assert_eq(w->compare, COMPARE);
	}
	if (r->op == HW_OP_FETCH_ADD)
		cr_assert_eq(w->swap_add, COMPARE);
}

static void check_prefix(const struct hw_work *w, const struct kind *k)
{
	if (k->on == XRC && w->op != HW_OP_UMR)
		cr_assert_eq(w->srqn, SRQN);
	if (k->on != UD)
		return;
	cr_assert_not(w->av.is_compact);
	cr_assert_eq(w->av.qkey, QKEY);
	cr_assert_eq(w->av.dest_qpn, DEST_QPN);
	cr_assert_eq(w->av.hop_limit, 63);
	cr_assert_eq(w->av.udp_sport, 0xc123);
	cr_assert_eq(w->av.rgid[0], 0x20);
	cr_assert_eq(w->av.rgid[15], 0x0f);
}

static void check(const struct hw_work *w, const struct vb_qp *qp, const struct request *r,
		  const struct kind *k, uint32_t index)
{
	cr_assert_eq(w->op, r->op);
	cr_assert_eq(w->index, (uint16_t)index);
	cr_assert_eq(w->qpn, qp->ex.qp_base.qp_num);
	cr_assert_eq(w->is_signaled, !!(r->flags & IBV_SEND_SIGNALED));
	cr_assert_eq(w->is_solicited, !!(r->flags & IBV_SEND_SOLICITED));
	cr_assert_eq(w->fence, r->flags & IBV_SEND_FENCE ? HW_FENCE_READS : HW_FENCE_NONE);
	check_prefix(w, k);
	if (r->op == HW_OP_UMR) {
		check_umr(w, r, qp->ex.qp_base.qp_num);
		return;
	}
	check_operands(w, r);
	check_data(w, r);
}

static uint8_t *block(const struct vb_qp *qp, uint32_t index)
{
	return qp->sq.at + (size_t)(index & (qp->sq.entries - 1)) * VB_SQ_BLOCK_BYTES;
}

/* Copies the WQE out of the ring; the number of its blocks. */
static uint32_t copy_out(const struct vb_qp *qp, uint32_t index, uint8_t *out)
{
	uint32_t blocks = (mlx5_work_units(block(qp, index)) * 16 + 63) / 64;

	for (uint32_t i = 0; i < blocks; i++)
		memcpy(out + (size_t)i * 64, block(qp, index + i), 64);
	return blocks;
}

static void check_untouched(const struct vb_qp *qp, uint32_t from, uint32_t blocks)
{
	for (uint32_t i = 0; i < blocks; i++)
		for (unsigned k = 0; k < VB_SQ_BLOCK_BYTES; k++)
			cr_assert_eq(block(qp, from + i)[k], POISON, "block %u byte %u", from + i,
				     k);
}

static void try_one(struct vb_qp *qp, const struct request *r, const struct kind *k, bool is_new)
{
	uint8_t wqe[1024 + 64] = { 0 };
	uint32_t index = qp->sq.produced, blocks;
	struct hw_work work;
	enum hw_fault fault;

	memset(qp->sq.at, POISON, (size_t)qp->sq.entries * VB_SQ_BLOCK_BYTES);
	qp->fence = 0;
	if (is_new)
		post_new(qp, r, k);
	else
		post_old(qp, r, k);
	blocks = copy_out(qp, index, wqe);
	cr_assert_eq(qp->sq.produced, index + blocks);
	cr_assert_eq(be32toh(qp->record[1]), qp->sq.produced & 0xffff);
	fault = mlx5_work_read(wqe, 64, k->transport, &work);
	cr_assert_eq(fault, HW_OK, "opcode %d on type %d: %s", r->opcode, k->type,
		     hw_fault_name(fault));
	check(&work, qp, r, k, index);
	check_untouched(qp, index + blocks, qp->sq.entries - blocks);
	atomic_store(&qp->sq.tail, qp->sq.head);
}

static uint64_t ops_of(const struct kind *k)
{
	uint64_t ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;

	if (k->on & REMOTE)
		ops |= IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_WRITE |
		       IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_LOCAL_INV |
		       IBV_QP_EX_WITH_BIND_MW;
	if (k->on & RELIABLE)
		ops |= IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
		       IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
	return ops;
}

/* 16 bits of index wrap within the loop. */
static void try_everywhere(const struct kind *k, bool is_new)
{
	struct ibv_context *context = script_open();
	struct ibv_cq *cq = script_cq(context, 63);
	struct vb_qp *qp = script_qp(&(struct script_qp){
		.type = k->type, .pd = ibv_alloc_pd(context), .send_cq = cq, .recv_cq = cq,
		.depth = 4, .sges = PIECES_MAX, .inline_bytes = INLINE_MAX, .ops = ops_of(k),
	});

	for (unsigned i = 0; i < REQUESTS; i++) {
		if (!(requests[i].on & k->on))
			continue;
		for (uint32_t at = 0; at < qp->sq.entries; at++) {
			qp->sq.produced = 0x10000 - qp->sq.entries + at;
			try_one(qp, &requests[i], k, is_new);
		}
	}
}

Test(wqe, rc_old) { try_everywhere(&kinds[0], false); }
Test(wqe, uc_old) { try_everywhere(&kinds[1], false); }
Test(wqe, ud_old) { try_everywhere(&kinds[2], false); }
Test(wqe, xrc_old) { try_everywhere(&kinds[3], false); }
Test(wqe, rc_new) { try_everywhere(&kinds[0], true); }
Test(wqe, uc_new) { try_everywhere(&kinds[1], true); }
Test(wqe, ud_new) { try_everywhere(&kinds[2], true); }
Test(wqe, xrc_new) { try_everywhere(&kinds[3], true); }
