/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An open device file: its handles, its event descriptors, its doorbell pages.
 *
 * Threads: the device lock is held, except where uverbs.h says otherwise.
 */
#ifndef EMU_UVERBS_FILE_H
#define EMU_UVERBS_FILE_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "emu/obj/xrcd.h"

#define UV_PAGE_BYTES		4096u
#define UV_PAGES		1024u	/* doorbell pages of a file; page 0 is never used */

/* Behind them in the same memory: pages that the application only reads. */
#define UV_DEVICE_PAGES		32u	/* of device memory, behind them */
enum {
	UV_PAGE_COUNTER = UV_PAGES, UV_PAGE_CLOCK_INFO, UV_PAGE_DEVICE,
	UV_PAGES_END = UV_PAGE_DEVICE + UV_DEVICE_PAGES,
};

/* A completion channel or async file whose descriptor the application has.  It closes that
 * without telling us, so the object is kept until nothing needs it and its number is seen to
 * mean something else. */
struct uv_event_fd {
	struct emu_channel *channel;
	int fd;				/* the number that the application was given */
	dev_t dev;
	ino_t ino;
};

struct uv_pages {
	int fd;				/* memfd, or -1 before the first page */
	dev_t dev;
	ino_t ino;
	uint8_t *view;			/* our own mapping of all of them */
	uint8_t is_used[UV_PAGES];
	uint32_t static_count;		/* pages 1 to this belong to the context itself */
	/* By page of device memory: how many pages belong to the buffer that begins there; and
	 * where they are if not here: in the memory of which open file, from which page on. */
	uint8_t device_pages[UV_DEVICE_PAGES];
	struct uv_far_pages { struct abroad_ref of; uint32_t page; } far[UV_DEVICE_PAGES];
	bool has_device_file;		/* they are in a file that others can open */
};

#define UV_PROXY_BUCKETS	256u

struct uv_file {
	struct emu_dev *dev;
	bool has_context;
	bool has_dynamic_pages;		/* the client allocates its doorbell pages itself */
	uint8_t cqe_version;
	struct number_space handles;	/* handle -> struct emu_obj */
	uint32_t handle_end;		/* above every handle in use */
	struct emu_channel *async;	/* the first async file: events of objects that name none */
	struct uv_event_fd *event_fd;
	unsigned event_fd_count, event_fd_size, event_fd_sweep_at;
	struct uv_pages pages;
	/* See shared.h.  What the command descriptor is known by: */
	uint64_t dev_of_fd, ino;	/* ino 0: nobody else can know it */
	uint32_t number;		/* of this function's files */
	struct abroad_file *told;	/* what the others see of it, or NULL */
	struct abroad_ref origin;	/* of an imported one: whose it was first; slot's entry */
	bool is_imported;
	bool counts_imports;		/* its user tells of the end of each import */
	uint32_t handle_base;		/* in every handle of this process */
	struct emu_proxy *proxy[UV_PROXY_BUCKETS];	/* by handles of others */
	int kept_fd;			/* see uv_file_keeps(); -1 */
	struct uv_file *next_closing;
	struct clock_pages clock;	/* in the device's list once one was mapped */
};

/* A buffer in device memory. */
struct uv_dm {
	struct emu_obj obj;
	uint32_t page;			/* the first, of the pages of device memory */
	uint64_t bytes;			/* as asked: regions end there */
};

static inline uint32_t uv_dm_pages(uint64_t bytes)
{
	return bytes > UV_DEVICE_PAGES * UV_PAGE_BYTES ? UINT32_MAX :
	       (uint32_t)((bytes + UV_PAGE_BYTES - 1) / UV_PAGE_BYTES);
}

/* A doorbell page that the client allocated. */
struct uv_uar {
	struct emu_obj obj;
	uint32_t page;
};

/* Give @obj a handle.  0 or -ENOMEM */
int file_handle_add(struct uv_file *file, struct emu_obj *obj);
void file_handle_drop(struct uv_file *file, uint32_t handle);
/* The object with this number, without what all handles of the file have in common; or NULL. */
struct emu_obj *file_handle_at(const struct uv_file *file, uint32_t number);
/* -ENOENT: no such handle; -EINVAL: an object of another type.  For OBJ_QP see file_qp(). */
int file_handle_find(struct uv_file *file, uint64_t handle, enum obj_type type,
		     struct emu_obj **out);

/* Remember the channel behind @fd.  0, -ENOMEM */
int file_event_fd_add(struct uv_file *file, struct emu_obj *obj, int fd);
void file_event_fd_drop(struct uv_file *file, struct emu_obj *obj);
/* -EBADF: no descriptor of a channel of this file and type; -EINVAL: no descriptor can be that. */
int file_event_fd_find(struct uv_file *file, int64_t fd, enum obj_type type, struct emu_obj **out);

/* Destroy an object of any type that nothing uses; forgets it in the engine before. */
void file_object_destroy(struct uv_file *file, struct emu_obj *obj);

/* A zeroed doorbell page; its index, or -ENOMEM, -EMFILE and what else memfd_create() says. */
int file_page_take(struct uv_file *file);
void file_page_give(struct uv_file *file, uint32_t page);
bool file_page_is_used(const struct uv_file *file, uint32_t page);
/* From now on the time stands in this file's clock pages. */
void file_clock_begin(struct uv_file *file);

/* @pages zeroed pages of device memory in a row: the first of them, or -ENOMEM. */
int file_device_take(struct uv_file *file, uint32_t pages);
/* The same, but they are @from page @page on in the memory of another open file. */
int file_device_import(struct uv_file *file, uint32_t pages, const struct abroad_ref *from,
		       uint32_t page);
void file_device_give(struct uv_file *file, uint32_t page);
/* Where the application's processes and the device see them. */
uint8_t *file_device_memory(const struct uv_file *file, uint32_t page);
/* A descriptor to map the buffer at @page with, which the caller closes, and where in it; or
 * -errno. */
int file_device_open(const struct uv_file *file, uint32_t page, off_t *offset_out);
void file_device_end(struct uv_file *file);

/* Lock held.  Those whose last alias is gone end. */
void files_end(struct emu_dev *dev);

/* Close a handle of a target QP, and the QP if it was the last. */
void file_qp_open_close(struct uv_file *file, struct emu_qp_open *open, uint32_t *events_out);

/* The QP behind an object that was found as one. */
static inline struct emu_qp *file_qp(struct emu_obj *obj)
{
	if (obj->type == OBJ_QP_OPEN)
		return ((struct emu_qp_open *)obj)->qp;
	return (struct emu_qp *)((char *)obj - offsetof(struct emu_qp, obj));
}
#endif
