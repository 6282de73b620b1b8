/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory keys: who may touch what, and which rule says no first.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include "emu/mem/mem.h"
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
		cr_assert_eq(check(k, PD, 0, START, 1),
			     k == KEY_NULL ? WHY_NONE : WHY_KEY_UNKNOWN, "0x%x", k);
}

/* Everything may be read from it and written to it, by this end only and in every domain. */
Test(key, the_null_key_is_nowhere)
{
	const struct key_use remote = { KEY_NULL, PD, 77, KEY_REMOTE_READ, 0, 8 };

	cr_assert_eq(check(KEY_NULL, PD + 1, KEY_LOCAL_WRITE, UINT64_MAX - 3, 1000), WHY_NONE);
	cr_assert_eq((uintptr_t)got.iov_base, MEM_NOWHERE);
	cr_assert_eq(got.iov_len, 1000);
	cr_assert_eq(key_use_check(&table, &remote, &got), WHY_KEY_UNKNOWN);
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

/* --- windows: a second key over a part of the first --- */

#define QPN		77
#define WINDOW_AT	0x40000000ull
#define WINDOW_BYTES	0x100ull
#define WINDOW_RIGHTS	(KEY_REMOTE_WRITE | KEY_REMOTE_READ)

static const struct key_entry unbound = { .kind = KEY_WINDOW, .pdn = PD };

static struct key_entry window_entry(void)
{
	return (struct key_entry){
		.kind = KEY_WINDOW, .tag = 9, .access = WINDOW_RIGHTS, .pdn = PD, .qpn = QPN,
		.parent = key, .start = WINDOW_AT, .bytes = WINDOW_BYTES, .memory = START + 0x80,
	};
}

static uint32_t window_open(const struct key_entry *as)
{
	uint32_t k;

	cr_assert_eq(key_create(&table, &unbound, &k), 0);
	return key_open(&table, KEY_INDEX(k), as);
}

static enum why use(uint32_t k, uint32_t qpn, uint32_t access, uint64_t addr, uint64_t bytes)
{
	const struct key_use u = { k, PD, qpn, access, addr, bytes };

	return key_use_check(&table, &u, &got);
}

Test(key, a_window_leads_into_its_region)
{
	struct key_entry e = window_entry();
	uint32_t k = window_open(&e);

	cr_assert_eq(k & 0xff, 9);
	cr_assert_eq(use(k, QPN, KEY_REMOTE_WRITE, WINDOW_AT + 0x10, 0x20), WHY_NONE);
	cr_assert_eq((uintptr_t)got.iov_base, MEMORY + 0x90);
	cr_assert_eq(got.iov_len, 0x20);
	cr_assert_eq(use(k, QPN, KEY_REMOTE_READ, WINDOW_AT, WINDOW_BYTES), WHY_NONE);
}

Test(key, a_window_starts_free)
{
	struct key_entry e = window_entry();
	uint32_t k;

	cr_assert_eq(key_create(&table, &unbound, &k), 0);
	cr_assert_eq(use(k, QPN, KEY_REMOTE_READ, 0, 0), WHY_WINDOW_FREE);
	k = key_open(&table, KEY_INDEX(k), &e);
	cr_assert_eq(use(k, QPN, KEY_REMOTE_READ, WINDOW_AT, 1), WHY_NONE);
	key_close(&table, KEY_INDEX(k));
	cr_assert_eq(use(k, QPN, KEY_REMOTE_READ, WINDOW_AT, 1), WHY_WINDOW_FREE);
	key_destroy(&table, k);
	cr_assert_eq(use(k, QPN, KEY_REMOTE_READ, WINDOW_AT, 1), WHY_KEY_UNKNOWN);
}

Test(key, the_first_broken_rule_of_a_window_is_told)
{
	struct key_entry e = window_entry();
	uint32_t k = window_open(&e);
	struct key_use u = { k ^ 1, PD + 1, QPN + 1, KEY_REMOTE_ATOMIC, WINDOW_AT - 1, 1 };

	cr_assert_eq(key_use_check(&table, &u, &got), WHY_KEY_TAG);
	u.key = k;
	cr_assert_eq(key_use_check(&table, &u, &got), WHY_KEY_PD);
	u.pdn = PD;
	cr_assert_eq(key_use_check(&table, &u, &got), WHY_WINDOW_QP);
	u.qpn = QPN;
	cr_assert_eq(key_use_check(&table, &u, &got), WHY_KEY_RIGHTS);
	u.access = KEY_REMOTE_WRITE;
	cr_assert_eq(key_use_check(&table, &u, &got), WHY_KEY_RANGE);
	u.addr = WINDOW_AT + WINDOW_BYTES - 1;
	u.bytes = 2;
	cr_assert_eq(key_use_check(&table, &u, &got), WHY_KEY_RANGE);
	u.bytes = 1;
	cr_assert_eq(key_use_check(&table, &u, &got), WHY_NONE);
}

Test(key, a_window_for_any_qp_serves_all)
{
	struct key_entry e = window_entry();
	uint32_t k;

	e.qpn = KEY_QPN_ANY;
	k = window_open(&e);
	cr_assert_eq(use(k, 5, KEY_REMOTE_READ, WINDOW_AT, 1), WHY_NONE);
	cr_assert_eq(use(k, 6, KEY_REMOTE_READ, WINDOW_AT, 1), WHY_NONE);
	cr_assert_eq(use(k, KEY_QPN_LOCAL, 0, WINDOW_AT, 1), WHY_WINDOW_LOCAL);
	cr_assert_eq(check(k, PD, 0, WINDOW_AT, 1), WHY_WINDOW_LOCAL);
}

Test(key, a_region_serves_every_qp)
{
	cr_assert_eq(use(key, 5, KEY_REMOTE_WRITE, START, 1), WHY_NONE);
	cr_assert_eq(use(key, KEY_QPN_ANY, KEY_REMOTE_WRITE, START, 1), WHY_NONE);
}

/* What was true of the region when the window was bound may not be true any more. */
Test(key, the_region_under_a_window_is_asked_too)
{
	struct key_entry bad[6], read_only = entry, other = entry;
	uint32_t k, window;

	for (int i = 0; i < 6; i++)
		bad[i] = window_entry();
	bad[0].parent += 0x100;				/* no such region */
	bad[1].parent ^= 1;				/* an old one */
	read_only.access = KEY_REMOTE_READ;
	cr_assert_eq(key_create(&table, &read_only, &bad[2].parent), 0);
	other.pdn = PD + 1;
	cr_assert_eq(key_create(&table, &other, &bad[3].parent), 0);
	bad[4].memory = START + BYTES - 0xff;		/* reaches out by one byte */
	window = window_open(&bad[5]);
	bad[5].parent = window;				/* no region at all */
	for (int i = 0; i < 6; i++) {
		k = window_open(&bad[i]);
		cr_assert_eq(use(k, QPN, KEY_REMOTE_WRITE, WINDOW_AT, WINDOW_BYTES),
			     WHY_WINDOW_REGION, "%d", i);
	}
	k = window_open(&bad[2]);			/* reading needs no right of the region's */
	cr_assert_eq(use(k, QPN, KEY_REMOTE_READ, WINDOW_AT, WINDOW_BYTES), WHY_NONE);
	k = window_open(&bad[4]);
	cr_assert_eq(use(k, QPN, KEY_REMOTE_WRITE, WINDOW_AT, WINDOW_BYTES - 1), WHY_NONE);
	key_destroy(&table, key);
	cr_assert_eq(use(k, QPN, KEY_REMOTE_READ, WINDOW_AT, 1), WHY_WINDOW_REGION);
}

Test(key, an_index_remembers_its_object)
{
	int object;

	cr_assert_null(key_owner(&table, KEY_INDEX(key)));
	cr_assert_null(key_owner(&table, KEY_INDEX(key) + 1));
	cr_assert_null(key_owner(&table, 0xffffff));
	cr_assert_null(key_owner(&table, UINT32_MAX));
	key_owner_set(&table, KEY_INDEX(key), &object);
	cr_assert_eq(key_owner(&table, KEY_INDEX(key)), &object);
	key_destroy(&table, key);
	cr_assert_null(key_owner(&table, KEY_INDEX(key)));
}

/* The tag that a bind chose counts as the last one of its index. */
Test(key, an_index_forgets_no_tag_of_a_window)
{
	struct key_entry e = window_entry();
	uint32_t k;

	for (unsigned i = 0; i < 300; i++) {
		e.tag = (uint8_t)(table.next_tag + 1);	/* as the next key would have */
		key_destroy(&table, window_open(&e));
		cr_assert_eq(key_create(&table, &entry, &k), 0);
		cr_assert_neq(k & 0xff, e.tag);
		key_destroy(&table, k);
	}
}

/* A look-up through copies, as a peer does it. */
static const struct key_entry *find_copy(const void *ctx, uint32_t index, struct key_entry *room)
{
	const struct key_table *t = ctx;
	const struct key_entry *found = numbers_find(&t->indices, index);

	if (!found)
		return NULL;
	memcpy(room, found, sizeof *room);
	return room;
}

Test(key, copies_of_entries_follow_the_same_rules)
{
	struct key_entry e = window_entry();
	struct key_use u = { window_open(&e), PD, QPN, KEY_REMOTE_WRITE, WINDOW_AT + 1, 2 };

	cr_assert_eq(key_find_check(find_copy, &table, &u, &got), WHY_NONE);
	cr_assert_eq((uintptr_t)got.iov_base, MEMORY + 0x81);
	key_destroy(&table, key);
	cr_assert_eq(key_find_check(find_copy, &table, &u, &got), WHY_WINDOW_REGION);
	u.key += 0x100;
	cr_assert_eq(key_find_check(find_copy, &table, &u, &got), WHY_KEY_UNKNOWN);
}
