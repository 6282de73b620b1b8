/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RC requester hears: acknowledgements, NAKs, READ and atomic answers, and
 * the silence that its timer tells of.
 *
 * Answers acknowledge everything before them, except READs and atomics, which only
 * their own answers complete.  Source: IBTA volume 1, 9.7.5 and 9.7.6.
 */
#include <string.h>
#include "emu/transport/rc_local.h"

static void head_why(struct tp *tp, struct emu_qp *qp, enum why why, const struct rc_sent *sent)
{
	dev_why(tp->dev, .why = why, .side = WHY_SIDE_SEND, .qpn = qp->qpn,
		.peer_qpn = qp->dest_qpn, .wqe_index = sent->index,
		.opcode = sent->opcode, .psn = qp->req.psn_una,
		.bytes = sent->bytes);
}

static void head_fail(struct tp *tp, struct emu_qp *qp, enum hw_status status, enum why why)
{
	head_why(tp, qp, why, rc_sent_at(qp, qp->req.sent_head));
	tp_sent_complete(tp, qp, status, 0);
}

/* Everything before @psn is acknowledged: that is progress, and progress restores patience. */
static void progress(struct emu_qp *qp, uint32_t psn)
{
	struct rc_req *r = &qp->req;
	uint32_t count = (uint32_t)psn_diff(psn, r->psn_una);

	if (!count)
		return;
	r->psn_una = psn;
	r->psn_out -= count < r->psn_out ? count : r->psn_out;
	r->retries_left = qp->attr.retry_cnt;
	r->rnr_left = qp->attr.rnr_retry;
	r->deadline_ns = 0;
	r->wants_timer = r->psn_out != 0;
	if (r->is_waiting_rnr) {	/* a repetition was taken; what followed it was dropped */
		r->is_waiting_rnr = false;
		rc_rewind(qp);
	}
	if (r->send_at == r->sent_head && r->sent_head != r->sent_tail) {
		const struct rc_sent *head = rc_sent_at(qp, r->sent_head);
		int64_t done = (int64_t)psn_diff(psn, head->psn) * qp->mtu_bytes;

		if (!rc_is_read_or_atomic(head->op) && done > r->send_bytes && done < head->bytes)
			r->send_bytes = (uint32_t)done;
	}
}

/* Local operations have taken effect before what was sent in front of them is acknowledged. */
static void complete_done(struct tp *tp, struct emu_qp *qp)
{
	struct rc_req *r = &qp->req;

	while (qp->state == QP_RTS && r->sent_head != r->sent_tail &&
	       rc_sent_at(qp, r->sent_head)->is_done)
		tp_sent_complete(tp, qp, HW_SUCCESS, 0);
}

/* Complete what ends before @to.  False: a READ or atomic in between was never answered. */
static bool acknowledge(struct tp *tp, struct emu_qp *qp, uint32_t to)
{
	struct rc_req *r = &qp->req;

	while (r->sent_head != r->sent_tail && qp->state == QP_RTS) {
		struct rc_sent *sent = rc_sent_at(qp, r->sent_head);
		uint32_t end = psn_add(sent->psn, sent->psn_count);

		if (psn_diff(to, sent->psn) <= 0)
			break;
		if (rc_is_read_or_atomic(sent->op))
			return psn_diff(to, r->psn_una) <= 0;
		if (psn_diff(to, end) < 0)
			break;
		progress(qp, end);
		tp_sent_complete(tp, qp, HW_SUCCESS, 0);
		complete_done(tp, qp);
	}
	if (psn_diff(to, r->psn_una) > 0)
		progress(qp, to);
	return true;
}

static void retry(struct tp *tp, struct emu_qp *qp)
{
	struct rc_req *r = &qp->req;

	if (!r->retries_left) {
		head_fail(tp, qp, HW_RETRY_EXC, WHY_RETRIES_SPENT);
		return;
	}
	r->retries_left--;
	r->deadline_ns = 0;
	r->wants_timer = true;
	rc_rewind(qp);
}

