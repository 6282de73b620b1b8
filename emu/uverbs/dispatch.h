/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One uverbs command on its way: what a row of the tables promises, and what a handler sees.
 *
 * A row is the whole contract of a method: its attributes with their sizes, what may be
 * absent, which objects it names.  dispatch.c enforces it before the handler runs and
 * publishes what the handler made afterwards.  A handler therefore contains no size check,
 * no handle lookup and no cleanup of objects that nobody has seen yet.
 *
 * Write commands (INVOKE_WRITE and write()) use the same rows; the handles that they carry
 * inside their structures are rows with a place in CORE_IN or CORE_OUT.
 *
 * Threads: everything here runs with the device lock held.
 */
#ifndef EMU_UVERBS_DISPATCH_H
#define EMU_UVERBS_DISPATCH_H
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include "emu/obj/obj.h"
#include "emu/obj/srq.h"
#include "emu/obj/wq.h"

struct engine;
struct uv_file;

enum uv_kind {
	UV_IN,			/* bytes from the application, copied */
	UV_FLAGS,		/* 4 or 8 bytes; bits outside uv_attr.flags are refused */
	UV_ENUM,		/* a choice, and bytes whose number depends on it */
	UV_OUT,			/* bytes for the application */
	UV_NEW,			/* receives the handle of call->created */
	UV_USE,			/* handle of an object that the command uses */
	UV_DESTROY,		/* handle of the object that the command destroys */
	UV_FD_NEW,		/* receives call->created_fd */
	UV_FD_USE,		/* descriptor of a completion channel or async file */
	UV_RAW,			/* a buffer, not looked at: INVOKE_WRITE passes it on */
};
enum uv_need { UV_MANDATORY, UV_OPTIONAL };
enum uv_place { UV_ATTR, UV_CORE };	/* an attribute of its own, or inside CORE_IN or CORE_OUT */

struct uv_attr {
	const char *name;
	uint16_t id;
	uint8_t kind, need, obj, place;
	uint16_t min, size;		/* bytes: the least accepted, what this device knows */
	bool is_array;			/* IN: any number of these; uv_read() reads them */
	bool grows;			/* may be longer: IN with a zero tail, OUT is filled up */
	bool keeps_tail;		/* OUT: what lies behind is left alone */
	bool has_list;			/* IN: what lies behind is for uv_list() */
	uint16_t at;			/* UV_CORE: offset of the number */
	bool imports;			/* USE: may be an object of another process */
	bool (*applies)(const void *core_in);	/* UV_CORE: NULL, or is the number one? */
	uint64_t flags;			/* UV_FLAGS: the known ones */
	const uint8_t *choice_bytes;	/* UV_ENUM: of each of @choices */
	uint8_t choices;
};

struct uv_call;

struct uv_method {
	const char *name;
	uint32_t object, method;	/* write commands: UV_WRITE_OBJECT and the command number */
	/* NULL: known, but this device does not have it. */
	int (*run)(struct uv_call *call);
	const struct uv_attr *attr;
	unsigned attr_count;
	bool before_context;		/* allowed before GET_CONTEXT */
};

extern const struct uv_method uv_methods[];
extern const unsigned uv_method_count;
extern const struct uv_method uv_commands[];
extern const unsigned uv_command_count;

#define UV_WRITE_OBJECT		0xffffffffu	/* not an object of the ioctl space */
#define UV_ATTRS_MAX		20		/* of one row */
#define UV_IN_BYTES_MAX		640		/* of all inputs of one row */

/* Numbers of the objects inside write structures; ids beside UVERBS_ATTR_CORE_IN and so on. */
enum {
	UV_PD = 0x10, UV_MR, UV_CQ, UV_RECV_CQ, UV_QP, UV_CHANNEL, UV_MADE, UV_MADE_FD, UV_SRQ,
	UV_AH, UV_MW, UV_WQ, UV_RWQ_TABLE, UV_XRCD, UV_FLOW,
};

/* What the application gave for a row. */
struct uv_given {
	uint16_t bytes;
	uint64_t addr;			/* the value itself where it is a number */
	const uint8_t *inline_bytes;	/* input of at most 8 bytes, in the attribute */
	uint16_t flags;			/* of the attribute */
	uint16_t choice;		/* UV_ENUM; else reserved */
	uint64_t flags_addr;		/* where to say that an output is valid; 0: nowhere */
	uint64_t number_addr;		/* where a new handle goes; 0: see uv_place */
};

struct uv_slot {
	bool is_given;
	struct uv_given given;
	uint8_t *bytes;			/* IN: the copy, zero-extended; OUT: staged or NULL */
	uint32_t staged_bytes;
	struct emu_obj *obj;
};

