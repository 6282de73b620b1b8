/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of queues and doorbell records.
 *
 * Method: allocators of parent domains that count, and pages of records that come and go.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "verbs/context.h"

#define PAGE		4096u
#define RECORDS		(PAGE / 64)	/* in a page */

/* --- records --- */

static struct vb_context context;

static unsigned pages(void)
{
	unsigned count = 0;

	for (void **at = (void **)context.record_pages; at; at = *at)	/* the link is first */
		count++;
	return count;
}

Test(records, are_zero_and_have_a_cache_line_each)
{
	uint32_t *a = vb_record_alloc(&context), *b = vb_record_alloc(&context);

	cr_assert(a && b);
	cr_assert_eq((uintptr_t)a % 64, 0);
	cr_assert_eq((uintptr_t)b % 64, 0);
	cr_assert_neq(a, b);
	a[0] = a[1] = 77;
	vb_record_free(&context, a);
	a = vb_record_alloc(&context);
	cr_assert_eq(a[0] | a[1], 0, "somebody else's indexes");
	vb_record_free(&context, a);
	vb_record_free(&context, b);
	vb_record_free(&context, NULL);
}

Test(records, pages_come_and_go)
{
	uint32_t *record[3 * RECORDS];

	for (unsigned i = 0; i < 3 * RECORDS; i++) {
		record[i] = vb_record_alloc(&context);
		cr_assert(record[i]);
		record[i][0] = i;
		cr_assert_eq(pages(), i / RECORDS + 1);
	}
	for (unsigned i = 0; i < 3 * RECORDS; i++)
		cr_assert_eq(record[i][0], i, "two queues share a record");
	/* The middle page goes first, then one with a single free record is used. */
	for (unsigned i = RECORDS; i < 2 * RECORDS; i++)
		vb_record_free(&context, record[i]);
	cr_assert_eq(pages(), 2);
	vb_record_free(&context, record[5]);
	cr_assert_eq(vb_record_alloc(&context), record[5]);
	cr_assert_eq(pages(), 2);
	for (unsigned i = 0; i < 3 * RECORDS; i++)
		if (i / RECORDS != 1)
			vb_record_free(&context, record[i]);
	cr_assert_eq(pages(), 0);
}

/* --- buffers --- */

static struct {
	unsigned allocs, frees;
	void *give;		/* what the program's allocator returns */
	void *context, *freed;
	size_t bytes, alignment;
	uint64_t type, freed_type;
} seen;

static void *domain_alloc(struct ibv_pd *pd, void *pd_context, size_t bytes, size_t alignment,
			  uint64_t resource_type)
{
	(void)pd;
	seen.allocs++;
	seen.context = pd_context;
	seen.bytes = bytes;
	seen.alignment = alignment;
	seen.type = resource_type;
	return seen.give;
}

static void domain_free(struct ibv_pd *pd, void *pd_context, void *at, uint64_t resource_type)
{
	(void)pd;
	cr_assert_eq(pd_context, seen.context);
	seen.frees++;
	seen.freed = at;
	seen.freed_type = resource_type;
}

static struct vb_pd domain = { .alloc = domain_alloc, .free = domain_free, .pd_context = &seen };

Test(buf, is_whole_zeroed_pages)
{
	struct vb_buf b;

	for (int i = 0; i < 3; i++) {
		cr_assert_eq(vb_buf_alloc(&b, &context, NULL, PAGE + 1, 7), 0);
		cr_assert_eq((uintptr_t)b.at % PAGE, 0);
		cr_assert_eq(b.bytes, 2 * PAGE);
		for (unsigned k = 0; k < b.bytes; k++)
			cr_assert_eq(((uint8_t *)b.at)[k], 0);
		memset(b.at, 0xff, b.bytes);
		vb_buf_free(&b);
		cr_assert_null(b.at);
		vb_buf_free(&b);	/* it is not there any more: nothing happens */
	}
}

