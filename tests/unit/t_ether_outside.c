/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames from outside of the port wait for rules and receives, and no more are lost than must be.
 */
#include "tests/unit/uplink_world.h"

/* --- from outside: when it begins --- */

Test(outside, nothing_comes_without_rules)
{
	struct rig r = uplinks_new(true, false);

	frames_from(&outside, station, 3);
	for (unsigned i = 0; i < 10; i++)
		step(&r, SETTLE_MS);
	cr_expect_eq(outside.in_taken + outside.is_held, 0);
	cr_expect_eq(engine_deadline_ns(r.e), UINT64_MAX, "nobody need wake up for it");
	cr_expect_eq(r.w->why.made, 0);
}

Test(outside, it_begins_when_no_more_rules_come)
{
	struct rig r = uplinks_new(true, false);

	frames_from(&outside, station, 1);
	frames_from(&outside, group, 1);
	recvs_post(&r.w->b, 2);
	rule(&r, to_station(station, r.w->b.qp));
	step(&r, 0);
	cr_expect_eq(engine_deadline_ns(r.e), clock_ns + SETTLE_MS * MILLISECOND);
	step(&r, SETTLE_MS - 1);
	rule(&r, to_station(group, r.w->b.qp));
	step(&r, SETTLE_MS - 1);
	step(&r, SETTLE_MS - 1);
	expect_nothing(&r);
	step(&r, 1);
	expect_frame(&r, &r.w->b, 0, &outside, 0);
	expect_frame(&r, &r.w->b, 1, &outside, 1);
	cr_expect_eq(engine_deadline_ns(r.e), UINT64_MAX);
	cr_expect_eq(r.w->why.made, 0);
}

/* The host's rule is none of an application's. */
Test(outside, it_stops_without_rules_and_goes_on_with_new_ones)
{
	struct rig r = uplinks_new(true, true);
	struct emu_flow *flow;

	step(&r, SETTLE_MS);
	step(&r, SETTLE_MS);
	flow = rule(&r, to_station(station, r.w->b.qp));
	frames_from(&outside, station, 6);
	recvs_post(&r.w->b, 2);
	settle(&r);
	for (unsigned i = 0; i < 2; i++)
		expect_frame(&r, &r.w->b, i, &outside, i);
	flow_destroy(flow);
	recvs_post(&r.w->b, 4);
	step(&r, PATIENCE_MS);
	step(&r, PATIENCE_MS);
	expect_nothing(&r);
	rule(&r, to_station(station, r.w->b.qp));
	settle(&r);
	for (unsigned i = 2; i < 6; i++)
		expect_frame(&r, &r.w->b, i, &outside, i);
	cr_expect_eq(r.w->why.made + host.out_count, 0);
}

/* --- from outside: receives --- */

/* Not one is lost, and they are in order. */
Test(outside, frames_wait_for_receives)
{
	struct rig r = uplinks_new(true, false);
	unsigned got = 0;

	frames_from(&outside, station, 50);
	rule(&r, to_station(station, r.w->b.qp));
	settle(&r);
	expect_nothing(&r);
	while (got < 50) {
		recvs_post(&r.w->b, 1 + got % 5);
		step(&r, 500);
		for (; got < r.w->b.posted_recvs && got < 50; got++)
			expect_frame(&r, &r.w->b, got, &outside, got);
		expect_nothing(&r);
	}
	cr_expect_eq(r.w->why.made, 0);
}

Test(outside, a_frame_waits_until_each_queue_has_a_receive)
{
	struct rig r = uplinks_new(true, false);

	frames_from(&outside, station, 1);
	rule(&r, to_station(station, r.w->a.qp));
	rule(&r, to_station(station, r.w->b.qp));
	recvs_post(&r.w->a, 1);
	settle(&r);
	expect_nothing(&r);
	recvs_post(&r.w->b, 1);
	step(&r, 0);
	expect_frame(&r, &r.w->a, 0, &outside, 0);
	expect_frame(&r, &r.w->b, 0, &outside, 0);
	cr_expect_eq(r.w->why.made, 0);
}

