/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loop: doorbells, packets and timers in; packets out.
 *
 * A packet for a QP of this process is handed over at once (the loopback wire);
 * others go to the wire.  Every QP with work stands once in the ready list and is served
 * in turn, a bounded part each time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "emu/engine/engine_local.h"
#include "emu/share/share.h"

/* Shares of one step. */
enum {
	PACKETS_A_TURN = 64,			/* of one QP before the next one's turn */
	BYTES_A_TURN = 4 << 20,
	LOOP_PACKET_BYTES = 1 << 20,		/* of a super-packet inside the process */
	DIRECT_BYTES = 4 << 20,			/* moved by one operation in a peer */
	TURNS_A_STEP = 256,
	ARRIVALS_A_STEP = 256,
	STEPS_A_DRIVE = 64,
};

static void list_init(struct qp_list *l)
{
	l->first = NULL;
	l->last = &l->first;
}

static void list_add(struct qp_list *l, struct emu_qp *qp)
{
	qp->ready_next = NULL;
	qp->ready_link = l->last;
	*l->last = qp;
	l->last = &qp->ready_next;
}

/* One of thousands goes as fast as one of two. */
static void list_remove(struct qp_list *l, struct emu_qp *qp)
{
	*qp->ready_link = qp->ready_next;
	if (qp->ready_next)
		qp->ready_next->ready_link = qp->ready_link;
	else
		l->last = qp->ready_link;
}

static struct emu_qp *list_take(struct qp_list *l)
{
	struct emu_qp *qp = l->first;

	if (qp)
		list_remove(l, qp);
	return qp;
}

static void count_failed(struct engine *e, struct emu_qp *qp, bool has_failed)
{
	if (has_failed == qp->is_counted_failed)
		return;
	qp->is_counted_failed = has_failed;
	atomic_fetch_add(&e->failed_qps, has_failed ? 1 : -1);
}

void engine_qp_kick(struct engine *e, struct emu_qp *qp)
{
	count_failed(e, qp, qp->state == QP_ERR && qp->rq_count);
	if (qp->req.wants_timer)
		timer_want(e, qp);
	if (qp->is_ready || qp->is_blocked || !qp->work)
		return;
	qp->is_ready = true;
	list_add(&e->ready, qp);
}

void engine_qp_forget(struct engine *e, struct emu_qp *qp)
{
	if (qp->type == QPT_DCT)
		for (struct emu_qp *dcr = qp->dct->oldest; dcr; dcr = dcr->dcr->newer)
			engine_qp_forget(e, dcr);
	if (qp->is_ready)
		list_remove(&e->ready, qp);
	if (qp->is_blocked)
		list_remove(&e->blocked, qp);
	qp->is_ready = qp->is_blocked = false;
	count_failed(e, qp, false);
	timer_forget(e, qp);
}

static void dropped(struct engine *e, const struct ib_packet *p, enum why why)
{
	dev_why(e->dev, .why = why, .side = WHY_SIDE_DEVICE, .qpn = p->dest_qpn,
		.peer_qpn = p->src_qpn, .psn = p->psn, .opcode = p->opcode);
}

/* May this QP take packets of this sort now?  By state: requests, answers. */
static const struct { bool requests, answers; } takes[QP_STATE_COUNT] = {
	[QP_RTR] = { true, false },
	[QP_RTS] = { true, true },
	[QP_SQD] = { true, true },
	[QP_SQE] = { true, false },
};

bool takes_requests(const struct emu_qp *qp)
{
	return takes[qp->state].requests;
}

static enum why arrival_check(const struct emu_qp *qp, const struct ib_packet *p)
{
	const struct transport *t = transport_of(qp);

