/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GIDs in the order of a ConnectX: pairs of RoCE v1 and v2, first the link-local
 * address, then the interface's first IPv4 address, then its other addresses.
 * So index 3 is RoCE v2 over IPv4, which is what most programs ask for.
 *
 * Source: device-abi B.8; the GUID is made from the MAC as mlx5 firmware does it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <stdlib.h>
#include <string.h>
#include "emu/identity.h"
#include "emu/obj/port.h"
#include "hw-models/profile.h"

enum { GID_IB, GID_ROCE_V1, GID_ROCE_V2 };

static const uint8_t ipv4_prefix[12] = { [10] = 0xff, [11] = 0xff };

/* The interface whose addresses the NIC answers to. */
struct netdev {
	const char *name;		/* NULL: the host has none */
	unsigned rank;			/* see netdev_rank() */
};

static bool is_link_local(const uint8_t gid[16])
{
	return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

/* The address as a GID; false if it is no IP address. */
static bool gid_of(const struct ifaddrs *a, uint8_t gid[16])
{
	if (!a->ifa_addr)
		return false;
	if (a->ifa_addr->sa_family == AF_INET) {
		memcpy(gid, ipv4_prefix, sizeof ipv4_prefix);
		memcpy(gid + 12, &((struct sockaddr_in *)a->ifa_addr)->sin_addr, 4);
		return true;
	}
	if (a->ifa_addr->sa_family == AF_INET6) {
		memcpy(gid, &((struct sockaddr_in6 *)a->ifa_addr)->sin6_addr, 16);
		return true;
	}
	return false;
}

/* IPv4 before IPv6; an interface that peers cannot reach ranks 0. */
static unsigned netdev_rank(const struct ifaddrs *a)
{
	uint8_t gid[16];

	if (!(a->ifa_flags & IFF_UP) || (a->ifa_flags & IFF_LOOPBACK) || !gid_of(a, gid))
		return 0;
	if (a->ifa_addr->sa_family == AF_INET)
		return 2;
	return is_link_local(gid) ? 0 : 1;
}

/* The first of the best: the kernel lists in a stable order, so all processes agree. */
static struct netdev netdev_choose(const struct ifaddrs *list)
{
	struct netdev best = { NULL, 0 };

	for (const struct ifaddrs *a = list; a; a = a->ifa_next)
		if (netdev_rank(a) > best.rank)
			best = (struct netdev){ a->ifa_name, netdev_rank(a) };
	for (const struct ifaddrs *a = list; a && !best.name; a = a->ifa_next)
		if ((a->ifa_flags & IFF_UP) && (a->ifa_flags & IFF_LOOPBACK))
			best.name = a->ifa_name;
	return best;
}

static const struct sockaddr_ll *link_of(const struct ifaddrs *list, const char *name)
{
	for (const struct ifaddrs *a = list; a && name; a = a->ifa_next)
		if (a->ifa_addr && a->ifa_addr->sa_family == AF_PACKET &&
		    !strcmp(a->ifa_name, name))
			return (const struct sockaddr_ll *)a->ifa_addr;
	return NULL;
}

/* A locally administered MAC where the host has none to lend. */
static void mac_invent(uint64_t seed, uint8_t mac[6])
{
	mac[0] = 0x02;
	for (unsigned i = 1; i < 6; i++)
		mac[i] = (uint8_t)(seed >> (8 * i));
}

static void mac_fill(const struct identity_host *host, const struct sockaddr_ll *link,
		     uint8_t mac[6])
{
	static const uint8_t zero[6];

	if (host->node)
		memcpy(mac, (const uint8_t[6]){ 0x02, 'V', 'B', 0, 0, (uint8_t)host->node }, 6);
	else if (link && link->sll_halen == 6 && memcmp(link->sll_addr, zero, 6))
		memcpy(mac, link->sll_addr, 6);
	else
		mac_invent(host->host_id, mac);
}

static uint64_t guid_of(const uint8_t mac[6])
{
	uint64_t oui = (uint64_t)mac[0] << 16 | (uint64_t)mac[1] << 8 | mac[2];

	return oui << 40 | 0x0300000000ull | (uint64_t)mac[3] << 16 | (uint64_t)mac[4] << 8 |
	       mac[5];
}

static void link_local_of_mac(const uint8_t mac[6], uint8_t gid[16])
{
	const uint8_t made[16] = {
		0xfe, 0x80, [8] = mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5],
	};

	memcpy(gid, made, sizeof made);
}

