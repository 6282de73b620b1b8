/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What must hold of the rig, whatever was done; see rig.h.
 */
#include "emu/obj/srq.h"
#include "emu/transport/psn.h"
#include "emu/transport/tp.h"
#include "hw-models/mlx5_cqe.h"
#include "hw-models/mlx5_wqe.h"
#include "tests/fuzz/rig.h"

struct rig_memory rig_known;

void rig_write(void *at, const void *bytes, size_t count)
{
	size_t offset = (size_t)((uint8_t *)at - (uint8_t *)rig_memory);

	assert(offset + count <= sizeof rig_known);
	memcpy(at, bytes, count);
	memcpy((uint8_t *)&rig_known + offset, bytes, count);
}

/* --- rules --- */

#define REGION(first, bytes) { offsetof(struct rig_memory, first), bytes }

/* Where the device must never write. */
static const struct { size_t at, bytes; } untouchable[] = {
	REGION(data[0][0], RIG_MARGIN),
	REGION(data[0][RIG_DATA_BYTES - RIG_MARGIN], 2 * RIG_MARGIN),	/* and of data[1] */
	REGION(data[1][RIG_DATA_BYTES - RIG_MARGIN], RIG_MARGIN),
	REGION(fixed, RIG_PAGE),
	REGION(foreign, RIG_PAGE),
	REGION(queue, 2 * RIG_QUEUE_BYTES),
	REGION(shared, RIG_SHARED * RIG_STRIDE),
	REGION(record, sizeof rig_known.record),
	REGION(shared_record, sizeof rig_known.shared_record),
	REGION(cq_record, sizeof rig_known.cq_record),
	REGION(behind, RIG_MARGIN),
};

static void memory_check(void)
{
	for (size_t i = 0; i < sizeof untouchable / sizeof *untouchable; i++)
		assert(!memcmp((uint8_t *)rig_memory + untouchable[i].at,
			       (uint8_t *)&rig_known + untouchable[i].at, untouchable[i].bytes));
}

static struct side *side_of(uint32_t qpn)
{
	for (unsigned i = 0; i < 2; i++)
		if (rig.side[i].qp->qpn == qpn)
			return &rig.side[i];
	return NULL;
}

static void syndrome_check(const struct mlx5_cqe_error *cqe)
{
	bool is_known = false;

	for (unsigned i = 1; i < HW_STATUS_COUNT; i++)
		is_known |= hw_syndromes[i].syndrome == mlx5_cqe_error_syndrome(cqe);
	assert(is_known);
}

/* Each once; the entry is where the list goes on from now on. */
static void shared_take(uint16_t index)
{
	struct rig_shared *s = &rig.shared;
	struct mlx5_srq_next *tail = (void *)rig_memory->shared[s->tail];
	struct mlx5_srq_next head = *tail;

	assert(index < RIG_SHARED && (s->is_posted[index] || s->is_twisted));
	if (!s->is_posted[index])
		return;
	s->is_posted[index] = false;
	s->posted--;
	mlx5_srq_next_set_next_wqe_index(&head, index);
	if (!s->is_twisted)
		rig_write(tail, &head, sizeof head);
	s->next[s->tail] = index;
	s->tail = index;
}

/* In the order of posting, each once: of receives all of them, of sends those that asked. */
static void cqe_check(const void *bytes)
{
	const struct mlx5_cqe *cqe = bytes;
	uint32_t kind = mlx5_cqe_kind(cqe);
	struct side *s = side_of(mlx5_cqe_qpn(cqe));
	uint16_t counter = (uint16_t)mlx5_cqe_wqe_counter(cqe);

	assert(s && mlx5_cqe_user_index(cqe) == s->qp->user_index);
	assert(kind <= HW_CQE_RECV_INV || kind == HW_CQE_REQ_ERR || kind == HW_CQE_RECV_ERR);
	assert(!mlx5_cqe_format(cqe));
	if (kind == HW_CQE_REQ_ERR || kind == HW_CQE_RECV_ERR)
		syndrome_check(bytes);
	if (kind == HW_CQE_REQ || kind == HW_CQE_REQ_ERR) {
		assert((uint16_t)(counter - s->sent_from) <
		       (uint16_t)(s->qp->req.sq_done - s->sent_from));
		s->sent_from = counter + 1;
	} else if (rig.shared.srq) {
		shared_take(counter);
	} else {
		assert(counter == s->recv_next);
		s->recv_next = counter + 1;
	}
}

