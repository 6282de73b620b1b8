/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5dv: queues with what only this driver has, DC among it, and their extended requests.
 */
#ifndef INFINIBAND_MLX5DV_QUEUES_H
#define INFINIBAND_MLX5DV_QUEUES_H

#include <infiniband/mlx5dv/base.h>
#include <infiniband/mlx5dv/mkey.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- completion queues ------------------------------------------------------ */

enum mlx5dv_cq_init_attr_mask {
	MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE = 1 << 0,
	MLX5DV_CQ_INIT_ATTR_MASK_FLAGS = 1 << 1,
	MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE = 1 << 2,
};

enum mlx5dv_cq_init_attr_flags {
	MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD = 1 << 0,
	MLX5DV_CQ_INIT_ATTR_FLAGS_RESERVED = 1 << 1,
};

struct mlx5dv_cq_init_attr {
	uint64_t comp_mask;	     /* enum mlx5dv_cq_init_attr_mask */
	uint8_t cqe_comp_res_format; /* enum mlx5dv_cqe_comp_res_format */
	uint32_t flags;		     /* enum mlx5dv_cq_init_attr_flags */
	uint16_t cqe_size;	     /* bytes: 64 or 128 */
};

struct ibv_cq_ex *mlx5dv_create_cq(struct ibv_context *context,
				   struct ibv_cq_init_attr_ex *cq_attr,
				   struct mlx5dv_cq_init_attr *mlx5_cq_attr);

/* --- receive work queues ---------------------------------------------------- */

enum mlx5dv_wq_init_attr_mask {
	MLX5DV_WQ_INIT_ATTR_MASK_STRIDING_RQ = 1 << 0,
};

/* A receive is cut into strides, and a packet begins with one: within the limits that
 * mlx5dv_query_device() tells. */
struct mlx5dv_striding_rq_init_attr {
	uint32_t single_stride_log_num_of_bytes;
	uint32_t single_wqe_log_num_of_strides;
	uint8_t two_byte_shift_en;
};

struct mlx5dv_wq_init_attr {
	uint64_t comp_mask;	/* enum mlx5dv_wq_init_attr_mask */
	struct mlx5dv_striding_rq_init_attr striding_rq_attrs;
};

struct ibv_wq *mlx5dv_create_wq(struct ibv_context *context,
				struct ibv_wq_init_attr *wq_init_attr,
				struct mlx5dv_wq_init_attr *mlx5_wq_attr);

/* --- queue pairs ------------------------------------------------------------ */

enum mlx5dv_qp_init_attr_mask {
	MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS = 1 << 0,
	MLX5DV_QP_INIT_ATTR_MASK_DC = 1 << 1,
	MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS = 1 << 2,
	MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS = 1 << 3,
};

enum mlx5dv_qp_create_flags {
	MLX5DV_QP_CREATE_TUNNEL_OFFLOADS = 1 << 0,
	MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC = 1 << 1,
	MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_MC = 1 << 2,
	MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE = 1 << 3,
	MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE = 1 << 4,
	MLX5DV_QP_CREATE_PACKET_BASED_CREDIT_MODE = 1 << 5,
	MLX5DV_QP_CREATE_SIG_PIPELINING = 1 << 6,
};

enum mlx5dv_dc_type {
	MLX5DV_DCTYPE_DCT = 1,	/* target: receives */
	MLX5DV_DCTYPE_DCI = 2,	/* initiator: sends, to another target each time if it likes */
};

struct mlx5dv_dci_streams {
	uint8_t log_num_concurent;
	uint8_t log_num_errored;
};

struct mlx5dv_dc_init_attr {
	enum mlx5dv_dc_type dc_type;
	union {
		uint64_t dct_access_key;
		struct mlx5dv_dci_streams dci_streams;
	};
};

/* Which of the mlx5dv_wr_*() calls will be used. */
enum mlx5dv_qp_create_send_ops_flags {
	MLX5DV_QP_EX_WITH_MR_INTERLEAVED = 1 << 0,
	MLX5DV_QP_EX_WITH_MR_LIST = 1 << 1,
	MLX5DV_QP_EX_WITH_MKEY_CONFIGURE = 1 << 2,
	MLX5DV_QP_EX_WITH_RAW_WQE = 1 << 3,
	MLX5DV_QP_EX_WITH_MEMCPY = 1 << 4,
};

