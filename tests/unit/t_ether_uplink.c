/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What leaves a port is what is not for its host; the host's stack is one that sends, and gets what
 * nobody else wants.
 *
 * Method: for what others have to say, another member of a fabric, and a wire that does as it is
 * told.
 */
#include <stdio.h>
#include <unistd.h>
#include "emu/fabric/rules.h"
#include "emu/wire/wire.h"
#include "tests/unit/uplink_world.h"

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
	static struct wire wire = { .ops = &wire_ops };
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

/* Of a frame for another host, sniffers of this one get a copy and its other rules nothing. */
Test(fabric, sniffers_see_what_leaves)
{
	struct pair p = pair_new(true, false, 2);
	struct flow_init sniffer = { .level = STEER_LEVEL_SNIFFER, .continues = true };

	sniffer.qp = p.r.w->b.qp;
	rules_learn(p.self.rules, station, 2);
	rule(&p.r, to_station(station, p.r.w->b.qp));
	recvs_post(&p.r.w->b, 3);
	frame_send(&p.r, station);
	expect_nothing(&p.r);
	rule(&p.r, sniffer);
	frame_send(&p.r, station);
	cr_expect_not_null(rig_poll(&p.r));
	expect_nothing(&p.r);
	cr_expect_eq(outside.out_count, 2);
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
