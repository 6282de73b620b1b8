/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What devices and ports are: attributes, GIDs, P_Keys, files of sysfs.
 *
 * Source: device-abi B.7, B.8; inventory 1.4, 1.5.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "verbs/cmd.h"
#include "verbs/context.h"
#include "verbs/extra.h"
#include "verbs/foreign.h"
#include "verbs/ops.h"

int vb_query_context(struct vb_context *c)
{
	struct mlx5_ib_alloc_ucontext_resp answer = { 0 };
	struct cmd cmd = cmd_new(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT);
	uint32_t vectors = 0;
	int error;

	cmd_out(&cmd, UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, &vectors, sizeof vectors);
	cmd_out_optional(&cmd, UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, &c->limits.core_support,
			 sizeof c->limits.core_support);
	cmd_out(&cmd, MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX, &answer, sizeof answer);
	error = cmd_send(&cmd, &c->base.context);
	return error ? error : vb_context_answer(c, &answer, vectors);
}

/* --- devices --- */

static void base_attributes(const struct ib_uverbs_query_device_resp *r, struct ibv_device_attr *a)
{
	snprintf(a->fw_ver, sizeof a->fw_ver, "%u.%u.%04u", (unsigned)(r->fw_ver >> 32 & 0xffff),
		 (unsigned)(r->fw_ver >> 16 & 0xffff), (unsigned)(r->fw_ver & 0xffff));
#define TAKE(member) a->member = (__typeof__(a->member))r->member
	TAKE(node_guid);
	TAKE(sys_image_guid);
	TAKE(max_mr_size);
	TAKE(page_size_cap);
	TAKE(vendor_id);
	TAKE(vendor_part_id);
	TAKE(hw_ver);
	TAKE(max_qp);
	TAKE(max_qp_wr);
	TAKE(device_cap_flags);
	TAKE(max_sge);
	TAKE(max_sge_rd);
	TAKE(max_cq);
	TAKE(max_cqe);
	TAKE(max_mr);
	TAKE(max_pd);
	TAKE(max_qp_rd_atom);
	TAKE(max_ee_rd_atom);
	TAKE(max_res_rd_atom);
	TAKE(max_qp_init_rd_atom);
	TAKE(max_ee_init_rd_atom);
	TAKE(atomic_cap);
	TAKE(max_ee);
	TAKE(max_rdd);
	TAKE(max_mw);
	TAKE(max_raw_ipv6_qp);
	TAKE(max_raw_ethy_qp);
	TAKE(max_mcast_grp);
	TAKE(max_mcast_qp_attach);
	TAKE(max_total_mcast_qp_attach);
	TAKE(max_ah);
	TAKE(max_fmr);
	TAKE(max_map_per_fmr);
	TAKE(max_srq);
	TAKE(max_srq_wr);
	TAKE(max_srq_sge);
	TAKE(max_pkeys);
	TAKE(local_ca_ack_delay);
	TAKE(phys_port_cnt);
#undef TAKE
}

static void extended_attributes(const struct ib_uverbs_ex_query_device_resp *r,
				struct ibv_device_attr_ex *a)
{
	a->odp_caps.general_caps = r->odp_caps.general_caps;
	a->odp_caps.per_transport_caps.rc_odp_caps = r->odp_caps.per_transport_caps.rc_odp_caps;
	a->odp_caps.per_transport_caps.uc_odp_caps = r->odp_caps.per_transport_caps.uc_odp_caps;
	a->odp_caps.per_transport_caps.ud_odp_caps = r->odp_caps.per_transport_caps.ud_odp_caps;
	a->completion_timestamp_mask = r->timestamp_mask;
	a->hca_core_clock = r->hca_core_clock;
	a->device_cap_flags_ex = r->device_cap_flags_ex;
	a->rss_caps.supported_qpts = r->rss_caps.supported_qpts;
	a->rss_caps.max_rwq_indirection_tables = r->rss_caps.max_rwq_indirection_tables;
	a->rss_caps.max_rwq_indirection_table_size = r->rss_caps.max_rwq_indirection_table_size;
	a->max_wq_type_rq = r->max_wq_type_rq;
	a->raw_packet_caps = r->raw_packet_caps;
	a->tm_caps.max_rndv_hdr_size = r->tm_caps.max_rndv_hdr_size;
	a->tm_caps.max_num_tags = r->tm_caps.max_num_tags;
	a->tm_caps.flags = r->tm_caps.flags;
	a->tm_caps.max_ops = r->tm_caps.max_ops;
	a->tm_caps.max_sge = r->tm_caps.max_sge;
	a->cq_mod_caps.max_cq_count = r->cq_moderation_caps.max_cq_moderation_count;
	a->cq_mod_caps.max_cq_period = r->cq_moderation_caps.max_cq_moderation_period;
	a->max_dm_size = r->max_dm_size;
	a->xrc_odp_caps = r->xrc_odp_caps;
	a->phys_port_cnt_ex = r->base.phys_port_cnt;
}

