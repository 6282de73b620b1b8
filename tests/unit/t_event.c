/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Channels: one read is one event, order is kept, destroying an object takes its unread
 * events back, and the count of the read ones is exact.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include "tests/unit/obj_world.h"

static struct emu_channel *channel;
static int fd;
static const char tags[4];
#define A (&tags[0])
#define B (&tags[1])
#define C (&tags[2])

static void start(void)
{
	CHECK_INT(channel_create(EVENT_COMP_BYTES, &channel, &fd), 0);
}

TestSuite(event, .init = start);

static void push(uint64_t value, const void *tag)
{
	channel_push(channel, &value, tag);
}

/* The next event, or -1. */
static int64_t next(void)
{
	uint64_t value[2] = { 0, 0 };
	ssize_t n = recv(fd, value, sizeof value, MSG_DONTWAIT);

	if (n < 0)
		return -1;
	CHECK_INT(n, EVENT_COMP_BYTES);
	return (int64_t)value[0];
}

static int is_readable(void)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1 && p.revents == POLLIN;
}

Test(event, one_read_is_one_event_in_order)
{
	cr_assert_not(is_readable());
	push(1, A);
	push(2, B);
	push(3, A);
	cr_assert(is_readable());
	CHECK_INT(next(), 1);
	CHECK_INT(next(), 2);
	cr_assert(is_readable());
	CHECK_INT(next(), 3);
	cr_assert_not(is_readable());
	CHECK_INT(next(), -1);
	CHECK_INT(errno, EAGAIN);
}

