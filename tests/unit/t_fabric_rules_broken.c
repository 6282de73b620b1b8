/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules of members that die in the middle, are starved, or whose files somebody filled with
 * garbage: nobody crashes, nobody is told a rule that was not posted, and nothing stays behind.
 */
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include "tests/unit/rules_world.h"

TestSuite(fabric_rules_broken, .init = start, .timeout = 120);

#define ONE	level_of(1, 1)

/* --- death --- */

/* Posts and withdraws for ever; says so in the pipe once it has begun. */
static void post_for_ever(int fd, unsigned seed)
{
	static bool is_there[400];
	struct node n;
	unsigned member;
	uint64_t order;

	if (node_try(&n, 77))
		_exit(1);
	member = member_of(&n);
	if (write(fd, &member, sizeof member) != sizeof member)
		_exit(1);
	for (uint32_t salt = 0;; salt = (salt + 1) & 0xffffff) {
		uint32_t number = 1 + (uint32_t)rand_r(&seed) % 399;
		uint32_t level = level_of(salt, (uint32_t)rand_r(&seed) & BLOCKS_ALL);

		if (is_there[number])
			rules_withdraw(n.rules, number);
		else if (try_post(&n, number, level, &order))
			_exit(2);
		is_there[number] = !is_there[number];
	}
}

static pid_t poster_start(unsigned seed, unsigned *member_out)
{
	int fd[2];
	pid_t pid;

	cr_assert_eq(pipe(fd), 0);
	pid = fork_child();
	if (!pid)
		post_for_ever(fd[1], seed);
	cr_assert_eq(read(fd[0], member_out, sizeof *member_out), (ssize_t)sizeof *member_out);
	close(fd[0]);
	close(fd[1]);
	return pid;
}

