/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files whose command descriptor others have when this process closes its last one.
 */
#ifndef EMU_LEFT_H
#define EMU_LEFT_H
#include <stdbool.h>

struct uv_file;

/* Takes over @watch, of card_watch().  True: somebody has the descriptor, and when nobody does any
 * more emu_close() will be called.  False: close the file now. */
bool left_is_open(struct uv_file *uv, int watch);
#endif
