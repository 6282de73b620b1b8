/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the headers of a frame; see frame.h.
 *
 * Each header narrows what may be read behind it: bytes that pad a frame belong to no packet.
 */
#include "emu/steer/bytes.h"
#include "emu/steer/headers.h"
#include "emu/steer/sum.h"

struct reader {
	const uint8_t *at;
	uint32_t end;			/* of what the headers so far promise; fits 16 bits */
	bool is_cut;			/* a packet is said to be longer than what is there */
};

enum { TAGS_MAX = 2 };

/* A NIC looks for headers and asks no length, so a packet that lies about its own is only one
 * whose checksums can't be right. */
static void packet_ends(struct reader *r, uint32_t at, uint32_t bytes_min, uint32_t bytes)
{
	if (bytes >= bytes_min && at <= r->end && bytes <= r->end - at)
		r->end = at + bytes;
	else
		r->is_cut = true;
}

static bool fits(const struct reader *r, uint32_t offset, uint32_t bytes)
{
	return offset <= r->end && bytes <= r->end - offset;
}

/* --- L4 --- */

static uint16_t l4_end(const struct reader *r)
{
	return r->is_cut ? 0 : (uint16_t)r->end;
}

static void tcp_read(struct reader *r, struct frame_layer *l, uint32_t at)
{
	const uint8_t *tcp = r->at + at;
	uint32_t bytes;

	if (!fits(r, at, TCP_BYTES))
		return;
	bytes = (tcp[TCP_OFFSET] >> 4) * 4u;
	l->l4 = (uint16_t)at;
	l->l4_type = FRAME_TCP;
	if (tcp[TCP_FLAGS] & TCP_ACK)
		l->l4_type = r->end - at > bytes ? FRAME_TCP_ACK : FRAME_TCP_EMPTY_ACK;
	if (bytes < TCP_BYTES || !fits(r, at, bytes))
		return;
	l->payload = (uint16_t)(at + bytes);
	l->l4_end = l4_end(r);
}

static void udp_read(struct reader *r, struct frame_layer *l, uint32_t at)
{
	const uint8_t *udp = r->at + at;
	uint32_t bytes;

	if (!fits(r, at, UDP_BYTES))
		return;
	bytes = load16(udp + UDP_LENGTH);
	l->l4 = (uint16_t)at;
	l->l4_type = FRAME_UDP;
	if (bytes < UDP_BYTES || !fits(r, at, bytes))
		return;
	l->payload = (uint16_t)(at + UDP_BYTES);
	r->end = at + bytes;
	l->l4_end = l4_end(r);
}

/* What is behind the IP headers. */
static void l4_read(struct reader *r, struct frame_layer *l, uint32_t at)
{
	if (!l->is_fragment && l->ip_protocol == PROTOCOL_TCP)
		tcp_read(r, l, at);
	else if (!l->is_fragment && l->ip_protocol == PROTOCOL_UDP)
		udp_read(r, l, at);
	else
		l->payload = (uint16_t)at;
}

/* --- L3 --- */

static void ipv4_read(struct reader *r, struct frame_layer *l)
{
	const uint8_t *ip = r->at + l->l3;
	uint32_t bytes, total;

	if (!fits(r, l->l3, IPV4_BYTES) || ip[0] >> 4 != 4)
		return;
	bytes = (ip[0] & 0xf) * 4u;
	if (bytes < IPV4_BYTES || !fits(r, l->l3, bytes))
		return;
	total = load16(ip + IPV4_LENGTH);
	l->l3_type = FRAME_IPV4;
	l->l3_ok = sum_add(0, ip, bytes) == 0xffff;
	l->ip_protocol = ip[IPV4_PROTOCOL];
	l->is_fragment = load16(ip + IPV4_FRAGMENT) & IPV4_FRAGMENT_BITS;
	packet_ends(r, l->l3, bytes, total);
	l4_read(r, l, l->l3 + bytes);
}

static bool is_extension(uint8_t protocol)
{
	return protocol == PROTOCOL_HOP_BY_HOP || protocol == PROTOCOL_ROUTING ||
	       protocol == PROTOCOL_FRAGMENT || protocol == PROTOCOL_DESTINATION;
}

