/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joining, leaving, leases, and questions about members.
 *
 * Joining and leaving hold the lock of place.c, so that the last who leaves and the first who
 * joins don't cross; everything else is lock-free (see segment.h).
 */
#include "emu/fabric/fabric.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "emu/fabric/segment.h"
#include "hw-models/ib_packet.h"
#include "include/base/cancel.h"

static void publish_member(struct fabric *f, const struct fabric_config *config, uint64_t stack)
{
	struct fabric_member *m = &f->segment->member[f->self];

	memset(m->mail, 0, sizeof m->mail);
	m->port_noticed = 0;
	f->segment->rule_change[f->self] = 0;
	memcpy(m->gid, config->gid, config->gid_count * sizeof *m->gid);
	m->gid_count = config->gid_count;
	m->stack = stack;
	atomic_store_explicit(&m->ready, seat_generation(f->seat), memory_order_release);
	atomic_fetch_add(&f->segment->first.changes, 1);
}

static int take_seat(struct fabric *f, const struct fabric_config *config)
{
	struct fabric_process own = { 0 };

	if (fabric_process_read(getpid(), &own) < 0)
		own = (struct fabric_process){ 0 };	/* no /proc: known by its pid alone */
	for (unsigned slot = 0; slot < FABRIC_MEMBERS_MAX; slot++) {
		uint64_t empty = atomic_load(&f->segment->first.seat[slot]);
		uint32_t generation = (seat_generation(empty) + 1) & GENERATION_MASK;

		if (seat_pid(empty))
			continue;
		f->seat = seat_make(generation ? generation : 1, own.start, getpid());
		if (!atomic_compare_exchange_strong(&f->segment->first.seat[slot], &empty, f->seat))
			continue;
		f->self = slot;
		publish_member(f, config, own.stack);
		return 0;
	}
	return -ENOSPC;
}

int fabric_map(struct fabric *f, int fd)
{
	struct stat st;
	void *at;

	if (fstat(fd, &st) < 0)
		return -errno;
	at = mmap(NULL, sizeof *f->segment, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	f->segment = at;
	f->device = st.st_dev;
	f->inode = st.st_ino;
	return 0;
}

static int join_locked(struct fabric *f, const struct fabric_config *config, int fd)
{
	int rc = fabric_map(f, fd);

	if (rc)
		return rc;
	fabric_sweep(f->segment, f->dir);
	return take_seat(f, config);
}

static int join(struct fabric *f, const struct fabric_config *config)
{
	int fd, rc;

	fabric_gate_enter();
	rc = fd = fabric_place_open(f->dir);
	if (fd >= 0) {
		rc = join_locked(f, config, fd);
		/* Nobody may sit in what was just created: as the last who leaves. */
		if (rc && f->segment && fabric_is_empty(f->segment))
			fabric_place_remove(f->dir);
		close(fd);
	}
	fabric_gate_leave();
	return rc;
}

int fabric_join(const struct fabric_config *config, struct fabric **out)
{
	struct fabric *f;
	int rc;

	if (config->gid_count > FABRIC_GIDS_MAX)
		return -EINVAL;
	f = calloc(1, sizeof *f);
	if (!f)
		return -ENOMEM;
	rc = fabric_place_name(config->name, f->dir, sizeof f->dir);
	if (rc == 0)
		rc = join(f, config);
	if (rc) {
		fabric_abandon(f);
		return rc;
	}
	*out = f;
	return 0;
}

void fabric_abandon(struct fabric *f)
{
	if (f->segment)
		munmap(f->segment, sizeof *f->segment);
	free(f);
}

/* Our seat, and with it our leases and files. */
static void give_seat(struct fabric *f)
{
	uint64_t seat = f->seat;

	atomic_compare_exchange_strong(&f->segment->first.seat[f->self], &seat,
				       seat_make(seat_generation(seat), 0, 0));
	if (atomic_load(&f->has_leased))
		fabric_sweep_leases(f->segment);
	atomic_fetch_add(&f->segment->first.changes, 1);
}

/* Locked again, if the file of that name is still ours (somebody may have removed it by hand). */
static int reopen_own(const struct fabric *f)
{
	int fd = fabric_place_reopen(f->dir);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) == 0 && st.st_dev == f->device && st.st_ino == f->inode)
		return fd;
	close(fd);
	return -ESTALE;
}

