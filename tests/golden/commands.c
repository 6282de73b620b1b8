/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which commands are recorded: objects of each kind are made, changed, asked and destroyed.
 *
 * Each section makes what it needs itself, outside of what is recorded, so that no section depends
 * on another.  What a library refuses is in the record as it is: nothing here must work.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include "golden.h"

#define ROWS(table) (sizeof(table) / sizeof *(table))

static struct ibv_ah_attr address_of(const struct tools *t)
{
	return (struct ibv_ah_attr){
		.is_global = 1, .port_num = 1, .sl = 3,
		.grh = { .dgid = t->gid, .sgid_index = 3, .hop_limit = 64, .traffic_class = 0x20,
			 .flow_label = 0x12345 },
	};
}

/* --- the device --- */

static void do_open(struct tools *t)
{
	struct ibv_context *context = ibv_open_device(t->w->context->device);

	if (!context)
		fail("ibv_open_device");
	ibv_close_device(context);
}

static void do_query(struct tools *t)
{
	struct ibv_context *c = t->w->context;
	struct ibv_device_attr_ex extended;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	union ibv_gid gid;
	__be16 pkey;

	ibv_query_device(c, &attr);
	ibv_query_device_ex(c, NULL, &extended);
	ibv_query_port(c, 1, &port);
	ibv_query_gid(c, 1, 3, &gid);
	ibv_query_pkey(c, 1, 0, &pkey);
}

static void do_pd(struct tools *t)
{
	struct ibv_pd *pd = ibv_alloc_pd(t->w->context);

	ibv_dealloc_pd(pd);
}

static void do_td(struct tools *t)
{
	struct ibv_td_init_attr none = { 0 };
	struct ibv_parent_domain_init_attr domain = { .pd = t->w->pd };
	struct ibv_pd *pd;

	domain.td = ibv_alloc_td(t->w->context, &none);
	pd = ibv_alloc_parent_domain(t->w->context, &domain);
	ibv_dealloc_pd(pd);
	ibv_dealloc_td(domain.td);
}

/* --- memory --- */

static void do_mr(struct tools *t)
{
	static const int access[] = {
		0, IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND,
		IBV_ACCESS_RELAXED_ORDERING, IBV_ACCESS_ZERO_BASED, IBV_ACCESS_REMOTE_WRITE,
	};
	void *at = (void *)(uintptr_t)BUFFER_ADDR;
	struct ibv_mr *mr;

	for (unsigned i = 0; i < ROWS(access); i++) {
		mr = ibv_reg_mr(t->w->pd, at, 8192, access[i]);
		if (mr)
			ibv_dereg_mr(mr);
	}
	mr = ibv_reg_mr_iova(t->w->pd, at, 100, 0x1000, IBV_ACCESS_LOCAL_WRITE);
	if (mr)
		ibv_dereg_mr(mr);
	mr = ibv_reg_mr(t->w->pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND);
	if (mr)
		ibv_dereg_mr(mr);
}

static void do_rereg(struct tools *t)
{
	uint8_t *at = (void *)(uintptr_t)BUFFER_ADDR;
	struct ibv_mr *mr = ibv_reg_mr(t->w->pd, at, 8192, IBV_ACCESS_LOCAL_WRITE);

	ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0);
	ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD, t->w->pd,
		     at + 4096, 100, 0);
	ibv_dereg_mr(mr);
}

static void do_null_mr(struct tools *t)
{
	struct ibv_mr *mr = ibv_alloc_null_mr(t->w->pd);

	if (mr)
		ibv_dereg_mr(mr);
}

