/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RC requester sends: which packet is next, and what it looks like.
 *
 * A work request is decoded when its turn comes and again for each further part
 * of it; in between only struct rc_sent is kept, and what does not agree with it
 * any more fails the request.  Rules that hold a request back (fences, READ
 * credits, PSN window, errors of its own) are in held_back().
 * Source: IBTA volume 1, 9.7.3, 10.8.3.3 (ordering).
 */
#include <string.h>
#include "emu/transport/dc.h"
#include "emu/transport/rc_local.h"

/* Half of the PSN space may be outstanding; keep clear of the half. */
#define PSN_WINDOW	(1u << 22)

static void local_why(struct tp *tp, struct emu_qp *qp, enum why why, const struct rc_sent *sent,
		      const struct hw_sge *sge)
{
	dev_why(tp->dev, .why = why, .side = WHY_SIDE_SEND, .qpn = qp->qpn,
		.peer_qpn = qp->dest_qpn, .wqe_index = sent->index,
		.opcode = sent->opcode, .psn = sent->psn,
		.key = sge ? sge->lkey : 0, .addr = sge ? sge->addr : 0,
		.bytes = sge ? sge->bytes : sent->bytes);
}

static enum hw_status length_check(struct tp *tp, struct emu_qp *qp, const struct hw_work *w,
				   const struct rc_sent *sent)
{
	bool is_datagram = transport_of(qp)->is_datagram;
	uint32_t bytes_max = is_datagram ? qp->mtu_bytes : tp->dev->profile->max_msg_bytes;

	if (w->bytes <= bytes_max || tp_is_local(sent->op))
		return HW_SUCCESS;
	dev_why(tp->dev, .why = is_datagram ? WHY_DATAGRAM_TOO_LONG : WHY_MESSAGE_TOO_LONG,
		.side = WHY_SIDE_SEND, .qpn = qp->qpn,
		.peer_qpn = qp->dest_qpn, .wqe_index = sent->index,
		.opcode = sent->opcode,
		.bytes = w->bytes, .found = bytes_max);
	return HW_LOC_LEN;
}

/* All local keys of a message that will leave are looked at before its first packet does. */
static enum hw_status local_keys_check(struct tp *tp, struct emu_qp *qp, const struct rc_sent *sent)
{
	const struct hw_work *w = &tp->tx.work;
	struct tp_gather g = { w->sge, w->sge_count, 0, w->bytes, KEY_LOCAL_READ };
	const struct hw_sge *bad;
	enum why why;

	if (rc_is_read_or_atomic((uint8_t)w->op) || tp_is_local((uint8_t)w->op))
		return HW_SUCCESS;
	why = tp_gather(tp, &g, &tp->tx, &bad);
	tp->tx.has_whole = why == WHY_NONE;
	if (why == WHY_NONE)
		return HW_SUCCESS;
	local_why(tp, qp, why, sent, bad);
	return HW_LOC_PROT;
}

/* Decode the next posted WQE and enter it as outstanding.  It owns its PSNs from here on. */
static void start_next(struct tp *tp, struct emu_qp *qp)
{
	struct rc_req *r = &qp->req;
	struct rc_sent *sent = rc_sent_at(qp, r->sent_tail);
	const struct hw_work *w = &tp->tx.work;
	uint32_t room = r->sq_produced - r->sq_next;
	enum hw_status status = tp_work_fetch(tp, qp, r->sq_next, &tp->tx);
	unsigned blocks = (w->ds + 3u) / 4;

	*sent = (struct rc_sent){
		.psn = r->psn_next,
		.index = (uint16_t)r->sq_next,
		.opcode = w->opcode,
		.blocks = (uint8_t)(blocks == 0 ? 1 : blocks > room ? room : blocks),
	};
	if (status == HW_SUCCESS) {
		sent->op = (uint8_t)w->op;
		sent->fence = (uint8_t)w->fence;
		sent->is_signaled = w->is_signaled || qp->signals_all;
		status = length_check(tp, qp, w, sent);
	}
	if (status == HW_SUCCESS && qp->type == QPT_DCI)
		status = dci_start(tp, qp, sent);
	if (status == HW_SUCCESS) {
		sent->bytes = tp_is_local(sent->op) ? 0 : (uint32_t)w->bytes;
		status = local_keys_check(tp, qp, sent);
	}
	sent->status = (uint8_t)status;
	sent->psn_count = tp_is_local(sent->op) ? 0 :
		sent->op == HW_OP_READ || !rc_is_read_or_atomic(sent->op) ?
		psn_count_of(sent->bytes, qp->mtu_bytes) : 1;
	r->psn_next = psn_add(r->psn_next, sent->psn_count);
	r->sq_next += sent->blocks;
	r->sent_tail++;
}

