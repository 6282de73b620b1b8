/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extended reliable connections: initiators, targets, receive queues by number, domains.
 *
 * Rules: api-inventory XRC-1 to XRC-3, QP-16, SRQ-2, SRQ-6; device-abi B.9 (open_xrcd, open_qp),
 * C.6 (user index), E.1, F.3; IBTA volume 1, annex A14.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "harness/check.h"

enum { ROOM = 4096, EVENT_MS = 2000 };

TestSuite(xrc, .timeout = 60);

static struct pair_opts xrc_opts(void)
{
	struct pair_opts o;

	pair_defaults(&o);
	o.a.type = o.b.type = IBV_QPT_XRC_SEND;
	return o;
}

static void xrc_pair_open(struct pair *p, enum placement where)
{
	struct pair_opts o = xrc_opts();

	pair_open(p, where, &o);
}

static void post_recv(struct pair *p, uint64_t wr_id, uint32_t bytes)
{
	struct work r = pair_recv(p, wr_id, wr_id % 8 * ROOM, bytes);

	must_recv(p, &r);
}

/* ---- messages ---- */

static const struct message_row {
	enum ibv_wr_opcode opcode;
	enum ibv_wc_opcode requester, responder;
	uint32_t bytes;
	bool has_imm;
} message_rows[] = {
	{ IBV_WR_SEND, IBV_WC_SEND, IBV_WC_RECV, 0, false },
	{ IBV_WR_SEND, IBV_WC_SEND, IBV_WC_RECV, 64, false },
	{ IBV_WR_SEND, IBV_WC_SEND, IBV_WC_RECV, 4096, false },
	{ IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, IBV_WC_RECV, 1025, true },
	{ IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, IBV_WC_RECV_RDMA_WITH_IMM, 3000, true },
};

CASE_TABLE(xrc, messages_take_a_receive_of_the_queue, ROWS(message_rows))
{
	const struct message_row *x = &message_rows[row];
	struct pair p;
	struct work w;
	struct done d;

	xrc_pair_open(&p, where);
	post_recv(&p, 0, ROOM);
	post_recv(&p, 1, ROOM);
	w = pair_work(&p, x->opcode, x->bytes);
	w.imm = 0x1a2b3c4d;
	pattern_fill(p.a.buf, x->bytes, 9);
	must_post(&p, &w);
	await_ok(&p, 1, x->requester);
	peer_await(&p.peer, RECV_CQ, &d);
	check_ok("receive", &d, 0, x->responder);
	cr_expect_eq(d.wc.byte_len, x->bytes);
	cr_expect_eq(d.wc.qp_num, p.ib.target_qpn, "qp_num is 0x%x", d.wc.qp_num);
	cr_expect_eq(d.wc.src_qp, p.ib.srqn, "src_qp is 0x%x", d.wc.src_qp);
	if (x->has_imm)
		cr_expect_eq(be32toh(d.wc.imm_data), 0x1a2b3c4d);
	cr_expect_eq(peer_differs(&p.peer, 0, x->bytes, 9), -1);
	check_quiet(&p);
	pair_close(&p);
}

CASE_EACH(xrc, many_messages_arrive_in_order)
{
	struct pair p;
	struct work w;

	xrc_pair_open(&p, where);
	w = pair_work(&p, IBV_WR_SEND, 1500);
	for (uint64_t i = 0; i < 100; i++) {
		post_recv(&p, i, ROOM);
		pattern_fill(p.a.buf, 1500, i);
		w.wr_id = i;
		must_post(&p, &w);
		await_ok(&p, i, IBV_WC_SEND);
		await_recv_ok(&p, i, 1500);
		cr_assert_eq(peer_differs(&p.peer, i % 8 * ROOM, 1500, i), -1);
	}
	pair_close(&p);
}

