/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that misbehave, each a case of this one: forks, closed descriptors, signals, threads.
 *
 *	disorder CASE
 *
 * Exit status: 0; 1: a verb failed that should not; EXIT_WRONG: something is wrong, said on
 * stderr.  The tests of tests/programs run the cases and set the stage: limits, signals,
 * full file systems.
 */
#include "disorder.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS	30000
#define OPERATIONS	200
#define MORTAL_S	90		/* no case outlives the test that waits for it */

/* What is said to and by the other process, a byte each. */
enum { SAY_STOP = 's', SAY_DONE = 'd' };

/* The link to the other process, from either side. */

static bool exchange(int fd, const void *ours, void *theirs, size_t bytes)
{
	return write(fd, ours, bytes) == (ssize_t)bytes &&
	       recv(fd, theirs, bytes, MSG_WAITALL) == (ssize_t)bytes;
}

static int remote_connect(struct link *l, int fd)
{
	struct link_info peer;
	char ready[2] = "r";
	int error;

	if (!exchange(fd, &l->info, &peer, sizeof peer))
		return EPIPE;
	error = link_connect(l, &peer);
	if (!error && !exchange(fd, &ready[0], &ready[1], 1))
		error = EPIPE;
	return error;
}

static bool is_readable(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	return poll(&poll_fd, 1, 0) == 1;
}

static void remote_run(struct node *n, struct link *l, int fd)
{
	char say = 0;

	while (!is_readable(fd)) {
		if (!l->has_failed)
			link_post(l, DEPTH);
		node_poll(n);
	}
	if (read(fd, &say, 1) != 1)
		return;
	while (!link_is_quiet(l))
		node_poll(n);
	say = SAY_DONE;
	if (write(fd, &say, 1) != 1 || read(fd, &say, 1) < 0)
		return;			/* end of file: the other has let go of its QP */
	link_close(l);
	node_close(n);
}

static void remote_main(int fd)
{
	static struct node node = { .timeout = 14, .retry = 7, .random = 99 };
	static struct link link;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	if (node_open(&node) || link_open(&link, &node, 0, 99))
		exit(1);
	if (remote_connect(&link, fd))
		exit(1);
	remote_run(&node, &link, fd);
	exit(0);
}

static void remote_start(struct world *w)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		wrong("socketpair: %s", strerror(errno));
	w->remote = fork();
	if (w->remote < 0)
		wrong("fork: %s", strerror(errno));
	if (!w->remote) {
		close(pair[0]);
		remote_main(pair[1]);
	}
	close(pair[1]);
	w->socket = pair[0];
}

static void remote_stop(struct world *w)
{
	char say = SAY_STOP;

	if (write(w->socket, &say, 1) != 1)
		wrong("the other process has gone");
	while (!is_readable(w->socket))
		node_poll(&w->node);
	if (read(w->socket, &say, 1) != 1 || say != SAY_DONE)
		wrong("the other process has gone");
}

void world_drop_remote(struct world *w)
{
	if (!w->remote)
		return;
	kill(w->remote, SIGKILL);
	waitpid(w->remote, NULL, 0);
	close(w->socket);
	w->remote = 0;
}

/* The world */

static unsigned link_count(const struct world *w)
{
	return w->remote ? 3 : 2;
}

static int links_open(struct world *w)
{
	int error = 0;

	for (unsigned i = 0; i < link_count(w) && !error; i++)
		error = link_open(&w->link[i], &w->node, i, 1 + i);
	if (!error)
		error = link_connect(&w->link[0], &w->link[1].info);
	if (!error)
		error = link_connect(&w->link[1], &w->link[0].info);
	if (!error && w->remote)
		error = remote_connect(&w->link[2], w->socket);
	return error;
}

int world_try(struct world *w, bool has_remote)
{
	int error;

	*w = (struct world){ .node = { .timeout = 14, .retry = 7, .random = (uint64_t)getpid() } };
	if (has_remote)
		remote_start(w);
	error = node_open(&w->node);
	return error ? error : links_open(w);
}

void world_open(struct world *w, bool has_remote)
{
	if (world_try(w, has_remote))
		exit(1);
}

void world_turn(struct world *w)
{
	for (unsigned i = 0; i < link_count(w); i++)
		if (!w->link[i].has_failed)
			link_post(&w->link[i], DEPTH);
	node_poll(&w->node);
}

