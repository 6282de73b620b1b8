/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Doorbell pages.
 *
 * A context has one for arming CQs and a few for send queues, made when the first queue needs them;
 * a page has two registers and a queue is given one in turn.  A thread domain has a page of its
 * own. The kernel must know UVERBS_OBJECT mlx5 UAR, so Linux 5.7 or later.
 *
 * Source: device-abi B.5, B.11, C.5.
 */
#include <errno.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <sys/mman.h>
#include <unistd.h>
#include "hw-models/mlx5_doorbell.h"
#include "verbs/cmd.h"
#include "verbs/context.h"

static int uar_map(struct vb_context *c, struct vb_uar *uar, uint64_t offset, uint32_t bytes)
{
	void *at;
	int error = -c->channel.ops->map(&c->channel, NULL, bytes, PROT_WRITE, MAP_SHARED, offset,
					 &at);

	if (!error)
		uar->page = at;
	return error;
}

static int uar_destroy(struct vb_context *c, uint32_t handle)
{
	return cmd_destroy(&c->base.context, MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY,
			   MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, handle);
}

int vb_uar_alloc(struct vb_context *c, struct vb_uar *uar, bool is_noncached)
{
	struct cmd cmd = cmd_new(MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC);
	unsigned at = cmd_object(&cmd, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, 0);
	uint32_t bytes, page_id;
	uint64_t offset;
	int error;

	/* An enumeration goes as eight bytes. */
	cmd_in_u64(&cmd, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, is_noncached ?
		   MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC : MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF);
	cmd_out(&cmd, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, &offset, sizeof offset);
	cmd_out(&cmd, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, &bytes, sizeof bytes);
	cmd_out(&cmd, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, &page_id, sizeof page_id);
	error = cmd_send(&cmd, &c->base.context);
	if (error)
		return error;
	*uar = (struct vb_uar){ .handle = cmd_handle(&cmd, at), .page_id = page_id,
				.mmap_offset = offset };
	error = uar_map(c, uar, offset, bytes);
	if (error)
		uar_destroy(c, uar->handle);
	return error;
}

void vb_uar_free(struct vb_context *c, struct vb_uar *uar)
{
	if (!uar->page)
		return;
	munmap(uar->page, (size_t)sysconf(_SC_PAGESIZE));
	uar_destroy(c, uar->handle);
	uar->page = NULL;
}

/* The registers of @uar in @reg[0] and @reg[1].  A page that can't combine writes has plain ones.
 */
static void registers_fill(const struct vb_context *c, const struct vb_uar *uar,
			   struct vb_register *reg)
{
	uint32_t stride = c->limits.bf_reg_bytes ? c->limits.bf_reg_bytes : 2 * MLX5_UAR_SEND_BYTES;

	for (unsigned i = 0; i < 2; i++)
		reg[i] = (struct vb_register){
			.at = uar->page + MLX5_UAR_SEND_FIRST + i * stride,
			.bytes = c->limits.bf_reg_bytes / 2, .page_id = uar->page_id,
			.mmap_offset = uar->mmap_offset,
		};
}

/* A part without write combining has only pages of the other kind. */
static int send_uar_alloc(struct vb_context *c, struct vb_uar *uar)
{
	int error = vb_uar_alloc(c, uar, false);

	return error ? vb_uar_alloc(c, uar, true) : 0;
}

int vb_registers_begin(struct vb_context *c)
{
	int error = vb_uar_alloc(c, &c->arm_uar, true);

	return error ? vb_uar_alloc(c, &c->arm_uar, false) : 0;
}

void vb_registers_end(struct vb_context *c)
{
	for (unsigned i = 0; i < VB_UARS; i++)
		vb_uar_free(c, &c->uar[i]);
	vb_uar_free(c, &c->arm_uar);
}

int vb_td_uar_alloc(struct vb_context *c, struct vb_td *td)
{
	struct vb_register both[2];
	int error = send_uar_alloc(c, &td->uar);

	if (error)
		return error;
	registers_fill(c, &td->uar, both);
	td->reg = both[0];
	td->reg.lock.is_unneeded = !td->is_shared;
	return 0;
}

/* Under the context's mutex: a page more, unless there are enough. */
static void registers_grow(struct vb_context *c)
{
	unsigned pages = c->registers / 2;

	if (pages == VB_UARS || send_uar_alloc(c, &c->uar[pages]))
		return;
	registers_fill(c, &c->uar[pages], &c->reg[c->registers]);
	c->registers += 2;
}

struct vb_register *vb_register_for(struct vb_context *c, struct vb_td *td)
{
	struct vb_register *reg = NULL;

	if (td)
		return &td->reg;
	pthread_mutex_lock(&c->base.context.mutex);
	if (c->next_register >= c->registers)
		registers_grow(c);
	if (c->registers)
		reg = &c->reg[c->next_register++ % c->registers];
	pthread_mutex_unlock(&c->base.context.mutex);
	return reg;
}
