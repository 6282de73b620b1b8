/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Laying out commands.
 */
#include <assert.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <string.h>
#include "verbs/cmd.h"
#include "verbs/context.h"

struct cmd cmd_new(unsigned object, unsigned method)
{
	return (struct cmd){ .header = {
		.object_id = (uint16_t)object, .method_id = (uint16_t)method,
		.driver_id = RDMA_DRIVER_MLX5,
	} };
}

static struct ib_uverbs_attr *attr_add(struct cmd *c, unsigned id, size_t bytes, unsigned flags)
{
	struct ib_uverbs_attr *a = &c->attr[c->header.num_attrs];

	assert(c->header.num_attrs < CMD_ATTRS_MAX && bytes <= UINT16_MAX);
	c->header.num_attrs++;
	*a = (struct ib_uverbs_attr){ .attr_id = (uint16_t)id, .len = (uint16_t)bytes,
				      .flags = (uint16_t)flags };
	return a;
}

static void add_in(struct cmd *c, unsigned id, const void *value, size_t bytes, unsigned flags)
{
	struct ib_uverbs_attr *a = attr_add(c, id, bytes, flags);
	uint64_t small = 0;

	if (bytes <= sizeof a->data) {
		memcpy(&small, value, bytes);
		a->data = small;
	} else {
		a->data = (uintptr_t)value;
	}
}

void cmd_in(struct cmd *c, unsigned id, const void *value, size_t bytes)
{
	add_in(c, id, value, bytes, UVERBS_ATTR_F_MANDATORY);
}

void cmd_in_optional(struct cmd *c, unsigned id, const void *value, size_t bytes)
{
	add_in(c, id, value, bytes, 0);
}

void cmd_in_u32(struct cmd *c, unsigned id, uint32_t value)
{
	cmd_in(c, id, &value, sizeof value);
}

void cmd_in_u64(struct cmd *c, unsigned id, uint64_t value)
{
	cmd_in(c, id, &value, sizeof value);
}

void cmd_in_enum(struct cmd *c, unsigned id, unsigned kind, const void *value, size_t bytes)
{
	cmd_in(c, id, value, bytes);
	c->attr[c->header.num_attrs - 1].attr_data.enum_data.elem_id = (uint8_t)kind;
}

void cmd_out(struct cmd *c, unsigned id, void *value, size_t bytes)
{
	attr_add(c, id, bytes, UVERBS_ATTR_F_MANDATORY)->data = (uintptr_t)value;
}

void cmd_out_optional(struct cmd *c, unsigned id, void *value, size_t bytes)
{
	attr_add(c, id, bytes, 0)->data = (uintptr_t)value;
}

unsigned cmd_object(struct cmd *c, unsigned id, uint32_t handle)
{
	attr_add(c, id, 0, UVERBS_ATTR_F_MANDATORY)->data = handle;
	return c->header.num_attrs - 1u;
}

unsigned cmd_fd(struct cmd *c, unsigned id, int fd)
{
	attr_add(c, id, 0, UVERBS_ATTR_F_MANDATORY)->data = (uint64_t)(int64_t)fd;
	return c->header.num_attrs - 1u;
}

void cmd_driver(struct cmd *c, const void *in, size_t in_bytes, void *out, size_t out_bytes)
{
	if (in)
		cmd_in(c, UVERBS_ATTR_UHW_IN, in, in_bytes);
	if (out)
		cmd_out(c, UVERBS_ATTR_UHW_OUT, out, out_bytes);
}

int cmd_send(struct cmd *c, struct ibv_context *context)
{
	struct channel *channel = &vb_context_of(context)->channel;
	int error;

	c->header.length = (uint16_t)(sizeof c->header + c->header.num_attrs * sizeof *c->attr);
	error = -channel->ops->command(channel, &c->header);
	return error ? vb_fail(error) : 0;
}

int cmd_write(const struct cmd_write *w, struct ibv_context *context)
{
	struct cmd c = cmd_new(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);

	cmd_in(&c, UVERBS_ATTR_CORE_IN, w->in, w->in_bytes);
	if (w->out)
		cmd_out(&c, UVERBS_ATTR_CORE_OUT, w->out, w->out_bytes);
	cmd_in_u64(&c, UVERBS_ATTR_WRITE_CMD, w->command);
	cmd_driver(&c, w->driver_in, w->driver_in_bytes, w->driver_out, w->driver_out_bytes);
	return cmd_send(&c, context);
}

int cmd_destroy(struct ibv_context *context, unsigned object, unsigned method, unsigned attr,
		uint32_t handle)
{
	struct cmd c = cmd_new(object, method);

	cmd_object(&c, attr, handle);
	return cmd_send(&c, context);
}
