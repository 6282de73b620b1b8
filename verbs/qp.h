/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between the files about queue pairs.
 */
#ifndef VERBS_QP_H
#define VERBS_QP_H
#include "verbs/queue.h"

/* What the driver's own interface adds to the attributes of a new QP. */
struct vb_qp_extra {
	uint32_t flags;			/* MLX5_QP_FLAG_* */
	enum vb_dc dc;
	uint64_t access_key;		/* targets */
	uint8_t streams_log, failed_streams_log;	/* initiators with streams */
	uint64_t dv_ops;		/* MLX5DV_QP_EX_WITH_* */
};

/* vb_create_qp_ex() with @extra, or NULL. */
struct ibv_qp *vb_qp_create(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
			    const struct vb_qp_extra *extra);

/* CREATE_QP with the driver's part @driver; fills in handle and number.  0 or an errno. */
int vb_qp_command(struct vb_qp *qp, const struct ibv_qp_init_attr_ex *attr, const void *driver,
		  size_t driver_bytes);

/* Takes what is left of @qp out of its CQs. */
void vb_qp_clean(struct vb_qp *qp);

/* A QP that only spreads packets over an indirection table; @flags: MLX5_QP_FLAG_*. */
struct ibv_qp *vb_create_hash_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
				 uint32_t flags);
#endif
