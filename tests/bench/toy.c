/* SPDX-License-Identifier: BSD-2-Clause */
/* A toy NIC; see toy.h. */
#include "toy.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "bench.h"

#define LINE	_Alignas(64)

enum { KEYS = 16, PD = 7, STATE_READY = 3, MTU_SHIFT = 12, PSN_MASK = 0xffffff };
enum { RIGHT_READ = 1, RIGHT_WRITE = 2 };
enum { DONE_OK = 0, DONE_LOCAL = 4, DONE_STATE = 5, DONE_REMOTE = 10, DONE_SEQUENCE = 12,
       DONE_NO_RECV = 13 };

struct descriptor {
	uint32_t opcode, index, qpn, units;
	uint64_t remote_addr;
	uint32_t remote_key, reserved;
	uint64_t id;
	struct toy_memory local;
	uint64_t pad;
};
_Static_assert(sizeof(struct descriptor) == 64, "a descriptor is a cache line");

struct entry {
	uint64_t id;
	uint32_t status, opcode, bytes, qpn, peer_qpn, imm;
	uint8_t pad[31];
	_Atomic uint8_t owner;
};
_Static_assert(sizeof(struct entry) == 64, "a completion is a cache line");

struct lock { LINE atomic_bool is_held; };

struct toy_cq {
	struct lock lock;
	struct entry *entry;
	uint32_t size, produced, consumed;
};

struct ring {
	struct lock lock;
	struct descriptor *at;
	uint32_t size, done;
	_Atomic uint32_t posted;	/* the doorbell */
};

struct toy_queue {
	struct ring send, recv;
	struct toy_queue *peer;
	struct toy_cq *cq;
	uint32_t qpn, state, psn, psn_expected, message;
};

struct key {
	uint32_t key, pd, rights;
	uint64_t start, bytes;
};

static struct key keys[KEYS];
static uint32_t key_count;

static inline void lock(struct lock *l)
{
	while (atomic_exchange_explicit(&l->is_held, true, memory_order_acquire))
		relax();
}

static inline void unlock(struct lock *l)
{
	atomic_store_explicit(&l->is_held, false, memory_order_release);
}

static void *zeroed(size_t bytes)
{
	void *at = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);

	need(at, "aligned_alloc");
	return memset(at, 0, bytes);
}

struct toy_cq *toy_cq_new(uint32_t entries)
{
	struct toy_cq *cq = zeroed(sizeof *cq);

	cq->entry = zeroed(entries * sizeof *cq->entry);
	cq->size = entries;
	return cq;
}

static void ring_start(struct ring *r, uint32_t depth)
{
	r->at = zeroed(depth * sizeof *r->at);
	r->size = depth;
}

void toy_pair_new(struct toy_cq *cq, uint32_t depth, struct toy_queue *out[2])
{
	for (uint32_t i = 0; i < 2; i++) {
		out[i] = zeroed(sizeof *out[i]);
		ring_start(&out[i]->send, depth);
		ring_start(&out[i]->recv, depth);
		out[i]->cq = cq;
		out[i]->qpn = i;
		out[i]->state = STATE_READY;
	}
	out[0]->peer = out[1];
	out[1]->peer = out[0];
}

uint32_t toy_register(void *at, uint64_t bytes)
{
	uint32_t index = key_count++;

	need(index < KEYS, "too many keys");
	keys[index] = (struct key){
		.key = index << 8 | 0x5a, .pd = PD, .rights = RIGHT_READ | RIGHT_WRITE,
		.start = (uintptr_t)at, .bytes = bytes,
	};
	return keys[index].key;
}

static inline void *key_check(uint32_t key, uint32_t rights, uint64_t addr, uint32_t bytes)
{
	const struct key *k = &keys[key >> 8];

	if (key >> 8 >= KEYS || k->key != key || k->pd != PD || (k->rights & rights) != rights)
		return NULL;
	if (addr < k->start || bytes > k->bytes || addr - k->start > k->bytes - bytes)
		return NULL;
	return (void *)(uintptr_t)addr;
}

static void complete(struct toy_cq *cq, const struct toy_queue *q, const struct descriptor *d,
		     uint32_t status, uint32_t bytes)
{
	struct entry *e;
	uint8_t owner;

	lock(&cq->lock);
	e = &cq->entry[cq->produced & (cq->size - 1)];
	owner = !(cq->produced / cq->size & 1);
	cq->produced++;
	e->id = d->id;
	e->status = status;
	e->opcode = d->opcode;
	e->bytes = bytes;
	e->qpn = q->qpn;
	atomic_store_explicit(&e->owner, owner, memory_order_release);
	unlock(&cq->lock);
}

