/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ack and RNR timers, and events that moderation holds back: a binary heap by deadline.
 *
 * A timer is restarted with every acknowledgement, so the heap is lazy: a later
 * deadline or a stopped timer only changes its owner, and the entry is looked at when its
 * old time has come.  The exact clock is read only near a deadline: it costs as much as a
 * small message, and where the cheap one will do that is taken.
 */
#include <stdlib.h>
#include "emu/engine/engine_local.h"

/* Where the owner of an entry remembers its slot. */
static uint32_t *owner_slot(const struct timer_entry *entry)
{
	return entry->qp ? &entry->qp->timer_slot : &entry->cq->timer_slot;
}

/* The deadline that counts; 0: none any more. */
static uint64_t owner_deadline_ns(const struct timer_entry *entry)
{
	return entry->qp ? entry->qp->req.deadline_ns : entry->cq->event_deadline_ns;
}

static void heap_set(struct engine *e, uint32_t slot, struct timer_entry entry)
{
	e->heap[slot] = entry;
	*owner_slot(&entry) = slot;
}

static void heap_up(struct engine *e, uint32_t slot)
{
	struct timer_entry entry = e->heap[slot];

	while (slot > 1 && e->heap[slot / 2].deadline_ns > entry.deadline_ns) {
		heap_set(e, slot, e->heap[slot / 2]);
		slot /= 2;
	}
	heap_set(e, slot, entry);
}

static void heap_down(struct engine *e, uint32_t slot)
{
	struct timer_entry entry = e->heap[slot];

	for (;;) {
		uint32_t child = slot * 2;

		if (child > e->heap_count)
			break;
		if (child < e->heap_count &&
		    e->heap[child + 1].deadline_ns < e->heap[child].deadline_ns)
			child++;
		if (e->heap[child].deadline_ns >= entry.deadline_ns)
			break;
		heap_set(e, slot, e->heap[child]);
		slot = child;
	}
	heap_set(e, slot, entry);
}

static void heap_remove(struct engine *e, uint32_t slot)
{
	struct timer_entry last = e->heap[e->heap_count--];

	*owner_slot(&e->heap[slot]) = 0;
	if (slot > e->heap_count)
		return;
	heap_set(e, slot, last);
	heap_up(e, slot);
	heap_down(e, *owner_slot(&last));
}

/* Without memory the timer does not run; the next packet of the QP tries again. */
static bool heap_reserve(struct engine *e)
{
	uint32_t size = e->heap_size ? e->heap_size * 2 : 64;
	struct timer_entry *heap;

	if (e->heap_count + 1 < e->heap_size)
		return true;
	heap = realloc(e->heap, size * sizeof *heap);
	if (!heap)
		return false;
	e->heap = heap;
	e->heap_size = size;
	return true;
}

static void entry_start(struct engine *e, struct timer_entry entry)
{
	uint32_t slot = *owner_slot(&entry);

	if (!slot) {
		if (!heap_reserve(e))
			return;
		e->heap[++e->heap_count] = entry;
		heap_up(e, e->heap_count);
	} else if (e->heap[slot].deadline_ns > entry.deadline_ns) {
		e->heap[slot].deadline_ns = entry.deadline_ns;
		heap_up(e, slot);
	}
}

void timer_start(struct engine *e, struct emu_qp *qp, uint64_t deadline_ns)
{
	qp->req.deadline_ns = deadline_ns;
	entry_start(e, (struct timer_entry){ deadline_ns, qp, NULL });
}

void timer_start_cq(struct engine *e, struct emu_cq *cq)
{
	entry_start(e, (struct timer_entry){ cq->event_deadline_ns, NULL, cq });
}

void timer_want(struct engine *e, struct emu_qp *qp)
{
	if (qp->is_timer_listed)
		return;
	qp->is_timer_listed = true;
	qp->timer_next = e->timer_wanted;
	e->timer_wanted = qp;
}

/* Timers much longer than the coarse clock's lag may start by it, and end that much later. */
#define COARSE_IS_FINE	8

static uint64_t deadline_in(const struct emu_dev *dev, uint64_t wait_ns, uint64_t *now_ns)
{
	if (dev->coarse_now_ns && wait_ns >= COARSE_IS_FINE * dev->coarse_lag_ns)
		return dev->coarse_now_ns() + dev->coarse_lag_ns + wait_ns;
	if (!*now_ns)
		*now_ns = dev->now_ns();
	return *now_ns + wait_ns;
}

void timers_start(struct engine *e)
{
	struct emu_qp *qp = e->timer_wanted;
	uint64_t now_ns = 0;

	e->timer_wanted = NULL;
	for (struct emu_qp *next; qp; qp = next) {
		struct rc_req *r = &qp->req;
		uint64_t wait_ns = rc_timer_ns(qp);

		next = qp->timer_next;
		qp->is_timer_listed = false;
		if (!r->wants_timer || (!r->psn_out && !r->is_waiting_rnr))
			continue;
		r->wants_timer = false;
		if (r->deadline_ns || wait_ns == UINT64_MAX)
			continue;
		timer_start(e, qp, deadline_in(e->dev, wait_ns, &now_ns));
	}
}

static void timer_fire(struct engine *e, struct emu_qp *qp, uint64_t now_ns)
{
	if (qp->type == QPT_XRC_TGT) {
		relay_look(e, qp, now_ns);
		return;
	}
	/* A packet that waits at a live peer is late, not lost: patience costs no retry. */
	if (!qp->req.is_waiting_rnr && e->wire && e->wire->ops->is_late(e->wire, qp->dest_qpn)) {
		timer_start(e, qp, now_ns + rc_timer_ns(qp));
		return;
	}
	transport_of(qp)->timer(&e->tp, qp);
	engine_qp_kick(e, qp);
}

static bool is_far_off(const struct emu_dev *dev, uint64_t deadline_ns)
{
	return dev->coarse_now_ns && dev->coarse_now_ns() + dev->coarse_lag_ns < deadline_ns;
}

void timers_expire(struct engine *e)
{
	uint64_t now_ns;

	if (!e->heap_count || is_far_off(e->dev, e->heap[1].deadline_ns))
		return;
	now_ns = e->dev->now_ns();
	while (e->heap_count && e->heap[1].deadline_ns <= now_ns) {
		struct timer_entry due = e->heap[1];
		uint64_t deadline_ns = owner_deadline_ns(&due);

		if (deadline_ns > now_ns) {
			e->heap[1].deadline_ns = deadline_ns;
			heap_down(e, 1);
			continue;
		}
		heap_remove(e, 1);
		if (deadline_ns && due.qp)
			timer_fire(e, due.qp, now_ns);
		else if (deadline_ns)
			cq_timer(e, due.cq);
	}
}

void timer_forget_cq(struct engine *e, struct emu_cq *cq)
{
	if (cq->timer_slot)
		heap_remove(e, cq->timer_slot);
}

void timer_forget(struct engine *e, struct emu_qp *qp)
{
	struct emu_qp **at = &e->timer_wanted;

	if (qp->timer_slot)
		heap_remove(e, qp->timer_slot);
	if (!qp->is_timer_listed)
		return;
	while (*at != qp)
		at = &(*at)->timer_next;
	*at = qp->timer_next;
	qp->is_timer_listed = false;
}
