/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC with a receive queue in another process than the target QP: both processes of one host have
 * the domain by its file, and an initiator sends through the target to the queue's number.
 *
 * The initiator is in the target's process, once with its thread, or in a third one.  What it and
 * the queue's owner see is what they see when one process has all of it (c_xrc.c).
 * Rules: api-inventory XRC-1, XRC-3; IBTA volume 1, annex A14.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness/check.h"
#include "harness/trio.h"

TestSuite(xrc_far, .timeout = 90);

/* ---- messages ---- */

static const struct message_row {
	enum ibv_wr_opcode opcode;
	enum ibv_wc_opcode requester, responder;
	uint32_t bytes;
	bool has_imm;
} message_rows[] = {
	{ IBV_WR_SEND, IBV_WC_SEND, IBV_WC_RECV, 0, false },
	{ IBV_WR_SEND, IBV_WC_SEND, IBV_WC_RECV, 64, false },
	{ IBV_WR_SEND, IBV_WC_SEND, IBV_WC_RECV, 4096, false },
	{ IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, IBV_WC_RECV, 1025, true },
	{ IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, IBV_WC_RECV_RDMA_WITH_IMM, 3000, true },
	{ IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, IBV_WC_RECV_RDMA_WITH_IMM, 0, true },
};

CASE_TABLE(xrc_far, messages_take_a_receive_of_the_queue, ROWS(message_rows))
{
	const struct message_row *x = &message_rows[row];
	struct trio t;
	struct work w;
	struct done d;

	trio_open(&t, where);
	far_post(&t, 0, 0, ROOM);
	far_post(&t, 1, 0, ROOM);
	w = far_work(&t, x->opcode, x->bytes);
	w.imm = 0x1a2b3c4d;
	pattern_fill(t.p.a.buf, x->bytes, 9);
	must_post(&t.p, &w);
	await_ok(&t.p, 1, x->requester);
	peer_await(&t.far, RECV_CQ, &d);
	check_ok("receive", &d, 0, x->responder);
	cr_expect_eq(d.wc.byte_len, x->bytes);
	cr_expect_eq(d.wc.qp_num, t.p.ib.target_qpn, "qp_num is 0x%x", d.wc.qp_num);
	cr_expect_eq(d.wc.src_qp, t.ifar.srqn, "src_qp is 0x%x", d.wc.src_qp);
	if (x->has_imm)
		cr_expect_eq(be32toh(d.wc.imm_data), 0x1a2b3c4d);
	cr_expect_eq(peer_differs(&t.far, 0, x->bytes, 9), -1);
	far_quiet(&t);
	trio_close(&t);
}

/* More than one packet even where they are large. */
CASE_EACH(xrc_far, large_messages)
{
	enum { BYTES = 700001 };
	struct pair_opts o;
	struct trio t;
	struct work w;

	trio_defaults(&o);
	o.a.bytes = 1 << 20;
	trio_open_in(&t, where, &o, NULL);
	far_post(&t, 7, 0, 1 << 20);
	w = far_work(&t, IBV_WR_SEND, BYTES);
	pattern_fill(t.p.a.buf, BYTES, 5);
	must_post(&t.p, &w);
	await_ok(&t.p, 1, IBV_WC_SEND);
	far_await_ok(&t, 7, IBV_WC_RECV, BYTES);
	cr_expect_eq(peer_differs(&t.far, 0, BYTES, 5), -1);
	pattern_fill(t.p.a.buf, BYTES, 6);
	w = far_work(&t, IBV_WR_RDMA_WRITE, BYTES);
	must_post(&t.p, &w);
	await_ok(&t.p, 1, IBV_WC_RDMA_WRITE);
	cr_expect_eq(peer_differs(&t.far, 0, BYTES, 6), -1);
	far_quiet(&t);
	trio_close(&t);
}

