/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC domains, which processes share by a file that all of them open.
 *
 * Source: device-abi B.9; inventory 1.20; ibv_open_xrcd(3).
 */
#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <stdlib.h>
#include "verbs/cmd.h"
#include "verbs/context.h"
#include "verbs/ops.h"
#include "verbs/xrcd.h"

#define XRCD_NEEDED	(IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS)

static int attributes_check(const struct ibv_xrcd_init_attr *attr)
{
	if (attr->comp_mask >= IBV_XRCD_INIT_ATTR_RESERVED)
		return EOPNOTSUPP;
	return (attr->comp_mask & XRCD_NEEDED) == XRCD_NEEDED ? 0 : EINVAL;
}

static int open_command(struct vb_xrcd *xrcd, const struct ibv_xrcd_init_attr *attr)
{
	const struct ib_uverbs_open_xrcd ask = { .fd = (uint32_t)attr->fd,
						 .oflags = (uint32_t)attr->oflags };
	struct ib_uverbs_open_xrcd_resp answer = { 0 };
	const struct cmd_write w = {
		.command = IB_USER_VERBS_CMD_OPEN_XRCD,
		.in = &ask, .in_bytes = sizeof ask, .out = &answer, .out_bytes = sizeof answer,
	};
	int error = cmd_write(&w, xrcd->xrcd.context);

	xrcd->handle = answer.xrcd_handle;
	return error;
}

struct ibv_xrcd *vb_open_xrcd(struct ibv_context *context,
			      struct ibv_xrcd_init_attr *xrcd_init_attr)
{
	struct vb_xrcd *xrcd = calloc(1, sizeof *xrcd);
	int error = xrcd ? attributes_check(xrcd_init_attr) : ENOMEM;

	if (!error) {
		xrcd->xrcd.context = context;
		error = open_command(xrcd, xrcd_init_attr);
	}
	if (!error)
		return &xrcd->xrcd;
	free(xrcd);
	errno = error;
	return NULL;
}

int vb_close_xrcd(struct ibv_xrcd *xrcd)
{
	int error = cmd_destroy(xrcd->context, UVERBS_OBJECT_XRCD, UVERBS_METHOD_XRCD_DESTROY,
				UVERBS_ATTR_DESTROY_XRCD_HANDLE, vb_xrcd_of(xrcd)->handle);

	if (!error)
		free(xrcd);
	return error;
}
