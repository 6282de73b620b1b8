/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The DC transport: sessions, changes of target, keys, responders that come and go, and packets
 * that nobody asked for.
 *
 * Method: as t_rc_*.c, with initiators and targets; see dc_world.h.
 * Source: device-abi H.1.
 */
#include <errno.h>
#include <sys/socket.h>
#include "emu/engine/engine.h"
#include "emu/obj/event_desc.h"
#include "emu/wire/wire.h"
#include "tests/unit/dc_world.h"

static void fill(uint8_t *at, uint32_t bytes, uint8_t seed)
{
	for (uint32_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)(i * 7 + i / 253 + seed);
}

/* --- what works --- */

static const struct operation_row {
	const char *name;
	uint8_t opcode;
	enum hw_cqe_kind recv;		/* 0: none */
	uint32_t bytes;
} operations[] = {
	{ "SEND", DC_SEND, HW_CQE_RECV, 3000 },
	{ "SEND one byte", DC_SEND, HW_CQE_RECV, 1 },
	{ "SEND_IMM", DC_SEND_IMM, HW_CQE_RECV_IMM, 100 },
	{ "WRITE", DC_WRITE, 0, 3000 },
	{ "WRITE_IMM", DC_WRITE_IMM, HW_CQE_RECV_WRITE_IMM, 64 },
	{ "READ", DC_READ, 0, 3000 },
	{ "fetch and add", DC_ADD, 0, 8 },
	{ "compare and swap", DC_CAS, 0, 8 },
};

static void check_data(const struct operation_row *row, const struct initiator *n,
		       const struct target *t)
{
	uint64_t value;

	if (row->opcode < DC_CAS) {
		cr_assert_eq(memcmp(n->s.data, t->data, row->bytes), 0, "%s", row->name);
		return;
	}
	memcpy(&value, t->data, 8);
	cr_assert_eq(value, 5, "%s", row->name);	/* 0 + 5, and 0 replaced by 5 */
}

Test(dc, each_operation_reaches_its_target)
{
	for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
		const struct operation_row *row = &operations[i];
		struct dc_world *d = dc_world_new();
		struct initiator n = initiator_new(d);
		struct target t = target_new(d);

		if (row->opcode < DC_CAS)
			fill(row->opcode == DC_READ ? t.data : n.s.data, row->bytes, 1);
		dc_recv(&t, 4096, 0);
		dc_post(d, &n, &t, (struct dc_work){ .opcode = row->opcode, .bytes = row->bytes,
						     .add = 5, .imm = 77 });
		dc_pump(d, &n, 1);
		if (row->recv) {
			struct hw_cqe c = dc_cqe(d, row->recv);

			cr_assert(c.has_origin);
			cr_assert_eq(c.src_qpn, n.s.qp->qpn, "%s", row->name);
			cr_assert_eq(c.bytes, row->bytes, "%s", row->name);
		}
		dc_cqe(d, HW_CQE_REQ);
		dc_none(d);
		check_data(row, &n, &t);
	}
}

Test(dc, a_nop_needs_no_target)
{
	struct dc_world *d = dc_world_new();
	struct initiator n = initiator_new(d);

	dc_post(d, &n, NULL, (struct dc_work){ .opcode = DC_NOP });
	dc_pump(d, &n, 1);
	dc_cqe(d, HW_CQE_REQ);
	cr_assert_eq(d->w->packets, 0);
}

/* On InfiniBand without a GRH both ends go by their LIDs, and the receiver learns of the way. */
Test(dc, lids_are_addresses_as_well)
{
	struct dc_world *d = dc_world_new();
	struct initiator n;
	struct target t;
	struct hw_cqe c;

	d->w->dev.profile = hw_profile_find("connectx-6");
	d->w->dev.lid = 9;
	n = initiator_new(d);
	t = target_new(d);
	dc_recv(&t, 64, 0);
	dc_post(d, &n, &t, (struct dc_work){ .opcode = DC_SEND, .bytes = 8 });
	dc_pump(d, &n, 1);
	c = dc_cqe(d, HW_CQE_RECV);
	cr_assert_eq(c.slid, 9);
	dc_cqe(d, HW_CQE_REQ);
}

