/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading a capture: pcapng, or pcap as it was before, in either byte order.
 *
 * The file is memory that is mapped; it is hostile, and may be cut or overwritten meanwhile.  No
 * byte outside of it is read, each length is checked where it is used, and a fault is an answer.
 *
 * Source: draft-ietf-opsawg-pcapng, draft-ietf-opsawg-pcap.
 */
#ifndef EMU_UPLINK_CAPTURE_H
#define EMU_UPLINK_CAPTURE_H
#include <stdbool.h>
#include <stdint.h>

enum capture_fault {
	CAPTURE_OK,
	CAPTURE_END,			/* no fault: there is no further frame */
	CAPTURE_EMPTY, CAPTURE_COMPRESSED, CAPTURE_FORMAT, CAPTURE_VERSION, CAPTURE_LINK,
	CAPTURE_CUT, CAPTURE_LENGTH, CAPTURE_INTERFACE, CAPTURE_MEMORY,
	CAPTURE_FAULT_COUNT
};

/* What the file does wrong: "is no capture". */
const char *capture_fault_text(enum capture_fault fault);

struct capture {
	const uint8_t *at;
	uint64_t bytes;
	uint64_t next;			/* where the next block begins, or the bad one is */
	bool is_ng, is_swapped;
	/* pcapng: of the section that @next is in */
	uint32_t interface_count;
	uint32_t first_snap_bytes;	/* 0: no limit */
};

/* Where a frame is in the file. */
struct capture_frame {
	uint64_t at;
	uint32_t bytes;
};

/* mem_guard_init() before.  CAPTURE_OK, or a fault. */
enum capture_fault capture_begin(struct capture *c, const void *at, uint64_t bytes);
enum capture_fault capture_next(struct capture *c, struct capture_frame *out);
/* All of it: CAPTURE_END, or the first fault, with @c->next where it is. */
enum capture_fault capture_check(struct capture *c, const void *at, uint64_t bytes);
/* 0, -EFAULT */
int capture_copy(const struct capture *c, const struct capture_frame *frame, void *out);
#endif
