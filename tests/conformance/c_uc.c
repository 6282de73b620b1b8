/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UC: what leaves is complete; what arrives is whole; nobody tells of the rest.
 *
 * Rules: device-abi F.1 rows 1, 9, 18 and 19, F.3 (SQE), E.1 (SQE to RTS); IBTA volume 1, 9.8.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "harness/check.h"

TestSuite(uc, .timeout = 60);

enum { BIG = 1 << 20 };

static void uc_opts(struct pair_opts *o)
{
	pair_defaults(o);
	o->a.type = o->b.type = IBV_QPT_UC;
	o->a.bytes = o->b.bytes = 2 * BIG;
}

static void uc_open(struct pair *p, enum placement where)
{
	struct pair_opts o;

	uc_opts(&o);
	pair_open(p, where, &o);
}

/* All that was sent before has arrived, or never will: messages keep their order. */
static void settle(struct pair *p, uint64_t wr_id)
{
	struct work recv = pair_recv(p, wr_id, BIG, 64), send = pair_work(p, IBV_WR_SEND, 64);

	send.wr_id = wr_id;
	must_recv(p, &recv);
	must_post(p, &send);
	await_ok(p, wr_id, IBV_WC_SEND);
	await_recv_ok(p, wr_id, 64);
}

static const struct { enum ibv_wr_opcode opcode; enum ibv_wc_opcode sent, received; bool has_imm; }
transfers[] = {
	{ IBV_WR_SEND, IBV_WC_SEND, IBV_WC_RECV, false },
	{ IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, IBV_WC_RECV, true },
	{ IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, 0, false },
	{ IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, IBV_WC_RECV_RDMA_WITH_IMM, true },
};

CASE_TABLE(uc, every_operation_moves_every_size, ROWS(transfers))
{
	static const uint32_t sizes[] = { 0, 1, 64, 1023, 1024, 1025, 4096, 70000, BIG };
	bool takes_recv = transfers[row].opcode != IBV_WR_RDMA_WRITE;
	struct pair p;

	uc_open(&p, where);
	for (unsigned i = 0; i < ROWS(sizes); i++) {
		struct work w = pair_work(&p, transfers[row].opcode, sizes[i]);
		struct work r = pair_recv(&p, 100 + i, 0, sizes[i]);
		struct done d;

		w.wr_id = i;
		w.imm = 0xdecade00 + i;
		w.sge_count = r.sge_count = sizes[i] != 0;
		pattern_fill(p.a.buf, sizes[i], i);
		if (takes_recv)
			must_recv(&p, &r);
		must_post(&p, &w);
		await_ok(&p, i, transfers[row].sent);
		if (takes_recv) {
			peer_await(&p.peer, RECV_CQ, &d);
			check_ok("receive", &d, 100 + i, transfers[row].received);
			cr_expect_eq(d.wc.byte_len, sizes[i]);
			cr_expect_eq(d.wc.qp_num, p.ib.qpn);
			if (transfers[row].has_imm)
				cr_expect_eq(be32toh(d.wc.imm_data), 0xdecade00 + i);
		} else {
			settle(&p, 200 + i);
		}
		cr_expect_eq(peer_differs(&p.peer, 0, sizes[i], i), -1, "size %u", sizes[i]);
	}
	check_states("at the end", &p, IBV_QPS_RTS, IBV_QPS_RTS);
	check_quiet(&p);
	pair_close(&p);
}

CASE_EACH(uc, both_directions_and_inline)
{
	struct pair p;
	struct done d;

	uc_open(&p, where);
	for (uint64_t i = 0; i < 20; i++) {
		struct work r = pair_recv(&p, i, 64 * i, 64), w = pair_work(&p, IBV_WR_SEND, 40);
		struct work own = { .wr_id = i, .sge_count = 1,
			.sge = { { p.ia.addr + BIG, 64, p.ia.lkey } } };
		struct work back = { .opcode = IBV_WR_SEND, .wr_id = i, .flags = IBV_SEND_SIGNALED,
			.sge_count = 1, .sge = { { p.ib.addr, 64, p.ib.lkey } } };

		w.wr_id = i;
		w.flags |= IBV_SEND_INLINE;
		must_recv(&p, &r);
		cr_assert_eq(end_post_recv(&p.a, &own), 0);
		must_post(&p, &w);
		cr_assert_eq(peer_post(&p.peer, &back), 0);
		await_ok(&p, i, IBV_WC_SEND);
		await_recv_ok(&p, i, 40);
		end_await(&p.a, RECV_CQ, &d);
		check_ok("the way back", &d, i, IBV_WC_RECV);
		peer_await(&p.peer, SEND_CQ, &d);
		check_ok("the way back", &d, i, IBV_WC_SEND);
	}
	pair_close(&p);
}