/* Two rules of different levels make two copies: for both there is a receive, or for none. */
Test(outside, a_frame_waits_for_a_receive_for_each_copy)
{
	struct rig r = uplinks_new(true, false);
	struct flow_init sniffer = { .level = STEER_LEVEL_SNIFFER, .continues = true };

	sniffer.qp = r.w->b.qp;
	frames_from(&outside, station, 2);
	rule(&r, sniffer);
	rule(&r, to_station(station, r.w->b.qp));
	rule(&r, to_station(station, r.w->b.qp));	/* once more makes no third */
	recvs_post(&r.w->b, 3);
	settle(&r);
	expect_frame(&r, &r.w->b, 0, &outside, 0);
	expect_frame(&r, &r.w->b, 1, &outside, 0);
	expect_nothing(&r);
	recvs_post(&r.w->b, 1);
	step(&r, 1);
	expect_frame(&r, &r.w->b, 2, &outside, 1);
	expect_frame(&r, &r.w->b, 3, &outside, 1);
	cr_expect_eq(r.w->why.made, 0);
}

/* Looks are what counts, a millisecond apart: a process that was stopped has not looked. */
Test(outside, a_frame_waits_for_long_but_not_for_ever)
{
	struct rig r = uplinks_new(true, false);

	frames_from(&outside, station, 2);
	rule(&r, to_station(station, r.w->b.qp));
	settle(&r);
	step(&r, 3600 * 1000);
	for (unsigned i = 0; i < PATIENCE_MS - 5; i++) {
		cr_assert_eq(engine_deadline_ns(r.e), clock_ns + MILLISECOND);
		step(&r, 1);
		step(&r, 0);
	}
	cr_assert_eq(r.w->why.made, 0, "it is lost too early");
	for (unsigned i = 0; i < 10; i++)
		step(&r, 1);
	cr_expect_eq(outside.in_taken, 2);
	cr_expect_eq(r.w->why.made, 2);
	expect_last_why(&r, WHY_FRAME_QUEUE);
}

/* @count of them, taking turns, and nobody has a receive for those of b. */
static void starve(struct rig *r, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		frames_from(&outside, i % 2 ? station : group, 1);
	rule(r, to_station(group, r->w->a.qp));
	rule(r, to_station(station, r->w->b.qp));
	recvs_post(&r->w->a, 10);
	settle(r);
	for (unsigned i = 0; i < PATIENCE_MS + 10; i++)
		step(r, 1);
}

/* One that has none for long does not hold up the others again and again. */
Test(outside, a_starved_queue_loses_frames_at_once)
{
	struct rig r = uplinks_new(true, false);

	starve(&r, 20);
	cr_expect_eq(outside.in_taken, 20);
	for (unsigned i = 0; i < 10; i++)
		expect_frame(&r, &r.w->a, i, &outside, 2 * i);
	expect_nothing(&r);
	cr_expect_eq(r.w->why.made, 10);
	expect_last_why(&r, WHY_FRAME_QUEUE);
}

Test(outside, a_starved_queue_that_has_a_receive_is_waited_for_again)
{
	struct rig r = uplinks_new(true, false);

	starve(&r, 2);
	cr_expect_eq(r.w->why.made, 1);
	recvs_post(&r.w->b, 1);
	frames_from(&outside, station, 2);
	step(&r, 1);
	cr_assert_not_null(rig_poll(&r));
	expect_frame(&r, &r.w->b, 0, &outside, 2);
	cr_expect_eq(outside.in_taken, 3, "the next one waits");
	recvs_post(&r.w->b, 1);
	step(&r, 1);
	expect_frame(&r, &r.w->b, 1, &outside, 3);
	cr_expect_eq(r.w->why.made, 1);
}

static void state_set(struct rig *r, struct emu_qp *qp, enum qp_state to)
{
	struct qp_attr attr = { .state = to, .port = 1 };

	cr_assert_eq(qp_modify(&r->w->dev, qp, &attr, A_STATE | (to == QP_INIT ? A_PORT : 0)), 0);
	engine_qp_kick(r->e, qp);
}

