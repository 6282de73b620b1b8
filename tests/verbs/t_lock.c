/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lock of a queue: one thread at a time, and nothing at all where one thread was promised.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include "verbs/lock.h"

enum { THREADS = 4, TURNS = 20000 };

static struct vb_lock lock;
static unsigned inside, count;

static void *worker(void *unused)
{
	(void)unused;
	for (int i = 0; i < TURNS; i++) {
		vb_lock(&lock);
		cr_assert_eq(__atomic_add_fetch(&inside, 1, __ATOMIC_RELAXED), 1, "two at once");
		count++;
		if (i % 64 == 0)
			sched_yield();	/* so that others find it taken */
		__atomic_sub_fetch(&inside, 1, __ATOMIC_RELAXED);
		vb_unlock(&lock);
	}
	return NULL;
}

Test(lock, lets_one_in)
{
	pthread_t thread[THREADS];

	for (int i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, worker, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	cr_assert_eq(count, THREADS * TURNS);
	cr_assert_eq(lock.is_taken, 0);
}

Test(lock, is_not_taken_where_one_thread_was_promised)
{
	struct vb_lock alone = { .is_unneeded = true };

	vb_lock(&alone);
	cr_assert_eq(alone.is_taken, 0);
	vb_lock(&alone);
	vb_unlock(&alone);
	cr_assert_eq(alone.is_taken, 0);
}
