/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writing a send WQE into the ring, one segment after the other.
 *
 * Segments are whole units of 16 bytes and the ring is whole blocks of 64, so only data within the
 * WQE can cross the end of the ring.  Control is written last, because it tells the length.
 *
 * Source: device-abi C.1 to C.3.
 */
#ifndef VERBS_WQE_H
#define VERBS_WQE_H
#include <errno.h>
#include <string.h>
#include "hw-models/hw.h"
#include "hw-models/mlx5_opcode.h"
#include "hw-models/mlx5_wqe.h"
#include "verbs/ah.h"
#include "verbs/queue.h"

#define WQE_UNITS_MAX	63u	/* the length has six bits */

struct wqe {
	uint8_t *ctrl, *at;
	uint8_t *prefix;		/* address vector or XRC segment; NULL: has none */
	uint32_t units;			/* written so far, control too */
	uint8_t opcode;
	uint8_t meaning;		/* enum ibv_wc_opcode of a UMR */
	uint8_t fence;			/* enum mlx5_fence */
	uint16_t stream;		/* of a DC initiator */
	__be32 imm;
};

static inline uint8_t *wqe_wrap(const struct vb_qp *qp, uint8_t *at)
{
	return __builtin_expect(at == qp->sq.at + (size_t)qp->sq.entries * VB_SQ_BLOCK_BYTES, 0) ?
	       qp->sq.at : at;
}

/* One unit, wherever the next one goes. */
static inline void wqe_put(const struct vb_qp *qp, struct wqe *w, const void *unit)
{
	memcpy(w->at, unit, MLX5_UNIT_BYTES);
	w->at = wqe_wrap(qp, w->at + MLX5_UNIT_BYTES);
	w->units++;
}

static inline void wqe_put_units(const struct vb_qp *qp, struct wqe *w, const void *from,
				 uint32_t units)
{
	for (uint32_t i = 0; i < units; i++)
		wqe_put(qp, w, (const uint8_t *)from + i * MLX5_UNIT_BYTES);
}

static inline void wqe_skip(const struct vb_qp *qp, struct wqe *w, uint32_t units)
{
	for (uint32_t i = 0; i < units; i++)
		w->at = wqe_wrap(qp, w->at + MLX5_UNIT_BYTES);
	w->units += units;
}

/* The next WQE of @qp; its prefix is left for wqe_prefix().  A UMR goes to nobody and has none. */
static inline void wqe_open(const struct vb_qp *qp, struct wqe *w, uint8_t opcode)
{
	uint8_t *ctrl = qp->sq.at +
		(size_t)(qp->sq.produced & (qp->sq.entries - 1)) * VB_SQ_BLOCK_BYTES;

	*w = (struct wqe){ .ctrl = ctrl, .at = ctrl + MLX5_UNIT_BYTES, .units = 1,
			   .opcode = opcode };
	if (qp->prefix_units && opcode != MLX5_OPCODE_UMR) {
		w->prefix = w->at;
		wqe_skip(qp, w, qp->prefix_units);
	}
}

/* Writes the prefix, of qp->prefix_units, if there is to be one. */
static inline void wqe_prefix(const struct vb_qp *qp, const struct wqe *w, const void *from)
{
	uint8_t *at = w->prefix;

	for (uint32_t i = 0; at && i < qp->prefix_units; i++) {
		memcpy(at, (const uint8_t *)from + i * MLX5_UNIT_BYTES, MLX5_UNIT_BYTES);
		at = wqe_wrap(qp, at + MLX5_UNIT_BYTES);
	}
}

static inline void wqe_raddr(const struct vb_qp *qp, struct wqe *w, uint64_t remote_addr,
			     uint32_t rkey)
{
	struct mlx5_raddr seg = { { { 0 } } };

	mlx5_raddr_set_remote_addr(&seg, remote_addr);
	mlx5_raddr_set_rkey(&seg, rkey);
	wqe_put(qp, w, &seg);
}

static inline void wqe_atomic(const struct vb_qp *qp, struct wqe *w, uint64_t swap_add,
			      uint64_t compare)
{
	struct mlx5_atomic seg = { { { 0 } } };

	mlx5_atomic_set_swap_add(&seg, swap_add);
	mlx5_atomic_set_compare(&seg, compare);
	wqe_put(qp, w, &seg);
}

/* A length of 0 would mean 2^31: such a piece is left out. */
static inline void wqe_data(const struct vb_qp *qp, struct wqe *w, uint64_t addr, uint32_t bytes,
			    uint32_t lkey)
{
	struct mlx5_data seg;

	if (__builtin_expect(!bytes, 0))
		return;
	seg.dw[0] = be32_of(bytes);
	seg.dw[1] = be32_of(lkey);
	mlx5_data_set_addr(&seg, addr);
	wqe_put(qp, w, &seg);
}

/* Any number of bytes of the program's; where the next ones go. */
static inline uint8_t *wqe_copy(const struct vb_qp *qp, uint8_t *at, const void *from,
				size_t bytes)
{
	size_t room = (size_t)(qp->sq.at + (size_t)qp->sq.entries * VB_SQ_BLOCK_BYTES - at);

	if (!bytes)
		return at;	/* whatever the pointer is */
	if (__builtin_expect(bytes >= room, 0)) {
		memcpy(at, from, room);
		from = (const uint8_t *)from + room;
		bytes -= room;
		at = qp->sq.at;
	}
	memcpy(at, from, bytes);
	return at + bytes;
}

