/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RC responder: a request packet through a chain of judgements.
 *
 * The order of the stages is the order of the rules; only the last one touches
 * memory.  Every verdict but "next" and "done" carries a reason.  Answers are
 * left behind as state and fetched by rc_resp_next() (rc_answer.c).
 * Source: IBTA volume 1, 9.7.4 (responder rules), 9.7.4.1.2 table 57 (NAK codes).
 */
#include <errno.h>
#include <string.h>
#include "emu/transport/rc_local.h"
#include "emu/transport/resp_local.h"

const struct op_row resp_op_rows[32] = {
	[RC_SEND_FIRST]       = { KIND_SEND, true, false, true, 0 },
	[RC_SEND_MIDDLE]      = { KIND_SEND, false, false, true, 0 },
	[RC_SEND_LAST]        = { KIND_SEND, false, true, true, 0 },
	[RC_SEND_LAST_IMM]    = { KIND_SEND, false, true, true, 0 },
	[RC_SEND_ONLY]        = { KIND_SEND, true, true, true, 0 },
	[RC_SEND_ONLY_IMM]    = { KIND_SEND, true, true, true, 0 },
	[RC_WRITE_FIRST]      = { KIND_WRITE, true, false, false, KEY_REMOTE_WRITE },
	[RC_WRITE_MIDDLE]     = { KIND_WRITE, false, false, false, KEY_REMOTE_WRITE },
	[RC_WRITE_LAST]       = { KIND_WRITE, false, true, false, KEY_REMOTE_WRITE },
	[RC_WRITE_LAST_IMM]   = { KIND_WRITE, false, true, true, KEY_REMOTE_WRITE },
	[RC_WRITE_ONLY]       = { KIND_WRITE, true, true, false, KEY_REMOTE_WRITE },
	[RC_WRITE_ONLY_IMM]   = { KIND_WRITE, true, true, true, KEY_REMOTE_WRITE },
	[RC_READ_REQUEST]     = { KIND_READ, true, true, false, KEY_REMOTE_READ },
	[RC_COMPARE_SWAP]     = { KIND_ATOMIC, true, true, false, KEY_REMOTE_ATOMIC },
	[RC_FETCH_ADD]        = { KIND_ATOMIC, true, true, false, KEY_REMOTE_ATOMIC },
	[RC_MASKED_COMPARE_SWAP] = { KIND_ATOMIC, true, true, false, KEY_REMOTE_ATOMIC },
	[RC_MASKED_FETCH_ADD] = { KIND_ATOMIC, true, true, false, KEY_REMOTE_ATOMIC },
	[RC_SEND_LAST_INVAL]  = { KIND_SEND, false, true, true, 0 },
	[RC_SEND_ONLY_INVAL]  = { KIND_SEND, true, true, true, 0 },
};

static uint32_t request_psns(const struct request *q)
{
	return q->op->kind == KIND_READ ? psn_count_of(q->p->dma_bytes, q->qp->mtu_bytes) :
	       q->p->packet_count;
}

static struct judged rc_known(struct request *q)
{
	return q->op->kind == KIND_NONE ? JUDGED(V_NAK_INVALID, WHY_OPCODE_UNKNOWN) : NEXT;
}

static struct judged rc_psn(struct request *q)
{
	struct rc_resp *r = q->r;
	int32_t offset = psn_diff(q->p->psn, r->psn_expected);

	if (offset < 0)
		return JUDGED(V_DUPLICATE, WHY_NONE);
	if (offset > 0)
		return JUDGED(q->answers->is_silent ? V_DROP : V_NAK_SEQUENCE, WHY_PSN_AHEAD);
	q->answers->is_silent = false;
	return NEXT;
}

static struct judged rc_sequence(struct request *q)
{
	const struct rc_resp *r = q->r;

	if (r->is_in_message ? q->op->starts || q->op->kind != r->message_kind : !q->op->starts)
		return JUDGED(V_NAK_INVALID, WHY_OPCODE_SEQUENCE);
	return NEXT;
}

