/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DC initiators and targets: sessions around the RC protocol.
 *
 * A new destination waits until the one before has acknowledged everything, so an initiator has one
 * conversation at a time and the requester of RC serves it as it is.  At the target each initiator
 * has a responder of RC (a DCR).
 */
#include <string.h>
#include "emu/obj/dc.h"
#include "emu/transport/dc.h"
#include "emu/transport/rc_local.h"
#include "emu/transport/resp_local.h"

static void dc_why(struct tp *tp, const struct emu_qp *qp, enum why why, const struct ib_packet *p)
{
	dev_why(tp->dev, .why = why, .side = WHY_SIDE_RECV, .qpn = qp->qpn,
		.peer_qpn = p->src_qpn, .psn = p->psn, .opcode = p->opcode);
}

/* --- the initiator --- */

/* Both ends of a path as packets carry them; false: there is no such source. */
static bool path_of(const struct emu_dev *dev, const struct hw_av *av, uint8_t sgid[16],
		    uint8_t dgid[16])
{
	static const uint8_t empty[16];

	if (dev->profile->link != HW_LINK_ETHERNET && !av->has_grh) {
		ib_lid_as_gid(port_lid(dev, av->path_bits), sgid);
		ib_lid_as_gid(av->dlid, dgid);
		return true;
	}
	if (av->sgid_index >= dev->gid_count ||
	    !memcmp(dev->gid[av->sgid_index].raw, empty, sizeof empty))
		return false;
	memcpy(sgid, dev->gid[av->sgid_index].raw, 16);
	memcpy(dgid, av->rgid, 16);
	return true;
}

static bool is_same_target(const struct emu_qp *qp, const struct hw_av *av,
			   const uint8_t sgid[16], const uint8_t dgid[16])
{
	return qp->dest_qpn == av->dest_qpn && qp->dci->key == av->dc_key &&
	       !memcmp(qp->sgid, sgid, 16) && !memcmp(qp->dgid, dgid, 16);
}

static enum hw_status no_source(struct tp *tp, const struct emu_qp *qp, const struct rc_sent *sent)
{
	const struct hw_av *av = &tp->tx.work.av;

	dev_why(tp->dev, .why = WHY_AV_SGID, .side = WHY_SIDE_SEND, .qpn = qp->qpn,
		.peer_qpn = av->dest_qpn, .wqe_index = sent->index, .opcode = sent->opcode,
		.found = av->sgid_index);
	return HW_LOC_QP_OP;
}

enum hw_status dci_start(struct tp *tp, struct emu_qp *qp, struct rc_sent *sent)
{
	const struct hw_work *w = &tp->tx.work;
	uint8_t sgid[16], dgid[16];

	if (tp_is_local(sent->op))
		return HW_SUCCESS;
	if (!path_of(tp->dev, &w->av, sgid, dgid))
		return no_source(tp, qp, sent);
	sent->begins_session = qp->req.sent_head == qp->req.sent_tail ||
			       !is_same_target(qp, &w->av, sgid, dgid);
	return HW_SUCCESS;
}

/* Later than every session of this number before, also of a QP that had it earlier. */
static uint64_t session_next(struct tp *tp, const struct dci *dci)
{
	uint64_t now_ns = tp->dev->now_ns();

	return now_ns > dci->session ? now_ns : dci->session + 1;
}

enum hw_status dci_begin(struct tp *tp, struct emu_qp *qp, struct rc_sent *sent)
{
	const struct hw_av *av = &tp->tx.work.av;
	struct dci *dci = qp->dci;

	/* The address was read again when this request had to wait. */
	if (!path_of(tp->dev, av, qp->sgid, qp->dgid))
		return no_source(tp, qp, sent);
	sent->begins_session = false;
	qp->dest_qpn = av->dest_qpn;
	dci->key = av->dc_key;
	dci->sl = tp->dev->lid ? av->sl : 0;
	dci->slid = tp->dev->lid ? port_lid(tp->dev, av->path_bits) : 0;
	dci->dlid = tp->dev->lid ? av->dlid : 0;
	dci->first_psn = sent->psn;
	dci->session = session_next(tp, dci);
	return HW_SUCCESS;
}

int dci_next(struct tp *tp, struct emu_qp *qp, uint32_t bytes_max, struct ib_packet *out)
{
	if (!rc_req_next(tp, qp, bytes_max, out))
		return 0;
	out->extra = (struct ib_extra){
		.dc_key = qp->dci->key, .dc_session = qp->dci->session,
		.dc_first_psn = qp->dci->first_psn,
		.slid = qp->dci->slid, .dlid = qp->dci->dlid, .sl = qp->dci->sl,
	};
	return 1;
}

