/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive work queues, and tables that spread packets over them.  Posting is in recv.c.
 *
 * Source: device-abi B.9, B.9.4, C.4, H.3; ibv_create_wq(3), ibv_create_rwq_ind_table(3).
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdlib.h>
#include "hw-models/mlx5_wqe.h"
#include "verbs/cmd.h"
#include "verbs/event.h"
#include "verbs/ops.h"
#include "verbs/wq.h"

#define RING_BYTES_MIN	64u
/* What a parent domain's allocator is told, MLX5DV_RES_TYPE_RWQ. */
#define RESOURCE_WQ	((uint64_t)RDMA_DRIVER_MLX5 << 32 | 2)

/* --- making --- */

static int size_ring(const struct vb_context *c, struct vb_ring *r,
		     const struct ibv_wq_init_attr *attr)
{
	uint64_t bytes = (uint64_t)MLX5_UNIT_BYTES *
			 ((attr->max_sge ? attr->max_sge : 1) + (uint64_t)r->list_at);

	if (!attr->max_wr || attr->max_wr > c->limits.max_recv_wr ||
	    bytes > c->limits.max_rq_desc_bytes)
		return EINVAL;
	r->entry_shift = vb_log2_ceil(bytes);
	r->entries = 1u << vb_log2_ceil(attr->max_wr);
	while (r->entries << r->entry_shift < RING_BYTES_MIN)
		r->entries *= 2;
	r->max_post = r->entries;
	r->max_sge = (1u << r->entry_shift) / MLX5_UNIT_BYTES - r->list_at;
	return 0;
}

static int attributes_check(const struct ibv_wq_init_attr *attr)
{
	if (attr->wq_type != IBV_WQT_RQ || attr->comp_mask >= IBV_WQ_INIT_ATTR_RESERVED)
		return EINVAL;
	if (attr->comp_mask & IBV_WQ_INIT_ATTR_FLAGS && attr->create_flags >= IBV_WQ_FLAGS_RESERVED)
		return EOPNOTSUPP;
	return 0;
}

static void memory_free(struct vb_wq *wq)
{
	vb_record_free(vb_context_of(wq->wq.context), wq->record);
	vb_buf_free(&wq->buf);
	vb_ring_free(&wq->ring);
	vb_parent_release(wq->wq.pd);
}

/* What is there when it fails is freed by memory_free(). */
static int memory_alloc(struct vb_wq *wq, const struct ibv_wq_init_attr *attr)
{
	struct vb_context *c = vb_context_of(wq->wq.context);
	int error = size_ring(c, &wq->ring, attr);

	if (!error)
		error = vb_ring_alloc(&wq->ring, false);
	if (!error)
		error = vb_buf_alloc(&wq->buf, c, attr->pd,
				     (size_t)wq->ring.entries << wq->ring.entry_shift, RESOURCE_WQ);
	if (error)
		return error;
	wq->ring.at = wq->buf.at;
	wq->record = vb_record_alloc(c);
	return wq->record ? 0 : ENOMEM;
}

static struct mlx5_ib_create_wq driver_part(const struct vb_wq *wq,
					    const struct vb_strides *strides)
{
	struct mlx5_ib_create_wq ask = {
		.buf_addr = (uintptr_t)wq->buf.at, .db_addr = (uintptr_t)wq->record,
		.rq_wqe_count = wq->ring.entries, .rq_wqe_shift = wq->ring.entry_shift,
		.user_index = wq->queue.user_index,
	};

	if (!strides)
		return ask;
	ask.comp_mask = MLX5_IB_CREATE_WQ_STRIDING_RQ;
	ask.single_stride_log_num_of_bytes = strides->bytes_log;
	ask.single_wqe_log_num_of_strides = strides->count_log;
	ask.two_byte_shift_en = strides->shifts_two_bytes;
	return ask;
}

static int create_command(struct vb_wq *wq, struct ibv_wq_init_attr *attr,
			  const struct vb_strides *strides)
{
	struct ibv_context *context = wq->wq.context;
	const struct mlx5_ib_create_wq ask = driver_part(wq, strides);
	struct mlx5_ib_create_wq_resp answer = { 0 };
	struct cmd cmd = cmd_new(UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_CREATE);
	unsigned at = cmd_object(&cmd, UVERBS_ATTR_CREATE_WQ_HANDLE, 0);
	int error;

	cmd_object(&cmd, UVERBS_ATTR_CREATE_WQ_PD_HANDLE, attr->pd->handle);
	cmd_object(&cmd, UVERBS_ATTR_CREATE_WQ_CQ_HANDLE, attr->cq->handle);
	cmd_fd(&cmd, UVERBS_ATTR_CREATE_WQ_EVENT_FD, context->async_fd);
	cmd_in_u64(&cmd, UVERBS_ATTR_CREATE_WQ_USER_HANDLE, (uintptr_t)&wq->wq);
	cmd_in_u64(&cmd, UVERBS_ATTR_CREATE_WQ_TYPE, attr->wq_type);
	cmd_in_u32(&cmd, UVERBS_ATTR_CREATE_WQ_MAX_WR, attr->max_wr);
	cmd_in_u32(&cmd, UVERBS_ATTR_CREATE_WQ_MAX_SGE, attr->max_sge);
	cmd_in_u32(&cmd, UVERBS_ATTR_CREATE_WQ_FLAGS,
		   attr->comp_mask & IBV_WQ_INIT_ATTR_FLAGS ? attr->create_flags : 0);
	cmd_out(&cmd, UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR, &attr->max_wr, sizeof attr->max_wr);
	cmd_out(&cmd, UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE, &attr->max_sge, sizeof attr->max_sge);
	cmd_out(&cmd, UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM, &wq->wq.wq_num, sizeof wq->wq.wq_num);
	cmd_driver(&cmd, &ask, sizeof ask, &answer, sizeof answer);
	error = cmd_send(&cmd, context);
	wq->wq.handle = cmd_handle(&cmd, at);
	return error;
}

