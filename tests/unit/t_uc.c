/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UC: messages that nobody acknowledges, whole or not at all.
 *
 * Method: two QPs by hand (rc_world.h); packets of at most 4 KiB, so that long messages have
 * several, and any of them may be lost.
 */
#include "emu/transport/psn.h"
#include "emu/transport/uc.h"
#include "tests/unit/rc_world.h"

enum { SEND = 0x0a, SEND_IMM = 0x0b, SEND_INVAL = 0x01, WRITE = 0x08, WRITE_IMM = 0x09,
       READ = 0x10, FADD = 0x12 };
enum { PART = 4096, LONG = 3 * PART };

static struct world *uc_new(void)
{
	struct world *w = world_new_of(QPT_UC, 100);

	w->bytes_max = PART;
	return w;
}

static struct work_row to_b(struct world *w, uint8_t opcode, uint32_t bytes)
{
	return (struct work_row){ .opcode = opcode, .bytes = bytes, .imm = 0x11223344,
		.remote = (uintptr_t)w->b.data, .rkey = w->b.mr->key };
}

static void fill(struct side *s, uint32_t bytes, unsigned seed)
{
	for (uint32_t i = 0; i < bytes; i++)
		s->data[i] = (uint8_t)(i * 31 + i / 251 + seed);
}

static const uint32_t sizes[] = { 0, 1, 1024, 1025, 4095, 4096, 4097, 65536, 300000 };

Test(uc, send_moves_every_size_without_an_answer)
{
	struct world *w = uc_new();

	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct hw_cqe c;

		fill(&w->a, sizes[i], i);
		recv_post(&w->b, 300000, 0, 0);
		work_post(&w->a, (struct work_row){ .opcode = i % 2 ? SEND : SEND_IMM,
			.bytes = sizes[i], .has_no_data = !sizes[i], .imm = 0x11223344 });
		w->packets = 0;
		pump(w);
		cr_assert_eq(w->packets, psn_count_of(sizes[i], PART), "an answer was sent");
		cr_assert_not(w->last.wants_ack);
		expect_good(w, &w->a, HW_CQE_REQ);
		c = world_cqe(w, &w->b);
		cr_assert_eq(c.kind, i % 2 ? HW_CQE_RECV : HW_CQE_RECV_IMM);
		cr_assert_eq(c.bytes, sizes[i]);
		cr_assert(!memcmp(w->a.data, w->b.data, sizes[i]), "size %u", sizes[i]);
	}
	cr_assert_eq(w->why.made, 0);
}

Test(uc, write_moves_every_size)
{
	struct world *w = uc_new();

	for (unsigned i = 1; i < sizeof sizes / sizeof *sizes; i++) {
		fill(&w->a, sizes[i], i);
		w->b.data[sizes[i]] = 0x5a;
		work_post(&w->a, to_b(w, WRITE, sizes[i]));
		pump(w);
		expect_good(w, &w->a, HW_CQE_REQ);
		cr_assert(!memcmp(w->a.data, w->b.data, sizes[i]), "size %u", sizes[i]);
		cr_assert_eq(w->b.data[sizes[i]], 0x5a, "wrote past the end");
	}
	recv_post(&w->b, 1, 0, 0);
	work_post(&w->a, to_b(w, WRITE_IMM, LONG));
	pump(w);
	cr_assert_eq(world_cqe(w, &w->b).kind, HW_CQE_RECV_WRITE_IMM);
	cr_assert_eq(w->why.made, 0);
}

Test(uc, nothing_waits_for_a_timer)
{
	struct world *w = uc_new();

	work_post(&w->a, to_b(w, WRITE, LONG));
	pump(w);
	cr_assert_not(w->a.qp->req.wants_timer);
	cr_assert_eq(w->a.qp->req.psn_out, 0);
	cr_assert_eq(w->a.qp->req.sq_done, 1);
}

static unsigned lost_at;		/* which packet, counted from 0 */

static bool loses_one(struct world *w, const struct ib_packet *p)
{
	(void)p;
	return w->packets - 1 == lost_at;
}

