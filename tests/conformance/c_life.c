/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of objects: order of destruction, leaks, many of them, fork.
 *
 * Rules: device-abi B.9 (EBUSY), A.5 (closing releases everything); rxe-oracle section 7,
 * "Resources"; emu.h ("the child loses the device").
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness/check.h"

TestSuite(life, .timeout = 60);

static unsigned count_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned count = 0;

	while (d && readdir(d))
		count++;
	closedir(d);
	return count;
}

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_cq *recv_cq)
{
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = recv_cq,
		.cap = { 8, 8, 1, 1, 0 }, .qp_type = IBV_QPT_RC };

	return ibv_create_qp(pd, &init);
}

/* What is used by something else can't go first; afterwards everything can. */
Test(life, what_is_in_use_is_busy)
{
	struct ibv_context *c = device_open();
	struct ibv_comp_channel *ch;
	struct ibv_cq *send, *recv;
	struct ibv_pd *pd, *pd2;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	char buf[64];

	cr_assert_not_null(c);
	pd = ibv_alloc_pd(c);
	pd2 = ibv_alloc_pd(c);
	ch = ibv_create_comp_channel(c);
	send = ibv_create_cq(c, 8, NULL, ch, 0);
	recv = ibv_create_cq(c, 8, NULL, ch, 0);
	mr = ibv_reg_mr(pd2, buf, sizeof buf, IBV_ACCESS_LOCAL_WRITE);
	qp = make_qp(pd, send, recv);
	cr_assert(pd && pd2 && ch && send && recv && mr && qp);
	cr_expect_eq(ibv_destroy_cq(send), EBUSY);
	cr_expect_eq(ibv_destroy_cq(recv), EBUSY);
	cr_expect_eq(ibv_dealloc_pd(pd), EBUSY, "a QP uses it");
	cr_expect_eq(ibv_dealloc_pd(pd2), EBUSY, "an MR uses it");
	cr_expect_eq(ibv_destroy_comp_channel(ch), EBUSY);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
	cr_expect_eq(ibv_dealloc_pd(pd), 0);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	cr_expect_eq(ibv_dealloc_pd(pd2), 0);
	cr_expect_eq(ibv_destroy_cq(send), 0);
	cr_expect_eq(ibv_destroy_comp_channel(ch), EBUSY);
	cr_expect_eq(ibv_destroy_cq(recv), 0);
	cr_expect_eq(ibv_destroy_comp_channel(ch), 0);
	cr_expect_eq(ibv_close_device(c), 0);
}

/* A refused destroy leaves the object whole. */
CASE_EACH(life, a_busy_cq_works_on)
{
	struct pair p;
	struct work w;

	pair_open(&p, where, NULL);
	cr_expect_eq(ibv_destroy_cq(p.a.cq[SEND_CQ]), EBUSY);
	w = pair_work(&p, IBV_WR_RDMA_WRITE, 8);
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	pair_close(&p);
}

/* A.5: closing the device releases what the application leaked; the next open is clean. */
Test(life, closing_with_live_objects_releases_them)
{
	struct end_opts opts;
	struct end e;
	struct pair p;
	struct work w;
	unsigned files;

	end_defaults(&opts);
	cr_assert_eq(end_open(&e, &opts, NULL), 0);
	end_close(&e);
	files = count_files();
	for (unsigned i = 0; i < 5; i++) {
		cr_assert_eq(end_open(&e, &opts, NULL), 0);
		close(e.channel->fd);	/* the channel's own file is the application's */
		cr_expect_eq(ibv_close_device(e.context), 0);
		free(e.log);		/* the harness's own, which end_close() would free */
	}
	cr_expect_eq(count_files(), files, "files leak");
	pair_open(&p, ONE_THREAD, NULL);
	w = pair_work(&p, IBV_WR_RDMA_WRITE, 8);
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	pair_close(&p);
}

/* A peer whose device was closed under a connected QP is a silent peer. */
Test(life, the_peer_of_a_closed_device_sees_retry_exc)
{
	struct pair_opts opts;
	struct pair p;
	struct work w;

	pair_defaults(&opts);
	opts.a.timeout = 8;
	opts.a.retry = 1;
	pair_open(&p, TWO_PROCESSES, &opts);
	w = pair_work(&p, IBV_WR_RDMA_WRITE, 8);
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	peer_stop(&p.peer);
	must_post(&p, &w);
	await_error(&p, 1, IBV_WC_RETRY_EXC_ERR);
	end_close(&p.a);
}

/* Architecture section 3: a peer killed in the middle is a dead host, nothing else. */
Test(life, a_killed_peer_is_a_silent_peer)
{
	struct pair_opts opts;
	struct pair p, q;
	struct work w;

	pair_defaults(&opts);
	opts.a.timeout = 8;
	opts.a.retry = 1;
	pair_open(&p, TWO_PROCESSES, &opts);
	w = pair_work(&p, IBV_WR_RDMA_WRITE, 8);
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	cr_assert_eq(kill(p.peer.pid, SIGKILL), 0);
	cr_assert_eq(waitpid(p.peer.pid, NULL, 0), p.peer.pid);
	must_post(&p, &w);
	await_error(&p, 1, IBV_WC_RETRY_EXC_ERR);
	end_close(&p.a);
	pair_open(&q, ONE_THREAD, NULL);
	w = pair_work(&q, IBV_WR_RDMA_WRITE, 8);
	must_post(&q, &w);
	await_ok(&q, 1, IBV_WC_RDMA_WRITE);
	pair_close(&q);
}

