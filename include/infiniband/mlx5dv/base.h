/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every part of the mlx5dv interface needs.
 */
#ifndef INFINIBAND_MLX5DV_BASE_H
#define INFINIBAND_MLX5DV_BASE_H

#include <endian.h>
#include <stdbool.h>
#include <stdio.h>
#include <linux/types.h>
#include <sys/types.h>
#include <infiniband/verbs.h>
#include <infiniband/tm_types.h>
#include <infiniband/mlx5_api.h>

#ifdef __GNUC__
#define MLX5DV_ALWAYS_INLINE inline __attribute__((always_inline))
#else
#define MLX5DV_ALWAYS_INLINE inline
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct mlx5dv_mkey;
struct mlx5dv_qp_ex;
struct mlx5dv_dek;
struct mlx5dv_crypto_login_obj;
struct mlx5dv_flow_matcher;
struct mlx5dv_devx_obj;
struct mlx5dv_sched_node;
struct mlx5dv_sched_leaf;
struct mlx5dv_dr_domain;
struct mlx5dv_dr_table;
struct mlx5dv_dr_matcher;
struct mlx5dv_dr_rule;
struct mlx5dv_dr_action;

/* What an allocator of a parent domain is asked for: its resource_type. */
#define MLX5DV_RES_TYPE_QP  ((uint64_t)RDMA_DRIVER_MLX5 << 32 | 1)
#define MLX5DV_RES_TYPE_RWQ ((uint64_t)RDMA_DRIVER_MLX5 << 32 | 2)
#define MLX5DV_RES_TYPE_DBR ((uint64_t)RDMA_DRIVER_MLX5 << 32 | 3)
#define MLX5DV_RES_TYPE_SRQ ((uint64_t)RDMA_DRIVER_MLX5 << 32 | 4)
#define MLX5DV_RES_TYPE_CQ  ((uint64_t)RDMA_DRIVER_MLX5 << 32 | 5)

#ifdef __cplusplus
}
#endif
#endif
