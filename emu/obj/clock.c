/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The free-running clock; see clock.h.
 */
#include "emu/obj/clock.h"
#include <assert.h>
#include <endian.h>
#include "emu/obj/obj.h"

/* A program converts with delta * mult >> shift, delta modulo mask.  Real parts use these. */
#define INFO_SHIFT	23
#define INFO_MASK	((UINT64_C(1) << 41) - 1)
/* How old the page may be: well inside of half the mask at 1 GHz. */
#define INFO_AGE_MAX_NS	(UINT64_C(1) << 39)
#define REFRESH_CYCLES	(UINT64_C(1) << 32)	/* some seconds: a stamp this much younger renews */

struct clock_info {
	_Atomic uint32_t sign;		/* odd while it is being written */
	uint32_t reserved;
	uint64_t nsec, cycles, frac;
	uint32_t mult, shift;
	uint64_t mask, overflow_period;
};
static_assert(sizeof(struct clock_info) == 56, "struct mlx5_ib_clock_info, version 1");

/* All parts make a whole number of cycles in 64 ns: 64, 10 or 5. */
static uint32_t cycles_in_64ns(const struct emu_dev *dev)
{
	return dev->profile->core_clock_khz / (1000000 / 64);
}

static uint64_t cycles_at(const struct emu_dev *dev, uint64_t ns)
{
	return (uint64_t)((unsigned __int128)ns * cycles_in_64ns(dev) / 64) & CLOCK_STAMP_MASK;
}

uint64_t clock_cycles(const struct emu_dev *dev)
{
	return cycles_at(dev, dev->now_ns());
}

/* Where cycle number @cycles began: whole nanoseconds and what is left of one. */
static void info_fill(const struct emu_dev *dev, struct clock_info *info, uint64_t cycles)
{
	uint32_t per_64ns = cycles_in_64ns(dev);
	unsigned __int128 ns_times = (unsigned __int128)cycles * 64;
	uint32_t sign = atomic_load_explicit(&info->sign, memory_order_relaxed) & ~1u;

	atomic_store_explicit(&info->sign, sign + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	info->nsec = dev->wall_offset_ns + (uint64_t)(ns_times / per_64ns);
	info->frac = ((uint64_t)(ns_times % per_64ns) << INFO_SHIFT) / per_64ns;
	info->cycles = cycles;
	info->mult = ((UINT64_C(64) << INFO_SHIFT) + per_64ns / 2) / per_64ns;
	info->shift = INFO_SHIFT;
	info->mask = INFO_MASK;
	info->overflow_period = INFO_AGE_MAX_NS;
	atomic_store_explicit(&info->sign, sign + 2, memory_order_release);
}

/* Who finds somebody writing has nothing to add. */
static void info_write(const struct emu_dev *dev, struct clock_pages *pages, uint64_t cycles)
{
	if (atomic_flag_test_and_set_explicit(&pages->is_being_written, memory_order_acquire))
		return;
	info_fill(dev, pages->info, cycles);
	atomic_flag_clear_explicit(&pages->is_being_written, memory_order_release);
}

/* Readers load the halves one by one and notice when the upper one has moved. */
static void counter_advance(struct clock_pages *pages, uint64_t cycles)
{
	uint64_t raw = atomic_load_explicit(pages->counter, memory_order_relaxed);

	while (be64toh(raw) < cycles &&
	       !atomic_compare_exchange_weak(pages->counter, &raw, htobe64(cycles)))
		;
}

static void pages_write(const struct emu_dev *dev, struct clock_pages *pages, uint64_t cycles)
{
	counter_advance(pages, cycles);
	info_write(dev, pages, cycles);
}

void clock_pages_refresh(const struct emu_dev *dev, struct clock_pages *pages)
{
	if (__atomic_load_n(&pages->counter, __ATOMIC_ACQUIRE))
		pages_write(dev, pages, clock_cycles(dev));
}

static void all_refresh(struct emu_dev *dev, uint64_t cycles)
{
	dev->clock_refreshed = cycles;
	for (struct clock_pages *p = dev->clock_pages; p; p = p->next)
		pages_write(dev, p, cycles);
}

void clock_refresh(struct emu_dev *dev)
{
	if (dev->clock_pages)
		all_refresh(dev, clock_cycles(dev));
}

uint64_t clock_stamp(struct emu_dev *dev)
{
	uint64_t cycles = clock_cycles(dev);

	if (cycles - dev->clock_refreshed >= REFRESH_CYCLES)
		all_refresh(dev, cycles);
	return cycles;
}

void clock_pages_add(struct emu_dev *dev, struct clock_pages *pages, void *counter, void *info)
{
	pages->info = info;
	pages->next = dev->clock_pages;
	dev->clock_pages = pages;
	/* Other threads may look for the counter without the lock. */
	__atomic_store_n(&pages->counter, (_Atomic uint64_t *)counter, __ATOMIC_RELEASE);
	clock_refresh(dev);
}

void clock_pages_remove(struct emu_dev *dev, struct clock_pages *pages)
{
	struct clock_pages **at = &dev->clock_pages;

	while (*at && *at != pages)
		at = &(*at)->next;
	if (*at)
		*at = pages->next;
	pages->counter = NULL;
}
