/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RC transport refuses: the status table of both ends, row by row, and the reason kept.
 *
 * Source: IBTA volume 1, 9.7; the status table behind docs/CONFORMANCE.md.
 */
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "emu/obj/event_desc.h"
#include "tests/unit/rc_world.h"

enum { SEND = 0x0a, WRITE = 0x08, WRITE_IMM = 0x09, READ = 0x10, FADD = 0x12, NO_EVENT = 99 };

static int event_of(struct world *w)
{
	struct event_async event;
	ssize_t n;

	channel_flush(w->async);
	n = recv(w->async_fd, &event, sizeof event, MSG_DONTWAIT);
	return n == sizeof event ? (int)event.type : NO_EVENT;
}

static struct work_row to_b(struct world *w, uint8_t opcode, uint32_t bytes)
{
	return (struct work_row){ .opcode = opcode, .bytes = bytes, .remote = (uintptr_t)w->b.data,
		.rkey = w->b.mr->key };
}

static void expect_refused(struct world *w, struct work_row r, enum hw_status status, int event,
			   enum why why)
{
	work_post(&w->a, r);
	pump(w);
	expect_status(w, &w->a, status);
	cr_assert_eq(w->a.qp->state, QP_ERR);
	cr_assert_eq(w->b.qp->state, event == NO_EVENT ? QP_RTS : QP_ERR);
	cr_assert_eq(event_of(w), event);
	cr_assert(world_has_why(w, why), "reason %s is missing", why_name(why));
}

Test(rc_errors, unknown_remote_key)
{
	struct world *w = world_new();
	struct work_row r = to_b(w, WRITE, 64);

	r.rkey ^= 0x40000000;
	expect_refused(w, r, HW_REM_ACCESS, EVENT_QP_ACCESS_ERR, WHY_KEY_UNKNOWN);
	expect_why(w, WHY_NAK_REMOTE_ACCESS);
}

Test(rc_errors, stale_tag_of_a_remote_key)
{
	struct world *w = world_new();
	struct work_row r = to_b(w, READ, 64);

	r.rkey ^= 1;
	expect_refused(w, r, HW_REM_ACCESS, EVENT_QP_ACCESS_ERR, WHY_KEY_TAG);
}

Test(rc_errors, remote_range_behind_the_region_writes_nothing)
{
	struct world *w = world_new();
	struct work_row r = to_b(w, WRITE, 8192);

	r.remote += WORLD_BYTES - 8191;
	memset(w->a.data, 0xaa, 8192);
	expect_refused(w, r, HW_REM_ACCESS, EVENT_QP_ACCESS_ERR, WHY_KEY_RANGE);
	for (int i = 1; i < 8192; i++)
		cr_assert_eq(w->b.data[WORLD_BYTES - i], 0);
}

Test(rc_errors, remote_rights_missing)
{
	struct world *w = world_new();
	struct emu_mr *mr;
	struct work_row r = to_b(w, WRITE, 64);

	cr_assert_eq(mr_create(&w->dev, w->pd, (uintptr_t)w->b.data, 4096, (uintptr_t)w->b.data,
			       KEY_LOCAL_WRITE | KEY_REMOTE_READ, &mr), 0);
	r.rkey = mr->key;
	expect_refused(w, r, HW_REM_ACCESS, EVENT_QP_ACCESS_ERR, WHY_KEY_RIGHTS);
}

Test(rc_errors, remote_key_of_another_pd)
{
	struct world *w = world_new();
	struct emu_pd *pd;
	struct emu_mr *mr;
	struct work_row r = to_b(w, WRITE, 64);

	cr_assert_eq(pd_create(&w->dev, &pd), 0);
	cr_assert_eq(mr_create(&w->dev, pd, (uintptr_t)w->b.data, 4096, (uintptr_t)w->b.data,
			       KEY_LOCAL_WRITE | KEY_REMOTE_WRITE, &mr), 0);
	r.rkey = mr->key;
	expect_refused(w, r, HW_REM_ACCESS, EVENT_QP_ACCESS_ERR, WHY_KEY_PD);
}

