/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flow rules: who receives which frame, in which order rules are asked, and what can't be asked.
 *
 * Rules: api-inventory FL-1 to FL-10, XF-2; device-abi H.2.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include "harness/check.h"
#include "harness/frames.h"
#include "harness/trio.h"

TestSuite(flow, .timeout = 60);

enum { RECEIVERS = 3, SLOT = FRAME_ROOM, RECVS = 8, SEND_AT = 32 * SLOT };
enum { HAS_IT = 1, FAR_HAS_IT = 2 };

static const uint8_t station_1[6] = STATION(1), station_2[6] = STATION(2), group[6] = GROUP_MAC;

static struct end from, to[RECEIVERS];

/* A QP for frames, in RTS; its receives are slots of its buffer. */
static void frames_open(struct end *e, const struct end *shared)
{
	struct end_opts opts;

	end_defaults(&opts);
	opts.type = IBV_QPT_RAW_PACKET;
	opts.bytes = 64 * SLOT;
	cr_assert_eq(end_open(e, &opts, shared), 0, "%s", strerror(errno));
	cr_assert_eq(end_to_init(e), 0);
	cr_assert_eq(end_to_rtr(e, &(struct end_info){ .psn = 0 }), 0);
	cr_assert_eq(end_to_rts(e), 0);
}

static void recvs_post(struct end *e)
{
	for (unsigned i = 0; i < RECVS; i++) {
		struct work recv = { .wr_id = i, .sge_count = 1,
			.sge = { { (uintptr_t)e->buf + i * SLOT, SLOT, e->mr->lkey } } };

		cr_assert_eq(end_post_recv(e, &recv), 0);
	}
}

static void all_open(void)
{
	frames_open(&from, NULL);
	for (unsigned i = 0; i < RECEIVERS; i++) {
		frames_open(&to[i], &from);
		recvs_post(&to[i]);
	}
}

static void all_close(void)
{
	for (unsigned i = 0; i < RECEIVERS; i++)
		end_close(&to[i]);
	end_close(&from);
}

#define FLOW_TEST(name)	Test(flow, name, .init = all_open, .fini = all_close)

static void frame_send(const struct frame_ask *ask)
{
	uint32_t bytes = frame_build(from.buf + SEND_AT, ask);
	struct work send = { .opcode = IBV_WR_SEND, .flags = IBV_SEND_SIGNALED, .sge_count = 1,
		.sge = { { (uintptr_t)from.buf + SEND_AT, bytes, from.mr->lkey } } };
	struct done d;

	cr_assert_eq(end_post(&from, &send), 0);
	end_await(&from, SEND_CQ, &d);
	cr_assert(d.found && d.wc.status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(d.wc.status));
}

/* A plain frame, long enough to be none that is padded. */
static struct frame_ask plain(const uint8_t dst[6])
{
	struct frame_ask ask = { .src = STATION(9), .payload_bytes = 100 };

	memcpy(ask.dst, dst, 6);
	return ask;
}

static void plain_send(const uint8_t dst[6])
{
	struct frame_ask ask = plain(dst);

	frame_send(&ask);
}

/* Bits: which of the receivers have got the last frame. */
static unsigned who(void)
{
	unsigned got = 0;
	struct done d;

	for (unsigned i = 0; i < RECEIVERS; i++) {
		end_glance(&to[i], RECV_CQ, &d);
		if (!d.found)
			continue;
		cr_expect_eq(d.wc.status, IBV_WC_SUCCESS);
		got |= 1u << i;
	}
	return got;
}

static struct ibv_flow *must_add(unsigned receiver, struct flow_ask ask)
{
	struct ibv_flow *flow = flow_add(to[receiver].qp, &ask);

	cr_assert_not_null(flow, "%s", strerror(errno));
	return flow;
}

static void must_destroy(struct ibv_flow *flow)
{
	cr_assert_eq(ibv_destroy_flow(flow), 0);
}

/* --- FL-1, FL-2: what a rule is --- */

