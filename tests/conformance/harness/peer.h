/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The other end of a conversation, wherever it lives.
 *
 * A case body is written once against these calls and runs in three placements: both
 * ends in one thread on one context; the other end in a thread with its own context;
 * the other end in another process with its own device.  A call is one message; in the
 * first placement it is a function call.
 *
 * Calls assert (through Criterion) that the other end answered, never what it answered.
 * Threads: one caller.
 */
#ifndef CONFORMANCE_PEER_H
#define CONFORMANCE_PEER_H
#include <pthread.h>
#include <sys/types.h>
#include "end.h"
#include "frames.h"
#include "window.h"

enum placement { ONE_THREAD, TWO_THREADS, TWO_PROCESSES, PLACEMENT_COUNT };
extern const char *const placement_names[PLACEMENT_COUNT];

enum peer_op {
	PEER_OPEN, PEER_CLOSE, PEER_CONNECT, PEER_TO, PEER_MODIFY, PEER_QUERY, PEER_DESTROY_QP,
	PEER_POST, PEER_POST_RECV, PEER_AWAIT, PEER_GLANCE, PEER_EVENT,
	PEER_REGISTER, PEER_DEREGISTER, PEER_READ, PEER_FILL, PEER_DIFFERS, PEER_UNMAP,
	PEER_SRQ_MODIFY, PEER_SRQ_QUERY, PEER_SRQ_DESTROY,
	PEER_TARGET_TO, PEER_TARGET_STATE, PEER_DOMAIN_OPEN, PEER_DOMAIN_CLOSE,
	PEER_TARGET_OPEN, PEER_TARGET_SHUT, PEER_TARGET_EVENT, PEER_TARGET_DESTROY,
	PEER_WINDOW, PEER_SWAP_QP,
	PEER_MCAST, PEER_FLOW,
	PEER_OP_COUNT
};

struct peer_message {
	enum peer_op op;
	int err;			/* answer: 0 or errno */
	int64_t arg[5];
	union {
		struct end_opts opts;
		struct end_info info;
		struct work work;
		struct done done;
		struct ibv_qp_attr attr;
		struct ibv_srq_attr srq;
		struct window_ask window;
		struct flow_ask flow;
		uint8_t bytes[512];
	} u;
};

struct peer {
	enum placement placement;
	struct end here;		/* its end, when it lives in the caller's thread */
	const struct end *shared;	/* whose context `here` uses */
	int socket;
	pid_t pid;
	pthread_t thread;
};

/* Call before the device is opened: a process is forked. */
void peer_start(struct peer *p, enum placement placement);
void peer_stop(struct peer *p);

int peer_open(struct peer *p, const struct end_opts *opts, const struct end *shared,
	      struct end_info *info_out);
int peer_connect(struct peer *p, const struct end_info *other);
/* As far as @state, whatever its options say. */
int peer_connect_to(struct peer *p, const struct end_info *other, enum ibv_qp_state state);
int peer_to(struct peer *p, enum ibv_qp_state state);
int peer_modify(struct peer *p, const struct ibv_qp_attr *attr, int mask);
int peer_query(struct peer *p, struct ibv_qp_attr *out);
enum ibv_qp_state peer_state(struct peer *p);
int peer_destroy_qp(struct peer *p);
int peer_attach(struct peer *p, const union ibv_gid *gid);
int peer_detach(struct peer *p, const union ibv_gid *gid);
/* A rule for its QP, which lives as long as the QP's process or context. */
int peer_flow(struct peer *p, const struct flow_ask *ask);
int peer_post(struct peer *p, const struct work *work);
int peer_post_recv(struct peer *p, const struct work *work);
void peer_await(struct peer *p, enum end_queue queue, struct done *out);
void peer_glance(struct peer *p, enum end_queue queue, struct done *out);
bool peer_event(struct peer *p, enum ibv_event_type type, int ms);
/* The slot or -1; lkey and rkey in @info_out. */
int peer_register(struct peer *p, uint64_t addr, uint64_t bytes, unsigned access, bool other_pd,
		  struct end_info *info_out);
int peer_deregister(struct peer *p, int slot);
/* Its buffer, by offset; at most 512 bytes are read. */
void peer_read(struct peer *p, size_t offset, void *out, size_t bytes);
void peer_fill(struct peer *p, size_t offset, size_t bytes, uint64_t seed);
int64_t peer_differs(struct peer *p, size_t offset, size_t bytes, uint64_t seed);
int peer_unmap(struct peer *p, size_t offset, size_t bytes);
int peer_srq_modify(struct peer *p, const struct ibv_srq_attr *attr, int mask);
int peer_srq_query(struct peer *p, struct ibv_srq_attr *out);
int peer_srq_destroy(struct peer *p);
int peer_target_to(struct peer *p, enum ibv_qp_state state);
enum ibv_qp_state peer_target_state(struct peer *p);
/* As end_target_...() */
int peer_target_open(struct peer *p, uint32_t qpn);
int peer_target_shut(struct peer *p);
bool peer_target_event(struct peer *p, enum ibv_event_type type, int ms);
int peer_target_destroy(struct peer *p);
int peer_domain_open(struct peer *p, const char *path, int oflags);
int peer_domain_close(struct peer *p);
int peer_window(struct peer *p, struct window_ask *ask);	/* as end_window() */
int peer_swap_qp(struct peer *p, struct end_info *info_out);	/* as end_swap_qp() */
#endif
