/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows: what a work request may do to one, and what ends it.
 */
#include "tests/unit/obj_world.h"
#include "hw-models/hw.h"

#define ADDR(p)		((uint64_t)(uintptr_t)(p))
#define RW		(KEY_LOCAL_WRITE | KEY_REMOTE_WRITE | KEY_REMOTE_READ)
#define BINDABLE	(RW | KEY_MW_BIND)
#define BIND_MASK	(UMR_LEN | UMR_START | UMR_TAG | UMR_FREE | UMR_LOCAL_WRITE | \
			 UMR_REMOTE_READ | UMR_REMOTE_WRITE | UMR_ATOMIC)

static struct emu_dev *dev;
static struct emu_pd *pd;
static struct emu_qp *qp, *other_qp;
static struct emu_mr *mr;
static uint8_t *memory;			/* four pages, the region */

static struct emu_mr *region(struct emu_pd *of, uint32_t access)
{
	struct emu_mr *made;

	CHECK_INT(mr_create(dev, of, ADDR(memory), 4 * WORLD_PAGE, ADDR(memory), access, &made), 0);
	return made;
}

static struct emu_qp *queue_pair(struct emu_pd *of)
{
	struct cq_init cq = { .cqe = 15, .cqe_bytes = 64, .buf_addr = ADDR(world_pages(1)),
		.db_addr = ADDR(world_pages(1)) };
	struct qp_init init = { .type = QPT_RC, .pd = of, .sq_blocks = 4, .rq_count = 4,
		.rq_stride = 64, .buf_addr = ADDR(world_pages(1)),
		.db_addr = ADDR(world_pages(1)) };
	struct emu_qp *made;

	CHECK_INT(cq_create(dev, &cq, &init.send_cq), 0);
	init.recv_cq = init.send_cq;
	CHECK_INT(qp_create(dev, &init, &made), 0);
	return made;
}

static void start(void)
{
	dev = world_dev();
	CHECK_INT(pd_create(dev, &pd), 0);
	memory = world_pages(4);
	mr = region(pd, BINDABLE);
	qp = queue_pair(pd);
	other_qp = queue_pair(pd);
}

TestSuite(mw, .init = start);

static struct emu_mw *window(enum mw_type type)
{
	struct emu_mw *mw;

	CHECK_INT(mw_create(dev, pd, type, &mw), 0);
	return mw;
}

/* What libmlx5 writes to bind [memory + offset, + bytes). */
static struct hw_work bind_work(const struct emu_mw *mw, uint64_t offset, uint64_t bytes)
{
	struct hw_work w = { .op = HW_OP_UMR, .sge_count = 1 };

	w.umr = (struct hw_umr){
		.key = mw->key, .mask = BIND_MASK, .tag = (uint8_t)(mw->key + 1),
		.qpn = KEY_QPN_ANY, .access = KEY_REMOTE_WRITE | KEY_REMOTE_READ,
		.start = ADDR(memory) + offset,
		.bytes = bytes, .translation_units = 4,
	};
	w.sge[0] = (struct hw_sge){ ADDR(memory) + offset, (uint32_t)bytes, mr->key, NULL };
	if (mw->type == MW_TYPE_2) {
		w.umr.mask |= UMR_QPN;
		w.umr.qpn = qp->qpn;
		w.umr.needs_free = true;
	}
	return w;
}

/* LOCAL_INV, and a bind of length 0 of type 1. */
static struct hw_work free_work(const struct emu_mw *mw)
{
	struct hw_work w = { .op = HW_OP_UMR };

	w.umr = (struct hw_umr){ .key = mw->key, .mask = UMR_FREE | UMR_TAG, .frees = true,
				 .qpn = KEY_QPN_ANY };
	if (mw->type == MW_TYPE_2) {
		w.umr.mask |= UMR_QPN;
		w.umr.needs_qpn = true;
	}
	return w;
}

static void must_bind(struct emu_mw *mw)
{
	struct hw_work w = bind_work(mw, 100, 200);

	CHECK_INT(mw_umr(dev, qp, &w), WHY_NONE);
}