/* The target answers from the LID that it was called by, or the initiator would not listen. */
Test(dc, path_bits_choose_among_the_lids)
{
	struct dc_world *d = dc_world_new();
	struct dc_work send = { .opcode = DC_SEND, .bytes = 8, .dlid = 0x1205, .path_bits = 0x7e };
	struct initiator n;
	struct target t;
	struct hw_cqe c;

	d->w->dev.profile = hw_profile_find("connectx-6");
	d->w->dev.lid = 0x1200;
	d->w->dev.lmc = 3;
	n = initiator_new(d);
	t = target_new(d);
	dc_recv(&t, 64, 0);
	dc_post(d, &n, &t, send);
	dc_pump(d, &n, 1);
	cr_assert_eq(ib_gid_lid(d->kept[0].sgid), 0x1206);
	cr_assert_eq(ib_gid_lid(d->kept[0].dgid), 0x1205);
	cr_assert_eq(ib_gid_lid(d->kept[1].sgid), 0x1205);
	cr_assert_eq(ib_gid_lid(d->kept[1].dgid), 0x1206);
	c = dc_cqe(d, HW_CQE_RECV);
	cr_assert_eq(c.slid, 0x1206);
	cr_assert_eq(c.path_bits, 5);
	dc_cqe(d, HW_CQE_REQ);
}

/* --- sessions --- */

/* One request to each of two targets: nothing for the second leaves before the first's answer. */
Test(dc, a_change_of_target_waits_for_acknowledgements)
{
	struct dc_world *d = dc_world_new();
	struct initiator n = initiator_new(d);
	struct target a = target_new(d), b = target_new(d);
	struct dc_work write = { .opcode = DC_WRITE, .bytes = 64 };

	d->holds_answers = true;
	dc_post(d, &n, &a, write);
	dc_post(d, &n, &a, write);
	dc_post(d, &n, &b, write);
	dc_post(d, &n, &a, write);
	dc_pump(d, &n, 1);
	cr_assert_eq(d->w->packets, 2, "%u packets", d->w->packets);
	cr_assert_eq(d->w->last.dest_qpn, a.qp->qpn);
	cr_assert_eq(d->kept[0].extra.dc_session, d->kept[1].extra.dc_session);
	d->holds_answers = false;
	dc_pump(d, &n, 1);
	for (int i = 0; i < 4; i++)
		dc_cqe(d, HW_CQE_REQ);
	dc_none(d);
}

/* The same number under another key or from another address is another target. */
Test(dc, a_target_is_number_key_and_path)
{
	static const struct dc_work others[] = {
		{ .opcode = DC_WRITE, .bytes = 8, .key_error = 1 },
		{ .opcode = DC_WRITE, .bytes = 8, .sgid_index = 1 },
		{ .opcode = DC_WRITE, .bytes = 8, .qpn_error = 1 },
	};

	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		struct dc_world *d = dc_world_new();
		struct initiator n = initiator_new(d);
		struct target t = target_new(d);

		d->w->dev.gid_count = 2;
		memcpy(d->w->dev.gid[1].raw, (uint8_t[16]){ 0xfe, 0x80, [15] = 2 }, 16);
		d->holds_answers = true;
		dc_post(d, &n, &t, (struct dc_work){ .opcode = DC_WRITE, .bytes = 8 });
		dc_post(d, &n, &t, others[i]);
		dc_pump(d, &n, 1);
		cr_assert_eq(d->w->packets, 1, "row %zu", i);
	}
}

static bool loses_all(struct world *w, const struct ib_packet *p)
{
	(void)w;
	(void)p;
	return true;
}

static unsigned lose_number;

static bool loses_one(struct world *w, const struct ib_packet *p)
{
	(void)p;
	return w->packets == lose_number;
}

