/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions of version IBVERBS_1.0, for programs that were linked before 2007.
 *
 * Their objects have another layout: each is a structure that has what such a program reads, and
 * the real object behind it.  The real one's context pointer (cq_context, qp_context, srq_context)
 * leads back to it.
 *
 * Source: binary-compat "Symbols"; the layouts are those of libibverbs 1.0.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include "verbs/context.h"

/* Begins a function under the name and version that old programs ask for. */
#define OLD(type, name, ...)						\
	type old_##name(__VA_ARGS__);					\
	__asm__(".symver old_" #name ", " #name "@IBVERBS_1.0");	\
	VB_EXPORT type old_##name(__VA_ARGS__)

#undef ibv_query_port
#undef ibv_reg_mr

struct _compat_ibv_port_attr;

struct old_device {
	void *unused[2];
	struct ibv_device *real;
	struct _ibv_device_ops unused_ops;
};

struct old_cq;
struct old_srq;
struct old_qp;
struct old_send_wr;
struct old_recv_wr;

struct old_context {
	struct old_device *device;
	struct {
		void *unused_verbs[7];
		int (*poll_cq)(struct old_cq *cq, int count, struct ibv_wc *wc);
		int (*req_notify_cq)(struct old_cq *cq, int solicited_only);
		void *unused_cq_verbs[7];
		int (*post_srq_recv)(struct old_srq *srq, struct old_recv_wr *wr,
				     struct old_recv_wr **bad_wr);
		void *unused_qp_verbs[4];
		int (*post_send)(struct old_qp *qp, struct old_send_wr *wr,
				 struct old_send_wr **bad_wr);
		int (*post_recv)(struct old_qp *qp, struct old_recv_wr *wr,
				 struct old_recv_wr **bad_wr);
		void *unused_ah_verbs[4];
	} ops;
	int cmd_fd, async_fd, num_comp_vectors;
	struct ibv_context *real;
};

struct old_pd { struct old_context *context; uint32_t handle; struct ibv_pd *real; };

struct old_mr {
	struct old_context *context;
	struct old_pd *pd;
	uint32_t handle, lkey, rkey;
	struct ibv_mr *real;
};

struct old_cq {
	struct old_context *context;
	void *cq_context;
	uint32_t handle;
	int cqe;
	pthread_mutex_t unused_mutex;
	pthread_cond_t unused_cond;
	uint32_t unused_counts[2];
	struct ibv_cq *real;
};

struct old_srq {
	struct old_context *context;
	void *srq_context;
	struct old_pd *pd;
	uint32_t handle;
	pthread_mutex_t unused_mutex;
	pthread_cond_t unused_cond;
	uint32_t unused_count;
	struct ibv_srq *real;
};

struct old_qp {
	struct old_context *context;
	void *qp_context;
	struct old_pd *pd;
	struct old_cq *send_cq, *recv_cq;
	struct old_srq *srq;
	uint32_t handle, qp_num;
	enum ibv_qp_state state;
	enum ibv_qp_type qp_type;
	pthread_mutex_t unused_mutex;
	pthread_cond_t unused_cond;
	uint32_t unused_count;
	struct ibv_qp *real;
};

struct old_qp_init_attr {
	void *qp_context;
	struct old_cq *send_cq, *recv_cq;
	struct old_srq *srq;
	struct ibv_qp_cap cap;
	enum ibv_qp_type qp_type;
	int sq_sig_all;
};

struct old_ah {
	struct old_context *context;
	struct old_pd *pd;
	uint32_t handle;
	struct ibv_ah *real;
};

/* Today's begin with wr_id, and send requests end with more. */
struct old_recv_wr {
	struct old_recv_wr *next;
	uint64_t wr_id;
	struct ibv_sge *sg_list;
	int num_sge;
};

struct old_send_wr {
	struct old_send_wr *next;
	uint64_t wr_id;
	struct ibv_sge *sg_list;
	int num_sge;
	enum ibv_wr_opcode opcode;
	int send_flags;
	__be32 imm_data;
	union {
		struct { struct old_ah *ah; uint32_t remote_qpn, remote_qkey; } ud;
		uint64_t words[4];
	} wr;
};
_Static_assert(offsetof(struct old_send_wr, wr) == offsetof(struct ibv_send_wr, wr) &&
	       sizeof(((struct old_send_wr *)0)->wr) == sizeof(((struct ibv_send_wr *)0)->wr),
	       "what follows the list is copied as a whole");

/* An object around @real; without memory that is given back by @undo. */
#define WRAP(type, undo, real_, ...)						\
	({									\
		__typeof__(real_) made_ = (real_);				\
		struct type *old_ = made_ ? calloc(1, sizeof *old_) : NULL;	\
										\
		if (old_)							\
			*old_ = (struct type){ .real = made_, __VA_ARGS__ };	\
		else if (made_)							\
			undo(made_);						\
		old_;								\
	})

/* Ends the real object, and the one around it if that worked. */
#define UNWRAP(old, verb)							\
	({									\
		int error_ = verb((old)->real);					\
										\
		if (!error_)							\
			free(old);						\
		error_;								\
	})

/* --- devices --- */

/* In front of the first is the real list. */
OLD(struct old_device **, ibv_get_device_list, int *count_out)
{
	struct ibv_device **real = ibv_get_device_list(NULL);
	struct old_device **list, *device;
	int count = 0;

	while (real && real[count])
		count++;
	list = real ? calloc((size_t)count + 2, sizeof *list) : NULL;
	device = list && count ? calloc((size_t)count, sizeof *device) : NULL;
	if (!list || (count && !device)) {
		free(list);
		ibv_free_device_list(real);
		return NULL;
	}
	list[0] = (struct old_device *)(void *)real;
	for (int i = 0; i < count; i++) {
		device[i].real = real[i];
		list[i + 1] = &device[i];
	}
	if (count_out)
		*count_out = count;
	return list + 1;
}

OLD(void, ibv_free_device_list, struct old_device **list)
{
	ibv_free_device_list((struct ibv_device **)(void *)list[-1]);
	free(list[0]);
	free(list - 1);
}

OLD(const char *, ibv_get_device_name, struct old_device *device)
{
	return ibv_get_device_name(device->real);
}

OLD(__be64, ibv_get_device_guid, struct old_device *device)
{
	return ibv_get_device_guid(device->real);
}

/* --- what a context's table holds --- */

static int poll_cq(struct old_cq *cq, int count, struct ibv_wc *wc)
{
	return ibv_poll_cq(cq->real, count, wc);
}

static int req_notify_cq(struct old_cq *cq, int solicited_only)
{
	return ibv_req_notify_cq(cq->real, solicited_only);
}

/* Requests are posted one at a time: a list of real ones would need memory. */

static struct ibv_recv_wr real_recv(const struct old_recv_wr *wr)
{
	return (struct ibv_recv_wr){ .wr_id = wr->wr_id, .sg_list = wr->sg_list,
				     .num_sge = wr->num_sge };
}

static int post_srq_recv(struct old_srq *srq, struct old_recv_wr *wr, struct old_recv_wr **bad_wr)
{
	struct ibv_recv_wr real, *bad;
	int error = 0;

	for (; wr && !error; wr = wr->next) {
		real = real_recv(wr);
		error = ibv_post_srq_recv(srq->real, &real, &bad);
		if (error)
			*bad_wr = wr;
	}
	return error;
}

static int post_recv(struct old_qp *qp, struct old_recv_wr *wr, struct old_recv_wr **bad_wr)
{
	struct ibv_recv_wr real, *bad;
	int error = 0;

	for (; wr && !error; wr = wr->next) {
		real = real_recv(wr);
		error = ibv_post_recv(qp->real, &real, &bad);
		if (error)
			*bad_wr = wr;
	}
	return error;
}

static struct ibv_send_wr real_send(const struct old_qp *qp, const struct old_send_wr *wr)
{
	struct ibv_send_wr real = { 0 };

	memcpy(&real, wr, sizeof *wr);
	real.wr_id = wr->wr_id;
	real.next = NULL;
	if (qp->qp_type == IBV_QPT_UD)
		real.wr.ud.ah = wr->wr.ud.ah->real;
	return real;
}

static int post_send(struct old_qp *qp, struct old_send_wr *wr, struct old_send_wr **bad_wr)
{
	struct ibv_send_wr real, *bad;
	int error = 0;

	for (; wr && !error; wr = wr->next) {
		real = real_send(qp, wr);
		error = ibv_post_send(qp->real, &real, &bad);
		if (error)
			*bad_wr = wr;
	}
	return error;
}

OLD(struct old_context *, ibv_open_device, struct old_device *device)
{
	struct old_context *c = WRAP(old_context, ibv_close_device, ibv_open_device(device->real),
				     .device = device);

	if (!c)
		return NULL;
	c->cmd_fd = c->real->cmd_fd;
	c->async_fd = c->real->async_fd;
	c->num_comp_vectors = c->real->num_comp_vectors;
	c->ops.poll_cq = poll_cq;
	c->ops.req_notify_cq = req_notify_cq;
	c->ops.post_srq_recv = post_srq_recv;
	c->ops.post_send = post_send;
	c->ops.post_recv = post_recv;
	return c;
}

OLD(int, ibv_close_device, struct old_context *context)
{
	return UNWRAP(context, ibv_close_device);
}

OLD(int, ibv_query_device, struct old_context *context, struct ibv_device_attr *attr)
{
	return ibv_query_device(context->real, attr);
}

OLD(int, ibv_query_port, struct old_context *context, uint8_t port_num,
    struct _compat_ibv_port_attr *attr)
{
	return ibv_query_port(context->real, port_num, attr);
}

OLD(int, ibv_query_gid, struct old_context *context, uint8_t port_num, int index,
    union ibv_gid *gid)
{
	return ibv_query_gid(context->real, port_num, index, gid);
}

OLD(int, ibv_query_pkey, struct old_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	return ibv_query_pkey(context->real, port_num, index, pkey);
}

/* --- events --- */

enum owner { OF_NOBODY, OF_CQ, OF_QP, OF_SRQ };

static const uint8_t owner_of_event[] = {
	[IBV_EVENT_CQ_ERR] = OF_CQ, [IBV_EVENT_QP_FATAL] = OF_QP, [IBV_EVENT_QP_REQ_ERR] = OF_QP,
	[IBV_EVENT_QP_ACCESS_ERR] = OF_QP, [IBV_EVENT_COMM_EST] = OF_QP,
	[IBV_EVENT_SQ_DRAINED] = OF_QP, [IBV_EVENT_PATH_MIG] = OF_QP,
	[IBV_EVENT_PATH_MIG_ERR] = OF_QP, [IBV_EVENT_QP_LAST_WQE_REACHED] = OF_QP,
	[IBV_EVENT_SRQ_ERR] = OF_SRQ, [IBV_EVENT_SRQ_LIMIT_REACHED] = OF_SRQ,
};

static enum owner owner_of(const struct ibv_async_event *event)
{
	unsigned type = event->event_type;

	return type < sizeof owner_of_event ? owner_of_event[type] : OF_NOBODY;
}

OLD(int, ibv_get_async_event, struct old_context *context, struct ibv_async_event *event)
{
	int error = ibv_get_async_event(context->real, event);
	enum owner owner = error ? OF_NOBODY : owner_of(event);

	if (owner == OF_CQ)
		event->element.cq = event->element.cq->cq_context;
	else if (owner == OF_QP)
		event->element.qp = event->element.qp->qp_context;
	else if (owner == OF_SRQ)
		event->element.srq = event->element.srq->srq_context;
	return error;
}

OLD(void, ibv_ack_async_event, struct ibv_async_event *event)
{
	struct ibv_async_event real = *event;
	enum owner owner = owner_of(event);

	if (owner == OF_CQ)
		real.element.cq = ((struct old_cq *)(void *)real.element.cq)->real;
	else if (owner == OF_QP)
		real.element.qp = ((struct old_qp *)(void *)real.element.qp)->real;
	else if (owner == OF_SRQ)
		real.element.srq = ((struct old_srq *)(void *)real.element.srq)->real;
	ibv_ack_async_event(&real);
}

OLD(int, ibv_get_cq_event, struct ibv_comp_channel *channel, struct old_cq **cq,
    void **cq_context)
{
	struct ibv_cq *real;
	void *old;
	int error = ibv_get_cq_event(channel, &real, &old);

	if (error)
		return error;
	*cq = old;
	*cq_context = (*cq)->cq_context;
	return 0;
}

OLD(void, ibv_ack_cq_events, struct old_cq *cq, unsigned int count)
{
	ibv_ack_cq_events(cq->real, count);
}

/* --- memory and addresses --- */

OLD(struct old_pd *, ibv_alloc_pd, struct old_context *context)
{
	return WRAP(old_pd, ibv_dealloc_pd, ibv_alloc_pd(context->real), .context = context);
}

OLD(int, ibv_dealloc_pd, struct old_pd *pd)
{
	return UNWRAP(pd, ibv_dealloc_pd);
}

OLD(struct old_mr *, ibv_reg_mr, struct old_pd *pd, void *addr, size_t length, int access)
{
	struct old_mr *mr = WRAP(old_mr, ibv_dereg_mr, ibv_reg_mr(pd->real, addr, length, access),
				 .context = pd->context, .pd = pd);

	if (!mr)
		return NULL;
	mr->lkey = mr->real->lkey;
	mr->rkey = mr->real->rkey;
	return mr;
}

OLD(int, ibv_dereg_mr, struct old_mr *mr)
{
	return UNWRAP(mr, ibv_dereg_mr);
}

OLD(struct old_ah *, ibv_create_ah, struct old_pd *pd, struct ibv_ah_attr *attr)
{
	return WRAP(old_ah, ibv_destroy_ah, ibv_create_ah(pd->real, attr), .context = pd->context,
		    .pd = pd);
}

OLD(int, ibv_destroy_ah, struct old_ah *ah)
{
	return UNWRAP(ah, ibv_destroy_ah);
}

/* --- queues --- */

OLD(struct old_cq *, ibv_create_cq, struct old_context *context, int cqe, void *cq_context,
    struct ibv_comp_channel *channel, int comp_vector)
{
	struct old_cq *cq = WRAP(old_cq, ibv_destroy_cq,
				 ibv_create_cq(context->real, cqe, NULL, channel, comp_vector),
				 .context = context, .cq_context = cq_context);

	if (!cq)
		return NULL;
	cq->cqe = cq->real->cqe;
	cq->real->cq_context = cq;
	return cq;
}

OLD(int, ibv_resize_cq, struct old_cq *cq, int cqe)
{
	int error = ibv_resize_cq(cq->real, cqe);

	cq->cqe = cq->real->cqe;
	return error;
}

OLD(int, ibv_destroy_cq, struct old_cq *cq)
{
	return UNWRAP(cq, ibv_destroy_cq);
}

OLD(struct old_srq *, ibv_create_srq, struct old_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct old_srq *srq = WRAP(old_srq, ibv_destroy_srq, ibv_create_srq(pd->real, attr),
				   .context = pd->context, .pd = pd,
				   .srq_context = attr->srq_context);

	if (srq)
		srq->real->srq_context = srq;
	return srq;
}

OLD(int, ibv_modify_srq, struct old_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	return ibv_modify_srq(srq->real, attr, mask);
}

OLD(int, ibv_query_srq, struct old_srq *srq, struct ibv_srq_attr *attr)
{
	return ibv_query_srq(srq->real, attr);
}

OLD(int, ibv_destroy_srq, struct old_srq *srq)
{
	return UNWRAP(srq, ibv_destroy_srq);
}

OLD(struct old_qp *, ibv_create_qp, struct old_pd *pd, struct old_qp_init_attr *attr)
{
	struct ibv_qp_init_attr real = {
		.send_cq = attr->send_cq->real, .recv_cq = attr->recv_cq->real,
		.srq = attr->srq ? attr->srq->real : NULL, .cap = attr->cap,
		.qp_type = attr->qp_type, .sq_sig_all = attr->sq_sig_all,
	};
	struct old_qp *qp = WRAP(old_qp, ibv_destroy_qp, ibv_create_qp(pd->real, &real),
				 .context = pd->context, .pd = pd, .srq = attr->srq,
				 .qp_context = attr->qp_context, .qp_type = attr->qp_type,
				 .send_cq = attr->send_cq, .recv_cq = attr->recv_cq);

	if (!qp)
		return NULL;
	attr->cap = real.cap;
	qp->qp_num = qp->real->qp_num;
	qp->real->qp_context = qp;
	return qp;
}

OLD(int, ibv_query_qp, struct old_qp *qp, struct ibv_qp_attr *attr, int mask,
    struct old_qp_init_attr *init_attr)
{
	struct ibv_qp_init_attr real;
	int error = ibv_query_qp(qp->real, attr, mask, &real);

	if (error)
		return error;
	qp->state = qp->real->state;
	*init_attr = (struct old_qp_init_attr){
		.qp_context = qp->qp_context, .send_cq = qp->send_cq, .recv_cq = qp->recv_cq,
		.srq = qp->srq, .cap = real.cap, .qp_type = real.qp_type,
		.sq_sig_all = real.sq_sig_all,
	};
	return 0;
}

OLD(int, ibv_modify_qp, struct old_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int error = ibv_modify_qp(qp->real, attr, mask);

	qp->state = qp->real->state;
	return error;
}

OLD(int, ibv_destroy_qp, struct old_qp *qp)
{
	return UNWRAP(qp, ibv_destroy_qp);
}

OLD(int, ibv_attach_mcast, struct old_qp *qp, union ibv_gid *gid, uint16_t lid)
{
	return ibv_attach_mcast(qp->real, gid, lid);
}

OLD(int, ibv_detach_mcast, struct old_qp *qp, union ibv_gid *gid, uint16_t lid)
{
	return ibv_detach_mcast(qp->real, gid, lid);
}

/* --- of 1.1, and no use any more: old providers of others call it when they are loaded --- */

void old_ibv_register_driver(const char *name, void *init);

__asm__(".symver old_ibv_register_driver, ibv_register_driver@IBVERBS_1.1");
VB_EXPORT void old_ibv_register_driver(const char *name, void *init)
{
	(void)name;
	(void)init;
}