static void do_advise(struct tools *t)
{
	struct ibv_sge sge = { .addr = BUFFER_ADDR, .length = 4096, .lkey = t->w->local[0]->lkey };

	ibv_advise_mr(t->w->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
}

static void do_mw(struct tools *t)
{
	for (int type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
		struct ibv_mw *mw = ibv_alloc_mw(t->w->pd, (enum ibv_mw_type)type);

		if (mw)
			ibv_dealloc_mw(mw);
	}
}

static void do_dm(struct tools *t)
{
	struct ibv_alloc_dm_attr attr = { .length = 100, .log_align_req = 3 };
	struct ibv_dm *dm = ibv_alloc_dm(t->w->context, &attr);
	struct ibv_mr *mr;

	if (!dm)
		return;
	mr = ibv_reg_dm_mr(t->w->pd, dm, 4, 64, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_READ);
	if (mr)
		ibv_dereg_mr(mr);
	ibv_free_dm(dm);
}

static void do_ah(struct tools *t)
{
	struct ibv_ah_attr attr = address_of(t);
	struct ibv_ah *ah = ibv_create_ah(t->w->pd, &attr);

	if (ah)
		ibv_destroy_ah(ah);
}

/* --- completion queues --- */

static void do_cq(struct tools *t)
{
	static const int sizes[] = { 1, 16, 63, 64, 1000 };
	struct ibv_comp_channel *channel = ibv_create_comp_channel(t->w->context);
	struct ibv_cq *cq;

	for (unsigned i = 0; i < ROWS(sizes); i++) {
		cq = ibv_create_cq(t->w->context, sizes[i], NULL, NULL, 0);
		ibv_destroy_cq(cq);
	}
	cq = ibv_create_cq(t->w->context, 16, NULL, channel, 1);
	ibv_destroy_cq(cq);
	ibv_destroy_comp_channel(channel);
}

static void do_cq_ex(struct tools *t)
{
	static const struct ibv_cq_init_attr_ex rows[] = {
		{ .cqe = 16 }, { .cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS },
		{ .cqe = 16, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP },
		{ .cqe = 16, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		  .flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED },
		{ .cqe = 16, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		  .flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN },
	};

	for (unsigned i = 0; i < ROWS(rows); i++) {
		struct ibv_cq_init_attr_ex attr = rows[i];
		struct ibv_cq_ex *cq = ibv_create_cq_ex(t->w->context, &attr);

		if (cq)
			ibv_destroy_cq(ibv_cq_ex_to_cq(cq));
	}
}

static void do_cq_dv(struct tools *t)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 16 };
	struct mlx5dv_cq_init_attr dv = { .comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE,
					  .cqe_size = 128 };
	struct ibv_cq_ex *cq = mlx5dv_create_cq(t->w->context, &attr, &dv);

	if (cq)
		ibv_destroy_cq(ibv_cq_ex_to_cq(cq));
}

static void do_cq_change(struct tools *t)
{
	struct ibv_modify_cq_attr moderate = { .attr_mask = IBV_CQ_ATTR_MODERATE,
					       .moderate = { .cq_count = 4, .cq_period = 10 } };
	struct ibv_cq *cq = ibv_create_cq(t->w->context, 16, NULL, NULL, 0);

	ibv_modify_cq(cq, &moderate);
	ibv_resize_cq(cq, 100);
	ibv_resize_cq(cq, 3);
	ibv_destroy_cq(cq);
}

/* --- shared receive queues --- */

static void do_srq(struct tools *t)
{
	static const struct ibv_srq_attr rows[] = {
		{ .max_wr = 1, .max_sge = 1 }, { .max_wr = 16, .max_sge = 0 },
		{ .max_wr = 100, .max_sge = 5, .srq_limit = 7 }, { .max_wr = 0, .max_sge = 1 },
		{ .max_wr = 20000, .max_sge = 31 },
	};

	for (unsigned i = 0; i < ROWS(rows); i++) {
		struct ibv_srq_init_attr init = { .attr = rows[i] };
		struct ibv_srq *srq = ibv_create_srq(t->w->pd, &init);

		if (srq)
			ibv_destroy_srq(srq);
	}
}

static void do_srq_change(struct tools *t)
{
	struct ibv_srq_attr attr = { .srq_limit = 3 };

	ibv_modify_srq(t->srq, &attr, IBV_SRQ_LIMIT);
	ibv_query_srq(t->srq, &attr);
}

static void do_srq_xrc(struct tools *t)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 16, .max_sge = 2 }, .srq_type = IBV_SRQT_XRC, .pd = t->w->pd,
		.xrcd = t->xrcd, .cq = t->cq,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
	};
	struct ibv_srq *srq = ibv_create_srq_ex(t->w->context, &init);

	if (srq)
		ibv_destroy_srq(srq);
}

static void do_xrcd(struct tools *t)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd = ibv_open_xrcd(t->w->context, &attr);

	if (xrcd)
		ibv_close_xrcd(xrcd);
}

/* --- queue pairs --- */

static void make_qp(struct tools *t, struct ibv_qp_init_attr_ex attr, struct ibv_pd *pd)
{
	struct ibv_qp *qp;

	if (attr.qp_type != IBV_QPT_XRC_RECV) {
		attr.pd = pd;
		attr.comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr.send_cq = t->cq;
		attr.recv_cq = attr.qp_type == IBV_QPT_XRC_SEND ? NULL : t->cq;
	} else {
		attr.xrcd = t->xrcd;
		attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
	}
	qp = ibv_create_qp_ex(t->w->context, &attr);
	if (qp)
		ibv_destroy_qp(qp);
}

