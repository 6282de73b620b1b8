/* SPDX-License-Identifier: BSD-2-Clause */
/* The other end of a conversation; see peer.h. */
#include "peer.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

const char *const placement_names[PLACEMENT_COUNT] = {
	[ONE_THREAD] = "one thread", [TWO_THREADS] = "two threads",
	[TWO_PROCESSES] = "two processes",
};

/* ---- the side that serves ---- */

static int on_open(struct end *e, struct peer_message *m, const struct end *shared)
{
	struct end_opts opts = m->u.opts;
	int err = end_open(e, &opts, shared);

	if (!err)
		end_describe(e, &m->u.info);
	return err;
}

static int on_close(struct end *e, struct peer_message *m)
{
	(void)m;
	end_close(e);
	return 0;
}

static int on_connect(struct end *e, struct peer_message *m)
{
	if (m->arg[0])
		e->opts.state = (enum ibv_qp_state)m->arg[0];
	return end_connect(e, &m->u.info);
}

static int on_to(struct end *e, struct peer_message *m)
{
	return end_to(e, (enum ibv_qp_state)m->arg[0]);
}

static int on_modify(struct end *e, struct peer_message *m)
{
	return ibv_modify_qp(e->qp, &m->u.attr, (int)m->arg[0]);
}

static int on_query(struct end *e, struct peer_message *m)
{
	struct ibv_qp_init_attr init;

	return ibv_query_qp(e->qp, &m->u.attr, IBV_QP_STATE, &init);
}

static int on_destroy_qp(struct end *e, struct peer_message *m)
{
	int err = ibv_destroy_qp(e->qp);

	(void)m;
	if (!err)
		e->qp = NULL;
	return err;
}

static int on_flow(struct end *e, struct peer_message *m)
{
	return flow_add(e->qp, &m->u.flow) ? 0 : errno;
}

static int on_mcast(struct end *e, struct peer_message *m)
{
	return m->arg[0] ? ibv_attach_mcast(e->qp, &m->u.info.gid, 0) :
			   ibv_detach_mcast(e->qp, &m->u.info.gid, 0);
}

static int on_post(struct end *e, struct peer_message *m)
{
	return end_post(e, &m->u.work);
}

static int on_post_recv(struct end *e, struct peer_message *m)
{
	return end_post_recv(e, &m->u.work);
}

static int on_await(struct end *e, struct peer_message *m)
{
	end_await(e, (enum end_queue)m->arg[0], &m->u.done);
	return 0;
}

static int on_glance(struct end *e, struct peer_message *m)
{
	end_glance(e, (enum end_queue)m->arg[0], &m->u.done);
	return 0;
}

static int on_event(struct end *e, struct peer_message *m)
{
	m->arg[2] = end_event(e, (enum ibv_event_type)m->arg[0], (int)m->arg[1]);
	return 0;
}

static int on_register(struct end *e, struct peer_message *m)
{
	int slot = end_register(e, (uint64_t)m->arg[0], (uint64_t)m->arg[1],
				(unsigned)m->arg[2], m->arg[3] != 0);

	if (slot < 0)
		return errno;
	m->arg[4] = slot;
	m->u.info = (struct end_info){ .lkey = e->key[slot].mr->lkey,
				       .rkey = e->key[slot].mr->rkey };
	return 0;
}

static int on_deregister(struct end *e, struct peer_message *m)
{
	return end_deregister(e, (unsigned)m->arg[0]);
}

static int on_read(struct end *e, struct peer_message *m)
{
	memcpy(m->u.bytes, e->buf + m->arg[0], (size_t)m->arg[1]);
	return 0;
}

static int on_fill(struct end *e, struct peer_message *m)
{
	pattern_fill(e->buf + m->arg[0], (size_t)m->arg[1], (uint64_t)m->arg[2]);
	return 0;
}

static int on_differs(struct end *e, struct peer_message *m)
{
	m->arg[3] = pattern_differs(e->buf + m->arg[0], (size_t)m->arg[1], (uint64_t)m->arg[2]);
	return 0;
}

static int on_unmap(struct end *e, struct peer_message *m)
{
	return munmap(e->buf + m->arg[0], (size_t)m->arg[1]) ? errno : 0;
}

static int on_srq_modify(struct end *e, struct peer_message *m)
{
	return ibv_modify_srq(e->srq, &m->u.srq, (int)m->arg[0]);
}

static int on_srq_query(struct end *e, struct peer_message *m)
{
	return ibv_query_srq(e->srq, &m->u.srq);
}

static int on_srq_destroy(struct end *e, struct peer_message *m)
{
	int err = ibv_destroy_srq(e->srq);

	(void)m;
	if (!err)
		e->srq = NULL;
	return err;
}

