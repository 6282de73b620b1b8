/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of control commands: registration (7), and opening a device (8).
 */
#include "rows.h"
#include "verbs.h"

enum { SMALL = 4096, LARGE = 64 << 20 };

struct registration {
	struct port *port;
	uint8_t *at;
	size_t bytes;
};

static void register_it(void *ctx, unsigned count)
{
	struct registration *r = ctx;

	while (count--) {
		struct ibv_mr *mr = ibv_reg_mr(r->port->pd, r->at, r->bytes,
					       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

		need(mr, "ibv_reg_mr");
		ibv_dereg_mr(mr);
	}
}

static void nothing(void *ctx, unsigned count)
{
	(void)ctx;
	(void)count;
}

/* Against a bar in ns, so the other side does nothing. */
void row_register(void)
{
	static struct port port;
	struct registration small = { &port, memory_private(SMALL), SMALL };
	struct side a = { .run = register_it, .ctx = &small }, b = { .run = nothing, .count = 1 };

	port_open(&port, SMALL, 15);
	alternate(&a, &b);
}

void row_register_large(void)
{
	static struct port port;
	struct registration small = { &port, memory_private(SMALL), SMALL };
	struct registration large = { &port, memory_private(LARGE), LARGE };
	struct side a = { .run = register_it, .ctx = &large };
	struct side b = { .run = register_it, .ctx = &small };

	port_open(&port, SMALL, 15);
	alternate(&a, &b);
}

static double open_and_close_ns(void)
{
	uint64_t start = ticks();
	int count;
	struct ibv_device **list = ibv_get_device_list(&count);
	struct ibv_context *context;

	if (!list || !count)
		die("bench: no RDMA device; run it with `verbena run`");
	context = ibv_open_device(list[0]);
	need(context, "ibv_open_device");
	ibv_free_device_list(list);
	ibv_close_device(context);
	return ticks_ns(ticks() - start);
}

/* The first in a process and the next; a process has one first, so this is one round. */
void row_open(void)
{
	double first = open_and_close_ns(), again = 1e18;

	for (int i = 0; i < 5; i++) {
		double ns = open_and_close_ns();

		again = ns < again ? ns : again;
	}
	tell_info("first", first);
	tell_info("again", again);
}