CASE_EACH(xrc, write_read_and_atomics_take_none)
{
	struct pair p;
	struct work w;
	struct done d;

	xrc_pair_open(&p, where);
	pattern_fill(p.a.buf, 5000, 3);
	w = pair_work(&p, IBV_WR_RDMA_WRITE, 5000);
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	cr_expect_eq(peer_differs(&p.peer, 0, 5000, 3), -1);
	memset(p.a.buf, 0, 5000);
	w = pair_work(&p, IBV_WR_RDMA_READ, 5000);
	must_post(&p, &w);
	end_await(&p.a, SEND_CQ, &d);
	check_ok("read", &d, 1, IBV_WC_RDMA_READ);
	cr_expect_eq(pattern_differs(p.a.buf, 5000, 3), -1);
	w = pair_work(&p, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	w.compare_add = 1;
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_FETCH_ADD);
	cr_expect_eq(pattern_differs(p.a.buf, 8, 3), -1, "the value before");
	check_quiet(&p);
	pair_close(&p);
}

/* Both ways at once: an end is an initiator and a target. */
CASE_EACH(xrc, both_ends_send)
{
	struct pair p;
	struct work w, r;
	struct done d;

	xrc_pair_open(&p, where);
	post_recv(&p, 0, ROOM);
	r = (struct work){ .wr_id = 5, .sge_count = 1,
			   .sge = { { p.ia.addr + ROOM, ROOM, p.ia.lkey } } };
	cr_assert_eq(end_post_recv(&p.a, &r), 0);
	w = pair_work(&p, IBV_WR_SEND, 64);
	must_post(&p, &w);
	w.sge[0] = (struct ibv_sge){ p.ib.addr, 64, p.ib.lkey };
	cr_assert_eq(peer_post(&p.peer, &w), 0);
	await_ok(&p, 1, IBV_WC_SEND);
	await_recv_ok(&p, 0, 64);
	peer_await(&p.peer, SEND_CQ, &d);
	check_ok("its send", &d, 1, IBV_WC_SEND);
	end_await(&p.a, RECV_CQ, &d);
	check_ok("our receive", &d, 5, IBV_WC_RECV);
	pair_close(&p);
}

CASE_EACH(xrc, the_first_packet_in_rtr_is_told_of)
{
	struct pair p;
	struct work w;

	xrc_pair_open(&p, where);
	post_recv(&p, 0, ROOM);
	w = pair_work(&p, IBV_WR_SEND, 64);
	must_post(&p, &w);
	await_recv_ok(&p, 0, 64);
	/* The targets of this harness go on to RTS, so there is nothing to tell. */
	cr_expect_not(peer_event(&p.peer, IBV_EVENT_COMM_EST, 0));
	cr_expect_eq(peer_target_state(&p.peer), IBV_QPS_RTS);
	pair_close(&p);
}

/* ---- refusals ---- */

static const struct refusal_row {
	const char *name;
	enum ibv_wr_opcode opcode;
	enum ibv_wc_status requester;
	uint32_t srqn_flip, rkey_flip;
	enum ibv_event_type event;
} refusal_rows[] = {
	{ "SEND to an unknown queue", IBV_WR_SEND, IBV_WC_REM_ACCESS_ERR, 0x5f000, 0,
	  IBV_EVENT_QP_ACCESS_ERR },
	{ "WRITE to an unknown queue", IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR, 0x5f000, 0,
	  IBV_EVENT_QP_ACCESS_ERR },
	{ "WRITE, bad rkey", IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR, 0, 0x3fff0000,
	  IBV_EVENT_QP_ACCESS_ERR },
	{ "READ, bad rkey", IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR, 0, 0x3fff0000,
	  IBV_EVENT_QP_ACCESS_ERR },
};