FLOW_TEST(a_rule_leads_frames_to_its_qp_until_it_goes)
{
	struct ibv_flow *flow = must_add(0, flow_to(station_1));
	struct frame_ask ask = plain(station_1);
	uint8_t sent[FRAME_ROOM];
	uint32_t bytes = frame_build(sent, &ask);

	plain_send(station_1);
	cr_expect_eq(who(), 1);
	cr_expect(!memcmp(to[0].buf, sent, bytes));
	plain_send(station_2);
	cr_expect_eq(who(), 0);
	must_destroy(flow);
	plain_send(station_1);
	cr_expect_eq(who(), 0);
}

FLOW_TEST(default_types_take_what_nobody_else_wants)
{
	struct ibv_flow *all = must_add(0, (struct flow_ask){ .type = IBV_FLOW_ATTR_ALL_DEFAULT });
	struct ibv_flow *groups = must_add(1, (struct flow_ask){
		.type = IBV_FLOW_ATTR_MC_DEFAULT });
	struct ibv_flow *normal = must_add(2, flow_to(station_1));

	plain_send(station_1);
	cr_expect_eq(who(), 4);
	plain_send(station_2);
	cr_expect_eq(who(), 1);
	plain_send(group);
	cr_expect_eq(who(), 3, "both are for groups, and equal");
	must_destroy(all);
	plain_send(station_2);
	cr_expect_eq(who(), 0);
	plain_send(group);
	cr_expect_eq(who(), 2);
	must_destroy(groups);
	must_destroy(normal);
}

FLOW_TEST(a_sniffer_gets_a_copy_of_everything)
{
	struct ibv_flow *sniffer = must_add(0, (struct flow_ask){ .type = IBV_FLOW_ATTR_SNIFFER });
	struct ibv_flow *normal = must_add(1, flow_to(station_1));

	plain_send(station_1);
	cr_expect_eq(who(), 3);
	plain_send(station_2);
	cr_expect_eq(who(), 1);
	must_destroy(sniffer);
	must_destroy(normal);
}

/* --- FL-3: flags --- */

FLOW_TEST(without_a_trap_the_search_goes_on)
{
	struct flow_ask ask = flow_to(station_1);
	struct ibv_flow *rule[3];

	ask.flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
	rule[0] = must_add(0, ask);
	ask.flags = 0;
	rule[1] = must_add(1, ask);
	ask.priority = 1;
	rule[2] = must_add(2, ask);
	plain_send(station_1);
	cr_expect_eq(who(), 3, "the first goes on, the second ends it");
	must_destroy(rule[1]);
	plain_send(station_1);
	cr_expect_eq(who(), 5, "to the next priority");
	must_destroy(rule[0]);
	must_destroy(rule[2]);
}

/* As the driver of the part answers. */
FLOW_TEST(flags_that_can_not_be)
{
	static const struct { enum ibv_flow_attr_type type; uint32_t flags; int error; } rows[] = {
		{ IBV_FLOW_ATTR_NORMAL, 1, EINVAL },	/* allow loopback: of ConnectX-3 */
		{ IBV_FLOW_ATTR_NORMAL, IBV_FLOW_ATTR_FLAGS_EGRESS, EOPNOTSUPP },
		{ IBV_FLOW_ATTR_NORMAL, 8, EINVAL },
		{ IBV_FLOW_ATTR_ALL_DEFAULT, IBV_FLOW_ATTR_FLAGS_DONT_TRAP, EINVAL },
		{ IBV_FLOW_ATTR_MC_DEFAULT, IBV_FLOW_ATTR_FLAGS_DONT_TRAP, EINVAL },
	};

	for (unsigned i = 0; i < ROWS(rows); i++) {
		struct flow_ask ask = flow_to(station_1);

		ask.type = rows[i].type;
		ask.flags = rows[i].flags;
		ask.has_eth = ask.type == IBV_FLOW_ATTR_NORMAL;
		errno = 0;
		cr_expect_null(flow_add(to[0].qp, &ask));
		cr_expect_eq(errno, rows[i].error, "row %u: %s", i, strerror(errno));
	}
}

/* --- FL-4: masks --- */

