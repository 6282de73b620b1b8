/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RC transport under loss and impatience: retries, NAKs of sequence, RNR, duplicates.
 *
 * Method: the harness loses chosen packets; the test is the clock.
 * Source: IBTA volume 1, 9.7.5 and 9.7.6.
 */
#include "tests/unit/rc_world.h"

enum { SEND = 0x0a, WRITE = 0x08, READ = 0x10, FADD = 0x12 };

static struct work_row to_b(struct world *w, uint8_t opcode, uint32_t bytes, uint32_t offset)
{
	return (struct work_row){ .opcode = opcode, .bytes = bytes, .offset = offset,
		.remote = (uintptr_t)w->b.data + offset, .rkey = w->b.mr->key };
}

static bool loses_all(struct world *w, const struct ib_packet *p)
{
	(void)w;
	(void)p;
	return true;
}

static unsigned lose_number;		/* which packet is lost, counted from 1 */

static bool loses_one(struct world *w, const struct ib_packet *p)
{
	(void)p;
	return w->packets == lose_number;
}

static void fill(struct side *s, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		s->data[i] = (uint8_t)(i * 7 + i / 253);
}

/* Let the ack timer of A expire as often as it takes to finish. */
static void pump_with_timer(struct world *w)
{
	pump(w);
	for (int i = 0; i < 20 && w->a.qp->req.sent_head != w->a.qp->req.sent_tail; i++) {
		rc_timer(&w->tp, w->a.qp);
		pump(w);
	}
}

Test(rc_loss, silence_spends_the_retries)
{
	struct world *w = world_new();

	w->loses = loses_all;
	work_post(&w->a, to_b(w, WRITE, 64, 0));
	work_post(&w->a, to_b(w, WRITE, 64, 0));
	pump(w);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(w->a.qp->state, QP_RTS, "gave up after %d retries of 2", i);
		rc_timer(&w->tp, w->a.qp);
		pump(w);
	}
	cr_assert_eq(world_cqes(w, &w->a), 0);
	rc_timer(&w->tp, w->a.qp);
	pump(w);
	expect_status(w, &w->a, HW_RETRY_EXC);
	expect_status(w, &w->a, HW_FLUSHED);
	expect_why(w, WHY_RETRIES_SPENT);
}

/* Any single packet of a mixed batch may be lost, and everything still happens exactly once. */
Test(rc_loss, any_one_packet_may_be_lost)
{
	unsigned packets = 1000;

	for (lose_number = 1; lose_number <= packets; lose_number++) {
		struct world *w = world_new();
		uint64_t sum, one = 1;

		w->bytes_max = 4096;
		w->loses = loses_one;
		recv_post(&w->b, 20000, 0, 600000);
		fill(&w->a, 9000);
		memset(w->b.data + 500000, 3, 9000);
		memcpy(w->b.data + 400000, &one, 8);
		work_post(&w->a, to_b(w, WRITE, 9000, 0));
		work_post(&w->a, to_b(w, FADD, 8, 400000));
		w->a.data[400000] = 0;
		side_block(&w->a, 1)[47] = 0;
		work_post(&w->a, to_b(w, READ, 9000, 500000));
		work_post(&w->a, to_b(w, SEND, 9000, 0));
		pump_with_timer(w);
		for (uint16_t i = 0; i < 4; i++) {
			struct hw_cqe c = world_cqe(w, &w->a);

			cr_assert_eq(c.kind, HW_CQE_REQ, "lost %u: syndrome %#x", lose_number,
				     c.syndrome);
			cr_assert_eq(c.wqe_counter, i);
		}
		cr_assert_eq(world_cqes(w, &w->a), 0);
		expect_good(w, &w->b, HW_CQE_RECV);
		cr_assert_eq(world_cqes(w, &w->b), 0);
		cr_assert(!memcmp(w->b.data, w->a.data, 9000));
		cr_assert(!memcmp(w->b.data + 600000, w->a.data, 9000));
		cr_assert(!memcmp(w->b.data + 500000, w->a.data + 500000, 9000));
		memcpy(&sum, w->b.data + 400000, 8);
		cr_assert_eq(sum, 1, "a repeated atomic was executed again");
		if (lose_number == 1)
			packets = w->packets;
	}
}

