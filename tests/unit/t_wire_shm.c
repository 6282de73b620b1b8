/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shared-memory wire: packets arrive whole and in order, a full ring, a missing peer and a
 * bad payload are told apart, and sleepers are woken.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include "emu/wire/wake.h"
#include "tests/unit/wire_world.h"

TestSuite(wire_shm, .init = start, .timeout = 50);

#define EXPECT_FIELD(field)	cr_expect_eq(in.field, want.field, #field)

static void expect_same(const struct ib_packet *got, const struct ib_packet *sent)
{
	struct ib_packet in = *got, want = *sent;

	EXPECT_FIELD(opcode);
	EXPECT_FIELD(is_solicited);
	EXPECT_FIELD(wants_ack);
	EXPECT_FIELD(aeth_syndrome);
	EXPECT_FIELD(pkey);
	EXPECT_FIELD(mtu_bytes);
	EXPECT_FIELD(packet_count);
	EXPECT_FIELD(psn);
	EXPECT_FIELD(dest_qpn);
	EXPECT_FIELD(src_qpn);
	EXPECT_FIELD(msn);
	EXPECT_FIELD(imm);
	EXPECT_FIELD(rkey);
	EXPECT_FIELD(dma_bytes);
	EXPECT_FIELD(va);
	EXPECT_FIELD(swap_add);
	EXPECT_FIELD(compare);
	EXPECT_FIELD(original);
	EXPECT_FIELD(payload_bytes);
	cr_expect_eq(memcmp(in.sgid, want.sgid, 16), 0);
	cr_expect_eq(memcmp(in.dgid, want.dgid, 16), 0);
	cr_expect_eq(in.span_count, want.payload_bytes ? 1 : 0);
	if (in.span_count) {
		cr_expect_eq(in.span->iov_len, want.payload_bytes);
		cr_expect_eq(memcmp(in.span->iov_base, payload, want.payload_bytes), 0);
	}
}

Test(wire_shm, every_field_arrives_as_it_was_sent)
{
	struct node a = node_up(), b = node_up();
	static const struct ib_packet base[] = {
		{ .opcode = RC_SEND_ONLY, .wants_ack = true, .src_qpn = 0xffffff, .psn = 0xffffff },
		{ .opcode = RC_SEND_LAST_IMM, .is_solicited = true, .imm = 0xdeadbeef,
		  .pkey = 0x7fff },
		{ .opcode = RC_WRITE_ONLY, .va = 0x7fff12345678, .rkey = 0x1234, .dma_bytes = 8 },
		{ .opcode = RC_READ_REQUEST, .va = UINT64_MAX, .rkey = UINT32_MAX,
		  .dma_bytes = 1u << 30, .packet_count = 1u << 22, .mtu_bytes = 256 },
		{ .opcode = RC_COMPARE_SWAP, .va = 8, .swap_add = UINT64_MAX, .compare = 1 },
		{ .opcode = RC_ATOMIC_ACKNOWLEDGE, .original = 1, .msn = 0xabcdef,
		  .aeth_syndrome = 0x1f },
		{ .opcode = RC_ACKNOWLEDGE, .msn = 1, .aeth_syndrome = AETH_NAK_REMOTE_ACCESS },
		{ .opcode = 0xdf, .sgid = { 1 }, .swap_add = 1, .compare = 2, .original = 3,
		  .va = 4 },
	};
	static const uint32_t sizes[] = { 0, 1, 8, 9, 24, 25, 64, 4096, PAYLOAD_MAX };

	for (size_t i = 0; i < sizeof base / sizeof *base * 9; i++) {
		struct ib_packet p = base[i / 9], in;

		p.dest_qpn = b.qpn;
		p.payload_bytes = sizes[i % 9];
		p.packet_count += !p.packet_count;
		memcpy(p.dgid, gid[0], 16);
		span = (struct iovec){ payload, p.payload_bytes };
		p.span = &span;
		p.span_count = p.payload_bytes ? 1 : 0;
		cr_assert_eq(a.wire->ops->send(a.wire, &p), WIRE_SENT);
		memset(&in, 0x5a, sizeof in);
		cr_assert_eq(b.wire->ops->receive(b.wire, &in), 1);
		expect_same(&in, &p);
		b.wire->ops->release(b.wire);
	}
	node_down(&a);
	node_down(&b);
	cr_assert_eq(file_count(), -1);
}

