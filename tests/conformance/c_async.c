/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asynchronous events: what happens to the port and the device, and the rules of acknowledging.
 *
 * Rules: ibv_get_async_event(3); device-abi B.10, F.4; api-inventory AS-1 to AS-6.  Events of QPs
 * that fail are in c_status and c_flush, those of InfiniBand only in c_ib.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "harness/check.h"
#include "harness/network.h"

TestSuite(async, .timeout = 90, .init = network_begin);

/* --- the port --- */

CASE_EACH(async, a_flap_is_told_to_every_context)
{
	struct ibv_context *other;
	struct pair p;

	pair_open(&p, where, NULL);
	other = device_open();
	cr_assert_not_null(other);
	cr_expect_eq(network_port(other).state, IBV_PORT_ACTIVE);
	network("port down");
	network_expect(p.a.context, IBV_EVENT_PORT_ERR);
	network_expect(other, IBV_EVENT_PORT_ERR);
	cr_expect_eq(network_port(other).state, IBV_PORT_DOWN);
	cr_expect_eq(network_port(other).phys_state, 3);
	network("port up");
	network_expect(p.a.context, IBV_EVENT_PORT_ACTIVE);
	network_expect(other, IBV_EVENT_PORT_ACTIVE);
	cr_expect_eq(network_port(p.a.context).state, IBV_PORT_ACTIVE);
	cr_expect_eq(network_port(p.a.context).phys_state, 5);
	network_expect_none(p.a.context);
	network_expect_none(other);
	ibv_close_device(other);
	pair_close(&p);
}

static const struct { const char *name; enum ibv_wr_opcode op; } rc_rows[] = {
	{ "WRITE", IBV_WR_RDMA_WRITE }, { "READ", IBV_WR_RDMA_READ }, { "SEND", IBV_WR_SEND },
	{ "FETCH_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD },
};

CASE_TABLE(async, a_connection_fails_while_the_port_is_down, ROWS(rc_rows))
{
	struct pair_opts opts;
	struct pair p;
	struct work w;

	pair_defaults(&opts);
	opts.a.timeout = 8;
	opts.a.retry = 2;
	pair_open(&p, where, &opts);
	w = pair_work(&p, IBV_WR_RDMA_WRITE, 8);
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	network("port down");
	w = pair_work(&p, rc_rows[row].op, 8);
	must_post(&p, &w);
	await_error(&p, 1, IBV_WC_RETRY_EXC_ERR);
	check_states(rc_rows[row].name, &p, IBV_QPS_ERR, IBV_QPS_RTS);
	network("port up");
	pair_close(&p);
}

/* Shorter than what is left of the retries: nobody notices but by the clock. */
CASE_EACH(async, a_connection_survives_a_short_outage)
{
	struct pair_opts opts;
	struct pair p;
	struct work w;

	pair_defaults(&opts);
	opts.a.timeout = 18;
	pair_open(&p, where, &opts);
	pattern_fill(p.a.buf, 512, 4);
	network("port down");
	w = pair_work(&p, IBV_WR_RDMA_WRITE, 512);
	must_post(&p, &w);
	network("port up");
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	cr_expect_eq(peer_differs(&p.peer, 0, 512, 4), -1);
	pair_close(&p);
}

CASE_EACH(async, datagrams_are_lost_in_silence)
{
	struct pair_opts opts;
	struct pair p;
	struct work w;
	struct done d;

	pair_defaults(&opts);
	opts.a.type = opts.b.type = IBV_QPT_UD;
	pair_open(&p, where, &opts);
	w = pair_recv(&p, 5, 0, 4096);
	must_recv(&p, &w);
	network("port down");
	w = pair_work(&p, IBV_WR_SEND, 8);
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_SEND);
	peer_glance(&p.peer, RECV_CQ, &d);
	check_none("port down", &d);
	network("port up");
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_SEND);
	await_recv_ok(&p, 5, 48);
	pair_close(&p);
}

/* Index of ::ffff:10.99.0.7 as RoCE v2, or -1. */
static int gid_index(struct ibv_context *context)
{
	static const uint8_t raw[16] = { [10] = 0xff, 0xff, 10, 99, 0, 7 };
	struct ibv_gid_entry entry;

	for (uint32_t i = 0; i < 64; i++)
		if (!ibv_query_gid_ex(context, 1, i, &entry, 0) &&
		    entry.gid_type == IBV_GID_TYPE_ROCE_V2 && !memcmp(entry.gid.raw, raw, 16))
			return (int)i;
	return -1;
}

