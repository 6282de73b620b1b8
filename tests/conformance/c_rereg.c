/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Regions that change: ibv_rereg_mr().
 *
 * Rules: ibv_rereg_mr(3); api-inventory 1.9; device-abi B.9 (rereg_mr).
 */
#include "harness/reverse.h"

#define LW IBV_ACCESS_LOCAL_WRITE
#define RW IBV_ACCESS_REMOTE_WRITE
#define RR IBV_ACCESS_REMOTE_READ
#define PLACE IBV_REREG_MR_CHANGE_TRANSLATION
#define DOMAIN IBV_REREG_MR_CHANGE_PD
#define RIGHTS IBV_REREG_MR_CHANGE_ACCESS
#define ALL IBV_REREG_MR_FLAGS_SUPPORTED
#define PAGE 4096
#define OK IBV_WC_SUCCESS
#define REM_ACC IBV_WC_REM_ACCESS_ERR

TestSuite(rereg, .timeout = 60);

struct rig {
	struct pair p;
	struct ibv_mr *mr;		/* of the first page of this end's buffer */
	struct ibv_pd *pd;		/* another one */
};

static void rig_open(struct rig *r, enum placement where)
{
	pair_open(&r->p, where, NULL);
	r->mr = ibv_reg_mr(r->p.a.pd, r->p.a.buf, PAGE, LW | RW | RR);
	r->pd = ibv_alloc_pd(r->p.a.context);
	cr_assert(r->mr && r->pd);
}

static void rig_close(struct rig *r)
{
	cr_expect_eq(ibv_dereg_mr(r->mr), 0);
	cr_expect_eq(ibv_dealloc_pd(r->pd), 0);
	pair_close(&r->p);
}

/* Every combination, asked of the device by what the other end may do then. */
CASE_TABLE(rereg, a_region_changes_in_what_was_asked_only, ALL)
{
	int flags = row + 1;
	struct rig r;
	uint8_t *place;
	int err;

	rig_open(&r, where);
	REVERSE_EXPECT(&r.p, IBV_WR_RDMA_WRITE, r.mr->addr, r.mr->rkey, 64, OK);
	place = r.p.a.buf + (flags & PLACE ? 4 * PAGE : 0);
	err = ibv_rereg_mr(r.mr, flags, flags & DOMAIN ? r.pd : NULL, flags & PLACE ? place : NULL,
			   flags & PLACE ? 2 * PAGE : 0, flags & RIGHTS ? LW | RR : 0);
	cr_assert_eq(err, 0, "flags %d: %d, %s", flags, err, strerror(errno));
	cr_expect_eq(r.mr->addr, place);
	cr_expect_eq(r.mr->length, flags & PLACE ? 2 * PAGE : PAGE);
	cr_expect_eq(r.mr->pd, flags & DOMAIN ? r.pd : r.p.a.pd);
	if (flags & DOMAIN) {		/* the QP is of another one now */
		REVERSE_EXPECT(&r.p, IBV_WR_RDMA_READ, place, r.mr->rkey, 64, REM_ACC);
	} else {
		REVERSE_EXPECT(&r.p, IBV_WR_RDMA_READ, place + r.mr->length - 64, r.mr->rkey, 64,
			       OK);
		REVERSE_EXPECT(&r.p, IBV_WR_RDMA_WRITE, place, r.mr->rkey, 64,
			       flags & RIGHTS ? REM_ACC : OK);
	}
	rig_close(&r);
}

/* Where it was, nothing is any more. */
CASE_EACH(rereg, the_old_place_is_closed)
{
	struct rig r;

	rig_open(&r, where);
	cr_assert_eq(ibv_rereg_mr(r.mr, PLACE, NULL, r.p.a.buf + PAGE, PAGE, 0), 0);
	pattern_fill(r.p.a.buf, PAGE, 3);
	REVERSE_EXPECT(&r.p, IBV_WR_RDMA_WRITE, r.p.a.buf, r.mr->rkey, 64, REM_ACC);
	cr_expect_eq(pattern_differs(r.p.a.buf, PAGE, 3), -1);
	rig_close(&r);
}

/* And back to its domain, with more rights than it had. */
CASE_EACH(rereg, a_region_changes_many_times)
{
	struct rig r;

	rig_open(&r, where);
	for (int i = 0; i < 20; i++) {
		cr_assert_eq(ibv_rereg_mr(r.mr, DOMAIN | RIGHTS, r.pd, NULL, 0, LW), 0);
		cr_assert_eq(ibv_rereg_mr(r.mr, ALL, r.p.a.pd, r.p.a.buf + i * PAGE / 2, PAGE,
					  ACCESS_ALL), 0);
		REVERSE_EXPECT(&r.p, IBV_WR_RDMA_WRITE, r.mr->addr, r.mr->rkey, 64, OK);
		REVERSE_EXPECT(&r.p, IBV_WR_ATOMIC_FETCH_AND_ADD, r.mr->addr, r.mr->rkey, 8, OK);
	}
	rig_close(&r);
}

enum at { AT_GOOD, AT_NULL, AT_GONE };

