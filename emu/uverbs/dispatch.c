/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From an application's ioctl to a handler, and back; see dispatch.h.
 *
 * All rules of the ioctl framing are here and only here.  The command and each input are
 * copied once, and only the copies are examined.
 *
 * Source: device-abi B.1.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include "emu/engine/engine.h"
#include "emu/mem/mem.h"
#include "emu/uverbs/dispatch.h"
#include "emu/uverbs/file.h"
#include "emu/uverbs/shared.h"
#include "emu/uverbs/uverbs.h"

#define DRIVER_MLX5		1u	/* enum rdma_driver_id */
#define IOCTL_BYTES_MAX		4096u
#define IOCTL_ATTRS_MAX							\
	((IOCTL_BYTES_MAX - sizeof(struct ib_uverbs_ioctl_hdr)) / sizeof(struct ib_uverbs_attr))

struct uv_ioctl {
	struct uv_call call;
	uint64_t addr;
	struct ib_uverbs_ioctl_hdr header;
	struct ib_uverbs_attr attr[IOCTL_ATTRS_MAX];
};

/* --- reasons --- */

static const struct errno_reason {
	int error;
	enum why why;
} errno_reasons[] = {
	{ EINVAL, WHY_CMD_VALUE }, { EFAULT, WHY_CMD_MEMORY }, { ENOENT, WHY_CMD_HANDLE },
	{ EBADF, WHY_CMD_HANDLE }, { EBUSY, WHY_CMD_BUSY }, { ENOMEM, WHY_CMD_LIMIT },
	{ EMFILE, WHY_CMD_LIMIT }, { ENFILE, WHY_CMD_LIMIT }, { ENOSPC, WHY_CMD_ATTRIBUTES },
	{ EOPNOTSUPP, WHY_CMD_UNSUPPORTED }, { EPROTONOSUPPORT, WHY_CMD_UNSUPPORTED },
	{ ENOSYS, WHY_CMD_UNSUPPORTED }, { EPERM, WHY_CMD_CAPABILITY },
};

static enum why errno_reason(int error)
{
	for (size_t i = 0; i < sizeof errno_reasons / sizeof *errno_reasons; i++)
		if (errno_reasons[i].error == error)
			return errno_reasons[i].why;
	return WHY_CMD_VALUE;
}

int uv_refuse(struct uv_call *call, enum why why, int error)
{
	call->why = why;
	return error;
}

static int refuse_attr(struct uv_call *call, uint16_t id, enum why why, int error)
{
	call->culprit = id;
	return uv_refuse(call, why, error);
}

void uv_call_begin(struct uv_call *call, struct uv_file *file)
{
	call->file = file;
	call->dev = file->dev;
	call->engine = file->dev->engine;
	call->created_fd = -1;
	engine_enter(call->engine);
}

/* An object function may have noted a more exact reason; then that one stands alone.
 * ENODATA is an answer, not a refusal. */
int uv_call_end(struct uv_call *call, int result, uint64_t reasons_before)
{
	bool is_refusal = result < 0 && result != -ENODATA && !call->is_probe;

	if (is_refusal && call->dev->why->made == reasons_before)
		dev_why(call->dev, .why = call->why ? call->why : errno_reason(-result),
			.side = WHY_SIDE_COMMAND,
			.addr = (uint64_t)call->object << 32 | call->number,
			.bytes = call->culprit, .found = (uint64_t)-result);
	uv_call_drop(call);
	shared_look(call->dev);
	engine_leave(call->engine);
	return result;
}

/* --- rows --- */

const struct uv_method *uv_method_find(const struct uv_method *table, unsigned count,
				       uint32_t object, uint32_t method)
{
	for (unsigned i = 0; i < count; i++)
		if (table[i].object == object && table[i].method == method)
			return &table[i];
	return NULL;
}

int uv_row_find(const struct uv_method *method, uint16_t id)
{
	for (unsigned i = 0; i < method->attr_count; i++)
		if (method->attr[i].id == id)
			return (int)i;
	return -1;
}

static struct uv_slot *slot_of(struct uv_call *call, uint16_t id)
{
	int row = uv_row_find(call->method, id);

