/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of two processes that know when to look: 3b, 4, 4b and 4c.
 *
 * The target of 3b and 4c sleeps in read(), as the target of process_vm_readv() may.
 */
#include <sys/prctl.h>
#include <sys/uio.h>
#include "link.h"
#include "rows.h"

enum { LARGE = 1 << 20, TARGET_AT = 4096, PONGS = 5000, SINGLES = 5000, GROUPS = 60, WINDOW = 4 };

static struct link peer_link;

/* --- 4: SEND 8 B, both poll --- */

static double send_ns(struct pair *p, void *ctx)
{
	struct pong pong = { link_send, link_wait_polling, ctx };

	return pong_ns(p, &pong, PONGS);
}

static void pair_send(struct pair *p)
{
	link_open(p, &peer_link, 2 * TARGET_AT);
	link_messages(p, &peer_link);
	pair_rounds(p, send_ns, NULL, &peer_link);
}

void row_pair_send(void)
{
	pair_run(pair_send);
}

/* --- 4b: WRITE 8 B; the target looks at its memory, and at nothing else --- */

struct writer {
	struct link *link;
	volatile uint64_t *inbox;	/* where the peer writes */
	uint64_t seen;
};

static void write_one(void *ctx)
{
	struct writer *w = ctx;

	*(uint64_t *)w->link->port.buf = ++w->link->sent;
	post(w->link->qp, &w->link->request);
	await(w->link->port.send_cq, 1);
}

static void write_wait(void *ctx)
{
	struct writer *w = ctx;

	w->seen++;
	while (*w->inbox != w->seen)
		relax();
}

static double write_ns(struct pair *p, void *ctx)
{
	struct pong pong = { write_one, write_wait, ctx };

	return pong_ns(p, &pong, PONGS);
}

static void pair_write(struct pair *p)
{
	struct link *l = &peer_link;
	struct writer writer = { .link = l };

	link_open(p, l, 2 * TARGET_AT);
	request_set(&l->request, &l->port, IBV_WR_RDMA_WRITE, 0, 8, &l->peer, TARGET_AT);
	l->request.wr.send_flags |= IBV_SEND_INLINE;
	writer.inbox = (volatile uint64_t *)(l->port.buf + TARGET_AT);
	*writer.inbox = 0;
	meet(p);
	pair_rounds(p, write_ns, NULL, &writer);
}

void row_pair_write(void)
{
	pair_run(pair_write);
}

/* --- 4c and 3b: the first process works, the other one sleeps --- */

static void repeat(void (*once)(struct link *l), unsigned count, uint64_t *samples)
{
	for (unsigned i = 0; i < count; i++) {
		uint64_t start = ticks();

		once(&peer_link);
		samples[i] = ticks() - start;
	}
}

/* p50 of up to @count_max times @once in the first process. */
static double alone_ns(struct pair *p, void (*once)(struct link *l), unsigned count_max)
{
	static uint64_t samples[SAMPLES_MAX];
	unsigned count = 20;

	if (is_first(p)) {
		repeat(once, count, samples);
		count = samples_affordable(ticks_ns(p50(samples, count)), count_max);
		repeat(once, count, samples);
	}
	meet(p);
	return ticks_ns(p50(samples, count));
}

static void verb_once(struct link *l)
{
	post(l->qp, &l->request);
	await(l->port.send_cq, 1);
}

static void readv_once(struct link *l)
{
	struct iovec to = { l->port.buf, 8 };
	struct iovec from = { (void *)(uintptr_t)(l->peer.addr + TARGET_AT), 8 };

	need(process_vm_readv(l->peer_pid, &to, 1, &from, 1, 0) == 8, "process_vm_readv");
}

static double verb_ns(struct pair *p, void *ctx)
{
	(void)ctx;
	return alone_ns(p, verb_once, SINGLES);
}

static double readv_ns(struct pair *p, void *ctx)
{
	(void)ctx;
	return alone_ns(p, readv_once, SINGLES);
}

/* Where only a parent may look into a process, this lets the reference do so both ways. */
static void look_allow(struct pair *p)
{
	prctl(PR_SET_PTRACER, (unsigned long)peer_link.peer_pid, 0, 0, 0);
	meet(p);
}

static void pair_fetch(struct pair *p, enum ibv_wr_opcode opcode)
{
	struct link *l = &peer_link;

	link_open(p, l, 2 * TARGET_AT);
	look_allow(p);
	request_set(&l->request, &l->port, opcode, 0, 8, &l->peer, TARGET_AT);
	pair_rounds(p, verb_ns, readv_ns, NULL);
}

static void pair_read(struct pair *p)
{
	pair_fetch(p, IBV_WR_RDMA_READ);
}

static void pair_fetch_add(struct pair *p)
{
	pair_fetch(p, IBV_WR_ATOMIC_FETCH_AND_ADD);
}

void row_pair_read(void)
{
	pair_run(pair_read);
}

void row_pair_fetch_add(void)
{
	pair_run(pair_fetch_add);
}

/* A group of WINDOW messages that are under way at the same time, timed together. */
static void write_group(struct link *l)
{
	for (int i = 0; i < WINDOW; i++)
		post(l->qp, &l->request);
	await(l->port.send_cq, WINDOW);
}

static void writev_group(struct link *l)
{
	struct iovec from = { l->port.buf, LARGE };
	struct iovec to = { (void *)(uintptr_t)(l->peer.addr + LARGE), LARGE };

	for (int i = 0; i < WINDOW; i++)
		need(process_vm_writev(l->peer_pid, &from, 1, &to, 1, 0) == LARGE,
		     "process_vm_writev");
}

static double group_ns(struct pair *p, void *ctx)
{
	(void)ctx;
	return alone_ns(p, write_group, GROUPS) / WINDOW;
}

static double writev_ns(struct pair *p, void *ctx)
{
	(void)ctx;
	return alone_ns(p, writev_group, GROUPS) / WINDOW;
}

static void pair_write_1m(struct pair *p)
{
	struct link *l = &peer_link;

	link_open(p, l, 2 * LARGE);
	look_allow(p);
	request_set(&l->request, &l->port, IBV_WR_RDMA_WRITE, 0, LARGE, &l->peer, LARGE);
	pair_rounds(p, group_ns, writev_ns, NULL);
}

void row_pair_write_1m(void)
{
	pair_run(pair_write_1m);
}