CASE_TABLE(xrc, refused_requests_end_both_qps, ROWS(refusal_rows))
{
	const struct refusal_row *x = &refusal_rows[row];
	struct pair p;
	struct work w;

	xrc_pair_open(&p, where);
	post_recv(&p, 0, ROOM);
	w = pair_work(&p, x->opcode, 64);
	w.srqn = p.ib.srqn ^ x->srqn_flip;
	w.rkey ^= x->rkey_flip;
	must_post(&p, &w);
	await_error(&p, 1, x->requester);
	cr_expect(peer_event(&p.peer, x->event, EVENT_MS), "%s", x->name);
	cr_expect(peer_event(&p.peer, IBV_EVENT_QP_LAST_WQE_REACHED, EVENT_MS), "%s", x->name);
	cr_expect_eq(peer_target_state(&p.peer), IBV_QPS_ERR, "%s", x->name);
	cr_expect_eq(end_state(&p.a), IBV_QPS_ERR, "%s", x->name);
	cr_expect_eq(peer_state(&p.peer), IBV_QPS_RTS, "%s: its initiator", x->name);
	check_quiet(&p);			/* the receive stays */
	pair_close(&p);
}

CASE_EACH(xrc, a_message_longer_than_its_receive)
{
	struct pair p;
	struct work w;
	struct done d;

	xrc_pair_open(&p, where);
	post_recv(&p, 0, 63);
	w = pair_work(&p, IBV_WR_SEND, 64);
	must_post(&p, &w);
	await_error(&p, 1, IBV_WC_REM_INV_REQ_ERR);
	peer_await(&p.peer, RECV_CQ, &d);
	check_error("receive", &d, 0, IBV_WC_LOC_LEN_ERR, p.ib.target_qpn, -1, 0);
	pair_close(&p);
}

