/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ethernet frames over the shared-memory wire: they go to the member that was named, whole and in
 * order with everything else; no room is an answer; and nobody waits for a member that is dead or
 * stopped.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "emu/wire/wake.h"
#include "tests/unit/wire_world.h"

TestSuite(wire_frames, .init = start, .timeout = 50);

#define FRAME_MAX	9600

/* Its first word is also its PSN, so that take() tells them apart. */
static struct ib_packet frame_of(uint32_t number, uint32_t bytes)
{
	struct ib_packet p = packet_to(0, number, bytes);

	p.opcode = IB_ETHERNET;
	memset(p.sgid, 0, sizeof p.sgid);
	memset(p.dgid, 0, sizeof p.dgid);
	p.extra.flow_number = number + 1000;
	return p;
}

static unsigned member_of(const struct node *n)
{
	return fabric_self(n->fabric);
}

static enum wire_sent frame(struct node *n, unsigned member, uint32_t number, uint32_t bytes)
{
	struct ib_packet p = frame_of(number, bytes);

	return n->wire->ops->frame(n->wire, member, &p);
}

static enum wire_sent has_room(struct node *n, unsigned member, uint32_t bytes)
{
	struct ib_packet p = frame_of(0, bytes);

	return n->wire->ops->has_room(n->wire, member, &p);
}

Test(wire_frames, the_member_that_was_named_gets_it_and_nobody_else)
{
	struct node n[4];

	for (unsigned i = 0; i < 4; i++)
		n[i] = node_up();
	for (uint32_t i = 0; i < 100; i++) {
		unsigned to = 1 + i % 3;

		cr_assert_eq(has_room(&n[0], member_of(&n[to]), 60 + i * 90), WIRE_SENT);
		for (unsigned k = 0; k < 4; k++)
			cr_assert_eq(take(&n[k]), -1, "a question sends nothing");
		cr_assert_eq(frame(&n[0], member_of(&n[to]), i, 60 + i * 90), WIRE_SENT);
		for (unsigned k = 0; k < 4; k++)
			cr_assert_eq(take(&n[k]), k == to ? (int)i : -1);
	}
	for (unsigned i = 0; i < 4; i++)
		node_down(&n[i]);
}

Test(wire_frames, all_of_it_arrives)
{
	static const uint32_t sizes[] = { 0, 1, 14, 60, 1514, 9000, FRAME_MAX };
	struct node a = node_up(), b = node_up();

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct ib_packet in, p = frame_of((uint32_t)i, sizes[i]);

		cr_assert_eq(a.wire->ops->frame(a.wire, member_of(&b), &p), WIRE_SENT);
		cr_assert_eq(b.wire->ops->receive(b.wire, &in), 1);
		cr_expect_eq(in.opcode, IB_ETHERNET);
		cr_expect_eq(in.extra.flow_number, 1000 + i);
		cr_expect_eq(in.payload_bytes, sizes[i]);
		if (sizes[i])
			cr_expect(!memcmp(in.span->iov_base, payload, sizes[i]));
		b.wire->ops->release(b.wire);
	}
	node_down(&a);
	node_down(&b);
}

/* Neither has the GIDs or the numbers of the other. */
Test(wire_frames, frames_and_packets_are_not_mixed_up)
{
	struct node a = node_up(), b = node_up();
	struct ib_packet in;

	for (uint32_t i = 0; i < 50; i++) {
		cr_assert_eq(frame(&a, member_of(&b), i, 64), WIRE_SENT);
		cr_assert_eq(send_to(&a, b.qpn, i, 64), WIRE_SENT);
		cr_assert_eq(b.wire->ops->receive(b.wire, &in), 1);
		cr_assert_eq(in.opcode, IB_ETHERNET);
		cr_assert_eq(in.extra.flow_number, 1000 + i);
		b.wire->ops->release(b.wire);
		cr_assert_eq(b.wire->ops->receive(b.wire, &in), 1);
		cr_assert_eq(in.opcode, RC_SEND_ONLY);
		cr_assert_eq(in.dest_qpn, b.qpn);
		cr_assert_eq(in.extra.flow_number, 0);
		cr_assert_eq(memcmp(in.dgid, gid[0], 16), 0);
		b.wire->ops->release(b.wire);
	}
	node_down(&a);
	node_down(&b);
}

