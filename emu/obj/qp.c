/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: creation and destruction; changing them is in qp_modify.c.
 *
 * Source: device-abi B.9.1 and C.5.
 */
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "emu/mem/mem.h"
#include "emu/obj/event_desc.h"
#include "emu/obj/obj.h"
#include "emu/obj/relay.h"
#include "emu/obj/srq.h"
#include "emu/obj/wq.h"
#include "hw-models/hw.h"

#define RECORD_BYTES	8
#define RQ_STRIDE_MIN	16
#define USER_INDEX_MAX	0xffffffu

static bool is_power_of_two_or_0(uint32_t n)
{
	return !(n & (n - 1));
}

static bool sq_fits(const struct hw_profile *profile, const struct qp_init *init)
{
	return is_power_of_two_or_0(init->sq_blocks) &&
	       init->sq_blocks <= profile->max_send_wqebb;
}

static bool rq_fits(const struct hw_profile *profile, const struct qp_init *init)
{
	if (!init->rq_count)
		return true;
	return is_power_of_two_or_0(init->rq_count) && init->rq_count <= profile->max_qp_wr &&
	       is_power_of_two_or_0(init->rq_stride) && init->rq_stride >= RQ_STRIDE_MIN &&
	       init->rq_stride <= profile->max_rq_desc_bytes &&
	       init->rq_stride <= HW_WQE_BYTES_MAX;
}

const struct qp_parts qp_parts[QPT_COUNT] = {
	[QPT_RC] = { true, true, true, false },
	[QPT_UC] = { true, true, true, false },
	[QPT_UD] = { true, true, true, false },
	[QPT_XRC_INI] = { true, true, false, false },
	[QPT_XRC_TGT] = { false, false, false, true },
	[QPT_DCI] = { true, true, true, false },
	[QPT_DCT] = { true, true, true, false },
	[QPT_DCR] = { true, true, true, false },
	[QPT_XRC_GUEST] = { false, false, false, true },
	[QPT_XRC_FAR] = { false, false, false, true },
	[QPT_RAW] = { true, true, true, false },
	[QPT_WQ] = { true, false, true, false },
	[QPT_RSS] = { true, false, false, false },
};

static bool parts_fit(const struct qp_init *init)
{
	const struct qp_parts *parts = &qp_parts[init->type];

	return parts->has_pd == !!init->pd && parts->sends == !!init->send_cq &&
	       parts->receives == !!init->recv_cq && parts->has_domain == !!init->xrc_domain &&
	       (parts->sends || !init->sq_blocks) &&
	       (parts->receives || (!init->rq_count && !init->srq));
}

static bool values_fit(const struct hw_profile *profile, const struct qp_init *init)
{
	return init->type < QPT_COUNT && parts_fit(init) && sq_fits(profile, init) &&
	       rq_fits(profile, init) && init->user_index <= USER_INDEX_MAX &&
	       init->db_addr % RECORD_BYTES == 0 && init->buf_addr % HW_WQEBB_BYTES == 0 &&
	       init->sq_buf_addr % HW_WQEBB_BYTES == 0;
}

/* Targets have no queue of their own, and libmlx5 gives them no record. */
static bool has_record(const struct qp_init *init)
{
	return init->type != QPT_DCT && init->type != QPT_RSS && !init->xrc_domain;
}

static uint64_t rq_bytes(const struct qp_init *init)
{
	return (uint64_t)init->rq_count * init->rq_stride;
}

static uint64_t sq_addr(const struct qp_init *init)
{
	return init->sq_buf_addr ? init->sq_buf_addr : init->buf_addr + rq_bytes(init);
}

static int init_check(struct emu_dev *dev, const struct qp_init *init)
{
	uint64_t sq_bytes = (uint64_t)init->sq_blocks * HW_WQEBB_BYTES;
	uint64_t record_bytes = has_record(init) ? RECORD_BYTES : 0;

	if (!values_fit(dev->profile, init)) {
		dev_why(dev, .why = WHY_CMD_VALUE, .side = WHY_SIDE_COMMAND,
			.addr = init->sq_blocks, .bytes = init->rq_count,
			.found = dev->profile->max_send_wqebb,
			.found_bytes = dev->profile->max_qp_wr);
		return -EINVAL;
	}
	/* The device only reads both; the application owns them and surely writes. */
	if (mem_probe(init->buf_addr, rq_bytes(init), 0) ||
	    mem_probe(sq_addr(init), sq_bytes, 0) || mem_probe(init->db_addr, record_bytes, 0)) {
		dev_why(dev, .why = WHY_CMD_MEMORY, .side = WHY_SIDE_COMMAND,
			.addr = init->buf_addr, .bytes = rq_bytes(init) + sq_bytes,
			.found = init->db_addr,
			.found_bytes = record_bytes);
		return -EFAULT;
	}
	return 0;
}

/* One entry a block, because a work request takes at least one block. */
static struct rc_sent *sent_alloc(uint32_t blocks)
{
	return calloc(blocks ? blocks : 1, sizeof(struct rc_sent));
}