static unsigned post_batch(struct dc_world *d, struct initiator *n, struct target *a,
			   struct target *b)
{
	static const struct dc_work batch[] = {
		{ .opcode = DC_SEND, .bytes = 3000, .offset = 0 },
		{ .opcode = DC_ADD, .bytes = 8, .offset = 8192, .add = 1 },
		{ .opcode = DC_READ, .bytes = 3000, .offset = 16384 },
		{ .opcode = DC_WRITE, .bytes = 3000, .offset = 32768 },
	};
	unsigned count = sizeof batch / sizeof *batch;

	for (unsigned i = 0; i < 2 * count; i++)
		dc_post(d, n, i < count ? a : b, batch[i % count]);
	return 2 * count;
}

static void check_target(struct target *t, const struct initiator *n)
{
	uint64_t sum;

	memcpy(&sum, t->data + 8192, 8);
	cr_assert_eq(sum, 1, "%lu times, packet %u lost", (unsigned long)sum, lose_number);
	cr_assert_eq(memcmp(t->data, n->s.data, 3000), 0);
	cr_assert_eq(memcmp(t->data + 32768, n->s.data + 32768, 3000), 0);
}

/* Any packet may be lost, the first of a session too, and everything still happens once. */
Test(dc, any_one_packet_may_be_lost)
{
	unsigned packets = 1000;

	for (lose_number = 1; lose_number <= packets; lose_number++) {
		struct dc_world *d = dc_world_new();
		struct initiator n = initiator_new(d);
		struct target a = target_new(d), b = target_new(d);
		unsigned sends = 0, count;

		d->w->bytes_max = 1024;
		d->w->loses = loses_one;
		fill(n.s.data, 40000, 3);
		dc_recv(&a, 4096, 0);
		dc_recv(&b, 4096, 0);
		count = post_batch(d, &n, &a, &b);
		dc_finish(d, &n);
		for (unsigned i = 0; i < d->w->seen_count; i++)
			sends += d->w->seen[i].kind == HW_CQE_REQ;
		cr_assert_eq(sends, count, "packet %u lost: %u", lose_number, sends);
		check_target(&a, &n);
		check_target(&b, &n);
		packets = d->w->packets;
	}
	cr_assert_gt(lose_number, 20);
}

/* What was sent in a session that is over does nothing, in either direction. */
Test(dc, packets_of_an_old_session_are_stale)
{
	struct dc_world *d = dc_world_new();
	struct initiator n = initiator_new(d);
	struct target a = target_new(d), b = target_new(d);
	struct ib_packet request, answer;
	uint64_t sum;

	dc_post(d, &n, &a, (struct dc_work){ .opcode = DC_ADD, .bytes = 8, .add = 1 });
	dc_pump(d, &n, 1);
	cr_assert_eq(d->kept_count, 2);
	request = d->kept[0];
	answer = d->kept[1];
	dc_post(d, &n, &b, (struct dc_work){ .opcode = DC_ADD, .bytes = 8, .add = 1 });
	dc_post(d, &n, &a, (struct dc_work){ .opcode = DC_ADD, .bytes = 8, .add = 1 });
	dc_pump(d, &n, 1);
	dc_deliver(d, &request);
	expect_why(d->w, WHY_PSN_STALE);
	d->holds_answers = true;
	dc_post(d, &n, &a, (struct dc_work){ .opcode = DC_ADD, .bytes = 8, .add = 1 });
	dc_pump(d, &n, 1);
	answer.psn = n.s.qp->req.psn_una;
	dc_deliver(d, &answer);
	expect_why(d->w, WHY_ACK_UNEXPECTED);
	for (int i = 0; i < 3; i++)
		dc_cqe(d, HW_CQE_REQ);
	dc_none(d);
	memcpy(&sum, a.data, 8);
	cr_assert_eq(sum, 3);
}

