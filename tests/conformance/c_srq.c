/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues: b's receives come from one.
 *
 * Rules: api-inventory SRQ-1 to SRQ-5; device-abi B.9 (modify, query, destroy), F.3 (flushing),
 * F.4 (limit); expected-statuses.md.
 */
#include <errno.h>
#include <string.h>
#include "harness/check.h"

enum { RECVS = 8, ROOM = 4096, EVENT_MS = 2000 };

TestSuite(srq, .timeout = 60);

static struct pair_opts srq_opts(void)
{
	struct pair_opts o;

	pair_defaults(&o);
	o.b.srq_wr = RECVS;
	return o;
}

static void srq_pair_open(struct pair *p, enum placement where)
{
	struct pair_opts o = srq_opts();

	pair_open(p, where, &o);
}

/* Receives @first and following, each into a part of its own. */
static void post_recvs(struct pair *p, uint64_t first, unsigned count)
{
	for (uint64_t i = first; i < first + count; i++) {
		struct work r = pair_recv(p, i, i % RECVS * ROOM, ROOM);

		must_recv(p, &r);
	}
}

static void send_one(struct pair *p, uint64_t wr_id, uint32_t bytes)
{
	struct work w = pair_work(p, IBV_WR_SEND, bytes);

	w.wr_id = wr_id;
	pattern_fill(p->a.buf, bytes, wr_id);
	must_post(p, &w);
	await_ok(p, wr_id, IBV_WC_SEND);
}

static uint32_t limit_now(struct pair *p)
{
	struct ibv_srq_attr attr = { 0 };

	cr_assert_eq(peer_srq_query(&p->peer, &attr), 0);
	return attr.srq_limit;
}

static int limit_arm(struct pair *p, uint32_t limit)
{
	struct ibv_srq_attr attr = { .srq_limit = limit };

	return peer_srq_modify(&p->peer, &attr, IBV_SRQ_LIMIT);
}

static void bare_open(struct end *e)
{
	struct end_opts opts;
	int err;

	end_defaults(&opts);
	err = end_open(e, &opts, NULL);
	cr_assert_eq(err, 0, "open: %s", strerror(err));
}

/* SRQ-1, post order, and the way of each entry through the free list many times over. */
CASE_EACH(srq, receives_are_used_in_the_order_of_posting)
{
	struct pair p;

	srq_pair_open(&p, where);
	post_recvs(&p, 0, RECVS);
	for (uint64_t i = 0; i < 100; i++) {
		send_one(&p, i, 512);
		await_recv_ok(&p, i, 512);
		cr_assert_eq(peer_differs(&p.peer, i % RECVS * ROOM, 512, i), -1);
		post_recvs(&p, i + RECVS, 1);
	}
	check_quiet(&p);
	pair_close(&p);
}

static const uint32_t sizes[] = { 0, 1, 1024, 1025, 4096 };

CASE_TABLE(srq, messages_of_all_sizes_arrive, ROWS(sizes))
{
	struct pair p;
	uint32_t bytes = sizes[row];

	srq_pair_open(&p, where);
	post_recvs(&p, 5, 2);
	send_one(&p, 1, bytes);
	await_recv_ok(&p, 5, bytes);
	cr_expect_eq(peer_differs(&p.peer, 5 * ROOM, bytes, 1), -1);
	send_one(&p, 2, 64);
	await_recv_ok(&p, 6, 64);
	pair_close(&p);
}

CASE_EACH(srq, a_write_with_immediate_takes_a_receive)
{
	struct pair p;
	struct work w;
	struct done d;

	srq_pair_open(&p, where);
	post_recvs(&p, 7, 1);
	w = pair_work(&p, IBV_WR_RDMA_WRITE_WITH_IMM, 64);
	w.imm = 0x11223344;
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	peer_await(&p.peer, RECV_CQ, &d);
	check_ok("receive", &d, 7, IBV_WC_RECV_RDMA_WITH_IMM);
	cr_expect_eq(be32toh(d.wc.imm_data), 0x11223344);
	cr_expect_eq(d.wc.qp_num, p.ib.qpn);
	pair_close(&p);
}

