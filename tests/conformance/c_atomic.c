/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomics: values, and that concurrent ones add up.
 *
 * Rules: IBTA 9.4.5; expected-statuses.md ("answer in host byte order"); device-abi C.3.4.
 */
#include <errno.h>
#include <string.h>
#include "harness/check.h"

TestSuite(atomics, .timeout = 90);

static uint64_t result_of(struct pair *p)
{
	uint64_t value;

	memcpy(&value, p->a.buf, 8);
	return value;
}

static uint64_t target_of(struct pair *p)
{
	uint64_t value;

	peer_read(&p->peer, 0, &value, 8);
	return value;
}

static uint64_t fetch_add(struct pair *p, uint64_t add)
{
	struct work w = pair_work(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);

	w.compare_add = add;
	must_post(p, &w);
	await_ok(p, 1, IBV_WC_FETCH_ADD);
	return result_of(p);
}

static uint64_t compare_swap(struct pair *p, uint64_t compare, uint64_t swap)
{
	struct work w = pair_work(p, IBV_WR_ATOMIC_CMP_AND_SWP, 8);

	w.compare_add = compare;
	w.swap = swap;
	must_post(p, &w);
	await_ok(p, 1, IBV_WC_COMP_SWAP);
	return result_of(p);
}

/* Values are host order on both sides, and the sum wraps in 64 bits. */
CASE_EACH(atomics, fetch_add_returns_the_old_value_and_adds)
{
	static const uint64_t adds[] = { 1, 0, UINT64_C(0x0102030405060708), UINT64_MAX, 5,
					 UINT64_C(1) << 63, UINT64_C(1) << 63 };
	uint64_t value = 0;
	struct pair p;

	pair_open(&p, where, NULL);
	for (unsigned i = 0; i < ROWS(adds); i++) {
		cr_expect_eq(fetch_add(&p, adds[i]), value, "add %u", i);
		value += adds[i];
		cr_expect_eq(target_of(&p), value, "add %u", i);
	}
	pair_close(&p);
}

CASE_EACH(atomics, compare_swap_swaps_only_on_a_match)
{
	const uint64_t big = UINT64_C(0x1122334455667788);
	struct pair p;

	pair_open(&p, where, NULL);
	cr_expect_eq(compare_swap(&p, 0, big), 0);
	cr_expect_eq(target_of(&p), big);
	cr_expect_eq(compare_swap(&p, big + 1, 7), big, "mismatch in the last byte");
	cr_expect_eq(target_of(&p), big);
	cr_expect_eq(compare_swap(&p, big ^ UINT64_C(1) << 63, 7), big, "in the first");
	cr_expect_eq(target_of(&p), big);
	cr_expect_eq(compare_swap(&p, big, UINT64_MAX), big);
	cr_expect_eq(target_of(&p), UINT64_MAX);
	pair_close(&p);
}

/* device-abi C.6: the completion of an atomic reports 8 bytes. */
CASE_EACH(atomics, byte_len_of_an_atomic_is_8)
{
	struct pair p;
	struct work w;
	struct done d;

	pair_open(&p, where, NULL);
	w = pair_work(&p, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	must_post(&p, &w);
	end_await(&p.a, SEND_CQ, &d);
	check_ok("atomic", &d, 1, IBV_WC_FETCH_ADD);
	cr_expect_eq(d.wc.byte_len, 8);
	pair_close(&p);
}

/* ibv_post_send() takes 8 bytes of whatever room it is given. */
CASE_EACH(atomics, a_result_needs_no_more_than_its_8_bytes)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_ATOMIC_FETCH_AND_ADD,
						      IBV_WR_ATOMIC_CMP_AND_SWP };
	struct pair p;

	pair_open(&p, where, NULL);
	for (unsigned i = 0; i < ROWS(opcodes); i++) {
		struct work w = pair_work(&p, opcodes[i], 64);

		memset(p.a.buf, 0xaa, 64);
		must_post(&p, &w);
		await_ok(&p, 1, i ? IBV_WC_COMP_SWAP : IBV_WC_FETCH_ADD);
		cr_expect_eq(result_of(&p), 0);
		for (unsigned at = 8; at < 64; at++)
			cr_assert_eq(p.a.buf[at], 0xaa, "byte %u", at);
	}
	pair_close(&p);
}

