/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Can an application hurt the device with its commands?
 *
 * A sequence of ioctl(), write() and mmap() calls on one open file, made from the dispatcher's
 * tables and spoilt where the input says so, with work posted in between.  A command that fails
 * has changed nothing, and a closed file leaves nothing.
 */
#include <errno.h>
#include <unistd.h>
#include "emu/engine/engine_local.h"
#include "emu/mem/mem.h"
#include "emu/uverbs/uverbs.h"
#include "tests/fuzz/uv.h"

enum { DEADLINES_MAX = 50 };

/* --- what must hold --- */

/* Answers of a uverbs device, and no others; EAGAIN is that of an XRC domain that is not there,
 * EEXIST of a flow rule, the last are those of mmap(). */
static const int errors[] = {
	EINVAL, EFAULT, ENOENT, EBADF, EBUSY, ENOMEM, ENOSPC, EOPNOTSUPP, EPROTONOSUPPORT, ENODATA,
	EAGAIN, EEXIST, EMFILE, EPERM, ENOSYS,
};

static void result_check(int result)
{
	bool is_known = result >= 0;

	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		is_known |= result == -errors[i];
	assert(is_known);
	device_check();
}

struct inventory {
	uint32_t qps, cqs, pds, srqs, wqs, flows, keys, handles, pages;
	bool has_context;
};

static struct inventory inventory_take(void)
{
	return (struct inventory){
		device.qpns.taken, device.cqns.taken, device.pdns.taken,
		device.srqns.taken, device.wqns.taken, device.flows.taken,
		device.keys.indices.taken,
		uv_file->handles.taken, engine->page_count, uv_file->has_context,
	};
}

static bool is_same(struct inventory a, struct inventory b)
{
	return a.qps == b.qps && a.cqs == b.cqs && a.pds == b.pds && a.srqs == b.srqs &&
	       a.wqs == b.wqs && a.flows == b.flows && a.keys == b.keys &&
	       a.handles == b.handles && a.pages == b.pages && a.has_context == b.has_context;
}

/* --- commands --- */

static bool is_destroying(const struct uv_method *row)
{
	for (unsigned i = 0; i < row->attr_count; i++)
		if (row->attr[i].kind == UV_DESTROY)
			return true;
	return false;
}

static int command_do(struct input *in, const struct uv_method *row,
		      int (*run)(struct input *, const struct uv_method *))
{
	struct inventory before = inventory_take(), after;
	int result = run(in, row);

	after = inventory_take();
	/* What was destroyed stays so, as in the kernel, if only the answer had nowhere to go; the
	 * number in a frame may have become another command's. */
	if (result == -EFAULT && (is_destroying(row) || run == uv_do_write) &&
	    after.handles == before.handles - 1)
		return result;
	assert(result >= 0 || is_same(before, after));
	return result;
}

static int do_method(struct input *in)
{
	return command_do(in, &uv_methods[take8(in) % uv_method_count], uv_do_method);
}

static int do_invoke(struct input *in)
{
	return command_do(in, &uv_commands[take8(in) % uv_command_count], uv_do_invoke);
}

static int do_write(struct input *in)
{
	return command_do(in, &uv_commands[take8(in) % uv_command_count], uv_do_write);
}

static int (*const steps[])(struct input *) = {
	do_method, do_invoke, do_write, uv_do_post, uv_do_raw, uv_do_mmap, uv_do_descriptor,
	uv_do_ring, uv_do_poke, uv_do_hide, uv_do_clock,
};

/* The lowest free descriptor; nobody else opens any. */
static int descriptor_next(void)
{
	int fd = dup(STDERR_FILENO);

	close(fd);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct input in = { bytes, bytes + size };
	int first, failed;

	if (!uv_memory) {
		device_begin(NULL);
		uv_memory_begin();
		/* From the first range on that is too long to be touched it keeps a descriptor. */
		mem_probe((uintptr_t)uv_memory, sizeof *uv_memory + (16 << 12), 0);
	}
	device_rewind();
	uv_memory_clear();
	first = descriptor_next();
	failed = uv_file_open(&device, &uv_file);
	assert(!failed);
	uv_begin(take8(&in));
	while (input_has_more(&in))
		result_check(steps[take8(&in) % (sizeof steps / sizeof *steps)](&in));
	device_settle(DEADLINES_MAX);
	uv_let_go();
	uv_file_close(uv_file);
	device_check();
	device_rewind();
	assert(descriptor_next() == first);
	return 0;
}
