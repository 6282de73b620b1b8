/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ethernet frames on their way out and in.
 *
 * The requester is that of RC, as for UC and UD, up to the message; here it becomes a frame, or
 * with TSO one after the other, in memory of the engine: checksums are written into it, and rules
 * look at it.
 *
 * Source: device-abi C.3.7, C.6 (checksums, VLAN), H.2 (flow tag), H.3 (hash); IEEE 802.3.
 */
#include <string.h>
#include "emu/transport/raw.h"
#include "emu/transport/rc.h"
#include "emu/transport/tp_local.h"
#include "emu/transport/ud.h"
#include "hw-models/mlx5_cqe.h"

#define FRAME_BYTES_MIN		60		/* on a wire, without FCS */

/* --- sending --- */

static enum hw_status frame_why(struct tp *tp, struct emu_qp *qp, enum why why, uint64_t bytes,
				uint64_t limit, enum hw_status status)
{
	const struct hw_work *w = &tp->tx.work;

	dev_why(tp->dev, .why = why, .side = WHY_SIDE_SEND, .qpn = qp->qpn,
		.wqe_index = w->index, .opcode = w->opcode, .bytes = bytes, .found = limit);
	return status;
}

/* The part of the message that goes into the next frame, behind @header_bytes. */
static uint32_t part_bytes(const struct emu_qp *qp, const struct hw_work *w)
{
	uint64_t left = w->bytes - qp->req.send_bytes;

	return (uint32_t)(w->op == HW_OP_TSO && left > w->eth.mss ? w->eth.mss : left);
}

static enum hw_status frame_check(struct tp *tp, struct emu_qp *qp, uint32_t header_bytes)
{
	const struct hw_work *w = &tp->tx.work;
	uint32_t inline_min = tp->dev->options.eth_inline_bytes;
	uint64_t bytes;

	if (w->eth.header_bytes < inline_min)
		return frame_why(tp, qp, WHY_FRAME_INLINE, w->eth.header_bytes, inline_min,
				 HW_LOC_QP_OP);
	if (w->op == HW_OP_TSO && (!w->eth.mss || w->bytes > TSO_BYTES_MAX))
		return frame_why(tp, qp, WHY_FRAME_LENGTH, w->bytes, TSO_BYTES_MAX, HW_LOC_LEN);
	bytes = (uint64_t)header_bytes + part_bytes(qp, w);
	if (bytes < FRAME_HEADER_BYTES || bytes > FRAME_BYTES_MAX)
		return frame_why(tp, qp, WHY_FRAME_LENGTH, bytes, FRAME_BYTES_MAX, HW_LOC_LEN);
	return HW_SUCCESS;
}

/* The memory that the message is in, into the frame. */
static enum hw_status payload_copy(struct tp *tp, struct emu_qp *qp, uint32_t at, uint32_t bytes)
{
	const struct hw_work *w = &tp->tx.work;
	struct tp_gather g = { w->sge, w->sge_count, qp->req.send_bytes, bytes, KEY_LOCAL_READ };
	struct iovec to = { tp->frame + at, bytes };
	const struct hw_sge *bad;
	enum why why = tp_gather(tp, &g, &tp->tx, &bad);

	if (why == WHY_NONE && mem_copy_spans(&to, 1, 0, tp->tx.span, tp->tx.span_count, 0,
					      bytes) != MEM_SIDE_NONE) {
		why = WHY_MEMORY_GONE;
		bad = w->sge;
	}
	if (why == WHY_NONE)
		return HW_SUCCESS;
	dev_why(tp->dev, .why = why, .side = WHY_SIDE_SEND, .qpn = qp->qpn, .wqe_index = w->index,
		.opcode = w->opcode, .key = bad->lkey, .addr = bad->addr, .bytes = bad->bytes);
	return HW_LOC_PROT;
}

