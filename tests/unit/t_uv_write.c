/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Write commands: inside INVOKE_WRITE and through write().
 *
 * Method: sizes of every command are walked in both channels; then the same work is done
 * through each and the results compared.
 */
#include "emu/uverbs/dispatch.h"
#include "tests/unit/uv_world.h"

static uint8_t in[1024], out[1024];

static unsigned size_min(const struct uv_method *m, uint16_t id)
{
	int row = uv_row_find(m, id);

	return row < 0 ? 0 : m->attr[row].min;
}

/* --- INVOKE_WRITE --- */

Test(uv_write, the_probe_of_libibverbs_is_answered_enospc_before_any_context)
{
	struct uv_world w = uv_world_bare("");
	struct cmd c = cmd_write(IB_USER_VERBS_CMD_QUERY_DEVICE, NULL, 0, NULL, 0);
	uint64_t before = world_why.made;

	CHECK_INT(cmd_run(&w, &c), -ENOSPC);
	CHECK_INT(world_why.made, before);	/* nothing went wrong */
	uv_world_end(&w);
}

Test(uv_write, short_core_structures_are_enospc)
{
	struct uv_world w = uv_world_new();

	for (unsigned k = 0; k < uv_command_count; k++) {
		const struct uv_method *m = &uv_commands[k];
		unsigned in_min = size_min(m, UVERBS_ATTR_CORE_IN);
		unsigned out_min = size_min(m, UVERBS_ATTR_CORE_OUT);
		struct cmd c = cmd_write(m->method, in, in_min - 1, out, out_min);

		if (!m->run)
			continue;
		if (in_min > 4)			/* INVOKE_WRITE itself wants 4 bytes */
			cr_assert(cmd_run(&w, &c) == -ENOSPC, "%s", m->name);
		if (!out_min)
			continue;
		c = cmd_write(m->method, in, in_min, out, out_min - 1);
		cr_assert(cmd_run(&w, &c) == -ENOSPC, "%s", m->name);
		c = cmd_write(m->method, in, in_min, NULL, 0);
		cr_assert(cmd_run(&w, &c) == -ENOSPC, "%s", m->name);
		c = cmd_write(m->method, NULL, 0, out, out_min);
		cr_assert(cmd_run(&w, &c) == -ENOSPC, "%s", m->name);
	}
	uv_world_end(&w);
}

Test(uv_write, longer_core_structure_with_a_nonzero_tail_is_eopnotsupp)
{
	struct uv_world w = uv_world_new();

	in[999] = 1;
	for (unsigned k = 0; k < uv_command_count; k++) {
		const struct uv_method *m = &uv_commands[k];
		struct cmd c = cmd_write(m->method, in, 1000, out, 1000);

		if (m->run)
			cr_assert(cmd_run(&w, &c) == -EOPNOTSUPP, "%s", m->name);
	}
	uv_world_end(&w);
}

Test(uv_write, unknown_and_absent_commands_differ)
{
	static const struct { uint64_t command; int rc; enum why why; } rows[] = {
		{ IB_USER_VERBS_CMD_POST_SEND, -EOPNOTSUPP, WHY_CMD_UNSUPPORTED },
		{ IB_USER_VERBS_CMD_POST_SRQ_RECV, -EOPNOTSUPP, WHY_CMD_UNSUPPORTED },
		{ IB_USER_VERBS_CMD_FLAG_EXTENDED | 18, -EOPNOTSUPP, WHY_CMD_UNSUPPORTED },
		{ 6, -EOPNOTSUPP, WHY_CMD_UNSUPPORTED },
		{ 41, -EINVAL, WHY_CMD_UNSUPPORTED },
		{ IB_USER_VERBS_CMD_FLAG_EXTENDED | 3, -EOPNOTSUPP, WHY_CMD_UNSUPPORTED },
		{ 0x40000001, -EINVAL, WHY_CMD_UNSUPPORTED },
		{ 1ull << 32 | 1, -EINVAL, WHY_CMD_ATTRIBUTES },
	};
	struct uv_world w = uv_world_new();

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct cmd c = cmd_write(0, in, 64, out, 64);

		c.attr[0].data = rows[i].command;
		CHECK_REFUSED(cmd_run(&w, &c), rows[i].rc, rows[i].why);
	}
	uv_world_end(&w);
}

