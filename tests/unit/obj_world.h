/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device for tests of emu/obj: a profile with small limits, one GID, memory that the
 * "application" owns.  Every test is a process of its own, so nothing is taken down.
 */
#ifndef TESTS_UNIT_OBJ_WORLD_H
#define TESTS_UNIT_OBJ_WORLD_H
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "emu/mem/mem.h"
#include "emu/obj/flow.h"
#include "emu/obj/obj.h"

#define WORLD_PAGE 4096u

/* errno values are printed by what they are, not by "is not equal". */
#define CHECK_INT(got, want)                                                                    \
	do {                                                                                    \
		long long got_ = (long long)(got), want_ = (long long)(want);                   \
		cr_assert(got_ == want_, "%s is %lld, want %s = %lld", #got, got_, #want, want_); \
	} while (0)

static const struct hw_profile world_profile = {
	.name = "test", .link = HW_LINK_ETHERNET, .max_mtu = 4, .gid_table = 16, .pkey_table = 1,
	.max_qp = 64, .max_qp_wr = 1024, .max_sge = 30, .max_cq = 64, .max_cqe = 1023,
	.max_mr = 4096, .max_pd = 64, .max_mw = 64, .max_rd_atomic = 16, .max_send_wqebb = 1024,
	.max_sq_desc_bytes = 1024, .max_rq_desc_bytes = 512, .comp_vectors = 4,
	.has_flow_steering = true,
};

static const uint8_t world_gid[16] = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 };
static const uint8_t world_peer[16] = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 2 };

static struct why_ring world_why;

/* Zeroed pages of the application. */
static inline uint8_t *world_pages(size_t count)
{
	void *pages = mmap(NULL, count * WORLD_PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert(pages != MAP_FAILED);
	return pages;
}

static inline struct emu_dev *world_dev(void)
{
	static struct emu_dev dev;

	dev.profile = &world_profile;
	dev.why = &world_why;
	dev.gid_count = 2;
	port_begin(&dev);
	memcpy(dev.gid[0].raw, world_gid, 16);
	CHECK_INT(mem_guard_init(), 0);
	CHECK_INT(key_table_init(&dev.keys, NULL, NULL), 0);
	CHECK_INT(numbers_init(&dev.qpns, 2, NULL, NULL), 0);
	CHECK_INT(numbers_init(&dev.cqns, 1, NULL, NULL), 0);
	CHECK_INT(numbers_init(&dev.pdns, 1, NULL, NULL), 0);
	CHECK_INT(numbers_init(&dev.srqns, 1, NULL, NULL), 0);
	CHECK_INT(numbers_init(&dev.wqns, 1, NULL, NULL), 0);
	CHECK_INT(flow_steering_begin(&dev), 0);
	return &dev;
}

static inline void world_end(struct emu_dev *dev)
{
	CHECK_INT(dev->qpns.taken + dev->cqns.taken + dev->pdns.taken + dev->srqns.taken +
			  dev->keys.indices.taken,
		  0);
	CHECK_INT(dev->wqns.taken + dev->flows.taken, 0);
	flow_steering_end(dev);
	numbers_free(&dev->qpns);
	numbers_free(&dev->cqns);
	numbers_free(&dev->pdns);
	numbers_free(&dev->srqns);
	numbers_free(&dev->wqns);
	key_table_free(&dev->keys);
}

/* Exactly one reason was noted since @made, and it is @why of a command. */
#define CHECK_WHY(before, want)                                                      \
	do {                                                                         \
		CHECK_INT(world_why.made, (before) + 1);                             \
		CHECK_INT(world_why.record[(world_why.made - 1) % WHY_KEPT].why, want); \
		CHECK_INT(world_why.record[(world_why.made - 1) % WHY_KEPT].side,    \
			  WHY_SIDE_COMMAND);                                         \
	} while (0)

/* @call fails with @rc and notes exactly @want. */
#define CHECK_REFUSED(call, rc, want)                  \
	do {                                           \
		uint64_t before_ = world_why.made;     \
		CHECK_INT(call, rc);                   \
		CHECK_WHY(before_, want);              \
	} while (0)
#endif
