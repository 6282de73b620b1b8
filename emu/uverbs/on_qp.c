/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: the translation between the uverbs structures and emu/obj.
 *
 * What ibv_modify_qp() allows is decided by qp_modify(), not here.
 *
 * Source: device-abi B.9.1, B.9.6, E.2.
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <string.h>
#include "emu/engine/engine.h"
#include "emu/uverbs/file.h"
#include "emu/uverbs/handlers.h"
#include "emu/uverbs/on_dc.h"
#include "emu/uverbs/on_rss.h"
#include "emu/uverbs/privilege.h"

#define BFREG_NONE		0xffffffffu	/* the client rings on the page that it named */
#define USER_INDEX_DEFAULT	0xffffffu	/* "none" of CQE version 0 */
#define USER_INDEX_NO_SRQ	0u		/* what CQEs of version 0 then have */
#define RQ_SHIFT_MIN		4u		/* one data segment */
#define SGE_BYTES		16u

/* Of the known flags, what this device does. */
#define FLAGS_HERE								\
	((uint64_t)(IB_UVERBS_QP_CREATE_SQ_SIG_ALL |				\
		    IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK))
#define FLAGS_OF_FRAMES								\
	((uint64_t)(IB_UVERBS_QP_CREATE_SCATTER_FCS |				\
		    IB_UVERBS_QP_CREATE_CVLAN_STRIPPING))

/* Masks of the two modify commands; a bit beyond is from the future. */
#define MODIFY_MASK		0x1fffffu
#define MODIFY_EX_MASK		0x3ffffffu

/* --- create --- */

/* QP types of the uverbs ABI that exist. */
static const struct qp_type_row {
	uint8_t number;
	enum qp_type type;
} qp_types[] = {
	{ IB_UVERBS_QPT_RC, QPT_RC },
	{ IB_UVERBS_QPT_UC, QPT_UC },
	{ IB_UVERBS_QPT_UD, QPT_UD },
	{ IB_UVERBS_QPT_XRC_INI, QPT_XRC_INI },
	{ IB_UVERBS_QPT_XRC_TGT, QPT_XRC_TGT },
	{ IB_UVERBS_QPT_DRIVER, QPT_DCI },	/* or DCT: on_dc.c */
	{ IB_UVERBS_QPT_RAW_PACKET, QPT_RAW },
};

/* Frames are for Ethernet ports. */
static bool is_here(const struct emu_dev *dev, enum qp_type type)
{
	return type != QPT_RAW || dev->profile->link == HW_LINK_ETHERNET;
}

static int type_find(struct uv_call *call, uint64_t number, enum qp_type *out)
{
	if (number == IB_UVERBS_QPT_RAW_PACKET && !may_use_frames(call->dev))
		return uv_refuse(call, WHY_CMD_CAPABILITY, -EPERM);
	for (size_t i = 0; i < sizeof qp_types / sizeof *qp_types; i++) {
		if (qp_types[i].number != number)
			continue;
		*out = qp_types[i].type;
		return is_here(call->dev, *out) ? 0 :
		       uv_refuse(call, WHY_CMD_UNSUPPORTED, -EOPNOTSUPP);
	}
	return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
}

/* Scatter to CQE is permission to write small data into the CQE, not an order. */
static uint32_t mlx5_flags_known(const struct uv_file *file, uint64_t type)
{
	uint32_t of_frames = MLX5_QP_FLAG_TUNNEL_OFFLOADS | MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_UC |
			     MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_MC;

	return MLX5_QP_FLAG_SCATTER_CQE | MLX5_QP_FLAG_ALLOW_SCATTER_CQE | dc_flags_known(type) |
	       (type == IB_UVERBS_QPT_RAW_PACKET ? of_frames : 0) |
	       (file->has_dynamic_pages ? MLX5_QP_FLAG_UAR_PAGE_INDEX : MLX5_QP_FLAG_BFREG_INDEX);
}

static bool has_page(const struct uv_file *file, const struct mlx5_ib_create_qp *ask)
{
	if (ask->flags & MLX5_QP_FLAG_UAR_PAGE_INDEX)
		return file_page_is_used(file, ask->bfreg_index);
	return !file->has_dynamic_pages;
}

