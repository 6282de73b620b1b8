/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device's clock: cycles of each part, and what the two pages say at a virtual time.
 *
 * Method: conversion as mlx5dv_ts_to_ns() does it, typed here independently.
 */
#include <endian.h>
#include "emu/obj/clock.h"
#include "tests/unit/obj_world.h"

static uint64_t virtual_ns;

static uint64_t virtual_now(void)
{
	return virtual_ns;
}

/* Version 1 of the page, by offset (device-abi B.6). */
struct page {
	uint32_t sign, reserved;
	uint64_t nsec, cycles, frac;
	uint32_t mult, shift;
	uint64_t mask, overflow_period;
};

static uint64_t to_ns(const struct page *p, uint64_t stamp)
{
	uint64_t delta = (stamp - p->cycles) & p->mask;

	if (delta <= p->mask / 2)
		return p->nsec + ((delta * p->mult + p->frac) >> p->shift);
	delta = (p->cycles - stamp) & p->mask;
	return p->nsec - ((delta * p->mult - p->frac) >> p->shift);
}

/* One device, which is another part each time. */
static struct emu_dev *clock_dev(const char *profile)
{
	static struct emu_dev *dev;

	if (!dev)
		dev = world_dev();
	dev->profile = hw_profile_find(profile);
	dev->now_ns = virtual_now;
	dev->wall_offset_ns = UINT64_C(1700000000000000000);
	return dev;
}

Test(clock, cycles_are_those_of_the_part)
{
	static const struct { const char *profile; uint64_t ns, cycles; } rows[] = {
		{ "connectx-6dx", 1000, 1000 },
		{ "connectx-6dx", 123456789012345678, 123456789012345678 },
		{ "connectx-6", 64, 10 },
		{ "connectx-6", 6, 0 },
		{ "connectx-6", 7, 1 },
		{ "connectx-6", 1000000, 156250 },
		{ "connectx-5", 1000000, 78125 },
		{ "connectx-5", UINT64_C(1) << 62, (UINT64_C(1) << 62) / 64 * 5 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		virtual_ns = rows[i].ns;
		CHECK_INT(clock_cycles(clock_dev(rows[i].profile)), rows[i].cycles);
	}
	for (unsigned i = 0; i < hw_profile_count; i++)	/* the conversion has no remainder */
		CHECK_INT(hw_profiles[i].core_clock_khz % 15625, 0);
}

Test(clock, pages_say_the_time_of_their_refresh)
{
	static _Alignas(8) uint8_t counter[4096], info[4096];
	struct emu_dev *dev = clock_dev("connectx-6");
	struct clock_pages pages = { 0 };
	struct page *page = (struct page *)info;

	virtual_ns = 640000;
	clock_pages_add(dev, &pages, counter, info);
	CHECK_INT(be32toh(*(uint32_t *)counter), 0);
	CHECK_INT(be32toh(*(uint32_t *)(counter + 4)), 100000);
	CHECK_INT(page->cycles, 100000);
	CHECK_INT(page->nsec, dev->wall_offset_ns + 640000);
	CHECK_INT(page->sign, 2);
	virtual_ns += 64;
	CHECK_INT(page->cycles, 100000);
	clock_pages_refresh(dev, &pages);
	CHECK_INT(be32toh(*(uint32_t *)(counter + 4)), 100010);
	CHECK_INT(page->cycles, 100010);
	CHECK_INT(page->sign, 4);
	virtual_ns -= 64;
	clock_refresh(dev);
	CHECK_INT(be32toh(*(uint32_t *)(counter + 4)), 100010);	/* never back */
	clock_pages_remove(dev, &pages);
	virtual_ns += 6400;
	clock_refresh(dev);
	clock_pages_refresh(dev, &pages);
	CHECK_INT(be32toh(*(uint32_t *)(counter + 4)), 100010);
}

/* Nobody may look at the pages for hours; stamps must still find a page that converts them. */
Test(clock, a_stamp_renews_pages_that_have_become_old)
{
	static _Alignas(8) uint8_t counter[4096], info[4096];
	struct emu_dev *dev = clock_dev("connectx-7");
	struct clock_pages pages = { 0 };
	struct page *page = (struct page *)info;

	virtual_ns = 1000;
	clock_pages_add(dev, &pages, counter, info);
	for (unsigned i = 0; i < 100; i++) {
		virtual_ns += UINT64_C(100000000);
		CHECK_INT(clock_stamp(dev), virtual_ns);
		cr_assert_leq(virtual_ns - page->cycles, UINT64_C(1) << 32);
	}
	CHECK_INT(page->sign, 2 + 2 * 2);		/* twice in ten seconds */
	virtual_ns += UINT64_C(3600000000000);
	CHECK_INT(clock_stamp(dev), virtual_ns);
	CHECK_INT(page->cycles, virtual_ns);
}

Test(clock, any_page_of_the_last_minutes_converts_a_stamp)
{
	static const uint64_t ages_ns[] = {
		0, 1, 13, 1000, 1000000, 1000000000, UINT64_C(60000000000),
		UINT64_C(500000000000),
	};
	static _Alignas(8) uint8_t counter[4096], info[4096];
	static const char *const profiles[] = { "connectx-5", "connectx-6", "connectx-7" };
	struct page *page = (struct page *)info;

	for (unsigned i = 0; i < 3 * sizeof ages_ns / sizeof *ages_ns; i++) {
		struct emu_dev *dev = clock_dev(profiles[i % 3]);
		struct clock_pages pages = { 0 };
		uint64_t at = UINT64_C(123456789123456789), age = ages_ns[i / 3], stamp, ns;
		int64_t error;

		for (int is_older = 0; is_older < 2; is_older++) {
			virtual_ns = at;
			stamp = clock_cycles(dev);
			virtual_ns = is_older ? at - age : at + age;
			memset(counter, 0, sizeof counter);
			clock_pages_add(dev, &pages, counter, info);
			ns = to_ns(page, stamp);
			/* Down to the cycle it belongs to, and what mult rounds off. */
			error = (int64_t)(at + dev->wall_offset_ns - ns);
			cr_assert(error >= -(int64_t)(age >> 26) - 1 &&
				  error <= (int64_t)(age >> 26) + 14,
				  "%s, page %llu ns %s: %lld ns off", profiles[i % 3],
				  (unsigned long long)age, is_older ? "older" : "younger",
				  (long long)error);
			clock_pages_remove(dev, &pages);
		}
	}
}
