/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The commands of XRC: domains, queues, both halves of a connection, target QPs opened again.
 *
 * What packets do is in t_xrc.c.
 */
#include <fcntl.h>
#include "emu/obj/srq.h"
#include "emu/uverbs/file.h"
#include "tests/unit/uv_world.h"

static int xrcd_open_by(const struct uv_world *w, int fd, int oflags, uint32_t *handle)
{
	struct ib_uverbs_open_xrcd in = { .fd = (uint32_t)fd, .oflags = (uint32_t)oflags };
	struct ib_uverbs_open_xrcd_resp out = { .xrcd_handle = OTHER };
	int ret = cmd_write_run(w, IB_USER_VERBS_CMD_OPEN_XRCD, &in, &out);

	*handle = out.xrcd_handle;
	return ret;
}

static uint32_t xrcd_new(const struct uv_world *w)
{
	uint32_t handle;

	CHECK_INT(xrcd_open_by(w, -1, O_CREAT, &handle), 0);
	return handle;
}

static int xrcd_free(const struct uv_world *w, uint32_t handle)
{
	return obj_destroy(w, UVERBS_OBJECT_XRCD, UVERBS_METHOD_XRCD_DESTROY,
			   UVERBS_ATTR_DESTROY_XRCD_HANDLE, handle, 0);
}

static struct qp_ask qp_ask_of(const struct uv_world *w, uint64_t type)
{
	struct qp_ask ask = qp_ask_new(w, OTHER, OTHER);

	ask.type = type;
	ask.mlx5.uidx = 5;
	return ask;
}

/* The ioctl with these objects only; OTHER: none. */
static int qp_make_of(const struct uv_world *w, struct qp_ask *ask, uint32_t xrcd, uint32_t pd,
		      uint32_t send_cq)
{
	struct cmd c = cmd_new(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);
	int ret;

	cmd_obj(&c, UVERBS_ATTR_CREATE_QP_HANDLE, 0);
	if (xrcd != OTHER)
		cmd_obj(&c, UVERBS_ATTR_CREATE_QP_XRCD_HANDLE, xrcd);
	if (pd != OTHER)
		cmd_obj(&c, UVERBS_ATTR_CREATE_QP_PD_HANDLE, pd);
	if (send_cq != OTHER)
		cmd_obj(&c, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, send_cq);
	cmd_u64(&c, UVERBS_ATTR_CREATE_QP_TYPE, ask->type);
	cmd_u64(&c, UVERBS_ATTR_CREATE_QP_USER_HANDLE, 0x5678);
	cmd_in(&c, UVERBS_ATTR_CREATE_QP_CAP, &ask->cap, sizeof ask->cap);
	cmd_out(&c, UVERBS_ATTR_CREATE_QP_RESP_CAP, &ask->cap, sizeof ask->cap);
	cmd_out(&c, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &ask->qpn, 4);
	cmd_in(&c, UVERBS_ATTR_UHW_IN, &ask->mlx5, sizeof ask->mlx5);
	cmd_out(&c, UVERBS_ATTR_UHW_OUT, &ask->reply, sizeof ask->reply);
	ret = cmd_run(w, &c);
	ask->handle = (uint32_t)c.attr[0].data;
	return ret;
}

static uint32_t cq_new(const struct uv_world *w)
{
	struct cq_ask ask = cq_ask_new(w);

	CHECK_INT(cq_make(w, &ask), 0);
	return ask.handle;
}

static struct qp_ask target_new(const struct uv_world *w, uint32_t xrcd)
{
	struct qp_ask ask = qp_ask_of(w, IB_UVERBS_QPT_XRC_TGT);

	CHECK_INT(qp_make_of(w, &ask, xrcd, OTHER, OTHER), 0);
	return ask;
}

static int qp_open_by(const struct uv_world *w, uint32_t xrcd, uint32_t qpn, uint8_t type,
		      uint32_t *handle)
{
	struct ib_uverbs_open_qp in = { .user_handle = 0x9abc, .pd_handle = xrcd, .qpn = qpn,
					.qp_type = type };
	struct ib_uverbs_create_qp_resp out = { .qp_handle = OTHER };
	int ret = cmd_write_run(w, IB_USER_VERBS_CMD_OPEN_QP, &in, &out);

	*handle = out.qp_handle;
	if (!ret)
		CHECK_INT(out.qpn, qpn);
	return ret;
}

