/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers: unique, inside leased blocks, never a reserved one, and reused late.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include "emu/obj/numbers.h"

static int object;

struct leases { int next, step, left, calls; };

static int lease(void *ctx)
{
	struct leases *l = ctx;
	int block = l->next;

	l->calls++;
	if (!l->left)
		return -ENOMEM;
	l->left--;
	l->next += l->step;
	return block;
}

Test(numbers, an_empty_space_finds_nothing)
{
	struct number_space s;

	cr_assert_eq(numbers_init(&s, 1, NULL, NULL), 0);
	cr_assert_null(numbers_find(&s, 0));
	cr_assert_null(numbers_find(&s, 0xffffff));
	cr_assert_null(numbers_find(&s, 0x1000000));
	cr_assert_null(numbers_find(&s, UINT32_MAX));
	numbers_free(&s);
	numbers_free(&s);
}

Test(numbers, numbers_lie_in_their_blocks_and_go_up)
{
	struct leases l = { .next = 5, .step = 7, .left = 2 };
	struct number_space s;
	uint32_t n;

	cr_assert_eq(numbers_init(&s, 2, lease, &l), 0);
	cr_assert_eq(l.calls, 0);
	for (uint32_t i = 0; i < 2 * NUMBER_BLOCK; i++) {
		uint32_t block = i < NUMBER_BLOCK ? 5 : 12;

		cr_assert_eq(numbers_take(&s, &object + (i & 1), &n), 0);
		cr_assert_eq(n, block * NUMBER_BLOCK + i % NUMBER_BLOCK);
		cr_assert_eq(numbers_find(&s, n), &object + (i & 1));
	}
	cr_assert_eq(s.taken, 2 * NUMBER_BLOCK);
	cr_assert_eq(numbers_take(&s, &object, &n), -ENOMEM);
	numbers_give(&s, 5 * NUMBER_BLOCK + 3);
	cr_assert_null(numbers_find(&s, 5 * NUMBER_BLOCK + 3));
	cr_assert_eq(numbers_take(&s, &object, &n), 0);
	cr_assert_eq(n, 5 * NUMBER_BLOCK + 3);
	numbers_free(&s);
}

Test(numbers, reserved_ones_stay_reserved)
{
	struct number_space s;
	uint32_t n;

	cr_assert_eq(numbers_init(&s, 2, NULL, NULL), 0);
	for (int i = 0; i < 5000; i++) {
		cr_assert_eq(numbers_take(&s, &object, &n), 0);
		cr_assert_geq(n, 2);
	}
	numbers_free(&s);
}

Test(numbers, a_block_of_reserved_numbers_only_does_not_stop_us)
{
	struct number_space s;
	uint32_t n;

	cr_assert_eq(numbers_init(&s, NUMBER_BLOCK, NULL, NULL), 0);
	cr_assert_eq(numbers_take(&s, &object, &n), 0);
	cr_assert_eq(n, NUMBER_BLOCK);
	numbers_free(&s);
}

Test(numbers, a_freed_number_rests)
{
	struct number_space s;
	uint32_t first, n;

	cr_assert_eq(numbers_init(&s, 1, NULL, NULL), 0);
	cr_assert_eq(numbers_take(&s, &object, &first), 0);
	numbers_give(&s, first);
	for (uint32_t i = 0; i < NUMBER_BLOCK - 2; i++) {
		cr_assert_eq(numbers_take(&s, &object, &n), 0);
		cr_assert_neq(n, first);
		numbers_give(&s, n);
	}
	cr_assert_eq(numbers_take(&s, &object, &n), 0);
	cr_assert_eq(n, first);
	numbers_free(&s);
}

Test(numbers, a_freed_number_rests_also_when_nearly_all_are_used)
{
	struct number_space s;
	uint32_t n, freed;

	cr_assert_eq(numbers_init(&s, 1, NULL, NULL), 0);
	for (uint32_t i = 0; i < NUMBER_BLOCK - 1; i++)
		cr_assert_eq(numbers_take(&s, &object, &n), 0);
	freed = n;
	numbers_give(&s, freed);
	for (int i = 0; i < 200; i++) {
		cr_assert_eq(numbers_take(&s, &object, &n), 0);
		cr_assert_neq(n, freed);
	}
	numbers_free(&s);
}

/* Blocks in any order, and some numbers given back. */
Test(numbers, a_walk_sees_each_object_once)
{
	static char objects[3 * NUMBER_BLOCK];
	static bool is_taken[64 * NUMBER_BLOCK];
	struct leases l = { .next = 40, .step = -13, .left = 3 };
	struct number_space s;
	uint32_t n, count = 0, seen = 0;
	char *found;

	cr_assert_eq(numbers_init(&s, 1, lease, &l), 0);
	n = 0;
	cr_assert_null(numbers_next(&s, &n));
	for (; count < 2 * NUMBER_BLOCK + 100; count++) {
		cr_assert_eq(numbers_take(&s, objects + count, &n), 0);
		is_taken[n] = true;
	}
	for (n = 0; n < sizeof is_taken; n++)
		if (is_taken[n] && n % 7 == 0) {
			numbers_give(&s, n);
			is_taken[n] = false;
			count--;
		}
	for (uint32_t at = 0; (found = numbers_next(&s, &at)); seen++) {
		cr_assert_geq(found, objects);
		cr_assert_eq(*found, 0);
		*found = 1;
	}
	cr_assert_eq(seen, count);
	numbers_free(&s);
}

Test(numbers, a_broken_fabric_gives_nothing)
{
	static const int bad[] = { -1, NUMBER_BLOCKS, 1 << 30 };

	for (int i = 0; i < 3; i++) {
		struct leases l = { .next = bad[i], .left = 1 };
		struct number_space s;
		uint32_t n = 77;

		cr_assert_eq(numbers_init(&s, 1, lease, &l), 0);
		cr_assert_eq(numbers_take(&s, &object, &n), -ENOMEM);
		cr_assert_eq(n, 77);
		numbers_free(&s);
	}
}

Test(numbers, a_block_leased_twice_is_used_once)
{
	struct leases l = { .next = 4, .step = 0, .left = 2 };
	struct number_space s;
	uint32_t n;

	cr_assert_eq(numbers_init(&s, 1, lease, &l), 0);
	for (uint32_t i = 0; i < NUMBER_BLOCK; i++)
		cr_assert_eq(numbers_take(&s, &object, &n), 0);
	cr_assert_eq(numbers_take(&s, &object, &n), -ENOMEM);
	numbers_free(&s);
}

Test(numbers, a_million_are_distinct_and_come_back)
{
	enum { MANY = 1000000 };
	struct number_space s;
	uint8_t *seen = calloc(1u << NUMBER_BITS, 1);
	uint32_t n;

	cr_assert_eq(numbers_init(&s, 1, NULL, NULL), 0);
	for (int i = 0; i < MANY; i++) {
		cr_assert_eq(numbers_take(&s, &object, &n), 0);
		cr_assert_eq(seen[n]++, 0);
	}
	cr_assert_eq(s.taken, MANY);
	for (n = 0; n < 1u << NUMBER_BITS; n++)
		if (seen[n])
			numbers_give(&s, n);
	cr_assert_eq(s.taken, 0);
	cr_assert_eq(numbers_take(&s, &object, &n), 0);
	numbers_free(&s);
	free(seen);
}
