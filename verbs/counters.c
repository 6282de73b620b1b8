/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters that flow steering rules add to.
 *
 * What is counted, and at which index it is read, is kept here until the first rule tells the
 * device.
 *
 * Source: device-abi B.9; ibv_create_counters(3), ibv_read_counters(3).
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdlib.h>
#include <string.h>
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
		pthread_mutex_init(&counters->mutex, NULL);
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

	if (error)
		return error;
	pthread_mutex_destroy(&vb_counters_of(counters)->mutex);
	free(vb_counters_of(counters)->desc);
	free(counters);
	return 0;
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

/* --- what they count --- */

static int attach_locked(struct vb_counters *c, const struct ibv_counter_attach_attr *attr)
{
	struct mlx5_ib_flow_counters_desc *desc;

	if (c->flows)
		return EBUSY;
	desc = realloc(c->desc, (c->count + (size_t)1) * sizeof *desc);
	if (!desc)
		return ENOMEM;
	memmove(desc + 1, desc, c->count * sizeof *desc);
	desc[0] = (struct mlx5_ib_flow_counters_desc){ .description = attr->counter_desc,
						       .index = attr->index };
	c->desc = desc;
	c->count++;
	return 0;
}

int vb_attach_counters_point_flow(struct ibv_counters *counters,
				  struct ibv_counter_attach_attr *attr, struct ibv_flow *flow)
{
	struct vb_counters *c = vb_counters_of(counters);
	int error;

	if (flow)
		return ENOTSUP;	/* rules are given counters when they are made */
	if (attr->comp_mask)
		return EOPNOTSUPP;
	if ((unsigned)attr->counter_desc > IBV_COUNTER_BYTES)
		return ENOTSUP;
	pthread_mutex_lock(&c->mutex);
	error = attach_locked(c, attr);
	pthread_mutex_unlock(&c->mutex);
	return error;
}

/* Holds the mutex when it succeeds, so that nothing is attached meanwhile. */
int vb_counters_begin(struct vb_counters *c, struct mlx5_ib_flow_counters_data *out)
{
	pthread_mutex_lock(&c->mutex);
	if (!c->flows && !c->count) {
		pthread_mutex_unlock(&c->mutex);
		return EINVAL;
	}
	if (!c->flows) {
		out->counters_data = (uintptr_t)c->desc;
		out->ncounters = c->count;
	}
	return 0;
}

void vb_counters_end(struct vb_counters *c, bool is_made)
{
	c->flows += is_made;
	pthread_mutex_unlock(&c->mutex);
}

void vb_counters_release(struct vb_counters *c)
{
	pthread_mutex_lock(&c->mutex);
	c->flows--;
	pthread_mutex_unlock(&c->mutex);
}
