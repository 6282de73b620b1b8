/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shared-memory wire: rings between the processes of a fabric.
 *
 * The sender makes a ring with its first packet, as a file "<self>-...-new-..." that becomes
 * "<receiver>-...-ring-..." by rename, sets the receiver's is_announced, and the receiver maps
 * and unlinks it when it polls next.  So at any moment a file is named after the member whose
 * death makes it garbage, and fabric/ finds it there; once mapped, a ring has no name and ends
 * with its two mappings.  What a sender left behind is still delivered after its death.
 *
 * A ring that can't be made loses the packet (WIRE_NOBODY), and the next packet tries again.
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "emu/fabric/fabric.h"
#include "emu/wire/ring.h"
#include "emu/wire/wake.h"
#include "include/base/cancel.h"

#define RX_MAX			(2 * FABRIC_MEMBERS_MAX)	/* with those of dead senders */
#define FULL_PER_LIFE_CHECK	1024
#define POLLS_PER_RETRY		4096
#define RETRY_TIMEOUT_NS	10000000u
#define GROUPS_CACHED		16	/* power of two */

static_assert(sizeof(struct wake_mail) <= FABRIC_MAIL_BYTES, "fits into the member's slot");

/* What we know of a member we send to. */
struct peer {
	uint32_t generation;		/* the rest is about this one */
	unsigned full_count;
	bool is_stopped;		/* and had taken nothing beyond this: */
	uint64_t stopped_tail;
	struct ring_tx tx;
	bool has_dgid;
	uint8_t dgid[16];		/* the last one that it was found to have */
};

/* Who was in a group when the fabric's count of changes was this. */
struct group {
	bool is_valid;
	uint8_t gid[16];
	uint32_t changes;
	struct fabric_members members;
};

struct rx {
	struct ring_rx ring;
	unsigned sender;
	uint32_t generation;
	bool is_orphan;			/* the sender is gone: nothing more will come */
};

struct wire_shm {
	struct wire wire;
	struct fabric *fabric;
	pid_t pid;			/* a forked child has another one */
	struct wake wake;
	uint32_t changes_seen;
	_Atomic unsigned polls_to_retry;	/* not 0: a ring could not be mapped yet */
	struct rx *taking;		/* receive() gave its packet out */
	unsigned rx_count, rx_next;
	/* The list changes under the device lock and this one, so that wait() may read it with
	 * this one alone. */
	pthread_mutex_t rx_lock;
	struct rx *rx[RX_MAX];
	struct group group[GROUPS_CACHED];
	struct peer peer[FABRIC_MEMBERS_MAX];
};

static struct wire_shm *shm(struct wire *wire)
{
	return (struct wire_shm *)wire;
}

static void path_make(const struct wire_shm *w, char *path, size_t bytes, unsigned owner,
		      uint32_t owner_generation, const char *kind, unsigned other,
		      uint32_t other_generation)
{
	snprintf(path, bytes, "%s/%u-%u-%s-%u-%u", fabric_dir(w->fabric), owner,
		 owner_generation, kind, other, other_generation);
}

static uint32_t own_generation(const struct wire_shm *w)
{
	return fabric_generation(w->fabric, fabric_self(w->fabric));
}

/* Sending */

static void peer_forget(struct peer *peer)
{
	ring_tx_close(&peer->tx);
	memset(peer, 0, sizeof *peer);
}

static struct wake_mail *peer_mail(const struct wire_shm *w, unsigned slot)
{
	return fabric_mail(w->fabric, slot);
}

static int peer_make_ring(struct wire_shm *w, unsigned slot)
{
	struct peer *peer = &w->peer[slot];
	unsigned self = fabric_self(w->fabric);
	uint32_t generation = own_generation(w);
	char path_new[512], path[512];
	int rc;

	path_make(w, path_new, sizeof path_new, self, generation, "new", slot, peer->generation);
	path_make(w, path, sizeof path, slot, peer->generation, "ring", self, generation);
	rc = ring_tx_create(&peer->tx, path_new, path);
	if (rc)
		return rc;
	/* It may have been swept just before the rename: then nobody else removes the file. */
	if (fabric_generation(w->fabric, slot) != peer->generation) {
		unlink(path);
		peer_forget(peer);
		return -ESRCH;
	}
	atomic_store_explicit(&peer_mail(w, slot)->is_announced, 1, memory_order_release);
	return 0;
}

