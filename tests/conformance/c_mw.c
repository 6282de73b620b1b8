/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows: binding them, and going through them.
 *
 * Rules: expected-statuses.md, "Requester and responder"; device-abi C.3.12 and D; api-inventory
 * 4.1.  Invalidation and lifetimes are in c_mw_life.c.
 */
#include "harness/mw.h"

#define LW IBV_ACCESS_LOCAL_WRITE
#define RW IBV_ACCESS_REMOTE_WRITE
#define RR IBV_ACCESS_REMOTE_READ
#define RA IBV_ACCESS_REMOTE_ATOMIC
#define MWB IBV_ACCESS_MW_BIND
#define ZERO IBV_ACCESS_ZERO_BASED
#define WRITE IBV_WR_RDMA_WRITE
#define READ IBV_WR_RDMA_READ
#define FADD IBV_WR_ATOMIC_FETCH_AND_ADD

TestSuite(mw, .timeout = 60);

/* ---- what a bind says ---- */

enum region { OWN, OTHER_PD, ZERO_BASED, RIGHTS };
enum outcome { BINDS, FAILS, REFUSED };		/* completion, error completion, errno at post */

struct bind_row {
	const char *name;
	int type;			/* 0: both */
	enum outcome outcome;
	unsigned access;
	enum region region;
	unsigned region_access;
	int64_t shift;
	uint64_t bytes;
	int err;			/* REFUSED */
};

static const struct bind_row bind_rows[] = {
	{ "read and write", 0, BINDS, RW | RR, OWN, 0, 0, 64, 0 },
	{ "no right at all", 0, BINDS, 0, OWN, 0, 0, 64, 0 },
	{ "all of the region", 0, BINDS, RW | RR | RA, RIGHTS, LW | MWB, 0, AREA_BYTES, 0 },
	{ "its last byte", 0, BINDS, RW, RIGHTS, LW | MWB, AREA_BYTES - 1, 1, 0 },
	{ "a byte more than the region", 0, FAILS, RW, RIGHTS, LW | MWB, 0, AREA_BYTES + 1, 0 },
	{ "a byte in front of the region", 0, FAILS, RW, RIGHTS, LW | MWB, -1, 64, 0 },
	{ "behind the region", 0, FAILS, RW, RIGHTS, LW | MWB, AREA_BYTES, 1, 0 },
	{ "region without MW_BIND", 0, FAILS, RR, RIGHTS, LW | RR | RW, 0, 64, 0 },
	{ "region without LOCAL_WRITE, write", 0, FAILS, RW, RIGHTS, MWB, 0, 64, 0 },
	{ "region without LOCAL_WRITE, atomic", 0, FAILS, RA, RIGHTS, MWB, 0, 64, 0 },
	{ "region without LOCAL_WRITE, read", 0, BINDS, RR, RIGHTS, MWB, 0, 64, 0 },
	{ "region of another domain", IBV_MW_TYPE_2, FAILS, RR, OTHER_PD, LW | MWB, 0, 64, 0 },
	{ "region of another domain", IBV_MW_TYPE_1, REFUSED, RR, OTHER_PD, LW | MWB, 0, 64,
	  EPERM },
	{ "zero-based region", IBV_MW_TYPE_2, FAILS, RR, ZERO_BASED, LW | MWB | ZERO, 0, 64, 0 },
	{ "zero-based region", IBV_MW_TYPE_1, REFUSED, RR, ZERO_BASED, LW | MWB | ZERO, 0, 64,
	  EINVAL },
	{ "zero-based window", IBV_MW_TYPE_2, BINDS, RR | ZERO, OWN, 0, 0, 64, 0 },
	{ "zero-based window", IBV_MW_TYPE_1, REFUSED, RR | ZERO, OWN, 0, 0, 64, EINVAL },
	{ "length 0", IBV_MW_TYPE_2, FAILS, RR, OWN, 0, 0, 0, 0 },
	{ "length 0", IBV_MW_TYPE_1, BINDS, RR, OWN, 0, 0, 0, 0 },
};

