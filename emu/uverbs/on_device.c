/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device and its port: contexts, attributes, GIDs.
 *
 * What a part can do is in its profile; what stands here as a constant is the same for all.
 *
 * Source: device-abi B.4, B.7, B.8; the numbers are those of published ibv_devinfo -v.
 */
#include <endian.h>
#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <string.h>
#include <unistd.h>
#include "emu/obj/flow.h"
#include "emu/uverbs/file.h"
#include "emu/uverbs/handlers.h"
#include "emu/uverbs/shared.h"
#include "emu/uverbs/on_dc.h"

/* --- contexts --- */

enum {
	REQ_V1_BYTES = sizeof(struct mlx5_ib_alloc_ucontext_req),
	REQ_V2_BYTES_MIN = offsetof(struct mlx5_ib_alloc_ucontext_req_v2, max_cqe_version),
	BFREGS_PER_PAGE = 2,		/* usable ones; the other two are the kernel's */
	BFREGS_MAX = 512,
	BFREG_BYTES = 512,
	CACHE_LINE_BYTES = 64,
	QP_TABLE_ENTRIES = 1 << 18,
	LOG_PAGE_BYTES = 12,
};

static int request_check(struct uv_call *call, const struct mlx5_ib_alloc_ucontext_req_v2 *ask,
			 uint32_t bfregs)
{
	unsigned bytes = uv_room(call, UVERBS_ATTR_UHW_IN);

	if (bytes != REQ_V1_BYTES && bytes < REQ_V2_BYTES_MIN)
		return uv_refuse(call, WHY_CMD_ATTRIBUTES, -EINVAL);
	if (ask->flags & ~MLX5_IB_ALLOC_UCTX_DEVX || ask->comp_mask || ask->reserved0 ||
	    ask->reserved1 || ask->reserved2)
		return uv_refuse(call, WHY_CMD_UNSUPPORTED, -EOPNOTSUPP);
	if (ask->num_low_latency_bfregs > bfregs - 1)
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	/* The library asks again without it. */
	if (ask->flags & MLX5_IB_ALLOC_UCTX_DEVX)
		return uv_refuse(call, WHY_CMD_UNSUPPORTED, -EINVAL);
	return 0;
}

static void static_pages_give(struct uv_call *call)
{
	struct uv_pages *pages = &call->file->pages;

	while (pages->static_count)
		file_page_give(call->file, pages->static_count--);
}

/* Clients from before dynamic pages get theirs with the context: page 1 and following, since
 * none has been taken yet. */
static int static_pages_take(struct uv_call *call, uint32_t bfregs)
{
	if (!bfregs)
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	if (bfregs > BFREGS_MAX)
		return -ENOMEM;
	for (uint32_t i = 0; i < bfregs / BFREGS_PER_PAGE; i++) {
		int page = file_page_take(call->file);

		if (page < 0) {
			static_pages_give(call);
			return page;
		}
		assert((uint32_t)page == i + 1);
		call->file->pages.static_count++;
	}
	return 0;
}

static struct mlx5_ib_alloc_ucontext_resp context_describe(const struct uv_file *file)
{
	const struct hw_profile *p = file->dev->profile;

	return (struct mlx5_ib_alloc_ucontext_resp){
		.qp_tab_size = QP_TABLE_ENTRIES, .bf_reg_size = BFREG_BYTES,
		.tot_bfregs = file->pages.static_count * BFREGS_PER_PAGE,
		.cache_line_size = CACHE_LINE_BYTES,
		.max_sq_desc_sz = (uint16_t)p->max_sq_desc_bytes,
		.max_rq_desc_sz = (uint16_t)p->max_rq_desc_bytes,
		.max_send_wqebb = p->max_send_wqebb,
		.max_recv_wr = p->max_qp_wr, .max_srq_recv_wr = p->max_srq_wr + 1,
		.num_ports = 1, .cqe_version = file->cqe_version,
		.cmds_supp_uhw = MLX5_USER_CMDS_SUPP_UHW_QUERY_DEVICE |
				 MLX5_USER_CMDS_SUPP_UHW_CREATE_AH,
		.eth_min_inline = file->dev->options.eth_inline,
		.log_uar_size = LOG_PAGE_BYTES, .num_uars_per_page = 1,
		.comp_mask = MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_CORE_CLOCK_OFFSET |
			     MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_DUMP_FILL_MKEY,
		.dump_fill_mkey = KEY_NULL,
		.clock_info_versions = 1 << MLX5_IB_CLOCK_INFO_V1,
	};
}

