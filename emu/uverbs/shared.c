/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects that processes share; see shared.h for the idea and emu/obj/abroad.h for the entries.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "emu/engine/engine.h"
#include "emu/uverbs/shared.h"
#include "emu/uverbs/uverbs.h"

#define READS_MAX	8	/* of an entry that changes while it is read */

static bool is_sharable(const struct emu_obj *obj)
{
	return obj->type == OBJ_PD || obj->type == OBJ_MR || obj->type == OBJ_DM;
}

/* --- what others see --- */

void shared_file_tell(struct uv_file *file)
{
	struct abroad *abroad = &file->dev->abroad;

	if (!file->ino || !abroad->ctx || file->number >= ABROAD_FILES)
		return;
	if (!file->told)
		file->told = abroad->take(abroad->ctx, ABROAD_OF_FILE(file->number));
	if (!file->told)
		return;
	file->told->dev = file->dev_of_fd;
	file->told->ino = file->ino;
	file->told->static_pages = file->pages.static_count;
	file->told->has_dynamic_pages = file->has_dynamic_pages;
	file->told->cqe_version = file->cqe_version;
	file->told->has_context = file->has_context;
	atomic_store(&file->told->state, ABROAD_THERE);
}

void shared_file_end(struct uv_file *file)
{
	if (file->told)
		atomic_store(&file->told->state, ABROAD_NONE);
	file->told = NULL;
}

static void pd_tell(struct abroad_object *told, const struct emu_obj *obj)
{
	told->pdn = ((const struct emu_pd *)obj)->pdn;
}

static void mr_tell(struct abroad_object *told, const struct emu_obj *obj)
{
	const struct emu_mr *mr = (const struct emu_mr *)obj;

	told->pdn = mr->pdn;
	told->key = mr->key;
	told->bytes = mr->bytes;
	told->iova = mr->iova;
}

static void dm_tell(struct abroad_object *told, const struct emu_obj *obj)
{
	const struct uv_dm *dm = (const struct uv_dm *)obj;

	told->page = dm->page;
	told->bytes = dm->bytes;
}

static void (*const tells[OBJ_TYPE_COUNT])(struct abroad_object *, const struct emu_obj *) = {
	[OBJ_PD] = pd_tell, [OBJ_MR] = mr_tell, [OBJ_DM] = dm_tell,
};

static struct abroad_object *entry_take(struct uv_file *file, uint32_t handle)
{
	struct abroad *abroad = &file->dev->abroad;
	uint32_t low = handle & UV_HANDLE_OWN_MASK;

	if (!file->ino || !abroad->ctx || file->number >= ABROAD_FILES ||
	    handle - file->handle_base >= ABROAD_HANDLES)
		return NULL;
	return abroad->take(abroad->ctx, ABROAD_OF_OBJECT(file->number, low));
}

void shared_tell(struct uv_file *file, struct emu_obj *obj)
{
	if (!is_sharable(obj))
		return;
	if (!obj->references)
		obj->references = 1;
	if (!obj->told)
		obj->told = entry_take(file, obj->handle);
	if (!obj->told)
		return;
	atomic_store(&obj->told->state, ABROAD_NONE);
	obj->told->type = obj->type;
	tells[obj->type](obj->told, obj);
	atomic_store(&obj->told->state, ABROAD_THERE);
}

/* --- what is kept for others --- */

/* What a region stands on does not count it as a user any more that a program could do something
 * about. */
static void kept_add(struct emu_obj *obj, uint32_t by)
{
	struct emu_mr *mr = (struct emu_mr *)obj;

	if (obj->type != OBJ_MR)
		return;
	if (mr->pd)
		mr->pd->obj.kept += by;
	if (mr->backing)
		mr->backing->kept += by;
}

static void let_go(struct emu_dev *dev, struct emu_obj *obj)
{
	obj->is_let_go = true;
	obj->next_let_go = dev->let_go;
	dev->let_go = obj;
	kept_add(obj, 1);
}

static void let_go_undo(struct emu_dev *dev, struct emu_obj *obj)
{
	struct emu_obj **at = &dev->let_go;

	while (*at != obj)
		at = &(*at)->next_let_go;
	*at = obj->next_let_go;
	obj->is_let_go = false;
	kept_add(obj, -1u);
}

/* How many hold it, and what stands on it there. */
static unsigned holders(const struct emu_obj *obj, unsigned *users_out)
{
	struct uv_file *file = obj->file;
	const struct abroad *abroad = &file->dev->abroad;

	*users_out = 0;
	if (!obj->told || !file->told)
		return 0;
	return abroad->holders(abroad->ctx, file->told,
			       ABROAD_OF_OBJECT(file->number, obj->handle & UV_HANDLE_OWN_MASK),
			       users_out);
}

