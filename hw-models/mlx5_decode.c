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
#include <string.h>
#include "hw-models/hw.h"
#include "hw-models/mlx5_opcode.h"
#include "hw-models/mlx5_wqe.h"

struct cursor {
	const uint8_t *at, *end;	/* whole units */
	const struct mlx5_ctrl *ctrl;
};

typedef enum hw_fault read_fn(struct cursor *c, struct hw_work *work);

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

/* --- what a transport puts in front --- */

static void av_read_rest(const struct mlx5_datagram *datagram, struct hw_av *av)
{
	be32_t mac[2] = { datagram->dw[5], datagram->dw[6] };

	av->flow_label = mlx5_datagram_flow_label(datagram);
	av->traffic_class = (uint8_t)mlx5_datagram_tclass(datagram);
	av->hop_limit = (uint8_t)mlx5_datagram_hop_limit(datagram);
	av->sgid_index = (uint8_t)mlx5_datagram_sgid_index(datagram);
	av->has_grh = mlx5_datagram_has_grh(datagram);
	memcpy(av->rmac, mac, sizeof av->rmac);
	memcpy(av->rgid, &datagram->dw[8], sizeof av->rgid);
}

/* Up to `dest_qpn` all stands in the first 16 bytes, in which `is_extended` is. */
static enum hw_fault read_av(struct cursor *c, struct hw_av *av)
{
	const struct mlx5_datagram *datagram = (const void *)c->at;
	size_t bytes = sizeof *datagram;

	if (!has_bytes(c, MLX5_DATAGRAM_COMPACT_BYTES))
		return HW_FAULT_DS_SHORT;
	*av = (struct hw_av){
		.is_compact = !mlx5_datagram_is_extended(datagram),
		.dest_qpn = mlx5_datagram_dest_qpn(datagram),
		.rate = (uint8_t)mlx5_datagram_rate(datagram),
		.sl = (uint8_t)mlx5_datagram_sl(datagram),
		.forces_loopback = mlx5_datagram_force_loopback(datagram),
		.path_bits = (uint8_t)mlx5_datagram_path_bits(datagram),
		.udp_sport = (uint16_t)mlx5_datagram_udp_sport(datagram),
		.dlid = (uint16_t)mlx5_datagram_udp_sport(datagram),
	};
	if (av->is_compact)
		bytes = MLX5_DATAGRAM_COMPACT_BYTES;
	else if (has_bytes(c, bytes))
		av_read_rest(datagram, av);
	else
		return HW_FAULT_DS_SHORT;
	c->at += bytes;
	return HW_OK;
}

static enum hw_fault read_ud(struct cursor *c, struct hw_work *work)
{
	const struct mlx5_datagram *datagram = (const void *)c->at;
	enum hw_fault fault = read_av(c, &work->av);

	if (fault == HW_OK)
		work->av.qkey = mlx5_datagram_qkey(datagram);
	return fault;
}

static enum hw_fault read_dci(struct cursor *c, struct hw_work *work)
{
	const struct mlx5_datagram *datagram = (const void *)c->at;
	enum hw_fault fault = read_av(c, &work->av);

	if (fault == HW_OK)
		work->av.dc_key = (uint64_t)mlx5_datagram_qkey(datagram) << 32 |
				  mlx5_datagram_key_low(datagram);
	return fault;
}

static enum hw_fault read_xrc(struct cursor *c, struct hw_work *work)
{
	const struct mlx5_xrc *xrc = (const void *)c->at;

	if (!has_bytes(c, sizeof *xrc))
		return HW_FAULT_DS_SHORT;
	work->srqn = mlx5_xrc_srqn(xrc);
	c->at += sizeof *xrc;
	return HW_OK;
}

/*
 * The header begins in the segment's last two bytes and fills whole units; a VLAN tag to be
 * inserted stands there instead.  TSO needs a header, which its message does not have.
 */
static enum hw_fault read_eth(struct cursor *c, struct hw_work *work)
{
	const struct mlx5_eth *eth = (const void *)c->at;
	size_t unit = MLX5_UNIT_BYTES, start = sizeof *eth - MLX5_ETH_START_BYTES;
	uint32_t bytes;