struct judged resp_permitted(struct request *q)
{
	if ((q->r->access & q->op->access) != q->op->access)
		return JUDGED(V_NAK_INVALID, WHY_QP_RIGHTS);
	if (q->op->kind == KIND_ATOMIC && q->p->va & (atomic_bytes(q->p) - 1))
		return JUDGED(V_NAK_INVALID, WHY_ATOMIC_UNALIGNED);
	return NEXT;
}

/* Those that the peer can know to be in use: it may have got an answer that is being repeated. */
static unsigned resources_in_use(const struct rc_answers *r)
{
	unsigned count = 0;

	for (uint8_t i = r->resource_answer; i != r->resource_made; i++)
		count += !r->resource[i % RC_RESOURCES_MAX].is_done &&
			 !r->resource[i % RC_RESOURCES_MAX].is_repeat;
	return count;
}

struct judged resp_resources(struct request *q)
{
	int got;

	if (q->op->kind == KIND_READ || q->op->kind == KIND_ATOMIC) {
		/* A peer finds its own PSN expected: nothing of it is waiting for an answer. */
		unsigned in_use = q->remote ? 0 : resources_in_use(q->answers);

		if (in_use >= q->r->resource_limit)
			return JUDGED(V_NAK_INVALID, WHY_READ_RESOURCES);
		return NEXT;
	}
	if (!q->op->takes_recv)
		return NEXT;
	got = tp_recv_fetch(q->tp, q->qp);
	if (got > 0)
		return NEXT;
	if (got == 0)
		return JUDGED(V_RNR, WHY_RECV_MISSING);
	return got == -1 ? JUDGED(V_DROP, WHY_RQ_DOORBELL) :
	       JUDGED(V_RECV_MALFORMED, WHY_RECV_MALFORMED);
}

/* Every packet but the last is full, and both ends agree on what full is. */
static bool is_payload_fitting(const struct request *q)
{
	const struct ib_packet *p = q->p;
	uint32_t mtu = q->qp->mtu_bytes;	/* the peer's is the same, see is_for_us() */

	if (ib_is_masked_atomic(ib_operation(p->opcode)))
		return p->payload_bytes == IB_MASKS_BYTES && p->packet_count == 1 &&
		       p->dma_bytes == atomic_bytes(p);
	if (q->op->kind == KIND_READ || q->op->kind == KIND_ATOMIC)
		return p->payload_bytes == 0 && p->packet_count == 1;
	if (!p->mtu_bytes || !p->packet_count ||
	    p->packet_count != psn_count_of(p->payload_bytes, p->mtu_bytes))
		return false;
	if (q->op->starts && q->op->ends && p->packet_count == 1)
		return p->payload_bytes <= mtu;
	if (p->mtu_bytes != mtu)
		return false;
	return q->op->ends || (p->payload_bytes && p->payload_bytes % mtu == 0);
}

struct judged resp_length(struct request *q)
{
	const struct rc_resp *r = q->r;
	const struct ib_packet *p = q->p;
	uint64_t so_far = (q->op->starts ? 0 : r->message_bytes) + (uint64_t)p->payload_bytes;

	if (!is_payload_fitting(q) || so_far > q->tp->dev->profile->max_msg_bytes)
		return JUDGED(V_NAK_INVALID, WHY_PACKET_LENGTH);
	if (q->op->kind == KIND_SEND && so_far > q->tp->rx.recv.bytes)
		return JUDGED(V_RECV_SHORT, WHY_RECV_TOO_SMALL);
	if (q->op->kind == KIND_WRITE) {
		uint32_t whole = q->op->starts ? p->dma_bytes : r->write_bytes;

		if (q->op->ends ? so_far != whole : so_far >= whole)
			return JUDGED(V_NAK_INVALID, WHY_PACKET_LENGTH);
	}
	if (q->op->kind == KIND_READ && p->dma_bytes > q->tp->dev->profile->max_msg_bytes)
		return JUDGED(V_NAK_INVALID, WHY_PACKET_LENGTH);
	return NEXT;
}