Test(rc_errors, qp_access_flags_forbid)
{
	struct world *w = world_new();

	w->b.qp->resp->access = 0;
	expect_refused(w, to_b(w, WRITE, 64), HW_REM_INV_REQ, EVENT_QP_REQ_ERR, WHY_QP_RIGHTS);
	expect_why(w, WHY_NAK_INVALID_REQUEST);
}

Test(rc_errors, no_read_resources)
{
	struct world *w = world_new();

	w->b.qp->resp->resource_limit = 0;
	expect_refused(w, to_b(w, READ, 64), HW_REM_INV_REQ, EVENT_QP_REQ_ERR, WHY_READ_RESOURCES);
}

Test(rc_errors, unaligned_atomic_even_with_a_bad_key)
{
	struct world *w = world_new();
	struct work_row r = to_b(w, FADD, 8);

	r.remote += 4;
	r.rkey = 0x777;
	expect_refused(w, r, HW_REM_INV_REQ, EVENT_QP_REQ_ERR, WHY_ATOMIC_UNALIGNED);
}

Test(rc_errors, local_key_bad_sends_nothing)
{
	struct world *w = world_new();
	struct work_row r = to_b(w, WRITE, 64);

	r.lkey = 0x99900;
	r.rkey = 0x99900;		/* both bad: the local one is found first */
	expect_refused(w, r, HW_LOC_PROT, NO_EVENT, WHY_KEY_UNKNOWN);
	cr_assert_eq(w->packets, 0);
}

Test(rc_errors, read_with_both_keys_bad_blames_the_remote)
{
	struct world *w = world_new();
	struct work_row r = to_b(w, READ, 64);

	r.lkey = 0x99900;
	r.rkey = 0x99900;
	expect_refused(w, r, HW_REM_ACCESS, EVENT_QP_ACCESS_ERR, WHY_KEY_UNKNOWN);
}

Test(rc_errors, read_and_atomic_with_a_bad_local_key)
{
	struct world *w = world_new();
	struct work_row r = to_b(w, FADD, 8);

	r.lkey = 0x99900;
	expect_refused(w, r, HW_LOC_PROT, NO_EVENT, WHY_KEY_UNKNOWN);
}

Test(rc_errors, message_too_long_for_the_port)
{
	struct world *w = world_new();

	expect_refused(w, to_b(w, WRITE, (1u << 30) + 1), HW_LOC_LEN, NO_EVENT,
		       WHY_MESSAGE_TOO_LONG);
	cr_assert_eq(w->packets, 0);
}

Test(rc_errors, receive_too_small)
{
	struct world *w = world_new();

	recv_post(&w->b, 63, 0, 0);
	recv_post(&w->b, 100, 0, 0);
	work_post(&w->a, to_b(w, SEND, 64));
	pump(w);
	expect_status(w, &w->a, HW_REM_INV_REQ);
	expect_status(w, &w->b, HW_LOC_LEN);
	expect_status(w, &w->b, HW_FLUSHED);
	expect_why(w, WHY_RECV_TOO_SMALL);
}

Test(rc_errors, receive_with_a_bad_key)
{
	struct world *w = world_new();

	recv_post(&w->b, 100, 0x99900, 0);
	work_post(&w->a, to_b(w, SEND, 64));
	pump(w);
	expect_status(w, &w->a, HW_REM_OP);
	expect_status(w, &w->b, HW_LOC_PROT_RECV);
	expect_why(w, WHY_NAK_REMOTE_OPERATION);
}

Test(rc_errors, receive_pieces_are_checked_only_where_data_goes)
{
	struct world *w = world_new();

	recv_post(&w->b, 2 * WORLD_BYTES, 0, 0);	/* far past the region */
	work_post(&w->a, to_b(w, SEND, 64));
	pump(w);
	expect_good(w, &w->a, HW_CQE_REQ);
	expect_good(w, &w->b, HW_CQE_RECV);
}

