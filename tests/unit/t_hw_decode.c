/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * WQE bytes become the work they ask for, or exactly the fault that they are: what all transports
 * have.  Address vectors, masked atomics, keys and shared receive queues are in files of their own.
 *
 * WQEs are built byte by byte, not with the accessors under test, and end where their last unit
 * ends, right before a page that can't be read.
 */
#include <criterion/criterion.h>
#include <string.h>
#include "tests/unit/hw_build.h"

Test(good, nop)
{
	struct build b = control(0x00, 0);
	struct hw_work w;

	cr_assert(decode(&b, HW_RC, &w) == HW_OK);
	check_plain(&w, HW_OP_NOP, 1);
	cr_assert(!w.imm && !w.bytes && !w.sge_count && !w.is_signaled && !w.is_solicited);
	cr_assert(w.fence == HW_FENCE_NONE && !w.remote_addr && !w.rkey);
}

Test(good, send_leaves_a_stale_immediate_alone)
{
	struct build b = control(0x0a, 0x08 | 0x02);
	struct hw_work w;

	piece(&b, 100, 0x1234, 0x1000);
	piece(&b, 28, 0x5678, 0xffffffffffffff00);
	cr_assert(decode(&b, HW_RC, &w) == HW_OK);
	check_plain(&w, HW_OP_SEND, 3);
	cr_assert(w.is_signaled && w.is_solicited && w.imm == 0 && w.bytes == 128);
	cr_assert(w.opcode == 0x0a && w.sge_count == 2);
	check_piece(&w.sge[0], 100, 0x1234, 0x1000);
	check_piece(&w.sge[1], 28, 0x5678, 0xffffffffffffff00);
}

Test(good, send_imm_keeps_wire_bytes_and_send_inval_gets_host_order)
{
	static const uint8_t wire[4] = { 1, 2, 3, 4 };
	struct build imm = control(0x0b, 0), inval = control(0x01, 0);
	struct hw_work w;

	cr_assert(decode(&imm, HW_RC, &w) == HW_OK);
	check_plain(&w, HW_OP_SEND_IMM, 1);
	cr_assert(!memcmp(&w.imm, wire, 4));
	cr_assert(decode(&inval, HW_RC, &w) == HW_OK);
	check_plain(&w, HW_OP_SEND_INVAL, 1);
	cr_assert(w.imm == IMM);
}

Test(good, write_and_write_imm)
{
	static const uint8_t wire[4] = { 1, 2, 3, 4 };
	struct build b = control(0x08, 0), imm = control(0x09, 0);
	struct hw_work w;

	remote(&b);
	piece(&b, 65536, 7, 0x2000);
	cr_assert(decode(&b, HW_RC, &w) == HW_OK);
	check_plain(&w, HW_OP_WRITE, 3);
	check_remote(&w);
	cr_assert(w.imm == 0 && w.bytes == 65536 && w.sge_count == 1);
	remote(&imm);
	cr_assert(decode(&imm, HW_RC, &w) == HW_OK);
	check_plain(&w, HW_OP_WRITE_IMM, 2);
	check_remote(&w);
	cr_assert(!memcmp(&w.imm, wire, 4) && w.bytes == 0);
}

Test(good, read)
{
	struct build b = control(0x10, 0);
	struct hw_work w;

	remote(&b);
	piece(&b, 0x7fffffff, 7, 0x2000);
	cr_assert(decode(&b, HW_RC, &w) == HW_OK);
	check_plain(&w, HW_OP_READ, 3);
	check_remote(&w);
	cr_assert(w.bytes == 0x7fffffff && w.sge_count == 1);
	check_piece(&w.sge[0], 0x7fffffff, 7, 0x2000);
}

