/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters objects.
 *
 * They count packets of flow steering rules and are bound by creating one.  Until a rule counts
 * into it there is nothing that could be read.
 *
 * Source: device-abi B.9 (counters), H.2.
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <stdlib.h>
#include "emu/uverbs/file.h"
#include "emu/uverbs/handlers.h"

int on_create_counters(struct uv_call *call)
{
	struct emu_obj *counters = calloc(1, sizeof *counters);

	if (!counters)
		return -ENOMEM;
	counters->type = OBJ_COUNTERS;
	call->created = counters;
	return 0;
}

int on_destroy_counters(struct uv_call *call)
{
	file_object_destroy(call->file, uv_obj(call, UVERBS_ATTR_DESTROY_COUNTERS_HANDLE));
	return 0;
}

int on_read_counters(struct uv_call *call)
{
	return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
}
