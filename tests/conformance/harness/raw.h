/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue bytes, through mlx5dv: reading error CQEs and writing WQEs by hand.
 *
 * A case that writes into a send queue must not use ibv_post_send() on it afterwards:
 * libmlx5 does not see what was written.  Layout: device-abi C.1, C.3, C.5.
 */
#ifndef CONFORMANCE_RAW_H
#define CONFORMANCE_RAW_H
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdint.h>

/* The bytes of the CQE polled last. */
void raw_cqe_last(struct ibv_cq *cq, uint8_t out[64]);

struct raw_sq {
	struct mlx5dv_qp qp;
	uint32_t qpn;
	uint16_t next;			/* block where the next WQE goes */
};

/* 0 or errno */
int raw_sq_open(struct raw_sq *sq, struct ibv_qp *qp);

struct raw_wqe {
	uint8_t opmod, opcode, ds, fm_ce_se;
	uint16_t index_error;		/* added to the right producer index */
	uint32_t qpn_error;		/* xor-ed to the right number */
	uint32_t units;			/* 16-byte units that are really written after ctrl */
	uint8_t body[15 * 16];
};

/* Write @wqe at the producer index; the ring's record is not touched. */
void raw_sq_write(struct raw_sq *sq, const struct raw_wqe *wqe);
/* Publish @blocks more blocks in the doorbell record, then ring (with the right QP number,
 * whatever the WQE says) if @rings. */
void raw_sq_publish(struct raw_sq *sq, uint16_t blocks, int rings);

/* Segments of a body; each returns the next unit. */
unsigned raw_seg_remote(struct raw_wqe *wqe, unsigned at, uint64_t addr, uint32_t rkey);
unsigned raw_seg_data(struct raw_wqe *wqe, unsigned at, uint64_t addr, uint32_t bytes,
		      uint32_t lkey);
unsigned raw_seg_inline(struct raw_wqe *wqe, unsigned at, uint32_t claimed_bytes);
#endif
