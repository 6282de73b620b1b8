/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine: doorbells become completions in the CQ ring, timers fire by the injected clock,
 * CQs overrun and raise events as they were armed.
 *
 * Method: the RC world with an engine and no wire; the test owns the clock and reads CQE bytes.
 */
#include <pthread.h>
#include <sys/socket.h>
#include "emu/engine/engine.h"
#include "emu/obj/cq_ring.h"
#include "emu/obj/event_desc.h"
#include "emu/wire/wire.h"
#include "tests/unit/rc_world.h"

enum { SEND = 0x0a, WRITE = 0x08, ARM_SOLICITED = 1 << 24 };

static uint64_t clock_ns = 1000;

static uint64_t clock_read(void)
{
	return clock_ns;
}

struct rig {
	struct world *w;
	struct engine *e;
	struct emu_channel *channel;
	int channel_fd;
	uint32_t read;			/* CQEs taken by the test */
};

static struct rig rig_new(void)
{
	struct rig r = { .w = world_new() };

	r.w->dev.now_ns = clock_read;
	memset(r.w->cq_memory, 0xff, 256 * 64);
	cr_assert_eq(engine_create(&r.w->dev, NULL, NULL, &r.e), 0);
	cr_assert_eq(channel_create(EVENT_COMP_BYTES, &r.channel, &r.channel_fd), 0);
	r.w->cq->channel = r.channel;
	r.w->cq->user_handle = 0x1234;
	return r;
}

/* The next CQE if it is there: ownership by the rule of the driver, not of cq_ring.h. */
static const uint8_t *rig_poll(struct rig *r)
{
	const uint8_t *cqe = r->w->cq_memory + (r->read % 256) * 64;

	if (cqe[63] >> 4 == 15 || (cqe[63] & 1) != (r->read / 256 & 1))
		return NULL;
	r->w->cq_record[0] = htobe32(++r->read & 0xffffff);
	return cqe;
}

static void rig_write(struct rig *r, bool is_signaled)
{
	struct side *b = &r->w->b;

	work_post(&r->w->a, (struct work_row){ .opcode = WRITE, .bytes = 8,
		.is_unsignaled = !is_signaled, .remote = (uintptr_t)b->data, .rkey = b->mr->key });
	engine_rang(r->e, r->w->a.qp->qpn);
}

static int event_of(int fd, size_t bytes)
{
	struct event_async event = { 0 };
	ssize_t n = recv(fd, &event, sizeof event, MSG_DONTWAIT);

	return n < 0 ? -1 : n == (ssize_t)bytes && bytes == EVENT_ASYNC_BYTES ? (int)event.type :
	       (int)event.element;
}

Test(engine, a_doorbell_becomes_a_completion)
{
	struct rig r = rig_new();
	const uint8_t *cqe;

	rig_write(&r, true);
	cqe = rig_poll(&r);
	cr_assert(cqe);
	cr_assert_eq(cqe[63], 0x00, "requester, first pass");
	cr_assert_eq(cqe[56], WRITE);
	cr_assert_not(rig_poll(&r));
	cr_assert_eq(engine_deadline_ns(r.e), UINT64_MAX, "a timer was left behind");
}

Test(engine, the_ring_wraps_with_its_owner_bit)
{
	struct rig r = rig_new();

	for (int i = 0; i < 1000; i++) {
		const uint8_t *cqe;

		rig_write(&r, true);
		cqe = rig_poll(&r);
		cr_assert(cqe, "completion %d", i);
		cr_assert_eq(cqe[60] << 8 | cqe[61], i);
	}
}

Test(engine, an_unknown_number_is_no_harm)
{
	struct rig r = rig_new();

	engine_rang(r.e, 0xffffff);
	engine_rang(r.e, 0xffffffff);
	engine_armed(r.e, 0xffffffff);
	engine_lend(r.e);
}

Test(engine, silence_ends_by_the_clock)
{
	struct rig r = rig_new();
	const uint8_t *cqe;

	r.w->a.qp->dest_qpn = 0xabcdef;
	rig_write(&r, true);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(engine_deadline_ns(r.e), clock_ns + (UINT64_C(4096) << 14));
		cr_assert_not(rig_poll(&r));
		clock_ns = engine_deadline_ns(r.e) - 1;
		engine_lend(r.e);
		cr_assert_not(rig_poll(&r), "gave up early");
		clock_ns++;
		engine_lend(r.e);
	}
	cqe = rig_poll(&r);
	cr_assert(cqe);
	cr_assert_eq(cqe[55], 0x15);
	cr_assert_eq(cqe[54], 0x81);
	expect_why(r.w, WHY_PACKET_NO_QP);
}

