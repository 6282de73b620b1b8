/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's header, at the place where programs for rdma-core look for it, and what is not in
 * the oldest kernel that we build on.
 */
#ifndef INFINIBAND_IB_USER_IOCTL_VERBS_H
#define INFINIBAND_IB_USER_IOCTL_VERBS_H

#include <linux/types.h>
#include <linux/version.h>
#include <rdma/ib_user_ioctl_verbs.h>

/* Joined enum rdma_driver_id in Linux 6.2. */
#if LINUX_VERSION_CODE < 0x060200
#define RDMA_DRIVER_MANA ((enum rdma_driver_id)(RDMA_DRIVER_ERDMA + 1))
#endif

#endif
