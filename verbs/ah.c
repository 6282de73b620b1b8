/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address handles.
 *
 * On Ethernet the device is asked, because the kernel knows which MAC address a GID has; on
 * InfiniBand the address vector is all there is.
 *
 * Source: device-abi B.9, C.3.6; inventory 1.23.
 */
#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "verbs/ah.h"
#include "verbs/cmd.h"
#include "verbs/context.h"
#include "verbs/foreign.h"
#include "verbs/ops.h"

/* What the hardware calls a rate; 0 does not limit.  Where it has none the next higher is taken. */
static const uint8_t hardware_rates[] = {
	[IBV_RATE_2_5_GBPS] = 7, [IBV_RATE_10_GBPS] = 8, [IBV_RATE_30_GBPS] = 9,
	[IBV_RATE_5_GBPS] = 10, [IBV_RATE_20_GBPS] = 11, [IBV_RATE_40_GBPS] = 12,
	[IBV_RATE_60_GBPS] = 13, [IBV_RATE_80_GBPS] = 14, [IBV_RATE_120_GBPS] = 15,
	[IBV_RATE_14_GBPS] = 11, [IBV_RATE_56_GBPS] = 13, [IBV_RATE_112_GBPS] = 15,
	[IBV_RATE_25_GBPS] = 9, [IBV_RATE_100_GBPS] = 15, [IBV_RATE_28_GBPS] = 9,
	[IBV_RATE_50_GBPS] = 13,
};

static uint8_t hardware_rate(uint8_t rate)
{
	return rate < sizeof hardware_rates ? hardware_rates[rate] : 0;
}

static uint64_t load_be64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof value);
	return be64toh(value);
}

static void av_set_global(struct mlx5_datagram *av, const struct ibv_global_route *grh)
{
	mlx5_datagram_set_tclass(av, grh->traffic_class);
	mlx5_datagram_set_hop_limit(av, grh->hop_limit);
	mlx5_datagram_set_sgid_index(av, grh->sgid_index);
	mlx5_datagram_set_flow_label(av, grh->flow_label & IB_GRH_FLOWLABEL_MASK);
	mlx5_datagram_set_rgid_high(av, load_be64(grh->dgid.raw));
	mlx5_datagram_set_rgid_low(av, load_be64(grh->dgid.raw + 8));
}

static void av_set_infiniband(struct mlx5_datagram *av, const struct ibv_ah_attr *attr)
{
	mlx5_datagram_set_path_bits(av, attr->src_path_bits & 0x7f);
	mlx5_datagram_set_udp_sport(av, attr->dlid);
	mlx5_datagram_set_sl(av, attr->sl & 0xf);
	mlx5_datagram_set_has_grh(av, attr->is_global != 0);
}

/* Routers spread flows by the source port: a flow without a label is put anywhere. */
static uint16_t udp_source_port(uint32_t flow_label)
{
	uint16_t any = 0;

	if (flow_label & IB_GRH_FLOWLABEL_MASK)
		return ibv_flow_label_to_udp_sport(flow_label);
	if (getrandom(&any, sizeof any, GRND_NONBLOCK) != sizeof any)
		any = 0;
	return any | IB_ROCE_UDP_ENCAP_VALID_PORT_MIN;
}

static int av_set_ethernet(struct mlx5_datagram *av, struct ibv_context *context,
			   const struct ibv_ah_attr *attr)
{
	struct ibv_gid_entry entry;

	if (ibv_query_gid_ex(context, attr->port_num, attr->grh.sgid_index, &entry, 0))
		return errno;
	if (entry.gid_type == IBV_GID_TYPE_ROCE_V2)
		mlx5_datagram_set_udp_sport(av, udp_source_port(attr->grh.flow_label));
	mlx5_datagram_set_sl(av, (attr->sl & 7u) << 1);
	return 0;
}

static struct ib_uverbs_create_ah command_of(const struct ibv_pd *pd, const struct ibv_ah_attr *a)
{
	struct ib_uverbs_create_ah ask = {
		.pd_handle = pd->handle,
		.attr = {
			.dlid = a->dlid, .sl = a->sl, .src_path_bits = a->src_path_bits,
			.static_rate = a->static_rate, .is_global = a->is_global,
			.port_num = a->port_num,
			.grh = {
				.flow_label = a->grh.flow_label, .sgid_index = a->grh.sgid_index,
				.hop_limit = a->grh.hop_limit,
				.traffic_class = a->grh.traffic_class,
			},
		},
	};

	memcpy(ask.attr.grh.dgid, a->grh.dgid.raw, sizeof ask.attr.grh.dgid);
	return ask;
}