/* Making files has cancellation points, and the caller holds the device lock. */
static int peer_connect(struct wire_shm *w, unsigned slot)
{
	int held = cancel_hold();
	int rc = peer_make_ring(w, slot);

	cancel_release(held);
	return rc;
}

static bool peer_has_gid(struct wire_shm *w, unsigned slot, const uint8_t dgid[16])
{
	struct peer *peer = &w->peer[slot];

	if (peer->has_dgid && memcmp(peer->dgid, dgid, 16) == 0)
		return true;
	if (!fabric_has_gid(w->fabric, slot, dgid))
		return false;
	memcpy(peer->dgid, dgid, 16);
	peer->has_dgid = true;
	return true;
}

static bool may_be_lost(const struct ib_packet *p)
{
	uint8_t transport = p->opcode & IB_TRANSPORT_MASK;

	return transport == IB_UD || transport == IB_ETHERNET;
}

/* A full ring of a dead process must not stay full for ever; and datagrams, which may be lost,
 * don't wait for one that is stopped. */
static enum wire_sent peer_full(struct wire_shm *w, unsigned slot, const struct ib_packet *p)
{
	struct peer *peer = &w->peer[slot];

	if (++peer->full_count % FULL_PER_LIFE_CHECK == 0) {
		enum fabric_life life = fabric_life(w->fabric, slot);

		if (life == FABRIC_DEAD)
			return WIRE_NOBODY;
		peer->is_stopped = life == FABRIC_STOPPED;
		peer->stopped_tail = peer->tx.tail_seen;
	}
	if (!peer->is_stopped || peer->stopped_tail != peer->tx.tail_seen)
		return WIRE_FULL;
	return may_be_lost(p) ? WIRE_NOBODY : WIRE_FULL;
}

/* What we know of the member that sits there now, or NULL. */
static struct peer *peer_at(struct wire_shm *w, unsigned slot)
{
	uint32_t generation = fabric_generation(w->fabric, slot);
	struct peer *peer;

	if (!generation)
		return NULL;
	peer = &w->peer[slot];
	if (peer->generation != generation) {
		peer_forget(peer);
		peer->generation = generation;
	}
	return peer;
}

/* The same of the live member that owns the number. */
static struct peer *peer_find(struct wire_shm *w, enum fabric_space space, uint32_t number,
			      unsigned *slot_out)
{
	int slot = fabric_owner(w->fabric, space, number);

	if (slot < 0)
		return NULL;
	*slot_out = (unsigned)slot;
	return peer_at(w, (unsigned)slot);
}

/* A request that is passed on goes to the receive queue, everything else to a QP. */
static struct peer *peer_of(struct wire_shm *w, const struct ib_packet *p, unsigned *slot_out)
{
	if (ib_is_for_queue(p->opcode))
		return peer_find(w, FABRIC_SRQN, p->extra.srqn, slot_out);
	return peer_find(w, FABRIC_QPN, p->dest_qpn, slot_out);
}

/* To the member that peer_at() found at @slot. */
static enum wire_sent peer_send(struct wire_shm *w, unsigned slot, const struct ib_packet *p)
{
	struct peer *peer = &w->peer[slot];
	enum wire_sent sent;

	if (!peer->tx.map.head && peer_connect(w, slot) != 0)
		return WIRE_NOBODY;
	sent = ring_tx_send(&peer->tx, p);
	if (sent == WIRE_SENT)
		wake_peer(peer_mail(w, slot));
	else if (sent == WIRE_FULL)
		sent = peer_full(w, slot, p);
	else if (sent == WIRE_NOBODY)
		peer_forget(peer);
	return sent;
}

static enum wire_sent shm_send(struct wire *wire, const struct ib_packet *p)
{
	struct wire_shm *w = shm(wire);
	unsigned slot;

	if (!peer_of(w, p, &slot))
		return WIRE_NOBODY;
	if (!peer_has_gid(w, slot, p->dgid))
		return WIRE_WRONG_GID;
	return peer_send(w, slot, p);
}

/* Is there a ring to that member with room for the packet? */
static enum wire_sent peer_is_ready(struct wire_shm *w, unsigned slot, const struct ib_packet *p)
{
	struct peer *peer = peer_at(w, slot);
	enum wire_sent room;

