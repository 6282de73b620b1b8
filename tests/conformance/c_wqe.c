/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work requests written by hand into the send queue: good ones, and damaged ones.
 *
 * Rules: device-abi C.1 to C.5 (formats), F.1 row 9 (an invalid WQE is LOC_QP_OP, vendor
 * 0x68, nothing on the wire), expected-statuses ("inline flag on READ").  A damaged queue
 * must never hurt the process or another QP.
 */
#include <errno.h>
#include <string.h>
#include "harness/check.h"
#include "harness/raw.h"

#define SIGNALED 0x08
#define OP_WRITE 0x08
#define OP_SEND 0x0a
#define OP_READ 0x10
#define OP_CAS 0x11

TestSuite(wqe, .timeout = 60);

/* ---- bodies ---- */

typedef unsigned body_fn(struct raw_wqe *w, const struct pair *p);

static unsigned body_none(struct raw_wqe *w, const struct pair *p)
{
	(void)w;
	(void)p;
	return 0;
}

static unsigned body_remote(struct raw_wqe *w, const struct pair *p)
{
	return raw_seg_remote(w, 0, p->ib.addr, p->ib.rkey);
}

static unsigned body_rdma(struct raw_wqe *w, const struct pair *p)
{
	return raw_seg_data(w, body_remote(w, p), p->ia.addr, 64, p->ia.lkey);
}

static unsigned body_rdma_inline(struct raw_wqe *w, const struct pair *p)
{
	return raw_seg_inline(w, body_remote(w, p), 8);
}

static unsigned body_rdma_inline_long(struct raw_wqe *w, const struct pair *p)
{
	return raw_seg_inline(w, body_remote(w, p), 1000);
}

static unsigned body_rdma_inline_huge(struct raw_wqe *w, const struct pair *p)
{
	return raw_seg_inline(w, body_remote(w, p), 0x7fffffff);
}

/* A second piece that claims what the first has left over, and more. */
static unsigned body_inline_twice(struct raw_wqe *w, const struct pair *p)
{
	return raw_seg_inline(w, raw_seg_inline(w, body_remote(w, p), 12), 13);
}

static unsigned body_atomic(struct raw_wqe *w, const struct pair *p, uint32_t bytes)
{
	unsigned at = body_remote(w, p);

	memset(w->body + at * 16, 0, 16);
	return raw_seg_data(w, at + 1, p->ia.addr, bytes, p->ia.lkey);
}

static unsigned body_atomic_8(struct raw_wqe *w, const struct pair *p)
{
	return body_atomic(w, p, 8);
}

static unsigned body_atomic_4(struct raw_wqe *w, const struct pair *p)
{
	return body_atomic(w, p, 4);
}

static unsigned body_atomic_16(struct raw_wqe *w, const struct pair *p)
{
	return body_atomic(w, p, 16);
}

static unsigned body_atomic_no_data(struct raw_wqe *w, const struct pair *p)
{
	unsigned at = body_remote(w, p);

	memset(w->body + at * 16, 0, 16);
	return at + 1;
}

static unsigned body_atomic_inline(struct raw_wqe *w, const struct pair *p)
{
	return raw_seg_inline(w, body_atomic_no_data(w, p), 8);
}

#define WHOLE 0xff	/* ds as the body has it */

struct wqe_row {
	const char *name;
	uint8_t opcode, opmod, ds;
	body_fn *body;
	uint16_t index_error;
	uint32_t qpn_error;
	uint16_t blocks;		/* published; 0: one */
};

