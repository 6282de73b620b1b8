/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event queues behind a real descriptor: completion channels and async files.
 *
 * The descriptor is one end of a SOCK_SEQPACKET pair, so poll, epoll, select,
 * O_NONBLOCK and a blocking read work by the kernel's own rules, and one read
 * returns one event.  What does not fit into the socket waits here.
 *
 * A duplicate of the application's end stays with us, to take unread events back.  So
 * nobody notices here that the application closed its own: whoever does calls
 * channel_destroy().  Until then events pile up to a limit.
 *
 * Threads: the caller holds the device lock; the application reads when it likes.
 */
#ifndef EMU_OBJ_EVENT_H
#define EMU_OBJ_EVENT_H
#include <stddef.h>
#include <stdint.h>

struct emu_channel;

/* Asynchronous event numbers of the uverbs ABI (ib_verbs: enum ib_event_type). */
enum {
	EVENT_CQ_ERR = 0, EVENT_QP_FATAL = 1, EVENT_QP_REQ_ERR = 2, EVENT_QP_ACCESS_ERR = 3,
	EVENT_COMM_EST = 4,
	EVENT_SRQ_ERR = 14, EVENT_SRQ_LIMIT = 15, EVENT_QP_LAST_WQE = 16,
	EVENT_DEVICE_FATAL = 8, EVENT_PORT_ACTIVE = 9, EVENT_PORT_ERR = 10, EVENT_LID_CHANGE = 11,
	EVENT_PKEY_CHANGE = 12, EVENT_SM_CHANGE = 13, EVENT_CLIENT_REREGISTER = 17,
	EVENT_GID_CHANGE = 18, EVENT_WQ_FATAL = 19,
};

/* The async files of a device. */
struct channel_list { struct emu_channel *first; };

enum { EVENT_COMP_BYTES = 8, EVENT_ASYNC_BYTES = 16, EVENT_BYTES_MAX = 16 };

/* @bytes per event.  *fd_out is the application's end (O_CLOEXEC); the caller gives it away or
 * closes it.  0, -EMFILE, -ENFILE, -ENOMEM */
int channel_create(size_t bytes, struct emu_channel **out, int *fd_out);
void channel_destroy(struct emu_channel *channel);

/* What happens to the device as a whole is told to all of a list.  Ends with channel_destroy(). */
void channel_subscribe(struct emu_channel *channel, struct channel_list *list);
void channels_push(const struct channel_list *list, const void *event, const void *tag);

/* Queue an event about @tag (any pointer that names the object). */
void channel_push(struct emu_channel *channel, const void *event, const void *tag);

/* Move waiting events into the socket.  Cheap when none wait. */
void channel_flush(struct emu_channel *channel);

/* Remove unread events about @tag.  Returns how many about @tag were read by the
 * application, ever: the number that libibverbs waits to be acknowledged. */
uint32_t channel_forget(struct emu_channel *channel, const void *tag);

/* The first bytes of struct emu_channel are a struct emu_obj; see obj.h. */
struct emu_obj *channel_obj(struct emu_channel *channel);
#endif