Test(rc_errors, send_with_invalidate_of_what_cannot_be)
{
	struct world *w = world_new();
	struct work_row r = to_b(w, 0x01, 64);

	recv_post(&w->b, 100, 0, 0);
	r.imm = w->b.mr->key;
	work_post(&w->a, r);
	pump(w);
	expect_good(w, &w->a, HW_CQE_REQ);
	expect_status(w, &w->b, HW_REM_INV_REQ);
	cr_assert_eq(w->b.qp->state, QP_ERR);
	expect_why(w, WHY_INVALIDATE_KEY);
}

Test(rc_errors, failing_work_first_then_flushes_in_order)
{
	struct world *w = world_new();
	struct work_row bad = to_b(w, WRITE, 64);

	bad.rkey = 0x88800;
	for (int i = 0; i < 3; i++)
		recv_post(&w->a, 64, 0, 0);
	work_post(&w->a, to_b(w, WRITE, 64));
	work_post(&w->a, bad);
	for (int i = 0; i < 3; i++) {
		struct work_row r = to_b(w, WRITE, 64);

		r.is_unsignaled = i == 0;
		work_post(&w->a, r);
	}
	pump(w);
	expect_good(w, &w->a, HW_CQE_REQ);
	expect_status(w, &w->a, HW_REM_ACCESS);
	for (uint16_t i = 2; i < 5; i++) {
		struct hw_cqe c = world_cqe(w, &w->a);

		cr_assert_eq(c.syndrome, 0x05);
		cr_assert_eq(c.wqe_counter, i);
		cr_assert_eq(c.kind, HW_CQE_REQ_ERR);
	}
	for (uint16_t i = 0; i < 3; i++) {
		struct hw_cqe c = world_cqe(w, &w->a);

		cr_assert_eq(c.kind, HW_CQE_RECV_ERR);
		cr_assert_eq(c.wqe_counter, i);
	}
	expect_why(w, WHY_FLUSHED);
}

Test(rc_errors, memory_that_went_away)
{
	struct world *w = world_new();
	uint8_t *gone = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			     0);
	struct work_row r = to_b(w, WRITE, 64);
	struct emu_mr *mr;

	cr_assert_eq(mr_create(&w->dev, w->pd, (uintptr_t)gone, 4096, (uintptr_t)gone,
			       KEY_LOCAL_WRITE | KEY_REMOTE_WRITE, &mr), 0);
	munmap(gone, 4096);
	r.remote = (uintptr_t)gone;
	r.rkey = mr->key;
	expect_refused(w, r, HW_REM_ACCESS, EVENT_QP_ACCESS_ERR, WHY_MEMORY_GONE);
}

/* --- damaged queues --- */

static void expect_damage(struct world *w, enum why why)
{
	pump(w);
	expect_status(w, &w->a, HW_LOC_QP_OP);
	cr_assert_eq(w->a.qp->state, QP_ERR);
	cr_assert(world_has_why(w, why));
	cr_assert_eq(w->packets, 0);
}

Test(rc_errors, unknown_opcode_in_the_ring)
{
	struct world *w = world_new();

	work_post(&w->a, (struct work_row){ .opcode = 0x77, .bytes = 8 });
	expect_damage(w, WHY_WQE_MALFORMED);
}

Test(rc_errors, work_of_another_qp_or_slot)
{
	for (int byte = 1; byte < 8; byte++) {
		struct world *w = world_new();

		if (byte == 3 || byte == 7)
			continue;			/* opcode and ds have cases of their own */
		work_post(&w->a, to_b(w, WRITE, 8));
		side_block(&w->a, 0)[byte] ^= 0x10;
		expect_damage(w, WHY_WQE_MALFORMED);
	}
}

Test(rc_errors, length_in_units_that_cannot_be)
{
	for (uint8_t ds = 0; ds < 64; ds++) {
		struct world *w = world_new();
		struct work_row r = to_b(w, WRITE, 8);

		r.ds = ds;
		work_post(&w->a, r);
		side_block(&w->a, 0)[7] = ds;
		if (ds == 3 || ds == 2 || ds == 4)
			continue;			/* a whole WQE, with or without data */
		expect_damage(w, WHY_WQE_MALFORMED);
	}
}

