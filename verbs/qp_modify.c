/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * States and attributes of queue pairs.
 *
 * Which attributes a change of state needs is the device's to say; here is what the rings do when
 * the state changes.
 *
 * Source: device-abi B.9.6, E.3.
 */
#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <string.h>
#include "verbs/ah.h"
#include "verbs/cmd.h"
#include "verbs/foreign.h"
#include "verbs/ops.h"
#include "verbs/qp.h"

static void dest_from_ah(struct ib_uverbs_qp_dest *to, const struct ibv_ah_attr *from)
{
	*to = (struct ib_uverbs_qp_dest){
		.flow_label = from->grh.flow_label, .dlid = from->dlid,
		.sgid_index = from->grh.sgid_index, .hop_limit = from->grh.hop_limit,
		.traffic_class = from->grh.traffic_class, .sl = from->sl,
		.src_path_bits = from->src_path_bits, .static_rate = from->static_rate,
		.is_global = from->is_global, .port_num = from->port_num,
	};
	memcpy(to->dgid, &from->grh.dgid, sizeof to->dgid);
}

static void dest_to_ah(const struct ib_uverbs_qp_dest *from, struct ibv_ah_attr *to)
{
	*to = (struct ibv_ah_attr){
		.grh = { .flow_label = from->flow_label, .sgid_index = from->sgid_index,
			 .hop_limit = from->hop_limit, .traffic_class = from->traffic_class },
		.dlid = from->dlid, .sl = from->sl, .src_path_bits = from->src_path_bits,
		.static_rate = from->static_rate, .is_global = from->is_global,
		.port_num = from->port_num,
	};
	memcpy(&to->grh.dgid, from->dgid, sizeof to->grh.dgid);
}

static struct ib_uverbs_modify_qp request_of(const struct ibv_qp *qp, const struct ibv_qp_attr *a,
					     uint32_t mask)
{
	struct ib_uverbs_modify_qp r = { .qp_handle = qp->handle, .attr_mask = mask };

	if (mask & IBV_QP_AV)
		dest_from_ah(&r.dest, &a->ah_attr);
	if (mask & IBV_QP_ALT_PATH) {
		dest_from_ah(&r.alt_dest, &a->alt_ah_attr);
		r.alt_pkey_index = a->alt_pkey_index;
		r.alt_port_num = a->alt_port_num;
		r.alt_timeout = a->alt_timeout;
	}
#define TAKE(bit, member, from) if (mask & IBV_QP_##bit) r.member = (__typeof__(r.member))a->from
	TAKE(QKEY, qkey, qkey);
	TAKE(RQ_PSN, rq_psn, rq_psn);
	TAKE(SQ_PSN, sq_psn, sq_psn);
	TAKE(DEST_QPN, dest_qp_num, dest_qp_num);
	TAKE(ACCESS_FLAGS, qp_access_flags, qp_access_flags);
	TAKE(PKEY_INDEX, pkey_index, pkey_index);
	TAKE(STATE, qp_state, qp_state);
	TAKE(CUR_STATE, cur_qp_state, cur_qp_state);
	TAKE(PATH_MTU, path_mtu, path_mtu);
	TAKE(PATH_MIG_STATE, path_mig_state, path_mig_state);
	TAKE(EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify, en_sqd_async_notify);
	TAKE(MAX_QP_RD_ATOMIC, max_rd_atomic, max_rd_atomic);
	TAKE(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, max_dest_rd_atomic);
	TAKE(MIN_RNR_TIMER, min_rnr_timer, min_rnr_timer);
	TAKE(PORT, port_num, port_num);
	TAKE(TIMEOUT, timeout, timeout);
	TAKE(RETRY_CNT, retry_cnt, retry_cnt);
	TAKE(RNR_RETRY, rnr_retry, rnr_retry);
#undef TAKE
	return r;
}

/* A change of the send rate has a command of its own, which also answers what a target's number
 * is: it gets one on its way to RTR. */