/* A request that was started must still be the same one. */
static enum hw_status fetch_again(struct tp *tp, struct emu_qp *qp, const struct rc_sent *sent)
{
	const struct hw_work *w = &tp->tx.work;
	enum hw_status status = tp_work_fetch(tp, qp, rc_block_of(qp, sent), &tp->tx);

	if (status == HW_SUCCESS &&
	    (w->op != sent->op || (w->bytes != sent->bytes && !tp_is_local(sent->op)))) {
		local_why(tp, qp, WHY_WQE_CHANGED, sent, NULL);
		status = HW_LOC_QP_OP;
	}
	return status;
}

/* Must the request wait for earlier ones? */
static bool is_held_back(const struct emu_qp *qp, const struct rc_sent *sent)
{
	const struct rc_req *r = &qp->req;
	uint32_t credits = qp->attr.max_rd_atomic ? qp->attr.max_rd_atomic : 1;

	if (r->send_at == r->sent_head)
		return false;
	if (sent->status != HW_SUCCESS || sent->op == HW_OP_NOP || sent->begins_session ||
	    sent->fence == HW_FENCE_STRONG)
		return true;
	if (sent->fence == HW_FENCE_READS && r->reads_out)
		return true;
	if (r->psn_out + sent->psn_count > PSN_WINDOW)
		return true;
	return rc_is_read_or_atomic(sent->op) && r->reads_out >= credits;
}

/* It takes effect as soon as earlier requests were sent, and only once, whatever of them has to
 * be sent again. */
static void umr_once(struct tp *tp, struct emu_qp *qp, struct rc_sent *sent)
{
	if (sent->is_done)
		return;
	sent->status = (uint8_t)tp_umr(tp, qp, sent->index, &tp->tx.work);
	sent->is_done = sent->status == HW_SUCCESS;
}

/*
 * The request to send from, started if need be; NULL: nothing may be sent now.
 * Requests that end without a packet end here.
 */
static struct rc_sent *request_now(struct tp *tp, struct emu_qp *qp)
{
	struct rc_req *r = &qp->req;

	while (qp->state == QP_RTS && !r->is_waiting_rnr) {
		bool is_new = r->send_at == r->sent_tail;
		struct rc_sent *sent;

		if (is_new) {
			if (r->sq_next == r->sq_produced)
				return NULL;
			start_next(tp, qp);
		}
		sent = rc_sent_at(qp, r->send_at);
		if (is_held_back(qp, sent))
			return NULL;
		if (!is_new && sent->status == HW_SUCCESS && !sent->is_done)
			sent->status = (uint8_t)fetch_again(tp, qp, sent);
		if (sent->status == HW_SUCCESS && sent->op == HW_OP_UMR)
			umr_once(tp, qp, sent);
		if (sent->status == HW_SUCCESS && sent->begins_session)
			sent->status = (uint8_t)dci_begin(tp, qp, sent);
		if (sent->status != HW_SUCCESS && r->send_at != r->sent_head)
			return NULL;
		if (sent->status == HW_SUCCESS && !tp_is_local(sent->op))
			return sent;
		if (r->send_at == r->sent_head)
			tp_sent_complete(tp, qp, sent->status, 0);
		else
			r->send_at++;		/* completes when its turn comes */
	}
	return NULL;
}

