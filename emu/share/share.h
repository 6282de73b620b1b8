/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The function's shared segment: what peers need to execute a one-sided operation
 * themselves, without the target's CPU.
 *
 * The owner keeps responders, memory keys and what it shares with other processes
 * (emu/obj/abroad.h) in it, by number; a peer maps it and finds them by the same numbers.  Nothing
 * in it is a pointer, and a peer trusts nothing it reads there.  A peer announces itself before it
 * looks and until it has moved the bytes (share_begin, share_end), so that the owner can wait for
 * it before it takes something back (share_quiesce).  Death is seen without a system call: the
 * owner's NIC thread holds a robust futex, which the kernel marks.
 *
 * Where there is no room for a segment, the owner uses private memory and peers the ring.  Where
 * there is one but no way to the owner's memory, what can't go by the ring is asked of the owner's
 * engine (errand.h).
 *
 * Threads: all calls under the device lock of the calling function, except share_live_*.
 * mem_guard_init() before.
 */
#ifndef EMU_SHARE_SHARE_H
#define EMU_SHARE_SHARE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct fabric;
struct share;
struct share_peer;

enum share_kind { SHARE_RESPONDER, SHARE_KEY, SHARE_ABROAD, SHARE_KIND_COUNT };

/* --- the owner --- */

/* @entry_bytes: of each kind.  @is_closed: this function moves nobody's memory and nobody shall
 * move its own; peers may look into the segment all the same.  0; -EFBIG, -ENOSPC, -ENOMEM and
 * other errno: go on without. */
int share_create(struct fabric *fabric, const size_t entry_bytes[SHARE_KIND_COUNT],
		 bool is_closed, struct share **out);
void share_destroy(struct share *s);
bool share_is_open(const struct share *s);	/* not closed */

/* The zeroed place of @number, or NULL: none is left. */
void *share_take(struct share *s, enum share_kind kind, uint32_t number);
bool share_owns(const struct share *s, const void *entry);

/* Nobody looks any more at what was made invalid before the call.  A peer that is stopped in the
 * middle, or does not come to an end for seconds, is put out instead: it can change nothing that
 * it has not begun to. */
void share_quiesce(struct share *s);

/* The calling thread vouches for the function until it says otherwise or dies; once only. */
void share_live_begin(struct share *s);
void share_live_end(struct share *s);
/* Until the thread that is to vouch has begun, or found that it can't: what others are told of is
 * within their reach then. */
void share_live_await(struct share *s);

/* 8-byte atomics of this function exclude each other, whoever executes them. */
void share_atomics_lock(struct share *s);
void share_atomics_unlock(struct share *s);

/* --- a peer --- */

/* The live function that owns @qpn, mapped; NULL: none, or it can't be reached this way. */
struct share_peer *share_peer_find(struct share *s, uint32_t qpn);

/* The one that a memory key belongs to, and is there one at all?  Its memory may be forbidden. */
struct share_peer *share_peer_of_key(struct share *s, uint32_t index, bool *has_owner_out);
/* The member that has @slot in this generation, to look into its segment only: its memory may be
 * forbidden, and it may be dead. */
struct share_peer *share_peer_at(struct share *s, unsigned slot, uint32_t generation);
unsigned share_peer_slot(const struct share_peer *peer);
/* Its memory is forbidden, and it is stopped, so that it does no errands either. */
bool share_peer_is_beyond(const struct share_peer *peer);

/* False: it is gone, or not now. */
bool share_begin(struct share_peer *peer);
void share_end(struct share_peer *peer);

/* Copy @bytes of the entry of @number from @offset on.  0 or -ENOENT */
int share_read(struct share_peer *peer, enum share_kind kind, uint32_t number, size_t offset,
	       void *out, size_t bytes);
/* And back; the last of several writes is seen last.  0; -ENOENT also if we were put out */
int share_write(struct share_peer *peer, enum share_kind kind, uint32_t number, size_t offset,
		const void *bytes_in, size_t bytes);
/* One aligned word, as an acquire load and a release store. */
int share_load32(struct share_peer *peer, enum share_kind kind, uint32_t number, size_t offset,
		 uint32_t *out);
int share_store32(struct share_peer *peer, enum share_kind kind, uint32_t number, size_t offset,
		  uint32_t value);

/* Set bits of an aligned word. */
int share_set_bits(struct share_peer *peer, enum share_kind kind, uint32_t number, size_t offset,
		   uint64_t bits);

/* Its memory.  0 or -EFAULT (either side), -EPERM (forbidden, from now on), -EAGAIN (we were put
 * out).  The last word of what is written is seen last. */
int share_memory_write(struct share_peer *peer, uint64_t to, const struct iovec *from,
		       unsigned count, size_t bytes);
int share_memory_read(struct share_peer *peer, const struct iovec *to, unsigned count,
		      uint64_t from, size_t bytes);

/* False: not now. */
bool share_peer_atomics_lock(struct share_peer *peer);
/* Still ours?  Ask before the write that ends a read-modify-write. */
bool share_peer_atomics_held(struct share_peer *peer);
void share_peer_atomics_unlock(struct share_peer *peer);
#endif
