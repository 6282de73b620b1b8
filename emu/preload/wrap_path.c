/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that take a path.
 *
 * Each maps the path and calls the real function; only open() knows the device.  A path
 * relative to a descriptor is already in the tree if the descriptor is.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "emu/preload/path.h"
#include "emu/preload/real.h"
#include "emu/preload/shim.h"
#include "emu/preload/tree.h"

#define NETLINK_RDMA_PROTOCOL	20	/* NETLINK_RDMA, which old headers lack */

_Static_assert(sizeof(off_t) == 8, "the names with 64 are the same functions");

static int open_at(int dir_fd, const char *path, int flags, mode_t mode)
{
	struct shim_path p;

	if (!shim_path(&p, path))
		return -1;
	if (p.is_device && !(flags & (O_PATH | O_DIRECTORY)))
		return device_open(flags);
	if (p.is_tree && ((flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT))) {
		errno = EACCES;
		return -1;
	}
	return real()->openat(dir_fd, p.path, flags, mode);
}

/* The mode is there only with a flag that creates; else whatever the register holds. */
#define OPEN_MODE(last, flags)						\
	({								\
		mode_t mode_ = 0;					\
		if ((flags) & O_CREAT || ((flags) & O_TMPFILE) == O_TMPFILE) { \
			va_list rest_;					\
			va_start(rest_, last);				\
			mode_ = va_arg(rest_, mode_t);			\
			va_end(rest_);					\
		}							\
		mode_;							\
	})

SHIM_EXPORT int open(const char *path, int flags, ...)
{
	return open_at(AT_FDCWD, path, flags, OPEN_MODE(flags, flags));
}

SHIM_EXPORT int open64(const char *path, int flags, ...)
{
	return open_at(AT_FDCWD, path, flags, OPEN_MODE(flags, flags));
}

SHIM_EXPORT int openat(int dir_fd, const char *path, int flags, ...)
{
	return open_at(dir_fd, path, flags, OPEN_MODE(flags, flags));
}

SHIM_EXPORT int openat64(int dir_fd, const char *path, int flags, ...)
{
	return open_at(dir_fd, path, flags, OPEN_MODE(flags, flags));
}

/* What programs built with _FORTIFY_SOURCE call when there is no mode. */
SHIM_EXPORT int __open_2(const char *path, int flags);
SHIM_EXPORT int __open64_2(const char *path, int flags);
SHIM_EXPORT int __openat_2(int dir_fd, const char *path, int flags);
SHIM_EXPORT int __openat64_2(int dir_fd, const char *path, int flags);

int __open_2(const char *path, int flags)
{
	return open_at(AT_FDCWD, path, flags, 0);
}

int __open64_2(const char *path, int flags)
{
	return open_at(AT_FDCWD, path, flags, 0);
}

int __openat_2(int dir_fd, const char *path, int flags)
{
	return open_at(dir_fd, path, flags, 0);
}

int __openat64_2(int dir_fd, const char *path, int flags)
{
	return open_at(dir_fd, path, flags, 0);
}

SHIM_EXPORT FILE *fopen(const char *path, const char *mode)
{
	struct shim_path p;

	return shim_path(&p, path) ? real()->fopen(p.path, mode) : NULL;
}

SHIM_EXPORT FILE *fopen64(const char *path, const char *mode)
{
	return fopen(path, mode);
}

SHIM_EXPORT DIR *opendir(const char *path)
{
	struct shim_path p;

	return shim_path(&p, path) ? real()->opendir(p.path) : NULL;
}

SHIM_EXPORT int scandir(const char *path, struct dirent ***list,
			int (*wants)(const struct dirent *),
			int (*order)(const struct dirent **, const struct dirent **))
{
	struct shim_path p;

	return shim_path(&p, path) ? real()->scandir(p.path, list, wants, order) : -1;
}

SHIM_EXPORT int chdir(const char *path)
{
	struct shim_path p;

	return shim_path(&p, path) ? real()->chdir(p.path) : -1;
}

/* Asked by ls -l for every file. */
SHIM_EXPORT ssize_t getxattr(const char *path, const char *name, void *value, size_t bytes)
{
	struct shim_path p;

	return shim_path(&p, path) ? real()->getxattr(p.path, name, value, bytes) : -1;
}

SHIM_EXPORT ssize_t lgetxattr(const char *path, const char *name, void *value, size_t bytes)
{
	struct shim_path p;

	return shim_path(&p, path) ? real()->lgetxattr(p.path, name, value, bytes) : -1;
}

SHIM_EXPORT int access(const char *path, int mode)
{
	struct shim_path p;

	return shim_path(&p, path) ? real()->access(p.path, mode) : -1;
}

SHIM_EXPORT int euidaccess(const char *path, int mode)
{
	struct shim_path p;

	return shim_path(&p, path) ? real()->euidaccess(p.path, mode) : -1;
}

SHIM_EXPORT int eaccess(const char *path, int mode)
{
	return euidaccess(path, mode);
}

SHIM_EXPORT int faccessat(int dir_fd, const char *path, int mode, int flags)
{
	struct shim_path p;

	return shim_path(&p, path) ? real()->faccessat(dir_fd, p.path, mode, flags) : -1;
}

SHIM_EXPORT ssize_t readlink(const char *path, char *out, size_t bytes)
{
	struct shim_path p;

	return shim_path(&p, path) ? real()->readlink(p.path, out, bytes) : -1;
}

SHIM_EXPORT ssize_t readlinkat(int dir_fd, const char *path, char *out, size_t bytes)
{
	struct shim_path p;

	return shim_path(&p, path) ? real()->readlinkat(dir_fd, p.path, out, bytes) : -1;
}

/* In the tree the answer is told as the path it stands for, so that it looks like sysfs. */
static void tell_as_sysfs(char *path)
{
	char buffer[TREE_ROOT_BYTES];
	const char *root = tree_root(buffer, sizeof buffer);
	size_t length = root ? strlen(root) : 0;

	if (!root || strncmp(path, root, length) || path[length] != '/')
		return;
	if (!strncmp(path + length, "/dev/", 5)) {
		memmove(path, path + length, strlen(path + length) + 1);
		return;
	}
	memmove(path + 4, path + length, strlen(path + length) + 1);
	memcpy(path, "/sys", 4);
}

SHIM_EXPORT char *realpath(const char *path, char *out)
{
	struct shim_path p;
	char *resolved;

	if (!shim_path(&p, path))
		return NULL;
	resolved = real()->realpath(p.path, out);
	if (resolved && (p.is_tree || p.is_device))
		tell_as_sysfs(resolved);
	return resolved;
}

SHIM_EXPORT char *__realpath_chk(const char *path, char *out, size_t bytes);
char *__realpath_chk(const char *path, char *out, size_t bytes)
{
	if (bytes < PATH_MAX)
		abort();
	return realpath(path, out);
}

SHIM_EXPORT char *canonicalize_file_name(const char *path)
{
	return realpath(path, NULL);
}

/* A kernel without RDMA has no such protocol; libibverbs then looks into sysfs. */
SHIM_EXPORT int socket(int domain, int type, int protocol)
{
	if (domain == AF_NETLINK && protocol == NETLINK_RDMA_PROTOCOL && shim_is_on()) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	return real()->socket(domain, type, protocol);
}
