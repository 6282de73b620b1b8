/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cases of `disorder`: a program that closes descriptors it never opened, ours among them.
 *
 * The numbers are then taken by the program's own sockets.  The device may be gone, but nothing
 * may crash or hang, and nobody may read from, write to or close what is not his.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "disorder.h"

#define FDS_MAX		256

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void by_close_range(void)
{
	if (close_range(3, ~0u, 0))
		wrong("close_range: %s", strerror(errno));
}

static void by_raw_close_range(void)
{
	if (syscall(SYS_close_range, 3, ~0u, 0))
		wrong("close_range: %s", strerror(errno));
}

static void by_closefrom(void)
{
	closefrom(3);
}

static void by_close_loop(void)
{
	for (int fd = 3; fd < FDS_MAX; fd++)
		close(fd);
}

static void by_raw_close_loop(void)
{
	for (int fd = 3; fd < FDS_MAX; fd++)
		syscall(SYS_close, fd);
}

static void by_dup2(void)
{
	for (int fd = 3; fd < FDS_MAX; fd++)
		if (is_open(fd) && dup2(2, fd) != fd)
			wrong("dup2: %s", strerror(errno));
	for (int fd = 3; fd < FDS_MAX; fd++)
		if (is_open(fd))
			syscall(SYS_close, fd);
}

/* The program's own descriptors, on every number below FDS_MAX. */
struct sentinels {
	int twin[FDS_MAX];		/* the other end of the socket with this number */
};

static void sentinels_open(struct sentinels *s)
{
	int pair[2];

	memset(s, 0xff, sizeof *s);
	do {
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair))
			wrong("socketpair: %s", strerror(errno));
		s->twin[pair[0]] = pair[1];
		s->twin[pair[1]] = pair[0];
	} while (pair[1] < FDS_MAX - 2);
}

/* libibverbs itself closes these by number; what is there then is not our doing. */
static void sentinel_give(struct sentinels *s, int fd)
{
	if (fd >= 0 && fd < FDS_MAX && s->twin[fd] >= 0) {
		s->twin[s->twin[fd]] = -1;
		s->twin[fd] = -1;
	}
}

static void sentinels_check(const struct sentinels *s, const char *when)
{
	char bytes[64];

	for (int fd = 3; fd < FDS_MAX; fd++) {
		if (s->twin[fd] < 0)
			continue;
		if (!is_open(fd))
			wrong("%s: somebody closed descriptor %d", when, fd);
		if (recv(fd, bytes, sizeof bytes, MSG_PEEK) >= 0 || errno != EAGAIN)
			wrong("%s: somebody wrote to the twin of descriptor %d", when, fd);
	}
}

/* Every verb that may notice, without a look at what it answers. */
static void try_verbs(struct world *w)
{
	struct ibv_port_attr port;
	struct ibv_mr *mr;
	struct ibv_pd *pd;

	for (int i = 0; i < 2000; i++) {
		if (i % 50 == 0)
			ibv_req_notify_cq(w->node.cq, 0);
		if (i % 10)
			node_poll(&w->node);
		else
			world_turn(w);
	}
	ibv_query_port(w->node.context, 1, &port);
	mr = ibv_reg_mr(w->node.pd, w->link[0].memory, sizeof *w->link[0].memory, 0);
	if (mr)
		ibv_dereg_mr(mr);
	pd = ibv_alloc_pd(w->node.context);
	if (pd)
		ibv_dealloc_pd(pd);
	ibv_create_comp_channel(w->node.context);
}

static void try_closing(struct world *w)
{
	for (unsigned i = 0; i < 3; i++)
		ibv_destroy_qp(w->link[i].qp);
	ibv_destroy_cq(w->node.cq);
	ibv_close_device(w->node.context);
}

static void case_closed_by(void (*close_all)(void))
{
	static struct sentinels sentinels;
	struct world w, again;

	world_open(&w, true);
	world_run(&w, 50);
	ibv_req_notify_cq(w.node.cq, 0);
	close_all();
	sentinels_open(&sentinels);
	sentinel_give(&sentinels, w.node.context->cmd_fd);
	sentinel_give(&sentinels, w.node.context->async_fd);
	try_verbs(&w);
	sentinels_check(&sentinels, "using the device");
	try_closing(&w);
	sentinels_check(&sentinels, "closing the device");
	world_open(&again, false);
	world_run(&again, 50);
	world_close(&again);
	sentinels_check(&sentinels, "opening it again");
}

#define CLOSED(name) static void case_##name(void) { case_closed_by(by_##name); }
CLOSED(close_range)
CLOSED(raw_close_range)
CLOSED(closefrom)
CLOSED(close_loop)
CLOSED(raw_close_loop)
CLOSED(dup2)

/* A daemon closes everything and has done with RDMA; its peers see it leave. */
static void case_closed_for_good(void)
{
	struct world w;

	world_open(&w, false);
	world_run(&w, 50);
	close_range(3, ~0u, 0);
	puts("closed");
	fflush(stdout);
	pause();
}

/* As UCX does it, whose memory hooks call the kernel past every library: doorbell pages, clocks. */
static void case_raw_mmap(void)
{
	static const long offsets[] = { 0x500000, 0x700000, 0x901000, 0x902000, 0xfff000 };
	unsigned mapped = 0;
	struct world w;

	world_open(&w, false);
	for (unsigned i = 0; i < sizeof offsets / sizeof *offsets; i++) {
		int fd = w.node.context->cmd_fd;
		volatile char *a = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, offsets[i]);
		volatile char *b = (void *)syscall(SYS_mmap, NULL, 4096, PROT_READ, MAP_SHARED, fd,
						   offsets[i]);

		if ((a == MAP_FAILED) != (b == MAP_FAILED))
			wrong("offset %lx is not the same both ways", offsets[i]);
		if (b == MAP_FAILED)
			continue;
		(void)*b;		/* a page that is not the device's faults */
		mapped++;
	}
	if (!mapped)
		wrong("nothing could be mapped");
	world_run(&w, 50);
	world_close(&w);
}

const struct test_case descriptor_cases[] = {
	{ "close-range", case_close_range },
	{ "raw-close-range", case_raw_close_range },
	{ "closefrom", case_closefrom },
	{ "close-loop", case_close_loop },
	{ "raw-close-loop", case_raw_close_loop },
	{ "dup2", case_dup2 },
	{ "closed-for-good", case_closed_for_good },
	{ "raw-mmap", case_raw_mmap },
	{ 0 },
};
