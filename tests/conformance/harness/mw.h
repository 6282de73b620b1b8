/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the cases about memory windows share: the other end owns a window, this end goes through
 * it.  For c_mw*.c only.
 */
#ifndef CONFORMANCE_MW_H
#define CONFORMANCE_MW_H
#include <errno.h>
#include <string.h>
#include "check.h"

#define AREA		8192	/* where windows are opened, within the buffer */
#define AREA_BYTES	4096
#define WINDOW_RW	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
#define WQE_UMR		0x25

struct mw {
	struct pair p;
	struct window_ask ask;		/* of the last call; its key */
};

/* Connected ends, and a window of @type at the other end, not bound. */
static inline void mw_open_over(struct mw *m, enum placement where, int type,
				enum ibv_qp_type transport)
{
	struct pair_opts opts;

	pair_defaults(&opts);
	opts.a.type = opts.b.type = transport;
	opts.a.rnr_retry = 0;
	opts.b.mr_access = ACCESS_ALL | IBV_ACCESS_MW_BIND;
	pair_open(&m->p, where, &opts);
	m->ask = (struct window_ask){ .verb = WINDOW_ALLOC, .type = type };
	cr_assert_eq(peer_window(&m->p.peer, &m->ask), 0);
}

static inline void mw_open(struct mw *m, enum placement where, int type)
{
	mw_open_over(m, where, type, IBV_QPT_RC);
}

static inline void mw_close(struct mw *m)
{
	pair_close(&m->p);
}

static inline struct window_ask mw_bind_ask(const struct mw *m)
{
	return (struct window_ask){
		.verb = WINDOW_BIND, .slot = m->ask.slot, .region = -1, .bytes = AREA_BYTES,
		.addr = m->p.ib.addr + AREA, .access = WINDOW_RW | IBV_ACCESS_REMOTE_ATOMIC,
		.wr_id = 21, .flags = IBV_SEND_SIGNALED, .tag_step = 1,
	};
}

static inline void mw_post_bind(struct mw *m, const struct window_ask *ask)
{
	m->ask = *ask;
	cr_assert_eq(peer_window(&m->p.peer, &m->ask), 0);
}

static inline void mw_await(struct mw *m, uint64_t wr_id, enum ibv_wc_opcode opcode)
{
	struct done d;

	peer_await(&m->p.peer, SEND_CQ, &d);
	check_ok("window's owner", &d, wr_id, opcode);
}

static inline void mw_await_error(struct mw *m, const char *row, uint64_t wr_id)
{
	struct done d;

	peer_await(&m->p.peer, SEND_CQ, &d);
	check_error(row, &d, wr_id, IBV_WC_MW_BIND_ERR, m->p.ib.qpn, WQE_UMR, -1);
}

/* Bind the area, and wait until it is. */
static inline void mw_bind(struct mw *m)
{
	struct window_ask ask = mw_bind_ask(m);

	mw_post_bind(m, &ask);
	mw_await(m, 21, IBV_WC_BIND_MW);
}

static inline int mw_post_invalidate(struct mw *m, uint32_t key)
{
	struct work w = { .opcode = IBV_WR_LOCAL_INV, .wr_id = 22, .imm = key,
			  .flags = IBV_SEND_SIGNALED };

	return peer_post(&m->p.peer, &w);
}

static inline void mw_invalidate(struct mw *m)
{
	cr_assert_eq(mw_post_invalidate(m, m->ask.rkey), 0);
	mw_await(m, 22, IBV_WC_LOCAL_INV);
}

static inline struct work mw_work(const struct mw *m, enum ibv_wr_opcode op, uint32_t key)
{
	struct work w = pair_work(&m->p, op, 8);

	w.remote_addr += AREA;
	w.rkey = key;
	return w;
}

static inline void mw_works(struct mw *m, enum ibv_wr_opcode op, uint32_t key,
			    enum ibv_wc_opcode opcode)
{
	struct work w = mw_work(m, op, key);

	must_post(&m->p, &w);
	await_ok(&m->p, 1, opcode);
}

static inline void mw_write_works(struct mw *m, uint32_t key)
{
	mw_works(m, IBV_WR_RDMA_WRITE, key, IBV_WC_RDMA_WRITE);
}

/* Remote access error here, and the event there.  The QPs have failed then. */
static inline void mw_write_fails(struct mw *m, uint32_t key)
{
	struct work w = mw_work(m, IBV_WR_RDMA_WRITE, key);

	must_post(&m->p, &w);
	await_error(&m->p, 1, IBV_WC_REM_ACCESS_ERR);
	cr_expect(peer_event(&m->p.peer, IBV_EVENT_QP_ACCESS_ERR, AWAIT_MS), "no event");
	check_states("window", &m->p, IBV_QPS_ERR, IBV_QPS_ERR);
}

/* Both ends go on with other QPs of their domains. */
static inline void mw_swap_qps(struct mw *m, bool connects)
{
	cr_assert_eq(end_swap_qp(&m->p.a), 0);
	cr_assert_eq(peer_swap_qp(&m->p.peer, &m->p.ib), 0);
	end_describe(&m->p.a, &m->p.ia);
	if (connects)
		pair_connect(&m->p);
}
#endif
