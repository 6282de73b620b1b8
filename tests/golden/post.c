/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a row of requests.c to the verbs call, in both interfaces.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include "golden.h"

#define TIMES_MAX 3
#define WINDOW_TAG 0x5au

void post_pieces(const struct queue *q, unsigned pieces, const uint32_t *bytes,
			struct ibv_sge *out)
{
	for (unsigned i = 0; i < pieces; i++)
		out[i] = (struct ibv_sge){ .addr = piece_addr(i), .length = bytes[i % 4],
					   .lkey = piece_lkey(q, i) };
}

static uint64_t remote_addr(const struct request *r)
{
	return r->remote_addr ? r->remote_addr : REMOTE_ADDR;
}

static bool is_atomic(const struct request *r)
{
	return r->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       r->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* ibv_bind_mw() takes the next tag; for windows of type 2 the program chooses. */
uint32_t window_new_rkey(const struct ibv_mw *window, const struct request *r)
{
	return r->window == 1 ? ibv_inc_rkey(window->rkey) : (window->rkey & ~0xffu) | WINDOW_TAG;
}

static struct ibv_mw_bind_info window_info(const struct queue *q, const struct request *r)
{
	return (struct ibv_mw_bind_info){
		.mr = q->world->local[0], .addr = piece_addr(0),
		.length = r->pieces ? r->bytes[0] : 0, .mw_access_flags = r->access,
	};
}

static void window_fill(const struct queue *q, const struct request *r, struct ibv_send_wr *wr)
{
	struct ibv_mw *window = q->world->window[r->window];

	*wr = (struct ibv_send_wr){ .opcode = r->opcode, .send_flags = r->flags };
	wr->bind_mw.mw = window;
	wr->bind_mw.rkey = window_new_rkey(window, r);
	wr->bind_mw.bind_info = window_info(q, r);
}

static int post_window_1(struct queue *q, const struct request *r)
{
	struct ibv_mw_bind bind = { .send_flags = r->flags, .bind_info = window_info(q, r) };

	return ibv_bind_mw(q->qp, q->world->window[1], &bind);
}

static bool is_umr(const struct request *r)
{
	return r->opcode == IBV_WR_LOCAL_INV || r->opcode == IBV_WR_BIND_MW;
}

static void wr_fill(const struct queue *q, const struct request *r, struct ibv_sge *sge,
		    struct ibv_send_wr *wr)
{
	bool is_swap = r->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;

	if (r->opcode == IBV_WR_BIND_MW) {
		window_fill(q, r, wr);
		return;
	}
	*wr = (struct ibv_send_wr){ .opcode = r->opcode, .send_flags = r->flags,
				    .sg_list = sge, .num_sge = (int)r->pieces };
	if (r->opcode == IBV_WR_SEND_WITH_INV || r->opcode == IBV_WR_LOCAL_INV)
		wr->invalidate_rkey = INVALIDATE;
	else
		wr->imm_data = htobe32(IMM);
	if (is_atomic(r)) {
		wr->wr.atomic.remote_addr = remote_addr(r);
		wr->wr.atomic.rkey = q->world->remote->rkey;
		wr->wr.atomic.compare_add = is_swap ? COMPARE : ADD;
		wr->wr.atomic.swap = is_swap ? SWAP : 0;
	} else {
		wr->wr.rdma.remote_addr = remote_addr(r);
		wr->wr.rdma.rkey = q->world->remote->rkey;
	}
}

static int post_old(struct queue *q, const struct request *r, struct ibv_sge *sge,
		    unsigned times)
{
	struct ibv_send_wr wr[TIMES_MAX], *bad;

	if (r->window == 1)
		return post_window_1(q, r);
	for (unsigned i = 0; i < times; i++) {
		wr_fill(q, r, sge, &wr[i]);
		wr[i].next = i + 1 < times ? &wr[i + 1] : NULL;
	}
	return ibv_post_send(q->qp, wr, &bad);
}

static void ex_bind(const struct queue *q, struct ibv_qp_ex *qp, const struct request *r)
{
	struct ibv_mw *window = q->world->window[r->window];
	struct ibv_mw_bind_info info = window_info(q, r);

	ibv_wr_bind_mw(qp, window, window_new_rkey(window, r), &info);
}

void post_ex_operation(const struct queue *q, struct ibv_qp_ex *qp, const struct request *r)
{
	uint32_t rkey = q->world->remote->rkey;

	switch ((int)r->opcode) {
	case IBV_WR_SEND:
		return ibv_wr_send(qp);
	case IBV_WR_SEND_WITH_IMM:
		return ibv_wr_send_imm(qp, htobe32(IMM));
	case IBV_WR_SEND_WITH_INV:
		return ibv_wr_send_inv(qp, INVALIDATE);
	case IBV_WR_LOCAL_INV:
		return ibv_wr_local_inv(qp, INVALIDATE);
	case IBV_WR_BIND_MW:
		return ex_bind(q, qp, r);
	case IBV_WR_RDMA_WRITE:
		return ibv_wr_rdma_write(qp, rkey, remote_addr(r));
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return ibv_wr_rdma_write_imm(qp, rkey, remote_addr(r), htobe32(IMM));
	case IBV_WR_RDMA_READ:
		return ibv_wr_rdma_read(qp, rkey, remote_addr(r));
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return ibv_wr_atomic_cmp_swp(qp, rkey, remote_addr(r), COMPARE, SWAP);
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return ibv_wr_atomic_fetch_add(qp, rkey, remote_addr(r), ADD);
	}
}

/* The calls for one piece and for several are different code in libmlx5. */
void post_ex_data(struct ibv_qp_ex *qp, const struct request *r, const struct ibv_sge *sge)
{
	struct ibv_data_buf buf[PIECES_MAX];

	for (unsigned i = 0; i < r->pieces; i++)
		buf[i] = (struct ibv_data_buf){ .addr = (void *)(uintptr_t)sge[i].addr,
						.length = sge[i].length };
	if (r->flags & IBV_SEND_INLINE && r->pieces == 1)
		ibv_wr_set_inline_data(qp, buf->addr, buf->length);
	else if (r->flags & IBV_SEND_INLINE)
		ibv_wr_set_inline_data_list(qp, r->pieces, buf);
	else if (r->pieces == 1)
		ibv_wr_set_sge(qp, sge->lkey, sge->addr, sge->length);
	else
		ibv_wr_set_sge_list(qp, r->pieces, sge);
}

static int post_ex(struct queue *q, const struct request *r, const struct ibv_sge *sge,
		   unsigned times)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(q->qp);

	ibv_wr_start(qp);
	for (unsigned i = 0; i < times; i++) {
		qp->wr_flags = r->flags & ~(unsigned)IBV_SEND_INLINE;
		post_ex_operation(q, qp, r);
		if (!is_umr(r))
			post_ex_data(qp, r, sge);
	}
	return ibv_wr_complete(qp);
}