/* What a peer finds. */
static enum why use(const struct emu_mw *mw, const struct emu_qp *responder)
{
	const struct key_use u = { mw->key, pd->pdn, responder->qpn, KEY_REMOTE_WRITE,
				   ADDR(memory) + 100, 200 };
	struct iovec v = { 0 };
	enum why why = key_use_check(&dev->keys, &u, &v);

	cr_assert(why != WHY_NONE || v.iov_base == memory + 100);
	return why;
}

Test(mw, a_type_1_window_serves_every_qp)
{
	struct emu_mw *mw = window(MW_TYPE_1);
	uint32_t key = mw->key;

	CHECK_INT(use(mw, qp), WHY_WINDOW_FREE);
	must_bind(mw);
	CHECK_INT(mw->key, (key & ~0xffu) | ((key + 1) & 0xff));
	CHECK_INT(use(mw, qp), WHY_NONE);
	CHECK_INT(use(mw, other_qp), WHY_NONE);
}

Test(mw, a_type_2_window_serves_the_qp_that_bound_it)
{
	struct emu_mw *mw = window(MW_TYPE_2);

	must_bind(mw);
	CHECK_INT(use(mw, qp), WHY_NONE);
	CHECK_INT(use(mw, other_qp), WHY_WINDOW_QP);
}

Test(mw, type_1_is_bound_again_at_any_time)
{
	struct emu_mw *mw = window(MW_TYPE_1);
	struct hw_work w;

	must_bind(mw);
	w = bind_work(mw, 0, 8);
	CHECK_INT(mw_umr(dev, other_qp, &w), WHY_NONE);
	CHECK_INT(use(mw, qp), WHY_KEY_RANGE);
	w = free_work(mw);
	CHECK_INT(mw_umr(dev, other_qp, &w), WHY_NONE);
	CHECK_INT(use(mw, qp), WHY_WINDOW_FREE);
	CHECK_INT(mw_umr(dev, other_qp, &w), WHY_NONE);
	must_bind(mw);
}

Test(mw, type_2_must_be_free_to_be_bound)
{
	struct emu_mw *mw = window(MW_TYPE_2);
	struct hw_work w;

	must_bind(mw);
	w = bind_work(mw, 0, 8);
	CHECK_INT(mw_umr(dev, qp, &w), WHY_WINDOW_BOUND);
	w.umr.needs_free = false;	/* it says it does not care; the window does */
	CHECK_INT(mw_umr(dev, qp, &w), WHY_WINDOW_BOUND);
	CHECK_INT(use(mw, qp), WHY_NONE);
	w = free_work(mw);
	CHECK_INT(mw_umr(dev, qp, &w), WHY_NONE);
	CHECK_INT(use(mw, qp), WHY_WINDOW_FREE);
	must_bind(mw);
}

Test(mw, only_its_qp_frees_a_type_2_window)
{
	struct emu_mw *mw = window(MW_TYPE_2);
	struct hw_work w = free_work(mw);

	CHECK_INT(mw_umr(dev, qp, &w), WHY_WINDOW_FREE);
	must_bind(mw);
	CHECK_INT(mw_umr(dev, other_qp, &w), WHY_WINDOW_QP);
	w.umr.needs_qpn = false;
	CHECK_INT(mw_umr(dev, other_qp, &w), WHY_WINDOW_QP);
	CHECK_INT(use(mw, qp), WHY_NONE);
	CHECK_INT(mw_umr(dev, qp, &w), WHY_NONE);
}

Test(mw, type_1_is_not_invalidated)
{
	struct emu_mw *mw = window(MW_TYPE_1);
	struct hw_work w = free_work(mw);

	w.umr.needs_qpn = true;
	CHECK_INT(mw_umr(dev, qp, &w), WHY_WINDOW_FREE);
	must_bind(mw);
	CHECK_INT(mw_umr(dev, qp, &w), WHY_WINDOW_QP);
	cr_assert_not(mw_invalidate(dev, qp, mw->key));
	CHECK_INT(use(mw, qp), WHY_NONE);
}

