/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values that make commands work; see uv.h.
 */
#include <fcntl.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include "emu/obj/flow.h"
#include "tests/fuzz/uv.h"

enum { RECORD_AT = UV_PAGE - 64, CQES = 16, BLOCKS = 16, RECVS = 16, RECV_SHIFT = 5 };

struct value {
	struct input *in;
	const struct emu_obj *target;
};

/* Memory for one queue and its record, or a region: another page for each object. */
static uint8_t *queue_take(struct input *in)
{
	return uv_memory->queue[(uv_file->handles.taken + take8(in)) % UV_QUEUE_PAGES];
}

/* A doorbell page; the first that a context has, or allocates, is 1. */
static uint32_t page_take(struct input *in)
{
	return 1u + take8(in);
}

static void context(const struct value *v, void *out)
{
	struct mlx5_ib_alloc_ucontext_req_v2 *ask = out;
	uint8_t choice = take8(v->in);

	*ask = (struct mlx5_ib_alloc_ucontext_req_v2){
		.total_num_bfregs = 16, .num_low_latency_bfregs = 4,
		.max_cqe_version = !(choice & 2),
		.lib_caps = MLX5_LIB_CAP_4K_UAR | (choice & 1 ? 0u : MLX5_LIB_CAP_DYN_UAR),
	};
}

static void reg_mr(const struct value *v, void *out)
{
	struct ib_uverbs_reg_mr *ask = out;
	uint64_t start = uv_place(v->in, queue_take(v->in));
	uint8_t choice = take8(v->in);

	ask->start = ask->hca_va = start;
	ask->length = choice & 1 ? take64(v->in) : (choice >> 1 & 3) * 1000u + 1000;
	/* On demand, so that advice can be given. */
	ask->access_flags = choice & 8 ? take32(v->in) : choice & 16 ? 0xf : 0x4f;
}

static void rereg_mr(const struct value *v, void *out)
{
	struct ib_uverbs_rereg_mr *ask = out;
	uint64_t start = uv_place(v->in, queue_take(v->in));

	ask->flags = MR_CHANGES_ACCESS ^ take8(v->in);
	ask->start = ask->hca_va = start;
	ask->length = 1000;
	ask->access_flags = 0x4f ^ take8(v->in);
}

/* The newest region that advice is for. */
static void advise_mr(const struct value *v, void *out)
{
	struct ib_uverbs_sge *sge = out;

	for (uint32_t handle = uv_file->handle_end; handle-- > 0;) {
		const struct emu_obj *obj = numbers_find(&uv_file->handles, handle);
		const struct emu_mr *mr = (const struct emu_mr *)obj;

		if (!obj || obj->type != OBJ_MR || !(mr->access & KEY_ON_DEMAND))
			continue;
		*sge = (struct ib_uverbs_sge){ mr->iova, 8u + take8(v->in), mr->key };
		return;
	}
}

static void alloc_mw(const struct value *v, void *out)
{
	((struct ib_uverbs_alloc_mw *)out)->mw_type = (uint8_t)(1 + take8(v->in));
}

static void create_cq_mlx5(const struct value *v, void *out)
{
	struct mlx5_ib_create_cq *ask = out;
	uint8_t *queue = queue_take(v->in);

	*ask = (struct mlx5_ib_create_cq){
		.buf_addr = uv_place(v->in, queue), .db_addr = uv_place(v->in, queue + RECORD_AT),
		.cqe_size = take8(v->in) & 1 ? 128 : 64,
		.flags = uv_file->has_dynamic_pages ? MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX : 0,
		.uar_page_index = (uint16_t)page_take(v->in),
	};
}

static void create_cq(const struct value *v, void *out)
{
	struct ib_uverbs_create_cq *ask = out;

	ask->cqe = CQES - 1 + take8(v->in);
}

static void resize_cq(const struct value *v, void *out)
{
	((struct ib_uverbs_resize_cq *)out)->cqe = 2 * CQES - 1 + take8(v->in);
}