static struct judged recv_key(struct request *q)
{
	struct hw_recv *recv = &q->tp->rx.recv;
	struct tp_gather g = {
		recv->sge, recv->sge_count, q->op->starts ? 0 : q->r->message_bytes,
		q->p->payload_bytes, KEY_LOCAL_WRITE,
	};
	const struct hw_sge *bad;
	enum why why = tp_gather(q->tp, &g, &q->tp->rx, &bad);

	return why == WHY_NONE ? NEXT : JUDGED(V_RECV_PROTECTED, why);
}

static const struct key_entry *remote_find(const void *ctx, uint32_t index,
					   struct key_entry *room)
{
	const struct rc_remote *remote = ctx;

	return remote->key(remote->ctx, index, room) ? NULL : room;
}

/* The key in the owner's table, or in copies of its entries there. */
static enum why memory_check(struct request *q, uint32_t key, uint64_t va, uint64_t bytes)
{
	const struct key_use use = {
		.key = key, .pdn = q->r->pdn, .access = q->op->access, .addr = va, .bytes = bytes,
		.qpn = q->remote ? q->qp->dest_qpn : q->qp->qpn,
	};

	return q->remote ? key_find_check(remote_find, q->remote, &use, &q->memory) :
	       key_use_check(&q->tp->dev->keys, &use, &q->memory);
}

/* A first WRITE packet must name a range that holds the whole message; later ones their part. */
struct judged resp_key(struct request *q)
{
	const struct rc_resp *r = q->r;
	const struct ib_packet *p = q->p;
	bool is_later = q->op->kind == KIND_WRITE && !q->op->starts;
	uint64_t va = is_later ? r->write_va + r->message_bytes : p->va;
	uint64_t bytes = q->op->kind == KIND_ATOMIC ? atomic_bytes(p) :
			 is_later ? p->payload_bytes : p->dma_bytes;
	enum why why;

	if (q->op->kind == KIND_SEND)
		return recv_key(q);
	if (!bytes)
		return NEXT;
	why = memory_check(q, is_later ? r->write_rkey : p->rkey, va, bytes);
	return why == WHY_NONE ? NEXT : JUDGED(V_NAK_ACCESS, why);
}

static struct rc_resource *resource_last(struct rc_answers *r)
{
	return &r->resource[(uint8_t)(r->resource_made - 1) % RC_RESOURCES_MAX];
}

static struct rc_resource *resource_new(struct request *q)
{
	struct rc_answers *r = q->answers;
	struct rc_resource *res = &r->resource[r->resource_made++ % RC_RESOURCES_MAX];

	/* Repetitions are the oldest, and the peer asks for them again if it needs them. */
	if ((uint8_t)(r->resource_made - r->resource_answer) > RC_RESOURCES_MAX)
		r->resource_answer++;

	*res = (struct rc_resource){
		.opcode = ib_operation(q->p->opcode),
		.psn = q->p->psn,
		.psn_count = request_psns(q),
		.rkey = q->p->rkey,
		.pdn = q->r->pdn,
		.bytes = q->op->kind == KIND_READ ? q->p->dma_bytes : 0,
		.va = q->p->va,
	};
	q->qp->work |= QP_WORK_RESPOND;
	return res;
}

static struct judged execute_read(struct request *q)
{
	q->answers->ack_is_due = false;		/* the answer acknowledges what came before */
	resource_new(q);
	return JUDGED(V_DONE, WHY_NONE);
}

static struct judged execute_atomic(struct request *q)
{
	static const struct home nobodys;
	const uint64_t at = (uintptr_t)q->memory.iov_base;
	/* Others' memory is under a lock of theirs. */
	const struct home *home = mem_is_far(at) ? &nobodys : &q->tp->dev->home;
	struct atomic atomic;
	uint64_t old;
	int failed;

	if (!atomic_read(q->p, &atomic))
		return JUDGED(V_UNREADABLE, WHY_NONE);
	home_atomics_lock(home);
	failed = atomic_execute(&atomic, at, &old);
	home_atomics_unlock(home);
	if (failed)
		return JUDGED(V_NAK_ACCESS, WHY_MEMORY_GONE);
	q->answers->ack_is_due = false;
	resource_new(q)->original = old;
	return JUDGED(V_DONE, WHY_NONE);
}

