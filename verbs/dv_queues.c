/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues with attributes of the driver's own: they are checked and translated here, and made where
 * all others are.
 */
#include <errno.h>
#include <rdma/mlx5-abi.h>
#include "verbs/build.h"
#include "verbs/dv.h"
#include "verbs/ops.h"
#include "verbs/qp.h"
#include "verbs/wq.h"

/* --- CQs --- */

#define CQ_MASK (MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE | MLX5DV_CQ_INIT_ATTR_MASK_FLAGS | \
		 MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE)

/* Does the device pad long entries? */
static bool may_pad(struct ibv_context *context)
{
	struct mlx5_ib_query_device_resp answer = { 0 };

	return !vb_driver_attributes(context, &answer) &&
	       answer.flags & MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_PAD;
}

/* Compressed entries are read by nobody here. */
static int cq_translate(struct ibv_context *context, const struct mlx5dv_cq_init_attr *dv,
			struct vb_cq_extra *out)
{
	if (dv->comp_mask & ~(uint64_t)CQ_MASK ||
	    dv->comp_mask & MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE)
		return EINVAL;
	if (dv->comp_mask & MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE) {
		if (dv->cqe_size != 64 && dv->cqe_size != 128)
			return EINVAL;
		out->entry_bytes = dv->cqe_size;
	}
	if (!(dv->comp_mask & MLX5DV_CQ_INIT_ATTR_MASK_FLAGS))
		return 0;
	if (dv->flags & ~(uint32_t)MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD)
		return EINVAL;
	if (!(dv->flags & MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD))
		return 0;
	out->flags |= MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD;
	return may_pad(context) ? 0 : EINVAL;
}

VB_EXPORT struct ibv_cq_ex *vb_dv_create_cq(struct ibv_context *context,
					    struct ibv_cq_init_attr_ex *attr,
					    const struct mlx5dv_cq_init_attr *dv)
{
	struct vb_cq_extra extra = { 0 };
	int error = dv ? cq_translate(context, dv, &extra) : 0;

	if (!error)
		return vb_cq_create_ex(context, attr, &extra);
	errno = error;
	return NULL;
}

/* --- QPs --- */

#define QP_MASK (MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS | MLX5DV_QP_INIT_ATTR_MASK_DC | \
		 MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS | MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS)

/* Whether the device can do these is for it to say. */
static const struct { uint32_t flag, driver; } qp_flags[] = {
	{ MLX5DV_QP_CREATE_TUNNEL_OFFLOADS, MLX5_QP_FLAG_TUNNEL_OFFLOADS },
	{ MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC, MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_UC },
	{ MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_MC, MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_MC },
	{ MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE, 0 },
	{ MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE, MLX5_QP_FLAG_ALLOW_SCATTER_CQE |
						 MLX5_QP_FLAG_SCATTER_CQE },
	{ MLX5DV_QP_CREATE_PACKET_BASED_CREDIT_MODE, MLX5_QP_FLAG_PACKET_BASED_CREDIT_MODE },
};

static int flags_translate(uint32_t flags, uint32_t *out)
{
	enum { BOTH = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE |
		      MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE };
	uint32_t known = MLX5DV_QP_CREATE_SIG_PIPELINING;

	for (size_t i = 0; i < sizeof qp_flags / sizeof *qp_flags; i++) {
		known |= qp_flags[i].flag;
		if (flags & qp_flags[i].flag)
			*out |= qp_flags[i].driver;
	}
	if (flags & ~known || (flags & BOTH) == BOTH)
		return EINVAL;
	return flags & MLX5DV_QP_CREATE_SIG_PIPELINING ? EOPNOTSUPP : 0;
}

static int initiator_translate(const struct mlx5dv_qp_init_attr *dv, struct vb_qp_extra *out)
{
	const struct mlx5dv_dci_streams *streams = &dv->dc_init_attr.dci_streams;

	out->dc = VB_DC_INITIATOR;
	out->flags |= MLX5_QP_FLAG_TYPE_DCI;
	if (!(dv->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS))
		return 0;
	out->flags |= MLX5_QP_FLAG_DCI_STREAM;
	out->streams_log = streams->log_num_concurent;
	out->failed_streams_log = streams->log_num_errored;
	return 0;
}

