/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5dv: opening a device, what it can do, its clock, and the shares of its bandwidth.
 */
#ifndef INFINIBAND_MLX5DV_DEVICE_H
#define INFINIBAND_MLX5DV_DEVICE_H

#include <infiniband/mlx5dv/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- opening ---------------------------------------------------------------- */

enum mlx5dv_context_attr_flags {
	MLX5DV_CONTEXT_FLAGS_DEVX = 1 << 0,
};

struct mlx5dv_context_attr {
	uint32_t flags;		/* enum mlx5dv_context_attr_flags */
	uint64_t comp_mask;
};

/* Is it a device of this driver? */
bool mlx5dv_is_supported(struct ibv_device *device);

struct ibv_context *mlx5dv_open_device(struct ibv_device *device,
				       struct mlx5dv_context_attr *attr);

enum mlx5dv_vfio_context_attr_flags {
	MLX5DV_VFIO_CTX_FLAGS_INIT_LINK_DOWN = 1 << 0,
};

struct mlx5dv_vfio_context_attr {
	const char *pci_name;	/* "0000:08:00.0" */
	uint32_t flags;		/* enum mlx5dv_vfio_context_attr_flags */
	uint64_t comp_mask;
};

/* Devices driven without the kernel; free the list with ibv_free_device_list(). */
struct ibv_device **mlx5dv_get_vfio_device_list(struct mlx5dv_vfio_context_attr *attr);

/* A descriptor to wait on, and what to call when it is readable. */
int mlx5dv_vfio_get_events_fd(struct ibv_context *ibctx);
int mlx5dv_vfio_process_events(struct ibv_context *context);

enum mlx5dv_set_ctx_attr_type {
	MLX5DV_CTX_ATTR_BUF_ALLOCATORS = 1, /* struct mlx5dv_ctx_allocators */
};

struct mlx5dv_ctx_allocators {
	void *(*alloc)(size_t size, void *priv_data);
	void (*free)(void *ptr, void *priv_data);
	void *data;
};

int mlx5dv_set_context_attr(struct ibv_context *context, enum mlx5dv_set_ctx_attr_type type,
			    void *attr);

/* --- capabilities ----------------------------------------------------------- */

/* In: which members after comp_mask are wanted; out: which were filled. */
enum mlx5dv_context_comp_mask {
	MLX5DV_CONTEXT_MASK_CQE_COMPRESION = 1 << 0,
	MLX5DV_CONTEXT_MASK_SWP = 1 << 1,
	MLX5DV_CONTEXT_MASK_STRIDING_RQ = 1 << 2,
	MLX5DV_CONTEXT_MASK_TUNNEL_OFFLOADS = 1 << 3,
	MLX5DV_CONTEXT_MASK_DYN_BFREGS = 1 << 4,
	MLX5DV_CONTEXT_MASK_CLOCK_INFO_UPDATE = 1 << 5,
	MLX5DV_CONTEXT_MASK_FLOW_ACTION_FLAGS = 1 << 6,
	MLX5DV_CONTEXT_MASK_DC_ODP_CAPS = 1 << 7,
	MLX5DV_CONTEXT_MASK_HCA_CORE_CLOCK = 1 << 8,
	MLX5DV_CONTEXT_MASK_NUM_LAG_PORTS = 1 << 9,
	MLX5DV_CONTEXT_MASK_SIGNATURE_OFFLOAD = 1 << 10,
	MLX5DV_CONTEXT_MASK_DCI_STREAMS = 1 << 11,
	MLX5DV_CONTEXT_MASK_WR_MEMCPY_LENGTH = 1 << 12,
	MLX5DV_CONTEXT_MASK_CRYPTO_OFFLOAD = 1 << 13,
};

enum mlx5dv_context_flags {
	MLX5DV_CONTEXT_FLAGS_CQE_V1 = 1 << 0,
	MLX5DV_CONTEXT_FLAGS_OBSOLETE = 1 << 1,
	MLX5DV_CONTEXT_FLAGS_MPW_ALLOWED = 1 << 2,
	MLX5DV_CONTEXT_FLAGS_ENHANCED_MPW = 1 << 3,
	MLX5DV_CONTEXT_FLAGS_CQE_128B_COMP = 1 << 4,
	MLX5DV_CONTEXT_FLAGS_CQE_128B_PAD = 1 << 5,
	MLX5DV_CONTEXT_FLAGS_PACKET_BASED_CREDIT_MODE = 1 << 6,
	MLX5DV_CONTEXT_FLAGS_REAL_TIME_TS = 1 << 7,
};

