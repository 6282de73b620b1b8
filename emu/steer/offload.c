/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is done to a frame on its way out; see offload.h.  The FCS is in fcs.c.
 */
#include "emu/steer/bytes.h"
#include "emu/steer/headers.h"
#include "emu/steer/offload.h"
#include "emu/steer/sum.h"

/* --- checksums --- */

static void l3_sum(uint8_t *frame, const struct frame_layer *l)
{
	uint8_t *ip = frame + l->l3;

	if (l->l3_type != FRAME_IPV4)
		return;
	store16(ip + IPV4_CHECKSUM, 0);
	store16(ip + IPV4_CHECKSUM, (uint16_t)~sum_add(0, ip, (ip[0] & 0xf) * 4u));
}

/* 0 means of UDP that there is none, and its other form is as right. */
static void l4_sum(uint8_t *frame, const struct frame_layer *l)
{
	bool is_udp = l->l4_type == FRAME_UDP;
	uint8_t *at = frame + l->l4 + (is_udp ? UDP_CHECKSUM : TCP_CHECKSUM);
	uint16_t sum;

	if (!l->l4_end)
		return;
	store16(at, 0);
	sum = (uint16_t)~sum_l4(frame, l);
	store16(at, is_udp && !sum ? 0xffff : sum);
}

/* From the inside out: the sum of an outer L4 is over what is inside. */
void offload_checksums(uint8_t *frame, uint32_t bytes, unsigned flags)
{
	struct frame f;

	if (!frame_read(&f, frame, bytes, false))
		return;
	if (flags & OFFLOAD_INNER_L3)
		l3_sum(frame, &f.inner);
	if (flags & OFFLOAD_INNER_L4)
		l4_sum(frame, &f.inner);
	if (flags & OFFLOAD_L3)
		l3_sum(frame, &f.outer);
	if (flags & OFFLOAD_L4)
		l4_sum(frame, &f.outer);
}

/* --- segmentation --- */

/* IP tells of @bytes from its header on; false: more than it can. */
static bool ip_length_set(uint8_t *frame, const struct frame_layer *l, uint32_t bytes)
{
	if (bytes > UINT16_MAX)
		return false;
	if (l->ethertype == TYPE_IPV4)
		store16(frame + l->l3 + IPV4_LENGTH, (uint16_t)bytes);
	else
		store16(frame + l->l3 + IPV6_LENGTH, (uint16_t)(bytes - IPV6_BYTES));
	return true;
}

/* The header's own length is of a message that may be too long for it, so it is read as if
 * nothing were behind it. */
static bool header_read(uint8_t *header, uint32_t bytes, struct frame *f)
{
	uint32_t room;

	if (!frame_read(f, header, bytes, false))
		return false;
	room = bytes - f->outer.l3;
	if (f->outer.l3_type == FRAME_NO_L3 || !ip_length_set(header, &f->outer, room))
		return false;
	frame_read(f, header, bytes, false);
	return frame_is_tcp(&f->outer) && f->outer.payload == bytes;
}

static void tcp_segment(uint8_t *tcp, uint32_t offset, bool is_first, bool is_last)
{
	store32(tcp + TCP_SEQ, load32(tcp + TCP_SEQ) + offset);
	if (!is_first)
		tcp[TCP_FLAGS] &= (uint8_t)~TCP_CWR;
	if (!is_last)
		tcp[TCP_FLAGS] &= (uint8_t) ~(TCP_FIN | TCP_PSH);
}

static void ip_id_add(uint8_t *ip, uint32_t count)
{
	store16(ip + IPV4_ID, (uint16_t)(load16(ip + IPV4_ID) + count));
}

bool offload_segment(const uint8_t *header, uint32_t header_bytes, uint32_t payload_bytes,
		     uint32_t mss, uint32_t index, uint8_t *out)
{
	uint64_t offset = (uint64_t)index * mss;
	uint32_t here;
	struct frame f;

	if (!mss || (index && offset >= payload_bytes))
		return false;
	memcpy(out, header, header_bytes);
	if (!header_read(out, header_bytes, &f))
		return false;
	here = payload_bytes - (uint32_t)offset;
	if (here > mss)
		here = mss;
	if (here > UINT16_MAX || !ip_length_set(out, &f.outer, header_bytes - f.outer.l3 + here))
		return false;
	if (f.outer.l3_type == FRAME_IPV4)
		ip_id_add(out + f.outer.l3, index);
	tcp_segment(out + f.outer.l4, (uint32_t)offset, !index, offset + here == payload_bytes);
	return true;
}

/* --- tags --- */

uint32_t offload_vlan_insert(uint8_t *frame, uint32_t bytes, uint16_t tci)
{
	if (bytes < FRAME_HEADER_BYTES)
		return bytes;
	memmove(frame + ETH_TYPE + VLAN_BYTES, frame + ETH_TYPE, bytes - ETH_TYPE);
	store16(frame + ETH_TYPE, TYPE_CVLAN);
	store16(frame + ETH_TYPE + ETH_TAG_TCI, tci);
	return bytes + VLAN_BYTES;
}