static void choose_region(struct mw *m, const struct bind_row *r, struct window_ask *ask)
{
	struct end_info info;

	ask->addr += (uint64_t)r->shift;
	if (r->region == OWN)
		return;
	ask->region = peer_register(&m->p.peer, m->p.ib.addr + AREA, AREA_BYTES,
				    r->region_access, r->region == OTHER_PD, &info);
	cr_assert_geq(ask->region, 0, "%s: %s", r->name, strerror(errno));
	if (r->region == ZERO_BASED)
		ask->addr = 0;
}

static void run_bind(const struct bind_row *r, int type, enum placement where)
{
	struct window_ask ask;
	struct mw m;
	int err;

	mw_open(&m, where, type);
	ask = mw_bind_ask(&m);
	ask.access = r->access;
	ask.bytes = r->bytes;
	choose_region(&m, r, &ask);
	err = peer_window(&m.p.peer, &ask);
	cr_assert_eq(err, r->err, "%s: %s", r->name, strerror(err));
	if (r->outcome == BINDS)
		mw_await(&m, 21, IBV_WC_BIND_MW);
	else if (r->outcome == FAILS)
		mw_await_error(&m, r->name, 21);
	check_states(r->name, &m.p, IBV_QPS_RTS, r->outcome == FAILS ? IBV_QPS_ERR : IBV_QPS_RTS);
	check_quiet(&m.p);
	mw_close(&m);
}

CASE_TABLE(mw, each_bind_succeeds_or_says_mw_bind, ROWS(bind_rows))
{
	const struct bind_row *r = &bind_rows[row];

	for (int type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++)
		if (!r->type || r->type == type)
			run_bind(r, type, where);
}

/* ---- what goes through ---- */

struct use_row {
	const char *name;
	enum ibv_wr_opcode op;
	unsigned access;
	int64_t shift;			/* from the window's start */
	uint32_t bytes;
	bool works;
};

#define IN AREA_BYTES

static const struct use_row use_rows[] = {
	{ "WRITE", WRITE, RW, 0, 64, true },
	{ "READ", READ, RR, 0, 64, true },
	{ "FADD", FADD, RA, 8, 8, true },
	{ "WRITE of several packets", WRITE, RW, 0, IN, true },
	{ "READ of several packets", READ, RR, 0, IN, true },
	{ "WRITE up to the last byte", WRITE, RW, IN - 64, 64, true },
	{ "WRITE with all rights", WRITE, RW | RR | RA, 0, 64, true },
	{ "WRITE of 0 bytes, out of it", WRITE, RW, IN + 64, 0, true },
	{ "WRITE a byte beyond", WRITE, RW, IN - 63, 64, false },
	{ "WRITE beyond, inside of the region", WRITE, RW, IN, 8, false },
	{ "WRITE in front, inside of the region", WRITE, RW, -8, 8, false },
	{ "WRITE that begins in front", WRITE, RW, -1, 64, false },
	{ "WRITE of several packets, the last beyond", WRITE, RW, 1, IN, false },
	{ "READ beyond", READ, RR, IN - 7, 8, false },
	{ "READ in front", READ, RR, -8, 8, false },
	{ "FADD beyond", FADD, RA, IN, 8, false },
	{ "WRITE into a window for reading", WRITE, RR, 0, 64, false },
	{ "WRITE into a window for atomics", WRITE, RA, 0, 64, false },
	{ "READ from a window for writing", READ, RW, 0, 64, false },
	{ "READ from a window for atomics", READ, RA, 0, 64, false },
	{ "FADD in a window for reading and writing", FADD, RW | RR, 8, 8, false },
	{ "WRITE into a window without rights", WRITE, 0, 0, 8, false },
	{ "READ from a window without rights", READ, 0, 0, 8, false },
};