CASE_EACH(async, an_address_comes_and_goes)
{
	struct ibv_context *c = device_open();
	struct ibv_gid_entry entry;
	struct pair_opts opts;
	struct pair p;
	struct work w;
	int index;

	cr_assert_not_null(c);
	network("gid add 10.99.0.7");
	index = gid_index(c);
	cr_assert_geq(index, 4);
	cr_assert_eq(index % 2, 1);
	pair_defaults(&opts);
	opts.a.gid_index = opts.b.gid_index = (uint8_t)index;
	opts.a.timeout = 8;
	opts.a.retry = 2;
	pair_open(&p, where, &opts);
	w = pair_work(&p, IBV_WR_RDMA_WRITE, 8);
	must_post(&p, &w);
	await_ok(&p, 1, IBV_WC_RDMA_WRITE);
	network("gid del 10.99.0.7");
	network_expect(p.a.context, IBV_EVENT_GID_CHANGE);
	cr_expect_eq(gid_index(c), -1);
	cr_expect_eq(ibv_query_gid_ex(c, 1, (uint32_t)index, &entry, 0), ENODATA);
	must_post(&p, &w);
	await_error(&p, 1, IBV_WC_RETRY_EXC_ERR);
	pair_close(&p);
	ibv_close_device(c);
}

/* --- the device --- */

/* After IBV_EVENT_DEVICE_FATAL: what was posted is flushed, commands fail, and all that is left is
 * to close.  libibverbs lets objects go then if it is told so beforehand. */
Test(async, a_broken_device_flushes_and_answers_eio)
{
	struct ibv_async_event event;
	struct ibv_context *c;
	struct pair p;
	struct work w;
	struct done d;

	setenv("RDMAV_ALLOW_DISASSOC_DESTROY", "1", 1);
	pair_open(&p, ONE_THREAD, NULL);
	w = pair_recv(&p, 7, 0, 64);
	must_recv(&p, &w);
	network("device fatal");
	cr_assert_eq(ibv_get_async_event(p.a.context, &event), 0);
	cr_expect_eq(event.event_type, IBV_EVENT_DEVICE_FATAL);
	ibv_ack_async_event(&event);
	await_recv_error(&p, 7, IBV_WC_WR_FLUSH_ERR);
	w = pair_work(&p, IBV_WR_RDMA_WRITE, 8);
	cr_expect_eq(end_post(&p.a, &w), 0);
	end_await(&p.a, SEND_CQ, &d);
	cr_expect_eq(d.wc.status, IBV_WC_WR_FLUSH_ERR);
	errno = 0;
	cr_expect_null(ibv_alloc_pd(p.a.context));
	cr_expect_eq(errno, EIO);
	cr_expect_eq(end_state(&p.a), IBV_QPS_UNKNOWN);
	cr_expect_null(device_open(), "opened while it is broken");
	pair_close(&p);
	c = device_open();
	cr_assert_not_null(c, "the next device is whole: %s", strerror(errno));
	cr_expect_eq(network_port(c).state, IBV_PORT_ACTIVE);
	network_expect_none(c);
	ibv_close_device(c);
}

/* --- acknowledging --- */

struct later { struct ibv_async_event event; _Atomic bool is_acked; };

static void *ack_later(void *arg)
{
	struct later *l = arg;

	usleep(20000);
	l->is_acked = true;
	ibv_ack_async_event(&l->event);
	return NULL;
}

/* Read the next event and have it acknowledged later, by another thread. */
static pthread_t take_and_ack_later(struct ibv_context *context, enum ibv_event_type type,
				    struct later *l)
{
	struct pollfd fd = { .fd = context->async_fd, .events = POLLIN };
	pthread_t thread;

	cr_assert_eq(poll(&fd, 1, AWAIT_MS), 1, "no %s", ibv_event_type_str(type));
	cr_assert_eq(ibv_get_async_event(context, &l->event), 0);
	cr_assert_eq(l->event.event_type, type, "%s", ibv_event_type_str(l->event.event_type));
	l->is_acked = false;
	cr_assert_eq(pthread_create(&thread, NULL, ack_later, l), 0);
	return thread;
}

/* a in ERR by QP_ACCESS_ERR: the other end writes with a key that nobody has. */
static void access_error_at_a(struct pair *p)
{
	struct work w = { .opcode = IBV_WR_RDMA_WRITE, .flags = IBV_SEND_SIGNALED, .wr_id = 1,
		.remote_addr = p->ia.addr, .rkey = p->ia.rkey ^ 0x3fff0000, .sge_count = 1,
		.sge = { { p->ib.addr, 8, p->ib.lkey } } };
	struct done d;

	cr_assert_eq(peer_post(&p->peer, &w), 0);
	peer_await(&p->peer, SEND_CQ, &d);
	cr_assert_eq(d.wc.status, IBV_WC_REM_ACCESS_ERR);
}

