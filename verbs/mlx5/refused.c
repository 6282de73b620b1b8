/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions of libmlx5 for what no device of ours has.  Programs need them to start, and are told
 * when they call: most of them have another way.
 *
 * Whatever their parameters are, these look at none: so there is no header here that declares them.
 */
#include <errno.h>
#include <stddef.h>
#include <sys/types.h>

#define EXPORT	__attribute__((visibility("default")))

#define FUNCTION(type, name, body)		\
	type name(void);			\
	EXPORT type name(void)			\
	{					\
		body				\
	}

/* Makes objects. */
#define NO_OBJECT(name)	FUNCTION(void *, name, errno = EOPNOTSUPP; return NULL;)
/* Returns an errno. */
#define REFUSED(name)	FUNCTION(int, name, return errno = EOPNOTSUPP;)
/* Ends objects, and there are none. */
#define NOTHING(name)	FUNCTION(void, name, return;)

/* These count, or return a descriptor. */
FUNCTION(int, mlx5dv_qp_cancel_posted_send_wrs, return -EOPNOTSUPP;)
FUNCTION(ssize_t, mlx5dv_devx_get_event, errno = EOPNOTSUPP; return -1;)
FUNCTION(int, mlx5dv_vfio_get_events_fd, errno = EOPNOTSUPP; return -1;)

/* --- commands to the hardware (DEVX) --- */

NO_OBJECT(mlx5dv_devx_alloc_msi_vector)
REFUSED(mlx5dv_devx_cq_modify)
REFUSED(mlx5dv_devx_cq_query)
NO_OBJECT(mlx5dv_devx_create_cmd_comp)
NO_OBJECT(mlx5dv_devx_create_eq)
NO_OBJECT(mlx5dv_devx_create_event_channel)
NOTHING(mlx5dv_devx_destroy_cmd_comp)
REFUSED(mlx5dv_devx_destroy_eq)
NOTHING(mlx5dv_devx_destroy_event_channel)
REFUSED(mlx5dv_devx_free_msi_vector)
REFUSED(mlx5dv_devx_general_cmd)
REFUSED(mlx5dv_devx_get_async_cmd_comp)
REFUSED(mlx5dv_devx_ind_tbl_modify)
REFUSED(mlx5dv_devx_ind_tbl_query)
NO_OBJECT(mlx5dv_devx_obj_create)
REFUSED(mlx5dv_devx_obj_destroy)
REFUSED(mlx5dv_devx_obj_modify)
REFUSED(mlx5dv_devx_obj_query)
REFUSED(mlx5dv_devx_obj_query_async)
REFUSED(mlx5dv_devx_qp_modify)
REFUSED(mlx5dv_devx_qp_query)
REFUSED(mlx5dv_devx_query_eqn)
REFUSED(mlx5dv_devx_srq_modify)
REFUSED(mlx5dv_devx_srq_query)
REFUSED(mlx5dv_devx_subscribe_devx_event)
REFUSED(mlx5dv_devx_subscribe_devx_event_fd)
REFUSED(mlx5dv_devx_umem_dereg)
NO_OBJECT(mlx5dv_devx_umem_reg)
NO_OBJECT(mlx5dv_devx_umem_reg_ex)
REFUSED(mlx5dv_devx_wq_modify)
REFUSED(mlx5dv_devx_wq_query)

/* --- direct rules --- */