/* The words that matter most go as one store; the rest is the C library's business. */
static inline void copy(void *to, const void *from, uint32_t bytes)
{
	if (bytes == 8)
		memcpy(to, from, 8);
	else
		memcpy(to, from, bytes);
}

static uint32_t deliver(struct toy_queue *peer, const void *from, uint32_t bytes)
{
	struct descriptor d;
	void *to;

	if (peer->recv.done == atomic_load_explicit(&peer->recv.posted, memory_order_acquire))
		return DONE_NO_RECV;
	d = peer->recv.at[peer->recv.done++ & (peer->recv.size - 1)];
	to = key_check(d.local.key, RIGHT_WRITE, d.local.addr, bytes);
	if (!to || bytes > d.local.bytes)
		return DONE_REMOTE;
	copy(to, from, bytes);
	complete(peer->cq, peer, &d, DONE_OK, bytes);
	return DONE_OK;
}

static uint32_t execute(struct toy_queue *q, const struct descriptor *d)
{
	struct toy_queue *peer = q->peer;
	uint32_t bytes = d->local.bytes, status = DONE_OK;
	const void *from;
	void *to;

	if (q->state != STATE_READY || d->qpn != q->qpn)
		return DONE_STATE;
	if (peer->state != STATE_READY || peer->psn_expected != q->psn)
		return DONE_SEQUENCE;
	from = key_check(d->local.key, RIGHT_READ, d->local.addr, bytes);
	if (!from)
		return DONE_LOCAL;
	if (d->opcode == TOY_SEND) {
		status = deliver(peer, from, bytes);
	} else {
		to = key_check(d->remote_key, RIGHT_WRITE, d->remote_addr, bytes);
		if (!to)
			return DONE_REMOTE;
		copy(to, from, bytes);
	}
	q->psn += bytes ? (bytes - 1) >> MTU_SHIFT : 0;
	q->psn = (q->psn + 1) & PSN_MASK;
	peer->psn_expected = q->psn;
	peer->message++;
	return status;
}

void toy_ring(struct toy_queue *q)
{
	uint32_t posted = atomic_load_explicit(&q->send.posted, memory_order_acquire);

	while (q->send.done != posted) {
		struct descriptor d = q->send.at[q->send.done & (q->send.size - 1)];
		uint32_t status = execute(q, &d);

		q->send.done++;
		complete(q->cq, q, &d, status, d.local.bytes);
	}
}

static int push(struct toy_queue *q, struct ring *r, const struct descriptor *d)
{
	uint32_t posted;

	lock(&r->lock);
	posted = atomic_load_explicit(&r->posted, memory_order_relaxed);
	if (posted - r->done >= r->size) {
		unlock(&r->lock);
		return -1;
	}
	r->at[posted & (r->size - 1)] = *d;
	r->at[posted & (r->size - 1)].index = posted;
	r->at[posted & (r->size - 1)].qpn = q->qpn;
	atomic_store_explicit(&r->posted, posted + 1, memory_order_release);
	unlock(&r->lock);
	return 0;
}

int toy_post(struct toy_queue *q, enum toy_opcode opcode, uint64_t id,
	     const struct toy_memory *local, uint64_t remote_addr, uint32_t remote_key)
{
	return push(q, &q->send, &(struct descriptor){
		.opcode = opcode, .units = 3, .id = id, .local = *local,
		.remote_addr = remote_addr, .remote_key = remote_key });
}

int toy_post_recv(struct toy_queue *q, uint64_t id, const struct toy_memory *local)
{
	return push(q, &q->recv, &(struct descriptor){
		.opcode = TOY_RECV, .units = 1, .id = id, .local = *local });
}

int toy_poll(struct toy_cq *cq, int count, struct toy_done *out)
{
	int got = 0;

	lock(&cq->lock);
	for (; got < count; got++, cq->consumed++) {
		struct entry *e = &cq->entry[cq->consumed & (cq->size - 1)];
		uint8_t owner = !(cq->consumed / cq->size & 1);

		if (atomic_load_explicit(&e->owner, memory_order_acquire) != owner)
			break;
		out[got] = (struct toy_done){
			.id = e->id, .status = e->status, .opcode = e->opcode, .bytes = e->bytes,
			.qpn = e->qpn, .peer_qpn = e->peer_qpn, .imm = e->imm,
		};
	}
	unlock(&cq->lock);
	return got;
}