static void kill_and_reap(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

Test(fabric_rules_broken, who_is_killed_while_posting_leaves_no_half_rule)
{
	struct node a = node_up(1), late;
	unsigned seed = 5;

	for (unsigned round = 0; round < 60; round++) {
		unsigned member, looks = (unsigned)rand_r(&seed) % 40;
		pid_t pid = poster_start(round, &member);
		struct sight *sight = &a.view->member[member];
		unsigned gone = sight->gone;

		if (round % 4 == 0)
			usleep((unsigned)rand_r(&seed) % 2000);
		for (unsigned i = 0; i < looks; i++)
			follow(&a);
		kill_and_reap(pid);
		follow(&a);
		late = node_up(2);		/* this also buries the dead */
		follow(&late);
		cr_assert_eq(late.view->member[member].count, 0);
		follow(&a);
		cr_assert_eq(sight->count, 0);
		cr_assert_leq(sight->gone, gone + 1);
		cr_assert_eq(a.view->wrong + late.view->wrong, 0, "round %u", round);
		cr_assert_eq(file_count(), 1);
		node_down(&late);
	}
	node_down(&a);
	cr_assert_eq(file_count(), -1);
}

/* Whoever looks while another one writes sees rules as they were posted, and in the end all. */
Test(fabric_rules_broken, many_post_while_many_follow)
{
	struct node a = node_up(1);
	unsigned member[3];
	pid_t pid[3];

	for (unsigned i = 0; i < 3; i++)
		pid[i] = poster_start(i, &member[i]);
	for (unsigned i = 0; i < 100 || a.view->added < 3000; i++) {
		follow(&a);
		if (i % 20 == 19)		/* fall behind */
			usleep(10000);
	}
	for (unsigned i = 0; i < 3; i++)
		kill_and_reap(pid[i]);
	follow(&a);
	cr_expect_eq(a.view->wrong, 0);
	cr_expect_gt(a.view->removed, 0);
	for (unsigned i = 0; i < 3; i++) {
		cr_assert_eq(fabric_life(a.fabric, member[i]), FABRIC_DEAD);
		follow(&a);
		follow(&a);
		cr_expect_eq(a.view->member[member[i]].gone, 1);
		cr_expect_eq(a.view->member[member[i]].count, 0);
	}
	cr_expect_eq(file_count(), 1);
	node_down(&a);
}

Test(fabric_rules_broken, a_half_written_record_is_no_rule_until_it_is_whole)
{
	struct node a = node_up(1), b = node_up(2), c = node_up(3);
	struct rules_record *record;

	post(&a, 5, level_of(1, 3));
	post(&a, 6, level_of(1, 3));
	follow(&b);
	record = record_of(map_file(&a), 0);
	record->sequence++;			/* the next rule is being written over it */
	record->level = 12345;
	follow(&c);
	cr_expect_eq(count_of(&c, &a), 1);
	post(&a, 7, level_of(2, 3));
	follow(&b);
	cr_expect_eq(count_of(&b, &a), 3, "nobody has said that it changed");
	for (unsigned i = 0; i < RULES_CHANGES; i++) {
		rules_withdraw(a.rules, 7);
		post(&a, 7, level_of(i, 3));
	}
	follow(&b);
	cr_expect_eq(count_of(&b, &a), 2);
	cr_expect_not(told_of(&b, &a, 5)->is_there);
	rules_withdraw(a.rules, 5);
	post(&a, 5, level_of(8, 3));
	follow(&b);
	follow(&c);
	cr_expect_eq(count_of(&b, &a), 3);
	cr_expect_eq(count_of(&c, &a), 3);
	cr_expect_eq(b.view->wrong + c.view->wrong, 0);
	node_down(&a);
	node_down(&b);
	node_down(&c);
}

Test(fabric_rules_broken, a_forked_child_closes_without_a_trace)
{
	struct node a = node_up(1), b = node_up(2);
	int status;
	pid_t pid;

	post(&a, 1, ONE);
	follow(&a);
	pid = fork_child();
	if (!pid) {
		rules_close(a.rules);
		fabric_abandon(a.fabric);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	cr_assert_eq(status, 0);
	cr_assert_eq(file_count(), 2);
	post(&a, 2, ONE);
	follow(&b);
	cr_expect_eq(count_of(&b, &a), 2);
	node_down(&a);
	node_down(&b);
}

/* --- garbage --- */

/* Write @value at @at of a file with three rules: the follower has no rules of that member then, or
 * some, and goes on. */
static void garble(size_t at, uint32_t value, bool is_known)
{
	struct node a = node_up(1), b = node_up(2), c = node_up(3);
	unsigned slot = member_of(&a);

	for (uint32_t number = 1; number <= 3; number++)
		post(&a, number, level_of(number, 1));
	post(&c, 1, ONE);
	if (is_known)
		follow(&b);
	memcpy((uint8_t *)map_file(&a) + at, &value, sizeof value);
	for (unsigned i = 0; i < 3; i++) {
		post(&a, 4, ONE);
		rules_withdraw(a.rules, 4);
		follow(&b);
	}
	cr_expect_leq(b.view->member[slot].gone, 1, "byte %zu", at);
	cr_expect_eq(count_of(&b, &c), 1, "others' rules are still there");
	cr_expect_not(rules_have_changed(b.rules), "nothing is tried again and again");
	node_down(&c);
	node_down(&a);
	follow(&b);
	cr_expect_eq(b.view->member[slot].count, 0, "byte %zu", at);
	node_down(&b);
}

Test(fabric_rules_broken, each_field_may_be_anything)
{
	static const uint32_t values[] = {
		0, 1, 2, 0x80, 0xffff, RULES_UNITS_MAX, 0x80000000, 0xfffffff0, 0xffffffff,
	};
	struct node first = node_up(1);	/* so that the fabric is made once only */
	size_t fields[40], count = 0;

	for (size_t at = 0; at < 24; at += 4)		/* head: magic, layout, node */
		fields[count++] = at;
	fields[count++] = offsetof(struct rules_head, end);
	for (size_t at = 0; at < 32; at += 4)		/* changes */
		fields[count++] = offsetof(struct rules_head, change) + at;
	for (size_t at = 0; at < 24; at += 4)		/* the second record */
		fields[count++] = sizeof(struct rules_head) + 3 * RULES_UNIT_BYTES + at;
	for (size_t i = 0; i < count; i++)
		for (size_t v = 0; v < sizeof values / sizeof *values; v++)
			garble(fields[i], values[v], (v + i) % 2);
	node_down(&first);
}

/* A fresh follower finds a file of three rules in units 0, 3 and 6, and one word that is wrong. */
Test(fabric_rules_broken, what_no_writer_makes_is_no_rule)
{
	const size_t second = sizeof(struct rules_head) + 3 * RULES_UNIT_BYTES;
	const size_t third = second + 3 * RULES_UNIT_BYTES;
	const struct { size_t at; uint32_t value; } row[] = {
		{ offsetof(struct rules_head, magic), 1 },
		{ offsetof(struct rules_head, layout), RULES_LAYOUT + 1 },
		{ offsetof(struct rules_head, node), RULES_NODE_MAX + 1 },
		{ offsetof(struct rules_head, end), RULES_UNITS_MAX + 1 },
		{ second + offsetof(struct rules_record, units), 0 },
		{ second + offsetof(struct rules_record, units), 2 },
		{ second + offsetof(struct rules_record, units), 2 + 2 * RULES_BLOCKS },
		{ second + offsetof(struct rules_record, units), UINT32_MAX },
		{ second + offsetof(struct rules_record, blocks), 3 },
		{ second + offsetof(struct rules_record, blocks), 1u << RULES_BLOCKS },
		{ second + offsetof(struct rules_record, blocks), UINT32_MAX },
		{ third + offsetof(struct rules_record, units), 5 },
	};
	struct node a = node_up(1);

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct node b = node_up(2), c = node_up(3);

		for (uint32_t number = 1; number <= 3; number++)
			post(&b, number, level_of(number, 1));
		memcpy((uint8_t *)map_file(&b) + row[i].at, &row[i].value, 4);
		follow(&c);
		cr_expect_eq(count_of(&c, &b), 0, "row %zu", i);
		cr_expect_eq(c.view->member[member_of(&b)].gone, c.view->added ? 1 : 0);
		cr_expect_eq(c.view->wrong, 0, "row %zu", i);
		cr_expect_not(rules_have_changed(c.rules), "row %zu", i);
		post(&b, 4, ONE);
		follow(&c);
		cr_expect_eq(count_of(&c, &b), 0, "not until it is another member");
		node_down(&c);
		node_down(&b);
	}
	node_down(&a);
}

/* While one is half-written, its length still leads to the next. */
Test(fabric_rules_broken, a_half_written_record_of_no_length_ends_the_search)
{
	struct node a = node_up(1), b = node_up(2);
	struct rules_record *record;

	post(&a, 1, ONE);
	post(&a, 2, ONE);
	record = record_of(map_file(&a), 0);
	record->sequence |= 1;
	record->units = 0;
	follow(&b);
	cr_expect_eq(count_of(&b, &a), 0);
	node_down(&a);
	node_down(&b);
}

/* A record that nobody has made yet, and one that is not in the file at all. */
Test(fabric_rules_broken, a_change_of_what_is_not_there_is_garbage)
{
	static const uint32_t units[] = { 6, 9, RULES_UNITS_MAX, RULES_UNITS_MAX + 64, UINT32_MAX };

	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		struct node a = node_up(1), b = node_up(2);
		struct rules_head *head;
		struct rules_record *fake;

		post(&a, 1, ONE);
		follow(&b);
		post(&a, 2, ONE);
		head = map_file(&a);
		fake = record_of(head, units[i] < 100 ? units[i] : 6);
		*fake = (struct rules_record){ .units = 3, .number = 9, .level = 0 };
		head->change[1].number = 9;
		head->change[1].unit = units[i];
		follow(&b);
		cr_expect_eq(b.view->added, 1);
		cr_expect_eq(b.view->member[member_of(&a)].gone, 1, "row %zu", i);
		cr_expect_not(rules_have_changed(b.rules));
		node_down(&a);
		node_down(&b);
	}
}

