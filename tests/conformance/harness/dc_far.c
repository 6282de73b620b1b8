/* SPDX-License-Identifier: BSD-2-Clause */
/* Targets, here or elsewhere; see dc.h. */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "dc.h"

enum { RECVS = 256 };

/* --- a host --- */

union ibv_gid dc_address(struct ibv_context *context)
{
	union ibv_gid gid = { 0 };
	struct ibv_port_attr port;

	if (!ibv_query_port(context, 1, &port) && port.link_layer == IBV_LINK_LAYER_INFINIBAND)
		return end_lid_as_gid(port.lid);
	ibv_query_gid(context, 1, GID_INDEX, &gid);
	return gid;
}

static void host_describe(const struct dc_host *h, struct dc_info *out)
{
	*out = (struct dc_info){ .gid = dc_address(h->context), .rkey = h->mr->rkey,
				 .addr = (uintptr_t)h->buf };
	for (unsigned i = 0; i < DC_TARGETS_MAX; i++)
		out->dctn[i] = h->target[i] ? h->target[i]->qp_num : 0;
}

struct ibv_qp *dct_create(struct dc_host *h, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_DRIVER, .send_cq = h->cq, .recv_cq = h->cq, .srq = srq,
		.pd = h->pd, .comp_mask = IBV_QP_INIT_ATTR_PD,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		.dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCT, .dct_access_key = DC_KEY },
	};

	return mlx5dv_create_qp(h->context, &init, &dv);
}

int dct_to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1,
				    .qp_access_flags = ACCESS_ALL & ~IBV_ACCESS_LOCAL_WRITE };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_ACCESS_FLAGS);
}

/* No destination: that is whoever comes. */
int dct_to_rtr(struct ibv_qp *qp)
{
	union ibv_gid own = dc_address(qp->context);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .min_rnr_timer = 1,
		.ah_attr = end_path(&own, GID_INDEX),
	};

	attr.ah_attr.dlid = 0;
	memset(&attr.ah_attr.grh.dgid, 0, sizeof attr.ah_attr.grh.dgid);
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV |
			     IBV_QP_PATH_MTU);
}

static int target_make(struct dc_host *h, unsigned number)
{
	struct ibv_qp *qp = dct_create(h, h->srq);
	int err = qp ? dct_to_init(qp) : errno;

	if (!err)
		err = dct_to_rtr(qp);
	if (err && qp)
		ibv_destroy_qp(qp);
	else
		h->target[number] = qp;
	return err;
}

int dc_host_open(struct dc_host *h, unsigned targets)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = RECVS, .max_sge = 1 } };
	int err = 0;

	memset(h, 0, sizeof *h);
	h->context = device_open();
	if (!h->context)
		return errno;
	h->pd = ibv_alloc_pd(h->context);
	h->cq = ibv_create_cq(h->context, 2 * RECVS, NULL, NULL, 0);
	h->buf = aligned_alloc(4096, DC_BYTES);
	if (!h->pd || !h->cq || !h->buf)
		return errno;
	memset(h->buf, 0, DC_BYTES);
	h->srq = ibv_create_srq(h->pd, &srq);
	h->mr = ibv_reg_mr(h->pd, h->buf, DC_BYTES, ACCESS_ALL);
	if (!h->srq || !h->mr)
		return errno;
	for (unsigned i = 0; !err && i < targets; i++)
		err = target_make(h, i);
	return err;
}

void dc_host_close(struct dc_host *h)
{
	for (unsigned i = 0; i < DC_TARGETS_MAX; i++)
		if (h->target[i])
			ibv_destroy_qp(h->target[i]);
	if (h->mr)
		ibv_dereg_mr(h->mr);
	if (h->srq)
		ibv_destroy_srq(h->srq);
	if (h->cq)
		ibv_destroy_cq(h->cq);
	if (h->pd)
		ibv_dealloc_pd(h->pd);
	if (h->context)
		ibv_close_device(h->context);
	free(h->buf);
	memset(h, 0, sizeof *h);
}