/* 0: nobody holds it; 1: others do; -EBUSY they need it. */
static int leave(struct emu_dev *dev, struct emu_obj *obj)
{
	unsigned users, count;

	if (!obj->told)
		return obj->users || obj->aliases;
	atomic_store(&obj->told->state, ABROAD_LEAVING);
	count = holders(obj, &users);
	if (users && obj->type == OBJ_PD) {
		atomic_store(&obj->told->state, ABROAD_THERE);
		dev_why(dev, .why = WHY_CMD_BUSY, .side = WHY_SIDE_COMMAND, .found = users);
		return -EBUSY;
	}
	return count || obj->users || obj->aliases;
}

int shared_release(struct uv_call *call, struct emu_obj *obj)
{
	int ret = obj->type == OBJ_MR ? mr_can_go(call->dev, (struct emu_mr *)obj) : 0;

	if (ret)
		return ret;
	call->keeps_handle = true;
	if (obj->references > 1) {
		obj->references--;
		return 0;
	}
	ret = leave(call->dev, obj);
	if (ret < 0)
		return ret;
	if (ret) {
		obj->references = 0;
		let_go(call->dev, obj);
		return 0;
	}
	call->keeps_handle = false;
	file_object_destroy(call->file, obj);
	return 0;
}

static bool is_free(const struct emu_obj *obj)
{
	unsigned users;

	return !obj->users && !obj->aliases && !holders(obj, &users);
}

static void let_go_end(struct emu_dev *dev)
{
	struct emu_obj **at = &dev->let_go, *obj;

	while ((obj = *at)) {
		struct uv_file *file = obj->file;
		uint32_t handle = obj->handle;

		if (!is_free(obj)) {
			at = &obj->next_let_go;
			continue;
		}
		file_object_destroy(file, obj);
		file_handle_drop(file, handle);
		at = &dev->let_go;	/* a domain may have waited for its regions */
	}
}

void shared_look(struct emu_dev *dev)
{
	if (dev->let_go)
		let_go_end(dev);
	if (dev->closing)
		files_end(dev);
	for (struct emu_proxy *p = dev->proxies; p; p = p->next_of_all)
		if (p->hold)
			atomic_store(&p->hold->users, p->obj->users);
}

/* --- proxies --- */

static struct emu_proxy **bucket(const struct uv_file *file, uint32_t handle)
{
	return (struct emu_proxy **)&file->proxy[handle % UV_PROXY_BUCKETS];
}

static struct emu_obj *proxy_find(const struct uv_file *file, uint32_t handle)
{
	struct emu_proxy *p = *bucket(file, handle);

	while (p && p->obj->handle != handle)
		p = p->next;
	return p ? p->obj : NULL;
}

struct emu_obj *shared_find(const struct uv_file *file, uint32_t handle)
{
	struct emu_obj *obj = proxy_find(file, handle);

	return obj && !obj->is_let_go ? obj : NULL;
}

static void unlink_of_file(struct uv_file *file, struct emu_proxy *proxy)
{
	struct emu_proxy **at = bucket(file, proxy->obj->handle);

	while (*at && *at != proxy)
		at = &(*at)->next;
	if (*at)
		*at = proxy->next;
}

static void unlink_of_all(struct emu_dev *dev, struct emu_proxy *proxy)
{
	struct emu_proxy **at = &dev->proxies;

	while (*at && *at != proxy)
		at = &(*at)->next_of_all;
	if (*at)
		*at = proxy->next_of_all;
}

void shared_forget(struct uv_file *file, struct emu_obj *obj)
{
	struct emu_proxy *proxy = obj->proxy;

	if (obj->is_let_go)
		let_go_undo(file->dev, obj);
	if (obj->told)
		atomic_store(&obj->told->state, ABROAD_NONE);
	if (!proxy)
		return;
	unlink_of_file(file, proxy);
	unlink_of_all(file->dev, proxy);
	if (proxy->hold)
		atomic_store(&proxy->hold->state, ABROAD_NONE);
	if (proxy->target)
		proxy->target->aliases--;
}

/* --- importing --- */

/* Entries are written by one process and read by others; who sees two halves reads again. */
static int entry_read(const struct abroad *abroad, const struct abroad_ref *ref,
		      union abroad_entry *out)
{
	union abroad_entry again;
	int ret = abroad->read(abroad->ctx, ref, out);

	for (int i = 0; !ret && i < READS_MAX; i++) {
		ret = abroad->read(abroad->ctx, ref, &again);
		if (!ret && !memcmp(&again, out, sizeof again))
			return 0;
		*out = again;
	}
	return ret ? ret : -ENOENT;
}

