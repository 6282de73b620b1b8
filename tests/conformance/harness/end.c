/* SPDX-License-Identifier: BSD-2-Clause */
/* One end of a conversation; see end.h. */
#include "end.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include "raw.h"
#include "window.h"

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void end_defaults(struct end_opts *opts)
{
	*opts = (struct end_opts){
		.type = IBV_QPT_RC, .qkey = 0x11111111,
		.qp_access = ACCESS_ALL, .mr_access = ACCESS_ALL,
		.mtu = IBV_MTU_1024, .gid_index = GID_INDEX,
		.timeout = 16, .retry = 7, .rnr_retry = 7, .min_rnr_timer = 1,
		.rd_atomic = 4, .dest_rd_atomic = 4,
		.sq_psn = 0x1000, .rq_psn = 0x1000,
		.cap = { .max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 4,
			 .max_recv_sge = 4, .max_inline_data = 64 },
		.cqe = 255, .bytes = 1 << 16, .state = IBV_QPS_RTS, .wants_raw = true,
	};
}

struct ibv_context *device_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	if (list && list[0])
		context = ibv_open_device(list[0]);
	else
		errno = ENODEV;
	if (list)
		ibv_free_device_list(list);
	return context;
}

static int context_take(struct end *e, const struct end *shared)
{
	if (shared) {
		e->context = shared->context;
		e->log = shared->log;
		return 0;
	}
	e->context = device_open();
	e->log = calloc(1, sizeof *e->log);
	if (!e->context || !e->log)
		return errno;
	e->owns_context = true;
	return fcntl(e->context->async_fd, F_SETFL, O_NONBLOCK) ? errno : 0;
}

static struct ibv_cq *cq_create(struct end *e)
{
	struct ibv_cq_init_attr_ex init = {
		.cqe = (uint32_t)e->opts.cqe, .channel = e->channel,
		.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM |
			    IBV_WC_EX_WITH_SRC_QP | e->opts.wc_flags,
	};
	struct ibv_cq_ex *cq;

	if (!e->opts.is_extended)
		return ibv_create_cq(e->context, e->opts.cqe, NULL, e->channel, 0);
	cq = ibv_create_cq_ex(e->context, &init);
	return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

static int queues_create(struct end *e)
{
	e->channel = ibv_create_comp_channel(e->context);
	if (!e->channel)
		return errno;
	e->cq[SEND_CQ] = cq_create(e);
	e->cq[RECV_CQ] = e->opts.has_one_cq ? e->cq[SEND_CQ] : cq_create(e);
	return e->cq[SEND_CQ] && e->cq[RECV_CQ] ? 0 : errno;
}

static int srq_create(struct end *e)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = e->opts.srq_wr, .max_sge = 4 } };

	if (e->opts.type == IBV_QPT_XRC_SEND)
		return end_xrc_open(e);
	if (!e->opts.srq_wr)
		return 0;
	e->srq = ibv_create_srq(e->pd, &init);
	return e->srq ? 0 : errno;
}

#define OPS_UD	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define OPS_UC	(OPS_UD | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
#define OPS_RC	(OPS_UC | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
		 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)

/* What a QP type can be asked for, and which attributes take it to each state. */
static const struct type_row {
	uint64_t send_ops;
	int init, rtr, rts;
} types[] = {
	[IBV_QPT_RC] = { OPS_RC, IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS,
		IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		IBV_QP_MAX_QP_RD_ATOMIC },
	[IBV_QPT_XRC_SEND] = { OPS_RC, IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS,
		IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
		IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		IBV_QP_MAX_QP_RD_ATOMIC },
	[IBV_QPT_UC] = { OPS_UC, IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS,
		IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN, IBV_QP_SQ_PSN },
	[IBV_QPT_UD] = { OPS_UD, IBV_QP_PKEY_INDEX | IBV_QP_QKEY, 0, IBV_QP_SQ_PSN },
	[IBV_QPT_RAW_PACKET] = { IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO, 0, 0, 0 },
};

