/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands made from the dispatcher's own rows, right in everything but one thing.
 *
 * A world has two open files with objects of every type that any row can create, made by these
 * rows themselves; so a new row is garbled, and its objects are used, without a word here.  Which
 * values make a command work is the business of tests/fuzz/uv_values.c.
 */
#ifndef TESTS_UNIT_GARBLE_H
#define TESTS_UNIT_GARBLE_H
#include <criterion/criterion.h>
#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "emu/engine/engine_local.h"
#include "emu/uverbs/uverbs.h"
#include "tests/fuzz/uv.h"

enum channel { BY_IOCTL, BY_INVOKE, BY_WRITE, CHANNEL_COUNT };
enum { ROOM = 1024, EXTRAS = 2, LONGER = 64 };
#define NEVER		0x7fffffu		/* no handle of anything */
#define NOWHERE		((void *)0x10)		/* never mapped */

/* One attribute, or one of the four buffers of a write command. */
struct part {
	bool is_given;
	uint16_t id, bytes, flags;
	uint8_t reserved;
	uint64_t data;			/* handle, descriptor, address; of small inputs the value */
};

struct command {
	enum channel channel;
	const struct uv_method *method;
	struct part part[UV_ATTRS_MAX + EXTRAS];	/* by row; what no row has comes last */
	uint32_t core[UV_ATTRS_MAX];			/* numbers inside CORE_IN, by row */
	uint8_t bytes[UV_ATTRS_MAX][ROOM];		/* inputs and outputs, by row */
	/* write() only */
	uint64_t response;
	uint32_t header_reserved;
	int words_more;			/* in_words says so much more than there is */
	void *at;			/* the command lies there; NULL: where it is right */
	bool is_at_constant;		/* in memory that may only be read */
};

/* What the two files have of each type: handles, or descriptors. */
struct stock {
	bool is_there;
	int64_t live, spare, stale, foreign;
};
static struct stock stock[OBJ_TYPE_COUNT];
static struct uv_file *mine, *other;

/* --- rows --- */

static inline bool is_number(const struct uv_attr *row)
{
	return row->kind == UV_NEW || row->kind == UV_USE || row->kind == UV_DESTROY ||
	       row->kind == UV_FD_NEW || row->kind == UV_FD_USE;
}

static inline bool is_input(const struct uv_attr *row)
{
	return row->kind == UV_IN || row->kind == UV_FLAGS || row->kind == UV_ENUM;
}

static inline bool is_output(const struct uv_attr *row)
{
	return row->kind == UV_OUT;
}

static inline bool is_command(const struct uv_method *m)
{
	return m->object == UV_WRITE_OBJECT;
}

static inline bool is_extended(const struct uv_method *m)
{
	return is_command(m) && m->method & IB_USER_VERBS_CMD_FLAG_EXTENDED;
}

/* Of a write command only; in a method these numbers mean something else. */
static inline bool is_core_buffer(const struct uv_attr *row)
{
	return row->place == UV_ATTR &&
	       (row->id == UVERBS_ATTR_CORE_IN || row->id == UVERBS_ATTR_CORE_OUT);
}

static inline bool has_kind(const struct uv_method *m, enum uv_kind kind)
{
	for (unsigned i = 0; i < m->attr_count; i++)
		if (m->attr[i].kind == kind)
			return true;
	return false;
}

/* One of the four buffers of a write command, or -1. */
static inline int buffer_row(const struct uv_method *m, uint16_t id)
{
	return is_command(m) ? uv_row_find(m, id) : -1;
}

/* --- a command that is right --- */

/* What a destroying command destroys is needed by nothing. */
static inline int64_t number_for(const struct uv_attr *row)
{
	const struct stock *s = &stock[row->obj];

	if (row->kind == UV_NEW || row->kind == UV_FD_NEW)
		return 0;
	if (!s->is_there)
		return row->kind == UV_FD_USE ? -1 : (int64_t)NEVER;
	return row->kind == UV_DESTROY ? s->spare : s->live;
}

