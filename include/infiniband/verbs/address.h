/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where packets go: routes, rates, address handles.
 */
#ifndef INFINIBAND_VERBS_ADDRESS_H
#define INFINIBAND_VERBS_ADDRESS_H

#include <infiniband/verbs/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ETHERNET_LL_SIZE 6

/* What goes into the header of a packet that leaves the subnet, or that is RoCE. */
struct ibv_global_route {
	union ibv_gid dgid;
	uint32_t flow_label;
	uint8_t sgid_index;	/* in the GID table of the port */
	uint8_t hop_limit;
	uint8_t traffic_class;
};

/* The 40 bytes in front of the payload that a UD QP receives. */
struct ibv_grh {
	__be32 version_tclass_flow;
	__be16 paylen;
	uint8_t next_hdr;
	uint8_t hop_limit;
	union ibv_gid sgid;
	union ibv_gid dgid;
};

/* Codes of IBTA, not in the order of what they mean. */
enum ibv_rate {
	IBV_RATE_MAX = 0,
	IBV_RATE_2_5_GBPS = 2,
	IBV_RATE_10_GBPS = 3,
	IBV_RATE_30_GBPS = 4,
	IBV_RATE_5_GBPS = 5,
	IBV_RATE_20_GBPS = 6,
	IBV_RATE_40_GBPS = 7,
	IBV_RATE_60_GBPS = 8,
	IBV_RATE_80_GBPS = 9,
	IBV_RATE_120_GBPS = 10,
	IBV_RATE_14_GBPS = 11,
	IBV_RATE_56_GBPS = 12,
	IBV_RATE_112_GBPS = 13,
	IBV_RATE_168_GBPS = 14,
	IBV_RATE_25_GBPS = 15,
	IBV_RATE_100_GBPS = 16,
	IBV_RATE_200_GBPS = 17,
	IBV_RATE_300_GBPS = 18,
	IBV_RATE_28_GBPS = 19,
	IBV_RATE_50_GBPS = 20,
	IBV_RATE_400_GBPS = 21,
	IBV_RATE_600_GBPS = 22,
	IBV_RATE_800_GBPS = 23,
	IBV_RATE_1200_GBPS = 24,
};

struct ibv_ah_attr {
	struct ibv_global_route grh; /* counts if is_global */
	uint16_t dlid;
	uint8_t sl;
	uint8_t src_path_bits;
	uint8_t static_rate; /* enum ibv_rate */
	uint8_t is_global;
	uint8_t port_num;
};

struct ibv_ah {
	struct ibv_context *context;
	struct ibv_pd *pd;
	uint32_t handle;
};

/* Between a rate and its multiple of 2.5 Gbit/s.  Unknown: -1, and IBV_RATE_MAX. */
int ibv_rate_to_mult(enum ibv_rate rate) __attribute__((const));
enum ibv_rate mult_to_ibv_rate(int mult) __attribute__((const));

/* Between a rate and Mbit/s.  Unknown: -1, and IBV_RATE_MAX. */
int ibv_rate_to_mbps(enum ibv_rate rate) __attribute__((const));
enum ibv_rate mbps_to_ibv_rate(int mbps) __attribute__((const));

/* The range of source ports that RoCE v2 may use, and the part of a GRH that chooses one. */
#define IB_ROCE_UDP_ENCAP_VALID_PORT_MIN (0xC000)
#define IB_ROCE_UDP_ENCAP_VALID_PORT_MAX (0xFFFF)
#define IB_GRH_FLOWLABEL_MASK		 (0x000FFFFF)

/* The upper 6 of the 20 bits of a flow label are folded into the lower 14. */
static inline uint16_t ibv_flow_label_to_udp_sport(uint32_t fl)
{
	uint32_t low = (fl & 0x3fff) ^ ((fl & 0xfc000) >> 14);

	return (uint16_t)(IB_ROCE_UDP_ENCAP_VALID_PORT_MIN | low);
}

#ifdef __cplusplus
}
#endif
#endif
