/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues below the commands: emu/obj/srq.c and emu/transport/srq.c.
 *
 * Two RC QPs take their receives from one queue whose list is written by hand, well and badly.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include "emu/obj/event_desc.h"
#include "emu/obj/srq.h"
#include "emu/transport/raw.h"
#include "tests/unit/rc_world.h"

enum { SEND = 0x0a, WRITE_IMM = 0x09, NO_EVENT = 99, WQES = 8, STRIDE = 64, ROOM = 4096 };

struct shared {
	struct world *w;
	struct emu_srq *srq;
	uint8_t *ring;
	uint32_t *record;
	uint16_t posted;
};

static int event_of(struct shared *s)
{
	struct event_async event;
	ssize_t n;

	channel_flush(s->w->async);
	n = recv(s->w->async_fd, &event, sizeof event, MSG_DONTWAIT);
	return n == sizeof event ? (int)event.type : NO_EVENT;
}

/* Entry @index with room for @bytes at b's data + index * ROOM, and its successor. */
static void wqe_write(struct shared *s, uint16_t index, uint16_t next, uint32_t bytes)
{
	uint8_t *at = s->ring + index * STRIDE;
	struct mlx5_srq_next head = { 0 };
	struct mlx5_data end = { 0 };

	mlx5_srq_next_set_next_wqe_index(&head, next);
	memcpy(at, &head, sizeof head);
	data_write(&s->w->b, at + 16, bytes, 0, index * ROOM);
	mlx5_data_set_lkey(&end, HW_LKEY_END);
	memcpy(at + 32, &end, sizeof end);
}

static void post(struct shared *s, uint16_t count)
{
	s->posted += count;
	*s->record = htobe32(s->posted);
}

/* Both QPs of a world on one queue of WQES entries, all of them linked in order. */
static struct shared shared_new(void)
{
	struct shared s = { .w = world_new() };
	struct srq_init init = { .pd = s.w->pd, .async = s.w->async, .max_wr = WQES - 1,
		.max_sge = 3, .user_index = SRQ_USER_INDEX_NONE };

	s.ring = world_memory(4096);
	s.record = world_memory(64);
	init.buf_addr = (uintptr_t)s.ring;
	init.db_addr = (uintptr_t)s.record;
	cr_assert_eq(srq_create(&s.w->dev, &init, &s.srq), 0);
	cr_assert_eq(s.srq->wqe_count, WQES);
	cr_assert_eq(s.srq->stride, STRIDE);
	for (uint16_t i = 0; i < WQES; i++)
		wqe_write(&s, i, (uint16_t)(i + 1), ROOM);
	s.w->a.qp->srq = s.w->b.qp->srq = s.srq;
	s.srq->obj.users = 2;
	return s;
}

static void send_from(struct side *from, uint32_t bytes)
{
	work_post(from, (struct work_row){ .opcode = SEND, .bytes = bytes });
}

static void expect_receive(struct shared *s, struct side *side, uint16_t index)
{
	struct hw_cqe c = world_cqe(s->w, side);

	cr_assert_eq(c.kind, HW_CQE_RECV, "kind %d syndrome %#x", c.kind, c.syndrome);
	cr_assert_eq(c.wqe_counter, index, "entry %u", c.wqe_counter);
}

static void expect_broken(struct shared *s, enum why why)
{
	send_from(&s->w->a, 64);
	pump(s->w);
	expect_why(s->w, why);
	cr_assert(s->srq->has_failed);
	cr_assert_eq(s->w->b.qp->state, QP_ERR);
	cr_assert_eq(event_of(s), EVENT_SRQ_ERR);
	cr_assert_eq(event_of(s), EVENT_QP_FATAL);
	cr_assert_eq(event_of(s), EVENT_QP_LAST_WQE);
	cr_assert_eq(event_of(s), NO_EVENT);
	cr_assert_eq(world_cqes(s->w, &s->w->b), 0);
}

/* --- lists as they should be --- */