/* Clean up after the dead; and if nobody is left but who is about to end, remove it all. */
void fabric_clean_or_remove(const struct fabric *f)
{
	if (!fabric_all_exit(f->segment))
		fabric_sweep(f->segment, f->dir);
	if (!fabric_all_exit(f->segment))
		return;
	fabric_remove_files(f->dir);
	fabric_remove_default_ports(f->dir);
	fabric_place_remove(f->dir);
}

void fabric_leave(struct fabric *f)
{
	int fd;

	fabric_gate_enter();
	fd = reopen_own(f);
	give_seat(f);
	if (fd >= 0) {
		fabric_clean_or_remove(f);
		close(fd);
	}
	fabric_gate_leave();
	fabric_abandon(f);
}

void fabric_exit(struct fabric *f)
{
	int fd;

	fabric_gate_enter();
	fd = reopen_own(f);
	if (fd >= 0) {
		atomic_store(&f->segment->member[f->self].exiting, seat_generation(f->seat));
		fabric_clean_or_remove(f);
		close(fd);
	}
	fabric_gate_leave();
}

unsigned fabric_self(const struct fabric *f)
{
	return f->self;
}

static uint32_t own_lease(const struct fabric *f)
{
	return lease_make(f->self, seat_generation(f->seat));
}

static bool is_leasable(enum fabric_space space, unsigned block)
{
	return block && !(space == FABRIC_QPN && block == FABRIC_BLOCKS - 1);
}

int fabric_lease(struct fabric *f, enum fabric_space space)
{
	struct fabric_segment *s = f->segment;
	uint32_t mine = own_lease(f);

	assert(space < FABRIC_SPACE_COUNT);
	atomic_store(&f->has_leased, true);
	for (unsigned tries = 0; tries < FABRIC_BLOCKS; tries++) {
		/* The search goes round, so that a block is used again as late as possible. */
		unsigned block = (atomic_fetch_add(&s->lease_next[space], 1) + 1) % FABRIC_BLOCKS;
		_Atomic uint32_t *word = &s->lease[space][block];
		uint32_t lease = atomic_load_explicit(word, memory_order_relaxed);

		if (!is_leasable(space, block) || lease_is_valid(s, lease))
			continue;
		if (atomic_compare_exchange_strong(word, &lease, mine))
			return (int)block;
	}
	return -ENOMEM;
}

int fabric_owner(struct fabric *f, enum fabric_space space, uint32_t number)
{
	uint32_t block = number >> FABRIC_BLOCK_BITS, lease;

	assert(space < FABRIC_SPACE_COUNT);
	if (block >= FABRIC_BLOCKS)
		return -1;
	lease = atomic_load_explicit(&f->segment->lease[space][block], memory_order_acquire);
	return lease_is_valid(f->segment, lease) ? (int)(lease >> 24) : -1;
}

bool fabric_has_gid(struct fabric *f, unsigned member, const uint8_t gid[16])
{
	const struct fabric_member *m;
	uint32_t count, generation;

	if (member >= FABRIC_MEMBERS_MAX)
		return false;
	m = &f->segment->member[member];
	generation = seated_generation(f->segment, member);
	if (!generation || atomic_load_explicit(&m->ready, memory_order_acquire) != generation)
		return false;
	count = *(const volatile uint32_t *)&m->gid_count;
	for (uint32_t i = 0; i < count && i < FABRIC_GIDS_MAX; i++)
		if (ib_gid_is_of(gid, m->gid[i]))
			return true;
	return false;
}

/* Who asks meanwhile finds that the member is not ready: a packet lost, which may come again. */
void fabric_gids_set(struct fabric *f, const uint8_t (*gid)[16], unsigned count)
{
	struct fabric_member *m = &f->segment->member[f->self];

	assert(count <= FABRIC_GIDS_MAX);
	if (m->gid_count == count && !memcmp(m->gid, gid, count * sizeof *gid))
		return;
	atomic_store(&m->ready, 0);
	memcpy(m->gid, gid, count * sizeof *gid);
	m->gid_count = count;
	atomic_store_explicit(&m->ready, seat_generation(f->seat), memory_order_release);
}

int fabric_name_hold(struct fabric *f, uint64_t name, bool creates, bool is_exclusive)
{
	return fabric_names_hold(f->segment, own_lease(f), name, creates, is_exclusive);
}

void fabric_name_drop(struct fabric *f, int token)
{
	fabric_names_drop(f->segment, own_lease(f), token);
}

enum fabric_life fabric_life(struct fabric *f, unsigned member)
{
	enum fabric_life life;
	uint64_t seat;
	int held;