static bool gid_is_known(const struct emu_identity *id, const uint8_t gid[16])
{
	for (unsigned i = 0; i < id->gid_count; i++)
		if (!memcmp(id->gid[i].raw, gid, 16))
			return true;
	return false;
}

static void gid_add(struct emu_identity *id, const uint8_t gid[16], uint8_t type,
		    const struct emu_identity_gid *netdev)
{
	struct emu_identity_gid *g = &id->gid[id->gid_count++];

	*g = *netdev;
	memcpy(g->raw, gid, 16);
	g->type = type;
}

static void gid_add_pair(struct emu_identity *id, const uint8_t gid[16],
			 const struct emu_identity_gid *netdev)
{
	if (id->gid_count + 2 > sizeof id->gid / sizeof *id->gid || gid_is_known(id, gid))
		return;
	gid_add(id, gid, GID_ROCE_V1, netdev);
	gid_add(id, gid, GID_ROCE_V2, netdev);
}

/* The name in @netdev may have been cut. */
static bool is_of_netdev(const struct ifaddrs *a, const struct emu_identity_gid *netdev)
{
	return !strncmp(a->ifa_name, netdev->netdev, sizeof netdev->netdev - 1);
}

/* All addresses of @family on the interface, link-local ones or the others. */
static void gid_add_addresses(struct emu_identity *id, const struct ifaddrs *list, int family,
			      bool wants_link_local, const struct emu_identity_gid *netdev)
{
	uint8_t gid[16];

	for (const struct ifaddrs *a = list; a; a = a->ifa_next)
		if (gid_of(a, gid) && a->ifa_addr->sa_family == family &&
		    is_link_local(gid) == wants_link_local && is_of_netdev(a, netdev))
			gid_add_pair(id, gid, netdev);
}

/* Exactly one pair: index 2 has to be the first routable address. */
static void gid_add_link_local(const struct identity_host *host, struct emu_identity *id,
			       const struct emu_identity_gid *netdev)
{
	uint8_t gid[16];

	if (!host->node)
		gid_add_addresses(id, host->addresses, AF_INET6, true, netdev);
	if (id->gid_count > 2)
		id->gid_count = 2;
	if (id->gid_count)
		return;
	link_local_of_mac(id->mac, gid);
	gid_add_pair(id, gid, netdev);
}

static void gid_fill_roce(const struct identity_host *host, bool is_reachable,
			  struct emu_identity *id, const struct emu_identity_gid *netdev)
{
	uint8_t gid[16];

	gid_add_link_local(host, id, netdev);
	memcpy(gid, ipv4_prefix, sizeof ipv4_prefix);
	if (host->node) {
		memcpy(gid + 12, (const uint8_t[4]){ 10, 86, 0, (uint8_t)host->node }, 4);
		gid_add_pair(id, gid, netdev);
	} else if (is_reachable) {
		gid_add_addresses(id, host->addresses, AF_INET, false, netdev);
		gid_add_addresses(id, host->addresses, AF_INET6, false, netdev);
	} else {
		memcpy(gid + 12, (const uint8_t[4]){ 127, 0, 0, 1 }, 4);
		gid_add_pair(id, gid, netdev);
	}
}

static void gid_fill_infiniband(struct emu_identity *id)
{
	const struct emu_identity_gid no_netdev = { .netdev_ifindex = 0 };
	uint8_t gid[16] = { 0xfe, 0x80 };

	for (unsigned i = 0; i < 8; i++)
		gid[8 + i] = (uint8_t)(id->node_guid >> (56 - 8 * i));
	gid_add(id, gid, GID_IB, &no_netdev);
}

/*
 * A block of LIDs for each node, as a subnet manager hands them out that wants to be free to set
 * any LMC later: a port's LIDs are never another's.  Block 0 is the subnet manager's.  A host that
 * has no number takes one of the blocks that are left over; above the last are multicast LIDs.
 */
#define LID_BLOCK	(1u << PORT_LMC_MAX)
#define LID_BLOCKS	(0xc000u / LID_BLOCK)

static uint16_t lid_of(unsigned node, uint64_t guid)
{
	uint64_t mixed = guid * 0x9e3779b97f4a7c15u;
	unsigned first = IDENTITY_NODE_MAX + 1;
	unsigned block = node ? node : first + (unsigned)((mixed >> 32) % (LID_BLOCKS - first));

	return (uint16_t)(block * LID_BLOCK);
}

