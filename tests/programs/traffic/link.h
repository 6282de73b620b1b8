/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One RC connection under mixed traffic, with every byte and every order checked.
 *
 * Used by traffic.c (a mesh of processes) and disorder.c (a pair in one process).  A link
 * keeps a few operations of all kinds under way and knows what each must bring: SENDs arrive
 * in order and whole, a READ finds what the last WRITE left, an atomic returns what the one
 * before it stored, and everything that was posted completes exactly once.
 *
 * What is wrong with the data or the order ends the process with EXIT_WRONG; a completion
 * with an error only fails the link, because that is what a dead peer looks like.
 * Threads: those of one node are serialised by the caller.
 */
#ifndef PROGRAMS_TRAFFIC_LINK_H
#define PROGRAMS_TRAFFIC_LINK_H
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define EXIT_WRONG	3
#define LINKS_MAX	64
#define DEPTH		8		/* operations under way */
#define RECEIVES	16
#define MESSAGE_BYTES	8192u
#define SLOT_BYTES	16384u
#define SLOTS		4

/* What the other end must know. */
struct link_info {
	uint64_t tag;			/* names this end's QP for ever; 0: nothing */
	uint64_t peer_tag;		/* whom it is connected to; 0: nobody yet */
	uint64_t addr;
	uint32_t rkey, qpn, psn, reserved;
	union ibv_gid gid;
};

struct operation {
	unsigned kind;
	uint32_t bytes, slot;
	uint64_t seed, expected;
};

/* The memory of a link.  The first two are what the peer reaches. */
struct link_memory {
	_Alignas(64) uint64_t word[2];	/* for FETCH_ADD and COMPARE_SWAP */
	uint8_t slot[SLOTS][SLOT_BYTES];
	uint8_t receive[RECEIVES][MESSAGE_BYTES];
	uint8_t local[DEPTH][SLOT_BYTES];
};

struct link {
	struct node *node;
	unsigned index;
	struct link_info info, peer;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct link_memory *memory;
	struct operation operation[DEPTH];
	uint32_t posted, completed;	/* sends; free running */
	uint32_t receives_out;
	/* where each sequence is */
	uint64_t sent, written, received, imms, imms_received, added, swapped;
	uint64_t slot_seed[SLOTS];
	uint32_t slot_bytes[SLOTS];
	uint64_t done;			/* verified operations, also of earlier connections */
	bool has_failed;
	enum ibv_wc_status first_error;
};

struct node {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct link *link[LINKS_MAX];
	uint64_t random;
	uint8_t timeout, retry;		/* of ibv_modify_qp() */
	unsigned events_seen;		/* not acknowledged yet */
};

/* 0 or errno; says what failed on stderr. */
int node_open(struct node *n);
void node_close(struct node *n);
/* Take what the CQ holds; how many. */
int node_poll(struct node *n);
/* Arm the CQ, look once more, and sleep up to @ms for an event. */
void node_wait(struct node *n, int ms);
uint64_t node_random(struct node *n);

/* A QP that waits to be connected; link->info is what to tell the peer.  0 or errno */
int link_open(struct link *l, struct node *n, unsigned index, uint64_t tag);
int link_connect(struct link *l, const struct link_info *peer);
/* Post until @depth operations are under way. */
void link_post(struct link *l, unsigned depth);
/* QP to ERR, so that all that was posted comes back. */
void link_fail(struct link *l);
static inline bool link_is_quiet(const struct link *l)
{
	return l->posted == l->completed;
}
static inline bool link_is_drained(const struct link *l)
{
	return link_is_quiet(l) && !l->receives_out;
}
void link_close(struct link *l);

uint64_t clock_ms(void);
void wrong(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
#endif
