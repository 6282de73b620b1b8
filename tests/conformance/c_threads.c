/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many threads at once: verbs are thread safe (ibv_post_send(3), ibv_poll_cq(3): "fully
 * thread safe" by the IBTA's rule for verbs), and QPs do not disturb each other.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include "harness/check.h"

#define THREADS	8
#define ROUNDS	400

TestSuite(threads, .timeout = 100);

struct worker {
	struct end a, b;
	struct end_info ia, ib;
	uint64_t seed;
	int err;			/* 0, errno, or -1: wrong data or status */
	pthread_t thread;
};

static void link_ends(struct end *a, struct end *b, struct end_info *ia, struct end_info *ib)
{
	end_describe(a, ia);
	end_describe(b, ib);
	cr_assert_eq(end_connect(b, ia), 0);
	cr_assert_eq(end_connect(a, ib), 0);
}

static int run_one(struct worker *w, const struct work *work)
{
	struct done d;
	int err = end_post(&w->a, work);

	if (err)
		return err;
	end_await(&w->a, SEND_CQ, &d);
	return d.found && d.wc.status == IBV_WC_SUCCESS && d.wc.wr_id == work->wr_id ? 0 : -1;
}

/* WRITE a pattern over, READ it back, and compare both. */
static int round_trip(struct worker *w, unsigned round)
{
	uint32_t bytes = 1 + round * 131 % 9000;
	struct work work = { .opcode = IBV_WR_RDMA_WRITE, .wr_id = round,
		.flags = IBV_SEND_SIGNALED, .remote_addr = w->ib.addr, .rkey = w->ib.rkey,
		.sge_count = 1, .sge = { { w->ia.addr, bytes, w->ia.lkey } } };
	int err;

	pattern_fill(w->a.buf, bytes, w->seed + round);
	err = run_one(w, &work);
	if (err)
		return err;
	work.opcode = IBV_WR_RDMA_READ;
	work.sge[0].addr += 16384;
	err = run_one(w, &work);
	if (err)
		return err;
	return pattern_differs(w->b.buf, bytes, w->seed + round) == -1 &&
	       pattern_differs(w->a.buf + 16384, bytes, w->seed + round) == -1 ? 0 : -1;
}

static int send_recv(struct worker *w, unsigned round)
{
	struct work work = { .opcode = IBV_WR_SEND, .wr_id = round,
		.flags = IBV_SEND_SIGNALED, .sge_count = 1,
		.sge = { { w->ia.addr, 64, w->ia.lkey } } };
	struct work recv = { .wr_id = round, .sge_count = 1,
		.sge = { { w->ib.addr + 32768, 64, w->ib.lkey } } };
	struct done d;
	int err = end_post_recv(&w->b, &recv);

	if (!err)
		err = run_one(w, &work);
	if (err)
		return err;
	end_await(&w->b, RECV_CQ, &d);
	return d.found && d.wc.status == IBV_WC_SUCCESS && d.wc.wr_id == round ? 0 : -1;
}

static void *work_run(void *arg)
{
	struct worker *w = arg;

	for (unsigned i = 0; !w->err && i < ROUNDS; i++) {
		w->err = round_trip(w, i);
		if (!w->err)
			w->err = send_recv(w, i);
	}
	return NULL;
}

/* @contexts: how many devices the threads share. */
static void hammer(unsigned contexts, void *(*body)(void *))
{
	static struct worker workers[THREADS];
	struct end_opts opts;

	end_defaults(&opts);
	for (unsigned i = 0; i < THREADS; i++) {
		struct worker *w = &workers[i];
		const struct end *shared = i < contexts ? NULL : &workers[i % contexts].a;

		w->seed = 1000 * i;
		cr_assert_eq(end_open(&w->a, &opts, shared), 0);
		cr_assert_eq(end_open(&w->b, &opts, &w->a), 0);
		link_ends(&w->a, &w->b, &w->ia, &w->ib);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&workers[i].thread, NULL, body, &workers[i]);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		cr_expect_eq(workers[i].err, 0, "worker %u: %d", i, workers[i].err);
	}
	for (unsigned i = THREADS; i-- > 0;) {
		end_close(&workers[i].b);
		end_close(&workers[i].a);
	}
}