/* What the responder drops: the requester is told SUCCESS, no receive is used up. */
enum spoil { NO_RECEIVE, RKEY, RANGE, RIGHTS, READ_ONLY_KEY, OTHER_MTU };
static const struct drop_row {
	const char *name;
	enum ibv_wr_opcode opcode;
	enum spoil spoil;
	uint32_t bytes;
} drops[] = {
	{ "SEND without a receive", IBV_WR_SEND, NO_RECEIVE, 64 },
	{ "long SEND without a receive", IBV_WR_SEND, NO_RECEIVE, 200000 },
	{ "WRITE_IMM without a receive", IBV_WR_RDMA_WRITE_WITH_IMM, NO_RECEIVE, 64 },
	{ "WRITE, unknown rkey", IBV_WR_RDMA_WRITE, RKEY, 64 },
	{ "long WRITE, unknown rkey", IBV_WR_RDMA_WRITE, RKEY, 200000 },
	{ "WRITE out of range", IBV_WR_RDMA_WRITE, RANGE, 64 },
	{ "WRITE that the QP does not allow", IBV_WR_RDMA_WRITE, RIGHTS, 64 },
	{ "WRITE that the key does not allow", IBV_WR_RDMA_WRITE, READ_ONLY_KEY, 64 },
	{ "long WRITE with another MTU", IBV_WR_RDMA_WRITE, OTHER_MTU, 200000 },
};

/* Nobody tells that a message was dropped.  One that is still on its way would take the receive
 * that is posted next, so the far side is given time to lend. */
static void look_until_dropped(struct pair *p, struct done *out)
{
	enum { LOOKS = 20, PAUSE_US = 500 };

	for (int i = 0; i < LOOKS; i++) {
		peer_glance(&p->peer, RECV_CQ, out);
		if (out->found)
			return;
		usleep(PAUSE_US);
	}
}

CASE_TABLE(uc, each_misfit_is_dropped_and_the_next_message_arrives, ROWS(drops))
{
	const struct drop_row *r = &drops[row];
	struct pair_opts o;
	struct pair p;
	struct work w;
	struct done d;

	uc_opts(&o);
	o.b.qp_access = r->spoil == RIGHTS ? IBV_ACCESS_REMOTE_READ : ACCESS_ALL;
	o.b.mr_access = r->spoil == READ_ONLY_KEY ? IBV_ACCESS_LOCAL_WRITE : ACCESS_ALL;
	o.b.mtu = r->spoil == OTHER_MTU ? IBV_MTU_2048 : IBV_MTU_1024;
	pair_open(&p, where, &o);
	pattern_fill(p.a.buf, r->bytes, 5);
	w = pair_work(&p, r->opcode, r->bytes);
	w.rkey ^= r->spoil == RKEY ? 0x3fff0000 : 0;
	w.remote_addr += r->spoil == RANGE ? p.ib.bytes - 63 : 0;
	must_post(&p, &w);
	await_ok(&p, 1, r->opcode == IBV_WR_SEND ? IBV_WC_SEND : IBV_WC_RDMA_WRITE);
	look_until_dropped(&p, &d);
	check_none(r->name, &d);
	settle(&p, 7);
	cr_expect_neq(peer_differs(&p.peer, 0, r->bytes, 5), -1, "%s: written all the same",
		      r->name);
	check_states(r->name, &p, IBV_QPS_RTS, IBV_QPS_RTS);
	check_quiet(&p);
	pair_close(&p);
}

/* A receive that can't take its message has to complete, and ends its QP. */
static const struct { const char *name; enum ibv_wc_status status; uint32_t bytes, key_error; }
recv_errors[] = {
	{ "too small", IBV_WC_LOC_LEN_ERR, 63, 0 },
	{ "unknown key", IBV_WC_LOC_PROT_ERR, 64, 0x3fff0000 },
};

CASE_TABLE(uc, a_bad_receive_fails_and_only_here, ROWS(recv_errors))
{
	struct pair p;
	struct work r, w;

	uc_open(&p, where);
	r = pair_recv(&p, 5, 0, recv_errors[row].bytes);
	r.sge[0].lkey ^= recv_errors[row].key_error;
	must_recv(&p, &r);
	r = pair_recv(&p, 6, 0, 4096);
	must_recv(&p, &r);
	w = pair_work(&p, IBV_WR_SEND, 64);
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_SEND);
	await_recv_error(&p, 5, recv_errors[row].status);
	await_recv_error(&p, 6, IBV_WC_WR_FLUSH_ERR);
	check_states(recv_errors[row].name, &p, IBV_QPS_RTS, IBV_QPS_ERR);
	w.wr_id = 2;
	must_post(&p, &w);
	await_ok(&p, 2, IBV_WC_SEND);
	pair_close(&p);
}

