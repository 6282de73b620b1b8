/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What libibverbs exports although no public header declares it: programs and other libraries of
 * rdma-core use it all the same.
 *
 * Source: binary-compat "pyverbs", "sysfs, by reader".
 */
#ifndef VERBS_EXTRA_H
#define VERBS_EXTRA_H
#include <stddef.h>
#include <stdint.h>

struct ibv_context;

/* Where sysfs is mounted. */
const char *ibv_get_sysfs_path(void);

/* The text of @dir/@file in @text, without its newline and with a zero; its length, or -1. */
int ibv_read_sysfs_file(const char *dir, const char *file, char *text, size_t bytes);

/* 0 for InfiniBand and RoCE v1, 1 for RoCE v2; -1 and errno. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned index,
		       unsigned *type);
#endif
