/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames out of a send queue, and into a receive queue.
 *
 * Method: two QPs by hand (rc_world.h); what one sends is read as the engine would and given to the
 * other.  Frames are compared byte by byte with what was written.
 */
#include "emu/steer/offload.h"
#include "emu/transport/raw.h"
#include "tests/unit/rc_world.h"

enum { SEND = 0x0a, TSO = 0x0e, MACS = 12, HEADER = 14 };

static uint32_t flow_tag, rx_hash;
static uint8_t rx_hash_type;

/* In the place of the switch: every frame goes to the other QP. */
static bool take(struct world *w, const struct ib_packet *p)
{
	struct tp_arrival a = { .flow_tag = flow_tag, .rx_hash = rx_hash,
				.rx_hash_type = rx_hash_type };
	struct frame f;

	cr_assert_eq(p->opcode & IB_TRANSPORT_MASK, IB_ETHERNET);
	cr_assert_eq(p->span_count, 1);
	cr_assert_eq(p->span->iov_len, p->payload_bytes);
	cr_assert(frame_read(&f, p->span->iov_base, p->payload_bytes, true));
	a.frame = &f;
	if (w->b.qp->state == QP_RTS)
		raw_take(&w->tp, w->b.qp, &a);
	return true;
}

static struct world *raw_new(void)
{
	struct world *w = world_new_of(QPT_RAW, 0);

	w->loses = take;
	w->a.qp->frames.has_flow_tags = w->b.qp->frames.has_flow_tags = true;
	for (unsigned i = 0; i < 1 << 16; i++)
		w->a.data[i] = (uint8_t)(i * 7 + 1);
	return w;
}

struct frame_row {
	uint8_t opcode, checksums;
	uint16_t mss, inline_bytes, tag;
	const uint8_t *header;
	uint32_t bytes, offset, lkey;
};

/* One WQE: control, the Ethernet segment with its header, one piece of data. */
static void frame_post(struct side *s, struct frame_row r)
{
	uint8_t wqe[512] = { 0 }, *end;
	struct mlx5_ctrl c = { 0 };
	struct mlx5_eth eth = { 0 };
	unsigned units, header_units = r.inline_bytes > 2 ? (r.inline_bytes - 2 + 15) / 16 : 0;

	mlx5_eth_set_cs_flags(&eth, r.checksums);
	mlx5_eth_set_mss(&eth, r.mss);
	mlx5_eth_set_header_bytes(&eth, r.inline_bytes);
	if (r.tag) {
		mlx5_eth_set_inserts_vlan(&eth, 1);
		mlx5_eth_set_header_start(&eth, r.tag);
	}
	memcpy(wqe + 16, &eth, 16);
	if (r.inline_bytes)
		memcpy(wqe + 30, r.header, r.inline_bytes);
	end = wqe + 32 + header_units * 16;
	if (r.bytes) {
		data_write(s, end, r.bytes, r.lkey, r.offset);
		end += 16;
	}
	units = (unsigned)(end - wqe) / 16;
	mlx5_ctrl_set_wqe_index(&c, s->posted_blocks);
	mlx5_ctrl_set_opcode(&c, r.opcode);
	mlx5_ctrl_set_qpn(&c, s->qp->qpn);
	mlx5_ctrl_set_ds(&c, units);
	mlx5_ctrl_set_completion(&c, 2);
	memcpy(wqe, &c, 16);
	for (unsigned block = 0; block * 4 < units; block++)
		memcpy(side_block(s, (uint16_t)(s->posted_blocks + block)), wqe + block * 64, 64);
	s->posted_blocks = (uint16_t)(s->posted_blocks + (units + 3) / 4);
	s->record[1] = htobe32(s->posted_blocks);
}

static void data_send(struct world *w, uint32_t bytes)
{
	frame_post(&w->a, (struct frame_row){ .opcode = SEND, .bytes = bytes });
	pump(w);
	expect_good(w, &w->a, HW_CQE_REQ);
}

/* --- out --- */

