/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC requests for receive queues of other processes: emu/transport/xrc_relay.c, xrc_guest.c and
 * emu/obj/relay.c.
 *
 * Two devices: `near` has initiator and target, `far` the queues.  Packets between target and guest
 * are moved one at a time, may be lost (a process dies) or be anything (it is broken).
 */
#include <sys/mman.h>
#include "emu/obj/relay.h"
#include "emu/transport/resp_local.h"
#include "emu/transport/xrc.h"
#include "tests/unit/xrc_world.h"

enum { PIECE = 16384, LONG = 3 * PIECE };

struct two {
	struct xrc near, far;
	struct emu_qp *target, *guest;
	struct ib_packet outcome;	/* the last one */
	bool is_cut;			/* nothing comes through */
};

static uint64_t now_ns(void)
{
	return 1000;
}

static struct two two_new(void)
{
	struct two t = { .near = xrc_new_of(true) };

	t.far = xrc_new_of(true);
	t.near.w->dev.now_ns = t.far.w->dev.now_ns = now_ns;
	t.near.remote = t.far.w->b.data;
	t.target = t.near.w->b.qp;
	t.near.w->bytes_max = PIECE;
	/* completions of both are seen in the newest world */
	world_current = t.near.w;
	return t;
}

/* What the guest has to say, if anything. */
static bool back(struct two *t)
{
	struct tp *tp = &t->far.w->tp;
	uint8_t room[RELAY_FETCH_MAX];
	struct iovec span = { room, 0 };

	if (!t->guest || !(t->guest->work & QP_WORK_RELAY) ||
	    !xrc_guest_next(tp, t->guest, PIECE, &t->outcome))
		return false;
	span.iov_len = t->outcome.payload_bytes;
	if (mem_copy_spans(&span, 1, 0, t->outcome.span, t->outcome.span_count, 0,
			   t->outcome.payload_bytes) == MEM_SIDE_SRC) {
		xrc_guest_unreadable(tp, t->guest);
		return true;
	}
	xrc_guest_sent(tp, t->guest, &t->outcome);
	t->outcome.span = &span;
	xrc_outcome_take(&t->near.w->tp, t->target, &t->outcome);
	t->outcome.span = NULL;
	return true;
}

/* What the target has to say.  The copies that it keeps outlive the call. */
static bool forth(struct two *t)
{
	struct tp *tp = &t->near.w->tp;
	struct ib_packet p;

	if (!(t->target->work & QP_WORK_RELAY) || !xrc_relay_next(tp, t->target, PIECE, &p))
		return false;
	xrc_relay_sent(tp, t->target, &p);
	if (!t->is_cut)
		t->guest = xrc_guest_take(&t->far.w->tp, &p);
	return true;
}

static void flush(struct two *t)
{
	if (t->target->work & QP_WORK_FLUSH)
		tp_flush(&t->near.w->tp, t->target);
}

static void run(struct two *t)
{
	bool moves = true;

	for (int i = 0; moves; i++) {
		cr_assert_lt(i, 10000, "packets never end");
		pump(t->near.w);
		moves = forth(t);
		moves |= back(t);
		flush(t);
		moves |= t->target->work & (QP_WORK_RELAY | QP_WORK_RESPOND);
	}
}

/* The first piece of a long message has come to the far queue, and the second is on its way. */
static struct two two_in_message(void)
{
	struct two t = two_new();

	post(&t.near, &t.near.one, 0);		/* what was before is not mistaken for it */
	request(&t.near, SEND, t.near.one.srq->srqn, 64, 0);
	run(&t);
	expect_good(t.near.w, &t.near.w->a, HW_CQE_REQ);
	post(&t.far, &t.far.one, 0);
	request(&t.near, SEND, t.far.one.srq->srqn, LONG, 0);
	t.near.w->bytes_max = 1024;
	tp_doorbell(&t.near.w->tp, t.near.w->a.qp);
	cr_assert(world_step(t.near.w, t.near.w->a.qp));
	cr_assert(forth(&t));
	cr_assert(back(&t));
	cr_assert(t.target->relay->may_hold);
	cr_assert(t.guest->answers.is_holding);
	return t;
}

static struct hw_cqe far_cqe(struct two *t)
{
	struct side guest = { .qp = t->guest };

	return world_cqe(t->near.w, &guest);
}

