/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shared-memory wire between processes: no wake-up is lost, and neither a dead nor a broken
 * peer does harm or leaves anything behind.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "emu/wire/wake.h"
#include "tests/unit/wire_world.h"

TestSuite(wire_peers, .init = start, .timeout = 50);

/* Broken peers */

static void ring_path(char *path, const struct node *to, unsigned sender, const char *kind)
{
	unsigned slot = fabric_self(to->fabric);

	snprintf(path, 400, "%s/%u-%u-%s-%u-1", dir, slot, fabric_generation(to->fabric, slot),
		 kind, sender);
}

static void announce(const struct node *to)
{
	struct wake_mail *mail = fabric_mail(to->fabric, fabric_self(to->fabric));

	atomic_store(&mail->is_announced, 1);
}

/* A ring to @to that the test holds the writing end of. */
static struct ring_tx ring_by_hand(const struct node *to)
{
	char path_new[400], path[400];
	struct ring_tx tx;

	ring_path(path_new, to, 200, "new");
	ring_path(path, to, 200, "ring");
	cr_assert_eq(ring_tx_create(&tx, path_new, path), 0);
	announce(to);
	return tx;
}

Test(wire_peers, a_record_that_can_not_be_drops_the_ring)
{
	/* payload_bytes is at 36, the flags in the top byte at 12. */
	static const struct { unsigned at; uint32_t value; } row[] = {
		{ 36, PAYLOAD_MAX + 1 }, { 36, UINT32_MAX }, { 36, 1u << 31 },
		{ 12, 0xff000000 }, { 12, 0x40000000 },
	};
	struct node n = node_up();

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct ring_tx tx = ring_by_hand(&n);
		struct ib_packet p = packet_to(n.qpn, 3, 100);

		cr_assert_eq(ring_tx_send(&tx, &p), WIRE_SENT);
		cr_assert_eq(ring_tx_send(&tx, &p), WIRE_SENT);
		memcpy(tx.map.data + row[i].at, &row[i].value, 4);
		cr_assert_eq(take(&n), -1, "row %zu", i);
		cr_assert(ring_tx_is_taken(&tx));
		cr_assert_eq(atomic_load(&tx.map.head->tail), RING_TAIL_REFUSED);
		while (ring_tx_send(&tx, &p) == WIRE_SENT)
			;
		cr_assert_eq(ring_tx_send(&tx, &p), WIRE_NOBODY);
		ring_tx_close(&tx);
		cr_assert_eq(map_count(), 0);
	}
	cr_assert_eq(send_to(&n, n.qpn, 4, 8), WIRE_SENT, "others go on");
	cr_assert_eq(take(&n), 4);
	node_down(&n);
}

Test(wire_peers, random_records_never_hurt)
{
	struct node n = node_up();
	unsigned seed = 99;

	for (unsigned round = 0; round < 400; round++) {
		struct ring_tx tx = ring_by_hand(&n);
		struct ib_packet p = packet_to(n.qpn, 3, 40), in;

		ring_tx_send(&tx, &p);
		for (unsigned i = 8; i < 64; i++)
			if (rand_r(&seed) % 4 == 0)
				tx.map.data[i] = (uint8_t)rand_r(&seed);
		if (round % 3 == 0)
			memset(tx.map.data + 37, 0, 3);		/* sizes that pass */
		if (n.wire->ops->receive(n.wire, &in)) {
			uint8_t sum = 0;

			cr_assert_leq(in.payload_bytes, PAYLOAD_MAX);
			for (unsigned i = 0; in.span_count && i < in.payload_bytes; i++)
				sum ^= ((const uint8_t *)in.span->iov_base)[i];
			__asm__ volatile("" : : "r" (sum));
			n.wire->ops->release(n.wire);
		}
		ring_tx_close(&tx);
		fabric_lease(n.fabric, FABRIC_KEY);
	}
	node_down(&n);
	cr_assert_eq(map_count(), 0);
}

