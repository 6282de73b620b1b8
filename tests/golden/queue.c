/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue pair to post to, in ERR: libmlx5 writes the same bytes as in RTS, and the device
 * answers each request with one completion and does nothing else.  So a request may name
 * memory that does not exist, and every request has left the ring before the next one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "golden.h"

#define GID_INDEX	3
#define SENDS		4		/* of the largest size: 64 blocks */
#define CQ_ENTRIES	16
#define SGE_MAX		30

#define OPS_BOTH \
	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_SEND_WITH_IMM | \
	 IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | \
	 IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW)
#define OPS_RELIABLE \
	(IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
	 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
#define TO_RTR (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)

const struct queue_type type_rc = {
	.type = IBV_QPT_RC, .folder = "wqe", .inline_max = 812,
	.operations = OPS_BOTH | OPS_RELIABLE,
	.init = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	.rtr = TO_RTR | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	.rts = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
	       IBV_QP_MAX_QP_RD_ATOMIC,
};

const struct queue_type type_uc = {
	.type = IBV_QPT_UC, .folder = "wqe_uc", .inline_max = 812, .operations = OPS_BOTH,
	.init = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	.rtr = TO_RTR, .rts = IBV_QP_SQ_PSN,
};

void fail(const char *what)
{
	perror(what);
	exit(1);
}

uint64_t piece_addr(unsigned i)
{
	return BUFFER_ADDR + i * PIECE_STEP;
}

uint32_t piece_lkey(const struct queue *q, unsigned i)
{
	return q->world->local[i % 2]->lkey;
}

/* Every operation is asked for, so that the ring is laid out as ibv_create_qp() does it. */
static void qp_create(struct queue *q, unsigned recv_room)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = q->cq, .recv_cq = q->cq, .qp_type = q->type->type,
		.sq_sig_all = q->signals_all, .pd = q->world->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.cap = { .max_send_wr = SENDS, .max_recv_wr = SENDS, .max_send_sge = SGE_MAX,
			 .max_recv_sge = recv_room, .max_inline_data = q->type->inline_max },
	};

	if (q->api == API_EX) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = q->type->operations;
	}
	q->qp = ibv_create_qp_ex(q->world->context, &attr);
	if (!q->qp)
		fail("ibv_create_qp_ex");
}

static void must_modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	errno = ibv_modify_qp(qp, attr, mask | IBV_QP_STATE);
	if (errno)
		fail("ibv_modify_qp");
}

/* Through RTS, because libmlx5 opens its send queue there; connected to itself. */
static void qp_to_error(struct queue *q)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	must_modify(q->qp, &attr, q->type->init);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = q->qp->qp_num,
		.max_dest_rd_atomic = 1, .min_rnr_timer = 12,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .sgid_index = GID_INDEX, .hop_limit = 64 } },
	};
	if (ibv_query_gid(q->world->context, 1, GID_INDEX, &attr.ah_attr.grh.dgid))
		fail("ibv_query_gid");
	must_modify(q->qp, &attr, q->type->rtr);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 14, .max_rd_atomic = 1 };
	must_modify(q->qp, &attr, q->type->rts);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_ERR };
	must_modify(q->qp, &attr, 0);
}

struct queue *queue_open(struct world *w, const struct queue_type *type, enum api api,
			 bool signals_all, unsigned recv_room)
{
	struct queue *q = calloc(1, sizeof *q);
	struct mlx5dv_obj obj = { 0 };

	if (!q)
		fail("calloc");
	q->world = w;
	q->type = type;
	q->api = api;
	q->signals_all = signals_all;
	q->channel = ibv_create_comp_channel(w->context);
	if (!q->channel)
		fail("ibv_create_comp_channel");
	q->cq = ibv_create_cq(w->context, CQ_ENTRIES, NULL, q->channel, 0);
	if (!q->cq)
		fail("ibv_create_cq");
	qp_create(q, recv_room);
	obj.qp.in = q->qp;
	obj.qp.out = &q->dv;
	if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP))
		fail("mlx5dv_init_obj");
	qp_to_error(q);
	return q;
}

void queue_close(struct queue *q)
{
	if (ibv_destroy_qp(q->qp) || ibv_destroy_cq(q->cq) ||
	    ibv_destroy_comp_channel(q->channel))
		fail("closing a queue");
	free(q);
}

/* The alarm of main() ends it if they never come. */
void queue_drain(struct queue *q, unsigned completions)
{
	struct ibv_wc wc;

	while (completions) {
		int found = ibv_poll_cq(q->cq, 1, &wc);

		if (found < 0 || (found && wc.status != IBV_WC_WR_FLUSH_ERR))
			fail("ibv_poll_cq");
		completions -= (unsigned)found;
		q->completed += (unsigned)found;
	}
}