/* The header of this part of a TCP message. */
static enum hw_status header_cut(struct tp *tp, struct emu_qp *qp)
{
	const struct hw_work *w = &tp->tx.work;
	const struct hw_eth *eth = &w->eth;

	if (offload_segment(eth->header, eth->header_bytes, (uint32_t)w->bytes, eth->mss,
			    qp->req.send_bytes / eth->mss, tp->frame))
		return HW_SUCCESS;
	return frame_why(tp, qp, WHY_FRAME_TSO, eth->header_bytes, 0, HW_LOC_QP_OP);
}

/* What a NIC does last: the tag, padding, checksums. */
static uint32_t frame_finish(struct tp *tp, uint32_t bytes)
{
	const struct hw_eth *eth = &tp->tx.work.eth;
	unsigned checksums = eth->checksums;

	if (eth->inserts_vlan)
		bytes = offload_vlan_insert(tp->frame, bytes, eth->vlan);
	if (tp->tx.work.op == HW_OP_TSO)
		checksums |= OFFLOAD_L3 | OFFLOAD_L4;
	if (checksums)
		offload_checksums(tp->frame, bytes, checksums);
	if (bytes >= FRAME_BYTES_MIN)
		return bytes;
	memset(tp->frame + bytes, 0, FRAME_BYTES_MIN - bytes);
	return FRAME_BYTES_MIN;
}

/* *covered_out: how much of the message is in it. */
static enum hw_status frame_make(struct tp *tp, struct emu_qp *qp, uint32_t *covered_out)
{
	const struct hw_work *w = &tp->tx.work;
	uint32_t header_bytes = w->op == HW_OP_TSO ? w->eth.header_bytes : 0;
	enum hw_status status = frame_check(tp, qp, header_bytes);

	*covered_out = part_bytes(qp, w);
	if (status == HW_SUCCESS && header_bytes)
		status = header_cut(tp, qp);
	if (status == HW_SUCCESS)
		status = payload_copy(tp, qp, header_bytes, *covered_out);
	if (status != HW_SUCCESS)
		return status;
	tp->frame_span.iov_base = tp->frame;
	tp->frame_span.iov_len = frame_finish(tp, header_bytes + *covered_out);
	return HW_SUCCESS;
}

int raw_req_next(struct tp *tp, struct emu_qp *qp, uint32_t bytes_max, struct ib_packet *out)
{
	(void)bytes_max;
	while (rc_req_next(tp, qp, UINT32_MAX, out)) {
		struct rc_sent *sent = rc_sent_at(qp, qp->req.send_at);
		enum hw_status status = frame_make(tp, qp, &out->dma_bytes);

		sent->status = (uint8_t)status;
		if (status != HW_SUCCESS)
			continue;
		out->opcode = IB_ETHERNET | RC_SEND_ONLY;
		out->packet_count = 1;
		out->payload_bytes = (uint32_t)tp->frame_span.iov_len;
		out->span = &tp->frame_span;
		out->span_count = 1;
		return 1;
	}
	return 0;
}

void raw_req_sent(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p)
{
	struct rc_req *r = &qp->req;

	r->send_bytes += p->dma_bytes;
	if (r->send_bytes == rc_sent_at(qp, r->send_at)->bytes)
		tp_sent_complete(tp, qp, HW_SUCCESS, 0);
}

/* --- receiving --- */

#define MACS_BYTES	12		/* a tag comes behind them */
#define PIECES_MAX	3

/* What of a frame goes into memory, and what it says of itself. */
struct taken {
	struct iovec piece[PIECES_MAX];
	unsigned piece_count;
	uint32_t bytes;
	bool has_lost_tag;
	uint8_t fcs[FCS_BYTES];
};

static void piece_add(struct taken *t, const uint8_t *from, uint32_t bytes)
{
	t->piece[t->piece_count++] = (struct iovec){ (void *)(uintptr_t)from, bytes };
	t->bytes += bytes;
}

