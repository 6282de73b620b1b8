/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host's stack behind a TAP device: what is sent there comes out, what it sends comes in, and
 * nothing hangs when the device goes or the program closes what is not its own.
 *
 * Method: a network of its own for each case, and a packet socket in the host's place.  Skipped
 * where that may not be.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "emu/mem/mem.h"
#include "emu/uplink/uplink.h"

#define NAME		"vtap0"
#define FRAMES		500
#define TYPE		0x88b5		/* for experiments: no stack says anything of it */
#define WAIT_MS		10000

static struct uplink_said said;
static _Atomic int arrivals;

/* Skipped where the kernel gives a process neither, as in most containers: nothing else could
 * stand for a TAP device, which is the kernel's. */
static void start(void)
{
	int fd;

	cr_assert_eq(mem_guard_init(), 0);
	if (unshare(CLONE_NEWNET))
		cr_skip_test("no network of its own: %s", strerror(errno));
	fd = open("/dev/net/tun", O_RDWR);
	if (fd < 0)
		cr_skip_test("no TAP devices: %s", strerror(errno));
	close(fd);
}

TestSuite(tap, .init = start, .timeout = 50);

static struct uplink *opened(void)
{
	struct uplink *u;

	cr_assert_eq(uplink_tap_open(NAME, &u, &said), 0, "%s", said.text);
	return u;
}

/* All frames of our type that pass the device. */
static int host_open(void)
{
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET, .sll_protocol = htons(TYPE),
		.sll_ifindex = (int)if_nametoindex(NAME),
	};
	int fd = socket(AF_PACKET, SOCK_RAW, htons(TYPE));

	cr_assert_geq(fd, 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
	return fd;
}

static uint32_t frame_make(uint8_t frame[1514], unsigned i)
{
	uint32_t bytes = 60 + i * 13 % 1400;

	for (uint32_t at = 0; at < bytes; at++)
		frame[at] = (uint8_t)(at + i);
	memset(frame, 0xff, 6);
	frame[6] = 2;
	frame[12] = TYPE >> 8;
	frame[13] = TYPE & 0xff;
	memcpy(frame + 14, &i, sizeof i);
	return bytes;
}

static bool is_ours(const uint8_t *frame, size_t bytes)
{
	return bytes >= 14 && frame[12] == TYPE >> 8 && frame[13] == (TYPE & 0xff);
}

Test(tap, what_is_sent_reaches_the_host)
{
	struct uplink *u = opened();
	int host = host_open();
	uint8_t wanted[1514], got[2000];

	for (unsigned i = 0; i < FRAMES; i++) {
		uint32_t bytes = frame_make(wanted, i);
		struct pollfd readable = { .fd = host, .events = POLLIN };

		errno = 77;
		cr_assert_eq(u->ops->send(u, wanted, bytes), 0);
		cr_assert_eq(errno, 77);
		cr_assert_eq(poll(&readable, 1, WAIT_MS), 1);
		cr_assert_eq(recv(host, got, sizeof got, 0), bytes);
		cr_assert_eq(memcmp(got, wanted, bytes), 0);
	}
	u->ops->close(u);
}

static void count(void *ctx)
{
	atomic_fetch_add((_Atomic int *)ctx, 1);
}

/* The next frame of ours; whoever is told that one is there goes on until there is none. */
static struct iovec frame_await(struct uplink *u)
{
	struct iovec frame;

	for (;;) {
		int seen = atomic_load(&arrivals);

		while (u->ops->receive(u, &frame)) {
			if (is_ours(frame.iov_base, frame.iov_len))
				return frame;
			u->ops->release(u);
		}
		while (atomic_load(&arrivals) == seen)
			usleep(100);
	}
}

/* More than the ring holds: some wait in the kernel. */
Test(tap, what_the_host_sends_comes_in)
{
	struct uplink *u = opened();
	int host = host_open();
	uint8_t wanted[1514];

	u->ops->listen(u, count, &arrivals);
	for (unsigned i = 0; i < FRAMES; i++) {
		uint32_t bytes = frame_make(wanted, i);

		cr_assert_eq(send(host, wanted, bytes, 0), bytes);
	}
	for (unsigned i = 0; i < FRAMES; i++) {
		uint32_t bytes = frame_make(wanted, i);
		struct iovec frame = frame_await(u);

		cr_assert_eq(frame.iov_len, bytes);
		cr_assert_eq(memcmp(frame.iov_base, wanted, bytes), 0);
		u->ops->release(u);
	}
	u->ops->close(u);
}

Test(tap, short_frames_are_padded)
{
	struct uplink *u = opened();
	int host = host_open();
	uint8_t wanted[1514];
	struct iovec frame;

	u->ops->listen(u, count, &arrivals);
	frame_make(wanted, 1);
	cr_assert_eq(send(host, wanted, 20, 0), 20);
	frame = frame_await(u);
	memset(wanted + 20, 0, 40);
	cr_expect_eq(frame.iov_len, 60);
	cr_expect_eq(memcmp(frame.iov_base, wanted, 60), 0);
	u->ops->close(u);
}

