/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast over the shared-memory wire: every other member of the group, once; all of them or,
 * while one has no room, none; and no member that is dead or stopped holds the others up.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include "tests/unit/wire_world.h"

TestSuite(wire_groups, .init = start, .timeout = 50);

static const uint8_t red[16] = { 0xff, 0x0e, [15] = 1 }, blue[16] = { 0xff, 0x0e, [15] = 17 };

static struct ib_packet packet_to_group(const uint8_t group[16], uint32_t psn, uint32_t bytes)
{
	struct ib_packet p = packet_to(IB_MULTICAST_QPN, psn, bytes);

	p.opcode = IB_UD | RC_SEND_ONLY;
	p.extra = (struct ib_extra){ .qkey = 0x11111111, .l3 = IB_L3_IPV4, .hop_limit = 7 };
	memcpy(p.dgid, group, 16);
	return p;
}

static enum wire_sent multicast(struct node *n, const uint8_t group[16], uint32_t psn,
				uint32_t bytes)
{
	struct ib_packet p = packet_to_group(group, psn, bytes);

	return n->wire->ops->multicast(n->wire, &p);
}

static void join(struct node *n, const uint8_t group[16])
{
	cr_assert_eq(n->wire->ops->join(n->wire, group), 0);
}

static void leave(struct node *n, const uint8_t group[16])
{
	n->wire->ops->leave(n->wire, group);
}

Test(wire_groups, every_other_member_gets_one_copy)
{
	struct node n[4];

	for (unsigned i = 0; i < 4; i++)
		n[i] = node_up();
	cr_assert_eq(multicast(&n[0], red, 1, 8), WIRE_NOBODY);
	join(&n[0], red);
	cr_assert_eq(multicast(&n[0], red, 2, 8), WIRE_NOBODY, "only itself");
	join(&n[1], red);
	join(&n[2], red);
	join(&n[3], blue);
	cr_assert_eq(multicast(&n[0], red, 3, 100), WIRE_SENT);
	for (unsigned i = 0; i < 4; i++) {
		cr_expect_eq(take(&n[i]), i == 1 || i == 2 ? 3 : -1, "node %u", i);
		cr_expect_eq(take(&n[i]), -1, "node %u", i);
	}
	leave(&n[1], red);
	cr_assert_eq(multicast(&n[0], red, 4, 100), WIRE_SENT);
	cr_expect_eq(take(&n[1]), -1);
	cr_expect_eq(take(&n[2]), 4);
	join(&n[1], red);
	cr_assert_eq(multicast(&n[3], red, 5, 0), WIRE_SENT, "from outside of the group");
	cr_expect_eq(take(&n[0]), 5);
	cr_expect_eq(take(&n[1]), 5);
	for (unsigned i = 0; i < 4; i++)
		node_down(&n[i]);
}

/* Two groups whose addresses look alike to the cache. */
Test(wire_groups, groups_are_not_taken_for_each_other)
{
	struct node a = node_up(), b = node_up(), c = node_up();

	join(&b, red);
	join(&c, blue);
	for (uint32_t i = 0; i < 10; i++) {
		cr_assert_eq(multicast(&a, i % 2 ? red : blue, i, 8), WIRE_SENT);
		cr_expect_eq(take(&b), i % 2 ? (int)i : -1);
		cr_expect_eq(take(&c), i % 2 ? -1 : (int)i);
	}
	node_down(&a);
	node_down(&b);
	node_down(&c);
}

Test(wire_groups, what_a_datagram_says_of_its_way_arrives)
{
	struct node a = node_up(), b = node_up();
	struct ib_packet in, p = packet_to_group(red, 9, 33);

	p.extra.srqn = 0xabcdef;
	p.extra.flow_label = 0x12345;
	p.extra.slid = 0x1234;
	p.extra.dlid = 0xc001;
	p.extra.sl = 5;
	p.extra.traffic_class = 0xb8;
	join(&b, red);
	cr_assert_eq(a.wire->ops->multicast(a.wire, &p), WIRE_SENT);
	cr_assert_eq(b.wire->ops->receive(b.wire, &in), 1);
	cr_expect(!memcmp(&in.extra, &p.extra, sizeof p.extra));
	cr_expect(!memcmp(in.dgid, red, 16));
	cr_expect_eq(in.dest_qpn, IB_MULTICAST_QPN);
	b.wire->ops->release(b.wire);
	node_down(&a);
	node_down(&b);
}

