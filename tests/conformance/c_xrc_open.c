/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An XRC target QP that another process has opened with ibv_open_qp(): either modifies and queries
 * it and hears of its events, and it lives until the last of them has let it go.
 *
 * Within one process: c_xrc.c.  Rules: api-inventory XRC-2, QP-16; device-abi B.9 (open_qp).
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "harness/check.h"
#include "harness/trio.h"

TestSuite(xrc_open, .timeout = 90);

/* `far` has opened the target of `p.peer`, whose state both see. */
static void trio_open_target(struct trio *t, enum placement where)
{
	struct pair_opts o;
	int err;

	trio_defaults(&o);
	o.a.timeout = 14;
	o.a.retry = 3;
	trio_open_in(t, where, &o, NULL);
	err = peer_target_open(&t->far, t->p.ib.target_qpn);
	cr_assert_eq(err, 0, "open: %s", strerror(err));
}

/* Not RESET by the handle: there libmlx5 44 looks for a doorbell record. */
CASE_EACH(xrc_open, a_target_is_modified_and_queried_by_either)
{
	struct trio t;

	trio_open_target(&t, where);
	cr_expect_eq(peer_target_state(&t.far), IBV_QPS_RTS);
	cr_expect_eq(peer_target_to(&t.far, IBV_QPS_INIT), EINVAL, "no such edge");
	cr_expect_eq(peer_target_to(&t.far, IBV_QPS_ERR), 0);
	cr_expect_eq(peer_target_state(&t.p.peer), IBV_QPS_ERR);
	cr_expect_eq(peer_target_to(&t.p.peer, IBV_QPS_RESET), 0);
	cr_expect_eq(peer_target_state(&t.far), IBV_QPS_RESET);
	trio_close(&t);
}

CASE_EACH(xrc_open, what_cannot_be_opened)
{
	struct trio t;

	trio_open_target(&t, where);
	cr_expect_eq(peer_target_shut(&t.far), 0);
	cr_expect_eq(peer_target_open(&t.far, t.p.ib.qpn), EINVAL, "an initiator");
	cr_expect_eq(peer_target_open(&t.far, t.p.ib.target_qpn ^ 0x155), EINVAL, "no QP");
	cr_expect_eq(peer_target_open(&t.far, 0x7ffff0), EINVAL, "nobody's number");
	cr_expect_eq(peer_target_open(&t.far, t.p.ib.target_qpn), 0, "again");
	trio_close(&t);
}

CASE_EACH(xrc_open, a_target_of_another_domain_cannot_be_opened)
{
	struct pair_opts o;
	struct trio t;
	char other[72];

	trio_defaults(&o);
	snprintf(other, sizeof other, "%.60s.b", o.b.domain);
	trio_open_in(&t, where, &o, other);
	cr_expect_eq(peer_target_open(&t.far, t.p.ib.target_qpn), EINVAL);
	trio_close(&t);
	unlink(other);
}

CASE_EACH(xrc_open, every_process_hears_of_events)
{
	struct trio t;

	trio_open_target(&t, where);
	cr_assert_eq(peer_target_to(&t.far, IBV_QPS_ERR), 0);
	cr_expect(peer_event(&t.p.peer, IBV_EVENT_QP_LAST_WQE_REACHED, EVENT_MS), "its maker");
	cr_expect(peer_target_event(&t.far, IBV_EVENT_QP_LAST_WQE_REACHED, EVENT_MS), "far");
	cr_expect_not(peer_target_event(&t.far, IBV_EVENT_QP_LAST_WQE_REACHED, 0), "once");
	trio_close(&t);
}

CASE_EACH(xrc_open, a_refused_request_is_told_to_every_process)
{
	struct trio t;
	struct work w;

	trio_open_target(&t, where);
	w = far_work(&t, IBV_WR_RDMA_WRITE, 8);
	w.rkey ^= 0x3fff0000;
	must_post(&t.p, &w);
	await_error(&t.p, 1, IBV_WC_REM_ACCESS_ERR);
	cr_expect(peer_target_event(&t.far, IBV_EVENT_QP_ACCESS_ERR, EVENT_MS));
	cr_expect(peer_target_event(&t.far, IBV_EVENT_QP_LAST_WQE_REACHED, EVENT_MS));
	cr_expect_eq(peer_target_state(&t.far), IBV_QPS_ERR);
	trio_close(&t);
}

