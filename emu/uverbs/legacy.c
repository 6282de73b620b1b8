/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The older channel: commands through write().  Libraries use it where they find no ioctl.
 *
 * Only the framing is here; the commands are the rows of commands.c.
 *
 * Source: device-abi B.3.
 */
#include <errno.h>
#include <string.h>
#include <rdma/ib_user_verbs.h>
#include "emu/mem/mem.h"
#include "emu/uverbs/dispatch.h"
#include "emu/uverbs/file.h"
#include "emu/uverbs/uverbs.h"

/* Where the four buffers of a command are. */
struct layout {
	struct uv_given core_in, core_out, uhw_in, uhw_out;
};

static unsigned row_min(const struct uv_method *method, uint16_t id)
{
	int row = uv_row_find(method, id);

	return row < 0 ? 0 : method->attr[row].min;
}

static int refuse_frame(struct uv_call *call, int error)
{
	return uv_refuse(call, WHY_CMD_ATTRIBUTES, error);
}

/* What a plain command has behind its core structures is the driver's, if it takes driver data. */
static bool takes_driver_data(const struct uv_method *method)
{
	return uv_row_find(method, UVERBS_ATTR_UHW_IN) >= 0 ||
	       uv_row_find(method, UVERBS_ATTR_UHW_OUT) >= 0;
}

/* Driver data follows the core structures directly, on both sides. */
static void layout_split(struct layout *l, uint64_t in, unsigned in_bytes, unsigned core_in,
			 uint64_t out, unsigned out_bytes, unsigned core_out)
{
	l->core_in = (struct uv_given){ .bytes = (uint16_t)core_in, .addr = in };
	l->uhw_in = (struct uv_given){ .bytes = (uint16_t)(in_bytes - core_in),
				       .addr = in + core_in };
	l->core_out = (struct uv_given){ .bytes = (uint16_t)core_out, .addr = out };
	l->uhw_out = (struct uv_given){ .bytes = (uint16_t)(out_bytes - core_out),
					.addr = out + core_out };
}

/* Words of 4 bytes, the header included; the structure starts with the response address
 * where the command answers at all. */
static int layout_plain(struct uv_call *call, const struct ib_uverbs_cmd_hdr *header,
			uint64_t addr, size_t bytes, struct layout *out)
{
	unsigned in_min = row_min(call->method, UVERBS_ATTR_CORE_IN);
	unsigned out_min = row_min(call->method, UVERBS_ATTR_CORE_OUT);
	bool has_driver_data = takes_driver_data(call->method);
	unsigned in_bytes, out_bytes = header->out_words * 4u;
	uint64_t response = 0;

	if (header->in_words * 4u != bytes)
		return refuse_frame(call, -EINVAL);
	in_bytes = (unsigned)(bytes - sizeof *header);
	if (in_bytes < in_min || out_bytes < out_min || in_bytes > UINT16_MAX ||
	    out_bytes > UINT16_MAX)
		return refuse_frame(call, -ENOSPC);
	if (out_min && mem_copy_in(&response, addr + sizeof *header, sizeof response))
		return -EFAULT;
	if (!out_min)
		out_bytes = 0;
	layout_split(out, addr + sizeof *header, in_bytes, has_driver_data ? in_min : in_bytes,
		     response, out_bytes, has_driver_data ? out_min : out_bytes);
	return 0;
}

/* Words of 8 bytes, the headers excluded; the response address has its own field. */
static int layout_extended(struct uv_call *call, const struct ib_uverbs_cmd_hdr *header,
			   uint64_t addr, size_t bytes, struct layout *out)
{
	struct ib_uverbs_ex_cmd_hdr ex;
	size_t framing = sizeof *header + sizeof ex;
	unsigned core_in = header->in_words * 8u, core_out = header->out_words * 8u;
	unsigned all_in, all_out;

	if (bytes < framing)
		return refuse_frame(call, -EINVAL);
	if (mem_copy_in(&ex, addr + sizeof *header, sizeof ex))
		return -EFAULT;
	all_in = core_in + ex.provider_in_words * 8u;
	all_out = core_out + ex.provider_out_words * 8u;
	if (all_in != bytes - framing || ex.cmd_hdr_reserved || !ex.response != !all_out)
		return refuse_frame(call, -EINVAL);
	if (all_in > UINT16_MAX || all_out > UINT16_MAX)
		return refuse_frame(call, -ENOSPC);
	layout_split(out, addr + framing, all_in, core_in, ex.response, all_out, core_out);
	return 0;
}

static int buffer_take(struct uv_call *call, uint16_t id, const struct uv_given *given)
{
	return given->bytes ? uv_command_take(call, id, given) : 0;
}

/* An extended command that gives no address wants no answer. */
static int layout_take(struct uv_call *call, const struct layout *l, bool wants_answer)
{
	int ret = buffer_take(call, UVERBS_ATTR_CORE_IN, &l->core_in);

	if (!ret)
		ret = buffer_take(call, UVERBS_ATTR_CORE_OUT, &l->core_out);
	if (!ret)
		ret = uv_command_check(call, wants_answer);
	if (!ret)
		ret = buffer_take(call, UVERBS_ATTR_UHW_IN, &l->uhw_in);
	if (!ret)
		ret = buffer_take(call, UVERBS_ATTR_UHW_OUT, &l->uhw_out);
	return ret;
}

static int write_run(struct uv_call *call, uint64_t addr, size_t bytes)
{
	struct ib_uverbs_cmd_hdr header;
	struct layout layout;
	bool is_extended;
	int ret;

	if (bytes < sizeof header)
		return refuse_frame(call, -EINVAL);
	if (mem_copy_in(&header, addr, sizeof header))
		return -EFAULT;
	ret = uv_command_set(call, header.command);
	if (ret)
		return ret;
	is_extended = header.command & IB_USER_VERBS_CMD_FLAG_EXTENDED;
	if (is_extended)
		ret = layout_extended(call, &header, addr, bytes, &layout);
	else
		ret = layout_plain(call, &header, addr, bytes, &layout);
	if (!ret)
		ret = layout_take(call, &layout, !is_extended || layout.core_out.addr);
	return ret ? ret : uv_call_run(call);
}

ssize_t uv_write(struct uv_file *file, const void *command, size_t bytes)
{
	struct uv_call call = { 0 };
	uint64_t reasons;
	int ret;

	uv_call_begin(&call, file);
	reasons = file->dev->why->made;
	ret = uv_call_end(&call, write_run(&call, (uintptr_t)command, bytes), reasons);
	return ret ? ret : (ssize_t)bytes;
}