Test(fabric_rules_broken, random_bytes_never_hurt)
{
	struct node a = node_up(1), b = node_up(2), c;
	struct rules_head *head;
	unsigned seed = 9;
	size_t bytes;

	for (uint32_t number = 1; number <= 200; number++)
		post(&a, number, level_of(number, number & BLOCKS_ALL));
	follow(&b);
	head = map_file(&a);
	bytes = (size_t)file_bytes(&a);
	for (unsigned round = 0; round < 300; round++) {
		for (unsigned i = 0; i < 50; i++) {
			size_t at = (size_t)rand_r(&seed) % bytes;

			if (round % 2)		/* in records that are in use, and their heads */
				at = sizeof *head + at % 20000 / 64 * 64 + at % 28;
			((uint8_t *)head)[at] = (uint8_t)rand_r(&seed);
		}
		head->magic = RULES_MAGIC;
		head->layout = RULES_LAYOUT;
		head->node = 1;
		if (round % 3)
			atomic_store(&head->end, 3000);
		post(&a, 1000 + round, level_of(round, 1));
		follow(&b);
		c = node_up(3);
		follow(&c);
		c.view->wrong = 0;		/* it may be told anything, but not twice */
		node_down(&c);
	}
	node_down(&a);
	follow(&b);
	cr_expect_eq(b.view->member[0].count, 0);
	node_down(&b);
	cr_assert_eq(file_count(), -1);
}

