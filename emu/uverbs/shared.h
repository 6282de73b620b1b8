/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects that processes share: what an open file tells the others, and what stands for objects of
 * other files.
 *
 * A command descriptor that was passed on is the same open file in two processes.  Each of them has
 * a struct uv_file for it and objects of its own; the handle says whose an object is.  What one
 * process made, another one imports: then a proxy stands for it, and the maker keeps it until the
 * last process that holds it lets go or ends.  ibv_import_device(3) has the rules.
 *
 * Threads: the device lock is held, except where uverbs.h says otherwise.
 */
#ifndef EMU_UVERBS_SHARED_H
#define EMU_UVERBS_SHARED_H
#include "emu/uverbs/dispatch.h"
#include "emu/uverbs/file.h"
#include "emu/uverbs/uverbs.h"

/* Handles of whoever opened a file are small; of an importer they name its place in the fabric. */
#define UV_HANDLE_FAR		0x80000000u
#define UV_HANDLE_SLOT_SHIFT	23
#define UV_HANDLE_OWN_MASK	((1u << UV_HANDLE_SLOT_SHIFT) - 1)

static inline uint32_t uv_handle_base(uint32_t handle)
{
	return handle & UV_HANDLE_FAR ? handle & ~UV_HANDLE_OWN_MASK : 0;
}

/* The file is there for others, or what is known of it has changed. */
void shared_file_tell(struct uv_file *file);
void shared_file_end(struct uv_file *file);

/* An object has got its handle, or a region was changed.  Only kinds that can be shared count. */
void shared_tell(struct uv_file *file, struct emu_obj *obj);
/* It is about to be freed. */
void shared_forget(struct uv_file *file, struct emu_obj *obj);

/* What stands for a handle of another process, or NULL. */
struct emu_obj *shared_find(const struct uv_file *file, uint32_t handle);
/* The same; if there is nothing yet it is made.  -ENOENT no such object; -EINVAL of another kind;
 * -EIO its process is gone; -EBUSY the domain's number is in use; -EOPNOTSUPP; -ENOMEM */
int shared_import(struct uv_file *file, uint32_t handle, enum obj_type type, struct emu_obj **out);
/* One import more, if the file's user tells when it ends. */
void shared_count(struct uv_file *file, struct emu_obj *obj);

enum obj_type shared_type(enum uv_import kind);
/* An object of @file, without a handle yet, that is like @target.  -EOPNOTSUPP, -EBUSY, -ENOMEM */
int shared_stand_for(struct uv_file *file, const struct emu_obj *target,
		     const struct emu_proxy *as, struct emu_obj **out);

/* The command gives up one reference of this process.  If it was the last, the object goes; or
 * it is kept for others, and the handle with it.  -EBUSY */
int shared_release(struct uv_call *call, struct emu_obj *obj);

/* A command ends: tell the owners what stands on their domains, and free what nobody holds any
 * more. */
void shared_look(struct emu_dev *dev);
#endif
