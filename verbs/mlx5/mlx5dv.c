/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions of libmlx5 that our devices have: each hands over to libibverbs.so.1, unless the
 * object is one of the system's library, whose driver is not here.
 *
 * Source: <infiniband/mlx5dv.h>.
 */
#include <errno.h>
#include <stddef.h>
#include "verbs/dv.h"

static bool is_ours(const struct ibv_context *context)
{
	return vb_dv_is_ours(context->device);
}

static void *refuse(int error)
{
	errno = error;
	return NULL;
}

/* --- devices --- */

VB_EXPORT bool mlx5dv_is_supported(struct ibv_device *device)
{
	return vb_dv_is_ours(device);
}

/* Commands to the hardware are refused as by a kernel that allows none. */
VB_EXPORT struct ibv_context *mlx5dv_open_device(struct ibv_device *device,
						 struct mlx5dv_context_attr *attr)
{
	if (!vb_dv_is_ours(device))
		return refuse(EOPNOTSUPP);
	if (attr && (attr->flags || attr->comp_mask))
		return refuse(EINVAL);
	return ibv_open_device(device);
}

VB_EXPORT int mlx5dv_query_device(struct ibv_context *ctx_in, struct mlx5dv_context *attrs_out)
{
	return is_ours(ctx_in) ? vb_dv_query_device(ctx_in, attrs_out) : EOPNOTSUPP;
}

VB_EXPORT int _mlx5dv_query_port(struct ibv_context *context, uint32_t port_num,
				 struct mlx5dv_port *info, size_t info_len)
{
	return is_ours(context) ? vb_dv_query_port(context, port_num, info, info_len) : EOPNOTSUPP;
}

VB_EXPORT int mlx5dv_get_clock_info(struct ibv_context *context,
				    struct mlx5dv_clock_info *clock_info)
{
	return is_ours(context) ? vb_dv_get_clock_info(context, clock_info) : EOPNOTSUPP;
}

VB_EXPORT int mlx5dv_set_context_attr(struct ibv_context *context,
				      enum mlx5dv_set_ctx_attr_type type, void *attr)
{
	return is_ours(context) ? vb_dv_set_context_attr(context, type, attr) : EOPNOTSUPP;
}

VB_EXPORT struct mlx5dv_devx_uar *mlx5dv_devx_alloc_uar(struct ibv_context *context,
							uint32_t flags)
{
	return is_ours(context) ? vb_dv_alloc_uar(context, flags) : refuse(EOPNOTSUPP);
}

VB_EXPORT void mlx5dv_devx_free_uar(struct mlx5dv_devx_uar *devx_uar)
{
	vb_dv_free_uar(devx_uar);
}

/* --- queues and memory --- */

VB_EXPORT struct ibv_cq_ex *mlx5dv_create_cq(struct ibv_context *context,
					     struct ibv_cq_init_attr_ex *cq_attr,
					     struct mlx5dv_cq_init_attr *mlx5_cq_attr)
{
	return is_ours(context) ? vb_dv_create_cq(context, cq_attr, mlx5_cq_attr) :
	       refuse(EOPNOTSUPP);
}

VB_EXPORT struct ibv_qp *mlx5dv_create_qp(struct ibv_context *context,
					  struct ibv_qp_init_attr_ex *qp_attr,
					  struct mlx5dv_qp_init_attr *mlx5_qp_attr)
{
	return is_ours(context) ? vb_dv_create_qp(context, qp_attr, mlx5_qp_attr) :
	       refuse(EOPNOTSUPP);
}

/* perftest asks also for a target, which has no such functions, and then uses none. */
VB_EXPORT struct mlx5dv_qp_ex *mlx5dv_qp_ex_from_ibv_qp_ex(struct ibv_qp_ex *qp)
{
	return qp && is_ours(qp->qp_base.context) ? vb_dv_qp_ex(qp) : refuse(EOPNOTSUPP);
}

VB_EXPORT struct ibv_wq *mlx5dv_create_wq(struct ibv_context *context,
					  struct ibv_wq_init_attr *wq_init_attr,
					  struct mlx5dv_wq_init_attr *mlx5_wq_attr)
{
	return is_ours(context) ? vb_dv_create_wq(context, wq_init_attr, mlx5_wq_attr) :
	       refuse(EOPNOTSUPP);
}

