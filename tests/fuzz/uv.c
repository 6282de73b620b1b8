/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands from rows; see uv.h.
 */
#include <rdma/ib_user_verbs.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "emu/uverbs/uverbs.h"
#include "tests/fuzz/uv.h"

#define MEMORY_AT	((void *)0x200000000000)

struct uv_memory *uv_memory;
struct uv_file *uv_file;
bool uv_is_torn;

/* Where the next input or output of the command being made goes. */
static size_t in_used, out_used;

void uv_memory_begin(void)
{
	size_t bytes = (sizeof *uv_memory + UV_PAGE - 1) / UV_PAGE * UV_PAGE;

	uv_memory = mmap(MEMORY_AT, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	assert(uv_memory == MEMORY_AT);
	mprotect(uv_memory->constant, UV_PAGE, PROT_READ);
}

void uv_memory_clear(void)
{
	void *at = uv_memory->queue;

	if (uv_is_torn)
		at = mmap(at, sizeof uv_memory->queue, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	assert(at == uv_memory->queue);
	uv_is_torn = false;
	memset(uv_memory, 0, offsetof(struct uv_memory, constant));
}

/*
 * The address sanitizer's heap begins at round addresses, so inputs of a few bytes and many zeros
 * find it: 0x61c000000000 is in front of the first QP.  The device would write its answer there, as
 * a kernel would to its caller's heap.
 */
static uint64_t outside_heap(uint64_t at)
{
	return at >> 44 == 6 ? at | UINT64_C(1) << 63 : at;
}

uint64_t uv_place(struct input *in, const void *right)
{
	uint8_t choice = take8(in);

	switch (choice) {
	default:
		return (uintptr_t)right + (choice >= 0xe0 ? choice & 15 : 0);
	case 1:
		return 0x10;			/* never mapped */
	case 2:
		return (uintptr_t)uv_memory->constant;
	case 3:					/* the last bytes before nothing */
		return (uintptr_t)(uv_memory->constant + UV_PAGE) - take8(in);
	case 4:
		return 0x0000800000000000 - take8(in);
	case 5:
		return outside_heap(take64(in));
	case 6:
		return (uintptr_t)uv_memory->queue[take8(in) % UV_QUEUE_PAGES];
	case 7:
		return (uintptr_t)uv_memory->command + take16(in);
	}
}

struct emu_obj *uv_newest(struct input *in, enum obj_type type)
{
	unsigned skip = take8(in) & 3;
	struct emu_obj *found = NULL;

	for (uint32_t handle = uv_file->handle_end; handle-- > 0;) {
		struct emu_obj *obj = numbers_find(&uv_file->handles, handle);

		if (!obj || obj->type != type)
			continue;
		found = obj;
		if (!skip--)
			break;
	}
	return found;
}

/* The handle for a row, and the object if it has one. */
static uint64_t handle_take(struct input *in, const struct uv_attr *row, struct emu_obj **out)
{
	uint8_t choice = take8(in);
	struct emu_obj *obj = uv_newest(in, choice & 0x80 ? choice % OBJ_TYPE_COUNT : row->obj);

	if (out)
		*out = obj;
	if (choice & 0x40)
		return take64(in);
	return obj ? obj->handle : 0;
}

/* The descriptor for a row; -1: none. */
static int64_t fd_take(struct input *in, const struct uv_attr *row)
{
	uint8_t choice = take8(in);

	if (choice & 0x80)
		return (int32_t)take32(in);
	for (unsigned i = uv_file->event_fd_count; i-- > 0;)
		if (channel_obj(uv_file->event_fd[i].channel)->type == row->obj && !(choice-- & 3))
			return uv_file->event_fd[i].fd;
	return -1;
}

static void twist(struct input *in, uint8_t *bytes, size_t count)
{
	for (unsigned left = count ? 1u + (take8(in) & 3) : 0; left; left--) {
		size_t at = take16(in) % count;

		bytes[at] ^= take8(in);
	}
}

/* --- one buffer: where it is, how long it is --- */

/* What may be wrong with a buffer or handle; anything above is right. */
enum spoil {
	RIGHT, SPOIL_ABSENT, SPOIL_TWICE, SPOIL_SHORT, SPOIL_LONG, SPOIL_LONG_SET, SPOIL_PLACE,
	SPOIL_BYTES, SPOIL_LENGTH, SPOIL_ID, SPOIL_RESERVED, SPOIL_FLAGS, SPOIL_VALUE,
};

static unsigned length_take(struct input *in, const struct uv_attr *row, enum spoil spoil)
{
	unsigned right = (row->size ? row->size : 128) + (row->has_list ? UV_LIST_BYTES : 0);

	switch (spoil) {
	case SPOIL_SHORT:
		return row->min ? row->min - 1u - take8(in) % row->min : 0;
	case SPOIL_LONG: case SPOIL_LONG_SET:
		return right + 1 + take8(in);
	case SPOIL_LENGTH:
		return take16(in);
	default:
		return right;
	}
}

/* Room for @bytes in the application's memory, and what stands there. */
static uint8_t *input_place(const uint8_t *value, unsigned bytes, bool is_tail_set)
{
	unsigned kept = bytes < UV_BYTES_MAX ? bytes : UV_BYTES_MAX;
	uint8_t *at;

	if (in_used + kept > sizeof uv_memory->in)
		in_used = 0;
	at = uv_memory->in + in_used;
	memcpy(at, value, kept);
	if (is_tail_set && kept)
		at[kept - 1] = 1;
	in_used += (kept + 7u) & ~7u;
	return at;
}

static uint8_t *output_place(unsigned bytes)
{
	uint8_t *at;

	if (out_used + bytes > sizeof uv_memory->out)
		out_used = 0;
	at = uv_memory->out + out_used;
	out_used += (bytes + 7u) & ~7u;
	return at;
}

/* Handles inside CORE_IN; the object that the command is about is the last of them. */
static struct emu_obj *core_numbers(struct input *in, const struct uv_method *method,
				    uint32_t numbers[UV_ATTRS_MAX])
{
	struct emu_obj *target = NULL;

	for (unsigned i = 0; i < method->attr_count; i++) {
		const struct uv_attr *row = &method->attr[i];

		if (row->place != UV_CORE)
			continue;
		if (row->kind == UV_USE || row->kind == UV_DESTROY)
			numbers[i] = (uint32_t)handle_take(in, row, &target);
		else if (row->kind == UV_FD_USE)
			numbers[i] = (uint32_t)fd_take(in, row);
	}
	return target;
}

/* The bytes of an input, as they would be right. */
static void input_make(struct input *in, const struct uv_method *method, const struct uv_attr *row,
		       uint8_t value[UV_BYTES_MAX])
{
	uint32_t numbers[UV_ATTRS_MAX] = { 0 };
	bool is_core = method->object == UV_WRITE_OBJECT && row->id == UVERBS_ATTR_CORE_IN;
	struct emu_obj *target = is_core ? core_numbers(in, method, numbers) : NULL;

	uv_value(in, method, row->id, target, value);
	for (unsigned i = 0; is_core && i < method->attr_count; i++) {
		const struct uv_attr *number = &method->attr[i];

		/* Two that are never there both may have one place. */
		if (number->place == UV_CORE && number->kind != UV_NEW &&
		    number->kind != UV_FD_NEW && (!number->applies || number->applies(value)))
			memcpy(value + number->at, &numbers[i], sizeof *numbers);
	}
}

/* --- ioctl --- */

static struct ib_uverbs_attr *attr_add(uint16_t id)
{
	struct ib_uverbs_ioctl_hdr *header = uv_header();
	struct ib_uverbs_attr *attr;

	if (header->num_attrs == UV_ATTRS)
		header->num_attrs = 0;
	attr = &header->attrs[header->num_attrs++];
	*attr = (struct ib_uverbs_attr){ .attr_id = id, .flags = UVERBS_ATTR_F_MANDATORY };
	return attr;
}

/* Bytes that are at most as long as a pointer stand in its place. */
static void attr_input(struct input *in, const struct uv_method *method, const struct uv_attr *row,
		       enum spoil spoil, struct ib_uverbs_attr *attr)
{
	uint8_t value[UV_BYTES_MAX] __attribute__((aligned(8)));

	attr->len = (uint16_t)length_take(in, row, spoil);
	input_make(in, method, row, value);
	if (spoil == SPOIL_BYTES)
		twist(in, value, attr->len < UV_BYTES_MAX ? attr->len : UV_BYTES_MAX);
	if (attr->len <= sizeof attr->data)
		memcpy(&attr->data, value, sizeof attr->data);
	else
		attr->data = (uintptr_t)input_place(value, attr->len, spoil == SPOIL_LONG_SET);
}

static void attr_fill(struct input *in, const struct uv_method *method, const struct uv_attr *row,
		      enum spoil spoil, struct ib_uverbs_attr *attr)
{
	switch (row->kind) {
	case UV_IN: case UV_FLAGS: case UV_ENUM:
		attr_input(in, method, row, spoil, attr);
		break;
	case UV_OUT: case UV_RAW:
		attr->len = (uint16_t)length_take(in, row, spoil);
		attr->data = (uintptr_t)output_place(attr->len);
		break;
	case UV_USE: case UV_DESTROY:
		attr->data = handle_take(in, row, NULL);
		break;
	case UV_FD_USE:
		attr->data_s64 = fd_take(in, row);
		break;
	}
	if (spoil == SPOIL_PLACE)
		attr->data = uv_place(in, (void *)(uintptr_t)attr->data);
}

static void attr_spoil(struct input *in, enum spoil spoil, struct ib_uverbs_attr *attr)
{
	switch (spoil) {
	case SPOIL_ID:
		attr->attr_id = take16(in);
		break;
	case SPOIL_RESERVED:
		attr->attr_data.reserved = take16(in);
		break;
	case SPOIL_FLAGS:
		attr->flags = take16(in);
		break;
	case SPOIL_VALUE:
		attr->data = outside_heap(take64(in));
		break;
	case SPOIL_LENGTH:
		attr->len = take16(in);
		break;
	case SPOIL_TWICE:
		*attr_add(0) = *attr;
		break;
	default:
		break;
	}
}

/* Left out where that is usual: what this device never has, and options. */
static bool is_better_absent(const struct uv_method *method, const struct uv_attr *row,
			     const struct ib_uverbs_attr *attr)
{
	if (row->need == UV_MANDATORY)
		return false;
	if (uv_is_left_out(method, row->id))
		return true;
	return (row->kind == UV_USE && row->obj == OBJ_NONE) ||
	       (row->kind == UV_FLAGS && !attr->data) ||
	       (row->kind == UV_IN && row->id != UVERBS_ATTR_UHW_IN) ||
	       (row->kind == UV_FD_USE && attr->data_s64 < 0);
}

static void attr_make(struct input *in, const struct uv_method *method, const struct uv_attr *row)
{
	enum spoil spoil = take8(in);
	struct ib_uverbs_attr *attr;

	if (spoil == SPOIL_ABSENT)
		return;
	attr = attr_add(row->id);
	attr_fill(in, method, row, spoil, attr);
	attr_spoil(in, spoil, attr);
	if (spoil == RIGHT && is_better_absent(method, row, attr))
		uv_header()->num_attrs--;
}

static void command_begin(uint32_t object, uint32_t method)
{
	*uv_header() = (struct ib_uverbs_ioctl_hdr){
		.object_id = (uint16_t)object, .method_id = (uint16_t)method, .driver_id = 1,
	};
	in_used = out_used = 0;
}

static int command_run(struct input *in)
{
	struct ib_uverbs_ioctl_hdr *header = uv_header();
	uint8_t choice = take8(in);

	header->length = (uint16_t)(sizeof *header +
				    header->num_attrs * sizeof(struct ib_uverbs_attr));
	if (choice & 1)
		twist(in, (void *)header, sizeof *header);
	return uv_ioctl(uv_file, choice & 2 ? (void *)(uintptr_t)uv_place(in, header) : header);
}

int uv_do_method(struct input *in, const struct uv_method *method)
{
	command_begin(method->object, method->method);
	for (unsigned i = 0; i < method->attr_count; i++)
		attr_make(in, method, &method->attr[i]);
	return command_run(in);
}

/* The four buffers of a write command are attributes of an ioctl here. */
int uv_do_invoke(struct input *in, const struct uv_method *command)
{
	command_begin(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	attr_add(UVERBS_ATTR_WRITE_CMD)->len = sizeof(uint64_t);
	uv_header()->attrs[0].data = take8(in) & 1 ? take64(in) : command->method;
	for (unsigned i = 0; i < command->attr_count; i++)
		if (command->attr[i].place == UV_ATTR)
			attr_make(in, command, &command->attr[i]);
	return command_run(in);
}

/* --- write() --- */

struct uv_frame {
	uint8_t bytes[4 * UV_BYTES_MAX];
	size_t used;
	unsigned part[4];		/* bytes of core in, core out, driver in, driver out */
};

static const uint16_t parts[] = {
	UVERBS_ATTR_CORE_IN, UVERBS_ATTR_CORE_OUT, UVERBS_ATTR_UHW_IN, UVERBS_ATTR_UHW_OUT,
};

/* Inputs into the frame, one behind the other; words of @align bytes. */
static void frame_fill(struct input *in, const struct uv_method *command, size_t align,
		       struct uv_frame *f)
{
	for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++) {
		int index = uv_row_find(command, parts[i]);
		enum spoil spoil = take8(in);
		uint8_t value[UV_BYTES_MAX] __attribute__((aligned(8)));

		if (index < 0 || spoil == SPOIL_ABSENT)
			continue;
		f->part[i] = length_take(in, &command->attr[index], spoil) % UV_BYTES_MAX;
		f->part[i] = (f->part[i] + align - 1) & -align;
		if (command->attr[index].kind != UV_IN)
			continue;
		input_make(in, command, &command->attr[index], value);
		if (spoil == SPOIL_BYTES)
			twist(in, value, UV_BYTES_MAX);
		memcpy(f->bytes + f->used, value, f->part[i]);
		f->used += f->part[i];
	}
}

int uv_do_write(struct input *in, const struct uv_method *command)
{
	bool is_extended = command->method & IB_USER_VERBS_CMD_FLAG_EXTENDED;
	struct ib_uverbs_cmd_hdr header = { .command = command->method };
	struct ib_uverbs_ex_cmd_hdr ex = { 0 };
	uint64_t response = uv_place(in, uv_memory->out);
	struct uv_frame f = { .used = is_extended ? sizeof header + sizeof ex : sizeof header };
	size_t word = is_extended ? 8 : 4, core = f.used;
	uint8_t choice;

	frame_fill(in, command, word, &f);
	header.in_words = (uint16_t)((is_extended ? f.part[0] : f.used) / word);
	header.out_words = (uint16_t)((is_extended ? f.part[1] : f.part[1] + f.part[3]) / word);
	ex.provider_in_words = (uint16_t)(f.part[2] / word);
	ex.provider_out_words = (uint16_t)(f.part[3] / word);
	ex.response = f.part[1] + f.part[3] ? response : 0;
	memcpy(f.bytes, &header, sizeof header);
	if (is_extended)
		memcpy(f.bytes + sizeof header, &ex, sizeof ex);
	else if (f.part[1])
		memcpy(f.bytes + core, &response, sizeof response);
	choice = take8(in);
	if (choice & 1)
		twist(in, f.bytes, core);
	memcpy(uv_memory->in, f.bytes, f.used);
	return (int)uv_write(uv_file, choice & 2 ? (void *)(uintptr_t)uv_place(in, uv_memory->in) :
			     uv_memory->in, choice & 4 ? take16(in) : f.used);
}