static const struct {
	const char *name;
	int flags;
	enum at at;
	size_t bytes;
	int access, err, error;		/* what is returned; errno */
} refusals[] = {
	{ "nothing to change", 0, AT_NULL, 0, 0, IBV_REREG_MR_ERR_CMD, EINVAL },
	{ "an unknown flag", 8, AT_NULL, 0, 0, IBV_REREG_MR_ERR_INPUT, EINVAL },
	{ "no address", PLACE, AT_NULL, PAGE, 0, IBV_REREG_MR_ERR_INPUT, EINVAL },
	{ "no length", PLACE, AT_GOOD, 0, 0, IBV_REREG_MR_ERR_INPUT, EINVAL },
	{ "rights not to change", PLACE, AT_GOOD, PAGE, LW, IBV_REREG_MR_ERR_INPUT, EINVAL },
	{ "memory that is not there", PLACE, AT_GONE, PAGE, 0, IBV_REREG_MR_ERR_CMD, EFAULT },
	{ "REMOTE_WRITE, no LOCAL_WRITE", RIGHTS, AT_NULL, 0, RW, IBV_REREG_MR_ERR_CMD, EINVAL },
	{ "an unknown right", RIGHTS, AT_NULL, 0, LW | 1 << 19, IBV_REREG_MR_ERR_CMD, EINVAL },
	{ "memory gone and rights wrong", PLACE | RIGHTS, AT_GONE, PAGE, RW, IBV_REREG_MR_ERR_CMD,
	  EINVAL },
};

/* The manual page promises nothing of the region after ERR_CMD but that it can be freed.  Here,
 * as in the kernel's driver, it is what it was. */
CASE_TABLE(rereg, a_refused_change_leaves_the_region, ROWS(refusals))
{
	static const uint64_t gone = UINT64_C(0x180000000000);
	struct rig r;
	void *at;
	int err;

	rig_open(&r, where);
	at = refusals[row].at == AT_GOOD ? r.p.a.buf : refusals[row].at == AT_NULL ? NULL :
	     (void *)(uintptr_t)gone;
	errno = 0;
	err = ibv_rereg_mr(r.mr, refusals[row].flags, r.pd, at, refusals[row].bytes,
			   refusals[row].access);
	cr_expect_eq(err, refusals[row].err, "%s: %d", refusals[row].name, err);
	cr_expect_eq(errno, refusals[row].error, "%s: %s", refusals[row].name, strerror(errno));
	REVERSE_EXPECT(&r.p, IBV_WR_RDMA_WRITE, r.mr->addr, r.mr->rkey, 64, OK);
	rig_close(&r);
}

/* A bound window would lead somewhere else. */
Test(rereg, a_region_with_a_bound_window_does_not_change)
{
	struct ibv_mw_bind bind = { .wr_id = 5, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct pair p;

	pair_open(&p, ONE_THREAD, NULL);
	mr = ibv_reg_mr(p.a.pd, p.a.buf, PAGE, LW | IBV_ACCESS_MW_BIND);
	mw = ibv_alloc_mw(p.a.pd, IBV_MW_TYPE_1);
	cr_assert(mr && mw);
	bind.bind_info = (struct ibv_mw_bind_info){ mr, (uintptr_t)p.a.buf, PAGE, RR };
	cr_assert_eq(ibv_bind_mw(p.a.qp, mw, &bind), 0);
	await_ok(&p, 5, IBV_WC_BIND_MW);
	cr_expect_eq(ibv_rereg_mr(mr, RIGHTS, NULL, NULL, 0, LW), IBV_REREG_MR_ERR_CMD);
	cr_expect_eq(errno, EBUSY, "%s", strerror(errno));
	cr_expect_eq(ibv_dealloc_mw(mw), 0);
	cr_expect_eq(ibv_rereg_mr(mr, RIGHTS, NULL, NULL, 0, LW), 0);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	pair_close(&p);
}

/* Who is on its way through the key when it changes goes one way or the other, and through. */
CASE_EACH(rereg, a_region_changes_while_it_is_used)
{
	enum { ROUNDS = 200, DEPTH = 20 };
	struct rig r;

	rig_open(&r, where);
	cr_assert_eq(ibv_rereg_mr(r.mr, PLACE, NULL, r.p.a.buf, 8 * PAGE, 0), 0);
	for (int round = 0; round < ROUNDS; round += DEPTH) {
		uint64_t to = (uintptr_t)r.p.a.buf + 4 * PAGE;
		struct work w = reverse_work(&r.p, IBV_WR_RDMA_WRITE, to, r.mr->rkey, PAGE);

		for (int i = 0; i < DEPTH; i++)
			reverse_post(&r.p, &w);
		for (int i = 0; i < DEPTH; i++)
			cr_assert_eq(ibv_rereg_mr(r.mr, PLACE | RIGHTS, NULL,
						  r.p.a.buf + (i % 2) * 4 * PAGE, 8 * PAGE,
						  ACCESS_ALL), 0);
		for (int i = 0; i < DEPTH; i++)
			cr_assert_eq(reverse_status(&r.p), OK, "round %d", round + i);
	}
	rig_close(&r);
}
