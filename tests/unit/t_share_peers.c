/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A shared segment and its peers: nothing is taken back from under one, and neither side is
 * harmed by the other's death, sleep, or scribbling.
 */
#include "tests/unit/share_world.h"

TestSuite(share_peers, .init = start, .fini = stop, .timeout = 50);

/* --- taking something back --- */

struct quiescing {
	struct share *share;
	_Atomic bool is_done;
};

static void *quiesce_main(void *arg)
{
	struct quiescing *q = arg;

	share_quiesce(q->share);
	atomic_store(&q->is_done, true);
	return NULL;
}

Test(share_peers, the_owner_waits_for_a_peer_in_the_middle)
{
	struct node owner = node_up(), peer_node = peer_up();
	struct share_peer *peer = begun(&peer_node, &owner);
	struct quiescing q = { owner.share, false };
	pthread_t thread;

	pthread_create(&thread, NULL, quiesce_main, &q);
	for (int i = 0; i < 50; i++) {
		usleep(1000);
		cr_assert_not(atomic_load(&q.is_done));
	}
	cr_assert_eq(share_store32(peer, SHARE_KEY, 1, 0, 0), -ENOENT, "no entry");
	share_end(peer);
	pthread_join(thread, NULL);
	cr_assert(atomic_load(&q.is_done));
	share_quiesce(owner.share);
}

/* In the middle of something on the host, until told or killed. */
static void busy_main(struct guest *g, struct node *self, uint32_t host_qpn)
{
	struct share_peer *peer = share_peer_find(self->share, host_qpn);
	uint8_t byte = 1;
	struct iovec from = { &byte, 1 };

	if (!peer || !share_begin(peer))
		_exit(2);
	atomic_store(&g->step, 1);
	wait_go(g, 1);
	if (share_memory_write(peer, g->word, &from, 1, 1) != -EAGAIN)
		_exit(3);
	if (share_write(peer, SHARE_KEY, 1, 0, &byte, 1) != -ENOENT)
		_exit(4);
	share_end(peer);
	if (!share_begin(peer))
		_exit(5);
	atomic_store(&g->step, 2);
	wait_go(g, 2);
	share_end(peer);
	atomic_store(&g->step, 3);
	wait_go(g, 3);
}

Test(share_peers, a_peer_that_died_in_the_middle_is_not_waited_for)
{
	struct node owner = node_up();
	struct guest *g = guest_page();
	pid_t pid = guest_start(g, &owner, busy_main);

	wait_step(g, 1);
	cr_assert_eq(busy_word(&owner, g->slot) & 1, 1);
	guest_kill(pid);
	share_quiesce(owner.share);
}

static void idle_main(struct guest *g, struct node *self, uint32_t host_qpn)
{
	(void)self;
	(void)host_qpn;
	atomic_store(&g->step, 1);
	pause();
}

Test(share_peers, who_has_the_slot_of_the_dead_is_not_taken_for_it)
{
	struct node owner = node_up();
	struct guest *g = guest_page(), *h = guest_page();
	pid_t pid = guest_start(g, &owner, busy_main), next;

	owner.share->patience_ns = UINT64_MAX;
	wait_step(g, 1);
	guest_kill(pid);
	next = guest_start(h, &owner, idle_main);	/* lives, and never looks at us */
	wait_step(h, 1);
	cr_assert_eq(h->slot, g->slot, "the case is about this");
	cr_assert_eq(busy_word(&owner, g->slot) & 1, 1);
	share_quiesce(owner.share);
	guest_kill(next);
}

Test(share_peers, who_has_the_slot_of_the_dead_begins_anew)
{
	struct node owner = node_up();
	struct guest *g = guest_page(), *h = guest_page();
	pid_t pid = guest_start(g, &owner, busy_main), next;

	wait_step(g, 1);
	guest_kill(pid);
	next = guest_start(h, &owner, busy_main);
	wait_step(h, 1);
	cr_assert_eq(h->slot, g->slot);
	cr_assert_eq(busy_word(&owner, h->slot) & 1, 1, "it is in");
	cr_assert_eq(busy_word(&owner, h->slot) >> 32, h->generation);
	guest_kill(next);
}

