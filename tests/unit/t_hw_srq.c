/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Entries of a shared receive queue: a list of pieces behind the index of the next entry.
 */
#include "tests/unit/hw_build.h"

#define NEXT 0xfedc

static struct build entry(void)
{
	struct build b = { .used = 0 };

	word(&b, 0xa5a50000 | NEXT);
	for (unsigned i = 0; i < 3; i++)
		word(&b, 0xa5a5a5a5);
	return b;
}

static enum hw_fault decode_entry(const struct build *b, struct hw_recv *out)
{
	uint16_t next = 0;
	enum hw_fault fault;

	memset(out, 0xa5, sizeof *out);
	fault = mlx5_srq_read(guarded(b->bytes, b->used), b->used, out, &next);
	cr_assert(next == NEXT);
	return fault;
}

Test(srq, next_is_in_the_first_16_bytes)
{
	struct build b = entry();

	cr_assert(mlx5_srq_next(guarded(b.bytes, 16)) == NEXT);
}

Test(srq, list_ends_at_its_mark_or_its_stride)
{
	struct build marked = entry(), full = entry();
	struct hw_recv r;

	piece(&marked, 100, 7, 0x1000);
	piece(&marked, 0, HW_LKEY_END, 0);
	piece(&marked, 0x80000001, 9, 0x3000);	/* stale, not looked at */
	cr_assert(decode_entry(&marked, &r) == HW_OK && r.sge_count == 1 && r.bytes == 100);
	check_piece(&r.sge[0], 100, 7, 0x1000);
	for (unsigned i = 0; i < 3; i++)
		piece(&full, 10 + i, i, 0x1000 + i);
	cr_assert(decode_entry(&full, &r) == HW_OK && r.sge_count == 3 && r.bytes == 33);
	check_piece(&r.sge[2], 12, 2, 0x1002);
}

/* libmlx5 copies them as they are, and nobody who posted no bytes wants two gigabytes. */
Test(srq, pieces_without_bytes_are_left_out)
{
	struct build b = entry(), only = entry();
	struct hw_recv r;

	piece(&b, 0, 7, 0x1000);
	piece(&b, 100, 8, 0x2000);
	piece(&b, 0, 0, 0);
	piece(&b, 200, 9, 0x3000);
	cr_assert(decode_entry(&b, &r) == HW_OK && r.sge_count == 2 && r.bytes == 300);
	check_piece(&r.sge[0], 100, 8, 0x2000);
	check_piece(&r.sge[1], 200, 9, 0x3000);
	piece(&only, 0, 7, 0x1000);
	cr_assert(decode_entry(&only, &r) == HW_OK && r.sge_count == 0 && r.bytes == 0);
}

Test(srq, has_no_inline_form)
{
	struct build b = entry();
	struct hw_recv r;

	piece(&b, 100, 7, 0x1000);
	piece(&b, 0x80000000, 7, 0x2000);
	cr_assert(decode_entry(&b, &r) == HW_FAULT_INLINE_OPCODE);
}

Test(srq, one_piece_more_than_a_list_can_have)
{
	struct build b = entry();
	uint8_t bytes[1024];
	struct hw_recv r;
	uint16_t next;

	while (b.used < HW_WQE_BYTES_MAX)
		piece(&b, 10, 7, 0x1000);
	cr_assert(decode_entry(&b, &r) == HW_OK && r.sge_count == HW_SGE_MAX);
	memcpy(bytes, b.bytes, b.used);
	memcpy(bytes + b.used, bytes + 16, 16);
	cr_assert(mlx5_srq_read(guarded(bytes, 1024), 1024, &r, &next) == HW_FAULT_DS_LONG);
}

Test(random, entries_never_reach_past_their_stride)
{
	unsigned good = 0;

	for (unsigned i = 0; i < 50000; i++) {
		size_t stride = 32 + random_word() % 62 * 16;
		struct hw_recv r;
		struct build b;
		uint16_t next;

		scramble(&b);
		if (mlx5_srq_read(guarded(b.bytes, stride), stride, &r, &next))
			continue;
		good++;
		cr_assert(r.sge_count <= stride / 16 - 1 && r.sge_count <= HW_SGE_MAX);
		for (unsigned k = 0; k < r.sge_count; k++)
			cr_assert(r.sge[k].bytes);
	}
	cr_assert(good);
}
