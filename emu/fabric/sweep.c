/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cleaning up after members that died.  Every step is a compare-and-swap or an unlink of
 * something that is invalid for ever, so any number of cleaners may work at once.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "emu/fabric/segment.h"

enum fabric_life fabric_seat_life(const struct fabric_segment *s, unsigned slot,
				  uint64_t *seat_out)
{
	const struct fabric_member *m = &s->member[slot];
	uint64_t stack = 0;

	*seat_out = atomic_load_explicit(&s->first.seat[slot], memory_order_acquire);
	if (!seat_pid(*seat_out))
		return FABRIC_DEAD;
	if (atomic_load_explicit(&m->ready, memory_order_acquire) == seat_generation(*seat_out))
		stack = m->stack;
	return fabric_process_life(seat_pid(*seat_out), seat_start(*seat_out), stack);
}

static bool sweep_seat(struct fabric_segment *s, unsigned slot)
{
	uint64_t seat;

	if (fabric_seat_life(s, slot, &seat) != FABRIC_DEAD || !seat_pid(seat))
		return false;
	return atomic_compare_exchange_strong(&s->first.seat[slot], &seat,
					      seat_make(seat_generation(seat), 0, 0));
}

static void sweep_groups(struct fabric_segment *s)
{
	unsigned swept = 0;

	for (unsigned i = 0; i < FABRIC_GROUPS_MAX; i++) {
		_Atomic uint32_t *word = &s->group[i].owner;
		uint32_t lease = atomic_load_explicit(word, memory_order_relaxed);

		if (lease && !lease_is_valid(s, lease))
			swept += atomic_compare_exchange_strong(word, &lease, 0);
	}
	if (swept)
		atomic_fetch_add(&s->group_changes, 1);
}

void fabric_sweep_leases(struct fabric_segment *s)
{
	sweep_groups(s);
	for (unsigned space = 0; space < FABRIC_SPACE_COUNT; space++) {
		for (unsigned block = 0; block < FABRIC_BLOCKS; block++) {
			_Atomic uint32_t *word = &s->lease[space][block];
			uint32_t lease = atomic_load_explicit(word, memory_order_relaxed);

			if (lease && !lease_is_valid(s, lease))
				atomic_compare_exchange_strong(word, &lease, 0);
		}
	}
}

/* "<slot>-<generation>-...".  Files without such a name are nobody's, and stay. */
static bool file_has_member(const char *name, unsigned *slot_out, unsigned long *generation_out)
{
	unsigned long slot;
	char *end;

	if (*name < '0' || *name > '9')
		return false;
	slot = strtoul(name, &end, 10);
	if (*end++ != '-' || *end < '0' || *end > '9' || slot >= FABRIC_MEMBERS_MAX)
		return false;
	*slot_out = (unsigned)slot;
	*generation_out = strtoul(end, &end, 10);
	return *end == '-';
}

/* Of somebody who is not there; @s NULL: of anybody. */
static bool file_is_invalid(const struct fabric_segment *s, const char *name)
{
	unsigned long generation;
	unsigned slot;

	/* The file was seen before the seat is read, and a seat is taken before its files are
	 * made: another generation there now is a later one. */
	return file_has_member(name, &slot, &generation) &&
	       (!s || generation != seated_generation(s, slot));
}

static void remove_invalid(const struct fabric_segment *s, const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *entry;

	if (!d)
		return;
	while ((entry = readdir(d)))
		if (file_is_invalid(s, entry->d_name))
			unlinkat(dirfd(d), entry->d_name, 0);
	closedir(d);
}

void fabric_sweep_files(struct fabric_segment *s, const char *dir)
{
	remove_invalid(s, dir);
}

void fabric_remove_files(const char *dir)
{
	remove_invalid(NULL, dir);
}

void fabric_sweep(struct fabric_segment *s, const char *dir)
{
	unsigned died = 0;

	for (unsigned slot = 0; slot < FABRIC_MEMBERS_MAX; slot++)
		died += sweep_seat(s, slot);
	if (died) {
		fabric_sweep_leases(s);
		atomic_fetch_add(&s->first.changes, 1);
	}
	fabric_sweep_files(s, dir);
}

bool fabric_is_empty(const struct fabric_segment *s)
{
	for (unsigned slot = 0; slot < FABRIC_MEMBERS_MAX; slot++)
		if (seated_generation(s, slot))
			return false;
	return true;
}

bool fabric_all_exit(const struct fabric_segment *s)
{
	for (unsigned slot = 0; slot < FABRIC_MEMBERS_MAX; slot++) {
		uint32_t generation = seated_generation(s, slot);

		if (generation && atomic_load(&s->member[slot].exiting) != generation)
			return false;
	}
	return true;
}
