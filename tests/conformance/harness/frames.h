/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ethernet frames by hand, and flow rules with the specs that cases need.
 *
 * Nothing here asserts, see end.h.
 */
#ifndef CONFORMANCE_FRAMES_H
#define CONFORMANCE_FRAMES_H
#include "end.h"

enum { ETH_BYTES = 14, TAG_BYTES = 4, IP_BYTES = 20, UDP_BYTES = 8, TCP_BYTES = 20 };
enum { L4_UDP = 17, L4_TCP = 6 };
#define FRAME_ROOM	2048

/* Stations of cases: 02:00:00:00:00:NN. */
#define STATION(n)	{ 0x02, 0, 0, 0, 0, n }
#define GROUP_MAC	{ 0x01, 0x00, 0x5e, 0x01, 0x02, 0x03 }

struct frame_ask {
	uint8_t dst[6], src[6];
	uint16_t vlan;			/* TCI, 0: no tag */
	uint16_t ethertype;		/* 0: that of the version */
	uint8_t version;		/* 4, 6, or 0: payload comes next */
	uint8_t l4;			/* L4_UDP, L4_TCP, or 0 */
	uint32_t src_ip, dst_ip;	/* host order; of version 6 the last 32 bits */
	uint16_t sport, dport;
	uint32_t payload_bytes;		/* a pattern, see pattern_fill() */
	uint64_t seed;
	bool lacks_checks;		/* checksums are left 0 */
};

/* Its length. */
uint32_t frame_build(uint8_t *out, const struct frame_ask *ask);

struct flow_ask {
	enum ibv_flow_attr_type type;
	uint16_t priority;
	uint32_t flags;
	bool has_eth, has_ipv4, has_udp, has_tag, drops;
	uint8_t dst[6], dst_mask[6];
	uint32_t src_ip, src_ip_mask;	/* host order */
	uint16_t dport, dport_mask;
	uint32_t tag;
	struct ibv_counters *counters;	/* or NULL; not through a peer */
};

/* All frames to this station. */
struct flow_ask flow_to(const uint8_t dst[6]);
struct ibv_flow *flow_add(struct ibv_qp *qp, const struct flow_ask *ask);	/* NULL: errno */
#endif