enum mlx5dv_cqe_comp_res_format {
	MLX5DV_CQE_RES_FORMAT_HASH = 1 << 0,
	MLX5DV_CQE_RES_FORMAT_CSUM = 1 << 1,
	MLX5DV_CQE_RES_FORMAT_CSUM_STRIDX = 1 << 2,
};

struct mlx5dv_cqe_comp_caps {
	uint32_t max_num;
	uint32_t supported_format; /* enum mlx5dv_cqe_comp_res_format */
};

enum mlx5dv_sw_parsing_offloads {
	MLX5DV_SW_PARSING = 1 << 0,
	MLX5DV_SW_PARSING_CSUM = 1 << 1,
	MLX5DV_SW_PARSING_LSO = 1 << 2,
};

struct mlx5dv_sw_parsing_caps {
	uint32_t sw_parsing_offloads; /* enum mlx5dv_sw_parsing_offloads */
	uint32_t supported_qpts;
};

struct mlx5dv_striding_rq_caps {
	uint32_t min_single_stride_log_num_of_bytes;
	uint32_t max_single_stride_log_num_of_bytes;
	uint32_t min_single_wqe_log_num_of_strides;
	uint32_t max_single_wqe_log_num_of_strides;
	uint32_t supported_qpts;
};

enum mlx5dv_tunnel_offloads {
	MLX5DV_RAW_PACKET_CAP_TUNNELED_OFFLOAD_VXLAN = 1 << 0,
	MLX5DV_RAW_PACKET_CAP_TUNNELED_OFFLOAD_GRE = 1 << 1,
	MLX5DV_RAW_PACKET_CAP_TUNNELED_OFFLOAD_GENEVE = 1 << 2,
	MLX5DV_RAW_PACKET_CAP_TUNNELED_OFFLOAD_CW_MPLS_OVER_GRE = 1 << 3,
	MLX5DV_RAW_PACKET_CAP_TUNNELED_OFFLOAD_CW_MPLS_OVER_UDP = 1 << 4,
};

enum mlx5dv_flow_action_cap_flags {
	MLX5DV_FLOW_ACTION_FLAGS_ESP_AES_GCM = 1 << 0,
	MLX5DV_FLOW_ACTION_FLAGS_ESP_AES_GCM_REQ_METADATA = 1 << 1,
	MLX5DV_FLOW_ACTION_FLAGS_ESP_AES_GCM_SPI_STEERING = 1 << 2,
	MLX5DV_FLOW_ACTION_FLAGS_ESP_AES_GCM_FULL_OFFLOAD = 1 << 3,
	MLX5DV_FLOW_ACTION_FLAGS_ESP_AES_GCM_TX_IV_IS_ESN = 1 << 4,
};

/* Kinds of protection, and the same as sets for mlx5dv_sig_caps. */
enum mlx5dv_sig_type {
	MLX5DV_SIG_TYPE_T10DIF = 0,
	MLX5DV_SIG_TYPE_CRC = 1,
};

enum mlx5dv_sig_prot_caps {
	MLX5DV_SIG_PROT_CAP_T10DIF = 1 << MLX5DV_SIG_TYPE_T10DIF,
	MLX5DV_SIG_PROT_CAP_CRC = 1 << MLX5DV_SIG_TYPE_CRC,
};

enum mlx5dv_sig_t10dif_bg_type {
	MLX5DV_SIG_T10DIF_CRC = 0,
	MLX5DV_SIG_T10DIF_CSUM = 1,
};

enum mlx5dv_sig_t10dif_bg_caps {
	MLX5DV_SIG_T10DIF_BG_CAP_CRC = 1 << MLX5DV_SIG_T10DIF_CRC,
	MLX5DV_SIG_T10DIF_BG_CAP_CSUM = 1 << MLX5DV_SIG_T10DIF_CSUM,
};

enum mlx5dv_sig_crc_type {
	MLX5DV_SIG_CRC_TYPE_CRC32 = 0,
	MLX5DV_SIG_CRC_TYPE_CRC32C = 1,
	MLX5DV_SIG_CRC_TYPE_CRC64_XP10 = 2,
};