Test(rc_loss, a_gap_is_told_once)
{
	struct world *w = world_new();
	struct ib_packet p, answer;

	for (int i = 0; i < 3; i++)
		work_post(&w->a, to_b(w, WRITE, 64, 0));
	tp_doorbell(&w->tp, w->a.qp);
	cr_assert(rc_req_next(&w->tp, w->a.qp, 4096, &p));
	rc_req_sent(&w->tp, w->a.qp, &p);		/* the first one is lost */
	for (int i = 0; i < 2; i++) {
		cr_assert(rc_req_next(&w->tp, w->a.qp, 4096, &p));
		rc_take(&w->tp, w->b.qp, &p);
		rc_req_sent(&w->tp, w->a.qp, &p);
		cr_assert_eq(rc_resp_next(&w->tp, w->b.qp, 4096, &answer), i == 0);
		if (i == 0) {
			cr_assert_eq(answer.aeth_syndrome, AETH_NAK_SEQUENCE);
			cr_assert_eq(answer.psn, 100);
			rc_resp_sent(&w->tp, w->b.qp, &answer);
		}
	}
	answer = (struct ib_packet){ .opcode = RC_ACKNOWLEDGE, .psn = 100,
		.aeth_syndrome = AETH_NAK_SEQUENCE };
	rc_take(&w->tp, w->a.qp, &answer);
	pump(w);
	for (int i = 0; i < 3; i++)
		expect_good(w, &w->a, HW_CQE_REQ);
	expect_why(w, WHY_PSN_AHEAD);
}

Test(rc_loss, receiver_not_ready_waits_then_gives_up)
{
	struct world *w = world_new();

	work_post(&w->a, to_b(w, SEND, 64, 0));
	pump(w);
	cr_assert(w->a.qp->req.is_waiting_rnr);
	cr_assert_eq(rc_timer_ns(w->a.qp), 640000, "code 12 is 0.64 ms");
	rc_timer(&w->tp, w->a.qp);
	pump(w);
	expect_status(w, &w->a, HW_RNR_RETRY_EXC);
	cr_assert_eq(w->b.qp->state, QP_RTS);
	expect_why(w, WHY_RECV_MISSING);
	expect_why(w, WHY_RNR_RETRIES_SPENT);
}

Test(rc_loss, receiver_that_becomes_ready_gets_the_message)
{
	struct world *w = world_new();

	w->a.qp->attr.rnr_retry = 7;
	work_post(&w->a, to_b(w, SEND, 5000, 0));
	fill(&w->a, 5000);
	for (int i = 0; i < 20; i++) {
		pump(w);
		cr_assert(w->a.qp->req.is_waiting_rnr);
		rc_timer(&w->tp, w->a.qp);
	}
	recv_post(&w->b, 5000, 0, 70000);
	pump(w);
	expect_good(w, &w->a, HW_CQE_REQ);
	expect_good(w, &w->b, HW_CQE_RECV);
	cr_assert(!memcmp(w->a.data, w->b.data + 70000, 5000));
}

/* The answer of B, held back by a wire that is slow. */
static struct ib_packet answer_of_b(struct world *w)
{
	struct ib_packet answer;

	cr_assert(rc_resp_next(&w->tp, w->b.qp, 4096, &answer));
	rc_resp_sent(&w->tp, w->b.qp, &answer);
	return answer;
}

static struct ib_packet send_of_a(struct world *w)
{
	struct ib_packet p;

	cr_assert(rc_req_next(&w->tp, w->a.qp, 4096, &p));
	rc_take(&w->tp, w->b.qp, &p);
	rc_req_sent(&w->tp, w->a.qp, &p);
	return answer_of_b(w);
}

/* Found by f_packet: the sender waited for ever, with nothing outstanding and no timer. */
Test(rc_loss, an_acknowledgement_ends_the_wait_for_a_receiver)
{
	struct world *w = world_new();
	struct ib_packet nak, ack;

	work_post(&w->a, to_b(w, SEND, 8, 0));
	tp_doorbell(&w->tp, w->a.qp);
	nak = send_of_a(w);
	cr_assert_eq(nak.aeth_syndrome >> 5, AETH_RNR_NAK >> 5);
	recv_post(&w->b, 64, 0, 0);
	rc_timer(&w->tp, w->a.qp);		/* the NAK is late: the ack timer comes first */
	ack = send_of_a(w);
	cr_assert_eq(ack.aeth_syndrome >> 5, 0);
	rc_take(&w->tp, w->a.qp, &nak);
	cr_assert(w->a.qp->req.is_waiting_rnr);
	rc_take(&w->tp, w->a.qp, &ack);
	expect_good(w, &w->a, HW_CQE_REQ);
	work_post(&w->a, to_b(w, WRITE, 8, 0));
	pump(w);
	expect_good(w, &w->a, HW_CQE_REQ);
}

