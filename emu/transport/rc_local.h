/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the RC transport share.  Private to this folder.
 */
#ifndef EMU_TRANSPORT_RC_LOCAL_H
#define EMU_TRANSPORT_RC_LOCAL_H
#include "emu/transport/rc.h"
#include "emu/transport/tp_local.h"

/* rc_ack.c: the requester hears */
void rc_take_answer(struct tp *tp, struct emu_qp *qp, const struct ib_packet *p,
		    bool *readable_out);
/* Send again from the oldest packet that is not acknowledged. */
void rc_rewind(struct emu_qp *qp);

/* rc_answer.c: the oldest READ or atomic that waits for its answer, or NULL; where its answer has
 * come; and its end, if the memory can't be read */
struct rc_resource *rc_answer_due(struct emu_qp *qp);
uint32_t rc_answer_psn(const struct emu_qp *qp, const struct rc_resource *res);
void rc_read_refuse(struct tp *tp, struct emu_qp *qp, struct rc_resource *res, enum why why);
#endif
