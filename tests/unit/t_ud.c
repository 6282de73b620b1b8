/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UD: addresses out, headers in, and what is dropped or ends a queue on the way.
 *
 * Method: two QPs by hand (rc_world.h); work requests carry the address vectors that
 * ibv_create_ah() would have made.  Headers are compared field by field with RFC 791, RFC 8200
 * and IBTA volume 1, 8.3.
 */
#include <sys/mman.h>
#include "emu/transport/ud.h"
#include "tests/unit/rc_world.h"

enum { SEND = 0x0a, SEND_IMM = 0x0b, WRITE = 0x08, READ = 0x10, INVAL = 0x01 };
enum { GRH = UD_GRH_BYTES, MTU = 4096, LID = 0x1234 };

static const uint8_t ipv4[16] = { [10] = 0xff, 0xff, 10, 1, 2, 3 };
static const uint8_t ipv6[16] = { 0xfe, 0x80, [15] = 1 };
static struct mlx5_datagram av;		/* to b, of the case */

static void av_set_gid(const uint8_t gid[16])
{
	uint64_t half[2];

	memcpy(half, gid, 16);
	mlx5_datagram_set_rgid_high(&av, be64toh(half[0]));
	mlx5_datagram_set_rgid_low(&av, be64toh(half[1]));
}

/* GIDs 0: IPv6 v2; 1: IPv4 v1; 2: IPv4 v2; 3: empty; 4: IPv6 v1. */
static struct world *ud_new(void)
{
	struct world *w = world_new_of(QPT_UD, 100);

	w->dev.gid_count = 5;
	for (unsigned i = 1; i < 5; i++) {
		memcpy(w->dev.gid[i].raw, i == 4 ? ipv6 : ipv4, 16);
		w->dev.gid[i].type = i == 2 ? 2 : 1;
	}
	memset(w->dev.gid[3].raw, 0, 16);
	memset(&av, 0, sizeof av);
	mlx5_datagram_set_qkey(&av, WORLD_QKEY);
	mlx5_datagram_set_is_extended(&av, 1);
	mlx5_datagram_set_dest_qpn(&av, w->b.qp->qpn);
	mlx5_datagram_set_sgid_index(&av, 2);
	mlx5_datagram_set_tclass(&av, 0xb8);
	mlx5_datagram_set_hop_limit(&av, 63);
	mlx5_datagram_set_flow_label(&av, 0xabcde);
	av_set_gid(ipv4);
	for (unsigned i = 0; i < MTU + 8; i++)
		w->a.data[i] = (uint8_t)(i * 7 + 1);
	return w;
}

static struct work_row send_row(uint8_t opcode, uint32_t bytes)
{
	return (struct work_row){ .opcode = opcode, .bytes = bytes, .has_no_data = !bytes,
		.imm = 0x11223344, .av = &av };
}

static void send_ok(struct world *w, uint8_t opcode, uint32_t bytes)
{
	work_post(&w->a, send_row(opcode, bytes));
	pump(w);
	expect_good(w, &w->a, HW_CQE_REQ);
}

static uint32_t get(const uint8_t *at, unsigned bytes)
{
	uint32_t n = 0;

	while (bytes--)
		n = n << 8 | *at++;
	return n;
}

Test(ud, every_size_up_to_the_mtu_arrives_behind_40_bytes)
{
	static const uint32_t sizes[] = { 0, 1, 3, 4, 40, 1024, MTU - 1, MTU };
	struct world *w = ud_new();

	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct hw_cqe c;

		recv_post(&w->b, GRH + MTU, 0, 0);
		w->b.data[GRH + sizes[i]] = 0x5a;
		send_ok(w, i % 2 ? SEND_IMM : SEND, sizes[i]);
		c = world_cqe(w, &w->b);
		cr_assert_eq(c.kind, i % 2 ? HW_CQE_RECV_IMM : HW_CQE_RECV);
		cr_assert_eq(c.bytes, GRH + sizes[i]);
		cr_assert(c.has_origin);
		cr_assert_eq(c.src_qpn, w->a.qp->qpn);
		if (i % 2)
			cr_assert_eq(be32toh(c.imm), 0x11223344);
		cr_assert(!memcmp(w->b.data + GRH, w->a.data, sizes[i]), "size %u", sizes[i]);
		cr_assert_eq(w->b.data[GRH + sizes[i]], 0x5a, "wrote past the end");
	}
	cr_assert_eq(w->why.made, 0);
}

