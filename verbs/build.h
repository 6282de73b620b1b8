/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QPs that are posted to by ibv_wr_*.
 */
#ifndef VERBS_BUILD_H
#define VERBS_BUILD_H
#include "verbs/queue.h"

/* What QPs of that type can be asked for: IBV_QP_EX_WITH_*. */
uint64_t vb_build_ops_of(enum ibv_qp_type type);
/* Gives @qp the functions for @ops.  EOPNOTSUPP, ENOMEM */
int vb_build_begin(struct vb_qp *qp, uint64_t ops);
void vb_build_end(struct vb_qp *qp);
#endif