/* Queues of the target's process and of the other one in turn, many requests at once. */
CASE_EACH(xrc_far, messages_to_both_queues_arrive_in_order)
{
	enum { ROUNDS = 12, BYTES = 1500 };
	struct trio t;
	struct work w, r;

	trio_open(&t, where);
	pattern_fill(t.p.a.buf, BYTES, 3);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		far_post(&t, i, i % 8 * ROOM, ROOM);
		r = pair_recv(&t.p, i, i % 8 * ROOM, ROOM);
		must_recv(&t.p, &r);
	}
	for (uint64_t i = 0; i < ROUNDS; i++) {
		w = far_work(&t, IBV_WR_SEND, BYTES);
		w.wr_id = 2 * i;
		must_post(&t.p, &w);
		w = pair_work(&t.p, IBV_WR_SEND, BYTES - 1);
		w.wr_id = 2 * i + 1;
		must_post(&t.p, &w);
	}
	for (uint64_t i = 0; i < ROUNDS; i++) {
		await_ok(&t.p, 2 * i, IBV_WC_SEND);
		await_ok(&t.p, 2 * i + 1, IBV_WC_SEND);
		far_await_ok(&t, i, IBV_WC_RECV, BYTES);
		await_recv_ok(&t.p, i, BYTES - 1);
	}
	cr_expect_eq(peer_differs(&t.far, 0, BYTES, 3), -1);
	far_quiet(&t);
	trio_close(&t);
}

