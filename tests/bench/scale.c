/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of many queue pairs: 6, 6c and 6d.
 *
 * "Alone" and "one of 16,384" can't be measured in one process, where the others exist or do
 * not.  So two processes take turns on one CPU, slice by slice: one has one pair of
 * queue pairs, the other has them all.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "rows.h"
#include "verbs.h"

enum { QPS = 16384, DEPTH = 16, TURNS = 400, SLOT_BYTES = 64 };

struct crowd {
	struct port port;
	struct ibv_qp **qp;
	struct request *request;	/* of qp[i], to the slot of its peer */
	unsigned count, at;
	uint64_t seed;
	unsigned (*next)(struct crowd *c);
};

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
	struct crowd *c = ctx;

	while (count--) {
		unsigned i = c->next(c);

		post(c->qp[i], &c->request[i]);
		await(c->port.send_cq, 1);
	}
}

/* --- taking turns --- */

struct seat {
	int mine, other;		/* read a turn here, give it there */
	double *best_ns;		/* shared with the parent */
};

static void turn_take(struct seat *s)
{
	char token;

	if (read(s->mine, &token, 1) != 1)
		exit(1);		/* the other one died and has said why */
}

/* When this fails, the other one has ended, which is right after its last turn. */
static void turn_give(struct seat *s)
{
	if (write(s->other, "t", 1) != 1)
		return;
}

/* One of the two processes. */
static void sit(struct seat *s, unsigned qps, unsigned (*next)(struct crowd *))
{
	static struct crowd crowd;
	struct side side = { .run = crowd_write, .ctx = &crowd };

	crowd_open(&crowd, qps, next);
	for (unsigned i = 0; i < qps; i++) {	/* each one once: touched */
		post(crowd.qp[i], &crowd.request[i]);
		await(crowd.port.send_cq, 1);
	}
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < TURNS; i++) {
			turn_take(s);
			slice(&side);
			turn_give(s);
		}
		s->best_ns[round] = side.best_ns;
		side.best_ns = 1e18;
	}
}

static pid_t seat_fork(struct seat *s, int unused[2], unsigned qps,
		       unsigned (*next)(struct crowd *))
{
	pid_t pid = fork();

	need(pid >= 0, "fork");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(unused[0]);
	close(unused[1]);
	pin(0);
	sit(s, qps, next);
	_exit(0);
}

static void take_turns(unsigned (*next)(struct crowd *))
{
	int pipes[2][2];
	double *best_ns = memory_shared(2 * ROUNDS * sizeof *best_ns);
	struct seat seats[2];
	pid_t pid[2];
	int status;

	need(!pipe(pipes[0]) && !pipe(pipes[1]), "pipe");
	signal(SIGPIPE, SIG_IGN);
	for (int i = 0; i < 2; i++)
		seats[i] = (struct seat){ pipes[i][0], pipes[!i][1], best_ns + i * ROUNDS };
	for (int i = 0; i < 2; i++) {
		int none[2] = { pipes[i][1], pipes[!i][0] };	/* the ends that it does not use */

		pid[i] = i ? seat_fork(&seats[i], none, 2, next_same) :
			 seat_fork(&seats[i], none, QPS, next);
	}
	turn_give(&seats[1]);		/* the crowd begins */
	for (int i = 0; i < 4; i++)
		close(pipes[i / 2][i % 2]);
	for (int i = 0; i < 2; i++) {
		need(waitpid(pid[i], &status, 0) == pid[i], "waitpid");
		if (status)
			die("bench: a process of the pair ended with status 0x%x", status);
	}
	for (int i = 0; i < ROUNDS; i++)
		tell_round(best_ns[i], best_ns[ROUNDS + i]);
}

void row_round_robin(void)
{
	take_turns(next_in_turn);
}

void row_random(void)
{
	take_turns(next_random);
}

/* Both use their first queue pair only. */
void row_idle(void)
{
	take_turns(next_same);
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
	static struct crowd crowd;

	crowd_open(&crowd, QPS, next_same);
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t sample[101];

		for (int i = 0; i < 101; i++)
			sample[i] = connect_one(&crowd);
		tell_round(ticks_ns(p50(sample, 101)), 0);
	}
}