static int on_window(struct end *e, struct peer_message *m)
{
	return end_window(e, &m->u.window);
}

static int on_swap_qp(struct end *e, struct peer_message *m)
{
	int err = end_swap_qp(e);

	if (!err)
		end_describe(e, &m->u.info);
	return err;
}

static int on_target_to(struct end *e, struct peer_message *m)
{
	return end_target_to(e, (enum ibv_qp_state)m->arg[0]);
}

static int on_target_state(struct end *e, struct peer_message *m)
{
	m->arg[0] = end_target_state(e);
	return 0;
}

static int on_target_open(struct end *e, struct peer_message *m)
{
	return end_target_open(e, (uint32_t)m->arg[0]);
}

static int on_target_shut(struct end *e, struct peer_message *m)
{
	(void)m;
	return end_target_shut(e);
}

static int on_target_event(struct end *e, struct peer_message *m)
{
	m->arg[2] = end_target_event(e, (enum ibv_event_type)m->arg[0], (int)m->arg[1]);
	return 0;
}

static int on_target_destroy(struct end *e, struct peer_message *m)
{
	int err = ibv_destroy_qp(e->target);

	(void)m;
	if (!err)
		e->target = NULL;
	return err;
}

static int on_domain_open(struct end *e, struct peer_message *m)
{
	return end_domain_open(e, (const char *)m->u.bytes, (int)m->arg[0]);
}

static int on_domain_close(struct end *e, struct peer_message *m)
{
	(void)m;
	return end_domain_close(e);
}

static int (*const handlers[PEER_OP_COUNT])(struct end *, struct peer_message *) = {
	[PEER_MCAST] = on_mcast, [PEER_FLOW] = on_flow,
	[PEER_CLOSE] = on_close, [PEER_CONNECT] = on_connect, [PEER_TO] = on_to,
	[PEER_MODIFY] = on_modify, [PEER_QUERY] = on_query, [PEER_DESTROY_QP] = on_destroy_qp,
	[PEER_POST] = on_post, [PEER_POST_RECV] = on_post_recv, [PEER_AWAIT] = on_await,
	[PEER_GLANCE] = on_glance, [PEER_EVENT] = on_event, [PEER_REGISTER] = on_register,
	[PEER_DEREGISTER] = on_deregister, [PEER_READ] = on_read, [PEER_FILL] = on_fill,
	[PEER_DIFFERS] = on_differs, [PEER_UNMAP] = on_unmap,
	[PEER_SRQ_MODIFY] = on_srq_modify, [PEER_SRQ_QUERY] = on_srq_query,
	[PEER_SRQ_DESTROY] = on_srq_destroy,
	[PEER_TARGET_TO] = on_target_to, [PEER_TARGET_STATE] = on_target_state,
	[PEER_DOMAIN_OPEN] = on_domain_open, [PEER_DOMAIN_CLOSE] = on_domain_close,
	[PEER_TARGET_OPEN] = on_target_open, [PEER_TARGET_SHUT] = on_target_shut,
	[PEER_TARGET_EVENT] = on_target_event, [PEER_TARGET_DESTROY] = on_target_destroy,
	[PEER_WINDOW] = on_window, [PEER_SWAP_QP] = on_swap_qp,
};

static void answer(struct end *e, struct peer_message *m, const struct end *shared)
{
	m->err = m->op == PEER_OPEN ? on_open(e, m, shared) : handlers[m->op](e, m);
}

/* Serves until PEER_CLOSE.  The end of the socket is no sign: a peer that was started later
 * has inherited the caller's half. */
static void serve(int socket)
{
	struct end e = { 0 };
	struct peer_message m;

	while (recv(socket, &m, sizeof m, 0) == (ssize_t)sizeof m) {
		answer(&e, &m, NULL);
		if (send(socket, &m, sizeof m, MSG_NOSIGNAL) != (ssize_t)sizeof m ||
		    m.op == PEER_CLOSE)
			break;
	}
	close(socket);
}

static void *serve_thread(void *arg)
{
	serve((int)(intptr_t)arg);
	return NULL;
}

/* ---- the side that calls ---- */

void peer_start(struct peer *p, enum placement placement)
{
	int pair[2];

	memset(p, 0, sizeof *p);
	p->placement = placement;
	if (placement == ONE_THREAD)
		return;
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	p->socket = pair[0];
	if (placement == TWO_THREADS) {
		cr_assert_eq(pthread_create(&p->thread, NULL, serve_thread,
					    (void *)(intptr_t)pair[1]), 0);
		return;
	}
	p->pid = fork();
	cr_assert_geq(p->pid, 0);
	if (!p->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pair[0]);
		serve(pair[1]);
		_exit(0);
	}
	close(pair[1]);
}

