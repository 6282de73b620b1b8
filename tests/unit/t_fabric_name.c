/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names that members of a fabric hold together: held and dropped in turn, by the dead, and all
 * at once by members of one process.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "emu/fabric/fabric.h"
#include "emu/fabric/segment.h"

static struct fabric *join(void)
{
	static const uint8_t gid[1][16] = { { 0xfe, 0x80, [15] = 1 } };
	struct fabric_config config = { .gid = gid, .gid_count = 1 };
	struct fabric *f = NULL;
	char name[64];
	int rc;

	snprintf(name, sizeof name, "t_fabric_name-%d", getpid());
	config.name = name;
	rc = fabric_join(&config, &f);
	cr_assert_eq(rc, 0, "join: %s", strerror(-rc));
	return f;
}

Test(fabric_name, a_name_is_held_until_the_last_drops_it)
{
	struct fabric *a = join(), *b = join();
	int first, second;

	cr_assert_eq(fabric_name_hold(a, 5, false, false), -ENOENT);
	first = fabric_name_hold(a, 5, true, true);
	cr_assert_geq(first, 0);
	cr_assert_eq(fabric_name_hold(b, 5, true, true), -EEXIST);
	cr_assert_eq(fabric_name_hold(a, 5, false, true), -EEXIST);
	cr_assert_eq(fabric_name_hold(b, 6, false, false), -ENOENT);
	second = fabric_name_hold(b, 5, false, false);
	cr_assert_geq(second, 0);
	fabric_name_drop(a, first);
	cr_assert_eq(fabric_name_hold(a, 5, true, true), -EEXIST);
	fabric_name_drop(b, second);
	cr_assert_eq(fabric_name_hold(a, 5, false, false), -ENOENT);
	fabric_leave(a);
	fabric_leave(b);
}

Test(fabric_name, names_of_who_leaves_are_free)
{
	struct fabric *a = join(), *b = join();

	cr_assert_geq(fabric_name_hold(a, 5, true, false), 0);
	fabric_leave(a);
	cr_assert_eq(fabric_name_hold(b, 5, false, false), -ENOENT);
	cr_assert_geq(fabric_name_hold(b, 5, true, true), 0);
	fabric_leave(b);
}

Test(fabric_name, names_run_out_and_come_back)
{
	struct fabric *a = join();

	for (unsigned i = 0; i < FABRIC_NAMES; i++)
		cr_assert_eq(fabric_name_hold(a, i + 1, true, true), (int)i);
	cr_assert_eq(fabric_name_hold(a, FABRIC_NAMES + 1, true, false), -ENOSPC);
	fabric_name_drop(a, 77);
	cr_assert_eq(fabric_name_hold(a, 78, false, false), -ENOENT);
	cr_assert_eq(fabric_name_hold(a, FABRIC_NAMES + 1, true, false), 77);
	fabric_leave(a);
}

enum { RIVALS = 4, RACES = 1000 };

static _Atomic int winners[RACES];

static void *rival_main(void *arg)
{
	static _Atomic int at_the_line;
	struct fabric *f = arg;

	for (int i = 0; i < RACES; i++) {
		at_the_line++;
		while (at_the_line < RIVALS * (i + 1))
			sched_yield();
		winners[i] += fabric_name_hold(f, (uint64_t)i + 1, true, true) >= 0;
	}
	return NULL;
}

/* Never two; none only when the one that will give way is not scheduled to do so. */
Test(fabric_name, a_name_that_is_claimed_alone_has_one_holder)
{
	pthread_t thread[RIVALS];
	struct fabric *f[RIVALS];
	int won = 0;

	for (int i = 0; i < RIVALS; i++) {
		f[i] = join();
		cr_assert_eq(pthread_create(&thread[i], NULL, rival_main, f[i]), 0);
	}
	for (int i = 0; i < RIVALS; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < RACES; i++) {
		cr_assert_leq(winners[i], 1);
		won += winners[i];
	}
	cr_assert_gt(won, 0);
	for (int i = 0; i < RIVALS; i++)
		fabric_leave(f[i]);
}
