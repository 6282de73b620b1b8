/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What all transports have in common: what the engine calls, and what they call.
 *
 * Functions of (state, event) to state; no clock, no socket, no thread.  They
 * are pulled: *_next() describes the next packet without changing anything,
 * *_sent() commits it, so that a full wire costs nothing.  Completions and events go
 * through tp_ops, which the engine (or a test) provides.  Work that a call leaves is in
 * qp->work.
 *
 * Threads: the caller holds the device lock.
 */
#ifndef EMU_TRANSPORT_TP_H
#define EMU_TRANSPORT_TP_H
#include <stdbool.h>
#include <stdint.h>
#include "emu/obj/obj.h"
#include "emu/steer/frame.h"
#include "emu/steer/offload.h"
#include "hw-models/hw.h"
#include "hw-models/ib_packet.h"

struct tp;

struct tp_ops {
	/* Write a CQE; `user_index`, `qpn` are filled by the callee unless it is a shared
	 * receive queue's. */
	void (*complete)(struct tp *tp, struct emu_qp *qp, struct emu_cq *cq, struct hw_cqe *cqe);
	/* A QP that the engine did not name has got work. */
	void (*kick)(struct tp *tp, struct emu_qp *qp);
	/* A QP is about to go. */
	void (*forget)(struct tp *tp, struct emu_qp *qp);
};

/* A frame that has come to a rule. */
struct tp_arrival {
	const struct frame *frame;
	uint32_t flow_tag;
	uint32_t rx_hash;		/* of a QP that spreads frames over queues, else 0 */
	uint8_t rx_hash_type;
};

/* What one call of a transport works with.  One per engine, reused. */
struct tp {
	struct emu_dev *dev;
	const struct tp_ops *ops;
	struct tp_scratch {
		uint8_t wqe[HW_WQE_BYTES_MAX + 16];
		union { struct hw_work work; struct hw_recv recv; };
		struct iovec span[HW_SGE_MAX];
		uint64_t masks[2];		/* of a masked atomic: its payload */
		unsigned span_count;
		uint32_t pdn;		/* whose keys the work or receive may name */
		bool has_whole;		/* the spans are those of the whole message */
	} tx, rx;		/* of the packet being made; of the one being taken */
	struct iovec frame_span;	/* the frame being made: */
	uint8_t frame[FRAME_BYTES_MAX + VLAN_BYTES];
};

/* One half of a QP: what it sends. */
struct tp_half {
	/* The next packet, payload at most @bytes_max (a multiple of every MTU).
	 * 1: *out is valid until the next call; 0: nothing may be sent now. */
	int (*next)(struct tp *tp, struct emu_qp *qp, uint32_t bytes_max, struct ib_packet *out);
	void (*sent)(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p);
	void (*unreadable)(struct tp *tp, struct emu_qp *qp);	/* its payload faulted */
};

/* What the engine knows of a transport.  A half or function that a transport does not have is
 * NULL, and its QPs never get that work. */
struct transport {
	const char *name;
	enum hw_transport hw;		/* how its send queue is written */
	uint8_t bth;			/* transport bits of its opcodes */
	bool is_connected;		/* packets come from one peer only: checked for it */
	/* A request is over when it is acknowledged, not when it has left; if it fails the QP
	 * does, and not only its send queue. */
	bool is_reliable;
	bool is_datagram;		/* a message is one packet, and each says where it goes */
	bool is_direct;			/* one-sided requests may be executed in the peer */
	struct tp_half request, respond;
	struct tp_half relay;		/* to other processes of the host; see emu/obj/relay.h */
	/* A packet for this QP, state and addresses already checked.  False: its payload could
	 * not be read, nothing has changed, tell the sender. */
	bool (*take)(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p);
	/* The timer that qp->req.deadline_ns asked for has expired. */
	void (*timer)(struct tp *tp, struct emu_qp *qp);
};
extern const struct transport *const transports[QPT_COUNT];

static inline const struct transport *transport_of(const struct emu_qp *qp)
{
	return transports[qp->type];
}

/* Does a doorbell record tell of something that is to be served and has not been? */
bool tp_has_doorbell(const struct emu_qp *qp);

/* The send doorbell record may have moved. */
void tp_doorbell(struct tp *tp, struct emu_qp *qp);

/* Complete everything posted with a flush error, in order. */
void tp_flush(struct tp *tp, struct emu_qp *qp);
#endif
