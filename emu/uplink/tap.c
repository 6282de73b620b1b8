/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host's end of a TAP device: what is sent here the kernel's network stack receives.
 *
 * A thread of ours reads, because nobody else is told of frames that come, and puts them into a
 * ring; whoever runs the engine takes them from there.  When the ring is full it stops reading,
 * and the kernel's queue fills.  Programs close descriptors that are not theirs, so ours is asked
 * before each use whether it is still that device.
 *
 * Source: Linux, Documentation/networking/tuntap.rst.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "emu/steer/frame.h"
#include "emu/uplink/uplink.h"
#include "include/base/cancel.h"

#define TUN_PATH	"/dev/net/tun"
#define SLOTS		64		/* power of two */
#define FRAME_BYTES_MIN	60		/* on a wire, without FCS; the kernel does not pad */
#define BUSY_TRIES	20		/* who died may have it for a moment yet */
#define BUSY_NAP_NS	10000000
#define ERROR_NAP_NS	1000000

struct slot {
	uint32_t bytes;
	uint8_t frame[FRAME_BYTES_MAX];
};

struct uplink_tap {
	struct uplink uplink;
	char name[IFNAMSIZ];
	int fd;
	pid_t pid;			/* a forked child has another one, and not the thread */
	pthread_t thread;
	_Atomic bool is_gone;		/* the descriptor is somebody else's */
	sem_t room;			/* free slots */
	_Atomic uint32_t head, tail;	/* of the ring; free running */
	pthread_mutex_t listener_lock;
	void (*arrived)(void *ctx);
	void *arrived_ctx;
	struct slot slot[SLOTS];
};

static struct uplink_tap *tap(struct uplink *u)
{
	return (struct uplink_tap *)u;
}

/* --- the device --- */

static bool is_device(const struct uplink_tap *t)
{
	struct ifreq request = { 0 };

	return !ioctl(t->fd, TUNGETIFF, &request) && !strcmp(request.ifr_name, t->name);
}

/* Said by whoever sees it first. */
static bool is_usable(struct uplink_tap *t)
{
	if (atomic_load(&t->is_gone))
		return false;
	if (is_device(t))
		return true;
	if (!atomic_exchange(&t->is_gone, true))
		fprintf(stderr, "verbena: the TAP device %s is gone, or the program closed it\n",
			t->name);
	return false;
}

static bool name_is_good(const char *name)
{
	return *name && strlen(name) < IFNAMSIZ && !strpbrk(name, "/% \t\n:") &&
	       strcmp(name, ".") && strcmp(name, "..");
}