Test(good, atomics_have_host_order_operands_and_fetch_add_no_compare)
{
	struct build swap = control(0x11, 0), add = control(0x12, 0);
	struct hw_work w;

	remote(&swap);
	operands(&swap);
	piece(&swap, 8, 7, 0x2000);
	cr_assert(decode(&swap, HW_RC, &w) == HW_OK);
	check_plain(&w, HW_OP_COMPARE_SWAP, 4);
	check_remote(&w);
	cr_assert(w.swap_add == 0x0102030405060708 && w.compare == 0x1112131415161718);
	cr_assert(w.bytes == 8 && w.sge_count == 1);
	check_piece(&w.sge[0], 8, 7, 0x2000);
	remote(&add);
	operands(&add);		/* libmlx5 leaves what was in the ring as the second */
	piece(&add, 8, 7, 0x2000);
	cr_assert(decode(&add, HW_RC, &w) == HW_OK);
	check_plain(&w, HW_OP_FETCH_ADD, 4);
	cr_assert(w.swap_add == 0x0102030405060708 && w.compare == 0);
}

/* libmlx5 posts no data segment at all for a message of no bytes, inline or not. */
Test(good, messages_without_bytes_have_no_segment)
{
	static const uint8_t opcodes[] = { 0x01, 0x08, 0x09, 0x0a, 0x0b, 0x10 };
	struct hw_work w;

	for (unsigned i = 0; i < sizeof opcodes; i++) {
		struct build b = control(opcodes[i], 0);

		if (opcodes[i] >= 0x08 && opcodes[i] != 0x0a && opcodes[i] != 0x0b)
			remote(&b);
		cr_assert(decode(&b, HW_RC, &w) == HW_OK, "opcode %02x", opcodes[i]);
		cr_assert(w.bytes == 0 && w.sge_count == 0);
	}
}

Test(good, byte_count_zero_is_two_gigabytes_and_the_sum_does_not_overflow)
{
	struct build b = control(0x0a, 0);
	struct hw_work w;

	for (unsigned i = 0; i < HW_SGE_MAX; i++)
		piece(&b, 0, i, 0x1000 + i);
	cr_assert(decode(&b, HW_RC, &w) == HW_OK);
	cr_assert(w.sge_count == HW_SGE_MAX && w.bytes == (uint64_t)HW_SGE_MAX << 31);
	for (unsigned i = 0; i < HW_SGE_MAX; i++)
		check_piece(&w.sge[i], 0x80000000, i, 0x1000 + i);
}

Test(good, inline_data_of_every_length_that_fits)
{
	for (uint32_t bytes = 1; bytes <= HW_WQE_BYTES_MAX - 16 - 4; bytes++) {
		struct build b = control(0x0a, 0);
		struct hw_work w;

		inlined(&b, bytes);
		cr_assert(decode(&b, HW_RC, &w) == HW_OK, "%u bytes", bytes);
		cr_assert(w.sge_count == 1 && w.bytes == bytes);
		cr_assert(w.ds == 1 + (4 + bytes + 15) / 16);
		check_inlined(&w.sge[0], bytes);
	}
}

Test(good, inline_and_memory_may_be_mixed)
{
	struct build b = control(0x08, 0);
	struct hw_work w;

	remote(&b);
	inlined(&b, 12);
	piece(&b, 50, 7, 0x2000);
	inlined(&b, 0);		/* a unit that adds nothing */
	inlined(&b, 13);
	piece(&b, 60, 8, 0x3000);
	cr_assert(decode(&b, HW_RC, &w) == HW_OK);
	cr_assert(w.ds == 8 && w.sge_count == 4 && w.bytes == 12 + 50 + 13 + 60);
	check_inlined(&w.sge[0], 12);
	check_piece(&w.sge[1], 50, 7, 0x2000);
	check_inlined(&w.sge[2], 13);
	check_piece(&w.sge[3], 60, 8, 0x3000);
}

Test(good, most_pieces_that_ds_can_count_are_inline_of_one_unit)
{
	struct build b = control(0x0a, 0);
	struct hw_work w;

	for (unsigned i = 0; i < HW_SGE_MAX; i++)
		inlined(&b, 12);
	cr_assert(decode(&b, HW_RC, &w) == HW_OK);
	cr_assert(w.sge_count == HW_SGE_MAX && w.bytes == 12 * HW_SGE_MAX);
}

