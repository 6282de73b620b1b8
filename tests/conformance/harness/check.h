/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What must be true of a completion.
 *
 * Failures name the case's row, so that a table's case says which line broke.  The bytes
 * of an error CQE are compared with expected-statuses.md whenever they were kept.
 */
#ifndef CONFORMANCE_CHECK_H
#define CONFORMANCE_CHECK_H
#include <criterion/criterion.h>
#include "pair.h"

struct expected_error {
	enum ibv_wc_status status;
	uint8_t syndrome;
	uint8_t vendor_send[3];		/* bytes that may stand there, 0 ends the list */
	uint8_t vendor_recv[3];
};
/* NULL: no error CQE has this status. */
const struct expected_error *expected_error_find(enum ibv_wc_status status);

/* A success of this kind, in order. */
void check_ok(const char *row, const struct done *d, uint64_t wr_id, enum ibv_wc_opcode opcode);
/* A failure, and the bytes behind it.  @wqe_opcode: of the failed WQE, or -1 (receives). */
void check_error(const char *row, const struct done *d, uint64_t wr_id,
		 enum ibv_wc_status status, uint32_t qpn, int wqe_opcode, int wqe_index);
void check_none(const char *row, const struct done *d);

/* Shorthands on a pair: wait for it, then check. */
void await_ok(struct pair *p, uint64_t wr_id, enum ibv_wc_opcode opcode);
void await_error(struct pair *p, uint64_t wr_id, enum ibv_wc_status status);
void await_recv_ok(struct pair *p, uint64_t wr_id, uint32_t bytes);
void await_recv_error(struct pair *p, uint64_t wr_id, enum ibv_wc_status status);
void check_quiet(struct pair *p);	/* nothing more on any of the four queues */
void check_states(const char *row, struct pair *p, enum ibv_qp_state a, enum ibv_qp_state b);

/* Post from a, or fail the case. */
/* One end with the defaults. */
void must_open(struct end *e);
void must_post(struct pair *p, const struct work *work);
void must_recv(struct pair *p, const struct work *work);
#endif