static const struct wqe_row bad_rows[] = {
	{ "unknown opcode", 0x3c, 0, WHOLE, body_rdma, 0, 0, 0 },
	{ "opcode 0xff", 0xff, 0, WHOLE, body_rdma, 0, 0, 0 },
	{ "LSO on RC", 0x0e, 0, WHOLE, body_rdma, 0, 0, 0 },
	{ "opcode modifier on WRITE", OP_WRITE, 0x55, WHOLE, body_rdma, 0, 0, 0 },
	{ "ds 0", OP_WRITE, 0, 0, body_rdma, 0, 0, 0 },
	{ "WRITE of ds 1", OP_WRITE, 0, 1, body_none, 0, 0, 0 },
	{ "READ of ds 1", OP_READ, 0, 1, body_none, 0, 0, 0 },
	{ "CAS of ds 2", OP_CAS, 0, 2, body_remote, 0, 0, 0 },
	{ "ds beyond what is published", OP_WRITE, 0, 40, body_rdma, 0, 0, 1 },
	{ "ds 63 in a ring of fewer units", OP_WRITE, 0, 63, body_rdma, 0, 0, 1 },
	{ "inline past the end", OP_WRITE, 0, WHOLE, body_rdma_inline_long, 0, 0, 0 },
	{ "inline of 2 GiB", OP_WRITE, 0, WHOLE, body_rdma_inline_huge, 0, 0, 0 },
	{ "second inline past the end", OP_WRITE, 0, WHOLE, body_inline_twice, 0, 0, 0 },
	{ "inline on READ", OP_READ, 0, WHOLE, body_rdma_inline, 0, 0, 0 },
	{ "inline on CAS", OP_CAS, 0, WHOLE, body_atomic_inline, 0, 0, 0 },
	{ "CAS without a result", OP_CAS, 0, WHOLE, body_atomic_no_data, 0, 0, 0 },
	{ "CAS with 4 bytes of result", OP_CAS, 0, WHOLE, body_atomic_4, 0, 0, 0 },
	{ "CAS with 16 bytes of result", OP_CAS, 0, WHOLE, body_atomic_16, 0, 0, 0 },
	{ "another QP's number", OP_WRITE, 0, WHOLE, body_rdma, 0, 1, 0 },
	{ "an index one ahead", OP_WRITE, 0, WHOLE, body_rdma, 1, 0, 0 },
	{ "an index one behind", OP_WRITE, 0, WHOLE, body_rdma, 0xffff, 0, 0 },
};

static const struct wqe_row good_rows[] = {
	{ "WRITE", OP_WRITE, 0, WHOLE, body_rdma, 0, 0, 0 },
	{ "READ", OP_READ, 0, WHOLE, body_rdma, 0, 0, 0 },
	{ "CAS", OP_CAS, 0, WHOLE, body_atomic_8, 0, 0, 0 },
	{ "WRITE inline", OP_WRITE, 0, WHOLE, body_rdma_inline, 0, 0, 0 },
	{ "WRITE of nothing", OP_WRITE, 0, WHOLE, body_remote, 0, 0, 0 },
	{ "NOP", 0x00, 0, WHOLE, body_none, 0, 0, 0 },
};

static void write_row(struct raw_sq *sq, const struct pair *p, const struct wqe_row *r)
{
	struct raw_wqe w = { .opcode = r->opcode, .opmod = r->opmod, .fm_ce_se = SIGNALED,
		.index_error = r->index_error, .qpn_error = r->qpn_error };

	w.units = r->body(&w, p);
	w.ds = r->ds == WHOLE ? (uint8_t)(1 + w.units) : r->ds;
	raw_sq_write(sq, &w);
	raw_sq_publish(sq, r->blocks ? r->blocks : (uint16_t)((w.units + 1 + 3) / 4), 1);
}

static void open_raw(struct pair *p, enum placement where, struct raw_sq *sq)
{
	struct pair_opts opts;
	int err;

	pair_defaults(&opts);
	opts.a.cap = (struct ibv_qp_cap){ .max_send_wr = 1, .max_recv_wr = 1,
					  .max_send_sge = 1, .max_recv_sge = 1 };
	pair_open(p, where, &opts);
	err = raw_sq_open(sq, p->a.qp);
	cr_assert_eq(err, 0, "mlx5dv_init_obj: %s", strerror(err));
}