Test(good, fence_and_completion_fields)
{
	static const enum hw_fence fences[8] = {
		HW_FENCE_NONE, HW_FENCE_SMALL, HW_FENCE_READS, HW_FENCE_STRONG, HW_FENCE_READS,
		HW_FENCE_STRONG, HW_FENCE_STRONG, HW_FENCE_STRONG,	/* not defined */
	};

	for (unsigned flags = 0; flags < 256; flags++) {
		struct build b = control(0x0a, (uint8_t)flags);
		struct hw_work w;

		cr_assert(decode(&b, HW_RC, &w) == HW_OK);
		cr_assert(w.fence == fences[flags >> 5], "flags %02x", flags);
		cr_assert(w.is_signaled == ((flags >> 3 & 1) == 1), "flags %02x", flags);
		cr_assert(w.is_solicited == (flags >> 1 & 1), "flags %02x", flags);
	}
}

Test(good, unreliable_connected_sends_and_writes)
{
	struct build send = control(0x0a, 0), write = control(0x08, 0);
	struct hw_work w;

	remote(&write);
	cr_assert(decode(&send, HW_UC, &w) == HW_OK && w.op == HW_OP_SEND);
	cr_assert(decode(&write, HW_UC, &w) == HW_OK && w.op == HW_OP_WRITE);
}

Test(good, units_are_read_from_sixteen_bytes)
{
	struct build b = control(0x3f, 0xff);

	set_ds(&b, 63);
	cr_assert(mlx5_work_units(guarded(b.bytes, 16)) == 63);
	b.bytes[7] = 0xc0;	/* the two bits above the field are not part of it */
	cr_assert(mlx5_work_units(guarded(b.bytes, 16)) == 0);
}

/* Every opcode byte, against a list typed from the specification. */
Test(fault, opcodes_that_are_unknown_or_can_not_run)
{
	static const uint8_t known[] = {
		0x00, 0x01, 0x08, 0x09, 0x0a, 0x0b, 0x0e, 0x10, 0x11, 0x12, 0x14, 0x15, 0x18,
		0x19, 0x1b, 0x1f, 0x20, 0x21, 0x22, 0x23, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2c,
		0x2d, 0x2f,
	};
	static const uint8_t runs[] = {
		0x00, 0x01, 0x08, 0x09, 0x0a, 0x0b, 0x10, 0x11, 0x12, 0x14, 0x15, 0x25,
	};

	for (unsigned opcode = 0; opcode < 256; opcode++) {
		struct build b = control((uint8_t)opcode, 0);

		if (memchr(runs, (int)opcode, sizeof runs))
			continue;
		check_fault(&b, HW_RC, memchr(known, (int)opcode, sizeof known) ?
			    HW_FAULT_OPCODE_TRANSPORT : HW_FAULT_OPCODE_UNKNOWN);
	}
}

/* Which opcodes each transport has, against lists typed from the specification. */
Test(fault, opcodes_of_other_transports)
{
	static const uint8_t reliable[] = {
		0x00, 0x01, 0x08, 0x09, 0x0a, 0x0b, 0x10, 0x11, 0x12, 0x14, 0x15, 0x25,
	};
	static const uint8_t uc[] = { 0x00, 0x01, 0x08, 0x09, 0x0a, 0x0b, 0x25 };
	static const uint8_t ud[] = { 0x00, 0x0a, 0x0b }, raw[] = { 0x00, 0x0a, 0x0e };
	static const struct { const uint8_t *opcodes; size_t count; } has[HW_TRANSPORT_COUNT] = {
		[HW_RC] = { reliable, sizeof reliable }, [HW_XRC] = { reliable, sizeof reliable },
		[HW_DCI] = { reliable, sizeof reliable }, [HW_UC] = { uc, sizeof uc },
		[HW_UD] = { ud, sizeof ud }, [HW_RAW] = { raw, sizeof raw },
	};

	for (enum hw_transport t = HW_RC; t < HW_TRANSPORT_COUNT; t++) {
		for (unsigned opcode = 0; opcode < 256; opcode++) {
			struct build b = control((uint8_t)opcode, 0);
			struct hw_work w;
			enum hw_fault fault = decode(&b, t, &w);
			bool runs = fault != HW_FAULT_OPCODE_TRANSPORT &&
				    fault != HW_FAULT_OPCODE_UNKNOWN;

			cr_assert(runs == !!memchr(has[t].opcodes, (int)opcode, has[t].count),
				  "transport %d opcode %02x", t, opcode);
		}
	}
}

