/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The only writer of completions: CQE, ownership, overrun, and the event for a
 * CQ that is armed.
 *
 * Everything a CQE speaks of is in memory before its owner byte is.
 * Source: device-abi C.6, C.9 and C.10.
 */
#include <endian.h>
#include "emu/engine/engine_local.h"
#include "emu/mem/mem.h"
#include "emu/obj/cq_ring.h"
#include "emu/obj/srq.h"

enum { OP_OWN = CQE_BYTES - 1 };

static void cq_fail(struct emu_dev *dev, struct emu_cq *cq, const struct emu_qp *qp, enum why why)
{
	dev_why(dev, .why = why, .side = WHY_SIDE_DEVICE, .qpn = qp->qpn, .bytes = cq->cqe_count,
		.found = cq->cqn);
	cq->has_failed = true;
	cq_event(cq, EVENT_CQ_ERR);
}

/* A completion that has no CQ to go to ends its QP. */
static void qp_lost_its_cq(struct emu_qp *qp)
{
	if (qp->is_armed_fatal)
		return;
	qp->is_armed_fatal = true;
	qp_state_set(qp, QP_ERR);
	qp->work |= QP_WORK_FLUSH;
	qp_event(qp, qp->type == QPT_WQ ? EVENT_WQ_FATAL : EVENT_QP_FATAL);
}

static bool has_room(struct emu_dev *dev, struct emu_cq *cq, const struct emu_qp *qp)
{
	if (cq->ignores_overrun || cq_has_room(cq))
		return true;
	if (cq_read_consumer(cq)) {
		cq_fail(dev, cq, qp, WHY_CQ_MEMORY);
		return false;
	}
	if (cq_has_room(cq))
		return true;
	cq_fail(dev, cq, qp, WHY_CQ_OVERRUN);
	return false;
}

static void raise_event(struct engine *e, struct emu_cq *cq)
{
	cq->arm = CQ_NOT_ARMED;
	cq->arm_sn = (cq->arm_sn + 1) & 3;
	cq->told_of = cq->produced;
	cq->event_deadline_ns = 0;
	atomic_fetch_sub(&e->armed_cqs, 1);
	if (!cq->channel)
		return;
	channel_push(cq->channel, &cq->user_handle, cq);
	doze_tell(e);
}

/* What an armed CQ waits for is there: tell now, or wait for more of it. */
static void event_due(struct engine *e, struct emu_cq *cq)
{
	if (cq->produced - cq->told_of >= cq->event_count) {
		raise_event(e, cq);
		return;
	}
	if (cq->event_deadline_ns)
		return;
	cq->event_deadline_ns = e->dev->now_ns() + cq->event_period_ns;
	timer_start_cq(e, cq);
	if (!cq->timer_slot)
		raise_event(e, cq);		/* no memory for a timer: early, not never */
}

void cq_timer(struct engine *e, struct emu_cq *cq)
{
	raise_event(e, cq);
}

static bool is_failure(const struct hw_cqe *cqe)
{
	return cqe->kind == HW_CQE_REQ_ERR || cqe->kind == HW_CQE_RECV_ERR;
}

static bool is_receive(const struct hw_cqe *cqe)
{
	return cqe->kind != HW_CQE_REQ && cqe->kind != HW_CQE_REQ_ERR;
}

/* How software finds the queue: a shared one through its QP, unless it has an index itself. */
static uint32_t user_index(const struct emu_qp *qp, const struct hw_cqe *cqe)
{
	if (qp->srq && qp->srq->names_itself && is_receive(cqe))
		return qp->srq->user_index;
	return qp->user_index;
}

void complete(struct tp *tp, struct emu_qp *qp, struct emu_cq *cq, struct hw_cqe *cqe)
{
	uint8_t bytes[CQE_BYTES];
	uint64_t addr;

	if (cq->has_failed) {
		qp_lost_its_cq(qp);
		return;
	}
	if (!has_room(tp->dev, cq, qp))
		return;
	cqe->user_index = user_index(qp, cqe);
	cqe->qpn = qp->qpn;
	if (cq->wants_stamps)
		cqe->timestamp = clock_stamp(tp->dev);
	mlx5_cqe_write(bytes, cqe, cq_owner(cq, cq->produced));
	addr = cq_slot_addr(cq, cq->produced);
	if (mem_copy_out(addr, bytes, OP_OWN) || mem_store8_release(addr + OP_OWN, bytes[OP_OWN])) {
		cq_fail(tp->dev, cq, qp, WHY_CQ_MEMORY);
		return;
	}
	cq->produced++;
	engine_of(tp)->progress++;
	if (cqe->is_solicited || is_failure(cqe))
		cq->solicited_at = cq->produced;
	if (cq->arm == CQ_ARMED_NEXT || cq->event_deadline_ns ||
	    (cq->arm == CQ_ARMED_SOLICITED && cq->solicited_at == cq->produced))
		event_due(engine_of(tp), cq);
}

/* Arm word of the record and of the doorbell: sequence [29:28], solicited only [24], consumer
 * index [23:0]. */
#define ARM_SN(word)		((word) >> 28 & 3)
#define ARM_SOLICITED(word)	((word) >> 24 & 1)

/*
 * Is there a completion at or after the armed consumer index that @arm waits for, and that no
 * event has told of?  A ConnectX tells again of the one behind the last event when the program
 * arms before it polls; its interrupt takes so long that the next completion is there by
 * then, and programs that poll once an event (perftest -e) live on that.  Ours would come early.
 */
static bool is_due(const struct emu_cq *cq, uint32_t index, enum cq_arm arm)
{
	uint32_t last = arm == CQ_ARMED_NEXT ? cq->produced : cq->solicited_at;

	return (int32_t)((last - index) << 8) > 0 && (int32_t)(last - cq->told_of) > 0;
}

void engine_cq_arm(struct engine *e, struct emu_cq *cq)
{
	uint32_t raw, word;

	if (cq->has_failed || mem_load32(cq->db_addr + CQ_RECORD_ARM, &raw))
		return;
	word = be32toh(raw);
	if (ARM_SN(word) != cq->arm_sn)
		return;				/* of an event that was raised already */
	if (cq->arm == CQ_NOT_ARMED)
		atomic_fetch_add(&e->armed_cqs, 1);
	cq->arm = ARM_SOLICITED(word) ? CQ_ARMED_SOLICITED : CQ_ARMED_NEXT;
	if (is_due(cq, word & CQ_INDEX_MASK, cq->arm))
		event_due(e, cq);
	else
		cq->event_deadline_ns = 0;
	if (cq->arm != CQ_NOT_ARMED && e->wire)
		e->wire->ops->listen(e->wire, true);
}

void engine_cq_moderate(struct engine *e, struct emu_cq *cq, uint32_t count, uint32_t period_us)
{
	bool is_waiting = cq->event_deadline_ns != 0;

	/* Without an end to the waiting there is none. */
	cq->event_count = period_us ? count : 0;
	cq->event_period_ns = UINT64_C(1000) * period_us;
	cq->event_deadline_ns = 0;
	if (is_waiting)
		event_due(e, cq);
}

void engine_cq_forget(struct engine *e, struct emu_cq *cq)
{
	if (cq->obj.users)
		return;				/* it won't go away yet */
	if (cq->arm != CQ_NOT_ARMED)
		atomic_fetch_sub(&e->armed_cqs, 1);
	cq->arm = CQ_NOT_ARMED;
	cq->event_deadline_ns = 0;
	timer_forget_cq(e, cq);
}
