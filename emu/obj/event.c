/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event queues; see event.h.
 *
 * Every event lives in one ring of slots until the application is known to have read
 * it: first those that went into the socket, oldest first, then those that wait for room.
 * The socket delivers in order and one event a read, so the number of bytes still in it
 * (asked at our duplicate of the application's end) says which slots were read.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "emu/obj/obj.h"
#include "include/base/cancel.h"

#define SLOTS_MIN	16u
#define SLOTS_MAX	(1u << 20)	/* an application that never reads loses later events */
#define COUNTS_MIN	16u

struct event_slot {
	const void *tag;
	uint8_t bytes[EVENT_BYTES_MAX];
};

/* How many events about a tag were queued, ever; an open-addressed table. */
struct event_count {
	const void *tag;
	uint32_t pushed;
};

/*
 * A descriptor of ours.  The application may close every number it does not know and open others
 * in their place, so a number is used only while it means what it did.
 */
struct own_fd {
	int fd;
	dev_t dev;
	ino_t ino;
};

struct emu_channel {
	struct emu_obj obj;		/* first: see channel_obj() */
	struct own_fd writer;		/* our end */
	struct own_fd reader;		/* the application's end, kept to look into it */
	struct channel_list *list;	/* it is in this one, or NULL */
	struct emu_channel *list_next;
	size_t bytes;			/* per event */
	struct event_slot *slot;	/* ring of slot_size, a power of two */
	uint32_t slot_size, head, sent, tail;	/* free running: head <= sent <= tail */
	struct event_count *count;	/* count_size, a power of two */
	uint32_t count_size, count_used;
};

static struct own_fd own_fd_of(int fd)
{
	struct own_fd own = { .fd = fd };
	struct stat st;

	if (!fstat(fd, &st)) {
		own.dev = st.st_dev;
		own.ino = st.st_ino;
	}
	return own;
}

static bool is_ours(const struct own_fd *own)
{
	struct stat st;

	return !fstat(own->fd, &st) && st.st_dev == own->dev && st.st_ino == own->ino;
}

static void own_fd_close(struct own_fd *own)
{
	if (is_ours(own))
		close(own->fd);
}

int channel_create(size_t bytes, struct emu_channel **out, int *fd_out)
{
	struct emu_channel *channel;
	int pair[2], reader;

	assert(bytes && bytes <= EVENT_BYTES_MAX);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	reader = fcntl(pair[1], F_DUPFD_CLOEXEC, 0);
	channel = reader < 0 ? NULL : calloc(1, sizeof *channel);
	if (!channel) {
		int rc = reader < 0 ? -errno : -ENOMEM;

		close(pair[0]);
		close(pair[1]);
		if (reader >= 0)
			close(reader);
		return rc;
	}
	channel->writer = own_fd_of(pair[0]);
	channel->reader = own_fd_of(reader);
	channel->bytes = bytes;
	*out = channel;
	*fd_out = pair[1];
	return 0;
}

void channel_subscribe(struct emu_channel *channel, struct channel_list *list)
{
	channel->list = list;
	channel->list_next = list->first;
	list->first = channel;
}

static void unsubscribe(struct emu_channel *channel)
{
	struct emu_channel **at = &channel->list->first;

	while (*at != channel)
		at = &(*at)->list_next;
	*at = channel->list_next;
}

void channel_destroy(struct emu_channel *channel)
{
	if (channel->list)
		unsubscribe(channel);
	own_fd_close(&channel->writer);
	own_fd_close(&channel->reader);
	free(channel->slot);
	free(channel->count);
	free(channel);
}

struct emu_obj *channel_obj(struct emu_channel *channel)
{
	return &channel->obj;
}

/* --- how many events a tag had --- */

static uint32_t count_home(const struct emu_channel *channel, const void *tag)
{
	uint64_t hash = (uintptr_t)tag * 0x9e3779b97f4a7c15ull;

	return (uint32_t)(hash >> 32) & (channel->count_size - 1);
}

/* The row of @tag, or the empty row where it belongs. */
static uint32_t count_at(const struct emu_channel *channel, const void *tag)
{
	uint32_t i = count_home(channel, tag);

	while (channel->count[i].tag && channel->count[i].tag != tag)
		i = (i + 1) & (channel->count_size - 1);
	return i;
}

static bool count_grow(struct emu_channel *channel)
{
	struct event_count *old = channel->count;
	uint32_t old_size = channel->count_size;
	uint32_t size = old_size ? old_size * 2 : COUNTS_MIN;
	struct event_count *new = calloc(size, sizeof *new);

	if (!new)
		return false;
	channel->count = new;
	channel->count_size = size;
	for (uint32_t i = 0; i < old_size; i++)
		if (old[i].tag)
			new[count_at(channel, old[i].tag)] = old[i];
	free(old);
	return true;
}

static bool count_add(struct emu_channel *channel, const void *tag)
{
	uint32_t i;

	if (channel->count_used * 2 >= channel->count_size && !count_grow(channel))
		return false;
	i = count_at(channel, tag);
	if (!channel->count[i].tag)
		channel->count_used++;
	channel->count[i].tag = tag;
	channel->count[i].pushed++;
	return true;
}

/* Rows behind a removed one move up, so that they are still found. */
static void count_close_gap(struct emu_channel *channel, uint32_t gap)
{
	uint32_t mask = channel->count_size - 1;

	for (uint32_t i = (gap + 1) & mask; channel->count[i].tag; i = (i + 1) & mask) {
		uint32_t home = count_home(channel, channel->count[i].tag);

		if (((i - home) & mask) < ((i - gap) & mask))
			continue;
		channel->count[gap] = channel->count[i];
		channel->count[i].tag = NULL;
		gap = i;
	}
}

static uint32_t count_take(struct emu_channel *channel, const void *tag)
{
	uint32_t i, pushed;

	if (!channel->count_size)
		return 0;
	i = count_at(channel, tag);
	if (!channel->count[i].tag)
		return 0;
	pushed = channel->count[i].pushed;
	channel->count[i] = (struct event_count){ 0 };
	channel->count_used--;
	count_close_gap(channel, i);
	return pushed;
}

/* --- the slots --- */

static struct event_slot *slot_at(struct emu_channel *channel, uint32_t index)
{
	return &channel->slot[index & (channel->slot_size - 1)];
}

/* Let go of the slots that the application has read. */
static void drop_read(struct emu_channel *channel)
{
	int unread_bytes;
	uint32_t unread;

	if (channel->head == channel->sent || !is_ours(&channel->reader) ||
	    ioctl(channel->reader.fd, FIONREAD, &unread_bytes))
		return;
	unread = unread_bytes / channel->bytes;
	if (unread < channel->sent - channel->head)
		channel->head = channel->sent - unread;
}

static bool slots_grow(struct emu_channel *channel)
{
	uint32_t size = channel->slot_size ? channel->slot_size * 2 : SLOTS_MIN;
	struct event_slot *new;

	if (size > SLOTS_MAX)
		return false;
	new = malloc(size * sizeof *new);
	if (!new)
		return false;
	for (uint32_t i = channel->head; i != channel->tail; i++)
		new[i & (size - 1)] = *slot_at(channel, i);
	free(channel->slot);
	channel->slot = new;
	channel->slot_size = size;
	return true;
}

static bool slots_have_room(struct emu_channel *channel)
{
	if (channel->tail - channel->head < channel->slot_size)
		return true;
	drop_read(channel);
	return channel->tail - channel->head < channel->slot_size || slots_grow(channel);
}

static bool slot_send(struct emu_channel *channel)
{
	ssize_t n;

	do {
		n = send(channel->writer.fd, slot_at(channel, channel->sent)->bytes, channel->bytes,
			 MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n >= 0;
}

void channel_flush(struct emu_channel *channel)
{
	int held;

	if (channel->sent == channel->tail || !is_ours(&channel->writer))
		return;
	held = cancel_hold();		/* the caller has the device lock */
	while (channel->sent != channel->tail && slot_send(channel))
		channel->sent++;
	cancel_release(held);
}

void channel_push(struct emu_channel *channel, const void *event, const void *tag)
{
	struct event_slot *slot;

	/* Without memory the event is lost, as on a device whose event queue is full. */
	if (!slots_have_room(channel) || !count_add(channel, tag))
		return;
	slot = slot_at(channel, channel->tail++);
	slot->tag = tag;
	memcpy(slot->bytes, event, channel->bytes);
	channel_flush(channel);
}

void channels_push(const struct channel_list *list, const void *event, const void *tag)
{
	for (struct emu_channel *c = list->first; c; c = c->list_next)
		channel_push(c, event, tag);
}

static uint32_t slots_about(struct emu_channel *channel, uint32_t from, uint32_t to,
			    const void *tag)
{
	uint32_t count = 0;

	for (; from != to; from++)
		count += slot_at(channel, from)->tag == tag;
	return count;
}

/* Take everything out of the socket again.  The application may read meanwhile, so what
 * comes out, and not its number, says which slots are still unread. */
static void unsend(struct emu_channel *channel)
{
	uint32_t kept = channel->head, next = channel->head;
	uint8_t event[EVENT_BYTES_MAX];

	while (next != channel->sent && is_ours(&channel->reader)) {
		ssize_t n = recv(channel->reader.fd, event, sizeof event, MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		while (next != channel->sent &&
		       memcmp(slot_at(channel, next)->bytes, event, channel->bytes))
			next++;
		if (next != channel->sent)
			*slot_at(channel, kept++) = *slot_at(channel, next++);
	}
	for (uint32_t i = channel->sent; i != channel->tail; i++)
		*slot_at(channel, kept++) = *slot_at(channel, i);
	channel->sent = channel->head;
	channel->tail = kept;
}

static uint32_t slots_remove(struct emu_channel *channel, const void *tag)
{
	uint32_t kept = channel->sent, removed = 0;

	for (uint32_t i = channel->sent; i != channel->tail; i++) {
		if (slot_at(channel, i)->tag == tag)
			removed++;
		else
			*slot_at(channel, kept++) = *slot_at(channel, i);
	}
	channel->tail = kept;
	return removed;
}

uint32_t channel_forget(struct emu_channel *channel, const void *tag)
{
	uint32_t pushed = count_take(channel, tag);

	if (!pushed)
		return 0;
	drop_read(channel);
	if (slots_about(channel, channel->head, channel->sent, tag))
		unsend(channel);
	pushed -= slots_remove(channel, tag);
	channel_flush(channel);
	return pushed;
}
