/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making the tree once, under a name that says what is in it.
 *
 * A process that finds the name has the whole tree: it was built aside and renamed.
 * Trees are left for the next process; they hold some forty small files.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "emu/emu.h"
#include "emu/preload/path.h"
#include "emu/preload/real.h"
#include "emu/preload/tree.h"
#include "emu/sysfs.h"
#include "include/base/cancel.h"
#include "include/base/file_limit.h"

#define ROOT_BYTES	TREE_ROOT_BYTES

/* 64-bit FNV-1a. */
struct hash { uint64_t value; };

static void hash_text(struct hash *h, const char *text)
{
	do {
		h->value = (h->value ^ (uint8_t)*text) * 0x100000001b3ull;
	} while (*text++);
}

static int hash_file(void *ctx, const char *path, const char *text, bool is_link)
{
	hash_text(ctx, path);
	hash_text(ctx, text);
	hash_text(ctx, is_link ? "l" : "f");
	return 0;
}

struct writer {
	int dir_fd;
	/* Most files are the same empty GID or zero counter: one inode serves the run of them. */
	char twin_path[128], twin_text[64];
};

/* mkdir -p for what precedes the last slash. */
static void make_parents(int dir_fd, const char *path)
{
	char part[160];

	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
		mkdirat(dir_fd, part, 0755);
	}
}

/* What stands in for a device node may be opened for writing; sysfs may not. */
static mode_t mode_of(const char *path)
{
	return strncmp(path, "dev/", 4) ? 0444 : 0666;
}

static int write_text(int dir_fd, const char *path, const char *text)
{
	size_t bytes = strlen(text);
	int error = file_limit_check(bytes), fd;

	if (error)
		return error;
	fd = real()->openat(dir_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (real()->write(fd, text, bytes) != (ssize_t)bytes)
		error = -EIO;
	if (!error && fchmod(fd, mode_of(path)))	/* whatever the umask is */
		error = -errno;
	real()->close(fd);
	return error;
}

static int write_twin(struct writer *w, const char *path, const char *text)
{
	int error;

	if (!strcmp(text, w->twin_text) && !linkat(w->dir_fd, w->twin_path, w->dir_fd, path, 0))
		return 0;
	error = write_text(w->dir_fd, path, text);
	if (!error && strlen(text) < sizeof w->twin_text && strlen(path) < sizeof w->twin_path) {
		strcpy(w->twin_path, path);
		strcpy(w->twin_text, text);
	}
	return error;
}

static int write_once(struct writer *w, const char *path, const char *text, bool is_link)
{
	if (is_link)
		return symlinkat(text, w->dir_fd, path) ? -errno : 0;
	return write_twin(w, path, text);
}

static int write_file(void *ctx, const char *path, const char *text, bool is_link)
{
	struct writer *w = ctx;
	int error = write_once(w, path, text, is_link);

	if (error != -ENOENT)
		return error;
	make_parents(w->dir_fd, path);
	return write_once(w, path, text, is_link);
}

/* Only of what write_file() made: the same list, deepest first by trying again. */
static int remove_file(void *ctx, const char *path, const char *text, bool is_link)
{
	struct writer *w = ctx;
	char part[160];
	char *slash;

	(void)text, (void)is_link;
	snprintf(part, sizeof part, "%s", path);
	unlinkat(w->dir_fd, part, 0);
	while ((slash = strrchr(part, '/'))) {
		*slash = 0;
		if (unlinkat(w->dir_fd, part, AT_REMOVEDIR))
			break;
	}
	return 0;
}

static int fill(const struct emu_identity *id, const char *path)
{
	struct writer w = { .dir_fd = real()->open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
	int error;

	if (w.dir_fd < 0)
		return -errno;
	error = sysfs_describe(id, write_file, &w);
	real()->close(w.dir_fd);
	return error;
}

static void discard(const struct emu_identity *id, const char *path)
{
	struct writer w = { .dir_fd = real()->open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) };

	if (w.dir_fd >= 0) {
		sysfs_describe(id, remove_file, &w);
		real()->close(w.dir_fd);
	}
	rmdir(path);
}

/* Another user may have been first in a shared directory: then it is not ours to trust. */
static int check_private(const char *path)
{
	struct stat st;

	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	if (real()->lstat(path, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
		return -EACCES;
	return 0;
}

static int build_and_rename(const struct emu_identity *id, const char *base, const char *path)
{
	char aside[ROOT_BYTES];
	int error;

	if (snprintf(aside, sizeof aside, "%s/new-XXXXXX", base) >= (int)sizeof aside)
		return -ENAMETOOLONG;
	if (!mkdtemp(aside))
		return -errno;
	error = fill(id, aside);
	if (!error && rename(aside, path))
		error = errno == EEXIST || errno == ENOTEMPTY ? -EEXIST : -errno;
	if (error)
		discard(id, aside);
	return error == -EEXIST ? 0 : error;
}

int tree_make(const struct emu_identity *id, const char *base, char *out, unsigned bytes)
{
	struct hash hash = { 0xcbf29ce484222325ull };
	struct stat st;
	int error = check_private(base);

	if (error)
		return error;
	sysfs_describe(id, hash_file, &hash);
	if (snprintf(out, bytes, "%s/%016" PRIx64, base, hash.value) >= (int)bytes)
		return -ENAMETOOLONG;
	return real()->stat(out, &st) ? build_and_rename(id, base, out) : 0;
}

/* The first place that works.  Short paths: libibverbs keeps no more than 255 bytes. */
static int make_somewhere(char *out, unsigned bytes)
{
	const char *const places[] = {
		"/dev/shm", getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp",
	};
	struct emu_identity id;
	char base[ROOT_BYTES];
	int error = emu_identity(&id);

	if (error)
		return error;
	for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
		if (!places[i] || places[i][0] != '/' || strlen(places[i]) > 100)
			continue;
		snprintf(base, sizeof base, "%s/verbena-sysfs-%u", places[i], (unsigned)geteuid());
		error = tree_make(&id, base, out, bytes);
		if (!error)
			return 0;
	}
	/* libibverbs will only find that there is no device. */
	return emu_complain("its sysfs directory, last tried in /tmp", error);
}

/* The tree that was made last, and for what; what would not work is not tried again. */
static struct {
	pthread_mutex_t lock;
	bool is_tried;
	int error;
	uint64_t stamp;
	char root[ROOT_BYTES];
} made = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int root_locked(char *out, unsigned bytes)
{
	uint64_t stamp = emu_identity_stamp();

	if (!made.is_tried || (!made.error && made.stamp != stamp)) {
		made.error = make_somewhere(made.root, sizeof made.root);
		made.stamp = stamp;
		made.is_tried = true;
	}
	if (!made.error && snprintf(out, bytes, "%s", made.root) >= (int)bytes)
		return -ENAMETOOLONG;
	return made.error;
}

const char *tree_root(char *out, unsigned bytes)
{
	int held = cancel_hold();
	int error;

	pthread_mutex_lock(&made.lock);
	error = root_locked(out, bytes);
	pthread_mutex_unlock(&made.lock);
	cancel_release(held);
	if (!error)
		return out;
	errno = -error;
	return NULL;
}
