/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device memory: a few kilobytes on the NIC, mapped so that the CPU can copy to and from it, in
 * whole words and not otherwise.
 *
 * Source: device-abi B.5, B.9, B.11, H.4; ibv_alloc_dm(3).
 */
#include <errno.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "verbs/cmd.h"
#include "verbs/context.h"
#include "verbs/dm.h"
#include "verbs/foreign.h"
#include "verbs/mr.h"
#include "verbs/ops.h"

#define MAP_DEVICE_MEMORY	8u	/* what the pages of a command descriptor are, see B.5 */
#define WORD_BYTES		4u

/* Where it lies, as the device says. */
struct place { uint64_t start; uint16_t page; };

/* --- copying --- */

static int range_check(const struct vb_dm *dm, uint64_t offset, size_t length)
{
	if (offset > dm->bytes || length > dm->bytes - offset)
		return EFAULT;
	return (offset | length) % WORD_BYTES ? EINVAL : 0;
}

static int copy_to(struct ibv_dm *dm, uint64_t offset, const void *from, size_t length)
{
	volatile uint32_t *there = (uint32_t *)(vb_dm_of(dm)->at + offset);
	int error = range_check(vb_dm_of(dm), offset, length);
	uint32_t word;

	for (size_t i = 0; !error && i < length / WORD_BYTES; i++) {
		memcpy(&word, (const uint8_t *)from + i * WORD_BYTES, WORD_BYTES);
		there[i] = word;
	}
	return error;
}

static int copy_from(void *to, struct ibv_dm *dm, uint64_t offset, size_t length)
{
	const volatile uint32_t *there = (uint32_t *)(vb_dm_of(dm)->at + offset);
	int error = range_check(vb_dm_of(dm), offset, length);
	uint32_t word;

	for (size_t i = 0; !error && i < length / WORD_BYTES; i++) {
		word = there[i];
		memcpy((uint8_t *)to + i * WORD_BYTES, &word, WORD_BYTES);
	}
	return error;
}

/* --- making --- */

static int dm_map(struct vb_dm *dm, const struct place *place)
{
	struct vb_context *c = vb_context_of(dm->dm.context);
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), inside = place->start % page;
	uint64_t index = (uint64_t)(place->page >> 8) << 16 | MAP_DEVICE_MEMORY << 8 |
			 (place->page & 0xffu);
	int error;

	dm->page_bytes = (dm->bytes + inside + page - 1) / page * page;
	error = -c->channel.ops->map(&c->channel, NULL, dm->page_bytes, PROT_READ | PROT_WRITE,
				     MAP_SHARED, index * page, &dm->pages);
	if (!error)
		dm->at = (uint8_t *)dm->pages + inside;
	return error;
}

static struct vb_dm *dm_new(struct ibv_context *context)
{
	struct vb_dm *dm = calloc(1, sizeof *dm);

	if (!dm)
		return NULL;
	dm->dm.context = context;
	dm->dm.memcpy_to_dm = copy_to;
	dm->dm.memcpy_from_dm = copy_from;
	dm->dm.comp_mask = IBV_DM_MASK_HANDLE;
	return dm;
}

static int free_command(struct ibv_context *context, uint32_t handle)
{
	return cmd_destroy(context, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_FREE,
			   UVERBS_ATTR_FREE_DM_HANDLE, handle);
}

static int alloc_command(struct vb_dm *dm, const struct ibv_alloc_dm_attr *attr)
{
	struct cmd cmd = cmd_new(UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC);
	uint64_t type = MLX5_IB_UAPI_DM_TYPE_MEMIC;
	struct place place = { 0 };
	unsigned at = cmd_object(&cmd, UVERBS_ATTR_ALLOC_DM_HANDLE, 0);
	int error;

	cmd_in_u64(&cmd, UVERBS_ATTR_ALLOC_DM_LENGTH, attr->length);
	cmd_in_u32(&cmd, UVERBS_ATTR_ALLOC_DM_ALIGNMENT, attr->log_align_req);
	cmd_in_optional(&cmd, MLX5_IB_ATTR_ALLOC_DM_REQ_TYPE, &type, sizeof type);
	cmd_out(&cmd, MLX5_IB_ATTR_ALLOC_DM_RESP_START_OFFSET, &place.start, sizeof place.start);
	cmd_out(&cmd, MLX5_IB_ATTR_ALLOC_DM_RESP_PAGE_INDEX, &place.page, sizeof place.page);
	error = cmd_send(&cmd, dm->dm.context);
	if (error)
		return error;
	dm->dm.handle = cmd_handle(&cmd, at);
	dm->bytes = attr->length;
	error = dm_map(dm, &place);
	if (error)
		free_command(dm->dm.context, dm->dm.handle);
	return error;
}

