/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the rig's application does; see rig.h.
 */
#include <endian.h>
#include <sys/mman.h>
#include "emu/engine/engine_local.h"
#include "emu/obj/srq.h"
#include "hw-models/ib_packet.h"
#include "hw-models/mlx5_opcode.h"
#include "hw-models/mlx5_wqe.h"
#include "tests/fuzz/rig.h"

static uint32_t umr_window;		/* that the UMR being made is about */

void rig_twist(struct input *in, void *bytes, size_t count)
{
	for (unsigned left = take8(in) & 7; left; left--) {
		size_t at = take16(in) % count;

		((uint8_t *)bytes)[at] ^= take8(in);
	}
}

/* Only the null key has more memory than the rig, and thousands of packets teach nothing new. */
static void data_make(struct input *in, unsigned side, void *at)
{
	struct mlx5_data data = { 0 };
	uint8_t choice = take8(in);
	uint32_t bytes = choice & 1 ? take32(in) & INT32_MAX : 8u * (choice >> 1), key;
	uint64_t addr;

	key = rig_key(in, side, &addr);
	mlx5_data_set_byte_count(&data, key == KEY_NULL ? bytes & 0xffff : bytes);
	mlx5_data_set_lkey(&data, key);
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

/* --- changes of keys --- */

/* What is done wrong with the binding of a window, by bit. */
enum {
	UMR_FREES = 1, UMR_TWIST_MASK = 2, UMR_TWIST_FLAGS = 4, UMR_TWIST_QPN = 8,
	UMR_TWIST_LIST = 16, UMR_TWIST_BYTES = 32, UMR_TWIST_TAG = 64, UMR_TWIST_START = 128,
};

static const uint64_t umr_rights =
	UMR_LOCAL_WRITE | UMR_REMOTE_READ | UMR_REMOTE_WRITE | UMR_ATOMIC;

static void umr_ctrl_make(struct input *in, uint8_t twist, bool has_qpn, struct mlx5_umr_ctrl *out)
{
	uint64_t mask = UMR_TAG | UMR_FREE | (has_qpn ? UMR_QPN : 0);
	unsigned flags = MLX5_UMR_INLINE | MLX5_UMR_TRANSLATION_OFFSET, units = 0;

	if (!(twist & UMR_FREES)) {
		mask |= UMR_LEN | UMR_START | umr_rights;
		flags |= has_qpn ? MLX5_UMR_CHECK_FREE : 0u;
		units = 4;
	} else {
		flags |= MLX5_UMR_CHECK_QPN;
	}
	mlx5_umr_ctrl_set_flags(out, twist & UMR_TWIST_FLAGS ? take8(in) : flags);
	mlx5_umr_ctrl_set_klm_octowords(out, twist & UMR_TWIST_LIST ? take16(in) : units);
	mlx5_umr_ctrl_set_mkey_mask(out, mask ^ (twist & UMR_TWIST_MASK ? take64(in) : 0));
}

static void umr_mkey_make(struct input *in, uint8_t twist, const struct emu_mw *mw, uint32_t qpn,
			  struct mlx5_mkey_context *out)
{
	uint8_t rights = take8(in);

	mlx5_mkey_context_set_free(out, twist & UMR_FREES);
	mlx5_mkey_context_set_access(out, (MLX5_MKEY_REMOTE_READ | MLX5_MKEY_REMOTE_WRITE |
					   MLX5_MKEY_ATOMIC) ^ rights);
	mlx5_mkey_context_set_qpn(out, twist & UMR_TWIST_QPN ? take32(in) & 0xffffff :
				  mw && mw->type == MW_TYPE_2 ? qpn : 0xffffff);
	mlx5_mkey_context_set_variant(out, twist & UMR_TWIST_TAG ? take8(in) :
				      ((mw ? mw->key : 0) + 1) & 0xff);
}

/* Of the whole UMR: what to do, to which key, and the one piece that it shows. */
static uint8_t *umr_make(struct input *in, unsigned side, uint8_t *at, uint8_t *end)
{
	struct { struct mlx5_umr_ctrl umr; struct mlx5_mkey_context mkey; struct mlx5_klm klm[4]; }
		out = { 0 };
	uint8_t twist = take8(in), size = take8(in);
	uint32_t bytes = size ? 8u * size : RIG_PAGE;
	struct emu_mw *mw;
	uint64_t addr;
	size_t used = sizeof out;

	umr_window = rig_window(in, side, &mw);
	umr_ctrl_make(in, twist, mw && mw->type == MW_TYPE_2, &out.umr);
	umr_mkey_make(in, twist, mw, rig.side[side].qp->qpn, &out.mkey);
	if (twist & UMR_FREES) {
		used -= sizeof out.klm;
	} else {
		mlx5_klm_set_mkey(&out.klm[0], rig_key(in, side, &addr));
		mlx5_klm_set_addr(&out.klm[0], addr);
		mlx5_klm_set_byte_count(&out.klm[0], bytes);
		mlx5_mkey_context_set_len(&out.mkey,
					  bytes + (twist & UMR_TWIST_BYTES ? take8(in) : 0u));
		mlx5_mkey_context_set_start_addr(&out.mkey,
						 twist & UMR_TWIST_START ? take64(in) : addr);
	}
	assert(used <= (size_t)(end - at));
	memcpy(at, &out, used);
	return at + used;
}

/* --- work requests --- */

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
	case SEG_MASKED:
		take(in, at, 2 * sizeof(struct mlx5_atomic));
		return at + 2 * sizeof(struct mlx5_atomic);
	case SEG_ATOMIC:
		take(in, at, sizeof(struct mlx5_atomic));
		return at + sizeof(struct mlx5_atomic);
	case SEG_RESULT:
		return result_make(in, side, at);
	case SEG_UMR:
		return umr_make(in, side, at, end);
	default:
		return pieces_make(in, side, at, end);
	}
}

