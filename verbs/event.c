/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion channels and asynchronous events.
 */
#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <stdlib.h>
#include <unistd.h>
#include "verbs/cmd.h"
#include "verbs/event.h"
#include "verbs/foreign.h"
#include "verbs/queue.h"
#include "verbs/wq.h"

void vb_event_state_begin(pthread_mutex_t *mutex, pthread_cond_t *cond)
{
	pthread_mutex_init(mutex, NULL);
	pthread_cond_init(cond, NULL);
}

void vb_event_state_end(pthread_mutex_t *mutex, pthread_cond_t *cond)
{
	pthread_cond_destroy(cond);
	pthread_mutex_destroy(mutex);
}

/* The counters wrap together. */
void vb_events_await(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *completed,
		     uint32_t reported)
{
	pthread_mutex_lock(mutex);
	while (*completed != reported)
		pthread_cond_wait(cond, mutex);
	pthread_mutex_unlock(mutex);
}

static void acknowledge(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed,
			uint32_t count)
{
	pthread_mutex_lock(mutex);
	*completed += count;
	pthread_cond_signal(cond);
	pthread_mutex_unlock(mutex);
}

/* --- completion channels --- */

VB_EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct ib_uverbs_create_comp_channel request = { 0 };
	struct ib_uverbs_create_comp_channel_resp answer = { 0 };
	struct cmd_write w = {
		.command = IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, .in = &request,
		.in_bytes = sizeof request, .out = &answer, .out_bytes = sizeof answer,
	};
	struct ibv_comp_channel *channel;
	int error;

	if (!vb_is_ours(context))
		return FOREIGN(ibv_create_comp_channel, context);
	channel = calloc(1, sizeof *channel);
	error = channel ? cmd_write(&w, context) : ENOMEM;
	if (error) {
		free(channel);
		errno = error;
		return NULL;
	}
	channel->context = context;
	channel->fd = (int)answer.fd;
	return channel;
}

VB_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	struct ibv_context *context = channel->context;
	int users;

	if (!vb_is_ours(context))
		return FOREIGN(ibv_destroy_comp_channel, channel);
	pthread_mutex_lock(&context->mutex);
	users = channel->refcnt;
	pthread_mutex_unlock(&context->mutex);
	if (users)
		return EBUSY;
	close(channel->fd);
	free(channel);
	return 0;
}

static void channel_count(struct ibv_comp_channel *channel, int by)
{
	if (!channel)
		return;
	pthread_mutex_lock(&channel->context->mutex);
	channel->refcnt += by;
	pthread_mutex_unlock(&channel->context->mutex);
}

void vb_channel_hold(struct ibv_comp_channel *channel)
{
	channel_count(channel, 1);
}

void vb_channel_release(struct ibv_comp_channel *channel)
{
	channel_count(channel, -1);
}

/* 0, or -1 and errno. */
static int event_read(int fd, void *event, size_t bytes)
{
	ssize_t length = read(fd, event, bytes);

	if (length == (ssize_t)bytes)
		return 0;
	if (length >= 0)
		errno = EIO;
	return -1;
}

VB_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
			       void **cq_context)
{
	const struct vb_context *c = vb_context_of(channel->context);
	struct ib_uverbs_comp_event_desc event;
	int fd = channel->fd;		/* a channel that is destroyed meanwhile is EBADF */
	int error;

	if (!vb_is_ours(channel->context))
		return FOREIGN(ibv_get_cq_event, channel, cq, cq_context);
	error = c->channel.ops->doze ? c->channel.ops->doze(fd) : 0;
	if (error) {
		errno = -error;
		return -1;
	}
	if (event_read(fd, &event, sizeof event))
		return -1;
	*cq = (struct ibv_cq *)(uintptr_t)event.cq_handle;
	*cq_context = (*cq)->cq_context;
	/* The next request to notify is another one. */
	__atomic_fetch_add(&vb_cq_of(*cq)->arm_sn, 1, __ATOMIC_RELAXED);
	return 0;
}

