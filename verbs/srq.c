/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues: making, changing, destroying.  Posting to them is recv.c.
 *
 * The device follows a list through the entries, so that they may come back in any order; one entry
 * more than may be posted keeps the list from ending.
 *
 * Source: device-abi B.9.2, C.4; inventory 1.19, 1.20.
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdlib.h>
#include "hw-models/mlx5_wqe.h"
#include "verbs/cmd.h"
#include "verbs/event.h"
#include "verbs/foreign.h"
#include "verbs/ops.h"
#include "verbs/queue.h"
#include "verbs/xrcd.h"

#define KNOWN_MASK (IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | \
		    IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM)
#define XRC_MASK (IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ)
#define ENTRY_BYTES_MIN 32u

static enum ibv_srq_type type_of(const struct ibv_srq_init_attr_ex *attr)
{
	return attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? attr->srq_type : IBV_SRQT_BASIC;
}

/* Tag matching is not built: no device of ours offers it. */
static int attr_check(const struct vb_context *c, const struct ibv_srq_init_attr_ex *attr)
{
	if (attr->comp_mask & ~KNOWN_MASK)
		return EINVAL;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd)
		return EINVAL;
	if (type_of(attr) == IBV_SRQT_TM)
		return EOPNOTSUPP;
	if (type_of(attr) == IBV_SRQT_XRC &&
	    ((attr->comp_mask & XRC_MASK) != XRC_MASK || !attr->xrcd || !attr->cq))
		return EINVAL;
	if (attr->attr.max_wr > c->limits.max_srq_recv_wr)
		return EINVAL;
	return (attr->attr.max_sge + 1) * MLX5_UNIT_BYTES > c->limits.max_rq_desc_bytes ||
	       attr->attr.max_sge > c->limits.max_rq_desc_bytes ? EINVAL : 0;
}

static void srq_size(struct vb_srq *srq, const struct ibv_srq_attr *attr)
{
	uint32_t bytes = MLX5_UNIT_BYTES + attr->max_sge * MLX5_UNIT_BYTES;

	srq->ring.entry_shift = vb_log2_ceil(bytes < ENTRY_BYTES_MIN ? ENTRY_BYTES_MIN : bytes);
	srq->ring.entries = 1u << vb_log2_ceil((uint64_t)attr->max_wr + 1);
	srq->ring.max_post = srq->ring.entries - 1;
	srq->ring.max_sge = (1u << srq->ring.entry_shift) / MLX5_UNIT_BYTES - 1;
}

static int srq_command(struct vb_srq *srq, const struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_context *context = srq->srq.context;
	struct mlx5_ib_create_srq driver = {
		.buf_addr = (uintptr_t)srq->buf.at, .db_addr = (uintptr_t)srq->record,
		.uidx = srq->is_xrc ? srq->queue.user_index : 0,
	};
	struct mlx5_ib_create_srq_resp driver_answer = { 0 };
	struct cmd cmd = cmd_new(UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE);
	unsigned at = cmd_object(&cmd, UVERBS_ATTR_CREATE_SRQ_HANDLE, 0);
	uint32_t max_wr = 0, max_sge = 0, srqn = 0;
	int error;

	cmd_object(&cmd, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, attr->pd->handle);
	if (srq->is_xrc) {
		cmd_object(&cmd, UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE,
			   vb_xrcd_of(attr->xrcd)->handle);
		cmd_object(&cmd, UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE, attr->cq->handle);
	}
	cmd_in_u64(&cmd, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, (uintptr_t)&srq->srq);
	cmd_in_u32(&cmd, UVERBS_ATTR_CREATE_SRQ_MAX_WR, srq->ring.max_post);
	cmd_in_u32(&cmd, UVERBS_ATTR_CREATE_SRQ_MAX_SGE, srq->ring.max_sge);
	cmd_in_u32(&cmd, UVERBS_ATTR_CREATE_SRQ_LIMIT, attr->attr.srq_limit);
	cmd_in_u64(&cmd, UVERBS_ATTR_CREATE_SRQ_TYPE, type_of(attr));
	cmd_fd(&cmd, UVERBS_ATTR_CREATE_SRQ_EVENT_FD, context->async_fd);
	cmd_out(&cmd, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, &max_wr, sizeof max_wr);
	cmd_out(&cmd, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, &max_sge, sizeof max_sge);
	if (srq->is_xrc)
		cmd_out(&cmd, UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, &srqn, sizeof srqn);
	cmd_driver(&cmd, &driver, sizeof driver, &driver_answer, sizeof driver_answer);
	error = cmd_send(&cmd, context);
	if (error)
		return error;
	srq->srq.handle = cmd_handle(&cmd, at);
	srq->srqn = driver_answer.srqn;
	return 0;
}

static void srq_free(struct vb_context *c, struct vb_srq *srq, bool is_listed)
{
	if (is_listed)
		vb_queue_remove(c, &srq->queue);
	vb_record_free(c, srq->record);
	vb_buf_free(&srq->buf);
	vb_ring_free(&srq->ring);
	vb_parent_release(srq->srq.pd);
	vb_event_state_end(&srq->srq.mutex, &srq->srq.cond);
	free(srq);
}

