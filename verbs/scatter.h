/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data that came within a completion, put where the request wanted it.
 *
 * A device does that to save itself a write; it must have been allowed when the QP was made.
 *
 * Source: device-abi C.8.
 */
#ifndef VERBS_SCATTER_H
#define VERBS_SCATTER_H
#include "verbs/queue.h"

/* The current completion of @cq is of the receive in entry @at of @ring, which begins with a link
 * if it is @is_shared. */
void vb_scatter_receive(const struct vb_cq *cq, const struct vb_ring *ring, uint32_t at,
			bool is_shared);
/* It is of the READ or atomic in block @at of the send queue. */
void vb_scatter_send(const struct vb_cq *cq, const struct vb_qp *qp, uint32_t at);
#endif
