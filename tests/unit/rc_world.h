/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two connected QPs of one device, RC unless asked otherwise, moved by hand: a test posts WQE
 * bytes, then steps packets one at a time, may lose any of them, and sees every completion.
 *
 * No engine, no clock, no thread: this is the transport alone.
 */
#ifndef TESTS_UNIT_RC_WORLD_H
#define TESTS_UNIT_RC_WORLD_H
#include <criterion/criterion.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "emu/mem/mem.h"
#include "emu/transport/rc.h"
#include "hw-models/mlx5_wqe.h"

enum { WORLD_BLOCKS = 64, WORLD_RECVS = 16, WORLD_STRIDE = 64, WORLD_BYTES = 1 << 20, SEEN = 256,
       WORLD_QKEY = 0x11111111 };

struct side {
	struct emu_qp *qp;
	uint8_t *queue;			/* receive ring, then send ring */
	uint32_t *record;
	uint16_t posted_blocks, posted_recvs;
	uint8_t *data;
	struct emu_mr *mr;
};

struct world {
	struct emu_dev dev;
	struct tp tp;
	struct why_ring why;
	struct emu_pd *pd;
	struct emu_cq *cq;
	struct emu_channel *async;
	int async_fd;
	uint8_t *cq_memory;
	uint32_t *cq_record;
	struct side a, b;
	struct hw_cqe seen[SEEN];
	struct emu_qp *seen_qp[SEEN];
	unsigned seen_count;
	unsigned packets;		/* that pump() moved */
	bool (*loses)(struct world *w, const struct ib_packet *p);
	uint32_t bytes_max;		/* of a super-packet */
	struct ib_packet last;
};

static struct world *world_current;

/*
 * A world is never taken down: each case is a process of its own, and what is looked at here
 * allocates nothing.  Leaks of objects and files are the business of t_*_obj and t_uv_*.
 */
const char *__asan_default_options(void) __attribute__((visibility("default")));
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

static void world_complete(struct tp *tp, struct emu_qp *qp, struct emu_cq *cq, struct hw_cqe *cqe)
{
	struct world *w = world_current;

	(void)tp;
	(void)cq;
	cr_assert_lt(w->seen_count, SEEN);
	w->seen_qp[w->seen_count] = qp;
	w->seen[w->seen_count++] = *cqe;
}

static const struct tp_ops world_ops = { .complete = world_complete };

static int world_lease(void *ctx)
{
	return ++*(int *)ctx;
}

static inline void *world_memory(size_t bytes)
{
	void *p = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);

	cr_assert(p);
	memset(p, 0, bytes);
	return p;
}

static inline void side_init_of(struct world *w, struct side *s, enum qp_type type)
{
	struct qp_init init = { .type = type, .pd = w->pd, .send_cq = w->cq, .recv_cq = w->cq,
		.async = w->async, .sq_blocks = WORLD_BLOCKS, .rq_count = WORLD_RECVS,
		.rq_stride = WORLD_STRIDE };

	s->queue = world_memory(WORLD_BLOCKS * 64 + WORLD_RECVS * WORLD_STRIDE);
	s->record = world_memory(64);
	s->data = world_memory(WORLD_BYTES);
	init.buf_addr = (uintptr_t)s->queue;
	init.db_addr = (uintptr_t)s->record;
	cr_assert_eq(qp_create(&w->dev, &init, &s->qp), 0);
	cr_assert_eq(mr_create(&w->dev, w->pd, (uintptr_t)s->data, WORLD_BYTES,
			       (uintptr_t)s->data, KEY_LOCAL_WRITE | KEY_REMOTE_WRITE |
			       KEY_REMOTE_READ | KEY_REMOTE_ATOMIC, &s->mr), 0);
}

static inline void side_init(struct world *w, struct side *s)
{
	side_init_of(w, s, QPT_RC);
}

