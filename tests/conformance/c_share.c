/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects of another process: its command descriptor comes over a socket, and its domain, regions
 * and device memory are used here.
 *
 * The exporter is a process of its own (harness/exporter.h).  Here are two QPs on its domain
 * that are connected with each other.  What happens in one process is in c_import.c. Rules:
 * ibv_import_device(3), ibv_import_pd(3), ibv_import_mr(3); api-inventory EX-1 to EX-8, D-12,
 * D-14, rule 65.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "harness/check.h"
#include "harness/exporter.h"

#define PART	4096u

TestSuite(share, .timeout = 90);

struct rig {
	struct exporter x;
	struct ibv_context *context;	/* its device, here */
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct borrowers q;
};

static void rig_import(struct rig *r)
{
	int fd = exporter_fd(&r->x);

	r->context = ibv_import_device(fd);
	cr_assert_not_null(r->context, "import of the device: %s", strerror(errno));
	r->pd = ibv_import_pd(r->context, r->x.told.pd);
	cr_assert_not_null(r->pd, "import of the domain: %s", strerror(errno));
	r->mr = ibv_import_mr(r->pd, r->x.told.mr);
	cr_assert_not_null(r->mr, "import of the region: %s", strerror(errno));
}

static void rig_open(struct rig *r)
{
	memset(r, 0, sizeof *r);
	exporter_start(&r->x);
	rig_import(r);
	borrowers_open(&r->q, r->context, r->pd);
}

static void rig_close(struct rig *r)
{
	borrowers_close(&r->q);
	if (r->mr)
		ibv_unimport_mr(r->mr);
	if (r->pd)
		ibv_unimport_pd(r->pd);
	cr_expect_eq(ibv_close_device(r->context), 0);
	exporter_stop(&r->x);
}

/* From a's QP: local memory of the exporter, remote memory of b. */
static struct work from_exporter(const struct rig *r, enum ibv_wr_opcode opcode, uint32_t bytes)
{
	return (struct work){
		.opcode = opcode, .wr_id = 1, .flags = IBV_SEND_SIGNALED,
		.remote_addr = r->q.ib.addr, .rkey = r->q.ib.rkey, .sge_count = 1,
		.sge = { { .addr = r->x.told.addr, .length = bytes, .lkey = r->mr->lkey } },
	};
}

/* The other way: a's memory and the exporter's. */
static struct work to_exporter(const struct rig *r, enum ibv_wr_opcode opcode, uint32_t bytes)
{
	return (struct work){
		.opcode = opcode, .wr_id = 1, .flags = IBV_SEND_SIGNALED,
		.remote_addr = r->x.told.addr, .rkey = r->mr->rkey, .sge_count = 1,
		.sge = { { .addr = r->q.ia.addr, .length = bytes, .lkey = r->q.ia.lkey } },
	};
}

static void do_ok(struct rig *r, const struct work *w, enum ibv_wc_opcode opcode)
{
	struct done d;

	cr_assert_eq(end_post(&r->q.a, w), 0);
	end_await(&r->q.a, SEND_CQ, &d);
	check_ok("request", &d, w->wr_id, opcode);
}

static void do_fail(struct rig *r, const struct work *w, enum ibv_wc_status status)
{
	struct done d;

	cr_assert_eq(end_post(&r->q.a, w), 0);
	end_await(&r->q.a, SEND_CQ, &d);
	cr_assert(d.found, "no completion");
	cr_expect_eq(d.wc.status, status, "%s, wanted %s", ibv_wc_status_str(d.wc.status),
		     ibv_wc_status_str(status));
}

Test(share, the_import_says_what_was_exported)
{
	struct rig r;

	rig_open(&r);
	cr_expect_eq(r.mr->lkey, r.x.told.lkey);
	cr_expect_eq(r.mr->rkey, r.x.told.rkey);
	cr_expect_eq(r.mr->length, r.x.told.bytes);
	cr_expect_null(r.mr->addr);
	cr_expect_eq(r.pd->handle, r.x.told.pd);
	cr_expect_eq(r.mr->handle, r.x.told.mr);
	rig_close(&r);
}

/* ---- its memory as local memory ---- */

