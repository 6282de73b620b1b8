/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes arrive: every size, MTU, gather and scatter list, inline, and the fields of their
 * completions.
 *
 * Rules: IBTA 9.7 (segmentation); device-abi C.6 (fields of a completion); man pages of
 * ibv_post_send(3) and ibv_poll_cq(3).
 */
#include <string.h>
#include "harness/check.h"

#define MIB (1u << 20)

TestSuite(transfer, .timeout = 60);

static const enum ibv_wr_opcode data_ops[] = {
	IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
};

static const enum ibv_wc_opcode data_wcs[] = {
	IBV_WC_SEND, IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ,
};

/* One message of @bytes from offset @from to offset @to, verified with its neighbours. */
static void move(struct pair *p, unsigned op, uint32_t bytes, size_t from, size_t to,
		 uint64_t seed)
{
	struct work w = pair_work(p, data_ops[op], bytes), r = pair_recv(p, seed, to, bytes);
	bool is_read = data_ops[op] == IBV_WR_RDMA_READ;

	w.wr_id = seed;
	w.sge_count = bytes ? 1 : 0;
	w.sge[0].addr += is_read ? to : from;
	w.remote_addr += is_read ? from : to;
	if (is_read)
		peer_fill(&p->peer, from, bytes, seed);
	else
		pattern_fill(p->a.buf + from, bytes, seed);
	if (data_ops[op] == IBV_WR_SEND)
		must_recv(p, &r);
	must_post(p, &w);
	await_ok(p, seed, data_wcs[op]);
	if (data_ops[op] == IBV_WR_SEND)
		await_recv_ok(p, seed, bytes);
	if (is_read)
		cr_expect_eq(pattern_differs(p->a.buf + to, bytes, seed), -1, "op %u, %u bytes",
			     op, bytes);
	else
		cr_expect_eq(peer_differs(&p->peer, to, bytes, seed), -1, "op %u, %u bytes", op,
			     bytes);
}

/* IBTA 9.7: sizes around every MTU, at an odd address. */
CASE_TABLE(transfer, all_sizes_around_each_mtu_arrive, 5)
{
	static const int around[] = { -1, 0, 1 };
	struct pair_opts opts;
	struct pair p;
	uint64_t seed = 1;
	uint32_t mtu = 256u << row;

	pair_defaults(&opts);
	opts.a.mtu = opts.b.mtu = (enum ibv_mtu)(IBV_MTU_256 + row);
	opts.a.bytes = opts.b.bytes = 4 * MIB;
	pair_open(&p, where, &opts);
	for (unsigned op = 0; op < ROWS(data_ops); op++) {
		move(&p, op, 0, 3, 5, seed++);
		move(&p, op, 1, 3, 5, seed++);
		for (unsigned n = 1; n <= 3; n++)
			for (unsigned i = 0; i < ROWS(around); i++)
				move(&p, op, n * mtu + (uint32_t)around[i], 3, 5, seed++);
		move(&p, op, 65536, 1, 2 * MIB + 1, seed++);
		move(&p, op, MIB, 7, 2 * MIB + 9, seed++);
	}
	check_quiet(&p);
	pair_close(&p);
}

/* IBTA 9.7.4.1.6: ends that do not agree on the MTU; a packet of another size is an
 * invalid request (rxe-oracle section 7 sees the same). */
CASE_TABLE(transfer, a_path_mtu_that_differs_is_refused, 2)
{
	struct pair_opts opts;
	struct pair p;
	struct work w;

	pair_defaults(&opts);
	opts.a.mtu = row ? IBV_MTU_256 : IBV_MTU_1024;
	opts.b.mtu = row ? IBV_MTU_1024 : IBV_MTU_256;
	pair_open(&p, where, &opts);
	w = pair_work(&p, IBV_WR_RDMA_WRITE, 4096);
	must_post(&p, &w);
	await_error(&p, 1, IBV_WC_REM_INV_REQ_ERR);
	check_states("after", &p, IBV_QPS_ERR, IBV_QPS_ERR);
	pair_close(&p);
}

/* Messages that fit into the smaller MTU do not show the difference. */
CASE_EACH(transfer, a_short_message_passes_although_the_mtu_differs)
{
	struct pair_opts opts;
	struct pair p;

	pair_defaults(&opts);
	opts.b.mtu = IBV_MTU_256;
	pair_open(&p, where, &opts);
	move(&p, 1, 200, 0, 0, 3);
	pair_close(&p);
}

