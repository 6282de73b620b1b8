/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive work queues, indirection tables, and the QPs that would use them.
 *
 * Method: what libmlx5 sends, with values changed; every pair of states is tried.  Malformed
 * commands are the business of t_uv_garble*.c.
 */
#include "tests/unit/uv_world.h"
#include "emu/obj/wq.h"

#define EX(number)	(IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_##number)

struct wq_rig {
	struct uv_world w;
	uint32_t pd, cq;
	struct ib_uverbs_ex_create_wq core;
	struct mlx5_ib_create_wq mlx5;
	struct ib_uverbs_ex_create_wq_resp reply;
};

static struct wq_rig rig_on(struct uv_world w)
{
	struct wq_rig r = { .w = w };
	struct cq_ask cq = cq_ask_new(&r.w);
	uint8_t *memory = world_pages(2);

	CHECK_INT(cq_make(&r.w, &cq), 0);
	r.pd = pd_alloc(&r.w);
	r.cq = cq.handle;
	r.core = (struct ib_uverbs_ex_create_wq){
		.wq_type = IB_UVERBS_WQT_RQ, .user_handle = 0x99, .pd_handle = r.pd,
		.cq_handle = r.cq, .max_wr = 100, .max_sge = 1,
	};
	r.mlx5 = (struct mlx5_ib_create_wq){
		.buf_addr = (uintptr_t)memory, .db_addr = (uintptr_t)memory + WORLD_PAGE,
		.rq_wqe_count = 128, .rq_wqe_shift = 4, .user_index = 5,
	};
	return r;
}

static struct wq_rig rig_new(void)
{
	return rig_on(uv_world_new());
}

static int create(struct wq_rig *r)
{
	struct cmd c = cmd_write(EX(CREATE_WQ), &r->core, sizeof r->core, &r->reply,
				 sizeof r->reply);

	cmd_in(&c, UVERBS_ATTR_UHW_IN, &r->mlx5, sizeof r->mlx5);
	return cmd_run(&r->w, &c);
}

static uint32_t make(struct wq_rig *r)
{
	CHECK_INT(create(r), 0);
	return r->reply.wq_handle;
}

static int destroy(struct wq_rig *r, uint32_t handle)
{
	struct ib_uverbs_ex_destroy_wq in = { .wq_handle = handle };
	struct ib_uverbs_ex_destroy_wq_resp out = { 0 };
	int ret = cmd_write_run(&r->w, EX(DESTROY_WQ), &in, &out);

	if (!ret)
		CHECK_INT(out.response_length, sizeof out);
	return ret;
}

static int modify(struct wq_rig *r, struct ib_uverbs_ex_modify_wq in)
{
	struct mlx5_ib_modify_wq more = { 0 };
	struct cmd c = cmd_write(EX(MODIFY_WQ), &in, sizeof in, NULL, 0);

	cmd_in(&c, UVERBS_ATTR_UHW_IN, &more, sizeof more);
	return cmd_run(&r->w, &c);
}

static int state_set(struct wq_rig *r, uint32_t handle, uint32_t state)
{
	return modify(r, (struct ib_uverbs_ex_modify_wq){ .attr_mask = 1, .wq_handle = handle,
							  .wq_state = state });
}

/* --- queues --- */

