/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the environment chooses of a device.  README.md has the variables.
 */
#ifndef EMU_OPTIONS_H
#define EMU_OPTIONS_H
#include "emu/obj/obj.h"

void options_read(struct dev_options *out);
#endif
