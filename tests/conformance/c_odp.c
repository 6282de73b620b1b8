/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Regions that are paged on demand, the region of everything, the null region; advice.
 *
 * Rules: ibv_reg_mr(3), ibv_advise_mr(3), ibv_alloc_null_mr(3); device-abi D.
 */
#include <sys/mman.h>
#include <sys/resource.h>
#include <stdlib.h>
#include "harness/reverse.h"

#define ODP IBV_ACCESS_ON_DEMAND
#define PAGE 4096
#define WRITE IBV_WR_RDMA_WRITE
#define READ IBV_WR_RDMA_READ
#define FADD IBV_WR_ATOMIC_FETCH_AND_ADD
#define OK IBV_WC_SUCCESS
#define REM_ACC IBV_WC_REM_ACCESS_ERR

TestSuite(odp, .timeout = 60);

/* An address where nothing is and nobody else maps anything. */
static uint8_t *nowhere(void)
{
	return (uint8_t *)(uintptr_t)UINT64_C(0x180000000000);
}

static void map_at(uint8_t *at, size_t bytes, int prot)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;

	cr_assert_eq(mmap(at, bytes, prot, flags, -1, 0), at, "%s", strerror(errno));
}

static struct ibv_mr *must_register(struct pair *p, void *at, size_t bytes, unsigned access)
{
	struct ibv_mr *mr = ibv_reg_mr(p->a.pd, at, bytes, access);

	cr_assert_not_null(mr, "%s", strerror(errno));
	return mr;
}

