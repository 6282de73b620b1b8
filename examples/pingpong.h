/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One message goes back and forth between two processes: what ibv_rc_pingpong, ibv_uc_pingpong,
 * ibv_ud_pingpong and ibv_srq_pingpong have in common, which is nearly everything.
 *
 *   setup.c      memory, queues, and the way to the peer; and taking all that down
 *   pingpong.c   the exchange of messages, and the report
 *
 * Each program is a struct transport and a command line.
 */
#ifndef EXAMPLES_PINGPONG_H
#define EXAMPLES_PINGPONG_H

#include "examples/device.h"
#include "examples/exchange.h"
#include "examples/options.h"

/* rdma-core's program sends that many addresses however few queue pairs it uses. */
enum { PAIRS_MAX = 256, PINGPONG_QKEY = 0x11111111 };

/* What a queue pair of this transport must be told at each change of its state. */
struct transport {
	enum ibv_qp_type type;
	int init_mask, rtr_mask, rts_mask;
	bool is_datagram;		/* addressed by handle; messages have a header in front */
	bool has_srq;			/* all queue pairs take receives from one queue */
	unsigned endpoint_count;	/* how many addresses each side sends */
};

/* What two of the programs have in common. */
#define RELIABLE_CONNECTION                                                               \
	.type = IBV_QPT_RC,                                                               \
	.init_mask = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,               \
	.rtr_mask = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |       \
		    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,                     \
	.rts_mask = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | \
		    IBV_QP_MAX_QP_RD_ATOMIC

/* What a queue pair waits for before it sends again.  These bits are the wr_ids as well. */
enum { WAITS_FOR_RECEIVE = 1, WAITS_FOR_SEND = 2 };

struct pingpong {
	const struct transport *transport;
	const struct options *options;
	struct ibv_context *context;
	struct ibv_comp_channel *channel;	/* NULL: completions are polled for */
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_cq_ex *cq_ex;		/* the same CQ if it has timestamps */
	struct ibv_srq *srq;
	struct ibv_ah *ah;			/* of a datagram */
	struct ibv_qp *qp[PAIRS_MAX];
	unsigned pending[PAIRS_MAX];		/* for each QP: WAITS_FOR_* */
	unsigned pair_count;
	struct endpoint local[PAIRS_MAX], remote[PAIRS_MAX];

	char *buffer;
	size_t buffer_bytes;
	unsigned header_bytes;			/* of the buffer that the message does not use */
	struct ibv_dm *dm;			/* device memory in place of the buffer */
	struct ibv_mr *mr;
	unsigned send_flags;

	int posted_count;			/* receives that are posted now */
	int sent_count, received_count;
	unsigned event_count;			/* to be acknowledged */
	uint64_t clock_mask;			/* of the timestamps */
	struct {
		uint64_t last, min, max, sum, count;	/* in ticks of the device */
	} interval;
};

/* The whole program, once it knows its options.  Returns the exit status. */
int pingpong(const struct transport *transport, const struct options *options);

/* setup.c, in the order of use. */
void pingpong_open(struct pingpong *p);
void pingpong_connect(struct pingpong *p);
void pingpong_close(struct pingpong *p);

/* pingpong.c: fills the receive queue up. */
void pingpong_post_receives(struct pingpong *p);

/* What a scatter or gather entry says of the message; a receive has room for the header too. */
struct ibv_sge pingpong_sge(const struct pingpong *p, bool is_receive);

#endif
