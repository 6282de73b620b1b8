/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC requests that wait for another process, and guests; see relay.h.
 */
#include <errno.h>
#include <stdlib.h>
#include "emu/mem/mem.h"
#include "emu/obj/relay.h"
#include "emu/obj/srq.h"

/* --- at the target --- */

/* Turns of a QP that had this number before are older. */
static struct relay *relay_make(const struct emu_dev *dev)
{
	struct relay *relay = calloc(1, sizeof *relay);

	if (!relay)
		return NULL;
	relay->turn = dev->now_ns();
	relay->tail = &relay->head;
	return relay;
}

static int copy(struct relayed *r, const struct ib_packet *p)
{
	r->span = (struct iovec){ r->payload, p->payload_bytes };
	if (p->payload_bytes && mem_copy_spans(&r->span, 1, 0, p->span, p->span_count, 0,
					       p->payload_bytes) != MEM_SIDE_NONE)
		return -EFAULT;
	r->p = *p;
	r->p.span = &r->span;
	r->p.span_count = p->payload_bytes != 0;
	return 0;
}

int relay_keep(struct emu_qp *qp, const struct ib_packet *p)
{
	uint32_t bytes = (uint32_t)sizeof(struct relayed) + p->payload_bytes;
	struct relayed *r;
	int rc;

	if (!qp->relay)
		qp->relay = relay_make(qp->dev);
	if (!qp->relay || bytes > RELAY_BYTES_MAX - qp->relay->bytes)
		return -ENOMEM;
	r = malloc(bytes);
	rc = r ? copy(r, p) : -ENOMEM;
	if (rc) {
		free(r);
		return rc;
	}
	r->next = NULL;
	*qp->relay->tail = r;
	qp->relay->tail = &r->next;
	qp->relay->bytes += bytes;
	qp->work |= QP_WORK_RELAY;
	return 0;
}

void relay_pop(struct emu_qp *qp)
{
	struct relay *relay = qp->relay;
	struct relayed *r = relay->head;

	relay->is_out = false;
	relay->head = r->next;
	if (!relay->head)
		relay->tail = &relay->head;
	relay->bytes -= (uint32_t)sizeof *r + r->p.payload_bytes;
	free(r);
}

void relay_reset(struct emu_qp *qp)
{
	struct relay *relay = qp->type == QPT_XRC_TGT ? qp->relay : NULL;

	if (!relay)
		return;
	while (relay->head)
		relay_pop(qp);
	relay->is_out = relay->may_hold = relay->must_end = false;
	relay->wants_fetch = relay->is_fetching = relay->has_fetched = false;
}

void relay_detach(struct emu_qp *qp)
{
	if (qp->type == QPT_XRC_FAR)
		free(qp->far);
	if (qp->type != QPT_XRC_TGT)
		return;
	relay_reset(qp);
	if (qp->relay)
		free(qp->relay->fetch_room);
	free(qp->relay);
}

/* --- at the queue --- */

#define BUCKETS		1024u		/* power of two */

#define EVICTION_TRIES	8

struct guests {
	struct guest *bucket[BUCKETS];
	struct guest *oldest, *newest;
	unsigned count;
};

static struct guest **bucket_of(struct guests *g, uint32_t target_qpn)
{
	return &g->bucket[target_qpn * 0x9e3779b1u >> 16 & (BUCKETS - 1)];
}

static void append(struct guests *g, struct guest *guest)
{
	guest->newer = NULL;
	if (g->newest)
		g->newest->newer = guest;
	else
		g->oldest = guest;
	g->newest = guest;
}

static struct guest *take_oldest(struct guests *g)
{
	struct guest *guest = g->oldest;

	g->oldest = guest->newer;
	if (!g->oldest)
		g->newest = NULL;
	return guest;
}

static bool is_idle(const struct guest *guest)
{
	const struct emu_qp *qp = &guest->qp;

	return !qp->is_ready && !qp->is_blocked && !qp->answers.is_holding;
}

/* Most of so many are of targets that are gone: nobody tells. */
static bool evict(struct guests *g)
{
	struct guest *guest, **at;

	for (unsigned tries = 0; tries < EVICTION_TRIES; tries++) {
		guest = take_oldest(g);
		if (!is_idle(guest)) {
			append(g, guest);
			continue;
		}
		at = bucket_of(g, guest->qp.qpn);
		while (*at != guest)
			at = &(*at)->bucket_next;
		*at = guest->bucket_next;
		g->count--;
		free(guest);
		return true;
	}
	return false;
}

static struct guest *guest_make(struct emu_dev *dev, uint32_t target_qpn)
{
	struct guests *g = dev->guests;
	struct guest **bucket = bucket_of(g, target_qpn), *guest;

	if (g->count >= GUESTS_MAX && !evict(g))
		return NULL;
	guest = calloc(1, sizeof *guest);
	if (!guest)
		return NULL;
	guest->qp.dev = dev;
	guest->qp.type = QPT_XRC_GUEST;
	guest->qp.qpn = target_qpn;	/* in completions it is the target */
	guest->qp.resp = &guest->resp;
	guest->bucket_next = *bucket;
	*bucket = guest;
	append(g, guest);
	g->count++;
	return guest;
}

struct guest *guest_of(struct emu_dev *dev, uint32_t target_qpn)
{
	struct guest *guest;

	if (!dev->guests)
		dev->guests = calloc(1, sizeof *dev->guests);
	if (!dev->guests)
		return NULL;
	guest = *bucket_of(dev->guests, target_qpn);
	while (guest && guest->qp.qpn != target_qpn)
		guest = guest->bucket_next;
	return guest ? guest : guest_make(dev, target_qpn);
}

void guests_forget(struct emu_dev *dev, const struct emu_srq *srq)
{
	struct guest *guest = dev->guests ? dev->guests->oldest : NULL;

	for (; guest; guest = guest->newer) {
		if (guest->qp.srq != srq)
			continue;
		guest->qp.srq = NULL;
		guest->qp.answers.is_holding = false;
	}
}

void guests_free(struct emu_dev *dev)
{
	while (dev->guests && dev->guests->oldest)
		free(take_oldest(dev->guests));
	free(dev->guests);
	dev->guests = NULL;
}
