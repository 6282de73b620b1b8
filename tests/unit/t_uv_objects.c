/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects through the command channel: made, used, refused, destroyed, leaked.
 *
 * Method: commands as libibverbs sends them; afterwards the device must be empty, which
 * uv_world_end() checks by counting every number that was handed out.
 */
#include <fcntl.h>
#include <poll.h>
#include "tests/unit/uv_world.h"

static uint64_t taken(const struct uv_world *w)
{
	return w->dev->qpns.taken + w->dev->cqns.taken + w->dev->pdns.taken +
	       w->dev->keys.indices.taken;
}

/* --- creation is all or nothing --- */

Test(uv_objects, object_whose_results_cannot_be_told_is_undone)
{
	struct uv_world w = uv_world_new();
	struct ib_uverbs_alloc_pd pd_in = { 0 };
	struct cmd c = cmd_write(IB_USER_VERBS_CMD_ALLOC_PD, &pd_in, sizeof pd_in, NOWHERE, 4);
	uint64_t before = taken(&w);
	struct cq_ask cq = cq_ask_new(&w);
	struct qp_ask qp;
	uint32_t pd;

	CHECK_REFUSED(cmd_run(&w, &c), -EFAULT, WHY_CMD_MEMORY);
	c = cq_cmd(&cq, NOWHERE);
	CHECK_REFUSED(cmd_run(&w, &c), -EFAULT, WHY_CMD_MEMORY);
	CHECK_INT(taken(&w), before);
	pd = pd_alloc(&w);
	CHECK_INT(cq_make(&w, &cq), 0);
	qp = qp_ask_new(&w, pd, cq.handle);
	before = taken(&w);
	c = qp_cmd(&qp);
	cmd_find(&c, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM)->data = (uintptr_t)NOWHERE;
	CHECK_REFUSED(cmd_run(&w, &c), -EFAULT, WHY_CMD_MEMORY);
	CHECK_INT(taken(&w), before);
	CHECK_INT(cq_free(&w, cq.handle), 0);	/* and uses nothing any more */
	CHECK_INT(pd_free(&w, pd), 0);
	uv_world_end(&w);
}

Test(uv_objects, command_in_memory_that_cannot_be_written_makes_nothing)
{
	struct uv_world w = uv_world_new();
	struct cq_ask cq = cq_ask_new(&w);
	uint8_t *page = world_pages(1);
	uint64_t before = taken(&w);
	uint32_t cqn[2];
	struct cmd c = cq_cmd(&cq, cqn);

	c.hdr.length = (uint16_t)(sizeof c.hdr + c.hdr.num_attrs * sizeof *c.attr);
	memcpy(page, &c, sizeof c);
	mprotect(page, WORLD_PAGE, PROT_READ);
	CHECK_REFUSED(uv_ioctl(w.file, page), -EFAULT, WHY_CMD_MEMORY);
	CHECK_INT(taken(&w), before);
	uv_world_end(&w);
}

