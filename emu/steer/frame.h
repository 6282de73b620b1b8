/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An Ethernet frame, read once: where its headers are and what they are.
 *
 * Bytes are hostile: what does not fit is not there, and a header that lies about its own length
 * ends the reading.  The frame has no FCS.
 * Source: IEEE 802.3, 802.1Q; RFC 791, 8200, 9293, 768, 7348 (VXLAN), 2784 and 2890 (GRE), 3032
 * (MPLS).
 */
#ifndef EMU_STEER_FRAME_H
#define EMU_STEER_FRAME_H
#include <stdbool.h>
#include <stdint.h>
#include "emu/steer/key.h"

#define FRAME_HEADER_BYTES	14	/* without a tag; what is shorter is no frame */
#define FRAME_BYTES_MAX		9600	/* tags included, FCS not */

enum frame_l3 { FRAME_NO_L3, FRAME_IPV6, FRAME_IPV4 };		/* l3_type of a CQE */
/* l4_type of a CQE.  TCP: without ACK, with ACK and without data, with both. */
enum frame_l4 { FRAME_NO_L4, FRAME_TCP, FRAME_UDP, FRAME_TCP_EMPTY_ACK, FRAME_TCP_ACK };
/* MPLS may be over GRE or UDP. */
enum frame_tunnel { FRAME_NO_TUNNEL, FRAME_VXLAN, FRAME_GRE, FRAME_MPLS };

struct frame_layer {
	/* Offsets.  l3: behind the ethertype, even if that is none of IP; the same as l2 if the
	 * layer has no Ethernet header.  payload: behind L4, or behind IP that has neither TCP
	 * nor UDP.  l4, payload: 0 there is none.  l4_end: of what the checksum of L4 covers, 0
	 * if lengths don't tell. */
	uint16_t l2, l3, l4, payload, l4_end;
	uint16_t ethertype;		/* host order, behind the tags */
	uint8_t l3_type, l4_type, ip_protocol;
	bool is_fragment;		/* l4 is 0 then */
	bool l3_ok;			/* IPv4: the header's checksum is right; IPv6: true */
	bool l4_ok;			/* UDP without checksum: true; not asked for: false */
};

struct frame {
	const uint8_t *at;
	uint32_t bytes;
	bool has_cvlan, has_svlan;	/* of the first tag */
	uint16_t vlan;			/* its TCI, host order; 0: none */
	uint8_t tunnel;			/* enum frame_tunnel */
	uint16_t tunnel_at;		/* offset of the VXLAN, GRE or MPLS header */
	struct frame_layer outer, inner;	/* inner: l3_type 0 and l2 0 unless tunnelled */
};

/* False: too short to be a frame.  Checksums of L4 are computed only if @wants_checks. */
bool frame_read(struct frame *f, const uint8_t *bytes, uint32_t count, bool wants_checks);

/* The checksums of L4, of a frame that was read without. */
void frame_check_l4(struct frame *f);

/* What the frame says, for rules that look at these blocks (bits by enum steer_block); the other
 * blocks of @key are not touched. */
void frame_key(const struct frame *f, unsigned blocks, union steer_key *key);
#endif