/* The length of the extension header that l->ip_protocol announces; 0: it is not there.  A
 * fragment's says 0 for its length, too, and is as long as that means. */
static uint32_t extension_bytes(const struct reader *r, const struct frame_layer *l, uint32_t at)
{
	uint32_t bytes;

	if (!fits(r, at, EXTENSION_BYTES))
		return 0;
	bytes = EXTENSION_BYTES;
	if (l->ip_protocol != PROTOCOL_FRAGMENT)
		bytes *= r->at[at + EXTENSION_LENGTH] + 1u;
	return fits(r, at, bytes) ? bytes : 0;
}

/* In a fragment, what follows are data.  A packet in one "fragment" is none. */
static void extensions_read(struct reader *r, struct frame_layer *l, uint32_t at)
{
	while (!l->is_fragment && is_extension(l->ip_protocol)) {
		uint32_t bytes = extension_bytes(r, l, at);

		if (!bytes)
			return;
		if (l->ip_protocol == PROTOCOL_FRAGMENT)
			l->is_fragment = load16(r->at + at + FRAGMENT_OFFSET) & IPV6_FRAGMENT_BITS;
		l->ip_protocol = r->at[at + EXTENSION_NEXT];
		at += bytes;
	}
	l4_read(r, l, at);
}

static void ipv6_read(struct reader *r, struct frame_layer *l)
{
	const uint8_t *ip = r->at + l->l3;
	uint32_t bytes;

	if (!fits(r, l->l3, IPV6_BYTES) || ip[0] >> 4 != 6)
		return;
	bytes = IPV6_BYTES + load16(ip + IPV6_LENGTH);
	l->l3_type = FRAME_IPV6;
	l->l3_ok = true;
	l->ip_protocol = ip[IPV6_NEXT];
	packet_ends(r, l->l3, IPV6_BYTES, bytes);
	extensions_read(r, l, l->l3 + IPV6_BYTES);
}

static void l3_read(struct reader *r, struct frame_layer *l)
{
	if (l->ethertype == TYPE_IPV4)
		ipv4_read(r, l);
	else if (l->ethertype == TYPE_IPV6)
		ipv6_read(r, l);
}

/* --- L2 --- */

static bool is_tag(uint16_t type)
{
	return type == TYPE_CVLAN || type == TYPE_SVLAN;
}

/* A tag is one only if a type is behind it.  FRAME_HEADER_BYTES do fit. */
static void ethernet_read(const struct reader *r, struct frame_layer *l, uint32_t at)
{
	l->l2 = (uint16_t)at;
	at += ETH_TYPE;
	for (unsigned i = 0; i < TAGS_MAX && is_tag(load16(r->at + at)); i++) {
		if (!fits(r, at, ETH_TAG_BYTES + sizeof l->ethertype))
			break;
		at += ETH_TAG_BYTES;
	}
	l->ethertype = load16(r->at + at);
	l->l3 = (uint16_t)(at + sizeof l->ethertype);
}

static void vlan_read(struct frame *f)
{
	uint16_t type = load16(f->at + ETH_TYPE);

	if (f->outer.l3 == FRAME_HEADER_BYTES)
		return;
	f->has_cvlan = type == TYPE_CVLAN;
	f->has_svlan = type == TYPE_SVLAN;
	f->vlan = load16(f->at + ETH_TYPE + ETH_TAG_TCI);
}

/* --- tunnels --- */

static void inner_ethernet(struct frame *f, struct reader *r, uint32_t at)
{
	if (!fits(r, at, FRAME_HEADER_BYTES))
		return;
	ethernet_read(r, &f->inner, at);
	l3_read(r, &f->inner);
}

static void inner_ip(struct frame *f, struct reader *r, uint32_t at, uint16_t ethertype)
{
	if (!fits(r, at, 1))
		return;
	f->inner.l2 = f->inner.l3 = (uint16_t)at;
	f->inner.ethertype = ethertype;
	l3_read(r, &f->inner);
}

static void vxlan_read(struct frame *f, struct reader *r, uint32_t at)
{
	if (!fits(r, at, VXLAN_BYTES))
		return;
	f->tunnel = FRAME_VXLAN;
	f->tunnel_at = (uint16_t)at;
	inner_ethernet(f, r, at + VXLAN_BYTES);
}

