/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of many queue pairs: 6, 6c and 6d.
 *
 * In those but the last two processes take turns: one has one pair of queue pairs, the other has
 * them all.
 */
#include <stdlib.h>
#include "rows.h"
#include "turns.h"
#include "verbs.h"

enum { QPS = 16384, DEPTH = 16, SLOT_BYTES = 64 };

struct crowd {
	struct port port;
	struct ibv_qp **qp;
	struct request *request;	/* of qp[i], to the slot of its peer */
	unsigned count, at;
	uint64_t seed;
	unsigned (*next)(struct crowd *c);
};

static struct crowd crowd;

static unsigned next_in_turn(struct crowd *c)
{
	c->at = c->at + 1 < c->count ? c->at + 1 : 0;
	return c->at;
}

static unsigned next_random(struct crowd *c)
{
	c->seed ^= c->seed << 13;
	c->seed ^= c->seed >> 7;
	c->seed ^= c->seed << 17;
	return (unsigned)(c->seed % c->count);
}

static unsigned next_same(struct crowd *c)
{
	(void)c;
	return 0;
}

static void crowd_open(struct crowd *c, unsigned count, unsigned (*next)(struct crowd *))
{
	*c = (struct crowd){ .count = count, .seed = 88172645463325252u, .next = next };
	port_open(&c->port, (size_t)count * SLOT_BYTES, 1023);
	c->qp = calloc(count, sizeof *c->qp);
	c->request = calloc(count, sizeof *c->request);
	need(c->qp && c->request, "calloc");
	for (unsigned i = 0; i < count; i += 2)
		qp_pair_new(&c->port, DEPTH, &c->qp[i]);
	for (unsigned i = 0; i < count; i++) {
		struct address peer = qp_address(&c->port, c->qp[i ^ 1]);

		request_set(&c->request[i], &c->port, IBV_WR_RDMA_WRITE, (size_t)i * SLOT_BYTES, 8,
			    &peer, (size_t)(i ^ 1) * SLOT_BYTES);
	}
}

static void crowd_write(void *ctx, unsigned count)
{
	struct crowd *c = &crowd;

	(void)ctx;
	while (count--) {
		unsigned i = c->next(c);

		post(c->qp[i], &c->request[i]);
		await(c->port.send_cq, 1);
	}
}

/* --- 6, 6b, 6c --- */

static void crowd_sit(unsigned qps, unsigned (*next)(struct crowd *))
{
	crowd_open(&crowd, qps, next);
	for (unsigned i = 0; i < qps; i++) {	/* each one once: touched */
		post(crowd.qp[i], &crowd.request[i]);
		await(crowd.port.send_cq, 1);
	}
}

static void open_in_turn(unsigned qps)
{
	crowd_sit(qps, next_in_turn);
}

static void open_random(unsigned qps)
{
	crowd_sit(qps, next_random);
}

/* Uses its first queue pair only. */
static void open_idle(unsigned qps)
{
	crowd_sit(qps, next_same);
}

static void against_one(turns_open_fn *open)
{
	const struct seat seats[2] = {
		{ open, QPS, crowd_write, NULL }, { open_idle, 2, crowd_write, NULL },
	};

	take_turns(seats);
}

void row_round_robin(void)
{
	against_one(open_in_turn);
}

void row_random(void)
{
	against_one(open_random);
}

void row_idle(void)
{
	against_one(open_idle);
}

/* --- 6d --- */

/* Create and connect one more, to itself as UCX's endpoint does; then it goes away again. */
static uint64_t connect_one(struct crowd *c)
{
	uint64_t start = ticks(), end;
	struct ibv_qp *qp = qp_new(&c->port, DEPTH);
	struct address self = qp_address(&c->port, qp);

	qp_connect(qp, &self);
	end = ticks();
	ibv_destroy_qp(qp);
	return end - start;
}

void row_connect(void)
{
	crowd_open(&crowd, QPS, next_same);
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t sample[101];

		for (int i = 0; i < 101; i++)
			sample[i] = connect_one(&crowd);
		tell_round(ticks_ns(p50(sample, 101)), 0);
	}
}