	assert(row >= 0);
	return &call->slot[row];
}

bool uv_has(struct uv_call *call, uint16_t id)
{
	return slot_of(call, id)->is_given;
}

const void *uv_in(struct uv_call *call, uint16_t id)
{
	return slot_of(call, id)->bytes;
}

uint64_t uv_number(struct uv_call *call, uint16_t id)
{
	int row = uv_row_find(call->method, id);
	uint64_t number = 0;

	assert(row >= 0 && call->method->attr[row].size <= sizeof number);
	if (call->slot[row].bytes)
		memcpy(&number, call->slot[row].bytes, call->method->attr[row].size);
	return number;
}

unsigned uv_choice(struct uv_call *call, uint16_t id)
{
	return slot_of(call, id)->given.choice;
}

struct emu_obj *uv_obj(struct uv_call *call, uint16_t id)
{
	return slot_of(call, id)->obj;
}

struct emu_pd *uv_pd(struct uv_call *call, uint16_t id)
{
	return (struct emu_pd *)uv_obj(call, id);
}

struct emu_mr *uv_mr(struct uv_call *call, uint16_t id)
{
	return (struct emu_mr *)uv_obj(call, id);
}

struct emu_mw *uv_mw(struct uv_call *call, uint16_t id)
{
	return (struct emu_mw *)uv_obj(call, id);
}

struct emu_cq *uv_cq(struct uv_call *call, uint16_t id)
{
	return (struct emu_cq *)uv_obj(call, id);
}

struct emu_channel *uv_channel(struct uv_call *call, uint16_t id)
{
	return (struct emu_channel *)uv_obj(call, id);
}

struct emu_srq *uv_srq(struct uv_call *call, uint16_t id)
{
	return (struct emu_srq *)uv_obj(call, id);
}

struct emu_wq *uv_wq(struct uv_call *call, uint16_t id)
{
	return (struct emu_wq *)uv_obj(call, id);
}

struct emu_rwq_table *uv_rwq_table(struct uv_call *call, uint16_t id)
{
	return (struct emu_rwq_table *)uv_obj(call, id);
}

struct emu_xrcd *uv_xrcd(struct uv_call *call, uint16_t id)
{
	return (struct emu_xrcd *)uv_obj(call, id);
}

struct emu_qp *uv_qp(struct uv_call *call, uint16_t id)
{
	struct emu_obj *obj = uv_obj(call, id);

	return obj ? file_qp(obj) : NULL;
}

unsigned uv_room(struct uv_call *call, uint16_t id)
{
	struct uv_slot *slot = slot_of(call, id);

	return slot->is_given ? slot->given.bytes : 0;
}

void *uv_stage(struct uv_call *call, uint16_t id, unsigned count)
{
	struct uv_slot *slot = slot_of(call, id);

	assert(slot->is_given && count <= slot->given.bytes);
	free(slot->bytes);
	slot->bytes = calloc(1, count ? count : 1);
	slot->staged_bytes = count;
	if (!slot->bytes)
		call->lacks_memory = true;
	return slot->bytes;
}

void uv_put(struct uv_call *call, uint16_t id, const void *bytes, unsigned count)
{
	unsigned room = uv_room(call, id);
	void *staged;

	if (!uv_has(call, id))
		return;
	count = count < room ? count : room;
	staged = uv_stage(call, id, count);
	if (staged)
		memcpy(staged, bytes, count);
}

static bool is_output(const struct uv_attr *row)
{
	return row->kind == UV_OUT;
}

void uv_call_drop(struct uv_call *call)
{
	for (unsigned i = 0; call->method && i < call->method->attr_count; i++) {
		if (!is_output(&call->method->attr[i]))
			continue;
		free(call->slot[i].bytes);
		call->slot[i].bytes = NULL;
	}
}

/* --- taking what was given --- */

static int given_copy(const struct uv_given *given, unsigned from, void *out, unsigned count)
{
	if (!count)
		return 0;
	if (given->inline_bytes)
		memcpy(out, given->inline_bytes + from, count);
	else if (mem_copy_in(out, given->addr + from, count))
		return -EFAULT;
	return 0;
}

