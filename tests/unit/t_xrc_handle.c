/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handles of an XRC target QP in other processes: emu/transport/xrc_far.c, emu/obj/xrcd.c.
 *
 * Two devices: `near` has the target, `far` the handle.  Questions and answers are moved by hand.
 */
#include "emu/transport/xrc.h"
#include "tests/unit/xrc_world.h"

struct pair {
	struct xrc near, far;
	struct emu_qp *target, *handle;
	struct emu_qp_open *open;	/* the far application's */
};

static uint64_t now_ns(void)
{
	return 1000;
}

static struct pair pair_new(void)
{
	struct pair p = { .near = xrc_new_of(true) };
	struct qp_open_init init = { .user_handle = 7 };

	p.far = xrc_new_of(true);
	p.near.w->dev.now_ns = p.far.w->dev.now_ns = now_ns;
	p.target = p.near.w->b.qp;
	cr_assert_eq(qp_far_create(&p.far.w->dev, p.far.xrcd, p.target->qpn, &p.handle), 0);
	init.xrcd = p.far.xrcd;
	init.async = p.far.w->async;
	cr_assert_eq(qp_open(&p.far.w->dev, p.handle, &init, &p.open), 0);
	return p;
}

/* As the engine does it.  True: the target's last handle has gone. */
static bool ask_with(struct pair *p, struct far_ask *ask, struct far_tell *tell,
		     uint64_t turn)
{
	struct iovec span = { ask, sizeof *ask };
	struct ib_packet packet;

	p->handle->far->turn = turn;
	p->handle->far->is_answered = false;
	xrc_far_ask(p->handle, &span, &packet);
	return xrc_far_asked(&p->near.w->tp, p->target, &packet, tell);
}

static void tell(struct pair *p, struct far_tell *what, uint32_t src_qpn, uint64_t turn)
{
	struct iovec span = { what, sizeof *what };
	struct ib_packet packet = { .opcode = IB_RELAY | RELAY_HANDLE, .src_qpn = src_qpn,
		.payload_bytes = sizeof *what, .span = &span, .span_count = 1,
		.extra.relay_turn = turn };

	xrc_far_told(&p->far.w->tp, p->handle, &packet);
}

static int ask(struct pair *p, enum far_op op, enum qp_state state, uint64_t turn)
{
	struct far_ask question = { .op = op, .mask = A_STATE, .attr.state = state };
	struct far_tell answer;

	ask_with(p, &question, &answer, turn);
	tell(p, &answer, p->target->qpn, turn);
	return p->handle->far->is_answered ? p->handle->far->rc : 1;
}

static int far_event(struct pair *p)
{
	return event_of(&p->far);
}

Test(xrc_handle, opens_modifies_queries_and_closes)
{
	struct pair p = pair_new();

	cr_expect_eq(ask(&p, FAR_QUERY, 0, 1), -EINVAL, "not open");
	cr_expect_eq(ask(&p, FAR_MODIFY, QP_ERR, 2), -EINVAL, "not open");
	cr_expect_eq(ask(&p, FAR_OPEN, 0, 3), 0);
	cr_expect_eq(p.handle->state, QP_RTS);
	cr_expect_not_null(qp_open_far_find(p.target, p.handle->qpn));
	cr_expect_eq(ask(&p, FAR_MODIFY, QP_INIT, 4), -EINVAL, "no such edge");
	cr_expect_eq(ask(&p, FAR_MODIFY, QP_ERR, 5), 0);
	cr_expect_eq(p.handle->state, QP_ERR);
	cr_expect_eq(p.target->state, QP_ERR);
	cr_expect_eq(ask(&p, FAR_QUERY, 0, 6), 0);
	cr_expect_eq(p.handle->attr.path_mtu, 3);
	cr_expect_eq(ask(&p, FAR_CLOSE, 0, 7), 0);
	cr_expect_null(qp_open_far_find(p.target, p.handle->qpn));
	cr_expect_eq(ask(&p, FAR_CLOSE, 0, 8), 0, "as gone as before");
	cr_expect_eq(ask(&p, FAR_OP_COUNT, 0, 9), -EINVAL);
}

