/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where fields are in the headers that a frame may have.  Offsets are bytes; numbers are
 * big-endian.
 *
 * Source: as frame.h; numbers of IANA.
 */
#ifndef EMU_STEER_HEADERS_H
#define EMU_STEER_HEADERS_H
#include <stdbool.h>
#include "emu/steer/frame.h"

enum { ETH_DMAC = 0, ETH_SMAC = 6, ETH_TYPE = 12, ETH_TAG_TCI = 2, ETH_TAG_BYTES = 4 };
enum {
	TYPE_IPV4 = 0x0800, TYPE_TEB = 0x6558, TYPE_CVLAN = 0x8100, TYPE_IPV6 = 0x86dd,
	TYPE_MPLS = 0x8847, TYPE_MPLS_MULTICAST = 0x8848, TYPE_SVLAN = 0x88a8,
};

enum {
	IPV4_CLASS = 1, IPV4_LENGTH = 2, IPV4_ID = 4, IPV4_FRAGMENT = 6, IPV4_TTL = 8,
	IPV4_PROTOCOL = 9, IPV4_CHECKSUM = 10, IPV4_SRC = 12, IPV4_DST = 16, IPV4_BYTES = 20,
};
enum { IPV4_FRAGMENT_BITS = 0x3fff };		/* more fragments, offset */
enum {
	IPV6_LENGTH = 4, IPV6_NEXT = 6, IPV6_HOPS = 7, IPV6_SRC = 8, IPV6_DST = 24,
	IPV6_BYTES = 40,
};
enum { EXTENSION_NEXT = 0, EXTENSION_LENGTH = 1, FRAGMENT_OFFSET = 2, EXTENSION_BYTES = 8 };
enum { IPV6_FRAGMENT_BITS = 0xfff9 };		/* offset, more fragments */
enum {
	PROTOCOL_HOP_BY_HOP = 0, PROTOCOL_TCP = 6, PROTOCOL_UDP = 17, PROTOCOL_ROUTING = 43,
	PROTOCOL_FRAGMENT = 44, PROTOCOL_GRE = 47, PROTOCOL_DESTINATION = 60,
};

enum { L4_SPORT = 0, L4_DPORT = 2 };
enum { TCP_SEQ = 4, TCP_OFFSET = 12, TCP_FLAGS = 13, TCP_CHECKSUM = 16, TCP_BYTES = 20 };
enum { TCP_FIN = 0x01, TCP_PSH = 0x08, TCP_ACK = 0x10, TCP_CWR = 0x80, TCP_NS = 0x01 };
enum { UDP_LENGTH = 4, UDP_CHECKSUM = 6, UDP_BYTES = 8 };
enum { PORT_VXLAN = 4789, PORT_MPLS = 6635 };

enum { VXLAN_VNI = 4, VXLAN_BYTES = 8 };
enum { GRE_PROTOCOL = 2, GRE_BYTES = 4, GRE_FIELD_BYTES = 4 };
enum { GRE_HAS_SUM = 0x8000, GRE_HAS_ROUTE = 0x4000, GRE_HAS_KEY = 0x2000, GRE_HAS_SEQ = 0x1000,
       GRE_VERSION = 0x0007 };
enum { MPLS_BYTES = 4, MPLS_BOTTOM = 0x100 };	/* of the label as a number */

static inline bool type_is_mpls(uint16_t ethertype)
{
	return ethertype == TYPE_MPLS || ethertype == TYPE_MPLS_MULTICAST;
}

static inline bool frame_is_tcp(const struct frame_layer *l)
{
	return l->l4_type != FRAME_NO_L4 && l->l4_type != FRAME_UDP;
}
#endif