Test(outside, a_queue_that_is_not_ready_yet_is_waited_for)
{
	struct rig r = uplinks_new(true, false);

	frames_from(&outside, station, 1);
	rule(&r, to_station(station, r.w->b.qp));
	state_set(&r, r.w->b.qp, QP_RESET);
	settle(&r);
	state_set(&r, r.w->b.qp, QP_INIT);
	r.w->b.posted_recvs = 0;
	recvs_post(&r.w->b, 1);
	step(&r, 1);
	expect_nothing(&r);
	cr_expect_eq(r.w->why.made, 0);
	state_set(&r, r.w->b.qp, QP_RTR);
	step(&r, 1);
	expect_frame(&r, &r.w->b, 0, &outside, 0);
}

Test(outside, a_queue_in_error_is_not_waited_for)
{
	struct rig r = uplinks_new(true, false);

	frames_from(&outside, station, 1);
	rule(&r, to_station(station, r.w->b.qp));
	state_set(&r, r.w->b.qp, QP_ERR);
	settle(&r);
	cr_expect_eq(outside.in_taken, 1);
	expect_last_why(&r, WHY_PACKET_QP_STATE);
}

/* A record that jumps ends the queue: waiting would find that out again and again. */
Test(outside, a_broken_queue_is_not_waited_for)
{
	struct rig r = uplinks_new(true, false);

	frames_from(&outside, station, 2);
	rule(&r, to_station(station, r.w->b.qp));
	r.w->b.record[0] = htobe32(WORLD_RECVS + 1);
	settle(&r);
	cr_expect_eq(outside.in_taken, 2);
	cr_expect_eq(r.w->b.qp->state, QP_ERR);
	expect_why(r.w, WHY_RQ_DOORBELL);
}

/* --- from outside: what else may be --- */

Test(outside, what_is_no_frame_is_lost)
{
	struct rig r = uplinks_new(true, false);
	static const uint32_t sizes[] = { 1, 13, 9601, 16384 };

	for (size_t i = 0; i < 4; i++) {
		frame_from(&outside, station, sizes[i] < 14 ? 14 : sizes[i]);
		outside.in[i].iov_len = sizes[i];
	}
	frames_from(&outside, station, 1);
	recvs_post(&r.w->b, 1);
	rule(&r, to_station(station, r.w->b.qp));
	settle(&r);
	cr_expect_eq(r.w->why.made, 4);
	expect_last_why(&r, WHY_FRAME_OUTSIDE);
	expect_frame(&r, &r.w->b, 0, &outside, 4);
}

Test(outside, the_longest_frame)
{
	struct rig r = uplinks_new(true, false);

	frame_from(&outside, station, 9600);
	recv_post(&r.w->b, 9600, 0, 0);
	rule(&r, to_station(station, r.w->b.qp));
	settle(&r);
	expect_frame(&r, &r.w->b, 0, &outside, 0);
}

Test(outside, what_no_rule_wants_holds_up_nobody)
{
	struct rig r = uplinks_new(true, false);

	frames_from(&outside, group, 40);
	frames_from(&outside, station, 1);
	recvs_post(&r.w->b, 1);
	rule(&r, to_station(station, r.w->b.qp));
	settle(&r);
	expect_frame(&r, &r.w->b, 0, &outside, 40);
	cr_expect_eq(r.w->why.made, 40);
	expect_last_why(&r, WHY_FRAME_UNWANTED);
}

Test(outside, nothing_comes_while_the_port_is_down)
{
	struct rig r = uplinks_new(true, false);

	frames_from(&outside, station, 1);
	recvs_post(&r.w->b, 1);
	rule(&r, to_station(station, r.w->b.qp));
	r.w->dev.port.is_down = true;
	settle(&r);
	step(&r, PATIENCE_MS);
	expect_nothing(&r);
	r.w->dev.port.is_down = false;
	settle(&r);
	expect_frame(&r, &r.w->b, 0, &outside, 0);
	cr_expect_eq(r.w->why.made, 0);
}

/* More of them than one step takes: whoever steps hears that there is more. */
Test(outside, a_step_is_bounded)
{
	struct rig r = uplinks_new(true, false);

	frames_from(&outside, group, KEPT);
	rule(&r, to_station(station, r.w->b.qp));
	step(&r, 0);
	clock_ns += SETTLE_MS * MILLISECOND;
	cr_expect(engine_run(r.e));
	cr_expect_eq(engine_deadline_ns(r.e), 0);
	cr_expect(!engine_run(r.e));
	cr_expect_eq(outside.in_taken, KEPT);
}