Test(buf, comes_from_the_domain)
{
	uint8_t *memory = aligned_alloc(PAGE, 2 * PAGE);
	struct vb_buf b;

	memset(memory, 0xff, 2 * PAGE);
	seen.give = memory;
	cr_assert_eq(vb_buf_alloc(&b, &context, &domain.pd, PAGE + 1, 0x500000001), 0);
	cr_assert_eq(b.at, memory);
	cr_assert_eq(seen.context, &seen);
	cr_assert_eq(seen.bytes, 2 * PAGE);
	cr_assert_eq(seen.alignment, PAGE);
	cr_assert_eq(seen.type, 0x500000001);
	cr_assert_eq(memory[2 * PAGE - 1], 0, "the device would see what the program left there");
	vb_buf_free(&b);
	cr_assert_eq(seen.frees, 1);
	cr_assert_eq(seen.freed, memory);
	cr_assert_eq(seen.freed_type, 0x500000001);
	vb_buf_free(&b);
	cr_assert_eq(seen.frees, 1);
	free(memory);
}

Test(buf, the_domain_may_leave_it_to_the_library)
{
	struct vb_buf b;

	seen.give = IBV_ALLOCATOR_USE_DEFAULT;
	cr_assert_eq(vb_buf_alloc(&b, &context, &domain.pd, 100, 1), 0);
	cr_assert_eq(seen.allocs, 1);
	cr_assert_neq(b.at, IBV_ALLOCATOR_USE_DEFAULT);
	memset(b.at, 1, b.bytes);
	vb_buf_free(&b);
	cr_assert_eq(seen.frees, 0, "it was the library's");
}

Test(buf, the_domain_may_have_none)
{
	struct vb_buf b;

	seen.give = NULL;
	cr_assert_eq(vb_buf_alloc(&b, &context, &domain.pd, 100, 1), ENOMEM);
	cr_assert_eq(seen.allocs, 1);
	vb_buf_free(&b);
	cr_assert_eq(seen.frees, 0);
}

#ifndef __SANITIZE_ADDRESS__		/* which takes it for a mistake */
Test(buf, there_may_be_no_memory)
{
	struct vb_buf b;

	cr_assert_eq(vb_buf_alloc(&b, &context, NULL, SIZE_MAX / 2, 1), ENOMEM);
	vb_buf_free(&b);
}
#endif

/* --- huge pages --- */

#define TYPE_QP		1u
#define TYPE_CQ		5u
#define HUGE_BYTES	((size_t)2 << 20)

static bool machine_has_huge_pages(void)
{
	void *at = mmap(NULL, HUGE_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | 21 << MAP_HUGE_SHIFT, -1, 0);

	return at != MAP_FAILED && !munmap(at, HUGE_BYTES);
}

Test(huge, are_had_or_refused)
{
	int expected = machine_has_huge_pages() ? 0 : ENOMEM;
	struct vb_buf b;

	setenv("MLX_QP_ALLOC_TYPE", "HUGE", 1);
	cr_assert_eq(vb_buf_alloc(&b, &context, NULL, PAGE, TYPE_QP), expected);
	cr_expect_eq(b.is_huge, !expected);
	vb_buf_free(&b);
	cr_assert_eq(vb_buf_alloc(&b, &context, NULL, PAGE, TYPE_CQ), 0);
	cr_expect_not(b.is_huge, "the variable is for QPs");
	vb_buf_free(&b);
}

Test(huge, are_preferred)
{
	struct vb_buf b;

	setenv("MLX_CQ_ALLOC_TYPE", "PREFER_HUGE", 1);
	cr_assert_eq(vb_buf_alloc(&b, &context, NULL, PAGE, TYPE_CQ), 0);
	cr_expect_eq(b.is_huge, machine_has_huge_pages());
	memset(b.at, 1, b.bytes);
	vb_buf_free(&b);
}
