/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * InfiniBand: LIDs, partitions, and what a subnet manager does to a port.
 *
 * Rules: IBTA volume 1, 10.9 (partitions); ibv_query_port(3), ibv_query_pkey(3), ibv_create_ah(3);
 * device-abi B.8, F.4.  Other suites run on such a port as well; see tests/CMakeLists.txt.
 */
#include <stdio.h>
#include <string.h>
#include "harness/check.h"
#include "harness/network.h"

TestSuite(ib, .timeout = 90, .init = network_begin_infiniband);

/* --- LIDs --- */

Test(ib, the_port_has_a_lid_and_a_subnet_manager)
{
	struct ibv_context *c = device_open();
	struct ibv_port_attr port = network_port(c);
	__be16 pkey;

	cr_expect(port.lid >= 1 && port.lid <= 0xbfff, "LID %#x", port.lid);
	cr_expect(port.sm_lid >= 1 && port.sm_lid <= 0xbfff);
	cr_expect_eq(port.lmc, 0);
	cr_expect_eq(port.pkey_tbl_len, 128);
	cr_expect(!(port.flags & IBV_QPF_GRH_REQUIRED));
	cr_assert_eq(ibv_query_pkey(c, 1, 0, &pkey), 0);
	cr_expect_eq(pkey, htobe16(0xffff));
	for (int i = 1; i < 128; i++) {
		cr_assert_eq(ibv_query_pkey(c, 1, i, &pkey), 0);
		cr_expect_eq(pkey, 0, "index %d", i);
	}
	cr_expect_neq(ibv_query_pkey(c, 1, 128, &pkey), 0);
	ibv_close_device(c);
}

static void write_8(struct pair *p)
{
	struct work w = pair_work(p, IBV_WR_RDMA_WRITE, 8);

	must_post(p, &w);
}

static void open_impatient(struct pair *p, enum placement where, struct pair_opts *opts)
{
	opts->a.timeout = 8;
	opts->a.retry = 2;
	pair_open(p, where, opts);
}

CASE_EACH(ib, a_connection_goes_by_lid)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct pair p;

	pair_open(&p, where, NULL);
	write_8(&p);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	cr_assert_eq(ibv_query_qp(p.a.qp, &attr, IBV_QP_AV | IBV_QP_PKEY_INDEX, &init), 0);
	cr_expect_eq(attr.ah_attr.is_global, 0);
	cr_expect_eq(attr.ah_attr.dlid, network_port(p.a.context).lid);
	cr_expect_eq(attr.pkey_index, 0);
	pair_close(&p);
}

CASE_EACH(ib, a_connection_goes_by_gid)
{
	struct pair_opts opts;
	struct pair p;

	pair_defaults(&opts);
	opts.a.gid_index = opts.b.gid_index = 0;
	pair_open(&p, where, &opts);
	write_8(&p);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	pair_close(&p);
}

CASE_EACH(ib, a_lid_that_nobody_has_is_silent)
{
	struct pair_opts opts;
	struct pair p;

	pair_defaults(&opts);
	opts.a.timeout = 8;
	opts.a.retry = 2;
	pair_open_unconnected(&p, where, &opts);
	p.ib.gid = end_lid_as_gid((uint16_t)(network_port(p.a.context).lid ^ 1));
	pair_connect(&p);
	write_8(&p);
	await_error(&p, 1, IBV_WC_RETRY_EXC_ERR);
	pair_close(&p);
}

/* Without a GRH the first 40 bytes mean nothing, but they are there. */
CASE_EACH(ib, a_datagram_says_where_it_comes_from)
{
	struct pair_opts opts;
	struct pair p;
	struct work w;
	struct done d;

	pair_defaults(&opts);
	opts.a.type = opts.b.type = IBV_QPT_UD;
	pair_open(&p, where, &opts);
	pattern_fill(p.a.buf, 256, 6);
	w = pair_recv(&p, 5, 0, 4096);
	must_recv(&p, &w);
	w = pair_work(&p, IBV_WR_SEND, 256);
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_SEND);
	peer_await(&p.peer, RECV_CQ, &d);
	check_ok("datagram", &d, 5, IBV_WC_RECV);
	cr_expect_eq(d.wc.byte_len, 296);
	cr_expect_eq(d.wc.slid, network_port(p.a.context).lid);
	cr_expect_eq(d.wc.src_qp, p.ia.qpn);
	cr_expect_eq(d.wc.dlid_path_bits, 0);
	cr_expect(!(d.wc.wc_flags & IBV_WC_GRH));
	cr_expect_eq(peer_differs(&p.peer, 40, 256, 6), -1);
	pair_close(&p);
}

/* --- partitions --- */

enum { DEFAULT, FULL_1, LIMITED_1, FULL_2, NONE = 9 };	/* indices, see partitions_make() */