static void frame_take(const struct emu_qp *qp, const struct frame *f, struct taken *t)
{
	uint32_t skip = MACS_BYTES;

	t->piece_count = 0;
	t->bytes = 0;
	t->has_lost_tag = qp->frames.strips_vlan && f->has_cvlan;
	if (t->has_lost_tag) {
		piece_add(t, f->at, MACS_BYTES);
		skip += VLAN_BYTES;
		piece_add(t, f->at + skip, f->bytes - skip);
	} else {
		piece_add(t, f->at, f->bytes);
	}
	if (!qp->frames.scatters_fcs)
		return;
	offload_fcs(f->at, f->bytes, t->fcs);
	piece_add(t, t->fcs, FCS_BYTES);
}

static void take_why(struct tp *tp, struct emu_qp *qp, const struct taken *t, enum why why)
{
	dev_why(tp->dev, .why = why, .side = WHY_SIDE_RECV, .qpn = qp->qpn,
		.wqe_index = tp_recv_index(qp), .bytes = t->bytes);
}

static void recv_fail(struct tp *tp, struct emu_qp *qp, const struct taken *t, enum why why,
		      enum hw_status status)
{
	take_why(tp, qp, t, why);
	tp_recv_fail(tp, qp, status);
	tp_qp_fail(qp);
}

/* In front of a datagram there is room for the header of a network, which a frame has not got. */
static uint32_t room_before(const struct emu_qp *qp)
{
	return qp->type == QPT_UD ? UD_GRH_BYTES : 0;
}

/* --- strides --- */

#define SHIFT_BYTES	2u

static uint32_t shift_bytes(const struct emu_qp *qp)
{
	return qp->striding.shifts_2 ? SHIFT_BYTES : 0;
}

static uint32_t strides_of(const struct emu_qp *qp, uint32_t bytes)
{
	uint32_t stride_bytes = 1u << qp->striding.stride_log;

	return (shift_bytes(qp) + bytes + stride_bytes - 1) / stride_bytes;
}

static uint32_t strides_left(const struct emu_qp *qp)
{
	return (1u << qp->striding.strides_log) - qp->striding.used;
}

/* Where the frame goes in its WQE. */
static uint32_t stride_offset(const struct emu_qp *qp)
{
	return (qp->striding.used << qp->striding.stride_log) + shift_bytes(qp);
}

/* @count strides of the oldest WQE are used; the completion says which. */
static void strides_use(struct tp *tp, struct emu_qp *qp, uint32_t count, struct hw_cqe *cqe)
{
	struct rc_answers *r = &qp->answers;

	cqe->bytes |= count << MLX5_CQE_STRIDES_SHIFT;
	cqe->wqe_counter = (uint16_t)qp->striding.used;
	cqe->wqe_id = (uint16_t)r->rq_consumed;
	qp->striding.used += count;
	if (!strides_left(qp)) {
		qp->striding.used = 0;
		r->rq_consumed++;
	}
	tp->ops->complete(tp, qp, qp->recv_cq, cqe);
}

/* A frame that does not fit into what is left of a WQE begins the next one. */
static void strides_skip(struct tp *tp, struct emu_qp *qp, uint32_t bytes)
{
	struct hw_cqe filler = { .kind = HW_CQE_RECV, .bytes = MLX5_CQE_FILLER,
				 .has_origin = true };

	if (qp->striding.stride_log && qp->striding.used &&
	    strides_of(qp, bytes) > strides_left(qp))
		strides_use(tp, qp, strides_left(qp), &filler);
}

/* How far in the receive the frame begins. */
static uint32_t frame_offset(const struct emu_qp *qp)
{
	return qp->striding.stride_log ? stride_offset(qp) : room_before(qp);
}

/* A WQE has the memory that its strides say, whatever its pieces do. */
static bool has_room(const struct emu_qp *qp, const struct hw_recv *recv, uint64_t bytes)
{
	return bytes <= recv->bytes &&
	       (!qp->striding.stride_log ||
		bytes <= (uint64_t)1 << (qp->striding.stride_log + qp->striding.strides_log));
}