/* A request that a target passes on, and what comes back. */
Test(wire_shm, a_relayed_request_goes_to_who_has_the_queue)
{
	struct node a = node_up(), b = node_up();
	uint32_t srqn = (uint32_t)fabric_lease(b.fabric, FABRIC_SRQN) << BLOCK_BITS | 3;
	struct ib_packet p = packet_to(a.qpn, 7, 0);

	p.opcode = IB_RELAY | RC_SEND_ONLY;
	p.extra.srqn = srqn;
	cr_expect(a.wire->ops->lives(a.wire, &p));
	cr_assert_eq(a.wire->ops->send(a.wire, &p), WIRE_SENT);
	cr_assert_eq(take(&b), 7);
	p.opcode = IB_RELAY | RC_ACKNOWLEDGE;
	cr_assert_eq(b.wire->ops->send(b.wire, &p), WIRE_SENT);
	cr_assert_eq(take(&a), 7);
	p.opcode = IB_RELAY | RELAY_HANDLE;
	cr_assert_eq(b.wire->ops->send(b.wire, &p), WIRE_SENT);
	cr_assert_eq(take(&a), 7);
	p.opcode = IB_RELAY | RELAY_END;
	p.extra.srqn = srqn ^ 0x400000;
	cr_expect_eq(a.wire->ops->send(a.wire, &p), WIRE_NOBODY);
	cr_expect_not(a.wire->ops->lives(a.wire, &p));
	node_down(&b);
	p.extra.srqn = srqn;
	cr_expect_eq(a.wire->ops->send(a.wire, &p), WIRE_NOBODY);
	cr_expect_not(a.wire->ops->lives(a.wire, &p));
	node_down(&a);
}

Test(wire_shm, a_payload_is_gathered_from_its_spans)
{
	struct node a = node_up(), b = node_up();
	struct iovec spans[] = {
		{ payload, 3 }, { payload + 3, 0 }, { payload + 3, 61 }, { payload + 64, 4032 },
	};
	struct ib_packet p = packet_to(b.qpn, 9, 4096);

	p.span = spans;
	p.span_count = 4;
	cr_assert_eq(a.wire->ops->send(a.wire, &p), WIRE_SENT);
	cr_assert_eq(take(&b), 9);
	node_down(&a);
	node_down(&b);
}

Test(wire_shm, packets_of_any_size_go_round_in_order)
{
	struct node a = node_up(), b = node_up();
	unsigned seed = 7;
	int sent = 0, taken = 0, full = 0;

	while (taken < 20000) {
		for (int burst = rand_r(&seed) % 40; burst; burst--) {
			uint32_t below = rand_r(&seed) % 8 ? 300 : PAYLOAD_MAX + 1;
			uint32_t bytes = (uint32_t)rand_r(&seed) % below;

			if (send_to(&a, b.qpn, (uint32_t)sent, bytes) == WIRE_SENT)
				sent++;
			else
				full++;
		}
		for (int burst = rand_r(&seed) % 40; burst && taken < sent; burst--)
			cr_assert_eq(take(&b), taken++);
	}
	cr_assert_gt(full, 0);
	while (taken < sent)
		cr_assert_eq(take(&b), taken++);
	cr_assert_eq(take(&b), -1);
	node_down(&a);
	node_down(&b);
}

