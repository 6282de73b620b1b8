/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys of another function: emu/engine/abroad.h's rules, and what moves through the addresses that
 * come out.
 *
 * a's QPs are on b's domain, as if it were imported.
 */
#include "tests/unit/abroad_world.h"

TestSuite(abroad, .init = abroad_start, .fini = stop, .timeout = 60);

static enum why verdict(struct key_use use)
{
	struct iovec out;

	return key_use_check(&a->w.dev.keys, &use, &out);
}

Test(abroad, bytes_go_both_ways)
{
	static const size_t sizes[] = { 1, 7, 8, 4096, 4097, 100000 };

	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct iovec there = far_memory(KEY_LOCAL_WRITE, 3, sizes[i]);
		struct iovec here = { a->w.a.data, sizes[i] }, back = { a->w.a.data + (1 << 20),
									sizes[i] };

		cr_assert_eq(copy(&there, &here, sizes[i]), MEM_SIDE_NONE);
		cr_assert_eq(memcmp(b->w.a.data + 3, a->w.a.data, sizes[i]), 0);
		cr_assert_eq(copy(&back, &there, sizes[i]), MEM_SIDE_NONE);
		cr_assert_eq(memcmp(a->w.a.data + (1 << 20), a->w.a.data, sizes[i]), 0);
	}
}

Test(abroad, both_sides_may_be_far)
{
	struct iovec from = far_memory(0, 0, 10000), to = far_memory(KEY_LOCAL_WRITE, 20000, 10000);

	memset(b->w.a.data, 0x5a, 10000);
	cr_assert_eq(copy(&to, &from, 10000), MEM_SIDE_NONE);
	cr_assert_eq(memcmp(b->w.a.data, b->w.a.data + 20000, 10000), 0);
}

Test(abroad, nothing_is_read_as_zeros_and_written_to_nowhere)
{
	struct iovec there = far_memory(KEY_LOCAL_WRITE, 0, 5000);
	struct iovec nowhere = { (void *)(uintptr_t)MEM_NOWHERE, 5000 };

	memset(b->w.a.data, 1, 5000);
	cr_assert_eq(copy(&nowhere, &there, 5000), MEM_SIDE_NONE);
	cr_assert_eq(b->w.a.data[4999], 1);
	cr_assert_eq(copy(&there, &nowhere, 5000), MEM_SIDE_NONE);
	cr_assert_eq(b->w.a.data[0], 0);
	cr_assert_eq(b->w.a.data[4999], 0);
}

/* A piece begins inside of what was asked for. */
Test(abroad, a_part_of_it_is_moved)
{
	struct iovec there = far_memory(0, 0, 8192), here = { a->w.a.data, 100 };

	b->w.a.data[5000] = 77;
	cr_assert_eq(mem_copy_spans(&here, 1, 0, &there, 1, 5000, 100), MEM_SIDE_NONE);
	cr_assert_eq(a->w.a.data[0], 77);
}

Test(abroad, a_copy_goes_on_after_the_far_piece)
{
	struct iovec there = far_memory(0, 0, 100);
	struct iovec from[2] = { there, { a->w.a.data, 100 } };
	struct iovec to[2] = { { a->w.a.data + 4096, 150 }, { (void *)16, 50 } };

	/* What faults behind it is caught as ever. */
	cr_assert_eq(mem_copy_spans(to, 2, 0, from, 2, 0, 200), MEM_SIDE_DST);
	cr_assert_eq(mem_copy_spans(to, 2, 0, from, 2, 0, 150), MEM_SIDE_NONE);
}

Test(abroad, the_side_that_faults_is_named)
{
	sides_check();
}

Test(abroad, atomics_are_those_of_the_owner)
{
	atomics_check();
}

Test(abroad, the_owner_s_rules_are_judged_by)
{
	struct key_use use = use_of(0, 0, 100);

	use.pdn++;
	cr_expect_eq(verdict(use), WHY_KEY_PD);
	use = use_of(0, BIG - 50, 100);
	cr_expect_eq(verdict(use), WHY_KEY_RANGE);
	use = use_of(KEY_MW_BIND, 0, 100);
	cr_expect_eq(verdict(use), WHY_KEY_RIGHTS);
	use = use_of(0, 0, 100);
	use.key ^= 1;
	cr_expect_eq(verdict(use), WHY_KEY_TAG);
	use.key = 0x00ff0000;
	cr_expect_eq(verdict(use), WHY_KEY_UNKNOWN);
}

/* What was found and then taken back is not touched. */
Test(abroad, a_key_that_is_gone_meanwhile_moves_nothing)
{
	struct iovec there = far_memory(KEY_LOCAL_WRITE, 0, 100), here = { a->w.a.data, 100 };
	uint64_t old;

	cr_assert_eq(mr_destroy(&b->w.dev, b->w.a.mr), 0);
	memset(b->w.a.data, 3, 100);
	cr_assert_eq(copy(&there, &here, 100), MEM_SIDE_DST);
	cr_assert_eq(copy(&here, &there, 100), MEM_SIDE_SRC);
	cr_assert_eq(mem_compare_swap((uintptr_t)there.iov_base, 3, 4, &old), -EFAULT);
	cr_assert_eq(b->w.a.data[0], 3);
}

Test(abroad, a_dead_owner_is_told_from_a_wrong_key)
{
	struct iovec there = far_memory(0, 0, 100), here = { a->w.a.data, 100 };

	atomic_store(&b->share->header->live, FUTEX_OWNER_DIED);
	cr_expect_eq(verdict(use_of(0, 0, 100)), WHY_KEY_OWNER_GONE);
	cr_expect_eq(copy(&here, &there, 100), MEM_SIDE_SRC);
}

/* Somebody else has its place, and its numbers. */
Test(abroad, a_domain_of_a_former_member_is_gone)
{
	proxy.ref.generation++;
	cr_expect_eq(verdict(use_of(0, 0, 100)), WHY_KEY_OWNER_GONE);
}

Test(abroad, an_owner_without_a_segment_is_told_apart)
{
	b->share->header->layout++;
	cr_expect_eq(verdict(use_of(0, 0, 100)), WHY_KEY_OWNER_CLOSED);
}
