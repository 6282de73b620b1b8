/* SPDX-License-Identifier: BSD-2-Clause */
/* The exchange of messages and the report; see pingpong.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "examples/fail.h"
#include "examples/pingpong.h"

enum { BATCH = 16 };

/* What one completion says, whichever way it was polled. */
struct completion {
	uint64_t wr_id, time;
	enum ibv_wc_status status;
	uint32_t vendor_err, qp_num;
};

/* --- work requests ------------------------------------------------------- */

struct ibv_sge pingpong_sge(const struct pingpong *p, bool is_receive)
{
	unsigned skipped = is_receive ? 0 : p->header_bytes;

	return (struct ibv_sge){
		.addr = (p->dm ? 0 : (uintptr_t)p->buffer) + skipped,
		.length = (uint32_t)(p->buffer_bytes - skipped),
		.lkey = p->mr->lkey,
	};
}

void pingpong_post_receives(struct pingpong *p)
{
	struct ibv_sge sge = pingpong_sge(p, true);
	struct ibv_recv_wr wr = { .wr_id = WAITS_FOR_RECEIVE, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	for (; p->posted_count < p->options->rx_depth; p->posted_count++) {
		int error = p->srq ? ibv_post_srq_recv(p->srq, &wr, &bad)
				   : ibv_post_recv(p->qp[0], &wr, &bad);

		check(error, "post receive %d of %d", p->posted_count + 1, p->options->rx_depth);
	}
}

/* The newer way: each part of the work request is a call of its own. */
static int send_in_parts(struct pingpong *p, struct ibv_qp *qp)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(qp);
	struct ibv_sge sge = pingpong_sge(p, false);

	ibv_wr_start(qpx);
	qpx->wr_id = WAITS_FOR_SEND;
	qpx->wr_flags = p->send_flags & ~(unsigned)IBV_SEND_INLINE;
	ibv_wr_send(qpx);
	if (p->send_flags & IBV_SEND_INLINE)
		ibv_wr_set_inline_data(qpx, p->buffer + p->header_bytes, sge.length);
	else
		ibv_wr_set_sge(qpx, sge.lkey, sge.addr, sge.length);
	return ibv_wr_complete(qpx);
}

static int send_at_once(struct pingpong *p, unsigned pair)
{
	struct ibv_sge sge = pingpong_sge(p, false);
	struct ibv_send_wr wr = {
		.wr_id = WAITS_FOR_SEND,
		.opcode = IBV_WR_SEND,
		.send_flags = p->send_flags,
		.sg_list = &sge,
		.num_sge = 1,
	};
	struct ibv_send_wr *bad;

	if (p->ah) {
		wr.wr.ud.ah = p->ah;
		wr.wr.ud.remote_qpn = p->remote[pair].qpn;
		wr.wr.ud.remote_qkey = PINGPONG_QKEY;
	}
	return ibv_post_send(p->qp[pair], &wr, &bad);
}

static void send_message(struct pingpong *p, unsigned pair)
{
	int error = p->options->wants_new_send ? send_in_parts(p, p->qp[pair])
					       : send_at_once(p, pair);

	check(error, "post a send of %d bytes", p->options->size_bytes);
	p->pending[pair] = WAITS_FOR_SEND | WAITS_FOR_RECEIVE;
}

/* --- completions --------------------------------------------------------- */

static int poll_plain(struct pingpong *p, struct completion *out, int max)
{
	struct ibv_wc wc[BATCH];
	int count = ibv_poll_cq(p->cq, max, wc);

	if (count < 0)
		fail_errno(errno, "poll the CQ");
	for (int i = 0; i < count; i++)
		out[i] = (struct completion){
			.wr_id = wc[i].wr_id,
			.status = wc[i].status,
			.vendor_err = wc[i].vendor_err,
			.qp_num = wc[i].qp_num,
		};
	return count;
}

