/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CQs with options: what completions are to carry, ignored overruns, entries of 128 bytes,
 * entries with data in them.
 *
 * Rules: ibv_create_cq_ex(3), mlx5dv_create_cq(3); device-abi B.9.3, C.7, C.8.  How they are
 * polled is in c_extended, what stamps say in c_clock.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "harness/check.h"

TestSuite(cq_ex, .timeout = 60);

static const struct { const char *name; uint64_t flag; int err; } wc_flags[] = {
	{ "nothing", 0, 0 },
	{ "byte_len", IBV_WC_EX_WITH_BYTE_LEN, 0 },
	{ "imm", IBV_WC_EX_WITH_IMM, 0 },
	{ "qp_num", IBV_WC_EX_WITH_QP_NUM, 0 },
	{ "src_qp", IBV_WC_EX_WITH_SRC_QP, 0 },
	{ "slid", IBV_WC_EX_WITH_SLID, 0 },
	{ "sl", IBV_WC_EX_WITH_SL, 0 },
	{ "dlid_path_bits", IBV_WC_EX_WITH_DLID_PATH_BITS, 0 },
	{ "timestamp", IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, 0 },
	{ "cvlan", IBV_WC_EX_WITH_CVLAN, 0 },
	{ "flow_tag", IBV_WC_EX_WITH_FLOW_TAG, 0 },
	{ "tm_info", IBV_WC_EX_WITH_TM_INFO, 0 },
	{ "wall clock", IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK, 0 },
	{ "both clocks", IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
	  IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK, 0 },
	{ "all", 0xfff, 0 },
	{ "unknown", 1 << 12, ENOTSUP },
};

static const struct { const char *name; uint32_t flags; int err; } cq_flags[] = {
	{ "single threaded", IBV_CREATE_CQ_ATTR_SINGLE_THREADED, 0 },
	{ "ignore overrun", IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN, 0 },
	{ "both", IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN, 0 },
	{ "unknown", 1u << 2, EINVAL },
};

static void create_check(const char *name, struct ibv_context *c, struct ibv_cq_init_attr_ex *init,
			 int err)
{
	struct ibv_cq_ex *cq;

	init->cqe = 16;
	errno = 0;
	cq = ibv_create_cq_ex(c, init);
	if (err) {
		cr_expect_null(cq, "%s", name);
		cr_expect_eq(errno, err, "%s: %s", name, strerror(errno));
		return;
	}
	cr_assert_not_null(cq, "%s: %s", name, strerror(errno));
	cr_expect_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0, "%s", name);
}

Test(cq_ex, each_option_is_taken_or_refused)
{
	struct ibv_context *c = device_open();

	cr_assert_not_null(c);
	for (unsigned i = 0; i < ROWS(wc_flags); i++) {
		struct ibv_cq_init_attr_ex init = { .wc_flags = wc_flags[i].flag };

		create_check(wc_flags[i].name, c, &init, wc_flags[i].err);
	}
	for (unsigned i = 0; i < ROWS(cq_flags); i++) {
		struct ibv_cq_init_attr_ex init = {
			.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS, .flags = cq_flags[i].flags,
		};

		create_check(cq_flags[i].name, c, &init, cq_flags[i].err);
	}
	cr_expect_eq(ibv_close_device(c), 0);
}

static void send_64(struct pair *p)
{
	struct work w = pair_recv(p, 9, 4096, 64);

	must_recv(p, &w);
	w = pair_work(p, IBV_WR_SEND_WITH_IMM, 64);
	w.imm = 0xabcd;
	must_post(p, &w);
}

static struct ibv_cq_ex *poll_one(struct ibv_cq *cq)
{
	struct ibv_poll_cq_attr attr = { 0 };
	uint64_t deadline = now_ms() + AWAIT_MS;
	struct ibv_cq_ex *ex = (struct ibv_cq_ex *)cq;

	while (ibv_start_poll(ex, &attr) == ENOENT && now_ms() < deadline)
		sched_yield();
	cr_assert_eq(ex->status, IBV_WC_SUCCESS);
	return ex;
}

/* Fields that mean nothing on this transport are 0, and not what stood in the ring before. */
Test(cq_ex, every_reader_has_something_to_read)
{
	struct pair_opts opts;
	struct ibv_cq_ex *cq;
	struct pair p;

	pair_defaults(&opts);
	opts.a.is_extended = opts.b.is_extended = true;
	opts.a.wants_raw = opts.b.wants_raw = false;
	opts.b.wc_flags = 0xfff & ~IBV_WC_EX_WITH_TM_INFO;
	pair_open(&p, ONE_THREAD, &opts);
	for (unsigned i = 0; i < 600; i++) {	/* more than once around the ring */
		send_64(&p);
		cq = poll_one(p.peer.here.cq[RECV_CQ]);
		cr_expect_eq(ibv_wc_read_byte_len(cq), 64);
		cr_expect_eq(be32toh(ibv_wc_read_imm_data(cq)), 0xabcd);
		cr_expect_eq(ibv_wc_read_qp_num(cq), p.ib.qpn);
		cr_expect_eq(ibv_wc_read_cvlan(cq), 0);
		cr_expect_eq(ibv_wc_read_flow_tag(cq) & ~0xffffffu, 0);
		cr_expect_gt(ibv_wc_read_completion_ts(cq), 0);
		cr_expect_gt(ibv_wc_read_completion_wallclock_ns(cq), 0);
		ibv_end_poll(cq);
		await_ok(&p, 1, IBV_WC_SEND);
	}
	pair_close(&p);
}