Test(uv_write, commands_before_a_context_are_einval)
{
	struct uv_world w = uv_world_bare("");
	struct ib_uverbs_alloc_pd ask = { 0 };
	struct ib_uverbs_alloc_pd_resp r;

	CHECK_REFUSED(cmd_write_run(&w, IB_USER_VERBS_CMD_ALLOC_PD, &ask, &r), -EINVAL,
		      WHY_CMD_VALUE);
	uv_world_end(&w);
}

Test(uv_write, core_input_at_a_bad_address_is_efault)
{
	struct uv_world w = uv_world_new();
	struct cmd c = cmd_write(IB_USER_VERBS_CMD_QUERY_QP, NOWHERE, 16, out, 128);

	CHECK_REFUSED(cmd_run(&w, &c), -EFAULT, WHY_CMD_MEMORY);
	uv_world_end(&w);
}

/* --- write() --- */

struct plain {
	struct ib_uverbs_cmd_hdr header;
	uint8_t body[512];
};

/* A plain command: @core and then @driver, answered at @reply. */
static ssize_t plain_run(const struct uv_world *w, uint32_t command, const void *core,
			 size_t core_bytes, const void *driver, size_t driver_bytes, void *reply,
			 size_t reply_bytes)
{
	struct plain p = { .header = { .command = command } };
	uint64_t response = (uintptr_t)reply;
	size_t bytes = sizeof p.header + core_bytes + driver_bytes;

	memcpy(p.body, core, core_bytes);
	if (reply)
		memcpy(p.body, &response, sizeof response);
	if (driver_bytes)
		memcpy(p.body + core_bytes, driver, driver_bytes);
	p.header.in_words = (uint16_t)(bytes / 4);
	p.header.out_words = (uint16_t)(reply_bytes / 4);
	return uv_write(w->file, &p, bytes);
}