/* The extended CQ is read like a cursor, and has one queue pair. */
static int poll_with_time(struct pingpong *p, struct completion *out, int max)
{
	struct ibv_poll_cq_attr nothing = { 0 };
	struct ibv_cq_ex *cq = p->cq_ex;
	int error = ibv_start_poll(cq, &nothing);
	int count = 0;

	if (error == ENOENT)
		return 0;
	check(error, "poll the CQ");
	do {
		bool is_good = cq->status == IBV_WC_SUCCESS;

		out[count++] = (struct completion){
			.wr_id = cq->wr_id,
			.status = cq->status,
			.qp_num = p->qp[0]->qp_num,
			.vendor_err = is_good ? 0 : ibv_wc_read_vendor_err(cq),
			.time = is_good ? ibv_wc_read_completion_ts(cq) : 0,
		};
	} while (count < max && (error = ibv_next_poll(cq)) == 0);
	ibv_end_poll(cq);
	if (error && error != ENOENT)
		check(error, "poll the CQ");
	return count;
}

/* Armed again before the CQ is emptied: what comes meanwhile makes another event. */
static void wait_for_event(struct pingpong *p)
{
	struct ibv_cq *cq;
	void *context;

	check(ibv_get_cq_event(p->channel, &cq, &context), "wait for a completion event");
	p->event_count++;
	check(ibv_req_notify_cq(p->cq, 0), "arm the CQ");
}

/* --- the exchange -------------------------------------------------------- */

static bool is_finished(const struct pingpong *p)
{
	return p->sent_count >= p->options->iterations &&
	       p->received_count >= p->options->iterations;
}

static unsigned pair_of(const struct pingpong *p, const struct completion *c)
{
	for (unsigned i = 0; i < p->pair_count; i++)
		if (p->qp[i]->qp_num == c->qp_num)
			return i;
	fail("a completion came for QP 0x%06x, which is none of mine", c->qp_num);
}

/* Intervals are between receives; the clock has fewer than 64 bits and may wrap. */
static void measure(struct pingpong *p, uint64_t now)
{
	uint64_t ticks = (now - p->interval.last) & p->clock_mask;

	if (p->received_count > 1) {
		p->interval.sum += ticks;
		if (p->interval.count++ == 0 || ticks < p->interval.min)
			p->interval.min = ticks;
		if (ticks > p->interval.max)
			p->interval.max = ticks;
	}
	p->interval.last = now;
}

static void take_receive(struct pingpong *p, const struct completion *c)
{
	p->received_count++;
	if (p->options->wants_timestamps)
		measure(p, c->time);
	if (--p->posted_count <= (int)p->pair_count)
		pingpong_post_receives(p);
}

static void take(struct pingpong *p, const struct completion *c)
{
	bool is_receive = c->wr_id == WAITS_FOR_RECEIVE;
	unsigned pair = pair_of(p, c);

	if (c->status != IBV_WC_SUCCESS)
		fail_work("a %s on QP 0x%06x failed: %s (status %d, vendor_err 0x%x)",
			  is_receive ? "receive" : "send", c->qp_num, ibv_wc_status_str(c->status),
			  c->status, c->vendor_err);
	if (is_receive)
		take_receive(p, c);
	else
		p->sent_count++;
	p->pending[pair] &= ~(unsigned)c->wr_id;
	if (!p->pending[pair] && p->sent_count < p->options->iterations)
		send_message(p, pair);
}

static void take_what_is_there(struct pingpong *p)
{
	struct completion done[BATCH];
	int count;

	do {
		count = p->cq_ex ? poll_with_time(p, done, BATCH) : poll_plain(p, done, BATCH);
		for (int i = 0; i < count && !is_finished(p); i++)
			take(p, &done[i]);
	} while (count && !is_finished(p));
}

/* The client begins; a server answers what it receives. */
static double exchange_messages(struct pingpong *p)
{
	struct timespec begin, end;

	for (unsigned i = 0; i < p->pair_count; i++) {
		p->pending[i] = WAITS_FOR_RECEIVE;
		if (p->options->server)
			send_message(p, i);
	}
	clock_gettime(CLOCK_MONOTONIC, &begin);
	while (!is_finished(p)) {
		if (p->channel)
			wait_for_event(p);
		take_what_is_there(p);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	return (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
}

/* --- what is in the message ---------------------------------------------- */

/*
 * The first byte of each page is 0 and no other is.  That this is little to check is the price of
 * understanding rdma-core's programs, which write and expect the same.
 */
static void prepare_message(struct pingpong *p)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (p->options->server && p->options->wants_check)
		for (size_t i = p->header_bytes; i < p->buffer_bytes; i += page)
			p->buffer[i] = 0;
	if (p->dm)
		check(ibv_memcpy_to_dm(p->dm, 0, p->buffer, p->buffer_bytes), "fill device memory");
}

static bool is_message_good(struct pingpong *p)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	bool is_good = true;

	for (size_t i = p->header_bytes; i < p->buffer_bytes; i += page) {
		if (p->buffer[i]) {
			printf("invalid data in page %zu\n", i / page);
			is_good = false;
		}
	}
	return is_good;
}

