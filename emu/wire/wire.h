/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A wire carries packets between functions of a fabric.
 *
 * In-process packets never come here: the engine hands them over itself.
 * Each function has one wire object.  A wire is lossless while both ends live; it delivers in
 * order per pair of functions.
 *
 * Threads: send and receive under the device lock; listen, wait and kick see below.
 */
#ifndef EMU_WIRE_WIRE_H
#define EMU_WIRE_WIRE_H
#include <stdbool.h>
#include <stdint.h>
#include "hw-models/ib_packet.h"

enum wire_sent {
	WIRE_SENT,
	WIRE_FULL,		/* no room now: offer it again later */
	WIRE_NOBODY,		/* no live function owns dest_qpn (of a relayed request: its srqn),
				 * or it can't be reached (no shared memory for a ring): lost, as
				 * on a real wire */
	WIRE_WRONG_GID,		/* the owner has not got that dgid: lost */
	WIRE_UNREADABLE,	/* the payload faulted: not sent */
};

struct wire;

struct wire_ops {
	const char *name;
	/* Copies the payload.  Wakes the receiver if it asked for it. */
	enum wire_sent (*send)(struct wire *w, const struct ib_packet *p);

	/*
	 * Multicast: the packets of a group that this function has joined come to it, once each.
	 * -ENOSPC.  A wire without groups has none of these three.
	 */
	int (*join)(struct wire *w, const uint8_t gid[16]);
	void (*leave)(struct wire *w, const uint8_t gid[16]);
	/* To every other member of the group dgid, or while one has no room to none of them.
	 * WIRE_NOBODY: there is no other. */
	enum wire_sent (*multicast)(struct wire *w, const struct ib_packet *p);

	/*
	 * Frames (IB_ETHERNET): to this other member of the fabric, whatever the packet says.
	 * has_room() is WIRE_SENT if one frame() of the same packet would find room now, else
	 * WIRE_FULL or WIRE_NOBODY; also the latter if the member is stopped and its ring full: a
	 * frame waits for nobody.  A wire without frames has neither.
	 */
	enum wire_sent (*has_room)(struct wire *w, unsigned member, const struct ib_packet *p);
	enum wire_sent (*frame)(struct wire *w, unsigned member, const struct ib_packet *p);

	/*
	 * The oldest packet that has arrived: 1 and *out, or 0.  Its single span points into
	 * the wire and stays valid until release(), which must follow before the next receive().
	 * Bytes come from another process: every field is checked here or by the taker, and
	 * read once.
	 */
	int (*receive)(struct wire *w, struct ib_packet *out);
	void (*release)(struct wire *w);

	/* The peer lives and runs but has not taken what we sent it: late, not lost. */
	bool (*is_late)(struct wire *w, uint32_t dest_qpn);

	/* The process that such a packet goes to has not died, as far as can be known. */
	bool (*lives)(struct wire *w, const struct ib_packet *p);

	/* Any thread, no lock: shall senders wake us?  True before sleeping. */
	void (*listen)(struct wire *w, bool wants_wake);
	/* The NIC thread, no lock: sleep until kicked, woken, or @timeout_ns passed (UINT64_MAX:
	 * for ever).  Returns at once if packets wait. */
	void (*wait)(struct wire *w, uint64_t timeout_ns);
	void (*kick)(struct wire *w);	/* any thread: end a wait of our own */

	/*
	 * One other thread, no lock: sleep and be woken for packets in the NIC thread's place,
	 * until doze_end().  Returns 0 when packets may wait or @is_over says so; -EINTR when a
	 * signal came.  A cancellation point, like read().  NULL: the wire can't.
	 */
	int (*doze)(struct wire *w, bool (*is_over)(void *ctx), void *ctx);
	void (*doze_end)(struct wire *w);
	void (*rouse)(struct wire *w);	/* any thread: end a doze; is_over() says why */

	/* There is something for this other member that is no packet: it is woken as for one, and
	 * sees it in @called. */
	void (*call)(struct wire *w, unsigned member);
	/* Before fabric_leave() or fabric_abandon().  In a forked child it only unmaps. */
	void (*close)(struct wire *w);
	uint32_t packet_bytes_max;	/* payload of a super-packet; a multiple of 4096 */
};

struct wire {
	const struct wire_ops *ops;
	_Atomic uint32_t *called;	/* not 0: take it back, then look.  NULL: nobody calls */
};

struct fabric;
/* Shared-memory rings between the processes of @fabric.  0 or -errno. */
int wire_shm_open(struct fabric *fabric, struct wire **out);
/* Wake all members that sleep, as a packet would.  Needs no wire: visitors have none. */
void wire_shm_wake_all(struct fabric *fabric);
#endif