static inline struct emu_obj *object_for(const struct uv_attr *row)
{
	struct emu_obj *obj = NULL;

	if (row->kind == UV_USE || row->kind == UV_DESTROY)
		file_handle_find(mine, (uint64_t)number_for(row), row->obj, &obj);
	return obj;
}

/* A number that only some commands of a row have. */
static inline bool is_without(const struct command *c, const struct uv_attr *row)
{
	return row->applies &&
	       !row->applies(c->bytes[buffer_row(c->method, UVERBS_ATTR_CORE_IN)]);
}

/* The object that a command is about is the last that its core structure names. */
static inline struct emu_obj *target_of(const struct uv_method *m)
{
	struct emu_obj *target = NULL;

	for (unsigned i = 0; i < m->attr_count; i++)
		if (m->attr[i].place == UV_CORE && object_for(&m->attr[i]))
			target = object_for(&m->attr[i]);
	return target;
}

/* Bytes of at most a pointer's size stand in its place, in an ioctl. */
static inline void part_point(struct command *c, unsigned i)
{
	struct part *p = &c->part[i];

	p->data = (uintptr_t)c->bytes[i];
	if (!is_output(&c->method->attr[i]) && p->bytes <= sizeof p->data)
		memcpy(&p->data, c->bytes[i], sizeof p->data);
}

static inline void core_write(struct command *c)
{
	int in = buffer_row(c->method, UVERBS_ATTR_CORE_IN);

	if (in < 0)
		return;
	for (unsigned i = 0; i < c->method->attr_count; i++) {
		const struct uv_attr *row = &c->method->attr[i];

		if (row->place == UV_CORE && row->kind != UV_NEW && row->kind != UV_FD_NEW &&
		    !is_without(c, row))
			memcpy(c->bytes[in] + row->at, &c->core[i], sizeof *c->core);
	}
	part_point(c, (unsigned)in);
}

static inline void part_make(struct command *c, unsigned i)
{
	const struct uv_attr *row = &c->method->attr[i];
	struct input nothing = { NULL, NULL };
	struct part *p = &c->part[i];

	*p = (struct part){ .is_given = row->place == UV_ATTR, .id = row->id,
			    .flags = UVERBS_ATTR_F_MANDATORY };
	if (is_number(row)) {
		p->data = (uint64_t)number_for(row);
		c->core[i] = (uint32_t)p->data;
		/* What the device never has, or this world has not. */
		p->is_given &= row->need == UV_MANDATORY || stock[row->obj].is_there;
		return;
	}
	if (is_input(row))
		uv_value(&nothing, c->method, row->id, target_of(c->method), c->bytes[i]);
	p->bytes = row->size ? row->size : row->min ? row->min : 128;
	if (row->has_list)
		p->bytes += UV_LIST_BYTES;
	part_point(c, i);
}

static inline void command_make(struct command *c, enum channel channel,
				const struct uv_method *m)
{
	memset(c, 0, sizeof *c);
	c->channel = channel;
	c->method = m;
	for (unsigned i = 0; i < m->attr_count; i++) {
		part_make(c, i);
		c->part[i].is_given &= !uv_is_left_out(m, m->attr[i].id);
	}
	core_write(c);
	c->response = UINT64_MAX;		/* see write_run() */
}

/* --- carrying it out --- */

struct ioctl_frame {
	struct ib_uverbs_ioctl_hdr header;
	struct ib_uverbs_attr attr[UV_ATTRS_MAX + EXTRAS + 1];
};

static inline void attr_put(struct ioctl_frame *f, const struct part *p)
{
	struct ib_uverbs_attr *attr = &f->attr[f->header.num_attrs++];

	*attr = (struct ib_uverbs_attr){ .attr_id = p->id, .len = p->bytes, .flags = p->flags,
					 .data = p->data };
	attr->attr_data.reserved = p->reserved;
}

