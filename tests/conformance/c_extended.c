/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The extended interfaces: ibv_wr_*() to post, ibv_start_poll() to complete.
 *
 * Rules: ibv_wr_post(3) (start, builders, complete or abort), ibv_create_cq_ex(3) (polling
 * and readers).  The same device as elsewhere, through other entry points of the library.
 */
#include <errno.h>
#include <string.h>
#include "harness/check.h"

TestSuite(extended, .timeout = 60);

static void open_extended(struct pair *p, enum placement where)
{
	struct pair_opts opts;

	pair_defaults(&opts);
	opts.a.is_extended = opts.b.is_extended = true;
	opts.a.wants_raw = opts.b.wants_raw = false;
	pair_open(p, where, &opts);
}

typedef void build_fn(struct ibv_qp_ex *qp, const struct pair *p);

static void build_write(struct ibv_qp_ex *qp, const struct pair *p)
{
	ibv_wr_rdma_write(qp, p->ib.rkey, p->ib.addr);
}

static void build_write_imm(struct ibv_qp_ex *qp, const struct pair *p)
{
	ibv_wr_rdma_write_imm(qp, p->ib.rkey, p->ib.addr, htobe32(0x01020304));
}

static void build_send(struct ibv_qp_ex *qp, const struct pair *p)
{
	(void)p;
	ibv_wr_send(qp);
}

static void build_send_imm(struct ibv_qp_ex *qp, const struct pair *p)
{
	(void)p;
	ibv_wr_send_imm(qp, htobe32(0x01020304));
}

static void build_read(struct ibv_qp_ex *qp, const struct pair *p)
{
	ibv_wr_rdma_read(qp, p->ib.rkey, p->ib.addr);
}

static void build_cas(struct ibv_qp_ex *qp, const struct pair *p)
{
	ibv_wr_atomic_cmp_swp(qp, p->ib.rkey, p->ib.addr, 0, 77);
}

static void build_fadd(struct ibv_qp_ex *qp, const struct pair *p)
{
	ibv_wr_atomic_fetch_add(qp, p->ib.rkey, p->ib.addr, 77);
}

static const struct {
	const char *name;
	build_fn *build;
	enum ibv_wc_opcode wc;
	uint32_t bytes;
	bool wants_recv, has_imm;
} ops[] = {
	{ "write", build_write, IBV_WC_RDMA_WRITE, 64, false, false },
	{ "write_imm", build_write_imm, IBV_WC_RDMA_WRITE, 64, true, true },
	{ "send", build_send, IBV_WC_SEND, 64, true, false },
	{ "send_imm", build_send_imm, IBV_WC_SEND, 64, true, true },
	{ "read", build_read, IBV_WC_RDMA_READ, 64, false, false },
	{ "cmp_swp", build_cas, IBV_WC_COMP_SWAP, 8, false, false },
	{ "fetch_add", build_fadd, IBV_WC_FETCH_ADD, 8, false, false },
};

/* Add one request to an open batch. */
static void add(struct pair *p, unsigned op, uint64_t wr_id)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(p->a.qp);

	qp->wr_id = wr_id;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ops[op].build(qp, p);
	ibv_wr_set_sge(qp, p->ia.lkey, p->ia.addr, ops[op].bytes);
}

/* One completion by the extended poll; left open for the readers.  The caller ends it. */
static struct ibv_cq_ex *poll_one(struct ibv_cq *cq)
{
	struct ibv_poll_cq_attr attr = { 0 };
	uint64_t deadline = now_ms() + AWAIT_MS;
	int err;

	do {
		err = ibv_start_poll((struct ibv_cq_ex *)cq, &attr);
		if (err)
			sched_yield();
	} while (err == ENOENT && now_ms() < deadline);
	cr_assert_eq(err, 0, "ibv_start_poll: %s", strerror(err));
	return (struct ibv_cq_ex *)cq;
}