static void partitions_make(void)
{
	network("pkey add 0x8001");
	network("pkey add 0x0001");
	network("pkey add 0x8002");
}

static const struct { const char *name; uint16_t a, b; bool talk; } partitions[] = {
	{ "default", DEFAULT, DEFAULT, true },
	{ "full and full", FULL_1, FULL_1, true },
	{ "full and limited", FULL_1, LIMITED_1, true },
	{ "limited and full", LIMITED_1, FULL_1, true },
	{ "limited and limited", LIMITED_1, LIMITED_1, false },
	{ "two partitions", FULL_1, FULL_2, false },
	{ "default and another", DEFAULT, FULL_2, false },
	{ "an empty entry", NONE, NONE, false },
};

static void open_partitioned(struct pair *p, enum placement where, int row)
{
	struct pair_opts opts;

	pair_defaults(&opts);
	opts.a.pkey_index = partitions[row].a;
	opts.b.pkey_index = partitions[row].b;
	open_impatient(p, where, &opts);
}

CASE_TABLE(ib, who_talks_to_whom_is_a_matter_of_partitions, ROWS(partitions))
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_RDMA_WRITE, IBV_WR_SEND };

	partitions_make();
	for (unsigned i = 0; i < ROWS(ops); i++) {
		struct pair p;
		struct work w;

		open_partitioned(&p, where, row);
		w = pair_recv(&p, 5, 4096, 64);
		must_recv(&p, &w);
		w = pair_work(&p, ops[i], 8);
		must_post(&p, &w);
		if (partitions[row].talk)
			await_ok(&p, 1, i ? IBV_WC_SEND : IBV_WC_RDMA_WRITE);
		else
			await_error(&p, 1, IBV_WC_RETRY_EXC_ERR);
		pair_close(&p);
	}
}

/* The counter of the one who received; in one process the ports are one. */
Test(ib, packets_of_other_partitions_are_counted)
{
	uint32_t before;
	struct pair p;

	partitions_make();
	open_partitioned(&p, ONE_THREAD, 5);
	before = network_port(p.a.context).bad_pkey_cntr;
	write_8(&p);
	await_error(&p, 1, IBV_WC_RETRY_EXC_ERR);
	cr_expect_eq(network_port(p.a.context).bad_pkey_cntr, before + 3, "one for each try");
	pair_close(&p);
}

/* QPs name the entry, so a change of the table is one for them as well. */
CASE_EACH(ib, a_partition_that_is_taken_away_ends_its_connections)
{
	struct pair p;
	__be16 pkey;

	partitions_make();
	open_partitioned(&p, where, 1);
	write_8(&p);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	network("pkey del 0x8001");
	network_expect(p.a.context, IBV_EVENT_PKEY_CHANGE);
	cr_assert_eq(ibv_query_pkey(p.a.context, 1, FULL_1, &pkey), 0);
	cr_expect_eq(pkey, 0);
	write_8(&p);
	await_error(&p, 1, IBV_WC_RETRY_EXC_ERR);
	pair_close(&p);
}

/* --- the subnet manager --- */

CASE_EACH(ib, a_port_gets_another_lid)
{
	struct pair_opts opts;
	struct pair p;
	char words[64];
	uint16_t lid;

	pair_defaults(&opts);
	open_impatient(&p, where, &opts);
	lid = network_port(p.a.context).lid;
	snprintf(words, sizeof words, "port lid %u", lid ^ 0x100u);
	network(words);
	network_expect(p.a.context, IBV_EVENT_LID_CHANGE);
	cr_expect_eq(network_port(p.a.context).lid, lid ^ 0x100);
	write_8(&p);			/* by the old one */
	await_error(&p, 1, IBV_WC_RETRY_EXC_ERR);
	pair_close(&p);
	pair_open(&p, where, NULL);	/* by the new one */
	write_8(&p);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	pair_close(&p);
}

CASE_EACH(ib, the_subnet_manager_moves_and_calls)
{
	struct pair p;

	pair_open(&p, where, NULL);
	network("port sm 0x21");
	network_expect(p.a.context, IBV_EVENT_SM_CHANGE);
	cr_expect_eq(network_port(p.a.context).sm_lid, 0x21);
	network("port reregister");
	network_expect(p.a.context, IBV_EVENT_CLIENT_REREGISTER);
	network("port reregister");
	network_expect(p.a.context, IBV_EVENT_CLIENT_REREGISTER);
	network_expect_none(p.a.context);
	write_8(&p);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	pair_close(&p);
}

Test(ib, a_port_that_is_down_polls)
{
	struct ibv_context *c = device_open();

	cr_assert_not_null(c);
	network("port down");
	cr_expect_eq(network_port(c).state, IBV_PORT_DOWN);
	cr_expect_eq(network_port(c).phys_state, 2);
	ibv_close_device(c);
}
