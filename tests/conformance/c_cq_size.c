/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much a CQ holds: creation limits, resize, overrun, sharing.
 *
 * Rules: device-abi B.9 (create_cq: the ring is the next power of two above cqe), C.9.3
 * (overrun), C.9.5 (resize), F.1 row 20; expected-statuses ("CQ overrun").
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "harness/check.h"

TestSuite(cq_size, .timeout = 60);

/* ---- creation ---- */

Test(cq_size, a_cq_holds_at_least_what_was_asked)
{
	static const int asked[] = { 1, 2, 3, 5, 64, 100, 1000, 4095, 4096 };
	struct ibv_context *c = device_open();

	cr_assert_not_null(c);
	for (unsigned i = 0; i < ROWS(asked); i++) {
		struct ibv_cq *cq = ibv_create_cq(c, asked[i], NULL, NULL, 0);

		cr_assert_not_null(cq, "%d: %s", asked[i], strerror(errno));
		cr_expect_geq(cq->cqe, asked[i]);
		cr_expect_eq((cq->cqe + 1) & cq->cqe, 0, "%d gives %d", asked[i], cq->cqe);
		cr_expect_eq(ibv_destroy_cq(cq), 0);
	}
	ibv_close_device(c);
}

Test(cq_size, creation_limits_are_refused)
{
	struct ibv_context *c = device_open();
	struct ibv_device_attr attr;

	cr_assert_not_null(c);
	cr_assert_eq(ibv_query_device(c, &attr), 0);
	const struct { const char *name; int cqe, vector; } rows[] = {
		{ "cqe 0", 0, 0 }, { "cqe -1", -1, 0 }, { "max_cqe + 1", attr.max_cqe + 1, 0 },
		{ "vector -1", 16, -1 }, { "vector num_comp_vectors", 16, c->num_comp_vectors },
	};

	for (unsigned i = 0; i < ROWS(rows); i++) {
		errno = 0;
		cr_expect_null(ibv_create_cq(c, rows[i].cqe, NULL, NULL, rows[i].vector), "%s",
			       rows[i].name);
		cr_expect_eq(errno, EINVAL, "%s: %s", rows[i].name, strerror(errno));
	}
	for (int v = 0; v < c->num_comp_vectors && v < 8; v++) {
		struct ibv_cq *cq = ibv_create_cq(c, 16, NULL, NULL, v);

		cr_expect_not_null(cq, "vector %d", v);
		ibv_destroy_cq(cq);
	}
	ibv_close_device(c);
}

/* Entries of 64 bytes or of 128, as the environment says in digits; nothing else is taken. */
Test(cq_size, the_environment_chooses_the_size_of_entries)
{
	static const struct { const char *text; bool is_good; } rows[] = {
		{ "64", true }, { "128", true }, { " 128", true }, { "128 bytes", true },
		{ "32", false }, { "256", false }, { "0", false }, { "-64", false }, { "", false },
	};
	struct ibv_context *c = device_open();

	cr_assert_not_null(c);
	for (unsigned i = 0; i < ROWS(rows); i++) {
		struct ibv_cq *cq;

		cr_assert_eq(setenv("MLX5_CQE_SIZE", rows[i].text, 1), 0);
		errno = 0;
		cq = ibv_create_cq(c, 16, NULL, NULL, 0);
		cr_expect_eq(!!cq, rows[i].is_good, "\"%s\": %s", rows[i].text, strerror(errno));
		cr_expect_eq(errno, rows[i].is_good ? 0 : EINVAL, "\"%s\"", rows[i].text);
		cr_expect(!cq || !ibv_destroy_cq(cq));
	}
	cr_assert_eq(unsetenv("MLX5_CQE_SIZE"), 0);
	ibv_close_device(c);
}

/* ---- resize ---- */

static void post_writes(struct pair *p, uint64_t first, unsigned count)
{
	struct work w = pair_work(p, IBV_WR_RDMA_WRITE, 8);

	for (w.wr_id = first; w.wr_id < first + count; w.wr_id++)
		must_post(p, &w);
}

static void await_writes(struct pair *p, uint64_t first, unsigned count)
{
	for (uint64_t i = first; i < first + count; i++)
		await_ok(p, i, IBV_WC_RDMA_WRITE);
}

