/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A switch with one function at it, for tests of emu/engine: the RC world's two QPs, of type
 * RAW_PACKET, and an engine without a wire; frames are posted by hand.  A rule's value is written
 * where emu/steer/key.h has it.
 */
#ifndef TESTS_UNIT_ETHER_WORLD_H
#define TESTS_UNIT_ETHER_WORLD_H
#include "emu/engine/engine.h"
#include "emu/obj/flow.h"
#include "tests/unit/rc_world.h"

enum { SEND = 0x0a, FRAME = 100, DMAC_BYTES = 6 };

static const uint8_t station[6] = { 0x02, 0, 0, 0, 0, 2 }, group[6] = { 0x01, 0, 0x5e, 1, 2, 3 };

struct rig {
	struct world *w;
	struct engine *e;
	uint32_t read;
};

static inline uint64_t no_time(void)
{
	return 1000;
}

static inline struct rig rig_new(void)
{
	struct rig r = { .w = world_new_of(QPT_RAW, 0) };

	r.w->dev.now_ns = no_time;
	memset(r.w->cq_memory, 0xff, 256 * 64);
	cr_assert_eq(flow_steering_begin(&r.w->dev), 0);
	cr_assert_eq(numbers_init(&r.w->dev.wqns, 1, NULL, NULL), 0);
	cr_assert_eq(engine_create(&r.w->dev, NULL, NULL, &r.e), 0);
	r.w->a.qp->frames.has_flow_tags = r.w->b.qp->frames.has_flow_tags = true;
	return r;
}

/* The next CQE if it is there; user_index stands in byte 32 on, the tag or QPN in 57 on. */
static inline const uint8_t *rig_poll(struct rig *r)
{
	const uint8_t *cqe = r->w->cq_memory + (r->read % 256) * 64;

	if (cqe[63] >> 4 == 15 || (cqe[63] & 1) != (r->read / 256 & 1))
		return NULL;
	r->w->cq_record[0] = htobe32(++r->read & 0xffffff);
	return cqe;
}

/* What is in a's buffer. */
static inline void buffer_send(struct rig *r)
{
	struct side *s = &r->w->a;
	uint8_t *at = side_block(s, s->posted_blocks);
	struct mlx5_ctrl c = { 0 };

	memset(at, 0, 64);
	data_write(s, at + 32, FRAME, 0, 0);
	mlx5_ctrl_set_wqe_index(&c, s->posted_blocks);
	mlx5_ctrl_set_opcode(&c, SEND);
	mlx5_ctrl_set_qpn(&c, s->qp->qpn);
	mlx5_ctrl_set_ds(&c, 3);
	memcpy(at, &c, 16);
	s->record[1] = htobe32(++s->posted_blocks);
	engine_rang(r->e, s->qp->qpn);
}

static inline void frame_send(struct rig *r, const uint8_t dst[6])
{
	static const uint8_t src[6] = { 0x02, 0, 0, 0, 0, 1 };

	memset(r->w->a.data, 0, FRAME);
	memcpy(r->w->a.data, dst, 6);
	memcpy(r->w->a.data + 6, src, 6);
	buffer_send(r);
}

static inline struct flow_init to_station(const uint8_t dst[6], struct emu_qp *qp)
{
	struct flow_init init = { .level = STEER_LEVEL_NORMAL + 1, .qp = qp };

	memcpy(init.value.block[STEER_OUTER] + STEER_DMAC, dst, DMAC_BYTES);
	memset(init.mask.block[STEER_OUTER] + STEER_DMAC, 0xff, DMAC_BYTES);
	return init;
}

static inline struct emu_flow *rule(struct rig *r, struct flow_init init)
{
	struct emu_flow *flow;

	cr_assert_eq(flow_create(&r->w->dev, &init, &flow), 0);
	return flow;
}

static inline void expect_nothing(struct rig *r)
{
	cr_assert_null(rig_poll(r));
}

static inline void expect_last_why(struct rig *r, enum why why)
{
	cr_assert(r->w->why.made);
	cr_assert_eq(r->w->why.record[(r->w->why.made - 1) % WHY_KEPT].why, why);
}
#endif
