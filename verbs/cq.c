/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues: making, arming, resizing, destroying.  Reading them is poll.c.
 *
 * Source: device-abi B.9.3, C.9.
 */
#include <endian.h>
#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdlib.h>
#include <string.h>
#include "hw-models/hw.h"
#include "hw-models/mlx5_cqe.h"
#include "hw-models/mlx5_doorbell.h"
#include "verbs/cmd.h"
#include "verbs/event.h"
#include "verbs/foreign.h"
#include "verbs/ops.h"
#include "verbs/poll.h"
#include "verbs/queue.h"

#define CQE_MAX		((1u << 24) - 1)	/* the consumer index has 24 bits */
#define KNOWN_MASK	(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)
#define KNOWN_FLAGS	(IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)
#define STAMP_FLAGS \
	(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

/* 128-byte entries only where a program asks for them: half of what they hold is empty.  0: the
 * environment asks for a size that there is not. */
static uint32_t entry_bytes_wanted(void)
{
	const char *text = getenv("MLX5_CQE_SIZE");
	long bytes = text ? strtol(text, NULL, 10) : 64;

	return bytes == 64 || bytes == 128 ? (uint32_t)bytes : 0;
}

static void entries_begin(uint8_t *at, uint32_t entries, uint32_t entry_bytes)
{
	for (uint32_t i = 1; i <= entries; i++)
		at[(size_t)i * entry_bytes - 1] = HW_CQE_INVALID << 4;
}

static int ring_alloc(struct vb_cq *cq, struct vb_buf *buf, uint32_t entries)
{
	int error = vb_buf_alloc(buf, cq->context, cq->parent_domain,
				 (size_t)entries * cq->entry_bytes, VB_RESOURCE_CQ);

	if (!error)
		entries_begin(buf->at, entries, cq->entry_bytes);
	return error;
}

static int cq_command(struct vb_cq *cq, const struct ibv_cq_init_attr_ex *attr,
		      const struct vb_cq_extra *extra)
{
	struct ibv_context *context = &cq->context->base.context;
	struct mlx5_ib_create_cq driver = {
		.buf_addr = (uintptr_t)cq->at, .db_addr = (uintptr_t)cq->record,
		.cqe_size = cq->entry_bytes,
		.flags = (uint16_t)(MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX | extra->flags),
		.uar_page_index = (uint16_t)cq->arm_uar->page_id,
	};
	struct mlx5_ib_create_cq_resp driver_answer = { 0 };
	struct cmd cmd = cmd_new(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);
	unsigned at = cmd_object(&cmd, UVERBS_ATTR_CREATE_CQ_HANDLE, 0);
	uint32_t flags = (cq->ignores_overrun ? IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN : 0) |
			 (attr->wc_flags & STAMP_FLAGS ? IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION
						       : 0);
	uint32_t cqe = 0;
	int error;

	cmd_in_u32(&cmd, UVERBS_ATTR_CREATE_CQ_CQE, attr->cqe);
	cmd_in_u64(&cmd, UVERBS_ATTR_CREATE_CQ_USER_HANDLE, (uintptr_t)&cq->cq);
	if (attr->channel)
		cmd_fd(&cmd, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, attr->channel->fd);
	cmd_in_u32(&cmd, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, attr->comp_vector);
	if (flags)
		cmd_in_u32(&cmd, UVERBS_ATTR_CREATE_CQ_FLAGS, flags);
	cmd_out(&cmd, UVERBS_ATTR_CREATE_CQ_RESP_CQE, &cqe, sizeof cqe);
	cmd_fd(&cmd, UVERBS_ATTR_CREATE_CQ_EVENT_FD, context->async_fd);
	cmd_driver(&cmd, &driver, sizeof driver, &driver_answer, sizeof driver_answer);
	error = cmd_send(&cmd, context);
	if (error)
		return error;
	cq->cq.handle = cmd_handle(&cmd, at);
	cq->cq.cqe = (int)cqe;
	cq->cqn = driver_answer.cqn;
	return 0;
}

static int attr_check(const struct ibv_cq_init_attr_ex *attr)
{
	if (!attr->cqe || attr->cqe > CQE_MAX)
		return EINVAL;
	if (attr->comp_mask & ~KNOWN_MASK)
		return EINVAL;
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS && attr->flags & ~KNOWN_FLAGS)
		return EINVAL;
	return attr->wc_flags & ~(uint64_t)IBV_CREATE_CQ_SUP_WC_FLAGS ? ENOTSUP : 0;
}

