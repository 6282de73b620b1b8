/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The descriptor table.
 *
 * The lock guards numbers and counts only; the emulator is never called under it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include "emu/emu.h"
#include "emu/preload/files.h"
#include "emu/preload/real.h"

struct shim_file {
	struct uv_file *uv;
	unsigned users;			/* descriptors and running calls */
	bool is_dead;			/* inherited by fork() */
	dev_t dev;
	ino_t ino;
};

unsigned files_count;
struct shim_file **files_block[FILES_BLOCK];

static pthread_mutex_t files_lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t files_pid;			/* whose table this is: a vfork child only looks */

static struct shim_file **slot_of(int fd)
{
	struct shim_file **block = files_block[(unsigned)fd / FILES_BLOCK];

	return block ? &block[(unsigned)fd % FILES_BLOCK] : NULL;
}

/* The slot, made if need be; the caller has bounded @fd. */
static struct shim_file **slot_make(int fd)
{
	struct shim_file **block = files_block[(unsigned)fd / FILES_BLOCK];

	if (!block) {
		block = calloc(FILES_BLOCK, sizeof *block);
		if (!block)
			return NULL;
		__atomic_store_n(&files_block[(unsigned)fd / FILES_BLOCK], block,
				 __ATOMIC_RELEASE);
	}
	return &block[(unsigned)fd % FILES_BLOCK];
}

/* Lock held.  Returns what was there, with its use handed to the caller. */
static struct shim_file *slot_set(struct shim_file **slot, struct shim_file *file)
{
	struct shim_file *old = *slot;

	if (file)
		file->users++;
	files_count += (unsigned)(file != NULL) - (unsigned)(old != NULL);
	__atomic_store_n(slot, file, __ATOMIC_RELAXED);
	return old;
}

static void fork_prepare(void)
{
	pthread_mutex_lock(&files_lock);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&files_lock);
}

static void bury(struct shim_file **block)
{
	for (unsigned i = 0; i < FILES_BLOCK; i++)
		if (block[i])
			block[i]->is_dead = true;
}

static void fork_child(void)
{
	for (unsigned i = 0; i < FILES_BLOCK; i++)
		if (files_block[i])
			bury(files_block[i]);
	files_pid = getpid();
	pthread_mutex_init(&files_lock, NULL);
}

static void files_begin(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
	files_pid = getpid();
}

static bool is_still_there(const struct shim_file *file, int fd)
{
	struct stat st;

	return !real()->fstat(fd, &st) && st.st_dev == file->dev && st.st_ino == file->ino;
}

static struct shim_file *file_create(int fd, struct uv_file *uv)
{
	struct shim_file *file;
	struct stat st;

	if (real()->fstat(fd, &st))
		return NULL;
	file = malloc(sizeof *file);
	if (file)
		*file = (struct shim_file){ .uv = uv, .dev = st.st_dev, .ino = st.st_ino };
	return file;
}

int files_add(int fd, struct uv_file *uv)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct shim_file *file, *stale = NULL, **slot;

	if ((unsigned)fd / FILES_BLOCK >= FILES_BLOCK)
		return -EMFILE;
	pthread_once(&once, files_begin);
	file = file_create(fd, uv);
	if (!file)
		return -ENOMEM;
	pthread_mutex_lock(&files_lock);
	slot = slot_make(fd);
	if (slot)
		stale = slot_set(slot, file);
	pthread_mutex_unlock(&files_lock);
	if (stale)
		files_put(stale);
	if (slot)
		return 0;
	free(file);
	return -ENOMEM;
}

/* A number that was closed unseen and means something else now. */
static void forget_stale(int fd, struct shim_file *file)
{
	struct shim_file **slot = slot_of(fd);
	bool is_stale;

	pthread_mutex_lock(&files_lock);
	is_stale = *slot == file;
	if (is_stale)
		slot_set(slot, NULL);
	pthread_mutex_unlock(&files_lock);
	if (is_stale)
		files_put(file);
}

struct shim_file *files_known(int fd)
{
	struct shim_file *file = NULL, **slot;

	if (!files_may_be_ours(fd))
		return NULL;
	pthread_mutex_lock(&files_lock);
	slot = slot_of(fd);
	file = slot ? *slot : NULL;
	if (file)
		file->users++;
	pthread_mutex_unlock(&files_lock);
	return file;
}

struct shim_file *files_get(int fd)
{
	struct shim_file *file;

	if (!files_may_be_ours(fd) || getpid() != files_pid)
		return NULL;
	file = files_known(fd);
	if (!file || is_still_there(file, fd))
		return file;
	forget_stale(fd, file);
	files_put(file);
	return NULL;
}

void files_put(struct shim_file *file)
{
	bool is_last;

	pthread_mutex_lock(&files_lock);
	is_last = !--file->users;
	pthread_mutex_unlock(&files_lock);
	if (!is_last)
		return;
	if (!file->is_dead)
		emu_close(file->uv);
	free(file);
}

struct uv_file *files_device(const struct shim_file *file)
{
	return file->is_dead ? NULL : file->uv;
}

struct shim_file *files_take(int fd)
{
	struct shim_file *file = NULL, **slot;

	if (!files_may_be_ours(fd) || getpid() != files_pid)
		return NULL;
	pthread_mutex_lock(&files_lock);
	slot = slot_of(fd);
	if (slot && *slot)
		file = slot_set(slot, NULL);
	pthread_mutex_unlock(&files_lock);
	return file;
}

void files_watch(struct shim_file *file, int fd)
{
	bool is_last;

	pthread_mutex_lock(&files_lock);
	is_last = file->users == 1 && !file->is_dead;
	pthread_mutex_unlock(&files_lock);
	if (is_last)
		emu_watch(file->uv, fd);
}

void files_look_again(unsigned first, unsigned last)
{
	const unsigned end = FILES_BLOCK * FILES_BLOCK;

	if (!__atomic_load_n(&files_count, __ATOMIC_RELAXED))
		return;
	for (unsigned fd = first; fd <= last && fd < end; fd++) {
		struct shim_file *file;

		if (!__atomic_load_n(&files_block[fd / FILES_BLOCK], __ATOMIC_ACQUIRE)) {
			fd |= FILES_BLOCK - 1;
			continue;
		}
		file = files_get((int)fd);
		if (file)
			files_put(file);
	}
}

void files_dup(int fd, int new_fd)
{
	struct shim_file *file = files_get(fd), *old = NULL, **slot = NULL;

	if (fd == new_fd || (!file && !files_may_be_ours(new_fd)) || getpid() != files_pid)
		goto out;
	if (new_fd < 0 || (unsigned)new_fd / FILES_BLOCK >= FILES_BLOCK)
		goto out;
	pthread_mutex_lock(&files_lock);
	slot = slot_make(new_fd);
	if (slot)
		old = slot_set(slot, file);
	pthread_mutex_unlock(&files_lock);
	if (old)
		files_put(old);
out:
	if (file)
		files_put(file);
}
