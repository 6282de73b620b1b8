/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of two processes that wait: for an event (10), or for a CPU (11).
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>
#include "link.h"
#include "rows.h"

enum { PONGS = 3000 };

/* --- 10: a completion channel against an eventfd --- */

static struct link event_link;
static int event_fds[2];		/* by who reads it */

static void channel_wait(void *ctx)
{
	struct link *l = ctx;
	struct ibv_wc wc;

	do {
		struct ibv_cq *cq;
		void *cq_context;

		need(!ibv_get_cq_event(l->port.channel, &cq, &cq_context), "ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
		need(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
	} while (ibv_poll_cq(l->port.recv_cq, 1, &wc) != 1);
	check(&wc);
	recv_post(l->qp, &l->port, 4096, 8);
}

static double channel_ns(struct pair *p, void *ctx)
{
	struct pong pong = { link_send, channel_wait, ctx };

	return pong_ns(p, &pong, PONGS);
}

static void eventfd_send(void *ctx)
{
	const struct pair *p = ctx;

	need(!eventfd_write(event_fds[!p->me], 1), "eventfd_write");
}

static void eventfd_wait(void *ctx)
{
	const struct pair *p = ctx;
	eventfd_t value;

	need(!eventfd_read(event_fds[p->me], &value), "eventfd_read");
}

static double eventfd_ns(struct pair *p, void *ctx)
{
	struct pong pong = { eventfd_send, eventfd_wait, p };

	(void)ctx;
	return pong_ns(p, &pong, PONGS);
}

static void pair_event(struct pair *p)
{
	link_open(p, &event_link, 2 * 4096);
	need(!ibv_req_notify_cq(event_link.port.recv_cq, 0), "ibv_req_notify_cq");
	link_messages(p, &event_link);
	pair_rounds(p, channel_ns, eventfd_ns, &event_link);
}

void row_event(void)
{
	for (int i = 0; i < 2; i++)
		event_fds[i] = eventfd(0, 0);
	pair_run(pair_event);
}

/* --- 10n: a channel whose CQ nobody armed --- */

static long voluntary_switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_nvcsw;
}

/* How often this process went to sleep and was woken, per message. */
static double switches(struct pair *p, void *ctx)
{
	struct pong pong = { link_send, link_wait_polling, ctx };
	struct pollfd fd = { .fd = event_link.port.channel->fd, .events = POLLIN };
	long before;

	meet(p);
	before = voluntary_switches();
	pong_ns(p, &pong, SAMPLES_MAX);
	if (poll(&fd, 1, 0))
		die("bench: an event of a CQ that was not armed");
	return (double)(voluntary_switches() - before) / SAMPLES_MAX;
}

static void pair_unarmed(struct pair *p)
{
	link_open(p, &event_link, 2 * 4096);
	link_messages(p, &event_link);
	pair_rounds(p, switches, NULL, &event_link);
}

void row_unarmed(void)
{
	pair_run(pair_unarmed);
}

/* --- 11: four runnable threads on two CPUs --- */

enum { PAIRS = 2, CROWD_PONGS = 20000 };

/* Each process has two threads; each has a connection to its counterpart, and polls. */
struct poller {
	struct pair *p;
	struct link link;
	uint64_t samples[CROWD_PONGS];
};

static struct poller pollers[PAIRS];

static void *poller_main(void *arg)
{
	struct poller *poller = arg;
	struct pong pong = { link_send, link_wait_polling, &poller->link };

	pin_to_two();
	pongs(poller->p, &pong, CROWD_PONGS, poller->samples);
	return NULL;
}

static double crowd_ns(struct pair *p, void *ctx)
{
	static uint64_t samples[PAIRS * CROWD_PONGS];
	pthread_t thread[PAIRS];
	uint64_t start, mean;

	(void)ctx;
	meet(p);
	start = ticks();
	for (int i = 0; i < PAIRS; i++)
		need(!pthread_create(&thread[i], NULL, poller_main, &pollers[i]), "pthread_create");
	for (int i = 0; i < PAIRS; i++)
		pthread_join(thread[i], NULL);
	mean = (ticks() - start) / (CROWD_PONGS * 2);
	if (is_first(p))
		tell_info("mean", ticks_ns(mean));
	for (int i = 0; i < PAIRS * CROWD_PONGS; i++)
		samples[i] = pollers[i / CROWD_PONGS].samples[i % CROWD_PONGS];
	meet(p);
	return ticks_ns(p50(samples, PAIRS * CROWD_PONGS)) / 2;
}

/*
 * The reference: what an engine thread a process would give.  A message goes from the program to
 * its engine, to the other engine, to the other program; whoever finds nothing to do yields.
 */
struct box { _Alignas(64) _Atomic uint32_t number; };

struct relay {
	struct box out;			/* program to engine */
	struct box wire;		/* engine to engine */
	struct box in;			/* engine to program */
	_Atomic bool must_stop;
};

struct relay_end {
	struct relay *mine, *theirs;
	uint32_t sent, seen;
};

static struct relay *relays;		/* [2], shared */

static bool box_move(struct box *from, struct box *to)
{
	uint32_t number = atomic_load_explicit(&from->number, memory_order_acquire);

	if (number == atomic_load_explicit(&to->number, memory_order_relaxed))
		return false;
	atomic_store_explicit(&to->number, number, memory_order_release);
	return true;
}

static void *relay_main(void *arg)
{
	struct relay_end *end = arg;

	pin_to_two();
	while (!atomic_load(&end->mine->must_stop))
		if (!box_move(&end->mine->out, &end->mine->wire) &&
		    !box_move(&end->theirs->wire, &end->mine->in))
			sched_yield();
	return NULL;
}

static void relay_send(void *ctx)
{
	struct relay_end *end = ctx;

	atomic_store_explicit(&end->mine->out.number, ++end->sent, memory_order_release);
}

static void relay_wait(void *ctx)
{
	struct relay_end *end = ctx;

	end->seen++;
	while (atomic_load_explicit(&end->mine->in.number, memory_order_acquire) != end->seen)
		sched_yield();
}

static double relay_ns(struct pair *p, void *ctx)
{
	struct relay_end end = { &relays[p->me], &relays[!p->me], 0, 0 };
	struct pong pong = { relay_send, relay_wait, &end };
	pthread_t engine;
	double ns;

	(void)ctx;
	*end.mine = (struct relay){ 0 };
	pin_to_two();
	meet(p);
	need(!pthread_create(&engine, NULL, relay_main, &end), "pthread_create");
	ns = pong_ns(p, &pong, PONGS);
	atomic_store(&end.mine->must_stop, true);
	pthread_join(engine, NULL);
	pin(p->me);
	meet(p);
	return ns;
}

static void pair_crowd(struct pair *p)
{
	pin_to_two();			/* the device's thread may go where it likes */
	for (int i = 0; i < PAIRS; i++) {
		pollers[i].p = p;
		link_open(p, &pollers[i].link, 2 * 4096);
		link_messages(p, &pollers[i].link);
	}
	pin(p->me);			/* for the probe */
	pair_rounds(p, crowd_ns, relay_ns, NULL);
}

void row_crowd(void)
{
	relays = memory_shared(2 * sizeof *relays);
	pair_run(pair_crowd);
}