static int mlx5_check(struct uv_call *call, uint64_t type, const struct mlx5_ib_create_qp *ask)
{
	struct uv_file *file = call->file;

	if (!ask || ask->flags & ~mlx5_flags_known(file, type) ||
	    (dc_needs_page(type, ask) && !has_page(file, ask)))
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	if (file->cqe_version && ask->uidx >= USER_INDEX_DEFAULT)
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	if (ask->rq_wqe_count && (ask->rq_wqe_shift < RQ_SHIFT_MIN || ask->rq_wqe_shift > 31 ||
				  1u << ask->rq_wqe_shift > call->dev->profile->max_rq_desc_bytes))
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	return 0;
}

/* What a type does not have does not matter, whatever was given for it. */
static int parts_take(struct uv_call *call, struct qp_init *init, struct emu_xrcd *xrcd)
{
	const struct qp_parts *parts = &qp_parts[init->type];

	init->pd = parts->has_pd ? init->pd : NULL;
	init->send_cq = parts->sends ? init->send_cq : NULL;
	init->recv_cq = parts->receives ? init->recv_cq : NULL;
	init->srq = parts->receives ? init->srq : NULL;
	init->xrc_domain = parts->has_domain && xrcd ? xrcd->domain : NULL;
	if (parts->has_pd != !!init->pd || parts->sends != !!init->send_cq ||
	    parts->receives != !!init->recv_cq || parts->has_domain != !!init->xrc_domain)
		return uv_refuse(call, WHY_CMD_ATTRIBUTES, -EINVAL);
	if (init->srq && init->srq->type != SRQ_BASIC)
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	return 0;
}

/* The receive ring comes first in the buffer.  libmlx5 leaves room for it also where the type has
 * none, if the program asked for receives. */
static void rings_fill(struct qp_init *init, const struct mlx5_ib_create_qp *ask)
{
	const struct qp_parts *parts = &qp_parts[init->type];
	uint64_t unused_bytes = 0;

	if (!parts->sends)
		return;
	if (!init->srq && parts->receives) {
		init->rq_count = ask->rq_wqe_count;
		init->rq_stride = init->rq_count ? 1u << ask->rq_wqe_shift : 0;
	} else if (ask->rq_wqe_count) {
		unused_bytes = (uint64_t)ask->rq_wqe_count << ask->rq_wqe_shift;
	}
	init->buf_addr = ask->buf_addr + unused_bytes;
	init->db_addr = ask->db_addr;
	init->sq_blocks = ask->sq_wqe_count;
}

/* Frames have their send ring in a buffer of its own. */
static void frames_fill(const struct uv_file *file, struct qp_init *init, uint64_t flags,
			const struct mlx5_ib_create_qp *ask)
{
	if (init->type == QPT_RAW)
		init->sq_buf_addr = ask->sq_buf_addr;
	init->frames = (struct frame_options){
		.strips_vlan = flags & IB_UVERBS_QP_CREATE_CVLAN_STRIPPING,
		.scatters_fcs = flags & IB_UVERBS_QP_CREATE_SCATTER_FCS,
		.looks_inside = ask->flags & MLX5_QP_FLAG_TUNNEL_OFFLOADS,
		.has_flow_tags = init->type == QPT_RAW && file->cqe_version,
	};
}

/* The receive ring has room for what its geometry says, which may be more than was asked. */
static int init_fill(struct uv_call *call, struct qp_init *init, uint64_t type,
		     const struct mlx5_ib_create_qp *ask)
{
	init->user_index = call->file->cqe_version ? ask->uidx : USER_INDEX_NO_SRQ;
	if (!init->async)
		init->async = call->file->async;
	if (dc_is_asked(type))
		return dc_init_fill(call, init, ask);
	rings_fill(init, ask);
	init->max_recv_wr = init->rq_count;
	init->max_recv_sge = init->rq_stride / SGE_BYTES;
	return 0;
}

/* A target QP belongs to whoever opens it; its creator is the first. */
static int target_create(struct uv_call *call, const struct qp_init *init, struct emu_xrcd *xrcd,
			 struct emu_qp **out)
{
	struct qp_open_init open_init = {
		.xrcd = xrcd, .async = init->async, .user_handle = init->user_handle,
	};
	struct qp_init qp_init = *init;
	struct emu_qp_open *open;
	uint32_t events;
	int ret;

