/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the device function of this process learns what somebody outside does to its port.
 *
 * Threads: the device lock is held.
 */
#ifndef EMU_PORT_H
#define EMU_PORT_H
#include <stdbool.h>
#include <stdint.h>
#include "emu/emu.h"
#include "emu/fabric/port.h"
#include "emu/identity.h"

struct emu_dev;

struct port_watch {
	struct emu_identity base;	/* who we are when nobody changes anything */
	struct emu_dev *dev;
	struct fabric *fabric;
	uint32_t changes;		/* seen of the fabric's */
	uint64_t down_ns, reregister_ns, fatal_ns;	/* seen of the port's times */
	bool is_watching;		/* visitors may wait for us */
};

/* What a function with this identity answers to, for fabric_gids_set(); how many. */
unsigned port_gids(const struct emu_identity *id, uint8_t gid[FABRIC_GIDS_MAX][16]);

/* Take over what was set before; nobody is told.  @w->base is filled. */
void port_watch_begin(struct port_watch *w, struct emu_dev *dev, struct fabric *fabric);
/* For the look of engine_look_with(); @ctx is the struct port_watch. */
bool port_watch_look(void *ctx);
#endif
