/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is behind the port: frames from outside wait for rules and receives, and lose no more than
 * they must; what leaves is what is not for this host; the host's stack is one that sends, and gets
 * what nobody else wants.
 *
 * Method: uplinks that the case fills and looks into, a clock that it moves, and for what others
 * have to say, another member of a fabric and a wire that does as it is told.
 */
#include <stdio.h>
#include <unistd.h>
#include "emu/engine/engine.h"
#include "emu/fabric/rules.h"
#include "emu/uplink/uplink.h"
#include "emu/wire/wire.h"
#include "tests/unit/ether_world.h"

enum { KEPT = 64, KEPT_BYTES = 16384, MILLISECOND = 1000000, SETTLE_MS = 100, PATIENCE_MS = 2000 };

/* One side: what comes, and what went there. */
struct fake {
	struct uplink uplink;
	struct iovec in[KEPT];
	unsigned in_count, in_taken;
	bool is_held;			/* received and not released */
	uint8_t out[KEPT][256];
	uint32_t out_bytes[KEPT];
	unsigned out_count;
	int send_error;
	void (*arrived)(void *ctx);
	void *ctx;
};

static struct fake outside, host;
static uint64_t clock_ns = MILLISECOND;

static struct fake *fake(struct uplink *u)
{
	return (struct fake *)u;
}

static bool fake_receive(struct uplink *u, struct iovec *out)
{
	struct fake *f = fake(u);

	f->is_held = f->in_taken < f->in_count;
	if (f->is_held)
		*out = f->in[f->in_taken];
	return f->is_held;
}

static void fake_release(struct uplink *u)
{
	struct fake *f = fake(u);

	cr_assert(f->is_held);
	f->is_held = false;
	f->in_taken++;
}

static int fake_send(struct uplink *u, const void *frame, uint32_t bytes)
{
	struct fake *f = fake(u);

	if (f->send_error)
		return f->send_error;
	cr_assert(f->out_count < KEPT && bytes <= sizeof f->out[0]);
	memcpy(f->out[f->out_count], frame, bytes);
	f->out_bytes[f->out_count++] = bytes;
	return 0;
}

static void fake_listen(struct uplink *u, void (*arrived)(void *ctx), void *ctx)
{
	fake(u)->arrived = arrived;
	fake(u)->ctx = ctx;
}

static const struct uplink_ops outside_ops = {
	.name = "fake", .receive = fake_receive, .release = fake_release, .send = fake_send,
};

static const struct uplink_ops host_ops = {
	.name = "fake", .receive = fake_receive, .release = fake_release, .send = fake_send,
	.listen = fake_listen,
};

static uint64_t fake_now_ns(void)
{
	return clock_ns;
}

/* @has_host: its rule is made as emu/ makes it. */
static struct rig uplinks_new(bool has_outside, bool has_host)
{
	struct rig r = rig_new();

	r.w->dev.now_ns = fake_now_ns;
	outside.uplink.ops = &outside_ops;
	host.uplink.ops = &host_ops;
	if (has_host)
		rule(&r, (struct flow_init){ .level = STEER_LEVEL_HOST, .is_host = true });
	engine_uplinks_join(r.e, has_outside ? &outside.uplink : NULL,
			    has_host ? &host.uplink : NULL);
	return r;
}

/* Frame @i from there is told by its bytes behind the addresses. */
static uint8_t *frame_from(struct fake *f, const uint8_t dst[6], uint32_t bytes)
{
	static const uint8_t src[6] = { 0x02, 0, 0, 0, 0, 9 };
	uint8_t *at = calloc(1, bytes);
	struct iovec *in = &f->in[f->in_count];

	cr_assert(f->in_count < KEPT);
	*in = (struct iovec){ at, bytes };
	if (bytes < 14)
		return at;
	for (uint32_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)(f->in_count * 7 + i);
	memcpy(at, dst, 6);
	memcpy(at + 6, src, 6);
	at[12] = 0x88;
	at[13] = 0xb5;
	f->in_count++;
	return at;
}

static void frames_from(struct fake *f, const uint8_t dst[6], unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		frame_from(f, dst, 60 + i);
}

static void step(struct rig *r, uint64_t ms)
{
	clock_ns += ms * MILLISECOND;
	while (engine_run(r->e))
		;
}