FLOW_TEST(only_bits_of_the_mask_count)
{
	struct flow_ask ask = flow_to(station_1);
	struct ibv_flow *rule;

	ask.dst_mask[5] = 0xfd;			/* stations 1 and 3 */
	rule = must_add(0, ask);
	plain_send(station_1);
	cr_expect_eq(who(), 1);
	plain_send(station_2);
	cr_expect_eq(who(), 0);
	plain_send((uint8_t[6])STATION(3));
	cr_expect_eq(who(), 1);
	must_destroy(rule);
}

/* --- FL-5, H.2: order --- */

FLOW_TEST(lower_priorities_come_first)
{
	struct flow_ask ask = flow_to(station_1);
	struct ibv_flow *rule[3];

	for (unsigned i = 0; i < 3; i++) {
		ask.priority = (uint16_t)(15 - 7 * i);		/* 15, 8, 1 */
		rule[i] = must_add(i, ask);
	}
	for (unsigned i = 3; i-- > 0;) {
		plain_send(station_1);
		cr_expect_eq(who(), 1u << i);
		must_destroy(rule[i]);
	}
}

FLOW_TEST(equal_rules_all_receive)
{
	struct ibv_flow *rule[RECEIVERS];

	for (unsigned i = 0; i < RECEIVERS; i++)
		rule[i] = must_add(i, flow_to(station_1));
	plain_send(station_1);
	cr_expect_eq(who(), 7);
	for (unsigned i = 0; i < RECEIVERS; i++)
		must_destroy(rule[i]);
}

/* Rules about nothing but groups stand behind all priorities. */
FLOW_TEST(rules_for_groups_come_behind)
{
	struct flow_ask any = { .has_eth = true, .priority = 15 }, of_group = flow_to(group);
	struct ibv_flow *last, *first;

	last = must_add(0, any);
	first = must_add(1, of_group);
	plain_send(group);
	cr_expect_eq(who(), 1);
	must_destroy(last);
	plain_send(group);
	cr_expect_eq(who(), 2);
	must_destroy(first);
}

/* --- FL-6: errors --- */

FLOW_TEST(errors_of_create)
{
	struct flow_ask ask = flow_to(station_1);

	ask.priority = 16;
	errno = 0;
	cr_expect_null(flow_add(to[0].qp, &ask));
	cr_expect_eq(errno, ENOMEM, "%s", strerror(errno));
	ask.priority = 0;
	ask.type = 4;
	errno = 0;
	cr_expect_null(flow_add(to[0].qp, &ask));
	cr_expect(errno == EINVAL || errno == EOPNOTSUPP, "%s", strerror(errno));
}

FLOW_TEST(equal_rules_have_one_tag)
{
	struct flow_ask ask = flow_to(station_1);
	struct ibv_flow *rule;

	ask.has_tag = true;
	ask.tag = 7;
	rule = must_add(0, ask);
	ask.tag = 8;
	errno = 0;
	cr_expect_null(flow_add(to[1].qp, &ask));
	cr_expect_eq(errno, EEXIST, "%s", strerror(errno));
	must_destroy(rule);
}

FLOW_TEST(a_qp_with_rules_is_busy)
{
	struct ibv_flow *rule = must_add(0, flow_to(station_1));

	cr_expect_eq(ibv_destroy_qp(to[0].qp), EBUSY);
	must_destroy(rule);
}

/* --- FL-7: which QPs --- */

FLOW_TEST(connected_qps_have_no_rules)
{
	struct flow_ask ask = flow_to(station_1);
	struct end_opts opts;
	struct end rc;

	end_defaults(&opts);
	cr_assert_eq(end_open(&rc, &opts, &from), 0);
	errno = 0;
	cr_expect_null(flow_add(rc.qp, &ask));
	cr_expect_eq(errno, EINVAL, "%s", strerror(errno));
	end_close(&rc);
}

FLOW_TEST(device_says_that_it_steers)
{
	struct ibv_device_attr attr;

	cr_assert_eq(ibv_query_device(from.context, &attr), 0);
	cr_expect(attr.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING);
}

