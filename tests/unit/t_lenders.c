/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads inside the engine: who enters finds it, nobody loses it while inside, and a forked
 * child finds none.  The engine is any address here.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "emu/lenders.h"

static char place;
#define ENGINE	((struct engine *)&place)

static void start(void)
{
	cr_assert_eq(lenders_init(), 0);
}

TestSuite(lenders, .init = start, .timeout = 60);

Test(lenders, there_is_nothing_before_and_after)
{
	cr_expect_null(lender_enter());
	cr_expect_not(lenders_are_admitted());
	lenders_admit(ENGINE);
	cr_expect(lenders_are_admitted());
	cr_expect_eq(lender_enter(), ENGINE);
	lender_leave();
	cr_expect(lenders_dismiss());
	cr_expect_not(lenders_are_admitted());
	cr_expect_null(lender_enter());
}

/* In a signal handler that interrupted a poll, say. */
Test(lenders, one_thread_may_enter_twice)
{
	lenders_admit(ENGINE);
	cr_expect_eq(lender_enter(), ENGINE);
	cr_expect_eq(lender_enter(), ENGINE);
	lender_leave();
	cr_expect_not(lenders_dismiss(), "it is still inside once");
	lender_leave();
	cr_expect(lenders_dismiss());
}

/* --- engines that come and go under threads that poll --- */

#define THREADS	2
#define ROUNDS	30
#define DWELL	200

static _Atomic bool is_there;		/* what the address stands for may be used */
static _Atomic bool must_stop;

static void *poll_main(void *arg)
{
	uintptr_t wrong = 0;

	(void)arg;
	while (!must_stop) {
		if (!lender_enter())
			continue;
		for (int i = 0; i < DWELL; i++)
			wrong += !is_there;
		lender_leave();
	}
	return (void *)wrong;
}

Test(lenders, nobody_is_inside_when_the_engine_goes)
{
	pthread_t thread[THREADS];
	void *wrong;

	for (int i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, poll_main, NULL), 0);
	for (int round = 0; round < ROUNDS; round++) {
		is_there = true;
		lenders_admit(ENGINE);
		sched_yield();
		cr_assert(lenders_dismiss());
		is_there = false;
	}
	must_stop = true;
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &wrong);
		cr_expect_null(wrong, "inside without an engine %lu times", (unsigned long)wrong);
	}
}

/* --- threads that end, and processes that fork --- */

static void *enter_and_leave(void *arg)
{
	(void)arg;
	if (!lender_enter())
		return "no engine";
	lender_leave();
	return NULL;
}

static void *enter_and_stay(void *arg)
{
	(void)arg;
	return lender_enter() ? NULL : "no engine";
}

static void thread_runs(void *(*main)(void *))
{
	pthread_t thread;
	void *result;

	cr_assert_eq(pthread_create(&thread, NULL, main, NULL), 0);
	pthread_join(thread, &result);
	cr_expect_null(result, "%s", (char *)result);
}

Test(lenders, many_threads_come_and_go)
{
	lenders_admit(ENGINE);
	for (int i = 0; i < 200; i++)
		thread_runs(enter_and_leave);
	cr_expect(lenders_dismiss());
}

/* It jumped out of a poll by siglongjmp(), for instance: then the engine is not freed. */
Test(lenders, who_never_leaves_is_told_of)
{
	lenders_admit(ENGINE);
	thread_runs(enter_and_stay);
	cr_expect_not(lenders_dismiss());
}

static int status_of(pid_t child)
{
	int status;

	cr_assert_geq(child, 0);
	cr_assert_eq(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Test(lenders, a_child_of_any_fork_finds_nothing)
{
	pid_t child;

	lenders_admit(ENGINE);
	cr_assert_eq(lender_enter(), ENGINE);
	lender_leave();
	child = (pid_t)syscall(SYS_fork);
	if (!child)
		_exit(lender_enter() || lenders_are_admitted());
	cr_expect_eq(status_of(child), 0);
	cr_expect_eq(lender_enter(), ENGINE);
	lender_leave();
}

Test(lenders, a_child_does_not_wait_for_its_parents_threads)
{
	pid_t child;

	lenders_admit(ENGINE);
	thread_runs(enter_and_stay);
	child = fork();
	if (!child) {
		lenders_forget();
		lenders_admit(ENGINE);
		_exit(lender_enter() != ENGINE || (lender_leave(), !lenders_dismiss()));
	}
	cr_expect_eq(status_of(child), 0);
}
