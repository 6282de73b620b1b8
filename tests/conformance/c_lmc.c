/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ports with several LIDs: which of them a packet comes from, and which it is for.
 *
 * Rules: IBTA volume 1, 4.1.3 (LMC), 9.6.1.5 (the source of a connection), 11.2.2.1 (path bits);
 * ibv_query_port(3), ibv_create_ah(3), ibv_poll_cq(3), verbena(1); device-abi C.6 (ml_path).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "harness/check.h"
#include "harness/network.h"

enum { OWN = 1 << 15, BYTES = 64, LMC_MAX = 7, LID_LAST = 0xbfff };

static void end(void)
{
	network("port reset");
}

TestSuite(lmc, .timeout = 90, .init = network_begin_infiniband, .fini = end);

static void lmc_set(unsigned lmc)
{
	char words[64];

	snprintf(words, sizeof words, "port lmc %u", lmc);
	network(words);
}

static void expect_change(struct ibv_context *c)
{
	network_expect(c, IBV_EVENT_LID_CHANGE);
	network_expect(c, IBV_EVENT_CLIENT_REREGISTER);
}

static unsigned base_of(const struct pair *p)
{
	return network_port(p->a.context).lid;
}

/* --- the port --- */

Test(lmc, a_port_tells_how_many_lids_it_has)
{
	struct ibv_port_attr port;
	struct pair p;

	pair_open(&p, ONE_THREAD, NULL);
	cr_expect_eq(network_port(p.a.context).lmc, 0);
	for (unsigned lmc = 1; lmc <= LMC_MAX; lmc++) {
		lmc_set(lmc);
		expect_change(p.a.context);
		port = network_port(p.a.context);
		cr_expect_eq(port.lmc, lmc);
		cr_expect_eq(port.lid % (1u << lmc), 0, "LID %#x, LMC %u", port.lid, lmc);
		cr_expect(port.lid > 0 && port.lid + (1u << lmc) - 1 <= LID_LAST, "LID %#x",
			  port.lid);
	}
	lmc_set(LMC_MAX);		/* is no news */
	network_expect_none(p.a.context);
	network("port reset");
	expect_change(p.a.context);
	cr_expect_eq(network_port(p.a.context).lmc, 0);
	network_expect_none(p.a.context);
	pair_close(&p);
}

/* The last unicast LID is the last of a port, never one in the middle. */
Test(lmc, lids_stay_unicast)
{
	struct ibv_port_attr port;
	struct pair p;

	pair_open(&p, ONE_THREAD, NULL);
	network("port lid 0xbfff");
	network_expect(p.a.context, IBV_EVENT_LID_CHANGE);
	for (unsigned lmc = 1; lmc <= LMC_MAX; lmc++) {
		lmc_set(lmc);
		expect_change(p.a.context);
		port = network_port(p.a.context);
		cr_expect_eq(port.lid + (1u << lmc) - 1, LID_LAST, "LID %#x, LMC %u", port.lid,
			     lmc);
	}
	pair_close(&p);
}

/* --- datagrams --- */

/* By which bits it is sent, and to which LID; what the receiver is told. */
static const struct way {
	const char *name;
	uint8_t lmc, src_bits, dlid, slid, dlid_bits;
} ways[] = {
	{ "no LMC, no bits", 0, 0, 0, 0, 0 },
	{ "no LMC, all bits", 0, 0x7f, 0, 0, 0 },
	{ "from the first to the second", 1, 0, 1, 0, 1 },
	{ "from the second to the first", 1, 1, 0, 1, 0 },
	{ "from the last to the last", 3, 7, 7, 7, 7 },
	{ "bits above the LMC", 3, 0x7a, 5, 2, 5 },
	{ "an eighth bit", 7, 0xd5, 0x2a, 0x55, 0x2a },
	{ "128 LIDs", 7, 0x7f, 0x7f, 0x7f, 0x7f },
};

static struct ibv_ah_attr way_attr(const struct pair *p, const struct way *w, bool has_grh)
{
	struct ibv_ah_attr attr = {
		.port_num = 1, .dlid = (uint16_t)(base_of(p) + w->dlid),
		.src_path_bits = w->src_bits, .is_global = has_grh,
		.grh.hop_limit = 1,
	};

	cr_assert_eq(ibv_query_gid(p->a.context, 1, 0, &attr.grh.dgid), 0);
	return attr;
}

/* From now on a's datagrams to b go this way. */
static void take_way(struct pair *p, struct ibv_ah *ah)
{
	cr_assert_not_null(ah);
	if (p->a.ah[0].ah)
		cr_assert_eq(ibv_destroy_ah(p->a.ah[0].ah), 0);
	p->a.ah[0] = (struct end_ah){ p->ib.gid, ah };
}

