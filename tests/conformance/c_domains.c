/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Thread domains and parent domains: libmlx5 makes them of doorbell pages and of nothing.
 *
 * Rules: ibv_alloc_td(3), ibv_alloc_parent_domain(3).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "harness/check.h"

TestSuite(domains, .timeout = 60);

static struct ibv_pd *parent_of(struct ibv_context *c, struct ibv_pd *pd, struct ibv_td *td)
{
	struct ibv_parent_domain_init_attr attr = { .pd = pd, .td = td };

	return ibv_alloc_parent_domain(c, &attr);
}

/* Everything on the parent domain, and the doorbell on the thread domain's own page. */
Test(domains, a_qp_works_on_its_threads_doorbell)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };
	struct ibv_td_init_attr none = { 0 };
	struct ibv_pd *parent;
	struct ibv_td *td;
	struct ibv_mr *mr;
	struct pair p;
	struct work w;

	pair_open_unconnected(&p, ONE_THREAD, NULL);
	td = ibv_alloc_td(p.a.context, &none);
	cr_assert_not_null(td, "%s", strerror(errno));
	parent = parent_of(p.a.context, p.a.pd, td);
	cr_assert_not_null(parent, "%s", strerror(errno));
	cr_expect_eq(ibv_dealloc_td(td), EBUSY);
	cr_expect_eq(ibv_dealloc_pd(p.a.pd), EBUSY);
	cr_assert_eq(ibv_destroy_qp(p.a.qp), 0);
	init.send_cq = p.a.cq[SEND_CQ];
	init.recv_cq = p.a.cq[RECV_CQ];
	init.cap = p.a.opts.cap;
	p.a.qp = ibv_create_qp(parent, &init);
	cr_assert_not_null(p.a.qp, "%s", strerror(errno));
	mr = ibv_reg_mr(parent, p.a.buf, 4096, ACCESS_ALL);
	cr_assert_not_null(mr, "%s", strerror(errno));
	end_describe(&p.a, &p.ia);
	pair_connect(&p);
	w = pair_work(&p, IBV_WR_RDMA_WRITE, 64);
	w.sge[0].lkey = mr->lkey;
	pattern_fill(p.a.buf, 64, 1);
	for (int i = 0; i < 100; i++) {
		must_post(&p, &w);
		await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	}
	cr_expect_eq(peer_differs(&p.peer, 0, 64, 1), -1);
	cr_expect_eq(ibv_dealloc_pd(parent), EBUSY);
	cr_assert_eq(ibv_destroy_qp(p.a.qp), 0);
	p.a.qp = NULL;
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	cr_expect_eq(ibv_dealloc_pd(parent), 0);
	cr_expect_eq(ibv_dealloc_td(td), 0);
	pair_close(&p);
}

static unsigned allocations;

/* Zeroed, because libmlx5 does not do it here, and a doorbell record counts from 0. */
static void *counted_alloc(struct ibv_pd *pd, void *context, size_t bytes, size_t alignment,
			   uint64_t resource)
{
	size_t pages = (bytes + 4095) & ~(size_t)4095;
	void *at = aligned_alloc(alignment < 4096 ? 4096 : alignment, pages);

	(void)pd;
	(void)resource;
	cr_expect_eq(context, &allocations);
	allocations++;
	return at ? memset(at, 0, pages) : NULL;
}

static void counted_free(struct ibv_pd *pd, void *context, void *at, uint64_t resource)
{
	(void)pd;
	(void)context;
	(void)resource;
	free(at);
}

/* Queues in memory that the application gives. */
Test(domains, queues_lie_where_the_application_says)
{
	struct ibv_parent_domain_init_attr attr = {
		.alloc = counted_alloc, .free = counted_free, .pd_context = &allocations,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
	};
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };
	struct ibv_pd *parent;
	struct pair p;
	struct work w;

	pair_open_unconnected(&p, ONE_THREAD, NULL);
	attr.pd = p.a.pd;
	parent = ibv_alloc_parent_domain(p.a.context, &attr);
	cr_assert_not_null(parent, "%s", strerror(errno));
	cr_assert_eq(ibv_destroy_qp(p.a.qp), 0);
	init.send_cq = p.a.cq[SEND_CQ];
	init.recv_cq = p.a.cq[RECV_CQ];
	init.cap = p.a.opts.cap;
	p.a.qp = ibv_create_qp(parent, &init);
	cr_assert_not_null(p.a.qp, "%s", strerror(errno));
	cr_expect_gt(allocations, 0);
	end_describe(&p.a, &p.ia);
	pair_connect(&p);
	w = pair_work(&p, IBV_WR_RDMA_READ, 64);
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_RDMA_READ);
	cr_assert_eq(ibv_destroy_qp(p.a.qp), 0);
	p.a.qp = NULL;
	cr_expect_eq(ibv_dealloc_pd(parent), 0);
	pair_close(&p);
}

Test(domains, thread_domains_come_and_go)
{
	enum { COUNT = 200 };
	struct ibv_context *c = device_open();
	struct ibv_td_init_attr none = { 0 };
	struct ibv_td *td[COUNT];

	cr_assert_not_null(c);
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < COUNT; i++) {
			td[i] = ibv_alloc_td(c, &none);
			cr_assert_not_null(td[i], "%d: %s", i, strerror(errno));
		}
		for (int i = 0; i < COUNT; i++)
			cr_assert_eq(ibv_dealloc_td(td[i]), 0);
	}
	ibv_close_device(c);
}