Test(uv_write, a_whole_life_through_plain_commands)
{
	struct uv_world w = uv_world_bare("");
	struct mlx5_ib_alloc_ucontext_req_v2 request = context_request();
	struct {
		struct ib_uverbs_get_context_resp core;
		struct mlx5_ib_alloc_ucontext_resp mlx5;
	} context = { 0 };
	struct { uint32_t handle, pdn; } pd;
	struct ib_uverbs_create_comp_channel_resp channel;
	struct { uint32_t handle, cqe; struct mlx5_ib_create_cq_resp mlx5; } cq;
	struct { struct ib_uverbs_create_qp_resp core; struct mlx5_ib_create_qp_resp mlx5; } qp;
	struct ib_uverbs_reg_mr_resp mr;
	struct ib_uverbs_query_port_resp port;
	struct ib_uverbs_query_device_resp device;
	uint8_t *memory = world_pages(6);
	uint32_t zero = 0, gone[2];

	/* an old client: static pages */
	request.lib_caps = 0;
	CHECK_INT(plain_run(&w, IB_USER_VERBS_CMD_GET_CONTEXT, in, 8, &request, sizeof request,
			    &context, sizeof context), 8 + 8 + 32);
	CHECK_INT(context.core.num_comp_vectors, 4);
	CHECK_INT(context.mlx5.tot_bfregs, 16);
	cr_assert_geq((int)context.core.async_fd, 0);
	CHECK_INT(plain_run(&w, IB_USER_VERBS_CMD_QUERY_DEVICE, in, 8, NULL, 0, &device,
			    sizeof device), 16);
	CHECK_INT(device.vendor_part_id, 4125);
	CHECK_INT(plain_run(&w, IB_USER_VERBS_CMD_QUERY_PORT,
			    &(struct ib_uverbs_query_port){ .port_num = 1 }, 16, NULL, 0, &port,
			    sizeof port), 24);
	CHECK_INT(port.state, 4);
	CHECK_INT(plain_run(&w, IB_USER_VERBS_CMD_ALLOC_PD, in, 8, NULL, 0, &pd, sizeof pd), 16);
	cr_assert_neq(pd.pdn, 0);
	CHECK_INT(plain_run(&w, IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, in, 8, NULL, 0, &channel,
			    sizeof channel), 16);
	CHECK_INT(plain_run(&w, IB_USER_VERBS_CMD_CREATE_CQ,
			    &(struct ib_uverbs_create_cq){ .cqe = 20,
				.comp_channel = (int)channel.fd }, 32,
			    &(struct mlx5_ib_create_cq){ .buf_addr = (uintptr_t)memory,
				.db_addr = (uintptr_t)memory + 5 * WORLD_PAGE, .cqe_size = 64 }, 32,
			    &cq, sizeof cq), 8 + 32 + 32);
	CHECK_INT(cq.cqe, 31);
	CHECK_INT(uv_cqn(w.file, cq.handle), cq.mlx5.cqn);
	CHECK_INT(plain_run(&w, IB_USER_VERBS_CMD_CREATE_QP,
			    &(struct ib_uverbs_create_qp){ .pd_handle = pd.handle,
				.send_cq_handle = cq.handle, .recv_cq_handle = cq.handle,
				.max_send_wr = 4, .sq_sig_all = 1, .qp_type = 2 }, 56,
			    &(struct mlx5_ib_create_qp){ .buf_addr = (uintptr_t)memory + WORLD_PAGE,
				.db_addr = (uintptr_t)memory + 5 * WORLD_PAGE + 64,
				.sq_wqe_count = 16 }, sizeof(struct mlx5_ib_create_qp),
			    &qp, sizeof qp), 8 + 56 + 56);
	CHECK_INT(qp.mlx5.bfreg_index, 0);	/* a register that the client mapped */
	CHECK_INT(qp_find(w.dev, qp.core.qpn)->signals_all, true);
	CHECK_INT(plain_run(&w, IB_USER_VERBS_CMD_REG_MR,
			    &(struct ib_uverbs_reg_mr){ .start = (uintptr_t)memory, .length = 64,
				.hca_va = (uintptr_t)memory, .pd_handle = pd.handle,
				.access_flags = 1 }, 40, NULL, 0, &mr, sizeof mr), 48);
	CHECK_INT(plain_run(&w, IB_USER_VERBS_CMD_DEALLOC_PD, &pd.handle, 4, NULL, 0, NULL, 0),
		  -EBUSY);
	CHECK_INT(plain_run(&w, IB_USER_VERBS_CMD_DEREG_MR, &mr.mr_handle, 4, &zero, 0, NULL, 0),
		  12);
	CHECK_INT(plain_run(&w, IB_USER_VERBS_CMD_DESTROY_QP,
			    &(struct ib_uverbs_destroy_qp){ .qp_handle = qp.core.qp_handle }, 16,
			    NULL, 0, gone, 4), 24);
	CHECK_INT(plain_run(&w, IB_USER_VERBS_CMD_DESTROY_CQ,
			    &(struct ib_uverbs_destroy_cq){ .cq_handle = cq.handle }, 16,
			    NULL, 0, gone, 8), 24);
	CHECK_INT(plain_run(&w, IB_USER_VERBS_CMD_DEALLOC_PD, &pd.handle, 4, NULL, 0, NULL, 0), 12);
	uv_world_end(&w);
}

Test(uv_write, both_channels_answer_the_same)
{
	struct uv_world w = uv_world_new();
	struct {
		struct ib_uverbs_cmd_hdr header;
		struct ib_uverbs_ex_cmd_hdr ex;
		struct ib_uverbs_ex_query_device ask;
	} frame = {
		.header = { .command = IB_USER_VERBS_CMD_FLAG_EXTENDED | 1, .in_words = 1,
			    .out_words = 304 / 8 },
		.ex = { .provider_out_words = 104 / 8 },
	};
	uint8_t written[304 + 104] = { 0 }, asked[304 + 104] = { 0 };
	struct cmd c = cmd_write(IB_USER_VERBS_CMD_FLAG_EXTENDED | 1, &frame.ask, 8, asked, 304);

	cmd_out(&c, UVERBS_ATTR_UHW_OUT, asked + 304, 104);
	CHECK_INT(cmd_run(&w, &c), 0);
	frame.ex.response = (uintptr_t)written;
	CHECK_INT(uv_write(w.file, &frame, sizeof frame), sizeof frame);
	CHECK_INT(memcmp(written, asked, sizeof asked), 0);
	CHECK_INT(written[40], 0xc9);		/* and it is an answer */
	uv_world_end(&w);
}

