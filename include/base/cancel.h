/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stretches that pthread_cancel() must not end: they hold locks, or descriptors that nobody
 * else would close.
 *
 * No verb of a real device is a cancellation point, but many calls that stand in for one are
 * (open, write, send, ...).  Where verbs are slow they are held off as a whole; the fast path
 * does it around those calls only, because it costs some nanoseconds.
 *
 *	int held = cancel_hold();
 *	...
 *	cancel_release(held);
 */
#ifndef BASE_CANCEL_H
#define BASE_CANCEL_H
#include <pthread.h>

/*
 * For a function with a cleanup handler.  When that has run, the unwinder takes over, and gcc's
 * address sanitizer would look at the stack there, where the frames left behind are poisoned.
 */
#define LEFT_BY_CANCELLATION	__attribute__((no_sanitize("address")))

static inline int cancel_hold(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void cancel_release(int held)
{
	pthread_setcancelstate(held, NULL);
}
#endif
