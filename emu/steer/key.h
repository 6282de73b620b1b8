/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What rules look at, laid out as mlx5's match parameters: blocks of 64 bytes, all big-endian, so
 * that a matcher of mlx5dv is a mask as it stands and specs of ibv_create_flow() are put there.
 *
 * Source: device-abi H.2 (mlx5dv matchers); PRM, fte_match_param.
 */
#ifndef EMU_STEER_KEY_H
#define EMU_STEER_KEY_H
#include <stdint.h>

/* Their order is that of match_params; their numbers are the bits of match_criteria. */
enum steer_block {
	STEER_OUTER, STEER_MISC, STEER_INNER, STEER_MISC2, STEER_MISC3, STEER_MISC4, STEER_MISC5,
	STEER_BLOCK_COUNT
};

#define STEER_BLOCK_BYTES	64
#define STEER_BLOCK_WORDS	(STEER_BLOCK_BYTES / 8)
#define STEER_KEY_BYTES		(STEER_BLOCK_COUNT * STEER_BLOCK_BYTES)

/* A mask, the value of a rule, or what a frame says.  What a frame does not say is 0. */
union steer_key {
	uint8_t bytes[STEER_KEY_BYTES];
	uint8_t block[STEER_BLOCK_COUNT][STEER_BLOCK_BYTES];
	uint64_t word[STEER_KEY_BYTES / 8];
};

/* Bytes of STEER_OUTER and STEER_INNER. */
enum {
	STEER_SMAC = 0, STEER_ETHERTYPE = 6, STEER_DMAC = 8,
	STEER_VLAN = 14,	/* priority [15:13], CFI [12], VID [11:0] of the first tag */
	STEER_IP_PROTOCOL = 16,
	STEER_IP_CLASS = 17,		/* DSCP [7:2], ECN [1:0] */
	STEER_FLAGS = 18,		/* STEER_FLAG_ bits, IP version [4:1] */
	STEER_TCP_FLAGS = 19,		/* and bit 0 of the byte before */
	STEER_TCP_SPORT = 20, STEER_TCP_DPORT = 22, STEER_TTL = 27,
	STEER_UDP_SPORT = 28, STEER_UDP_DPORT = 30,
	STEER_SRC_IP = 32, STEER_DST_IP = 48,	/* IPv4 in the last 4 of 16 bytes */
	STEER_SRC_IPV4 = STEER_SRC_IP + 12, STEER_DST_IPV4 = STEER_DST_IP + 12,
};
enum { STEER_FLAG_CVLAN = 0x80, STEER_FLAG_SVLAN = 0x40, STEER_FLAG_FRAGMENT = 0x20 };
#define STEER_IP_VERSION_SHIFT	1	/* in the byte STEER_FLAGS */
#define STEER_IP_VERSION_MASK	(0xfu << STEER_IP_VERSION_SHIFT)

/* Bytes of STEER_MISC. */
enum {
	STEER_GRE_CKS = 0,		/* bits C [7], K [5], S [4] of the first byte */
	STEER_OUTER_SECOND_VLAN = 8, STEER_INNER_SECOND_VLAN = 10,
	STEER_SECOND_TAGS = 12,	/* outer C-VLAN [7], inner [6]; outer S-VLAN [5], inner [4] */
	STEER_GRE_PROTOCOL = 14,
	STEER_GRE_KEY = 16,
	STEER_VXLAN_VNI = 20,		/* 3 bytes */
	STEER_OUTER_FLOW_LABEL = 28,	/* low 20 bits of 4 bytes */
	STEER_INNER_FLOW_LABEL = 32,
};

/* Bytes of STEER_MISC2: a label, then EXP, S, TTL, as they stand in the frame. */
enum {
	STEER_OUTER_MPLS = 0, STEER_INNER_MPLS = 4,
	STEER_MPLS_OVER_GRE = 8, STEER_MPLS_OVER_UDP = 12,
};
#endif