Test(ud, a_longer_message_fails_at_home)
{
	struct world *w = ud_new();

	work_post(&w->a, send_row(SEND, MTU + 1));
	pump(w);
	expect_status(w, &w->a, HW_LOC_LEN);
	expect_why(w, WHY_DATAGRAM_TOO_LONG);
	cr_assert_eq(w->a.qp->state, QP_SQE);
	cr_assert_eq(w->packets, 0);
}

/* --- headers --- */

Test(ud, an_ipv4_header_stands_at_20_with_a_good_checksum)
{
	struct world *w = ud_new();
	const uint8_t *at = w->b.data + 20;
	uint32_t sum = 0;
	struct hw_cqe c;

	memset(w->b.data, 0xff, GRH);
	recv_post(&w->b, GRH + 100, 0, 0);
	send_ok(w, SEND_IMM, 33);
	c = world_cqe(w, &w->b);
	cr_assert_eq(c.grh, 1);
	cr_assert_eq(c.l3, 2);
	for (unsigned i = 0; i < 20; i++)
		cr_assert_eq(w->b.data[i], 0);
	cr_assert_eq(at[0], 0x45);
	cr_assert_eq(at[1], 0xb8);
	cr_assert_eq(get(at + 2, 2), 20 + 8 + 12 + 8 + 4 + 36 + 4);
	cr_assert_eq(at[8], 63);
	cr_assert_eq(at[9], 17);
	cr_assert(!memcmp(at + 12, ipv4 + 12, 4) && !memcmp(at + 16, ipv4 + 12, 4));
	for (unsigned i = 0; i < 20; i += 2)
		sum += get(at + i, 2);
	cr_assert_eq((sum & 0xffff) + (sum >> 16), 0xffff, "checksum");
}

struct v6_row { uint32_t sgid_index; const uint8_t *gid; unsigned next, udp_bytes, l3; };

Test(ud, other_gids_have_an_ipv6_header)
{
	static const struct v6_row rows[] = {
		{ 0, ipv6, 17, 8, 1 }, { 1, ipv4, 0x1b, 0, 0 }, { 4, ipv6, 0x1b, 0, 0 },
	};

	for (unsigned i = 0; i < 3; i++) {
		struct world *w = ud_new();
		const uint8_t *at = w->b.data;
		struct hw_cqe c;

		mlx5_datagram_set_sgid_index(&av, rows[i].sgid_index);
		av_set_gid(rows[i].gid);
		recv_post(&w->b, GRH + 100, 0, 0);
		send_ok(w, SEND, 33);
		c = world_cqe(w, &w->b);
		cr_assert_eq(c.grh, 1);
		cr_assert_eq(c.l3, rows[i].l3);
		cr_assert_eq(get(at, 4), 0x6b8abcde);
		cr_assert_eq(get(at + 4, 2), rows[i].udp_bytes + 12 + 8 + 36 + 4);
		cr_assert_eq(at[6], rows[i].next);
		cr_assert_eq(at[7], 63);
		cr_assert(!memcmp(at + 8, rows[i].gid, 16) && !memcmp(at + 24, rows[i].gid, 16));
	}
}

/* --- InfiniBand --- */

static struct world *ib_new(void)
{
	struct world *w = ud_new();

	w->dev.lid = LID;
	w->dev.profile = hw_profile_find("connectx-6");
	mlx5_datagram_set_udp_sport(&av, LID);
	mlx5_datagram_set_sl(&av, 5);
	return w;
}