/* Only the target of now may answer. */
Test(dc, answers_of_others_are_dropped)
{
	struct dc_world *d = dc_world_new();
	struct initiator n = initiator_new(d);
	struct target t = target_new(d);
	struct ib_packet p = {
		.opcode = IB_DC | RC_ACKNOWLEDGE, .dest_qpn = n.s.qp->qpn, .sgid = { 1, 2, 3 },
		.packet_count = 1, .aeth_syndrome = AETH_ACK_UNLIMITED,
	};

	d->holds_answers = true;
	dc_post(d, &n, &t, (struct dc_work){ .opcode = DC_WRITE, .bytes = 8 });
	dc_pump(d, &n, 1);
	p.psn = n.s.qp->req.psn_una;
	p.extra.dc_session = n.s.qp->dci->session;
	dc_deliver(d, &p);
	expect_why(d->w, WHY_PACKET_SGID);
	dc_none(d);
}

/* A request whose session ends in the middle gives back the receive that it had begun. */
Test(dc, a_new_session_ends_the_message_before)
{
	struct dc_world *d = dc_world_new();
	struct initiator n = initiator_new(d);
	struct target t = target_new(d);
	struct hw_cqe c;

	d->w->bytes_max = 1024;
	dc_recv(&t, 4096, 0);
	dc_recv(&t, 4096, 0);
	dc_post(d, &n, &t, (struct dc_work){ .opcode = DC_SEND, .bytes = 3000 });
	initiator_step(d, &n);
	cr_assert_eq(qp_modify(&d->w->dev, n.s.qp, &(struct qp_attr){ .state = QP_RESET }, A_STATE),
		     0);
	n.s.posted_blocks = 0;
	memset(n.s.record, 0, 8);
	initiator_connect(d, &n, 500);
	dc_post(d, &n, &t, (struct dc_work){ .opcode = DC_SEND, .bytes = 8 });
	dc_pump(d, &n, 1);
	c = dc_cqe(d, HW_CQE_RECV_ERR);
	cr_assert_eq(c.syndrome, hw_syndromes[HW_FLUSHED].syndrome);
	cr_assert_eq(c.wqe_counter, 0);
	cr_assert_eq(dc_cqe(d, HW_CQE_RECV).wqe_counter, 1);
	dc_cqe(d, HW_CQE_REQ);
}

/* A number that is used again has later sessions, even if no time has passed. */
Test(dc, sessions_only_grow)
{
	struct dc_world *d = dc_world_new();
	struct initiator n = initiator_new(d);
	struct target t = target_new(d);
	uint64_t last = 0;

	for (int i = 0; i < 5; i++) {
		if (i == 3)
			dc_clock_ns -= 500;
		dc_post(d, &n, &t, (struct dc_work){ .opcode = DC_WRITE, .bytes = 8 });
		dc_pump(d, &n, 1);
		cr_assert_gt(n.s.qp->dci->session, last);
		last = n.s.qp->dci->session;
		dc_cqe(d, HW_CQE_REQ);
	}
}

/* --- refusals --- */

Test(dc, a_wrong_key_is_an_access_error)
{
	struct dc_world *d = dc_world_new();
	struct initiator n[2] = { initiator_new(d), initiator_new(d) };
	struct target t = target_new(d);

	dc_post(d, &n[0], &t, (struct dc_work){ .opcode = DC_WRITE, .bytes = 8,
						.key_error = UINT64_C(1) << 63 });
	fill(n[0].s.data, 8, 1);
	dc_pump(d, n, 2);
	dc_failed(d, HW_REM_ACCESS);
	expect_why(d->w, WHY_DC_KEY);
	cr_assert_eq(t.data[0], 0);
	cr_assert_eq(n[0].s.qp->state, QP_ERR);
	cr_assert_eq(t.qp->state, QP_RTR);
	dc_post(d, &n[1], &t, (struct dc_work){ .opcode = DC_WRITE, .bytes = 8 });
	dc_pump(d, n, 2);
	dc_cqe(d, HW_CQE_REQ);
}

