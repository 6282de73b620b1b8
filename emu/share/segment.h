/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Layout of a function's shared segment; private to emu/share.
 *
 * A header; for each kind a directory from chunk (64 numbers) to the place of its entries in
 * units of 4 KiB, 0 for none; what lies on the desks; then the chunks, in the order in which they
 * were needed.  The file is sparse; a chunk and its directory page are reserved before they are
 * used, and so are a desk's bytes.
 *
 * It is mapped as a whole by its owner and by every peer, and counts in their address space
 * limits; with mlockall() it is even filled.  So it is no larger than many QPs and keys need;
 * a function with more of them serves the rest by packets.
 */
#ifndef EMU_SHARE_SEGMENT_H
#define EMU_SHARE_SEGMENT_H
#include <assert.h>
#include <stdatomic.h>
#include "emu/fabric/fabric.h"
#include "emu/share/errand.h"
#include "emu/share/share.h"

#define SHARE_MAGIC		0x7365726168736276ull
#define SHARE_LAYOUT		3u
#define SHARE_BYTES		(32ull << 20)
#define SHARE_PAGE		4096u
#define CHUNK_BITS		6
#define CHUNK_NUMBERS		(1u << CHUNK_BITS)
#define CHUNKS			(1u << (24 - CHUNK_BITS))

/*
 * Of each member slot: generation [63:32] and a count [31:0], odd while that member looks at
 * something or moves bytes.  A member that died in the middle is known by its generation, also
 * after another one has its slot.
 */
struct share_busy {
	_Alignas(64) _Atomic uint64_t word;
};

static inline uint64_t busy_next(uint64_t word)
{
	return (word & ~(uint64_t)UINT32_MAX) | (uint32_t)(word + 1);
}

/* The lock of the atomics: generation of the holder [63:40], turn [39:16], its slot + 1 or 0 for
 * nobody [15:0].  The turn tells who lost it that it did. */
#define ATOMICS_SLOT(word)		((unsigned)((word) & 0xffff) - 1)
#define ATOMICS_GENERATION(word)	((uint32_t)((word) >> 40))
#define ATOMICS_FREE(word)		((word) & 0xffffff0000)

/* A desk (errand.h).  Its turn tells the errands apart that lay there one after the other. */
#define SHARE_DESKS		4u
#define DESK(turn, state)	((uint32_t)(turn) << 2 | (state))
enum desk_state { DESK_FREE, DESK_ASKED, DESK_TAKEN, DESK_DONE };

struct share_desk {
	_Alignas(64) _Atomic uint32_t state;
	uint32_t slot, generation;	/* who is asked */
	int32_t rc;
	uint64_t value;
	_Alignas(64) uint8_t request[SHARE_ASK_BYTES];
};

struct share_header {
	_Atomic uint64_t magic;
	uint32_t layout, entry_bytes[SHARE_KIND_COUNT];
	uint32_t is_closed;			/* nobody shall move the owner's memory */
	_Alignas(64) _Atomic uint32_t live;	/* a robust futex; live.c */
	_Alignas(64) _Atomic uint64_t atomics;
	_Alignas(64) _Atomic uint32_t has_peers;	/* somebody has mapped the segment */
	struct share_busy busy[FABRIC_MEMBERS_MAX];
	_Alignas(64) _Atomic uint64_t asked[FABRIC_MEMBERS_MAX / 64];	/* slots of askers */
	struct share_desk desk[SHARE_DESKS];
	_Alignas(SHARE_PAGE) _Atomic uint32_t directory[SHARE_KIND_COUNT][CHUNKS];
	_Alignas(SHARE_PAGE) uint8_t desk_bytes[SHARE_DESKS][SHARE_ERRAND_BYTES];
};

/* What was stored before it is visible before anything behind it is loaded.  Not an
 * atomic_thread_fence(), which the thread sanitizer does not know. */
static inline void share_barrier(void)
{
	__sync_synchronize();
}

static_assert(offsetof(struct share_header, directory) % SHARE_PAGE == 0, "reserved by the page");
static_assert(SHARE_BYTES / SHARE_PAGE <= UINT16_MAX, "struct share keeps places in 16 bits");
#endif