static int modify_command(struct ibv_qp *qp, const struct ibv_qp_attr *attr, uint32_t mask,
			  const struct mlx5_ib_burst_info *burst)
{
	bool is_target = vb_qp_of(qp)->dc == VB_DC_TARGET;
	int error;
	struct ib_uverbs_ex_modify_qp request = { .base = request_of(qp, attr, mask) };
	struct ib_uverbs_ex_modify_qp_resp answer = { 0 };
	struct mlx5_ib_modify_qp driver = { .burst_info = *burst };
	struct mlx5_ib_modify_qp_resp driver_answer = { 0 };
	struct cmd_write plain = { .command = IB_USER_VERBS_CMD_MODIFY_QP, .in = &request.base,
				   .in_bytes = sizeof request.base };
	struct cmd_write extended = {
		.command = CMD_EXTENDED | IB_USER_VERBS_EX_CMD_MODIFY_QP,
		.in = &request,
		.in_bytes = sizeof request,
		.out = &answer,
		.out_bytes = sizeof answer,
		.driver_in = &driver,
		.driver_in_bytes = sizeof driver,
		.driver_out = &driver_answer,
		.driver_out_bytes = sizeof driver_answer,
	};

	request.rate_limit = attr->rate_limit;
	error = cmd_write(is_target || mask & IBV_QP_RATE_LIMIT ? &extended : &plain, qp->context);
	if (!error && is_target && mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RTR)
		qp->qp_num = driver_answer.dctn;
	return error;
}

/* Nothing that was posted is remembered. */
static void rings_reset(struct vb_qp *qp)
{
	vb_ring_reset(&qp->sq);
	vb_ring_reset(&qp->rq);
	qp->fence = 0;
	if (qp->record)
		qp->record[0] = qp->record[1] = 0;
}

static void receives_show(struct vb_qp *qp)
{
	if (!qp->hides_receives)
		return;
	qp->hides_receives = false;
	__atomic_store_n(&qp->record[0], htobe32(qp->rq.head & 0xffff), __ATOMIC_RELEASE);
}

/* What may be posted in which state. */
static void state_take(struct vb_qp *qp, enum ibv_qp_state state)
{
	vb_qp_base(qp)->state = state;
	qp->may_receive = state != IBV_QPS_RESET && qp->rq.entries;
	qp->may_send = state >= IBV_QPS_RTS && qp->sq.entries;
	if (state == IBV_QPS_RESET)
		rings_reset(qp);
	if (qp->type == IBV_QPT_RAW_PACKET && state < IBV_QPS_RTR)
		qp->hides_receives = true;
	else
		receives_show(qp);
}

/* Posting goes on in other threads while the state changes, but not across a reset.  Who reads a CQ
 * may post, so nobody waits for a CQ with a ring's lock. */
static void state_change(struct vb_qp *qp, enum ibv_qp_state state)
{
	if (state == IBV_QPS_RESET)
		vb_qp_clean(qp);
	vb_lock(&qp->sq.lock);
	vb_lock(&qp->rq.lock);
	state_take(qp, state);
	vb_unlock(&qp->rq.lock);
	vb_unlock(&qp->sq.lock);
}

/* What the port does to frames, once it is known which one it is. */
static void eth_take(struct vb_qp *qp, uint8_t port_num)
{
	const struct ibv_device_attr_ex *device = &qp->context->attr;

	if (qp->type != IBV_QPT_RAW_PACKET ||
	    !vb_port_is_ethernet(&qp->context->base.context, port_num))
		return;
	qp->eth.has_checksums = device->orig_attr.device_cap_flags & IBV_DEVICE_RAW_IP_CSUM;
	if (ibv_is_qpt_supported(device->tso_caps.supported_qpts, IBV_QPT_RAW_PACKET))
		qp->eth.tso_bytes_max = device->tso_caps.max_tso;
}

static const struct mlx5_ib_burst_info no_burst;

VB_EXPORT int ibv_modify_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int attr_mask)
{
	int error;

	if (!vb_is_ours(base->context))
		return FOREIGN(ibv_modify_qp, base, attr, attr_mask);
	if (vb_qp_of(base)->only_spreads)
		return EOPNOTSUPP;
	error = modify_command(base, attr, (uint32_t)attr_mask, &no_burst);
	if (!error && attr_mask & IBV_QP_PORT)
		eth_take(vb_qp_of(base), attr->port_num);
	if (!error && attr_mask & IBV_QP_STATE)
		state_change(vb_qp_of(base), attr->qp_state);
	return error;
}

