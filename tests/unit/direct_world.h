/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two device functions for tests of one-sided operations: each has its own seat in one fabric, its
 * own segment and engine, and a wire that counts what it carries.
 *
 * Both live in one process; the kernel moves the memory of a process for itself as for others.
 * No NIC thread and no clock: a test lends the time and moves the hands.
 */
#ifndef TESTS_UNIT_DIRECT_WORLD_H
#define TESTS_UNIT_DIRECT_WORLD_H
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include "emu/engine/engine_local.h"
#include "emu/share/share_local.h"
#include "tests/unit/rc_world.h"

enum { OP_SEND = 0x0a, OP_WRITE = 0x08, OP_READ = 0x10, OP_CAS = 0x11, OP_ADD = 0x12 };
enum { BIG = 8 << 20, QUEUED = 256, WIRE_BYTES = 65536 };

static uint64_t clock_ns = 1000;
static char name[64], dir[256];

/* No case takes down what it made; to the leak sanitizer this is no loss. */
static void *volatile kept[4096];
static unsigned kept_count;

static inline void *keep(void *thing)
{
	cr_assert_lt(kept_count, 4096);
	kept[kept_count++] = thing;
	return thing;
}

static inline uint64_t clock_read(void)
{
	return clock_ns;
}

struct parcel {
	struct ib_packet p;
	struct iovec span;
	uint8_t *bytes;
};

/* What is sent to a function waits in its own queue. */
struct test_wire {
	struct wire base;
	struct end *to;
	struct parcel queue[QUEUED];
	unsigned head, tail;
	unsigned sent;
	unsigned carries;		/* packets until it loses all */
};

/* One function with one QP, whose data is 8 MiB. */
struct end {
	struct world w;			/* its side a */
	struct fabric *fabric;
	struct share *share;
	struct engine *e;
	struct test_wire wire;
	uint32_t read;			/* CQEs taken by the test */
};

static inline enum wire_sent test_send(struct wire *base, const struct ib_packet *p)
{
	struct test_wire *w = (struct test_wire *)base, *to = &w->to->wire;
	struct parcel *parcel = &to->queue[to->tail % QUEUED];

	if (to->tail - to->head == QUEUED)
		return WIRE_FULL;
	*parcel = (struct parcel){ .p = *p, .bytes = malloc(p->payload_bytes + 1) };
	parcel->span = (struct iovec){ parcel->bytes, p->payload_bytes };
	if (mem_copy_spans(&parcel->span, 1, 0, p->span, p->span_count, 0, p->payload_bytes)) {
		free(parcel->bytes);
		return WIRE_UNREADABLE;
	}
	w->sent++;
	if (!w->carries) {
		free(parcel->bytes);
		return WIRE_SENT;
	}
	w->carries--;
	parcel->p.span = &parcel->span;
	parcel->p.span_count = p->payload_bytes != 0;
	to->tail++;
	return WIRE_SENT;
}

static inline int test_receive(struct wire *base, struct ib_packet *out)
{
	struct test_wire *w = (struct test_wire *)base;

	if (w->head == w->tail)
		return 0;
	*out = w->queue[w->head % QUEUED].p;
	return 1;
}

static inline void test_release(struct wire *base)
{
	struct test_wire *w = (struct test_wire *)base;

	free(w->queue[w->head++ % QUEUED].bytes);
}

static inline bool test_is_late(struct wire *w, uint32_t dest_qpn)
{
	(void)w;
	(void)dest_qpn;
	return false;
}

static const struct wire_ops test_wire_ops = {
	.name = "test", .send = test_send, .receive = test_receive, .release = test_release,
	.is_late = test_is_late, .packet_bytes_max = WIRE_BYTES,
};

/* --- where responders and keys live, as emu.c has it --- */

static inline void *home_of_take(void *ctx, enum home_kind kind, uint32_t number, size_t bytes)
{
	void *entry = share_take(ctx, kind == HOME_KEY ? SHARE_KEY : SHARE_RESPONDER, number);

	return entry ? entry : calloc(1, bytes);
}

static inline void home_of_give(void *ctx, void *entry)
{
	if (!share_owns(ctx, entry))
		free(entry);
}

