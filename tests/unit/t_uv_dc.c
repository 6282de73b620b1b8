/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The commands of DC initiators and targets.
 *
 * What they do with messages is in t_dc.c, which states they have in t_qp_state.c.
 */
#include "tests/unit/uv_world.h"

struct rig {
	struct uv_world w;
	uint32_t pd, srq;
	struct cq_ask cq;
	struct qp_ask qp;
};

static uint32_t srq_new(const struct rig *r)
{
	struct cmd c = cmd_new(UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE);
	uint8_t *memory = world_pages(2);
	struct mlx5_ib_create_srq mlx5 = { .buf_addr = (uintptr_t)memory,
					   .db_addr = (uintptr_t)memory + WORLD_PAGE };
	uint32_t out[2], reply[2];

	cmd_obj(&c, UVERBS_ATTR_CREATE_SRQ_HANDLE, 0);
	cmd_u64(&c, UVERBS_ATTR_CREATE_SRQ_TYPE, IB_UVERBS_SRQT_BASIC);
	cmd_u64(&c, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, 1);
	cmd_obj(&c, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, r->pd);
	cmd_u32(&c, UVERBS_ATTR_CREATE_SRQ_MAX_WR, 63);
	cmd_u32(&c, UVERBS_ATTR_CREATE_SRQ_MAX_SGE, 1);
	cmd_u32(&c, UVERBS_ATTR_CREATE_SRQ_LIMIT, 0);
	cmd_out(&c, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, &out[0], 4);
	cmd_out(&c, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, &out[1], 4);
	cmd_in(&c, UVERBS_ATTR_UHW_IN, &mlx5, sizeof mlx5);
	cmd_out(&c, UVERBS_ATTR_UHW_OUT, reply, sizeof reply);
	CHECK_INT(cmd_run(&r->w, &c), 0);
	return (uint32_t)c.attr[0].data;
}

/* As libmlx5 asks for an initiator. */
static struct rig rig_new(void)
{
	struct rig r = { .w = uv_world_new() };

	r.pd = pd_alloc(&r.w);
	r.cq = cq_ask_new(&r.w);
	CHECK_INT(cq_make(&r.w, &r.cq), 0);
	r.srq = srq_new(&r);
	r.qp = qp_ask_new(&r.w, r.pd, r.cq.handle);
	r.qp.type = IB_UVERBS_QPT_DRIVER;
	r.qp.cap.max_recv_wr = r.qp.cap.max_recv_sge = 0;
	r.qp.mlx5.rq_wqe_count = r.qp.mlx5.rq_wqe_shift = 0;
	r.qp.mlx5.flags = MLX5_QP_FLAG_TYPE_DCI | MLX5_QP_FLAG_UAR_PAGE_INDEX;
	return r;
}

/* For a target: no memory, no page. */
static void ask_target(struct rig *r)
{
	r->qp.mlx5 = (struct mlx5_ib_create_qp){ .flags = MLX5_QP_FLAG_TYPE_DCT, .uidx = 4,
						 .access_key = 0x1234567890abcdef };
}

static int make(struct rig *r, bool has_srq)
{
	struct cmd c = qp_cmd(&r->qp);
	int ret;

	if (has_srq)
		cmd_obj(&c, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, r->srq);
	ret = cmd_run(&r->w, &c);
	r->qp.handle = (uint32_t)c.attr[0].data;
	return ret;
}

static int modify_ex(const struct rig *r, uint8_t state, uint32_t mask, void *reply, size_t bytes)
{
	struct ib_uverbs_ex_modify_qp in = { .base = {
		.qp_handle = r->qp.handle, .attr_mask = A_STATE | mask, .qp_state = state,
		.port_num = 1, .path_mtu = 3, .min_rnr_timer = 12, .qp_access_flags = 7,
		.dest = { .sgid_index = 2, .is_global = 1, .port_num = 1 } } };
	struct ib_uverbs_ex_modify_qp_resp out = { 0 };
	struct cmd c = cmd_write(IB_USER_VERBS_CMD_FLAG_EXTENDED | 26, &in, sizeof in, &out,
				 sizeof out);

	if (bytes)
		cmd_out(&c, UVERBS_ATTR_UHW_OUT, reply, bytes);
	return cmd_run(&r->w, &c);
}

enum { TO_INIT = A_PKEY | A_PORT | A_ACCESS, TO_RTR = A_MIN_RNR | A_AV | A_MTU };

static int query(const struct rig *r, uint32_t mask, struct ib_uverbs_query_qp_resp *out)
{
	struct ib_uverbs_query_qp in = { .qp_handle = r->qp.handle, .attr_mask = mask };

	return cmd_write_run(&r->w, IB_USER_VERBS_CMD_QUERY_QP, &in, out);
}

