/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's header, at the place where programs for rdma-core look for it.
 */
#ifndef INFINIBAND_MLX5_USER_IOCTL_VERBS_H
#define INFINIBAND_MLX5_USER_IOCTL_VERBS_H

#include <linux/types.h>
#include <rdma/mlx5_user_ioctl_verbs.h>

#endif