static void open_ud(struct pair *p, enum placement where, struct pair_opts *opts)
{
	opts->a.type = opts->b.type = IBV_QPT_UD;
	pair_open(p, where, opts);
}

static void send_to_b(struct pair *p, uint64_t wr_id)
{
	struct work w = pair_recv(p, wr_id, 0, GRH_BYTES + BYTES);

	must_recv(p, &w);
	w = pair_work(p, IBV_WR_SEND, BYTES);
	must_post(p, &w);
	await_ok(p, 1, IBV_WC_SEND);
}

static void expect_way(const char *name, const struct done *d, unsigned slid, unsigned bits)
{
	cr_expect_eq(d->wc.slid, slid, "%s: from %#x, want %#x", name, d->wc.slid, slid);
	cr_expect_eq(d->wc.dlid_path_bits, bits, "%s: to %#x, want %#x", name,
		     d->wc.dlid_path_bits, bits);
}

CASE_TABLE(lmc, a_datagram_says_which_lids_it_went_by, ROWS(ways))
{
	const struct way *w = &ways[row];
	struct pair_opts opts;
	struct pair p;
	struct done d;

	pair_defaults(&opts);
	lmc_set(w->lmc);
	open_ud(&p, where, &opts);
	for (int has_grh = 0; has_grh < 2; has_grh++) {
		struct ibv_ah_attr attr = way_attr(&p, w, has_grh);

		take_way(&p, ibv_create_ah(p.a.pd, &attr));
		send_to_b(&p, 7);
		peer_await(&p.peer, RECV_CQ, &d);
		check_ok(w->name, &d, 7, IBV_WC_RECV);
		expect_way(w->name, &d, base_of(&p) + w->slid, w->dlid_bits);
		cr_expect_eq(!!(d.wc.wc_flags & IBV_WC_GRH), has_grh, "%s", w->name);
	}
	pair_close(&p);
}

static const struct { const char *name; uint8_t lmc; int dlid; } strangers[] = {
	{ "behind the only one", 0, 1 }, { "behind the last", 1, 2 }, { "before the first", 1, -1 },
	{ "behind the last of 8", 3, 8 }, { "behind the last of 128", 7, 128 },
};

CASE_TABLE(lmc, a_lid_beyond_is_nobodys, ROWS(strangers))
{
	struct pair_opts opts;
	struct pair p;
	struct done d;

	pair_defaults(&opts);
	lmc_set(strangers[row].lmc);
	for (int has_grh = 0; has_grh < 2; has_grh++) {
		struct ibv_ah_attr attr;

		open_ud(&p, where, &opts);
		attr = way_attr(&p, &ways[0], has_grh);
		attr.dlid = (uint16_t)(attr.dlid + strangers[row].dlid);
		take_way(&p, ibv_create_ah(p.a.pd, &attr));
		send_to_b(&p, 7);
		peer_glance(&p.peer, RECV_CQ, &d);
		check_none(strangers[row].name, &d);
		pair_close(&p);
	}
}

static void send_to_a(struct pair *p, unsigned dlid)
{
	struct work w = { .wr_id = 4, .sge_count = 1,
		.sge = { { (uintptr_t)p->a.buf + OWN, GRH_BYTES + BYTES, p->a.mr->lkey } } };

	cr_assert_eq(end_post_recv(&p->a, &w), 0);
	w = (struct work){ .wr_id = 5, .opcode = IBV_WR_SEND, .flags = IBV_SEND_SIGNALED,
		.gid = end_lid_as_gid((uint16_t)dlid), .sge_count = 1,
		.sge = { { p->ib.addr, BYTES, p->ib.lkey } } };
	cr_assert_eq(peer_post(&p->peer, &w), 0);
}

/* Who answers does so from the LID that it was called by. */
CASE_EACH(lmc, an_answer_goes_back_the_same_way)
{
	struct ibv_ah_attr attr;
	struct pair_opts opts;
	struct ibv_grh grh;
	struct pair p;
	struct done d;
	unsigned base;

	pair_defaults(&opts);
	opts.b.path_bits = 6;
	lmc_set(3);
	open_ud(&p, where, &opts);
	base = base_of(&p);
	send_to_a(&p, base + 5);
	end_await(&p.a, RECV_CQ, &d);
	check_ok("there", &d, 4, IBV_WC_RECV);
	expect_way("there", &d, base + 6, 5);
	memcpy(&grh, p.a.buf + OWN, sizeof grh);
	cr_assert_eq(ibv_init_ah_from_wc(p.a.context, 1, &d.wc, &grh, &attr), 0);
	cr_expect_eq(attr.dlid, base + 6);
	cr_expect_eq(attr.src_path_bits, 5);
	cr_expect_eq(attr.is_global, 0);
	take_way(&p, ibv_create_ah_from_wc(p.a.pd, &d.wc, &grh, 1));
	send_to_b(&p, 9);
	peer_await(&p.peer, RECV_CQ, &d);
	check_ok("back", &d, 9, IBV_WC_RECV);
	expect_way("back", &d, base + 5, 6);
	pair_close(&p);
}

