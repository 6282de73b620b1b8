/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC below the commands: emu/transport/xrc.c, emu/obj/xrcd.c.
 *
 * Receive queues of other processes: t_xrc_relay.c.
 */
#include "tests/unit/xrc_world.h"

/* --- messages --- */

Test(xrc, a_message_goes_to_the_queue_that_it_names)
{
	struct xrc x = xrc_new();

	for (int i = 0; i < 2; i++) {
		post(&x, &x.one, 0);
		post(&x, &x.two, 0);
	}
	memset(x.w->a.data, 0xaa, 64);
	request(&x, SEND, x.two.srq->srqn, 64, 0);
	request(&x, SEND, x.one.srq->srqn, 64, 0);
	request(&x, SEND, x.two.srq->srqn, 64, 0);
	pump(x.w);
	expect_receive(&x, &x.two, 0);
	expect_receive(&x, &x.one, 0);
	expect_receive(&x, &x.two, 1);
	cr_assert_eq(x.w->b.data[x.two.offset + ROOM + 63], 0xaa);
	cr_assert_eq(x.w->b.data[ROOM], 0);
	for (int i = 0; i < 3; i++)
		expect_good(x.w, &x.w->a, HW_CQE_REQ);
}

Test(xrc, packets_are_of_the_transport_and_name_the_queue)
{
	struct xrc x = xrc_new();
	struct ib_packet p;

	memset(&p, 0xee, sizeof p);
	request(&x, SEND, 0x123456, 3000, 0);
	tp_doorbell(&x.w->tp, x.w->a.qp);
	cr_assert_eq(transport_of(x.w->a.qp)->request.next(&x.w->tp, x.w->a.qp, 1024, &p), 1);
	cr_assert_eq(p.opcode, IB_XRC | RC_SEND_FIRST);
	cr_assert_eq(p.extra.srqn, 0x123456);
	cr_assert_eq(p.extra.dc_key, 0);
	x.w->b.qp->answers.ack_is_due = true;
	x.w->b.qp->work |= QP_WORK_RESPOND;
	memset(&p, 0xee, sizeof p);
	cr_assert_eq(transport_of(x.w->b.qp)->respond.next(&x.w->tp, x.w->b.qp, 1024, &p), 1);
	cr_assert_eq(p.opcode, IB_XRC | RC_ACKNOWLEDGE);
	cr_assert_eq(p.extra.srqn, 0);
}

Test(xrc, long_messages_and_all_operations)
{
	struct xrc x = xrc_new();
	uint64_t *counter = (uint64_t *)x.w->b.data;

	x.w->bytes_max = 1024;
	post(&x, &x.one, 0);
	post(&x, &x.one, 0);
	memset(x.w->a.data, 0x55, ROOM);
	request(&x, SEND, x.one.srq->srqn, ROOM, 0);
	request(&x, WRITE, x.one.srq->srqn, ROOM, x.w->b.mr->key);
	request(&x, WRITE_IMM, x.one.srq->srqn, 8, x.w->b.mr->key);
	request(&x, READ, x.one.srq->srqn, ROOM, x.w->b.mr->key);
	request(&x, FADD, x.one.srq->srqn, 8, x.w->b.mr->key);
	x.w->a.record[1] = htobe32(3);
	pump(x.w);
	*counter = 100;
	x.w->a.record[1] = htobe32(x.w->a.posted_blocks);
	pump(x.w);
	for (int i = 0; i < 5; i++)
		expect_good(x.w, &x.w->a, HW_CQE_REQ);
	expect_receive(&x, &x.one, 0);
	expect_receive(&x, &x.one, 1);
	cr_assert_eq(*counter, 105);
	cr_assert_eq(*(uint64_t *)x.w->a.data, 100);
	cr_assert_eq(x.w->a.data[ROOM - 1], 0x55);
}

/* --- rights: the queue's domain counts, since a target QP has none --- */

