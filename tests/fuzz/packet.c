/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets in and out; see packet.h.
 */
#include "emu/engine/engine_local.h"
#include "emu/obj/srq.h"
#include "emu/transport/psn.h"
#include "tests/fuzz/packet.h"

enum { PAYLOAD_BYTES_MAX = 16384, SPANS_MAX = 3 };

const uint8_t peer_gid[16] = { 0xfe, 0x80, [15] = 2 };

static uint8_t payload[PAYLOAD_BYTES_MAX];
static struct iovec spans[SPANS_MAX];

static const uint8_t opcodes[] = {
	RC_WRITE_ONLY, RC_SEND_ONLY, RC_ACKNOWLEDGE, RC_READ_REQUEST, RC_READ_RESPONSE_ONLY,
	RC_FETCH_ADD, RC_COMPARE_SWAP, RC_ATOMIC_ACKNOWLEDGE, RC_SEND_FIRST, RC_SEND_MIDDLE,
	RC_SEND_LAST, RC_SEND_LAST_IMM, RC_SEND_ONLY_IMM, RC_WRITE_FIRST, RC_WRITE_MIDDLE,
	RC_WRITE_LAST, RC_WRITE_LAST_IMM, RC_WRITE_ONLY_IMM, RC_READ_RESPONSE_FIRST,
	RC_READ_RESPONSE_MIDDLE, RC_READ_RESPONSE_LAST, RC_SEND_LAST_INVAL, RC_SEND_ONLY_INVAL,
	RC_MASKED_COMPARE_SWAP, RC_MASKED_FETCH_ADD,
};

/* What is done wrong, by bit. */
enum {
	TWIST_OPCODE = 1, TWIST_COUNT = 2, TWIST_MTU = 4, TWIST_DMA = 8, TWIST_GIDS = 16,
	TWIST_QPN = 32, TWIST_PKEY = 64, TWIST_PSN = 128,
};

/* An operation that the transport may have. */
static uint8_t opcode_of(const struct emu_qp *qp, uint8_t choice)
{
	static const uint8_t of_datagrams[] = { RC_SEND_ONLY, RC_SEND_ONLY_IMM };

	return transport_of(qp)->is_datagram ? of_datagrams[choice % sizeof of_datagrams] :
	       opcodes[choice % sizeof opcodes];
}

/* A READ that waits for so many bytes more. */
static uint32_t read_left(const struct emu_qp *qp)
{
	const struct rc_req *r = &qp->req;

	if (r->sent_head == r->sent_tail)
		return 0;
	return r->sent[r->sent_head & (qp->sq_blocks - 1)].bytes - r->read_bytes;
}

static uint32_t fitting_bytes(const struct emu_qp *qp, uint8_t opcode)
{
	switch (ib_operation(opcode)) {
	case RC_SEND_FIRST: case RC_SEND_MIDDLE: case RC_WRITE_FIRST: case RC_WRITE_MIDDLE:
	case RC_READ_RESPONSE_FIRST: case RC_READ_RESPONSE_MIDDLE:
		return qp->mtu_bytes;
	case RC_READ_RESPONSE_LAST: case RC_READ_RESPONSE_ONLY:
		return read_left(qp);
	case RC_READ_REQUEST: case RC_ACKNOWLEDGE: case RC_ATOMIC_ACKNOWLEDGE:
	case RC_COMPARE_SWAP: case RC_FETCH_ADD:
		return 0;
	case RC_MASKED_COMPARE_SWAP: case RC_MASKED_FETCH_ADD:
		return IB_MASKS_BYTES;
	default:
		return 8;
	}
}

/* One byte says how long: fitting, small, a few whole packets, or anything. */
static uint32_t bytes_take(struct input *in, const struct emu_qp *qp, uint8_t opcode)
{
	uint8_t choice = take8(in);
	uint32_t bytes = choice >= 0xf0 ? take16(in) : choice >= 0x80 ?
			 (choice & 7) * qp->mtu_bytes : choice ? choice - 1u :
			 fitting_bytes(qp, opcode);

	return bytes < PAYLOAD_BYTES_MAX ? bytes : PAYLOAD_BYTES_MAX;
}

