/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions: what can be registered, and memory that goes away.
 *
 * Rules: device-abi B.9 (reg_mr), D (keys); rxe-oracle section 7, "Resources" (errno values
 * of the kernel's core); F.1 rows 1, 2 and 5 for memory that is gone.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "harness/check.h"

#define LW IBV_ACCESS_LOCAL_WRITE
#define PAGE 4096

TestSuite(mr, .timeout = 60);

static struct end end;

static void open_end(void)
{
	must_open(&end);
}

static void close_end(void)
{
	end_close(&end);
}

static uint8_t *map_pages(size_t count, int prot)
{
	uint8_t *at = mmap(NULL, count * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(at, MAP_FAILED);
	return at;
}

/* ---- what reg_mr says ---- */

enum where { AT_BUFFER, AT_NULL, AT_UNMAPPED, AT_READ_ONLY, AT_NO_ACCESS, AT_TOP, AT_HALF,
	     WHERE_COUNT };

struct reg_row {
	const char *name;
	enum where where;
	uint64_t offset, bytes;
	unsigned access;
	int err;
};

static const struct reg_row reg_rows[] = {
	{ "a buffer", AT_BUFFER, 0, PAGE, ACCESS_ALL, 0 },
	{ "5 bytes at an odd address", AT_BUFFER, 3, 5, LW, 0 },
	{ "one byte", AT_BUFFER, 0, 1, LW, 0 },
	{ "no right at all", AT_BUFFER, 0, PAGE, 0, 0 },
	{ "REMOTE_READ alone", AT_BUFFER, 0, PAGE, IBV_ACCESS_REMOTE_READ, 0 },
	{ "length 0", AT_BUFFER, 0, 0, LW, EINVAL },
	{ "NULL, length 0", AT_NULL, 0, 0, LW, EINVAL },
	{ "NULL", AT_NULL, 0, PAGE, LW, EFAULT },
	{ "memory that is not mapped", AT_UNMAPPED, 0, PAGE, LW, EFAULT },
	{ "a hole in the middle", AT_HALF, 0, 3 * PAGE, LW, EFAULT },
	{ "address + length wraps", AT_TOP, 0, UINT64_C(1) << 20, LW, EINVAL },
	{ "REMOTE_WRITE without LOCAL_WRITE", AT_BUFFER, 0, PAGE, IBV_ACCESS_REMOTE_WRITE, EINVAL },
	{ "REMOTE_ATOMIC without LOCAL_WRITE", AT_BUFFER, 0, PAGE, IBV_ACCESS_REMOTE_ATOMIC,
	  EINVAL },
	{ "LOCAL_WRITE on a read-only page", AT_READ_ONLY, 0, PAGE, LW, EFAULT },
	{ "reading a read-only page", AT_READ_ONLY, 0, PAGE, IBV_ACCESS_REMOTE_READ, 0 },
	{ "a page without access", AT_NO_ACCESS, 0, PAGE, 0, EFAULT },
	{ "RELAXED_ORDERING", AT_BUFFER, 0, PAGE, LW | IBV_ACCESS_RELAXED_ORDERING, 0 },
	{ "an unknown optional bit", AT_BUFFER, 0, PAGE, LW | 1u << 25, 0 },
	{ "an unknown bit", AT_BUFFER, 0, PAGE, LW | 1u << 19, EINVAL },
};

static uint8_t *place(enum where where)
{
	uint8_t *three;

	switch (where) {
	case AT_BUFFER:
		return end.buf;
	case AT_READ_ONLY:
		return map_pages(1, PROT_READ);
	case AT_NO_ACCESS:
		return map_pages(1, PROT_NONE);
	case AT_TOP:
		return (uint8_t *)(UINTPTR_MAX - PAGE + 1);
	case AT_UNMAPPED:
		three = map_pages(3, PROT_READ);
		munmap(three, 3 * PAGE);
		return three;
	case AT_HALF:
		three = map_pages(3, PROT_READ | PROT_WRITE);
		munmap(three + PAGE, PAGE);
		return three;
	case AT_NULL:
	case WHERE_COUNT:
		break;
	}
	return NULL;
}

/* Plain registrations go through ibv_reg_mr's own command; the optional bits through the
 * iova variant that the header picks when a flag is optional. */
Test(mr, registration_rules_and_their_errno, .init = open_end, .fini = close_end)
{
	for (unsigned i = 0; i < ROWS(reg_rows); i++) {
		const struct reg_row *r = &reg_rows[i];
		struct ibv_mr *mr;

		errno = 0;
		mr = ibv_reg_mr(end.pd, place(r->where) + r->offset, r->bytes, r->access);
		if (r->err) {
			cr_expect_null(mr, "%s", r->name);
			cr_expect_eq(errno, r->err, "%s: %s", r->name, strerror(errno));
		} else {
			cr_expect_not_null(mr, "%s: %s", r->name, strerror(errno));
			cr_expect(!mr || mr->lkey == mr->rkey, "%s: lkey is not rkey", r->name);
		}
		if (mr)
			cr_expect_eq(ibv_dereg_mr(mr), 0);
	}
}

/* B.9: start and iova must agree within a page. */
Test(mr, an_iova_must_have_the_page_offset_of_the_memory, .init = open_end, .fini = close_end)
{
	struct ibv_mr *mr = ibv_reg_mr_iova(end.pd, end.buf, PAGE, 0x10008, LW);

	cr_expect_null(mr);
	cr_expect_eq(errno, EINVAL, "%s", strerror(errno));
	mr = ibv_reg_mr_iova(end.pd, end.buf, PAGE, 0x10000, LW);
	cr_assert_not_null(mr);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
}

/* ibv_reg_mr_iova(3): remote and local addresses are in the key's own space. */
Test(mr, an_iova_is_what_both_ends_address)
{
	struct ibv_mr *mr;
	struct pair p;
	struct work w;

	pair_open(&p, ONE_THREAD, NULL);
	mr = ibv_reg_mr_iova(p.a.pd, p.peer.here.buf, PAGE, 0x40000000, ACCESS_ALL);
	cr_assert_not_null(mr);
	w = pair_work(&p, IBV_WR_RDMA_WRITE, 100);
	w.sge[0] = (struct ibv_sge){ 0x40000000 + 1000, 100, mr->lkey };
	pattern_fill(p.peer.here.buf + 1000, 100, 6);
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	cr_expect_eq(peer_differs(&p.peer, 0, 100, 6), -1);
	w.sge[0].addr = (uintptr_t)p.peer.here.buf + 1000;
	must_post(&p, &w);
	await_error(&p, 1, IBV_WC_LOC_PROT_ERR);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	pair_close(&p);
}

/* D: tags change from registration to registration, so a stale key is caught; and no two
 * live regions share a key. */
Test(mr, keys_are_distinct_and_change, .init = open_end, .fini = close_end)
{
	enum { COUNT = 2000 };
	static struct ibv_mr *mr[COUNT];
	static uint32_t key[COUNT];
	struct ibv_mr *again;

	for (unsigned i = 0; i < COUNT; i++) {
		mr[i] = ibv_reg_mr(end.pd, end.buf, PAGE, ACCESS_ALL);
		cr_assert_not_null(mr[i], "registration %u: %s", i, strerror(errno));
		key[i] = mr[i]->lkey;
		cr_expect_gt(key[i] >> 8, 0);
		cr_expect_neq(key[i], 0x100, "the end-of-list key");
	}
	for (unsigned i = 0; i < COUNT; i++)
		for (unsigned j = 0; j < i; j++)
			cr_assert_neq(key[i] >> 8, key[j] >> 8, "%u and %u", i, j);
	for (unsigned i = 0; i < COUNT; i++)
		cr_assert_eq(ibv_dereg_mr(mr[i]), 0);
	again = ibv_reg_mr(end.pd, end.buf, PAGE, ACCESS_ALL);
	cr_assert_not_null(again);
	for (unsigned i = 0; i < COUNT; i++)
		cr_assert_neq(again->lkey, key[i], "a key of a freed region came back at once");
	ibv_dereg_mr(again);
}

/* Regions overlap freely; each grants its own rights. */
CASE_EACH(mr, overlapping_regions_each_grant_their_own_rights)
{
	struct end_info all, read_only;
	struct pair p;
	struct work w;

	pair_open(&p, where, NULL);
	cr_assert_geq(peer_register(&p.peer, p.ib.addr, PAGE, ACCESS_ALL, false, &all), 0);
	cr_assert_geq(peer_register(&p.peer, p.ib.addr, PAGE, IBV_ACCESS_REMOTE_READ, false,
				    &read_only), 0);
	w = pair_work(&p, IBV_WR_RDMA_WRITE, 100);
	w.rkey = all.rkey;
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	w.opcode = IBV_WR_RDMA_READ;
	w.rkey = read_only.rkey;
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_RDMA_READ);
	w.opcode = IBV_WR_RDMA_WRITE;
	must_post(&p, &w);
	await_error(&p, 1, IBV_WC_REM_ACCESS_ERR);
	pair_close(&p);
}

/* A key works until dereg_mr, and not a request longer. */
CASE_EACH(mr, a_key_ends_with_its_region)
{
	struct end_info info;
	struct pair p;
	struct work w;
	int slot;

	pair_open(&p, where, NULL);
	slot = peer_register(&p.peer, p.ib.addr, PAGE, ACCESS_ALL, false, &info);
	cr_assert_geq(slot, 0);
	w = pair_work(&p, IBV_WR_RDMA_READ, 100);
	w.rkey = info.rkey;
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_RDMA_READ);
	cr_assert_eq(peer_deregister(&p.peer, slot), 0);
	must_post(&p, &w);
	await_error(&p, 1, IBV_WC_REM_ACCESS_ERR);
	pair_close(&p);
}