static void settle(struct rig *r)
{
	step(r, 0);
	step(r, SETTLE_MS);
}

static void recvs_post(struct side *s, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		recv_post(s, 4096, 0, s->posted_recvs % WORLD_RECVS * 4096u);
}

/* The next receive of @s has frame @i of those from @f. */
static void expect_frame(struct rig *r, struct side *s, unsigned at, struct fake *f, unsigned i)
{
	cr_assert_not_null(rig_poll(r), "frame %u did not come", i);
	cr_assert(!memcmp(s->data + at % WORLD_RECVS * 4096, f->in[i].iov_base, f->in[i].iov_len),
		  "receive %u has not frame %u", at, i);
}

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

/* --- what leaves --- */

Test(leaving, frames_for_groups_and_unknown_addresses)
{
	struct rig r = uplinks_new(true, false);

	frame_send(&r, group);
	frame_send(&r, station);
	cr_expect_eq(outside.out_count, 2);
	for (unsigned i = 0; i < 2; i++) {
		cr_expect_eq(outside.out_bytes[i], FRAME);
		cr_expect(!memcmp(outside.out[i], i ? station : group, 6));
	}
	cr_expect(!memcmp(outside.out[1] + 6, r.w->a.data + 6, FRAME - 6));
	cr_expect_eq(r.w->why.made, 0, "somebody out there may want them");
}

/* It goes to the queues of this host as well. */
Test(leaving, a_group_has_members_on_both_sides)
{
	struct rig r = uplinks_new(true, false);

	rule(&r, to_station(group, r.w->b.qp));
	recvs_post(&r.w->b, 1);
	frame_send(&r, group);
	cr_assert_not_null(rig_poll(&r));
	cr_expect_eq(outside.out_count, 1);
}

Test(leaving, a_way_out_that_is_not_there_or_fails)
{
	static const struct uplink_ops only_in = {
		.name = "fake", .receive = fake_receive, .release = fake_release,
	};
	struct rig r = uplinks_new(true, false);

	outside.send_error = -5;
	frame_send(&r, group);
	expect_last_why(&r, WHY_FRAME_UNWANTED);
	outside.uplink.ops = &only_in;
	frame_send(&r, group);
	cr_expect_eq(r.w->why.made, 2);
	cr_expect_eq(outside.out_count, 0);
}

Test(leaving, what_came_from_there_does_not_return)
{
	struct rig r = uplinks_new(true, false);

	frames_from(&outside, group, 2);
	recvs_post(&r.w->b, 2);
	rule(&r, to_station(group, r.w->b.qp));
	settle(&r);
	cr_expect_eq(outside.in_taken, 2);
	cr_expect_eq(outside.out_count, 0);
}

Test(leaving, nothing_leaves_a_port_that_is_down)
{
	struct rig r = uplinks_new(true, true);

	r.w->dev.port.is_down = true;
	frame_send(&r, group);
	frames_from(&host, group, 1);
	step(&r, 0);
	cr_expect_eq(outside.out_count + host.out_count, 0);
	cr_expect_eq(host.in_taken, 1);
	cr_expect_eq(r.w->why.made, 2);
	expect_last_why(&r, WHY_PORT_DOWN);
}

/* --- the host's stack --- */

Test(host, it_gets_what_no_other_rule_wants)
{
	struct rig r = uplinks_new(false, true);

	rule(&r, to_station(station, r.w->b.qp));
	recvs_post(&r.w->b, 1);
	frame_send(&r, station);
	cr_expect_eq(host.out_count, 0);
	cr_assert_not_null(rig_poll(&r));
	frame_send(&r, group);
	expect_nothing(&r);
	cr_expect_eq(host.out_count, 1);
	cr_expect_eq(host.out_bytes[0], FRAME);
	cr_expect(!memcmp(host.out[0], r.w->a.data, FRAME));
	cr_expect_eq(r.w->why.made, 0);
}

Test(host, what_comes_from_outside_may_be_for_it)
{
	struct rig r = uplinks_new(true, true);

	frames_from(&outside, group, 1);
	rule(&r, to_station(station, r.w->b.qp));
	settle(&r);
	cr_expect_eq(host.out_count, 1);
	cr_expect(!memcmp(host.out[0], outside.in[0].iov_base, 60));
}