static inline int frame_run(const struct command *c, const struct ioctl_frame *f)
{
	void *at = uv_memory->command;
	int ret;

	memcpy(uv_memory->command, f, f->header.length);
	if (c->is_at_constant) {
		mprotect(uv_memory->constant, UV_PAGE, PROT_READ | PROT_WRITE);
		at = memcpy(uv_memory->constant, f, f->header.length);
		mprotect(uv_memory->constant, UV_PAGE, PROT_READ);
	}
	ret = uv_ioctl(mine, c->at ? c->at : at);
	return ret;
}

static inline int ioctl_run(const struct command *c)
{
	bool is_invoked = c->channel == BY_INVOKE;
	struct part number = { true, UVERBS_ATTR_WRITE_CMD, 8, 1, 0, c->method->method };
	struct ioctl_frame f = { .header = {
		.object_id = is_invoked ? UVERBS_OBJECT_DEVICE : (uint16_t)c->method->object,
		.method_id = is_invoked ? UVERBS_METHOD_INVOKE_WRITE : (uint16_t)c->method->method,
		.driver_id = 1,
	} };

	if (is_invoked)
		attr_put(&f, &number);
	for (unsigned i = 0; i < UV_ATTRS_MAX + EXTRAS; i++)
		if (c->part[i].is_given)
			attr_put(&f, &c->part[i]);
	f.header.length = (uint16_t)(sizeof f.header + f.header.num_attrs * sizeof *f.attr);
	return frame_run(c, &f);
}

struct write_frame {
	uint8_t bytes[4 * ROOM];
	size_t used;
};

static inline unsigned part_words(const struct command *c, uint16_t id, unsigned word)
{
	int i = buffer_row(c->method, id);

	return i >= 0 && c->part[i].is_given ? (c->part[i].bytes + word - 1) / word : 0;
}

static inline void frame_put(struct write_frame *f, const void *bytes, size_t count)
{
	memcpy(f->bytes + f->used, bytes, count);
	f->used += count;
}

static inline void frame_part(struct write_frame *f, const struct command *c, uint16_t id,
			      unsigned word)
{
	int i = buffer_row(c->method, id);

	if (i >= 0 && c->part[i].is_given)
		frame_put(f, c->bytes[i], part_words(c, id, word) * word);
}

/* The answers land side by side, as the structures of the command do. */
static inline int write_run(const struct command *c)
{
	bool is_long = is_extended(c->method);
	unsigned word = is_long ? 8 : 4;
	unsigned in = part_words(c, UVERBS_ATTR_CORE_IN, word);
	unsigned out = part_words(c, UVERBS_ATTR_CORE_OUT, word);
	unsigned driver_in = part_words(c, UVERBS_ATTR_UHW_IN, word);
	unsigned driver_out = part_words(c, UVERBS_ATTR_UHW_OUT, word);
	uint64_t response = c->response == UINT64_MAX ? (uintptr_t)uv_memory->out : c->response;
	struct ib_uverbs_cmd_hdr header = { .command = c->method->method };
	struct ib_uverbs_ex_cmd_hdr ex = {
		.response = out + driver_out || c->response != UINT64_MAX ? response : 0,
		.provider_in_words = (uint16_t)driver_in,
		.provider_out_words = (uint16_t)driver_out,
		.cmd_hdr_reserved = c->header_reserved,
	};
	struct write_frame f = { .used = 0 };

	header.in_words = (uint16_t)((is_long ? in : 2 + in + driver_in) + c->words_more);
	header.out_words = (uint16_t)(is_long ? out : out + driver_out);
	frame_put(&f, &header, sizeof header);
	if (is_long)
		frame_put(&f, &ex, sizeof ex);
	frame_part(&f, c, UVERBS_ATTR_CORE_IN, word);
	frame_part(&f, c, UVERBS_ATTR_UHW_IN, word);
	if (!is_long && buffer_row(c->method, UVERBS_ATTR_CORE_OUT) >= 0 && in >= 2)
		memcpy(f.bytes + sizeof header, &response, sizeof response);
	memcpy(uv_memory->in, f.bytes, f.used);
	return (int)uv_write(mine, c->at ? c->at : uv_memory->in, f.used);
}