/* Wait until everything posted so far is done, without polling: the last request is a READ
 * of a byte that the other end has just set, and its arrival in memory is watched. */
static void settle(struct pair *p, uint8_t tag)
{
	struct work w = pair_work(p, IBV_WR_RDMA_READ, 1);
	volatile uint8_t *flag = p->a.buf + 100;
	uint64_t deadline = now_ms() + AWAIT_MS;

	peer_fill(&p->peer, 4096, 1, tag);
	w.sge[0].addr += 100;
	w.remote_addr += 4096;
	w.wr_id = 1000 + tag;
	*flag = 0;
	cr_assert_eq(end_post(&p->a, &w), 0);
	while (pattern_differs((const void *)flag, 1, tag) != -1 && now_ms() < deadline)
		sched_yield();
	cr_assert_eq(pattern_differs((const void *)flag, 1, tag), -1);
}

/* C.9.5: completions not polled yet survive growing and shrinking, in order. */
CASE_EACH(cq_size, unread_completions_survive_a_resize)
{
	static const int sizes[] = { 1000, 63, 500, 40, 2000, 63 };
	struct pair_opts opts;
	struct pair p;

	pair_defaults(&opts);
	opts.a.cqe = 63;
	opts.a.wants_raw = false;
	pair_open(&p, where, &opts);
	for (unsigned i = 0; i < ROWS(sizes); i++) {
		uint8_t tag = (uint8_t)(i + 1);

		post_writes(&p, 10, 20);
		settle(&p, tag);
		cr_assert_eq(ibv_resize_cq(p.a.cq[SEND_CQ], sizes[i]), 0, "to %d", sizes[i]);
		cr_expect_geq(p.a.cq[SEND_CQ]->cqe, sizes[i]);
		post_writes(&p, 30, 5);
		await_writes(&p, 10, 20);
		await_ok(&p, 1000u + tag, IBV_WC_RDMA_READ);
		await_writes(&p, 30, 5);
	}
	check_quiet(&p);
	pair_close(&p);
}

/* C.9.5: too small for what is unread is EINVAL, and the CQ is as it was. */
CASE_EACH(cq_size, a_resize_below_what_is_unread_is_einval)
{
	struct pair_opts opts;
	struct pair p;

	pair_defaults(&opts);
	opts.a.cqe = 255;
	pair_open(&p, where, &opts);
	post_writes(&p, 10, 30);
	settle(&p, 1);
	cr_expect_eq(ibv_resize_cq(p.a.cq[SEND_CQ], 7), EINVAL);
	cr_expect_eq(p.a.cq[SEND_CQ]->cqe, 255);
	await_writes(&p, 10, 30);
	await_ok(&p, 1001, IBV_WC_RDMA_READ);
	cr_expect_eq(ibv_resize_cq(p.a.cq[SEND_CQ], 7), 0);
	post_writes(&p, 50, 5);
	await_writes(&p, 50, 5);
	pair_close(&p);
}

Test(cq_size, resize_limits_and_the_same_size)
{
	struct ibv_context *c = device_open();
	struct ibv_device_attr attr;
	struct ibv_cq *cq;

	cr_assert_not_null(c);
	cr_assert_eq(ibv_query_device(c, &attr), 0);
	cq = ibv_create_cq(c, 100, NULL, NULL, 0);
	cr_assert_not_null(cq);
	cr_expect_eq(ibv_resize_cq(cq, 0), EINVAL);
	cr_expect_eq(ibv_resize_cq(cq, attr.max_cqe + 1), EINVAL);
	cr_expect_eq(ibv_resize_cq(cq, cq->cqe), 0, "the same size");
	cr_expect_eq(cq->cqe, 127);
	cr_expect_eq(ibv_resize_cq(cq, 3), 0);
	cr_expect_eq(cq->cqe, 3);
	cr_expect_eq(ibv_destroy_cq(cq), 0);
	ibv_close_device(c);
}

