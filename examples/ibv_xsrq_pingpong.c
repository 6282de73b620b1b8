/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bounces messages over extended reliable connections (XRC) between a server and its clients.
 *
 * With XRC a send names the shared receive queue that it is for, so a connection leads to a host
 * rather than to a process.  All processes of a host that open the same file have one domain, in
 * which any target queue pair delivers to any SRQ.  The server makes use of that: what it sends to
 * a client goes over the connections of all clients in turn.  So the clients must be on one host,
 * and none may take its target away before the last one is served; that is what END is for.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "examples/device.h"
#include "examples/exchange.h"
#include "examples/fail.h"

#define DOMAIN_FILE "/tmp/xrc_domain"

enum {
	CLIENTS_MAX = 1024,
	/* LID:receive QPN:send QPN:PSN:SRQN:GID and a NUL, all in hexadecimal */
	ADDRESS_BYTES = 4 + 1 + 6 + 1 + 6 + 1 + 6 + 1 + 6 + 1 + GID_DIGITS + 1,
	RNR_TIMER_640_US = 12,
	TIMEOUT_67_MS = 14,
	RETRIES = 7,			/* for RNR: without end */
};

struct address {
	unsigned lid, target_qpn, initiator_qpn, psn, srqn;
	union ibv_gid gid;
};

/* A peer: for the server one of its clients, for a client the server. */
struct peer {
	int socket;
	struct ibv_qp *target, *initiator;
	struct address local, remote;
	int sent_count;
};

struct xsrq {
	const struct options *options;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;	/* NULL: completions are polled for */
	struct ibv_cq *send_cq, *receive_cq;
	struct ibv_xrcd *domain;
	int domain_fd;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	char *buffer;
	struct peer *peer;
	int peer_count;
	unsigned send_event_count, receive_event_count;
};

/* --- resources ----------------------------------------------------------- */

/* Without the file the domain is this process's own, which is enough for one client. */
static void open_domain(struct xsrq *x)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.oflags = O_CREAT,
	};

	x->domain_fd = open(DOMAIN_FILE, O_RDONLY | O_CREAT | O_CLOEXEC, S_IRUSR | S_IRGRP);
	if (x->domain_fd < 0)
		fprintf(stderr, "%s: cannot open %s (%s): the XRC domain is shared with nobody\n",
			program_invocation_short_name, DOMAIN_FILE, strerror(errno));
	attr.fd = x->domain_fd;
	x->domain = made(ibv_open_xrcd(x->context, &attr), "open an XRC domain");
}

static void open_memory(struct xsrq *x)
{
	size_t size = (size_t)x->options->size_bytes;
	int access = IBV_ACCESS_LOCAL_WRITE;
	struct ibv_device_attr_ex attr;

	if (x->options->wants_odp) {
		check(ibv_query_device_ex(x->context, NULL, &attr), "query the device");
		device_needs_odp(&attr, attr.xrc_odp_caps,
				 IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_SRQ_RECV);
		access |= IBV_ACCESS_ON_DEMAND;
	}
	x->buffer = buffer_alloc(size);
	x->mr = made(ibv_reg_mr(x->pd, x->buffer, size, access), "register %zu bytes of memory",
		     size);
}

static struct ibv_cq *open_cq(struct xsrq *x, unsigned *event_count)
{
	struct ibv_cq *cq =
		made(ibv_create_cq(x->context, x->peer_count, event_count, x->channel, 0),
		     "create a CQ of %d entries", x->peer_count);

	if (x->channel)
		check(ibv_req_notify_cq(cq, 0), "arm the CQ");
	return cq;
}

static void open_queues(struct xsrq *x)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = (uint32_t)x->peer_count, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC,
		.pd = x->pd,
		.xrcd = x->domain,
	};

	x->receive_cq = open_cq(x, &x->receive_event_count);
	x->send_cq = open_cq(x, &x->send_event_count);
	attr.cq = x->receive_cq;
	x->srq = made(ibv_create_srq_ex(x->context, &attr), "create an XRC SRQ of %d entries",
		      x->peer_count);
}