NO_OBJECT(mlx5dv_dr_action_create_aso)
NO_OBJECT(mlx5dv_dr_action_create_default_miss)
NO_OBJECT(mlx5dv_dr_action_create_dest_array)
NO_OBJECT(mlx5dv_dr_action_create_dest_devx_tir)
NO_OBJECT(mlx5dv_dr_action_create_dest_ib_port)
NO_OBJECT(mlx5dv_dr_action_create_dest_ibv_qp)
NO_OBJECT(mlx5dv_dr_action_create_dest_root_table)
NO_OBJECT(mlx5dv_dr_action_create_dest_table)
NO_OBJECT(mlx5dv_dr_action_create_dest_vport)
NO_OBJECT(mlx5dv_dr_action_create_drop)
NO_OBJECT(mlx5dv_dr_action_create_flow_counter)
NO_OBJECT(mlx5dv_dr_action_create_flow_meter)
NO_OBJECT(mlx5dv_dr_action_create_flow_sampler)
NO_OBJECT(mlx5dv_dr_action_create_modify_header)
NO_OBJECT(mlx5dv_dr_action_create_packet_reformat)
NO_OBJECT(mlx5dv_dr_action_create_pop_vlan)
NO_OBJECT(mlx5dv_dr_action_create_push_vlan)
NO_OBJECT(mlx5dv_dr_action_create_tag)
REFUSED(mlx5dv_dr_action_destroy)
REFUSED(mlx5dv_dr_action_modify_aso)
REFUSED(mlx5dv_dr_action_modify_flow_meter)
REFUSED(mlx5dv_dr_aso_other_domain_link)
REFUSED(mlx5dv_dr_aso_other_domain_unlink)
NOTHING(mlx5dv_dr_domain_allow_duplicate_rules)
NO_OBJECT(mlx5dv_dr_domain_create)
REFUSED(mlx5dv_dr_domain_destroy)
NOTHING(mlx5dv_dr_domain_set_reclaim_device_memory)
REFUSED(mlx5dv_dr_domain_sync)
NO_OBJECT(mlx5dv_dr_matcher_create)
REFUSED(mlx5dv_dr_matcher_destroy)
REFUSED(mlx5dv_dr_matcher_set_layout)
NO_OBJECT(mlx5dv_dr_rule_create)
REFUSED(mlx5dv_dr_rule_destroy)
NO_OBJECT(mlx5dv_dr_table_create)
REFUSED(mlx5dv_dr_table_destroy)
REFUSED(mlx5dv_dump_dr_domain)
REFUSED(mlx5dv_dump_dr_matcher)
REFUSED(mlx5dv_dump_dr_rule)
REFUSED(mlx5dv_dump_dr_table)

/* --- IPsec, and flow tables that commands to the hardware name --- */

NO_OBJECT(mlx5dv_create_flow_action_esp)
NO_OBJECT(mlx5dv_create_steering_anchor)
REFUSED(mlx5dv_destroy_steering_anchor)

/* --- keys that queues lay out, signatures, encryption --- */

REFUSED(_mlx5dv_mkey_check)
NO_OBJECT(mlx5dv_create_mkey)
REFUSED(mlx5dv_crypto_login)
NO_OBJECT(mlx5dv_crypto_login_create)
REFUSED(mlx5dv_crypto_login_destroy)
REFUSED(mlx5dv_crypto_login_query)
REFUSED(mlx5dv_crypto_login_query_state)
REFUSED(mlx5dv_crypto_logout)
NO_OBJECT(mlx5dv_dek_create)
REFUSED(mlx5dv_dek_destroy)
REFUSED(mlx5dv_dek_query)
REFUSED(mlx5dv_destroy_mkey)

/* --- bandwidth, bonds, paths --- */

REFUSED(mlx5dv_dci_stream_id_reset)
REFUSED(mlx5dv_map_ah_to_qp)
REFUSED(mlx5dv_modify_qp_lag_port)
REFUSED(mlx5dv_modify_qp_sched_elem)
REFUSED(mlx5dv_modify_qp_udp_sport)
NO_OBJECT(mlx5dv_pp_alloc)
NOTHING(mlx5dv_pp_free)
REFUSED(mlx5dv_query_qp_lag_port)
REFUSED(mlx5dv_reserved_qpn_alloc)
REFUSED(mlx5dv_reserved_qpn_dealloc)
NO_OBJECT(mlx5dv_sched_leaf_create)
REFUSED(mlx5dv_sched_leaf_destroy)
REFUSED(mlx5dv_sched_leaf_modify)
NO_OBJECT(mlx5dv_sched_node_create)
REFUSED(mlx5dv_sched_node_destroy)
REFUSED(mlx5dv_sched_node_modify)

/* --- doorbells of virtio, operations of device memory, devices without the kernel --- */

NO_OBJECT(mlx5dv_alloc_var)
NO_OBJECT(mlx5dv_dm_map_op_addr)
NOTHING(mlx5dv_free_var)
NO_OBJECT(mlx5dv_get_vfio_device_list)
REFUSED(mlx5dv_vfio_process_events)