Test(wire_shm, a_full_ring_says_so_and_takes_more_when_there_is_room)
{
	struct node a = node_up(), b = node_up();
	enum wire_sent sent;
	int count = 0;

	while ((sent = send_to(&a, b.qpn, (uint32_t)count, PAYLOAD_MAX)) == WIRE_SENT)
		count++;
	cr_assert_eq(sent, WIRE_FULL);
	cr_assert_geq(count, 4);
	cr_assert_eq(take(&b), 0);
	cr_assert_eq(send_to(&a, b.qpn, (uint32_t)count, PAYLOAD_MAX), WIRE_SENT);
	cr_assert_eq(send_to(&a, b.qpn, 99, PAYLOAD_MAX), WIRE_FULL);
	for (int i = 1; i <= count; i++)
		cr_assert_eq(take(&b), i);
	cr_assert_eq(take(&b), -1);
	node_down(&a);
	node_down(&b);
}

Test(wire_shm, peers_are_served_in_turn)
{
	struct node a = node_up(), b = node_up(), c = node_up();

	for (uint32_t i = 0; i < 10; i++) {
		send_to(&a, c.qpn, 100 + i, 8);
		send_to(&b, c.qpn, 200 + i, 8);
	}
	for (int i = 0; i < 10; i++) {
		int first = take(&c), second = take(&c);

		cr_assert_eq(first + second, 300 + 2 * i, "%d and %d", first, second);
	}
	node_down(&a);
	node_down(&b);
	node_down(&c);
}

Test(wire_shm, a_number_without_a_live_owner_is_nobody)
{
	struct node a = node_up(), b = node_up();

	cr_assert_eq(send_to(&a, 5, 0, 8), WIRE_NOBODY);
	cr_assert_eq(send_to(&a, UINT32_MAX, 0, 8), WIRE_NOBODY);
	cr_assert_eq(send_to(&a, b.qpn, 0, 8), WIRE_SENT);
	node_down(&b);
	cr_assert_eq(send_to(&a, b.qpn, 0, 8), WIRE_NOBODY);
	cr_assert_not(a.wire->ops->is_late(a.wire, b.qpn));
	node_down(&a);
	cr_assert_eq(file_count(), -1);
}

Test(wire_shm, a_gid_of_somebody_else_is_refused)
{
	struct node a = node_up(), b = node_up();
	struct ib_packet p = packet_to(b.qpn, 0, 8);

	cr_assert_eq(a.wire->ops->send(a.wire, &p), WIRE_SENT);
	memcpy(p.dgid, other_gid, 16);
	cr_assert_eq(a.wire->ops->send(a.wire, &p), WIRE_WRONG_GID);
	cr_assert_eq(take(&b), 0);
	cr_assert_eq(take(&b), -1);
	node_down(&a);
	node_down(&b);
}

Test(wire_shm, an_unreadable_payload_publishes_nothing)
{
	struct node a = node_up(), b = node_up();
	struct iovec bad[] = { { payload, 100 }, { unmapped - 100, 5000 } };
	struct ib_packet p = packet_to(b.qpn, 1, 5100), in;

	p.span = bad;
	p.span_count = 2;
	cr_assert_eq(a.wire->ops->send(a.wire, &p), WIRE_UNREADABLE);
	cr_assert_eq(take(&b), -1);
	cr_assert_eq(send_to(&a, b.qpn, 2, 300), WIRE_SENT);
	cr_assert_eq(take(&b), 2);
	p.sgid[0] = 0x11;		/* addresses that never left must not count as known */
	cr_assert_eq(a.wire->ops->send(a.wire, &p), WIRE_UNREADABLE);
	p.payload_bytes = 100;
	p.span_count = 1;
	cr_assert_eq(a.wire->ops->send(a.wire, &p), WIRE_SENT);
	cr_assert_eq(b.wire->ops->receive(b.wire, &in), 1);
	cr_assert_eq(in.sgid[0], 0x11);
	b.wire->ops->release(b.wire);
	cr_assert_eq(take(&b), -1);
	node_down(&a);
	node_down(&b);
}