Test(ud, infiniband_without_a_grh_leaves_40_bytes_alone)
{
	struct world *w = ib_new();
	struct hw_cqe c;

	memset(w->b.data, 0xee, GRH);
	recv_post(&w->b, GRH + 100, 0, 0);
	send_ok(w, SEND, 33);
	c = world_cqe(w, &w->b);
	cr_assert_eq(c.bytes, GRH + 33);
	cr_assert_eq(c.grh, 0);
	cr_assert_eq(c.l3, 0);
	cr_assert_eq(c.sl, 5);
	cr_assert_eq(c.slid, LID);
	cr_assert_eq(c.src_qpn, w->a.qp->qpn);
	for (unsigned i = 0; i < GRH; i++)
		cr_assert_eq(w->b.data[i], 0xee);
	cr_assert(!memcmp(w->b.data + GRH, w->a.data, 33));
}

Test(ud, infiniband_with_a_grh_has_it)
{
	struct world *w = ib_new();
	struct hw_cqe c;

	mlx5_datagram_set_has_grh(&av, 1);
	mlx5_datagram_set_sgid_index(&av, 0);
	recv_post(&w->b, GRH + 100, 0, 0);
	send_ok(w, SEND, 33);
	c = world_cqe(w, &w->b);
	cr_assert_eq(c.grh, 1);
	cr_assert_eq(c.l3, 0);
	cr_assert_eq(c.sl, 5);
	cr_assert_eq(w->b.data[6], 0x1b);
}

Test(ud, infiniband_goes_by_lid_even_with_a_grh)
{
	struct world *w = ib_new();

	mlx5_datagram_set_has_grh(&av, 1);
	mlx5_datagram_set_sgid_index(&av, 0);
	mlx5_datagram_set_udp_sport(&av, LID + 1);
	recv_post(&w->b, GRH + 100, 0, 0);
	send_ok(w, SEND, 33);
	expect_why(w, WHY_PACKET_DGID);
	cr_assert_eq(world_cqes(w, &w->b), 0);
}

/* A port with LMC n has 2^n LIDs; the path bits say which of them sends, those above n nothing. */
Test(ud, path_bits_are_masked_by_the_lmc)
{
	static const struct { unsigned lmc, bits, dlid, slid, path_bits; } rows[] = {
		{ 0, 0x7f, 0, 0, 0 }, { 1, 0, 1, 0, 1 }, { 2, 3, 2, 3, 2 }, { 2, 0x7d, 3, 1, 3 },
		{ 7, 0x7f, 0x7f, 0x7f, 0x7f }, { 7, 0x55, 0, 0x55, 0 },
	};

	for (unsigned i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
		const unsigned base = 0x1200, row = i / 2;
		struct world *w = ib_new();
		struct hw_cqe c;

		w->dev.lid = base;
		w->dev.lmc = (uint8_t)rows[row].lmc;
		mlx5_datagram_set_has_grh(&av, i % 2);
		mlx5_datagram_set_sgid_index(&av, 0);
		mlx5_datagram_set_path_bits(&av, rows[row].bits);
		mlx5_datagram_set_udp_sport(&av, base + rows[row].dlid);
		recv_post(&w->b, GRH + 100, 0, 0);
		send_ok(w, SEND, 33);
		c = world_cqe(w, &w->b);
		cr_assert_eq(c.slid, base + rows[row].slid, "row %u: %#x", row, c.slid);
		cr_assert_eq(c.path_bits, rows[row].path_bits, "row %u: %#x", row, c.path_bits);
	}
}

Test(ud, a_lid_beyond_the_lmc_is_another_ports)
{
	static const struct { unsigned lmc; int dlid; } rows[] = {
		{ 0, 1 }, { 1, 2 }, { 1, -1 }, { 3, 8 }, { 3, -1 }, { 7, 0x80 }, { 7, -1 },
	};

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct world *w = ib_new();

		w->dev.lid = 0x1200;
		w->dev.lmc = (uint8_t)rows[i].lmc;
		mlx5_datagram_set_udp_sport(&av, (unsigned)(0x1200 + rows[i].dlid));
		recv_post(&w->b, GRH + 100, 0, 0);
		send_ok(w, SEND, 33);
		expect_why(w, WHY_PACKET_DGID);
		cr_assert_eq(world_cqes(w, &w->b), 0);
	}
}