static void context_undo(struct uv_call *call)
{
	static_pages_give(call);
	call->file->has_context = false;
	shared_file_tell(call->file);
}

static int context_open(struct uv_call *call)
{
	const struct mlx5_ib_alloc_ucontext_req_v2 *ask = uv_in(call, UVERBS_ATTR_UHW_IN);
	uint32_t bfregs = (ask->total_num_bfregs + BFREGS_PER_PAGE - 1) & -BFREGS_PER_PAGE;
	struct mlx5_ib_alloc_ucontext_resp reply;
	struct uv_file *file = call->file;
	unsigned room = uv_room(call, UVERBS_ATTR_UHW_OUT);
	int ret = file->has_context ? uv_refuse(call, WHY_CMD_VALUE, -EINVAL) : 0;

	if (!ret)
		ret = request_check(call, ask, bfregs);
	if (!ret && !(ask->lib_caps & MLX5_LIB_CAP_DYN_UAR))
		ret = static_pages_take(call, bfregs);
	if (ret)
		return ret;
	file->has_context = true;
	file->has_dynamic_pages = ask->lib_caps & MLX5_LIB_CAP_DYN_UAR;
	file->cqe_version = ask->max_cqe_version ? 1 : 0;
	shared_file_tell(file);
	call->undo = context_undo;
	reply = context_describe(file);
	reply.response_length = room < sizeof reply ? room : sizeof reply;
	uv_put(call, UVERBS_ATTR_UHW_OUT, &reply, sizeof reply);
	return 0;
}

int on_get_context(struct uv_call *call)
{
	int ret = context_open(call);

	if (ret)
		return ret;
	uv_put_number(call, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, uint32_t,
		      call->dev->profile->comp_vectors);
	uv_put_number(call, UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, uint64_t,
		      IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS);
	return 0;
}

static void context_legacy_undo(struct uv_call *call)
{
	context_undo(call);
	close(call->created_fd);
}

/* The older command makes the async file as well. */
int on_get_context_legacy(struct uv_call *call)
{
	struct ib_uverbs_get_context_resp reply = {
		.num_comp_vectors = call->dev->profile->comp_vectors,
	};
	int ret = context_open(call);

	if (ret)
		return ret;
	ret = event_file_create(call, EVENT_ASYNC_BYTES, OBJ_ASYNC);
	if (ret) {
		context_undo(call);
		return ret;
	}
	call->undo = context_legacy_undo;
	uv_put(call, UVERBS_ATTR_CORE_OUT, &reply, sizeof reply);
	return 0;
}

int on_query_context(struct uv_call *call)
{
	struct mlx5_ib_alloc_ucontext_resp reply = context_describe(call->file);

	reply.response_length = sizeof reply;
	uv_put(call, MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX, &reply, sizeof reply);
	uv_put_number(call, UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, uint32_t,
		      call->dev->profile->comp_vectors);
	uv_put_number(call, UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, uint64_t,
		      IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS);
	return 0;
}

static const struct {
	uint16_t object;
	enum obj_type type;
} object_types[] = {
	{ UVERBS_OBJECT_PD, OBJ_PD }, { UVERBS_OBJECT_CQ, OBJ_CQ }, { UVERBS_OBJECT_QP, OBJ_QP },
	{ UVERBS_OBJECT_MR, OBJ_MR }, { UVERBS_OBJECT_SRQ, OBJ_SRQ },
	{ UVERBS_OBJECT_XRCD, OBJ_XRCD }, { UVERBS_OBJECT_AH, OBJ_AH },
	{ UVERBS_OBJECT_MW, OBJ_MW }, { UVERBS_OBJECT_WQ, OBJ_WQ },
	{ UVERBS_OBJECT_RWQ_IND_TBL, OBJ_RWQ_TABLE }, { UVERBS_OBJECT_FLOW, OBJ_FLOW },
	{ UVERBS_OBJECT_COUNTERS, OBJ_COUNTERS }, { MLX5_IB_OBJECT_FLOW_MATCHER, OBJ_MATCHER },
};

