/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is a process still the one that joined?  Identity is the pid, the time it started (a pid is
 * used again) and where its stack begins (exec keeps both of the others).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "emu/fabric/segment.h"

/* Fields of /proc/<pid>/stat by their number in proc(5). */
enum { STAT_STATE = 3, STAT_THREADS = 20, STAT_START = 22, STAT_STACK = 28 };

static ssize_t read_stat(pid_t pid, char *text, size_t bytes)
{
	char path[32];
	ssize_t got;
	int fd;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	got = read(fd, text, bytes - 1);
	if (got < 0)
		got = -errno;
	close(fd);
	if (got >= 0)
		text[got] = '\0';
	return got;
}

int fabric_process_read(pid_t pid, struct fabric_process *out)
{
	uint64_t value[STAT_STACK + 1] = { 0 };
	ssize_t got;
	char text[1024], *at;

	got = read_stat(pid, text, sizeof text);
	if (got < 0)
		return (int)got;
	at = strrchr(text, ')');		/* the name before it may hold anything */
	if (!at || at[1] != ' ' || !at[2])
		return -EIO;
	out->state = at[2];
	at += 3;
	for (int field = STAT_STATE + 1; field <= STAT_STACK; field++)
		value[field] = strtoull(at, &at, 10);
	out->threads = (unsigned)value[STAT_THREADS];
	out->start = (uint32_t)(value[STAT_START] & ((1u << SEAT_START_BITS) - 1));
	if (!out->start)
		out->start = 1;
	out->stack = value[STAT_STACK];
	return 0;
}

static enum fabric_life life_of(const struct fabric_process *p)
{
	switch (p->state) {
	case 'Z': case 'X': case 'x':
		/* A zombie first thread says nothing while others of its process run. */
		return p->threads > 1 ? FABRIC_ALIVE : FABRIC_DEAD;
	case 'T': case 't':
		return FABRIC_STOPPED;
	default:
		return FABRIC_ALIVE;
	}
}

enum fabric_life fabric_process_life(pid_t pid, uint32_t start, uint64_t stack)
{
	struct fabric_process now;

	if (kill(pid, 0) < 0 && errno == ESRCH)
		return FABRIC_DEAD;
	/* Without a readable /proc the pid is all that is known: err on the side of life. */
	if (fabric_process_read(pid, &now) < 0)
		return kill(pid, 0) < 0 && errno == ESRCH ? FABRIC_DEAD : FABRIC_ALIVE;
	if (start && start != now.start)
		return FABRIC_DEAD;
	if (stack && now.stack && stack != now.stack)
		return FABRIC_DEAD;
	return life_of(&now);
}