static struct ibv_cq_ex *poll_begin(struct ibv_cq *cq)
{
	struct ibv_poll_cq_attr none = { 0 };
	struct ibv_cq_ex *ex = (struct ibv_cq_ex *)cq;
	uint64_t deadline = now_ms() + AWAIT_MS;
	int err;

	do
		err = ibv_start_poll(ex, &none);
	while (err == ENOENT && now_ms() < deadline);
	cr_assert_eq(err, 0, "ibv_start_poll: %s", strerror(err));
	return ex;
}

Test(lmc, extended_completions_say_it_as_well)
{
	struct ibv_cq_ex *cq;
	struct ibv_ah_attr attr;
	struct pair_opts opts;
	struct pair p;

	pair_defaults(&opts);
	opts.b.is_extended = true;
	opts.b.wc_flags = IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_DLID_PATH_BITS;
	lmc_set(3);
	open_ud(&p, ONE_THREAD, &opts);
	attr = way_attr(&p, &ways[5], false);
	take_way(&p, ibv_create_ah(p.a.pd, &attr));
	send_to_b(&p, 7);
	cq = poll_begin(p.peer.here.cq[RECV_CQ]);
	cr_expect_eq(cq->wr_id, 7);
	cr_expect_eq(ibv_wc_read_slid(cq), base_of(&p) + ways[5].slid);
	cr_expect_eq(ibv_wc_read_dlid_path_bits(cq), ways[5].dlid_bits);
	ibv_end_poll(cq);
	pair_close(&p);
}

/* A group's LID is none of the receiver's. */
Test(lmc, a_datagram_to_a_group_has_no_path_bits)
{
	const uint16_t mlid = 0xc007;
	struct ibv_ah_attr attr;
	struct pair_opts opts;
	struct pair p;
	struct done d;
	struct work w;

	pair_defaults(&opts);
	lmc_set(3);
	open_ud(&p, ONE_THREAD, &opts);
	attr = way_attr(&p, &ways[4], true);
	attr.dlid = mlid;
	cr_assert_eq(inet_pton(AF_INET6, "ff12:401b::1", &attr.grh.dgid), 1);
	cr_assert_eq(ibv_attach_mcast(p.peer.here.qp, &attr.grh.dgid, mlid), 0);
	take_way(&p, ibv_create_ah(p.a.pd, &attr));
	w = pair_recv(&p, 7, 0, GRH_BYTES + BYTES);
	must_recv(&p, &w);
	w = pair_work(&p, IBV_WR_SEND, BYTES);
	w.remote_qpn = 0xffffff;
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_SEND);
	peer_await(&p.peer, RECV_CQ, &d);
	check_ok("group", &d, 7, IBV_WC_RECV);
	expect_way("group", &d, base_of(&p) + ways[4].slid, 0);
	pair_close(&p);
}

/* --- connections --- */

static const struct { const char *name; uint8_t lmc, a, b; } roads[] = {
	{ "the first and the second", 1, 0, 1 }, { "the last of 8, and the fourth", 3, 7, 3 },
	{ "bits above the LMC", 2, 0x7d, 0x7e }, { "the last of 128", 7, 0x7f, 0x7f },
};

/* b's packets are to come from @a_expects, and a's from @b_expects, as each has them by its own
 * path bits if all goes well. */
static void connect_by(struct pair *p, unsigned a_expects, unsigned b_expects)
{
	p->ib.gid = end_lid_as_gid((uint16_t)(base_of(p) + a_expects));
	p->ia.gid = end_lid_as_gid((uint16_t)(base_of(p) + b_expects));
	pair_connect(p);
}

static void open_by(struct pair *p, enum placement where, int row, struct pair_opts *opts)
{
	unsigned mask = (1u << roads[row].lmc) - 1;

	lmc_set(roads[row].lmc);
	opts->a.path_bits = roads[row].a;
	opts->b.path_bits = roads[row].b;
	pair_open_unconnected(p, where, opts);
	connect_by(p, roads[row].b & mask, roads[row].a & mask);
}

static void write_8(struct pair *p)
{
	struct work w = pair_work(p, IBV_WR_RDMA_WRITE, 8);

	must_post(p, &w);
}

