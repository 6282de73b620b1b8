/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the rig's application does; see rig.h.
 */
#include <endian.h>
#include <sys/mman.h>
#include "hw-models/mlx5_opcode.h"
#include "hw-models/mlx5_wqe.h"
#include "tests/fuzz/rig.h"

void rig_twist(struct input *in, void *bytes, size_t count)
{
	for (unsigned left = take8(in) & 7; left; left--) {
		size_t at = take16(in) % count;

		((uint8_t *)bytes)[at] ^= take8(in);
	}
}

static void data_make(struct input *in, unsigned side, void *at)
{
	struct mlx5_data data = { 0 };
	uint8_t choice = take8(in);
	uint64_t addr;

	mlx5_data_set_byte_count(&data, choice & 1 ? take32(in) & INT32_MAX : 8u * (choice >> 1));
	mlx5_data_set_lkey(&data, rig_key(in, side, &addr));
	mlx5_data_set_addr(&data, addr);
	memcpy(at, &data, sizeof data);
}

/* Returns how many bytes it took. */
static size_t inline_make(struct input *in, uint8_t *at, size_t room)
{
	uint32_t bytes = take8(in), most = (uint32_t)(room - MLX5_INLINE_HEADER_BYTES);

	if (bytes > most)
		bytes = most;
	((struct mlx5_inline *)at)->dw[0] = be32_of(UINT32_C(1) << 31 | bytes);
	take(in, at + MLX5_INLINE_HEADER_BYTES, bytes);
	return (MLX5_INLINE_HEADER_BYTES + bytes + 15) / 16 * 16;
}

static uint8_t *pieces_make(struct input *in, unsigned side, uint8_t *at, uint8_t *end)
{
	uint8_t choice = take8(in);	/* 0: one piece of memory */

	for (unsigned left = (choice + 1u) & 3; left && at < end; left--) {
		if (choice & 1 << (2 + left)) {
			at += inline_make(in, at, (size_t)(end - at));
			continue;
		}
		data_make(in, side, at);
		at += sizeof(struct mlx5_data);
	}
	return at;
}

static uint8_t *result_make(struct input *in, unsigned side, uint8_t *at)
{
	data_make(in, side, at);
	if (!(take8(in) & 1))
		((struct mlx5_data *)at)->dw[0] = be32_of(8);
	return at + sizeof(struct mlx5_data);
}

static uint8_t *segment_make(struct input *in, unsigned side, uint8_t kind, uint8_t *at,
			     uint8_t *end)
{
	struct mlx5_raddr raddr = { 0 };
	uint64_t addr;

	switch (kind) {
	case SEG_RADDR:
		mlx5_raddr_set_rkey(&raddr, rig_key(in, !side, &addr));
		mlx5_raddr_set_remote_addr(&raddr, addr);
		memcpy(at, &raddr, sizeof raddr);
		return at + sizeof raddr;
	case SEG_ATOMIC:
		take(in, at, sizeof(struct mlx5_atomic));
		return at + sizeof(struct mlx5_atomic);
	case SEG_RESULT:
		return result_make(in, side, at);
	default:
		return pieces_make(in, side, at, end);
	}
}

/* What is done wrong with the control segment, by bit. */
enum {
	TWIST_OPCODE = 1, TWIST_DS = 2, TWIST_INDEX = 4, TWIST_QPN = 8, TWIST_OPMOD = 16,
	TWIST_BYTES = 32, TWIST_ROOM = 64, TWIST_SILENT = 128,
};

static void control_make(struct input *in, const struct side *s, uint8_t twist, uint8_t opcode,
			 uint8_t *wqe, const uint8_t *end)
{
	struct mlx5_ctrl c = { 0 };
	uint8_t flags = take8(in);

	mlx5_ctrl_set_opcode(&c, opcode);
	mlx5_ctrl_set_opmod(&c, twist & TWIST_OPMOD ? take8(in) : 0);
	mlx5_ctrl_set_wqe_index(&c, (s->posted_blocks + (twist & TWIST_INDEX ? take8(in) : 0u)) &
				0xffff);
	mlx5_ctrl_set_qpn(&c, s->qp->qpn ^ (twist & TWIST_QPN ? take16(in) : 0u));
	mlx5_ctrl_set_ds(&c, twist & TWIST_DS ? take8(in) & 63u : (uint32_t)(end - wqe) / 16);
	mlx5_ctrl_set_fence(&c, flags & 7);
	mlx5_ctrl_set_completion(&c, (flags >> 3 & 3) ^ MLX5_COMPLETION_ALWAYS);
	mlx5_ctrl_set_solicited(&c, flags >> 5 & 1);
	mlx5_ctrl_set_imm(&c, flags & 64 ? take32(in) : 0);
	memcpy(wqe, &c, sizeof c);
}

static uint8_t opcode_take(struct input *in, uint8_t twist)
{
	static const uint8_t runnable[] = {
		MLX5_OPCODE_RDMA_WRITE, MLX5_OPCODE_SEND, MLX5_OPCODE_RDMA_READ,
		MLX5_OPCODE_ATOMIC_FA, MLX5_OPCODE_ATOMIC_CS, MLX5_OPCODE_RDMA_WRITE_IMM,
		MLX5_OPCODE_SEND_IMM, MLX5_OPCODE_SEND_INVAL, MLX5_OPCODE_NOP,
	};
	uint8_t choice = take8(in);

	return twist & TWIST_OPCODE ? choice : runnable[choice % sizeof runnable];
}