Test(mw, a_peer_invalidates_what_its_qp_bound)
{
	struct emu_mw *mw = window(MW_TYPE_2);
	uint32_t key = mw->key;

	cr_assert_not(mw_invalidate(dev, qp, mw->key), "free");
	must_bind(mw);
	cr_assert_not(mw_invalidate(dev, qp, key), "the old key");
	cr_assert_not(mw_invalidate(dev, other_qp, mw->key));
	cr_assert_not(mw_invalidate(dev, qp, mr->key));
	cr_assert_not(mw_invalidate(dev, qp, 0));
	cr_assert_not(mw_invalidate(dev, qp, UINT32_MAX));
	CHECK_INT(use(mw, qp), WHY_NONE);
	cr_assert(mw_invalidate(dev, qp, mw->key));
	CHECK_INT(use(mw, qp), WHY_WINDOW_FREE);
	cr_assert_not(mw_invalidate(dev, qp, mw->key));
}

/* Each row spoils a request that is right. */
struct spoil { enum why why; void (*spoil)(struct hw_work *w); };

static void no_such_key(struct hw_work *w) { w->umr.key += 0x10000; }
static void a_region(struct hw_work *w) { w->umr.key = mr->key; }
static void no_region(struct hw_work *w) { w->sge[0].lkey += 0x10000; }
static void old_region(struct hw_work *w) { w->sge[0].lkey ^= 1; }
static void itself(struct hw_work *w) { w->sge[0].lkey = w->umr.key; }
static void no_right(struct hw_work *w) { w->sge[0].lkey = region(pd, RW)->key; }
static void read_only(struct hw_work *w) { w->sge[0].lkey = region(pd, KEY_MW_BIND)->key; }
static void in_front(struct hw_work *w) { w->sge[0].addr = ADDR(memory) - 1; }
static void behind(struct hw_work *w) { w->sge[0].addr = ADDR(memory) + 4 * WORLD_PAGE - 199; }
static void wrapping(struct hw_work *w) { w->sge[0].addr = UINT64_MAX - 10; }
static void two_pieces(struct hw_work *w) { w->sge[1] = w->sge[0]; w->sge_count = 2; }
static void no_piece(struct hw_work *w) { w->sge_count = 0; }
static void other_length(struct hw_work *w) { w->umr.bytes--; }
static void no_length(struct hw_work *w) { w->umr.mask &= ~(uint64_t)UMR_LEN; }
static void no_start(struct hw_work *w) { w->umr.mask &= ~(uint64_t)UMR_START; }
static void no_tag(struct hw_work *w) { w->umr.mask &= ~(uint64_t)UMR_TAG; }
static void other_qpn(struct hw_work *w) { w->umr.mask |= UMR_QPN; w->umr.qpn = other_qp->qpn; }

static void zero_based(struct hw_work *w)
{
	w->sge[0].lkey = region(pd, BINDABLE | KEY_ZERO_BASED)->key;
	w->sge[0].addr = 0;
}

static void other_domain(struct hw_work *w)
{
	struct emu_pd *other;

	CHECK_INT(pd_create(dev, &other), 0);
	w->sge[0].lkey = region(other, BINDABLE)->key;
}

static const struct spoil spoils[] = {
	{ WHY_KEY_UNKNOWN, no_such_key }, { WHY_UMR_KEY, a_region },
	{ WHY_KEY_UNKNOWN, no_region }, { WHY_KEY_TAG, old_region }, { WHY_UMR_KEY, itself },
	{ WHY_REGION_NO_BIND, no_right }, { WHY_KEY_RIGHTS, read_only },
	{ WHY_REGION_ZERO_BASED, zero_based }, { WHY_KEY_PD, other_domain },
	{ WHY_KEY_RANGE, in_front }, { WHY_KEY_RANGE, behind }, { WHY_KEY_RANGE, wrapping },
	{ WHY_UMR_FORM, two_pieces }, { WHY_UMR_FORM, no_piece }, { WHY_UMR_FORM, other_length },
	{ WHY_UMR_FORM, no_length }, { WHY_UMR_FORM, no_start }, { WHY_UMR_FORM, no_tag },
	{ WHY_WINDOW_QP, other_qpn },
};