static void await_sent(struct pair *p, unsigned op, uint64_t wr_id)
{
	struct ibv_cq_ex *cq = poll_one(p->a.cq[SEND_CQ]);

	cr_expect_eq(cq->wr_id, wr_id, "%s", ops[op].name);
	cr_expect_eq(cq->status, IBV_WC_SUCCESS, "%s: %s", ops[op].name,
		     ibv_wc_status_str(cq->status));
	cr_expect_eq(ibv_wc_read_opcode(cq), ops[op].wc, "%s", ops[op].name);
	cr_expect_eq(ibv_wc_read_qp_num(cq), p->ia.qpn);
	cr_expect_eq(ibv_wc_read_wc_flags(cq), 0);
	ibv_end_poll(cq);
}

CASE_TABLE(extended, each_builder_makes_the_request_it_names, ROWS(ops))
{
	struct ibv_qp_ex *qp;
	struct pair p;
	struct work r;
	struct done d;

	open_extended(&p, where);
	qp = ibv_qp_to_qp_ex(p.a.qp);
	cr_assert_not_null(qp);
	r = pair_recv(&p, 9, 4096, 64);
	if (ops[row].wants_recv)
		must_recv(&p, &r);
	ibv_wr_start(qp);
	add(&p, (unsigned)row, 1);
	cr_assert_eq(ibv_wr_complete(qp), 0);
	await_sent(&p, (unsigned)row, 1);
	if (ops[row].wants_recv) {
		peer_await(&p.peer, RECV_CQ, &d);
		cr_assert(d.found && d.wc.status == IBV_WC_SUCCESS);
		cr_expect_eq(d.wc.wc_flags, ops[row].has_imm ? IBV_WC_WITH_IMM : 0);
		if (ops[row].has_imm)
			cr_expect_eq(d.wc.imm_data, htobe32(0x01020304));
	}
	check_states(ops[row].name, &p, IBV_QPS_RTS, IBV_QPS_RTS);
	pair_close(&p);
}

/* ibv_wr_post(3): nothing of a batch is posted before complete; all of it then, in order. */
CASE_EACH(extended, a_batch_is_posted_when_it_completes)
{
	struct pair p;
	struct done d;

	open_extended(&p, where);
	ibv_wr_start(ibv_qp_to_qp_ex(p.a.qp));
	for (uint64_t i = 0; i < 20; i++)
		add(&p, i % 2 ? 4 : 0, i);
	end_glance(&p.a, SEND_CQ, &d);
	check_none("before complete", &d);
	cr_assert_eq(ibv_wr_complete(ibv_qp_to_qp_ex(p.a.qp)), 0);
	for (uint64_t i = 0; i < 20; i++)
		await_sent(&p, i % 2 ? 4 : 0, i);
	pair_close(&p);
}

/* A QP that may not send says EINVAL here, where ibv_post_send() says ENOMEM. */
CASE_EACH(extended, a_batch_is_refused_before_it_may_be_sent)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct pair p;

	open_extended(&p, where);
	cr_assert_eq(ibv_modify_qp(p.a.qp, &reset, IBV_QP_STATE), 0);
	ibv_wr_start(ibv_qp_to_qp_ex(p.a.qp));
	add(&p, 0, 1);
	cr_assert_eq(ibv_wr_complete(ibv_qp_to_qp_ex(p.a.qp)), EINVAL);
	pair_close(&p);
}

/* ibv_wr_post(3): abort takes the batch back, and the queue is as it was. */
CASE_EACH(extended, an_aborted_batch_leaves_no_trace)
{
	struct ibv_qp_ex *qp;
	struct pair p;
	struct done d;

	open_extended(&p, where);
	qp = ibv_qp_to_qp_ex(p.a.qp);
	for (unsigned round = 0; round < 10; round++) {
		ibv_wr_start(qp);
		for (uint64_t i = 0; i < 7; i++)
			add(&p, 0, 100 + i);
		ibv_wr_abort(qp);
		end_glance(&p.a, SEND_CQ, &d);
		check_none("after abort", &d);
		ibv_wr_start(qp);
		add(&p, 0, round);
		cr_assert_eq(ibv_wr_complete(qp), 0);
		await_sent(&p, 0, round);
	}
	pair_close(&p);
}

