/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules of flow steering, and what they name by handle.
 */
#ifndef VERBS_FLOW_H
#define VERBS_FLOW_H
#include "verbs/counters.h"

struct vb_flow {
	struct ibv_flow flow;
	struct vb_counters *counters;	/* that it adds to; NULL: it counts nothing */
};

struct vb_flow_action {
	struct ibv_flow_action action;
	uint32_t handle;
};

static inline struct vb_flow *vb_flow_of(const struct ibv_flow *flow)
{
	return (struct vb_flow *)(uintptr_t)flow;
}

static inline struct vb_flow_action *vb_flow_action_of(const struct ibv_flow_action *action)
{
	return (struct vb_flow_action *)(uintptr_t)action;
}
#endif