/* --- domains --- */

Test(uv_xrc, domains_come_and_go)
{
	struct uv_world w = uv_world_new();
	uint32_t a, b;
	int fd = memfd_create("domain", 0);
	struct ib_uverbs_close_xrcd close_in;
	struct cmd c;

	CHECK_REFUSED(xrcd_open_by(&w, fd, 0, &a), -EAGAIN, WHY_XRCD_OPEN);
	CHECK_REFUSED(xrcd_open_by(&w, 12345, O_CREAT, &a), -EBADF, WHY_CMD_HANDLE);
	CHECK_REFUSED(xrcd_open_by(&w, -1, 0, &a), -EINVAL, WHY_XRCD_OPEN);
	CHECK_INT(xrcd_open_by(&w, fd, O_CREAT | O_EXCL, &a), 0);
	CHECK_REFUSED(xrcd_open_by(&w, fd, O_CREAT | O_EXCL, &b), -EINVAL, WHY_XRCD_OPEN);
	CHECK_INT(xrcd_open_by(&w, fd, 0, &b), 0);
	CHECK_INT(xrcd_free(&w, a), 0);
	CHECK_REFUSED(xrcd_free(&w, a), -ENOENT, WHY_CMD_HANDLE);
	close_in.xrcd_handle = b;
	c = cmd_write(IB_USER_VERBS_CMD_CLOSE_XRCD, &close_in, sizeof close_in, NULL, 0);
	CHECK_INT(cmd_run(&w, &c), 0);
	cr_assert_null(w.dev->xrc_domains);
	close(fd);
	uv_world_end(&w);
}

/* --- QPs --- */

Test(uv_xrc, an_initiator_has_a_pd_and_a_cq_for_sends)
{
	struct uv_world w = uv_world_new();
	uint32_t pd = pd_alloc(&w), cq = cq_new(&w);
	struct qp_ask ask = qp_ask_of(&w, IB_UVERBS_QPT_XRC_INI);
	struct emu_qp *qp;

	CHECK_REFUSED(qp_make_of(&w, &ask, OTHER, OTHER, cq), -EINVAL, WHY_CMD_ATTRIBUTES);
	CHECK_REFUSED(qp_make_of(&w, &ask, OTHER, pd, OTHER), -EINVAL, WHY_CMD_ATTRIBUTES);
	CHECK_INT(qp_make_of(&w, &ask, OTHER, pd, cq), 0);
	qp = qp_find(w.dev, ask.qpn);
	CHECK_INT(qp->type, QPT_XRC_INI);
	cr_assert_null(qp->recv_cq);
	CHECK_INT(qp->rq_count, 0);
	/* libmlx5 left room for a receive ring */
	CHECK_INT(qp->sq_addr, ask.mlx5.buf_addr + 32 * 32);
	CHECK_INT(qp_free(&w, ask.handle), 0);
	uv_world_end(&w);
}

Test(uv_xrc, a_target_has_a_domain_and_no_rings)
{
	struct uv_world w = uv_world_new();
	uint32_t xrcd = xrcd_new(&w);
	struct qp_ask ask = qp_ask_of(&w, IB_UVERBS_QPT_XRC_TGT);
	struct emu_qp *qp;

	ask.mlx5.buf_addr = 0x10;		/* not looked at */
	ask.mlx5.db_addr = 0x13;
	CHECK_REFUSED(qp_make_of(&w, &ask, OTHER, pd_alloc(&w), cq_new(&w)), -EINVAL,
		      WHY_CMD_ATTRIBUTES);
	CHECK_INT(qp_make_of(&w, &ask, xrcd, OTHER, OTHER), 0);
	qp = qp_find(w.dev, ask.qpn);
	CHECK_INT(qp->type, QPT_XRC_TGT);
	CHECK_INT(qp->sq_blocks + qp->rq_count, 0);
	CHECK_REFUSED(xrcd_free(&w, xrcd), -EBUSY, WHY_CMD_BUSY);
	CHECK_INT(qp_free(&w, ask.handle), 0);
	CHECK_INT(w.dev->qpns.taken, 0);
	CHECK_INT(xrcd_free(&w, xrcd), 0);
	uv_world_end(&w);
}