Test(wire_frames, to_itself_and_to_no_member_there_is_no_way)
{
	struct node a = node_up();
	static const unsigned nobody[] = {
		1, FABRIC_MEMBERS_MAX - 1, FABRIC_MEMBERS_MAX, 1000, -1u,
	};

	cr_expect_eq(has_room(&a, member_of(&a), 64), WIRE_NOBODY);
	cr_expect_eq(frame(&a, member_of(&a), 1, 64), WIRE_NOBODY);
	for (size_t i = 0; i < sizeof nobody / sizeof *nobody; i++) {
		cr_expect_eq(has_room(&a, nobody[i], 64), WIRE_NOBODY);
		cr_expect_eq(frame(&a, nobody[i], 1, 64), WIRE_NOBODY);
	}
	cr_expect_eq(take(&a), -1);
	node_down(&a);
}

/* What has_room() says is what frame() then finds, up to the last one. */
Test(wire_frames, a_full_ring_says_so_and_loses_nothing)
{
	struct node a = node_up(), b = node_up();
	uint32_t sent = 0;
	unsigned seed = 5;

	for (unsigned round = 0; round < 50; round++) {
		uint32_t bytes = (uint32_t)rand_r(&seed) % (FRAME_MAX + 1);
		uint32_t first = sent;

		while (has_room(&a, member_of(&b), bytes) == WIRE_SENT)
			cr_assert_eq(frame(&a, member_of(&b), sent++, bytes), WIRE_SENT);
		cr_assert_gt(sent, first);
		cr_assert_eq(has_room(&a, member_of(&b), bytes), WIRE_FULL);
		cr_assert_eq(frame(&a, member_of(&b), sent, bytes), WIRE_FULL);
		for (uint32_t i = first; i < sent; i++)
			cr_assert_eq(take(&b), (int)i);
		cr_assert_eq(take(&b), -1);
	}
	node_down(&a);
	node_down(&b);
}

Test(wire_frames, who_listens_is_woken)
{
	struct node a = node_up(), b = node_up();
	struct wake_mail *mail = fabric_mail(b.fabric, member_of(&b));

	cr_assert_eq(frame(&a, member_of(&b), 0, 64), WIRE_SENT);
	cr_assert_eq(take(&b), 0);
	b.wire->ops->listen(b.wire, true);
	cr_assert_eq(has_room(&a, member_of(&b), 64), WIRE_SENT);
	cr_assert_neq(atomic_load(&mail->wants_wake), 0);
	cr_assert_eq(frame(&a, member_of(&b), 1, 64), WIRE_SENT);
	cr_assert_eq(atomic_load(&mail->wants_wake), 0, "the wish is granted");
	b.wire->ops->wait(b.wire, UINT64_MAX);
	cr_assert_eq(take(&b), 1);
	node_down(&a);
	node_down(&b);
}

Test(wire_frames, an_unreadable_frame_goes_nowhere)
{
	struct node a = node_up(), b = node_up();
	struct ib_packet p = frame_of(1, 64);

	span.iov_base = unmapped;
	cr_assert_eq(a.wire->ops->has_room(a.wire, member_of(&b), &p), WIRE_SENT);
	cr_assert_eq(a.wire->ops->frame(a.wire, member_of(&b), &p), WIRE_UNREADABLE);
	cr_assert_eq(take(&b), -1);
	cr_assert_eq(frame(&a, member_of(&b), 2, 64), WIRE_SENT);
	cr_assert_eq(take(&b), 2);
	node_down(&a);
	node_down(&b);
}

Test(wire_frames, without_memory_for_a_ring_the_frame_is_lost)
{
	struct node a = node_up(), b = node_up();
	struct rlimit old, small;

	getrlimit(RLIMIT_FSIZE, &old);
	small = old;
	small.rlim_cur = 4096;
	setrlimit(RLIMIT_FSIZE, &small);
	cr_assert_eq(has_room(&a, member_of(&b), 64), WIRE_NOBODY);
	cr_assert_eq(frame(&a, member_of(&b), 0, 64), WIRE_NOBODY);
	setrlimit(RLIMIT_FSIZE, &old);
	cr_assert_eq(frame(&a, member_of(&b), 1, 64), WIRE_SENT);
	cr_assert_eq(take(&b), 1);
	node_down(&a);
	node_down(&b);
}

Test(wire_frames, whoever_sits_there_next_is_another_one)
{
	struct node a = node_up(), b = node_up();
	unsigned member = member_of(&b);

	cr_assert_eq(frame(&a, member, 1, 64), WIRE_SENT);
	node_down(&b);
	cr_assert_eq(has_room(&a, member, 64), WIRE_NOBODY);
	cr_assert_eq(frame(&a, member, 2, 64), WIRE_NOBODY);
	b = node_up();
	cr_assert_eq(member_of(&b), member);
	cr_assert_eq(take(&b), -1);
	cr_assert_eq(frame(&a, member, 3, 64), WIRE_SENT);
	cr_assert_eq(take(&b), 3);
	node_down(&a);
	node_down(&b);
}

