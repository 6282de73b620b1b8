/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What this function shares with others; see emu/obj/abroad.h.
 *
 * Nothing is locked: entries are written by their owner only, and what a dead member wrote is not
 * looked at, since its generation is over.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "emu/abroad.h"
#include "emu/fabric/fabric.h"
#include "emu/share/share.h"

#define DYING_NAP_NS	1000000
#define DYING_NAPS	50

struct local {
	struct fabric *fabric;
	struct share *share;
	struct abroad_hold **hold;	/* all that were ever needed */
	uint32_t hold_count, hold_size;
};

static void *take(void *ctx, uint32_t number)
{
	return share_take(((struct local *)ctx)->share, SHARE_ABROAD, number);
}

/* --- what we hold --- */

static struct abroad_hold *hold_free(const struct local *l)
{
	for (uint32_t i = 0; i < l->hold_count; i++)
		if (atomic_load(&l->hold[i]->state) == ABROAD_NONE)
			return l->hold[i];
	return NULL;
}

static bool holds_grow(struct local *l)
{
	uint32_t size = l->hold_size ? l->hold_size * 2 : 16;
	struct abroad_hold **grown;

	if (l->hold_count < l->hold_size)
		return true;
	grown = realloc(l->hold, size * sizeof *grown);
	if (!grown)
		return false;
	l->hold = grown;
	l->hold_size = size;
	return true;
}

/* In a row, so that whoever looks for holds knows where they end. */
static struct abroad_hold *hold_new(struct local *l)
{
	struct abroad_hold *hold;

	if (l->hold_count == ABROAD_HOLDS || !holds_grow(l))
		return NULL;
	hold = take(l, ABROAD_OF_HOLD(l->hold_count));
	if (hold)
		l->hold[l->hold_count++] = hold;
	return hold;
}

static struct abroad_hold *hold_take(void *ctx, const struct abroad_ref *ref)
{
	struct abroad_hold *hold = hold_free(ctx);

	if (!hold)
		hold = hold_new(ctx);
	if (!hold)
		return NULL;
	hold->ref = *ref;
	atomic_store(&hold->users, 0);
	atomic_store(&hold->state, ABROAD_THERE);
	return hold;
}

/* --- what others hold --- */

static bool is_of(const struct abroad_hold *hold, const struct abroad_ref *ref)
{
	return hold->state != ABROAD_NONE && hold->ref.slot == ref->slot &&
	       hold->ref.generation == ref->generation && hold->ref.number == ref->number;
}

static unsigned holds_of(struct share_peer *peer, const struct abroad_ref *ref,
			 unsigned *users)
{
	union abroad_entry entry;
	unsigned count = 0;

	for (uint32_t i = 0; i < ABROAD_HOLDS; i++) {
		if (share_read(peer, SHARE_ABROAD, ABROAD_OF_HOLD(i), 0, &entry, sizeof entry))
			break;
		if (!is_of(&entry.hold, ref))
			continue;
		count++;
		*users += entry.hold.users;
	}
	return count;
}

/* Who lives and can't be looked at may hold anything. */
static unsigned member_holds(struct local *l, uint32_t slot, const struct abroad_ref *ref,
			     unsigned *users)
{
	uint32_t generation = fabric_generation(l->fabric, slot);
	struct share_peer *peer;

	if (!fabric_lives(l->fabric, slot, generation))
		return 0;
	peer = share_peer_at(l->share, slot, generation);
	return peer ? holds_of(peer, ref, users) : 1;
}

static unsigned holders(void *ctx, const struct abroad_file *file, uint32_t number,
			unsigned *users_out)
{
	struct local *l = ctx;
	const struct abroad_ref ref = {
		fabric_self(l->fabric), fabric_generation(l->fabric, fabric_self(l->fabric)),
		number,
	};
	unsigned count = 0;

	*users_out = 0;
	/* Of who holds now, it sees that the object leaves, or we see the hold. */
	atomic_thread_fence(memory_order_seq_cst);
	for (unsigned slot = 0; slot < FABRIC_MEMBERS_MAX; slot++)
		if (atomic_load(&file->importers[slot / 64]) >> slot % 64 & 1)
			count += member_holds(l, slot, &ref, users_out);
	return count;
}

