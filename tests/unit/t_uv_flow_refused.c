/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_create_flow(): what is refused, with which errno, and which of two faults is told of.
 *
 * Method: a command that works, with one thing wrong; nothing may be left of it.  Source: Linux,
 * ib_uverbs_ex_create_flow() and what it calls, mlx5_ib_create_flow() and what that calls.
 */
#include "tests/unit/flow_world.h"

struct misuse {
	const char *name;
	void (*spoil)(struct flow_ask *ask);
	int rc;
	enum why why;
};

static void misuse_check(struct flow_rig *r, const struct misuse *m)
{
	uint64_t before = world_why.made;
	struct flow_ask ask;
	int got;

	flow_ask_begin(&ask, r);
	m->spoil(&ask);
	got = flow_make(r, &ask);
	cr_assert(got == m->rc, "%s: %d, want %d", m->name, got, m->rc);
	cr_assert(world_why.made == before + 1, "%s: no reason, or several", m->name);
	cr_assert(world_why.record[before % WHY_KEPT].why == m->why, "%s: %s", m->name,
		  why_name(world_why.record[before % WHY_KEPT].why));
	CHECK_INT(r->w.dev->flows.taken, 0);
	CHECK_INT(steer_blocks(r->w.dev->rules), 0);
}

static void misuses_check(const struct misuse *m, size_t count)
{
	struct flow_rig r = flow_rig_new();

	for (size_t i = 0; i < count; i++)
		misuse_check(&r, &m[i]);
	CHECK_INT(qp_free(&r.w, r.qp.handle), 0);
	uv_world_end(&r.w);
}
#define MISUSES_CHECK(rows)	misuses_check(rows, sizeof(rows) / sizeof *(rows))

/* --- the structure in front --- */

static void comp_mask(struct flow_ask *a) { a->core.comp_mask = 1; }
static void flag_8(struct flow_ask *a) { a->core.flow_attr.flags = 8; }
static void flag_high(struct flow_ask *a) { a->core.flow_attr.flags = 1u << 31; }
static void loop_back(struct flow_ask *a) { a->core.flow_attr.flags = LOOP_BACK; }
static void egress(struct flow_ask *a) { a->core.flow_attr.flags = EGRESS; }

static void default_of(struct flow_ask *a, uint32_t type, uint32_t flags)
{
	a->core.flow_attr.type = type;
	a->core.flow_attr.flags = flags;
}

static void all_dont_trap(struct flow_ask *a) { default_of(a, ALL_DEFAULT, DONT_TRAP); }
static void mc_dont_trap(struct flow_ask *a) { default_of(a, MC_DEFAULT, DONT_TRAP); }
static void all_egress(struct flow_ask *a) { default_of(a, ALL_DEFAULT, EGRESS); }
static void mc_egress(struct flow_ask *a) { default_of(a, MC_DEFAULT, EGRESS); }
static void sniffer_egress(struct flow_ask *a) { default_of(a, SNIFFER, EGRESS); }
static void type_4(struct flow_ask *a) { a->core.flow_attr.type = 4; }
static void type_high(struct flow_ask *a) { a->core.flow_attr.type = UINT32_MAX; }
static void reserved_0(struct flow_ask *a) { a->core.flow_attr.reserved[0] = 1; }
static void reserved_1(struct flow_ask *a) { a->core.flow_attr.reserved[1] = 1; }
static void port_0(struct flow_ask *a) { a->core.flow_attr.port = 0; }
static void port_2(struct flow_ask *a) { a->core.flow_attr.port = 2; }
static void priority_16(struct flow_ask *a) { a->core.flow_attr.priority = 16; }
static void no_qp(struct flow_ask *a) { a->core.qp_handle = OTHER; }

static void specs_11(struct flow_ask *a)
{
	for (unsigned i = 0; i < 11; i++)
		mac_add(a, 2, (uint8_t)i);
}

static void size_without_specs(struct flow_ask *a) { a->core.flow_attr.size = 8; }

static void size_beyond_specs(struct flow_ask *a)
{
	any_add(a, IPV6, 44);
}

static void more_behind(struct flow_ask *a)
{
	mac_add(a, 2, 1);
	spec_place(a)[3] = 1;
	a->more = 8;
}

static void specs_missing(struct flow_ask *a)
{
	a->core.flow_attr.num_of_specs = 1;
	a->core.flow_attr.size = 40;
	a->more = -8;
}

