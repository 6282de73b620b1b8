/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writing a capture: frames to a pcapng file that several processes may add to at once.
 *
 * Each frame is one block and each block one write at the end of the file, so that blocks of two
 * processes never mix (on file systems that keep O_APPEND's promise; NFS does not).  Times are
 * those of the wall clock, in nanoseconds.  Nothing is removed from a file that is there: frames
 * are added if it is a recording of this kind, and it is refused if it is anything else.
 *
 * Programs close descriptors that are not theirs, and open files under their numbers; so before
 * each write the file is known again, or opened anew.
 *
 * Threads: the caller serialises, for one struct record.
 */
#ifndef EMU_UPLINK_RECORD_H
#define EMU_UPLINK_RECORD_H
#include <stdint.h>
#include "emu/uplink/uplink.h"

struct record;

/* 0, or -errno and *said. */
int record_open(const char *path, struct record **out, struct uplink_said *said);
/* No allocation.  0, or -errno: that is said once on stderr, and from then on nothing is recorded.
 * Leaves errno alone; no cancellation point. */
int record_frame(struct record *r, const void *frame, uint32_t bytes);
/* In a forked child it closes the descriptor; the memory stays, and nothing is recorded. */
void record_close(struct record *r);
#endif