static struct judged execute_copy(struct request *q)
{
	const struct ib_packet *p = q->p;
	bool is_send = q->op->kind == KIND_SEND;
	const struct iovec *dst = is_send ? q->tp->rx.span : &q->memory;
	unsigned dst_count = is_send ? q->tp->rx.span_count : 1;

	if (!p->payload_bytes)
		return JUDGED(V_DONE, WHY_NONE);
	switch (mem_copy_spans(dst, dst_count, 0, p->span, p->span_count, 0, p->payload_bytes)) {
	case MEM_SIDE_SRC:
		return JUDGED(V_UNREADABLE, WHY_NONE);
	case MEM_SIDE_DST:
		return JUDGED(is_send ? V_RECV_PROTECTED : V_NAK_ACCESS, WHY_MEMORY_GONE);
	case MEM_SIDE_NONE:
		break;
	}
	return JUDGED(V_DONE, WHY_NONE);
}

struct judged resp_execute(struct request *q)
{
	if (q->op->kind == KIND_READ)
		return execute_read(q);
	if (q->op->kind == KIND_ATOMIC)
		return execute_atomic(q);
	return execute_copy(q);
}

static const struct stage rc_responder_stages[] = {
	{ "known",     rc_known       },	/* an opcode of this transport       */
	{ "psn",       rc_psn         },	/* in order, duplicate, or a gap     */
	{ "sequence",  rc_sequence    },	/* first/middle/last fit together    */
	{ "permitted", resp_permitted },	/* QP access flags allow the opcode  */
	{ "queue",     xrc_queue      },	/* XRC: the one that the packet names */
	{ "resources", resp_resources },	/* a receive or a read slot is free  */
	{ "length",    resp_length    },	/* payload agrees with MTU and RETH  */
	{ "key",       resp_key       },	/* key, range, rights, PD            */
	{ "execute",   resp_execute   },	/* the only stage that moves data    */
};

enum { STAGES = sizeof rc_responder_stages / sizeof *rc_responder_stages };

struct judged resp_judge(struct request *q, const struct stage *stage, size_t count)
{
	struct judged j = NEXT;

	for (size_t i = 0; i < count && j.verdict == V_NEXT; i++)
		j = stage[i].judge(q);
	return j;
}

static void answer_later(struct emu_qp *qp, uint8_t syndrome, uint32_t psn)
{
	qp->answers.ack_is_due = true;
	qp->answers.ack_syndrome = syndrome;
	qp->answers.ack_psn = psn;
	qp->work |= QP_WORK_RESPOND;
}

/*
 * A SEND with invalidate has arrived and is acknowledged whatever becomes of the key; a key
 * that can't be invalidated fails the receive and the QP.  False: it has failed.
 */
bool resp_invalidate(struct request *q)
{
	struct emu_qp *qp = q->qp;

	if (mw_invalidate(q->tp->dev, qp, q->p->imm))
		return true;
	dev_why(q->tp->dev, .why = WHY_INVALIDATE_KEY, .side = WHY_SIDE_RECV, .qpn = qp->qpn,
		.peer_qpn = q->p->src_qpn, .wqe_index = tp_recv_index(qp),
		.opcode = q->p->opcode, .psn = q->p->psn, .key = q->p->imm);
	tp_recv_fail(q->tp, qp, HW_REM_INV_REQ);
	tp_qp_fail(qp);
	qp_event(qp, EVENT_QP_ACCESS_ERR);
	return false;
}

/* The message state after an accepted packet. */
void resp_advance(struct request *q)
{
	struct rc_resp *r = q->r;
	const struct ib_packet *p = q->p;

	if (q->op->starts) {
		r->message_kind = q->op->kind;
		r->message_bytes = 0;
		r->write_va = p->va;
		r->write_rkey = p->rkey;
		r->write_bytes = p->dma_bytes;
	}
	r->message_bytes += p->payload_bytes;
	r->is_in_message = !q->op->ends;
	if (q->op->ends)
		r->msn = psn_add(r->msn, 1);
}

