/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fabric's table of multicast groups: who is in which, after joins, departures and deaths,
 * and with a table that somebody filled with garbage.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "emu/fabric/fabric.h"
#include "emu/fabric/segment.h"

static const uint8_t own_gid[1][16] = { { 0xfe, 0x80, [15] = 1 } };
static const uint8_t red[16] = { 0xff, 0x0e, [15] = 1 }, blue[16] = { 0xff, 0x0e, [15] = 2 };
static char name[64], dir[256];

static void start(void)
{
	snprintf(name, sizeof name, "unit-groups-%d", (int)getpid());
}

TestSuite(fabric_groups, .init = start, .timeout = 50);

static int try_join(struct fabric **out)
{
	struct fabric_config config = { name, own_gid, 1 };

	return fabric_join(&config, out);
}

static struct fabric *join(void)
{
	struct fabric *f = NULL;

	cr_assert_eq(try_join(&f), 0);
	snprintf(dir, sizeof dir, "%s", fabric_dir(f));
	return f;
}

static bool is_in(const struct fabric *f, const uint8_t group[16], unsigned slot)
{
	struct fabric_members m;

	fabric_group_members(f, group, &m);
	return m.bit[slot / 64] >> slot % 64 & 1;
}

static unsigned count_in(const struct fabric *f, const uint8_t group[16])
{
	struct fabric_members m;
	unsigned count = 0;

	fabric_group_members(f, group, &m);
	for (unsigned i = 0; i < FABRIC_MEMBERS_MAX / 64; i++)
		count += (unsigned)__builtin_popcountll(m.bit[i]);
	return count;
}

static struct fabric_segment *map_segment(void)
{
	char path[300];
	void *at;
	int fd;

