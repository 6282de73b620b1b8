/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arithmetic of a CQ's ring: where CQE number i stands, which owner bit it carries,
 * and whether there is room for it.  For everyone who writes CQEs.
 *
 * Source: device-abi C.5, C.7 and C.9.
 */
#ifndef EMU_OBJ_CQ_RING_H
#define EMU_OBJ_CQ_RING_H
#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include "emu/mem/mem.h"
#include "emu/obj/obj.h"

#define CQE_BYTES	64
#define CQ_INDEX_MASK	0xffffffu	/* the record holds 24 bits */

/* Word 0 of the record is the consumer index, word 1 the arm request. */
enum { CQ_RECORD_CONSUMER = 0, CQ_RECORD_ARM = 4, CQ_RECORD_BYTES = 8 };

/* The 64 bytes that matter; a 128-byte CQE has them in its second half. */
static inline uint64_t cq_slot_addr(const struct emu_cq *cq, uint32_t index)
{
	uint64_t slot = index & (cq->cqe_count - 1);

	return cq->buf_addr + slot * cq->cqe_bytes + (cq->cqe_bytes - CQE_BYTES);
}

/* 0 in the first pass over the ring, 1 in the second, and so on. */
static inline unsigned cq_owner(const struct emu_cq *cq, uint32_t index)
{
	return (index & cq->cqe_count) != 0;
}

static inline uint32_t cq_unread(const struct emu_cq *cq)
{
	return cq->produced - cq->consumed;
}

/* By the consumer index that was read last: read it again before giving up. */
static inline bool cq_has_room(const struct emu_cq *cq)
{
	return cq_unread(cq) < cq->cqe_count;
}

/*
 * Read the consumer index and widen it into cq->consumed.  A value that would pass the
 * producer or go back is impossible and changes nothing.  0 or -EFAULT.
 */
static inline int cq_read_consumer(struct emu_cq *cq)
{
	uint32_t word, behind;
	int rc = mem_load32(cq->db_addr + CQ_RECORD_CONSUMER, &word);

	if (rc)
		return rc;
	behind = (cq->produced - be32toh(word)) & CQ_INDEX_MASK;
	if (behind <= cq_unread(cq))
		cq->consumed = cq->produced - behind;
	return 0;
}
#endif