unsigned uv_count(struct uv_call *call, uint16_t id)
{
	int row = uv_row_find(call->method, id);

	assert(row >= 0 && call->method->attr[row].is_array);
	return uv_room(call, id) / call->method->attr[row].size;
}

int uv_read(struct uv_call *call, uint16_t id, unsigned index, void *out)
{
	int row = uv_row_find(call->method, id);
	unsigned bytes = call->method->attr[row].size;

	assert(index < uv_count(call, id));
	return given_copy(&call->slot[row].given, index * bytes, out, bytes);
}

/* A longer structure from the future is fine as long as it asks for nothing new. */
static int tail_check(const struct uv_given *given, unsigned from)
{
	uint8_t piece[256];

	while (from < given->bytes) {
		unsigned count = given->bytes - from;

		if (count > sizeof piece)
			count = sizeof piece;
		if (given_copy(given, from, piece, count))
			return -EFAULT;
		for (unsigned i = 0; i < count; i++)
			if (piece[i])
				return -EOPNOTSUPP;
		from += count;
	}
	return 0;
}

static int take_in(struct uv_call *call, const struct uv_attr *row, struct uv_slot *slot)
{
	const struct uv_given *given = &slot->given;
	unsigned count = given->bytes < row->size ? given->bytes : row->size;
	int ret = row->grows && !row->has_list ? tail_check(given, row->size) : 0;

	if (ret)
		return ret;
	assert(call->in_used + row->size <= sizeof call->in);
	slot->bytes = call->in + call->in_used;
	call->in_used += (row->size + 7u) & ~7u;
	return given_copy(given, 0, slot->bytes, count);
}

int uv_list(struct uv_call *call, uint16_t id, void *out, unsigned count)
{
	int row = uv_row_find(call->method, id);
	const struct uv_given *given = &call->slot[row].given;
	unsigned at = call->method->attr[row].size;

	call->culprit = id;
	if (given->bytes < at || given->bytes - at < count)
		return uv_refuse(call, WHY_CMD_ATTRIBUTES, -ENOSPC);
	if (given_copy(given, at, out, count))
		return -EFAULT;
	return tail_check(given, at + count);
}

static int take_flags(struct uv_call *call, const struct uv_attr *row, struct uv_slot *slot)
{
	uint64_t flags;
	int ret;

	if (slot->given.bytes != 4 && slot->given.bytes != 8)
		return -EINVAL;
	ret = take_in(call, row, slot);
	if (ret)
		return ret;
	memcpy(&flags, slot->bytes, sizeof flags);
	return flags & ~row->flags ? -EINVAL : 0;
}

int uv_take(struct uv_call *call, unsigned index, const struct uv_given *given)
{
	const struct uv_attr *row = &call->method->attr[index];
	struct uv_slot *slot = &call->slot[index];
	bool has_number = row->kind >= UV_NEW && row->kind <= UV_FD_USE;

	call->culprit = row->id;
	slot->given = *given;
	if (has_number ? given->bytes != 0 : given->bytes < row->min)
		return uv_refuse(call, WHY_CMD_ATTRIBUTES, -EINVAL);
	if (!has_number && !row->grows && !row->is_array && given->bytes > row->size)
		return uv_refuse(call, WHY_CMD_ATTRIBUTES, -EINVAL);
	if (row->is_array && given->bytes % row->size)
		return uv_refuse(call, WHY_CMD_ATTRIBUTES, -EINVAL);
	if (row->is_array && !given->inline_bytes && mem_probe(given->addr, given->bytes, 0))
		return uv_refuse(call, WHY_CMD_MEMORY, -EFAULT);
	if (row->kind == UV_ENUM && given->bytes != row->choice_bytes[given->choice])
		return uv_refuse(call, WHY_CMD_ATTRIBUTES, -EINVAL);
	slot->is_given = true;
	if ((row->kind == UV_IN || row->kind == UV_ENUM) && !row->is_array)
		return take_in(call, row, slot);
	return row->kind == UV_FLAGS ? take_flags(call, row, slot) : 0;
}

/* --- running --- */

