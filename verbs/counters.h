/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of flow steering rules; a rule names them by their handle.
 */
#ifndef VERBS_COUNTERS_H
#define VERBS_COUNTERS_H
#include <infiniband/verbs.h>
#include <stdbool.h>

struct mlx5_ib_flow_counters_desc;
struct mlx5_ib_flow_counters_data;

struct vb_counters {
	struct ibv_counters counters;
	uint32_t handle;
	pthread_mutex_t mutex;
	struct mlx5_ib_flow_counters_desc *desc;	/* the last attached first */
	uint32_t count;
	unsigned flows;			/* rules that add to them: then nothing is attached */
};

static inline struct vb_counters *vb_counters_of(const struct ibv_counters *counters)
{
	return (struct vb_counters *)(uintptr_t)counters;
}

/* A rule that adds to them is about to be made, and then was or was not.  The first one tells the
 * device what is counted: only then @out is filled.  EINVAL: nothing is attached. */
int vb_counters_begin(struct vb_counters *counters, struct mlx5_ib_flow_counters_data *out);
void vb_counters_end(struct vb_counters *counters, bool is_made);
/* That rule is gone. */
void vb_counters_release(struct vb_counters *counters);
#endif
