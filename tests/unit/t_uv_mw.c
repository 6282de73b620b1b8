/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The commands of memory windows: what the application gives and gets, in both framings.
 */
#include "tests/unit/uv_world.h"

static int window_alloc(const struct uv_world *w, uint32_t pd, uint8_t type,
			struct ib_uverbs_alloc_mw_resp *out)
{
	struct ib_uverbs_alloc_mw in = { .pd_handle = pd, .mw_type = type };
	struct cmd c = cmd_write(IB_USER_VERBS_CMD_ALLOC_MW, &in, sizeof in, out, sizeof *out);

	return cmd_run(w, &c);
}

static int window_free(const struct uv_world *w, uint32_t handle)
{
	return obj_destroy(w, UVERBS_OBJECT_MW, UVERBS_METHOD_MW_DESTROY,
			   UVERBS_ATTR_DESTROY_MW_HANDLE, handle, 0);
}

Test(uv_mw, windows_are_made_and_freed)
{
	struct uv_world w = uv_world_new();
	struct ib_uverbs_alloc_mw_resp one, two;
	uint32_t pd = pd_alloc(&w);

	CHECK_INT(window_alloc(&w, pd, 1, &one), 0);
	CHECK_INT(window_alloc(&w, pd, 2, &two), 0);
	cr_assert_neq(one.rkey, 0);
	cr_assert_neq(one.rkey >> 8, two.rkey >> 8);
	CHECK_REFUSED(pd_free(&w, pd), -EBUSY, WHY_CMD_BUSY);
	CHECK_REFUSED(window_free(&w, pd), -EINVAL, WHY_CMD_HANDLE);
	CHECK_INT(window_free(&w, one.mw_handle), 0);
	CHECK_REFUSED(window_free(&w, one.mw_handle), -ENOENT, WHY_CMD_HANDLE);
	CHECK_INT(window_free(&w, two.mw_handle), 0);
	CHECK_INT(pd_free(&w, pd), 0);
	uv_world_end(&w);
}

Test(uv_mw, a_command_of_its_own_frees_too)
{
	struct uv_world w = uv_world_new();
	struct ib_uverbs_alloc_mw_resp mw;
	struct ib_uverbs_dealloc_mw in;
	struct cmd c;

	CHECK_INT(window_alloc(&w, pd_alloc(&w), 2, &mw), 0);
	in.mw_handle = mw.mw_handle;
	c = cmd_write(IB_USER_VERBS_CMD_DEALLOC_MW, &in, sizeof in, NULL, 0);
	CHECK_INT(cmd_run(&w, &c), 0);
	CHECK_REFUSED(cmd_run(&w, &c), -ENOENT, WHY_CMD_HANDLE);
	uv_world_end(&w);
}

Test(uv_mw, values_are_checked)
{
	struct uv_world w = uv_world_new();
	struct ib_uverbs_alloc_mw_resp mw;
	uint32_t pd = pd_alloc(&w);

	CHECK_REFUSED(window_alloc(&w, pd, 0, &mw), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(window_alloc(&w, pd, 3, &mw), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(window_alloc(&w, OTHER, 1, &mw), -ENOENT, WHY_CMD_HANDLE);
	CHECK_INT(w.dev->keys.indices.taken, 0);
	uv_world_end(&w);
}

Test(uv_mw, what_the_driver_adds_is_checked)
{
	static const struct { struct mlx5_ib_alloc_mw mlx5; int rc; } row[] = {
		{ { .num_klms = 4 }, 0 }, { { .comp_mask = 1 }, -EOPNOTSUPP },
		{ { .reserved1 = 1 }, -EOPNOTSUPP }, { { .reserved2 = 1 }, -EOPNOTSUPP },
	};
	struct uv_world w = uv_world_new();
	struct ib_uverbs_alloc_mw in = { .pd_handle = pd_alloc(&w), .mw_type = 2 };
	struct ib_uverbs_alloc_mw_resp out;

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct cmd c = cmd_write(IB_USER_VERBS_CMD_ALLOC_MW, &in, sizeof in, &out,
					 sizeof out);

		cmd_in(&c, UVERBS_ATTR_UHW_IN, &row[i].mlx5, sizeof row[i].mlx5);
		CHECK_INT(cmd_run(&w, &c), row[i].rc);
	}
	uv_world_end(&w);
}

/* The file closes with everything in it, bound windows among that. */
Test(uv_mw, a_file_closes_with_its_windows)
{
	struct uv_world w = uv_world_new();
	struct ib_uverbs_alloc_mw_resp mw;
	uint32_t pd = pd_alloc(&w);

	for (uint8_t i = 0; i < 20; i++)
		CHECK_INT(window_alloc(&w, pd, (uint8_t)(1 + i % 2), &mw), 0);
	uv_world_end(&w);
}
