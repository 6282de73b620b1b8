/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues; see srq.h.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include "emu/mem/mem.h"
#include "emu/obj/event_desc.h"
#include "emu/obj/relay.h"
#include "emu/obj/srq.h"
#include "hw-models/hw.h"

#define RECORD_BYTES	8
#define UNIT_BYTES	16u		/* of a data segment, and of what stands before them */
#define STRIDE_MIN	32u
#define USER_INDEX_MAX	0xffffffu

static uint32_t power_of_two_from(uint32_t n)
{
	uint32_t power = 1;

	while (power < n)
		power *= 2;
	return power;
}

/* Nobody tells the device what follows from the numbers of WQEs and segments. */
static uint32_t stride_of(const struct srq_init *init)
{
	uint32_t stride = power_of_two_from(UNIT_BYTES * (1 + init->max_sge));

	return stride < STRIDE_MIN ? STRIDE_MIN : stride;
}

static bool values_fit(const struct hw_profile *profile, const struct srq_init *init)
{
	return init->pd && (init->type == SRQ_XRC) == (init->cq && init->xrcd) &&
	       init->max_wr <= profile->max_srq_wr && init->max_sge <= profile->max_srq_sge &&
	       init->user_index <= USER_INDEX_MAX && init->db_addr % RECORD_BYTES == 0 &&
	       init->buf_addr % HW_WQEBB_BYTES == 0;
}

static int init_check(struct emu_dev *dev, const struct srq_init *init)
{
	uint64_t bytes;

	if (!values_fit(dev->profile, init)) {
		dev_why(dev, .why = WHY_CMD_VALUE, .side = WHY_SIDE_COMMAND,
			.addr = init->max_wr, .bytes = init->max_sge,
			.found = dev->profile->max_srq_wr,
			.found_bytes = dev->profile->max_srq_sge);
		return -EINVAL;
	}
	bytes = (uint64_t)power_of_two_from(init->max_wr + 1) * stride_of(init);
	if (mem_probe(init->buf_addr, bytes, 0) || mem_probe(init->db_addr, RECORD_BYTES, 0)) {
		dev_why(dev, .why = WHY_CMD_MEMORY, .side = WHY_SIDE_COMMAND,
			.addr = init->buf_addr, .bytes = bytes, .found = init->db_addr,
			.found_bytes = RECORD_BYTES);
		return -EFAULT;
	}
	return 0;
}

static struct emu_srq *srq_alloc(struct emu_dev *dev, uint32_t wqe_count)
{
	struct emu_srq *srq = calloc(1, sizeof *srq);

	if (!srq)
		return NULL;
	srq->is_held = calloc(wqe_count, sizeof *srq->is_held);
	if (srq->is_held && dev->srqns.taken < dev->profile->max_srq &&
	    !numbers_take(&dev->srqns, srq, &srq->srqn))
		return srq;
	free(srq->is_held);
	free(srq);
	return NULL;
}

static void srq_fill(struct emu_srq *srq, const struct srq_init *init)
{
	srq->obj.type = OBJ_SRQ;
	srq->type = init->type;
	srq->buf_addr = init->buf_addr;
	srq->db_addr = init->db_addr;
	srq->wqe_count = power_of_two_from(init->max_wr + 1);
	srq->stride = stride_of(init);
	srq->pd = init->pd;
	srq->pdn = init->pd->pdn;
	srq->cq = init->cq;
	srq->xrcd = init->xrcd;
	srq->async = init->async;
	srq->user_handle = init->user_handle;
	srq->names_itself = init->names_itself;
	srq->user_index = init->user_index == SRQ_USER_INDEX_NONE ? srq->srqn : init->user_index;
}

static void count_user(struct emu_srq *srq, int change)
{
	srq->pd->obj.users += change;
	if (srq->cq)
		srq->cq->obj.users += change;
	if (srq->xrcd)
		srq->xrcd->obj.users += change;
	if (srq->async)
		channel_obj(srq->async)->users += change;
}

