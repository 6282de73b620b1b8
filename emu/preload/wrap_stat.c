/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stat() family, in all its names.
 *
 * The device is a memfd, or the file that stands in for it in the tree; what the caller
 * sees is a character device.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include "emu/emu.h"
#include "emu/preload/files.h"
#include "emu/preload/path.h"
#include "emu/preload/real.h"
#include "emu/preload/shim.h"

_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "the same structure");

static int stat_fd(int fd, struct stat *st)
{
	struct shim_file *file = files_get(fd);
	int result = real()->fstat(fd, st);

	if (__builtin_expect(file != NULL, 0)) {
		if (!result)
			device_stat(st);
		files_put(file);
	}
	return result;
}

static int stat_at(int dir_fd, const char *path, struct stat *st, int flags)
{
	struct shim_path p;
	int result;

	if (path && !*path && (flags & AT_EMPTY_PATH) && files_may_be_ours(dir_fd))
		return stat_fd(dir_fd, st);
	if (!shim_path(&p, path))
		return -1;
	result = real()->fstatat(dir_fd, p.path, st, flags);
	if (!result && p.is_device)
		device_stat(st);
	return result;
}

#define AS_STAT(p) ((struct stat *)(void *)(p))

SHIM_EXPORT int stat(const char *path, struct stat *st)
{
	return stat_at(AT_FDCWD, path, st, 0);
}

SHIM_EXPORT int stat64(const char *path, struct stat64 *st)
{
	return stat_at(AT_FDCWD, path, AS_STAT(st), 0);
}

SHIM_EXPORT int lstat(const char *path, struct stat *st)
{
	return stat_at(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

SHIM_EXPORT int lstat64(const char *path, struct stat64 *st)
{
	return stat_at(AT_FDCWD, path, AS_STAT(st), AT_SYMLINK_NOFOLLOW);
}

SHIM_EXPORT int fstat(int fd, struct stat *st)
{
	return stat_fd(fd, st);
}

SHIM_EXPORT int fstat64(int fd, struct stat64 *st)
{
	return stat_fd(fd, AS_STAT(st));
}

SHIM_EXPORT int fstatat(int dir_fd, const char *path, struct stat *st, int flags)
{
	return stat_at(dir_fd, path, st, flags);
}

SHIM_EXPORT int fstatat64(int dir_fd, const char *path, struct stat64 *st, int flags)
{
	return stat_at(dir_fd, path, AS_STAT(st), flags);
}

/* The names that programs built before glibc 2.33 call; @version says which structure, and on
 * 64-bit machines there is one. */
#define OLD_STAT(name, parameters, call)		\
	SHIM_EXPORT int name parameters;		\
	int name parameters				\
	{						\
		(void)version;				\
		return call;				\
	}

OLD_STAT(__xstat, (int version, const char *path, struct stat *st), stat(path, st))
OLD_STAT(__xstat64, (int version, const char *path, struct stat64 *st), stat64(path, st))
OLD_STAT(__lxstat, (int version, const char *path, struct stat *st), lstat(path, st))
OLD_STAT(__lxstat64, (int version, const char *path, struct stat64 *st), lstat64(path, st))
OLD_STAT(__fxstat, (int version, int fd, struct stat *st), stat_fd(fd, st))
OLD_STAT(__fxstat64, (int version, int fd, struct stat64 *st), stat_fd(fd, AS_STAT(st)))
OLD_STAT(__fxstatat, (int version, int dir_fd, const char *path, struct stat *st, int flags),
	 stat_at(dir_fd, path, st, flags))
OLD_STAT(__fxstatat64, (int version, int dir_fd, const char *path, struct stat64 *st, int flags),
	 stat_at(dir_fd, path, AS_STAT(st), flags))

static bool statx_is_device(int dir_fd, const char *path, int flags)
{
	struct shim_file *file;

	if (!path || *path || !(flags & AT_EMPTY_PATH))
		return false;
	file = files_get(dir_fd);
	if (file)
		files_put(file);
	return file != NULL;
}

SHIM_EXPORT int statx(int dir_fd, const char *path, int flags, unsigned mask, struct statx *st)
{
	struct shim_path p;
	int result;

	if (!shim_path(&p, path))
		return -1;
	result = real()->statx(dir_fd, p.path, flags, mask, st);
	if (!result && (p.is_device || statx_is_device(dir_fd, path, flags))) {
		st->stx_mode = S_IFCHR | 0666;
		st->stx_rdev_major = EMU_DEV_MAJOR;
		st->stx_rdev_minor = EMU_DEV_MINOR;
		st->stx_size = st->stx_blocks = 0;
	}
	return result;
}
