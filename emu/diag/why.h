/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reasons: why something was refused, NAKed, dropped or failed.
 *
 * The first function that decides something is wrong records the reason with
 * its values; callers pass the verdict up silently.  Records live in a ring of
 * the device and are found again by QP and WQE index.  With VERBENA_EXPLAIN=1
 * each is also printed on stderr as it is made.  Success never comes here.
 *
 * Threads: the caller holds the device lock.
 */
#ifndef EMU_DIAG_WHY_H
#define EMU_DIAG_WHY_H
#include <stdbool.h>
#include <stdint.h>

enum why {
	WHY_NONE,
#define WHY(id, what, look_at, rule) WHY_##id,
#include "emu/diag/why.def"
#undef WHY
	WHY_COUNT
};

/* Whose half of the story. */
enum why_side { WHY_SIDE_SEND, WHY_SIDE_RECV, WHY_SIDE_COMMAND, WHY_SIDE_DEVICE };

struct why_record {
	enum why why;
	enum why_side side;
	uint32_t qpn, peer_qpn;
	uint16_t wqe_index;
	uint8_t opcode;
	uint32_t psn;
	uint32_t key;
	uint64_t addr, bytes;		/* what was asked                   */
	uint64_t found, found_bytes;	/* what is there instead, per reason */
};

#define WHY_KEPT 1024			/* power of two */

struct why_ring {
	uint64_t made;			/* records ever; the newest is (made - 1) % WHY_KEPT */
	bool is_printing;
	struct why_record record[WHY_KEPT];
};

void why_note(struct why_ring *ring, const struct why_record *record);

/* The newest record of a WQE, or NULL. */
const struct why_record *why_find(const struct why_ring *ring, uint32_t qpn,
				  enum why_side side, uint16_t wqe_index);

const char *why_name(enum why why);		/* "WHY_KEY_UNKNOWN" */
const char *why_sentence(enum why why);
const char *why_look_at(enum why why);
const char *why_rule(enum why why);

/* One line, as printed with VERBENA_EXPLAIN=1; returns as snprintf does. */
int why_print(const struct why_record *record, char *out, unsigned bytes);
#endif
