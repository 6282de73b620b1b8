/* SPDX-License-Identifier: BSD-2-Clause */
/* The tools of a measurement; see bench.h. */
#include "bench.h"
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

void need(bool is_good, const char *what)
{
	if (!is_good)
		die("bench: %s: %s", what, strerror(errno));
}

/* --- clock --- */

static double ns_a_tick;

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

void clock_start(void)
{
	double start_ns = now_ns(), end_ns;
	uint64_t start = ticks(), end;

	do {
		end_ns = now_ns();
		end = ticks();
	} while (end_ns - start_ns < 30e6);
	ns_a_tick = (end_ns - start_ns) / (double)(end - start);
}

double ticks_ns(uint64_t count)
{
	return (double)count * ns_a_tick;
}

static void pin_range(int from, int to)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int cpu = from; cpu <= to; cpu++)
		CPU_SET(cpu, &set);
	need(!sched_setaffinity(0, sizeof set, &set), "sched_setaffinity");
}

void pin(int cpu)
{
	pin_range(cpu, cpu);
}

void pin_to_two(void)
{
	pin_range(0, 1);
}

/* --- memory --- */

static void *memory(size_t bytes, int flags)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	need(at != MAP_FAILED, "mmap");
	memset(at, 1, bytes);
	return at;
}

void *memory_private(size_t bytes)
{
	return memory(bytes, MAP_PRIVATE);
}

void *memory_shared(size_t bytes)
{
	void *at = memory(bytes, MAP_SHARED);

	memset(at, 0, bytes);
	return at;
}

/* --- slices --- */

enum { SLICES = 250 };			/* of each side in a round */
#define SLICE_NS	150e3		/* aimed at; the rule is no more than 0.3 ms */

static double timed_ns(struct side *s)
{
	uint64_t start = ticks();

	s->run(s->ctx, s->count);
	return ticks_ns(ticks() - start);
}

/* How many operations fill a slice.  One that was interrupted looks too long: several tries. */
static void slice_fit(struct side *s)
{
	double best_ns = 1e18;

	for (s->count = 1; s->count < 1u << 20; s->count *= 2) {
		best_ns = 1e18;
		for (int i = 0; i < 5; i++) {
			double ns = timed_ns(s);

			best_ns = ns < best_ns ? ns : best_ns;
		}
		if (best_ns > SLICE_NS / 4)
			break;
	}
	s->count = (unsigned)(s->count * SLICE_NS / best_ns);
	s->count += !s->count;
}

void slice(struct side *s)
{
	double ns;

	if (!s->count) {
		slice_fit(s);
		s->best_ns = 1e18;
	}
	ns = timed_ns(s) / s->count;
	s->best_ns = ns < s->best_ns ? ns : s->best_ns;
}

void alternate(struct side *subject, struct side *reference)
{
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < SLICES; i++) {
			slice(subject);
			slice(reference);
		}
		tell_round(subject->best_ns, reference->best_ns);
		subject->best_ns = reference->best_ns = 1e18;
	}
}

/* --- words --- */

void tell_round(double subject, double reference)
{
	printf("round subject=%.6g reference=%.6g\n", subject, reference);
	fflush(stdout);
}

void tell_info(const char *name, double value)
{
	printf("info %s=%.6g\n", name, value);
	fflush(stdout);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t p50(uint64_t *samples, size_t count)
{
	qsort(samples, count, sizeof *samples, compare);
	return samples[count / 2];
}