static void payload_make(struct input *in, struct ib_packet *p, uint8_t pieces)
{
	uint32_t left = p->payload_bytes;

	take(in, payload, 4);
	p->span = spans;
	p->span_count = 0;
	for (unsigned i = 0; i < SPANS_MAX && left; i++) {
		uint32_t bytes = i < pieces && i < SPANS_MAX - 1 ? left / 2 : left;

		spans[p->span_count++] = (struct iovec){ payload + p->payload_bytes - left, bytes };
		left -= bytes;
	}
}

/* What takes requests: of a DC target it is there as soon as the first has come, or not. */
static const struct emu_qp *responder(const struct emu_qp *qp)
{
	return qp->type == QPT_DCT ? qp->dct->newest : qp;
}

static uint32_t psn_make(struct input *in, const struct emu_qp *qp, uint8_t opcode, uint8_t twist)
{
	const struct emu_qp *dcr = responder(qp);
	uint32_t psn = ib_is_answer(opcode) ? qp->req.psn_una :
		       dcr ? dcr->resp->psn_expected : 100;

	return psn_add(psn, twist & TWIST_PSN ? (uint32_t)(int8_t)take8(in) : 0);
}

static uint32_t dma_take(struct input *in, const struct ib_packet *p, uint8_t twist)
{
	if (twist & TWIST_DMA)
		return take32(in);
	switch (ib_operation(p->opcode)) {
	case RC_READ_REQUEST:
		return 8u * take8(in);
	case RC_WRITE_FIRST:
		return p->payload_bytes + 8u * take8(in);
	case RC_MASKED_COMPARE_SWAP: case RC_MASKED_FETCH_ADD:
		return take8(in) & 1 ? 4 : 8;
	default:
		return p->payload_bytes;
	}
}

static bool is_invalidating(uint8_t opcode)
{
	return ib_operation(opcode) == RC_SEND_LAST_INVAL ||
	       ib_operation(opcode) == RC_SEND_ONLY_INVAL;
}

/* A conversation of DC: the one that is going on, or the next. */
static void session_make(const struct emu_qp *qp, bool is_new, const struct ib_packet *p,
			 struct ib_extra *out)
{
	const struct emu_qp *dcr = responder(qp);

	out->dc_key = RIG_DC_KEY;
	out->dc_first_psn = p->psn;
	if (qp->type == QPT_DCI)
		out->dc_session = qp->dci->session;
	else if (qp->type == QPT_DCT)
		out->dc_session = (dcr ? dcr->dcr->session : 1) + is_new;
}

/* What a datagram says of itself. */
static void extra_make(struct input *in, const struct emu_qp *qp, struct ib_packet *out)
{
	struct ib_extra extra = { .qkey = RIG_QKEY, .l3 = IB_L3_IPV6, .hop_limit = 64,
				  .slid = RIG_PEER_LID, .dlid = RIG_LID,
				  .srqn = rig.shared.srq ? rig.shared.srq->srqn : 0 };
	uint8_t choice = take8(in);

	session_make(qp, choice & 16, out, &extra);
	out->src_qpn += choice & 32 ? take8(in) & 3 : 0;
	if (choice & 1)
		extra.qkey = take32(in);
	if (choice & 2)
		extra.l3 = take8(in) & 7;
	if (choice & 4)
		rig_twist(in, &extra, sizeof extra);
	if (choice & 8) {
		out->dest_qpn = IB_MULTICAST_QPN;
		rig_group(in, out->dgid);
	}
	out->extra = extra;
}

