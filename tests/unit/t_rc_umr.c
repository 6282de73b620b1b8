/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Binding and invalidating from an RC send queue: when it takes effect, how often, and when it
 * completes.
 *
 * Method: the harness of the RC transport; the queue's bytes are those of libmlx5.
 * Source: IBTA volume 1, 10.8.3.3 (ordering); device-abi C.3.12.
 */
#include "tests/unit/rc_world.h"

enum { SEND_INV = 0x01, WRITE = 0x08, SEND = 0x0a, READ = 0x10, UMR = 0x25 };
enum { WINDOW_AT = 4096, WINDOW_BYTES = 4096 };

static struct world *w;
static struct emu_mr *region;		/* a's memory, where windows may be bound */
static struct emu_mw *mw;

static void start(void)
{
	w = world_new();
	cr_assert_eq(mr_create(&w->dev, w->pd, (uintptr_t)w->a.data, WORLD_BYTES,
			       (uintptr_t)w->a.data, KEY_LOCAL_WRITE | KEY_MW_BIND, &region), 0);
	cr_assert_eq(mw_create(&w->dev, w->pd, MW_TYPE_2, &mw), 0);
}

TestSuite(rc_umr, .init = start);

/* --- what libmlx5 writes --- */

struct umr {
	struct mlx5_ctrl ctrl;
	struct mlx5_umr_ctrl umr;
	struct mlx5_mkey_context mkey;
	struct mlx5_klm klm[4];
};
static_assert(sizeof(struct umr) == 192, "three blocks");

static void umr_post(struct side *s, struct umr *u, uint32_t units, uint8_t fence)
{
	unsigned blocks = (units + 3) / 4;

	mlx5_ctrl_set_wqe_index(&u->ctrl, s->posted_blocks);
	mlx5_ctrl_set_opcode(&u->ctrl, UMR);
	mlx5_ctrl_set_qpn(&u->ctrl, s->qp->qpn);
	mlx5_ctrl_set_ds(&u->ctrl, units);
	mlx5_ctrl_set_completion(&u->ctrl, MLX5_COMPLETION_ALWAYS);
	mlx5_ctrl_set_fence(&u->ctrl, fence);
	mlx5_ctrl_set_imm(&u->ctrl, mw->key);
	for (unsigned i = 0; i < blocks; i++)
		memcpy(side_block(s, (uint16_t)(s->posted_blocks + i)), (uint8_t *)u + i * 64, 64);
	s->posted_blocks = (uint16_t)(s->posted_blocks + blocks);
	s->record[1] = htobe32(s->posted_blocks);
}

static void bind_post(struct side *s, uint32_t bytes, uint8_t fence)
{
	struct umr u = { 0 };

	mlx5_umr_ctrl_set_flags(&u.umr, MLX5_UMR_INLINE | MLX5_UMR_TRANSLATION_OFFSET |
				MLX5_UMR_CHECK_FREE);
	mlx5_umr_ctrl_set_klm_octowords(&u.umr, 4);
	mlx5_umr_ctrl_set_mkey_mask(&u.umr, UMR_LEN | UMR_START | UMR_TAG | UMR_QPN | UMR_FREE |
				    UMR_LOCAL_WRITE | UMR_REMOTE_READ | UMR_REMOTE_WRITE |
				    UMR_ATOMIC);
	mlx5_mkey_context_set_access(&u.mkey, MLX5_MKEY_REMOTE_WRITE | MLX5_MKEY_REMOTE_READ);
	mlx5_mkey_context_set_qpn(&u.mkey, s->qp->qpn);
	mlx5_mkey_context_set_variant(&u.mkey, (mw->key + 1) & 0xff);
	mlx5_mkey_context_set_start_addr(&u.mkey, (uintptr_t)w->a.data + WINDOW_AT);
	mlx5_mkey_context_set_len(&u.mkey, bytes);
	mlx5_klm_set_byte_count(&u.klm[0], bytes);
	mlx5_klm_set_mkey(&u.klm[0], region->key);
	mlx5_klm_set_addr(&u.klm[0], (uintptr_t)w->a.data + WINDOW_AT);
	umr_post(s, &u, 12, fence);
}

static void invalidate_post(struct side *s, uint8_t fence)
{
	struct umr u = { 0 };

	mlx5_umr_ctrl_set_flags(&u.umr, MLX5_UMR_INLINE | MLX5_UMR_TRANSLATION_OFFSET |
				MLX5_UMR_CHECK_QPN);
	mlx5_umr_ctrl_set_mkey_mask(&u.umr, UMR_TAG | UMR_QPN | UMR_FREE);
	mlx5_mkey_context_set_free(&u.mkey, 1);
	mlx5_mkey_context_set_qpn(&u.mkey, 0xffffff);
	umr_post(s, &u, 8, fence);
}

