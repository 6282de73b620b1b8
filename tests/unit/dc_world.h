/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DC initiators and targets of one device, moved by hand as in rc_world.h: the test plays the
 * engine, is the clock, and may lose, keep and forge packets.
 */
#ifndef TESTS_UNIT_DC_WORLD_H
#define TESTS_UNIT_DC_WORLD_H
#include "emu/transport/dc.h"
#include "tests/unit/rc_world.h"

enum {
	DC_SEND = 0x0a, DC_SEND_IMM = 0x0b, DC_SEND_INVAL = 0x01, DC_WRITE = 0x08,
	DC_WRITE_IMM = 0x09, DC_READ = 0x10, DC_CAS = 0x11, DC_ADD = 0x12, DC_NOP = 0x00,
	DC_RECVS = 16, DC_RECV_BYTES = 32, DC_KEPT = 64,
	DC_BLOCKS_EACH = 2,		/* of any WQE: the ring's count is even, so none wraps */
};
#define DC_KEY UINT64_C(0x1122334455667788)

struct initiator {
	struct side s;			/* its data is the target of answers, too */
};

struct target {
	struct emu_qp *qp;
	struct emu_srq *srq;
	uint8_t *queue, *data;
	uint32_t *record;
	uint16_t posted;
	struct emu_mr *mr;
};

struct dc_world {
	struct world *w;
	struct emu_qp *ready[64];	/* responders with work */
	unsigned ready_count, forgotten;
	bool holds_answers;		/* responders are not served */
	struct ib_packet kept[DC_KEPT];	/* all that was sent, without payload */
	unsigned kept_count;
};

static struct dc_world *dc_current;
static uint64_t dc_clock_ns = 1000;

static uint64_t dc_clock(void)
{
	return dc_clock_ns;
}

static void dc_kick(struct tp *tp, struct emu_qp *qp)
{
	struct dc_world *d = dc_current;

	(void)tp;
	if (qp->is_ready || !qp->work)
		return;
	cr_assert_lt(d->ready_count, 64);
	qp->is_ready = true;
	d->ready[d->ready_count++] = qp;
}

static void dc_forget(struct tp *tp, struct emu_qp *qp)
{
	struct dc_world *d = dc_current;

	(void)tp;
	d->forgotten++;
	qp->is_ready = false;
	for (unsigned i = 0; i < d->ready_count; i++)
		if (d->ready[i] == qp)
			d->ready[i--] = d->ready[--d->ready_count];
}

static const struct tp_ops dc_ops = {
	.complete = world_complete, .kick = dc_kick, .forget = dc_forget,
};

static inline struct dc_world *dc_world_new(void)
{
	struct dc_world *d = world_memory(sizeof *d);

	dc_current = d;
	d->w = world_new();
	d->w->tp.ops = &dc_ops;
	d->w->dev.now_ns = dc_clock;
	return d;
}

static inline struct emu_mr *dc_register(struct dc_world *d, void *at)
{
	struct emu_mr *mr;

	cr_assert_eq(mr_create(&d->w->dev, d->w->pd, (uintptr_t)at, WORLD_BYTES, (uintptr_t)at,
			       KEY_LOCAL_WRITE | KEY_REMOTE_WRITE | KEY_REMOTE_READ |
			       KEY_REMOTE_ATOMIC, &mr), 0);
	return mr;
}

/* --- their states --- */

static inline void initiator_connect(struct dc_world *d, struct initiator *n, uint32_t psn)
{
	struct qp_attr at = { .state = QP_INIT, .port = 1 };

	cr_assert_eq(qp_modify(&d->w->dev, n->s.qp, &at, A_STATE | A_PKEY | A_PORT), 0);
	at = (struct qp_attr){ .state = QP_RTR, .path_mtu = 3 };
	cr_assert_eq(qp_modify(&d->w->dev, n->s.qp, &at, A_STATE | A_MTU), 0);
	at = (struct qp_attr){ .state = QP_RTS, .timeout = 14, .retry_cnt = 2, .rnr_retry = 1,
		.sq_psn = psn, .max_rd_atomic = 4 };
	cr_assert_eq(qp_modify(&d->w->dev, n->s.qp, &at, A_STATE | A_TIMEOUT | A_RETRY | A_RNR |
			       A_SQ_PSN | A_MAX_RD), 0);
}