Test(uv_dc, an_initiator_as_libmlx5_makes_it)
{
	struct rig r = rig_new();
	struct emu_qp *qp;

	CHECK_INT(make(&r, false), 0);
	qp = qp_find(r.w.dev, r.qp.qpn);
	cr_assert_not_null(qp);
	CHECK_INT(qp->type, QPT_DCI);
	CHECK_INT(qp->sq_blocks, 32);
	CHECK_INT(qp->rq_count, 0);
	CHECK_INT(qp->sq_addr, r.qp.mlx5.buf_addr);
	CHECK_INT(qp->user_index, 3);
	CHECK_INT(r.qp.reply.bfreg_index, 0xffffffff);
	uv_world_end(&r.w);
}

Test(uv_dc, a_target_as_libmlx5_makes_it)
{
	struct rig r = rig_new();
	struct mlx5_ib_modify_qp_resp reply = { 0 };
	struct emu_qp *qp;

	ask_target(&r);
	CHECK_INT(make(&r, true), 0);
	CHECK_INT(r.qp.qpn, 0);
	CHECK_INT(modify_ex(&r, QP_INIT, TO_INIT, &reply, sizeof reply), 0);
	CHECK_INT(reply.dctn, 0);
	CHECK_INT(modify_ex(&r, QP_RTR, TO_RTR, &reply, sizeof reply), 0);
	CHECK_INT(reply.response_length, sizeof reply);
	qp = qp_find(r.w.dev, reply.dctn);
	cr_assert_not_null(qp);
	CHECK_INT(qp->type, QPT_DCT);
	CHECK_INT(qp->dct->key, 0x1234567890abcdef);
	CHECK_INT(qp->user_index, 4);
	uv_world_end(&r.w);		/* with everything in it */
}

static const struct refusal_row {
	const char *name;
	uint32_t flags;
	uint8_t streams_log, failed_log;
	uint32_t recv_wr, recv_sge;
} refusals[] = {
	{ .name = "neither" },
	{ .name = "both", .flags = MLX5_QP_FLAG_TYPE_DCI | MLX5_QP_FLAG_TYPE_DCT },
	{ .name = "receives", .flags = MLX5_QP_FLAG_TYPE_DCI, .recv_wr = 1 },
	{ .name = "pieces of receives", .flags = MLX5_QP_FLAG_TYPE_DCI, .recv_sge = 1 },
	{ .name = "signature", .flags = MLX5_QP_FLAG_TYPE_DCI | MLX5_QP_FLAG_SIGNATURE },
	{ .name = "too many streams", .streams_log = 4,
	  .flags = MLX5_QP_FLAG_TYPE_DCI | MLX5_QP_FLAG_DCI_STREAM },
	{ .name = "streams that may fail", .streams_log = 1, .failed_log = 1,
	  .flags = MLX5_QP_FLAG_TYPE_DCI | MLX5_QP_FLAG_DCI_STREAM },
};

Test(uv_dc, what_an_initiator_may_not_ask_for)
{
	struct rig r = rig_new();

	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		const struct refusal_row *row = &refusals[i];

		r.qp.mlx5.flags = MLX5_QP_FLAG_UAR_PAGE_INDEX | row->flags;
		r.qp.mlx5.dci_streams.log_num_concurent = row->streams_log;
		r.qp.mlx5.dci_streams.log_num_errored = row->failed_log;
		r.qp.cap.max_recv_wr = row->recv_wr;
		r.qp.cap.max_recv_sge = row->recv_sge;
		cr_log_info("%s\n", row->name);
		CHECK_REFUSED(make(&r, false), -EINVAL, WHY_CMD_VALUE);
	}
	uv_world_end(&r.w);
	r = rig_new();
	r.qp.mlx5.flags = MLX5_QP_FLAG_TYPE_DCI;	/* and no page to ring on */
	CHECK_REFUSED(make(&r, false), -EINVAL, WHY_CMD_VALUE);
	r.qp.mlx5.flags |= MLX5_QP_FLAG_UAR_PAGE_INDEX | MLX5_QP_FLAG_DCI_STREAM;
	r.qp.mlx5.dci_streams.log_num_concurent = 3;
	CHECK_INT(make(&r, true), 0);
	uv_world_end(&r.w);
}

/* Of RC these flags mean nothing. */
Test(uv_dc, other_types_have_no_dc_flags)
{
	struct rig r = rig_new();

	r.qp.type = IB_UVERBS_QPT_RC;
	CHECK_REFUSED(make(&r, false), -EINVAL, WHY_CMD_VALUE);
	r.qp.mlx5.flags = MLX5_QP_FLAG_UAR_PAGE_INDEX;
	CHECK_INT(make(&r, false), 0);
	uv_world_end(&r.w);
}

Test(uv_dc, a_target_needs_receives)
{
	struct rig r = rig_new();

	ask_target(&r);
	CHECK_REFUSED(make(&r, false), -EINVAL, WHY_CMD_ATTRIBUTES);
	uv_world_end(&r.w);
}