Test(raw, every_size_of_a_frame)
{
	static const uint32_t sizes[] = { 14, 15, 59, 60, 61, 1514, 9000, FRAME_BYTES_MAX };
	struct world *w = raw_new();

	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		uint32_t padded = sizes[i] < 60 ? 60 : sizes[i];
		struct hw_cqe c;

		memset(w->b.data, 0x5a, FRAME_BYTES_MAX + 1);
		recv_post(&w->b, 1 << 14, 0, 0);
		data_send(w, sizes[i]);
		c = world_cqe(w, &w->b);
		cr_assert_eq(c.kind, HW_CQE_RECV);
		cr_assert_eq(c.bytes, padded, "size %u: %u", sizes[i], c.bytes);
		cr_assert(!memcmp(w->b.data, w->a.data, sizes[i]), "size %u", sizes[i]);
		for (uint32_t at = sizes[i]; at < padded; at++)
			cr_assert_eq(w->b.data[at], 0, "padding of %u", sizes[i]);
		cr_assert_eq(w->b.data[padded], 0x5a, "wrote past the end");
	}
	cr_assert_eq(w->why.made, 0);
}

Test(raw, what_is_no_frame_fails)
{
	static const uint32_t sizes[] = { 0, 13, FRAME_BYTES_MAX + 1 };

	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct world *w = raw_new();

		frame_post(&w->a, (struct frame_row){ .opcode = SEND, .bytes = sizes[i] });
		pump(w);
		expect_status(w, &w->a, HW_LOC_LEN);
		expect_why(w, WHY_FRAME_LENGTH);
		cr_assert_eq(w->packets, 0);
		cr_assert_eq(w->a.qp->state, QP_SQE);
	}
}

Test(raw, an_inline_header_comes_first)
{
	struct world *w = raw_new();
	uint8_t header[18];

	for (unsigned i = 0; i < sizeof header; i++)
		header[i] = (uint8_t)(0xe0 + i);
	recv_post(&w->b, 4096, 0, 0);
	frame_post(&w->a, (struct frame_row){ .opcode = SEND, .inline_bytes = sizeof header,
					      .header = header, .bytes = 100, .offset = 5 });
	pump(w);
	expect_good(w, &w->a, HW_CQE_REQ);
	cr_assert_eq(world_cqe(w, &w->b).bytes, 118);
	cr_assert(!memcmp(w->b.data, header, sizeof header));
	cr_assert(!memcmp(w->b.data + sizeof header, w->a.data + 5, 100));
}

Test(raw, a_port_may_want_more_of_the_header_inline)
{
	static const uint8_t header[18];
	struct world *w = raw_new();

	w->dev.options.eth_inline_bytes = 18;
	recv_post(&w->b, 4096, 0, 0);
	frame_post(&w->a, (struct frame_row){ .opcode = SEND, .inline_bytes = 18,
					      .header = header, .bytes = 100 });
	pump(w);
	expect_good(w, &w->a, HW_CQE_REQ);
	world_cqe(w, &w->b);
	frame_post(&w->a, (struct frame_row){ .opcode = SEND, .inline_bytes = 17,
					      .header = header, .bytes = 100 });
	pump(w);
	expect_status(w, &w->a, HW_LOC_QP_OP);
	expect_why(w, WHY_FRAME_INLINE);
}

Test(raw, a_key_that_does_not_fit_fails)
{
	struct world *w = raw_new();

	frame_post(&w->a, (struct frame_row){ .opcode = SEND, .bytes = 100, .lkey = 0x777700 });
	pump(w);
	expect_status(w, &w->a, HW_LOC_PROT);
	expect_why(w, WHY_KEY_UNKNOWN);
	cr_assert_eq(w->packets, 0);
}

/* --- what the adapter does --- */

static const uint8_t tcp_header[] = {
	0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1, 0x08, 0x00,
	0x45, 0, 0, 0, 0, 9, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
	0x04, 0xd2, 0x16, 0x2e, 0, 0, 0x10, 0, 0, 0, 0, 1, 0x50, 0x18, 0x02, 0, 0, 0, 0, 0,
};

