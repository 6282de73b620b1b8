/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pieces that are memory of other processes: whoever provides mem_far moves the bytes.
 *
 * Copies come here from within a guarded stretch that touches nothing yet; what is called here
 * guards for itself, so the state of the stretch is kept aside.
 */
#include <errno.h>
#include <string.h>
#include "emu/mem/guard.h"

enum { ROOM_BYTES = 4096, TRIES_MAX = 1000 };

const struct mem_far_ops *mem_far;

static bool is_nowhere(uint64_t addr)
{
	return addr >> 62 == MEM_NOWHERE >> 62;
}

static int fetch(void *room, uint64_t from, size_t bytes)
{
	if (mem_is_far(from))
		return mem_far->read(from, room, bytes);
	if (!is_nowhere(from))
		return mem_copy_in(room, from, bytes);
	memset(room, 0, bytes);
	return 0;
}

static int put(uint64_t to, const void *room, size_t bytes)
{
	if (mem_is_far(to))
		return mem_far->write(to, room, bytes);
	return is_nowhere(to) ? 0 : mem_copy_out(to, room, bytes);
}

/* At once, if one side is ours.  It does not tell which side is bad. */
static int move(uint64_t to, uint64_t from, size_t bytes)
{
	if (guard_is_user(to, bytes))
		return mem_far->read(from, (void *)(uintptr_t)to, bytes);
	if (guard_is_user(from, bytes))
		return mem_far->write(to, (const void *)(uintptr_t)from, bytes);
	return -EFAULT;
}

static enum mem_side move_by_room(uint64_t to, uint64_t from, size_t bytes)
{
	uint8_t room[ROOM_BYTES];

	for (size_t now; bytes; bytes -= now, to += now, from += now) {
		now = bytes < sizeof room ? bytes : sizeof room;
		if (fetch(room, from, now))
			return MEM_SIDE_SRC;
		if (put(to, room, now))
			return MEM_SIDE_DST;
	}
	return MEM_SIDE_NONE;
}

enum mem_side far_copy(uint64_t to, uint64_t from, size_t bytes)
{
	struct guard kept = guard;
	enum mem_side side = MEM_SIDE_NONE;

	if (!mem_far)
		side = mem_is_far(to) ? MEM_SIDE_DST : MEM_SIDE_SRC;
	else if (move(to, from, bytes))
		side = move_by_room(to, from, bytes);
	guard = kept;
	return side;
}

int far_compare_swap(uint64_t addr, unsigned bytes, uint64_t compare, uint64_t swap,
		     uint64_t *old_out)
{
	if (!mem_is_far(addr) || !mem_far || addr & (bytes - 1))
		return -EFAULT;
	return mem_far->compare_swap(addr, bytes, compare, swap, old_out);
}

int far_fetch_add(uint64_t addr, uint64_t add, uint64_t *old_out)
{
	uint64_t guess = 0;

	for (int i = 0; i < TRIES_MAX; i++) {
		if (far_compare_swap(addr, 8, guess, guess + add, old_out))
			return -EFAULT;
		if (*old_out == guess)
			return 0;
		guess = *old_out;
	}
	return -EFAULT;
}
