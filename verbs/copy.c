/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the kernel's structures to the program's and back, for those who speak to the kernel
 * themselves (librdmacm does).
 */
#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>
#include "verbs/context.h"

/* No installed header has them. */
void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, struct ib_uverbs_ah_attr *src);
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ib_uverbs_qp_attr *src);
void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst, struct ib_user_path_rec *src);
void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst, struct ibv_sa_path_rec *src);

#define TAKE(member) dst->member = (__typeof__(dst->member))src->member

VB_EXPORT void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, struct ib_uverbs_ah_attr *src)
{
	memcpy(dst->grh.dgid.raw, src->grh.dgid, sizeof dst->grh.dgid.raw);
	TAKE(grh.flow_label);
	TAKE(grh.sgid_index);
	TAKE(grh.hop_limit);
	TAKE(grh.traffic_class);
	TAKE(dlid);
	TAKE(sl);
	TAKE(src_path_bits);
	TAKE(static_rate);
	TAKE(is_global);
	TAKE(port_num);
}

static void copy_cap(struct ibv_qp_cap *dst, const struct ib_uverbs_qp_attr *src)
{
	TAKE(max_send_wr);
	TAKE(max_recv_wr);
	TAKE(max_send_sge);
	TAKE(max_recv_sge);
	TAKE(max_inline_data);
}

/* The state itself is left to the caller, who asked for it. */
VB_EXPORT void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ib_uverbs_qp_attr *src)
{
	copy_cap(&dst->cap, src);
	ibv_copy_ah_attr_from_kern(&dst->ah_attr, &src->ah_attr);
	ibv_copy_ah_attr_from_kern(&dst->alt_ah_attr, &src->alt_ah_attr);
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
	TAKE(en_sqd_async_notify);
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
}

/* Both ways have the same members; only the GIDs are of different types. */
#define TAKE_PATH()				\
	do {					\
		TAKE(dlid);			\
		TAKE(slid);			\
		TAKE(raw_traffic);		\
		TAKE(flow_label);		\
		TAKE(reversible);		\
		TAKE(mtu);			\
		TAKE(pkey);			\
		TAKE(hop_limit);		\
		TAKE(traffic_class);		\
		TAKE(numb_path);		\
		TAKE(sl);			\
		TAKE(mtu_selector);		\
		TAKE(rate_selector);		\
		TAKE(rate);			\
		TAKE(packet_life_time_selector); \
		TAKE(packet_life_time);		\
		TAKE(preference);		\
	} while (0)

VB_EXPORT void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst,
					   struct ib_user_path_rec *src)
{
	memcpy(dst->dgid.raw, src->dgid, sizeof dst->dgid.raw);
	memcpy(dst->sgid.raw, src->sgid, sizeof dst->sgid.raw);
	TAKE_PATH();
}

VB_EXPORT void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst, struct ibv_sa_path_rec *src)
{
	memcpy(dst->dgid, src->dgid.raw, sizeof dst->dgid);
	memcpy(dst->sgid, src->sgid.raw, sizeof dst->sgid);
	TAKE_PATH();
}