/* The LID of a group is none of the port's, so its lower bits mean nothing. */
Test(ud, a_group_has_no_path_bits)
{
	struct world *w = ib_new();
	struct ib_packet p = { .opcode = IB_UD | RC_SEND_ONLY, .packet_count = 1,
		.dest_qpn = IB_MULTICAST_QPN, .src_qpn = w->a.qp->qpn,
		.extra = { .qkey = WORLD_QKEY, .slid = 0x1201, .dlid = 0xc007 } };
	struct hw_cqe c;

	w->dev.lid = 0x1200;
	w->dev.lmc = 3;
	recv_post(&w->b, GRH + 100, 0, 0);
	cr_assert(ud_take(&w->tp, w->b.qp, &p));
	c = world_cqe(w, &w->b);
	cr_assert_eq(c.slid, 0x1201);
	cr_assert_eq(c.path_bits, 0);
}

Test(ud, the_compact_address_is_infinibands)
{
	struct world *w = ib_new();
	struct mlx5_datagram whole = av;
	uint8_t *at;

	mlx5_datagram_set_is_extended(&whole, 0);
	work_post(&w->a, (struct work_row){ .opcode = SEND, .ds = 3, .bytes = 33, .av = &whole });
	at = side_block(&w->a, 0);
	memmove(at + 32, at + 64, 16);		/* the data follows the first 16 bytes */
	w->a.record[1] = htobe32(w->a.posted_blocks = 1);
	recv_post(&w->b, GRH + 100, 0, 0);
	pump(w);
	expect_good(w, &w->a, HW_CQE_REQ);
	expect_good(w, &w->b, HW_CQE_RECV);
}

/* --- Q_Keys --- */

Test(ud, another_qkey_is_dropped_and_counted)
{
	struct world *w = ud_new();

	mlx5_datagram_set_qkey(&av, WORLD_QKEY + 1);
	recv_post(&w->b, GRH + 100, 0, 0);
	send_ok(w, SEND, 33);
	expect_why(w, WHY_PACKET_QKEY);
	cr_assert_eq(w->dev.port.qkey_violations, 1);
	cr_assert_eq(world_cqes(w, &w->b), 0);
	mlx5_datagram_set_qkey(&av, WORLD_QKEY);
	send_ok(w, SEND, 33);
	expect_good(w, &w->b, HW_CQE_RECV);
}

Test(ud, the_upper_half_of_qkeys_means_the_qps_own)
{
	struct world *w = ud_new();

	w->a.qp->attr.qkey = w->b.qp->attr.qkey = 0x80010000;
	mlx5_datagram_set_qkey(&av, 0x80000000);
	recv_post(&w->b, GRH + 100, 0, 0);
	send_ok(w, SEND, 33);
	expect_good(w, &w->b, HW_CQE_RECV);
	mlx5_datagram_set_qkey(&av, 0x00010000);
	send_ok(w, SEND, 33);
	expect_why(w, WHY_PACKET_QKEY);
}

/* --- receives --- */

Test(ud, without_a_receive_the_datagram_is_dropped)
{
	struct world *w = ud_new();

	send_ok(w, SEND, 33);
	expect_why(w, WHY_RECV_MISSING);
	cr_assert_eq(w->b.qp->state, QP_RTS);
	recv_post(&w->b, GRH + 33, 0, 0);
	send_ok(w, SEND, 33);
	expect_good(w, &w->b, HW_CQE_RECV);
}

static void expect_recv_fails(struct world *w, enum hw_status status, enum why why)
{
	send_ok(w, SEND, 33);
	expect_status(w, &w->b, status);
	cr_assert_eq(w->b.qp->state, QP_ERR);
	cr_assert(world_has_why(w, why), "reason %s is missing", why_name(why));
}

Test(ud, a_receive_that_is_too_small_fails_with_its_qp)
{
	static const uint32_t room[] = { GRH + 32, GRH, 1 };

	for (unsigned i = 0; i < 3; i++) {
		struct world *w = ud_new();

		recv_post(&w->b, room[i], 0, 0);
		recv_post(&w->b, 4096, 0, 4096);
		expect_recv_fails(w, HW_LOC_LEN, WHY_RECV_TOO_SMALL);
		expect_status(w, &w->b, HW_FLUSHED);
		cr_assert_eq(w->b.data[0], 0);
	}
}