enum { RNR_RETRY_FOR_EVER = 7 };

static void rnr_nak(struct tp *tp, struct emu_qp *qp, uint8_t code)
{
	struct rc_req *r = &qp->req;

	if (qp->attr.rnr_retry != RNR_RETRY_FOR_EVER) {
		if (!r->rnr_left) {
			head_fail(tp, qp, HW_RNR_RETRY_EXC, WHY_RNR_RETRIES_SPENT);
			return;
		}
		r->rnr_left--;
	}
	r->is_waiting_rnr = true;
	r->rnr_code = code;
	r->deadline_ns = 0;
	r->wants_timer = true;
}

struct nak_row {
	enum hw_status status;
	enum why why;
};

static const struct nak_row nak_rows[] = {
	[AETH_NAK_INVALID_REQUEST - AETH_NAK_SEQUENCE] = { HW_REM_INV_REQ,
		WHY_NAK_INVALID_REQUEST },
	[AETH_NAK_REMOTE_ACCESS - AETH_NAK_SEQUENCE] = { HW_REM_ACCESS, WHY_NAK_REMOTE_ACCESS },
	[AETH_NAK_REMOTE_OPERATION - AETH_NAK_SEQUENCE] = { HW_REM_OP, WHY_NAK_REMOTE_OPERATION },
};

static void nak(struct tp *tp, struct emu_qp *qp, uint8_t syndrome)
{
	unsigned code = syndrome - AETH_NAK_SEQUENCE;

	if (code == 0)
		retry(tp, qp);
	else if (code < sizeof nak_rows / sizeof *nak_rows)
		head_fail(tp, qp, nak_rows[code].status, nak_rows[code].why);
}

/* Is an answer with this PSN about something outstanding?  Old ones are normal, and silent. */
static bool is_expected(struct tp *tp, struct emu_qp *qp, uint32_t psn, uint8_t opcode)
{
	int32_t offset = psn_diff(psn, qp->req.psn_una);

	if (offset < 0)
		return false;
	if ((uint32_t)offset < qp->req.psn_out)
		return true;
	dev_why(tp->dev, .why = WHY_ACK_UNEXPECTED, .side = WHY_SIDE_SEND, .qpn = qp->qpn,
		.peer_qpn = qp->dest_qpn, .psn = psn, .opcode = opcode,
		.found = qp->req.psn_una);
	return false;
}

static void take_ack(struct tp *tp, struct emu_qp *qp, uint32_t psn, uint8_t syndrome)
{
	uint8_t kind = syndrome >> 5;
	bool is_ack = kind == 0;

	if (!acknowledge(tp, qp, is_ack ? psn_add(psn, 1) : psn)) {
		retry(tp, qp);
		return;
	}
	if (qp->state != QP_RTS || is_ack || qp->req.sent_head == qp->req.sent_tail)
		return;
	if (kind == AETH_RNR_NAK >> 5)
		rnr_nak(tp, qp, syndrome & 31);
	else
		nak(tp, qp, syndrome);
}

