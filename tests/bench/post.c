/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What our library itself takes for ibv_post_send() of one inline request, and nothing behind it:
 * the device of tests/verbs/script.h takes the doorbell and does nothing.
 *
 * A program of its own, since the others are linked with the system's libibverbs.  Slices are of
 * POSTS calls; completing and polling them is not counted.
 */
#include "bench.h"
#include "hw-models/mlx5_opcode.h"
#include "tests/verbs/script.h"

enum { POSTS = 32, BYTES = 8, SLICES = 4000 };

static uint32_t completed;

static void complete_all(struct vb_qp *qp)
{
	struct hw_cqe cqe = {
		.kind = HW_CQE_REQ, .user_index = qp->queue.user_index,
		.qpn = qp->ex.qp_base.qp_num, .wqe_opcode = MLX5_OPCODE_SEND,
		.wqe_counter = (uint16_t)(qp->sq.head - 1),	/* each is one block */
	};
	struct ibv_cq *cq = qp->ex.qp_base.send_cq;
	struct ibv_wc wc;

	script_complete(vb_cq_of(cq), completed++, &cqe);
	if (ibv_poll_cq(cq, 1, &wc) != 1 || wc.status != IBV_WC_SUCCESS)
		die("bench_post: no completion");
}

static double slice_ns(struct vb_qp *qp)
{
	static uint8_t data[BYTES];
	struct ibv_sge sge = { .addr = (uintptr_t)data, .length = BYTES };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
				  .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED }, *bad;
	uint64_t start = ticks(), took;

	for (unsigned i = 0; i < POSTS; i++)
		if (ibv_post_send(vb_qp_base(qp), &wr, &bad))
			die("bench_post: request %u is refused", i);
	took = ticks() - start;
	complete_all(qp);
	return ticks_ns(took) / POSTS;
}

int main(void)
{
	struct vb_qp *qp = script_rc(script_open(), POSTS);

	clock_start();
	pin(0);
	for (int round = 0; round < ROUNDS; round++) {
		double best = 1e18;

		for (int i = 0; i < SLICES; i++) {
			double ns = slice_ns(qp);

			best = ns < best ? ns : best;
		}
		tell_round(best, 0);
	}
	return 0;
}
