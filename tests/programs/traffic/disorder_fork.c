/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cases of `disorder`: children.  A forked child has a copy of every object and no device: its
 * calls answer EIO, and the parent does not notice.  Whoever execs, or opens for himself,
 * has a device of his own.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "disorder.h"

#define OPERATIONS	100

extern char **environ;

/* A child of the parent's world; the parent works on meanwhile and afterwards. */
static void beside(struct world *w, pid_t child)
{
	if (child < 0)
		wrong("fork: %s", strerror(errno));
	while (!child_has_ended(child, false))
		world_run(w, 1);
	world_run(w, OPERATIONS);
}

/* What a verb of a dead device must answer. */
static void expect_eio(const char *verb, int error)
{
	if (error != EIO)
		wrong("%s in a forked child: %s, not EIO", verb, strerror(error));
}

/* The same for one that returns a pointer. */
static void expect_null(const char *verb, const void *result)
{
	expect_eio(verb, result ? 0 : errno);
}

static void create_verbs(struct world *w)
{
	struct ibv_qp_init_attr init = {
		.send_cq = w->node.cq, .recv_cq = w->node.cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	expect_null("ibv_alloc_pd", ibv_alloc_pd(w->node.context));
	expect_null("ibv_reg_mr", ibv_reg_mr(w->node.pd, w, sizeof *w, 0));
	expect_null("ibv_create_comp_channel", ibv_create_comp_channel(w->node.context));
	expect_null("ibv_create_cq", ibv_create_cq(w->node.context, 8, NULL, NULL, 0));
	expect_null("ibv_create_qp", ibv_create_qp(w->node.pd, &init));
}

static void change_verbs(struct world *w)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_qp_init_attr init;
	struct ibv_port_attr port;
	int error;

	error = ibv_modify_qp(w->link[0].qp, &attr, IBV_QP_STATE);
	expect_eio("ibv_modify_qp", error);
	error = ibv_query_qp(w->link[0].qp, &attr, IBV_QP_STATE, &init);
	expect_eio("ibv_query_qp", error);
	error = ibv_query_port(w->node.context, 1, &port);
	expect_eio("ibv_query_port", error);
	error = ibv_dereg_mr(w->link[2].mr);
	expect_eio("ibv_dereg_mr", error);
}

/* These answer whatever they like; nothing may come of it. */
static void data_verbs(struct world *w)
{
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_SEND, .wr_id = 1 };
	struct ibv_wc wc;

	for (int i = 0; i < 1000; i++) {
		if (i < 4)
			ibv_post_send(w->link[i % 3].qp, &wr, &bad);
		ibv_poll_cq(w->node.cq, 1, &wc);
	}
	ibv_req_notify_cq(w->node.cq, 0);
}

static void destroy_verbs(struct world *w)
{
	for (unsigned i = 0; i < 3; i++)
		ibv_destroy_qp(w->link[i].qp);
	ibv_destroy_cq(w->node.cq);
	ibv_dealloc_pd(w->node.pd);
	ibv_close_device(w->node.context);
}

static void use_inherited(struct world *w)
{
	create_verbs(w);
	change_verbs(w);
	data_verbs(w);
	destroy_verbs(w);
}

static void case_child_calls(void)
{
	struct world w;
	pid_t child;

	world_open(&w, true);
	for (int way = 0; way < 3; way++) {
		world_run(&w, OPERATIONS);
		child = fork();
		if (!child) {
			use_inherited(&w);
			if (way == 0)
				exit(0);	/* with everything that runs at an exit */
			if (way == 1)
				execlp("true", "true", NULL);
			_exit(0);
		}
		beside(&w, child);
	}
	world_close(&w);
}

static void case_child_opens(void)
{
	struct world w, own;
	pid_t child;

	world_open(&w, true);
	world_run(&w, OPERATIONS);
	child = fork();
	if (!child) {
		world_open(&own, false);
		world_run(&own, OPERATIONS);
		create_verbs(&w);		/* the old one is as dead as before */
		world_close(&own);
		exit(0);
	}
	beside(&w, child);
	world_close(&w);
}

static void case_fork_exec(void)
{
	struct world w;
	pid_t child;

	world_open(&w, true);
	child = fork();
	if (!child)
		exec_self("remote");
	beside(&w, child);
	world_close(&w);
}

