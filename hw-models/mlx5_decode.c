/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the bytes of a work request to its meaning, or to the rule they break.
 *
 * Used by the transports for each WQE, on a private copy: the application may change
 * the queue at any time, and here a byte may be read twice.  Bytes are hostile: none
 * beyond the units that a WQE claims, or beyond its control segment, is read.  This
 * is on the path of every message: the output is never cleared as a whole and
 * nothing is allocated.
 *
 * Source: device-abi C.2, C.3 and C.4.
 */
#include "hw-models/hw.h"
#include "hw-models/mlx5_opcode.h"
#include "hw-models/mlx5_wqe.h"

/* hw_work has no place for an address vector, so UD work can't be run yet. */
#define ON_DECODED ON_CONNECTED

#define ATOMIC_BYTES 8

struct cursor {
	const uint8_t *at, *end;	/* whole units */
};

static inline bool has_bytes(const struct cursor *c, size_t bytes)
{
	return (size_t)(c->end - c->at) >= bytes;
}

/*
 * Zero is 2^31, the longest message, because a piece of no bytes needs no segment:
 * libmlx5 leaves those out, and a message of no bytes has no data segment at all.
 */
static inline uint32_t piece_bytes(const struct mlx5_data *data)
{
	uint32_t bytes = mlx5_data_byte_count(data);

	return bytes ? bytes : UINT32_C(1) << 31;
}

static inline void sge_point(struct hw_sge *sge, const struct mlx5_data *data)
{
	sge->addr = mlx5_data_addr(data);
	sge->bytes = piece_bytes(data);
	sge->lkey = mlx5_data_lkey(data);
	sge->inline_bytes = NULL;
}

static enum hw_fault read_raddr(struct cursor *c, struct hw_work *work)
{
	const struct mlx5_raddr *raddr = (const void *)c->at;

	if (!has_bytes(c, sizeof *raddr))
		return HW_FAULT_DS_SHORT;
	work->remote_addr = mlx5_raddr_remote_addr(raddr);
	work->rkey = mlx5_raddr_rkey(raddr);
	c->at += sizeof *raddr;
	return HW_OK;
}

/* For fetch-and-add the second operand is whatever the ring held before. */
static enum hw_fault read_atomic(struct cursor *c, struct hw_work *work)
{
	const struct mlx5_atomic *atomic = (const void *)c->at;

	if (!has_bytes(c, sizeof *atomic))
		return HW_FAULT_DS_SHORT;
	work->swap_add = mlx5_atomic_swap_add(atomic);
	if (work->op == HW_OP_COMPARE_SWAP)
		work->compare = mlx5_atomic_compare(atomic);
	c->at += sizeof *atomic;
	return HW_OK;
}

static enum hw_fault read_inline(struct cursor *c, struct hw_work *work)
{
	uint32_t bytes = mlx5_inline_byte_count((const void *)c->at);
	size_t room = (size_t)(c->end - c->at) - MLX5_INLINE_HEADER_BYTES;
	size_t unit = MLX5_UNIT_BYTES;

	if (bytes > room)
		return HW_FAULT_INLINE_LENGTH;
	if (bytes) {
		work->sge[work->sge_count++] = (struct hw_sge){
			.bytes = bytes,
			.inline_bytes = c->at + MLX5_INLINE_HEADER_BYTES,
		};
		work->bytes += bytes;
	}
	c->at += (MLX5_INLINE_HEADER_BYTES + bytes + unit - 1) / unit * unit;
	return HW_OK;
}

/* What to send: pieces of memory and inline bytes, in any order. */
static enum hw_fault read_source(struct cursor *c, struct hw_work *work)
{
	while (c->at < c->end) {
		const struct mlx5_data *data = (const void *)c->at;

		if (mlx5_data_is_inline(data)) {
			enum hw_fault fault = read_inline(c, work);

			if (fault)
				return fault;
			continue;
		}
		sge_point(&work->sge[work->sge_count], data);
		work->bytes += work->sge[work->sge_count++].bytes;
		c->at += sizeof *data;
	}
	return HW_OK;
}

/* Where to put what comes back: memory only. */
static enum hw_fault read_sink(struct cursor *c, struct hw_work *work)
{
	for (; c->at < c->end; c->at += sizeof(struct mlx5_data)) {
		const struct mlx5_data *data = (const void *)c->at;

		if (mlx5_data_is_inline(data))
			return HW_FAULT_INLINE_OPCODE;
		sge_point(&work->sge[work->sge_count], data);
		work->bytes += work->sge[work->sge_count++].bytes;
	}
	return HW_OK;
}

static enum hw_fault read_result(struct cursor *c, struct hw_work *work)
{
	enum hw_fault fault = read_sink(c, work);

	if (fault)
		return fault;
	if (work->sge_count != 1 || work->bytes != ATOMIC_BYTES)
		return HW_FAULT_ATOMIC_SGE;
	return HW_OK;
}

static enum hw_fault (*const segment_read[SEG_READ_COUNT])(struct cursor *, struct hw_work *) = {
	[SEG_RADDR] = read_raddr,
	[SEG_ATOMIC] = read_atomic,
	[SEG_SOURCE] = read_source,
	[SEG_SINK] = read_sink,
	[SEG_RESULT] = read_result,
};

