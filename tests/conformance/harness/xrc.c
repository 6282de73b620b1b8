/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An end that speaks XRC: its QP only sends, a target QP only receives, and receives are in a
 * shared queue of the same domain.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include "end.h"

/* By a file, or without one: nobody else's. */
static struct ibv_xrcd *domain_open(struct ibv_context *context, const char *path, int oflags)
{
	struct ibv_xrcd_init_attr init = { .fd = -1, .oflags = oflags,
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS };
	struct ibv_xrcd *xrcd;
	int err;

	if (path)
		init.fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (path && init.fd < 0)
		return NULL;
	errno = 0;
	xrcd = ibv_open_xrcd(context, &init);
	err = errno;
	if (path)
		close(init.fd);
	errno = err;
	return xrcd;
}

int end_xrc_open(struct end *e)
{
	struct ibv_srq_init_attr_ex queue = { .attr = { .max_wr = 32, .max_sge = 4 },
		.srq_type = IBV_SRQT_XRC, .pd = e->pd, .cq = e->cq[RECV_CQ],
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD };
	struct ibv_qp_init_attr_ex target = { .qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD };

	e->xrcd = domain_open(e->context, e->opts.domain[0] ? e->opts.domain : NULL, O_CREAT);
	if (!e->xrcd)
		return errno;
	queue.xrcd = target.xrcd = e->xrcd;
	e->srq = ibv_create_srq_ex(e->context, &queue);
	if (!e->srq)
		return errno;
	e->target = ibv_create_qp_ex(e->context, &target);
	return e->target ? 0 : errno;
}

int end_xrc_connect(struct end *e, const struct end_info *other)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1,
				    .qp_access_flags = e->opts.qp_access };
	int err = ibv_modify_qp(e->target, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				IBV_QP_ACCESS_FLAGS);

	if (err)
		return err;
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR, .path_mtu = e->opts.mtu, .rq_psn = e->opts.rq_psn,
		.dest_qp_num = other->qpn, .max_dest_rd_atomic = e->opts.dest_rd_atomic,
		.min_rnr_timer = e->opts.min_rnr_timer,
		.ah_attr = end_path(&other->gid, e->opts.gid_index),
	};
	err = ibv_modify_qp(e->target, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			    IBV_QP_MIN_RNR_TIMER);
	if (err)
		return err;
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = e->opts.timeout,
				     .sq_psn = e->opts.sq_psn };
	return ibv_modify_qp(e->target, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN);
}

void end_xrc_close(struct end *e)
{
	if (!e->xrcd)
		return;
	if (e->opener)
		end_target_shut(e);
	if (e->target)
		ibv_destroy_qp(e->target);
	if (e->srq)
		ibv_destroy_srq(e->srq);
	e->srq = NULL;
	ibv_close_xrcd(e->xrcd);
}

/* libmlx5 44 can't destroy what ibv_open_qp() gave; it goes with its context. */
int end_target_shut(struct end *e)
{
	int err = e->opener ? ibv_close_device(e->opener) : 0;

	e->target = e->own_target;
	e->opener = NULL;
	return err;
}

static struct ibv_qp *target_open(struct end *e, uint32_t qpn)
{
	struct ibv_qp_open_attr attr = { .qp_num = qpn, .qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_TYPE };

	attr.xrcd = domain_open(e->opener, e->opts.domain, O_CREAT);
	errno = 0;
	return attr.xrcd ? ibv_open_qp(e->opener, &attr) : NULL;
}

int end_target_open(struct end *e, uint32_t qpn)
{
	struct ibv_qp *qp;
	int err;

	if (e->opener)
		end_target_shut(e);
	e->own_target = e->target;
	e->opener = device_open();
	if (!e->opener)
		return errno;
	qp = target_open(e, qpn);
	err = errno;
	e->target = qp ? qp : e->target;
	if (!qp)
		end_target_shut(e);
	return qp ? 0 : err;
}

bool end_target_event(struct end *e, enum ibv_event_type type, int ms)
{
	struct pollfd fd = { .fd = e->opener->async_fd, .events = POLLIN };
	struct ibv_async_event event;
	bool is_it;

	if (poll(&fd, 1, ms) != 1 || ibv_get_async_event(e->opener, &event))
		return false;
	is_it = event.event_type == type && event.element.qp == e->target;
	ibv_ack_async_event(&event);
	return is_it;
}

int end_target_to(struct end *e, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return ibv_modify_qp(e->target, &attr, IBV_QP_STATE);
}

enum ibv_qp_state end_target_state(struct end *e)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	if (ibv_query_qp(e->target, &attr, IBV_QP_STATE, &init))
		return IBV_QPS_UNKNOWN;
	return attr.qp_state;
}

int end_domain_open(struct end *e, const char *path, int oflags)
{
	e->file_xrcd = domain_open(e->context, path, oflags);
	return e->file_xrcd ? 0 : errno;
}

int end_domain_close(struct end *e)
{
	return ibv_close_xrcd(e->file_xrcd);
}
