/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory keys; see key.h.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include "emu/obj/key.h"

#define KEY_TAG_BITS	8
#define KEY_INDEX(key)	((key) >> KEY_TAG_BITS)
#define KEY_TAG(key)	((uint8_t)(key))

/* Index 0 would make keys that look like none; index 1 the one that ends receive lists. */
#define KEY_INDICES_RESERVED 2

int key_table_init(struct key_table *table, number_lease_fn *lease, void *lease_ctx)
{
	*table = (struct key_table){ 0 };
	table->last_tag = calloc(NUMBER_BLOCKS, sizeof *table->last_tag);
	if (!table->last_tag)
		return -ENOMEM;
	if (numbers_init(&table->indices, KEY_INDICES_RESERVED, lease, lease_ctx)) {
		free(table->last_tag);
		table->last_tag = NULL;
		return -ENOMEM;
	}
	return 0;
}

static void free_entries(void **entries)
{
	for (unsigned i = 0; entries && i < NUMBER_BLOCK; i++)
		free(entries[i]);
}

void key_table_free(struct key_table *table)
{
	if (!table->last_tag)
		return;
	for (unsigned i = 0; i < NUMBER_BLOCKS; i++) {
		free_entries(table->indices.block[i]);
		free(table->last_tag[i]);
	}
	free(table->last_tag);
	table->last_tag = NULL;
	numbers_free(&table->indices);
}

/* The last tag of an index outlives the key, so that a stale key never fits the next one.
 * NULL: no memory. */
static uint8_t *last_tag(struct key_table *table, uint32_t index)
{
	uint8_t **block = &table->last_tag[index >> NUMBER_BLOCK_BITS];

	if (!*block)
		*block = calloc(1, NUMBER_BLOCK);
	return *block ? *block + (index & (NUMBER_BLOCK - 1)) : NULL;
}

static uint8_t next_tag(struct key_table *table, uint8_t last)
{
	if (++table->next_tag == last)
		table->next_tag++;
	return table->next_tag;
}

int key_create(struct key_table *table, const struct key_entry *entry, uint32_t *key_out)
{
	struct key_entry *new = malloc(sizeof *new);
	uint32_t index;
	uint8_t *last;

	if (!new)
		return -ENOMEM;
	if (numbers_take(&table->indices, new, &index)) {
		free(new);
		return -ENOMEM;
	}
	last = last_tag(table, index);
	if (!last) {
		numbers_give(&table->indices, index);
		free(new);
		return -ENOMEM;
	}
	*new = *entry;
	new->is_valid = 1;
	new->tag = *last = next_tag(table, *last);
	*key_out = index << KEY_TAG_BITS | new->tag;
	return 0;
}

void key_destroy(struct key_table *table, uint32_t key)
{
	struct key_entry *entry = numbers_find(&table->indices, KEY_INDEX(key));

	assert(entry && entry->tag == KEY_TAG(key));
	numbers_give(&table->indices, KEY_INDEX(key));
	free(entry);
}

enum why key_check(const struct key_table *table, uint32_t key, uint32_t pdn, uint32_t access,
		   uint64_t addr, uint64_t bytes, struct iovec *out)
{
	const struct key_entry *entry = numbers_find(&table->indices, KEY_INDEX(key));
	uint64_t offset;

	if (!entry || !entry->is_valid)
		return WHY_KEY_UNKNOWN;
	if (entry->tag != KEY_TAG(key))
		return WHY_KEY_TAG;
	if (entry->pdn != pdn)
		return WHY_KEY_PD;
	if ((entry->access & access) != access)
		return WHY_KEY_RIGHTS;
	offset = addr - entry->start;
	if (addr < entry->start || offset > entry->bytes || bytes > entry->bytes - offset)
		return WHY_KEY_RANGE;
	out->iov_base = (void *)(uintptr_t)(entry->memory + offset);
	out->iov_len = bytes;
	return WHY_NONE;
}
