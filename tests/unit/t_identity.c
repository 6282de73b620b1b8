/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who the NIC of a host is: the GID order, the choice of the interface, and the numbers made up
 * where a host has none.  Method: hosts written down as interface lists.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <stdio.h>
#include <string.h>
#include "emu/identity.h"
#include "hw-models/profile.h"

#define HOST_ADDRESSES_MAX 40

struct host {
	unsigned count;
	struct ifaddrs entry[HOST_ADDRESSES_MAX];
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_ll ll;
	} address[HOST_ADDRESSES_MAX];
};

static const struct hw_profile ethernet = { .name = "test", .link = HW_LINK_ETHERNET };
static const struct hw_profile infiniband = { .name = "test", .link = HW_LINK_INFINIBAND };

#define UP	(IFF_UP | IFF_RUNNING)
#define LO	(UP | IFF_LOOPBACK)

static struct ifaddrs *host_entry(struct host *h, const char *name, unsigned flags)
{
	struct ifaddrs *a = &h->entry[h->count];

	*a = (struct ifaddrs){ .ifa_name = (char *)name, .ifa_flags = flags,
			       .ifa_addr = &h->address[h->count].any };
	if (h->count)
		h->entry[h->count - 1].ifa_next = a;
	h->count++;
	return a;
}

static void host_link(struct host *h, const char *name, unsigned flags, int index,
		      const uint8_t mac[6])
{
	struct sockaddr_ll *ll = (struct sockaddr_ll *)host_entry(h, name, flags)->ifa_addr;

	*ll = (struct sockaddr_ll){ .sll_family = AF_PACKET, .sll_ifindex = index, .sll_halen = 6 };
	memcpy(ll->sll_addr, mac, 6);
}

static void host_ip(struct host *h, const char *name, unsigned flags, const char *text)
{
	struct ifaddrs *a = host_entry(h, name, flags);
	struct sockaddr_in *in = (struct sockaddr_in *)a->ifa_addr;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)a->ifa_addr;

	in->sin_family = AF_INET;
	if (inet_pton(AF_INET, text, &in->sin_addr) == 1)
		return;
	in6->sin6_family = AF_INET6;
	cr_assert_eq(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
}

static const uint8_t mac_lo[6], mac_a[6] = { 0xb8, 0x59, 0x9f, 0x11, 0x22, 0x33 };

static struct emu_identity identity_of(const struct host *h, unsigned node)
{
	struct identity_host asked = { h && h->count ? h->entry : NULL, 0x1122334455667788, node };
	struct emu_identity id = { .profile = &ethernet };

	identity_fill(&asked, &id);
	return id;
}

static const char *gid_text(const struct emu_identity *id, unsigned index)
{
	static char text[4][INET6_ADDRSTRLEN];
	static unsigned turn;

	cr_assert_lt(index, id->gid_count);
	return inet_ntop(AF_INET6, id->gid[index].raw, text[turn++ % 4], INET6_ADDRSTRLEN);
}

/* Both of a pair: the same address, v1 then v2. */
static void expect_pair(const struct emu_identity *id, unsigned index, const char *address)
{
	cr_expect_str_eq(gid_text(id, index), address);
	cr_expect_str_eq(gid_text(id, index + 1), address);
	cr_expect_eq(id->gid[index].type, 1);
	cr_expect_eq(id->gid[index + 1].type, 2);
}

Test(identity, gids_stand_in_connectx_order)
{
	struct host h = { 0 };
	struct emu_identity id;

	host_link(&h, "lo", LO, 1, mac_lo);
	host_link(&h, "eth0", UP, 7, mac_a);
	host_ip(&h, "lo", LO, "127.0.0.1");
	host_ip(&h, "eth0", UP, "192.0.2.2");
	host_ip(&h, "eth0", UP, "192.0.2.3");
	host_ip(&h, "lo", LO, "::1");
	host_ip(&h, "eth0", UP, "2001:db8::5");
	host_ip(&h, "eth0", UP, "fe80::1234");
	id = identity_of(&h, 0);
	cr_assert_eq(id.gid_count, 8);
	expect_pair(&id, 0, "fe80::1234");
	expect_pair(&id, 2, "::ffff:192.0.2.2");
	expect_pair(&id, 4, "::ffff:192.0.2.3");
	expect_pair(&id, 6, "2001:db8::5");
	cr_expect_str_eq(id.gid[3].netdev, "eth0");
	cr_expect_eq(id.gid[3].netdev_ifindex, 7);
}

