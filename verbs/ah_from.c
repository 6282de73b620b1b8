/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses found out from something else: the way back from a received datagram, and the MAC
 * address behind a GID.
 *
 * In front of a datagram's data are 40 bytes for its global header.  RoCE v2 over IPv4 has only 20
 * of them, which lie at the end, and what is in front of them may be anything.
 *
 * Source: inventory AH-3, AH-5, AH-6.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <linux/if_vlan.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "verbs/ah.h"
#include "verbs/context.h"
#include "verbs/foreign.h"
#include "verbs/ops.h"

#define IPV4_OFFSET	20u	/* in the 40 bytes */
#define NEXT_IS_IB	0x1b	/* RoCE v1 and InfiniBand; v2 has UDP there */

/* --- from a completion --- */

static int find_gid(struct ibv_context *context, uint8_t port, const union ibv_gid *gid,
		    bool is_v2)
{
	struct ibv_gid_entry entry;

	/* An empty entry is no end. */
	for (uint32_t i = 0; i <= UINT8_MAX; i++) {
		if (ibv_query_gid_ex(context, port, i, &entry, 0)) {
			if (errno != ENODATA)
				return -1;
			continue;
		}
		if (!memcmp(&entry.gid, gid, sizeof *gid) &&
		    (entry.gid_type == IBV_GID_TYPE_ROCE_V2) == is_v2)
			return (int)i;
	}
	errno = ENOENT;
	return -1;
}

static uint16_t header_sum(const struct iphdr *ip)
{
	uint32_t sum = 0;
	uint16_t half[10];

	memcpy(half, ip, sizeof half);
	for (unsigned i = 0; i < 10; i++)
		sum += half[i];
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)(sum + (sum >> 16));
}

/* The first word decides unless it only looks like IPv6 by chance. */
static bool is_ipv4(const struct ibv_grh *grh, const struct iphdr *ip)
{
	bool says_ipv6 = be32toh(grh->version_tclass_flow) >> 28 == 6;

	if (ip->version != 4)
		return false;
	return !says_ipv6 || (ip->ihl == 5 && header_sum(ip) == 0xffff);
}

static union ibv_gid mapped_gid(uint32_t address)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff } };

	memcpy(gid.raw + 12, &address, sizeof address);
	return gid;
}

static int back_over_ipv4(struct ibv_context *context, const struct iphdr *ip,
			  struct ibv_ah_attr *attr)
{
	union ibv_gid own = mapped_gid(ip->daddr);
	int index;

	if (IN_MULTICAST(ntohl(ip->daddr)))
		return vb_fail(EINVAL);
	index = find_gid(context, attr->port_num, &own, true);
	if (index < 0)
		return -1;
	attr->grh.dgid = mapped_gid(ip->saddr);
	attr->grh.sgid_index = (uint8_t)index;
	attr->grh.hop_limit = ip->ttl;
	attr->grh.traffic_class = ip->tos;
	return 0;
}

static int back_over_ipv6(struct ibv_context *context, const struct ibv_grh *grh,
			  struct ibv_ah_attr *attr)
{
	uint32_t word = be32toh(grh->version_tclass_flow);
	int index;

	if (grh->dgid.raw[0] == 0xff)
		return vb_fail(EINVAL);
	if (grh->next_hdr != IPPROTO_UDP && grh->next_hdr != NEXT_IS_IB)
		return vb_fail(EPROTONOSUPPORT);
	index = find_gid(context, attr->port_num, &grh->dgid, grh->next_hdr == IPPROTO_UDP);
	if (index < 0)
		return -1;
	attr->grh.dgid = grh->sgid;
	attr->grh.sgid_index = (uint8_t)index;
	attr->grh.hop_limit = grh->hop_limit;
	attr->grh.traffic_class = (uint8_t)(word >> 20);
	attr->grh.flow_label = word & IB_GRH_FLOWLABEL_MASK;
	return 0;
}

static int back(struct ibv_context *context, const struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	struct iphdr ip;

	memcpy(&ip, (const uint8_t *)grh + IPV4_OFFSET, sizeof ip);
	if (is_ipv4(grh, &ip))
		return back_over_ipv4(context, &ip, attr);
	if (be32toh(grh->version_tclass_flow) >> 28 == 6)
		return back_over_ipv6(context, grh, attr);
	return vb_fail(EPROTONOSUPPORT);
}

VB_EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
				  struct ibv_grh *grh, struct ibv_ah_attr *ah_attr)
{
	struct ibv_grh copy;

	if (!vb_is_ours(context))
		return FOREIGN(ibv_init_ah_from_wc, context, port_num, wc, grh, ah_attr);
	*ah_attr = (struct ibv_ah_attr){
		.dlid = wc->slid, .sl = wc->sl, .src_path_bits = wc->dlid_path_bits,
		.port_num = port_num, .is_global = (wc->wc_flags & IBV_WC_GRH) != 0,
	};
	if (!ah_attr->is_global)
		return 0;
	/* It lies in a receive buffer, at any address. */
	memcpy(&copy, grh, sizeof copy);
	return back(context, &copy, ah_attr) ? -1 : 0;
}

VB_EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
					       struct ibv_grh *grh, uint8_t port_num)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}

/* --- from a GID --- */

#define NO_VLAN	0xffff

static uint16_t vlan_of(uint32_t interface)
{
	struct vlan_ioctl_args ask = { .cmd = GET_VLAN_VID_CMD };
	char name[IF_NAMESIZE];
	uint16_t vlan = NO_VLAN;
	int fd;

	if (!interface || !if_indextoname(interface, name))
		return NO_VLAN;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return NO_VLAN;
	memcpy(ask.device1, name, sizeof name);
	if (!ioctl(fd, SIOCGIFVLAN, &ask))
		vlan = (uint16_t)ask.u.VID;
	close(fd);
	return vlan;
}

VB_EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
					  uint8_t eth_mac[6], uint16_t *vid)
{
	struct ibv_gid_entry entry;
	struct ibv_pd *pd;
	int error;

	if (!vb_is_ours(context))
		return FOREIGN(ibv_resolve_eth_l2_from_gid, context, attr, eth_mac, vid);
	if (ibv_query_gid_ex(context, attr->port_num, attr->grh.sgid_index, &entry, 0))
		return -1;
	pd = ibv_alloc_pd(context);
	if (!pd)
		return -errno;
	error = vb_ask_mac(pd, attr, eth_mac);
	ibv_dealloc_pd(pd);
	if (!error && vid)
		*vid = vlan_of(entry.ndev_ifindex);
	return -error;
}