/*
 * The first answers are late: the requester asks again, then they come, and it goes on.  Its
 * next READ meets a responder that is still repeating the old ones.
 */
Test(rc_loss, a_repeated_read_takes_no_room_from_a_new_one)
{
	struct world *w = world_new();
	unsigned limit = w->b.qp->resp->resource_limit;
	struct ib_packet answer[RC_RESOURCES_MAX], p;

	for (unsigned i = 0; i < limit; i++)
		work_post(&w->a, to_b(w, READ, 8, 0));
	tp_doorbell(&w->tp, w->a.qp);
	for (unsigned i = 0; i < limit; i++)
		answer[i] = send_of_a(w);
	rc_timer(&w->tp, w->a.qp);
	for (unsigned i = 0; i < limit; i++) {
		cr_assert(rc_req_next(&w->tp, w->a.qp, 4096, &p));
		rc_take(&w->tp, w->b.qp, &p);
		rc_req_sent(&w->tp, w->a.qp, &p);
	}
	for (unsigned i = 0; i < limit; i++) {
		rc_take(&w->tp, w->a.qp, &answer[i]);
		expect_good(w, &w->a, HW_CQE_REQ);
	}
	work_post(&w->a, to_b(w, READ, 8, 0));
	pump(w);
	expect_good(w, &w->a, HW_CQE_REQ);
	cr_assert_eq(w->b.qp->state, QP_RTS);
}

Test(rc_loss, peer_behind_in_psn_is_asked_until_retries_end)
{
	struct world *w = world_new();

	w->b.qp->resp->psn_expected = 95;
	work_post(&w->a, to_b(w, WRITE, 64, 0));
	pump_with_timer(w);
	expect_status(w, &w->a, HW_RETRY_EXC);
}

Test(rc_loss, peer_ahead_in_psn_stays_silent_about_data)
{
	struct world *w = world_new();

	w->b.qp->resp->psn_expected = 105;
	memset(w->a.data, 9, 64);
	work_post(&w->a, to_b(w, WRITE, 64, 0));
	pump_with_timer(w);
	expect_status(w, &w->a, HW_RETRY_EXC);
	cr_assert_eq(w->b.data[0], 0);
	expect_why(w, WHY_ACK_UNEXPECTED);
}

Test(rc_loss, timer_lengths_follow_the_code)
{
	struct world *w = world_new();

	cr_assert_eq(rc_timer_ns(w->a.qp), UINT64_C(4096) << 14);
	w->a.qp->attr.timeout = 0;
	cr_assert_eq(rc_timer_ns(w->a.qp), UINT64_MAX, "0 waits for ever");
	w->a.qp->req.is_waiting_rnr = true;
	w->a.qp->req.rnr_code = 0;
	cr_assert_eq(rc_timer_ns(w->a.qp), UINT64_C(655360000));
	w->a.qp->req.rnr_code = 31;
	cr_assert_eq(rc_timer_ns(w->a.qp), UINT64_C(491520000));
}

/* --- packets that no good peer sends --- */

static void inject(struct world *w, struct ib_packet p)
{
	p.src_qpn = w->a.qp->qpn;
	p.dest_qpn = w->b.qp->qpn;
	p.pkey = 0xffff;
	if (!p.mtu_bytes)
		p.mtu_bytes = 1024;
	if (!p.packet_count)
		p.packet_count = 1;
	rc_take(&w->tp, w->b.qp, &p);
}

static uint8_t answer_syndrome(struct world *w)
{
	struct ib_packet p;

	cr_assert(rc_resp_next(&w->tp, w->b.qp, 4096, &p), "no answer");
	rc_resp_sent(&w->tp, w->b.qp, &p);
	return p.aeth_syndrome;
}

