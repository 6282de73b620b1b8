/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows: what frees them, in which order things happen, and what they hold on to.
 *
 * Rules: expected-statuses.md, "Requester and responder"; device-abi D; api-inventory 4.1.
 */
#include <stdlib.h>
#include "harness/mw.h"

TestSuite(mw_life, .timeout = 60);

static uint32_t other_region(struct mw *m)
{
	struct end_info info;

	cr_assert_geq(peer_register(&m->p.peer, m->p.ib.addr, AREA_BYTES, ACCESS_ALL, false, &info),
		      0);
	return info.rkey;
}

/* ---- invalidated by its own end ---- */

CASE_EACH(mw_life, a_local_invalidate_ends_the_key)
{
	struct mw m;

	mw_open(&m, where, IBV_MW_TYPE_2);
	mw_bind(&m);
	mw_write_works(&m, m.ask.rkey);
	mw_invalidate(&m);
	mw_write_fails(&m, m.ask.rkey);
	mw_close(&m);
}

/* With the next low byte, and with the same. */
CASE_EACH(mw_life, an_invalidated_window_is_bound_again)
{
	uint32_t first;
	struct window_ask ask;
	struct mw m;

	mw_open(&m, where, IBV_MW_TYPE_2);
	for (unsigned step = 0; step < 3; step++) {
		ask = mw_bind_ask(&m);
		ask.tag_step = step;
		first = m.ask.rkey;
		mw_post_bind(&m, &ask);
		mw_await(&m, 21, IBV_WC_BIND_MW);
		cr_expect_eq(m.ask.rkey & 0xff, (first + step) & 0xff);
		mw_write_works(&m, m.ask.rkey);
		mw_invalidate(&m);
	}
	mw_bind(&m);
	mw_write_fails(&m, first);
	mw_close(&m);
}

enum stale { UNBOUND, TWICE, TYPE_1, REGION, UNKNOWN, OTHER_QP, STALE_COUNT };

static const char *const stale_names[STALE_COUNT] = {
	[UNBOUND] = "never bound", [TWICE] = "invalidated before", [TYPE_1] = "type 1",
	[REGION] = "a region", [UNKNOWN] = "no key at all", [OTHER_QP] = "another QP's",
};

