/* SPDX-License-Identifier: BSD-2-Clause */
/* Initiators; see dc.h. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "dc.h"

#define OPERATIONS	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |	\
			 IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |			\
			 IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |		\
			 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
enum { INLINE_BYTES = 64, STREAMS_LOG = 2 };

void dc_defaults(struct dc_opts *opts)
{
	*opts = (struct dc_opts){ .timeout = 14, .retry = 3, .rnr_retry = 3, .depth = 64 };
}

static int qp_create(struct dci *i)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_DRIVER, .send_cq = i->cq, .recv_cq = i->cq, .pd = i->pd,
		.cap = { .max_send_wr = i->opts.depth, .max_send_sge = 1,
			 .max_inline_data = INLINE_BYTES },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = OPERATIONS,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		.dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCI },
	};

	if (i->opts.has_streams) {
		dv.comp_mask |= MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS;
		dv.dc_init_attr.dci_streams.log_num_concurent = STREAMS_LOG;
	}
	i->qp = mlx5dv_create_qp(i->context, &init, &dv);
	if (!i->qp)
		return errno;
	i->ex = ibv_qp_to_qp_ex(i->qp);
	i->dv = mlx5dv_qp_ex_from_ibv_qp_ex(i->ex);
	return i->dv ? 0 : EPROTO;
}

int dci_to_rts(struct dci *i)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	int err = ibv_modify_qp(i->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT);

	if (err)
		return err;
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024 };
	err = ibv_modify_qp(i->qp, &attr, IBV_QP_STATE | IBV_QP_PATH_MTU);
	if (err)
		return err;
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = i->opts.timeout, .retry_cnt = i->opts.retry,
		.rnr_retry = i->opts.rnr_retry, .sq_psn = 0xfffff0, .max_rd_atomic = 8,
	};
	return ibv_modify_qp(i->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

int dci_reset(struct dci *i)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	int err = ibv_modify_qp(i->qp, &attr, IBV_QP_STATE);

	return err ? err : dci_to_rts(i);
}

static struct ibv_ah *ah_create(struct dci *i, const struct dc_info *info)
{
	struct ibv_ah_attr attr = end_path(&info->gid, GID_INDEX);

	return ibv_create_ah(i->pd, &attr);
}

int dci_open(struct dci *i, const struct dc_opts *opts, const struct dc_info *info)
{
	int err;

	memset(i, 0, sizeof *i);
	i->opts = *opts;
	i->context = device_open();
	if (!i->context)
		return errno;
	i->pd = ibv_alloc_pd(i->context);
	i->cq = ibv_create_cq(i->context, 2 * (int)opts->depth, NULL, NULL, 0);
	i->buf = aligned_alloc(4096, DC_BYTES);
	if (!i->pd || !i->cq || !i->buf)
		return errno;
	i->mr = ibv_reg_mr(i->pd, i->buf, DC_BYTES, ACCESS_ALL);
	i->ah = i->mr ? ah_create(i, info) : NULL;
	if (!i->ah)
		return errno;
	err = qp_create(i);
	return err ? err : dci_to_rts(i);
}

void dci_close(struct dci *i)
{
	if (i->qp)
		ibv_destroy_qp(i->qp);
	if (i->ah)
		ibv_destroy_ah(i->ah);
	if (i->mr)
		ibv_dereg_mr(i->mr);
	if (i->cq)
		ibv_destroy_cq(i->cq);
	if (i->pd)
		ibv_dealloc_pd(i->pd);
	if (i->context)
		ibv_close_device(i->context);
	free(i->buf);
	memset(i, 0, sizeof *i);
}

static void operation(struct dci *i, const struct dc_info *info, const struct dc_work *w)
{
	uint64_t remote = info->addr + w->remote_offset;
	uint32_t rkey = info->rkey ^ w->rkey_error;

	switch ((int)w->opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(i->ex);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(i->ex, htobe32(w->imm));
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(i->ex, rkey, remote);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(i->ex, rkey, remote, htobe32(w->imm));
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(i->ex, rkey, remote);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(i->ex, rkey, remote, w->compare_add, w->swap);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(i->ex, rkey, remote, w->compare_add);
		break;
	}
}

int dci_post(struct dci *i, const struct dc_info *info, const struct dc_work *w)
{
	uint32_t dctn = info->dctn[w->target] ^ w->qpn_error;
	uint64_t key = DC_KEY ^ w->key_error;

	ibv_wr_start(i->ex);
	i->ex->wr_id = w->wr_id;
	i->ex->wr_flags = w->is_unsignaled ? 0 : IBV_SEND_SIGNALED;
	operation(i, info, w);
	if (w->stream)
		mlx5dv_wr_set_dc_addr_stream(i->dv, i->ah, dctn, key, w->stream);
	else
		mlx5dv_wr_set_dc_addr(i->dv, i->ah, dctn, key);
	if (w->is_inline)
		ibv_wr_set_inline_data(i->ex, i->buf + w->offset, w->bytes);
	else
		ibv_wr_set_sge(i->ex, i->mr->lkey, (uintptr_t)i->buf + w->offset, w->bytes);
	return ibv_wr_complete(i->ex);
}

static void await(struct dci *i, uint64_t ms, struct done *out)
{
	uint64_t deadline = now_ms() + ms;

	memset(out, 0, sizeof *out);
	do {
		for (unsigned n = 0; n < QUIET_POLLS && !out->found; n++)
			out->found = ibv_poll_cq(i->cq, 1, &out->wc) == 1;
		sched_yield();
	} while (!out->found && now_ms() < deadline);
}

void dci_await(struct dci *i, struct done *out)
{
	await(i, AWAIT_MS, out);
}

void dci_glance(struct dci *i, struct done *out)
{
	await(i, 0, out);
}