/* --- the side that serves --- */

enum far_op {
	FAR_OPEN, FAR_CLOSE, FAR_DESTROY, FAR_MAKE, FAR_RECV, FAR_AWAIT, FAR_GLANCE, FAR_FILL,
	FAR_DIFFERS, FAR_WORD, FAR_OP_COUNT
};

struct far_message {
	enum far_op op;
	int err;
	int64_t arg[3], result;
	struct dc_info info;
	struct done done;
};

static int on_open(struct dc_host *h, struct far_message *m)
{
	return dc_host_open(h, (unsigned)m->arg[0]);
}

static int on_close(struct dc_host *h, struct far_message *m)
{
	(void)m;
	dc_host_close(h);
	return 0;
}

static int on_destroy(struct dc_host *h, struct far_message *m)
{
	int err = ibv_destroy_qp(h->target[m->arg[0]]);

	h->target[m->arg[0]] = NULL;
	return err;
}

static int on_make(struct dc_host *h, struct far_message *m)
{
	return target_make(h, (unsigned)m->arg[0]);
}

static int on_recv(struct dc_host *h, struct far_message *m)
{
	struct ibv_sge sge = { .addr = (uintptr_t)h->buf + (uint64_t)m->arg[1],
			       .length = (uint32_t)m->arg[2], .lkey = h->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = (uint64_t)m->arg[0], .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	return ibv_post_srq_recv(h->srq, &wr, &bad);
}

static void cq_await(struct ibv_cq *cq, uint64_t ms, struct done *out)
{
	uint64_t deadline = now_ms() + ms;

	memset(out, 0, sizeof *out);
	do {
		for (unsigned i = 0; i < QUIET_POLLS && !out->found; i++)
			out->found = ibv_poll_cq(cq, 1, &out->wc) == 1;
		sched_yield();
	} while (!out->found && now_ms() < deadline);
}

static int on_await(struct dc_host *h, struct far_message *m)
{
	cq_await(h->cq, AWAIT_MS, &m->done);
	return 0;
}

static int on_glance(struct dc_host *h, struct far_message *m)
{
	cq_await(h->cq, 0, &m->done);
	return 0;
}

static int on_fill(struct dc_host *h, struct far_message *m)
{
	pattern_fill(h->buf + m->arg[0], (size_t)m->arg[1], (uint64_t)m->arg[2]);
	return 0;
}

static int on_differs(struct dc_host *h, struct far_message *m)
{
	m->result = pattern_differs(h->buf + m->arg[0], (size_t)m->arg[1], (uint64_t)m->arg[2]);
	return 0;
}

static int on_word(struct dc_host *h, struct far_message *m)
{
	memcpy(&m->result, h->buf + m->arg[0], sizeof m->result);
	return 0;
}

static int (*const handlers[FAR_OP_COUNT])(struct dc_host *, struct far_message *) = {
	[FAR_OPEN] = on_open, [FAR_CLOSE] = on_close, [FAR_DESTROY] = on_destroy,
	[FAR_MAKE] = on_make, [FAR_RECV] = on_recv, [FAR_AWAIT] = on_await,
	[FAR_GLANCE] = on_glance, [FAR_FILL] = on_fill, [FAR_DIFFERS] = on_differs,
	[FAR_WORD] = on_word,
};

static void answer(struct dc_host *h, struct far_message *m)
{
	m->err = handlers[m->op](h, m);
	if (!m->err && (m->op == FAR_OPEN || m->op == FAR_MAKE))
		host_describe(h, &m->info);
}

static void serve(int socket)
{
	struct dc_host h = { 0 };
	struct far_message m;

	while (recv(socket, &m, sizeof m, 0) == (ssize_t)sizeof m) {
		answer(&h, &m);
		if (send(socket, &m, sizeof m, MSG_NOSIGNAL) != (ssize_t)sizeof m ||
		    m.op == FAR_CLOSE)
			break;
	}
	close(socket);
}

static void *serve_thread(void *arg)
{
	serve((int)(intptr_t)arg);
	return NULL;
}

/* --- the side that calls --- */

static void far_start(struct dc_far *f, enum placement placement)
{
	int pair[2];

	f->placement = placement;
	if (placement == ONE_THREAD)
		return;
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	f->socket = pair[0];
	if (placement == TWO_THREADS) {
		cr_assert_eq(pthread_create(&f->thread, NULL, serve_thread,
					    (void *)(intptr_t)pair[1]), 0);
		return;
	}
	f->pid = fork();
	cr_assert_geq(f->pid, 0);
	if (!f->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pair[0]);
		serve(pair[1]);
		_exit(0);
	}
	close(pair[1]);
}

