/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UD: datagrams, the 40 bytes in front of them, and the way back to who sent them.
 *
 * Rules: expected-statuses.md (rows UD); device-abi F.1 rows 8, 16 and 17, G.5; api-inventory
 * PS-5, AH-5, CQ-6.
 */
#include <errno.h>
#include <string.h>
#include "harness/check.h"

TestSuite(ud, .timeout = 60);

enum { OWN = 1 << 15 };		/* where a receives, in its buffer */

static void ud_opts(struct pair_opts *o)
{
	pair_defaults(o);
	o->a.type = o->b.type = IBV_QPT_UD;
}

static void ud_open(struct pair *p, enum placement where)
{
	struct pair_opts o;

	ud_opts(&o);
	pair_open(p, where, &o);
}

static struct work own_recv(const struct pair *p, uint64_t wr_id, uint32_t bytes)
{
	return (struct work){ .wr_id = wr_id, .sge_count = 1,
		.sge = { { p->ia.addr + OWN, bytes, p->ia.lkey } } };
}

static struct work peer_send(const struct pair *p, uint64_t wr_id, uint32_t bytes)
{
	return (struct work){ .opcode = IBV_WR_SEND, .wr_id = wr_id, .flags = IBV_SEND_SIGNALED,
		.sge_count = 1, .sge = { { p->ib.addr, bytes, p->ib.lkey } } };
}

/* A datagram that arrives: what was sent before it is there or never will be. */
static void settle(struct pair *p, uint64_t wr_id)
{
	struct work recv = pair_recv(p, wr_id, OWN, GRH_BYTES + 64);
	struct work send = pair_work(p, IBV_WR_SEND, 64);

	send.wr_id = wr_id;
	must_recv(p, &recv);
	must_post(p, &send);
	await_ok(p, wr_id, IBV_WC_SEND);
	await_recv_ok(p, wr_id, GRH_BYTES + 64);
}

static const struct { enum ibv_wr_opcode opcode; unsigned flags; bool is_extended; } sends[] = {
	{ IBV_WR_SEND, 0, false }, { IBV_WR_SEND_WITH_IMM, 0, false },
	{ IBV_WR_SEND, IBV_SEND_INLINE, false }, { IBV_WR_SEND, IBV_SEND_SOLICITED, true },
};

CASE_TABLE(ud, every_size_arrives_behind_40_bytes, ROWS(sends))
{
	static const uint32_t sizes[] = { 0, 1, 44, 64, 1024, 4095, 4096 };
	struct pair_opts o;
	struct pair p;

	ud_opts(&o);
	o.a.is_extended = o.b.is_extended = sends[row].is_extended;
	pair_open(&p, where, &o);
	for (unsigned i = 0; i < ROWS(sizes); i++) {
		struct work w = pair_work(&p, sends[row].opcode, sizes[i]);
		struct work r = pair_recv(&p, i, 0, GRH_BYTES + 4096);
		struct done d;

		if (sends[row].flags & IBV_SEND_INLINE && sizes[i] > 64)
			break;
		w.flags |= sends[row].flags;
		w.imm = 0xfeed0000 + i;
		w.wr_id = i;
		pattern_fill(p.a.buf, sizes[i], i);
		must_recv(&p, &r);
		must_post(&p, &w);
		await_ok(&p, i, IBV_WC_SEND);
		peer_await(&p.peer, RECV_CQ, &d);
		check_ok("receive", &d, i, IBV_WC_RECV);
		cr_expect_eq(d.wc.byte_len, GRH_BYTES + sizes[i]);
		cr_expect_eq(d.wc.src_qp, p.ia.qpn);
		cr_expect_eq(d.wc.qp_num, p.ib.qpn);
		cr_expect(d.wc.wc_flags & IBV_WC_GRH);
		cr_expect_eq(!!(d.wc.wc_flags & IBV_WC_WITH_IMM),
			     sends[row].opcode == IBV_WR_SEND_WITH_IMM);
		if (d.wc.wc_flags & IBV_WC_WITH_IMM)
			cr_expect_eq(be32toh(d.wc.imm_data), 0xfeed0000 + i);
		cr_expect_eq(peer_differs(&p.peer, GRH_BYTES, sizes[i], i), -1, "size %u",
			     sizes[i]);
	}
	check_quiet(&p);
	pair_close(&p);
}