static inline int command_run(const struct command *c)
{
	int ret;

	uv_file = mine;
	ret = c->channel == BY_WRITE ? write_run(c) : ioctl_run(c);
	return ret > 0 ? 0 : ret;
}

/* --- the world --- */

static inline int64_t made_number(const struct command *c)
{
	const struct ib_uverbs_ioctl_hdr *header = uv_header();
	const struct uv_method *m = c->method;

	for (unsigned i = 0; i < m->attr_count; i++) {
		const struct uv_attr *row = &m->attr[i];
		uint32_t number;

		if (row->kind != UV_NEW && row->kind != UV_FD_NEW)
			continue;
		if (row->place == UV_ATTR)
			for (unsigned k = 0; k < header->num_attrs; k++)
				if (header->attrs[k].attr_id == row->id)
					return header->attrs[k].data_s64;
		memcpy(&number, c->bytes[buffer_row(m, UVERBS_ATTR_CORE_OUT)] + row->at,
		       sizeof number);
		return number;
	}
	return -1;
}

static inline enum obj_type made_type(const struct uv_method *m)
{
	for (unsigned i = 0; m->run && i < m->attr_count; i++)
		if (m->attr[i].kind == UV_NEW || m->attr[i].kind == UV_FD_NEW)
			return m->attr[i].obj;
	return OBJ_NONE;
}

static inline int64_t object_make(const struct uv_method *m)
{
	static struct command c;

	command_make(&c, m->object == UV_WRITE_OBJECT ? BY_INVOKE : BY_IOCTL, m);
	return command_run(&c) ? -1 : made_number(&c);
}

/* The first row that can make an object of this type; it may lack what it needs.  Commands first:
 * they make the common sort, a region of the application's memory for instance. */
static inline int64_t object_make_any(enum obj_type type)
{
	int64_t number = -1;

	for (unsigned k = 0; number < 0 && k < uv_command_count; k++)
		if (made_type(&uv_commands[k]) == type && !uv_commands[k].before_context)
			number = object_make(&uv_commands[k]);
	for (unsigned k = 0; number < 0 && k < uv_method_count; k++)
		if (made_type(&uv_methods[k]) == type)
			number = object_make(&uv_methods[k]);
	return number;
}

static inline bool is_descriptor(enum obj_type type)
{
	return type == OBJ_CHANNEL || type == OBJ_ASYNC;
}

/* Not with a command: which one destroys is what is tested. */
static inline void object_end(enum obj_type type, int64_t number)
{
	struct emu_obj *obj;

	if (is_descriptor(type)) {
		close((int)number);
		return;
	}
	pthread_mutex_lock(&device.lock);
	cr_assert(!file_handle_find(mine, (uint64_t)number, type, &obj));
	file_handle_drop(mine, (uint32_t)number);
	file_object_destroy(mine, obj);
	pthread_mutex_unlock(&device.lock);
}

/* Objects of every type that can be made.  Lists may name the newest object of a type; so what is
 * made of others comes first where it can, and nothing needs what is made later. */
static inline void stock_fill(size_t place)
{
	bool is_done[OBJ_TYPE_COUNT] = { false }, has_more = true;

	while (has_more) {
		has_more = false;
		for (enum obj_type type = OBJ_TYPE_COUNT - 1; type > OBJ_NONE; type--) {
			int64_t number = is_done[type] ? -1 : object_make_any(type);

			if (number < 0)
				continue;
			*(int64_t *)((char *)&stock[type] + place) = number;
			stock[type].is_there = is_done[type] = has_more = true;
		}
	}
}
#define STOCK(member) offsetof(struct stock, member)

