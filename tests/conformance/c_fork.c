/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that a forked child does not get: ibv_fork_init().
 *
 * What a child gets is read from smaps, where "dc" among a mapping's VmFlags means "not copied";
 * one case forks and looks.  Each case is a process of its own, so that each begins without it.
 *
 * Rules: ibv_fork_init(3), ibv_is_fork_initialized(3); api-inventory 1.10.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "harness/check.h"

#define PAGE	4096u
#define PAGES	64u
#define LW	IBV_ACCESS_LOCAL_WRITE

TestSuite(fork, .timeout = 60);

struct rig {
	struct ibv_context *context;
	struct ibv_pd *pd;
	uint8_t *at;		/* PAGES pages with nothing else around */
};

static void rig_open(struct rig *r)
{
	r->context = device_open();
	cr_assert_not_null(r->context);
	r->pd = ibv_alloc_pd(r->context);
	r->at = mmap(NULL, (PAGES + 2) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert(r->pd && r->at != MAP_FAILED);
	r->at += PAGE;
	cr_assert_eq(mprotect(r->at, PAGES * PAGE, PROT_READ | PROT_WRITE), 0);
	memset(r->at, 1, PAGES * PAGE);
}

static void rig_close(struct rig *r)
{
	cr_expect_eq(munmap(r->at - PAGE, (PAGES + 2) * PAGE), 0);
	cr_expect_eq(ibv_dealloc_pd(r->pd), 0);
	cr_expect_eq(ibv_close_device(r->context), 0);
}

static struct ibv_mr *must_register(struct rig *r, size_t offset, size_t bytes, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(r->pd, r->at + offset, bytes, access);

	cr_assert_not_null(mr, "%s", strerror(errno));
	return mr;
}

/* Bit n: page n is not for children. */
static uint64_t hidden_pages(const struct rig *r)
{
	FILE *smaps = fopen("/proc/self/smaps", "r");
	unsigned long from = 0, to = 0, first, end, base = (unsigned long)r->at;
	uint64_t hidden = 0;
	char line[512];

	cr_assert_not_null(smaps);
	while (fgets(line, sizeof line, smaps)) {
		if (sscanf(line, "%lx-%lx ", &first, &end) == 2) {
			from = first;
			to = end;
		}
		if (strncmp(line, "VmFlags:", 8) || !strstr(line, " dc"))
			continue;
		for (unsigned i = 0; i < PAGES; i++)
			if (base + i * PAGE >= from && base + i * PAGE < to)
				hidden |= UINT64_C(1) << i;
	}
	fclose(smaps);
	return hidden;
}

static uint64_t pages(unsigned first, unsigned count)
{
	return (count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1) << first;
}

Test(fork, nothing_is_hidden_unless_asked)
{
	struct ibv_mr *mr;
	struct rig r;

	cr_expect_eq(ibv_is_fork_initialized(), IBV_FORK_DISABLED);
	rig_open(&r);
	mr = must_register(&r, 0, PAGES * PAGE, LW);
	cr_expect_eq(hidden_pages(&r), 0);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	rig_close(&r);
}

Test(fork, it_may_be_asked_for_twice)
{
	cr_expect_eq(ibv_fork_init(), 0);
	cr_expect_eq(ibv_is_fork_initialized(), IBV_FORK_ENABLED);
	cr_expect_eq(ibv_fork_init(), 0);
}

Test(fork, after_a_registration_it_is_too_late)
{
	struct ibv_mr *mr;
	struct rig r;

	rig_open(&r);
	mr = must_register(&r, 0, PAGE, LW);
	cr_expect_eq(ibv_fork_init(), EINVAL);
	cr_expect_eq(ibv_is_fork_initialized(), IBV_FORK_DISABLED);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	rig_close(&r);
}

Test(fork, a_region_hides_whole_pages)
{
	struct ibv_mr *mr;
	struct rig r;

	cr_assert_eq(ibv_fork_init(), 0);
	rig_open(&r);
	mr = must_register(&r, 3 * PAGE - 1, 2, LW);
	cr_expect_eq(hidden_pages(&r), pages(2, 2));
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	cr_expect_eq(hidden_pages(&r), 0);
	rig_close(&r);
}

Test(fork, a_page_is_hidden_until_its_last_region_goes)
{
	struct ibv_mr *a, *b, *c;
	struct rig r;

	cr_assert_eq(ibv_fork_init(), 0);
	rig_open(&r);
	a = must_register(&r, 0, 10 * PAGE, LW);
	b = must_register(&r, 5 * PAGE, 10 * PAGE, LW);
	c = must_register(&r, 7 * PAGE, 16, LW);
	cr_expect_eq(hidden_pages(&r), pages(0, 15));
	cr_expect_eq(ibv_dereg_mr(a), 0);
	cr_expect_eq(hidden_pages(&r), pages(5, 10));
	cr_expect_eq(ibv_dereg_mr(b), 0);
	cr_expect_eq(hidden_pages(&r), pages(7, 1));
	cr_expect_eq(ibv_dereg_mr(c), 0);
	cr_expect_eq(hidden_pages(&r), 0);
	rig_close(&r);
}

/* Against a count for each page. */
Test(fork, random_regions_are_counted_right)
{
	unsigned count[PAGES] = { 0 }, first[200] = { 0 }, length[200] = { 0 };
	struct ibv_mr *mr[200] = { NULL };
	struct rig r;

	cr_assert_eq(ibv_fork_init(), 0);
	rig_open(&r);
	srand(1);
	for (unsigned step = 0; step < 600; step++) {
		unsigned i = (unsigned)rand() % 200;
		uint64_t want = 0;
		int change = mr[i] ? -1 : 1;

		if (mr[i]) {
			cr_assert_eq(ibv_dereg_mr(mr[i]), 0);
			mr[i] = NULL;
		} else {
			first[i] = (unsigned)rand() % PAGES;
			length[i] = 1 + (unsigned)rand() % (PAGES - first[i]) / 8;
			mr[i] = must_register(&r, first[i] * PAGE, length[i] * PAGE, LW);
		}
		for (unsigned k = 0; k < length[i]; k++)
			count[first[i] + k] += (unsigned)change;
		for (unsigned k = 0; k < PAGES; k++)
			want |= (uint64_t)(count[k] > 0) << k;
		cr_assert_eq(hidden_pages(&r), want, "step %u", step);
	}
	for (unsigned i = 0; i < 200; i++)
		cr_expect(!mr[i] || !ibv_dereg_mr(mr[i]));
	cr_expect_eq(hidden_pages(&r), 0);
	rig_close(&r);
}

Test(fork, a_region_that_moves_takes_it_along)
{
	struct ibv_mr *mr;
	struct rig r;

	cr_assert_eq(ibv_fork_init(), 0);
	rig_open(&r);
	mr = must_register(&r, 0, 4 * PAGE, LW);
	cr_assert_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, r.at + 2 * PAGE,
				  8 * PAGE, 0), 0);
	cr_expect_eq(hidden_pages(&r), pages(2, 8));
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	cr_expect_eq(hidden_pages(&r), 0);
	rig_close(&r);
}

