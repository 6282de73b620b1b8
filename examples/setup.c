/* SPDX-License-Identifier: BSD-2-Clause */
/* Resources of a pingpong and the way to its peer; see pingpong.h. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "examples/fail.h"
#include "examples/pingpong.h"

enum {
	GRH_BYTES = 40,			/* in front of each datagram that is received */
	RNR_TIMER_640_US = 12,
	TIMEOUT_67_MS = 14,
	RETRIES = 7,			/* for RNR: without end */
};

/* --- memory -------------------------------------------------------------- */

static void prefetch(struct pingpong *p)
{
	struct ibv_sge sge = pingpong_sge(p, true);
	int error = ibv_advise_mr(p->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
				  IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);

	if (error)
		fprintf(stderr, "%s: pages could not be fetched beforehand (errno %d), going on\n",
			program_invocation_short_name, error);
}

static void alloc_device_memory(struct pingpong *p, uint64_t max_bytes)
{
	struct ibv_alloc_dm_attr attr = { .length = p->buffer_bytes };

	if (max_bytes < p->buffer_bytes)
		fail("the device has %llu bytes of memory, the message needs %zu",
		     (unsigned long long)max_bytes, p->buffer_bytes);
	p->dm = made(ibv_alloc_dm(p->context, &attr), "allocate %zu bytes of device memory",
		     p->buffer_bytes);
}

static void need_odp(const struct pingpong *p, const struct ibv_device_attr_ex *attr)
{
	uint32_t receive = p->transport->has_srq ? IBV_ODP_SUPPORT_SRQ_RECV : IBV_ODP_SUPPORT_RECV;

	device_needs_odp(attr, attr->odp_caps.per_transport_caps.rc_odp_caps,
			 IBV_ODP_SUPPORT_SEND | receive);
	if (p->options->wants_implicit_odp &&
	    !(attr->odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT))
		fail("the device cannot page the whole address space on demand");
}

static void register_memory(struct pingpong *p, int access)
{
	if (p->dm)
		p->mr = ibv_reg_dm_mr(p->pd, p->dm, 0, p->buffer_bytes,
				      (unsigned)access | IBV_ACCESS_ZERO_BASED);
	else if (p->options->wants_implicit_odp)
		p->mr = ibv_reg_mr(p->pd, NULL, SIZE_MAX, access);
	else
		p->mr = ibv_reg_mr(p->pd, p->buffer, p->buffer_bytes, access);
	made(p->mr, "register %zu bytes of memory", p->buffer_bytes);
}

static void open_memory(struct pingpong *p)
{
	const struct options *o = p->options;
	struct ibv_device_attr_ex attr;
	int access = IBV_ACCESS_LOCAL_WRITE;

	check(ibv_query_device_ex(p->context, NULL, &attr), "query the device");
	if (o->wants_odp || o->wants_implicit_odp) {
		need_odp(p, &attr);
		access |= IBV_ACCESS_ON_DEMAND;
	}
	if (o->wants_timestamps && !attr.completion_timestamp_mask)
		fail("the device puts no timestamps into completions");
	p->clock_mask = attr.completion_timestamp_mask;
	p->buffer = buffer_alloc(p->buffer_bytes);
	if (o->wants_device_memory)
		alloc_device_memory(p, attr.max_dm_size);
	register_memory(p, access);
	if (o->wants_prefetch)
		prefetch(p);
}

/* --- queues -------------------------------------------------------------- */

static void open_cq(struct pingpong *p)
{
	unsigned entries = (unsigned)p->options->rx_depth + p->pair_count;
	struct ibv_cq_init_attr_ex attr = {
		.cqe = entries,
		.channel = p->channel,
		.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
	};

	if (p->options->wants_timestamps) {
		p->cq_ex = made(ibv_create_cq_ex(p->context, &attr),
				"create a CQ of %u entries with timestamps", entries);
		p->cq = ibv_cq_ex_to_cq(p->cq_ex);
	} else {
		p->cq = made(ibv_create_cq(p->context, (int)entries, NULL, p->channel, 0),
			     "create a CQ of %u entries", entries);
	}
}

static void open_srq(struct pingpong *p)
{
	struct ibv_srq_init_attr attr = {
		.attr = { .max_wr = (uint32_t)p->options->rx_depth, .max_sge = 1 },
	};

	p->srq = made(ibv_create_srq(p->pd, &attr), "create an SRQ of %d entries",
		      p->options->rx_depth);
}

/* Small messages travel inside of the work request if the queue pair has the room anyway. */
static void choose_inline(struct pingpong *p, uint32_t max_inline_bytes)
{
	if (!p->dm && max_inline_bytes >= (uint32_t)p->options->size_bytes)
		p->send_flags |= IBV_SEND_INLINE;
}

