/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lock of a queue: one exchange to take it and one store to give it back, because nearly always
 * nobody else wants it.  Who finds it taken gives the CPU away: the holder may not be running.
 * A queue of a single-thread domain has no use for it.
 */
#ifndef VERBS_LOCK_H
#define VERBS_LOCK_H
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

struct vb_lock {
	uint32_t is_taken;
	bool is_unneeded;	/* the application promised one thread */
};

static inline void vb_lock(struct vb_lock *l)
{
	unsigned spins = 0;

	if (l->is_unneeded)
		return;
	while (__builtin_expect(__atomic_exchange_n(&l->is_taken, 1, __ATOMIC_ACQUIRE), 0))
		while (__atomic_load_n(&l->is_taken, __ATOMIC_RELAXED))
			if (++spins % 64 == 0)
				sched_yield();
}

static inline void vb_unlock(struct vb_lock *l)
{
	if (!l->is_unneeded)
		__atomic_store_n(&l->is_taken, 0, __ATOMIC_RELEASE);
}
#endif
