/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_wr_*(): a batch is posted as a whole or not at all.
 *
 * What single requests look like in the ring is t_wqe.c.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include "hw-models/mlx5_wqe.h"
#include "script.h"
#include "verbs/build.h"

#define OPS (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_LOCAL_INV | \
	     IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_RDMA_WRITE)

static struct ibv_context *context;
static struct vb_qp *qp;
static struct ibv_qp_ex *ex;
static uint8_t data[512];

static void setup(void)
{
	context = script_open();
	qp = script_qp(&(struct script_qp){
		.type = IBV_QPT_RC, .pd = ibv_alloc_pd(context), .send_cq = script_cq(context, 63),
		.recv_cq = script_cq(context, 1), .depth = 4, .sges = 4, .inline_bytes = 64,
		.ops = OPS,
	});
	ex = ibv_qp_to_qp_ex(vb_qp_base(qp));
	cr_assert(ex);
}

TestSuite(build, .init = setup);

static uint32_t record(void)
{
	return be32toh(qp->record[1]);
}

static struct mlx5_ctrl ctrl_at(uint32_t index)
{
	struct mlx5_ctrl ctrl;

	memcpy(&ctrl, qp->sq.at + (size_t)index * VB_SQ_BLOCK_BYTES, sizeof ctrl);
	return ctrl;
}

static void put_send(uint64_t wr_id)
{
	ex->wr_id = wr_id;
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, 7, (uintptr_t)data, 8);
}

/* The lock is free, so another batch can begin, and it begins where the last good one ended. */
static void check_nothing_posted(void)
{
	cr_assert_eq(script.rang, 0);
	cr_assert_eq(record(), 0);
	cr_assert_eq(qp->sq.head, 0);
	cr_assert_eq(qp->sq.produced, 0);
	cr_assert_eq(qp->sq.lock.is_taken, 0);
	ibv_wr_start(ex);
	put_send(1);
	cr_assert_eq(ibv_wr_complete(ex), 0);
	cr_assert_eq(record(), 1);
	cr_assert_eq(qp->sq.wr_id[0], 1);
	cr_assert_eq(script.rang, 1);
}

Test(build, a_batch_rings_once)
{
	struct mlx5_ctrl ctrl;

	ibv_wr_start(ex);
	for (unsigned i = 0; i < 3; i++) {
		ex->wr_flags = i == 1 ? IBV_SEND_SIGNALED : 0;
		put_send(i + 10);
	}
	cr_assert_eq(script.rang, 0);
	cr_assert_eq(ibv_wr_complete(ex), 0);
	cr_assert_eq(script.rang, 1);
	cr_assert_eq(record(), 3);
	for (unsigned i = 0; i < 3; i++) {
		ctrl = ctrl_at(i);
		cr_assert_eq(qp->sq.wr_id[i], i + 10);
		cr_assert_eq(mlx5_ctrl_completion(&ctrl), i == 1 ? MLX5_COMPLETION_ALWAYS : 0);
	}
}

Test(build, an_empty_batch_rings_nobody)
{
	ibv_wr_start(ex);
	cr_assert_eq(ibv_wr_complete(ex), 0);
	check_nothing_posted();
}

Test(build, abort_takes_everything_back)
{
	ibv_wr_start(ex);
	put_send(5);
	ibv_wr_local_inv(ex, 77);
	put_send(6);
	ibv_wr_abort(ex);
	check_nothing_posted();
}

/* Neither those before the mistake nor those behind it. */
Test(build, an_error_takes_everything_back)
{
	ibv_wr_start(ex);
	put_send(5);
	ibv_wr_local_inv(ex, 77);
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, data, qp->max_inline_bytes + 1);
	put_send(6);
	cr_assert_eq(ibv_wr_complete(ex), ENOMEM);
	check_nothing_posted();
}

/* Each setter adds to the request; the ring has room for one of its size. */
Test(build, setters_that_go_on_and_on)
{
	uint32_t head = qp->sq.head;

	for (int is_inline = 0; is_inline < 2; is_inline++) {
		ibv_wr_start(ex);
		ibv_wr_send(ex);
		for (int i = 0; i < 1000; i++)
			if (is_inline)
				ibv_wr_set_inline_data(ex, data, 64);
			else
				ibv_wr_set_sge(ex, 1, (uintptr_t)data, 64);
		cr_assert_eq(ibv_wr_complete(ex), ENOMEM);
		cr_assert_eq(qp->sq.head, head);
	}
}

Test(build, too_many_pieces)
{
	struct ibv_sge sge[5] = { { 0, 1, 1 } };

	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_sge_list(ex, 5, sge);
	cr_assert_eq(ibv_wr_complete(ex), ENOMEM);
	check_nothing_posted();
}