/* The very last: from here on whoever has the next packet executes it, and changes all of this. */
static void gate_open(struct request *q)
{
	atomic_store_explicit(&q->r->psn_expected, psn_add(q->p->psn, request_psns(q)),
			      memory_order_release);
}

static void message_answer(struct request *q)
{
	if (q->op->kind == KIND_READ || q->op->kind == KIND_ATOMIC)
		resource_last(q->answers)->msn = q->r->msn;
	else if (q->p->wants_ack)
		answer_later(q->qp, AETH_ACK_UNLIMITED,
			     psn_add(q->p->psn, request_psns(q) - 1));
}

static void message_end(struct request *q)
{
	struct rc_resp *r = q->r;
	const struct ib_packet *p = q->p;
	uint8_t op = ib_operation(p->opcode);

	message_answer(q);
	if ((op == RC_SEND_LAST_INVAL || op == RC_SEND_ONLY_INVAL) && !resp_invalidate(q))
		return;
	if (q->op->takes_recv)
		tp_recv_complete(q->tp, q->qp, p, r->message_bytes);
}

static void accept(struct request *q)
{
	resp_advance(q);
	if (q->op->ends)
		message_end(q);
	else if (q->op->takes_recv)
		tp_recv_hold(q->tp, q->qp);
	gate_open(q);
}

/* A READ or atomic again: answer it again from what was remembered. */
static bool repeat_answer(struct request *q)
{
	struct rc_answers *r = q->answers;

	for (unsigned i = 1; i <= RC_RESOURCES_MAX; i++) {
		uint8_t at = (uint8_t)(r->resource_made - i);
		struct rc_resource *res = &r->resource[at % RC_RESOURCES_MAX];
		uint32_t offset = (uint32_t)psn_diff(q->p->psn, res->psn);
		uint64_t skip = (uint64_t)offset * q->qp->mtu_bytes;

		if (res->opcode != ib_operation(q->p->opcode) || offset >= res->psn_count)
			continue;
		if (q->op->kind == KIND_READ &&
		    (q->p->va != res->va + skip || q->p->rkey != res->rkey ||
		     q->p->dma_bytes != res->bytes - skip))
			return false;
		res->is_repeat |= res->is_done;
		res->is_done = false;
		res->sent_bytes = res->start_bytes = (uint32_t)skip;
		if ((uint8_t)(r->resource_made - r->resource_answer) < i)
			r->resource_answer = at;
		q->qp->work |= QP_WORK_RESPOND;
		return true;
	}
	return false;
}

static void duplicate(struct request *q)
{
	struct emu_qp *qp = q->qp;

	if (q->op->kind != KIND_READ && q->op->kind != KIND_ATOMIC) {
		answer_later(qp, AETH_ACK_UNLIMITED, psn_add(qp->resp->psn_expected, PSN_MASK));
		return;
	}
	if (!repeat_answer(q))
		dev_why(q->tp->dev, .why = WHY_PSN_STALE, .side = WHY_SIDE_RECV, .qpn = qp->qpn,
			.peer_qpn = q->p->src_qpn, .psn = q->p->psn, .opcode = q->p->opcode,
			.found = qp->resp->psn_expected);
}

/* What each refusal does: the answer, the end of the receive in use, the QP's fate. */
static const struct {
	uint8_t syndrome;
	uint8_t recv_status;
	uint8_t event;
	bool fails_qp;
} refusals[VERDICT_COUNT] = {
	[V_RNR]            = { AETH_RNR_NAK, 0, 0, false },
	[V_NAK_SEQUENCE]   = { AETH_NAK_SEQUENCE, 0, 0, false },
	[V_NAK_INVALID]    = { AETH_NAK_INVALID_REQUEST, 0, EVENT_QP_REQ_ERR, true },
	[V_NAK_ACCESS]     = { AETH_NAK_REMOTE_ACCESS, 0, EVENT_QP_ACCESS_ERR, true },
	[V_RECV_SHORT]     = { AETH_NAK_INVALID_REQUEST, HW_LOC_LEN, 0, true },
	[V_RECV_PROTECTED] = { AETH_NAK_REMOTE_OPERATION, HW_LOC_PROT_RECV, 0, true },
	[V_RECV_MALFORMED] = { AETH_NAK_REMOTE_OPERATION, HW_LOC_QP_OP_RECV, 0, true },
};