/* Resize while completions stream in: each comes once, in order, whatever the moment. */
CASE_EACH(cq_size, resizes_under_load_lose_and_double_nothing)
{
	uint64_t posted = 0, polled = 0;
	struct pair p;

	pair_open(&p, where, NULL);
	p.a.opts.wants_raw = false;
	while (polled < 3000) {
		while (posted - polled < 40) {
			post_writes(&p, posted, 1);
			posted++;
		}
		if (polled % 64 == 0)
			cr_assert_eq(ibv_resize_cq(p.a.cq[SEND_CQ], polled % 128 ? 127 : 511), 0);
		await_writes(&p, polled, 1);
		polled++;
	}
	await_writes(&p, polled, (unsigned)(posted - polled));
	check_quiet(&p);
	pair_close(&p);
}

/* C.9.5 with C.9.4: indices move by one in a resize; what is unread and solicited still
 * raises the event of a later arming, and what is read does not. */
CASE_TABLE(cq_size, arming_after_a_resize_knows_what_is_unread, 2)
{
	struct work w = { .opcode = IBV_WR_SEND, .flags = IBV_SEND_SOLICITED, .sge_count = 1 }, r;
	struct ibv_cq *cq = NULL;
	void *context;
	struct pair p;
	struct done d;

	pair_open(&p, where, NULL);
	p.a.opts.wants_raw = false;
	cr_assert_eq(fcntl(p.a.channel->fd, F_SETFL, O_NONBLOCK), 0);
	r = (struct work){ .wr_id = 1, .sge_count = 1, .sge = { { p.ia.addr, 8, p.ia.lkey } } };
	cr_assert_eq(end_post_recv(&p.a, &r), 0);
	w.sge[0] = (struct ibv_sge){ p.ib.addr, 8, p.ib.lkey };
	cr_assert_eq(peer_post(&p.peer, &w), 0);
	settle(&p, 1);
	await_ok(&p, 1001, IBV_WC_RDMA_READ);
	cr_assert_eq(ibv_resize_cq(p.a.cq[RECV_CQ], 1000), 0);
	if (row) {
		end_await(&p.a, RECV_CQ, &d);
		check_ok("receive", &d, 1, IBV_WC_RECV);
	}
	cr_assert_eq(ibv_req_notify_cq(p.a.cq[RECV_CQ], 1), 0);
	poll(&(struct pollfd){ .fd = p.a.channel->fd, .events = POLLIN }, 1, row ? 0 : AWAIT_MS);
	if (!ibv_get_cq_event(p.a.channel, &cq, &context))
		ibv_ack_cq_events(cq, 1);
	cr_expect_eq(cq, row ? NULL : p.a.cq[RECV_CQ], "%s", row ? "read, and an event" :
		     "unread, and no event");
	pair_close(&p);
}

/* ---- overrun ---- */

/* Table, C.9.3: CQ_ERR once; QPs on it are in ERR and say QP_FATAL.  Completions that were
 * in the CQ before stay readable. */
CASE_EACH(cq_size, an_overrun_is_cq_err_and_fatal_for_its_qp)
{
	struct pair_opts opts;
	struct pair p;

	pair_defaults(&opts);
	opts.a.cqe = 3;
	opts.a.wants_raw = false;
	pair_open(&p, where, &opts);
	post_writes(&p, 0, 12);
	cr_expect(end_event(&p.a, IBV_EVENT_CQ_ERR, AWAIT_MS), "no CQ_ERR");
	cr_expect(end_event(&p.a, IBV_EVENT_QP_FATAL, AWAIT_MS), "no QP_FATAL");
	cr_expect_eq(end_state(&p.a), IBV_QPS_ERR);
	cr_expect(!end_event(&p.a, IBV_EVENT_CQ_ERR, 0), "CQ_ERR twice");
	for (uint64_t i = 0; i < 4; i++)
		await_ok(&p, i, IBV_WC_RDMA_WRITE);
	pair_close(&p);
}

