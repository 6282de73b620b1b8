/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include "hw-models/mlx5_cqe.h"
#include "hw-models/mlx5_opcode.h"
#include "hw-models/mlx5_wqe.h"
#include "verbs/poll.h"
#include "verbs/scatter.h"
#include "verbs/wqe.h"

/* Where the entry has the data, and at most how much. */
static const uint8_t *data_of(const struct vb_cq *cq, uint32_t *bytes)
{
	const struct mlx5_cqe *e = (const void *)cq->current;
	bool is_before = mlx5_cqe_format(e) == MLX5_CQE_DATA_64;
	uint32_t most = is_before ? MLX5_CQE_BYTES : MLX5_CQE_INLINE_BYTES;

	*bytes = mlx5_cqe_byte_count(e);
	if (*bytes > most)
		*bytes = most;
	return is_before ? cq->current - MLX5_CQE_BYTES : cq->current;
}

/* Fills one segment; what is left. */
static uint32_t put(const struct mlx5_data *seg, const uint8_t **from, uint32_t bytes)
{
	uint32_t here = mlx5_data_byte_count(seg);

	if (here > bytes)
		here = bytes;
	memcpy((void *)(uintptr_t)mlx5_data_addr(seg), *from, here);
	*from += here;
	return bytes - here;
}

void vb_scatter_receive(const struct vb_cq *cq, const struct vb_ring *ring, uint32_t at,
			bool is_shared)
{
	const uint8_t *entry = ring->at + ((size_t)at << ring->entry_shift);
	const struct mlx5_data *seg = (const void *)(entry + (is_shared ? MLX5_UNIT_BYTES : 0));
	const struct mlx5_data *end = (const void *)(entry + ((size_t)1 << ring->entry_shift));
	uint32_t bytes;
	const uint8_t *from = data_of(cq, &bytes);

	for (; seg < end && bytes && mlx5_data_lkey(seg) != HW_LKEY_END; seg++)
		bytes = put(seg, &from, bytes);
}

void vb_scatter_send(const struct vb_cq *cq, const struct vb_qp *qp, uint32_t at)
{
	const uint8_t *wqe = qp->sq.at + (size_t)at * VB_SQ_BLOCK_BYTES;
	const struct mlx5_ctrl *ctrl = (const void *)wqe;
	uint32_t units = mlx5_ctrl_ds(ctrl), opcode = mlx5_ctrl_opcode(ctrl), bytes;
	const uint8_t *from = data_of(cq, &bytes);
	/* Control, prefix, remote address, and operands if there are some. */
	uint32_t first = 2 + qp->prefix_units + (opcode == MLX5_OPCODE_RDMA_READ ? 0 : 1);

	if (opcode != MLX5_OPCODE_RDMA_READ)
		bytes = 8;
	for (uint32_t i = 1; i < units && bytes; i++) {
		wqe = wqe_wrap(qp, (uint8_t *)(uintptr_t)wqe + MLX5_UNIT_BYTES);
		if (i >= first)
			bytes = put((const void *)wqe, &from, bytes);
	}
}
