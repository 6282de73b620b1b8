/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls: completion channels and queues, polling and events.
 */
#ifndef INFINIBAND_VERBS_CQ_CALLS_H
#define INFINIBAND_VERBS_CQ_CALLS_H

#include <infiniband/verbs/context.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context);

/* EBUSY: a queue still reports to it. */
int ibv_destroy_comp_channel(struct ibv_comp_channel *channel);

/*
 * At least @cqe entries.  @channel may be NULL; @comp_vector is less than
 * context->num_comp_vectors.  EINVAL: one of them is out of range.
 */
struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector);

static inline struct ibv_cq_ex *ibv_create_cq_ex(struct ibv_context *context,
						 struct ibv_cq_init_attr_ex *cq_attr)
{
	return __verbs_call_object(context, create_cq_ex, context, cq_attr);
}

/* At least @cqe entries from now on.  EINVAL: more completions wait than that. */
int ibv_resize_cq(struct ibv_cq *cq, int cqe);

static inline int ibv_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	return __verbs_call_int(cq->context, modify_cq, cq, attr);
}

/* Waits until every event of it is acknowledged.  EBUSY: a queue pair still uses it. */
int ibv_destroy_cq(struct ibv_cq *cq);

/* Takes up to @num_entries completions: how many, 0 if none waits, or negative: broken. */
static inline int ibv_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	return cq->context->ops.poll_cq(cq, num_entries, wc);
}

/* One event for the next completion; @solicited_only: that is solicited, or an error. */
static inline int ibv_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return cq->context->ops.req_notify_cq(cq, solicited_only);
}

/* Waits for one (EAGAIN if the channel is non-blocking).  0, or -1 with errno set. */
int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context);

/* Takes a lock: better once for many events. */
void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents);

#ifdef __cplusplus
}
#endif
#endif