Test(uv_wq, ioctl_answers_as_the_extended_command)
{
	struct wq_rig r = rig_new();
	struct cmd c = cmd_new(UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_CREATE);
	struct mlx5_ib_create_wq_resp mlx5_reply = { 0 };
	uint32_t max_wr = 0, max_sge = 0, wqn = 0, first = make(&r);

	CHECK_INT(r.reply.response_length, sizeof r.reply);
	CHECK_INT(r.reply.max_wr, 100);
	CHECK_INT(r.reply.max_sge, 1);
	cmd_obj(&c, UVERBS_ATTR_CREATE_WQ_HANDLE, 0);
	cmd_obj(&c, UVERBS_ATTR_CREATE_WQ_PD_HANDLE, r.pd);
	cmd_obj(&c, UVERBS_ATTR_CREATE_WQ_CQ_HANDLE, r.cq);
	cmd_u64(&c, UVERBS_ATTR_CREATE_WQ_USER_HANDLE, 0x98);
	cmd_u64(&c, UVERBS_ATTR_CREATE_WQ_TYPE, IB_UVERBS_WQT_RQ);
	cmd_obj(&c, UVERBS_ATTR_CREATE_WQ_EVENT_FD, (uint64_t)r.w.async_fd);
	cmd_u32(&c, UVERBS_ATTR_CREATE_WQ_MAX_WR, 100);
	cmd_u32(&c, UVERBS_ATTR_CREATE_WQ_MAX_SGE, 1);
	cmd_u32(&c, UVERBS_ATTR_CREATE_WQ_FLAGS, 0);
	cmd_out(&c, UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR, &max_wr, 4);
	cmd_out(&c, UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE, &max_sge, 4);
	cmd_out(&c, UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM, &wqn, 4);
	cmd_in(&c, UVERBS_ATTR_UHW_IN, &r.mlx5, sizeof r.mlx5);
	cmd_out(&c, UVERBS_ATTR_UHW_OUT, &mlx5_reply, sizeof mlx5_reply);
	CHECK_INT(cmd_run(&r.w, &c), 0);
	CHECK_INT(max_wr, 100);
	CHECK_INT(max_sge, 1);
	CHECK_INT(mlx5_reply.response_length, 8);
	cr_assert_neq(wqn, r.reply.wqn);
	CHECK_INT(r.w.dev->qpns.taken, 2);
	CHECK_INT(obj_destroy(&r.w, UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_DESTROY,
			      UVERBS_ATTR_DESTROY_WQ_HANDLE, (uint32_t)c.attr[0].data, 4), 0);
	CHECK_INT(destroy(&r, first), 0);
	CHECK_INT(r.w.dev->qpns.taken, 0);
	uv_world_end(&r.w);
}

Test(uv_wq, values_that_do_not_fit_are_refused)
{
	static const struct {
		struct ib_uverbs_ex_create_wq core;
		struct mlx5_ib_create_wq mlx5;
		int rc;
	} rows[] = {	/* added to what is right */
		{ { .comp_mask = 1 }, { 0 }, -EOPNOTSUPP },
		{ { .wq_type = 1 }, { 0 }, -EINVAL },
		{ { .max_wr = 8192 }, { 0 }, -EINVAL },
		{ { .create_flags = 4 }, { 0 }, -EOPNOTSUPP },
		{ { .create_flags = 8 }, { 0 }, -EOPNOTSUPP },
		{ { 0 }, { .rq_wqe_count = 1 }, -EINVAL },		/* 129 */
		{ { 0 }, { .rq_wqe_count = -128u }, -EINVAL },		/* 0 */
		{ { 0 }, { .rq_wqe_count = 16384 - 128 }, -EINVAL },
		{ { 0 }, { .rq_wqe_shift = -1u }, -EINVAL },		/* 8 bytes */
		{ { 0 }, { .rq_wqe_shift = 6 }, -EINVAL },		/* 1024 bytes */
		{ { 0 }, { .rq_wqe_shift = 60 }, -EINVAL },
		{ { 0 }, { .user_index = 0x1000000 }, -EINVAL },
		{ { 0 }, { .flags = 1 }, -EINVAL },
		{ { 0 }, { .comp_mask = 1 }, -EINVAL },	/* strides of nothing */
		{ { 0 }, { .comp_mask = 2 }, -EOPNOTSUPP },
		{ { 0 }, { .db_addr = 4 }, -EINVAL },
		{ { 0 }, { .buf_addr = 16 }, -EINVAL },
		{ { 0 }, { .buf_addr = 1ull << 50 }, -EFAULT },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct wq_rig r = rig_new();
		uint64_t before = world_why.made;
		int rc;

		r.core.comp_mask += rows[i].core.comp_mask;
		r.core.wq_type += rows[i].core.wq_type;
		r.core.max_wr += rows[i].core.max_wr;
		r.core.create_flags += rows[i].core.create_flags;
		r.mlx5.rq_wqe_count += rows[i].mlx5.rq_wqe_count;
		r.mlx5.rq_wqe_shift += rows[i].mlx5.rq_wqe_shift;
		r.mlx5.user_index += rows[i].mlx5.user_index;
		r.mlx5.flags += rows[i].mlx5.flags;
		r.mlx5.comp_mask += rows[i].mlx5.comp_mask;
		r.mlx5.db_addr += rows[i].mlx5.db_addr;
		r.mlx5.buf_addr += rows[i].mlx5.buf_addr;
		rc = create(&r);
		cr_assert(rc == rows[i].rc, "row %zu: %d", i, rc);
		CHECK_INT(world_why.made, before + 1);
		CHECK_INT(r.w.dev->qpns.taken, 0);
		uv_world_end(&r.w);
	}
}

