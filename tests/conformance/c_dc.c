/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dynamically connected QPs: initiators that talk to several targets, and what goes wrong.
 *
 * Rules: device-abi E.2 (states), H.1 (DC); expected-statuses.md.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include "harness/check.h"
#include "harness/dc.h"

TestSuite(dc, .timeout = 60);

enum { TARGETS = 3 };

struct talk {
	struct dc_far far;
	struct dci i;
};

static void talk_open_with(struct talk *t, enum placement where, const struct dc_opts *opts)
{
	int err;

	dc_far_open(&t->far, where, TARGETS);
	err = dci_open(&t->i, opts, &t->far.info);
	cr_assert_eq(err, 0, "initiator: %s", strerror(err));
}

static void talk_open(struct talk *t, enum placement where)
{
	struct dc_opts opts;

	dc_defaults(&opts);
	talk_open_with(t, where, &opts);
}

static void check_quiet_talk(struct talk *t)
{
	struct done d;

	dci_glance(&t->i, &d);
	check_none("initiator", &d);
	dc_far_glance(&t->far, &d);
	check_none("target", &d);
}

static void talk_close(struct talk *t)
{
	check_quiet_talk(t);
	dci_close(&t->i);
	dc_far_close(&t->far);
}

static void must_post_dc(struct talk *t, struct dc_work w)
{
	int err = dci_post(&t->i, &t->far.info, &w);

	cr_assert_eq(err, 0, "post: %s", strerror(err));
}

static void await_sent(struct talk *t, uint64_t wr_id, enum ibv_wc_opcode opcode)
{
	struct done d;

	dci_await(&t->i, &d);
	check_ok("initiator", &d, wr_id, opcode);
}

static void await_failed(struct talk *t, uint64_t wr_id, enum ibv_wc_status status)
{
	struct done d;

	dci_await(&t->i, &d);
	check_error("initiator", &d, wr_id, status, t->i.qp->qp_num, 0, -1);
}

static void await_received(struct talk *t, uint64_t wr_id, unsigned target, uint32_t bytes)
{
	struct done d;

	dc_far_await(&t->far, &d);
	check_ok("target", &d, wr_id, IBV_WC_RECV);
	cr_assert_eq(d.wc.byte_len, bytes);
	cr_assert_eq(d.wc.qp_num, t->far.info.dctn[target], "0x%x received", d.wc.qp_num);
	cr_assert_eq(d.wc.src_qp, t->i.qp->qp_num, "0x%x sent", d.wc.src_qp);
}

/* One WRITE that works: the initiator and this target are well. */
static void check_works(struct talk *t, unsigned target)
{
	must_post_dc(t, (struct dc_work){ .opcode = IBV_WR_RDMA_WRITE, .wr_id = 99,
					  .target = target, .bytes = 8 });
	await_sent(t, 99, IBV_WC_RDMA_WRITE);
}

/* --- what works --- */

static const struct operation_row {
	const char *name;
	enum ibv_wr_opcode opcode;
	enum ibv_wc_opcode wc;
	uint32_t bytes;
	bool receives, is_inline;
} operations[] = {
	{ "SEND", IBV_WR_SEND, IBV_WC_SEND, 100, true, false },
	{ "SEND inline", IBV_WR_SEND, IBV_WC_SEND, 60, true, true },
	{ "SEND empty", IBV_WR_SEND, IBV_WC_SEND, 0, true, true },
	{ "SEND long", IBV_WR_SEND, IBV_WC_SEND, 1000000, true, false },
	{ "SEND_IMM", IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, 3000, true, false },
	{ "WRITE", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, 100, false, false },
	{ "WRITE long", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, 1500001, false, false },
	{ "WRITE_IMM", IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, 5000, true, false },
	{ "READ", IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, 100, false, false },
	{ "READ long", IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, 1500001, false, false },
};

