/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of devices, opening and closing.
 *
 * VERBENA_NIC decides once a process where devices come from: "hw" means the kernel's, anything
 * else the emulated one.  With hw, devices whose queues we do not know come from the system's
 * libibverbs (foreign.c); with VERBENA_CHANNEL=kernel alone they do not, because the kernel may be
 * the shim, which that library would look past.
 *
 * A device is kept as long as its provider lists it, or a list or a context refers to it: asking
 * twice gives the same pointers, and programs that open one after they freed their list get away
 * with it, as they do with rdma-core.
 *
 * Source: device-abi A, B.4; inventory 1.1.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/mlx5-abi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "verbs/cmd.h"
#include "verbs/context.h"
#include "verbs/foreign.h"

#define DEVICES_MAX 64u

static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vb_device *devices;

static bool is_set_to(const char *variable, const char *value)
{
	const char *text = getenv(variable);

	return text && !strcmp(text, value);
}

static bool is_hardware(void)
{
	return is_set_to("VERBENA_NIC", "hw");
}

static const struct channel_provider *provider(void)
{
	return is_hardware() || is_set_to("VERBENA_CHANNEL", "kernel") ? &channel_kernel :
									 &channel_emulated;
}

/* Tells our devices from those of another libibverbs. */
static struct ibv_context *mark(struct ibv_device *device, int fd)
{
	(void)device;
	(void)fd;
	return NULL;
}

bool vb_device_is_ours(const struct ibv_device *device)
{
	return device->_ops._dummy1 == mark;
}

bool vb_is_ours(const struct ibv_context *context)
{
	return vb_device_is_ours(context->device);
}

int vb_fail(int error)
{
	errno = error;
	return error;
}

unsigned vb_log2_ceil(uint64_t value)
{
	return value <= 1 ? 0 : 64u - (unsigned)__builtin_clzll(value - 1);
}

/* --- the list --- */

static void device_fill(struct vb_device *d, const struct channel_device *found)
{
	d->found = *found;
	d->base._ops._dummy1 = mark;
	d->base.node_type = found->node_type;
	d->base.transport_type = IBV_TRANSPORT_IB;
	memcpy(d->base.name, found->name, sizeof d->base.name);
	memcpy(d->base.dev_name, found->dev_name, sizeof d->base.dev_name);
	memcpy(d->base.dev_path, found->dev_path, sizeof d->base.dev_path);
	memcpy(d->base.ibdev_path, found->ibdev_path, sizeof d->base.ibdev_path);
}

static bool is_same(const struct vb_device *d, const struct channel_provider *from,
		    const struct channel_device *found)
{
	return d->provider == from && d->found.cdev == found->cdev &&
	       d->found.node_guid == found->node_guid && !strcmp(d->found.name, found->name);
}

/* With a reference more; NULL: no memory.  Under the lock. */
static struct vb_device *device_get(const struct channel_provider *from,
				    const struct channel_device *found)
{
	struct vb_device *d = devices;

	while (d && !is_same(d, from, found))
		d = d->next;
	if (!d) {
		d = calloc(1, sizeof *d);
		if (!d)
			return NULL;
		d->provider = from;
		device_fill(d, found);
		d->next = devices;
		devices = d;
	}
	d->references++;
	return d;
}

/* Those that are gone from where they came from, and that nobody refers to. */
static void devices_forget(void)
{
	struct vb_device **at = &devices, *d;

	while ((d = *at)) {
		if (d->references || d->is_there) {
			at = &d->next;
			continue;
		}
		*at = d->next;
		free(d);
	}
}

static void device_put_locked(struct vb_device *d)
{
	if (!--d->references && !d->is_there)
		devices_forget();
}

static void device_put(struct vb_device *d)
{
	pthread_mutex_lock(&devices_lock);
	device_put_locked(d);
	pthread_mutex_unlock(&devices_lock);
}

/* Fills @list, which has room for all and a NULL.  The number or -ENOMEM. */
static int list_fill(struct ibv_device **list, const struct channel_provider *from,
		     const struct channel_device *found, int count)
{
	struct vb_device *d;
	int listed = 0;

	pthread_mutex_lock(&devices_lock);
	for (d = devices; d; d = d->next)
		d->is_there = false;
	for (; listed < count; listed++) {
		d = device_get(from, &found[listed]);
		if (!d)
			break;
		d->is_there = true;
		list[listed] = &d->base;
	}
	if (listed < count)
		while (listed--)
			device_put_locked(vb_device_of(list[listed]));
	devices_forget();
	pthread_mutex_unlock(&devices_lock);
	return listed < 0 ? -ENOMEM : count;
}

/*
 * Foreign ones come behind ours.  Their own list is kept until this one is freed, and stands behind
 * the NULL: programs give the array to free(), so it must be what malloc() gave.
 */