/* A request that fails ends its session, not the target. */
Test(dc, a_refused_request_leaves_the_target_alone)
{
	struct dc_world *d = dc_world_new();
	struct initiator n = initiator_new(d);
	struct target t = target_new(d);

	dc_post(d, &n, &t, (struct dc_work){ .opcode = DC_WRITE, .bytes = 8, .rkey = 0x12345600 });
	dc_post(d, &n, &t, (struct dc_work){ .opcode = DC_WRITE, .bytes = 8 });
	dc_pump(d, &n, 1);
	dc_failed(d, HW_REM_ACCESS);
	dc_failed(d, HW_FLUSHED);
	dc_none(d);
	cr_assert_eq(qp_modify(&d->w->dev, n.s.qp, &(struct qp_attr){ .state = QP_RESET }, A_STATE),
		     0);
	n.s.posted_blocks = 0;
	memset(n.s.record, 0, 8);
	initiator_connect(d, &n, 1);
	dc_post(d, &n, &t, (struct dc_work){ .opcode = DC_WRITE, .bytes = 8 });
	dc_pump(d, &n, 1);
	dc_cqe(d, HW_CQE_REQ);
}

Test(dc, an_empty_source_gid_fails_the_request)
{
	static const uint8_t indices[] = { 1, 200 };

	for (size_t i = 0; i < sizeof indices; i++) {
		struct dc_world *d = dc_world_new();
		struct initiator n = initiator_new(d);
		struct target t = target_new(d);

		d->w->dev.gid_count = 2;
		dc_post(d, &n, &t, (struct dc_work){ .opcode = DC_WRITE, .bytes = 8,
						     .sgid_index = indices[i] });
		dc_pump(d, &n, 1);
		dc_failed(d, HW_LOC_QP_OP);
		expect_why(d->w, WHY_AV_SGID);
		cr_assert_eq(d->w->packets, 0);
	}
}

/* A program may write over an address that waits for its turn. */
Test(dc, an_address_that_goes_bad_while_it_waits)
{
	struct dc_world *d = dc_world_new();
	struct initiator n = initiator_new(d);
	struct target a = target_new(d), b = target_new(d);
	struct dc_work bad = { .opcode = DC_WRITE, .bytes = 8, .sgid_index = 9 };

	d->holds_answers = true;
	dc_post(d, &n, &a, (struct dc_work){ .opcode = DC_WRITE, .bytes = 8 });
	dc_post(d, &n, &b, (struct dc_work){ .opcode = DC_WRITE, .bytes = 8 });
	dc_pump(d, &n, 1);
	datagram_write(d, n.s.queue + 2 * 64 + 16, &b, &bad);
	d->holds_answers = false;
	dc_pump(d, &n, 1);
	dc_cqe(d, HW_CQE_REQ);
	dc_failed(d, HW_LOC_QP_OP);
	dc_none(d);
}

Test(dc, silence_spends_the_retries)
{
	struct dc_world *d = dc_world_new();
	struct initiator n = initiator_new(d);
	struct target t = target_new(d);

	d->w->loses = loses_all;
	dc_post(d, &n, &t, (struct dc_work){ .opcode = DC_SEND, .bytes = 8 });
	dc_finish(d, &n);
	dc_failed(d, HW_RETRY_EXC);
	cr_assert_eq(d->w->packets, 3);
	for (unsigned i = 1; i < 3; i++)
		cr_assert_eq(d->kept[i].extra.dc_session, d->kept[0].extra.dc_session);
}

Test(dc, a_target_without_receives_says_so)
{
	struct dc_world *d = dc_world_new();
	struct initiator n = initiator_new(d);
	struct target t = target_new(d);

	dc_post(d, &n, &t, (struct dc_work){ .opcode = DC_SEND, .bytes = 8 });
	dc_pump(d, &n, 1);
	cr_assert(n.s.qp->req.is_waiting_rnr);
	dc_recv(&t, 64, 0);
	rc_timer(&d->w->tp, n.s.qp);
	dc_pump(d, &n, 1);
	dc_cqe(d, HW_CQE_RECV);
	dc_cqe(d, HW_CQE_REQ);
	dc_post(d, &n, &t, (struct dc_work){ .opcode = DC_SEND, .bytes = 8 });
	dc_finish(d, &n);
	dc_failed(d, HW_RNR_RETRY_EXC);
}