Test(share_peers, a_peer_that_was_stopped_in_the_middle_is_put_out)
{
	struct node owner = node_up();
	struct guest *g = guest_page();
	uint8_t *target = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0), *entry = share_take(owner.share, SHARE_KEY, 1);
	struct quiescing q = { owner.share, false };
	pthread_t thread;
	pid_t pid;

	g->word = (uintptr_t)target;
	pid = guest_start(g, &owner, busy_main);
	wait_step(g, 1);
	kill(pid, SIGSTOP);
	wait_stopped(pid);
	owner.share->patience_ns = UINT64_MAX;
	share_quiesce(owner.share);
	cr_assert_eq(busy_word(&owner, g->slot) & 1, 0);
	atomic_store(&g->go, 1);
	kill(pid, SIGCONT);
	wait_step(g, 2);		/* it was refused, and has begun again */
	cr_assert_eq(*target | *entry, 0);
	pthread_create(&thread, NULL, quiesce_main, &q);
	for (int i = 0; i < 20; i++) {
		usleep(1000);
		cr_assert_not(atomic_load(&q.is_done), "in and out are mixed up");
	}
	atomic_store(&g->go, 2);
	pthread_join(thread, NULL);
	wait_step(g, 3);
	cr_assert_eq(busy_word(&owner, g->slot) & 1, 0);
	atomic_store(&g->go, 3);
	cr_assert_eq(guest_end(pid), 0);
}

Test(share_peers, a_peer_that_never_ends_is_put_out_too)
{
	struct node owner = node_up(), peer_node = peer_up();
	struct share_peer *peer = begun(&peer_node, &owner);
	uint8_t byte = 1, target = 0;
	struct iovec from = { &byte, 1 };

	owner.share->patience_ns = 1000000;
	share_quiesce(owner.share);
	cr_assert_eq(share_memory_write(peer, (uintptr_t)&target, &from, 1, 1), -EAGAIN);
	share_end(peer);
	peer = begun(&peer_node, &owner);
	cr_assert_eq(share_memory_write(peer, (uintptr_t)&target, &from, 1, 1), 0);
	share_end(peer);
	cr_assert_eq(target, 1);
}

/* The peer: looks whether it may, uses what it may, and says that it did. */
struct use {
	struct node *from, *to;
	_Atomic bool *must_stop;
	_Atomic uint8_t *freed;		/* by the owner, after quiesce: 1 */
	_Atomic uint64_t uses;
	uint64_t late;
};

static void *use_main(void *arg)
{
	struct use *u = arg;
	struct share_peer *peer = find(u->from, u->to);

	while (!atomic_load(u->must_stop)) {
		uint32_t is_valid = 0;

		if (!share_begin(peer))
			continue;
		if (!share_load32(peer, SHARE_KEY, 1, 0, &is_valid) && is_valid) {
			u->late += atomic_load(u->freed);
			sched_yield();
			u->late += atomic_load(u->freed);
			u->uses++;
		}
		share_end(peer);
	}
	return NULL;
}

Test(share_peers, nobody_uses_what_was_made_invalid_before_the_wait)
{
	struct node owner = node_up(), peer_node = peer_up();
	_Atomic bool must_stop = false;
	_Atomic uint8_t freed = 0;
	struct use u = { &peer_node, &owner, &must_stop, &freed, 0, 0 };
	_Atomic uint32_t *is_valid = share_take(owner.share, SHARE_KEY, 1);
	pthread_t thread;

	find(&peer_node, &owner);
	pthread_create(&thread, NULL, use_main, &u);
	for (int i = 0; i < 300 || atomic_load(&u.uses) < 100; i++) {
		atomic_store(&freed, 0);
		atomic_store(is_valid, 1);
		sched_yield();
		atomic_store(is_valid, 0);
		share_quiesce(owner.share);
		atomic_store(&freed, 1);
		sched_yield();
	}
	atomic_store(&must_stop, true);
	pthread_join(thread, NULL);
	cr_assert_eq(u.late, 0);
}

/* --- atomics --- */