Test(event, the_descriptor_is_closed_on_exec_and_blocks)
{
	cr_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	cr_assert_not(fcntl(fd, F_GETFL) & O_NONBLOCK);
	push(1, A);
	channel_forget(channel, A);
	cr_assert_not(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

Test(event, the_application_chooses_not_to_block)
{
	uint64_t value;

	fcntl(fd, F_SETFL, O_NONBLOCK);
	CHECK_INT(read(fd, &value, 8), -1);
	CHECK_INT(errno, EAGAIN);
	push(5, A);
	CHECK_INT(read(fd, &value, 8), 8);
	CHECK_INT(value, 5);
}

Test(event, forget_removes_the_unread_and_counts_the_read)
{
	push(1, A);
	push(2, B);
	push(3, A);
	push(4, C);
	push(5, A);
	CHECK_INT(next(), 1);
	CHECK_INT(channel_forget(channel, A), 1);
	CHECK_INT(next(), 2);
	CHECK_INT(next(), 4);
	CHECK_INT(next(), -1);
	CHECK_INT(channel_forget(channel, B), 1);
	CHECK_INT(channel_forget(channel, C), 1);
	CHECK_INT(channel_forget(channel, A), 0);
}

Test(event, forgetting_a_stranger_changes_nothing)
{
	CHECK_INT(channel_forget(channel, A), 0);
	push(1, B);
	CHECK_INT(channel_forget(channel, A), 0);
	CHECK_INT(next(), 1);
}

Test(event, a_tag_that_comes_again_starts_at_nothing)
{
	push(1, A);
	CHECK_INT(next(), 1);
	CHECK_INT(channel_forget(channel, A), 1);
	push(2, A);
	CHECK_INT(channel_forget(channel, A), 0);
	CHECK_INT(next(), -1);
}

Test(event, equal_events_of_two_tags_are_told_apart_by_count)
{
	push(7, A);
	push(7, B);
	push(7, A);
	CHECK_INT(channel_forget(channel, A), 0);
	CHECK_INT(next(), 7);
	CHECK_INT(next(), -1);
	CHECK_INT(channel_forget(channel, B), 1);
}

/* More than any socket holds. */
#define MANY 20000

Test(event, what_does_not_fit_waits_and_keeps_its_order)
{
	for (uint64_t i = 0; i < MANY; i++)
		push(i, i % 3 ? A : B);
	for (int64_t i = 0; i < MANY; i++) {
		int64_t got = next();

		if (got < 0) {
			channel_flush(channel);
			got = next();
		}
		CHECK_INT(got, i);
	}
	CHECK_INT(next(), -1);
	CHECK_INT(channel_forget(channel, A), MANY - (MANY + 2) / 3);
	CHECK_INT(channel_forget(channel, B), (MANY + 2) / 3);
}

Test(event, forget_reaches_those_that_wait)
{
	int64_t got, last = -1;
	unsigned seen = 0;

	for (uint64_t i = 0; i < MANY; i++)
		push(i, i & 1 ? A : B);
	CHECK_INT(channel_forget(channel, A), 0);
	while ((got = next()) >= 0 || (channel_flush(channel), got = next()) >= 0) {
		CHECK_INT(got & 1, 0);
		cr_assert_gt(got, last);
		last = got;
		seen++;
	}
	CHECK_INT(seen, MANY / 2);
	CHECK_INT(channel_forget(channel, B), MANY / 2);
}

/* Pointers at uneven distances, so that some share a place in the table of counts. */
static const void *many_tag(int i)
{
	return (const void *)(uintptr_t)(0x1000 + (uint64_t)i * i * 64);
}

Test(event, many_tags_are_counted_each)
{
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < 3000; i++) {
			push(i, many_tag(i));
			CHECK_INT(next(), i);
		}
	for (int i = 0; i < 3000; i += 2)
		CHECK_INT(channel_forget(channel, many_tag(i)), 3);
	for (int i = 1; i < 3000; i += 2)
		CHECK_INT(channel_forget(channel, many_tag(i)), 3);
}

Test(event, steady_use_needs_no_flush)
{
	for (int64_t i = 0; i < 100000; i++) {
		push(i, A);
		CHECK_INT(next(), i);
	}
	CHECK_INT(channel_forget(channel, A), 100000);
}

Test(event, a_closed_reader_is_no_signal_and_no_crash)
{
	close(fd);
	for (int i = 0; i < 1000; i++)
		push(i, A);
	channel_flush(channel);
	CHECK_INT(channel_forget(channel, A), 0);
	channel_destroy(channel);
}

Test(event, async_events_are_sixteen_bytes)
{
	struct emu_channel *async;
	uint8_t event[EVENT_ASYNC_BYTES], got[32];
	int async_fd;

	memset(event, 0x5a, sizeof event);
	CHECK_INT(channel_create(EVENT_ASYNC_BYTES, &async, &async_fd), 0);
	channel_push(async, event, A);
	CHECK_INT(read(async_fd, got, sizeof got), EVENT_ASYNC_BYTES);
	cr_assert(!memcmp(event, got, sizeof event));
	CHECK_INT(channel_forget(async, A), 1);
	channel_destroy(async);
}

/* A channel takes three; with fewer none is lost. */
Test(event, descriptors_run_out_cleanly)
{
	struct rlimit few = { 64, 64 };
	struct emu_channel *more;
	int more_fd = -7, first_free = dup(fd);

	close(first_free);
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &few), 0);
	for (int spare = 0; spare < 4; spare++) {
		int held[64], count = 0;

		while ((held[count] = dup(fd)) >= 0)
			count++;
		for (int i = 0; i < spare; i++)
			close(held[--count]);
		CHECK_INT(channel_create(EVENT_COMP_BYTES, &more, &more_fd),
			  spare < 3 ? -EMFILE : 0);
		if (spare < 3)
			CHECK_INT(more_fd, -7);
		else
			channel_destroy(more), close(more_fd);
		while (count)
			close(held[--count]);
		held[0] = dup(fd);
		CHECK_INT(held[0], first_free);
		close(held[0]);
	}
}

/* A reader in another thread while objects come and go: every event is either read or
 * taken back, never both, never lost. */
static atomic_int reader_stops;
static unsigned reader_saw[4];

static void *reader(void *unused)
{
	uint64_t value;

	(void)unused;
	for (;;) {
		ssize_t n = recv(fd, &value, sizeof value, MSG_DONTWAIT);

		if (n == sizeof value)
			reader_saw[value & 3]++;
		else if (reader_stops)
			return NULL;
		else
			sched_yield();
	}
}

Test(event, a_busy_reader_and_forget_agree)
{
	unsigned read[4] = { 0 };
	pthread_t thread;

	pthread_create(&thread, NULL, reader, NULL);
	for (int i = 0; i < 20000; i++) {
		push((uint64_t)i << 2 | (i & 3), &tags[i & 3]);
		if (i % 7 == 0)
			read[i & 3] += channel_forget(channel, &tags[i & 3]);
	}
	for (int t = 0; t < 4; t++)
		read[t] += channel_forget(channel, &tags[t]);
	reader_stops = 1;
	pthread_join(thread, NULL);
	for (int t = 0; t < 4; t++)
		CHECK_INT(read[t], reader_saw[t]);
}