struct mlx5dv_qp_init_attr {
	uint64_t comp_mask;	 /* enum mlx5dv_qp_init_attr_mask */
	uint32_t create_flags;	 /* enum mlx5dv_qp_create_flags */
	struct mlx5dv_dc_init_attr dc_init_attr;
	uint64_t send_ops_flags; /* enum mlx5dv_qp_create_send_ops_flags */
};

struct ibv_qp *mlx5dv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *qp_attr,
				struct mlx5dv_qp_init_attr *mlx5_qp_attr);

/* What the completions of these requests say. */
enum mlx5dv_wc_opcode {
	MLX5DV_WC_UMR = IBV_WC_DRIVER1,
	MLX5DV_WC_RAW_WQE = IBV_WC_DRIVER2,
	MLX5DV_WC_MEMCPY = IBV_WC_DRIVER3,
};

/* Makes the requests that have @wr_id and are not yet done do nothing.  How many, or -errno. */
int mlx5dv_qp_cancel_posted_send_wrs(struct mlx5dv_qp_ex *mqp, uint64_t wr_id);

/* Binds a UD address to the queue pair that it leads to, before one is overtaken by the other. */
int mlx5dv_map_ah_to_qp(struct ibv_ah *ah, uint32_t qp_num);

/* Which port of a bond the queue pair shall use, and which it uses now. */
int mlx5dv_query_qp_lag_port(struct ibv_qp *qp, uint8_t *port_num, uint8_t *active_port_num);
int mlx5dv_modify_qp_lag_port(struct ibv_qp *qp, uint8_t port_num);

/* The source port of its RoCE v2 packets. */
int mlx5dv_modify_qp_udp_sport(struct ibv_qp *qp, uint16_t udp_sport);

/* Lets a stream of a DCI go on after an error. */
int mlx5dv_dci_stream_id_reset(struct ibv_qp *qp, uint16_t stream_id);

/* A queue pair number without a queue pair. */
int mlx5dv_reserved_qpn_alloc(struct ibv_context *ctx, uint32_t *qpn);
int mlx5dv_reserved_qpn_dealloc(struct ibv_context *ctx, uint32_t qpn);

/* --- extended requests: between ibv_wr_start() and ibv_wr_complete() ---------- */

struct mlx5dv_qp_ex {
	uint64_t comp_mask;

	void (*wr_set_dc_addr)(struct mlx5dv_qp_ex *mqp, struct ibv_ah *ah, uint32_t remote_dctn,
			       uint64_t remote_dc_key);
	void (*wr_mr_interleaved)(struct mlx5dv_qp_ex *mqp, struct mlx5dv_mkey *mkey,
				  uint32_t access_flags, uint32_t repeat_count,
				  uint16_t num_interleaved, struct mlx5dv_mr_interleaved *data);
	void (*wr_mr_list)(struct mlx5dv_qp_ex *mqp, struct mlx5dv_mkey *mkey,
			   uint32_t access_flags, uint16_t num_sges, struct ibv_sge *sge);
	void (*wr_mkey_configure)(struct mlx5dv_qp_ex *mqp, struct mlx5dv_mkey *mkey,
				  uint8_t num_setters, struct mlx5dv_mkey_conf_attr *attr);
	void (*wr_set_mkey_access_flags)(struct mlx5dv_qp_ex *mqp, uint32_t access_flags);
	void (*wr_set_mkey_layout_list)(struct mlx5dv_qp_ex *mqp, uint16_t num_sges,
					const struct ibv_sge *sge);
	void (*wr_set_mkey_layout_interleaved)(struct mlx5dv_qp_ex *mqp, uint32_t repeat_count,
					       uint16_t num_interleaved,
					       const struct mlx5dv_mr_interleaved *data);
	void (*wr_set_mkey_sig_block)(struct mlx5dv_qp_ex *mqp,
				      const struct mlx5dv_sig_block_attr *attr);
	void (*wr_raw_wqe)(struct mlx5dv_qp_ex *mqp, const void *wqe);
	void (*wr_set_dc_addr_stream)(struct mlx5dv_qp_ex *mqp, struct ibv_ah *ah,
				      uint32_t remote_dctn, uint64_t remote_dc_key,
				      uint16_t stream_id);
	void (*wr_memcpy)(struct mlx5dv_qp_ex *mqp, uint32_t dest_lkey, uint64_t dest_addr,
			  uint32_t src_lkey, uint64_t src_addr, size_t length);
	void (*wr_set_mkey_crypto)(struct mlx5dv_qp_ex *mqp,
				   const struct mlx5dv_crypto_attr *attr);
};

