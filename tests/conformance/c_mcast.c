/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast: who is attached to a group gets one copy of what is sent to it.
 *
 * Rules: api-inventory MC-1 to MC-4, QP-4; device-abi B.9 (attach), G.5.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include "harness/check.h"

TestSuite(mcast, .timeout = 60);

enum { OWN = 1 << 15, BYTES = 64, ALL_QPS = 0xffffff };

static union ibv_gid group_of(const char *text)
{
	union ibv_gid gid;

	cr_assert_eq(inet_pton(AF_INET6, text, &gid), 1);
	return gid;
}

static const char *const groups[] = {
	"ff0e::ffff:e00a:b0c", "::ffff:224.10.11.12", "ff12:401b::1",
};

static void mcast_opts(struct pair_opts *o)
{
	pair_defaults(o);
	o->a.type = o->b.type = IBV_QPT_UD;
}

static void mcast_open(struct pair *p, enum placement where)
{
	struct pair_opts o;

	mcast_opts(&o);
	pair_open(p, where, &o);
}

static struct work to_group(const struct pair *p, const union ibv_gid *gid)
{
	struct work w = pair_work(p, IBV_WR_SEND, BYTES);

	w.gid = *gid;
	w.remote_qpn = ALL_QPS;
	return w;
}

static void send_to_group(struct pair *p, const union ibv_gid *gid)
{
	struct work w = to_group(p, gid);

	must_post(p, &w);
	await_ok(p, 1, IBV_WC_SEND);
}

static void recvs(struct pair *p, uint64_t first, unsigned count)
{
	for (uint64_t i = first; i < first + count; i++) {
		struct work r = pair_recv(p, i, 0, GRH_BYTES + BYTES);

		must_recv(p, &r);
	}
}

static void own_recvs(struct end *e, uint64_t first, unsigned count)
{
	for (uint64_t i = first; i < first + count; i++) {
		struct work r = { .wr_id = i, .sge_count = 1,
			.sge = { { (uintptr_t)e->buf + OWN, GRH_BYTES + BYTES, e->mr->lkey } } };

		cr_assert_eq(end_post_recv(e, &r), 0);
	}
}

static void expect_own(struct end *e, const char *what, uint64_t wr_id)
{
	struct done d;

	end_await(e, RECV_CQ, &d);
	check_ok(what, &d, wr_id, IBV_WC_RECV);
	cr_expect_eq(d.wc.byte_len, GRH_BYTES + BYTES);
}

CASE_TABLE(mcast, who_is_attached_gets_one_copy, ROWS(groups))
{
	union ibv_gid gid = group_of(groups[row]);
	struct pair p;
	struct done d;

	mcast_open(&p, where);
	recvs(&p, 0, 4);
	send_to_group(&p, &gid);			/* nobody listens */
	peer_glance(&p.peer, RECV_CQ, &d);
	check_none("before", &d);

	cr_assert_eq(peer_attach(&p.peer, &gid), 0);
	cr_assert_eq(peer_attach(&p.peer, &gid), 0, "again is no error");
	pattern_fill(p.a.buf, BYTES, row);
	for (uint64_t i = 0; i < 2; i++) {
		send_to_group(&p, &gid);
		peer_await(&p.peer, RECV_CQ, &d);
		check_ok("attached", &d, i, IBV_WC_RECV);
		cr_expect_eq(d.wc.src_qp, p.ia.qpn);
		cr_expect(d.wc.wc_flags & IBV_WC_GRH);
		cr_expect_eq(peer_differs(&p.peer, GRH_BYTES, BYTES, row), -1);
	}
	check_quiet(&p);

	cr_assert_eq(peer_detach(&p.peer, &gid), 0);
	send_to_group(&p, &gid);
	check_quiet(&p);
	pair_close(&p);
}