/* Handles that once were good. */
static inline void stale_make(void)
{
	stock_fill(STOCK(stale));
	for (enum obj_type type = OBJ_NONE + 1; type < OBJ_TYPE_COUNT; type++)
		if (stock[type].is_there)
			object_end(type, stock[type].stale);
}

static inline void file_begin(struct uv_file **out, bool has_context)
{
	static struct command c;
	int failed = uv_file_open(&device, &mine);

	cr_assert(!failed);
	*out = uv_file = mine;
	if (!has_context)
		return;
	command_make(&c, BY_IOCTL, uv_method_find(uv_methods, uv_method_count,
						  UVERBS_OBJECT_DEVICE,
						  UVERBS_METHOD_GET_CONTEXT));
	failed = command_run(&c);
	cr_assert(!failed, "GET_CONTEXT: %d", failed);
}

static inline void file_end(struct uv_file *file)
{
	for (unsigned i = 0; i < file->event_fd_count; i++) {
		const struct uv_event_fd *e = &file->event_fd[i];
		struct stat st;

		if (!fstat(e->fd, &st) && st.st_dev == e->dev && st.st_ino == e->ino)
			close(e->fd);
	}
	uv_file_close(file);
}

/* Everything that a test may use, or take away. */
static inline void mine_begin(bool has_context)
{
	file_begin(&mine, has_context);
	for (enum obj_type type = OBJ_NONE; type < OBJ_TYPE_COUNT; type++)
		stock[type].is_there = false;
	if (!has_context)
		return;
	stock_fill(STOCK(live));
	stock_fill(STOCK(spare));
	stale_make();
}

/* Its handles are others than those of the file under test. */
static inline void other_begin(void)
{
	enum { MORE_THAN_MINE = 100 };

	file_begin(&other, true);
	for (unsigned i = 0; i < MORE_THAN_MINE; i++)
		object_make_any(OBJ_PD);
	stock_fill(STOCK(live));
	for (enum obj_type type = OBJ_NONE; type < OBJ_TYPE_COUNT; type++)
		stock[type].foreign = stock[type].live;
}

static inline void garble_begin(bool has_context)
{
	if (!uv_memory) {
		device_begin(NULL);
		uv_memory_begin();
		device_rewind();
	}
	other_begin();
	mine_begin(has_context);
}

static inline void garble_again(bool has_context)
{
	file_end(mine);
	uv_memory_clear();
	mine_begin(has_context);
}

/* Nothing may be left. */
static inline void garble_end(void)
{
	file_end(mine);
	file_end(other);
	device_rewind();
}

/* --- what a refused command must not change --- */

struct inventory {
	uint32_t qps, cqs, pds, wqs, flows, keys, mine, other, users, pages, channels,
		 next_descriptor, has_context;
};

static inline uint32_t users_count(const struct uv_file *file)
{
	uint32_t users = 0;

	for (uint32_t handle = 0; handle < file->handle_end; handle++) {
		const struct emu_obj *obj = numbers_find(&file->handles, handle);

		users += obj ? obj->users : 0;
	}
	for (unsigned i = 0; i < file->event_fd_count; i++)
		users += channel_obj(file->event_fd[i].channel)->users;
	return users;
}

static inline unsigned descriptor_next(void)
{
	int fd = dup(STDERR_FILENO);

	close(fd);
	return (unsigned)fd;
}

static inline struct inventory inventory_take(void)
{
	return (struct inventory){
		device.qpns.taken, device.cqns.taken, device.pdns.taken, device.wqns.taken,
		device.flows.taken, device.keys.indices.taken, mine->handles.taken,
		other->handles.taken,
		users_count(mine) + users_count(other), engine->page_count,
		mine->event_fd_count + other->event_fd_count, descriptor_next(), mine->has_context,
	};
}
#endif
