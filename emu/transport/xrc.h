/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The extended reliable connected transport: an initiator, which only requests, and a target,
 * which only responds and has no queue.  Both are halves of RC; each request names the shared
 * receive queue that it is for.
 *
 * Threads: the caller holds the device lock.
 * Source: IBTA volume 1, annex A14.
 */
#ifndef EMU_TRANSPORT_XRC_H
#define EMU_TRANSPORT_XRC_H
#include "emu/transport/tp.h"

int xrc_req_next(struct tp *tp, struct emu_qp *qp, uint32_t bytes_max, struct ib_packet *out);
int xrc_resp_next(struct tp *tp, struct emu_qp *qp, uint32_t bytes_max, struct ib_packet *out);
bool xrc_initiator_take(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p);
bool xrc_target_take(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p);

/*
 * Receive queues of other processes; see emu/obj/relay.h.  The target's side: what is to be sent to
 * the owner of the queue, and what comes back.
 */

/* A request that is for another process, or has to wait for one that is.  False: not readable. */
bool xrc_relay_take(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p);
int xrc_relay_next(struct tp *tp, struct emu_qp *qp, uint32_t bytes_max, struct ib_packet *out);
void xrc_relay_sent(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p);
/* @p will never be answered: no live process has the queue.  NULL: whatever is out to the one that
 * is being waited for. */
void xrc_relay_lost(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p);
/* @p could not be sent now: its requester will try again. */
void xrc_relay_dropped(struct emu_qp *qp, const struct ib_packet *p);
/* Whose queue is being waited for; 0: nobody's. */
uint32_t xrc_relay_awaits(const struct emu_qp *qp);
/* The target is in ERR. */
void xrc_relay_end(struct emu_qp *qp);
void xrc_outcome_take(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p);
/* A piece of an answer is on its way to the initiator. */
void xrc_piece_sent(struct emu_qp *qp);
/* Is the next piece of a READ of memory elsewhere at hand, in tp->tx.span?  Then *bytes_max is its
 * size.  False: it has been asked for. */
bool xrc_has_fetched(struct tp *tp, struct emu_qp *qp, const struct rc_resource *res,
		     uint32_t *bytes_max);

/* The queue's side.  The guest that has work now, or NULL: the packet means nothing. */
struct emu_qp *xrc_guest_take(struct tp *tp, const struct ib_packet *p);
int xrc_guest_next(struct tp *tp, struct emu_qp *qp, uint32_t bytes_max, struct ib_packet *out);
/* What is told to the target of @p if there is no guest for it. */
void xrc_guest_missing(const struct ib_packet *p, struct ib_packet *out);
void xrc_guest_sent(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p);
void xrc_guest_unreadable(struct tp *tp, struct emu_qp *qp);

/*
 * Handles of a target QP in other processes.  Questions and answers are payloads of RELAY_HANDLE
 * packets; without a payload imm is an event.
 */
struct far_ask {
	uint32_t op;			/* enum far_op */
	uint32_t mask;
	struct qp_attr attr;
};

struct far_tell {
	int32_t rc;			/* of the question */
	uint32_t state;
	struct qp_attr attr;
};

/* A question to @qp, which may be NULL, or no target.  True: its last handle is gone; the caller
 * destroys it. */
bool xrc_far_asked(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p,
		   struct far_tell *out);
/* An event that a handle elsewhere has yet to hear of. */
bool xrc_far_event_next(struct emu_qp *qp, struct ib_packet *out);
void xrc_far_event_sent(struct emu_qp *qp, const struct ib_packet *p);
/* The question in @ask, of this turn. */
void xrc_far_ask(struct emu_qp *qp, const struct iovec *ask, struct ib_packet *out);
void xrc_far_told(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p);
#endif
