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

/*
 * Packets of @flow, which has its specifications directly behind it, go to @qp: of raw packets or
 * datagrams.  The rule goes before @qp, its counters and its actions go.
 *
 * EINVAL: see the manual.  EEXIST: the same packets have another fate.  EOPNOTSUPP, ENXIO: the
 * device does not look at that, or not at all.  EPERM without CAP_NET_RAW.  ENOMEM
 */
static inline struct ibv_flow *ibv_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *flow)
{
	return __verbs_call_object(qp->context, ibv_create_flow, qp, flow);
}

static inline int ibv_destroy_flow(struct ibv_flow *flow_id)
{
	return __verbs_call_int(flow_id->context, ibv_destroy_flow, flow_id);
}

/* Encrypt or decrypt.  EOPNOTSUPP: the device does not. */
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

/* Empty; what is counted is attached, and then it is part of rules. */
static inline struct ibv_counters *ibv_create_counters(struct ibv_context *context,
						       struct ibv_counters_init_attr *init_attr)
{
	return __verbs_call_object(context, create_counters, context, init_attr);
}

/* EBUSY: a rule still counts there. */
static inline int ibv_destroy_counters(struct ibv_counters *counters)
{
	return __verbs_call_int(counters->context, destroy_counters, counters);
}

/* Before the counters are part of a rule, or EBUSY; @flow must be NULL.  ENOTSUP: it is not, or
 * nobody counts that. */
static inline int ibv_attach_counters_point_flow(struct ibv_counters *counters,
						 struct ibv_counter_attach_attr *attr,
						 struct ibv_flow *flow)
{
	return __verbs_call_int(counters->context, attach_counters_point_flow, counters, attr,
				flow);
}

/* The first @ncounters values, while a rule counts.  @flags: enum ibv_read_counters_flags.
 * EINVAL: no rule does, or something is counted behind them. */
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
