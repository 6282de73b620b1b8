/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the emulated sysfs say; where they stand is for others to arrange.
 */
#ifndef EMU_SYSFS_H
#define EMU_SYSFS_H
#include <stdbool.h>

struct emu_identity;

/* Where the PCI function stands.  No real bus has this domain. */
#define SYSFS_PCI_BUS		"pcifffe:00"
#define SYSFS_PCI_FUNCTION	"fffe:00:00.0"

/* The RDMA device, below the root of the tree. */
#define SYSFS_IBDEV \
	"devices/" SYSFS_PCI_BUS "/" SYSFS_PCI_FUNCTION "/infiniband/" EMU_DEVICE_NAME

/* One file of the tree.  @text is its content, with @is_link the target of a symbolic link. */
typedef int sysfs_emit_fn(void *ctx, const char *path, const char *text, bool is_link);

/* Calls @emit for every file, in a fixed order, until one returns non-zero. */
int sysfs_describe(const struct emu_identity *id, sysfs_emit_fn *emit, void *ctx);
#endif