Test(fault, opcode_modifier)
{
	struct build swap = control(0x11, 0), send = control(0x0a, 0);

	swap.bytes[0] = 0x09;
	remote(&swap);
	operands(&swap);
	piece(&swap, 8, 7, 0x2000);
	check_fault(&swap, HW_RC, HW_FAULT_OPMOD);
	send.bytes[0] = 0x01;
	check_fault(&send, HW_RC, HW_FAULT_OPMOD);
}

/* Every ds below what the opcode needs; the first that is enough is no DS_SHORT. */
Test(fault, ends_before_its_mandatory_segments)
{
	static const struct { uint8_t opcode; unsigned units; } need[] = {
		{ 0x00, 1 }, { 0x01, 1 }, { 0x0a, 1 }, { 0x0b, 1 }, { 0x08, 2 }, { 0x09, 2 },
		{ 0x10, 2 }, { 0x11, 3 }, { 0x12, 3 },
	};

	for (unsigned i = 0; i < sizeof need / sizeof *need; i++) {
		for (unsigned ds = 0; ds <= need[i].units; ds++) {
			struct build b = control(need[i].opcode, 0);
			struct hw_work w;
			bool is_short;

			set_ds(&b, ds);
			is_short = mlx5_work_read(guarded(b.bytes, 16 * (ds ? ds : 1)),
						  HW_WQE_DS_MAX, HW_RC, &w) == HW_FAULT_DS_SHORT;
			cr_assert(is_short == (ds < need[i].units), "opcode %02x ds %u",
				  need[i].opcode, ds);
		}
	}
}

/* More than the queue holds is refused before anything behind control is read. */
Test(fault, more_units_than_the_queue_holds)
{
	struct build b = control(0x0a, 0);
	struct hw_work w;

	set_ds(&b, 5);
	cr_assert(mlx5_work_read(guarded(b.bytes, 16), 4, HW_RC, &w) == HW_FAULT_DS_LONG);
	cr_assert(mlx5_work_read(guarded(b.bytes, 80), 5, HW_RC, &w) == HW_OK);
}

Test(fault, inline_data_runs_past_the_end)
{
	struct build b = control(0x0a, 0), last = control(0x0a, 0), wide = control(0x0a, 0);

	piece(&b, 0x80000000 | 13, 0, 0);	/* 12 fit */
	check_fault(&b, HW_RC, HW_FAULT_INLINE_LENGTH);
	inlined(&last, 28);
	piece(&last, 0x80000000 | 0x3ff, 0, 0);
	check_fault(&last, HW_RC, HW_FAULT_INLINE_LENGTH);
	/* A scatter entry of more than 2 GiB has the inline bit and is no inline data. */
	piece(&wide, 0x80000000 | 1 << 20 | 4, 0, 0);
	check_fault(&wide, HW_RC, HW_FAULT_INLINE_LENGTH);
}

Test(fault, inline_data_where_data_must_be_returned)
{
	struct build read = control(0x10, 0), swap = control(0x11, 0);

	remote(&read);
	piece(&read, 16, 7, 0x2000);
	inlined(&read, 8);
	check_fault(&read, HW_RC, HW_FAULT_INLINE_OPCODE);
	remote(&swap);
	operands(&swap);
	inlined(&swap, 8);
	check_fault(&swap, HW_RC, HW_FAULT_INLINE_OPCODE);
}

Test(fault, atomic_without_exactly_eight_bytes_of_result)
{
	static const uint32_t wrong[] = { 0, 1, 4, 7, 9, 16, 0x7fffffff };
	struct build none = control(0x12, 0), two = control(0x11, 0);

	remote(&none);
	operands(&none);
	check_fault(&none, HW_RC, HW_FAULT_ATOMIC_SGE);
	remote(&two);
	operands(&two);
	piece(&two, 4, 7, 0x2000);
	piece(&two, 4, 7, 0x2004);
	check_fault(&two, HW_RC, HW_FAULT_ATOMIC_SGE);
	for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct build b = control(i & 1 ? 0x11 : 0x12, 0);

		remote(&b);
		operands(&b);
		piece(&b, wrong[i], 7, 0x2000);
		check_fault(&b, HW_RC, HW_FAULT_ATOMIC_SGE);
	}
}

