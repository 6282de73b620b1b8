/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC with a third process besides a pair: both others have the pair's domain by its file.
 *
 * The pair is in one process, or in two.  As with pairs, what fails here fails the case.
 */
#ifndef CONFORMANCE_TRIO_H
#define CONFORMANCE_TRIO_H
#include "pair.h"

enum { ROOM = 4096, EVENT_MS = 2000 };

/* An initiator, a target, and the owner of the queue; each of the latter has both, and a queue. */
struct trio {
	struct pair p;
	struct peer far;
	struct end_info ifar;
};

void trio_defaults(struct pair_opts *o);
/* @domain: the file of the third process's; NULL: that of the target. */
void trio_open_in(struct trio *t, enum placement where, const struct pair_opts *o,
		  const char *domain);
void trio_open(struct trio *t, enum placement where);
void trio_close(struct trio *t);
/* The same after the third process was killed. */
void trio_end(struct trio *t);
/* The file of the domain: for cases that end in another way. */
void trio_unlink(void);

/* A receive of the third process, in its buffer at @offset. */
void far_post(struct trio *t, uint64_t wr_id, size_t offset, uint32_t bytes);
/* As pair_work(), to its queue and buffer. */
struct work far_work(struct trio *t, enum ibv_wr_opcode opcode, uint32_t bytes);
void far_await_ok(struct trio *t, uint64_t wr_id, enum ibv_wc_opcode opcode, uint32_t bytes);
void far_quiet(struct trio *t);

/* SIGSTOP; not before all of its threads have stopped. */
void peer_freeze(struct peer *p);
/* SIGKILL, and what peer_stop() does otherwise. */
void peer_kill(struct peer *p);
#endif