/* Values that the format does not define get the ordering that is always right. */
static const uint8_t fences[8] = {
	[MLX5_FENCE_NONE] = HW_FENCE_NONE,
	[MLX5_FENCE_INITIATOR_SMALL] = HW_FENCE_SMALL,
	[MLX5_FENCE_READS] = HW_FENCE_READS,
	[MLX5_FENCE_STRONG] = HW_FENCE_STRONG,
	[MLX5_FENCE_SMALL_AND_READS] = HW_FENCE_READS,
	[5] = HW_FENCE_STRONG, [6] = HW_FENCE_STRONG, [7] = HW_FENCE_STRONG,
};

/* Opcodes that carry nothing in imm leave there what the ring held before. */
static uint32_t control_imm(const struct mlx5_ctrl *ctrl, enum hw_op op)
{
	if (op == HW_OP_SEND_IMM || op == HW_OP_WRITE_IMM)
		return ctrl->dw[3].raw;
	return op == HW_OP_SEND_INVAL ? mlx5_ctrl_imm(ctrl) : 0;
}

/* What is valid even if the rest is not. */
static void control_identify(const struct mlx5_ctrl *ctrl, struct hw_work *out)
{
	out->opcode = (uint8_t)mlx5_ctrl_opcode(ctrl);
	out->ds = (uint8_t)mlx5_ctrl_ds(ctrl);
	out->index = (uint16_t)mlx5_ctrl_wqe_index(ctrl);
	out->qpn = mlx5_ctrl_qpn(ctrl);
	out->is_signaled = mlx5_ctrl_completion(ctrl) >= MLX5_COMPLETION_ALWAYS;
}

static enum hw_fault control_check(const struct mlx5_ctrl *ctrl, unsigned units_max,
				   enum hw_transport transport, const struct hw_work *work)
{
	const struct mlx5_opcode_row *row = &mlx5_opcodes[work->opcode];

	if (!row->name)
		return HW_FAULT_OPCODE_UNKNOWN;
	if (row->op == HW_OP_NONE || !(row->transports & ON_DECODED & 1u << transport))
		return HW_FAULT_OPCODE_TRANSPORT;
	if (mlx5_ctrl_opmod(ctrl))
		return HW_FAULT_OPMOD;
	if (!work->ds)
		return HW_FAULT_DS_SHORT;
	return work->ds > units_max ? HW_FAULT_DS_LONG : HW_OK;
}

static void work_start(const struct mlx5_ctrl *ctrl, enum hw_op op, struct hw_work *out)
{
	out->op = op;
	out->fence = fences[mlx5_ctrl_fence(ctrl)];
	out->is_solicited = mlx5_ctrl_solicited(ctrl);
	out->imm = control_imm(ctrl, op);
	out->remote_addr = 0;
	out->rkey = 0;
	out->swap_add = 0;
	out->compare = 0;
	out->bytes = 0;
	out->sge_count = 0;
}

enum hw_fault mlx5_work_read(const uint8_t *wqe, unsigned units_max,
			     enum hw_transport transport, struct hw_work *out)
{
	const struct mlx5_ctrl *ctrl = (const void *)wqe;
	struct cursor c = { .at = wqe + sizeof *ctrl };
	const struct mlx5_opcode_row *row;
	enum hw_fault fault;

	assert(transport < HW_TRANSPORT_COUNT);
	control_identify(ctrl, out);
	fault = control_check(ctrl, units_max, transport, out);
	if (fault)
		return fault;
	row = &mlx5_opcodes[out->opcode];
	c.end = wqe + out->ds * MLX5_UNIT_BYTES;
	work_start(ctrl, row->op, out);
	for (const uint8_t *segment = row->segment; *segment; segment++) {
		fault = segment_read[*segment](&c, out);
		if (fault)
			return fault;
	}
	return HW_OK;
}

unsigned mlx5_work_units(const uint8_t *wqe)
{
	return mlx5_ctrl_ds((const void *)wqe);
}

/*
 * A piece of no bytes under a real key can't come through a receive queue, where
 * libmlx5 leaves it out, but does come through a shared one, where it is copied as
 * it is.  The hardware has one rule for the field, 0 is 2^31, and so has this: what
 * such a piece then receives is still confined by its key.
 *
 * There is no inline form here.  libmlx5 makes the bit from a piece of 2^31 bytes or
 * more, longer than any message.
 */
enum hw_fault mlx5_recv_read(const uint8_t *wqe, size_t stride, struct hw_recv *out)
{
	const struct mlx5_data *data = (const void *)wqe;
	const struct mlx5_data *end = data + stride / sizeof *data;

	assert(stride >= sizeof *data && stride <= HW_WQE_BYTES_MAX);
	out->bytes = 0;
	out->sge_count = 0;
	for (; data < end; data++) {
		if (mlx5_data_is_inline(data))
			return HW_FAULT_INLINE_OPCODE;
		if (!mlx5_data_byte_count(data) && mlx5_data_lkey(data) == HW_LKEY_END)
			break;
		if (out->sge_count == HW_SGE_MAX)
			return HW_FAULT_DS_LONG;
		sge_point(&out->sge[out->sge_count], data);
		out->bytes += out->sge[out->sge_count++].bytes;
	}
	return HW_OK;
}