Test(engine, states_and_addresses_that_take_no_packet)
{
	static const struct {
		enum qp_state state;
		uint8_t sgid;
		uint16_t pkey;
		enum why why;
	} row[] = {
		{ QP_INIT, 1, 0xffff, WHY_PACKET_QP_STATE },
		{ QP_ERR, 1, 0xffff, WHY_PACKET_QP_STATE },
		{ QP_RTS, 2, 0xffff, WHY_PACKET_SGID },
		{ QP_RTS, 1, 0x8001, WHY_PACKET_PKEY },
		{ QP_RTS, 1, 0, WHY_PACKET_PKEY },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct rig r = rig_new();

		r.w->b.qp->state = row[i].state;
		r.w->b.qp->dgid[15] = row[i].sgid;
		r.w->b.qp->pkey = row[i].pkey;
		r.w->a.data[0] = 9;
		rig_write(&r, true);
		cr_assert_not(rig_poll(&r));
		cr_assert_eq(r.w->b.data[0], 0, "row %zu", i);
		cr_assert(world_has_why(r.w, row[i].why), "row %zu", i);
	}
}

Test(engine, other_transports_are_not_for_an_rc_qp)
{
	struct rig r = rig_new();

	r.w->b.qp->type = QPT_UD;
	rig_write(&r, true);
	cr_assert_not(rig_poll(&r));
	expect_why(r.w, WHY_PACKET_TRANSPORT);
}

/* A wire that has one packet for us, and takes ours to where nobody has that address. */
static struct ib_packet arriving;
static bool has_arriving;

static enum wire_sent fake_send(struct wire *w, const struct ib_packet *p)
{
	(void)w;
	(void)p;
	return WIRE_WRONG_GID;
}

static int fake_receive(struct wire *w, struct ib_packet *out)
{
	bool has = has_arriving;

	(void)w;
	*out = arriving;
	has_arriving = false;
	return has;
}

static void fake_release(struct wire *w)
{
	(void)w;
}

static const struct wire_ops fake_ops = {
	.name = "fake", .send = fake_send, .receive = fake_receive, .release = fake_release,
	.packet_bytes_max = 4096,
};

Test(engine, a_packet_for_another_nodes_address_is_lost)
{
	struct rig r = rig_new();
	struct wire wire = { .ops = &fake_ops };

	engine_destroy(r.e);
	cr_assert_eq(engine_create(&r.w->dev, &wire, NULL, &r.e), 0);
	r.w->a.qp->dest_qpn = 0xabcdef;
	rig_write(&r, true);
	cr_assert_not(rig_poll(&r));
	expect_why(r.w, WHY_PACKET_DGID);
	memset(&r.w->why, 0, sizeof r.w->why);
	arriving = (struct ib_packet){ .dest_qpn = r.w->b.qp->qpn, .dgid = { 0x20, 1 } };
	has_arriving = true;
	engine_lend(r.e);
	expect_why(r.w, WHY_PACKET_DGID);
}

static void arrive_at_lid(struct rig *r, uint16_t lid, enum why why)
{
	memset(&r->w->why, 0, sizeof r->w->why);
	arriving = (struct ib_packet){ .dest_qpn = r->w->b.qp->qpn };
	ib_lid_as_gid(lid, arriving.dgid);
	has_arriving = true;
	engine_lend(r->e);
	expect_why(r->w, why);
}

/* What is for the port goes on, to be dropped for its P_Key. */
Test(engine, a_port_takes_what_is_for_any_of_its_lids)
{
	struct rig r = rig_new();
	struct wire wire = { .ops = &fake_ops };

	engine_destroy(r.e);
	cr_assert_eq(engine_create(&r.w->dev, &wire, NULL, &r.e), 0);
	arrive_at_lid(&r, 0, WHY_PACKET_DGID);		/* Ethernet has none */
	r.w->dev.lid = 0x1200;
	arrive_at_lid(&r, 0x1200, WHY_PACKET_PKEY);
	arrive_at_lid(&r, 0x1201, WHY_PACKET_DGID);
	r.w->dev.lmc = 2;
	for (uint16_t lid = 0x1200; lid < 0x1204; lid++)
		arrive_at_lid(&r, lid, WHY_PACKET_PKEY);
	arrive_at_lid(&r, 0x1204, WHY_PACKET_DGID);
	arrive_at_lid(&r, 0x11ff, WHY_PACKET_DGID);
}

