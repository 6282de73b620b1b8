/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys that a send queue changes: windows bound and freed, keys invalidated.  All of it is one
 * operation of the device, a UMR, which says what of a key to take from the context that follows.
 *
 * Source: device-abi C.3.10 to C.3.12.
 */
#include "verbs/wqe.h"

#define BIT(name)	(UINT64_C(1) << MLX5_MKEY_BIT_##name)
#define ANY_QPN		0xffffffu
#define WINDOW_BYTES_MAX (UINT64_C(1) << 31)	/* of one piece of translation */
#define KLM_UNITS	(VB_KLM_BYTES / MLX5_UNIT_BYTES)

/* What is common: the key named by @rkey is given the variant of @context and made (un)free. */
static void put_umr(const struct vb_qp *qp, struct wqe *w, uint32_t flags, uint64_t mask,
		    uint32_t klm_units, const struct mlx5_mkey_context *context)
{
	struct mlx5_umr_ctrl umr = { { { 0 } } };

	mlx5_umr_ctrl_set_flags(&umr, MLX5_UMR_INLINE | MLX5_UMR_TRANSLATION_OFFSET | flags);
	mlx5_umr_ctrl_set_klm_octowords(&umr, klm_units);
	mlx5_umr_ctrl_set_mkey_mask(&umr, BIT(FREE) | BIT(MKEY) | mask);
	wqe_put_units(qp, w, &umr, sizeof umr / MLX5_UNIT_BYTES);
	wqe_put_units(qp, w, context, sizeof *context / MLX5_UNIT_BYTES);
	w->fence = MLX5_FENCE_INITIATOR_SMALL;	/* what follows sees the key changed */
}

static uint32_t access_of(unsigned flags)
{
	return (flags & IBV_ACCESS_LOCAL_WRITE ? MLX5_MKEY_LOCAL_WRITE : 0u) |
	       (flags & IBV_ACCESS_REMOTE_WRITE ? MLX5_MKEY_REMOTE_WRITE : 0u) |
	       (flags & IBV_ACCESS_REMOTE_READ ? MLX5_MKEY_REMOTE_READ : 0u) |
	       (flags & IBV_ACCESS_REMOTE_ATOMIC ? MLX5_MKEY_ATOMIC : 0u);
}

static void put_klm(const struct vb_qp *qp, struct wqe *w, const struct ibv_mw_bind_info *info)
{
	struct mlx5_klm klm[KLM_UNITS] = { { { { 0 } } } };

	mlx5_klm_set_byte_count(&klm[0], (uint32_t)info->length);
	mlx5_klm_set_mkey(&klm[0], info->mr->lkey);
	mlx5_klm_set_addr(&klm[0], info->addr);
	wqe_put_units(qp, w, klm, KLM_UNITS);
}

int vb_wqe_bind(struct vb_qp *qp, struct wqe *w, enum ibv_mw_type type, uint32_t old_rkey,
		uint32_t new_rkey, const struct ibv_mw_bind_info *info)
{
	bool is_type_2 = type == IBV_MW_TYPE_2, is_bound = info->length != 0;
	struct mlx5_mkey_context key = { { { 0 } } };

	if (info->length > WINDOW_BYTES_MAX)
		return EOPNOTSUPP;
	if (is_bound && !info->mr)
		return EINVAL;
	w->imm = htobe32(old_rkey);
	w->meaning = IBV_WC_BIND_MW;
	mlx5_mkey_context_set_variant(&key, new_rkey & 0xff);
	mlx5_mkey_context_set_qpn(&key, is_type_2 && is_bound ? qp->ex.qp_base.qp_num : ANY_QPN);
	if (!is_bound) {
		mlx5_mkey_context_set_free(&key, 1);
		put_umr(qp, w, is_type_2 ? MLX5_UMR_CHECK_QPN : 0, is_type_2 ? BIT(QPN) : 0, 0,
			&key);
		return 0;
	}
	mlx5_mkey_context_set_access(&key, access_of(info->mw_access_flags));
	if (!(info->mw_access_flags & IBV_ACCESS_ZERO_BASED))
		mlx5_mkey_context_set_start_addr(&key, info->addr);
	mlx5_mkey_context_set_len(&key, info->length);
	put_umr(qp, w, is_type_2 ? MLX5_UMR_CHECK_FREE : 0,
		BIT(LEN) | BIT(START_ADDR) | BIT(LOCAL_WRITE) | BIT(REMOTE_READ) |
		BIT(REMOTE_WRITE) | BIT(ATOMIC) | (is_type_2 ? BIT(QPN) : 0), KLM_UNITS, &key);
	put_klm(qp, w, info);
	return 0;
}

void vb_wqe_local_inv(struct vb_qp *qp, struct wqe *w, uint32_t rkey)
{
	struct mlx5_mkey_context key = { { { 0 } } };

	w->imm = htobe32(rkey);
	w->meaning = IBV_WC_LOCAL_INV;
	mlx5_mkey_context_set_free(&key, 1);
	mlx5_mkey_context_set_qpn(&key, ANY_QPN);
	put_umr(qp, w, MLX5_UMR_CHECK_QPN, BIT(QPN), 0, &key);
}
