/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posting receives: to the queue of a QP, to a shared one, to a work queue.
 *
 * A receive is a list of data segments in an entry of fixed size; pieces of no bytes are left out,
 * and a list that does not fill the entry ends with the key that ends lists.
 *
 * Source: device-abi C.4, F.2.
 */
#include <errno.h>
#include <string.h>
#include "hw-models/hw.h"
#include "hw-models/mlx5_wqe.h"
#include "verbs/ops.h"
#include "verbs/queue.h"
#include "verbs/wq.h"

static struct mlx5_data data_of(const struct ibv_sge *sge)
{
	struct mlx5_data seg;

	seg.dw[0] = be32_of(sge->length);
	seg.dw[1] = be32_of(sge->lkey);
	mlx5_data_set_addr(&seg, sge->addr);
	return seg;
}

static const struct ibv_sge list_end = { .lkey = HW_LKEY_END };

/* The list in @slots places at @at. */
static void put_list(uint8_t *at, uint32_t slots, const struct ibv_recv_wr *wr)
{
	struct mlx5_data seg;
	uint32_t used = 0;

	for (int i = 0; i < wr->num_sge; i++) {
		if (!wr->sg_list[i].length)
			continue;
		seg = data_of(&wr->sg_list[i]);
		memcpy(at + used++ * sizeof seg, &seg, sizeof seg);
	}
	if (used < slots) {
		seg = data_of(&list_end);
		memcpy(at + used * sizeof seg, &seg, sizeof seg);
	}
}

static void record_publish(uint32_t *record, uint32_t count)
{
	__atomic_store_n(record, htobe32(count), __ATOMIC_RELEASE);
}

static int put_receive(struct vb_ring *r, const struct ibv_recv_wr *wr)
{
	uint32_t at = r->head & (r->entries - 1);

	if (vb_ring_is_full(r, 1))
		return ENOMEM;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > r->max_sge)
		return EINVAL;
	put_list(r->at + ((size_t)at << r->entry_shift) + r->list_at * MLX5_UNIT_BYTES,
		 r->max_sge, wr);
	r->wr_id[at] = wr->wr_id;
	r->head++;
	return 0;
}

/* Posts what it can.  The record is left alone when it does not count yet. */
static int post_list(struct vb_ring *r, uint32_t *record, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad_wr)
{
	uint32_t before = r->head;
	int error = 0;

	for (; wr; wr = wr->next) {
		error = put_receive(r, wr);
		if (__builtin_expect(error, 0)) {
			*bad_wr = wr;
			break;
		}
	}
	vb_order_before_device(r);
	if (r->head != before && record)
		record_publish(record, r->head & 0xffff);
	return error;
}

int vb_post_recv(struct ibv_qp *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct vb_qp *qp = vb_qp_of(base);
	int error;

	vb_lock(&qp->rq.lock);
	if (__builtin_expect(!qp->may_receive, 0)) {
		*bad_wr = wr;
		error = EINVAL;
	} else {
		error = post_list(&qp->rq, qp->hides_receives ? NULL : &qp->record[0], wr, bad_wr);
	}
	vb_unlock(&qp->rq.lock);
	if (qp->context->channel.ops->posted_recv)
		qp->context->channel.ops->posted_recv(base->qp_num);
	return error;
}

int vb_post_wq_recv(struct ibv_wq *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct vb_wq *wq = vb_wq_of(base);
	int error;

	vb_lock(&wq->ring.lock);
	error = post_list(&wq->ring, wq->record, wr, bad_wr);
	vb_unlock(&wq->ring.lock);
	return error;
}

/* --- shared --- */

static struct mlx5_srq_next *next_of(const struct vb_srq *srq, uint32_t index)
{
	return (struct mlx5_srq_next *)(void *)
		(srq->ring.at + ((size_t)index << srq->ring.entry_shift));
}

/* The last free entry is never posted: the device must have somewhere to go on. */
static int put_shared(struct vb_srq *srq, const struct ibv_recv_wr *wr)
{
	uint32_t at = srq->free_first;
	uint8_t *list = (uint8_t *)next_of(srq, at) + sizeof(struct mlx5_srq_next);
	struct mlx5_data seg;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > srq->ring.max_sge)
		return EINVAL;
	if (srq->free_first == srq->free_last)
		return ENOMEM;
	for (int i = 0; i < wr->num_sge; i++) {
		seg = data_of(&wr->sg_list[i]);
		memcpy(list + (size_t)i * sizeof seg, &seg, sizeof seg);
	}
	if ((uint32_t)wr->num_sge < srq->ring.max_sge) {
		seg = data_of(&list_end);
		memcpy(list + (size_t)wr->num_sge * sizeof seg, &seg, sizeof seg);
	}
	srq->ring.wr_id[at] = wr->wr_id;
	srq->free_first = mlx5_srq_next_next_wqe_index(next_of(srq, at));
	srq->posted++;
	return 0;
}

int vb_post_srq_recv(struct ibv_srq *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct vb_srq *srq = vb_srq_of(base);
	uint32_t before;
	int error = 0;

	vb_lock(&srq->ring.lock);
	before = srq->posted;
	for (; wr; wr = wr->next) {
		error = put_shared(srq, wr);
		if (error) {
			*bad_wr = wr;
			break;
		}
	}
	vb_order_before_device(&srq->ring);
	if (srq->posted != before)
		record_publish(srq->record, srq->posted & 0xffff);
	vb_unlock(&srq->ring.lock);
	return error;
}

void vb_srq_give_back(struct vb_srq *srq, uint32_t index)
{
	vb_lock(&srq->ring.lock);
	mlx5_srq_next_set_next_wqe_index(next_of(srq, srq->free_last), index);
	srq->free_last = index;
	vb_unlock(&srq->ring.lock);
}

void vb_srq_list_begin(struct vb_srq *srq)
{
	for (uint32_t i = 0; i < srq->ring.entries; i++)
		mlx5_srq_next_set_next_wqe_index(next_of(srq, i),
						 (i + 1) & (srq->ring.entries - 1));
	srq->free_first = 0;
	srq->free_last = srq->ring.entries - 1;
}