/* Put @bytes of an answer where the request's list says. */
static enum hw_status scatter(struct tp *tp, struct emu_qp *qp, const struct rc_sent *sent,
			      const struct iovec *src, unsigned src_count, uint32_t bytes,
			      bool *readable_out)
{
	const struct hw_work *w = &tp->rx.work;
	enum hw_status status = tp_work_fetch(tp, qp, rc_block_of(qp, sent), &tp->rx);
	struct tp_gather g = { w->sge, w->sge_count, qp->req.read_bytes, bytes, KEY_LOCAL_WRITE };
	const struct hw_sge *bad;
	enum why why;

	if (status != HW_SUCCESS)
		return status;
	if (w->op != sent->op || w->bytes != sent->bytes) {
		head_why(tp, qp, WHY_WQE_CHANGED, sent);
		return HW_LOC_QP_OP;
	}
	why = tp_gather(tp, &g, &tp->rx, &bad);
	if (why != WHY_NONE) {
		dev_why(tp->dev, .why = why, .side = WHY_SIDE_SEND, .qpn = qp->qpn,
			.peer_qpn = qp->dest_qpn, .wqe_index = sent->index,
		.opcode = sent->opcode,
			.key = bad->lkey, .addr = bad->addr, .bytes = bad->bytes);
		return HW_LOC_PROT;
	}
	switch (mem_copy_spans(tp->rx.span, tp->rx.span_count, 0, src, src_count, 0, bytes)) {
	case MEM_SIDE_SRC:
		*readable_out = false;
		return HW_SUCCESS;
	case MEM_SIDE_DST:
		head_why(tp, qp, WHY_MEMORY_GONE, sent);
		return HW_LOC_PROT;
	case MEM_SIDE_NONE:
		break;
	}
	return HW_SUCCESS;
}

/* The head was answered in full. */
static void answered(struct tp *tp, struct emu_qp *qp, struct rc_sent *sent)
{
	struct rc_req *r = &qp->req;

	if (r->reads_out && r->send_at != r->sent_head)
		r->reads_out--;
	tp_sent_complete(tp, qp, HW_SUCCESS, sent->bytes);
	complete_done(tp, qp);
}

static bool is_answer_fitting(const struct emu_qp *qp, const struct rc_sent *sent,
			      const struct ib_packet *p)
{
	uint8_t op = ib_operation(p->opcode);
	bool is_last = op == RC_READ_RESPONSE_LAST || op == RC_READ_RESPONSE_ONLY;
	uint32_t left = sent->bytes - qp->req.read_bytes;

	if (sent->op != HW_OP_READ)
		return op == RC_ATOMIC_ACKNOWLEDGE && p->packet_count == 1;
	if (op == RC_ATOMIC_ACKNOWLEDGE || p->payload_bytes > left)
		return false;
	if (is_last != (p->payload_bytes == left))
		return false;
	if (!is_last && (p->payload_bytes == 0 || p->payload_bytes % qp->mtu_bytes))
		return false;
	return p->packet_count == psn_count_of(p->payload_bytes, qp->mtu_bytes);
}

static void take_answer_data(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p,
			     bool *readable_out)
{
	struct rc_req *r = &qp->req;
	struct rc_sent *sent = rc_sent_at(qp, r->sent_head);
	uint64_t original = p->original;
	const struct iovec atomic = { &original, sizeof original };	/* low bytes first */
	bool is_read = sent->op == HW_OP_READ;
	enum hw_status status;

	if (!is_answer_fitting(qp, sent, p)) {
		head_fail(tp, qp, HW_BAD_RESP, WHY_RESPONSE_BAD);
		return;
	}
	status = scatter(tp, qp, sent, is_read ? p->span : &atomic, is_read ? p->span_count : 1,
			 is_read ? p->payload_bytes : sent->bytes, readable_out);
	if (!*readable_out)
		return;
	if (status != HW_SUCCESS) {
		tp_sent_complete(tp, qp, status, 0);
		return;
	}
	r->read_bytes += p->payload_bytes;
	progress(qp, psn_add(p->psn, p->packet_count));
	if (!is_read || r->read_bytes == sent->bytes)
		answered(tp, qp, sent);
}

static void take_answer(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p,
			bool *readable_out)
{
	struct rc_req *r = &qp->req;

	if (!acknowledge(tp, qp, p->psn)) {
		retry(tp, qp);
		return;
	}
	if (qp->state != QP_RTS || r->psn_una != p->psn || r->sent_head == r->sent_tail ||
	    !rc_is_read_or_atomic(rc_sent_at(qp, r->sent_head)->op))
		return;
	take_answer_data(tp, qp, p, readable_out);
}