/* What the driver adds; only as far as it answered. */
static void driver_attributes(const struct mlx5_ib_query_device_resp *r,
			      struct ibv_device_attr_ex *a)
{
	a->tso_caps.max_tso = r->tso_caps.max_tso;
	a->tso_caps.supported_qpts = r->tso_caps.supported_qpts;
	a->rss_caps.rx_hash_fields_mask = r->rss_caps.rx_hash_fields_mask;
	a->rss_caps.rx_hash_function = r->rss_caps.rx_hash_function;
	a->packet_pacing_caps.qp_rate_limit_min = r->packet_pacing_caps.qp_rate_limit_min;
	a->packet_pacing_caps.qp_rate_limit_max = r->packet_pacing_caps.qp_rate_limit_max;
	a->packet_pacing_caps.supported_qpts = r->packet_pacing_caps.supported_qpts;
}

static int attributes_command(struct ibv_context *context,
			      struct ib_uverbs_ex_query_device_resp *answer,
			      struct mlx5_ib_query_device_resp *driver)
{
	struct ib_uverbs_ex_query_device request = { 0 };
	struct cmd_write w = {
		.command = CMD_EXTENDED | IB_USER_VERBS_EX_CMD_QUERY_DEVICE,
		.in = &request, .in_bytes = sizeof request,
		.out = answer, .out_bytes = sizeof *answer,
		.driver_out = driver, .driver_out_bytes = sizeof *driver,
	};

	return cmd_write(&w, context);
}

int vb_driver_attributes(struct ibv_context *context, struct mlx5_ib_query_device_resp *out)
{
	struct ib_uverbs_ex_query_device_resp answer = { 0 };

	return attributes_command(context, &answer, out);
}

static int attributes_ask(struct ibv_context *context, struct ibv_device_attr_ex *out,
			  struct mlx5_ib_query_device_resp *driver)
{
	struct ib_uverbs_ex_query_device_resp answer = { 0 };
	int error = attributes_command(context, &answer, driver);

	if (error)
		return error;
	memset(out, 0, sizeof *out);
	base_attributes(&answer.base, &out->orig_attr);
	extended_attributes(&answer, out);
	driver_attributes(driver, out);
	return 0;
}

int vb_device_attributes(struct vb_context *c)
{
	struct mlx5_ib_query_device_resp driver = { 0 };
	const struct mlx5_ib_striding_rq_caps *strides = &driver.striding_rq_caps;
	int error = attributes_ask(&c->base.context, &c->attr, &driver);

	c->caps.stride_bytes_log_min = strides->min_single_stride_log_num_of_bytes;
	c->caps.stride_bytes_log_max = strides->max_single_stride_log_num_of_bytes;
	c->caps.strides_log_min = strides->min_single_wqe_log_num_of_strides;
	c->caps.strides_log_max = strides->max_single_wqe_log_num_of_strides;
	c->caps.limits_bursts = driver.packet_pacing_caps.cap_flags & MLX5_IB_PP_SUPPORT_BURST;
	return error;
}

int vb_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		       struct ibv_device_attr_ex *attr, size_t attr_bytes)
{
	struct mlx5_ib_query_device_resp driver = { 0 };
	struct ibv_device_attr_ex whole;
	int error;

	if (input && input->comp_mask)
		return EINVAL;
	if (attr_bytes < offsetof(struct ibv_device_attr_ex, comp_mask) + sizeof attr->comp_mask)
		return EINVAL;
	error = attributes_ask(context, &whole, &driver);
	if (error)
		return error;
	memcpy(attr, &whole, attr_bytes < sizeof whole ? attr_bytes : sizeof whole);
	if (attr_bytes > sizeof whole)
		memset((char *)attr + sizeof whole, 0, attr_bytes - sizeof whole);
	return 0;
}

VB_EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	struct mlx5_ib_query_device_resp driver = { 0 };
	struct ibv_device_attr_ex whole;
	int error;

	if (!vb_is_ours(context))
		return FOREIGN(ibv_query_device, context, attr);
	error = attributes_ask(context, &whole, &driver);
	if (!error)
		*attr = whole.orig_attr;
	return error;
}

