/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finding and opening a device, what to ask it first, and the two things that every pingpong does
 * with a queue pair: address a peer, and change the state.  Everything fails as fail.h says.
 */
#ifndef EXAMPLES_DEVICE_H
#define EXAMPLES_DEVICE_H

#include <infiniband/verbs.h>

#include "examples/options.h"

/* All devices; the caller frees the list with ibv_free_device_list(). */
struct ibv_device **device_list(int *count_out);

/* Where in @list the device of that name is; NULL: the first. */
struct ibv_device *device_find(struct ibv_device **list, const char *name);

/* Opens the device of that name, or the first. */
struct ibv_context *device_open(const char *name);

/* The port that the options name; it must be one that its peers can address. */
struct ibv_port_attr device_port(struct ibv_context *context, const struct options *options);

/* The GID that the options name; zero if they name none. */
union ibv_gid device_gid(struct ibv_context *context, const struct options *options);

/* Fails unless memory paged on demand may be used for all of @needed (IBV_ODP_SUPPORT_*). */
void device_needs_odp(const struct ibv_device_attr_ex *attr, uint32_t supported, uint32_t needed);

/* @size bytes of whole pages, filled with a value that no example sends first. */
void *buffer_alloc(size_t size);

/* The way to a peer: by GID if it has one, by LID otherwise. */
struct ibv_ah_attr path_to(const union ibv_gid *gid, unsigned lid, const struct options *options);

enum ibv_mtu mtu_of_bytes(int bytes);

/* ibv_modify_qp(); @attr->qp_state is the new state. */
void qp_change(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);

/* A random initial packet sequence number. */
unsigned psn_random(void);

#endif
