/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands for f_uverbs.c, made from the dispatcher's own tables: a new row there is fuzzed here.
 *
 * What the tables do not say is which values make a command work; that is in uv_values.c.
 */
#ifndef TESTS_FUZZ_UV_H
#define TESTS_FUZZ_UV_H
#include <rdma/rdma_user_ioctl_cmds.h>
#include "emu/uverbs/dispatch.h"
#include "emu/uverbs/file.h"
#include "tests/fuzz/world.h"

enum { UV_PAGE = 4096, UV_QUEUE_PAGES = 12, UV_ATTRS = 64, UV_BYTES_MAX = 512,
       UV_LIST_BYTES = 96 };	/* of a list, as uv_values.c fills it */

/* The application's memory, at the same address in every process; behind it is nothing. */
struct uv_memory {
	uint8_t command[sizeof(struct ib_uverbs_ioctl_hdr) +
			UV_ATTRS * sizeof(struct ib_uverbs_attr)];
	uint8_t in[UV_PAGE], out[2 * UV_PAGE];
	uint8_t queue[UV_QUEUE_PAGES][UV_PAGE] __attribute__((aligned(4096)));
	uint8_t constant[UV_PAGE];	/* may only be read */
};
extern struct uv_memory *uv_memory;
extern struct uv_file *uv_file;
static inline struct ib_uverbs_ioctl_hdr *uv_header(void)
{
	return (void *)uv_memory->command;
}

extern bool uv_is_torn;		/* something else stands where queues were */

void uv_memory_begin(void);	/* once a process */
void uv_memory_clear(void);

/* An address: the one that is right, or what the input says. */
uint64_t uv_place(struct input *in, const void *right);
/* An object of this type: the newest, or what the input says; NULL: there is none. */
struct emu_obj *uv_newest(struct input *in, enum obj_type type);

/* The values of an input that make @method work; @target is the object that it is about. */
void uv_value(struct input *in, const struct uv_method *method, uint16_t id,
	      const struct emu_obj *target, uint8_t out[UV_BYTES_MAX]);

/* An option that would make another sort of object; a usual one has none of it. */
bool uv_is_left_out(const struct uv_method *method, uint16_t id);

/* Everything up to two QPs, one of them in RTS and its own peer, or (0x80) an object of each other
 * type; without as many last steps as @choice says.  Nothing is spoilt, so it must work. */
void uv_begin(uint8_t choice);

/* One command of a row, spoilt where the input says so.  0 or -errno */
int uv_do_method(struct input *in, const struct uv_method *method);
int uv_do_invoke(struct input *in, const struct uv_method *command);
int uv_do_write(struct input *in, const struct uv_method *command);

/* What an application does besides commands.  0 or -errno where it is a call. */
int uv_do_raw(struct input *in);
int uv_do_mmap(struct input *in);
int uv_do_descriptor(struct input *in);
int uv_do_post(struct input *in);
int uv_do_ring(struct input *in);
int uv_do_poke(struct input *in);
int uv_do_hide(struct input *in);
int uv_do_clock(struct input *in);
/* The application closes and unmaps all it has. */
void uv_let_go(void);
#endif