VB_EXPORT struct ibv_dm *mlx5dv_alloc_dm(struct ibv_context *context,
					 struct ibv_alloc_dm_attr *dm_attr,
					 struct mlx5dv_alloc_dm_attr *mlx5_dm_attr)
{
	return is_ours(context) ? vb_dv_alloc_dm(context, dm_attr, mlx5_dm_attr) :
	       refuse(EOPNOTSUPP);
}

/* --- flow steering --- */

VB_EXPORT struct mlx5dv_flow_matcher *
mlx5dv_create_flow_matcher(struct ibv_context *context,
			   struct mlx5dv_flow_matcher_attr *matcher_attr)
{
	return is_ours(context) ? vb_dv_create_flow_matcher(context, matcher_attr) :
	       refuse(EOPNOTSUPP);
}

/* There are none but ours. */
VB_EXPORT int mlx5dv_destroy_flow_matcher(struct mlx5dv_flow_matcher *matcher)
{
	return vb_dv_destroy_flow_matcher(matcher);
}

VB_EXPORT struct ibv_flow *mlx5dv_create_flow(struct mlx5dv_flow_matcher *matcher,
					      struct mlx5dv_flow_match_parameters *match_value,
					      size_t num_actions,
					      struct mlx5dv_flow_action_attr actions_attr[])
{
	return vb_dv_create_flow(matcher, match_value, num_actions, actions_attr);
}

VB_EXPORT struct ibv_flow_action *
mlx5dv_create_flow_action_modify_header(struct ibv_context *ctx, size_t actions_sz,
					uint64_t actions[], enum mlx5dv_flow_table_type ft_type)
{
	return is_ours(ctx) ? vb_dv_create_modify_header(ctx, actions_sz, actions, ft_type) :
	       refuse(EOPNOTSUPP);
}

VB_EXPORT struct ibv_flow_action *mlx5dv_create_flow_action_packet_reformat(
	struct ibv_context *ctx, size_t data_sz, void *data,
	enum mlx5dv_flow_action_packet_reformat_type reformat_type,
	enum mlx5dv_flow_table_type ft_type)
{
	return is_ours(ctx) ?
	       vb_dv_create_packet_reformat(ctx, data_sz, data, reformat_type, ft_type) :
	       refuse(EOPNOTSUPP);
}

/* --- objects as they lie in memory --- */

/* The context of the first object asked for; NULL: there is none. */
static const struct ibv_context *context_of(const struct mlx5dv_obj *obj, uint64_t types)
{
	if (types & MLX5DV_OBJ_QP)
		return obj->qp.in->context;
	if (types & MLX5DV_OBJ_CQ)
		return obj->cq.in->context;
	if (types & MLX5DV_OBJ_SRQ)
		return obj->srq.in->context;
	if (types & MLX5DV_OBJ_RWQ)
		return obj->rwq.in->context;
	if (types & MLX5DV_OBJ_DM)
		return obj->dm.in->context;
	if (types & MLX5DV_OBJ_AH)
		return obj->ah.in->context;
	return types & MLX5DV_OBJ_PD ? obj->pd.in->context : NULL;
}

/* Two versions have that name, so neither has it here. */
#define VERSION(function, name, version)					\
	int function(struct mlx5dv_obj *obj, uint64_t obj_type);		\
	__asm__(".symver " #function ", " #name version)

VERSION(init_obj_1_2, mlx5dv_init_obj, "@@MLX5_1.2");
VB_EXPORT int init_obj_1_2(struct mlx5dv_obj *obj, uint64_t obj_type)
{
	const struct ibv_context *context = context_of(obj, obj_type);

	if (!context)
		return EINVAL;
	return is_ours(context) ? vb_dv_init_obj(obj, obj_type) : EOPNOTSUPP;
}

/* Of programs from before rdma-core 15, to which the page of a CQ is not told, but its place. */
VERSION(init_obj_1_0, mlx5dv_init_obj, "@MLX5_1.0");
VB_EXPORT int init_obj_1_0(struct mlx5dv_obj *obj, uint64_t obj_type)
{
	int error = init_obj_1_2(obj, obj_type);

	if (!error && obj_type & MLX5DV_OBJ_CQ)
		obj->cq.out->cq_uar = vb_dv_arm_page_place(obj->cq.in->context);
	return error;
}