	qp_init.async = NULL;
	ret = qp_create(call->dev, &qp_init, out);
	if (ret)
		return ret;
	ret = qp_open(call->dev, *out, &open_init, &open);
	if (ret)
		qp_destroy(call->dev, *out, &events);
	else
		call->created = &open->obj;
	return ret;
}

static int qp_make(struct uv_call *call, const struct qp_init *init, struct emu_xrcd *xrcd,
		   struct emu_qp **out)
{
	int ret;

	if (init->xrc_domain)
		return target_create(call, init, xrcd, out);
	ret = qp_create(call->dev, init, out);
	if (!ret)
		call->created = &(*out)->obj;
	return ret;
}

/* What only a QP with a table has may be there as long as it is zero. */
static int driver_take(struct uv_call *call, const struct mlx5_ib_create_qp **out)
{
	static const union create_qp_driver nothing;
	const union create_qp_driver *given = uv_in(call, UVERBS_ATTR_UHW_IN);
	const size_t known = sizeof given->qp;

	*out = given ? &given->qp : NULL;
	if (given && memcmp((const char *)given + known, (const char *)&nothing + known,
			    sizeof nothing - known))
		return uv_refuse(call, WHY_CMD_UNSUPPORTED, -EOPNOTSUPP);
	return 0;
}

/* Both ways to ask end here; objects, capacities and signalling come from the caller. */
static int create(struct uv_call *call, struct qp_init *init, uint64_t type, uint64_t flags,
		  struct emu_xrcd *xrcd, struct emu_qp **out)
{
	struct mlx5_ib_create_qp_resp reply = { 0 };
	const struct mlx5_ib_create_qp *ask;
	int ret = type_find(call, type, &init->type);

	if (!ret)
		ret = driver_take(call, &ask);
	if (!ret)
		ret = mlx5_check(call, type, ask);
	if (ret)
		return ret;
	ret = parts_take(call, init, xrcd);
	if (!ret)
		ret = init_fill(call, init, type, ask);
	if (!ret)
		frames_fill(call->file, init, flags, ask);
	if (!ret)
		ret = qp_make(call, init, xrcd, out);
	if (ret)
		return ret;
	reply.bfreg_index = call->file->has_dynamic_pages ? BFREG_NONE : 0;
	uv_put(call, UVERBS_ATTR_UHW_OUT, &reply, sizeof reply);
	return 0;
}

static int table_qp_create(struct uv_call *call, const struct qp_init *init, uint64_t flags,
			   struct emu_rwq_table *table, struct emu_qp **out)
{
	enum qp_type type;
	int ret = type_find(call, IB_UVERBS_QPT_RAW_PACKET, &type);

	return ret ? ret : rss_create(call, init, flags, table, out);
}

int on_create_qp(struct uv_call *call)
{
	const struct ib_uverbs_qp_cap *cap = uv_in(call, UVERBS_ATTR_CREATE_QP_CAP);
	uint64_t flags = uv_number(call, UVERBS_ATTR_CREATE_QP_FLAGS);
	uint64_t type = uv_number(call, UVERBS_ATTR_CREATE_QP_TYPE);
	struct qp_init init = {
		.user_handle = uv_number(call, UVERBS_ATTR_CREATE_QP_USER_HANDLE),
		.pd = uv_pd(call, UVERBS_ATTR_CREATE_QP_PD_HANDLE),
		.send_cq = uv_cq(call, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE),
		.recv_cq = uv_cq(call, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE),
		.srq = uv_srq(call, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE),
		.async = uv_channel(call, UVERBS_ATTR_CREATE_QP_EVENT_FD),
		.max_send_wr = cap->max_send_wr, .max_send_sge = cap->max_send_sge,
		.max_recv_wr = cap->max_recv_wr, .max_recv_sge = cap->max_recv_sge,
		.max_inline = cap->max_inline_data,
		.signals_all = flags & IB_UVERBS_QP_CREATE_SQ_SIG_ALL,
		.blocks_loopback = flags & IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK,
	};
	struct emu_rwq_table *table = uv_rwq_table(call, UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE);
	bool has_frames = type == IB_UVERBS_QPT_RAW_PACKET;
	struct emu_qp *qp;
	int ret;

	if (flags & ~(FLAGS_HERE | (has_frames ? FLAGS_OF_FRAMES : 0)) ||
	    uv_has(call, UVERBS_ATTR_CREATE_QP_SOURCE_QPN))
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	/* Only frames are spread over receive queues. */
	if (table && !has_frames)
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	ret = table ? table_qp_create(call, &init, flags, table, &qp) :
		      create(call, &init, type, flags,
			     uv_xrcd(call, UVERBS_ATTR_CREATE_QP_XRCD_HANDLE), &qp);
	if (ret)
		return ret;
	uv_put(call, UVERBS_ATTR_CREATE_QP_RESP_CAP, cap, sizeof *cap);
	uv_put_number(call, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, uint32_t, dc_number(qp));
	return 0;
}

