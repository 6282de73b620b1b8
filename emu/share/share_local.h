/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of emu/share have in common.
 */
#ifndef EMU_SHARE_SHARE_LOCAL_H
#define EMU_SHARE_SHARE_LOCAL_H
#include <linux/futex.h>
#include "emu/share/segment.h"

struct share_peer {
	struct share *share;		/* ours */
	unsigned slot;
	uint32_t generation;		/* the rest is about this member; 0: nobody */
	pid_t pid;
	bool is_refused;		/* no segment, or dead */
	bool is_forbidden;		/* we may look into its segment, but not at its memory */
	struct share_header *header;
	unsigned depth;			/* how often we are in */
	uint64_t idle;			/* our busy word there when we are not in; even */
	uint64_t atomics_mine;
};

/* The robust list of the thread that vouches, and what that thread had before. */
struct share_live {
	struct robust_list_head head, *before;
	struct robust_list node;
	size_t before_bytes;
	_Atomic bool has_begun;
};

/* What we know of a desk of ours. */
struct desk {
	uint32_t turn;
	bool has_bytes;			/* they are backed with memory */
	bool is_lost;			/* to the member that took the errand and did not end it: */
	unsigned slot;
	uint32_t generation;
};

/* What is read again is kept here: anybody of this user can write to the segment. */
struct share {
	struct fabric *fabric;
	unsigned self;
	uint32_t generation;
	struct share_header *header;
	uint32_t entry_bytes[SHARE_KIND_COUNT];
	uint32_t next_page;
	uint16_t place[SHARE_KIND_COUNT][CHUNKS];	/* as the directory; 0: no chunk yet */
	uint64_t patience_ns;		/* with peers that live */
	uint64_t atomics_mine;
	bool is_closed;
	struct desk desk[SHARE_DESKS];
	struct share_live live;
	struct share_peer peer[FABRIC_MEMBERS_MAX];
};

void share_path(const struct share *s, unsigned slot, uint32_t generation, char *out,
		size_t bytes);
void share_peer_close(struct share_peer *peer);
/* Back the pages from @offset on with memory, so that no later store dies of a full file system.
 * -ENOSPC */
int share_reserve(struct share *s, uint64_t offset, uint64_t bytes);
/* Set bits of an aligned word.  0 or -EFAULT */
int share_bits_set(uint64_t at, uint64_t bits);
/* Keep @at out of forked children and core files. */
void share_keep_private(void *at);

/* atomics.c: one attempt.  @seen_out: the word as it was found; @mine_out: as it is now. */
bool atomics_try(uint64_t at, const struct share *self, uint64_t *seen_out, uint64_t *mine_out);

/* patience.c: waiting for another member of the fabric */
struct patience {
	uint64_t since_ns;
	unsigned turns;
};

/* Let others run.  False: @slot is not @generation's any more, dead, stopped or without end. */
bool patience_has_more(struct patience *p, const struct share *s, unsigned slot,
		       uint32_t generation);
#endif