static const struct misuse core_misuses[] = {
	{ "comp_mask", comp_mask, -EINVAL, WHY_CMD_VALUE },
	{ "flag 8", flag_8, -EINVAL, WHY_CMD_VALUE },
	{ "flag 1 << 31", flag_high, -EINVAL, WHY_CMD_VALUE },
	{ "ALLOW_LOOP_BACK", loop_back, -EINVAL, WHY_CMD_VALUE },
	{ "EGRESS", egress, -EOPNOTSUPP, WHY_CMD_UNSUPPORTED },
	{ "ALL_DEFAULT, DONT_TRAP", all_dont_trap, -EINVAL, WHY_CMD_VALUE },
	{ "MC_DEFAULT, DONT_TRAP", mc_dont_trap, -EINVAL, WHY_CMD_VALUE },
	{ "ALL_DEFAULT, EGRESS", all_egress, -EINVAL, WHY_CMD_VALUE },
	{ "MC_DEFAULT, EGRESS", mc_egress, -EINVAL, WHY_CMD_VALUE },
	{ "SNIFFER, EGRESS", sniffer_egress, -EOPNOTSUPP, WHY_CMD_UNSUPPORTED },
	{ "type 4", type_4, -EOPNOTSUPP, WHY_CMD_UNSUPPORTED },
	{ "type 2^32 - 1", type_high, -EOPNOTSUPP, WHY_CMD_UNSUPPORTED },
	{ "reserved[0]", reserved_0, -EINVAL, WHY_FLOW_SPEC },
	{ "reserved[1]", reserved_1, -EINVAL, WHY_FLOW_SPEC },
	{ "port 0", port_0, -EINVAL, WHY_CMD_VALUE },
	{ "port 2", port_2, -EINVAL, WHY_CMD_VALUE },
	{ "priority 16", priority_16, -ENOMEM, WHY_CMD_LIMIT },
	{ "QP", no_qp, -ENOENT, WHY_CMD_HANDLE },
	{ "11 specs", specs_11, -EINVAL, WHY_FLOW_SPEC },
	{ "a size, but no specs", size_without_specs, -EINVAL, WHY_FLOW_SPEC },
	{ "a spec of 96 bytes", size_beyond_specs, -EINVAL, WHY_FLOW_SPEC },
	{ "something behind the specs", more_behind, -EOPNOTSUPP, WHY_CMD_UNSUPPORTED },
	{ "specs that are not there", specs_missing, -ENOSPC, WHY_CMD_ATTRIBUTES },
};

Test(uv_flow_refused, structures_that_make_no_sense)
{
	MISUSES_CHECK(core_misuses);
}

/* --- specs --- */

static struct ib_uverbs_flow_spec_hdr *header_of(struct flow_ask *a)
{
	return (void *)a->specs;
}

static void spec_reserved(struct flow_ask *a)
{
	mac_add(a, 2, 1);
	header_of(a)->reserved = 1;
}

static void spec_short(struct flow_ask *a)
{
	mac_add(a, 2, 1);
	header_of(a)->size = 7;
}

static void spec_of_nothing(struct flow_ask *a)
{
	mac_add(a, 2, 1);
	header_of(a)->size = 0;
}

static void spec_long(struct flow_ask *a)
{
	mac_add(a, 2, 1);
	header_of(a)->size++;
}

/* Room for one spec more, which is not counted; for half a header; and one is missing. */
static void specs_uncounted(struct flow_ask *a)
{
	mac_add(a, 2, 1);
	mac_add(a, 2, 2);
	a->core.flow_attr.num_of_specs = 1;
}

static void specs_overcounted(struct flow_ask *a)
{
	mac_add(a, 2, 1);
	a->core.flow_attr.num_of_specs = 2;
}

static void specs_and_a_half(struct flow_ask *a)
{
	mac_add(a, 2, 1);
	a->core.flow_attr.size += 4;
	a->core.flow_attr.num_of_specs = 2;
}

static void filter_of_0(struct flow_ask *a) { any_add(a, ETH, 0); }
static void filter_of_6(struct flow_ask *a) { any_add(a, ETH, 6); }
static void type_0(struct flow_ask *a) { any_add(a, 0, 16); }
static void type_ext(struct flow_ask *a) { any_add(a, 0x32, 12); }
static void type_infiniband(struct flow_ask *a) { any_add(a, 0x21, 20); }
static void type_middle(struct flow_ask *a) { any_add(a, 0x200 | ETH, 16); }
static void inner_vxlan(struct flow_ask *a) { any_add(a, VXLAN | INNER, 4); }
static void inner_tag(struct flow_ask *a) { number_add(a, TAG | INNER, 1); }
static void action_4(struct flow_ask *a) { number_add(a, TAG + 4, 1); }

