/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Number spaces: leasing blocks, and a queue of the free numbers.
 *
 * A freed number goes to the queue's end.  A new block is leased before the queue is
 * quite empty, so that a number rests a while even when nearly all are in use.
 */
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include "emu/obj/numbers.h"
#include "include/base/sparse.h"

/* Fewer free numbers than this, and one more block is asked for. */
#define NUMBERS_RESTING	256u

int numbers_init(struct number_space *space, uint32_t reserved, number_lease_fn *lease,
		 void *lease_ctx)
{
	*space = (struct number_space){
		.lease = lease, .lease_ctx = lease_ctx, .reserved = reserved,
	};
	space->block = sparse_alloc(NUMBER_BLOCKS * sizeof *space->block);
	return space->block ? 0 : -ENOMEM;
}

void numbers_free(struct number_space *space)
{
	for (uint32_t i = 0; i < space->leased / NUMBER_BLOCK; i++)
		free(space->block[space->order[i]]);
	sparse_free(space->block, NUMBER_BLOCKS * sizeof *space->block);
	free(space->free_ring);
	free(space->order);
	*space = (struct number_space){ 0 };
}

static void queue_push(struct number_space *space, uint32_t number)
{
	assert(space->free_count < space->free_size);
	space->free_ring[(space->free_head + space->free_count++) & (space->free_size - 1)] =
		number;
}

/* Room for the numbers of one more block, so that giving one back never fails. */
static int space_grow(struct number_space *space)
{
	uint32_t need = space->leased + NUMBER_BLOCK;
	uint32_t size = space->free_size ? space->free_size : NUMBER_BLOCK;
	uint16_t *order;
	uint32_t *ring;

	while (size < need)
		size *= 2;
	if (size == space->free_size)
		return 0;
	order = realloc(space->order, size / NUMBER_BLOCK * sizeof *order);
	if (!order)
		return -ENOMEM;
	space->order = order;
	ring = malloc(size * sizeof *ring);
	if (!ring)
		return -ENOMEM;
	for (uint32_t i = 0; i < space->free_count; i++)
		ring[i] = space->free_ring[(space->free_head + i) & (space->free_size - 1)];
	free(space->free_ring);
	space->free_ring = ring;
	space->free_size = size;
	space->free_head = 0;
	return 0;
}

/* Without a fabric the space is ours alone: the first block that is not there yet. */
static int lease_own(const struct number_space *space)
{
	for (unsigned i = 0; i < NUMBER_BLOCKS; i++)
		if (!space->block[i])
			return i;
	return -ENOMEM;
}

static int lease_block(struct number_space *space)
{
	void **objects;
	int block;

	if (space_grow(space))
		return -ENOMEM;
	objects = calloc(NUMBER_BLOCK, sizeof *objects);
	if (!objects)
		return -ENOMEM;
	block = space->lease ? space->lease(space->lease_ctx) : lease_own(space);
	/* What the fabric says is not trusted: a block may come once only. */
	if (block < 0 || block >= (int)NUMBER_BLOCKS || space->block[block]) {
		free(objects);
		return -ENOMEM;
	}
	space->block[block] = objects;
	space->order[space->leased / NUMBER_BLOCK] = (uint16_t)block;
	space->leased += NUMBER_BLOCK;
	for (uint32_t i = 0; i < NUMBER_BLOCK; i++) {
		uint32_t number = (uint32_t)block << NUMBER_BLOCK_BITS | i;

		if (number >= space->reserved)
			queue_push(space, number);
	}
	return 0;
}

int numbers_take(struct number_space *space, void *object, uint32_t *number_out)
{
	uint32_t number;

	assert(object);
	/* A lease that fails leaves what is free; one may bring reserved numbers only. */
	while (space->free_count < NUMBERS_RESTING)
		if (lease_block(space))
			break;
	if (!space->free_count)
		return -ENOMEM;
	number = space->free_ring[space->free_head];
	space->free_head = (space->free_head + 1) & (space->free_size - 1);
	space->free_count--;
	space->taken++;
	space->block[number >> NUMBER_BLOCK_BITS][number & (NUMBER_BLOCK - 1)] = object;
	*number_out = number;
	return 0;
}

void numbers_set(struct number_space *space, uint32_t number, void *object)
{
	assert(object && numbers_find(space, number));
	space->block[number >> NUMBER_BLOCK_BITS][number & (NUMBER_BLOCK - 1)] = object;
}

void numbers_give(struct number_space *space, uint32_t number)
{
	assert(numbers_find(space, number));
	space->block[number >> NUMBER_BLOCK_BITS][number & (NUMBER_BLOCK - 1)] = NULL;
	space->taken--;
	queue_push(space, number);
}

void *numbers_next(const struct number_space *space, uint32_t *at)
{
	while (*at < space->leased) {
		void *const *block = space->block[space->order[*at >> NUMBER_BLOCK_BITS]];
		void *object = block[(*at)++ & (NUMBER_BLOCK - 1)];

		if (object)
			return object;
	}
	return NULL;
}
