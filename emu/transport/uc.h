/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The unreliable connected transport.  Its requester is that of RC without anything to wait
 * for; see rc.h for what the functions promise.
 *
 * Threads: the caller holds the device lock.
 * Source: IBTA volume 1, chapter 9.8.
 */
#ifndef EMU_TRANSPORT_UC_H
#define EMU_TRANSPORT_UC_H
#include "emu/transport/tp.h"

/* After rc_req_next(): a request is complete when all of it has left. */
void uc_req_sent(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p);
bool uc_take(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p);
#endif