Test(odp, the_device_says_what_it_can)
{
	const uint32_t all = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
			     IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;
	struct ibv_context *c = device_open();
	struct ibv_device_attr_ex x;

	cr_assert_not_null(c);
	cr_assert_eq(ibv_query_device_ex(c, NULL, &x), 0);
	cr_expect_eq(x.odp_caps.general_caps, IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
	cr_expect_eq(x.odp_caps.per_transport_caps.rc_odp_caps & all, all);
	cr_expect_eq(x.odp_caps.per_transport_caps.uc_odp_caps, 0);
	ibv_close_device(c);
}

/* Registered before it is mapped, used when it is, gone when it is gone. */
CASE_TABLE(odp, memory_counts_when_it_is_accessed, 3)
{
	static const enum ibv_wr_opcode ops[] = { WRITE, READ, FADD };
	struct ibv_mr *mr;
	struct pair p;

	pair_open(&p, where, NULL);
	mr = must_register(&p, nowhere(), 4 * PAGE, ACCESS_ALL | ODP);
	map_at(nowhere(), 4 * PAGE, PROT_READ | PROT_WRITE);
	REVERSE_EXPECT(&p, ops[row], nowhere() + PAGE, mr->rkey, 8, OK);
	cr_assert_eq(munmap(nowhere(), 4 * PAGE), 0);
	map_at(nowhere(), PAGE, PROT_READ | PROT_WRITE);
	REVERSE_EXPECT(&p, ops[row], nowhere(), mr->rkey, 8, OK);
	REVERSE_EXPECT(&p, ops[row], nowhere() + PAGE, mr->rkey, 8, REM_ACC);
	cr_assert_eq(munmap(nowhere(), PAGE), 0);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	pair_close(&p);
}

CASE_EACH(odp, local_memory_counts_when_it_is_accessed)
{
	struct ibv_mr *mr;
	struct pair p;
	struct work w;

	pair_open(&p, where, NULL);
	mr = must_register(&p, nowhere(), PAGE, IBV_ACCESS_LOCAL_WRITE | ODP);
	map_at(nowhere(), PAGE, PROT_READ | PROT_WRITE);
	pattern_fill(nowhere(), 64, 2);
	w = pair_work(&p, WRITE, 64);
	w.sge[0] = (struct ibv_sge){ (uintptr_t)nowhere(), 64, mr->lkey };
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	cr_expect_eq(peer_differs(&p.peer, 0, 64, 2), -1);
	cr_assert_eq(munmap(nowhere(), PAGE), 0);
	must_post(&p, &w);
	await_error(&p, 1, IBV_WC_LOC_PROT_ERR);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	pair_close(&p);
}

/* The key's rights hold as ever. */
CASE_EACH(odp, rights_are_those_of_the_region)
{
	struct ibv_mr *mr;
	struct pair p;

	pair_open(&p, where, NULL);
	mr = must_register(&p, p.a.buf, PAGE, IBV_ACCESS_REMOTE_READ | ODP);
	REVERSE_EXPECT(&p, READ, p.a.buf, mr->rkey, 64, OK);
	REVERSE_EXPECT(&p, WRITE, p.a.buf, mr->rkey, 64, REM_ACC);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	pair_close(&p);
}

static const struct { uint64_t at, bytes; unsigned access; int err; } registrations[] = {
	{ 0x180000000000, UINT64_C(1) << 40, ACCESS_ALL | ODP, 0 },
	{ 0, UINT64_MAX, ACCESS_ALL | ODP, 0 },
	{ 0, UINT64_MAX, ODP, 0 },
	{ 0, UINT64_MAX, ODP | IBV_ACCESS_HUGETLB, EINVAL },
	{ 0, UINT64_MAX, IBV_ACCESS_LOCAL_WRITE, EINVAL },
	{ 0x180000000000, 0, ODP, EINVAL },
	{ 0x180000000000, PAGE, ODP | IBV_ACCESS_REMOTE_WRITE, EINVAL },
	{ 0x180000000000, PAGE, ODP | 1 << 19, EINVAL },
	{ 0x180000000000, UINT64_MAX - 1000, ODP, EINVAL },
};

Test(odp, registration_rules)
{
	struct ibv_context *c = device_open();
	struct ibv_pd *pd = c ? ibv_alloc_pd(c) : NULL;

	cr_assert_not_null(pd);
	for (unsigned i = 0; i < ROWS(registrations); i++) {
		struct ibv_mr *mr;

		errno = 0;
		mr = ibv_reg_mr(pd, (void *)(uintptr_t)registrations[i].at, registrations[i].bytes,
				registrations[i].access);
		cr_expect_eq(mr == NULL, registrations[i].err != 0, "row %u", i);
		cr_expect_eq(errno, registrations[i].err, "row %u: %s", i, strerror(errno));
		if (mr)
			cr_expect_eq(ibv_dereg_mr(mr), 0);
	}
	ibv_dealloc_pd(pd);
	ibv_close_device(c);
}

/* ---- the region of everything ---- */

CASE_EACH(odp, an_implicit_region_is_all_memory)
{
	static uint8_t mine[64];
	struct ibv_mr *mr;
	struct pair p;

	pair_open(&p, where, NULL);
	mr = must_register(&p, NULL, SIZE_MAX, ACCESS_ALL | ODP);
	peer_fill(&p.peer, 0, 64, 3);
	REVERSE_EXPECT(&p, WRITE, (uintptr_t)mine, mr->rkey, 64, OK);
	cr_expect_eq(pattern_differs(mine, 64, 3), -1);
	map_at(nowhere(), PAGE, PROT_READ | PROT_WRITE);
	REVERSE_EXPECT(&p, WRITE, nowhere(), mr->rkey, 64, OK);
	cr_expect_eq(pattern_differs(nowhere(), 64, 3), -1);
	cr_assert_eq(munmap(nowhere(), PAGE), 0);
	REVERSE_EXPECT(&p, WRITE, nowhere(), mr->rkey, 64, REM_ACC);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	pair_close(&p);
}

/* Addresses that no application has, 0 among them, are errors and no crash. */
static const uint64_t odd_addresses[] = {
	0, 8, UINT64_C(1) << 47, UINT64_C(1) << 56, UINT64_C(1) << 62, UINT64_MAX - 7,
};

CASE_TABLE(odp, an_implicit_region_has_no_impossible_addresses, ROWS(odd_addresses))
{
	struct ibv_mr *mr;
	struct pair p;
	struct work w;

	pair_open(&p, where, NULL);
	mr = must_register(&p, NULL, SIZE_MAX, ACCESS_ALL | ODP);
	REVERSE_EXPECT(&p, READ, odd_addresses[row], mr->rkey, 8, REM_ACC);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	pair_close(&p);

	pair_open(&p, where, NULL);
	mr = must_register(&p, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE | ODP);
	w = pair_work(&p, WRITE, 8);
	w.sge[0] = (struct ibv_sge){ odd_addresses[row], 8, mr->lkey };
	must_post(&p, &w);
	await_error(&p, 1, IBV_WC_LOC_PROT_ERR);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	pair_close(&p);
}

CASE_EACH(odp, an_implicit_region_serves_sends_and_receives)
{
	struct work w, r;
	struct ibv_mr *mr;
	struct pair p;

	pair_open(&p, where, NULL);
	mr = must_register(&p, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE | ODP);
	pattern_fill(p.a.buf, 5000, 8);
	w = pair_work(&p, IBV_WR_SEND, 5000);
	w.sge[0].lkey = mr->lkey;
	r = pair_recv(&p, 4, 0, 5000);
	must_recv(&p, &r);
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_SEND);
	await_recv_ok(&p, 4, 5000);
	cr_expect_eq(peer_differs(&p.peer, 0, 5000, 8), -1);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	pair_close(&p);
}