static int qp_create(struct end *e)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = e->cq[SEND_CQ], .recv_cq = e->cq[RECV_CQ],
		.srq = e->xrcd ? NULL : e->srq,
		.cap = e->opts.cap, .qp_type = e->opts.type, .sq_sig_all = e->opts.sig_all,
		.pd = e->pd, .comp_mask = IBV_QP_INIT_ATTR_PD,
		.send_ops_flags = types[e->opts.type].send_ops,
		.create_flags = e->opts.create_flags,
	};

	if (e->opts.create_flags)
		init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	if (e->opts.is_extended)
		init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	if (e->opts.is_extended || e->opts.create_flags) {
		e->qp = ibv_create_qp_ex(e->context, &init);
	} else {
		e->qp = ibv_create_qp(e->pd, (struct ibv_qp_init_attr *)&init);
	}
	return e->qp ? 0 : errno;
}

/*
 * Memory in a part of the address space of its own, far from where the kernel puts what
 * other code maps: a case that unmaps it leaves a hole that stays one.
 */
static uint8_t *buffer_map(size_t bytes)
{
	static uint64_t taken;
	uint64_t at = UINT64_C(0x200000000000) +
		      __atomic_fetch_add(&taken, UINT64_C(1) << 32, __ATOMIC_RELAXED);

	return mmap((void *)(uintptr_t)at, bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

int end_open(struct end *e, const struct end_opts *opts, const struct end *shared)
{
	int err;

	memset(e, 0, sizeof *e);
	e->opts = *opts;
	err = context_take(e, shared);
	if (err)
		return err;
	e->owns_pd = !shared || !shared->lends_pd;
	e->pd = e->owns_pd ? ibv_alloc_pd(e->context) : shared->pd;
	e->buf = buffer_map(opts->bytes);
	if (!e->pd || e->buf == MAP_FAILED)
		return errno;
	e->mr = ibv_reg_mr(e->pd, e->buf, opts->bytes, opts->mr_access);
	if (!e->mr)
		return errno;
	err = queues_create(e);
	if (!err)
		err = srq_create(e);
	return err ? err : qp_create(e);
}

int end_swap_qp(struct end *e)
{
	struct ibv_qp *qp = e->qp;
	int err = 0;

	e->qp = e->spare_qp;
	e->spare_qp = qp;
	if (!e->qp)
		err = qp_create(e);
	return err;
}

void end_close(struct end *e)
{
	if (e->qp)
		ibv_destroy_qp(e->qp);
	if (e->spare_qp)
		ibv_destroy_qp(e->spare_qp);
	end_windows_close(e);
	end_xrc_close(e);
	if (e->srq)
		ibv_destroy_srq(e->srq);
	for (unsigned i = 0; i < END_AHS_MAX; i++)
		if (e->ah[i].ah)
			ibv_destroy_ah(e->ah[i].ah);
	for (unsigned i = 0; i < END_KEYS_MAX; i++)
		end_deregister(e, i);
	if (e->mr)
		ibv_dereg_mr(e->mr);
	if (e->cq[RECV_CQ] && e->cq[RECV_CQ] != e->cq[SEND_CQ])
		ibv_destroy_cq(e->cq[RECV_CQ]);
	if (e->cq[SEND_CQ])
		ibv_destroy_cq(e->cq[SEND_CQ]);
	if (e->channel)
		ibv_destroy_comp_channel(e->channel);
	if (e->owns_pd && e->pd)
		ibv_dealloc_pd(e->pd);
	if (e->owns_context) {
		ibv_close_device(e->context);
		free(e->log);
	}
	if (e->buf && e->buf != MAP_FAILED)
		munmap(e->buf, e->opts.bytes);
	memset(e, 0, sizeof *e);
}

void end_describe(const struct end *e, struct end_info *out)
{
	struct ibv_port_attr port;

	*out = (struct end_info){
		.qpn = e->qp->qp_num, .psn = e->opts.sq_psn,
		.lkey = e->mr->lkey, .rkey = e->mr->rkey,
		.addr = (uintptr_t)e->buf, .bytes = e->opts.bytes,
	};
	if (e->opts.gid_index == GID_INDEX && !ibv_query_port(e->context, 1, &port) &&
	    port.link_layer == IBV_LINK_LAYER_INFINIBAND)
		out->gid = end_lid_as_gid(port.lid);
	else
		ibv_query_gid(e->context, 1, e->opts.gid_index, &out->gid);
	if (e->target && !ibv_get_srq_num(e->srq, &out->srqn))
		out->target_qpn = e->target->qp_num;
}

static const uint8_t lid_form[14] = "a LID, no GID";

union ibv_gid end_lid_as_gid(uint16_t lid)
{
	union ibv_gid gid;

	memcpy(gid.raw, lid_form, sizeof lid_form);
	gid.raw[14] = (uint8_t)(lid >> 8);
	gid.raw[15] = (uint8_t)lid;
	return gid;
}

struct ibv_ah_attr end_path(const union ibv_gid *gid, uint8_t sgid_index)
{
	struct ibv_ah_attr path = { .port_num = 1 };

	if (!memcmp(gid->raw, lid_form, sizeof lid_form)) {
		path.dlid = (uint16_t)(gid->raw[14] << 8 | gid->raw[15]);
		return path;
	}
	path.is_global = 1;
	path.grh.dgid = *gid;
	path.grh.sgid_index = sgid_index;
	path.grh.hop_limit = 64;
	return path;
}

int end_to_init(struct end *e)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = e->opts.qp_access,
		.qkey = e->opts.qkey, .pkey_index = e->opts.pkey_index,
	};

	return ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_PORT | types[e->opts.type].init);
}