static int srq_memory(struct vb_context *c, struct vb_srq *srq)
{
	int error = vb_ring_alloc(&srq->ring, false);

	if (!error)
		error = vb_buf_alloc(&srq->buf, c, srq->srq.pd,
				     (size_t)srq->ring.entries << srq->ring.entry_shift,
				     VB_RESOURCE_SRQ);
	if (error)
		return error;
	srq->ring.at = srq->buf.at;
	srq->record = vb_record_alloc(c);
	vb_srq_list_begin(srq);
	return srq->record ? 0 : ENOMEM;
}

static int srq_begin(struct vb_context *c, struct vb_srq *srq, struct ibv_srq_init_attr_ex *attr)
{
	bool is_listed = false;
	int error;

	vb_event_state_begin(&srq->srq.mutex, &srq->srq.cond);
	error = srq_memory(c, srq);
	if (!error) {
		error = srq->is_xrc ? vb_queue_add(c, &srq->queue) : 0;
		is_listed = srq->is_xrc && !error;
	}
	if (!error)
		error = srq_command(srq, attr);
	if (error)
		srq_free(c, srq, is_listed);
	return error;
}

static struct vb_srq *srq_new(struct ibv_context *context, const struct ibv_srq_init_attr_ex *attr)
{
	struct vb_srq *srq = calloc(1, sizeof *srq);

	if (!srq)
		return NULL;
	srq->queue.kind = VB_SRQ;
	srq->is_xrc = type_of(attr) == IBV_SRQT_XRC;
	srq->cq = srq->is_xrc ? vb_cq_of(attr->cq) : NULL;
	srq->srq.context = context;
	srq->srq.srq_context = attr->srq_context;
	srq->srq.pd = attr->pd;
	vb_parent_hold(attr->pd);
	srq_size(srq, &attr->attr);
	return srq;
}

struct ibv_srq *vb_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	struct vb_context *c = vb_context_of(context);
	struct vb_srq *srq = NULL;
	int error = attr_check(c, attr);

	if (!error) {
		srq = srq_new(context, attr);
		error = srq ? srq_begin(c, srq, attr) : ENOMEM;
	}
	if (error) {
		errno = error;
		return NULL;
	}
	attr->attr.max_wr = srq->ring.max_post;
	attr->attr.max_sge = srq->ring.max_sge;
	return &srq->srq;
}

VB_EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex extended = {
		.srq_context = attr->srq_context, .attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC, .pd = pd,
	};
	struct ibv_srq *srq;

	if (!vb_is_ours(pd->context))
		return FOREIGN(ibv_create_srq, pd, attr);
	srq = vb_create_srq_ex(pd->context, &extended);
	if (srq)
		attr->attr = extended.attr;
	return srq;
}

VB_EXPORT int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int attr_mask)
{
	struct ib_uverbs_modify_srq request = {
		.srq_handle = srq->handle, .attr_mask = (uint32_t)attr_mask,
		.max_wr = attr->max_wr, .srq_limit = attr->srq_limit,
	};
	struct cmd_write w = { .command = IB_USER_VERBS_CMD_MODIFY_SRQ,
			       .in = &request, .in_bytes = sizeof request };

	return vb_is_ours(srq->context) ? cmd_write(&w, srq->context) :
	       FOREIGN(ibv_modify_srq, srq, attr, attr_mask);
}

VB_EXPORT int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct ib_uverbs_query_srq request = { .srq_handle = srq->handle };
	struct ib_uverbs_query_srq_resp answer = { 0 };
	struct cmd_write w = {
		.command = IB_USER_VERBS_CMD_QUERY_SRQ, .in = &request, .in_bytes = sizeof request,
		.out = &answer, .out_bytes = sizeof answer,
	};
	int error;

	if (!vb_is_ours(srq->context))
		return FOREIGN(ibv_query_srq, srq, attr);
	error = cmd_write(&w, srq->context);
	if (error)
		return error;
	*attr = (struct ibv_srq_attr){ .max_wr = answer.max_wr, .max_sge = answer.max_sge,
				       .srq_limit = answer.srq_limit };
	return 0;
}

/* Also of a plain one: whoever connects dynamically may want to tell it. */
int vb_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num)
{
	*srq_num = vb_srq_of(srq)->srqn;
	return 0;
}

VB_EXPORT int ibv_destroy_srq(struct ibv_srq *base)
{
	struct vb_srq *srq = vb_srq_of(base);
	struct vb_context *c = vb_context_of(base->context);
	struct ib_uverbs_destroy_srq_resp answer = { 0 };
	struct cmd cmd = cmd_new(UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY);
	int error;

	if (!vb_is_ours(base->context))
		return FOREIGN(ibv_destroy_srq, base);
	cmd_object(&cmd, UVERBS_ATTR_DESTROY_SRQ_HANDLE, base->handle);
	cmd_out(&cmd, UVERBS_ATTR_DESTROY_SRQ_RESP, &answer, sizeof answer);
	error = cmd_send(&cmd, base->context);
	if (error)
		return error;
	vb_events_await(&base->mutex, &base->cond, &base->events_completed,
			answer.events_reported);
	if (srq->cq) {
		vb_lock(&srq->cq->lock);
		vb_cq_clean(srq->cq, &srq->queue, NULL);
		vb_unlock(&srq->cq->lock);
	}
	srq_free(c, srq, srq->is_xrc);
	return 0;
}