static const enum ibv_wc_opcode wc_opcodes[] = {
	[WRITE] = IBV_WC_RDMA_WRITE, [READ] = IBV_WC_RDMA_READ, [FADD] = IBV_WC_FETCH_ADD,
};

static void run_use(const struct use_row *r, int type, enum placement where)
{
	struct window_ask ask;
	struct work w;
	struct mw m;

	mw_open(&m, where, type);
	ask = mw_bind_ask(&m);
	ask.access = r->access;
	mw_post_bind(&m, &ask);
	mw_await(&m, 21, IBV_WC_BIND_MW);
	w = mw_work(&m, r->op, m.ask.rkey);
	w.remote_addr += (uint64_t)r->shift;
	w.sge[0].length = r->bytes;
	w.sge_count = r->bytes != 0;
	pattern_fill(m.p.a.buf, IN, 5);
	must_post(&m.p, &w);
	if (!r->works) {
		await_error(&m.p, 1, IBV_WC_REM_ACCESS_ERR);
		cr_expect(peer_event(&m.p.peer, IBV_EVENT_QP_ACCESS_ERR, AWAIT_MS), "%s", r->name);
		cr_expect_neq(peer_differs(&m.p.peer, AREA + (size_t)r->shift, r->bytes, 5), -1,
			      "%s: written", r->name);
	} else {
		await_ok(&m.p, 1, wc_opcodes[r->op]);
		if (r->op == WRITE)
			cr_expect_eq(peer_differs(&m.p.peer, AREA + (size_t)r->shift, r->bytes, 5),
				     -1, "%s: bytes", r->name);
	}
	mw_close(&m);
}

CASE_TABLE(mw, each_access_stays_within_range_and_rights, ROWS(use_rows))
{
	for (int type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++)
		run_use(&use_rows[row], type, where);
}

/* api-inventory 4.1, 3 */
CASE_EACH(mw, a_new_window_is_not_bound)
{
	for (int type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
		struct mw m;

		mw_open(&m, where, type);
		cr_expect_neq(m.ask.rkey, 0);
		mw_write_fails(&m, m.ask.rkey);
		mw_close(&m);
	}
}

CASE_EACH(mw, the_regions_own_key_still_works)
{
	struct mw m;

	mw_open(&m, where, IBV_MW_TYPE_2);
	mw_bind(&m);
	mw_write_works(&m, m.ask.rkey);
	mw_write_works(&m, m.p.ib.rkey);
	mw_works(&m, READ, m.ask.rkey, IBV_WC_RDMA_READ);
	mw_works(&m, FADD, m.ask.rkey, IBV_WC_FETCH_ADD);
	mw_close(&m);
}

/* The window's rights and the QP's are both needed. */
CASE_EACH(mw, the_qps_access_flags_come_first)
{
	struct pair_opts opts;
	struct work w;
	struct mw m;

	pair_defaults(&opts);
	opts.b.mr_access = LW | MWB;
	opts.b.qp_access = RR;
	pair_open(&m.p, where, &opts);
	m.ask = (struct window_ask){ .verb = WINDOW_ALLOC, .type = IBV_MW_TYPE_2 };
	cr_assert_eq(peer_window(&m.p.peer, &m.ask), 0);
	mw_bind(&m);
	mw_works(&m, READ, m.ask.rkey, IBV_WC_RDMA_READ);
	w = mw_work(&m, WRITE, m.ask.rkey);
	must_post(&m.p, &w);
	await_error(&m.p, 1, IBV_WC_REM_INV_REQ_ERR);
	mw_close(&m);
}