static void tail_of_mask(struct flow_ask *a)
{
	uint8_t mask[20] = { [19] = 1 };

	filter_add(a, ETH, 20, mask, mask);
}

/* The last byte of the structure is no field. */
static void ipv6_reserved(struct flow_ask *a)
{
	uint8_t mask[40] = { [39] = 1 };

	filter_add(a, IPV6, 40, mask, mask);
}

static void byte_add(struct flow_ask *a, uint32_t type, unsigned bytes, unsigned at, bool in_mask)
{
	uint8_t with[40] = { 0 }, without[40] = { 0 };

	with[at] = 0x10;
	filter_add(a, type, bytes, in_mask ? without : with, in_mask ? with : without);
}

static void label_21_bits(struct flow_ask *a) { byte_add(a, IPV6, 40, 33, false); }
static void label_mask_21_bits(struct flow_ask *a) { byte_add(a, IPV6, 40, 33, true); }
static void inner_label(struct flow_ask *a) { byte_add(a, IPV6 | INNER, 40, 33, true); }
static void vni_25_bits(struct flow_ask *a) { byte_add(a, VXLAN, 4, 0, false); }
static void vni_mask_25_bits(struct flow_ask *a) { byte_add(a, VXLAN, 4, 0, true); }
static void value_beyond_mask(struct flow_ask *a) { byte_add(a, ETH, 16, 2, false); }
static void tos_beyond_mask(struct flow_ask *a) { byte_add(a, IPV4, 12, 9, false); }
static void ttl(struct flow_ask *a) { byte_add(a, IPV4, 12, 10, true); }
static void fragments(struct flow_ask *a) { byte_add(a, IPV4, 12, 11, true); }
static void hop_limit(struct flow_ask *a) { byte_add(a, IPV6, 40, 38, true); }
static void gre_flags(struct flow_ask *a) { byte_add(a, GRE, 8, 0, true); }
static void gre_version(struct flow_ask *a) { byte_add(a, GRE | INNER, 8, 1, true); }
static void esp(struct flow_ask *a) { any_add(a, ESP, 8); }
static void esp_of_6(struct flow_ask *a) { any_add(a, ESP, 6); }
static void inner_esp(struct flow_ask *a) { any_add(a, ESP | INNER, 8); }