/* WRITE, READ and atomics go to the memory of the queue's domain. */
CASE_EACH(xrc_far, write_read_and_atomics_take_none)
{
	enum { BYTES = 300001 };
	struct pair_opts o;
	struct trio t;
	struct work w;
	struct done d;

	trio_defaults(&o);
	o.a.bytes = 1 << 20;
	trio_open_in(&t, where, &o, NULL);
	pattern_fill(t.p.a.buf, BYTES, 3);
	w = far_work(&t, IBV_WR_RDMA_WRITE, BYTES);
	must_post(&t.p, &w);
	await_ok(&t.p, 1, IBV_WC_RDMA_WRITE);
	cr_expect_eq(peer_differs(&t.far, 0, BYTES, 3), -1);
	memset(t.p.a.buf, 0, BYTES);
	w = far_work(&t, IBV_WR_RDMA_READ, BYTES);
	must_post(&t.p, &w);
	end_await(&t.p.a, SEND_CQ, &d);
	check_ok("read", &d, 1, IBV_WC_RDMA_READ);
	cr_expect_eq(pattern_differs(t.p.a.buf, BYTES, 3), -1);
	w = far_work(&t, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	w.compare_add = 1;
	memset(t.p.a.buf, 0, 8);
	must_post(&t.p, &w);
	await_ok(&t.p, 1, IBV_WC_FETCH_ADD);
	cr_expect_eq(pattern_differs(t.p.a.buf, 8, 3), -1, "the value before");
	cr_expect_neq(peer_differs(&t.far, 0, 8, 3), -1, "it has been added to");
	w = far_work(&t, IBV_WR_RDMA_READ, 0);
	must_post(&t.p, &w);
	await_ok(&t.p, 1, IBV_WC_RDMA_READ);
	far_quiet(&t);
	trio_close(&t);
}

/* READs of both processes and SENDs, all under way at once. */
CASE_EACH(xrc_far, reads_and_sends_to_both)
{
	struct trio t;
	struct work w;

	trio_open(&t, where);
	peer_fill(&t.far, 0, 20000, 4);
	peer_fill(&t.p.peer, 0, 20000, 8);
	far_post(&t, 1, 40000, 64);
	w = far_work(&t, IBV_WR_RDMA_READ, 20000);
	must_post(&t.p, &w);
	w = pair_work(&t.p, IBV_WR_RDMA_READ, 20000);
	w.sge[0].addr += 20000;
	w.wr_id = 2;
	must_post(&t.p, &w);
	w = far_work(&t, IBV_WR_SEND, 64);
	w.sge[0].addr += 40000;
	w.wr_id = 3;
	must_post(&t.p, &w);
	await_ok(&t.p, 1, IBV_WC_RDMA_READ);
	await_ok(&t.p, 2, IBV_WC_RDMA_READ);
	await_ok(&t.p, 3, IBV_WC_SEND);
	far_await_ok(&t, 1, IBV_WC_RECV, 64);
	cr_expect_eq(pattern_differs(t.p.a.buf, 20000, 4), -1);
	cr_expect_eq(pattern_differs(t.p.a.buf + 20000, 20000, 8), -1);
	trio_close(&t);
}

/* A process that has nothing but the queue, and makes no call. */
static void serve_idly(int out, const char *domain)
{
	static uint8_t room[ROOM];
	struct ibv_xrcd_init_attr init = { .fd = open(domain, O_RDWR | O_CREAT, 0600),
		.oflags = O_CREAT, .comp_mask = 3 };
	struct ibv_context *context = device_open();
	struct ibv_srq_init_attr_ex queue = { .attr = { .max_wr = 8, .max_sge = 1 },
		.srq_type = IBV_SRQT_XRC, .pd = ibv_alloc_pd(context),
		.cq = ibv_create_cq(context, 8, NULL, NULL, 0),
		.xrcd = ibv_open_xrcd(context, &init),
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD };
	struct ibv_srq *srq = ibv_create_srq_ex(context, &queue);
	struct ibv_mr *mr = ibv_reg_mr(queue.pd, room, ROOM, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = { (uintptr_t)room, ROOM, mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };
	uint32_t number = 0;

	if (!ibv_post_srq_recv(srq, &wr, &bad))
		ibv_get_srq_num(srq, &number);
	if (write(out, &number, sizeof number) != sizeof number)
		_exit(1);
	for (;;)
		pause();
}

CASE_EACH(xrc_far, an_idle_process_receives)
{
	struct pair_opts o;
	struct pair p;
	struct work w;
	int pipes[2];
	pid_t pid;

	trio_defaults(&o);
	cr_assert_eq(pipe(pipes), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve_idly(pipes[1], o.b.domain);
	}
	pair_open(&p, where, &o);
	w = pair_work(&p, IBV_WR_SEND, 64);
	cr_assert_eq(read(pipes[0], &w.srqn, sizeof w.srqn), (ssize_t)sizeof w.srqn);
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_SEND);
	kill(pid, SIGKILL);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	pair_close(&p);
	unlink(o.b.domain);
}

/* The initiator is in the process of the queue. */
CASE_EACH(xrc_far, the_owner_of_the_queue_sends)
{
	struct pair_opts o;
	struct trio t;
	struct work w;
	struct done d;

	if (where != TWO_PROCESSES)
		return;
	trio_defaults(&o);
	peer_start(&t.far, TWO_PROCESSES);
	pair_open_unconnected(&t.p, where, &o);
	o.a.bytes = 1 << 16;
	snprintf(o.a.domain, sizeof o.a.domain, "%s", o.b.domain);
	cr_assert_eq(peer_open(&t.far, &o.a, NULL, &t.ifar), 0);
	cr_assert_eq(peer_connect(&t.p.peer, &t.ifar), 0);
	cr_assert_eq(peer_connect(&t.far, &t.p.ib), 0);
	far_post(&t, 5, ROOM, ROOM);
	w = far_work(&t, IBV_WR_SEND, 64);
	w.sge[0] = (struct ibv_sge){ t.ifar.addr, 64, t.ifar.lkey };
	peer_fill(&t.far, 0, 64, 2);
	cr_assert_eq(peer_post(&t.far, &w), 0);
	peer_await(&t.far, SEND_CQ, &d);
	check_ok("its send", &d, 1, IBV_WC_SEND);
	far_await_ok(&t, 5, IBV_WC_RECV, 64);
	cr_expect_eq(peer_differs(&t.far, ROOM, 64, 2), -1);
	trio_close(&t);
}

/* ---- no receive ---- */

CASE_EACH(xrc_far, a_receive_that_comes_late)
{
	struct trio t;
	struct work w;
	struct done d;

	trio_open(&t, where);
	w = far_work(&t, IBV_WR_SEND_WITH_IMM, 3000);
	pattern_fill(t.p.a.buf, 3000, 7);
	must_post(&t.p, &w);
	end_glance(&t.p.a, SEND_CQ, &d);
	check_none("nothing is posted", &d);
	far_post(&t, 3, 0, ROOM);
	await_ok(&t.p, 1, IBV_WC_SEND);
	far_await_ok(&t, 3, IBV_WC_RECV, 3000);
	cr_expect_eq(peer_differs(&t.far, 0, 3000, 7), -1);
	far_quiet(&t);
	trio_close(&t);
}

/* What is behind a request that is refused has not been executed, wherever it goes. */
CASE_EACH(xrc_far, nothing_overtakes_a_request_without_a_receive)
{
	struct trio t;
	struct work w, r;
	struct done d;

	trio_open(&t, where);
	r = pair_recv(&t.p, 4, 0, ROOM);
	must_recv(&t.p, &r);
	w = far_work(&t, IBV_WR_SEND, 64);
	must_post(&t.p, &w);
	w = pair_work(&t.p, IBV_WR_SEND, 64);
	w.wr_id = 2;
	must_post(&t.p, &w);
	end_glance(&t.p.a, SEND_CQ, &d);
	check_none("send", &d);
	peer_glance(&t.p.peer, RECV_CQ, &d);
	check_none("the target's own queue", &d);
	far_post(&t, 3, 0, ROOM);
	await_ok(&t.p, 1, IBV_WC_SEND);
	await_ok(&t.p, 2, IBV_WC_SEND);
	far_await_ok(&t, 3, IBV_WC_RECV, 64);
	await_recv_ok(&t.p, 4, 64);
	trio_close(&t);
}

CASE_EACH(xrc_far, no_receive)
{
	struct pair_opts o;
	struct trio t;
	struct work w;

	trio_defaults(&o);
	o.a.rnr_retry = 1;
	trio_open_in(&t, where, &o, NULL);
	w = far_work(&t, IBV_WR_SEND, 64);
	must_post(&t.p, &w);
	await_error(&t.p, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	cr_expect_eq(peer_target_state(&t.p.peer), IBV_QPS_RTS);
	trio_close(&t);
}

/* ---- refusals ---- */

static const struct refusal_row {
	const char *name;
	enum ibv_wr_opcode opcode;
	uint32_t srqn_flip, rkey_flip;
} refusal_rows[] = {
	{ "SEND, unknown queue", IBV_WR_SEND, 0x1f, 0 },
	{ "WRITE, unknown queue", IBV_WR_RDMA_WRITE, 0x1f, 0 },
	{ "READ, unknown queue", IBV_WR_RDMA_READ, 0x1f, 0 },
	{ "WRITE, bad rkey", IBV_WR_RDMA_WRITE, 0, 0x3fff0000 },
	{ "WRITE with immediate, bad rkey", IBV_WR_RDMA_WRITE_WITH_IMM, 0, 0x3fff0000 },
	{ "READ, bad rkey", IBV_WR_RDMA_READ, 0, 0x3fff0000 },
	{ "atomic, bad rkey", IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0x3fff0000 },
};

CASE_TABLE(xrc_far, refused_requests_end_both_qps, ROWS(refusal_rows))
{
	const struct refusal_row *x = &refusal_rows[row];
	struct trio t;
	struct work w;

	trio_open(&t, where);
	far_post(&t, 0, 0, ROOM);
	w = far_work(&t, x->opcode, 8);
	w.srqn ^= x->srqn_flip;
	w.rkey ^= x->rkey_flip;
	must_post(&t.p, &w);
	await_error(&t.p, 1, IBV_WC_REM_ACCESS_ERR);
	cr_expect(peer_event(&t.p.peer, IBV_EVENT_QP_ACCESS_ERR, EVENT_MS), "%s", x->name);
	cr_expect_eq(peer_target_state(&t.p.peer), IBV_QPS_ERR, "%s", x->name);
	cr_expect_eq(end_state(&t.p.a), IBV_QPS_ERR, "%s", x->name);
	far_quiet(&t);			/* the receive stays */
	trio_close(&t);
}

/* The target's process has it, and not the queue's. */
CASE_EACH(xrc_far, a_queue_of_another_domain)
{
	struct pair_opts o;
	struct trio t;
	char other[72];
	struct work w;

	trio_defaults(&o);
	snprintf(other, sizeof other, "%.60s.b", o.b.domain);
	trio_open_in(&t, where, &o, other);
	far_post(&t, 0, 0, ROOM);
	w = far_work(&t, IBV_WR_SEND, 64);
	must_post(&t.p, &w);
	await_error(&t.p, 1, IBV_WC_REM_ACCESS_ERR);
	cr_expect(peer_event(&t.p.peer, IBV_EVENT_QP_ACCESS_ERR, EVENT_MS));
	far_quiet(&t);
	trio_close(&t);
	unlink(other);
}

CASE_EACH(xrc_far, a_queue_of_a_domain_without_a_file)
{
	struct pair_opts o;
	struct trio t;
	struct work w;

	trio_defaults(&o);
	trio_open_in(&t, where, &o, "");
	far_post(&t, 0, 0, ROOM);
	w = far_work(&t, IBV_WR_SEND, 64);
	must_post(&t.p, &w);
	await_error(&t.p, 1, IBV_WC_REM_ACCESS_ERR);
	far_quiet(&t);
	trio_close(&t);
}

CASE_EACH(xrc_far, a_message_longer_than_its_receive)
{
	struct trio t;
	struct work w;
	struct done d;

	trio_open(&t, where);
	far_post(&t, 0, 0, 63);
	w = far_work(&t, IBV_WR_SEND, 64);
	must_post(&t.p, &w);
	await_error(&t.p, 1, IBV_WC_REM_INV_REQ_ERR);
	peer_await(&t.far, RECV_CQ, &d);
	check_error("receive", &d, 0, IBV_WC_LOC_LEN_ERR, t.p.ib.target_qpn, -1, 0);
	cr_expect_eq(peer_target_state(&t.p.peer), IBV_QPS_ERR);
	trio_close(&t);
}

CASE_EACH(xrc_far, a_receive_with_a_bad_key)
{
	struct work w, r = { .wr_id = 6, .sge_count = 1 };
	struct trio t;
	struct done d;

	trio_open(&t, where);
	r.sge[0] = (struct ibv_sge){ t.ifar.addr, 64, t.ifar.lkey ^ 0x3fff0000 };
	cr_assert_eq(peer_post_recv(&t.far, &r), 0);
	w = far_work(&t, IBV_WR_SEND, 64);
	must_post(&t.p, &w);
	await_error(&t.p, 1, IBV_WC_REM_OP_ERR);
	peer_await(&t.far, RECV_CQ, &d);
	check_error("receive", &d, 6, IBV_WC_LOC_PROT_ERR, t.p.ib.target_qpn, -1, 0);
	trio_close(&t);
}

/* The next message to a queue that is not concerned goes through another target. */
CASE_EACH(xrc_far, the_queue_is_destroyed)
{
	struct trio t;
	struct work w;

	trio_open(&t, where);
	far_post(&t, 0, 0, ROOM);
	far_post(&t, 1, 0, ROOM);
	w = far_work(&t, IBV_WR_SEND, 64);
	must_post(&t.p, &w);
	await_ok(&t.p, 1, IBV_WC_SEND);
	far_await_ok(&t, 0, IBV_WC_RECV, 64);
	cr_assert_eq(peer_srq_destroy(&t.far), 0);
	must_post(&t.p, &w);
	await_error(&t.p, 1, IBV_WC_REM_ACCESS_ERR);
	trio_close(&t);
}

/* ---- death ---- */

/* Its queue is gone with it. */
CASE_EACH(xrc_far, the_owner_of_the_queue_is_killed)
{
	struct pair_opts o;
	struct trio t;
	struct work w;

	trio_defaults(&o);
	o.a.timeout = 0;			/* only an answer ends the request */
	trio_open_in(&t, where, &o, NULL);
	far_post(&t, 0, 0, ROOM);
	w = far_work(&t, IBV_WR_SEND, 64);
	must_post(&t.p, &w);
	await_ok(&t.p, 1, IBV_WC_SEND);
	peer_kill(&t.far);
	must_post(&t.p, &w);
	await_error(&t.p, 1, IBV_WC_REM_ACCESS_ERR);
	cr_expect(peer_event(&t.p.peer, IBV_EVENT_QP_ACCESS_ERR, EVENT_MS));
	trio_end(&t);
}

/* While a request waits there. */
CASE_EACH(xrc_far, the_owner_is_killed_with_a_request)
{
	struct pair_opts o;
	struct trio t;
	struct work w, r;
	struct done d;

	trio_defaults(&o);
	o.a.timeout = 0;
	trio_open_in(&t, where, &o, NULL);
	far_post(&t, 0, 0, ROOM);
	r = pair_recv(&t.p, 4, 0, ROOM);
	must_recv(&t.p, &r);
	peer_freeze(&t.far);
	w = far_work(&t, IBV_WR_SEND, 64);
	must_post(&t.p, &w);
	w = pair_work(&t.p, IBV_WR_SEND, 64);
	w.wr_id = 2;
	must_post(&t.p, &w);
	end_glance(&t.p.a, SEND_CQ, &d);
	check_none("the owner is stopped", &d);
	peer_kill(&t.far);
	await_error(&t.p, 1, IBV_WC_REM_ACCESS_ERR);
	await_error(&t.p, 2, IBV_WC_WR_FLUSH_ERR);
	peer_glance(&t.p.peer, RECV_CQ, &d);
	check_none("what was behind it", &d);
	trio_end(&t);
}

enum { KILL_ROWS = 8, KILL_STEP_US = 150, UNDER_WAY = 32 };

/* Many large messages are under way, for half of which there are receives. */
static void load(struct trio *t)
{
	struct work w = far_work(t, IBV_WR_SEND, 100000);

	for (uint64_t i = 0; i < UNDER_WAY / 2; i++)
		far_post(t, i, 0, 1 << 20);
	for (w.wr_id = 0; w.wr_id < UNDER_WAY; w.wr_id++)
		must_post(&t->p, &w);
}

/* In order: some that are done, one that failed, and what was behind it. */
static void await_broken(struct trio *t, enum ibv_wc_status status)
{
	bool has_failed = false;
	struct done d;

	for (uint64_t i = 0; i < UNDER_WAY; i++) {
		end_await(&t->p.a, SEND_CQ, &d);
		cr_assert(d.found, "%u are missing", (unsigned)(UNDER_WAY - i));
		cr_assert_eq(d.wc.wr_id, i);
		if (has_failed)
			cr_assert_eq(d.wc.status, IBV_WC_WR_FLUSH_ERR);
		else if (d.wc.status != IBV_WC_SUCCESS)
			cr_assert_eq(d.wc.status, status, "%s", ibv_wc_status_str(d.wc.status));
		has_failed |= d.wc.status != IBV_WC_SUCCESS;
	}
	cr_assert(has_failed);
}

CASE_TABLE(xrc_far, the_owner_of_the_queue_is_killed_at_any_moment, KILL_ROWS)
{
	struct pair_opts o;
	struct trio t;

	trio_defaults(&o);
	o.a.timeout = 0;
	o.a.bytes = 1 << 20;
	trio_open_in(&t, where, &o, NULL);
	load(&t);
	usleep((unsigned)row * KILL_STEP_US);
	peer_kill(&t.far);
	await_broken(&t, IBV_WC_REM_ACCESS_ERR);
	cr_expect_eq(peer_target_state(&t.p.peer), IBV_QPS_ERR);
	trio_end(&t);
}

CASE_TABLE(xrc_far, the_owner_of_the_target_is_killed_at_any_moment, KILL_ROWS)
{
	struct pair_opts o;
	struct trio t;
	struct done d;

	if (where != TWO_PROCESSES)
		return;
	trio_defaults(&o);
	o.a.timeout = 14;
	o.a.retry = 3;
	o.a.bytes = 1 << 20;
	trio_open_in(&t, where, &o, NULL);
	load(&t);
	usleep((unsigned)row * KILL_STEP_US);
	peer_kill(&t.p.peer);
	await_broken(&t, IBV_WC_RETRY_EXC_ERR);
	/* what the queue has is good, and it goes on */
	do {
		peer_glance(&t.far, RECV_CQ, &d);
		cr_expect(!d.found || d.wc.status == IBV_WC_SUCCESS);
	} while (d.found);
	far_post(&t, 50, 0, 64);
	peer_stop(&t.far);
	end_close(&t.p.a);
	unlink(o.b.domain);
}

/* A stopped owner is late, and nothing is lost. */
CASE_EACH(xrc_far, the_owner_is_stopped_for_a_while)
{
	struct pair_opts o;
	struct trio t;
	struct work w;
	struct done d;

	trio_defaults(&o);
	o.a.timeout = 18;
	trio_open_in(&t, where, &o, NULL);
	far_post(&t, 0, 0, ROOM);
	peer_freeze(&t.far);
	w = far_work(&t, IBV_WR_SEND, 64);
	must_post(&t.p, &w);
	end_glance(&t.p.a, SEND_CQ, &d);
	check_none("the owner is stopped", &d);
	cr_assert_eq(kill(t.far.pid, SIGCONT), 0);
	await_ok(&t.p, 1, IBV_WC_SEND);
	far_await_ok(&t, 0, IBV_WC_RECV, 64);
	far_quiet(&t);
	trio_close(&t);
}

/* The target ends with its process; the queue serves others. */
CASE_EACH(xrc_far, the_owner_of_the_target_is_killed)
{
	struct pair_opts o;
	struct trio t;
	struct work w;
	struct done d;

	if (where != TWO_PROCESSES)
		return;
	trio_defaults(&o);
	o.a.timeout = 14;
	o.a.retry = 3;
	trio_open_in(&t, where, &o, NULL);
	far_post(&t, 0, 0, ROOM);
	far_post(&t, 1, 0, ROOM);
	w = far_work(&t, IBV_WR_SEND, 64);
	must_post(&t.p, &w);
	await_ok(&t.p, 1, IBV_WC_SEND);
	far_await_ok(&t, 0, IBV_WC_RECV, 64);
	peer_kill(&t.p.peer);
	must_post(&t.p, &w);
	await_error(&t.p, 1, IBV_WC_RETRY_EXC_ERR);
	/* through its own target now */
	cr_assert_eq(end_to(&t.p.a, IBV_QPS_RESET), 0);
	cr_assert_eq(end_target_to(&t.p.a, IBV_QPS_RESET), 0);
	cr_assert_eq(end_connect(&t.p.a, &t.ifar), 0);
	cr_assert_eq(peer_connect(&t.far, &t.p.ia), 0);
	must_post(&t.p, &w);
	await_ok(&t.p, 1, IBV_WC_SEND);
	peer_await(&t.far, RECV_CQ, &d);
	check_ok("through its own target", &d, 1, IBV_WC_RECV);
	peer_stop(&t.far);
	end_close(&t.p.a);
	unlink(o.b.domain);
}

/* ---- the target fails in the middle of a message ---- */

CASE_EACH(xrc_far, the_target_fails_within_a_message)
{
	enum { BYTES = 700001 };
	struct pair_opts o;
	struct trio t;
	struct work w;
	struct done d;

	trio_defaults(&o);
	o.a.bytes = 1 << 20;
	trio_open_in(&t, where, &o, NULL);
	far_post(&t, 0, 0, 400000);
	w = far_work(&t, IBV_WR_SEND, BYTES);
	must_post(&t.p, &w);
	await_error(&t.p, 1, IBV_WC_REM_INV_REQ_ERR);
	peer_await(&t.far, RECV_CQ, &d);
	check_error("the rest did not fit", &d, 0, IBV_WC_LOC_LEN_ERR, t.p.ib.target_qpn, -1, 0);
	far_quiet(&t);
	trio_close(&t);
}
