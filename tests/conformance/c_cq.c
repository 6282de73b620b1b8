/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion events: arming, channels, acknowledging.
 *
 * Rules: ibv_req_notify_cq(3), ibv_get_cq_event(3); device-abi C.9.4 (arming), B.10 (the
 * channel's descriptor); rxe-oracle section 7, "CQ, notification".
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "harness/check.h"

TestSuite(cq, .timeout = 60);

static int wait_readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms);
}

/* An event of a's channel, read and acknowledged; false: none within @ms. */
static bool take_event(struct end *e, struct ibv_cq *want, int ms)
{
	struct ibv_cq *cq;
	void *context;

	if (wait_readable(e->channel->fd, ms) != 1)
		return false;
	cr_assert_eq(ibv_get_cq_event(e->channel, &cq, &context), 0);
	cr_expect_eq(cq, want, "event of another CQ");
	ibv_ack_cq_events(cq, 1);
	return true;
}

static void one_write(struct pair *p)
{
	struct work w = pair_work(p, IBV_WR_RDMA_WRITE, 8);

	must_post(p, &w);
}

/* The other end sends to a; @flags as IBV_SEND_*. */
static void send_to_a(struct pair *p, enum ibv_wr_opcode op, unsigned flags)
{
	struct work r = { .wr_id = 5, .sge_count = 1, .sge = { { p->ia.addr, 64, p->ia.lkey } } };
	struct work w = { .opcode = op, .flags = flags, .remote_addr = p->ia.addr,
		.rkey = p->ia.rkey, .sge_count = 1, .sge = { { p->ib.addr, 8, p->ib.lkey } } };

	cr_assert_eq(end_post_recv(&p->a, &r), 0);
	cr_assert_eq(peer_post(&p->peer, &w), 0);
}

static void drain_recv(struct pair *p)
{
	struct done d;

	end_await(&p->a, RECV_CQ, &d);
	cr_assert(d.found);
}

CASE_EACH(cq, no_event_without_arming)
{
	struct pair p;

	pair_open(&p, where, NULL);
	one_write(&p);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	cr_expect(!take_event(&p.a, p.a.cq[SEND_CQ], 0));
	pair_close(&p);
}

/* One event an arming, whatever number of completions (ibv_req_notify_cq(3)). */
CASE_EACH(cq, one_event_for_one_arming)
{
	struct pair p;

	pair_open(&p, where, NULL);
	for (unsigned round = 0; round < 5; round++) {
		cr_assert_eq(ibv_req_notify_cq(p.a.cq[SEND_CQ], 0), 0);
		for (unsigned i = 0; i < 3; i++)
			one_write(&p);
		cr_assert(take_event(&p.a, p.a.cq[SEND_CQ], AWAIT_MS), "round %u", round);
		for (unsigned i = 0; i < 3; i++)
			await_ok(&p, 1, IBV_WC_RDMA_WRITE);
		cr_expect(!take_event(&p.a, p.a.cq[SEND_CQ], 0), "round %u", round);
	}
	pair_close(&p);
}

CASE_EACH(cq, arming_twice_gives_one_event)
{
	struct pair p;

	pair_open(&p, where, NULL);
	cr_assert_eq(ibv_req_notify_cq(p.a.cq[SEND_CQ], 0), 0);
	cr_assert_eq(ibv_req_notify_cq(p.a.cq[SEND_CQ], 0), 0);
	for (unsigned i = 0; i < 3; i++) {
		one_write(&p);
		await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	}
	cr_expect(take_event(&p.a, p.a.cq[SEND_CQ], AWAIT_MS));
	cr_expect(!take_event(&p.a, p.a.cq[SEND_CQ], 0));
	pair_close(&p);
}

/* C.9.4: completions that the application has not polled when it arms raise the event at
 * once: mlx5's arm names the consumer index. */
CASE_EACH(cq, arming_with_unpolled_completions_raises_the_event)
{
	struct pair p;

	pair_open(&p, where, NULL);
	one_write(&p);
	one_write(&p);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	cr_assert_eq(ibv_req_notify_cq(p.a.cq[SEND_CQ], 0), 0);
	cr_expect(take_event(&p.a, p.a.cq[SEND_CQ], AWAIT_MS), "one completion is unpolled");
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	cr_assert_eq(ibv_req_notify_cq(p.a.cq[SEND_CQ], 0), 0);
	cr_expect(!take_event(&p.a, p.a.cq[SEND_CQ], 0), "all are polled");
	pair_close(&p);
}

