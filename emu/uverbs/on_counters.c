/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters objects.
 *
 * They count packets of flow steering rules and are bound by creating one, which also says what
 * stands where when they are read.  So without a rule there is nothing to read.
 *
 * Source: device-abi B.9 (counters), H.2; Linux, uverbs_std_types_counters.c, mlx5_ib.
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdlib.h>
#include "emu/mem/mem.h"
#include "emu/uverbs/handlers.h"
#include "emu/uverbs/on_counters.h"

#define ITEMS_MAX	(UINT16_MAX / sizeof(struct counters_item))

static_assert(sizeof(struct counters_item) == sizeof(struct mlx5_ib_flow_counters_desc),
	      "they are copied as they stand");

/* --- what a rule says --- */

int counters_ask_read(struct uv_call *call, struct counters_ask *out)
{
	const struct mlx5_ib_create_flow *ask = uv_in(call, UVERBS_ATTR_UHW_IN);
	unsigned room = uv_room(call, UVERBS_ATTR_UHW_IN);
	struct mlx5_ib_flow_counters_data data = { 0 };
	int ret;

	*out = (struct counters_ask){ 0 };
	if (!room)
		return 0;
	if (room < sizeof *ask)
		return uv_refuse(call, WHY_CMD_ATTRIBUTES, -EOPNOTSUPP);
	if (ask->ncounters_data > 1)
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	ret = uv_list(call, UVERBS_ATTR_UHW_IN, &data,
		      ask->ncounters_data * (unsigned)sizeof data);
	if (ret)
		return ret == -ENOSPC ? -EINVAL : ret;
	*out = (struct counters_ask){
		.is_given = ask->ncounters_data, .addr = data.counters_data,
		.count = data.ncounters,
	};
	return 0;
}

int counters_ask_apply(struct uv_call *call, struct emu_counters *counters,
		       const struct counters_ask *ask)
{
	size_t bytes = ask->count * sizeof(struct counters_item);
	struct counters_item *item;
	int ret;

	if (ask->is_given ? ask->count > ITEMS_MAX : !counters->index_end)
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	if (!ask->is_given)
		return 0;
	item = malloc(bytes ? bytes : 1);
	if (!item)
		return -ENOMEM;
	ret = bytes && mem_copy_in(item, ask->addr, bytes) ? -EFAULT :
	      counters_describe(counters, item, ask->count);
	if (ret)
		free(item);
	return ret;
}

/* --- commands --- */

int on_create_counters(struct uv_call *call)
{
	struct emu_counters *counters;
	int ret = counters_create(call->dev, &counters);

	if (!ret)
		call->created = &counters->obj;
	return ret;
}

int on_destroy_counters(struct uv_call *call)
{
	return counters_destroy(call->dev, (struct emu_counters *)uv_obj(call,
							UVERBS_ATTR_DESTROY_COUNTERS_HANDLE));
}

/* Indices that were told twice have the sum. */
int on_read_counters(struct uv_call *call)
{
	const struct emu_counters *counters =
		(struct emu_counters *)uv_obj(call, UVERBS_ATTR_READ_COUNTERS_HANDLE);
	unsigned count = uv_room(call, UVERBS_ATTR_READ_COUNTERS_BUFF) / sizeof(uint64_t);
	uint64_t *value;

	if (!counters->obj.users || counters->index_end > count)
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	value = uv_stage(call, UVERBS_ATTR_READ_COUNTERS_BUFF, count * sizeof *value);
	for (uint32_t i = 0; value && i < counters->item_count; i++)
		value[counters->item[i].index] += counters->counted[counters->item[i].what];
	return 0;
}