static enum obj_type object_type(uint64_t object)
{
	for (size_t i = 0; i < sizeof object_types / sizeof *object_types; i++)
		if (object_types[i].object == object)
			return object_types[i].type;
	return OBJ_NONE;
}

static uint32_t handles_list(const struct uv_call *call, enum obj_type type, uint32_t *list,
			     uint32_t list_max)
{
	struct emu_obj *obj;
	uint32_t count = 0;

	for (uint32_t n = 0; n < call->file->handle_end && count < list_max; n++) {
		obj = file_handle_at(call->file, n);
		if (obj && !file_handle_find(call->file, obj->handle, type, &obj))
			list[count++] = obj->handle;
	}
	return count;
}

int on_info_handles(struct uv_call *call)
{
	enum obj_type type = object_type(uv_number(call, UVERBS_ATTR_INFO_OBJECT_ID));
	unsigned room = uv_room(call, UVERBS_ATTR_INFO_HANDLES_LIST);
	uint32_t *list, count;

	if (!room || room % sizeof *list || !type)
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	list = uv_stage(call, UVERBS_ATTR_INFO_HANDLES_LIST, room);
	if (!list)
		return 0;
	count = handles_list(call, type, list, room / sizeof *list);
	uv_put_number(call, UVERBS_ATTR_INFO_TOTAL_HANDLES, uint32_t, count);
	return 0;
}

/* --- frames --- */

enum {
	RAW_CVLAN_STRIPPING = 1, RAW_SCATTER_FCS = 2, RAW_IP_CSUM = 4,	/* raw_packet_caps */
	RWQ_TABLES_MAX = 1 << 16,
	FRAME_TYPES = 1 << IB_UVERBS_QPT_RAW_PACKET,
};
#define CAP_RAW_IP_CSUM			(1u << 26)
#define CAP_MANAGED_FLOW_STEERING	(1u << 29)
#define CAP_RAW_SCATTER_FCS		(UINT64_C(1) << 34)

#define HASH_FIELDS								\
	(MLX5_RX_HASH_SRC_IPV4 | MLX5_RX_HASH_DST_IPV4 | MLX5_RX_HASH_SRC_IPV6 |	\
	 MLX5_RX_HASH_DST_IPV6 | MLX5_RX_HASH_SRC_PORT_TCP | MLX5_RX_HASH_DST_PORT_TCP | \
	 MLX5_RX_HASH_SRC_PORT_UDP | MLX5_RX_HASH_DST_PORT_UDP | MLX5_RX_HASH_INNER)

static bool has_frames(const struct emu_dev *dev)
{
	return dev->profile->link == HW_LINK_ETHERNET;
}

static uint32_t cap_flags(const struct emu_dev *dev)
{
	return dev->profile->device_cap_flags | (has_frames(dev) ? CAP_RAW_IP_CSUM : 0) |
	       (flow_steering_is_on(dev) ? CAP_MANAGED_FLOW_STEERING : 0);
}

static void frames_fill(const struct emu_dev *dev, struct ib_uverbs_ex_query_device_resp *out)
{
	if (!has_frames(dev))
		return;
	out->device_cap_flags_ex |= CAP_RAW_SCATTER_FCS;
	out->rss_caps = (struct ib_uverbs_rss_caps){
		.supported_qpts = FRAME_TYPES, .max_rwq_indirection_tables = RWQ_TABLES_MAX,
		.max_rwq_indirection_table_size = 1 << RWQ_TABLE_LOG_MAX,
	};
	out->max_wq_type_rq = dev->profile->max_qp;
	out->raw_packet_caps = RAW_CVLAN_STRIPPING | RAW_SCATTER_FCS | RAW_IP_CSUM;
}

