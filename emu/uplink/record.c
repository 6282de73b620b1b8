/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writing a capture; see record.h.
 *
 * Source: draft-ietf-opsawg-pcapng.
 */
#include "emu/uplink/record.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "include/base/cancel.h"
#include "include/base/file_limit.h"

#define LOCK_TRIES	200
#define LOCK_NAP_NS	10000000
#define FRAME_ALIGN	4u

struct record {
	int fd;				/* may be somebody else's file by now */
	dev_t dev;
	ino_t ino;
	pid_t pid;			/* a forked child has another one */
	int error;			/* not 0: it is over */
	char path[];
};

/* --- blocks, in the byte order of this machine --- */

struct option {
	uint16_t code, bytes;
};

enum { OPTION_END = 0, OPTION_NAME = 2, OPTION_TIME_RESOLUTION = 9, OPTION_HARDWARE = 2 };

/* A section of unknown length, and its only interface. */
struct file_header {
	uint32_t section_type, section_bytes, magic;
	uint16_t major, minor;
	uint64_t section_length;
	struct option name;
	char writer[8];
	struct option section_end;
	uint32_t section_bytes_again;
	uint32_t interface_type, interface_bytes;
	uint16_t link, reserved;
	uint32_t snap_bytes;
	struct option resolution;
	uint8_t ten_to_the_minus, padding[3];
	struct option interface_end;
	uint32_t interface_bytes_again;
} __attribute__((packed));

#define INTERFACE_AT	offsetof(struct file_header, interface_type)

static const struct file_header file_header = {
	.section_type = 0x0a0d0d0a, .section_bytes = INTERFACE_AT, .magic = 0x1a2b3c4d,
	.major = 1, .minor = 0, .section_length = UINT64_MAX,
	.name = { 4, 7 }, .writer = "verbena",
	.section_bytes_again = INTERFACE_AT,
	.interface_type = 1, .interface_bytes = sizeof file_header - INTERFACE_AT,
	.link = 1,
	.resolution = { OPTION_TIME_RESOLUTION, 1 }, .ten_to_the_minus = 9,
	.interface_bytes_again = sizeof file_header - INTERFACE_AT,
};

struct packet_header {
	uint32_t type, block_bytes;
	uint32_t interface, time_high, time_low;
	uint32_t captured_bytes, frame_bytes;
};

static uint64_t wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct packet_header packet_header(uint32_t bytes)
{
	uint32_t padded = (bytes + FRAME_ALIGN - 1) & ~(FRAME_ALIGN - 1);
	uint64_t time_ns = wall_ns();

	return (struct packet_header){
		.type = 6,
		.block_bytes = (uint32_t)sizeof(struct packet_header) + padded + 4,
		.time_high = (uint32_t)(time_ns >> 32), .time_low = (uint32_t)time_ns,
		.captured_bytes = bytes, .frame_bytes = bytes,
	};
}

/* --- the file --- */

/* Whoever finds it empty begins it; the lock is held for that only. */
static int lock(int fd)
{
	const struct timespec nap = { .tv_nsec = LOCK_NAP_NS };

	for (int tries = 0; flock(fd, LOCK_EX | LOCK_NB); tries++) {
		if (errno != EWOULDBLOCK || tries == LOCK_TRIES)
			return -errno;
		nanosleep(&nap, NULL);
	}
	return 0;
}

static int begin(int fd)
{
	ssize_t written = -1;
	int error = file_limit_check(sizeof file_header);

	if (!error)
		written = write(fd, &file_header, sizeof file_header);
	if (written == (ssize_t)sizeof file_header)
		return 0;
	if (!error)
		error = written < 0 ? -errno : -ENOSPC;
	return ftruncate(fd, 0) ? -errno : error;
}

/* Is there what we began? */
static int know(int fd)
{
	struct file_header found;

	if (pread(fd, &found, sizeof found, 0) != (ssize_t)sizeof found ||
	    memcmp(&found, &file_header, sizeof found))
		return -EEXIST;
	return 0;
}

