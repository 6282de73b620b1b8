/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Doorbell pages, and mmap() of the device file, device memory included.
 *
 * A doorbell page is ordinary shared memory: what is stored there wakes nobody by itself.  All work
 * is found in doorbell records, which are written before the page is.
 *
 * Source: device-abi B.5.
 */
#include <errno.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "emu/engine/engine.h"
#include "emu/uverbs/file.h"
#include "emu/uverbs/handlers.h"
#include "emu/uverbs/uverbs.h"

#define MMAP_DYNAMIC	9u	/* first mmap command that is not of enum mlx5_ib_mmap_cmd */
#define MMAP_COMMANDS	256u

/* --- objects --- */

static uint64_t page_offset(uint32_t page)
{
	uint64_t pgoff = (uint64_t)(page >> 8) << 16 | MMAP_DYNAMIC << 8 | (page & 0xff);

	return pgoff * UV_PAGE_BYTES;
}

static int uar_create(struct uv_call *call, struct uv_uar **out)
{
	struct uv_uar *uar = calloc(1, sizeof *uar);
	int page = uar ? file_page_take(call->file) : -ENOMEM;

	if (page < 0) {
		free(uar);
		return page;
	}
	uar->obj.type = OBJ_UAR;
	uar->page = (uint32_t)page;
	*out = uar;
	return 0;
}

int on_alloc_uar(struct uv_call *call)
{
	uint64_t type = uv_number(call, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE);
	struct uv_uar *uar;
	int ret;

	if (type != MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF && type != MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC)
		return -EOPNOTSUPP;
	ret = uar_create(call, &uar);
	if (ret)
		return ret;
	call->created = &uar->obj;
	uv_put_number(call, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, uint64_t,
		      page_offset(uar->page));
	uv_put_number(call, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, uint32_t, UV_PAGE_BYTES);
	uv_put_number(call, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, uint32_t, uar->page);
	return 0;
}

int on_destroy_uar(struct uv_call *call)
{
	file_object_destroy(call->file, uv_obj(call, MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE));
	return 0;
}

/* --- mmap() --- */

/* A page that the client allocated. */
static int dynamic_page(struct uv_file *file, uint32_t index)
{
	bool is_static = index <= file->pages.static_count;

	return !is_static && file_page_is_used(file, index) ? (int)index : -EINVAL;
}

/* A page that came with the context. */
static int static_page(struct uv_file *file, uint32_t index)
{
	return index < file->pages.static_count ? (int)index + 1 : -EINVAL;
}

static int counter_page(struct uv_file *file, uint32_t index)
{
	(void)index;
	file_clock_begin(file);
	return UV_PAGE_COUNTER;
}

static int clock_info_page(struct uv_file *file, uint32_t index)
{
	if (index != MLX5_IB_CLOCK_INFO_V1)
		return -EOPNOTSUPP;
	file_clock_begin(file);
	return UV_PAGE_CLOCK_INFO;
}

/* The pages of a buffer in device memory are mapped together. */
static int device_page(struct uv_file *file, uint32_t index)
{
	if (index >= UV_DEVICE_PAGES || !file->pages.device_pages[index])
		return -EINVAL;
	return UV_PAGE_DEVICE + (int)index;
}

static size_t map_bytes(const struct uv_file *file, int page)
{
	return page < UV_PAGE_DEVICE ? UV_PAGE_BYTES :
	       (size_t)file->pages.device_pages[page - UV_PAGE_DEVICE] * UV_PAGE_BYTES;
}

/* What a command of the offset means: a page, or always an errno. */
static const struct mmap_rule {
	int (*page)(struct uv_file *file, uint32_t index);
	int error;
	bool is_read_only;
} mmap_rules[MMAP_DYNAMIC + 1] = {
	[MLX5_IB_MMAP_REGULAR_PAGE] = { .page = static_page },
	[MLX5_IB_MMAP_GET_CONTIGUOUS_PAGES] = { .error = ENOSYS },
	[MLX5_IB_MMAP_WC_PAGE] = { .page = static_page },
	[MLX5_IB_MMAP_NC_PAGE] = { .page = static_page },
	[4] = { .error = EINVAL },
	[MLX5_IB_MMAP_CORE_CLOCK] = { .page = counter_page, .is_read_only = true },
	[MLX5_IB_MMAP_ALLOC_WC] = { .error = EINVAL },
	[MLX5_IB_MMAP_CLOCK_INFO] = { .page = clock_info_page, .is_read_only = true },
	[MLX5_IB_MMAP_DEVICE_MEM] = { .page = device_page },
	[MMAP_DYNAMIC] = { .page = dynamic_page },
};