Test(share_peers, the_lock_of_the_atomics_excludes)
{
	struct node owner = node_up(), a = peer_up(), b = peer_up();
	struct share_peer *of_a = begun(&a, &owner), *of_b = begun(&b, &owner);

	for (int i = 0; i < 3; i++) {
		cr_assert(share_peer_atomics_lock(of_a));
		cr_assert_not(share_peer_atomics_lock(of_b));
		cr_assert(share_peer_atomics_held(of_a));
		cr_assert_not(share_peer_atomics_held(of_b));
		share_peer_atomics_unlock(of_b);
		cr_assert(share_peer_atomics_held(of_a), "it was not its to give");
		share_peer_atomics_unlock(of_a);
		cr_assert_not(share_peer_atomics_held(of_a));
		cr_assert(share_peer_atomics_lock(of_b));
		share_peer_atomics_unlock(of_b);
		share_atomics_lock(owner.share);
		cr_assert_not(share_peer_atomics_lock(of_a));
		share_atomics_unlock(owner.share);
	}
}

static void locking_main(struct guest *g, struct node *self, uint32_t host_qpn)
{
	struct share_peer *peer = share_peer_find(self->share, host_qpn);

	if (!peer || !share_begin(peer) || !share_peer_atomics_lock(peer))
		_exit(2);
	atomic_store(&g->step, 1);
	wait_go(g, 1);
	if (share_peer_atomics_held(peer))
		_exit(3);
	share_peer_atomics_unlock(peer);
	share_end(peer);
}

Test(share_peers, the_owner_takes_the_lock_from_the_dead)
{
	struct node owner = node_up();
	struct guest *g = guest_page();
	pid_t pid = guest_start(g, &owner, locking_main);

	owner.share->patience_ns = UINT64_MAX;
	wait_step(g, 1);
	guest_kill(pid);
	share_atomics_lock(owner.share);
	share_atomics_unlock(owner.share);
	cr_assert_eq(atomic_load(&owner.share->header->atomics) & 0xffff, 0);
}

Test(share_peers, the_owner_takes_the_lock_from_the_dead_whose_slot_is_anothers)
{
	struct node owner = node_up();
	struct guest *g = guest_page(), *h = guest_page();
	pid_t pid = guest_start(g, &owner, locking_main), next;

	owner.share->patience_ns = UINT64_MAX;
	wait_step(g, 1);
	guest_kill(pid);
	next = guest_start(h, &owner, idle_main);
	wait_step(h, 1);
	cr_assert_eq(h->slot, g->slot, "the case is about this");
	share_atomics_lock(owner.share);
	share_atomics_unlock(owner.share);
	guest_kill(next);
}

Test(share_peers, who_was_stopped_is_told_that_it_lost_the_lock)
{
	struct node owner = node_up();
	struct guest *g = guest_page();
	pid_t pid = guest_start(g, &owner, locking_main);

	wait_step(g, 1);
	kill(pid, SIGSTOP);
	wait_stopped(pid);
	share_atomics_lock(owner.share);
	atomic_store(&g->go, 1);
	kill(pid, SIGCONT);
	cr_assert_eq(guest_end(pid), 0);
	cr_assert_eq(atomic_load(&owner.share->header->atomics), owner.share->atomics_mine);
	share_atomics_unlock(owner.share);
}

/* --- scribblers --- */

static void scribble(struct node *n, unsigned seed)
{
	uint32_t *at = (uint32_t *)n->share->header;
	size_t words = sizeof *n->share->header / sizeof *at;

	for (size_t i = 0; i < words; i++) {
		seed = seed * 1103515245u + 12345;
		at[i] = seed >> 3;
	}
}

Test(share_peers, an_owner_lives_with_any_bytes_in_its_segment)
{
	struct node owner = node_up(), peer_node = peer_up();
	uint8_t *before = share_take(owner.share, SHARE_KEY, 100);

	share_end(begun(&peer_node, &owner));
	owner.share->patience_ns = 1000000;
	for (unsigned seed = 0; seed < 4; seed++) {
		uint8_t *entry;

		scribble(&owner, seed);
		share_quiesce(owner.share);
		share_atomics_lock(owner.share);
		share_atomics_unlock(owner.share);
		entry = share_take(owner.share, SHARE_KEY, 1000 + seed);
		cr_assert(entry && share_owns(owner.share, entry));
		cr_assert_eq(share_take(owner.share, SHARE_KEY, 100), before);
	}
	share_live_end(owner.share);
	node_down(&owner);
}