/* --- what others have --- */

/* Why a member that was there has no segment.  While a process ends, its segment is known to be
 * dead a moment before the process is. */
static int no_segment(struct local *l, const struct abroad_ref *ref)
{
	const struct timespec nap = { .tv_nsec = DYING_NAP_NS };

	for (int i = 0; i < DYING_NAPS; i++) {
		if (!fabric_lives(l->fabric, ref->slot, ref->generation))
			return -EIO;
		syscall(SYS_nanosleep, &nap, NULL);
	}
	return -EOPNOTSUPP;
}

static int read_entry(void *ctx, const struct abroad_ref *ref, union abroad_entry *out)
{
	struct local *l = ctx;
	struct share_peer *peer;

	if (!fabric_lives(l->fabric, ref->slot, ref->generation))
		return -EIO;
	peer = share_peer_at(l->share, ref->slot, ref->generation);
	if (!peer)
		return no_segment(l, ref);
	return share_read(peer, SHARE_ABROAD, ref->number, 0, out, sizeof *out);
}

static int mark(void *ctx, const struct abroad_ref *ref)
{
	struct local *l = ctx;
	unsigned self = fabric_self(l->fabric);
	struct share_peer *peer = share_peer_at(l->share, ref->slot, ref->generation);
	int rc = peer ? share_set_bits(peer, SHARE_ABROAD, ref->number,
				       offsetof(struct abroad_file, importers[self / 64]),
				       UINT64_C(1) << self % 64) : no_segment(l, ref);

	atomic_thread_fence(memory_order_seq_cst);
	return rc;
}

/* --- device memory --- */

static void memory_path(const struct local *l, const struct abroad_ref *ref, char out[320])
{
	snprintf(out, 320, "%s/%u-%u-memory-%u", fabric_dir(l->fabric), ref->slot,
		 ref->generation, ref->number >> 16);
}

static int memory_create(const char *path, size_t bytes)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int rc;

	if (fd < 0)
		return -errno;
	rc = fchmod(fd, 0600) ? -errno : fabric_file_reserve(fd, bytes);
	if (!rc)
		return fd;
	close(fd);
	unlink(path);
	return rc;
}

static int memory_open(void *ctx, const struct abroad_ref *ref, size_t bytes)
{
	char path[320];
	int fd;

	memory_path(ctx, ref, path);
	if (bytes)
		return memory_create(path, bytes);
	fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static void memory_end(void *ctx, const struct abroad_ref *ref)
{
	char path[320];

	memory_path(ctx, ref, path);
	unlink(path);
}

/* --- who is there --- */

static uint32_t generation_of(void *ctx, uint32_t slot)
{
	return fabric_generation(((struct local *)ctx)->fabric, slot);
}

static bool lives(void *ctx, const struct abroad_ref *ref)
{
	return fabric_lives(((struct local *)ctx)->fabric, ref->slot, ref->generation);
}

void abroad_begin(struct emu_dev *dev, struct fabric *fabric, struct share *share)
{
	struct local *l = share ? calloc(1, sizeof *l) : NULL;

	if (!l)
		return;
	l->fabric = fabric;
	l->share = share;
	dev->abroad = (struct abroad){
		.self = fabric_self(fabric),
		.generation = fabric_generation(fabric, fabric_self(fabric)),
		.take = take, .hold = hold_take, .holders = holders, .read = read_entry,
		.mark = mark, .memory = memory_open, .memory_end = memory_end,
		.generation_of = generation_of, .lives = lives, .ctx = l,
	};
}

void abroad_end(struct emu_dev *dev)
{
	struct local *l = dev->abroad.ctx;

	if (l)
		free(l->hold);
	free(l);
	dev->abroad = (struct abroad){ 0 };
}
