/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every part of the verbs API needs: the names of the objects, and GIDs.
 */
#ifndef INFINIBAND_VERBS_BASE_H
#define INFINIBAND_VERBS_BASE_H

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <sys/types.h>
#include <linux/types.h>
#include <infiniband/verbs_api.h>

#ifdef __cplusplus
#include <limits>
extern "C" {
#endif

struct ibv_device;
struct ibv_context;
struct ibv_comp_channel;
struct ibv_pd;
struct ibv_td;
struct ibv_mr;
struct ibv_mw;
struct ibv_dm;
struct ibv_ah;
struct ibv_cq;
struct ibv_cq_ex;
struct ibv_srq;
struct ibv_xrcd;
struct ibv_wq;
struct ibv_rwq_ind_table;
struct ibv_qp;
struct ibv_qp_ex;
struct ibv_flow;
struct ibv_flow_action;
struct ibv_counters;

/* Did the caller, whose structure has @sz bytes, know of the member @fld? */
#define vext_field_avail(type, fld, sz) (offsetof(type, fld) < (sz))

/* In ibv_context.abi_compat: this context lies at the end of a struct verbs_context. */
#define __VERBS_ABI_IS_EXTENDED ((void *)UINTPTR_MAX)

/* A port address of 128 bits, in network byte order. */
union ibv_gid {
	uint8_t raw[16];
	struct {
		__be64 subnet_prefix;
		__be64 interface_id;
	} global;
};

enum ibv_gid_type {
	IBV_GID_TYPE_IB = 0,
	IBV_GID_TYPE_ROCE_V1 = 1,
	IBV_GID_TYPE_ROCE_V2 = 2,
};

/* A line of the GID table of a port, as ibv_query_gid_ex() tells it. */
struct ibv_gid_entry {
	union ibv_gid gid;
	uint32_t gid_index;
	uint32_t port_num;
	uint32_t gid_type;	/* enum ibv_gid_type */
	uint32_t ndev_ifindex;	/* of the network device; 0: none */
};

#ifdef __cplusplus
}
#endif
#endif