Test(share_peers, an_owner_gets_the_lock_of_the_atomics_whatever_is_in_it)
{
	struct node owner = node_up(), peer_node = peer_up();
	uint64_t word = (uint64_t)fabric_generation(peer_node.fabric, 1) << 40 | 2;

	cr_assert_eq(fabric_self(peer_node.fabric), 1);
	owner.share->patience_ns = 1000000;
	atomic_store(&owner.share->header->atomics, word);	/* "held" by who lives */
	share_atomics_lock(owner.share);
	cr_assert_eq(atomic_load(&owner.share->header->atomics), owner.share->atomics_mine);
	share_atomics_unlock(owner.share);
}

Test(share_peers, a_peer_lives_with_any_bytes_in_an_owners_segment)
{
	struct node owner = node_up(), peer_node = peer_up();
	struct share_peer *peer = begun(&peer_node, &owner);
	uint8_t bytes[64];
	uint32_t word;

	share_take(owner.share, SHARE_KEY, 1);
	for (unsigned seed = 0; seed < 8; seed++) {
		scribble(&owner, seed);
		for (uint32_t number = 0; number < 5000; number += 61) {
			share_read(peer, SHARE_KEY, number, 0, bytes, 64);
			share_load32(peer, SHARE_RESPONDER, number, 0, &word);
			share_store32(peer, SHARE_RESPONDER, number, 0, word);
		}
		share_end(peer);
		for (int i = 0; i < 4 && !share_begin(peer); i++)
			if (!(peer = find(&peer_node, &owner)))
				return;
	}
}

Test(share_peers, a_directory_does_not_lead_out_of_the_segment)
{
	struct node owner = node_up(), peer_node = peer_up();
	struct share_peer *peer = begun(&peer_node, &owner);
	_Atomic uint32_t *place = &owner.share->header->directory[SHARE_KEY][0];
	uint32_t word;

	share_take(owner.share, SHARE_KEY, 1);
	cr_assert_eq(share_load32(peer, SHARE_KEY, 63, 60, &word), 0);
	atomic_store(place, SHARE_BYTES / SHARE_PAGE);
	cr_assert_eq(share_load32(peer, SHARE_KEY, 63, 60, &word), -ENOENT);
	atomic_store(place, UINT32_MAX);
	cr_assert_eq(share_load32(peer, SHARE_KEY, 63, 60, &word), -ENOENT);
	atomic_store(place, SHARE_BYTES / SHARE_PAGE - 1);
	cr_assert_eq(share_load32(peer, SHARE_KEY, 63, 60, &word), 0);
}

Test(share_peers, a_segment_of_another_shape_is_not_used)
{
	static const size_t other[SHARE_KIND_COUNT] = { ENTRY + 1, 64 };
	struct node owner = node_up(), peer_node, third;

	cr_assert_eq(node_join(&peer_node), 0);
	cr_assert_eq(share_create(peer_node.fabric, other, false, &peer_node.share), 0);
	kept[15] = peer_node.share;
	cr_assert_null(find(&peer_node, &owner));
	third = peer_up();
	owner.share->header->layout++;
	cr_assert_null(find(&third, &owner));
	cr_assert_eq(busy_word(&owner, fabric_self(third.fabric)), 0, "it was not touched");
}

Test(share_peers, an_owner_that_truncates_its_file_harms_itself_alone)
{
	struct guest *g = guest_page();
	struct node n = peer_up();
	pid_t pid = guest_start(g, NULL, owner_main);
	struct share_peer *peer = begun_guest(&n, g);
	char path[512];
	uint32_t word;

	share_path(n.share, g->slot, g->generation, path, sizeof path);
	cr_assert_eq(truncate(path, 0), 0);
	cr_assert_eq(share_load32(peer, SHARE_RESPONDER, 1, 0, &word), -ENOENT);
	cr_assert_eq(share_store32(peer, SHARE_RESPONDER, 1, 0, 1), -ENOENT);
	cr_assert_not(share_peer_atomics_lock(peer));
	cr_assert_not(share_peer_atomics_held(peer));
	share_end(peer);
	cr_assert_not(share_begin(peer));
	cr_assert_null(share_peer_find(n.share, g->qpn));
	guest_kill(pid);
}
