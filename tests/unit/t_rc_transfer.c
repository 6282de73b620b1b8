/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RC transport moves data: each operation, sizes around the MTU, parts of messages.
 *
 * Method: two QPs by hand (rc_world.h); bytes on both sides are compared.
 */
#include "tests/unit/rc_world.h"

enum { SEND = 0x0a, SEND_IMM = 0x0b, WRITE = 0x08, WRITE_IMM = 0x09, READ = 0x10, CAS = 0x11,
       FADD = 0x12 };

static void fill(struct side *s, uint32_t bytes, unsigned seed)
{
	for (uint32_t i = 0; i < bytes; i++)
		s->data[i] = (uint8_t)(i * 31 + i / 251 + seed);
}

static const uint32_t sizes[] = { 1, 7, 64, 1023, 1024, 1025, 4096, 65535, 65536, 65537, 300000 };

Test(rc_transfer, write_moves_every_size)
{
	struct world *w = world_new();

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		fill(&w->a, sizes[i], (unsigned)i);
		w->b.data[sizes[i]] = 0x5a;
		work_post(&w->a, (struct work_row){ .opcode = WRITE, .bytes = sizes[i],
			.remote = (uintptr_t)w->b.data, .rkey = w->b.mr->key });
		pump(w);
		expect_good(w, &w->a, HW_CQE_REQ);
		cr_assert(!memcmp(w->a.data, w->b.data, sizes[i]), "size %u", sizes[i]);
		cr_assert_eq(w->b.data[sizes[i]], 0x5a, "wrote past the end");
	}
	cr_assert_eq(w->why.made, 0);
}

Test(rc_transfer, read_moves_every_size)
{
	struct world *w = world_new();

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct hw_cqe c;

		fill(&w->b, sizes[i], (unsigned)i);
		work_post(&w->a, (struct work_row){ .opcode = READ, .bytes = sizes[i],
			.remote = (uintptr_t)w->b.data, .rkey = w->b.mr->key });
		pump(w);
		c = world_cqe(w, &w->a);
		cr_assert_eq(c.kind, HW_CQE_REQ);
		cr_assert_eq(c.bytes, sizes[i]);
		cr_assert(!memcmp(w->a.data, w->b.data, sizes[i]), "size %u", sizes[i]);
	}
}

Test(rc_transfer, send_fills_receives_in_order)
{
	struct world *w = world_new();

	for (uint32_t i = 0; i < 3; i++)
		recv_post(&w->b, 1000, 0, 10000 * i);
	fill(&w->a, 3000, 3);
	for (uint32_t i = 0; i < 3; i++)
		work_post(&w->a, (struct work_row){ .opcode = SEND, .bytes = 900,
			.offset = 1000 * i });
	pump(w);
	for (uint32_t i = 0; i < 3; i++) {
		struct hw_cqe c = world_cqe(w, &w->b);

		cr_assert_eq(c.kind, HW_CQE_RECV);
		cr_assert_eq(c.bytes, 900);
		cr_assert_eq(c.wqe_counter, i);
		cr_assert(!memcmp(w->b.data + 10000 * i, w->a.data + 1000 * i, 900));
		expect_good(w, &w->a, HW_CQE_REQ);
	}
}

Test(rc_transfer, immediate_and_solicited_reach_the_receiver)
{
	struct world *w = world_new();
	struct hw_cqe c;

	recv_post(&w->b, 100, 0, 0);
	recv_post(&w->b, 100, 0, 0);
	work_post(&w->a, (struct work_row){ .opcode = SEND_IMM, .bytes = 8, .imm = 0x11223344,
		.is_solicited = true });
	work_post(&w->a, (struct work_row){ .opcode = WRITE_IMM, .bytes = 70000, .imm = 0x55667788,
		.remote = (uintptr_t)w->b.data, .rkey = w->b.mr->key });
	pump(w);
	c = world_cqe(w, &w->b);
	cr_assert_eq(c.kind, HW_CQE_RECV_IMM);
	cr_assert_eq(be32toh(c.imm), 0x11223344);
	cr_assert(c.is_solicited);
	c = world_cqe(w, &w->b);
	cr_assert_eq(c.kind, HW_CQE_RECV_WRITE_IMM);
	cr_assert_eq(c.bytes, 70000);
	cr_assert_eq(be32toh(c.imm), 0x55667788);
	cr_assert_not(c.is_solicited);
}

Test(rc_transfer, atomics_act_in_host_order_and_return_the_old_value)
{
	struct world *w = world_new();
	uint64_t value = 100;

	memcpy(w->b.data, &value, 8);
	work_post(&w->a, (struct work_row){ .opcode = FADD, .bytes = 8, .swap_add = 5,
		.remote = (uintptr_t)w->b.data, .rkey = w->b.mr->key });
	work_post(&w->a, (struct work_row){ .opcode = CAS, .bytes = 8, .compare = 105,
		.swap_add = 77, .offset = 8, .remote = (uintptr_t)w->b.data,
		.rkey = w->b.mr->key });
	work_post(&w->a, (struct work_row){ .opcode = CAS, .bytes = 8, .compare = 1,
		.swap_add = 9, .offset = 16, .remote = (uintptr_t)w->b.data,
		.rkey = w->b.mr->key });
	pump(w);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(world_cqe(w, &w->a).bytes, 8);
	memcpy(&value, w->b.data, 8);
	cr_assert_eq(value, 77, "a comparison that failed must not write");
	for (int i = 0; i < 3; i++) {
		memcpy(&value, w->a.data + 8 * i, 8);
		cr_assert_eq(value, ((uint64_t[]){ 100, 105, 77 })[i]);
	}
}