Test(fabric_rules_broken, files_that_are_none_are_left_alone)
{
	struct node a = node_up(1), b = node_up(2);
	struct fabric_segment *s;
	char path[400], target[440];
	int fd;

	rules_path_of(&a, path, sizeof path);
	snprintf(target, sizeof target, "%s/" FABRIC_SEGMENT_NAME, dir);
	fd = open(target, O_RDWR);
	s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert(s != MAP_FAILED);
	close(fd);
	for (unsigned kind = 0; kind < 5; kind++) {
		struct node c = node_up(3);

		unlink(path);
		if (kind == 0)
			cr_assert_eq(mkfifo(path, 0600), 0);
		if (kind == 1)
			cr_assert_eq(symlink(target, path), 0);
		if (kind == 2)
			close(open(path, O_CREAT | O_RDWR, 0600));
		if (kind == 3)
			cr_assert_eq(link(target, path), 0);
		/* kind 4: no file at all */
		s->rule_change[member_of(&a)] += 3;
		s->rule_changes++;
		follow(&b);
		follow(&c);
		cr_expect_eq(count_of(&b, &a) + count_of(&c, &a), 0);
		cr_expect_not(rules_have_changed(c.rules), "kind %u", kind);
		node_down(&c);
	}
	unlink(path);
	node_down(&a);
	node_down(&b);
}

/* In the end of what a follower has mapped there is nothing. */
Test(fabric_rules_broken, a_file_that_was_cut_is_garbage)
{
	struct node a = node_up(1), b = node_up(2);
	char path[400];

	for (uint32_t number = 1; number <= 1000; number++)
		post(&a, number, level_of(1, BLOCKS_ALL));
	follow(&b);
	cr_assert_eq(count_of(&b, &a), 1000);
	post(&a, 2000, level_of(1, BLOCKS_ALL));
	rules_path_of(&a, path, sizeof path);
	cr_assert_eq(truncate(path, sizeof(struct rules_head) / 4096 * 4096), 0);
	follow(&b);
	cr_expect_eq(count_of(&b, &a), 0);
	cr_expect_eq(b.view->member[member_of(&a)].gone, 1);
	cr_expect_not(rules_have_changed(b.rules));
	node_down(&b);
	node_down(&a);
}

Test(fabric_rules_broken, counts_in_the_segment_may_be_anything)
{
	struct node a = node_up(1), b = node_up(2);
	struct fabric_segment *s = a.fabric->segment;
	unsigned seed = 2;

	for (uint32_t number = 1; number <= 100; number++)
		post(&a, number, ONE);
	for (unsigned round = 0; round < 200; round++) {
		for (unsigned slot = 0; slot < 4; slot++)
			s->rule_change[slot] = (uint64_t)rand_r(&seed) << (round % 40);
		s->rule_changes = (uint32_t)rand_r(&seed);
		follow(&b);
		cr_assert_eq(count_of(&b, &a), 100);
	}
	post(&a, 101, ONE);
	follow(&b);
	cr_expect_eq(count_of(&b, &a), 101);
	cr_expect_eq(b.view->wrong, 0);
	node_down(&a);
	node_down(&b);
}

/* --- short of everything --- */

static void limit_set(int what, rlim_t value)
{
	struct rlimit limit;

	getrlimit(what, &limit);
	limit.rlim_cur = value < limit.rlim_max ? value : limit.rlim_max;
	setrlimit(what, &limit);
}

Test(fabric_rules_broken, a_file_size_limit_is_an_answer_and_no_signal)
{
	struct node a = node_up(1), b = node_up(2);
	uint32_t number = 1;
	uint64_t order;
	int rc = 0;

	limit_set(RLIMIT_FSIZE, 4096);
	cr_expect_eq(try_post(&a, 1, ONE, &order), -EFBIG);
	cr_expect_eq(file_count(), 1);
	follow(&b);
	cr_expect_eq(count_of(&b, &a), 0);
	limit_set(RLIMIT_FSIZE, 206000);
	while (!rc && number < 9000)
		rc = try_post(&a, number++, ONE, &order);
	cr_expect_eq(rc, -EFBIG);
	number -= 2;			/* the last one that is there */
	cr_expect_geq(number, (206000 - 4096 - sizeof(struct rules_head)) / 192, "the last page");
	follow(&b);
	cr_expect_eq(count_of(&b, &a), number);
	limit_set(RLIMIT_FSIZE, RLIM_INFINITY);
	post(&a, number + 1, ONE);
	follow(&b);
	cr_expect_eq(count_of(&b, &a), number + 1);
	cr_expect_eq(b.view->wrong, 0);
	node_down(&a);
	node_down(&b);
}