int vb_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr)
{
	const struct ibv_qp_attr rate = { .rate_limit = attr->rate_limit };
	const struct mlx5_ib_burst_info burst = { .max_burst_sz = attr->max_burst_sz,
						  .typical_pkt_sz = attr->typical_pkt_sz };
	bool has_burst = attr->max_burst_sz || attr->typical_pkt_sz;

	if (attr->comp_mask ||
	    (has_burst && !(attr->rate_limit && vb_context_of(qp->context)->caps.limits_bursts)))
		return EINVAL;
	if (qp->qp_type != IBV_QPT_RAW_PACKET)
		return EOPNOTSUPP;
	return modify_command(qp, &rate, IBV_QP_RATE_LIMIT, &burst);
}

/* --- query --- */

static int query_command(struct ibv_qp *qp, uint32_t mask, struct ib_uverbs_query_qp_resp *answer)
{
	struct ib_uverbs_query_qp request = { .qp_handle = qp->handle, .attr_mask = mask };
	struct cmd_write w = {
		.command = IB_USER_VERBS_CMD_QUERY_QP, .in = &request, .in_bytes = sizeof request,
		.out = answer, .out_bytes = sizeof *answer,
	};

	return cmd_write(&w, qp->context);
}

static void attr_fill(const struct ib_uverbs_query_qp_resp *r, struct ibv_qp_attr *a)
{
	*a = (struct ibv_qp_attr){ 0 };
#define TAKE(member) a->member = (__typeof__(a->member))r->member
	TAKE(qp_state);
	TAKE(cur_qp_state);
	TAKE(path_mtu);
	TAKE(path_mig_state);
	TAKE(qkey);
	TAKE(rq_psn);
	TAKE(sq_psn);
	TAKE(dest_qp_num);
	TAKE(qp_access_flags);
	TAKE(pkey_index);
	TAKE(alt_pkey_index);
	TAKE(sq_draining);
	TAKE(max_rd_atomic);
	TAKE(max_dest_rd_atomic);
	TAKE(min_rnr_timer);
	TAKE(port_num);
	TAKE(timeout);
	TAKE(retry_cnt);
	TAKE(rnr_retry);
	TAKE(alt_port_num);
	TAKE(alt_timeout);
#undef TAKE
	dest_to_ah(&r->dest, &a->ah_attr);
	dest_to_ah(&r->alt_dest, &a->alt_ah_attr);
}

/* The rings are ours, so what fits in them is known here best. */
static void caps_fill(const struct vb_qp *qp, const struct ib_uverbs_query_qp_resp *r,
		      struct ibv_qp_cap *cap)
{
	*cap = (struct ibv_qp_cap){
		.max_send_wr = qp->sq.max_post, .max_send_sge = qp->sq.max_sge,
		.max_inline_data = qp->max_inline_bytes,
		.max_recv_wr = r->max_recv_wr, .max_recv_sge = r->max_recv_sge,
	};
}

VB_EXPORT int ibv_query_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int attr_mask,
			   struct ibv_qp_init_attr *init)
{
	struct ib_uverbs_query_qp_resp answer = { 0 };
	struct vb_qp *qp = vb_qp_of(base);
	int error;

	if (!vb_is_ours(base->context))
		return FOREIGN(ibv_query_qp, base, attr, attr_mask, init);
	if (qp->only_spreads || attr_mask & ~(IBV_QP_RATE_LIMIT - 1))
		return EOPNOTSUPP;
	error = query_command(base, (uint32_t)attr_mask, &answer);
	if (error)
		return error;
	attr_fill(&answer, attr);
	caps_fill(qp, &answer, &attr->cap);
	*init = (struct ibv_qp_init_attr){
		.qp_context = base->qp_context, .send_cq = base->send_cq, .recv_cq = base->recv_cq,
		.srq = base->srq, .cap = attr->cap, .qp_type = base->qp_type,
		.sq_sig_all = answer.sq_sig_all,
	};
	/* It may have failed since we changed it last. */
	base->state = attr->qp_state;
	return 0;
}

/* Alternative connection features have no command on devices that do not offer them. */
VB_EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (!vb_is_ours(qp->context))
		return FOREIGN(ibv_query_ece, qp, ece);
	*ece = (struct ibv_ece){ 0 };
	return 0;
}

VB_EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (!vb_is_ours(qp->context))
		return FOREIGN(ibv_set_ece, qp, ece);
	if (!ece->vendor_id) {
		ece->options = 0;
		return 0;
	}
	return vb_fail(EOPNOTSUPP);
}

/* The device writes data in the order of addresses, but promises it to nobody. */
VB_EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	return vb_is_ours(qp->context) ? 0 :
	       FOREIGN(ibv_query_qp_data_in_order, qp, op, flags);
}