Test(ud, a_bad_receive_fails_with_its_qp)
{
	struct world *w = ud_new();
	void *gone = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct emu_mr *mr;

	recv_post(&w->b, 4096, 0x12345600, 0);
	expect_recv_fails(w, HW_LOC_PROT_RECV, WHY_KEY_UNKNOWN);

	w = ud_new();
	recv_post(&w->b, 4096, 0, 0);
	w->b.queue[0] = 0x80;
	expect_recv_fails(w, HW_LOC_QP_OP_RECV, WHY_RECV_MALFORMED);

	w = ud_new();
	cr_assert_eq(mr_create(&w->dev, w->pd, (uintptr_t)gone, 4096, (uintptr_t)gone,
			       KEY_LOCAL_WRITE, &mr), 0);
	w->b.data = gone;
	recv_post(&w->b, 4096, mr->key, 0);
	munmap(gone, 4096);
	expect_recv_fails(w, HW_LOC_PROT_RECV, WHY_MEMORY_GONE);
}

/* --- at home --- */

Test(ud, a_source_that_is_not_there_fails)
{
	static const uint8_t bad[] = { 3, 5, 255 };

	for (unsigned i = 0; i < 3; i++) {
		struct world *w = ud_new();

		mlx5_datagram_set_sgid_index(&av, bad[i]);
		work_post(&w->a, send_row(SEND, 8));
		pump(w);
		expect_status(w, &w->a, HW_LOC_QP_OP);
		expect_why(w, WHY_AV_SOURCE);
		cr_assert_eq(w->a.qp->state, QP_SQE);
		cr_assert_eq(w->packets, 0);
	}
}

Test(ud, only_sends_exist)
{
	static const uint8_t opcodes[] = { WRITE, READ, INVAL, 0x09, 0x11, 0x12 };

	for (unsigned i = 0; i < sizeof opcodes; i++) {
		struct world *w = ud_new();

		work_post(&w->a, send_row(opcodes[i], 8));
		pump(w);
		expect_status(w, &w->a, HW_LOC_QP_OP);
		cr_assert_eq(w->a.qp->state, QP_SQE);
	}
}

Test(ud, a_failed_request_stops_the_send_queue_only)
{
	struct world *w = ud_new();
	struct work_row r = send_row(SEND, 8);
	struct qp_attr at = { .state = QP_RTS };
	struct mlx5_datagram back = av;

	r.lkey = 0x12345600;
	work_post(&w->a, r);
	work_post(&w->a, send_row(SEND, 8));
	recv_post(&w->a, GRH + 100, 0, 8192);
	pump(w);
	expect_status(w, &w->a, HW_LOC_PROT);
	expect_status(w, &w->a, HW_FLUSHED);
	cr_assert_eq(w->a.qp->state, QP_SQE);
	mlx5_datagram_set_dest_qpn(&back, w->a.qp->qpn);
	work_post(&w->b, (struct work_row){ .opcode = SEND, .bytes = 8, .av = &back });
	pump(w);
	expect_good(w, &w->a, HW_CQE_RECV);
	cr_assert_eq(qp_modify(&w->dev, w->a.qp, &at, A_STATE), 0);
	send_ok(w, SEND, 8);
}

/* --- what the network may bring --- */