/* It has no queues of its own, so that there is little to ask for. */
static int target_translate(const struct ibv_qp_init_attr_ex *attr,
			    const struct mlx5dv_qp_init_attr *dv, struct vb_qp_extra *out)
{
	enum { KNOWN = MLX5DV_QP_INIT_ATTR_MASK_DC | MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS };

	if (attr->comp_mask != IBV_QP_INIT_ATTR_PD || dv->comp_mask & ~(uint64_t)KNOWN ||
	    out->flags)
		return EINVAL;
	out->dc = VB_DC_TARGET;
	out->flags = MLX5_QP_FLAG_TYPE_DCT;
	out->access_key = dv->dc_init_attr.dct_access_key;
	return 0;
}

static int dc_translate(const struct ibv_qp_init_attr_ex *attr,
			const struct mlx5dv_qp_init_attr *dv, struct vb_qp_extra *out)
{
	bool is_dc = dv->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_DC;

	if (is_dc != (attr->qp_type == IBV_QPT_DRIVER))
		return EINVAL;
	if (!is_dc)
		return 0;
	switch (dv->dc_init_attr.dc_type) {
	case MLX5DV_DCTYPE_DCI:
		return initiator_translate(dv, out);
	case MLX5DV_DCTYPE_DCT:
		return target_translate(attr, dv, out);
	default:
		return EINVAL;
	}
}

static int qp_translate(const struct ibv_qp_init_attr_ex *attr,
			const struct mlx5dv_qp_init_attr *dv, struct vb_qp_extra *out)
{
	int error = 0;

	if (dv->comp_mask & ~(uint64_t)QP_MASK)
		return EINVAL;
	if (dv->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS)
		error = flags_translate(dv->create_flags, &out->flags);
	if (dv->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS)
		out->dv_ops = dv->send_ops_flags;
	return error ? error : dc_translate(attr, dv, out);
}

VB_EXPORT struct ibv_qp *vb_dv_create_qp(struct ibv_context *context,
					 struct ibv_qp_init_attr_ex *attr,
					 const struct mlx5dv_qp_init_attr *dv)
{
	struct vb_qp_extra extra = { 0 };
	int error = dv ? qp_translate(attr, dv, &extra) : 0;

	if (!error)
		return vb_qp_create(context, attr, &extra);
	errno = error;
	return NULL;
}

VB_EXPORT struct mlx5dv_qp_ex *vb_dv_qp_ex(struct ibv_qp_ex *ex)
{
	return vb_build_dv((struct vb_qp *)ex);
}

/* --- receive queues and device memory --- */

static bool is_within(uint32_t value, uint32_t least, uint32_t most)
{
	return value >= least && value <= most;
}

/* A device that receives in no strides has none between its least and its most. */
static int strides_translate(const struct vb_context *c, const struct mlx5dv_wq_init_attr *dv,
			     struct vb_strides *out)
{
	const struct mlx5dv_striding_rq_init_attr *a = &dv->striding_rq_attrs;
	bool has_strides = c->caps.stride_bytes_log_max && c->caps.strides_log_max < 32;

	if (dv->comp_mask != MLX5DV_WQ_INIT_ATTR_MASK_STRIDING_RQ || !has_strides ||
	    !is_within(a->single_stride_log_num_of_bytes, c->caps.stride_bytes_log_min,
		       c->caps.stride_bytes_log_max) ||
	    !is_within(a->single_wqe_log_num_of_strides, c->caps.strides_log_min,
		       c->caps.strides_log_max))
		return EINVAL;
	*out = (struct vb_strides){ .bytes_log = a->single_stride_log_num_of_bytes,
				    .count_log = a->single_wqe_log_num_of_strides,
				    .shifts_two_bytes = a->two_byte_shift_en };
	return 0;
}

VB_EXPORT struct ibv_wq *vb_dv_create_wq(struct ibv_context *context,
					 struct ibv_wq_init_attr *attr,
					 const struct mlx5dv_wq_init_attr *dv)
{
	struct vb_strides strides;
	int error;

	if (!dv || !dv->comp_mask)
		return vb_create_wq(context, attr);
	error = strides_translate(vb_context_of(context), dv, &strides);
	if (!error)
		return vb_wq_create(context, attr, &strides);
	errno = error;
	return NULL;
}

VB_EXPORT struct ibv_dm *vb_dv_alloc_dm(struct ibv_context *context,
					struct ibv_alloc_dm_attr *attr,
					const struct mlx5dv_alloc_dm_attr *dv)
{
	bool is_known = dv->type <= MLX5DV_DM_TYPE_HEADER_MODIFY_PATTERN_SW_ICM;
	int error = !is_known ? EOPNOTSUPP : dv->comp_mask ? EINVAL :
		    dv->type != MLX5DV_DM_TYPE_MEMIC ? EOPNOTSUPP : 0;

	if (!error)
		return vb_alloc_dm(context, attr);
	errno = error;
	return NULL;
}