static const struct bad_packet {
	struct ib_packet p;
	enum why why;
} bad_packets[] = {
	{ { .opcode = RC_SEND_MIDDLE, .psn = 100 }, WHY_OPCODE_SEQUENCE },
	{ { .opcode = RC_WRITE_LAST, .psn = 100 }, WHY_OPCODE_SEQUENCE },
	{ { .opcode = 0x1d, .psn = 100 }, WHY_OPCODE_UNKNOWN },
	{ { .opcode = RC_MASKED_FETCH_ADD, .psn = 100, .dma_bytes = 8 }, WHY_PACKET_LENGTH },
	{ { .opcode = RC_MASKED_FETCH_ADD, .psn = 100, .dma_bytes = 5, .payload_bytes = 16 },
	  WHY_PACKET_LENGTH },
	{ { .opcode = RC_MASKED_COMPARE_SWAP, .psn = 100, .dma_bytes = 8, .payload_bytes = 17 },
	  WHY_PACKET_LENGTH },
	{ { .opcode = RC_WRITE_ONLY, .psn = 100, .dma_bytes = 64 }, WHY_PACKET_LENGTH },
	{ { .opcode = RC_WRITE_FIRST, .psn = 100, .dma_bytes = 64 }, WHY_PACKET_LENGTH },
	{ { .opcode = RC_WRITE_ONLY, .psn = 100, .packet_count = 0x7fffffff }, WHY_PACKET_LENGTH },
	{ { .opcode = RC_WRITE_FIRST, .psn = 100, .mtu_bytes = 256, .payload_bytes = 256,
	    .dma_bytes = 512 }, WHY_PACKET_LENGTH },
	{ { .opcode = RC_READ_REQUEST, .psn = 100, .dma_bytes = 0xffffffff }, WHY_PACKET_LENGTH },
};

Test(rc_loss, packets_out_of_shape_are_refused)
{
	for (size_t i = 0; i < sizeof bad_packets / sizeof *bad_packets; i++) {
		struct world *w = world_new();

		inject(w, bad_packets[i].p);
		cr_assert_eq(answer_syndrome(w), AETH_NAK_INVALID_REQUEST, "row %zu", i);
		cr_assert_eq(w->b.qp->state, QP_ERR);
		cr_assert(world_has_why(w, bad_packets[i].why), "row %zu", i);
	}
}

Test(rc_loss, a_duplicate_too_old_is_dropped)
{
	struct world *w = world_new();
	struct ib_packet p;

	inject(w, (struct ib_packet){ .opcode = RC_FETCH_ADD, .psn = 50 });
	cr_assert_not(rc_resp_next(&w->tp, w->b.qp, 4096, &p));
	cr_assert_eq(w->b.qp->state, QP_RTS);
	expect_why(w, WHY_PSN_STALE);
}

Test(rc_loss, a_read_answer_that_does_not_fit_is_a_bad_response)
{
	struct world *w = world_new();
	struct ib_packet p;

	work_post(&w->a, to_b(w, READ, 2048, 0));
	tp_doorbell(&w->tp, w->a.qp);
	cr_assert(rc_req_next(&w->tp, w->a.qp, 4096, &p));
	rc_req_sent(&w->tp, w->a.qp, &p);
	rc_take(&w->tp, w->a.qp, &(struct ib_packet){ .opcode = RC_READ_RESPONSE_ONLY, .psn = 100,
		.packet_count = 1, .mtu_bytes = 1024 });
	expect_status(w, &w->a, HW_BAD_RESP);
	expect_why(w, WHY_RESPONSE_BAD);
}

/* Found by f_packet: it was believed, and acknowledged what had never been sent. */
Test(rc_loss, an_atomic_answer_for_many_packets_is_a_bad_response)
{
	struct world *w = world_new();
	struct ib_packet p;

	work_post(&w->a, to_b(w, FADD, 8, 0));
	tp_doorbell(&w->tp, w->a.qp);
	cr_assert(rc_req_next(&w->tp, w->a.qp, 4096, &p));
	rc_req_sent(&w->tp, w->a.qp, &p);
	rc_take(&w->tp, w->a.qp, &(struct ib_packet){ .opcode = RC_ATOMIC_ACKNOWLEDGE, .psn = 100,
		.packet_count = 1000, .mtu_bytes = 1024 });
	expect_status(w, &w->a, HW_BAD_RESP);
	expect_why(w, WHY_RESPONSE_BAD);
	cr_assert_eq(w->a.qp->req.psn_una, 100);
}
