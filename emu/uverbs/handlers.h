/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The handlers that the tables name.  Each gets a call whose attributes, sizes and handles
 * were checked, and returns 0 or -errno; see dispatch.h.
 */
#ifndef EMU_UVERBS_HANDLERS_H
#define EMU_UVERBS_HANDLERS_H
#include "emu/uverbs/dispatch.h"

int on_invoke_write(struct uv_call *call);

int on_get_context(struct uv_call *call);
int on_get_context_legacy(struct uv_call *call);
int on_query_context(struct uv_call *call);
int on_info_handles(struct uv_call *call);
int on_query_device(struct uv_call *call);
int on_query_device_ex(struct uv_call *call);
int on_query_port(struct uv_call *call);
int on_query_port_legacy(struct uv_call *call);
int on_query_port_mlx5(struct uv_call *call);
int on_query_gid_table(struct uv_call *call);
int on_query_gid_entry(struct uv_call *call);

int on_alloc_pd(struct uv_call *call);
int on_dealloc_pd(struct uv_call *call);
int on_dealloc_pd_legacy(struct uv_call *call);
int on_query_pd(struct uv_call *call);
int on_reg_mr(struct uv_call *call);
int on_dereg_mr(struct uv_call *call);
int on_dereg_mr_legacy(struct uv_call *call);
int on_query_mr(struct uv_call *call);
int on_rereg_mr(struct uv_call *call);
int on_advise_mr(struct uv_call *call);

int on_alloc_dm(struct uv_call *call);
int on_free_dm(struct uv_call *call);
int on_query_dm(struct uv_call *call);
int on_reg_dm_mr(struct uv_call *call);

int on_alloc_mw(struct uv_call *call);
int on_dealloc_mw(struct uv_call *call);
int on_dealloc_mw_legacy(struct uv_call *call);

int on_create_cq(struct uv_call *call);
int on_create_cq_legacy(struct uv_call *call);
int on_resize_cq(struct uv_call *call);
int on_modify_cq(struct uv_call *call);
int on_destroy_cq(struct uv_call *call);
int on_destroy_cq_legacy(struct uv_call *call);

int on_create_qp(struct uv_call *call);
int on_create_qp_legacy(struct uv_call *call);
int on_modify_qp(struct uv_call *call);
int on_modify_qp_ex(struct uv_call *call);
int on_query_qp(struct uv_call *call);
int on_destroy_qp(struct uv_call *call);
int on_destroy_qp_legacy(struct uv_call *call);

int on_open_xrcd(struct uv_call *call);
int on_close_xrcd(struct uv_call *call);
int on_close_xrcd_legacy(struct uv_call *call);
int on_open_qp(struct uv_call *call);

int on_create_xsrq(struct uv_call *call);
int on_create_srq(struct uv_call *call);
int on_create_srq_legacy(struct uv_call *call);
int on_modify_srq(struct uv_call *call);
int on_query_srq(struct uv_call *call);
int on_destroy_srq(struct uv_call *call);
int on_destroy_srq_legacy(struct uv_call *call);

int on_create_ah(struct uv_call *call);
int on_destroy_ah(struct uv_call *call);
int on_destroy_ah_legacy(struct uv_call *call);
int on_create_wq(struct uv_call *call);
int on_create_wq_ex(struct uv_call *call);
int on_modify_wq(struct uv_call *call);
int on_destroy_wq(struct uv_call *call);
int on_destroy_wq_ex(struct uv_call *call);
int on_create_rwq_table(struct uv_call *call);
int on_destroy_rwq_table(struct uv_call *call);
int on_destroy_rwq_table_ex(struct uv_call *call);

int on_attach_mcast(struct uv_call *call);
int on_detach_mcast(struct uv_call *call);

int on_create_comp_channel(struct uv_call *call);
int on_alloc_async(struct uv_call *call);
/* A new async file for the write() GET_CONTEXT, as on_alloc_async(). */
int event_file_create(struct uv_call *call, size_t event_bytes, enum obj_type type);

int on_create_flow(struct uv_call *call);
int on_destroy_flow(struct uv_call *call);
int on_destroy_flow_ex(struct uv_call *call);

int on_create_matcher(struct uv_call *call);
int on_destroy_matcher(struct uv_call *call);
int on_create_flow_mlx5(struct uv_call *call);
int on_destroy_flow_mlx5(struct uv_call *call);

int on_create_counters(struct uv_call *call);
int on_destroy_counters(struct uv_call *call);
int on_read_counters(struct uv_call *call);

int on_alloc_uar(struct uv_call *call);
int on_destroy_uar(struct uv_call *call);
#endif
