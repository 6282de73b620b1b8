/* SPDX-License-Identifier: BSD-2-Clause */
/* A device through the public verbs; see verbs.h. */
#include "verbs.h"
#include <string.h>
#include <sys/mman.h>

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
		IBV_ACCESS_REMOTE_ATOMIC)

static struct ibv_context *device_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	need(list, "ibv_get_device_list");
	if (!list[0])
		die("bench: no RDMA device; run it with `verbena run`");
	context = ibv_open_device(list[0]);
	need(context, "ibv_open_device");
	ibv_free_device_list(list);
	return context;
}

void port_open(struct port *p, size_t bytes, int cqe)
{
	p->context = device_open();
	p->pd = ibv_alloc_pd(p->context);
	need(p->pd, "ibv_alloc_pd");
	p->buf = memory_private(bytes);
	p->bytes = bytes;
	p->mr = ibv_reg_mr(p->pd, p->buf, bytes, ACCESS);
	need(p->mr, "ibv_reg_mr");
	p->channel = ibv_create_comp_channel(p->context);
	need(p->channel, "ibv_create_comp_channel");
	p->send_cq = ibv_create_cq(p->context, cqe, NULL, NULL, 0);
	p->recv_cq = ibv_create_cq(p->context, cqe, NULL, p->channel, 0);
	need(p->send_cq && p->recv_cq, "ibv_create_cq");
	need(!ibv_query_gid(p->context, 1, GID_INDEX, &p->gid), "ibv_query_gid");
}

/* The queue pairs must be gone already. */
void port_close(struct port *p)
{
	ibv_destroy_cq(p->send_cq);
	ibv_destroy_cq(p->recv_cq);
	ibv_destroy_comp_channel(p->channel);
	ibv_dereg_mr(p->mr);
	ibv_dealloc_pd(p->pd);
	ibv_close_device(p->context);
	munmap(p->buf, p->bytes);
}

struct ibv_qp *qp_new(struct port *p, unsigned depth)
{
	struct ibv_qp_init_attr init = {
		.send_cq = p->send_cq, .recv_cq = p->recv_cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = depth, .max_recv_wr = depth, .max_send_sge = 1,
			 .max_recv_sge = 1, .max_inline_data = INLINE_BYTES },
	};
	struct ibv_qp *qp = ibv_create_qp(p->pd, &init);

	need(qp, "ibv_create_qp");
	return qp;
}

struct address qp_address(const struct port *p, const struct ibv_qp *qp)
{
	return (struct address){
		.gid = p->gid, .qpn = qp->qp_num, .rkey = p->mr->rkey, .addr = (uintptr_t)p->buf,
	};
}

static void qp_step(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int error = ibv_modify_qp(qp, attr, mask | IBV_QP_STATE);

	if (error)
		die("bench: ibv_modify_qp to %d: %s", attr->qp_state, strerror(error));
}

void qp_connect(struct ibv_qp *qp, const struct address *peer)
{
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ACCESS,
	};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096, .dest_qp_num = peer->qpn,
		.max_dest_rd_atomic = 16, .min_rnr_timer = 1,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = peer->gid, .sgid_index = GID_INDEX,
				      .hop_limit = 64 } },
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .timeout = 16, .retry_cnt = 7, .rnr_retry = 7,
		.max_rd_atomic = 16,
	};

	qp_step(qp, &init, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	qp_step(qp, &rtr, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	qp_step(qp, &rts, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		IBV_QP_MAX_QP_RD_ATOMIC);
}

void qp_pair_new(struct port *p, unsigned depth, struct ibv_qp *out[2])
{
	struct address address[2];

	for (int i = 0; i < 2; i++) {
		out[i] = qp_new(p, depth);
		address[i] = qp_address(p, out[i]);
	}
	qp_connect(out[0], &address[1]);
	qp_connect(out[1], &address[0]);
}

void request_set(struct request *r, const struct port *p, enum ibv_wr_opcode opcode,
		 size_t local, uint32_t bytes, const struct address *peer, size_t remote)
{
	*r = (struct request){
		.sge = { (uintptr_t)p->buf + local, bytes, p->mr->lkey },
		.wr = { .opcode = opcode, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED },
	};
	r->wr.sg_list = &r->sge;
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		r->wr.wr.atomic.remote_addr = peer->addr + remote;
		r->wr.wr.atomic.rkey = peer->rkey;
		r->wr.wr.atomic.compare_add = 1;
	} else if (opcode != IBV_WR_SEND) {
		r->wr.wr.rdma.remote_addr = peer->addr + remote;
		r->wr.wr.rdma.rkey = peer->rkey;
	}
}

void recv_post(struct ibv_qp *qp, const struct port *p, size_t local, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)p->buf + local, bytes, p->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };
	int error = ibv_post_recv(qp, &wr, &bad);

	if (error)
		die("bench: ibv_post_recv: errno %d", error);
}