static void check_received(struct talk *t, const struct operation_row *row)
{
	bool is_write = row->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	struct done d;

	dc_far_await(&t->far, &d);
	check_ok(row->name, &d, 5, is_write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
	cr_assert_eq(d.wc.byte_len, row->bytes, "%s", row->name);
	cr_assert_eq(d.wc.src_qp, t->i.qp->qp_num, "%s", row->name);
	cr_assert_eq(d.wc.qp_num, t->far.info.dctn[1], "%s", row->name);
	if (is_write || row->opcode == IBV_WR_SEND_WITH_IMM)
		cr_assert_eq(be32toh(d.wc.imm_data), 0x12345678, "%s", row->name);
}

CASE_TABLE(dc, each_operation_reaches_its_target, ROWS(operations))
{
	const struct operation_row *o = &operations[row];
	bool is_read = o->opcode == IBV_WR_RDMA_READ;
	struct talk t;

	talk_open(&t, where);
	if (is_read)
		dc_far_fill(&t.far, 0, o->bytes, 1);
	else
		pattern_fill(t.i.buf, o->bytes, 1);
	if (o->receives)
		dc_far_recv(&t.far, 5, 0, 1 << 20);
	must_post_dc(&t, (struct dc_work){ .opcode = o->opcode, .wr_id = 4, .target = 1,
					   .bytes = o->bytes, .imm = 0x12345678,
					   .is_inline = o->is_inline });
	await_sent(&t, 4, o->wc);
	if (o->receives)
		check_received(&t, o);
	cr_assert_eq(is_read ? pattern_differs(t.i.buf, o->bytes, 1) :
		     dc_far_differs(&t.far, 0, o->bytes, 1), -1, "%s", o->name);
	talk_close(&t);
}

CASE_EACH(dc, atomics_act_on_their_target)
{
	struct dc_work w = { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .bytes = 8, .wr_id = 1,
			     .compare_add = 7 };
	uint64_t old;
	struct talk t;

	talk_open(&t, where);
	must_post_dc(&t, w);
	await_sent(&t, 1, IBV_WC_FETCH_ADD);
	w = (struct dc_work){ .opcode = IBV_WR_ATOMIC_CMP_AND_SWP, .bytes = 8, .wr_id = 2,
			      .target = 2, .compare_add = 7, .swap = 100 };
	must_post_dc(&t, w);
	await_sent(&t, 2, IBV_WC_COMP_SWAP);
	memcpy(&old, t.i.buf, sizeof old);
	cr_assert_eq(old, 7);
	cr_assert_eq(dc_far_word(&t.far, 0), 100);
	talk_close(&t);
}

/* H.1: one target after the other, and everything in the order of posting. */
CASE_EACH(dc, targets_alternate)
{
	enum { ROUNDS = 100, DEPTH = 16 };
	struct talk t;

	talk_open(&t, where);
	for (unsigned i = 0; i < ROUNDS + DEPTH; i++) {
		if (i >= DEPTH)
			await_sent(&t, i - DEPTH, IBV_WC_FETCH_ADD);
		if (i < ROUNDS)
			must_post_dc(&t, (struct dc_work){ .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
				.wr_id = i, .target = i / 2 % TARGETS, .bytes = 8, .offset = i * 8,
				.compare_add = 1 });
	}
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t old;

		memcpy(&old, t.i.buf + i * 8, sizeof old);
		cr_assert_eq(old, i, "request %lu found %lu", (unsigned long)i, (unsigned long)old);
	}
	talk_close(&t);
}

/* A full queue, of which only the last request is signalled. */
CASE_EACH(dc, a_completion_retires_the_unsignalled_requests_before_it)
{
	struct talk t;

	talk_open(&t, where);
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < 32; i++)
			must_post_dc(&t, (struct dc_work){ .opcode = IBV_WR_RDMA_WRITE,
				.wr_id = i, .target = i % TARGETS, .bytes = 100,
				.is_unsignaled = i < 31 });
		await_sent(&t, 31, IBV_WC_RDMA_WRITE);
	}
	talk_close(&t);
}

/* Several initiators at one target: each message says who sent it. */
CASE_EACH(dc, many_initiators_share_a_target)
{
	enum { MANY = 12 };
	struct talk t;
	struct dci others[MANY];
	struct dc_opts opts;
	struct done d;

	talk_open(&t, where);
	dc_defaults(&opts);
	for (unsigned i = 0; i < MANY; i++) {
		cr_assert_eq(dci_open(&others[i], &opts, &t.far.info), 0);
		dc_far_recv(&t.far, i, i * 64, 64);
	}
	for (unsigned i = 0; i < MANY; i++) {
		struct dc_work w = { .opcode = IBV_WR_SEND, .wr_id = 1, .bytes = 64 };

		pattern_fill(others[i].buf, 64, i);
		cr_assert_eq(dci_post(&others[i], &t.far.info, &w), 0);
		dci_await(&others[i], &d);
		check_ok("initiator", &d, 1, IBV_WC_SEND);
		dc_far_await(&t.far, &d);
		check_ok("target", &d, i, IBV_WC_RECV);
		cr_assert_eq(d.wc.src_qp, others[i].qp->qp_num);
		cr_assert_eq(dc_far_differs(&t.far, i * 64, 64, i), -1);
	}
	for (unsigned i = 0; i < MANY; i++)
		dci_close(&others[i]);
	talk_close(&t);
}