static void call(struct peer *p, struct peer_message *m)
{
	if (p->placement == ONE_THREAD) {
		answer(&p->here, m, p->shared);
		return;
	}
	cr_assert_eq(send(p->socket, m, sizeof *m, MSG_NOSIGNAL), (ssize_t)sizeof *m,
		     "the other end is gone (call %d)", m->op);
	cr_assert_eq(recv(p->socket, m, sizeof *m, 0), (ssize_t)sizeof *m,
		     "the other end died in call %d", m->op);
}

void peer_stop(struct peer *p)
{
	struct peer_message m = { .op = PEER_CLOSE };
	int status = 0;

	call(p, &m);
	if (p->placement == ONE_THREAD)
		return;
	close(p->socket);
	if (p->placement == TWO_THREADS) {
		pthread_join(p->thread, NULL);
		return;
	}
	cr_assert_eq(waitpid(p->pid, &status, 0), p->pid);
	cr_assert_eq(status, 0, "the other process ended with status 0x%x", status);
}

int peer_open(struct peer *p, const struct end_opts *opts, const struct end *shared,
	      struct end_info *info_out)
{
	struct peer_message m = { .op = PEER_OPEN, .u.opts = *opts };

	p->shared = shared;
	call(p, &m);
	*info_out = m.u.info;
	return m.err;
}

int peer_connect(struct peer *p, const struct end_info *other)
{
	return peer_connect_to(p, other, IBV_QPS_RESET);
}

/* RESET is 0 and stands for "as the options say". */
int peer_connect_to(struct peer *p, const struct end_info *other, enum ibv_qp_state state)
{
	struct peer_message m = { .op = PEER_CONNECT, .arg = { state }, .u.info = *other };

	call(p, &m);
	return m.err;
}

int peer_to(struct peer *p, enum ibv_qp_state state)
{
	struct peer_message m = { .op = PEER_TO, .arg = { state } };

	call(p, &m);
	return m.err;
}

int peer_modify(struct peer *p, const struct ibv_qp_attr *attr, int mask)
{
	struct peer_message m = { .op = PEER_MODIFY, .arg = { mask }, .u.attr = *attr };

	call(p, &m);
	return m.err;
}

int peer_query(struct peer *p, struct ibv_qp_attr *out)
{
	struct peer_message m = { .op = PEER_QUERY };

	call(p, &m);
	*out = m.u.attr;
	return m.err;
}

enum ibv_qp_state peer_state(struct peer *p)
{
	struct ibv_qp_attr attr;

	return peer_query(p, &attr) ? IBV_QPS_UNKNOWN : attr.qp_state;
}

int peer_destroy_qp(struct peer *p)
{
	struct peer_message m = { .op = PEER_DESTROY_QP };

	call(p, &m);
	return m.err;
}

static int mcast(struct peer *p, const union ibv_gid *gid, bool attaches)
{
	struct peer_message m = { .op = PEER_MCAST, .arg = { attaches }, .u.info.gid = *gid };

	call(p, &m);
	return m.err;
}

int peer_attach(struct peer *p, const union ibv_gid *gid)
{
	return mcast(p, gid, true);
}

int peer_detach(struct peer *p, const union ibv_gid *gid)
{
	return mcast(p, gid, false);
}

int peer_flow(struct peer *p, const struct flow_ask *ask)
{
	struct peer_message m = { .op = PEER_FLOW, .u.flow = *ask };

	call(p, &m);
	return m.err;
}

int peer_post(struct peer *p, const struct work *work)
{
	struct peer_message m = { .op = PEER_POST, .u.work = *work };

	call(p, &m);
	return m.err;
}

int peer_post_recv(struct peer *p, const struct work *work)
{
	struct peer_message m = { .op = PEER_POST_RECV, .u.work = *work };

	call(p, &m);
	return m.err;
}

void peer_await(struct peer *p, enum end_queue queue, struct done *out)
{
	struct peer_message m = { .op = PEER_AWAIT, .arg = { queue } };

	call(p, &m);
	*out = m.u.done;
}

void peer_glance(struct peer *p, enum end_queue queue, struct done *out)
{
	struct peer_message m = { .op = PEER_GLANCE, .arg = { queue } };

	call(p, &m);
	*out = m.u.done;
}

bool peer_event(struct peer *p, enum ibv_event_type type, int ms)
{
	struct peer_message m = { .op = PEER_EVENT, .arg = { type, ms } };

	call(p, &m);
	return m.arg[2];
}