/* ---- advice ---- */

static int advise(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, void *at,
		  uint32_t bytes, uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)at, bytes, lkey };

	return ibv_advise_mr(pd, advice, flags, &sge, 1);
}

#define FLUSH IBV_ADVISE_MR_FLAG_FLUSH

Test(odp, advice_and_its_errno)
{
	struct ibv_mr *odp, *read_only, *pinned;
	struct pair p;
	struct ibv_pd *other;

	pair_open(&p, ONE_THREAD, NULL);
	other = ibv_alloc_pd(p.a.context);
	odp = must_register(&p, p.a.buf, 4 * PAGE, IBV_ACCESS_LOCAL_WRITE | ODP);
	read_only = must_register(&p, p.a.buf, 4 * PAGE, ODP);
	pinned = must_register(&p, p.a.buf, 4 * PAGE, IBV_ACCESS_LOCAL_WRITE);
	for (int advice = IBV_ADVISE_MR_ADVICE_PREFETCH;
	     advice <= IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT; advice++)
		for (uint32_t flags = 0; flags <= FLUSH; flags++)
			cr_expect_eq(advise(p.a.pd, (enum ibv_advise_mr_advice)advice, flags,
					    p.a.buf, 4 * PAGE, odp->lkey), 0);
	cr_expect_eq(advise(p.a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, p.a.buf, 8,
			    read_only->lkey), EPERM);
	cr_expect_eq(advise(p.a.pd, 0, 0, p.a.buf, 8, pinned->lkey), EINVAL);
	cr_expect_eq(advise(p.a.pd, 0, 0, p.a.buf, 8, odp->lkey ^ 1), ENOENT);
	cr_expect_eq(advise(other, 0, 0, p.a.buf, 8, odp->lkey), EPERM);
	cr_expect_eq(advise(p.a.pd, 0, 2, p.a.buf, 8, odp->lkey), EINVAL);
	cr_expect_eq(advise(p.a.pd, 0, FLUSH, p.a.buf, 4 * PAGE + 1, odp->lkey), EFAULT);
	cr_expect_eq(advise(p.a.pd, (enum ibv_advise_mr_advice)17, 0, p.a.buf, 8, odp->lkey),
		     EOPNOTSUPP);
	ibv_dereg_mr(odp);
	ibv_dereg_mr(read_only);
	ibv_dereg_mr(pinned);
	ibv_dealloc_pd(other);
	pair_close(&p);
}

/* ---- the null region ---- */

CASE_EACH(odp, a_null_region_is_zeros)
{
	struct ibv_mr *null;
	struct pair p;
	struct work w;

	pair_open(&p, where, NULL);
	null = ibv_alloc_null_mr(p.a.pd);
	cr_assert_not_null(null, "%s", strerror(errno));
	cr_expect_eq(null->length, SIZE_MAX);
	peer_fill(&p.peer, 0, 256, 4);
	pattern_fill(p.a.buf, 256, 5);
	w = pair_work(&p, WRITE, 100);
	w.sge_count = 3;
	w.sge[1] = (struct ibv_sge){ 0x1234, 50, null->lkey };
	w.sge[2] = (struct ibv_sge){ p.ia.addr + 150, 100, p.ia.lkey };
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	memset(p.a.buf + 100, 0, 50);
	for (unsigned at = 0; at < 250; at += 50) {
		uint8_t got[50];

		peer_read(&p.peer, at, got, sizeof got);
		cr_expect(!memcmp(got, p.a.buf + at, sizeof got), "at %u", at);
	}
	cr_expect_eq(ibv_dereg_mr(null), 0);
	pair_close(&p);
}