int end_to_rtr(struct end *e, const struct end_info *other)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = e->opts.mtu, .rq_psn = e->opts.rq_psn,
		.dest_qp_num = e->opts.dest_qpn ? e->opts.dest_qpn :
			       other->target_qpn ? other->target_qpn : other->qpn,
		.max_dest_rd_atomic = e->opts.dest_rd_atomic,
		.min_rnr_timer = e->opts.min_rnr_timer,
		.ah_attr = end_path(&other->gid, e->opts.gid_index),
	};

	e->other = *other;
	attr.ah_attr.src_path_bits = e->opts.path_bits;
	return ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | types[e->opts.type].rtr);
}

int end_to_rts(struct end *e)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS, .timeout = e->opts.timeout, .retry_cnt = e->opts.retry,
		.rnr_retry = e->opts.rnr_retry, .sq_psn = e->opts.sq_psn,
		.max_rd_atomic = e->opts.rd_atomic,
	};

	return ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | types[e->opts.type].rts);
}

int end_to(struct end *e, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return ibv_modify_qp(e->qp, &attr, IBV_QP_STATE);
}

int end_connect(struct end *e, const struct end_info *other)
{
	int err = 0;

	if (e->opts.state >= IBV_QPS_INIT)
		err = end_to_init(e);
	if (!err && e->opts.state >= IBV_QPS_RTR)
		err = end_to_rtr(e, other);
	if (!err && e->target)
		err = end_xrc_connect(e, other);
	if (!err && e->opts.state >= IBV_QPS_RTS)
		err = end_to_rts(e);
	if (!err && e->opts.state == IBV_QPS_ERR)
		err = end_to(e, IBV_QPS_ERR);
	return err;
}

static bool gid_is_zero(const union ibv_gid *gid)
{
	return !gid->global.subnet_prefix && !gid->global.interface_id;
}

struct ibv_ah *end_ah(struct end *e, const union ibv_gid *gid)
{
	struct ibv_ah_attr attr = end_path(gid, e->opts.gid_index);

	attr.src_path_bits = e->opts.path_bits;
	for (unsigned i = 0; i < END_AHS_MAX; i++) {
		struct end_ah *a = &e->ah[i];

		if (a->ah && memcmp(&a->gid, gid, sizeof *gid))
			continue;
		if (!a->ah)
			*a = (struct end_ah){ *gid, ibv_create_ah(e->pd, &attr) };
		return a->ah;
	}
	errno = ENOSPC;
	return NULL;
}

static int datagram_address(struct end *e, const struct work *work, struct ibv_send_wr *wr)
{
	wr->wr.ud.ah = end_ah(e, gid_is_zero(&work->gid) ? &e->other.gid : &work->gid);
	wr->wr.ud.remote_qpn = work->remote_qpn ? work->remote_qpn : e->other.qpn;
	wr->wr.ud.remote_qkey = e->opts.qkey ^ work->qkey_error;
	return wr->wr.ud.ah ? 0 : errno;
}