/* Pieces of the receive need not end where the header does. */
CASE_EACH(ud, header_and_data_are_scattered_as_one)
{
	static const uint32_t pieces[4] = { 7, 40, 3, 200 };
	uint32_t at = 0;
	struct pair p;
	struct work r, w;

	ud_open(&p, where);
	r = (struct work){ .wr_id = 3, .sge_count = 4 };
	for (unsigned i = 0; i < 4; i++) {
		r.sge[i] = (struct ibv_sge){ p.ib.addr + at, pieces[i], p.ib.lkey };
		at += pieces[i];
	}
	pattern_fill(p.a.buf, 100, 3);
	w = pair_work(&p, IBV_WR_SEND, 100);
	must_recv(&p, &r);
	must_post(&p, &w);
	await_recv_ok(&p, 3, GRH_BYTES + 100);
	cr_expect_eq(peer_differs(&p.peer, GRH_BYTES, 100, 3), -1);
	pair_close(&p);
}

/* AH-5: from a completion and its 40 bytes to an address handle, for each sort of GID. */
static const struct { const char *name; uint8_t gid_index; } gids[] = {
	{ "IPv6, RoCE v1", 0 }, { "IPv6, RoCE v2", 1 }, { "IPv4, RoCE v1", 2 },
	{ "IPv4, RoCE v2", 3 },
};

CASE_TABLE(ud, the_sender_can_be_answered, ROWS(gids))
{
	struct ibv_ah_attr attr;
	struct pair_opts o;
	struct pair p;
	struct work w, r;
	struct done d;

	ud_opts(&o);
	o.a.gid_index = o.b.gid_index = gids[row].gid_index;
	pair_open(&p, where, &o);
	r = own_recv(&p, 4, GRH_BYTES + 64);
	cr_assert_eq(end_post_recv(&p.a, &r), 0);
	w = peer_send(&p, 5, 64);
	cr_assert_eq(peer_post(&p.peer, &w), 0);
	end_await(&p.a, RECV_CQ, &d);
	check_ok(gids[row].name, &d, 4, IBV_WC_RECV);
	cr_expect_eq(d.wc.src_qp, p.ib.qpn);

	cr_assert_eq(ibv_init_ah_from_wc(p.a.context, 1, &d.wc, (void *)(p.a.buf + OWN), &attr), 0);
	cr_expect_eq(attr.is_global, 1);
	cr_expect_eq(attr.grh.sgid_index, gids[row].gid_index, "%s: index %u", gids[row].name,
		     attr.grh.sgid_index);
	cr_expect(!memcmp(&attr.grh.dgid, &p.ib.gid, sizeof attr.grh.dgid));
	cr_expect_eq(attr.grh.hop_limit, 64);
	p.a.ah[0] = (struct end_ah){ p.ib.gid, ibv_create_ah_from_wc(p.a.pd, &d.wc,
			(void *)(p.a.buf + OWN), 1) };
	cr_assert_not_null(p.a.ah[0].ah);
	settle(&p, 6);				/* through that handle */
	pair_close(&p);
}

/* Who is not there, or does not want it: SUCCESS, and nothing arrives. */
enum lost { QKEY, QPN, NO_RECEIVE, STATE_INIT, STATE_ERR, DESTROYED, NOBODY };
static const struct { const char *name; enum lost lost; } losts[] = {
	{ "wrong Q_Key", QKEY }, { "unknown QPN", QPN }, { "no receive", NO_RECEIVE },
	{ "peer in INIT", STATE_INIT }, { "peer in ERR", STATE_ERR }, { "peer gone", DESTROYED },
	{ "unknown GID", NOBODY },
};

CASE_TABLE(ud, lost_datagrams_succeed, ROWS(losts))
{
	enum lost lost = losts[row].lost;
	struct pair_opts o;
	struct pair p;
	struct work w, r;
	struct done d;

	ud_opts(&o);
	o.b.state = lost == STATE_INIT ? IBV_QPS_INIT : lost == STATE_ERR ? IBV_QPS_ERR :
		    IBV_QPS_RTS;
	pair_open(&p, where, &o);
	if (lost == DESTROYED)
		cr_assert_eq(peer_destroy_qp(&p.peer), 0);
	w = pair_work(&p, IBV_WR_SEND, 64);
	w.qkey_error = lost == QKEY;
	w.remote_qpn = lost == QPN ? 0xabcdef : 0;
	if (lost == NOBODY) {
		w.gid = p.ib.gid;
		w.gid.raw[14] ^= 0x55;
	}
	r = pair_recv(&p, 9, 0, GRH_BYTES + 64);
	if (lost == QKEY || lost == QPN || lost == NOBODY)
		must_recv(&p, &r);
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_SEND);
	cr_expect_eq(end_state(&p.a), IBV_QPS_RTS);
	if (lost != DESTROYED) {
		peer_glance(&p.peer, RECV_CQ, &d);
		check_none(losts[row].name, &d);
	}
	if (lost == QKEY) {
		w.qkey_error = 0;
		must_post(&p, &w);
		await_ok(&p, 1, IBV_WC_SEND);
		await_recv_ok(&p, 9, GRH_BYTES + 64);
	} else if (lost == NO_RECEIVE) {
		settle(&p, 8);
	}
	pair_close(&p);
}

