/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls: flow steering and counters.
 */
#ifndef INFINIBAND_VERBS_FLOW_CALLS_H
#define INFINIBAND_VERBS_FLOW_CALLS_H

#include <infiniband/verbs/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Packets of @flow go to @qp.  EPERM without CAP_NET_RAW; EBUSY, EINVAL: see the manual. */
static inline struct ibv_flow *ibv_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *flow)
{
	return __verbs_call_object(qp->context, ibv_create_flow, qp, flow);
}

static inline int ibv_destroy_flow(struct ibv_flow *flow_id)
{
	return __verbs_call_int(flow_id->context, ibv_destroy_flow, flow_id);
}

static inline struct ibv_flow_action *
ibv_create_flow_action_esp(struct ibv_context *ctx, struct ibv_flow_action_esp_attr *esp)
{
	return __verbs_call_object(ctx, create_flow_action_esp, ctx, esp);
}

static inline int ibv_modify_flow_action_esp(struct ibv_flow_action *action,
					     struct ibv_flow_action_esp_attr *esp)
{
	return __verbs_call_int(action->context, modify_flow_action_esp, action, esp);
}

/* EBUSY: a rule still uses it. */
static inline int ibv_destroy_flow_action(struct ibv_flow_action *action)
{
	return __verbs_call_int(action->context, destroy_flow_action, action);
}

static inline struct ibv_counters *ibv_create_counters(struct ibv_context *context,
						       struct ibv_counters_init_attr *init_attr)
{
	return __verbs_call_object(context, create_counters, context, init_attr);
}

static inline int ibv_destroy_counters(struct ibv_counters *counters)
{
	return __verbs_call_int(counters->context, destroy_counters, counters);
}

/* Before the counters are part of a rule; @flow must be NULL. */
static inline int ibv_attach_counters_point_flow(struct ibv_counters *counters,
						 struct ibv_counter_attach_attr *attr,
						 struct ibv_flow *flow)
{
	return __verbs_call_int(counters->context, attach_counters_point_flow, counters, attr,
				flow);
}

/* The first @ncounters values.  @flags: enum ibv_read_counters_flags. */
static inline int ibv_read_counters(struct ibv_counters *counters, uint64_t *counters_value,
				    uint32_t ncounters, uint32_t flags)
{
	return __verbs_call_int(counters->context, read_counters, counters, counters_value,
				ncounters, flags);
}

#ifdef __cplusplus
}
#endif
#endif
