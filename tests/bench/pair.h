/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes on two CPUs, and the core-to-core probe between them.
 *
 * Both run the same functions; what is to be done once is asked of is_first().  Neither has
 * opened a device before.  Rounds go back to back: probe, subject, reference, probe;
 * bench.py drops a round whose probes differ too much.
 */
#ifndef BENCH_PAIR_H
#define BENCH_PAIR_H
#include <stdatomic.h>
#include "bench.h"

struct pair_shared;			/* the memory that both see */

struct pair {
	int me;				/* 0 or 1; also the CPU */
	int mine, other;		/* pipes of meet() */
	struct pair_shared *shared;
};

/* Forks; runs @row in both; returns in the first one when both are done. */
void pair_run(void (*row)(struct pair *p));

static inline bool is_first(const struct pair *p)
{
	return p->me == 0;
}

/* Both wait here until both are here, without using a CPU. */
void meet(struct pair *p);
/* Gives @bytes of @mine to the other one and takes its own; both call it. */
void exchange(struct pair *p, const void *mine, void *theirs, size_t bytes);

/* One half of a ping-pong: send a message, or wait for one.  Called by both sides in turn. */
struct pong {
	void (*send)(void *ctx);
	void (*wait)(void *ctx);
	void *ctx;
};

/* @count round trips, timed in the first process. */
void pongs(struct pair *p, const struct pong *pong, unsigned count, uint64_t *samples);

enum { SAMPLES_MAX = 40000 };

/* How many of what takes @ns_each shall be done, at most @count_max, to end in half a second. */
unsigned samples_affordable(double ns_each, unsigned count_max);

/* Half a round trip in ns, p50 of up to @count_max; valid in the first process. */
double pong_ns(struct pair *p, const struct pong *pong, unsigned count_max);

/* An 8-byte message through shared memory: what one CPU needs to tell another something. */
double probe_ns(struct pair *p);

/* What is measured once a round; ns in the first process, ignored in the other. */
typedef double measure_fn(struct pair *p, void *ctx);

/* ROUNDS rounds.  @reference NULL: the probe is the reference. */
void pair_rounds(struct pair *p, measure_fn *subject, measure_fn *reference, void *ctx);
#endif
