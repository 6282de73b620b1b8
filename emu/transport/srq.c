/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives from a shared queue, as queue.c and ends.c ask for them.
 *
 * What a list of the application may hold: an index outside of the queue, one that is in use, a
 * record that announces more than there is, memory that is gone.  Any of these ends the queue
 * (SRQ_ERR) and the QP that found it.  How often a list goes round in circles is bounded by what
 * the record announces.
 */
#include <string.h>
#include "emu/transport/tp_local.h"

static void srq_why(struct tp *tp, struct emu_qp *qp, enum why why, uint32_t index,
		    enum hw_fault fault)
{
	dev_why(tp->dev, .why = why, .side = WHY_SIDE_RECV, .qpn = qp->qpn,
		.peer_qpn = qp->dest_qpn, .wqe_index = (uint16_t)index, .key = qp->srq->srqn,
		.addr = qp->srq->produced, .bytes = qp->srq->wqe_count, .found = fault);
}

static int broken(struct tp *tp, struct emu_qp *qp, enum why why, uint32_t index)
{
	srq_why(tp, qp, why, index, HW_OK);
	srq_fail(qp->srq);
	tp_qp_fatal(qp);
	return -1;
}

/* 1: the next WQE of the list is posted and there; 0: none is; -1: see broken(). */
static int look_for_next(struct tp *tp, struct emu_qp *qp)
{
	struct emu_srq *srq = qp->srq;
	enum why why = WHY_NONE;

	if (srq->has_failed)
		return broken(tp, qp, WHY_SRQ_FAILED, srq->next);
	if (!srq_posted(srq))
		why = srq_doorbell(srq);
	if (why != WHY_NONE)
		return broken(tp, qp, why, srq->next);
	if (!srq_posted(srq))
		return 0;
	if (srq->next >= srq->wqe_count || srq->is_held[srq->next])
		return broken(tp, qp, WHY_SRQ_LIST, srq->next);
	return 1;
}

bool tp_srq_has_receives(struct tp *tp, struct emu_qp *qp, uint32_t count)
{
	int got = look_for_next(tp, qp);

	if (got > 0 && srq_posted(qp->srq) < count)
		srq_doorbell(qp->srq);		/* one that can't be believed is found later */
	return got < 0 || srq_posted(qp->srq) >= count;
}

int tp_srq_fetch(struct tp *tp, struct emu_qp *qp)
{
	struct emu_srq *srq = qp->srq;
	bool is_holding = qp->answers.is_holding;
	int got = is_holding ? 1 : look_for_next(tp, qp);
	uint32_t index = is_holding ? qp->answers.held_index : srq->next;
	enum hw_fault fault;
	uint16_t next;

	if (got <= 0)
		return got;
	tp->rx.pdn = srq->pdn;
	if (mem_copy_in(tp->rx.wqe, srq->buf_addr + (uint64_t)index * srq->stride, srq->stride))
		return broken(tp, qp, WHY_WQE_MEMORY, index);
	fault = mlx5_srq_read(tp->rx.wqe, srq->stride, &tp->rx.recv, &next);
	if (fault == HW_OK)
		return 1;
	srq_why(tp, qp, WHY_RECV_MALFORMED, index, fault);
	return -HW_LOC_QP_OP_RECV;
}

void tp_recv_hold(struct tp *tp, struct emu_qp *qp)
{
	struct rc_answers *r = &qp->answers;

	if (!qp->srq || r->is_holding)
		return;
	r->is_holding = true;
	r->held_index = qp->srq->next;
	srq_hold(qp->srq, r->held_index, mlx5_srq_next(tp->rx.wqe));
}

uint32_t tp_srq_give(struct emu_qp *qp)
{
	uint32_t index = qp->answers.held_index;

	assert(qp->answers.is_holding);
	qp->answers.is_holding = false;
	srq_let_go(qp->srq, index);
	return index;
}
