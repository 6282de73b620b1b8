/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What this process was told to have behind its port: VERBENA_PORT_PCAP, VERBENA_PORT_TAP.
 */
#ifndef EMU_PORT_UPLINK_H
#define EMU_PORT_UPLINK_H
#include "emu/obj/obj.h"

struct emu_flow;
struct engine;
struct fabric;
struct uplink;

struct port_uplink {
	struct emu_dev *dev;
	struct engine *engine;
	struct fabric *fabric;
	struct uplink *outside, *host;	/* NULL: none */
	struct emu_flow *host_rule;	/* what nobody wants is the host's */
	int token;			/* that no other function of this host has the TAP */
};

/* The function's last part: rules are published, no thread runs.  @node: the emulated host.
 * 0; or -errno, which was complained about, with port_uplink_end() to come. */
int port_uplink_begin(struct port_uplink *p, struct emu_dev *dev, struct engine *engine,
		      struct fabric *fabric, uint32_t node);
/* No thread runs the engine any more. */
void port_uplink_end(struct port_uplink *p);
/* In a forked child: descriptors are closed, and what the parent has stays. */
void port_uplink_abandon(struct port_uplink *p);
#endif