/* Requests are lost, also those to oneself; the requester notices by its timer. */
Test(engine, nothing_passes_a_port_that_is_down)
{
	struct rig r = rig_new();
	struct wire wire = { .ops = &fake_ops };

	r.w->dev.port.is_down = true;
	r.w->a.data[0] = 9;
	rig_write(&r, true);
	cr_assert_not(rig_poll(&r));
	cr_assert_eq(r.w->b.data[0], 0);
	expect_why(r.w, WHY_PORT_DOWN);
	clock_ns = engine_deadline_ns(r.e);
	r.w->dev.port.is_down = false;
	engine_lend(r.e);			/* the first repetition gets through */
	cr_assert(rig_poll(&r));
	cr_assert_eq(r.w->b.data[0], 9);

	engine_destroy(r.e);
	cr_assert_eq(engine_create(&r.w->dev, &wire, NULL, &r.e), 0);
	memset(&r.w->why, 0, sizeof r.w->why);
	r.w->dev.port.is_down = true;
	arriving = (struct ib_packet){ .dest_qpn = r.w->b.qp->qpn };
	memcpy(arriving.dgid, r.w->dev.gid[0].raw, 16);
	has_arriving = true;
	engine_lend(r.e);
	expect_why(r.w, WHY_PORT_DOWN);
}

Test(engine, first_packet_in_rtr_establishes)
{
	struct rig r = rig_new();

	r.w->b.qp->state = QP_RTR;
	rig_write(&r, true);
	rig_write(&r, true);
	cr_assert(rig_poll(&r));
	cr_assert_eq(event_of(r.w->async_fd, EVENT_ASYNC_BYTES), EVENT_COMM_EST);
	cr_assert_eq(event_of(r.w->async_fd, EVENT_ASYNC_BYTES), -1);
}

Test(engine, events_come_only_when_armed_and_once)
{
	struct rig r = rig_new();

	rig_write(&r, true);
	cr_assert_eq(event_of(r.channel_fd, 8), -1, "not armed");
	rig_poll(&r);
	r.w->cq_record[1] = htobe32(r.read);
	engine_armed(r.e, r.w->cq->cqn);
	cr_assert_eq(event_of(r.channel_fd, 8), -1);
	rig_write(&r, true);
	rig_write(&r, true);
	cr_assert_eq(event_of(r.channel_fd, 8), 0x1234);
	cr_assert_eq(event_of(r.channel_fd, 8), -1, "armed once");
	engine_armed(r.e, r.w->cq->cqn);		/* the old request again: stale */
	cr_assert_eq(event_of(r.channel_fd, 8), -1);
	r.w->cq_record[1] = htobe32(1u << 28 | r.read);	/* behind two unread ones: at once */
	engine_armed(r.e, r.w->cq->cqn);
	cr_assert_eq(event_of(r.channel_fd, 8), 0x1234);
}

Test(engine, solicited_only_waits_for_solicited_or_failed)
{
	struct rig r = rig_new();
	struct side *a = &r.w->a;

	r.w->cq_record[1] = htobe32(ARM_SOLICITED);
	engine_armed(r.e, r.w->cq->cqn);
	rig_write(&r, true);
	cr_assert_eq(event_of(r.channel_fd, 8), -1);
	recv_post(&r.w->b, 64, 0, 0);
	work_post(a, (struct work_row){ .opcode = SEND, .bytes = 8, .is_solicited = true });
	engine_rang(r.e, a->qp->qpn);
	cr_assert_eq(event_of(r.channel_fd, 8), 0x1234);
	while (rig_poll(&r))
		;
	r.w->cq_record[1] = htobe32(1u << 28 | ARM_SOLICITED | r.read);
	engine_armed(r.e, r.w->cq->cqn);
	work_post(a, (struct work_row){ .opcode = 0x77, .bytes = 8 });
	engine_rang(r.e, a->qp->qpn);
	cr_assert_eq(event_of(r.channel_fd, 8), 0x1234, "an error completion is solicited");
}

/* --- moderation --- */

enum { PERIOD_US = 50 };

static void rig_moderate(struct rig *r, uint32_t count, uint32_t period_us)
{
	engine_enter(r->e);
	engine_cq_moderate(r->e, r->w->cq, count, period_us);
	engine_leave(r->e);
}

