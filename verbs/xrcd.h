/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An XRC domain; QPs and SRQs on it name it by its handle.
 */
#ifndef VERBS_XRCD_H
#define VERBS_XRCD_H
#include <infiniband/verbs.h>

struct vb_xrcd {
	struct ibv_xrcd xrcd;
	uint32_t handle;
};

static inline struct vb_xrcd *vb_xrcd_of(const struct ibv_xrcd *xrcd)
{
	return (struct vb_xrcd *)(uintptr_t)xrcd;
}
#endif