static void resize_cq_mlx5(const struct value *v, void *out)
{
	struct mlx5_ib_resize_cq *ask = out;

	ask->buf_addr = uv_place(v->in, queue_take(v->in));
	ask->cqe_size = take8(v->in) & 1 ? 128 : 64;
}

static void create_qp_mlx5(const struct value *v, void *out)
{
	struct mlx5_ib_create_qp *ask = out;
	uint8_t *queue = queue_take(v->in);

	*ask = (struct mlx5_ib_create_qp){
		.buf_addr = uv_place(v->in, queue), .db_addr = uv_place(v->in, queue + RECORD_AT),
		.sq_wqe_count = BLOCKS, .rq_wqe_count = RECVS, .rq_wqe_shift = RECV_SHIFT,
		.flags = uv_file->has_dynamic_pages ? MLX5_QP_FLAG_UAR_PAGE_INDEX : 0,
		.bfreg_index = page_take(v->in),
	};
}

static void create_qp(const struct value *v, void *out)
{
	static const uint8_t types[] = { IB_UVERBS_QPT_UD, IB_UVERBS_QPT_UC, IB_UVERBS_QPT_RC,
					 IB_UVERBS_QPT_XRC_INI, IB_UVERBS_QPT_XRC_TGT };
	struct ib_uverbs_create_qp *ask = out;

	ask->max_send_wr = take8(v->in);
	ask->qp_type = types[take8(v->in) % sizeof types];
	ask->is_srq = take8(v->in);
}

/* The peer: the QP itself, or another one of the file. */
static uint32_t peer_qpn(struct input *in, const struct emu_qp *qp)
{
	bool is_itself = !(take8(in) & 1);

	for (uint32_t handle = uv_file->handle_end; handle-- > 0 && !is_itself;) {
		struct emu_obj *obj = numbers_find(&uv_file->handles, handle);

		if (obj && obj->type == OBJ_QP && file_qp(obj) != qp)
			return file_qp(obj)->qpn;
	}
	return qp ? qp->qpn : 0;
}

/* The next step of the usual life, and what of it other types than RC have. */
static const struct { uint8_t state; uint32_t mask; } lives[QP_STATE_COUNT] = {
	[QP_RESET] = { QP_INIT, A_STATE | A_PKEY | A_PORT | A_ACCESS },
	[QP_INIT] = { QP_RTR, A_STATE | A_AV | A_MTU | A_DEST_QPN | A_RQ_PSN | A_MAX_DEST_RD |
			      A_MIN_RNR },
	[QP_RTR] = { QP_RTS, A_STATE | A_TIMEOUT | A_RETRY | A_RNR | A_SQ_PSN | A_MAX_RD },
	[QP_RTS] = { QP_ERR, A_STATE }, [QP_SQD] = { QP_ERR, A_STATE },
	[QP_SQE] = { QP_RTS, A_STATE }, [QP_ERR] = { QP_RESET, A_STATE },
};

static uint32_t life_mask(const struct emu_qp *qp, unsigned state)
{
	static const uint32_t of_types[QPT_COUNT] = {
		[QPT_UC] = A_STATE | A_PKEY | A_PORT | A_ACCESS | A_AV | A_MTU | A_DEST_QPN |
			   A_RQ_PSN | A_SQ_PSN,
		[QPT_UD] = A_STATE | A_PKEY | A_PORT | A_SQ_PSN,
		[QPT_XRC_INI] = A_KNOWN & ~(uint32_t)(A_MAX_DEST_RD | A_MIN_RNR),
		[QPT_XRC_TGT] = A_KNOWN & ~(uint32_t)(A_RETRY | A_RNR | A_MAX_RD),
	};
	uint32_t mask = lives[state].mask;

	if (!qp || !of_types[qp->type])
		return mask;
	return (mask & of_types[qp->type]) |
	       (qp->type == QPT_UD && state == QP_RESET ? A_QKEY : 0u);
}