/* In one process and in the other, and the sender itself. */
CASE_EACH(mcast, every_attached_qp_gets_it)
{
	union ibv_gid gid = group_of(groups[0]);
	struct end_opts o;
	struct end third;
	struct pair p;

	mcast_open(&p, where);
	end_defaults(&o);
	o.type = IBV_QPT_UD;
	cr_assert_eq(end_open(&third, &o, &p.a), 0);
	cr_assert_eq(end_connect(&third, &p.ia), 0);
	recvs(&p, 20, 2);
	own_recvs(&p.a, 30, 2);
	own_recvs(&third, 40, 2);
	cr_assert_eq(peer_attach(&p.peer, &gid), 0);
	cr_assert_eq(ibv_attach_mcast(p.a.qp, &gid, 0), 0);
	cr_assert_eq(ibv_attach_mcast(third.qp, &gid, 0), 0);
	for (uint64_t i = 0; i < 2; i++) {
		send_to_group(&p, &gid);
		await_recv_ok(&p, 20 + i, GRH_BYTES + BYTES);
		expect_own(&p.a, "the sender", 30 + i);
		expect_own(&third, "another QP beside it", 40 + i);
	}
	cr_assert_eq(ibv_detach_mcast(third.qp, &gid, 0), 0);
	cr_assert_eq(ibv_detach_mcast(p.a.qp, &gid, 0), 0);
	cr_assert_eq(peer_detach(&p.peer, &gid), 0);
	end_close(&third);
	pair_close(&p);
}

/* Groups are apart, however many there are and whatever else a QP is in. */
CASE_EACH(mcast, other_groups_get_nothing)
{
	enum { GROUPS = 40 };
	union ibv_gid gid = group_of("ff0e::1:0");
	struct pair p;
	struct done d;

	mcast_open(&p, where);
	recvs(&p, 0, 8);
	for (uint8_t i = 0; i < GROUPS; i++) {
		gid.raw[15] = i;
		cr_assert_eq(peer_attach(&p.peer, &gid), 0);
	}
	gid.raw[15] = 0;
	gid.raw[14] = 1;
	send_to_group(&p, &gid);
	peer_glance(&p.peer, RECV_CQ, &d);
	check_none("a neighbouring group", &d);
	gid.raw[14] = 0;
	for (uint64_t i = 0; i < 8; i++) {
		gid.raw[15] = (uint8_t)(i * 5);
		send_to_group(&p, &gid);
		await_recv_ok(&p, i, GRH_BYTES + BYTES);
	}
	check_quiet(&p);
	for (uint8_t i = 0; i < GROUPS; i++) {
		gid.raw[15] = i;
		cr_assert_eq(peer_detach(&p.peer, &gid), 0);
	}
	pair_close(&p);
}

CASE_EACH(mcast, a_wrong_qkey_is_dropped)
{
	union ibv_gid gid = group_of(groups[0]);
	struct pair p;
	struct work w;

	mcast_open(&p, where);
	recvs(&p, 0, 1);
	cr_assert_eq(peer_attach(&p.peer, &gid), 0);
	w = to_group(&p, &gid);
	w.qkey_error = 1;
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_SEND);
	check_quiet(&p);
	send_to_group(&p, &gid);
	await_recv_ok(&p, 0, GRH_BYTES + BYTES);
	cr_assert_eq(peer_detach(&p.peer, &gid), 0);
	pair_close(&p);
}

/* The number of all QPs goes with a group's address, and the other way round. */
CASE_EACH(mcast, number_and_address_go_together)
{
	union ibv_gid gid = group_of(groups[0]);
	struct pair p;
	struct work w;

	mcast_open(&p, where);
	recvs(&p, 0, 1);
	cr_assert_eq(peer_attach(&p.peer, &gid), 0);
	w = to_group(&p, &p.ib.gid);
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_SEND);
	w = to_group(&p, &gid);
	w.remote_qpn = p.ib.qpn;
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_SEND);
	check_quiet(&p);
	cr_assert_eq(peer_detach(&p.peer, &gid), 0);
	pair_close(&p);
}