Test(identity, guid_comes_from_the_mac)
{
	struct host h = { 0 };
	struct emu_identity id;

	host_link(&h, "eth0", UP, 2, mac_a);
	host_ip(&h, "eth0", UP, "192.0.2.2");
	id = identity_of(&h, 0);
	cr_expect_eq(id.node_guid, 0xb8599f0300112233);
	cr_expect_arr_eq(id.mac, mac_a, 6);
	expect_pair(&id, 0, "fe80::ba59:9fff:fe11:2233");
}

Test(identity, interfaces_that_are_down_do_not_count)
{
	struct host h = { 0 };
	struct emu_identity id;

	host_ip(&h, "eth0", 0, "192.0.2.2");
	host_ip(&h, "eth1", UP, "198.51.100.9");
	id = identity_of(&h, 0);
	expect_pair(&id, 2, "::ffff:198.51.100.9");
	cr_expect_eq(id.gid_count, 4);
}

Test(identity, ipv4_is_preferred_to_ipv6_and_the_first_wins)
{
	struct host h = { 0 };
	struct emu_identity id;

	host_ip(&h, "eth0", UP, "2001:db8::5");
	host_ip(&h, "eth1", UP, "192.0.2.2");
	host_ip(&h, "eth2", UP, "192.0.2.3");
	id = identity_of(&h, 0);
	expect_pair(&id, 2, "::ffff:192.0.2.2");
}

Test(identity, a_host_with_ipv6_only_has_it_at_index_2)
{
	struct host h = { 0 };
	struct emu_identity id;

	host_ip(&h, "eth0", UP, "fe80::9");
	host_ip(&h, "eth0", UP, "2001:db8::5");
	id = identity_of(&h, 0);
	expect_pair(&id, 0, "fe80::9");
	expect_pair(&id, 2, "2001:db8::5");
}

Test(identity, only_one_link_local_address_precedes_the_others)
{
	struct host h = { 0 };
	struct emu_identity id;

	host_ip(&h, "eth0", UP, "fe80::9");
	host_ip(&h, "eth0", UP, "fe80::a");
	host_ip(&h, "eth0", UP, "192.0.2.2");
	id = identity_of(&h, 0);
	expect_pair(&id, 2, "::ffff:192.0.2.2");
}

Test(identity, loopback_serves_where_nothing_else_is)
{
	struct host lonely = { 0 }, none = { 0 };
	struct emu_identity id;

	host_link(&lonely, "lo", LO, 1, mac_lo);
	host_ip(&lonely, "lo", LO, "127.0.0.1");
	host_ip(&lonely, "eth0", UP, "fe80::9");
	id = identity_of(&lonely, 0);
	expect_pair(&id, 2, "::ffff:127.0.0.1");
	cr_expect_str_eq(id.gid[2].netdev, "lo");
	id = identity_of(&none, 0);
	expect_pair(&id, 2, "::ffff:127.0.0.1");
	cr_expect_eq(id.gid_count, 4);
}

Test(identity, a_host_without_mac_gets_a_local_one_that_is_stable)
{
	struct emu_identity first = identity_of(NULL, 0), second = identity_of(NULL, 0);

	cr_expect_eq(first.mac[0], 0x02);
	cr_expect_neq(first.node_guid, 0);
	cr_expect_eq(first.node_guid, second.node_guid);
}

Test(identity, a_node_is_another_host)
{
	struct host h = { 0 };
	struct emu_identity host, one, other;

	host_link(&h, "eth0", UP, 7, mac_a);
	host_ip(&h, "eth0", UP, "192.0.2.2");
	host = identity_of(&h, 0);
	one = identity_of(&h, 1);
	other = identity_of(&h, 250);
	expect_pair(&one, 2, "::ffff:10.86.0.1");
	expect_pair(&other, 2, "::ffff:10.86.0.250");
	cr_expect_eq(one.gid_count, 4);
	cr_expect_neq(one.node_guid, host.node_guid);
	cr_expect_neq(one.node_guid, other.node_guid);
	cr_expect(memcmp(one.gid[0].raw, other.gid[0].raw, 16));
}

