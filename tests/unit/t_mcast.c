/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast inside of a function: which attachments there can be, who gets a copy, and what
 * the wire is told.
 *
 * Method: two datagram QPs with an engine (rc_world.h) and a wire that only remembers.
 */
#include <errno.h>
#include "emu/engine/engine.h"
#include "emu/wire/wire.h"
#include "tests/unit/rc_world.h"

enum { SEND = 0x0a, GRH = 40, MLID = 0xc001 };

static const uint8_t red[16] = { 0xff, 0x0e, [15] = 1 }, blue[16] = { 0xff, 0x0e, [15] = 2 };

static struct { unsigned joins, leaves, packets; int join_error; enum wire_sent sent; } told;
static struct ib_packet arriving;
static bool has_arriving;

static int fake_join(struct wire *w, const uint8_t gid[16])
{
	(void)w;
	cr_assert_eq(gid[0], 0xff);
	told.joins++;
	return told.join_error;
}

static void fake_leave(struct wire *w, const uint8_t gid[16])
{
	(void)w;
	cr_assert_eq(gid[0], 0xff);
	told.leaves++;
}

static enum wire_sent fake_multicast(struct wire *w, const struct ib_packet *p)
{
	(void)w;
	cr_assert_eq(p->dest_qpn, IB_MULTICAST_QPN);
	told.packets++;
	return told.sent;
}

static enum wire_sent fake_send(struct wire *w, const struct ib_packet *p)
{
	(void)w;
	(void)p;
	return WIRE_NOBODY;
}

static int fake_receive(struct wire *w, struct ib_packet *out)
{
	bool has = has_arriving;

	(void)w;
	*out = arriving;
	has_arriving = false;
	return has;
}

static void fake_release(struct wire *w)
{
	(void)w;
}

static const struct wire_ops fake_ops = {
	.name = "fake", .send = fake_send, .join = fake_join, .leave = fake_leave,
	.multicast = fake_multicast, .receive = fake_receive, .release = fake_release,
	.packet_bytes_max = 65536,
};
static struct wire wire = { .ops = &fake_ops };

struct rig {
	struct world *w;
	struct engine *e;
	struct emu_qp *a, *b;
};

static uint64_t clock_read(void)
{
	return 1000;
}

static struct rig rig_on(struct wire *on)
{
	struct rig r = { .w = world_new_of(QPT_UD, 1) };

	told.sent = WIRE_NOBODY;
	r.w->dev.now_ns = clock_read;
	cr_assert_eq(engine_create(&r.w->dev, on, NULL, &r.e), 0);
	r.a = r.w->a.qp;
	r.b = r.w->b.qp;
	return r;
}

static struct rig rig_new(void)
{
	return rig_on(&wire);
}

static int attach(struct rig *r, struct emu_qp *qp, const uint8_t gid[16], uint16_t mlid)
{
	return engine_mcast_attach(r->e, qp, gid, mlid);
}

static int detach(struct rig *r, struct emu_qp *qp, const uint8_t gid[16], uint16_t mlid)
{
	return engine_mcast_detach(r->e, qp, gid, mlid);
}

/* --- attachments --- */

Test(mcast, only_datagram_qps_and_groups)
{
	struct rig r = rig_new();
	uint8_t unicast[16] = { 0xfe, 0x80 };

	cr_expect_eq(attach(&r, r.a, unicast, 0), -EINVAL);
	expect_why(r.w, WHY_MULTICAST_GROUP);
	r.b->type = QPT_RC;
	cr_expect_eq(attach(&r, r.b, red, 0), -EINVAL);
	cr_expect_eq(detach(&r, r.a, red, 0), -EINVAL);
	cr_expect_eq(told.joins + told.leaves, 0);
	cr_expect_eq(r.a->obj.users, 0);
}

Test(mcast, infiniband_wants_a_multicast_lid)
{
	struct rig r = rig_new();

	r.w->dev.profile = hw_profile_find("connectx-6");
	cr_expect_eq(attach(&r, r.a, red, 0), -EINVAL);
	cr_expect_eq(attach(&r, r.a, red, 0xbfff), -EINVAL);
	cr_expect_eq(attach(&r, r.a, red, 0xffff), -EINVAL);
	cr_expect_eq(attach(&r, r.a, red, 0xc000), 0);
	cr_expect_eq(attach(&r, r.a, red, 0xfffe), 0);
}