Test(uv_wq, strides_within_limits)
{
	static const struct { uint32_t stride, strides, shift; int rc; } rows[] = {
		{ 6, 9, 5, 0 }, { 13, 16, 6, 0 }, { 5, 9, 5, -EINVAL }, { 14, 9, 5, -EINVAL },
		{ 6, 8, 5, -EINVAL }, { 6, 17, 5, -EINVAL }, { 6, 9, 4, -EINVAL },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct wq_rig r = rig_new();
		int rc;

		r.mlx5.comp_mask = MLX5_IB_CREATE_WQ_STRIDING_RQ;
		r.mlx5.single_stride_log_num_of_bytes = rows[i].stride;
		r.mlx5.single_wqe_log_num_of_strides = rows[i].strides;
		r.mlx5.rq_wqe_shift = rows[i].shift;
		r.mlx5.rq_wqe_count = 64;
		rc = create(&r);
		cr_assert(rc == rows[i].rc, "row %zu: %d", i, rc);
		uv_world_end(&r.w);
	}
}

Test(uv_wq, what_a_queue_uses_is_busy)
{
	struct wq_rig r = rig_new();
	uint32_t wq = make(&r);

	CHECK_REFUSED(cq_free(&r.w, r.cq), -EBUSY, WHY_CMD_BUSY);
	CHECK_REFUSED(pd_free(&r.w, r.pd), -EBUSY, WHY_CMD_BUSY);
	CHECK_INT(destroy(&r, wq), 0);
	CHECK_INT(cq_free(&r.w, r.cq), 0);
	CHECK_INT(pd_free(&r.w, r.pd), 0);
	uv_world_end(&r.w);
}

/* RESET 0, RDY 1, ERR 2: only from ERR there is no way to RDY. */
Test(uv_wq, every_pair_of_states)
{
	for (uint32_t from = 0; from < 3; from++)
		for (uint32_t to = 0; to < 4; to++) {
			struct wq_rig r = rig_new();
			uint32_t wq = make(&r);
			bool is_legal = to < 3 && !(from == 2 && to == 1);
			int rc;

			CHECK_INT(state_set(&r, wq, from), 0);
			rc = state_set(&r, wq, to);
			cr_assert(rc == (is_legal ? 0 : -EINVAL), "%u to %u: %d", from, to, rc);
			uv_world_end(&r.w);
		}
}

Test(uv_wq, modify_believes_nothing)
{
	static const struct {
		uint32_t mask, state, current, flags_mask;
		int rc;
	} rows[] = {		/* of a queue in RDY */
		{ 0, 1, 1, 0, -EINVAL },
		{ 8, 1, 1, 0, -EINVAL },
		{ 3, 2, 0, 0, -EINVAL },	/* it is not in RESET */
		{ 3, 2, 3, 0, -EINVAL },
		{ 2, 9, 1, 0, 0 },		/* right about the state, and wants none */
		{ 4, 9, 9, 0, 0 },
		{ 4, 9, 9, 1, 0 },		/* the tag stays in */
		{ 4, 9, 9, 2, -EOPNOTSUPP },
		{ 7, 2, 1, 8, -EOPNOTSUPP },
		{ 1, 1, 9, 1, 0 },
		{ 3, 2, 1, 0, 0 },
	};
	struct wq_rig r = rig_new();
	uint32_t wq = make(&r);

	CHECK_INT(state_set(&r, wq, 1), 0);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		int rc = modify(&r, (struct ib_uverbs_ex_modify_wq){
			.attr_mask = rows[i].mask, .wq_handle = wq, .wq_state = rows[i].state,
			.curr_wq_state = rows[i].current, .flags_mask = rows[i].flags_mask });

		cr_assert(rc == rows[i].rc, "row %zu: %d", i, rc);
	}
	uv_world_end(&r.w);
}

