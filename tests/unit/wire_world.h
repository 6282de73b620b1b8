/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions of one fabric for tests of emu/wire: up, down, a packet, and what is left behind.
 * Each case is a process of its own and has a fabric of its own.
 */
#ifndef TESTS_UNIT_WIRE_WORLD_H
#define TESTS_UNIT_WIRE_WORLD_H
#include <criterion/criterion.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "emu/fabric/fabric.h"
#include "emu/mem/mem.h"
#include "emu/wire/ring.h"
#include "emu/wire/wire.h"

#define PAYLOAD_MAX	RING_PAYLOAD_MAX
#define BLOCK_BITS	10

static const uint8_t gid[1][16] = { { 0xfe, 0x80, [15] = 1 } };
static const uint8_t other_gid[16] = { 0xfe, 0x80, [15] = 2 };

/* One function: a member and its wire. */
struct node {
	struct fabric *fabric;
	struct wire *wire;
	uint32_t qpn;
};

static char name[64], dir[256];
static uint8_t payload[PAYLOAD_MAX];	/* byte i is i % 251, so that a shift shows */
static uint8_t *unmapped;		/* right behind a page that is there */

static inline void start(void)
{
	long page = sysconf(_SC_PAGESIZE);

	cr_assert_eq(mem_guard_init(), 0);
	snprintf(name, sizeof name, "unit-wire-%d", (int)getpid());
	for (unsigned i = 0; i < PAYLOAD_MAX; i++)
		payload[i] = (uint8_t)(i % 251);
	unmapped = mmap(NULL, (size_t)page * 2, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert(unmapped != MAP_FAILED);
	munmap(unmapped + page, (size_t)page);
	unmapped += page;
}

/* A child that does not outlive a case that failed or hung. */
static inline pid_t fork_child(void)
{
	pid_t pid = fork();

	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static inline int node_try(struct node *n)
{
	struct fabric_config config = { name, gid, 1 };

	if (fabric_join(&config, &n->fabric) || wire_shm_open(n->fabric, &n->wire))
		return -1;
	n->qpn = (uint32_t)fabric_lease(n->fabric, FABRIC_QPN) << BLOCK_BITS | 7;
	snprintf(dir, sizeof dir, "%s", fabric_dir(n->fabric));
	return 0;
}

static inline struct node node_up(void)
{
	struct node n;

	cr_assert_eq(node_try(&n), 0);
	return n;
}

static inline void node_down(struct node *n)
{
	n->wire->ops->close(n->wire);
	fabric_leave(n->fabric);
}

/* -1: the directory is not there. */
static inline int file_count(void)
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

/* Rings that this process has mapped. */
static inline int map_count(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	int count = 0;

	while (fgets(line, sizeof line, f))
		count += strstr(line, name) && strstr(line, "-ring-");
	fclose(f);
	return count;
}

static inline int fd_count(void)
{
	DIR *d = opendir("/proc/self/fd");
	int count = 0;

	while (readdir(d))
		count++;
	closedir(d);
	return count;
}

static struct iovec span;

static inline struct ib_packet packet_to(uint32_t qpn, uint32_t psn, uint32_t bytes)
{
	struct ib_packet p = {
		.opcode = RC_SEND_ONLY, .pkey = 0xffff, .mtu_bytes = 4096, .packet_count = 1,
		.psn = psn, .dest_qpn = qpn, .payload_bytes = bytes,
	};

	span = (struct iovec){ payload, bytes };
	p.span = &span;
	p.span_count = bytes ? 1 : 0;
	memcpy(p.sgid, gid[0], 16);
	memcpy(p.dgid, gid[0], 16);
	return p;
}

static inline enum wire_sent send_to(struct node *n, uint32_t qpn, uint32_t psn, uint32_t bytes)
{
	struct ib_packet p = packet_to(qpn, psn, bytes);

	return n->wire->ops->send(n->wire, &p);
}

/* The next packet's PSN, its payload checked; -1: none. */
static inline int take(struct node *n)
{
	struct ib_packet in;

	if (!n->wire->ops->receive(n->wire, &in))
		return -1;
	cr_assert_leq(in.payload_bytes, PAYLOAD_MAX);
	if (in.payload_bytes)
		cr_assert_eq(memcmp(in.span->iov_base, payload, in.payload_bytes), 0);
	n->wire->ops->release(n->wire);
	return (int)in.psn;
}
#endif
