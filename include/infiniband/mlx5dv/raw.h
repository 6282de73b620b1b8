/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5dv: the buffers and numbers behind verbs objects, for programs that drive the queues
 * themselves.
 *
 * A program that took a queue this way must not also post to it or poll it through verbs.
 */
#ifndef INFINIBAND_MLX5DV_RAW_H
#define INFINIBAND_MLX5DV_RAW_H

#include <infiniband/mlx5dv/base.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mlx5_wqe_av;

/* In a doorbell record, the word for each of the two queues. */
enum {
	MLX5_RCV_DBR = 0,
	MLX5_SND_DBR = 1,
};

/* Pages of a device file that hold doorbell registers. */
enum {
	MLX5_MMAP_GET_REGULAR_PAGES_CMD = 0,
	MLX5_MMAP_GET_NC_PAGES_CMD = 3,
};

/* --- queues ----------------------------------------------------------------- */

enum mlx5dv_qp_comp_mask {
	MLX5DV_QP_MASK_UAR_MMAP_OFFSET = 1 << 0,
	MLX5DV_QP_MASK_RAW_QP_HANDLES = 1 << 1,
	MLX5DV_QP_MASK_RAW_QP_TIR_ADDR = 1 << 2,
};

struct mlx5dv_qp {
	__be32 *dbrec;
	struct {
		void *buf;
		uint32_t wqe_cnt;
		uint32_t stride; /* bytes */
	} sq;
	struct {
		void *buf;
		uint32_t wqe_cnt;
		uint32_t stride; /* bytes */
	} rq;
	struct {
		void *reg;	 /* the doorbell register */
		uint32_t size;	 /* bytes of a BlueFlame buffer, of which there are two; 0: none */
	} bf;
	uint64_t comp_mask;	 /* enum mlx5dv_qp_comp_mask: which members below count */
	off_t uar_mmap_offset;
	uint32_t tirn;
	uint32_t tisn;
	uint32_t rqn;
	uint32_t sqn;
	uint64_t tir_icm_addr;
};

struct mlx5dv_cq {
	void *buf;
	__be32 *dbrec;
	uint32_t cqe_cnt;
	uint32_t cqe_size;	/* bytes */
	void *cq_uar;		/* the page whose MLX5_CQ_DOORBELL arms the queue */
	uint32_t cqn;
	uint64_t comp_mask;
};

enum mlx5dv_srq_comp_mask {
	MLX5DV_SRQ_MASK_SRQN = 1 << 0,
};

struct mlx5dv_srq {
	void *buf;
	__be32 *dbrec;
	uint32_t stride;	/* bytes */
	uint32_t head;		/* of the list of free entries */
	uint32_t tail;
	uint64_t comp_mask;	/* enum mlx5dv_srq_comp_mask */
	uint32_t srqn;
};

struct mlx5dv_rwq {
	void *buf;
	__be32 *dbrec;
	uint32_t wqe_cnt;
	uint32_t stride;	/* bytes */
	uint64_t comp_mask;
};

/* --- other objects ---------------------------------------------------------- */

enum mlx5dv_dm_comp_mask {
	MLX5DV_DM_MASK_REMOTE_VA = 1 << 0,
};

struct mlx5dv_dm {
	void *buf;
	uint64_t length;	/* bytes */
	uint64_t comp_mask;	/* enum mlx5dv_dm_comp_mask */
	uint64_t remote_va;
};

struct mlx5dv_ah {
	struct mlx5_wqe_av *av;
	uint64_t comp_mask;
};

struct mlx5dv_pd {
	uint32_t pdn;
	uint64_t comp_mask;
};

/* --- the call --------------------------------------------------------------- */

enum mlx5dv_obj_type {
	MLX5DV_OBJ_QP = 1 << 0,
	MLX5DV_OBJ_CQ = 1 << 1,
	MLX5DV_OBJ_SRQ = 1 << 2,
	MLX5DV_OBJ_RWQ = 1 << 3,
	MLX5DV_OBJ_DM = 1 << 4,
	MLX5DV_OBJ_AH = 1 << 5,
	MLX5DV_OBJ_PD = 1 << 6,
};

struct mlx5dv_obj {
	struct {
		struct ibv_qp *in;
		struct mlx5dv_qp *out;
	} qp;
	struct {
		struct ibv_cq *in;
		struct mlx5dv_cq *out;
	} cq;
	struct {
		struct ibv_srq *in;
		struct mlx5dv_srq *out;
	} srq;
	struct {
		struct ibv_wq *in;
		struct mlx5dv_rwq *out;
	} rwq;
	struct {
		struct ibv_dm *in;
		struct mlx5dv_dm *out;
	} dm;
	struct {
		struct ibv_ah *in;
		struct mlx5dv_ah *out;
	} ah;
	struct {
		struct ibv_pd *in;
		struct mlx5dv_pd *out;
	} pd;
};

/* Fills the out structures that @obj_type (enum mlx5dv_obj_type) says. */
int mlx5dv_init_obj(struct mlx5dv_obj *obj, uint64_t obj_type);

/* --- device memory ---------------------------------------------------------- */

struct mlx5dv_alloc_dm_attr {
	enum mlx5dv_alloc_dm_type type;
	uint64_t comp_mask;
};

struct ibv_dm *mlx5dv_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *dm_attr,
			       struct mlx5dv_alloc_dm_attr *mlx5_dm_attr);

/* An address where each store does the operation @op to the memory. */
void *mlx5dv_dm_map_op_addr(struct ibv_dm *dm, uint8_t op);

#ifdef __cplusplus
}
#endif
#endif