/* device_attr.max_sge pieces of odd sizes on both sides; pieces do not line up. */
CASE_TABLE(transfer, longest_gather_and_scatter_lists_work, 3)
{
	struct pair_opts opts;
	struct pair p;
	struct work w, r;
	uint32_t at = 0, total = 0;

	pair_defaults(&opts);
	opts.a.cap.max_send_sge = opts.b.cap.max_recv_sge = END_SGE_MAX;
	opts.a.bytes = opts.b.bytes = MIB;
	pair_open(&p, where, &opts);
	w = pair_work(&p, data_ops[row], 0);
	w.sge_count = END_SGE_MAX;
	for (unsigned i = 0; i < END_SGE_MAX; i++) {
		uint32_t bytes = 1 + i * i * 7 % 911;

		w.sge[i] = (struct ibv_sge){ p.ia.addr + total, bytes, p.ia.lkey };
		total += bytes;
	}
	r = pair_recv(&p, 2, 0, 0);
	r.sge_count = END_SGE_MAX;
	for (unsigned i = 0; i < END_SGE_MAX; i++) {
		uint32_t bytes = i + 1 < END_SGE_MAX ? total / 37 + i % 3 : total - at;

		r.sge[i] = (struct ibv_sge){ p.ib.addr + at, bytes, p.ib.lkey };
		at += bytes;
	}
	pattern_fill(p.a.buf, total, 9);
	peer_fill(&p.peer, 0, total, row == 2 ? 10 : 11);
	if (data_ops[row] == IBV_WR_SEND)
		must_recv(&p, &r);
	must_post(&p, &w);
	await_ok(&p, 1, data_wcs[row]);
	if (data_ops[row] == IBV_WR_SEND)
		await_recv_ok(&p, 2, total);
	if (row == 2)
		cr_expect_eq(pattern_differs(p.a.buf, total, 10), -1);
	else
		cr_expect_eq(peer_differs(&p.peer, 0, total, 9), -1);
	pair_close(&p);
}

/* One more SGE than the QP was created with: refused at post (device-abi F.2). */
CASE_EACH(transfer, one_sge_too_many_is_refused_at_post)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct work w;
	struct pair p;

	pair_open(&p, where, NULL);
	cr_assert_eq(ibv_query_qp(p.a.qp, &attr, IBV_QP_CAP, &init), 0);
	w = pair_work(&p, IBV_WR_RDMA_WRITE, 8);
	w.sge_count = init.cap.max_send_sge + 1;
	cr_assert_leq(w.sge_count, END_SGE_MAX);
	for (unsigned i = 1; i < w.sge_count; i++)
		w.sge[i] = w.sge[0];
	cr_expect_neq(end_post(&p.a, &w), 0);
	w.sge_count = 1;
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	pair_close(&p);
}

/* ibv_post_send(3): inline data is taken at post, its lkey is not looked at, every length
 * up to the cap works, and one byte more is refused. */
CASE_TABLE(transfer, inline_works_up_to_the_cap, 2)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct pair_opts opts;
	struct work w, r;
	struct pair p;
	uint32_t cap;

	pair_defaults(&opts);
	opts.a.cap.max_inline_data = 200;
	pair_open(&p, where, &opts);
	cr_assert_eq(ibv_query_qp(p.a.qp, &attr, IBV_QP_CAP, &init), 0);
	cap = init.cap.max_inline_data;
	cr_assert_geq(cap, 200);
	for (uint32_t bytes = 1; bytes <= cap; bytes += bytes < 20 ? 1 : 13) {
		w = pair_work(&p, row ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, bytes);
		w.flags |= IBV_SEND_INLINE;
		w.sge[0].lkey = 0xdead;
		pattern_fill(p.a.buf, bytes, bytes);
		r = pair_recv(&p, 3, 0, bytes);
		if (row)
			must_recv(&p, &r);
		must_post(&p, &w);
		memset(p.a.buf, 0xee, bytes);
		await_ok(&p, 1, row ? IBV_WC_SEND : IBV_WC_RDMA_WRITE);
		if (row)
			await_recv_ok(&p, 3, bytes);
		cr_expect_eq(peer_differs(&p.peer, 0, bytes, bytes), -1, "%u bytes", bytes);
	}
	w.sge[0].length = cap + 1;
	cr_expect_neq(end_post(&p.a, &w), 0, "one byte more than the cap");
	pair_close(&p);
}

/* Inline pieces of several SGEs are joined (ibv_post_send(3)); the ring wraps inside some. */
CASE_EACH(transfer, inline_of_several_sges_wraps_around_the_ring)
{
	struct pair p;
	struct work w;

	pair_open(&p, where, NULL);
	for (unsigned i = 0; i < 600; i++) {
		w = pair_work(&p, IBV_WR_RDMA_WRITE, 0);
		w.flags |= IBV_SEND_INLINE;
		w.sge_count = 3;
		for (unsigned s = 0; s < 3; s++)
			w.sge[s] = (struct ibv_sge){ p.ia.addr + s * 20, 20, 0 };
		if (i % 2) {
			w.sge_count = 1;
			w.sge[0].length = 3;
		}
		pattern_fill(p.a.buf, 60, i);
		must_post(&p, &w);
		await_ok(&p, 1, IBV_WC_RDMA_WRITE);
		cr_assert_eq(peer_differs(&p.peer, 0, i % 2 ? 3 : 60, i), -1, "message %u", i);
	}
	pair_close(&p);
}