/* Makes the device's own handle and learns the peer's MAC address. */
static int ask_device(const struct ibv_pd *pd, const struct ibv_ah_attr *attr,
		      uint32_t *handle_out, uint8_t mac_out[6])
{
	const struct ib_uverbs_create_ah ask = command_of(pd, attr);
	struct ib_uverbs_create_ah_resp answer = { 0 };
	struct mlx5_ib_create_ah_resp driver = { 0 };
	const struct cmd_write w = {
		.command = IB_USER_VERBS_CMD_CREATE_AH,
		.in = &ask, .in_bytes = sizeof ask, .out = &answer, .out_bytes = sizeof answer,
		.driver_out = &driver, .driver_out_bytes = sizeof driver,
	};
	int error = cmd_write(&w, pd->context);

	if (error)
		return error;
	*handle_out = answer.ah_handle;
	memcpy(mac_out, driver.dmac, sizeof driver.dmac);
	return 0;
}

static int forget_at_device(struct ibv_context *context, uint32_t handle)
{
	return cmd_destroy(context, UVERBS_OBJECT_AH, UVERBS_METHOD_AH_DESTROY,
			   UVERBS_ATTR_DESTROY_AH_HANDLE, handle);
}

static int fill_ethernet(struct vb_ah *ah, const struct ibv_ah_attr *attr)
{
	int error = av_set_ethernet(&ah->av, ah->ah.context, attr);
	uint8_t mac[6];

	if (!error)
		error = ask_device(ah->ah.pd, attr, &ah->ah.handle, mac);
	if (error)
		return error;
	ah->is_known = true;
	mlx5_datagram_set_rmac_high(&ah->av, (uint32_t)mac[0] << 24 | (uint32_t)mac[1] << 16 |
				    (uint32_t)mac[2] << 8 | mac[3]);
	mlx5_datagram_set_rmac_low(&ah->av, (uint32_t)mac[4] << 8 | mac[5]);
	return 0;
}

enum { PORT_IS_KNOWN = 1, PORT_IS_ETHERNET = 2, PORT_WANTS_GRH = 4 };

/* What kind of network a port is on does not change: it is asked once. */
static int port_kind(struct ibv_context *context, uint8_t port_num, uint8_t *out)
{
	_Atomic uint8_t *known = &vb_context_of(context)->port_kind[port_num];
	struct ibv_port_attr port;
	int error;

	*out = atomic_load_explicit(known, memory_order_relaxed);
	if (*out)
		return 0;
	error = vb_query_port(context, port_num, &port, sizeof port);
	if (error)
		return error;
	*out = PORT_IS_KNOWN;
	if (port.link_layer == IBV_LINK_LAYER_ETHERNET)
		*out |= PORT_IS_ETHERNET | PORT_WANTS_GRH;
	if (port.flags & IBV_QPF_GRH_REQUIRED)
		*out |= PORT_WANTS_GRH;
	atomic_store_explicit(known, *out, memory_order_relaxed);
	return 0;
}

bool vb_port_is_ethernet(struct ibv_context *context, uint8_t port_num)
{
	uint8_t kind;

	return !port_kind(context, port_num, &kind) && kind & PORT_IS_ETHERNET;
}

static int ah_fill(struct vb_ah *ah, const struct ibv_ah_attr *attr)
{
	uint8_t kind;
	int error = port_kind(ah->ah.context, attr->port_num, &kind);

	if (error)
		return error;
	if (!attr->is_global && kind & PORT_WANTS_GRH)
		return EINVAL;
	mlx5_datagram_set_is_extended(&ah->av, 1);
	mlx5_datagram_set_rate(&ah->av, hardware_rate(attr->static_rate));
	if (attr->is_global)
		av_set_global(&ah->av, &attr->grh);
	if (kind & PORT_IS_ETHERNET)
		return fill_ethernet(ah, attr);
	av_set_infiniband(&ah->av, attr);
	return 0;
}

VB_EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct vb_ah *ah;
	int error;

	if (!vb_is_ours(pd->context))
		return FOREIGN(ibv_create_ah, pd, attr);
	ah = calloc(1, sizeof *ah);
	if (!ah) {
		errno = ENOMEM;
		return NULL;
	}
	ah->ah.context = pd->context;
	ah->ah.pd = pd;
	error = ah_fill(ah, attr);
	if (!error)
		return &ah->ah;
	free(ah);
	errno = error;
	return NULL;
}

VB_EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
	struct vb_ah *own = vb_ah_of(ah);
	int error;

	if (!vb_is_ours(ah->context))
		return FOREIGN(ibv_destroy_ah, ah);
	error = own->is_known ? forget_at_device(ah->context, ah->handle) : 0;
	if (!error)
		free(own);
	return error;
}

int vb_ask_mac(struct ibv_pd *pd, const struct ibv_ah_attr *attr, uint8_t mac_out[6])
{
	uint32_t handle;
	int error = ask_device(pd, attr, &handle, mac_out);

	if (!error)
		forget_at_device(pd->context, handle);
	return error;
}
