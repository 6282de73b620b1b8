/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Moderation: events that wait for more completions, or for a time to pass.
 *
 * Rules: ibv_modify_cq(3); device-abi B.9 (modify_cq), C.9.7; api-inventory XCQ-4, XCQ-5.  When
 * exactly an event comes is measured nowhere here: t_engine does that with a clock of its own.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include "harness/check.h"

TestSuite(moderation, .timeout = 60);

static int moderate(struct ibv_cq *cq, uint16_t count, uint16_t period_us)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = count, .cq_period = period_us },
	};

	return ibv_modify_cq(cq, &attr);
}

Test(moderation, limits_are_those_of_the_attributes)
{
	struct ibv_context *c = device_open();
	struct ibv_device_attr_ex attr;
	struct ibv_modify_cq_attr none = { 0 }, unknown = { .attr_mask = 1 << 1 };
	struct ibv_cq *cq;

	cr_assert_not_null(c);
	cr_assert_eq(ibv_query_device_ex(c, NULL, &attr), 0);
	cr_assert_eq(attr.cq_mod_caps.max_cq_count, 65535);
	cr_assert_eq(attr.cq_mod_caps.max_cq_period, 4095);
	cq = ibv_create_cq(c, 16, NULL, NULL, 0);
	cr_assert_not_null(cq);
	cr_expect_eq(moderate(cq, 65535, 4095), 0);
	cr_expect_eq(moderate(cq, 1, 1), 0);
	cr_expect_eq(moderate(cq, 0, 0), 0);
	cr_expect_eq(moderate(cq, 1, 4096), EINVAL);
	cr_expect_eq(moderate(cq, 1, 65535), EINVAL);
	cr_expect_eq(ibv_modify_cq(cq, &none), EINVAL);
	cr_expect_neq(ibv_modify_cq(cq, &unknown), 0);
	cr_expect_eq(ibv_destroy_cq(cq), 0);
	cr_expect_eq(ibv_close_device(c), 0);
}

static bool take_event(struct end *e, int ms)
{
	struct pollfd p = { .fd = e->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (poll(&p, 1, ms) != 1)
		return false;
	cr_assert_eq(ibv_get_cq_event(e->channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	return true;
}

static void writes(struct pair *p, unsigned count)
{
	struct work w = pair_work(p, IBV_WR_RDMA_WRITE, 8);

	for (unsigned i = 0; i < count; i++)
		must_post(p, &w);
	for (unsigned i = 0; i < count; i++)
		await_ok(p, 1, IBV_WC_RDMA_WRITE);
}

/* Fewer than the count: the period ends the waiting of a program that sleeps. */
CASE_EACH(moderation, an_event_comes_at_the_latest_after_the_period)
{
	struct pair p;

	pair_open(&p, where, NULL);
	cr_assert_eq(moderate(p.a.cq[SEND_CQ], 1000, 4095), 0);
	for (unsigned round = 0; round < 5; round++) {
		cr_assert_eq(ibv_req_notify_cq(p.a.cq[SEND_CQ], 0), 0);
		writes(&p, 1);
		cr_assert(take_event(&p.a, AWAIT_MS), "round %u", round);
		cr_expect(!take_event(&p.a, 0), "round %u: armed once", round);
	}
	pair_close(&p);
}

/* As many as the count; that this is no later than the period, t_engine sees. */
CASE_EACH(moderation, an_event_comes_with_the_count)
{
	struct pair p;

	pair_open(&p, where, NULL);
	cr_assert_eq(moderate(p.a.cq[SEND_CQ], 8, 4095), 0);
	for (unsigned round = 0; round < 5; round++) {
		cr_assert_eq(ibv_req_notify_cq(p.a.cq[SEND_CQ], 0), 0);
		writes(&p, 8);
		cr_assert(take_event(&p.a, AWAIT_MS), "round %u", round);
	}
	pair_close(&p);
}

/* Switched off while an event waits: it comes, and later ones come at once. */
CASE_EACH(moderation, without_it_events_come_as_ever)
{
	struct pair p;

	pair_open(&p, where, NULL);
	cr_assert_eq(moderate(p.a.cq[SEND_CQ], 1000, 4095), 0);
	cr_assert_eq(ibv_req_notify_cq(p.a.cq[SEND_CQ], 0), 0);
	writes(&p, 1);
	cr_assert_eq(moderate(p.a.cq[SEND_CQ], 0, 0), 0);
	cr_expect(take_event(&p.a, 0), "it still waits");
	cr_assert_eq(ibv_req_notify_cq(p.a.cq[SEND_CQ], 0), 0);
	writes(&p, 1);
	cr_expect(take_event(&p.a, AWAIT_MS));
	pair_close(&p);
}

/* A CQ is destroyed while an event of it waits; nothing comes of that. */
CASE_EACH(moderation, a_waiting_event_goes_with_its_cq)
{
	struct pair p;

	pair_open(&p, where, NULL);
	cr_assert_eq(moderate(p.a.cq[SEND_CQ], 1000, 4095), 0);
	cr_assert_eq(ibv_req_notify_cq(p.a.cq[SEND_CQ], 0), 0);
	writes(&p, 1);
	cr_assert_eq(ibv_destroy_qp(p.a.qp), 0);
	cr_assert_eq(ibv_destroy_cq(p.a.cq[SEND_CQ]), 0);
	p.a.qp = NULL;
	p.a.cq[SEND_CQ] = NULL;
	cr_expect(!take_event(&p.a, 20));
	pair_close(&p);
}