/* expected-statuses: "no receive posted". */
CASE_EACH(srq, an_empty_queue_makes_the_sender_give_up)
{
	struct pair_opts o = srq_opts();
	struct pair p;
	struct work w;

	o.a.rnr_retry = 1;
	pair_open(&p, where, &o);
	w = pair_work(&p, IBV_WR_SEND, 64);
	must_post(&p, &w);
	await_error(&p, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	check_states("after", &p, IBV_QPS_ERR, IBV_QPS_RTS);
	pair_close(&p);
}

CASE_EACH(srq, a_sender_that_may_wait_gets_the_receive_that_is_posted_later)
{
	struct pair p;
	struct work w;

	srq_pair_open(&p, where);
	w = pair_work(&p, IBV_WR_SEND, 64);
	must_post(&p, &w);
	post_recvs(&p, 3, 1);
	await_recv_ok(&p, 3, 64);
	await_ok(&p, 1, IBV_WC_SEND);
	pair_close(&p);
}

/* ---- errors: one receive fails, the others stay (F.3) ---- */

static const struct error_row {
	const char *name;
	enum ibv_wc_status requester, responder;
	uint32_t recv_bytes, lkey_flip;
} error_rows[] = {
	{ "longer than the receive", IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR, 63, 0 },
	{ "bad lkey", IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR, 64, 0x3fff0000 },
};

CASE_TABLE(srq, a_failed_receive_fails_the_qp_and_leaves_the_queue, ROWS(error_rows))
{
	const struct error_row *x = &error_rows[row];
	struct pair p;
	struct work w;

	srq_pair_open(&p, where);
	w = pair_recv(&p, 1, 0, x->recv_bytes);
	w.sge[0].lkey ^= x->lkey_flip;
	must_recv(&p, &w);
	post_recvs(&p, 2, 3);
	w = pair_work(&p, IBV_WR_SEND, 64);
	must_post(&p, &w);
	await_error(&p, 1, x->requester);
	await_recv_error(&p, 1, x->responder);
	cr_expect(peer_event(&p.peer, IBV_EVENT_QP_LAST_WQE_REACHED, EVENT_MS), "%s", x->name);
	cr_expect_not(peer_event(&p.peer, IBV_EVENT_QP_LAST_WQE_REACHED, 50), "%s: twice",
		      x->name);
	cr_expect_not(peer_event(&p.peer, IBV_EVENT_SRQ_ERR, 0), "%s", x->name);
	check_quiet(&p);
	check_states(x->name, &p, IBV_QPS_ERR, IBV_QPS_ERR);
	pair_close(&p);
}

/* The same queue serves the QP again after its reset. */
CASE_EACH(srq, modify_to_err_flushes_nothing_of_the_queue)
{
	struct pair p;

	srq_pair_open(&p, where);
	post_recvs(&p, 2, 3);
	send_one(&p, 1, 64);
	await_recv_ok(&p, 2, 64);
	cr_assert_eq(peer_to(&p.peer, IBV_QPS_ERR), 0);
	cr_expect(peer_event(&p.peer, IBV_EVENT_QP_LAST_WQE_REACHED, EVENT_MS));
	check_quiet(&p);
	cr_assert_eq(peer_to(&p.peer, IBV_QPS_RESET), 0);
	cr_assert_eq(end_to(&p.a, IBV_QPS_RESET), 0);
	pair_connect(&p);
	send_one(&p, 2, 64);
	await_recv_ok(&p, 3, 64);
	cr_expect_not(peer_event(&p.peer, IBV_EVENT_QP_LAST_WQE_REACHED, 0), "told again");
	pair_close(&p);
}

/* ---- the limit (SRQ-3, SRQ-4, F.4) ---- */

CASE_EACH(srq, the_limit_is_told_of_once)
{
	struct pair p;

	srq_pair_open(&p, where);
	post_recvs(&p, 0, 6);
	cr_expect_eq(limit_now(&p), 0, "not armed");
	cr_assert_eq(limit_arm(&p, 4), 0);
	cr_expect_eq(limit_now(&p), 4);
	for (uint64_t i = 0; i < 2; i++) {
		send_one(&p, i, 64);
		await_recv_ok(&p, i, 64);
	}
	cr_expect_not(peer_event(&p.peer, IBV_EVENT_SRQ_LIMIT_REACHED, 50), "four are left");
	cr_expect_eq(limit_now(&p), 4);
	send_one(&p, 2, 64);
	await_recv_ok(&p, 2, 64);
	cr_expect(peer_event(&p.peer, IBV_EVENT_SRQ_LIMIT_REACHED, EVENT_MS));
	cr_expect_eq(limit_now(&p), 0, "told, and not armed any more");
	send_one(&p, 3, 64);
	await_recv_ok(&p, 3, 64);
	cr_expect_not(peer_event(&p.peer, IBV_EVENT_SRQ_LIMIT_REACHED, 50), "told twice");
	pair_close(&p);
}

CASE_EACH(srq, a_limit_above_what_is_posted_is_told_of_at_once)
{
	struct pair p;

	srq_pair_open(&p, where);
	post_recvs(&p, 0, 3);
	cr_assert_eq(limit_arm(&p, 3), 0);
	cr_expect_not(peer_event(&p.peer, IBV_EVENT_SRQ_LIMIT_REACHED, 50), "three are there");
	cr_assert_eq(limit_arm(&p, 0), 0);
	cr_assert_eq(limit_arm(&p, 4), 0);
	cr_expect(peer_event(&p.peer, IBV_EVENT_SRQ_LIMIT_REACHED, EVENT_MS));
	cr_expect_eq(limit_now(&p), 0);
	pair_close(&p);
}

CASE_EACH(srq, a_limit_of_0_disarms)
{
	struct pair p;

	srq_pair_open(&p, where);
	post_recvs(&p, 0, 2);
	cr_assert_eq(limit_arm(&p, 2), 0);
	cr_assert_eq(limit_arm(&p, 0), 0);
	send_one(&p, 0, 64);
	await_recv_ok(&p, 0, 64);
	cr_expect_not(peer_event(&p.peer, IBV_EVENT_SRQ_LIMIT_REACHED, 50));
	pair_close(&p);
}

/* ---- modify, query, destroy ---- */

CASE_EACH(srq, the_size_stays_and_a_limit_must_fit)
{
	struct ibv_srq_attr attr = { .max_wr = 100, .srq_limit = 1 };
	struct pair p;

	srq_pair_open(&p, where);
	post_recvs(&p, 0, 2);
	cr_expect_eq(peer_srq_modify(&p.peer, &attr, IBV_SRQ_MAX_WR), EINVAL);
	cr_expect_eq(peer_srq_modify(&p.peer, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
	cr_expect_eq(limit_now(&p), 0, "all or nothing");
	attr.srq_limit = 1u << 20;
	cr_expect_eq(peer_srq_modify(&p.peer, &attr, IBV_SRQ_LIMIT), EINVAL);
	cr_assert_eq(peer_srq_query(&p.peer, &attr), 0);
	cr_expect_geq(attr.max_wr, RECVS);
	cr_expect_geq(attr.max_sge, 4);
	cr_expect_eq(attr.srq_limit, 0);
	pair_close(&p);
}

CASE_EACH(srq, a_queue_that_a_qp_uses_is_not_destroyed)
{
	struct pair p;

	srq_pair_open(&p, where);
	cr_expect_eq(peer_srq_destroy(&p.peer), EBUSY);
	post_recvs(&p, 0, 1);
	send_one(&p, 0, 64);
	await_recv_ok(&p, 0, 64);
	cr_assert_eq(peer_destroy_qp(&p.peer), 0);
	cr_expect_eq(peer_srq_destroy(&p.peer), 0);
	pair_close(&p);
}

/* ---- of one end alone ---- */

static struct end local;

static void local_open(void)
{
	struct end_opts opts;

	end_defaults(&opts);
	opts.srq_wr = RECVS;
	cr_assert_eq(end_open(&local, &opts, NULL), 0, "%s", strerror(errno));
}

static void local_close(void)
{
	end_close(&local);
}

#define LOCAL_TEST(name) Test(srq, name, .init = local_open, .fini = local_close)

LOCAL_TEST(a_full_queue_refuses_the_next_receive)
{
	struct work r = { .sge_count = 1,
		.sge = { { (uintptr_t)local.buf, 64, local.mr->lkey } } };
	struct ibv_srq_init_attr init = { .attr = { .max_wr = RECVS, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(local.pd, &init), *given = local.srq;

	cr_assert_not_null(srq);
	cr_expect_geq(init.attr.max_wr, RECVS, "actual sizes are told");
	cr_expect_geq(init.attr.max_sge, 1);
	local.srq = srq;
	for (uint32_t i = 0; i < init.attr.max_wr; i++)
		cr_assert_eq(end_post_recv(&local, &r), 0, "receive %u", i);
	cr_expect_eq(end_post_recv(&local, &r), ENOMEM);
	local.srq = given;
	cr_expect_eq(ibv_destroy_srq(srq), 0);
}

LOCAL_TEST(capabilities_say_how_large_a_queue_may_be)
{
	struct ibv_device_attr attr;
	struct ibv_srq_init_attr init = { .attr = { .max_sge = 1 } };
	struct ibv_srq *srq;

	cr_assert_eq(ibv_query_device(local.context, &attr), 0);
	cr_assert_gt(attr.max_srq, 0);
	cr_assert_gt(attr.max_srq_sge, 0);
	init.attr.max_wr = (uint32_t)attr.max_srq_wr;
	srq = ibv_create_srq(local.pd, &init);
	cr_assert_not_null(srq, "max_srq_wr: %s", strerror(errno));
	cr_expect_eq(ibv_destroy_srq(srq), 0);
	init.attr.max_wr = (uint32_t)attr.max_srq_wr + 1;
	init.attr.max_sge = 1;
	cr_expect_null(ibv_create_srq(local.pd, &init));
	init.attr.max_wr = 4;
	init.attr.max_sge = (uint32_t)attr.max_srq_sge;
	srq = ibv_create_srq(local.pd, &init);
	cr_assert_not_null(srq, "max_srq_sge: %s", strerror(errno));
	cr_expect_eq(ibv_destroy_srq(srq), 0);
	init.attr.max_sge = (uint32_t)attr.max_srq_sge + 1;
	cr_expect_null(ibv_create_srq(local.pd, &init));
}

LOCAL_TEST(a_qp_with_a_shared_queue_has_no_receives_of_its_own)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	cr_assert_eq(ibv_query_qp(local.qp, &attr, IBV_QP_CAP, &init), 0);
	cr_expect_eq(init.cap.max_recv_wr, 0);
	cr_expect_eq(init.srq, local.srq);
	cr_expect_eq(ibv_dealloc_pd(local.pd), EBUSY);
}

/* Several QPs of one context that send to QPs on one queue: what MPI does. */
enum { QPS = 4, ROUNDS = 50, LONG = 3000 };

static void many_connect(struct end *from, struct end *to)
{
	struct end_info a, b;

	end_describe(from, &a);
	end_describe(to, &b);
	cr_assert_eq(end_connect(from, &b), 0);
	cr_assert_eq(end_connect(to, &a), 0);
}

Test(srq, many_qps_share_a_queue_and_each_message_is_whole)
{
	struct end from[QPS], to[QPS];
	struct pair_opts o = srq_opts();
	uint64_t got[QPS] = { 0 };
	struct done d;

	o.b.srq_wr = 32;
	o.b.has_one_cq = true;
	cr_assert_eq(end_open(&to[0], &o.b, NULL), 0);
	for (int i = 0; i < QPS; i++) {
		cr_assert_eq(end_open(&from[i], &o.a, &to[0]), 0);
		if (i) {		/* its own memory, the first one's queues */
			struct ibv_qp_init_attr init = { .send_cq = to[0].cq[SEND_CQ],
				.recv_cq = to[0].cq[RECV_CQ], .srq = to[0].srq,
				.cap = o.b.cap, .qp_type = IBV_QPT_RC };

			to[i] = to[0];
			to[i].qp = ibv_create_qp(to[0].pd, &init);
			cr_assert_not_null(to[i].qp);
		}
		many_connect(&from[i], &to[i]);
		pattern_fill(from[i].buf, LONG, (uint64_t)i);
	}
	for (uint64_t i = 0; i < 16; i++) {
		struct work r = { .wr_id = i, .sge_count = 1,
			.sge = { { (uintptr_t)to[0].buf + i * ROOM, ROOM, to[0].mr->lkey } } };

		cr_assert_eq(end_post_recv(&to[0], &r), 0);
	}
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < QPS; i++) {
			struct work w = { .opcode = IBV_WR_SEND, .wr_id = 1, .sge_count = 1,
				.sge = { { (uintptr_t)from[i].buf, LONG, from[i].mr->lkey } } };

			cr_assert_eq(end_post(&from[i], &w), 0);
			end_await(&to[0], RECV_CQ, &d);
			cr_assert(d.found);
			cr_assert_eq(d.wc.status, IBV_WC_SUCCESS);
			for (int k = 0; k < QPS; k++)
				if (d.wc.qp_num == to[k].qp->qp_num) {
					got[k]++;
					cr_assert_eq(pattern_differs(to[0].buf + d.wc.wr_id * ROOM,
								     LONG, (uint64_t)k), -1);
				}
			cr_assert_eq(end_post_recv(&to[0], &(struct work){
				.wr_id = d.wc.wr_id, .sge_count = 1,
				.sge = { { (uintptr_t)to[0].buf + d.wc.wr_id * ROOM, ROOM,
					   to[0].mr->lkey } } }), 0);
		}
	for (int i = 0; i < QPS; i++) {
		cr_expect_eq(got[i], ROUNDS);
		end_close(&from[i]);
		if (i)
			cr_expect_eq(ibv_destroy_qp(to[i].qp), 0);
	}
	end_close(&to[0]);
}

/* What is asked for, rounded up; of nothing there is none, but a piece always has a place. */
Test(srq, sizes_are_rounded_up)
{
	static const struct { uint32_t wr, sge, wr_made, sge_made; } rows[] = {
		{ 0, 1, 0, 1 }, { 1, 0, 1, 1 }, { 2, 1, 3, 1 }, { 3, 2, 3, 3 }, { 15, 3, 15, 3 },
		{ 16, 4, 31, 7 }, { 17, 8, 31, 15 }, { 100, 16, 127, 31 }, { 16383, 31, 16383, 31 },
		{ 20000, 1, 32767, 1 }, { 32767, 1, 32767, 1 },
	};
	struct end e;

	bare_open(&e);
	for (unsigned i = 0; i < ROWS(rows); i++) {
		struct ibv_srq_init_attr init = { .attr = { .max_wr = rows[i].wr,
							    .max_sge = rows[i].sge } };
		struct ibv_srq *srq = ibv_create_srq(e.pd, &init);
		struct ibv_recv_wr wr = { .wr_id = i }, *bad;
		uint32_t posted = 0;

		cr_assert_not_null(srq, "row %u: %s", i, strerror(errno));
		cr_expect_eq(init.attr.max_wr, rows[i].wr_made, "row %u: %u", i, init.attr.max_wr);
		cr_expect_eq(init.attr.max_sge, rows[i].sge_made, "row %u: %u", i,
			     init.attr.max_sge);
		while (posted <= rows[i].wr_made && !ibv_post_srq_recv(srq, &wr, &bad))
			posted++;
		cr_expect_eq(posted, rows[i].wr_made, "row %u took %u", i, posted);
		cr_expect_eq(ibv_destroy_srq(srq), 0);
	}
	end_close(&e);
}

Test(srq, sizes_that_there_are_not)
{
	static const struct ibv_srq_attr rows[] = {
		{ .max_wr = 32768, .max_sge = 1 }, { .max_wr = UINT32_MAX, .max_sge = 1 },
		{ .max_wr = 4, .max_sge = 32 }, { .max_wr = 4, .max_sge = UINT32_MAX },
		{ .max_wr = 4, .max_sge = 0x10000001 },
	};
	struct end e;

	bare_open(&e);
	for (unsigned i = 0; i < ROWS(rows); i++) {
		struct ibv_srq_init_attr init = { .attr = rows[i] };

		errno = 0;
		cr_expect_null(ibv_create_srq(e.pd, &init), "row %u", i);
		cr_expect_eq(errno, EINVAL, "row %u: %s", i, strerror(errno));
	}
	end_close(&e);
}