/* Its number stands in the driver's part of the answer; nobody who can't be told gets one. */
Test(uv_dc, a_target_is_made_only_if_its_number_can_be_told)
{
	struct rig r = rig_new();
	uint32_t reply[4] = { 0 };

	ask_target(&r);
	CHECK_INT(make(&r, true), 0);
	CHECK_INT(modify_ex(&r, QP_INIT, TO_INIT, NULL, 0), 0);
	CHECK_REFUSED(modify_ex(&r, QP_RTR, TO_RTR, NULL, 0), -EINVAL, WHY_CMD_ATTRIBUTES);
	CHECK_REFUSED(modify_ex(&r, QP_RTR, TO_RTR, reply, 4), -EINVAL, WHY_CMD_ATTRIBUTES);
	CHECK_INT(modify_ex(&r, QP_RTR, TO_RTR, reply, 12), 0);
	CHECK_INT(reply[0], 8);		/* what is valid of it */
	cr_assert_neq(reply[1], 0);
	CHECK_REFUSED(modify_ex(&r, QP_RTR, TO_RTR, reply, 16), -EINVAL, WHY_MODIFY_EDGE);
	uv_world_end(&r.w);
}

/* The older command has no such part. */
Test(uv_dc, the_older_modify_makes_no_target)
{
	struct rig r = rig_new();
	struct ib_uverbs_modify_qp in = { .attr_mask = A_STATE | TO_INIT, .qp_state = QP_INIT,
		.port_num = 1, .path_mtu = 3,
		.dest = { .sgid_index = 2, .is_global = 1, .port_num = 1 } };
	struct cmd c = cmd_write(IB_USER_VERBS_CMD_MODIFY_QP, &in, sizeof in, NULL, 0);

	ask_target(&r);
	CHECK_INT(make(&r, true), 0);
	in.qp_handle = r.qp.handle;
	CHECK_INT(cmd_run(&r.w, &c), 0);
	in.attr_mask = A_STATE | TO_RTR;
	in.qp_state = QP_RTR;
	CHECK_REFUSED(cmd_run(&r.w, &c), -EINVAL, WHY_CMD_ATTRIBUTES);
	uv_world_end(&r.w);
}

Test(uv_dc, query_of_a_target_tells_what_was_asked_for)
{
	struct ib_uverbs_query_qp_resp q;
	struct rig r = rig_new();
	uint32_t reply[4];

	ask_target(&r);
	CHECK_INT(make(&r, true), 0);
	CHECK_REFUSED(query(&r, A_STATE, &q), -EINVAL, WHY_CMD_VALUE);
	CHECK_INT(modify_ex(&r, QP_INIT, TO_INIT, NULL, 0), 0);
	CHECK_INT(modify_ex(&r, QP_RTR, TO_RTR, reply, sizeof reply), 0);
	CHECK_INT(query(&r, A_STATE | A_MTU, &q), 0);
	CHECK_INT(q.qp_state, QP_RTR);
	CHECK_INT(q.path_mtu, 3);
	CHECK_INT(q.qp_access_flags, 0);
	CHECK_INT(query(&r, A_ACCESS | A_PORT | A_MIN_RNR | A_AV | A_PKEY, &q), 0);
	CHECK_INT(q.qp_access_flags, 6);	/* remote rights only */
	CHECK_INT(q.port_num, 1);
	CHECK_INT(q.min_rnr_timer, 12);
	CHECK_INT(q.dest.sgid_index, 0);
	CHECK_REFUSED(query(&r, A_STATE | A_QKEY, &q), -EINVAL, WHY_CMD_VALUE);
	uv_world_end(&r.w);
}

/* The kernel tells of addresses of connected types only. */
Test(uv_dc, query_of_an_initiator_tells_of_no_address)
{
	struct ib_uverbs_query_qp_resp q;
	struct rig r = rig_new();

	CHECK_INT(make(&r, false), 0);
	CHECK_INT(modify_ex(&r, QP_INIT, A_PKEY | A_PORT, NULL, 0), 0);
	CHECK_INT(modify_ex(&r, QP_RTR, A_MTU | A_AV, NULL, 0), 0);
	CHECK_INT(query(&r, 0, &q), 0);
	CHECK_INT(q.qp_state, QP_RTR);
	CHECK_INT(q.path_mtu, 3);
	CHECK_INT(q.dest.is_global, 0);
	CHECK_INT(q.dest.sgid_index, 0);
	uv_world_end(&r.w);
}

Test(uv_dc, the_device_says_how_many_streams_there_are)
{
	struct rig r = rig_new();
	struct ib_uverbs_ex_query_device in = { 0 };
	struct ib_uverbs_ex_query_device_resp out = { 0 };
	struct mlx5_ib_query_device_resp tail = { 0 };
	struct cmd c = cmd_write(IB_USER_VERBS_CMD_FLAG_EXTENDED | 1, &in, sizeof in, &out,
				 sizeof out);

	cmd_out(&c, UVERBS_ATTR_UHW_OUT, &tail, sizeof tail);
	CHECK_INT(cmd_run(&r.w, &c), 0);
	CHECK_INT(tail.dci_streams_caps.max_log_num_concurent, 3);
	CHECK_INT(tail.dci_streams_caps.max_log_num_errored, 0);
	uv_world_end(&r.w);
}
