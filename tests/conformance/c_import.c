/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects of one context seen from another: ibv_import_device(), _pd() and _mr().  Device memory is
 * in c_dm.c.
 *
 * Rules: ibv_import_device(3), ibv_import_pd(3), ibv_import_mr(3); device-abi B.11.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "harness/check.h"

#define PAGE 4096

TestSuite(import, .timeout = 60);

struct rig {
	struct pair p;
	struct ibv_context *again;
	struct ibv_pd *pd;	/* of end a, in the other context */
};

static void rig_open(struct rig *r)
{
	pair_open(&r->p, ONE_THREAD, NULL);
	r->again = ibv_import_device(dup(r->p.a.context->cmd_fd));
	cr_assert_not_null(r->again, "%s", strerror(errno));
	r->pd = ibv_import_pd(r->again, r->p.a.pd->handle);
	cr_assert_not_null(r->pd, "%s", strerror(errno));
}

static void rig_close(struct rig *r)
{
	ibv_unimport_pd(r->pd);
	cr_expect_eq(ibv_close_device(r->again), 0);
	pair_close(&r->p);
}

/* A region of the first context, and what the other one sees of it. */
static struct ibv_mr *region_import(struct rig *r, struct ibv_mr **seen_out)
{
	struct ibv_mr *mr = ibv_reg_mr(r->p.a.pd, r->p.a.buf, PAGE, ACCESS_ALL);

	cr_assert_not_null(mr, "%s", strerror(errno));
	*seen_out = ibv_import_mr(r->pd, mr->handle);
	cr_assert_not_null(*seen_out, "%s", strerror(errno));
	return mr;
}

Test(import, a_context_is_another_one_of_the_same_device)
{
	struct ibv_device_attr a, b;
	struct rig r;

	rig_open(&r);
	cr_expect_neq(r.again, r.p.a.context);
	cr_expect_eq(r.pd->context, r.again);
	cr_expect_eq(r.pd->handle, r.p.a.pd->handle);
	cr_assert_eq(ibv_query_device(r.p.a.context, &a), 0);
	cr_assert_eq(ibv_query_device(r.again, &b), 0);
	cr_expect_eq(memcmp(&a, &b, sizeof a), 0);
	rig_close(&r);
}

/* A QP of the first context uses it, because the domain is the same. */
Test(import, a_region_of_an_imported_domain_is_used_by_both)
{
	struct ibv_mr *mr;
	struct work w;
	struct rig r;

	rig_open(&r);
	mr = ibv_reg_mr(r.pd, r.p.a.buf, PAGE, ACCESS_ALL);
	cr_assert_not_null(mr, "%s", strerror(errno));
	w = pair_work(&r.p, IBV_WR_RDMA_WRITE, 64);
	w.sge[0].lkey = mr->lkey;
	pattern_fill(r.p.a.buf, 64, 1);
	must_post(&r.p, &w);
	await_ok(&r.p, 1, IBV_WC_RDMA_WRITE);
	cr_expect_eq(peer_differs(&r.p.peer, 0, 64, 1), -1);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	rig_close(&r);
}

Test(import, a_region_has_its_keys_and_no_address)
{
	struct ibv_mr *mr, *seen;
	struct rig r;

	rig_open(&r);
	mr = region_import(&r, &seen);
	cr_expect_eq(seen->lkey, mr->lkey);
	cr_expect_eq(seen->rkey, mr->rkey);
	cr_expect_eq(seen->length, PAGE);
	cr_expect_null(seen->addr);
	cr_expect_eq(seen->pd, r.pd);
	cr_expect_eq(seen->context, r.again);
	ibv_unimport_mr(seen);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	rig_close(&r);
}

Test(import, what_was_imported_stays_when_the_import_goes)
{
	struct ibv_mr *mr, *seen;
	struct work w;
	struct rig r;

	rig_open(&r);
	mr = region_import(&r, &seen);
	ibv_unimport_mr(seen);
	w = pair_work(&r.p, IBV_WR_RDMA_WRITE, 64);
	w.sge[0].lkey = mr->lkey;
	must_post(&r.p, &w);
	await_ok(&r.p, 1, IBV_WC_RDMA_WRITE);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	rig_close(&r);
}

Test(import, an_imported_region_is_not_changed_from_here)
{
	struct ibv_mr *mr, *seen;
	struct rig r;

	rig_open(&r);
	mr = region_import(&r, &seen);
	cr_expect_eq(ibv_rereg_mr(seen, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				  IBV_ACCESS_LOCAL_WRITE), IBV_REREG_MR_ERR_INPUT);
	cr_expect_eq(errno, EINVAL);
	ibv_unimport_mr(seen);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	rig_close(&r);
}

Test(import, what_is_not_there_is_refused)
{
	struct rig r;
	int fd = open("/dev/null", O_RDWR);

	rig_open(&r);
	cr_expect_null(ibv_import_pd(r.again, 0xfffff));
	cr_expect_eq(errno, ENOENT);
	cr_expect_null(ibv_import_mr(r.pd, 0xfffff));
	cr_expect_eq(errno, ENOENT);
	cr_expect_null(ibv_import_device(fd));
	cr_expect_null(ibv_import_device(-1));
	close(fd);
	rig_close(&r);
}

/* Here, too, an import is a reference: whoever is last ends the region. */
Test(import, a_region_lives_until_its_last_reference_is_gone)
{
	struct ibv_mr *mr, *seen;
	struct work w;
	struct rig r;

	rig_open(&r);
	mr = region_import(&r, &seen);
	w = pair_work(&r.p, IBV_WR_RDMA_WRITE, 64);
	w.sge[0].lkey = mr->lkey;
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	must_post(&r.p, &w);
	await_ok(&r.p, 1, IBV_WC_RDMA_WRITE);
	ibv_unimport_mr(seen);
	must_post(&r.p, &w);
	await_error(&r.p, 1, IBV_WC_LOC_PROT_ERR);
	rig_close(&r);
}