static int begin_or_know(int fd)
{
	struct stat st;
	int error = lock(fd);

	if (error)
		return error;
	if (fstat(fd, &st))
		error = -errno;
	else
		error = st.st_size ? know(fd) : begin(fd);
	flock(fd, LOCK_UN);
	return error;
}

static int path_open(const char *path, int flags)
{
	int fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags, 0666);

	return fd < 0 ? -errno : fd;
}

static int file_open(struct record *r, const char **what)
{
	struct stat st;
	int error;

	*what = "cannot be opened";
	r->fd = path_open(r->path, O_CREAT);
	if (r->fd < 0)
		return r->fd;
	if (fstat(r->fd, &st))
		return -errno;
	r->dev = st.st_dev;
	r->ino = st.st_ino;
	*what = "is not a file";
	error = S_ISREG(st.st_mode) ? begin_or_know(r->fd) : -EINVAL;
	if (S_ISREG(st.st_mode))
		*what = error == -EEXIST ? "is there, and is no recording of verbena's" :
					   "cannot be begun";
	return error;
}

int record_open(const char *path, struct record **out, struct uplink_said *said)
{
	size_t bytes = strlen(path) + 1;
	struct record *r = calloc(1, sizeof *r + bytes);
	const char *what = "";
	int error;

	if (!r)
		return -ENOMEM;
	r->pid = getpid();
	memcpy(r->path, path, bytes);
	error = file_open(r, &what);
	if (!error) {
		*out = r;
		return 0;
	}
	snprintf(said->text, sizeof said->text, "%.400s %s", path, what);
	record_close(r);
	return error;
}

static bool is_file(const struct record *r, int fd, struct stat *st)
{
	return !fstat(fd, st) && st->st_dev == r->dev && st->st_ino == r->ino;
}

/* A number that means something else by now is not ours to close. */
static int file_find(struct record *r, struct stat *st)
{
	int fd;

	if (is_file(r, r->fd, st))
		return 0;
	fd = path_open(r->path, 0);
	if (fd < 0)
		return fd;
	if (!is_file(r, fd, st) || know(fd)) {	/* numbers of files come back, too */
		close(fd);
		return -ESTALE;
	}
	r->fd = fd;
	return 0;
}

/* A part of a block must not stay; what others have written since must. */
static int undo(const struct record *r, ssize_t written)
{
	off_t end = lseek(r->fd, 0, SEEK_CUR);
	struct stat st;

	if (!fstat(r->fd, &st) && st.st_size == end && ftruncate(r->fd, end - written))
		return -errno;
	return -ENOSPC;
}

static int block_write(struct record *r, const void *frame, uint32_t bytes)
{
	static const uint8_t padding[FRAME_ALIGN];
	struct packet_header h = packet_header(bytes);
	const struct iovec parts[] = {
		{ &h, sizeof h }, { (void *)(uintptr_t)frame, bytes },
		{ (void *)(uintptr_t)padding, -bytes & (FRAME_ALIGN - 1) },
		{ &h.block_bytes, sizeof h.block_bytes },
	};
	struct stat st;
	ssize_t written;
	int error = file_find(r, &st);

	if (!error)
		error = file_limit_check((size_t)st.st_size + h.block_bytes);
	if (error)
		return error;
	written = writev(r->fd, parts, sizeof parts / sizeof *parts);
	if (written < 0)
		return -errno;
	return written == h.block_bytes ? 0 : undo(r, written);
}

int record_frame(struct record *r, const void *frame, uint32_t bytes)
{
	int held, saved = errno;

	if (r->error)
		return r->error;
	held = cancel_hold();
	r->error = block_write(r, frame, bytes);
	if (r->error)
		fprintf(stderr, "verbena: recording in %s ends: %s\n", r->path,
			strerror(-r->error));
	cancel_release(held);
	errno = saved;
	return r->error;
}

void record_close(struct record *r)
{
	struct stat st;

	if (r->fd >= 0 && is_file(r, r->fd, &st))
		close(r->fd);
	r->error = -EBADF;
	if (r->pid == getpid())
		free(r);
}
