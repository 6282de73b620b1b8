/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands on XRC target QPs of other processes; what is said is in transport/xrc_far.c.
 *
 * A command waits for its answer as it would for a device's firmware: with the lock held, and it
 * runs the engine meanwhile, so that two processes may ask each other.  The wait is bounded.
 */
#include <errno.h>
#include <time.h>
#include "emu/engine/engine_local.h"
#include "emu/obj/xrcd.h"
#include "emu/transport/xrc.h"

#define PATIENCE_NS	UINT64_C(2000000000)
#define AGAIN_NS	UINT64_C(20000000)
#define NAP_NS		20000
#define ORPHAN_LOOK_NS	UINT64_C(1000000000)

/* -ESRCH nobody has the target; -EAGAIN the wire is full */
static int ask_send(struct engine *e, const struct ib_packet *p)
{
	static const int errors[] = {
		[WIRE_SENT] = 0, [WIRE_FULL] = -EAGAIN, [WIRE_NOBODY] = -ESRCH,
		[WIRE_WRONG_GID] = -ESRCH, [WIRE_UNREADABLE] = -EFAULT,
	};

	if (!e->wire->ops->lives(e->wire, p))
		return -ESRCH;
	return errors[e->wire->ops->send(e->wire, p)];
}

static int answer_await(struct engine *e, struct emu_qp *qp, const struct ib_packet *p)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	uint64_t now_ns = e->dev->now_ns(), until_ns = now_ns + PATIENCE_NS, again_ns = now_ns;

	for (; now_ns < until_ns; now_ns = e->dev->now_ns()) {
		int rc = now_ns >= again_ns ? ask_send(e, p) : -EAGAIN;

		if (rc == 0)
			again_ns = now_ns + AGAIN_NS;
		else if (rc != -EAGAIN)
			return rc;
		engine_run(e);
		if (qp->far->is_answered)
			return qp->far->rc;
		nanosleep(&nap, NULL);
	}
	return -ETIMEDOUT;
}

int engine_far_ask(struct engine *e, struct emu_qp *qp, enum far_op op,
		   const struct qp_attr *attr, uint32_t mask)
{
	struct far_ask ask = { .op = op, .mask = mask };
	struct iovec span = { &ask, sizeof ask };
	struct ib_packet p;

	if (!e->wire)
		return -ESRCH;
	if (attr)
		ask.attr = *attr;
	qp->far->turn++;
	qp->far->is_answered = false;
	xrc_far_ask(qp, &span, &p);
	return answer_await(e, qp, &p);
}

static void qp_end(struct engine *e, struct emu_qp *qp)
{
	uint32_t events;

	engine_qp_forget(e, qp);
	qp_destroy(e->dev, qp, &events);
}

/* An answer that is lost is asked for again. */
static void asked(struct engine *e, struct emu_qp *qp, const struct ib_packet *p)
{
	struct far_tell tell;
	struct iovec span = { &tell, sizeof tell };
	bool was_last = xrc_far_asked(&e->tp, qp, p, &tell);
	struct ib_packet out = {
		.opcode = IB_RELAY | RELAY_HANDLE, .packet_count = 1,
		.dest_qpn = p->src_qpn, .src_qpn = p->dest_qpn,
		.payload_bytes = sizeof tell, .span = &span, .span_count = 1,
		.extra.relay_turn = p->extra.relay_turn,
	};

	memcpy(out.sgid, p->dgid, sizeof out.sgid);
	memcpy(out.dgid, p->dgid, sizeof out.dgid);
	e->wire->ops->send(e->wire, &out);
	if (was_last)
		qp_end(e, qp);
	else if (qp)
		engine_qp_kick(e, qp);
}

void far_arrive(struct engine *e, const struct ib_packet *p)
{
	struct emu_qp *qp = qp_find(e->dev, p->dest_qpn);

	if (qp && qp->type == QPT_XRC_FAR)
		xrc_far_told(&e->tp, qp, p);
	else
		asked(e, qp, p);
}

/* --- targets whose handles are all elsewhere --- */

static bool handle_lives(struct engine *e, const struct emu_qp_open *open)
{
	struct ib_packet p = { .opcode = IB_RELAY | RELAY_HANDLE, .dest_qpn = open->far_qpn };

	return e->wire->ops->lives(e->wire, &p);
}

void far_look(struct engine *e, struct emu_qp *qp, uint64_t now_ns)
{
	bool was_last = false;
	uint32_t events;

	if (!qp_is_orphan(qp))
		return;
	for (struct emu_qp_open *open = qp->opens, *next; open; open = next) {
		next = open->next;
		if (!handle_lives(e, open))
			was_last = qp_open_close(open, &events);
	}
	if (was_last)
		qp_end(e, qp);
	else
		timer_start(e, qp, now_ns + ORPHAN_LOOK_NS);
}

void engine_far_watch(struct engine *e, struct emu_qp *qp)
{
	far_look(e, qp, e->dev->now_ns());
}

static void abandon(struct engine *e, struct emu_qp *qp)
{
	struct ib_packet p;
	uint32_t events;

	qp_event(qp, EVENT_QP_FATAL);
	while (xrc_far_event_next(qp, &p)) {
		e->wire->ops->send(e->wire, &p);	/* who does not hear will ask */
		xrc_far_event_sent(qp, &p);
	}
	while (qp->opens)
		qp_open_close(qp->opens, &events);
	qp_end(e, qp);
}

void engine_far_abandon(struct engine *e)
{
	for (uint32_t block = 0; block < NUMBER_BLOCKS; block++) {
		void **qps = e->dev->qpns.block ? e->dev->qpns.block[block] : NULL;

		for (uint32_t i = 0; qps && i < NUMBER_BLOCK; i++)
			if (qps[i] && qp_is_orphan(qps[i]))
				abandon(e, qps[i]);
	}
}