static void send_by(struct pair *p)
{
	struct work w = pair_recv(p, 5, 4096, BYTES);

	must_recv(p, &w);
	w = pair_work(p, IBV_WR_SEND, BYTES);
	must_post(p, &w);
	await_ok(p, 1, IBV_WC_SEND);
}

CASE_TABLE(lmc, a_reliable_connection_goes_by_any_two_lids, ROWS(roads))
{
	static const struct { enum ibv_wr_opcode op; enum ibv_wc_opcode wc; } ops[] = {
		{ IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE }, { IBV_WR_RDMA_READ, IBV_WC_RDMA_READ },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD },
	};
	const unsigned mask = (1u << roads[row].lmc) - 1;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct pair_opts opts;
	struct pair p;

	pair_defaults(&opts);
	open_by(&p, where, row, &opts);
	for (unsigned i = 0; i < ROWS(ops); i++) {
		struct work w = pair_work(&p, ops[i].op, 8);

		must_post(&p, &w);
		await_ok(&p, 1, ops[i].wc);
	}
	send_by(&p);
	await_recv_ok(&p, 5, BYTES);
	cr_assert_eq(ibv_query_qp(p.a.qp, &attr, IBV_QP_AV, &init), 0);
	cr_expect_eq(attr.ah_attr.src_path_bits, roads[row].a);
	cr_expect_eq(attr.ah_attr.dlid, base_of(&p) + (roads[row].b & mask));
	pair_close(&p);
}

CASE_TABLE(lmc, an_unreliable_connection_goes_by_any_two_lids, ROWS(roads))
{
	struct pair_opts opts;
	struct pair p;

	pair_defaults(&opts);
	opts.a.type = opts.b.type = IBV_QPT_UC;
	open_by(&p, where, row, &opts);
	send_by(&p);
	await_recv_ok(&p, 5, BYTES);
	pair_close(&p);
}

/* The answers come from another LID than the one that was called. */
CASE_EACH(lmc, an_answer_from_another_lid_is_none)
{
	struct pair_opts opts;
	struct pair p;

	pair_defaults(&opts);
	opts.a.timeout = 8;
	opts.a.retry = 2;
	lmc_set(2);
	pair_open_unconnected(&p, where, &opts);
	connect_by(&p, 1, 0);
	write_8(&p);
	await_error(&p, 1, IBV_WC_RETRY_EXC_ERR);
	pair_close(&p);
}

/* Which of its own LIDs a packet came to is nothing that a responder looks at; where from, is. */
static const struct { const char *name; unsigned a_calls, b_expects; bool arrives; } calls[] = {
	{ "as agreed", 0, 1, true }, { "by another LID", 3, 1, true },
	{ "from another LID", 0, 2, false }, { "from the first LID", 0, 0, false },
};

CASE_TABLE(lmc, an_unreliable_request_must_come_from_the_right_lid, ROWS(calls))
{
	struct pair_opts opts;
	struct pair p;
	struct done d;

	pair_defaults(&opts);
	opts.a.type = opts.b.type = IBV_QPT_UC;
	opts.a.path_bits = 1;
	lmc_set(2);
	pair_open_unconnected(&p, where, &opts);
	connect_by(&p, calls[row].a_calls, calls[row].b_expects);
	send_by(&p);
	if (calls[row].arrives) {
		await_recv_ok(&p, 5, BYTES);
	} else {
		peer_glance(&p.peer, RECV_CQ, &d);
		check_none(calls[row].name, &d);
	}
	pair_close(&p);
}

/* --- changes under way --- */

CASE_EACH(lmc, a_connection_by_a_lid_that_goes_away_ends)
{
	struct pair_opts opts;
	struct pair p;

	pair_defaults(&opts);
	opts.a.timeout = 8;
	opts.a.retry = 2;
	opts.a.path_bits = opts.b.path_bits = 3;
	lmc_set(2);
	pair_open_unconnected(&p, where, &opts);
	connect_by(&p, 3, 3);
	write_8(&p);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	lmc_set(1);
	expect_change(p.a.context);
	write_8(&p);
	await_error(&p, 1, IBV_WC_RETRY_EXC_ERR);
	pair_close(&p);
}

CASE_EACH(lmc, a_connection_by_a_lid_that_stays_goes_on)
{
	struct pair_opts opts;
	struct pair p;

	pair_defaults(&opts);
	opts.a.path_bits = opts.b.path_bits = 1;
	lmc_set(2);
	pair_open_unconnected(&p, where, &opts);
	connect_by(&p, 1, 1);
	for (unsigned lmc = 1; lmc <= LMC_MAX; lmc += 3) {
		lmc_set(lmc);
		expect_change(p.a.context);
		write_8(&p);
		await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	}
	pair_close(&p);
}