/* F.3: the failing request, then the others flushed; receives go on; SQE to RTS starts again. */
CASE_EACH(uc, a_local_error_stops_the_send_queue_only)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE };
	struct work own, w, back;
	struct pair p;
	struct done d;

	uc_open(&p, where);
	own = (struct work){ .wr_id = 50, .sge_count = 1,
		.sge = { { p.ia.addr + BIG, 64, p.ia.lkey } } };
	cr_assert_eq(end_post_recv(&p.a, &own), 0);
	w = pair_work(&p, IBV_WR_SEND, 64);
	w.sge[0].lkey ^= 0x3fff0000;
	must_post(&p, &w);
	w.sge[0].lkey = p.ia.lkey;
	for (w.wr_id = 2; w.wr_id < 4; w.wr_id++) {
		w.flags = 0;
		must_post(&p, &w);
	}
	await_error(&p, 1, IBV_WC_LOC_PROT_ERR);
	await_error(&p, 2, IBV_WC_WR_FLUSH_ERR);
	await_error(&p, 3, IBV_WC_WR_FLUSH_ERR);
	check_states("after a local error", &p, IBV_QPS_SQE, IBV_QPS_RTS);

	back = (struct work){ .opcode = IBV_WR_SEND, .wr_id = 9, .flags = IBV_SEND_SIGNALED,
		.sge_count = 1, .sge = { { p.ib.addr, 64, p.ib.lkey } } };
	cr_assert_eq(peer_post(&p.peer, &back), 0);
	end_await(&p.a, RECV_CQ, &d);
	check_ok("a receive in SQE", &d, 50, IBV_WC_RECV);
	peer_await(&p.peer, SEND_CQ, &d);
	check_ok("the peer", &d, 9, IBV_WC_SEND);

	w.wr_id = 4;
	must_post(&p, &w);
	await_error(&p, 4, IBV_WC_WR_FLUSH_ERR);
	cr_assert_eq(ibv_modify_qp(p.a.qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE), 0);
	settle(&p, 8);
	check_states("again", &p, IBV_QPS_RTS, IBV_QPS_RTS);
	check_quiet(&p);
	pair_close(&p);
}

/* Refused when posted, or a completion that says that the operation can't be. */
static const enum ibv_wr_opcode foreign[] = {
	IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
};

CASE_TABLE(uc, reads_and_atomics_are_refused, ROWS(foreign))
{
	struct pair p;
	struct work w;

	uc_open(&p, where);
	w = pair_work(&p, foreign[row], 8);
	if (!end_post(&p.a, &w)) {
		await_error(&p, 1, IBV_WC_LOC_QP_OP_ERR);
		check_states("a foreign operation", &p, IBV_QPS_SQE, IBV_QPS_RTS);
	}
	check_quiet(&p);
	pair_close(&p);
}

CASE_EACH(uc, a_peer_that_is_gone_is_not_missed)
{
	struct pair p;
	struct work w;

	uc_open(&p, where);
	cr_assert_eq(peer_destroy_qp(&p.peer), 0);
	w = pair_work(&p, IBV_WR_RDMA_WRITE, 100000);
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	cr_expect_eq(end_state(&p.a), IBV_QPS_RTS);
	pair_close(&p);
}

/* Neither end has to know where the other begins to count. */
CASE_EACH(uc, psns_need_not_agree)
{
	struct pair_opts o;
	struct pair p;

	uc_opts(&o);
	o.b.rq_psn = 0x700000;
	pair_open(&p, where, &o);
	settle(&p, 3);
	settle(&p, 4);
	pair_close(&p);
}

CASE_EACH(uc, the_first_packet_in_rtr_raises_comm_est)
{
	struct pair_opts o;
	struct pair p;

	uc_opts(&o);
	o.b.state = IBV_QPS_RTR;
	pair_open(&p, where, &o);
	settle(&p, 3);
	cr_expect(peer_event(&p.peer, IBV_EVENT_COMM_EST, AWAIT_MS));
	pair_close(&p);
}

Test(uc, attributes_of_rc_are_refused)
{
	static const struct { int mask; } rows[] = {
		{ IBV_QP_MAX_DEST_RD_ATOMIC }, { IBV_QP_MIN_RNR_TIMER }, { IBV_QP_QKEY },
	};
	struct end_opts o;
	struct end e;

	end_defaults(&o);
	o.type = IBV_QPT_UC;
	cr_assert_eq(end_open(&e, &o, NULL), 0);
	cr_assert_eq(end_to_init(&e), 0);
	for (unsigned i = 0; i < ROWS(rows); i++) {
		struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };

		cr_expect_eq(ibv_modify_qp(e.qp, &attr, IBV_QP_STATE | rows[i].mask), EINVAL,
			     "mask 0x%x", rows[i].mask);
	}
	end_close(&e);
}

Test(uc, query_says_what_was_set)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct pair p;

	uc_open(&p, ONE_THREAD);
	cr_assert_eq(ibv_query_qp(p.a.qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_SQ_PSN, &init),
		     0);
	cr_expect_eq(init.qp_type, IBV_QPT_UC);
	cr_expect_eq(attr.qp_state, IBV_QPS_RTS);
	cr_expect_eq(attr.path_mtu, IBV_MTU_1024);
	cr_expect_eq(attr.dest_qp_num, p.ib.qpn);
	cr_expect_eq(attr.sq_psn, p.a.opts.sq_psn);
	cr_expect_eq(attr.rq_psn, p.a.opts.rq_psn);
	cr_expect_eq(attr.ah_attr.grh.sgid_index, GID_INDEX);
	pair_close(&p);
}