Test(srq, receives_are_taken_in_the_order_of_the_list)
{
	static const uint16_t order[] = { 0, 5, 2, 7, 1 };
	struct shared s = shared_new();

	for (unsigned i = 0; i + 1 < sizeof order / sizeof *order; i++)
		wqe_write(&s, order[i], order[i + 1], ROOM);
	post(&s, 4);
	for (int i = 0; i < 4; i++)
		send_from(&s.w->a, 64);
	pump(s.w);
	for (int i = 0; i < 4; i++)
		expect_receive(&s, &s.w->b, order[i]);
	cr_assert_eq(s.srq->next, 1);
}

/* The application links on while the device is at work. */
Test(srq, a_link_is_read_with_its_entry_and_not_before)
{
	struct shared s = shared_new();

	post(&s, 2);
	send_from(&s.w->a, 64);
	pump(s.w);
	expect_receive(&s, &s.w->b, 0);
	wqe_write(&s, 1, 6, ROOM);
	send_from(&s.w->a, 64);
	pump(s.w);
	expect_receive(&s, &s.w->b, 1);
	wqe_write(&s, 6, 3, ROOM);
	post(&s, 1);
	send_from(&s.w->a, 64);
	pump(s.w);
	expect_receive(&s, &s.w->b, 6);
}

Test(srq, two_messages_in_progress_hold_an_entry_each)
{
	struct shared s = shared_new();

	s.w->bytes_max = 1024;
	post(&s, 3);
	memset(s.w->a.data, 0xaa, 2048);
	memset(s.w->b.data + 512 * 1024, 0xbb, 2048);
	send_from(&s.w->a, 2048);
	work_post(&s.w->b, (struct work_row){ .opcode = SEND, .bytes = 2048,
					      .offset = 512 * 1024 });
	pump(s.w);
	expect_receive(&s, &s.w->b, 0);
	expect_good(s.w, &s.w->b, HW_CQE_REQ);
	expect_good(s.w, &s.w->a, HW_CQE_REQ);
	expect_receive(&s, &s.w->a, 1);
	for (int i = 0; i < 2048; i++) {
		cr_assert_eq(s.w->b.data[i], 0xaa);
		cr_assert_eq(s.w->b.data[ROOM + i], 0xbb);
	}
	cr_assert_eq(srq_posted(s.srq), 1);
}

Test(srq, an_empty_queue_answers_receiver_not_ready_and_stays_usable)
{
	struct shared s = shared_new();

	send_from(&s.w->a, 64);
	pump(s.w);
	cr_assert_eq(s.w->last.aeth_syndrome >> 5, 1);
	expect_why(s.w, WHY_RECV_MISSING);
	post(&s, 1);
	rc_timer(&s.w->tp, s.w->a.qp);
	pump(s.w);
	expect_receive(&s, &s.w->b, 0);
}

Test(srq, lists_use_the_queues_own_protection_domain)
{
	struct shared s = shared_new();
	struct emu_mr *mr;
	struct emu_pd *pd;

	cr_assert_eq(pd_create(&s.w->dev, &pd), 0);
	cr_assert_eq(mr_create(&s.w->dev, pd, (uintptr_t)s.w->b.data, ROOM,
			       (uintptr_t)s.w->b.data, KEY_LOCAL_WRITE, &mr), 0);
	s.srq->pdn = pd->pdn;
	data_write(&s.w->b, s.ring + 16, ROOM, mr->key, 0);
	post(&s, 2);
	send_from(&s.w->a, 64);
	pump(s.w);
	expect_receive(&s, &s.w->b, 0);
	send_from(&s.w->a, 64);	/* the next names a key of the QPs' domain */
	pump(s.w);
	expect_status(s.w, &s.w->b, HW_LOC_PROT_RECV);
	expect_why(s.w, WHY_KEY_PD);
}

/* --- what takes no receive --- */

Test(srq, a_refused_write_with_immediate_leaves_the_receive)
{
	struct shared s = shared_new();

	post(&s, 2);
	work_post(&s.w->a, (struct work_row){ .opcode = WRITE_IMM, .bytes = 64,
		.remote = (uintptr_t)s.w->b.data, .rkey = 0x12345600 });
	pump(s.w);
	expect_good(s.w, &s.w->a, HW_CQE_REQ_ERR);
	cr_assert_eq(srq_posted(s.srq), 2);
	cr_assert_eq(world_cqes(s.w, &s.w->b), 0);
}

