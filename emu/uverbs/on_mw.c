/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows.  Binding and invalidating is not done here but by work requests.
 *
 * Source: device-abi B.9.
 */
#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include "emu/uverbs/handlers.h"

/* How many regions a window may join is a hint, and one is all that is ever bound. */
static int driver_check(struct uv_call *call)
{
	const struct mlx5_ib_alloc_mw *ask = uv_in(call, UVERBS_ATTR_UHW_IN);

	if (ask && (ask->comp_mask || ask->reserved1 || ask->reserved2))
		return uv_refuse(call, WHY_CMD_UNSUPPORTED, -EOPNOTSUPP);
	return 0;
}

int on_alloc_mw(struct uv_call *call)
{
	const struct ib_uverbs_alloc_mw *ask = uv_in(call, UVERBS_ATTR_CORE_IN);
	struct ib_uverbs_alloc_mw_resp reply = { 0 };
	struct emu_mw *mw;
	int ret = driver_check(call);

	if (!ret)
		ret = mw_create(call->dev, uv_pd(call, UV_PD), ask->mw_type, &mw);
	if (ret)
		return ret;
	call->created = &mw->obj;
	reply.rkey = mw->key;
	uv_put(call, UVERBS_ATTR_CORE_OUT, &reply, sizeof reply);
	return 0;
}

int on_dealloc_mw(struct uv_call *call)
{
	return mw_destroy(call->dev, uv_mw(call, UVERBS_ATTR_DESTROY_MW_HANDLE));
}

int on_dealloc_mw_legacy(struct uv_call *call)
{
	return mw_destroy(call->dev, uv_mw(call, UV_MW));
}
