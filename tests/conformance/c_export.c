/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects that are exported one by one into a context that is there to be passed on:
 * <infiniband/verbs_share.h>, which only our library has.
 *
 * Rules: ibv_export_to_fd(3); api-inventory EX-1 to EX-7, D-12 to D-14, rule 65.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs_share.h>
#include <string.h>
#include <unistd.h>
#include "harness/check.h"
#include "harness/exporter.h"

TestSuite(export, .timeout = 60);

#define VERB(name) ((__typeof__(&name))dlsym(RTLD_DEFAULT, #name))

struct rig {
	struct exporter x;
	struct exporter_message m;	/* what it said of its exports */
	int fd;
	struct ibv_context *context;	/* of this process alone */
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct borrowers q;
};

static void rig_open(struct rig *r)
{
	memset(r, 0, sizeof *r);
	exporter_start(&r->x);
	cr_assert(VERB(ibv_export_pd), "this is for the lane of our library");
	close(exporter_fd(&r->x));
	r->m.op = EXPORTER_EXPORT;
	exporter_call(&r->x, &r->m, -1, &r->fd);
	cr_assert_eq(r->m.err, 0, "export: %s", strerror(r->m.err));
	r->context = device_open();
	cr_assert_not_null(r->context);
}

static void rig_import(struct rig *r)
{
	r->pd = VERB(ibv_import_pd_from_fd)(r->context, (uint32_t)r->fd, r->m.told.pd);
	cr_assert_not_null(r->pd, "%s", strerror(errno));
	r->mr = VERB(ibv_import_mr_from_fd)(r->context, (uint32_t)r->fd, r->m.told.mr);
	cr_assert_not_null(r->mr, "%s", strerror(errno));
}

static void rig_close(struct rig *r)
{
	cr_expect_eq(ibv_close_device(r->context), 0);
	close(r->fd);
	exporter_stop(&r->x);
}

static void write_from_exporter(struct rig *r, uint64_t seed, enum ibv_wc_status status)
{
	struct work w = {
		.opcode = IBV_WR_RDMA_WRITE, .wr_id = 1, .flags = IBV_SEND_SIGNALED,
		.remote_addr = r->q.ib.addr, .rkey = r->q.ib.rkey, .sge_count = 1,
		.sge = { { .addr = r->x.told.addr, .length = 3000, .lkey = r->x.told.lkey } },
	};
	struct done d;

	memset(r->q.b.buf, 0, 3000);
	cr_assert_eq(end_post(&r->q.a, &w), 0);
	end_await(&r->q.a, SEND_CQ, &d);
	cr_assert(d.found);
	cr_assert_eq(d.wc.status, status, "%s", ibv_wc_status_str(d.wc.status));
	if (status == IBV_WC_SUCCESS)
		cr_expect_eq(pattern_differs(r->q.b.buf, 3000, seed), -1);
}

/* EX-4, EX-5 */
Test(export, what_was_exported_is_used_and_destroyed_like_ones_own)
{
	struct rig r;

	rig_open(&r);
	rig_import(&r);
	cr_expect_eq(r.mr->lkey, r.x.told.lkey);
	cr_expect_eq(r.mr->length, r.x.told.bytes);
	cr_expect_eq(r.pd->context, r.context);
	borrowers_open(&r.q, r.context, r.pd);
	exporter_do(&r.x, EXPORTER_FILL, 0, 3000, 21);
	write_from_exporter(&r, 21, IBV_WC_SUCCESS);
	cr_expect_eq(ibv_dealloc_pd(r.pd), EBUSY);
	borrowers_close(&r.q);
	cr_expect_eq(ibv_dereg_mr(r.mr), 0);
	cr_expect_eq(ibv_dealloc_pd(r.pd), 0);
	rig_close(&r);
}

