/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions.
 *
 * While a region is registered its pages are kept from forked children, unless the device fetches
 * pages on demand and so follows what the kernel does to them.
 *
 * Source: device-abi B.9, D; inventory 1.7, 1.9; ibv_rereg_mr(3).
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdlib.h>
#include "verbs/foreign.h"
#include "verbs/fork.h"
#include "verbs/mr.h"
#include "verbs/ops.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

struct vb_mr *vb_mr_new(struct ibv_pd *pd, enum vb_mr_kind kind, void *addr, size_t length)
{
	struct vb_mr *mr = calloc(1, sizeof *mr);

	if (!mr) {
		errno = ENOMEM;
		return NULL;
	}
	mr->kind = kind;
	mr->mr =
		(struct ibv_mr){ .context = pd->context, .pd = pd, .addr = addr, .length = length };
	return mr;
}

static struct ibv_mr *mr_unless(int error, struct vb_mr *mr)
{
	if (!error)
		return &mr->mr;
	if (mr->is_kept)
		vb_fork_release(mr->mr.addr, mr->mr.length);
	free(mr);
	errno = error;
	return NULL;
}

struct ibv_mr *vb_mr_send(struct vb_mr *mr, struct cmd *cmd, unsigned handle_at)
{
	int error = cmd_send(cmd, mr->mr.context);

	mr->mr.handle = cmd_handle(cmd, handle_at);
	return mr_unless(error, mr);
}

/* --- registering --- */

static int register_command(struct vb_mr *mr, uint64_t iova)
{
	const struct ib_uverbs_reg_mr ask = {
		.start = (uintptr_t)mr->mr.addr, .length = mr->mr.length, .hca_va = iova,
		.pd_handle = mr->mr.pd->handle, .access_flags = mr->access,
	};
	struct ib_uverbs_reg_mr_resp answer = { 0 };
	const struct cmd_write w = {
		.command = IB_USER_VERBS_CMD_REG_MR,
		.in = &ask, .in_bytes = sizeof ask, .out = &answer, .out_bytes = sizeof answer,
	};
	int error = cmd_write(&w, mr->mr.context);

	mr->mr.handle = answer.mr_handle;
	mr->mr.lkey = answer.lkey;
	mr->mr.rkey = answer.rkey;
	return error;
}

/* All of the address space, on demand, has no beginning. */
static bool is_half_implicit(const void *addr, size_t length, unsigned int access)
{
	return access & IBV_ACCESS_ON_DEMAND && length == SIZE_MAX && addr;
}

static struct ibv_mr *mr_register(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				  unsigned int access)
{
	struct vb_mr *mr;
	int error = 0;

	if (!(vb_context_of(pd->context)->limits.core_support &
	      IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS))
		access &= ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE;
	if (is_half_implicit(addr, length, access)) {
		errno = EINVAL;
		return NULL;
	}
	mr = vb_mr_new(pd, VB_MR_PROGRAM, addr, length);
	if (!mr)
		return NULL;
	mr->access = access;
	if (!(access & IBV_ACCESS_ON_DEMAND)) {
		error = vb_fork_keep(addr, length);
		mr->is_kept = !error;
	}
	if (!error)
		error = register_command(mr, iova);
	return mr_unless(error, mr);
}

VB_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
					  uint64_t iova, unsigned int access)
{
	if (!vb_is_ours(pd->context))
		return FOREIGN(ibv_reg_mr_iova2, pd, addr, length, iova, access);
	return mr_register(pd, addr, length, iova, access);
}

VB_EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length,
					 uint64_t iova, int access)
{
	if (!vb_is_ours(pd->context))
		return FOREIGN(ibv_reg_mr_iova, pd, addr, length, iova, access);
	return mr_register(pd, addr, length, iova, (unsigned)access);
}

