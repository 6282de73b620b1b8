/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The longest message: max_msg_sz is 1 GiB, in one WRITE and one READ, verified.
 *
 * The source is a small file mapped again and again (of a length that no power of two
 * divides), the destination real memory, so that the case costs 1 GiB and not 2.
 * Rules: device-abi B.7 (max_msg 2^30), F.1 row 8 (longer fails with LOC_LEN).
 */
#include <sys/mman.h>
#include <string.h>
#include <unistd.h>
#include "harness/check.h"

#define GIB (UINT64_C(1) << 30)
#define TILE (UINT64_C(33) * 4096 * 257)
#define TILES (GIB / TILE + 2)

TestSuite(large, .timeout = 100);

static uint8_t *map_tiles(void)
{
	int fd = memfd_create("tiles", MFD_CLOEXEC);
	uint8_t *at = mmap(NULL, TILES * TILE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert(fd >= 0 && at != MAP_FAILED && !ftruncate(fd, TILE));
	for (uint64_t i = 0; i < TILES; i++)
		cr_assert_neq(mmap(at + i * TILE, TILE, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_FIXED, fd, 0), MAP_FAILED);
	close(fd);
	pattern_fill(at, TILE, 42);
	return at;
}

static uint8_t *map_target(void)
{
	uint8_t *at = mmap(NULL, GIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(at, MAP_FAILED);
	madvise(at, GIB, MADV_HUGEPAGE);
	return at;
}

static struct ibv_mr *reg(struct ibv_pd *pd, void *at, uint64_t bytes)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, at, bytes, ACCESS_ALL);

	cr_assert_not_null(mr, "reg_mr of %lu bytes", (unsigned long)bytes);
	return mr;
}

/* A and the other end share a process here, so memory of either is at hand. */
static void move(enum ibv_wr_opcode op)
{
	struct ibv_mr *src, *dst;
	uint8_t *from = map_tiles(), *to = map_target();
	bool is_read = op == IBV_WR_RDMA_READ;
	struct pair p;
	struct work w;

	pair_open(&p, ONE_THREAD, NULL);
	src = reg(p.a.pd, from, TILES * TILE);
	dst = reg(p.peer.here.pd, to, GIB);
	if (is_read) {
		ibv_dereg_mr(src);
		ibv_dereg_mr(dst);
		src = reg(p.peer.here.pd, from, TILES * TILE);
		dst = reg(p.a.pd, to, GIB);
	}
	w = pair_work(&p, op, GIB);
	w.sge[0].addr = (uintptr_t)(is_read ? to : from + 5);
	w.sge[0].lkey = is_read ? dst->lkey : src->lkey;
	w.remote_addr = (uintptr_t)(is_read ? from + 5 : to);
	w.rkey = is_read ? src->rkey : dst->rkey;
	must_post(&p, &w);
	await_ok(&p, 1, is_read ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE);
	cr_expect(!memcmp(to, from + 5, GIB), "1 GiB differs");
	ibv_dereg_mr(src);
	ibv_dereg_mr(dst);
	pair_close(&p);
	munmap(to, GIB);
	munmap(from, TILES * TILE);
}

Test(large, a_write_of_one_gib_arrives)
{
	move(IBV_WR_RDMA_WRITE);
}

Test(large, a_read_of_one_gib_arrives)
{
	move(IBV_WR_RDMA_READ);
}

/* F.1 row 8: one byte more than max_msg_sz is a local length error; nothing is sent. */
Test(large, a_message_longer_than_max_msg_sz_is_loc_len)
{
	uint8_t *at = map_tiles();
	struct ibv_mr *mr;
	struct pair p;
	struct work w;

	pair_open(&p, ONE_THREAD, NULL);
	mr = reg(p.a.pd, at, TILES * TILE);
	w = pair_work(&p, IBV_WR_RDMA_WRITE, GIB + 1);
	w.sge[0].addr = (uintptr_t)at;
	w.sge[0].lkey = mr->lkey;
	must_post(&p, &w);
	await_error(&p, 1, IBV_WC_LOC_LEN_ERR);
	check_states("after", &p, IBV_QPS_ERR, IBV_QPS_RTS);
	ibv_dereg_mr(mr);
	pair_close(&p);
}