Test(uv_xrc, the_older_command_reads_the_domain_where_others_have_a_pd)
{
	struct uv_world w = uv_world_new();
	struct qp_ask ask = qp_ask_of(&w, IB_UVERBS_QPT_XRC_TGT);
	struct ib_uverbs_create_qp in = { .pd_handle = xrcd_new(&w), .send_cq_handle = OTHER,
		.recv_cq_handle = OTHER, .srq_handle = OTHER, .is_srq = 1,
		.qp_type = IB_UVERBS_QPT_XRC_TGT };
	struct ib_uverbs_create_qp_resp out;
	struct cmd c = cmd_write(IB_USER_VERBS_CMD_CREATE_QP, &in, sizeof in, &out, sizeof out);

	cmd_in(&c, UVERBS_ATTR_UHW_IN, &ask.mlx5, sizeof ask.mlx5);
	CHECK_INT(cmd_run(&w, &c), 0);
	CHECK_INT(qp_find(w.dev, out.qpn)->type, QPT_XRC_TGT);
	in.pd_handle = pd_alloc(&w);
	CHECK_REFUSED(cmd_run(&w, &c), -EINVAL, WHY_CMD_HANDLE);
	in.send_cq_handle = cq_new(&w);
	in.qp_type = IB_UVERBS_QPT_XRC_INI;
	CHECK_INT(cmd_run(&w, &c), 0);
	CHECK_INT(qp_find(w.dev, out.qpn)->type, QPT_XRC_INI);
	uv_world_end(&w);
}

Test(uv_xrc, a_target_lives_as_long_as_any_handle)
{
	struct uv_world w = uv_world_new();
	uint32_t xrcd = xrcd_new(&w), other = xrcd_new(&w), again, none;
	struct qp_ask ask = target_new(&w, xrcd);

	CHECK_REFUSED(qp_open_by(&w, other, ask.qpn, IB_UVERBS_QPT_XRC_TGT, &none), -EINVAL,
		      WHY_CMD_VALUE);
	CHECK_REFUSED(qp_open_by(&w, xrcd, ask.qpn, IB_UVERBS_QPT_RC, &none), -EINVAL,
		      WHY_CMD_VALUE);
	CHECK_REFUSED(qp_open_by(&w, xrcd, ask.qpn + 1, IB_UVERBS_QPT_XRC_TGT, &none), -EINVAL,
		      WHY_CMD_VALUE);
	CHECK_INT(qp_open_by(&w, xrcd, ask.qpn, IB_UVERBS_QPT_XRC_TGT, &again), 0);
	CHECK_INT(qp_free(&w, ask.handle), 0);
	CHECK_REFUSED(qp_free(&w, ask.handle), -ENOENT, WHY_CMD_HANDLE);
	cr_assert(qp_find(w.dev, ask.qpn));
	CHECK_REFUSED(xrcd_free(&w, xrcd), -EBUSY, WHY_CMD_BUSY);
	CHECK_INT(qp_free(&w, again), 0);
	cr_assert_null(qp_find(w.dev, ask.qpn));
	CHECK_INT(xrcd_free(&w, xrcd), 0);
	uv_world_end(&w);
}

Test(uv_xrc, a_file_that_closes_leaves_the_target_to_others)
{
	struct uv_world w = uv_world_new(), second = w;
	struct mlx5_ib_alloc_ucontext_req_v2 request = context_request();
	struct mlx5_ib_alloc_ucontext_resp reply;
	int fd = memfd_create("domain", 0);
	uint32_t xrcd, again;
	struct qp_ask ask;

	CHECK_INT(uv_file_open(w.dev, &second.file), 0);
	CHECK_INT(context_get(&second, &request, sizeof request, &reply), 0);
	CHECK_INT(xrcd_open_by(&second, fd, O_CREAT, &xrcd), 0);
	CHECK_INT(uar_alloc(&second, MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC, &again), 0);
	ask = target_new(&second, xrcd);
	CHECK_INT(xrcd_open_by(&w, fd, 0, &xrcd), 0);
	CHECK_INT(qp_open_by(&w, xrcd, ask.qpn, IB_UVERBS_QPT_XRC_TGT, &again), 0);
	uv_file_close(second.file);
	cr_assert(qp_find(w.dev, ask.qpn));
	close(fd);
	uv_world_end(&w);
	cr_assert_null(w.dev->xrc_domains);
}

