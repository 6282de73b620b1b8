/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One end of a conversation: a device, a QP and all that it needs.
 *
 * Used by every conformance case, for its own end directly and for the other end
 * through peer.h.  Nothing here asserts: functions return 0 or an errno, because the
 * other end may live in a process that Criterion does not watch.
 */
#ifndef CONFORMANCE_END_H
#define CONFORMANCE_END_H
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AWAIT_MS	10000	/* generous: reached only by a case that fails */
#define QUIET_POLLS	300	/* empty polls after which a queue counts as quiet */
/* RoCE v2, IPv4: the usual choice on ConnectX.  An InfiniBand port is addressed by LID instead. */
#define GID_INDEX	3
#define END_KEYS_MAX	8
#define END_WINDOWS_MAX	4
#define END_SGE_MAX	30
#define END_AHS_MAX	16
#define GRH_BYTES	40	/* in front of each received datagram */

#define ACCESS_ALL (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
		    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

enum end_queue { SEND_CQ, RECV_CQ };

struct end_opts {
	enum ibv_qp_type type;		/* RC, UC, UD, or XRC_SEND: see xrc.c */
	unsigned create_flags;
	uint32_t qkey;
	unsigned qp_access, mr_access;
	enum ibv_mtu mtu;
	uint8_t timeout, retry, rnr_retry, min_rnr_timer, rd_atomic, dest_rd_atomic;
	uint32_t sq_psn, rq_psn;
	uint32_t dest_qpn;		/* 0: the other end's */
	uint8_t gid_index;
	uint8_t path_bits;		/* InfiniBand: which LID of its port is the source */
	uint16_t pkey_index;
	struct ibv_qp_cap cap;
	int sig_all;
	int cqe;
	size_t bytes;			/* of the buffer */
	enum ibv_qp_state state;	/* how far the QP is moved at the start */
	bool has_one_cq;		/* send and receive share it */
	uint32_t srq_wr;		/* receives go to a shared queue of this many; 0: none */
	bool is_extended;		/* made with ibv_create_qp_ex() and ibv_create_cq_ex() */
	uint64_t wc_flags;		/* of extended CQs, added to what the readers here need */
	char domain[64];		/* XRC: the domain's file; empty: it has none */
	bool wants_raw;			/* keep the bytes of error CQEs; marks the CQ as mlx5dv's */
};

struct end_info {
	union ibv_gid gid;		/* or a LID: see end_lid_as_gid() */
	uint32_t qpn, psn;
	uint32_t target_qpn, srqn;	/* XRC */
	uint32_t lkey, rkey;
	uint64_t addr, bytes;
};

/* Events read from one context and not asked for yet. */
struct event_log {
	unsigned count;
	struct { enum ibv_event_type type; void *element; } event[64];
};

struct end_key {
	struct ibv_mr *mr;
	struct ibv_pd *pd;		/* of its own, or NULL */
};

struct end_window {
	struct ibv_mw *mw;
	struct ibv_pd *pd;		/* of its own, or NULL */
};

struct end {
	struct ibv_context *context;
	struct event_log *log;
	bool owns_context;
	struct ibv_pd *pd;
	bool lends_pd;			/* others that use the context use its domain, too */
	bool owns_pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq[2];		/* by enum end_queue */
	struct ibv_qp *qp;
	struct ibv_srq *srq;		/* NULL: the QP has its own receives */
	struct ibv_xrcd *xrcd;		/* XRC */
	struct ibv_qp *target;		/* XRC: `qp` only sends, this only receives */
	struct ibv_xrcd *file_xrcd;	/* end_domain_open() */
	struct ibv_context *opener;	/* end_target_open(): whose target stands in `target` */
	struct ibv_qp *own_target;
	struct end_info other;		/* whom it was connected to */
	struct end_ah {
		union ibv_gid gid;
		struct ibv_ah *ah;
	} ah[END_AHS_MAX];		/* UD: made when first needed */
	uint8_t *buf;
	struct ibv_mr *mr;
	struct end_key key[END_KEYS_MAX];
	struct end_window window[END_WINDOWS_MAX];	/* window.h */
	struct ibv_qp *spare_qp;	/* end_swap_qp() */
	struct end_opts opts;
};

/* A completion, and for errors the CQE's bytes. */
struct done {
	bool found;
	struct ibv_wc wc;
	uint8_t cqe[64];		/* all zero: not kept */
};

