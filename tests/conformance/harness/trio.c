/* SPDX-License-Identifier: BSD-2-Clause */
/* XRC between three processes; see trio.h. */
#include "trio.h"
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "check.h"

void trio_defaults(struct pair_opts *o)
{
	pair_defaults(o);
	o->a.type = o->b.type = IBV_QPT_XRC_SEND;
	snprintf(o->b.domain, sizeof o->b.domain, "/tmp/c_xrc_far-%d", getpid());
}

/* @domain: of the queue; NULL: that of the target. */
void trio_open_in(struct trio *t, enum placement where, const struct pair_opts *o,
			 const char *domain)
{
	struct end_opts far = o->b;

	if (domain)
		snprintf(far.domain, sizeof far.domain, "%s", domain);
	far.bytes = 1 << 20;
	peer_start(&t->far, TWO_PROCESSES);
	pair_open(&t->p, where, o);
	cr_assert_eq(peer_open(&t->far, &far, NULL, &t->ifar), 0, "the queue's process");
}

void trio_open(struct trio *t, enum placement where)
{
	struct pair_opts o;

	trio_defaults(&o);
	trio_open_in(t, where, &o, NULL);
}

void trio_unlink(void)
{
	struct pair_opts o;

	trio_defaults(&o);
	unlink(o.b.domain);
}

void trio_end(struct trio *t)
{
	pair_close(&t->p);
	trio_unlink();
}

void trio_close(struct trio *t)
{
	peer_stop(&t->far);
	trio_end(t);
}

void far_post(struct trio *t, uint64_t wr_id, size_t offset, uint32_t bytes)
{
	struct work r = { .wr_id = wr_id, .sge_count = 1,
		.sge = { { t->ifar.addr + offset, bytes, t->ifar.lkey } } };

	cr_assert_eq(peer_post_recv(&t->far, &r), 0);
}

struct work far_work(struct trio *t, enum ibv_wr_opcode opcode, uint32_t bytes)
{
	struct work w = pair_work(&t->p, opcode, bytes);

	w.srqn = t->ifar.srqn;
	w.remote_addr = t->ifar.addr;
	w.rkey = t->ifar.rkey;
	return w;
}

void far_await_ok(struct trio *t, uint64_t wr_id, enum ibv_wc_opcode opcode,
			 uint32_t bytes)
{
	struct done d;

	peer_await(&t->far, RECV_CQ, &d);
	check_ok("receive elsewhere", &d, wr_id, opcode);
	cr_expect_eq(d.wc.byte_len, bytes);
	cr_expect_eq(d.wc.qp_num, t->p.ib.target_qpn, "qp_num is 0x%x", d.wc.qp_num);
	cr_expect_eq(d.wc.src_qp, t->ifar.srqn, "src_qp is 0x%x", d.wc.src_qp);
}

void far_quiet(struct trio *t)
{
	struct done d;

	peer_glance(&t->far, RECV_CQ, &d);
	check_none("the queue's CQ", &d);
	check_quiet(&t->p);
}

/* Not before all of its threads have. */
void peer_freeze(struct peer *p)
{
	int status;

	cr_assert_eq(kill(p->pid, SIGSTOP), 0);
	cr_assert_eq(waitpid(p->pid, &status, WUNTRACED), p->pid);
	cr_assert(WIFSTOPPED(status));
}

void peer_kill(struct peer *p)
{
	int status;

	cr_assert_eq(kill(p->pid, SIGKILL), 0);
	cr_assert_eq(waitpid(p->pid, &status, 0), p->pid);
	close(p->socket);
}
