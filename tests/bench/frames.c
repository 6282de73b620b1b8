/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Row 13e: a frame from one RAW_PACKET queue pair to another, found by one of many rules.
 *
 * A rule is one TCP connection over IPv4, as in steer.c, and each frame is of another one at
 * random (connections.h); nothing is known of the next.  Two processes take turns, one with 100,000
 * rules and one with 100, each in a fabric of its own: rules of a host are ordered together.
 */
#include <infiniband/verbs.h>
#include "connections.h"
#include "rows.h"
#include "turns.h"
#include "verbs.h"

enum { DEPTH = 64, SLOT_BYTES = 128 };

static struct wires {
	struct port port;
	struct ibv_qp *from, *to;
	struct ibv_send_wr send;
	struct ibv_sge piece;
	uint32_t rules, random;
} w;

static struct ibv_qp *raw_new(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = w.port.send_cq, .recv_cq = w.port.recv_cq,
		.qp_type = IBV_QPT_RAW_PACKET, .sq_sig_all = 1,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp *qp = ibv_create_qp(w.port.pd, &init);

	need(qp, "ibv_create_qp");
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT), "INIT");
	attr.qp_state = IBV_QPS_RTR;
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "RTR");
	attr.qp_state = IBV_QPS_RTS;
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "RTS");
	return qp;
}

static void rule_add(unsigned i)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
		struct ibv_flow_spec_ipv4 ip;
		struct ibv_flow_spec_tcp_udp tcp;
	} rule = {
		.attr = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof rule, .num_of_specs = 3,
			  .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof rule.eth },
		.ip = { .type = IBV_FLOW_SPEC_IPV4, .size = sizeof rule.ip,
			.val = { htonl(connection_ip(i)), htonl(CONNECTION_DST_IP) },
			.mask = { UINT32_MAX, UINT32_MAX } },
		.tcp = { .type = IBV_FLOW_SPEC_TCP, .size = sizeof rule.tcp,
			 .val = { htons(CONNECTION_DPORT), htons(connection_port(i)) },
			 .mask = { UINT16_MAX, UINT16_MAX } },
	};

	need(ibv_create_flow(w.to, &rule.attr), "ibv_create_flow");
}

static void wires_open(unsigned rules)
{
	port_open(&w.port, (DEPTH + 1) * SLOT_BYTES, 2 * DEPTH);
	w.from = raw_new();
	w.to = raw_new();
	w.rules = rules;
	for (unsigned i = 0; i < rules; i++)
		rule_add(i);
	connection_frame(w.port.buf);
	w.piece = (struct ibv_sge){ (uintptr_t)w.port.buf, CONNECTION_FRAME_BYTES,
				    w.port.mr->lkey };
	w.send = (struct ibv_send_wr){ .sg_list = &w.piece, .num_sge = 1, .opcode = IBV_WR_SEND };
	for (unsigned i = 0; i < DEPTH; i++)
		recv_post(w.to, &w.port, (i + 1) * SLOT_BYTES, SLOT_BYTES);
}

static void frames_send(void *ctx, unsigned count)
{
	struct ibv_send_wr *bad;

	(void)ctx;
	while (count--) {
		connection_set(w.port.buf, connection_next(&w.random, w.rules));
		if (ibv_post_send(w.from, &w.send, &bad))
			die("bench: ibv_post_send");
		await(w.port.send_cq, 1);
		await(w.port.recv_cq, 1);
		recv_post(w.to, &w.port, SLOT_BYTES, SLOT_BYTES);
	}
}

void row_frame(void)
{
	static const struct seat seats[2] = {
		{ wires_open, CONNECTIONS_MANY, frames_send, "bench-many" },
		{ wires_open, CONNECTIONS_FEW, frames_send, "bench-few" },
	};

	take_turns(seats);
}
