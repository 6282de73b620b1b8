/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UC: messages without acknowledgement.
 *
 * PSNs count only inside a message.  Whatever does not fit is dropped, with the rest of its
 * message, and the next first or only packet is taken again, whatever its PSN: nobody is told.
 * Only what is wrong with a posted receive ends the QP, since that one has to complete.
 * Source: IBTA volume 1, 9.8; device-abi F.1 (rows 17 to 19), G.5.
 */
#include "emu/transport/resp_local.h"
#include "emu/transport/uc.h"

void uc_req_sent(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p)
{
	struct rc_req *r = &qp->req;
	const struct rc_sent *sent = rc_sent_at(qp, r->send_at);

	r->send_bytes += p->payload_bytes;
	if (r->send_bytes == sent->bytes)
		tp_sent_complete(tp, qp, HW_SUCCESS, 0);
}

/* Does the packet begin a message, or continue the one in progress? */
static struct judged uc_sequence(struct request *q)
{
	const struct rc_resp *r = q->r;

	if (q->op->starts) {
		if (r->is_in_message)
			resp_why(q, WHY_OPCODE_SEQUENCE);	/* the old one has lost its end */
		return NEXT;
	}
	if (!r->is_in_message || q->op->kind != r->message_kind)
		return JUDGED(V_DROP, WHY_OPCODE_SEQUENCE);
	return q->p->psn == r->psn_expected ? NEXT : JUDGED(V_DROP, WHY_PSN_AHEAD);
}

static const struct stage uc_responder_stages[] = {
	{ "sequence",  uc_sequence    },
	{ "permitted", resp_permitted },
	{ "resources", resp_resources },
	{ "length",    resp_length    },
	{ "key",       resp_key       },
	{ "execute",   resp_execute   },
};

enum { STAGES = sizeof uc_responder_stages / sizeof *uc_responder_stages };

/* What ends the receive in use, and with it the QP; 0: the message is dropped. */
static const uint8_t recv_statuses[VERDICT_COUNT] = {
	[V_RECV_SHORT] = HW_LOC_LEN,
	[V_RECV_PROTECTED] = HW_LOC_PROT_RECV,
	[V_RECV_MALFORMED] = HW_LOC_QP_OP_RECV,
};

/* One reason a message is enough: what is left of it goes silently. */
static void refuse(struct request *q, struct judged j)
{
	bool is_told = q->answers->is_silent && !q->op->starts;

	if (!is_told)
		resp_why(q, j.why);
	q->r->is_in_message = 0;
	q->answers->is_silent = !q->op->ends;
	if (!recv_statuses[j.verdict])
		return;
	tp_recv_fail(q->tp, q->qp, recv_statuses[j.verdict]);
	tp_qp_fail(q->qp);
}

static void accept(struct request *q)
{
	uint8_t op = ib_operation(q->p->opcode);

	q->answers->is_silent = false;
	resp_advance(q);
	q->r->psn_expected = psn_add(q->p->psn, q->p->packet_count);
	if (!q->op->ends) {
		if (q->op->takes_recv)
			tp_recv_hold(q->tp, q->qp);
		return;
	}
	if ((op == RC_SEND_LAST_INVAL || op == RC_SEND_ONLY_INVAL) && !resp_invalidate(q))
		return;
	if (q->op->takes_recv)
		tp_recv_complete(q->tp, q->qp, q->p, q->r->message_bytes);
}

bool uc_take(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p)
{
	struct request q = { .tp = tp, .qp = qp, .r = qp->resp, .answers = &qp->answers,
		.p = p, .op = &resp_op_rows[ib_operation(p->opcode)] };
	struct judged j;

	if (q.op->kind != KIND_SEND && q.op->kind != KIND_WRITE) {
		resp_why(&q, WHY_OPCODE_UNKNOWN);
		return true;
	}
	j = resp_judge(&q, uc_responder_stages, STAGES);
	if (j.verdict == V_UNREADABLE)
		return false;
	if (j.verdict == V_DONE)
		accept(&q);
	else
		refuse(&q, j);
	return true;
}
