/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection domains and memory regions: what may be registered, and what the key then
 * covers.
 */
#include "tests/unit/obj_world.h"

#define RW	(KEY_LOCAL_WRITE | KEY_REMOTE_WRITE | KEY_REMOTE_READ)
#define ADDR(p)	((uint64_t)(uintptr_t)(p))

static struct emu_dev *dev;
static struct emu_pd *pd;
static uint8_t *memory;			/* four pages */

static void start(void)
{
	dev = world_dev();
	CHECK_INT(pd_create(dev, &pd), 0);
	memory = world_pages(4);
}

TestSuite(mr, .init = start);

static int reg(uint64_t start_addr, uint64_t bytes, uint32_t access)
{
	struct emu_mr *mr;
	int rc = mr_create(dev, pd, start_addr, bytes, start_addr, access, &mr);

	if (!rc)
		CHECK_INT(mr_destroy(dev, mr), 0);
	return rc;
}

Test(mr, a_region_covers_what_it_says)
{
	struct emu_mr *mr;
	struct iovec v;

	CHECK_INT(mr_create(dev, pd, ADDR(memory + 3), 5, ADDR(memory + 3), RW, &mr), 0);
	CHECK_INT(mr->obj.type, OBJ_MR);
	CHECK_INT(pd->obj.users, 1);
	CHECK_INT(key_check(&dev->keys, mr->key, pd->pdn, RW, ADDR(memory + 3), 5, &v), WHY_NONE);
	cr_assert_eq(v.iov_base, memory + 3);
	CHECK_INT(key_check(&dev->keys, mr->key, pd->pdn, RW, ADDR(memory + 3), 6, &v),
		  WHY_KEY_RANGE);
	CHECK_INT(mr_destroy(dev, mr), 0);
	CHECK_INT(pd->obj.users, 0);
	CHECK_INT(pd_destroy(dev, pd), 0);
	world_end(dev);
}

Test(mr, an_iova_moves_the_addresses)
{
	struct emu_mr *mr;
	struct iovec v;

	CHECK_INT(mr_create(dev, pd, ADDR(memory + 5), 100, 0x10005, RW, &mr), 0);
	CHECK_INT(mr->iova, 0x10005);
	CHECK_INT(key_check(&dev->keys, mr->key, pd->pdn, RW, 0x10006, 99, &v), WHY_NONE);
	cr_assert_eq(v.iov_base, memory + 6);
	CHECK_INT(key_check(&dev->keys, mr->key, pd->pdn, RW, ADDR(memory + 5), 1, &v),
		  WHY_KEY_RANGE);
	CHECK_INT(mr_destroy(dev, mr), 0);
}

Test(mr, a_zero_based_region_starts_at_nothing)
{
	struct emu_mr *mr;
	struct iovec v;

	CHECK_INT(mr_create(dev, pd, ADDR(memory + 5), 100, ADDR(memory + 5),
			    RW | KEY_ZERO_BASED, &mr), 0);
	CHECK_INT(key_check(&dev->keys, mr->key, pd->pdn, RW, 0, 100, &v), WHY_NONE);
	cr_assert_eq(v.iov_base, memory + 5);
	CHECK_INT(key_check(&dev->keys, mr->key, pd->pdn, RW, 1, 100, &v), WHY_KEY_RANGE);
	CHECK_INT(mr_destroy(dev, mr), 0);
}