Test(build, a_window_that_is_too_large)
{
	struct ibv_mw mw = { .type = IBV_MW_TYPE_2, .rkey = 0x7700 };
	struct ibv_mr mr = { .lkey = 1 };
	struct ibv_mw_bind_info info = { .mr = &mr, .length = (UINT64_C(1) << 31) + 1 };

	ibv_wr_start(ex);
	put_send(5);
	ibv_wr_bind_mw(ex, &mw, 0x7701, &info);
	put_send(6);
	cr_assert_eq(ibv_wr_complete(ex), EOPNOTSUPP);
	check_nothing_posted();
}

Test(build, a_full_ring)
{
	ibv_wr_start(ex);
	for (unsigned i = 0; i <= qp->sq.max_post; i++)
		put_send(i);
	cr_assert_eq(ibv_wr_complete(ex), ENOMEM);
	check_nothing_posted();
	ibv_wr_start(ex);
	for (unsigned i = 1; i < qp->sq.max_post; i++)
		put_send(i);
	cr_assert_eq(ibv_wr_complete(ex), 0, "it holds as many as it was made for");
}

/* An error of one batch is not the next one's. */
Test(build, a_state_that_does_not_send)
{
	script_state(qp, IBV_QPS_RESET);
	ibv_wr_start(ex);
	put_send(1);
	cr_assert_eq(ibv_wr_complete(ex), EINVAL, "unlike a full ring");
	script_state(qp, IBV_QPS_RTS);
	check_nothing_posted();
}

static uint32_t fence_of(uint32_t index)
{
	struct mlx5_ctrl ctrl = ctrl_at(index);

	return mlx5_ctrl_fence(&ctrl);
}

/* A key was changed for good before; what is taken back afterwards must not lose its fence. */
Test(build, a_fence_survives_what_was_taken_back)
{
	ibv_wr_start(ex);
	ibv_wr_local_inv(ex, 77);
	cr_assert_eq(ibv_wr_complete(ex), 0);
	ibv_wr_start(ex);
	put_send(1);
	put_send(2);
	ibv_wr_abort(ex);
	ibv_wr_start(ex);
	put_send(1);
	put_send(2);
	cr_assert_eq(ibv_wr_complete(ex), 0);
	cr_assert_eq(fence_of(2), MLX5_FENCE_INITIATOR_SMALL);
	cr_assert_eq(fence_of(3), MLX5_FENCE_NONE);
}

/* Setters before the first request, and after a request that failed, have nothing to set. */
Test(build, setters_without_a_request)
{
	ibv_wr_start(ex);
	ibv_wr_set_sge(ex, 7, (uintptr_t)data, 8);
	ibv_wr_set_inline_data(ex, data, 8);
	cr_assert_eq(ibv_wr_complete(ex), 0);
	check_nothing_posted();
}

Test(build, only_one_inline_request_is_copied_to_the_register)
{
	uint8_t *at = qp->reg->at;

	ibv_wr_start(ex);
	ibv_wr_send(ex);
	memset(data, 0x77, sizeof data);
	ibv_wr_set_inline_data(ex, data, 44);
	cr_assert_eq(ibv_wr_complete(ex), 0);
	cr_assert_eq(at[63], 0x77);
	at += SCRIPT_BF_BYTES / 2;
	ibv_wr_start(ex);
	put_send(1);
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, data, 44);
	cr_assert_eq(ibv_wr_complete(ex), 0);
	cr_assert_eq(at[63], 0);
	cr_assert_eq(at[2], 2, "the last one's index");
}

/* The lock is held over the batch. */
Test(build, nobody_posts_in_between)
{
	ibv_wr_start(ex);
	cr_assert_eq(qp->sq.lock.is_taken, 1);
	ibv_wr_abort(ex);
	cr_assert_eq(qp->sq.lock.is_taken, 0);
}

Test(build, what_a_type_can_be_asked_for)
{
	static const struct { enum ibv_qp_type type; uint64_t has, lacks; } rows[] = {
		{ IBV_QPT_RC, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, IBV_QP_EX_WITH_TSO },
		{ IBV_QPT_XRC_SEND, IBV_QP_EX_WITH_RDMA_READ, IBV_QP_EX_WITH_TSO },
		{ IBV_QPT_UC, IBV_QP_EX_WITH_BIND_MW, IBV_QP_EX_WITH_RDMA_READ },
		{ IBV_QPT_UD, IBV_QP_EX_WITH_SEND_WITH_IMM, IBV_QP_EX_WITH_SEND_WITH_INV },
		{ IBV_QPT_RAW_PACKET, IBV_QP_EX_WITH_SEND, IBV_QP_EX_WITH_SEND_WITH_IMM },
		{ IBV_QPT_XRC_RECV, 0, IBV_QP_EX_WITH_SEND },
	};
	struct vb_qp other = { .type = IBV_QPT_RC };

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		uint64_t ops = vb_build_ops_of(rows[i].type);

		cr_assert_eq(ops & rows[i].has, rows[i].has);
		cr_assert_eq(ops & rows[i].lacks, 0);
		other.type = rows[i].type;
		cr_assert_eq(vb_build_begin(&other, rows[i].lacks, 0), EOPNOTSUPP);
	}
	cr_assert_null(ex->wr_rdma_read, "it was not asked for");
}
