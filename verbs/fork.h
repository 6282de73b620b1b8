/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that the device uses, and fork(): a child that shares it would make the kernel give the
 * parent another page at its next write, which the device does not see.
 *
 * Source: ibv_fork_init(3); inventory 1.10.
 */
#ifndef VERBS_FORK_H
#define VERBS_FORK_H
#include <stddef.h>

/* The range is used by the device, once more; until as many releases it is kept from children.
 * Free of charge unless ibv_fork_init() was called.  0 or an errno. */
int vb_fork_keep(const void *at, size_t bytes);
void vb_fork_release(const void *at, size_t bytes);
#endif