/* --- tables --- */

struct table {
	struct { uint32_t comp_mask, log, wq[4100]; } in;
	struct ib_uverbs_ex_create_rwq_ind_table_resp out;
};

static int table_create(struct wq_rig *r, struct table *t, size_t bytes)
{
	struct cmd c = cmd_write(EX(CREATE_RWQ_IND_TBL), &t->in, bytes, &t->out, sizeof t->out);

	t->out.ind_tbl_handle = OTHER;
	return cmd_run(&r->w, &c);
}

static int table_destroy(struct wq_rig *r, uint32_t handle)
{
	return obj_destroy(&r->w, UVERBS_OBJECT_RWQ_IND_TBL, UVERBS_METHOD_RWQ_IND_TBL_DESTROY,
			   UVERBS_ATTR_DESTROY_RWQ_IND_TBL_HANDLE, handle, 0);
}

Test(uv_wq, table_keeps_its_queues)
{
	static struct table t;
	struct wq_rig r = rig_new();
	uint32_t a = make(&r), b = make(&r);

	t.in.log = 2;
	t.in.wq[0] = t.in.wq[1] = t.in.wq[2] = a;
	t.in.wq[3] = b;
	CHECK_INT(table_create(&r, &t, 8 + 4 * 4), 0);
	CHECK_INT(t.out.response_length, 16);
	cr_assert_neq(t.out.ind_tbl_num, 0);
	CHECK_REFUSED(destroy(&r, a), -EBUSY, WHY_CMD_BUSY);
	CHECK_REFUSED(destroy(&r, b), -EBUSY, WHY_CMD_BUSY);
	CHECK_INT(table_destroy(&r, t.out.ind_tbl_handle), 0);
	CHECK_REFUSED(table_destroy(&r, t.out.ind_tbl_handle), -ENOENT, WHY_CMD_HANDLE);
	CHECK_INT(destroy(&r, a), 0);
	CHECK_INT(destroy(&r, b), 0);
	uv_world_end(&r.w);
}

Test(uv_wq, table_of_any_size_up_to_2048)
{
	static struct table t;
	struct wq_rig r = rig_new();
	uint32_t wq = make(&r);

	for (unsigned i = 0; i < 4100; i++)
		t.in.wq[i] = wq;
	for (t.in.log = 0; t.in.log <= 11; t.in.log++) {
		size_t bytes = 8 + (4u << t.in.log);

		/* the library rounds up to 8 bytes */
		if (t.in.log == 0)
			t.in.wq[1] = 0, bytes = 16;
		else
			t.in.wq[1] = wq;
		CHECK_INT(table_create(&r, &t, bytes), 0);
		CHECK_INT(table_destroy(&r, t.out.ind_tbl_handle), 0);
	}
	CHECK_REFUSED(table_create(&r, &t, 8 + (4u << 12)), -EINVAL, WHY_CMD_VALUE);
	t.in.log = 31;
	CHECK_REFUSED(table_create(&r, &t, 8 + (4u << 12)), -EINVAL, WHY_CMD_VALUE);
	uv_world_end(&r.w);
}

Test(uv_wq, list_of_a_table_is_checked)
{
	static struct table t;
	struct wq_rig r = rig_new();
	uint32_t wq = make(&r);

	t.in.log = 1;
	t.in.wq[0] = t.in.wq[1] = wq;
	CHECK_REFUSED(table_create(&r, &t, 8), -ENOSPC, WHY_CMD_ATTRIBUTES);
	CHECK_REFUSED(table_create(&r, &t, 15), -ENOSPC, WHY_CMD_ATTRIBUTES);
	t.in.wq[3] = 1;
	CHECK_REFUSED(table_create(&r, &t, 24), -EOPNOTSUPP, WHY_CMD_UNSUPPORTED);
	t.in.wq[1] = OTHER;
	CHECK_REFUSED(table_create(&r, &t, 16), -ENOENT, WHY_CMD_HANDLE);
	t.in.wq[1] = r.cq;
	CHECK_REFUSED(table_create(&r, &t, 16), -EINVAL, WHY_CMD_HANDLE);
	t.in.wq[1] = wq;
	t.in.comp_mask = 1;
	CHECK_REFUSED(table_create(&r, &t, 16), -EOPNOTSUPP, WHY_CMD_UNSUPPORTED);
	CHECK_INT(destroy(&r, wq), 0);		/* nobody kept it */
	uv_world_end(&r.w);
}

