/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UMR: what a work request does to a memory key, in the forms that libmlx5 writes for windows,
 * invalidation and lists; and masked atomics.
 */
#include "tests/unit/hw_build.h"

/* Masks of libmlx5's forms, typed from the specification. */
#define MASK_FREE	(UINT64_C(1) << 29)
#define MASK_TAG	(UINT64_C(1) << 13)
#define MASK_QPN	(UINT64_C(1) << 14)
#define MASK_BIND	(MASK_FREE | MASK_TAG | 1 | 1 << 6 | 1 << 18 | 1 << 19 | 1 << 20 | 1 << 21)

/* What libmlx5 does not write is what the ring held before. */
#define STALE 0xa5a5a5a5

static void context(struct build *b, uint32_t first, uint32_t qpn_tag)
{
	word(b, first);
	word(b, qpn_tag);
	for (unsigned i = 0; i < 2; i++)
		word(b, STALE);
	long_word(b, 0x00007f1234567000);
	long_word(b, 0x40000001);
	for (unsigned i = 0; i < 8; i++)
		word(b, STALE);
}

static void klm(struct build *b, uint32_t bytes, uint32_t key, uint64_t addr)
{
	piece(b, bytes, key, addr);
}

static void padding(struct build *b)
{
	while ((b->used - 16 - 48) % 64)
		word(b, 0);
}

static struct build bind(uint8_t flags, uint64_t mask, uint32_t qpn_tag)
{
	struct build b = control(0x25, 0x08);

	umr_control(&b, flags, 4, mask);
	context(&b, 0x00a570a5, qpn_tag);	/* read, write, atomic from afar */
	klm(&b, 0x40000001, 0x1234, 0x00007f1234567000);
	padding(&b);
	return b;
}

static void check_bind(const struct hw_work *w)
{
	check_plain(w, HW_OP_UMR, 12);
	cr_assert(w->umr.key == IMM && w->imm == 0 && !w->umr.frees && w->umr.tag == 0x42);
	cr_assert(w->umr.access == (UMR_GIVES_REMOTE_READ | UMR_GIVES_REMOTE_WRITE |
				    UMR_GIVES_ATOMIC));
	cr_assert(w->umr.start == 0x00007f1234567000 && w->umr.bytes == 0x40000001);
	cr_assert(w->umr.translation_units == 4 && w->sge_count == 1 && w->bytes == 0x40000001);
	check_piece(&w->sge[0], 0x40000001, 0x1234, 0x00007f1234567000);
}

Test(umr, binds_a_window_of_type_1)
{
	struct build b = bind(0x90, MASK_BIND, 0xffffff42);
	struct hw_work w;

	cr_assert(decode(&b, HW_RC, &w) == HW_OK);
	check_bind(&w);
	cr_assert(w.umr.mask == MASK_BIND && !w.umr.needs_free && !w.umr.needs_qpn);
	cr_assert(w.umr.qpn == 0, "not named by the mask");
}

Test(umr, binds_a_window_of_type_2)
{
	struct build b = bind(0xb0, MASK_BIND | MASK_QPN, 0xabcdef42);
	struct hw_work w;

	cr_assert(decode(&b, HW_UC, &w) == HW_OK);
	check_bind(&w);
	cr_assert(w.umr.needs_free && !w.umr.needs_qpn && w.umr.qpn == 0xabcdef);
}

Test(umr, unbinds_and_leaves_everything_stale_alone)
{
	struct build b = control(0x25, 0);
	struct hw_work w;

	umr_control(&b, 0x90, 0, MASK_FREE | MASK_TAG);
	context(&b, 0x40a5ffa5, 0xffffff43);
	cr_assert(decode(&b, HW_RC, &w) == HW_OK);
	check_plain(&w, HW_OP_UMR, 8);
	cr_assert(w.umr.frees && w.umr.tag == 0x43 && !w.umr.needs_free && !w.umr.needs_qpn);
	cr_assert(!w.umr.access && !w.umr.start && !w.umr.bytes && !w.umr.qpn);
	cr_assert(!w.umr.translation_units && !w.sge_count && !w.bytes);
}

Test(umr, invalidates)
{
	struct build b = control(0x25, 0);
	struct hw_work w;

	umr_control(&b, 0x98, 0, MASK_FREE | MASK_TAG | MASK_QPN);
	context(&b, 0x40a5a5a5, 0xffffff00);
	cr_assert(decode(&b, HW_RC, &w) == HW_OK);
	cr_assert(w.umr.key == IMM && w.umr.frees && w.umr.needs_qpn && !w.umr.needs_free);
	cr_assert(w.umr.qpn == 0xffffff && w.umr.tag == 0);
}