Test(fork, what_is_refused_leaves_nothing_hidden)
{
	struct rig r;

	cr_assert_eq(ibv_fork_init(), 0);
	rig_open(&r);
	cr_expect_null(ibv_reg_mr(r.pd, r.at, PAGE, IBV_ACCESS_REMOTE_WRITE));
	cr_expect_eq(errno, EINVAL);
	cr_expect_eq(hidden_pages(&r), 0);
	rig_close(&r);
}

/* What of it is there may stay hidden with rdma-core's library. */
Test(fork, memory_that_is_not_there_is_refused)
{
	struct rig r;

	cr_assert_eq(ibv_fork_init(), 0);
	rig_open(&r);
	cr_assert_eq(munmap(r.at + 8 * PAGE, PAGE), 0);
	cr_expect_null(ibv_reg_mr(r.pd, r.at, 16 * PAGE, LW));
	rig_close(&r);
}

Test(fork, regions_on_demand_are_shared)
{
	struct ibv_mr *mr;
	struct rig r;

	cr_assert_eq(ibv_fork_init(), 0);
	rig_open(&r);
	mr = must_register(&r, 0, 4 * PAGE, LW | IBV_ACCESS_ON_DEMAND);
	cr_expect_eq(hidden_pages(&r), 0);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	rig_close(&r);
}

Test(fork, a_child_gets_the_rest_and_the_parent_keeps_its_own)
{
	struct ibv_mr *mr;
	struct rig r;
	int status;
	pid_t pid;

	cr_assert_eq(ibv_fork_init(), 0);
	rig_open(&r);
	mr = must_register(&r, PAGE, PAGE, LW);
	pid = fork();
	cr_assert(pid >= 0);
	if (!pid) {
		bool has_first = !madvise(r.at, PAGE, MADV_NORMAL);
		bool has_region = !madvise(r.at + PAGE, PAGE, MADV_NORMAL);

		_exit(has_first && !has_region ? 0 : 1);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
	cr_expect_eq(r.at[PAGE], 1);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	rig_close(&r);
}

Test(fork, the_environment_may_ask_for_it)
{
	struct ibv_mr *mr;
	struct rig r;

	cr_assert_eq(setenv("RDMAV_FORK_SAFE", "1", 1), 0);
	rig_open(&r);
	cr_expect_eq(ibv_is_fork_initialized(), IBV_FORK_ENABLED);
	mr = must_register(&r, 0, PAGE, LW);
	cr_expect_eq(hidden_pages(&r), pages(0, 1));
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	rig_close(&r);
}