Test(mcast, each_gid_and_lid_is_an_attachment)
{
	struct rig r = rig_new();

	cr_assert_eq(attach(&r, r.a, red, 0), 0);
	cr_assert_eq(attach(&r, r.a, red, 0), 0);
	cr_assert_eq(r.a->obj.users, 1, "twice is once");
	cr_assert_eq(attach(&r, r.a, red, MLID), 0);
	cr_assert_eq(attach(&r, r.b, red, 0), 0);
	cr_assert_eq(attach(&r, r.a, blue, 0), 0);
	cr_assert_eq(r.a->obj.users, 3);
	cr_assert_eq(told.joins, 2);
	cr_assert_eq(detach(&r, r.a, red, 7), -EINVAL);
	cr_assert_eq(detach(&r, r.a, red, 0), 0);
	cr_assert_eq(detach(&r, r.a, red, 0), -EINVAL);
	cr_assert_eq(detach(&r, r.b, red, 0), 0);
	cr_assert_eq(told.leaves, 0, "one is still in it");
	cr_assert_eq(detach(&r, r.a, red, MLID), 0);
	cr_assert_eq(told.leaves, 1);
	cr_assert_eq(r.w->dev.mcast.group_count, 1);
}

Test(mcast, limits)
{
	static struct hw_profile small;
	struct rig r = rig_new();

	small = *r.w->dev.profile;
	small.max_mcast_grp = 1;
	small.max_mcast_qp = 1;
	r.w->dev.profile = &small;
	cr_assert_eq(attach(&r, r.a, red, 0), 0);
	cr_assert_eq(attach(&r, r.a, blue, 0), -ENOMEM, "groups");
	cr_assert_eq(attach(&r, r.b, red, 0), -ENOMEM, "QPs in one");
	cr_assert_eq(attach(&r, r.a, red, 0), 0, "attached already");
	cr_assert_eq(detach(&r, r.a, red, 0), 0);
	cr_assert_eq(attach(&r, r.b, blue, 0), 0);
	cr_assert_eq(told.joins, 2);
}

Test(mcast, a_fabric_without_room_refuses)
{
	struct rig r = rig_new();

	told.join_error = -ENOSPC;
	cr_assert_eq(attach(&r, r.a, red, 0), -ENOMEM);
	cr_assert_eq(r.a->obj.users, 0);
	cr_assert_eq(r.w->dev.mcast.group_count, 0);
	cr_assert_eq(told.leaves, 0);
}

Test(mcast, forgetting_a_qp_detaches_it_everywhere)
{
	struct rig r = rig_new();
	uint8_t gid[16] = { 0xff };

	for (uint8_t i = 0; i < 200; i++) {
		gid[15] = i;
		cr_assert_eq(attach(&r, r.a, gid, 0), 0);
		cr_assert_eq(attach(&r, r.a, gid, MLID), 0);
		if (i % 2)
			cr_assert_eq(attach(&r, r.b, gid, 0), 0);
	}
	engine_mcast_forget(r.e, r.a);
	cr_assert_eq(r.a->obj.users, 0);
	cr_assert_eq(told.leaves, 100);
	engine_mcast_forget(r.e, r.b);
	cr_assert_eq(told.leaves, 200);
	cr_assert_eq(r.w->dev.mcast.group_count, 0);
	engine_mcast_forget(r.e, r.b);
}

/* --- packets --- */

static void send_to(struct rig *r, const uint8_t gid[16])
{
	struct mlx5_datagram av = { 0 };
	uint64_t half[2];

	memcpy(half, gid, 16);
	mlx5_datagram_set_qkey(&av, WORLD_QKEY);
	mlx5_datagram_set_is_extended(&av, 1);
	mlx5_datagram_set_dest_qpn(&av, IB_MULTICAST_QPN);
	mlx5_datagram_set_rgid_high(&av, be64toh(half[0]));
	mlx5_datagram_set_rgid_low(&av, be64toh(half[1]));
	work_post(&r->w->a, (struct work_row){ .opcode = SEND, .bytes = 8, .av = &av,
		.is_unsignaled = true });
	engine_rang(r->e, r->a->qpn);
}

static void recvs(struct rig *r, unsigned count)
{
	while (count--) {
		recv_post(&r->w->a, GRH + 8, 0, 4096);
		recv_post(&r->w->b, GRH + 8, 0, 4096);
	}
}

static void expect_copies(const struct rig *r, unsigned a, unsigned b)
{
	cr_assert_eq(r->a->answers.rq_consumed, a, "a got %u", r->a->answers.rq_consumed);
	cr_assert_eq(r->b->answers.rq_consumed, b, "b got %u", r->b->answers.rq_consumed);
	cr_assert_eq(r->w->cq->produced, a + b);
}