Test(host, a_stack_that_takes_no_frame_loses_it)
{
	struct rig r = uplinks_new(false, true);

	host.send_error = -5;
	frame_send(&r, group);
	expect_last_why(&r, WHY_FRAME_HOST);
	cr_expect_eq(r.w->why.record[0].found, 5);
}

Test(host, what_it_sends_reaches_queues_and_leaves)
{
	struct rig r = uplinks_new(true, true);

	frames_from(&host, station, 3);
	frames_from(&host, group, 1);
	recvs_post(&r.w->b, 3);
	rule(&r, to_station(station, r.w->b.qp));
	step(&r, 0);
	for (unsigned i = 0; i < 3; i++)
		expect_frame(&r, &r.w->b, i, &host, i);
	expect_nothing(&r);
	cr_expect_eq(outside.out_count, 4);
	cr_expect(!memcmp(outside.out[3], host.in[3].iov_base, 60));
}

/* It wants what nobody wants, but not from itself. */
Test(host, its_own_frames_do_not_come_back)
{
	struct rig r = uplinks_new(false, true);

	frames_from(&host, group, 1);
	step(&r, 0);
	cr_expect_eq(host.in_taken, 1);
	cr_expect_eq(host.out_count, 0);
}

/* It is a sender like others: what finds no receive is lost. */
Test(host, it_waits_for_no_receive)
{
	struct rig r = uplinks_new(false, true);

	frames_from(&host, station, 1);
	rule(&r, to_station(station, r.w->b.qp));
	step(&r, 0);
	cr_expect_eq(host.in_taken, 1);
	expect_last_why(&r, WHY_FRAME_QUEUE);
}

Test(host, whoever_leaves_is_told_no_more)
{
	struct rig r = uplinks_new(true, true);

	cr_assert(host.arrived);
	host.arrived(host.ctx);
	engine_uplinks_leave(r.e);
	cr_expect(!host.arrived);
	frames_from(&host, group, 1);
	frame_send(&r, group);
	cr_expect_eq(host.in_taken + host.out_count + outside.out_count, 0);
}

/* --- others of the fabric --- */

static enum wire_sent room;
static unsigned frames_sent;
static uint32_t sent_to;

static enum wire_sent wire_has_room(struct wire *w, unsigned member, const struct ib_packet *p)
{
	(void)w, (void)member, (void)p;
	return room;
}

static enum wire_sent wire_frame(struct wire *w, unsigned member, const struct ib_packet *p)
{
	(void)w, (void)p;
	frames_sent++;
	sent_to = member;
	return WIRE_SENT;
}

static int wire_receive(struct wire *w, struct ib_packet *out)
{
	(void)w, (void)out;
	return 0;
}

static void wire_kick(struct wire *w)
{
	(void)w;
}

static const struct wire_ops wire_ops = {
	.name = "fake", .has_room = wire_has_room, .frame = wire_frame, .receive = wire_receive,
	.kick = wire_kick,
};

struct member {
	struct fabric *fabric;
	struct rules *rules;
};

static struct member member_new(uint32_t node)
{
	static const uint8_t gid[1][16] = { { 0xfe, 0x80, [15] = 1 } };
	static char name[32];
	struct member m;

	snprintf(name, sizeof name, "unit-uplink-%d", (int)getpid());
	cr_assert_eq(fabric_join(&(struct fabric_config){ name, gid, 1 }, &m.fabric), 0);
	cr_assert_eq(rules_open(m.fabric, node, &m.rules), 0);
	return m;
}

static void member_end(struct member *m)
{
	rules_close(m->rules);
	fabric_leave(m->fabric);
}

/* All frames of every kind. */
static void member_wants(struct member *m)
{
	struct fabric_rule all = { .number = 1, .level = STEER_LEVEL_DEFAULT };
	uint64_t order;

	cr_assert_eq(rules_post(m->rules, &all, &order), 0);
}

/* The rig at a fabric's switch, and another member at @node. */
struct pair {
	struct rig r;
	struct member self, other;
};

static struct pair pair_new(bool has_outside, bool has_host, uint32_t node)
{
	static struct wire wire = { &wire_ops };
	struct pair p = { .r = rig_new(), .self = member_new(1), .other = member_new(node) };
	struct emu_dev *dev = &p.r.w->dev;

