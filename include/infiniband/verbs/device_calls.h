/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls: finding and opening devices, asking what they and their ports are, events, fork().
 */
#ifndef INFINIBAND_VERBS_DEVICE_CALLS_H
#define INFINIBAND_VERBS_DEVICE_CALLS_H

#include <infiniband/verbs/context.h>
#include <infiniband/verbs/address.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- devices ---------------------------------------------------------------- */

/*
 * All devices there are; the array ends with NULL.  @num_devices may be NULL.  No device: an
 * empty array.  NULL: EPERM, ENOMEM, or ENOSYS if the kernel has no RDMA.
 */
struct ibv_device **ibv_get_device_list(int *num_devices);

/* Frees the array, and the devices in it that are not open. */
void ibv_free_device_list(struct ibv_device **list);

/* "mlx5_0"; belongs to the device.  NULL for no device. */
const char *ibv_get_device_name(struct ibv_device *device);

/* A number that the kernel gave it and gives no other; -1 if it gives none. */
int ibv_get_device_index(struct ibv_device *device);

/* In network byte order; 0 if unknown. */
__be64 ibv_get_device_guid(struct ibv_device *device);

struct ibv_context *ibv_open_device(struct ibv_device *device);

/* Leaves the objects of the context alone: destroy them before.  0, or -1. */
int ibv_close_device(struct ibv_context *context);

/* A second context on a file that another process, or this one, opened and passed on. */
struct ibv_context *ibv_import_device(int cmd_fd);

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *device_attr);

/* @input may be NULL.  A device that knows only the short form fills orig_attr, the rest is 0. */
static inline int ibv_query_device_ex(struct ibv_context *context,
				      const struct ibv_query_device_ex_input *input,
				      struct ibv_device_attr_ex *attr)
{
	struct verbs_context *vctx;
	int error = EOPNOTSUPP;

	if (input && input->comp_mask)
		return EINVAL;
	vctx = verbs_get_ctx_op(context, query_device_ex);
	if (vctx)
		error = vctx->query_device_ex(context, input, attr, sizeof(*attr));
	if (error != EOPNOTSUPP && error != ENOSYS)
		return error;
	memset(attr, 0, sizeof(*attr));
	return ibv_query_device(context, &attr->orig_attr);
}

/* Reads what values->comp_mask (enum ibv_values_mask) asks for. */
static inline int ibv_query_rt_values_ex(struct ibv_context *context,
					 struct ibv_values_ex *values)
{
	return __verbs_call_int(context, query_rt_values, context, values);
}

/* --- ports ------------------------------------------------------------------ */

/* The function in the library writes the short structure of old programs only ... */
int ibv_query_port(struct ibv_context *context, uint8_t port_num,
		   struct _compat_ibv_port_attr *port_attr);

/* ... so programs come here by the macro below, and go there if they must. */
static inline int ___ibv_query_port(struct ibv_context *context, uint8_t port_num,
				    struct ibv_port_attr *port_attr)
{
	struct verbs_context *vctx = verbs_get_ctx_op(context, query_port);

	if (vctx)
		return vctx->query_port(context, port_num, port_attr, sizeof(*port_attr));
	memset(port_attr, 0, sizeof(*port_attr));
	return ibv_query_port(context, port_num, (struct _compat_ibv_port_attr *)port_attr);
}

/* @port_num counts from 1. */
#define ibv_query_port(context, port_num, port_attr)                                           \
	___ibv_query_port(context, port_num, port_attr)

/* An unused entry is a GID of zeros.  0, or -1 with errno set. */
int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid);

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size);

/* @flags must be 0.  ENODATA: the entry is unused. */
static inline int ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num,
				   uint32_t gid_index, struct ibv_gid_entry *entry,
				   uint32_t flags)
{
	return _ibv_query_gid_ex(context, port_num, gid_index, entry, flags, sizeof(*entry));
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_size);

/* The used entries of all ports: how many, or -errno.  @flags must be 0. */
static inline ssize_t ibv_query_gid_table(struct ibv_context *context,
					  struct ibv_gid_entry *entries, size_t max_entries,
					  uint32_t flags)
{
	return _ibv_query_gid_table(context, entries, max_entries, flags, sizeof(*entries));
}

/* 0, or -1 with errno set. */
int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey);

/* Where in the table of the port the key is; -1: nowhere. */
int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey);

/* --- events ----------------------------------------------------------------- */

/* Waits for one (EAGAIN if async_fd is non-blocking).  0, or -1 with errno set. */
int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event);

/* Each event must be acknowledged: destroying its object waits for that. */
void ibv_ack_async_event(struct ibv_async_event *event);

/* --- words for numbers; never NULL ------------------------------------------ */

const char *ibv_node_type_str(enum ibv_node_type node_type);
const char *ibv_port_state_str(enum ibv_port_state port_state);
const char *ibv_event_type_str(enum ibv_event_type event);

/* --- fork ------------------------------------------------------------------- */

/*
 * Keeps registered pages with the parent when it forks.  Call it before anything is registered:
 * EINVAL if that is too late.
 */
int ibv_fork_init(void);
enum ibv_fork_status ibv_is_fork_initialized(void);

#ifdef __cplusplus
}
#endif
#endif