/* Is a receive there that the frame fits into?  Then its memory is in tp->rx. */
static bool recv_find(struct tp *tp, struct emu_qp *qp, const struct taken *t)
{
	struct hw_recv *recv = &tp->rx.recv;
	struct tp_gather g = { recv->sge, 0, 0, frame_offset(qp) + t->bytes, KEY_LOCAL_WRITE };
	const struct hw_sge *bad;
	int got = tp_recv_fetch(tp, qp);
	enum why why;

	if (got == 0)
		take_why(tp, qp, t, WHY_FRAME_QUEUE);
	else if (got < -1)
		recv_fail(tp, qp, t, WHY_RECV_MALFORMED, HW_LOC_QP_OP_RECV);
	if (got <= 0)
		return false;
	if (!has_room(qp, recv, g.bytes)) {
		recv_fail(tp, qp, t, WHY_RECV_TOO_SMALL, HW_LOC_LEN);
		return false;
	}
	g.sge_count = recv->sge_count;
	why = tp_gather(tp, &g, &tp->rx, &bad);
	if (why != WHY_NONE)
		recv_fail(tp, qp, t, why, HW_LOC_PROT_RECV);
	return why == WHY_NONE;
}

bool raw_has_receives(struct tp *tp, struct emu_qp *qp, uint32_t count)
{
	const struct rc_answers *r = &qp->answers;

	if (qp->srq)
		return tp_srq_has_receives(tp, qp, count);
	return r->rq_produced - r->rq_consumed >= count || tp_recv_doorbell(tp, qp) ||
	       r->rq_produced - r->rq_consumed >= count;
}

/* hds_ip_ext of the PRM. */
enum { CHECK_L2 = 1, CHECK_L3 = 2, CHECK_L4 = 4 };

static struct hw_cqe frame_describe(const struct emu_qp *qp, const struct tp_arrival *a,
				    const struct taken *t)
{
	const struct frame *f = a->frame;
	bool is_inner = qp->frames.looks_inside && f->tunnel != FRAME_NO_TUNNEL;
	const struct frame_layer *layer = is_inner ? &f->inner : &f->outer;

	return (struct hw_cqe){
		.kind = HW_CQE_RECV,
		.bytes = room_before(qp) + t->bytes,
		.has_origin = true,
		.is_frame = qp->frames.has_flow_tags,
		.flow_tag = a->flow_tag,
		.rx_hash = a->rx_hash, .rx_hash_type = a->rx_hash_type,
		.l3_type = layer->l3_type, .l4_type = layer->l4_type,
		.checks_ok = CHECK_L2 | (layer->l3_ok ? CHECK_L3 : 0) |
			     (layer->l4_ok ? CHECK_L4 : 0),
		.has_vlan = t->has_lost_tag, .vlan = t->has_lost_tag ? f->vlan : 0,
	};
}

void raw_take(struct tp *tp, struct emu_qp *qp, const struct tp_arrival *a)
{
	struct hw_cqe cqe;
	struct taken t;

	frame_take(qp, a->frame, &t);
	strides_skip(tp, qp, t.bytes);
	if (!recv_find(tp, qp, &t))
		return;
	if (mem_copy_spans(tp->rx.span, tp->rx.span_count, frame_offset(qp), t.piece, t.piece_count,
			   0, t.bytes) != MEM_SIDE_NONE) {
		recv_fail(tp, qp, &t, WHY_MEMORY_GONE, HW_LOC_PROT_RECV);
		return;
	}
	cqe = frame_describe(qp, a, &t);
	if (qp->striding.stride_log)
		strides_use(tp, qp, strides_of(qp, t.bytes), &cqe);
	else
		tp_recv_complete_frame(tp, qp, &cqe);
}