/* --- ports --- */

/* Programs built with older headers have a shorter structure. */
int vb_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *out,
		  size_t out_bytes)
{
	struct ib_uverbs_query_port_resp_ex answer = { 0 };
	const struct ib_uverbs_query_port_resp *r = &answer.legacy_resp;
	struct cmd cmd = cmd_new(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);
	struct ibv_port_attr a;
	int error;

	cmd_in_u64(&cmd, UVERBS_ATTR_QUERY_PORT_PORT_NUM, port_num);
	cmd_out(&cmd, UVERBS_ATTR_QUERY_PORT_RESP, &answer, sizeof answer);
	error = cmd_send(&cmd, context);
	if (error)
		return error;
	a = (struct ibv_port_attr){
		.state = r->state, .max_mtu = r->max_mtu, .active_mtu = r->active_mtu,
		.gid_tbl_len = (int)r->gid_tbl_len, .port_cap_flags = r->port_cap_flags,
		.max_msg_sz = r->max_msg_sz, .bad_pkey_cntr = r->bad_pkey_cntr,
		.qkey_viol_cntr = r->qkey_viol_cntr, .pkey_tbl_len = r->pkey_tbl_len,
		.lid = r->lid, .sm_lid = r->sm_lid, .lmc = r->lmc, .max_vl_num = r->max_vl_num,
		.sm_sl = r->sm_sl, .subnet_timeout = r->subnet_timeout,
		.init_type_reply = r->init_type_reply, .active_width = r->active_width,
		.active_speed = r->active_speed, .phys_state = r->phys_state,
		.link_layer = r->link_layer, .flags = r->flags,
		.port_cap_flags2 = answer.port_cap_flags2,
	};
	memcpy(out, &a, out_bytes < sizeof a ? out_bytes : sizeof a);
	if (out_bytes > sizeof a)
		memset((char *)out + sizeof a, 0, out_bytes - sizeof a);
	return 0;
}

#undef ibv_query_port
/* The function that old programs call: their structure ends behind link_layer and flags. */
#define OLD_PORT_ATTR_BYTES	48
VB_EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port_num,
			     struct _compat_ibv_port_attr *port_attr)
{
	if (!vb_is_ours(context))
		return FOREIGN(ibv_query_port, context, port_num, port_attr);
	return vb_query_port(context, port_num, (struct ibv_port_attr *)port_attr,
			     OLD_PORT_ATTR_BYTES);
}

static int attribute_of_port(struct ibv_context *context, uint8_t port_num, const char *folder,
			     int index, char *text, size_t bytes)
{
	struct vb_device *d = vb_context_of(context)->device;
	char name[64];

	snprintf(name, sizeof name, "ports/%u/%s/%d", port_num, folder, index);
	return d->provider->read_attribute(&d->found, name, text, bytes);
}

static int gid_entry_ask(struct ibv_context *context, uint32_t port_num, uint32_t index,
			 struct ib_uverbs_gid_entry *out)
{
	struct cmd cmd = cmd_new(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY);

	memset(out, 0, sizeof *out);
	cmd_in_u64(&cmd, UVERBS_ATTR_QUERY_GID_ENTRY_PORT, port_num);
	cmd_in_u64(&cmd, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, index);
	cmd_in_u32(&cmd, UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, 0);
	cmd_out(&cmd, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, out, sizeof *out);
	return cmd_send(&cmd, context);
}

/* An empty entry is a GID of zeros here, and an error for ibv_query_gid_ex(). */
VB_EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index,
			    union ibv_gid *gid)
{
	struct ib_uverbs_gid_entry entry;
	int error;

	if (!vb_is_ours(context))
		return FOREIGN(ibv_query_gid, context, port_num, index, gid);
	error = gid_entry_ask(context, port_num, (uint32_t)index, &entry);
	if (error && error != ENODATA) {
		errno = error;
		return -1;
	}
	memcpy(gid, entry.gid, sizeof *gid);
	return 0;
}

VB_EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
				struct ibv_gid_entry *entry, uint32_t flags, size_t entry_bytes)
{
	struct ib_uverbs_gid_entry answer;
	struct ibv_gid_entry whole;
	int error;

	if (!vb_is_ours(context))
		return FOREIGN(_ibv_query_gid_ex, context, port_num, gid_index, entry, flags,
						  entry_bytes);
	if (flags)
		return vb_fail(EOPNOTSUPP);
	error = gid_entry_ask(context, port_num, gid_index, &answer);
	if (error)
		return vb_fail(error);
	memcpy(&whole.gid, answer.gid, sizeof whole.gid);
	whole.gid_index = answer.gid_index;
	whole.port_num = answer.port_num;
	whole.gid_type = answer.gid_type;
	whole.ndev_ifindex = answer.netdev_ifindex;
	memcpy(entry, &whole, entry_bytes < sizeof whole ? entry_bytes : sizeof whole);
	return 0;
}