static void qp_init(const struct xsrq *x, struct ibv_qp *qp, unsigned access)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = (uint8_t)x->options->ib_port,
		.qp_access_flags = access,
	};

	qp_change(qp, &attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

/* A target receives for the domain, so it has neither PD nor CQ; an initiator only sends. */
static void open_pair(struct xsrq *x, struct peer *peer)
{
	struct ibv_qp_init_attr_ex target = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = x->domain,
	};
	struct ibv_qp_init_attr_ex initiator = {
		.qp_type = IBV_QPT_XRC_SEND,
		.send_cq = x->send_cq,
		.cap = {
			.max_send_wr = (uint32_t)(x->peer_count * x->options->iterations),
			.max_send_sge = 1,
		},
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = x->pd,
	};

	peer->target = made(ibv_create_qp_ex(x->context, &target), "create an XRC target");
	peer->initiator = made(ibv_create_qp_ex(x->context, &initiator),
			       "create an XRC initiator for %u sends", initiator.cap.max_send_wr);
	qp_init(x, peer->target, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	qp_init(x, peer->initiator, 0);
}

static void open_all(struct xsrq *x)
{
	const struct options *o = x->options;
	struct ibv_port_attr port;
	union ibv_gid gid;
	unsigned srqn;

	x->peer_count = o->server ? 1 : o->client_count;
	x->peer = made(calloc((size_t)x->peer_count, sizeof *x->peer), "remember %d peers",
		       x->peer_count);
	x->context = device_open(o->device);
	port = device_port(x->context, o);
	gid = device_gid(x->context, o);
	if (o->wants_events)
		x->channel = made(ibv_create_comp_channel(x->context),
				  "create a completion channel");
	x->pd = made(ibv_alloc_pd(x->context), "allocate a protection domain");
	open_memory(x);
	open_domain(x);
	open_queues(x);
	check(ibv_get_srq_num(x->srq, &srqn), "get the number of the SRQ");
	for (int i = 0; i < x->peer_count; i++) {
		struct peer *peer = &x->peer[i];

		open_pair(x, peer);
		peer->local = (struct address){
			port.lid, peer->target->qp_num, peer->initiator->qp_num, psn_random(), srqn,
			gid,
		};
	}
}

static void close_all(struct xsrq *x)
{
	ibv_ack_cq_events(x->receive_cq, x->receive_event_count);
	ibv_ack_cq_events(x->send_cq, x->send_event_count);
	for (int i = 0; i < x->peer_count; i++) {
		check(ibv_destroy_qp(x->peer[i].initiator), "destroy an XRC initiator");
		check(ibv_destroy_qp(x->peer[i].target), "destroy an XRC target");
		close(x->peer[i].socket);
	}
	check(ibv_destroy_srq(x->srq), "destroy the SRQ");
	check(ibv_close_xrcd(x->domain), "close the XRC domain");
	if (x->domain_fd >= 0)
		close(x->domain_fd);
	check(ibv_destroy_cq(x->send_cq), "destroy a CQ");
	check(ibv_destroy_cq(x->receive_cq), "destroy a CQ");
	check(ibv_dereg_mr(x->mr), "deregister the memory");
	check(ibv_dealloc_pd(x->pd), "free the protection domain");
	if (x->channel)
		check(ibv_destroy_comp_channel(x->channel), "destroy the completion channel");
	check(ibv_close_device(x->context), "close the device");
	free(x->buffer);
	free(x->peer);
}

/* --- meeting ------------------------------------------------------------- */

static void address_print(const char *whose, const struct address *a)
{
	printf("%8s: LID %04x, QPN RECV %06x SEND %06x, PSN %06x, SRQN %06x, GID %s\n", whose,
	       a->lid, a->target_qpn, a->initiator_qpn, a->psn, a->srqn, gid_text(&a->gid));
}

static void address_send(const struct peer *peer)
{
	const struct address *a = &peer->local;
	char text[ADDRESS_BYTES], digits[GID_DIGITS + 1];

	address_print("local", a);
	gid_to_digits(&a->gid, digits);
	snprintf(text, sizeof text, "%04x:%06x:%06x:%06x:%06x:%s", a->lid, a->target_qpn,
		 a->initiator_qpn, a->psn, a->srqn, digits);
	tcp_send(peer->socket, text, sizeof text, "my address");
}

static void address_receive(struct peer *peer)
{
	struct address *a = &peer->remote;
	char text[ADDRESS_BYTES], digits[GID_DIGITS + 1];

	tcp_receive(peer->socket, text, sizeof text, "its address");
	text[sizeof text - 1] = '\0';
	if (sscanf(text, "%4x:%6x:%6x:%6x:%6x:%32s", &a->lid, &a->target_qpn, &a->initiator_qpn,
		   &a->psn, &a->srqn, digits) != 6 ||
	    !gid_from_digits(digits, &a->gid))
		fail("what the peer sent is no address of the form LID:QPN:QPN:PSN:SRQN:GID");
	address_print("remote", a);
}

/* What the two queue pairs need at each step overlaps; a mask says who needs what. */
static void connect_pair(const struct xsrq *x, struct peer *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.ah_attr = path_to(&peer->remote.gid, peer->remote.lid, x->options),
		.path_mtu = mtu_of_bytes(x->options->mtu_bytes),
		.rq_psn = peer->remote.psn,
		.min_rnr_timer = RNR_TIMER_640_US,
		.sq_psn = peer->local.psn,
		.timeout = TIMEOUT_67_MS,
		.retry_cnt = RETRIES,
		.rnr_retry = RETRIES,
	};
	int rtr_mask = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	int rts_mask = IBV_QP_TIMEOUT | IBV_QP_SQ_PSN;

	attr.dest_qp_num = peer->remote.initiator_qpn;
	qp_change(peer->target, &attr,
		  rtr_mask | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	attr.dest_qp_num = peer->remote.target_qpn;
	qp_change(peer->initiator, &attr, rtr_mask);
	attr.qp_state = IBV_QPS_RTS;
	qp_change(peer->target, &attr, rts_mask);
	qp_change(peer->initiator, &attr,
		  rts_mask | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

static void meet_server(struct xsrq *x)
{
	struct peer *peer = &x->peer[0];

	peer->socket = tcp_connect(x->options->server, x->options->tcp_port);
	address_send(peer);
	address_receive(peer);
	connect_pair(x, peer);
}

static void meet_clients(struct xsrq *x)
{
	int listener = tcp_listen(x->options->tcp_port, x->peer_count);

	for (int i = 0; i < x->peer_count; i++) {
		struct peer *peer = &x->peer[i];

		peer->socket = tcp_accept(listener);
		address_receive(peer);
		address_send(peer);
		connect_pair(x, peer);
	}
	close(listener);
}

/* Nobody leaves before all are done: the server has heard from everybody, and says so. */
static void part(struct xsrq *x)
{
	if (x->options->server)
		tcp_send_word(x->peer[0].socket, "END");
	for (int i = 0; i < x->peer_count; i++)
		tcp_expect_word(x->peer[i].socket, "END");
	if (!x->options->server)
		for (int i = 0; i < x->peer_count; i++)
			tcp_send_word(x->peer[i].socket, "END");
}

/* --- messages ------------------------------------------------------------ */

static struct ibv_sge message(const struct xsrq *x)
{
	return (struct ibv_sge){
		.addr = (uintptr_t)x->buffer,
		.length = (uint32_t)x->options->size_bytes,
		.lkey = x->mr->lkey,
	};
}

static void post_receive(struct xsrq *x)
{
	struct ibv_sge sge = message(x);
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	check(ibv_post_srq_recv(x->srq, &wr, &bad), "post a receive");
}

/* Over the connections in turn, to the peer's SRQ.  Only the last send asks for a completion. */
static void send_message(struct xsrq *x, int to)
{
	struct peer *peer = &x->peer[to];
	int via = (to + peer->sent_count) % x->peer_count;
	struct ibv_sge sge = message(x);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1 };
	struct ibv_send_wr *bad;

	peer->sent_count++;
	if (peer->sent_count == x->options->iterations)
		wr.send_flags = IBV_SEND_SIGNALED;
	wr.qp_type.xrc.remote_srqn = peer->remote.srqn;
	check(ibv_post_send(x->peer[via].initiator, &wr, &bad), "post a send to SRQ 0x%06x",
	      peer->remote.srqn);
}

/* True if there was a completion, which must be a good one. */
static bool poll(struct ibv_cq *cq, const char *what, struct ibv_wc *wc)
{
	int count = ibv_poll_cq(cq, 1, wc);

	if (count < 0)
		fail_errno(errno, "poll a CQ");
	if (count && wc->status != IBV_WC_SUCCESS)
		fail_work("a %s failed: %s (status %d, vendor_err 0x%x)", what,
			  ibv_wc_status_str(wc->status), wc->status, wc->vendor_err);
	return count;
}

/*
 * The context of each CQ is where its events are counted.  It is armed again before it is emptied:
 * what comes meanwhile makes another event.
 */
static void wait_for_event(struct xsrq *x)
{
	struct ibv_cq *cq;
	void *event_count;

	check(ibv_get_cq_event(x->channel, &cq, &event_count), "wait for a completion event");
	++*(unsigned *)event_count;
	check(ibv_req_notify_cq(cq, 0), "arm the CQ");
}

/* The target that a message came through tells the server whose it is; a client has one peer. */
static int sender_of(const struct xsrq *x, const struct ibv_wc *wc)
{
	if (x->peer_count == 1)
		return 0;
	for (int i = 0; i < x->peer_count; i++)
		if (x->peer[i].target->qp_num == wc->qp_num)
			return i;
	fail("a message came through QP 0x%06x, which is none of mine", wc->qp_num);
}

static void take_receive(struct xsrq *x, const struct ibv_wc *wc)
{
	int from = sender_of(x, wc);

	post_receive(x);
	if (x->peer[from].sent_count < x->options->iterations)
		send_message(x, from);
}

static void exchange_messages(struct xsrq *x)
{
	int receives_awaited = x->peer_count * x->options->iterations;
	int sends_awaited = x->peer_count;
	struct ibv_wc wc;

	if (!x->options->server)
		for (int i = 0; i < x->peer_count; i++)
			send_message(x, i);
	while (receives_awaited > 0 || sends_awaited > 0) {
		if (x->channel)
			wait_for_event(x);
		for (; poll(x->receive_cq, "receive", &wc); receives_awaited--)
			take_receive(x, &wc);
		for (; poll(x->send_cq, "send", &wc); sends_awaited--)
			continue;
	}
}

/* --- the program --------------------------------------------------------- */

static const struct option_row own[] = {
	{ 'c', "clients", "N", "server: clients to wait for", OPTION_NUMBER,
	  offsetof(struct options, client_count), 1, CLIENTS_MAX },
	{ 'n', "num_tests", "N", "messages to exchange with each client", OPTION_NUMBER,
	  offsetof(struct options, iterations), 1, INT_MAX / CLIENTS_MAX },
	{ 0 },
};

static const struct program program = {
	.summary = "Bounces messages over extended reliable connections (XRC).",
	.letters = "pdismleog",
	.own = own,
	.takes_server = true,
};

int main(int argc, char **argv)
{
	struct options options = { OPTIONS_DEFAULT };
	struct xsrq x = { .options = &options };

	options.iterations = 5;
	options_parse(&options, &program, argc, argv);
	open_all(&x);
	for (int i = 0; i < x.peer_count; i++)
		post_receive(&x);
	if (options.server)
		meet_server(&x);
	else
		meet_clients(&x);
	exchange_messages(&x);
	part(&x);
	close_all(&x);
	printf("success\n");
	return EXIT_SUCCESS;
}
