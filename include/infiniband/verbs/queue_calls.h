/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls: queue pairs, shared and plain receive queues, posting work, address handles, multicast.
 *
 * Posting takes requests in order.  If one is refused, those before it stay posted, it is told
 * in @bad_wr, and nothing after it is looked at.
 */
#ifndef INFINIBAND_VERBS_QUEUE_CALLS_H
#define INFINIBAND_VERBS_QUEUE_CALLS_H

#include <infiniband/verbs/context.h>
#include <infiniband/verbs/address.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- XRC domains ------------------------------------------------------------ */

static inline struct ibv_xrcd *ibv_open_xrcd(struct ibv_context *context,
					     struct ibv_xrcd_init_attr *xrcd_init_attr)
{
	return __verbs_call_object(context, open_xrcd, context, xrcd_init_attr);
}

/* EBUSY: something is still in it. */
static inline int ibv_close_xrcd(struct ibv_xrcd *xrcd)
{
	return verbs_get_ctx(xrcd->context)->close_xrcd(xrcd);
}

/* --- shared receive queues -------------------------------------------------- */

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *srq_init_attr);

/* What the short form can say too goes to ibv_create_srq(). */
static inline struct ibv_srq *ibv_create_srq_ex(struct ibv_context *context,
						struct ibv_srq_init_attr_ex *attr)
{
	uint32_t mask = attr->comp_mask;
	uint32_t optional = mask & ~(uint32_t)IBV_SRQ_INIT_ATTR_PD;
	int is_basic = !optional || (optional == IBV_SRQ_INIT_ATTR_TYPE &&
				     attr->srq_type == IBV_SRQT_BASIC);

	if ((mask & IBV_SRQ_INIT_ATTR_PD) && is_basic)
		return ibv_create_srq(attr->pd, (struct ibv_srq_init_attr *)(void *)attr);
	return __verbs_call_object(context, create_srq_ex, context, attr);
}

/* @srq_attr_mask: enum ibv_srq_attr_mask. */
int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr, int srq_attr_mask);
int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr);

/* The number by which XRC peers address it. */
static inline int ibv_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num)
{
	return __verbs_call_int(srq->context, get_srq_num, srq, srq_num);
}

/* Waits until every event of it is acknowledged.  EBUSY: a queue pair still uses it. */
int ibv_destroy_srq(struct ibv_srq *srq);

/* ENOMEM: no room; EINVAL: too many pieces. */
static inline int ibv_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *recv_wr,
				    struct ibv_recv_wr **bad_recv_wr)
{
	return srq->context->ops.post_srq_recv(srq, recv_wr, bad_recv_wr);
}

/* Of a queue that matches tags. */
static inline int ibv_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *op,
				   struct ibv_ops_wr **bad_op)
{
	struct verbs_context *vctx = verbs_get_ctx_op(srq->context, post_srq_ops);

	if (vctx)
		return vctx->post_srq_ops(srq, op, bad_op);
	*bad_op = op;
	return EOPNOTSUPP;
}

/* --- queue pairs ------------------------------------------------------------ */

/* cap comes back as it is.  EINVAL: more than the device allows. */
struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr);

/* What the short form can say too goes to ibv_create_qp(). */
static inline struct ibv_qp *ibv_create_qp_ex(struct ibv_context *context,
					      struct ibv_qp_init_attr_ex *attr)
{
	if (attr->comp_mask == IBV_QP_INIT_ATTR_PD)
		return ibv_create_qp(attr->pd, (struct ibv_qp_init_attr *)(void *)attr);
	return __verbs_call_object(context, create_qp_ex, context, attr);
}

static inline struct ibv_qp *ibv_open_qp(struct ibv_context *context,
					 struct ibv_qp_open_attr *qp_open_attr)
{
	return __verbs_call_object(context, open_qp, context, qp_open_attr);
}

/*
 * All of what @attr_mask (enum ibv_qp_attr_mask) says, or nothing.  EINVAL: a value out of range,
 * or an attribute that this step between two states does not take, or one missing that it needs.
 */
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask);