static void modify_qp(const struct value *v, void *out)
{
	const struct emu_qp *qp = v->target && (v->target->type == OBJ_QP ||
						 v->target->type == OBJ_QP_OPEN) ?
				  file_qp((struct emu_obj *)v->target) : NULL;
	unsigned state = ((qp ? qp->state : 0u) + take8(v->in)) % QP_STATE_COUNT;
	struct ib_uverbs_modify_qp *ask = out;

	*ask = (struct ib_uverbs_modify_qp){
		.attr_mask = life_mask(qp, state), .qp_state = lives[state].state,
		.dest_qp_num = peer_qpn(v->in, qp), .path_mtu = 3, .port_num = 1, .timeout = 14,
		.retry_cnt = 2, .rnr_retry = 1, .max_rd_atomic = 4, .max_dest_rd_atomic = 4,
		.min_rnr_timer = 12, .qp_access_flags = 0xe,
		.dest = { .is_global = 1, .port_num = 1 },
	};
	memcpy(ask->dest.dgid, device.gid[0].raw, 16);
}

/* A few groups, of which there are LIDs on InfiniBand. */
static void mcast(const struct value *v, void *out)
{
	struct ib_uverbs_attach_mcast *ask = out;

	ask->gid[0] = 0xff;
	ask->gid[15] = take8(v->in) & 3;
	ask->mlid = 0xc001u + take8(v->in);
}

static void modify_cq(const struct value *v, void *out)
{
	struct ib_uverbs_ex_modify_cq *ask = out;

	ask->attr_mask = 1u ^ take8(v->in);
	ask->attr.cq_count = take8(v->in);
	ask->attr.cq_period = take8(v->in);
}

static void create_srq_mlx5(const struct value *v, void *out)
{
	struct mlx5_ib_create_srq *ask = out;
	uint8_t *queue = queue_take(v->in);

	ask->buf_addr = uv_place(v->in, queue);
	ask->db_addr = uv_place(v->in, queue + RECORD_AT);
}

static void create_srq(const struct value *v, void *out)
{
	struct ib_uverbs_create_srq *ask = out;

	ask->max_wr = RECVS - 1u + take8(v->in);
	ask->max_sge = 1u + take8(v->in);
}

static void modify_srq(const struct value *v, void *out)
{
	struct ib_uverbs_modify_srq *ask = out;

	ask->attr_mask = 2u ^ take8(v->in);
	ask->srq_limit = take8(v->in);
}

/* To the device itself. */
static void create_ah(const struct value *v, void *out)
{
	struct ib_uverbs_create_ah *ask = out;

	ask->attr = (struct ib_uverbs_ah_attr){
		.is_global = !(take8(v->in) & 1), .port_num = 1u + take8(v->in),
		.grh = { .sgid_index = take8(v->in), .hop_limit = 64 },
	};
	memcpy(ask->attr.grh.dgid, device.gid[0].raw, 16);
}

static void create_wq_mlx5(const struct value *v, void *out)
{
	struct mlx5_ib_create_wq *ask = out;
	uint8_t *queue = queue_take(v->in);

	*ask = (struct mlx5_ib_create_wq){
		.buf_addr = uv_place(v->in, queue), .db_addr = uv_place(v->in, queue + RECORD_AT),
		.rq_wqe_count = RECVS, .rq_wqe_shift = RECV_SHIFT,
	};
}

static void create_wq(const struct value *v, void *out)
{
	((struct ib_uverbs_ex_create_wq *)out)->max_wr = RECVS + take8(v->in);
}

/* Any state, but the usual life begins with RDY. */
static void modify_wq(const struct value *v, void *out)
{
	struct ib_uverbs_ex_modify_wq *ask = out;

	ask->attr_mask = take8(v->in) ^ 1;
	ask->wq_state = take8(v->in) ^ 1;
	ask->curr_wq_state = take8(v->in);
}

/* The same queue in all places. */
static void create_rwq_table(const struct value *v, void *out)
{
	struct ib_uverbs_ex_create_rwq_ind_table *ask = out;
	struct emu_obj *wq = uv_newest(v->in, OBJ_WQ);

	ask->log_ind_tbl_size = take8(v->in) ^ 1;
	for (unsigned i = 0; i < 1u << (ask->log_ind_tbl_size & 3); i++)
		ask->wq_handles[i] = wq ? wq->handle : take8(v->in);
}