/* Only its target may answer, and only in this session. */
bool dci_take(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p)
{
	bool is_readable = true;

	if (!ib_is_answer(p->opcode))
		dc_why(tp, qp, WHY_PACKET_TRANSPORT, p);
	else if (memcmp(p->sgid, qp->dgid, sizeof p->sgid))
		dc_why(tp, qp, WHY_PACKET_SGID, p);
	else if (p->extra.dc_session != qp->dci->session)
		dc_why(tp, qp, WHY_ACK_UNEXPECTED, p);
	else
		rc_take_answer(tp, qp, p, &is_readable);
	return is_readable;
}

/* --- the target --- */

int dcr_next(struct tp *tp, struct emu_qp *qp, uint32_t bytes_max, struct ib_packet *out)
{
	if (!rc_resp_next(tp, qp, bytes_max, out))
		return 0;
	out->extra = (struct ib_extra){ .dc_session = qp->dcr->session };
	return 1;
}

/* The message in progress will not end: its receive goes back to the application. */
static void receive_return(struct tp *tp, struct emu_qp *dcr)
{
	if (!dcr->answers.is_holding)
		return;
	tp_qp_fail(dcr);
	tp_flush(tp, dcr);
}

/* A session begins: whatever the one before has left is over. */
static void dcr_begin(struct tp *tp, struct emu_qp *dcr, const struct ib_packet *p)
{
	const struct emu_qp *dct = dcr->dcr->dct;

	receive_return(tp, dcr);
	*dcr->resp = (struct rc_resp){
		.pdn = dct->pdn, .access = dct->attr.access, .mtu_bytes = dct->mtu_bytes,
		.pkey = dct->pkey, .resource_limit = (uint8_t)tp->dev->profile->max_rd_atomic,
		.psn_expected = p->extra.dc_first_psn & PSN_MASK,
	};
	dcr->answers = (struct rc_answers){ 0 };
	dcr->attr = dct->attr;
	dcr->mtu_bytes = dct->mtu_bytes;
	dcr->pkey = dct->pkey;
	memcpy(dcr->sgid, p->dgid, sizeof dcr->sgid);
	dcr->work = 0;
	dcr->state = QP_RTS;
	dcr->dcr->session = p->extra.dc_session;
}

static void dcr_end(struct tp *tp, struct emu_qp *dcr)
{
	receive_return(tp, dcr);
	tp->ops->forget(tp, dcr);
	dcr_free(dcr);
}

/* The responder for the initiator of @p, in the packet's session.  NULL: drop it. */
static struct emu_qp *dcr_for(struct tp *tp, struct emu_qp *dct, const struct ib_packet *p)
{
	struct emu_qp *dcr = dcr_find(dct, p->src_qpn, p->sgid);

	if (!dcr && dct->dct->count >= dct->dct->count_max)
		dcr_end(tp, dct->dct->oldest);
	if (!dcr)
		dcr = dcr_make(dct, p->src_qpn, p->sgid);
	if (!dcr) {
		dc_why(tp, dct, WHY_CMD_LIMIT, p);
		return NULL;
	}
	dcr_refresh(dcr);
	if (p->extra.dc_session > dcr->dcr->session)
		dcr_begin(tp, dcr, p);
	if (p->extra.dc_session == dcr->dcr->session)
		return dcr;
	dc_why(tp, dct, WHY_PSN_STALE, p);
	return NULL;
}

/* A wrong key is found out once the responder is there to say so. */
static bool key_fits(struct tp *tp, struct emu_qp *dct, struct emu_qp *dcr,
		     const struct ib_packet *p)
{
	if (p->extra.dc_key == dct->dct->key)
		return true;
	dc_why(tp, dct, WHY_DC_KEY, p);
	dcr->answers.ack_is_due = true;
	dcr->answers.ack_syndrome = AETH_NAK_REMOTE_ACCESS;
	dcr->answers.ack_psn = p->psn;
	dcr->work |= QP_WORK_RESPOND;
	return false;
}

bool dct_take(struct tp *tp, struct emu_qp *dct, const struct ib_packet *p)
{
	bool is_readable = true;
	struct emu_qp *dcr;

	if (ib_is_answer(p->opcode)) {
		dc_why(tp, dct, WHY_PACKET_TRANSPORT, p);
		return true;
	}
	dcr = dcr_for(tp, dct, p);
	if (!dcr)
		return true;
	if (key_fits(tp, dct, dcr, p) && dcr->state == QP_RTS)
		rc_take_request(tp, dcr, p, &is_readable);
	tp->ops->kick(tp, dcr);
	return is_readable;
}
