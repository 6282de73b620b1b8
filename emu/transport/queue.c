/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From queue bytes to meaning: the transports read the application's
 * queues and doorbell records here and nowhere else.
 *
 * Bytes are copied once and only the copy is looked at.  Must not complete
 * anything: callers decide what a fault means.
 */
#include <string.h>
#include <endian.h>
#include "emu/transport/tp_local.h"
#include "hw-models/mlx5_wqe.h"

/* Offsets of the producer counters in a QP's doorbell record. */
enum { DB_RECV = 0, DB_SEND = 4 };

static void work_why(struct tp *tp, struct emu_qp *qp, enum why why, uint32_t block,
		     enum hw_fault fault, uint8_t opcode)
{
	dev_why(tp->dev, .why = why, .side = WHY_SIDE_SEND, .qpn = qp->qpn,
		.peer_qpn = qp->dest_qpn, .wqe_index = (uint16_t)block,
		.opcode = opcode, .found = fault);
}

/* How many new entries a 16-bit producer counter in the record announces. */
static int record_advance(const struct emu_qp *qp, unsigned offset, uint32_t produced,
			  uint32_t *out)
{
	uint32_t raw;

	if (mem_load32(qp->db_addr + offset, &raw))
		return -1;
	*out = (uint16_t)(be32toh(raw) - produced);
	return 0;
}

bool tp_has_doorbell(const struct emu_qp *qp)
{
	uint32_t sends = 0, recvs = 0;

	if (qp->state != QP_RTS && qp->state != QP_SQE && qp->state != QP_ERR)
		return false;
	if (qp->sq_blocks && record_advance(qp, DB_SEND, qp->req.sq_produced, &sends))
		return true;
	/* Receives are read when a message comes; only a failed QP has to flush them. */
	if (qp->state == QP_ERR && qp->rq_count &&
	    record_advance(qp, DB_RECV, qp->answers.rq_produced, &recvs))
		return false;
	return sends || recvs;
}

void tp_doorbell(struct tp *tp, struct emu_qp *qp)
{
	struct rc_req *r = &qp->req;
	uint32_t advance;

	if (!qp->sq_blocks)
		return;
	if (record_advance(qp, DB_SEND, r->sq_produced, &advance)) {
		work_why(tp, qp, WHY_WQE_MEMORY, r->sq_produced, HW_OK, 0);
		tp_qp_fatal(qp);
		return;
	}
	if (r->sq_produced + advance - r->sq_done > qp->sq_blocks) {
		work_why(tp, qp, WHY_SQ_DOORBELL, r->sq_produced, HW_OK, 0);
		tp_qp_fatal(qp);
		return;
	}
	if (!advance)
		return;
	r->sq_produced += advance;
	qp->work |= qp->state == QP_ERR || qp->state == QP_SQE ? QP_WORK_FLUSH : QP_WORK_REQUEST;
}

/* Copy @units 16-byte units from the ring, which wraps at its end. */
static int ring_copy(struct emu_qp *qp, uint32_t block, unsigned units, uint8_t *out)
{
	uint64_t ring_bytes = (uint64_t)qp->sq_blocks * HW_WQEBB_BYTES;
	uint64_t at = (uint64_t)(block & (qp->sq_blocks - 1)) * HW_WQEBB_BYTES;
	uint64_t bytes = (uint64_t)units * 16, first;

	first = bytes < ring_bytes - at ? bytes : ring_bytes - at;
	if (mem_copy_in(out, qp->sq_addr + at, first))
		return -1;
	return first < bytes ? mem_copy_in(out + first, qp->sq_addr, bytes - first) : 0;
}

static enum hw_fault work_check_place(const struct emu_qp *qp, const struct hw_work *w,
				      uint32_t block)
{
	if (w->qpn != qp->qpn)
		return HW_FAULT_QPN;
	if (w->index != (uint16_t)block)
		return HW_FAULT_INDEX;
	return HW_OK;
}

enum hw_status tp_work_fetch(struct tp *tp, struct emu_qp *qp, uint32_t block,
			     struct tp_scratch *s)
{
	uint32_t room = qp->req.sq_produced - block;	/* posted blocks from here on */
	unsigned units_max = room * 4 < HW_WQE_DS_MAX ? room * 4 : HW_WQE_DS_MAX;
	enum hw_fault fault;
	unsigned units;