CASE_EACH(ud, a_wrong_qkey_moves_the_ports_counter)
{
	struct ibv_port_attr before, after;
	struct pair p;
	struct work w;

	/* Whose counter moves is the receiver's, which this process can't ask there. */
	if (where == TWO_PROCESSES)
		cr_skip("the other process's port");
	ud_open(&p, where);
	cr_assert_eq(ibv_query_port(p.a.context, 1, &before), 0);
	w = pair_work(&p, IBV_WR_SEND, 64);
	w.qkey_error = 1;
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_SEND);
	cr_assert_eq(ibv_query_port(p.a.context, 1, &after), 0);
	cr_expect_eq(after.qkey_viol_cntr, before.qkey_viol_cntr + 1);
	pair_close(&p);
}

/* A connected QP's number is no address for datagrams, nor the other way round. */
CASE_EACH(ud, other_types_neither_take_nor_send_datagrams)
{
	struct pair_opts o;
	struct pair p;
	struct work w;

	ud_opts(&o);
	o.b.type = IBV_QPT_RC;
	pair_open(&p, where, &o);
	w = pair_work(&p, IBV_WR_SEND, 64);
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_SEND);
	check_quiet(&p);
	pair_close(&p);

	ud_opts(&o);
	o.a.type = IBV_QPT_RC;
	o.a.timeout = 8;
	o.a.retry = 1;
	pair_open(&p, where, &o);
	w = pair_work(&p, IBV_WR_SEND, 64);
	must_post(&p, &w);
	await_error(&p, 1, IBV_WC_RETRY_EXC_ERR);
	pair_close(&p);
}

/* What is wrong at home: completion, SQE, flush; receives go on; RTS again. */
enum fault { TOO_LONG, LKEY };
static const struct { const char *name; enum fault fault; enum ibv_wc_status status; } faults[] = {
	{ "longer than the MTU", TOO_LONG, IBV_WC_LOC_LEN_ERR },
	{ "bad lkey", LKEY, IBV_WC_LOC_PROT_ERR },
};

CASE_TABLE(ud, a_local_error_stops_the_send_queue_only, ROWS(faults))
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE };
	struct pair p;
	struct work w, r;
	struct done d;

	ud_open(&p, where);
	r = own_recv(&p, 40, GRH_BYTES + 64);
	cr_assert_eq(end_post_recv(&p.a, &r), 0);
	w = pair_work(&p, IBV_WR_SEND, faults[row].fault == TOO_LONG ? 4097 : 64);
	w.sge[0].lkey ^= faults[row].fault == LKEY ? 0x3fff0000 : 0;
	must_post(&p, &w);
	w = pair_work(&p, IBV_WR_SEND, 64);
	w.wr_id = 2;
	w.flags = 0;
	must_post(&p, &w);
	await_error(&p, 1, faults[row].status);
	await_error(&p, 2, IBV_WC_WR_FLUSH_ERR);
	check_states(faults[row].name, &p, IBV_QPS_SQE, IBV_QPS_RTS);

	w = peer_send(&p, 7, 64);
	cr_assert_eq(peer_post(&p.peer, &w), 0);
	end_await(&p.a, RECV_CQ, &d);
	check_ok("a receive in SQE", &d, 40, IBV_WC_RECV);
	peer_await(&p.peer, SEND_CQ, &d);
	check_ok("the peer", &d, 7, IBV_WC_SEND);

	cr_assert_eq(ibv_modify_qp(p.a.qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE), 0);
	settle(&p, 8);
	check_quiet(&p);
	pair_close(&p);
}

static const enum ibv_wr_opcode foreign[] = {
	IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
	IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND_WITH_INV,
};

CASE_TABLE(ud, only_sends_exist, ROWS(foreign))
{
	struct pair p;
	struct work w;

	ud_open(&p, where);
	w = pair_work(&p, foreign[row], 8);
	if (!end_post(&p.a, &w)) {
		await_error(&p, 1, IBV_WC_LOC_QP_OP_ERR);
		check_states("a foreign operation", &p, IBV_QPS_SQE, IBV_QPS_RTS);
	}
	check_quiet(&p);
	pair_close(&p);
}

/* A receive that can't take its datagram fails, and ends its QP; the sender never knows. */
static const struct { const char *name; uint32_t bytes, key_error; enum ibv_wc_status status; }
recv_errors[] = {
	{ "a byte short", GRH_BYTES + 63, 0, IBV_WC_LOC_LEN_ERR },
	{ "less than the header", GRH_BYTES - 1, 0, IBV_WC_LOC_LEN_ERR },
	{ "unknown key", GRH_BYTES + 64, 0x3fff0000, IBV_WC_LOC_PROT_ERR },
};

