/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Ethernet segment of a WQE: what the device computes of a frame, and the headers that it wants
 * to find there rather than in the program's memory.
 *
 * The header begins in the last two bytes of the first unit and may cross the end of the ring.
 *
 * Source: device-abi C.3.7.
 */
#ifndef VERBS_WQE_ETH_H
#define VERBS_WQE_ETH_H
#include "verbs/wqe.h"

#define ETH_HEADER_BYTES	18u	/* two addresses, a VLAN tag, the type */
#define ETH_TSO_HEADER_MIN	14u	/* the same without a tag */
#define ETH_HEADER_AT		(MLX5_UNIT_BYTES - MLX5_ETH_START_BYTES)

/* A header of which that much is still to come. */
struct wqe_header { uint8_t *at; uint32_t left; };

/* Leaves room for a header of @bytes.  EINVAL: nobody here computes checksums. */
static inline int wqe_eth_open(const struct vb_qp *qp, struct wqe *w, unsigned send_flags,
			       uint32_t bytes, uint16_t mss, struct wqe_header *header)
{
	struct mlx5_eth seg[2] = { { { { 0 } } } };	/* both are in the first block */

	if (send_flags & IBV_SEND_IP_CSUM) {
		if (!qp->eth.has_checksums)
			return EINVAL;
		mlx5_eth_set_cs_flags(seg, MLX5_ETH_L3 | MLX5_ETH_L4);
	}
	mlx5_eth_set_mss(seg, mss);
	mlx5_eth_set_header_bytes(seg, bytes);
	memcpy(w->at, seg, sizeof seg);
	header->at = w->at + ETH_HEADER_AT;
	header->left = bytes;
	wqe_skip(qp, w, (ETH_HEADER_AT + bytes + MLX5_UNIT_BYTES - 1) / MLX5_UNIT_BYTES);
	return 0;
}

/* The header begins with, or goes on in, a piece of @bytes; how many of them it took. */
static inline uint32_t wqe_header_take(const struct vb_qp *qp, struct wqe_header *header,
				       const void *from, size_t bytes)
{
	uint32_t taken = bytes < header->left ? (uint32_t)bytes : header->left;

	header->at = wqe_copy(qp, header->at, from, taken);
	header->left -= taken;
	return taken;
}

/* The whole of a header that each of the frames gets.  EINVAL */
static inline int wqe_tso_open(const struct vb_qp *qp, struct wqe *w, unsigned send_flags,
			       const void *header, uint16_t bytes, uint16_t mss)
{
	struct wqe_header to;
	int error;

	if (bytes < ETH_TSO_HEADER_MIN || bytes > qp->eth.tso_header_max)
		return EINVAL;
	error = wqe_eth_open(qp, w, send_flags, bytes, mss, &to);
	if (!error)
		wqe_header_take(qp, &to, header, bytes);
	return error;
}
#endif