static void mlx5_frames_fill(const struct emu_dev *dev, struct mlx5_ib_query_device_resp *out)
{
	if (!has_frames(dev))
		return;
	out->tso_caps = (struct mlx5_ib_tso_caps){
		.max_tso = TSO_BYTES_MAX, .supported_qpts = FRAME_TYPES,
	};
	out->rss_caps = (struct mlx5_ib_rss_caps){
		.rx_hash_fields_mask = HASH_FIELDS, .rx_hash_function = MLX5_RX_HASH_FUNC_TOEPLITZ,
	};
	out->striding_rq_caps = (struct mlx5_ib_striding_rq_caps){
		.min_single_stride_log_num_of_bytes = WQ_STRIDE_LOG_MIN,
		.max_single_stride_log_num_of_bytes = WQ_STRIDE_LOG_MAX,
		.min_single_wqe_log_num_of_strides = WQ_STRIDES_LOG_MIN,
		.max_single_wqe_log_num_of_strides = WQ_STRIDES_LOG_MAX,
		.supported_qpts = FRAME_TYPES,
	};
	out->tunnel_offloads_caps = MLX5_IB_TUNNELED_OFFLOADS_VXLAN |
				    MLX5_IB_TUNNELED_OFFLOADS_GRE;
}

/* --- the device --- */

enum {
	VENDOR_MELLANOX = 0x2c9,
	ATOMIC_HCA = 1,			/* enum ib_atomic_cap */
	DEVICE_PKEYS = 128,
	CA_ACK_DELAY = 16,
};
#define PAGE_SIZES_FROM_4K	(~(uint64_t)0xfff)

static void device_fill(const struct emu_dev *dev, struct ib_uverbs_query_device_resp *out)
{
	const struct hw_profile *p = dev->profile;

	*out = (struct ib_uverbs_query_device_resp){
		.fw_ver = p->fw_ver, .node_guid = htobe64(dev->node_guid),
		.sys_image_guid = htobe64(dev->node_guid), .max_mr_size = UINT64_MAX,
		.page_size_cap = PAGE_SIZES_FROM_4K, .vendor_id = VENDOR_MELLANOX,
		.vendor_part_id = p->vendor_part_id, .max_qp = p->max_qp,
		.max_qp_wr = p->max_qp_wr, .device_cap_flags = cap_flags(dev),
		.max_sge = p->max_sge, .max_sge_rd = p->max_sge_rd, .max_cq = p->max_cq,
		.max_cqe = p->max_cqe, .max_mr = p->max_mr, .max_pd = p->max_pd,
		.max_srq = p->max_srq, .max_srq_wr = p->max_srq_wr,
		.max_srq_sge = p->max_srq_sge,
		.max_mw = p->max_mw,
		.max_qp_rd_atom = p->max_rd_atomic,
		.max_res_rd_atom = p->max_qp * p->max_rd_atomic,
		.max_ah = p->max_ah, .max_mcast_grp = p->max_mcast_grp,
		.max_mcast_qp_attach = p->max_mcast_qp,
		.max_total_mcast_qp_attach = p->max_mcast_grp * p->max_mcast_qp,
		.max_qp_init_rd_atom = p->max_rd_atomic, .atomic_cap = ATOMIC_HCA,
		.max_pkeys = DEVICE_PKEYS, .local_ca_ack_delay = CA_ACK_DELAY,
		.phys_port_cnt = 1,
	};
}

int on_query_device(struct uv_call *call)
{
	struct ib_uverbs_query_device_resp reply;

	device_fill(call->dev, &reply);
	uv_put(call, UVERBS_ATTR_CORE_OUT, &reply, sizeof reply);
	return 0;
}

