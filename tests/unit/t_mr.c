/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection domains and memory regions: what may be registered, and what the key then
 * covers.
 */
#include <sys/resource.h>
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

/* --- on demand --- */

#define ODP	(RW | KEY_ON_DEMAND)

/* Nothing of it is touched or looked up before it is needed. */
Test(mr, on_demand_memory_need_not_be_there)
{
	uint8_t *gone = world_pages(4);
	struct iovec v;
	struct emu_mr *mr;

	munmap(gone, 4 * WORLD_PAGE);
	CHECK_INT(mr_create(dev, pd, ADDR(gone), 4 * WORLD_PAGE, ADDR(gone), ODP, &mr), 0);
	CHECK_INT(key_check(&dev->keys, mr->key, pd->pdn, RW, ADDR(gone), 8, &v), WHY_NONE);
	cr_assert_eq(v.iov_base, gone);
	CHECK_INT(mr_destroy(dev, mr), 0);
	CHECK_REFUSED(reg(ADDR(memory), 0, ODP), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(reg(0x10000, UINT64_MAX - 0x8000, ODP), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(reg(MEM_NOWHERE, 4096, ODP), -EFAULT, WHY_CMD_MEMORY);
}

Test(mr, a_region_of_everything_covers_what_an_application_can_have)
{
	struct iovec v;
	struct emu_mr *mr;

	CHECK_INT(mr_create(dev, pd, 0, UINT64_MAX, 0, ODP, &mr), 0);
	CHECK_INT(mr->bytes, -1);
	CHECK_INT(key_check(&dev->keys, mr->key, pd->pdn, RW, ADDR(memory) + 5, 100, &v),
		  WHY_NONE);
	cr_assert_eq(v.iov_base, memory + 5);
	CHECK_INT(key_check(&dev->keys, mr->key, pd->pdn, RW, 0, 1, &v), WHY_NONE);
	CHECK_INT(key_check(&dev->keys, mr->key, pd->pdn, RW, MEM_NOWHERE, 1, &v), WHY_KEY_RANGE);
	CHECK_INT(key_check(&dev->keys, mr->key, pd->pdn, RW, UINT64_MAX, 1, &v), WHY_KEY_RANGE);
	CHECK_INT(mr_destroy(dev, mr), 0);
	CHECK_REFUSED(reg(0, UINT64_MAX, RW), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(reg(0, UINT64_MAX, ODP | KEY_HUGETLB), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(mr_create(dev, pd, 0, UINT64_MAX, 0x10000, ODP, &mr), -EINVAL,
		      WHY_CMD_VALUE);
}

static int advise(enum mr_advice advice, bool waits, uint64_t addr, uint32_t bytes, uint32_t key)
{
	return mr_advise(dev, pd, advice, waits, &(struct mr_range){ addr, bytes, key });
}

Test(mr, advice_is_for_on_demand_regions_of_the_domain)
{
	struct emu_mr *pinned, *read_only, *mr;
	struct emu_pd *other;

	CHECK_INT(mr_create(dev, pd, ADDR(memory), 64, ADDR(memory), RW, &pinned), 0);
	CHECK_INT(mr_create(dev, pd, ADDR(memory), 64, ADDR(memory), KEY_ON_DEMAND, &read_only), 0);
	CHECK_INT(mr_create(dev, pd, ADDR(memory), 64, ADDR(memory), ODP, &mr), 0);
	for (enum mr_advice a = ADVICE_READ; a < ADVICE_COUNT; a++) {
		CHECK_INT(advise(a, false, mr->iova, 64, mr->key), 0);
		CHECK_INT(advise(a, true, mr->iova, 64, mr->key), 0);
	}
	CHECK_INT(advise(ADVICE_READ, true, mr->iova, 64, read_only->key), 0);
	CHECK_REFUSED(advise(ADVICE_WRITE, true, mr->iova, 64, read_only->key), -EPERM,
		      WHY_CMD_VALUE);
	CHECK_REFUSED(advise(ADVICE_READ, false, mr->iova, 64, pinned->key), -EINVAL,
		      WHY_CMD_VALUE);
	CHECK_REFUSED(advise(ADVICE_READ, false, mr->iova, 64, mr->key ^ 1), -ENOENT,
		      WHY_CMD_HANDLE);
	CHECK_REFUSED(advise(ADVICE_READ, false, mr->iova, 64, 0), -ENOENT, WHY_CMD_HANDLE);
	CHECK_INT(pd_create(dev, &other), 0);
	CHECK_REFUSED(mr_advise(dev, other, ADVICE_READ, false,
				&(struct mr_range){ mr->iova, 64, mr->key }), -EPERM,
		      WHY_CMD_VALUE);
}

/* Who does not wait is told nothing. */
Test(mr, advice_about_memory_that_is_not_there)
{
	uint8_t *pages = world_pages(4);
	struct emu_mr *mr;

	CHECK_INT(mr_create(dev, pd, ADDR(pages), 4 * WORLD_PAGE, ADDR(pages), ODP, &mr), 0);
	CHECK_REFUSED(advise(ADVICE_READ, true, mr->iova, 4 * WORLD_PAGE + 1, mr->key), -EFAULT,
		      WHY_CMD_MEMORY);
	CHECK_INT(advise(ADVICE_READ, false, mr->iova, 4 * WORLD_PAGE + 1, mr->key), 0);
	mprotect(pages, WORLD_PAGE, PROT_READ);
	CHECK_INT(advise(ADVICE_READ, true, mr->iova, 64, mr->key), 0);
	CHECK_REFUSED(advise(ADVICE_WRITE, true, mr->iova, 64, mr->key), -EFAULT, WHY_CMD_MEMORY);
	munmap(pages, 4 * WORLD_PAGE);
	CHECK_REFUSED(advise(ADVICE_READ, true, mr->iova, 64, mr->key), -EFAULT, WHY_CMD_MEMORY);
	CHECK_INT(advise(ADVICE_NO_FAULT, true, mr->iova, 64, mr->key), 0);
	CHECK_INT(advise(ADVICE_READ, false, mr->iova, 64, mr->key), 0);
}

/* --- changed --- */

static struct emu_mr *changeable(uint32_t access)
{
	struct emu_mr *mr;

	CHECK_INT(mr_create(dev, pd, ADDR(memory), 64, ADDR(memory), access, &mr), 0);
	return mr;
}

static enum why allows(const struct emu_mr *mr, const struct emu_pd *of, uint32_t access,
		       uint64_t addr)
{
	struct iovec v;

	return key_check(&dev->keys, mr->key, of->pdn, access, addr, 64, &v);
}

/* Each of the three alone and together; the rest stays, the key too. */
Test(mr, a_region_changes_in_what_was_asked_only)
{
	for (uint32_t what = 1; what <= MR_CHANGES_ALL; what++) {
		uint64_t place = ADDR(memory + WORLD_PAGE);
		const struct mr_ask ask = { place, 64, place, KEY_REMOTE_READ };
		struct emu_mr *mr = changeable(RW);
		uint32_t key = mr->key;
		struct emu_pd *new;
		bool moves = what & MR_CHANGES_PLACE, loses = what & MR_CHANGES_ACCESS;

		CHECK_INT(pd_create(dev, &new), 0);
		CHECK_INT(mr_change(dev, mr, what, new, &ask), 0);
		CHECK_INT(mr->key, key);
		CHECK_INT(new->obj.users, what & MR_CHANGES_PD ? 1 : 0);
		new = what & MR_CHANGES_PD ? new : pd;
		CHECK_INT(new->obj.users, 1);
		CHECK_INT(allows(mr, new, KEY_REMOTE_READ, moves ? place : ADDR(memory)), WHY_NONE);
		CHECK_INT(allows(mr, new, 0, moves ? ADDR(memory) : place), WHY_KEY_RANGE);
		CHECK_INT(allows(mr, new, RW, moves ? place : ADDR(memory)),
			  loses ? WHY_KEY_RIGHTS : WHY_NONE);
		CHECK_INT(mr_destroy(dev, mr), 0);
	}
}

Test(mr, a_change_that_is_refused_changes_nothing)
{
	const struct mr_ask good = { ADDR(memory), 64, ADDR(memory), RW };
	const struct {
		uint32_t what;
		struct mr_ask ask;
		int rc;
		enum why why;
	} row[] = {
		{ 0, good, -EINVAL, WHY_CMD_VALUE },
		{ 8, good, -EINVAL, WHY_CMD_VALUE },
		{ MR_CHANGES_ALL + 1, good, -EINVAL, WHY_CMD_VALUE },
		{ MR_CHANGES_PLACE, { ADDR(memory), 0, ADDR(memory), 0 }, -EINVAL, WHY_CMD_VALUE },
		{ MR_CHANGES_PLACE, { ADDR(memory), 64, ADDR(memory) + 1, 0 }, -EINVAL,
		  WHY_CMD_VALUE },
		{ MR_CHANGES_PLACE, { 4096, 64, 4096, 0 }, -EFAULT, WHY_CMD_MEMORY },
		{ MR_CHANGES_ACCESS, { 0, 0, 0, KEY_REMOTE_WRITE }, -EINVAL, WHY_CMD_VALUE },
		{ MR_CHANGES_ACCESS, { 0, 0, 0, 1u << 9 }, -EINVAL, WHY_CMD_VALUE },
	};
	struct emu_mr *mr = changeable(RW);

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		CHECK_REFUSED(mr_change(dev, mr, row[i].what, pd, &row[i].ask), row[i].rc,
			      row[i].why);
		CHECK_INT(allows(mr, pd, RW, ADDR(memory)), WHY_NONE);
	}
	CHECK_INT(pd->obj.users, 1);
}

/* The memory must allow what the new rights need. */
Test(mr, new_rights_are_asked_of_the_memory)
{
	const struct mr_ask writes = { .access = KEY_LOCAL_WRITE };
	struct emu_mr *mr;

	mprotect(memory, WORLD_PAGE, PROT_READ);
	mr = changeable(0);
	CHECK_REFUSED(mr_change(dev, mr, MR_CHANGES_ACCESS, NULL, &writes), -EFAULT,
		      WHY_CMD_MEMORY);
	mprotect(memory, WORLD_PAGE, PROT_READ | PROT_WRITE);
	CHECK_INT(mr_change(dev, mr, MR_CHANGES_ACCESS, NULL, &writes), 0);
}

/* Zero-based is a right like others: addresses come back when it goes. */
Test(mr, a_region_may_become_zero_based_and_back)
{
	struct emu_mr *mr = changeable(RW);

	CHECK_INT(mr_change(dev, mr, MR_CHANGES_ACCESS, NULL,
			    &(struct mr_ask){ .access = RW | KEY_ZERO_BASED }), 0);
	CHECK_INT(allows(mr, pd, RW, 0), WHY_NONE);
	CHECK_INT(allows(mr, pd, RW, ADDR(memory)), WHY_KEY_RANGE);
	CHECK_INT(mr_change(dev, mr, MR_CHANGES_ACCESS, NULL, &(struct mr_ask){ .access = RW }), 0);
	CHECK_INT(allows(mr, pd, RW, ADDR(memory)), WHY_NONE);
}

/* --- pinned --- */

static void memlock(uint64_t pages)
{
	struct rlimit limit;

	getrlimit(RLIMIT_MEMLOCK, &limit);
	limit.rlim_cur = pages * WORLD_PAGE;
	CHECK_INT(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
}

Test(mr, pinned_pages_are_counted)
{
	struct emu_mr *mr;

	CHECK_INT(mr_create(dev, pd, ADDR(memory), 2 * WORLD_PAGE, ADDR(memory), RW, &mr), 0);
	CHECK_INT(dev->pinned_pages, 2);
	CHECK_INT(mr_change(dev, mr, MR_CHANGES_PLACE, NULL,
			    &(struct mr_ask){ ADDR(memory) + 4095, 2, ADDR(memory) + 4095, 0 }), 0);
	CHECK_INT(dev->pinned_pages, 2);
	CHECK_INT(mr_change(dev, mr, MR_CHANGES_PLACE, NULL,
			    &(struct mr_ask){ ADDR(memory), 1, ADDR(memory), 0 }), 0);
	CHECK_INT(dev->pinned_pages, 1);
	CHECK_INT(mr_change(dev, mr, MR_CHANGES_ACCESS, NULL, &(struct mr_ask){ .access = ODP }),
		  0);
	CHECK_INT(dev->pinned_pages, 0);
	CHECK_INT(mr_destroy(dev, mr), 0);
	mr = changeable(RW);
	CHECK_INT(mr_destroy(dev, mr), 0);
	CHECK_INT(dev->pinned_pages, 0);
}

Test(mr, no_more_is_pinned_than_the_limit_allows_if_it_is_enforced)
{
	struct emu_mr *mr, *more;

	memlock(3);
	CHECK_INT(reg(ADDR(memory), 4 * WORLD_PAGE, RW), 0);
	dev->options.enforces_memlock = true;
	CHECK_REFUSED(reg(ADDR(memory), 4 * WORLD_PAGE, RW), -ENOMEM, WHY_CMD_LIMIT);
	CHECK_INT(dev->pinned_pages, 0);
	CHECK_INT(reg(ADDR(memory), 4 * WORLD_PAGE, ODP), 0);
	CHECK_INT(mr_create(dev, pd, ADDR(memory), 2 * WORLD_PAGE, ADDR(memory), RW, &mr), 0);
	CHECK_REFUSED(mr_create(dev, pd, ADDR(memory), 2 * WORLD_PAGE, ADDR(memory), RW, &more),
		      -ENOMEM, WHY_CMD_LIMIT);
	CHECK_REFUSED(mr_change(dev, mr, MR_CHANGES_PLACE, NULL,
				&(struct mr_ask){ ADDR(memory), 4 * WORLD_PAGE, ADDR(memory), 0 }),
		      -ENOMEM, WHY_CMD_LIMIT);
	CHECK_INT(mr_create(dev, pd, ADDR(memory), WORLD_PAGE, ADDR(memory), RW, &more), 0);
	CHECK_INT(mr_destroy(dev, mr), 0);
	CHECK_INT(mr_destroy(dev, more), 0);
	CHECK_INT(reg(ADDR(memory), 3 * WORLD_PAGE, RW), 0);
}

/* --- device memory --- */

Test(mr, a_region_of_device_memory_holds_it)
{
	struct emu_obj backing = { .type = OBJ_DM };
	struct mr_ask ask = { ADDR(memory) + 64, 64, 0, RW | KEY_ZERO_BASED };
	struct emu_mr *mr;
	struct iovec v;

	CHECK_INT(mr_create_device(dev, pd, &backing, &ask, &mr), 0);
	CHECK_INT(backing.users, 1);
	CHECK_INT(dev->pinned_pages, 0);
	CHECK_INT(key_check(&dev->keys, mr->key, pd->pdn, RW, 0, 64, &v), WHY_NONE);
	cr_assert_eq(v.iov_base, memory + 64);
	CHECK_INT(key_check(&dev->keys, mr->key, pd->pdn, RW, 1, 64, &v), WHY_KEY_RANGE);
	CHECK_REFUSED(mr_change(dev, mr, MR_CHANGES_ACCESS, NULL, &ask), -EINVAL, WHY_CMD_VALUE);
	CHECK_INT(mr_destroy(dev, mr), 0);
	CHECK_INT(backing.users, 0);
	ask.access = RW;
	CHECK_REFUSED(mr_create_device(dev, pd, &backing, &ask, &mr), -EINVAL, WHY_CMD_VALUE);
	ask.access = KEY_ZERO_BASED | KEY_REMOTE_WRITE;
	CHECK_REFUSED(mr_create_device(dev, pd, &backing, &ask, &mr), -EINVAL, WHY_CMD_VALUE);
	ask.access = RW | KEY_ZERO_BASED | KEY_MW_BIND;
	CHECK_REFUSED(mr_create_device(dev, pd, &backing, &ask, &mr), -EINVAL, WHY_CMD_VALUE);
}