static const struct misuse spec_misuses[] = {
	{ "reserved", spec_reserved, -EINVAL, WHY_FLOW_SPEC },
	{ "7 bytes", spec_short, -EINVAL, WHY_FLOW_SPEC },
	{ "0 bytes", spec_of_nothing, -EINVAL, WHY_FLOW_SPEC },
	{ "longer than all of them", spec_long, -EINVAL, WHY_FLOW_SPEC },
	{ "one is not counted", specs_uncounted, -EINVAL, WHY_FLOW_SPEC },
	{ "one is not there", specs_overcounted, -EINVAL, WHY_FLOW_SPEC },
	{ "half a header", specs_and_a_half, -EINVAL, WHY_FLOW_SPEC },
	{ "empty filter", filter_of_0, -EINVAL, WHY_FLOW_SPEC },
	{ "filter of 6 bytes", filter_of_6, -EINVAL, WHY_FLOW_SPEC },
	{ "type 0", type_0, -EINVAL, WHY_FLOW_SPEC },
	{ "IPV4_EXT, which is the library's", type_ext, -EINVAL, WHY_FLOW_SPEC },
	{ "IB", type_infiniband, -EINVAL, WHY_FLOW_SPEC },
	{ "type with bit 9", type_middle, -EINVAL, WHY_FLOW_SPEC },
	{ "inner VXLAN", inner_vxlan, -EINVAL, WHY_FLOW_SPEC },
	{ "inner TAG", inner_tag, -EINVAL, WHY_FLOW_SPEC },
	{ "action 0x1004", action_4, -EINVAL, WHY_FLOW_SPEC },
	{ "mask behind what is known", tail_of_mask, -EINVAL, WHY_FLOW_SPEC },
	{ "reserved byte of IPV6", ipv6_reserved, -EINVAL, WHY_FLOW_SPEC },
	{ "flow label of 21 bits", label_21_bits, -EINVAL, WHY_FLOW_SPEC },
	{ "mask of a flow label", label_mask_21_bits, -EINVAL, WHY_FLOW_SPEC },
	{ "inner flow label", inner_label, -EINVAL, WHY_FLOW_SPEC },
	{ "VNI of 25 bits", vni_25_bits, -EINVAL, WHY_FLOW_SPEC },
	{ "mask of a VNI", vni_mask_25_bits, -EINVAL, WHY_FLOW_SPEC },
	{ "MAC beyond its mask", value_beyond_mask, -EINVAL, WHY_FLOW_SPEC },
	{ "TOS beyond its mask", tos_beyond_mask, -EINVAL, WHY_FLOW_SPEC },
	{ "TTL", ttl, -EOPNOTSUPP, WHY_FLOW_SPEC },
	{ "IPv4 flags", fragments, -EOPNOTSUPP, WHY_FLOW_SPEC },
	{ "hop limit", hop_limit, -EOPNOTSUPP, WHY_FLOW_SPEC },
	{ "GRE flags", gre_flags, -EOPNOTSUPP, WHY_FLOW_SPEC },
	{ "GRE version", gre_version, -EOPNOTSUPP, WHY_FLOW_SPEC },
	{ "ESP", esp, -EOPNOTSUPP, WHY_FLOW_SPEC },
	{ "ESP of 6 bytes", esp_of_6, -EINVAL, WHY_FLOW_SPEC },
	{ "inner ESP", inner_esp, -EOPNOTSUPP, WHY_FLOW_SPEC },
};

Test(uv_flow_refused, specs_that_make_no_sense)
{
	MISUSES_CHECK(spec_misuses);
}

/* --- specs that contradict each other --- */

static void ethertype_add(struct flow_ask *a, uint32_t type, uint16_t ethertype, uint16_t mask)
{
	uint8_t value[16] = { [12] = (uint8_t)(ethertype >> 8), (uint8_t)ethertype };
	uint8_t masks[16] = { [12] = (uint8_t)(mask >> 8), (uint8_t)mask };

	filter_add(a, type, 16, value, masks);
}

static void tcp_and_udp(struct flow_ask *a) { any_add(a, TCP, 4), any_add(a, UDP, 4); }
static void gre_and_udp(struct flow_ask *a) { any_add(a, GRE, 8), any_add(a, UDP, 4); }

static void inner_tcp_and_udp(struct flow_ask *a)
{
	any_add(a, TCP | INNER, 4);
	any_add(a, UDP | INNER, 4);
}

static void protocol_and_tcp(struct flow_ask *a)
{
	uint8_t value[12] = { [8] = 17 }, mask[12] = { [8] = 0xff };

	filter_add(a, IPV4, 12, value, mask);
	any_add(a, TCP, 4);
}

/* Half a mask is not the same as all of it, whatever the value. */
static void masked_protocol_and_tcp(struct flow_ask *a)
{
	uint8_t value[12] = { [8] = 6 }, mask[12] = { [8] = 0x0f };

	filter_add(a, IPV4, 12, value, mask);
	any_add(a, TCP, 4);
}

static void tcp_and_next_header(struct flow_ask *a)
{
	uint8_t value[40] = { [36] = 17 }, mask[40] = { [36] = 0xff };

	any_add(a, TCP, 4);
	filter_add(a, IPV6, 40, value, mask);
}

static void ipv4_as_ipv6(struct flow_ask *a)
{
	ethertype_add(a, ETH, 0x86dd, 0xffff);
	any_add(a, IPV4, 12);
}

static void ipv6_as_arp(struct flow_ask *a)
{
	any_add(a, IPV6, 40);
	ethertype_add(a, ETH, 0x0806, 0xffff);
}

static void inner_ipv4_as_ipv6(struct flow_ask *a)
{
	ethertype_add(a, ETH, 0x0800, 0xffff);
	ethertype_add(a, ETH | INNER, 0x86dd, 0xffff);
	any_add(a, IPV4 | INNER, 12);
}

static void masked_ethertype(struct flow_ask *a)
{
	ethertype_add(a, ETH, 0x0800, 0xff00);
	any_add(a, IPV4, 12);
}