Test(srq, a_first_packet_that_cannot_be_read_takes_nothing)
{
	struct shared s = shared_new();
	struct ib_packet p;

	post(&s, 2);
	send_from(&s.w->a, 4096);
	tp_doorbell(&s.w->tp, s.w->a.qp);
	cr_assert_eq(rc_req_next(&s.w->tp, s.w->a.qp, 1024, &p), 1);
	munmap(s.w->a.data, 4096);
	cr_assert_not(rc_take(&s.w->tp, s.w->b.qp, &p));
	cr_assert_not(s.w->b.qp->answers.is_holding);
	cr_assert_eq(s.srq->taken, 0);
}

/* --- ends --- */

/* The first packets of a long message, and no more. */
static void begin_message(struct shared *s)
{
	struct ib_packet p;

	send_from(&s->w->a, 2048);
	tp_doorbell(&s->w->tp, s->w->a.qp);
	cr_assert_eq(rc_req_next(&s->w->tp, s->w->a.qp, 1024, &p), 1);
	cr_assert(rc_take(&s->w->tp, s->w->b.qp, &p));
	cr_assert(s->w->b.qp->answers.is_holding);
}

Test(srq, a_qp_that_fails_in_a_message_flushes_its_receive_and_no_other)
{
	struct shared s = shared_new();
	struct qp_attr attr = { .state = QP_ERR };

	post(&s, 3);
	begin_message(&s);
	cr_assert_eq(qp_modify(&s.w->dev, s.w->b.qp, &attr, A_STATE), 0);
	for (int i = 0; i < 3; i++)
		tp_flush(&s.w->tp, s.w->b.qp);
	cr_assert_eq(world_cqes(s.w, &s.w->b), 1);
	expect_status(s.w, &s.w->b, HW_FLUSHED);
	cr_assert_eq(srq_posted(s.srq), 2);
	cr_assert_eq(event_of(&s), EVENT_QP_LAST_WQE);
	cr_assert_eq(event_of(&s), NO_EVENT, "told once");
	cr_assert_not(s.srq->is_held[0]);
}

Test(srq, a_reset_forgets_the_receive_silently)
{
	struct shared s = shared_new();
	struct qp_attr attr = { .state = QP_RESET };

	post(&s, 3);
	begin_message(&s);
	cr_assert_eq(qp_modify(&s.w->dev, s.w->b.qp, &attr, A_STATE), 0);
	cr_assert_eq(world_cqes(s.w, &s.w->b), 0);
	cr_assert_not(s.srq->is_held[0]);
	cr_assert_eq(srq_posted(s.srq), 2);
	cr_assert_eq(event_of(&s), NO_EVENT);
}

Test(srq, a_message_that_is_too_long_fails_its_qp_and_not_the_queue)
{
	struct shared s = shared_new();

	wqe_write(&s, 0, 1, 100);
	post(&s, 2);
	send_from(&s.w->a, 101);
	pump(s.w);
	expect_status(s.w, &s.w->b, HW_LOC_LEN);
	expect_status(s.w, &s.w->a, HW_REM_INV_REQ);
	cr_assert_eq(world_cqes(s.w, &s.w->b), 0, "what is left is not flushed");
	cr_assert_not(s.srq->has_failed);
	cr_assert_eq(srq_posted(s.srq), 1);
}

Test(srq, a_malformed_receive_fails_its_qp_and_not_the_queue)
{
	struct shared s = shared_new();

	s.ring[16] = 0x80;		/* inline data in a receive */
	post(&s, 2);
	send_from(&s.w->a, 64);
	pump(s.w);
	expect_status(s.w, &s.w->b, HW_LOC_QP_OP_RECV);
	expect_status(s.w, &s.w->a, HW_REM_OP);
	expect_why(s.w, WHY_RECV_MALFORMED);
	cr_assert_not(s.srq->has_failed);
	cr_assert_eq(s.srq->next, 1);
}

/* --- limits --- */