Test(xrc, the_queues_protection_domain_judges_all_keys)
{
	static const uint8_t operations[] = { WRITE, WRITE_IMM, READ, FADD };

	for (unsigned i = 0; i < sizeof operations; i++) {
		struct xrc x = xrc_new();
		struct queue foreign;
		struct emu_pd *pd;

		cr_assert_eq(pd_create(&x.w->dev, &pd), 0);
		foreign = queue_new(x.w, pd, x.xrcd, 0);
		post(&x, &x.one, 0);
		post(&x, &foreign, 0);
		request(&x, operations[i], x.one.srq->srqn, 8, x.w->b.mr->key);
		pump(x.w);
		expect_good(x.w, &x.w->a, HW_CQE_REQ);
		request(&x, operations[i], foreign.srq->srqn, 8, x.w->b.mr->key);
		pump(x.w);
		expect_status(x.w, &x.w->a, HW_REM_ACCESS);
		expect_why(x.w, WHY_KEY_PD);
	}
}

Test(xrc, receives_are_judged_by_the_queues_protection_domain)
{
	struct xrc x = xrc_new();
	struct queue foreign;
	struct emu_pd *pd;

	cr_assert_eq(pd_create(&x.w->dev, &pd), 0);
	foreign = queue_new(x.w, pd, x.xrcd, 0);
	post(&x, &foreign, x.w->b.mr->key);
	request(&x, SEND, foreign.srq->srqn, 8, 0);
	pump(x.w);
	expect_status(x.w, &x.w->b, HW_LOC_PROT_RECV);
	expect_status(x.w, &x.w->a, HW_REM_OP);
}

/* --- queues that are not the target's --- */

static void expect_no_queue(struct xrc *x, uint32_t srqn)
{
	request(x, SEND, srqn, 64, 0);
	pump(x->w);
	expect_status(x->w, &x->w->a, HW_REM_ACCESS);
	expect_why(x->w, WHY_XRC_SRQ);
	cr_assert_eq(x->w->b.qp->state, QP_ERR);
	cr_assert_eq(event_of(x), EVENT_QP_ACCESS_ERR);
	cr_assert_eq(event_of(x), EVENT_QP_LAST_WQE);
	cr_assert_eq(event_of(x), NO_EVENT);
}

Test(xrc, an_unknown_number_is_refused)
{
	struct xrc x = xrc_new();

	expect_no_queue(&x, 0xabcdef);
}

Test(xrc, a_basic_queue_is_refused)
{
	struct xrc x = xrc_new();
	struct queue basic = queue_new(x.w, NULL, NULL, 0);

	post(&x, &basic, 0);
	expect_no_queue(&x, basic.srq->srqn);
	cr_assert_eq(basic.srq->taken, 0);
}

Test(xrc, a_queue_of_another_domain_is_refused)
{
	struct xrc x = xrc_new();
	struct queue other = queue_new(x.w, NULL, domain_of(x.w, 2), 0);

	post(&x, &other, 0);
	expect_no_queue(&x, other.srq->srqn);
	cr_assert_eq(other.srq->taken, 0);
}

Test(xrc, one_sided_requests_need_a_queue_too)
{
	struct xrc x = xrc_new();

	request(&x, WRITE, 0xabcdef, 64, x.w->b.mr->key);
	pump(x.w);
	expect_status(x.w, &x.w->a, HW_REM_ACCESS);
}

Test(xrc, an_empty_queue_is_not_ready_and_others_are)
{
	struct xrc x = xrc_new();

	request(&x, SEND, x.one.srq->srqn, 64, 0);
	pump(x.w);
	cr_assert_eq(x.w->last.aeth_syndrome >> 5, 1);
	post(&x, &x.one, 0);
	rc_timer(&x.w->tp, x.w->a.qp);
	pump(x.w);
	expect_receive(&x, &x.one, 0);
}

/* --- in the middle of a message --- */

