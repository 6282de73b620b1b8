/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flow rules between a device function, which has them, and the fabric, where the others see them.
 */
#ifndef EMU_PORT_RULES_H
#define EMU_PORT_RULES_H
#include "emu/obj/obj.h"

struct engine;
struct fabric;
struct rules;

/* @node: the emulated host.  0 or -errno; the device's rules and the engine's switch are joined. */
int port_rules_begin(struct emu_dev *dev, struct engine *engine, struct fabric *fabric,
		     uint32_t node, struct rules **out);
#endif
