/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands of memory regions beyond registering: changing them, advice, device memory.
 */
#include <sys/mman.h>
#include "tests/unit/uv_world.h"

#define PAGE 4096u

struct rig {
	struct uv_world w;
	uint32_t pd, mr, key;
	uint8_t *memory;
};

static struct rig rig_new(uint32_t access)
{
	struct rig r = { .w = uv_world_new() };
	struct ib_uverbs_reg_mr in = { .length = PAGE, .access_flags = access };
	struct ib_uverbs_reg_mr_resp out;

	r.pd = in.pd_handle = pd_alloc(&r.w);
	r.memory = world_pages(2);
	in.start = in.hca_va = (uintptr_t)r.memory;
	CHECK_INT(cmd_write_run(&r.w, IB_USER_VERBS_CMD_REG_MR, &in, &out), 0);
	r.mr = out.mr_handle;
	r.key = out.lkey;
	return r;
}

/* --- rereg_mr --- */

static int rereg(struct rig *r, uint32_t flags, uint32_t pd, const void *at, uint32_t access,
		 struct ib_uverbs_rereg_mr_resp *out)
{
	struct ib_uverbs_rereg_mr in = {
		.mr_handle = r->mr, .flags = flags, .pd_handle = pd, .start = (uintptr_t)at,
		.hca_va = (uintptr_t)at, .length = PAGE, .access_flags = access,
	};
	struct cmd c = cmd_write(IB_USER_VERBS_CMD_REREG_MR, &in, sizeof in, out, sizeof *out);

	return cmd_run(&r->w, &c);
}

Test(uv_mr, a_change_tells_the_keys)
{
	struct rig r = rig_new(1);
	struct ib_uverbs_rereg_mr_resp out;

	CHECK_INT(rereg(&r, MR_CHANGES_PLACE, OTHER, r.memory + PAGE, 0, &out), 0);
	CHECK_INT(out.lkey, r.key);
	CHECK_INT(out.rkey, r.key);
	CHECK_INT(rereg(&r, MR_CHANGES_PD, pd_alloc(&r.w), NULL, 0, &out), 0);
	CHECK_INT(pd_free(&r.w, r.pd), 0);
	uv_world_end(&r.w);
}

Test(uv_mr, the_domain_is_looked_up_only_if_it_changes)
{
	struct rig r = rig_new(1);
	struct ib_uverbs_rereg_mr_resp out;

	CHECK_INT(rereg(&r, MR_CHANGES_ACCESS, OTHER, NULL, 1, &out), 0);
	CHECK_REFUSED(rereg(&r, MR_CHANGES_PD, OTHER, NULL, 0, &out), -ENOENT, WHY_CMD_HANDLE);
	CHECK_REFUSED(rereg(&r, MR_CHANGES_PD, r.mr, NULL, 0, &out), -EINVAL, WHY_CMD_HANDLE);
	CHECK_REFUSED(rereg(&r, 0, r.pd, NULL, 0, &out), -EINVAL, WHY_CMD_VALUE);
	r.mr = r.pd;
	CHECK_REFUSED(rereg(&r, MR_CHANGES_ACCESS, r.pd, NULL, 1, &out), -EINVAL, WHY_CMD_HANDLE);
	uv_world_end(&r.w);
}

/* --- advise_mr --- */

static int advise(struct rig *r, uint64_t advice, uint64_t flags, const struct ib_uverbs_sge *sge,
		  size_t bytes)
{
	struct cmd c = cmd_new(UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR);

	cmd_obj(&c, UVERBS_ATTR_ADVISE_MR_PD_HANDLE, r->pd);
	cmd_u64(&c, UVERBS_ATTR_ADVISE_MR_ADVICE, advice);
	cmd_u64(&c, UVERBS_ATTR_ADVISE_MR_FLAGS, flags);
	cmd_in(&c, UVERBS_ATTR_ADVISE_MR_SGE_LIST, sge, bytes);
	return cmd_run(&r->w, &c);
}