Test(wire_shm, late_is_what_lives_and_has_not_taken)
{
	struct node a = node_up(), b = node_up();

	cr_assert_not(a.wire->ops->is_late(a.wire, b.qpn), "nothing was sent");
	send_to(&a, b.qpn, 0, 8);
	cr_assert(a.wire->ops->is_late(a.wire, b.qpn));
	cr_assert_eq(take(&b), 0);
	cr_assert_not(a.wire->ops->is_late(a.wire, b.qpn));
	cr_assert_not(a.wire->ops->is_late(a.wire, 5));
	node_down(&a);
	node_down(&b);
}

Test(wire_shm, a_new_member_in_an_old_slot_gets_a_ring_of_its_own)
{
	struct node a = node_up(), b = node_up();
	unsigned slot = fabric_self(b.fabric);
	uint32_t qpn = b.qpn;

	for (uint32_t i = 0; i < 5; i++)
		send_to(&a, b.qpn, i, 8);
	node_down(&b);
	b = node_up();
	cr_assert_eq(fabric_self(b.fabric), slot);
	cr_assert_eq(send_to(&a, b.qpn, 77, 8), WIRE_SENT);
	cr_assert_eq(send_to(&a, qpn, 78, 8), WIRE_NOBODY);
	cr_assert_eq(take(&b), 77);
	cr_assert_eq(take(&b), -1);
	cr_assert_eq(map_count(), 4, "two mappings at either end");
	node_down(&a);
	node_down(&b);
	cr_assert_eq(map_count(), 0);
}

Test(wire_shm, what_a_leaving_member_sent_still_arrives)
{
	struct node a = node_up(), b = node_up();

	for (uint32_t i = 0; i < 5; i++)
		send_to(&a, b.qpn, i, 1000);
	node_down(&a);
	for (int i = 0; i < 5; i++)
		cr_assert_eq(take(&b), i);
	cr_assert_eq(take(&b), -1);
	cr_assert_eq(map_count(), 0);
	cr_assert_eq(file_count(), 1);
	node_down(&b);
}

/* Running short */

Test(wire_shm, without_memory_for_a_ring_the_packet_is_lost)
{
	struct node a = node_up(), b = node_up();
	struct rlimit old, small;

	getrlimit(RLIMIT_FSIZE, &old);
	small = old;
	small.rlim_cur = 4096;
	setrlimit(RLIMIT_FSIZE, &small);
	cr_assert_eq(send_to(&a, b.qpn, 0, 8), WIRE_NOBODY);
	cr_assert_eq(file_count(), 1);
	setrlimit(RLIMIT_FSIZE, &old);
	cr_assert_eq(send_to(&a, b.qpn, 1, 8), WIRE_SENT);
	cr_assert_eq(take(&b), 1);
	node_down(&a);
	node_down(&b);
}

Test(wire_shm, without_a_descriptor_the_ring_is_mapped_later)
{
	struct node a = node_up(), b = node_up();
	struct rlimit old, none;
	int psn = -1;

	cr_assert_eq(send_to(&a, b.qpn, 5, 8), WIRE_SENT);
	getrlimit(RLIMIT_NOFILE, &old);
	none = old;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
	cr_assert_eq(take(&b), -1);
	setrlimit(RLIMIT_NOFILE, &old);
	for (unsigned polls = 0; psn < 0 && polls < 10000; polls++)
		psn = take(&b);
	cr_assert_eq(psn, 5);
	node_down(&a);
	node_down(&b);
}

/* Sleeping */