static void create_xsrq(const struct value *v, void *out)
{
	struct ib_uverbs_create_xsrq *ask = out;

	ask->max_wr = RECVS - 1 + take8(v->in);
	ask->max_sge = 1 + take8(v->in);
	ask->srq_type = take8(v->in) ^ IB_UVERBS_SRQT_XRC;
}

static void open_xrcd(const struct value *v, void *out)
{
	struct ib_uverbs_open_xrcd *ask = out;

	ask->fd = ~(uint32_t)take8(v->in);
	ask->oflags = take32(v->in) ^ O_CREAT;
}

/* A target QP if there is one. */
static void open_qp(const struct value *v, void *out)
{
	struct ib_uverbs_open_qp *ask = out;
	struct emu_obj *target = uv_newest(v->in, OBJ_QP_OPEN);

	ask->qpn = target ? file_qp(target)->qpn : take8(v->in);
	ask->qp_type = take8(v->in) ^ IB_UVERBS_QPT_XRC_TGT;
}

/* Header, and half of the rest each for value and mask; actions have a number instead. */
static const struct { uint16_t type, bytes; } flow_specs[] = {
	{ 0x20, 40 }, { 0x30, 32 }, { 0x31, 88 }, { 0x40, 16 }, { 0x41, 16 }, { 0x50, 16 },
	{ 0x51, 24 }, { 0x60, 16 }, { 0x34, 24 }, { 0x1000, 16 }, { 0x1001, 8 }, { 0x1003, 16 },
	{ 0x1002, 16 },
};

static const uint8_t COUNT_CHOICE = 11;

static unsigned flow_spec(struct input *in, uint8_t choice, uint8_t *out, unsigned room)
{
	uint16_t type = flow_specs[(choice & 0x3f) % (sizeof flow_specs / sizeof *flow_specs)].type;
	uint16_t bytes = flow_specs[(choice & 0x3f) % (sizeof flow_specs /
						       sizeof *flow_specs)].bytes;
	struct emu_obj *counters = uv_newest(in, OBJ_COUNTERS);
	struct ib_uverbs_flow_spec_hdr header = { .type = type ^ (choice & 0x80u) << 1,
						  .size = bytes };

	if (bytes > room)
		return 0;
	memcpy(out, &header, sizeof header);
	if (type == 0x1003 && counters)
		memcpy(out + sizeof header, &counters->handle, sizeof counters->handle);
	else if (choice & 0x40)
		memset(out + sizeof header, take8(in), bytes - sizeof header);
	return bytes;
}

static void create_flow(const struct value *v, void *out)
{
	struct ib_uverbs_create_flow *ask = out;
	uint8_t *list = (uint8_t *)out + sizeof *ask;
	struct emu_obj *qp = uv_newest(v->in, OBJ_QP);
	bool counts = uv_newest(v->in, OBJ_COUNTERS);
	unsigned count = 1 + ((counts ^ take8(v->in)) & 3);

	ask->qp_handle = qp ? qp->handle : take8(v->in);
	ask->flow_attr.type = take8(v->in);
	ask->flow_attr.priority = 1 ^ take8(v->in);	/* in 0 is one of mlx5dv, which drops */
	ask->flow_attr.port = 1 ^ take8(v->in);
	ask->flow_attr.flags = take8(v->in);
	for (unsigned bytes; count--; ask->flow_attr.size += (uint16_t)bytes) {
		uint8_t choice = take8(v->in) ^ (ask->flow_attr.size && counts ? COUNT_CHOICE : 0);

		bytes = flow_spec(v->in, choice, list + ask->flow_attr.size,
				  UV_LIST_BYTES - ask->flow_attr.size);
		ask->flow_attr.num_of_specs += bytes > 0;
	}
}