Test(uv_wq, an_infiniband_port_has_no_queues)
{
	struct uv_world w = uv_world_bare("connectx-6");
	struct mlx5_ib_alloc_ucontext_req_v2 request = context_request();
	struct mlx5_ib_alloc_ucontext_resp reply;
	static struct table t;
	struct wq_rig r;
	uint32_t uar;

	CHECK_INT(context_get(&w, &request, sizeof request, &reply), 0);
	CHECK_INT(uar_alloc(&w, 0, &uar), 0);
	r = rig_on(w);
	CHECK_REFUSED(create(&r), -EOPNOTSUPP, WHY_CMD_UNSUPPORTED);
	CHECK_REFUSED(table_create(&r, &t, 16), -EOPNOTSUPP, WHY_CMD_UNSUPPORTED);
	uv_world_end(&r.w);
}

/* --- QPs --- */

static struct qp_ask qp_over_table(struct wq_rig *r, struct table *t, uint64_t type)
{
	struct qp_ask qp = qp_ask_new(&r->w, r->pd, r->cq);

	qp.type = type;
	t->in.log = 0;
	t->in.wq[0] = make(r);
	CHECK_INT(table_create(r, t, 16), 0);
	return qp;
}

static int qp_over_table_create(struct wq_rig *r, struct table *t, struct qp_ask *qp)
{
	struct cmd c = qp_cmd(qp);

	cmd_obj(&c, UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE, t->out.ind_tbl_handle);
	return cmd_run(&r->w, &c);
}

Test(uv_wq, raw_packet_qp_can_be_denied)
{
	static struct table t;
	struct wq_rig r = rig_new();
	struct qp_ask qp = qp_over_table(&r, &t, IB_UVERBS_QPT_RAW_PACKET);

	r.w.dev->options.net_raw = NET_RAW_DENY;
	CHECK_REFUSED(qp_make(&r.w, &qp), -EPERM, WHY_CMD_CAPABILITY);
	CHECK_REFUSED(qp_over_table_create(&r, &t, &qp), -EPERM, WHY_CMD_CAPABILITY);
	uv_world_end(&r.w);
}

/* --- QPs that spread frames --- */

enum { IPV4 = 3, IPV6 = 12, TCP = 0x30, UDP = 0xc0 };

static struct mlx5_ib_create_qp_rss rss_ask(uint64_t fields)
{
	return (struct mlx5_ib_create_qp_rss){
		.rx_hash_fields_mask = fields, .rx_hash_function = MLX5_RX_HASH_FUNC_TOEPLITZ,
		.rx_key_len = 40,
	};
}

/* A QP over a table of 2^@log places of one queue. */
static int spread(struct wq_rig *r, uint32_t log, const struct mlx5_ib_create_qp_rss *rss,
		  uint32_t *handle)
{
	static struct table t;
	struct qp_ask qp = { .pd = r->pd };
	struct cmd c = cmd_new(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);
	int ret;

	t.in.log = log;
	t.in.wq[0] = make(r);
	t.in.wq[1] = log ? t.in.wq[0] : 0;
	CHECK_INT(table_create(r, &t, 16), 0);
	cmd_obj(&c, UVERBS_ATTR_CREATE_QP_HANDLE, 0);
	cmd_obj(&c, UVERBS_ATTR_CREATE_QP_PD_HANDLE, r->pd);
	cmd_obj(&c, UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE, t.out.ind_tbl_handle);
	cmd_u64(&c, UVERBS_ATTR_CREATE_QP_TYPE, IB_UVERBS_QPT_RAW_PACKET);
	cmd_u64(&c, UVERBS_ATTR_CREATE_QP_USER_HANDLE, 0x5678);
	cmd_in(&c, UVERBS_ATTR_CREATE_QP_CAP, &qp.cap, sizeof qp.cap);
	cmd_out(&c, UVERBS_ATTR_CREATE_QP_RESP_CAP, &qp.cap, sizeof qp.cap);
	cmd_out(&c, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &qp.qpn, 4);
	cmd_in(&c, UVERBS_ATTR_UHW_IN, rss, sizeof *rss);
	cmd_out(&c, UVERBS_ATTR_UHW_OUT, &qp.reply, sizeof qp.reply);
	ret = cmd_run(&r->w, &c);
	*handle = (uint32_t)c.attr[0].data;
	return ret;
}