/* Frames stand behind the room for a network's header. */
FLOW_TEST(a_ud_qp_may_have_rules)
{
	struct flow_ask ask = flow_to(station_1);
	struct frame_ask frame = plain(station_1);
	uint8_t sent[FRAME_ROOM];
	uint32_t bytes = frame_build(sent, &frame);
	struct end_opts opts;
	struct ibv_flow *rule;
	struct end ud;
	struct done d;

	end_defaults(&opts);
	opts.type = IBV_QPT_UD;
	cr_assert_eq(end_open(&ud, &opts, &from), 0);
	cr_assert_eq(end_to_init(&ud), 0);
	cr_assert_eq(end_to_rtr(&ud, &(struct end_info){ .psn = 0 }), 0);
	rule = flow_add(ud.qp, &ask);
	cr_assert_not_null(rule, "%s", strerror(errno));
	recvs_post(&ud);
	frame_send(&frame);
	end_await(&ud, RECV_CQ, &d);
	cr_assert(d.found && d.wc.status == IBV_WC_SUCCESS);
	cr_expect_eq(d.wc.byte_len, GRH_BYTES + bytes);
	cr_expect(!memcmp(ud.buf + GRH_BYTES, sent, bytes));
	must_destroy(rule);
	end_close(&ud);
}

/* --- FL-8, XF-2: specs --- */

#define ALL_ONES(type)	((type)~(type)0)

FLOW_TEST(specs_of_every_layer)
{
	struct flow_ask ask = flow_to(station_1);
	struct frame_ask frame = { .src = STATION(9), .dst = STATION(1), .version = 4,
		.l4 = L4_UDP, .src_ip = 0x0a000001, .dst_ip = 0x0a000002, .sport = 1000,
		.dport = 2000, .payload_bytes = 64 };
	struct ibv_flow *rule;

	ask.has_ipv4 = ask.has_udp = true;
	ask.src_ip = 0x0a000001;
	ask.src_ip_mask = ALL_ONES(uint32_t);
	ask.dport = 2000;
	ask.dport_mask = ALL_ONES(uint16_t);
	rule = must_add(0, ask);
	frame_send(&frame);
	cr_expect_eq(who(), 1);
	frame.vlan = 0x2005;
	frame_send(&frame);
	cr_expect_eq(who(), 1, "a tag is not asked for");
	frame.vlan = 0;
	frame.dport = 2001;
	frame_send(&frame);
	cr_expect_eq(who(), 0, "another port");
	frame.dport = 2000;
	frame.l4 = L4_TCP;
	frame_send(&frame);
	cr_expect_eq(who(), 0, "TCP");
	frame.l4 = L4_UDP;
	frame.src_ip = 0x0a000003;
	frame_send(&frame);
	cr_expect_eq(who(), 0, "another source");
	frame.src_ip = 0x0a000001;
	frame.version = 6;
	frame_send(&frame);
	cr_expect_eq(who(), 0, "IPv6");
	must_destroy(rule);
}

/* A spec alone, with a frame that it wants and one that it does not. */
struct one_spec {
	const char *name;
	const void *spec;
	struct frame_ask wanted, other;
};

#define SPEC_OF(type_, ...)	(&(struct type_){ .size = sizeof(struct type_), __VA_ARGS__ })
#define FRAME_OF(...) \
	{ .src = STATION(9), .dst = STATION(1), .payload_bytes = 80, __VA_ARGS__ }

static struct ibv_flow *spec_add(struct ibv_qp *qp, const void *spec)
{
	struct {
		struct ibv_flow_attr attr;
		uint8_t spec[256];
	} ask = { .attr = { .num_of_specs = 1, .port = 1 } };
	uint16_t bytes = ((const struct ibv_flow_spec *)spec)->hdr.size;

	memcpy(ask.spec, spec, bytes);
	ask.attr.size = (uint16_t)(sizeof ask.attr + bytes);
	return ibv_create_flow(qp, &ask.attr);
}