CASE_EACH(xrc, no_receive)
{
	struct pair_opts o = xrc_opts();
	struct pair p;
	struct work w;

	o.a.rnr_retry = 1;
	pair_open(&p, where, &o);
	w = pair_work(&p, IBV_WR_SEND, 64);
	must_post(&p, &w);
	await_error(&p, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	cr_expect_eq(peer_target_state(&p.peer), IBV_QPS_RTS);
	pair_close(&p);
}

CASE_EACH(xrc, a_target_in_err_is_silent)
{
	struct pair_opts o = xrc_opts();
	struct pair p;
	struct work w;

	o.a.timeout = 10;
	o.a.retry = 1;
	pair_open(&p, where, &o);
	post_recv(&p, 0, ROOM);
	cr_assert_eq(peer_target_to(&p.peer, IBV_QPS_ERR), 0);
	cr_expect(peer_event(&p.peer, IBV_EVENT_QP_LAST_WQE_REACHED, EVENT_MS));
	w = pair_work(&p, IBV_WR_SEND, 64);
	must_post(&p, &w);
	await_error(&p, 1, IBV_WC_RETRY_EXC_ERR);
	check_quiet(&p);
	pair_close(&p);
}

/* ---- domains (XRC-1, XRC-2) ---- */

static const char *file_name(char out[64])
{
	snprintf(out, 64, "/tmp/c_xrc-%d", getpid());
	return out;
}

/* The other end in the same or in another process: it is the file that counts. */
CASE_EACH(xrc, domains_are_shared_by_their_file)
{
	struct pair p;
	char path[64];

	xrc_pair_open(&p, where);
	file_name(path);
	cr_expect_eq(end_domain_open(&p.a, path, 0), EAGAIN, "nobody has it");
	cr_expect_eq(peer_domain_open(&p.peer, path, O_CREAT | O_EXCL), 0);
	cr_expect_eq(end_domain_open(&p.a, path, O_CREAT | O_EXCL), EINVAL, "it is there");
	cr_expect_eq(end_domain_open(&p.a, path, O_EXCL), EINVAL);
	cr_assert_eq(end_domain_open(&p.a, path, 0), 0, "%s", strerror(errno));
	cr_expect_eq(peer_domain_close(&p.peer), 0);
	cr_expect_eq(peer_domain_open(&p.peer, path, 0), 0, "we have it");
	cr_expect_eq(peer_domain_close(&p.peer), 0);
	cr_expect_eq(end_domain_close(&p.a), 0);
	cr_expect_eq(end_domain_open(&p.a, path, 0), EAGAIN, "it ended with its last user");
	cr_assert_eq(end_domain_open(&p.a, path, O_CREAT), 0);
	cr_expect_eq(end_domain_close(&p.a), 0);
	unlink(path);
	pair_close(&p);
}

static struct end local;

static void local_open(void)
{
	struct end_opts opts;

	end_defaults(&opts);
	opts.type = IBV_QPT_XRC_SEND;
	cr_assert_eq(end_open(&local, &opts, NULL), 0, "%s", strerror(errno));
}

static void local_close(void)
{
	char path[64];

	end_close(&local);
	unlink(file_name(path));
}

#define LOCAL_TEST(name) Test(xrc, name, .init = local_open, .fini = local_close)

LOCAL_TEST(a_domain_needs_a_file_or_is_created)
{
	static const struct { int fd, oflags; unsigned mask; int err; } rows[] = {
		{ -1, 0, 3, EINVAL }, { -1, O_CREAT, 3, 0 }, { -1, O_CREAT | O_EXCL, 3, 0 },
		{ 12345, O_CREAT, 3, EBADF },
		{ -1, O_CREAT, 1, 0 }, { -1, O_CREAT, 2, 0 },	/* libmlx5 sets no errno */
	};

	for (unsigned i = 0; i < ROWS(rows); i++) {
		struct ibv_xrcd_init_attr init = { .fd = rows[i].fd, .oflags = rows[i].oflags,
						   .comp_mask = rows[i].mask };
		struct ibv_xrcd *xrcd = ibv_open_xrcd(local.context, &init);

		cr_expect_eq(!xrcd, rows[i].err || rows[i].mask != 3, "row %u", i);
		if (xrcd)
			cr_expect_eq(ibv_close_xrcd(xrcd), 0);
		else if (rows[i].err)
			cr_expect_eq(errno, rows[i].err, "row %u: %s", i, strerror(errno));
	}
}

LOCAL_TEST(a_domain_in_use_stays)
{
	cr_expect_eq(ibv_close_xrcd(local.xrcd), EBUSY);
	cr_assert_eq(ibv_destroy_qp(local.target), 0);
	local.target = NULL;
	cr_expect_eq(ibv_close_xrcd(local.xrcd), EBUSY, "the queue");
}

/* ---- queues and QPs ---- */

LOCAL_TEST(a_queue_has_a_number_and_needs_domain_and_cq)
{
	struct ibv_srq_init_attr_ex init = { .attr = { .max_wr = 8, .max_sge = 1 },
		.srq_type = IBV_SRQT_XRC, .pd = local.pd, .cq = local.cq[RECV_CQ],
		.xrcd = local.xrcd };
	unsigned all = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
		       IBV_SRQ_INIT_ATTR_CQ;
	uint32_t number = 0, other = 0;
	struct ibv_srq *srq;

	init.comp_mask = all;
	srq = ibv_create_srq_ex(local.context, &init);
	cr_assert_not_null(srq);
	cr_expect_eq(ibv_get_srq_num(srq, &number), 0);
	cr_expect_eq(ibv_get_srq_num(local.srq, &other), 0);
	cr_expect(number && number != other);
	cr_expect_eq(ibv_destroy_cq(local.cq[RECV_CQ]), EBUSY);
	cr_expect_eq(ibv_destroy_srq(srq), 0);
	init.comp_mask = all & ~(unsigned)IBV_SRQ_INIT_ATTR_XRCD;
	cr_expect_null(ibv_create_srq_ex(local.context, &init));
	init.comp_mask = all & ~(unsigned)IBV_SRQ_INIT_ATTR_CQ;
	cr_expect_null(ibv_create_srq_ex(local.context, &init));
}

LOCAL_TEST(an_xrc_queue_is_no_qps_own)
{
	struct ibv_qp_init_attr init = { .send_cq = local.cq[SEND_CQ], .recv_cq = local.cq[RECV_CQ],
		.srq = local.srq, .cap = { 8, 8, 1, 1, 0 }, .qp_type = IBV_QPT_RC };

	cr_expect_null(ibv_create_qp(local.pd, &init));
	cr_expect_eq(errno, EINVAL);
}

LOCAL_TEST(the_device_says_that_it_has_xrc)
{
	struct ibv_device_attr attr;

	cr_assert_eq(ibv_query_device(local.context, &attr), 0);
	cr_expect(attr.device_cap_flags & IBV_DEVICE_XRC);
}

/* libmlx5 44 can't destroy what ibv_open_qp() gave: it looks for a doorbell record that is not
 * there.  So such a handle lives as long as its context, which here is one of its own. */
struct opener {
	struct ibv_context *context;
	struct ibv_xrcd *xrcd;
	struct ibv_qp *qp;
};

static struct opener opener;

static struct ibv_xrcd *domain_by(struct ibv_context *context)
{
	struct ibv_xrcd_init_attr init = { .oflags = O_CREAT,
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS };
	struct ibv_xrcd *xrcd;
	char path[64];

	init.fd = open(file_name(path), O_RDWR | O_CREAT, 0600);
	cr_assert_geq(init.fd, 0);
	xrcd = ibv_open_xrcd(context, &init);
	cr_assert_not_null(xrcd);
	close(init.fd);
	return xrcd;
}

static struct ibv_qp *target_create(struct ibv_context *context, struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_XRC_RECV, .xrcd = xrcd,
					    .comp_mask = IBV_QP_INIT_ATTR_XRCD };
	struct ibv_qp *qp = ibv_create_qp_ex(context, &init);

	cr_assert_not_null(qp, "%s", strerror(errno));
	return qp;
}

