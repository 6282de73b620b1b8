/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of one thread in one process: 1, 1b, 2 and 3.
 *
 * The reference of the small ones is a toy NIC (toy.h), of the large one memcpy().
 */
#include <string.h>
#include "rows.h"
#include "toy.h"
#include "verbs.h"

enum { DEPTH = 128, BATCH = 32, LARGE = 1 << 20 };

struct subject {
	struct port port;
	struct ibv_qp *qp[2];
	struct address peer;		/* of qp[1] */
	struct request request[BATCH];
};

struct toy {
	struct toy_cq *cq;
	struct toy_queue *queue[2];
	struct toy_memory from, to;
};

/* @remote: offset of the target in the only buffer there is. */
static void subject_open(struct subject *s, enum ibv_wr_opcode opcode, uint32_t bytes,
			 size_t remote)
{
	port_open(&s->port, remote * 2, 1023);
	qp_pair_new(&s->port, DEPTH, s->qp);
	s->peer = qp_address(&s->port, s->qp[1]);
	for (int i = 0; i < BATCH; i++) {
		request_set(&s->request[i], &s->port, opcode, 0, bytes, &s->peer, remote);
		s->request[i].wr.next = i + 1 < BATCH ? &s->request[i + 1].wr : NULL;
	}
}

static void toy_open(struct toy *t, uint32_t bytes, size_t remote)
{
	uint8_t *buf = memory_private(remote * 2);
	uint32_t key = toy_register(buf, remote * 2);

	t->cq = toy_cq_new(1024);
	toy_pair_new(t->cq, DEPTH, t->queue);
	t->from = (struct toy_memory){ (uintptr_t)buf, bytes, key };
	t->to = (struct toy_memory){ (uintptr_t)buf + remote, bytes, key };
}

static void toy_await(struct toy_cq *cq, int count)
{
	struct toy_done done[BATCH];

	while (count) {
		int got = toy_poll(cq, count, done);

		for (int i = 0; i < got; i++)
			if (done[i].status)
				die("bench: toy status %u", done[i].status);
		count -= got;
	}
}

/* --- 1: WRITE 8 B, post and poll --- */

static void subject_write(void *ctx, unsigned count)
{
	struct subject *s = ctx;

	while (count--) {
		post(s->qp[0], &s->request[BATCH - 1]);
		await(s->port.send_cq, 1);
	}
}

static void toy_write(void *ctx, unsigned count)
{
	struct toy *t = ctx;

	while (count--) {
		toy_post(t->queue[0], TOY_WRITE, count, &t->from, t->to.addr, t->to.key);
		toy_ring(t->queue[0]);
		toy_await(t->cq, 1);
	}
}

static void against_toy(enum ibv_wr_opcode opcode, void (*subject)(void *, unsigned),
			void (*reference)(void *, unsigned))
{
	static struct subject s;
	static struct toy t;
	struct side a = { .run = subject, .ctx = &s }, b = { .run = reference, .ctx = &t };

	subject_open(&s, opcode, 8, 4096);
	toy_open(&t, 8, 4096);
	alternate(&a, &b);
}

void row_write_8(void)
{
	against_toy(IBV_WR_RDMA_WRITE, subject_write, toy_write);
}

/* --- 1b: SEND 8 B into a receive, both completions --- */

static void subject_send(void *ctx, unsigned count)
{
	struct subject *s = ctx;

	while (count--) {
		recv_post(s->qp[1], &s->port, 4096, 8);
		post(s->qp[0], &s->request[BATCH - 1]);
		await(s->port.send_cq, 1);
		await(s->port.recv_cq, 1);
	}
}

static void toy_send(void *ctx, unsigned count)
{
	struct toy *t = ctx;

	while (count--) {
		toy_post_recv(t->queue[1], count, &t->to);
		toy_post(t->queue[0], TOY_SEND, count, &t->from, 0, 0);
		toy_ring(t->queue[0]);
		toy_await(t->cq, 2);
	}
}

void row_send_8(void)
{
	against_toy(IBV_WR_SEND, subject_send, toy_send);
}

/* One round of the subject only: bench.py runs something else in turn with it. */
static void alone(enum ibv_wr_opcode opcode, void (*run)(void *, unsigned))
{
	static struct subject s;
	struct side side = { .run = run, .ctx = &s };

	subject_open(&s, opcode, 8, 4096);
	for (int i = 0; i < 500; i++)
		slice(&side);
	tell_round(side.best_ns, 0);
}

void row_write_8_alone(void)
{
	alone(IBV_WR_RDMA_WRITE, subject_write);
}

void row_send_8_alone(void)
{
	alone(IBV_WR_SEND, subject_send);
}

/* --- 2: batches of 32, one doorbell, every one completed --- */

static void subject_batch(void *ctx, unsigned count)
{
	struct subject *s = ctx;

	for (; count >= BATCH; count -= BATCH) {
		post(s->qp[0], &s->request[0]);
		await(s->port.send_cq, BATCH);
	}
}

static void toy_batch(void *ctx, unsigned count)
{
	struct toy *t = ctx;

	for (; count >= BATCH; count -= BATCH) {
		for (unsigned i = 0; i < BATCH; i++)
			toy_post(t->queue[0], TOY_WRITE, i, &t->from, t->to.addr, t->to.key);
		toy_ring(t->queue[0]);
		toy_await(t->cq, BATCH);
	}
}

void row_batch(void)
{
	against_toy(IBV_WR_RDMA_WRITE, subject_batch, toy_batch);
}

/* --- 3: 1 MiB --- */

static void copy_large(void *ctx, unsigned count)
{
	struct subject *s = ctx;

	while (count--) {
		memcpy(s->port.buf + LARGE, s->port.buf, LARGE);
		__asm__ volatile("" ::: "memory");
	}
}

/* Both move the same bytes to the same place. */
void row_write_1m(void)
{
	static struct subject s;
	struct side a = { .run = subject_write, .ctx = &s }, b = { .run = copy_large, .ctx = &s };

	subject_open(&s, IBV_WR_RDMA_WRITE, LARGE, LARGE);
	alternate(&a, &b);
}