Test(threads, eight_threads_on_qps_of_one_context)
{
	hammer(1, work_run);
}

Test(threads, eight_threads_on_contexts_of_their_own)
{
	hammer(THREADS, work_run);
}

/* Objects come and go in every thread while others talk. */
static void *churn_run(void *arg)
{
	struct worker *w = arg;
	struct end_opts opts;
	struct end x;

	end_defaults(&opts);
	opts.bytes = 4096;
	for (unsigned i = 0; !w->err && i < 40; i++) {
		struct end_info ix;

		w->err = round_trip(w, i);
		if (w->err)
			break;
		w->err = end_open(&x, &opts, &w->a);
		if (w->err)
			break;
		end_describe(&x, &ix);
		w->err = end_connect(&x, &ix);
		end_close(&x);
	}
	return NULL;
}

Test(threads, creating_and_destroying_while_others_talk)
{
	hammer(2, churn_run);
}

/* ---- one QP, many threads ---- */

struct shared_qp {
	struct worker *pair;
	unsigned to_post;
	int err;
	pthread_t thread;
};

static void *post_run(void *arg)
{
	struct shared_qp *s = arg;
	struct work work = { .opcode = IBV_WR_RDMA_WRITE, .flags = IBV_SEND_SIGNALED,
		.remote_addr = s->pair->ib.addr, .rkey = s->pair->ib.rkey, .sge_count = 1,
		.sge = { { s->pair->ia.addr, 16, s->pair->ia.lkey } } };

	while (s->to_post) {
		s->err = end_post(&s->pair->a, &work);
		if (!s->err)
			s->to_post--;
		else if (s->err != ENOMEM)	/* full: another thread polls */
			break;
		else
			sched_yield();
	}
	if (!s->to_post)
		s->err = 0;
	return NULL;
}

/* Posts from four threads on one QP, polled by this one: each completes once. */
Test(threads, four_threads_post_on_one_qp)
{
	static struct worker w;
	static struct shared_qp posters[4];
	struct end_opts opts;
	struct done d;

	end_defaults(&opts);
	cr_assert_eq(end_open(&w.a, &opts, NULL), 0);
	cr_assert_eq(end_open(&w.b, &opts, &w.a), 0);
	link_ends(&w.a, &w.b, &w.ia, &w.ib);
	for (unsigned i = 0; i < 4; i++) {
		posters[i].pair = &w;
		posters[i].to_post = 500;
		pthread_create(&posters[i].thread, NULL, post_run, &posters[i]);
	}
	for (unsigned i = 0; i < 2000; i++) {
		end_await(&w.a, SEND_CQ, &d);
		cr_assert(d.found && d.wc.status == IBV_WC_SUCCESS, "completion %u", i);
	}
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(posters[i].thread, NULL);
		cr_expect_eq(posters[i].err, 0);
	}
	end_glance(&w.a, SEND_CQ, &d);
	check_none("after", &d);
	end_close(&w.b);
	end_close(&w.a);
}

/* ---- one CQ, many threads, and QPs that come and go ---- */

#define SHARED_ROUNDS	12
#define SHARED_POSTS	16
#define LEFT_BEHIND	UINT64_C(1000)	/* wr_id of requests whose QP goes before they are polled */

static struct {
	struct end base;
	struct end_info info;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	_Atomic unsigned done[THREADS], events;
	_Atomic int err;		/* -1: a completion that is wrong or that nobody posted */
	atomic_bool is_over;
} shared;

/* Whoever polls takes what is there, for all. */
static void shared_poll(void)
{
	struct ibv_wc wc[4];
	int found = ibv_poll_cq(shared.cq, 4, wc);

	for (int i = 0; i < found; i++) {
		if (wc[i].status != IBV_WC_SUCCESS)
			shared.err = -1;
		if (wc[i].wr_id == LEFT_BEHIND)
			continue;
		if (wc[i].wr_id < THREADS)
			shared.done[wc[i].wr_id]++;
		else
			shared.err = -1;
	}
	if (found < 0)
		shared.err = found;
}

