/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * User indexes: the 24 bits by which a completion names its queue.
 *
 * Two levels.  Writers hold `table_lock`; readers hold nothing, because an index is given up only
 * after the completions of its queue were taken out of its CQs.
 */
#include <errno.h>
#include <stdlib.h>
#include "verbs/context.h"

#define BLOCK		16384u
#define BLOCKS		1024u
#define NO_INDEX	0xffffffu	/* means that a queue has none */

/* The first free place of block @b at or behind @from, in a circle; there is one. */
static uint32_t find_free(const struct vb_context *c, uint32_t b, uint32_t from)
{
	uint32_t i = from;

	while (c->queue_block[b][i % BLOCK] || b * BLOCK + i % BLOCK == NO_INDEX)
		i++;
	return i % BLOCK;
}

static uint32_t block_room(uint32_t b)
{
	return b == NO_INDEX / BLOCK ? BLOCK - 1 : BLOCK;
}

/* The block that had room last, or another one, made if need be; BLOCKS: there is none. */
static uint32_t block_with_room(struct vb_context *c)
{
	struct vb_queue **block;

	for (uint32_t n = 0; n < BLOCKS; n++) {
		uint32_t b = (c->table_hint / BLOCK + n) % BLOCKS;

		if (c->queue_block[b] && c->queues_in[b] == block_room(b))
			continue;
		if (c->queue_block[b])
			return b;
		block = calloc(BLOCK, sizeof *block);
		if (!block)
			return BLOCKS;
		__atomic_store_n(&c->queue_block[b], block, __ATOMIC_RELEASE);
		return b;
	}
	return BLOCKS;
}

/* Indexes are given in order, so that one which was given up rests a while. */
static int add_locked(struct vb_context *c, struct vb_queue *queue)
{
	uint32_t b = block_with_room(c), i;

	if (b == BLOCKS)
		return ENOMEM;
	i = find_free(c, b, b == c->table_hint / BLOCK ? c->table_hint % BLOCK : 0);
	queue->user_index = b * BLOCK + i;
	__atomic_store_n(&c->queue_block[b][i], queue, __ATOMIC_RELEASE);
	c->queues_in[b]++;
	c->table_hint = b * BLOCK + (i + 1) % BLOCK;
	return 0;
}

int vb_queue_add(struct vb_context *c, struct vb_queue *queue)
{
	int error;

	vb_lock(&c->table_lock);
	error = add_locked(c, queue);
	vb_unlock(&c->table_lock);
	return error;
}

void vb_queue_remove(struct vb_context *c, struct vb_queue *queue)
{
	uint32_t b = queue->user_index / BLOCK;

	vb_lock(&c->table_lock);
	__atomic_store_n(&c->queue_block[b][queue->user_index % BLOCK], NULL, __ATOMIC_RELEASE);
	c->queues_in[b]--;
	vb_unlock(&c->table_lock);
}

void vb_table_end(struct vb_context *c)
{
	for (uint32_t b = 0; b < BLOCKS; b++)
		free(c->queue_block[b]);
}
