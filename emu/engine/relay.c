/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets between an XRC target QP and the receive queues of other processes; the protocol is in
 * transport/xrc_relay.c and xrc_guest.c.
 *
 * A wire is lossless while both ends live, so an outcome comes or its sender has died.  Nobody
 * tells of a death, so whoever waits looks now and then.
 */
#include "emu/engine/engine_local.h"
#include "emu/transport/xrc.h"

#define LOOK_NS		UINT64_C(50000000)
#define PACKETS_A_TURN	64

static void await(struct engine *e, struct emu_qp *qp)
{
	if (!qp->req.deadline_ns && xrc_relay_awaits(qp))
		timer_start(e, qp, e->dev->now_ns() + LOOK_NS);
}

/* Is there nobody, or only no way?  Shared memory may be short. */
static bool is_there(struct engine *e, const struct ib_packet *p, enum wire_sent how)
{
	return how == WIRE_NOBODY && e->wire->ops->lives(e->wire, p);
}

static void target_sent(struct engine *e, struct emu_qp *qp, const struct ib_packet *p,
			enum wire_sent how)
{
	if (how == WIRE_SENT)
		xrc_relay_sent(&e->tp, qp, p);
	else if (is_there(e, p, how))
		xrc_relay_dropped(qp, p);
	else
		xrc_relay_lost(&e->tp, qp, p);
	await(e, qp);
}

/* A guest whose target is gone tells nobody. */
static void guest_sent(struct engine *e, struct emu_qp *qp, const struct ib_packet *p,
		       enum wire_sent how)
{
	if (how == WIRE_UNREADABLE)
		xrc_guest_unreadable(&e->tp, qp);
	else
		xrc_guest_sent(&e->tp, qp, p);
}

bool relay_serve(struct engine *e, struct emu_qp *qp)
{
	const struct tp_half *h = &transport_of(qp)->relay;
	bool is_target = qp->type == QPT_XRC_TGT;
	enum wire_sent how;
	struct ib_packet p;

	for (int i = 0;
	     i < PACKETS_A_TURN && h->next(&e->tp, qp, e->wire->ops->packet_bytes_max, &p); i++) {
		how = e->wire->ops->send(e->wire, &p);
		if (how == WIRE_FULL || (!is_target && is_there(e, &p, how)))
			return false;
		(is_target ? target_sent : guest_sent)(e, qp, &p, how);
	}
	return true;
}

static void dropped(struct engine *e, const struct ib_packet *p, enum why why)
{
	dev_why(e->dev, .why = why, .side = WHY_SIDE_DEVICE, .qpn = p->dest_qpn,
		.peer_qpn = p->src_qpn, .psn = p->psn, .opcode = p->opcode);
}

static void outcome_arrives(struct engine *e, const struct ib_packet *p)
{
	struct emu_qp *qp = qp_find(e->dev, p->dest_qpn);

	if (!qp) {
		dropped(e, p, WHY_PACKET_NO_QP);
		return;
	}
	xrc_outcome_take(&e->tp, qp, p);
	engine_qp_kick(e, qp);
}

static void request_arrives(struct engine *e, const struct ib_packet *p)
{
	struct emu_qp *guest = e->dev->is_fatal ? NULL : xrc_guest_take(&e->tp, p);
	struct ib_packet out;

	if (guest) {
		engine_qp_kick(e, guest);
		return;
	}
	xrc_guest_missing(p, &out);
	e->wire->ops->send(e->wire, &out);	/* with no memory there is no second try */
}

void relay_arrive(struct engine *e, const struct ib_packet *p)
{
	e->progress++;
	if (!has_gid(e->dev, p->dgid))
		dropped(e, p, WHY_PACKET_DGID);
	else if (ib_operation(p->opcode) == RELAY_HANDLE)
		far_arrive(e, p);
	else if (ib_is_answer(p->opcode))
		outcome_arrives(e, p);
	else
		request_arrives(e, p);
}

void relay_look(struct engine *e, struct emu_qp *qp, uint64_t now_ns)
{
	struct ib_packet p = { .opcode = IB_RELAY, .extra.srqn = xrc_relay_awaits(qp) };

	qp->req.deadline_ns = 0;
	if (!p.extra.srqn) {
		far_look(e, qp, now_ns);
		return;
	}
	if (e->wire->ops->lives(e->wire, &p)) {
		timer_start(e, qp, now_ns + LOOK_NS);
		return;
	}
	xrc_relay_lost(&e->tp, qp, NULL);
	far_look(e, qp, now_ns);
	engine_qp_kick(e, qp);
}