static uint32_t get(const uint8_t *at, unsigned bytes)
{
	uint32_t n = 0;

	while (bytes--)
		n = n << 8 | *at++;
	return n;
}

Test(raw, tso_cuts_a_message)
{
	enum { MSS = 1000, BYTES = 2500, IP = 14, TCP_AT = 34, DATA = sizeof tcp_header };
	static const uint32_t parts[] = { 1000, 1000, 500 };
	struct world *w = raw_new();

	for (unsigned i = 0; i < 3; i++)
		recv_post(&w->b, 4096, 0, i * 4096);
	frame_post(&w->a, (struct frame_row){ .opcode = TSO, .mss = MSS, .header = tcp_header,
		.inline_bytes = sizeof tcp_header, .bytes = BYTES, .checksums = 0xc0 });
	pump(w);
	cr_assert_eq(w->packets, 3);
	for (unsigned i = 0; i < 3; i++) {
		const uint8_t *at = w->b.data + i * 4096;
		struct hw_cqe c = world_cqe(w, &w->b);

		cr_assert_eq(c.bytes, DATA + parts[i]);
		cr_assert_eq(c.checks_ok, 7, "part %u: %u", i, c.checks_ok);
		cr_assert_eq(get(at + IP + 2, 2), DATA - IP + parts[i]);
		cr_assert_eq(get(at + IP + 4, 2), 9 + i, "identification");
		cr_assert_eq(get(at + TCP_AT + 4, 4), 0x1000 + i * MSS, "sequence");
		cr_assert_eq(at[TCP_AT + 13], i == 2 ? 0x18 : 0x10, "PSH is the last one's");
		cr_assert(!memcmp(at + DATA, w->a.data + i * MSS, parts[i]));
	}
	expect_good(w, &w->a, HW_CQE_REQ);
}

Test(raw, tso_that_can_not_be)
{
	static const uint8_t no_tcp[54] = { [12] = 0x88, [13] = 0xb5 };
	static const struct tso_row {
		struct frame_row row;
		enum hw_status status;
		enum why why;
	} rows[] = {
		{ { .opcode = TSO, .mss = 0, .header = tcp_header, .inline_bytes = 54,
		    .bytes = 100 }, HW_LOC_LEN, WHY_FRAME_LENGTH },
		{ { .opcode = TSO, .mss = 100, .header = no_tcp, .inline_bytes = 54,
		    .bytes = 100 }, HW_LOC_QP_OP, WHY_FRAME_TSO },
		{ { .opcode = TSO, .mss = 0xffff, .header = tcp_header, .inline_bytes = 54,
		    .bytes = 20000 }, HW_LOC_LEN, WHY_FRAME_LENGTH },
		{ { .opcode = TSO, .mss = 1460, .header = tcp_header, .inline_bytes = 54,
		    .bytes = TSO_BYTES_MAX + 1 }, HW_LOC_LEN, WHY_FRAME_LENGTH },
	};

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct world *w = raw_new();

		frame_post(&w->a, rows[i].row);
		pump(w);
		expect_status(w, &w->a, rows[i].status);
		expect_why(w, rows[i].why);
		cr_assert_eq(w->packets, 0, "row %u", i);
	}
}

Test(raw, a_tag_is_put_in_and_taken_out)
{
	struct world *w = raw_new();
	struct hw_cqe c;

	recv_post(&w->b, 4096, 0, 0);
	frame_post(&w->a, (struct frame_row){ .opcode = SEND, .bytes = 100, .tag = 0xa123 });
	pump(w);
	c = world_cqe(w, &w->a);
	c = world_cqe(w, &w->b);
	cr_assert_eq(c.bytes, 104);
	cr_assert(!c.has_vlan);
	cr_assert(!memcmp(w->b.data, w->a.data, MACS));
	cr_assert_eq(get(w->b.data + MACS, 4), 0x8100a123);
	cr_assert(!memcmp(w->b.data + MACS + 4, w->a.data + MACS, 100 - MACS));
	w->b.qp->frames.strips_vlan = true;
	recv_post(&w->b, 4096, 0, 0);
	frame_post(&w->a, (struct frame_row){ .opcode = SEND, .bytes = 100, .tag = 0xa123 });
	pump(w);
	c = world_cqe(w, &w->a);
	c = world_cqe(w, &w->b);
	cr_assert_eq(c.bytes, 100);
	cr_assert(c.has_vlan && c.vlan == 0xa123);
	cr_assert(!memcmp(w->b.data, w->a.data, 100));
}