/* api-inventory 4.1, 12 */
CASE_EACH(mw, a_zero_based_window_is_addressed_from_0)
{
	struct window_ask ask;
	struct work w;
	struct mw m;

	mw_open(&m, where, IBV_MW_TYPE_2);
	ask = mw_bind_ask(&m);
	ask.access |= ZERO;
	mw_post_bind(&m, &ask);
	mw_await(&m, 21, IBV_WC_BIND_MW);
	w = mw_work(&m, WRITE, m.ask.rkey);
	w.remote_addr = 100;
	w.sge[0].length = 50;
	pattern_fill(m.p.a.buf, 50, 8);
	must_post(&m.p, &w);
	await_ok(&m.p, 1, IBV_WC_RDMA_WRITE);
	cr_expect_eq(peer_differs(&m.p.peer, AREA + 100, 50, 8), -1);
	mw_write_fails(&m, m.ask.rkey);		/* the address of the memory */
	mw_close(&m);
}

/* ---- keys ---- */

/* api-inventory 4.1, 5: the key changes when the bind is posted, and the old one is dead when it
 * has been executed. */
CASE_EACH(mw, type_1_has_a_new_key_with_every_bind)
{
	uint32_t keys[3];
	struct mw m;

	mw_open(&m, where, IBV_MW_TYPE_1);
	keys[0] = m.ask.rkey;
	for (int i = 1; i < 3; i++) {
		mw_bind(&m);
		keys[i] = m.ask.rkey;
		cr_expect_eq(keys[i], ibv_inc_rkey(keys[i - 1]));
		mw_write_works(&m, keys[i]);
	}
	mw_write_fails(&m, keys[1]);
	mw_close(&m);
}

CASE_EACH(mw, the_key_before_the_bind_is_dead)
{
	for (int type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
		uint32_t before;
		struct mw m;

		mw_open(&m, where, type);
		before = m.ask.rkey;
		mw_bind(&m);
		mw_write_fails(&m, before);
		mw_close(&m);
	}
}

/* Any low byte will do, the one that the window has included; the upper bytes are the window's
 * whatever the request says. */
CASE_EACH(mw, type_2_has_the_low_byte_that_was_asked_for)
{
	static const uint32_t steps[] = { 0, 1, 0x80, 0xff };

	for (unsigned i = 0; i < ROWS(steps); i++) {
		struct window_ask ask;
		struct mw m;

		mw_open(&m, where, IBV_MW_TYPE_2);
		ask = mw_bind_ask(&m);
		ask.tag_step = steps[i];
		mw_post_bind(&m, &ask);
		mw_await(&m, 21, IBV_WC_BIND_MW);
		mw_write_works(&m, m.ask.rkey);
		mw_write_fails(&m, ibv_inc_rkey(m.ask.rkey));
		mw_close(&m);
	}
}

Test(mw, inc_rkey_changes_the_low_byte_only)
{
	cr_expect_eq(ibv_inc_rkey(0x12345678), 0x12345679u);
	cr_expect_eq(ibv_inc_rkey(0x123456ff), 0x12345600u);
}

/* device-abi D: a type 2 window is bound to the QP, a type 1 window to the domain. */
CASE_EACH(mw, a_type_2_window_is_no_other_qps)
{
	struct mw m;

	mw_open(&m, where, IBV_MW_TYPE_2);
	mw_bind(&m);
	mw_write_works(&m, m.ask.rkey);
	mw_swap_qps(&m, true);
	mw_write_works(&m, m.p.ib.rkey);
	mw_write_fails(&m, m.ask.rkey);
	mw_close(&m);
}

CASE_EACH(mw, a_type_1_window_is_every_qps)
{
	struct mw m;

	mw_open(&m, where, IBV_MW_TYPE_1);
	mw_bind(&m);
	mw_swap_qps(&m, true);
	mw_write_works(&m, m.ask.rkey);
	mw_bind(&m);				/* by the other QP */
	mw_write_works(&m, m.ask.rkey);
	mw_close(&m);
}

