/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fabric: who is in it and which numbers are whose, also after members were killed at
 * whatever they were doing.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "emu/fabric/fabric.h"
#include "emu/fabric/segment.h"
#include "emu/obj/numbers.h"

static_assert(FABRIC_BLOCK_BITS == NUMBER_BLOCK_BITS && FABRIC_BLOCKS == NUMBER_BLOCKS,
	      "leases and number spaces speak of the same blocks");

static const uint8_t gids[2][16] = { { 0xfe, 0x80, [15] = 1 }, { [10] = 0xff, 0xff, 10, 0, 0, 1 } };
static const uint8_t other_gid[16] = { 0xfe, 0x80, [15] = 9 };

static char name[64], dir[256];	/* the fabric of this case, and where it was */

/* A child that does not outlive a case that failed or hung. */
static pid_t fork_child(void)
{
	pid_t pid = fork();

	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static int try_join(struct fabric **out)
{
	struct fabric_config config = { name, gids, 2 };

	return fabric_join(&config, out);
}

static struct fabric *join(void)
{
	struct fabric *f = NULL;
	int rc = try_join(&f);

	cr_assert_eq(rc, 0, "join: %s", strerror(-rc));
	snprintf(dir, sizeof dir, "%s", fabric_dir(f));
	return f;
}

static void start(void)
{
	snprintf(name, sizeof name, "unit-fabric-%d", (int)getpid());
}

/* How many files the directory holds; -1: it is not there. */
static int file_count(void)
{
	DIR *d = opendir(dir);
	struct dirent *entry;
	int count = 0;

	if (!d)
		return -1;
	while ((entry = readdir(d)))
		count += entry->d_name[0] != '.';
	closedir(d);
	return count;
}

static void remove_dir(void)
{
	DIR *d = opendir(dir);
	struct dirent *entry;

	while (d && (entry = readdir(d)))
		unlinkat(dirfd(d), entry->d_name, 0);
	if (d)
		closedir(d);
	rmdir(dir);
}

static struct fabric_segment *map_segment(int *fd_out)
{
	char path[300];
	void *at;

	snprintf(path, sizeof path, "%s/" FABRIC_SEGMENT_NAME, dir);
	*fd_out = open(path, O_RDWR);
	cr_assert(*fd_out >= 0);
	at = mmap(NULL, sizeof(struct fabric_segment), PROT_READ | PROT_WRITE, MAP_SHARED,
		  *fd_out, 0);
	cr_assert(at != MAP_FAILED);
	return at;
}

static void touch(const char *file)
{
	char path[400];
	int fd;

	snprintf(path, sizeof path, "%s/%s", dir, file);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	if (fd >= 0)
		close(fd);
}

/* A process that joins, leases a block, makes a file of its own and stays until it is killed. */
struct neighbour {
	pid_t pid;
	unsigned slot;
	uint32_t generation;
	int block;
};

static void live_next_door(int to)
{
	struct neighbour self = { .pid = getpid() };
	struct fabric *f;
	char file[64];

	if (try_join(&f))
		_exit(1);
	snprintf(dir, sizeof dir, "%s", fabric_dir(f));
	self.slot = fabric_self(f);
	self.generation = fabric_generation(f, self.slot);
	self.block = fabric_lease(f, FABRIC_QPN);
	snprintf(file, sizeof file, "%u-%u-thing", self.slot, self.generation);
	touch(file);
	if (write(to, &self, sizeof self) != sizeof self)
		_exit(1);
	for (;;)
		pause();
}

static struct neighbour neighbour_start(void)
{
	struct neighbour n;
	int fd[2];
	pid_t pid;

	cr_assert_eq(pipe(fd), 0);
	pid = fork_child();
	if (pid == 0)
		live_next_door(fd[1]);
	cr_assert_eq(read(fd[0], &n, sizeof n), (ssize_t)sizeof n);
	cr_assert_eq(n.pid, pid);
	close(fd[0]);
	close(fd[1]);
	return n;
}

static void kill_and_reap(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

TestSuite(fabric, .init = start, .timeout = 50);

Test(fabric, the_last_to_leave_removes_everything)
{
	struct fabric *f = join(), *second = join();
	struct stat st;

	cr_assert_eq(stat(dir, &st), 0);
	cr_assert_eq(st.st_mode & 07777, 0700);
	fabric_leave(f);
	cr_assert_eq(file_count(), 1);
	fabric_leave(second);
	cr_assert_eq(file_count(), -1, "%s is still there", dir);
}

Test(fabric, the_last_to_exit_removes_the_names_and_nobody_loses_anything)
{
	struct fabric *a = join(), *b = join(), *next;
	unsigned slot = fabric_self(a);
	int block = fabric_lease(a, FABRIC_QPN);

	cr_assert_gt(block, 0);
	fabric_exit(a);
	cr_expect_eq(file_count(), 1, "somebody stays");
	cr_expect_eq(fabric_owner(b, FABRIC_QPN, (uint32_t)block << FABRIC_BLOCK_BITS), (int)slot);
	cr_expect_eq(fabric_life(b, slot), FABRIC_ALIVE);
	fabric_exit(b);
	cr_expect_eq(file_count(), -1);
	cr_expect_gt(fabric_lease(b, FABRIC_QPN), 0, "it works on");

	next = join();				/* has nothing to do with them */
	fabric_exit(a);
	fabric_leave(b);
	cr_expect_eq(file_count(), 1);
	fabric_leave(next);
	cr_expect_eq(file_count(), -1);
	fabric_leave(a);
}

Test(fabric, who_leaves_does_not_wait_for_those_who_exit)
{
	struct fabric *a = join(), *b = join();

	fabric_exit(a);
	fabric_leave(b);
	cr_expect_eq(file_count(), -1);
	fabric_leave(a);
}

/* The one who joins sits where somebody exited. */
Test(fabric, who_comes_after_an_exit_stays)
{
	struct fabric *first = join(), *a, *b;

	fabric_exit(first);
	cr_assert_eq(file_count(), -1);
	a = join();
	b = join();
	fabric_exit(b);
	fabric_leave(b);
	b = join();
	fabric_exit(a);
	cr_expect_eq(file_count(), 1, "the new one has not said that it exits");
	fabric_leave(a);
	fabric_leave(b);
	cr_expect_eq(file_count(), -1);
	fabric_leave(first);
}

Test(fabric, files_of_those_who_exit_go_with_the_last)
{
	struct fabric *a = join();
	char path[512];

	snprintf(path, sizeof path, "%s/%u-%u-ring-7-1", dir, fabric_self(a),
		 fabric_generation(a, fabric_self(a)));
	close(open(path, O_WRONLY | O_CREAT, 0600));
	cr_assert_eq(file_count(), 2);
	fabric_exit(a);
	cr_expect_eq(file_count(), -1);
	fabric_leave(a);
}

Test(fabric, names_are_letters_digits_and_three_signs)
{
	static const struct { const char *name; int want; } row[] = {
		{ "a", 0 }, { "unit-A_z.9", 0 },
		{ "..", 0 },			/* a part of a name, not a path */
		{ "", -EINVAL }, { "a/b", -EINVAL }, { "a b", -EINVAL }, { "\xc3\xa4", -EINVAL },
		{ "0123456789012345678901234567890123456789012345678901234567890123", 0 },
		{ "01234567890123456789012345678901234567890123456789012345678901234", -EINVAL },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		int rc = fabric_place_name(row[i].name, dir, sizeof dir);

		cr_expect_eq(rc, row[i].want, "'%s' gives %d", row[i].name, rc);
	}
	cr_assert_eq(fabric_place_name(NULL, dir, sizeof dir), 0);
	cr_assert(strstr(dir, "-default"));
}

Test(fabric, too_many_gids_are_refused)
{
	static const uint8_t many[FABRIC_GIDS_MAX + 1][16];
	struct fabric_config config = { name, many, FABRIC_GIDS_MAX + 1 };
	struct fabric *f;

	cr_assert_eq(fabric_join(&config, &f), -EINVAL);
}

Test(fabric, a_lease_names_its_member)
{
	struct fabric *a = join(), *b = join();
	int block_a = fabric_lease(a, FABRIC_QPN), block_b = fabric_lease(b, FABRIC_QPN);
	uint32_t first = (uint32_t)block_a << NUMBER_BLOCK_BITS;

	cr_assert_gt(block_a, 0);
	cr_assert_gt(block_b, 0);
	cr_assert_neq(block_a, block_b);
	cr_assert_eq(fabric_owner(b, FABRIC_QPN, first), (int)fabric_self(a));
	cr_assert_eq(fabric_owner(b, FABRIC_QPN, first + NUMBER_BLOCK - 1), (int)fabric_self(a));
	cr_assert_eq(fabric_owner(a, FABRIC_QPN, (uint32_t)block_b << NUMBER_BLOCK_BITS),
		     (int)fabric_self(b));
	cr_assert_eq(fabric_owner(a, FABRIC_KEY, first), -1, "the spaces are apart");
	cr_assert_eq(fabric_owner(a, FABRIC_QPN, 5), -1, "block 0 is nobody's");
	cr_assert_eq(fabric_owner(a, FABRIC_QPN, 0x1000000), -1);
	cr_assert_eq(fabric_owner(a, FABRIC_QPN, UINT32_MAX), -1);
	fabric_leave(a);
	cr_assert_eq(fabric_owner(b, FABRIC_QPN, first), -1);
	fabric_leave(b);
}

Test(fabric, blocks_run_out_and_come_back)
{
	struct fabric *a = join(), *b = join();
	int block;

	for (unsigned i = 1; i < NUMBER_BLOCKS; i++)
		cr_assert_gt(fabric_lease(a, FABRIC_KEY), 0);
	cr_assert_eq(fabric_lease(b, FABRIC_KEY), -ENOMEM);
	cr_assert_gt(fabric_lease(b, FABRIC_QPN), 0);
	fabric_leave(a);
	block = fabric_lease(b, FABRIC_KEY);
	cr_assert_gt(block, 0);
	cr_assert_eq(fabric_owner(b, FABRIC_KEY, (uint32_t)block << NUMBER_BLOCK_BITS),
		     (int)fabric_self(b));
	fabric_leave(b);
}

Test(fabric, a_slot_changes_its_generation)
{
	struct fabric *a = join(), *b = join();
	unsigned slot = fabric_self(b);
	uint32_t generation = fabric_generation(a, slot), changes = fabric_changes(a);

	cr_assert_neq(slot, fabric_self(a));
	cr_assert_neq(generation, 0);
	fabric_leave(b);
	cr_assert_eq(fabric_generation(a, slot), 0);
	cr_assert_neq(fabric_changes(a), changes);
	b = join();
	cr_assert_eq(fabric_self(b), slot);
	cr_assert_neq(fabric_generation(a, slot), generation);
	cr_assert_eq(fabric_generation(a, FABRIC_MEMBERS_MAX), 0);
	fabric_leave(b);
	fabric_leave(a);
}

Test(fabric, every_slot_can_be_taken_and_no_more)
{
	struct fabric *f[FABRIC_MEMBERS_MAX], *more;

	for (unsigned i = 0; i < FABRIC_MEMBERS_MAX; i++)
		f[i] = join();
	cr_assert_eq(try_join(&more), -ENOSPC);
	for (unsigned i = 0; i < FABRIC_MEMBERS_MAX; i++)
		fabric_leave(f[i]);
	cr_assert_eq(file_count(), -1);
}

Test(fabric, members_answer_to_their_gids)
{
	struct fabric *a = join(), *b = join();
	unsigned slot = fabric_self(b);

	cr_assert(fabric_has_gid(a, slot, gids[0]));
	cr_assert(fabric_has_gid(a, slot, gids[1]));
	cr_assert_not(fabric_has_gid(a, slot, other_gid));
	cr_assert_not(fabric_has_gid(a, FABRIC_MEMBERS_MAX, gids[0]));
	fabric_leave(b);
	cr_assert_not(fabric_has_gid(a, slot, gids[0]));
	fabric_leave(a);
}

Test(fabric, mail_is_empty_when_a_member_joins)
{
	struct fabric *a = join(), *b = join();
	unsigned slot = fabric_self(b);
	static const uint8_t zeros[FABRIC_MAIL_BYTES];

	cr_assert_eq((uintptr_t)fabric_mail(a, slot) % 64, 0);
	memset(fabric_mail(a, slot), 0x5a, FABRIC_MAIL_BYTES);
	cr_assert_eq(memcmp(fabric_mail(b, slot), zeros, sizeof zeros) != 0, 1);
	fabric_leave(b);
	b = join();
	cr_assert_eq(fabric_self(b), slot);
	cr_assert_eq(memcmp(fabric_mail(b, slot), zeros, sizeof zeros), 0);
	fabric_leave(b);
	fabric_leave(a);
}

Test(fabric, who_looks_at_a_killed_member_cleans_up)
{
	struct fabric *f = join();
	struct neighbour n = neighbour_start();
	uint32_t number = (uint32_t)n.block << NUMBER_BLOCK_BITS;

	cr_assert_eq(fabric_life(f, n.slot), FABRIC_ALIVE);
	cr_assert_eq(fabric_owner(f, FABRIC_QPN, number), (int)n.slot);
	cr_assert_eq(file_count(), 2);
	kill(n.pid, SIGKILL);
	while (fabric_life(f, n.slot) != FABRIC_DEAD)	/* a zombie, not reaped yet */
		usleep(100);
	cr_assert_eq(fabric_owner(f, FABRIC_QPN, number), -1);
	cr_assert_eq(fabric_generation(f, n.slot), 0);
	cr_assert_eq(file_count(), 1);
	waitpid(n.pid, NULL, 0);
	fabric_leave(f);
	cr_assert_eq(file_count(), -1);
}

Test(fabric, who_joins_after_a_killed_member_cleans_up)
{
	struct neighbour n = neighbour_start();
	struct fabric *f;

	kill_and_reap(n.pid);
	f = join();
	cr_assert_eq(fabric_self(f), n.slot);
	cr_assert_neq(fabric_generation(f, n.slot), n.generation);
	cr_assert_eq(fabric_owner(f, FABRIC_QPN, (uint32_t)n.block << NUMBER_BLOCK_BITS), -1);
	cr_assert_eq(file_count(), 1);
	fabric_leave(f);
	cr_assert_eq(file_count(), -1);
}

Test(fabric, files_that_are_not_a_members_stay)
{
	struct fabric *f = join();
	struct neighbour n = neighbour_start();

	touch("notes");
	touch("7x-1-thing");
	touch("999-1-thing");
	touch("200-77-thing");		/* this one is: of nobody in slot 200 */
	kill_and_reap(n.pid);
	cr_assert_eq(fabric_life(f, n.slot), FABRIC_DEAD);
	cr_assert_eq(file_count(), 4);
	fabric_leave(f);
	cr_assert_eq(file_count(), 3);
	remove_dir();
}

Test(fabric, a_stopped_member_is_not_dead)
{
	struct fabric *f = join();
	struct neighbour n = neighbour_start();

	kill(n.pid, SIGSTOP);
	waitpid(n.pid, NULL, WUNTRACED);
	cr_assert_eq(fabric_life(f, n.slot), FABRIC_STOPPED);
	kill(n.pid, SIGCONT);
	waitpid(n.pid, NULL, WCONTINUED);
	cr_assert_eq(fabric_life(f, n.slot), FABRIC_ALIVE);
	kill_and_reap(n.pid);
	fabric_leave(f);
}

static void *sleep_for_ever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

Test(fabric, a_member_whose_first_thread_has_ended_is_alive)
{
	struct fabric *f = join(), *own;
	struct fabric_process p = { 0 };
	pid_t pid;

#ifdef __SANITIZE_THREAD__
	cr_skip("the thread sanitizer allows no threads in forked children");
#endif
	pid = fork_child();

	if (pid == 0) {
		pthread_t thread;

		if (try_join(&own) || pthread_create(&thread, NULL, sleep_for_ever, NULL))
			_exit(1);
		pthread_exit(NULL);
	}
	while (p.state != 'Z')
		cr_assert_eq(fabric_process_read(pid, &p), 0);
	cr_assert_eq(fabric_life(f, 1), FABRIC_ALIVE);
	kill_and_reap(pid);
	cr_assert_eq(fabric_life(f, 1), FABRIC_DEAD);
	fabric_leave(f);
}

Test(fabric, a_member_that_became_another_program_is_dead)
{
	struct fabric *f = join(), *own;
	char byte;
	int fd[2];
	pid_t pid;

	if (personality(0xffffffff) & ADDR_NO_RANDOMIZE)
		cr_skip("stacks are at one address");
	cr_assert_eq(pipe2(fd, O_CLOEXEC), 0);
	pid = fork_child();
	if (pid == 0) {
		if (try_join(&own) == 0)
			execlp("sleep", "sleep", "1000", (char *)NULL);
		_exit(1);
	}
	close(fd[1]);
	cr_assert_eq(read(fd[0], &byte, 1), 0);		/* exec closes the other end */
	cr_assert_eq(kill(pid, 0), 0);
	cr_assert_eq(fabric_life(f, 1), FABRIC_DEAD);
	kill_and_reap(pid);
	fabric_leave(f);
}

Test(fabric, a_forked_child_abandons_without_a_trace)
{
	struct fabric *f = join();
	uint32_t generation = fabric_generation(f, fabric_self(f));
	int status;
	pid_t pid = fork_child();

	if (pid == 0) {
		fabric_abandon(f);
		f = join();		/* and may join anew */
		fabric_leave(f);
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0);
	cr_assert_eq(fabric_generation(f, fabric_self(f)), generation);
	cr_assert_eq(fabric_life(f, fabric_self(f)), FABRIC_ALIVE);
	fabric_leave(f);
	cr_assert_eq(file_count(), -1);
}

Test(fabric, layouts_refuse_each_other_while_members_live)
{
	struct neighbour n = neighbour_start();
	struct fabric_segment *s;
	struct fabric *f;
	int fd;

	fabric_place_name(name, dir, sizeof dir);
	s = map_segment(&fd);
	s->first.layout++;
	cr_assert_eq(try_join(&f), -EPROTONOSUPPORT);
	kill_and_reap(n.pid);
	f = join();
	cr_assert_eq(s->first.layout, FABRIC_LAYOUT);
	fabric_leave(f);
	munmap(s, sizeof *s);
	close(fd);
}

Test(fabric, a_segment_of_something_else_is_refused)
{
	struct fabric *f = join(), *more;
	int fd;
	struct fabric_segment *s = map_segment(&fd);

	s->first.magic ^= 1;
	cr_assert_eq(try_join(&more), -EPROTONOSUPPORT);
	cr_assert_eq(file_count(), 1, "and left alone");
	munmap(s, sizeof *s);
	close(fd);
	fabric_leave(f);
}

Test(fabric, a_segment_that_was_never_completed_is_completed)
{
	static const off_t sizes[] = { 0, 100, 4096, sizeof(struct fabric_segment) };

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		char path[300];
		struct fabric *f;

		fabric_place_name(name, dir, sizeof dir);
		mkdir(dir, 0700);
		touch(FABRIC_SEGMENT_NAME);
		snprintf(path, sizeof path, "%s/" FABRIC_SEGMENT_NAME, dir);
		cr_assert_eq(truncate(path, sizes[i]), 0);
		f = join();
		cr_assert_gt(fabric_lease(f, FABRIC_QPN), 0);
		fabric_leave(f);
	}
}

Test(fabric, a_directory_that_is_open_to_others_is_refused)
{
	struct fabric *f;
	char target[300];

	fabric_place_name(name, dir, sizeof dir);
	cr_assert_eq(mkdir(dir, 0700), 0);
	cr_assert_eq(chmod(dir, 0750), 0);
	cr_assert_eq(try_join(&f), -EACCES);
	cr_assert_eq(rmdir(dir), 0);
	snprintf(target, sizeof target, "%s-target", dir);
	cr_assert_eq(mkdir(target, 0700), 0);
	cr_assert_eq(symlink(target, dir), 0);
	cr_assert_eq(try_join(&f), -EACCES);
	unlink(dir);
	rmdir(target);
}

Test(fabric, without_room_nothing_is_left_behind)
{
	struct rlimit old, small;
	struct fabric *f;

	getrlimit(RLIMIT_FSIZE, &old);
	small = old;
	small.rlim_cur = 65536;
	setrlimit(RLIMIT_FSIZE, &small);
	fabric_place_name(name, dir, sizeof dir);
	cr_assert_eq(try_join(&f), -EFBIG);
	cr_assert_eq(file_count(), -1);
	setrlimit(RLIMIT_FSIZE, &old);
	f = join();
	fabric_leave(f);
}

Test(fabric, a_scribbled_segment_hurts_nobody)
{
	struct fabric *f = join();
	int fd;
	struct fabric_segment *s = map_segment(&fd);
	unsigned seed = 1;

	for (unsigned round = 0; round < 20; round++) {
		for (size_t i = 0; i < sizeof *s; i += 4)
			*(uint32_t *)((uint8_t *)s + i) = (uint32_t)rand_r(&seed) * 2654435761u;
		for (unsigned i = 0; i < FABRIC_MEMBERS_MAX + 2; i++) {
			fabric_has_gid(f, i, gids[0]);
			fabric_generation(f, i);
			cr_assert_lt(fabric_owner(f, FABRIC_KEY, (uint32_t)rand_r(&seed)),
				     FABRIC_MEMBERS_MAX);
		}
		cr_assert_lt(fabric_lease(f, FABRIC_QPN), (int)NUMBER_BLOCKS);
		cr_assert_leq(fabric_life(f, round), FABRIC_DEAD);
	}
	munmap(s, sizeof *s);
	close(fd);
	fabric_leave(f);
	remove_dir();		/* those seats may have named living processes */
}

/* Joins, leases, makes files and leaves until something happens to it. */
static void live_fast(void)
{
	for (;;) {
		struct fabric *f;
		char file[64];

		if (try_join(&f))
			_exit(1);
		snprintf(dir, sizeof dir, "%s", fabric_dir(f));
		fabric_lease(f, FABRIC_QPN);
		fabric_lease(f, FABRIC_KEY);
		snprintf(file, sizeof file, "%u-%u-thing", fabric_self(f),
			 fabric_generation(f, fabric_self(f)));
		touch(file);
		fabric_life(f, 0);
		fabric_life(f, 1);
		fabric_leave(f);
	}
}

static void kill_at_random(unsigned *seed, unsigned count)
{
	pid_t pid[3];
	int status;

	for (unsigned i = 0; i < count; i++) {
		pid[i] = fork_child();
		if (pid[i] == 0)
			live_fast();
	}
	for (unsigned i = 0; i < count; i++) {
		struct timespec t = { .tv_nsec = rand_r(seed) % 3000000 };

		nanosleep(&t, NULL);
		kill(pid[i], SIGKILL);
		waitpid(pid[i], &status, 0);
		cr_assert(WIFSIGNALED(status), "a join failed");
	}
}

/* After whatever happened: one joins, and there is nobody and nothing else. */
static void expect_nothing_left(void)
{
	struct fabric *f = join();

	for (unsigned slot = 0; slot < FABRIC_MEMBERS_MAX; slot++)
		cr_assert(slot == fabric_self(f) || !fabric_generation(f, slot));
	for (uint32_t block = 0; block < NUMBER_BLOCKS; block++) {
		cr_assert_eq(fabric_owner(f, FABRIC_QPN, block << NUMBER_BLOCK_BITS), -1);
		cr_assert_eq(fabric_owner(f, FABRIC_KEY, block << NUMBER_BLOCK_BITS), -1);
	}
	cr_assert_eq(file_count(), 1);
	fabric_leave(f);
	cr_assert_eq(file_count(), -1);
}

Test(fabric, members_killed_at_any_moment_leave_nothing)
{
	unsigned seed = 42;

	for (unsigned round = 0; round < 120; round++)
		kill_at_random(&seed, 1 + round % 3);
	expect_nothing_left();
}

Test(fabric, the_last_to_leave_and_the_first_to_join_do_not_cross)
{
	pid_t pid[3];
	int status;

	for (unsigned i = 0; i < 3; i++) {
		pid[i] = fork_child();
		if (pid[i])
			continue;
		for (unsigned round = 0; round < 150; round++) {
			struct fabric *f;
			char path[300];

			if (try_join(&f))
				_exit(1);
			snprintf(path, sizeof path, "%s/" FABRIC_SEGMENT_NAME, fabric_dir(f));
			if (access(path, F_OK))
				_exit(2);	/* joined what nobody else will find */
			fabric_leave(f);
		}
		_exit(0);
	}
	for (unsigned i = 0; i < 3; i++) {
		waitpid(pid[i], &status, 0);
		cr_assert_eq(status, 0);
	}
	fabric_place_name(name, dir, sizeof dir);
	cr_assert_eq(file_count(), -1);
}

static void *join_and_leave(void *arg)
{
	for (unsigned round = 0; round < 60; round++) {
		struct fabric *f;

		if (try_join(&f))
			return "failed";
		fabric_leave(f);
	}
	return arg;
}

Test(fabric, threads_may_join_at_the_same_time)
{
	pthread_t thread[3];
	void *result;

	for (unsigned i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, join_and_leave, NULL);
	for (unsigned i = 0; i < 3; i++) {
		pthread_join(thread[i], &result);
		cr_assert_null(result);
	}
	fabric_place_name(name, dir, sizeof dir);
	cr_assert_eq(file_count(), -1);
}