Test(srq, the_limit_is_told_of_once_when_fewer_are_posted)
{
	struct shared s = shared_new();

	post(&s, 5);
	cr_assert_eq(srq_modify(&s.w->dev, s.srq, 3, SRQ_LIMIT), 0);
	cr_assert_eq(s.srq->limit, 3);
	for (int i = 0; i < 2; i++)
		send_from(&s.w->a, 64);
	pump(s.w);
	cr_assert_eq(event_of(&s), NO_EVENT, "three are left");
	send_from(&s.w->a, 64);
	pump(s.w);
	cr_assert_eq(event_of(&s), EVENT_SRQ_LIMIT);
	cr_assert_eq(s.srq->limit, 0);
	send_from(&s.w->a, 64);
	pump(s.w);
	cr_assert_eq(event_of(&s), NO_EVENT);
}

Test(srq, a_limit_that_is_undercut_already_is_told_of_at_once)
{
	struct shared s = shared_new();

	post(&s, 2);
	cr_assert_eq(srq_modify(&s.w->dev, s.srq, 2, SRQ_LIMIT), 0);
	cr_assert_eq(event_of(&s), NO_EVENT);
	cr_assert_eq(srq_modify(&s.w->dev, s.srq, 3, SRQ_LIMIT), 0);
	cr_assert_eq(event_of(&s), EVENT_SRQ_LIMIT);
	cr_assert_eq(s.srq->limit, 0);
}

/* A receive that was posted while the message was on its way counts. */
Test(srq, the_limit_looks_at_the_record)
{
	struct shared s = shared_new();

	post(&s, 3);
	cr_assert_eq(srq_modify(&s.w->dev, s.srq, 3, SRQ_LIMIT), 0);
	post(&s, 1);
	send_from(&s.w->a, 64);
	pump(s.w);
	cr_assert_eq(event_of(&s), NO_EVENT);
	send_from(&s.w->a, 64);
	pump(s.w);
	cr_assert_eq(event_of(&s), EVENT_SRQ_LIMIT);
}

Test(srq, modify_refuses_what_it_cannot_do_and_changes_nothing)
{
	static const struct { uint32_t limit, mask; } rows[] = {
		{ 2, SRQ_MAX_WR }, { 2, SRQ_MAX_WR | SRQ_LIMIT }, { WQES, SRQ_LIMIT },
		{ UINT32_MAX, SRQ_LIMIT }, { 2, SRQ_LIMIT | 4 },
	};
	struct shared s = shared_new();

	post(&s, 5);
	cr_assert_eq(srq_modify(&s.w->dev, s.srq, 1, SRQ_LIMIT), 0);
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		cr_assert_eq(srq_modify(&s.w->dev, s.srq, rows[i].limit, rows[i].mask), -EINVAL);
		cr_assert_eq(s.srq->limit, 1);
	}
	expect_why(s.w, WHY_CMD_VALUE);
	cr_assert_eq(srq_modify(&s.w->dev, s.srq, 0, 0), 0);
	cr_assert_eq(s.srq->limit, 1);
	cr_assert_eq(srq_modify(&s.w->dev, s.srq, WQES - 1, SRQ_LIMIT), 0);
}

/* --- lists of somebody else --- */

Test(srq, a_link_out_of_the_queue_ends_it)
{
	struct shared s = shared_new();

	wqe_write(&s, 0, WQES, ROOM);
	post(&s, 1);
	send_from(&s.w->a, 64);
	pump(s.w);
	expect_receive(&s, &s.w->b, 0);		/* nobody has to follow the link yet */
	post(&s, 1);
	expect_broken(&s, WHY_SRQ_LIST);
}

Test(srq, a_link_far_out_of_the_queue_ends_it)
{
	struct shared s = shared_new();

	wqe_write(&s, 0, 0xffff, ROOM);
	post(&s, 2);
	send_from(&s.w->a, 64);
	pump(s.w);
	expect_receive(&s, &s.w->b, 0);
	expect_broken(&s, WHY_SRQ_LIST);
}

Test(srq, a_link_to_an_entry_in_use_ends_the_queue)
{
	struct shared s = shared_new();

	wqe_write(&s, 0, 0, ROOM);
	post(&s, 2);
	begin_message(&s);
	work_post(&s.w->b, (struct work_row){ .opcode = SEND, .bytes = 64 });
	tp_doorbell(&s.w->tp, s.w->b.qp);
	world_step(s.w, s.w->b.qp);
	expect_why(s.w, WHY_SRQ_LIST);
	cr_assert_eq(event_of(&s), EVENT_SRQ_ERR);
	cr_assert_eq(s.w->a.qp->state, QP_ERR);
}

