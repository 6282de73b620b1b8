/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The commands of shared receive queues: as an ioctl and as write commands.
 *
 * What a queue does with messages is in t_srq.c.
 */
#include "emu/obj/srq.h"
#include "emu/uverbs/file.h"
#include "tests/unit/uv_world.h"

struct srq_ask {
	uint32_t pd, max_wr, max_sge;
	uint64_t type;
	int async_fd;			/* 0: none */
	struct mlx5_ib_create_srq mlx5;
	/* results */
	uint32_t handle, max_wr_out, max_sge_out, srqn_out;
	struct mlx5_ib_create_srq_resp reply;
};

static struct srq_ask srq_ask_new(uint32_t pd)
{
	uint8_t *memory = world_pages(3);

	return (struct srq_ask){
		.pd = pd, .max_wr = 127, .max_sge = 3, .type = IB_UVERBS_SRQT_BASIC,
		.mlx5 = { .buf_addr = (uintptr_t)memory,
			  .db_addr = (uintptr_t)memory + 2 * WORLD_PAGE } };
}

static struct cmd srq_cmd(struct srq_ask *ask)
{
	struct cmd c = cmd_new(UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE);

	cmd_obj(&c, UVERBS_ATTR_CREATE_SRQ_HANDLE, 0);
	cmd_u64(&c, UVERBS_ATTR_CREATE_SRQ_TYPE, ask->type);
	cmd_u64(&c, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, 0x9876);
	cmd_obj(&c, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, ask->pd);
	cmd_u32(&c, UVERBS_ATTR_CREATE_SRQ_MAX_WR, ask->max_wr);
	cmd_u32(&c, UVERBS_ATTR_CREATE_SRQ_MAX_SGE, ask->max_sge);
	cmd_u32(&c, UVERBS_ATTR_CREATE_SRQ_LIMIT, 0);
	if (ask->async_fd)
		cmd_obj(&c, UVERBS_ATTR_CREATE_SRQ_EVENT_FD, (uint64_t)ask->async_fd);
	cmd_out(&c, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, &ask->max_wr_out, 4);
	cmd_out(&c, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, &ask->max_sge_out, 4);
	cmd_out(&c, UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, &ask->srqn_out, 4);
	cmd_in(&c, UVERBS_ATTR_UHW_IN, &ask->mlx5, sizeof ask->mlx5);
	cmd_out(&c, UVERBS_ATTR_UHW_OUT, &ask->reply, sizeof ask->reply);
	return c;
}

static int srq_make(const struct uv_world *w, struct srq_ask *ask)
{
	struct cmd c = srq_cmd(ask);
	int ret = cmd_run(w, &c);

	ask->handle = (uint32_t)c.attr[0].data;
	return ret;
}

static int srq_free(const struct uv_world *w, uint32_t handle)
{
	return obj_destroy(w, UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY,
			   UVERBS_ATTR_DESTROY_SRQ_HANDLE, handle, 4);
}

static int srq_limit(const struct uv_world *w, uint32_t handle, uint32_t mask, uint32_t limit)
{
	struct ib_uverbs_modify_srq in = { .srq_handle = handle, .attr_mask = mask,
		.max_wr = 1000, .srq_limit = limit };
	struct cmd c = cmd_write(IB_USER_VERBS_CMD_MODIFY_SRQ, &in, sizeof in, NULL, 0);

	return cmd_run(w, &c);
}

static struct ib_uverbs_query_srq_resp srq_query(const struct uv_world *w, uint32_t handle)
{
	struct ib_uverbs_query_srq in = { .srq_handle = handle };
	struct ib_uverbs_query_srq_resp out = { 0 };

	CHECK_INT(cmd_write_run(w, IB_USER_VERBS_CMD_QUERY_SRQ, &in, &out), 0);
	return out;
}

static struct emu_srq *srq_find(const struct uv_world *w, uint32_t handle)
{
	struct emu_obj *obj = NULL;

	CHECK_INT(file_handle_find(w->file, handle, OBJ_SRQ, &obj), 0);
	return (struct emu_srq *)obj;
}

Test(uv_srq, a_whole_life)
{
	struct uv_world w = uv_world_new();
	uint32_t pd = pd_alloc(&w);
	struct srq_ask ask = srq_ask_new(pd);
	struct ib_uverbs_query_srq_resp r;

	CHECK_INT(srq_make(&w, &ask), 0);
	CHECK_INT(ask.max_wr_out, 127);
	CHECK_INT(ask.max_sge_out, 3);
	CHECK_INT(ask.srqn_out, ask.reply.srqn);
	cr_assert_neq(ask.srqn_out, 0, "0 means that there is none");
	CHECK_INT(srq_limit(&w, ask.handle, 0, 5), 0);
	r = srq_query(&w, ask.handle);
	CHECK_INT(r.max_wr, 127);
	CHECK_INT(r.max_sge, 3);
	CHECK_INT(r.srq_limit, 0);
	CHECK_REFUSED(pd_free(&w, pd), -EBUSY, WHY_CMD_BUSY);
	CHECK_INT(srq_free(&w, ask.handle), 0);
	CHECK_REFUSED(srq_free(&w, ask.handle), -ENOENT, WHY_CMD_HANDLE);
	CHECK_INT(pd_free(&w, pd), 0);
	uv_world_end(&w);
}

