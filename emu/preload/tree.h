/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The emulated part of sysfs, as ordinary files.
 *
 * One tree serves all processes of a user that see the same NIC: its name is a hash of its
 * contents, and it appears complete by one rename.  When the port changes there is another one; a
 * directory that a program has open goes on to tell what was.
 */
#ifndef EMU_PRELOAD_TREE_H
#define EMU_PRELOAD_TREE_H
#include <stdint.h>

struct emu_identity;

#define TREE_ROOT_BYTES	256

/* The directory that stands for /sys as it is now, made if it is not there: @out, or NULL and
 * errno. */
const char *tree_root(char *out, unsigned bytes);

/* Makes the tree below @base, unless it is there; its path in @out.  0 or -errno */
int tree_make(const struct emu_identity *id, const char *base, char *out, unsigned bytes);
#endif