/* Inline data and SGE lists of the builders. */
CASE_EACH(extended, inline_data_and_sge_lists_arrive)
{
	struct ibv_sge list[3];
	struct ibv_qp_ex *qp;
	struct pair p;

	open_extended(&p, where);
	qp = ibv_qp_to_qp_ex(p.a.qp);
	pattern_fill(p.a.buf, 3000, 5);
	ibv_wr_start(qp);
	qp->wr_id = 1;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(qp, p.ib.rkey, p.ib.addr);
	ibv_wr_set_inline_data(qp, p.a.buf, 60);
	qp->wr_id = 2;
	ibv_wr_rdma_write(qp, p.ib.rkey, p.ib.addr + 4096);
	for (unsigned i = 0; i < 3; i++)
		list[i] = (struct ibv_sge){ p.ia.addr + i * 1000, 1000, p.ia.lkey };
	ibv_wr_set_sge_list(qp, 3, list);
	cr_assert_eq(ibv_wr_complete(qp), 0);
	await_sent(&p, 0, 1);
	await_sent(&p, 0, 2);
	cr_expect_eq(peer_differs(&p.peer, 0, 60, 5), -1);
	cr_expect_eq(peer_differs(&p.peer, 4096, 3000, 5), -1);
	pair_close(&p);
}

/* Readers of a receive completion and of an error. */
Test(extended, readers_tell_what_the_completion_holds)
{
	struct ibv_cq_ex *cq;
	struct pair p;
	struct work w;

	open_extended(&p, ONE_THREAD);
	w = pair_recv(&p, 9, 0, 4096);
	must_recv(&p, &w);
	w = pair_work(&p, IBV_WR_SEND_WITH_IMM, 1234);
	w.imm = 0xcafe;
	must_post(&p, &w);
	await_sent(&p, 2, 1);
	cq = poll_one(p.peer.here.cq[RECV_CQ]);
	cr_expect_eq(cq->wr_id, 9);
	cr_expect_eq(ibv_wc_read_opcode(cq), IBV_WC_RECV);
	cr_expect_eq(ibv_wc_read_byte_len(cq), 1234);
	cr_expect_eq(ibv_wc_read_qp_num(cq), p.ib.qpn);
	cr_expect_eq(ibv_wc_read_wc_flags(cq), IBV_WC_WITH_IMM);
	cr_expect_eq(be32toh(ibv_wc_read_imm_data(cq)), 0xcafe);
	cr_expect_eq(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	w.opcode = IBV_WR_RDMA_READ;
	w.rkey ^= 0x3fff0000;
	must_post(&p, &w);
	cq = poll_one(p.a.cq[SEND_CQ]);
	cr_expect_eq(cq->status, IBV_WC_REM_ACCESS_ERR);
	cr_expect_eq(ibv_wc_read_vendor_err(cq), 0x88);
	ibv_end_poll(cq);
	pair_close(&p);
}

/* ibv_create_cq_ex(3): next_poll walks on within one poll; arming works as on a plain CQ. */
Test(extended, one_poll_walks_over_many_completions)
{
	struct ibv_cq_ex *cq;
	struct pair p;
	struct ibv_cq *got;
	void *context;

	open_extended(&p, ONE_THREAD);
	cr_assert_eq(ibv_req_notify_cq(p.a.cq[SEND_CQ], 0), 0);
	ibv_wr_start(ibv_qp_to_qp_ex(p.a.qp));
	for (uint64_t i = 0; i < 12; i++)
		add(&p, 0, i);
	cr_assert_eq(ibv_wr_complete(ibv_qp_to_qp_ex(p.a.qp)), 0);
	cr_assert_eq(ibv_get_cq_event(p.a.channel, &got, &context), 0);
	cr_expect_eq(got, p.a.cq[SEND_CQ]);
	ibv_ack_cq_events(got, 1);
	cq = poll_one(p.a.cq[SEND_CQ]);
	for (uint64_t i = 0; i < 12; i++) {
		cr_expect_eq(cq->wr_id, i);
		if (i < 11)
			while (ibv_next_poll(cq) == ENOENT)
				sched_yield();
	}
	ibv_end_poll(cq);
	pair_close(&p);
}
