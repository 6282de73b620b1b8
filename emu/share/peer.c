/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer's side: looking into another function's segment and memory.
 *
 * Every access to the segment is guarded, since a broken owner may truncate the file; places
 * that its directory names are bounded.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "emu/mem/mem.h"
#include "emu/share/share_local.h"
#include "include/base/cancel.h"

void share_peer_close(struct share_peer *peer)
{
	if (peer->header)
		munmap(peer->header, SHARE_BYTES);
	memset(peer, 0, sizeof *peer);
}

/* Until somebody else has the slot: its memory is not kept for that long. */
static void peer_give_up(struct share_peer *peer)
{
	if (peer->header)
		munmap(peer->header, SHARE_BYTES);
	peer->header = NULL;
	peer->is_refused = true;
}

static struct share_header *segment_map(const char *path)
{
	struct stat st;
	void *at = MAP_FAILED;
	int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size == (off_t)SHARE_BYTES)
		at = mmap(NULL, SHARE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
			  0);
	close(fd);
	if (at == MAP_FAILED)
		return NULL;
	share_keep_private(at);
	return at;
}

/* What identifies a segment: its first bytes. */
struct head {
	uint64_t magic;
	uint32_t layout, entry_bytes[SHARE_KIND_COUNT], is_closed;
};

static_assert(offsetof(struct head, is_closed) == offsetof(struct share_header, is_closed),
	      "as struct share_header begins");

static bool header_is_known(struct share_peer *peer)
{
	const struct share *s = peer->share;
	struct head head;

	if (mem_copy_in(&head, (uintptr_t)peer->header, sizeof head) ||
	    head.magic != SHARE_MAGIC || head.layout != SHARE_LAYOUT ||
	    memcmp(head.entry_bytes, s->entry_bytes, sizeof head.entry_bytes))
		return false;
	peer->is_forbidden = s->is_closed || head.is_closed;
	return true;
}

static uint64_t busy_at(const struct share_peer *peer)
{
	return (uintptr_t)&peer->header->busy[peer->share->self].word;
}

/* We are not in, whatever an earlier member of our slot left there. */
static bool busy_reset(struct share_peer *peer)
{
	uint64_t seen, left;

	return !mem_copy_in(&left, busy_at(peer), sizeof left) &&
	       !mem_compare_swap(busy_at(peer), left, peer->idle, &seen) && seen == left;
}

static bool peer_introduce(struct share_peer *peer)
{
	peer->idle = (uint64_t)peer->share->generation << 32;
	return busy_reset(peer) && !mem_store32_release((uintptr_t)&peer->header->has_peers, 1);
}

static void peer_open(struct share *s, struct share_peer *peer, unsigned slot, uint32_t generation)
{
	char path[512];

	share_peer_close(peer);
	peer->share = s;
	peer->slot = slot;
	peer->pid = fabric_pid(s->fabric, slot);
	if (fabric_generation(s->fabric, slot) != generation)
		return;			/* the pid may be another member's: next time */
	peer->generation = generation;
	share_path(s, slot, generation, path, sizeof path);
	peer->header = segment_map(path);
	if (!peer->header || peer->pid <= 0 || !header_is_known(peer) ||
	    !peer_introduce(peer))
		peer_give_up(peer);
}

/* Mapping has cancellation points, and the caller holds the device lock. */
static void peer_open_held(struct share *s, struct share_peer *peer, unsigned slot,
			   uint32_t generation)
{
	int held = cancel_hold();

	peer_open(s, peer, slot, generation);
	cancel_release(held);
}

struct share_peer *share_peer_at(struct share *s, unsigned slot, uint32_t generation)
{
	struct share_peer *peer;

	if (slot >= FABRIC_MEMBERS_MAX || slot == s->self || !generation ||
	    fabric_generation(s->fabric, slot) != generation)
		return NULL;
	peer = &s->peer[slot];
	if (peer->generation != generation && !peer->depth)
		peer_open_held(s, peer, slot, generation);
	return peer->generation == generation && peer->header && !peer->is_refused ? peer : NULL;
}

static struct share_peer *find(struct share *s, int slot)
{
	return slot < 0 ? NULL :
	       share_peer_at(s, (unsigned)slot, fabric_generation(s->fabric, (unsigned)slot));
}

struct share_peer *share_peer_find(struct share *s, uint32_t qpn)
{
	struct share_peer *peer = find(s, fabric_owner(s->fabric, FABRIC_QPN, qpn));

	return peer && !peer->is_forbidden ? peer : NULL;
}

struct share_peer *share_peer_of_key(struct share *s, uint32_t index, bool *has_owner_out)
{
	int slot = fabric_owner(s->fabric, FABRIC_KEY, index);

	*has_owner_out = slot >= 0 && (unsigned)slot != s->self;
	return find(s, slot);
}

unsigned share_peer_slot(const struct share_peer *peer)
{
	return peer->slot;
}

bool share_peer_is_beyond(const struct share_peer *peer)
{
	return peer->is_forbidden &&
	       fabric_life(peer->share->fabric, peer->slot) == FABRIC_STOPPED;
}

/* 0 before anybody vouches for it, DIED after. */
static bool owner_is_live(const struct share_peer *peer, uint32_t *word_out)
{
	return !mem_load32((uintptr_t)&peer->header->live, word_out) && *word_out &&
	       !(*word_out & FUTEX_OWNER_DIED);
}