FLOW_TEST(each_spec_alone)
{
	const struct one_spec rows[] = {
		{ "ethertype",
		  SPEC_OF(ibv_flow_spec_eth, .type = IBV_FLOW_SPEC_ETH,
			  .val.ether_type = htons(0x88b5), .mask.ether_type = 0xffff),
		  FRAME_OF(.ethertype = 0x88b5), FRAME_OF(.ethertype = 0x88b6) },
		{ "source MAC",
		  SPEC_OF(ibv_flow_spec_eth, .type = IBV_FLOW_SPEC_ETH, .val.src_mac = STATION(9),
			  .mask.src_mac = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff }),
		  FRAME_OF(.version = 0),
		  { .src = STATION(8), .dst = STATION(1), .payload_bytes = 80 } },
		{ "VLAN",
		  SPEC_OF(ibv_flow_spec_eth, .type = IBV_FLOW_SPEC_ETH, .val.vlan_tag = htons(5),
			  .mask.vlan_tag = htons(0xfff)),
		  FRAME_OF(.vlan = 0x6005), FRAME_OF(.vlan = 0x6006) },
		{ "IPv4",
		  SPEC_OF(ibv_flow_spec_ipv4, .type = IBV_FLOW_SPEC_IPV4,
			  .val.dst_ip = htonl(0x0a000002), .mask.dst_ip = 0xffffffff),
		  FRAME_OF(.version = 4, .dst_ip = 0x0a000002),
		  FRAME_OF(.version = 4, .dst_ip = 0x0a000003) },
		{ "IPv4, extended",
		  SPEC_OF(ibv_flow_spec_ipv4_ext, .type = IBV_FLOW_SPEC_IPV4_EXT,
			  .val.proto = L4_TCP, .mask.proto = 0xff),
		  FRAME_OF(.version = 4, .l4 = L4_TCP), FRAME_OF(.version = 4, .l4 = L4_UDP) },
		{ "IPv6",
		  SPEC_OF(ibv_flow_spec_ipv6, .type = IBV_FLOW_SPEC_IPV6,
			  .val.dst_ip = { 0xfd, [15] = 2 }, .mask.dst_ip = { 0xff, [15] = 0xff }),
		  FRAME_OF(.version = 6, .dst_ip = 2), FRAME_OF(.version = 6, .dst_ip = 3) },
		{ "TCP",
		  SPEC_OF(ibv_flow_spec_tcp_udp, .type = IBV_FLOW_SPEC_TCP,
			  .val.src_port = htons(80), .mask.src_port = 0xffff),
		  FRAME_OF(.version = 4, .l4 = L4_TCP, .sport = 80),
		  FRAME_OF(.version = 4, .l4 = L4_UDP, .sport = 80) },
		{ "UDP",
		  SPEC_OF(ibv_flow_spec_tcp_udp, .type = IBV_FLOW_SPEC_UDP,
			  .val.dst_port = htons(53), .mask.dst_port = 0xffff),
		  FRAME_OF(.version = 6, .l4 = L4_UDP, .dport = 53),
		  FRAME_OF(.version = 6, .l4 = L4_UDP, .dport = 54) },
	};

	for (unsigned i = 0; i < ROWS(rows); i++) {
		struct ibv_flow *rule = spec_add(to[0].qp, rows[i].spec);

		cr_assert_not_null(rule, "%s: %s", rows[i].name, strerror(errno));
		frame_send(&rows[i].wanted);
		cr_expect_eq(who(), 1, "%s: wanted", rows[i].name);
		frame_send(&rows[i].other);
		cr_expect_eq(who(), 0, "%s: another", rows[i].name);
		must_destroy(rule);
		if (i % 4 == 3)
			recvs_post(&to[0]);
	}
}

/* --- FL-9, actions --- */

FLOW_TEST(a_rule_may_drop_and_count)
{
	struct ibv_counters_init_attr init = { 0 };
	struct ibv_counters *counters = ibv_create_counters(from.context, &init);
	struct ibv_counter_attach_attr packets = { .counter_desc = IBV_COUNTER_PACKETS };
	struct ibv_counter_attach_attr bytes = { .counter_desc = IBV_COUNTER_BYTES, .index = 1 };
	struct flow_ask ask = flow_to(station_1);
	struct ibv_flow *drop, *later;
	uint64_t read[2] = { 0 };

	cr_assert_not_null(counters, "%s", strerror(errno));
	cr_assert_eq(ibv_attach_counters_point_flow(counters, &packets, NULL), 0);
	cr_assert_eq(ibv_attach_counters_point_flow(counters, &bytes, NULL), 0);
	ask.drops = true;
	ask.counters = counters;
	drop = must_add(0, ask);
	ask = flow_to(station_1);
	ask.priority = 1;
	later = must_add(1, ask);
	for (unsigned i = 0; i < 3; i++)
		plain_send(station_1);
	cr_expect_eq(who(), 0);
	cr_assert_eq(ibv_read_counters(counters, read, 2, 0), 0);
	cr_expect_eq(read[0], 3);
	cr_expect_eq(read[1], 3 * (ETH_BYTES + 100));
	must_destroy(drop);
	plain_send(station_1);
	cr_expect_eq(who(), 2);
	must_destroy(later);
	cr_expect_eq(ibv_destroy_counters(counters), 0);
}