/* A key that its owner's QP can't invalidate. */
static uint32_t stale_key(struct mw *m, enum stale stale, enum placement where)
{
	mw_open(m, where, stale == TYPE_1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
	if (stale == UNBOUND)
		return m->ask.rkey;
	if (stale == REGION)
		return other_region(m);
	if (stale == UNKNOWN)
		return m->ask.rkey ^ 0x3fff0000;
	mw_bind(m);
	if (stale == TWICE)
		mw_invalidate(m);
	if (stale == OTHER_QP)
		mw_swap_qps(m, true);
	return m->ask.rkey;
}

CASE_TABLE(mw_life, a_local_invalidate_of_the_wrong_key_says_mw_bind, STALE_COUNT)
{
	struct mw m;
	uint32_t key = stale_key(&m, (enum stale)row, where);

	cr_assert_eq(mw_post_invalidate(&m, key), 0);
	mw_await_error(&m, stale_names[row], 22);
	check_states(stale_names[row], &m.p, IBV_QPS_RTS, IBV_QPS_ERR);
	mw_close(&m);
}

/* What was not invalidated works as before, through another QP. */
CASE_EACH(mw_life, a_refused_invalidate_leaves_the_key_alone)
{
	struct mw m;

	mw_open(&m, where, IBV_MW_TYPE_1);
	mw_bind(&m);
	cr_assert_eq(mw_post_invalidate(&m, m.ask.rkey), 0);
	mw_await_error(&m, "type 1", 22);
	mw_swap_qps(&m, true);
	mw_write_works(&m, m.ask.rkey);
	mw_close(&m);
}

CASE_EACH(mw_life, type_2_is_not_bound_while_it_is_bound)
{
	for (unsigned step = 0; step < 2; step++) {
		struct window_ask ask;
		struct mw m;

		mw_open(&m, where, IBV_MW_TYPE_2);
		mw_bind(&m);
		ask = mw_bind_ask(&m);
		ask.tag_step = step;
		mw_post_bind(&m, &ask);
		mw_await_error(&m, "bound", 21);
		mw_close(&m);
	}
}

/* A bind of no bytes. */
CASE_EACH(mw_life, type_1_of_length_0_is_unbound)
{
	struct window_ask ask;
	struct mw m;

	mw_open(&m, where, IBV_MW_TYPE_1);
	mw_bind(&m);
	mw_write_works(&m, m.ask.rkey);
	ask = mw_bind_ask(&m);
	ask.bytes = 0;
	mw_post_bind(&m, &ask);
	mw_await(&m, 21, IBV_WC_BIND_MW);
	mw_bind(&m);
	mw_write_works(&m, m.ask.rkey);
	mw_post_bind(&m, &ask);
	mw_await(&m, 21, IBV_WC_BIND_MW);
	mw_write_fails(&m, m.ask.rkey);
	mw_close(&m);
}

/* ---- invalidated by the peer ---- */

static void post_send_inv(struct mw *m, uint32_t key)
{
	struct work w = pair_work(&m->p, IBV_WR_SEND_WITH_INV, 64);
	struct work r = pair_recv(&m->p, 9, 0, 64);

	w.imm = key;
	must_recv(&m->p, &r);
	must_post(&m->p, &w);
	await_ok(&m->p, 1, IBV_WC_SEND);
}

CASE_EACH(mw_life, a_send_with_invalidate_frees_the_window)
{
	struct done d;
	struct mw m;

	mw_open(&m, where, IBV_MW_TYPE_2);
	for (int round = 0; round < 3; round++) {
		mw_bind(&m);
		mw_write_works(&m, m.ask.rkey);
		post_send_inv(&m, m.ask.rkey);
		peer_await(&m.p.peer, RECV_CQ, &d);
		check_ok("receive", &d, 9, IBV_WC_RECV);
		cr_expect_eq(d.wc.byte_len, 64);
		cr_expect_eq(d.wc.wc_flags, IBV_WC_WITH_INV);
		cr_expect_eq(d.wc.invalidated_rkey, m.ask.rkey, "0x%x, want 0x%x",
			     d.wc.invalidated_rkey, m.ask.rkey);
	}
	mw_write_fails(&m, m.ask.rkey);
	mw_close(&m);
}

/* The message is acknowledged; the receive tells of the key. */
CASE_TABLE(mw_life, a_send_with_invalidate_of_the_wrong_key_fails_the_receive, STALE_COUNT)
{
	struct mw m;
	uint32_t key = stale_key(&m, (enum stale)row, where);

	post_send_inv(&m, key);
	await_recv_error(&m.p, 9, IBV_WC_REM_INV_REQ_ERR);
	cr_expect(peer_event(&m.p.peer, IBV_EVENT_QP_ACCESS_ERR, AWAIT_MS), "%s",
		  stale_names[row]);
	check_states(stale_names[row], &m.p, IBV_QPS_RTS, IBV_QPS_ERR);
	mw_close(&m);
}

/* ---- order ---- */

/* api-inventory 4.1, 7: the new key may be sent at once, without waiting for the bind. */
CASE_EACH(mw_life, a_send_behind_a_bind_finds_it_done)
{
	struct mw m;

	mw_open(&m, where, IBV_MW_TYPE_1);
	for (int round = 0; round < 50; round++) {
		struct window_ask ask = mw_bind_ask(&m);
		struct ibv_recv_wr *bad, recv = { .wr_id = 5 };
		struct work w = { .opcode = IBV_WR_SEND, .wr_id = 23, .flags = IBV_SEND_SIGNALED };
		struct done d;

		cr_assert_eq(ibv_post_recv(m.p.a.qp, &recv, &bad), 0);
		ask.flags = 0;
		mw_post_bind(&m, &ask);
		cr_assert_eq(peer_post(&m.p.peer, &w), 0);
		end_await(&m.p.a, RECV_CQ, &d);
		check_ok("receive", &d, 5, IBV_WC_RECV);
		mw_write_works(&m, m.ask.rkey);
		mw_await(&m, 23, IBV_WC_SEND);
	}
	mw_close(&m);
}

/* Everything completes in the order in which it was posted, whatever takes a way over the wire. */
CASE_EACH(mw_life, binds_complete_among_other_requests_in_order)
{
	static const enum ibv_wc_opcode opcodes[] = {
		IBV_WC_RDMA_WRITE, IBV_WC_BIND_MW, IBV_WC_RDMA_READ, IBV_WC_LOCAL_INV,
		IBV_WC_FETCH_ADD, IBV_WC_BIND_MW, IBV_WC_RDMA_WRITE,
	};
	struct mw m;

	mw_open(&m, where, IBV_MW_TYPE_2);
	for (int round = 0; round < 5; round++) {
		uint32_t length = 8;

		for (uint64_t i = 0; i < ROWS(opcodes); i++) {
			struct window_ask ask = mw_bind_ask(&m);
			struct work w = {
				.wr_id = 100 + i, .flags = IBV_SEND_SIGNALED, .imm = m.ask.rkey,
				.remote_addr = m.p.ia.addr, .rkey = m.p.ia.rkey, .sge_count = 1,
				.sge = { { m.p.ib.addr, length, m.p.ib.lkey } },
				.opcode = opcodes[i] == IBV_WC_RDMA_WRITE ? IBV_WR_RDMA_WRITE :
					  opcodes[i] == IBV_WC_RDMA_READ ? IBV_WR_RDMA_READ :
					  opcodes[i] == IBV_WC_FETCH_ADD ?
					  IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_LOCAL_INV,
			};

			ask.wr_id = 100 + i;
			if (w.opcode == IBV_WR_LOCAL_INV)
				w.sge_count = 0;
			if (opcodes[i] == IBV_WC_BIND_MW)
				mw_post_bind(&m, &ask);
			else
				cr_assert_eq(peer_post(&m.p.peer, &w), 0);
		}
		for (uint64_t i = 0; i < ROWS(opcodes); i++)
			mw_await(&m, 100 + i, opcodes[i]);
		mw_write_works(&m, m.ask.rkey);
		mw_invalidate(&m);
	}
	mw_close(&m);
}

/* A fence holds an invalidate back until READs have their data; here only that it ends well. */
CASE_EACH(mw_life, a_fenced_invalidate_follows_a_read)
{
	struct work w, inv = { .opcode = IBV_WR_LOCAL_INV, .wr_id = 25,
			       .flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE };
	struct mw m;

	mw_open(&m, where, IBV_MW_TYPE_2);
	mw_bind(&m);
	w = (struct work){ .opcode = IBV_WR_RDMA_READ, .wr_id = 24, .flags = IBV_SEND_SIGNALED,
			   .remote_addr = m.p.ia.addr, .rkey = m.p.ia.rkey, .sge_count = 1,
			   .sge = { { m.p.ib.addr, 32768, m.p.ib.lkey } } };
	inv.imm = m.ask.rkey;
	cr_assert_eq(peer_post(&m.p.peer, &w), 0);
	cr_assert_eq(peer_post(&m.p.peer, &inv), 0);
	mw_await(&m, 24, IBV_WC_RDMA_READ);
	mw_await(&m, 25, IBV_WC_LOCAL_INV);
	mw_close(&m);
}

/* The failed bind has its own error, the rest is flushed. */
CASE_EACH(mw_life, what_stands_behind_a_failed_bind_is_flushed)
{
	struct work w = { .opcode = IBV_WR_LOCAL_INV, .wr_id = 26 };
	struct window_ask ask;
	struct done d;
	struct mw m;

	mw_open(&m, where, IBV_MW_TYPE_2);
	ask = mw_bind_ask(&m);
	ask.bytes = UINT64_C(1) << 20;
	ask.flags = 0;
	mw_post_bind(&m, &ask);
	w.imm = m.ask.rkey;
	cr_assert_eq(peer_post(&m.p.peer, &w), 0);
	mw_await_error(&m, "out of the region", 21);
	peer_await(&m.p.peer, SEND_CQ, &d);
	check_error("behind", &d, 26, IBV_WC_WR_FLUSH_ERR, m.p.ib.qpn, WQE_UMR, -1);
	mw_close(&m);
}

CASE_EACH(mw_life, a_bind_in_the_error_state_is_flushed)
{
	struct window_ask ask;
	struct done d;
	struct mw m;

	mw_open(&m, where, IBV_MW_TYPE_1);
	cr_assert_eq(peer_to(&m.p.peer, IBV_QPS_ERR), 0);
	ask = mw_bind_ask(&m);
	mw_post_bind(&m, &ask);
	peer_await(&m.p.peer, SEND_CQ, &d);
	check_error("in ERR", &d, 21, IBV_WC_WR_FLUSH_ERR, m.p.ib.qpn, WQE_UMR, -1);
	mw_close(&m);
}

/* ---- unreliable ---- */

/* api-inventory 4.1, 14.  What is refused is dropped, and nobody hears of it. */
CASE_EACH(mw_life, windows_work_over_uc)
{
	struct window_ask ask;
	struct work w;
	struct done d;
	struct mw m;

	mw_open_over(&m, where, IBV_MW_TYPE_2, IBV_QPT_UC);
	mw_bind(&m);
	pattern_fill(m.p.a.buf, 64, 4);
	w = mw_work(&m, IBV_WR_RDMA_WRITE, m.ask.rkey);
	must_post(&m.p, &w);
	await_ok(&m.p, 1, IBV_WC_RDMA_WRITE);
	w.remote_addr += AREA_BYTES;
	must_post(&m.p, &w);
	await_ok(&m.p, 1, IBV_WC_RDMA_WRITE);
	post_send_inv(&m, m.ask.rkey);
	peer_await(&m.p.peer, RECV_CQ, &d);
	check_ok("receive", &d, 9, IBV_WC_RECV);
	cr_expect_eq(d.wc.invalidated_rkey, m.ask.rkey);
	cr_expect_eq(peer_differs(&m.p.peer, AREA, 8, 4), -1);
	cr_expect_neq(peer_differs(&m.p.peer, AREA + AREA_BYTES, 8, 4), -1, "out of the window");
	mw_bind(&m);
	mw_invalidate(&m);
	ask = mw_bind_ask(&m);
	ask.bytes = UINT64_C(1) << 20;
	mw_post_bind(&m, &ask);
	mw_await_error(&m, "out of the region", 21);
	mw_close(&m);
}

/* ---- what a window holds on to ---- */

static int bind_to_region(struct mw *m)
{
	struct window_ask ask = mw_bind_ask(m);
	struct end_info info;

	ask.region = peer_register(&m->p.peer, m->p.ib.addr + AREA, AREA_BYTES,
				   ACCESS_ALL | IBV_ACCESS_MW_BIND, false, &info);
	cr_assert_geq(ask.region, 0);
	mw_post_bind(m, &ask);
	mw_await(m, 21, IBV_WC_BIND_MW);
	return ask.region;
}

/* api-inventory 4.1, 2 */
CASE_EACH(mw_life, a_region_stays_while_a_window_is_bound_to_it)
{
	struct mw m;
	int region;

	mw_open(&m, where, IBV_MW_TYPE_2);
	region = bind_to_region(&m);
	cr_expect_eq(peer_deregister(&m.p.peer, region), EBUSY);
	mw_write_works(&m, m.ask.rkey);
	mw_invalidate(&m);
	mw_close(&m);
}

Test(mw_life, a_region_goes_when_its_last_window_is_free)
{
	struct ibv_mr *mr;
	struct window_ask ask;
	struct mw m;

	mw_open(&m, ONE_THREAD, IBV_MW_TYPE_2);
	mr = m.p.peer.here.mr;
	mw_bind(&m);
	cr_expect_eq(ibv_dereg_mr(mr), EBUSY);
	mw_invalidate(&m);
	mw_bind(&m);
	cr_expect_eq(ibv_dereg_mr(mr), EBUSY);
	ask = (struct window_ask){ .verb = WINDOW_FREE, .slot = m.ask.slot };
	cr_expect_eq(peer_window(&m.p.peer, &ask), 0);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	m.p.peer.here.mr = NULL;
	mw_close(&m);
}

/* expected-statuses: as the kernel's driver does it.  The window leads nowhere then. */
CASE_EACH(mw_life, a_region_may_go_if_the_environment_says_so)
{
	struct mw m;

	setenv("VERBENA_MW_BOUND_DEREG", "allow", 1);
	mw_open(&m, where, IBV_MW_TYPE_2);
	cr_assert_eq(peer_deregister(&m.p.peer, bind_to_region(&m)), 0);
	mw_write_fails(&m, m.ask.rkey);
	mw_close(&m);
}

/* api-inventory 4.1, 9 */
CASE_EACH(mw_life, a_bound_window_is_freed_with_its_key)
{
	for (int type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
		struct window_ask ask;
		struct mw m;

		mw_open(&m, where, type);
		mw_bind(&m);
		ask = (struct window_ask){ .verb = WINDOW_FREE, .slot = m.ask.slot };
		cr_expect_eq(peer_window(&m.p.peer, &ask), 0);
		mw_write_fails(&m, m.ask.rkey);
		mw_close(&m);
	}
}

/* device-abi D: the end of its QP frees a type 2 window.  Another QP may bind it then. */
CASE_EACH(mw_life, the_windows_of_a_destroyed_qp_are_free)
{
	uint32_t key;
	int region;
	struct mw m;

	mw_open(&m, where, IBV_MW_TYPE_2);
	region = bind_to_region(&m);
	key = m.ask.rkey;
	cr_assert_eq(peer_destroy_qp(&m.p.peer), 0);
	cr_expect_eq(peer_deregister(&m.p.peer, region), 0);
	mw_swap_qps(&m, true);
	mw_bind(&m);
	mw_write_works(&m, m.ask.rkey);
	mw_write_fails(&m, key);
	mw_close(&m);
}

/* A reset is no end: same QP, same number. */
CASE_EACH(mw_life, a_window_outlives_a_reset_of_its_qp)
{
	struct mw m;

	mw_open(&m, where, IBV_MW_TYPE_2);
	mw_bind(&m);
	cr_assert_eq(peer_to(&m.p.peer, IBV_QPS_RESET), 0);
	cr_assert_eq(end_to(&m.p.a, IBV_QPS_RESET), 0);
	pair_connect(&m.p);
	mw_write_works(&m, m.ask.rkey);
	mw_invalidate(&m);
	mw_write_fails(&m, m.ask.rkey);
	mw_close(&m);
}
