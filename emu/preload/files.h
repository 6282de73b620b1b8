/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which descriptors are the device: a table from number to open file, as the kernel has it.
 *
 * The numbers are real: behind each is a memfd, whose inode tells whether the number
 * still means what the table says (the C library closes descriptors behind our back).
 *
 * Threads: any.  A file that is in use by a call outlives its close(), as in the kernel.
 * fork: the child's files are dead.  vfork: the child's calls change nothing here.
 */
#ifndef EMU_PRELOAD_FILES_H
#define EMU_PRELOAD_FILES_H
#include <stdbool.h>
#include <stddef.h>

struct uv_file;
struct shim_file;

#define FILES_BLOCK	1024u

extern unsigned files_count;		/* descriptors in the table */
extern struct shim_file **files_block[FILES_BLOCK];

/* A guess that costs two loads; false is certain. */
static inline bool files_may_be_ours(int fd)
{
	struct shim_file **block;

	if (__builtin_expect(!__atomic_load_n(&files_count, __ATOMIC_RELAXED), 1))
		return false;
	if (fd < 0 || (unsigned)fd / FILES_BLOCK >= FILES_BLOCK)
		return false;
	block = __atomic_load_n(&files_block[(unsigned)fd / FILES_BLOCK], __ATOMIC_ACQUIRE);
	return block && __atomic_load_n(&block[(unsigned)fd % FILES_BLOCK], __ATOMIC_RELAXED);
}

/* @fd is a new descriptor of @uv, which the table then owns.  -ENOMEM, -EMFILE */
int files_add(int fd, struct uv_file *uv);

/* The file behind @fd, in use until files_put(); NULL: not ours, whatever the guess said. */
struct shim_file *files_get(int fd);
/* The same for a number that an open context holds: nothing is asked of the kernel. */
struct shim_file *files_known(int fd);
void files_put(struct shim_file *file);

/* What to call; NULL in a forked child, whose device is gone. */
struct uv_file *files_device(const struct shim_file *file);

/* @fd was duplicated to @new_fd, which may have been ours before.  Neither need be ours. */
void files_dup(int fd, int new_fd);

/* @fd is about to be closed: takes it out of the table.  files_put() what comes back, after
 * the close; NULL: not ours. */
struct shim_file *files_take(int fd);

/* @file came out of the table and its descriptor @fd is still there: if that was the last one, see
 * whether other processes have it. */
void files_watch(struct shim_file *file, int fd);

/* Numbers from @first to @last were closed, perhaps. */
void files_look_again(unsigned first, unsigned last);
#endif