/* --- the program --------------------------------------------------------- */

static void report(const struct pingpong *p, double seconds)
{
	int iterations = p->options->iterations;
	int64_t bytes = 2 * (int64_t)p->options->size_bytes * iterations;

	printf("%" PRId64 " bytes in %.2f seconds = %.2f Mbit/sec\n", bytes, seconds,
	       (double)bytes * 8 / seconds / 1e6);
	printf("%d iters in %.2f seconds = %.2f usec/iter\n", iterations, seconds,
	       seconds * 1e6 / iterations);
	if (p->interval.count) {
		printf("Max receive completion clock cycles = %" PRIu64 "\n", p->interval.max);
		printf("Min receive completion clock cycles = %" PRIu64 "\n", p->interval.min);
		printf("Average receive completion clock cycles = %f\n",
		       (double)p->interval.sum / (double)p->interval.count);
	}
}

/* The server is ready to receive before the client may know where to. */
static void meet_client(struct pingpong *p)
{
	unsigned count = p->transport->endpoint_count;
	int listener = tcp_listen(p->options->tcp_port, 1);
	int peer = tcp_accept(listener);

	close(listener);
	endpoints_receive(peer, p->remote, count);
	pingpong_connect(p);
	endpoints_send(peer, p->local, count);
	tcp_expect_word(peer, "done");
	close(peer);
}

static void meet_server(struct pingpong *p)
{
	unsigned count = p->transport->endpoint_count;
	int peer = tcp_connect(p->options->server, p->options->tcp_port);

	endpoints_send(peer, p->local, count);
	endpoints_receive(peer, p->remote, count);
	tcp_send_word(peer, "done");
	close(peer);
	pingpong_connect(p);
}

static void meet_peer(struct pingpong *p)
{
	for (unsigned i = 0; i < p->pair_count; i++)
		endpoint_print("local address:", &p->local[i]);
	fflush(stdout);
	if (p->options->server)
		meet_server(p);
	else
		meet_client(p);
	for (unsigned i = 0; i < p->pair_count; i++)
		endpoint_print("remote address:", &p->remote[i]);
}

static void check_combination(const struct options *o)
{
	bool wants_odp = o->wants_odp || o->wants_implicit_odp;

	if (wants_odp && o->wants_device_memory)
		fail_usage("device memory (-j) is not paged, so neither -o nor -O goes with it");
	if (o->wants_prefetch && !wants_odp)
		fail_usage("only pages on demand can be fetched beforehand: -P needs -o or -O");
	if (o->pair_count > o->rx_depth)
		fail_usage("%d receives are too few for %d queue pairs", o->rx_depth,
			   o->pair_count);
}

int pingpong(const struct transport *transport, const struct options *options)
{
	static struct pingpong p;
	bool is_good = true;
	double seconds;

	p.transport = transport;
	p.options = options;
	check_combination(options);
	pingpong_open(&p);
	pingpong_post_receives(&p);
	if (p.channel)
		check(ibv_req_notify_cq(p.cq, 0), "arm the CQ");
	/* Before they meet: a message may come as soon as the peer knows where to send it. */
	prepare_message(&p);
	meet_peer(&p);
	seconds = exchange_messages(&p);
	report(&p, seconds);
	if (p.dm)
		check(ibv_memcpy_from_dm(p.buffer, p.dm, 0, p.buffer_bytes), "read device memory");
	if (!options->server && options->wants_check)
		is_good = is_message_good(&p);
	pingpong_close(&p);
	return is_good ? EXIT_SUCCESS : EXIT_FAILED;
}