static void port_fill(const struct identity_host *host, struct emu_identity *id)
{
	id->port = (struct emu_identity_port){ .pkey = { PORT_PKEY_DEFAULT } };
	if (id->profile->link != HW_LINK_INFINIBAND)
		return;
	id->port.lid = lid_of(host->node, id->node_guid);
	id->port.sm_lid = PORT_SM_LID_DEFAULT;
}

void identity_fill(const struct identity_host *host, struct emu_identity *out)
{
	struct netdev chosen = netdev_choose(host->addresses);
	const struct sockaddr_ll *link = link_of(host->addresses, chosen.name);
	struct emu_identity_gid netdev = { .netdev_ifindex = 0 };

	if (chosen.name) {
		strncpy(netdev.netdev, chosen.name, sizeof netdev.netdev - 1);
		netdev.netdev_ifindex = link ? (uint32_t)link->sll_ifindex
					     : if_nametoindex(chosen.name);
	}
	mac_fill(host, link, out->mac);
	out->node_guid = guid_of(out->mac);
	out->gid_count = 0;
	port_fill(host, out);
	if (out->profile->link == HW_LINK_INFINIBAND)
		gid_fill_infiniband(out);
	else
		gid_fill_roce(host, chosen.rank > 0, out, &netdev);
}

/* --- what was changed from outside --- */

static bool is_empty(const struct emu_identity *id, unsigned index)
{
	static const uint8_t none[16];

	return index >= id->gid_count || !memcmp(id->gid[index].raw, none, sizeof none);
}

static void gid_remove(struct emu_identity *id, const uint8_t gid[16])
{
	for (unsigned i = 0; i < id->gid_count; i++)
		if (!memcmp(id->gid[i].raw, gid, 16))
			id->gid[i] = (struct emu_identity_gid){ .type = GID_IB };
	while (id->gid_count && is_empty(id, id->gid_count - 1))
		id->gid_count--;
}

/* Where @count entries in a row are free, at a multiple of @count; the table's end: nowhere. */
static unsigned gid_place(const struct emu_identity *id, unsigned count)
{
	unsigned end = sizeof id->gid / sizeof *id->gid, at = 0;

	if (id->profile->gid_table && id->profile->gid_table < end)
		end = id->profile->gid_table;
	for (; at + count <= end; at += count)
		if (is_empty(id, at) && is_empty(id, at + count - 1))
			return at;
	return sizeof id->gid / sizeof *id->gid;
}

static void gid_insert(struct emu_identity *id, const uint8_t gid[16],
		       const struct emu_identity_gid *netdev)
{
	bool is_infiniband = id->profile->link == HW_LINK_INFINIBAND;
	unsigned at = gid_place(id, is_infiniband ? 1 : 2), count = id->gid_count;

	if (at == sizeof id->gid / sizeof *id->gid || gid_is_known(id, gid))
		return;
	id->gid_count = at;
	if (is_infiniband)
		gid_add(id, gid, GID_IB, netdev);
	else
		gid_add_pair(id, gid, netdev);
	if (id->gid_count < count)
		id->gid_count = count;
}

void identity_set_port(struct emu_identity *id, const struct fabric_port *set)
{
	const struct emu_identity_gid netdev = id->gid[0];

	id->port.is_down = set->is_down;
	for (uint32_t i = 0; i < set->gid_change_count && i < FABRIC_GID_CHANGES_MAX; i++) {
		if (set->gid_change[i].is_removal)
			gid_remove(id, set->gid_change[i].gid);
		else
			gid_insert(id, set->gid_change[i].gid, &netdev);
	}
	if (id->profile->link != HW_LINK_INFINIBAND)
		return;
	if (set->lid)
		id->port.lid = set->lid;
	id->port.lmc = (uint8_t)set->lmc;
	if (set->sm_lid)
		id->port.sm_lid = set->sm_lid;
	memcpy(id->port.pkey, set->pkey, sizeof id->port.pkey);
}

int identity_node_parse(const char *text, unsigned *out)
{
	unsigned long value;
	char *end;

	if (!text || !*text) {
		*out = 0;
		return 0;
	}
	errno = 0;
	value = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || errno || !value || value > IDENTITY_NODE_MAX)
		return -EINVAL;
	*out = (unsigned)value;
	return 0;
}
