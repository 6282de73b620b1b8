/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When the other side does not answer, or is not ready to receive.
 *
 * Rules: expected-statuses.md (RETRY_EXC for a peer that is absent, not yet RTR or in ERR;
 * RNR_RETRY_EXC; "fails after retry_cnt + 1 tries"; rnr_retry 7 = for ever); device-abi F.5,
 * E.4 (states), IBTA 9.7.5.2.8 and 9.7.6.
 */
#include <string.h>
#include "harness/check.h"

#define WRITE IBV_WR_RDMA_WRITE

TestSuite(retry, .timeout = 60);

static void quick_defaults(struct pair_opts *opts)
{
	pair_defaults(opts);
	opts->a.timeout = 8;		/* 1 ms */
	opts->a.retry = 2;
}

/* ---- a peer that does not answer ---- */

enum silence { S_RESET, S_INIT, S_ERR, S_DESTROYED, S_OTHER_QPN, S_PSN_AHEAD, S_PSN_BEHIND,
	       S_PSN_FAR, S_OTHER_SGID };

static const struct {
	const char *name;
	enum silence how;
	enum ibv_qp_state b;		/* of its QP afterwards */
} silences[] = {
	{ "in RESET", S_RESET, IBV_QPS_RESET },
	{ "in INIT", S_INIT, IBV_QPS_INIT },
	{ "in ERR", S_ERR, IBV_QPS_ERR },
	{ "destroyed", S_DESTROYED, IBV_QPS_UNKNOWN },
	{ "with another number", S_OTHER_QPN, IBV_QPS_RTS },
	{ "that expects a later PSN", S_PSN_AHEAD, IBV_QPS_RTS },
	{ "that expects an earlier PSN", S_PSN_BEHIND, IBV_QPS_RTS },
	{ "that expects a PSN far away", S_PSN_FAR, IBV_QPS_RTS },
	{ "that is connected to another GID", S_OTHER_SGID, IBV_QPS_RTS },
};

static void silence_options(enum silence how, struct pair_opts *opts)
{
	if (how == S_RESET)
		opts->b.state = IBV_QPS_RESET;
	if (how == S_INIT)
		opts->b.state = IBV_QPS_INIT;
	if (how == S_ERR)
		opts->b.state = IBV_QPS_ERR;
	if (how == S_OTHER_QPN)
		opts->a.dest_qpn = 0xfffff0;
	if (how == S_PSN_AHEAD)
		opts->b.rq_psn += 5;
	if (how == S_PSN_BEHIND)
		opts->b.rq_psn -= 5;
	if (how == S_PSN_FAR)
		opts->b.rq_psn += 0x900000;
}

/* The requester's first failing status is RETRY_EXC, once, and nothing was written. */
CASE_TABLE(retry, retries_run_out_at_a_peer_that_is_silent, ROWS(silences))
{
	struct pair_opts opts;
	struct pair p;
	struct work w;
	struct done d;
	uint8_t got[64], zero[64] = { 0 };

	quick_defaults(&opts);
	silence_options(silences[row].how, &opts);
	pair_open_unconnected(&p, where, &opts);
	if (silences[row].how == S_OTHER_SGID)
		p.ia.gid.raw[15] ^= 1;		/* a speaks for another than it told b of */
	pair_connect(&p);
	if (silences[row].how == S_DESTROYED)
		cr_assert_eq(peer_destroy_qp(&p.peer), 0);
	pattern_fill(p.a.buf, 64, 1);
	w = pair_work(&p, WRITE, 64);
	must_post(&p, &w);
	w.wr_id = 2;
	must_post(&p, &w);
	end_await(&p.a, SEND_CQ, &d);
	check_error(silences[row].name, &d, 1, IBV_WC_RETRY_EXC_ERR, p.ia.qpn, 0x08, 0);
	await_error(&p, 2, IBV_WC_WR_FLUSH_ERR);
	cr_expect_eq(end_state(&p.a), IBV_QPS_ERR);
	if (silences[row].how != S_DESTROYED)
		cr_expect_eq(peer_state(&p.peer), silences[row].b, "%s", silences[row].name);
	peer_read(&p.peer, 0, got, 64);
	cr_expect(!memcmp(got, zero, 64), "%s: memory was written", silences[row].name);
	pair_close(&p);
}

static const enum ibv_wr_opcode all_ops[] = {
	IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
};

