/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the cases of the program `disorder` share: a small world with checked traffic in it.
 *
 * A world has a device, two links of this process to each other, and, if wanted, a link to
 * another process that is started before the device is opened and has its own device.
 * A case does something disorderly to a world and then asks whether traffic still goes on.
 */
#ifndef PROGRAMS_TRAFFIC_DISORDER_H
#define PROGRAMS_TRAFFIC_DISORDER_H
#include <sys/types.h>
#include "link.h"

struct world {
	struct node node;
	struct link link[3];		/* to [1], to [0], to the other process */
	pid_t remote;			/* 0: no other process */
	int socket;
};

/* 0 or the errno of the verb that failed, which is told on stderr. */
int world_try(struct world *w, bool has_remote);
void world_open(struct world *w, bool has_remote);	/* must work */
/* Verify so many more operations on each link; ends the process if they don't come. */
void world_run(struct world *w, unsigned operations);
/* One turn of the same, which may fail: a world that has lost its device. */
void world_turn(struct world *w);
void world_close(struct world *w);
/* End the other process without a word to it. */
void world_drop_remote(struct world *w);

struct test_case {
	const char *name;
	void (*run)(void);
};
/* Each ends with a row of zeros. */
extern const struct test_case fork_cases[], descriptor_cases[], signal_cases[], thread_cases[],
	limit_cases[], event_cases[];

/* Run this program again as case @name; what exec() gets. */
void exec_self(const char *name) __attribute__((noreturn));
/* Wait for a child, which must end with 0; returns false if it still runs and @may_wait is not
 * set. */
bool child_has_ended(pid_t child, bool may_wait);
#endif
