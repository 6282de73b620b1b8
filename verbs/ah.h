/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address handles: the address vector that a send copies into its WQE, ready but for the peer's QP
 * and Q_Key.
 */
#ifndef VERBS_AH_H
#define VERBS_AH_H
#include <infiniband/verbs.h>
#include <stdbool.h>
#include "hw-models/mlx5_wqe.h"

struct vb_ah {
	struct ibv_ah ah;
	struct mlx5_datagram av;
	bool is_known;		/* the device has an object for it */
};

static inline struct vb_ah *vb_ah_of(const struct ibv_ah *ah)
{
	return (struct vb_ah *)(uintptr_t)ah;
}

/* --- ah.c --- */
/* The MAC address that the device's kernel finds behind @attr's GID.  0 or an errno. */
int vb_ask_mac(struct ibv_pd *pd, const struct ibv_ah_attr *attr, uint8_t mac_out[6]);
/* False, too, if there is no such port. */
bool vb_port_is_ethernet(struct ibv_context *context, uint8_t port_num);
#endif