Test(async, destroying_a_qp_waits_for_its_events)
{
	struct later l;
	pthread_t thread;
	struct pair p;

	pair_open(&p, TWO_THREADS, NULL);
	access_error_at_a(&p);
	thread = take_and_ack_later(p.a.context, IBV_EVENT_QP_ACCESS_ERR, &l);
	cr_expect_eq(l.event.element.qp, p.a.qp);
	cr_expect_eq(ibv_destroy_qp(p.a.qp), 0);
	cr_expect(l.is_acked, "it did not wait");
	pthread_join(thread, NULL);
	p.a.qp = NULL;
	pair_close(&p);
}

Test(async, destroying_a_cq_waits_for_its_events)
{
	struct pair_opts opts;
	struct later l;
	pthread_t thread;
	struct pair p;
	struct work w;

	pair_defaults(&opts);
	opts.a.cqe = 3;
	opts.a.wants_raw = false;
	pair_open(&p, TWO_THREADS, &opts);
	w = pair_work(&p, IBV_WR_RDMA_WRITE, 8);
	for (int i = 0; i < 5; i++)
		must_post(&p, &w);
	thread = take_and_ack_later(p.a.context, IBV_EVENT_CQ_ERR, &l);
	cr_expect_eq(l.event.element.cq, p.a.cq[SEND_CQ]);
	cr_expect_eq(ibv_destroy_qp(p.a.qp), 0);
	cr_expect_eq(ibv_destroy_cq(p.a.cq[SEND_CQ]), 0);
	cr_expect(l.is_acked, "it did not wait");
	pthread_join(thread, NULL);
	p.a.qp = NULL;
	p.a.cq[SEND_CQ] = NULL;
	pair_close(&p);
}

Test(async, destroying_an_srq_waits_for_its_events)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 16, .max_sge = 1 } };
	struct ibv_srq_attr limit = { .srq_limit = 5 };
	struct ibv_context *c = device_open();
	struct ibv_srq *srq;
	struct later l;
	struct ibv_pd *pd;
	pthread_t thread;

	cr_assert_not_null(c);
	pd = ibv_alloc_pd(c);
	srq = ibv_create_srq(pd, &init);
	cr_assert_not_null(srq);
	cr_assert_eq(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), 0);	/* fewer are there */
	thread = take_and_ack_later(c, IBV_EVENT_SRQ_LIMIT_REACHED, &l);
	cr_expect_eq(l.event.element.srq, srq);
	cr_expect_eq(ibv_destroy_srq(srq), 0);
	cr_expect(l.is_acked, "it did not wait");
	pthread_join(thread, NULL);
	ibv_dealloc_pd(pd);
	ibv_close_device(c);
}

/* B.10: what nobody has read goes with its object, and what is behind it stays. */
Test(async, an_unread_event_goes_with_its_qp)
{
	struct pair p;

	pair_open(&p, TWO_THREADS, NULL);
	access_error_at_a(&p);
	network("port down");
	cr_expect_eq(ibv_destroy_qp(p.a.qp), 0);
	p.a.qp = NULL;
	network_expect(p.a.context, IBV_EVENT_PORT_ERR);
	network_expect_none(p.a.context);
	pair_close(&p);
}

/* Nobody waits for events of the port: a context closes without them being read. */
Test(async, unread_events_of_the_port_keep_nothing)
{
	struct pair p;

	pair_open(&p, ONE_THREAD, NULL);
	for (int i = 0; i < 20; i++) {
		network("port down");
		network("port up");
	}
	network_expect(p.a.context, IBV_EVENT_PORT_ERR);
	network_expect(p.a.context, IBV_EVENT_PORT_ACTIVE);
	pair_close(&p);
}

static void *await_event(void *context)
{
	static struct ibv_async_event event;

	if (ibv_get_async_event(context, &event))
		return NULL;
	ibv_ack_async_event(&event);
	return &event;
}

/* A program without queues that does nothing but wait is woken, by one event in one thread. */
Test(async, a_sleeping_thread_is_woken)
{
	struct ibv_context *c = device_open();
	struct ibv_async_event *event;
	pthread_t thread;
	void *result;

	cr_assert_not_null(c);
	cr_assert_eq(pthread_create(&thread, NULL, await_event, c), 0);
	network("port down");
	cr_assert_eq(pthread_join(thread, &result), 0);
	event = result;
	cr_assert_not_null(event);
	cr_expect_eq(event->event_type, IBV_EVENT_PORT_ERR);
	network_expect_none(c);
	ibv_close_device(c);
}
