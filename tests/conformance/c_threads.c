/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many threads at once: verbs are thread safe (ibv_post_send(3), ibv_poll_cq(3): "fully
 * thread safe" by the IBTA's rule for verbs), and QPs do not disturb each other.
 */
#include <errno.h>
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
