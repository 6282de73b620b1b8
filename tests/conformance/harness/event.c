/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asynchronous events of one end; see end.h.
 *
 * Two ends may share a context, and its events come in one stream: what is read and was not
 * asked for stays in the context's log.
 */
#include <poll.h>
#include "end.h"

static bool is_about(const struct end *e, const void *element)
{
	return element == e->qp || element == e->cq[SEND_CQ] || element == e->cq[RECV_CQ] ||
	       (e->srq && element == e->srq) || (e->target && element == e->target);
}

static void *event_element(const struct ibv_async_event *event)
{
	switch ((int)event->event_type) {
	case IBV_EVENT_CQ_ERR:
		return event->element.cq;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return event->element.srq;
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_GID_CHANGE:
		return NULL;
	default:
		return event->element.qp;
	}
}

/* Take an event out of the log. */
static bool log_take(struct end *e, enum ibv_event_type type)
{
	struct event_log *log = e->log;

	for (unsigned i = 0; i < log->count; i++) {
		if (log->event[i].type != type || !is_about(e, log->event[i].element))
			continue;
		log->event[i] = log->event[--log->count];
		return true;
	}
	return false;
}

static void log_read(struct end *e)
{
	struct event_log *log = e->log;
	struct ibv_async_event event;

	while (log->count < 64 && !ibv_get_async_event(e->context, &event)) {
		log->event[log->count].type = event.event_type;
		log->event[log->count++].element = event_element(&event);
		ibv_ack_async_event(&event);
	}
}

bool end_event(struct end *e, enum ibv_event_type type, int ms)
{
	uint64_t deadline = now_ms() + (uint64_t)ms;
	struct pollfd fd = { .fd = e->context->async_fd, .events = POLLIN };

	for (;;) {
		uint64_t now;

		log_read(e);
		if (log_take(e, type))
			return true;
		now = now_ms();
		if (now >= deadline)
			return false;
		poll(&fd, 1, (int)(deadline - now));
	}
}