/* What came before anybody listened is told when he does. */
Test(tap, who_listens_late_is_told)
{
	struct uplink *u = opened();
	int host = host_open();
	uint8_t wanted[1514];
	struct iovec frame;

	cr_assert_gt(send(host, wanted, frame_make(wanted, 0), 0), 0);
	while (!u->ops->receive(u, &frame))
		usleep(100);
	u->ops->listen(u, count, &arrivals);
	cr_expect_eq(atomic_load(&arrivals), 1);
	u->ops->listen(u, NULL, NULL);
	u->ops->close(u);
}

Test(tap, nobody_takes_frames)
{
	struct uplink *u = opened();
	int host = host_open();
	uint8_t wanted[1514];

	for (unsigned i = 0; i < 3000; i++)
		send(host, wanted, frame_make(wanted, i), MSG_DONTWAIT);
	u->ops->close(u);		/* its thread waits for room */
}

/* --- refused --- */

static void expect_refused(const char *name, int error, const char *words)
{
	struct uplink *u = NULL;

	memset(&said, 0, sizeof said);
	cr_expect_eq(uplink_tap_open(name, &u, &said), error, "%s", said.text);
	cr_expect(strstr(said.text, words), "%s", said.text);
	cr_expect_null(u);
}

Test(tap, names_that_no_device_has)
{
	static const char *const names[] = {
		"", ".", "..", "a/b", "tap%d", "a b", "a:b", "a-very-long-name-of-a-device",
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		expect_refused(names[i], -EINVAL, "is no name");
	cr_expect_eq(uplink_tap_check(NAME, &said), 0);
}

Test(tap, a_device_has_one_process)
{
	struct uplink *u = opened(), *again;

	expect_refused(NAME, -EBUSY, NAME);
	u->ops->close(u);
	cr_assert_eq(uplink_tap_open(NAME, &again, &said), 0);
	again->ops->close(again);
}

Test(tap, another_sort_of_device)
{
	expect_refused("lo", -EINVAL, "lo");
}

/* --- taken away --- */

static int descriptor_find(void)
{
	char link[64], name[64] = "";

	for (int fd = 3; fd < 256; fd++) {
		ssize_t bytes;

		snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
		bytes = readlink(link, name, sizeof name - 1);
		name[bytes < 0 ? 0 : bytes] = 0;
		if (!strcmp(name, "/dev/net/tun"))
			return fd;
	}
	cr_assert(false, "it has none");
	return -1;
}

/* A socket of the program's has its number then. */
Test(tap, a_descriptor_that_the_program_took)
{
	struct uplink *u = opened();
	uint8_t frame[1514], got[16];
	int pair[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	cr_assert_gt(dup2(pair[0], descriptor_find()), 0);
	cr_expect_eq(u->ops->send(u, frame, frame_make(frame, 0)), -ENODEV);
	cr_assert_eq(write(pair[1], "mine", 4), 4);
	u->ops->close(u);
	cr_expect_eq(read(pair[0], got, sizeof got), 4);
	cr_expect_eq(recv(pair[1], got, sizeof got, MSG_DONTWAIT), -1);
}

static void device_remove(void)
{
	struct { struct nlmsghdr header; struct ifinfomsg link; } request = {
		.header = { .nlmsg_len = sizeof request, .nlmsg_type = RTM_DELLINK,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		.link = { .ifi_index = (int)if_nametoindex(NAME) },
	};
	struct { struct nlmsghdr header; struct nlmsgerr error; char rest[512]; } answer;
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);

	cr_assert_eq(send(fd, &request, sizeof request, 0), sizeof request);
	cr_assert_gt(recv(fd, &answer, sizeof answer, 0), 0);
	cr_assert_eq(answer.error.error, 0);
	close(fd);
}

Test(tap, a_device_that_is_removed)
{
	struct ifreq request = { .ifr_flags = 0 };
	struct uplink *u = opened();
	uint8_t frame[1514];
	int control = socket(AF_INET, SOCK_DGRAM, 0);

	strcpy(request.ifr_name, NAME);
	cr_assert_eq(ioctl(control, SIOCSIFFLAGS, &request), 0);
	cr_expect_eq(u->ops->send(u, frame, frame_make(frame, 0)), -EIO, "it is down");
	device_remove();
	cr_expect_lt(u->ops->send(u, frame, frame_make(frame, 0)), 0);
	u->ops->close(u);
}

/* The child has the descriptor, and not the thread. */
Test(tap, a_child)
{
	struct uplink *u = opened();
	pid_t pid = fork();
	int status;

	if (!pid) {
		u->ops->close(u);
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
	cr_expect_eq(u->ops->send(u, said.text, 60), 0, "it is still the parent's");
	u->ops->close(u);
}
