/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What follows an error: flushes, states, and the way back.
 *
 * Rules: expected-statuses.md ("one failing WR with others behind it", "post on a QP in
 * ERR"); device-abi F.3 (order), E.1 (ERR to RESET), E.3 (RESET forgets).
 */
#include <string.h>
#include "harness/check.h"

#define FLUSH IBV_WC_WR_FLUSH_ERR
#define ERR IBV_QPS_ERR
#define RTS IBV_QPS_RTS

TestSuite(flush, .timeout = 60);

static struct work bad_write(const struct pair *p)
{
	struct work w = pair_work(p, IBV_WR_RDMA_WRITE, 64);

	w.rkey ^= 0x3fff0000;
	return w;
}

static void post_own_recvs(struct pair *p, uint64_t first, unsigned count)
{
	for (uint64_t i = 0; i < count; i++) {
		struct work r = { .wr_id = first + i, .sge_count = 1,
			.sge = { { p->ia.addr, 64, p->ia.lkey } } };

		cr_assert_eq(end_post_recv(&p->a, &r), 0);
	}
}

static void await_own_recv_flush(struct pair *p, uint64_t wr_id, int index)
{
	struct done d;

	end_await(&p->a, RECV_CQ, &d);
	check_error("own receive", &d, wr_id, FLUSH, p->ia.qpn, -1, index);
}

/* F.3: the failing request first with its own error, then every later one, signalled or
 * not, in order; receives of both ends flush in order. */
CASE_EACH(flush, the_cause_comes_first_then_all_others_in_order)
{
	struct pair p;
	struct work w;
	struct done d;

	pair_open(&p, where, NULL);
	post_own_recvs(&p, 20, 3);
	for (uint64_t i = 0; i < 3; i++) {
		w = pair_recv(&p, 30 + i, 0, 64);
		must_recv(&p, &w);
	}
	w = bad_write(&p);
	w.wr_id = 1;
	must_post(&p, &w);
	w.rkey = p.ib.rkey;
	for (uint64_t i = 2; i <= 5; i++) {
		w.wr_id = i;
		w.flags = i & 1 ? IBV_SEND_SIGNALED : 0;
		must_post(&p, &w);
	}
	end_await(&p.a, SEND_CQ, &d);
	check_error("cause", &d, 1, IBV_WC_REM_ACCESS_ERR, p.ia.qpn, 0x08, 0);
	for (int i = 2; i <= 5; i++) {
		end_await(&p.a, SEND_CQ, &d);
		check_error("flush", &d, (uint64_t)i, FLUSH, p.ia.qpn, 0x08, i - 1);
	}
	for (int i = 0; i < 3; i++) {
		await_own_recv_flush(&p, 20 + (uint64_t)i, i);
		peer_await(&p.peer, RECV_CQ, &d);
		check_error("responder's", &d, 30 + (uint64_t)i, FLUSH, p.ib.qpn, -1, i);
	}
	check_states("after", &p, ERR, ERR);
	check_quiet(&p);
	pair_close(&p);
}

/* expected-statuses: good requests before the failing one keep their success. */
CASE_EACH(flush, what_succeeded_before_the_error_stays_a_success)
{
	struct pair p;
	struct work w;

	pair_open(&p, where, NULL);
	w = pair_work(&p, IBV_WR_RDMA_WRITE, 64);
	for (w.wr_id = 1; w.wr_id <= 3; w.wr_id++)
		must_post(&p, &w);
	w.rkey ^= 0x3fff0000;
	must_post(&p, &w);
	w.wr_id = 5;
	must_post(&p, &w);
	for (uint64_t i = 1; i <= 3; i++)
		await_ok(&p, i, IBV_WC_RDMA_WRITE);
	await_error(&p, 4, IBV_WC_REM_ACCESS_ERR);
	await_error(&p, 5, FLUSH);
	check_quiet(&p);
	pair_close(&p);
}

/* Errors complete also when not signalled (IBTA 10.7.3.1; rxe-oracle section 7). */
CASE_EACH(flush, an_unsignalled_request_that_fails_completes)
{
	struct pair p;
	struct work w;

	pair_open(&p, where, NULL);
	w = bad_write(&p);
	w.flags = 0;
	must_post(&p, &w);
	await_error(&p, 1, IBV_WC_REM_ACCESS_ERR);
	check_quiet(&p);
	pair_close(&p);
}

/* The error of an unsignalled request is not hidden by successes that were not signalled. */
CASE_EACH(flush, unsignalled_successes_before_an_error_do_not_complete)
{
	struct pair p;
	struct work w;

	pair_open(&p, where, NULL);
	w = pair_work(&p, IBV_WR_RDMA_WRITE, 64);
	w.flags = 0;
	for (w.wr_id = 1; w.wr_id <= 3; w.wr_id++)
		must_post(&p, &w);
	w.rkey ^= 0x3fff0000;
	must_post(&p, &w);
	await_error(&p, 4, IBV_WC_REM_ACCESS_ERR);
	check_quiet(&p);
	pair_close(&p);
}

/* expected-statuses: post_send or post_recv on a QP in ERR flushes, on either end. */
CASE_EACH(flush, posts_after_the_error_flush)
{
	struct pair p;
	struct work w, r;
	struct done d;

	pair_open(&p, where, NULL);
	w = bad_write(&p);
	must_post(&p, &w);
	await_error(&p, 1, IBV_WC_REM_ACCESS_ERR);
	for (w.wr_id = 2; w.wr_id <= 4; w.wr_id++) {
		must_post(&p, &w);
		await_error(&p, w.wr_id, FLUSH);
	}
	post_own_recvs(&p, 20, 1);
	await_own_recv_flush(&p, 20, 0);
	r = pair_recv(&p, 30, 0, 64);
	must_recv(&p, &r);
	await_recv_error(&p, 30, FLUSH);
	w = (struct work){ .opcode = IBV_WR_RDMA_WRITE, .wr_id = 40, .remote_addr = p.ia.addr,
		.rkey = p.ia.rkey, .sge_count = 1, .sge = { { p.ib.addr, 8, p.ib.lkey } } };
	cr_assert_eq(peer_post(&p.peer, &w), 0);
	peer_await(&p.peer, SEND_CQ, &d);
	check_error("responder's send", &d, 40, FLUSH, p.ib.qpn, 0x08, 0);
	pair_close(&p);
}

/* E.1, F.3: modify to ERR flushes what is posted; the peer does not notice. */
CASE_EACH(flush, modify_to_err_flushes_receives_in_order)
{
	struct pair p;

	pair_open(&p, where, NULL);
	post_own_recvs(&p, 20, 5);
	cr_assert_eq(end_to(&p.a, ERR), 0);
	for (int i = 0; i < 5; i++)
		await_own_recv_flush(&p, 20 + (uint64_t)i, i);
	check_states("after", &p, ERR, RTS);
	check_quiet(&p);
	pair_close(&p);
}

/* F.3: a request that waits (for a receive that never comes) is flushed by modify to ERR. */
CASE_EACH(flush, modify_to_err_flushes_a_send_that_waits_for_a_receive)
{
	struct pair p;
	struct work w;

	pair_open(&p, where, NULL);
	w = pair_work(&p, IBV_WR_SEND, 64);
	for (w.wr_id = 1; w.wr_id <= 4; w.wr_id++) {
		w.flags = w.wr_id & 1 ? IBV_SEND_SIGNALED : 0;
		must_post(&p, &w);
	}
	cr_assert_eq(end_to(&p.a, ERR), 0);
	for (uint64_t i = 1; i <= 4; i++)
		await_error(&p, i, FLUSH);
	check_states("after", &p, ERR, RTS);
	check_quiet(&p);
	pair_close(&p);
}

/* E.1: INIT and RTR may go to ERR, and flush receives there. */
CASE_TABLE(flush, init_and_rtr_go_to_err, 2)
{
	struct pair_opts opts;
	struct pair p;
	struct work r;

	pair_defaults(&opts);
	opts.b.state = row ? IBV_QPS_RTR : IBV_QPS_INIT;
	pair_open(&p, where, &opts);
	r = pair_recv(&p, 30, 0, 64);
	must_recv(&p, &r);
	cr_assert_eq(peer_to(&p.peer, ERR), 0);
	await_recv_error(&p, 30, FLUSH);
	cr_expect_eq(peer_state(&p.peer), ERR);
	pair_close(&p);
}

static void reconnect(struct pair *p)
{
	cr_assert_eq(end_to(&p->a, IBV_QPS_RESET), 0);
	cr_assert_eq(peer_to(&p->peer, IBV_QPS_RESET), 0);
	check_states("reset", p, IBV_QPS_RESET, IBV_QPS_RESET);
	pair_connect(p);
}

static void talk(struct pair *p, uint64_t wr_id)
{
	struct work w = pair_work(p, IBV_WR_SEND, 1000), r = pair_recv(p, wr_id, 4096, 1000);

	pattern_fill(p->a.buf, 1000, wr_id);
	w.wr_id = wr_id;
	must_recv(p, &r);
	must_post(p, &w);
	await_ok(p, wr_id, IBV_WC_SEND);
	await_recv_ok(p, wr_id, 1000);
	cr_expect_eq(peer_differs(&p->peer, 4096, 1000, wr_id), -1);
}

/* E.1, E.3: ERR to RESET to RTS gives a QP as good as new, as often as one likes. */
CASE_EACH(flush, err_to_reset_to_rts_works_again)
{
	struct pair p;
	struct work w;

	pair_open(&p, where, NULL);
	for (uint64_t round = 0; round < 5; round++) {
		talk(&p, 100 + round);
		w = bad_write(&p);
		must_post(&p, &w);
		await_error(&p, 1, IBV_WC_REM_ACCESS_ERR);
		reconnect(&p);
	}
	talk(&p, 200);
	pair_close(&p);
}

/* E.3: RESET from RTS discards outstanding work silently and purges its completions. */
CASE_EACH(flush, reset_discards_outstanding_work_silently)
{
	struct pair_opts opts;
	struct pair p;
	struct work w;

	pair_defaults(&opts);
	opts.a.wants_raw = opts.b.wants_raw = false;
	pair_open(&p, where, &opts);
	w = pair_work(&p, IBV_WR_SEND, 64);
	for (unsigned i = 0; i < 4; i++)
		must_post(&p, &w);
	post_own_recvs(&p, 20, 3);
	cr_assert_eq(end_to(&p.a, IBV_QPS_RESET), 0);
	check_quiet(&p);
	reconnect(&p);
	talk(&p, 7);
	pair_close(&p);
}

/* F.3: destroy with outstanding work; no completion afterwards, the peer is not hurt. */
CASE_EACH(flush, destroy_with_outstanding_work_leaves_nothing_behind)
{
	struct pair_opts opts;
	struct pair p;
	struct work w;
	struct done d;

	pair_defaults(&opts);
	opts.a.wants_raw = false;
	pair_open(&p, where, &opts);
	w = pair_work(&p, IBV_WR_SEND, 64);
	for (unsigned i = 0; i < 4; i++)
		must_post(&p, &w);
	post_own_recvs(&p, 20, 3);
	cr_assert_eq(ibv_destroy_qp(p.a.qp), 0);
	p.a.qp = NULL;
	end_glance(&p.a, SEND_CQ, &d);
	check_none("send queue", &d);
	end_glance(&p.a, RECV_CQ, &d);
	check_none("receive queue", &d);
	cr_expect_eq(peer_state(&p.peer), RTS);
	pair_close(&p);
}

/* The golden dump of expected-statuses.md: compare-and-swap, WQE 0, REM_ACCESS. */
CASE_EACH(flush, error_cqe_of_a_refused_cas_is_the_dump_of_real_hardware)
{
	struct pair p;
	struct work w;
	struct done d;
	uint8_t want[10] = { 0, 0, 0x88, 0x13, 0x11, 0, 0, 0, 0, 0 };

	pair_open(&p, where, NULL);
	w = pair_work(&p, IBV_WR_ATOMIC_CMP_AND_SWP, 8);
	w.rkey ^= 0x3fff0000;
	must_post(&p, &w);
	end_await(&p.a, SEND_CQ, &d);
	cr_assert(d.found);
	want[5] = (uint8_t)(p.ia.qpn >> 16);
	want[6] = (uint8_t)(p.ia.qpn >> 8);
	want[7] = (uint8_t)p.ia.qpn;
	cr_expect(!memcmp(d.cqe + 52, want, sizeof want), "bytes 52 to 61");
	cr_expect_eq(d.cqe[63] & 0xf1, 0xd0, "last byte is 0x%02x", d.cqe[63]);
	pair_close(&p);
}
