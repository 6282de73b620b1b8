/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QPs of type RAW_PACKET that have no queues but spread frames over receive work queues.
 *
 * Source: device-abi H.3; which errno of several comes first is as the mlx5 driver has it.
 */
#include <errno.h>
#include <string.h>
#include "emu/uverbs/handlers.h"
#include "emu/uverbs/on_rss.h"

#define FIELDS_IPV4	(MLX5_RX_HASH_SRC_IPV4 | MLX5_RX_HASH_DST_IPV4)
#define FIELDS_IPV6	(MLX5_RX_HASH_SRC_IPV6 | MLX5_RX_HASH_DST_IPV6)
#define FIELDS_TCP	(MLX5_RX_HASH_SRC_PORT_TCP | MLX5_RX_HASH_DST_PORT_TCP)
#define FIELDS_UDP	(MLX5_RX_HASH_SRC_PORT_UDP | MLX5_RX_HASH_DST_PORT_UDP)
/* No profile looks into IPsec. */
#define FIELDS_KNOWN	(FIELDS_IPV4 | FIELDS_IPV6 | FIELDS_TCP | FIELDS_UDP | MLX5_RX_HASH_INNER)

#define FLAGS_KNOWN	(MLX5_QP_FLAG_TUNNEL_OFFLOADS | MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_UC | \
			 MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_MC)

/* What this device does at all. */
static int kind_check(struct uv_call *call, const struct mlx5_ib_create_qp_rss *ask)
{
	if (ask->comp_mask || ask->flags & ~FLAGS_KNOWN ||
	    ask->rx_hash_function != MLX5_RX_HASH_FUNC_TOEPLITZ ||
	    ask->rx_hash_fields_mask & ~(uint64_t)FIELDS_KNOWN)
		return uv_refuse(call, WHY_CMD_UNSUPPORTED, -EOPNOTSUPP);
	if (ask->rx_hash_fields_mask & MLX5_RX_HASH_INNER &&
	    !(ask->flags & MLX5_QP_FLAG_TUNNEL_OFFLOADS))
		return uv_refuse(call, WHY_CMD_UNSUPPORTED, -EOPNOTSUPP);
	return 0;
}

/* A frame has one sort of addresses and one of ports; without fields all go to one queue. */
static bool fields_fit(uint64_t fields, const struct emu_rwq_table *table)
{
	if (!(fields & ~(uint64_t)MLX5_RX_HASH_INNER))
		return table->count == 1;
	return !(fields & FIELDS_IPV4 && fields & FIELDS_IPV6) &&
	       !(fields & FIELDS_TCP && fields & FIELDS_UDP);
}

static int values_check(struct uv_call *call, const struct mlx5_ib_create_qp_rss *ask,
			const struct emu_rwq_table *table)
{
	if (ask->rx_key_len != RSS_KEY_BYTES || !fields_fit(ask->rx_hash_fields_mask, table))
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	return 0;
}

/* It has no queues, so nothing that belongs to them may be given. */
static int parts_check(struct uv_call *call, const struct qp_init *init, uint64_t flags)
{
	if (!init->pd || init->send_cq || init->recv_cq || init->srq || flags ||
	    init->max_send_wr || init->max_recv_wr || init->max_recv_sge)
		return uv_refuse(call, WHY_CMD_ATTRIBUTES, -EINVAL);
	return 0;
}

int rss_create(struct uv_call *call, const struct qp_init *init, uint64_t flags,
	       struct emu_rwq_table *table, struct emu_qp **out)
{
	const struct mlx5_ib_create_qp_rss *ask = uv_in(call, UVERBS_ATTR_UHW_IN);
	struct mlx5_ib_create_qp_resp reply = { 0 };
	struct rss hash;
	int ret = parts_check(call, init, flags);

	if (!ret && uv_room(call, UVERBS_ATTR_UHW_IN) <
			    offsetof(struct mlx5_ib_create_qp_rss, flags))
		ret = uv_refuse(call, WHY_CMD_ATTRIBUTES, -EINVAL);
	if (!ret)
		ret = kind_check(call, ask);
	if (!ret)
		ret = values_check(call, ask, table);
	if (ret)
		return ret;
	hash.fields = (uint32_t)ask->rx_hash_fields_mask & ~(uint32_t)MLX5_RX_HASH_INNER;
	hash.is_inner = ask->rx_hash_fields_mask & MLX5_RX_HASH_INNER;
	memcpy(hash.key, ask->rx_hash_key, sizeof hash.key);
	ret = rss_qp_create(call->dev, init->pd, table, &hash, out);
	if (ret)
		return ret;
	call->created = &(*out)->obj;
	uv_put(call, UVERBS_ATTR_UHW_OUT, &reply, sizeof reply);
	return 0;
}
