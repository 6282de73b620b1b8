/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The extended reliable connected transport: an initiator, which only requests, and a target,
 * which only responds and has no queue.  Both are halves of RC; each request names the shared
 * receive queue that it is for.
 *
 * Threads: the caller holds the device lock.
 * Source: IBTA volume 1, annex A14.
 */
#ifndef EMU_TRANSPORT_XRC_H
#define EMU_TRANSPORT_XRC_H
#include "emu/transport/tp.h"

int xrc_req_next(struct tp *tp, struct emu_qp *qp, uint32_t bytes_max, struct ib_packet *out);
int xrc_resp_next(struct tp *tp, struct emu_qp *qp, uint32_t bytes_max, struct ib_packet *out);
bool xrc_initiator_take(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p);
bool xrc_target_take(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p);
#endif