static int wq_begin(struct vb_wq *wq, struct ibv_wq_init_attr *attr,
		    const struct vb_strides *strides)
{
	struct vb_context *c = vb_context_of(wq->wq.context);
	struct vb_td *td = vb_td_of(attr->pd);
	int error;

	wq->ring.list_at = strides ? sizeof(struct mlx5_srq_next) / MLX5_UNIT_BYTES : 0;
	wq->strides = strides ? 1u << strides->count_log : 0;
	wq->has_checksums = c->attr.orig_attr.device_cap_flags & IBV_DEVICE_RAW_IP_CSUM;
	error = memory_alloc(wq, attr);
	vb_parent_hold(attr->pd);
	wq->ring.lock.is_unneeded = td && !td->is_shared;
	wq->queue.kind = VB_WQ;
	if (!error)
		error = vb_queue_add(c, &wq->queue);
	if (error)
		return error;
	error = create_command(wq, attr, strides);
	if (error)
		vb_queue_remove(c, &wq->queue);
	return error;
}

struct ibv_wq *vb_wq_create(struct ibv_context *context, struct ibv_wq_init_attr *wq_init_attr,
			    const struct vb_strides *strides)
{
	int error = attributes_check(wq_init_attr);
	struct vb_wq *wq = error ? NULL : calloc(1, sizeof *wq);

	if (!wq) {
		errno = error ? error : ENOMEM;
		return NULL;
	}
	wq->wq = (struct ibv_wq){
		.context = context,
		.pd = wq_init_attr->pd,
		.cq = wq_init_attr->cq,
		.wq_type = wq_init_attr->wq_type,
		.state = IBV_WQS_RESET,
		.post_recv = vb_post_wq_recv,
	};
	error = wq_begin(wq, wq_init_attr, strides);
	if (!error)
		return &wq->wq;
	memory_free(wq);
	free(wq);
	errno = error;
	return NULL;
}

struct ibv_wq *vb_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *wq_init_attr)
{
	return vb_wq_create(context, wq_init_attr, NULL);
}

/* --- changing --- */

static void forget_completions(struct vb_wq *wq)
{
	struct vb_cq *cq = vb_cq_of(wq->wq.cq);

	vb_lock(&cq->lock);
	vb_cq_clean(cq, &wq->queue, NULL);
	vb_unlock(&cq->lock);
}

/* Whatever was posted before a reset is gone. */
static void start_over(struct vb_wq *wq)
{
	forget_completions(wq);
	vb_lock(&wq->ring.lock);
	vb_ring_reset(&wq->ring);
	wq->strides_used = 0;
	wq->record[0] = wq->record[1] = 0;
	vb_unlock(&wq->ring.lock);
}

static int modify_check(const struct ibv_wq *wq, const struct ibv_wq_attr *attr)
{
	bool readies = attr->attr_mask & IBV_WQ_ATTR_STATE && attr->wq_state == IBV_WQS_RDY;

	if (attr->attr_mask >= IBV_WQ_ATTR_RESERVED)
		return EINVAL;
	if (readies && attr->attr_mask & IBV_WQ_ATTR_CURR_STATE && attr->curr_wq_state != wq->state)
		return EINVAL;
	if (attr->attr_mask & IBV_WQ_ATTR_FLAGS && attr->flags_mask >= IBV_WQ_FLAGS_RESERVED)
		return EOPNOTSUPP;
	return 0;
}

