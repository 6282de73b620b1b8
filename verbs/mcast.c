/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups of a datagram QP.
 *
 * Source: device-abi B.9; inventory 1.24.
 */
#include <rdma/ib_user_verbs.h>
#include <string.h>
#include "verbs/cmd.h"
#include "verbs/context.h"
#include "verbs/foreign.h"

_Static_assert(sizeof(struct ib_uverbs_attach_mcast) == sizeof(struct ib_uverbs_detach_mcast),
	       "both commands say the same");

static int change(unsigned command, const struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct ib_uverbs_attach_mcast ask = { .qp_handle = qp->handle, .mlid = lid };
	const struct cmd_write w = { .command = command, .in = &ask, .in_bytes = sizeof ask };

	memcpy(ask.gid, gid->raw, sizeof ask.gid);
	return cmd_write(&w, qp->context);
}

VB_EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	if (!vb_is_ours(qp->context))
		return FOREIGN(ibv_attach_mcast, qp, gid, lid);
	return change(IB_USER_VERBS_CMD_ATTACH_MCAST, qp, gid, lid);
}

VB_EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	if (!vb_is_ours(qp->context))
		return FOREIGN(ibv_detach_mcast, qp, gid, lid);
	return change(IB_USER_VERBS_CMD_DETACH_MCAST, qp, gid, lid);
}