CASE_TABLE(ud, a_bad_receive_fails_and_only_here, ROWS(recv_errors))
{
	struct pair p;
	struct work r, w;

	ud_open(&p, where);
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
	pair_close(&p);
}

CASE_EACH(ud, a_qp_in_rtr_receives)
{
	struct pair_opts o;
	struct pair p;

	ud_opts(&o);
	o.b.state = IBV_QPS_RTR;
	pair_open(&p, where, &o);
	settle(&p, 3);
	cr_expect_not(peer_event(&p.peer, IBV_EVENT_COMM_EST, 0), "nothing is established");
	pair_close(&p);
}

CASE_EACH(ud, receives_come_from_a_shared_queue_too)
{
	struct pair_opts o;
	struct pair p;

	ud_opts(&o);
	o.b.srq_wr = 16;
	pair_open(&p, where, &o);
	for (uint64_t i = 0; i < 40; i++)
		settle(&p, i);
	pair_close(&p);
}

CASE_EACH(ud, a_qp_may_talk_to_itself)
{
	struct pair p;
	struct work r, w;
	struct done d;

	ud_open(&p, where);
	r = own_recv(&p, 2, GRH_BYTES + 64);
	cr_assert_eq(end_post_recv(&p.a, &r), 0);
	w = pair_work(&p, IBV_WR_SEND, 64);
	w.gid = p.ia.gid;
	w.remote_qpn = p.ia.qpn;
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_SEND);
	end_await(&p.a, RECV_CQ, &d);
	check_ok("from itself", &d, 2, IBV_WC_RECV);
	cr_expect_eq(d.wc.src_qp, p.ia.qpn);
	pair_close(&p);
}

/* More than rings and queues hold at once, receives always in time: nothing is lost in between. */
CASE_EACH(ud, a_stream_keeps_its_order)
{
	enum { ROUNDS = 40, BURST = 32 };
	struct pair p;

	ud_open(&p, where);
	for (uint64_t round = 0; round < ROUNDS; round++) {
		for (uint64_t i = 0; i < BURST; i++) {
			struct work r = pair_recv(&p, i, 0, GRH_BYTES + 1024);

			must_recv(&p, &r);
		}
		for (uint64_t i = 0; i < BURST; i++) {
			struct work w = pair_work(&p, IBV_WR_SEND, (uint32_t)(i * 16));

			w.wr_id = i;
			must_post(&p, &w);
		}
		for (uint64_t i = 0; i < BURST; i++) {
			await_ok(&p, i, IBV_WC_SEND);
			await_recv_ok(&p, i, (uint32_t)(GRH_BYTES + i * 16));
		}
	}
	pair_close(&p);
}

/* --- attributes --- */

Test(ud, attributes_of_connections_are_refused)
{
	static const int masks[] = { IBV_QP_ACCESS_FLAGS, IBV_QP_AV, IBV_QP_PATH_MTU,
				     IBV_QP_DEST_QPN, IBV_QP_RQ_PSN };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct end_opts o;
	struct end e;

	end_defaults(&o);
	o.type = IBV_QPT_UD;
	cr_assert_eq(end_open(&e, &o, NULL), 0);
	cr_expect_eq(ibv_modify_qp(e.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT),
		     EINVAL, "a Q_Key is needed");
	cr_assert_eq(end_to_init(&e), 0);
	for (unsigned i = 0; i < ROWS(masks); i++)
		cr_expect_eq(ibv_modify_qp(e.qp, &attr, IBV_QP_STATE | masks[i]), EINVAL,
			     "mask 0x%x", masks[i]);
	end_close(&e);
}

Test(ud, the_qkey_can_be_changed_and_asked_for)
{
	struct ibv_qp_attr attr = { .qkey = 0x123 };
	struct ibv_qp_init_attr init;
	struct pair p;

	ud_open(&p, ONE_THREAD);
	cr_assert_eq(ibv_modify_qp(p.a.qp, &attr, IBV_QP_QKEY), 0);
	memset(&attr, 0, sizeof attr);
	cr_assert_eq(ibv_query_qp(p.a.qp, &attr, IBV_QP_QKEY | IBV_QP_SQ_PSN, &init), 0);
	cr_expect_eq(attr.qkey, 0x123);
	cr_expect_eq(attr.sq_psn, p.a.opts.sq_psn);
	cr_expect_eq(init.qp_type, IBV_QPT_UD);
	pair_close(&p);
}