Test(mcast, each_qp_gets_one_copy)
{
	struct rig r = rig_new();

	recvs(&r, 4);
	send_to(&r, red);
	expect_copies(&r, 0, 0);
	expect_why(r.w, WHY_PACKET_NO_GROUP);
	cr_assert_eq(attach(&r, r.b, red, 0), 0);
	cr_assert_eq(attach(&r, r.b, red, MLID), 0);
	send_to(&r, red);
	expect_copies(&r, 0, 1);
	cr_assert_eq(attach(&r, r.a, red, 0), 0);
	cr_assert_eq(attach(&r, r.a, red, MLID), 0);
	send_to(&r, red);
	expect_copies(&r, 1, 2);
	send_to(&r, blue);
	expect_copies(&r, 1, 2);
	cr_assert_eq(told.packets, 4, "others may be in it, whoever is here");
	cr_assert_eq(r.a->req.sq_done, 8);
}

Test(mcast, a_full_wire_delays_the_packet_for_all)
{
	struct rig r = rig_new();

	recvs(&r, 2);
	cr_assert_eq(attach(&r, r.b, red, 0), 0);
	told.sent = WIRE_FULL;
	send_to(&r, red);
	engine_lend(r.e);
	expect_copies(&r, 0, 0);
	told.sent = WIRE_SENT;
	engine_lend(r.e);
	engine_lend(r.e);
	expect_copies(&r, 0, 1);
}

Test(mcast, blocked_loopback_is_about_ones_own_packets)
{
	struct rig r = rig_new();

	recvs(&r, 2);
	cr_assert_eq(attach(&r, r.a, red, 0), 0);
	cr_assert_eq(attach(&r, r.b, red, 0), 0);
	r.a->blocks_loopback = r.b->blocks_loopback = true;
	send_to(&r, red);
	expect_copies(&r, 0, 1);
}

Test(mcast, without_a_wire_there_are_groups_too)
{
	struct rig r = rig_on(NULL);

	recvs(&r, 1);
	cr_assert_eq(attach(&r, r.b, red, 0), 0);
	send_to(&r, red);
	expect_copies(&r, 0, 1);
	cr_assert_eq(detach(&r, r.b, red, 0), 0);
}

static void arrive_from_wire(struct rig *r, uint8_t opcode, const uint8_t gid[16], uint32_t qkey)
{
	static const struct iovec span = { "12345678", 8 };

	arriving = (struct ib_packet){ .opcode = opcode, .packet_count = 1, .mtu_bytes = 4096,
		.pkey = 0xffff, .dest_qpn = IB_MULTICAST_QPN, .src_qpn = 0x777, .span = &span,
		.span_count = 1, .payload_bytes = 8,
		.extra = { .qkey = qkey, .l3 = IB_L3_IPV6 } };
	memcpy(arriving.dgid, gid, 16);
	has_arriving = true;
	memset(&r->w->why, 0, sizeof r->w->why);
	engine_lend(r->e);
}

Test(mcast, packets_from_the_wire_reach_who_is_attached)
{
	struct rig r = rig_new();
	uint8_t unicast[16] = { 0xfe, 0x80, [15] = 1 };

	recvs(&r, 4);
	cr_assert_eq(attach(&r, r.b, red, 0), 0);
	arrive_from_wire(&r, IB_UD | RC_SEND_ONLY, red, WORLD_QKEY);
	expect_copies(&r, 0, 1);
	cr_assert_eq(told.packets, 0, "nothing goes back");
	arrive_from_wire(&r, IB_UD | RC_SEND_ONLY, blue, WORLD_QKEY);
	expect_why(r.w, WHY_PACKET_NO_GROUP);
	arrive_from_wire(&r, IB_UD | RC_SEND_ONLY, red, WORLD_QKEY + 1);
	expect_why(r.w, WHY_PACKET_QKEY);
	arrive_from_wire(&r, IB_UD | RC_SEND_ONLY, unicast, WORLD_QKEY);
	expect_why(r.w, WHY_PACKET_NO_QP);
	arrive_from_wire(&r, RC_SEND_ONLY, red, WORLD_QKEY);
	expect_why(r.w, WHY_PACKET_NO_QP);
	expect_copies(&r, 0, 1);
	r.b->state = QP_INIT;
	arrive_from_wire(&r, IB_UD | RC_SEND_ONLY, red, WORLD_QKEY);
	expect_why(r.w, WHY_PACKET_QP_STATE);
}