/* Packets or bytes, described behind all other inputs; queues may be unmapped. */
static void create_flow_mlx5(const struct value *v, void *out)
{
	struct mlx5_ib_flow_counters_desc *item =
		(void *)(uv_memory->in + sizeof uv_memory->in - sizeof *item);
	struct mlx5_ib_create_flow *ask = out;
	struct emu_counters *counters = (struct emu_counters *)uv_newest(v->in, OBJ_COUNTERS);
	bool is_first = counters && !counters->index_end;
	struct mlx5_ib_flow_counters_data data = { .ncounters = is_first ^ take8(v->in) };

	if (!data.ncounters)
		return;
	ask->ncounters_data = 1;
	item[0] = (struct mlx5_ib_flow_counters_desc){ take8(v->in), take8(v->in) };
	data.counters_data = uv_place(v->in, item);
	memcpy((uint8_t *)out + sizeof *ask, &data, sizeof data);
}

/* Masks and values of the outer headers; the right ones are all zeros. */
static void match_params(const struct value *v, void *out)
{
	uint8_t *bytes = out;

	for (unsigned count = take8(v->in); count--;)
		bytes[take8(v->in)] = take8(v->in);
}

static void query_port(const struct value *v, void *out)
{
	(void)v;
	((struct ib_uverbs_query_port *)out)->port_num = 1;
}

static void number(const struct value *v, void *out, uint64_t right)
{
	right += take8(v->in);
	memcpy(out, &right, sizeof right);
}

static void one(const struct value *v, void *out) { number(v, out, 1); }
static void dm_bytes(const struct value *v, void *out) { number(v, out, 64); }
static void dm_rights(const struct value *v, void *out) { number(v, out, 0x2f); }
static void cqes(const struct value *v, void *out) { number(v, out, CQES - 1); }
static void rc(const struct value *v, void *out) { number(v, out, IB_UVERBS_QPT_RC); }
static void row_bytes(const struct value *v, void *out) { number(v, out, 32); }
static void object(const struct value *v, void *out) { number(v, out, UVERBS_OBJECT_PD); }
/* Frames that match are for nobody: that needs no QP of a special type. */
static void drop(const struct value *v, void *out)
{
	number(v, out, MLX5_IB_ATTR_CREATE_FLOW_FLAGS_DROP);
}

static void uar_type(const struct value *v, void *out)
{
	number(v, out, MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC);
}

#define ID(id)		UVERBS_ATTR_##id
#define COMMAND(name)	UV_WRITE_OBJECT, IB_USER_VERBS_CMD_##name
#define EX_COMMAND(name) \
	UV_WRITE_OBJECT, IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_##name