/* The same queue pair. */
struct mlx5dv_qp_ex *mlx5dv_qp_ex_from_ibv_qp_ex(struct ibv_qp_ex *qp);

/* Where the request before it goes, from a DCI. */
static inline void mlx5dv_wr_set_dc_addr(struct mlx5dv_qp_ex *mqp, struct ibv_ah *ah,
					 uint32_t remote_dctn, uint64_t remote_dc_key)
{
	mqp->wr_set_dc_addr(mqp, ah, remote_dctn, remote_dc_key);
}

static inline void mlx5dv_wr_set_dc_addr_stream(struct mlx5dv_qp_ex *mqp, struct ibv_ah *ah,
						uint32_t remote_dctn, uint64_t remote_dc_key,
						uint16_t stream_id)
{
	mqp->wr_set_dc_addr_stream(mqp, ah, remote_dctn, remote_dc_key, stream_id);
}

/* @mkey becomes @repeat_count rounds over @data. */
static inline void mlx5dv_wr_mr_interleaved(struct mlx5dv_qp_ex *mqp, struct mlx5dv_mkey *mkey,
					    uint32_t access_flags, uint32_t repeat_count,
					    uint16_t num_interleaved,
					    struct mlx5dv_mr_interleaved *data)
{
	mqp->wr_mr_interleaved(mqp, mkey, access_flags, repeat_count, num_interleaved, data);
}

/* @mkey becomes the pieces of @sge, one after another. */
static inline void mlx5dv_wr_mr_list(struct mlx5dv_qp_ex *mqp, struct mlx5dv_mkey *mkey,
				     uint32_t access_flags, uint16_t num_sges, struct ibv_sge *sge)
{
	mqp->wr_mr_list(mqp, mkey, access_flags, num_sges, sge);
}

/* @num_setters of the calls below follow it. */
static inline void mlx5dv_wr_mkey_configure(struct mlx5dv_qp_ex *mqp, struct mlx5dv_mkey *mkey,
					    uint8_t num_setters,
					    struct mlx5dv_mkey_conf_attr *attr)
{
	mqp->wr_mkey_configure(mqp, mkey, num_setters, attr);
}

static inline void mlx5dv_wr_set_mkey_access_flags(struct mlx5dv_qp_ex *mqp,
						   uint32_t access_flags)
{
	mqp->wr_set_mkey_access_flags(mqp, access_flags);
}

static inline void mlx5dv_wr_set_mkey_layout_list(struct mlx5dv_qp_ex *mqp, uint16_t num_sges,
						  const struct ibv_sge *sge)
{
	mqp->wr_set_mkey_layout_list(mqp, num_sges, sge);
}

static inline void
mlx5dv_wr_set_mkey_layout_interleaved(struct mlx5dv_qp_ex *mqp, uint32_t repeat_count,
				      uint16_t num_interleaved,
				      const struct mlx5dv_mr_interleaved *data)
{
	mqp->wr_set_mkey_layout_interleaved(mqp, repeat_count, num_interleaved, data);
}

static inline void mlx5dv_wr_set_mkey_sig_block(struct mlx5dv_qp_ex *mqp,
						const struct mlx5dv_sig_block_attr *attr)
{
	mqp->wr_set_mkey_sig_block(mqp, attr);
}

static inline void mlx5dv_wr_set_mkey_crypto(struct mlx5dv_qp_ex *mqp,
					     const struct mlx5dv_crypto_attr *attr)
{
	mqp->wr_set_mkey_crypto(mqp, attr);
}

/* The device copies @length bytes of local memory. */
static inline void mlx5dv_wr_memcpy(struct mlx5dv_qp_ex *mqp, uint32_t dest_lkey,
				    uint64_t dest_addr, uint32_t src_lkey, uint64_t src_addr,
				    size_t length)
{
	mqp->wr_memcpy(mqp, dest_lkey, dest_addr, src_lkey, src_addr, length);
}

/* A queue entry that the program made itself. */
static inline void mlx5dv_wr_raw_wqe(struct mlx5dv_qp_ex *mqp, const void *wqe)
{
	mqp->wr_raw_wqe(mqp, wqe);
}

#ifdef __cplusplus
}
#endif
#endif
