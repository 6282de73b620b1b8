/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pages of device memory of an open file.
 *
 * They are in a file of the fabric's directory, made for the first buffer, so that an importer can
 * map them; it lays those that it imported over its own view, where its device finds them.  Without
 * a fabric they are in the same memory as the doorbell pages.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "emu/uverbs/shared.h"

#define DEVICE_BYTES ((size_t)UV_DEVICE_PAGES * UV_PAGE_BYTES)

static struct abroad_ref self_ref(const struct uv_file *file)
{
	return (struct abroad_ref){
		file->dev->abroad.self, file->dev->abroad.generation,
		ABROAD_OF_FILE(file->number),
	};
}

uint8_t *file_device_memory(const struct uv_file *file, uint32_t page)
{
	return file->pages.view + (size_t)(UV_PAGE_DEVICE + page) * UV_PAGE_BYTES;
}

/* Pages of @fd become what the view shows from @page on. */
static int view_lay(const struct uv_file *file, uint32_t page, uint32_t pages, int fd, off_t offset)
{
	void *at = mmap(file_device_memory(file, page), (size_t)pages * UV_PAGE_BYTES,
			PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, offset);

	return at == MAP_FAILED ? -errno : 0;
}

static int memory_open(const struct uv_file *file, const struct abroad_ref *of, bool creates)
{
	const struct abroad *abroad = &file->dev->abroad;

	return abroad->memory(abroad->ctx, of, creates ? DEVICE_BYTES : 0);
}

/* If it can't be made, the buffers are this process's alone. */
static void device_file_make(struct uv_file *file)
{
	const struct abroad_ref self = self_ref(file);
	int fd;

	if (file->pages.has_device_file || !file->told)
		return;
	fd = memory_open(file, &self, true);
	if (fd < 0)
		return;
	file->pages.has_device_file = !view_lay(file, 0, UV_DEVICE_PAGES, fd, 0);
	close(fd);
}

void file_device_end(struct uv_file *file)
{
	const struct abroad_ref self = self_ref(file);

	if (file->pages.has_device_file)
		file->dev->abroad.memory_end(file->dev->abroad.ctx, &self);
	file->pages.has_device_file = false;
}

/* The first page behind the buffer that begins at @page. */
static uint32_t device_skip(const struct uv_pages *pages, uint32_t page)
{
	return page + pages->device_pages[page];
}

static int pages_reserve(struct uv_pages *p, uint32_t pages)
{
	uint32_t first = 0;

	for (uint32_t page = 0; page < UV_DEVICE_PAGES && page - first < pages;) {
		if (p->device_pages[page])
			first = page = device_skip(p, page);
		else
			page++;
	}
	if (!pages || pages > UV_DEVICE_PAGES - first)
		return -ENOMEM;
	p->device_pages[first] = (uint8_t)pages;
	return (int)first;
}

int file_device_take(struct uv_file *file, uint32_t pages)
{
	int first;

	device_file_make(file);
	first = pages_reserve(&file->pages, pages);
	if (first >= 0)
		memset(file_device_memory(file, (uint32_t)first), 0, (size_t)pages * UV_PAGE_BYTES);
	return first;
}

static bool has_all(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size == (off_t)DEVICE_BYTES;
}

static int far_lay(struct uv_file *file, uint32_t page, const struct uv_far_pages *far)
{
	int fd = memory_open(file, &far->of, false);
	int ret = fd < 0 ? fd : has_all(fd) ? 0 : -EIO;

	if (!ret)
		ret = view_lay(file, page, file->pages.device_pages[page], fd,
			       (off_t)far->page * UV_PAGE_BYTES);
	if (fd >= 0)
		close(fd);
	return ret;
}

int file_device_import(struct uv_file *file, uint32_t pages, const struct abroad_ref *from,
		       uint32_t page)
{
	const struct uv_far_pages far = { *from, page };
	int first, ret;

	if (page >= UV_DEVICE_PAGES || pages > UV_DEVICE_PAGES - page)
		return -ENOENT;		/* what another process says is not trusted */
	device_file_make(file);
	first = file->pages.has_device_file ? pages_reserve(&file->pages, pages) : -EOPNOTSUPP;
	if (first < 0)
		return first;
	ret = far_lay(file, (uint32_t)first, &far);
	if (ret) {
		file->pages.device_pages[first] = 0;
		return ret;
	}
	file->pages.far[first] = far;
	return first;
}

/* What was laid over goes; if its own page does not come back it is never used again. */
void file_device_give(struct uv_file *file, uint32_t page)
{
	const struct uv_far_pages own = { self_ref(file), page };

	assert(file->pages.device_pages[page]);
	if (file->pages.far[page].of.generation && far_lay(file, page, &own))
		return;
	file->pages.far[page] = (struct uv_far_pages){ { 0 }, 0 };
	file->pages.device_pages[page] = 0;
}

int file_device_open(const struct uv_file *file, uint32_t page, off_t *offset_out)
{
	const struct uv_far_pages *far = &file->pages.far[page];
	const struct abroad_ref self = self_ref(file);
	bool is_far = far->of.generation != 0;
	int fd;

	*offset_out = (off_t)(is_far ? far->page : page) * UV_PAGE_BYTES;
	if (file->pages.has_device_file)
		return memory_open(file, is_far ? &far->of : &self, false);
	*offset_out += (off_t)UV_PAGE_DEVICE * UV_PAGE_BYTES;
	fd = fcntl(file->pages.fd, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}
