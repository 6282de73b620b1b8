/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ends: how work requests complete, how a QP fails, and how it is flushed.
 *
 * Order is the rule here: the failing work request completes first with its own
 * status, everything behind it follows as flushed, one CQE each, signalled or not.
 * Source: IBTA volume 1, 10.3.1.6 and 10.8.5; device-abi F.3.
 */
#include "emu/transport/tp_local.h"
#include "emu/transport/xrc.h"

void tp_qp_fail(struct emu_qp *qp)
{
	qp_state_set(qp, QP_ERR);
	qp->req.deadline_ns = 0;
	qp->req.wants_timer = false;
	qp->req.is_waiting_rnr = false;
	qp->work = (qp->work & ~(uint32_t)QP_WORK_REQUEST) | QP_WORK_FLUSH;
}

void tp_qp_fatal(struct emu_qp *qp)
{
	tp_qp_fail(qp);
	if (!qp->is_armed_fatal)
		qp_event(qp, qp->type == QPT_WQ ? EVENT_WQ_FATAL : EVENT_QP_FATAL);
	qp->is_armed_fatal = true;
}

/* A request of our own can't be done.  Without acknowledgements the other direction does not care:
 * receives go on, and the application may start the send queue again. */
static void send_fail(struct emu_qp *qp)
{
	if (transport_of(qp)->is_reliable) {
		tp_qp_fail(qp);
		return;
	}
	qp_state_set(qp, QP_SQE);
	qp->work = (qp->work & ~(uint32_t)QP_WORK_REQUEST) | QP_WORK_FLUSH;
}

/* Success is told of only when it was asked for; failure always. */
static void send_cqe(struct tp *tp, struct emu_qp *qp, const struct rc_sent *sent,
		     enum hw_status status, uint32_t bytes)
{
	struct hw_cqe cqe = {
		.kind = status == HW_SUCCESS ? HW_CQE_REQ : HW_CQE_REQ_ERR,
		.wqe_opcode = sent->opcode,
		.wqe_counter = sent->index,
		.bytes = bytes,
		.syndrome = hw_syndromes[status].syndrome,
		.vendor_err = hw_syndromes[status].vendor_err,
	};

	tp->ops->complete(tp, qp, qp->send_cq, &cqe);
}

void tp_sent_complete(struct tp *tp, struct emu_qp *qp, enum hw_status status, uint32_t bytes)
{
	struct rc_req *r = &qp->req;
	struct rc_sent *sent = rc_sent_at(qp, r->sent_head);

	assert(r->sent_head != r->sent_tail);
	if (r->send_at == r->sent_head) {
		r->send_at++;
		r->send_bytes = 0;
	}
	r->sent_head++;
	r->sq_done += sent->blocks;
	r->read_bytes = 0;
	if (status != HW_SUCCESS && qp->state == QP_RTS)
		send_fail(qp);
	if (status != HW_SUCCESS || sent->is_signaled)
		send_cqe(tp, qp, sent, status, bytes);
}

/* Its receives are in a shared queue, also while it has none in use. */
static bool is_xrc(const struct emu_qp *qp)
{
	return transport_of(qp)->hw == HW_XRC;
}

static void recv_cqe(struct tp *tp, struct emu_qp *qp, struct hw_cqe *cqe)
{
	struct emu_cq *cq = qp->srq && qp->srq->cq ? qp->srq->cq : qp->recv_cq;

	tp_recv_hold(tp, qp);
	if (is_xrc(qp)) {
		cqe->has_origin = true;
		cqe->src_qpn = qp->srq->srqn;
	}
	cqe->wqe_counter = (uint16_t)(qp->srq ? tp_srq_give(qp) : qp->answers.rq_consumed++);
	tp->ops->complete(tp, qp, cq, cqe);
}

/* On these anybody may have sent. */
static bool has_origin(const struct emu_qp *qp)
{
	return transport_of(qp)->is_datagram || qp->type == QPT_DCR;
}

/* What the receiver is told of who sent, and of the way of a datagram. */
static void origin_describe(const struct emu_dev *dev, struct hw_cqe *cqe,
			    const struct ib_packet *p)
{
	const struct ib_extra *x = &p->extra;

	cqe->has_origin = true;
	cqe->src_qpn = p->src_qpn;
	cqe->slid = x->slid;
	if (p->dest_qpn != IB_MULTICAST_QPN)	/* a group's LID is not one of the port's */
		cqe->path_bits = port_path_bits(dev, x->dlid);
	cqe->sl = x->sl & 15;		/* the network's word */
	cqe->grh = x->l3 != IB_L3_NONE;
	cqe->l3 = x->l3 == IB_L3_IPV6 ? 1 : x->l3 == IB_L3_IPV4 ? 2 : 0;
}

