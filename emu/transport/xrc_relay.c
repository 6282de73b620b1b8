/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC requests for receive queues of other processes: the target's side.
 *
 * PSNs, answers and events stay with the target.  What a request does to memory and to the queue is
 * done where these are, and only one request is out at a time, so that nothing behind one that is
 * refused has been executed.
 */
#include <errno.h>
#include <stdlib.h>
#include "emu/obj/event_desc.h"
#include "emu/obj/relay.h"
#include "emu/transport/rc_local.h"
#include "emu/transport/resp_local.h"
#include "emu/transport/xrc.h"

/* Numbers are leased by the block, so those of our own queues are in blocks of ours.  A domain
 * without a file is of one process. */
bool xrc_is_elsewhere(const struct emu_qp *qp, uint32_t srqn)
{
	const struct number_space *ours = &qp->dev->srqns;

	return qp->xrc_domain->token >= 0 && !(srqn >> NUMBER_BITS) &&
	       !ours->block[srqn >> NUMBER_BLOCK_BITS];
}

bool xrc_goes_on(const struct emu_qp *qp, uint32_t srqn)
{
	return !qp->srq && qp->relay && qp->relay->srqn == srqn;
}

static void dropped(struct tp *tp, const struct emu_qp *qp, const struct ib_packet *p,
		    enum why why)
{
	dev_why(tp->dev, .why = why, .side = WHY_SIDE_RECV, .qpn = qp->qpn,
		.peer_qpn = p->src_qpn, .psn = p->psn, .opcode = p->opcode);
}

/* What there is no room for is lost as in a switch: the sender finds out, and sends again. */
bool xrc_relay_take(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p)
{
	int rc = relay_keep(qp, p);

	if (rc == -ENOMEM)
		dropped(tp, qp, p, WHY_CMD_LIMIT);
	return rc != -EFAULT;
}

/* --- to the queue's process --- */

static void describe(const struct emu_qp *qp, uint64_t turn, uint32_t srqn, struct ib_packet *out)
{
	out->opcode = IB_RELAY | ib_operation(out->opcode);
	out->dest_qpn = out->src_qpn = qp->qpn;
	/* It is on this host, or not at all. */
	memcpy(out->sgid, qp->sgid, sizeof out->sgid);
	memcpy(out->dgid, qp->sgid, sizeof out->dgid);
	out->extra = (struct ib_extra){
		.srqn = srqn, .relay_domain = qp->xrc_domain->name, .relay_turn = turn,
		.relay_mtu_bytes = qp->mtu_bytes,
	};
}

static void end_describe(const struct emu_qp *qp, struct ib_packet *out)
{
	*out = (struct ib_packet){ .opcode = RELAY_END, .packet_count = 1 };
	describe(qp, qp->relay->turn, qp->relay->srqn, out);
}

/* False: no answer waits for a piece. */
static bool fetch_describe(struct emu_qp *qp, uint32_t bytes_max, struct ib_packet *out)
{
	const struct rc_resource *res = rc_answer_due(qp);
	uint32_t left, max = bytes_max < RELAY_FETCH_MAX ? bytes_max : RELAY_FETCH_MAX;

	if (!res || !res->srqn)
		return false;
	left = res->bytes - res->sent_bytes;
	*out = (struct ib_packet){
		.opcode = RELAY_FETCH, .packet_count = 1, .psn = rc_answer_psn(qp, res),
		.rkey = res->rkey, .va = res->va + res->sent_bytes,
		.dma_bytes = left < max ? left : max,
	};
	describe(qp, qp->relay->fetch_turn + 1, res->srqn, out);
	return out->dma_bytes;
}

static bool takes_requests(const struct emu_qp *qp)
{
	return qp->state == QP_RTR || qp->state == QP_RTS || qp->state == QP_SQD;
}

/* The first request that waits for another process; those before it are done with. */
static bool head_describe(struct tp *tp, struct emu_qp *qp, struct ib_packet *out)
{
	struct relay *relay = qp->relay;
	bool is_readable;

	while (relay->head) {
		const struct ib_packet *p = &relay->head->p;

		if (takes_requests(qp) &&
		    rc_take_request(tp, qp, p, &is_readable) == V_ELSEWHERE) {
			*out = *p;
			describe(qp, relay->turn + 1, p->extra.srqn, out);
			return true;
		}
		relay_pop(qp);
	}
	return false;
}