/* A message that is not whole leaves its receive to the next one. */
Test(uc, a_lost_packet_loses_its_message_only)
{
	for (lost_at = 0; lost_at < 3; lost_at++) {
		struct world *w = uc_new();
		struct hw_cqe c;

		w->loses = loses_one;
		fill(&w->a, 2 * LONG, 7);
		recv_post(&w->b, LONG, 0, 0);
		work_post(&w->a, to_b(w, SEND, LONG));
		work_post(&w->a, (struct work_row){ .opcode = SEND, .bytes = LONG,
						    .offset = LONG });
		pump(w);
		expect_good(w, &w->a, HW_CQE_REQ);
		expect_good(w, &w->a, HW_CQE_REQ);
		cr_assert_eq(world_cqes(w, &w->b), 1);
		c = world_cqe(w, &w->b);
		cr_assert_eq(c.kind, HW_CQE_RECV);
		cr_assert(!memcmp(w->b.data, w->a.data + LONG, LONG), "lost %u", lost_at);
		cr_assert_eq(w->why.made, 1, "one reason a message, not %lu", w->why.made);
		expect_why(w, lost_at == 1 ? WHY_PSN_AHEAD : WHY_OPCODE_SEQUENCE);
		cr_assert_eq(w->b.qp->state, QP_RTS);
	}
}

Test(uc, a_lost_message_is_not_missed)
{
	struct world *w = uc_new();

	lost_at = 0;
	w->loses = loses_one;
	work_post(&w->a, to_b(w, WRITE, 8));
	work_post(&w->a, (struct work_row){ .opcode = WRITE, .bytes = 8, .offset = 64,
		.remote = (uintptr_t)w->b.data + 64, .rkey = w->b.mr->key });
	memset(w->a.data, 0x77, 128);
	pump(w);
	cr_assert_eq(w->b.data[0], 0);
	cr_assert_eq(w->b.data[64], 0x77);
	cr_assert_eq(w->why.made, 0);
}

/* What a responder drops without a word: requester SUCCESS, receive kept, QP as it was. */
static void expect_dropped(struct world *w, struct work_row r, enum why why)
{
	work_post(&w->a, r);
	pump(w);
	expect_good(w, &w->a, HW_CQE_REQ);
	cr_assert_eq(world_cqes(w, &w->b), 0);
	cr_assert_eq(w->b.qp->state, QP_RTS);
	cr_assert_eq(w->why.made, 1, "one reason a message");
	cr_assert(world_has_why(w, why), "reason %s is missing", why_name(why));
	for (unsigned i = 0; i < LONG; i++)
		cr_assert_eq(w->b.data[i], 0);
}

/* The next message is as good as ever. */
static void expect_goes_on(struct world *w)
{
	recv_post(&w->b, 100, 0, 0);
	work_post(&w->a, (struct work_row){ .opcode = SEND, .bytes = 100 });
	pump(w);
	expect_good(w, &w->a, HW_CQE_REQ);
	expect_good(w, &w->b, HW_CQE_RECV);
}

Test(uc, without_a_receive_the_message_is_dropped)
{
	static const uint8_t opcodes[] = { SEND, SEND_IMM, WRITE_IMM };

	for (unsigned i = 0; i < sizeof opcodes; i++) {
		struct world *w = uc_new();

		w->bytes_max = LONG;
		fill(&w->a, LONG, 1);
		expect_dropped(w, to_b(w, opcodes[i], LONG), WHY_RECV_MISSING);
		expect_goes_on(w);
	}
}

Test(uc, a_write_that_is_not_allowed_is_dropped)
{
	struct world *w = uc_new();
	struct work_row r = to_b(w, WRITE, LONG);

	fill(&w->a, LONG, 1);
	r.rkey ^= 0x40000000;
	expect_dropped(w, r, WHY_KEY_UNKNOWN);
	expect_goes_on(w);

	w = uc_new();
	r = to_b(w, WRITE, LONG);
	r.remote += WORLD_BYTES - LONG + 1;
	expect_dropped(w, r, WHY_KEY_RANGE);
	expect_goes_on(w);

	w = uc_new();
	w->b.qp->resp->access = 0;
	expect_dropped(w, to_b(w, WRITE, LONG), WHY_QP_RIGHTS);
	expect_goes_on(w);
}

Test(uc, another_mtu_at_the_peer_drops_long_messages)
{
	struct world *w = uc_new();

	w->b.qp->mtu_bytes = 2048;
	expect_dropped(w, to_b(w, WRITE, LONG), WHY_PACKET_LENGTH);
	expect_goes_on(w);
}