/* ---- memory that is unmapped behind its region ----
 *
 * Real hardware keeps the pages pinned; an emulator cannot.  The rule here is its own:
 * an error as for a bad key, and the application lives on. */

static const struct { enum ibv_wr_opcode op; uint32_t bytes; } gone_rows[] = {
	{ IBV_WR_RDMA_WRITE, 64 }, { IBV_WR_RDMA_WRITE, 20000 },
	{ IBV_WR_RDMA_READ, 64 }, { IBV_WR_RDMA_READ, 20000 },
	{ IBV_WR_ATOMIC_FETCH_AND_ADD, 8 }, { IBV_WR_SEND, 64 }, { IBV_WR_SEND, 20000 },
};

/* Whatever the device sets up at the first contact is set up before the hole appears. */
static void warm_up(struct pair *p)
{
	struct work w = pair_work(p, IBV_WR_RDMA_WRITE, 8);

	must_post(p, &w);
	await_ok(p, 1, IBV_WC_RDMA_WRITE);
}

static bool is_error(enum ibv_wc_status got, enum ibv_wc_status a, enum ibv_wc_status b,
		     enum ibv_wc_status c)
{
	return got == a || got == b || got == c;
}

CASE_TABLE(mr, local_memory_that_is_gone_fails_the_request, ROWS(gone_rows))
{
	struct pair p;
	struct work w, r;
	struct done d;

	pair_open(&p, where, NULL);
	warm_up(&p);
	w = pair_work(&p, gone_rows[row].op, gone_rows[row].bytes);
	r = pair_recv(&p, 2, 0, 32768);
	must_recv(&p, &r);
	cr_assert_eq(munmap(p.a.buf, p.ia.bytes), 0);
	must_post(&p, &w);
	end_await(&p.a, SEND_CQ, &d);
	cr_assert(d.found);
	cr_expect(is_error(d.wc.status, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_PROT_ERR,
			   IBV_WC_LOC_ACCESS_ERR),
		  "row %d: %s", row, ibv_wc_status_str(d.wc.status));
	cr_expect_eq(end_state(&p.a), IBV_QPS_ERR);
	p.a.buf = NULL;
	pair_close(&p);
}

