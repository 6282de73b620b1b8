/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a fabric lives: the directory, the segment file in it, and the lock around joining
 * and leaving.
 *
 * The lock is a POSIX record lock on the segment file: the kernel drops it when its owner
 * dies, and a forked child does not inherit it.  Such locks don't exclude threads of one
 * process and vanish when any descriptor of the file is closed, hence the gate.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "emu/fabric/segment.h"
#include "include/base/file_limit.h"

#define NAME_BYTES_MAX		64
#define LOCK_TRIES_MAX		5000	/* of at most 2 ms */
#define OPEN_TRIES_MAX		1000
#define RESERVE_TRIES_MAX	100
#define PID_NAMESPACE_INIT	4026531836u

/* The pid of who is inside.  A fork() may copy it: then it is another process's, and void. */
static _Atomic pid_t gate_owner;

static void nap(unsigned tries)
{
	struct timespec t = { .tv_nsec = tries < 100 ? 20000 * ((long)tries + 1) : 2000000 };

	nanosleep(&t, NULL);
}

void fabric_gate_enter(void)
{
	pid_t self = getpid();

	for (unsigned tries = 0;; tries++) {
		pid_t owner = 0;

		if (atomic_compare_exchange_strong(&gate_owner, &owner, self))
			return;
		if (owner != self && atomic_compare_exchange_strong(&gate_owner, &owner, self))
			return;
		nap(tries);
	}
}

void fabric_gate_leave(void)
{
	atomic_store(&gate_owner, 0);
}

static bool name_is_valid(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-_.";
	size_t bytes = strlen(name);

	return bytes && bytes <= NAME_BYTES_MAX && strspn(name, allowed) == bytes;
}

static const char *base_dir(void)
{
	const char *const candidates[] = {
		"/dev/shm", getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"),
	};

	for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++)
		if (candidates[i] && candidates[i][0] == '/' &&
		    access(candidates[i], W_OK | X_OK) == 0)
			return candidates[i];
	return "/tmp";
}

int fabric_place_name(const char *name, char *dir, size_t bytes)
{
	struct stat ns;
	int used;

	if (!name)
		name = "default";
	if (!name_is_valid(name))
		return -EINVAL;
	used = snprintf(dir, bytes, "%s/verbena-%u-%s", base_dir(), (unsigned)geteuid(), name);
	/* Pids mean nothing in another pid namespace, and members there would look dead: containers
	 * that share the file system but not their pids are fabrics of their own. */
	if ((size_t)used < bytes && stat("/proc/self/ns/pid", &ns) == 0 &&
	    ns.st_ino != PID_NAMESPACE_INIT)
		used += snprintf(dir + used, bytes - (size_t)used, "@%lu",
				 (unsigned long)ns.st_ino);
	return (size_t)used < bytes ? 0 : -ENAMETOOLONG;
}

/* The directory, ours and closed to others. */
static int dir_open(const char *dir)
{
	struct stat st;
	int fd;

	if (mkdir(dir, 0700) == 0)
		chmod(dir, 0700);		/* whatever the umask says */
	else if (errno != EEXIST)
		return -errno;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ELOOP || errno == ENOTDIR ? -EACCES : -errno;
	if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 07777) == 0700)
		return fd;
	close(fd);
	return -EACCES;
}

static int lock(int fd)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	for (unsigned tries = 0; tries < LOCK_TRIES_MAX; tries++) {
		if (fcntl(fd, F_SETLK, &whole) == 0)
			return 0;
		if (errno != EAGAIN && errno != EACCES && errno != EINTR)
			return -errno;
		nap(tries);
	}
	return -ETIMEDOUT;
}