/* libmlx5 knows no wr_id of what was written by hand. */
static void await_any_ok(struct pair *p)
{
	struct done d;

	end_await(&p->a, SEND_CQ, &d);
	cr_assert(d.found);
	cr_assert_eq(d.wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(d.wc.status));
}

/* Two other ends on the same context still talk: the damage stays where it is. */
static void check_neighbour(struct pair *p)
{
	struct end x, y;
	struct end_info ix, iy;
	struct done d;

	cr_assert_eq(end_open(&x, &p->a.opts, &p->a), 0);
	cr_assert_eq(end_open(&y, &p->a.opts, &p->a), 0);
	x.opts.sq_psn = x.opts.rq_psn = y.opts.sq_psn = y.opts.rq_psn = 7;
	end_describe(&x, &ix);
	end_describe(&y, &iy);
	cr_assert_eq(end_connect(&x, &iy), 0);
	cr_assert_eq(end_connect(&y, &ix), 0);
	for (uint64_t i = 0; i < 3; i++) {
		struct work w = { .opcode = IBV_WR_RDMA_WRITE, .wr_id = i,
			.flags = IBV_SEND_SIGNALED, .remote_addr = iy.addr, .rkey = iy.rkey,
			.sge_count = 1, .sge = { { ix.addr, 100, ix.lkey } } };

		cr_assert_eq(end_post(&x, &w), 0);
		end_await(&x, SEND_CQ, &d);
		check_ok("neighbour", &d, i, IBV_WC_RDMA_WRITE);
	}
	end_close(&x);
	end_close(&y);
}

/* Formats of C.2 and C.3, written by hand and rung through the UAR page. */
CASE_TABLE(wqe, a_request_written_by_hand_succeeds, ROWS(good_rows))
{
	struct raw_sq sq;
	struct pair p;
	struct done d;

	open_raw(&p, where, &sq);
	write_row(&sq, &p, &good_rows[row]);
	end_await(&p.a, SEND_CQ, &d);
	cr_assert(d.found, "%s: no completion", good_rows[row].name);
	cr_expect_eq(d.wc.status, IBV_WC_SUCCESS, "%s: %s", good_rows[row].name,
		     ibv_wc_status_str(d.wc.status));
	check_states(good_rows[row].name, &p, IBV_QPS_RTS, IBV_QPS_RTS);
	pair_close(&p);
}

/* F.1 row 9.  The error CQE names the queue's slot and the opcode that stood there. */
CASE_TABLE(wqe, a_damaged_request_is_loc_qp_op, ROWS(bad_rows))
{
	const struct wqe_row *r = &bad_rows[row];
	struct raw_sq sq;
	struct pair p;
	struct done d;

	open_raw(&p, where, &sq);
	write_row(&sq, &p, r);
	end_await(&p.a, SEND_CQ, &d);
	check_error(r->name, &d, d.wc.wr_id, IBV_WC_LOC_QP_OP_ERR, p.ia.qpn, r->opcode, 0);
	check_states(r->name, &p, IBV_QPS_ERR, IBV_QPS_RTS);
	check_neighbour(&p);
	pair_close(&p);
}

/* A good request behind the damaged one is flushed, a good one before it succeeds. */
CASE_EACH(wqe, damage_in_the_middle_fails_only_from_there_on)
{
	struct raw_sq sq;
	struct pair p;
	struct done d;

	open_raw(&p, where, &sq);
	write_row(&sq, &p, &good_rows[0]);
	await_any_ok(&p);
	write_row(&sq, &p, &bad_rows[0]);
	write_row(&sq, &p, &good_rows[0]);
	end_await(&p.a, SEND_CQ, &d);
	check_error("damaged", &d, d.wc.wr_id, IBV_WC_LOC_QP_OP_ERR, p.ia.qpn, 0x3c, 1);
	end_await(&p.a, SEND_CQ, &d);
	check_error("behind", &d, d.wc.wr_id, IBV_WC_WR_FLUSH_ERR, p.ia.qpn, OP_WRITE, 2);
	pair_close(&p);
}