/* Streams are numbers here: requests of all of them are served one after the other. */
CASE_EACH(dc, streams_are_accepted)
{
	struct dc_opts opts;
	struct talk t;

	dc_defaults(&opts);
	opts.has_streams = true;
	talk_open_with(&t, where, &opts);
	for (unsigned i = 0; i < 20; i++) {
		must_post_dc(&t, (struct dc_work){ .opcode = IBV_WR_RDMA_WRITE, .wr_id = i,
			.target = i % TARGETS, .bytes = 8, .stream = (uint16_t)(1 + i % 6) });
		await_sent(&t, i, IBV_WC_RDMA_WRITE);
	}
	talk_close(&t);
}

/* --- what goes wrong --- */

static const struct failure_row {
	const char *name;
	enum ibv_wr_opcode opcode;
	struct dc_work error;
	enum ibv_wc_status status;
} failures[] = {
	{ "wrong key, WRITE", IBV_WR_RDMA_WRITE, { .key_error = 1 }, IBV_WC_REM_ACCESS_ERR },
	{ "wrong key, SEND", IBV_WR_SEND, { .key_error = UINT64_C(1) << 63 },
	  IBV_WC_REM_ACCESS_ERR },
	{ "bad rkey, WRITE", IBV_WR_RDMA_WRITE, { .rkey_error = 0x100 }, IBV_WC_REM_ACCESS_ERR },
	{ "bad rkey, READ", IBV_WR_RDMA_READ, { .rkey_error = 1 }, IBV_WC_REM_ACCESS_ERR },
	{ "out of range", IBV_WR_RDMA_WRITE, { .remote_offset = DC_BYTES - 4 },
	  IBV_WC_REM_ACCESS_ERR },
	{ "unaligned atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, { .remote_offset = 4 },
	  IBV_WC_REM_INV_REQ_ERR },
	{ "no receive", IBV_WR_SEND, { 0 }, IBV_WC_RNR_RETRY_EXC_ERR },
	{ "no such target", IBV_WR_RDMA_WRITE, { .qpn_error = 0x800000 }, IBV_WC_RETRY_EXC_ERR },
	{ "out of range here", IBV_WR_RDMA_WRITE, { .offset = DC_BYTES - 4 },
	  IBV_WC_LOC_PROT_ERR },
};

/* The initiator fails, the target does not; the initiator is well after a reset. */
CASE_TABLE(dc, a_failed_request_fails_its_initiator_only, ROWS(failures))
{
	struct dc_work w = failures[row].error;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct talk t;

	talk_open(&t, where);
	check_works(&t, 1);
	w.opcode = failures[row].opcode;
	w.wr_id = 1;
	w.bytes = 8;
	w.target = 1;
	must_post_dc(&t, w);
	must_post_dc(&t, (struct dc_work){ .opcode = IBV_WR_RDMA_WRITE, .wr_id = 2, .bytes = 8 });
	await_failed(&t, 1, failures[row].status);
	await_failed(&t, 2, IBV_WC_WR_FLUSH_ERR);
	cr_assert_eq(ibv_query_qp(t.i.qp, &attr, IBV_QP_STATE, &init), 0);
	cr_assert_eq(attr.qp_state, IBV_QPS_ERR, "%s", failures[row].name);
	cr_assert_eq(dci_reset(&t.i), 0);
	check_works(&t, 1);
	check_works(&t, 2);
	talk_close(&t);
}

/* Table F.1, row 4; the receive belongs to the target and not to the queue's other users. */
CASE_EACH(dc, a_receive_that_is_too_small)
{
	struct talk t;
	struct done d;

	talk_open(&t, where);
	dc_far_recv(&t.far, 7, 0, 64);
	dc_far_recv(&t.far, 8, 0, 64);
	must_post_dc(&t, (struct dc_work){ .opcode = IBV_WR_SEND, .wr_id = 1, .bytes = 65 });
	await_failed(&t, 1, IBV_WC_REM_INV_REQ_ERR);
	dc_far_await(&t.far, &d);
	check_error("target", &d, 7, IBV_WC_LOC_LEN_ERR, t.far.info.dctn[0], -1, -1);
	cr_assert_eq(dci_reset(&t.i), 0);
	must_post_dc(&t, (struct dc_work){ .opcode = IBV_WR_SEND, .wr_id = 2, .bytes = 64 });
	await_sent(&t, 2, IBV_WC_SEND);
	await_received(&t, 8, 0, 64);
	talk_close(&t);
}

