/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The free-running clock of the device: what completions are stamped with, and the pages in
 * which programs read it.
 *
 * Cycles are those of the part (hw_profile.core_clock_khz) since the host's monotonic clock
 * began, so that functions of one host agree.  A real page counts by itself; ours says the time
 * of its last refresh, and whoever stands between a program and the page refreshes it first.
 * What is left are programs that read the mapping themselves: for them it is renewed with every
 * command, and with stamps that would be much younger than the page.
 *
 * Source: device-abi B.5 (counter), B.6 (clock info), C.12.
 */
#ifndef EMU_OBJ_CLOCK_H
#define EMU_OBJ_CLOCK_H
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct emu_dev;
struct clock_info;

/* The pages of one open file, and of the device the list of all of them. */
struct clock_pages {
	_Atomic uint64_t *counter;	/* cycles, big-endian */
	struct clock_info *info;	/* how to convert cycles to wall time */
	atomic_flag is_being_written;	/* info */
	struct clock_pages *next;
};

/* Every stamp fits into this. */
#define CLOCK_STAMP_MASK	UINT64_C(0x7fffffffffffffff)

uint64_t clock_cycles(const struct emu_dev *dev);	/* now */
/* Lock held.  Now, for a completion that is being written. */
uint64_t clock_stamp(struct emu_dev *dev);

/* Lock held.  @counter and @info stay mapped until removed; both are refreshed at once. */
void clock_pages_add(struct emu_dev *dev, struct clock_pages *pages, void *counter, void *info);
void clock_pages_remove(struct emu_dev *dev, struct clock_pages *pages);
/* Lock held.  All pages of the device. */
void clock_refresh(struct emu_dev *dev);

/* No lock held; any thread.  The pages of one file.  The counter never goes back. */
void clock_pages_refresh(const struct emu_dev *dev, struct clock_pages *pages);
#endif