Test(wire_peers, files_that_are_no_rings_are_removed)
{
	static const struct { off_t bytes; struct ring_head head; } row[] = {
		{ 0, { 0 } },
		{ 4096, { 0 } },
		{ 4096 + RING_BYTES_MIN, { RING_MAGIC + 1, RING_LAYOUT, RING_BYTES_MIN, 5, 0 } },
		{ 4096 + RING_BYTES_MIN, { RING_MAGIC, RING_LAYOUT + 1, RING_BYTES_MIN, 5, 0 } },
		{ 4096 + RING_BYTES_MIN - 1, { RING_MAGIC, RING_LAYOUT, RING_BYTES_MIN, 5, 0 } },
		{ 4096 + RING_BYTES_MIN, { RING_MAGIC, RING_LAYOUT, RING_BYTES_MAX, 5, 0 } },
		{ 4096 + 65536, { RING_MAGIC, RING_LAYOUT, 65536, 5, 0 } },
		{ 4096 + 196608, { RING_MAGIC, RING_LAYOUT, 196608, 5, 0 } },
		{ 8192, { RING_MAGIC, RING_LAYOUT, 0xfffff000, 5, 0 } },
	};
	struct node n = node_up();
	char path[400];

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		int fd;

		ring_path(path, &n, 200, "ring");
		fd = open(path, O_RDWR | O_CREAT, 0600);
		cr_assert_eq(pwrite(fd, &row[i].head, sizeof row[i].head, 0),
			     (ssize_t)sizeof row[i].head);
		cr_assert_eq(ftruncate(fd, row[i].bytes), 0);
		close(fd);
		announce(&n);
		cr_assert_eq(take(&n), -1);
		cr_assert_eq(file_count(), 1, "row %zu", i);
		cr_assert_eq(map_count(), 0);
	}
	ring_path(path, &n, 200, "ring");
	cr_assert_eq(symlink("segment", path), 0);
	announce(&n);
	cr_assert_eq(take(&n), -1);
	ring_path(path, &n, 9999, "ring");		/* no such slot */
	close(open(path, O_RDWR | O_CREAT, 0600));
	announce(&n);
	cr_assert_eq(take(&n), -1);
	cr_assert_eq(file_count(), 1);
	node_down(&n);
}

Test(wire_peers, a_spoilt_tail_costs_the_reader_its_ring)
{
	struct node a = node_up();
	struct ring_tx tx = ring_by_hand(&a);
	struct ib_packet p = packet_to(a.qpn, 0, PAYLOAD_MAX);
	enum wire_sent sent;

	while ((sent = ring_tx_send(&tx, &p)) == WIRE_SENT)
		;
	cr_assert_eq(sent, WIRE_FULL);
	atomic_store(&tx.map.head->tail, tx.position + 64);
	cr_assert_eq(ring_tx_send(&tx, &p), WIRE_NOBODY);
	ring_tx_close(&tx);
	node_down(&a);
}

/* Two processes */

struct shared { _Atomic uint32_t qpn[2]; atomic_bool is_done; };

static struct shared *shared_map(void)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	cr_assert(at != MAP_FAILED);
	return at;
}

static void meet(struct shared *s, unsigned side, const struct node *n)
{
	atomic_store(&s->qpn[side], n->qpn);
	while (!atomic_load(&s->qpn[!side]))
		usleep(100);
}

static void send_surely(struct node *n, uint32_t qpn, uint32_t psn, uint32_t bytes)
{
	while (send_to(n, qpn, psn, bytes) == WIRE_FULL)
		sched_yield();
}

/* Each answers each packet after having slept for it, if it had to.  A sleeper takes some 50 us to
 * answer; the first waits about as long, or not, before it falls asleep, so that the answer comes
 * at any moment of that. */
static void ping_pong(struct node *n, uint32_t to, bool is_first, uint32_t rounds)
{
	unsigned seed = is_first;

	n->wire->ops->listen(n->wire, true);
	for (uint32_t i = 0; i < rounds; i++) {
		int psn;

		if (is_first)
			send_surely(n, to, i, (uint32_t)rand_r(&seed) % 2000);
		for (int spins = is_first ? rand_r(&seed) % 200000 : 0; spins; spins--)
			__asm__ volatile("");
		while ((psn = take(n)) < 0)
			n->wire->ops->wait(n->wire, UINT64_MAX);
		cr_assert_eq(psn, (int)i);
		if (!is_first)
			send_surely(n, to, i, (uint32_t)rand_r(&seed) % 2000);
	}
}

