/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Order and pace: signalling, fences, PSN wrap, READ credits, full queues.
 *
 * Rules: IBTA 9.5 and 10.8.3 (order, fence), 9.4.4 (READ credits), 9.2 (24-bit PSN);
 * device-abi C.1 (a completion retires earlier WQEs), C.3.1 (fence), F.2 (full queues).
 */
#include <errno.h>
#include <string.h>
#include "harness/check.h"

TestSuite(order, .timeout = 60);

/* C.1: many unsignalled requests, a completion now and then; the ring wraps many times. */
CASE_EACH(order, a_completion_retires_the_unsignalled_requests_before_it)
{
	struct pair p;
	struct work w;

	pair_open(&p, where, NULL);
	w = pair_work(&p, IBV_WR_RDMA_WRITE, 32);
	for (uint64_t i = 1; i <= 1600; i++) {
		w.wr_id = i;
		w.flags = i % 16 ? 0 : IBV_SEND_SIGNALED;
		must_post(&p, &w);
		if (!(i % 16))
			await_ok(&p, i, IBV_WC_RDMA_WRITE);
	}
	check_quiet(&p);
	pair_close(&p);
}

/* ibv_create_qp(3): sq_sig_all makes every request complete. */
CASE_EACH(order, sq_sig_all_completes_every_request_in_order)
{
	struct pair_opts opts;
	struct pair p;
	struct work w;

	pair_defaults(&opts);
	opts.a.sig_all = 1;
	pair_open(&p, where, &opts);
	w = pair_work(&p, IBV_WR_RDMA_WRITE, 32);
	w.flags = 0;
	for (w.wr_id = 1; w.wr_id <= 40; w.wr_id++)
		must_post(&p, &w);
	for (uint64_t i = 1; i <= 40; i++)
		await_ok(&p, i, IBV_WC_RDMA_WRITE);
	check_quiet(&p);
	pair_close(&p);
}

/* IBTA 9.5: messages of one QP are executed in order, whatever their kind and length. */
CASE_EACH(order, requests_of_all_kinds_complete_in_the_order_posted)
{
	static const struct {
		enum ibv_wr_opcode op;
		enum ibv_wc_opcode wc;
		uint32_t bytes;
	} mix[] = {
		{ IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, 20000 },
		{ IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, 8 },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, 8 },
		{ IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, 30000 },
		{ IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, 1 },
		{ IBV_WR_SEND, IBV_WC_SEND, 64 },
	};
	struct pair p;
	struct work w, r;

	pair_open(&p, where, NULL);
	for (unsigned round = 0; round < 8; round++) {
		r = pair_recv(&p, round, 60000, 64);
		must_recv(&p, &r);
		for (unsigned i = 0; i < ROWS(mix); i++) {
			w = pair_work(&p, mix[i].op, mix[i].bytes);
			w.wr_id = i;
			must_post(&p, &w);
		}
		for (unsigned i = 0; i < ROWS(mix); i++)
			await_ok(&p, i, mix[i].wc);
		await_recv_ok(&p, round, 64);
	}
	check_quiet(&p);
	pair_close(&p);
}

/* IBTA 10.8.3.3: a fenced request waits for earlier READs, so it sends what they brought. */
CASE_EACH(order, a_fenced_write_sends_what_the_read_before_it_brought)
{
	struct pair p;
	struct work read, write;

	pair_open(&p, where, NULL);
	read = pair_work(&p, IBV_WR_RDMA_READ, 20000);
	write = pair_work(&p, IBV_WR_RDMA_WRITE, 20000);
	write.remote_addr += 32768;
	write.flags |= IBV_SEND_FENCE;
	write.wr_id = 2;
	for (uint64_t i = 0; i < 20; i++) {
		peer_fill(&p.peer, 0, 20000, i);
		must_post(&p, &read);
		must_post(&p, &write);
		await_ok(&p, 1, IBV_WC_RDMA_READ);
		await_ok(&p, 2, IBV_WC_RDMA_WRITE);
		cr_assert_eq(peer_differs(&p.peer, 32768, 20000, i), -1, "round %lu",
			     (unsigned long)i);
	}
	pair_close(&p);
}

