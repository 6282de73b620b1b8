/* SPDX-License-Identifier: BSD-2-Clause */
/* Ethernet frames by hand; see frames.h. */
#include "frames.h"
#include <arpa/inet.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <string.h>

static void half_put(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* RFC 1071, the slow way. */
static uint32_t sum_add(uint32_t sum, const uint8_t *at, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		sum += i % 2 ? at[i] : (uint32_t)at[i] << 8;
	return sum;
}

static uint16_t sum_end(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static uint32_t eth_put(uint8_t *out, const struct frame_ask *ask)
{
	uint16_t type = ask->ethertype ? ask->ethertype : ask->version == 4 ? 0x0800 :
			ask->version == 6 ? 0x86dd : 0x88b5;
	uint32_t at = 12;

	memcpy(out, ask->dst, 6);
	memcpy(out + 6, ask->src, 6);
	if (ask->vlan) {
		half_put(out + at, 0x8100);
		half_put(out + at + 2, ask->vlan);
		at += TAG_BYTES;
	}
	half_put(out + at, type);
	return at + 2;
}

static uint32_t l4_bytes(const struct frame_ask *ask)
{
	return ask->l4 == L4_UDP ? UDP_BYTES : ask->l4 == L4_TCP ? TCP_BYTES : 0;
}

static uint32_t ip4_put(uint8_t *out, const struct frame_ask *ask, uint32_t l4_total)
{
	struct iphdr ip = {
		.version = 4, .ihl = 5, .tot_len = htons((uint16_t)(IP_BYTES + l4_total)),
		.id = htons(7), .ttl = 64, .protocol = ask->l4,
		.saddr = htonl(ask->src_ip), .daddr = htonl(ask->dst_ip),
	};

	if (!ask->lacks_checks)
		ip.check = htons(sum_end(sum_add(0, (void *)&ip, sizeof ip)));
	memcpy(out, &ip, sizeof ip);
	return sizeof ip;
}

static uint32_t ip6_put(uint8_t *out, const struct frame_ask *ask, uint32_t l4_total)
{
	struct ip6_hdr ip = {
		.ip6_flow = htonl(6u << 28), .ip6_plen = htons((uint16_t)l4_total),
		.ip6_nxt = ask->l4, .ip6_hlim = 64,
	};

	ip.ip6_src.s6_addr[0] = ip.ip6_dst.s6_addr[0] = 0xfd;
	ip.ip6_src.s6_addr32[3] = htonl(ask->src_ip);
	ip.ip6_dst.s6_addr32[3] = htonl(ask->dst_ip);
	memcpy(out, &ip, sizeof ip);
	return sizeof ip;
}

static void udp_put(uint8_t *out, const struct frame_ask *ask, uint32_t l4_total)
{
	struct udphdr udp = {
		.source = htons(ask->sport), .dest = htons(ask->dport),
		.len = htons((uint16_t)l4_total),
	};

	memcpy(out, &udp, sizeof udp);
}

static void tcp_put(uint8_t *out, const struct frame_ask *ask)
{
	struct tcphdr tcp = {
		.source = htons(ask->sport), .dest = htons(ask->dport), .seq = htonl(1000),
		.ack_seq = htonl(1), .doff = 5, .ack = 1, .psh = 1, .window = htons(512),
	};

	memcpy(out, &tcp, sizeof tcp);
}

/* Over the addresses, protocol and length as well. */
static void l4_check(uint8_t *ip, uint8_t *l4, const struct frame_ask *ask, uint32_t l4_total)
{
	uint8_t *at = l4 + (ask->l4 == L4_UDP ? 6 : 16);
	uint32_t addresses = ask->version == 4 ? 8 : 32, from = ask->version == 4 ? 12 : 8;
	uint32_t sum = sum_add(ask->l4 + l4_total, ip + from, addresses);

	half_put(at, sum_end(sum_add(sum, l4, l4_total)));
}

uint32_t frame_build(uint8_t *out, const struct frame_ask *ask)
{
	uint32_t at = eth_put(out, ask), ip = at, l4;
	uint32_t l4_total = l4_bytes(ask) + ask->payload_bytes;

	if (ask->version)
		at += ask->version == 4 ? ip4_put(out + at, ask, l4_total) :
					  ip6_put(out + at, ask, l4_total);
	l4 = at;
	at += l4_bytes(ask);
	pattern_fill(out + at, ask->payload_bytes, ask->seed);
	at += ask->payload_bytes;
	if (ask->l4 == L4_UDP)
		udp_put(out + l4, ask, l4_total);
	if (ask->l4 == L4_TCP)
		tcp_put(out + l4, ask);
	if (ask->l4 && !ask->lacks_checks)
		l4_check(out + ip, out + l4, ask, l4_total);
	return at;
}

/* --- rules --- */

struct flow_ask flow_to(const uint8_t dst[6])
{
	struct flow_ask ask = { .has_eth = true };

	memcpy(ask.dst, dst, 6);
	memset(ask.dst_mask, 0xff, 6);
	return ask;
}

/* What ibv_create_flow() takes: the attributes and then one spec behind the other. */
struct flow_text {
	struct ibv_flow_attr attr;
	uint8_t specs[512];
	uint32_t used;
};

static void spec_add(struct flow_text *t, const void *spec, uint32_t bytes)
{
	memcpy(t->specs + t->used, spec, bytes);
	t->used += bytes;
	t->attr.num_of_specs++;
}

#define SPEC(t, type_, kind, ...)						\
	spec_add(t, &(struct type_){ .type = kind, .size = sizeof(struct type_), __VA_ARGS__ }, \
		 sizeof(struct type_))

static void headers_put(struct flow_text *t, const struct flow_ask *ask)
{
	struct ibv_flow_spec_eth eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof eth };

	memcpy(eth.val.dst_mac, ask->dst, 6);
	memcpy(eth.mask.dst_mac, ask->dst_mask, 6);
	if (ask->has_eth)
		spec_add(t, &eth, sizeof eth);
	if (ask->has_ipv4)
		SPEC(t, ibv_flow_spec_ipv4, IBV_FLOW_SPEC_IPV4, .val.src_ip = htonl(ask->src_ip),
		     .mask.src_ip = htonl(ask->src_ip_mask));
	if (ask->has_udp)
		SPEC(t, ibv_flow_spec_tcp_udp, IBV_FLOW_SPEC_UDP, .val.dst_port = htons(ask->dport),
		     .mask.dst_port = htons(ask->dport_mask));
}

static void actions_put(struct flow_text *t, const struct flow_ask *ask)
{
	if (ask->has_tag)
		SPEC(t, ibv_flow_spec_action_tag, IBV_FLOW_SPEC_ACTION_TAG, .tag_id = ask->tag);
	if (ask->drops)
		SPEC(t, ibv_flow_spec_action_drop, IBV_FLOW_SPEC_ACTION_DROP, );
	if (ask->counters)
		SPEC(t, ibv_flow_spec_counter_action, IBV_FLOW_SPEC_ACTION_COUNT,
		     .counters = ask->counters);
}

struct ibv_flow *flow_add(struct ibv_qp *qp, const struct flow_ask *ask)
{
	struct flow_text t = {
		.attr = { .type = ask->type, .priority = ask->priority, .port = 1,
			  .flags = ask->flags, .size = sizeof t.attr },
	};

	headers_put(&t, ask);
	actions_put(&t, ask);
	t.attr.size = (uint16_t)(sizeof t.attr + t.used);
	return ibv_create_flow(qp, &t.attr);
}