	s->has_whole = false;
	s->pdn = qp->pdn;
	s->work.ds = 0;
	s->work.opcode = 0;
	if (ring_copy(qp, block, 4, s->wqe))
		goto gone;
	units = mlx5_work_units(s->wqe);
	if (units > 4 && units <= units_max && ring_copy(qp, block, units, s->wqe))
		goto gone;
	fault = mlx5_work_read(s->wqe, units_max, transport_of(qp)->hw, &s->work);
	if (fault == HW_OK)
		fault = work_check_place(qp, &s->work, block);
	if (fault == HW_OK)
		return HW_SUCCESS;
	work_why(tp, qp, WHY_WQE_MALFORMED, block, fault, s->work.opcode);
	return HW_LOC_QP_OP;
gone:
	work_why(tp, qp, WHY_WQE_MEMORY, block, HW_OK, 0);
	return HW_LOC_QP_OP;
}

static void recv_why(struct tp *tp, struct emu_qp *qp, enum why why, enum hw_fault fault)
{
	dev_why(tp->dev, .why = why, .side = WHY_SIDE_RECV, .qpn = qp->qpn,
		.peer_qpn = qp->dest_qpn, .wqe_index = tp_recv_index(qp), .found = fault);
}

int tp_recv_doorbell(struct tp *tp, struct emu_qp *qp)
{
	struct rc_answers *r = &qp->answers;
	uint32_t advance;

	if (!qp->rq_count)
		return 0;
	if (record_advance(qp, DB_RECV, r->rq_produced, &advance)) {
		recv_why(tp, qp, WHY_WQE_MEMORY, HW_OK);
		tp_qp_fatal(qp);
		return -1;
	}
	if (r->rq_produced + advance - r->rq_consumed > qp->rq_count) {
		recv_why(tp, qp, WHY_RQ_DOORBELL, HW_OK);
		tp_qp_fatal(qp);
		return -1;
	}
	r->rq_produced += advance;
	return 0;
}

int tp_recv_fetch(struct tp *tp, struct emu_qp *qp)
{
	struct rc_answers *r = &qp->answers;
	enum hw_fault fault;
	uint32_t skip;
	uint64_t at;

	if (qp->srq)
		return tp_srq_fetch(tp, qp);
	if (r->rq_consumed == r->rq_produced && tp_recv_doorbell(tp, qp))
		return -1;
	if (r->rq_consumed == r->rq_produced)
		return 0;
	tp->rx.pdn = qp->pdn;
	at = qp->rq_addr + (uint64_t)(r->rq_consumed & (qp->rq_count - 1)) * qp->rq_stride;
	if (mem_copy_in(tp->rx.wqe, at, qp->rq_stride)) {
		recv_why(tp, qp, WHY_WQE_MEMORY, HW_OK);
		return -HW_LOC_QP_OP_RECV;
	}
	/* Striding WQEs begin as those of a shared queue do, with what means nothing here. */
	skip = qp->striding.stride_log ? MLX5_UNIT_BYTES : 0;
	fault = mlx5_recv_read(tp->rx.wqe + skip, qp->rq_stride - skip, &tp->rx.recv);
	if (fault == HW_OK)
		return 1;
	recv_why(tp, qp, WHY_RECV_MALFORMED, fault);
	return -HW_LOC_QP_OP_RECV;
}

enum why tp_gather(struct tp *tp, const struct tp_gather *g, struct tp_scratch *s,
		   const struct hw_sge **bad_out)
{
	uint64_t skip = g->skip, bytes = g->bytes;

	s->span_count = 0;
	for (unsigned i = 0; i < g->sge_count && bytes; i++) {
		const struct hw_sge *sge = &g->sge[i];
		uint64_t piece;
		enum why why;

		if (skip >= sge->bytes) {
			skip -= sge->bytes;
			continue;
		}
		piece = sge->bytes - skip < bytes ? sge->bytes - skip : bytes;
		if (sge->inline_bytes) {
			s->span[s->span_count] = (struct iovec){
				(void *)(uintptr_t)(sge->inline_bytes + skip), piece };
		} else {
			why = key_check(&tp->dev->keys, sge->lkey, s->pdn, g->access,
					sge->addr + skip, piece, &s->span[s->span_count]);
			if (why != WHY_NONE) {
				*bad_out = sge;
				return why;
			}
		}
		s->span_count++;
		skip = 0;
		bytes -= piece;
	}
	return WHY_NONE;
}
