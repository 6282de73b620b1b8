/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The character device: opening it, and the calls that go to an open one.
 *
 * Descriptors that are not ours cost a load and a branch.
 */
#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "emu/emu.h"
#include "emu/preload/files.h"
#include "emu/preload/real.h"
#include "emu/preload/shim.h"
#include "include/base/cancel.h"

bool shim_is_on(void)
{
	static int state;		/* 0: not asked yet, 1: on, 2: off */
	const char *nic;

	if (!__atomic_load_n(&state, __ATOMIC_RELAXED)) {
		nic = getenv("VERBENA_NIC");
		__atomic_store_n(&state, nic && !strcmp(nic, "hw") ? 2 : 1, __ATOMIC_RELAXED);
	}
	return state == 1;
}

static int fail(int error)
{
	errno = -error;
	return -1;
}

static int device_attach(int fd, int (*how)(int fd, struct uv_file **out))
{
	struct uv_file *uv;
	int error;

	guard_prepare();
	error = how(fd, &uv);
	if (error)
		return error;
	error = guard_take();
	if (!error)
		error = files_add(fd, uv);
	if (error)
		emu_close(uv);
	return error;
}

int device_open(int flags)
{
	int fd = emu_fd_create(flags & O_CLOEXEC);
	int error;

	if (fd < 0)
		return fail(emu_complain("file", fd));
	error = device_attach(fd, emu_open);
	if (!error)
		return fd;
	real()->close(fd);
	return fail(error);
}

int device_adopt(int fd)
{
	struct shim_file *file = files_get(fd);
	bool is_known = file && files_device(file);

	if (file)
		files_put(file);
	return is_known ? 0 : device_attach(fd, emu_adopt);
}

void device_stat(struct stat *st)
{
	st->st_mode = S_IFCHR | 0666;
	st->st_rdev = makedev(EMU_DEV_MAJOR, EMU_DEV_MINOR);
	st->st_size = 0;
	st->st_blocks = 0;
}

SHIM_EXPORT int ioctl(int fd, unsigned long request, ...)
{
	struct shim_file *file;
	va_list rest;
	void *argument;
	int error;

	va_start(rest, request);
	argument = va_arg(rest, void *);
	va_end(rest);
	file = files_get(fd);
	if (__builtin_expect(!file, 1))
		return real()->ioctl(fd, request, argument);
	if (request != RDMA_VERBS_IOCTL)
		error = real()->ioctl(fd, request, argument) < 0 ? -errno : 0;
	else
		error = files_device(file) ? emu_ioctl(files_device(file), argument) : -EIO;
	files_put(file);
	return error < 0 ? fail(error) : error;
}

SHIM_EXPORT ssize_t write(int fd, const void *bytes, size_t count)
{
	struct shim_file *file = files_get(fd);
	ssize_t done;

	if (__builtin_expect(!file, 1))
		return real()->write(fd, bytes, count);
	done = files_device(file) ? emu_write(files_device(file), bytes, count) : -EIO;
	files_put(file);
	return done < 0 ? fail((int)done) : done;
}

/* True if @fd is the device; then *out is what mmap() returns. */
static bool device_map(void *hint, size_t bytes, int prot, int flags, int fd, off_t offset,
		       void **out)
{
	struct shim_file *file = flags & MAP_ANONYMOUS ? NULL : files_get(fd);
	int error;

	if (__builtin_expect(!file, 1))
		return false;
	error = files_device(file) ? emu_mmap(files_device(file), hint, bytes, prot, flags,
					      (uint64_t)offset, out) : -EIO;
	files_put(file);
	if (error) {
		errno = -error;
		*out = MAP_FAILED;
	}
	return true;
}

SHIM_EXPORT void *mmap(void *hint, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	void *at;

	return device_map(hint, bytes, prot, flags, fd, offset, &at) ? at :
	       real()->mmap(hint, bytes, prot, flags, fd, offset);
}

SHIM_EXPORT void *mmap64(void *hint, size_t bytes, int prot, int flags, int fd, off64_t offset)
	__attribute__((alias("mmap")));

/* UCX overwrites the beginning of mmap(), ours too, and then calls the kernel itself.  A call with
 * fewer than six arguments has others behind it, which are read and not looked at. */
__attribute__((no_sanitize("address")))
SHIM_EXPORT long syscall(long number, ...)
{
	long a[6];
	va_list rest;
	void *at;

	va_start(rest, number);
	for (unsigned i = 0; i < sizeof a / sizeof *a; i++)
		a[i] = va_arg(rest, long);
	va_end(rest);
	if (number == SYS_mmap && device_map((void *)a[0], (size_t)a[1], (int)a[2], (int)a[3],
					     (int)a[4], (off_t)a[5], &at))
		return (long)at;
	return real()->syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

SHIM_EXPORT int close(int fd)
{
	struct shim_file *file = files_take(fd);
	int result, held;

	if (__builtin_expect(!file, 1))
		return real()->close(fd);
	held = cancel_hold();		/* or the device would stay open */
	files_watch(file, fd);
	result = real()->close(fd);
	files_put(file);
	cancel_release(held);
	return result;
}

SHIM_EXPORT int close_range(unsigned first, unsigned last, int flags)
{
	int result = real()->close_range(first, last, flags);

	/* With either flag they are still open, here or for other threads. */
	if (!result && !flags)
		files_look_again(first, last);
	return result;
}

SHIM_EXPORT void closefrom(int first)
{
	real()->closefrom(first);
	files_look_again(first < 0 ? 0 : (unsigned)first, ~0u);
}

static int duplicated(int fd, int new_fd)
{
	if (__builtin_expect(files_count != 0, 0) && new_fd >= 0)
		files_dup(fd, new_fd);
	return new_fd;
}

SHIM_EXPORT int dup(int fd)
{
	return duplicated(fd, real()->dup(fd));
}

SHIM_EXPORT int dup2(int fd, int new_fd)
{
	return duplicated(fd, real()->dup2(fd, new_fd));
}

SHIM_EXPORT int dup3(int fd, int new_fd, int flags)
{
	return duplicated(fd, real()->dup3(fd, new_fd, flags));
}

SHIM_EXPORT int fcntl(int fd, int command, ...)
{
	va_list rest;
	void *argument;
	int result;

	va_start(rest, command);
	argument = va_arg(rest, void *);
	va_end(rest);
	result = real()->fcntl(fd, command, argument);
	if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)
		return duplicated(fd, result);
	return result;
}

SHIM_EXPORT int fcntl64(int fd, int command, ...) __attribute__((alias("fcntl")));