	if ((p->opcode & IB_TRANSPORT_MASK) != t->bth)
		return WHY_PACKET_TRANSPORT;
	if (ib_is_answer(p->opcode) ? !takes[qp->state].answers : !takes_requests(qp))
		return WHY_PACKET_QP_STATE;
	if (!ib_pkeys_match(p->pkey, qp->pkey))
		return WHY_PACKET_PKEY;
	if (t->is_connected && memcmp(p->sgid, qp->dgid, sizeof p->sgid))
		return WHY_PACKET_SGID;
	return WHY_NONE;
}

/* A packet has reached its QP.  False: its payload could not be read. */
bool arrive(struct engine *e, struct emu_qp *qp, const struct ib_packet *p)
{
	enum why why = arrival_check(qp, p);
	bool is_readable;

	if (why != WHY_NONE) {
		e->dev->port.bad_pkeys += why == WHY_PACKET_PKEY;
		dropped(e, p, why);
		return true;
	}
	if (qp->state == QP_RTR && !qp->is_established && transport_of(qp)->is_connected) {
		qp->is_established = true;
		qp_state_set(qp, QP_RTR);		/* from now on peers may execute */
		qp_event(qp, EVENT_COMM_EST);
	}
	e->progress++;
	is_readable = transport_of(qp)->take(&e->tp, qp, p);
	engine_qp_kick(e, qp);
	return is_readable;
}

bool has_gid(const struct emu_dev *dev, const uint8_t gid[16])
{
	if (ib_is_lid(gid))
		return port_has_lid(dev, ib_gid_lid(gid));
	for (unsigned i = 0; i < dev->gid_count; i++)
		if (!memcmp(dev->gid[i].raw, gid, 16))
			return memcmp(gid, (uint8_t[16]){ 0 }, 16) != 0;	/* no empty entry */
	return false;
}

/* The QP of this function that such a packet reaches, or NULL. */
static struct emu_qp *local_peer(struct engine *e, uint32_t dest_qpn, const uint8_t sgid[16],
				 const uint8_t dgid[16])
{
	struct emu_qp *peer = qp_find(e->dev, dest_qpn);

	if (!peer || (memcmp(sgid, dgid, 16) && !has_gid(e->dev, dgid)))
		return NULL;
	return peer;
}

static enum wire_sent send(struct engine *e, struct emu_qp *peer, const struct ib_packet *p)
{
	enum wire_sent sent;

	if (e->dev->port.is_down) {
		dropped(e, p, WHY_PORT_DOWN);
		return WIRE_SENT;		/* nobody tells a sender what is lost */
	}
	if ((p->opcode & IB_TRANSPORT_MASK) == IB_ETHERNET)
		return ether_send(e, p);
	if (peer)
		return arrive(e, peer, p) ? WIRE_SENT : WIRE_UNREADABLE;
	if (mcast_is_group(p))
		sent = mcast_send(e, p);
	else
		sent = e->wire ? e->wire->ops->send(e->wire, p) : WIRE_NOBODY;
	if (sent == WIRE_NOBODY)
		dropped(e, p, mcast_is_group(p) ? WHY_PACKET_NO_GROUP : WHY_PACKET_NO_QP);
	else if (sent == WIRE_WRONG_GID)
		dropped(e, p, WHY_PACKET_DGID);
	return sent;
}

/* May the next request be executed by us in the peer's process? */
static bool is_direct(const struct engine *e, const struct emu_qp *qp, const struct emu_qp *peer,
		      uint32_t work)
{
	return !peer && e->is_direct && work == QP_WORK_REQUEST && transport_of(qp)->is_direct &&
	       !e->dev->port.is_down;
}

/* Bytes that executing it moves.  A large READ would hold the lock for long: the peer answers that
 * piece by piece. */
static uint32_t direct_bytes(const struct ib_packet *p)
{
	return p->opcode == RC_READ_REQUEST ? p->dma_bytes : p->payload_bytes;
}

enum turn { TURN_MORE, TURN_DONE, TURN_FULL };

