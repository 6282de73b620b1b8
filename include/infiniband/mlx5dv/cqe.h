/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5dv: completions as they lie in memory, and arming a completion queue.
 */
#ifndef INFINIBAND_MLX5DV_CQE_H
#define INFINIBAND_MLX5DV_CQE_H

#include <infiniband/mlx5dv/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- entries ---------------------------------------------------------------- */

/* The upper 4 bits of op_own; the lowest is the owner. */
enum {
	MLX5_CQE_OWNER_MASK = 1,
	MLX5_CQE_REQ = 0,
	MLX5_CQE_RESP_WR_IMM = 1,
	MLX5_CQE_RESP_SEND = 2,
	MLX5_CQE_RESP_SEND_IMM = 3,
	MLX5_CQE_RESP_SEND_INV = 4,
	MLX5_CQE_RESIZE_CQ = 5,
	MLX5_CQE_NO_PACKET = 6,
	MLX5_CQE_SIG_ERR = 12,
	MLX5_CQE_REQ_ERR = 13,
	MLX5_CQE_RESP_ERR = 14,
	MLX5_CQE_INVALID = 15,
};

/* In op_own: so many bytes of data are in the entry itself. */
enum {
	MLX5_INLINE_SCATTER_32 = 0x4,
	MLX5_INLINE_SCATTER_64 = 0x8,
};

/* In mlx5_cqe64.hds_ip_ext: which checksums are right. */
enum {
	MLX5_CQE_L2_OK = 1 << 0,
	MLX5_CQE_L3_OK = 1 << 1,
	MLX5_CQE_L4_OK = 1 << 2,
};

/* In mlx5_cqe64.l4_hdr_type_etc */
enum {
	MLX5_CQE_L3_HDR_TYPE_NONE = 0,
	MLX5_CQE_L3_HDR_TYPE_IPV6 = 1,
	MLX5_CQE_L3_HDR_TYPE_IPV4 = 2,
};

/* mlx5_tm_cqe.success */
__extension__ enum {
	MLX5_TMC_SUCCESS = 0x80000000U,
};

struct mlx5_tm_cqe {
	__be32 success;
	__be16 hw_phase_cnt;
	uint8_t rsvd0[12];
};

struct mlx5_cqe64 {
	union {
		__extension__ struct {
			uint8_t rsvd0[2];
			__be16 wqe_id;
			uint8_t rsvd4[13];
			uint8_t ml_path;
			uint8_t rsvd20[4];
			__be16 slid;
			__be32 flags_rqpn;
			uint8_t hds_ip_ext;
			uint8_t l4_hdr_type_etc;
			__be16 vlan_info;
		};
		struct mlx5_tm_cqe tm_cqe;
		struct ibv_tmh tmh;
	};
	__be32 srqn_uidx;
	__be32 imm_inval_pkey;
	uint8_t app;
	uint8_t app_op;
	__be16 app_info;
	__be32 byte_cnt;
	__be64 timestamp;
	__be32 sop_drop_qpn;	/* opcode of the request, and the queue pair */
	__be16 wqe_counter;
	uint8_t signature;
	uint8_t op_own;
};

static MLX5DV_ALWAYS_INLINE uint8_t mlx5dv_get_cqe_owner(struct mlx5_cqe64 *cqe)
{
	return cqe->op_own & MLX5_CQE_OWNER_MASK;
}

static MLX5DV_ALWAYS_INLINE void mlx5dv_set_cqe_owner(struct mlx5_cqe64 *cqe, uint8_t val)
{
	cqe->op_own = (uint8_t)((cqe->op_own & ~MLX5_CQE_OWNER_MASK) |
				(val & MLX5_CQE_OWNER_MASK));
}

/* Solicited? */
static MLX5DV_ALWAYS_INLINE uint8_t mlx5dv_get_cqe_se(struct mlx5_cqe64 *cqe)
{
	return cqe->op_own >> 1 & 1;
}

/* 0: plain; 1, 2: data inside; 3: compressed. */
static MLX5DV_ALWAYS_INLINE uint8_t mlx5dv_get_cqe_format(struct mlx5_cqe64 *cqe)
{
	return cqe->op_own >> 2 & 3;
}

static MLX5DV_ALWAYS_INLINE uint8_t mlx5dv_get_cqe_opcode(struct mlx5_cqe64 *cqe)
{
	return cqe->op_own >> 4;
}

/* --- errors ----------------------------------------------------------------- */

/* mlx5_err_cqe.syndrome */
enum {
	MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR = 0x01,
	MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR = 0x02,
	MLX5_CQE_SYNDROME_LOCAL_PROT_ERR = 0x04,
	MLX5_CQE_SYNDROME_WR_FLUSH_ERR = 0x05,
	MLX5_CQE_SYNDROME_MW_BIND_ERR = 0x06,
	MLX5_CQE_SYNDROME_BAD_RESP_ERR = 0x10,
	MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR = 0x11,
	MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR = 0x12,
	MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR = 0x13,
	MLX5_CQE_SYNDROME_REMOTE_OP_ERR = 0x14,
	MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR = 0x15,
	MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR = 0x16,
	MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR = 0x22,
};

/* mlx5_err_cqe.vendor_err_synd */
enum {
	MLX5_CQE_VENDOR_SYNDROME_ODP_PFAULT = 0x93,
};

struct mlx5_err_cqe {
	uint8_t rsvd0[32];
	uint32_t srqn;
	uint8_t rsvd1[18];
	uint8_t vendor_err_synd;
	uint8_t syndrome;
	uint32_t s_wqe_opcode_qpn;
	uint16_t wqe_counter;
	uint8_t signature;
	uint8_t op_own;
};

/* --- arming ----------------------------------------------------------------- */

/* Where in the page of doorbell registers. */
enum {
	MLX5_CQ_DOORBELL = 0x20,
};

enum {
	MLX5_CQ_DB_REQ_NOT = 0,		  /* for the next completion */
	MLX5_CQ_DB_REQ_NOT_SOL = 1 << 24, /* for the next that is solicited */
};

#ifdef __cplusplus
}
#endif
#endif