/* A receiver that found garbage has dropped the ring; the sender makes a new one. */
Test(wire_frames, a_refused_ring_is_replaced)
{
	struct node a = node_up(), b = node_up();
	struct ring_tx tx;
	char path[400], path_new[400];
	struct ib_packet p = frame_of(1, 64);

	snprintf(path, sizeof path, "%s/%u-%u-ring-200-1", dir, member_of(&b),
		 fabric_generation(b.fabric, member_of(&b)));
	snprintf(path_new, sizeof path_new, "%s/%u-%u-new-200-1", dir, member_of(&b),
		 fabric_generation(b.fabric, member_of(&b)));
	cr_assert_eq(ring_tx_create(&tx, path_new, path), 0);
	cr_assert_eq(ring_tx_send(&tx, &p), WIRE_SENT);
	memset(tx.map.data + 36, 0xff, 4);		/* payload_bytes */
	atomic_store(&((struct wake_mail *)fabric_mail(b.fabric, member_of(&b)))->is_announced, 1);
	cr_assert_eq(take(&b), -1);
	cr_assert_eq(ring_tx_has_room(&tx, &p), WIRE_SENT, "there was room when it last looked");
	while (ring_tx_has_room(&tx, &p) == WIRE_SENT)
		ring_tx_send(&tx, &p);
	cr_assert_eq(ring_tx_has_room(&tx, &p), WIRE_NOBODY);
	ring_tx_close(&tx);
	cr_assert_eq(frame(&a, member_of(&b), 2, 64), WIRE_SENT);
	cr_assert_eq(take(&b), 2);
	node_down(&a);
	node_down(&b);
}

/* A member in a process of its own, which takes nothing. */
static pid_t member_start(unsigned *member_out)
{
	int fd[2];
	pid_t pid;

	cr_assert_eq(pipe(fd), 0);
	pid = fork_child();
	if (pid == 0) {
		struct node n;
		unsigned member;

		if (node_try(&n))
			_exit(1);
		member = member_of(&n);
		if (write(fd[1], &member, sizeof member) != sizeof member)
			_exit(1);
		for (;;)
			pause();
	}
	cr_assert_eq(read(fd[0], member_out, sizeof *member_out), (ssize_t)sizeof *member_out);
	close(fd[0]);
	close(fd[1]);
	return pid;
}

/* Asking alone must come to an end too. */
static void expect_nobody_soon(struct node *n, unsigned member, bool asks)
{
	enum wire_sent sent = WIRE_SENT;

	for (unsigned tries = 0; sent != WIRE_NOBODY && tries < 10000; tries++)
		sent = asks && sent == WIRE_FULL ? has_room(n, member, 8000)
						 : frame(n, member, tries, 8000);
	cr_expect_eq(sent, WIRE_NOBODY);
}

Test(wire_frames, nobody_waits_for_the_dead)
{
	struct node a = node_up();

	for (unsigned round = 0; round < 4; round++) {
		unsigned member;
		pid_t pid = member_start(&member);

		cr_assert_eq(frame(&a, member, 1, 64), WIRE_SENT);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		expect_nobody_soon(&a, member, round % 2);
		cr_assert_eq(fabric_generation(a.fabric, member), 0, "and it is cleaned up");
	}
	node_down(&a);
}

Test(wire_frames, nobody_waits_for_the_stopped)
{
	struct node a = node_up();
	unsigned member, tries;
	pid_t pid = member_start(&member);
	struct ib_packet p;

	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
	expect_nobody_soon(&a, member, false);
	expect_nobody_soon(&a, member, true);
	/* A frame of a connection's kind waits: only what may be lost is. */
	p = frame_of(1, 8000);
	p.opcode = RC_SEND_ONLY;
	for (tries = 0; tries < 3000; tries++)
		cr_assert_eq(a.wire->ops->frame(a.wire, member, &p), WIRE_FULL);
	kill(pid, SIGCONT);
	for (tries = 0; has_room(&a, member, 8000) == WIRE_NOBODY && tries < 10000000; tries++)
		;
	cr_expect_eq(has_room(&a, member, 8000), WIRE_FULL, "it runs, so it may take them yet");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	node_down(&a);
}