static int mandatory_check(struct uv_call *call)
{
	for (unsigned i = 0; i < call->method->attr_count; i++) {
		const struct uv_attr *row = &call->method->attr[i];

		if (row->place == UV_ATTR && row->need == UV_MANDATORY && !call->slot[i].is_given)
			return refuse_attr(call, row->id, WHY_CMD_ATTRIBUTES, -EINVAL);
	}
	return 0;
}

/* Handles inside CORE_IN become given numbers.  A negative one names no channel. */
static void core_number_take(struct uv_call *call, const struct uv_attr *row, struct uv_slot *slot)
{
	const uint8_t *core = uv_in(call, UVERBS_ATTR_CORE_IN);
	uint32_t number;

	if (row->applies && !row->applies(core))
		return;
	memcpy(&number, core + row->at, sizeof number);
	slot->is_given = row->kind != UV_FD_USE || (int32_t)number >= 0;
	slot->given.addr = row->kind == UV_FD_USE ? (uint64_t)(int64_t)(int32_t)number : number;
}

/* Each use in such a place is an import of its own. */
static int import_find(struct uv_call *call, const struct uv_attr *row, struct uv_slot *slot)
{
	int ret = file_handle_find(call->file, slot->given.addr, row->obj, &slot->obj);

	if (!ret)
		shared_count(call->file, slot->obj);
	else if (ret == -ENOENT && slot->given.addr <= UINT32_MAX)
		ret = shared_import(call->file, (uint32_t)slot->given.addr, row->obj, &slot->obj);
	return ret;
}

static int object_find(struct uv_call *call, const struct uv_attr *row, struct uv_slot *slot)
{
	int ret;

	if (row->kind == UV_FD_USE)
		ret = file_event_fd_find(call->file, (int64_t)slot->given.addr, row->obj,
					 &slot->obj);
	else if (row->imports)
		ret = import_find(call, row, slot);
	else
		ret = file_handle_find(call->file, slot->given.addr, row->obj, &slot->obj);
	if (ret)
		return refuse_attr(call, row->id, WHY_CMD_HANDLE, ret);
	if (row->kind == UV_DESTROY && slot->obj->users > slot->obj->kept)
		return refuse_attr(call, row->id, WHY_CMD_BUSY, -EBUSY);
	return 0;
}

static int objects_find(struct uv_call *call)
{
	for (unsigned i = 0; i < call->method->attr_count; i++) {
		const struct uv_attr *row = &call->method->attr[i];
		struct uv_slot *slot = &call->slot[i];
		int ret;

		if (row->kind != UV_USE && row->kind != UV_DESTROY && row->kind != UV_FD_USE)
			continue;
		if (row->place == UV_CORE)
			core_number_take(call, row, slot);
		ret = slot->is_given ? object_find(call, row, slot) : 0;
		if (ret)
			return ret;
	}
	return 0;
}

/* Write commands carry their new handle or descriptor inside the staged CORE_OUT. */
static void core_number_put(struct uv_call *call, const struct uv_attr *row, uint32_t number)
{
	struct uv_slot *core = slot_of(call, UVERBS_ATTR_CORE_OUT);

	if (core->bytes && row->at + sizeof number <= core->staged_bytes)
		memcpy(core->bytes + row->at, &number, sizeof number);
}

static int zero_out(uint64_t addr, uint32_t bytes)
{
	static const uint8_t zero[256];

	while (bytes) {
		uint32_t count = bytes < sizeof zero ? bytes : sizeof zero;

		if (mem_copy_out(addr, zero, count))
			return -EFAULT;
		addr += count;
		bytes -= count;
	}
	return 0;
}

static int output_write(const struct uv_attr *row, const struct uv_slot *slot)
{
	uint16_t flags = slot->given.flags | UVERBS_ATTR_F_VALID_OUTPUT;
	uint32_t tail = slot->given.bytes - slot->staged_bytes;

	if (slot->staged_bytes && mem_copy_out(slot->given.addr, slot->bytes, slot->staged_bytes))
		return -EFAULT;
	if (row->grows && !row->keeps_tail && zero_out(slot->given.addr + slot->staged_bytes, tail))
		return -EFAULT;
	if (!slot->given.flags_addr)
		return 0;
	return mem_copy_out(slot->given.flags_addr, &flags, sizeof flags) ? -EFAULT : 0;
}