static struct ibv_device **list_make(const struct channel_provider *from,
				     const struct channel_device *found, int count,
				     struct ibv_device **foreign)
{
	unsigned others = 0, at = (unsigned)count;
	struct ibv_device **list;

	while (foreign && foreign[others])
		others++;
	list = calloc((unsigned)count + others + 2, sizeof(void *));
	if (!list || list_fill(list, from, found, count) < 0) {
		foreign_list_free(foreign);
		free(list);
		errno = ENOMEM;
		return NULL;
	}
	for (unsigned i = 0; i < others; i++)
		if (foreign_is_wanted(foreign[i], found, count))
			list[at++] = foreign[i];
	list[at + 1] = (struct ibv_device *)foreign;
	return list;
}

VB_EXPORT struct ibv_device **ibv_get_device_list(int *out_count)
{
	const struct channel_provider *from = provider();
	struct channel_device *found = calloc(DEVICES_MAX, sizeof *found);
	struct ibv_device **foreign = is_hardware() ? foreign_list() : NULL, **list = NULL;
	int count = found ? from->list(found, DEVICES_MAX) : -ENOMEM;

	if (out_count)
		*out_count = 0;
	if (count == -ENOSYS && foreign)
		count = 0;		/* the other library knows devices without the kernel's */
	if (count < 0) {
		foreign_list_free(foreign);
		errno = -count;
	} else {
		list = list_make(from, found, count, foreign);
	}
	free(found);
	for (int i = 0; list && list[i] && out_count; i++)
		*out_count = i + 1;
	return list;
}

VB_EXPORT void ibv_free_device_list(struct ibv_device **list)
{
	unsigned count = 0;

	if (!list)
		return;
	for (; list[count]; count++)
		if (vb_device_is_ours(list[count]))
			device_put(vb_device_of(list[count]));
	foreign_list_free((struct ibv_device **)list[count + 1]);
	free(list);
}

VB_EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

VB_EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
	if (!vb_device_is_ours(device))
		return FOREIGN(ibv_get_device_guid, device);
	return htobe64(vb_device_of(device)->found.node_guid);
}

VB_EXPORT int ibv_get_device_index(struct ibv_device *device)
{
	if (!vb_device_is_ours(device))
		return FOREIGN(ibv_get_device_index, device);
	return (int)vb_device_of(device)->found.index;
}

ssize_t vb_read_attribute_by_path(const char *path, char *text, size_t bytes)
{
	ssize_t length = -ENOENT;
	size_t folder;

	pthread_mutex_lock(&devices_lock);
	for (struct vb_device *d = devices; d && length < 0; d = d->next) {
		folder = strlen(d->found.ibdev_path);
		if (!strncmp(path, d->found.ibdev_path, folder) && path[folder] == '/')
			length = d->provider->read_attribute(&d->found, path + folder + 1, text,
							     bytes);
	}
	pthread_mutex_unlock(&devices_lock);
	return length;
}

/* --- contexts --- */

int vb_context_answer(struct vb_context *c, const struct mlx5_ib_alloc_ucontext_resp *answer,
		      uint32_t vectors)
{
	c->base.context.num_comp_vectors = (int)vectors;
	c->limits.max_sq_desc_bytes = answer->max_sq_desc_sz;
	c->limits.max_rq_desc_bytes = answer->max_rq_desc_sz;
	c->limits.max_send_wqebb = answer->max_send_wqebb;
	c->limits.max_recv_wr = answer->max_recv_wr;
	c->limits.max_srq_recv_wr = answer->max_srq_recv_wr;
	c->limits.bf_reg_bytes = answer->bf_reg_size;
	c->limits.cache_line_bytes = answer->cache_line_size;
	c->limits.num_ports = answer->num_ports;
	c->limits.eth_min_inline_mode = answer->eth_min_inline;
	c->limits.comp_mask = answer->comp_mask;
	c->limits.cqe_version = answer->cqe_version;
	c->limits.clock_info_versions = answer->clock_info_versions;
	c->limits.core_clock_offset = answer->hca_core_clock_offset;
	c->limits.dump_fill_mkey = answer->dump_fill_mkey;
	c->limits.num_dyn_bfregs = answer->num_dyn_bfregs;
	c->limits.flow_action_flags = answer->flow_action_flags;
	return answer->cqe_version == 1 ? 0 : EOPNOTSUPP; /* no user index: Connect-IB's past */
}