static inline void target_connect(struct dc_world *d, struct target *t)
{
	struct qp_attr at = { .state = QP_INIT, .port = 1,
		.access = KEY_REMOTE_WRITE | KEY_REMOTE_READ | KEY_REMOTE_ATOMIC };

	cr_assert_eq(qp_modify(&d->w->dev, t->qp, &at, A_STATE | A_PKEY | A_PORT | A_ACCESS), 0);
	at = (struct qp_attr){ .state = QP_RTR, .path_mtu = 3, .min_rnr_timer = 12,
		.path = { .is_global = 1, .port = 1 } };
	cr_assert_eq(qp_modify(&d->w->dev, t->qp, &at, A_STATE | A_MIN_RNR | A_AV | A_MTU), 0);
}

static inline struct initiator initiator_new(struct dc_world *d)
{
	struct initiator n = { .s = { .queue = world_memory(WORLD_BLOCKS * 64),
		.record = world_memory(64), .data = world_memory(WORLD_BYTES) } };
	struct qp_init init = { .type = QPT_DCI, .pd = d->w->pd, .send_cq = d->w->cq,
		.recv_cq = d->w->cq, .async = d->w->async, .sq_blocks = WORLD_BLOCKS,
		.buf_addr = (uintptr_t)n.s.queue, .db_addr = (uintptr_t)n.s.record };

	cr_assert_eq(qp_create(&d->w->dev, &init, &n.s.qp), 0);
	n.s.mr = dc_register(d, n.s.data);
	initiator_connect(d, &n, 0xfffffe);	/* wraps early */
	return n;
}

static inline struct target target_new(struct dc_world *d)
{
	struct target t = { .queue = world_memory(DC_RECVS * DC_RECV_BYTES),
		.record = world_memory(64), .data = world_memory(WORLD_BYTES) };
	struct srq_init srq = { .type = SRQ_BASIC, .pd = d->w->pd, .async = d->w->async,
		.buf_addr = (uintptr_t)t.queue, .db_addr = (uintptr_t)t.record,
		.max_wr = DC_RECVS - 1, .max_sge = 1 };
	struct qp_init init = { .type = QPT_DCT, .pd = d->w->pd, .send_cq = d->w->cq,
		.recv_cq = d->w->cq, .async = d->w->async, .dc_key = DC_KEY, .user_index = 7 };

	cr_assert_eq(srq_create(&d->w->dev, &srq, &t.srq), 0);
	init.srq = t.srq;
	cr_assert_eq(qp_create(&d->w->dev, &init, &t.qp), 0);
	t.mr = dc_register(d, t.data);
	target_connect(d, &t);
	return t;
}

/* --- posting by hand --- */

struct dc_work {
	uint8_t opcode;
	uint32_t bytes, offset, imm;
	uint32_t rkey;			/* 0: the target's */
	uint64_t add;
	uint64_t key_error;		/* xor-ed to the target's key */
	uint32_t qpn_error;
	uint8_t sgid_index;
	uint16_t dlid;			/* InfiniBand, and which of the own is the source */
	uint8_t path_bits;
	bool is_unsignaled;
};