CASE_EACH(dc, a_target_that_is_gone_is_silent)
{
	struct talk t;

	talk_open(&t, where);
	check_works(&t, 0);
	check_works(&t, 1);
	cr_assert_eq(dc_far_destroy(&t.far, 0), 0);
	check_works(&t, 1);
	must_post_dc(&t, (struct dc_work){ .opcode = IBV_WR_RDMA_WRITE, .wr_id = 1, .bytes = 8 });
	await_failed(&t, 1, IBV_WC_RETRY_EXC_ERR);
	cr_assert_eq(dci_reset(&t.i), 0);
	cr_assert_eq(dc_far_make(&t.far, 0), 0);
	check_works(&t, 0);
	check_works(&t, 1);
	talk_close(&t);
}

/* F.4: neither the first packet, nor one that is refused, is an event of the target. */
Test(dc, nothing_that_happens_to_a_target_is_an_event)
{
	struct pollfd ready = { .events = POLLIN };
	struct talk t;

	talk_open(&t, ONE_THREAD);
	check_works(&t, 0);
	must_post_dc(&t, (struct dc_work){ .opcode = IBV_WR_RDMA_WRITE, .wr_id = 1, .bytes = 8,
					   .rkey_error = 0x100 });
	await_failed(&t, 1, IBV_WC_REM_ACCESS_ERR);
	cr_assert_eq(dci_reset(&t.i), 0);
	must_post_dc(&t, (struct dc_work){ .opcode = IBV_WR_RDMA_WRITE, .wr_id = 2, .bytes = 8,
					   .key_error = 1 });
	await_failed(&t, 2, IBV_WC_REM_ACCESS_ERR);
	ready.fd = t.far.here.context->async_fd;
	cr_assert_eq(poll(&ready, 1, 0), 0);
	ready.fd = t.i.context->async_fd;
	cr_assert_eq(poll(&ready, 1, 0), 0);
	talk_close(&t);
}

/* --- commands --- */

struct desk {
	struct dc_host h;
	struct dci i;
};

static void desk_open(struct desk *d)
{
	struct dc_info info = { 0 };
	struct dc_opts opts;

	cr_assert_eq(dc_host_open(&d->h, 0), 0);
	dc_defaults(&opts);
	info.gid = dc_address(d->h.context);
	cr_assert_eq(dci_open(&d->i, &opts, &info), 0);
}

static void desk_close(struct desk *d)
{
	dci_close(&d->i);
	dc_host_close(&d->h);
}

/* E.2: a target has a number from RTR on. */
Test(dc, a_target_gets_its_number_in_rtr)
{
	struct ibv_qp *qp;
	struct desk d;

	desk_open(&d);
	qp = dct_create(&d.h, d.h.srq);
	cr_assert_not_null(qp);
	cr_assert_eq(qp->qp_num, 0);
	cr_assert_eq(dct_to_init(qp), 0);
	cr_assert_eq(qp->qp_num, 0);
	cr_assert_eq(dct_to_rtr(qp), 0);
	cr_assert_neq(qp->qp_num, 0);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	desk_close(&d);
}

/* B.9.7 */
Test(dc, a_target_needs_a_shared_queue)
{
	struct desk d;

	desk_open(&d);
	cr_assert_null(dct_create(&d.h, NULL));
	cr_assert_eq(errno, EINVAL);
	desk_close(&d);
}

static const struct {
	const char *name;
	enum ibv_qp_state from, to;
	int mask;
} refusals[] = {
	{ "INIT without access", IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT },
	{ "INIT with a Q_Key", IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT |
	  IBV_QP_ACCESS_FLAGS | IBV_QP_QKEY },
	{ "RTR at once", IBV_QPS_RESET, IBV_QPS_RTR,
	  IBV_QP_MIN_RNR_TIMER | IBV_QP_AV | IBV_QP_PATH_MTU },
	{ "RTR without address", IBV_QPS_INIT, IBV_QPS_RTR,
	  IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MTU },
	{ "RTR with a number", IBV_QPS_INIT, IBV_QPS_RTR,
	  IBV_QP_MIN_RNR_TIMER | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN },
	{ "INIT again", IBV_QPS_INIT, IBV_QPS_INIT, 0 },
	{ "RTS", IBV_QPS_RTR, IBV_QPS_RTS, 0 },
	{ "ERR", IBV_QPS_RTR, IBV_QPS_ERR, 0 },
	{ "RESET", IBV_QPS_RTR, IBV_QPS_RESET, 0 },
};