/* A number behind which there is no target, or one that is not ready, is silence. */
Test(dc, only_a_ready_target_answers)
{
	struct dc_world *d = dc_world_new();
	struct initiator n = initiator_new(d);
	struct target t = target_new(d);
	uint32_t events;

	cr_assert_eq(qp_destroy(&d->w->dev, t.qp, &events), 0);
	t.qp = &(struct emu_qp){ .qpn = 0xabcdef };
	dc_post(d, &n, &t, (struct dc_work){ .opcode = DC_WRITE, .bytes = 8 });
	dc_finish(d, &n);
	dc_failed(d, HW_RETRY_EXC);
}

/* --- responders --- */

/* With room for two, the third initiator takes the place of who was silent for longest. */
Test(dc, the_responder_that_was_silent_goes)
{
	struct dc_world *d = dc_world_new();
	struct initiator n[3] = { initiator_new(d), initiator_new(d), initiator_new(d) };
	static const int turns[] = { 0, 1, 0, 2, 0, 1 };
	struct target t = target_new(d);

	t.qp->dct->count_max = 2;
	for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
		dc_post(d, &n[turns[i]], &t, (struct dc_work){ .opcode = DC_ADD, .bytes = 8,
							       .add = 1 });
		dc_pump(d, n, 3);
		dc_cqe(d, HW_CQE_REQ);
		cr_assert_leq(t.qp->dct->count, 2);
	}
	cr_assert_eq(d->forgotten, 2);		/* 1 for 2, then 2 for 1; 0 was always heard of */
	cr_assert_not_null(dcr_find(t.qp, n[0].s.qp->qpn, d->w->dev.gid[0].raw));
	cr_assert_null(dcr_find(t.qp, n[2].s.qp->qpn, d->w->dev.gid[0].raw));
}

/* Its receive goes back to the application. */
Test(dc, a_responder_that_goes_gives_back_its_receive)
{
	struct dc_world *d = dc_world_new();
	struct initiator n[2] = { initiator_new(d), initiator_new(d) };
	struct target t = target_new(d);

	d->w->bytes_max = 1024;
	t.qp->dct->count_max = 1;
	dc_recv(&t, 4096, 0);
	dc_post(d, &n[0], &t, (struct dc_work){ .opcode = DC_SEND, .bytes = 3000 });
	initiator_step(d, &n[0]);
	dc_post(d, &n[1], &t, (struct dc_work){ .opcode = DC_WRITE, .bytes = 8 });
	initiator_step(d, &n[1]);
	cr_assert_eq(dc_cqe(d, HW_CQE_RECV_ERR).syndrome, hw_syndromes[HW_FLUSHED].syndrome);
	cr_assert_eq(t.qp->dct->count, 1);
}

/* A target that is destroyed in the middle of everything leaves nothing behind. */
Test(dc, destroying_a_target_ends_its_responders)
{
	struct dc_world *d = dc_world_new();
	struct initiator n[2] = { initiator_new(d), initiator_new(d) };
	struct target t = target_new(d);
	uint32_t events;

	d->w->bytes_max = 1024;
	dc_recv(&t, 4096, 0);
	dc_post(d, &n[0], &t, (struct dc_work){ .opcode = DC_SEND, .bytes = 3000 });
	dc_post(d, &n[1], &t, (struct dc_work){ .opcode = DC_READ, .bytes = 3000 });
	initiator_step(d, &n[0]);
	initiator_step(d, &n[1]);
	cr_assert_eq(t.qp->dct->count, 2);
	for (struct emu_qp *dcr = t.qp->dct->oldest; dcr; dcr = dcr->dcr->newer)
		dc_forget(&d->w->tp, dcr);
	cr_assert_eq(qp_destroy(&d->w->dev, t.qp, &events), 0);
	for (unsigned i = 0; i < DC_RECVS; i++)
		cr_assert_eq(t.srq->is_held[i], 0);
	cr_assert_eq(srq_destroy(&d->w->dev, t.srq, &events), 0);
	dc_finish(d, &n[0]);
	dc_failed(d, HW_RETRY_EXC);
}