	engine_destroy(p.r.e);
	cr_assert_eq(engine_create(dev, &wire, NULL, &p.r.e), 0);
	engine_switch_join(p.r.e, p.self.rules, 1);
	dev->flow_board.self = fabric_self(p.self.fabric);
	dev->now_ns = fake_now_ns;
	outside.uplink.ops = &outside_ops;
	host.uplink.ops = &host_ops;
	engine_uplinks_join(p.r.e, has_outside ? &outside.uplink : NULL,
			    has_host ? &host.uplink : NULL);
	return p;
}

static void pair_end(struct pair *p)
{
	member_end(&p->self);
	member_end(&p->other);
}

/* Whoever spoke is known; a station of another host is out there, too. */
Test(fabric, only_what_is_for_this_host_stays)
{
	struct pair p = pair_new(true, false, 2);

	rules_learn(p.self.rules, station, 1);
	frame_send(&p.r, station);
	cr_expect_eq(outside.out_count, 0);
	rules_learn(p.self.rules, station, 2);
	frame_send(&p.r, station);
	cr_expect_eq(outside.out_count, 1);
	pair_end(&p);
}

Test(fabric, the_hosts_stack_is_a_station)
{
	static const uint8_t src[6] = { 0x02, 0, 0, 0, 0, 9 };
	struct pair p = pair_new(false, true, 1);

	frames_from(&host, group, 1);
	step(&p.r, 0);
	cr_expect_eq(rules_station(p.other.rules, src), 1);
	pair_end(&p);
}

/* What comes from outside is nobody's address here. */
Test(fabric, outside_is_no_station)
{
	static const uint8_t src[6] = { 0x02, 0, 0, 0, 0, 9 };
	struct pair p = pair_new(true, false, 1);

	frames_from(&outside, group, 1);
	recvs_post(&p.r.w->b, 1);
	rule(&p.r, to_station(group, p.r.w->b.qp));
	settle(&p.r);
	cr_expect_eq(outside.in_taken, 1);
	cr_expect_eq(rules_station(p.other.rules, src), -1);
	pair_end(&p);
}

/* The other has the capture itself; and what its rule takes this one's later rules do not get. */
Test(fabric, frames_from_outside_are_not_passed_on)
{
	struct pair p = pair_new(true, false, 1);
	struct flow_init late = to_station(group, p.r.w->b.qp);

	late.level = STEER_LEVEL_DEFAULT + 1;
	member_wants(&p.other);
	frames_from(&outside, group, 1);
	frames_from(&outside, station, 1);
	recvs_post(&p.r.w->b, 2);
	rule(&p.r, late);
	rule(&p.r, to_station(station, p.r.w->b.qp));
	settle(&p.r);
	cr_expect_eq(outside.in_taken, 2);
	expect_frame(&p.r, &p.r.w->b, 0, &outside, 1);
	expect_nothing(&p.r);
	cr_expect_eq(frames_sent, 0);
	cr_expect_eq(p.r.w->why.made, 0);
	pair_end(&p);
}

/* Nor to other hosts: the cable ends here. */
Test(fabric, frames_from_outside_are_for_one_host)
{
	struct pair p = pair_new(true, false, 2);

	member_wants(&p.other);
	frames_from(&outside, group, 1);
	rule(&p.r, to_station(station, p.r.w->b.qp));
	settle(&p.r);
	cr_expect_eq(outside.in_taken, 1);
	cr_expect_eq(frames_sent, 0);
	expect_last_why(&p.r, WHY_FRAME_UNWANTED);
	pair_end(&p);
}

Test(fabric, frames_of_the_host_wait_for_room)
{
	struct pair p = pair_new(false, true, 1);

	member_wants(&p.other);
	frames_from(&host, group, 2);
	room = WIRE_FULL;
	step(&p.r, 0);
	cr_expect_eq(host.in_taken, 0);
	cr_expect_eq(frames_sent, 0);
	cr_expect_gt(engine_deadline_ns(p.r.e), clock_ns);
	cr_expect_leq(engine_deadline_ns(p.r.e), clock_ns + MILLISECOND);
	room = WIRE_SENT;
	step(&p.r, 1);
	cr_expect_eq(host.in_taken, 2);
	cr_expect_eq(frames_sent, 2);
	cr_expect_eq(sent_to, fabric_self(p.other.fabric));
	pair_end(&p);
}