CASE_EACH(mw, a_window_of_another_domain_is_not_bound)
{
	struct window_ask ask;
	struct mw m;

	mw_open(&m, where, IBV_MW_TYPE_2);
	m.ask = (struct window_ask){ .verb = WINDOW_ALLOC, .type = IBV_MW_TYPE_2,
				     .other_pd = true };
	cr_assert_eq(peer_window(&m.p.peer, &m.ask), 0);
	ask = mw_bind_ask(&m);
	mw_post_bind(&m, &ask);
	mw_await_error(&m, "window of another domain", 21);
	mw_close(&m);
}

/* A window's key is for peers; its own end can't send from it. */
Test(mw, a_windows_key_is_no_lkey)
{
	struct work w;
	struct mw m;

	mw_open(&m, ONE_THREAD, IBV_MW_TYPE_2);
	mw_bind(&m);
	w = (struct work){ .opcode = WRITE, .wr_id = 1, .flags = IBV_SEND_SIGNALED,
			   .remote_addr = m.p.ia.addr, .rkey = m.p.ia.rkey, .sge_count = 1,
			   .sge = { { m.p.ib.addr + AREA, 8, m.ask.rkey } } };
	cr_assert_eq(peer_post(&m.p.peer, &w), 0);
	peer_await(&m.p.peer, SEND_CQ, &(struct done){ 0 });
	cr_expect_eq(peer_state(&m.p.peer), IBV_QPS_ERR);
	mw_close(&m);
}

/* ---- commands ---- */

Test(mw, the_device_says_that_it_has_windows)
{
	struct ibv_device_attr attr;
	struct ibv_context *c = device_open();

	cr_assert_not_null(c);
	cr_assert_eq(ibv_query_device(c, &attr), 0);
	cr_expect(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
	cr_expect(attr.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS);
	cr_expect(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	cr_expect_not(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2A);
	cr_expect_gt(attr.max_mw, 0);
	ibv_close_device(c);
}

Test(mw, only_two_types_exist)
{
	struct mw m;

	mw_open(&m, ONE_THREAD, IBV_MW_TYPE_2);
	for (int type = 0; type < 4; type += 3) {
		errno = 0;
		cr_expect_null(ibv_alloc_mw(m.p.a.pd, (enum ibv_mw_type)type));
		cr_expect_eq(errno, EINVAL, "type %d: %s", type, strerror(errno));
	}
	mw_close(&m);
}

/* api-inventory 4.1, 4 */
Test(mw, bind_mw_is_for_type_1)
{
	struct ibv_mw_bind bind = { .wr_id = 1 };
	struct ibv_mw *mw;
	struct mw m;

	mw_open(&m, ONE_THREAD, IBV_MW_TYPE_2);
	mw = ibv_alloc_mw(m.p.a.pd, IBV_MW_TYPE_2);
	cr_assert_not_null(mw);
	bind.bind_info = (struct ibv_mw_bind_info){ m.p.a.mr, m.p.ia.addr, 8, RR };
	cr_expect_eq(ibv_bind_mw(m.p.a.qp, mw, &bind), EINVAL);
	cr_expect_eq(ibv_dealloc_mw(mw), 0);
	mw_close(&m);
}

Test(mw, keys_of_windows_are_distinct)
{
	enum { COUNT = 500 };
	static struct ibv_mw *mw[COUNT];
	struct mw m;

	mw_open(&m, ONE_THREAD, IBV_MW_TYPE_2);
	for (int i = 0; i < COUNT; i++) {
		mw[i] = ibv_alloc_mw(m.p.a.pd, i % 2 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
		cr_assert_not_null(mw[i]);
		cr_expect_neq(mw[i]->rkey >> 8, m.p.a.mr->rkey >> 8);
		for (int j = 0; j < i; j++)
			cr_assert_neq(mw[i]->rkey >> 8, mw[j]->rkey >> 8);
	}
	cr_expect_eq(ibv_dealloc_pd(m.p.a.pd), EBUSY);
	for (int i = 0; i < COUNT; i++)
		cr_assert_eq(ibv_dealloc_mw(mw[i]), 0);
	mw_close(&m);
}