/* Programs give both halves the same mask. */
Test(uv_xrc, attributes_of_the_other_half_are_ignored)
{
	struct uv_world w = uv_world_new();
	uint32_t pd = pd_alloc(&w), cq = cq_new(&w);
	struct qp_ask halves[2] = { qp_ask_of(&w, IB_UVERBS_QPT_XRC_INI),
				    target_new(&w, xrcd_new(&w)) };

	CHECK_INT(qp_make_of(&w, &halves[0], OTHER, pd, cq), 0);
	for (int i = 0; i < 2; i++) {
		struct ib_uverbs_modify_qp in = {
			.qp_handle = halves[i].handle, .qp_state = QP_INIT, .port_num = 1,
			.attr_mask = A_STATE | A_PKEY | A_PORT | A_ACCESS, .path_mtu = 3,
			.retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 12,
			.dest = { .is_global = 1, .port_num = 1, .sgid_index = 2 },
		};
		struct cmd c = cmd_write(IB_USER_VERBS_CMD_MODIFY_QP, &in, sizeof in, NULL, 0);

		memcpy(in.dest.dgid, w.dev->gid[2].raw, 16);
		CHECK_INT(cmd_run(&w, &c), 0);
		in.qp_state = QP_RTR;
		in.attr_mask = A_STATE | A_AV | A_MTU | A_DEST_QPN | A_RQ_PSN | A_MAX_DEST_RD |
			       A_MIN_RNR;
		CHECK_INT(cmd_run(&w, &c), 0);
		in.qp_state = QP_RTS;
		in.attr_mask = A_STATE | A_TIMEOUT | A_RETRY | A_RNR | A_SQ_PSN | A_MAX_RD;
		CHECK_INT(cmd_run(&w, &c), 0);
		in.attr_mask = A_QKEY;
		CHECK_REFUSED(cmd_run(&w, &c), -EINVAL, WHY_MODIFY_MASK);
	}
	CHECK_INT(qp_find(w.dev, halves[1].qpn)->attr.retry_cnt, 0);
	uv_world_end(&w);
}

/* --- queues --- */

struct srq_ask {
	uint32_t pd, xrcd, cq;		/* OTHER: not given */
	struct mlx5_ib_create_srq mlx5;
	uint32_t handle, srqn;
};

static int srq_make(const struct uv_world *w, struct srq_ask *ask)
{
	struct cmd c = cmd_new(UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE);
	uint32_t max[2];
	int ret;

	cmd_obj(&c, UVERBS_ATTR_CREATE_SRQ_HANDLE, 0);
	cmd_u64(&c, UVERBS_ATTR_CREATE_SRQ_TYPE, IB_UVERBS_SRQT_XRC);
	cmd_u64(&c, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, 1);
	cmd_obj(&c, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, ask->pd);
	if (ask->xrcd != OTHER)
		cmd_obj(&c, UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE, ask->xrcd);
	if (ask->cq != OTHER)
		cmd_obj(&c, UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE, ask->cq);
	cmd_u32(&c, UVERBS_ATTR_CREATE_SRQ_MAX_WR, 15);
	cmd_u32(&c, UVERBS_ATTR_CREATE_SRQ_MAX_SGE, 1);
	cmd_u32(&c, UVERBS_ATTR_CREATE_SRQ_LIMIT, 0);
	cmd_out(&c, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, &max[0], 4);
	cmd_out(&c, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, &max[1], 4);
	cmd_out(&c, UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, &ask->srqn, 4);
	cmd_in(&c, UVERBS_ATTR_UHW_IN, &ask->mlx5, sizeof ask->mlx5);
	ret = cmd_run(w, &c);
	ask->handle = (uint32_t)c.attr[0].data;
	return ret;
}

static struct srq_ask srq_ask_new(const struct uv_world *w)
{
	uint8_t *memory = world_pages(2);

	return (struct srq_ask){ .pd = pd_alloc(w), .xrcd = xrcd_new(w), .cq = cq_new(w),
		.mlx5 = { .buf_addr = (uintptr_t)memory,
			  .db_addr = (uintptr_t)memory + WORLD_PAGE, .uidx = 7 } };
}

static struct emu_srq *srq_of(const struct uv_world *w, uint32_t handle)
{
	struct emu_obj *obj = NULL;