static const uint32_t sizes[] = { 1, 64, 4096, 5000, 700001 };

ParameterizedTestParameters(share, a_write_gathers_from_it)
{
	return cr_make_param_array(const uint32_t, sizes, ROWS(sizes), NULL);
}

ParameterizedTest(const uint32_t *bytes, share, a_write_gathers_from_it)
{
	struct rig r;
	struct work w;

	rig_open(&r);
	exporter_do(&r.x, EXPORTER_FILL, 0, *bytes, 3);
	w = from_exporter(&r, IBV_WR_RDMA_WRITE, *bytes);
	do_ok(&r, &w, IBV_WC_RDMA_WRITE);
	cr_expect_eq(pattern_differs(r.q.b.buf, *bytes, 3), -1);
	rig_close(&r);
}

Test(share, a_send_gathers_from_it_and_a_receive_scatters_to_it)
{
	struct work recv = { .wr_id = 9, .sge_count = 1 }, w;
	struct done d;
	struct rig r;

	rig_open(&r);
	exporter_do(&r.x, EXPORTER_FILL, 0, 3000, 4);
	recv.sge[0] = (struct ibv_sge){ r.x.told.addr + 2 * PART, 2 * PART, r.mr->lkey };
	cr_assert_eq(end_post_recv(&r.q.b, &recv), 0);
	w = from_exporter(&r, IBV_WR_SEND, 3000);
	do_ok(&r, &w, IBV_WC_SEND);
	end_await(&r.q.b, RECV_CQ, &d);
	check_ok("receive", &d, 9, IBV_WC_RECV);
	cr_expect_eq(exporter_do(&r.x, EXPORTER_DIFFERS, 2 * PART, 3000, 4), -1);
	rig_close(&r);
}

Test(share, a_read_scatters_to_it)
{
	struct rig r;
	struct work w;

	rig_open(&r);
	pattern_fill(r.q.b.buf, 5000, 5);
	w = from_exporter(&r, IBV_WR_RDMA_READ, 5000);
	do_ok(&r, &w, IBV_WC_RDMA_READ);
	cr_expect_eq(exporter_do(&r.x, EXPORTER_DIFFERS, 0, 5000, 5), -1);
	rig_close(&r);
}

/* ---- its memory as remote memory ---- */

Test(share, a_write_to_it_arrives)
{
	struct rig r;
	struct work w;

	rig_open(&r);
	pattern_fill(r.q.a.buf, 6000, 6);
	w = to_exporter(&r, IBV_WR_RDMA_WRITE, 6000);
	do_ok(&r, &w, IBV_WC_RDMA_WRITE);
	cr_expect_eq(exporter_do(&r.x, EXPORTER_DIFFERS, 0, 6000, 6), -1);
	rig_close(&r);
}

Test(share, a_read_of_it_brings_it)
{
	struct rig r;
	struct work w;

	rig_open(&r);
	exporter_do(&r.x, EXPORTER_FILL, 0, 6000, 7);
	w = to_exporter(&r, IBV_WR_RDMA_READ, 6000);
	do_ok(&r, &w, IBV_WC_RDMA_READ);
	cr_expect_eq(pattern_differs(r.q.a.buf, 6000, 7), -1);
	rig_close(&r);
}

/* Both sides of a copy are elsewhere. */
Test(share, it_is_written_from_itself)
{
	struct rig r;
	struct work w;

	rig_open(&r);
	exporter_do(&r.x, EXPORTER_FILL, 0, 9000, 8);
	w = from_exporter(&r, IBV_WR_RDMA_WRITE, 9000);
	w.remote_addr = r.x.told.addr + 4 * PART;
	w.rkey = r.mr->rkey;
	do_ok(&r, &w, IBV_WC_RDMA_WRITE);
	cr_expect_eq(exporter_do(&r.x, EXPORTER_DIFFERS, 4 * PART, 9000, 8), -1);
	rig_close(&r);
}