/* INIT to INIT would succeed twice; RESET to INIT only once. */
Test(xrc_handle, a_question_that_comes_twice_is_carried_out_once)
{
	struct pair p = pair_new();
	struct far_ask question = { .op = FAR_MODIFY, .mask = A_STATE, .attr.state = QP_RESET };
	struct far_tell answer;

	cr_expect_eq(ask(&p, FAR_OPEN, 0, 1), 0);
	cr_expect_eq(ask(&p, FAR_OPEN, 0, 1), 0);
	cr_expect_null(p.target->opens->next->next, "ours and the creator's");
	ask_with(&p, &question, &answer, 2);
	cr_expect_eq(answer.rc, 0);
	qp_connect(&p.near, &p.near.w->b, p.near.w->a.qp->qpn);
	ask_with(&p, &question, &answer, 2);
	cr_expect_eq(answer.rc, 0);
	cr_expect_eq(p.target->state, QP_RTS, "that was the first one's");
}

Test(xrc_handle, the_target_lives_as_long_as_any_handle)
{
	struct pair p = pair_new();
	struct far_ask question = { .op = FAR_CLOSE };
	struct xrc_domain *domain = p.target->xrc_domain;
	struct far_tell answer;
	uint32_t events;

	cr_expect_eq(ask(&p, FAR_OPEN, 0, 1), 0);
	cr_expect_not(qp_is_orphan(p.target));
	cr_expect_eq(domain->opens, 2);
	cr_expect_not(qp_open_close(p.near.open, &events));
	cr_expect(qp_is_orphan(p.target));
	cr_expect_eq(srq_destroy(&p.near.w->dev, p.near.one.srq, &events), 0);
	cr_expect_eq(srq_destroy(&p.near.w->dev, p.near.two.srq, &events), 0);
	cr_expect_eq(xrcd_close(&p.near.w->dev, p.near.xrcd), 0, "the handle was the last user");
	cr_expect_eq(p.near.w->dev.xrc_domains, domain, "it stays for the target");
	cr_expect(ask_with(&p, &question, &answer, 2), "the last one");
	cr_expect_null(p.near.w->dev.xrc_domains);
}

Test(xrc_handle, events_reach_every_handle)
{
	struct pair p = pair_new();
	struct ib_packet packet;

	cr_expect_eq(ask(&p, FAR_OPEN, 0, 1), 0);
	qp_event(p.target, EVENT_QP_ACCESS_ERR);
	qp_event(p.target, EVENT_QP_LAST_WQE);
	cr_expect_eq(event_of(&p.near), EVENT_QP_ACCESS_ERR);
	cr_expect(p.target->work & QP_WORK_RELAY);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(xrc_relay_next(&p.near.w->tp, p.target, 4096, &packet), 1);
		cr_expect_eq(packet.dest_qpn, p.handle->qpn);
		xrc_relay_sent(&p.near.w->tp, p.target, &packet);
		xrc_far_told(&p.far.w->tp, p.handle, &packet);
	}
	cr_expect_eq(xrc_relay_next(&p.near.w->tp, p.target, 4096, &packet), 0);
	cr_expect_eq(far_event(&p), EVENT_QP_ACCESS_ERR);
	cr_expect_eq(far_event(&p), EVENT_QP_LAST_WQE);
	cr_expect_eq(far_event(&p), NO_EVENT);
	qp_event(p.target, EVENT_QP_FATAL);
	cr_assert_eq(xrc_relay_next(&p.near.w->tp, p.target, 4096, &packet), 1);
	xrc_relay_lost(&p.near.w->tp, p.target, &packet);
	cr_expect_eq(xrc_relay_next(&p.near.w->tp, p.target, 4096, &packet), 0, "nobody hears");
}

