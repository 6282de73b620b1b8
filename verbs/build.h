/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QPs that are posted to by ibv_wr_*.
 */
#ifndef VERBS_BUILD_H
#define VERBS_BUILD_H
#include "verbs/queue.h"

struct mlx5dv_qp_ex;

/* What QPs of that type can be asked for: IBV_QP_EX_WITH_*. */
uint64_t vb_build_ops_of(enum ibv_qp_type type);
/* Gives @qp the functions for @ops, and those for @dv_ops (MLX5DV_QP_EX_WITH_*).
 * EOPNOTSUPP, ENOMEM */
int vb_build_begin(struct vb_qp *qp, uint64_t ops, uint64_t dv_ops);
void vb_build_end(struct vb_qp *qp);
/* The driver's own functions of a QP that has a build. */
struct mlx5dv_qp_ex *vb_build_dv(struct vb_qp *qp);
#endif