void tp_recv_complete(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p, uint32_t bytes)
{
	static const uint8_t kinds[32] = {
		[RC_SEND_LAST] = HW_CQE_RECV, [RC_SEND_ONLY] = HW_CQE_RECV,
		[RC_SEND_LAST_IMM] = HW_CQE_RECV_IMM, [RC_SEND_ONLY_IMM] = HW_CQE_RECV_IMM,
		[RC_WRITE_LAST_IMM] = HW_CQE_RECV_WRITE_IMM,
		[RC_WRITE_ONLY_IMM] = HW_CQE_RECV_WRITE_IMM,
		[RC_SEND_LAST_INVAL] = HW_CQE_RECV_INV, [RC_SEND_ONLY_INVAL] = HW_CQE_RECV_INV,
	};
	struct hw_cqe cqe = {
		.kind = kinds[ib_operation(p->opcode)],
		.bytes = bytes,
		.imm = p->imm,
		.is_solicited = p->is_solicited,
	};

	if (has_origin(qp))
		origin_describe(tp->dev, &cqe, p);
	recv_cqe(tp, qp, &cqe);
}

void tp_recv_complete_frame(struct tp *tp, struct emu_qp *qp, struct hw_cqe *cqe)
{
	recv_cqe(tp, qp, cqe);
}

void tp_recv_fail(struct tp *tp, struct emu_qp *qp, enum hw_status status)
{
	struct hw_cqe cqe = {
		.kind = HW_CQE_RECV_ERR,
		.syndrome = hw_syndromes[status].syndrome,
		.vendor_err = hw_syndromes[status].vendor_err,
	};

	recv_cqe(tp, qp, &cqe);
}

static void flush_why(struct tp *tp, struct emu_qp *qp, enum why_side side, uint32_t index)
{
	dev_why(tp->dev, .why = WHY_FLUSHED, .side = side, .qpn = qp->qpn,
		.peer_qpn = qp->dest_qpn, .wqe_index = (uint16_t)index);
}

/* What was posted but never looked at.  Only opcode and length matter, and a
 * length that leads past the end of what was posted ends there. */
static void flush_unread(struct tp *tp, struct emu_qp *qp)
{
	struct rc_req *r = &qp->req;

	while (r->sq_next != r->sq_produced) {
		uint32_t room = r->sq_produced - r->sq_next;
		struct rc_sent sent = { .index = (uint16_t)r->sq_next };
		uint8_t head[16] = { 0 };
		uint64_t at = (uint64_t)(r->sq_next & (qp->sq_blocks - 1)) * HW_WQEBB_BYTES;
		uint32_t blocks = 1;

		if (!mem_copy_in(head, qp->sq_addr + at, sizeof head))
			blocks = (mlx5_work_units(head) + 3) / 4;
		sent.opcode = head[3];
		r->sq_next += blocks == 0 ? 1 : blocks > room ? room : blocks;
		r->sq_done = r->sq_next;
		flush_why(tp, qp, WHY_SIDE_SEND, sent.index);
		send_cqe(tp, qp, &sent, HW_FLUSHED, 0);
	}
}

/* What is still in a shared queue stays there for other QPs. */
static void flush_shared(struct tp *tp, struct emu_qp *qp)
{
	if (qp->answers.is_holding) {
		flush_why(tp, qp, WHY_SIDE_RECV, qp->answers.held_index);
		tp_recv_fail(tp, qp, HW_FLUSHED);
	}
	xrc_relay_end(qp);
	if (qp->is_last_wqe_told || !transport_of(qp)->respond.next)
		return;
	qp->is_last_wqe_told = true;
	qp_event(qp, EVENT_QP_LAST_WQE);
}

static void flush_own(struct tp *tp, struct emu_qp *qp)
{
	tp_recv_doorbell(tp, qp);
	while (qp->answers.rq_consumed != qp->answers.rq_produced) {
		flush_why(tp, qp, WHY_SIDE_RECV, qp->answers.rq_consumed);
		tp_recv_fail(tp, qp, HW_FLUSHED);
	}
}

static void flush_receives(struct tp *tp, struct emu_qp *qp)
{
	if (qp->srq || is_xrc(qp))
		flush_shared(tp, qp);
	else
		flush_own(tp, qp);
}

/* In SQE only what was to be sent. */
void tp_flush(struct tp *tp, struct emu_qp *qp)
{
	struct rc_req *r = &qp->req;

	while (r->sent_head != r->sent_tail) {
		flush_why(tp, qp, WHY_SIDE_SEND, rc_sent_at(qp, r->sent_head)->index);
		tp_sent_complete(tp, qp, HW_FLUSHED, 0);
	}
	r->psn_out = 0;
	r->reads_out = 0;
	if (qp->sq_blocks)
		flush_unread(tp, qp);
	if (qp->state == QP_ERR)
		flush_receives(tp, qp);
	qp->work &= ~(uint32_t)QP_WORK_FLUSH;
}