/* IBTA 9.2: PSNs wrap from 0xffffff to 0, for requests and for what READs return. */
CASE_TABLE(order, psn_wraps_in_the_middle_of_messages, 3)
{
	static const uint32_t starts[] = { 0xffffff, 0xfffffe, 0xfffff0 };
	struct pair_opts opts;
	struct pair p;
	struct work w;

	pair_defaults(&opts);
	opts.a.sq_psn = opts.b.rq_psn = starts[row];
	opts.a.mtu = opts.b.mtu = IBV_MTU_256;
	pair_open(&p, where, &opts);
	for (uint64_t i = 0; i < 12; i++) {
		w = pair_work(&p, i & 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, 2000);
		pattern_fill(p.a.buf, 2000, i);
		if (i & 1)
			peer_fill(&p.peer, 0, 2000, i);
		must_post(&p, &w);
		await_ok(&p, 1, i & 1 ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE);
		cr_assert_eq(i & 1 ? pattern_differs(p.a.buf, 2000, i) :
			     peer_differs(&p.peer, 0, 2000, i), -1);
	}
	pair_close(&p);
}

/* 24 bits of rq_psn and sq_psn are used (device-abi E.2). */
CASE_EACH(order, bits_above_the_24_of_a_psn_are_ignored)
{
	struct pair_opts opts;
	struct pair p;
	struct work w;

	pair_defaults(&opts);
	opts.a.sq_psn = 0x5000123;
	opts.b.rq_psn = 0x7000123;
	pair_open(&p, where, &opts);
	w = pair_work(&p, IBV_WR_RDMA_WRITE, 64);
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	pair_close(&p);
}

/* IBTA 9.4.4: more READs and atomics than credits may be posted; they take their turn. */
CASE_TABLE(order, more_reads_than_credits_take_their_turn, 5)
{
	static const uint8_t credits[] = { 1, 2, 4, 8, 16 };
	struct pair_opts opts;
	struct pair p;
	struct work w;

	pair_defaults(&opts);
	opts.a.rd_atomic = opts.b.dest_rd_atomic = credits[row];
	pair_open(&p, where, &opts);
	peer_fill(&p.peer, 0, 40 * 1500, 3);
	for (uint64_t i = 0; i < 40; i++) {
		w = pair_work(&p, IBV_WR_RDMA_READ, 1500);
		w.wr_id = i;
		w.sge[0].addr += i * 1500;
		w.remote_addr += i * 1500;
		must_post(&p, &w);
	}
	for (uint64_t i = 0; i < 40; i++)
		await_ok(&p, i, IBV_WC_RDMA_READ);
	cr_expect_eq(pattern_differs(p.a.buf, 40 * 1500, 3), -1);
	check_quiet(&p);
	pair_close(&p);
}

/* expected-statuses: a READ with max_dest_rd_atomic 0 is an invalid request. */
CASE_TABLE(order, a_read_with_max_dest_rd_atomic_0_is_an_invalid_request, 2)
{
	struct pair_opts opts;
	struct pair p;
	struct work w;

	pair_defaults(&opts);
	opts.b.dest_rd_atomic = 0;
	pair_open(&p, where, &opts);
	w = pair_work(&p, row ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_RDMA_READ, 8);
	must_post(&p, &w);
	await_error(&p, 1, IBV_WC_REM_INV_REQ_ERR);
	check_states("after", &p, IBV_QPS_ERR, IBV_QPS_ERR);
	cr_expect(peer_event(&p.peer, IBV_EVENT_QP_REQ_ERR, AWAIT_MS));
	pair_close(&p);
}

/* The same table: one READ too many.  Whether the responder still holds the first when the
 * next comes is its own pace, so both outcomes are good, but nothing in between. */
CASE_EACH(order, reads_beyond_the_responders_limit_all_work_or_one_is_refused)
{
	enum ibv_wc_status want = IBV_WC_SUCCESS;
	struct pair_opts opts;
	struct pair p;
	struct work w;
	struct done d;

	pair_defaults(&opts);
	opts.a.rd_atomic = 16;
	opts.b.dest_rd_atomic = 1;
	pair_open(&p, where, &opts);
	w = pair_work(&p, IBV_WR_RDMA_READ, 32768);
	for (w.wr_id = 0; w.wr_id < 16; w.wr_id++)
		must_post(&p, &w);
	for (uint64_t i = 0; i < 16; i++) {
		end_await(&p.a, SEND_CQ, &d);
		cr_assert(d.found);
		cr_expect_eq(d.wc.wr_id, i);
		if (want == IBV_WC_SUCCESS && d.wc.status == IBV_WC_REM_INV_REQ_ERR)
			want = IBV_WC_WR_FLUSH_ERR;
		else
			cr_assert_eq(d.wc.status, want, "read %lu: %s", (unsigned long)i,
				     ibv_wc_status_str(d.wc.status));
	}
	pair_close(&p);
}