/* The first packet of a message to @srqn is taken, the second is made. */
static void begin_message(struct xrc *x, uint32_t srqn, struct ib_packet *second)
{
	const struct transport *t = transport_of(x->w->a.qp);
	struct ib_packet p;

	request(x, SEND, srqn, 3000, 0);
	tp_doorbell(&x->w->tp, x->w->a.qp);
	cr_assert_eq(t->request.next(&x->w->tp, x->w->a.qp, 1024, &p), 1);
	cr_assert(transport_of(x->w->b.qp)->take(&x->w->tp, x->w->b.qp, &p));
	t->request.sent(&x->w->tp, x->w->a.qp, &p);
	cr_assert_eq(t->request.next(&x->w->tp, x->w->a.qp, 1024, second), 1);
}

Test(xrc, a_message_does_not_change_its_queue)
{
	struct xrc x = xrc_new();
	struct ib_packet p;

	post(&x, &x.one, 0);
	post(&x, &x.two, 0);
	begin_message(&x, x.one.srq->srqn, &p);
	p.extra.srqn = x.two.srq->srqn;
	cr_assert(transport_of(x.w->b.qp)->take(&x.w->tp, x.w->b.qp, &p));
	cr_assert_eq(x.w->b.qp->answers.ack_syndrome, AETH_NAK_INVALID_REQUEST);
	expect_why(x.w, WHY_OPCODE_SEQUENCE);
	tp_flush(&x.w->tp, x.w->b.qp);
	expect_status(x.w, &x.w->b, HW_FLUSHED);
	cr_assert_eq(x.two.srq->taken, 0);
}

Test(xrc, a_queue_may_go_away_in_the_middle_of_a_message)
{
	struct xrc x = xrc_new();
	struct ib_packet p;
	uint32_t events;

	post(&x, &x.one, 0);
	begin_message(&x, x.one.srq->srqn, &p);
	cr_assert_eq(srq_destroy(&x.w->dev, x.one.srq, &events), 0);
	cr_assert(transport_of(x.w->b.qp)->take(&x.w->tp, x.w->b.qp, &p));
	expect_why(x.w, WHY_XRC_SRQ);
	tp_flush(&x.w->tp, x.w->b.qp);
	cr_assert_eq(world_cqes(x.w, &x.w->b), 0);
	cr_assert_eq(event_of(&x), EVENT_QP_ACCESS_ERR);
	cr_assert_eq(event_of(&x), EVENT_QP_LAST_WQE);
}

Test(xrc, a_target_that_fails_flushes_the_receive_in_use)
{
	struct xrc x = xrc_new();
	struct qp_attr attr = { .state = QP_ERR };
	struct ib_packet p;

	post(&x, &x.one, 0);
	post(&x, &x.one, 0);
	begin_message(&x, x.one.srq->srqn, &p);
	cr_assert_eq(qp_modify(&x.w->dev, x.w->b.qp, &attr, A_STATE), 0);
	for (int i = 0; i < 2; i++)
		tp_flush(&x.w->tp, x.w->b.qp);
	expect_status(x.w, &x.w->b, HW_FLUSHED);
	cr_assert_eq(world_cqes(x.w, &x.w->b), 0);
	cr_assert_eq(srq_posted(x.one.srq), 1);
	cr_assert_eq(event_of(&x), EVENT_QP_LAST_WQE);
	cr_assert_eq(event_of(&x), NO_EVENT);
}

/* --- halves --- */

Test(xrc, each_half_ignores_what_is_for_the_other)
{
	struct xrc x = xrc_new();
	struct ib_packet answer = { .opcode = IB_XRC | RC_ACKNOWLEDGE, .psn = 100,
		.packet_count = 1 };
	struct ib_packet ask = { .opcode = IB_XRC | RC_SEND_ONLY, .psn = 100, .packet_count = 1,
		.mtu_bytes = 1024 };

	cr_assert(transport_of(x.w->b.qp)->take(&x.w->tp, x.w->b.qp, &answer));
	cr_assert(transport_of(x.w->a.qp)->take(&x.w->tp, x.w->a.qp, &ask));
	expect_why(x.w, WHY_PACKET_TRANSPORT);
	cr_assert_eq(x.w->a.qp->work & QP_WORK_RESPOND, 0);
	cr_assert_eq(x.w->a.qp->state, QP_RTS);
	cr_assert_eq(x.w->b.qp->state, QP_RTS);
}

