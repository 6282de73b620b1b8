/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tools of a measurement: a clock, touched memory, alternating slices, and the
 * line in which a round is told to bench.py.
 *
 * Used by every file of this folder.  A benchmark has nobody to report an error to, so
 * whatever fails ends the program.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define ROUNDS		7		/* of each row; bench.py takes medians over them */

_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Dies with @what and errno unless @is_good. */
void need(bool is_good, const char *what);

/* Ticks of the cheapest clock there is; ticks_ns() after clock_start(). */
static inline uint64_t ticks(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
#endif
}

void clock_start(void);
double ticks_ns(uint64_t count);

static inline void relax(void)
{
#ifdef __x86_64__
	__builtin_ia32_pause();
#endif
}

void pin(int cpu);
void pin_to_two(void);			/* the calling thread may run on CPU 0 and 1 */

/* Every page is there and written. */
void *memory_private(size_t bytes);
void *memory_shared(size_t bytes);		/* between a parent and its children */

/* --- single-thread rows --- */

/* Something that can be done over and over in one thread. */
struct side {
	void (*run)(void *ctx, unsigned count);	/* @count operations */
	void *ctx;
	unsigned count;			/* operations that fill a slice; found at first */
	double best_ns;			/* of one operation, in the best slice */
};

/* One slice; lowers s->best_ns. */
void slice(struct side *s);
/* Rounds of alternating slices; tells each as a line with the best of both. */
void alternate(struct side *subject, struct side *reference);

/* --- what is told --- */

/* "round NAME=VALUE ..."; numbers are in ns unless the row says otherwise. */
void tell_round(double subject, double reference);
void tell_info(const char *name, double value);	/* beside the rounds */

/* The middle one of @count samples, which are sorted in place. */
uint64_t p50(uint64_t *samples, size_t count);
#endif
