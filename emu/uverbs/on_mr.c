/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection domains and memory regions.  Source: device-abi B.9.
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include "emu/uverbs/file.h"
#include "emu/uverbs/handlers.h"
#include "emu/uverbs/shared.h"

int on_alloc_pd(struct uv_call *call)
{
	struct ib_uverbs_alloc_pd_resp reply = { 0 };
	struct mlx5_ib_alloc_pd_resp mlx5_reply;
	struct emu_pd *pd;
	int ret = pd_create(call->dev, &pd);

	if (ret)
		return ret;
	call->created = &pd->obj;
	mlx5_reply.pdn = pd->pdn;
	uv_put(call, UVERBS_ATTR_CORE_OUT, &reply, sizeof reply);
	uv_put(call, UVERBS_ATTR_UHW_OUT, &mlx5_reply, sizeof mlx5_reply);
	return 0;
}

int on_dealloc_pd(struct uv_call *call)
{
	return shared_release(call, uv_obj(call, UVERBS_ATTR_DESTROY_PD_HANDLE));
}

int on_dealloc_pd_legacy(struct uv_call *call)
{
	return shared_release(call, uv_obj(call, UV_PD));
}

int on_query_pd(struct uv_call *call)
{
	struct emu_pd *pd = uv_pd(call, MLX5_IB_ATTR_QUERY_PD_HANDLE);

	uv_put_number(call, MLX5_IB_ATTR_QUERY_PD_RESP_PDN, uint32_t, pd->pdn);
	return 0;
}

int on_reg_mr(struct uv_call *call)
{
	const struct ib_uverbs_reg_mr *ask = uv_in(call, UVERBS_ATTR_CORE_IN);
	struct ib_uverbs_reg_mr_resp reply = { 0 };
	struct emu_mr *mr;
	int ret = mr_create(call->dev, uv_pd(call, UV_PD), ask->start, ask->length, ask->hca_va,
			    ask->access_flags, &mr);

	if (ret)
		return ret;
	call->created = &mr->obj;
	reply.lkey = mr->key;
	reply.rkey = mr->key;
	uv_put(call, UVERBS_ATTR_CORE_OUT, &reply, sizeof reply);
	return 0;
}

/* The domain's handle means something only if the domain changes, so that no row can name it. */
static int new_domain(struct uv_call *call, const struct ib_uverbs_rereg_mr *ask,
		      struct emu_pd **out)
{
	struct emu_obj *obj = NULL;
	int ret = ask->flags & MR_CHANGES_PD ?
		  file_handle_find(call->file, ask->pd_handle, OBJ_PD, &obj) : 0;

	*out = (struct emu_pd *)obj;
	return ret ? uv_refuse(call, WHY_CMD_HANDLE, ret) : 0;
}

int on_rereg_mr(struct uv_call *call)
{
	const struct ib_uverbs_rereg_mr *in = uv_in(call, UVERBS_ATTR_CORE_IN);
	const struct mr_ask ask = { in->start, in->length, in->hca_va, in->access_flags };
	struct ib_uverbs_rereg_mr_resp reply = { 0 };
	struct emu_mr *mr = uv_mr(call, UV_MR);
	struct emu_pd *pd;
	int ret = new_domain(call, in, &pd);

	if (!ret)
		ret = mr_change(call->dev, mr, in->flags, pd, &ask);
	if (ret)
		return ret;
	shared_tell(call->file, &mr->obj);
	reply.lkey = mr->key;
	reply.rkey = mr->key;
	uv_put(call, UVERBS_ATTR_CORE_OUT, &reply, sizeof reply);
	return 0;
}

int on_advise_mr(struct uv_call *call)
{
	uint64_t advice = uv_number(call, UVERBS_ATTR_ADVISE_MR_ADVICE);
	bool waits = uv_number(call, UVERBS_ATTR_ADVISE_MR_FLAGS) & IB_UVERBS_ADVISE_MR_FLAG_FLUSH;
	unsigned count = uv_count(call, UVERBS_ATTR_ADVISE_MR_SGE_LIST);
	struct emu_pd *pd = uv_pd(call, UVERBS_ATTR_ADVISE_MR_PD_HANDLE);
	struct ib_uverbs_sge sge;
	int ret = 0;

	if (advice >= ADVICE_COUNT)
		return uv_refuse(call, WHY_CMD_UNSUPPORTED, -EOPNOTSUPP);
	for (unsigned i = 0; !ret && i < count; i++) {
		ret = uv_read(call, UVERBS_ATTR_ADVISE_MR_SGE_LIST, i, &sge);
		if (!ret)
			ret = mr_advise(call->dev, pd, (enum mr_advice)advice, waits,
					&(struct mr_range){ sge.addr, sge.length, sge.lkey });
	}
	return ret;
}

int on_dereg_mr(struct uv_call *call)
{
	return shared_release(call, uv_obj(call, UVERBS_ATTR_DESTROY_MR_HANDLE));
}

int on_dereg_mr_legacy(struct uv_call *call)
{
	return shared_release(call, uv_obj(call, UV_MR));
}

int on_query_mr(struct uv_call *call)
{
	struct emu_mr *mr = uv_mr(call, UVERBS_ATTR_QUERY_MR_HANDLE);

	uv_put_number(call, UVERBS_ATTR_QUERY_MR_RESP_LKEY, uint32_t, mr->key);
	uv_put_number(call, UVERBS_ATTR_QUERY_MR_RESP_RKEY, uint32_t, mr->key);
	uv_put_number(call, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, uint64_t, mr->bytes);
	uv_put_number(call, UVERBS_ATTR_QUERY_MR_RESP_IOVA, uint64_t, mr->iova);
	return 0;
}
