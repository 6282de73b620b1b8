/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues.  Source: device-abi B.9, B.9.3.
 */
#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include "emu/uverbs/file.h"
#include "emu/engine/engine.h"
#include "emu/uverbs/handlers.h"

#define CQ_MODERATE	1u		/* enum ib_cq_attr_mask */
#define CQE_BYTES_MAX	128
#define MLX5_FLAGS_KNOWN \
	(MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD | MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX | \
	 MLX5_IB_CREATE_CQ_FLAGS_REAL_TIME_TS)

/* The page is where the queue would be armed; it must be one of this context's. */
static bool has_page(struct uv_file *file, const struct mlx5_ib_create_cq *ask)
{
	if (ask->flags & MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX)
		return file_page_is_used(file, ask->uar_page_index);
	return !file->has_dynamic_pages;
}

static int mlx5_check(struct uv_call *call, const struct mlx5_ib_create_cq *ask)
{
	if (ask->flags & ~MLX5_FLAGS_KNOWN || ask->reserved0 || ask->reserved1)
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	if (!has_page(call->file, ask))
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	/* Offered by no profile: compression, wall clock stamps. */
	if (ask->cqe_comp_en || ask->flags & MLX5_IB_CREATE_CQ_FLAGS_REAL_TIME_TS)
		return uv_refuse(call, WHY_CMD_UNSUPPORTED, -EOPNOTSUPP);
	/* Memory is always written as a whole; there is nothing else to do for it. */
	if (ask->flags & MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD && ask->cqe_size != CQE_BYTES_MAX)
		return uv_refuse(call, WHY_CMD_UNSUPPORTED, -EOPNOTSUPP);
	return 0;
}

/* Both ways to ask end here; the rest of @init is filled by the caller. */
static int create(struct uv_call *call, struct cq_init *init, struct emu_cq **out)
{
	const struct mlx5_ib_create_cq *ask = uv_in(call, UVERBS_ATTR_UHW_IN);
	struct mlx5_ib_create_cq_resp reply = { 0 };
	int ret = mlx5_check(call, ask);

	if (ret)
		return ret;
	init->buf_addr = ask->buf_addr;
	init->db_addr = ask->db_addr;
	init->cqe_bytes = ask->cqe_size;
	if (!init->async)
		init->async = call->file->async;
	ret = cq_create(call->dev, init, out);
	if (ret)
		return ret;
	call->created = &(*out)->obj;
	reply.cqn = (*out)->cqn;
	uv_put(call, UVERBS_ATTR_UHW_OUT, &reply, sizeof reply);
	return 0;
}

int on_create_cq(struct uv_call *call)
{
	uint64_t flags = uv_number(call, UVERBS_ATTR_CREATE_CQ_FLAGS);
	struct cq_init init = {
		.user_handle = uv_number(call, UVERBS_ATTR_CREATE_CQ_USER_HANDLE),
		.cqe = (uint32_t)uv_number(call, UVERBS_ATTR_CREATE_CQ_CQE),
		.comp_vector = (uint32_t)uv_number(call, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR),
		.ignores_overrun = flags & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN,
		.wants_stamps = flags & IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION,
		.channel = uv_channel(call, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL),
		.async = uv_channel(call, UVERBS_ATTR_CREATE_CQ_EVENT_FD),
	};
	struct emu_cq *cq;
	int ret = create(call, &init, &cq);

	if (!ret)
		uv_put_number(call, UVERBS_ATTR_CREATE_CQ_RESP_CQE, uint32_t, cq->cqe_count - 1);
	return ret;
}

int on_create_cq_legacy(struct uv_call *call)
{
	const struct ib_uverbs_create_cq *ask = uv_in(call, UVERBS_ATTR_CORE_IN);
	struct ib_uverbs_create_cq_resp reply = { 0 };
	struct cq_init init = {
		.user_handle = ask->user_handle, .cqe = ask->cqe,
		.comp_vector = ask->comp_vector, .channel = uv_channel(call, UV_CHANNEL),
	};
	struct emu_cq *cq;
	int ret = create(call, &init, &cq);

	if (ret)
		return ret;
	reply.cqe = cq->cqe_count - 1;
	uv_put(call, UVERBS_ATTR_CORE_OUT, &reply, sizeof reply);
	return 0;
}

int on_resize_cq(struct uv_call *call)
{
	const struct ib_uverbs_resize_cq *ask = uv_in(call, UVERBS_ATTR_CORE_IN);
	const struct mlx5_ib_resize_cq *mlx5 = uv_in(call, UVERBS_ATTR_UHW_IN);
	struct ib_uverbs_resize_cq_resp reply = { 0 };
	struct emu_cq *cq = uv_cq(call, UV_CQ);
	int ret;

	if (mlx5->reserved0 || mlx5->reserved1)
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	ret = cq_resize(call->dev, cq, ask->cqe, mlx5->buf_addr, mlx5->cqe_size);
	if (ret)
		return ret;
	reply.cqe = cq->cqe_count - 1;
	uv_put(call, UVERBS_ATTR_CORE_OUT, &reply, sizeof reply);
	return 0;
}

int on_modify_cq(struct uv_call *call)
{
	const struct ib_uverbs_ex_modify_cq *ask = uv_in(call, UVERBS_ATTR_CORE_IN);

	if (!ask->attr_mask || ask->reserved)
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	if (ask->attr_mask > CQ_MODERATE)
		return uv_refuse(call, WHY_CMD_UNSUPPORTED, -EOPNOTSUPP);
	if (ask->attr.cq_period > CQ_EVENT_PERIOD_MAX_US)
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	engine_cq_moderate(call->engine, uv_cq(call, UV_CQ), ask->attr.cq_count,
			   ask->attr.cq_period);
	return 0;
}

static int destroy(struct uv_call *call, uint16_t cq_id, uint16_t reply_id)
{
	struct ib_uverbs_destroy_cq_resp reply = { 0 };
	struct emu_cq *cq = uv_cq(call, cq_id);
	int ret;

	engine_cq_forget(call->engine, cq);
	ret = cq_destroy(call->dev, cq, &reply.comp_events_reported,
			 &reply.async_events_reported);
	if (!ret)
		uv_put(call, reply_id, &reply, sizeof reply);
	return ret;
}

int on_destroy_cq(struct uv_call *call)
{
	return destroy(call, UVERBS_ATTR_DESTROY_CQ_HANDLE, UVERBS_ATTR_DESTROY_CQ_RESP);
}

int on_destroy_cq_legacy(struct uv_call *call)
{
	return destroy(call, UV_CQ, UVERBS_ATTR_CORE_OUT);
}