/* It serves on while anybody has it, and ends with the last handle. */
CASE_EACH(xrc_open, a_target_outlives_its_makers_handle)
{
	struct trio t;
	struct work w;

	trio_open_target(&t, where);
	cr_assert_eq(peer_target_destroy(&t.p.peer), 0);
	far_post(&t, 0, 0, ROOM);
	w = far_work(&t, IBV_WR_SEND, 64);
	must_post(&t.p, &w);
	await_ok(&t.p, 1, IBV_WC_SEND);
	far_await_ok(&t, 0, IBV_WC_RECV, 64);
	cr_expect_eq(peer_target_state(&t.far), IBV_QPS_RTS);
	cr_expect_eq(peer_target_shut(&t.far), 0);
	far_post(&t, 1, 0, ROOM);
	must_post(&t.p, &w);
	await_error(&t.p, 1, IBV_WC_RETRY_EXC_ERR);
	cr_expect_eq(peer_target_open(&t.far, t.p.ib.target_qpn), EINVAL, "it has ended");
	far_quiet(&t);
	trio_close(&t);
}

CASE_EACH(xrc_open, a_target_outlives_who_has_opened_it)
{
	struct trio t;
	struct work w;

	trio_open_target(&t, where);
	cr_expect_eq(peer_target_shut(&t.far), 0);
	cr_expect_eq(peer_target_state(&t.p.peer), IBV_QPS_RTS);
	far_post(&t, 0, 0, ROOM);
	w = far_work(&t, IBV_WR_SEND, 64);
	must_post(&t.p, &w);
	await_ok(&t.p, 1, IBV_WC_SEND);
	trio_close(&t);
}

/* Nobody has it then. */
CASE_EACH(xrc_open, the_last_who_has_the_target_is_killed)
{
	struct trio t;
	struct work w, r;
	struct done d;

	trio_open_target(&t, where);
	cr_assert_eq(peer_target_destroy(&t.p.peer), 0);
	peer_kill(&t.far);
	w = pair_work(&t.p, IBV_WR_SEND, 64);
	for (unsigned i = 0;; i++) {
		cr_assert_lt(i, 500, "the target serves on");
		r = pair_recv(&t.p, i, 0, 64);
		must_recv(&t.p, &r);
		must_post(&t.p, &w);
		end_await(&t.p.a, SEND_CQ, &d);
		if (d.wc.status != IBV_WC_SUCCESS)
			break;
		peer_await(&t.p.peer, RECV_CQ, &d);
		usleep(10000);
	}
	cr_expect_eq(d.wc.status, IBV_WC_RETRY_EXC_ERR, "%s", ibv_wc_status_str(d.wc.status));
	trio_end(&t);
}

CASE_EACH(xrc_open, a_stopped_process_that_has_opened_the_target_keeps_it)
{
	struct trio t;
	struct work w, r;

	trio_open_target(&t, where);
	peer_freeze(&t.far);
	cr_assert_eq(peer_target_destroy(&t.p.peer), 0);
	r = pair_recv(&t.p, 4, 0, 64);
	must_recv(&t.p, &r);
	w = pair_work(&t.p, IBV_WR_SEND, 64);
	must_post(&t.p, &w);
	await_ok(&t.p, 1, IBV_WC_SEND);
	await_recv_ok(&t.p, 4, 64);
	cr_assert_eq(kill(t.far.pid, SIGCONT), 0);
	cr_expect_eq(peer_target_state(&t.far), IBV_QPS_RTS);
	trio_close(&t);
}

/* Here the target ends with the process that made it; see CONFORMANCE.md. */
CASE_EACH(xrc_open, the_maker_of_the_target_is_killed)
{
	struct trio t;

	if (where != TWO_PROCESSES)
		return;
	trio_open_target(&t, where);
	peer_kill(&t.p.peer);
	cr_expect_eq(peer_target_to(&t.far, IBV_QPS_ERR), EIO);
	cr_expect_eq(peer_target_state(&t.far), IBV_QPS_UNKNOWN);
	cr_expect_eq(peer_target_shut(&t.far), 0);
	cr_expect_eq(peer_target_open(&t.far, t.p.ib.target_qpn), EINVAL);
	peer_stop(&t.far);
	end_close(&t.p.a);
	trio_unlink();
}

CASE_EACH(xrc_open, the_maker_of_the_target_leaves)
{
	struct trio t;

	if (where != TWO_PROCESSES)
		return;
	trio_open_target(&t, where);
	peer_stop(&t.p.peer);
	cr_expect(peer_target_event(&t.far, IBV_EVENT_QP_FATAL, EVENT_MS));
	cr_expect_eq(peer_target_to(&t.far, IBV_QPS_ERR), EIO);
	peer_stop(&t.far);
	end_close(&t.p.a);
	trio_unlink();
}