/* A pipeline of atomics runs each exactly once and in order. */
CASE_EACH(atomics, a_pipeline_of_fetch_adds_returns_consecutive_values)
{
	struct pair p;
	struct work w;

	pair_open(&p, where, NULL);
	for (unsigned round = 0; round < 4; round++) {
		for (uint64_t i = 0; i < 60; i++) {
			w = pair_work(&p, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
			w.wr_id = i;
			w.sge[0].addr += 64 + i * 8;
			w.compare_add = 3;
			must_post(&p, &w);
		}
		for (uint64_t i = 0; i < 60; i++) {
			uint64_t got;

			await_ok(&p, i, IBV_WC_FETCH_ADD);
			memcpy(&got, p.a.buf + 64 + i * 8, 8);
			cr_assert_eq(got, (round * 60 + i) * 3);
		}
	}
	pair_close(&p);
}

#define ADDERS	4
#define ADDS	500

struct adder {
	struct end_info target;
	struct end end;
	struct end_info info;
	int err;
	pthread_t thread;
};

/* Add 1, ADDS times, a few in flight. */
static void *adder_run(void *arg)
{
	struct adder *a = arg;
	unsigned posted = 0, polled = 0;
	struct done d;

	while (!a->err && polled < ADDS) {
		struct work w = { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .wr_id = posted,
			.flags = IBV_SEND_SIGNALED, .remote_addr = a->target.addr,
			.rkey = a->target.rkey, .compare_add = 1, .sge_count = 1,
			.sge = { { a->info.addr, 8, a->info.lkey } } };

		while (!a->err && posted < ADDS && posted - polled < 8) {
			a->err = end_post(&a->end, &w);
			posted++;
		}
		end_await(&a->end, SEND_CQ, &d);
		if (!d.found || d.wc.status != IBV_WC_SUCCESS)
			a->err = EIO;
		polled++;
	}
	return NULL;
}

/* Responders, one a requester, all over the same memory. */
static void adder_open(struct adder *a, const struct end *shared, struct end *responder,
		       const struct end *target)
{
	struct end_opts opts;
	struct end_info ri;

	end_defaults(&opts);
	opts.bytes = 4096;
	cr_assert_eq(end_open(&a->end, &opts, shared), 0);
	cr_assert_eq(end_open(responder, &opts, target), 0);
	end_describe(&a->end, &a->info);
	end_describe(responder, &ri);
	cr_assert_eq(end_connect(responder, &a->info), 0);
	cr_assert_eq(end_connect(&a->end, &ri), 0);
	/* Its own MR over the shared counter: keys belong to the responder's PD. */
	cr_assert_eq(end_register(responder, (uintptr_t)target->buf, 4096, ACCESS_ALL, false), 0);
	a->target = (struct end_info){ .addr = (uintptr_t)target->buf,
				       .rkey = responder->key[0].mr->rkey };
}

static uint64_t counter_of(const struct end *target)
{
	return __atomic_load_n((uint64_t *)(void *)target->buf, __ATOMIC_SEQ_CST);
}

/* IBTA 9.4.5: atomics of one device are atomic to each other, from any QP and thread. */
Test(atomics, fetch_adds_of_several_threads_sum_exactly)
{
	static struct adder adders[ADDERS];
	static struct end responders[ADDERS], target;
	struct end_opts opts;

	end_defaults(&opts);
	opts.bytes = 4096;
	cr_assert_eq(end_open(&target, &opts, NULL), 0);
	for (unsigned i = 0; i < ADDERS; i++)
		adder_open(&adders[i], i % 2 ? &target : NULL, &responders[i], &target);
	for (unsigned i = 0; i < ADDERS; i++)
		pthread_create(&adders[i].thread, NULL, adder_run, &adders[i]);
	for (unsigned i = 0; i < ADDERS; i++) {
		pthread_join(adders[i].thread, NULL);
		cr_expect_eq(adders[i].err, 0, "adder %u: %s", i, strerror(adders[i].err));
	}
	cr_expect_eq(counter_of(&target), ADDERS * ADDS);
	for (unsigned i = 0; i < ADDERS; i++) {
		end_close(&adders[i].end);
		end_close(&responders[i]);
	}
	end_close(&target);
}

/* The same from several processes: each adds to the counter of this one. */
Test(atomics, fetch_adds_of_several_processes_sum_exactly)
{
	static struct peer peers[ADDERS];
	static struct end ends[ADDERS], target;
	struct end_info info[ADDERS], mine;
	struct end_opts opts;

	end_defaults(&opts);
	opts.bytes = 4096;
	for (unsigned i = 0; i < ADDERS; i++)
		peer_start(&peers[i], TWO_PROCESSES);
	cr_assert_eq(end_open(&target, &opts, NULL), 0);
	for (unsigned i = 0; i < ADDERS; i++) {
		cr_assert_eq(end_open(&ends[i], &opts, &target), 0);
		cr_assert_eq(peer_open(&peers[i], &opts, NULL, &info[i]), 0);
		end_describe(&ends[i], &mine);
		cr_assert_eq(peer_connect(&peers[i], &mine), 0);
		cr_assert_eq(end_connect(&ends[i], &info[i]), 0);
		cr_assert_eq(end_register(&ends[i], (uintptr_t)target.buf, 4096, ACCESS_ALL,
					  false), 0);
	}
	for (unsigned n = 0; n < 20; n++)
		for (unsigned i = 0; i < ADDERS; i++) {
			struct work w = { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
				.flags = IBV_SEND_SIGNALED, .wr_id = n,
				.remote_addr = (uintptr_t)target.buf,
				.rkey = ends[i].key[0].mr->rkey, .compare_add = 1 + i,
				.sge_count = 1, .sge = { { info[i].addr, 8, info[i].lkey } } };

			cr_assert_eq(peer_post(&peers[i], &w), 0);
		}
	for (unsigned n = 0; n < 20; n++)
		for (unsigned i = 0; i < ADDERS; i++) {
			struct done d;

			peer_await(&peers[i], SEND_CQ, &d);
			check_ok("fetch-add", &d, n, IBV_WC_FETCH_ADD);
		}
	cr_expect_eq(counter_of(&target), 20 * (1 + 2 + 3 + 4));
	for (unsigned i = 0; i < ADDERS; i++) {
		peer_stop(&peers[i]);
		end_close(&ends[i]);
	}
	end_close(&target);
}