bool share_begin(struct share_peer *peer)
{
	uint64_t seen;
	uint32_t word = FUTEX_OWNER_DIED;

	if (peer->depth) {
		peer->depth++;
		return true;
	}
	if (mem_compare_swap(busy_at(peer), peer->idle, peer->idle + 1, &seen)) {
		peer_give_up(peer);
		return false;
	}
	if (seen != peer->idle) {
		busy_reset(peer);	/* somebody scribbles: this one goes by packet */
		return false;
	}
	/* Nothing of what we are to see is read before the owner can see that we are in. */
	share_barrier();
	peer->depth = 1;
	if (owner_is_live(peer, &word))
		return true;
	share_end(peer);
	if (word & FUTEX_OWNER_DIED)
		peer_give_up(peer);
	return false;
}

/* The owner may have put us out; then the word is not ours to change. */
void share_end(struct share_peer *peer)
{
	uint64_t mine = peer->idle + 1, seen;

	if (--peer->depth)
		return;
	peer->idle = busy_next(mine);
	mem_compare_swap(busy_at(peer), mine, peer->idle, &seen);
}

/*
 * Asked right before every change: we may have been stopped for long since share_begin(), and been
 * put out, and the owner may have died and left its pid to another.
 */
static bool is_still_in(const struct share_peer *peer)
{
	uint64_t word;
	uint32_t live;

	return !mem_copy_in(&word, busy_at(peer), sizeof word) && word == peer->idle + 1 &&
	       owner_is_live(peer, &live);
}

/* Where @bytes of an entry are, or 0. */
static uint64_t entry_at(struct share_peer *peer, enum share_kind kind, uint32_t number,
			 size_t offset, size_t bytes)
{
	uint32_t size = peer->share->entry_bytes[kind], page;
	uint64_t at;

	if (number >> 24 || offset > size || bytes > size - offset ||
	    mem_load32((uintptr_t)&peer->header->directory[kind][number >> CHUNK_BITS], &page) ||
	    !page)
		return 0;
	at = (uint64_t)page * SHARE_PAGE + (uint64_t)(number % CHUNK_NUMBERS) * size + offset;
	return at + bytes > SHARE_BYTES ? 0 : (uintptr_t)peer->header + at;
}

int share_read(struct share_peer *peer, enum share_kind kind, uint32_t number, size_t offset,
	       void *out, size_t bytes)
{
	uint64_t at = entry_at(peer, kind, number, offset, bytes);

	return at && !mem_copy_in(out, at, bytes) ? 0 : -ENOENT;
}

int share_write(struct share_peer *peer, enum share_kind kind, uint32_t number, size_t offset,
		const void *bytes_in, size_t bytes)
{
	uint64_t at = entry_at(peer, kind, number, offset, bytes);

	return at && is_still_in(peer) && !mem_copy_out(at, bytes_in, bytes) ? 0 : -ENOENT;
}

int share_load32(struct share_peer *peer, enum share_kind kind, uint32_t number, size_t offset,
		 uint32_t *out)
{
	uint64_t at = entry_at(peer, kind, number, offset, sizeof *out);

	return at && !mem_load32(at, out) ? 0 : -ENOENT;
}

int share_store32(struct share_peer *peer, enum share_kind kind, uint32_t number, size_t offset,
		  uint32_t value)
{
	uint64_t at = entry_at(peer, kind, number, offset, sizeof value);

	return at && is_still_in(peer) && !mem_store32_release(at, value) ? 0 : -ENOENT;
}

int share_bits_set(uint64_t at, uint64_t bits)
{
	uint64_t seen = 0, expected;

	do {
		expected = seen;
		if (mem_compare_swap(at, expected, expected | bits, &seen))
			return -EFAULT;
	} while (seen != expected);
	return 0;
}

int share_set_bits(struct share_peer *peer, enum share_kind kind, uint32_t number, size_t offset,
		   uint64_t bits)
{
	uint64_t at = entry_at(peer, kind, number, offset, sizeof bits);

	return at && !share_bits_set(at, bits) ? 0 : -ENOENT;
}

/* --- memory --- */

typedef ssize_t vm_fn(pid_t pid, const struct iovec *local, unsigned long local_count,
		      const struct iovec *remote, unsigned long remote_count, unsigned long flags);

static int vm_move(struct share_peer *peer, vm_fn *move, const struct iovec *local, unsigned count,
		   const struct iovec *remote, unsigned remote_count, size_t bytes)
{
	ssize_t moved;

	if (!bytes)
		return 0;
	if (peer->is_forbidden)
		return -EPERM;
	if (!is_still_in(peer))
		return -EAGAIN;
	moved = move(peer->pid, local, count, remote, remote_count, 0);
	if (moved == (ssize_t)bytes)
		return 0;
	if (moved < 0 && errno != EFAULT && errno != ENOMEM) {
		peer->is_forbidden = true;
		return -EPERM;
	}
	return -EFAULT;
}

/*
 * Applications poll the end of a message.  The kernel may copy by instructions whose stores become
 * visible in any order (Intel SDM, "Fast-String Operation and Out-of-Order Stores"), but not
 * before those of an earlier piece: so the last word is a piece of its own.
 */
int share_memory_write(struct share_peer *peer, uint64_t to, const struct iovec *from,
		       unsigned count, size_t bytes)
{
	size_t last = ((to + bytes - 1) & 7) + 1, before = bytes > last ? bytes - last : 0;
	const struct iovec there[2] = {
		{ (void *)(uintptr_t)to, before },
		{ (void *)(uintptr_t)(to + before), bytes - before },
	};

	return vm_move(peer, process_vm_writev, from, count, there + !before, 1 + !!before, bytes);
}

int share_memory_read(struct share_peer *peer, const struct iovec *to, unsigned count,
		      uint64_t from, size_t bytes)
{
	struct iovec there = { (void *)(uintptr_t)from, bytes };

	return vm_move(peer, process_vm_readv, to, count, &there, 1, bytes);
}