enum mlx5dv_sig_crc_type_caps {
	MLX5DV_SIG_CRC_TYPE_CAP_CRC32 = 1 << MLX5DV_SIG_CRC_TYPE_CRC32,
	MLX5DV_SIG_CRC_TYPE_CAP_CRC32C = 1 << MLX5DV_SIG_CRC_TYPE_CRC32C,
	MLX5DV_SIG_CRC_TYPE_CAP_CRC64_XP10 = 1 << MLX5DV_SIG_CRC_TYPE_CRC64_XP10,
};

enum mlx5dv_block_size {
	MLX5DV_BLOCK_SIZE_512 = 0,
	MLX5DV_BLOCK_SIZE_520 = 1,
	MLX5DV_BLOCK_SIZE_4048 = 2,
	MLX5DV_BLOCK_SIZE_4096 = 3,
	MLX5DV_BLOCK_SIZE_4160 = 4,
};

enum mlx5dv_block_size_caps {
	MLX5DV_BLOCK_SIZE_CAP_512 = 1 << MLX5DV_BLOCK_SIZE_512,
	MLX5DV_BLOCK_SIZE_CAP_520 = 1 << MLX5DV_BLOCK_SIZE_520,
	MLX5DV_BLOCK_SIZE_CAP_4048 = 1 << MLX5DV_BLOCK_SIZE_4048,
	MLX5DV_BLOCK_SIZE_CAP_4096 = 1 << MLX5DV_BLOCK_SIZE_4096,
	MLX5DV_BLOCK_SIZE_CAP_4160 = 1 << MLX5DV_BLOCK_SIZE_4160,
};

struct mlx5dv_sig_caps {
	uint64_t block_size; /* enum mlx5dv_block_size_caps */
	uint32_t block_prot; /* enum mlx5dv_sig_prot_caps */
	uint16_t t10dif_bg;  /* enum mlx5dv_sig_t10dif_bg_caps */
	uint16_t crc_type;   /* enum mlx5dv_sig_crc_type_caps */
};

struct mlx5dv_dci_streams_caps {
	uint8_t max_log_num_concurent;
	uint8_t max_log_num_errored;
};

enum mlx5dv_crypto_engines_caps {
	MLX5DV_CRYPTO_ENGINES_CAP_AES_XTS = 1 << 0,
	MLX5DV_CRYPTO_ENGINES_CAP_AES_XTS_SINGLE_BLOCK = 1 << 1,
	MLX5DV_CRYPTO_ENGINES_CAP_AES_XTS_MULTI_BLOCK = 1 << 2,
};

enum mlx5dv_crypto_wrapped_import_method_caps {
	MLX5DV_CRYPTO_WRAPPED_IMPORT_METHOD_CAP_AES_XTS = 1 << 0,
};

enum mlx5dv_crypto_caps_flags {
	MLX5DV_CRYPTO_CAPS_CRYPTO = 1 << 0,
	MLX5DV_CRYPTO_CAPS_WRAPPED_CRYPTO_OPERATIONAL = 1 << 1,
	MLX5DV_CRYPTO_CAPS_WRAPPED_CRYPTO_GOING_TO_COMMISSIONING = 1 << 2,
};

struct mlx5dv_crypto_caps {
	uint16_t failed_selftests;
	uint8_t crypto_engines;	       /* enum mlx5dv_crypto_engines_caps */
	uint8_t wrapped_import_method; /* enum mlx5dv_crypto_wrapped_import_method_caps */
	uint8_t log_max_num_deks;
	uint32_t flags;		       /* enum mlx5dv_crypto_caps_flags */
};

struct mlx5dv_context {
	uint8_t version;
	uint64_t flags;		       /* enum mlx5dv_context_flags */
	uint64_t comp_mask;	       /* enum mlx5dv_context_comp_mask */
	struct mlx5dv_cqe_comp_caps cqe_comp_caps;
	struct mlx5dv_sw_parsing_caps sw_parsing_caps;
	struct mlx5dv_striding_rq_caps striding_rq_caps;
	uint32_t tunnel_offloads_caps; /* enum mlx5dv_tunnel_offloads */
	uint32_t max_dynamic_bfregs;
	uint64_t max_clock_info_update_nsec;
	uint32_t flow_action_flags;    /* enum mlx5dv_flow_action_cap_flags */
	uint32_t dc_odp_caps;	       /* enum ibv_odp_transport_cap_bits */
	void *hca_core_clock;	       /* where the clock can be read; NULL: nowhere */
	uint8_t num_lag_ports;
	struct mlx5dv_sig_caps sig_caps;
	struct mlx5dv_dci_streams_caps dci_streams_caps;
	size_t max_wr_memcpy_length;   /* bytes */
	struct mlx5dv_crypto_caps crypto_caps;
};