static int shared_post(struct end *x, uint64_t wr_id)
{
	struct work work = { .opcode = IBV_WR_RDMA_WRITE, .flags = IBV_SEND_SIGNALED,
		.wr_id = wr_id, .remote_addr = shared.info.addr, .rkey = shared.info.rkey,
		.sge_count = 1, .sge = { { shared.info.addr + 64, 16, shared.info.lkey } } };

	return end_post(x, &work);
}

/* A QP that talks to itself, on the shared CQ; it goes while others read there. */
static int shared_round(unsigned thread)
{
	struct end x = shared.base;
	struct end_info ix;
	unsigned want = shared.done[thread] + SHARED_POSTS;
	struct ibv_qp_init_attr init = { .send_cq = shared.cq, .recv_cq = shared.cq,
		.cap = { .max_send_wr = 64, .max_recv_wr = 1, .max_send_sge = 1 },
		.qp_type = IBV_QPT_RC };
	int err;

	x.qp = ibv_create_qp(x.pd, &init);
	if (!x.qp)
		return errno;
	end_describe(&x, &ix);
	err = end_connect(&x, &ix);
	for (unsigned i = 0; !err && i < SHARED_POSTS; i++)
		err = shared_post(&x, thread);
	while (!err && shared.done[thread] != want) {
		shared_poll();
		err = shared.err;
	}
	for (unsigned i = 0; !err && i < 4; i++)
		err = shared_post(&x, LEFT_BEHIND);
	ibv_destroy_qp(x.qp);
	return err;
}

static void *shared_run(void *arg)
{
	for (unsigned i = 0; i < SHARED_ROUNDS && !shared.err; i++) {
		int err = shared_round((unsigned)(uintptr_t)arg);

		if (err)
			shared.err = err;
	}
	return NULL;
}

/* Takes events and asks for the next one. */
static void *shared_listen(void *unused)
{
	struct pollfd ready = { .fd = shared.channel->fd, .events = POLLIN };
	bool is_last = false;
	struct ibv_cq *cq;
	void *context;

	/* Once more at the end: this thread may not have run before. */
	while (!is_last) {
		is_last = shared.is_over;
		if (poll(&ready, 1, 20) != 1)
			continue;
		if (ibv_get_cq_event(shared.channel, &cq, &context) || cq != shared.cq ||
		    ibv_req_notify_cq(cq, 0))
			shared.err = -1;
		ibv_ack_cq_events(shared.cq, 1);
		shared.events++;
	}
	return unused;
}

static void shared_open(void)
{
	struct end_opts opts;

	end_defaults(&opts);
	cr_assert_eq(end_open(&shared.base, &opts, NULL), 0);
	end_describe(&shared.base, &shared.info);
	shared.channel = ibv_create_comp_channel(shared.base.context);
	cr_assert(shared.channel);
	shared.cq = ibv_create_cq(shared.base.context, 2047, NULL, shared.channel, 0);
	cr_assert(shared.cq);
	cr_assert_eq(ibv_req_notify_cq(shared.cq, 0), 0);
}

Test(threads, eight_threads_share_a_cq_while_its_qps_go)
{
	pthread_t thread[THREADS], listener;
	struct ibv_wc wc;

	shared_open();
	cr_assert_eq(pthread_create(&listener, NULL, shared_listen, NULL), 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, shared_run, (void *)i), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	shared.is_over = true;
	pthread_join(listener, NULL);
	cr_assert_eq(shared.err, 0, "%d", shared.err);
	for (unsigned i = 0; i < THREADS; i++)
		cr_expect_eq(shared.done[i], SHARED_ROUNDS * SHARED_POSTS);
	cr_expect_gt(shared.events, 0);
	cr_expect_eq(ibv_poll_cq(shared.cq, 1, &wc), 0, "what a QP leaves goes with it");
	cr_assert_eq(ibv_destroy_cq(shared.cq), 0);
	cr_assert_eq(ibv_destroy_comp_channel(shared.channel), 0);
	end_close(&shared.base);
}