Test(share, atomics_on_it_are_carried_out)
{
	struct exporter_message m = { .op = EXPORTER_READ };
	uint64_t value;
	struct rig r;
	struct work w;

	rig_open(&r);
	w = to_exporter(&r, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	w.compare_add = 5;
	do_ok(&r, &w, IBV_WC_FETCH_ADD);
	w = to_exporter(&r, IBV_WR_ATOMIC_CMP_AND_SWP, 8);
	w.compare_add = 5;
	w.swap = 77;
	do_ok(&r, &w, IBV_WC_COMP_SWAP);
	memcpy(&value, r.q.a.buf, sizeof value);
	cr_expect_eq(value, 5);
	w.compare_add = 5;
	w.swap = 78;
	do_ok(&r, &w, IBV_WC_COMP_SWAP);
	memcpy(&value, r.q.a.buf, sizeof value);
	cr_expect_eq(value, 77);
	exporter_call(&r.x, &m, -1, NULL);
	memcpy(&value, m.room, sizeof value);
	cr_expect_eq(value, 77);
	rig_close(&r);
}

/* ---- lifetimes ---- */

Test(share, a_region_that_its_owner_gave_up_is_there_until_the_import_ends)
{
	struct rig r;
	struct work w;

	rig_open(&r);
	exporter_do(&r.x, EXPORTER_FILL, 0, 100, 1);
	cr_expect_eq(exporter_do(&r.x, EXPORTER_DEREG, 0, 0, 0), 0);
	w = from_exporter(&r, IBV_WR_RDMA_WRITE, 100);
	do_ok(&r, &w, IBV_WC_RDMA_WRITE);
	cr_expect_eq(pattern_differs(r.q.b.buf, 100, 1), -1);
	cr_expect_null(ibv_import_mr(r.pd, r.x.told.mr + 1));
	ibv_unimport_mr(r.mr);
	r.mr = NULL;
	/* The owner frees it with its next command. */
	cr_expect_eq(exporter_do(&r.x, EXPORTER_DM, 0, 0, 0), 0);
	cr_expect_null(ibv_import_mr(r.pd, r.x.told.mr));
	cr_expect_eq(errno, ENOENT);
	w.sge[0].lkey = r.x.told.lkey;
	do_fail(&r, &w, IBV_WC_LOC_PROT_ERR);
	rig_close(&r);
}

Test(share, a_region_without_an_import_ends_with_its_owner)
{
	struct rig r;
	struct work w;

	rig_open(&r);
	ibv_unimport_mr(r.mr);
	cr_expect_eq(exporter_do(&r.x, EXPORTER_DEREG, 0, 0, 0), 0);
	r.mr = NULL;
	w = (struct work){
		.opcode = IBV_WR_RDMA_WRITE, .wr_id = 1, .flags = IBV_SEND_SIGNALED,
		.remote_addr = r.q.ib.addr, .rkey = r.q.ib.rkey, .sge_count = 1,
		.sge = { { r.x.told.addr, 100, r.x.told.lkey } },
	};
	do_fail(&r, &w, IBV_WC_LOC_PROT_ERR);
	rig_close(&r);
}

Test(share, a_domain_is_busy_while_an_importer_has_objects_on_it)
{
	struct rig r;

	rig_open(&r);
	cr_expect_eq(exporter_do(&r.x, EXPORTER_DEREG, 0, 0, 0), 0);
	cr_expect_eq(exporter_do(&r.x, EXPORTER_DEALLOC, 0, 0, 0), EBUSY);
	end_close(&r.q.a);
	cr_expect_eq(exporter_do(&r.x, EXPORTER_DEALLOC, 0, 0, 0), EBUSY);
	end_close(&r.q.b);
	/* The region is kept by the import only, and so will be the domain. */
	cr_expect_eq(exporter_do(&r.x, EXPORTER_DEALLOC, 0, 0, 0), 0);
	borrowers_open(&r.q, r.context, r.pd);
	rig_close(&r);
}

Test(share, an_importer_destroys_its_own_reference)
{
	struct rig r;

	rig_open(&r);
	cr_expect_eq(ibv_dereg_mr(r.mr), 0);
	r.mr = NULL;
	cr_expect_eq(ibv_dealloc_pd(r.pd), EBUSY);
	cr_expect_eq(exporter_do(&r.x, EXPORTER_DEREG, 0, 0, 0), 0);
	rig_close(&r);
}

Test(share, the_exporter_may_close_its_descriptor_first)
{
	struct rig r = { 0 };
	struct work w;
	int fd;

	exporter_start(&r.x);
	fd = exporter_fd(&r.x);
	cr_expect_eq(exporter_do(&r.x, EXPORTER_FILL, 0, 100, 2), 0);
	cr_expect_eq(exporter_do(&r.x, EXPORTER_SHUT, 0, 0, 0), 0);
	r.context = ibv_import_device(fd);
	cr_assert_not_null(r.context, "%s", strerror(errno));
	r.pd = ibv_import_pd(r.context, r.x.told.pd);
	cr_assert_not_null(r.pd, "%s", strerror(errno));
	r.mr = ibv_import_mr(r.pd, r.x.told.mr);
	cr_assert_not_null(r.mr, "%s", strerror(errno));
	borrowers_open(&r.q, r.context, r.pd);
	w = from_exporter(&r, IBV_WR_RDMA_WRITE, 100);
	do_ok(&r, &w, IBV_WC_RDMA_WRITE);
	cr_expect_eq(pattern_differs(r.q.b.buf, 100, 2), -1);
	rig_close(&r);
}

Test(share, local_memory_of_an_exporter_that_died_is_a_protection_error)
{
	struct rig r;
	struct work w;

	rig_open(&r);
	exporter_kill(&r.x);
	w = from_exporter(&r, IBV_WR_RDMA_WRITE, 100);
	do_fail(&r, &w, IBV_WC_LOC_PROT_ERR);
	rig_close(&r);
}

Test(share, remote_memory_of_an_exporter_that_died_is_an_access_error)
{
	struct rig r;
	struct work w;

	rig_open(&r);
	exporter_kill(&r.x);
	w = to_exporter(&r, IBV_WR_RDMA_READ, 100);
	do_fail(&r, &w, IBV_WC_REM_ACCESS_ERR);
	rig_close(&r);
}

Test(share, a_descriptor_of_an_exporter_that_died_opens_nothing)
{
	struct rig r = { 0 };
	int fd;

	exporter_start(&r.x);
	fd = exporter_fd(&r.x);
	exporter_kill(&r.x);
	cr_expect_null(ibv_import_device(fd));
	cr_expect_eq(errno, EIO, "%s", strerror(errno));
}

Test(share, memory_that_the_exporter_unmapped_is_a_protection_error)
{
	struct rig r;
	struct work w;

	rig_open(&r);
	w = from_exporter(&r, IBV_WR_RDMA_WRITE, 100);
	/* What the device maps in the owner's process at first use must not fill the hole. */
	do_ok(&r, &w, IBV_WC_RDMA_WRITE);
	cr_expect_eq(exporter_do(&r.x, EXPORTER_UNMAP, 0, PART, 0), 0);
	do_fail(&r, &w, IBV_WC_LOC_PROT_ERR);
	rig_close(&r);
}

/* ---- what is no permission ---- */

Test(share, handles_that_were_not_given_name_nothing)
{
	struct ibv_context *own;
	struct rig r;

	rig_open(&r);
	cr_expect_null(ibv_import_pd(r.context, r.x.told.pd + 1000));
	cr_expect_eq(errno, ENOENT);
	cr_expect_null(ibv_import_pd(r.context, r.x.told.mr));
	cr_expect_eq(errno, EINVAL);
	cr_expect_null(ibv_import_mr(r.pd, 0xfffffff0));
	cr_expect_eq(errno, ENOENT);
	/* Good with that descriptor only. */
	own = device_open();
	cr_assert_not_null(own);
	cr_expect_null(ibv_import_pd(own, r.x.told.pd));
	cr_expect_eq(errno, ENOENT);
	cr_expect_eq(ibv_close_device(own), 0);
	rig_close(&r);
}

static void expect_refused(int fd, const char *what)
{
	errno = 0;
	cr_expect_null(ibv_import_device(fd), "%s was taken", what);
	cr_expect(errno == EINVAL || errno == EBADF, "%s: %s", what, strerror(errno));
	close(fd);
}

/* Whoever opens the file under /proc has another description of it. */
Test(share, only_a_descriptor_that_was_passed_opens_the_file)
{
	struct exporter_message m = { .op = EXPORTER_FD };
	struct rig r = { 0 };
	char path[64];
	int pair[2], fd;

	exporter_start(&r.x);
	close(exporter_fd(&r.x));
	exporter_call(&r.x, &m, -1, &fd);
	snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)r.x.pid, (int)m.arg[0]);
	expect_refused(open(path, O_RDWR), "what was opened under /proc");
	expect_refused(open("/proc/self/exe", O_RDONLY), "a regular file");
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	close(pair[1]);
	expect_refused(pair[0], "a socket");
	r.context = ibv_import_device(fd);
	cr_assert_not_null(r.context, "%s", strerror(errno));
	expect_refused(dup(r.context->async_fd), "an event file");
	cr_expect_eq(ibv_close_device(r.context), 0);
	exporter_stop(&r.x);
}