Test(xrc, a_lost_packet_is_sent_again_and_executed_once)
{
	struct xrc x = xrc_new();
	uint64_t *counter = (uint64_t *)x.w->b.data;

	post(&x, &x.one, 0);
	*counter = 1;
	request(&x, FADD, x.one.srq->srqn, 8, x.w->b.mr->key);
	tp_doorbell(&x.w->tp, x.w->a.qp);
	cr_assert(world_step(x.w, x.w->a.qp));
	x.w->b.qp->work = 0;			/* the answer is lost */
	x.w->b.qp->answers.resource_answer = x.w->b.qp->answers.resource_made;
	rc_timer(&x.w->tp, x.w->a.qp);
	pump(x.w);
	expect_good(x.w, &x.w->a, HW_CQE_REQ);
	cr_assert_eq(*counter, 6);
}

/* --- handles of a target QP --- */

Test(xrc, all_openers_hear_of_events_and_the_last_ends_the_qp)
{
	struct xrc x = xrc_new();
	struct qp_open_init init = { x.xrcd, NULL, 2 };
	struct emu_qp_open *second;
	uint32_t events;
	int fd;

	cr_assert_eq(channel_create(EVENT_ASYNC_BYTES, &init.async, &fd), 0);
	cr_assert_eq(qp_open(&x.w->dev, x.w->b.qp, &init, &second), 0);
	cr_assert_eq(x.xrcd->obj.users, 4, "two queues, two handles");
	qp_event(x.w->b.qp, EVENT_COMM_EST);
	cr_assert_eq(event_of(&x), EVENT_COMM_EST);
	cr_assert_eq(event_at(x.w, init.async, fd), EVENT_COMM_EST);
	cr_assert_not(qp_open_close(x.open, &events));
	cr_assert_eq(events, 1);
	qp_event(x.w->b.qp, EVENT_QP_FATAL);
	cr_assert_eq(event_of(&x), NO_EVENT);
	cr_assert_eq(event_at(x.w, init.async, fd), EVENT_QP_FATAL);
	cr_assert(qp_open_close(second, &events));
	cr_assert_eq(events, 2);
	cr_assert_eq(qp_destroy(&x.w->dev, x.w->b.qp, &events), 0);
	cr_assert_eq(x.xrcd->obj.users, 2);
}

Test(xrc, only_target_qps_of_the_domain_can_be_opened)
{
	struct xrc x = xrc_new();
	struct qp_open_init init = { .xrcd = x.xrcd }, other = { .xrcd = domain_of(x.w, 2) };
	struct emu_qp_open *open;

	cr_assert_eq(qp_open(&x.w->dev, NULL, &init, &open), -EINVAL);
	cr_assert_eq(qp_open(&x.w->dev, x.w->a.qp, &init, &open), -EINVAL);
	cr_assert_eq(qp_open(&x.w->dev, x.w->b.qp, &other, &open), -EINVAL);
	cr_assert_eq(x.xrcd->obj.users, 3);
}

/* --- creation: each type has what it stands on and nothing else --- */

Test(xrc, qps_have_the_parts_of_their_type)
{
	struct xrc x = xrc_new();
	uint8_t *memory = world_memory(8192);
	struct qp_init good[] = {
		{ .type = QPT_XRC_INI, .pd = x.w->pd, .send_cq = x.w->cq, .sq_blocks = 64,
		  .buf_addr = (uintptr_t)memory, .db_addr = (uintptr_t)memory + 4096 },
		{ .type = QPT_XRC_TGT, .xrc_domain = x.xrcd->domain },
	};
	struct qp_init bad[] = { good[0], good[0], good[0], good[0], good[1], good[1], good[1] };
	struct emu_qp *qp;
	uint32_t events;

	bad[0].pd = NULL;
	bad[1].recv_cq = x.w->cq;
	bad[2].rq_count = 16;
	bad[2].rq_stride = 64;
	bad[3].xrc_domain = x.xrcd->domain;
	bad[4].xrc_domain = NULL;
	bad[5].send_cq = x.w->cq;
	bad[6].sq_blocks = 64;
	for (unsigned i = 0; i < sizeof good / sizeof *good; i++) {
		cr_assert_eq(qp_create(&x.w->dev, &good[i], &qp), 0);
		cr_assert_eq(qp_destroy(&x.w->dev, qp, &events), 0);
	}
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
		cr_assert_eq(qp_create(&x.w->dev, &bad[i], &qp), -EINVAL, "row %u", i);
}