	snprintf(path, sizeof path, "%s/" FABRIC_SEGMENT_NAME, dir);
	fd = open(path, O_RDWR);
	cr_assert(fd >= 0);
	at = mmap(NULL, sizeof(struct fabric_segment), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert(at != MAP_FAILED);
	close(fd);
	return at;
}

Test(fabric_groups, members_see_each_other_join_and_leave)
{
	struct fabric *a = join(), *b = join();
	uint32_t changes = fabric_group_changes(a);

	cr_expect_eq(count_in(a, red), 0);
	cr_assert_eq(fabric_group_join(b, red), 0);
	cr_expect_neq(fabric_group_changes(a), changes);
	cr_expect(is_in(a, red, fabric_self(b)));
	cr_expect_eq(count_in(a, red), 1);
	cr_expect_eq(count_in(a, blue), 0);
	cr_assert_eq(fabric_group_join(a, red), 0);
	cr_assert_eq(fabric_group_join(a, blue), 0);
	cr_expect_eq(count_in(b, red), 2);
	cr_expect(is_in(b, blue, fabric_self(a)));
	changes = fabric_group_changes(b);
	fabric_group_leave(a, red);
	cr_expect_neq(fabric_group_changes(b), changes);
	cr_expect_eq(count_in(b, red), 1);
	cr_expect(is_in(b, red, fabric_self(b)), "another's membership stays");
	cr_expect_eq(count_in(b, blue), 1);
	fabric_group_leave(a, red);			/* of what it is not in */
	cr_expect_eq(count_in(b, red), 1);
	fabric_leave(a);
	fabric_leave(b);
}

Test(fabric_groups, who_leaves_the_fabric_leaves_its_groups)
{
	struct fabric *a = join(), *b = join(), *next;
	struct fabric_segment *s = map_segment();
	unsigned slot = fabric_self(b);
	uint32_t changes;

	cr_assert_eq(fabric_group_join(b, red), 0);
	cr_assert_eq(fabric_group_join(b, blue), 0);
	changes = fabric_group_changes(a);
	fabric_leave(b);
	cr_expect_neq(fabric_group_changes(a), changes);
	cr_expect_eq(count_in(a, red) + count_in(a, blue), 0);
	cr_expect_eq(s->group[0].owner | s->group[1].owner, 0, "swept");
	next = join();
	cr_expect_eq(fabric_self(next), slot);
	cr_expect_eq(count_in(a, red), 0, "whoever sits there now is not in it");
	fabric_leave(next);
	fabric_leave(a);
}

static pid_t fork_member(const uint8_t group[16], unsigned *slot_out)
{
	int fd[2];
	unsigned slot;
	pid_t pid;

	cr_assert_eq(pipe(fd), 0);
	pid = fork();
	if (pid == 0) {
		struct fabric *f;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (try_join(&f) || fabric_group_join(f, group))
			_exit(1);
		slot = fabric_self(f);
		if (write(fd[1], &slot, sizeof slot) != sizeof slot)
			_exit(1);
		for (;;)
			pause();
	}
	cr_assert_eq(read(fd[0], slot_out, sizeof *slot_out), (ssize_t)sizeof *slot_out);
	close(fd[0]);
	close(fd[1]);
	return pid;
}

Test(fabric_groups, the_dead_are_in_no_group)
{
	struct fabric *a = join(), *next;
	struct fabric_segment *s = map_segment();
	unsigned slot, again;
	pid_t pid;

	for (unsigned i = 0; i < 10; i++) {
		pid = fork_member(red, &slot);
		cr_assert(is_in(a, red, slot));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		if (i % 2) {			/* noticed by asking, or by the next who joins */
			cr_assert_eq(fabric_life(a, slot), FABRIC_DEAD);
		} else {
			next = join();
			again = fabric_self(next);
			cr_assert_eq(again, slot);
			cr_assert_not(is_in(a, red, slot));
			fabric_leave(next);
		}
		cr_assert_eq(count_in(a, red), 0);
		cr_assert_eq(s->group[0].owner, 0);
	}
	fabric_leave(a);
}

/* Between taking an entry and saying which group it is for. */
Test(fabric_groups, a_death_in_the_middle_of_joining_leaves_a_free_entry)
{
	struct fabric *a = join();
	struct fabric_segment *s = map_segment();
	uint32_t own = lease_make(fabric_self(a), fabric_generation(a, fabric_self(a)));
	unsigned slot;
	pid_t pid = fork_member(red, &slot);

	s->group[1].owner = s->group[0].owner;		/* a second entry, without a group */
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	cr_assert_eq(fabric_life(a, slot), FABRIC_DEAD);
	cr_assert_eq(s->group[0].owner | s->group[1].owner, 0);
	cr_assert_eq(fabric_group_join(a, blue), 0);
	cr_assert_eq(s->group[0].owner, own);
	fabric_leave(a);
}

/* What a cleaner that was killed has left behind. */
Test(fabric_groups, entries_of_former_members_do_not_count)
{
	struct fabric *a = join();
	struct fabric_segment *s = map_segment();
	unsigned self = fabric_self(a);

	cr_assert_eq(fabric_group_join(a, red), 0);
	s->group[0].owner = lease_make(self, fabric_generation(a, self) + 1);
	cr_expect_eq(count_in(a, red), 0);
	s->group[0].owner = lease_make(200, 1);
	cr_expect_eq(count_in(a, red), 0);
	cr_assert_eq(fabric_group_join(a, red), 0);
	cr_expect(is_in(a, red, self), "its entry is taken again");
	fabric_leave(a);
}

Test(fabric_groups, a_full_table_says_so)
{
	struct fabric *a = join(), *b = join();
	uint8_t gid[16] = { 0xff };

	for (unsigned i = 0; i < FABRIC_GROUPS_MAX; i++) {
		memcpy(gid + 4, &i, sizeof i);
		cr_assert_eq(fabric_group_join(a, gid), 0, "entry %u", i);
	}
	cr_assert_eq(fabric_group_join(b, red), -ENOSPC);
	fabric_group_leave(a, gid);
	cr_assert_eq(fabric_group_join(b, red), 0);
	cr_expect(is_in(a, red, fabric_self(b)));
	fabric_leave(a);
	cr_assert_eq(fabric_group_join(b, blue), 0);
	fabric_leave(b);
}

Test(fabric_groups, garbage_in_the_table_hurts_nobody)
{
	struct fabric *a = join();
	struct fabric_segment *s = map_segment();
	uint8_t *at = (uint8_t *)s->group;
	unsigned seed = 7;

	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < sizeof s->group; i++)
			at[i] = (uint8_t)rand_r(&seed);
		s->group_end = (uint32_t)rand_r(&seed) << 8;
		count_in(a, red);
		fabric_group_leave(a, red);
		cr_assert_eq(fabric_group_join(a, red), 0);
		cr_assert(is_in(a, red, fabric_self(a)));
	}
	fabric_leave(a);
}

enum { THREADS = 4, ROUNDS = 300 };

static void *join_and_leave(void *arg)
{
	struct fabric *f = arg;

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint8_t gid[16] = { 0xff, [2] = (uint8_t)fabric_self(f), [15] = (uint8_t)i };

		if (fabric_group_join(f, gid) || fabric_group_join(f, red) ||
		    !is_in(f, gid, fabric_self(f)) || !is_in(f, red, fabric_self(f)))
			return f;
		fabric_group_leave(f, gid);
		fabric_group_leave(f, red);
		if (is_in(f, gid, fabric_self(f)) || is_in(f, red, fabric_self(f)))
			return f;
	}
	return NULL;
}

Test(fabric_groups, many_join_and_leave_at_once)
{
	pthread_t thread[THREADS];
	struct fabric *f[THREADS];

	for (unsigned i = 0; i < THREADS; i++)
		f[i] = join();
	for (unsigned i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, join_and_leave, f[i]), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		void *failed;

		pthread_join(thread[i], &failed);
		cr_expect_null(failed, "member %u lost an entry", i);
	}
	cr_expect_eq(count_in(f[0], red), 0);
	for (unsigned i = 0; i < THREADS; i++)
		fabric_leave(f[i]);
}

/* The last number of all is that of every group, and so no QP's. */
Test(fabric_groups, no_qp_has_the_number_of_all)
{
	struct fabric *a = join();
	int block, last = 0;

	while ((block = fabric_lease(a, FABRIC_QPN)) > 0)
		last = block > last ? block : last;
	cr_expect_eq(last, (int)FABRIC_BLOCKS - 2);
	fabric_leave(a);
}