/* An answer may let the next request go. */
static void go_on(struct emu_qp *qp)
{
	const struct rc_req *r = &qp->req;

	if (qp->state == QP_RTS && (r->send_at != r->sent_tail || r->sq_next != r->sq_produced))
		qp->work |= QP_WORK_REQUEST;
}

void rc_take_answer(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p,
		    bool *readable_out)
{
	if (!is_expected(tp, qp, p->psn, p->opcode))
		return;
	if (ib_operation(p->opcode) == RC_ACKNOWLEDGE)
		take_ack(tp, qp, p->psn, p->aeth_syndrome);
	else
		take_answer(tp, qp, p, readable_out);
	go_on(qp);
}

/* The gate of rc_take_answer() and arrival, for two QPs that are known to be each other's. */
static bool may_hand_over(const struct emu_qp *from, const struct emu_qp *to)
{
	const struct rc_answers *r = &from->answers;

	return r->ack_is_due && r->resource_answer == r->resource_made &&
	       (to->state == QP_RTS || to->state == QP_SQD) && from->dest_qpn == to->qpn &&
	       from->type == to->type && !((from->pkey ^ to->pkey) & 0x7fff) &&
	       !memcmp(from->sgid, to->dgid, sizeof from->sgid) &&
	       !memcmp(from->dgid, to->sgid, sizeof from->dgid);
}

void rc_hand_over_ack(struct tp *tp, struct emu_qp *from, struct emu_qp *to)
{
	struct rc_answers *r = &from->answers;

	if (!may_hand_over(from, to))
		return;
	r->ack_is_due = false;
	from->work &= ~(uint32_t)QP_WORK_RESPOND;
	if (!is_expected(tp, to, r->ack_psn, RC_ACKNOWLEDGE))
		return;
	take_ack(tp, to, r->ack_psn, r->ack_syndrome);
	go_on(to);
}

/* The data of a READ is in place already; an atomic's result still has to be put there. */
static void executed_read(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p)
{
	struct rc_req *r = &qp->req;
	struct rc_sent *sent;

	if (!acknowledge(tp, qp, p->psn) || qp->state != QP_RTS)
		return;
	sent = rc_sent_at(qp, r->sent_head);
	r->read_bytes = sent->bytes;
	progress(qp, psn_add(sent->psn, sent->psn_count));
	answered(tp, qp, sent);
}

void rc_executed(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p, uint64_t original)
{
	uint8_t op = ib_operation(p->opcode);
	struct ib_packet answer = {
		.opcode = ib_is_atomic(op) ?
			  RC_ATOMIC_ACKNOWLEDGE : RC_ACKNOWLEDGE,
		.psn = psn_add(p->psn, p->packet_count - 1),
		.packet_count = 1,
		.aeth_syndrome = AETH_ACK_UNLIMITED,
		.original = original,
	};
	bool is_readable = true;	/* it is ours */

	rc_req_sent(tp, qp, p);
	if (ib_operation(p->opcode) == RC_READ_REQUEST)
		executed_read(tp, qp, p);
	else
		rc_take_answer(tp, qp, &answer, &is_readable);
}

void rc_timer(struct tp *tp, struct emu_qp *qp)
{
	struct rc_req *r = &qp->req;

	r->deadline_ns = 0;
	if (qp->state != QP_RTS || r->sent_head == r->sent_tail)
		return;
	if (r->is_waiting_rnr) {
		r->is_waiting_rnr = false;
		rc_rewind(qp);
	} else if (r->psn_out) {
		retry(tp, qp);
	}
}

/* RNR NAK timer codes in units of 10 us.  Source: IBTA volume 1, table 45. */
static const uint32_t rnr_timer_10us[32] = {
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768,
	1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

uint64_t rc_timer_ns(const struct emu_qp *qp)
{
	if (qp->req.is_waiting_rnr)
		return UINT64_C(10000) * rnr_timer_10us[qp->req.rnr_code & 31];
	if (!qp->attr.timeout)
		return UINT64_MAX;
	return UINT64_C(4096) << (qp->attr.timeout & 31);
}
