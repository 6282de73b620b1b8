/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the driver's own interface tells of a device and a port, its clock, doorbell pages for
 * programs, and who allocates the memory of queues.
 */
#include <errno.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <stdlib.h>
#include <string.h>
#include "hw-models/mlx5_doorbell.h"
#include "verbs/clock.h"
#include "verbs/cmd.h"
#include "verbs/dv.h"

/* --- the device --- */

static uint64_t flags_of(const struct vb_context *c, const struct mlx5_ib_query_device_resp *r)
{
	enum { MPW_ALLOWED = MLX5_IB_ALLOW_MPW, MPW_ENHANCED = MLX5_IB_SUPPORT_EMPW };
	uint64_t flags = c->limits.cqe_version == 1 ? MLX5DV_CONTEXT_FLAGS_CQE_V1 : 0;

	if (r->mlx5_ib_support_multi_pkt_send_wqes & MPW_ALLOWED)
		flags |= MLX5DV_CONTEXT_FLAGS_MPW_ALLOWED;
	if (r->mlx5_ib_support_multi_pkt_send_wqes & MPW_ENHANCED)
		flags |= MLX5DV_CONTEXT_FLAGS_ENHANCED_MPW;
	if (r->flags & MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_COMP)
		flags |= MLX5DV_CONTEXT_FLAGS_CQE_128B_COMP;
	if (r->flags & MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_PAD)
		flags |= MLX5DV_CONTEXT_FLAGS_CQE_128B_PAD;
	if (r->flags & MLX5_IB_QUERY_DEV_RESP_PACKET_BASED_CREDIT_MODE)
		flags |= MLX5DV_CONTEXT_FLAGS_PACKET_BASED_CREDIT_MODE;
	if (c->limits.comp_mask & MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_REAL_TIME_TS)
		flags |= MLX5DV_CONTEXT_FLAGS_REAL_TIME_TS;
	return flags;
}

/* Members that have room for nothing but what the device answered. */
static void answers_take(const struct mlx5_ib_query_device_resp *r, uint64_t wanted,
			 struct mlx5dv_context *out)
{
	if (wanted & MLX5DV_CONTEXT_MASK_CQE_COMPRESION)
		out->cqe_comp_caps = (struct mlx5dv_cqe_comp_caps){
			.max_num = r->cqe_comp_caps.max_num,
			.supported_format = r->cqe_comp_caps.supported_format,
		};
	if (wanted & MLX5DV_CONTEXT_MASK_SWP)
		out->sw_parsing_caps = (struct mlx5dv_sw_parsing_caps){
			.sw_parsing_offloads = r->sw_parsing_caps.sw_parsing_offloads,
			.supported_qpts = r->sw_parsing_caps.supported_qpts,
		};
	if (wanted & MLX5DV_CONTEXT_MASK_STRIDING_RQ)
		out->striding_rq_caps = (struct mlx5dv_striding_rq_caps){
#define TAKE(member) .member = r->striding_rq_caps.member
			TAKE(min_single_stride_log_num_of_bytes),
			TAKE(max_single_stride_log_num_of_bytes),
			TAKE(min_single_wqe_log_num_of_strides),
			TAKE(max_single_wqe_log_num_of_strides),
			TAKE(supported_qpts),
#undef TAKE
		};
	if (wanted & MLX5DV_CONTEXT_MASK_TUNNEL_OFFLOADS)
		out->tunnel_offloads_caps = r->tunnel_offloads_caps;
	if (wanted & MLX5DV_CONTEXT_MASK_DCI_STREAMS)
		out->dci_streams_caps = (struct mlx5dv_dci_streams_caps){
			.max_log_num_concurent = r->dci_streams_caps.max_log_num_concurent,
			.max_log_num_errored = r->dci_streams_caps.max_log_num_errored,
		};
}

/* Those that are known without commands to the hardware are told of, with nothing in them where
 * only such a command could find out. */
static void empty_fill(uint64_t wanted, struct mlx5dv_context *out)
{
	if (wanted & MLX5DV_CONTEXT_MASK_DC_ODP_CAPS)
		out->dc_odp_caps = 0;
	if (wanted & MLX5DV_CONTEXT_MASK_SIGNATURE_OFFLOAD)
		out->sig_caps = (struct mlx5dv_sig_caps){ 0 };
	if (wanted & MLX5DV_CONTEXT_MASK_WR_MEMCPY_LENGTH)
		out->max_wr_memcpy_length = 0;
	if (wanted & MLX5DV_CONTEXT_MASK_CRYPTO_OFFLOAD)
		out->crypto_caps = (struct mlx5dv_crypto_caps){ 0 };
}

