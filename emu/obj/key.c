/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory keys; see key.h.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include "emu/obj/key.h"
#include "include/base/sparse.h"

#define KEY_TAG_BITS	8
#define KEY_TAG(key)	((uint8_t)(key))

/* Index 0 would make keys that look like none; index 1 the one that ends receive lists. */
#define KEY_INDICES_RESERVED 2

#define TAG_BLOCKS_BYTES (NUMBER_BLOCKS * sizeof(uint8_t *))

int key_table_init(struct key_table *table, number_lease_fn *lease, void *lease_ctx)
{
	*table = (struct key_table){ .home = table->home };
	table->last_tag = sparse_alloc(TAG_BLOCKS_BYTES);
	if (!table->last_tag)
		return -ENOMEM;
	if (numbers_init(&table->indices, KEY_INDICES_RESERVED, lease, lease_ctx)) {
		sparse_free(table->last_tag, TAG_BLOCKS_BYTES);
		table->last_tag = NULL;
		return -ENOMEM;
	}
	return 0;
}

static void free_entries(struct key_table *table, void **entries)
{
	for (unsigned i = 0; entries && i < NUMBER_BLOCK; i++)
		if (entries[i])
			home_give(&table->home, entries[i]);
}

void key_table_free(struct key_table *table)
{
	if (!table->last_tag)
		return;
	/* Nearly all of the many blocks are empty. */
	for (uint32_t i = 0, left = table->indices.leased; left; i++) {
		if (!table->indices.block[i])
			continue;
		free_entries(table, table->indices.block[i]);
		free(table->last_tag[i]);
		left -= NUMBER_BLOCK;
	}
	sparse_free(table->last_tag, TAG_BLOCKS_BYTES);
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

static struct key_entry *entry_make(struct key_table *table, uint32_t *index_out)
{
	struct key_entry *entry;
	uint32_t index;

	/* The number must be known to find the entry a place; until then the table stands in. */
	if (numbers_take(&table->indices, table, &index))
		return NULL;
	entry = last_tag(table, index) ?
		home_take(&table->home, HOME_KEY, index, sizeof *entry) : NULL;
	if (!entry) {
		numbers_give(&table->indices, index);
		return NULL;
	}
	numbers_set(&table->indices, index, entry);
	*index_out = index;
	return entry;
}

int key_create(struct key_table *table, const struct key_entry *entry, uint32_t *key_out)
{
	uint32_t index;
	struct key_entry *new = entry_make(table, &index);
	uint8_t *last;

	if (!new)
		return -ENOMEM;
	last = last_tag(table, index);
	new->tag = *last = next_tag(table, *last);
	new->access = entry->access;
	new->pdn = entry->pdn;
	new->start = entry->start;
	new->bytes = entry->bytes;
	new->memory = entry->memory;
	atomic_store_explicit(&new->is_valid, 1, memory_order_release);
	*key_out = index << KEY_TAG_BITS | new->tag;
	return 0;
}

void key_destroy(struct key_table *table, uint32_t key)
{
	struct key_entry *entry = numbers_find(&table->indices, KEY_INDEX(key));

	assert(entry && *last_tag(table, KEY_INDEX(key)) == KEY_TAG(key));
	atomic_store(&entry->is_valid, 0);
	home_quiesce(&table->home);
	numbers_give(&table->indices, KEY_INDEX(key));
	home_give(&table->home, entry);
}

enum why key_entry_check(const struct key_entry *entry, uint32_t key, uint32_t pdn,
			 uint32_t access, uint64_t addr, uint64_t bytes, struct iovec *out)
{
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

enum why key_check(const struct key_table *table, uint32_t key, uint32_t pdn, uint32_t access,
		   uint64_t addr, uint64_t bytes, struct iovec *out)
{
	return key_entry_check(numbers_find(&table->indices, KEY_INDEX(key)), key, pdn, access,
			       addr, bytes, out);
}