/* The number that a member has given to this open file. */
static int file_search(const struct uv_file *file, struct abroad_ref *ref)
{
	const struct abroad *abroad = &file->dev->abroad;
	union abroad_entry entry;
	int ret = -ENOENT;

	for (uint32_t number = 0; number < ABROAD_FILES; number++) {
		ref->number = ABROAD_OF_FILE(number);
		ret = abroad->read(abroad->ctx, ref, &entry);
		if (ret == -EIO || ret == -EOPNOTSUPP)
			return ret;
		if (!ret && entry.file.state == ABROAD_THERE && entry.file.ino == file->ino &&
		    entry.file.dev == file->dev_of_fd)
			return 0;
	}
	return -ENOENT;
}

/* The file of whoever made @handle; *ref is its entry. */
static int owner_find(const struct uv_file *file, uint32_t handle, struct abroad_ref *ref)
{
	const struct abroad *abroad = &file->dev->abroad;

	if (!abroad->ctx || !file->ino || uv_handle_base(handle) == file->handle_base)
		return -ENOENT;
	if (!(handle & UV_HANDLE_FAR)) {
		*ref = file->origin;
		return 0;
	}
	ref->slot = (handle & ~UV_HANDLE_FAR) >> UV_HANDLE_SLOT_SHIFT;
	ref->generation = abroad->generation_of(abroad->ctx, ref->slot);
	return ref->generation ? file_search(file, ref) : -ENOENT;
}

/* Two domains that were given the same number, the first by a process that is gone. */
static bool number_is_taken(const struct emu_dev *dev, uint32_t pdn, const struct abroad_ref *ref)
{
	for (const struct emu_proxy *p = dev->proxies; p; p = p->next_of_all)
		if (((struct emu_pd *)p->obj)->pdn == pdn && p->hold &&
		    (p->ref.slot != ref->slot || p->ref.generation != ref->generation))
			return true;
	return false;
}

static int pd_proxy(struct uv_file *file, const struct abroad_object *entry,
		    const struct abroad_ref *ref, struct emu_obj **out)
{
	struct emu_pd *pd;

	/* An alias has the number of what it stands for. */
	if (ref->generation && number_is_taken(file->dev, entry->pdn, ref))
		return -EBUSY;
	pd = calloc(1, sizeof *pd);
	if (!pd)
		return -ENOMEM;
	pd->pdn = entry->pdn;
	*out = &pd->obj;
	return 0;
}

static int mr_proxy(struct uv_file *file, const struct abroad_object *entry,
		    const struct abroad_ref *ref, struct emu_obj **out)
{
	struct emu_mr *mr = calloc(1, sizeof *mr);

	(void)file;
	(void)ref;
	if (!mr)
		return -ENOMEM;
	mr->key = entry->key;
	mr->pdn = entry->pdn;
	mr->bytes = entry->bytes;
	mr->iova = entry->iova;
	*out = &mr->obj;
	return 0;
}

static int dm_proxy(struct uv_file *file, const struct abroad_object *entry,
		    const struct abroad_ref *ref, struct emu_obj **out)
{
	struct abroad_ref of_file = { ref->slot, ref->generation,
				      ABROAD_OF_FILE(ref->number >> 16) };
	struct uv_dm *dm = calloc(1, sizeof *dm);
	int page;

	if (!dm)
		return -ENOMEM;
	page = file_device_import(file, uv_dm_pages(entry->bytes), &of_file, entry->page);
	if (page < 0) {
		free(dm);
		return page;
	}
	dm->page = (uint32_t)page;
	dm->bytes = entry->bytes;
	*out = &dm->obj;
	return 0;
}

typedef int proxy_fn(struct uv_file *file, const struct abroad_object *entry,
		     const struct abroad_ref *ref, struct emu_obj **out);

static proxy_fn *const proxies[OBJ_TYPE_COUNT] = {
	[OBJ_PD] = pd_proxy, [OBJ_MR] = mr_proxy, [OBJ_DM] = dm_proxy,
};

/* The object that stands for what @entry describes; its handle is the caller's business. */
static int proxy_make(struct uv_file *file, const struct abroad_object *entry,
		      const struct emu_proxy *as, struct emu_obj **out)
{
	struct emu_proxy *proxy = calloc(1, sizeof *proxy);
	int ret = !proxy ? -ENOMEM : proxies[entry->type] ?
		  proxies[entry->type](file, entry, &as->ref, out) : -EOPNOTSUPP;

	if (ret) {
		free(proxy);
		return ret;
	}
	*proxy = *as;
	proxy->obj = *out;
	(*out)->type = (enum obj_type)entry->type;
	(*out)->file = file;
	(*out)->references = 1;
	(*out)->proxy = proxy;
	if (entry->type == OBJ_PD) {
		proxy->next_of_all = file->dev->proxies;
		file->dev->proxies = proxy;
	}
	return 0;
}