Test(life, opening_and_closing_many_times_leaks_no_file)
{
	struct ibv_context *c = device_open();
	unsigned files;

	cr_assert_not_null(c);
	ibv_close_device(c);
	files = count_files();
	for (unsigned i = 0; i < 100; i++) {
		c = device_open();
		cr_assert_not_null(c, "open %u: %s", i, strerror(errno));
		cr_assert_eq(ibv_close_device(c), 0);
	}
	cr_expect_eq(count_files(), files);
}

/* Numbers of live QPs differ, also between contexts, and do not come back at once. */
Test(life, qp_numbers_are_distinct)
{
	enum { COUNT = 300 };
	static struct ibv_qp *qp[COUNT];
	static uint32_t number[COUNT];
	struct end_opts opts;
	struct end e, f;
	struct ibv_qp *again;

	end_defaults(&opts);
	cr_assert_eq(end_open(&e, &opts, NULL), 0);
	cr_assert_eq(end_open(&f, &opts, NULL), 0);
	for (unsigned i = 0; i < COUNT; i++) {
		struct end *owner = i & 1 ? &e : &f;

		qp[i] = make_qp(owner->pd, owner->cq[0], owner->cq[1]);
		cr_assert_not_null(qp[i], "QP %u: %s", i, strerror(errno));
		number[i] = qp[i]->qp_num;
		cr_expect(number[i] > 1 && number[i] < 1 << 24, "0x%x", number[i]);
		for (unsigned j = 0; j < i; j++)
			cr_assert_neq(number[i], number[j]);
	}
	for (unsigned i = 0; i < COUNT; i++)
		cr_assert_eq(ibv_destroy_qp(qp[i]), 0);
	again = make_qp(e.pd, e.cq[0], e.cq[1]);
	cr_assert_not_null(again);
	for (unsigned i = COUNT - 20; i < COUNT; i++)
		cr_expect_neq(again->qp_num, number[i], "reused at once");
	cr_expect_eq(ibv_destroy_qp(again), 0);
	end_close(&f);
	end_close(&e);
}

/* Thousands of QPs in a row do not exhaust anything. */
Test(life, creating_and_destroying_thousands_of_qps)
{
	struct end_opts opts;
	struct end e;

	end_defaults(&opts);
	cr_assert_eq(end_open(&e, &opts, NULL), 0);
	for (unsigned i = 0; i < 3000; i++) {
		struct ibv_qp *qp = make_qp(e.pd, e.cq[0], e.cq[1]);

		cr_assert_not_null(qp, "QP %u: %s", i, strerror(errno));
		cr_assert_eq(ibv_destroy_qp(qp), 0);
	}
	end_close(&e);
}

/* Objects of one open do not exist in another (rxe-oracle: ENOENT). */
Test(life, objects_of_another_context_are_not_found)
{
	enum { MORE = 20 };
	struct ibv_cq *cq[MORE];
	struct end_opts opts;
	struct end e, f;

	end_defaults(&opts);
	cr_assert_eq(end_open(&e, &opts, NULL), 0);
	cr_assert_eq(end_open(&f, &opts, NULL), 0);
	for (unsigned i = 0; i < MORE; i++) {	/* handles that f does not have */
		cq[i] = ibv_create_cq(e.context, 8, NULL, NULL, 0);
		cr_assert_not_null(cq[i]);
	}
	cr_expect_null(make_qp(f.pd, cq[MORE - 1], f.cq[1]), "a QP of two contexts");
	cr_expect_null(make_qp(f.pd, f.cq[0], cq[MORE - 1]), "a QP of two contexts");
	for (unsigned i = 0; i < MORE; i++)
		cr_expect_eq(ibv_destroy_cq(cq[i]), 0);
	end_close(&f);
	end_close(&e);
}

/* emu.h: a forked child has no device, and does not disturb its parent's. */
Test(life, a_forked_child_does_not_disturb_its_parent)
{
	struct pair p;
	struct work w;
	int status = 0;
	pid_t pid;

	pair_open(&p, ONE_THREAD, NULL);
	w = pair_work(&p, IBV_WR_RDMA_WRITE, 8);
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	pid = fork();
	if (!pid) {
		struct ibv_device_attr a;
		struct done d;

		end_glance(&p.a, SEND_CQ, &d);
		ibv_query_device(p.a.context, &a);
		_exit(d.found);
	}
	cr_assert_gt(pid, 0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0, "the child ended with 0x%x", status);
	for (unsigned i = 0; i < 100; i++) {
		must_post(&p, &w);
		await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	}
	pair_close(&p);
}

/* A child may open the device anew, as a process of its own. */
Test(life, a_forked_child_may_open_the_device_itself)
{
	struct pair p;
	int status = 0;
	pid_t pid;

	pair_open(&p, ONE_THREAD, NULL);
	pid = fork();
	if (!pid) {
		struct ibv_context *c = device_open();
		struct ibv_pd *pd = c ? ibv_alloc_pd(c) : NULL;

		_exit(pd && !ibv_dealloc_pd(pd) && !ibv_close_device(c) ? 0 : 1);
	}
	cr_assert_gt(pid, 0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0, "the child ended with 0x%x", status);
	pair_close(&p);
}