/* @times the same request, in one call.  0 or an errno, and then nothing was posted. */
int try_post(struct queue *q, const struct request *r, unsigned times)
{
	struct ibv_sge sge[PIECES_MAX];
	int error;

	post_pieces(q, r->pieces, r->bytes, sge);
	error = q->api == API_OLD ? post_old(q, r, sge, times) : post_ex(q, r, sge, times);
	if (error)
		return error;
	for (unsigned i = 0; i < times; i++) {
		q->produced += (expect_units(q, r) * UNIT_BYTES + BLOCK_BYTES - 1) / BLOCK_BYTES;
		q->follows_umr = is_umr(r);
	}
	return 0;
}

void post(struct queue *q, const struct request *r, unsigned times)
{
	errno = try_post(q, r, times);
	if (errno)
		fail(r->name);
}

int try_post_recv(struct queue *q, const struct recv_request *r, unsigned times)
{
	struct ibv_sge sge[PIECES_MAX];
	struct ibv_recv_wr wr[TIMES_MAX], *bad;
	int error;

	post_pieces(q, r->pieces, r->bytes, sge);
	for (unsigned i = 0; i < times; i++)
		wr[i] = (struct ibv_recv_wr){ .sg_list = sge, .num_sge = (int)r->pieces,
					      .next = i + 1 < times ? &wr[i + 1] : NULL };
	error = ibv_post_recv(q->qp, wr, &bad);
	q->received += error ? 0 : times;
	return error;
}

void post_recv(struct queue *q, const struct recv_request *r, unsigned times)
{
	errno = try_post_recv(q, r, times);
	if (errno)
		fail(r->name);
}

int try_post_shared(struct ibv_srq *srq, const struct queue *q, const struct recv_request *r)
{
	struct ibv_sge sge[PIECES_MAX];
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = (int)r->pieces }, *bad;

	post_pieces(q, r->pieces, r->bytes, sge);
	return ibv_post_srq_recv(srq, &wr, &bad);
}
