/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The NIC thread: the fallback that runs the engine when nobody else does.
 *
 * While application threads are in the engine (they "attend") it only looks in once a
 * tick.  When a tick passes without them it takes over: it runs what is left, asks peers to
 * wake it, and sleeps until a packet, a timer, or a kick by a thread that came back.  It never
 * spins and takes no signal of the application.
 *
 * Programs that ring doorbell pages themselves are found by looking at pages and records, every
 * tick while that finds something and ever more rarely while it does not.
 */
#include <errno.h>
#include <signal.h>
#include "emu/engine/engine_local.h"
#include "emu/share/share.h"

#define TICK_NS		UINT64_C(1000000)
#define RETRY_NS	UINT64_C(50000)		/* the wire was full, or work is left */
#define RESCAN_NS_MAX	UINT64_C(64000000)	/* between looks at quiet doorbell pages */

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

/* When to look again at the latest, as things stand now. */
static uint64_t due_in_ns(struct engine *e, uint64_t now_ns, uint64_t rescan_ns)
{
	uint64_t deadline_ns = engine_deadline_ns(e), wait_ns = UINT64_MAX;

	if (deadline_ns == 0)
		wait_ns = RETRY_NS;
	else if (deadline_ns != UINT64_MAX)
		wait_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
	return e->page_count && rescan_ns < wait_ns ? rescan_ns : wait_ns;
}

struct nic {
	struct engine *e;
	uint64_t activity, rings;	/* as last seen */
	uint64_t rescan_ns;
};

/* Run what there is; how long to sleep then.  0: not at all. */
static uint64_t run_and_measure(struct nic *nic)
{
	struct engine *e = nic->e;
	uint64_t now_ns, wait_ns;
	bool is_busy;

	pthread_mutex_lock(&e->dev->lock);
	is_busy = is_attended(e, &nic->activity);
	pages_scan(e);
	if (!is_busy)
		records_scan(e);
	engine_drive(e);
	is_busy |= e->page_rings != nic->rings;
	nic->rings = e->page_rings;
	nic->rescan_ns = is_busy ? TICK_NS : nic->rescan_ns * 2 < RESCAN_NS_MAX ?
			 nic->rescan_ns * 2 : RESCAN_NS_MAX;
	now_ns = e->dev->now_ns();
	wait_ns = due_in_ns(e, now_ns, nic->rescan_ns);
	if (is_busy)
		e->wire->ops->listen(e->wire, atomic_load(&e->armed_cqs) > 0);
	else if (wait_ns)
		fall_asleep(e, wait_ns == UINT64_MAX ? UINT64_MAX : now_ns + wait_ns);
	pthread_mutex_unlock(&e->dev->lock);
	if (is_busy && wait_ns > TICK_NS)
		wait_ns = TICK_NS;
	return doorbells_wait(e) ? 0 : wait_ns;
}

static void *nic_main(void *arg)
{
	struct nic nic = { .e = arg, .rescan_ns = TICK_NS };
	struct engine *e = arg;

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
	return -error;
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