/* The queue of the peer that a request of XRC names. */
static uint8_t *queue_make(struct input *in, uint8_t *at)
{
	struct mlx5_xrc xrc = { 0 };
	uint8_t choice = take8(in);

	mlx5_xrc_set_srqn(&xrc, choice ? choice : rig.shared.srq->srqn);
	memcpy(at, &xrc, sizeof xrc);
	return at + sizeof xrc;
}

/* Where a datagram goes: the other QP, with what the input says against it. */
static uint8_t *datagram_make(struct input *in, const struct side *s, uint8_t *at)
{
	struct mlx5_datagram av = { 0 };
	uint8_t choice = take8(in);

	mlx5_datagram_set_is_extended(&av, !(choice & 1));
	mlx5_datagram_set_qkey(&av, choice & 2 ? take32(in) : RIG_QKEY);
	mlx5_datagram_set_dest_qpn(&av, choice & 4 ? take32(in) & 0xffffff : s->peer_qpn);
	mlx5_datagram_set_sgid_index(&av, choice & 8 ? take8(in) & 3 : 0);
	mlx5_datagram_set_has_grh(&av, !rig.config.goes_by_lid ^ (choice >> 4 & 1));
	mlx5_datagram_set_udp_sport(&av, s->peer_qpn == rig.side[0].qp->qpn ||
				    s->peer_qpn == rig.side[1].qp->qpn ? RIG_LID : RIG_PEER_LID);
	mlx5_datagram_set_tclass(&av, choice);
	mlx5_datagram_set_hop_limit(&av, 64);
	memcpy((uint8_t *)&av + 32, s->peer_gid, sizeof s->peer_gid);
	if (choice & 32)
		rig_twist(in, &av, sizeof av);
	if (choice & 64) {
		mlx5_datagram_set_dest_qpn(&av, IB_MULTICAST_QPN);
		rig_group(in, (uint8_t *)&av + 32);
	}
	memcpy(at, &av, sizeof av);
	return at + (choice & 1 ? MLX5_DATAGRAM_COMPACT_BYTES : sizeof av);
}

/* What a transport puts in front. */
static uint8_t *way_make(struct input *in, const struct side *s, uint8_t *at)
{
	if (rig_is(QPT_XRC_INI))
		return queue_make(in, at);
	return rig_is(QPT_UD) || rig_is(QPT_DCI) ? datagram_make(in, s, at) : at;
}

/* What is done wrong with the control segment, by bit. */
enum {
	TWIST_OPCODE = 1, TWIST_DS = 2, TWIST_INDEX = 4, TWIST_QPN = 8, TWIST_OPMOD = 16,
	TWIST_BYTES = 32, TWIST_ROOM = 64, TWIST_SILENT = 128,
};

/* What stands there: the key that a UMR changes, or one of the peer's to be invalidated. */
static uint32_t imm_take(struct input *in, const struct side *s, uint8_t opcode)
{
	struct emu_mw *mw;

	if (opcode == MLX5_OPCODE_UMR)
		return umr_window;
	return opcode == MLX5_OPCODE_SEND_INVAL ? rig_window(in, s == &rig.side[0], &mw) : 0;
}

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
	mlx5_ctrl_set_imm(&c, flags & 64 ? take32(in) : imm_take(in, s, opcode));
	memcpy(wqe, &c, sizeof c);
}