static_assert(offsetof(struct emu_qp, sq_blocks) == QP_LINE_BYTES &&
	      offsetof(struct emu_qp, ready_next) == 2 * QP_LINE_BYTES &&
	      offsetof(struct emu_qp, req) == 3 * QP_LINE_BYTES, "as obj.h says");
#define QP_BYTES ((sizeof(struct emu_qp) + QP_LINE_BYTES - 1) / QP_LINE_BYTES * QP_LINE_BYTES)

static struct emu_qp *qp_alloc(struct emu_dev *dev, const struct qp_init *init)
{
	struct emu_qp *qp = aligned_alloc(QP_LINE_BYTES, QP_BYTES);

	if (!qp)
		return NULL;
	memset(qp, 0, sizeof *qp);
	qp->req.sent = sent_alloc(init->sq_blocks);
	if (!qp->req.sent || dev->qpns.taken >= dev->profile->max_qp ||
	    numbers_take(&dev->qpns, qp, &qp->qpn))
		goto fail;
	qp->resp = home_take(&dev->home, HOME_RESPONDER, qp->qpn, sizeof *qp->resp);
	if (qp->resp)
		return qp;
	numbers_give(&dev->qpns, qp->qpn);
fail:
	free(qp->req.sent);
	free(qp);
	return NULL;
}

static void qp_fill(struct emu_qp *qp, const struct qp_init *init)
{
	qp->obj.type = OBJ_QP;
	qp->state = QP_RESET;
	qp->user_handle = init->user_handle;
	qp->user_index = init->user_index;
	qp->pd = init->pd;
	qp->pdn = qp->resp->pdn = init->pd ? init->pd->pdn : 0;
	qp->send_cq = init->send_cq;
	qp->recv_cq = init->recv_cq;
	qp->srq = init->srq;
	qp->xrc_domain = init->xrc_domain;
	qp->async = init->async;
	qp->rq_addr = init->buf_addr;
	qp->sq_addr = sq_addr(init);
	qp->db_addr = init->db_addr;
	qp->sq_blocks = init->sq_blocks;
	qp->rq_count = init->rq_count;
	qp->rq_stride = init->rq_stride;
	qp->signals_all = init->signals_all;
	qp->blocks_loopback = init->blocks_loopback;
	qp->frames = init->frames;
	qp->striding = init->striding;
	qp->pkey = qp->resp->pkey = PORT_PKEY_DEFAULT;
	qp->max_send_wr = init->max_send_wr;
	qp->max_recv_wr = init->max_recv_wr;
	qp->max_send_sge = init->max_send_sge;
	qp->max_recv_sge = init->max_recv_sge;
	qp->max_inline = init->max_inline;
}

static void count_user(struct emu_qp *qp, int change)
{
	if (qp->pd)
		qp->pd->obj.users += change;
	if (qp->send_cq)
		qp->send_cq->obj.users += change;
	if (qp->recv_cq)
		qp->recv_cq->obj.users += change;
	if (qp->srq && !qp->xrc_domain)
		qp->srq->obj.users += change;
	if (qp->async)
		channel_obj(qp->async)->users += change;
}

static void qp_free(struct emu_dev *dev, struct emu_qp *qp)
{
	dc_detach(qp);
	relay_detach(qp);
	rss_detach(qp);
	numbers_give(&dev->qpns, qp->qpn);
	home_give(&dev->home, qp->resp);
	free(qp->req.sent);
	free(qp);
}

/* All that needs memory; NULL: there is none, or no number. */
static struct emu_qp *qp_make(struct emu_dev *dev, const struct qp_init *init)
{
	struct emu_qp *qp = qp_alloc(dev, init);

	if (!qp)
		return NULL;
	qp->type = init->type;
	if (!dc_attach(qp, init->dc_key))
		return qp;
	qp_free(dev, qp);
	return NULL;
}

int qp_create(struct emu_dev *dev, const struct qp_init *init, struct emu_qp **out)
{
	struct emu_qp *qp;
	int rc = init_check(dev, init);

	if (rc)
		return rc;
	qp = qp_make(dev, init);
	if (!qp) {
		dev_why(dev, .why = WHY_CMD_LIMIT, .side = WHY_SIDE_COMMAND,
			.found = dev->qpns.taken);
		return -ENOMEM;
	}
	qp->dev = dev;
	qp_fill(qp, init);
	count_user(qp, 1);
	*out = qp;
	return 0;
}

int qp_destroy(struct emu_dev *dev, struct emu_qp *qp, uint32_t *events_out)
{
	if (qp->obj.users) {
		dev_why(dev, .why = WHY_CMD_BUSY, .side = WHY_SIDE_COMMAND, .qpn = qp->qpn,
			.found = qp->obj.users);
		return -EBUSY;
	}
	*events_out = qp->async ? channel_forget(qp->async, qp) : 0;
	srq_qp_forget(qp);
	count_user(qp, -1);
	qp_state_set(qp, QP_RESET);
	mw_free_of_qp(qp);
	qp_free(dev, qp);
	return 0;
}

struct emu_qp *qp_find(struct emu_dev *dev, uint32_t qpn)
{
	return numbers_find(&dev->qpns, qpn);
}