/* Fills what @attrs_out->comp_mask asks for and the device knows. */
int mlx5dv_query_device(struct ibv_context *ctx_in, struct mlx5dv_context *attrs_out);

int _mlx5dv_query_port(struct ibv_context *context, uint32_t port_num, struct mlx5dv_port *info,
		       size_t info_len);

static inline int mlx5dv_query_port(struct ibv_context *context, uint32_t port_num,
				    struct mlx5dv_port *info)
{
	return _mlx5dv_query_port(context, port_num, info, sizeof(*info));
}

/* --- the clock -------------------------------------------------------------- */

/* How to turn cycles into ns: valid for max_clock_info_update_nsec. */
struct mlx5dv_clock_info {
	uint64_t nsec;
	uint64_t last_cycles;
	uint64_t frac;
	uint32_t mult;
	uint32_t shift;
	uint64_t mask;
};

int mlx5dv_get_clock_info(struct ibv_context *context, struct mlx5dv_clock_info *clock_info);

/* A timestamp of a completion, before or after the reference, as ns since 1970. */
static inline uint64_t mlx5dv_ts_to_ns(struct mlx5dv_clock_info *clock_info,
				       uint64_t device_timestamp)
{
	const struct mlx5dv_clock_info *c = clock_info;
	uint64_t after = (device_timestamp - c->last_cycles) & c->mask;
	uint64_t before = (c->last_cycles - device_timestamp) & c->mask;

	if (after <= c->mask / 2)
		return c->nsec + ((after * c->mult + c->frac) >> c->shift);
	return c->nsec - ((before * c->mult - c->frac) >> c->shift);
}

/* --- bandwidth -------------------------------------------------------------- */

enum mlx5dv_sched_elem_attr_flags {
	MLX5DV_SCHED_ELEM_ATTR_FLAGS_BW_SHARE = 1 << 0,
	MLX5DV_SCHED_ELEM_ATTR_FLAGS_MAX_AVG_BW = 1 << 1,
};

struct mlx5dv_sched_attr {
	struct mlx5dv_sched_node *parent; /* NULL: this is the root */
	uint32_t flags;			  /* enum mlx5dv_sched_elem_attr_flags */
	uint32_t bw_share;
	uint32_t max_avg_bw;
	uint64_t comp_mask;
};

struct mlx5dv_sched_node *mlx5dv_sched_node_create(struct ibv_context *context,
						   const struct mlx5dv_sched_attr *sched_attr);
struct mlx5dv_sched_leaf *mlx5dv_sched_leaf_create(struct ibv_context *context,
						   const struct mlx5dv_sched_attr *sched_attr);
int mlx5dv_sched_node_modify(struct mlx5dv_sched_node *node,
			     const struct mlx5dv_sched_attr *sched_attr);
int mlx5dv_sched_leaf_modify(struct mlx5dv_sched_leaf *leaf,
			     const struct mlx5dv_sched_attr *sched_attr);
int mlx5dv_sched_node_destroy(struct mlx5dv_sched_node *node);
int mlx5dv_sched_leaf_destroy(struct mlx5dv_sched_leaf *leaf);

/* What the queue pair sends as requester and as responder counts for these leaves. */
int mlx5dv_modify_qp_sched_elem(struct ibv_qp *qp, const struct mlx5dv_sched_leaf *requestor,
				const struct mlx5dv_sched_leaf *responder);

/* A packet pacing entry of the device. */
struct mlx5dv_pp {
	uint16_t index;
};

/* @pp_context is as the PRM has it; @flags: MLX5DV_PP_ALLOC_FLAGS_DEDICATED_INDEX. */
struct mlx5dv_pp *mlx5dv_pp_alloc(struct ibv_context *context, size_t pp_context_sz,
				  const void *pp_context, uint32_t flags);
void mlx5dv_pp_free(struct mlx5dv_pp *pp);

#ifdef __cplusplus
}
#endif
#endif