static struct ibv_qp *open_qp(struct pingpong *p)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = p->transport->type,
		.send_cq = p->cq,
		.recv_cq = p->cq,
		.srq = p->srq,
		.cap = {
			.max_send_wr = 1,
			.max_send_sge = 1,
			.max_recv_wr = p->srq ? 0 : (uint32_t)p->options->rx_depth,
			.max_recv_sge = p->srq ? 0 : 1,
		},
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = p->pd,
	};
	struct ibv_qp *qp;

	if (p->options->wants_new_send) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
	}
	qp = made(ibv_create_qp_ex(p->context, &attr), "create a queue pair with %d receives",
		  p->options->rx_depth);
	choose_inline(p, attr.cap.max_inline_data);
	return qp;
}

/* All that the state INIT may want to know; the transport's mask picks. */
static void qp_init(struct pingpong *p, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = (uint8_t)p->options->ib_port,
		.qkey = PINGPONG_QKEY,
	};

	qp_change(qp, &attr, p->transport->init_mask);
}

static void open_queues(struct pingpong *p)
{
	open_cq(p);
	if (p->transport->has_srq)
		open_srq(p);
	for (unsigned i = 0; i < p->pair_count; i++) {
		p->qp[i] = open_qp(p);
		qp_init(p, p->qp[i]);
	}
}

/* --- the whole ----------------------------------------------------------- */

/* A datagram is one packet. */
static void check_datagram(const struct pingpong *p, const struct ibv_port_attr *port)
{
	int mtu_bytes = 128 << port->active_mtu;

	if (p->transport->is_datagram && p->options->size_bytes > mtu_bytes)
		fail("a datagram of %d bytes is more than the port's MTU, %d",
		     p->options->size_bytes, mtu_bytes);
}

void pingpong_open(struct pingpong *p)
{
	const struct options *o = p->options;
	struct ibv_port_attr port;
	union ibv_gid gid;

	p->pair_count = (unsigned)o->pair_count;
	p->header_bytes = p->transport->is_datagram ? GRH_BYTES : 0;
	p->buffer_bytes = (size_t)o->size_bytes + p->header_bytes;
	p->send_flags = IBV_SEND_SIGNALED;
	p->context = device_open(o->device);
	port = device_port(p->context, o);
	check_datagram(p, &port);
	gid = device_gid(p->context, o);
	if (o->wants_events)
		p->channel = made(ibv_create_comp_channel(p->context),
				  "create a completion channel");
	p->pd = made(ibv_alloc_pd(p->context), "allocate a protection domain");
	open_memory(p);
	open_queues(p);
	for (unsigned i = 0; i < p->pair_count; i++)
		p->local[i] = (struct endpoint){ port.lid, p->qp[i]->qp_num, psn_random(), gid };
}

/* All that the states RTR and RTS may want to know; the transport's masks pick. */
void pingpong_connect(struct pingpong *p)
{
	const struct transport *t = p->transport;

	for (unsigned i = 0; i < p->pair_count; i++) {
		const struct endpoint *remote = &p->remote[i];
		struct ibv_qp_attr attr = {
			.qp_state = IBV_QPS_RTR,
			.ah_attr = path_to(&remote->gid, remote->lid, p->options),
			.path_mtu = mtu_of_bytes(p->options->mtu_bytes),
			.dest_qp_num = remote->qpn,
			.rq_psn = remote->psn,
			.max_dest_rd_atomic = 1,
			.min_rnr_timer = RNR_TIMER_640_US,
			.sq_psn = p->local[i].psn,
			.timeout = TIMEOUT_67_MS,
			.retry_cnt = RETRIES,
			.rnr_retry = RETRIES,
			.max_rd_atomic = 1,
		};

		qp_change(p->qp[i], &attr, t->rtr_mask);
		attr.qp_state = IBV_QPS_RTS;
		qp_change(p->qp[i], &attr, t->rts_mask);
		if (t->is_datagram)
			p->ah = made(ibv_create_ah(p->pd, &attr.ah_attr),
				     "create an address handle for GID %s", gid_text(&remote->gid));
	}
}

void pingpong_close(struct pingpong *p)
{
	ibv_ack_cq_events(p->cq, p->event_count);
	for (unsigned i = 0; i < p->pair_count; i++)
		check(ibv_destroy_qp(p->qp[i]), "destroy a queue pair");
	if (p->ah)
		check(ibv_destroy_ah(p->ah), "destroy the address handle");
	if (p->srq)
		check(ibv_destroy_srq(p->srq), "destroy the SRQ");
	check(ibv_destroy_cq(p->cq), "destroy the CQ");
	check(ibv_dereg_mr(p->mr), "deregister the memory");
	if (p->dm)
		check(ibv_free_dm(p->dm), "free the device memory");
	check(ibv_dealloc_pd(p->pd), "free the protection domain");
	if (p->channel)
		check(ibv_destroy_comp_channel(p->channel), "destroy the completion channel");
	check(ibv_close_device(p->context), "close the device");
	free(p->buffer);
}
