/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects of other processes by descriptor and handle; see infiniband/verbs_share.h.
 *
 * The channel gives the object a handle in the file that needs one; what is left is a structure
 * for it, which is made as for an import.
 *
 * Source: inventory EX-1 to EX-8, D-12 to D-14.
 */
#include <errno.h>
#include <infiniband/verbs_share.h>
#include "verbs/context.h"
#include "verbs/mr.h"

VB_EXPORT uint32_t ibv_context_to_fd(struct ibv_context *context)
{
	return (uint32_t)context->cmd_fd;
}

VB_EXPORT uint32_t ibv_pd_to_handle(struct ibv_pd *pd)
{
	return pd->handle;
}

VB_EXPORT uint32_t ibv_mr_to_handle(struct ibv_mr *mr)
{
	return mr->handle;
}

/* @context is one of the ends, and says how. */
static int share(struct ibv_context *context, int from_fd, int to_fd, enum channel_kind kind,
		 uint32_t handle, uint32_t *out)
{
	const struct channel_ops *ops;

	if (!vb_is_ours(context))
		return EOPNOTSUPP;
	ops = vb_context_of(context)->channel.ops;
	return ops->share ? -ops->share(from_fd, to_fd, kind, handle, out) : EOPNOTSUPP;
}

VB_EXPORT int ibv_export_to_fd(uint32_t fd, uint32_t *new_handle, struct ibv_context *context,
			       enum ibv_export_type type, uint32_t handle)
{
	if (type != IBV_EXPORT_PD && type != IBV_EXPORT_MR)
		return EINVAL;
	return share(context, context->cmd_fd, (int)fd,
		     type == IBV_EXPORT_PD ? CHANNEL_PD : CHANNEL_MR, handle, new_handle);
}

VB_EXPORT int ibv_export_pd(uint32_t fd, uint32_t *new_handle, struct ibv_context *context,
			    struct ibv_pd *pd)
{
	return pd->context == context ?
	       ibv_export_to_fd(fd, new_handle, context, IBV_EXPORT_PD, pd->handle) : EINVAL;
}

VB_EXPORT int ibv_export_mr(uint32_t fd, uint32_t *new_handle, struct ibv_context *context,
			    struct ibv_mr *mr)
{
	return mr->context == context ?
	       ibv_export_to_fd(fd, new_handle, context, IBV_EXPORT_MR, mr->handle) : EINVAL;
}

/* The channel has counted the object once and the look at it once more, if it counts looks. */
static void look_ends(struct ibv_context *context, enum channel_kind kind, uint32_t handle)
{
	if (vb_context_of(context)->is_imported)
		vb_unimport(context, kind, handle);
}

VB_EXPORT struct ibv_pd *ibv_import_pd_from_fd(struct ibv_context *context, uint32_t fd,
					       uint32_t handle)
{
	uint32_t own = 0;
	int error = share(context, (int)fd, context->cmd_fd, CHANNEL_PD, handle, &own);
	struct ibv_pd *pd = error ? NULL : ibv_import_pd(context, own);

	if (error)
		errno = error;
	else if (pd)
		look_ends(context, CHANNEL_PD, own);
	return pd;
}

VB_EXPORT struct ibv_mr *ibv_import_mr_from_fd(struct ibv_context *context, uint32_t fd,
					       uint32_t handle)
{
	struct ibv_pd none = { .context = context };
	uint32_t own = 0;
	int error = share(context, (int)fd, context->cmd_fd, CHANNEL_MR, handle, &own);
	struct ibv_mr *mr = error ? NULL : ibv_import_mr(&none, own);

	if (error)
		errno = error;
	if (!mr)
		return NULL;
	look_ends(context, CHANNEL_MR, own);
	mr->pd = NULL;
	return mr;
}
