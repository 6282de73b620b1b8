/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5dv: flow steering with matches and actions as the device has them (PRM).
 */
#ifndef INFINIBAND_MLX5DV_FLOW_H
#define INFINIBAND_MLX5DV_FLOW_H

#include <infiniband/mlx5dv/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- matching --------------------------------------------------------------- */

/* A mask or a value: fte_match_param of the PRM. */
struct mlx5dv_flow_match_parameters {
	size_t match_sz;	/* bytes */
	__extension__ uint64_t match_buf[];
};

enum mlx5dv_flow_matcher_attr_mask {
	MLX5DV_FLOW_MATCHER_MASK_FT_TYPE = 1 << 0,
};

struct mlx5dv_flow_matcher_attr {
	enum ibv_flow_attr_type type;
	uint32_t flags;			/* enum ibv_flow_flags */
	uint16_t priority;
	uint8_t match_criteria_enable;	/* a bit for each part of match_mask that counts */
	struct mlx5dv_flow_match_parameters *match_mask;
	uint64_t comp_mask;		/* enum mlx5dv_flow_matcher_attr_mask */
	enum mlx5dv_flow_table_type ft_type;
};

/* EOPNOTSUPP: another type than IBV_FLOW_ATTR_NORMAL, or none of this here.  EINVAL, ENOMEM */
struct mlx5dv_flow_matcher *
mlx5dv_create_flow_matcher(struct ibv_context *context,
			   struct mlx5dv_flow_matcher_attr *matcher_attr);

/* EBUSY: a rule still uses it. */
int mlx5dv_destroy_flow_matcher(struct mlx5dv_flow_matcher *matcher);

/* --- actions ---------------------------------------------------------------- */

enum mlx5dv_flow_action_esp_mask {
	MLX5DV_FLOW_ACTION_ESP_MASK_FLAGS = 1 << 0,
};

struct mlx5dv_flow_action_esp {
	uint64_t comp_mask;	/* enum mlx5dv_flow_action_esp_mask */
	uint32_t action_flags;	/* enum mlx5dv_flow_action_flags */
};

/* Ended by ibv_destroy_flow_action(). */
struct ibv_flow_action *mlx5dv_create_flow_action_esp(struct ibv_context *ctx,
						      struct ibv_flow_action_esp_attr *esp,
						      struct mlx5dv_flow_action_esp *mlx5_attr);
struct ibv_flow_action *
mlx5dv_create_flow_action_modify_header(struct ibv_context *ctx, size_t actions_sz,
					uint64_t actions[], enum mlx5dv_flow_table_type ft_type);
struct ibv_flow_action *mlx5dv_create_flow_action_packet_reformat(
	struct ibv_context *ctx, size_t data_sz, void *data,
	enum mlx5dv_flow_action_packet_reformat_type reformat_type,
	enum mlx5dv_flow_table_type ft_type);

enum mlx5dv_flow_action_type {
	MLX5DV_FLOW_ACTION_DEST_IBV_QP = 0,
	MLX5DV_FLOW_ACTION_DROP = 1,
	MLX5DV_FLOW_ACTION_IBV_COUNTER = 2,
	MLX5DV_FLOW_ACTION_IBV_FLOW_ACTION = 3,
	MLX5DV_FLOW_ACTION_TAG = 4,
	MLX5DV_FLOW_ACTION_DEST_DEVX = 5,
	MLX5DV_FLOW_ACTION_COUNTERS_DEVX = 6,
	MLX5DV_FLOW_ACTION_DEFAULT_MISS = 7,
};

/* The type says which member counts. */
struct mlx5dv_flow_action_attr {
	enum mlx5dv_flow_action_type type;
	union {
		struct ibv_qp *qp;
		struct ibv_counters *counter;
		struct ibv_flow_action *action;
		uint32_t tag_value;
		struct mlx5dv_devx_obj *obj;
	};
};

/* Packets with @match_value under the mask.  Ended by ibv_destroy_flow(), before its matcher.
 * EOPNOTSUPP: two places to go to, or what the driver does not have.  EINVAL: none, or two tags. */
struct ibv_flow *mlx5dv_create_flow(struct mlx5dv_flow_matcher *matcher,
				    struct mlx5dv_flow_match_parameters *match_value,
				    size_t num_actions,
				    struct mlx5dv_flow_action_attr actions_attr[]);

/* --- anchors ---------------------------------------------------------------- */

struct mlx5dv_steering_anchor_attr {
	enum mlx5dv_flow_table_type ft_type;
	uint16_t priority;
	uint64_t comp_mask;
};

/* A flow table that commands to the device can name. */
struct mlx5dv_steering_anchor {
	uint32_t id;
};

struct mlx5dv_steering_anchor *
mlx5dv_create_steering_anchor(struct ibv_context *context,
			      struct mlx5dv_steering_anchor_attr *attr);
int mlx5dv_destroy_steering_anchor(struct mlx5dv_steering_anchor *sa);

#ifdef __cplusplus
}
#endif
#endif