	if (!peer || slot == fabric_self(w->fabric) ||
	    (!peer->tx.map.head && peer_connect(w, slot) != 0))
		return WIRE_NOBODY;
	room = ring_tx_has_room(&peer->tx, p);
	if (room == WIRE_FULL)
		return peer_full(w, slot, p);
	if (room == WIRE_NOBODY)
		peer_forget(peer);
	return room;
}

/* Frames */

static enum wire_sent shm_has_room(struct wire *wire, unsigned member, const struct ib_packet *p)
{
	return peer_is_ready(shm(wire), member, p);
}

static enum wire_sent shm_frame(struct wire *wire, unsigned member, const struct ib_packet *p)
{
	struct wire_shm *w = shm(wire);

	if (member == fabric_self(w->fabric) || !peer_at(w, member))
		return WIRE_NOBODY;
	return peer_send(w, member, p);
}

/* Groups */

static int shm_join(struct wire *wire, const uint8_t gid[16])
{
	return fabric_group_join(shm(wire)->fabric, gid);
}

static void shm_leave(struct wire *wire, const uint8_t gid[16])
{
	fabric_group_leave(shm(wire)->fabric, gid);
}

/* Groups in use differ in their last bytes. */
static unsigned group_hash(const uint8_t gid[16])
{
	return (gid[15] ^ gid[14] ^ gid[13]) & (GROUPS_CACHED - 1);
}

static const struct fabric_members *group_find(struct wire_shm *w, const uint8_t gid[16])
{
	struct group *g = &w->group[group_hash(gid)];
	uint32_t changes = fabric_group_changes(w->fabric);

	if (g->is_valid && g->changes == changes && !memcmp(g->gid, gid, sizeof g->gid))
		return &g->members;
	g->is_valid = true;
	g->changes = changes;
	memcpy(g->gid, gid, sizeof g->gid);
	fabric_group_members(w->fabric, gid, &g->members);
	return &g->members;
}

/* The next member from @slot on, or FABRIC_MEMBERS_MAX. */
static unsigned member_next(const struct fabric_members *m, unsigned slot)
{
	while (slot < FABRIC_MEMBERS_MAX) {
		uint64_t left = m->bit[slot / 64] >> slot % 64;

		if (left)
			return slot + (unsigned)__builtin_ctzll(left);
		slot = (slot | 63) + 1;
	}
	return slot;
}

static enum wire_sent shm_multicast(struct wire *wire, const struct ib_packet *p)
{
	struct wire_shm *w = shm(wire);
	const struct fabric_members *group = group_find(w, p->dgid);
	struct fabric_members ready = { { 0 } };
	enum wire_sent sent = WIRE_NOBODY;

	for (unsigned slot = member_next(group, 0); slot < FABRIC_MEMBERS_MAX;
	     slot = member_next(group, slot + 1)) {
		enum wire_sent room = peer_is_ready(w, slot, p);

		if (room == WIRE_FULL)
			return WIRE_FULL;
		if (room == WIRE_SENT)
			ready.bit[slot / 64] |= UINT64_C(1) << slot % 64;
	}
	for (unsigned slot = member_next(&ready, 0); slot < FABRIC_MEMBERS_MAX;
	     slot = member_next(&ready, slot + 1)) {
		enum wire_sent one = peer_send(w, slot, p);

		if (one == WIRE_UNREADABLE)
			return one;
		if (one == WIRE_SENT)
			sent = WIRE_SENT;
	}
	return sent;
}

static bool shm_is_late(struct wire *wire, uint32_t dest_qpn)
{
	struct wire_shm *w = shm(wire);
	unsigned slot;
	struct peer *peer = peer_find(w, FABRIC_QPN, dest_qpn, &slot);

	/* The question also buries the dead, so it comes first. */
	return peer && fabric_life(w->fabric, slot) == FABRIC_ALIVE && peer->tx.map.head &&
	       !ring_tx_is_taken(&peer->tx);
}

static bool shm_lives(struct wire *wire, const struct ib_packet *p)
{
	struct wire_shm *w = shm(wire);
	unsigned slot;

	return peer_of(w, p, &slot) && fabric_life(w->fabric, slot) != FABRIC_DEAD;
}

/* Receiving */

static void rx_drop(struct wire_shm *w, unsigned at)
{
	struct rx *rx = w->rx[at];

	pthread_mutex_lock(&w->rx_lock);
	w->rx[at] = w->rx[--w->rx_count];
	w->rx_next = 0;
	pthread_mutex_unlock(&w->rx_lock);
	ring_rx_refuse(&rx->ring);
	ring_rx_close(&rx->ring);
	free(rx);
}

