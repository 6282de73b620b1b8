/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading a completion queue.
 *
 * Source: device-abi C.6, C.9.2.
 */
#ifndef VERBS_POLL_H
#define VERBS_POLL_H
#include <endian.h>
#include "hw-models/hw.h"
#include "verbs/queue.h"

struct ibv_wc;

/* Has the device written the entry of that index?  What it wrote before it is visible then. */
static inline bool vb_cqe_is_new(const struct vb_cq *cq, uint32_t index)
{
	const uint8_t *last = cq->at +
		(size_t)((index & (cq->entries - 1)) + 1) * cq->entry_bytes - 1;
	uint8_t op_own = __atomic_load_n(last, __ATOMIC_ACQUIRE);

	return op_own >> 4 != HW_CQE_INVALID && (op_own & 1) == !!(index & cq->entries);
}

/* @count entries more are read.  Who arms looks without the lock. */
static inline void vb_cq_consume(struct vb_cq *cq, uint32_t count)
{
	__atomic_store_n(&cq->consumed, cq->consumed + count, __ATOMIC_RELAXED);
}

/* The device may use again what was read. */
static inline void vb_cq_publish(struct vb_cq *cq)
{
	__atomic_store_n(&cq->record[0], htobe32(cq->consumed & 0xffffff), __ATOMIC_RELEASE);
}

/* Fills in the functions of an extended CQ. */
void vb_poll_fill(struct vb_cq *cq);
int vb_poll_cq(struct ibv_cq *base, int count, struct ibv_wc *wc);
#endif