static enum hw_fault decode_recv(const struct build *b, struct hw_recv *out)
{
	memset(out, 0xa5, sizeof *out);
	return mlx5_recv_read(guarded(b->bytes, b->used), b->used, out);
}

Test(recv, list_ends_at_its_mark)
{
	struct build b = { .used = 0 };
	struct hw_recv r;

	piece(&b, 100, 7, 0x1000);
	piece(&b, 200, 8, 0x2000);
	piece(&b, 0, HW_LKEY_END, 0);
	piece(&b, 0x80000001, 9, 0x3000);	/* stale, not looked at */
	cr_assert(decode_recv(&b, &r) == HW_OK);
	cr_assert(r.sge_count == 2 && r.bytes == 300);
	check_piece(&r.sge[0], 100, 7, 0x1000);
	check_piece(&r.sge[1], 200, 8, 0x2000);
}

Test(recv, list_ends_with_its_stride)
{
	for (unsigned stride = 16; stride <= HW_WQE_BYTES_MAX - 16; stride += 16) {
		struct build b = { .used = 0 };
		struct hw_recv r;

		while (b.used < stride)
			piece(&b, 10, 7, 0x1000);
		cr_assert(decode_recv(&b, &r) == HW_OK, "stride %u", stride);
		cr_assert(r.sge_count == stride / 16 && r.bytes == stride / 16 * 10);
	}
}

Test(recv, empty_list_has_no_room)
{
	struct build b = { .used = 0 };
	struct hw_recv r;

	piece(&b, 0, HW_LKEY_END, 0);
	cr_assert(decode_recv(&b, &r) == HW_OK && r.sge_count == 0 && r.bytes == 0);
}

Test(recv, end_mark_needs_both_its_halves)
{
	struct build b = { .used = 0 };
	struct hw_recv r;

	piece(&b, 1, HW_LKEY_END, 0x1000);
	piece(&b, 0, 0x200, 0x2000);		/* 2^31 bytes, as everywhere else */
	cr_assert(decode_recv(&b, &r) == HW_OK && r.sge_count == 2);
	check_piece(&r.sge[0], 1, HW_LKEY_END, 0x1000);
	check_piece(&r.sge[1], 0x80000000, 0x200, 0x2000);
	cr_assert(r.bytes == 0x80000001);
}

Test(recv, has_no_inline_form)
{
	struct build b = { .used = 0 };
	struct hw_recv r;

	piece(&b, 100, 7, 0x1000);
	piece(&b, 0x80000000, 7, 0x2000);
	cr_assert(decode_recv(&b, &r) == HW_FAULT_INLINE_OPCODE);
}

Test(recv, one_piece_more_than_a_list_can_have)
{
	struct build b = { .used = 0 }, ends = { .used = 0 };
	struct hw_recv r;

	while (b.used < HW_WQE_BYTES_MAX)
		piece(&b, 10, 7, 0x1000);
	cr_assert(decode_recv(&b, &r) == HW_FAULT_DS_LONG);
	while (ends.used < HW_WQE_BYTES_MAX - 16)
		piece(&ends, 10, 7, 0x1000);
	piece(&ends, 0, HW_LKEY_END, 0);
	cr_assert(decode_recv(&ends, &r) == HW_OK && r.sge_count == HW_SGE_MAX);
}

static void check_work(const struct hw_work *w, const uint8_t *wqe)
{
	uint64_t bytes = 0;

	cr_assert(w->op > HW_OP_NONE && w->op < HW_OP_COUNT && w->sge_count <= HW_SGE_MAX);
	for (unsigned i = 0; i < w->sge_count; i++) {
		const struct hw_sge *sge = &w->sge[i];

		bytes += sge->bytes;
		if (sge->inline_bytes)
			cr_assert(sge->inline_bytes >= wqe + 20 &&
				  sge->inline_bytes + sge->bytes <= wqe + w->ds * 16);
	}
	cr_assert(bytes == w->bytes);
}