/* Data within the WQE: begin, any number of pieces, end. */
struct wqe_inline { uint8_t *head, *at; uint32_t bytes, most; };

/* No more than the QP promises, and no more than fits behind what is written. */
static inline void wqe_inline_begin(const struct vb_qp *qp, const struct wqe *w,
				    struct wqe_inline *in)
{
	uint32_t room = (qp->wqe_units_max - w->units) * MLX5_UNIT_BYTES;
	uint32_t most = room ? room - MLX5_INLINE_HEADER_BYTES : 0;

	*in = (struct wqe_inline){
		.head = w->at, .at = w->at + MLX5_INLINE_HEADER_BYTES,
		.most = most < qp->max_inline_bytes ? most : qp->max_inline_bytes,
	};
}

/* ENOMEM: more than the QP was made for. */
static inline int wqe_inline_add(const struct vb_qp *qp, struct wqe_inline *in, const void *from,
				 size_t bytes)
{
	if (__builtin_expect(bytes > in->most - in->bytes, 0))
		return ENOMEM;
	in->bytes += (uint32_t)bytes;
	in->at = wqe_copy(qp, in->at, from, bytes);
	return 0;
}

/* Nothing is written for no bytes. */
static inline void wqe_inline_end(const struct vb_qp *qp, struct wqe *w,
				  const struct wqe_inline *in)
{
	struct mlx5_inline head = { { { 0 } } };
	uint32_t units = (in->bytes + MLX5_INLINE_HEADER_BYTES + MLX5_UNIT_BYTES - 1) /
			 MLX5_UNIT_BYTES;

	if (!in->bytes)
		return;
	mlx5_inline_set_is_inline(&head, 1);
	mlx5_inline_set_byte_count(&head, in->bytes);
	memcpy(in->head, &head, sizeof head);
	wqe_skip(qp, w, units);
}

/* The address vector of a request to @remote_qpn. */
static inline void wqe_address(const struct ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey,
			       struct mlx5_datagram *out)
{
	*out = vb_ah_of(ah)->av;
	mlx5_datagram_set_qkey(out, remote_qkey);
	mlx5_datagram_set_dest_qpn(out, remote_qpn & 0xffffff);
	mlx5_datagram_set_is_extended(out, 1);
}

/* The same of a DC initiator, to the target @dctn. */
static inline void wqe_dc_address(const struct ibv_ah *ah, uint32_t dctn, uint64_t access_key,
				  struct mlx5_datagram *out)
{
	*out = vb_ah_of(ah)->av;
	mlx5_datagram_set_qkey(out, (uint32_t)(access_key >> 32));
	mlx5_datagram_set_key_low(out, (uint32_t)access_key);
	mlx5_datagram_set_dest_qpn(out, dctn & 0xffffff);
	mlx5_datagram_set_is_extended(out, 1);
}

/* What is remembered of a complete WQE of @units: the device has not been told yet. */
static inline void wqe_remember(struct vb_qp *qp, uint64_t wr_id, uint8_t meaning, uint32_t units)
{
	uint32_t at = qp->sq.produced & (qp->sq.entries - 1);

	qp->sq.wr_id[at] = wr_id;
	qp->sq.head_at[at] = qp->sq.head++;
	qp->sq.meaning[at] = meaning;
	qp->sq.produced += (units * MLX5_UNIT_BYTES + VB_SQ_BLOCK_BYTES - 1) / VB_SQ_BLOCK_BYTES;
}

/* Completes the WQE and counts it. */
static inline void wqe_close(struct vb_qp *qp, const struct wqe *w, uint64_t wr_id,
			     unsigned send_flags)
{
	bool is_signaled = qp->signals_all || send_flags & IBV_SEND_SIGNALED;
	uint32_t fence = send_flags & IBV_SEND_FENCE ? MLX5_FENCE_SMALL_AND_READS : qp->fence;
	struct mlx5_ctrl ctrl;

	ctrl.dw[0] = be32_of((qp->sq.produced & 0xffff) << 8 | w->opcode);
	ctrl.dw[1] = be32_of(qp->ex.qp_base.qp_num << 8 | w->units);
	ctrl.dw[2] = be32_of((uint32_t)w->stream << 8 | fence << 5 |
			     (is_signaled ? MLX5_COMPLETION_ALWAYS << 2 : 0) |
			     (send_flags & IBV_SEND_SOLICITED ? 2u : 0));
	ctrl.dw[3].raw = w->imm;
	memcpy(w->ctrl, &ctrl, sizeof ctrl);
	qp->fence = w->fence;
	wqe_remember(qp, wr_id, w->meaning, w->units);
}

/* Tells the device of everything closed so far; @w is the last WQE. */
void vb_send_ring(struct vb_qp *qp, const struct wqe *w, bool is_alone_and_inline);

/* What the WQEs of umr.c take behind their control segment; a window has a list of keys, too. */
#define VB_UMR_BYTES	(sizeof(struct mlx5_umr_ctrl) + sizeof(struct mlx5_mkey_context))
#define VB_KLM_BYTES	(4 * sizeof(struct mlx5_klm))	/* one, padded to a block */

/* umr.c: windows and keys that the queue changes; the WQE is open.  0 or an errno. */
int vb_wqe_bind(struct vb_qp *qp, struct wqe *w, enum ibv_mw_type type, uint32_t old_rkey,
		uint32_t new_rkey, const struct ibv_mw_bind_info *info);
void vb_wqe_local_inv(struct vb_qp *qp, struct wqe *w, uint32_t rkey);
#endif
