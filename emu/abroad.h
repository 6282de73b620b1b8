/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What this function shares with others, in the segments of all of them.
 *
 * Threads: as emu/obj/abroad.h.
 */
#ifndef EMU_ABROAD_H
#define EMU_ABROAD_H
#include "emu/obj/obj.h"

struct fabric;
struct share;

/* Without a segment, @share NULL, nothing can be shared. */
void abroad_begin(struct emu_dev *dev, struct fabric *fabric, struct share *share);
void abroad_end(struct emu_dev *dev);
#endif
