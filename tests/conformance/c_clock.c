/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device's clock: reading it, stamps in completions, conversion to wall time.
 *
 * Rules: ibv_query_rt_values_ex(3), ibv_create_cq_ex(3), mlx5dv_get_clock_info(3),
 * mlx5dv_ts_to_ns(3); device-abi B.6, C.12.  Nothing here measures how long anything takes: a
 * reading must lie between two readings of the host's clock around it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "harness/check.h"

TestSuite(clock, .timeout = 60);

static uint64_t host_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Cycles of the device now. */
static uint64_t device_now(struct ibv_context *context)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	cr_assert_eq(ibv_query_rt_values_ex(context, &values), 0);
	cr_assert_eq(values.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	cr_assert_eq(values.raw_clock.tv_sec, 0);
	return (uint64_t)values.raw_clock.tv_nsec;
}

static struct ibv_device_attr_ex device_attr(struct ibv_context *context)
{
	struct ibv_device_attr_ex attr;

	cr_assert_eq(ibv_query_device_ex(context, NULL, &attr), 0);
	return attr;
}

/* mlx5dv_get_clock_info() as a program linked with libmlx5 would find it; else that of the provider
 * that libibverbs has loaded. */
static struct mlx5dv_clock_info clock_info(struct ibv_context *context)
{
	int (*get)(struct ibv_context *, struct mlx5dv_clock_info *);
	struct mlx5dv_clock_info info;

	*(void **)&get = dlsym(RTLD_DEFAULT, "mlx5dv_get_clock_info");
	if (!get)
		*(void **)&get = dlsym(dlopen("libmlx5.so.1", RTLD_NOW), "mlx5dv_get_clock_info");
	cr_assert_not_null(get);
	cr_assert_eq(get(context, &info), 0);
	return info;
}

Test(clock, attributes_say_that_there_is_one)
{
	struct ibv_context *c = device_open();
	struct ibv_values_ex bad = { .comp_mask = 2 };
	struct ibv_device_attr_ex attr;

	cr_assert_not_null(c);
	attr = device_attr(c);
	cr_expect_eq(attr.completion_timestamp_mask, 0x7fffffffffffffff);
	cr_expect_gt(attr.hca_core_clock, 0);
	cr_expect_eq(ibv_query_rt_values_ex(c, &bad), EINVAL);
	cr_expect_eq(ibv_close_device(c), 0);
}

/* hca_core_clock is the rate of what ibv_query_rt_values_ex() reads, in kHz. */
Test(clock, it_runs_at_the_rate_that_is_told)
{
	struct ibv_context *c = device_open();
	uint64_t from, to, before[2], after[2], ns;

	cr_assert_not_null(c);
	before[0] = host_ns(CLOCK_MONOTONIC);
	from = device_now(c);
	before[1] = host_ns(CLOCK_MONOTONIC);
	do {
		after[0] = host_ns(CLOCK_MONOTONIC);
		to = device_now(c);
		after[1] = host_ns(CLOCK_MONOTONIC);
	} while (after[0] - before[1] < 20000000);
	ns = (uint64_t)((to - from) * 1e6 / device_attr(c).hca_core_clock);
	cr_expect_geq(ns + 100, after[0] - before[1]);
	cr_expect_leq(ns, after[1] - before[0] + 100);
	cr_expect_eq(ibv_close_device(c), 0);
}

Test(clock, it_never_goes_back_and_all_contexts_read_the_same)
{
	struct ibv_context *c[2] = { device_open(), device_open() };
	uint64_t last = 0;

	cr_assert(c[0] && c[1]);
	for (unsigned i = 0; i < 10000; i++) {
		uint64_t now = device_now(c[i % 2]);

		cr_assert_geq(now, last, "reading %u", i);
		last = now;
	}
	cr_expect_eq(ibv_close_device(c[0]), 0);
	cr_expect_geq(device_now(c[1]), last);
	cr_expect_eq(ibv_close_device(c[1]), 0);
}

/* --- stamps --- */

static void open_stamped(struct pair *p, enum placement where, uint64_t wc_flags)
{
	struct pair_opts opts;

	pair_defaults(&opts);
	opts.a.is_extended = opts.b.is_extended = true;
	opts.a.wants_raw = opts.b.wants_raw = false;
	opts.a.wc_flags = opts.b.wc_flags = wc_flags;
	pair_open(p, where, &opts);
}

/* The next completion of a CQ, left open for the readers. */
static struct ibv_cq_ex *poll_one(struct ibv_cq *cq)
{
	struct ibv_poll_cq_attr attr = { 0 };
	uint64_t deadline = now_ms() + AWAIT_MS;
	struct ibv_cq_ex *ex = (struct ibv_cq_ex *)cq;
	int err;

