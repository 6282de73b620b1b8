/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is behind a port besides the fabric: the cable to the outside, or the host's own network
 * stack.  Frames come from there and go there.
 *
 * Threads: the device lock is held, unless said otherwise.
 */
#ifndef EMU_UPLINK_UPLINK_H
#define EMU_UPLINK_UPLINK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct uplink;

struct uplink_ops {
	const char *name;
	/* The oldest frame that has come: true and *out, which stays, and is the oldest, until
	 * release().  Of any length.  NULL: nothing ever comes. */
	bool (*receive)(struct uplink *u, struct iovec *out);
	void (*release)(struct uplink *u);
	/* 0; or -errno: the frame is lost.  Waits for nobody, and leaves errno alone.  NULL:
	 * nothing can go there. */
	int (*send)(struct uplink *u, const void *frame, uint32_t bytes);
	/*
	 * From now on @arrived is called when a frame comes after receive() has said that there is
	 * none; by a thread of the uplink's, without the lock.  NULL ends that.  Needs no lock.
	 * Whose frames are there from the beginning has none.
	 */
	void (*listen)(struct uplink *u, void (*arrived)(void *ctx), void *ctx);
	/* No lock.  In a forked child it only closes descriptors, and the memory stays. */
	void (*close)(struct uplink *u);
};

struct uplink { const struct uplink_ops *ops; };

/* What is wrong, for people. */
#define UPLINK_SAID_BYTES	512
struct uplink_said { char text[UPLINK_SAID_BYTES]; };

/*
 * Captures in place of a cable: @names is "in", "in,out" or ",out".  The frames of one come, all of
 * them and in order; what leaves goes into the other, see record.h.  0, or -errno and *said.
 * mem_guard_init() before.
 */
int uplink_pcap_open(const char *names, struct uplink **out, struct uplink_said *said);

/* The host's end of a TAP device, which may be made for this.  0, or -errno and *said; -EBUSY
 * another process has it. */
int uplink_tap_open(const char *name, struct uplink **out, struct uplink_said *said);
/* The same as far as can be told without touching the device. */
int uplink_tap_check(const char *name, struct uplink_said *said);
#endif
