/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Golden vectors: what the distribution's libmlx5 writes for known work requests.
 *
 * Shared by the files of golden_record.  None of them includes hw-models: the text that
 * goes beside the bytes is computed from the work request, so that our decoder is compared
 * with what was asked for and not with itself.
 */
#ifndef TESTS_GOLDEN_GOLDEN_H
#define TESTS_GOLDEN_GOLDEN_H
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define BLOCK_BYTES	64
#define UNIT_BYTES	16
#define WQE_BLOCKS_MAX	16
#define PIECES_MAX	32
#define POISON		0xa5	/* stands wherever libmlx5 wrote nothing */

/* Fixed, so that a second recording gives the same bytes. */
#define BUFFER_ADDR	UINT64_C(0x200000000000)
#define BUFFER_BYTES	(UINT64_C(4) << 20)
#define PIECE_STEP	UINT64_C(0x11003)
#define REMOTE_ADDR	UINT64_C(0x0000200000123458)
#define IMM		UINT32_C(0x0badcafe)
#define INVALIDATE	UINT32_C(0x00c0ffee)
#define COMPARE		UINT64_C(0x0123456789abcdef)
#define SWAP		UINT64_C(0xfedcba9876543210)
#define ADD		UINT64_C(0x1122334455667788)

enum api { API_OLD = 1, API_EX = 2 };		/* ibv_post_send(), ibv_wr_*() */
#define API_BOTH (API_OLD | API_EX)

/* Where in the ring a WQE is to begin. */
enum place {
	AT_NEXT,		/* wherever the one before it ended              */
	AT_LAST_BLOCK,		/* so that what is longer than a block wraps      */
	AT_INDEX_WRAP,		/* block 0xffff: the counter itself wraps as well */
};

struct request {
	const char *name;
	enum ibv_wr_opcode opcode;
	unsigned flags;		/* IBV_SEND_*                          */
	unsigned pieces;	/* piece i has bytes[i % 4]             */
	uint32_t bytes[4];
	enum place place;
	uint64_t remote_addr;	/* 0: REMOTE_ADDR                        */
	const char *outcome;	/* the decode text from here on, if what libmlx5 writes is
				 * not what was asked for */
	uint8_t apis;		/* 0: both */
	bool is_foreign;	/* the queue's type has no such operation: libmlx5 writes the
				 * opcode and the data, and nothing between them */
	uint8_t window;		/* type of the window to bind, over the first piece */
	unsigned access;	/* IBV_ACCESS_* of the window */
};

struct request_list {
	const struct request *requests;
	unsigned count;
};
extern const struct request_list send_requests, signal_all_requests;
extern const struct request_list window_requests, uc_requests;

struct recv_request {
	const char *name;
	unsigned room;		/* max_recv_sge of the queue */
	unsigned pieces;
	uint32_t bytes[4];
	const char *outcome;
};
extern const struct recv_request recv_requests[];
extern const unsigned recv_request_count;
extern const struct recv_request shared_requests[];
extern const unsigned shared_request_count;

struct world {
	struct ibv_context *context;
	struct ibv_context *other;	/* of another part, see trace_other_part() */
	struct ibv_pd *pd;
	struct ibv_mr *local[2];	/* pieces take turns */
	struct ibv_mr *remote;
	struct ibv_mw *window[3];	/* by type; [0] is not used */
	const char *folder;		/* where the fixtures go */
};

/* What is different between queues of one type and another. */
struct queue_type {
	enum ibv_qp_type type;
	const char *folder;		/* of the fixtures */
	uint64_t operations;		/* IBV_QP_EX_WITH_* */
	unsigned inline_max;		/* with it a WQE has at most the 1024 bytes allowed */
	int init, rtr, rts;		/* attributes of ibv_modify_qp() */
};
extern const struct queue_type type_rc, type_uc;