/* For event number @sn (device-abi C.9.4), from the oldest CQE that was not polled. */
static void rig_arm(struct rig *r, uint32_t sn, uint32_t flags)
{
	r->w->cq_record[1] = htobe32((sn & 3) << 28 | flags | r->read);
	engine_armed(r->e, r->w->cq->cqn);
}

static void rig_wait_us(struct rig *r, uint64_t us)
{
	clock_ns += us * 1000;
	engine_lend(r->e);
}

Test(engine, a_moderated_event_waits_for_its_count)
{
	struct rig r = rig_new();

	rig_moderate(&r, 3, PERIOD_US);
	for (uint32_t sn = 0; sn < 3; sn++) {
		rig_arm(&r, sn, 0);
		/* Those since the last event count, polled or not. */
		for (int i = 0; i < (sn ? 1 : 2); i++)
			rig_write(&r, true);
		cr_assert_eq(event_of(r.channel_fd, 8), -1, "too early");
		rig_write(&r, true);
		cr_assert_eq(event_of(r.channel_fd, 8), 0x1234);
		rig_write(&r, true);
		cr_assert_eq(event_of(r.channel_fd, 8), -1, "armed once");
		rig_wait_us(&r, 1000);
		cr_assert_eq(event_of(r.channel_fd, 8), -1, "its timer is still there");
		while (rig_poll(&r))
			;
	}
}

Test(engine, a_moderated_event_waits_no_longer_than_its_period)
{
	struct rig r = rig_new();

	rig_moderate(&r, 100, PERIOD_US);
	rig_arm(&r, 0, 0);
	rig_wait_us(&r, 10 * PERIOD_US);
	cr_assert_eq(event_of(r.channel_fd, 8), -1, "nothing has completed");
	rig_write(&r, true);
	cr_assert_eq(engine_deadline_ns(r.e), clock_ns + 1000 * PERIOD_US);
	rig_wait_us(&r, PERIOD_US - 1);
	rig_write(&r, true);			/* does not begin anew */
	cr_assert_eq(event_of(r.channel_fd, 8), -1);
	rig_wait_us(&r, 1);
	cr_assert_eq(event_of(r.channel_fd, 8), 0x1234);
	cr_assert_eq(engine_deadline_ns(r.e), UINT64_MAX);
	rig_arm(&r, 1, 0);			/* two unread that were told of */
	rig_wait_us(&r, 10 * PERIOD_US);
	cr_assert_eq(event_of(r.channel_fd, 8), -1);
}

Test(engine, what_is_there_when_the_cq_is_armed_waits_too)
{
	struct rig r = rig_new();

	rig_moderate(&r, 2, PERIOD_US);
	rig_write(&r, true);
	rig_arm(&r, 0, 0);
	cr_assert_eq(event_of(r.channel_fd, 8), -1);
	rig_wait_us(&r, PERIOD_US);
	cr_assert_eq(event_of(r.channel_fd, 8), 0x1234);
	rig_write(&r, true);
	rig_write(&r, true);
	rig_arm(&r, 1, 0);
	cr_assert_eq(event_of(r.channel_fd, 8), 0x1234, "two are there already");
}

Test(engine, arming_again_drops_what_was_polled)
{
	struct rig r = rig_new();

	rig_moderate(&r, 2, PERIOD_US);
	rig_arm(&r, 0, 0);
	rig_write(&r, true);
	rig_poll(&r);
	rig_arm(&r, 0, 0);
	rig_wait_us(&r, 2 * PERIOD_US);
	cr_assert_eq(event_of(r.channel_fd, 8), -1, "of a completion that was seen");
	rig_write(&r, true);
	cr_assert_eq(event_of(r.channel_fd, 8), 0x1234);
}

Test(engine, solicited_only_is_moderated_by_all_completions)
{
	struct rig r = rig_new();

	rig_moderate(&r, 3, PERIOD_US);
	rig_arm(&r, 0, ARM_SOLICITED);
	for (int i = 0; i < 5; i++)
		rig_write(&r, true);
	rig_wait_us(&r, 2 * PERIOD_US);
	cr_assert_eq(event_of(r.channel_fd, 8), -1);
	work_post(&r.w->a, (struct work_row){ .opcode = 0x77, .bytes = 8 });
	engine_rang(r.e, r.w->a.qp->qpn);
	cr_assert_eq(event_of(r.channel_fd, 8), 0x1234, "an error, and enough of others");
}

