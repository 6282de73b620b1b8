/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a library asks of the kernel, command by command.
 *
 * ioctl() of this program stands in front of all others, so whatever libibverbs sends passes here.
 * Written down is what goes in, before the call; of what comes out only whether it worked.  A file
 * for each section; compare.py knows what the numbers mean.
 */
#include <dlfcn.h>
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include "golden.h"

#define QUERY_DEVICE_EX	(0x80000000 | IB_USER_VERBS_EX_CMD_QUERY_DEVICE)
#define INLINE_BYTES 8	/* so much of an attribute lies in its place, not behind a pointer */

static FILE *section;
static bool is_other_part;

void trace_section(const struct world *w, const char *name)
{
	if (section && fclose(section))
		fail(name);
	section = name ? fixture_open(w, "commands", name, "txt") : NULL;
}

/* Attributes that are longer than a word and go in; all others that are, come out. */
static const struct { uint16_t object, method, id; } longs[] = {
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE, UVERBS_ATTR_CORE_IN },
	{ UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, UVERBS_ATTR_CREATE_QP_CAP },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR, UVERBS_ATTR_ADVISE_MR_SGE_LIST },
	{ MLX5_IB_OBJECT_FLOW_MATCHER, MLX5_IB_METHOD_FLOW_MATCHER_CREATE,
	  MLX5_IB_ATTR_FLOW_MATCHER_MATCH_MASK },
	{ UVERBS_OBJECT_FLOW, MLX5_IB_METHOD_CREATE_FLOW, MLX5_IB_ATTR_CREATE_FLOW_MATCH_VALUE },
	{ UVERBS_OBJECT_FLOW, MLX5_IB_METHOD_CREATE_FLOW,
	  MLX5_IB_ATTR_CREATE_FLOW_ARR_FLOW_ACTIONS },
	{ UVERBS_OBJECT_FLOW_ACTION, MLX5_IB_METHOD_FLOW_ACTION_CREATE_MODIFY_HEADER,
	  MLX5_IB_ATTR_CREATE_MODIFY_HEADER_ACTIONS_PRM },
	{ UVERBS_OBJECT_FLOW_ACTION, MLX5_IB_METHOD_FLOW_ACTION_CREATE_PACKET_REFORMAT,
	  MLX5_IB_ATTR_CREATE_PACKET_REFORMAT_DATA_BUF },
};

static bool goes_in(const struct ib_uverbs_ioctl_hdr *header, const struct ib_uverbs_attr *attr)
{
	if (attr->attr_id == UVERBS_ATTR_UHW_IN)
		return true;
	for (unsigned i = 0; i < sizeof longs / sizeof *longs; i++)
		if (longs[i].object == header->object_id &&
		    longs[i].method == header->method_id && longs[i].id == attr->attr_id)
			return true;
	return false;
}

static void print_attr(const struct ib_uverbs_ioctl_hdr *header, const struct ib_uverbs_attr *attr)
{
	const uint8_t *byte = (const void *)(uintptr_t)attr->data;
	bool is_long = attr->len > INLINE_BYTES;

	fprintf(section, "\t0x%x len %u flags %u ", attr->attr_id, attr->len, attr->flags);
	if (is_long && !goes_in(header, attr)) {
		fputs("out\n", section);
		return;
	}
	if (!is_long)
		byte = (const void *)&attr->data;
	for (unsigned i = 0; i < (is_long ? attr->len : INLINE_BYTES); i++)
		fprintf(section, "%02x", byte[i]);
	fputc('\n', section);
}

static void print_command(const struct ib_uverbs_ioctl_hdr *header)
{
	fprintf(section, "0x%x 0x%x driver %u\n", header->object_id, header->method_id,
		header->driver_id);
	for (unsigned i = 0; i < header->num_attrs; i++)
		print_attr(header, &header->attrs[i]);
}

void trace_other_part(bool is_other)
{
	is_other_part = is_other;
}

static void *answer_of(const struct ib_uverbs_ioctl_hdr *header, size_t bytes)
{
	for (unsigned i = 0; i < header->num_attrs; i++)
		if (header->attrs[i].attr_id == UVERBS_ATTR_UHW_OUT &&
		    header->attrs[i].len >= bytes)
			return (void *)(uintptr_t)header->attrs[i].data;
	return NULL;
}

static uint64_t write_command(const struct ib_uverbs_ioctl_hdr *header)
{
	for (unsigned i = 0; i < header->num_attrs; i++)
		if (header->attrs[i].attr_id == UVERBS_ATTR_WRITE_CMD)
			return header->attrs[i].data;
	return 0;
}

/* What it wants, and what it can do. */
static void answer_change(const struct ib_uverbs_ioctl_hdr *header)
{
	struct mlx5_ib_alloc_ucontext_resp *context = answer_of(header, sizeof *context);
	struct mlx5_ib_query_device_resp *device = answer_of(header, sizeof *device);

	if (header->object_id != UVERBS_OBJECT_DEVICE)
		return;
	if (header->method_id == UVERBS_METHOD_GET_CONTEXT && context)
		context->eth_min_inline = MLX5_USER_INLINE_MODE_L2;
	if (header->method_id == UVERBS_METHOD_INVOKE_WRITE && device &&
	    write_command(header) == QUERY_DEVICE_EX)
		device->striding_rq_caps = (struct mlx5_ib_striding_rq_caps){
			.min_single_stride_log_num_of_bytes = 6,
			.max_single_stride_log_num_of_bytes = 13,
			.min_single_wqe_log_num_of_strides = 9,
			.max_single_wqe_log_num_of_strides = 16,
		};
}

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
	static int (*next)(int, unsigned long, ...);
	bool is_command = request == RDMA_VERBS_IOCTL && section;
	va_list arguments;
	void *argument;
	int result, error;

	va_start(arguments, request);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "ioctl");
	if (is_command)
		print_command(argument);
	result = next(fd, request, argument);
	error = errno;
	if (is_other_part && request == RDMA_VERBS_IOCTL && !result)
		answer_change(argument);
	if (is_command && result)
		fprintf(section, "\tfailed: %s\n", strerrorname_np(error));
	errno = error;
	return result;
}