Test(rc_errors, send_record_that_jumps)
{
	struct world *w = world_new();

	w->a.record[1] = htobe32(WORLD_BLOCKS + 1);
	pump(w);
	cr_assert_eq(w->a.qp->state, QP_ERR);
	cr_assert_eq(event_of(w), EVENT_QP_FATAL);
	expect_why(w, WHY_SQ_DOORBELL);
}

Test(rc_errors, receive_record_that_jumps)
{
	struct world *w = world_new();

	w->b.record[0] = htobe32(WORLD_RECVS + 1);
	work_post(&w->a, to_b(w, SEND, 8));
	pump(w);
	cr_assert_eq(w->b.qp->state, QP_ERR);
	cr_assert_eq(event_of(w), EVENT_QP_FATAL);
	expect_why(w, WHY_RQ_DOORBELL);
}

Test(rc_errors, receive_that_is_no_list)
{
	struct world *w = world_new();

	recv_post(&w->b, 64, 0, 0);
	w->b.queue[0] |= 0x80;			/* inline data in a receive */
	work_post(&w->a, to_b(w, SEND, 8));
	pump(w);
	expect_status(w, &w->a, HW_REM_OP);
	expect_status(w, &w->b, HW_LOC_QP_OP_RECV);
	expect_why(w, WHY_RECV_MALFORMED);
}

Test(rc_errors, queue_memory_that_went_away)
{
	struct world *w = world_new();

	work_post(&w->a, to_b(w, WRITE, 8));
	w->a.qp->sq_addr = 0x10000;
	pump(w);
	expect_status(w, &w->a, HW_LOC_QP_OP);
	expect_why(w, WHY_WQE_MEMORY);
}

Test(rc_errors, work_that_changed_while_it_was_sent)
{
	struct world *w = world_new();
	struct ib_packet p;

	work_post(&w->a, to_b(w, WRITE, 100000));
	tp_doorbell(&w->tp, w->a.qp);
	cr_assert(rc_req_next(&w->tp, w->a.qp, 65536, &p));
	rc_req_sent(&w->tp, w->a.qp, &p);
	side_block(&w->a, 0)[35] ^= 1;			/* byte count */
	cr_assert_not(rc_req_next(&w->tp, w->a.qp, 65536, &p));
	expect_status(w, &w->a, HW_LOC_QP_OP);
	expect_why(w, WHY_WQE_CHANGED);
}

/* Found by f_packet: the count of packets was divided by it. */
Test(rc_errors, packet_without_an_mtu)
{
	struct world *w = world_new();
	const struct ib_packet p = { .opcode = RC_WRITE_ONLY, .psn = 100, .packet_count = 1,
		.payload_bytes = 8, .dma_bytes = 8, .rkey = w->b.mr->key,
		.va = (uintptr_t)w->b.data };

	cr_assert(rc_take(&w->tp, w->b.qp, &p));
	cr_assert_eq(w->b.qp->state, QP_ERR);
	cr_assert_eq(event_of(w), EVENT_QP_REQ_ERR);
	expect_why(w, WHY_PACKET_LENGTH);
}

/* Found by f_packet: peers can write there, and what they broke is a refusal at most. */
Test(rc_errors, responder_whose_shared_bytes_are_broken)
{
	struct world *w = world_new();

	w->b.qp->resp->mtu_bytes = 0;
	work_post(&w->a, to_b(w, READ, 2000));
	pump(w);
	expect_good(w, &w->a, HW_CQE_REQ);
	memset(&w->b.qp->resp->is_in_message, 0xfb, sizeof w->b.qp->resp->is_in_message);
	expect_refused(w, to_b(w, WRITE, 64), HW_REM_INV_REQ, EVENT_QP_REQ_ERR,
		       WHY_OPCODE_SEQUENCE);
}
