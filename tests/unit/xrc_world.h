/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An XRC initiator (side a) and a target (side b) of one device, and receive queues whose list is
 * written by hand.
 */
#ifndef TESTS_UNIT_XRC_WORLD_H
#define TESTS_UNIT_XRC_WORLD_H
#include <errno.h>
#include <sys/socket.h>
#include "emu/obj/event_desc.h"
#include "emu/obj/srq.h"
#include "tests/unit/rc_world.h"

enum { SEND = 0x0a, WRITE = 0x08, WRITE_IMM = 0x09, READ = 0x10, FADD = 0x12 };
enum { NO_EVENT = 99, WQES = 8, STRIDE = 64, ROOM = 4096 };

struct queue {
	struct emu_srq *srq;
	uint8_t *ring;
	uint32_t *record;
	uint16_t posted;
	uint32_t offset;		/* of its receives in b's data */
};

struct xrc {
	struct world *w;
	struct emu_xrcd *xrcd;
	struct emu_qp_open *open;	/* the creator's handle of b */
	struct queue one, two;
	uint8_t *remote;		/* what requests name; NULL: b's data */
};

static inline int event_at(struct world *w, struct emu_channel *channel, int fd)
{
	struct event_async event;
	ssize_t n;

	(void)w;
	channel_flush(channel);
	n = recv(fd, &event, sizeof event, MSG_DONTWAIT);
	return n == sizeof event ? (int)event.type : NO_EVENT;
}

static inline int event_of(struct xrc *x)
{
	return event_at(x->w, x->w->async, x->w->async_fd);
}

static inline struct emu_xrcd *domain_of(struct world *w, uint64_t ino)
{
	struct xrcd_init init = { .file = { ino != 0, 1, ino }, .creates = true };
	struct emu_xrcd *xrcd;

	cr_assert_eq(xrcd_open(&w->dev, &init, &xrcd), 0);
	return xrcd;
}

/* @pd, @xrcd NULL: the world's; a basic queue. */
static inline struct queue queue_new(struct world *w, struct emu_pd *pd, struct emu_xrcd *xrcd,
			      uint32_t offset)
{
	struct queue q = { .ring = world_memory(4096), .record = world_memory(64),
			   .offset = offset };
	struct srq_init init = { .type = xrcd ? SRQ_XRC : SRQ_BASIC, .pd = pd ? pd : w->pd,
		.cq = xrcd ? w->cq : NULL, .xrcd = xrcd, .async = w->async, .max_wr = WQES - 1,
		.max_sge = 3, .user_index = 77, .names_itself = xrcd,
		.buf_addr = (uintptr_t)q.ring, .db_addr = (uintptr_t)q.record };

	cr_assert_eq(srq_create(&w->dev, &init, &q.srq), 0);
	return q;
}

static inline void post(struct xrc *x, struct queue *q, uint32_t lkey)
{
	uint16_t index = q->posted % WQES;
	uint8_t *at = q->ring + index * STRIDE;
	struct mlx5_srq_next head = { 0 };
	struct mlx5_data end = { 0 };

	mlx5_srq_next_set_next_wqe_index(&head, (uint16_t)(index + 1) % WQES);
	memcpy(at, &head, sizeof head);
	data_write(&x->w->b, at + 16, ROOM, lkey, q->offset + index * ROOM);
	mlx5_data_set_lkey(&end, HW_LKEY_END);
	memcpy(at + 32, &end, sizeof end);
	*q->record = htobe32(++q->posted);
}

static inline void qp_connect(struct xrc *x, struct side *s, uint32_t dest_qpn)
{
	bool is_target = s->qp->type == QPT_XRC_TGT;
	struct qp_attr at = { .state = QP_INIT, .port = 1,
		.access = KEY_REMOTE_WRITE | KEY_REMOTE_READ | KEY_REMOTE_ATOMIC };

	cr_assert_eq(qp_modify(&x->w->dev, s->qp, &at, A_STATE | A_PKEY | A_PORT | A_ACCESS), 0);
	at = (struct qp_attr){ .state = QP_RTR, .path_mtu = 3, .dest_qpn = dest_qpn, .rq_psn = 100,
		.max_dest_rd_atomic = 4, .min_rnr_timer = 12,
		.path = { .is_global = 1, .port = 1 } };
	memcpy(at.path.dgid, x->w->dev.gid[0].raw, 16);
	cr_assert_eq(qp_modify(&x->w->dev, s->qp, &at, A_STATE | A_AV | A_MTU | A_DEST_QPN |
			       A_RQ_PSN | (is_target ? A_MAX_DEST_RD | A_MIN_RNR : 0)), 0);
	at = (struct qp_attr){ .state = QP_RTS, .timeout = 14, .retry_cnt = 2, .rnr_retry = 1,
		.sq_psn = 100, .max_rd_atomic = 4 };
	cr_assert_eq(qp_modify(&x->w->dev, s->qp, &at, A_STATE | A_TIMEOUT | A_SQ_PSN |
			       (is_target ? 0 : A_RETRY | A_RNR | A_MAX_RD)), 0);
}

