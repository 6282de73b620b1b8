/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UD: one packet a message, and each says where it goes.
 *
 * The requester is that of RC with an address from the work request, and like UC's it waits
 * for nothing.  The responder puts what the packet's network header was in front of the data.
 * Source: IBTA volume 1, 9.8.3 (Q_Keys), 11.4.1 (addresses); device-abi C.3.6, F.1, G.5.
 */
#include <endian.h>
#include <string.h>
#include "emu/transport/rc.h"
#include "emu/transport/tp_local.h"
#include "emu/transport/ud.h"

/* --- sending --- */

enum { GID_ROCE_V1 = 1 };		/* enum ib_uverbs_gid_type */
#define QKEY_IS_OF_QP	(1u << 31)	/* a work request may not claim a controlled Q_Key */

/* An entry of the GID table, or NULL. */
static const struct emu_gid *source_gid(const struct emu_dev *dev, uint8_t index)
{
	static const uint8_t empty[16];

	if (index >= dev->gid_count || !memcmp(dev->gid[index].raw, empty, sizeof empty))
		return NULL;
	return &dev->gid[index];
}

static uint8_t roce_l3(const struct emu_gid *from)
{
	if (from->type == GID_ROCE_V1)
		return IB_L3_GRH;
	return ib_is_ipv4(from->raw) ? IB_L3_IPV4 : IB_L3_IPV6;
}

/* With a GRH, on RoCE always: GIDs. */
static bool address_by_gid(const struct emu_dev *dev, const struct hw_av *av, struct ib_packet *p)
{
	const struct emu_gid *from = source_gid(dev, av->sgid_index);

	if (!from || av->is_compact)
		return false;
	memcpy(p->sgid, from->raw, sizeof p->sgid);
	memcpy(p->dgid, av->rgid, sizeof p->dgid);
	p->extra.l3 = dev->lid ? IB_L3_GRH : roce_l3(from);
	p->extra.flow_label = av->flow_label;
	p->extra.traffic_class = av->traffic_class;
	p->extra.hop_limit = av->hop_limit;
	return true;
}

static bool address(const struct emu_qp *qp, const struct hw_av *av, struct ib_packet *p)
{
	const struct emu_dev *dev = qp->dev;

	p->dest_qpn = av->dest_qpn;
	p->dma_bytes = 0;		/* there is no RETH */
	p->extra = (struct ib_extra){
		.qkey = av->qkey & QKEY_IS_OF_QP ? qp->attr.qkey : av->qkey,
	};
	if (!dev->lid)
		return address_by_gid(dev, av, p);
	p->extra.slid = port_lid(dev, av->path_bits);
	p->extra.dlid = av->dlid;
	p->extra.sl = av->sl;
	if (av->has_grh)
		return address_by_gid(dev, av, p);
	ib_lid_as_gid(p->extra.slid, p->sgid);
	ib_lid_as_gid(av->dlid, p->dgid);
	return true;
}

int ud_req_next(struct tp *tp, struct emu_qp *qp, uint32_t bytes_max, struct ib_packet *out)
{
	while (rc_req_next(tp, qp, bytes_max, out)) {
		struct rc_sent *sent = rc_sent_at(qp, qp->req.send_at);
		const struct hw_av *av = &tp->tx.work.av;

		if (address(qp, av, out))
			return 1;
		dev_why(tp->dev, .why = WHY_AV_SOURCE, .side = WHY_SIDE_SEND, .qpn = qp->qpn,
			.peer_qpn = av->dest_qpn, .wqe_index = sent->index,
			.opcode = sent->opcode, .found = av->sgid_index);
		sent->status = HW_LOC_QP_OP;
	}
	return 0;
}

/* --- the header in front of the data --- */

enum {
	UDP_HEADER_BYTES = 8, BTH_BYTES = 12, DETH_BYTES = 8, IMM_BYTES = 4, ICRC_BYTES = 4,
	NEXT_UDP = 17, NEXT_BTH = 0x1b, IPV4_DF = 0x4000, IPV4_OFFSET = 20, IPV4_BYTES = 20,
};