Test(mr, values_are_checked)
{
	static const struct { uint32_t access; int rc; enum why why; } row[] = {
		{ KEY_REMOTE_WRITE, -EINVAL, WHY_CMD_VALUE },
		{ KEY_REMOTE_ATOMIC, -EINVAL, WHY_CMD_VALUE },
		{ KEY_REMOTE_ATOMIC | KEY_REMOTE_READ, -EINVAL, WHY_CMD_VALUE },
		{ 1u << 8, -EINVAL, WHY_CMD_VALUE }, { 1u << 9, -EINVAL, WHY_CMD_VALUE },
		{ 1u << 19, -EINVAL, WHY_CMD_VALUE }, { 1u << 30, -EINVAL, WHY_CMD_VALUE },
		{ 1u << 31, -EINVAL, WHY_CMD_VALUE },
		{ KEY_LOCAL_WRITE | KEY_ON_DEMAND, -EOPNOTSUPP, WHY_CMD_UNSUPPORTED },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		CHECK_REFUSED(reg(ADDR(memory), 64, row[i].access), row[i].rc, row[i].why);
	CHECK_REFUSED(reg(ADDR(memory), 0, RW), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(reg(0, 0, RW), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(reg(ADDR(memory), UINT64_MAX, RW), -EINVAL, WHY_CMD_VALUE);
	CHECK_INT(pd->obj.users, 0);
	CHECK_INT(dev->keys.indices.taken, 0);
}

Test(mr, rights_that_are_good)
{
	static const uint32_t good[] = {
		0, KEY_LOCAL_WRITE, KEY_REMOTE_READ, KEY_MW_BIND, RW | KEY_REMOTE_ATOMIC,
		KEY_REMOTE_ATOMIC | KEY_LOCAL_WRITE, KEY_HUGETLB, KEY_RELAXED_ORDERING,
		1u << 25, 0x3ff00000,
	};
	uint64_t before = world_why.made;

	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		CHECK_INT(reg(ADDR(memory), 64, good[i]), 0);
	CHECK_INT(world_why.made, before);
}

Test(mr, page_offsets_of_address_and_iova_agree)
{
	struct emu_mr *mr;

	CHECK_REFUSED(mr_create(dev, pd, ADDR(memory), 64, ADDR(memory) + 1, RW, &mr), -EINVAL,
		      WHY_CMD_VALUE);
	CHECK_REFUSED(mr_create(dev, pd, ADDR(memory), 64, UINT64_MAX, RW, &mr),
		      -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(mr_create(dev, pd, ADDR(memory), 0x2000, -0x1000ull, RW, &mr), -EINVAL,
		      WHY_CMD_VALUE);
	CHECK_INT(mr_create(dev, pd, ADDR(memory), 0x2000, 0x10000, RW, &mr), 0);
	CHECK_INT(mr_destroy(dev, mr), 0);
}

Test(mr, memory_is_there_with_the_right_protection)
{
	uint8_t *none = world_pages(40);

	CHECK_REFUSED(reg(4096, 4096, RW), -EFAULT, WHY_CMD_MEMORY);
	CHECK_REFUSED(reg(0, 4096, 0), -EFAULT, WHY_CMD_MEMORY);
	CHECK_REFUSED(reg(0xffff800000000000ull, 4096, 0), -EFAULT, WHY_CMD_MEMORY);
	mprotect(none, WORLD_PAGE, PROT_READ);
	CHECK_INT(reg(ADDR(none), 100, 0), 0);
	CHECK_INT(reg(ADDR(none), 100, KEY_REMOTE_READ), 0);
	CHECK_REFUSED(reg(ADDR(none), 100, KEY_LOCAL_WRITE), -EFAULT, WHY_CMD_MEMORY);
	CHECK_REFUSED(reg(ADDR(none), 40 * WORLD_PAGE, RW), -EFAULT, WHY_CMD_MEMORY);
	CHECK_INT(reg(ADDR(none + WORLD_PAGE), 39 * WORLD_PAGE, RW), 0);
	mprotect(none, WORLD_PAGE, PROT_NONE);
	CHECK_REFUSED(reg(ADDR(none), 100, 0), -EFAULT, WHY_CMD_MEMORY);
}

Test(mr, a_region_may_be_registered_many_times)
{
	enum { MANY = 4096 };
	static struct emu_mr *mr[MANY + 1];

	for (int i = 0; i < MANY; i++) {
		CHECK_INT(mr_create(dev, pd, ADDR(memory), 64, ADDR(memory), RW, &mr[i]), 0);
		cr_assert(i == 0 || mr[i]->key != mr[i - 1]->key);
	}
	CHECK_REFUSED(mr_create(dev, pd, ADDR(memory), 64, ADDR(memory), RW, &mr[MANY]), -ENOMEM,
		      WHY_CMD_LIMIT);
	CHECK_INT(pd->obj.users, MANY);
	for (int i = 0; i < MANY; i++)
		CHECK_INT(mr_destroy(dev, mr[i]), 0);
	CHECK_INT(pd_destroy(dev, pd), 0);
	world_end(dev);
}

Test(mr, a_region_in_use_stays)
{
	struct emu_mr *mr;

	CHECK_INT(mr_create(dev, pd, ADDR(memory), 64, ADDR(memory), RW, &mr), 0);
	mr->obj.users = 1;
	CHECK_REFUSED(mr_destroy(dev, mr), -EBUSY, WHY_CMD_BUSY);
	mr->obj.users = 0;
	CHECK_REFUSED(pd_destroy(dev, pd), -EBUSY, WHY_CMD_BUSY);
	CHECK_INT(mr_destroy(dev, mr), 0);
	CHECK_INT(pd_destroy(dev, pd), 0);
}

Test(mr, domains_are_distinct_and_run_out)
{
	struct emu_pd *other, *last = NULL;

	for (unsigned i = 1; i < world_profile.max_pd; i++) {
		CHECK_INT(pd_create(dev, &other), 0);
		CHECK_INT(other->obj.type, OBJ_PD);
		cr_assert_neq(other->pdn, pd->pdn);
		cr_assert_neq(other->pdn, 0);
		last = other;
	}
	CHECK_REFUSED(pd_create(dev, &other), -ENOMEM, WHY_CMD_LIMIT);
	CHECK_INT(pd_destroy(dev, last), 0);
	CHECK_INT(pd_create(dev, &other), 0);
}