/* The child of a vfork() shares memory with the parent, and closes what it has inherited. */
static void case_vfork(void)
{
	struct world w;
	pid_t child;

	world_open(&w, true);
	for (int i = 0; i < 3; i++) {
		child = vfork();
		if (!child) {
			close(w.node.context->cmd_fd);
			dup2(1, w.node.context->cmd_fd);
			if (i < 2)
				exec_self("pair");
			_exit(0);
		}
		beside(&w, child);
	}
	world_close(&w);
}

static void case_posix_spawn(void)
{
	char *argv[] = { "disorder", "pair", NULL };
	posix_spawn_file_actions_t actions;
	struct world w;
	pid_t child;
	int error;

	world_open(&w, true);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	error = posix_spawn(&child, "/proc/self/exe", &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (error)
		wrong("posix_spawn: %s", strerror(error));
	beside(&w, child);
	world_close(&w);
}

/* Without the C library: no handler of pthread_atfork() runs. */
static void case_raw_fork(void)
{
	struct world w;
	pid_t child;

	world_open(&w, true);
	for (int i = 0; i < 3; i++) {
		world_run(&w, OPERATIONS);
		child = (pid_t)syscall(SYS_fork);
		if (!child) {
			data_verbs(&w);
			if (i == 1)
				destroy_verbs(&w);
			if (i == 2)
				exit(0);
			_exit(0);
		}
		beside(&w, child);
	}
	world_close(&w);
}

#define STORM_THREADS	2

struct storm {
	bool must_stop;
	int running;
};

static void *run_world(void *arg)
{
	struct storm *storm = arg;
	struct world w;

	world_open(&w, false);
	__atomic_fetch_add(&storm->running, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&storm->must_stop, __ATOMIC_RELAXED))
		world_run(&w, 5);
	world_close(&w);
	return NULL;
}

/* Many short children while other threads are in the device.  They are not opening it: no child
 * could open its own if libibverbs' lock was held when it was forked. */
static void case_fork_storm(void)
{
	struct storm storm = { 0 };
	pthread_t thread[STORM_THREADS];
	struct world own;

	for (int i = 0; i < STORM_THREADS; i++)
		if (pthread_create(&thread[i], NULL, run_world, &storm))
			wrong("pthread_create");
	while (__atomic_load_n(&storm.running, __ATOMIC_ACQUIRE) < STORM_THREADS)
		sched_yield();
	for (int i = 0; i < 60; i++) {
		pid_t child = fork();

		if (!child) {
			alarm(30);
			if (i % 8 == 0) {
				world_open(&own, false);
				world_run(&own, 5);
				world_close(&own);
			}
			if (i % 2)
				exit(0);
			_exit(0);
		}
		child_has_ended(child, true);
	}
	__atomic_store_n(&storm.must_stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < STORM_THREADS; i++)
		pthread_join(thread[i], NULL);
}

/* A daemon that opened the device too early; it says so and opens again. */
static void case_daemon(void)
{
	struct world w, own;
	char word = 0;
	int pair[2];

	world_open(&w, true);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		wrong("socketpair: %s", strerror(errno));
	if (fork()) {
		close(pair[1]);
		if (read(pair[0], &word, 1) != 1)
			wrong("the daemon died");
		exit(0);
	}
	use_inherited(&w);
	world_open(&own, false);
	world_run(&own, OPERATIONS);
	world_close(&own);
	if (write(pair[1], "k", 1) != 1)
		wrong("write: %s", strerror(errno));
	exit(0);
}

/* A child that lives on keeps nothing of the fabric alive.  It tells its pid. */
static void case_child_outlives(void)
{
	struct world w;
	pid_t child;

	world_open(&w, true);
	world_run(&w, OPERATIONS);
	child = fork();
	if (!child) {
		close(w.socket);	/* its end tells the other process to go */
		pause();
		_exit(0);
	}
	world_close(&w);
	printf("%d\n", (int)child);
}

const struct test_case fork_cases[] = {
	{ "child-calls", case_child_calls },
	{ "child-opens", case_child_opens },
	{ "fork-exec", case_fork_exec },
	{ "vfork", case_vfork },
	{ "posix-spawn", case_posix_spawn },
	{ "raw-fork", case_raw_fork },
	{ "fork-storm", case_fork_storm },
	{ "daemon", case_daemon },
	{ "child-outlives", case_child_outlives },
	{ 0 },
};
