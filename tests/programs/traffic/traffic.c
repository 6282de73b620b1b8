/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One process of a mesh: an RC connection with each other process, mixed checked traffic on
 * all of them, and a new connection whenever a peer has vanished and somebody takes its place.
 *
 *	traffic --board FILE --id I --count N --incarnation K [--timeout T] [--retry R] [--events]
 *
 * Prints a line for each connection that ended with an error ("down PEER INCARNATION STATUS")
 * and counters at the end.  Runs until the board says stop.  p_death.py drives it.
 *
 * Exit status: 0; 1: a verb failed; EXIT_WRONG: data, order or a status that can't be.
 *
 * How two ends find each other.  Each publishes its QP under a new tag with peer_tag 0.  Who
 * sees a peer whose peer_tag is 0 or its own connects to it and publishes the peer's tag as
 * its peer_tag; traffic begins when both say so.  Who sees another tag than it is
 * connected to, or an error, begins anew with a new tag.  Half of the links don't look and go on
 * until the error comes.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>
#include "board.h"

#define DRAIN_MS	20000	/* generous: what is posted to a failed QP comes back at once */
#define IDLE_TURNS	200	/* without a completion before it sleeps */

enum link_state { LINK_FRESH, LINK_PAIRED, LINK_UP, LINK_DRAINING };

struct end {
	struct link link;
	enum link_state state;
	uint32_t serial;
	uint64_t drain_until;
	bool is_stubborn;		/* goes on until an error comes */
};

static struct board *board;
static struct node node = { .timeout = 14, .retry = 7 };
static struct end ends[LINKS_MAX];
static unsigned self, count;
static uint32_t incarnation;
static bool wants_events;
static uint64_t downs, reconnects;

static void publish(const struct end *e)
{
	struct board_entry *entry = &board->row[self].entry[e->link.index];
	uint32_t sequence = atomic_load(&entry->sequence) | 1;

	atomic_store(&entry->sequence, sequence);
	atomic_thread_fence(memory_order_seq_cst);
	entry->info = e->link.info;
	atomic_store(&entry->sequence, sequence + 1);
}

/* What the peer says of its end; false: nothing yet, or it died while it wrote. */
static bool look_up(unsigned peer, struct link_info *out)
{
	struct board_entry *entry = &board->row[peer].entry[self];
	uint32_t sequence = atomic_load(&entry->sequence);

	*out = entry->info;
	atomic_thread_fence(memory_order_seq_cst);
	return !(sequence & 1) && atomic_load(&entry->sequence) == sequence && out->tag;
}

static uint32_t incarnation_of(uint64_t tag)
{
	return (uint32_t)(tag >> 32);
}

static void end_fresh(struct end *e, unsigned peer)
{
	uint64_t tag = (uint64_t)incarnation << 32 | ++e->serial;

	if (link_open(&e->link, &node, peer, tag))
		exit(1);
	e->state = LINK_FRESH;
	publish(e);
}

static void try_pair(struct end *e)
{
	struct link_info peer;

	if (!look_up(e->link.index, &peer) ||
	    (peer.peer_tag && peer.peer_tag != e->link.info.tag))
		return;
	if (link_connect(&e->link, &peer))
		exit(1);
	e->state = LINK_PAIRED;
	e->is_stubborn = node_random(&node) % 2;
	publish(e);
}

static void drain(struct end *e)
{
	unsigned peer = e->link.index;

	atomic_store(&board->row[self].is_up[peer], 0);
	if (!e->link.has_failed)
		link_fail(&e->link);
	e->state = LINK_DRAINING;
	e->drain_until = clock_ms() + DRAIN_MS;
}

static bool peer_has_changed(const struct end *e)
{
	struct link_info peer;

	return look_up(e->link.index, &peer) && peer.tag != e->link.peer.tag;
}

static void watch(struct end *e)
{
	struct link_info peer;

	if (e->link.has_failed) {
		downs++;
		printf("down %u %u %s\n", e->link.index, incarnation_of(e->link.peer.tag),
		       ibv_wc_status_str(e->link.first_error));
		drain(e);
	} else if (peer_has_changed(e) && !(e->is_stubborn && e->state == LINK_UP)) {
		drain(e);
	} else if (e->state == LINK_PAIRED && look_up(e->link.index, &peer) &&
		   peer.peer_tag == e->link.info.tag) {
		e->state = LINK_UP;
		atomic_store(&board->row[self].is_up[e->link.index], incarnation_of(peer.tag));
	}
}

static void finish_drain(struct end *e)
{
	unsigned peer = e->link.index;

	if (!link_is_drained(&e->link)) {
		if (clock_ms() > e->drain_until)
			wrong("link %u: %u sends and %u receives of a failed QP don't come back",
			      peer, e->link.posted - e->link.completed, e->link.receives_out);
		return;
	}
	link_close(&e->link);
	reconnects++;
	end_fresh(e, peer);
}

