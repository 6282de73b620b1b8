/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work requests that change a memory key: binding a window, invalidating one.
 *
 * A requester of any connected transport calls this when the request's turn has come: all earlier
 * ones have started, and no later one has.
 * Source: IBTA volume 1, 10.8.3.3 (ordering).
 */
#include "emu/transport/tp_local.h"

enum hw_status tp_umr(struct tp *tp, struct emu_qp *qp, uint32_t block, const struct hw_work *w)
{
	enum why why = mw_umr(tp->dev, qp, w);

	if (why == WHY_NONE)
		return HW_SUCCESS;
	dev_why(tp->dev, .why = why, .side = WHY_SIDE_SEND, .qpn = qp->qpn,
		.peer_qpn = qp->dest_qpn, .wqe_index = (uint16_t)block, .opcode = w->opcode,
		.key = w->umr.key, .addr = w->sge_count ? w->sge[0].addr : 0,
		.bytes = w->umr.bytes, .found = w->sge_count ? w->sge[0].lkey : 0);
	return HW_MW_BIND;
}