static const struct misuse contradictions[] = {
	{ "TCP and UDP", tcp_and_udp, -EINVAL, WHY_FLOW_SPEC },
	{ "GRE and UDP", gre_and_udp, -EINVAL, WHY_FLOW_SPEC },
	{ "inner TCP and UDP", inner_tcp_and_udp, -EINVAL, WHY_FLOW_SPEC },
	{ "TCP that IPv4 says is UDP", protocol_and_tcp, -EINVAL, WHY_FLOW_SPEC },
	{ "TCP and part of a protocol", masked_protocol_and_tcp, -EINVAL, WHY_FLOW_SPEC },
	{ "TCP that IPv6 says is UDP", tcp_and_next_header, -EINVAL, WHY_FLOW_SPEC },
	{ "IPv4 with the Ethertype of IPv6", ipv4_as_ipv6, -EINVAL, WHY_FLOW_SPEC },
	{ "IPv6 with the Ethertype of ARP", ipv6_as_arp, -EINVAL, WHY_FLOW_SPEC },
	{ "inner IPv4 with that of IPv6", inner_ipv4_as_ipv6, -EINVAL, WHY_FLOW_SPEC },
	{ "IPv4 and part of an Ethertype", masked_ethertype, -EINVAL, WHY_FLOW_SPEC },
};

Test(uv_flow_refused, specs_that_contradict_each_other)
{
	MISUSES_CHECK(contradictions);
}

/* --- actions --- */

static void tag_25_bits(struct flow_ask *a) { number_add(a, TAG, 1 << 24); }
static void tag_without(struct flow_ask *a) { spec_add(a, TAG, 0); }
static void drop_with(struct flow_ask *a) { number_add(a, DROP, 0); }
static void handle_without(struct flow_ask *a) { spec_add(a, HANDLE, 0); }
static void handle_of_nothing(struct flow_ask *a) { number_add(a, HANDLE, OTHER); }
static void handle_of_a_qp(struct flow_ask *a) { number_add(a, HANDLE, a->core.qp_handle); }
static void count_without(struct flow_ask *a) { spec_add(a, COUNT, 0); }
static void count_of_nothing(struct flow_ask *a) { number_add(a, COUNT, OTHER); }
static void count_of_a_qp(struct flow_ask *a) { number_add(a, COUNT, a->core.qp_handle); }

static const struct misuse action_misuses[] = {
	{ "tag of 25 bits", tag_25_bits, -EINVAL, WHY_FLOW_SPEC },
	{ "tag of nothing", tag_without, -EINVAL, WHY_FLOW_SPEC },
	{ "drop with a number", drop_with, -EINVAL, WHY_FLOW_SPEC },
	{ "action without a handle", handle_without, -EOPNOTSUPP, WHY_FLOW_SPEC },
	{ "action that is not there", handle_of_nothing, -ENOENT, WHY_CMD_HANDLE },
	{ "action that is a QP", handle_of_a_qp, -EINVAL, WHY_CMD_HANDLE },
	{ "counters without a handle", count_without, -EINVAL, WHY_FLOW_SPEC },
	{ "counters that are not there", count_of_nothing, -ENOENT, WHY_CMD_HANDLE },
	{ "counters that are a QP", count_of_a_qp, -EINVAL, WHY_CMD_HANDLE },
};

Test(uv_flow_refused, actions_that_make_no_sense)
{
	MISUSES_CHECK(action_misuses);
}

/* --- two faults --- */

static void flags_and_type(struct flow_ask *a) { loop_back(a), type_4(a); }
static void priority_and_flags(struct flow_ask *a) { priority_16(a), loop_back(a); }
static void tail_and_port(struct flow_ask *a) { more_behind(a), port_2(a); }
static void tail_and_qp(struct flow_ask *a) { more_behind(a), no_qp(a); }
static void port_and_qp(struct flow_ask *a) { port_2(a), no_qp(a); }
static void qp_and_spec(struct flow_ask *a) { spec_reserved(a), no_qp(a); }
static void port_and_spec(struct flow_ask *a) { spec_reserved(a), port_2(a); }
static void spec_and_priority(struct flow_ask *a) { filter_of_6(a), priority_16(a); }
static void priority_and_ttl(struct flow_ask *a) { ttl(a), priority_16(a); }
static void ttl_and_tcp_and_udp(struct flow_ask *a) { ttl(a), tcp_and_udp(a); }
static void tcp_and_udp_and_esp(struct flow_ask *a) { tcp_and_udp(a), esp(a); }
static void esp_and_tag(struct flow_ask *a) { esp(a), tag_25_bits(a); }
static void beyond_and_esp(struct flow_ask *a) { value_beyond_mask(a), esp(a); }

