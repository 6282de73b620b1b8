/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a part says of itself: one row a profile.
 *
 * Values are those that ibv_devinfo -v prints for the real part; a capability
 * that the emulator does not have (yet) is off.  VERBENA_NIC names a row.
 */
#ifndef HW_MODELS_PROFILE_H
#define HW_MODELS_PROFILE_H
#include <stdbool.h>
#include <stdint.h>

enum hw_link { HW_LINK_INFINIBAND = 1, HW_LINK_ETHERNET = 2 };

struct hw_profile {
	const char *name;		/* "connectx-6dx" */
	const char *board_id, *hca_type;	/* "MT_0000000359", "MT4125" */
	uint16_t pci_device;		/* 0x101d */
	uint32_t vendor_part_id;
	uint64_t fw_ver;		/* major << 32 | minor << 16 | sub */
	enum hw_link link;
	uint8_t active_width, active_speed;
	uint8_t max_mtu;		/* enum 1 to 5 */
	uint32_t port_cap_flags;
	uint32_t max_msg_bytes;		/* 1 GiB */
	uint32_t gid_table, pkey_table;
	uint32_t device_cap_flags;
	bool has_flow_steering;		/* rules of applications; adds a bit to these flags */
	uint32_t max_qp, max_qp_wr, max_sge, max_sge_rd;
	uint32_t max_cq, max_cqe, max_mr, max_pd;
	uint32_t max_srq, max_srq_wr, max_srq_sge;
	uint32_t max_ah;
	uint32_t max_mcast_grp, max_mcast_qp;	/* groups; QPs in one of them */
	uint32_t max_mw;
	/* On-demand paging: what there is at all, and for which operations by transport. */
	uint32_t odp, odp_rc, odp_uc, odp_ud, odp_xrc;
	uint32_t max_dm_bytes;		/* device memory of a context */
	uint32_t max_rd_atomic;		/* per QP, both directions */
	uint32_t max_send_wqebb, max_sq_desc_bytes, max_rq_desc_bytes;
	uint32_t comp_vectors;
	uint32_t core_clock_khz;
};

extern const struct hw_profile hw_profiles[];
extern const unsigned hw_profile_count;

/* NULL: no such profile.  An empty or NULL name is the default. */
const struct hw_profile *hw_profile_find(const char *name);
#endif