int on_create_qp_legacy(struct uv_call *call)
{
	const struct ib_uverbs_create_qp *ask = uv_in(call, UVERBS_ATTR_CORE_IN);
	struct ib_uverbs_create_qp_resp reply = {
		.max_send_wr = ask->max_send_wr, .max_recv_wr = ask->max_recv_wr,
		.max_send_sge = ask->max_send_sge, .max_recv_sge = ask->max_recv_sge,
		.max_inline_data = ask->max_inline_data,
	};
	struct qp_init init = {
		.user_handle = ask->user_handle, .pd = uv_pd(call, UV_PD),
		.send_cq = uv_cq(call, UV_CQ), .recv_cq = uv_cq(call, UV_RECV_CQ),
		.srq = uv_srq(call, UV_SRQ),
		.max_send_wr = ask->max_send_wr, .max_send_sge = ask->max_send_sge,
		.max_recv_wr = ask->max_recv_wr, .max_recv_sge = ask->max_recv_sge,
		.max_inline = ask->max_inline_data, .signals_all = ask->sq_sig_all,
	};
	struct emu_qp *qp;
	int ret;

	ret = create(call, &init, ask->qp_type, 0, uv_xrcd(call, UV_XRCD), &qp);
	if (ret)
		return ret;
	reply.qpn = dc_number(qp);
	uv_put(call, UVERBS_ATTR_CORE_OUT, &reply, sizeof reply);
	return 0;
}

/* --- modify --- */

#define PATH_BITS_KEPT	0x7f		/* field mlid of the hardware's path */

static struct qp_path path_read(const struct ib_uverbs_qp_dest *from)
{
	struct qp_path path = {
		.flow_label = from->flow_label, .dlid = from->dlid,
		.sgid_index = from->sgid_index, .hop_limit = from->hop_limit,
		.traffic_class = from->traffic_class, .sl = from->sl,
		.src_path_bits = from->src_path_bits & PATH_BITS_KEPT,
		.static_rate = from->static_rate,
		.is_global = from->is_global, .port = from->port_num,
	};

	memcpy(path.dgid, from->dgid, sizeof path.dgid);
	return path;
}

static struct qp_attr attr_read(const struct ib_uverbs_modify_qp *ask)
{
	return (struct qp_attr){
		.path = path_read(&ask->dest), .alt_path = path_read(&ask->alt_dest),
		.qkey = ask->qkey, .rq_psn = ask->rq_psn, .sq_psn = ask->sq_psn,
		.dest_qpn = ask->dest_qp_num, .access = ask->qp_access_flags,
		.pkey_index = ask->pkey_index, .alt_pkey_index = ask->alt_pkey_index,
		.state = ask->qp_state, .cur_state = ask->cur_qp_state,
		.path_mtu = ask->path_mtu, .mig_state = ask->path_mig_state,
		.en_sqd_notify = ask->en_sqd_async_notify, .max_rd_atomic = ask->max_rd_atomic,
		.max_dest_rd_atomic = ask->max_dest_rd_atomic,
		.min_rnr_timer = ask->min_rnr_timer, .port = ask->port_num,
		.timeout = ask->timeout, .retry_cnt = ask->retry_cnt, .rnr_retry = ask->rnr_retry,
		.alt_port = ask->alt_port_num, .alt_timeout = ask->alt_timeout,
	};
}

