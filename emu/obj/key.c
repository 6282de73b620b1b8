/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory keys; see key.h.
 */
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include "emu/mem/mem.h"
#include "emu/obj/key.h"
#include "include/base/sparse.h"

#define KEY_TAG_BITS	8
#define KEY_TAG(key)	((uint8_t)(key))

/* Index 0 would make keys that look like none; index 1 the one that ends receive lists. */
#define KEY_INDICES_RESERVED 2

#define OWN_BLOCKS_BYTES (NUMBER_BLOCKS * sizeof(struct key_own *))

int key_table_init(struct key_table *table, number_lease_fn *lease, void *lease_ctx)
{
	*table = (struct key_table){ .home = table->home };
	table->own = sparse_alloc(OWN_BLOCKS_BYTES);
	if (!table->own)
		return -ENOMEM;
	if (numbers_init(&table->indices, KEY_INDICES_RESERVED, lease, lease_ctx)) {
		sparse_free(table->own, OWN_BLOCKS_BYTES);
		table->own = NULL;
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
	if (!table->own)
		return;
	/* Nearly all of the many blocks are empty. */
	for (uint32_t i = 0, left = table->indices.leased; left; i++) {
		if (!table->indices.block[i])
			continue;
		free_entries(table, table->indices.block[i]);
		free(table->own[i]);
		left -= NUMBER_BLOCK;
	}
	sparse_free(table->own, OWN_BLOCKS_BYTES);
	table->own = NULL;
	numbers_free(&table->indices);
}

/* What is known of an index outlives the key: by its last tag a stale key never fits the next
 * one.  NULL: no memory. */
static struct key_own *own_make(struct key_table *table, uint32_t index)
{
	struct key_own **block = &table->own[index >> NUMBER_BLOCK_BITS];

	if (!*block)
		*block = calloc(NUMBER_BLOCK, sizeof **block);
	return *block ? *block + (index & (NUMBER_BLOCK - 1)) : NULL;
}

static struct key_own *own_find(const struct key_table *table, uint32_t index)
{
	struct key_own *block = table->own[index >> NUMBER_BLOCK_BITS];

	return block ? block + (index & (NUMBER_BLOCK - 1)) : NULL;
}

void *key_owner(const struct key_table *table, uint32_t index)
{
	struct key_own *own = index >> NUMBER_BITS ? NULL : own_find(table, index);

	return own ? own->owner : NULL;
}

void key_owner_set(struct key_table *table, uint32_t index, void *owner)
{
	own_find(table, index)->owner = owner;
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
	entry = own_make(table, index) ?
		home_take(&table->home, HOME_KEY, index, sizeof *entry) : NULL;
	if (!entry) {
		numbers_give(&table->indices, index);
		return NULL;
	}
	numbers_set(&table->indices, index, entry);
	*index_out = index;
	return entry;
}

static void entry_fill(struct key_entry *entry, const struct key_entry *as)
{
	entry->kind = as->kind;
	entry->access = as->access;
	entry->pdn = as->pdn;
	entry->qpn = as->qpn;
	entry->parent = as->parent;
	entry->start = as->start;
	entry->bytes = as->bytes;
	entry->memory = as->memory;
}

int key_create(struct key_table *table, const struct key_entry *entry, uint32_t *key_out)
{
	uint32_t index;
	struct key_entry *new = entry_make(table, &index);
	struct key_own *own;

	if (!new)
		return -ENOMEM;
	own = own_find(table, index);
	new->tag = own->last_tag = next_tag(table, own->last_tag);
	entry_fill(new, entry);
	atomic_store_explicit(&new->is_valid, entry->kind != KEY_WINDOW, memory_order_release);
	*key_out = index << KEY_TAG_BITS | new->tag;
	return 0;
}

static struct key_entry *entry_find(const struct key_table *table, uint32_t index)
{
	return numbers_find(&table->indices, index);
}

void key_close(struct key_table *table, uint32_t index)
{
	atomic_store(&entry_find(table, index)->is_valid, 0);
	home_quiesce(&table->home);
}

uint32_t key_open(struct key_table *table, uint32_t index, const struct key_entry *entry)
{
	struct key_entry *now = entry_find(table, index);

	entry_fill(now, entry);
	now->tag = own_find(table, index)->last_tag = entry->tag;
	atomic_store_explicit(&now->is_valid, 1, memory_order_release);
	return index << KEY_TAG_BITS | entry->tag;
}

void key_destroy(struct key_table *table, uint32_t key)
{
	struct key_entry *entry = entry_find(table, KEY_INDEX(key));
	struct key_own *own = own_find(table, KEY_INDEX(key));

	assert(entry && own->last_tag == KEY_TAG(key));
	own->owner = NULL;
	key_close(table, KEY_INDEX(key));
	numbers_give(&table->indices, KEY_INDEX(key));
	home_give(&table->home, entry);
}

/* A window that is not bound grants nothing, and one of another QP nothing to this one.  As a
 * local key no window is good. */
static enum why window_check(const struct key_entry *entry, const struct key_use *use)
{
	if (use->qpn == KEY_QPN_LOCAL)
		return WHY_WINDOW_LOCAL;
	return entry->qpn == KEY_QPN_ANY || entry->qpn == use->qpn ? WHY_NONE : WHY_WINDOW_QP;
}

static enum why grant_check(const struct key_entry *entry, const struct key_use *use)
{
	if (!entry)
		return WHY_KEY_UNKNOWN;
	if (!entry->is_valid)
		return entry->kind == KEY_WINDOW ? WHY_WINDOW_FREE : WHY_KEY_UNKNOWN;
	if (entry->tag != KEY_TAG(use->key))
		return WHY_KEY_TAG;
	if (entry->pdn != use->pdn)
		return WHY_KEY_PD;
	return entry->kind == KEY_WINDOW ? window_check(entry, use) : WHY_NONE;
}

/* The entry alone; *at_out is where it leads. */
static enum why entry_check(const struct key_entry *entry, const struct key_use *use,
			    uint64_t *at_out)
{
	enum why why = grant_check(entry, use);
	uint64_t offset;

	if (why != WHY_NONE)
		return why;
	if ((entry->access & use->access) != use->access)
		return WHY_KEY_RIGHTS;
	offset = use->addr - entry->start;
	if (use->addr < entry->start || offset > entry->bytes ||
	    use->bytes > entry->bytes - offset)
		return WHY_KEY_RANGE;
	*at_out = entry->memory + offset;
	return WHY_NONE;
}

/* What a use of a window that leads to @at is of the region under it. */
static struct key_use parent_use(const struct key_entry *window, const struct key_use *use,
				 uint64_t at)
{
	bool writes = use->access & (KEY_REMOTE_WRITE | KEY_REMOTE_ATOMIC);

	return (struct key_use){
		.key = window->parent, .pdn = use->pdn, .qpn = KEY_QPN_LOCAL,
		.access = writes ? KEY_LOCAL_WRITE : KEY_LOCAL_READ,
		.addr = at, .bytes = use->bytes,
	};
}

/* The region under a window may have been changed or be gone since the window was bound.  Another
 * window is no region. */
static enum why parent_check(key_find_fn *find, const void *ctx, const struct key_entry *window,
			     const struct key_use *use, uint64_t *at)
{
	const struct key_use inner = parent_use(window, use, *at);
	struct key_entry room;

	return entry_check(find(ctx, KEY_INDEX(inner.key), &room), &inner, at) == WHY_NONE ?
	       WHY_NONE : WHY_WINDOW_REGION;
}

/* Where no key was found. */
static bool is_null(const struct key_use *use)
{
	return use->key == KEY_NULL && use->qpn == KEY_QPN_LOCAL;
}

/* Inlined, so that the common look-up, a region in the own table, makes no call. */
static inline __attribute__((always_inline)) enum why find_check(key_find_fn *find,
	const void *ctx, const struct key_use *use, struct iovec *out)
{
	struct key_entry room;
	const struct key_entry *entry = find(ctx, KEY_INDEX(use->key), &room);
	uint64_t at;
	enum why why = entry_check(entry, use, &at);

	if (why == WHY_NONE && entry->kind == KEY_WINDOW)
		why = parent_check(find, ctx, entry, use, &at);
	if (why == WHY_KEY_UNKNOWN && is_null(use)) {
		at = MEM_NOWHERE;
		why = WHY_NONE;
	}
	if (why != WHY_NONE)
		return why;
	out->iov_base = (void *)(uintptr_t)at;
	out->iov_len = use->bytes;
	return WHY_NONE;
}

enum why key_find_check(key_find_fn *find, const void *ctx, const struct key_use *use,
			struct iovec *out)
{
	return find_check(find, ctx, use, out);
}

static const struct key_entry *find_own(const void *ctx, uint32_t index, struct key_entry *room)
{
	(void)room;
	return entry_find(ctx, index);
}

enum why key_own_check(const struct key_table *table, const struct key_use *use,
		       struct iovec *out)
{
	return find_check(find_own, table, use, out);
}

enum why key_far_check(const struct key_table *table, const struct key_use *use,
		       struct iovec *out)
{
	return table->far ? table->far(table->far_ctx, use, out) : WHY_KEY_UNKNOWN;
}

/* A window of ours may be bound to a region of another function. */
static enum why far_parent_check(const struct key_table *table, const struct key_use *use,
				 struct iovec *out)
{
	const struct key_entry *window = entry_find(table, KEY_INDEX(use->key));
	struct key_use inner;
	uint64_t at;

	if (entry_check(window, use, &at) != WHY_NONE)
		return WHY_WINDOW_REGION;	/* it is being changed */
	inner = parent_use(window, use, at);
	return !entry_find(table, KEY_INDEX(inner.key)) &&
	       key_far_check(table, &inner, out) == WHY_NONE ? WHY_NONE : WHY_WINDOW_REGION;
}

enum why key_use_check(const struct key_table *table, const struct key_use *use,
		       struct iovec *out)
{
	enum why why = find_check(find_own, table, use, out);

	if (__builtin_expect(why == WHY_KEY_UNKNOWN, 0))
		return key_far_check(table, use, out);
	if (__builtin_expect(why == WHY_WINDOW_REGION, 0))
		return far_parent_check(table, use, out);
	return why;
}

enum why key_check(const struct key_table *table, uint32_t key, uint32_t pdn, uint32_t access,
		   uint64_t addr, uint64_t bytes, struct iovec *out)
{
	const struct key_use use = { key, pdn, KEY_QPN_LOCAL, access, addr, bytes };

	return key_use_check(table, &use, out);
}