/* IBTA 9.4.4 leaves a READ without requester credits open; it must not hang the others. */
CASE_EACH(order, a_read_without_credits_does_not_hang_other_qps)
{
	struct pair_opts opts;
	struct pair p;
	struct work w;
	struct end other_a, other_b;
	struct end_info ia, ib;

	pair_defaults(&opts);
	opts.a.rd_atomic = 0;
	pair_open(&p, where, &opts);
	w = pair_work(&p, IBV_WR_RDMA_READ, 8);
	must_post(&p, &w);
	cr_assert_eq(end_open(&other_a, &opts.b, &p.a), 0);
	cr_assert_eq(end_open(&other_b, &opts.b, &p.a), 0);
	other_a.opts.sq_psn = other_a.opts.rq_psn = 1;
	other_b.opts.sq_psn = other_b.opts.rq_psn = 1;
	end_describe(&other_a, &ia);
	end_describe(&other_b, &ib);
	cr_assert_eq(end_connect(&other_a, &ib), 0);
	cr_assert_eq(end_connect(&other_b, &ia), 0);
	for (unsigned i = 0; i < 50; i++) {
		struct done d;

		w = (struct work){ .opcode = IBV_WR_RDMA_READ, .wr_id = i,
			.flags = IBV_SEND_SIGNALED, .remote_addr = ib.addr, .rkey = ib.rkey,
			.sge_count = 1, .sge = { { ia.addr, 100, ia.lkey } } };
		cr_assert_eq(end_post(&other_a, &w), 0);
		end_await(&other_a, SEND_CQ, &d);
		check_ok("other QP", &d, i, IBV_WC_RDMA_READ);
	}
	end_close(&other_a);
	end_close(&other_b);
	pair_close(&p);
}

/* F.2: a full send queue refuses with ENOMEM, and frees when a completion is polled. */
CASE_EACH(order, a_full_send_queue_is_enomem_until_a_completion_is_polled)
{
	struct pair p;
	struct work w;
	unsigned posted = 0;
	struct done d;
	int err;

	pair_open(&p, where, NULL);
	w = pair_work(&p, IBV_WR_RDMA_WRITE, 8);
	for (err = 0; !err && posted < 10000; posted += !err) {
		w.wr_id = posted;
		err = end_post(&p.a, &w);
	}
	cr_expect_eq(err, ENOMEM, "%s", strerror(err));
	cr_expect(posted >= 64 && posted < 10000, "%u posts", posted);
	for (unsigned i = 0; i < posted && i < 250; i++)
		await_ok(&p, i, IBV_WC_RDMA_WRITE);
	cr_expect_eq(end_post(&p.a, &w), 0);
	end_await(&p.a, SEND_CQ, &d);
	cr_expect(d.found && d.wc.status == IBV_WC_SUCCESS);
	pair_close(&p);
}

/* F.2: a list is posted up to its first bad request; bad_wr names that. */
Test(order, a_list_is_posted_up_to_its_first_bad_request)
{
	struct ibv_sge sge, long_sge;
	struct ibv_send_wr wr[3], *bad = NULL;
	struct pair p;

	pair_open(&p, ONE_THREAD, NULL);
	sge = (struct ibv_sge){ p.ia.addr, 8, p.ia.lkey };
	long_sge = (struct ibv_sge){ p.ia.addr, 60000, p.ia.lkey };
	for (unsigned i = 0; i < 3; i++)
		wr[i] = (struct ibv_send_wr){ .wr_id = i, .next = i < 2 ? &wr[i + 1] : NULL,
			.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { .remote_addr = p.ib.addr, .rkey = p.ib.rkey } };
	wr[1].sg_list = &long_sge;
	wr[1].send_flags |= IBV_SEND_INLINE;
	cr_expect_neq(ibv_post_send(p.a.qp, wr, &bad), 0);
	cr_expect_eq(bad, &wr[1]);
	await_ok(&p, 0, IBV_WC_RDMA_WRITE);
	check_quiet(&p);
	pair_close(&p);
}
