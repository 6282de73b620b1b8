/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An application thread that waits for an event sleeps in the NIC thread's place.
 *
 * Else a packet would wake the NIC thread, and the NIC thread the program: two sleeps end where a
 * real interrupt ends one.  One thread at a time does so; for others, and for programs that wait in
 * poll(), the NIC thread is there as ever, and it also keeps the timers.
 *
 * Nothing is taken from the channel here: the caller reads when there is something, or
 * when it is not clear that there is nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include "base/cancel.h"
#include "emu/engine/engine_local.h"

struct doze {
	struct engine *e;
	uint64_t events;		/* as many were raised when the channel was looked at */
};

static bool is_over(void *ctx)
{
	const struct doze *d = ctx;

	return atomic_load(&d->e->events) != d->events || atomic_load(&d->e->must_not_doze);
}

/* With is_dozer_asleep: the dozer sees the event, or we see that it sleeps. */
void doze_tell(struct engine *e)
{
	atomic_fetch_add(&e->events, 1);
	if (atomic_load(&e->is_dozer_asleep))
		e->wire->ops->rouse(e->wire);
}

void engine_doze_stop(struct engine *e)
{
	atomic_store(&e->must_not_doze, true);
	if (atomic_load(&e->is_dozer_asleep))
		e->wire->ops->rouse(e->wire);
}

/* Would read() block, and may it? */
static bool may_sleep(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	int flags;

	if (poll(&poll_fd, 1, 0))
		return false;
	flags = fcntl(fd, F_GETFL);
	return flags >= 0 && !(flags & O_NONBLOCK);
}

/* Packets come and are served until one of them raises an event, or somebody else does. */
static int sleep_for_event(struct doze *d)
{
	struct engine *e = d->e;
	int error = 0;

	while (!error && !is_over(d)) {
		atomic_store(&e->is_dozer_asleep, true);
		error = e->wire->ops->doze(e->wire, is_over, d);
		atomic_store(&e->is_dozer_asleep, false);
		if (error)
			break;
		pthread_mutex_lock(&e->dev->lock);
		look_outside(e);
		drive_and_unlock(e);
	}
	return error;
}

/* False: somebody else dozes, or nobody can. */
static bool doze_begin(struct engine *e)
{
	bool can = e->wire && e->wire->ops->doze && !atomic_exchange(&e->has_dozer, true);

	pthread_mutex_lock(&e->dev->lock);
	if (can)
		e->wire->ops->listen(e->wire, true);
	drive_and_unlock(e);
	return can;
}

/* Also for a thread that was cancelled. */
static void doze_end(void *ctx)
{
	struct engine *e = ctx;

	atomic_store(&e->is_dozer_asleep, false);
	e->wire->ops->doze_end(e->wire);
	atomic_store(&e->has_dozer, false);
}

static bool is_same_file(int fd, const struct stat *before)
{
	struct stat now;

	return !fstat(fd, &now) && now.st_dev == before->st_dev && now.st_ino == before->st_ino;
}

/* The channel may have been closed meanwhile, and its number mean something else. */
static int doze(struct engine *e, int fd)
{
	struct doze d = { .e = e };
	struct stat channel;
	int error = 0;

	if (fstat(fd, &channel))
		return 0;
	while (!error) {
		d.events = atomic_load(&e->events);
		if (!may_sleep(fd))
			break;
		error = sleep_for_event(&d);
		if (!error && (atomic_load(&e->must_not_doze) || !is_same_file(fd, &channel)))
			error = -EBADF;
	}
	return error;
}

LEFT_BY_CANCELLATION
int engine_doze(struct engine *e, int fd)
{
	volatile int error = 0;

	if (!doze_begin(e))
		return 0;
	pthread_cleanup_push(doze_end, e);
	error = doze(e, fd);
	pthread_cleanup_pop(1);
	return error;
}