Test(wire_peers, no_wake_up_is_lost_between_two_processes)
{
	struct shared *s = shared_map();
	struct node n;
	int status;
	pid_t pid = fork_child();
	unsigned side = pid == 0;

	n = node_up();
	meet(s, side, &n);
	ping_pong(&n, s->qpn[!side], side == 0, 8000);
	node_down(&n);
	if (side)
		_exit(0);
	waitpid(pid, &status, 0);
	cr_assert_eq(status, 0);
}

/* A process in which one thread sleeps and another takes packets now and then: the sleeper's wish
 * to be woken must outlive packets that the other one took. */
struct stealing {
	struct node *n;
	pthread_mutex_t lock;
	_Atomic int taken, stolen;
	int wanted;
};

static void *steal(void *arg)
{
	struct stealing *s = arg;
	unsigned seed = 3;

	while (atomic_load(&s->taken) < s->wanted) {
		pthread_mutex_lock(&s->lock);
		if (take(s->n) >= 0) {
			atomic_fetch_add(&s->stolen, 1);
			if (atomic_fetch_add(&s->taken, 1) + 1 == s->wanted)
				s->n->wire->ops->kick(s->n->wire);
		}
		pthread_mutex_unlock(&s->lock);
		usleep((useconds_t)rand_r(&seed) % 300);
	}
	return NULL;
}

static void sleep_and_take(struct stealing *s)
{
	struct wire *w = s->n->wire;

	while (atomic_load(&s->taken) < s->wanted) {
		w->ops->listen(w, true);
		w->ops->wait(w, UINT64_MAX);
		w->ops->listen(w, false);
		pthread_mutex_lock(&s->lock);
		while (take(s->n) >= 0)
			atomic_fetch_add(&s->taken, 1);
		pthread_mutex_unlock(&s->lock);
	}
}

Test(wire_peers, no_wake_up_is_lost_to_another_thread)
{
	enum { PACKETS = 4000 };
	struct shared *shared = shared_map();
	pthread_t thread;
	struct node n;
	int status;
	pid_t pid = fork_child();
	unsigned side = pid == 0, seed = 5;

	n = node_up();
	meet(shared, side, &n);
	if (side) {
		for (uint32_t i = 0; i < PACKETS; i++) {
			send_surely(&n, shared->qpn[0], i, 8);
			usleep((useconds_t)rand_r(&seed) % 100);
		}
		_exit(0);
	}
	struct stealing s = { .n = &n, .lock = PTHREAD_MUTEX_INITIALIZER, .wanted = PACKETS };

	pthread_create(&thread, NULL, steal, &s);
	sleep_and_take(&s);
	pthread_join(thread, NULL);
	waitpid(pid, &status, 0);
	cr_assert_eq(status, 0);
	cr_assert_eq(s.taken, PACKETS);
	node_down(&n);
}

/* The child's side of the tests below: joins, tells its number, and does not come back. */
static pid_t child_start(struct shared *s, void (*life)(struct node *n, uint32_t peer_qpn))
{
	struct node n;
	pid_t pid = fork_child();

	if (pid)
		return pid;
	if (node_try(&n))
		_exit(1);
	meet(s, 1, &n);
	life(&n, s->qpn[0]);
	for (;;)
		pause();
}