	if (member >= FABRIC_MEMBERS_MAX)
		return FABRIC_DEAD;
	held = cancel_hold();		/* callers hold locks */
	life = fabric_seat_life(f->segment, member, &seat);
	if (life == FABRIC_DEAD && seat_pid(seat))
		fabric_sweep(f->segment, f->dir);
	cancel_release(held);
	return life;
}

/* --- groups --- */

static void gid_halves(const uint8_t gid[16], uint64_t half[2])
{
	memcpy(half, gid, 16);
}

static bool is_group(const struct fabric_group *g, const uint64_t half[2])
{
	return atomic_load_explicit(&g->gid[0], memory_order_relaxed) == half[0] &&
	       atomic_load_explicit(&g->gid[1], memory_order_relaxed) == half[1];
}

static unsigned group_end(const struct fabric_segment *s)
{
	uint32_t end = atomic_load_explicit(&s->group_end, memory_order_acquire);

	return end < FABRIC_GROUPS_MAX ? end : FABRIC_GROUPS_MAX;
}

/* Searches stop here. */
static void group_end_raise(struct fabric_segment *s, uint32_t end)
{
	uint32_t was = atomic_load(&s->group_end);

	while (was < end && !atomic_compare_exchange_weak(&s->group_end, &was, end))
		;
}

int fabric_group_join(struct fabric *f, const uint8_t gid[16])
{
	struct fabric_segment *s = f->segment;
	uint64_t half[2];

	gid_halves(gid, half);
	atomic_store(&f->has_leased, true);
	for (unsigned i = 0; i < FABRIC_GROUPS_MAX; i++) {
		struct fabric_group *g = &s->group[i];
		uint32_t owner = atomic_load_explicit(&g->owner, memory_order_relaxed);

		if (lease_is_valid(s, owner) ||
		    !atomic_compare_exchange_strong(&g->owner, &owner, own_lease(f)))
			continue;
		atomic_store_explicit(&g->gid[0], half[0], memory_order_relaxed);
		atomic_store_explicit(&g->gid[1], half[1], memory_order_relaxed);
		group_end_raise(s, i + 1);
		atomic_fetch_add(&s->group_changes, 1);
		return 0;
	}
	return -ENOSPC;
}

void fabric_group_leave(struct fabric *f, const uint8_t gid[16])
{
	struct fabric_segment *s = f->segment;
	unsigned end = group_end(s);
	uint64_t half[2];

	gid_halves(gid, half);
	for (unsigned i = 0; i < end; i++) {
		uint32_t owner = own_lease(f);

		if (is_group(&s->group[i], half))
			atomic_compare_exchange_strong(&s->group[i].owner, &owner, 0);
	}
	atomic_fetch_add(&s->group_changes, 1);
}

void fabric_group_members(const struct fabric *f, const uint8_t gid[16],
			  struct fabric_members *out)
{
	const struct fabric_segment *s = f->segment;
	unsigned end = group_end(s);
	uint64_t half[2];

	gid_halves(gid, half);
	*out = (struct fabric_members){ { 0 } };
	for (unsigned i = 0; i < end; i++) {
		uint32_t owner = atomic_load_explicit(&s->group[i].owner, memory_order_acquire);
		unsigned slot = owner >> 24;

		if (lease_is_valid(s, owner) && is_group(&s->group[i], half))
			out->bit[slot / 64] |= UINT64_C(1) << slot % 64;
	}
}

uint32_t fabric_group_changes(const struct fabric *f)
{
	return atomic_load_explicit(&f->segment->group_changes, memory_order_acquire);
}

uint32_t fabric_generation(struct fabric *f, unsigned member)
{
	return member < FABRIC_MEMBERS_MAX ? seated_generation(f->segment, member) : 0;
}

pid_t fabric_pid(const struct fabric *f, unsigned member)
{
	if (member >= FABRIC_MEMBERS_MAX)
		return 0;
	return seat_pid(atomic_load_explicit(&f->segment->first.seat[member],
					     memory_order_acquire));
}

uint32_t fabric_changes(const struct fabric *f)
{
	return atomic_load_explicit(&f->segment->first.changes, memory_order_acquire);
}

void *fabric_mail(struct fabric *f, unsigned member)
{
	assert(member < FABRIC_MEMBERS_MAX);
	return f->segment->member[member].mail;
}

const char *fabric_dir(const struct fabric *f)
{
	return f->dir;
}
