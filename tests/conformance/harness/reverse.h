/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The other way round: the region is this end's, where a case can do anything with it, and the
 * other end goes through it.
 */
#ifndef CONFORMANCE_REVERSE_H
#define CONFORMANCE_REVERSE_H
#include <errno.h>
#include <string.h>
#include "check.h"

/* A request of the other end, from the beginning of its buffer to @remote. */
static inline struct work reverse_work(const struct pair *p, enum ibv_wr_opcode op,
				       uint64_t remote, uint32_t rkey, uint32_t bytes)
{
	return (struct work){
		.opcode = op, .wr_id = 31, .flags = IBV_SEND_SIGNALED, .remote_addr = remote,
		.rkey = rkey, .sge_count = 1, .sge = { { p->ib.addr, bytes, p->ib.lkey } },
	};
}

static inline void reverse_post(struct pair *p, const struct work *w)
{
	int err = peer_post(&p->peer, w);

	cr_assert_eq(err, 0, "post at the other end: %s", strerror(err));
}

static inline enum ibv_wc_status reverse_status(struct pair *p)
{
	struct done d;

	peer_await(&p->peer, SEND_CQ, &d);
	cr_assert(d.found, "no completion at the other end");
	return d.wc.status;
}

static inline enum ibv_wc_status reverse_do(struct pair *p, enum ibv_wr_opcode op,
					    uint64_t remote, uint32_t rkey, uint32_t bytes)
{
	struct work w = reverse_work(p, op, remote, rkey, bytes);

	reverse_post(p, &w);
	return reverse_status(p);
}

#define REVERSE_EXPECT(p, op, remote, rkey, bytes, want)                                      \
	do {                                                                                  \
		enum ibv_wc_status got_ = reverse_do(p, op, (uint64_t)(remote), rkey, bytes); \
		cr_assert_eq(got_, want, "%s, want %s", ibv_wc_status_str(got_),              \
			     ibv_wc_status_str(want));                                        \
	} while (0)
#endif