static unsigned far_cqes(struct two *t)
{
	struct side guest = { .qp = t->guest };

	return t->guest ? world_cqes(t->near.w, &guest) : 0;
}

static bool far_has_why(const struct two *t, enum why why)
{
	return world_has_why(t->far.w, why);
}

/* --- as it should be --- */

Test(xrc_relay, a_message_ends_at_the_far_queue)
{
	struct two t = two_new();
	struct hw_cqe c;

	post(&t.far, &t.far.one, 0);
	memset(t.near.w->a.data, 0xaa, 64);
	request(&t.near, SEND, t.far.one.srq->srqn, 64, 0);
	run(&t);
	expect_good(t.near.w, &t.near.w->a, HW_CQE_REQ);
	c = far_cqe(&t);
	cr_expect_eq(c.kind, HW_CQE_RECV);
	cr_expect_eq(c.src_qpn, t.far.one.srq->srqn);
	cr_expect_eq(t.guest->qpn, t.target->qpn);
	cr_expect_eq(t.far.w->b.data[63], 0xaa);
	cr_expect_null(t.target->srq);
	cr_expect_not(relay_is_busy(t.target));
	cr_expect_eq(t.target->relay->bytes, 0);
}

Test(xrc_relay, near_and_far_in_turn)
{
	struct two t = two_new();

	for (int i = 0; i < 3; i++) {
		post(&t.far, &t.far.one, 0);
		post(&t.near, &t.near.one, 0);
		request(&t.near, SEND, t.far.one.srq->srqn, 64, 0);
		request(&t.near, SEND, t.near.one.srq->srqn, 64, 0);
	}
	run(&t);
	for (uint16_t i = 0; i < 3; i++) {
		expect_receive(&t.near, &t.near.one, i);
		cr_expect_eq(far_cqe(&t).wqe_counter, i);
	}
	for (int i = 0; i < 6; i++)
		expect_good(t.near.w, &t.near.w->a, HW_CQE_REQ);
}

Test(xrc_relay, all_operations)
{
	struct two t = two_new();
	uint32_t key = t.far.w->b.mr->key, srqn = t.far.one.srq->srqn;
	uint64_t *counter = (uint64_t *)t.far.w->b.data;

	post(&t.far, &t.far.one, 0);
	memset(t.near.w->a.data, 0x55, LONG);
	request(&t.near, WRITE, srqn, LONG, key);
	request(&t.near, WRITE_IMM, srqn, 8, key);
	run(&t);
	cr_expect_eq(t.far.w->b.data[LONG - 1], 0x55);
	*counter = 100;
	memset(t.near.w->a.data, 0, LONG);
	request(&t.near, READ, srqn, LONG, key);
	run(&t);
	cr_expect_eq(*(uint64_t *)t.near.w->a.data, 100);
	cr_expect_eq(t.near.w->a.data[LONG - 1], 0x55);
	request(&t.near, FADD, srqn, 8, key);
	run(&t);
	cr_expect_eq(*counter, 105);
	cr_expect_eq(*(uint64_t *)t.near.w->a.data, 100);
	for (int i = 0; i < 4; i++)
		expect_good(t.near.w, &t.near.w->a, HW_CQE_REQ);
	cr_expect_eq(far_cqe(&t).kind, HW_CQE_RECV_WRITE_IMM);
}

static bool loses_answers(struct world *w, const struct ib_packet *p)
{
	(void)w;
	return ib_is_answer(p->opcode);
}

/* A repeated READ is answered from memory again, an atomic from what was remembered. */
Test(xrc_relay, duplicates)
{
	struct two t = two_new();
	uint32_t key = t.far.w->b.mr->key, srqn = t.far.one.srq->srqn;

	*(uint64_t *)t.far.w->b.data = 7;
	post(&t.far, &t.far.one, 0);
	request(&t.near, READ, srqn, PIECE + 8, key);
	request(&t.near, SEND, srqn, 8, key);
	request(&t.near, FADD, srqn, 8, key);
	t.near.w->loses = loses_answers;
	run(&t);
	cr_expect_eq(*(uint64_t *)t.far.w->b.data, 5, "the SEND came between");
	t.near.w->loses = NULL;
	rc_timer(&t.near.w->tp, t.near.w->a.qp);
	run(&t);
	for (int i = 0; i < 3; i++)
		expect_good(t.near.w, &t.near.w->a, HW_CQE_REQ);
	cr_expect_eq(far_cqe(&t).kind, HW_CQE_RECV);
	cr_expect_eq(far_cqes(&t), 0, "received once");
	cr_expect_eq(*(uint64_t *)t.far.w->b.data, 5, "added once");
}