/* What is not here is zero. */
static const struct {
	uint32_t object, method;
	uint16_t id;
	void (*fill)(const struct value *v, void *out);
} values[] = {
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT, ID(UHW_IN), context },
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT, ID(QUERY_PORT_PORT_NUM), one },
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE, ID(QUERY_GID_TABLE_ENTRY_SIZE),
	  row_bytes },
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY, ID(QUERY_GID_ENTRY_PORT), one },
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES, ID(INFO_OBJECT_ID), object },
	{ UVERBS_OBJECT_DEVICE, MLX5_IB_METHOD_QUERY_PORT, MLX5_IB_ATTR_QUERY_PORT_PORT_NUM, one },
	{ UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE, ID(CREATE_CQ_CQE), cqes },
	{ UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE, ID(UHW_IN), create_cq_mlx5 },
	{ UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, ID(CREATE_QP_TYPE), rc },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR, ID(ADVISE_MR_SGE_LIST), advise_mr },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG, ID(REG_DM_MR_ACCESS_FLAGS), dm_rights },
	{ UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC, ID(ALLOC_DM_LENGTH), dm_bytes },
	{ UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, ID(UHW_IN), create_qp_mlx5 },
	{ UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, ID(CREATE_SRQ_MAX_WR), cqes },
	{ UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, ID(CREATE_SRQ_MAX_SGE), one },
	{ UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, ID(UHW_IN), create_srq_mlx5 },
	{ UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_CREATE, ID(UHW_IN), create_wq_mlx5 },
	{ MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE,
	  uar_type },
	{ UVERBS_OBJECT_FLOW, MLX5_IB_METHOD_CREATE_FLOW, MLX5_IB_ATTR_CREATE_FLOW_MATCH_VALUE,
	  match_params },
	{ UVERBS_OBJECT_FLOW, MLX5_IB_METHOD_CREATE_FLOW, MLX5_IB_ATTR_CREATE_FLOW_FLAGS, drop },
	{ MLX5_IB_OBJECT_FLOW_MATCHER, MLX5_IB_METHOD_FLOW_MATCHER_CREATE,
	  MLX5_IB_ATTR_FLOW_MATCHER_MATCH_MASK, match_params },
	{ COMMAND(GET_CONTEXT), ID(UHW_IN), context },
	{ COMMAND(QUERY_PORT), ID(CORE_IN), query_port },
	{ COMMAND(REG_MR), ID(CORE_IN), reg_mr },
	{ COMMAND(REREG_MR), ID(CORE_IN), rereg_mr },
	{ COMMAND(ALLOC_MW), ID(CORE_IN), alloc_mw },
	{ COMMAND(CREATE_CQ), ID(CORE_IN), create_cq },
	{ COMMAND(CREATE_CQ), ID(UHW_IN), create_cq_mlx5 },
	{ COMMAND(RESIZE_CQ), ID(CORE_IN), resize_cq },
	{ COMMAND(RESIZE_CQ), ID(UHW_IN), resize_cq_mlx5 },
	{ COMMAND(CREATE_QP), ID(CORE_IN), create_qp },
	{ COMMAND(CREATE_QP), ID(UHW_IN), create_qp_mlx5 },
	{ COMMAND(MODIFY_QP), ID(CORE_IN), modify_qp },
	{ COMMAND(ATTACH_MCAST), ID(CORE_IN), mcast },
	{ COMMAND(DETACH_MCAST), ID(CORE_IN), mcast },
	{ COMMAND(CREATE_SRQ), ID(CORE_IN), create_srq },
	{ COMMAND(CREATE_SRQ), ID(UHW_IN), create_srq_mlx5 },
	{ COMMAND(MODIFY_SRQ), ID(CORE_IN), modify_srq },
	{ COMMAND(CREATE_XSRQ), ID(CORE_IN), create_xsrq },
	{ COMMAND(CREATE_XSRQ), ID(UHW_IN), create_srq_mlx5 },
	{ COMMAND(OPEN_XRCD), ID(CORE_IN), open_xrcd },
	{ COMMAND(OPEN_QP), ID(CORE_IN), open_qp },
	{ COMMAND(CREATE_AH), ID(CORE_IN), create_ah },
	{ EX_COMMAND(MODIFY_QP), ID(CORE_IN), modify_qp },
	{ EX_COMMAND(MODIFY_CQ), ID(CORE_IN), modify_cq },
	{ EX_COMMAND(CREATE_WQ), ID(CORE_IN), create_wq },
	{ EX_COMMAND(CREATE_WQ), ID(UHW_IN), create_wq_mlx5 },
	{ EX_COMMAND(MODIFY_WQ), ID(CORE_IN), modify_wq },
	{ EX_COMMAND(CREATE_RWQ_IND_TBL), ID(CORE_IN), create_rwq_table },
	{ EX_COMMAND(CREATE_FLOW), ID(CORE_IN), create_flow },
	{ EX_COMMAND(CREATE_FLOW), ID(UHW_IN), create_flow_mlx5 },
};

void uv_value(struct input *in, const struct uv_method *method, uint16_t id,
	      const struct emu_obj *target, uint8_t out[UV_BYTES_MAX])
{
	struct value v = { in, target };

	memset(out, 0, UV_BYTES_MAX);
	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		if (values[i].object == method->object && values[i].method == method->method &&
		    values[i].id == id)
			values[i].fill(&v, out);
}

