/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paths; see path.h.
 */
#include <errno.h>
#include <string.h>
#include "emu/obj/path.h"
#include "hw-models/ib_packet.h"

#define PORT_COUNT	1

enum { GID_ROCE_V1 = 1 };	/* enum ib_uverbs_gid_type */

static bool is_zero(const uint8_t gid[16])
{
	static const uint8_t zero[16];

	return !memcmp(gid, zero, sizeof zero);
}

static bool is_link_local(const uint8_t gid[16])
{
	return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

static int sgid_check(const struct emu_dev *dev, uint8_t index)
{
	if (index >= dev->profile->gid_table)
		return -EINVAL;
	return index < dev->gid_count && !is_zero(dev->gid[index].raw) ? 0 : -ENODATA;
}

/* Are there routes from one to the other?  Groups and, in version 1, neighbours need none. */
static bool has_route(const struct emu_gid *from, const uint8_t dgid[16])
{
	return ib_is_multicast(dgid) || (from->type == GID_ROCE_V1 && is_link_local(dgid)) ||
	       ib_is_ipv4(from->raw) == ib_is_ipv4(dgid);
}

int path_source_check(const struct emu_dev *dev, const struct qp_path *path)
{
	if (path->port < 1 || path->port > PORT_COUNT)
		return -EINVAL;
	if (!path->is_global)
		return dev->profile->link == HW_LINK_ETHERNET ? -EINVAL : 0;
	return sgid_check(dev, path->sgid_index);
}

int path_check(const struct emu_dev *dev, const struct qp_path *path)
{
	bool is_roce = dev->profile->link == HW_LINK_ETHERNET;
	int rc = path_source_check(dev, path);

	if (rc || !path->is_global)
		return rc;
	if (is_zero(path->dgid) || (is_roce && !has_route(&dev->gid[path->sgid_index], path->dgid)))
		return -EINVAL;
	return 0;
}

/* --- destination MACs --- */

static bool mac_of_group(const uint8_t gid[16], uint8_t mac[6])
{
	const uint8_t ipv4[6] = { 0x01, 0x00, 0x5e, gid[13] & 0x7f, gid[14], gid[15] };
	const uint8_t ipv6[6] = { 0x33, 0x33, gid[12], gid[13], gid[14], gid[15] };

	if (!ib_is_multicast(gid))
		return false;
	memcpy(mac, ib_is_ipv4(gid) ? ipv4 : ipv6, 6);
	return true;
}

static bool mac_of_own(const struct emu_dev *dev, const uint8_t gid[16], uint8_t mac[6])
{
	for (unsigned i = 0; i < dev->gid_count; i++) {
		if (memcmp(dev->gid[i].raw, gid, 16))
			continue;
		memcpy(mac, dev->mac, 6);
		return true;
	}
	return false;
}

static bool mac_of_link_local(const uint8_t gid[16], uint8_t mac[6])
{
	bool is_eui64 = gid[11] == 0xff && gid[12] == 0xfe;
	const uint8_t made[6] = {
		gid[8] ^ (is_eui64 ? 2 : 0), gid[9], gid[10], gid[13], gid[14], gid[15],
	};

	if (!is_link_local(gid))
		return false;
	memcpy(mac, made, 6);
	return true;
}

/* Hosts of VERBENA_NODE have the MAC and the IPv4 address that emu/identity.c gives them; other
 * addresses get one that is locally administered and no host's. */
static void mac_of_host(const uint8_t gid[16], uint8_t mac[6])
{
	const uint8_t node[6] = { 0x02, 'V', 'B', 0, 0, gid[15] };
	const uint8_t other[6] = { 0x06, 'V', gid[12], gid[13], gid[14], gid[15] };
	bool is_node = ib_is_ipv4(gid) && gid[12] == 10 && gid[13] == 86 && gid[14] == 0;

	memcpy(mac, is_node ? node : other, 6);
}

void path_mac(const struct emu_dev *dev, const uint8_t dgid[16], uint8_t mac[6])
{
	if (!mac_of_group(dgid, mac) && !mac_of_own(dev, dgid, mac) &&
	    !mac_of_link_local(dgid, mac))
		mac_of_host(dgid, mac);
}