/* The core reads all specs before the driver looks at the first. */
static void ttl_and_filter(struct flow_ask *a) { ttl(a), filter_of_6(a); }

static void driver_and_priority(struct flow_ask *a)
{
	priority_16(a);
	a->mlx5.count = 2;
}

static void driver_and_spec(struct flow_ask *a)
{
	filter_of_6(a);
	a->mlx5.count = 2;
}

static const struct misuse pairs[] = {
	{ "flags, type", flags_and_type, -EINVAL, WHY_CMD_VALUE },
	{ "priority, flags", priority_and_flags, -ENOMEM, WHY_CMD_LIMIT },
	{ "tail, port", tail_and_port, -EOPNOTSUPP, WHY_CMD_UNSUPPORTED },
	{ "tail, QP", tail_and_qp, -EOPNOTSUPP, WHY_CMD_UNSUPPORTED },
	{ "port, QP", port_and_qp, -EINVAL, WHY_CMD_VALUE },
	{ "QP, spec", qp_and_spec, -ENOENT, WHY_CMD_HANDLE },
	{ "port, spec", port_and_spec, -EINVAL, WHY_CMD_VALUE },
	{ "spec, priority", spec_and_priority, -EINVAL, WHY_FLOW_SPEC },
	{ "priority, TTL", priority_and_ttl, -ENOMEM, WHY_CMD_LIMIT },
	{ "TTL, TCP and UDP", ttl_and_tcp_and_udp, -EOPNOTSUPP, WHY_FLOW_SPEC },
	{ "TCP and UDP, ESP", tcp_and_udp_and_esp, -EINVAL, WHY_FLOW_SPEC },
	{ "ESP, tag", esp_and_tag, -EOPNOTSUPP, WHY_FLOW_SPEC },
	{ "value beyond its mask, ESP", beyond_and_esp, -EOPNOTSUPP, WHY_FLOW_SPEC },
	{ "TTL, filter", ttl_and_filter, -EINVAL, WHY_FLOW_SPEC },
	{ "driver data, priority", driver_and_priority, -EINVAL, WHY_CMD_VALUE },
	{ "spec, driver data", driver_and_spec, -EINVAL, WHY_FLOW_SPEC },
};

Test(uv_flow_refused, the_first_of_two_faults_is_told)
{
	MISUSES_CHECK(pairs);
}

/* --- driver data --- */

static void mlx5_short(struct flow_ask *a) { a->mlx5_bytes = 7; }
static void mlx5_two(struct flow_ask *a) { a->mlx5.count = 2, a->mlx5_bytes = 40; }
static void mlx5_cut(struct flow_ask *a) { a->mlx5.count = 1, a->mlx5_bytes = 16; }

static void mlx5_tail(struct flow_ask *a)
{
	a->mlx5.data[0].ncounters = 1;
	a->mlx5_bytes = 24;
}

static const struct misuse mlx5_misuses[] = {
	{ "7 bytes", mlx5_short, -EOPNOTSUPP, WHY_CMD_ATTRIBUTES },
	{ "two descriptions", mlx5_two, -EINVAL, WHY_CMD_VALUE },
	{ "half a description", mlx5_cut, -EINVAL, WHY_CMD_ATTRIBUTES },
	{ "something behind", mlx5_tail, -EOPNOTSUPP, WHY_CMD_UNSUPPORTED },
};

Test(uv_flow_refused, driver_data_that_makes_no_sense)
{
	MISUSES_CHECK(mlx5_misuses);
}

/* A reserved number is nobody's business, nor descriptions that no spec asks for. */
Test(uv_flow_refused, some_driver_data_does_not_matter)
{
	struct flow_rig r = flow_rig_new();
	struct flow_ask ask;

	flow_ask_begin(&ask, &r);
	ask.mlx5.reserved = 1;
	CHECK_INT(flow_make(&r, &ask), 0);
	ask.mlx5.count = 1;
	ask.mlx5.data[0].counters_data = 0x10;
	ask.mlx5.data[0].ncounters = UINT32_MAX;
	ask.mlx5_bytes = 24;
	CHECK_INT(flow_make(&r, &ask), 0);
	ask.mlx5_bytes = sizeof ask.mlx5;		/* zeros behind them */
	CHECK_INT(flow_make(&r, &ask), 0);
	uv_world_end(&r.w);
}