static inline void home_of_quiesce(void *ctx)
{
	share_quiesce(ctx);
}

static inline void home_of_atomics_lock(void *ctx)
{
	share_atomics_lock(ctx);
}

static inline void home_of_atomics_unlock(void *ctx)
{
	share_atomics_unlock(ctx);
}

static inline int lease_qpns(void *ctx)
{
	return fabric_lease(ctx, FABRIC_QPN);
}

static inline int lease_keys(void *ctx)
{
	return fabric_lease(ctx, FABRIC_KEY);
}

static inline void end_share(struct end *n)
{
	static const size_t bytes[SHARE_KIND_COUNT] = {
		[SHARE_RESPONDER] = sizeof(struct rc_resp), [SHARE_KEY] = sizeof(struct key_entry),
	};
	static const uint8_t gid[1][16] = { { 0xfe, 0x80, [15] = 1 } };
	struct fabric_config config = { name, gid, 1 };

	cr_assert_eq(fabric_join(&config, &n->fabric), 0);
	snprintf(dir, sizeof dir, "%s", fabric_dir(n->fabric));
	cr_assert_eq(share_create(n->fabric, bytes, false, &n->share), 0);
	atomic_store(&n->share->header->live, 1);	/* no NIC thread vouches */
	n->w.dev.home = (struct home){
		.take = home_of_take, .give = home_of_give, .quiesce = home_of_quiesce,
		.atomics_lock = home_of_atomics_lock, .atomics_unlock = home_of_atomics_unlock,
		.ctx = n->share,
	};
	n->w.dev.keys.home = n->w.dev.home;
}

static inline void end_device(struct end *n)
{
	static int leases;
	struct emu_dev *dev = &n->w.dev;
	struct cq_init cq = { .cqe = 255, .cqe_bytes = 64 };

	pthread_mutex_init(&dev->lock, NULL);
	dev->profile = hw_profile_find(NULL);
	dev->why = &n->w.why;
	dev->now_ns = clock_read;
	dev->gid_count = 1;
	port_begin(dev);
	memcpy(dev->gid[0].raw, (uint8_t[16]){ 0xfe, 0x80, [15] = 1 }, 16);
	dev->gid[0].type = 2;
	cr_assert_eq(key_table_init(&dev->keys, lease_keys, n->fabric), 0);
	cr_assert_eq(numbers_init(&dev->qpns, 0, lease_qpns, n->fabric), 0);
	cr_assert_eq(numbers_init(&dev->cqns, 1, world_lease, &leases), 0);
	cr_assert_eq(numbers_init(&dev->pdns, 1, world_lease, &leases), 0);
	cr_assert_eq(numbers_init(&dev->srqns, 1, world_lease, &leases), 0);
	n->wire.base.ops = &test_wire_ops;
	n->wire.carries = UINT32_MAX;
	cr_assert_eq(engine_create(dev, &n->wire.base, n->share, &n->e), 0);
	cr_assert_eq(pd_create(dev, &n->w.pd), 0);
	keep(n->w.pd);
	cr_assert_eq(channel_create(EVENT_ASYNC_BYTES, &n->w.async, &n->w.async_fd), 0);
	cq.buf_addr = (uintptr_t)(n->w.cq_memory = world_memory(256 * 64));
	cq.db_addr = (uintptr_t)(n->w.cq_record = world_memory(64));
	memset(n->w.cq_memory, 0xff, 256 * 64);
	cr_assert_eq(cq_create(dev, &cq, &n->w.cq), 0);
}

enum { ALL_RIGHTS = KEY_LOCAL_WRITE | KEY_REMOTE_WRITE | KEY_REMOTE_READ | KEY_REMOTE_ATOMIC };

static inline struct emu_mr *end_register(struct end *n, void *at, size_t bytes, uint32_t rights)
{
	struct emu_mr *mr;

	cr_assert_eq(mr_create(&n->w.dev, n->w.pd, (uintptr_t)at, bytes, (uintptr_t)at, rights,
			       &mr), 0);
	return keep(mr);
}

static inline uint8_t *pages_new(size_t bytes)
{
	uint8_t *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert(at != MAP_FAILED);
	return at;
}