Test(identity, an_infiniband_port_has_one_gid_made_from_its_guid)
{
	struct host h = { 0 };
	struct identity_host asked = { h.entry, 1, 0 };
	struct emu_identity id = { .profile = &infiniband };

	host_link(&h, "eth0", UP, 7, mac_a);
	host_ip(&h, "eth0", UP, "192.0.2.2");
	identity_fill(&asked, &id);
	cr_assert_eq(id.gid_count, 1);
	cr_expect_str_eq(gid_text(&id, 0), "fe80::b859:9f03:11:2233");
	cr_expect_eq(id.gid[0].type, 0);
	cr_expect_str_eq(id.gid[0].netdev, "");
}

Test(identity, more_addresses_than_slots_are_cut_at_a_pair)
{
	static char text[HOST_ADDRESSES_MAX][32];
	struct host h = { 0 };
	struct emu_identity id;

	for (unsigned i = 0; i < HOST_ADDRESSES_MAX; i++) {
		snprintf(text[i], sizeof text[i], "192.0.2.%u", i + 1);
		host_ip(&h, "eth0", UP, text[i]);
	}
	id = identity_of(&h, 0);
	cr_expect_eq(id.gid_count, 32);
	expect_pair(&id, 30, "::ffff:192.0.2.15");
}

Test(identity, names_too_long_for_the_field_are_cut)
{
	struct host h = { 0 };
	struct emu_identity id;

	host_ip(&h, "an-interface-name-too-long", UP, "192.0.2.2");
	id = identity_of(&h, 0);
	cr_expect_eq(strlen(id.gid[0].netdev), sizeof id.gid[0].netdev - 1);
	cr_expect_eq(id.gid_count, 4);
	expect_pair(&id, 2, "::ffff:192.0.2.2");
}

Test(identity, node_numbers_are_1_to_250)
{
	static const struct { const char *text; int error; unsigned node; } row[] = {
		{ NULL, 0, 0 },		{ "", 0, 0 },		{ "1", 0, 1 },
		{ "250", 0, 250 },	{ "0", -EINVAL, 0 },	{ "251", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },	{ "+1", -EINVAL, 0 },	{ " 1", -EINVAL, 0 },
		{ "1x", -EINVAL, 0 },	{ "99999999999999999999", -EINVAL, 0 },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		unsigned node = 0;

		cr_expect_eq(identity_node_parse(row[i].text, &node), row[i].error, "row %zu", i);
		cr_expect_eq(node, row[i].node, "row %zu", i);
	}
}

/* --- what was changed from outside --- */

static void gid_change(struct fabric_port *set, bool is_removal, const char *text)
{
	struct fabric_gid_change *change = &set->gid_change[set->gid_change_count++];

	change->is_removal = is_removal;
	cr_assert_eq(inet_pton(AF_INET6, text, change->gid), 1);
}

/* Index of a GID, -1: not there. */
static int gid_index(const struct emu_identity *id, const char *text)
{
	for (unsigned i = 0; i < id->gid_count; i++)
		if (!strcmp(gid_text(id, i), text))
			return (int)i;
	return -1;
}

Test(identity, gids_come_and_go_and_others_keep_their_index)
{
	struct emu_identity id = identity_of(NULL, 3);
	struct fabric_port set;

	fabric_port_default(&set);
	cr_assert_eq(id.gid_count, 4);
	gid_change(&set, false, "::ffff:10.0.0.7");
	gid_change(&set, false, "2001:db8::1");
	gid_change(&set, false, "::ffff:10.0.0.7");		/* known */
	gid_change(&set, true, "::ffff:10.0.0.7");
	gid_change(&set, true, "::ffff:10.86.0.3");		/* one of the host's own */
	gid_change(&set, true, "2001:db8::99");			/* unknown */
	identity_set_port(&id, &set);
	cr_assert_eq(id.gid_count, 8);
	cr_assert_eq(gid_index(&id, "2001:db8::1"), 6);
	cr_assert_eq(id.gid[6].type, 1);
	cr_assert_eq(id.gid[7].type, 2);
	cr_assert_eq(gid_index(&id, "::ffff:10.86.0.3"), -1);
	cr_assert_str_eq(gid_text(&id, 2), "::");
	gid_change(&set, false, "2001:db8::2");
	gid_change(&set, true, "2001:db8::1");
	id = identity_of(NULL, 3);
	identity_set_port(&id, &set);
	cr_assert_eq(gid_index(&id, "2001:db8::2"), 2, "the first free pair");
	cr_assert_eq(id.gid_count, 4);
}