/* Opcodes of a message by where its part stands: first, middle, last, only. */
static const uint8_t message_opcodes[HW_OP_COUNT][4] = {
	[HW_OP_SEND]       = { RC_SEND_FIRST, RC_SEND_MIDDLE, RC_SEND_LAST, RC_SEND_ONLY },
	[HW_OP_SEND_IMM]   = { RC_SEND_FIRST, RC_SEND_MIDDLE, RC_SEND_LAST_IMM, RC_SEND_ONLY_IMM },
	[HW_OP_SEND_INVAL] = { RC_SEND_FIRST, RC_SEND_MIDDLE, RC_SEND_LAST_INVAL,
			       RC_SEND_ONLY_INVAL },
	[HW_OP_TSO]        = { RC_SEND_FIRST, RC_SEND_MIDDLE, RC_SEND_LAST, RC_SEND_ONLY },
	[HW_OP_WRITE]      = { RC_WRITE_FIRST, RC_WRITE_MIDDLE, RC_WRITE_LAST, RC_WRITE_ONLY },
	[HW_OP_WRITE_IMM]  = { RC_WRITE_FIRST, RC_WRITE_MIDDLE, RC_WRITE_LAST_IMM,
			       RC_WRITE_ONLY_IMM },
};

static void packet_address(const struct emu_qp *qp, struct ib_packet *p)
{
	p->opcode = transport_of(qp)->bth;
	p->dest_qpn = qp->dest_qpn;
	p->src_qpn = qp->qpn;
	p->pkey = qp->pkey;
	p->mtu_bytes = qp->mtu_bytes;
	memcpy(p->sgid, qp->sgid, sizeof p->sgid);
	memcpy(p->dgid, qp->dgid, sizeof p->dgid);
}

static enum why message_part(struct tp *tp, struct emu_qp *qp, const struct rc_sent *sent,
			     uint32_t bytes_max, struct ib_packet *p, const struct hw_sge **bad_out)
{
	const struct hw_work *w = &tp->tx.work;
	uint32_t skip = qp->req.send_bytes, left = sent->bytes - skip;
	uint32_t bytes = left < bytes_max ? left : bytes_max;
	struct tp_gather g = { w->sge, w->sge_count, skip, bytes, KEY_LOCAL_READ };
	bool is_first = skip == 0, is_last = bytes == left;
	enum why why = WHY_NONE;

	if (!tp->tx.has_whole || bytes != sent->bytes)
		why = tp_gather(tp, &g, &tp->tx, bad_out);
	tp->tx.has_whole = false;
	if (why != WHY_NONE)
		return why;
	p->opcode |= message_opcodes[w->op][is_first ? (is_last ? 3 : 0) : (is_last ? 2 : 1)];
	p->psn = psn_add(sent->psn, skip / qp->mtu_bytes);
	p->packet_count = psn_count_of(bytes, qp->mtu_bytes);
	p->is_solicited = is_last && w->is_solicited;
	p->wants_ack = is_last && transport_of(qp)->is_reliable;
	p->imm = w->imm;
	p->va = w->remote_addr;
	p->rkey = w->rkey;
	p->dma_bytes = sent->bytes;
	p->payload_bytes = bytes;
	p->span = tp->tx.span;
	p->span_count = tp->tx.span_count;
	return WHY_NONE;
}

static void read_request(struct tp *tp, struct emu_qp *qp, const struct rc_sent *sent,
			 struct ib_packet *p)
{
	const struct hw_work *w = &tp->tx.work;
	uint32_t got = qp->req.send_at == qp->req.sent_head ? qp->req.read_bytes : 0;

	p->opcode |= RC_READ_REQUEST;
	p->psn = psn_add(sent->psn, got / qp->mtu_bytes);
	p->packet_count = 1;
	p->wants_ack = true;
	p->va = w->remote_addr + got;
	p->rkey = w->rkey;
	p->dma_bytes = sent->bytes - got;
}