void resp_why(const struct request *q, enum why why)
{
	const struct ib_packet *p = q->p;
	const struct emu_qp *qp = q->qp;

	dev_why(q->tp->dev, .why = why, .side = WHY_SIDE_RECV, .qpn = qp->qpn,
		.peer_qpn = p->src_qpn, .wqe_index = tp_recv_index(qp),
		.opcode = p->opcode, .psn = p->psn, .key = p->rkey, .addr = p->va,
		.bytes = p->dma_bytes ? p->dma_bytes : p->payload_bytes,
		.found = why == WHY_PSN_AHEAD ? qp->resp->psn_expected : q->tp->rx.recv.bytes);
}

/* What the peer hears. */
static void refusal_answer(struct request *q, enum verdict verdict)
{
	struct emu_qp *qp = q->qp;
	uint8_t syndrome = refusals[verdict].syndrome;
	uint32_t psn = verdict == V_NAK_SEQUENCE ? qp->resp->psn_expected : q->p->psn;

	if (verdict == V_RNR)
		syndrome |= qp->attr.min_rnr_timer & 31;
	qp->answers.is_silent = true;
	answer_later(qp, syndrome, psn);
}

static void refusal_fail(struct request *q, enum verdict verdict)
{
	if (!refusals[verdict].fails_qp)
		return;
	tp_qp_fail(q->qp);
	if (refusals[verdict].event)
		qp_event(q->qp, refusals[verdict].event);
}

static void refuse(struct request *q, struct judged j)
{
	assert(j.why != WHY_NONE);
	resp_why(q, j.why);
	if (j.verdict == V_DROP)
		return;
	refusal_answer(q, j.verdict);
	if (refusals[j.verdict].recv_status)
		tp_recv_fail(q->tp, q->qp, refusals[j.verdict].recv_status);
	refusal_fail(q, j.verdict);
}

static struct request request_of(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p)
{
	return (struct request){ .tp = tp, .qp = qp, .r = qp->resp, .answers = &qp->answers,
		.p = p, .op = &resp_op_rows[ib_operation(p->opcode)] };
}

enum verdict rc_take_request(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p,
			     bool *readable_out)
{
	struct request q = request_of(tp, qp, p);
	struct judged j = resp_judge(&q, rc_responder_stages, STAGES);

	switch (j.verdict) {
	case V_DONE:
		accept(&q);
		break;
	case V_DUPLICATE:
		duplicate(&q);
		break;
	case V_UNREADABLE:
		*readable_out = false;
		break;
	case V_ELSEWHERE:
		break;
	case V_NEXT: case V_DROP: case V_RNR: case V_NAK_SEQUENCE: case V_NAK_INVALID:
	case V_NAK_ACCESS: case V_RECV_SHORT: case V_RECV_PROTECTED: case V_RECV_MALFORMED:
	case VERDICT_COUNT:
		refuse(&q, j);
		break;
	}
	return j.verdict;
}

/* --- an XRC request that another process has executed --- */

/* Its reason and what became of the receive are told there. */
void rc_executed_elsewhere(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p,
			   enum verdict verdict, uint64_t original)
{
	struct request q = request_of(tp, qp, p);

	qp->srq = NULL;
	if (verdict != V_DONE) {
		refusal_answer(&q, verdict);
		refusal_fail(&q, verdict);
		return;
	}
	if (q.op->kind == KIND_READ || q.op->kind == KIND_ATOMIC) {
		struct rc_resource *res = resource_new(&q);

		q.answers->ack_is_due = false;
		res->original = original;
		res->srqn = q.op->kind == KIND_READ ? p->extra.srqn : 0;
	}
	resp_advance(&q);
	if (q.op->ends)
		message_answer(&q);
	gate_open(&q);
}

/* --- in the place of the owner --- */

