/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive work queues and indirection tables; see wq.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "emu/mem/mem.h"
#include "emu/obj/wq.h"
#include "hw-models/hw.h"

#define RECORD_BYTES	8
#define STRIDE_MIN	16u		/* one data segment */
#define USER_INDEX_MAX	0xffffffu

static bool is_power_of_two(uint32_t n)
{
	return n && !(n & (n - 1));
}

static bool values_fit(const struct hw_profile *profile, const struct wq_init *init)
{
	return init->max_wr <= profile->max_qp_wr && is_power_of_two(init->wqe_count) &&
	       init->wqe_count <= profile->max_qp_wr && is_power_of_two(init->stride) &&
	       init->stride >= STRIDE_MIN && init->stride <= profile->max_rq_desc_bytes &&
	       init->user_index <= USER_INDEX_MAX && init->db_addr % RECORD_BYTES == 0 &&
	       init->buf_addr % HW_WQEBB_BYTES == 0;
}

static int init_check(struct emu_dev *dev, const struct wq_init *init)
{
	uint64_t bytes = (uint64_t)init->wqe_count * init->stride;

	if (!values_fit(dev->profile, init)) {
		dev_why(dev, .why = WHY_CMD_VALUE, .side = WHY_SIDE_COMMAND,
			.addr = init->stride, .bytes = init->wqe_count,
			.found = dev->profile->max_rq_desc_bytes,
			.found_bytes = dev->profile->max_qp_wr);
		return -EINVAL;
	}
	if (mem_probe(init->buf_addr, bytes, 0) || mem_probe(init->db_addr, RECORD_BYTES, 0)) {
		dev_why(dev, .why = WHY_CMD_MEMORY, .side = WHY_SIDE_COMMAND,
			.addr = init->buf_addr, .bytes = bytes, .found = init->db_addr,
			.found_bytes = RECORD_BYTES);
		return -EFAULT;
	}
	return 0;
}

static int refuse_limit(struct emu_dev *dev)
{
	dev_why(dev, .why = WHY_CMD_LIMIT, .side = WHY_SIDE_COMMAND, .found = dev->wqns.taken);
	return -ENOMEM;
}

static int refuse_busy(struct emu_dev *dev, const struct emu_obj *obj)
{
	dev_why(dev, .why = WHY_CMD_BUSY, .side = WHY_SIDE_COMMAND, .found = obj->users);
	return -EBUSY;
}

/* --- queues --- */

static void count_user(struct emu_wq *wq, int change)
{
	wq->pd->obj.users += change;
	wq->cq->obj.users += change;
	if (wq->async)
		channel_obj(wq->async)->users += change;
}

static void wq_fill(struct emu_wq *wq, const struct wq_init *init)
{
	wq->obj.type = OBJ_WQ;
	wq->state = WQ_RESET;
	wq->buf_addr = init->buf_addr;
	wq->db_addr = init->db_addr;
	wq->wqe_count = init->wqe_count;
	wq->stride = init->stride;
	wq->user_index = init->user_index;
	wq->pd = init->pd;
	wq->cq = init->cq;
	wq->async = init->async;
	wq->user_handle = init->user_handle;
}

int wq_create(struct emu_dev *dev, const struct wq_init *init, struct emu_wq **out)
{
	struct emu_wq *wq;
	int rc = init_check(dev, init);

	if (rc)
		return rc;
	wq = calloc(1, sizeof *wq);
	if (!wq || numbers_take(&dev->wqns, wq, &wq->wqn)) {
		free(wq);
		return refuse_limit(dev);
	}
	wq_fill(wq, init);
	count_user(wq, 1);
	*out = wq;
	return 0;
}

/* Which states follow which. */
static const bool edges[WQ_STATE_COUNT][WQ_STATE_COUNT] = {
	[WQ_RESET] = { [WQ_RESET] = true, [WQ_RDY] = true, [WQ_ERR] = true },
	[WQ_RDY] = { [WQ_RESET] = true, [WQ_RDY] = true, [WQ_ERR] = true },
	[WQ_ERR] = { [WQ_RESET] = true, [WQ_ERR] = true },
};

int wq_modify(struct emu_dev *dev, struct emu_wq *wq, enum wq_state from, enum wq_state to)
{
	if (from != wq->state || to >= WQ_STATE_COUNT || !edges[from][to]) {
		dev_why(dev, .why = WHY_CMD_VALUE, .side = WHY_SIDE_COMMAND, .addr = from,
			.bytes = to, .found = wq->state);
		return -EINVAL;
	}
	wq->state = to;
	return 0;
}

int wq_destroy(struct emu_dev *dev, struct emu_wq *wq, uint32_t *events_out)
{
	if (wq->obj.users)
		return refuse_busy(dev, &wq->obj);
	*events_out = wq->async ? channel_forget(wq->async, wq) : 0;
	count_user(wq, -1);
	numbers_give(&dev->wqns, wq->wqn);
	free(wq);
	return 0;
}

/* --- tables --- */

static void table_count_user(struct emu_rwq_table *table, int change)
{
	for (uint32_t i = 0; i < table->count; i++)
		table->wq[i]->obj.users += change;
}

int rwq_table_create(struct emu_dev *dev, struct emu_wq *const *wq, uint32_t count,
		     struct emu_rwq_table **out)
{
	struct emu_rwq_table *table = calloc(1, sizeof *table + count * sizeof *table->wq);

	if (!table || numbers_take(&dev->wqns, table, &table->number)) {
		free(table);
		return refuse_limit(dev);
	}
	table->obj.type = OBJ_RWQ_TABLE;
	table->count = count;
	memcpy(table->wq, wq, count * sizeof *wq);
	table_count_user(table, 1);
	*out = table;
	return 0;
}

int rwq_table_destroy(struct emu_dev *dev, struct emu_rwq_table *table)
{
	if (table->obj.users)
		return refuse_busy(dev, &table->obj);
	table_count_user(table, -1);
	numbers_give(&dev->wqns, table->number);
	free(table);
	return 0;
}
