/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC requests for receive queues of this process, whose target QP is in another: the queue's side.
 *
 * RC's responder judges it as it is, with the guest put where the request expects it; what comes of
 * it is told to the target, which answers the initiator.
 */
#include "emu/obj/relay.h"
#include "emu/transport/resp_local.h"
#include "emu/transport/xrc.h"

enum { MTU_BYTES_MIN = 256, MTU_BYTES_MAX = 4096 };

static void refused(struct tp *tp, const struct ib_packet *p, enum why why)
{
	dev_why(tp->dev, .why = why, .side = WHY_SIDE_RECV, .qpn = p->dest_qpn,
		.peer_qpn = p->src_qpn, .psn = p->psn, .opcode = p->opcode, .key = p->rkey,
		.addr = p->va, .found = p->extra.srqn);
}

/* Whatever was in progress is over, and was not told to its end: the target was reset, or died. */
static void begin(struct guest *guest, struct emu_srq *srq)
{
	struct emu_qp *qp = &guest->qp;

	srq_qp_forget(qp);
	guest->resp = (struct rc_resp){ 0 };
	qp->answers = (struct rc_answers){ 0 };
	qp->is_armed_fatal = false;
	qp->state = QP_RTS;
	qp->srq = srq;
}

/* What the target has judged passes here. */
static void expect(struct guest *guest, const struct ib_packet *p)
{
	struct rc_resp *r = &guest->resp;

	r->psn_expected = p->psn;
	r->pdn = guest->qp.srq->pdn;
	r->access = UINT32_MAX;
	r->resource_limit = RC_RESOURCES_MAX;
	guest->qp.answers.resource_made = guest->qp.answers.resource_answer = 0;
	guest->qp.mtu_bytes = p->extra.relay_mtu_bytes;
}

static enum guest_fate fate_of(const struct emu_qp *qp)
{
	return qp->state != QP_ERR ? FATE_GOOD : qp->is_armed_fatal ? FATE_FATAL : FATE_FAILED;
}

static enum verdict execute(struct tp *tp, struct guest *guest, struct emu_srq *srq,
			    const struct ib_packet *p)
{
	struct emu_qp *qp = &guest->qp;
	bool is_readable = true;
	enum verdict verdict;

	if (resp_op_rows[ib_operation(p->opcode)].starts || qp->state != QP_RTS || qp->srq != srq)
		begin(guest, srq);
	expect(guest, p);
	verdict = rc_take_request(tp, qp, p, &is_readable);
	guest->original = qp->answers.resource[0].original;
	guest->fate = fate_of(qp);
	if (qp->state == QP_ERR)
		tp_flush(tp, qp);
	return verdict;
}

static bool is_mtu(uint32_t bytes)
{
	return bytes >= MTU_BYTES_MIN && bytes <= MTU_BYTES_MAX && !(bytes & (bytes - 1));
}

static void request_take(struct tp *tp, struct guest *guest, const struct ib_packet *p)
{
	struct emu_srq *srq = srq_find_named(tp->dev, p->extra.srqn, p->extra.relay_domain);

	guest->fate = FATE_GOOD;
	guest->original = 0;
	guest->turn = p->extra.relay_turn;
	guest->psn = p->psn;
	guest->has_outcome = true;
	guest->verdict = V_NAK_ACCESS;
	if (!srq || !is_mtu(p->extra.relay_mtu_bytes))
		refused(tp, p, WHY_XRC_SRQ);
	else
		guest->verdict = execute(tp, guest, srq, p);
}

static void fetch_take(struct guest *guest, const struct ib_packet *p)
{
	guest->fetch.is_due = true;
	guest->fetch.is_refused = false;
	guest->fetch.p = *p;
}

static void end_take(struct tp *tp, struct guest *guest)
{
	if (!guest->qp.answers.is_holding)
		return;
	tp_qp_fail(&guest->qp);
	tp_flush(tp, &guest->qp);
}

struct emu_qp *xrc_guest_take(struct tp *tp, const struct ib_packet *p)
{
	struct guest *guest = guest_of(tp->dev, p->dest_qpn);

