/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is behind the port besides the fabric: the outside, and the host's own network stack.
 *
 * Frames of the host's stack are sent like those of a RAW_PACKET QP; those that no rule of the
 * port wants go to it.  The outside is a cable: what this function sends leaves there unless it is
 * for an address of this host, and what comes from there is for this host alone.
 *
 * Frames from outside wait until somebody wants some, and then for receives: whoever plays a
 * capture wants to see all of it.  Each function gets all of them and takes those that the rules of
 * its host give to it, so that one that is slow or dies holds up no other.  It begins when rules
 * have been made and for a moment no more came.  A queue that has no receive for long loses frames
 * from then on, until it has one.  A process that was stopped meanwhile shall not find its time
 * over: what counts is how often somebody looked.
 */
#include <errno.h>
#include "emu/engine/engine_local.h"

#define SETTLE_NS	UINT64_C(100000000)
#define TICK_NS		UINT64_C(1000000)
#define RETRY_NS	UINT64_C(50000)		/* others have no room */
#define TICKS_MAX	2000			/* that a frame waits for a receive */
#define FRAMES_A_STEP	64			/* of each side */

static void look_again(struct engine *e, uint64_t at_ns)
{
	if (at_ns < e->uplinks.due_ns)
		e->uplinks.due_ns = at_ns;
}

static void frame_lost(struct engine *e, enum why why, uint64_t bytes, int error)
{
	dev_why(e->dev, .why = why, .side = WHY_SIDE_DEVICE, .bytes = bytes,
		.found = (uint64_t)-error);
}

/* --- out --- */

bool uplink_leave(struct engine *e, const struct ib_packet *p)
{
	struct uplink *outside = e->uplinks.outside;

	return outside && outside->ops->send &&
	       !outside->ops->send(outside, p->span->iov_base, p->payload_bytes);
}

void uplink_to_host(struct engine *e, const struct frame *f)
{
	struct uplink *host = e->uplinks.host;
	int error = host ? host->ops->send(host, f->at, f->bytes) : -ENODEV;

	if (error)
		frame_lost(e, WHY_FRAME_HOST, f->bytes, error);
}

/* --- from the host's stack --- */

static enum wire_sent host_frame(struct engine *e, struct iovec *frame)
{
	const struct ib_packet p = {
		.opcode = IB_ETHERNET | RC_SEND_ONLY, .packet_count = 1,
		.payload_bytes = (uint32_t)frame->iov_len, .span = frame, .span_count = 1,
	};

	if (!e->dev->port.is_down)
		return ether_send(e, &p);
	frame_lost(e, WHY_PORT_DOWN, frame->iov_len, 0);
	return WIRE_SENT;
}

static void host_take(struct engine *e)
{
	struct uplink *host = e->uplinks.host;
	struct iovec frame;

	for (unsigned i = 0; i < FRAMES_A_STEP; i++) {
		if (!host->ops->receive(host, &frame))
			return;
		if (host_frame(e, &frame) == WIRE_FULL) {
			look_again(e, e->dev->now_ns() + RETRY_NS);
			return;
		}
		host->ops->release(host);
		e->progress++;
	}
	e->uplinks.has_more = true;
}

/* --- from outside --- */

/* Has this function rules, and are these all that it makes for now? */
static bool may_begin(struct engine *e)
{
	struct uplinks *u = &e->uplinks;
	uint32_t rules = e->dev->flows.taken - u->rules_of_host;
	uint64_t now_ns;

	if (u->has_begun && rules)
		return true;
	now_ns = e->dev->now_ns();
	if (rules != u->rules) {
		u->has_begun = false;
		u->rules = rules;
		u->begin_ns = now_ns + SETTLE_NS;
	}
	u->has_begun = rules && now_ns >= u->begin_ns;
	if (rules && !u->has_begun)
		look_again(e, u->begin_ns);
	return u->has_begun;
}

static void outside_release(struct engine *e)
{
	e->uplinks.has_frame = false;
	e->uplinks.ticks = 0;
	e->uplinks.outside->ops->release(e->uplinks.outside);
}

/* The next one that is a frame; false: there is none. */
static bool outside_next(struct engine *e)
{
	struct uplinks *u = &e->uplinks;
	struct iovec bytes;

	while (!u->has_frame) {
		if (!u->outside->ops->receive(u->outside, &bytes))
			return false;
		u->has_frame = bytes.iov_len <= FRAME_BYTES_MAX &&
			       frame_read(&u->frame, bytes.iov_base, (uint32_t)bytes.iov_len, true);
		if (u->has_frame)
			return true;
		frame_lost(e, WHY_FRAME_OUTSIDE, bytes.iov_len, 0);
		outside_release(e);
	}
	return true;
}

/* Has it waited as long as a frame may?  Looks that follow each other at once count as one. */
static bool patience_ends(struct engine *e)
{
	struct uplinks *u = &e->uplinks;
	uint64_t now_ns = e->dev->now_ns();

	if (!u->ticks || now_ns >= u->tick_ns) {
		u->ticks++;
		u->tick_ns = now_ns + TICK_NS;
	}
	look_again(e, u->tick_ns);
	return u->ticks > TICKS_MAX;
}

static void outside_take(struct engine *e)
{
	struct uplinks *u = &e->uplinks;

	if (e->dev->port.is_down || !may_begin(e))
		return;
	for (unsigned i = 0; i < FRAMES_A_STEP; i++) {
		if (!outside_next(e))
			return;
		if (!ether_from_outside(e, &u->frame, false)) {
			if (!patience_ends(e))
				return;
			ether_from_outside(e, &u->frame, true);
		}
		outside_release(e);
		e->progress++;
	}
	u->has_more = true;
}

/* --- both --- */

void uplinks_take(struct engine *e)
{
	struct uplinks *u = &e->uplinks;

	u->due_ns = UINT64_MAX;
	u->has_more = false;
	if (u->host && u->host->ops->receive)
		host_take(e);
	if (u->outside && u->outside->ops->receive)
		outside_take(e);
}

uint64_t uplinks_deadline_ns(const struct engine *e)
{
	return e->uplinks.has_more ? 0 : e->uplinks.due_ns;
}

static void arrived(void *ctx)
{
	struct engine *e = ctx;

	if (e->wire)
		e->wire->ops->kick(e->wire);
}

static void listen_to(struct uplink *u, void (*call)(void *ctx), struct engine *e)
{
	if (u && u->ops->listen)
		u->ops->listen(u, call, e);
}

void engine_uplinks_join(struct engine *e, struct uplink *outside, struct uplink *host)
{
	e->uplinks = (struct uplinks){
		.outside = outside, .host = host, .due_ns = UINT64_MAX,
		.takes = (outside && outside->ops->receive) || (host && host->ops->receive),
		.rules_of_host = e->dev->flows.taken,
	};
	listen_to(outside, arrived, e);
	listen_to(host, arrived, e);
}

void engine_uplinks_leave(struct engine *e)
{
	listen_to(e->uplinks.outside, NULL, NULL);
	listen_to(e->uplinks.host, NULL, NULL);
	e->uplinks = (struct uplinks){ .due_ns = UINT64_MAX };
}
