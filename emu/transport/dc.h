/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The dynamically connected transport: RC between an initiator and whom it talks to now.
 *
 * The protocol is RC's, with a session around it (emu/obj/dc.h).  Private to this folder, except
 * for the transports themselves.
 * Threads: the caller holds the device lock.
 * Source: device-abi H.1.
 */
#ifndef EMU_TRANSPORT_DC_H
#define EMU_TRANSPORT_DC_H
#include "emu/transport/tp_local.h"

/* The request that was just decoded into tp->tx: does it begin a session?  HW_SUCCESS, or the
 * status it fails with. */
enum hw_status dci_start(struct tp *tp, struct emu_qp *qp, struct rc_sent *sent);
/* The head of the queue begins a session with the target in tp->tx.  The same. */
enum hw_status dci_begin(struct tp *tp, struct emu_qp *qp, struct rc_sent *sent);

int dci_next(struct tp *tp, struct emu_qp *qp, uint32_t bytes_max, struct ib_packet *out);
bool dci_take(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p);

int dcr_next(struct tp *tp, struct emu_qp *qp, uint32_t bytes_max, struct ib_packet *out);
bool dct_take(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p);
#endif
