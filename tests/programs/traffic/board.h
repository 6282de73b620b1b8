/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The board: a file that all processes of a mesh and the test that drives them have mapped.
 *
 * Each process writes its own row only, and may be killed while it does: entries have a
 * sequence that is odd meanwhile.  harness/mesh.py reads the head and the rows by the offsets
 * that are asserted here.
 */
#ifndef PROGRAMS_TRAFFIC_BOARD_H
#define PROGRAMS_TRAFFIC_BOARD_H
#include <assert.h>
#include <stdatomic.h>
#include "link.h"

struct board_entry {
	_Atomic uint32_t sequence;
	uint32_t reserved;
	struct link_info info;
};

enum row_state { ROW_ABSENT, ROW_RUNNING, ROW_QUIET, ROW_LEAVING };

struct board_row {
	_Atomic uint32_t state;
	_Atomic uint32_t incarnation;	/* of the process that writes here */
	_Atomic uint64_t beats;		/* turns of its main loop */
	_Atomic uint64_t done[LINKS_MAX];	/* verified operations with each peer */
	_Atomic uint32_t is_up[LINKS_MAX];	/* incarnation of the peer that it talks to, or 0 */
	struct board_entry entry[LINKS_MAX];
};

struct board {
	_Atomic uint32_t must_stop;	/* the only word that the test writes */
	uint32_t reserved[15];
	struct board_row row[LINKS_MAX];
};

static_assert(offsetof(struct board, row) == 64, "as mesh.py has it");
static_assert(offsetof(struct board_row, done) == 16, "as mesh.py has it");
static_assert(offsetof(struct board_row, is_up) == 16 + 8 * LINKS_MAX, "as mesh.py has it");
static_assert(sizeof(struct board_row) == 4880, "as mesh.py has it");
#endif