static uint8_t opcode_take(struct input *in, uint8_t twist)
{
	static const uint8_t runnable[] = {
		MLX5_OPCODE_RDMA_WRITE, MLX5_OPCODE_SEND, MLX5_OPCODE_RDMA_READ,
		MLX5_OPCODE_ATOMIC_FA, MLX5_OPCODE_ATOMIC_CS, MLX5_OPCODE_RDMA_WRITE_IMM,
		MLX5_OPCODE_SEND_IMM, MLX5_OPCODE_SEND_INVAL, MLX5_OPCODE_NOP, MLX5_OPCODE_UMR,
		MLX5_OPCODE_ATOMIC_MASKED_CS, MLX5_OPCODE_ATOMIC_MASKED_FA,
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

	if (!s->qp->sq_blocks)
		return;
	if (opcode != MLX5_OPCODE_UMR && opcode != MLX5_OPCODE_NOP)
		end = way_make(in, s, end);
	for (; *kind; kind++) {
		end = segment_make(in, side, *kind, end, wqe + HW_WQE_BYTES_MAX);
		if (*kind == SEG_UMR)
			break;			/* the others were made with it */
	}
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

static void pieces_of_recv_make(struct input *in, unsigned side, uint8_t choice, uint8_t *at,
				size_t room)
{
	unsigned pieces = ((choice >> 1) + 1u) & 3;

	for (unsigned i = 0; i <= pieces && (i + 1) * sizeof(struct mlx5_data) <= room; i++) {
		struct mlx5_data *data = (struct mlx5_data *)at + i;

		if (i < pieces)
			data_make(in, side, data);
		else
			mlx5_data_set_lkey(data, HW_LKEY_END);
	}
}

/* The entry at the head of the list, which names the one behind it. */
static void shared_post(struct input *in, uint8_t choice)
{
	struct rig_shared *s = &rig.shared;
	uint8_t wqe[RIG_STRIDE] = { 0 };
	struct mlx5_srq_next *head = (void *)wqe;

	mlx5_srq_next_set_next_wqe_index(head, s->next[s->head]);
	pieces_of_recv_make(in, choice & 1, choice, wqe + sizeof *head, sizeof wqe - sizeof *head);
	if (choice & 8) {
		rig_twist(in, wqe, sizeof wqe);
		s->is_twisted = true;
	}
	if (s->posted >= RIG_SHARED - 1 && !(choice & 16))
		return;
	s->is_twisted |= s->is_posted[s->head];
	s->is_posted[s->head] = true;
	s->posted++;
	rig_write(rig_memory->shared[s->head], wqe, sizeof wqe);
	s->head = s->next[s->head];
	rig_write(&rig_memory->shared_record[0],
		  &(uint32_t){ htobe32(be32toh(rig_memory->shared_record[0]) + 1) }, 4);
}

void rig_do_recv(struct input *in)
{
	uint8_t wqe[RIG_STRIDE] = { 0 };
	uint8_t choice = take8(in);
	struct side *s = &rig.side[choice & 1];

	if (rig.shared.srq) {
		shared_post(in, choice);
		return;
	}
	pieces_of_recv_make(in, choice & 1, choice, wqe, sizeof wqe);
	if (choice & 8)
		rig_twist(in, wqe, sizeof wqe);
	if (!(choice & 16) &&
	    (uint16_t)(s->posted_recvs - s->qp->answers.rq_consumed) >= RIG_RECVS)
		return;
	rig_write(s->queue + s->posted_recvs++ % RIG_RECVS * RIG_STRIDE, wqe, sizeof wqe);
	rig_write(&s->record[0], &(uint32_t){ htobe32(s->posted_recvs) }, 4);
	engine_posted_recv(engine, s->qp->qpn);
}

/* The limit of the shared queue, or its bytes, or its record. */
void rig_do_shared(struct input *in)
{
	struct rig_shared *s = &rig.shared;
	uint8_t choice = take8(in), bytes[sizeof rig_memory->shared];
	uint32_t record;

	if (!s->srq)
		return;
	if (choice & 0x80 && s->xrcd) {
		rig_shared_renew();
		return;
	}
	if (choice & 1) {
		srq_modify(&device, s->srq, take8(in) & 31, SRQ_LIMIT ^ (choice & 2));
		return;
	}
	s->is_twisted = true;
	if (choice & 2) {
		record = take32(in);
		rig_write(&rig_memory->shared_record[0], &record, sizeof record);
		return;
	}
	memcpy(bytes, rig_memory->shared, sizeof bytes);
	rig_twist(in, bytes, sizeof bytes);
	rig_write(rig_memory->shared, bytes, sizeof bytes);
}

/* Bit 2: of more than the device could note, so that it looks at all. */
void rig_do_ring(struct input *in)
{
	uint8_t choice = take8(in);

	if (choice & 4) {
		engine->doorbells.has_overflowed = true;
		engine_lend(engine);
		return;
	}
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
