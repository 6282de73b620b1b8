/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ethernet frames: RAW_PACKET QPs, receive work queues, and UD QPs that have flow rules.
 *
 * Who gets a frame is decided before, by rules; see emu/engine/ether.c.
 */
#ifndef EMU_TRANSPORT_RAW_H
#define EMU_TRANSPORT_RAW_H
#include "emu/transport/tp.h"

int raw_req_next(struct tp *tp, struct emu_qp *qp, uint32_t bytes_max, struct ib_packet *out);
void raw_req_sent(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p);

/* A frame for this QP or queue, whose state is checked already.  What does not fit ends the queue;
 * without a receive the frame is lost. */
void raw_take(struct tp *tp, struct emu_qp *qp, const struct tp_arrival *a);

/* Are @count receives there for frames?  True also if the queue is broken, and ends now. */
bool raw_has_receives(struct tp *tp, struct emu_qp *qp, uint32_t count);
#endif
