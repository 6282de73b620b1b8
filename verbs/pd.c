/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection domains, thread domains, and parent domains, which join the two.
 *
 * A parent domain is the library's alone: to the device it is its protection domain.
 *
 * Source: device-abi B.9, B.11; inventory 1.6; ibv_alloc_parent_domain(3), ibv_alloc_td(3).
 */
#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <stdlib.h>
#include "verbs/cmd.h"
#include "verbs/context.h"
#include "verbs/foreign.h"
#include "verbs/ops.h"

static struct vb_pd *pd_new(struct ibv_context *context)
{
	struct vb_pd *pd = calloc(1, sizeof *pd);

	if (pd)
		pd->pd.context = context;
	else
		errno = ENOMEM;
	return pd;
}

/* @pd, or NULL and errno. */
static struct ibv_pd *pd_unless(int error, struct vb_pd *pd)
{
	if (!error)
		return &pd->pd;
	free(pd);
	errno = error;
	return NULL;
}

VB_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ib_uverbs_alloc_pd ask = { 0 };
	struct ib_uverbs_alloc_pd_resp answer = { 0 };
	struct mlx5_ib_alloc_pd_resp driver = { 0 };
	const struct cmd_write w = {
		.command = IB_USER_VERBS_CMD_ALLOC_PD,
		.in = &ask, .in_bytes = sizeof ask, .out = &answer, .out_bytes = sizeof answer,
		.driver_out = &driver, .driver_out_bytes = sizeof driver,
	};
	struct vb_pd *pd;
	int error;

	if (!vb_is_ours(context))
		return FOREIGN(ibv_alloc_pd, context);
	pd = pd_new(context);
	if (!pd)
		return NULL;
	error = cmd_write(&w, context);
	pd->pd.handle = answer.pd_handle;
	pd->pdn = driver.pdn;
	return pd_unless(error, pd);
}

static void parent_free(struct vb_pd *pd)
{
	pd->protection->users--;
	if (pd->td)
		pd->td->users--;
	free(pd);
}

VB_EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
	struct vb_pd *own = vb_pd_of(pd);
	int error;

	if (!vb_is_ours(pd->context))
		return FOREIGN(ibv_dealloc_pd, pd);
	if (own->users)
		return EBUSY;
	if (own->protection) {
		parent_free(own);
		return 0;
	}
	error = cmd_destroy(pd->context, UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY,
			    UVERBS_ATTR_DESTROY_PD_HANDLE, pd->handle);
	if (!error)
		free(own);
	return error;
}

/* --- parent domains --- */

#define PARENT_KNOWN \
	(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)

struct ibv_pd *vb_alloc_parent_domain(struct ibv_context *context,
				      struct ibv_parent_domain_init_attr *attr)
{
	struct vb_pd *below = vb_pd_of(attr->pd), *pd;

	if (!below || attr->comp_mask & ~(uint32_t)PARENT_KNOWN) {
		errno = EINVAL;
		return NULL;
	}
	if (below->protection)
		below = below->protection;
	pd = pd_new(context);
	if (!pd)
		return NULL;
	pd->pd.handle = below->pd.handle;
	pd->pdn = below->pdn;
	pd->protection = below;
	below->users++;
	pd->td = (struct vb_td *)attr->td;
	if (pd->td)
		pd->td->users++;
	/* One without the other would be memory that nobody can give back. */
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS && attr->alloc && attr->free) {
		pd->alloc = attr->alloc;
		pd->free = attr->free;
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		pd->pd_context = attr->pd_context;
	return &pd->pd;
}

/* --- thread domains --- */

struct ibv_td *vb_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *init_attr)
{
	struct vb_td *td;
	int error;

	if (init_attr->comp_mask) {
		errno = EINVAL;
		return NULL;
	}
	td = calloc(1, sizeof *td);
	error = td ? vb_td_uar_alloc(vb_context_of(context), td) : ENOMEM;
	if (error) {
		free(td);
		errno = error;
		return NULL;
	}
	td->td.context = context;
	return &td->td;
}

int vb_dealloc_td(struct ibv_td *td)
{
	struct vb_td *own = (struct vb_td *)td;

	if (own->users)
		return EBUSY;
	vb_uar_free(vb_context_of(td->context), &own->uar);
	free(own);
	return 0;
}

/* --- domains of another process --- */

VB_EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	struct cmd cmd = cmd_new(UVERBS_OBJECT_PD, MLX5_IB_METHOD_PD_QUERY);
	struct vb_pd *pd;

	if (!vb_is_ours(context))
		return FOREIGN(ibv_import_pd, context, pd_handle);
	pd = pd_new(context);
	if (!pd)
		return NULL;
	pd->pd.handle = pd_handle;
	pd->is_imported = true;
	cmd_object(&cmd, MLX5_IB_ATTR_QUERY_PD_HANDLE, pd_handle);
	cmd_out(&cmd, MLX5_IB_ATTR_QUERY_PD_RESP_PDN, &pd->pdn, sizeof pd->pdn);
	return pd_unless(cmd_send(&cmd, context), pd);
}

VB_EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
	if (!vb_is_ours(pd->context)) {
		FOREIGN(ibv_unimport_pd, pd);
		return;
	}
	vb_unimport(pd->context, CHANNEL_PD, pd->handle);
	free(pd);
}