static void kill_and_reap(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void send_three(struct node *n, uint32_t peer_qpn)
{
	for (uint32_t i = 0; i < 3; i++)
		send_surely(n, peer_qpn, i, 3000);
	raise(SIGKILL);
}

Test(wire_peers, what_a_killed_member_sent_still_arrives)
{
	struct shared *s = shared_map();
	struct node n = node_up();
	pid_t pid = child_start(s, send_three);

	meet(s, 0, &n);
	waitpid(pid, NULL, 0);
	cr_assert_eq(fabric_life(n.fabric, 1), FABRIC_DEAD);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(take(&n), i);
	cr_assert_eq(take(&n), -1);
	cr_assert_eq(map_count(), 0);
	cr_assert_eq(file_count(), 1);
	node_down(&n);
	cr_assert_eq(file_count(), -1);
}

static void take_one(struct node *n, uint32_t peer_qpn)
{
	while (take(n) < 0)
		usleep(100);
	send_surely(n, peer_qpn, 0, 8);
}

Test(wire_peers, a_killed_receiver_is_late_no_more)
{
	struct shared *s = shared_map();
	struct node n = node_up();
	pid_t pid = child_start(s, take_one);
	uint32_t qpn;

	meet(s, 0, &n);
	qpn = s->qpn[1];
	cr_assert_eq(send_to(&n, qpn, 0, 8), WIRE_SENT);
	while (take(&n) < 0)
		usleep(100);
	cr_assert_eq(send_to(&n, qpn, 1, 8), WIRE_SENT);
	cr_assert(n.wire->ops->is_late(n.wire, qpn));
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
	cr_assert_not(n.wire->ops->is_late(n.wire, qpn), "it does not run");
	kill_and_reap(pid);
	cr_assert_eq(send_to(&n, qpn, 2, 8), WIRE_SENT, "nobody has noticed");
	cr_assert_not(n.wire->ops->is_late(n.wire, qpn));
	cr_assert_eq(send_to(&n, qpn, 3, 8), WIRE_NOBODY);
	cr_assert_eq(take(&n), -1);
	cr_assert_eq(map_count(), 0);
	node_down(&n);
	cr_assert_eq(file_count(), -1);
}

Test(wire_peers, a_full_ring_of_a_killed_receiver_ends)
{
	struct shared *s = shared_map();
	struct node n = node_up();
	pid_t pid = child_start(s, take_one);
	enum wire_sent sent = WIRE_SENT;

	meet(s, 0, &n);
	kill_and_reap(pid);
	for (unsigned tries = 0; sent != WIRE_NOBODY && tries < 10000; tries++)
		sent = send_to(&n, s->qpn[1], 0, 8000);
	cr_assert_eq(sent, WIRE_NOBODY);
	node_down(&n);
	cr_assert_eq(file_count(), -1);
}

static void echo(struct node *n, uint32_t peer_qpn)
{
	unsigned seed = (unsigned)getpid();
	uint32_t psn = 0;

	n->wire->ops->listen(n->wire, true);
	for (;;) {
		if (take(n) < 0)
			n->wire->ops->wait(n->wire, 100000);
		send_to(n, peer_qpn, psn++ & 0xffffff, (uint32_t)rand_r(&seed) % 20000);
	}
}

Test(wire_peers, members_killed_while_exchanging_leave_nothing)
{
	struct shared *s = shared_map();
	struct node n = node_up();
	unsigned seed = 11;
	int fds = fd_count();

	for (unsigned round = 0; round < 100; round++) {
		pid_t pid;
		unsigned polls = (unsigned)rand_r(&seed) % 300;

		memset(s, 0, sizeof *s);
		pid = child_start(s, echo);
		if (round % 2)		/* else: killed on its way in */
			meet(s, 0, &n);
		for (unsigned i = 0; i < polls; i++) {
			send_to(&n, s->qpn[1], i, (uint32_t)rand_r(&seed) % 9000);
			take(&n);
		}
		kill_and_reap(pid);
		for (unsigned slot = 1; slot < 4; slot++)
			fabric_life(n.fabric, slot);
		while (take(&n) >= 0)
			;
		cr_assert_eq(map_count(), 0);
	}
	cr_assert_eq(fd_count(), fds);
	cr_assert_eq(file_count(), 1);
	node_down(&n);
	cr_assert_eq(file_count(), -1);
}

Test(wire_peers, a_forked_child_closes_without_a_trace)
{
	struct node a = node_up(), b = node_up();
	int status;
	pid_t pid;

	send_to(&a, b.qpn, 0, 8);
	cr_assert_eq(take(&b), 0);
	pid = fork_child();
	if (pid == 0) {
		b.wire->ops->close(b.wire);
		fabric_abandon(b.fabric);
		_exit(map_count() == 2 ? 0 : 1);	/* the sending end is a's */
	}
	waitpid(pid, &status, 0);
	cr_assert_eq(status, 0);
	for (uint32_t i = 1; i < 3000; i++) {
		cr_assert_eq(send_to(&a, b.qpn, i, 300), WIRE_SENT);
		cr_assert_eq(take(&b), (int)i);
	}
	node_down(&a);
	node_down(&b);
}
