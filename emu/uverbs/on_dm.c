/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device memory: a few pages that the application can map and register.
 *
 * They are ordinary shared memory.  What the device sees of them is its own mapping, which lies in
 * the application's address space, so that peers reach it like any other memory.
 *
 * Source: device-abi H.4, B.9 and B.11.
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <stdlib.h>
#include "emu/uverbs/file.h"
#include "emu/uverbs/handlers.h"
#include "emu/uverbs/shared.h"

enum {
	DM_UNIT_BYTES = 64,		/* what is there is a multiple of it */
	DM_ALIGN_LOG_MAX = 12,		/* every buffer has pages of its own */
};

static struct uv_dm *uv_dm(struct uv_call *call, uint16_t id)
{
	return (struct uv_dm *)uv_obj(call, id);
}

static int ask_check(struct uv_call *call, uint64_t bytes)
{
	if (uv_number(call, MLX5_IB_ATTR_ALLOC_DM_REQ_TYPE) != MLX5_IB_UAPI_DM_TYPE_MEMIC)
		return uv_refuse(call, WHY_CMD_UNSUPPORTED, -EOPNOTSUPP);
	if (!bytes || uv_number(call, UVERBS_ATTR_ALLOC_DM_ALIGNMENT) > DM_ALIGN_LOG_MAX)
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	if (bytes > call->dev->profile->max_dm_bytes)
		return uv_refuse(call, WHY_CMD_LIMIT, -ENOMEM);
	return 0;
}

static int dm_create(struct uv_call *call, uint64_t bytes, struct uv_dm **out)
{
	struct uv_dm *dm = calloc(1, sizeof *dm);
	int page = dm ? file_device_take(call->file, uv_dm_pages(bytes)) : -ENOMEM;

	if (page < 0) {
		free(dm);
		return page;
	}
	dm->obj.type = OBJ_DM;
	dm->page = (uint32_t)page;
	dm->bytes = bytes;
	*out = dm;
	return 0;
}

int on_alloc_dm(struct uv_call *call)
{
	uint64_t bytes = uv_number(call, UVERBS_ATTR_ALLOC_DM_LENGTH);
	struct uv_dm *dm;
	int ret = ask_check(call, bytes);

	if (!ret)
		ret = dm_create(call, bytes, &dm);
	if (ret)
		return ret;
	call->created = &dm->obj;
	uv_put_number(call, MLX5_IB_ATTR_ALLOC_DM_RESP_START_OFFSET, uint64_t, 0);
	uv_put_number(call, MLX5_IB_ATTR_ALLOC_DM_RESP_PAGE_INDEX, uint16_t, (uint16_t)dm->page);
	return 0;
}

int on_free_dm(struct uv_call *call)
{
	return shared_release(call, uv_obj(call, UVERBS_ATTR_FREE_DM_HANDLE));
}

int on_query_dm(struct uv_call *call)
{
	const struct uv_dm *dm = uv_dm(call, MLX5_IB_ATTR_QUERY_DM_REQ_HANDLE);

	uv_put_number(call, MLX5_IB_ATTR_QUERY_DM_RESP_START_OFFSET, uint64_t, 0);
	uv_put_number(call, MLX5_IB_ATTR_QUERY_DM_RESP_PAGE_INDEX, uint16_t, (uint16_t)dm->page);
	uv_put_number(call, MLX5_IB_ATTR_QUERY_DM_RESP_LENGTH, uint64_t,
		      (dm->bytes + DM_UNIT_BYTES - 1) & -(uint64_t)DM_UNIT_BYTES);
	return 0;
}

int on_reg_dm_mr(struct uv_call *call)
{
	struct uv_dm *dm = uv_dm(call, UVERBS_ATTR_REG_DM_MR_DM_HANDLE);
	uint64_t offset = uv_number(call, UVERBS_ATTR_REG_DM_MR_OFFSET);
	struct mr_ask ask = {
		.bytes = uv_number(call, UVERBS_ATTR_REG_DM_MR_LENGTH),
		.access = (uint32_t)uv_number(call, UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS),
	};
	struct emu_mr *mr;
	int ret;

	if (offset > dm->bytes || ask.bytes > dm->bytes - offset)
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	ask.start = (uintptr_t)file_device_memory(call->file, dm->page) + offset;
	ret = mr_create_device(call->dev, uv_pd(call, UVERBS_ATTR_REG_DM_MR_PD_HANDLE), &dm->obj,
			       &ask, &mr);
	if (ret)
		return ret;
	call->created = &mr->obj;
	uv_put_number(call, UVERBS_ATTR_REG_DM_MR_RESP_LKEY, uint32_t, mr->key);
	uv_put_number(call, UVERBS_ATTR_REG_DM_MR_RESP_RKEY, uint32_t, mr->key);
	return 0;
}