Test(xrc_relay, a_repeated_read_reads_again)
{
	struct two t = two_new();

	t.far.w->b.data[0] = 1;
	request(&t.near, READ, t.far.one.srq->srqn, 8, t.far.w->b.mr->key);
	t.near.w->loses = loses_answers;
	run(&t);
	t.far.w->b.data[0] = 2;
	t.near.w->loses = NULL;
	rc_timer(&t.near.w->tp, t.near.w->a.qp);
	run(&t);
	expect_good(t.near.w, &t.near.w->a, HW_CQE_REQ);
	cr_expect_eq(t.near.w->a.data[0], 2);
}

/* --- refusals --- */

static const struct row {
	const char *name;
	uint8_t opcode;
	uint32_t srqn_flip, key_flip;
	bool has_receive;
	enum hw_status status;
	enum why why;			/* at the far end */
} rows[] = {
	{ "unknown number", SEND, 0x100, 0, true, HW_REM_ACCESS, WHY_XRC_SRQ },
	{ "bad key", WRITE, 0, 0x5a00, true, HW_REM_ACCESS, WHY_KEY_UNKNOWN },
	{ "bad key of a READ", READ, 0, 0x5a00, true, HW_REM_ACCESS, WHY_KEY_UNKNOWN },
	{ "bad key of an atomic", FADD, 0, 0x5a00, true, HW_REM_ACCESS, WHY_KEY_UNKNOWN },
};

Test(xrc_relay, refusals)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *x = &rows[i];
		struct two t = two_new();

		post(&t.far, &t.far.one, 0);
		request(&t.near, x->opcode, t.far.one.srq->srqn ^ x->srqn_flip, 8,
			t.far.w->b.mr->key ^ x->key_flip);
		run(&t);
		expect_status(t.near.w, &t.near.w->a, x->status);
		cr_expect(far_has_why(&t, x->why), "%s", x->name);
		cr_expect_eq(t.target->state, QP_ERR, "%s", x->name);
		cr_expect_eq(event_of(&t.near), EVENT_QP_ACCESS_ERR, "%s", x->name);
		cr_expect_eq(event_of(&t.near), EVENT_QP_LAST_WQE, "%s", x->name);
		cr_expect_eq(far_cqes(&t), 0, "%s", x->name);
	}
}

Test(xrc_relay, no_receive_is_told_with_the_targets_timer)
{
	struct two t = two_new();

	request(&t.near, SEND, t.far.one.srq->srqn, 8, 0);
	tp_doorbell(&t.near.w->tp, t.near.w->a.qp);
	world_step(t.near.w, t.near.w->a.qp);
	forth(&t);
	back(&t);
	cr_expect_eq(t.target->answers.ack_syndrome, AETH_RNR_NAK | 12);
	cr_expect_eq(t.target->resp->psn_expected, 100);
	cr_expect_eq(t.target->state, QP_RTS);
	cr_expect(far_has_why(&t, WHY_RECV_MISSING));
}

/* A number of another process's block is not asked for if nobody else can have the domain. */
Test(xrc_relay, a_domain_of_one_process_is_not_asked_about)
{
	struct xrc x = xrc_new_of(false);

	request(&x, SEND, 0x700001, 8, 0);
	pump(x.w);
	expect_status(x.w, &x.w->a, HW_REM_ACCESS);
	cr_expect_null(x.w->b.qp->relay);
}

Test(xrc_relay, no_process_has_the_queue)
{
	struct two t = two_new();
	struct ib_packet p;

	request(&t.near, SEND, 0x700001, 8, 0);
	request(&t.near, SEND, t.near.one.srq->srqn, 8, 0);
	pump(t.near.w);
	cr_assert_eq(xrc_relay_next(&t.near.w->tp, t.target, PIECE, &p), 1);
	xrc_relay_lost(&t.near.w->tp, t.target, &p);
	flush(&t);
	run(&t);
	expect_status(t.near.w, &t.near.w->a, HW_REM_ACCESS);
	expect_status(t.near.w, &t.near.w->a, HW_FLUSHED);
	expect_why(t.near.w, WHY_XRC_SRQ);
}