static void expect_recv_fails(struct world *w, enum hw_status status, enum why why)
{
	work_post(&w->a, to_b(w, SEND, 200));
	pump(w);
	expect_good(w, &w->a, HW_CQE_REQ);
	expect_status(w, &w->b, status);
	cr_assert_eq(w->b.qp->state, QP_ERR);
	cr_assert_eq(w->a.qp->state, QP_RTS);
	cr_assert(world_has_why(w, why), "reason %s is missing", why_name(why));
}

Test(uc, a_receive_that_can_not_take_the_message_fails_with_its_qp)
{
	struct world *w = uc_new();

	recv_post(&w->b, 199, 0, 0);
	recv_post(&w->b, 4096, 0, 0);
	expect_recv_fails(w, HW_LOC_LEN, WHY_RECV_TOO_SMALL);
	expect_status(w, &w->b, HW_FLUSHED);

	w = uc_new();
	recv_post(&w->b, 4096, 0x12345600, 0);
	expect_recv_fails(w, HW_LOC_PROT_RECV, WHY_KEY_UNKNOWN);

	w = uc_new();
	recv_post(&w->b, 4096, 0, 0);
	w->b.queue[0] = 0x80;
	expect_recv_fails(w, HW_LOC_QP_OP_RECV, WHY_RECV_MALFORMED);
}

Test(uc, a_failed_request_stops_the_send_queue_only)
{
	struct world *w = uc_new();
	struct qp_attr at = { .state = QP_RTS, .cur_state = QP_SQE };

	work_post(&w->a, (struct work_row){ .opcode = SEND, .bytes = 8, .lkey = 0x12345600 });
	work_post(&w->a, (struct work_row){ .opcode = SEND, .bytes = 8, .is_unsignaled = true });
	recv_post(&w->a, 100, 0, 0);
	pump(w);
	expect_status(w, &w->a, HW_LOC_PROT);
	expect_status(w, &w->a, HW_FLUSHED);
	cr_assert_eq(world_cqes(w, &w->a), 0, "the receive was flushed");
	cr_assert_eq(w->a.qp->state, QP_SQE);
	cr_assert_eq(w->packets, 0);

	work_post(&w->b, (struct work_row){ .opcode = SEND, .bytes = 100 });
	pump(w);
	expect_good(w, &w->a, HW_CQE_RECV);
	expect_good(w, &w->b, HW_CQE_REQ);

	work_post(&w->a, (struct work_row){ .opcode = SEND, .bytes = 8 });
	pump(w);
	expect_status(w, &w->a, HW_FLUSHED);

	cr_assert_eq(qp_modify(&w->dev, w->a.qp, &at, A_STATE | A_CUR_STATE), 0);
	expect_goes_on(w);
	cr_assert_eq(w->a.qp->state, QP_RTS);
}

Test(uc, what_uc_does_not_have_fails_at_home)
{
	static const uint8_t opcodes[] = { READ, FADD, 0x11 };

	for (unsigned i = 0; i < sizeof opcodes; i++) {
		struct world *w = uc_new();

		work_post(&w->a, to_b(w, opcodes[i], 8));
		pump(w);
		expect_status(w, &w->a, HW_LOC_QP_OP);
		cr_assert_eq(w->a.qp->state, QP_SQE);
		cr_assert_eq(w->packets, 0);
	}
}

Test(uc, a_key_that_goes_away_in_the_middle_fails_the_rest)
{
	struct world *w = uc_new();
	struct ib_packet p;

	work_post(&w->a, to_b(w, WRITE, LONG));
	tp_doorbell(&w->tp, w->a.qp);
	cr_assert(world_step(w, w->a.qp));
	cr_assert_eq(mr_destroy(&w->dev, w->a.mr), 0);
	cr_assert_not(transport_of(w->a.qp)->request.next(&w->tp, w->a.qp, PART, &p));
	expect_status(w, &w->a, HW_LOC_PROT);
	cr_assert_eq(w->a.qp->state, QP_SQE);
}

Test(uc, foreign_operations_are_dropped)
{
	struct world *w = uc_new();
	struct ib_packet p = { .packet_count = 1, .mtu_bytes = 1024, .psn = 100 };

	for (unsigned op = 0; op < 32; op++) {
		if (op <= RC_WRITE_ONLY_IMM || op == RC_SEND_LAST_INVAL || op == RC_SEND_ONLY_INVAL)
			continue;
		p.opcode = (uint8_t)(IB_UC | op);
		cr_assert(transport_of(w->b.qp)->take(&w->tp, w->b.qp, &p));
		expect_why(w, WHY_OPCODE_UNKNOWN);
		memset(&w->why, 0, sizeof w->why);
	}
	cr_assert_eq(w->b.qp->state, QP_RTS);
	cr_assert_eq(w->seen_count, 0);
}

