/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the processes of a fabric share with each other: open device files, and domains, regions and
 * device memory in them.
 *
 * Each function tells of its own in entries that the others can look up by number, and of what it
 * holds of theirs.  Nobody writes to an entry of somebody else (but for one word of hints), so that
 * whatever a process held is free when it dies.  Importer and owner find each other's doings in
 * whatever order they come: the importer holds first and then looks whether the object is there,
 * the owner says that the object is leaving and then looks for holds.
 *
 * Threads: the caller holds the device lock.
 */
#ifndef EMU_OBJ_ABROAD_H
#define EMU_OBJ_ABROAD_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct emu_obj;

/*
 * Numbers of entries, 24 bits: file << 16 | handle for the objects of a file, and one more for the
 * file itself; the last file number stands for what the function holds.
 */
#define ABROAD_FILES		255u
#define ABROAD_HANDLES		0xffffu		/* those from here on can't be imported */
#define ABROAD_HOLDS		0x10000u

#define ABROAD_OF_FILE(file)		((file) << 16 | ABROAD_HANDLES)
#define ABROAD_OF_OBJECT(file, handle)	((file) << 16 | (handle))
#define ABROAD_OF_HOLD(index)		(ABROAD_FILES << 16 | (index))

enum abroad_state { ABROAD_NONE, ABROAD_THERE, ABROAD_LEAVING };

/* An open file.  It is known by the inode of its command descriptor. */
struct abroad_file {
	_Atomic uint32_t state;
	uint32_t static_pages;
	uint64_t dev, ino;
	uint8_t has_context, has_dynamic_pages, cqe_version;
	_Atomic uint64_t importers[4];	/* slots of who may hold something; written by them */
};

struct abroad_object {
	_Atomic uint32_t state;
	uint32_t type;			/* enum obj_type */
	uint32_t pdn;			/* of the domain, or of the region's */
	uint32_t key;
	uint64_t bytes, iova;
	uint32_t page;			/* of device memory: in the owner's file */
};

/* Whose, and the number of its entry there. */
struct abroad_ref { uint32_t slot, generation, number; };

struct abroad_hold {
	_Atomic uint32_t state;
	_Atomic uint32_t users;		/* how many objects stand on it */
	struct abroad_ref ref;
};

union abroad_entry {
	struct abroad_file file;
	struct abroad_object object;
	struct abroad_hold hold;
};

/* An object that stands for another one: of another function, or of another file of this one. */
struct emu_proxy {
	struct emu_obj *obj;
	struct emu_proxy *next;		/* in its file, if it has the handle of the owner */
	struct emu_proxy *next_of_all;	/* in the device */
	struct abroad_ref ref;
	struct abroad_hold *hold;	/* NULL: an alias */
	struct emu_obj *target;		/* of an alias: what it is an alias of */
};

/* Who the others are.  NULL functions: there are none. */
struct abroad {
	uint32_t self, generation;	/* this function among them */
	/* The zeroed entry of @number, or NULL: the others will not see it. */
	void *(*take)(void *ctx, uint32_t number);
	/* A free hold of ours, or NULL. */
	struct abroad_hold *(*hold)(void *ctx, const struct abroad_ref *ref);
	/* How many functions hold our object @number, and what stands on it there.  Those that
	 * can't be looked at count. */
	unsigned (*holders)(void *ctx, const struct abroad_file *file, uint32_t number,
			    unsigned *users_out);
	/* A copy of an entry.  0; -ENOENT; -EIO its function is gone */
	int (*read)(void *ctx, const struct abroad_ref *ref, union abroad_entry *out);
	/* We may hold something of the file @ref: whoever owns it looks. */
	int (*mark)(void *ctx, const struct abroad_ref *ref);
	/*
	 * The memory of a file's device memory; made if @bytes is not 0, which only its owner asks
	 * for.  A descriptor, which the caller closes, or -errno.
	 */
	int (*memory)(void *ctx, const struct abroad_ref *ref, size_t bytes);
	void (*memory_end)(void *ctx, const struct abroad_ref *ref);
	/* That of the function with this slot, 0: none. */
	uint32_t (*generation_of)(void *ctx, uint32_t slot);
	/* False: it has died, or left. */
	bool (*lives)(void *ctx, const struct abroad_ref *ref);
	void *ctx;
};
#endif
