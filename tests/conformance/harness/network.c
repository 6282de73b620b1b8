/* SPDX-License-Identifier: BSD-2-Clause */
/* What happens to the network; see network.h. */
#include "network.h"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <criterion/criterion.h>
#include "end.h"

void network_begin(void)
{
	if (!getenv("VERBENA_BIN"))
		cr_skip_test("VERBENA_BIN does not name the command that changes ports");
	network("port reset");
}

/* The profile whose port is InfiniBand, as tests/CMakeLists.txt asks for it. */
static bool wants_infiniband(void)
{
	const char *nic = getenv("VERBENA_NIC");

	return nic && !strcmp(nic, "connectx-6");
}

void network_begin_infiniband(void)
{
	struct ibv_context *c = device_open();
	struct ibv_port_attr port;

	cr_assert_not_null(c);
	port = network_port(c);
	ibv_close_device(c);
	if (port.link_layer != IBV_LINK_LAYER_INFINIBAND) {
		cr_assert_not(wants_infiniband(), "the port is not InfiniBand");
		cr_skip_test("the port is not InfiniBand");
	}
	network_begin();
}

void network(const char *words)
{
	char command[512];

	snprintf(command, sizeof command, "%s %s", getenv("VERBENA_BIN"), words);
	cr_assert_eq(system(command), 0, "%s", command);
}

/* The descriptor may block. */
static bool event_waits(struct ibv_context *context, int ms)
{
	struct pollfd p = { .fd = context->async_fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

void network_expect(struct ibv_context *context, enum ibv_event_type type)
{
	struct ibv_async_event event;

	cr_assert(event_waits(context, AWAIT_MS), "no %s", ibv_event_type_str(type));
	cr_assert_eq(ibv_get_async_event(context, &event), 0);
	ibv_ack_async_event(&event);
	cr_assert_eq(event.event_type, type, "%s instead of %s",
		     ibv_event_type_str(event.event_type), ibv_event_type_str(type));
	cr_expect_eq(event.element.port_num, 1);
}

void network_expect_none(struct ibv_context *context)
{
	struct ibv_async_event event;

	if (!event_waits(context, 0))
		return;
	cr_assert_eq(ibv_get_async_event(context, &event), 0);
	cr_assert(false, "%s", ibv_event_type_str(event.event_type));
}

struct ibv_port_attr network_port(struct ibv_context *context)
{
	struct ibv_port_attr port;

	cr_assert_eq(ibv_query_port(context, 1, &port), 0);
	return port;
}