/* A work request, flat so that it can be sent to the other end. */
struct work {
	enum ibv_wr_opcode opcode;
	uint64_t wr_id;
	unsigned flags;			/* IBV_SEND_*; SIGNALED is not added */
	uint64_t remote_addr;
	uint32_t rkey;
	uint32_t srqn;			/* XRC; 0: the other end's */
	uint32_t imm;			/* host order; for SEND_WITH_INV, LOCAL_INV the rkey */
	uint64_t compare_add, swap;
	/* UD; zero: the other end's */
	union ibv_gid gid;
	uint32_t remote_qpn;
	uint32_t qkey_error;		/* xor-ed to the end's own Q_Key */
	unsigned sge_count;
	struct ibv_sge sge[END_SGE_MAX];
};

void end_defaults(struct end_opts *opts);

/* The first device, or NULL with errno. */
struct ibv_context *device_open(void);

/* @shared: another end whose context is used, or NULL. */
int end_open(struct end *e, const struct end_opts *opts, const struct end *shared);
void end_close(struct end *e);
void end_describe(const struct end *e, struct end_info *out);

/* A LID in a form that no GID has, so that both are handed around as one. */
union ibv_gid end_lid_as_gid(uint16_t lid);
/* The way from index @sgid_index to @gid, which may be a LID. */
struct ibv_ah_attr end_path(const union ibv_gid *gid, uint8_t sgid_index);
/* The address handle of @gid; NULL with errno. */
struct ibv_ah *end_ah(struct end *e, const union ibv_gid *gid);

/* Move the QP towards opts.state; each takes the options' values. */
int end_to_init(struct end *e);
int end_to_rtr(struct end *e, const struct end_info *other);
int end_to_rts(struct end *e);
int end_to(struct end *e, enum ibv_qp_state state);	/* only the state: RESET, ERR */
int end_connect(struct end *e, const struct end_info *other);

/* Post; the errno of the verb. */
int end_post(struct end *e, const struct work *work);
int end_post_recv(struct end *e, const struct work *work);

/* The next completion of a CQ, waited for; found is false after AWAIT_MS. */
void end_await(struct end *e, enum end_queue queue, struct done *out);
/* The next completion if one comes while the queue is polled for a bounded number of
 * times: for cases that say that nothing must come. */
void end_glance(struct end *e, enum end_queue queue, struct done *out);
/* An event about this end's QP, CQs or SRQ, waited for @ms. */
bool end_event(struct end *e, enum ibv_event_type type, int ms);

enum ibv_qp_state end_state(struct end *e);	/* IBV_QPS_UNKNOWN: query failed */

/* Register [addr, addr + bytes) under the next free slot, on a PD of its own if @other_pd.
 * The slot, or -1 with errno. */
int end_register(struct end *e, uint64_t addr, uint64_t bytes, unsigned access, bool other_pd);
int end_deregister(struct end *e, unsigned slot);

/* Go on with another QP on the same domain and CQs, not connected; called again, with the
 * first one.  end_describe() tells its number. */
int end_swap_qp(struct end *e);

/* A pattern that differs from byte to byte, from row to row and from seed to seed. */
void pattern_fill(void *at, size_t bytes, uint64_t seed);
/* The first byte that differs, or -1. */
int64_t pattern_differs(const void *at, size_t bytes, uint64_t seed);

uint64_t now_ms(void);

/* xrc.c: what an end of XRC_SEND has besides its QP.  0 or errno */
int end_xrc_open(struct end *e);
int end_xrc_connect(struct end *e, const struct end_info *other);
void end_xrc_close(struct end *e);
/* A domain by the file of this name, which is made if need be; one at a time. */
int end_domain_open(struct end *e, const char *path, int oflags);
int end_domain_close(struct end *e);
int end_target_to(struct end *e, enum ibv_qp_state state);
enum ibv_qp_state end_target_state(struct end *e);
/* Open the target of this number in the domain of the options, by a context for it alone: `target`
 * is this one until end_target_shut().  Again: the one before is shut. */
int end_target_open(struct end *e, uint32_t qpn);
int end_target_shut(struct end *e);
/* Its next event is this one. */
bool end_target_event(struct end *e, enum ibv_event_type type, int ms);
#endif
