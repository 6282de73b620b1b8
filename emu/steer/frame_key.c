/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a frame says, as rules are written; see key.h.
 */
#include "emu/steer/bytes.h"
#include "emu/steer/headers.h"

/* --- the blocks of outer and inner headers --- */

static void ethernet_key(const struct frame *f, const struct frame_layer *l, uint8_t *block)
{
	const uint8_t *eth = f->at + l->l2, *tag = eth + ETH_TYPE;

	memcpy(block + STEER_SMAC, eth + ETH_SMAC, 6);
	memcpy(block + STEER_DMAC, eth + ETH_DMAC, 6);
	if (l->l3 - l->l2 == FRAME_HEADER_BYTES)
		return;
	memcpy(block + STEER_VLAN, tag + ETH_TAG_TCI, 2);
	block[STEER_FLAGS] |= load16(tag) == TYPE_CVLAN ? STEER_FLAG_CVLAN : STEER_FLAG_SVLAN;
}

static void ipv4_key(const uint8_t *ip, uint8_t *block)
{
	block[STEER_FLAGS] |= 4 << STEER_IP_VERSION_SHIFT;
	block[STEER_IP_CLASS] = ip[IPV4_CLASS];
	block[STEER_TTL] = ip[IPV4_TTL];
	memcpy(block + STEER_SRC_IPV4, ip + IPV4_SRC, 4);
	memcpy(block + STEER_DST_IPV4, ip + IPV4_DST, 4);
}

static void ipv6_key(const uint8_t *ip, uint8_t *block)
{
	block[STEER_FLAGS] |= 6 << STEER_IP_VERSION_SHIFT;
	block[STEER_IP_CLASS] = (uint8_t)(load16(ip) >> 4);
	block[STEER_TTL] = ip[IPV6_HOPS];
	memcpy(block + STEER_SRC_IP, ip + IPV6_SRC, 16);
	memcpy(block + STEER_DST_IP, ip + IPV6_DST, 16);
}

static void l3_key(const struct frame *f, const struct frame_layer *l, uint8_t *block)
{
	const uint8_t *ip = f->at + l->l3;

	if (l->l3_type == FRAME_NO_L3)
		return;
	block[STEER_IP_PROTOCOL] = l->ip_protocol;
	if (l->is_fragment)
		block[STEER_FLAGS] |= STEER_FLAG_FRAGMENT;
	if (l->l3_type == FRAME_IPV4)
		ipv4_key(ip, block);
	else
		ipv6_key(ip, block);
}

static void l4_key(const struct frame *f, const struct frame_layer *l, uint8_t *block)
{
	const uint8_t *l4 = f->at + l->l4;

	if (l->l4_type == FRAME_UDP) {
		memcpy(block + STEER_UDP_SPORT, l4 + L4_SPORT, 2);
		memcpy(block + STEER_UDP_DPORT, l4 + L4_DPORT, 2);
	} else if (frame_is_tcp(l)) {
		memcpy(block + STEER_TCP_SPORT, l4 + L4_SPORT, 2);
		memcpy(block + STEER_TCP_DPORT, l4 + L4_DPORT, 2);
		block[STEER_FLAGS] |= l4[TCP_OFFSET] & TCP_NS;
		block[STEER_TCP_FLAGS] = l4[TCP_FLAGS];
	}
}

static void layer_key(const struct frame *f, const struct frame_layer *l, uint8_t *block)
{
	store16(block + STEER_ETHERTYPE, l->ethertype);
	if (l->l3 != l->l2)
		ethernet_key(f, l, block);
	l3_key(f, l, block);
	l4_key(f, l, block);
}

static void outer_key(const struct frame *f, uint8_t *block)
{
	layer_key(f, &f->outer, block);
}

static void inner_key(const struct frame *f, uint8_t *block)
{
	if (f->inner.l3)
		layer_key(f, &f->inner, block);
}

/* --- the others --- */

/* Bits of STEER_SECOND_TAGS for the one or the other, and where its TCI is. */
static const struct second_tag {
	uint8_t at, cvlan, svlan;
} second_tags[] = {
	{ STEER_OUTER_SECOND_VLAN, 0x80, 0x20 },
	{ STEER_INNER_SECOND_VLAN, 0x40, 0x10 },
};

