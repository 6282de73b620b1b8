/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device memory: ibv_alloc_dm() and regions on it.
 *
 * Rules: ibv_alloc_dm(3); device-abi H.4; api-inventory 1.12.
 */
#include <unistd.h>
#include "harness/reverse.h"

#define ZERO IBV_ACCESS_ZERO_BASED
#define DM_ALL (ACCESS_ALL | ZERO)
#define BYTES 8192

TestSuite(dm, .timeout = 60);

struct rig {
	struct pair p;
	struct ibv_dm *dm;
	struct ibv_mr *mr;
};

static struct ibv_dm *dm_alloc(struct ibv_context *c, size_t bytes)
{
	struct ibv_alloc_dm_attr attr = { .length = bytes };

	return ibv_alloc_dm(c, &attr);
}

static void rig_open(struct rig *r, enum placement where)
{
	pair_open(&r->p, where, NULL);
	r->dm = dm_alloc(r->p.a.context, BYTES);
	cr_assert_not_null(r->dm, "%s", strerror(errno));
	r->mr = ibv_reg_dm_mr(r->p.a.pd, r->dm, 0, BYTES, DM_ALL);
	cr_assert_not_null(r->mr, "%s", strerror(errno));
}

static void rig_close(struct rig *r)
{
	cr_expect_eq(ibv_dereg_mr(r->mr), 0);
	cr_expect_eq(ibv_free_dm(r->dm), 0);
	pair_close(&r->p);
}

static uint64_t max_dm_size(struct ibv_context *c)
{
	struct ibv_device_attr_ex attr;

	cr_assert_eq(ibv_query_device_ex(c, NULL, &attr), 0);
	return attr.max_dm_size;
}

/* ---- without a region ---- */

Test(dm, what_is_copied_in_comes_out)
{
	uint8_t in[256], out[256] = { 0 };
	struct rig r;

	rig_open(&r, ONE_THREAD);
	pattern_fill(in, sizeof in, 1);
	cr_assert_eq(ibv_memcpy_to_dm(r.dm, BYTES - 256, in, 256), 0);
	cr_assert_eq(ibv_memcpy_from_dm(out, r.dm, BYTES - 256, 256), 0);
	cr_expect_eq(pattern_differs(out, 256, 1), -1);
	cr_assert_eq(ibv_memcpy_from_dm(out, r.dm, 0, 256), 0);
	for (int i = 0; i < 256; i++)
		cr_assert_eq(out[i], 0, "new device memory is zero");
	cr_expect_eq(ibv_memcpy_to_dm(r.dm, BYTES - 252, in, 256), EFAULT);
	cr_expect_eq(ibv_memcpy_from_dm(out, r.dm, BYTES, 4), EFAULT);
	cr_expect_eq(ibv_memcpy_to_dm(r.dm, 2, in, 4), EINVAL);
	cr_expect_eq(ibv_memcpy_to_dm(r.dm, 4, in, 3), EINVAL);
	rig_close(&r);
}

Test(dm, lengths_and_alignments)
{
	static const struct { size_t bytes; uint32_t align; int err; } rows[] = {
		{ 1, 0, 0 }, { 64, 6, 0 }, { 4097, 12, 0 }, { 0, 0, EINVAL }, { 64, 40, EINVAL },
	};
	struct ibv_context *c = device_open();
	uint64_t max;

	cr_assert_not_null(c);
	max = max_dm_size(c);
	cr_expect_geq(max, 65536);
	for (unsigned i = 0; i < ROWS(rows); i++) {
		struct ibv_alloc_dm_attr attr = { .length = rows[i].bytes,
						  .log_align_req = rows[i].align };
		struct ibv_dm *dm;

		errno = 0;
		dm = ibv_alloc_dm(c, &attr);
		cr_expect_eq(dm == NULL, rows[i].err != 0, "row %u", i);
		cr_expect_eq(errno, rows[i].err, "row %u: %s", i, strerror(errno));
		if (dm)
			cr_expect_eq(ibv_free_dm(dm), 0);
	}
	cr_expect_null(dm_alloc(c, max + 1));
	cr_expect_eq(errno, EINVAL, "%s", strerror(errno));
	ibv_close_device(c);
}