/* The last member may have removed the file while we waited for its lock. */
static bool is_still_named(int fd, int dir_fd)
{
	struct stat ours, named;

	return fstat(fd, &ours) == 0 &&
	       fstatat(dir_fd, FABRIC_SEGMENT_NAME, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       ours.st_ino == named.st_ino && ours.st_dev == named.st_dev;
}

/* Returns the locked file, or -EAGAIN: it is not the one any more. */
static int open_locked(int dir_fd, int flags)
{
	int fd, rc;

	fd = openat(dir_fd, FABRIC_SEGMENT_NAME, flags | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	rc = lock(fd);
	if (rc == 0 && !is_still_named(fd, dir_fd))
		rc = -EAGAIN;
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

int fabric_file_grow(int fd, size_t from, size_t bytes)
{
	int rc = file_limit_check(bytes);

	if (rc)
		return rc;
	/* A signal undoes it half-way; who is interrupted that often has no room for us. */
	rc = EINTR;
	for (unsigned tries = 0; rc == EINTR && tries < RESERVE_TRIES_MAX; tries++)
		rc = posix_fallocate(fd, (off_t)from, (off_t)(bytes - from));
	return -rc;
}

int fabric_file_reserve(int fd, size_t bytes)
{
	return ftruncate(fd, 0) < 0 ? -errno : fabric_file_grow(fd, 0, bytes);
}

static int initialise(int fd)
{
	struct { uint64_t magic; uint32_t layout; } head = { FABRIC_MAGIC, FABRIC_LAYOUT };
	int rc;

	if (fchmod(fd, 0600) < 0)
		return -errno;
	rc = fabric_file_reserve(fd, sizeof(struct fabric_segment));
	if (rc)
		return rc;
	/* Magic and layout in one write: without them the file is still nobody's. */
	return pwrite(fd, &head, sizeof head, 0) == sizeof head ? 0 : -EIO;
}

/* Does anybody of any layout live in this first page? */
static bool has_living(const struct fabric_first_page *page)
{
	for (unsigned slot = 0; slot < FABRIC_MEMBERS_MAX; slot++) {
		uint64_t seat = page->seat[slot];

		if (seat_pid(seat) &&
		    fabric_process_life(seat_pid(seat), seat_start(seat), 0) != FABRIC_DEAD)
			return true;
	}
	return false;
}

static int check_or_initialise(int fd, const char *dir)
{
	struct fabric_first_page page = { 0 };
	struct stat st;
	int rc;

	if (pread(fd, &page, sizeof page, 0) < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (page.magic == FABRIC_MAGIC && page.layout == FABRIC_LAYOUT &&
	    st.st_size == sizeof(struct fabric_segment))
		return 0;
	/* Magic 0 is a file that its creator did not live to complete. */
	if (page.magic && (page.magic != FABRIC_MAGIC || has_living(&page)))
		return -EPROTONOSUPPORT;
	rc = initialise(fd);
	if (rc)
		fabric_place_remove(dir);
	return rc;
}

static int open_once(const char *dir)
{
	int dir_fd, fd, rc;

	dir_fd = dir_open(dir);
	if (dir_fd < 0)
		return dir_fd;
	fd = open_locked(dir_fd, O_CREAT);
	close(dir_fd);
	if (fd < 0)
		return fd;
	rc = check_or_initialise(fd, dir);
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

int fabric_place_open(const char *dir)
{
	for (unsigned tries = 0; tries < OPEN_TRIES_MAX; tries++) {
		int fd = open_once(dir);

		/* Removed under our feet by the last who left: make it anew. */
		if (fd != -ENOENT && fd != -EAGAIN)
			return fd;
	}
	return -EBUSY;
}

int fabric_place_reopen(const char *dir)
{
	int dir_fd, fd;

	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir_fd < 0)
		return -errno;
	fd = open_locked(dir_fd, 0);
	close(dir_fd);
	return fd;
}

void fabric_place_remove(const char *dir)
{
	char path[512];

	if ((size_t)snprintf(path, sizeof path, "%s/" FABRIC_SEGMENT_NAME, dir) < sizeof path)
		unlink(path);
	rmdir(dir);
}
