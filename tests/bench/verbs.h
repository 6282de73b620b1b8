/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subject: a device through the public verbs, with few words.
 *
 * Includes nothing of the emulator and is linked with the system's libibverbs; `verbena
 * run` gives it the device, as it does for any program.
 */
#ifndef BENCH_VERBS_H
#define BENCH_VERBS_H
#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>
#include "bench.h"

enum { GID_INDEX = 3, INLINE_BYTES = 64 };

/* A context, a buffer, and what queues need. */
struct port {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;	/* of recv_cq */
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_mr *mr;
	uint8_t *buf;
	size_t bytes;
	union ibv_gid gid;
};

/* What a peer must know. */
struct address {
	union ibv_gid gid;
	uint32_t qpn, rkey;
	uint64_t addr;
};

/* The buffer is touched; queues have @cqe entries. */
void port_open(struct port *p, size_t bytes, int cqe);
void port_close(struct port *p);

struct ibv_qp *qp_new(struct port *p, unsigned depth);
struct address qp_address(const struct port *p, const struct ibv_qp *qp);
void qp_connect(struct ibv_qp *qp, const struct address *peer);
/* Two connected to each other. */
void qp_pair_new(struct port *p, unsigned depth, struct ibv_qp *out[2]);

/* A request with one piece; sr.wr points to its own sge, so it must not be copied. */
struct request {
	struct ibv_send_wr wr;
	struct ibv_sge sge;
};

/* @local is an offset into the port's buffer, @remote one into the peer's. */
void request_set(struct request *r, const struct port *p, enum ibv_wr_opcode opcode,
		 size_t local, uint32_t bytes, const struct address *peer, size_t remote);
void recv_post(struct ibv_qp *qp, const struct port *p, size_t local, uint32_t bytes);

static inline void post(struct ibv_qp *qp, struct request *r)
{
	struct ibv_send_wr *bad;
	int error = ibv_post_send(qp, &r->wr, &bad);

	if (error)
		die("bench: ibv_post_send: errno %d", error);
}

static inline void check(const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS)
		die("bench: completion: %s", ibv_wc_status_str(wc->status));
}

/* Spin until @count completions have come. */
static inline void await(struct ibv_cq *cq, int count)
{
	struct ibv_wc wc[32];

	while (count) {
		int got = ibv_poll_cq(cq, count < 32 ? count : 32, wc);

		if (got < 0)
			die("bench: ibv_poll_cq failed");
		for (int i = 0; i < got; i++)
			check(&wc[i]);
		count -= got;
	}
}
#endif
