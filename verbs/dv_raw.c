/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects as they lie in memory, for programs that post and poll without this library.
 *
 * From then on the rings move without anybody telling the device, so it is warned.
 */
#include "verbs/ah.h"
#include "verbs/dm.h"
#include "verbs/dv.h"
#include "verbs/queue.h"
#include "verbs/wq.h"

static void rings_itself(struct vb_context *c)
{
	if (c->channel.ops->rings_itself)
		c->channel.ops->rings_itself(&c->channel);
}

/* The members behind comp_mask that the program knows.  Numbers that only commands to the hardware
 * can use are 0. */
static void qp_more(const struct vb_qp *qp, struct mlx5dv_qp *out)
{
	enum { KNOWN = MLX5DV_QP_MASK_UAR_MMAP_OFFSET | MLX5DV_QP_MASK_RAW_QP_HANDLES |
		       MLX5DV_QP_MASK_RAW_QP_TIR_ADDR };

	out->comp_mask &= KNOWN;
	if (out->comp_mask & MLX5DV_QP_MASK_UAR_MMAP_OFFSET)
		out->uar_mmap_offset = qp->reg ? (off_t)qp->reg->mmap_offset : 0;
	if (out->comp_mask & MLX5DV_QP_MASK_RAW_QP_HANDLES)
		out->tirn = out->tisn = out->rqn = out->sqn = 0;
	if (out->comp_mask & MLX5DV_QP_MASK_RAW_QP_TIR_ADDR)
		out->tir_icm_addr = 0;
}

/* Whole WQEs may be written to a register only by who has it alone. */
static uint32_t bf_bytes(const struct vb_qp *qp)
{
	return qp->reg && qp->pd && vb_td_of(&qp->pd->pd) ? qp->reg->bytes : 0;
}

static void qp_fill(const struct mlx5dv_obj *obj)
{
	struct vb_qp *qp = vb_qp_of(obj->qp.in);
	struct mlx5dv_qp *out = obj->qp.out;

	out->dbrec = (__be32 *)qp->record;
	out->sq.buf = qp->sq.at;
	out->sq.wqe_cnt = qp->sq.entries;
	out->sq.stride = 1u << qp->sq.entry_shift;
	out->rq.buf = qp->rq.at;
	out->rq.wqe_cnt = qp->rq.entries;
	out->rq.stride = 1u << qp->rq.entry_shift;
	out->bf.reg = qp->reg ? qp->reg->at : NULL;
	out->bf.size = bf_bytes(qp);
	qp_more(qp, out);
	rings_itself(qp->context);
}

static void cq_fill(const struct mlx5dv_obj *obj)
{
	struct vb_cq *cq = vb_cq_of(obj->cq.in);

	*obj->cq.out = (struct mlx5dv_cq){
		.buf = cq->at, .dbrec = (__be32 *)cq->record, .cqe_cnt = cq->entries,
		.cqe_size = cq->entry_bytes, .cq_uar = cq->arm_uar->page, .cqn = cq->cqn,
	};
	cq->is_raw = true;
	rings_itself(cq->context);
}

static void srq_fill(const struct mlx5dv_obj *obj)
{
	struct vb_srq *srq = vb_srq_of(obj->srq.in);
	struct mlx5dv_srq *out = obj->srq.out;

	out->buf = srq->buf.at;
	out->dbrec = (__be32 *)srq->record;
	out->stride = 1u << srq->ring.entry_shift;
	out->head = srq->free_first;
	out->tail = srq->free_last;
	out->comp_mask &= MLX5DV_SRQ_MASK_SRQN;
	if (out->comp_mask & MLX5DV_SRQ_MASK_SRQN)
		out->srqn = srq->srqn;
	rings_itself(vb_context_of(srq->srq.context));
}

static void wq_fill(const struct mlx5dv_obj *obj)
{
	struct vb_wq *wq = vb_wq_of(obj->rwq.in);

	*obj->rwq.out = (struct mlx5dv_rwq){
		.buf = wq->ring.at, .dbrec = (__be32 *)wq->record, .wqe_cnt = wq->ring.entries,
		.stride = 1u << wq->ring.entry_shift,
	};
	rings_itself(vb_context_of(wq->wq.context));
}

static void dm_fill(const struct mlx5dv_obj *obj)
{
	struct vb_dm *dm = vb_dm_of(obj->dm.in);
	struct mlx5dv_dm *out = obj->dm.out;

	out->buf = dm->at;
	out->length = dm->bytes;
	out->comp_mask &= MLX5DV_DM_MASK_REMOTE_VA;
	if (out->comp_mask & MLX5DV_DM_MASK_REMOTE_VA)
		out->remote_va = 0;	/* regions of it count from their start */
}

static void ah_fill(const struct mlx5dv_obj *obj)
{
	struct vb_ah *ah = vb_ah_of(obj->ah.in);

	*obj->ah.out = (struct mlx5dv_ah){ .av = (struct mlx5_wqe_av *)(void *)&ah->av };
}

static void pd_fill(const struct mlx5dv_obj *obj)
{
	*obj->pd.out = (struct mlx5dv_pd){ .pdn = vb_pd_of(obj->pd.in)->pdn };
}

static const struct {
	uint64_t type;
	void (*fill)(const struct mlx5dv_obj *obj);
} fillers[] = {
	{ MLX5DV_OBJ_QP, qp_fill }, { MLX5DV_OBJ_CQ, cq_fill }, { MLX5DV_OBJ_SRQ, srq_fill },
	{ MLX5DV_OBJ_RWQ, wq_fill }, { MLX5DV_OBJ_DM, dm_fill }, { MLX5DV_OBJ_AH, ah_fill },
	{ MLX5DV_OBJ_PD, pd_fill },
};

VB_EXPORT int vb_dv_init_obj(struct mlx5dv_obj *obj, uint64_t types)
{
	for (size_t i = 0; i < sizeof fillers / sizeof *fillers; i++)
		if (types & fillers[i].type)
			fillers[i].fill(obj);
	return 0;
}

VB_EXPORT void *vb_dv_arm_page_place(struct ibv_context *context)
{
	return &vb_context_of(context)->arm_uar.page;
}
