/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cases of `disorder`: threads that end, exit or close while others are in the device.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "disorder.h"

static void nap_us(long us)
{
	struct timespec t = { .tv_nsec = us * 1000 };

	nanosleep(&t, NULL);
}

static pthread_t thread_start(void *(*main)(void *), void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, main, arg))
		wrong("pthread_create");
	return thread;
}

static void *work_for_ever(void *arg)
{
	struct world w;

	(void)arg;
	world_open(&w, false);
	for (;;)
		world_run(&w, 10);
	return NULL;
}

static void *exit_soon(void *arg)
{
	(void)arg;
	nap_us(50000);
	exit(0);
}

static void case_exit_in_thread(void)
{
	for (int i = 0; i < 3; i++)
		thread_start(work_for_ever, NULL);
	thread_start(exit_soon, NULL);
	for (;;)
		pause();
}

/* As a program whose static objects close the device while its threads poll on. */
static struct world late_world;

static void close_late(void)
{
	close(late_world.node.context->cmd_fd);
	nap_us(20000);
}

static void *poll_late(void *arg)
{
	struct ibv_wc wc;

	(void)arg;
	for (;;)
		ibv_poll_cq(late_world.node.cq, 1, &wc);
	return NULL;
}

static void case_close_at_exit(void)
{
	world_open(&late_world, false);
	world_run(&late_world, 50);
	for (int i = 0; i < 3; i++)
		thread_start(poll_late, NULL);
	nap_us(20000);
	atexit(close_late);
}

/* The same again and again, within the life of a process. */
struct pollers {
	struct world world;
	bool must_stop;
};

static void *poll_until_stopped(void *arg)
{
	struct pollers *p = arg;
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_wc wc[4];

	while (!__atomic_load_n(&p->must_stop, __ATOMIC_RELAXED)) {
		ibv_poll_cq(p->world.node.cq, 4, wc);
		ibv_post_send(p->world.link[0].qp, &wr, &bad);
		ibv_req_notify_cq(p->world.node.cq, 0);
	}
	return NULL;
}

static void case_close_under_polls(void)
{
	static struct pollers p[30];
	pthread_t thread[3];

	for (int round = 0; round < 30; round++) {
		world_open(&p[round].world, false);
		world_run(&p[round].world, 5);
		for (int i = 0; i < 3; i++)
			thread[i] = thread_start(poll_until_stopped, &p[round]);
		nap_us(2000);
		close(p[round].world.node.context->cmd_fd);
		nap_us(2000);
		__atomic_store_n(&p[round].must_stop, true, __ATOMIC_RELAXED);
		for (int i = 0; i < 3; i++)
			pthread_join(thread[i], NULL);
	}
}

static void *open_run_close(void *arg)
{
	struct world w;

	(void)arg;
	for (int i = 0; i < 10; i++) {
		world_open(&w, false);
		world_run(&w, 10);
		world_close(&w);
	}
	return NULL;
}

/* Each thread its own context: the device goes and comes with the last and the first. */
static void case_many_contexts(void)
{
	pthread_t thread[6];

	for (int i = 0; i < 6; i++)
		thread[i] = thread_start(open_run_close, NULL);
	for (int i = 0; i < 6; i++)
		pthread_join(thread[i], NULL);
}

/* Cancelled at the next cancellation point, which should be the program's own. */
static void *run_cancellable(void *arg)
{
	struct world *w = arg;

	for (;;) {
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
		world_turn(w);
		ibv_req_notify_cq(w->node.cq, 0);
		node_poll(&w->node);
		pthread_testcancel();
	}
	return NULL;
}

static void case_cancel(void)
{
	pthread_t thread;
	struct world w, other;

	world_open(&other, true);		/* keeps the device */
	for (int i = 0; i < 40; i++) {
		world_open(&w, false);
		thread = thread_start(run_cancellable, &w);
		nap_us(500 + 200 * (i % 10));
		pthread_cancel(thread);
		pthread_join(thread, NULL);
		world_run(&w, 20);
		world_close(&w);
		world_run(&other, 20);
	}
	world_close(&other);
}

/* Posting, polling and arming with a cancellation pending: no verb of a device is a cancellation
 * point, not even the first one that leads to another process. */
static void *run_cancelled(void *arg)
{
	struct world *w = arg;

	pthread_cancel(pthread_self());
	for (int i = 0; i < 1000; i++) {
		world_turn(w);
		ibv_req_notify_cq(w->node.cq, 0);
	}
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return w;
}

static void case_cancel_pending(void)
{
	pthread_t thread;
	struct world w;
	void *result;

	for (int i = 0; i < 10; i++) {
		world_open(&w, i % 2);
		thread = thread_start(run_cancelled, &w);
		pthread_join(thread, &result);
		if (result != &w)
			wrong("a thread was cancelled where no cancellation point is");
		world_run(&w, 20);
		world_close(&w);
	}
}

const struct test_case thread_cases[] = {
	{ "exit-in-thread", case_exit_in_thread },
	{ "close-at-exit", case_close_at_exit },
	{ "close-under-polls", case_close_under_polls },
	{ "many-contexts", case_many_contexts },
	{ "cancel", case_cancel },
	{ "cancel-pending", case_cancel_pending },
	{ 0 },
};
