/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QPs without rings of their own: they spread packets over the queues of an indirection table.
 *
 * Source: device-abi B.9.1, B.9.7.
 */
#include <errno.h>
#include <rdma/mlx5-abi.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "verbs/event.h"
#include "verbs/qp.h"

static int hash_fill(const struct ibv_rx_hash_conf *conf, struct mlx5_ib_create_qp_rss *driver)
{
	if (conf->rx_hash_key_len > sizeof driver->rx_hash_key)
		return EINVAL;
	driver->rx_hash_fields_mask = conf->rx_hash_fields_mask;
	driver->rx_hash_function = conf->rx_hash_function;
	driver->rx_key_len = conf->rx_hash_key_len;
	memcpy(driver->rx_hash_key, conf->rx_hash_key, conf->rx_hash_key_len);
	return 0;
}

/* The queues of the table receive, so it can't.  Whether it may send is for the device to say. */
static bool has_receives(const struct ibv_qp_init_attr_ex *attr)
{
	return attr->cap.max_recv_wr || attr->cap.max_recv_sge || attr->recv_cq || attr->srq;
}

static int attr_check(const struct ibv_qp_init_attr_ex *attr)
{
	enum { BOTH = IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH };

	if ((attr->comp_mask & BOTH) != BOTH || !attr->rwq_ind_tbl || has_receives(attr) ||
	    attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		return EINVAL;
	return attr->cap.max_send_wr && !attr->send_cq ? EINVAL : 0;
}

static int hash_qp_begin(struct vb_qp *qp, struct ibv_qp_init_attr_ex *attr, uint32_t flags)
{
	struct mlx5_ib_create_qp_rss driver = { .flags = flags };
	int error = attr_check(attr);

	if (!error)
		error = hash_fill(&attr->rx_hash_conf, &driver);
	return error ? error : vb_qp_command(qp, attr, &driver, sizeof driver);
}

struct ibv_qp *vb_create_hash_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
				 uint32_t flags)
{
	struct vb_qp *qp = calloc(1, sizeof *qp);
	struct ibv_qp *base;
	int error;

	if (!qp)
		return NULL;
	base = vb_qp_base(qp);
	base->context = context;
	base->qp_context = attr->qp_context;
	base->pd = attr->pd;
	base->qp_type = attr->qp_type;
	qp->type = attr->qp_type;
	qp->only_spreads = true;
	qp->context = vb_context_of(context);
	vb_event_state_begin(&base->mutex, &base->cond);
	error = hash_qp_begin(qp, attr, flags);
	if (!error)
		return base;
	vb_event_state_end(&base->mutex, &base->cond);
	free(qp);
	errno = error;
	return NULL;
}