/* The driver's tail: what is not named does not exist here. */
static int mlx5_device_put(struct uv_call *call)
{
	struct mlx5_ib_query_device_resp tail = {
		.response_length = sizeof tail,
		.flags = MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_PAD,
		.dci_streams_caps = { .max_log_num_concurent = DC_STREAMS_LOG_MAX,
				      .max_log_num_errored = DC_STREAMS_FAILED_LOG_MAX },
	};
	unsigned room = uv_room(call, UVERBS_ATTR_UHW_OUT);

	mlx5_frames_fill(call->dev, &tail);
	if (!uv_has(call, UVERBS_ATTR_UHW_OUT))
		return 0;
	if (room < offsetof(struct mlx5_ib_query_device_resp, tso_caps))
		return uv_refuse(call, WHY_CMD_ATTRIBUTES, -EINVAL);
	if (room < tail.response_length)
		tail.response_length = room;
	uv_put(call, UVERBS_ATTR_UHW_OUT, &tail, sizeof tail);
	return 0;
}

static void odp_fill(const struct hw_profile *p, struct ib_uverbs_ex_query_device_resp *out)
{
	out->odp_caps.general_caps = p->odp;
	out->odp_caps.per_transport_caps.rc_odp_caps = p->odp_rc;
	out->odp_caps.per_transport_caps.uc_odp_caps = p->odp_uc;
	out->odp_caps.per_transport_caps.ud_odp_caps = p->odp_ud;
	out->xrc_odp_caps = p->odp_xrc;
}

int on_query_device_ex(struct uv_call *call)
{
	const struct ib_uverbs_ex_query_device *ask = uv_in(call, UVERBS_ATTR_CORE_IN);
	struct ib_uverbs_ex_query_device_resp reply = { 0 };
	unsigned room = uv_room(call, UVERBS_ATTR_CORE_OUT);
	int ret;

	if (ask->comp_mask || ask->reserved)
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	ret = mlx5_device_put(call);
	if (ret)
		return ret;
	device_fill(call->dev, &reply.base);
	reply.response_length = room < sizeof reply ? room : sizeof reply;
	reply.device_cap_flags_ex = reply.base.device_cap_flags;
	reply.timestamp_mask = CLOCK_STAMP_MASK;
	reply.hca_core_clock = call->dev->profile->core_clock_khz;
	frames_fill(call->dev, &reply);
	odp_fill(call->dev->profile, &reply);
	reply.max_dm_size = call->dev->profile->max_dm_bytes;
	reply.cq_moderation_caps.max_cq_moderation_count = CQ_EVENT_COUNT_MAX;
	reply.cq_moderation_caps.max_cq_moderation_period = CQ_EVENT_PERIOD_MAX_US;
	uv_put(call, UVERBS_ATTR_CORE_OUT, &reply, sizeof reply);
	return 0;
}

/* --- the port --- */

enum {
	PORT_DOWN = 1, PORT_ACTIVE = 4, PHYS_POLLING = 2, PHYS_DISABLED = 3, PHYS_LINK_UP = 5,
	IB_MAX_VL = 4,			/* VL0 to VL7 */
	IB_SUBNET_TIMEOUT = 18,
};

static int port_check(struct uv_call *call, uint64_t port)
{
	return port == 1 ? 0 : uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
}

/* An Ethernet port says no more than that its interface is down. */
static uint8_t phys_state(const struct emu_dev *dev)
{
	if (!dev->port.is_down)
		return PHYS_LINK_UP;
	return dev->profile->link == HW_LINK_ETHERNET ? PHYS_DISABLED : PHYS_POLLING;
}

static struct ib_uverbs_query_port_resp port_describe(const struct emu_dev *dev)
{
	const struct hw_profile *p = dev->profile;
	struct ib_uverbs_query_port_resp port = {
		.port_cap_flags = p->port_cap_flags, .max_msg_sz = p->max_msg_bytes,
		.gid_tbl_len = p->gid_table, .pkey_tbl_len = (uint16_t)p->pkey_table,
		.state = dev->port.is_down ? PORT_DOWN : PORT_ACTIVE,
		.max_mtu = p->max_mtu, .active_mtu = p->max_mtu,
		.bad_pkey_cntr = dev->port.bad_pkeys,
		.active_width = p->active_width, .active_speed = p->active_speed,
		.phys_state = phys_state(dev), .link_layer = p->link,
		.qkey_viol_cntr = dev->port.qkey_violations,
	};