/* Without what only RC has, and for datagrams what only connections have. */
static inline uint32_t side_mask(const struct side *s, uint32_t mask)
{
	uint32_t reliable = A_MAX_DEST_RD | A_MIN_RNR | A_TIMEOUT | A_RETRY | A_RNR | A_MAX_RD;
	uint32_t connected = A_ACCESS | A_AV | A_MTU | A_DEST_QPN | A_RQ_PSN;

	if (s->qp->type == QPT_RAW)
		return mask & (A_STATE | A_PORT);
	if (s->qp->type == QPT_UD)
		mask = (mask & ~connected) | (mask & A_ACCESS ? A_QKEY : 0);
	return s->qp->type == QPT_RC ? mask : mask & ~reliable;
}

static inline void side_connect(struct world *w, struct side *s, uint32_t dest_qpn, uint32_t psn)
{
	struct qp_attr at = { .state = QP_INIT, .port = 1, .qkey = WORLD_QKEY,
		.access = KEY_REMOTE_WRITE | KEY_REMOTE_READ | KEY_REMOTE_ATOMIC };

	cr_assert_eq(qp_modify(&w->dev, s->qp, &at,
			       side_mask(s, A_STATE | A_PKEY | A_PORT | A_ACCESS)), 0);
	at = (struct qp_attr){ .state = QP_RTR, .path_mtu = 3, .dest_qpn = dest_qpn, .rq_psn = psn,
		.max_dest_rd_atomic = 4, .min_rnr_timer = 12,
		.path = { .is_global = 1, .port = 1 } };
	memcpy(at.path.dgid, w->dev.gid[0].raw, 16);
	cr_assert_eq(qp_modify(&w->dev, s->qp, &at, side_mask(s, A_STATE | A_AV | A_MTU |
			       A_DEST_QPN | A_RQ_PSN | A_MAX_DEST_RD | A_MIN_RNR)), 0);
	at = (struct qp_attr){ .state = QP_RTS, .timeout = 14, .retry_cnt = 2, .rnr_retry = 1,
		.sq_psn = psn, .max_rd_atomic = 4 };
	cr_assert_eq(qp_modify(&w->dev, s->qp, &at, side_mask(s, A_STATE | A_TIMEOUT | A_RETRY |
			       A_RNR | A_SQ_PSN | A_MAX_RD)), 0);
}

static inline struct world *world_new_of(enum qp_type type, uint32_t psn)
{
	static int leases;
	struct world *w = world_memory(sizeof *w);
	struct emu_dev *dev = &w->dev;
	struct cq_init cq = { .cqe = 255, .cqe_bytes = 64 };

	world_current = w;
	cr_assert_eq(mem_guard_init(), 0);
	dev->profile = hw_profile_find(NULL);
	dev->why = &w->why;
	dev->gid_count = 1;
	port_begin(dev);
	memcpy(dev->gid[0].raw, (uint8_t[16]){ 0xfe, 0x80, [15] = 1 }, 16);
	dev->gid[0].type = 2;
	cr_assert_eq(key_table_init(&dev->keys, world_lease, &leases), 0);
	cr_assert_eq(numbers_init(&dev->qpns, 2, world_lease, &leases), 0);
	cr_assert_eq(numbers_init(&dev->cqns, 1, world_lease, &leases), 0);
	cr_assert_eq(numbers_init(&dev->pdns, 1, world_lease, &leases), 0);
	cr_assert_eq(numbers_init(&dev->srqns, 1, world_lease, &leases), 0);
	w->tp.dev = dev;
	w->tp.ops = &world_ops;
	w->bytes_max = 65536;
	cr_assert_eq(pd_create(dev, &w->pd), 0);
	cr_assert_eq(channel_create(EVENT_ASYNC_BYTES, &w->async, &w->async_fd), 0);
	cq.buf_addr = (uintptr_t)(w->cq_memory = world_memory(256 * 64));
	cq.async = w->async;
	cq.db_addr = (uintptr_t)(w->cq_record = world_memory(64));
	cr_assert_eq(cq_create(dev, &cq, &w->cq), 0);
	side_init_of(w, &w->a, type);
	side_init_of(w, &w->b, type);
	side_connect(w, &w->a, w->b.qp->qpn, psn);
	side_connect(w, &w->b, w->a.qp->qpn, psn);
	return w;
}