int vb_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr)
{
	bool has_flags = attr->attr_mask & IBV_WQ_ATTR_FLAGS;
	const struct ib_uverbs_ex_modify_wq ask = {
		.attr_mask = attr->attr_mask,
		.wq_handle = wq->handle,
		.wq_state = attr->wq_state,
		.curr_wq_state = attr->curr_wq_state,
		.flags = has_flags ? attr->flags : 0,
		.flags_mask = has_flags ? attr->flags_mask : 0,
	};
	const struct mlx5_ib_modify_wq driver = { 0 };
	const struct cmd_write w = {
		.command = CMD_EXTENDED | IB_USER_VERBS_EX_CMD_MODIFY_WQ,
		.in = &ask, .in_bytes = sizeof ask,
		.driver_in = &driver, .driver_in_bytes = sizeof driver,
	};
	int error = modify_check(wq, attr);

	if (error)
		return error;
	if (attr->attr_mask & IBV_WQ_ATTR_STATE && attr->wq_state == IBV_WQS_RDY &&
	    wq->state == IBV_WQS_RESET)
		start_over(vb_wq_of(wq));
	error = cmd_write(&w, wq->context);
	if (!error && attr->attr_mask & IBV_WQ_ATTR_STATE)
		wq->state = attr->wq_state;
	return error;
}

int vb_destroy_wq(struct ibv_wq *wq)
{
	struct vb_wq *own = vb_wq_of(wq);
	struct cmd cmd = cmd_new(UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_DESTROY);
	uint32_t reported = 0;
	int error;

	cmd_object(&cmd, UVERBS_ATTR_DESTROY_WQ_HANDLE, wq->handle);
	cmd_out(&cmd, UVERBS_ATTR_DESTROY_WQ_RESP, &reported, sizeof reported);
	error = cmd_send(&cmd, wq->context);
	if (error)
		return error;
	vb_events_await(&wq->mutex, &wq->cond, &wq->events_completed, reported);
	forget_completions(own);
	vb_queue_remove(vb_context_of(wq->context), &own->queue);
	memory_free(own);
	free(own);
	return 0;
}

/* --- tables --- */

#define TABLE_LOG_MAX	13u	/* 8192 handles; an attribute's length is 16 bits */

struct table_ask {
	struct ib_uverbs_ex_create_rwq_ind_table head;
	uint32_t handle[1u << TABLE_LOG_MAX];
};
_Static_assert(offsetof(struct table_ask, handle) ==
	       sizeof(struct ib_uverbs_ex_create_rwq_ind_table), "handles follow directly");

static int table_command(struct ibv_rwq_ind_table *table, struct table_ask *ask)
{
	size_t bytes = sizeof ask->head + (sizeof *ask->handle << ask->head.log_ind_tbl_size);
	struct ib_uverbs_ex_create_rwq_ind_table_resp answer = { 0 };
	struct mlx5_ib_create_rwq_ind_tbl_resp driver = { 0 };
	const struct cmd_write w = {
		.command = CMD_EXTENDED | IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL,
		/* Whole words of eight bytes; what is behind the handles is zero. */
		.in = ask, .in_bytes = (bytes + 7) / 8 * 8,
		.out = &answer, .out_bytes = sizeof answer,
		.driver_out = &driver, .driver_out_bytes = sizeof driver,
	};
	int error = cmd_write(&w, table->context);

	if (!error && answer.response_length < sizeof answer)
		error = EINVAL;
	table->ind_tbl_handle = (int)answer.ind_tbl_handle;
	table->ind_tbl_num = (int)answer.ind_tbl_num;
	return error;
}

static int table_fill(struct ibv_rwq_ind_table *table,
		      const struct ibv_rwq_ind_table_init_attr *attr)
{
	struct table_ask *ask;
	int error;

	if (attr->comp_mask >= IBV_CREATE_IND_TABLE_RESERVED ||
	    attr->log_ind_tbl_size > TABLE_LOG_MAX)
		return EINVAL;
	ask = calloc(1, sizeof *ask);
	if (!ask)
		return ENOMEM;
	ask->head.log_ind_tbl_size = attr->log_ind_tbl_size;
	for (uint32_t i = 0; i < 1u << attr->log_ind_tbl_size; i++)
		ask->handle[i] = attr->ind_tbl[i]->handle;
	error = table_command(table, ask);
	free(ask);
	return error;
}

struct ibv_rwq_ind_table *vb_create_rwq_ind_table(struct ibv_context *context,
						  struct ibv_rwq_ind_table_init_attr *init_attr)
{
	struct ibv_rwq_ind_table *table = calloc(1, sizeof *table);
	int error = table ? 0 : ENOMEM;

	if (table) {
		table->context = context;
		error = table_fill(table, init_attr);
	}
	if (!error)
		return table;
	free(table);
	errno = error;
	return NULL;
}

int vb_destroy_rwq_ind_table(struct ibv_rwq_ind_table *rwq_ind_table)
{
	int error = cmd_destroy(rwq_ind_table->context, UVERBS_OBJECT_RWQ_IND_TBL,
				UVERBS_METHOD_RWQ_IND_TBL_DESTROY,
				UVERBS_ATTR_DESTROY_RWQ_IND_TBL_HANDLE,
				(uint32_t)rwq_ind_table->ind_tbl_handle);

	if (!error)
		free(rwq_ind_table);
	return error;
}