static void step(struct end *e, bool may_post)
{
	switch (e->state) {
	case LINK_FRESH:
		try_pair(e);
		break;
	case LINK_PAIRED:
	case LINK_UP:
		watch(e);
		if (e->state == LINK_UP && may_post)
			link_post(&e->link, 1 + (unsigned)(node_random(&node) % DEPTH));
		break;
	case LINK_DRAINING:
		finish_drain(e);
		break;
	}
	atomic_store(&board->row[self].done[e->link.index], e->link.done);
}

static bool all_quiet(void)
{
	for (unsigned peer = 0; peer < count; peer++)
		if (peer != self && !link_is_quiet(&ends[peer].link))
			return false;
	return true;
}

static bool all_rows_are(enum row_state state)
{
	for (unsigned row = 0; row < count; row++)
		if (atomic_load(&board->row[row].state) < state)
			return false;
	return true;
}

/* One turn for all links, and a rest when there is nothing to do. */
static void turn(bool may_post)
{
	static unsigned idle;

	for (unsigned peer = 0; peer < count; peer++)
		if (peer != self)
			step(&ends[peer], may_post);
	idle = node_poll(&node) ? 0 : idle + 1;
	atomic_fetch_add(&board->row[self].beats, 1);
	if (idle < IDLE_TURNS)
		return;
	idle = 0;
	if (wants_events)
		node_wait(&node, 2);
	else
		sched_yield();
}

static void run(void)
{
	struct board_row *row = &board->row[self];

	for (unsigned peer = 0; peer < count; peer++)
		if (peer != self)
			end_fresh(&ends[peer], peer);
	atomic_store(&row->state, ROW_RUNNING);
	while (!atomic_load(&board->must_stop))
		turn(true);
	/* Everybody's last operation ends before the first QP goes away. */
	while (!all_quiet())
		turn(false);
	atomic_store(&row->state, ROW_QUIET);
	while (!all_rows_are(ROW_QUIET))
		turn(false);
	atomic_store(&row->state, ROW_LEAVING);
}

static void leave(void)
{
	uint64_t done = 0;

	for (unsigned peer = 0; peer < count; peer++) {
		if (peer == self)
			continue;
		done += ends[peer].link.done;
		link_close(&ends[peer].link);
	}
	node_close(&node);
	printf("done %llu downs %llu reconnects %llu\n", (unsigned long long)done,
	       (unsigned long long)downs, (unsigned long long)reconnects);
}

static void board_map(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	board = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE,
					   MAP_SHARED, fd, 0);
	if (board == MAP_FAILED) {
		fprintf(stderr, "traffic: %s: %s\n", path, strerror(errno));
		exit(2);
	}
	close(fd);
}

/* The row of the one before us, who may have died anywhere. */
static void row_begin(void)
{
	struct board_row *row = &board->row[self];
	struct end nobody = { 0 };

	atomic_store(&row->state, ROW_ABSENT);
	for (unsigned peer = 0; peer < LINKS_MAX; peer++) {
		atomic_store(&row->done[peer], 0);
		atomic_store(&row->is_up[peer], 0);
		nobody.link.index = peer;
		publish(&nobody);
	}
	atomic_store(&row->incarnation, incarnation);
}

static const struct option options[] = {
	{ "board", required_argument, NULL, 'b' }, { "id", required_argument, NULL, 'i' },
	{ "count", required_argument, NULL, 'c' }, { "incarnation", required_argument, NULL, 'k' },
	{ "timeout", required_argument, NULL, 't' }, { "retry", required_argument, NULL, 'r' },
	{ "events", no_argument, NULL, 'e' }, { 0 },
};

static void options_take(int argc, char **argv)
{
	const char *path = NULL;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		unsigned long value = optarg ? strtoul(optarg, NULL, 0) : 0;

		switch (option) {
		case 'b':
			path = optarg;
			break;
		case 'i':
			self = (unsigned)value;
			break;
		case 'c':
			count = (unsigned)value;
			break;
		case 'k':
			incarnation = (uint32_t)value;
			break;
		case 't':
			node.timeout = (uint8_t)value;
			break;
		case 'r':
			node.retry = (uint8_t)value;
			break;
		case 'e':
			wants_events = true;
			break;
		default: exit(2);
		}
	}
	if (!path || self >= count || count > LINKS_MAX || !incarnation) {
		fprintf(stderr, "traffic: --board, --id, --count and --incarnation are needed\n");
		exit(2);
	}
	board_map(path);
}

int main(int argc, char **argv)
{
	options_take(argc, argv);
	setvbuf(stdout, NULL, _IOLBF, 0);
	node.random = incarnation;
	row_begin();
	if (node_open(&node))
		return 1;
	run();
	leave();
	return 0;
}
