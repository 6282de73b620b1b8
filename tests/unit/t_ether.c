/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The switch: which queues of a function a frame reaches, by the rules.
 */
#include "emu/obj/wq.h"
#include "tests/unit/ether_world.h"

enum { QUEUES = 2 };

/* IPv4 from 10.0.0.@host. */
static void packet_send(struct rig *r, uint8_t host)
{
	static const uint8_t ip[] = { 0x08, 0x00, 0x45, 0, 0, 86, 0, 0, 0, 0, 64, 17 };

	memset(r->w->a.data, 0, FRAME);
	memcpy(r->w->a.data, station, 6);
	memcpy(r->w->a.data + 12, ip, sizeof ip);
	r->w->a.data[26] = 10;
	r->w->a.data[29] = host;
	buffer_send(r);
}

static uint32_t tag_of(const uint8_t *cqe)
{
	return (uint32_t)cqe[57] << 16 | cqe[58] << 8 | cqe[59];
}

Test(ether, a_rule_leads_to_its_qp)
{
	struct rig r = rig_new();
	struct flow_init init = to_station(station, r.w->b.qp);
	const uint8_t *cqe;

	init.has_tag = true;
	init.tag = 0xabcdef;
	rule(&r, init);
	recv_post(&r.w->b, 4096, 0, 0);
	frame_send(&r, station);
	cqe = rig_poll(&r);
	cr_assert_not_null(cqe);
	cr_assert_eq(tag_of(cqe), 0xabcdef);
	cr_assert(!memcmp(r.w->b.data, r.w->a.data, FRAME));
	expect_nothing(&r);
	cr_assert_eq(r.w->why.made, 0);
}

Test(ether, what_no_rule_wants_is_lost)
{
	struct rig r = rig_new();

	rule(&r, to_station(group, r.w->b.qp));
	recv_post(&r.w->b, 4096, 0, 0);
	frame_send(&r, station);
	expect_nothing(&r);
	expect_last_why(&r, WHY_FRAME_UNWANTED);
}

Test(ether, a_rule_may_drop)
{
	struct rig r = rig_new();
	struct flow_init drop = to_station(station, NULL), later = to_station(station, r.w->b.qp);
	struct emu_counters *counters;

	cr_assert_eq(counters_create(&r.w->dev, &counters), 0);
	drop.counters = counters;
	later.level += 2;
	rule(&r, drop);
	rule(&r, later);
	recv_post(&r.w->b, 4096, 0, 0);
	frame_send(&r, station);
	frame_send(&r, station);
	expect_nothing(&r);
	expect_last_why(&r, WHY_FRAME_DROPPED);
	cr_assert_eq(counters->counted[COUNTED_PACKETS], 2);
	cr_assert_eq(counters->counted[COUNTED_BYTES], 2 * FRAME);
}

/* Both directions: what continues is looked at first, and what ends the search ends it. */
Test(ether, order_of_levels)
{
	struct rig r = rig_new();
	struct flow_init first = to_station(station, r.w->a.qp);
	struct flow_init second = to_station(station, r.w->b.qp);
	struct emu_flow *flow = rule(&r, first);

	second.level += 2;
	rule(&r, second);
	recv_post(&r.w->a, 4096, 0, 0);
	recv_post(&r.w->b, 4096, 0, 0);
	frame_send(&r, station);
	cr_assert_not_null(rig_poll(&r));
	expect_nothing(&r);
	cr_assert_eq(r.w->b.data[0], 0, "the second got it");
	flow_destroy(flow);
	frame_send(&r, station);
	cr_assert_not_null(rig_poll(&r));
	cr_assert_eq(r.w->b.data[0], 2);
	first.level = STEER_LEVEL_NORMAL;
	first.continues = true;
	rule(&r, first);
	recv_post(&r.w->a, 4096, 0, 0);
	recv_post(&r.w->b, 4096, 0, 0);
	frame_send(&r, station);
	cr_assert_not_null(rig_poll(&r));
	cr_assert_not_null(rig_poll(&r));
	expect_nothing(&r);
}

Test(ether, equal_rules_all_receive)
{
	struct rig r = rig_new();

	rule(&r, to_station(group, r.w->a.qp));
	rule(&r, to_station(group, r.w->b.qp));
	recv_post(&r.w->a, 4096, 0, 4096);
	recv_post(&r.w->b, 4096, 0, 0);
	frame_send(&r, group);
	cr_assert_not_null(rig_poll(&r));
	cr_assert_not_null(rig_poll(&r));
	expect_nothing(&r);
}

/* Two equal rules for one QP are one, until the older goes. */
Test(ether, a_qp_gets_each_frame_once)
{
	struct rig r = rig_new();
	struct emu_flow *older = rule(&r, to_station(station, r.w->b.qp));

	rule(&r, to_station(station, r.w->b.qp));
	recv_post(&r.w->b, 4096, 0, 0);
	recv_post(&r.w->b, 4096, 0, 0);
	frame_send(&r, station);
	cr_assert_not_null(rig_poll(&r));
	expect_nothing(&r);
	flow_destroy(older);
	frame_send(&r, station);
	cr_assert_not_null(rig_poll(&r));
}

Test(ether, a_context_may_block_its_own_multicast)
{
	struct rig r = rig_new();

	r.w->b.qp->blocks_loopback = true;
	rule(&r, to_station(group, r.w->b.qp));
	rule(&r, to_station(station, r.w->b.qp));
	recv_post(&r.w->b, 4096, 0, 0);
	frame_send(&r, group);
	expect_nothing(&r);
	frame_send(&r, station);
	cr_assert_not_null(rig_poll(&r));
}