Test(rc_transfer, empty_messages_need_no_good_key)
{
	struct world *w = world_new();

	recv_post(&w->b, 100, 0, 0);
	work_post(&w->a, (struct work_row){ .opcode = WRITE, .has_no_data = true,
		.rkey = 0x12345 });
	work_post(&w->a, (struct work_row){ .opcode = READ, .has_no_data = true, .rkey = 0x12345 });
	work_post(&w->a, (struct work_row){ .opcode = SEND, .has_no_data = true });
	pump(w);
	for (int i = 0; i < 3; i++)
		expect_good(w, &w->a, HW_CQE_REQ);
	cr_assert_eq(world_cqe(w, &w->b).bytes, 0);
}

Test(rc_transfer, psn_wraps)
{
	struct world *w = world_new_at(0xfffffe);

	for (int i = 0; i < 6; i++)
		work_post(&w->a, (struct work_row){ .opcode = WRITE, .bytes = 5000,
			.remote = (uintptr_t)w->b.data, .rkey = w->b.mr->key });
	pump(w);
	for (int i = 0; i < 6; i++)
		expect_good(w, &w->a, HW_CQE_REQ);
	cr_assert_eq(w->b.qp->resp->psn_expected, (0xfffffe + 30) & 0xffffff);
}

Test(rc_transfer, unsignaled_work_completes_silently)
{
	struct world *w = world_new();

	for (int i = 0; i < 3; i++)
		work_post(&w->a, (struct work_row){ .opcode = WRITE, .bytes = 8,
			.is_unsignaled = i != 2,
			.remote = (uintptr_t)w->b.data, .rkey = w->b.mr->key });
	pump(w);
	cr_assert_eq(world_cqes(w, &w->a), 1);
	cr_assert_eq(world_cqe(w, &w->a).wqe_counter, 2);
	cr_assert_eq(w->a.qp->req.sq_done, 3);
}

Test(rc_transfer, reads_wait_for_credits_and_all_complete)
{
	struct world *w = world_new();

	for (uint32_t i = 0; i < 20; i++)
		work_post(&w->a, (struct work_row){ .opcode = READ, .bytes = 3000,
			.offset = 3000 * i,
			.remote = (uintptr_t)w->b.data, .rkey = w->b.mr->key });
	pump(w);
	for (int i = 0; i < 20; i++)
		expect_good(w, &w->a, HW_CQE_REQ);
	cr_assert_eq(w->a.qp->req.reads_out, 0);
}

Test(rc_transfer, a_fence_waits_for_reads)
{
	struct world *w = world_new();
	struct ib_packet p;

	work_post(&w->a, (struct work_row){ .opcode = READ, .bytes = 64, .remote =
		(uintptr_t)w->b.data, .rkey = w->b.mr->key });
	work_post(&w->a, (struct work_row){ .opcode = WRITE, .bytes = 64, .fence = 4, .remote =
		(uintptr_t)w->b.data, .rkey = w->b.mr->key });
	tp_doorbell(&w->tp, w->a.qp);
	cr_assert(rc_req_next(&w->tp, w->a.qp, 65536, &p));
	cr_assert_eq(p.opcode, RC_READ_REQUEST);
	rc_take(&w->tp, w->b.qp, &p);
	rc_req_sent(&w->tp, w->a.qp, &p);
	cr_assert_not(rc_req_next(&w->tp, w->a.qp, 65536, &p), "the fence was ignored");
	pump(w);
	expect_good(w, &w->a, HW_CQE_REQ);
	expect_good(w, &w->a, HW_CQE_REQ);
}

Test(rc_transfer, packets_are_numbered_as_if_they_had_been_cut)
{
	struct world *w = world_new();
	struct ib_packet p;

	work_post(&w->a, (struct work_row){ .opcode = WRITE, .bytes = 10000, .remote =
		(uintptr_t)w->b.data, .rkey = w->b.mr->key });
	tp_doorbell(&w->tp, w->a.qp);
	cr_assert(rc_req_next(&w->tp, w->a.qp, 4096, &p));
	cr_assert_eq(p.opcode, RC_WRITE_FIRST);
	cr_assert_eq(p.psn, 100);
	cr_assert_eq(p.packet_count, 4);
	cr_assert_not(p.wants_ack);
	rc_req_sent(&w->tp, w->a.qp, &p);
	cr_assert(rc_req_next(&w->tp, w->a.qp, 4096, &p));
	cr_assert_eq(p.opcode, RC_WRITE_MIDDLE);
	cr_assert_eq(p.psn, 104);
	rc_req_sent(&w->tp, w->a.qp, &p);
	cr_assert(rc_req_next(&w->tp, w->a.qp, 4096, &p));
	cr_assert_eq(p.opcode, RC_WRITE_LAST);
	cr_assert_eq(p.psn, 108);
	cr_assert_eq(p.packet_count, 2);
	cr_assert_eq(p.payload_bytes, 10000 - 8192);
	cr_assert(p.wants_ack);
}