/* ---- device memory ---- */

enum { DM_SHOWN = 256 };

Test(share, device_memory_is_the_same_in_both)
{
	struct exporter_message m = { .op = EXPORTER_DM, .arg = { 11 } };
	uint8_t bytes[DM_SHOWN];
	struct ibv_dm *dm;
	struct rig r;

	rig_open(&r);
	exporter_call(&r.x, &m, -1, NULL);
	cr_assert_eq(m.err, 0, "%s", strerror(m.err));
	dm = ibv_import_dm(r.context, m.told.dm);
	cr_assert_not_null(dm, "%s", strerror(errno));
	cr_assert_eq(ibv_memcpy_from_dm(bytes, dm, 0, sizeof bytes), 0);
	cr_expect_eq(pattern_differs(bytes, sizeof bytes, 11), -1);
	pattern_fill(bytes, sizeof bytes, 12);
	cr_assert_eq(ibv_memcpy_to_dm(dm, 1024, bytes, sizeof bytes), 0);
	m = (struct exporter_message){ .op = EXPORTER_DM_READ, .arg = { 1024 } };
	exporter_call(&r.x, &m, -1, NULL);
	cr_expect_eq(pattern_differs(m.room, sizeof bytes, 12), -1);
	ibv_unimport_dm(dm);
	rig_close(&r);
}

