/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names that members hold together; see fabric.h.
 *
 * Each holder has an entry of its own.  Who wants a name for itself alone claims it first and
 * then looks for others, so of two at least one sees the other's claim.  The lower claim wins
 * once the higher one is withdrawn; a rival that does not come to that in time wins.
 */
#include <errno.h>
#include "emu/fabric/segment.h"

#define CLAIMED		UINT64_C(0x5555555555555555)	/* xor-ed to the name: not held yet */
#define LOOKS_MAX	10000

static uint64_t salt(uint32_t lease)
{
	return lease * UINT64_C(0x9e3779b97f4a7c15);
}

static bool says(const struct fabric_segment *s, unsigned at, uint64_t name)
{
	const struct fabric_name *entry = &s->name[at];
	uint32_t lease = atomic_load(&entry->lease);

	return lease_is_valid(s, lease) && (atomic_load(&entry->salted) ^ salt(lease)) == name;
}

/* The first entry but @self that says @name, or -1. */
static int find(const struct fabric_segment *s, uint64_t name, int self)
{
	for (int at = 0; at < (int)FABRIC_NAMES; at++)
		if (at != self && says(s, (unsigned)at, name))
			return at;
	return -1;
}

static int take(struct fabric_segment *s, uint32_t mine, uint64_t name)
{
	for (unsigned at = 0; at < FABRIC_NAMES; at++) {
		uint32_t lease = atomic_load(&s->name[at].lease);

		if (lease_is_valid(s, lease) ||
		    !atomic_compare_exchange_strong(&s->name[at].lease, &lease, mine))
			continue;
		atomic_store(&s->name[at].salted, name ^ salt(mine));
		return (int)at;
	}
	return -ENOSPC;
}

/* Claims before holders: a claim that is gone by then was withdrawn or holds. */
static bool is_alone(const struct fabric_segment *s, uint64_t name, int self)
{
	for (int looks = 0; looks < LOOKS_MAX; looks++) {
		int rival = find(s, name ^ CLAIMED, self);

		if (rival < 0)
			return find(s, name, self) < 0;
		if (rival < self)
			return false;
	}
	return false;
}

static int hold_alone(struct fabric_segment *s, uint32_t mine, uint64_t name)
{
	int self = take(s, mine, name ^ CLAIMED);

	if (self < 0)
		return self;
	if (is_alone(s, name, self)) {
		atomic_store(&s->name[self].salted, name ^ salt(mine));
		return self;
	}
	fabric_names_drop(s, mine, self);
	return -EEXIST;
}

int fabric_names_hold(struct fabric_segment *s, uint32_t mine, uint64_t name, bool creates,
		      bool is_exclusive)
{
	bool exists = creates && !is_exclusive ? true : find(s, name, -1) >= 0;

	if (exists)
		return is_exclusive ? -EEXIST : take(s, mine, name);
	return creates ? hold_alone(s, mine, name) : -ENOENT;
}

/* The name goes first: the entry may be this member's again. */
void fabric_names_drop(struct fabric_segment *s, uint32_t mine, int token)
{
	assert(token >= 0 && token < (int)FABRIC_NAMES);
	atomic_store(&s->name[token].salted, salt(mine));
	atomic_compare_exchange_strong(&s->name[token].lease, &mine, 0);
}
