/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The NIC thread: the fallback that runs the engine when nobody else does.
 *
 * While application threads are in the engine (they "attend") it only looks in once a
 * tick.  When a tick passes without them it takes over: it runs what is left, asks peers to
 * wake it, and sleeps until a packet, a timer, or a kick by a thread that came back.  It never
 * spins and takes no signal of the application.
 *
 * Programs that ring doorbell pages themselves are found by looking at pages and records: soon
 * again while that finds something, and ever more rarely while it does not.  Only where somebody is
 * known to ring in that way does looking never end; elsewhere it ends soon after the last new
 * page, or where somebody has asked for it after the last call, so that an idle process sleeps and
 * uses no CPU.
 */
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include "emu/engine/engine_local.h"
#include "emu/share/share.h"

#define TICK_NS		UINT64_C(1000000)
#define RETRY_NS	UINT64_C(50000)		/* the wire was full, or work is left */
#define LOOK_NS_MIN	UINT64_C(50000)		/* where somebody rings without telling */
#define LOOK_NS_MAX	UINT64_C(256000000)	/* how long a first ring may go unseen */
#define LOOK_SHARE	16			/* a look may take this part of the time */

static uint64_t shorter(uint64_t a_ns, uint64_t b_ns)
{
	return a_ns < b_ns ? a_ns : b_ns;
}

static bool is_attended(struct engine *e, uint64_t *seen)
{
	uint64_t activity = atomic_load_explicit(&e->activity, memory_order_relaxed);
	bool is = activity != *seen;

	*seen = activity;
	return is;
}

/* Nothing is left but to wait: application threads see this from now on, under the lock. */
static void fall_asleep(struct engine *e, uint64_t until_ns)
{
	atomic_store(&e->nic_until_ns, until_ns);
	e->asleep_activity = atomic_load_explicit(&e->activity, memory_order_relaxed);
	atomic_store(&e->is_nic_asleep, true);
	e->wire->ops->listen(e->wire, true);
}

/* When something is due at the latest, as things stand now. */
static uint64_t due_in_ns(struct engine *e, uint64_t now_ns)
{
	uint64_t deadline_ns = engine_deadline_ns(e);

	if (deadline_ns == 0)
		return RETRY_NS;
	if (deadline_ns == UINT64_MAX)
		return UINT64_MAX;
	return deadline_ns > now_ns ? deadline_ns - now_ns : 0;
}

struct nic {
	struct engine *e;
	uint64_t activity, rings, progress;	/* as last seen */
	uint64_t look_ns, look_at_ns;	/* between looks, and the next one; UINT64_MAX: none */
};

/* Find what nobody told of.  The pages are hints that are cheap to take; reading the record
 * of each QP is not. */
static void look(struct nic *nic, uint64_t now_ns, bool is_busy)
{
	struct engine *e = nic->e;

	look_outside(e);
	pages_scan(e);
	if (now_ns < nic->look_at_ns && !atomic_load(&e->wants_look))
		return;
	if (is_busy && !atomic_load(&e->watched))
		return;
	records_scan(e);
}

/* After a look and what came of it, which began at @start_ns. */
static void look_again(struct nic *nic, uint64_t start_ns, uint64_t now_ns, bool is_busy)
{
	struct engine *e = nic->e;
	bool is_watched = atomic_load(&e->watched) > 0;
	bool has_news = atomic_exchange(&e->wants_look, false) || e->page_rings != nic->rings ||
			(is_watched && e->progress != nic->progress) || (e->lingers && is_busy);

	nic->rings = e->page_rings;
	nic->progress = e->progress;
	if (has_news)
		nic->look_ns = is_watched ? LOOK_NS_MIN : TICK_NS;
	else if (now_ns < nic->look_at_ns)
		return;
	else if (nic->look_ns < LOOK_NS_MAX)
		nic->look_ns = shorter(nic->look_ns * 2, LOOK_NS_MAX);
	else if (!is_watched)
		nic->look_ns = UINT64_MAX;
	if (nic->look_ns < (now_ns - start_ns) * LOOK_SHARE)
		nic->look_ns = (now_ns - start_ns) * LOOK_SHARE;
	nic->look_at_ns = nic->look_ns == UINT64_MAX ? UINT64_MAX : now_ns + nic->look_ns;
}

/* Run what there is; how long to sleep then.  0: not at all. */
static uint64_t run_and_measure(struct nic *nic)
{
	struct engine *e = nic->e;
	uint64_t start_ns, now_ns, wait_ns;
	bool is_busy;

	pthread_mutex_lock(&e->dev->lock);
	start_ns = e->dev->now_ns();
	is_busy = is_attended(e, &nic->activity);
	look(nic, start_ns, is_busy);
	engine_drive(e);
	now_ns = e->dev->now_ns();
	look_again(nic, start_ns, now_ns, is_busy);
	wait_ns = due_in_ns(e, now_ns);
	if (nic->look_at_ns != UINT64_MAX)
		wait_ns = shorter(wait_ns, nic->look_at_ns > now_ns ? nic->look_at_ns - now_ns : 0);
	if (is_busy)
		e->wire->ops->listen(e->wire, atomic_load(&e->armed_cqs) > 0);
	else if (wait_ns)
		fall_asleep(e, wait_ns == UINT64_MAX ? UINT64_MAX : now_ns + wait_ns);
	pthread_mutex_unlock(&e->dev->lock);
	if (is_busy)
		wait_ns = shorter(wait_ns, TICK_NS);
	return doorbells_wait(e) ? 0 : wait_ns;
}

static void *nic_main(void *arg)
{
	struct nic nic = { .e = arg, .look_ns = TICK_NS };
	struct engine *e = arg;

	prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);		/* of this thread */
	if (e->share)
		share_live_begin(e->share);
	while (!atomic_load(&e->must_stop)) {
		uint64_t wait_ns = run_and_measure(&nic);

		if (wait_ns)
			e->wire->ops->wait(e->wire, wait_ns);
		atomic_store(&e->is_nic_asleep, false);
	}
	if (e->share)
		share_live_end(e->share);
	return NULL;
}

int engine_nic_start(struct engine *e)
{
	sigset_t all, old;
	int error;

	if (e->has_thread || !e->wire)
		return 0;
	atomic_store(&e->must_stop, false);
	sigfillset(&all);
	sigdelset(&all, SIGSEGV);		/* the guard of emu/mem needs these two */
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&e->thread, NULL, nic_main, e);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	e->has_thread = !error;
	if (!error && e->share)
		share_live_await(e->share);
	return -error;
}

bool engine_nic_runs(const struct engine *e)
{
	return e->has_thread;
}

void engine_nic_stop(struct engine *e)
{
	if (!e->has_thread)
		return;
	atomic_store(&e->must_stop, true);
	e->wire->ops->kick(e->wire);
	pthread_join(e->thread, NULL);
	e->has_thread = false;
}