static void masks_attach(struct tp_scratch *s, struct ib_packet *p)
{
	s->masks[0] = s->work.swap_mask;
	s->masks[1] = s->work.compare_mask;
	s->span[0] = (struct iovec){ s->masks, sizeof s->masks };
	p->dma_bytes = s->work.atomic_bytes;
	p->payload_bytes = sizeof s->masks;
	p->span = s->span;
	p->span_count = 1;
}

static void atomic_request(struct tp *tp, const struct rc_sent *sent, struct ib_packet *p)
{
	static const uint8_t opcodes[HW_OP_COUNT] = {
		[HW_OP_COMPARE_SWAP] = RC_COMPARE_SWAP, [HW_OP_FETCH_ADD] = RC_FETCH_ADD,
		[HW_OP_MASKED_COMPARE_SWAP] = RC_MASKED_COMPARE_SWAP,
		[HW_OP_MASKED_FETCH_ADD] = RC_MASKED_FETCH_ADD,
	};
	const struct hw_work *w = &tp->tx.work;

	p->opcode |= opcodes[w->op];
	p->psn = sent->psn;
	p->packet_count = 1;
	p->wants_ack = true;
	p->va = w->remote_addr;
	p->rkey = w->rkey;
	p->swap_add = w->swap_add;
	p->compare = w->compare;
	if (ib_is_masked_atomic(opcodes[w->op]))
		masks_attach(&tp->tx, p);
}

int rc_req_next(struct tp *tp, struct emu_qp *qp, uint32_t bytes_max, struct ib_packet *out)
{
	struct rc_sent *sent = request_now(tp, qp);
	const struct hw_sge *bad;
	enum why why;

	if (!sent) {
		qp->work &= ~(uint32_t)QP_WORK_REQUEST;
		return 0;
	}
	memset(out, 0, offsetof(struct ib_packet, extra));
	packet_address(qp, out);
	if (sent->op == HW_OP_READ) {
		read_request(tp, qp, sent, out);
		return 1;
	}
	if (rc_is_read_or_atomic(sent->op)) {
		atomic_request(tp, sent, out);
		return 1;
	}
	why = message_part(tp, qp, sent, bytes_max, out, &bad);
	if (why == WHY_NONE)
		return 1;
	local_why(tp, qp, why, sent, bad);
	sent->status = HW_LOC_PROT;		/* a key went away between two parts */
	return rc_req_next(tp, qp, bytes_max, out);
}

void rc_req_sent(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p)
{
	struct rc_req *r = &qp->req;
	struct rc_sent *sent = rc_sent_at(qp, r->send_at);
	bool is_read = rc_is_read_or_atomic(sent->op);
	uint32_t end = psn_add(p->psn, is_read ? sent->psn_count - psn_diff(p->psn, sent->psn) :
			       p->packet_count);
	uint32_t out = (uint32_t)psn_diff(end, r->psn_una);

	(void)tp;
	if (out > r->psn_out)
		r->psn_out = out;
	r->send_bytes += p->payload_bytes;
	if (is_read)
		r->reads_out++;
	if (is_read || r->send_bytes == sent->bytes) {
		r->send_at++;
		r->send_bytes = 0;
	}
	r->wants_timer = true;
}

void rc_req_unreadable(struct tp *tp, struct emu_qp *qp)
{
	struct rc_sent *sent = rc_sent_at(qp, qp->req.send_at);

	local_why(tp, qp, WHY_MEMORY_GONE, sent, NULL);
	sent->status = HW_LOC_PROT;
	qp->work |= QP_WORK_REQUEST;
}

void rc_rewind(struct emu_qp *qp)
{
	struct rc_req *r = &qp->req;
	struct rc_sent *head = rc_sent_at(qp, r->sent_head);

	r->send_at = r->sent_head;
	r->send_bytes = 0;
	r->reads_out = 0;
	if (r->sent_head != r->sent_tail && !rc_is_read_or_atomic(head->op))
		r->send_bytes = (uint32_t)psn_diff(r->psn_una, head->psn) * qp->mtu_bytes;
	qp->work |= QP_WORK_REQUEST;
}