static inline void datagram_write(const struct dc_world *d, void *at, const struct target *t,
				  const struct dc_work *r)
{
	uint64_t key = DC_KEY ^ r->key_error, high, low;
	struct mlx5_datagram a = { 0 };

	memcpy(&high, d->w->dev.gid[0].raw, 8);
	memcpy(&low, d->w->dev.gid[0].raw + 8, 8);
	mlx5_datagram_set_qkey(&a, (uint32_t)(key >> 32));
	mlx5_datagram_set_key_low(&a, (uint32_t)key);
	mlx5_datagram_set_is_extended(&a, 1);
	mlx5_datagram_set_dest_qpn(&a, t->qp->qpn ^ r->qpn_error);
	mlx5_datagram_set_sgid_index(&a, r->sgid_index);
	mlx5_datagram_set_udp_sport(&a, r->dlid);
	mlx5_datagram_set_path_bits(&a, r->path_bits);
	mlx5_datagram_set_rgid_high(&a, be64toh(high));
	mlx5_datagram_set_rgid_low(&a, be64toh(low));
	memcpy(at, &a, sizeof a);
}

static inline uint8_t *operands_write(uint8_t *end, const struct target *t,
				      const struct dc_work *r)
{
	if (r->opcode == DC_WRITE || r->opcode == DC_WRITE_IMM || r->opcode >= DC_READ) {
		struct mlx5_raddr a = { 0 };

		mlx5_raddr_set_remote_addr(&a, (uintptr_t)t->data + r->offset);
		mlx5_raddr_set_rkey(&a, r->rkey ? r->rkey : t->mr->key);
		memcpy(end, &a, sizeof a);
		end += sizeof a;
	}
	if (r->opcode == DC_CAS || r->opcode == DC_ADD) {
		struct mlx5_atomic a = { 0 };

		mlx5_atomic_set_swap_add(&a, r->add);
		memcpy(end, &a, sizeof a);
		end += sizeof a;
	}
	return end;
}

static inline void dc_post(struct dc_world *d, struct initiator *n, const struct target *t,
			   struct dc_work r)
{
	uint8_t *at = n->s.queue + (n->s.posted_blocks % WORLD_BLOCKS) * 64, *end = at + 16;
	struct mlx5_ctrl c = { 0 };

	memset(at, 0, DC_BLOCKS_EACH * 64);
	if (r.opcode != DC_NOP) {
		datagram_write(d, end, t, &r);
		end = operands_write(end + sizeof(struct mlx5_datagram), t, &r);
		data_write(&n->s, end, r.bytes, 0, r.offset);
		end += 16;
	} else {
		end = at + DC_BLOCKS_EACH * 64;
	}
	mlx5_ctrl_set_wqe_index(&c, n->s.posted_blocks);
	mlx5_ctrl_set_opcode(&c, r.opcode);
	mlx5_ctrl_set_qpn(&c, n->s.qp->qpn);
	mlx5_ctrl_set_ds(&c, (uint32_t)(end - at) / 16);
	mlx5_ctrl_set_completion(&c, r.is_unsignaled ? 0 : 2);
	mlx5_ctrl_set_imm(&c, r.imm);
	mlx5_ctrl_set_dci_stream(&c, n->s.posted_blocks);	/* any will do */
	memcpy(at, &c, 16);
	n->s.posted_blocks += DC_BLOCKS_EACH;
	n->s.record[1] = htobe32(n->s.posted_blocks);
}

static inline void dc_recv(struct target *t, uint32_t bytes, uint32_t offset)
{
	uint32_t index = t->posted++ % DC_RECVS;
	uint8_t *at = t->queue + index * DC_RECV_BYTES;
	struct mlx5_srq_next next = { 0 };
	struct mlx5_data data = { 0 };

	mlx5_srq_next_set_next_wqe_index(&next, (index + 1) % DC_RECVS);
	mlx5_data_set_byte_count(&data, bytes);
	mlx5_data_set_lkey(&data, t->mr->key);
	mlx5_data_set_addr(&data, (uintptr_t)t->data + offset);
	memcpy(at, &next, sizeof next);
	memcpy(at + sizeof next, &data, sizeof data);
	t->record[0] = htobe32(t->posted);
}

/* --- moving packets --- */

