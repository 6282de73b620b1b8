/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RC responder answers: READ responses, atomic answers, ACKs and NAKs, in PSN order.
 *
 * READs and atomics are answered before an acknowledgement that is due, since that
 * one may speak of later packets.
 * Source: IBTA volume 1, 9.7.5.1.
 */
#include <string.h>
#include "emu/transport/rc_local.h"
#include "emu/transport/resp_local.h"
#include "emu/transport/xrc.h"

struct rc_resource *rc_answer_due(struct emu_qp *qp)
{
	struct rc_answers *r = &qp->answers;

	while (r->resource_answer != r->resource_made) {
		struct rc_resource *res = &r->resource[r->resource_answer % RC_RESOURCES_MAX];

		if (!res->is_done)
			return res;
		r->resource_answer++;
	}
	return NULL;
}

static void answer_address(const struct emu_qp *qp, struct ib_packet *p)
{
	p->opcode = transport_of(qp)->bth;
	p->dest_qpn = qp->dest_qpn;
	p->src_qpn = qp->qpn;
	p->pkey = qp->pkey;
	p->mtu_bytes = qp->mtu_bytes;
	p->packet_count = 1;
	memcpy(p->sgid, qp->sgid, sizeof p->sgid);
	memcpy(p->dgid, qp->dgid, sizeof p->dgid);
}

uint32_t rc_answer_psn(const struct emu_qp *qp, const struct rc_resource *res)
{
	return psn_add(res->psn, res->sent_bytes / qp->mtu_bytes);
}

/* The key went away, or the memory, while a READ was being answered. */
void rc_read_refuse(struct tp *tp, struct emu_qp *qp, struct rc_resource *res, enum why why)
{
	struct rc_answers *r = &qp->answers;

	dev_why(tp->dev, .why = why, .side = WHY_SIDE_RECV, .qpn = qp->qpn,
		.peer_qpn = qp->dest_qpn, .opcode = res->opcode, .psn = res->psn, .key = res->rkey,
		.addr = res->va, .bytes = res->bytes);
	r->ack_is_due = true;
	r->ack_syndrome = AETH_NAK_REMOTE_ACCESS;
	r->ack_psn = rc_answer_psn(qp, res);
	r->resource_answer = r->resource_made;
	tp_qp_fail(qp);
	qp_event(qp, EVENT_QP_ACCESS_ERR);
}

/* A piece that has come from the process whose memory it is lies in the span already. */
static bool read_response(struct tp *tp, struct emu_qp *qp, struct rc_resource *res,
			  uint32_t bytes_max, struct ib_packet *p)
{
	static const uint8_t opcodes[2][2] = {	/* [is_first][is_last] */
		{ RC_READ_RESPONSE_MIDDLE, RC_READ_RESPONSE_LAST },
		{ RC_READ_RESPONSE_FIRST, RC_READ_RESPONSE_ONLY },
	};
	uint32_t left = res->bytes - res->sent_bytes;
	uint32_t bytes = left < bytes_max ? left : bytes_max;
	const struct key_use use = { res->rkey, res->pdn, qp->qpn, KEY_REMOTE_READ,
				     res->va + res->sent_bytes, bytes };
	enum why why = WHY_NONE;

	if (bytes && !res->srqn)
		why = key_use_check(&tp->dev->keys, &use, &tp->tx.span[0]);
	if (why != WHY_NONE) {
		rc_read_refuse(tp, qp, res, why);
		return false;
	}
	p->opcode |= opcodes[res->sent_bytes == res->start_bytes][bytes == left];
	p->psn = rc_answer_psn(qp, res);
	p->packet_count = psn_count_of(bytes, qp->mtu_bytes);
	p->aeth_syndrome = AETH_ACK_UNLIMITED;
	p->msn = res->msn;
	p->payload_bytes = bytes;
	p->span = tp->tx.span;
	p->span_count = bytes != 0;
	return true;
}

static void atomic_answer(const struct rc_resource *res, struct ib_packet *p)
{
	p->opcode |= RC_ATOMIC_ACKNOWLEDGE;
	p->psn = res->psn;
	p->aeth_syndrome = AETH_ACK_UNLIMITED;
	p->msn = res->msn;
	p->original = res->original;
}

int rc_resp_next(struct tp *tp, struct emu_qp *qp, uint32_t bytes_max, struct ib_packet *out)
{
	struct rc_answers *r = &qp->answers;
	struct rc_resource *res = rc_answer_due(qp);

	memset(out, 0, offsetof(struct ib_packet, extra));
	answer_address(qp, out);
	if (res && res->srqn && !xrc_has_fetched(tp, qp, res, &bytes_max)) {
		qp->work &= ~(uint32_t)QP_WORK_RESPOND;
		return 0;
	}
	if (res && res->opcode == RC_READ_REQUEST) {
		if (read_response(tp, qp, res, bytes_max, out))
			return 1;
	} else if (res) {
		atomic_answer(res, out);
		return 1;
	}
	if (r->ack_is_due) {
		out->opcode |= RC_ACKNOWLEDGE;
		out->psn = r->ack_psn;
		out->aeth_syndrome = r->ack_syndrome;
		out->msn = qp->resp->msn;
		return 1;
	}
	qp->work &= ~(uint32_t)QP_WORK_RESPOND;
	return 0;
}

void rc_resp_sent(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p)
{
	struct rc_answers *r = &qp->answers;
	struct rc_resource *res;

	(void)tp;
	if (ib_operation(p->opcode) == RC_ACKNOWLEDGE) {
		r->ack_is_due = false;
		return;
	}
	res = rc_answer_due(qp);
	assert(res);
	res->sent_bytes += p->payload_bytes;
	res->is_done = res->sent_bytes == res->bytes;
	xrc_piece_sent(qp);
}

void rc_resp_unreadable(struct tp *tp, struct emu_qp *qp)
{
	struct rc_resource *res = rc_answer_due(qp);

	assert(res);
	rc_read_refuse(tp, qp, res, WHY_MEMORY_GONE);
	qp->work |= QP_WORK_RESPOND;
}

bool rc_take(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p)
{
	bool is_readable = true;

	if (ib_is_answer(p->opcode))
		rc_take_answer(tp, qp, p, &is_readable);
	else
		rc_take_request(tp, qp, p, &is_readable);
	return is_readable;
}
