/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables of a context, through which programs' inline functions call.
 */
#include "verbs/context.h"
#include "verbs/ops.h"
#include "verbs/poll.h"

void vb_context_fill_ops(struct vb_context *c)
{
	struct verbs_context *v = &c->base;

	v->context.ops = (struct ibv_context_ops){
		.alloc_mw = vb_alloc_mw, .bind_mw = vb_bind_mw, .dealloc_mw = vb_dealloc_mw,
		.poll_cq = vb_poll_cq, .req_notify_cq = vb_req_notify_cq,
		.post_srq_recv = vb_post_srq_recv, .post_send = vb_post_send,
		.post_recv = vb_post_recv,
	};
	v->query_port = vb_query_port;
	v->advise_mr = vb_advise_mr;
	v->alloc_null_mr = vb_alloc_null_mr;
	v->read_counters = vb_read_counters;
	v->attach_counters_point_flow = vb_attach_counters_point_flow;
	v->create_counters = vb_create_counters;
	v->destroy_counters = vb_destroy_counters;
	v->reg_dm_mr = vb_reg_dm_mr;
	v->alloc_dm = vb_alloc_dm;
	v->free_dm = vb_free_dm;
	v->modify_flow_action_esp = vb_modify_flow_action_esp;
	v->destroy_flow_action = vb_destroy_flow_action;
	v->create_flow_action_esp = vb_create_flow_action_esp;
	v->modify_qp_rate_limit = vb_modify_qp_rate_limit;
	v->alloc_parent_domain = vb_alloc_parent_domain;
	v->dealloc_td = vb_dealloc_td;
	v->alloc_td = vb_alloc_td;
	v->modify_cq = vb_modify_cq;
	v->destroy_rwq_ind_table = vb_destroy_rwq_ind_table;
	v->create_rwq_ind_table = vb_create_rwq_ind_table;
	v->destroy_wq = vb_destroy_wq;
	v->modify_wq = vb_modify_wq;
	v->create_wq = vb_create_wq;
	v->query_rt_values = vb_query_rt_values;
	v->create_cq_ex = vb_create_cq_ex;
	v->query_device_ex = vb_query_device_ex;
	v->ibv_destroy_flow = vb_destroy_flow;
	v->ibv_create_flow = vb_create_flow;
	v->open_qp = vb_open_qp;
	v->create_qp_ex = vb_create_qp_ex;
	v->get_srq_num = vb_get_srq_num;
	v->create_srq_ex = vb_create_srq_ex;
	v->open_xrcd = vb_open_xrcd;
	v->close_xrcd = vb_close_xrcd;
}
