/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lock that 8-byte atomics on a function's memory take, whoever executes them.
 *
 * A peer needs two system calls for one, so the processor's own atomics don't help.  Peers only
 * try: what they can't do now, the owner does.  The owner waits, and takes the lock from who is
 * dead, stopped or silent.
 */
#include <sched.h>
#include "emu/mem/mem.h"
#include "emu/share/share_local.h"

#define PEER_TRIES	64
#define SEIZURES_MAX	1000	/* then somebody scribbles faster than we look */
#define NOT_OURS	UINT64_MAX

bool atomics_try(uint64_t at, const struct share *self, uint64_t *seen_out, uint64_t *mine_out)
{
	uint64_t seen, mine;

	if (mem_copy_in(&seen, at, sizeof seen))
		seen = NOT_OURS;
	*seen_out = seen;
	if (seen & 0xffff)
		return false;
	mine = (uint64_t)self->generation << 40 | ATOMICS_FREE(seen + 0x10000) | (self->self + 1);
	if (mem_compare_swap(at, seen, mine, seen_out) || *seen_out != seen)
		return false;
	*mine_out = mine;
	return true;
}

static void atomics_release(uint64_t at, uint64_t mine)
{
	uint64_t seen;

	mem_compare_swap(at, mine, ATOMICS_FREE(mine), &seen);
}

/* --- the owner --- */

void share_atomics_lock(struct share *s)
{
	uint64_t at = (uintptr_t)&s->header->atomics, seen;
	struct patience patience = { 0 };
	unsigned seizures = 0;

	s->atomics_mine = NOT_OURS;
	while (!atomics_try(at, s, &seen, &s->atomics_mine)) {
		if (patience_has_more(&patience, s, ATOMICS_SLOT(seen), ATOMICS_GENERATION(seen)))
			continue;
		if (seizures++ == SEIZURES_MAX)
			break;
		atomics_release(at, seen);
	}
}

void share_atomics_unlock(struct share *s)
{
	atomics_release((uintptr_t)&s->header->atomics, s->atomics_mine);
}

/* --- a peer --- */

static uint64_t peer_at(const struct share_peer *peer)
{
	return (uintptr_t)&peer->header->atomics;
}

bool share_peer_atomics_lock(struct share_peer *peer)
{
	uint64_t seen;

	for (unsigned i = 0; i < PEER_TRIES; i++) {
		if (atomics_try(peer_at(peer), peer->share, &seen, &peer->atomics_mine))
			return true;
		sched_yield();
	}
	return false;
}

bool share_peer_atomics_held(struct share_peer *peer)
{
	uint64_t seen;

	return !mem_copy_in(&seen, peer_at(peer), sizeof seen) && seen == peer->atomics_mine;
}

void share_peer_atomics_unlock(struct share_peer *peer)
{
	atomics_release(peer_at(peer), peer->atomics_mine);
}
