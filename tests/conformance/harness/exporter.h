/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Another process that has a device, a protection domain and memory, and gives them away: it passes
 * its command descriptor over a socket and does as it is told.
 *
 * Calls assert that it answered, never what.  Threads: one caller.
 */
#ifndef CONFORMANCE_EXPORTER_H
#define CONFORMANCE_EXPORTER_H
#include <stdint.h>
#include <sys/types.h>
#include "pair.h"

enum exporter_op {
	EXPORTER_OPEN,		/* device, domain, a buffer and its region */
	EXPORTER_FD,		/* pass the command descriptor; arg: its number there */
	EXPORTER_FILL, EXPORTER_DIFFERS, EXPORTER_READ, EXPORTER_UNMAP,
	EXPORTER_DEREG, EXPORTER_REREG, EXPORTER_DEALLOC, EXPORTER_SHUT,
	EXPORTER_DM,		/* allocate and register device memory, filled by the seed */
	EXPORTER_DM_READ, EXPORTER_DM_FREE,
	EXPORTER_EXPORT,	/* into a second context, whose descriptor is passed; told: the
				 * handles there.  ENOSYS: the library can't */
	EXPORTER_SHUT_SECOND,
	EXPORTER_TAKE,		/* import from a descriptor that is passed with the call */
	EXPORTER_EXIT,
	EXPORTER_OP_COUNT
};

struct exporter_message {
	enum exporter_op op;
	int err;
	uint64_t arg[4];
	/* Told by OPEN, FD and DM. */
	struct exporter_told {
		uint32_t pd, mr, dm, lkey, rkey;
		uint64_t addr, bytes;
	} told;
	uint8_t room[256];
};

struct exporter {
	pid_t pid;
	int socket;
	struct exporter_told told;
};

/* Before the device is opened here: it forks. */
void exporter_start(struct exporter *x);
/* One call; *@m comes back as the answer.  @fd_in goes with it, or -1; @fd_out gets what came, or
 * -1. */
void exporter_call(struct exporter *x, struct exporter_message *m, int fd_in, int *fd_out);
/* The same without descriptors; what it answers. */
int exporter_do(struct exporter *x, enum exporter_op op, uint64_t a, uint64_t b, uint64_t c);
/* Open there, and have the descriptor. */
int exporter_fd(struct exporter *x);
void exporter_kill(struct exporter *x);
void exporter_stop(struct exporter *x);

/* Two QPs on a domain that was imported, connected with each other; buffers as long as its. */
struct borrowers {
	struct end lender;		/* only a context and the domain */
	struct event_log log;
	struct end a, b;
	struct end_info ia, ib;
};
void borrowers_open(struct borrowers *p, struct ibv_context *context, struct ibv_pd *pd);
void borrowers_close(struct borrowers *p);
#endif