static bool is_atomic(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

int end_post(struct end *e, const struct work *work)
{
	struct work copy = *work;
	struct ibv_send_wr *bad, wr = {
		.wr_id = copy.wr_id, .opcode = copy.opcode, .send_flags = copy.flags,
		.sg_list = copy.sge, .num_sge = (int)copy.sge_count,
	};

	if (copy.opcode == IBV_WR_SEND_WITH_INV || copy.opcode == IBV_WR_LOCAL_INV)
		wr.invalidate_rkey = copy.imm;
	else
		wr.imm_data = htobe32(copy.imm);
	if (is_atomic(copy.opcode)) {
		wr.wr.atomic.remote_addr = copy.remote_addr;
		wr.wr.atomic.rkey = copy.rkey;
		wr.wr.atomic.compare_add = copy.compare_add;
		wr.wr.atomic.swap = copy.swap;
	} else if (e->opts.type != IBV_QPT_UD) {
		wr.wr.rdma.remote_addr = copy.remote_addr;
		wr.wr.rdma.rkey = copy.rkey;
	} else {
		int err = datagram_address(e, work, &wr);

		if (err)
			return err;
	}
	if (e->target)
		wr.qp_type.xrc.remote_srqn = copy.srqn ? copy.srqn : e->other.srqn;
	return ibv_post_send(e->qp, &wr, &bad);
}

int end_post_recv(struct end *e, const struct work *work)
{
	struct work copy = *work;
	struct ibv_recv_wr *bad, wr = {
		.wr_id = copy.wr_id, .sg_list = copy.sge, .num_sge = (int)copy.sge_count,
	};

	return e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad) : ibv_post_recv(e->qp, &wr, &bad);
}

/* One poll; keeps the bytes of an error. */
static bool poll_once(struct end *e, enum end_queue queue, struct done *out)
{
	if (ibv_poll_cq(e->cq[queue], 1, &out->wc) != 1)
		return false;
	out->found = true;
	if (e->opts.wants_raw && out->wc.status != IBV_WC_SUCCESS)
		raw_cqe_last(e->cq[queue], out->cqe);
	return true;
}

void end_await(struct end *e, enum end_queue queue, struct done *out)
{
	uint64_t deadline = now_ms() + AWAIT_MS;

	memset(out, 0, sizeof *out);
	do {
		for (unsigned i = 0; i < 100; i++)
			if (poll_once(e, queue, out))
				return;
		sched_yield();
	} while (now_ms() < deadline);
}

void end_glance(struct end *e, enum end_queue queue, struct done *out)
{
	memset(out, 0, sizeof *out);
	for (unsigned i = 0; i < QUIET_POLLS; i++) {
		if (poll_once(e, queue, out))
			return;
		if (i % 16 == 15)
			sched_yield();
	}
}

enum ibv_qp_state end_state(struct end *e)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	if (ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init))
		return IBV_QPS_UNKNOWN;
	return attr.qp_state;
}

int end_register(struct end *e, uint64_t addr, uint64_t bytes, unsigned access, bool other_pd)
{
	unsigned slot = 0;
	struct end_key *k;

	while (slot < END_KEYS_MAX && e->key[slot].mr)
		slot++;
	if (slot == END_KEYS_MAX) {
		errno = ENOSPC;
		return -1;
	}
	k = &e->key[slot];
	k->pd = other_pd ? ibv_alloc_pd(e->context) : NULL;
	if (other_pd && !k->pd)
		return -1;
	k->mr = ibv_reg_mr(other_pd ? k->pd : e->pd, (void *)(uintptr_t)addr, bytes, access);
	return k->mr ? (int)slot : -1;
}

int end_deregister(struct end *e, unsigned slot)
{
	struct end_key *k = &e->key[slot];
	int err = k->mr ? ibv_dereg_mr(k->mr) : 0;

	if (err)
		return err;
	if (k->pd)
		ibv_dealloc_pd(k->pd);
	*k = (struct end_key){ NULL, NULL };
	return err;
}