	if (!has_bytes(c, sizeof *eth))
		return HW_FAULT_DS_SHORT;
	bytes = mlx5_eth_header_bytes(eth);
	work->eth = (struct hw_eth){
		.checksums = (uint8_t)mlx5_eth_cs_flags(eth),
		.mss = (uint16_t)mlx5_eth_mss(eth),
		.inserts_vlan = mlx5_eth_inserts_vlan(eth),
		.vlan = (uint16_t)mlx5_eth_header_start(eth),
	};
	if (work->eth.inserts_vlan)
		bytes = 0;
	if (bytes > (size_t)(c->end - c->at) - start || (work->op == HW_OP_TSO && !bytes))
		return HW_FAULT_ETH_HEADER;
	work->eth.header = c->at + start;
	work->eth.header_bytes = (uint16_t)bytes;
	if (bytes > MLX5_ETH_START_BYTES)
		c->at += (start + bytes + unit - 1) / unit * unit;
	else
		c->at += sizeof *eth;
	if (c->at > c->end)
		return HW_FAULT_ETH_HEADER;
	if (bytes && work->op != HW_OP_TSO) {
		work->sge[work->sge_count++] = (struct hw_sge){
			.bytes = bytes, .inline_bytes = work->eth.header,
		};
		work->bytes += bytes;
	}
	return HW_OK;
}

static read_fn *const front_read[HW_TRANSPORT_COUNT] = {
	[HW_UD] = read_ud,
	[HW_XRC] = read_xrc,
	[HW_DCI] = read_dci,
	[HW_RAW] = read_eth,
};

/* libmlx5 writes no address into what concerns no peer, whatever the transport. */
static inline bool has_peer(enum hw_op op)
{
	return op != HW_OP_NOP && op != HW_OP_UMR;
}

/* --- what an opcode has --- */

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
	work->atomic_bytes = sizeof(uint64_t);
	c->at += sizeof *atomic;
	return HW_OK;
}

static uint64_t masked_operand(const be32_t *dw, unsigned i, unsigned bytes)
{
	if (bytes == sizeof(uint32_t))
		return be32_load(dw[i]);
	return (uint64_t)be32_load(dw[2 * i]) << 32 | be32_load(dw[2 * i + 1]);
}

static enum hw_fault read_masked(struct cursor *c, struct hw_work *work)
{
	const be32_t *dw = (const void *)c->at;
	bool is_swap = work->op == HW_OP_MASKED_COMPARE_SWAP;
	uint8_t bytes = mlx5_ctrl_opmod(c->ctrl) == MLX5_OPMOD_ATOMIC_4 ? 4 : 8;
	size_t used = is_swap && bytes == 8 ? 2 * MLX5_UNIT_BYTES : MLX5_UNIT_BYTES;

	if (!has_bytes(c, used))
		return HW_FAULT_DS_SHORT;
	work->atomic_bytes = bytes;
	work->swap_add = masked_operand(dw, 0, bytes);
	work->compare = is_swap ? masked_operand(dw, 1, bytes) : 0;
	work->swap_mask = masked_operand(dw, is_swap ? 2 : 1, bytes);
	work->compare_mask = is_swap ? masked_operand(dw, 3, bytes) : 0;
	c->at += used;
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
	if (work->sge_count != 1 || work->bytes != work->atomic_bytes)
		return HW_FAULT_ATOMIC_SGE;
	return HW_OK;
}

/* --- keys --- */

/* The offset counts, by flag, units to leave alone or units of signature behind the translation. */
static enum hw_fault read_umr(struct cursor *c, struct hw_work *work)
{
	const struct mlx5_umr_ctrl *ctrl = (const void *)c->at;
	uint32_t flags;