struct ipv6_header {
	uint32_t version_class_flow;
	uint16_t payload_bytes;
	uint8_t next, hop_limit;
	uint8_t src[16], dst[16];
};
static_assert(sizeof(struct ipv6_header) == UD_GRH_BYTES, "the GRH has the form of IPv6");

struct ipv4_header {
	uint8_t version_words, traffic_class;
	uint16_t bytes, id, fragment;
	uint8_t ttl, protocol;
	uint16_t checksum;
	uint8_t src[4], dst[4];
};
static_assert(sizeof(struct ipv4_header) == IPV4_BYTES, "without options");

/* From the BTH to the checksum. */
static uint32_t transport_bytes(const struct ib_packet *p)
{
	uint32_t imm = ib_operation(p->opcode) == RC_SEND_ONLY_IMM ? IMM_BYTES : 0;

	return BTH_BYTES + DETH_BYTES + imm + ((p->payload_bytes + 3) & ~3u) + ICRC_BYTES;
}

static void header_ipv6(const struct ib_packet *p, uint8_t out[UD_GRH_BYTES])
{
	bool is_udp = p->extra.l3 == IB_L3_IPV6;
	struct ipv6_header h = {
		.version_class_flow = htobe32(6u << 28 | (uint32_t)p->extra.traffic_class << 20 |
					      (p->extra.flow_label & 0xfffff)),
		.payload_bytes = htobe16((uint16_t)(transport_bytes(p) +
						    (is_udp ? UDP_HEADER_BYTES : 0))),
		.next = is_udp ? NEXT_UDP : NEXT_BTH,
		.hop_limit = p->extra.hop_limit,
	};

	memcpy(h.src, p->sgid, sizeof h.src);
	memcpy(h.dst, p->dgid, sizeof h.dst);
	memcpy(out, &h, sizeof h);
}

