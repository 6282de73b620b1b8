/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts that can be emulated; see profile.h.
 *
 * Numbers are those of published ibv_devinfo -v where the emulator reaches them.  max_qp_wr is
 * what newer kernels compute: the most requests of the largest ordinary size (256 bytes)
 * that max_send_wqebb holds, so that libmlx5 accepts it at creation.
 */
#include <string.h>
#include "hw-models/profile.h"

/* enum ib_port_width, ib_port_speed: speed of one lane. */
enum { WIDTH_4X = 2, SPEED_EDR = 32, SPEED_HDR = 64, SPEED_NDR = 128 };

#define FW(major, minor, sub) ((uint64_t)(major) << 32 | (uint64_t)(minor) << 16 | (sub))

#define MTU_4096	5		/* enum ib_mtu */
#define BAD_PKEY_CNTR	(1u << 1)
#define BAD_QKEY_CNTR	(1u << 2)
#define SYS_IMAGE_GUID	(1u << 11)
#define RC_RNR_NAK_GEN	(1u << 12)
#define WINDOWS		(1u << 17 | 1u << 21 | 1u << 24)	/* types 1 and 2B; invalidation */
#define XRC		(1u << 20)

/* As a ConnectX, which has nothing for UC and only sends from UD. */
enum { ODP = 1, ODP_IMPLICIT = 2 };
enum {
	ODP_SEND = 1, ODP_RECV = 2, ODP_WRITE = 4, ODP_READ = 8, ODP_ATOMIC = 16,
	ODP_SRQ_RECV = 32,
};
#define ODP_RC (ODP_SEND | ODP_RECV | ODP_WRITE | ODP_READ | ODP_ATOMIC | ODP_SRQ_RECV)
#define ODP_XRC (ODP_RC & ~ODP_RECV)

/* What all rows share.  Offloads: not yet, so off. */
#define COMMON									\
	.max_mtu = MTU_4096, .max_msg_bytes = 1u << 30,				\
	.device_cap_flags = BAD_PKEY_CNTR | BAD_QKEY_CNTR | SYS_IMAGE_GUID | RC_RNR_NAK_GEN | \
			    WINDOWS | XRC,					\
	.max_qp = 1u << 18, .max_qp_wr = 8192, .max_sge = 30, .max_sge_rd = 30,	\
	.max_cq = 1u << 24, .max_cqe = (1u << 22) - 1, .max_mr = 1u << 24,	\
	.max_pd = 1u << 23, .max_rd_atomic = 16,				\
	.max_srq = 1u << 23, .max_srq_wr = 32767, .max_srq_sge = 31,		\
	.max_ah = 1u << 24,							\
	.max_mcast_grp = 4096, .max_mcast_qp = 240,				\
	.max_mw = 1u << 24,							\
	.odp = ODP | ODP_IMPLICIT, .odp_rc = ODP_RC, .odp_ud = ODP_SEND, .odp_xrc = ODP_XRC,	\
	.max_dm_bytes = 1u << 17,						\
	.max_send_wqebb = 1u << 15, .max_sq_desc_bytes = 1024, .max_rq_desc_bytes = 512, \
	.comp_vectors = 4, .active_width = WIDTH_4X

/* CM_SUP and IP_BASED_GIDS. */
#define ROCE_PORT								\
	.link = HW_LINK_ETHERNET, .port_cap_flags = 0x04010000, .gid_table = 255,	\
	.pkey_table = 1, .has_flow_steering = true
/* On InfiniBand a ConnectX steers to the QPs that IPoIB lies on, and those are not here. */
#define IB_PORT									\
	.link = HW_LINK_INFINIBAND, .port_cap_flags = 0x2651e848, .gid_table = 8, .pkey_table = 128

/* The first row is the default.  The board id says that there is no board. */
const struct hw_profile hw_profiles[] = {
	{ .name = "connectx-6dx", .board_id = "MT_0000000359-EMULATED", .hca_type = "MT4125",
	  .pci_device = 0x101d, .vendor_part_id = 4125, .fw_ver = FW(22, 35, 2000),
	  .active_speed = SPEED_EDR, .core_clock_khz = 1000000, COMMON, ROCE_PORT },
	{ .name = "connectx-5", .board_id = "MT_0000000008-EMULATED", .hca_type = "MT4119",
	  .pci_device = 0x1017, .vendor_part_id = 4119, .fw_ver = FW(16, 35, 2000),
	  .active_speed = SPEED_EDR, .core_clock_khz = 78125, COMMON, ROCE_PORT },
	{ .name = "connectx-7", .board_id = "MT_0000000838-EMULATED", .hca_type = "MT4129",
	  .pci_device = 0x1021, .vendor_part_id = 4129, .fw_ver = FW(28, 35, 2000),
	  .active_speed = SPEED_NDR, .core_clock_khz = 1000000, COMMON, ROCE_PORT },
	{ .name = "connectx-6", .board_id = "MT_0000000223-EMULATED", .hca_type = "MT4123",
	  .pci_device = 0x101b, .vendor_part_id = 4123, .fw_ver = FW(20, 35, 2000),
	  .active_speed = SPEED_HDR, .core_clock_khz = 156250, COMMON, IB_PORT },
};
const unsigned hw_profile_count = sizeof hw_profiles / sizeof *hw_profiles;

const struct hw_profile *hw_profile_find(const char *name)
{
	if (!name || !*name)
		return &hw_profiles[0];
	for (unsigned i = 0; i < hw_profile_count; i++)
		if (!strcmp(hw_profiles[i].name, name))
			return &hw_profiles[i];
	return NULL;
}