static void do_qp_types(struct tools *t)
{
	static const enum ibv_qp_type types[] = {
		IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV,
		IBV_QPT_RAW_PACKET,
	};

	for (unsigned i = 0; i < ROWS(types); i++)
		make_qp(t, (struct ibv_qp_init_attr_ex){
			.qp_type = types[i],
			.cap = { .max_send_wr = 10, .max_send_sge = 2,
				 .max_recv_wr = types[i] == IBV_QPT_XRC_SEND ? 0 : 10,
				 .max_recv_sge = types[i] == IBV_QPT_XRC_SEND ? 0 : 2 },
		}, t->w->pd);
}

static void do_qp_sizes(struct tools *t)
{
	static const struct ibv_qp_cap rows[] = {
		{ 1, 1, 1, 1, 0 }, { 1, 1, 1, 1, 1 }, { 33, 100, 3, 4, 100 },
		{ 16, 16, 30, 30, 0 }, { 4, 4, 1, 1, 812 }, { 0, 10, 0, 1, 0 },
		{ 10, 0, 1, 0, 0 }, { 8192, 16384, 1, 1, 0 },
	};

	for (unsigned i = 0; i < ROWS(rows); i++)
		make_qp(t, (struct ibv_qp_init_attr_ex){ .qp_type = IBV_QPT_RC, .cap = rows[i] },
			t->w->pd);
}

static void do_qp_options(struct tools *t)
{
	const struct ibv_qp_cap cap = { 10, 0, 1, 0, 0 };
	struct ibv_qp_init_attr_ex rows[] = {
		{ .qp_type = IBV_QPT_RC, .cap = cap, .sq_sig_all = 1 },
		{ .qp_type = IBV_QPT_RC, .cap = cap, .srq = t->srq },
		{ .qp_type = IBV_QPT_RC, .cap = cap,
		  .comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		  .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND },
		{ .qp_type = IBV_QPT_UD, .cap = cap, .comp_mask = IBV_QP_INIT_ATTR_CREATE_FLAGS,
		  .create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB },
	};

	for (unsigned i = 0; i < ROWS(rows); i++)
		make_qp(t, rows[i], t->w->pd);
}

static void do_qp_td(struct tools *t)
{
	struct ibv_td_init_attr none = { 0 };
	struct ibv_parent_domain_init_attr domain = { .pd = t->w->pd };
	struct ibv_pd *pd;

	domain.td = ibv_alloc_td(t->w->context, &none);
	pd = ibv_alloc_parent_domain(t->w->context, &domain);
	make_qp(t, (struct ibv_qp_init_attr_ex){ .qp_type = IBV_QPT_RC,
						  .cap = { 10, 10, 1, 1, 0 } }, pd);
	ibv_dealloc_pd(pd);
	ibv_dealloc_td(domain.td);
}

static void do_qp_dv(struct tools *t)
{
	static const struct mlx5dv_qp_init_attr rows[] = {
		{ .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
		  .create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE },
		{ .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
		  .create_flags = MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE },
		{ .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		  .dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCI } },
		{ .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		  .dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCT, .dct_access_key = 0x1234 } },
	};

	for (unsigned i = 0; i < ROWS(rows); i++) {
		bool is_dc = rows[i].comp_mask & MLX5DV_QP_INIT_ATTR_MASK_DC;
		bool is_target = is_dc && rows[i].dc_init_attr.dc_type == MLX5DV_DCTYPE_DCT;
		struct ibv_qp_init_attr_ex attr = {
			.qp_type = is_dc ? IBV_QPT_DRIVER : IBV_QPT_RC, .pd = t->w->pd,
			.comp_mask = IBV_QP_INIT_ATTR_PD, .send_cq = t->cq, .recv_cq = t->cq,
			.srq = is_target ? t->srq : NULL,
			.cap = { .max_send_wr = is_target ? 0 : 10,
				 .max_send_sge = is_target ? 0 : 1 },
		};
		struct mlx5dv_qp_init_attr dv = rows[i];
		struct ibv_qp *qp = mlx5dv_create_qp(t->w->context, &attr, &dv);

		if (qp)
			ibv_destroy_qp(qp);
	}
}

/* queue_open() goes from RESET through RTS to ERR. */
static void do_modify_rc(struct tools *t)
{
	queue_close(queue_open(t->w, &type_rc, API_OLD, false, 1));
}