	CHECK_INT(file_handle_find(w->file, handle, OBJ_SRQ, &obj), 0);
	return (struct emu_srq *)obj;
}

Test(uv_xrc, a_queue_has_its_own_cq_and_user_index)
{
	struct uv_world w = uv_world_new();
	struct srq_ask ask = srq_ask_new(&w);
	const struct emu_srq *srq;

	CHECK_INT(srq_make(&w, &ask), 0);
	srq = srq_of(&w, ask.handle);
	CHECK_INT(srq->type, SRQ_XRC);
	CHECK_INT(srq->user_index, 7);
	cr_assert(srq->names_itself);
	cr_assert_not_null(srq->cq);
	cr_assert_eq(srq_find_xrc(w.dev, ask.srqn, srq->xrcd->domain), srq);
	CHECK_REFUSED(cq_free(&w, ask.cq), -EBUSY, WHY_CMD_BUSY);
	CHECK_REFUSED(xrcd_free(&w, ask.xrcd), -EBUSY, WHY_CMD_BUSY);
	uv_world_end(&w);
}

Test(uv_xrc, a_queue_needs_domain_cq_and_user_index)
{
	struct uv_world w = uv_world_new();
	struct srq_ask good = srq_ask_new(&w), bad = good;

	bad.xrcd = OTHER;
	CHECK_REFUSED(srq_make(&w, &bad), -EINVAL, WHY_CMD_ATTRIBUTES);
	bad = good;
	bad.cq = OTHER;
	CHECK_REFUSED(srq_make(&w, &bad), -EINVAL, WHY_CMD_ATTRIBUTES);
	bad = good;
	bad.mlx5.uidx = 0xffffff;
	CHECK_REFUSED(srq_make(&w, &bad), -EINVAL, WHY_CMD_VALUE);
	w.file->cqe_version = 0;
	CHECK_INT(srq_make(&w, &bad), 0);
	CHECK_INT(srq_of(&w, bad.handle)->user_index, bad.srqn);
	uv_world_end(&w);
}

Test(uv_xrc, the_older_command_makes_the_same_queue)
{
	struct uv_world w = uv_world_new();
	struct srq_ask ask = srq_ask_new(&w);
	struct ib_uverbs_create_xsrq in = { .pd_handle = ask.pd, .xrcd_handle = ask.xrcd,
		.cq_handle = ask.cq, .srq_type = IB_UVERBS_SRQT_XRC, .max_wr = 15, .max_sge = 1 };
	struct ib_uverbs_create_srq_resp out = { 0 };
	struct cmd c = cmd_write(IB_USER_VERBS_CMD_CREATE_XSRQ, &in, sizeof in, &out, sizeof out);

	cmd_in(&c, UVERBS_ATTR_UHW_IN, &ask.mlx5, sizeof ask.mlx5);
	CHECK_INT(cmd_run(&w, &c), 0);
	CHECK_INT(srq_of(&w, out.srq_handle)->type, SRQ_XRC);
	CHECK_INT(srq_of(&w, out.srq_handle)->srqn, out.srqn);
	in.xrcd_handle = OTHER;
	CHECK_REFUSED(cmd_run(&w, &c), -ENOENT, WHY_CMD_HANDLE);
	in.srq_type = IB_UVERBS_SRQT_BASIC;	/* then nobody looks at it */
	CHECK_INT(cmd_run(&w, &c), 0);
	CHECK_INT(srq_of(&w, out.srq_handle)->type, SRQ_BASIC);
	in.srq_type = IB_UVERBS_SRQT_TM;
	CHECK_REFUSED(cmd_run(&w, &c), -EOPNOTSUPP, WHY_CMD_UNSUPPORTED);
	uv_world_end(&w);
}

Test(uv_xrc, an_xrc_queue_is_no_qps_own)
{
	struct uv_world w = uv_world_new();
	struct srq_ask srq = srq_ask_new(&w);
	struct qp_ask qp = qp_ask_new(&w, srq.pd, srq.cq);
	struct cmd c;

	CHECK_INT(srq_make(&w, &srq), 0);
	c = qp_cmd(&qp);
	cmd_obj(&c, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, srq.handle);
	CHECK_REFUSED(cmd_run(&w, &c), -EINVAL, WHY_CMD_VALUE);
	uv_world_end(&w);
}