Test(fabric_rules_broken, without_descriptors_it_works_later)
{
	struct node a = node_up(1), b = node_up(2);
	struct rlimit limit;
	uint64_t order;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit_set(RLIMIT_NOFILE, 0);
	cr_expect_eq(try_post(&a, 1, ONE, &order), -EMFILE);
	limit_set(RLIMIT_NOFILE, limit.rlim_cur);
	post(&a, 1, ONE);
	limit_set(RLIMIT_NOFILE, 0);
	follow(&b);
	cr_expect_eq(count_of(&b, &a), 0);
	cr_expect(rules_have_changed(b.rules), "it is tried again");
	limit_set(RLIMIT_NOFILE, limit.rlim_cur);
	follow(&b);
	cr_expect_eq(count_of(&b, &a), 1);
	cr_expect_not(rules_have_changed(b.rules));
	node_down(&a);
	node_down(&b);
}

Test(fabric_rules_broken, a_file_whose_name_is_gone_does_not_grow)
{
	struct node a = node_up(1), b = node_up(2);
	uint32_t number = 1;
	char path[400];
	uint64_t order;
	int fd, rc = 0;

	post(&a, number++, ONE);
	follow(&b);
	rules_path_of(&a, path, sizeof path);
	unlink(path);
	while (!rc && number < 9000)
		rc = try_post(&a, number++, ONE, &order);
	cr_expect_eq(rc, -ENOENT);
	fd = open(path, O_RDWR | O_CREAT, 0600);	/* somebody else's */
	cr_expect_eq(try_post(&a, 9000, ONE, &order), -ESTALE);
	close(fd);
	follow(&b);
	cr_expect_eq(count_of(&b, &a), number - 2);
	rules_withdraw(a.rules, 1);
	post(&a, 9000, ONE);
	follow(&b);
	cr_expect_eq(count_of(&b, &a), number - 2);
	cr_expect_eq(b.view->wrong, 0);
	node_down(&a);
	node_down(&b);
}

static bool put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool is_done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return is_done;
}

/* One that holds the fabric's own segment and little else, for this process only. */
static bool small_file_system(void)
{
	char uid[32], gid[32];

	snprintf(uid, sizeof uid, "0 %d 1", (int)geteuid());
	snprintf(gid, sizeof gid, "0 %d 1", (int)getegid());
	return !unshare(CLONE_NEWUSER | CLONE_NEWNS) && put("/proc/self/setgroups", "deny") &&
	       put("/proc/self/uid_map", uid) && put("/proc/self/gid_map", gid) &&
	       !mount("none", "/dev/shm", "tmpfs", 0, "size=2M");
}

static int fill_up(void)
{
	struct node a, b;
	uint32_t number = 1;
	uint64_t order;
	int rc = 0;

	if (!small_file_system())
		return 77;
	if (node_try(&a, 1) || node_try(&b, 2))
		return 1;
	while (!rc && number < 9000)
		rc = try_post(&a, number++, level_of(0, BLOCKS_ALL), &order);
	if (rc != -ENOSPC || number < 100)
		return 2;
	follow(&b);
	if (count_of(&b, &a) != number - 2 || try_post(&b, 1, ONE, &order) != -ENOSPC)
		return 3;
	for (uint32_t i = 1; i < 50; i++)
		rules_withdraw(a.rules, i);
	for (uint32_t i = 1; i < 50; i++)
		if (try_post(&a, i, level_of(0, BLOCKS_ALL), &order))
			return 4;
	follow(&b);
	follow(&a);
	if (count_of(&b, &a) != number - 2 || count_of(&a, &a) != number - 2 || b.view->wrong)
		return 5;
	node_down(&a);
	follow(&b);			/* until then it has the file mapped */
	if (try_post(&b, 1, ONE, &order))
		return 6;
	node_down(&b);
	return file_count() == -1 ? 0 : 7;
}

Test(fabric_rules_broken, a_full_file_system_is_an_answer_and_no_signal)
{
	pid_t pid = fork_child();
	int status;

	if (!pid)
		_exit(fill_up());
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		cr_skip("no namespaces here");
	cr_assert_eq(status, 0, "step %d", status >> 8);
}