int shared_stand_for(struct uv_file *file, const struct emu_obj *target,
		     const struct emu_proxy *as, struct emu_obj **out)
{
	struct abroad_object entry = { .type = target->type };

	tells[target->type](&entry, target);
	return proxy_make(file, &entry, as, out);
}

static int object_check(const union abroad_entry *entry, enum obj_type type)
{
	if (entry->object.state != ABROAD_THERE || entry->object.type >= OBJ_TYPE_COUNT)
		return -ENOENT;
	return entry->object.type == (uint32_t)type ? 0 : -EINVAL;
}

/* @of_file: the entry of the owner's file.  First held, then looked at. */
static int far_import(struct uv_file *file, const struct abroad_ref *of_file, uint32_t handle,
		      enum obj_type type, struct emu_obj **out)
{
	const struct abroad *abroad = &file->dev->abroad;
	struct emu_proxy as = { .ref = *of_file };
	uint32_t low = handle & UV_HANDLE_OWN_MASK;
	union abroad_entry entry;
	int ret;

	if (low >= ABROAD_HANDLES)
		return -ENOENT;
	as.ref.number = ABROAD_OF_OBJECT(of_file->number >> 16, low);
	as.hold = abroad->hold(abroad->ctx, &as.ref);
	if (!as.hold)
		return -ENOMEM;
	ret = abroad->mark(abroad->ctx, of_file);
	if (!ret)
		ret = entry_read(abroad, &as.ref, &entry);
	if (!ret)
		ret = object_check(&entry, type);
	if (!ret)
		ret = proxy_make(file, &entry.object, &as, out);
	if (ret)
		atomic_store(&as.hold->state, ABROAD_NONE);
	return ret;
}

static int revive(struct uv_file *file, struct emu_obj *obj, enum obj_type type,
		  struct emu_obj **out)
{
	if (obj->type != type)
		return -EINVAL;
	let_go_undo(file->dev, obj);
	obj->references = 1;
	*out = obj;
	return 0;
}

int shared_import(struct uv_file *file, uint32_t handle, enum obj_type type, struct emu_obj **out)
{
	struct emu_obj *obj = proxy_find(file, handle);
	struct abroad_ref ref;
	int ret;

	if (obj)
		return revive(file, obj, type, out);
	ret = owner_find(file, handle, &ref);
	if (!ret)
		ret = far_import(file, &ref, handle, type, out);
	if (ret)
		return ret;
	(*out)->handle = handle;
	(*out)->proxy->next = *bucket(file, handle);
	*bucket(file, handle) = (*out)->proxy;
	return 0;
}

void shared_count(struct uv_file *file, struct emu_obj *obj)
{
	if (file->counts_imports)
		obj->references++;
}

/* --- for the channels --- */

static const enum obj_type import_types[] = {
	[UV_IMPORT_PD] = OBJ_PD, [UV_IMPORT_MR] = OBJ_MR, [UV_IMPORT_DM] = OBJ_DM,
};

enum obj_type shared_type(enum uv_import kind)
{
	return import_types[kind];
}

static void unimport(struct uv_file *file, struct emu_obj *obj)
{
	if (obj->references > 1) {
		obj->references--;
	} else if (obj->users || leave(file->dev, obj)) {
		obj->references = 0;
		let_go(file->dev, obj);
	} else {
		uint32_t handle = obj->handle;

		file_object_destroy(file, obj);
		file_handle_drop(file, handle);
	}
}

void uv_unimport(struct uv_file *file, enum uv_import kind, uint32_t handle)
{
	struct engine *engine = file->dev->engine;
	struct emu_obj *obj;

	engine_enter(engine);
	if (!file_handle_find(file, handle, shared_type(kind), &obj))
		unimport(file, obj);
	shared_look(file->dev);
	engine_leave(engine);
}

/* Whoever opened it first has its entry; of an importer only its objects count. */
bool uv_file_is_wanted(struct uv_file *file)
{
	struct engine *engine = file->dev->engine;
	bool is_wanted;

	engine_enter(engine);
	is_wanted = file->told && !file->is_imported;
	for (uint32_t n = 0; n < file->handle_end && file->told && !is_wanted; n++)
		is_wanted = file_handle_at(file, n) && file_handle_at(file, n)->told;
	engine_leave(engine);
	return is_wanted;
}

void uv_counts_imports(struct uv_file *file)
{
	struct engine *engine = file->dev->engine;

	engine_enter(engine);
	file->counts_imports = true;
	engine_leave(engine);
}