/* The queue that an initiator may name at its creation gives it no receives to run out of. */
Test(dc, an_initiator_has_no_last_receive)
{
	struct dc_world *d = dc_world_new();
	struct initiator n = initiator_new(d);
	struct target t = target_new(d);
	struct event_async event;

	n.s.qp->srq = t.srq;
	dc_post(d, &n, &t, (struct dc_work){ .opcode = DC_WRITE, .bytes = 8, .key_error = 1 });
	dc_pump(d, &n, 1);
	dc_failed(d, HW_REM_ACCESS);
	cr_assert_eq(n.s.qp->work & QP_WORK_FLUSH, 0);
	cr_assert_eq(recv(d->w->async_fd, &event, sizeof event, MSG_DONTWAIT), -1);
}

/* --- packets of a broken peer --- */

/* Each half takes its own sort only, whatever else fits. */
Test(dc, requests_to_an_initiator_and_answers_to_a_target)
{
	struct dc_world *d = dc_world_new();
	struct initiator n = initiator_new(d);
	struct target t = target_new(d);
	struct ib_packet p;

	d->holds_answers = true;
	dc_post(d, &n, &t, (struct dc_work){ .opcode = DC_WRITE, .bytes = 8 });
	dc_post(d, &n, &t, (struct dc_work){ .opcode = DC_WRITE, .bytes = 8 });
	dc_pump(d, &n, 1);
	p = d->kept[1];
	p.opcode = IB_DC | RC_SEND_ONLY;
	p.dest_qpn = n.s.qp->qpn;
	p.src_qpn = t.qp->qpn;
	dc_deliver(d, &p);
	expect_why(d->w, WHY_PACKET_TRANSPORT);
	dc_none(d);
	p = (struct ib_packet){ .opcode = IB_DC | RC_ACKNOWLEDGE, .dest_qpn = t.qp->qpn,
		.src_qpn = 77, .packet_count = 1,
		.extra = { .dc_key = DC_KEY, .dc_session = UINT64_MAX } };
	dc_deliver(d, &p);
	cr_assert_eq(t.qp->dct->count, 1);
}

static uint32_t random_next(void)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 16);
}

static struct ib_packet packet_of_garbage(const struct dc_world *d, uint32_t dest_qpn,
					  const struct iovec *span)
{
	struct ib_packet p = {
		.opcode = IB_DC | (random_next() & 31),
		.dest_qpn = dest_qpn, .src_qpn = random_next() % 50,
		.wants_ack = random_next() & 1, .pkey = 0xffff, .mtu_bytes = 1024,
		.packet_count = 1 + random_next() % 3, .psn = random_next() & 3,
		.va = random_next(), .rkey = random_next(), .dma_bytes = random_next() % 3000,
		.aeth_syndrome = (uint8_t)random_next(), .span = span, .span_count = 1,
		.payload_bytes = random_next() % span->iov_len,
		.extra = { .dc_key = random_next() & 1 ? DC_KEY : random_next(),
			   .dc_session = random_next() % 8,
			   .dc_first_psn = random_next() & 0xf0000003, .sl = 0xff },
	};

	memcpy(p.sgid, d->w->dev.gid[0].raw, sizeof p.sgid);
	p.sgid[15] = random_next() & 1;
	memcpy(p.dgid, d->w->dev.gid[0].raw, sizeof p.dgid);
	return p;
}

