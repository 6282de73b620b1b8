/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The direct interface of the mlx5 driver: what ConnectX devices have beyond the verbs API, and
 * their queues as they lie in memory.  Source- and binary-compatible with libmlx5 of rdma-core 44.
 *
 * Include this file, not its parts.  Conventions are those of <infiniband/verbs.h>.  A structure
 * with a comp_mask can grow: set it to what you know, 0 if nothing.
 */
#ifndef _MLX5DV_H_
#define _MLX5DV_H_

#include <endian.h>
#include <stdbool.h>
#include <stdio.h>
#include <linux/types.h>
#include <sys/types.h>
#include <infiniband/verbs.h>
#include <infiniband/tm_types.h>
#include <infiniband/mlx5_api.h>

#include <infiniband/mlx5dv/base.h>
#include <infiniband/mlx5dv/device.h>
#include <infiniband/mlx5dv/mkey.h>
#include <infiniband/mlx5dv/queues.h>
#include <infiniband/mlx5dv/raw.h>
#include <infiniband/mlx5dv/wqe.h>
#include <infiniband/mlx5dv/cqe.h>
#include <infiniband/mlx5dv/flow.h>
#include <infiniband/mlx5dv/devx.h>
#include <infiniband/mlx5dv/dr.h>

#endif