static inline struct world *world_new_at(uint32_t psn)
{
	return world_new_of(QPT_RC, psn);
}

static inline struct world *world_new(void)
{
	return world_new_at(100);
}

/* --- posting by hand --- */

struct work_row {
	uint8_t opcode, ds;		/* ds 0: counted */
	bool is_unsignaled, is_solicited;
	uint8_t fence;
	uint32_t imm, rkey, lkey;	/* lkey 0: the side's own */
	uint64_t remote, swap_add, compare;
	uint32_t bytes, offset;		/* local data */
	bool has_no_data;
	const struct mlx5_datagram *av;	/* UD */
};

static inline uint8_t *side_block(struct side *s, uint16_t block)
{
	return s->queue + WORLD_RECVS * WORLD_STRIDE + (block % WORLD_BLOCKS) * 64;
}

static inline void data_write(struct side *s, void *at, uint32_t bytes, uint32_t lkey,
			      uint32_t offset)
{
	struct mlx5_data d = { 0 };

	mlx5_data_set_byte_count(&d, bytes);
	mlx5_data_set_lkey(&d, lkey ? lkey : s->mr->key);
	mlx5_data_set_addr(&d, (uintptr_t)s->data + offset);
	memcpy(at, &d, sizeof d);
}

/* Write the WQE and move the record; one block, two with an address. */
static inline void work_post(struct side *s, struct work_row r)
{
	uint8_t *at = side_block(s, s->posted_blocks), *end = at + 16;
	struct mlx5_ctrl c = { 0 };
	bool has_raddr = r.opcode == 8 || r.opcode == 9 || (r.opcode >= 0x10 && r.opcode <= 0x12);

	memset(at, 0, r.av ? 128 : 64);
	if (r.av) {
		memcpy(end, r.av, sizeof *r.av);
		end += sizeof *r.av;
	}
	if (has_raddr) {
		struct mlx5_raddr a = { 0 };

		mlx5_raddr_set_remote_addr(&a, r.remote);
		mlx5_raddr_set_rkey(&a, r.rkey);
		memcpy(end, &a, 16);
		end += 16;
	}
	if (r.opcode == 0x11 || r.opcode == 0x12) {
		struct mlx5_atomic a = { 0 };

		mlx5_atomic_set_swap_add(&a, r.swap_add);
		mlx5_atomic_set_compare(&a, r.compare);
		memcpy(end, &a, 16);
		end += 16;
	}
	if (!r.has_no_data) {
		data_write(s, end, r.bytes, r.lkey, r.offset);
		end += 16;
	}
	mlx5_ctrl_set_wqe_index(&c, s->posted_blocks);
	mlx5_ctrl_set_opcode(&c, r.opcode);
	mlx5_ctrl_set_qpn(&c, s->qp->qpn);
	mlx5_ctrl_set_ds(&c, r.ds ? r.ds : (uint32_t)(end - at) / 16);
	mlx5_ctrl_set_completion(&c, r.is_unsignaled ? 0 : 2);
	mlx5_ctrl_set_solicited(&c, r.is_solicited);
	mlx5_ctrl_set_fence(&c, r.fence);
	mlx5_ctrl_set_imm(&c, r.imm);
	memcpy(at, &c, 16);
	s->posted_blocks = (uint16_t)(s->posted_blocks + (end - at + 63) / 64);
	s->record[1] = htobe32(s->posted_blocks);
}

