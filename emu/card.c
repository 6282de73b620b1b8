/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a command descriptor holds; see card.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "emu/card.h"
#include "include/base/file_limit.h"

#define CARD_MAGIC	UINT64_C(0x6472616362726576)
#define CARD_LAYOUT	1u

struct card {
	uint64_t magic;
	uint32_t layout;
	uint32_t slot, generation, number;
	uint64_t node_guid;
	char fabric_dir[256];
};

int card_create(const char *name, bool closes_on_exec)
{
	int fd = memfd_create(name, MFD_ALLOW_SEALING | (closes_on_exec ? MFD_CLOEXEC : 0));

	return fd < 0 ? -errno : fd;
}

static int inode_read(int fd, struct uv_identity *id)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	id->dev = st.st_dev;
	id->ino = st.st_ino;
	return 0;
}

static int seal(int fd)
{
	int seals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;

	return fcntl(fd, F_ADD_SEALS, seals) || flock(fd, LOCK_EX | LOCK_NB) ? -errno : 0;
}

int card_write(int fd, const char *fabric_dir, uint64_t node_guid, struct uv_identity *id)
{
	struct card card = {
		.magic = CARD_MAGIC, .layout = CARD_LAYOUT, .slot = id->slot,
		.generation = id->generation, .number = id->number, .node_guid = node_guid,
	};
	int error = file_limit_check(sizeof card);

	snprintf(card.fabric_dir, sizeof card.fabric_dir, "%s", fabric_dir);
	if (!error && pwrite(fd, &card, sizeof card, 0) != (ssize_t)sizeof card)
		error = -ENOSPC;
	return error ? error : seal(fd);
}

static int content_read(int fd, struct card *out)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size != (off_t)sizeof *out || st.st_uid != geteuid() ||
	    !(fcntl(fd, F_GET_SEALS) & F_SEAL_WRITE) ||
	    pread(fd, out, sizeof *out, 0) != (ssize_t)sizeof *out)
		return -EINVAL;
	out->fabric_dir[sizeof out->fabric_dir - 1] = '\0';
	return out->magic == CARD_MAGIC && out->layout == CARD_LAYOUT ? 0 : -EINVAL;
}

bool card_is_one(int fd)
{
	struct card card;

	return !content_read(fd, &card);
}

int card_read(int fd, const char *fabric_dir, uint64_t node_guid, struct uv_identity *out)
{
	struct card card;
	int error = content_read(fd, &card);

	if (!error && (strcmp(card.fabric_dir, fabric_dir) || card.node_guid != node_guid))
		error = -EINVAL;
	if (!error && flock(fd, LOCK_EX | LOCK_NB))
		error = -EBADF;
	if (!error)
		error = inode_read(fd, out);
	out->slot = card.slot;
	out->generation = card.generation;
	out->number = card.number;
	return error;
}

int card_watch(int fd)
{
	char path[32];

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_CLOEXEC);
}

bool card_is_out(int watch, bool waits)
{
	int rc;

	do
		rc = flock(watch, waits ? LOCK_EX : LOCK_EX | LOCK_NB);
	while (rc && errno == EINTR);
	return rc && errno == EWOULDBLOCK;
}