void packet_make(struct input *in, struct ib_packet *out)
{
	uint8_t choice = take8(in), twist = take8(in), opcode = take8(in);
	const struct emu_qp *qp = rig.side[choice & 1].qp;
	struct emu_mw *mw;

	if (!(twist & TWIST_OPCODE))
		opcode = transport_of(qp)->bth | opcode_of(qp, opcode);
	*out = (struct ib_packet){
		.opcode = opcode, .is_solicited = choice & 2, .wants_ack = !(choice & 4),
		.aeth_syndrome = choice & 8 ? take8(in) : AETH_ACK_UNLIMITED,
		.pkey = twist & TWIST_PKEY ? take16(in) : 0xffff,
		.mtu_bytes = twist & TWIST_MTU ? take16(in) : qp->mtu_bytes,
		.psn = psn_make(in, qp, opcode, twist),
		.dest_qpn = twist & TWIST_QPN ? take32(in) : qp->qpn, .src_qpn = PEER_QPN,
		.payload_bytes = bytes_take(in, qp, opcode),
	};
	out->packet_count = twist & TWIST_COUNT ? take32(in) : qp->mtu_bytes ?
			    psn_count_of(out->payload_bytes, qp->mtu_bytes) : 1;
	out->dma_bytes = dma_take(in, out, twist);
	out->rkey = rig_key(in, choice & 1, &out->va);
	out->swap_add = choice & 16 ? take64(in) : 0x5a5a5a5a5a5a5a5a;
	out->compare = out->original = out->swap_add;
	out->imm = out->msn = choice & 32 ? take32(in) : 0;
	rig_address(RIG_PEER_LID, peer_gid, out->sgid);
	rig_address(RIG_LID, device.gid[0].raw, out->dgid);
	if (twist & TWIST_GIDS)
		rig_twist(in, out->sgid, sizeof out->sgid + sizeof out->dgid);
	if (transport_of(qp)->bth & ~IB_UC)
		extra_make(in, qp, out);
	if (is_invalidating(opcode))
		out->imm = rig_window(in, choice & 1, &mw);
	payload_make(in, out, choice >> 6);
}

/* In the copy of the work request, or in what was read from there. */
static bool is_inline(const struct iovec *span)
{
	uintptr_t at = (uintptr_t)span->iov_base - (uintptr_t)engine->tp.tx.wqe;

	if (span->iov_base == engine->tp.tx.masks)
		return span->iov_len == IB_MASKS_BYTES;
	return at < sizeof engine->tp.tx.wqe && span->iov_len <= sizeof engine->tp.tx.wqe - at;
}

/* Within the host, for the process that has an XRC request's queue: what the peer sent, or what was
 * made of it.  All of it is still there. */
static void relayed_check(const struct ib_packet *p)
{
	uint64_t bytes = 0;
	static volatile uint8_t read;

	assert(!memcmp(p->sgid, p->dgid, sizeof p->sgid) && p->span_count <= HW_SGE_MAX);
	for (unsigned i = 0; i < p->span_count; i++) {
		const uint8_t *from = p->span[i].iov_base;

		for (size_t at = 0; at < p->span[i].iov_len; at++)
			read = from[at];
		bytes += p->span[i].iov_len;
	}
	assert(bytes == p->payload_bytes);
}

/* No packet carries a byte that no key allows to read. */
void packet_check(const struct ib_packet *p)
{
	const struct emu_qp *qp = rig.side[p->src_qpn != rig.side[0].qp->qpn].qp;
	uint64_t bytes = 0;

	if ((p->opcode & IB_TRANSPORT_MASK) == IB_RELAY) {
		relayed_check(p);
		return;
	}
	assert(p->packet_count && (p->opcode & IB_TRANSPORT_MASK) == transport_of(qp)->bth);
	assert(rig.is_broken || (p->psn <= PSN_MASK && p->msn <= PSN_MASK));
	if (transport_of(qp)->is_connected)
		assert(p->dest_qpn == PEER_QPN && !memcmp(p->dgid, rig.side[0].peer_gid, 16));
	assert(p->src_qpn == qp->qpn);
	assert(p->packet_count == psn_count_of(p->payload_bytes, p->mtu_bytes));
	assert(p->span_count <= HW_SGE_MAX);
	for (unsigned i = 0; i < p->span_count; i++) {
		bytes += p->span[i].iov_len;
		assert(rig_owns(&p->span[i]) || is_inline(&p->span[i]));
	}
	assert(bytes == p->payload_bytes);
}