/* The same for every kind of request, long and short. */
CASE_TABLE(retry, every_kind_of_request_runs_out_of_retries, ROWS(all_ops))
{
	struct pair_opts opts;
	struct pair p;
	struct work w;

	quick_defaults(&opts);
	opts.b.state = IBV_QPS_INIT;
	pair_open(&p, where, &opts);
	w = pair_work(&p, all_ops[row], row == 3 ? 8 : 20000);
	must_post(&p, &w);
	await_error(&p, 1, IBV_WC_RETRY_EXC_ERR);
	check_quiet(&p);
	pair_close(&p);
}

/* F.5: retry_cnt 0 gives one try. */
CASE_EACH(retry, retry_count_0_fails_after_the_first_timeout)
{
	struct pair_opts opts;
	struct pair p;
	struct work w;

	quick_defaults(&opts);
	opts.a.retry = 0;
	opts.b.state = IBV_QPS_INIT;
	pair_open(&p, where, &opts);
	w = pair_work(&p, WRITE, 64);
	must_post(&p, &w);
	await_error(&p, 1, IBV_WC_RETRY_EXC_ERR);
	pair_close(&p);
}

/* F.5: with retries left a peer that wakes up late is reached. */
CASE_EACH(retry, a_peer_that_becomes_ready_in_time_is_reached)
{
	struct pair_opts opts;
	struct pair p;
	struct work w;

	pair_defaults(&opts);
	opts.a.timeout = 15;		/* 134 ms, 8 tries */
	opts.b.state = IBV_QPS_RESET;
	pair_open(&p, where, &opts);
	pattern_fill(p.a.buf, 3000, 4);
	w = pair_work(&p, WRITE, 3000);
	must_post(&p, &w);
	cr_assert_eq(peer_connect_to(&p.peer, &p.ia, IBV_QPS_RTS), 0);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	cr_expect_eq(peer_differs(&p.peer, 0, 3000, 4), -1);
	pair_close(&p);
}

/* expected-statuses: timeout 0 waits for ever; modify to ERR ends it. */
CASE_EACH(retry, timeout_0_waits_for_ever)
{
	struct pair_opts opts;
	struct pair p;
	struct work w;
	struct done d;

	quick_defaults(&opts);
	opts.a.timeout = 0;
	opts.b.state = IBV_QPS_INIT;
	pair_open(&p, where, &opts);
	w = pair_work(&p, WRITE, 64);
	must_post(&p, &w);
	end_glance(&p.a, SEND_CQ, &d);
	check_none("while waiting", &d);
	cr_assert_eq(end_to(&p.a, IBV_QPS_ERR), 0);
	await_error(&p, 1, IBV_WC_WR_FLUSH_ERR);
	pair_close(&p);
}

/* ---- a peer that has no receive ---- */

static const struct { uint8_t retries, timer; enum ibv_wr_opcode op; } rnr_rows[] = {
	{ 0, 1, IBV_WR_SEND }, { 0, 1, IBV_WR_RDMA_WRITE_WITH_IMM },
	{ 1, 1, IBV_WR_SEND }, { 3, 14, IBV_WR_SEND }, { 6, 12, IBV_WR_SEND_WITH_IMM },
	{ 2, 10, IBV_WR_RDMA_WRITE_WITH_IMM },
};

/* RNR_RETRY_EXC at the requester; the responder's QP stays as it is. */
CASE_TABLE(retry, rnr_retries_run_out_without_a_receive, ROWS(rnr_rows))
{
	struct pair_opts opts;
	struct pair p;
	struct work w;

	pair_defaults(&opts);
	opts.a.rnr_retry = rnr_rows[row].retries;
	opts.b.min_rnr_timer = rnr_rows[row].timer;
	pair_open(&p, where, &opts);
	w = pair_work(&p, rnr_rows[row].op, 64);
	must_post(&p, &w);
	w.wr_id = 2;
	must_post(&p, &w);
	await_error(&p, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	await_error(&p, 2, IBV_WC_WR_FLUSH_ERR);
	check_states("after", &p, IBV_QPS_ERR, IBV_QPS_RTS);
	check_quiet(&p);
	pair_close(&p);
}

/* rnr_retry 7 retries for ever: a receive posted late is used, the data arrives once. */
CASE_TABLE(retry, rnr_retry_7_waits_for_a_late_receive, 3)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_SEND, IBV_WR_SEND, IBV_WR_RDMA_WRITE_WITH_IMM,
	};
	struct pair_opts opts;
	struct pair p;
	struct work w, r;
	struct done d;

	pair_defaults(&opts);
	opts.a.timeout = 14;
	opts.b.min_rnr_timer = 12;
	pair_open(&p, where, &opts);
	pattern_fill(p.a.buf, 5000, 8);
	w = pair_work(&p, ops[row], row == 1 ? 5000 : 64);
	must_post(&p, &w);
	for (unsigned i = 0; i < 5; i++) {
		end_glance(&p.a, SEND_CQ, &d);
		check_none("before the receive", &d);
	}
	r = pair_recv(&p, 3, 0, 5000);
	must_recv(&p, &r);
	await_ok(&p, 1, row == 2 ? IBV_WC_RDMA_WRITE : IBV_WC_SEND);
	peer_await(&p.peer, RECV_CQ, &d);
	check_ok("receive", &d, 3, row == 2 ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
	cr_expect_eq(peer_differs(&p.peer, 0, row == 1 ? 5000 : 64, 8), -1);
	check_states("after", &p, IBV_QPS_RTS, IBV_QPS_RTS);
	check_quiet(&p);
	pair_close(&p);
}