static inline struct end *end_new(void)
{
	struct end *n = keep(world_memory(sizeof *n));

	cr_assert_eq(mem_guard_init(), 0);
	end_share(n);
	end_device(n);
	side_init(&n->w, &n->w.a);
	keep(n->w.a.mr);
	keep(n->w.a.data);
	n->w.a.data = pages_new(BIG);
	n->w.a.mr = end_register(n, n->w.a.data, BIG, ALL_RIGHTS);
	return n;
}

/* --- a pair of them --- */

static struct end *a, *b;

static inline void ends_wire(struct end *from, struct end *to)
{
	side_connect(&from->w, &from->w.a, to->w.a.qp->qpn, 100);
	from->wire.to = to;
}

static inline void start(void)
{
	snprintf(name, sizeof name, "unit-direct-%d", (int)getpid());
	a = end_new();
	b = end_new();
	ends_wire(a, b);
	ends_wire(b, a);
	for (unsigned i = 0; i < BIG; i++)
		a->w.a.data[i] = (uint8_t)(i % 251 + 1);
}

/* Nothing of the fabric stays behind. */
static inline void stop(void)
{
	DIR *d = opendir(dir);
	struct dirent *entry;

	while (d && (entry = readdir(d)))
		unlinkat(dirfd(d), entry->d_name, 0);
	if (d)
		closedir(d);
	rmdir(dir);
}

/* From a's data to b's or back, the row's opcode, bytes and what else it wants. */
static inline void post(struct work_row row)
{
	if (!row.remote)
		row.remote = (uintptr_t)b->w.a.data;
	if (!row.rkey)
		row.rkey = b->w.a.mr->key;
	work_post(&a->w.a, row);
}

static inline void ring(struct end *n)
{
	engine_rang(n->e, n->w.a.qp->qpn);
}

static inline void settle(void)
{
	for (int i = 0; i < 200; i++) {
		engine_lend(b->e);
		engine_lend(a->e);
	}
}

/* Work is looked at, nothing is done: the next request of a, as its engine would ask for it. */
static inline struct ib_packet next_request(uint32_t bytes_max)
{
	struct emu_qp *qp = a->w.a.qp;
	struct ib_packet p;

	tp_doorbell(&a->e->tp, qp);
	cr_assert(rc_req_next(&a->e->tp, qp, bytes_max, &p), "no request");
	return p;
}

static inline bool execute(const struct ib_packet *p)
{
	return direct_execute(a->e, a->w.a.qp, p);
}

static inline void send_packet(const struct ib_packet *p)
{
	cr_assert_eq(test_send(&a->wire.base, p), WIRE_SENT);
	rc_req_sent(&a->e->tp, a->w.a.qp, p);
}

/* The next CQE if it is there: ownership by the rule of the driver. */
static inline const uint8_t *poll_cq(struct end *n)
{
	const uint8_t *cqe = n->w.cq_memory + (n->read % 256) * 64;

	if (cqe[63] >> 4 == 15 || (cqe[63] & 1) != (n->read / 256 & 1))
		return NULL;
	n->w.cq_record[0] = htobe32(++n->read & 0xffffff);
	return cqe;
}

/* The syndrome of the next completion, 0 for success, -1 for none. */
static inline int outcome(struct end *n)
{
	const uint8_t *cqe = poll_cq(n);

	return !cqe ? -1 : cqe[63] >> 4 == 13 || cqe[63] >> 4 == 14 ? cqe[55] : 0;
}

static inline bool is_all(const uint8_t *at, uint8_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (at[i] != value)
			return false;
	return true;
}

#define EXPECT_EXECUTED()                                                              \
	do {                                                                           \
		cr_assert_eq(a->wire.sent, 0, "%u packets", a->wire.sent);             \
		cr_assert_eq(outcome(a), 0, "no good completion, reason %d",           \
			     a->w.why.record[(a->w.why.made - 1) % WHY_KEPT].why);     \
		cr_assert_eq(outcome(a), -1);                                          \
	} while (0)

static inline uint64_t *word_of(struct end *n)
{
	return (uint64_t *)n->w.a.data;
}

static inline int take_to(enum qp_state state)
{
	struct qp_attr attr = { .state = state };

	return qp_modify(&b->w.dev, b->w.a.qp, &attr, A_STATE);
}
#endif
