/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive work queues and indirection tables; see wq.h.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "emu/obj/wq.h"

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

/* A QP may do without a ring, and fill 64-byte blocks of its buffer; a queue not. */
static bool ring_fits(const struct hw_profile *profile, const struct wq_init *init)
{
	return init->wqe_count && init->max_wr <= profile->max_qp_wr;
}

static int queue_create(struct emu_dev *dev, const struct wq_init *init, struct emu_qp **out)
{
	const struct qp_init qp_init = {
		.type = QPT_WQ, .user_handle = init->user_handle, .pd = init->pd,
		.recv_cq = init->cq, .async = init->async,
		.buf_addr = init->buf_addr, .db_addr = init->db_addr,
		.rq_count = init->wqe_count, .rq_stride = init->stride,
		.user_index = init->user_index, .frames = init->frames,
		.striding = init->striding,
	};

	if (ring_fits(dev->profile, init))
		return qp_create(dev, &qp_init, out);
	dev_why(dev, .why = WHY_CMD_VALUE, .side = WHY_SIDE_COMMAND,
		.addr = init->stride, .bytes = init->wqe_count,
		.found = dev->profile->max_rq_desc_bytes,
		.found_bytes = dev->profile->max_qp_wr);
	return -EINVAL;
}

int wq_create(struct emu_dev *dev, const struct wq_init *init, struct emu_wq **out)
{
	struct emu_wq *wq = calloc(1, sizeof *wq);
	int rc;

	if (!wq)
		return refuse_limit(dev);
	rc = queue_create(dev, init, &wq->qp);
	if (rc) {
		free(wq);
		return rc;
	}
	wq->obj.type = OBJ_WQ;
	*out = wq;
	return 0;
}

static const enum qp_state states[WQ_STATE_COUNT] = {
	[WQ_RESET] = QP_RESET, [WQ_RDY] = QP_RTR, [WQ_ERR] = QP_ERR,
};

enum wq_state wq_state(const struct emu_wq *wq)
{
	enum wq_state state = WQ_RESET;

	while (states[state] != wq->qp->state)
		state++;
	return state;
}

/* Which states follow which. */
static const bool edges[WQ_STATE_COUNT][WQ_STATE_COUNT] = {
	[WQ_RESET] = { [WQ_RESET] = true, [WQ_RDY] = true, [WQ_ERR] = true },
	[WQ_RDY] = { [WQ_RESET] = true, [WQ_RDY] = true, [WQ_ERR] = true },
	[WQ_ERR] = { [WQ_RESET] = true, [WQ_ERR] = true },
};

int wq_modify(struct emu_dev *dev, struct emu_wq *wq, enum wq_state from, enum wq_state to)
{
	enum wq_state is = wq_state(wq);

	if (from != is || to >= WQ_STATE_COUNT || !edges[from][to]) {
		dev_why(dev, .why = WHY_CMD_VALUE, .side = WHY_SIDE_COMMAND, .addr = from,
			.bytes = to, .found = is);
		return -EINVAL;
	}
	qp_enter_state(wq->qp, states[to]);
	return 0;
}

int wq_destroy(struct emu_dev *dev, struct emu_wq *wq, uint32_t *events_out)
{
	int rc;

	if (wq->obj.users)
		return refuse_busy(dev, &wq->obj);
	rc = qp_destroy(dev, wq->qp, events_out);
	assert(!rc);
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

/* --- QPs with a table --- */

int rss_qp_create(struct emu_dev *dev, struct emu_pd *pd, struct emu_rwq_table *table,
		  const struct rss *hash, struct emu_qp **out)
{
	const struct qp_init init = { .type = QPT_RSS, .pd = pd };
	struct emu_rss *rss = calloc(1, sizeof *rss);
	int rc;

	if (!rss)
		return refuse_limit(dev);
	rc = qp_create(dev, &init, out);
	if (rc) {
		free(rss);
		return rc;
	}
	rss->hash = *hash;
	rss->table = table;
	table->obj.users++;
	(*out)->rss = rss;
	return 0;
}

void rss_detach(struct emu_qp *qp)
{
	if (qp->type != QPT_RSS || !qp->rss)
		return;
	qp->rss->table->obj.users--;
	free(qp->rss);
}
