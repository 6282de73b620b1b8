/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reliable connected transport: requester and responder of one QP.
 *
 * Threads: the caller holds the device lock.
 * Source: IBTA volume 1, chapter 9.7; device-abi F and G.5.
 */
#ifndef EMU_TRANSPORT_RC_H
#define EMU_TRANSPORT_RC_H
#include "emu/transport/tp.h"

/* The next request packet, payload at most @bytes_max (a multiple of every MTU).
 * 1: *out is valid until the next call; 0: nothing may be sent now. */
int rc_req_next(struct tp *tp, struct emu_qp *qp, uint32_t bytes_max, struct ib_packet *out);
void rc_req_sent(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p);
void rc_req_unreadable(struct tp *tp, struct emu_qp *qp);	/* its payload faulted */

/* The same for answers. */
int rc_resp_next(struct tp *tp, struct emu_qp *qp, uint32_t bytes_max, struct ib_packet *out);
void rc_resp_sent(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p);
void rc_resp_unreadable(struct tp *tp, struct emu_qp *qp);

/* A packet for this QP, state and addresses already checked.  False: its payload could not be
 * read, nothing has changed, tell the sender. */
bool rc_take(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p);

/*
 * How a requester reaches a responder in another process.  Each function returns 0 or -errno; what
 * can't be done this way is done by a packet.
 */
struct rc_remote {
	/* The responder's shared part, if it expects @psn now. */
	int (*load)(void *ctx, uint32_t psn, struct rc_resp *out);
	/* What an executor may change; the PSN last. */
	void (*store)(void *ctx, const struct rc_resp *r);
	int (*key)(void *ctx, uint32_t index, struct key_entry *out);
	int (*write)(void *ctx, uint64_t to, const struct iovec *from, unsigned count,
		     size_t bytes);
	int (*read)(void *ctx, const struct iovec *to, unsigned count, uint64_t from, size_t bytes);
	bool (*atomics_lock)(void *ctx);
	bool (*atomics_held)(void *ctx);
	void (*atomics_unlock)(void *ctx);
	void *ctx;
};

/*
 * What @from would answer with an acknowledgement packet, told at once: both QPs are of this
 * function.  Nothing happens if READs or atomics are to be answered before, or if the packet
 * would not be taken; then the packet says it.
 */
void rc_hand_over_ack(struct tp *tp, struct emu_qp *from, struct emu_qp *to);

/* Needs neither a receive nor anything else of the target's CPU. */
bool rc_is_one_sided(const struct ib_packet *p);

/*
 * Execute a one-sided request of @qp in its responder's place: @p is from rc_req_next(), and
 * everything before it must have been executed.  True: done; *original_out is an atomic's result.
 * False: nothing has changed, send the packet.  Whatever is to be refused is left to the owner.
 */
bool rc_execute_remotely(struct tp *tp, struct emu_qp *qp, const struct rc_remote *remote,
			 const struct ib_packet *p, uint64_t *original_out);
/* Tell the requester.  Not before @remote is left: a completion may end the QP, and that waits for
 * peers who may be waiting for us. */
void rc_executed(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p, uint64_t original);

/* The timer that qp->req.deadline_ns asked for has expired. */
void rc_timer(struct tp *tp, struct emu_qp *qp);
/* How long to wait from now if qp->req.wants_timer. */
uint64_t rc_timer_ns(const struct emu_qp *qp);
#endif