static inline void initiator_make(struct xrc *x)
{
	struct side *s = &x->w->a;
	struct qp_init init = { .type = QPT_XRC_INI, .pd = x->w->pd, .send_cq = x->w->cq,
		.async = x->w->async, .sq_blocks = WORLD_BLOCKS };

	s->queue = world_memory(WORLD_BLOCKS * 64 + WORLD_RECVS * WORLD_STRIDE);
	s->record = world_memory(64);
	init.buf_addr = (uintptr_t)side_block(s, 0);
	init.db_addr = (uintptr_t)s->record;
	cr_assert_eq(qp_create(&x->w->dev, &init, &s->qp), 0);
}

static inline void target_make(struct xrc *x)
{
	struct qp_init init = { .type = QPT_XRC_TGT, .xrc_domain = x->xrcd->domain };
	struct qp_open_init open = { x->xrcd, x->w->async, 1 };

	cr_assert_eq(qp_create(&x->w->dev, &init, &x->w->b.qp), 0);
	cr_assert_eq(qp_open(&x->w->dev, x->w->b.qp, &open, &x->open), 0);
}

static inline int shared_hold(void *ctx, uint64_t name, bool creates, bool is_exclusive)
{
	(void)ctx;
	(void)creates;
	(void)is_exclusive;
	return name != 0;
}

static inline void shared_drop(void *ctx, int token)
{
	(void)ctx;
	(void)token;
}

/* @is_shared: other processes have the domain too. */
static inline struct xrc xrc_new_of(bool is_shared)
{
	struct xrc x = { .w = world_new() };

	if (is_shared)
		x.w->dev.xrc_registry = (struct xrc_registry){ shared_hold, shared_drop, NULL };
	x.xrcd = domain_of(x.w, 1);
	initiator_make(&x);
	target_make(&x);
	qp_connect(&x, &x.w->a, x.w->b.qp->qpn);
	qp_connect(&x, &x.w->b, x.w->a.qp->qpn);
	x.one = queue_new(x.w, NULL, x.xrcd, 0);
	x.two = queue_new(x.w, NULL, x.xrcd, 64 * 1024);
	return x;
}

static inline struct xrc xrc_new(void)
{
	return xrc_new_of(false);
}

/* Control, XRC, then what the operation has; one block. */
static inline void request(struct xrc *x, uint8_t opcode, uint32_t srqn, uint32_t bytes,
			   uint32_t rkey)
{
	uint8_t *to = x->remote ? x->remote : x->w->b.data;
	struct side *s = &x->w->a;
	uint8_t *at = side_block(s, s->posted_blocks), *end = at + 32;
	struct mlx5_ctrl c = { 0 };
	struct mlx5_xrc queue = { 0 };

	memset(at, 0, 64);
	mlx5_xrc_set_srqn(&queue, srqn);
	memcpy(at + 16, &queue, sizeof queue);
	if (opcode != SEND) {
		struct mlx5_raddr remote = { 0 };

		mlx5_raddr_set_remote_addr(&remote, (uintptr_t)to);
		mlx5_raddr_set_rkey(&remote, rkey);
		memcpy(end, &remote, sizeof remote);
		end += 16;
	}
	if (opcode == FADD) {		/* two blocks */
		struct mlx5_atomic add = { 0 };

		mlx5_atomic_set_swap_add(&add, 5);
		memcpy(end, &add, sizeof add);
		end = side_block(s, (uint16_t)(s->posted_blocks + 1));
	}
	data_write(s, end, bytes, 0, 0);
	mlx5_ctrl_set_wqe_index(&c, s->posted_blocks);
	mlx5_ctrl_set_opcode(&c, opcode);
	mlx5_ctrl_set_qpn(&c, s->qp->qpn);
	mlx5_ctrl_set_ds(&c, opcode == FADD ? 5 : opcode == SEND ? 3 : 4);
	mlx5_ctrl_set_completion(&c, 2);
	memcpy(at, &c, sizeof c);
	s->posted_blocks = (uint16_t)(s->posted_blocks + (opcode == FADD ? 2 : 1));
	s->record[1] = htobe32(s->posted_blocks);
}

static inline void expect_receive(struct xrc *x, const struct queue *q, uint16_t index)
{
	struct hw_cqe c = world_cqe(x->w, &x->w->b);

	cr_assert(c.kind == HW_CQE_RECV || c.kind == HW_CQE_RECV_WRITE_IMM, "kind %d", c.kind);
	cr_assert_eq(c.wqe_counter, index);
	cr_assert_eq(c.src_qpn, q->srq->srqn);
}
#endif