Test(dc, a_target_is_made_and_never_changed)
{
	struct desk d;

	desk_open(&d);
	for (size_t i = 0; i < ROWS(refusals); i++) {
		struct ibv_qp *qp = dct_create(&d.h, d.h.srq);
		struct ibv_qp_attr attr = {
			.qp_state = refusals[i].to, .port_num = 1, .path_mtu = IBV_MTU_1024,
			.ah_attr = { .is_global = 1, .port_num = 1,
				     .grh = { .sgid_index = GID_INDEX } },
		};

		cr_assert_not_null(qp);
		if (refusals[i].from >= IBV_QPS_INIT)
			cr_assert_eq(dct_to_init(qp), 0);
		if (refusals[i].from >= IBV_QPS_RTR)
			cr_assert_eq(dct_to_rtr(qp), 0);
		cr_assert_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE | refusals[i].mask), EINVAL,
			     "%s", refusals[i].name);
		cr_assert_eq(ibv_destroy_qp(qp), 0);
	}
	desk_close(&d);
}

/* The driver answers for a target that is made, and for these attributes only. */
Test(dc, what_query_tells_of_a_target)
{
	enum { TOLD = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PORT | IBV_QP_MIN_RNR_TIMER |
		      IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_PKEY_INDEX };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_qp *qp;
	struct desk d;

	desk_open(&d);
	qp = dct_create(&d.h, d.h.srq);
	cr_assert_eq(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), EINVAL);
	cr_assert_eq(dct_to_init(qp), 0);
	cr_assert_eq(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), EINVAL);
	cr_assert_eq(dct_to_rtr(qp), 0);
	cr_assert_eq(ibv_query_qp(qp, &attr, TOLD, &init), 0);
	cr_assert_eq(attr.qp_state, IBV_QPS_RTR);
	cr_assert_eq(attr.qp_access_flags, ACCESS_ALL & ~IBV_ACCESS_LOCAL_WRITE);
	cr_assert_eq(attr.port_num, 1);
	cr_assert_eq(attr.min_rnr_timer, 1);
	cr_assert_eq(attr.path_mtu, IBV_MTU_1024);
	cr_assert_eq(ibv_query_qp(qp, &attr, TOLD | IBV_QP_CAP, &init), EINVAL);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	desk_close(&d);
}

/* E.2: the initiator's own table. */
Test(dc, what_an_initiator_may_become)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD };
	struct ibv_qp_init_attr init;
	struct desk d;

	desk_open(&d);
	cr_assert_eq(ibv_modify_qp(d.i.qp, &attr, IBV_QP_STATE), EINVAL);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .min_rnr_timer = 3 };
	cr_assert_eq(ibv_modify_qp(d.i.qp, &attr, IBV_QP_MIN_RNR_TIMER), EINVAL);
	cr_assert_eq(ibv_modify_qp(d.i.qp, &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS), EINVAL);
	cr_assert_eq(ibv_modify_qp(d.i.qp, &attr, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER), 0);
	cr_assert_eq(ibv_query_qp(d.i.qp, &attr, IBV_QP_MIN_RNR_TIMER, &init), 0);
	cr_assert_eq(attr.min_rnr_timer, 3);
	cr_assert_eq(attr.qp_state, IBV_QPS_RTS);
	cr_assert_eq(attr.ah_attr.is_global, 0);
	attr.qp_state = IBV_QPS_ERR;
	cr_assert_eq(ibv_modify_qp(d.i.qp, &attr, IBV_QP_STATE), 0);
	cr_assert_eq(dci_reset(&d.i), 0);
	desk_close(&d);
}

/* A target keeps what it works with. */
Test(dc, a_target_holds_its_objects)
{
	struct ibv_qp *qp;
	struct desk d;

	desk_open(&d);
	qp = dct_create(&d.h, d.h.srq);
	cr_assert_eq(ibv_destroy_srq(d.h.srq), EBUSY);
	cr_assert_eq(ibv_destroy_cq(d.h.cq), EBUSY);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	desk_close(&d);
}