struct uv_call {
	struct uv_file *file;
	struct emu_dev *dev;
	struct engine *engine;
	const struct uv_method *method;
	uint32_t object, number;	/* as asked, for reasons */
	uint32_t culprit;		/* attribute id, or 0 */
	enum why why;			/* WHY_NONE: derived from the errno */
	bool is_probe;			/* an expected refusal: no reason is kept */
	bool keeps_handle;		/* of what it destroys: others still have the object */
	bool lacks_memory;		/* an output could not be staged */
	struct emu_obj *created;	/* by the handler; published if everything else worked */
	int created_fd;			/* its descriptor, or -1 */
	/* What else to take back if the results can't be told. */
	void (*undo)(struct uv_call *call);
	struct uv_slot slot[UV_ATTRS_MAX];	/* by row of method->attr */
	uint32_t in_used;
	uint8_t in[UV_IN_BYTES_MAX] __attribute__((aligned(8)));
};

/* --- for handlers --- */

bool uv_has(struct uv_call *call, uint16_t id);
/* The copy of an input, row size, zero behind what was given; NULL if absent. */
const void *uv_in(struct uv_call *call, uint16_t id);
/* @count bytes of a list behind an input's structure; what is behind them must be zero.
 * -ENOSPC, -EOPNOTSUPP, -EFAULT */
int uv_list(struct uv_call *call, uint16_t id, void *out, unsigned count);
/* An input of up to 8 bytes as a number; 0 if absent. */
uint64_t uv_number(struct uv_call *call, uint16_t id);
/* Which choice was made of those of an input that is there. */
unsigned uv_choice(struct uv_call *call, uint16_t id);
/* The object that a handle or descriptor names; NULL if absent. */
struct emu_obj *uv_obj(struct uv_call *call, uint16_t id);
/* Bytes that the application has room for in an output; 0 if absent. */
unsigned uv_room(struct uv_call *call, uint16_t id);
/* Element @index of an array that is there.  -EFAULT */
int uv_read(struct uv_call *call, uint16_t id, unsigned index, void *out);
/* How many there are. */
unsigned uv_count(struct uv_call *call, uint16_t id);
/* Stage an output; cut to the room, ignored if absent. */
void uv_put(struct uv_call *call, uint16_t id, const void *bytes, unsigned count);
/* Zeroed staging of @count bytes, at most the room, of an output that is there.  NULL: no
 * memory; the call fails by itself. */
void *uv_stage(struct uv_call *call, uint16_t id, unsigned count);
/* Refuse, with a reason; returns @error. */
int uv_refuse(struct uv_call *call, enum why why, int error);

#define uv_put_number(call, id, type, value)						\
	do {										\
		type number_ = (value);							\
		uv_put(call, id, &number_, sizeof number_);				\
	} while (0)

struct emu_pd *uv_pd(struct uv_call *call, uint16_t id);
struct emu_mr *uv_mr(struct uv_call *call, uint16_t id);
struct emu_mw *uv_mw(struct uv_call *call, uint16_t id);
struct emu_cq *uv_cq(struct uv_call *call, uint16_t id);
struct emu_qp *uv_qp(struct uv_call *call, uint16_t id);
struct emu_channel *uv_channel(struct uv_call *call, uint16_t id);
struct emu_srq *uv_srq(struct uv_call *call, uint16_t id);
struct emu_wq *uv_wq(struct uv_call *call, uint16_t id);
struct emu_rwq_table *uv_rwq_table(struct uv_call *call, uint16_t id);
struct emu_xrcd *uv_xrcd(struct uv_call *call, uint16_t id);

/* --- for the channels: ioctl, INVOKE_WRITE, write() --- */

/* Lock the device and prepare; paired with uv_call_end(), which notes why @result is an error,
 * frees and unlocks. */
void uv_call_begin(struct uv_call *call, struct uv_file *file);
int uv_call_end(struct uv_call *call, int result, uint64_t reasons_before);
/* The row with this number in a table, or NULL. */
const struct uv_method *uv_method_find(const struct uv_method *table, unsigned count,
				       uint32_t object, uint32_t method);
/* Take what was given for row @index: sizes, copy, tail. */
int uv_take(struct uv_call *call, unsigned index, const struct uv_given *given);
/* The row of attribute @id in @method, or -1. */
int uv_row_find(const struct uv_method *method, uint16_t id);
/* Mandatory attributes, context, handles, handler, results. */
int uv_call_run(struct uv_call *call);
/* Free what staging took. */
void uv_call_drop(struct uv_call *call);
/* Make @command the call's method.  -EPROTONOSUPPORT, -EOPNOTSUPP */
int uv_command_set(struct uv_call *call, uint32_t command);
/* Take what was given for a buffer of a write command; one that it does not know is ignored. */
int uv_command_take(struct uv_call *call, uint16_t id, const struct uv_given *given);
/* Both core structures must be there, where the command has them; CORE_OUT only if the caller
 * @wants_answer.  -ENOSPC */
int uv_command_check(struct uv_call *call, bool wants_answer);
#endif
