/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters that flow steering rules add to.
 *
 * What a counter counts is said by the rule that it is given to.  No device that this library was
 * tried on takes such rules, so that nothing can be attached yet.
 *
 * Source: device-abi B.9; ibv_create_counters(3), ibv_read_counters(3).
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <stdlib.h>
#include "verbs/cmd.h"
#include "verbs/context.h"
#include "verbs/counters.h"
#include "verbs/ops.h"

static int create_command(struct vb_counters *counters)
{
	struct cmd cmd = cmd_new(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE);
	unsigned at = cmd_object(&cmd, UVERBS_ATTR_CREATE_COUNTERS_HANDLE, 0);
	int error = cmd_send(&cmd, counters->counters.context);

	counters->handle = cmd_handle(&cmd, at);
	return error;
}

struct ibv_counters *vb_create_counters(struct ibv_context *context,
					struct ibv_counters_init_attr *init_attr)
{
	struct vb_counters *counters = calloc(1, sizeof *counters);
	int error = !counters ? ENOMEM : init_attr->comp_mask ? EOPNOTSUPP : 0;

	if (!error) {
		counters->counters.context = context;
		error = create_command(counters);
	}
	if (!error)
		return &counters->counters;
	free(counters);
	errno = error;
	return NULL;
}

int vb_destroy_counters(struct ibv_counters *counters)
{
	int error = cmd_destroy(counters->context, UVERBS_OBJECT_COUNTERS,
				UVERBS_METHOD_COUNTERS_DESTROY,
				UVERBS_ATTR_DESTROY_COUNTERS_HANDLE,
				vb_counters_of(counters)->handle);

	if (!error)
		free(counters);
	return error;
}

#define VALUES_MAX	(UINT16_MAX / sizeof(uint64_t))	/* an attribute's length is 16 bits */

int vb_read_counters(struct ibv_counters *counters, uint64_t *counters_value, uint32_t ncounters,
		     uint32_t flags)
{
	struct cmd cmd = cmd_new(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_READ);

	if (ncounters > VALUES_MAX)
		return EINVAL;
	cmd_object(&cmd, UVERBS_ATTR_READ_COUNTERS_HANDLE, vb_counters_of(counters)->handle);
	cmd_out(&cmd, UVERBS_ATTR_READ_COUNTERS_BUFF, counters_value,
		ncounters * sizeof *counters_value);
	cmd_in_u32(&cmd, UVERBS_ATTR_READ_COUNTERS_FLAGS, flags);
	return cmd_send(&cmd, counters->context);
}

int vb_attach_counters_point_flow(struct ibv_counters *counters,
				  struct ibv_counter_attach_attr *attr, struct ibv_flow *flow)
{
	(void)counters;
	(void)attr;
	(void)flow;
	return EOPNOTSUPP;
}