	if (!has_bytes(c, sizeof *ctrl))
		return HW_FAULT_DS_SHORT;
	flags = mlx5_umr_ctrl_flags(ctrl);
	if (mlx5_umr_ctrl_translation_offset(ctrl))
		return HW_FAULT_UMR_OFFSET;
	if (mlx5_umr_ctrl_klm_octowords(ctrl) && !(flags & MLX5_UMR_INLINE))
		return HW_FAULT_UMR_POINTER;
	work->umr = (struct hw_umr){
		.key = mlx5_ctrl_imm(c->ctrl),
		.needs_free = flags & MLX5_UMR_CHECK_FREE,
		.needs_qpn = flags & MLX5_UMR_CHECK_QPN,
		.mask = mlx5_umr_ctrl_mkey_mask(ctrl),
		.translation_units = mlx5_umr_ctrl_klm_octowords(ctrl),
	};
	c->at += sizeof *ctrl;
	return HW_OK;
}

static uint32_t access_of(uint64_t mask, uint32_t access)
{
	static const struct { enum umr_bit mask; uint32_t key, uverbs; } rights[] = {
		{ UMR_LOCAL_READ, MLX5_MKEY_LOCAL_READ, UMR_GIVES_LOCAL_READ },
		{ UMR_LOCAL_WRITE, MLX5_MKEY_LOCAL_WRITE, UMR_GIVES_LOCAL_WRITE },
		{ UMR_REMOTE_READ, MLX5_MKEY_REMOTE_READ, UMR_GIVES_REMOTE_READ },
		{ UMR_REMOTE_WRITE, MLX5_MKEY_REMOTE_WRITE, UMR_GIVES_REMOTE_WRITE },
		{ UMR_ATOMIC, MLX5_MKEY_ATOMIC, UMR_GIVES_ATOMIC },
	};
	uint32_t out = 0;

	for (unsigned i = 0; i < sizeof rights / sizeof *rights; i++)
		if (mask & rights[i].mask && access & rights[i].key)
			out |= rights[i].uverbs;
	return out;
}

static enum hw_fault read_mkey(struct cursor *c, struct hw_work *work)
{
	const struct mlx5_mkey_context *context = (const void *)c->at;
	struct hw_umr *umr = &work->umr;

	if (!has_bytes(c, sizeof *context))
		return HW_FAULT_DS_SHORT;
	umr->access = access_of(umr->mask, mlx5_mkey_context_access(context));
	if (umr->mask & UMR_FREE)
		umr->frees = mlx5_mkey_context_free(context);
	if (umr->mask & UMR_TAG)
		umr->tag = (uint8_t)mlx5_mkey_context_variant(context);
	if (umr->mask & UMR_QPN)
		umr->qpn = mlx5_mkey_context_qpn(context);
	if (umr->mask & UMR_START)
		umr->start = mlx5_mkey_context_start_addr(context);
	if (umr->mask & UMR_LEN)
		umr->bytes = mlx5_mkey_context_len(context);
	c->at += sizeof *context;
	return HW_OK;
}

/*
 * A list is filled up to 64 bytes with zeros; key 0 does not exist, so nothing that means something
 * ends it.  Units behind those announced are not looked at.
 */
static enum hw_fault read_klm(struct cursor *c, struct hw_work *work)
{
	const struct mlx5_klm *klm = (const void *)c->at;
	const struct mlx5_klm *end = klm + work->umr.translation_units;

	if (!has_bytes(c, work->umr.translation_units * sizeof *klm))
		return HW_FAULT_UMR_LENGTH;
	if (klm < end && mlx5_klm_mkey(klm) == MLX5_KLM_INTERLEAVED)
		return HW_FAULT_UMR_INTERLEAVED;
	for (; klm < end && (mlx5_klm_mkey(klm) || mlx5_klm_byte_count(klm)); klm++) {
		uint32_t bytes = mlx5_klm_byte_count(klm);
		struct hw_sge *sge = &work->sge[work->sge_count++];

		*sge = (struct hw_sge){
			.addr = mlx5_klm_addr(klm),
			.bytes = bytes ? bytes : UINT32_C(1) << 31,
			.lkey = mlx5_klm_mkey(klm),
		};
		work->bytes += sge->bytes;
	}
	return HW_OK;
}