/* The event is what a sleeping application waits for: it comes without polling. */
CASE_EACH(cq, a_sleeping_application_is_woken)
{
	struct pair p;

	pair_open(&p, where, NULL);
	for (unsigned i = 0; i < 20; i++) {
		cr_assert_eq(ibv_req_notify_cq(p.a.cq[RECV_CQ], 0), 0);
		send_to_a(&p, IBV_WR_SEND, 0);
		cr_assert(take_event(&p.a, p.a.cq[RECV_CQ], AWAIT_MS), "message %u", i);
		drain_recv(&p);
	}
	pair_close(&p);
}

/* ibv_req_notify_cq(3), solicited_only: solicited completions and errors only. */
static const struct { const char *name; enum ibv_wr_opcode op; unsigned flags; bool comes; }
solicited_rows[] = {
	{ "plain SEND", IBV_WR_SEND, 0, false },
	{ "solicited SEND", IBV_WR_SEND, IBV_SEND_SOLICITED, true },
	{ "plain SEND_IMM", IBV_WR_SEND_WITH_IMM, 0, false },
	{ "solicited SEND_IMM", IBV_WR_SEND_WITH_IMM, IBV_SEND_SOLICITED, true },
	{ "plain WRITE_IMM", IBV_WR_RDMA_WRITE_WITH_IMM, 0, false },
	{ "solicited WRITE_IMM", IBV_WR_RDMA_WRITE_WITH_IMM, IBV_SEND_SOLICITED, true },
};

CASE_TABLE(cq, solicited_only_waits_for_a_solicited_message, ROWS(solicited_rows))
{
	struct pair p;

	pair_open(&p, where, NULL);
	cr_assert_eq(ibv_req_notify_cq(p.a.cq[RECV_CQ], 1), 0);
	send_to_a(&p, solicited_rows[row].op, solicited_rows[row].flags);
	drain_recv(&p);
	cr_expect_eq(take_event(&p.a, p.a.cq[RECV_CQ], solicited_rows[row].comes ? AWAIT_MS : 0),
		     solicited_rows[row].comes, "%s", solicited_rows[row].name);
	pair_close(&p);
}

CASE_EACH(cq, an_error_counts_as_solicited)
{
	struct pair p;
	struct work w;

	pair_open(&p, where, NULL);
	cr_assert_eq(ibv_req_notify_cq(p.a.cq[SEND_CQ], 1), 0);
	one_write(&p);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	cr_expect(!take_event(&p.a, p.a.cq[SEND_CQ], 0), "a success");
	w = pair_work(&p, IBV_WR_RDMA_WRITE, 8);
	w.rkey ^= 0x3fff0000;
	must_post(&p, &w);
	cr_expect(take_event(&p.a, p.a.cq[SEND_CQ], AWAIT_MS), "an error");
	await_error(&p, 1, IBV_WC_REM_ACCESS_ERR);
	pair_close(&p);
}

/* C.9.4: a later request replaces an earlier one; next is the wider. */
CASE_EACH(cq, arming_for_solicited_then_for_next_means_next)
{
	struct pair p;

	pair_open(&p, where, NULL);
	cr_assert_eq(ibv_req_notify_cq(p.a.cq[RECV_CQ], 1), 0);
	cr_assert_eq(ibv_req_notify_cq(p.a.cq[RECV_CQ], 0), 0);
	send_to_a(&p, IBV_WR_SEND, 0);
	cr_expect(take_event(&p.a, p.a.cq[RECV_CQ], AWAIT_MS));
	drain_recv(&p);
	pair_close(&p);
}

/* B.10: the descriptor obeys O_NONBLOCK and epoll, and names the right CQ. */
CASE_EACH(cq, the_channel_works_with_o_nonblock_and_epoll)
{
	struct epoll_event in = { .events = EPOLLIN }, out;
	struct ibv_cq *cq;
	void *context;
	struct pair p;
	int ep = epoll_create1(EPOLL_CLOEXEC);

	pair_open(&p, where, NULL);
	cr_assert_eq(fcntl(p.a.channel->fd, F_SETFL, O_NONBLOCK), 0);
	cr_expect_eq(ibv_get_cq_event(p.a.channel, &cq, &context), -1);
	cr_expect_eq(errno, EAGAIN);
	cr_assert_eq(epoll_ctl(ep, EPOLL_CTL_ADD, p.a.channel->fd, &in), 0);
	cr_expect_eq(epoll_wait(ep, &out, 1, 0), 0);
	cr_assert_eq(ibv_req_notify_cq(p.a.cq[SEND_CQ], 0), 0);
	cr_assert_eq(ibv_req_notify_cq(p.a.cq[RECV_CQ], 0), 0);
	one_write(&p);
	cr_expect_eq(epoll_wait(ep, &out, 1, AWAIT_MS), 1);
	cr_expect(take_event(&p.a, p.a.cq[SEND_CQ], 0));
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	send_to_a(&p, IBV_WR_SEND, 0);
	cr_expect_eq(epoll_wait(ep, &out, 1, AWAIT_MS), 1);
	cr_expect(take_event(&p.a, p.a.cq[RECV_CQ], 0));
	drain_recv(&p);
	cr_expect_eq(epoll_wait(ep, &out, 1, 0), 0);
	cr_expect_eq(ibv_get_cq_event(p.a.channel, &cq, &context), -1);
	close(ep);
	pair_close(&p);
}