static uint16_t checksum_be(const void *bytes, unsigned count)
{
	const uint8_t *at = bytes;
	uint32_t sum = 0;

	for (unsigned i = 0; i < count; i += 2)
		sum += (uint32_t)at[i] << 8 | at[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return htobe16((uint16_t)~sum);
}

static void header_ipv4(const struct ib_packet *p, uint8_t out[UD_GRH_BYTES])
{
	struct ipv4_header h = {
		.version_words = 0x45, .traffic_class = p->extra.traffic_class,
		.bytes = htobe16((uint16_t)(IPV4_BYTES + UDP_HEADER_BYTES + transport_bytes(p))),
		.fragment = htobe16(IPV4_DF), .ttl = p->extra.hop_limit, .protocol = NEXT_UDP,
	};

	memcpy(h.src, p->sgid + 12, sizeof h.src);
	memcpy(h.dst, p->dgid + 12, sizeof h.dst);
	h.checksum = checksum_be(&h, sizeof h);
	memset(out, 0, IPV4_OFFSET);
	memcpy(out + IPV4_OFFSET, &h, sizeof h);
}

static void (*const headers[IB_L3_COUNT])(const struct ib_packet *p, uint8_t out[UD_GRH_BYTES]) = {
	[IB_L3_GRH] = header_ipv6, [IB_L3_IPV6] = header_ipv6, [IB_L3_IPV4] = header_ipv4,
};

/* --- receiving --- */

static void take_why(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p, enum why why)
{
	dev_why(tp->dev, .why = why, .side = WHY_SIDE_RECV, .qpn = qp->qpn,
		.peer_qpn = p->src_qpn, .wqe_index = tp_recv_index(qp), .opcode = p->opcode,
		.psn = p->psn, .bytes = p->payload_bytes, .found = p->extra.qkey);
}

/* On InfiniBand a packet goes by LID, whatever its GRH says. */
static bool is_for_port(const struct emu_dev *dev, const struct ib_packet *p)
{
	return !dev->lid || port_has_lid(dev, p->extra.dlid) || p->dest_qpn == IB_MULTICAST_QPN;
}

/* What is dropped without a word. */
static enum why datagram_check(const struct emu_qp *qp, const struct ib_packet *p)
{
	uint8_t op = ib_operation(p->opcode);

	if (op != RC_SEND_ONLY && op != RC_SEND_ONLY_IMM)
		return WHY_OPCODE_UNKNOWN;
	if (p->extra.l3 >= IB_L3_COUNT || p->payload_bytes > qp->mtu_bytes || p->packet_count != 1)
		return WHY_PACKET_LENGTH;
	if (!is_for_port(qp->dev, p))
		return WHY_PACKET_DGID;
	if (p->extra.qkey != qp->attr.qkey)
		return WHY_PACKET_QKEY;
	return WHY_NONE;
}

/* A receive that can't take its datagram completes, and ends the QP. */
static void recv_fail(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p, enum why why,
		      enum hw_status status)
{
	take_why(tp, qp, p, why);
	tp_recv_fail(tp, qp, status);
	tp_qp_fail(qp);
}

/* Is a receive there that the datagram fits into?  Then its memory is in tp->rx. */
static bool recv_find(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p)
{
	struct hw_recv *recv = &tp->rx.recv;
	struct tp_gather g = { recv->sge, 0, 0, UD_GRH_BYTES + p->payload_bytes, KEY_LOCAL_WRITE };
	const struct hw_sge *bad;
	int got = tp_recv_fetch(tp, qp);
	enum why why;

	if (got == 0)
		take_why(tp, qp, p, WHY_RECV_MISSING);
	else if (got < -1)
		recv_fail(tp, qp, p, WHY_RECV_MALFORMED, HW_LOC_QP_OP_RECV);
	if (got <= 0)
		return false;
	if (g.bytes > recv->bytes) {
		recv_fail(tp, qp, p, WHY_RECV_TOO_SMALL, HW_LOC_LEN);
		return false;
	}
	g.sge_count = recv->sge_count;
	why = tp_gather(tp, &g, &tp->rx, &bad);
	if (why != WHY_NONE)
		recv_fail(tp, qp, p, why, HW_LOC_PROT_RECV);
	return why == WHY_NONE;
}

/* The data, and in front of it the header that the packet had, if it had one. */
static enum mem_side place(struct tp *tp, const struct ib_packet *p)
{
	const struct tp_scratch *s = &tp->rx;
	uint8_t bytes[UD_GRH_BYTES];
	struct iovec header = { bytes, sizeof bytes };
	enum mem_side fault = MEM_SIDE_NONE;

	if (p->payload_bytes)
		fault = mem_copy_spans(s->span, s->span_count, UD_GRH_BYTES, p->span,
				       p->span_count, 0, p->payload_bytes);
	if (fault != MEM_SIDE_NONE || !headers[p->extra.l3])
		return fault;
	headers[p->extra.l3](p, bytes);
	return mem_copy_spans(s->span, s->span_count, 0, &header, 1, 0, sizeof bytes);
}

bool ud_take(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p)
{
	enum why why = datagram_check(qp, p);

	if (why != WHY_NONE) {
		tp->dev->port.qkey_violations += why == WHY_PACKET_QKEY;
		take_why(tp, qp, p, why);
		return true;
	}
	if (!recv_find(tp, qp, p))
		return true;
	switch (place(tp, p)) {
	case MEM_SIDE_SRC:
		return false;
	case MEM_SIDE_DST:
		recv_fail(tp, qp, p, WHY_MEMORY_GONE, HW_LOC_PROT_RECV);
		return true;
	case MEM_SIDE_NONE:
		break;
	}
	tp_recv_complete(tp, qp, p, UD_GRH_BYTES + p->payload_bytes);
	return true;
}
