/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a completion to the 64 bytes that say it, and the syndromes of failed ones.
 *
 * Used by whoever owns a completion queue.  It writes into the caller's memory only;
 * the order in which an application sees the bytes is the caller's business.
 *
 * Source: device-abi C.6 and C.10.
 */
#include <string.h>
#include "hw-models/hw.h"
#include "hw-models/mlx5_cqe.h"

const struct hw_syndrome hw_syndromes[HW_STATUS_COUNT] = {
#define SYNDROME(status, syndrome_, vendor_err_) \
	[HW_##status] = { .syndrome = (syndrome_), .vendor_err = (vendor_err_), .name = #status },
#include "hw-models/mlx5_syndromes.def"
#undef SYNDROME
};

static void error_write(struct mlx5_cqe_error *out, const struct hw_cqe *cqe, unsigned owner)
{
	mlx5_cqe_error_set_user_index(out, cqe->user_index);
	mlx5_cqe_error_set_vendor_err(out, cqe->vendor_err);
	mlx5_cqe_error_set_syndrome(out, cqe->syndrome);
	mlx5_cqe_error_set_wqe_opcode(out, cqe->wqe_opcode);
	mlx5_cqe_error_set_qpn(out, cqe->qpn);
	mlx5_cqe_error_set_wqe_counter(out, cqe->wqe_counter);
	mlx5_cqe_error_set_kind(out, cqe->kind);
	mlx5_cqe_error_set_solicited(out, 1);
	mlx5_cqe_error_set_owner(out, owner);
}

/* An immediate passes through in wire order; an rkey has to become big-endian. */
static void imm_write(struct mlx5_cqe *out, const struct hw_cqe *cqe)
{
	if (cqe->kind == HW_CQE_RECV_INV)
		mlx5_cqe_set_imm(out, cqe->imm);
	else
		out->dw[9].raw = cqe->imm;
}

static void header_write(struct mlx5_cqe *out, const struct hw_cqe *cqe)
{
	mlx5_cqe_set_wqe_id(out, cqe->wqe_id);
	mlx5_cqe_set_rx_hash(out, cqe->rx_hash);
	mlx5_cqe_set_rx_hash_type(out, cqe->rx_hash_type);
	mlx5_cqe_set_path_bits(out, cqe->path_bits);
	mlx5_cqe_set_slid(out, cqe->slid);
	mlx5_cqe_set_grh(out, cqe->grh);
	mlx5_cqe_set_sl_l3(out, cqe->sl | cqe->l3);	/* a port has one of them */
	mlx5_cqe_set_src_qpn(out, cqe->src_qpn);
	mlx5_cqe_set_checks_ok(out, cqe->checks_ok);
	mlx5_cqe_set_l4_type(out, cqe->l4_type);
	mlx5_cqe_set_l3_type(out, cqe->l3_type);
	mlx5_cqe_set_has_vlan(out, cqe->has_vlan);
	mlx5_cqe_set_vlan(out, cqe->vlan);
}

/* The first half says how the packet came, or is the message. */
static void front_write(struct mlx5_cqe *out, const struct hw_cqe *cqe)
{
	if (cqe->format != MLX5_CQE_DATA_32) {
		if (cqe->has_origin)
			header_write(out, cqe);
		return;
	}
	assert(cqe->bytes <= MLX5_CQE_INLINE_BYTES);
	memcpy(out, cqe->inline_bytes, cqe->bytes);
}

static void success_write(struct mlx5_cqe *out, const struct hw_cqe *cqe, unsigned owner)
{
	front_write(out, cqe);
	mlx5_cqe_set_user_index(out, cqe->user_index);
	imm_write(out, cqe);
	mlx5_cqe_set_byte_count(out, cqe->bytes);
	mlx5_cqe_set_timestamp(out, cqe->timestamp);
	if (cqe->kind == HW_CQE_REQ)
		mlx5_cqe_set_wqe_opcode(out, cqe->wqe_opcode);
	mlx5_cqe_set_qpn(out, cqe->is_frame ? cqe->flow_tag : cqe->qpn);
	mlx5_cqe_set_wqe_counter(out, cqe->wqe_counter);
	mlx5_cqe_set_kind(out, cqe->kind);
	mlx5_cqe_set_format(out, cqe->format);
	mlx5_cqe_set_solicited(out, cqe->is_solicited);
	mlx5_cqe_set_owner(out, owner);
}

void mlx5_cqe_write(uint8_t out[64], const struct hw_cqe *cqe, unsigned owner)
{
	memset(out, 0, MLX5_CQE_BYTES);
	if (cqe->kind == HW_CQE_REQ_ERR || cqe->kind == HW_CQE_RECV_ERR)
		error_write((void *)out, cqe, owner);
	else
		success_write((void *)out, cqe, owner);
}