static const struct { uint32_t object, method; uint16_t id; } left_out[] = {
	{ UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, ID(CREATE_QP_XRCD_HANDLE) },
	{ UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, ID(CREATE_QP_SRQ_HANDLE) },
	{ UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, ID(CREATE_QP_IND_TABLE_HANDLE) },
	{ UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, ID(CREATE_QP_SOURCE_QPN) },
	{ UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, ID(CREATE_SRQ_XRCD_HANDLE) },
	{ UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, ID(CREATE_SRQ_CQ_HANDLE) },
	{ UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, ID(CREATE_SRQ_MAX_NUM_TAGS) },
	{ UVERBS_OBJECT_FLOW, MLX5_IB_METHOD_CREATE_FLOW, MLX5_IB_ATTR_CREATE_FLOW_DEST_QP },
	{ UVERBS_OBJECT_FLOW, MLX5_IB_METHOD_CREATE_FLOW,
	  MLX5_IB_ATTR_CREATE_FLOW_ARR_FLOW_ACTIONS },
	{ UVERBS_OBJECT_FLOW, MLX5_IB_METHOD_CREATE_FLOW,
	  MLX5_IB_ATTR_CREATE_FLOW_ARR_COUNTERS_DEVX },
	{ MLX5_IB_OBJECT_FLOW_MATCHER, MLX5_IB_METHOD_FLOW_MATCHER_CREATE,
	  MLX5_IB_ATTR_FLOW_MATCHER_FT_TYPE },
};

bool uv_is_left_out(const struct uv_method *method, uint16_t id)
{
	for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
		if (left_out[i].object == method->object &&
		    left_out[i].method == method->method && left_out[i].id == id)
			return true;
	return false;
}

/* --- a usual beginning --- */

#define METHOD(object, method)	{ UVERBS_OBJECT_##object, UVERBS_METHOD_##method }

struct beginning { uint32_t object, method; };

/* Two QPs, one of them at work; and an object of each other type. */
static const struct beginning working[] = {
	METHOD(DEVICE, GET_CONTEXT), { MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC },
	METHOD(ASYNC_EVENT, ASYNC_EVENT_ALLOC), { COMMAND(CREATE_COMP_CHANNEL) },
	{ COMMAND(ALLOC_PD) }, { COMMAND(REG_MR) }, METHOD(CQ, CQ_CREATE),
	METHOD(QP, QP_CREATE), METHOD(QP, QP_CREATE),
	{ COMMAND(MODIFY_QP) }, { COMMAND(MODIFY_QP) }, { COMMAND(MODIFY_QP) },
};
static const struct beginning having_all[] = {
	METHOD(DEVICE, GET_CONTEXT), { MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC },
	{ COMMAND(ALLOC_PD) }, METHOD(CQ, CQ_CREATE), { COMMAND(REG_MR) },
	METHOD(SRQ, SRQ_CREATE), { COMMAND(CREATE_AH) }, METHOD(WQ, WQ_CREATE),
	{ EX_COMMAND(CREATE_RWQ_IND_TBL) }, METHOD(DM, DM_ALLOC), METHOD(MR, DM_MR_REG),
	{ COMMAND(ALLOC_MW) }, METHOD(COUNTERS, COUNTERS_CREATE), { COMMAND(OPEN_XRCD) },
	{ COMMAND(CREATE_XSRQ) }, { COMMAND(CREATE_QP) }, { EX_COMMAND(CREATE_FLOW) },
	{ MLX5_IB_OBJECT_FLOW_MATCHER, MLX5_IB_METHOD_FLOW_MATCHER_CREATE },
	{ UVERBS_OBJECT_FLOW, MLX5_IB_METHOD_CREATE_FLOW },
};
#define COUNT(array)	(sizeof array / sizeof *array)

static void begin_with(const struct beginning *step, unsigned count)
{
	struct input nothing = { NULL, NULL };

	for (unsigned i = 0; i < count; i++) {
		bool is_command = step[i].object == UV_WRITE_OBJECT;
		const struct uv_method *row = uv_method_find(is_command ? uv_commands : uv_methods,
			is_command ? uv_command_count : uv_method_count, step[i].object,
			step[i].method);
		int result = is_command ? uv_do_invoke(&nothing, row) :
					  uv_do_method(&nothing, row);

		assert(result >= 0);
	}
}

void uv_begin(uint8_t choice)
{
	unsigned missing = choice & 0x7f;

	if (choice & 0x80)
		begin_with(having_all, COUNT(having_all) - missing % (COUNT(having_all) + 1));
	else
		begin_with(working, COUNT(working) - missing % (COUNT(working) + 1));
}
