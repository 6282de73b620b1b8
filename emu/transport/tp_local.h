/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the transports share.  Private to this folder.
 */
#ifndef EMU_TRANSPORT_TP_LOCAL_H
#define EMU_TRANSPORT_TP_LOCAL_H
#include <assert.h>
#include "emu/mem/mem.h"
#include "emu/obj/srq.h"
#include "emu/transport/psn.h"
#include "emu/transport/tp.h"

static inline struct rc_sent *rc_sent_at(struct emu_qp *qp, uint32_t position)
{
	return &qp->req.sent[position & (qp->sq_blocks - 1)];
}

/* Where an outstanding request stands in the queue: indices are 16 bits, rings shorter. */
static inline uint32_t rc_block_of(const struct emu_qp *qp, const struct rc_sent *sent)
{
	return qp->req.sq_done + (uint16_t)(sent->index - (uint16_t)qp->req.sq_done);
}

static inline bool rc_is_read_or_atomic(uint8_t op)
{
	return op >= HW_OP_READ && op <= HW_OP_MASKED_FETCH_ADD;
}

/* Takes effect in the QP itself: no packet, no PSN. */
static inline bool tp_is_local(uint8_t op)
{
	return op == HW_OP_NOP || op == HW_OP_UMR;
}

/* Carry out the UMR in @w, which stands at block @block of @qp's send queue.  HW_SUCCESS, or the
 * status it fails with; the reason is noted. */
enum hw_status tp_umr(struct tp *tp, struct emu_qp *qp, uint32_t block, const struct hw_work *w);

/* queue.c: queue bytes to meaning */

/* Read and decode the WQE that starts at block @block into tp scratch @s.  HW_SUCCESS, or the
 * status it fails with; the reason is noted.  s->work.ds, opcode are valid either way. */
enum hw_status tp_work_fetch(struct tp *tp, struct emu_qp *qp, uint32_t block,
			     struct tp_scratch *s);
/* Take over what the receive record announces.  -1: it is broken and the QP has failed. */
int tp_recv_doorbell(struct tp *tp, struct emu_qp *qp);
/* The oldest posted receive into tp->rx.  1: there; 0: none posted; -1: the queue is broken
 * (the QP has failed); or -HW_status of a malformed one.  */
int tp_recv_fetch(struct tp *tp, struct emu_qp *qp);
/* More packets of the message follow: the receive that was fetched is this QP's until it is
 * completed or failed.  Of a QP's own queue it is anyway. */
void tp_recv_hold(struct tp *tp, struct emu_qp *qp);

struct tp_gather {
	const struct hw_sge *sge;
	unsigned sge_count;
	uint64_t skip, bytes;		/* the part of the message that is wanted */
	uint32_t access;		/* KEY_LOCAL_READ or KEY_LOCAL_WRITE */
};
/* Keys of @s->pdn to memory, for the wanted part only.  WHY_NONE and @s->span, or the rule that
 * refuses, with the piece in *bad_out. */
enum why tp_gather(struct tp *tp, const struct tp_gather *g, struct tp_scratch *s,
		   const struct hw_sge **bad_out);

/* Where the receive in use stands, for reasons. */
static inline uint16_t tp_recv_index(const struct emu_qp *qp)
{
	if (!qp->srq)
		return (uint16_t)qp->answers.rq_consumed;
	return (uint16_t)(qp->answers.is_holding ? qp->answers.held_index : qp->srq->next);
}

/* srq.c: raw_has_receives(), tp_recv_fetch() of a shared queue; the WQE held is the QP's no more,
 * its index */
bool tp_srq_has_receives(struct tp *tp, struct emu_qp *qp, uint32_t count);
int tp_srq_fetch(struct tp *tp, struct emu_qp *qp);
uint32_t tp_srq_give(struct emu_qp *qp);

/* ends.c: ends of work requests and of QPs */

/* Complete the oldest outstanding send work request; with anything but success the QP, or at least
 * its send queue, fails. */
void tp_sent_complete(struct tp *tp, struct emu_qp *qp, enum hw_status status, uint32_t bytes);
/* Complete the receive in use. */
void tp_recv_complete(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p, uint32_t bytes);
/* The same of a frame; what is to be told of it is in @cqe. */
void tp_recv_complete_frame(struct tp *tp, struct emu_qp *qp, struct hw_cqe *cqe);
void tp_recv_fail(struct tp *tp, struct emu_qp *qp, enum hw_status status);
/* To ERR: what is posted will be flushed. */
void tp_qp_fail(struct emu_qp *qp);
/* The QP's own queues are unusable: ERR and QP_FATAL. */
void tp_qp_fatal(struct emu_qp *qp);
#endif