	if (!guest) {
		refused(tp, p, WHY_CMD_LIMIT);
		return NULL;
	}
	memcpy(guest->qp.sgid, p->dgid, sizeof guest->qp.sgid);
	if (ib_operation(p->opcode) == RELAY_END)
		end_take(tp, guest);
	else if (ib_operation(p->opcode) == RELAY_FETCH)
		fetch_take(guest, p);
	else
		request_take(tp, guest, p);
	guest->qp.work = QP_WORK_RELAY;
	return &guest->qp;
}

/* --- what the target is told --- */

static void outcome_address(const uint8_t gid[16], uint32_t target_qpn, struct ib_packet *out)
{
	out->opcode |= IB_RELAY;
	out->packet_count = 1;
	out->dest_qpn = out->src_qpn = target_qpn;
	memcpy(out->sgid, gid, sizeof out->sgid);
	memcpy(out->dgid, gid, sizeof out->dgid);
}

void xrc_guest_missing(const struct ib_packet *p, struct ib_packet *out)
{
	*out = (struct ib_packet){ .opcode = RC_ACKNOWLEDGE, .psn = p->psn, .imm = V_DROP,
		.extra = { .relay_turn = p->extra.relay_turn } };
	outcome_address(p->dgid, p->dest_qpn, out);
}

static void outcome_describe(const struct guest *guest, struct ib_packet *out)
{
	*out = (struct ib_packet){ .opcode = RC_ACKNOWLEDGE, .psn = guest->psn,
		.imm = guest->verdict | (uint32_t)guest->fate << 8, .original = guest->original,
		.extra = { .relay_turn = guest->turn } };
}

/* The memory that a piece of an answer is in, if it may be read; then in tp->tx.span. */
static bool piece_find(struct tp *tp, const struct guest *guest, uint32_t bytes_max)
{
	const struct ib_packet *p = &guest->fetch.p;
	const struct emu_srq *srq = srq_find_named(tp->dev, p->extra.srqn, p->extra.relay_domain);
	const struct key_use use = { p->rkey, srq ? srq->pdn : 0, guest->qp.qpn, KEY_REMOTE_READ,
				     p->va, p->dma_bytes };
	enum why why = WHY_XRC_SRQ;

	if (guest->fetch.is_refused || !p->dma_bytes || p->dma_bytes > bytes_max)
		return false;
	if (srq)
		why = key_use_check(&tp->dev->keys, &use, &tp->tx.span[0]);
	if (why != WHY_NONE)
		refused(tp, p, why);
	return why == WHY_NONE;
}

static void piece_describe(struct tp *tp, const struct guest *guest, uint32_t bytes_max,
			   struct ib_packet *out)
{
	const struct ib_packet *p = &guest->fetch.p;
	bool is_there = piece_find(tp, guest, bytes_max);

	*out = (struct ib_packet){
		.opcode = is_there ? RC_READ_RESPONSE_ONLY : RC_ACKNOWLEDGE,
		.psn = p->psn, .imm = V_NAK_ACCESS,
		.payload_bytes = is_there ? p->dma_bytes : 0,
		.span = tp->tx.span, .span_count = is_there,
		.extra = { .relay_turn = p->extra.relay_turn },
	};
}

int xrc_guest_next(struct tp *tp, struct emu_qp *qp, uint32_t bytes_max, struct ib_packet *out)
{
	struct guest *guest = (struct guest *)qp;

	if (guest->has_outcome) {
		outcome_describe(guest, out);
	} else if (guest->fetch.is_due) {
		piece_describe(tp, guest, bytes_max, out);
	} else {
		qp->work &= ~(uint32_t)QP_WORK_RELAY;
		return 0;
	}
	outcome_address(qp->sgid, qp->qpn, out);
	return 1;
}

void xrc_guest_sent(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p)
{
	struct guest *guest = (struct guest *)qp;

	(void)tp;
	(void)p;
	if (guest->has_outcome)
		guest->has_outcome = false;
	else
		guest->fetch.is_due = false;
}

/* An outcome has no payload. */
void xrc_guest_unreadable(struct tp *tp, struct emu_qp *qp)
{
	struct guest *guest = (struct guest *)qp;

	refused(tp, &guest->fetch.p, WHY_MEMORY_GONE);
	guest->fetch.is_refused = true;
}