Test(raw, the_check_sequence_can_be_had)
{
	struct world *w = raw_new();
	uint8_t fcs[FCS_BYTES];

	w->b.qp->frames.scatters_fcs = true;
	recv_post(&w->b, 4096, 0, 0);
	data_send(w, 100);
	cr_assert_eq(world_cqe(w, &w->b).bytes, 104);
	offload_fcs(w->a.data, 100, fcs);
	cr_assert(!memcmp(w->b.data + 100, fcs, sizeof fcs));
}

/* --- in --- */

Test(raw, a_receive_tells_of_rule_and_hash)
{
	struct world *w = raw_new();
	struct hw_cqe c;

	flow_tag = 0x123456;
	rx_hash = 0xdeadbeef;
	rx_hash_type = 0x48;
	recv_post(&w->b, 4096, 0, 0);
	data_send(w, 100);
	c = world_cqe(w, &w->b);
	cr_assert(c.is_frame && c.has_origin);
	cr_assert_eq(c.flow_tag, 0x123456);
	cr_assert_eq(c.rx_hash, 0xdeadbeef);
	cr_assert_eq(c.rx_hash_type, 0x48);
}

Test(raw, without_a_receive_the_frame_is_lost)
{
	struct world *w = raw_new();

	data_send(w, 100);
	expect_why(w, WHY_FRAME_QUEUE);
	cr_assert_eq(w->b.qp->state, QP_RTS);
	recv_post(&w->b, 4096, 0, 0);
	data_send(w, 100);
	cr_assert_eq(world_cqe(w, &w->b).bytes, 100);
}

Test(raw, a_receive_that_is_too_small_ends_the_queue)
{
	struct world *w = raw_new();

	recv_post(&w->b, 99, 0, 0);
	data_send(w, 100);
	pump(w);
	expect_status(w, &w->b, HW_LOC_LEN);
	expect_why(w, WHY_RECV_TOO_SMALL);
	cr_assert_eq(w->b.qp->state, QP_ERR);
	cr_assert_eq(w->a.qp->state, QP_RTS, "nobody tells the sender");
}

Test(raw, a_receive_that_may_not_be_written_ends_the_queue)
{
	struct world *w = raw_new();

	recv_post(&w->b, 200, 0x777700, 0);
	data_send(w, 100);
	pump(w);
	expect_status(w, &w->b, HW_LOC_PROT_RECV);
	expect_why(w, WHY_KEY_UNKNOWN);
}

Test(raw, whether_a_receive_is_there)
{
	struct world *w = raw_new();

	cr_expect(!raw_has_receives(&w->tp, w->b.qp, 1));
	recv_post(&w->b, 4096, 0, 0);
	for (unsigned i = 0; i < 3; i++)
		cr_expect(raw_has_receives(&w->tp, w->b.qp, 1), "asking takes nothing");
	cr_expect(!raw_has_receives(&w->tp, w->b.qp, 2));
	recv_post(&w->b, 4096, 0, 4096);
	cr_expect(raw_has_receives(&w->tp, w->b.qp, 2));
	data_send(w, 100);
	pump(w);
	data_send(w, 100);
	pump(w);
	cr_expect(!raw_has_receives(&w->tp, w->b.qp, 1));
	cr_expect_eq(w->why.made, 0);
	w->b.record[0] = htobe32(w->b.posted_recvs + WORLD_RECVS + 1);
	cr_expect(raw_has_receives(&w->tp, w->b.qp, 1), "nothing is to be waited for");
	cr_expect_eq(w->b.qp->state, QP_ERR);
	expect_why(w, WHY_RQ_DOORBELL);
}

