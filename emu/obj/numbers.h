/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Number spaces: 24-bit numbers (QPN, CQN, PD, key index) to objects.
 *
 * Numbers come in blocks that the fabric leases, so that a number names its
 * process.  Look-up is two loads.  A freed number is reused as late as possible.
 */
#ifndef EMU_OBJ_NUMBERS_H
#define EMU_OBJ_NUMBERS_H
#include <stdint.h>

#define NUMBER_BITS		24
#define NUMBER_BLOCK_BITS	10
#define NUMBER_BLOCK		(1u << NUMBER_BLOCK_BITS)
#define NUMBER_BLOCKS		(1u << (NUMBER_BITS - NUMBER_BLOCK_BITS))

/* Lease a block: its index, 0 to NUMBER_BLOCKS - 1, or -ENOMEM. */
typedef int number_lease_fn(void *ctx);

struct number_space {
	void ***block;			/* [NUMBER_BLOCKS] of [NUMBER_BLOCK], by block index */
	number_lease_fn *lease;
	void *lease_ctx;
	uint32_t *free_ring;		/* FIFO of free numbers */
	uint32_t free_head, free_count, free_size;
	uint32_t reserved;		/* numbers below this are never handed out */
	uint32_t leased;		/* numbers in all leased blocks */
	uint16_t *order;		/* the leased blocks, as they came */
	uint32_t taken;			/* numbers in use */
};

/* @lease NULL: the space belongs to this process alone. */
int numbers_init(struct number_space *space, uint32_t reserved, number_lease_fn *lease,
		 void *lease_ctx);
void numbers_free(struct number_space *space);
int numbers_take(struct number_space *space, void *object, uint32_t *number_out); /* -ENOMEM */
/* Another object for a number that is taken. */
void numbers_set(struct number_space *space, uint32_t number, void *object);
void numbers_give(struct number_space *space, uint32_t number);

/* All objects, one a call, and then NULL; *@at is 0 at first.  What is taken meanwhile may be left
 * out.  Walks the leased blocks only. */
void *numbers_next(const struct number_space *space, uint32_t *at);

static inline void *numbers_find(const struct number_space *space, uint32_t number)
{
	void **block;

	if (number >> NUMBER_BITS)
		return 0;
	block = space->block[number >> NUMBER_BLOCK_BITS];
	return block ? block[number & (NUMBER_BLOCK - 1)] : 0;
}
#endif