int peer_register(struct peer *p, uint64_t addr, uint64_t bytes, unsigned access, bool other_pd,
		  struct end_info *info_out)
{
	struct peer_message m = { .op = PEER_REGISTER,
		.arg = { (int64_t)addr, (int64_t)bytes, access, other_pd } };

	call(p, &m);
	errno = m.err;
	*info_out = m.u.info;
	return m.err ? -1 : (int)m.arg[4];
}

int peer_deregister(struct peer *p, int slot)
{
	struct peer_message m = { .op = PEER_DEREGISTER, .arg = { slot } };

	call(p, &m);
	return m.err;
}

void peer_read(struct peer *p, size_t offset, void *out, size_t bytes)
{
	struct peer_message m = { .op = PEER_READ, .arg = { (int64_t)offset, (int64_t)bytes } };

	cr_assert_leq(bytes, sizeof m.u.bytes);
	call(p, &m);
	memcpy(out, m.u.bytes, bytes);
}

void peer_fill(struct peer *p, size_t offset, size_t bytes, uint64_t seed)
{
	struct peer_message m = { .op = PEER_FILL,
		.arg = { (int64_t)offset, (int64_t)bytes, (int64_t)seed } };

	call(p, &m);
}

int64_t peer_differs(struct peer *p, size_t offset, size_t bytes, uint64_t seed)
{
	struct peer_message m = { .op = PEER_DIFFERS,
		.arg = { (int64_t)offset, (int64_t)bytes, (int64_t)seed } };

	call(p, &m);
	return m.arg[3];
}

int peer_unmap(struct peer *p, size_t offset, size_t bytes)
{
	struct peer_message m = { .op = PEER_UNMAP, .arg = { (int64_t)offset, (int64_t)bytes } };

	call(p, &m);
	return m.err;
}

int peer_srq_modify(struct peer *p, const struct ibv_srq_attr *attr, int mask)
{
	struct peer_message m = { .op = PEER_SRQ_MODIFY, .arg = { mask }, .u.srq = *attr };

	call(p, &m);
	return m.err;
}

int peer_srq_query(struct peer *p, struct ibv_srq_attr *out)
{
	struct peer_message m = { .op = PEER_SRQ_QUERY };

	call(p, &m);
	*out = m.u.srq;
	return m.err;
}

int peer_srq_destroy(struct peer *p)
{
	struct peer_message m = { .op = PEER_SRQ_DESTROY };

	call(p, &m);
	return m.err;
}

int peer_window(struct peer *p, struct window_ask *ask)
{
	struct peer_message m = { .op = PEER_WINDOW, .u.window = *ask };

	call(p, &m);
	*ask = m.u.window;
	return m.err;
}

int peer_swap_qp(struct peer *p, struct end_info *info_out)
{
	struct peer_message m = { .op = PEER_SWAP_QP };

	call(p, &m);
	*info_out = m.u.info;
	return m.err;
}

int peer_target_to(struct peer *p, enum ibv_qp_state state)
{
	struct peer_message m = { .op = PEER_TARGET_TO, .arg = { state } };

	call(p, &m);
	return m.err;
}

enum ibv_qp_state peer_target_state(struct peer *p)
{
	struct peer_message m = { .op = PEER_TARGET_STATE };

	call(p, &m);
	return (enum ibv_qp_state)m.arg[0];
}

int peer_target_open(struct peer *p, uint32_t qpn)
{
	struct peer_message m = { .op = PEER_TARGET_OPEN, .arg = { qpn } };

	call(p, &m);
	return m.err;
}

int peer_target_shut(struct peer *p)
{
	struct peer_message m = { .op = PEER_TARGET_SHUT };

	call(p, &m);
	return m.err;
}

bool peer_target_event(struct peer *p, enum ibv_event_type type, int ms)
{
	struct peer_message m = { .op = PEER_TARGET_EVENT, .arg = { type, ms } };

	call(p, &m);
	return m.arg[2];
}

int peer_target_destroy(struct peer *p)
{
	struct peer_message m = { .op = PEER_TARGET_DESTROY };

	call(p, &m);
	return m.err;
}

int peer_domain_open(struct peer *p, const char *path, int oflags)
{
	struct peer_message m = { .op = PEER_DOMAIN_OPEN, .arg = { oflags } };

	cr_assert_lt(strlen(path), sizeof m.u.bytes);
	strcpy((char *)m.u.bytes, path);
	call(p, &m);
	return m.err;
}

int peer_domain_close(struct peer *p)
{
	struct peer_message m = { .op = PEER_DOMAIN_CLOSE };

	call(p, &m);
	return m.err;
}
