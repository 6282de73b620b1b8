/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection between the two processes of a pair, and messages over it.
 *
 * Used by remote.c and waiting.c.  As users measure it: messages of a ping-pong are inline, and
 * receives are posted ahead.
 */
#ifndef BENCH_LINK_H
#define BENCH_LINK_H
#include <sys/types.h>
#include "pair.h"
#include "verbs.h"

/* Signalled now and then, as a program must that wants its send queue back. */
enum { LINK_DEPTH = 64, LINK_SIGNAL_EVERY = 32 };

struct link {
	struct port port;
	struct ibv_qp *qp;
	struct address peer;
	pid_t peer_pid;
	struct request request;		/* what is posted over and over */
	unsigned sent;
};

/* Both processes call it, in the same order for several links. */
void link_open(struct pair *p, struct link *l, size_t bytes);
/* Get ready for link_send(): the request and the receives. */
void link_messages(struct pair *p, struct link *l);

void link_send(void *link);		/* 8 bytes */
void link_wait_polling(void *link);	/* for a message */
#endif