/* The same on the receive side; the sender sees that the other QP is gone. */
CASE_EACH(cq_size, an_overrun_of_the_receive_cq_stops_the_responder)
{
	struct pair_opts opts;
	struct pair p;
	struct work w, r;
	struct done d;

	pair_defaults(&opts);
	opts.a.timeout = 10;
	opts.a.retry = 2;
	opts.b.cqe = 3;
	opts.b.wants_raw = false;
	pair_open(&p, where, &opts);
	for (uint64_t i = 0; i < 12; i++) {
		r = pair_recv(&p, i, 0, 64);
		must_recv(&p, &r);
	}
	w = pair_work(&p, IBV_WR_SEND, 64);
	for (w.wr_id = 0; w.wr_id < 12; w.wr_id++)
		must_post(&p, &w);
	cr_expect(peer_event(&p.peer, IBV_EVENT_CQ_ERR, AWAIT_MS), "no CQ_ERR");
	cr_expect(peer_event(&p.peer, IBV_EVENT_QP_FATAL, AWAIT_MS), "no QP_FATAL");
	cr_expect_eq(peer_state(&p.peer), IBV_QPS_ERR);
	for (w.wr_id = 0; w.wr_id < 12; w.wr_id++) {
		end_await(&p.a, SEND_CQ, &d);
		cr_assert(d.found, "wr %lu", (unsigned long)w.wr_id);
		cr_expect_eq(d.wc.wr_id, w.wr_id);
	}
	pair_close(&p);
}

/* A CQ as large as all that can be outstanding never overruns, however late it is polled. */
CASE_EACH(cq_size, a_cq_exactly_as_large_as_its_work_does_not_overrun)
{
	struct pair_opts opts;
	struct pair p;

	pair_defaults(&opts);
	opts.a.cqe = 63;
	pair_open(&p, where, &opts);
	for (unsigned round = 0; round < 20; round++) {
		post_writes(&p, 0, 63);
		settle(&p, (uint8_t)(round + 1));
		await_writes(&p, 0, 63);
		await_ok(&p, 1000u + round + 1, IBV_WC_RDMA_READ);
	}
	cr_expect(!end_event(&p.a, IBV_EVENT_CQ_ERR, 0));
	pair_close(&p);
}

/* ---- sharing ---- */

/* One CQ for both queues of a QP: completions tell apart by opcode. */
CASE_EACH(cq_size, one_cq_serves_both_queues)
{
	unsigned sends = 0, recvs = 0;
	struct pair_opts opts;
	struct pair p;
	struct work w, r;
	struct done d;

	pair_defaults(&opts);
	opts.a.has_one_cq = opts.b.has_one_cq = true;
	pair_open(&p, where, &opts);
	for (unsigned i = 0; i < 20; i++) {
		r = (struct work){ .wr_id = 100 + i, .sge_count = 1,
			.sge = { { p.ia.addr + 4096, 64, p.ia.lkey } } };
		cr_assert_eq(end_post_recv(&p.a, &r), 0);
		r = pair_recv(&p, 200 + i, 4096, 64);
		must_recv(&p, &r);
		w = pair_work(&p, IBV_WR_SEND, 64);
		must_post(&p, &w);
		w = (struct work){ .opcode = IBV_WR_SEND, .sge_count = 1,
			.flags = IBV_SEND_SIGNALED, .sge = { { p.ib.addr, 64, p.ib.lkey } } };
		cr_assert_eq(peer_post(&p.peer, &w), 0);
	}
	for (unsigned i = 0; i < 40; i++) {
		end_await(&p.a, SEND_CQ, &d);
		cr_assert(d.found && d.wc.status == IBV_WC_SUCCESS);
		sends += d.wc.opcode == IBV_WC_SEND;
		recvs += d.wc.opcode == IBV_WC_RECV && d.wc.wr_id == 100 + recvs;
	}
	cr_expect_eq(sends, 20);
	cr_expect_eq(recvs, 20);
	pair_close(&p);
}

/* Many completions in one poll, in order; ibv_poll_cq(3) returns how many there were. */
CASE_EACH(cq_size, one_poll_returns_many_completions)
{
	struct ibv_wc wc[64];
	struct pair p;
	int n;

	pair_open(&p, where, NULL);
	post_writes(&p, 0, 30);
	settle(&p, 1);
	n = ibv_poll_cq(p.a.cq[SEND_CQ], 10, wc);
	cr_assert_eq(n, 10);
	n += ibv_poll_cq(p.a.cq[SEND_CQ], 54, wc + 10);
	cr_assert_geq(n, 30);
	for (int i = 0; i < 30; i++)
		cr_expect_eq(wc[i].wr_id, (uint64_t)i);
	cr_expect_eq(ibv_poll_cq(p.a.cq[SEND_CQ], 0, wc), 0);
	pair_close(&p);
}
