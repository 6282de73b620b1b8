/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What libmlx5.so.1 calls here: its functions are the driver's own interface, but the objects are
 * made in this library, so that they are there once.
 *
 * Exported under VERBENA_PRIVATE, for that one user.  What each does is what its mlx5dv_* does; all
 * take objects of our own contexts only.  Errors are an errno returned, or NULL and errno.
 *
 * Source: <infiniband/mlx5dv.h>; device-abi B.5, B.7, B.11, H.1.
 */
#ifndef VERBS_DV_H
#define VERBS_DV_H
#include <infiniband/mlx5dv/device.h>
#include <infiniband/mlx5dv/devx.h>
#include <infiniband/mlx5dv/flow.h>
#include <infiniband/mlx5dv/queues.h>
#include <infiniband/mlx5dv/raw.h>
#include "verbs/context.h"

/* Do we drive it, or the system's library? */
bool vb_dv_is_ours(const struct ibv_device *device);

/* --- dv_device.c --- */
int vb_dv_query_device(struct ibv_context *context, struct mlx5dv_context *out);
int vb_dv_query_port(struct ibv_context *context, uint32_t port_num, struct mlx5dv_port *out,
		     size_t bytes);
int vb_dv_get_clock_info(struct ibv_context *context, struct mlx5dv_clock_info *out);
struct mlx5dv_devx_uar *vb_dv_alloc_uar(struct ibv_context *context, uint32_t flags);
void vb_dv_free_uar(struct mlx5dv_devx_uar *uar);
int vb_dv_set_context_attr(struct ibv_context *context, enum mlx5dv_set_ctx_attr_type type,
			   void *attr);

/* --- dv_queues.c --- */
struct ibv_cq_ex *vb_dv_create_cq(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr,
				  const struct mlx5dv_cq_init_attr *dv);
struct ibv_qp *vb_dv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
			       const struct mlx5dv_qp_init_attr *dv);
struct ibv_wq *vb_dv_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr,
			       const struct mlx5dv_wq_init_attr *dv);
struct mlx5dv_qp_ex *vb_dv_qp_ex(struct ibv_qp_ex *ex);
struct ibv_dm *vb_dv_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr,
			      const struct mlx5dv_alloc_dm_attr *dv);

/* --- dv_flow.c --- */
struct mlx5dv_flow_matcher *
vb_dv_create_flow_matcher(struct ibv_context *context,
			  const struct mlx5dv_flow_matcher_attr *attr);
int vb_dv_destroy_flow_matcher(struct mlx5dv_flow_matcher *matcher);
struct ibv_flow *vb_dv_create_flow(const struct mlx5dv_flow_matcher *matcher,
				   const struct mlx5dv_flow_match_parameters *value, size_t count,
				   const struct mlx5dv_flow_action_attr *actions);
struct ibv_flow_action *vb_dv_create_modify_header(struct ibv_context *context, size_t bytes,
						   const uint64_t *actions,
						   enum mlx5dv_flow_table_type table);
struct ibv_flow_action *
vb_dv_create_packet_reformat(struct ibv_context *context, size_t bytes, const void *data,
			     enum mlx5dv_flow_action_packet_reformat_type type,
			     enum mlx5dv_flow_table_type table);

/* --- dv_raw.c --- */
int vb_dv_init_obj(struct mlx5dv_obj *obj, uint64_t types);
/* What the first version of that function put where the page now is: where the page stands. */
void *vb_dv_arm_page_place(struct ibv_context *context);
#endif