/* --- strides --- */

enum { STRIDE_LOG = 6, STRIDES_LOG = 3, WQE_BYTES = 1 << (STRIDE_LOG + STRIDES_LOG) };

/* A WQE begins with 16 bytes that mean nothing. */
static void strides_post(struct side *s, uint32_t bytes, uint32_t offset)
{
	uint8_t *at = s->queue + (s->posted_recvs % WORLD_RECVS) * WORLD_STRIDE;
	struct mlx5_data end = { 0 };

	memset(at, 0xee, 16);
	data_write(s, at + 16, bytes, 0, offset);
	mlx5_data_set_lkey(&end, HW_LKEY_END);
	memcpy(at + 32, &end, 16);
	s->record[0] = htobe32(++s->posted_recvs);
}

static struct world *strides_new(bool shifts)
{
	struct world *w = raw_new();

	w->b.qp->striding = (struct striding){ .stride_log = STRIDE_LOG,
					       .strides_log = STRIDES_LOG, .shifts_2 = shifts };
	for (unsigned i = 0; i < 3; i++)
		strides_post(&w->b, WQE_BYTES, i * 4096);
	return w;
}

static void expect_strides(struct world *w, uint16_t wqe, uint16_t stride, uint32_t strides,
			   uint32_t bytes)
{
	struct hw_cqe c = world_cqe(w, &w->b);

	cr_assert_eq(c.kind, HW_CQE_RECV);
	cr_assert_eq(c.wqe_id, wqe, "WQE %u", c.wqe_id);
	cr_assert_eq(c.wqe_counter, stride, "stride %u", c.wqe_counter);
	cr_assert_eq(c.bytes, strides << 16 | bytes, "%#x", c.bytes);
}

Test(raw, frames_share_a_wqe)
{
	struct world *w = strides_new(false);

	data_send(w, 64);
	data_send(w, 65);
	data_send(w, 300);
	expect_strides(w, 0, 0, 1, 64);
	expect_strides(w, 0, 1, 2, 65);
	expect_strides(w, 0, 3, 5, 300);
	cr_assert(!memcmp(w->b.data + 64, w->a.data, 65));
	cr_assert(!memcmp(w->b.data + 3 * 64, w->a.data, 300));
	data_send(w, 100);
	expect_strides(w, 1, 0, 2, 100);
	cr_assert(!memcmp(w->b.data + 4096, w->a.data, 100));
}

/* What is left over is told of with a completion of its own. */
Test(raw, a_frame_does_not_cross_wqes)
{
	struct world *w = strides_new(false);

	data_send(w, 400);
	data_send(w, 100);
	expect_strides(w, 0, 0, 7, 400);
	expect_strides(w, 0, 7, 1u << 15 | 1, 0);
	expect_strides(w, 1, 0, 2, 100);
	data_send(w, WQE_BYTES);
	expect_strides(w, 1, 2, 1u << 15 | 6, 0);
	expect_strides(w, 2, 0, 8, WQE_BYTES);
	data_send(w, 100);
	expect_why(w, WHY_FRAME_QUEUE);
}

Test(raw, two_bytes_may_be_left_in_front)
{
	struct world *w = strides_new(true);

	memset(w->b.data, 0x5a, 256);
	data_send(w, 63);
	data_send(w, 62);
	expect_strides(w, 0, 0, 2, 63);
	expect_strides(w, 0, 2, 1, 62);
	cr_assert(w->b.data[0] == 0x5a && w->b.data[1] == 0x5a);
	cr_assert(!memcmp(w->b.data + 2, w->a.data, 63));
	cr_assert(!memcmp(w->b.data + 128 + 2, w->a.data, 62));
}

Test(raw, a_frame_that_no_wqe_holds_ends_the_queue)
{
	struct world *w = strides_new(false);

	data_send(w, WQE_BYTES + 1);
	pump(w);
	expect_status(w, &w->b, HW_LOC_LEN);
	expect_why(w, WHY_RECV_TOO_SMALL);
}