VB_EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	if (!vb_is_ours(pd->context))
		return FOREIGN(ibv_reg_mr, pd, addr, length, access);
	return mr_register(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

VB_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
					   uint64_t iova, int fd, int access)
{
	struct cmd cmd = cmd_new(UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR);
	struct vb_mr *mr;
	unsigned at;

	if (!vb_is_ours(pd->context))
		return FOREIGN(ibv_reg_dmabuf_mr, pd, offset, length, iova, fd, access);
	mr = vb_mr_new(pd, VB_MR_DMABUF, (void *)(uintptr_t)offset, length);
	if (!mr)
		return NULL;
	at = cmd_object(&cmd, UVERBS_ATTR_REG_DMABUF_MR_HANDLE, 0);
	cmd_object(&cmd, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, pd->handle);
	cmd_in_u64(&cmd, UVERBS_ATTR_REG_DMABUF_MR_OFFSET, offset);
	cmd_in_u64(&cmd, UVERBS_ATTR_REG_DMABUF_MR_LENGTH, length);
	cmd_in_u64(&cmd, UVERBS_ATTR_REG_DMABUF_MR_IOVA, iova);
	cmd_in_u32(&cmd, UVERBS_ATTR_REG_DMABUF_MR_FD, (uint32_t)fd);
	cmd_in_u32(&cmd, UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, (uint32_t)access);
	cmd_out(&cmd, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, &mr->mr.lkey, sizeof mr->mr.lkey);
	cmd_out(&cmd, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, &mr->mr.rkey, sizeof mr->mr.rkey);
	return vb_mr_send(mr, &cmd, at);
}

/* What is read from its key is zeros, what is written goes nowhere; peers can't name it. */
struct ibv_mr *vb_alloc_null_mr(struct ibv_pd *pd)
{
	const struct vb_context *c = vb_context_of(pd->context);
	struct vb_mr *mr;

	if (!(c->limits.comp_mask & MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_DUMP_FILL_MKEY)) {
		errno = ENOTSUP;
		return NULL;
	}
	mr = vb_mr_new(pd, VB_MR_NULL, NULL, SIZE_MAX);
	if (!mr)
		return NULL;
	mr->mr.lkey = c->limits.dump_fill_mkey;
	return &mr->mr;
}

/* --- changing --- */

static bool is_change_sound(const struct vb_mr *mr, int flags, const struct ibv_mr *wanted,
			    int access)
{
	if (mr->kind != VB_MR_PROGRAM && mr->kind != VB_MR_DEVICE)
		return false;
	if (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED)
		return false;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION && (!wanted->addr || !wanted->length))
		return false;
	if (flags & IBV_REREG_MR_CHANGE_PD && !wanted->pd)
		return false;
	return !access || flags & IBV_REREG_MR_CHANGE_ACCESS;
}

static int change_command(struct vb_mr *mr, int flags, const struct ibv_mr *wanted, int access)
{
	const struct ib_uverbs_rereg_mr ask = {
		.mr_handle = mr->mr.handle, .flags = (uint32_t)flags,
		.start = (uintptr_t)wanted->addr, .length = wanted->length,
		.hca_va = (uintptr_t)wanted->addr, .access_flags = (uint32_t)access,
		.pd_handle = flags & IBV_REREG_MR_CHANGE_PD ? wanted->pd->handle : 0,
	};
	struct ib_uverbs_rereg_mr_resp answer = { 0 };
	const struct cmd_write w = {
		.command = IB_USER_VERBS_CMD_REREG_MR,
		.in = &ask, .in_bytes = sizeof ask, .out = &answer, .out_bytes = sizeof answer,
	};
	int error = cmd_write(&w, mr->mr.context);

	if (error)
		return error;
	mr->mr.lkey = answer.lkey;
	mr->mr.rkey = answer.rkey;
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		mr->access = (uint32_t)access;
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		mr->mr.pd = wanted->pd;
		mr->mr.context = wanted->pd->context;
	}
	return 0;
}

