/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long another process is waited for.
 *
 * One that is dead has no claim.  One that is stopped may still be inside a system call of one
 * thread, so it gets a moment.  One that lives gets long, but not for ever: it may be broken, or
 * frozen in a way that no state tells of.
 */
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "emu/share/share_local.h"

#define TURNS_THAT_YIELD	64
#define NAP_NS			100000L
#define STOPPED_NS		UINT64_C(20000000)

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Not nanosleep(): the caller holds locks, and a thread may be cancelled there. */
static void nap(void)
{
	struct timespec t = { .tv_nsec = NAP_NS };

	syscall(SYS_nanosleep, &t, NULL);
}

static uint64_t limit_ns(const struct share *s, unsigned slot, uint32_t generation)
{
	if (!generation || fabric_generation(s->fabric, slot) != generation)
		return 0;
	switch (fabric_life(s->fabric, slot)) {
	case FABRIC_ALIVE:
		return s->patience_ns;
	case FABRIC_STOPPED:
		return STOPPED_NS;
	case FABRIC_DEAD:
		break;
	}
	return 0;
}

bool patience_has_more(struct patience *p, const struct share *s, unsigned slot,
		       uint32_t generation)
{
	if (p->turns++ < TURNS_THAT_YIELD) {
		sched_yield();
		return true;
	}
	if (!p->since_ns)
		p->since_ns = now_ns();
	if (now_ns() - p->since_ns >= limit_ns(s, slot, generation))
		return false;
	nap();
	return true;
}