/* --- domains --- */

Test(xrc, domains_are_found_by_their_file)
{
	static const struct { uint64_t ino; bool creates, is_exclusive; int rc; } rows[] = {
		{ 5, false, false, -EAGAIN },	/* not there */
		{ 5, true, true, 0 },
		{ 5, true, true, -EINVAL },	/* there */
		{ 5, true, false, 0 },
		{ 5, false, false, 0 },
		{ 5, false, true, -EINVAL },
		{ 6, true, false, 0 },
		{ 0, true, false, 0 },		/* of no file: always another one */
		{ 0, true, true, 0 },
		{ 0, false, false, -EINVAL },
	};
	struct world *w = world_new();
	struct emu_xrcd *made[16];
	unsigned count = 0;

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct xrcd_init init = { { rows[i].ino != 0, 1, rows[i].ino }, rows[i].creates,
					  rows[i].is_exclusive };
		int rc = xrcd_open(&w->dev, &init, &made[count]);

		cr_assert_eq(rc, rows[i].rc, "row %u: %d", i, rc);
		count += !rc;
	}
	expect_why(w, WHY_XRCD_OPEN);
	cr_assert_eq(made[0]->domain, made[1]->domain);
	cr_assert_neq(made[0]->domain, made[3]->domain);
	cr_assert_neq(made[4]->domain, made[5]->domain);
	while (count)
		cr_assert_eq(xrcd_close(&w->dev, made[--count]), 0);
	cr_assert_null(w->dev.xrc_domains);
}

Test(xrc, a_domain_in_use_stays)
{
	struct xrc x = xrc_new();

	cr_assert_eq(xrcd_close(&x.w->dev, x.xrcd), -EBUSY);
	expect_why(x.w, WHY_CMD_BUSY);
}

static unsigned held;

static int fake_hold(void *ctx, uint64_t name, bool creates, bool is_exclusive)
{
	cr_assert_neq(name, 0);
	if (is_exclusive || !creates)
		return *(int *)ctx;
	held++;
	return 7;
}

static void fake_drop(void *ctx, int token)
{
	(void)ctx;
	cr_assert_eq(token, 7);
	held--;
}

Test(xrc, the_registry_is_asked_once_a_domain)
{
	struct world *w = world_new();
	struct xrcd_init init = { { true, 1, 5 }, true, false };
	struct xrcd_init exclusive = { { true, 1, 6 }, true, true };
	struct emu_xrcd *a, *b, *none;
	int refusal = -EINVAL;

	w->dev.xrc_registry = (struct xrc_registry){ fake_hold, fake_drop, &refusal };
	cr_assert_eq(xrcd_open(&w->dev, &init, &a), 0);
	cr_assert_eq(xrcd_open(&w->dev, &init, &b), 0);
	cr_assert_eq(held, 1);
	cr_assert_eq(xrcd_open(&w->dev, &exclusive, &none), -EINVAL);
	init.file = (struct xrc_file){ 0 };
	cr_assert_eq(xrcd_open(&w->dev, &init, &none), 0);
	cr_assert_eq(held, 1, "a domain of no file is nobody else's");
	cr_assert_eq(xrcd_close(&w->dev, a), 0);
	cr_assert_eq(held, 1);
	cr_assert_eq(xrcd_close(&w->dev, b), 0);
	cr_assert_eq(held, 0);
}