Test(mw, a_bind_that_breaks_a_rule_changes_nothing)
{
	for (size_t i = 0; i < 2 * (sizeof spoils / sizeof *spoils); i++) {
		const struct spoil *s = &spoils[i / 2];
		struct emu_mw *mw = window(i % 2 ? MW_TYPE_1 : MW_TYPE_2);
		struct hw_work w = bind_work(mw, 100, 200);
		uint32_t key = mw->key;

		s->spoil(&w);
		CHECK_INT(mw_umr(dev, qp, &w), s->why);
		CHECK_INT(mw->key, key);
		CHECK_INT(use(mw, qp), WHY_WINDOW_FREE);
		must_bind(mw);
	}
}

/* A type 1 window keeps what it had. */
Test(mw, a_rebind_that_fails_leaves_the_window_bound)
{
	struct emu_mw *mw = window(MW_TYPE_1);
	struct hw_work w;

	must_bind(mw);
	w = bind_work(mw, 100, 200);
	no_right(&w);
	CHECK_INT(mw_umr(dev, qp, &w), WHY_REGION_NO_BIND);
	CHECK_INT(use(mw, qp), WHY_NONE);
}

Test(mw, a_qp_of_another_domain_changes_no_window)
{
	struct emu_mw *mw = window(MW_TYPE_1);
	struct hw_work w = bind_work(mw, 0, 8);
	struct emu_pd *other;

	CHECK_INT(pd_create(dev, &other), 0);
	CHECK_INT(mw_umr(dev, queue_pair(other), &w), WHY_KEY_PD);
}

Test(mw, reading_needs_no_right_of_the_region)
{
	struct emu_mw *mw = window(MW_TYPE_2);
	struct hw_work w = bind_work(mw, 0, 8);

	read_only(&w);
	w.umr.access = KEY_REMOTE_READ;
	CHECK_INT(mw_umr(dev, qp, &w), WHY_NONE);
}

/* A window never grants what is not a peer's right. */
Test(mw, only_rights_of_peers_are_taken_over)
{
	struct emu_mw *mw = window(MW_TYPE_1);
	struct hw_work w = bind_work(mw, 0, 8);
	struct key_use u = { 0, pd->pdn, qp->qpn, KEY_MW_BIND, ADDR(memory), 8 };
	struct iovec v;

	w.umr.access = UINT32_MAX;
	CHECK_INT(mw_umr(dev, qp, &w), WHY_NONE);
	u.key = mw->key;
	CHECK_INT(key_use_check(&dev->keys, &u, &v), WHY_KEY_RIGHTS);
	u.access = KEY_LOCAL_WRITE;
	CHECK_INT(key_use_check(&dev->keys, &u, &v), WHY_KEY_RIGHTS);
	u.access = KEY_REMOTE_ATOMIC | KEY_REMOTE_READ | KEY_REMOTE_WRITE;
	CHECK_INT(key_use_check(&dev->keys, &u, &v), WHY_NONE);
}

Test(mw, a_zero_based_window_counts_from_its_start)
{
	struct emu_mw *mw = window(MW_TYPE_2);
	struct hw_work w = bind_work(mw, 300, 10);
	struct key_use u = { 0, pd->pdn, qp->qpn, KEY_REMOTE_READ, 2, 8 };
	struct iovec v;

	w.umr.start = 0;
	CHECK_INT(mw_umr(dev, qp, &w), WHY_NONE);
	u.key = mw->key;
	CHECK_INT(key_use_check(&dev->keys, &u, &v), WHY_NONE);
	cr_assert_eq(v.iov_base, memory + 302);
}