/* Nothing is posted, so a limit is told of at once. */
Test(uv_srq, events_go_to_the_file_that_was_named)
{
	struct uv_world w = uv_world_new();
	struct srq_ask ask = srq_ask_new(pd_alloc(&w));
	struct { uint64_t element; uint32_t type, reserved; } event;
	int fd;

	CHECK_INT(async_alloc(&w, &fd), 0);
	ask.async_fd = fd;
	CHECK_INT(srq_make(&w, &ask), 0);
	CHECK_INT(srq_limit(&w, ask.handle, SRQ_LIMIT, 5), 0);
	CHECK_INT(srq_query(&w, ask.handle).srq_limit, 0);
	CHECK_INT(recv(fd, &event, sizeof event, MSG_DONTWAIT), sizeof event);
	CHECK_INT(event.element, 0x9876);
	CHECK_INT(event.type, EVENT_SRQ_LIMIT);
	CHECK_INT(recv(w.async_fd, &event, sizeof event, MSG_DONTWAIT), -1);
	uv_world_end(&w);
}

Test(uv_srq, modify_refuses)
{
	struct uv_world w = uv_world_new();
	struct srq_ask ask = srq_ask_new(pd_alloc(&w));

	CHECK_INT(srq_make(&w, &ask), 0);
	CHECK_REFUSED(srq_limit(&w, ask.handle, SRQ_MAX_WR, 0), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(srq_limit(&w, ask.handle, SRQ_LIMIT, 128), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(srq_limit(&w, OTHER, SRQ_LIMIT, 1), -ENOENT, WHY_CMD_HANDLE);
	CHECK_INT(srq_limit(&w, ask.handle, SRQ_LIMIT, 127), 0);
	uv_world_end(&w);
}

Test(uv_srq, creation_refuses_and_leaves_nothing)
{
	static const struct {
		uint64_t type;
		uint32_t max_wr, max_sge, flags, reserved0, reserved1;
		int rc;
		enum why why;
	} rows[] = {
		{ IB_UVERBS_SRQT_TM, 127, 3, 0, 0, 0, -EOPNOTSUPP, WHY_CMD_UNSUPPORTED },
		{ 3, 127, 3, 0, 0, 0, -EINVAL, WHY_CMD_VALUE },
		{ 1ull << 40, 127, 3, 0, 0, 0, -EINVAL, WHY_CMD_VALUE },
		{ 0, 32768, 3, 0, 0, 0, -EINVAL, WHY_CMD_VALUE },
		{ 0, 127, 32, 0, 0, 0, -EINVAL, WHY_CMD_VALUE },
		{ 0, 127, 3, 1, 0, 0, -EINVAL, WHY_CMD_UNSUPPORTED },
		{ 0, 127, 3, 0, 1, 0, -EINVAL, WHY_CMD_VALUE },
		{ 0, 127, 3, 0, 0, 1, -EINVAL, WHY_CMD_VALUE },
		{ 0, 4095, 3, 0, 0, 0, -EFAULT, WHY_CMD_MEMORY },
	};
	struct uv_world w = uv_world_new();
	uint32_t pd = pd_alloc(&w);
	uint8_t *ring = world_pages(64);

	CHECK_INT(mprotect(ring + 4 * WORLD_PAGE, 60 * WORLD_PAGE, PROT_NONE), 0);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct srq_ask ask = srq_ask_new(pd);

		ask.mlx5.buf_addr = (uintptr_t)ring;
		ask.type = rows[i].type;
		ask.max_wr = rows[i].max_wr;
		ask.max_sge = rows[i].max_sge;
		ask.mlx5.flags = rows[i].flags;
		ask.mlx5.reserved0 = rows[i].reserved0;
		ask.mlx5.reserved1 = rows[i].reserved1;
		CHECK_REFUSED(srq_make(&w, &ask), rows[i].rc, rows[i].why);
		CHECK_INT(w.dev->srqns.taken, 0);
	}
	CHECK_INT(pd_free(&w, pd), 0);
	uv_world_end(&w);
}

Test(uv_srq, write_commands_do_the_same)
{
	struct uv_world w = uv_world_new();
	struct srq_ask ask = srq_ask_new(pd_alloc(&w));
	struct ib_uverbs_create_srq in = { .pd_handle = ask.pd, .max_wr = 127, .max_sge = 3,
		.user_handle = 0x9876, .srq_limit = 100 };
	struct ib_uverbs_create_srq_resp out = { 0 };
	struct ib_uverbs_destroy_srq gone = { 0 };
	struct ib_uverbs_destroy_srq_resp events = { .events_reported = 77 };
	struct cmd c = cmd_write(IB_USER_VERBS_CMD_CREATE_SRQ, &in, sizeof in, &out, sizeof out);

	cmd_in(&c, UVERBS_ATTR_UHW_IN, &ask.mlx5, sizeof ask.mlx5);
	cmd_out(&c, UVERBS_ATTR_UHW_OUT, &ask.reply, sizeof ask.reply);
	CHECK_INT(cmd_run(&w, &c), 0);
	CHECK_INT(out.max_wr, 127);
	CHECK_INT(out.max_sge, 3);
	CHECK_INT(out.srqn, ask.reply.srqn);
	CHECK_INT(srq_query(&w, out.srq_handle).srq_limit, 0);	/* not at creation */
	gone.srq_handle = out.srq_handle;
	CHECK_INT(cmd_write_run(&w, IB_USER_VERBS_CMD_DESTROY_SRQ, &gone, &events), 0);
	CHECK_INT(events.events_reported, 0);
	CHECK_INT(w.dev->srqns.taken, 0);
	uv_world_end(&w);
}

/* --- QPs on one --- */

Test(uv_srq, a_qp_keeps_its_queue)
{
	struct uv_world w = uv_world_new();
	struct srq_ask ask = srq_ask_new(pd_alloc(&w));
	struct cq_ask cq = cq_ask_new(&w);
	struct qp_ask qp;
	struct cmd c;
	struct emu_qp *made;

	CHECK_INT(srq_make(&w, &ask), 0);
	CHECK_INT(cq_make(&w, &cq), 0);
	qp = qp_ask_new(&w, ask.pd, cq.handle);
	c = qp_cmd(&qp);
	cmd_obj(&c, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, ask.handle);
	CHECK_INT(cmd_run(&w, &c), 0);
	made = qp_find(w.dev, qp.qpn);
	cr_assert_eq(made->srq, srq_find(&w, ask.handle));
	CHECK_INT(made->rq_count, 0);		/* whatever the driver left room for */
	CHECK_INT(made->sq_addr, qp.mlx5.buf_addr + 32 * 32);
	CHECK_REFUSED(srq_free(&w, ask.handle), -EBUSY, WHY_CMD_BUSY);
	CHECK_INT(qp_free(&w, (uint32_t)c.attr[0].data), 0);
	CHECK_INT(srq_free(&w, ask.handle), 0);
	uv_world_end(&w);
}

Test(uv_srq, the_older_command_names_one_if_it_says_so)
{
	struct uv_world w = uv_world_new();
	struct srq_ask ask = srq_ask_new(pd_alloc(&w));
	struct cq_ask cq = cq_ask_new(&w);
	struct qp_ask qp;
	struct ib_uverbs_create_qp in;
	struct ib_uverbs_create_qp_resp out;
	struct cmd c;

	CHECK_INT(srq_make(&w, &ask), 0);
	CHECK_INT(cq_make(&w, &cq), 0);
	qp = qp_ask_new(&w, ask.pd, cq.handle);
	in = (struct ib_uverbs_create_qp){ .pd_handle = ask.pd, .send_cq_handle = cq.handle,
		.recv_cq_handle = cq.handle, .srq_handle = OTHER, .qp_type = IB_UVERBS_QPT_RC };
	c = cmd_write(IB_USER_VERBS_CMD_CREATE_QP, &in, sizeof in, &out, sizeof out);
	cmd_in(&c, UVERBS_ATTR_UHW_IN, &qp.mlx5, sizeof qp.mlx5);
	CHECK_INT(cmd_run(&w, &c), 0);
	cr_assert_null(qp_find(w.dev, out.qpn)->srq);
	in.is_srq = 1;
	CHECK_REFUSED(cmd_run(&w, &c), -ENOENT, WHY_CMD_HANDLE);
	in.srq_handle = ask.handle;
	CHECK_INT(cmd_run(&w, &c), 0);
	cr_assert_eq(qp_find(w.dev, out.qpn)->srq, srq_find(&w, ask.handle));
	uv_world_end(&w);	/* in any order */
}

/* CQEs of version 0 have no user index: software finds the queue by its number. */
Test(uv_srq, old_completions_name_the_queue)
{
	struct uv_world w = uv_world_new();
	struct srq_ask ask = srq_ask_new(pd_alloc(&w));

	CHECK_INT(srq_make(&w, &ask), 0);
	cr_assert_not(srq_find(&w, ask.handle)->names_itself);
	w.file->cqe_version = 0;
	CHECK_INT(srq_make(&w, &ask), 0);
	cr_assert(srq_find(&w, ask.handle)->names_itself);
	CHECK_INT(srq_find(&w, ask.handle)->user_index, ask.srqn_out);
	uv_world_end(&w);
}
