/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of flow steering rules; a rule names them by their handle.
 */
#ifndef VERBS_COUNTERS_H
#define VERBS_COUNTERS_H
#include <infiniband/verbs.h>

struct vb_counters {
	struct ibv_counters counters;
	uint32_t handle;
};

static inline struct vb_counters *vb_counters_of(const struct ibv_counters *counters)
{
	return (struct vb_counters *)(uintptr_t)counters;
}
#endif