/* One packet of a QP, or what stands for it. */
static enum turn serve_one(struct engine *e, struct emu_qp *qp, uint32_t work,
			   const struct tp_half *h, uint64_t *bytes)
{
	bool is_connected = transport_of(qp)->is_connected;
	struct emu_qp *peer = is_connected ?
		local_peer(e, qp->dest_qpn, qp->sgid, qp->dgid) : NULL;
	/* What a target may have to pass on must fit through the wire. */
	bool has_loop = !e->wire || (peer && peer->type != QPT_XRC_TGT);
	uint32_t wire_max = has_loop ? LOOP_PACKET_BYTES : e->wire->ops->packet_bytes_max;
	bool may_execute = is_direct(e, qp, peer, work);
	struct ib_packet p;
	enum wire_sent sent;

	if (!h->next(&e->tp, qp, may_execute ? LOOP_PACKET_BYTES : wire_max, &p))
		return TURN_DONE;
	if (may_execute && rc_is_one_sided(&p) && direct_bytes(&p) <= DIRECT_BYTES &&
	    direct_execute(e, qp, &p)) {
		*bytes += direct_bytes(&p);
		return TURN_MORE;
	}
	if (p.payload_bytes > wire_max && !h->next(&e->tp, qp, wire_max, &p))
		return TURN_DONE;
	if (!is_connected)
		peer = local_peer(e, p.dest_qpn, p.sgid, p.dgid);
	sent = send(e, peer, &p);
	if (sent == WIRE_FULL)
		return TURN_FULL;
	if (sent == WIRE_UNREADABLE)
		h->unreadable(&e->tp, qp);
	else
		h->sent(&e->tp, qp, &p);
	*bytes += p.payload_bytes;
	return TURN_MORE;
}

/* Send what one half of a QP has.  False: the wire is full. */
static bool serve_half(struct engine *e, struct emu_qp *qp, uint32_t work,
		       const struct tp_half *h)
{
	enum turn turn = TURN_MORE;
	uint64_t bytes = 0;

	for (int i = 0;
	     i < PACKETS_A_TURN && bytes < BYTES_A_TURN && qp->work & work && turn == TURN_MORE;
	     i++)
		turn = serve_one(e, qp, work, h, &bytes);
	return turn != TURN_FULL;
}

/* Acknowledgements inside of the process need no packet. */
static void acks_collect(struct engine *e, struct emu_qp *qp)
{
	struct emu_qp *peer = local_peer(e, qp->dest_qpn, qp->sgid, qp->dgid);

	if (!peer || !peer->answers.ack_is_due)
		return;
	e->progress++;
	rc_hand_over_ack(&e->tp, peer, qp);
}

static void serve(struct engine *e, struct emu_qp *qp)
{
	const struct transport *t = transport_of(qp);
	bool has_room = true, has_requests = qp->work & (QP_WORK_DOORBELL | QP_WORK_REQUEST);

	if (qp->work & QP_WORK_DOORBELL) {
		qp->work &= ~(uint32_t)QP_WORK_DOORBELL;
		tp_doorbell(&e->tp, qp);
		if (qp->state == QP_ERR)
			qp->work |= QP_WORK_FLUSH;
	}
	if (qp->work & QP_WORK_RELAY)
		has_room = relay_serve(e, qp);
	/* Answers first: a peer waits for them. */
	has_room &= serve_half(e, qp, QP_WORK_RESPOND, &t->respond) &&
		   serve_half(e, qp, QP_WORK_REQUEST, &t->request);
	if (has_requests && t->is_direct)
		acks_collect(e, qp);
	if (qp->work & QP_WORK_FLUSH)
		tp_flush(&e->tp, qp);
	if (!has_room && qp->work) {
		qp->is_blocked = true;
		list_add(&e->blocked, qp);
	}
	engine_qp_kick(e, qp);
}