CASE_EACH(mcast, blocked_loopback_keeps_ones_own_packets_away)
{
	union ibv_gid gid = group_of(groups[0]);
	struct pair_opts o;
	struct pair p;
	struct work back;
	struct done d;

	mcast_opts(&o);
	o.a.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	pair_open(&p, where, &o);
	recvs(&p, 20, 2);
	own_recvs(&p.a, 30, 2);
	cr_assert_eq(ibv_attach_mcast(p.a.qp, &gid, 0), 0);
	cr_assert_eq(peer_attach(&p.peer, &gid), 0);
	send_to_group(&p, &gid);
	await_recv_ok(&p, 20, GRH_BYTES + BYTES);
	end_glance(&p.a, RECV_CQ, &d);
	check_none("its own packet", &d);

	back = (struct work){ .opcode = IBV_WR_SEND, .wr_id = 5, .flags = IBV_SEND_SIGNALED,
		.gid = gid, .remote_qpn = ALL_QPS, .sge_count = 1,
		.sge = { { p.ib.addr, BYTES, p.ib.lkey } } };
	cr_assert_eq(peer_post(&p.peer, &back), 0);
	expect_own(&p.a, "a packet of the other", 30);
	await_recv_ok(&p, 21, GRH_BYTES + BYTES);	/* the other did not block its own */
	cr_assert_eq(ibv_detach_mcast(p.a.qp, &gid, 0), 0);
	cr_assert_eq(peer_detach(&p.peer, &gid), 0);
	pair_close(&p);
}

/* One member without a receive, or in ERR, is nobody else's trouble. */
CASE_EACH(mcast, members_lose_packets_each_for_itself)
{
	union ibv_gid gid = group_of(groups[0]);
	struct pair p;

	mcast_open(&p, where);
	cr_assert_eq(ibv_attach_mcast(p.a.qp, &gid, 0), 0);
	cr_assert_eq(peer_attach(&p.peer, &gid), 0);
	own_recvs(&p.a, 30, 3);
	send_to_group(&p, &gid);
	expect_own(&p.a, "the one with a receive", 30);
	cr_assert_eq(peer_to(&p.peer, IBV_QPS_ERR), 0);
	send_to_group(&p, &gid);
	expect_own(&p.a, "the one that works", 31);
	cr_assert_eq(ibv_detach_mcast(p.a.qp, &gid, 0), 0);
	cr_assert_eq(peer_detach(&p.peer, &gid), 0);
	check_quiet(&p);
	pair_close(&p);
}

/* More than a ring holds: sender and members at their own pace, nothing is lost or doubled. */
CASE_EACH(mcast, a_stream_keeps_its_order)
{
	enum { ROUNDS = 40, BURST = 24 };
	union ibv_gid gid = group_of(groups[1]);
	struct pair p;

	mcast_open(&p, where);
	cr_assert_eq(peer_attach(&p.peer, &gid), 0);
	for (uint64_t round = 0; round < ROUNDS; round++) {
		recvs(&p, 0, BURST);
		for (uint64_t i = 0; i < BURST; i++) {
			struct work w = to_group(&p, &gid);

			w.wr_id = i;
			w.sge[0].length = (uint32_t)i;
			w.sge_count = i != 0;
			must_post(&p, &w);
		}
		for (uint64_t i = 0; i < BURST; i++) {
			await_ok(&p, i, IBV_WC_SEND);
			await_recv_ok(&p, i, (uint32_t)(GRH_BYTES + i));
		}
	}
	cr_assert_eq(peer_detach(&p.peer, &gid), 0);
	check_quiet(&p);
	pair_close(&p);
}