/* Random bytes rarely have an opcode, its modifier, or a UMR that could be one. */
static void tame(struct build *b)
{
	static const uint8_t runs[] = {
		0x00, 0x01, 0x08, 0x09, 0x0a, 0x0b, 0x10, 0x11, 0x12, 0x14, 0x15, 0x25, 0x25, 0x25,
		0x0e,
	};
	static const uint8_t umr_flags[] = { 0x80, 0x90, 0xb0, 0x98, 0x00 };
	uint8_t opcode = runs[random_word() % sizeof runs];

	b->bytes[0] = opcode == 0x14 || opcode == 0x15 ? (uint8_t)(8 + random_word() % 2) : 0;
	b->bytes[3] = opcode;
	if (random_word() % 2) {		/* inline header of a frame */
		b->bytes[28] = 0;
		b->bytes[29] %= 64;
	}
	if (opcode != 0x25)
		return;
	b->bytes[16] = umr_flags[random_word() % sizeof umr_flags];
	b->bytes[20] = 0;
	b->bytes[21] = (uint8_t)(random_word() % 64);
	b->bytes[22] = 0;
	b->bytes[23] = random_word() % 8 == 0;
}

Test(random, send_bytes_never_reach_past_what_they_claim)
{
	unsigned faults[HW_FAULT_COUNT] = { 0 }, ops[HW_OP_COUNT] = { 0 };

	for (unsigned i = 0; i < 50000; i++) {
		unsigned units_max = random_word() % 4 ? HW_WQE_DS_MAX : random_word() % 64;
		enum hw_transport transport = random_word() % HW_TRANSPORT_COUNT;
		struct build b;
		struct hw_work w;
		const uint8_t *wqe;
		unsigned ds;
		enum hw_fault fault;

		scramble(&b);
		if (random_word() % 8)
			tame(&b);
		ds = b.bytes[7] & 0x3f;
		if (ds > units_max || !ds)
			ds = 1;
		wqe = guarded(b.bytes, ds * 16);
		fault = mlx5_work_read(wqe, units_max, transport, &w);
		cr_assert(fault < HW_FAULT_COUNT);
		faults[fault]++;
		if (fault)
			continue;
		ops[w.op]++;
		check_work(&w, wqe);
	}
	/* The bytes were not so random that only one rule was ever tried. */
	for (enum hw_fault f = HW_OK; f < HW_FAULT_COUNT; f++)
		cr_assert(faults[f] || f == HW_FAULT_QPN || f == HW_FAULT_INDEX, "never: %s",
			  hw_fault_name(f));
	for (enum hw_op op = HW_OP_NOP; op < HW_OP_COUNT; op++)
		cr_assert(ops[op], "never good: %s", hw_op_name(op));
}

Test(random, receive_bytes_never_reach_past_their_stride)
{
	unsigned good = 0, bad = 0;

	for (unsigned i = 0; i < 50000; i++) {
		size_t stride = 16 + random_word() % 63 * 16;
		struct build b;
		struct hw_recv r;

		scramble(&b);
		if (mlx5_recv_read(guarded(b.bytes, stride), stride, &r)) {
			bad++;
			continue;
		}
		good++;
		cr_assert(r.sge_count <= stride / 16 && r.sge_count <= HW_SGE_MAX);
	}
	cr_assert(good && bad);
}

Test(names, everything_has_one_and_nonsense_has_a_question_mark)
{
	for (enum hw_fault f = HW_OK; f < HW_FAULT_COUNT; f++)
		cr_assert(hw_fault_name(f) && strlen(hw_fault_name(f)) > 1, "fault %d", f);
	for (enum hw_op op = HW_OP_NONE; op < HW_OP_COUNT; op++)
		cr_assert(strlen(hw_op_name(op)) > 1, "op %d", op);
	cr_assert_str_eq(hw_op_name(HW_OP_WRITE), "RDMA_WRITE");
	cr_assert_str_eq(hw_op_name(HW_OP_NONE), "NONE");
	cr_assert_str_eq(hw_fault_name(HW_FAULT_INLINE_LENGTH), "inline data runs past the end");
	cr_assert_str_eq(hw_fault_name((enum hw_fault)HW_FAULT_COUNT), "?");
	cr_assert_str_eq(hw_op_name((enum hw_op)HW_OP_COUNT), "?");
}