/* Where an entry stands; only the end of a longer one counts. */
static const uint8_t *cqe_at(uint32_t index)
{
	const struct emu_cq *cq = rig.cq;

	return rig_memory->cqes[rig.ring] + index % cq->cqe_count * cq->cqe_bytes +
	       cq->cqe_bytes - HW_WQEBB_BYTES;
}

/* Ownership by the rule of the driver. */
static void cqes_check(void)
{
	for (;;) {
		const uint8_t *cqe = cqe_at(rig.cqes_seen);
		unsigned owner = rig.cqes_seen / rig.cq->cqe_count & 1;

		if (cqe[63] >> 4 == HW_CQE_INVALID || (cqe[63] & 1) != owner)
			break;
		cqe_check(cqe);
		rig.cqes_seen++;
	}
	assert(rig.cqes_seen == rig.cq->produced);
}

static void side_check(const struct side *s)
{
	const struct rc_req *r = &s->qp->req;
	const struct rc_answers *p = &s->qp->answers;
	bool is_reliable = transport_of(s->qp)->is_reliable;
	bool is_sent = r->sent_head == r->sent_tail && r->sq_next == r->sq_produced &&
		       r->sq_done == r->sq_produced;

	if (s->qp->state == QP_ERR)
		assert(is_sent && p->rq_consumed == p->rq_produced && !p->is_holding);
	else if (s->qp->state == QP_SQE)
		assert(is_sent);
	else if (s->qp->state == QP_RTS && (rig.config.timeout || !is_reliable))
		assert(is_sent);
}

static unsigned holders_count(const struct emu_qp *qp)
{
	unsigned count = qp->answers.is_holding;

	if (qp->type == QPT_DCT)
		for (const struct emu_qp *dcr = qp->dct->oldest; dcr; dcr = dcr->dcr->newer)
			count += dcr->answers.is_holding;
	return count;
}

/* Who holds an entry of the shared queue is a QP, and holds one. */
static void shared_check(void)
{
	const struct emu_srq *srq = rig.shared.srq;
	unsigned held = 0, holders = 0;

	for (unsigned i = 0; i < RIG_SHARED; i++)
		held += srq->is_held[i];
	for (unsigned i = 0; i < 2; i++)
		holders += holders_count(rig.side[i].qp);
	assert(held == holders && srq_posted(srq) < RIG_SHARED);
}

static void side_watch(struct side *s)
{
	const struct rc_req *r = &s->qp->req;
	const struct rc_resp *p = s->qp->resp;

	assert(r->sq_produced - r->sq_done <= RIG_BLOCKS);
	assert(r->sq_next - r->sq_done <= r->sq_produced - r->sq_done);
	assert(r->sent_tail - r->sent_head <= RIG_BLOCKS);
	assert(r->send_at - r->sent_head <= r->sent_tail - r->sent_head);
	assert(s->qp->answers.rq_produced - s->qp->answers.rq_consumed <= RIG_RECVS);
	if (s->qp->state != QP_RTS)
		return;
	assert(psn_diff(r->psn_una, s->psn_una) >= 0);
	assert(!transport_of(s->qp)->is_reliable ||
	       psn_diff(p->psn_expected, s->psn_expected) >= 0);
	s->psn_una = r->psn_una;
	s->psn_expected = p->psn_expected;
}

void rig_watch(void)
{
	side_watch(&rig.side[0]);
	side_watch(&rig.side[1]);
	if (rig.shared.srq)
		shared_check();
}

void rig_check(bool is_quiet)
{
	device_check();
	memory_check();
	if (!rig.is_lying)
		cqes_check();
	for (unsigned i = 0; is_quiet && i < 2; i++)
		side_check(&rig.side[i]);
}