Test(xrc_handle, a_reset_takes_no_event_away)
{
	struct pair p = pair_new();
	struct qp_attr reset = { .state = QP_RESET };
	struct ib_packet packet;

	cr_expect_eq(ask(&p, FAR_OPEN, 0, 1), 0);
	qp_event(p.target, EVENT_QP_LAST_WQE);
	cr_assert_eq(qp_modify(&p.near.w->dev, p.target, &reset, A_STATE), 0);
	cr_expect_eq(p.target->work, QP_WORK_RELAY);
	cr_expect_eq(xrc_relay_next(&p.near.w->tp, p.target, 4096, &packet), 1);
	cr_expect_eq(packet.imm, EVENT_QP_LAST_WQE);
}

/* --- who is broken --- */

Test(xrc_handle, questions_that_are_none)
{
	struct pair p = pair_new();
	struct far_ask question = { .op = FAR_OPEN };
	struct iovec span = { &question, sizeof question };
	struct far_tell answer;
	struct ib_packet good, packet;

	xrc_far_ask(p.handle, &span, &good);
	packet = good;
	packet.extra.relay_domain++;
	xrc_far_asked(&p.near.w->tp, p.target, &packet, &answer);
	cr_expect_eq(answer.rc, -EINVAL, "another domain");
	packet = good;
	packet.payload_bytes--;
	xrc_far_asked(&p.near.w->tp, p.target, &packet, &answer);
	cr_expect_eq(answer.rc, -EINVAL, "another size");
	xrc_far_asked(&p.near.w->tp, p.near.w->a.qp, &good, &answer);
	cr_expect_eq(answer.rc, -EINVAL, "an initiator");
	xrc_far_asked(&p.near.w->tp, NULL, &good, &answer);
	cr_expect_eq(answer.rc, -EINVAL, "nothing");
	cr_expect_null(qp_open_far_find(p.target, p.handle->qpn));
	expect_why(p.near.w, WHY_CMD_VALUE);
}

Test(xrc_handle, handles_are_bounded)
{
	struct pair p = pair_new();
	struct far_ask question = { .op = FAR_OPEN };
	struct iovec span = { &question, sizeof question };
	struct far_tell answer = { 0 };
	struct ib_packet packet;
	uint32_t i = 1;

	xrc_far_ask(p.handle, &span, &packet);
	for (; !answer.rc && i <= QP_FAR_OPENS_MAX; i++) {
		packet.src_qpn = i;
		xrc_far_asked(&p.near.w->tp, p.target, &packet, &answer);
	}
	cr_expect_eq(answer.rc, -ENOMEM);
	cr_expect_eq(i, QP_FAR_OPENS_MAX + 1, "one is the creator's");
}

Test(xrc_handle, answers_that_are_none)
{
	static const struct { int32_t rc; uint32_t state; } bad[] = {
		{ 1, QP_RTS }, { -4096, QP_RTS }, { 0, QP_STATE_COUNT }, { 0, UINT32_MAX },
	};
	struct pair p = pair_new();
	struct far_tell good = { .state = QP_RTR };
	struct ib_packet event = { .opcode = IB_RELAY | RELAY_HANDLE, .src_qpn = p.target->qpn };

	p.handle->far->turn = 5;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct far_tell what = { .rc = bad[i].rc, .state = bad[i].state };

		tell(&p, &what, p.target->qpn, 5);
		cr_expect_not(p.handle->far->is_answered, "%zu", i);
	}
	tell(&p, &good, p.target->qpn, 4);
	cr_expect_not(p.handle->far->is_answered, "an old one");
	tell(&p, &good, p.target->qpn + 1, 5);
	cr_expect_not(p.handle->far->is_answered, "somebody else");
	for (uint32_t type = 0; type < 64; type++) {
		event.imm = type;
		xrc_far_told(&p.far.w->tp, p.handle, &event);
	}
	for (int type = 1; type <= 4; type++)
		cr_expect_eq(far_event(&p), type);
	cr_expect_eq(far_event(&p), EVENT_QP_LAST_WQE);
	cr_expect_eq(far_event(&p), NO_EVENT, "others are no target's");
	tell(&p, &good, p.target->qpn, 5);
	cr_expect_eq(p.handle->state, QP_RTR);
}