/* Nothing that comes unasked completes a request of ours, and everything works afterwards. */
Test(dc, garbage_changes_nothing)
{
	struct dc_world *d = dc_world_new();
	struct initiator n = initiator_new(d);
	struct target t = target_new(d);
	uint8_t *bytes = world_memory(4096);
	const struct iovec span = { bytes, 4096 };
	bool is_readable = true;

	t.qp->dct->count_max = 20;
	for (unsigned i = 0; i < 100000; i++) {
		struct emu_qp *to = i & 1 ? t.qp : n.s.qp;
		struct ib_packet p = packet_of_garbage(d, to->qpn, &span);

		is_readable &= transport_of(to)->take(&d->w->tp, to, &p);
		while (d->ready_count > 32)
			responder_step(d);
		d->kept_count = 0;
	}
	cr_assert(is_readable);
	expect_why(d->w, WHY_PACKET_TRANSPORT);
	dc_pump(d, &n, 1);
	cr_assert_eq(n.s.qp->state, QP_RTS);
	cr_assert_leq(t.qp->dct->count, 20);
	dc_none(d);
	dc_clock_ns += 1000000;
	dc_post(d, &n, &t, (struct dc_work){ .opcode = DC_WRITE, .bytes = 8 });
	dc_pump(d, &n, 1);
	dc_cqe(d, HW_CQE_REQ);
}

/* --- in the engine --- */

static struct ib_packet arriving;

static int receive_once(struct wire *wire, struct ib_packet *out)
{
	static bool was_taken;
	bool is_there = !was_taken;

	(void)wire;
	was_taken = true;
	*out = arriving;
	return is_there;
}

static enum wire_sent send_full(struct wire *wire, const struct ib_packet *p)
{
	(void)wire;
	(void)p;
	return WIRE_FULL;
}

static void release_nothing(struct wire *wire)
{
	(void)wire;
}

static const struct wire_ops full_wire_ops = {
	.name = "full", .send = send_full, .receive = receive_once, .release = release_nothing,
	.packet_bytes_max = 4096,
};

/* A responder that waits for room on the wire is in a list of the engine. */
Test(dc, the_engine_forgets_a_target_with_its_responders)
{
	struct dc_world *d = dc_world_new();
	struct target t = target_new(d);
	struct wire wire = { .ops = &full_wire_ops };
	struct engine *e;
	uint32_t events;

	cr_assert_eq(engine_create(&d->w->dev, &wire, NULL, &e), 0);
	arriving = (struct ib_packet){ .opcode = IB_DC | RC_READ_REQUEST, .packet_count = 1,
		.mtu_bytes = 1024, .pkey = 0xffff, .dest_qpn = t.qp->qpn, .src_qpn = 0x123456,
		.va = (uintptr_t)t.data, .rkey = t.mr->key, .dma_bytes = 8, .wants_ack = true,
		.extra = { .dc_key = DC_KEY, .dc_session = 5 } };
	memcpy(arriving.sgid, (uint8_t[16]){ 1 }, 16);
	memcpy(arriving.dgid, d->w->dev.gid[0].raw, 16);
	engine_run(e);
	cr_assert_eq(t.qp->dct->count, 1);
	cr_assert(t.qp->dct->oldest->is_blocked);
	engine_qp_forget(e, t.qp);
	cr_assert_eq(qp_destroy(&d->w->dev, t.qp, &events), 0);
	engine_run(e);
}

/* --- the state of a target --- */

Test(dc, a_target_is_made_once)
{
	struct dc_world *d = dc_world_new();
	struct target t = target_new(d);
	static const enum qp_state states[] = { QP_RESET, QP_INIT, QP_RTR, QP_RTS, QP_ERR };

	for (size_t i = 0; i < sizeof states / sizeof *states; i++)
		cr_assert_eq(qp_modify(&d->w->dev, t.qp, &(struct qp_attr){ .state = states[i] },
				       A_STATE), -EINVAL);
	cr_assert_eq(t.qp->state, QP_RTR);
}