static int execute_remote_atomic(struct request *q, uint64_t *original_out)
{
	const struct rc_remote *remote = q->remote;
	uint32_t bytes = atomic_bytes(q->p);
	struct iovec old = { original_out, bytes };
	uint64_t at = (uintptr_t)q->memory.iov_base, new;
	struct iovec now = { &new, bytes };
	struct atomic atomic;
	int rc;

	if (at & (bytes - 1) || !atomic_read(q->p, &atomic))
		return -EFAULT;		/* as the owner would find */
	if (!remote->atomics_lock(remote->ctx))
		return -EAGAIN;
	rc = remote->read(remote->ctx, &old, 1, at, bytes);
	new = rc ? 0 : atomic_result(&atomic, *original_out);
	if (!rc && new != *original_out)
		rc = remote->atomics_held(remote->ctx) ?
		     remote->write(remote->ctx, at, &now, 1, bytes) : -EAGAIN;
	remote->atomics_unlock(remote->ctx);
	return rc;
}

/* Where the answer to the requester's own READ goes. */
static int execute_remote_read(struct request *q)
{
	const struct hw_work *w = &q->tp->tx.work;
	struct tp_gather g = { w->sge, w->sge_count, 0, q->p->dma_bytes, KEY_LOCAL_WRITE };
	const struct hw_sge *bad;

	if (!q->p->dma_bytes)
		return 0;
	q->tp->rx.pdn = q->qp->pdn;
	if (tp_gather(q->tp, &g, &q->tp->rx, &bad) != WHY_NONE)
		return -EACCES;
	return q->remote->read(q->remote->ctx, q->tp->rx.span, q->tp->rx.span_count,
			       (uintptr_t)q->memory.iov_base, q->p->dma_bytes);
}

static int execute_remote(struct request *q, uint64_t *original_out)
{
	const struct ib_packet *p = q->p;

	if (q->op->kind == KIND_ATOMIC)
		return execute_remote_atomic(q, original_out);
	if (q->op->kind == KIND_READ)
		return execute_remote_read(q);
	return q->remote->write(q->remote->ctx, (uintptr_t)q->memory.iov_base, p->span,
				p->span_count, p->payload_bytes);
}

/* Copied out of memory that another process may have broken. */
static bool is_for_us(const struct emu_qp *qp, const struct rc_resp *r, const struct ib_packet *p)
{
	return r->is_open && r->peer_qpn == qp->qpn && r->mtu_bytes == qp->mtu_bytes &&
	       ib_pkeys_match(r->pkey, p->pkey) && !memcmp(r->sgid, p->dgid, 16) &&
	       !memcmp(r->dgid, p->sgid, 16);
}

bool rc_is_one_sided(const struct ib_packet *p)
{
	const struct op_row *op = &resp_op_rows[ib_operation(p->opcode)];

	return op->kind != KIND_SEND && !op->takes_recv;
}

/* Sent before, it may still be on its way, and who takes it would execute it at the same time. */
static bool was_sent(const struct emu_qp *qp, uint32_t psn)
{
	return (uint32_t)psn_diff(psn, qp->req.psn_una) < qp->req.psn_out;
}

bool rc_execute_remotely(struct tp *tp, struct emu_qp *qp, const struct rc_remote *remote,
			 const struct ib_packet *p, uint64_t *original_out)
{
	struct rc_resp r = { 0 };
	struct rc_answers none = { 0 };
	struct request q = { .tp = tp, .qp = qp, .r = &r, .answers = &none, .remote = remote,
		.p = p, .op = &resp_op_rows[ib_operation(p->opcode)] };

	*original_out = 0;
	if (!rc_is_one_sided(p) || qp->req.reads_out || was_sent(qp, p->psn) ||
	    remote->load(remote->ctx, p->psn, &r) || !is_for_us(qp, &r, p))
		return false;
	if (resp_judge(&q, rc_responder_stages, STAGES - 1).verdict != V_NEXT ||
	    execute_remote(&q, original_out))
		return false;
	resp_advance(&q);
	gate_open(&q);
	remote->store(remote->ctx, &r);
	return true;
}