/* Q_Keys of the upper half are the subnet manager's and its like: Linux since 6.4, 6.1.35. */
#define QKEY_CONTROLLED		(1u << 31)

/* Attributes of the half that a QP does not have are ignored, as Linux does for programs that
 * treat both halves alike. */
static const uint32_t ignored_attrs[QPT_COUNT] = {
	[QPT_XRC_INI] = A_MAX_DEST_RD | A_MIN_RNR,
	[QPT_XRC_TGT] = A_MAX_RD | A_RETRY | A_RNR,
	[QPT_XRC_FAR] = A_MAX_RD | A_RETRY | A_RNR,
};

/* Of the process that has the target QP.  If it is gone, so is the QP. */
static int far_ask(struct uv_call *call, struct emu_qp *qp, enum far_op op,
		   const struct qp_attr *attr, uint32_t mask)
{
	int ret = engine_far_ask(call->engine, qp, op, attr, mask);

	return ret == -ESRCH ? uv_refuse(call, WHY_CMD_HANDLE, -EIO) : ret;
}

/* @room: for the driver's part of the answer. */
static int modify(struct uv_call *call, const struct qp_attr *attr, uint32_t mask, uint32_t known,
		  unsigned room)
{
	struct emu_qp *qp = uv_qp(call, UV_QP);
	int ret;

	if (mask & ~known)
		return uv_refuse(call, WHY_MODIFY_MASK, -EOPNOTSUPP);
	if (mask & A_QKEY && attr->qkey & QKEY_CONTROLLED && !may_control_qkeys(call->dev))
		return uv_refuse(call, WHY_CMD_CAPABILITY, -EPERM);
	if (qp->type == QPT_RSS)
		return uv_refuse(call, WHY_CMD_UNSUPPORTED, -ENOSYS);
	mask &= ~ignored_attrs[qp->type];
	if (qp->type == QPT_XRC_FAR)
		return far_ask(call, qp, FAR_MODIFY, attr, mask);
	ret = dc_modify_check(call, qp, attr, mask, room);
	if (!ret)
		ret = qp_modify(call->dev, qp, attr, mask);
	if (!ret)
		engine_qp_kick(call->engine, qp);
	return ret;
}

int on_modify_qp(struct uv_call *call)
{
	const struct ib_uverbs_modify_qp *ask = uv_in(call, UVERBS_ATTR_CORE_IN);
	struct qp_attr attr = attr_read(ask);

	return modify(call, &attr, ask->attr_mask, MODIFY_MASK, 0);
}

/* Nothing of what the driver could add is offered. */
static bool asks_for_more(const struct mlx5_ib_modify_qp *mlx5)
{
	static const struct mlx5_ib_modify_qp nothing;

	return mlx5 && memcmp(mlx5, &nothing, sizeof nothing);
}

int on_modify_qp_ex(struct uv_call *call)
{
	const struct ib_uverbs_ex_modify_qp *ask = uv_in(call, UVERBS_ATTR_CORE_IN);
	struct ib_uverbs_ex_modify_qp_resp reply = { .response_length = sizeof reply };
	struct mlx5_ib_modify_qp_resp mlx5_reply = { 0 };
	struct qp_attr attr = attr_read(&ask->base);
	unsigned room = uv_room(call, UVERBS_ATTR_UHW_OUT);
	int ret;

	if (asks_for_more(uv_in(call, UVERBS_ATTR_UHW_IN)))
		return uv_refuse(call, WHY_CMD_UNSUPPORTED, -EOPNOTSUPP);
	attr.rate_limit = ask->rate_limit;
	ret = modify(call, &attr, ask->base.attr_mask, MODIFY_EX_MASK, room);
	if (ret)
		return ret;
	mlx5_reply.response_length = room < sizeof mlx5_reply ? room : sizeof mlx5_reply;
	dc_modify_answer(uv_qp(call, UV_QP), room, &mlx5_reply);
	uv_put(call, UVERBS_ATTR_CORE_OUT, &reply, sizeof reply);
	uv_put(call, UVERBS_ATTR_UHW_OUT, &mlx5_reply, sizeof mlx5_reply);
	return 0;
}