/* Events carry the cq_context given at creation. */
Test(cq, an_event_carries_the_context_of_its_cq)
{
	struct ibv_context *c = device_open();
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq, *got;
	void *context;

	cr_assert_not_null(c);
	channel = ibv_create_comp_channel(c);
	cr_assert_not_null(channel);
	cq = ibv_create_cq(c, 16, &channel, channel, 0);
	cr_assert_not_null(cq);
	cr_expect_eq(cq->cq_context, &channel);
	cr_expect_eq(ibv_req_notify_cq(cq, 0), 0);
	cr_assert_eq(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	cr_expect_eq(ibv_get_cq_event(channel, &got, &context), -1, "nothing completed");
	cr_expect_eq(ibv_destroy_comp_channel(channel), EBUSY, "its CQ lives");
	cr_expect_eq(ibv_destroy_cq(cq), 0);
	cr_expect_eq(ibv_destroy_comp_channel(channel), 0);
	cr_expect_eq(ibv_close_device(c), 0);
}

/* B.10: an event that nobody read goes with its CQ, and destroy does not wait for it. */
CASE_EACH(cq, an_unread_event_goes_with_its_cq)
{
	struct ibv_cq *cq;
	void *context;
	struct pair p;

	pair_open(&p, where, NULL);
	cr_assert_eq(ibv_req_notify_cq(p.a.cq[SEND_CQ], 0), 0);
	one_write(&p);
	cr_assert_eq(wait_readable(p.a.channel->fd, AWAIT_MS), 1);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	cr_assert_eq(ibv_destroy_qp(p.a.qp), 0);
	cr_assert_eq(ibv_destroy_cq(p.a.cq[SEND_CQ]), 0);
	p.a.qp = NULL;
	p.a.cq[SEND_CQ] = NULL;
	cr_assert_eq(fcntl(p.a.channel->fd, F_SETFL, O_NONBLOCK), 0);
	cr_expect_eq(ibv_get_cq_event(p.a.channel, &cq, &context), -1, "an event of a dead CQ");
	pair_close(&p);
}

static void *ack_later(void *cq)
{
	usleep(20000);
	ibv_ack_cq_events(cq, 1);
	return NULL;
}

/* ibv_get_cq_event(3): destroy waits until every event read has been acknowledged. */
Test(cq, destroy_waits_for_the_acknowledgement)
{
	struct ibv_cq *cq;
	pthread_t thread;
	void *context;
	struct pair p;

	pair_open(&p, ONE_THREAD, NULL);
	cr_assert_eq(ibv_req_notify_cq(p.a.cq[SEND_CQ], 0), 0);
	one_write(&p);
	cr_assert_eq(ibv_get_cq_event(p.a.channel, &cq, &context), 0);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	cr_assert_eq(ibv_destroy_qp(p.a.qp), 0);
	p.a.qp = NULL;
	pthread_create(&thread, NULL, ack_later, cq);
	cr_expect_eq(ibv_destroy_cq(cq), 0);
	cr_expect_eq(pthread_join(thread, NULL), 0);
	p.a.cq[SEND_CQ] = NULL;
	pair_close(&p);
}

/* A CQ without a channel may be armed; nothing comes of it. */
Test(cq, arming_a_cq_without_a_channel_is_harmless)
{
	struct ibv_context *c = device_open();
	struct ibv_cq *cq;

	cr_assert_not_null(c);
	cq = ibv_create_cq(c, 16, NULL, NULL, 0);
	cr_assert_not_null(cq);
	cr_expect_eq(ibv_req_notify_cq(cq, 0), 0);
	cr_expect_eq(ibv_destroy_cq(cq), 0);
	cr_expect_eq(ibv_close_device(c), 0);
}