/* Each right is one bit of the mask and one of the access byte; only both together give it. */
Test(umr, rights_are_what_mask_and_access_agree_on)
{
	static const struct { unsigned mask_bit; uint8_t access; uint32_t gives; } rights[] = {
		{ 17, 0x04, 0x80000000 }, { 18, 0x08, 1 }, { 19, 0x10, 4 }, { 20, 0x20, 2 },
		{ 21, 0x40, 8 },
	};

	for (unsigned i = 0; i < sizeof rights / sizeof *rights; i++) {
		for (unsigned access = 0; access < 256; access++) {
			struct build b = control(0x25, 0);
			struct hw_work w;

			umr_control(&b, 0x80, 0, UINT64_C(1) << rights[i].mask_bit);
			context(&b, access << 8, 0);
			cr_assert(decode(&b, HW_RC, &w) == HW_OK);
			cr_assert(w.umr.access ==
				  (access & rights[i].access ? rights[i].gives : 0));
		}
	}
}

Test(umr, mask_keeps_bits_that_no_field_is_for)
{
	struct build b = control(0x25, 0);
	struct hw_work w;

	umr_control(&b, 0x80, 0, UINT64_C(0xffffffffffffffff));
	context(&b, 0, 0x12345678);
	cr_assert(decode(&b, HW_RC, &w) == HW_OK);
	cr_assert(w.umr.mask == UINT64_C(0xffffffffffffffff) && w.umr.qpn == 0x123456);
}

Test(umr, list_of_any_length_ends_at_its_padding)
{
	for (unsigned count = 1; count <= 55; count++) {
		struct build b = control(0x25, 0);
		struct hw_work w;

		umr_control(&b, 0x80, count <= 52 ? (count + 3) / 4 * 4 : 55, MASK_FREE | 1);
		context(&b, 0, 0);
		for (unsigned i = 0; i < count; i++)
			klm(&b, 100, 0x1000 + i, i);
		while (count <= 52 ? (b.used - 128) % 64 : b.used < HW_WQE_BYTES_MAX)
			word(&b, 0);
		cr_assert(decode(&b, HW_DCI, &w) == HW_OK, "%u", count);
		cr_assert(w.sge_count == count && w.bytes == 100 * count);
		check_piece(&w.sge[count - 1], 100, 0x1000 + count - 1, count - 1);
	}
}

Test(umr, pieces_of_a_list_have_32_bits_and_0_is_2_gigabytes)
{
	struct build b = control(0x25, 0);
	struct hw_work w;

	umr_control(&b, 0x80, 4, 1);
	context(&b, 0, 0);
	klm(&b, 0xffffffff, 0x1000, 1);
	klm(&b, 0, 0x2000, 2);
	klm(&b, 5, 0, 3);	/* key 0 is not there, but that is for others to say */
	klm(&b, 0, 0, 4);
	cr_assert(decode(&b, HW_RC, &w) == HW_OK);
	cr_assert(w.sge_count == 3 && w.bytes == UINT64_C(0xffffffff) + 0x80000000 + 5);
	check_piece(&w.sge[0], 0xffffffff, 0x1000, 1);
	check_piece(&w.sge[1], 0x80000000, 0x2000, 2);
	check_piece(&w.sge[2], 5, 0, 3);
}

Test(umr, units_behind_the_list_are_not_looked_at)
{
	struct build b = control(0x25, 0);
	struct hw_work w;

	umr_control(&b, 0x80, 1, 1);
	context(&b, 0, 0);
	klm(&b, 100, 0x1000, 1);
	klm(&b, STALE, STALE, 2);
	cr_assert(decode(&b, HW_RC, &w) == HW_OK && w.sge_count == 1 && w.bytes == 100);
}

Test(fault, umr_ends_early)
{
	for (unsigned ds = 1; ds <= 12; ds++) {
		struct build b = bind(0x90, MASK_BIND, 0xffffff42);
		struct hw_work w;
		enum hw_fault fault, want = ds < 8 ? HW_FAULT_DS_SHORT :
			ds < 12 ? HW_FAULT_UMR_LENGTH : HW_OK;

		set_ds(&b, ds);
		fault = mlx5_work_read(guarded(b.bytes, ds * 16), HW_WQE_DS_MAX, HW_RC, &w);
		cr_assert(fault == want, "ds %u: %s", ds, hw_fault_name(fault));
	}
}

Test(fault, umr_announces_more_than_any_wqe_holds)
{
	struct build b = bind(0x90, MASK_BIND, 0xffffff42);

	b.bytes[20] = b.bytes[21] = 0xff;
	check_fault(&b, HW_RC, HW_FAULT_UMR_LENGTH);
}

Test(fault, umr_by_pointer)
{
	struct build b = bind(0x10, MASK_BIND, 0xffffff42), none = control(0x25, 0);
	struct hw_work w;

	check_fault(&b, HW_RC, HW_FAULT_UMR_POINTER);
	umr_control(&none, 0x00, 0, 1 << 13);	/* no translation, so none by pointer */
	context(&none, 0, 0);
	cr_assert(decode(&none, HW_RC, &w) == HW_OK);
}

