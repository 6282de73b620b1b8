/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cases of `disorder`: threads that wait in ibv_get_cq_event(), which blocks like read(): signals
 * interrupt it, it can be cancelled, any number may wait, and nobody's event is lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include "disorder.h"

#define EVENTS		200
#define PATIENCE_MS	30000

static int event_get(struct node *n)
{
	struct ibv_cq *cq;
	void *context;

	return ibv_get_cq_event(n->channel, &cq, &context);
}

/* The links' own channel does not block. */
static void blocking_world_open(struct world *w, bool has_remote)
{
	world_open(w, has_remote);
	if (fcntl(w->node.channel->fd, F_SETFL, 0))
		wrong("fcntl: %s", strerror(errno));
}

/* Armed, and at least one operation is under way that completes after that. */
static void event_cause(struct world *w)
{
	if (ibv_req_notify_cq(w->node.cq, 0))
		wrong("ibv_req_notify_cq: %s", strerror(errno));
	world_turn(w);
}

/* A program that polls nothing while it waits: all packets are taken by the thread that waits. */
static void case_events(void)
{
	struct world w;

	blocking_world_open(&w, true);
	for (int i = 0; i < EVENTS; i++) {
		event_cause(&w);
		if (event_get(&w.node))
			wrong("ibv_get_cq_event: %s", strerror(errno));
		w.node.events_seen++;
		while (node_poll(&w.node))
			;
	}
	world_run(&w, 20);
	world_close(&w);
}

/* --- several that wait --- */

struct reader {
	struct world *w;
	unsigned events;
	int error;
};

static void *read_events(void *arg)
{
	struct reader *r = arg;

	while (!event_get(&r->w->node))
		__atomic_add_fetch(&r->events, 1, __ATOMIC_SEQ_CST);
	r->error = errno;
	return NULL;
}

static void reader_start(struct reader *r, struct world *w, pthread_t *thread)
{
	*r = (struct reader){ .w = w };
	if (pthread_create(thread, NULL, read_events, r))
		wrong("pthread_create");
}

static unsigned events_of(struct reader *r, unsigned readers)
{
	unsigned events = 0;

	for (unsigned i = 0; i < readers; i++)
		events += __atomic_load_n(&r[i].events, __ATOMIC_SEQ_CST);
	return events;
}

/* One more event for one of them. */
static void event_give(struct world *w, struct reader *r, unsigned readers)
{
	uint64_t until = clock_ms() + PATIENCE_MS;
	unsigned before = events_of(r, readers);

	event_cause(w);
	while (events_of(r, readers) == before) {
		world_turn(w);
		sched_yield();
		if (clock_ms() > until)
			wrong("an event has not come");
	}
	w->node.events_seen++;
}

static void reader_cancel(pthread_t thread)
{
	void *result;

	pthread_cancel(thread);
	pthread_join(thread, &result);
	if (result != PTHREAD_CANCELED)
		wrong("a thread that waits was not cancelled");
}

/* Each arming brings one event to one of them; then they are cancelled one after the other. */
static void case_event_readers(void)
{
	struct reader r[3];
	pthread_t thread[3];
	struct world w;

	blocking_world_open(&w, true);
	for (int i = 0; i < 3; i++)
		reader_start(&r[i], &w, &thread[i]);
	for (int i = 0; i < EVENTS; i++)
		event_give(&w, r, 3);
	for (int i = 0; i < 2; i++) {
		reader_cancel(thread[i]);
		event_give(&w, r, 3);
	}
	reader_cancel(thread[2]);
	if (events_of(r, 3) != EVENTS + 2)
		wrong("%u events, and %u were due", events_of(r, 3), EVENTS + 2);
	world_run(&w, 20);
	world_close(&w);
}

/* The device is closed under a thread that waits.  A real one leaves it there; ours may let go. */
static void case_event_close(void)
{
	struct reader r;
	pthread_t thread;
	struct world w;

	for (int i = 0; i < 20; i++) {
		blocking_world_open(&w, false);
		reader_start(&r, &w, &thread);
		event_give(&w, &r, 1);
		world_close(&w);
		pthread_cancel(thread);
		pthread_join(thread, NULL);
		if (r.error && r.error != EBADF)
			wrong("ibv_get_cq_event: %s", strerror(r.error));
	}
}

/* --- interrupted --- */

static void nothing(int number)
{
	(void)number;
}

static void alarm_every(long us, int flags)
{
	struct itimerval timer = { { 0, us }, { 0, us } };
	struct sigaction action = { .sa_handler = nothing, .sa_flags = flags };

	if (sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &timer, NULL))
		wrong("sigaction, setitimer: %s", strerror(errno));
}

static void case_event_interrupted(void)
{
	struct world w;

	blocking_world_open(&w, false);
	alarm_every(5000, 0);
	if (!event_get(&w.node) || errno != EINTR)
		wrong("a signal did not end the wait: %s", strerror(errno));
	alarm_every(1000, SA_RESTART);
	for (int i = 0; i < 20; i++) {
		event_cause(&w);
		if (event_get(&w.node))
			wrong("a handler with SA_RESTART ended the wait: %s", strerror(errno));
		w.node.events_seen++;
	}
	alarm_every(0, SA_RESTART);
	world_run(&w, 20);
	world_close(&w);
}

static void case_event_nonblocking(void)
{
	struct world w;

	world_open(&w, false);
	if (fcntl(w.node.channel->fd, F_SETFL, O_NONBLOCK))
		wrong("fcntl: %s", strerror(errno));
	if (!event_get(&w.node) || errno != EAGAIN)
		wrong("it does not say EAGAIN: %s", strerror(errno));
	world_run(&w, 20);
	world_close(&w);
}

const struct test_case event_cases[] = {
	{ "events", case_events },
	{ "event-readers", case_event_readers },
	{ "event-close", case_event_close },
	{ "event-interrupted", case_event_interrupted },
	{ "event-nonblocking", case_event_nonblocking },
	{ 0 },
};