static void call(struct dc_far *f, struct far_message *m)
{
	if (f->placement == ONE_THREAD) {
		answer(&f->here, m);
		return;
	}
	cr_assert_eq(send(f->socket, m, sizeof *m, MSG_NOSIGNAL), (ssize_t)sizeof *m,
		     "the far side is gone (call %d)", m->op);
	cr_assert_eq(recv(f->socket, m, sizeof *m, 0), (ssize_t)sizeof *m,
		     "the far side died in call %d", m->op);
}

void dc_far_open(struct dc_far *f, enum placement placement, unsigned targets)
{
	struct far_message m = { .op = FAR_OPEN, .arg = { targets } };

	memset(f, 0, sizeof *f);
	far_start(f, placement);
	call(f, &m);
	cr_assert_eq(m.err, 0, "targets (%s): %s", placement_names[placement], strerror(m.err));
	f->info = m.info;
}

void dc_far_close(struct dc_far *f)
{
	struct far_message m = { .op = FAR_CLOSE };
	int status = 0;

	call(f, &m);
	if (f->placement == ONE_THREAD)
		return;
	close(f->socket);
	if (f->placement == TWO_THREADS) {
		pthread_join(f->thread, NULL);
		return;
	}
	cr_assert_eq(waitpid(f->pid, &status, 0), f->pid);
	cr_assert_eq(status, 0, "the far side ended with status 0x%x", status);
}

int dc_far_destroy(struct dc_far *f, unsigned target)
{
	struct far_message m = { .op = FAR_DESTROY, .arg = { target } };

	call(f, &m);
	return m.err;
}

int dc_far_make(struct dc_far *f, unsigned target)
{
	struct far_message m = { .op = FAR_MAKE, .arg = { target } };

	call(f, &m);
	if (!m.err)
		f->info = m.info;
	return m.err;
}

void dc_far_recv(struct dc_far *f, uint64_t wr_id, size_t offset, uint32_t bytes)
{
	struct far_message m = { .op = FAR_RECV,
				 .arg = { (int64_t)wr_id, (int64_t)offset, bytes } };

	call(f, &m);
	cr_assert_eq(m.err, 0, "receive: %s", strerror(m.err));
}

void dc_far_await(struct dc_far *f, struct done *out)
{
	struct far_message m = { .op = FAR_AWAIT };

	call(f, &m);
	*out = m.done;
}

void dc_far_glance(struct dc_far *f, struct done *out)
{
	struct far_message m = { .op = FAR_GLANCE };

	call(f, &m);
	*out = m.done;
}

void dc_far_fill(struct dc_far *f, size_t offset, size_t bytes, uint64_t seed)
{
	struct far_message m = { .op = FAR_FILL,
		.arg = { (int64_t)offset, (int64_t)bytes, (int64_t)seed } };

	call(f, &m);
}

int64_t dc_far_differs(struct dc_far *f, size_t offset, size_t bytes, uint64_t seed)
{
	struct far_message m = { .op = FAR_DIFFERS,
		.arg = { (int64_t)offset, (int64_t)bytes, (int64_t)seed } };

	call(f, &m);
	return m.result;
}

uint64_t dc_far_word(struct dc_far *f, size_t offset)
{
	struct far_message m = { .op = FAR_WORD, .arg = { (int64_t)offset } };

	call(f, &m);
	return (uint64_t)m.result;
}