/* With the exporter's key, and with one of its own. */
Test(share, device_memory_of_another_process_is_sent_from)
{
	struct exporter_message m = { .op = EXPORTER_DM, .arg = { 13 } };
	struct ibv_dm *dm;
	struct ibv_mr *mr;
	struct rig r;
	struct work w;

	rig_open(&r);
	exporter_call(&r.x, &m, -1, NULL);
	cr_assert_eq(m.err, 0, "%s", strerror(m.err));
	w = from_exporter(&r, IBV_WR_RDMA_WRITE, 512);
	w.sge[0] = (struct ibv_sge){ 0, 512, m.told.lkey };
	do_ok(&r, &w, IBV_WC_RDMA_WRITE);
	cr_expect_eq(pattern_differs(r.q.b.buf, 512, 13), -1);
	dm = ibv_import_dm(r.context, m.told.dm);
	cr_assert_not_null(dm, "%s", strerror(errno));
	mr = ibv_reg_dm_mr(r.pd, dm, 0, 512, ACCESS_ALL | IBV_ACCESS_ZERO_BASED);
	cr_assert_not_null(mr, "%s", strerror(errno));
	memset(r.q.b.buf, 0, 512);
	w.sge[0].lkey = mr->lkey;
	do_ok(&r, &w, IBV_WC_RDMA_WRITE);
	cr_expect_eq(pattern_differs(r.q.b.buf, 512, 13), -1);
	/* It is there for as long as somebody has it, also after its maker's end. */
	exporter_kill(&r.x);
	memset(r.q.b.buf, 0, 512);
	do_ok(&r, &w, IBV_WC_RDMA_WRITE);
	cr_expect_eq(pattern_differs(r.q.b.buf, 512, 13), -1);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	ibv_unimport_dm(dm);
	rig_close(&r);
}

