/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory keys: from (key, address, length, rights) to bytes, or a reason why not.
 *
 * The only place in the emulator where an address that stands in a work
 * request or packet is turned into memory.  Must not block and must not note a
 * reason: the caller knows whose fault it is.
 *
 * A key is index << 8 | tag.  Source: IBTA volume 1, 10.6; mlx5 mkey context.
 */
#ifndef EMU_OBJ_KEY_H
#define EMU_OBJ_KEY_H
#include <stdatomic.h>
#include <stdint.h>
#include <sys/uio.h>
#include "emu/diag/why.h"
#include "emu/obj/home.h"
#include "emu/obj/numbers.h"

/* Access bits of the uverbs ABI. */
enum {
	KEY_LOCAL_WRITE = 1, KEY_REMOTE_WRITE = 2, KEY_REMOTE_READ = 4, KEY_REMOTE_ATOMIC = 8,
	KEY_MW_BIND = 0x10, KEY_ZERO_BASED = 0x20, KEY_ON_DEMAND = 0x40, KEY_HUGETLB = 0x80,
	KEY_RELAXED_ORDERING = 0x100000,
	KEY_LOCAL_READ = 0,		/* every key grants it */
};

/* What a key covers.  No pointers: it lives where peers may look it up. */
struct key_entry {
	_Atomic uint8_t is_valid;
	uint8_t tag;
	uint32_t access;
	uint32_t pdn;
	uint64_t start, bytes;		/* in the key's own address space */
	uint64_t memory;		/* where `start` is, in the owner's memory */
};

struct key_table {
	struct home home;		/* of the entries */
	struct number_space indices;	/* index -> struct key_entry */
	uint8_t next_tag;
	uint8_t **last_tag;		/* [NUMBER_BLOCKS] of [NUMBER_BLOCK], by index */
};

/* table->home is set before. */
int key_table_init(struct key_table *table, number_lease_fn *lease, void *lease_ctx);
void key_table_free(struct key_table *table);

/* New key for @entry (tag and is_valid are chosen here).  -ENOMEM */
int key_create(struct key_table *table, const struct key_entry *entry, uint32_t *key_out);
void key_destroy(struct key_table *table, uint32_t key);

/*
 * May @pdn use @key for @access on [addr, addr + bytes)?  WHY_NONE and the memory in
 * *out, or the first rule that refuses, in the order index, tag, PD, rights, range.
 */
enum why key_check(const struct key_table *table, uint32_t key, uint32_t pdn, uint32_t access,
		   uint64_t addr, uint64_t bytes, struct iovec *out);

#define KEY_INDEX(key)	((key) >> 8)

/* The same of an entry that was found by the key's index, or NULL; the one place of the rules. */
enum why key_entry_check(const struct key_entry *entry, uint32_t key, uint32_t pdn,
			 uint32_t access, uint64_t addr, uint64_t bytes, struct iovec *out);
#endif