Test(mw, a_region_with_windows_stays)
{
	struct emu_mw *one = window(MW_TYPE_1), *two = window(MW_TYPE_2);
	struct hw_work w;

	must_bind(one);
	must_bind(two);
	CHECK_REFUSED(mr_destroy(dev, mr), -EBUSY, WHY_REGION_BOUND);
	w = free_work(one);
	CHECK_INT(mw_umr(dev, qp, &w), WHY_NONE);
	CHECK_REFUSED(mr_destroy(dev, mr), -EBUSY, WHY_REGION_BOUND);
	CHECK_INT(mw_destroy(dev, two), 0);
	CHECK_INT(mr_destroy(dev, mr), 0);
}

Test(mw, a_region_with_windows_is_not_changed)
{
	struct emu_mw *mw = window(MW_TYPE_1);
	const struct mr_ask ask = { .access = RW };

	must_bind(mw);
	CHECK_REFUSED(mr_change(dev, mr, MR_CHANGES_ACCESS, NULL, &ask), -EBUSY, WHY_REGION_BOUND);
	CHECK_INT(mw_destroy(dev, mw), 0);
	CHECK_INT(mr_change(dev, mr, MR_CHANGES_ACCESS, NULL, &ask), 0);
}

Test(mw, a_region_may_go_as_with_the_driver)
{
	struct emu_mw *one = window(MW_TYPE_1), *two = window(MW_TYPE_2);
	struct hw_work w = free_work(two);

	dev->options.lets_bound_regions_go = true;
	must_bind(one);
	must_bind(two);
	CHECK_INT(mr_destroy(dev, mr), 0);
	CHECK_INT(use(one, qp), WHY_WINDOW_REGION);
	CHECK_INT(use(two, qp), WHY_WINDOW_REGION);
	mr = region(pd, BINDABLE);
	CHECK_INT(use(one, qp), WHY_WINDOW_REGION);
	must_bind(one);
	CHECK_INT(use(one, qp), WHY_NONE);
	CHECK_INT(mw_umr(dev, qp, &w), WHY_NONE);
	CHECK_INT(mw_destroy(dev, two), 0);
}

Test(mw, windows_of_a_destroyed_qp_are_free)
{
	struct emu_mw *two[3], *one = window(MW_TYPE_1);
	uint32_t events;

	must_bind(one);
	for (int i = 0; i < 3; i++)
		must_bind(two[i] = window(MW_TYPE_2));
	CHECK_INT(mw_destroy(dev, two[1]), 0);
	CHECK_INT(qp_destroy(dev, qp, &events), 0);
	CHECK_INT(use(two[0], other_qp), WHY_WINDOW_FREE);
	CHECK_INT(use(two[2], other_qp), WHY_WINDOW_FREE);
	CHECK_INT(use(one, other_qp), WHY_NONE);
	qp = other_qp;
	must_bind(two[0]);
	CHECK_INT(use(two[0], qp), WHY_NONE);
}

Test(mw, a_reset_frees_no_window)
{
	struct emu_mw *mw = window(MW_TYPE_2);
	struct qp_attr at = { .state = QP_RESET };

	must_bind(mw);
	CHECK_INT(qp_modify(dev, qp, &at, A_STATE), 0);
	CHECK_INT(use(mw, qp), WHY_NONE);
}

Test(mw, windows_come_and_go)
{
	struct emu_mw *mw, *bound = window(MW_TYPE_1);

	CHECK_REFUSED(mw_create(dev, pd, 0, &mw), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(mw_create(dev, pd, 3, &mw), -EINVAL, WHY_CMD_VALUE);
	must_bind(bound);
	CHECK_INT(mw_destroy(dev, bound), 0);
	CHECK_INT(mr_destroy(dev, mr), 0);
	for (unsigned i = 0; i < world_profile.max_mw; i++)
		cr_assert_neq(window(1 + i % 2)->key, 0);
	CHECK_REFUSED(mw_create(dev, pd, MW_TYPE_1, &mw), -ENOMEM, WHY_CMD_LIMIT);
}