static int number_write(const struct uv_slot *slot, int64_t number)
{
	if (!slot->given.number_addr)
		return 0;
	return mem_copy_out(slot->given.number_addr, &number, sizeof number) ? -EFAULT : 0;
}

/* Numbers first, since they may be part of an output; nobody else runs meanwhile. */
static int results_write(struct uv_call *call)
{
	for (unsigned i = 0; i < call->method->attr_count; i++) {
		const struct uv_attr *row = &call->method->attr[i];
		int64_t number;

		if (row->kind != UV_NEW && row->kind != UV_FD_NEW)
			continue;
		number = row->kind == UV_NEW ? (int64_t)call->created->handle : call->created_fd;
		if (row->place == UV_CORE)
			core_number_put(call, row, (uint32_t)number);
		else if (number_write(&call->slot[i], number))
			return -EFAULT;
	}
	for (unsigned i = 0; i < call->method->attr_count; i++)
		if (is_output(&call->method->attr[i]) && call->slot[i].bytes &&
		    output_write(&call->method->attr[i], &call->slot[i]))
			return refuse_attr(call, call->method->attr[i].id, WHY_CMD_MEMORY, -EFAULT);
	return 0;
}

static int created_publish(struct uv_call *call)
{
	struct emu_obj *obj = call->created;
	int ret;

	obj->file = call->file;
	if (call->created_fd >= 0)
		return file_event_fd_add(call->file, obj, call->created_fd);
	ret = file_handle_add(call->file, obj);
	if (!ret)
		shared_tell(call->file, obj);
	return ret;
}

/* Take back what the handler made; the application never learned of it. */
static void created_undo(struct uv_call *call, bool is_published)
{
	if (call->undo)
		call->undo(call);
	if (!call->created)
		return;
	if (is_published && call->created_fd >= 0)
		file_event_fd_drop(call->file, call->created);
	else if (is_published)
		file_handle_drop(call->file, call->created->handle);
	file_object_destroy(call->file, call->created);
	call->created = NULL;
}

static int results_publish(struct uv_call *call)
{
	bool is_published = false;
	int ret = call->lacks_memory ? -ENOMEM : 0;

	if (!ret && call->created) {
		ret = created_publish(call);
		is_published = !ret;
	}
	if (!ret)
		ret = results_write(call);
	if (ret)
		created_undo(call, is_published);
	return ret;
}

static void destroyed_forget(struct uv_call *call)
{
	for (unsigned i = 0; i < call->method->attr_count; i++) {
		if (call->method->attr[i].kind != UV_DESTROY || !call->slot[i].is_given)
			continue;
		if (!call->keeps_handle)
			file_handle_drop(call->file, (uint32_t)call->slot[i].given.addr);
		call->slot[i].obj = NULL;
	}
}

int uv_call_run(struct uv_call *call)
{
	int ret = mandatory_check(call);

	if (!ret && !call->method->before_context && !call->file->has_context)
		ret = uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	if (!ret)
		ret = objects_find(call);
	if (ret)
		return ret;
	call->culprit = 0;
	ret = call->method->run(call);
	if (ret) {
		assert(!call->created);
		return ret;
	}
	destroyed_forget(call);
	return results_publish(call);
}

/* --- the ioctl --- */

static int header_check(struct uv_call *call, const struct ib_uverbs_ioctl_hdr *header)
{
	if (header->length > IOCTL_BYTES_MAX ||
	    header->length != sizeof *header + header->num_attrs * sizeof(struct ib_uverbs_attr))
		return uv_refuse(call, WHY_CMD_ATTRIBUTES, -EINVAL);
	if (header->reserved1 || header->reserved2)
		return uv_refuse(call, WHY_CMD_ATTRIBUTES, -EPROTONOSUPPORT);
	if (header->driver_id != DRIVER_MLX5)
		return uv_refuse(call, WHY_CMD_ATTRIBUTES, -EINVAL);
	return 0;
}

