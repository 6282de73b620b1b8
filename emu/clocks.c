/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host's clocks; see clocks.h.
 */
#include <time.h>
#include "emu/clocks.h"

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t coarse_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The wall clock, which may be set, as it stands to the monotonic one at this moment. */
static uint64_t wall_offset_ns(void)
{
	struct timespec wall;

	clock_gettime(CLOCK_REALTIME, &wall);
	return (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec - now_ns();
}

/* It moves once a jiffy; one more for the tick that is just being handled. */
static void coarse_clock_begin(struct emu_dev *dev)
{
	struct timespec step;

	if (clock_getres(CLOCK_MONOTONIC_COARSE, &step) || step.tv_sec)
		return;
	dev->coarse_now_ns = coarse_now_ns;
	dev->coarse_lag_ns = 2 * (uint64_t)step.tv_nsec;
}

void clocks_begin(struct emu_dev *dev)
{
	dev->now_ns = now_ns;
	dev->wall_offset_ns = wall_offset_ns();
	coarse_clock_begin(dev);
}