static void cq_free(struct vb_cq *cq)
{
	vb_record_free(cq->context, cq->record);
	vb_buf_free(&cq->buf);
	vb_parent_release(cq->parent_domain);
	vb_event_state_end(&cq->cq.mutex, &cq->cq.cond);
	free(cq);
}

static void cq_fill(struct vb_cq *cq, struct vb_context *c, const struct ibv_cq_init_attr_ex *attr,
		    const struct vb_cq_extra *extra)
{
	uint32_t flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;

	cq->context = c;
	cq->entry_bytes = extra->entry_bytes ? extra->entry_bytes : entry_bytes_wanted();
	cq->entries = 1u << vb_log2_ceil((uint64_t)attr->cqe + 1);
	cq->ignores_overrun = flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	cq->lock.is_unneeded = flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	cq->wc_flags = attr->wc_flags;
	cq->arm_uar = &c->arm_uar;
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD)
		cq->parent_domain = attr->parent_domain;
	vb_parent_hold(cq->parent_domain);
	cq->cq.context = &c->base.context;
	cq->cq.channel = attr->channel;
	cq->cq.cq_context = attr->cq_context;
	vb_event_state_begin(&cq->cq.mutex, &cq->cq.cond);
}

static int cq_begin(struct vb_cq *cq, const struct ibv_cq_init_attr_ex *attr,
		    const struct vb_cq_extra *extra)
{
	bool is_padded = extra->flags & MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD;
	int error;

	if (!cq->entry_bytes || (is_padded && cq->entry_bytes != 128))
		return EINVAL;
	error = ring_alloc(cq, &cq->buf, cq->entries);
	if (error)
		return error;
	cq->at = cq->buf.at;
	cq->record = vb_record_alloc(cq->context);
	return cq->record ? cq_command(cq, attr, extra) : ENOMEM;
}

static const struct vb_cq_extra nothing_extra;

/* NULL and errno. */
static struct vb_cq *cq_make(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr,
			     const struct vb_cq_extra *extra)
{
	struct vb_cq *cq = NULL;
	int error = attr_check(attr);

	if (!error) {
		cq = calloc(1, sizeof *cq);
		error = cq ? 0 : ENOMEM;
	}
	if (!error) {
		cq_fill(cq, vb_context_of(context), attr, extra);
		error = cq_begin(cq, attr, extra);
		if (error)
			cq_free(cq);
	}
	if (error) {
		errno = error;
		return NULL;
	}
	vb_channel_hold(attr->channel);
	return cq;
}

VB_EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
				       struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe < 0 ? 0 : (uint32_t)cqe, .cq_context = cq_context, .channel = channel,
		.comp_vector = (uint32_t)comp_vector, .wc_flags = IBV_WC_STANDARD_FLAGS,
	};
	struct vb_cq *cq;

	if (!vb_is_ours(context))
		return FOREIGN(ibv_create_cq, context, cqe, cq_context, channel, comp_vector);
	cq = cq_make(context, &attr, &nothing_extra);
	return cq ? ibv_cq_ex_to_cq(&cq->cq) : NULL;
}

struct ibv_cq_ex *vb_cq_create_ex(struct ibv_context *context,
				  const struct ibv_cq_init_attr_ex *attr,
				  const struct vb_cq_extra *extra)
{
	struct vb_cq *cq = cq_make(context, attr, extra);

	if (!cq)
		return NULL;
	vb_poll_fill(cq);
	return &cq->cq;
}

struct ibv_cq_ex *vb_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	return vb_cq_create_ex(context, attr, &nothing_extra);
}

VB_EXPORT int ibv_destroy_cq(struct ibv_cq *base)
{
	struct vb_cq *cq = vb_cq_of(base);
	struct ib_uverbs_destroy_cq_resp answer = { 0 };
	struct cmd cmd = cmd_new(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY);
	int error;

	if (!vb_is_ours(base->context))
		return FOREIGN(ibv_destroy_cq, base);
	cmd_object(&cmd, UVERBS_ATTR_DESTROY_CQ_HANDLE, base->handle);
	cmd_out(&cmd, UVERBS_ATTR_DESTROY_CQ_RESP, &answer, sizeof answer);
	error = cmd_send(&cmd, base->context);
	if (error)
		return error;
	vb_channel_release(base->channel);
	vb_events_await(&base->mutex, &base->cond, &base->comp_events_completed,
			answer.comp_events_reported);
	vb_events_await(&base->mutex, &base->cond, &base->async_events_completed,
			answer.async_events_reported);
	cq_free(cq);
	return 0;
}

