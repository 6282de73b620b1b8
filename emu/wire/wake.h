/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleeping until a packet comes, without losing one and without waking who does not sleep.
 *
 * wake_mail is what a function shares with its peers (fabric_mail()); wake is its own side.
 * The NIC thread sleeps, and at most one other thread, the dozer: while there is one, it is woken
 * for packets in the NIC thread's place.
 *
 * Why no wake-up is lost.  The sleeper: (1) reads `count`, (2) sets `wants_wake`, (3) full
 * barrier, (4) looks for packets, (5) sleeps if `count` is still what it read.  A sender: (a)
 * publishes, (b) full barrier, (c) looks at `wants_wake`; if set, takes it, raises `count` and
 * wakes.  By the two barriers either (c) sees (2) or (4) sees (a).  If (c) saw it, `count` moved
 * after (1), so that (5) does not sleep or is woken; or it moved before (1), and then (2) came
 * later than the taking: the wish stands for the next packet, and (4) sees this one unless
 * somebody has already taken it.  A kick is the same with `is_kicked` for the packet and
 * `is_waiting` for the wish; it stays until a wait has ended by it.
 *
 * The two sleep on one word with different bits, and the wish says which bit to wake.  Nobody may
 * sleep with the dozer's bit: it has just been woken, or its thread was taken away.  Then the
 * sender wakes the NIC thread after all.  A dozer that ends looks once more, as
 * everybody who changes the wish, so that a packet for which it was woken finds somebody.
 */
#ifndef EMU_WIRE_WAKE_H
#define EMU_WIRE_WAKE_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct wake_mail {
	/* Read by senders for each packet, by the owner for each poll; rarely written. */
	_Alignas(64) _Atomic uint32_t wants_wake;	/* enum wake_bit, or 0 */
	_Atomic uint32_t is_announced;		/* a ring for us is in the directory */
	_Atomic uint32_t is_called;		/* somebody has a word for us elsewhere */
	_Alignas(64) _Atomic uint32_t count;	/* the futex */
};

/* Who sleeps: futex bits. */
enum wake_bit { WAKE_NIC = 1, WAKE_DOZER = 2 };

struct wake {
	struct wake_mail *mail;
	atomic_bool is_listening, is_waiting, is_kicked, is_dozing;
};

/* True if something waits to be received. */
typedef bool wake_look_fn(void *ctx);

/* A packet for the owner of @mail has been published. */
void wake_peer(struct wake_mail *mail);
void wake_listen(struct wake *w, bool wants_wake, wake_look_fn *look, void *ctx);
void wake_wait(struct wake *w, uint64_t timeout_ns, wake_look_fn *look, void *ctx);
void wake_kick(struct wake *w);

/* The dozer: sleep until roused, woken for a packet (0), or interrupted (-EINTR); at once if @look
 * says so.  A cancellation point.  It is the dozer until wake_doze_end(). */
int wake_doze(struct wake *w, wake_look_fn *look, void *ctx);
void wake_doze_end(struct wake *w, wake_look_fn *look, void *ctx);
void wake_rouse(struct wake *w);
#endif