enum { OPEN_MASK = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE };

static struct ibv_qp *target_open(uint32_t number, unsigned mask)
{
	struct ibv_qp_open_attr attr = { .comp_mask = mask, .qp_num = number,
		.xrcd = opener.xrcd, .qp_type = IBV_QPT_XRC_RECV };

	errno = 0;
	return ibv_open_qp(opener.context, &attr);
}

/* A second context that has opened the target of ours. */
static struct ibv_qp *opened_target(struct ibv_xrcd *xrcd)
{
	struct ibv_qp *first = target_create(local.context, xrcd);

	opener.context = device_open();
	cr_assert_not_null(opener.context);
	opener.xrcd = domain_by(opener.context);
	opener.qp = target_open(first->qp_num, OPEN_MASK);
	cr_assert_not_null(opener.qp, "%s", strerror(errno));
	cr_expect_eq(opener.qp->qp_num, first->qp_num);
	return first;
}

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_UNKNOWN };
	struct ibv_qp_init_attr init;

	ibv_query_qp(qp, &attr, IBV_QP_STATE, &init);
	return attr.qp_state;
}

static int to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_ACCESS_FLAGS);
}

/* QP-16. */
LOCAL_TEST(a_target_is_opened_by_number_domain_and_type)
{
	struct ibv_xrcd *xrcd = domain_by(local.context);
	struct ibv_qp *first = opened_target(xrcd);

	cr_assert_eq(to_init(opener.qp), 0, "through any handle");
	cr_expect_eq(state_of(first), IBV_QPS_INIT);
	cr_expect_null(target_open(local.qp->qp_num, OPEN_MASK));
	cr_expect_eq(errno, EINVAL, "an initiator");
	cr_expect_null(target_open(local.target->qp_num, OPEN_MASK));
	cr_expect_eq(errno, EINVAL, "of another domain");
	cr_expect_null(target_open(first->qp_num ^ 0x70000, OPEN_MASK));
	cr_expect_eq(errno, EINVAL, "no QP");
	cr_expect_null(target_open(first->qp_num, OPEN_MASK & ~IBV_QP_OPEN_ATTR_TYPE));
	cr_expect_null(target_open(first->qp_num, OPEN_MASK & ~IBV_QP_OPEN_ATTR_XRCD));
	ibv_close_device(opener.context);
	cr_expect_eq(state_of(first), IBV_QPS_INIT, "the first handle is good");
	cr_expect_eq(ibv_destroy_qp(first), 0);
	cr_expect_eq(ibv_close_xrcd(xrcd), 0);
}