int vb_req_notify_cq(struct ibv_cq *base, int solicited_only)
{
	struct vb_cq *cq = vb_cq_of(base);
	struct mlx5_uar_arm arm = { { { 0 } } };
	uint64_t doorbell;

	mlx5_uar_arm_set_arm_sn(&arm, __atomic_load_n(&cq->arm_sn, __ATOMIC_RELAXED) & 3);
	mlx5_uar_arm_set_arm_solicited(&arm, solicited_only != 0);
	mlx5_uar_arm_set_arm_consumed(&arm, __atomic_load_n(&cq->consumed, __ATOMIC_RELAXED) &
					    CQE_MAX);
	mlx5_uar_arm_set_cqn(&arm, cq->cqn);
	memcpy(&doorbell, &arm, sizeof doorbell);
	/* The record before the register, and both before whatever is polled next. */
	__atomic_store_n(&cq->record[1], arm.dw[0].raw, __ATOMIC_SEQ_CST);
	__atomic_store_n((uint64_t *)(void *)(cq->arm_uar->page + MLX5_UAR_CQ_ARM), doorbell,
			 __ATOMIC_SEQ_CST);
	if (cq->context->channel.ops->armed)
		cq->context->channel.ops->armed(&cq->context->channel, base->handle);
	return 0;
}

int vb_modify_cq(struct ibv_cq *base, struct ibv_modify_cq_attr *attr)
{
	struct ib_uverbs_ex_modify_cq request = {
		.cq_handle = base->handle, .attr_mask = attr->attr_mask,
		.attr = { .cq_count = attr->moderate.cq_count,
			  .cq_period = attr->moderate.cq_period },
	};
	struct cmd_write w = { .command = CMD_EXTENDED | IB_USER_VERBS_EX_CMD_MODIFY_CQ,
			       .in = &request, .in_bytes = sizeof request };

	return attr->attr_mask >= IBV_CQ_ATTR_RESERVED ? EINVAL : cmd_write(&w, base->context);
}

/* --- completions of queues that go away --- */

static uint8_t *entry_at(const struct vb_cq *cq, uint32_t index)
{
	return cq->at + (size_t)(index & (cq->entries - 1)) * cq->entry_bytes;
}

static struct mlx5_cqe *cqe_at(const struct vb_cq *cq, uint32_t index)
{
	return (struct mlx5_cqe *)(void *)(entry_at(cq, index) + cq->entry_bytes - MLX5_CQE_BYTES);
}

static void cqe_drop(struct mlx5_cqe *cqe, struct vb_srq *srq)
{
	uint32_t kind = mlx5_cqe_kind(cqe);

	if (srq && kind != HW_CQE_REQ && kind != HW_CQE_REQ_ERR)
		vb_srq_give_back(srq, mlx5_cqe_wqe_counter(cqe));
}

/* Entries that stay move to the end of what is unread; each place keeps its owner bit. */
static void entry_move(const struct vb_cq *cq, uint32_t to, uint32_t from)
{
	struct mlx5_cqe *at = cqe_at(cq, to);
	uint32_t owner = mlx5_cqe_owner(at);

	memcpy(entry_at(cq, to), entry_at(cq, from), cq->entry_bytes);
	mlx5_cqe_set_owner(at, owner);
}

static void clean_locked(struct vb_cq *cq, const struct vb_queue *queue, struct vb_srq *srq)
{
	uint32_t end = cq->consumed, dropped = 0;

	while (end - cq->consumed < cq->entries && vb_cqe_is_new(cq, end))
		end++;
	for (uint32_t i = end; i-- != cq->consumed;) {
		struct mlx5_cqe *cqe = cqe_at(cq, i);

		if (mlx5_cqe_user_index(cqe) == queue->user_index) {
			cqe_drop(cqe, srq);
			dropped++;
		} else if (dropped) {
			entry_move(cq, i + dropped, i);
		}
	}
	vb_cq_consume(cq, dropped);
	vb_cq_publish(cq);
}