/* As many messages as were announced, then not ready: never more. */
Test(srq, a_list_in_a_circle_ends_with_what_the_record_says)
{
	struct shared s = shared_new();

	wqe_write(&s, 0, 0, ROOM);
	post(&s, WQES - 1);
	for (int i = 0; i < WQES + 3; i++)
		send_from(&s.w->a, 64);
	pump(s.w);
	for (int i = 0; i < WQES - 1; i++)
		expect_receive(&s, &s.w->b, 0);
	cr_assert_eq(world_cqes(s.w, &s.w->b), 0);
	expect_why(s.w, WHY_RECV_MISSING);
	cr_assert_not(s.srq->has_failed);
}

Test(srq, a_record_that_jumps_ends_the_queue)
{
	static const uint16_t jumps[] = { WQES, WQES + 1, 0x8000, 0xffff };

	for (unsigned i = 0; i < sizeof jumps / sizeof *jumps; i++) {
		struct shared s = shared_new();

		*s.record = htobe32(jumps[i]);
		expect_broken(&s, WHY_SRQ_DOORBELL);
	}
}

/* Only 16 bits of the record count. */
Test(srq, the_record_wraps)
{
	struct shared s = shared_new();

	s.srq->produced = s.srq->taken = 0x1fffe;
	s.posted = 0xfffe;
	s.srq->next = 3;
	post(&s, 4);
	*s.record |= htobe32(0x77770000);
	for (int i = 0; i < 4; i++)
		send_from(&s.w->a, 64);
	pump(s.w);
	for (uint16_t i = 3; i < 7; i++)
		expect_receive(&s, &s.w->b, i);
	cr_assert_eq(s.srq->taken, 0x20002);
}

Test(srq, memory_that_is_gone_ends_the_queue)
{
	for (int i = 0; i < 2; i++) {
		struct shared s = shared_new();

		post(&s, 2);
		munmap(i ? (void *)s.record : s.ring, 4096);
		expect_broken(&s, WHY_WQE_MEMORY);
	}
}

Test(srq, a_failed_queue_fails_each_qp_that_needs_it)
{
	struct shared s = shared_new();

	*s.record = htobe32(WQES);
	expect_broken(&s, WHY_SRQ_DOORBELL);
	s.w->b.qp->state = QP_RTS;	/* as if it were a third QP */
	work_post(&s.w->b, (struct work_row){ .opcode = SEND, .bytes = 64 });
	pump(s.w);
	expect_why(s.w, WHY_SRQ_FAILED);
	cr_assert_eq(s.w->a.qp->state, QP_ERR);
	cr_assert_eq(event_of(&s), EVENT_QP_FATAL);
}

/* --- creation --- */

static int try_create(struct shared *s, uint32_t max_wr, uint32_t max_sge, uint64_t buf,
		      uint64_t db)
{
	struct srq_init init = { .pd = s->w->pd, .max_wr = max_wr, .max_sge = max_sge,
		.buf_addr = buf, .db_addr = db, .user_index = SRQ_USER_INDEX_NONE };
	struct emu_srq *srq;
	uint32_t events;
	int rc = srq_create(&s->w->dev, &init, &srq);

	if (!rc)
		cr_assert_eq(srq_destroy(&s->w->dev, srq, &events), 0);
	return rc;
}

Test(srq, sizes_follow_from_what_was_asked_for)
{
	static const struct { uint32_t wr, sge, count, stride; } rows[] = {
		{ 127, 3, 128, 64 }, { 0, 0, 1, 32 }, { 1, 1, 2, 32 }, { 2, 2, 4, 64 },
		{ 100, 7, 128, 128 }, { 127, 31, 128, 512 },
	};
	struct shared s = shared_new();
	uint8_t *memory = world_memory(128 * 512);

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct srq_init init = { .pd = s.w->pd, .max_wr = rows[i].wr,
			.max_sge = rows[i].sge, .buf_addr = (uintptr_t)memory,
			.db_addr = (uintptr_t)s.record, .user_index = SRQ_USER_INDEX_NONE };
		struct emu_srq *srq;

		cr_assert_eq(srq_create(&s.w->dev, &init, &srq), 0);
		cr_assert_eq(srq->wqe_count, rows[i].count);
		cr_assert_eq(srq->stride, rows[i].stride);
		cr_assert_eq(srq_max_wr(srq), rows[i].count - 1);
		cr_assert_eq(srq_max_sge(srq), rows[i].stride / 16 - 1);
		cr_assert_eq(srq->user_index, srq->srqn);
	}
}