/* The new range is kept before the device uses it, the old one until it does not any more. */
static int change(struct vb_mr *mr, int flags, const struct ibv_mr *wanted, int access)
{
	bool moves = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	uint32_t rights = flags & IBV_REREG_MR_CHANGE_ACCESS ? (uint32_t)access : mr->access;
	bool keeps = moves && !(rights & IBV_ACCESS_ON_DEMAND);
	int error = keeps ? vb_fork_keep(wanted->addr, wanted->length) : 0;

	if (error) {
		errno = error;
		return IBV_REREG_MR_ERR_DONT_FORK_NEW;
	}
	error = change_command(mr, flags, wanted, access);
	if (error) {
		if (keeps)
			vb_fork_release(wanted->addr, wanted->length);
		errno = error;
		return IBV_REREG_MR_ERR_CMD;
	}
	if (moves) {
		if (mr->is_kept)
			vb_fork_release(mr->mr.addr, mr->mr.length);
		mr->is_kept = keeps;
		mr->mr.addr = wanted->addr;
		mr->mr.length = wanted->length;
	}
	return 0;
}

VB_EXPORT int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
			   size_t length, int access)
{
	const struct ibv_mr wanted = { .pd = pd, .addr = addr, .length = length };

	if (!vb_is_ours(mr->context))
		return FOREIGN(ibv_rereg_mr, mr, flags, pd, addr, length, access);
	if (!is_change_sound(vb_mr_of(mr), flags, &wanted, access)) {
		errno = EINVAL;
		return IBV_REREG_MR_ERR_INPUT;
	}
	return change(vb_mr_of(mr), flags, &wanted, access);
}

VB_EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
	struct vb_mr *own = vb_mr_of(mr);
	int error = 0;

	if (!vb_is_ours(mr->context))
		return FOREIGN(ibv_dereg_mr, mr);
	if (own->kind != VB_MR_NULL)
		error = cmd_destroy(mr->context, UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY,
				    UVERBS_ATTR_DESTROY_MR_HANDLE, mr->handle);
	if (error)
		return error;
	if (own->is_kept)
		vb_fork_release(mr->addr, mr->length);
	free(own);
	return 0;
}

/* --- the rest --- */

#define ADVICE_SGE_MAX (UINT16_MAX / sizeof(struct ibv_sge)) /* an attribute's length is 16 bits \
							      */

int vb_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		 struct ibv_sge *sg_list, uint32_t num_sge)
{
	struct cmd cmd = cmd_new(UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR);

	if (num_sge > ADVICE_SGE_MAX)
		return EINVAL;
	cmd_object(&cmd, UVERBS_ATTR_ADVISE_MR_PD_HANDLE, pd->handle);
	cmd_in_u64(&cmd, UVERBS_ATTR_ADVISE_MR_ADVICE, advice);
	cmd_in_u32(&cmd, UVERBS_ATTR_ADVISE_MR_FLAGS, flags);
	cmd_in(&cmd, UVERBS_ATTR_ADVISE_MR_SGE_LIST, sg_list, num_sge * sizeof *sg_list);
	return cmd_send(&cmd, pd->context);
}

VB_EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	struct cmd cmd = cmd_new(UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR);
	uint64_t length = 0;
	struct vb_mr *mr;
	int error;

	if (!vb_is_ours(pd->context))
		return FOREIGN(ibv_import_mr, pd, mr_handle);
	mr = vb_mr_new(pd, VB_MR_IMPORTED, NULL, 0);
	if (!mr)
		return NULL;
	mr->mr.handle = mr_handle;
	cmd_object(&cmd, UVERBS_ATTR_QUERY_MR_HANDLE, mr_handle);
	cmd_out(&cmd, UVERBS_ATTR_QUERY_MR_RESP_LKEY, &mr->mr.lkey, sizeof mr->mr.lkey);
	cmd_out(&cmd, UVERBS_ATTR_QUERY_MR_RESP_RKEY, &mr->mr.rkey, sizeof mr->mr.rkey);
	cmd_out(&cmd, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, &length, sizeof length);
	error = cmd_send(&cmd, pd->context);
	mr->mr.length = length;
	return mr_unless(error, mr);
}

VB_EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
	if (!vb_is_ours(mr->context)) {
		FOREIGN(ibv_unimport_mr, mr);
		return;
	}
	vb_unimport(mr->context, CHANNEL_MR, mr->handle);
	free(mr);
}