Test(engine, moderation_may_change_while_an_event_waits)
{
	static const struct { uint32_t count, period_us; int event; } rows[] = {
		{ 0, 0, 0x1234 }, { 0, 10, 0x1234 }, { 10, 0, 0x1234 }, { 1, 10, 0x1234 },
		{ 2, 10, -1 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct rig r = rig_new();

		rig_moderate(&r, 100, PERIOD_US);
		rig_arm(&r, 0, 0);
		rig_write(&r, true);
		cr_assert_eq(event_of(r.channel_fd, 8), -1);
		rig_moderate(&r, rows[i].count, rows[i].period_us);
		cr_assert_eq(event_of(r.channel_fd, 8), rows[i].event, "row %zu", i);
		rig_wait_us(&r, rows[i].period_us);
		cr_assert_eq(event_of(r.channel_fd, 8), rows[i].event < 0 ? 0x1234 : -1,
			     "row %zu", i);
	}
}

Test(engine, a_cq_that_goes_takes_its_timer_along)
{
	struct rig r = rig_new();

	r.w->a.qp->dest_qpn = 0xabcdef;		/* another timer beside it */
	rig_write(&r, true);
	rig_moderate(&r, 2, PERIOD_US);
	rig_arm(&r, 0, 0);
	work_post(&r.w->b, (struct work_row){ .opcode = 0x77, .bytes = 8 });
	engine_rang(r.e, r.w->b.qp->qpn);
	cr_assert_eq(engine_deadline_ns(r.e), clock_ns + 1000 * PERIOD_US);
	engine_enter(r.e);
	r.w->cq->obj.users = 0;
	engine_cq_forget(r.e, r.w->cq);
	engine_leave(r.e);
	cr_assert_eq(engine_deadline_ns(r.e), clock_ns + (UINT64_C(4096) << 14));
	cr_assert_eq(event_of(r.channel_fd, 8), -1);
}

Test(engine, an_overrun_fails_the_cq_then_the_qp)
{
	struct rig r = rig_new();

	for (int i = 0; i < 256; i++)
		rig_write(&r, true);
	cr_assert_eq(event_of(r.w->async_fd, EVENT_ASYNC_BYTES), -1, "exactly full is not overrun");
	rig_write(&r, true);
	cr_assert_eq(event_of(r.w->async_fd, EVENT_ASYNC_BYTES), EVENT_CQ_ERR);
	cr_assert_eq(r.w->a.qp->state, QP_RTS);
	rig_write(&r, true);
	cr_assert_eq(event_of(r.w->async_fd, EVENT_ASYNC_BYTES), EVENT_QP_FATAL);
	cr_assert_eq(r.w->a.qp->state, QP_ERR);
	expect_why(r.w, WHY_CQ_OVERRUN);
}

Test(engine, an_overrun_may_be_ignored)
{
	struct rig r = rig_new();

	r.w->cq->ignores_overrun = true;
	for (int i = 0; i < 300; i++)
		rig_write(&r, true);
	cr_assert_eq(event_of(r.w->async_fd, EVENT_ASYNC_BYTES), -1);
	cr_assert_eq(r.w->cq->produced, 300);
}

Test(engine, a_cq_whose_memory_is_gone_fails)
{
	struct rig r = rig_new();

	r.w->cq->buf_addr = 0x10000;
	rig_write(&r, true);
	cr_assert_eq(event_of(r.w->async_fd, EVENT_ASYNC_BYTES), EVENT_CQ_ERR);
	expect_why(r.w, WHY_CQ_MEMORY);
}

Test(engine, a_page_that_was_written_is_a_doorbell)
{
	struct rig r = rig_new();
	uint8_t *page = world_memory(4096);
	struct side *b = &r.w->b;

	cr_assert_eq(engine_page_add(r.e, page), 0);
	work_post(&r.w->a, (struct work_row){ .opcode = WRITE, .bytes = 8,
		.remote = (uintptr_t)b->data, .rkey = b->mr->key });
	engine_lend(r.e);
	cr_assert_not(rig_poll(&r));
	memcpy(page + 0x900, side_block(&r.w->a, 0), 8);
	engine_enter(r.e);
	engine_leave(r.e);
	cr_assert(rig_poll(&r));
	engine_page_remove(r.e, page);
	memset(page, 0xee, 4096);
	engine_enter(r.e);
	engine_leave(r.e);
}

/* Who rings himself but polls by the patched operations looks with each poll in vain. */
Test(engine, a_watched_page_is_looked_at_by_who_polls)
{
	struct rig r = rig_new();
	uint8_t *page = world_memory(4096);
	struct side *b = &r.w->b;

	cr_assert_eq(engine_page_add(r.e, page), 0);
	work_post(&r.w->a, (struct work_row){ .opcode = WRITE, .bytes = 8,
		.remote = (uintptr_t)b->data, .rkey = b->mr->key });
	memcpy(page + 0x900, side_block(&r.w->a, 0), 8);
	engine_lend(r.e);
	cr_assert_not(rig_poll(&r), "nobody is known to ring himself");
	engine_watch(r.e, 1);
	engine_lend(r.e);
	cr_assert(rig_poll(&r));
	engine_watch(r.e, -1);
	engine_page_remove(r.e, page);
}

Test(engine, more_doorbells_than_the_ring_holds_are_found_by_their_records)
{
	struct rig r = rig_new();
	struct side *b = &r.w->b;

	work_post(&r.w->a, (struct work_row){ .opcode = WRITE, .bytes = 8,
		.remote = (uintptr_t)b->data, .rkey = b->mr->key });
	engine_enter(r.e);			/* somebody else holds the device */
	for (int i = 0; i < 5000; i++)
		engine_rang(r.e, 0xffffff);
	engine_rang(r.e, r.w->a.qp->qpn);
	cr_assert_not(rig_poll(&r));
	engine_leave(r.e);
	cr_assert(rig_poll(&r));
}

Test(engine, a_destroyed_qp_leaves_nothing_behind)
{
	struct rig r = rig_new();
	uint32_t events;

	r.w->a.qp->dest_qpn = 0xabcdef;
	rig_write(&r, true);
	engine_enter(r.e);
	engine_qp_forget(r.e, r.w->a.qp);
	cr_assert_eq(qp_destroy(&r.w->dev, r.w->a.qp, &events), 0);
	engine_leave(r.e);
	clock_ns += UINT64_C(60000000000);
	engine_lend(r.e);
	cr_assert_not(rig_poll(&r));
	cr_assert_eq(engine_deadline_ns(r.e), UINT64_MAX);
}

/* --- many threads --- */

struct ringer { struct rig *r; struct side *side; };

static void *ringer_main(void *arg)
{
	struct ringer *me = arg;

	for (int i = 0; i < 40; i++) {
		work_post(me->side, (struct work_row){ .opcode = WRITE, .bytes = 8,
			.remote = (uintptr_t)me->r->w->b.data, .rkey = me->r->w->b.mr->key });
		engine_rang(me->r->e, me->side->qp->qpn);
	}
	return NULL;
}

/* QPs that stand in line, without memory or a peer: their turn only takes the mark away. */
enum { IN_LINE = 7 };

static void line_up(struct rig *r, struct emu_qp *qp)
{
	for (unsigned i = 0; i < IN_LINE; i++) {
		qp[i] = *r->w->a.qp;
		qp[i].work = QP_WORK_FLUSH;
		engine_qp_kick(r->e, &qp[i]);
	}
}

static void run(struct rig *r)
{
	pthread_mutex_lock(&r->w->dev.lock);
	while (engine_run(r->e))
		;
	pthread_mutex_unlock(&r->w->dev.lock);
}

Test(engine, any_qp_may_leave_the_line)
{
	for (unsigned gone = 0; gone < 1 << IN_LINE; gone++) {
		struct rig r = rig_new();
		struct emu_qp qp[IN_LINE];

		line_up(&r, qp);
		for (unsigned i = 0; i < IN_LINE; i++)	/* the last ones first */
			if (gone >> (IN_LINE - 1 - i) & 1)
				engine_qp_forget(r.e, &qp[IN_LINE - 1 - i]);
		rig_write(&r, true);			/* one more at the end */
		run(&r);
		cr_assert(rig_poll(&r), "mask %x", gone);
		for (unsigned i = 0; i < IN_LINE; i++) {
			bool is_gone = gone >> i & 1;

			cr_assert_eq(qp[i].work, is_gone ? QP_WORK_FLUSH : 0, "mask %x", gone);
			cr_assert_not(qp[i].is_ready);
		}
		engine_destroy(r.e);
	}
}

Test(engine, no_doorbell_is_lost_between_threads)
{
	struct rig r = rig_new();
	struct ringer a = { &r, &r.w->a }, b = { &r, &r.w->b };
	pthread_t thread[2];
	int got = 0;

	pthread_create(&thread[0], NULL, ringer_main, &a);
	pthread_create(&thread[1], NULL, ringer_main, &b);
	pthread_join(thread[0], NULL);
	pthread_join(thread[1], NULL);
	while (rig_poll(&r))
		got++;
	cr_assert_eq(got, 80);
}