CASE_EACH(odp, a_null_region_swallows_what_comes)
{
	struct ibv_recv_wr *bad, recv = { .wr_id = 6, .num_sge = 2 };
	struct ibv_sge sge[2];
	struct ibv_mr *null;
	struct pair p;
	struct work w;
	struct done d;

	pair_open(&p, where, NULL);
	null = ibv_alloc_null_mr(p.a.pd);
	cr_assert_not_null(null);
	pattern_fill(p.a.buf, 512, 6);
	w = pair_work(&p, READ, 4000);
	w.sge[0] = (struct ibv_sge){ 0, 4000, null->lkey };
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_RDMA_READ);
	w = pair_work(&p, FADD, 8);
	w.sge[0] = (struct ibv_sge){ 0, 8, null->lkey };
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_FETCH_ADD);
	cr_expect_eq(pattern_differs(p.a.buf, 512, 6), -1);
	sge[0] = (struct ibv_sge){ 0, 100, null->lkey };
	sge[1] = (struct ibv_sge){ p.ia.addr, 100, p.ia.lkey };
	recv.sg_list = sge;
	cr_assert_eq(ibv_post_recv(p.a.qp, &recv, &bad), 0);
	peer_fill(&p.peer, 0, 200, 7);
	w = reverse_work(&p, IBV_WR_SEND, 0, 0, 200);
	reverse_post(&p, &w);
	end_await(&p.a, RECV_CQ, &d);
	check_ok("receive", &d, 6, IBV_WC_RECV);
	cr_expect_eq(d.wc.byte_len, 200);
	peer_read(&p.peer, 100, p.a.buf + 1024, 100);
	cr_expect(!memcmp(p.a.buf, p.a.buf + 1024, 100), "the second half went where it belongs");
	cr_expect_eq(ibv_dereg_mr(null), 0);
	pair_close(&p);
}

CASE_EACH(odp, a_null_region_is_not_for_peers)
{
	struct ibv_mr *null;
	struct pair p;

	pair_open(&p, where, NULL);
	null = ibv_alloc_null_mr(p.a.pd);
	cr_assert_not_null(null);
	REVERSE_EXPECT(&p, READ, 0, null->lkey, 8, REM_ACC);
	cr_expect_eq(ibv_dereg_mr(null), 0);
	pair_close(&p);
}

/* ---- how much may be pinned ---- */

Test(odp, memlock_is_enforced_if_the_environment_says_so)
{
	struct rlimit limit = { 16 * PAGE, 16 * PAGE };
	struct ibv_mr *mr;
	struct pair p;

	setenv("VERBENA_MEMLOCK", "enforce", 1);
	pair_open(&p, ONE_THREAD, NULL);		/* two buffers of 16 pages */
	cr_assert_eq(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	errno = 0;
	cr_expect_null(ibv_reg_mr(p.a.pd, p.a.buf, PAGE, IBV_ACCESS_LOCAL_WRITE));
	cr_expect_eq(errno, ENOMEM, "%s", strerror(errno));
	mr = must_register(&p, p.a.buf, PAGE, IBV_ACCESS_LOCAL_WRITE | ODP);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	ibv_dereg_mr(p.a.mr);
	ibv_dereg_mr(p.peer.here.mr);
	p.a.mr = p.peer.here.mr = NULL;
	mr = must_register(&p, p.a.buf, 16 * PAGE, IBV_ACCESS_LOCAL_WRITE);
	cr_expect_null(ibv_reg_mr(p.a.pd, p.a.buf, 1, IBV_ACCESS_LOCAL_WRITE));
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	pair_close(&p);
}