static void second_tag_key(const struct frame *f, const struct frame_layer *l,
			   const struct second_tag *where, uint8_t *block)
{
	const uint8_t *tag = f->at + l->l2 + ETH_TYPE + ETH_TAG_BYTES;

	if (l->l3 - l->l2 < FRAME_HEADER_BYTES + 2 * ETH_TAG_BYTES)
		return;
	memcpy(block + where->at, tag + ETH_TAG_TCI, 2);
	block[STEER_SECOND_TAGS] |= load16(tag) == TYPE_CVLAN ? where->cvlan : where->svlan;
}

static void flow_label_key(const struct frame *f, const struct frame_layer *l, uint8_t *at)
{
	if (l->l3_type == FRAME_IPV6)
		store32(at, load32(f->at + l->l3) & 0xfffff);
}

/* MPLS may be in GRE, of which this is to be known, too. */
static bool has_gre(const struct frame *f)
{
	return (f->tunnel == FRAME_GRE || f->tunnel == FRAME_MPLS) &&
	       f->outer.l3_type != FRAME_NO_L3 && f->outer.ip_protocol == PROTOCOL_GRE;
}

static void gre_key(const struct frame *f, uint8_t *block)
{
	const uint8_t *gre = f->at + f->outer.payload, *key = gre + GRE_BYTES;
	uint16_t flags;

	if (!has_gre(f))
		return;
	flags = load16(gre);
	block[STEER_GRE_CKS] |= (flags & (GRE_HAS_SUM | GRE_HAS_KEY | GRE_HAS_SEQ)) >> 8;
	memcpy(block + STEER_GRE_PROTOCOL, gre + GRE_PROTOCOL, 2);
	if (flags & GRE_HAS_SUM)
		key += GRE_FIELD_BYTES;
	if (flags & GRE_HAS_KEY)
		memcpy(block + STEER_GRE_KEY, key, 4);
}

static void misc_key(const struct frame *f, uint8_t *block)
{
	second_tag_key(f, &f->outer, &second_tags[0], block);
	second_tag_key(f, &f->inner, &second_tags[1], block);
	flow_label_key(f, &f->outer, block + STEER_OUTER_FLOW_LABEL);
	flow_label_key(f, &f->inner, block + STEER_INNER_FLOW_LABEL);
	gre_key(f, block);
	if (f->tunnel == FRAME_VXLAN)
		memcpy(block + STEER_VXLAN_VNI, f->at + f->tunnel_at + VXLAN_VNI, 3);
}

static unsigned mpls_place(const struct frame *f)
{
	if (f->outer.l4_type == FRAME_UDP)
		return STEER_MPLS_OVER_UDP;
	return has_gre(f) ? STEER_MPLS_OVER_GRE : STEER_OUTER_MPLS;
}

static void misc2_key(const struct frame *f, uint8_t *block)
{
	const struct frame_layer *in = &f->inner;

	if (f->tunnel == FRAME_MPLS)
		memcpy(block + mpls_place(f), f->at + f->tunnel_at, MPLS_BYTES);
	if (in->l3 && type_is_mpls(in->ethertype) && in->l3 + (uint32_t)MPLS_BYTES <= f->bytes)
		memcpy(block + STEER_INNER_MPLS, f->at + in->l3, MPLS_BYTES);
}

static void (*const writers[STEER_BLOCK_COUNT])(const struct frame *, uint8_t *block) = {
	[STEER_OUTER] = outer_key, [STEER_MISC] = misc_key, [STEER_INNER] = inner_key,
	[STEER_MISC2] = misc2_key,
};

void frame_key(const struct frame *f, unsigned blocks, union steer_key *key)
{
	for (unsigned i = 0; i < STEER_BLOCK_COUNT; i++) {
		if (!(blocks >> i & 1))
			continue;
		memset(key->block[i], 0, STEER_BLOCK_BYTES);
		if (writers[i])
			writers[i](f, key->block[i]);
	}
}