Test(identity, a_gid_table_that_is_full_takes_no_more)
{
	struct emu_identity id = identity_of(NULL, 3);
	struct fabric_port set;
	char text[32];

	fabric_port_default(&set);
	for (unsigned i = 0; i < 20; i++) {
		snprintf(text, sizeof text, "2001:db8::%x", i + 1);
		gid_change(&set, false, text);
	}
	identity_set_port(&id, &set);
	cr_assert_eq(id.gid_count, 32);
	cr_assert_eq(gid_index(&id, "2001:db8::e"), 30);
	cr_assert_eq(gid_index(&id, "2001:db8::f"), -1);
}

static uint16_t lid_of(unsigned node, uint64_t host_id)
{
	struct emu_identity id = { .profile = &infiniband };

	identity_fill(&(struct identity_host){ .node = node, .host_id = host_id }, &id);
	return id.port.lid;
}

/* Whatever the LMC: 128 LIDs from each of these on are unicast, and nobody else's. */
Test(identity, nodes_have_blocks_of_lids)
{
	bool is_taken[0xc000 / 128] = { true };		/* 1 is the subnet manager's */
	bool is_used[0xc000 / 128] = { false };
	unsigned blocks = 0;

	for (unsigned node = 1; node <= IDENTITY_NODE_MAX; node++) {
		uint16_t lid = lid_of(node, 7);

		cr_assert_eq(lid % 128, 0);
		cr_assert_lt(lid, 0xc000);
		cr_assert(!is_taken[lid / 128], "node %u, LID %#x", node, lid);
		is_taken[lid / 128] = true;
	}
	for (uint64_t host = 0; host < 5000; host++) {
		uint16_t lid = lid_of(0, host << 20);

		cr_assert_eq(lid % 128, 0);
		cr_assert_lt(lid, 0xc000);
		cr_assert(!is_taken[lid / 128], "host %lu, LID %#x", (unsigned long)host, lid);
		blocks += !is_used[lid / 128];
		is_used[lid / 128] = true;
	}
	cr_assert_gt(blocks, 100, "%u blocks", blocks);
	cr_assert_eq(lid_of(0, 7), lid_of(0, 7));
}

Test(identity, lids_and_partitions_are_of_infiniband)
{
	struct emu_identity id = identity_of(NULL, 3);
	struct fabric_port set;

	fabric_port_default(&set);
	set.lid = 70;
	set.lmc = 1;
	set.sm_lid = 71;
	set.pkey[1] = 0x8001;
	set.is_down = 1;
	cr_assert_eq(id.port.lid, 0);
	identity_set_port(&id, &set);
	cr_assert_eq(id.port.lid, 0);
	cr_assert_eq(id.port.lmc, 0);
	cr_assert_eq(id.port.sm_lid, 0);
	cr_assert_eq(id.port.pkey[1], 0);
	cr_assert(id.port.is_down);

	id.profile = &infiniband;
	identity_fill(&(struct identity_host){ .node = 3 }, &id);
	cr_assert_eq(id.port.lid, 3 * 128);
	cr_assert_eq(id.port.sm_lid, 1);
	cr_assert_eq(id.port.pkey[0], 0xffff);
	cr_assert(!id.port.is_down);
	gid_change(&set, false, "2001:db8::1");
	identity_set_port(&id, &set);
	cr_assert_eq(id.port.lid, 70);
	cr_assert_eq(id.port.lmc, 1);
	cr_assert_eq(id.port.sm_lid, 71);
	cr_assert_eq(id.port.pkey[1], 0x8001);
	cr_assert_eq(id.gid_count, 2);
	cr_assert_eq(gid_index(&id, "2001:db8::1"), 1);
	cr_assert_eq(id.gid[1].type, 0);
}
