/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verbs that programs reach through a context's tables, in the order of those tables.
 *
 * What each does and returns is said in its man page; a verb that is not exported is named
 * vb_<verb>.
 */
#ifndef VERBS_OPS_H
#define VERBS_OPS_H
#include <infiniband/verbs.h>

/* --- struct verbs_context --- */
/* query.c */
int vb_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *out,
		  size_t out_bytes);
/* mr.c */
int vb_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		 struct ibv_sge *sg_list, uint32_t num_sge);
struct ibv_mr *vb_alloc_null_mr(struct ibv_pd *pd);
/* counters.c */
int vb_read_counters(struct ibv_counters *counters, uint64_t *counters_value, uint32_t ncounters,
		     uint32_t flags);
int vb_attach_counters_point_flow(struct ibv_counters *counters,
				  struct ibv_counter_attach_attr *attr, struct ibv_flow *flow);
struct ibv_counters *vb_create_counters(struct ibv_context *context,
					struct ibv_counters_init_attr *init_attr);
int vb_destroy_counters(struct ibv_counters *counters);
/* dm.c */
struct ibv_mr *vb_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset, size_t length,
			    unsigned int access);
struct ibv_dm *vb_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
int vb_free_dm(struct ibv_dm *dm);
/* flow.c */
int vb_modify_flow_action_esp(struct ibv_flow_action *action,
			      struct ibv_flow_action_esp_attr *attr);
int vb_destroy_flow_action(struct ibv_flow_action *action);
struct ibv_flow_action *vb_create_flow_action_esp(struct ibv_context *context,
						  struct ibv_flow_action_esp_attr *attr);
/* qp_state.c */
int vb_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr);
/* pd.c */
struct ibv_pd *vb_alloc_parent_domain(struct ibv_context *context,
				      struct ibv_parent_domain_init_attr *attr);
int vb_dealloc_td(struct ibv_td *td);
struct ibv_td *vb_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *init_attr);
/* cq.c */
int vb_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
/* wq.c */
int vb_destroy_rwq_ind_table(struct ibv_rwq_ind_table *rwq_ind_table);
struct ibv_rwq_ind_table *vb_create_rwq_ind_table(struct ibv_context *context,
						  struct ibv_rwq_ind_table_init_attr *init_attr);
int vb_destroy_wq(struct ibv_wq *wq);
int vb_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *wq_attr);
struct ibv_wq *vb_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *wq_init_attr);
/* clock.c */
int vb_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);
/* cq.c */
struct ibv_cq_ex *vb_create_cq_ex(struct ibv_context *context,
				  struct ibv_cq_init_attr_ex *init_attr);
/* query.c */
int vb_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		       struct ibv_device_attr_ex *attr, size_t attr_bytes);
/* flow.c */
int vb_destroy_flow(struct ibv_flow *flow);
struct ibv_flow *vb_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *flow_attr);
/* qp.c */
struct ibv_qp *vb_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);
struct ibv_qp *vb_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
/* srq.c */
int vb_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num);
struct ibv_srq *vb_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
/* xrcd.c */
struct ibv_xrcd *vb_open_xrcd(struct ibv_context *context,
			      struct ibv_xrcd_init_attr *xrcd_init_attr);
int vb_close_xrcd(struct ibv_xrcd *xrcd);

/* --- struct ibv_context_ops --- */
/* mw.c */
struct ibv_mw *vb_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
/* send.c */
int vb_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *mw_bind);
/* mw.c */
int vb_dealloc_mw(struct ibv_mw *mw);
/* poll.c, cq.c */
int vb_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int vb_req_notify_cq(struct ibv_cq *cq, int solicited_only);
/* recv.c, send.c */
int vb_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *recv_wr,
		     struct ibv_recv_wr **bad_recv_wr);
int vb_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int vb_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/* --- struct ibv_wq --- */
/* recv.c */
int vb_post_wq_recv(struct ibv_wq *wq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
#endif
