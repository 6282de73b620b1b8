/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How threads of the application meet the engine: ringing, polling, arming.
 *
 * A doorbell is a hint; the work is derived from the QP's record.  Whoever gets the
 * lock serves everybody's doorbells; who does not leaves its own in a ring that the
 * holder looks at again after unlocking, so none is lost.  QPs go by number, since one
 * may be destroyed at any moment.
 */
#include <sched.h>
#include "emu/engine/engine_local.h"

static void doorbell_push(struct engine *e, uint32_t qpn)
{
	struct doorbell_ring *ring = &e->doorbells;
	uint32_t at = atomic_load(&ring->head);

	do {
		if (at - atomic_load(&ring->tail) >= DOORBELLS) {
			atomic_store(&ring->has_overflowed, true);
			return;
		}
	} while (!atomic_compare_exchange_weak(&ring->head, &at, at + 1));
	atomic_store(&ring->qpn[at % DOORBELLS], qpn);
}

bool doorbells_wait(struct engine *e)
{
	return atomic_load(&e->doorbells.head) != atomic_load(&e->doorbells.tail) ||
	       atomic_load(&e->doorbells.has_overflowed);
}

void doorbell_serve(struct engine *e, uint32_t qpn)
{
	struct emu_qp *qp = qp_find(e->dev, qpn);

	if (!qp)
		return;
	qp->work |= QP_WORK_DOORBELL;
	engine_qp_kick(e, qp);
}

void records_scan(struct engine *e)
{
	struct emu_qp *qp;

	for (uint32_t at = 0; (qp = numbers_next(&e->dev->qpns, &at));) {
		if (!tp_has_doorbell(qp))
			continue;
		e->page_rings++;
		doorbell_serve(e, qp->qpn);
	}
}

/* One in RESET has nothing posted, and no way to ERR. */
static void qp_break(struct engine *e, struct emu_qp *qp)
{
	if (qp->state == QP_RESET)
		return;
	qp_state_set(qp, QP_ERR);
	qp->work |= QP_WORK_FLUSH;
	engine_qp_kick(e, qp);
}

void engine_fail(struct engine *e)
{
	struct emu_qp *qp;

	for (uint32_t at = 0; (qp = numbers_next(&e->dev->qpns, &at));)
		qp_break(e, qp);
}

void doorbells_take(struct engine *e)
{
	struct doorbell_ring *ring = &e->doorbells;
	uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

	while (tail != atomic_load(&ring->head)) {
		uint32_t qpn = atomic_exchange(&ring->qpn[tail % DOORBELLS], 0);

		if (!qpn)
			break;		/* claimed, not written yet: its owner tries the lock */
		atomic_store(&ring->tail, ++tail);
		doorbell_serve(e, qpn);
	}
	if (atomic_exchange(&ring->has_overflowed, false))
		records_scan(e);
}

/*
 * Unlock, and take the lock again for doorbells that came meanwhile.  A ringer pushes
 * first and tries the lock second; we unlock first and look second: one of us sees the other.
 */
static void unlock(struct engine *e)
{
	for (;;) {
		pthread_mutex_unlock(&e->dev->lock);
		if (!doorbells_wait(e) || pthread_mutex_trylock(&e->dev->lock))
			return;
		engine_drive(e);
	}
}

static void note_activity(struct engine *e)
{
	atomic_store_explicit(&e->activity,
		atomic_load_explicit(&e->activity, memory_order_relaxed) + 1, memory_order_relaxed);
}

#define POLLS_THAT_ATTEND 64

/* Does the NIC thread's sleep end too late for what has come up since it began? */
static bool nic_oversleeps(const struct engine *e)
{
	uint64_t until_ns = atomic_load(&e->nic_until_ns);

	return atomic_load(&e->wants_look) || engine_deadline_ns(e) < until_ns;
}

/*
 * The NIC thread sleeps long only while nobody attends.  Take over from it when this thread
 * turns out to poll in earnest, and end its sleep when it would be too long.
 */
static void nic_adjust(struct engine *e, bool is_polling)
{
	uint64_t activity = atomic_load_explicit(&e->activity, memory_order_relaxed);

	if (!atomic_load_explicit(&e->is_nic_asleep, memory_order_relaxed))
		return;
	if (!(is_polling && activity - e->asleep_activity >= POLLS_THAT_ATTEND) &&
	    !nic_oversleeps(e))
		return;
	atomic_store(&e->is_nic_asleep, false);
	if (e->wire)
		e->wire->ops->kick(e->wire);
}

void drive_and_unlock(struct engine *e)
{
	note_activity(e);
	engine_drive(e);
	nic_adjust(e, false);
	unlock(e);
}

void engine_rang(struct engine *e, uint32_t qpn)
{
	if (pthread_mutex_trylock(&e->dev->lock)) {
		doorbell_push(e, qpn);
		if (pthread_mutex_trylock(&e->dev->lock))
			return;
	} else {
		doorbell_serve(e, qpn);
	}
	drive_and_unlock(e);
}

/* A thread that polls in vain for long may be keeping whom it waits for from the CPU. */
#define IDLE_LENDS_TO_YIELD 1000

static bool is_polling_in_vain(struct engine *e)
{
	bool is_idle = e->progress == e->progress_seen;

	e->progress_seen = e->progress;
	e->idle_lends = is_idle ? e->idle_lends + 1 : 0;
	return e->idle_lends && e->idle_lends % IDLE_LENDS_TO_YIELD == 0;
}

void engine_lend(struct engine *e)
{
	bool yields;

	if (pthread_mutex_trylock(&e->dev->lock))
		return;
	note_activity(e);
	if (atomic_load_explicit(&e->watched, memory_order_relaxed))
		pages_scan(e);			/* it may ring itself, but poll through us */
	engine_drive(e);
	nic_adjust(e, true);
	yields = is_polling_in_vain(e);
	unlock(e);
	if (yields)
		sched_yield();
}

void engine_armed(struct engine *e, uint32_t cqn)
{
	struct emu_cq *cq;

	pthread_mutex_lock(&e->dev->lock);
	cq = numbers_find(&e->dev->cqns, cqn);
	if (cq)
		engine_cq_arm(e, cq);
	drive_and_unlock(e);
}

void engine_posted_recv(struct engine *e, uint32_t qpn)
{
	if (atomic_load_explicit(&e->failed_qps, memory_order_relaxed))
		engine_rang(e, qpn);
}

/* A command sees the device as it is now: what was rung before it has happened. */
void engine_enter(struct engine *e)
{
	pthread_mutex_lock(&e->dev->lock);
	look_outside(e);
	pages_scan(e);
	engine_drive(e);
}

void engine_leave(struct engine *e)
{
	drive_and_unlock(e);
}
