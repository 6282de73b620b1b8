/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host's clocks, injected into a device.
 */
#ifndef EMU_CLOCKS_H
#define EMU_CLOCKS_H
#include "emu/obj/obj.h"

void clocks_begin(struct emu_dev *dev);
#endif
