/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Aliases: an object of one open file that stands for an object of another one of this function.
 *
 * So a domain gets a handle in a file that is only there to be passed on, and an imported
 * object one in the importer's own context.  The object stays for as long as it has aliases,
 * also when its file is closed: such a file is kept, with nothing else in it, until they are
 * gone. / */
#include <errno.h>
#include "emu/engine/engine.h"
#include "emu/uverbs/shared.h"
#include "emu/uverbs/uverbs.h"

/* Lock held. */
static int alias_make(struct uv_file *to, struct emu_obj *target, uint32_t *handle_out)
{
	const struct emu_proxy as = { .target = target };
	struct emu_obj *obj;
	int ret = shared_stand_for(to, target, &as, &obj);

	if (ret)
		return ret;
	target->aliases++;
	ret = file_handle_add(to, obj);
	if (ret) {
		file_object_destroy(to, obj);
		return ret;
	}
	shared_tell(to, obj);
	*handle_out = obj->handle;
	return 0;
}

/* What an import made only for the alias is the alias's alone. */
static int target_find(struct uv_file *from, enum obj_type type, uint32_t handle,
		       struct emu_obj **out)
{
	int ret = file_handle_find(from, handle, type, out);

	return ret == -ENOENT ? shared_import(from, handle, type, out) : ret;
}

int uv_share(struct uv_file *from, struct uv_file *to, enum uv_import kind, uint32_t handle,
	     uint32_t *handle_out)
{
	struct emu_obj *target;
	int ret;

	engine_enter(to->dev->engine);
	ret = target_find(from, shared_type(kind), handle, &target);
	if (!ret)
		ret = alias_make(to, target, handle_out);
	if (ret)
		dev_why(to->dev, .why = ret == -EBUSY ? WHY_CMD_BUSY : WHY_CMD_HANDLE,
			.side = WHY_SIDE_COMMAND, .found = handle);
	engine_leave(to->dev->engine);
	return ret;
}
