/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory keys: who may touch what, and which rule says no first.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include "emu/obj/key.h"

#define START	0x10000ull
#define BYTES	0x2000ull
#define MEMORY	0x7f0000010000ull
#define PD	5
#define RIGHTS	(KEY_LOCAL_WRITE | KEY_REMOTE_WRITE)

static struct key_table table;
static uint32_t key;
static struct iovec got;

static const struct key_entry entry = {
	.access = RIGHTS, .pdn = PD, .start = START, .bytes = BYTES, .memory = MEMORY,
};

static void start(void)
{
	cr_assert_eq(key_table_init(&table, NULL, NULL), 0);
	cr_assert_eq(key_create(&table, &entry, &key), 0);
}

static void stop(void)
{
	key_table_free(&table);
}

TestSuite(key, .init = start, .fini = stop);

static enum why check(uint32_t k, uint32_t pdn, uint32_t access, uint64_t addr, uint64_t bytes)
{
	return key_check(&table, k, pdn, access, addr, bytes, &got);
}

Test(key, ranges_inside_are_granted)
{
	static const struct { uint64_t addr, bytes; } row[] = {
		{ START, BYTES }, { START, 0 }, { START, 1 }, { START + BYTES - 1, 1 },
		{ START + BYTES, 0 }, { START + 100, 100 },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		cr_assert_eq(check(key, PD, RIGHTS, row[i].addr, row[i].bytes), WHY_NONE);
		cr_assert_eq((uintptr_t)got.iov_base, MEMORY + row[i].addr - START);
		cr_assert_eq(got.iov_len, row[i].bytes);
	}
}

Test(key, ranges_that_reach_out_are_refused)
{
	static const struct { uint64_t addr, bytes; } row[] = {
		{ START - 1, 1 }, { START - 1, 2 }, { START, BYTES + 1 }, { START + BYTES, 1 },
		{ START + BYTES + 1, 0 }, { START + 1, UINT64_MAX }, { START, UINT64_MAX },
		{ START + 8, -8ull }, { 0, START + 1 }, { UINT64_MAX, 1 }, { UINT64_MAX, 2 },
		{ START - 8, 16 },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		cr_assert_eq(check(key, PD, 0, row[i].addr, row[i].bytes), WHY_KEY_RANGE, "%zu", i);
}

/* Each row breaks one rule more than the next: the first rule speaks. */
Test(key, the_first_broken_rule_is_told)
{
	uint32_t unknown = key + 0x100, tag = key ^ 1;

	cr_assert_eq(check(unknown, 9, KEY_REMOTE_READ, 0, 1), WHY_KEY_UNKNOWN);
	cr_assert_eq(check(tag, 9, KEY_REMOTE_READ, 0, 1), WHY_KEY_TAG);
	cr_assert_eq(check(key, 9, KEY_REMOTE_READ, 0, 1), WHY_KEY_PD);
	cr_assert_eq(check(key, PD, KEY_REMOTE_READ, 0, 1), WHY_KEY_RIGHTS);
	cr_assert_eq(check(key, PD, KEY_REMOTE_WRITE, 0, 1), WHY_KEY_RANGE);
	cr_assert_eq(check(key, PD, KEY_REMOTE_WRITE, START, 1), WHY_NONE);
}

Test(key, a_refusal_writes_no_memory)
{
	got = (struct iovec){ (void *)1, 2 };
	cr_assert_eq(check(key, PD, 0, 0, 1), WHY_KEY_RANGE);
	cr_assert(got.iov_base == (void *)1 && got.iov_len == 2);
}

Test(key, every_right_is_asked_for_alone)
{
	static const uint32_t rights[] = {
		KEY_LOCAL_WRITE, KEY_REMOTE_WRITE, KEY_REMOTE_READ, KEY_REMOTE_ATOMIC, KEY_MW_BIND,
	};

	for (unsigned has = 0; has < 32; has++) {
		struct key_entry e = entry;
		uint32_t k;

		e.access = has;		/* the five rights are the five low bits */
		cr_assert_eq(key_create(&table, &e, &k), 0);
		for (int i = 0; i < 5; i++)
			cr_assert_eq(check(k, PD, rights[i], START, 1),
				     has & rights[i] ? WHY_NONE : WHY_KEY_RIGHTS);
		cr_assert_eq(check(k, PD, KEY_LOCAL_READ, START, 1), WHY_NONE);
	}
}

Test(key, a_destroyed_key_is_unknown)
{
	key_destroy(&table, key);
	cr_assert_eq(check(key, PD, 0, START, 1), WHY_KEY_UNKNOWN);
}

Test(key, reserved_keys_are_unknown)
{
	for (uint32_t k = 0; k < 0x200; k++)
		cr_assert_eq(check(k, PD, 0, START, 1), WHY_KEY_UNKNOWN, "0x%x", k);
}

Test(key, a_key_that_covers_all_memory_does)
{
	struct key_entry e = entry;
	uint32_t k;

	e.start = 0;
	e.bytes = UINT64_MAX;
	cr_assert_eq(key_create(&table, &e, &k), 0);
	cr_assert_eq(check(k, PD, 0, UINT64_MAX - 1, 1), WHY_NONE);
	cr_assert_eq(check(k, PD, 0, UINT64_MAX, 1), WHY_KEY_RANGE);
	cr_assert_eq(check(k, PD, 0, 1, UINT64_MAX), WHY_KEY_RANGE);
}

/* As many keys stay alive as make every index come back after a multiple of 256. */
Test(key, an_index_never_comes_back_with_its_last_tag)
{
	enum { INDICES = NUMBER_BLOCK * 4 };
	static uint32_t last[INDICES];
	uint32_t k;

	for (int i = 0; i < 253; i++)
		cr_assert_eq(key_create(&table, &entry, &k), 0);
	for (int i = 0; i < 20000; i++) {
		cr_assert_eq(key_create(&table, &entry, &k), 0);
		cr_assert_lt(k >> 8, INDICES);
		cr_assert_neq(last[k >> 8], k);
		last[k >> 8] = k;
		key_destroy(&table, k);
	}
}

Test(key, no_reserved_key_is_handed_out)
{
	uint32_t k;

	for (int i = 0; i < 5000; i++) {
		cr_assert_eq(key_create(&table, &entry, &k), 0);
		cr_assert_geq(k, 0x200);
		cr_assert_eq(check(k, PD, RIGHTS, START, BYTES), WHY_NONE);
		key_destroy(&table, k);
	}
}

static int no_lease(void *ctx)
{
	(void)ctx;
	return -ENOMEM;
}

Test(key, no_number_no_key)
{
	struct key_table empty;
	uint32_t k = 3;

	cr_assert_eq(key_table_init(&empty, no_lease, NULL), 0);
	cr_assert_eq(key_create(&empty, &entry, &k), -ENOMEM);
	cr_assert_eq(k, 3);
	key_table_free(&empty);
	key_table_free(&empty);
}