struct queue {
	struct world *world;
	const struct queue_type *type;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct mlx5dv_qp dv;
	enum api api;
	bool signals_all;
	bool follows_umr;		/* the next WQE gets a small fence  */
	uint32_t produced;		/* blocks, counted from the requests */
	uint32_t received;		/* receives posted                    */
	uint32_t completed;		/* completions polled                  */
};

void fail(const char *what);		/* with errno; does not return */

/* queue.c: a QP that is in ERR, so that whatever is posted is flushed and never done. */
struct queue *queue_open(struct world *w, const struct queue_type *type, enum api api,
			 bool signals_all, unsigned recv_room);
void queue_close(struct queue *q);
void queue_drain(struct queue *q, unsigned completions);
uint64_t piece_addr(unsigned i);
uint32_t piece_lkey(const struct queue *q, unsigned i);

/* post.c: what the library refuses is an errno to try_*(), and the end to the others. */
int try_post(struct queue *q, const struct request *r, unsigned times);
void post(struct queue *q, const struct request *r, unsigned times);
int try_post_recv(struct queue *q, const struct recv_request *r, unsigned times);
void post_recv(struct queue *q, const struct recv_request *r, unsigned times);
int try_post_shared(struct ibv_srq *srq, const struct queue *q, const struct recv_request *r);
/* The parts of a request: its pieces, and what ibv_wr_*() is called with. */
void post_pieces(const struct queue *q, unsigned pieces, const uint32_t *bytes,
		 struct ibv_sge *out);
void post_ex_operation(const struct queue *q, struct ibv_qp_ex *qp, const struct request *r);
void post_ex_data(struct ibv_qp_ex *qp, const struct request *r, const struct ibv_sge *sge);
uint32_t window_new_rkey(const struct ibv_mw *window, const struct request *r);

/* expect.c: counted and printed from the request alone. */
unsigned expect_units(const struct queue *q, const struct request *r);
void expect_text(FILE *out, const struct queue *q, const struct request *r);
void expect_recv_text(FILE *out, const struct queue *q, const struct recv_request *r);
void expect_shared_text(FILE *out, const struct queue *q, const struct recv_request *r,
			unsigned next);
const char *expect_name(enum ibv_wr_opcode opcode);
uint8_t expect_opcode(enum ibv_wr_opcode opcode);

/* table.c: doorbell records, doorbell registers, arm words. */
FILE *fixture_open(const struct world *w, const char *folder, const char *name,
		   const char *suffix);
void record_table_open(const struct world *w, const char *name);
void record_table_row(const struct queue *q, const char *name);
void uar_table_open(const struct world *w, const char *name);
void uar_clear(const struct queue *q);
void uar_table_row(const struct queue *q, const struct request *last, const char *name);
void tables_close(void);
void arm_record(struct world *w);

/* trace.c: commands go to a file of that name from now on, or nowhere (NULL). */
void trace_section(const struct world *w, const char *name);
/* A device that is opened from now on says what no emulated one does: that it wants headers of
 * frames within requests, and receives in strides. */
void trace_other_part(bool is_other);

/* record.c */
struct ibv_mr *mr_register(struct ibv_pd *pd);	/* the buffer of all pieces */
/* libmlx5 refuses few requests; a library that it is compared with may refuse more. */
void print_refusal(FILE *out, int error);
/* The request that begins in block @first; it says how long it is. */
void print_request(FILE *out, const struct queue *q, uint32_t first);

/* What the sections of commands need, and one of them. */
struct tools {
	struct world *w;
	struct ibv_cq *cq;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
	struct ibv_qp *qp;		/* of datagrams, in RTR */
	union ibv_gid gid;
};
struct section {
	const char *name;		/* NULL: the end */
	void (*run)(struct tools *t);
};
extern const struct section steering_sections[];	/* steering.c */

/* These are not fixtures, but to be compared. */
void commands_record(struct world *w);
void datagrams_record(struct world *w);
void frames_record(struct world *w);
#endif