Test(uv_mr, advice_is_a_list)
{
	struct rig r = rig_new(0x41);
	struct ib_uverbs_sge sge[3];

	for (int i = 0; i < 3; i++)
		sge[i] = (struct ib_uverbs_sge){ (uintptr_t)r.memory + i, 8, r.key };
	for (uint64_t advice = 0; advice < 3; advice++)
		CHECK_INT(advise(&r, advice, advice & 1, sge, sizeof sge), 0);
	CHECK_REFUSED(advise(&r, 3, 0, sge, sizeof sge), -EOPNOTSUPP, WHY_CMD_UNSUPPORTED);
	CHECK_REFUSED(advise(&r, 0, 2, sge, sizeof sge), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(advise(&r, 0, 0, sge, sizeof sge - 1), -EINVAL, WHY_CMD_ATTRIBUTES);
	CHECK_REFUSED(advise(&r, 0, 0, sge, 0), -EINVAL, WHY_CMD_ATTRIBUTES);
	CHECK_REFUSED(advise(&r, 0, 0, NOWHERE, sizeof sge), -EFAULT, WHY_CMD_MEMORY);
	sge[2].addr += PAGE;
	CHECK_REFUSED(advise(&r, 0, 1, sge, sizeof sge), -EFAULT, WHY_CMD_MEMORY);
	CHECK_INT(advise(&r, 0, 1, sge, 2 * sizeof *sge), 0);
	sge[1].lkey ^= 1;
	CHECK_REFUSED(advise(&r, 0, 0, sge, sizeof sge), -ENOENT, WHY_CMD_HANDLE);
	uv_world_end(&r.w);
}

/* --- device memory --- */

struct dm {
	uint64_t start;
	uint32_t handle;
	uint16_t page;
};

static int dm_alloc(struct uv_world *w, uint64_t bytes, uint32_t align, uint64_t type,
		    struct dm *out)
{
	struct cmd c = cmd_new(UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC);
	int rc;

	cmd_obj(&c, UVERBS_ATTR_ALLOC_DM_HANDLE, 0);
	cmd_u64(&c, UVERBS_ATTR_ALLOC_DM_LENGTH, bytes);
	cmd_u32(&c, UVERBS_ATTR_ALLOC_DM_ALIGNMENT, align);
	cmd_u64(&c, MLX5_IB_ATTR_ALLOC_DM_REQ_TYPE, type);
	cmd_out(&c, MLX5_IB_ATTR_ALLOC_DM_RESP_START_OFFSET, &out->start, sizeof out->start);
	cmd_out(&c, MLX5_IB_ATTR_ALLOC_DM_RESP_PAGE_INDEX, &out->page, sizeof out->page);
	rc = cmd_run(w, &c);
	out->handle = (uint32_t)cmd_find(&c, UVERBS_ATTR_ALLOC_DM_HANDLE)->data;
	return rc;
}

static int dm_free(const struct uv_world *w, uint32_t handle)
{
	return obj_destroy(w, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_FREE, UVERBS_ATTR_FREE_DM_HANDLE,
			   handle, 0);
}

static int dm_map(struct uv_world *w, uint32_t page, size_t bytes, void **out)
{
	uint64_t pgoff = (uint64_t)(page >> 8) << 16 | MLX5_IB_MMAP_DEVICE_MEM << 8 | (page & 0xff);

	return uv_mmap(w->file, NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, pgoff * PAGE, out);
}

static int dm_register(struct uv_world *w, const struct dm *dm, uint32_t pd, uint64_t offset,
		       uint64_t bytes, uint64_t access, uint32_t *key_out, uint32_t *mr_out)
{
	struct cmd c = cmd_new(UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG);
	uint32_t rkey;
	int rc;

	cmd_obj(&c, UVERBS_ATTR_REG_DM_MR_HANDLE, 0);
	cmd_u64(&c, UVERBS_ATTR_REG_DM_MR_OFFSET, offset);
	cmd_u64(&c, UVERBS_ATTR_REG_DM_MR_LENGTH, bytes);
	cmd_obj(&c, UVERBS_ATTR_REG_DM_MR_PD_HANDLE, pd);
	cmd_u64(&c, UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS, access);
	cmd_obj(&c, UVERBS_ATTR_REG_DM_MR_DM_HANDLE, dm->handle);
	cmd_out(&c, UVERBS_ATTR_REG_DM_MR_RESP_LKEY, key_out, sizeof *key_out);
	cmd_out(&c, UVERBS_ATTR_REG_DM_MR_RESP_RKEY, &rkey, sizeof rkey);
	rc = cmd_run(w, &c);
	*mr_out = (uint32_t)cmd_find(&c, UVERBS_ATTR_REG_DM_MR_HANDLE)->data;
	return rc;
}

#define DM_RW	(KEY_LOCAL_WRITE | KEY_REMOTE_WRITE | KEY_REMOTE_READ | KEY_ZERO_BASED)

Test(uv_mr, device_memory_is_seen_by_both)
{
	struct uv_world w = uv_world_new();
	uint32_t pd = pd_alloc(&w), key, mr;
	struct iovec v;
	struct dm dm;
	uint8_t *map;

	CHECK_INT(dm_alloc(&w, 5000, 0, 0, &dm), 0);
	CHECK_INT(dm.start, 0);
	CHECK_INT(dm_map(&w, dm.page, 2 * PAGE, (void **)&map), 0);
	CHECK_INT(dm_register(&w, &dm, pd, 100, 4900, DM_RW, &key, &mr), 0);
	CHECK_INT(key_check(&w.dev->keys, key, 1, KEY_LOCAL_WRITE, 0, 4900, &v), WHY_NONE);
	map[100] = 42;
	CHECK_INT(*(uint8_t *)v.iov_base, 42);
	((uint8_t *)v.iov_base)[4899] = 43;
	CHECK_INT(map[4999], 43);
	CHECK_REFUSED(dm_free(&w, dm.handle), -EBUSY, WHY_CMD_BUSY);
	CHECK_INT(mr_free(&w, mr), 0);
	CHECK_INT(dm_free(&w, dm.handle), 0);
	CHECK_INT(munmap(map, 2 * PAGE), 0);
	uv_world_end(&w);
}

Test(uv_mr, device_memory_values)
{
	struct uv_world w = uv_world_new();
	struct dm dm;

	CHECK_REFUSED(dm_alloc(&w, 0, 0, 0, &dm), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(dm_alloc(&w, 64, 13, 0, &dm), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(dm_alloc(&w, 64, 0, 1, &dm), -EOPNOTSUPP, WHY_CMD_UNSUPPORTED);
	CHECK_REFUSED(dm_alloc(&w, 131073, 0, 0, &dm), -ENOMEM, WHY_CMD_LIMIT);
	CHECK_REFUSED(dm_alloc(&w, UINT64_MAX, 0, 0, &dm), -ENOMEM, WHY_CMD_LIMIT);
	CHECK_INT(dm_alloc(&w, 131072, 12, 0, &dm), 0);
	CHECK_REFUSED(dm_alloc(&w, 1, 0, 0, &dm), -ENOMEM, WHY_CMD_LIMIT);
	uv_world_end(&w);
}

/* First fit, and what was freed is free, with nothing left in it. */
Test(uv_mr, device_memory_is_used_again)
{
	struct uv_world w = uv_world_new();
	struct dm dm[4], big;
	uint8_t *map;

	for (int i = 0; i < 4; i++)
		CHECK_INT(dm_alloc(&w, 8 * PAGE, 0, 0, &dm[i]), 0);
	CHECK_INT(dm_map(&w, dm[1].page, 8 * PAGE, (void **)&map), 0);
	memset(map, 7, 8 * PAGE);
	CHECK_INT(dm_free(&w, dm[1].handle), 0);
	CHECK_INT(dm_free(&w, dm[3].handle), 0);
	CHECK_REFUSED(dm_alloc(&w, 9 * PAGE, 0, 0, &big), -ENOMEM, WHY_CMD_LIMIT);
	CHECK_INT(dm_alloc(&w, 8 * PAGE, 0, 0, &big), 0);
	CHECK_INT(big.page, dm[1].page);
	for (size_t i = 0; i < 8 * PAGE; i++)
		CHECK_INT(map[i], 0);
	CHECK_INT(dm_free(&w, dm[2].handle), 0);
	CHECK_INT(dm_alloc(&w, 16 * PAGE, 0, 0, &big), 0);
	uv_world_end(&w);
}

Test(uv_mr, device_memory_is_mapped_as_a_whole)
{
	struct uv_world w = uv_world_new();
	struct dm dm;
	void *map;

	CHECK_INT(dm_alloc(&w, 3 * PAGE, 0, 0, &dm), 0);
	CHECK_REFUSED(dm_map(&w, dm.page, 2 * PAGE, &map), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(dm_map(&w, dm.page, 4 * PAGE, &map), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(dm_map(&w, dm.page + 1u, 2 * PAGE, &map), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(dm_map(&w, 32, PAGE, &map), -EINVAL, WHY_CMD_VALUE);
	CHECK_INT(dm_map(&w, dm.page, 3 * PAGE, &map), 0);
	uv_world_end(&w);
}

Test(uv_mr, a_region_stays_inside_of_its_device_memory)
{
	static const struct { uint64_t offset, bytes, access; int rc; } row[] = {
		{ 0, 100, DM_RW, 0 }, { 100, 0, DM_RW, 0 }, { 64, 36, DM_RW | 1u << 25, 0 },
		{ 0, 101, DM_RW, -EINVAL }, { 101, 0, DM_RW, -EINVAL }, { 64, 37, DM_RW, -EINVAL },
		{ UINT64_MAX, 2, DM_RW, -EINVAL }, { 2, UINT64_MAX, DM_RW, -EINVAL },
		{ 0, 64, DM_RW & ~KEY_ZERO_BASED, -EINVAL },
		{ 0, 64, DM_RW & ~KEY_LOCAL_WRITE, -EINVAL },
		{ 0, 64, DM_RW | KEY_MW_BIND, -EINVAL }, { 0, 64, DM_RW | KEY_ON_DEMAND, -EINVAL },
		{ 0, 64, DM_RW | 1u << 9, -EINVAL },
	};
	struct uv_world w = uv_world_new();
	uint32_t pd = pd_alloc(&w), key, mr;
	struct dm dm;

	CHECK_INT(dm_alloc(&w, 100, 0, 0, &dm), 0);	/* two units are there, but not asked for */
	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		CHECK_INT(dm_register(&w, &dm, pd, row[i].offset, row[i].bytes, row[i].access, &key,
				      &mr), row[i].rc);
	uv_world_end(&w);
}

Test(uv_mr, device_memory_is_told_of)
{
	struct uv_world w = uv_world_new();
	struct cmd c = cmd_new(UVERBS_OBJECT_DM, MLX5_IB_METHOD_DM_QUERY);
	uint64_t start = 1, bytes = 0;
	uint16_t page = 0xffff;
	struct dm first, dm;

	CHECK_INT(dm_alloc(&w, 64, 0, 0, &first), 0);
	CHECK_INT(dm_alloc(&w, 100, 0, 0, &dm), 0);
	cmd_obj(&c, MLX5_IB_ATTR_QUERY_DM_REQ_HANDLE, dm.handle);
	cmd_out(&c, MLX5_IB_ATTR_QUERY_DM_RESP_START_OFFSET, &start, sizeof start);
	cmd_out(&c, MLX5_IB_ATTR_QUERY_DM_RESP_PAGE_INDEX, &page, sizeof page);
	cmd_out(&c, MLX5_IB_ATTR_QUERY_DM_RESP_LENGTH, &bytes, sizeof bytes);
	CHECK_INT(cmd_run(&w, &c), 0);
	CHECK_INT(start, 0);
	CHECK_INT(page, dm.page);
	CHECK_INT(bytes, 128);
	uv_world_end(&w);
}
