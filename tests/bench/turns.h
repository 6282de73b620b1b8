/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What can't be measured in one process, where something exists or does not: two processes take
 * turns on one CPU, slice by slice.
 */
#ifndef BENCH_TURNS_H
#define BENCH_TURNS_H

/* Opens the one thing of the process, with so many of what the row is about. */
typedef void turns_open_fn(unsigned many);
typedef void turns_run_fn(void *ctx, unsigned count);

struct seat {
	turns_open_fn *open;
	unsigned many;
	turns_run_fn *run;
	const char *fabric;		/* of its own, or NULL */
};

/* The first one is the subject.  Tells the rounds. */
void take_turns(const struct seat seats[2]);
#endif