Test(uv_wq, qp_over_a_table_keeps_it)
{
	struct mlx5_ib_create_qp_rss rss = rss_ask(IPV4 | TCP);
	struct wq_rig r = rig_new();
	uint32_t qp;

	CHECK_INT(spread(&r, 1, &rss, &qp), 0);
	CHECK_REFUSED(pd_free(&r.w, r.pd), -EBUSY, WHY_CMD_BUSY);
	CHECK_INT(r.w.dev->qpns.taken, 2);
	CHECK_INT(qp_free(&r.w, qp), 0);
	CHECK_INT(r.w.dev->qpns.taken, 1);
	CHECK_INT(r.w.dev->wqns.taken, 1);
	uv_world_end(&r.w);
}

/* Frames come to it by rules, or not at all. */
Test(uv_wq, qp_over_a_table_may_have_rules)
{
	struct mlx5_ib_create_qp_rss rss = rss_ask(IPV4 | TCP);
	struct ib_uverbs_create_flow in = { .flow_attr.port = 1 };
	struct ib_uverbs_create_flow_resp out;
	struct wq_rig r = rig_new();
	struct cmd c;
	uint32_t qp;

	CHECK_INT(spread(&r, 1, &rss, &qp), 0);
	in.qp_handle = qp;
	c = cmd_write(EX(CREATE_FLOW), &in, 24, &out, sizeof out);
	CHECK_INT(cmd_run(&r.w, &c), 0);
	CHECK_REFUSED(qp_free(&r.w, qp), -EBUSY, WHY_CMD_BUSY);
	CHECK_INT(obj_destroy(&r.w, UVERBS_OBJECT_FLOW, UVERBS_METHOD_FLOW_DESTROY,
			      UVERBS_ATTR_DESTROY_FLOW_HANDLE, out.flow_handle, 0), 0);
	CHECK_INT(qp_free(&r.w, qp), 0);
	uv_world_end(&r.w);
}

Test(uv_wq, which_fields_go_together)
{
	static const struct { uint32_t log; uint64_t fields; int rc; } rows[] = {
		{ 1, IPV4, 0 }, { 1, IPV6, 0 }, { 1, IPV4 | TCP, 0 }, { 1, IPV6 | UDP, 0 },
		{ 1, 1, 0 }, { 1, TCP, 0 }, { 0, 0, 0 },
		{ 1, 0, -EINVAL }, { 1, 1 | 4, -EINVAL }, { 1, IPV4 | 8, -EINVAL },
		{ 1, IPV4 | 0x10 | 0x40, -EINVAL }, { 1, TCP | UDP, -EINVAL },
		{ 1, IPV4 | 0x100, -EOPNOTSUPP }, { 1, IPV4 | 1ull << 32, -EOPNOTSUPP },
		{ 1, IPV4 | 1ull << 31, -EOPNOTSUPP },	/* inner headers, and no tunnels */
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct mlx5_ib_create_qp_rss rss = rss_ask(rows[i].fields);
		struct wq_rig r = rig_new();
		uint32_t qp;
		int rc = spread(&r, rows[i].log, &rss, &qp);

		cr_assert(rc == rows[i].rc, "row %zu: %d", i, rc);
		uv_world_end(&r.w);
	}
}