	while ((err = ibv_start_poll(ex, &attr)) == ENOENT && now_ms() < deadline)
		sched_yield();
	cr_assert_eq(err, 0, "ibv_start_poll: %s", strerror(err));
	cr_assert_eq(ex->status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(ex->status));
	return ex;
}

static void write_8(struct pair *p)
{
	struct work w = pair_work(p, IBV_WR_RDMA_WRITE, 8);

	must_post(p, &w);
}

static void stamps_check(struct pair *p)
{
	uint64_t last = device_now(p->a.context);

	for (unsigned i = 0; i < 100; i++) {
		struct ibv_cq_ex *cq;
		uint64_t stamp;

		write_8(p);
		cq = poll_one(p->a.cq[SEND_CQ]);
		stamp = ibv_wc_read_completion_ts(cq);
		ibv_end_poll(cq);
		cr_assert_geq(stamp, last, "write %u", i);
		last = device_now(p->a.context);
		cr_assert_leq(stamp, last, "write %u", i);
	}
}

CASE_EACH(clock, a_stamp_lies_between_post_and_poll)
{
	struct pair p;

	open_stamped(&p, where, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP);
	stamps_check(&p);
	pair_close(&p);
}

CASE_EACH(clock, entries_of_128_bytes_are_stamped_too)
{
	struct pair p;

	setenv("MLX5_CQE_SIZE", "128", 1);
	open_stamped(&p, where, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP);
	stamps_check(&p);
	pair_close(&p);
}

/* Both ends of a message are on one host, so their clocks agree: sent before received. */
Test(clock, a_receive_is_stamped_before_its_send)
{
	struct ibv_cq_ex *cq;
	uint64_t received;
	struct pair p;
	struct work w;

	open_stamped(&p, ONE_THREAD, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP);
	w = pair_recv(&p, 1, 0, 64);
	must_recv(&p, &w);
	w = pair_work(&p, IBV_WR_SEND, 64);
	must_post(&p, &w);
	cq = poll_one(p.peer.here.cq[RECV_CQ]);
	received = ibv_wc_read_completion_ts(cq);
	ibv_end_poll(cq);
	cq = poll_one(p.a.cq[SEND_CQ]);
	cr_expect_geq(ibv_wc_read_completion_ts(cq), received);
	ibv_end_poll(cq);
	pair_close(&p);
}

/* --- wall time --- */

#define WALL_SLACK_NS	2000000000u	/* the host's clock may be set while we look */

CASE_EACH(clock, a_wall_clock_stamp_is_the_time_of_day)
{
	struct ibv_cq_ex *cq;
	uint64_t before, stamp;
	struct pair p;

	open_stamped(&p, where, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
	before = host_ns(CLOCK_REALTIME);
	write_8(&p);
	cq = poll_one(p.a.cq[SEND_CQ]);
	stamp = ibv_wc_read_completion_wallclock_ns(cq);
	ibv_end_poll(cq);
	cr_expect_geq(stamp + WALL_SLACK_NS, before);
	cr_expect_leq(stamp, host_ns(CLOCK_REALTIME) + WALL_SLACK_NS);
	pair_close(&p);
}

static int64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? (int64_t)(a - b) : (int64_t)(b - a);
}

/* mlx5dv_ts_to_ns(3): whatever page the conversion is based on, older or younger than the stamp,
 * it is the same instant. */
Test(clock, a_stamp_converts_to_the_same_instant_by_every_page)
{
	struct ibv_context *c = device_open();
	struct mlx5dv_clock_info first, info;
	uint64_t stamp, ns;

	cr_assert_not_null(c);
	first = info = clock_info(c);
	stamp = device_now(c);
	ns = mlx5dv_ts_to_ns(&first, stamp);
	cr_expect_geq(ns + WALL_SLACK_NS, host_ns(CLOCK_REALTIME));
	cr_expect_leq(ns, host_ns(CLOCK_REALTIME) + WALL_SLACK_NS);
	for (unsigned i = 0; i < 100; i++) {
		device_attr(c);			/* a command: the page is a new one */
		info = clock_info(c);
		cr_assert_leq(distance(mlx5dv_ts_to_ns(&info, stamp), ns), 15, "page %u", i);
	}
	cr_expect_gt(info.last_cycles, stamp);
	cr_expect_eq(ibv_close_device(c), 0);
}

/* What a program asks for is what is now, also if it has called nothing else for long. */
Test(clock, the_page_is_as_young_as_the_question)
{
	struct ibv_context *c = device_open();
	struct mlx5dv_clock_info info;
	uint64_t from, end_ns;

	cr_assert_not_null(c);
	from = device_now(c);
	end_ns = host_ns(CLOCK_MONOTONIC) + 2000000;
	while (host_ns(CLOCK_MONOTONIC) < end_ns)
		sched_yield();
	info = clock_info(c);
	cr_expect_geq((double)(info.last_cycles - from), 2.0 * device_attr(c).hca_core_clock);
	cr_expect_eq(ibv_close_device(c), 0);
}