Test(xrc_relay, a_key_that_goes_before_the_answer_does)
{
	struct two t = two_new();

	request(&t.near, READ, t.far.one.srq->srqn, LONG, t.far.w->b.mr->key);
	pump(t.near.w);
	forth(&t);
	back(&t);			/* permitted */
	cr_assert_eq(mr_destroy(&t.far.w->dev, t.far.w->b.mr), 0);
	run(&t);
	expect_status(t.near.w, &t.near.w->a, HW_REM_ACCESS);
	cr_expect_eq(t.target->state, QP_ERR);
	cr_expect(far_has_why(&t, WHY_KEY_UNKNOWN));
}

Test(xrc_relay, memory_that_goes_before_the_answer_does)
{
	struct two t = two_new();
	void *at = mmap(NULL, LONG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct emu_mr *mr;

	cr_assert_eq(mr_create(&t.far.w->dev, t.far.w->pd, (uintptr_t)at, LONG, (uintptr_t)at,
			       KEY_REMOTE_READ, &mr), 0);
	t.near.remote = at;
	request(&t.near, READ, t.far.one.srq->srqn, LONG, mr->key);
	pump(t.near.w);
	forth(&t);
	back(&t);
	munmap(at, LONG);
	run(&t);
	expect_status(t.near.w, &t.near.w->a, HW_REM_ACCESS);
	cr_expect(far_has_why(&t, WHY_MEMORY_GONE));
}

/* --- within a message --- */

Test(xrc_relay, the_target_fails_and_the_receive_is_flushed)
{
	struct two t = two_in_message();
	struct qp_attr err = { .state = QP_ERR };

	cr_assert_eq(qp_modify(&t.near.w->dev, t.target, &err, A_STATE), 0);
	flush(&t);
	cr_assert(forth(&t));
	cr_expect_eq(far_cqe(&t).syndrome, hw_syndromes[HW_FLUSHED].syndrome);
	cr_expect_not(t.guest->answers.is_holding);
	cr_expect_not(forth(&t), "told once");
	cr_expect_eq(event_of(&t.near), EVENT_QP_LAST_WQE);
}

/* As in one process: a receive that a QP holds when it is reset is never completed. */
Test(xrc_relay, the_target_is_reset_and_begins_anew)
{
	struct two t = two_in_message();
	struct qp_attr reset = { .state = QP_RESET };

	cr_assert_eq(qp_modify(&t.near.w->dev, t.target, &reset, A_STATE), 0);
	cr_assert_eq(qp_modify(&t.near.w->dev, t.near.w->a.qp, &reset, A_STATE), 0);
	cr_expect_not(t.target->relay->may_hold);
	t.near.w->a.posted_blocks = 0;
	t.near.w->a.record[1] = 0;
	qp_connect(&t.near, &t.near.w->a, t.target->qpn);
	qp_connect(&t.near, &t.near.w->b, t.near.w->a.qp->qpn);
	post(&t.far, &t.far.one, 0);
	request(&t.near, SEND, t.far.one.srq->srqn, 64, 0);
	run(&t);
	expect_good(t.near.w, &t.near.w->a, HW_CQE_REQ);
	cr_expect_eq(far_cqe(&t).wqe_counter, 1);
	cr_expect_eq(far_cqes(&t), 0);
	cr_expect_eq(t.far.one.srq->is_held[0], 0);
}

Test(xrc_relay, a_message_stays_in_its_queue)
{
	static const bool goes_far[] = { false, true };

	for (int i = 0; i < 2; i++) {
		struct two t = two_in_message();
		struct ib_packet p;

		cr_assert_eq(transport_of(t.near.w->a.qp)->request.next(
			&t.near.w->tp, t.near.w->a.qp, 1024, &p), 1);
		p.extra.srqn = goes_far[i] ? t.far.two.srq->srqn : t.near.one.srq->srqn;
		xrc_target_take(&t.near.w->tp, t.target, &p);
		run(&t);
		cr_expect_eq(t.target->state, QP_ERR, "%d", i);
		expect_status(t.near.w, &t.near.w->a, HW_REM_INV_REQ);
		expect_why(t.near.w, WHY_OPCODE_SEQUENCE);
	}
}

Test(xrc_relay, the_queue_is_destroyed_within_a_message)
{
	struct two t = two_in_message();
	uint32_t events;

	cr_assert_eq(srq_destroy(&t.far.w->dev, t.far.one.srq, &events), 0);
	cr_expect_null(t.guest->srq);
	run(&t);
	expect_status(t.near.w, &t.near.w->a, HW_REM_ACCESS);
	cr_expect_eq(far_cqes(&t), 0);
}

/* --- death and broken peers --- */

Test(xrc_relay, who_waits_for_the_dead_is_told)
{
	struct two t = two_new();

	post(&t.far, &t.far.one, 0);
	t.is_cut = true;
	request(&t.near, SEND, t.far.one.srq->srqn, 64, 0);
	pump(t.near.w);
	cr_assert(forth(&t));
	cr_expect_not(forth(&t), "one at a time");
	cr_expect_eq(xrc_relay_awaits(t.target), t.far.one.srq->srqn);
	xrc_relay_lost(&t.near.w->tp, t.target, NULL);
	cr_expect_eq(xrc_relay_awaits(t.target), 0);
	flush(&t);
	run(&t);
	expect_status(t.near.w, &t.near.w->a, HW_REM_ACCESS);
}

Test(xrc_relay, who_waits_for_data_of_the_dead_is_told)
{
	struct two t = two_new();

	request(&t.near, READ, t.far.one.srq->srqn, LONG, t.far.w->b.mr->key);
	pump(t.near.w);
	forth(&t);
	back(&t);
	t.is_cut = true;
	pump(t.near.w);
	cr_assert(forth(&t), "a piece is asked for");
	cr_expect_eq(xrc_relay_awaits(t.target), t.far.one.srq->srqn);
	xrc_relay_lost(&t.near.w->tp, t.target, NULL);
	cr_expect_eq(xrc_relay_awaits(t.target), 0);
	run(&t);
	expect_status(t.near.w, &t.near.w->a, HW_REM_ACCESS);
}

/* The process ends between two pieces. */
Test(xrc_relay, a_piece_that_nobody_has)
{
	struct two t = two_new();
	struct ib_packet p;

	request(&t.near, READ, t.far.one.srq->srqn, LONG, t.far.w->b.mr->key);
	pump(t.near.w);
	cr_assert(forth(&t) && back(&t));
	pump(t.near.w);
	cr_assert(forth(&t) && back(&t));
	pump(t.near.w);
	cr_assert_eq(xrc_relay_next(&t.near.w->tp, t.target, PIECE, &p), 1);
	cr_assert_eq(p.opcode, IB_RELAY | RELAY_FETCH);
	xrc_relay_lost(&t.near.w->tp, t.target, &p);
	run(&t);
	expect_status(t.near.w, &t.near.w->a, HW_REM_ACCESS);
}

static struct ib_packet outcome_of(const struct two *t, uint32_t imm)
{
	return (struct ib_packet){ .opcode = IB_RELAY | RC_ACKNOWLEDGE, .imm = imm,
		.psn = t->target->relay->head->p.psn, .dest_qpn = t->target->qpn,
		.packet_count = 1, .extra.relay_turn = t->target->relay->turn };
}

Test(xrc_relay, outcomes_that_nobody_waits_for_are_dropped)
{
	struct two t = two_new();
	struct ib_packet p;

	t.is_cut = true;
	request(&t.near, SEND, t.far.one.srq->srqn, 64, 0);
	pump(t.near.w);
	p = (struct ib_packet){ .opcode = IB_RELAY | RC_ACKNOWLEDGE, .psn = 100 };
	xrc_outcome_take(&t.near.w->tp, t.target, &p);	/* nothing is out yet */
	xrc_outcome_take(&t.near.w->tp, t.near.w->a.qp, &p);	/* not a target */
	cr_assert(forth(&t));
	p = outcome_of(&t, V_DONE);
	p.extra.relay_turn--;
	xrc_outcome_take(&t.near.w->tp, t.target, &p);
	p = outcome_of(&t, V_DONE);
	p.psn++;
	xrc_outcome_take(&t.near.w->tp, t.target, &p);
	cr_expect(relay_is_busy(t.target));
	cr_expect_eq(t.target->resp->psn_expected, 100);
	expect_why(t.near.w, WHY_ACK_UNEXPECTED);
}

/* Verdicts that no guest gives, and fates that there are not. */
Test(xrc_relay, an_outcome_that_means_nothing_ends_the_target)
{
	static const uint32_t imms[] = { V_NEXT, V_DUPLICATE, V_UNREADABLE, V_NAK_SEQUENCE,
					 V_ELSEWHERE, VERDICT_COUNT, 0xff,
					 V_DONE | FATE_COUNT << 8, UINT32_MAX };

	for (size_t i = 0; i < sizeof imms / sizeof *imms; i++) {
		struct two t = two_new();
		struct ib_packet p;

		t.is_cut = true;
		request(&t.near, SEND, t.far.one.srq->srqn, 64, 0);
		pump(t.near.w);
		cr_assert(forth(&t));
		p = outcome_of(&t, imms[i]);
		xrc_outcome_take(&t.near.w->tp, t.target, &p);
		cr_expect_eq(t.target->state, QP_ERR, "%#x", imms[i]);
		cr_expect_eq(event_of(&t.near), EVENT_QP_FATAL, "%#x", imms[i]);
	}
}

/* Dropped there: the sender will try again, and the next turn has another number. */
Test(xrc_relay, a_request_that_was_dropped_comes_again)
{
	struct two t = two_new();
	struct ib_packet p;

	post(&t.far, &t.far.one, 0);
	t.is_cut = true;
	request(&t.near, SEND, t.far.one.srq->srqn, 64, 0);
	pump(t.near.w);
	cr_assert(forth(&t));
	p = outcome_of(&t, V_DROP);
	xrc_outcome_take(&t.near.w->tp, t.target, &p);
	cr_expect_not(relay_is_busy(t.target));
	t.is_cut = false;
	rc_timer(&t.near.w->tp, t.near.w->a.qp);
	run(&t);
	expect_good(t.near.w, &t.near.w->a, HW_CQE_REQ);
	cr_expect_eq(far_cqe(&t).kind, HW_CQE_RECV);
}

/* No room for a ring just now: as if the network had lost it. */
Test(xrc_relay, what_could_not_be_sent_comes_again)
{
	struct two t = two_new();
	struct ib_packet p;

	post(&t.far, &t.far.one, 0);
	t.far.w->b.data[0] = 3;
	request(&t.near, SEND, t.far.one.srq->srqn, 64, 0);
	pump(t.near.w);
	cr_assert_eq(xrc_relay_next(&t.near.w->tp, t.target, PIECE, &p), 1);
	xrc_relay_dropped(t.target, &p);
	run(&t);
	cr_expect_eq(far_cqes(&t), 0);
	rc_timer(&t.near.w->tp, t.near.w->a.qp);
	run(&t);
	request(&t.near, READ, t.far.one.srq->srqn, 8, t.far.w->b.mr->key);
	pump(t.near.w);
	cr_assert(forth(&t) && back(&t));
	pump(t.near.w);
	cr_assert_eq(xrc_relay_next(&t.near.w->tp, t.target, PIECE, &p), 1);
	cr_assert_eq(p.opcode, IB_RELAY | RELAY_FETCH);
	xrc_relay_dropped(t.target, &p);
	cr_expect_not(t.target->relay->wants_fetch);
	expect_good(t.near.w, &t.near.w->a, HW_CQE_REQ);
	rc_timer(&t.near.w->tp, t.near.w->a.qp);
	run(&t);
	expect_good(t.near.w, &t.near.w->a, HW_CQE_REQ);
	cr_expect_eq(far_cqe(&t).kind, HW_CQE_RECV);
}

/* An answer to a fetch that has another size than was asked for. */
Test(xrc_relay, a_piece_of_another_size_is_no_answer)
{
	struct two t = two_new();
	uint8_t bytes[16] = { 0 };
	struct iovec span = { bytes, sizeof bytes };
	struct ib_packet p;

	request(&t.near, READ, t.far.one.srq->srqn, LONG, t.far.w->b.mr->key);
	pump(t.near.w);
	forth(&t);
	back(&t);
	t.is_cut = true;
	pump(t.near.w);
	cr_assert(forth(&t));
	p = (struct ib_packet){ .opcode = IB_RELAY | RC_READ_RESPONSE_ONLY,
		.psn = t.target->relay->fetch_psn, .payload_bytes = sizeof bytes, .span = &span,
		.span_count = 1, .extra.relay_turn = t.target->relay->fetch_turn };
	xrc_outcome_take(&t.near.w->tp, t.target, &p);
	run(&t);
	expect_status(t.near.w, &t.near.w->a, HW_REM_ACCESS);
}

/* What waits is bounded, and what is lost comes again. */
Test(xrc_relay, too_much_waits)
{
	struct two t = two_new();
	struct ib_packet p = { 0 };
	uint8_t byte = 0;
	struct iovec span = { &byte, 1 };
	unsigned kept = 0;

	p.span = &span;
	while (!relay_keep(t.target, &p))
		cr_assert_leq(++kept, RELAY_BYTES_MAX / sizeof(struct relayed));
	cr_expect_gt(kept, 1000);
	cr_expect(xrc_relay_take(&t.near.w->tp, t.target, &p));
	expect_why(t.near.w, WHY_CMD_LIMIT);
	relay_reset(t.target);
	cr_expect_eq(t.target->relay->bytes, 0);
	cr_expect_eq(relay_keep(t.target, &p), 0);
	p.payload_bytes = 1;
	p.span_count = 1;
	span.iov_base = (void *)8;
	cr_expect_eq(relay_keep(t.target, &p), -EFAULT);
	cr_expect_not(xrc_relay_take(&t.near.w->tp, t.target, &p), "not readable");
}

/* Whatever is asked: no crash, and what it holds in the end is sane. */
Test(xrc_relay, requests_of_a_broken_process)
{
	static uint8_t bytes[4096];
	struct two t = two_new();
	struct iovec span = { bytes, sizeof bytes };
	uint64_t seed = 1;

	for (int i = 0; i < 200000; i++) {
		struct ib_packet p = { .packet_count = 1, .span = &span };
		struct ib_packet out;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		if (i % 16 == 0)
			post(&t.far, &t.far.one, 0);
		p.opcode = IB_RELAY | (seed >> 33 & 31);
		p.payload_bytes = seed >> 40 & 1 ? 0 : seed >> 41 & 0xfff;
		p.span_count = p.payload_bytes != 0;
		p.packet_count = seed >> 53 & 3;
		p.mtu_bytes = seed >> 55 & 1 ? 1024 : (uint32_t)(seed >> 20 & 0xfff);
		p.dest_qpn = seed >> 56 & 1;
		p.rkey = seed >> 57 & 1 ? t.far.w->b.mr->key : 0;
		p.va = (uintptr_t)t.far.w->b.data + (seed >> 20 & 0xff8);
		p.dma_bytes = seed >> 58 & 1 ? p.payload_bytes : (uint32_t)(seed >> 30);
		p.extra.srqn = seed >> 59 & 3 ? t.far.one.srq->srqn : (uint32_t)(seed >> 10);
		p.extra.relay_domain = seed >> 61 & 3 ? t.far.xrcd->domain->name : 0;
		p.extra.relay_mtu_bytes = seed >> 62 & 1 ? 1024 : (uint32_t)(seed >> 12 & 0x1fff);
		t.guest = xrc_guest_take(&t.far.w->tp, &p);
		cr_assert_not_null(t.guest);
		while (xrc_guest_next(&t.far.w->tp, t.guest, PIECE, &out))
			xrc_guest_sent(&t.far.w->tp, t.guest, &out);
		cr_assert(!t.guest->answers.is_holding || t.guest->srq == t.far.one.srq);
		t.near.w->seen_count = 0;
	}
	cr_assert_leq(srq_posted(t.far.one.srq), WQES);
}

/* --- domains --- */

/* Whatever files two emulated hosts share. */
Test(xrc_relay, a_domain_is_of_one_host)
{
	struct two t = two_new();
	uint64_t ours = domain_of(t.near.w, 2)->domain->name;

	cr_expect_eq(domain_of(t.far.w, 2)->domain->name, ours);
	t.far.w->dev.node_guid = 5;
	cr_expect_neq(domain_of(t.far.w, 3)->domain->name,
		      domain_of(t.near.w, 3)->domain->name);
	cr_expect_neq(domain_of(t.near.w, 3)->domain->name, ours);
}

/* --- guests --- */

Test(xrc_relay, guests_are_bounded_and_the_oldest_idle_one_goes)
{
	struct two t = two_in_message();
	struct emu_dev *dev = &t.far.w->dev;
	struct guest *first = guest_of(dev, t.target->qpn);

	cr_assert_eq(&first->qp, t.guest);
	for (uint32_t i = 1; i < GUESTS_MAX; i++)
		cr_assert_not_null(guest_of(dev, 0x200000 + i));
	cr_expect_not_null(guest_of(dev, 0x400000));
	cr_expect_eq(guest_of(dev, t.target->qpn), first, "it holds a receive");
	guests_free(dev);
	cr_expect_null(dev->guests);
}