static bool is_gone(const struct wire_shm *w, unsigned slot, uint32_t generation)
{
	return fabric_generation(w->fabric, slot) != generation;
}

/* 0, -EBADMSG, or -errno if it may work later. */
static int rx_add(struct wire_shm *w, const char *path, unsigned sender, uint32_t generation)
{
	struct rx *rx;
	int rc;

	if (sender >= FABRIC_MEMBERS_MAX)
		return -EBADMSG;
	if (w->rx_count == RX_MAX)
		return -ENOMEM;
	rx = calloc(1, sizeof *rx);
	if (!rx)
		return -ENOMEM;
	rx->sender = sender;
	rx->generation = generation;
	rx->is_orphan = is_gone(w, sender, generation);
	rc = ring_rx_open(&rx->ring, path);
	if (rc) {
		free(rx);
		return rc;
	}
	pthread_mutex_lock(&w->rx_lock);
	w->rx[w->rx_count++] = rx;
	pthread_mutex_unlock(&w->rx_lock);
	return 0;
}

static void rx_try(struct wire_shm *w, const char *name, const char *sender_at)
{
	char path[512];
	unsigned sender, generation;
	int rc = -EBADMSG;

	snprintf(path, sizeof path, "%s/%.128s", fabric_dir(w->fabric), name);
	if (sscanf(sender_at, "%u-%u", &sender, &generation) == 2)
		rc = rx_add(w, path, sender, generation);
	if (rc == 0 || rc == -EBADMSG)
		unlink(path);
	else
		w->polls_to_retry = POLLS_PER_RETRY;
}

/* Map every ring that the directory holds for us. */
static void rx_scan(struct wire_shm *w)
{
	DIR *d = opendir(fabric_dir(w->fabric));
	struct dirent *entry;
	char prefix[64];
	int bytes;

	if (!d) {
		w->polls_to_retry = errno == ENOENT ? 0 : POLLS_PER_RETRY;
		return;
	}
	bytes = snprintf(prefix, sizeof prefix, "%u-%u-ring-", fabric_self(w->fabric),
			 own_generation(w));
	while ((entry = readdir(d)))
		if (strncmp(entry->d_name, prefix, (size_t)bytes) == 0)
			rx_try(w, entry->d_name, entry->d_name + bytes);
	closedir(d);
}

static bool has_news(struct wire_shm *w)
{
	return atomic_load_explicit(&w->wake.mail->is_announced, memory_order_acquire) ||
	       fabric_changes(w->fabric) != w->changes_seen ||
	       (w->polls_to_retry && --w->polls_to_retry == 0);
}

/* New rings, and members that have gone.  Also after a death: the sender may have died between
 * naming a ring and announcing it. */
static void look_around(struct wire_shm *w)
{
	int held = cancel_hold();

	w->changes_seen = fabric_changes(w->fabric);
	atomic_store(&w->wake.mail->is_announced, 0);
	for (unsigned i = 0; i < w->rx_count; i++)
		w->rx[i]->is_orphan = is_gone(w, w->rx[i]->sender, w->rx[i]->generation);
	for (unsigned slot = 0; slot < FABRIC_MEMBERS_MAX; slot++)
		if (w->peer[slot].tx.map.head && is_gone(w, slot, w->peer[slot].generation))
			peer_forget(&w->peer[slot]);
	rx_scan(w);
	cancel_release(held);
}

static int shm_receive(struct wire *wire, struct ib_packet *out)
{
	struct wire_shm *w = shm(wire);

	assert(!w->taking);
	if (has_news(w))
		look_around(w);
	for (unsigned i = 0; i < w->rx_count; i++) {
		unsigned at = w->rx_next + i < w->rx_count ? w->rx_next + i
							   : w->rx_next + i - w->rx_count;
		struct rx *rx = w->rx[at];
		int rc = ring_rx_take(&rx->ring, out);

		if (rc == 1) {
			w->taking = rx;
			w->rx_next = at + 1;
			return 1;
		}
		if (rc < 0 || rx->is_orphan) {	/* empty after the sender had gone: drained */
			rx_drop(w, at);
			i = -1u;	/* from the start */
		}
	}
	return 0;
}