static inline void recv_post(struct side *s, uint32_t bytes, uint32_t lkey, uint32_t offset)
{
	uint8_t *at = s->queue + (s->posted_recvs % WORLD_RECVS) * WORLD_STRIDE;
	struct mlx5_data end = { 0 };

	data_write(s, at, bytes, lkey, offset);
	mlx5_data_set_lkey(&end, HW_LKEY_END);
	memcpy(at + 16, &end, 16);
	s->record[0] = htobe32(++s->posted_recvs);
}

/* --- moving packets --- */

static inline struct emu_qp *world_peer(struct world *w, const struct emu_qp *qp)
{
	return qp == w->a.qp ? w->b.qp : w->a.qp;
}

/* The engine checks states before a packet reaches its QP. */
static inline void world_deliver(struct world *w, struct emu_qp *to, const struct ib_packet *p)
{
	w->packets++;
	w->last = *p;
	if (w->loses && w->loses(w, p))
		return;
	if (to->state == QP_RTS || to->state == QP_SQE)
		transport_of(to)->take(&w->tp, to, p);
}

static inline bool world_step_half(struct world *w, struct emu_qp *qp, const struct tp_half *h)
{
	struct ib_packet p;

	if (!h->next || !h->next(&w->tp, qp, w->bytes_max, &p))
		return false;
	world_deliver(w, world_peer(w, qp), &p);
	h->sent(&w->tp, qp, &p);
	return true;
}

static inline bool world_step(struct world *w, struct emu_qp *qp)
{
	const struct transport *t = transport_of(qp);

	return world_step_half(w, qp, &t->respond) || world_step_half(w, qp, &t->request);
}

/* Until nothing moves. */
static inline void pump(struct world *w)
{
	bool moves = true;

	tp_doorbell(&w->tp, w->a.qp);
	tp_doorbell(&w->tp, w->b.qp);
	for (int i = 0; moves; i++) {
		cr_assert_lt(i, 100000, "packets never end");
		moves = world_step(w, w->a.qp);
		moves |= world_step(w, w->b.qp);
	}
	for (int i = 0; i < 2; i++) {
		struct emu_qp *qp = i ? w->b.qp : w->a.qp;

		if (qp->work & QP_WORK_FLUSH)
			tp_flush(&w->tp, qp);
	}
}

/* The oldest completion not looked at yet. */
static inline struct hw_cqe world_cqe(struct world *w, const struct side *s)
{
	for (unsigned i = 0; i < w->seen_count; i++) {
		if (w->seen_qp[i] != s->qp)
			continue;
		w->seen_qp[i] = NULL;
		return w->seen[i];
	}
	cr_assert(false, "no completion");
	return (struct hw_cqe){ 0 };
}

static inline unsigned world_cqes(const struct world *w, const struct side *s)
{
	unsigned count = 0;

	for (unsigned i = 0; i < w->seen_count; i++)
		count += w->seen_qp[i] == s->qp;
	return count;
}

#define expect_status(w, side, status_)                                                          \
	do {                                                                                     \
		struct hw_cqe c_ = world_cqe(w, side);                                           \
		cr_assert_eq(c_.syndrome, hw_syndromes[status_].syndrome, "syndrome %#x",        \
			     c_.syndrome);                                                       \
		cr_assert_eq(c_.vendor_err, hw_syndromes[status_].vendor_err);                   \
	} while (0)

#define expect_good(w, side, kind_)                                                              \
	do {                                                                                     \
		struct hw_cqe c_ = world_cqe(w, side);                                           \
		cr_assert_eq(c_.kind, kind_, "kind %d syndrome %#x", c_.kind, c_.syndrome);      \
	} while (0)

#define expect_why(w, id) cr_assert(world_has_why(w, id), "no reason " #id)

static inline bool world_has_why(const struct world *w, enum why why)
{
	for (unsigned i = 0; i < WHY_KEPT && i < w->why.made; i++)
		if (w->why.record[i].why == why)
			return true;
	return false;
}
#endif