static inline int ibv_modify_qp_rate_limit(struct ibv_qp *qp,
					   struct ibv_qp_rate_limit_attr *attr)
{
	return __verbs_call_int(qp->context, modify_qp_rate_limit, qp, attr);
}

/* At least the attributes of @attr_mask, and how the queue pair was created. */
int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		 struct ibv_qp_init_attr *init_attr);

/* 1: bytes of one message reach memory in the order of their addresses; 0: not promised. */
int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags);

/* Waits until every event of it is acknowledged.  EBUSY: in a multicast group. */
int ibv_destroy_qp(struct ibv_qp *qp);

/* What is offered to the peer, and what came of it. */
int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece);
int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece);

/*
 * Buffers sent inline, and the requests, may be used again when it returns; others when the
 * completion came.  EINVAL: a request that this queue pair or its state cannot take; ENOMEM: no
 * room.
 */
static inline int ibv_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
				struct ibv_send_wr **bad_wr)
{
	return qp->context->ops.post_send(qp, wr, bad_wr);
}

static inline int ibv_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
				struct ibv_recv_wr **bad_wr)
{
	return qp->context->ops.post_recv(qp, wr, bad_wr);
}

/* --- receive work queues ---------------------------------------------------- */

/* A receive queue for tables.  It receives once it is IBV_WQS_RDY. */
static inline struct ibv_wq *ibv_create_wq(struct ibv_context *context,
					   struct ibv_wq_init_attr *wq_init_attr)
{
	struct ibv_wq *wq = __verbs_call_object(context, create_wq, context, wq_init_attr);

	if (!wq)
		return NULL;
	pthread_mutex_init(&wq->mutex, NULL);
	pthread_cond_init(&wq->cond, NULL);
	wq->events_completed = 0;
	wq->wq_context = wq_init_attr->wq_context;
	return wq;
}

/* EINVAL: a state that can't be reached.  EOPNOTSUPP: a flag that can't change. */
static inline int ibv_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *wq_attr)
{
	return __verbs_call_int(wq->context, modify_wq, wq, wq_attr);
}

/* EBUSY: an indirection table still has it. */
static inline int ibv_destroy_wq(struct ibv_wq *wq)
{
	return __verbs_call_int(wq->context, destroy_wq, wq);
}

/* As ibv_post_recv(), in each state. */
static inline int ibv_post_wq_recv(struct ibv_wq *wq, struct ibv_recv_wr *recv_wr,
				   struct ibv_recv_wr **bad_recv_wr)
{
	return wq->post_recv(wq, recv_wr, bad_recv_wr);
}

/* Which queue has the packets with which hash; what is in it stays. */
static inline struct ibv_rwq_ind_table *
ibv_create_rwq_ind_table(struct ibv_context *context,
			 struct ibv_rwq_ind_table_init_attr *init_attr)
{
	return __verbs_call_object(context, create_rwq_ind_table, context, init_attr);
}

/* EBUSY: a queue pair still uses it. */
static inline int ibv_destroy_rwq_ind_table(struct ibv_rwq_ind_table *rwq_ind_table)
{
	return __verbs_call_int(rwq_ind_table->context, destroy_rwq_ind_table, rwq_ind_table);
}

/* --- addresses and multicast ------------------------------------------------ */

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);

/* The way back to the sender of @wc.  @grh counts if the completion has IBV_WC_GRH. */
int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
			struct ibv_grh *grh, struct ibv_ah_attr *ah_attr);

/* The two above in one. */
struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				     uint8_t port_num);

/* Requests that use it must have completed. */
int ibv_destroy_ah(struct ibv_ah *ah);

/* The MAC address and VLAN (0xffff: none) that RoCE packets to @attr go to. */
int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
				uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid);

/* For UD queue pairs; @lid in host byte order, 0 on Ethernet. */
int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);

#ifdef __cplusplus
}
#endif
#endif