/* As the engine: by number and state. */
static inline void dc_deliver(struct dc_world *d, const struct ib_packet *p)
{
	struct emu_qp *to = qp_find(&d->w->dev, p->dest_qpn);
	enum qp_state state;

	if (!to)
		return;
	state = to->type == QPT_DCT ? QP_RTR : QP_RTS;
	if (to->state == state)
		cr_assert(transport_of(to)->take(&d->w->tp, to, p));
}

static inline void dc_send(struct dc_world *d, const struct ib_packet *p)
{
	d->w->packets++;
	d->w->last = *p;
	if (d->kept_count < DC_KEPT)
		d->kept[d->kept_count++] = *p;
	if (!d->w->loses || !d->w->loses(d->w, p))
		dc_deliver(d, p);
}

/* One packet of what this half has; false: none. */
static inline bool half_step(struct dc_world *d, struct emu_qp *qp, const struct tp_half *half)
{
	struct ib_packet p;

	memset(&p, 0xa5, sizeof p);	/* nobody relies on what was there */
	if (!half->next(&d->w->tp, qp, d->w->bytes_max, &p))
		return false;
	dc_send(d, &p);
	half->sent(&d->w->tp, qp, &p);
	return true;
}

static inline bool responder_step(struct dc_world *d)
{
	struct emu_qp *dcr;

	if (!d->ready_count || d->holds_answers)
		return false;
	dcr = d->ready[0];
	if (!half_step(d, dcr, &transport_of(dcr)->respond)) {
		dcr->is_ready = false;
		d->ready[0] = d->ready[--d->ready_count];
	}
	return true;
}

static inline bool initiator_step(struct dc_world *d, struct initiator *n)
{
	tp_doorbell(&d->w->tp, n->s.qp);
	if (half_step(d, n->s.qp, &transport_of(n->s.qp)->request))
		return true;
	if (n->s.qp->work & QP_WORK_FLUSH)
		tp_flush(&d->w->tp, n->s.qp);
	return false;
}

/* Until nothing moves. */
static inline void dc_pump(struct dc_world *d, struct initiator *n, unsigned count)
{
	bool moves = true;

	for (int i = 0; moves; i++) {
		cr_assert_lt(i, 100000, "packets never end");
		moves = responder_step(d);
		for (unsigned j = 0; j < count; j++)
			moves |= initiator_step(d, &n[j]);
	}
}

/* As above, and let the timers expire until everything is done. */
static inline void dc_finish(struct dc_world *d, struct initiator *n)
{
	dc_pump(d, n, 1);
	for (int i = 0; i < 20 && n->s.qp->req.sent_head != n->s.qp->req.sent_tail; i++) {
		rc_timer(&d->w->tp, n->s.qp);
		dc_pump(d, n, 1);
	}
}

/* --- completions --- */

/* The oldest that carries this number; a responder's are its target's. */
static inline struct hw_cqe dc_cqe(struct dc_world *d, enum hw_cqe_kind kind)
{
	struct world *w = d->w;

	for (unsigned i = 0; i < w->seen_count; i++)
		if (w->seen_qp[i]) {
			w->seen_qp[i] = NULL;
			cr_assert_eq(w->seen[i].kind, kind, "kind %d, syndrome %#x",
				     w->seen[i].kind, w->seen[i].syndrome);
			return w->seen[i];
		}
	cr_assert(false, "no completion");
	return (struct hw_cqe){ 0 };
}

static inline void dc_none(const struct dc_world *d)
{
	for (unsigned i = 0; i < d->w->seen_count; i++)
		cr_assert_null(d->w->seen_qp[i], "kind %d", d->w->seen[i].kind);
}

static inline void dc_failed(struct dc_world *d, enum hw_status status)
{
	struct hw_cqe c = dc_cqe(d, HW_CQE_REQ_ERR);

	cr_assert_eq(c.syndrome, hw_syndromes[status].syndrome, "syndrome %#x", c.syndrome);
}
#endif