Test(dm, it_runs_out_and_comes_back)
{
	struct ibv_context *c = device_open();
	struct ibv_dm *all, *again;

	cr_assert_not_null(c);
	for (int round = 0; round < 10; round++) {
		all = dm_alloc(c, max_dm_size(c));
		cr_assert_not_null(all, "%s", strerror(errno));
		errno = 0;
		again = dm_alloc(c, 64);
		cr_expect_null(again);
		cr_expect_eq(errno, ENOMEM, "%s", strerror(errno));
		cr_assert_eq(ibv_free_dm(all), 0);
	}
	ibv_close_device(c);
}

/* ---- regions ---- */

Test(dm, a_region_is_zero_based_and_inside)
{
	static const struct { uint64_t offset; size_t bytes; unsigned access; int err; } rows[] = {
		{ 0, BYTES, DM_ALL, 0 }, { BYTES - 4, 4, DM_ALL, 0 },
		{ 0, 64, ZERO | IBV_ACCESS_REMOTE_READ, 0 },
		{ 0, BYTES + 1, DM_ALL, EINVAL }, { 4, BYTES, DM_ALL, EINVAL },
		{ BYTES + 4, 4, DM_ALL, EINVAL }, { UINT64_MAX, 8, DM_ALL, EINVAL },
		{ 0, 64, ACCESS_ALL, EINVAL }, { 0, 64, ZERO | IBV_ACCESS_REMOTE_WRITE, EINVAL },
		{ 0, 64, DM_ALL | IBV_ACCESS_MW_BIND, EINVAL },
		{ 0, 64, DM_ALL | IBV_ACCESS_ON_DEMAND, EINVAL },
	};
	struct rig r;

	rig_open(&r, ONE_THREAD);
	for (unsigned i = 0; i < ROWS(rows); i++) {
		struct ibv_mr *mr;

		errno = 0;
		mr = ibv_reg_dm_mr(r.p.a.pd, r.dm, rows[i].offset, rows[i].bytes, rows[i].access);
		cr_expect_eq(mr == NULL, rows[i].err != 0, "row %u", i);
		cr_expect_eq(errno, rows[i].err, "row %u: %s", i, strerror(errno));
		if (mr)
			cr_expect_eq(ibv_dereg_mr(mr), 0);
	}
	rig_close(&r);
}

/* api-inventory DM-2 */
Test(dm, a_region_keeps_its_memory)
{
	struct rig r;

	rig_open(&r, ONE_THREAD);
	cr_expect_eq(ibv_free_dm(r.dm), EBUSY);
	cr_expect_eq(ibv_dealloc_pd(r.p.a.pd), EBUSY);
	cr_expect_eq(ibv_rereg_mr(r.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, DM_ALL),
		     IBV_REREG_MR_ERR_CMD);
	rig_close(&r);
}

CASE_EACH(dm, peers_write_and_read_it)
{
	uint8_t bytes[256];
	struct rig r;

	rig_open(&r, where);
	peer_fill(&r.p.peer, 0, 256, 4);
	REVERSE_EXPECT(&r.p, IBV_WR_RDMA_WRITE, BYTES - 256, r.mr->rkey, 256, IBV_WC_SUCCESS);
	cr_assert_eq(ibv_memcpy_from_dm(bytes, r.dm, BYTES - 256, 256), 0);
	cr_expect_eq(pattern_differs(bytes, 256, 4), -1);
	pattern_fill(bytes, 256, 5);
	cr_assert_eq(ibv_memcpy_to_dm(r.dm, 512, bytes, 256), 0);
	REVERSE_EXPECT(&r.p, IBV_WR_RDMA_READ, 512, r.mr->rkey, 256, IBV_WC_SUCCESS);
	cr_expect_eq(peer_differs(&r.p.peer, 0, 256, 5), -1);
	REVERSE_EXPECT(&r.p, IBV_WR_ATOMIC_FETCH_AND_ADD, 512, r.mr->rkey, 8, IBV_WC_SUCCESS);
	REVERSE_EXPECT(&r.p, IBV_WR_RDMA_WRITE, BYTES - 255, r.mr->rkey, 256,
		       IBV_WC_REM_ACCESS_ERR);
	rig_close(&r);
}

