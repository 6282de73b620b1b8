/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An XRC target QP whose requests name receive queues of other processes.
 *
 * A ConnectX has one table of queues for its host; here each process has its own.  So the process
 * of the target keeps the protocol (PSNs, answers), and has a request executed where its queue and
 * the memory are: one at a time, and what comes meanwhile waits here (struct relay).  There a guest
 * stands for the target: a queue pair without a number of its own, that no application sees, which
 * holds the receive of a message in progress and ends requests as RC does.
 *
 * Either process may die at any moment.  Nothing of one is in the other's memory but packets, and
 * numbers in it are believed only as far as a packet's.
 */
#ifndef EMU_OBJ_RELAY_H
#define EMU_OBJ_RELAY_H
#include "emu/obj/obj.h"
#include "hw-models/ib_packet.h"

#define RELAY_BYTES_MAX		(4u << 20)	/* that wait, of one QP */
#define GUESTS_MAX		16384u
#define RELAY_FETCH_MAX		(64u << 10)

struct relayed {
	struct relayed *next;
	struct ib_packet p;		/* its span is the payload */
	struct iovec span;
	uint8_t payload[];
};

struct relay {
	uint64_t turn;			/* of the request that was sent last; grows */
	bool is_out;			/* its outcome has not come */
	uint32_t srqn;			/* of that request */
	bool may_hold;			/* a guest holds a receive for the message in progress */
	bool must_end;			/* and is to flush it */
	bool wants_fetch, is_fetching;	/* a piece of the READ that is being answered */
	bool has_fetched;
	uint64_t fetch_turn;
	uint32_t fetch_srqn;
	uint32_t fetch_psn, fetch_bytes;	/* of the answer that it is for */
	uint8_t *fetch_room;		/* [RELAY_FETCH_MAX], NULL: not needed yet */
	struct relayed *head, **tail;	/* requests in order; the first is out, or is next */
	uint32_t bytes;			/* of all of them */
};

/* Keep a request of @qp.  0; -ENOMEM too many wait; -EFAULT its payload can't be read */
int relay_keep(struct emu_qp *qp, const struct ib_packet *p);
void relay_pop(struct emu_qp *qp);
/* Nothing waits, nothing is out.  Late outcomes are known by their turn. */
void relay_reset(struct emu_qp *qp);
void relay_detach(struct emu_qp *qp);

static inline bool relay_is_busy(const struct emu_qp *qp)
{
	return qp->relay && qp->relay->head;
}

/* The target as the process of the queue knows it, and what became of its last request. */
struct guest {
	struct emu_qp qp;		/* first: transport and engine know this only */
	struct rc_resp resp;
	struct guest *bucket_next, *newer;
	uint64_t turn;
	uint32_t psn;
	uint8_t verdict;		/* of the transport */
	uint8_t fate;			/* enum guest_fate */
	uint64_t original;		/* of an atomic */
	bool has_outcome;		/* all that is to be told */
	struct {
		bool is_due, is_refused;
		struct ib_packet p;	/* that asked */
	} fetch;
};

/* What has become of the target besides. */
enum guest_fate { FATE_GOOD, FATE_FAILED, FATE_FATAL, FATE_COUNT };

/* The guest that stands for that target, made if need be; NULL: no memory. */
struct guest *guest_of(struct emu_dev *dev, uint32_t target_qpn);
/* The queue is gone, and with it what they hold. */
void guests_forget(struct emu_dev *dev, const struct emu_srq *srq);
/* The engine does not run any more. */
void guests_free(struct emu_dev *dev);
#endif