Test(srq, creation_checks_limits_alignment_and_memory)
{
	struct shared s = shared_new();
	uint64_t ring = (uintptr_t)s.ring, record = (uintptr_t)s.record;
	uint32_t users = s.w->pd->obj.users;

	cr_assert_eq(try_create(&s, 7, 1, ring, record), 0);
	cr_assert_eq(try_create(&s, 32768, 1, ring, record), -EINVAL);
	cr_assert_eq(try_create(&s, UINT32_MAX, 1, ring, record), -EINVAL);
	cr_assert_eq(try_create(&s, 7, 32, ring, record), -EINVAL);
	cr_assert_eq(try_create(&s, 7, UINT32_MAX, ring, record), -EINVAL);
	cr_assert_eq(try_create(&s, 7, 1, ring + 16, record), -EINVAL);
	cr_assert_eq(try_create(&s, 7, 1, ring, record + 4), -EINVAL);
	cr_assert_eq(try_create(&s, 7, 1, 0x1000, record), -EFAULT);
	cr_assert_eq(try_create(&s, 7, 1, ring, 0x1000), -EFAULT);
	expect_why(s.w, WHY_CMD_MEMORY);
	cr_assert_eq(s.w->pd->obj.users, users);
}

Test(srq, a_queue_in_use_stays)
{
	struct shared s = shared_new();
	uint32_t events;

	cr_assert_eq(srq_destroy(&s.w->dev, s.srq, &events), -EBUSY);
	expect_why(s.w, WHY_CMD_BUSY);
	s.srq->obj.users = 0;
	cr_assert_eq(srq_destroy(&s.w->dev, s.srq, &events), 0);
}

Test(srq, destruction_says_how_many_events_were_read)
{
	struct shared s = shared_new();
	uint32_t events;

	for (int i = 0; i < 2; i++)	/* both are due at once; one is read */
		cr_assert_eq(srq_modify(&s.w->dev, s.srq, 1, SRQ_LIMIT), 0);
	cr_assert_eq(event_of(&s), EVENT_SRQ_LIMIT);
	s.srq->obj.users = 0;
	cr_assert_eq(srq_destroy(&s.w->dev, s.srq, &events), 0);
	cr_assert_eq(events, 1);
	cr_assert_eq(event_of(&s), NO_EVENT);
}

/* For frames from outside, which wait for one. */
Test(srq, whether_a_receive_is_there)
{
	struct shared s = shared_new();

	cr_expect(!raw_has_receives(&s.w->tp, s.w->b.qp, 1));
	post(&s, 1);
	for (unsigned i = 0; i < 3; i++)
		cr_expect(raw_has_receives(&s.w->tp, s.w->b.qp, 1), "asking takes nothing");
	cr_expect(!raw_has_receives(&s.w->tp, s.w->b.qp, 2));
	post(&s, 1);
	cr_expect(raw_has_receives(&s.w->tp, s.w->b.qp, 2));
	send_from(&s.w->a, 64);
	send_from(&s.w->a, 64);
	pump(s.w);
	expect_receive(&s, &s.w->b, 0);
	expect_receive(&s, &s.w->b, 1);
	cr_expect(!raw_has_receives(&s.w->tp, s.w->b.qp, 1));
	cr_expect_eq(s.w->why.made, 0);
	post(&s, WQES + 1);
	cr_expect(raw_has_receives(&s.w->tp, s.w->b.qp, 1), "nothing is to be waited for");
	cr_expect_eq(s.w->b.qp->state, QP_ERR);
	expect_why(s.w, WHY_SRQ_DOORBELL);
}