/* A member that is gone does not hold the others up, nor the sender. */
CASE_EACH(mcast, a_member_may_go_without_a_word)
{
	union ibv_gid gid = group_of(groups[0]);
	struct pair p;

	mcast_open(&p, where);
	cr_assert_eq(ibv_attach_mcast(p.a.qp, &gid, 0), 0);
	cr_assert_eq(peer_attach(&p.peer, &gid), 0);
	own_recvs(&p.a, 30, 2);
	send_to_group(&p, &gid);
	expect_own(&p.a, "before", 30);
	cr_expect_eq(peer_destroy_qp(&p.peer), EBUSY);
	if (where == TWO_PROCESSES) {
		kill(p.peer.pid, SIGKILL);
		waitpid(p.peer.pid, NULL, 0);
	} else {
		cr_assert_eq(peer_detach(&p.peer, &gid), 0);
	}
	send_to_group(&p, &gid);
	expect_own(&p.a, "after", 31);
	cr_assert_eq(ibv_detach_mcast(p.a.qp, &gid, 0), 0);
	if (where == TWO_PROCESSES)
		end_close(&p.a);
	else
		pair_close(&p);
}

/* --- what is refused --- */

static struct end alone;

static void alone_open(enum ibv_qp_type type)
{
	struct end_opts o;

	end_defaults(&o);
	o.type = type;
	cr_assert_eq(end_open(&alone, &o, NULL), 0, "is this run under `verbena run`?");
}

Test(mcast, only_datagram_qps_and_groups)
{
	union ibv_gid gid = group_of(groups[0]), unicast = group_of("fe80::1");

	alone_open(IBV_QPT_UD);
	cr_expect_eq(ibv_attach_mcast(alone.qp, &unicast, 0), EINVAL);
	cr_expect_eq(ibv_detach_mcast(alone.qp, &gid, 0), EINVAL, "not attached");
	cr_expect_eq(ibv_attach_mcast(alone.qp, &gid, 0), 0, "in any state");
	cr_expect_eq(ibv_detach_mcast(alone.qp, &gid, 7), EINVAL, "attached by another LID");
	cr_expect_eq(ibv_destroy_qp(alone.qp), EBUSY);
	cr_expect_eq(ibv_detach_mcast(alone.qp, &gid, 0), 0);
	cr_expect_eq(ibv_detach_mcast(alone.qp, &gid, 0), EINVAL, "twice");
	end_close(&alone);
	alone_open(IBV_QPT_RC);
	cr_expect_eq(ibv_attach_mcast(alone.qp, &gid, 0), EINVAL);
	end_close(&alone);
	alone_open(IBV_QPT_UC);
	cr_expect_eq(ibv_attach_mcast(alone.qp, &gid, 0), EINVAL);
	end_close(&alone);
}

Test(mcast, limits_are_told_and_kept)
{
	union ibv_gid gid = group_of(groups[0]);
	struct ibv_device_attr attr;

	alone_open(IBV_QPT_UD);
	cr_assert_eq(ibv_query_device(alone.context, &attr), 0);
	cr_expect_gt(attr.max_mcast_grp, 0);
	cr_expect_gt(attr.max_mcast_qp_attach, 0);
	cr_expect_eq(attr.max_total_mcast_qp_attach, attr.max_mcast_grp * attr.max_mcast_qp_attach);
	for (int i = 0; i < attr.max_mcast_grp; i++) {
		gid.raw[12] = (uint8_t)(i >> 8);
		gid.raw[13] = (uint8_t)i;
		cr_assert_eq(ibv_attach_mcast(alone.qp, &gid, 0), 0, "group %d", i);
	}
	gid.raw[11] ^= 1;
	cr_expect_eq(ibv_attach_mcast(alone.qp, &gid, 0), ENOMEM);
	gid.raw[11] ^= 1;
	for (int i = 0; i < attr.max_mcast_grp; i++) {
		gid.raw[12] = (uint8_t)(i >> 8);
		gid.raw[13] = (uint8_t)i;
		cr_assert_eq(ibv_detach_mcast(alone.qp, &gid, 0), 0, "group %d", i);
	}
	end_close(&alone);
}