Test(ether, a_qp_that_is_not_ready_gets_nothing)
{
	struct rig r = rig_new();
	struct qp_attr reset = { .state = QP_RESET };

	rule(&r, to_station(station, r.w->b.qp));
	cr_assert_eq(qp_modify(&r.w->dev, r.w->b.qp, &reset, A_STATE), 0);
	frame_send(&r, station);
	expect_nothing(&r);
	expect_last_why(&r, WHY_PACKET_QP_STATE);
}

Test(ether, nothing_passes_a_port_that_is_down)
{
	struct rig r = rig_new();

	rule(&r, to_station(station, r.w->b.qp));
	recv_post(&r.w->b, 4096, 0, 0);
	r.w->dev.port.is_down = true;
	frame_send(&r, station);
	expect_nothing(&r);
	expect_last_why(&r, WHY_PORT_DOWN);
}

/* --- spread over queues --- */

struct queue {
	struct emu_wq *wq;
	uint8_t *ring;
	uint32_t *record;
};

static struct queue queue_new(struct rig *r, uint32_t user_index)
{
	struct queue q = { .ring = world_memory(4096), .record = world_memory(64) };
	struct wq_init init = { .pd = r->w->pd, .cq = r->w->cq, .async = r->w->async,
		.buf_addr = (uintptr_t)q.ring, .db_addr = (uintptr_t)q.record, .wqe_count = 16,
		.stride = 64, .max_wr = 16, .user_index = user_index,
		.frames.has_flow_tags = true };
	struct mlx5_data end = { 0 };

	cr_assert_eq(wq_create(&r->w->dev, &init, &q.wq), 0);
	cr_assert_eq(wq_modify(&r->w->dev, q.wq, WQ_RESET, WQ_RDY), 0);
	mlx5_data_set_lkey(&end, HW_LKEY_END);
	for (unsigned i = 0; i < 16; i++) {
		data_write(&r->w->b, q.ring + i * 64, 4096, 0, 0);
		memcpy(q.ring + i * 64 + 16, &end, 16);
	}
	q.record[0] = htobe32(16);
	return q;
}

static uint32_t user_index_of(const uint8_t *cqe)
{
	return (uint32_t)cqe[33] << 16 | cqe[34] << 8 | cqe[35];
}

struct spread {
	struct queue q[QUEUES];
	struct emu_wq *wq[4];
	struct rss hash;
};

static struct spread spread_new(struct rig *r)
{
	struct spread s = {
		.q = { queue_new(r, 100), queue_new(r, 101) },
		.hash = { .fields = RSS_SRC_IPV4 },
	};
	struct emu_rwq_table *table;
	struct emu_qp *qp;

	for (unsigned i = 0; i < RSS_KEY_BYTES; i++)
		s.hash.key[i] = (uint8_t)(i * 73 + 11);
	for (unsigned i = 0; i < 4; i++)
		s.wq[i] = s.q[i == 1 || i == 2].wq;
	cr_assert_eq(rwq_table_create(&r->w->dev, s.wq, 4, &table), 0);
	cr_assert_eq(rss_qp_create(&r->w->dev, r->w->pd, table, &s.hash, &qp), 0);
	rule(r, to_station(station, qp));
	return s;
}

Test(ether, a_hash_spreads_frames)
{
	struct rig r = rig_new();
	struct spread s = spread_new(&r);
	unsigned got[QUEUES] = { 0 };

	for (unsigned i = 0; i < 16; i++) {
		const uint8_t *cqe;
		uint32_t hash, told;

		packet_send(&r, (uint8_t)i);
		cqe = rig_poll(&r);
		cr_assert_not_null(cqe);
		hash = rss_toeplitz(s.hash.key, r.w->a.data + 26, 4);
		memcpy(&told, cqe + 12, 4);
		cr_assert_eq(be32toh(told), hash);
		cr_assert_eq(user_index_of(cqe), s.wq[hash & 3] == s.q[0].wq ? 100 : 101);
		got[user_index_of(cqe) - 100]++;
	}
	cr_assert(got[0] && got[1], "%u and %u", got[0], got[1]);
}

Test(ether, what_can_not_be_hashed_goes_to_the_first_queue)
{
	struct rig r = rig_new();
	const uint8_t *cqe;

	spread_new(&r);
	frame_send(&r, station);
	cqe = rig_poll(&r);
	cr_assert_not_null(cqe);
	cr_assert_eq(user_index_of(cqe), 100);
	cr_assert_eq(cqe[12] | cqe[13] | cqe[14] | cqe[15] | cqe[16], 0);
}

/* The others go on. */
Test(ether, a_queue_in_error_gets_nothing)
{
	struct rig r = rig_new();
	struct spread s = spread_new(&r);

	cr_assert_eq(wq_modify(&r.w->dev, s.q[0].wq, WQ_RDY, WQ_ERR), 0);
	engine_qp_kick(r.e, s.q[0].wq->qp);
	engine_run(r.e);
	for (unsigned i = 0; i < 16; i++) {
		const uint8_t *cqe = rig_poll(&r);

		cr_assert_not_null(cqe);
		cr_assert_eq(cqe[63] >> 4, HW_CQE_RECV_ERR, "posted receives are flushed");
	}
	frame_send(&r, station);
	expect_nothing(&r);
	expect_last_why(&r, WHY_PACKET_QP_STATE);
	cr_assert_eq(wq_state(s.q[0].wq), WQ_ERR);
}
