/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address handles.  On InfiniBand libmlx5 makes its own without asking.
 *
 * Source: device-abi B.9.
 */
#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <string.h>
#include "emu/obj/ah.h"
#include "emu/uverbs/handlers.h"

#define REPLY_BYTES (offsetof(struct mlx5_ib_create_ah_resp, dmac) + ETH_ALEN)

static struct qp_path path_read(const struct ib_uverbs_ah_attr *from)
{
	struct qp_path path = {
		.flow_label = from->grh.flow_label, .dlid = from->dlid,
		.sgid_index = from->grh.sgid_index, .hop_limit = from->grh.hop_limit,
		.traffic_class = from->grh.traffic_class, .sl = from->sl,
		.src_path_bits = from->src_path_bits, .static_rate = from->static_rate,
		.is_global = from->is_global, .port = from->port_num,
	};

	memcpy(path.dgid, from->grh.dgid, sizeof path.dgid);
	return path;
}

/* The MAC is the point of asking: without room for it there is no handle. */
int on_create_ah(struct uv_call *call)
{
	const struct ib_uverbs_create_ah *ask = uv_in(call, UVERBS_ATTR_CORE_IN);
	struct mlx5_ib_create_ah_resp mlx5_reply = { .response_length = REPLY_BYTES };
	struct ib_uverbs_create_ah_resp reply = { 0 };
	struct qp_path path = path_read(&ask->attr);
	bool is_roce = call->dev->profile->link == HW_LINK_ETHERNET;
	struct emu_ah *ah;
	int ret;

	if (is_roce && uv_room(call, UVERBS_ATTR_UHW_OUT) < REPLY_BYTES)
		return uv_refuse(call, WHY_CMD_ATTRIBUTES, -EINVAL);
	ret = ah_create(call->dev, uv_pd(call, UV_PD), &path, &ah);
	if (ret)
		return ret;
	call->created = &ah->obj;
	uv_put(call, UVERBS_ATTR_CORE_OUT, &reply, sizeof reply);
	memcpy(mlx5_reply.dmac, ah->dmac, sizeof mlx5_reply.dmac);
	if (is_roce)
		uv_put(call, UVERBS_ATTR_UHW_OUT, &mlx5_reply, REPLY_BYTES);
	return 0;
}

int on_destroy_ah(struct uv_call *call)
{
	return ah_destroy((struct emu_ah *)uv_obj(call, UVERBS_ATTR_DESTROY_AH_HANDLE));
}

int on_destroy_ah_legacy(struct uv_call *call)
{
	return ah_destroy((struct emu_ah *)uv_obj(call, UV_AH));
}
