/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows.  Binding one is a work request, see the send path.
 *
 * Source: device-abi B.9, D; inventory 1.11.
 */
#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <stdlib.h>
#include "verbs/cmd.h"
#include "verbs/context.h"
#include "verbs/ops.h"

struct ibv_mw *vb_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	const struct ib_uverbs_alloc_mw ask = { .pd_handle = pd->handle, .mw_type = (uint8_t)type };
	struct ib_uverbs_alloc_mw_resp answer = { 0 };
	const struct cmd_write w = {
		.command = IB_USER_VERBS_CMD_ALLOC_MW,
		.in = &ask, .in_bytes = sizeof ask, .out = &answer, .out_bytes = sizeof answer,
	};
	struct ibv_mw *mw = calloc(1, sizeof *mw);
	int error = mw ? cmd_write(&w, pd->context) : ENOMEM;

	if (error) {
		free(mw);
		errno = error;
		return NULL;
	}
	*mw = (struct ibv_mw){ .context = pd->context, .pd = pd, .type = type,
			       .handle = answer.mw_handle, .rkey = answer.rkey };
	return mw;
}

int vb_dealloc_mw(struct ibv_mw *mw)
{
	int error = cmd_destroy(mw->context, UVERBS_OBJECT_MW, UVERBS_METHOD_MW_DESTROY,
				UVERBS_ATTR_DESTROY_MW_HANDLE, mw->handle);

	if (!error)
		free(mw);
	return error;
}