int xrc_relay_next(struct tp *tp, struct emu_qp *qp, uint32_t bytes_max, struct ib_packet *out)
{
	struct relay *relay = qp->relay;

	if (xrc_far_event_next(qp, out))
		return 1;
	if (relay && relay->must_end) {
		end_describe(qp, out);
		return 1;
	}
	if (relay && relay->wants_fetch && !relay->is_fetching) {
		relay->wants_fetch = fetch_describe(qp, bytes_max, out);
		if (relay->wants_fetch)
			return 1;
	}
	if (relay && !relay->is_out && head_describe(tp, qp, out))
		return 1;
	qp->work &= ~(uint32_t)QP_WORK_RELAY;
	return 0;
}

void xrc_relay_sent(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p)
{
	struct relay *relay = qp->relay;

	(void)tp;
	if (ib_operation(p->opcode) == RELAY_HANDLE) {
		xrc_far_event_sent(qp, p);
	} else if (ib_operation(p->opcode) == RELAY_END) {
		relay->must_end = false;
	} else if (ib_operation(p->opcode) == RELAY_FETCH) {
		relay->wants_fetch = false;
		relay->is_fetching = true;
		relay->fetch_turn = p->extra.relay_turn;
		relay->fetch_srqn = p->extra.srqn;
		relay->fetch_psn = p->psn;
		relay->fetch_bytes = p->dma_bytes;
	} else {
		relay->is_out = true;
		relay->turn = p->extra.relay_turn;
		relay->srqn = p->extra.srqn;
	}
}

/* The target has failed: what its message holds elsewhere is flushed there. */
void xrc_relay_end(struct emu_qp *qp)
{
	struct relay *relay = qp->type == QPT_XRC_TGT ? qp->relay : NULL;

	if (!relay)
		return;
	if (relay->may_hold || relay->is_out) {
		relay->must_end = true;
		qp->work |= QP_WORK_RELAY;
	}
	relay->may_hold = false;
	while (relay->head)
		relay_pop(qp);
}

uint32_t xrc_relay_awaits(const struct emu_qp *qp)
{
	const struct relay *relay = qp->relay;

	if (!relay)
		return 0;
	return relay->is_out ? relay->srqn : relay->is_fetching ? relay->fetch_srqn : 0;
}

/* --- back --- */

static void go_on(struct emu_qp *qp)
{
	if (relay_is_busy(qp) || qp->relay->wants_fetch)
		qp->work |= QP_WORK_RELAY;
}

static void head_end(struct tp *tp, struct emu_qp *qp, enum verdict verdict, uint64_t original)
{
	struct relay *relay = qp->relay;
	const struct ib_packet *p = &relay->head->p;
	const struct op_row *op = &resp_op_rows[ib_operation(p->opcode)];

	/* A WRITE holds none before its last packet. */
	relay->may_hold = verdict == V_DONE && !op->ends && op->takes_recv;
	if (verdict != V_DROP && takes_requests(qp))
		rc_executed_elsewhere(tp, qp, p, verdict, original);
	relay_pop(qp);
}

static void fetch_refused(struct tp *tp, struct emu_qp *qp)
{
	struct rc_resource *res = rc_answer_due(qp);

	qp->relay->is_fetching = false;
	if (res && res->srqn && rc_answer_psn(qp, res) == qp->relay->fetch_psn)
		rc_read_refuse(tp, qp, res, WHY_MEMORY_GONE);
	qp->work |= QP_WORK_RESPOND;
}

void xrc_relay_lost(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p)
{
	struct relay *relay = qp->relay;
	uint8_t op = p ? ib_operation(p->opcode) : 0;
	uint32_t gone = xrc_relay_awaits(qp);

	if (op == RELAY_HANDLE) {
		xrc_far_event_sent(qp, p);
		return;
	}
	relay->must_end = false;
	if (p ? op == RELAY_FETCH : relay->is_fetching && relay->fetch_srqn == gone) {
		relay->wants_fetch = false;
		relay->fetch_psn = p ? p->psn : relay->fetch_psn;
		fetch_refused(tp, qp);
	}
	if (p ? op != RELAY_FETCH && op != RELAY_END : relay->is_out && relay->srqn == gone) {
		dropped(tp, qp, &relay->head->p, WHY_XRC_SRQ);
		head_end(tp, qp, V_NAK_ACCESS, 0);
	}
	go_on(qp);
}