_Static_assert(sizeof(struct ibv_gid_entry) == sizeof(struct ib_uverbs_gid_entry),
	       "the device writes the program's own entries");

VB_EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
				       size_t max_entries, uint32_t flags, size_t entry_bytes)
{
	struct cmd cmd = cmd_new(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE);
	uint64_t count = 0;
	int error;

	if (!vb_is_ours(context))
		return FOREIGN(_ibv_query_gid_table, context, entries, max_entries, flags,
						     entry_bytes);
	if (flags)
		return -EOPNOTSUPP;
	if (!entry_bytes)
		return -EINVAL;
	if (max_entries > UINT16_MAX / entry_bytes)
		max_entries = UINT16_MAX / entry_bytes;
	cmd_in_u64(&cmd, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, entry_bytes);
	cmd_in_u32(&cmd, UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, flags);
	cmd_out(&cmd, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, entries, max_entries * entry_bytes);
	cmd_out(&cmd, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, &count, sizeof count);
	error = cmd_send(&cmd, context);
	return error ? -error : (ssize_t)count;
}

/* Private to rdma-core, but the Python bindings ask for it. */
VB_EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned index,
				 unsigned *type)
{
	struct ib_uverbs_gid_entry entry;
	int error;

	if (!vb_is_ours(context))
		return FOREIGN(ibv_query_gid_type, context, port_num, index, type);
	error = gid_entry_ask(context, port_num, index, &entry);
	if (error && error != ENODATA) {
		errno = error;
		return -1;
	}
	/* Its own enumeration: 0 InfiniBand and RoCE v1, 1 RoCE v2. */
	*type = entry.gid_type == IB_UVERBS_GID_TYPE_ROCE_V2;
	return 0;
}

/*
 * The bindings of newer releases ask for it under another version.  A function of its own: two
 * versions at one address are one to the linker.
 */
int query_gid_type_64(struct ibv_context *context, uint8_t port_num, unsigned index,
		      unsigned *type);

__asm__(".symver query_gid_type_64, ibv_query_gid_type@IBVERBS_PRIVATE_64");
VB_EXPORT int query_gid_type_64(struct ibv_context *context, uint8_t port_num, unsigned index,
				unsigned *type)
{
	return ibv_query_gid_type(context, port_num, index, type);
}

VB_EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	char text[16];
	int length;

	if (!vb_is_ours(context))
		return FOREIGN(ibv_query_pkey, context, port_num, index, pkey);
	length = attribute_of_port(context, port_num, "pkeys", index, text, sizeof text);
	if (length < 0) {
		errno = -length;
		return -1;
	}
	*pkey = htons((uint16_t)strtoul(text, NULL, 16));
	return 0;
}

/* As it stands in the table, membership bit and all; -1 and ENOENT: it is not there. */
VB_EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
	struct ibv_port_attr port;
	__be16 here;

	if (!vb_is_ours(context))
		return FOREIGN(ibv_get_pkey_index, context, port_num, pkey);
	if (vb_query_port(context, port_num, &port, sizeof port))
		return -1;
	for (int i = 0; i < port.pkey_tbl_len; i++) {
		if (ibv_query_pkey(context, port_num, i, &here))
			return -1;
		if (here == pkey)
			return i;
	}
	errno = ENOENT;
	return -1;
}

/* --- sysfs, for those who look there themselves --- */

VB_EXPORT const char *ibv_get_sysfs_path(void)
{
	const char *path = getenv("SYSFS_PATH");

	return path ? path : "/sys";
}

/* Device folders of an emulated device are not on any disk. */
VB_EXPORT int ibv_read_sysfs_file(const char *dir, const char *file, char *text, size_t bytes)
{
	char path[512];
	ssize_t length;
	int fd;

	snprintf(path, sizeof path, "%s/%s", dir, file);
	length = vb_read_attribute_by_path(path, text, bytes);
	if (length >= 0)
		return (int)length;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	length = read(fd, text, bytes);
	close(fd);
	if (length <= 0)
		return -1;
	if (text[length - 1] == '\n')
		text[--length] = '\0';
	else if ((size_t)length < bytes)
		text[length] = '\0';
	else
		return -1;
	return (int)length;
}