static void do_modify_uc(struct tools *t)
{
	queue_close(queue_open(t->w, &type_uc, API_OLD, false, 1));
}

static void do_modify_ud(struct tools *t)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .send_cq = t->cq,
					 .recv_cq = t->cq, .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_qp *qp = ibv_create_qp(t->w->pd, &init);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 0x11111111,
				    .sq_psn = 0x123456 };

	ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	attr.qp_state = IBV_QPS_RTR;
	ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	attr.qp_state = IBV_QPS_SQD;
	ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
	ibv_query_qp(qp, &attr, IBV_QP_STATE, &init);
	attr.qp_state = IBV_QPS_RESET;
	ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	ibv_attach_mcast(qp, &t->gid, 0);
	ibv_destroy_qp(qp);
}

/* --- receive work queues, counters --- */

static void do_wq(struct tools *t)
{
	struct ibv_wq_init_attr init = { .wq_type = IBV_WQT_RQ, .max_wr = 10, .max_sge = 2,
					 .pd = t->w->pd, .cq = t->cq };
	struct ibv_wq *wq = ibv_create_wq(t->w->context, &init);
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };
	struct ibv_rwq_ind_table_init_attr table = { .ind_tbl = &wq };
	struct ibv_rwq_ind_table *made;

	if (!wq)
		return;
	ibv_modify_wq(wq, &attr);
	made = ibv_create_rwq_ind_table(t->w->context, &table);
	if (made)
		ibv_destroy_rwq_ind_table(made);
	ibv_destroy_wq(wq);
}

static void do_counters(struct tools *t)
{
	struct ibv_counters_init_attr init = { 0 };
	struct ibv_counters *counters = ibv_create_counters(t->w->context, &init);

	if (counters)
		ibv_destroy_counters(counters);
}

/* --- all --- */

static const struct section sections[] = {
	{ "open", do_open }, { "query", do_query }, { "pd", do_pd }, { "td", do_td },
	{ "mr", do_mr }, { "rereg", do_rereg }, { "null_mr", do_null_mr },
	{ "advise", do_advise }, { "mw", do_mw }, { "dm", do_dm }, { "ah", do_ah },
	{ "cq", do_cq }, { "cq_ex", do_cq_ex }, { "cq_dv", do_cq_dv },
	{ "cq_change", do_cq_change }, { "srq", do_srq }, { "srq_change", do_srq_change },
	{ "srq_xrc", do_srq_xrc }, { "xrcd", do_xrcd }, { "qp_types", do_qp_types },
	{ "qp_sizes", do_qp_sizes }, { "qp_options", do_qp_options }, { "qp_td", do_qp_td },
	{ "qp_dv", do_qp_dv }, { "modify_rc", do_modify_rc }, { "modify_uc", do_modify_uc },
	{ "modify_ud", do_modify_ud }, { "wq", do_wq }, { "counters", do_counters },
	{ NULL, NULL },
};

static void datagrams_open(struct tools *t)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .send_cq = t->cq,
					 .recv_cq = t->cq, .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	t->qp = ibv_create_qp(t->w->pd, &init);
	if (!t->qp || ibv_modify_qp(t->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						  IBV_QP_QKEY))
		fail("a queue of datagrams");
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(t->qp, &attr, IBV_QP_STATE))
		fail("a queue of datagrams");
}

static void tools_open(struct tools *t)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 16, .max_sge = 1 } };
	struct ibv_xrcd_init_attr xrcd = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1,
		.oflags = O_CREAT,
	};

	t->cq = ibv_create_cq(t->w->context, 16, NULL, NULL, 0);
	t->srq = ibv_create_srq(t->w->pd, &srq);
	t->xrcd = ibv_open_xrcd(t->w->context, &xrcd);
	if (!t->cq || !t->srq || !t->xrcd || ibv_query_gid(t->w->context, 1, 3, &t->gid))
		fail("what the sections need");
	datagrams_open(t);
}

static void tools_close(struct tools *t)
{
	if (ibv_destroy_qp(t->qp) || ibv_close_xrcd(t->xrcd) || ibv_destroy_srq(t->srq) ||
	    ibv_destroy_cq(t->cq))
		fail("what the sections needed");
}

static void run_all(struct tools *t, const struct section *list)
{
	for (; list->name; list++) {
		trace_section(t->w, list->name);
		list->run(t);
	}
	trace_section(t->w, NULL);
}

void commands_record(struct world *w)
{
	struct tools t = { .w = w };

	tools_open(&t);
	run_all(&t, sections);
	run_all(&t, steering_sections);
	tools_close(&t);
}
