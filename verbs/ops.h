/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verbs that programs reach through a context's tables, in the order of those tables.
 *
 * What each does and returns is said in its man page; a verb that is not exported is named vb_<verb>.
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
/* pd.c */
struct ibv_pd *vb_alloc_parent_domain(struct ibv_context *context,
				      struct ibv_parent_domain_init_attr *attr);
int vb_dealloc_td(struct ibv_td *td);
struct ibv_td *vb_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *init_attr);
/* wq.c */
int vb_destroy_rwq_ind_table(struct ibv_rwq_ind_table *rwq_ind_table);
struct ibv_rwq_ind_table *vb_create_rwq_ind_table(struct ibv_context *context,
						  struct ibv_rwq_ind_table_init_attr *init_attr);
int vb_destroy_wq(struct ibv_wq *wq);
int vb_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *wq_attr);
struct ibv_wq *vb_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *wq_init_attr);
/* flow.c */
int vb_destroy_flow(struct ibv_flow *flow);
struct ibv_flow *vb_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *flow_attr);
/* xrcd.c */
struct ibv_xrcd *vb_open_xrcd(struct ibv_context *context,
			      struct ibv_xrcd_init_attr *xrcd_init_attr);
int vb_close_xrcd(struct ibv_xrcd *xrcd);

/* --- struct ibv_context_ops --- */
/* mw.c */
struct ibv_mw *vb_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int vb_dealloc_mw(struct ibv_mw *mw);
#endif