/* --- QPs --- */

Test(uv_flow_refused, rules_are_for_datagrams_too)
{
	struct flow_rig r = flow_rig_of(uv_world_new(), IB_UVERBS_QPT_UD);
	struct flow_ask ask;

	flow_ask_begin(&ask, &r);
	CHECK_INT(flow_landing_of(flow_made(&r, &ask))->qp->qpn, r.qp.qpn);
	CHECK_REFUSED(qp_free(&r.w, r.qp.handle), -EBUSY, WHY_CMD_BUSY);
	uv_world_end(&r.w);
}

Test(uv_flow_refused, rules_are_not_for_connected_qps)
{
	static const uint64_t types[] = { IB_UVERBS_QPT_RC, IB_UVERBS_QPT_UC };
	struct flow_rig r = flow_rig_new();
	struct flow_ask ask;

	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		struct qp_ask qp = qp_ask_new(&r.w, r.pd, r.cq);

		qp.type = types[i];
		CHECK_INT(qp_make(&r.w, &qp), 0);
		flow_ask_begin(&ask, &r);
		ask.core.qp_handle = qp.handle;
		CHECK_REFUSED(flow_make(&r, &ask), -EINVAL, WHY_CMD_VALUE);
	}
	flow_ask_begin(&ask, &r);
	ask.core.qp_handle = r.cq;
	CHECK_REFUSED(flow_make(&r, &ask), -EINVAL, WHY_CMD_HANDLE);
	uv_world_end(&r.w);
}

/* --- equal rules --- */

static void tagged(const struct flow_rig *r, struct flow_ask *ask, uint32_t tag)
{
	flow_ask_begin(ask, r);
	mac_add(ask, 2, 1);
	number_add(ask, TAG, tag);
}

Test(uv_flow_refused, an_equal_rule_with_another_tag_is_eexist)
{
	struct flow_rig r = flow_rig_new();
	struct flow_ask ask;

	tagged(&r, &ask, 7);
	CHECK_INT(flow_make(&r, &ask), 0);
	CHECK_INT(flow_make(&r, &ask), 0);
	tagged(&r, &ask, 8);
	CHECK_REFUSED(flow_make(&r, &ask), -EEXIST, WHY_FLOW_CONFLICT);
	ask.core.flow_attr.priority = 1;
	CHECK_INT(flow_make(&r, &ask), 0);
	flow_ask_begin(&ask, &r);
	mac_add(&ask, 2, 1);
	CHECK_INT(flow_landing_of(flow_made(&r, &ask))->tag, 7);
	spec_add(&ask, DROP, 0);
	CHECK_REFUSED(flow_make(&r, &ask), -EEXIST, WHY_FLOW_CONFLICT);
	uv_world_end(&r.w);
}

/* --- what the environment says --- */

Test(uv_flow_refused, rules_can_be_denied)
{
	struct flow_rig r = flow_rig_new();
	struct flow_ask ask;

	flow_ask_begin(&ask, &r);
	r.w.dev->options.net_raw = NET_RAW_DENY;
	CHECK_REFUSED(flow_make(&r, &ask), -EPERM, WHY_CMD_CAPABILITY);
	flag_8(&ask);
	CHECK_REFUSED(flow_make(&r, &ask), -EPERM, WHY_CMD_CAPABILITY);
	comp_mask(&ask);
	CHECK_REFUSED(flow_make(&r, &ask), -EINVAL, WHY_CMD_VALUE);
	r.w.dev->options.net_raw = NET_RAW_ALLOW;
	flow_ask_begin(&ask, &r);
	CHECK_INT(flow_make(&r, &ask), 0);
	uv_world_end(&r.w);
}

static uint32_t cap_flags(const struct uv_world *w)
{
	struct ib_uverbs_query_device in = { 0 };
	struct ib_uverbs_query_device_resp out;

	CHECK_INT(cmd_write_run(w, IB_USER_VERBS_CMD_QUERY_DEVICE, &in, &out), 0);
	return out.device_cap_flags;
}