/* --- query --- */

static void path_write(struct ib_uverbs_qp_dest *to, const struct qp_path *path)
{
	*to = (struct ib_uverbs_qp_dest){
		.flow_label = path->flow_label, .dlid = path->dlid,
		.sgid_index = path->sgid_index, .hop_limit = path->hop_limit,
		.traffic_class = path->traffic_class, .sl = path->sl,
		.src_path_bits = path->src_path_bits, .static_rate = path->static_rate,
		.is_global = path->is_global, .port_num = path->port,
	};
	memcpy(to->dgid, path->dgid, sizeof to->dgid);
}

static int query(struct uv_call *call)
{
	const struct ib_uverbs_query_qp *ask = uv_in(call, UVERBS_ATTR_CORE_IN);
	const struct emu_qp *qp = uv_qp(call, UV_QP);
	const struct qp_attr *a = &qp->attr;
	struct ib_uverbs_query_qp_resp reply = {
		.max_send_wr = qp->max_send_wr, .max_recv_wr = qp->max_recv_wr,
		.max_send_sge = qp->max_send_sge, .max_recv_sge = qp->max_recv_sge,
		.max_inline_data = qp->max_inline, .qkey = a->qkey, .rq_psn = a->rq_psn,
		.sq_psn = a->sq_psn, .dest_qp_num = a->dest_qpn, .qp_access_flags = a->access,
		.pkey_index = a->pkey_index, .alt_pkey_index = a->alt_pkey_index,
		.qp_state = qp->state, .cur_qp_state = qp->state, .path_mtu = a->path_mtu,
		.path_mig_state = a->mig_state, .max_rd_atomic = a->max_rd_atomic,
		.max_dest_rd_atomic = a->max_dest_rd_atomic, .min_rnr_timer = a->min_rnr_timer,
		.port_num = a->port, .timeout = a->timeout, .retry_cnt = a->retry_cnt,
		.rnr_retry = a->rnr_retry, .alt_port_num = a->alt_port,
		.alt_timeout = a->alt_timeout, .sq_sig_all = qp->signals_all,
	};

	if (qp->type == QPT_DCT)
		return dct_query(call, qp, ask->attr_mask);
	if (qp->type != QPT_DCI)		/* the kernel tells of connected types' only */
		path_write(&reply.dest, &a->path);
	path_write(&reply.alt_dest, &a->alt_path);
	uv_put(call, UVERBS_ATTR_CORE_OUT, &reply, sizeof reply);
	return 0;
}

int on_query_qp(struct uv_call *call)
{
	struct emu_qp *qp = uv_qp(call, UV_QP);
	int ret = qp->type == QPT_XRC_FAR ? far_ask(call, qp, FAR_QUERY, NULL, 0) : 0;

	if (qp->type == QPT_RSS)
		ret = uv_refuse(call, WHY_CMD_UNSUPPORTED, -ENOSYS);
	return ret ? ret : query(call);
}

/* --- destroy --- */

static int destroy(struct uv_call *call, uint16_t qp_id, uint16_t reply_id)
{
	struct ib_uverbs_destroy_qp_resp reply = { 0 };
	struct emu_qp *qp = uv_qp(call, qp_id);
	int ret;

	if (qp->opens) {
		file_qp_open_close(call->file, (struct emu_qp_open *)uv_obj(call, qp_id),
				   &reply.events_reported);
		uv_put(call, reply_id, &reply, sizeof reply);
		return 0;
	}
	engine_qp_forget(call->engine, qp);
	ret = qp_destroy(call->dev, qp, &reply.events_reported);
	if (!ret)
		uv_put(call, reply_id, &reply, sizeof reply);
	return ret;
}

int on_destroy_qp(struct uv_call *call)
{
	return destroy(call, UVERBS_ATTR_DESTROY_QP_HANDLE, UVERBS_ATTR_DESTROY_QP_RESP);
}

int on_destroy_qp_legacy(struct uv_call *call)
{
	return destroy(call, UV_QP, UVERBS_ATTR_CORE_OUT);
}