Test(uc, a_write_must_be_as_long_as_it_said)
{
	struct world *w = uc_new();
	struct ib_packet first = { .opcode = IB_UC | RC_WRITE_FIRST, .packet_count = 1,
		.mtu_bytes = 1024, .psn = 5, .payload_bytes = 1024, .span_count = 1,
		.va = (uintptr_t)w->b.data, .rkey = w->b.mr->key, .dma_bytes = 2048 };
	struct ib_packet last = { .opcode = IB_UC | RC_WRITE_LAST, .packet_count = 1,
		.mtu_bytes = 1024, .psn = 6, .payload_bytes = 1000, .span_count = 1 };
	struct iovec span = { w->a.data, 1024 };

	first.span = last.span = &span;
	transport_of(w->b.qp)->take(&w->tp, w->b.qp, &first);
	cr_assert_eq(w->why.made, 0);
	transport_of(w->b.qp)->take(&w->tp, w->b.qp, &last);
	expect_why(w, WHY_PACKET_LENGTH);
	cr_assert_eq(w->b.qp->state, QP_RTS);
}

Test(uc, an_invalidation_that_can_not_be_fails_the_receive)
{
	struct world *w = uc_new();

	recv_post(&w->b, 100, 0, 0);
	work_post(&w->a, (struct work_row){ .opcode = SEND_INVAL, .bytes = 8, .imm = 0x5500 });
	pump(w);
	expect_good(w, &w->a, HW_CQE_REQ);
	expect_status(w, &w->b, HW_REM_INV_REQ);
	expect_why(w, WHY_INVALIDATE_KEY);
	cr_assert_eq(w->b.qp->state, QP_ERR);
}

/* Packets in any order, with any numbers and lengths: nobody crashes, and nothing outside of the
 * key and the receives changes. */
Test(uc, random_packets_never_hurt)
{
	enum { AT = 4096, ROOM = 8192 };
	struct world *w = uc_new();
	struct emu_mr *mr;
	unsigned seed = 5;

	cr_assert_eq(mr_create(&w->dev, w->pd, (uintptr_t)w->b.data + AT, ROOM,
			       (uintptr_t)w->b.data + AT, KEY_LOCAL_WRITE | KEY_REMOTE_WRITE,
			       &mr), 0);
	memset(w->a.data, 0x55, 65536);
	for (unsigned round = 0; round < 50000; round++) {
		struct iovec span = { w->a.data, 65536 };
		struct ib_packet p = { .opcode = (uint8_t)(IB_UC | rand_r(&seed) % 32),
			.psn = w->b.qp->resp->psn_expected + (rand_r(&seed) % 8 == 0),
			.mtu_bytes = rand_r(&seed) % 16 ? 1024 : (uint32_t)rand_r(&seed) % 2048,
			.payload_bytes = (uint32_t)rand_r(&seed) % 4 * 1024,
			.va = (uintptr_t)w->b.data + (uint32_t)rand_r(&seed) % 16384,
			.rkey = mr->key, .dma_bytes = (uint32_t)rand_r(&seed) % 4096,
			.span = &span, .span_count = 1 };

		if (rand_r(&seed) % 4 == 0)
			p.payload_bytes = (uint32_t)rand_r(&seed) % 4096;
		p.packet_count = p.mtu_bytes ? psn_count_of(p.payload_bytes, p.mtu_bytes) : 1;
		if (round % 3 == 0)
			recv_post(&w->b, (uint32_t)rand_r(&seed) % ROOM, mr->key, AT);
		uc_take(&w->tp, w->b.qp, &p);
		if (w->b.qp->work & QP_WORK_FLUSH)
			tp_flush(&w->tp, w->b.qp);
		w->b.qp->state = QP_RTS;
		w->seen_count = 0;
	}
	for (unsigned i = 0; i < WORLD_BYTES; i++)
		cr_assert(w->b.data[i] == 0 || (i >= AT && i < AT + ROOM), "byte %u", i);
}