Test(wire_shm, a_wait_ends_at_once_if_packets_wait)
{
	struct node a = node_up(), b = node_up();

	send_to(&a, b.qpn, 0, 8);
	b.wire->ops->listen(b.wire, true);
	b.wire->ops->wait(b.wire, UINT64_MAX);		/* a ring that is not mapped yet */
	cr_assert_eq(take(&b), 0);
	send_to(&a, b.qpn, 1, 8);
	b.wire->ops->wait(b.wire, UINT64_MAX);
	cr_assert_eq(take(&b), 1);
	b.wire->ops->wait(b.wire, 1000);		/* nothing: the time passes */
	node_down(&a);
	node_down(&b);
}

Test(wire_shm, a_kick_is_kept_for_the_next_wait)
{
	struct node a = node_up();

	a.wire->ops->kick(a.wire);
	a.wire->ops->wait(a.wire, UINT64_MAX);
	node_down(&a);
}

static atomic_bool has_woken;

static void *wait_once(void *arg)
{
	struct wire *w = arg;

	w->ops->wait(w, UINT64_MAX);
	atomic_store(&has_woken, true);
	return NULL;
}

Test(wire_shm, a_kick_ends_a_wait)
{
	struct node a = node_up();
	pthread_t thread;

	pthread_create(&thread, NULL, wait_once, a.wire);
	usleep(2000);
	cr_assert_not(atomic_load(&has_woken));
	a.wire->ops->kick(a.wire);
	pthread_join(thread, NULL);
	node_down(&a);
}

Test(wire_shm, who_does_not_listen_is_not_woken)
{
	struct node a = node_up(), b = node_up();
	struct wake_mail *mail = fabric_mail(b.fabric, fabric_self(b.fabric));
	uint32_t count = atomic_load(&mail->count);

	send_to(&a, b.qpn, 0, 8);
	cr_assert_eq(atomic_load(&mail->count), count);
	b.wire->ops->listen(b.wire, true);
	send_to(&a, b.qpn, 1, 8);
	send_to(&a, b.qpn, 2, 8);
	cr_assert_eq(atomic_load(&mail->count), count + 1, "once");
	b.wire->ops->listen(b.wire, true);
	b.wire->ops->listen(b.wire, false);
	send_to(&a, b.qpn, 3, 8);
	cr_assert_eq(atomic_load(&mail->count), count + 1);
	node_down(&a);
	node_down(&b);
}

/* Packets that come while somebody is on the way to sleep, at the moments that matter. */

static struct wake_mail late_mail;

static bool look_and_then_one_comes(void *ctx)
{
	(void)ctx;
	wake_peer(&late_mail);
	return false;
}

Test(wire_shm, a_packet_right_after_the_look_ends_the_wait)
{
	struct wake w = { .mail = &late_mail };

	wake_listen(&w, true, look_and_then_one_comes, NULL);
	wake_wait(&w, UINT64_MAX, look_and_then_one_comes, NULL);
	cr_assert_eq(late_mail.wants_wake, 0);
}

static bool look_at_the_wish(void *wish)
{
	*(uint32_t *)wish = late_mail.wants_wake;
	return true;
}

Test(wire_shm, a_wish_that_was_used_up_stands_again)
{
	struct wake w = { .mail = &late_mail };
	uint32_t wish = 0;

	wake_listen(&w, true, look_at_the_wish, &wish);
	wake_peer(&late_mail);			/* and another thread takes that packet */
	cr_assert_eq(late_mail.wants_wake, 0);
	wake_wait(&w, UINT64_MAX, look_at_the_wish, &wish);
	cr_assert_eq(wish, 1);
	wake_listen(&w, false, look_at_the_wish, &wish);
	wake_wait(&w, UINT64_MAX, look_at_the_wish, &wish);
	cr_assert_eq(wish, 0, "who does not listen does not wish");
}

Test(wire_shm, listening_late_finds_what_came_before)
{
	struct wake w = { .mail = &late_mail, .is_waiting = true };
	uint32_t wish = 0, count = late_mail.count;

	wake_listen(&w, true, look_at_the_wish, &wish);	/* while another thread sleeps */
	cr_assert_eq(late_mail.count, count + 1);
}
