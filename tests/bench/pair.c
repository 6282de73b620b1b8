/* SPDX-License-Identifier: BSD-2-Clause */
/* Two processes on two CPUs; see pair.h. */
#include "pair.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MESSAGE_BYTES = 256, PROBE_COUNT = 5000, LIFE_S = 120 };

/* What each side writes, a line each for the number and for what it announces. */
struct lane {
	_Alignas(64) _Atomic uint32_t number;
	_Alignas(64) uint64_t data;
};

struct pair_shared {
	struct lane lane[2];
	uint8_t message[2][MESSAGE_BYTES];
};

/* --- being two --- */

void pair_run(void (*row)(struct pair *p))
{
	int pipes[2][2], status;
	struct pair p = { .shared = memory_shared(sizeof *p.shared) };
	pid_t pid;

	need(!pipe(pipes[0]) && !pipe(pipes[1]), "pipe");
	pid = fork();
	need(pid >= 0, "fork");
	p.me = pid == 0;
	p.mine = pipes[p.me][0];
	p.other = pipes[!p.me][1];
	close(pipes[p.me][1]);
	close(pipes[!p.me][0]);
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(LIFE_S);			/* a subject that hangs ends here */
	pin(p.me);
	row(&p);
	if (!pid)
		_exit(0);
	need(waitpid(pid, &status, 0) == pid, "waitpid");
	if (status)
		die("bench: the other process ended with status 0x%x", status);
}

void meet(struct pair *p)
{
	char token;

	need(write(p->other, "m", 1) == 1, "write");
	if (read(p->mine, &token, 1) != 1)
		die("bench: the other process is gone");
}

void exchange(struct pair *p, const void *mine, void *theirs, size_t bytes)
{
	need(bytes <= MESSAGE_BYTES, "exchange");
	memcpy(p->shared->message[p->me], mine, bytes);
	meet(p);
	memcpy(theirs, p->shared->message[!p->me], bytes);
	meet(p);
}

/* --- ping-pong --- */

void pongs(struct pair *p, const struct pong *pong, unsigned count, uint64_t *samples)
{
	uint64_t before = ticks();

	for (unsigned i = 0; i < count; i++) {
		uint64_t now;

		if (is_first(p))
			pong->send(pong->ctx);
		pong->wait(pong->ctx);
		if (!is_first(p))
			pong->send(pong->ctx);
		now = ticks();
		samples[i] = now - before;
		before = now;
	}
}

#define AFFORDABLE_NS	500e6
enum { TRIAL_COUNT = 50 };

unsigned samples_affordable(double ns_each, unsigned count_max)
{
	double count = AFFORDABLE_NS / ns_each;

	return count < TRIAL_COUNT ? TRIAL_COUNT : count < count_max ? (unsigned)count : count_max;
}

/* The first process knows how long a round trip takes, and tells the other how many to do. */
static unsigned count_agree(struct pair *p, uint64_t *samples, unsigned count_max)
{
	unsigned counts[2];

	counts[0] = samples_affordable(ticks_ns(p50(samples, TRIAL_COUNT)), count_max);
	exchange(p, &counts[0], &counts[1], sizeof counts[0]);
	return counts[p->me];		/* the first one's */
}

double pong_ns(struct pair *p, const struct pong *pong, unsigned count_max)
{
	static uint64_t samples[SAMPLES_MAX];
	unsigned count;

	need(count_max <= SAMPLES_MAX, "pong_ns");
	meet(p);
	pongs(p, pong, TRIAL_COUNT, samples);
	count = count_agree(p, samples, count_max);
	pongs(p, pong, count / 10, samples);
	pongs(p, pong, count, samples);
	meet(p);
	return ticks_ns(p50(samples, count)) / 2;
}

/* --- the probe --- */

struct probe {
	struct lane *mine, *theirs;
	uint32_t sent, seen;
};

static void probe_send(void *ctx)
{
	struct probe *b = ctx;

	b->mine->data = b->sent;
	atomic_store_explicit(&b->mine->number, ++b->sent, memory_order_release);
}

static void probe_wait(void *ctx)
{
	struct probe *b = ctx;

	b->seen++;
	while (atomic_load_explicit(&b->theirs->number, memory_order_acquire) != b->seen)
		relax();
	if (b->theirs->data != b->seen - 1)
		die("bench: the probe's data is wrong");
}

double probe_ns(struct pair *p)
{
	struct lane *lane = p->shared->lane;
	struct probe probe = { &lane[p->me], &lane[!p->me], 0, 0 };
	struct pong pong = { probe_send, probe_wait, &probe };

	atomic_store(&lane[p->me].number, 0);
	return pong_ns(p, &pong, PROBE_COUNT);
}

/* --- rounds --- */

void pair_rounds(struct pair *p, measure_fn *subject, measure_fn *reference, void *ctx)
{
	for (int round = 0; round < ROUNDS; round++) {
		double before = probe_ns(p);
		double told = subject(p, ctx);
		double other = reference ? reference(p, ctx) : 0;
		double after = probe_ns(p);

		if (!is_first(p))
			continue;
		printf("round subject=%.6g reference=%.6g probe=%.6g probe_after=%.6g\n", told,
		       reference ? other : (before + after) / 2, before, after);
		fflush(stdout);
	}
}
