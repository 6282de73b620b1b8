/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errands: what a function does in its own memory because another one asks it to, where the kernel
 * lets nobody else move its bytes.
 *
 * The asker puts the request, and up to SHARE_ERRAND_BYTES, on a desk in its own segment, tells
 * the owner that there is one, and waits; the owner's engine takes it, does it, and leaves the
 * answer on the same desk.  One who is not served in time takes the request back.  If the owner
 * has begun by then, the desk is left to it until it has ended, and nobody knows whether it was
 * done.
 *
 * What stands in a request is the engine's business; the owner trusts none of it.
 *
 * Threads: under the device lock of the calling function.
 */
#ifndef EMU_SHARE_ERRAND_H
#define EMU_SHARE_ERRAND_H
#include "emu/share/share.h"

#define SHARE_ERRAND_BYTES	65536u
#define SHARE_ASK_BYTES		128u

/* --- who asks --- */

struct share_ask {
	const void *request;		/* @request_bytes, at most SHARE_ASK_BYTES */
	size_t request_bytes;
	/* What goes there and comes back, at most SHARE_ERRAND_BYTES each.  May be memory of the
	 * application. */
	const void *in;
	void *out;
	size_t in_bytes, out_bytes;
	void (*call)(void *ctx);	/* tell the owner */
	void (*idle)(void *ctx);	/* now and then while we wait: others may ask us */
	void *ctx;
};

/* 0 and *value_out; -EFAULT the owner could not, or @in or @out can't be accessed; -ETIMEDOUT it is
 * gone, stopped or silent; -ENOMEM all desks are taken, or there is no memory for one */
int share_ask(struct share_peer *peer, const struct share_ask *ask, uint64_t *value_out);

/* --- who is asked --- */

struct share_errand {
	const void *request;		/* SHARE_ASK_BYTES: a copy */
	struct iovec bytes;		/* on the asker's desk: may fault */
	uint64_t value;			/* for the answer */
};

/* 0, or the asker gets -EFAULT. */
typedef int share_errand_fn(void *ctx, struct share_errand *errand);

/* All that there are. */
void share_errands_do(struct share *s, share_errand_fn *errand, void *ctx);
#endif