Test(uv_write, frame_rules_of_plain_commands)
{
	static const struct {
		uint32_t command;
		uint16_t in_words, out_words;
		size_t bytes;
		int rc;
	} rows[] = {
		{ IB_USER_VERBS_CMD_ALLOC_PD, 4, 2, 16, 16 },
		{ IB_USER_VERBS_CMD_ALLOC_PD, 4, 1, 16, 16 },
		{ IB_USER_VERBS_CMD_ALLOC_PD, 4, 0, 16, -ENOSPC },
		{ IB_USER_VERBS_CMD_ALLOC_PD, 3, 2, 16, -EINVAL },
		{ IB_USER_VERBS_CMD_ALLOC_PD, 3, 2, 12, -ENOSPC },
		{ IB_USER_VERBS_CMD_ALLOC_PD, 2, 2, 8, -ENOSPC },
		{ IB_USER_VERBS_CMD_ALLOC_PD, 1, 2, 4, -EINVAL },
		{ IB_USER_VERBS_CMD_ALLOC_PD, 0, 2, 0, -EINVAL },
		{ IB_USER_VERBS_CMD_POST_SRQ_RECV, 20, 20, 80, -EOPNOTSUPP },
		{ 6, 4, 2, 16, -EOPNOTSUPP },
	};
	struct uv_world w = uv_world_new();

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct plain p = { .header = { rows[i].command, rows[i].in_words,
					       rows[i].out_words } };
		uint64_t response = (uintptr_t)out;
		ssize_t rc;

		memcpy(p.body, &response, sizeof response);
		rc = uv_write(w.file, &p, rows[i].bytes);
		cr_assert(rc == rows[i].rc, "row %zu: %zd", i, rc);
	}
	CHECK_REFUSED(uv_write(w.file, NOWHERE, 16), -EFAULT, WHY_CMD_MEMORY);
	uv_world_end(&w);
}

Test(uv_write, frame_rules_of_extended_commands)
{
	static const struct {
		struct ib_uverbs_cmd_hdr header;
		struct ib_uverbs_ex_cmd_hdr ex;
		size_t bytes;
		bool answers;
		int rc;
	} rows[] = {
		{ { 0x80000001, 1, 38 }, { 0, 0, 0, 0 }, 32, true, 32 },
		{ { 0x80000001, 1, 22 }, { 0, 0, 0, 0 }, 32, true, -ENOSPC },
		{ { 0x80000001, 0, 38 }, { 0, 0, 0, 0 }, 24, true, -ENOSPC },
		{ { 0x80000001, 1, 38 }, { 0, 0, 0, 0 }, 40, true, -EINVAL },
		{ { 0x80000001, 1, 38 }, { 0, 0, 0, 1 }, 32, true, -EINVAL },
		{ { 0x80000001, 1, 38 }, { 0, 0, 0, 0 }, 32, false, -EINVAL },
		{ { 0x80000001, 1, 0 }, { 0, 0, 0, 0 }, 32, true, -EINVAL },
		{ { 0x80000001, 1, 38 }, { 0, 0, 0, 0 }, 16, true, -EINVAL },
		{ { 0x80000001, 1, 38 }, { 0, 1, 0, 0 }, 40, true, 40 },
		{ { 0x80000001, 1, UINT16_MAX }, { 0, 0, 0, 0 }, 32, true, -ENOSPC },
	};
	struct uv_world w = uv_world_new();

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct {
			struct ib_uverbs_cmd_hdr header;
			struct ib_uverbs_ex_cmd_hdr ex;
			uint8_t body[64];
		} frame = { rows[i].header, rows[i].ex, { 0 } };
		ssize_t rc;

		frame.ex.response = rows[i].answers ? (uintptr_t)out : 0;
		rc = uv_write(w.file, &frame, rows[i].bytes);
		cr_assert(rc == rows[i].rc, "row %zu: %zd", i, rc);
	}
	uv_world_end(&w);
}

Test(uv_write, answer_at_a_bad_address_undoes_the_command)
{
	struct uv_world w = uv_world_new();
	uint32_t before = w.dev->pdns.taken;

	CHECK_INT(plain_run(&w, IB_USER_VERBS_CMD_ALLOC_PD, in, 8, NULL, 0, NOWHERE, 8), -EFAULT);
	CHECK_INT(w.dev->pdns.taken, before);
	uv_world_end(&w);
}