void xrc_relay_dropped(struct emu_qp *qp, const struct ib_packet *p)
{
	uint8_t op = ib_operation(p->opcode);

	if (op == RELAY_HANDLE)
		xrc_far_event_sent(qp, p);
	else if (op == RELAY_END)
		qp->relay->must_end = false;
	else if (op == RELAY_FETCH)
		qp->relay->wants_fetch = false;
	else
		relay_pop(qp);
}

/* Verdicts that a guest gives. */
static bool is_outcome(uint32_t verdict)
{
	return verdict == V_DONE || verdict == V_DROP || verdict == V_RNR ||
	       (verdict >= V_NAK_INVALID && verdict <= V_RECV_MALFORMED);
}

static void head_outcome(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p)
{
	uint32_t verdict = p->imm & 0xff, fate = p->imm >> 8;

	if (!is_outcome(verdict) || fate >= FATE_COUNT) {
		verdict = V_DROP;
		fate = FATE_FATAL;	/* who answers so has executed who knows what */
	}
	head_end(tp, qp, verdict, p->original);
	if (fate == FATE_FATAL && takes_requests(qp)) {
		tp_qp_fatal(qp);
	} else if (fate == FATE_FAILED && takes_requests(qp)) {
		tp_qp_fail(qp);
		qp_event(qp, EVENT_QP_ACCESS_ERR);
	}
}

/* A piece of a READ, which has come in a span of the wire. */
static void fetched(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p)
{
	struct relay *relay = qp->relay;
	struct iovec room;

	if (!relay->fetch_room)
		relay->fetch_room = malloc(RELAY_FETCH_MAX);
	if (!relay->fetch_room || p->payload_bytes != relay->fetch_bytes) {
		fetch_refused(tp, qp);
		return;
	}
	room = (struct iovec){ relay->fetch_room, p->payload_bytes };
	mem_copy_spans(&room, 1, 0, p->span, p->span_count, 0, p->payload_bytes);
	relay->is_fetching = false;
	relay->has_fetched = true;
	qp->work |= QP_WORK_RESPOND;
}

void xrc_outcome_take(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p)
{
	struct relay *relay = qp->type == QPT_XRC_TGT ? qp->relay : NULL;

	if (relay && relay->is_fetching && p->extra.relay_turn == relay->fetch_turn &&
	    p->psn == relay->fetch_psn) {
		if (ib_operation(p->opcode) == RC_READ_RESPONSE_ONLY)
			fetched(tp, qp, p);
		else
			fetch_refused(tp, qp);
	} else if (relay && relay->is_out && p->extra.relay_turn == relay->turn &&
		   p->psn == relay->head->p.psn) {
		head_outcome(tp, qp, p);
	} else {
		dropped(tp, qp, p, WHY_ACK_UNEXPECTED);
		return;
	}
	go_on(qp);
}

void xrc_piece_sent(struct emu_qp *qp)
{
	if (qp->type == QPT_XRC_TGT && qp->relay)
		qp->relay->has_fetched = false;
}

bool xrc_has_fetched(struct tp *tp, struct emu_qp *qp, const struct rc_resource *res,
		     uint32_t *bytes_max)
{
	struct relay *relay = qp->relay;
	uint32_t left = res->bytes - res->sent_bytes;

	if (!left)
		return true;
	if (relay->has_fetched && relay->fetch_psn == rc_answer_psn(qp, res) &&
	    relay->fetch_bytes <= left) {
		tp->tx.span[0] = (struct iovec){ relay->fetch_room, relay->fetch_bytes };
		*bytes_max = relay->fetch_bytes;
		return true;
	}
	relay->has_fetched = false;
	relay->wants_fetch = true;
	qp->work |= QP_WORK_RELAY;
	return false;
}