int srq_create(struct emu_dev *dev, const struct srq_init *init, struct emu_srq **out)
{
	struct emu_srq *srq;
	int rc = init_check(dev, init);

	if (rc)
		return rc;
	srq = srq_alloc(dev, power_of_two_from(init->max_wr + 1));
	if (!srq) {
		dev_why(dev, .why = WHY_CMD_LIMIT, .side = WHY_SIDE_COMMAND,
			.found = dev->srqns.taken);
		return -ENOMEM;
	}
	srq->dev = dev;
	srq_fill(srq, init);
	count_user(srq, 1);
	*out = srq;
	return 0;
}

/* Target QPs are no users of the queues they deliver to. */
static void targets_forget(struct emu_dev *dev, const struct emu_srq *srq)
{
	struct emu_qp *qp;

	for (uint32_t at = 0; (qp = numbers_next(&dev->qpns, &at));) {
		if (qp->srq != srq)
			continue;
		qp->srq = NULL;
		qp->answers.is_holding = false;
	}
}

int srq_destroy(struct emu_dev *dev, struct emu_srq *srq, uint32_t *events_out)
{
	if (srq->obj.users) {
		dev_why(dev, .why = WHY_CMD_BUSY, .side = WHY_SIDE_COMMAND,
			.found = srq->obj.users);
		return -EBUSY;
	}
	if (srq->type == SRQ_XRC) {
		targets_forget(dev, srq);
		guests_forget(dev, srq);
	}
	*events_out = srq->async ? channel_forget(srq->async, srq) : 0;
	count_user(srq, -1);
	numbers_give(&dev->srqns, srq->srqn);
	free(srq->is_held);
	free(srq);
	return 0;
}

struct emu_srq *srq_find_xrc(struct emu_dev *dev, uint32_t srqn, const struct xrc_domain *domain)
{
	struct emu_srq *srq = numbers_find(&dev->srqns, srqn);

	return srq && srq->type == SRQ_XRC && srq->xrcd->domain == domain ? srq : NULL;
}

struct emu_srq *srq_find_named(struct emu_dev *dev, uint32_t srqn, uint64_t domain_name)
{
	struct emu_srq *srq = numbers_find(&dev->srqns, srqn);

	return srq && srq->type == SRQ_XRC && domain_name &&
	       srq->xrcd->domain->name == domain_name ? srq : NULL;
}

static void srq_event(struct emu_srq *srq, uint32_t type)
{
	event_async_push(srq->async, srq, srq->user_handle, type);
}

enum why srq_doorbell(struct emu_srq *srq)
{
	uint32_t raw, advance;

	if (mem_load32(srq->db_addr, &raw))
		return WHY_WQE_MEMORY;
	advance = (uint16_t)(be32toh(raw) - srq->produced);
	if (srq_posted(srq) + advance > srq_max_wr(srq))
		return WHY_SRQ_DOORBELL;
	srq->produced += advance;
	return WHY_NONE;
}

/* One event for each time that the application asks.  A record that can't be believed is
 * found out by the next message. */
static void limit_check(struct emu_srq *srq)
{
	if (!srq->limit || srq->has_failed || srq_doorbell(srq) != WHY_NONE ||
	    srq_posted(srq) >= srq->limit)
		return;
	srq->limit = 0;
	srq_event(srq, EVENT_SRQ_LIMIT);
}

int srq_modify(struct emu_dev *dev, struct emu_srq *srq, uint32_t limit, uint32_t mask)
{
	if (mask & ~(uint32_t)SRQ_LIMIT || (mask & SRQ_LIMIT && limit >= srq->wqe_count)) {
		dev_why(dev, .why = WHY_CMD_VALUE, .side = WHY_SIDE_COMMAND, .addr = mask,
			.bytes = limit, .found_bytes = srq_max_wr(srq));
		return -EINVAL;
	}
	if (mask & SRQ_LIMIT)
		srq->limit = limit;
	limit_check(srq);
	return 0;
}

void srq_hold(struct emu_srq *srq, uint32_t index, uint32_t next)
{
	srq->is_held[index] = 1;
	srq->next = next;
	srq->taken++;
	limit_check(srq);
}

void srq_qp_forget(struct emu_qp *qp)
{
	if (qp->answers.is_holding)
		srq_let_go(qp->srq, qp->answers.held_index);
	qp->answers.is_holding = false;
}

void srq_fail(struct emu_srq *srq)
{
	if (srq->has_failed)
		return;
	srq->has_failed = true;
	srq_event(srq, EVENT_SRQ_ERR);
}