static struct work_row to_b(uint8_t opcode, uint32_t bytes)
{
	return (struct work_row){ .opcode = opcode, .bytes = bytes,
		.remote = (uintptr_t)w->b.data, .rkey = w->b.mr->key };
}

static bool loses_requests(struct world *world, const struct ib_packet *p)
{
	(void)world;
	return !ib_is_answer(p->opcode);
}

static bool loses_answers(struct world *world, const struct ib_packet *p)
{
	(void)world;
	return ib_is_answer(p->opcode);
}

static void expect_umr(void)
{
	struct hw_cqe c = world_cqe(w, &w->a);

	cr_assert_eq(c.kind, HW_CQE_REQ, "syndrome %#x", c.syndrome);
	cr_assert_eq(c.wqe_opcode, UMR);
}

static void expect_sent(uint8_t opcode)
{
	struct hw_cqe c = world_cqe(w, &w->a);

	cr_assert_eq(c.kind, HW_CQE_REQ, "syndrome %#x", c.syndrome);
	cr_assert_eq(c.wqe_opcode, opcode);
}

Test(rc_umr, a_window_is_bound_and_invalidated)
{
	bind_post(&w->a, WINDOW_BYTES, 0);
	pump(w);
	expect_umr();
	cr_assert(mw->is_bound);
	cr_assert_eq(w->packets, 0);
	work_post(&w->b, (struct work_row){ .opcode = WRITE, .bytes = 8, .rkey = mw->key,
		.remote = (uintptr_t)w->a.data + WINDOW_AT });
	pump(w);
	expect_good(w, &w->b, HW_CQE_REQ);
	invalidate_post(&w->a, MLX5_FENCE_INITIATOR_SMALL);
	pump(w);
	expect_umr();
	cr_assert_not(mw->is_bound);
	work_post(&w->b, (struct work_row){ .opcode = WRITE, .bytes = 8, .rkey = mw->key,
		.remote = (uintptr_t)w->a.data + WINDOW_AT });
	pump(w);
	expect_status(w, &w->b, HW_REM_ACCESS);
	expect_why(w, WHY_WINDOW_FREE);
}

/* It need not wait for acknowledgements, but its completion stands in line. */
Test(rc_umr, a_bind_takes_effect_before_earlier_requests_are_acknowledged)
{
	w->loses = loses_answers;
	work_post(&w->a, to_b(WRITE, 64));
	bind_post(&w->a, WINDOW_BYTES, 0);
	work_post(&w->a, to_b(WRITE, 64));
	pump(w);
	cr_assert(mw->is_bound);
	cr_assert_eq(world_cqes(w, &w->a), 0);
	w->loses = NULL;
	rc_timer(&w->tp, w->a.qp);
	pump(w);
	expect_sent(WRITE);
	expect_umr();
	expect_sent(WRITE);
	cr_assert_eq(world_cqes(w, &w->a), 0);
}

/* Once: a type 2 window that is bound already could not be bound. */
Test(rc_umr, a_repetition_of_earlier_requests_does_not_bind_again)
{
	w->loses = loses_requests;
	work_post(&w->a, to_b(WRITE, 3000));
	bind_post(&w->a, WINDOW_BYTES, 0);
	work_post(&w->a, to_b(READ, 3000));
	invalidate_post(&w->a, 0);
	work_post(&w->a, to_b(WRITE, 64));
	pump(w);
	rc_timer(&w->tp, w->a.qp);
	pump(w);
	cr_assert_eq(world_cqes(w, &w->a), 0);
	w->loses = NULL;
	rc_timer(&w->tp, w->a.qp);
	pump(w);
	expect_sent(WRITE);
	expect_umr();
	expect_sent(READ);
	expect_umr();
	expect_sent(WRITE);
	cr_assert_not(mw->is_bound);
}

/* Nobody acknowledges after the answer of the READ. */
Test(rc_umr, a_bind_behind_a_read_completes_with_it)
{
	work_post(&w->a, to_b(READ, 64));
	bind_post(&w->a, WINDOW_BYTES, 0);
	tp_doorbell(&w->tp, w->a.qp);
	cr_assert(world_step(w, w->a.qp));
	cr_assert_not(world_step(w, w->a.qp));
	cr_assert(mw->is_bound);
	pump(w);
	expect_sent(READ);
	expect_umr();
	cr_assert_eq(w->a.qp->req.sent_head, w->a.qp->req.sent_tail);
}

