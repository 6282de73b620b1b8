/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The unreliable datagram transport; see tp.h for what the functions promise.
 *
 * Threads: the caller holds the device lock.
 * Source: IBTA volume 1, chapter 9.8.3 and 10.2.5; annex A17 (RoCEv2).
 */
#ifndef EMU_TRANSPORT_UD_H
#define EMU_TRANSPORT_UD_H
#include "emu/transport/tp.h"

#define UD_GRH_BYTES	40	/* in front of each datagram in its receive */

int ud_req_next(struct tp *tp, struct emu_qp *qp, uint32_t bytes_max, struct ib_packet *out);
bool ud_take(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p);
#endif