/* One ring is full, the other has room: neither gets it, and nothing is doubled later. */
Test(wire_groups, all_of_them_or_none)
{
	struct node a = node_up(), b = node_up(), c = node_up();
	uint32_t sent = 0;
	int psn;

	join(&b, red);
	join(&c, red);
	while (multicast(&a, red, sent, 4096) == WIRE_SENT) {
		sent++;
		cr_assert_eq(take(&c), (int)sent - 1);
	}
	cr_assert_gt(sent, 10);
	cr_assert_eq(multicast(&a, red, sent, 4096), WIRE_FULL);
	cr_assert_eq(take(&c), -1, "the one with room has got none");
	for (psn = 0; psn < (int)sent; psn++)
		cr_assert_eq(take(&b), psn);
	cr_assert_eq(multicast(&a, red, sent, 4096), WIRE_SENT);
	cr_assert_eq(take(&b), (int)sent);
	cr_assert_eq(take(&c), (int)sent);
	node_down(&a);
	node_down(&b);
	node_down(&c);
}

Test(wire_groups, unreadable_data_goes_nowhere)
{
	struct node a = node_up(), b = node_up();
	struct ib_packet p = packet_to_group(red, 1, 64);

	span.iov_base = unmapped;
	join(&b, red);
	cr_assert_eq(a.wire->ops->multicast(a.wire, &p), WIRE_UNREADABLE);
	cr_assert_eq(take(&b), -1);
	cr_assert_eq(multicast(&a, red, 2, 64), WIRE_SENT);
	cr_assert_eq(take(&b), 2);
	node_down(&a);
	node_down(&b);
}

/* A member in a process of its own, which takes nothing. */
static pid_t member_start(uint32_t *qpn_out)
{
	int fd[2];
	pid_t pid;

	cr_assert_eq(pipe(fd), 0);
	pid = fork_child();
	if (pid == 0) {
		struct node n;

		if (node_try(&n) || n.wire->ops->join(n.wire, red) ||
		    write(fd[1], &n.qpn, sizeof n.qpn) != sizeof n.qpn)
			_exit(1);
		for (;;)
			pause();
	}
	cr_assert_eq(read(fd[0], qpn_out, sizeof *qpn_out), (ssize_t)sizeof *qpn_out);
	close(fd[0]);
	close(fd[1]);
	return pid;
}

/* Send until @count packets have come to @b; false if that takes for ever. */
static bool reaches(struct node *a, struct node *b, int count)
{
	for (unsigned tries = 0; count && tries < 100000; tries++) {
		multicast(a, red, tries, 4096);
		while (take(b) >= 0)
			count--;
	}
	return count <= 0;
}

Test(wire_groups, the_dead_hold_nobody_up)
{
	struct node a = node_up(), b = node_up();
	uint32_t qpn;
	pid_t pid = member_start(&qpn);

	join(&b, red);
	cr_assert_eq(multicast(&a, red, 1, 8), WIRE_SENT);
	cr_assert_eq(take(&b), 1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	cr_assert(reaches(&a, &b, 1000));
	node_down(&a);
	node_down(&b);
}

Test(wire_groups, the_stopped_hold_nobody_up)
{
	struct node a = node_up(), b = node_up();
	uint32_t qpn;
	pid_t pid = member_start(&qpn);
	struct ib_packet p;
	unsigned tries = 0;
	int status;

	join(&b, red);
	kill(pid, SIGSTOP);
	waitpid(pid, &status, WUNTRACED);
	cr_assert(reaches(&a, &b, 1000));
	/* Nor does a datagram of its own wait for it; a connection's packet does. */
	p = packet_to(qpn, 1, 4096);
	p.opcode = IB_UD | RC_SEND_ONLY;
	while (a.wire->ops->send(a.wire, &p) != WIRE_NOBODY)
		cr_assert_lt(++tries, 100000);
	p.opcode = RC_SEND_ONLY;
	for (tries = 0; tries < 5000; tries++)
		cr_assert_eq(a.wire->ops->send(a.wire, &p), WIRE_FULL);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	node_down(&a);
	node_down(&b);
}

Test(wire_groups, a_departure_is_noticed)
{
	struct node a = node_up(), b = node_up(), c;

	join(&b, red);
	cr_assert_eq(multicast(&a, red, 1, 8), WIRE_SENT);
	cr_assert_eq(take(&b), 1);
	node_down(&b);
	cr_assert_eq(multicast(&a, red, 2, 8), WIRE_NOBODY);
	c = node_up();				/* in the same seat */
	cr_assert_eq(multicast(&a, red, 3, 8), WIRE_NOBODY);
	join(&c, red);
	cr_assert_eq(multicast(&a, red, 4, 8), WIRE_SENT);
	cr_assert_eq(take(&c), 4);
	node_down(&a);
	node_down(&c);
}