/* Several sends and too few receives: the ones that fit succeed first (IBTA 9.7.5.2.8). */
CASE_EACH(retry, sends_up_to_the_receives_posted_succeed)
{
	struct pair_opts opts;
	struct pair p;
	struct work w, r;

	pair_defaults(&opts);
	opts.a.rnr_retry = 0;
	pair_open(&p, where, &opts);
	for (uint64_t i = 0; i < 3; i++) {
		r = pair_recv(&p, i, 0, 64);
		must_recv(&p, &r);
	}
	w = pair_work(&p, IBV_WR_SEND, 64);
	for (w.wr_id = 0; w.wr_id < 5; w.wr_id++)
		must_post(&p, &w);
	for (uint64_t i = 0; i < 3; i++)
		await_ok(&p, i, IBV_WC_SEND);
	await_error(&p, 3, IBV_WC_RNR_RETRY_EXC_ERR);
	await_error(&p, 4, IBV_WC_WR_FLUSH_ERR);
	for (uint64_t i = 0; i < 3; i++)
		await_recv_ok(&p, i, 64);
	pair_close(&p);
}

/* A flow of sends whose receives are always late: nothing is lost, doubled or reordered. */
CASE_EACH(retry, a_flow_of_late_receives_stays_in_order)
{
	struct pair p;
	struct work w, r;
	struct done d;

	pair_open(&p, where, NULL);
	for (uint32_t i = 0; i < 40; i++) {
		w = pair_work(&p, IBV_WR_SEND_WITH_IMM, 100);
		w.wr_id = i;
		w.imm = i;
		must_post(&p, &w);
	}
	for (uint32_t i = 0; i < 40; i++) {
		r = pair_recv(&p, i, 0, 100);
		must_recv(&p, &r);
		await_ok(&p, i, IBV_WC_SEND);
		peer_await(&p.peer, RECV_CQ, &d);
		check_ok("receive", &d, i, IBV_WC_RECV);
		cr_assert_eq(be32toh(d.wc.imm_data), i);
	}
	check_quiet(&p);
	pair_close(&p);
}

/* ---- a responder that is only in RTR ---- */

/* E.4, expected-statuses: RTR receives; the first packet raises COMM_EST. */
CASE_EACH(retry, a_responder_in_rtr_works_and_raises_comm_est)
{
	struct pair_opts opts;
	struct pair p;
	struct work w, r;

	pair_defaults(&opts);
	opts.b.state = IBV_QPS_RTR;
	pair_open(&p, where, &opts);
	w = pair_work(&p, WRITE, 64);
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	cr_expect(peer_event(&p.peer, IBV_EVENT_COMM_EST, AWAIT_MS), "no COMM_EST");
	r = pair_recv(&p, 2, 0, 64);
	must_recv(&p, &r);
	w = pair_work(&p, IBV_WR_SEND, 64);
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_SEND);
	await_recv_ok(&p, 2, 64);
	w = pair_work(&p, IBV_WR_RDMA_READ, 64);
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_RDMA_READ);
	check_states("after", &p, IBV_QPS_RTS, IBV_QPS_RTR);
	cr_expect(!peer_event(&p.peer, IBV_EVENT_COMM_EST, 0), "COMM_EST twice");
	pair_close(&p);
}

/* The counter-example: a responder in RTS raises none. */
CASE_EACH(retry, a_responder_in_rts_raises_no_comm_est)
{
	struct pair p;
	struct work w;

	pair_open(&p, where, NULL);
	w = pair_work(&p, WRITE, 64);
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	cr_expect(!peer_event(&p.peer, IBV_EVENT_COMM_EST, 0));
	pair_close(&p);
}