static unsigned descriptors(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

Test(uv_objects, descriptor_that_cannot_be_told_is_closed)
{
	struct uv_world w = uv_world_new();
	struct ib_uverbs_create_comp_channel in = { 0 };
	struct cmd c = cmd_write(IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, &in, sizeof in, NOWHERE, 4);
	unsigned before = descriptors();

	CHECK_REFUSED(cmd_run(&w, &c), -EFAULT, WHY_CMD_MEMORY);
	CHECK_INT(descriptors(), before);
	uv_world_end(&w);
}

Test(uv_objects, closing_a_file_frees_what_was_leaked)
{
	struct uv_world w = uv_world_new();
	unsigned before = descriptors();
	uint8_t *memory = world_pages(1);
	struct ib_uverbs_reg_mr_resp mr;
	int fd;

	for (unsigned i = 0; i < 5; i++) {
		uint32_t pd = pd_alloc(&w);
		struct cq_ask cq = cq_ask_new(&w);
		struct qp_ask qp;

		CHECK_INT(channel_open(&w, &fd), 0);
		cq.channel_fd = fd;
		CHECK_INT(cq_make(&w, &cq), 0);
		qp = qp_ask_new(&w, pd, cq.handle);
		CHECK_INT(qp_make(&w, &qp), 0);
		CHECK_INT(mr_reg(&w, pd, memory, 4096, &mr), 0);
		close(fd);
	}
	close(w.async_fd);
	uv_world_end(&w);
	cr_assert_leq(descriptors(), before);
}

/* --- destruction --- */

Test(uv_objects, what_is_in_use_is_busy)
{
	struct uv_world w = uv_world_new();
	struct cq_ask cq = cq_ask_new(&w);
	uint32_t pd = pd_alloc(&w), mr_pd = pd_alloc(&w);
	struct ib_uverbs_reg_mr_resp mr;
	struct qp_ask qp;

	CHECK_INT(cq_make(&w, &cq), 0);
	qp = qp_ask_new(&w, pd, cq.handle);
	CHECK_INT(qp_make(&w, &qp), 0);
	CHECK_INT(mr_reg(&w, mr_pd, world_pages(1), 4096, &mr), 0);
	CHECK_REFUSED(pd_free(&w, pd), -EBUSY, WHY_CMD_BUSY);
	CHECK_REFUSED(pd_free(&w, mr_pd), -EBUSY, WHY_CMD_BUSY);
	CHECK_REFUSED(cq_free(&w, cq.handle), -EBUSY, WHY_CMD_BUSY);
	CHECK_INT(qp_free(&w, qp.handle), 0);
	CHECK_REFUSED(qp_free(&w, qp.handle), -ENOENT, WHY_CMD_HANDLE);
	CHECK_INT(cq_free(&w, cq.handle), 0);
	CHECK_INT(mr_free(&w, mr.mr_handle), 0);
	CHECK_INT(pd_free(&w, pd), 0);
	CHECK_INT(pd_free(&w, mr_pd), 0);
	CHECK_INT(taken(&w), 0);
	uv_world_end(&w);
}

Test(uv_objects, handles_of_one_file_mean_nothing_in_another)
{
	struct uv_world w = uv_world_new(), other = w;
	struct mlx5_ib_alloc_ucontext_req_v2 ask = context_request();
	struct mlx5_ib_alloc_ucontext_resp r;
	uint32_t pd = pd_alloc(&w);

	CHECK_INT(uv_file_open(w.dev, &other.file), 0);
	CHECK_INT(context_get(&other, &ask, sizeof ask, &r), 0);
	CHECK_REFUSED(pd_free(&other, pd), -ENOENT, WHY_CMD_HANDLE);
	uv_file_close(other.file);
	CHECK_INT(pd_free(&w, pd), 0);
	uv_world_end(&w);
}

/* --- protection domains and regions --- */

Test(uv_objects, pd_and_mr_tell_their_numbers)
{
	struct uv_world w = uv_world_new();
	uint32_t pd = pd_alloc(&w), pdn = 0, keys[2] = { 0 };
	struct cmd c = cmd_new(UVERBS_OBJECT_PD, MLX5_IB_METHOD_PD_QUERY);
	uint8_t *memory = world_pages(2);
	struct ib_uverbs_reg_mr_resp mr;
	uint64_t length, iova;

	cmd_obj(&c, MLX5_IB_ATTR_QUERY_PD_HANDLE, pd);
	cmd_out(&c, MLX5_IB_ATTR_QUERY_PD_RESP_PDN, &pdn, 4);
	CHECK_INT(cmd_run(&w, &c), 0);
	cr_assert_neq(pdn, 0);
	CHECK_INT(mr_reg(&w, pd, memory + 100, 5000, &mr), 0);
	CHECK_INT(mr.lkey, mr.rkey);
	c = cmd_new(UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR);
	cmd_obj(&c, UVERBS_ATTR_QUERY_MR_HANDLE, mr.mr_handle);
	cmd_out(&c, UVERBS_ATTR_QUERY_MR_RESP_LKEY, &keys[0], 4);
	cmd_out(&c, UVERBS_ATTR_QUERY_MR_RESP_RKEY, &keys[1], 4);
	cmd_out(&c, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, &length, 8);
	cmd_out(&c, UVERBS_ATTR_QUERY_MR_RESP_IOVA, &iova, 8);
	CHECK_INT(cmd_run(&w, &c), 0);
	CHECK_INT(keys[0], mr.lkey);
	CHECK_INT(keys[1], mr.lkey);
	CHECK_INT(length, 5000);
	CHECK_INT(iova, (uintptr_t)memory + 100);
	CHECK_REFUSED(mr_reg(&w, pd, memory, 0, &mr), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(mr_reg(&w, pd, NOWHERE, 4096, &mr), -EFAULT, WHY_CMD_MEMORY);
	CHECK_REFUSED(mr_reg(&w, OTHER, memory, 64, &mr), -ENOENT, WHY_CMD_HANDLE);
	uv_world_end(&w);
}

Test(uv_objects, info_handles_lists_one_type)
{
	struct uv_world w = uv_world_new();
	uint32_t first = pd_alloc(&w), second = pd_alloc(&w), list[4] = { 9, 9, 9, 9 }, total;
	struct cmd c = cmd_new(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES);

	cmd_u64(&c, UVERBS_ATTR_INFO_OBJECT_ID, UVERBS_OBJECT_PD);
	cmd_out(&c, UVERBS_ATTR_INFO_TOTAL_HANDLES, &total, 4);
	cmd_out(&c, UVERBS_ATTR_INFO_HANDLES_LIST, list, 12);
	CHECK_INT(cmd_run(&w, &c), 0);
	CHECK_INT(total, 2);
	CHECK_INT(list[0], first);
	CHECK_INT(list[1], second);
	CHECK_INT(list[3], 9);
	c.attr[0].data = 0x1ffff;
	CHECK_REFUSED(cmd_run(&w, &c), -EINVAL, WHY_CMD_VALUE);
	uv_world_end(&w);
}

/* --- completion queues and channels --- */

Test(uv_objects, cq_ring_is_the_next_power_of_two)
{
	struct uv_world w = uv_world_new();
	struct cq_ask cq = cq_ask_new(&w);

	CHECK_INT(cq_make(&w, &cq), 0);
	CHECK_INT(cq.cqe_out, 63);
	CHECK_INT(uv_cqn(w.file, cq.handle), cq.cqn);
	CHECK_INT(uv_cqn(w.file, pd_alloc(&w)), -ENOENT);
	CHECK_INT(uv_cqn(w.file, OTHER), -ENOENT);
	uv_world_end(&w);
}

Test(uv_objects, cq_values)
{
	struct uv_world w = uv_world_new();
	struct cq_ask good = cq_ask_new(&w), cq;

#define CHECK_CQ(change, rc, why)                       \
	do {                                            \
		cq = good;                              \
		change;                                 \
		CHECK_REFUSED(cq_make(&w, &cq), rc, why); \
	} while (0)
	CHECK_CQ(cq.cqe = 0, -EINVAL, WHY_CMD_VALUE);
	CHECK_CQ(cq.cqe = 1u << 30, -EINVAL, WHY_CMD_VALUE);
	CHECK_CQ(cq.mlx5.cqe_size = 32, -EINVAL, WHY_CMD_VALUE);
	CHECK_CQ(cq.mlx5.flags = 0, -EINVAL, WHY_CMD_VALUE);	/* names no page */
	CHECK_CQ(cq.mlx5.flags |= 8, -EINVAL, WHY_CMD_VALUE);
	CHECK_CQ(cq.mlx5.uar_page_index = 0, -EINVAL, WHY_CMD_VALUE);
	CHECK_CQ(cq.mlx5.uar_page_index = 2000, -EINVAL, WHY_CMD_VALUE);
	CHECK_CQ(cq.mlx5.reserved1 = 1, -EINVAL, WHY_CMD_VALUE);
	CHECK_CQ(cq.mlx5.cqe_comp_en = 1, -EOPNOTSUPP, WHY_CMD_UNSUPPORTED);
	CHECK_CQ(cq.mlx5.flags |= MLX5_IB_CREATE_CQ_FLAGS_REAL_TIME_TS, -EOPNOTSUPP,
		 WHY_CMD_UNSUPPORTED);
	CHECK_CQ(cq.mlx5.flags |= MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD, -EOPNOTSUPP,
		 WHY_CMD_UNSUPPORTED);
	CHECK_CQ(cq.mlx5.db_addr += 4, -EINVAL, WHY_CMD_VALUE);
	CHECK_CQ(cq.mlx5.buf_addr = 0x10000, -EFAULT, WHY_CMD_MEMORY);
	CHECK_CQ(cq.channel_fd = 250, -EBADF, WHY_CMD_HANDLE);
	CHECK_CQ(cq.channel_fd = w.async_fd, -EBADF, WHY_CMD_HANDLE);
	CHECK_INT(cq_make(&w, &good), 0);
	good = cq_ask_new(&w);
	good.cqe = 15;
	good.mlx5.cqe_size = 128;
	good.mlx5.flags |= MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD;
	CHECK_INT(cq_make(&w, &good), 0);
	uv_world_end(&w);
}

Test(uv_objects, channel_is_told_by_what_it_is_and_not_by_its_number)
{
	struct uv_world w = uv_world_new();
	struct cq_ask cq = cq_ask_new(&w), twin = cq_ask_new(&w);
	int fd, copy, pair[2];

	CHECK_INT(channel_open(&w, &fd), 0);
	cq.channel_fd = fd;
	CHECK_INT(cq_make(&w, &cq), 0);
	copy = dup(fd);
	twin.channel_fd = copy;
	CHECK_INT(cq_make(&w, &twin), 0);
	CHECK_INT(cq_free(&w, twin.handle), 0);
	close(copy);
	close(fd);
	CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	dup2(pair[0], fd);			/* the number is something else now */
	twin.channel_fd = fd;
	CHECK_REFUSED(cq_make(&w, &twin), -EBADF, WHY_CMD_HANDLE);
	CHECK_INT(cq_free(&w, cq.handle), 0);
	uv_world_end(&w);
}

Test(uv_objects, closed_channels_are_let_go)
{
	struct uv_world w = uv_world_new();
	unsigned before = descriptors();
	int fd;

	for (unsigned i = 0; i < 2000; i++) {
		CHECK_INT(channel_open(&w, &fd), 0);
		close(fd);
	}
	cr_assert_lt(descriptors(), before + 64);
	uv_world_end(&w);
}

Test(uv_objects, channel_that_a_cq_uses_outlives_its_descriptor)
{
	struct uv_world w = uv_world_new();
	struct cq_ask cq = cq_ask_new(&w);
	int fd, other;

	CHECK_INT(channel_open(&w, &fd), 0);
	cq.channel_fd = fd;
	CHECK_INT(cq_make(&w, &cq), 0);
	close(fd);
	for (unsigned i = 0; i < 100; i++) {
		CHECK_INT(channel_open(&w, &other), 0);
		close(other);
	}
	CHECK_INT(cq_free(&w, cq.handle), 0);
	uv_world_end(&w);
}

Test(uv_objects, new_descriptors_block_until_something_happens)
{
	struct uv_world w = uv_world_new();
	struct pollfd p = { .fd = w.async_fd, .events = POLLIN };

	CHECK_INT(poll(&p, 1, 0), 0);
	CHECK_INT(fcntl(w.async_fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	uv_world_end(&w);
}

Test(uv_objects, resize_moves_the_ring)
{
	struct uv_world w = uv_world_new();
	struct cq_ask cq = cq_ask_new(&w);
	struct mlx5_ib_resize_cq mlx5 = { .buf_addr = (uintptr_t)world_pages(2), .cqe_size = 64 };
	struct ib_uverbs_resize_cq in = { .cqe = 100 };
	struct ib_uverbs_resize_cq_resp out;
	struct cmd c;

	CHECK_INT(cq_make(&w, &cq), 0);
	in.cq_handle = cq.handle;
	c = cmd_write(IB_USER_VERBS_CMD_RESIZE_CQ, &in, sizeof in, &out, sizeof out);
	CHECK_REFUSED(cmd_run(&w, &c), -EINVAL, WHY_CMD_ATTRIBUTES);	/* no driver part */
	cmd_in(&c, UVERBS_ATTR_UHW_IN, &mlx5, sizeof mlx5);
	CHECK_INT(cmd_run(&w, &c), 0);
	CHECK_INT(out.cqe, 127);
	mlx5.reserved1 = 1;
	CHECK_REFUSED(cmd_run(&w, &c), -EINVAL, WHY_CMD_VALUE);
	uv_world_end(&w);
}

/* --- queue pairs --- */

struct qp_rig {
	struct uv_world w;
	uint32_t pd;
	struct cq_ask cq;
	struct qp_ask qp;
};

static struct qp_rig qp_rig_new(void)
{
	struct qp_rig r = { .w = uv_world_new() };

	r.pd = pd_alloc(&r.w);
	r.cq = cq_ask_new(&r.w);
	CHECK_INT(cq_make(&r.w, &r.cq), 0);
	r.qp = qp_ask_new(&r.w, r.pd, r.cq.handle);
	return r;
}

Test(uv_objects, qp_as_libmlx5_makes_it)
{
	struct qp_rig r = qp_rig_new();
	struct emu_qp *qp;

	CHECK_INT(qp_make(&r.w, &r.qp), 0);
	CHECK_INT(r.qp.reply.bfreg_index, 0xffffffff);
	CHECK_INT(r.qp.reply.ece_options, 0);
	CHECK_INT(r.qp.cap.max_send_wr, 8);
	CHECK_INT(uv_cqn(r.w.file, r.qp.handle), r.qp.qpn);
	qp = qp_find(r.w.dev, r.qp.qpn);
	cr_assert_not_null(qp);
	CHECK_INT(qp->user_index, 3);
	CHECK_INT(qp->sq_addr, r.qp.mlx5.buf_addr + 32 * 32);
	CHECK_INT(qp->user_handle, 0x5678);
	CHECK_INT(qp->signals_all, false);
	uv_world_end(&r.w);
}

Test(uv_objects, qp_values)
{
	struct qp_rig r = qp_rig_new();
	struct qp_ask qp;

#define CHECK_QP(change, rc, why)                           \
	do {                                                \
		qp = r.qp;                                  \
		change;                                     \
		CHECK_REFUSED(qp_make(&r.w, &qp), rc, why); \
	} while (0)
	CHECK_QP(qp.type = IB_UVERBS_QPT_DRIVER, -EINVAL, WHY_CMD_VALUE);
	CHECK_QP(qp.type = 0, -EINVAL, WHY_CMD_VALUE);
	CHECK_QP(qp.type = 258, -EINVAL, WHY_CMD_VALUE);
	CHECK_QP(qp.flags = IB_UVERBS_QP_CREATE_SCATTER_FCS, -EINVAL, WHY_CMD_VALUE);
	CHECK_QP(qp.mlx5.flags |= MLX5_QP_FLAG_SIGNATURE, -EINVAL, WHY_CMD_VALUE);
	CHECK_QP(qp.mlx5.flags |= 1 << 30, -EINVAL, WHY_CMD_VALUE);
	CHECK_QP(qp.mlx5.flags = MLX5_QP_FLAG_SCATTER_CQE, -EINVAL, WHY_CMD_VALUE);
	CHECK_QP(qp.mlx5.bfreg_index = 77, -EINVAL, WHY_CMD_VALUE);
	CHECK_QP(qp.mlx5.uidx = 0xffffff, -EINVAL, WHY_CMD_VALUE);
	CHECK_QP(qp.mlx5.uidx = 0x1000000, -EINVAL, WHY_CMD_VALUE);
	CHECK_QP(qp.mlx5.rq_wqe_shift = 200, -EINVAL, WHY_CMD_VALUE);
	CHECK_QP(qp.mlx5.rq_wqe_shift = 3, -EINVAL, WHY_CMD_VALUE);
	CHECK_QP(qp.mlx5.rq_wqe_shift = 10, -EINVAL, WHY_CMD_VALUE);
	CHECK_QP(qp.mlx5.sq_wqe_count = 33, -EINVAL, WHY_CMD_VALUE);
	CHECK_QP(qp.mlx5.sq_wqe_count = 1u << 31, -EINVAL, WHY_CMD_VALUE);
	CHECK_QP(qp.mlx5.db_addr += 4, -EINVAL, WHY_CMD_VALUE);
	CHECK_QP(qp.mlx5.buf_addr = 0x10000, -EFAULT, WHY_CMD_MEMORY);
	CHECK_QP(qp.pd = OTHER, -ENOENT, WHY_CMD_HANDLE);
	CHECK_QP(qp.cq = r.pd, -EINVAL, WHY_CMD_HANDLE);
	qp = r.qp;
	qp.flags = IB_UVERBS_QP_CREATE_SQ_SIG_ALL;
	CHECK_INT(qp_make(&r.w, &qp), 0);
	CHECK_INT(qp_find(r.w.dev, qp.qpn)->signals_all, true);
	uv_world_end(&r.w);
}

Test(uv_objects, qp_without_its_objects_is_einval)
{
	static const uint16_t ids[] = {
		UVERBS_ATTR_CREATE_QP_PD_HANDLE, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE,
		UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, UVERBS_ATTR_UHW_IN,
	};
	struct qp_rig r = qp_rig_new();

	for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
		struct cmd c = qp_cmd(&r.qp);

		*cmd_find(&c, ids[i]) = c.attr[--c.hdr.num_attrs];
		CHECK_INT(cmd_run(&r.w, &c), -EINVAL);
	}
	uv_world_end(&r.w);
}

static struct ib_uverbs_modify_qp modify_ask(uint32_t handle, uint8_t state)
{
	static const uint32_t masks[] = {
		[QP_INIT] = A_STATE | A_PKEY | A_PORT | A_ACCESS,
		[QP_RTR] = A_STATE | A_AV | A_MTU | A_DEST_QPN | A_RQ_PSN | A_MAX_DEST_RD |
			   A_MIN_RNR,
		[QP_RTS] = A_STATE | A_TIMEOUT | A_RETRY | A_RNR | A_SQ_PSN | A_MAX_RD,
		[QP_ERR] = A_STATE,
	};

	return (struct ib_uverbs_modify_qp){
		.qp_handle = handle, .attr_mask = masks[state], .qp_state = state, .port_num = 1,
		.dest = { .dgid = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 2 }, .sgid_index = 2,
			  .hop_limit = 64, .traffic_class = 5, .sl = 3, .is_global = 1,
			  .src_path_bits = 0xd5, .port_num = 1 },
		.path_mtu = 3, .dest_qp_num = 0x11, .rq_psn = 0x22, .sq_psn = 0x33,
		.max_rd_atomic = 4, .max_dest_rd_atomic = 8, .min_rnr_timer = 12, .timeout = 14,
		.retry_cnt = 7, .rnr_retry = 6, .qp_access_flags = 2,
	};
}

static int modify(const struct uv_world *w, uint32_t handle, uint8_t state)
{
	struct ib_uverbs_modify_qp in = modify_ask(handle, state);
	struct cmd c = cmd_write(IB_USER_VERBS_CMD_MODIFY_QP, &in, sizeof in, NULL, 0);

	return cmd_run(w, &c);
}

static struct ib_uverbs_query_qp_resp query(const struct uv_world *w, uint32_t handle)
{
	struct ib_uverbs_query_qp in = { .qp_handle = handle };
	struct ib_uverbs_query_qp_resp out;

	CHECK_INT(cmd_write_run(w, IB_USER_VERBS_CMD_QUERY_QP, &in, &out), 0);
	return out;
}

Test(uv_objects, qp_goes_to_rts_and_tells_what_it_was_given)
{
	struct qp_rig r = qp_rig_new();
	struct ib_uverbs_query_qp_resp q;

	CHECK_INT(qp_make(&r.w, &r.qp), 0);
	CHECK_INT(query(&r.w, r.qp.handle).qp_state, QP_RESET);
	CHECK_REFUSED(modify(&r.w, r.qp.handle, QP_RTR), -EINVAL, WHY_MODIFY_EDGE);
	CHECK_INT(modify(&r.w, r.qp.handle, QP_INIT), 0);
	CHECK_INT(modify(&r.w, r.qp.handle, QP_RTR), 0);
	CHECK_INT(modify(&r.w, r.qp.handle, QP_RTS), 0);
	q = query(&r.w, r.qp.handle);
	CHECK_INT(q.qp_state, QP_RTS);
	CHECK_INT(q.cur_qp_state, QP_RTS);
	CHECK_INT(q.path_mtu, 3);
	CHECK_INT(q.dest_qp_num, 0x11);
	CHECK_INT(q.rq_psn, 0x22);
	CHECK_INT(q.sq_psn, 0x33);
	CHECK_INT(q.max_rd_atomic, 4);
	CHECK_INT(q.max_dest_rd_atomic, 8);
	CHECK_INT(q.min_rnr_timer, 12);
	CHECK_INT(q.timeout, 14);
	CHECK_INT(q.retry_cnt, 7);
	CHECK_INT(q.rnr_retry, 6);
	CHECK_INT(q.qp_access_flags, 2);
	CHECK_INT(q.port_num, 1);
	CHECK_INT(q.dest.dgid[15], 2);
	CHECK_INT(q.dest.sgid_index, 2);
	CHECK_INT(q.dest.traffic_class, 5);
	CHECK_INT(q.dest.sl, 3);
	CHECK_INT(q.dest.src_path_bits, 0x55);	/* the hardware has 7 bits for them */
	CHECK_INT(q.max_send_wr, 8);
	CHECK_INT(q.max_recv_wr, 32);	/* the ring, not the wish */
	CHECK_INT(q.max_recv_sge, 2);
	CHECK_INT(modify(&r.w, r.qp.handle, QP_ERR), 0);
	CHECK_INT(query(&r.w, r.qp.handle).qp_state, QP_ERR);
	uv_world_end(&r.w);
}

Test(uv_objects, modify_mask_from_the_future_is_eopnotsupp)
{
	struct qp_rig r = qp_rig_new();
	struct ib_uverbs_modify_qp in;
	struct cmd c;

	CHECK_INT(qp_make(&r.w, &r.qp), 0);
	in = modify_ask(r.qp.handle, QP_INIT);
	in.attr_mask |= A_RATE_LIMIT;		/* only the extended command has it */
	c = cmd_write(IB_USER_VERBS_CMD_MODIFY_QP, &in, sizeof in, NULL, 0);
	CHECK_REFUSED(cmd_run(&r.w, &c), -EOPNOTSUPP, WHY_MODIFY_MASK);
	in.qp_handle = OTHER;
	CHECK_REFUSED(cmd_run(&r.w, &c), -ENOENT, WHY_CMD_HANDLE);
	uv_world_end(&r.w);
}

Test(uv_objects, extended_modify_answers_in_both_structures)
{
	struct qp_rig r = qp_rig_new();
	struct ib_uverbs_ex_modify_qp in;
	struct ib_uverbs_ex_modify_qp_resp out = { 0 };
	struct mlx5_ib_modify_qp more = { 0 };
	struct mlx5_ib_modify_qp_resp reply = { 0 };
	struct cmd c;

	CHECK_INT(qp_make(&r.w, &r.qp), 0);
	in = (struct ib_uverbs_ex_modify_qp){ .base = modify_ask(r.qp.handle, QP_INIT) };
	c = cmd_write(IB_USER_VERBS_CMD_FLAG_EXTENDED | 26, &in, sizeof in, &out, sizeof out);
	cmd_in(&c, UVERBS_ATTR_UHW_IN, &more, sizeof more);
	cmd_out(&c, UVERBS_ATTR_UHW_OUT, &reply, sizeof reply);
	more.ece_options = 1;
	CHECK_REFUSED(cmd_run(&r.w, &c), -EOPNOTSUPP, WHY_CMD_UNSUPPORTED);
	more.ece_options = 0;
	CHECK_INT(cmd_run(&r.w, &c), 0);
	CHECK_INT(out.response_length, 8);
	CHECK_INT(reply.response_length, 16);
	CHECK_INT(reply.dctn, 0);
	CHECK_INT(query(&r.w, r.qp.handle).qp_state, QP_INIT);
	in.base.attr_mask = 1u << 26;
	CHECK_REFUSED(cmd_run(&r.w, &c), -EOPNOTSUPP, WHY_MODIFY_MASK);
	uv_world_end(&r.w);
}

/* --- counters --- */

static int counters_read(const struct uv_world *w, uint64_t handle, uint32_t flags)
{
	struct cmd c = cmd_new(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_READ);
	uint64_t values[4];

	cmd_obj(&c, UVERBS_ATTR_READ_COUNTERS_HANDLE, handle);
	cmd_out(&c, UVERBS_ATTR_READ_COUNTERS_BUFF, values, sizeof values);
	cmd_u32(&c, UVERBS_ATTR_READ_COUNTERS_FLAGS, flags);
	return cmd_run(w, &c);
}

Test(uv_objects, counters_that_nothing_counts_into_cannot_be_read)
{
	struct uv_world w = uv_world_new();
	struct cmd c = cmd_new(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE);
	uint32_t handle;

	cmd_obj(&c, UVERBS_ATTR_CREATE_COUNTERS_HANDLE, 0);
	CHECK_INT(cmd_run(&w, &c), 0);
	handle = (uint32_t)c.attr[0].data;
	CHECK_REFUSED(counters_read(&w, handle, 0), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(counters_read(&w, pd_alloc(&w), 0), -EINVAL, WHY_CMD_HANDLE);
	CHECK_REFUSED(counters_read(&w, OTHER, 0), -ENOENT, WHY_CMD_HANDLE);
	CHECK_INT(obj_destroy(&w, UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_DESTROY,
			      UVERBS_ATTR_DESTROY_COUNTERS_HANDLE, handle, 0), 0);
	CHECK_REFUSED(counters_read(&w, handle, 0), -ENOENT, WHY_CMD_HANDLE);
	CHECK_INT(cmd_run(&w, &c), 0);			/* left for the file to close */
	uv_world_end(&w);
}