static read_fn *const segment_read[SEG_COUNT] = {
	[SEG_RADDR] = read_raddr,
	[SEG_ATOMIC] = read_atomic,
	[SEG_SOURCE] = read_source,
	[SEG_SINK] = read_sink,
	[SEG_RESULT] = read_result,
	[SEG_MASKED] = read_masked,
	[SEG_UMR] = read_umr,
	[SEG_MKEY] = read_mkey,
	[SEG_KLM] = read_klm,
};

/* --- control --- */

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

static bool has_opmod(enum hw_op op, uint32_t opmod)
{
	if (op == HW_OP_MASKED_COMPARE_SWAP || op == HW_OP_MASKED_FETCH_ADD)
		return opmod == MLX5_OPMOD_ATOMIC_4 || opmod == MLX5_OPMOD_ATOMIC_8;
	return !opmod;
}

static enum hw_fault control_check(const struct mlx5_ctrl *ctrl, unsigned units_max,
				   enum hw_transport transport, const struct hw_work *work)
{
	const struct mlx5_opcode_row *row = &mlx5_opcodes[work->opcode];

	if (!row->name)
		return HW_FAULT_OPCODE_UNKNOWN;
	if (row->op == HW_OP_NONE || !(row->transports & 1u << transport))
		return HW_FAULT_OPCODE_TRANSPORT;
	if (!has_opmod(row->op, mlx5_ctrl_opmod(ctrl)))
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
	struct cursor c = { .at = wqe + sizeof *ctrl, .ctrl = ctrl };
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
	if (front_read[transport] && has_peer(row->op)) {
		fault = front_read[transport](&c, out);
		if (fault)
			return fault;
	}
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

/* --- receives --- */

enum empty_piece { EMPTY_IS_2GIB, EMPTY_IS_EMPTY };

/*
 * There is no inline form here.  libmlx5 makes the bit from a piece of 2^31 bytes or
 * more, longer than any message.
 */
static enum hw_fault list_read(const struct mlx5_data *data, const struct mlx5_data *end,
			       enum empty_piece empty, struct hw_recv *out)
{
	out->bytes = 0;
	out->sge_count = 0;
	for (; data < end; data++) {
		bool is_empty = !mlx5_data_byte_count(data);

		if (mlx5_data_is_inline(data))
			return HW_FAULT_INLINE_OPCODE;
		if (is_empty && mlx5_data_lkey(data) == HW_LKEY_END)
			break;
		if (is_empty && empty == EMPTY_IS_EMPTY)
			continue;
		if (out->sge_count == HW_SGE_MAX)
			return HW_FAULT_DS_LONG;
		sge_point(&out->sge[out->sge_count], data);
		out->bytes += out->sge[out->sge_count++].bytes;
	}
	return HW_OK;
}

enum hw_fault mlx5_recv_read(const uint8_t *wqe, size_t stride, struct hw_recv *out)
{
	const struct mlx5_data *data = (const void *)wqe;

	assert(stride >= sizeof *data && stride <= HW_WQE_BYTES_MAX);
	return list_read(data, data + stride / sizeof *data, EMPTY_IS_2GIB, out);
}

uint16_t mlx5_srq_next(const uint8_t *wqe)
{
	return (uint16_t)mlx5_srq_next_next_wqe_index((const void *)wqe);
}

/*
 * Into a receive queue libmlx5 puts no piece without bytes, so 0 there was written by somebody who
 * knows the field, and is 2^31.  Into a shared one it copies the pieces of a request as they are,
 * and a program that means no bytes must not be given two gigabytes that it never named: here 0
 * is 0.  Nobody misses 2^31, which the call can't express: it is the inline bit.
 */
enum hw_fault mlx5_srq_read(const uint8_t *wqe, size_t stride, struct hw_recv *out,
			    uint16_t *next_out)
{
	const struct mlx5_data *data = (const void *)(wqe + sizeof(struct mlx5_srq_next));
	size_t list_bytes = stride - sizeof(struct mlx5_srq_next);

	assert(list_bytes >= sizeof *data && list_bytes <= HW_WQE_BYTES_MAX);
	*next_out = mlx5_srq_next(wqe);
	return list_read(data, data + list_bytes / sizeof *data, EMPTY_IS_EMPTY, out);
}