static int tun_open(struct uplink_said *said)
{
	int fd = open(TUN_PATH, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	snprintf(said->text, sizeof said->text, TUN_PATH " cannot be opened");
	return -errno;
}

int uplink_tap_check(const char *name, struct uplink_said *said)
{
	int fd;

	if (!name_is_good(name)) {
		snprintf(said->text, sizeof said->text, "\"%.40s\" is no name of a device", name);
		return -EINVAL;
	}
	fd = tun_open(said);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static int attach(int fd, const char *name)
{
	const struct timespec nap = { .tv_nsec = BUSY_NAP_NS };
	struct ifreq request = { .ifr_flags = IFF_TAP | IFF_NO_PI };

	strcpy(request.ifr_name, name);
	for (int tries = 0; ioctl(fd, TUNSETIFF, &request); tries++) {
		if (errno != EBUSY || tries == BUSY_TRIES)
			return -errno;
		nanosleep(&nap, NULL);
	}
	return 0;
}

/* Who may not has to have it done by somebody who may. */
static void bring_up(const char *name)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { 0 };

	if (fd < 0)
		return;
	strcpy(request.ifr_name, name);
	if (!ioctl(fd, SIOCGIFFLAGS, &request) && !(request.ifr_flags & IFF_UP)) {
		request.ifr_flags |= IFF_UP;
		ioctl(fd, SIOCSIFFLAGS, &request);
	}
	close(fd);
}

/* --- frames from the host --- */

/* Until there may be a frame.  What is wrong for long must not keep a CPU busy. */
static void frame_await(const struct uplink_tap *t, int error)
{
	const struct timespec nap = { .tv_nsec = ERROR_NAP_NS };
	struct pollfd wanted = { .fd = t->fd, .events = POLLIN };

	if (error != EAGAIN || poll(&wanted, 1, -1) < 0 || !(wanted.revents & POLLIN))
		nanosleep(&nap, NULL);
}

/* 1; 0: try again; -1: never. */
static int slot_fill(struct uplink_tap *t, struct slot *slot)
{
	ssize_t got;

	if (!is_usable(t))
		return -1;
	got = read(t->fd, slot->frame, sizeof slot->frame);
	if (got <= 0) {
		frame_await(t, got ? errno : 0);	/* EFAULT: one that is too long */
		return 0;
	}
	slot->bytes = (uint32_t)got;
	if (slot->bytes < FRAME_BYTES_MIN) {
		memset(slot->frame + slot->bytes, 0, FRAME_BYTES_MIN - slot->bytes);
		slot->bytes = FRAME_BYTES_MIN;
	}
	return 1;
}

static void tell(struct uplink_tap *t)
{
	int held = cancel_hold();

	pthread_mutex_lock(&t->listener_lock);
	if (t->arrived)
		t->arrived(t->arrived_ctx);
	pthread_mutex_unlock(&t->listener_lock);
	cancel_release(held);
}

/* Whoever takes frames goes on until it sees none: it need be told of the first one only. */
static void *tap_main(void *arg)
{
	struct uplink_tap *t = arg;
	uint32_t tail = 0;
	int filled = 0;

	while (filled >= 0) {
		while (sem_wait(&t->room))
			;
		do
			filled = slot_fill(t, &t->slot[tail % SLOTS]);
		while (!filled);
		if (filled < 0)
			break;
		atomic_store(&t->tail, ++tail);
		if (atomic_load(&t->head) == tail - 1)
			tell(t);
	}
	return NULL;
}

static bool tap_receive(struct uplink *u, struct iovec *out)
{
	struct uplink_tap *t = tap(u);
	uint32_t head = atomic_load(&t->head);
	struct slot *slot = &t->slot[head % SLOTS];

	if (head == atomic_load(&t->tail))
		return false;
	*out = (struct iovec){ slot->frame, slot->bytes };
	return true;
}

static void tap_release(struct uplink *u)
{
	struct uplink_tap *t = tap(u);

	atomic_fetch_add(&t->head, 1);
	sem_post(&t->room);
}

static void tap_listen(struct uplink *u, void (*arrived)(void *ctx), void *ctx)
{
	struct uplink_tap *t = tap(u);

	pthread_mutex_lock(&t->listener_lock);
	t->arrived = arrived;
	t->arrived_ctx = ctx;
	pthread_mutex_unlock(&t->listener_lock);
	if (arrived && atomic_load(&t->head) != atomic_load(&t->tail))
		arrived(ctx);
}

/* --- frames to the host --- */

static int tap_send(struct uplink *u, const void *frame, uint32_t bytes)
{
	struct uplink_tap *t = tap(u);
	int held, saved = errno, error = -ENODEV;

	held = cancel_hold();
	if (is_usable(t))
		error = write(t->fd, frame, bytes) < 0 ? -errno : 0;
	cancel_release(held);
	errno = saved;
	return error;
}

/* --- life --- */

static void tap_close(struct uplink *u)
{
	struct uplink_tap *t = tap(u);
	bool is_ours = t->pid == getpid();

	if (is_ours && t->thread) {
		pthread_cancel(t->thread);
		pthread_join(t->thread, NULL);
	}
	if (t->fd >= 0 && is_device(t))
		close(t->fd);
	atomic_store(&t->is_gone, true);
	if (!is_ours)
		return;			/* locks of it may be held for ever */
	pthread_mutex_destroy(&t->listener_lock);
	sem_destroy(&t->room);
	free(t);
}

static const struct uplink_ops tap_ops = {
	.name = "tap",
	.receive = tap_receive,
	.release = tap_release,
	.send = tap_send,
	.listen = tap_listen,
	.close = tap_close,
};

/* It takes no signal of the application. */
static int thread_start(struct uplink_tap *t)
{
	sigset_t all, old;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&t->thread, NULL, tap_main, t);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (error)
		t->thread = 0;
	return -error;
}

static int tap_begin(struct uplink_tap *t, const char *name, struct uplink_said *said)
{
	int error;

	strcpy(t->name, name);
	t->fd = tun_open(said);
	if (t->fd < 0)
		return t->fd;
	error = attach(t->fd, name);
	snprintf(said->text, sizeof said->text, "the TAP device %s cannot be used", name);
	if (error)
		return error;
	bring_up(name);
	return thread_start(t);
}

int uplink_tap_open(const char *name, struct uplink **out, struct uplink_said *said)
{
	struct uplink_tap *t;
	int error = uplink_tap_check(name, said);

	if (error)
		return error;
	snprintf(said->text, sizeof said->text, "the TAP device %s", name);
	t = calloc(1, sizeof *t);
	if (!t)
		return -ENOMEM;
	t->uplink.ops = &tap_ops;
	t->fd = -1;
	t->pid = getpid();
	pthread_mutex_init(&t->listener_lock, NULL);
	sem_init(&t->room, 0, SLOTS);
	error = tap_begin(t, name, said);
	if (error)
		tap_close(&t->uplink);
	else
		*out = &t->uplink;
	return error;
}