/* ibv_create_cq_ex(3): with IGNORE_OVERRUN the application answers for it; nothing is raised, and
 * the QP goes on. */
CASE_EACH(cq_ex, an_ignored_overrun_is_no_error)
{
	struct ibv_cq_init_attr_ex init = {
		.cqe = 3, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
	};
	struct work w;
	struct pair p;

	pair_open_unconnected(&p, where, NULL);
	cr_assert_eq(ibv_destroy_qp(p.a.qp), 0);
	cr_assert_eq(ibv_destroy_cq(p.a.cq[SEND_CQ]), 0);
	p.a.cq[SEND_CQ] = ibv_cq_ex_to_cq(ibv_create_cq_ex(p.a.context, &init));
	cr_assert_not_null(p.a.cq[SEND_CQ]);
	p.a.qp = ibv_create_qp(p.a.pd, &(struct ibv_qp_init_attr){
		.send_cq = p.a.cq[SEND_CQ], .recv_cq = p.a.cq[RECV_CQ], .cap = p.a.opts.cap,
		.qp_type = IBV_QPT_RC });
	cr_assert_not_null(p.a.qp);
	end_describe(&p.a, &p.ia);
	pair_connect(&p);
	w = pair_work(&p, IBV_WR_RDMA_WRITE, 8);
	for (w.wr_id = 0; w.wr_id < 40; w.wr_id++)
		must_post(&p, &w);
	pattern_fill(p.a.buf, 512, 3);
	w.remote_addr += 4096;
	w.sge[0].length = 512;
	must_post(&p, &w);
	for (uint64_t end = now_ms() + AWAIT_MS;
	     peer_differs(&p.peer, 4096, 512, 3) != -1 && now_ms() < end;)
		ibv_req_notify_cq(p.a.cq[SEND_CQ], 0);
	cr_expect_eq(peer_differs(&p.peer, 4096, 512, 3), -1, "the QP does not go on");
	cr_expect(!end_event(&p.a, IBV_EVENT_CQ_ERR, 0));
	cr_expect(!end_event(&p.a, IBV_EVENT_QP_FATAL, 0));
	cr_expect_eq(end_state(&p.a), IBV_QPS_RTS);
	pair_close(&p);
}

/* C.7, C.8: how large entries are and whether data may stand in them is the library's choice;
 * messages arrive all the same. */
static const struct { const char *cqe_size, *scatter; } forms[] = {
	{ "64", "0" }, { "64", "1" }, { "128", "0" }, { "128", "1" },
};

CASE_TABLE(cq_ex, messages_arrive_whatever_the_form_of_entries, ROWS(forms))
{
	static const uint32_t sizes[] = { 0, 1, 31, 32, 33, 63, 64, 65, 1024 };
	struct pair p;
	struct work w;
	struct done d;

	setenv("MLX5_CQE_SIZE", forms[row].cqe_size, 1);
	setenv("MLX5_SCATTER_TO_CQE", forms[row].scatter, 1);
	pair_open(&p, where, NULL);
	for (unsigned i = 0; i < ROWS(sizes); i++) {
		pattern_fill(p.a.buf, 4096, i);
		w = pair_recv(&p, 9, 4096, 4096);
		must_recv(&p, &w);
		w = pair_work(&p, IBV_WR_SEND, sizes[i]);
		must_post(&p, &w);
		await_ok(&p, 1, IBV_WC_SEND);
		peer_await(&p.peer, RECV_CQ, &d);
		cr_assert(d.found && d.wc.status == IBV_WC_SUCCESS, "%u bytes", sizes[i]);
		cr_expect_eq(d.wc.byte_len, sizes[i]);
		cr_expect_eq(peer_differs(&p.peer, 4096, sizes[i], i), -1, "%u bytes", sizes[i]);
		w = pair_work(&p, IBV_WR_RDMA_READ, sizes[i]);
		w.remote_addr += 4096;
		w.sge[0].addr += 8192;
		must_post(&p, &w);
		await_ok(&p, 1, IBV_WC_RDMA_READ);
		cr_expect_eq(pattern_differs(p.a.buf + 8192, sizes[i], i), -1, "READ %u", sizes[i]);
	}
	cr_assert_eq(ibv_resize_cq(p.a.cq[SEND_CQ], 1000), 0);
	w = pair_work(&p, IBV_WR_RDMA_WRITE, 8);
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	pair_close(&p);
}