Test(share, device_memory_that_its_owner_freed_is_there_until_the_import_ends)
{
	struct exporter_message m = { .op = EXPORTER_DM, .arg = { 14 } };
	uint8_t bytes[DM_SHOWN];
	struct ibv_dm *dm;
	struct rig r;

	rig_open(&r);
	exporter_call(&r.x, &m, -1, NULL);
	cr_assert_eq(m.err, 0, "%s", strerror(m.err));
	dm = ibv_import_dm(r.context, m.told.dm);
	cr_assert_not_null(dm, "%s", strerror(errno));
	cr_expect_eq(exporter_do(&r.x, EXPORTER_DM_FREE, 0, 0, 0), 0);
	/* Another buffer does not get its place. */
	cr_expect_eq(exporter_do(&r.x, EXPORTER_DM, 99, 0, 0), 0);
	cr_assert_eq(ibv_memcpy_from_dm(bytes, dm, 0, sizeof bytes), 0);
	cr_expect_eq(pattern_differs(bytes, sizeof bytes, 14), -1);
	ibv_unimport_dm(dm);
	rig_close(&r);
}

/* ---- objects on an imported domain ---- */

Test(share, windows_queues_and_address_handles_are_made_on_it)
{
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_mw_bind bind = { .wr_id = 5, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	struct ibv_mw *mw;
	struct done d;
	struct work w;
	struct rig r;

	rig_open(&r);
	srq = ibv_create_srq(r.pd, &srq_init);
	cr_assert_not_null(srq, "%s", strerror(errno));
	ah = end_ah(&r.q.a, &r.q.ib.gid);
	cr_assert_not_null(ah, "%s", strerror(errno));
	mw = ibv_alloc_mw(r.pd, IBV_MW_TYPE_1);
	cr_assert_not_null(mw, "%s", strerror(errno));
	mr = ibv_reg_mr(r.pd, r.q.b.buf, r.q.ib.bytes, ACCESS_ALL | IBV_ACCESS_MW_BIND);
	cr_assert_not_null(mr, "%s", strerror(errno));
	bind.bind_info = (struct ibv_mw_bind_info){ mr, r.q.ib.addr, PART,
						    IBV_ACCESS_REMOTE_WRITE };
	cr_assert_eq(ibv_bind_mw(r.q.b.qp, mw, &bind), 0);
	end_await(&r.q.b, SEND_CQ, &d);
	check_ok("bind", &d, 5, IBV_WC_BIND_MW);
	exporter_do(&r.x, EXPORTER_FILL, 0, 200, 31);
	w = from_exporter(&r, IBV_WR_RDMA_WRITE, 200);
	w.rkey = mw->rkey;
	do_ok(&r, &w, IBV_WC_RDMA_WRITE);
	cr_expect_eq(pattern_differs(r.q.b.buf, 200, 31), -1);
	cr_expect_eq(exporter_do(&r.x, EXPORTER_DEREG, 0, 0, 0), 0);
	borrowers_close(&r.q);
	cr_expect_eq(exporter_do(&r.x, EXPORTER_DEALLOC, 0, 0, 0), EBUSY);
	cr_expect_eq(ibv_dealloc_mw(mw), 0);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	cr_expect_eq(exporter_do(&r.x, EXPORTER_DEALLOC, 0, 0, 0), EBUSY);
	cr_expect_eq(ibv_destroy_srq(srq), 0);
	cr_expect_eq(exporter_do(&r.x, EXPORTER_DEALLOC, 0, 0, 0), 0);
	rig_close(&r);
}

/* What an importer made has a handle that another process can import in turn. */
/* Type 2, of b's QP, to the first PART bytes of the exporter's region. */
static struct ibv_mw *window_open(struct rig *r, enum ibv_wc_status wanted)
{
	struct ibv_mw *mw = ibv_alloc_mw(r->pd, IBV_MW_TYPE_2);
	struct ibv_send_wr *bad, wr = {
		.wr_id = 6, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
	};
	struct done d;

	cr_assert_not_null(mw, "%s", strerror(errno));
	mw->rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = mw->rkey;
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		r->mr, r->x.told.addr, PART, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};
	cr_assert_eq(ibv_post_send(r->q.b.qp, &wr, &bad), 0);
	end_await(&r->q.b, SEND_CQ, &d);
	cr_assert(d.found);
	cr_expect_eq(d.wc.status, wanted, "%s", ibv_wc_status_str(d.wc.status));
	return mw;
}

