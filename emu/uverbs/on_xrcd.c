/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC domains, and target QPs that are opened again.  Source: device-abi B.9, B.9.7.
 */
#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <sys/stat.h>
#include "emu/engine/engine.h"
#include "emu/uverbs/file.h"
#include "emu/uverbs/handlers.h"

#define NO_FILE		(-1)

static int file_read(struct uv_call *call, int fd, struct xrc_file *out)
{
	struct stat st;

	if (fd == NO_FILE)
		return 0;
	if (fstat(fd, &st))
		return uv_refuse(call, WHY_CMD_HANDLE, -EBADF);
	*out = (struct xrc_file){ .exists = true, .dev = st.st_dev, .ino = st.st_ino };
	return 0;
}

int on_open_xrcd(struct uv_call *call)
{
	const struct ib_uverbs_open_xrcd *ask = uv_in(call, UVERBS_ATTR_CORE_IN);
	struct ib_uverbs_open_xrcd_resp reply = { 0 };
	struct xrcd_init init = {
		.creates = ask->oflags & O_CREAT, .is_exclusive = ask->oflags & O_EXCL,
	};
	struct emu_xrcd *xrcd;
	int ret = file_read(call, (int)ask->fd, &init.file);

	if (!ret)
		ret = xrcd_open(call->dev, &init, &xrcd);
	if (ret)
		return ret;
	call->created = &xrcd->obj;
	uv_put(call, UVERBS_ATTR_CORE_OUT, &reply, sizeof reply);
	return 0;
}

int on_close_xrcd(struct uv_call *call)
{
	return xrcd_close(call->dev, uv_xrcd(call, UVERBS_ATTR_DESTROY_XRCD_HANDLE));
}

int on_close_xrcd_legacy(struct uv_call *call)
{
	return xrcd_close(call->dev, uv_xrcd(call, UV_XRCD));
}

/* A number of another process: its target QP is asked, and has a handle here then. */
static int open_far(struct uv_call *call, uint32_t qpn, const struct qp_open_init *init,
		    struct emu_qp_open **out)
{
	struct emu_qp *qp;
	uint32_t events;
	int ret = qp_far_create(call->dev, init->xrcd, qpn, &qp);

	if (ret)
		return ret;
	ret = engine_far_ask(call->engine, qp, FAR_OPEN, NULL, 0);
	if (ret == -ESRCH)
		ret = uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	if (!ret)
		ret = qp_open(call->dev, qp, init, out);
	if (!ret)
		return 0;
	engine_qp_forget(call->engine, qp);
	qp_destroy(call->dev, qp, &events);
	return ret;
}

static bool is_elsewhere(const struct emu_dev *dev, uint32_t qpn, const struct emu_xrcd *xrcd)
{
	return xrcd->domain->token >= 0 && !(qpn >> NUMBER_BITS) &&
	       !dev->qpns.block[qpn >> NUMBER_BLOCK_BITS];
}

int on_open_qp(struct uv_call *call)
{
	const struct ib_uverbs_open_qp *ask = uv_in(call, UVERBS_ATTR_CORE_IN);
	struct ib_uverbs_create_qp_resp reply = { .qpn = ask->qpn };
	struct qp_open_init init = {
		.xrcd = uv_xrcd(call, UV_XRCD), .async = call->file->async,
		.user_handle = ask->user_handle,
	};
	struct emu_qp_open *open;
	struct emu_qp *qp;
	int ret;

	if (ask->qp_type != IB_UVERBS_QPT_XRC_TGT)
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	qp = qp_find(call->dev, ask->qpn);
	if (qp && qp->type != QPT_XRC_TGT)
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	if (is_elsewhere(call->dev, ask->qpn, init.xrcd))
		ret = open_far(call, ask->qpn, &init, &open);
	else
		ret = qp_open(call->dev, qp, &init, &open);
	if (ret)
		return ret;
	call->created = &open->obj;
	uv_put(call, UVERBS_ATTR_CORE_OUT, &reply, sizeof reply);
	return 0;
}
