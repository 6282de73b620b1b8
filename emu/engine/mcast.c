/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast: one packet to every QP that is attached to its group, here and elsewhere.
 *
 * The wire is told which groups this function is in; how many QPs are is nobody else's business.
 */
#include <errno.h>
#include "emu/engine/engine_local.h"

bool mcast_is_group(const struct ib_packet *p)
{
	return p->dest_qpn == IB_MULTICAST_QPN && ib_is_multicast(p->dgid) &&
	       (p->opcode & IB_TRANSPORT_MASK) == IB_UD;
}

static bool has_groups(const struct engine *e)
{
	return e->wire && e->wire->ops->multicast;
}

int engine_mcast_attach(struct engine *e, struct emu_qp *qp, const uint8_t gid[16], uint16_t mlid)
{
	bool is_new, is_gone;
	int rc = mcast_attach(e->dev, qp, gid, mlid, &is_new);

	if (rc || !is_new || !has_groups(e))
		return rc;
	rc = e->wire->ops->join(e->wire, gid);
	if (!rc)
		return 0;
	dev_why(e->dev, .why = WHY_CMD_LIMIT, .side = WHY_SIDE_COMMAND, .qpn = qp->qpn);
	mcast_detach(e->dev, qp, gid, mlid, &is_gone);
	return -ENOMEM;
}

int engine_mcast_detach(struct engine *e, struct emu_qp *qp, const uint8_t gid[16], uint16_t mlid)
{
	bool is_gone;
	int rc = mcast_detach(e->dev, qp, gid, mlid, &is_gone);

	if (!rc && is_gone && has_groups(e))
		e->wire->ops->leave(e->wire, gid);
	return rc;
}

void engine_mcast_forget(struct engine *e, struct emu_qp *qp)
{
	uint8_t gid[16];
	bool is_gone;

	while (mcast_detach_any(e->dev, qp, gid, &is_gone))
		if (is_gone && has_groups(e))
			e->wire->ops->leave(e->wire, gid);
}

/* The one who sent it may not want it back. */
static bool wants(const struct emu_qp *qp, const struct ib_packet *p)
{
	return !(qp->blocks_loopback && qp->qpn == p->src_qpn);
}

enum wire_sent mcast_deliver(struct engine *e, const struct ib_packet *p)
{
	enum wire_sent sent = WIRE_NOBODY;
	const struct emu_qp *last = NULL;

	for (const struct mcast_attach *a = mcast_find(e->dev, p->dgid); a; a = a->next) {
		if (a->qp == last)
			continue;
		last = a->qp;
		sent = WIRE_SENT;
		if (wants(a->qp, p) && !arrive(e, a->qp, p))
			return WIRE_UNREADABLE;
	}
	return sent;
}

/* Others first: they may have no room, and then nobody shall have got it. */
enum wire_sent mcast_send(struct engine *e, const struct ib_packet *p)
{
	enum wire_sent there = has_groups(e) ? e->wire->ops->multicast(e->wire, p) : WIRE_NOBODY;
	enum wire_sent here;

	if (there == WIRE_FULL || there == WIRE_UNREADABLE)
		return there;
	here = mcast_deliver(e, p);
	return here == WIRE_NOBODY ? there : here;
}