Test(share, windows_are_bound_to_it)
{
	struct ibv_mw_bind bind = { .wr_id = 5 };
	struct ibv_mw *mw, *type_1;
	struct work w;
	struct rig r;

	rig_open(&r);
	mw = window_open(&r, IBV_WC_SUCCESS);
	pattern_fill(r.q.a.buf, 200, 8);
	w = to_exporter(&r, IBV_WR_RDMA_WRITE, 200);
	w.rkey = mw->rkey;
	w.remote_addr += PART - 200;
	do_ok(&r, &w, IBV_WC_RDMA_WRITE);
	cr_expect_eq(exporter_do(&r.x, EXPORTER_DIFFERS, PART - 200, 200, 8), -1);
	exporter_do(&r.x, EXPORTER_FILL, 0, 100, 9);
	w = to_exporter(&r, IBV_WR_RDMA_READ, 100);
	w.rkey = mw->rkey;
	do_ok(&r, &w, IBV_WC_RDMA_READ);
	cr_expect_eq(pattern_differs(r.q.a.buf, 100, 9), -1);
	/* libmlx5 lets this call have regions of its own making only. */
	type_1 = ibv_alloc_mw(r.pd, IBV_MW_TYPE_1);
	bind.bind_info = (struct ibv_mw_bind_info){ r.mr, r.x.told.addr, PART, 0 };
	cr_expect_eq(ibv_bind_mw(r.q.b.qp, type_1, &bind), ENOTSUP);
	cr_expect_eq(ibv_dealloc_mw(type_1), 0);
	w.remote_addr += PART - 99;
	do_fail(&r, &w, IBV_WC_REM_ACCESS_ERR);
	cr_expect_eq(ibv_dealloc_mw(mw), 0);
	rig_close(&r);
}

Test(share, a_window_needs_the_region_s_leave)
{
	struct rig r;

	rig_open(&r);
	cr_assert_eq(exporter_do(&r.x, EXPORTER_REREG, ACCESS_ALL, 0, 0), 0);
	cr_expect_eq(ibv_dealloc_mw(window_open(&r, IBV_WC_MW_BIND_ERR)), 0);
	rig_close(&r);
}

Test(share, a_window_to_a_region_of_the_dead_opens_nothing)
{
	struct ibv_mw *mw;
	struct work w;
	struct rig r;

	rig_open(&r);
	mw = window_open(&r, IBV_WC_SUCCESS);
	exporter_kill(&r.x);
	w = to_exporter(&r, IBV_WR_RDMA_READ, 100);
	w.rkey = mw->rkey;
	do_fail(&r, &w, IBV_WC_REM_ACCESS_ERR);
	cr_expect_eq(ibv_dealloc_mw(mw), 0);
	rig_close(&r);
}

Test(share, what_an_importer_made_can_be_imported_from_it)
{
	struct exporter_message take = { .op = EXPORTER_TAKE };
	struct ibv_pd *pd;
	struct rig r;

	rig_open(&r);
	pd = ibv_alloc_pd(r.context);
	cr_assert_not_null(pd);
	cr_expect_neq(pd->handle, r.x.told.pd);
	take.arg[0] = pd->handle;
	exporter_call(&r.x, &take, r.context->cmd_fd, NULL);
	cr_expect_eq(take.err, 0, "%s", strerror(take.err));
	cr_expect_eq(ibv_dealloc_pd(pd), 0);
	rig_close(&r);
}

/* A change of the region is one for all; its key is the same. */
Test(share, the_owner_may_change_the_rights)
{
	struct rig r;
	struct work w;

	rig_open(&r);
	cr_assert_eq(exporter_do(&r.x, EXPORTER_REREG, IBV_ACCESS_LOCAL_WRITE, 0, 0), 0);
	w = from_exporter(&r, IBV_WR_RDMA_WRITE, 64);
	do_ok(&r, &w, IBV_WC_RDMA_WRITE);
	w = to_exporter(&r, IBV_WR_RDMA_READ, 64);
	do_fail(&r, &w, IBV_WC_REM_ACCESS_ERR);
	rig_close(&r);
}
