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

/*
 * KEY_MEMORY covers memory; KEY_WINDOW opens a part of another key's range to peers, with rights of
 * its own.  A window that is not bound covers nothing, and its entry is not valid.
 */
enum key_kind { KEY_MEMORY, KEY_WINDOW };

/* The null key: for local use in every domain, reads zeros and takes anything.  Its index is never
 * handed out, and it is not the one that ends receive lists. */
#define KEY_NULL	0x1ffu

#define KEY_QPN_ANY	0xffffffu	/* a window for every QP of its domain */
#define KEY_QPN_LOCAL	UINT32_MAX	/* nobody's number: the access is the requester's own */

/* What a key covers.  No pointers: it lives where peers may look it up. */
struct key_entry {
	_Atomic uint8_t is_valid;
	uint8_t tag;
	uint8_t kind;			/* enum key_kind */
	uint32_t access;
	uint32_t pdn;
	uint32_t qpn;			/* KEY_WINDOW: the responder it serves, or KEY_QPN_ANY */
	uint32_t parent;		/* KEY_WINDOW: the key that it opens */
	uint64_t start, bytes;		/* in the key's own address space */
	uint64_t memory;		/* where `start` is: in the owner's memory, or in the
					 * parent's address space */
};

/* What only the owner of a table knows of a key.  Not where others could write. */
struct key_own {
	void *owner;			/* the object behind the key, or NULL */
	uint8_t last_tag;
};

struct key_use;
typedef enum why key_far_fn(void *ctx, const struct key_use *use, struct iovec *out);

struct key_table {
	struct home home;		/* of the entries */
	struct number_space indices;	/* index -> struct key_entry */
	uint8_t next_tag;
	struct key_own **own;		/* [NUMBER_BLOCKS] of [NUMBER_BLOCK], by index */
	/* Asked about a key that is not here: may it be done to memory of another function?  NULL:
	 * there is no other. */
	key_far_fn *far;
	void *far_ctx;
};

/* table->home is set before. */
int key_table_init(struct key_table *table, number_lease_fn *lease, void *lease_ctx);
void key_table_free(struct key_table *table);

/* New key for @entry (tag and is_valid are chosen here: a window is not bound).  -ENOMEM */
int key_create(struct key_table *table, const struct key_entry *entry, uint32_t *key_out);
void key_destroy(struct key_table *table, uint32_t key);

/* The object behind an index, as key_owner_set() said; NULL: none. */
void *key_owner(const struct key_table *table, uint32_t index);
void key_owner_set(struct key_table *table, uint32_t index, void *owner);

/* Close a key: when this returns nobody uses it any more.  Open it again as @entry says, the
 * tag included; returns the key. */
void key_close(struct key_table *table, uint32_t index);
uint32_t key_open(struct key_table *table, uint32_t index, const struct key_entry *entry);

#define KEY_INDEX(key)	((key) >> 8)

/* What somebody wants of a key. */
struct key_use {
	uint32_t key, pdn;
	uint32_t qpn;			/* of the responder, or KEY_QPN_LOCAL */
	uint32_t access;
	uint64_t addr, bytes;
};

/*
 * May it be done?  WHY_NONE and the memory in *out, or the first rule that refuses, in the
 * order index, tag, PD, QP, rights, range; then the same of a window's parent.
 */
enum why key_use_check(const struct key_table *table, const struct key_use *use,
		       struct iovec *out);

/* The same of a key that is not here. */
enum why key_far_check(const struct key_table *table, const struct key_use *use,
		       struct iovec *out);
/* The same, and only of keys that are here. */
enum why key_own_check(const struct key_table *table, const struct key_use *use,
		       struct iovec *out);

/* As key_use_check() of a requester's own access. */
enum why key_check(const struct key_table *table, uint32_t key, uint32_t pdn, uint32_t access,
		   uint64_t addr, uint64_t bytes, struct iovec *out);

/* The same with entries from elsewhere; the one place of the rules.  @find: the entry of an
 * index, perhaps copied to @room, or NULL. */
typedef const struct key_entry *key_find_fn(const void *ctx, uint32_t index,
					    struct key_entry *room);
enum why key_find_check(key_find_fn *find, const void *ctx, const struct key_use *use,
			struct iovec *out);
#endif