CASE_TABLE(mr, remote_memory_that_is_gone_fails_the_request, ROWS(gone_rows))
{
	struct pair p;
	struct work w, r;
	struct done d;

	pair_open(&p, where, NULL);
	warm_up(&p);
	w = pair_work(&p, gone_rows[row].op, gone_rows[row].bytes);
	r = pair_recv(&p, 2, 0, 32768);
	must_recv(&p, &r);
	cr_assert_eq(peer_unmap(&p.peer, 0, p.ib.bytes), 0);
	must_post(&p, &w);
	end_await(&p.a, SEND_CQ, &d);
	cr_assert(d.found);
	cr_expect(is_error(d.wc.status, IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_OP_ERR,
			   IBV_WC_REM_ACCESS_ERR),
		  "row %d: %s", row, ibv_wc_status_str(d.wc.status));
	cr_expect_eq(end_state(&p.a), IBV_QPS_ERR);
	cr_expect_eq(peer_state(&p.peer), IBV_QPS_ERR);
	pair_close(&p);
}

/* Only the pages that are missing matter: the rest of the region still works. */
CASE_EACH(mr, the_mapped_rest_of_a_region_still_works)
{
	struct pair p;
	struct work w;

	pair_open(&p, where, NULL);
	warm_up(&p);
	cr_assert_eq(peer_unmap(&p.peer, 8 * PAGE, PAGE), 0);
	w = pair_work(&p, IBV_WR_RDMA_WRITE, 8 * PAGE);
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	w.sge[0].length = 8 * PAGE + 1;
	must_post(&p, &w);
	await_error(&p, 1, IBV_WC_REM_ACCESS_ERR);
	pair_close(&p);
}

/* A page that lost its write permission is as good as gone for who writes to it. */
Test(mr, local_memory_made_read_only_fails_a_read)
{
	struct pair p;
	struct work w;
	struct done d;

	pair_open(&p, ONE_THREAD, NULL);
	cr_assert_eq(mprotect(p.a.buf, p.ia.bytes, PROT_READ), 0);
	w = pair_work(&p, IBV_WR_RDMA_WRITE, 64);
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	w.opcode = IBV_WR_RDMA_READ;
	must_post(&p, &w);
	end_await(&p.a, SEND_CQ, &d);
	cr_assert(d.found);
	cr_expect_neq(d.wc.status, IBV_WC_SUCCESS);
	pair_close(&p);
}