Test(fault, umr_of_a_part_or_with_a_signature)
{
	struct build part = bind(0x90, MASK_BIND, 0), signature = bind(0x80, MASK_BIND, 0);

	part.bytes[22] = 0x01;
	check_fault(&part, HW_RC, HW_FAULT_UMR_OFFSET);
	signature.bytes[23] = 0x04;
	check_fault(&signature, HW_RC, HW_FAULT_UMR_OFFSET);
}

Test(fault, umr_with_strides)
{
	struct build b = control(0x25, 0);

	umr_control(&b, 0x80, 4, 1);
	context(&b, 0, 0);
	word(&b, 200);
	word(&b, 0x400);
	word(&b, 3);
	word(&b, 2);
	klm(&b, 100 << 16 | 50, 0x1000, 1);
	padding(&b);
	check_fault(&b, HW_RC, HW_FAULT_UMR_INTERLEAVED);
}

/* --- masked atomics --- */

static struct build masked(uint8_t opcode, uint8_t opmod)
{
	struct build b = control(opcode, 0);

	b.bytes[0] = opmod;
	remote(&b);
	return b;
}

Test(masked, compare_and_swap_of_8_bytes)
{
	struct build b = masked(0x14, 0x09);
	struct hw_work w;

	operands(&b);
	long_word(&b, 0x2122232425262728);
	long_word(&b, 0x3132333435363738);
	piece(&b, 8, 7, 0x2000);
	cr_assert(decode(&b, HW_RC, &w) == HW_OK);
	check_plain(&w, HW_OP_MASKED_COMPARE_SWAP, 5);
	check_remote(&w);
	cr_assert(w.swap_add == 0x0102030405060708 && w.compare == 0x1112131415161718);
	cr_assert(w.swap_mask == 0x2122232425262728 && w.compare_mask == 0x3132333435363738);
	cr_assert(w.atomic_bytes == 8 && w.bytes == 8);
	check_piece(&w.sge[0], 8, 7, 0x2000);
}

Test(masked, compare_and_swap_of_4_bytes)
{
	struct build b = masked(0x14, 0x08);
	struct hw_work w;

	operands(&b);
	piece(&b, 4, 7, 0x2000);
	cr_assert(decode(&b, HW_RC, &w) == HW_OK);
	check_plain(&w, HW_OP_MASKED_COMPARE_SWAP, 4);
	cr_assert(w.swap_add == 0x01020304 && w.compare == 0x05060708);
	cr_assert(w.swap_mask == 0x11121314 && w.compare_mask == 0x15161718);
	cr_assert(w.atomic_bytes == 4 && w.bytes == 4);
}

Test(masked, fetch_and_add_has_boundaries)
{
	struct build large = masked(0x15, 0x09), small = masked(0x15, 0x08);
	struct hw_work w;

	operands(&large);
	piece(&large, 8, 7, 0x2000);
	cr_assert(decode(&large, HW_RC, &w) == HW_OK);
	check_plain(&w, HW_OP_MASKED_FETCH_ADD, 4);
	cr_assert(w.swap_add == 0x0102030405060708 && w.swap_mask == 0x1112131415161718);
	cr_assert(!w.compare && !w.compare_mask && w.atomic_bytes == 8);
	operands(&small);
	piece(&small, 4, 7, 0x2000);
	cr_assert(decode(&small, HW_RC, &w) == HW_OK);
	cr_assert(w.swap_add == 0x01020304 && w.swap_mask == 0x05060708);
	cr_assert(!w.compare && !w.compare_mask && w.atomic_bytes == 4 && w.bytes == 4);
}

Test(fault, masked_opcode_modifier)
{
	static const uint8_t opcodes[] = { 0x14, 0x15 };

	for (unsigned i = 0; i < sizeof opcodes; i++) {
		for (unsigned opmod = 0; opmod < 256; opmod++) {
			struct build b = masked(opcodes[i], (uint8_t)opmod);

			if (opmod != 0x08 && opmod != 0x09)
				check_fault(&b, HW_RC, HW_FAULT_OPMOD);
		}
	}
}

Test(fault, masked_ends_early_or_returns_another_size)
{
	struct build swap = masked(0x14, 0x09), add = masked(0x15, 0x08);
	struct build small = masked(0x14, 0x08), large = masked(0x15, 0x09);

	operands(&swap);	/* no masks */
	check_fault(&swap, HW_RC, HW_FAULT_DS_SHORT);
	check_fault(&add, HW_RC, HW_FAULT_DS_SHORT);
	operands(&small);
	piece(&small, 8, 7, 0x2000);
	check_fault(&small, HW_RC, HW_FAULT_ATOMIC_SGE);
	operands(&large);
	piece(&large, 4, 7, 0x2000);
	check_fault(&large, HW_RC, HW_FAULT_ATOMIC_SGE);
}