static void shm_release(struct wire *wire)
{
	struct wire_shm *w = shm(wire);

	assert(w->taking);
	ring_rx_release(&w->taking->ring);
	w->taking = NULL;
}

/* Sleeping */

static bool has_packets(void *ctx)
{
	struct wire_shm *w = ctx;
	bool found = atomic_load(&w->wake.mail->is_announced) ||
		     atomic_load(&w->wake.mail->is_called);

	pthread_mutex_lock(&w->rx_lock);
	for (unsigned i = 0; i < w->rx_count && !found; i++)
		found = ring_rx_has_packet(&w->rx[i]->ring);
	pthread_mutex_unlock(&w->rx_lock);
	return found;
}

static void shm_listen(struct wire *wire, bool wants_wake)
{
	wake_listen(&shm(wire)->wake, wants_wake, has_packets, wire);
}

static void shm_wait(struct wire *wire, uint64_t timeout_ns)
{
	struct wire_shm *w = shm(wire);

	if (w->polls_to_retry && timeout_ns > RETRY_TIMEOUT_NS)
		timeout_ns = RETRY_TIMEOUT_NS;
	wake_wait(&w->wake, timeout_ns, has_packets, w);
}

static void shm_kick(struct wire *wire)
{
	wake_kick(&shm(wire)->wake);
}

struct doze {
	struct wire_shm *w;
	bool (*is_over)(void *ctx);
	void *ctx;
};

static bool ends_doze(void *ctx)
{
	const struct doze *doze = ctx;

	return doze->is_over(doze->ctx) || has_packets(doze->w);
}

static int shm_doze(struct wire *wire, bool (*is_over)(void *ctx), void *ctx)
{
	struct doze doze = { shm(wire), is_over, ctx };

	return wake_doze(&shm(wire)->wake, ends_doze, &doze);
}

static void shm_doze_end(struct wire *wire)
{
	wake_doze_end(&shm(wire)->wake, has_packets, wire);
}

static void shm_rouse(struct wire *wire)
{
	wake_rouse(&shm(wire)->wake);
}

static void shm_call(struct wire *wire, unsigned member)
{
	struct wake_mail *mail = peer_mail(shm(wire), member);

	atomic_store(&mail->is_called, 1);
	wake_peer(mail);
}

void wire_shm_wake_all(struct fabric *fabric)
{
	for (unsigned slot = 0; slot < FABRIC_MEMBERS_MAX; slot++)
		if (fabric_generation(fabric, slot))
			wake_peer(fabric_mail(fabric, slot));
}

static void shm_close(struct wire *wire)
{
	struct wire_shm *w = shm(wire);
	bool is_ours = w->pid == getpid();

	for (unsigned i = 0; i < w->rx_count; i++) {
		if (is_ours)
			ring_rx_refuse(&w->rx[i]->ring);
		ring_rx_close(&w->rx[i]->ring);
		free(w->rx[i]);
	}
	for (unsigned slot = 0; slot < FABRIC_MEMBERS_MAX; slot++)
		peer_forget(&w->peer[slot]);
	pthread_mutex_destroy(&w->rx_lock);
	free(w);
}

static const struct wire_ops wire_shm_ops = {
	.name = "shm",
	.send = shm_send,
	.join = shm_join,
	.leave = shm_leave,
	.multicast = shm_multicast,
	.has_room = shm_has_room,
	.frame = shm_frame,
	.receive = shm_receive,
	.release = shm_release,
	.is_late = shm_is_late,
	.lives = shm_lives,
	.listen = shm_listen,
	.wait = shm_wait,
	.kick = shm_kick,
	.doze = shm_doze,
	.doze_end = shm_doze_end,
	.rouse = shm_rouse,
	.call = shm_call,
	.close = shm_close,
	.packet_bytes_max = RING_PAYLOAD_MAX,
};

int wire_shm_open(struct fabric *fabric, struct wire **out)
{
	struct wire_shm *w = calloc(1, sizeof *w);

	if (!w)
		return -ENOMEM;
	w->wire.ops = &wire_shm_ops;
	w->fabric = fabric;
	w->pid = getpid();
	w->wake.mail = fabric_mail(fabric, fabric_self(fabric));
	w->wire.called = &w->wake.mail->is_called;
	w->changes_seen = fabric_changes(fabric) - 1;	/* look around at once */
	pthread_mutex_init(&w->rx_lock, NULL);
	*out = &w->wire;
	return 0;
}
