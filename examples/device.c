/* SPDX-License-Identifier: BSD-2-Clause */
/* What the examples ask of a device before they use it; see device.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "examples/device.h"
#include "examples/fail.h"

enum {
	BUFFER_FILL = 0x7b,
	PSN_MASK = 0xffffff,
	HOP_LIMIT = 64,		/* lets RoCE v2 pass routers */
};

struct ibv_device **device_list(int *count_out)
{
	struct ibv_device **list = ibv_get_device_list(count_out);

	if (!list)
		fail_errno(errno, "list the RDMA devices (verbena run has one for you)");
	return list;
}

struct ibv_device *device_find(struct ibv_device **list, const char *name)
{
	if (!*list)
		fail("there is no RDMA device here (verbena run has one for you)");
	if (!name)
		return *list;
	for (struct ibv_device **device = list; *device; device++)
		if (!strcmp(ibv_get_device_name(*device), name))
			return *device;
	fail("there is no RDMA device \"%s\"; ibv_devices lists those that exist", name);
}

struct ibv_context *device_open(const char *name)
{
	struct ibv_device **list = device_list(NULL);
	struct ibv_device *device = device_find(list, name);
	struct ibv_context *context =
		made(ibv_open_device(device), "open the device %s", ibv_get_device_name(device));

	ibv_free_device_list(list);
	return context;
}

struct ibv_port_attr device_port(struct ibv_context *context, const struct options *options)
{
	const char *device = ibv_get_device_name(context->device);
	struct ibv_port_attr attr;
	bool is_ethernet;

	check(ibv_query_port(context, options->ib_port, &attr), "query port %d of %s",
	      options->ib_port, device);
	is_ethernet = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
	if (is_ethernet && options->gid_index < 0)
		fail("port %d of %s is Ethernet, where only GIDs are addresses: choose one with -g "
		     "(ibv_devinfo -v lists them)",
		     options->ib_port, device);
	if (!is_ethernet && !attr.lid)
		fail("port %d of %s has no LID yet: is there a subnet manager?", options->ib_port,
		     device);
	return attr;
}

union ibv_gid device_gid(struct ibv_context *context, const struct options *options)
{
	union ibv_gid gid = { .raw = { 0 } };

	if (options->gid_index < 0)
		return gid;
	check(ibv_query_gid(context, options->ib_port, options->gid_index, &gid),
	      "read GID %d of port %d", options->gid_index, options->ib_port);
	if (!gid.global.interface_id)
		fail("GID %d of port %d is empty (ibv_devinfo -v lists those that are not)",
		     options->gid_index, options->ib_port);
	return gid;
}

void device_needs_odp(const struct ibv_device_attr_ex *attr, uint32_t supported, uint32_t needed)
{
	if (!(attr->odp_caps.general_caps & IBV_ODP_SUPPORT))
		fail("the device has no paging on demand");
	if ((supported & needed) != needed)
		fail("the device has no paging on demand for this transport's messages");
}

void *buffer_alloc(size_t size)
{
	void *buffer;
	int error = posix_memalign(&buffer, (size_t)sysconf(_SC_PAGESIZE), size);

	if (error)
		fail_errno(error, "allocate %zu bytes", size);
	return memset(buffer, BUFFER_FILL, size);
}

struct ibv_ah_attr path_to(const union ibv_gid *gid, unsigned lid, const struct options *options)
{
	struct ibv_ah_attr path = {
		.dlid = (uint16_t)lid,
		.sl = (uint8_t)options->sl,
		.port_num = (uint8_t)options->ib_port,
	};

	if (gid->global.interface_id) {
		path.is_global = 1;
		path.grh.dgid = *gid;
		path.grh.sgid_index = (uint8_t)options->gid_index;
		path.grh.hop_limit = HOP_LIMIT;
	}
	return path;
}

/* The enumeration counts powers of two from 256. */
enum ibv_mtu mtu_of_bytes(int bytes)
{
	int mtu = IBV_MTU_256;

	for (; bytes > 256; bytes /= 2)
		mtu++;
	return (enum ibv_mtu)mtu;
}

void qp_change(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	static const char *const names[] = {
		[IBV_QPS_RESET] = "RESET", [IBV_QPS_INIT] = "INIT", [IBV_QPS_RTR] = "RTR",
		[IBV_QPS_RTS] = "RTS",
	};

	check(ibv_modify_qp(qp, attr, mask | IBV_QP_STATE), "move QP 0x%06x to %s", qp->qp_num,
	      names[attr->qp_state]);
}

unsigned psn_random(void)
{
	unsigned psn;

	if (getrandom(&psn, sizeof psn, 0) != sizeof psn)
		fail_errno(errno, "get a random number");
	return psn & PSN_MASK;
}
