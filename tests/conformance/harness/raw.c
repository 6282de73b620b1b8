/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue bytes through mlx5dv; see raw.h.
 *
 * The function is looked up in the provider that libibverbs has loaded, so that cases
 * which never look at queue bytes link with libibverbs alone.
 */
#include "raw.h"
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#define BLOCK_BYTES 64

static int dv_init_obj(struct mlx5dv_obj *obj, uint64_t type)
{
	static int (*init_obj)(struct mlx5dv_obj *, uint64_t);
	void *provider;

	if (!init_obj) {
		provider = dlopen("libmlx5.so.1", RTLD_NOW);
		if (provider)
			*(void **)&init_obj = dlsym(provider, "mlx5dv_init_obj");
	}
	return init_obj ? init_obj(obj, type) : ENOSYS;
}

void raw_cqe_last(struct ibv_cq *cq, uint8_t out[64])
{
	struct mlx5dv_cq dv = { 0 };
	struct mlx5dv_obj obj = { .cq = { .in = cq, .out = &dv } };
	uint32_t slot;

	memset(out, 0, 64);
	if (dv_init_obj(&obj, MLX5DV_OBJ_CQ))
		return;
	slot = (be32toh(dv.dbrec[0]) - 1) & (dv.cqe_cnt - 1);
	memcpy(out, (uint8_t *)dv.buf + (size_t)slot * dv.cqe_size + dv.cqe_size - 64, 64);
}

int raw_sq_open(struct raw_sq *sq, struct ibv_qp *qp)
{
	struct mlx5dv_obj obj = { .qp = { .in = qp, .out = &sq->qp } };
	int err;

	memset(sq, 0, sizeof *sq);
	sq->qpn = qp->qp_num;
	err = dv_init_obj(&obj, MLX5DV_OBJ_QP);
	if (!err)
		sq->next = (uint16_t)be32toh(sq->qp.dbrec[1]);
	return err;
}

static void put32(uint8_t *at, uint32_t value)
{
	uint32_t be = htobe32(value);

	memcpy(at, &be, 4);
}

static void put64(uint8_t *at, uint64_t value)
{
	uint64_t be = htobe64(value);

	memcpy(at, &be, 8);
}

static uint8_t *unit_at(const struct raw_sq *sq, unsigned unit)
{
	unsigned units = sq->qp.sq.wqe_cnt * (BLOCK_BYTES / 16);
	unsigned first = (sq->next & (sq->qp.sq.wqe_cnt - 1)) * (BLOCK_BYTES / 16);

	return (uint8_t *)sq->qp.sq.buf + (size_t)((first + unit) & (units - 1)) * 16;
}

void raw_sq_write(struct raw_sq *sq, const struct raw_wqe *wqe)
{
	uint8_t ctrl[16] = { 0 };
	uint16_t index = (uint16_t)(sq->next + wqe->index_error);

	put32(ctrl, (uint32_t)wqe->opmod << 24 | (uint32_t)index << 8 | wqe->opcode);
	put32(ctrl + 4, (sq->qpn ^ wqe->qpn_error) << 8 | wqe->ds);
	ctrl[11] = wqe->fm_ce_se;
	memcpy(unit_at(sq, 0), ctrl, 16);
	for (unsigned i = 0; i < wqe->units; i++)
		memcpy(unit_at(sq, 1 + i), wqe->body + i * 16, 16);
}

void raw_sq_publish(struct raw_sq *sq, uint16_t blocks, int rings)
{
	uint64_t head;

	memcpy(&head, unit_at(sq, 0), 8);
	memcpy((uint8_t *)&head + 4, &(uint32_t){ htobe32(sq->qpn << 8) }, 4);
	sq->next = (uint16_t)(sq->next + blocks);
	__atomic_store_n(&sq->qp.dbrec[1], htobe32(sq->next), __ATOMIC_RELEASE);
	if (rings)
		__atomic_store_n((uint64_t *)sq->qp.bf.reg, head, __ATOMIC_SEQ_CST);
}

unsigned raw_seg_remote(struct raw_wqe *wqe, unsigned at, uint64_t addr, uint32_t rkey)
{
	put64(wqe->body + at * 16, addr);
	put32(wqe->body + at * 16 + 8, rkey);
	return at + 1;
}

unsigned raw_seg_data(struct raw_wqe *wqe, unsigned at, uint64_t addr, uint32_t bytes,
		      uint32_t lkey)
{
	put32(wqe->body + at * 16, bytes);
	put32(wqe->body + at * 16 + 4, lkey);
	put64(wqe->body + at * 16 + 8, addr);
	return at + 1;
}

unsigned raw_seg_inline(struct raw_wqe *wqe, unsigned at, uint32_t claimed_bytes)
{
	put32(wqe->body + at * 16, claimed_bytes | UINT32_C(0x80000000));
	return at + 1;
}
