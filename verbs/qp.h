/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between the files about queue pairs.
 */
#ifndef VERBS_QP_H
#define VERBS_QP_H
#include "verbs/queue.h"

/* CREATE_QP with the driver's part @driver; fills in handle and number.  0 or an errno. */
int vb_qp_command(struct vb_qp *qp, const struct ibv_qp_init_attr_ex *attr, const void *driver,
		  size_t driver_bytes);

/* Takes what is left of @qp out of its CQs. */
void vb_qp_clean(struct vb_qp *qp);

/* A QP that only spreads packets over an indirection table. */
struct ibv_qp *vb_create_hash_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
#endif
