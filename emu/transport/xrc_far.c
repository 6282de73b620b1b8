/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handles of a target QP in other processes: what they ask of the target, and what it tells them.
 *
 * A question may come twice, since the answer may have been lost: it is carried out once.
 */
#include <errno.h>
#include "emu/obj/event_desc.h"
#include "emu/obj/xrcd.h"
#include "emu/transport/tp_local.h"
#include "emu/transport/xrc.h"

/* --- at the target --- */

struct asked {
	struct tp *tp;
	struct emu_qp *qp;
	struct emu_qp_open *open;	/* NULL: not a handle, or none any more */
	const struct far_ask *ask;
	uint32_t far_qpn;
	bool was_last;
};

static int asked_open(struct asked *a)
{
	return a->open ? 0 : qp_open_far(a->tp->dev, a->qp, a->far_qpn, &a->open);
}

static int asked_close(struct asked *a)
{
	uint32_t events;

	if (a->open)
		a->was_last = qp_open_close(a->open, &events);
	a->open = NULL;
	return 0;
}

static int asked_modify(struct asked *a)
{
	return a->open ? qp_modify(a->tp->dev, a->qp, &a->ask->attr, a->ask->mask) : -EINVAL;
}

static int asked_query(struct asked *a)
{
	return a->open ? 0 : -EINVAL;
}

static int (*const asked_rows[FAR_OP_COUNT])(struct asked *a) = {
	[FAR_OPEN] = asked_open, [FAR_CLOSE] = asked_close,
	[FAR_MODIFY] = asked_modify, [FAR_QUERY] = asked_query,
};

static bool ask_read(const struct ib_packet *p, void *out, size_t bytes)
{
	struct iovec to = { out, bytes };

	return p->payload_bytes == bytes &&
	       mem_copy_spans(&to, 1, 0, p->span, p->span_count, 0, bytes) == MEM_SIDE_NONE;
}

static int carry_out(struct asked *a, uint64_t turn)
{
	struct emu_qp_open *open = a->open;

	if (open && open->far_turn == turn)
		return open->far_rc;
	if (a->ask->op >= FAR_OP_COUNT)
		return -EINVAL;
	return asked_rows[a->ask->op](a);
}

bool xrc_far_asked(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p,
		   struct far_tell *out)
{
	struct far_ask ask;
	struct asked a = { .tp = tp, .qp = qp, .ask = &ask, .far_qpn = p->src_qpn };

	*out = (struct far_tell){ .rc = -EINVAL };
	if (!qp || qp->type != QPT_XRC_TGT || !qp->xrc_domain->name ||
	    qp->xrc_domain->name != p->extra.relay_domain || !ask_read(p, &ask, sizeof ask)) {
		dev_why(tp->dev, .why = WHY_CMD_VALUE, .side = WHY_SIDE_COMMAND,
			.qpn = p->dest_qpn, .found = p->extra.relay_domain);
		return false;
	}
	a.open = qp_open_far_find(qp, p->src_qpn);
	out->rc = carry_out(&a, p->extra.relay_turn);
	out->state = qp->state;
	out->attr = qp->attr;
	if (a.open) {
		a.open->far_turn = p->extra.relay_turn;
		a.open->far_rc = out->rc;
	}
	return a.was_last;
}

bool xrc_far_event_next(struct emu_qp *qp, struct ib_packet *out)
{
	struct emu_qp_open *open = qp->opens;

	while (open && !open->far_events)
		open = open->next;
	if (!open)
		return false;
	*out = (struct ib_packet){
		.opcode = IB_RELAY | RELAY_HANDLE, .packet_count = 1,
		.dest_qpn = open->far_qpn, .src_qpn = qp->qpn,
		.imm = (uint32_t)__builtin_ctz(open->far_events),
	};
	port_address(qp->dev, out->sgid);
	memcpy(out->dgid, out->sgid, sizeof out->dgid);
	return true;
}

void xrc_far_event_sent(struct emu_qp *qp, const struct ib_packet *p)
{
	struct emu_qp_open *open = qp_open_far_find(qp, p->dest_qpn);

	if (open)
		open->far_events &= ~(1u << p->imm);
}

/* --- at the handle --- */

void xrc_far_ask(struct emu_qp *qp, const struct iovec *ask, struct ib_packet *out)
{
	*out = (struct ib_packet){
		.opcode = IB_RELAY | RELAY_HANDLE, .packet_count = 1,
		.dest_qpn = qp->far->target_qpn, .src_qpn = qp->qpn,
		.payload_bytes = (uint32_t)ask->iov_len, .span = ask, .span_count = 1,
		.extra = { .relay_domain = qp->xrc_domain->name, .relay_turn = qp->far->turn },
	};
	port_address(qp->dev, out->sgid);
	memcpy(out->dgid, out->sgid, sizeof out->dgid);
}

/* What a target QP has events of. */
#define FAR_EVENTS (1u << EVENT_QP_FATAL | 1u << EVENT_QP_REQ_ERR | 1u << EVENT_QP_ACCESS_ERR | \
		    1u << EVENT_COMM_EST | 1u << EVENT_QP_LAST_WQE)

static bool is_believable(const struct far_tell *tell)
{
	return tell->rc <= 0 && tell->rc > -4096 && tell->state < QP_STATE_COUNT;
}

void xrc_far_told(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p)
{
	struct xrc_far *far = qp->far;
	struct far_tell tell;

	if (p->src_qpn != far->target_qpn) {
		dev_why(tp->dev, .why = WHY_ACK_UNEXPECTED, .side = WHY_SIDE_DEVICE,
			.qpn = qp->qpn, .peer_qpn = p->src_qpn, .opcode = p->opcode);
		return;
	}
	if (!p->payload_bytes && p->imm < 32 && FAR_EVENTS >> p->imm & 1) {
		qp_event(qp, p->imm);
		return;
	}
	if (far->is_answered || p->extra.relay_turn != far->turn ||
	    !ask_read(p, &tell, sizeof tell) || !is_believable(&tell))
		return;			/* an answer that came twice */
	far->is_answered = true;
	far->rc = tell.rc;
	qp->state = tell.state;
	qp->attr = tell.attr;
}