Test(uv_wq, what_is_no_hash_is_refused)
{
	static const struct { struct mlx5_ib_create_qp_rss rss; int rc; } rows[] = {
		{ { .rx_hash_function = 1 }, -EOPNOTSUPP },	/* xor-ed to what is right */
		{ { .rx_key_len = 1 }, -EINVAL },
		{ { .comp_mask = 1 }, -EOPNOTSUPP },
		{ { .flags = MLX5_QP_FLAG_SIGNATURE }, -EOPNOTSUPP },
		{ { .flags = MLX5_QP_FLAG_TUNNEL_OFFLOADS }, 0 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct mlx5_ib_create_qp_rss rss = rss_ask(IPV4);
		struct wq_rig r = rig_new();
		uint32_t qp;
		int rc;

		rss.rx_hash_function ^= rows[i].rss.rx_hash_function;
		rss.rx_key_len ^= rows[i].rss.rx_key_len;
		rss.comp_mask = rows[i].rss.comp_mask;
		rss.flags = rows[i].rss.flags;
		rc = spread(&r, 1, &rss, &qp);
		cr_assert(rc == rows[i].rc, "row %zu: %d", i, rc);
		uv_world_end(&r.w);
	}
}

/* It has no queues of its own. */
Test(uv_wq, qp_over_a_table_has_no_cq)
{
	static struct table t;
	struct wq_rig r = rig_new();
	struct qp_ask qp = qp_over_table(&r, &t, IB_UVERBS_QPT_RAW_PACKET);

	CHECK_REFUSED(qp_over_table_create(&r, &t, &qp), -EINVAL, WHY_CMD_ATTRIBUTES);
	uv_world_end(&r.w);
}

Test(uv_wq, raw_packet_qp_has_its_rings_apart)
{
	struct wq_rig r = rig_new();
	struct qp_ask qp = qp_ask_new(&r.w, r.pd, r.cq);
	uint64_t sends = (uintptr_t)world_pages(1);
	struct emu_qp *made;

	qp.type = IB_UVERBS_QPT_RAW_PACKET;
	qp.mlx5.sq_buf_addr = sends;
	qp.flags = IB_UVERBS_QP_CREATE_CVLAN_STRIPPING | IB_UVERBS_QP_CREATE_SCATTER_FCS;
	CHECK_INT(qp_make(&r.w, &qp), 0);
	made = qp_find(r.w.dev, qp.qpn);
	cr_assert(made && made->type == QPT_RAW);
	CHECK_INT(made->sq_addr, sends);
	CHECK_INT(made->rq_addr, qp.mlx5.buf_addr);
	cr_assert(made->frames.strips_vlan && made->frames.scatters_fcs);
	CHECK_INT(qp_free(&r.w, qp.handle), 0);
	qp.type = IB_UVERBS_QPT_RC;		/* nobody else has these */
	CHECK_REFUSED(qp_make(&r.w, &qp), -EINVAL, WHY_CMD_VALUE);
	uv_world_end(&r.w);
}

Test(uv_wq, connected_qp_has_no_table)
{
	static struct table t;
	struct wq_rig r = rig_new();
	struct qp_ask qp = qp_over_table(&r, &t, IB_UVERBS_QPT_RC);

	CHECK_REFUSED(qp_over_table_create(&r, &t, &qp), -EINVAL, WHY_CMD_VALUE);
	CHECK_INT(qp_make(&r.w, &qp), 0);
	uv_world_end(&r.w);
}

Test(uv_wq, capabilities_speak_of_queues)
{
	struct uv_world w = uv_world_new();
	struct ib_uverbs_ex_query_device in = { 0 };
	struct ib_uverbs_ex_query_device_resp out;
	struct mlx5_ib_query_device_resp more = { 0 };
	struct cmd c = cmd_write(EX(QUERY_DEVICE), &in, sizeof in, &out, sizeof out);

	cmd_out(&c, UVERBS_ATTR_UHW_OUT, &more, sizeof more);
	CHECK_INT(cmd_run(&w, &c), 0);
	cr_assert(out.max_wq_type_rq);
	CHECK_INT(out.rss_caps.supported_qpts, 1 << IB_UVERBS_QPT_RAW_PACKET);
	cr_assert(out.rss_caps.max_rwq_indirection_tables);
	CHECK_INT(out.rss_caps.max_rwq_indirection_table_size, 1 << RWQ_TABLE_LOG_MAX);
	CHECK_INT(out.raw_packet_caps, 7);
	CHECK_INT(more.rss_caps.rx_hash_fields_mask, 0x800000ff);
	CHECK_INT(more.rss_caps.rx_hash_function, MLX5_RX_HASH_FUNC_TOEPLITZ);
	CHECK_INT(more.tso_caps.max_tso, TSO_BYTES_MAX);
	uv_world_end(&w);
}