/* Source and destination of this end's own requests. */
CASE_EACH(dm, requests_begin_and_end_in_it)
{
	uint8_t bytes[256];
	struct work w;
	struct rig r;

	rig_open(&r, where);
	pattern_fill(bytes, 256, 6);
	cr_assert_eq(ibv_memcpy_to_dm(r.dm, 64, bytes, 256), 0);
	w = pair_work(&r.p, IBV_WR_RDMA_WRITE, 256);
	w.sge[0] = (struct ibv_sge){ 64, 256, r.mr->lkey };
	must_post(&r.p, &w);
	await_ok(&r.p, 1, IBV_WC_RDMA_WRITE);
	cr_expect_eq(peer_differs(&r.p.peer, 0, 256, 6), -1);
	peer_fill(&r.p.peer, 0, 256, 7);
	w.opcode = IBV_WR_RDMA_READ;
	must_post(&r.p, &w);
	await_ok(&r.p, 1, IBV_WC_RDMA_READ);
	cr_assert_eq(ibv_memcpy_from_dm(bytes, r.dm, 64, 256), 0);
	cr_expect_eq(pattern_differs(bytes, 256, 7), -1);
	w.sge[0].addr = BYTES - 255;
	must_post(&r.p, &w);
	await_error(&r.p, 1, IBV_WC_LOC_PROT_ERR);
	rig_close(&r);
}

/* Address 0 is where the region begins, wherever that is in the device memory. */
CASE_EACH(dm, addresses_count_from_the_region)
{
	struct ibv_mr *part;
	uint8_t bytes[64];
	struct rig r;

	rig_open(&r, where);
	part = ibv_reg_dm_mr(r.p.a.pd, r.dm, 4096, 64, DM_ALL);
	cr_assert_not_null(part);
	peer_fill(&r.p.peer, 0, 64, 9);
	REVERSE_EXPECT(&r.p, IBV_WR_RDMA_WRITE, 0, part->rkey, 64, IBV_WC_SUCCESS);
	cr_assert_eq(ibv_memcpy_from_dm(bytes, r.dm, 4096, 64), 0);
	cr_expect_eq(pattern_differs(bytes, 64, 9), -1);
	REVERSE_EXPECT(&r.p, IBV_WR_RDMA_WRITE, 1, part->rkey, 64, IBV_WC_REM_ACCESS_ERR);
	cr_expect_eq(ibv_dereg_mr(part), 0);
	rig_close(&r);
}

/* ---- imported ---- */

Test(dm, an_imported_buffer_is_the_same_memory)
{
	uint32_t word = 0x12345678, seen = 0;
	struct ibv_context *again;
	struct ibv_dm *dm;
	struct rig r;

	rig_open(&r, ONE_THREAD);
	again = ibv_import_device(dup(r.p.a.context->cmd_fd));
	cr_assert_not_null(again, "%s", strerror(errno));
	dm = ibv_import_dm(again, r.dm->handle);
	cr_assert_not_null(dm, "%s", strerror(errno));
	cr_assert_eq(ibv_memcpy_to_dm(dm, 100, &word, 4), 0);
	cr_assert_eq(ibv_memcpy_from_dm(&seen, r.dm, 100, 4), 0);
	cr_expect_eq(seen, word);
	cr_expect_eq(ibv_memcpy_from_dm(&seen, dm, BYTES - 2, 4), EFAULT);
	ibv_unimport_dm(dm);
	ibv_close_device(again);
	rig_close(&r);
}