	if (p->link == HW_LINK_ETHERNET) {
		port.flags = IB_UVERBS_QPF_GRH_REQUIRED;
		return port;
	}
	port.lid = dev->lid;
	port.sm_lid = dev->port.sm_lid;
	port.lmc = dev->lmc;
	port.max_vl_num = IB_MAX_VL;
	port.subnet_timeout = IB_SUBNET_TIMEOUT;
	return port;
}

int on_query_port(struct uv_call *call)
{
	struct ib_uverbs_query_port_resp_ex reply = { .legacy_resp = port_describe(call->dev) };
	int ret = port_check(call, uv_number(call, UVERBS_ATTR_QUERY_PORT_PORT_NUM));

	if (!ret)
		uv_put(call, UVERBS_ATTR_QUERY_PORT_RESP, &reply, sizeof reply);
	return ret;
}

int on_query_port_legacy(struct uv_call *call)
{
	const struct ib_uverbs_query_port *ask = uv_in(call, UVERBS_ATTR_CORE_IN);
	struct ib_uverbs_query_port_resp reply = port_describe(call->dev);
	int ret = port_check(call, ask->port_num);

	if (!ret)
		uv_put(call, UVERBS_ATTR_CORE_OUT, &reply, sizeof reply);
	return ret;
}

/* No switchdev here: flags 0 says that no other field means anything. */
int on_query_port_mlx5(struct uv_call *call)
{
	struct mlx5_ib_uapi_query_port reply = { 0 };
	int ret = port_check(call, uv_number(call, MLX5_IB_ATTR_QUERY_PORT_PORT_NUM));

	if (!ret)
		uv_put(call, MLX5_IB_ATTR_QUERY_PORT, &reply, sizeof reply);
	return ret;
}

/* --- GIDs --- */

static bool gid_is_empty(const struct emu_dev *dev, uint64_t index)
{
	static const uint8_t empty[16];

	return index >= dev->gid_count || !memcmp(dev->gid[index].raw, empty, sizeof empty);
}

static struct ib_uverbs_gid_entry gid_describe(const struct emu_dev *dev, uint32_t index)
{
	const struct emu_gid *gid = &dev->gid[index];
	struct ib_uverbs_gid_entry entry = {
		.gid_index = index, .port_num = 1, .gid_type = gid->type,
		.netdev_ifindex = gid->netdev_ifindex,
	};

	memcpy(entry.gid, gid->raw, sizeof entry.gid);
	return entry;
}

int on_query_gid_entry(struct uv_call *call)
{
	uint64_t index = uv_number(call, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX);
	struct ib_uverbs_gid_entry entry;
	int ret = port_check(call, uv_number(call, UVERBS_ATTR_QUERY_GID_ENTRY_PORT));

	if (ret)
		return ret;
	if (index >= call->dev->profile->gid_table)
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	if (gid_is_empty(call->dev, index))
		return -ENODATA;
	entry = gid_describe(call->dev, (uint32_t)index);
	uv_put(call, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, &entry, sizeof entry);
	return 0;
}

static uint32_t gids_count(const struct emu_dev *dev)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < dev->gid_count; i++)
		count += !gid_is_empty(dev, i);
	return count;
}

/* Rows of the caller's size; what a longer row has behind our entry is zero. */
static void gids_write(const struct emu_dev *dev, uint8_t *row, uint64_t row_bytes)
{
	struct ib_uverbs_gid_entry entry;

	for (uint32_t i = 0; i < dev->gid_count; i++) {
		if (gid_is_empty(dev, i))
			continue;
		entry = gid_describe(dev, i);
		memcpy(row, &entry, row_bytes < sizeof entry ? row_bytes : sizeof entry);
		row += row_bytes;
	}
}

int on_query_gid_table(struct uv_call *call)
{
	uint64_t row_bytes = uv_number(call, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE);
	unsigned room = uv_room(call, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES);
	uint32_t count = gids_count(call->dev);
	uint8_t *rows;

	if (!row_bytes || room % row_bytes || count > room / row_bytes)
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	rows = uv_stage(call, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES,
			(unsigned)(count * row_bytes));
	if (rows)
		gids_write(call->dev, rows, row_bytes);
	uv_put_number(call, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, uint64_t, count);
	return 0;
}