static void unblock(struct engine *e)
{
	struct qp_list blocked = e->blocked;

	if (!blocked.first)
		return;
	list_init(&e->blocked);
	for (struct emu_qp *qp = blocked.first, *next; qp; qp = next) {
		next = qp->ready_next;
		qp->is_blocked = false;
		engine_qp_kick(e, qp);
	}
}

/* A packet from the wire, whose payload is always readable. */
static void take_arrival(struct engine *e, const struct ib_packet *p)
{
	struct emu_qp *qp = qp_find(e->dev, p->dest_qpn);

	if ((p->opcode & IB_TRANSPORT_MASK) == IB_RELAY) {
		relay_arrive(e, p);		/* within the host: by no port */
	} else if (e->dev->port.is_down) {
		dropped(e, p, WHY_PORT_DOWN);
	} else if ((p->opcode & IB_TRANSPORT_MASK) == IB_ETHERNET) {
		ether_arrive(e, p);
	} else if (mcast_is_group(p)) {
		if (mcast_deliver(e, p) == WIRE_NOBODY)
			dropped(e, p, WHY_PACKET_NO_GROUP);
	} else if (!qp) {
		dropped(e, p, WHY_PACKET_NO_QP);
	} else if (!has_gid(e->dev, p->dgid)) {
		dropped(e, p, WHY_PACKET_DGID);
	} else {
		arrive(e, qp, p);
	}
}

static void take_arrivals(struct engine *e)
{
	struct ib_packet p;

	if (!e->wire)
		return;
	for (int i = 0; i < ARRIVALS_A_STEP && e->wire->ops->receive(e->wire, &p); i++) {
		take_arrival(e, &p);
		e->wire->ops->release(e->wire);
	}
}

bool engine_run(struct engine *e)
{
	struct emu_qp *qp;

	doorbells_take(e);
	take_arrivals(e);
	errands_take(e);
	if (e->uplinks.takes)
		uplinks_take(e);
	unblock(e);
	for (int i = 0; i < TURNS_A_STEP && (qp = list_take(&e->ready)); i++) {
		qp->is_ready = false;
		serve(e, qp);
	}
	timers_start(e);
	timers_expire(e);
	return e->ready.first || e->uplinks.has_more;
}

/* A caller's own work must not starve behind other QPs', nor hold it for ever. */
void engine_drive(struct engine *e)
{
	for (int i = 0; i < STEPS_A_DRIVE && engine_run(e); i++)
		;
}

uint64_t engine_deadline_ns(const struct engine *e)
{
	uint64_t uplinks_ns = uplinks_deadline_ns(e);

	if (e->ready.first || e->blocked.first)
		return 0;
	if (e->heap_count && e->heap[1].deadline_ns < uplinks_ns)
		return e->heap[1].deadline_ns;
	return uplinks_ns;
}

static void kick(struct tp *tp, struct emu_qp *qp)
{
	engine_qp_kick(engine_of(tp), qp);
}

static void forget(struct tp *tp, struct emu_qp *qp)
{
	engine_qp_forget(engine_of(tp), qp);
}

static const struct tp_ops engine_tp_ops = {
	.complete = complete, .kick = kick, .forget = forget,
};

int engine_create(struct emu_dev *dev, struct wire *wire, struct share *share,
		  struct engine **out)
{
	struct engine *e = calloc(1, sizeof *e);

	if (!e)
		return -ENOMEM;
	e->dev = dev;
	e->wire = wire;
	e->share = share;
	e->is_direct = share && share_is_open(share);
	e->tp.dev = dev;
	e->tp.ops = &engine_tp_ops;
	list_init(&e->ready);
	list_init(&e->blocked);
	e->uplinks.due_ns = UINT64_MAX;
	dev->engine = e;
	abroad_keys_begin(e);
	*out = e;
	return 0;
}

void engine_destroy(struct engine *e)
{
	assert(!e->has_thread);
	abroad_keys_end(e);
	e->dev->engine = NULL;
	ether_end(e);
	free(e->heap);
	free(e->page);
	free(e);
}