static int page_find(struct uv_file *file, uint64_t offset, int prot)
{
	uint64_t pgoff = offset / UV_PAGE_BYTES;
	uint32_t command = (pgoff >> 8) % MMAP_COMMANDS;
	uint64_t index = (pgoff & 0xff) | (pgoff >> 16) << 8;
	const struct mmap_rule *rule;

	if (offset % UV_PAGE_BYTES || command > MMAP_DYNAMIC || index >= UV_PAGES)
		return -EINVAL;
	rule = &mmap_rules[command];
	if (rule->is_read_only && prot & PROT_WRITE)
		return -EPERM;
	return rule->page ? rule->page(file, (uint32_t)index) : -rule->error;
}

/* The application may have closed every descriptor it did not know, ours among them. */
static bool pages_are_ours(const struct uv_pages *pages)
{
	struct stat st;

	return !fstat(pages->fd, &st) && st.st_dev == pages->dev && st.st_ino == pages->ino;
}

static int device_page_map(struct uv_file *file, void *hint, int prot, int flags, int page,
			   void **out)
{
	off_t offset;
	int fd = file_device_open(file, (uint32_t)page - UV_PAGE_DEVICE, &offset);
	void *at;

	if (fd < 0)
		return fd;
	at = mmap(hint, map_bytes(file, page), prot, flags, fd, offset);
	close(fd);
	if (at == MAP_FAILED)
		return -ENOMEM;
	*out = at;
	return 0;
}

static int page_map(struct uv_file *file, void *hint, int prot, int flags, int page, void **out)
{
	void *at;

	if (!pages_are_ours(&file->pages))
		return -EIO;
	if (page >= UV_PAGE_DEVICE)
		return device_page_map(file, hint, prot, flags, page, out);
	at = mmap(hint, map_bytes(file, page), prot, flags, file->pages.fd,
		  (off_t)page * UV_PAGE_BYTES);
	if (at == MAP_FAILED)
		return -errno;
	*out = at;
	return 0;
}

static int map_check(struct uv_file *file, int page, size_t bytes, int prot, int flags)
{
	bool is_shared = (flags & MAP_TYPE) == MAP_SHARED ||
			 (flags & MAP_TYPE) == MAP_SHARED_VALIDATE;

	if (!file->has_context || bytes != map_bytes(file, page))
		return -EINVAL;
	if (prot & PROT_EXEC)
		return -EPERM;
	if (!is_shared || flags & (MAP_ANONYMOUS | MAP_HUGETLB))
		return -EINVAL;
	return 0;
}

static int map_run(struct uv_file *file, void *hint, size_t bytes, int prot, int flags,
		   uint64_t offset, void **out)
{
	int page = page_find(file, offset, prot);
	int ret;

	if (page < 0)
		return page;
	ret = map_check(file, page, bytes, prot, flags);
	return ret ? ret : page_map(file, hint, prot, flags, page, out);
}

static enum why map_reason(int error)
{
	return error == -EOPNOTSUPP || error == -ENOSYS ? WHY_CMD_UNSUPPORTED : WHY_CMD_VALUE;
}

int uv_mmap(struct uv_file *file, void *hint, size_t bytes, int prot, int flags,
	    uint64_t offset, void **out)
{
	struct engine *engine = file->dev->engine;
	int ret;

	engine_enter(engine);
	ret = map_run(file, hint, bytes, prot, flags, offset, out);
	if (ret)
		dev_why(file->dev, .why = map_reason(ret), .side = WHY_SIDE_COMMAND,
			.addr = offset, .bytes = bytes, .found = (uint64_t)-ret);
	engine_leave(engine);
	return ret;
}