static int ioctl_read(struct uv_ioctl *io)
{
	struct ib_uverbs_ioctl_hdr *header = &io->header;
	int ret;

	if (mem_copy_in(header, io->addr, sizeof *header))
		return -EFAULT;
	io->call.object = header->object_id;
	io->call.number = header->method_id;
	ret = header_check(&io->call, header);
	if (ret)
		return ret;
	if (header->num_attrs && mem_copy_in(io->attr, io->addr + sizeof *header,
					     header->num_attrs * sizeof *io->attr))
		return -EFAULT;
	return 0;
}

static void given_fill(struct uv_given *given, const struct uv_attr *row,
		       const struct ib_uverbs_attr *attr, uint64_t attr_addr)
{
	bool has_bytes = row->kind == UV_IN || row->kind == UV_FLAGS || row->kind == UV_ENUM ||
			 row->kind == UV_RAW;

	given->bytes = attr->len;
	given->addr = attr->data;
	given->choice = attr->attr_data.enum_data.elem_id;
	if (has_bytes && attr->len <= sizeof attr->data)
		given->inline_bytes = (const uint8_t *)&attr->data;
	if (row->kind == UV_NEW || row->kind == UV_FD_NEW)
		given->number_addr = attr_addr + offsetof(struct ib_uverbs_attr, data);
	given->flags = attr->flags;
	given->flags_addr = attr_addr + offsetof(struct ib_uverbs_attr, flags);
}

/* Beside the bytes of a choice stands which one it is; beside others nothing. */
static int choice_check(struct uv_call *call, const struct uv_attr *row,
			const struct ib_uverbs_attr *attr)
{
	if (row->kind == UV_ENUM && attr->attr_data.enum_data.elem_id >= row->choices)
		return refuse_attr(call, row->id, WHY_CMD_UNSUPPORTED, -EOPNOTSUPP);
	if (row->kind == UV_ENUM ? attr->attr_data.enum_data.reserved : attr->attr_data.reserved)
		return refuse_attr(call, row->id, WHY_CMD_ATTRIBUTES, -EINVAL);
	return 0;
}

static int attr_take(struct uv_ioctl *io, unsigned i)
{
	const struct ib_uverbs_attr *attr = &io->attr[i];
	struct uv_call *call = &io->call;
	struct uv_given given = { 0 };
	int row = uv_row_find(call->method, attr->attr_id), ret;

	if (row < 0 && attr->flags & UVERBS_ATTR_F_MANDATORY)
		return refuse_attr(call, attr->attr_id, WHY_CMD_UNSUPPORTED, -EPROTONOSUPPORT);
	if (row < 0)
		return 0;
	if (call->slot[row].is_given)
		return refuse_attr(call, attr->attr_id, WHY_CMD_ATTRIBUTES, -EINVAL);
	ret = choice_check(call, &call->method->attr[row], attr);
	if (ret)
		return ret;
	given_fill(&given, &call->method->attr[row], attr,
		   io->addr + sizeof io->header + i * sizeof *attr);
	return uv_take(call, (unsigned)row, &given);
}

static int ioctl_run(struct uv_ioctl *io)
{
	const struct ib_uverbs_ioctl_hdr *header = &io->header;
	struct uv_call *call = &io->call;
	int ret = ioctl_read(io);

	if (ret)
		return ret;
	call->method = uv_method_find(uv_methods, uv_method_count, header->object_id,
				      header->method_id);
	if (!call->method)
		return uv_refuse(call, WHY_CMD_UNSUPPORTED, -EPROTONOSUPPORT);
	if (!call->method->run)
		return uv_refuse(call, WHY_CMD_UNSUPPORTED, -EOPNOTSUPP);
	for (unsigned i = 0; i < header->num_attrs; i++) {
		ret = attr_take(io, i);
		if (ret)
			return ret;
	}
	return uv_call_run(call);
}

int uv_ioctl(struct uv_file *file, void *command)
{
	struct uv_ioctl *io = calloc(1, sizeof *io);
	uint64_t reasons;
	int ret;

	if (!io)
		return -ENOMEM;
	io->addr = (uintptr_t)command;
	uv_call_begin(&io->call, file);
	reasons = file->dev->why->made;
	ret = uv_call_end(&io->call, ioctl_run(io), reasons);
	free(io);
	return ret;
}
