/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a command descriptor holds: a sealed memfd that says in which fabric, and of which process,
 * the device file is.
 *
 * The descriptor is the permission.  Its open file description holds a lock for itself: whoever got
 * it by dup(2), over a socket, or through fork() and exec() has the same description, and who
 * opened the file under /proc has another one.  The same lock tells when nobody has it any more.
 *
 */
#ifndef EMU_CARD_H
#define EMU_CARD_H
#include <stdbool.h>
#include "emu/uverbs/uverbs.h"

/* An empty one.  Descriptor or -errno */
int card_create(const char *name, bool closes_on_exec);
/* 0 or -errno: then it serves this process only. */
int card_write(int fd, const char *fabric_dir, uint64_t node_guid, struct uv_identity *id);
/* -EINVAL no command descriptor, or of another fabric or node; -EBADF not the one that was
 * passed */
int card_read(int fd, const char *fabric_dir, uint64_t node_guid, struct uv_identity *out);
/* Could it be one?  Before there is a function to compare with. */
bool card_is_one(int fd);

/* A descriptor of its own on the same file, to wait with; -1: none. */
int card_watch(int fd);
/* Does anybody have the command descriptor?  Waits until nobody does if it @waits. */
bool card_is_out(int watch, bool waits);
#endif
