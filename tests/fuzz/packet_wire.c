/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wire of f_packet.c, with the fuzzer at its other end; see packet.h.
 *
 * Packets come by hand or out of a real shared-memory ring, whose bytes the fuzzer also writes
 * behind the back of its writer.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "emu/wire/ring.h"
#include "tests/fuzz/packet.h"

static struct ib_packet arriving;
static bool has_arriving, is_from_ring;
static enum wire_sent fate;		/* of the next packets that the device sends ... */
static unsigned fated;			/* ... so many of them */
static struct ring_tx tx;
static struct ring_rx rx;

/* --- the wire --- */

static enum wire_sent fuzz_send(struct wire *w, const struct ib_packet *p)
{
	(void)w;
	packet_check(p);
	if (!fated)
		return WIRE_SENT;
	fated--;
	return fate == WIRE_UNREADABLE && !p->payload_bytes ? WIRE_SENT : fate;
}

/* All that the reader may promise, whatever the ring holds. */
static void record_check(const struct ib_packet *p)
{
	const uint8_t *from = p->span->iov_base;

	assert(p->payload_bytes <= RING_PAYLOAD_MAX && p->packet_count);
	assert(p->span_count == (p->payload_bytes != 0) && p->span->iov_len == p->payload_bytes);
	assert(from >= rx.map.data && from + p->payload_bytes <= rx.map.data + 2 * rx.map.bytes);
	assert((p->psn | p->dest_qpn | p->src_qpn | p->msn) <= 0xffffff);
}

static int fuzz_receive(struct wire *w, struct ib_packet *out)
{
	int got = 1;

	(void)w;
	is_from_ring = !has_arriving;
	if (has_arriving)
		*out = arriving;
	else
		got = ring_rx_take(&rx, out);
	has_arriving = false;
	if (got > 0 && is_from_ring)
		record_check(out);
	return got > 0;
}

static void fuzz_release(struct wire *w)
{
	(void)w;
	if (is_from_ring)
		ring_rx_release(&rx);
}

static int fuzz_join(struct wire *w, const uint8_t gid[16])
{
	(void)w;
	(void)gid;
	return fated && fate == WIRE_NOBODY ? -ENOSPC : 0;
}

static void fuzz_leave(struct wire *w, const uint8_t gid[16])
{
	(void)w;
	(void)gid;
}

static bool fuzz_is_late(struct wire *w, uint32_t qpn)
{
	(void)w;
	(void)qpn;
	return false;
}

static void fuzz_listen(struct wire *w, bool wants_wake)
{
	(void)w;
	(void)wants_wake;
}

/* Who could not be reached: now there, now gone. */
static bool fuzz_lives(struct wire *w, const struct ib_packet *p)
{
	(void)w;
	(void)p;
	return fated & 1;
}

static const struct wire_ops fuzz_ops = {
	.name = "fuzz", .send = fuzz_send, .receive = fuzz_receive, .release = fuzz_release,
	.join = fuzz_join, .leave = fuzz_leave, .multicast = fuzz_send,
	.is_late = fuzz_is_late, .lives = fuzz_lives, .listen = fuzz_listen,
	.packet_bytes_max = 4096,
};
struct wire packet_wire = { .ops = &fuzz_ops };

void packet_wire_begin(void)
{
	char folder[] = "/dev/shm/verbena-fuzz-XXXXXX", path[64], path_new[64];
	int failed = !mkdtemp(folder);

	snprintf(path, sizeof path, "%s/ring", folder);
	snprintf(path_new, sizeof path_new, "%s/new", folder);
	failed = failed || ring_tx_create(&tx, path_new, path) || ring_rx_open(&rx, path);
	unlink(path);
	rmdir(folder);
	assert(!failed);
}

/* Both ends at one place again, further on: what lies there can't be taken for a record. */
static void ring_resync(void)
{
	if (rx.position > tx.position)
		tx.position = rx.position;
	tx.tail_seen = tx.position;
	atomic_store(&rx.position, tx.position);
	atomic_store(&rx.map.head->tail, tx.position);
}

void packet_wire_reset(void)
{
	fated = 0;
	tx.has_gids = false;
	memset(rx.gids, 0, sizeof rx.gids);
	ring_resync();
}

/* --- what a peer does --- */

void packet_do_send(struct input *in)
{
	packet_make(in, &arriving);
	has_arriving = true;
	engine_lend(engine);
}

void packet_do_ring(struct input *in)
{
	uint8_t choice = take8(in), *record;
	struct ib_packet p;
	uint64_t commit;

	ring_resync();
	packet_make(in, &p);
	if (choice & 1)
		atomic_store(&rx.map.head->tail, take64(in));
	record = tx.map.data + (tx.position & (tx.map.bytes - 1));
	if (ring_tx_send(&tx, &p) == WIRE_SENT && choice & 2) {
		memcpy(&commit, record, sizeof commit);
		rig_twist(in, record, choice & 4 ? 128 : 40);
		if (!(choice & 8))
			memcpy(record, &commit, sizeof commit);
	}
	engine_lend(engine);
}

void packet_do_fate(struct input *in)
{
	uint8_t choice = take8(in);

	fate = (choice & 7) % (WIRE_UNREADABLE + 1);
	fated = choice >> 3;
}