/* A request with hundreds of zero bytes around: a record that runs ahead of what was
 * written makes the device read a WQE of ds 0. */
CASE_EACH(wqe, a_record_ahead_of_the_requests_is_loc_qp_op)
{
	struct raw_sq sq;
	struct pair p;
	struct done d;

	open_raw(&p, where, &sq);
	memset(sq.qp.sq.buf, 0, (size_t)sq.qp.sq.wqe_cnt * 64);
	raw_sq_publish(&sq, 2, 1);
	end_await(&p.a, SEND_CQ, &d);
	check_error("zeros", &d, d.wc.wr_id, IBV_WC_LOC_QP_OP_ERR, p.ia.qpn, 0, 0);
	check_neighbour(&p);
	pair_close(&p);
}

/* C.5, style 5.5 step 6: a record that moves by more than the ring holds, or backwards, is
 * no producer index; the QP is lost, and says so. */
CASE_TABLE(wqe, a_record_that_jumps_is_fatal_for_its_qp, 4)
{
	static const uint16_t jumps[] = { 0xffff, 0x8000, 1000, 0x7fff };
	struct raw_sq sq;
	struct pair p;

	open_raw(&p, where, &sq);
	write_row(&sq, &p, &good_rows[0]);
	await_any_ok(&p);
	cr_assert_lt(sq.qp.sq.wqe_cnt, 1000);
	raw_sq_publish(&sq, jumps[row], 1);
	cr_expect(end_event(&p.a, IBV_EVENT_QP_FATAL, AWAIT_MS), "jump 0x%x", jumps[row]);
	cr_expect_eq(end_state(&p.a), IBV_QPS_ERR);
	check_neighbour(&p);
	pair_close(&p);
}

/* The same for the receive record: more receives than the queue holds. */
CASE_EACH(wqe, a_receive_record_that_jumps_is_fatal_for_its_qp)
{
	struct raw_sq sq;
	struct pair p;
	struct work w;

	open_raw(&p, where, &sq);
	__atomic_store_n(&sq.qp.dbrec[0], htobe32(0x4000), __ATOMIC_RELEASE);
	w = (struct work){ .opcode = IBV_WR_SEND, .sge_count = 1,
		.sge = { { p.ib.addr, 8, p.ib.lkey } } };
	cr_assert_eq(peer_post(&p.peer, &w), 0);
	cr_expect(end_event(&p.a, IBV_EVENT_QP_FATAL, AWAIT_MS));
	cr_expect_eq(end_state(&p.a), IBV_QPS_ERR);
	check_neighbour(&p);
	pair_close(&p);
}

/* Garbage of every kind, many times over, never hurts the process. */
Test(wqe, random_bytes_in_the_queue_end_in_an_error_and_nothing_worse)
{
	uint64_t seed = 1;
	struct raw_sq sq;
	struct pair p;

	open_raw(&p, ONE_THREAD, &sq);
	for (unsigned round = 0; round < 100; round++) {
		uint8_t *ring = sq.qp.sq.buf;
		struct done d;

		pattern_fill(ring, (size_t)sq.qp.sq.wqe_cnt * 64, seed++);
		if (round % 2) {	/* get past the checks of the control segment */
			uint32_t ctrl[2] = { htobe32(ring[3]),
					     htobe32(p.ia.qpn << 8 | (ring[7] & 15)) };

			memcpy(ring, ctrl, sizeof ctrl);
		}
		raw_sq_publish(&sq, 4, 1);
		while (end_glance(&p.a, SEND_CQ, &d), d.found)
			;
		cr_assert_eq(end_to(&p.a, IBV_QPS_RESET), 0);
		cr_assert_eq(peer_to(&p.peer, IBV_QPS_RESET), 0);
		sq.next = 0;
		pair_connect(&p);
	}
	check_neighbour(&p);
	pair_close(&p);
}
