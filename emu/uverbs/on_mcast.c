/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast: attaching QPs to groups.  Nobody joins at a subnet manager here: who is attached
 * gets what is sent.
 *
 * Source: device-abi B.9.
 */
#include <rdma/ib_user_verbs.h>
#include "emu/engine/engine.h"
#include "emu/uverbs/handlers.h"

int on_attach_mcast(struct uv_call *call)
{
	const struct ib_uverbs_attach_mcast *ask = uv_in(call, UVERBS_ATTR_CORE_IN);

	return engine_mcast_attach(call->engine, uv_qp(call, UV_QP), ask->gid, ask->mlid);
}

int on_detach_mcast(struct uv_call *call)
{
	const struct ib_uverbs_detach_mcast *ask = uv_in(call, UVERBS_ATTR_CORE_IN);

	return engine_mcast_detach(call->engine, uv_qp(call, UV_QP), ask->gid, ask->mlid);
}