/* --- rules of two processes at one port --- */

struct neighbours {
	struct peer far;
	struct end_info info;
};

/* The other process first: it is forked. */
static void neighbours_open(struct neighbours *n)
{
	struct end_opts opts;

	peer_start(&n->far, TWO_PROCESSES);
	end_defaults(&opts);
	opts.type = IBV_QPT_RAW_PACKET;
	opts.bytes = 64 * SLOT;
	cr_assert_eq(peer_open(&n->far, &opts, NULL, &n->info), 0);
	cr_assert_eq(peer_connect(&n->far, &(struct end_info){ .psn = 0 }), 0);
	for (unsigned i = 0; i < RECVS; i++) {
		struct work recv = { .wr_id = i, .sge_count = 1,
			.sge = { { n->info.addr + i * SLOT, SLOT, n->info.lkey } } };

		cr_assert_eq(peer_post_recv(&n->far, &recv), 0);
	}
	all_open();
}

static void far_rule(struct neighbours *n, struct flow_ask ask)
{
	int err = peer_flow(&n->far, &ask);

	cr_assert_eq(err, 0, "%s", strerror(err));
}

/* Which of the first receiver here and the other process has got the last frame. */
static unsigned which(struct neighbours *n, unsigned wanted)
{
	unsigned got = who() & HAS_IT;
	struct done d;

	if (wanted & FAR_HAS_IT)
		peer_await(&n->far, RECV_CQ, &d);
	else
		peer_glance(&n->far, RECV_CQ, &d);
	return got | (d.found ? FAR_HAS_IT : 0);
}

#define EXPECT_WHICH(n, wanted)	cr_expect_eq(which(n, wanted), wanted)

Test(flow, rules_of_two_processes_are_ordered_together)
{
	struct flow_ask ask = flow_to(station_1);
	struct ibv_flow *rule;
	struct neighbours n;

	neighbours_open(&n);
	ask.priority = 5;
	far_rule(&n, ask);
	plain_send(station_1);
	EXPECT_WHICH(&n, FAR_HAS_IT);
	ask.priority = 6;
	rule = must_add(0, ask);
	plain_send(station_1);
	EXPECT_WHICH(&n, FAR_HAS_IT);
	must_destroy(rule);
	ask.priority = 4;
	rule = must_add(0, ask);
	plain_send(station_1);
	EXPECT_WHICH(&n, HAS_IT);
	must_destroy(rule);
	ask.priority = 5;
	rule = must_add(0, ask);
	plain_send(station_1);
	EXPECT_WHICH(&n, HAS_IT | FAR_HAS_IT);
	must_destroy(rule);
	all_close();
	peer_stop(&n.far);
}

Test(flow, rules_of_the_dead_are_gone)
{
	struct flow_ask ask = flow_to(station_1);
	struct ibv_flow *rule;
	struct neighbours n;

	neighbours_open(&n);
	far_rule(&n, ask);
	ask.priority = 1;
	rule = must_add(0, ask);
	plain_send(station_1);
	EXPECT_WHICH(&n, FAR_HAS_IT);
	peer_kill(&n.far);
	for (uint64_t until = now_ms() + AWAIT_MS; now_ms() < until && !(who() & HAS_IT);)
		plain_send(station_1);
	plain_send(station_1);
	cr_expect_eq(who(), HAS_IT);
	must_destroy(rule);
	all_close();
}
