/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints what happens to a device and its ports, until the device is gone or somebody ends it.
 * It has no queues, so it sees nothing of what happens to those of others.
 */
#include <stdio.h>
#include <stdlib.h>

#include "examples/device.h"
#include "examples/fail.h"

#define NAME(event) [event] = #event

static const char *const event_names[] = {
	NAME(IBV_EVENT_CQ_ERR),
	NAME(IBV_EVENT_QP_FATAL),
	NAME(IBV_EVENT_QP_REQ_ERR),
	NAME(IBV_EVENT_QP_ACCESS_ERR),
	NAME(IBV_EVENT_COMM_EST),
	NAME(IBV_EVENT_SQ_DRAINED),
	NAME(IBV_EVENT_PATH_MIG),
	NAME(IBV_EVENT_PATH_MIG_ERR),
	NAME(IBV_EVENT_DEVICE_FATAL),
	NAME(IBV_EVENT_PORT_ACTIVE),
	NAME(IBV_EVENT_PORT_ERR),
	NAME(IBV_EVENT_LID_CHANGE),
	NAME(IBV_EVENT_PKEY_CHANGE),
	NAME(IBV_EVENT_SM_CHANGE),
	NAME(IBV_EVENT_SRQ_ERR),
	NAME(IBV_EVENT_SRQ_LIMIT_REACHED),
	NAME(IBV_EVENT_QP_LAST_WQE_REACHED),
	NAME(IBV_EVENT_CLIENT_REREGISTER),
	NAME(IBV_EVENT_GID_CHANGE),
	NAME(IBV_EVENT_WQ_FATAL),
};

static const struct program program = {
	.summary = "Prints the asynchronous events of a device as they come.",
	.letters = "d",
};

static const char *name_of(enum ibv_event_type type)
{
	size_t count = sizeof event_names / sizeof *event_names;

	return type < count && event_names[type] ? event_names[type] : "unexpected";
}

int main(int argc, char **argv)
{
	struct options options = { OPTIONS_DEFAULT };
	struct ibv_context *context;

	options_parse(&options, &program, argc, argv);
	/* Whoever reads a pipe wants each event when it comes. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	context = device_open(options.device);
	printf("%s: async event FD %d\n", ibv_get_device_name(context->device), context->async_fd);
	for (;;) {
		struct ibv_async_event event;

		check(ibv_get_async_event(context, &event), "get the next event");
		printf("  event_type %s (%d), port %d\n", name_of(event.event_type),
		       event.event_type, event.element.port_num);
		ibv_ack_async_event(&event);
	}
}