static bool has_done(const struct world *w, const uint64_t *goal)
{
	for (unsigned i = 0; i < link_count(w); i++) {
		if (w->link[i].has_failed)
			wrong("link %u failed: %s", i, ibv_wc_status_str(w->link[i].first_error));
		if (w->link[i].done < goal[i])
			return false;
	}
	return true;
}

void world_run(struct world *w, unsigned operations)
{
	uint64_t until = clock_ms() + PATIENCE_MS, goal[3];

	for (unsigned i = 0; i < 3; i++)
		goal[i] = w->link[i].done + operations;
	while (!has_done(w, goal)) {
		world_turn(w);
		if (clock_ms() > until)
			wrong("stuck: %llu, %llu and %llu operations done",
			      (unsigned long long)w->link[0].done,
			      (unsigned long long)w->link[1].done,
			      (unsigned long long)w->link[2].done);
	}
}

static bool is_quiet(const struct world *w)
{
	for (unsigned i = 0; i < link_count(w); i++)
		if (!link_is_quiet(&w->link[i]))
			return false;
	return true;
}

void world_close(struct world *w)
{
	while (!is_quiet(w))
		node_poll(&w->node);
	if (w->remote)
		remote_stop(w);
	for (unsigned i = 0; i < 3; i++)	/* also when the other process was dropped */
		link_close(&w->link[i]);
	node_close(&w->node);
	if (!w->remote)
		return;
	close(w->socket);
	child_has_ended(w->remote, true);
}

/* Processes */

void exec_self(const char *name)
{
	execl("/proc/self/exe", "disorder", name, NULL);
	_exit(126);
}

bool child_has_ended(pid_t child, bool may_wait)
{
	int status;
	pid_t ended;

	while ((ended = waitpid(child, &status, may_wait ? 0 : WNOHANG)) < 0 && errno == EINTR)
		;
	if (!ended)
		return false;
	if (ended != child || !WIFEXITED(status) || WEXITSTATUS(status))
		wrong("child %d ended with wait status %x", (int)child, (unsigned)status);
	return true;
}

/* The plain cases, and the list of all */

static void case_pair(void)
{
	struct world w;

	world_open(&w, false);
	world_run(&w, OPERATIONS);
	world_close(&w);
}

static void case_remote(void)
{
	struct world w;

	world_open(&w, true);
	world_run(&w, OPERATIONS);
	world_close(&w);
}

/* As far as it comes: where rings can't be made, the other process is out of reach and nothing
 * else is wrong. */
static void case_scarce(void)
{
	uint64_t until = clock_ms() + PATIENCE_MS;
	struct world w;

	world_open(&w, true);
	while (!w.link[2].has_failed && w.link[2].done < OPERATIONS && clock_ms() < until)
		world_turn(&w);
	if (!w.link[2].has_failed) {
		world_close(&w);
		return;
	}
	if (w.link[2].first_error != IBV_WC_RETRY_EXC_ERR)
		wrong("link 2 failed: %s", ibv_wc_status_str(w.link[2].first_error));
	world_drop_remote(&w);
	world_run(&w, OPERATIONS);
	world_close(&w);
	puts("out of reach");
}

/* Until somebody ends it. */
static void case_forever(void)
{
	struct world w;

	world_open(&w, true);
	world_run(&w, OPERATIONS);
	puts("running");
	fflush(stdout);
	for (;;)
		world_run(&w, OPERATIONS);
}

static void case_exit_without_closing(void)
{
	struct world w;

	world_open(&w, true);
	world_run(&w, OPERATIONS);
	world_drop_remote(&w);
}

static const struct test_case plain_cases[] = {
	{ "pair", case_pair },
	{ "remote", case_remote },
	{ "scarce", case_scarce },
	{ "forever", case_forever },
	{ "exit-without-closing", case_exit_without_closing },
	{ 0 },
};

static const struct test_case *const all_cases[] = {
	plain_cases, fork_cases, descriptor_cases, signal_cases, thread_cases, limit_cases,
	event_cases,
};

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	alarm(MORTAL_S);
	for (size_t i = 0; argc == 2 && i < sizeof all_cases / sizeof *all_cases; i++) {
		for (const struct test_case *c = all_cases[i]; c->name; c++) {
			if (strcmp(c->name, argv[1]))
				continue;
			c->run();
			return 0;
		}
	}
	fprintf(stderr, "disorder: which case?\n");
	return 2;
}
