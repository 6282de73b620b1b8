/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DC initiators and targets: what is different from other queue pairs.
 *
 * To the kernel's core both are QPs of type DRIVER; a flag of the mlx5 driver says which.  A target
 * is only noted down at creation: hardware makes it at INIT to RTR, whose answer names it.
 *
 * Source: device-abi B.9.1, B.9.7, E.2, H.1.
 */
#include <errno.h>
#include "emu/uverbs/on_dc.h"

#define DC_FLAGS	(MLX5_QP_FLAG_TYPE_DCI | MLX5_QP_FLAG_TYPE_DCT)
#define DCT_ANSWER_MIN	8u		/* up to the target's number */

/* Attributes that a target tells of. */
#define DCT_TOLD	(A_STATE | A_ACCESS | A_PORT | A_MIN_RNR | A_AV | A_MTU | A_PKEY)

uint32_t dc_flags_known(uint64_t type)
{
	return dc_is_asked(type) ? DC_FLAGS | MLX5_QP_FLAG_DCI_STREAM : 0;
}

bool dc_needs_page(uint64_t type, const struct mlx5_ib_create_qp *ask)
{
	return !dc_is_asked(type) || ask->flags & MLX5_QP_FLAG_TYPE_DCI;
}

static bool streams_fit(const struct mlx5_ib_create_qp *ask)
{
	return !(ask->flags & MLX5_QP_FLAG_DCI_STREAM) ||
	       (ask->dci_streams.log_num_concurent <= DC_STREAMS_LOG_MAX &&
		ask->dci_streams.log_num_errored <= DC_STREAMS_FAILED_LOG_MAX);
}

static int dci_fill(struct uv_call *call, struct qp_init *init,
		    const struct mlx5_ib_create_qp *ask)
{
	if (init->max_recv_wr || init->max_recv_sge || !streams_fit(ask))
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	init->type = QPT_DCI;
	init->buf_addr = ask->buf_addr;
	init->db_addr = ask->db_addr;
	init->sq_blocks = ask->sq_wqe_count;
	return 0;
}

/* Capacities mean nothing for it: it has no queue of its own. */
static int dct_fill(struct uv_call *call, struct qp_init *init,
		    const struct mlx5_ib_create_qp *ask)
{
	if (!init->srq)
		return uv_refuse(call, WHY_CMD_ATTRIBUTES, -EINVAL);
	init->type = QPT_DCT;
	init->dc_key = ask->access_key;
	init->max_send_wr = init->max_send_sge = init->max_inline = 0;
	init->max_recv_wr = init->max_recv_sge = 0;
	return 0;
}

int dc_init_fill(struct uv_call *call, struct qp_init *init, const struct mlx5_ib_create_qp *ask)
{
	switch (ask->flags & DC_FLAGS) {
	case MLX5_QP_FLAG_TYPE_DCI:
		return dci_fill(call, init, ask);
	case MLX5_QP_FLAG_TYPE_DCT:
		return dct_fill(call, init, ask);
	default:
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	}
}

uint32_t dc_number(const struct emu_qp *qp)
{
	return qp->type == QPT_DCT ? 0 : qp->qpn;
}

int dc_modify_check(struct uv_call *call, const struct emu_qp *qp, const struct qp_attr *attr,
		    uint32_t mask, unsigned room)
{
	if (qp->type != QPT_DCT || !(mask & A_STATE) || attr->state != QP_RTR ||
	    room >= DCT_ANSWER_MIN)
		return 0;
	return uv_refuse(call, WHY_CMD_ATTRIBUTES, -EINVAL);
}

void dc_modify_answer(const struct emu_qp *qp, unsigned room,
		      struct mlx5_ib_modify_qp_resp *reply)
{
	if (qp->type != QPT_DCT || qp->state != QP_RTR)
		return;
	reply->dctn = qp->qpn;
	if (room < sizeof *reply)
		reply->response_length = DCT_ANSWER_MIN;
}

/* The address is not told of: without the mark of a GRH, which the driver does not set, the core
 * leaves it out. */
int dct_query(struct uv_call *call, const struct emu_qp *qp, uint32_t mask)
{
	const struct qp_attr *a = &qp->attr;
	struct ib_uverbs_query_qp_resp reply = { 0 };

	if (mask & ~(uint32_t)DCT_TOLD || qp->state != QP_RTR)
		return uv_refuse(call, WHY_CMD_VALUE, -EINVAL);
	if (mask & A_STATE)
		reply.qp_state = QP_RTR;
	if (mask & A_ACCESS)
		reply.qp_access_flags = a->access & (KEY_REMOTE_READ | KEY_REMOTE_WRITE |
						     KEY_REMOTE_ATOMIC);
	if (mask & A_PORT)
		reply.port_num = a->port;
	if (mask & A_MIN_RNR)
		reply.min_rnr_timer = a->min_rnr_timer;
	if (mask & A_MTU)
		reply.path_mtu = a->path_mtu;
	if (mask & A_PKEY)
		reply.pkey_index = a->pkey_index;
	uv_put(call, UVERBS_ATTR_CORE_OUT, &reply, sizeof reply);
	return 0;
}