Test(rc_umr, a_fence_waits_for_reads)
{
	bind_post(&w->a, WINDOW_BYTES, 0);
	pump(w);
	expect_umr();
	w->loses = loses_answers;
	work_post(&w->a, to_b(READ, 64));
	invalidate_post(&w->a, MLX5_FENCE_SMALL_AND_READS);
	pump(w);
	cr_assert(mw->is_bound, "the READ has no data yet");
	w->loses = NULL;
	rc_timer(&w->tp, w->a.qp);
	pump(w);
	expect_sent(READ);
	expect_umr();
	cr_assert_not(mw->is_bound);
}

Test(rc_umr, without_a_fence_reads_are_not_waited_for)
{
	bind_post(&w->a, WINDOW_BYTES, 0);
	pump(w);
	w->loses = loses_answers;
	work_post(&w->a, to_b(READ, 64));
	invalidate_post(&w->a, MLX5_FENCE_INITIATOR_SMALL);
	pump(w);
	cr_assert_not(mw->is_bound);
}

/* What comes first completes first, and nothing behind the failure starts. */
Test(rc_umr, a_bind_that_fails_waits_for_its_turn)
{
	w->loses = loses_answers;
	work_post(&w->a, to_b(WRITE, 64));
	bind_post(&w->a, WORLD_BYTES, 0);
	work_post(&w->a, to_b(SEND, 64));
	pump(w);
	cr_assert_eq(w->a.qp->state, QP_RTS);
	cr_assert_eq(world_cqes(w, &w->a), 0);
	w->loses = NULL;
	rc_timer(&w->tp, w->a.qp);
	pump(w);
	expect_sent(WRITE);
	expect_status(w, &w->a, HW_MW_BIND);
	expect_status(w, &w->a, HW_FLUSHED);
	expect_why(w, WHY_KEY_RANGE);
	cr_assert_not(mw->is_bound);
}

Test(rc_umr, a_request_that_changes_while_it_waits_is_not_executed)
{
	w->loses = loses_answers;
	work_post(&w->a, to_b(READ, 64));
	bind_post(&w->a, WINDOW_BYTES, MLX5_FENCE_SMALL_AND_READS);
	pump(w);
	cr_assert_not(mw->is_bound);
	side_block(&w->a, 1)[3] = 0;		/* a NOP now */
	w->loses = NULL;
	rc_timer(&w->tp, w->a.qp);
	pump(w);
	expect_sent(READ);
	expect_status(w, &w->a, HW_LOC_QP_OP);
	expect_why(w, WHY_WQE_CHANGED);
}

Test(rc_umr, every_refusal_has_its_reason)
{
	bind_post(&w->a, WINDOW_BYTES, 0);
	bind_post(&w->a, WINDOW_BYTES, 0);
	pump(w);
	expect_umr();
	expect_status(w, &w->a, HW_MW_BIND);
	expect_why(w, WHY_WINDOW_BOUND);
}

/* --- the peer invalidates --- */

static void send_inv(uint32_t key)
{
	struct work_row r = to_b(SEND_INV, 16);

	r.imm = key;
	recv_post(&w->a, 64, 0, 0);
	work_post(&w->b, r);
	pump(w);
}

Test(rc_umr, a_send_with_invalidate_frees_before_it_completes)
{
	struct hw_cqe c;

	bind_post(&w->a, WINDOW_BYTES, 0);
	pump(w);
	expect_umr();
	send_inv(mw->key);
	expect_good(w, &w->b, HW_CQE_REQ);
	c = world_cqe(w, &w->a);
	cr_assert_eq(c.kind, HW_CQE_RECV_INV);
	cr_assert_eq(c.imm, mw->key);
	cr_assert_eq(c.bytes, 16);
	cr_assert_not(mw->is_bound);
}

Test(rc_umr, a_send_with_invalidate_is_refused_by_the_receive)
{
	bind_post(&w->a, WINDOW_BYTES, 0);
	pump(w);
	expect_umr();
	send_inv(mw->key ^ 1);
	expect_good(w, &w->b, HW_CQE_REQ);
	expect_status(w, &w->a, HW_REM_INV_REQ);
	expect_why(w, WHY_INVALIDATE_KEY);
	cr_assert(mw->is_bound);
}