/* EX-7: the object lives until the last reference is gone. */
Test(export, the_object_outlives_its_maker_s_handles_and_contexts)
{
	struct rig r;

	rig_open(&r);
	rig_import(&r);
	close(r.fd);
	r.fd = -1;
	borrowers_open(&r.q, r.context, r.pd);
	exporter_do(&r.x, EXPORTER_FILL, 0, 3000, 22);
	cr_expect_eq(exporter_do(&r.x, EXPORTER_DEREG, 0, 0, 0), 0);
	cr_expect_eq(exporter_do(&r.x, EXPORTER_DEALLOC, 0, 0, 0), 0);
	write_from_exporter(&r, 22, IBV_WC_SUCCESS);
	cr_expect_eq(exporter_do(&r.x, EXPORTER_SHUT, 0, 0, 0), 0);
	write_from_exporter(&r, 22, IBV_WC_SUCCESS);
	cr_expect_eq(exporter_do(&r.x, EXPORTER_SHUT_SECOND, 0, 0, 0), 0);
	write_from_exporter(&r, 22, IBV_WC_SUCCESS);
	cr_expect_eq(ibv_dereg_mr(r.mr), 0);
	borrowers_close(&r.q);
	cr_expect_eq(ibv_dealloc_pd(r.pd), 0);
	rig_close(&r);
}

Test(export, the_death_of_the_exporter_is_an_error)
{
	struct rig r;

	rig_open(&r);
	rig_import(&r);
	borrowers_open(&r.q, r.context, r.pd);
	exporter_kill(&r.x);
	write_from_exporter(&r, 0, IBV_WC_LOC_PROT_ERR);
	borrowers_close(&r.q);
	cr_expect_eq(ibv_dereg_mr(r.mr), 0);
	cr_expect_eq(ibv_dealloc_pd(r.pd), 0);
	cr_expect_null(VERB(ibv_import_pd_from_fd)(r.context, (uint32_t)r.fd, r.m.told.pd));
	cr_expect_eq(errno, EIO, "%s", strerror(errno));
	rig_close(&r);
}

/* Rule 65: a handle is good with that descriptor only. */
Test(export, handles_and_descriptors_go_together)
{
	__typeof__(&ibv_import_pd_from_fd) import_pd = VERB(ibv_import_pd_from_fd);
	struct rig r;
	int null = open("/dev/null", O_RDWR);

	rig_open(&r);
	cr_expect_null(import_pd(r.context, (uint32_t)r.fd, r.m.told.pd + 77));
	cr_expect_eq(errno, ENOENT);
	cr_expect_null(import_pd(r.context, (uint32_t)r.fd, r.m.told.mr));
	cr_expect_eq(errno, EINVAL);
	cr_expect_null(import_pd(r.context, (uint32_t)r.context->cmd_fd, r.m.told.pd));
	cr_expect_eq(errno, ENOENT);
	cr_expect_null(import_pd(r.context, (uint32_t)null, r.m.told.pd));
	cr_expect_eq(errno, EINVAL, "%s", strerror(errno));
	cr_expect_null(import_pd(r.context, UINT32_MAX, r.m.told.pd));
	cr_expect_eq(errno, EBADF, "%s", strerror(errno));
	close(null);
	rig_close(&r);
}

/* EX-1, EX-3 */
Test(export, an_object_is_named_by_its_structure_or_by_type_and_handle)
{
	struct ibv_context *context = device_open(), *second = device_open();
	struct ibv_pd *pd = ibv_alloc_pd(context), *again;
	uint32_t a = 0, b = 0, fd;

	cr_assert(VERB(ibv_export_to_fd), "this is for the lane of our library");
	fd = VERB(ibv_context_to_fd)(second);
	cr_expect_eq(fd, (uint32_t)second->cmd_fd);
	cr_expect_eq(VERB(ibv_pd_to_handle)(pd), pd->handle);
	cr_assert_eq(VERB(ibv_export_pd)(fd, &a, context, pd), 0);
	cr_assert_eq(VERB(ibv_export_to_fd)(fd, &b, context, IBV_EXPORT_PD, pd->handle), 0);
	cr_expect_neq(a, b);
	cr_expect_eq(VERB(ibv_export_to_fd)(fd, &b, context, IBV_EXPORT_MR, pd->handle), EINVAL);
	cr_expect_eq(VERB(ibv_export_to_fd)(fd, &b, context, (enum ibv_export_type)3, 0), EINVAL);
	cr_expect_eq(VERB(ibv_export_pd)(fd, &b, second, pd), EINVAL);
	cr_expect_eq(VERB(ibv_export_pd)(UINT32_MAX, &b, context, pd), EBADF);
	again = ibv_import_pd(second, a);
	cr_assert_not_null(again, "%s", strerror(errno));
	ibv_unimport_pd(again);
	cr_expect_eq(ibv_dealloc_pd(pd), 0);
	cr_expect_eq(ibv_close_device(context), 0);
	cr_expect_eq(ibv_close_device(second), 0);
}
