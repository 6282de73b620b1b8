/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What XRC adds to RC: the number of the receive queue in each request, and the target's way
 * from that number to a queue, and from there to the protection domain of all keys.
 */
#include "emu/obj/relay.h"
#include "emu/transport/rc_local.h"
#include "emu/transport/resp_local.h"
#include "emu/transport/xrc.h"

int xrc_req_next(struct tp *tp, struct emu_qp *qp, uint32_t bytes_max, struct ib_packet *out)
{
	if (!rc_req_next(tp, qp, bytes_max, out))
		return 0;
	out->extra = (struct ib_extra){ .srqn = tp->tx.work.srqn };
	return 1;
}

int xrc_resp_next(struct tp *tp, struct emu_qp *qp, uint32_t bytes_max, struct ib_packet *out)
{
	if (!rc_resp_next(tp, qp, bytes_max, out))
		return 0;
	out->extra = (struct ib_extra){ 0 };
	return 1;
}

/*
 * The annex calls these errors invalid XRCETH and XRC domain violation.  Soft-RoCE's responder
 * answers both as a violation of rights, and so does this one.
 */
struct judged xrc_queue(struct request *q)
{
	struct emu_qp *qp = q->qp;
	struct emu_srq *srq;

	if (qp->type != QPT_XRC_TGT)
		return NEXT;
	srq = srq_find_xrc(q->tp->dev, q->p->extra.srqn, qp->xrc_domain);
	if (!srq && xrc_is_elsewhere(qp, q->p->extra.srqn))
		return q->r->is_in_message && !xrc_goes_on(qp, q->p->extra.srqn) ?
		       JUDGED(V_NAK_INVALID, WHY_OPCODE_SEQUENCE) :
		       JUDGED(V_ELSEWHERE, WHY_NONE);
	if (!srq)
		return JUDGED(V_NAK_ACCESS, WHY_XRC_SRQ);
	if (q->r->is_in_message && srq != qp->srq)
		return JUDGED(V_NAK_INVALID, WHY_OPCODE_SEQUENCE);
	qp->srq = srq;
	q->r->pdn = srq->pdn;
	return NEXT;
}

static void dropped(struct tp *tp, const struct emu_qp *qp, const struct ib_packet *p)
{
	dev_why(tp->dev, .why = WHY_PACKET_TRANSPORT, .side = WHY_SIDE_DEVICE, .qpn = qp->qpn,
		.peer_qpn = p->src_qpn, .psn = p->psn, .opcode = p->opcode);
}

bool xrc_initiator_take(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p)
{
	bool is_readable = true;

	if (ib_is_answer(p->opcode))
		rc_take_answer(tp, qp, p, &is_readable);
	else
		dropped(tp, qp, p);
	return is_readable;
}

bool xrc_target_take(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p)
{
	bool is_readable = true;

	if (ib_is_answer(p->opcode))
		dropped(tp, qp, p);
	else if (relay_is_busy(qp) || xrc_is_elsewhere(qp, p->extra.srqn))
		is_readable = xrc_relay_take(tp, qp, p);
	else
		rc_take_request(tp, qp, p, &is_readable);
	return is_readable;
}