/* ibv_poll_cq(3) and device-abi C.6: what a receive completion tells. */
CASE_TABLE(transfer, immediate_data_and_fields_of_the_receive_completion, 3)
{
	static const struct {
		enum ibv_wr_opcode op;
		enum ibv_wc_opcode wc;
		bool has_imm;
	} kinds[] = {
		{ IBV_WR_SEND, IBV_WC_RECV, false },
		{ IBV_WR_SEND_WITH_IMM, IBV_WC_RECV, true },
		{ IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RECV_RDMA_WITH_IMM, true },
	};
	static const uint32_t sizes[] = { 0, 1, 64, 5000, 65536 };
	struct pair p;
	struct work w, r;
	struct done d;

	pair_open(&p, where, NULL);
	for (unsigned i = 0; i < ROWS(sizes); i++) {
		w = pair_work(&p, kinds[row].op, sizes[i]);
		w.sge_count = sizes[i] ? 1 : 0;
		w.imm = 0xa1b2c3d4 + i;
		r = pair_recv(&p, 77 + i, 0, 65536);
		must_recv(&p, &r);
		must_post(&p, &w);
		await_ok(&p, 1, row == 2 ? IBV_WC_RDMA_WRITE : IBV_WC_SEND);
		peer_await(&p.peer, RECV_CQ, &d);
		check_ok("receive", &d, 77 + i, kinds[row].wc);
		cr_expect_eq(d.wc.byte_len, sizes[i], "byte_len %u", d.wc.byte_len);
		cr_expect_eq(d.wc.qp_num, p.ib.qpn);
		cr_expect_eq(d.wc.wc_flags, kinds[row].has_imm ? IBV_WC_WITH_IMM : 0,
			     "flags 0x%x", d.wc.wc_flags);
		if (kinds[row].has_imm)
			cr_expect_eq(be32toh(d.wc.imm_data), w.imm);
	}
	pair_close(&p);
}

/* C.6: a requester completion names its QP; a READ tells its length. */
CASE_EACH(transfer, fields_of_the_send_completion)
{
	struct pair p;
	struct work w;
	struct done d;

	pair_open(&p, where, NULL);
	w = pair_work(&p, IBV_WR_RDMA_READ, 4000);
	w.wr_id = UINT64_C(0xfedcba9876543210);
	must_post(&p, &w);
	end_await(&p.a, SEND_CQ, &d);
	check_ok("read", &d, w.wr_id, IBV_WC_RDMA_READ);
	cr_expect_eq(d.wc.byte_len, 4000);
	cr_expect_eq(d.wc.qp_num, p.ia.qpn);
	cr_expect_eq(d.wc.wc_flags, 0);
	pair_close(&p);
}

/* device-abi B.8: each entry of the GID table is a way to the same port. */
CASE_TABLE(transfer, each_gid_of_the_table_connects, 4)
{
	struct pair_opts opts;
	struct pair p;

	pair_defaults(&opts);
	opts.a.gid_index = opts.b.gid_index = (uint8_t)row;
	pair_open(&p, where, &opts);
	for (unsigned op = 0; op < ROWS(data_ops); op++)
		move(&p, op, 5000, 0, 8192, op + 1);
	pair_close(&p);
}

/* expected-statuses: the inline flag on a READ is LOC_QP_OP, or refused at post. */
CASE_EACH(transfer, inline_on_a_read_is_refused)
{
	struct pair p;
	struct work w;

	pair_open(&p, where, NULL);
	w = pair_work(&p, IBV_WR_RDMA_READ, 8);
	w.flags |= IBV_SEND_INLINE;
	if (!end_post(&p.a, &w))
		await_error(&p, 1, IBV_WC_LOC_QP_OP_ERR);
	pair_close(&p);
}

/* Both directions at once, each message from the other's data. */
CASE_EACH(transfer, both_directions_at_once)
{
	struct pair p;
	struct work w, back;
	struct done d;

	pair_open(&p, where, NULL);
	for (uint64_t i = 0; i < 30; i++) {
		w = pair_work(&p, IBV_WR_RDMA_WRITE, 8192);
		w.wr_id = i;
		back = (struct work){ .opcode = IBV_WR_RDMA_WRITE, .wr_id = 100 + i,
			.flags = IBV_SEND_SIGNALED, .remote_addr = p.ia.addr + 32768,
			.rkey = p.ia.rkey, .sge_count = 1,
			.sge = { { p.ib.addr + 32768, 8192, p.ib.lkey } } };
		pattern_fill(p.a.buf, 8192, i);
		peer_fill(&p.peer, 32768, 8192, 1000 + i);
		must_post(&p, &w);
		cr_assert_eq(peer_post(&p.peer, &back), 0);
		await_ok(&p, i, IBV_WC_RDMA_WRITE);
		peer_await(&p.peer, SEND_CQ, &d);
		check_ok("back", &d, 100 + i, IBV_WC_RDMA_WRITE);
		cr_assert_eq(peer_differs(&p.peer, 0, 8192, i), -1);
		cr_assert_eq(pattern_differs(p.a.buf + 32768, 8192, 1000 + i), -1);
	}
	pair_close(&p);
}