/* What is below the labels is not told: the first four bits of IP do. */
static void mpls_read(struct frame *f, struct reader *r, uint32_t at)
{
	bool is_bottom = false;

	if (!fits(r, at, MPLS_BYTES))
		return;
	f->tunnel = FRAME_MPLS;
	f->tunnel_at = (uint16_t)at;
	for (; !is_bottom && fits(r, at, MPLS_BYTES); at += MPLS_BYTES)
		is_bottom = load32(r->at + at) & MPLS_BOTTOM;
	if (!is_bottom || !fits(r, at, 1))
		return;
	if (r->at[at] >> 4 == 4)
		inner_ip(f, r, at, TYPE_IPV4);
	else if (r->at[at] >> 4 == 6)
		inner_ip(f, r, at, TYPE_IPV6);
}

static void gre_payload_read(struct frame *f, struct reader *r, uint32_t at, uint16_t type)
{
	if (type_is_mpls(type))
		mpls_read(f, r, at);
	else if (type == TYPE_TEB)
		inner_ethernet(f, r, at);
	else if (type == TYPE_IPV4 || type == TYPE_IPV6)
		inner_ip(f, r, at, type);
}

/* Routes of the first GRE have no known length: they end the reading. */
static void gre_read(struct frame *f, struct reader *r, uint32_t at)
{
	uint32_t bytes = GRE_BYTES;
	uint16_t flags;

	if (!fits(r, at, GRE_BYTES))
		return;
	flags = load16(r->at + at);
	bytes += GRE_FIELD_BYTES * (!!(flags & GRE_HAS_SUM) + !!(flags & GRE_HAS_KEY) +
				    !!(flags & GRE_HAS_SEQ));
	if (flags & GRE_VERSION || !fits(r, at, bytes))
		return;
	f->tunnel = FRAME_GRE;
	f->tunnel_at = (uint16_t)at;
	if (!(flags & GRE_HAS_ROUTE))
		gre_payload_read(f, r, at + bytes, load16(r->at + at + GRE_PROTOCOL));
}

/* Tunnels over UDP are known by their port, whatever they hold. */
static void udp_tunnel_read(struct frame *f, struct reader *r)
{
	uint16_t port = load16(f->at + f->outer.l4 + L4_DPORT);

	if (port == PORT_VXLAN)
		vxlan_read(f, r, f->outer.payload);
	else if (port == PORT_MPLS)
		mpls_read(f, r, f->outer.payload);
}

static void tunnel_read(struct frame *f, struct reader *r)
{
	const struct frame_layer *l = &f->outer;

	if (type_is_mpls(l->ethertype))
		mpls_read(f, r, l->l3);
	else if (!l->payload || l->is_fragment)
		return;
	else if (l->l4_type == FRAME_UDP)
		udp_tunnel_read(f, r);
	else if (l->ip_protocol == PROTOCOL_GRE)
		gre_read(f, r, l->payload);
}

static bool l4_check(const uint8_t *frame, const struct frame_layer *l)
{
	if (!l->l4_end)
		return false;
	if (l->l4_type == FRAME_UDP && !load16(frame + l->l4 + UDP_CHECKSUM))
		return true;
	return sum_l4(frame, l) == 0xffff;
}

void frame_check_l4(struct frame *f)
{
	f->outer.l4_ok = l4_check(f->at, &f->outer);
	f->inner.l4_ok = l4_check(f->at, &f->inner);
}

bool frame_read(struct frame *f, const uint8_t *bytes, uint32_t count, bool wants_checks)
{
	struct reader r = { bytes, count, false };

	*f = (struct frame){ .at = bytes, .bytes = count };
	if (count < FRAME_HEADER_BYTES)
		return false;
	if (r.end > UINT16_MAX)
		r.end = UINT16_MAX;
	ethernet_read(&r, &f->outer, 0);
	vlan_read(f);
	l3_read(&r, &f->outer);
	tunnel_read(f, &r);
	if (wants_checks)
		frame_check_l4(f);
	return true;
}