static int get_context(struct vb_context *c)
{
	struct mlx5_ib_alloc_ucontext_req_v2 request = {
		.total_num_bfregs = 2, .num_low_latency_bfregs = 0, .max_cqe_version = 1,
		.lib_caps = MLX5_LIB_CAP_4K_UAR | MLX5_LIB_CAP_DYN_UAR,
	};
	struct mlx5_ib_alloc_ucontext_resp answer = { 0 };
	struct cmd cmd = cmd_new(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
	uint32_t vectors = 0;
	int error;

	cmd_out(&cmd, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, &vectors, sizeof vectors);
	cmd_out_optional(&cmd, UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, &c->limits.core_support,
			 sizeof c->limits.core_support);
	cmd_driver(&cmd, &request, sizeof request, &answer, sizeof answer);
	error = cmd_send(&cmd, &c->base.context);
	return error ? error : vb_context_answer(c, &answer, vectors);
}

static int async_channel_alloc(struct vb_context *c)
{
	struct cmd cmd = cmd_new(UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC);
	unsigned at = cmd_fd(&cmd, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, 0);
	int error = cmd_send(&cmd, &c->base.context);

	if (!error)
		c->base.context.async_fd = (int)cmd_handle(&cmd, at);
	return error;
}

static int context_begin(struct vb_context *c)
{
	int error = c->is_imported ? vb_query_context(c) : get_context(c);

	if (!error)
		error = async_channel_alloc(c);
	if (!error)
		error = vb_registers_begin(c);
	if (!error)
		error = vb_device_attributes(c);
	return error;
}

static void context_free(struct vb_context *c)
{
	vb_registers_end(c);
	if (c->clock_page)
		munmap(c->clock_page, (size_t)sysconf(_SC_PAGESIZE));
	if (c->core_clock_page)
		munmap(c->core_clock_page, (size_t)sysconf(_SC_PAGESIZE));
	if (c->base.context.async_fd >= 0)
		close(c->base.context.async_fd);
	c->channel.ops->close(&c->channel);
	vb_table_end(c);
	pthread_mutex_destroy(&c->base.context.mutex);
	free(c);
}

/* Takes over @channel; NULL and errno. */
static struct ibv_context *context_make(struct vb_device *device, const struct channel *channel,
					bool is_imported)
{
	struct vb_context *c = calloc(1, sizeof *c);
	struct channel alone = *channel;
	int error;

	if (!c) {
		alone.ops->close(&alone);
		errno = ENOMEM;
		return NULL;
	}
	c->channel = *channel;
	c->device = device;
	c->is_imported = is_imported;
	c->base.sz = sizeof c->base;
	c->base.context.device = &device->base;
	c->base.context.cmd_fd = channel->fd;
	c->base.context.async_fd = -1;
	c->base.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&c->base.context.mutex, NULL);
	vb_context_fill_ops(c);
	error = context_begin(c);
	if (!error)
		return &c->base.context;
	context_free(c);
	errno = error;
	return NULL;
}

VB_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct vb_device *d = vb_device_of(device);
	struct ibv_context *context;
	struct channel channel;
	int error;

	if (!vb_device_is_ours(device))
		return FOREIGN(ibv_open_device, device);
	error = d->provider->open(&d->found, &channel);
	if (error) {
		errno = -error;
		return NULL;
	}
	pthread_mutex_lock(&devices_lock);
	d->references++;
	pthread_mutex_unlock(&devices_lock);
	context = context_make(d, &channel, false);
	if (!context)
		device_put(d);
	return context;
}

/* Takes over @fd. */
static struct ibv_context *context_import(int fd)
{
	const struct channel_provider *from = provider();
	struct channel_device found;
	struct ibv_context *context;
	struct channel channel;
	struct vb_device *d;
	int error = from->adopt(fd, &found, &channel);

	if (error) {
		close(fd);
		errno = -error;
		return NULL;
	}
	pthread_mutex_lock(&devices_lock);
	d = device_get(from, &found);
	pthread_mutex_unlock(&devices_lock);
	if (!d) {
		channel.ops->close(&channel);
		errno = ENOMEM;
		return NULL;
	}
	context = context_make(d, &channel, true);
	if (!context)
		device_put(d);
	return context;
}

/* The caller's descriptor is used up only if all goes well. */
VB_EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
	int fd = fcntl(cmd_fd, F_DUPFD_CLOEXEC, 0);
	struct ibv_context *context;

	if (fd < 0) {
		errno = EINVAL;
		return NULL;
	}
	context = context_import(fd);
	if (context)
		close(cmd_fd);
	else if (errno == ENODEV && is_hardware())
		return FOREIGN(ibv_import_device, cmd_fd);
	return context;
}

void vb_unimport(struct ibv_context *context, enum channel_kind kind, uint32_t handle)
{
	struct channel *channel = &vb_context_of(context)->channel;

	if (channel->ops->unimport)
		channel->ops->unimport(channel, kind, handle);
}

VB_EXPORT int ibv_close_device(struct ibv_context *context)
{
	struct vb_context *c = vb_context_of(context);
	struct vb_device *d;

	if (!vb_is_ours(context))
		return FOREIGN(ibv_close_device, context);
	d = c->device;
	context_free(c);
	device_put(d);
	return 0;
}