LOCAL_TEST(a_target_ends_with_its_last_handle)
{
	struct ibv_xrcd *xrcd = domain_by(local.context);
	struct ibv_qp *first = opened_target(xrcd);
	uint32_t number = first->qp_num;

	cr_assert_eq(ibv_destroy_qp(first), 0);
	cr_expect_eq(ibv_close_xrcd(xrcd), 0, "nothing of this handle is left");
	cr_expect_eq(state_of(opener.qp), IBV_QPS_RESET);
	cr_expect_not_null(target_open(number, OPEN_MASK), "and again");
	ibv_close_device(opener.context);
	opener.context = local.context;
	opener.xrcd = domain_by(local.context);
	cr_expect_null(target_open(number, OPEN_MASK));
	cr_expect_eq(errno, EINVAL);
	cr_expect_eq(ibv_close_xrcd(opener.xrcd), 0);
}

static bool hears(struct ibv_context *context, const struct ibv_qp *qp, enum ibv_event_type type)
{
	struct ibv_async_event event;
	bool is_it;

	fcntl(context->async_fd, F_SETFL, O_NONBLOCK);
	if (ibv_get_async_event(context, &event))
		return false;
	is_it = event.event_type == type && event.element.qp == qp;
	ibv_ack_async_event(&event);
	return is_it;
}

LOCAL_TEST(every_opener_hears_of_events)
{
	struct ibv_xrcd *xrcd = domain_by(local.context);
	struct ibv_qp *first = opened_target(xrcd);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	cr_assert_eq(to_init(first), 0);
	cr_assert_eq(ibv_modify_qp(first, &attr, IBV_QP_STATE), 0);
	cr_expect(hears(local.context, first, IBV_EVENT_QP_LAST_WQE_REACHED));
	cr_expect(hears(opener.context, opener.qp, IBV_EVENT_QP_LAST_WQE_REACHED), "the second");
	ibv_close_device(opener.context);
	cr_expect_eq(ibv_destroy_qp(first), 0);
	cr_expect_eq(ibv_close_xrcd(xrcd), 0);
}

/* ---- one target, several queues ---- */

LOCAL_TEST(one_initiator_reaches_several_queues_through_one_target)
{
	struct ibv_srq_init_attr_ex init = { .attr = { .max_wr = 8, .max_sge = 1 },
		.srq_type = IBV_SRQT_XRC, .pd = local.pd, .cq = local.cq[SEND_CQ],
		.xrcd = local.xrcd,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ };
	struct ibv_srq *second = ibv_create_srq_ex(local.context, &init), *first = local.srq;
	struct work r = { .sge_count = 1, .sge = { { (uintptr_t)local.buf, 64, local.mr->lkey } } };
	struct work w = { .opcode = IBV_WR_SEND, .wr_id = 1, .sge_count = 1,
		.sge = { { (uintptr_t)local.buf + 64, 64, local.mr->lkey } } };
	struct end_info self;
	struct done d;

	cr_assert_not_null(second);
	local.opts.rq_psn = local.opts.sq_psn;
	end_describe(&local, &self);
	cr_assert_eq(end_connect(&local, &self), 0);
	r.wr_id = 11;
	cr_assert_eq(end_post_recv(&local, &r), 0);
	local.srq = second;
	r.wr_id = 22;
	cr_assert_eq(end_post_recv(&local, &r), 0);
	cr_assert_eq(ibv_get_srq_num(second, &w.srqn), 0);
	cr_assert_eq(end_post(&local, &w), 0);
	end_await(&local, SEND_CQ, &d);
	check_ok("the second's, in its own CQ", &d, 22, IBV_WC_RECV);
	local.srq = first;
	w.srqn = self.srqn;
	cr_assert_eq(end_post(&local, &w), 0);
	end_await(&local, RECV_CQ, &d);
	check_ok("the first's", &d, 11, IBV_WC_RECV);
	cr_expect_eq(ibv_destroy_srq(second), 0);
}