static struct ibv_dm *dm_unless(int error, struct vb_dm *dm)
{
	if (!error)
		return &dm->dm;
	free(dm);
	errno = error;
	return NULL;
}

struct ibv_dm *vb_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	struct vb_dm *dm;

	if (attr->comp_mask || attr->length > vb_context_of(context)->attr.max_dm_size)
		return dm_unless(EINVAL, NULL);
	dm = dm_new(context);
	return dm_unless(dm ? alloc_command(dm, attr) : ENOMEM, dm);
}

int vb_free_dm(struct ibv_dm *dm)
{
	struct vb_dm *own = vb_dm_of(dm);
	int error = free_command(dm->context, dm->handle);

	if (error)
		return error;
	munmap(own->pages, own->page_bytes);
	free(own);
	return 0;
}

/* --- registering --- */

#define DM_ACCESS \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_OPTIONAL_RANGE)

/* Its addresses count from the start of the region: nobody knows where it lies. */
struct ibv_mr *vb_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset, size_t length,
			    unsigned int access)
{
	struct cmd cmd = cmd_new(UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG);
	struct vb_mr *mr;
	unsigned at;

	if (access & ~(unsigned)DM_ACCESS || !(access & IBV_ACCESS_ZERO_BASED)) {
		errno = EINVAL;
		return NULL;
	}
	mr = vb_mr_new(pd, VB_MR_DEVICE, NULL, length);
	if (!mr)
		return NULL;
	at = cmd_object(&cmd, UVERBS_ATTR_REG_DM_MR_HANDLE, 0);
	cmd_object(&cmd, UVERBS_ATTR_REG_DM_MR_PD_HANDLE, pd->handle);
	cmd_object(&cmd, UVERBS_ATTR_REG_DM_MR_DM_HANDLE, dm->handle);
	cmd_in_u64(&cmd, UVERBS_ATTR_REG_DM_MR_OFFSET, dm_offset);
	cmd_in_u64(&cmd, UVERBS_ATTR_REG_DM_MR_LENGTH, length);
	cmd_in_u32(&cmd, UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS, access);
	cmd_out(&cmd, UVERBS_ATTR_REG_DM_MR_RESP_LKEY, &mr->mr.lkey, sizeof mr->mr.lkey);
	cmd_out(&cmd, UVERBS_ATTR_REG_DM_MR_RESP_RKEY, &mr->mr.rkey, sizeof mr->mr.rkey);
	return vb_mr_send(mr, &cmd, at);
}

/* --- memory of another process --- */

static int import_command(struct vb_dm *dm, uint32_t handle)
{
	struct cmd cmd = cmd_new(UVERBS_OBJECT_DM, MLX5_IB_METHOD_DM_QUERY);
	struct place place = { 0 };
	int error;

	dm->dm.handle = handle;
	cmd_object(&cmd, MLX5_IB_ATTR_QUERY_DM_REQ_HANDLE, handle);
	cmd_out(&cmd, MLX5_IB_ATTR_QUERY_DM_RESP_START_OFFSET, &place.start, sizeof place.start);
	cmd_out(&cmd, MLX5_IB_ATTR_QUERY_DM_RESP_PAGE_INDEX, &place.page, sizeof place.page);
	cmd_out(&cmd, MLX5_IB_ATTR_QUERY_DM_RESP_LENGTH, &dm->bytes, sizeof dm->bytes);
	error = cmd_send(&cmd, dm->dm.context);
	return error ? error : dm_map(dm, &place);
}

VB_EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	struct vb_dm *dm;

	if (!vb_is_ours(context))
		return FOREIGN(ibv_import_dm, context, dm_handle);
	dm = dm_new(context);
	return dm_unless(dm ? import_command(dm, dm_handle) : ENOMEM, dm);
}

VB_EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
	if (!vb_is_ours(dm->context)) {
		FOREIGN(ibv_unimport_dm, dm);
		return;
	}
	munmap(vb_dm_of(dm)->pages, vb_dm_of(dm)->page_bytes);
	vb_unimport(dm->context, CHANNEL_DM, dm->handle);
	free(dm);
}