Test(uv_flow_refused, steering_that_is_off_is_enxio)
{
	struct flow_rig r = flow_rig_new();
	struct flow_ask ask;

	CHECK_INT(cap_flags(&r.w) >> 29 & 1, 1);
	r.w.dev->options.is_steering_off = true;
	CHECK_INT(cap_flags(&r.w) >> 29 & 1, 0);
	for (uint32_t type = NORMAL; type <= SNIFFER; type++) {
		flow_ask_begin(&ask, &r);
		ask.core.flow_attr.type = type;
		CHECK_REFUSED(flow_make(&r, &ask), -ENXIO, WHY_CMD_UNSUPPORTED);
	}
	uv_world_end(&r.w);
}

Test(uv_flow_refused, an_infiniband_port_steers_nothing)
{
	struct uv_world w = uv_world_bare("connectx-6");
	struct mlx5_ib_alloc_ucontext_req_v2 request = context_request();
	struct mlx5_ib_alloc_ucontext_resp reply;
	struct flow_ask ask;
	struct flow_rig r;
	uint32_t uar;

	CHECK_INT(context_get(&w, &request, sizeof request, &reply), 0);
	CHECK_INT(uar_alloc(&w, 0, &uar), 0);
	r = flow_rig_of(w, IB_UVERBS_QPT_UD);
	flow_ask_begin(&ask, &r);
	CHECK_REFUSED(flow_make(&r, &ask), -ENXIO, WHY_CMD_UNSUPPORTED);
	CHECK_INT(cap_flags(&r.w) >> 29 & 1, 0);
	uv_world_end(&r.w);
}

/* Fields as VERBENA_FLOW_MASKS=full has them: numbers as a whole. */
static const struct { uint32_t type; uint8_t bytes, at, mask[6]; bool is_full; } full_rows[] = {
	{ ETH, 16, 0, { 255, 255, 255, 255, 255, 255 }, true },
	{ ETH, 16, 0, { 255, 255, 255, 255, 255 }, false },
	{ ETH, 16, 0, { 1 }, false },
	{ ETH, 16, 12, { 255, 255 }, true }, { ETH, 16, 12, { 255 }, false },
	{ ETH, 16, 14, { 255, 255 }, true }, { ETH, 16, 14, { 0x0f, 255 }, true },
	{ ETH, 16, 14, { 0xe0 }, true }, { ETH, 16, 14, { 0x10 }, true },
	{ ETH, 16, 14, { 0x0f, 0xfe }, false }, { ETH, 16, 14, { 0x60 }, false },
	{ IPV4, 12, 4, { 255, 255, 255, 255 }, true }, { IPV4, 12, 4, { 255, 255, 255 }, false },
	{ IPV4, 12, 9, { 255 }, true }, { IPV4, 12, 9, { 0xfc }, false },
	{ IPV6, 40, 33, { 0x0f, 255, 255 }, true }, { IPV6, 40, 33, { 0x0f, 255 }, false },
	{ TCP, 4, 0, { 255, 255 }, true }, { UDP, 4, 2, { 0, 255 }, false },
	{ VXLAN, 4, 1, { 255, 255, 255 }, true }, { VXLAN, 4, 1, { 255, 255 }, false },
	{ GRE, 8, 4, { 255, 255, 255, 255 }, true }, { MPLS, 4, 0, { 255, 255, 240 }, false },
};

Test(uv_flow_refused, masks_can_be_all_or_nothing)
{
	struct flow_rig r = flow_rig_new();
	struct flow_ask ask;

	for (size_t i = 0; i < sizeof full_rows / sizeof *full_rows; i++) {
		uint8_t nothing[40] = { 0 }, mask[40] = { 0 };

		for (unsigned k = 0; k < 6 && full_rows[i].at + k < 40; k++)
			mask[full_rows[i].at + k] = full_rows[i].mask[k];
		flow_ask_begin(&ask, &r);
		filter_add(&ask, full_rows[i].type, full_rows[i].bytes, nothing, mask);
		r.w.dev->options.wants_full_masks = false;
		CHECK_INT(flow_make(&r, &ask), 0);
		CHECK_INT(flow_free(&r, ask.reply.flow_handle), 0);
		r.w.dev->options.wants_full_masks = true;
		if (full_rows[i].is_full)
			CHECK_INT(flow_make(&r, &ask), 0);
		else
			CHECK_REFUSED(flow_make(&r, &ask), -EINVAL, WHY_FLOW_SPEC);
	}
	uv_world_end(&r.w);
}
