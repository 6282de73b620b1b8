/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion channels and async files.
 *
 * The application gets exactly the descriptor that channel_create() made and closes it
 * itself; see struct uv_event_fd for what becomes of the object.
 *
 * Source: device-abi B.10.
 */
#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <unistd.h>
#include "emu/uverbs/file.h"
#include "emu/uverbs/handlers.h"

static void descriptor_undo(struct uv_call *call)
{
	close(call->created_fd);
}

int event_file_create(struct uv_call *call, size_t event_bytes, enum obj_type type)
{
	struct emu_channel *channel;
	int ret = channel_create(event_bytes, &channel, &call->created_fd);

	if (ret)
		return ret;
	call->created = channel_obj(channel);
	call->created->type = type;
	call->undo = descriptor_undo;
	return 0;
}

int on_create_comp_channel(struct uv_call *call)
{
	struct ib_uverbs_create_comp_channel_resp reply = { 0 };
	int ret = event_file_create(call, EVENT_COMP_BYTES, OBJ_CHANNEL);

	if (!ret)
		uv_put(call, UVERBS_ATTR_CORE_OUT, &reply, sizeof reply);
	return ret;
}

int on_alloc_async(struct uv_call *call)
{
	return event_file_create(call, EVENT_ASYNC_BYTES, OBJ_ASYNC);
}