static void blocks_write(struct side *s, const uint8_t *wqe, unsigned blocks)
{
	for (unsigned i = 0; i < blocks; i++)
		rig_write(s->queue + RIG_SQ_AT + s->posted_blocks++ % RIG_BLOCKS * HW_WQEBB_BYTES,
			  wqe + i * HW_WQEBB_BYTES, HW_WQEBB_BYTES);
	rig_write(&s->record[1], &(uint32_t){ htobe32(s->posted_blocks) }, 4);
}

void rig_do_post(struct input *in)
{
	uint8_t wqe[HW_WQE_BYTES_MAX + 16] = { 0 }, *end = wqe + sizeof(struct mlx5_ctrl);
	uint8_t choice = take8(in), twist = take8(in);
	unsigned side = choice & 1, blocks;
	struct side *s = &rig.side[side];
	uint8_t opcode = opcode_take(in, twist);
	const uint8_t *kind = mlx5_opcodes[opcode].segment;

	for (; *kind && *kind < SEG_READ_COUNT; kind++)
		end = segment_make(in, side, *kind, end, wqe + HW_WQE_BYTES_MAX);
	control_make(in, s, twist, opcode, wqe, end);
	if (twist & TWIST_BYTES)
		rig_twist(in, wqe, sizeof wqe);
	blocks = (unsigned)(end - wqe + HW_WQEBB_BYTES - 1) / HW_WQEBB_BYTES;
	if (!(twist & TWIST_ROOM) &&
	    (uint16_t)(s->posted_blocks - s->qp->req.sq_done) + blocks > RIG_BLOCKS)
		return;
	blocks_write(s, wqe, blocks);
	if (!(twist & TWIST_SILENT))
		engine_rang(engine, s->qp->qpn);
}

void rig_do_recv(struct input *in)
{
	uint8_t wqe[RIG_STRIDE] = { 0 };
	uint8_t choice = take8(in);
	unsigned side = choice & 1, pieces = ((choice >> 1) + 1u) & 3;
	struct side *s = &rig.side[side];

	for (unsigned i = 0; i <= pieces; i++) {
		struct mlx5_data *data = (struct mlx5_data *)wqe + i;

		if (i < pieces)
			data_make(in, side, data);
		else
			mlx5_data_set_lkey(data, HW_LKEY_END);
	}
	if (choice & 8)
		rig_twist(in, wqe, sizeof wqe);
	if (!(choice & 16) &&
	    (uint16_t)(s->posted_recvs - s->qp->answers.rq_consumed) >= RIG_RECVS)
		return;
	rig_write(s->queue + s->posted_recvs++ % RIG_RECVS * RIG_STRIDE, wqe, sizeof wqe);
	rig_write(&s->record[0], &(uint32_t){ htobe32(s->posted_recvs) }, 4);
	engine_posted_recv(engine, s->qp->qpn);
}

void rig_do_ring(struct input *in)
{
	uint8_t choice = take8(in);

	engine_rang(engine, choice & 2 ? take32(in) : rig.side[choice & 1].qp->qpn);
}

void rig_do_record(struct input *in)
{
	uint8_t choice = take8(in);
	uint32_t value = choice & 4 ? take32(in) : htobe32(take8(in));

	rig_write(&rig.side[choice & 1].record[choice >> 1 & 1], &value, sizeof value);
}

/* Into a queue, also into what has been posted already. */
void rig_do_scribble(struct input *in)
{
	uint8_t *queue = rig.side[take8(in) & 1].queue;
	uint8_t bytes[RIG_QUEUE_BYTES];

	memcpy(bytes, queue, sizeof bytes);
	rig_twist(in, bytes, sizeof bytes);
	rig_write(queue, bytes, sizeof bytes);
}

void rig_do_clock(struct input *in)
{
	uint64_t deadline_ns = engine_deadline_ns(engine);

	if (deadline_ns != UINT64_MAX && deadline_ns > clock_ns)
		clock_ns = deadline_ns;
	clock_ns -= take8(in) & 1;
	engine_lend(engine);
}

/* The application takes all completions, or says that it did. */
void rig_do_poll(struct input *in)
{
	uint8_t choice = take8(in);
	uint32_t index;

	rig_check(false);
	index = choice ? take32(in) : rig.cqes_seen & 0xffffff;
	rig.is_lying |= choice != 0;
	rig_write(&rig_memory->cq_record[0], &(uint32_t){ htobe32(index) }, 4);
}

void rig_do_arm(struct input *in)
{
	uint8_t choice = take8(in);
	uint32_t word = choice & 1 ? take32(in) : (uint32_t)rig.cq->arm_sn << 28 |
			(choice & 2) << 23 | (rig.cqes_seen & 0xffffff);

	rig_write(&rig_memory->cq_record[1], &(uint32_t){ htobe32(word) }, 4);
	engine_armed(engine, choice & 4 ? take32(in) : rig.cq->cqn);
}

/* Memory goes away while the device works, and comes back. */
void rig_do_hide(struct input *in)
{
	uint8_t choice = take8(in);
	uint8_t *page = (uint8_t *)rig_memory + choice % RIG_PAGES * RIG_PAGE;

	mprotect(page, RIG_PAGE, choice & 0x80 ? PROT_READ : PROT_NONE);
	for (unsigned i = 0; i < 2; i++)
		engine_rang(engine, rig.side[i].qp->qpn);
	if (choice & 0x40)
		rig_do_clock(in);
	mprotect(page, RIG_PAGE, PROT_READ | PROT_WRITE);
}