/* The clock's members are left out where the device has no such page. */
static uint64_t clock_take(struct vb_context *c, uint64_t wanted, struct mlx5dv_context *out)
{
	struct mlx5_ib_clock_info info;
	uint64_t missing = 0;

	if (wanted & MLX5DV_CONTEXT_MASK_CLOCK_INFO_UPDATE) {
		if (vb_clock_info(c, &info))
			missing |= MLX5DV_CONTEXT_MASK_CLOCK_INFO_UPDATE;
		else
			out->max_clock_info_update_nsec = info.overflow_period;
	}
	if (wanted & MLX5DV_CONTEXT_MASK_HCA_CORE_CLOCK) {
		out->hca_core_clock = vb_core_clock(c);
		if (!out->hca_core_clock)
			missing |= MLX5DV_CONTEXT_MASK_HCA_CORE_CLOCK;
	}
	return missing;
}

VB_EXPORT int vb_dv_query_device(struct ibv_context *context, struct mlx5dv_context *out)
{
	/* Ports of a bond are counted by a command to the hardware, and then only if there is one.
	 */
	const uint64_t known = (MLX5DV_CONTEXT_MASK_CRYPTO_OFFLOAD << 1) - 1 -
			       MLX5DV_CONTEXT_MASK_NUM_LAG_PORTS;
	struct vb_context *c = vb_context_of(context);
	struct mlx5_ib_query_device_resp answer = { 0 };
	uint64_t wanted = out->comp_mask & known;
	int error = vb_driver_attributes(context, &answer);

	if (error)
		return error;
	out->version = 0;
	out->flags = flags_of(c, &answer);
	answers_take(&answer, wanted, out);
	empty_fill(wanted, out);
	if (wanted & MLX5DV_CONTEXT_MASK_DYN_BFREGS)
		out->max_dynamic_bfregs = c->limits.num_dyn_bfregs;
	if (wanted & MLX5DV_CONTEXT_MASK_FLOW_ACTION_FLAGS)
		out->flow_action_flags = c->limits.flow_action_flags;
	out->comp_mask = wanted & ~clock_take(c, wanted, out);
	return 0;
}

VB_EXPORT int vb_dv_query_port(struct ibv_context *context, uint32_t port_num,
			       struct mlx5dv_port *out, size_t bytes)
{
	struct cmd cmd = cmd_new(UVERBS_OBJECT_DEVICE, MLX5_IB_METHOD_QUERY_PORT);

	cmd_in_u32(&cmd, MLX5_IB_ATTR_QUERY_PORT_PORT_NUM, port_num);
	cmd_out(&cmd, MLX5_IB_ATTR_QUERY_PORT, out, bytes);
	return cmd_send(&cmd, context);
}

VB_EXPORT int vb_dv_get_clock_info(struct ibv_context *context, struct mlx5dv_clock_info *out)
{
	struct mlx5_ib_clock_info info;
	int error = vb_clock_info(vb_context_of(context), &info);

	if (error)
		return error;
	*out = (struct mlx5dv_clock_info){
		.nsec = info.nsec, .last_cycles = info.cycles, .frac = info.frac,
		.mult = info.mult, .shift = info.shift, .mask = info.mask,
	};
	return 0;
}

VB_EXPORT bool vb_dv_is_ours(const struct ibv_device *device)
{
	return vb_device_is_ours(device);
}

/* --- doorbell pages --- */

struct dv_uar {
	struct mlx5dv_devx_uar base;
	struct vb_context *context;
	struct vb_uar uar;
};

/* Who asks for one rings at it without this library. */
VB_EXPORT struct mlx5dv_devx_uar *vb_dv_alloc_uar(struct ibv_context *context, uint32_t flags)
{
	struct vb_context *c = vb_context_of(context);
	struct dv_uar *own = calloc(1, sizeof *own);
	int error = !own ? ENOMEM : flags & ~(uint32_t)MLX5DV_UAR_ALLOC_TYPE_NC ? EOPNOTSUPP :
		    vb_uar_alloc(c, &own->uar, flags & MLX5DV_UAR_ALLOC_TYPE_NC);

	if (error) {
		free(own);
		errno = error;
		return NULL;
	}
	own->context = c;
	own->base = (struct mlx5dv_devx_uar){
		.reg_addr = own->uar.page + MLX5_UAR_SEND_FIRST, .base_addr = own->uar.page,
		.page_id = own->uar.page_id, .mmap_off = (off_t)own->uar.mmap_offset,
	};
	if (c->channel.ops->rings_itself)
		c->channel.ops->rings_itself(&c->channel);
	return &own->base;
}

VB_EXPORT void vb_dv_free_uar(struct mlx5dv_devx_uar *uar)
{
	struct dv_uar *own = (struct dv_uar *)uar;

	vb_uar_free(own->context, &own->uar);
	free(own);
}

/* --- memory --- */

VB_EXPORT int vb_dv_set_context_attr(struct ibv_context *context,
				     enum mlx5dv_set_ctx_attr_type type, void *attr)
{
	const struct mlx5dv_ctx_allocators *given = attr;

	if (type != MLX5DV_CTX_ATTR_BUF_ALLOCATORS)
		return ENOTSUP;
	vb_context_of(context)->allocators = (struct vb_allocators){
		.alloc = given->alloc, .free = given->free, .data = given->data,
	};
	return 0;
}