Test(ud, broken_packets_are_dropped)
{
	struct world *w = ud_new();
	struct iovec span = { w->a.data, MTU + 1 };
	struct ib_packet good = { .opcode = IB_UD | RC_SEND_ONLY, .packet_count = 1,
		.mtu_bytes = MTU, .payload_bytes = 8, .span = &span, .span_count = 1,
		.extra = { .qkey = WORLD_QKEY, .l3 = IB_L3_IPV4 } };
	static const struct { unsigned opcode, count, bytes, l3; enum why why; } rows[] = {
		{ RC_SEND_FIRST, 1, 8, 0, WHY_OPCODE_UNKNOWN },
		{ RC_WRITE_ONLY, 1, 8, 0, WHY_OPCODE_UNKNOWN },
		{ RC_ACKNOWLEDGE, 1, 8, 0, WHY_OPCODE_UNKNOWN },
		{ RC_SEND_ONLY_INVAL, 1, 8, 0, WHY_OPCODE_UNKNOWN },
		{ RC_SEND_ONLY, 2, 8, 0, WHY_PACKET_LENGTH },
		{ RC_SEND_ONLY, 1, MTU + 1, 0, WHY_PACKET_LENGTH },
		{ RC_SEND_ONLY, 1, 8, IB_L3_COUNT, WHY_PACKET_LENGTH },
		{ RC_SEND_ONLY, 1, 8, 255, WHY_PACKET_LENGTH },
	};

	recv_post(&w->b, 8192, 0, 0);
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct ib_packet p = good;

		p.opcode = (uint8_t)(IB_UD | rows[i].opcode);
		p.packet_count = rows[i].count;
		p.payload_bytes = rows[i].bytes;
		p.extra.l3 = (uint8_t)rows[i].l3;
		memset(&w->why, 0, sizeof w->why);
		cr_assert(ud_take(&w->tp, w->b.qp, &p));
		cr_assert(world_has_why(w, rows[i].why), "row %u", i);
	}
	cr_assert_eq(w->seen_count, 0);
	cr_assert(ud_take(&w->tp, w->b.qp, &good));
	expect_good(w, &w->b, HW_CQE_RECV);
}

Test(ud, data_that_can_not_be_read_uses_up_no_receive)
{
	struct world *w = ud_new();
	struct iovec span = { (void *)16, 8 };
	struct ib_packet p = { .opcode = IB_UD | RC_SEND_ONLY, .packet_count = 1,
		.mtu_bytes = MTU, .payload_bytes = 8, .span = &span, .span_count = 1,
		.extra = { .qkey = WORLD_QKEY } };

	recv_post(&w->b, 8192, 0, 0);
	cr_assert_not(ud_take(&w->tp, w->b.qp, &p));
	cr_assert_eq(w->seen_count, 0);
	send_ok(w, SEND, 8);
	expect_good(w, &w->b, HW_CQE_RECV);
}

/* Whatever the bytes of a request and of a packet: nobody crashes, and nothing but the receives'
 * memory changes. */
Test(ud, random_requests_and_packets_never_hurt)
{
	struct world *w = ud_new();
	unsigned seed = 11;

	memset(w->b.data + 8192, 0x77, 64);
	for (unsigned round = 0; round < 20000; round++) {
		struct mlx5_datagram any = av;
		struct iovec span = { w->a.data, 8192 };
		struct ib_packet p = { .opcode = (uint8_t)(IB_UD | rand_r(&seed) % 32),
			.packet_count = (uint32_t)rand_r(&seed) % 3, .span = &span, .span_count = 1,
			.payload_bytes = (uint32_t)rand_r(&seed) % 8192,
			.extra = { .l3 = (uint8_t)(rand_r(&seed) % 6) } };

		for (unsigned i = 0; i < 4; i++)
			((uint8_t *)&any)[rand_r(&seed) % sizeof any] = (uint8_t)rand_r(&seed);
		p.extra.qkey = rand_r(&seed) % 4 ? WORLD_QKEY : (uint32_t)rand_r(&seed);
		recv_post(&w->b, (uint32_t)rand_r(&seed) % 8192, 0, 0);
		work_post(&w->a, (struct work_row){ .opcode = SEND, .av = &any,
			.bytes = (uint32_t)rand_r(&seed) % 5000 });
		pump(w);
		ud_take(&w->tp, w->b.qp, &p);
		for (unsigned i = 0; i < 2; i++) {	/* whatever became of them: again */
			struct emu_qp *qp = i ? w->b.qp : w->a.qp;

			if (qp->work & QP_WORK_FLUSH)
				tp_flush(&w->tp, qp);
			qp->state = QP_RTS;
		}
		w->seen_count = 0;
	}
	for (unsigned i = 0; i < 64; i++)
		cr_assert_eq(w->b.data[8192 + i], 0x77);
}