VB_EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned count)
{
	if (!vb_is_ours(cq->context)) {
		FOREIGN(ibv_ack_cq_events, cq, count);
		return;
	}
	acknowledge(&cq->mutex, &cq->cond, &cq->comp_events_completed, count);
}

/* --- asynchronous events --- */

enum about { ABOUT_PORT, ABOUT_CQ, ABOUT_QP, ABOUT_SRQ, ABOUT_WQ, ABOUT_DEVICE };

/* By enum ibv_event_type; what is not listed is about a port. */
static const uint8_t event_about[] = {
	[IBV_EVENT_CQ_ERR] = ABOUT_CQ,
	[IBV_EVENT_QP_FATAL] = ABOUT_QP,
	[IBV_EVENT_QP_REQ_ERR] = ABOUT_QP,
	[IBV_EVENT_QP_ACCESS_ERR] = ABOUT_QP,
	[IBV_EVENT_COMM_EST] = ABOUT_QP,
	[IBV_EVENT_SQ_DRAINED] = ABOUT_QP,
	[IBV_EVENT_PATH_MIG] = ABOUT_QP,
	[IBV_EVENT_PATH_MIG_ERR] = ABOUT_QP,
	[IBV_EVENT_DEVICE_FATAL] = ABOUT_DEVICE,
	[IBV_EVENT_SRQ_ERR] = ABOUT_SRQ,
	[IBV_EVENT_SRQ_LIMIT_REACHED] = ABOUT_SRQ,
	[IBV_EVENT_QP_LAST_WQE_REACHED] = ABOUT_QP,
	[IBV_EVENT_WQ_FATAL] = ABOUT_WQ,
	[IBV_EVENT_GID_CHANGE] = ABOUT_PORT,
};

static enum about about(enum ibv_event_type type)
{
	return (unsigned)type < sizeof event_about ? event_about[type] : ABOUT_PORT;
}

VB_EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct vb_context *c = vb_context_of(context);
	struct ib_uverbs_async_event_desc desc;

	if (!vb_is_ours(context))
		return FOREIGN(ibv_get_async_event, context, event);
	if (c->channel.ops->awaits_events)
		c->channel.ops->awaits_events(&c->channel);
	if (event_read(context->async_fd, &desc, sizeof desc))
		return -1;
	event->event_type = desc.event_type;
	switch (about(desc.event_type)) {
	case ABOUT_CQ:
		event->element.cq = (struct ibv_cq *)(uintptr_t)desc.element;
		break;
	case ABOUT_QP:
		event->element.qp = (struct ibv_qp *)(uintptr_t)desc.element;
		break;
	case ABOUT_SRQ:
		event->element.srq = (struct ibv_srq *)(uintptr_t)desc.element;
		break;
	case ABOUT_WQ:
		event->element.wq = (struct ibv_wq *)(uintptr_t)desc.element;
		break;
	case ABOUT_PORT:
	case ABOUT_DEVICE:
		event->element.port_num = (int)desc.element;
		break;
	}
	return 0;
}

VB_EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	switch (about(event->event_type)) {
	case ABOUT_CQ: {
		struct ibv_cq *cq = event->element.cq;

		acknowledge(&cq->mutex, &cq->cond, &cq->async_events_completed, 1);
		break;
	}
	case ABOUT_QP: {
		struct ibv_qp *qp = event->element.qp;

		acknowledge(&qp->mutex, &qp->cond, &qp->events_completed, 1);
		break;
	}
	case ABOUT_SRQ: {
		struct ibv_srq *srq = event->element.srq;

		acknowledge(&srq->mutex, &srq->cond, &srq->events_completed, 1);
		break;
	}
	case ABOUT_WQ: {
		struct ibv_wq *wq = event->element.wq;

		acknowledge(&wq->mutex, &wq->cond, &wq->events_completed, 1);
		break;
	}
	case ABOUT_PORT:
	case ABOUT_DEVICE:
		break;
	}
}