/* How far a program has read that reads for itself is not known here. */
void vb_cq_clean(struct vb_cq *cq, const struct vb_queue *queue, struct vb_srq *srq)
{
	if (cq->last_queue == queue)
		cq->last_queue = NULL;
	if (!cq->is_raw)
		clean_locked(cq, queue, srq);
}

void vb_cq_lock_two(struct vb_cq *a, struct vb_cq *b)
{
	struct vb_cq *first = !b || (a && a->cqn < b->cqn) ? a : b;
	struct vb_cq *second = first == a ? b : a;

	if (first)
		vb_lock(&first->lock);
	if (second && second != first)
		vb_lock(&second->lock);
}

void vb_cq_unlock_two(struct vb_cq *a, struct vb_cq *b)
{
	if (a)
		vb_unlock(&a->lock);
	if (b && b != a)
		vb_unlock(&b->lock);
}

/* --- resizing --- */

/* What is unread moves over, each to the index behind its own: the device has used the one between
 * for the entry that says where it left.  ENODATA: that entry is not there. */
static int ring_carry_over(struct vb_cq *cq, uint8_t *to, uint32_t entries)
{
	uint32_t i = cq->consumed;
	uint8_t *at;

	for (; vb_cqe_is_new(cq, i) && mlx5_cqe_kind(cqe_at(cq, i)) != HW_CQE_RESIZE; i++) {
		at = to + (size_t)((i + 1) & (entries - 1)) * cq->entry_bytes;
		memcpy(at, entry_at(cq, i), cq->entry_bytes);
		at[cq->entry_bytes - 1] = (uint8_t)((at[cq->entry_bytes - 1] & ~1u) |
						    ((i + 1) & entries ? 1u : 0u));
	}
	return vb_cqe_is_new(cq, i) ? 0 : ENODATA;
}

static void ring_replace(struct vb_cq *cq, struct vb_buf *fresh, uint32_t entries)
{
	struct vb_buf old = cq->buf;

	cq->buf = *fresh;
	cq->at = fresh->at;
	cq->entries = entries;
	vb_cq_consume(cq, 1);
	*fresh = old;
}

static int resize_command(struct vb_cq *cq, uint32_t cqe, const struct vb_buf *fresh)
{
	struct ib_uverbs_resize_cq request = { .cq_handle = cq->cq.handle, .cqe = cqe };
	struct ib_uverbs_resize_cq_resp answer = { 0 };
	struct mlx5_ib_resize_cq driver = { .buf_addr = (uintptr_t)fresh->at,
					    .cqe_size = (uint16_t)cq->entry_bytes };
	struct cmd_write w = {
		.command = IB_USER_VERBS_CMD_RESIZE_CQ, .in = &request, .in_bytes = sizeof request,
		.out = &answer, .out_bytes = sizeof answer,
		.driver_in = &driver, .driver_in_bytes = sizeof driver,
	};
	int error = cmd_write(&w, &cq->context->base.context);

	if (!error)
		cq->cq.cqe = (int)answer.cqe;
	return error;
}

static int resize_locked(struct vb_cq *cq, uint32_t cqe)
{
	uint32_t entries = 1u << vb_log2_ceil((uint64_t)cqe + 1);
	struct vb_buf fresh;
	int error;

	if (entries == cq->entries)
		return 0;
	error = ring_alloc(cq, &fresh, entries);
	if (error)
		return error;
	error = resize_command(cq, cqe, &fresh);
	if (error) {
		vb_buf_free(&fresh);
		return error;
	}
	/* From now on the device writes there, whatever it left here. */
	error = ring_carry_over(cq, fresh.at, entries);
	if (error)
		return error;
	ring_replace(cq, &fresh, entries);
	vb_buf_free(&fresh);
	vb_cq_publish(cq);
	return 0;
}

VB_EXPORT int ibv_resize_cq(struct ibv_cq *base, int cqe)
{
	struct vb_cq *cq = vb_cq_of(base);
	int error;

	if (!vb_is_ours(base->context))
		return FOREIGN(ibv_resize_cq, base, cqe);
	if (cqe <= 0 || (uint32_t)cqe > CQE_MAX)
		return vb_fail(EINVAL);
	vb_lock(&cq->lock);
	error = resize_locked(cq, (uint32_t)cqe);
	vb_unlock(&cq->lock);
	return error ? vb_fail(error) : 0;
}
