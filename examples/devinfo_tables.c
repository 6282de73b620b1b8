/* SPDX-License-Identifier: BSD-2-Clause */
/* What ibv_devinfo prints, in its order; see devinfo.h. */
#include <inttypes.h>
#include <stdio.h>

#include "examples/devinfo.h"

#define MEMBER(type, member) offsetof(type, member), sizeof(((type *)NULL)->member)
#define DEVICE(member) MEMBER(struct ibv_device_attr, member)
#define EXTENDED(member) MEMBER(struct ibv_device_attr_ex, member)
#define PORT(member) MEMBER(struct ibv_port_attr, member)

/* A line that is called as the member is. */
#define DECIMAL(of, member) { #member, write_number, of(member), "%" PRIu64, NULL }
#define HEX(of, member, format) { #member, write_number, of(member), "0x%" format, NULL }
#define NAMED(of, member) { #member, write_named, of(member), NULL, member##_names }
#define END { NULL, NULL, 0, 0, NULL, NULL }

#define BIT(prefix, bit) { prefix##bit, #bit }

/* --- names --------------------------------------------------------------- */

static const struct name transport_type_names[] = {
	{ (uint32_t)IBV_TRANSPORT_UNKNOWN, "invalid transport" },
	{ IBV_TRANSPORT_IB, "InfiniBand" },
	{ IBV_TRANSPORT_IWARP, "iWARP" },
	{ IBV_TRANSPORT_USNIC, "usNIC" },
	{ IBV_TRANSPORT_USNIC_UDP, "usNIC UDP" },
	{ IBV_TRANSPORT_UNSPECIFIED, "unspecified" },
	{ UINT64_MAX, "invalid transport" },
	{ 0, NULL },
};

static const struct name atomic_cap_names[] = {
	{ IBV_ATOMIC_NONE, "ATOMIC_NONE" },
	{ IBV_ATOMIC_HCA, "ATOMIC_HCA" },
	{ IBV_ATOMIC_GLOB, "ATOMIC_GLOB" },
	{ UINT64_MAX, "invalid atomic capability" },
	{ 0, NULL },
};

static const struct name state_names[] = {
	{ IBV_PORT_DOWN, "PORT_DOWN" },
	{ IBV_PORT_INIT, "PORT_INIT" },
	{ IBV_PORT_ARMED, "PORT_ARMED" },
	{ IBV_PORT_ACTIVE, "PORT_ACTIVE" },
	{ UINT64_MAX, "invalid state" },
	{ 0, NULL },
};

static const struct name mtu_names[] = {
	{ IBV_MTU_256, "256" },
	{ IBV_MTU_512, "512" },
	{ IBV_MTU_1024, "1024" },
	{ IBV_MTU_2048, "2048" },
	{ IBV_MTU_4096, "4096" },
	{ UINT64_MAX, "invalid MTU" },
	{ 0, NULL },
};
#define max_mtu_names mtu_names
#define active_mtu_names mtu_names

static const struct name link_layer_names[] = {
	{ IBV_LINK_LAYER_UNSPECIFIED, "Unspecified" },
	{ IBV_LINK_LAYER_INFINIBAND, "InfiniBand" },
	{ IBV_LINK_LAYER_ETHERNET, "Ethernet" },
	{ UINT64_MAX, "Unknown" },
	{ 0, NULL },
};

static const struct name max_vl_num_names[] = {
	{ 1, "1" },
	{ 2, "2" },
	{ 3, "4" },
	{ 4, "8" },
	{ 5, "15" },
	{ UINT64_MAX, "invalid value" },
	{ 0, NULL },
};

static const struct name active_width_names[] = {
	{ 1, "1X" },
	{ 2, "4X" },
	{ 4, "8X" },
	{ 8, "12X" },
	{ 16, "2X" },
	{ UINT64_MAX, "invalid widthX" },
	{ 0, NULL },
};

/* Of one lane.  QDR and FDR10 move the same. */
static const struct name active_speed_names[] = {
	{ 1, "2.5 Gbps" },
	{ 2, "5.0 Gbps" },
	{ 4, "10.0 Gbps" },
	{ 8, "10.0 Gbps" },
	{ 16, "14.0 Gbps" },
	{ 32, "25.0 Gbps" },
	{ 64, "50.0 Gbps" },
	{ 128, "100.0 Gbps" },
	{ UINT64_MAX, "invalid speed" },
	{ 0, NULL },
};

static const struct name phys_state_names[] = {
	{ 1, "SLEEP" },
	{ 2, "POLLING" },
	{ 3, "DISABLED" },
	{ 4, "PORT_CONFIGURATION TRAINING" },
	{ 5, "LINK_UP" },
	{ 6, "LINK_ERROR_RECOVERY" },
	{ 7, "PHY TEST" },
	{ UINT64_MAX, "invalid physical state" },
	{ 0, NULL },
};

static const struct name device_cap_bits[] = {
	BIT(IBV_DEVICE_, RESIZE_MAX_WR),
	BIT(IBV_DEVICE_, BAD_PKEY_CNTR),
	BIT(IBV_DEVICE_, BAD_QKEY_CNTR),
	BIT(IBV_DEVICE_, RAW_MULTI),
	BIT(IBV_DEVICE_, AUTO_PATH_MIG),
	BIT(IBV_DEVICE_, CHANGE_PHY_PORT),
	BIT(IBV_DEVICE_, UD_AV_PORT_ENFORCE),
	BIT(IBV_DEVICE_, CURR_QP_STATE_MOD),
	BIT(IBV_DEVICE_, SHUTDOWN_PORT),
	BIT(IBV_DEVICE_, INIT_TYPE),
	BIT(IBV_DEVICE_, PORT_ACTIVE_EVENT),
	BIT(IBV_DEVICE_, SYS_IMAGE_GUID),
	BIT(IBV_DEVICE_, RC_RNR_NAK_GEN),
	BIT(IBV_DEVICE_, SRQ_RESIZE),
	BIT(IBV_DEVICE_, N_NOTIFY_CQ),
	BIT(IBV_DEVICE_, MEM_WINDOW),
	BIT(IBV_DEVICE_, UD_IP_CSUM),
	BIT(IBV_DEVICE_, XRC),
	BIT(IBV_DEVICE_, MEM_MGT_EXTENSIONS),
	BIT(IBV_DEVICE_, MEM_WINDOW_TYPE_2A),
	BIT(IBV_DEVICE_, MEM_WINDOW_TYPE_2B),
	BIT(IBV_DEVICE_, RC_IP_CSUM),
	BIT(IBV_DEVICE_, RAW_IP_CSUM),
	BIT(IBV_DEVICE_, MANAGED_FLOW_STEERING),
	{ 0, NULL },
};

static const struct name device_cap_ex_bits[] = {
	BIT(IBV_DEVICE_, RAW_SCATTER_FCS),
	BIT(IBV_DEVICE_, PCI_WRITE_END_PADDING),
	{ 0, NULL },
};

static const struct name odp_bits[] = {
	BIT(IBV_, ODP_SUPPORT),
	BIT(IBV_, ODP_SUPPORT_IMPLICIT),
	{ 0, NULL },
};

static const struct name odp_transport_bits[] = {
	BIT(IBV_ODP_, SUPPORT_SEND),
	BIT(IBV_ODP_, SUPPORT_RECV),
	BIT(IBV_ODP_, SUPPORT_WRITE),
	BIT(IBV_ODP_, SUPPORT_READ),
	BIT(IBV_ODP_, SUPPORT_ATOMIC),
	{ IBV_ODP_SUPPORT_SRQ_RECV, "SUPPORT_SRQ" },
	{ 0, NULL },
};

static const struct name qp_type_bits[] = {
	{ 1 << IBV_QPT_RAW_PACKET, "SUPPORT_RAW_PACKET" },
	{ 1 << IBV_QPT_UD, "SUPPORT_UD" },
	{ 0, NULL },
};

static const struct name raw_packet_bits[] = {
	{ IBV_RAW_PACKET_CAP_CVLAN_STRIPPING, "C-VLAN stripping offload" },
	{ IBV_RAW_PACKET_CAP_SCATTER_FCS, "Scatter FCS offload" },
	{ IBV_RAW_PACKET_CAP_IP_CSUM, "IP csum offload" },
	{ IBV_RAW_PACKET_CAP_DELAY_DROP, "Delay drop" },
	{ 0, NULL },
};

static const struct name tag_matching_bits[] = {
	BIT(, IBV_TM_CAP_RC),
	{ 0, NULL },
};

/* --- a device ------------------------------------------------------------ */

static const struct line transport_lines[] = {
	{ "transport", write_named, MEMBER(struct ibv_device, transport_type), NULL,
	  transport_type_names },
	END,
};

static const struct line firmware_lines[] = {
	{ "fw_ver", write_text, DEVICE(fw_ver), NULL, NULL },
	END,
};

static const struct line identity_lines[] = {
	{ "node_guid", write_guid, DEVICE(node_guid), NULL, NULL },
	{ "sys_image_guid", write_guid, DEVICE(sys_image_guid), NULL, NULL },
	HEX(DEVICE, vendor_id, "04" PRIx64),
	DECIMAL(DEVICE, vendor_part_id),
	HEX(DEVICE, hw_ver, PRIX64),
	END,
};

void print_identity(const struct ibv_device *device, const struct ibv_device_attr_ex *attr)
{
	printf("hca_id:\t%s\n", ibv_get_device_name((struct ibv_device *)device));
	lines_print(1, transport_lines, device);
	if (attr->orig_attr.fw_ver[0])
		lines_print(1, firmware_lines, &attr->orig_attr);
	lines_print(1, identity_lines, &attr->orig_attr);
}

static const struct line limit_lines[] = {
	HEX(DEVICE, max_mr_size, PRIx64),
	HEX(DEVICE, page_size_cap, PRIx64),
	DECIMAL(DEVICE, max_qp),
	DECIMAL(DEVICE, max_qp_wr),
	{ "device_cap_flags", write_bits, DEVICE(device_cap_flags), "0x%08" PRIx64,
	  device_cap_bits },
	DECIMAL(DEVICE, max_sge),
	DECIMAL(DEVICE, max_sge_rd),
	DECIMAL(DEVICE, max_cq),
	DECIMAL(DEVICE, max_cqe),
	DECIMAL(DEVICE, max_mr),
	DECIMAL(DEVICE, max_pd),
	DECIMAL(DEVICE, max_qp_rd_atom),
	DECIMAL(DEVICE, max_ee_rd_atom),
	DECIMAL(DEVICE, max_res_rd_atom),
	DECIMAL(DEVICE, max_qp_init_rd_atom),
	DECIMAL(DEVICE, max_ee_init_rd_atom),
	NAMED(DEVICE, atomic_cap),
	DECIMAL(DEVICE, max_ee),
	DECIMAL(DEVICE, max_rdd),
	DECIMAL(DEVICE, max_mw),
	DECIMAL(DEVICE, max_raw_ipv6_qp),
	DECIMAL(DEVICE, max_raw_ethy_qp),
	DECIMAL(DEVICE, max_mcast_grp),
	DECIMAL(DEVICE, max_mcast_qp_attach),
	DECIMAL(DEVICE, max_total_mcast_qp_attach),
	DECIMAL(DEVICE, max_ah),
	DECIMAL(DEVICE, max_fmr),
	END,
};

static const struct line fmr_lines[] = { DECIMAL(DEVICE, max_map_per_fmr), END };

static const struct line srq_count_lines[] = { DECIMAL(DEVICE, max_srq), END };

static const struct line srq_lines[] = {
	DECIMAL(DEVICE, max_srq_wr),
	DECIMAL(DEVICE, max_srq_sge),
	END,
};

static const struct line more_limit_lines[] = {
	DECIMAL(DEVICE, max_pkeys),
	DECIMAL(DEVICE, local_ca_ack_delay),
	END,
};

static void print_limits(const struct ibv_device_attr *attr)
{
	lines_print(1, limit_lines, attr);
	if (attr->max_fmr)
		lines_print(1, fmr_lines, attr);
	lines_print(1, srq_count_lines, attr);
	if (attr->max_srq)
		lines_print(1, srq_lines, attr);
	lines_print(1, more_limit_lines, attr);
}

static void print_odp_of(const char *transport, uint32_t bits)
{
	printf("\t%s_odp_caps:\n", transport);
	if (bits)
		bits_print(odp_transport_bits, bits);
	else
		printf("\t\t\t\t\tNO SUPPORT\n");
}

static void print_odp(const struct ibv_device_attr_ex *attr)
{
	const struct ibv_odp_caps *odp = &attr->odp_caps;

	printf("\tgeneral_odp_caps:\n");
	bits_print(odp_bits, odp->general_caps);
	print_odp_of("rc", odp->per_transport_caps.rc_odp_caps);
	print_odp_of("uc", odp->per_transport_caps.uc_odp_caps);
	print_odp_of("ud", odp->per_transport_caps.ud_odp_caps);
	print_odp_of("xrc", attr->xrc_odp_caps);
}

static const struct line timestamp_lines[] = {
	{ "completion timestamp_mask", write_number, EXTENDED(completion_timestamp_mask),
	  "0x%016" PRIx64, NULL },
	END,
};

static const struct line clock_lines[] = {
	{ "hca_core_clock", write_number, EXTENDED(hca_core_clock), "%" PRIu64 "kHZ", NULL },
	END,
};

static void print_clock(const struct ibv_device_attr_ex *attr)
{
	if (attr->completion_timestamp_mask)
		lines_print(1, timestamp_lines, attr);
	else
		printf("\tcompletion_timestamp_mask not supported\n");
	if (attr->hca_core_clock)
		lines_print(1, clock_lines, attr);
	else
		printf("\tcore clock not supported\n");
}

static const struct line extended_flag_lines[] = {
	{ "device_cap_flags_ex", write_high_bits, EXTENDED(device_cap_flags_ex), "0x%" PRIX64,
	  device_cap_ex_bits },
	END,
};

static const struct line tso_lines[] = {
	{ "max_tso", write_number, EXTENDED(tso_caps.max_tso), "%" PRIu64, NULL },
	END,
};

#define RSS(member) MEMBER(struct ibv_rss_caps, member)

static const struct line rss_lines[] = {
	DECIMAL(RSS, max_rwq_indirection_tables),
	DECIMAL(RSS, max_rwq_indirection_table_size),
	HEX(RSS, rx_hash_function, PRIx64),
	HEX(RSS, rx_hash_fields_mask, PRIX64),
	END,
};

static const struct line wq_lines[] = { DECIMAL(EXTENDED, max_wq_type_rq), END };

static void print_qp_types(uint32_t types)
{
	printf("\t\tsupported_qp:\n");
	bits_print(qp_type_bits, types);
}

static void print_offloads(const struct ibv_device_attr_ex *attr)
{
	lines_print(1, extended_flag_lines, attr);
	printf("\ttso_caps:\n");
	lines_print(2, tso_lines, attr);
	if (attr->tso_caps.max_tso)
		print_qp_types(attr->tso_caps.supported_qpts);
	printf("\trss_caps:\n");
	lines_print(2, rss_lines, &attr->rss_caps);
	if (attr->rss_caps.supported_qpts)
		print_qp_types(attr->rss_caps.supported_qpts);
	lines_print(1, wq_lines, attr);
}

#define PACING(member) MEMBER(struct ibv_packet_pacing_caps, member)

static const struct line pacing_lines[] = {
	{ "qp_rate_limit_min", write_number, PACING(qp_rate_limit_min), "%" PRIu64 "kbps", NULL },
	{ "qp_rate_limit_max", write_number, PACING(qp_rate_limit_max), "%" PRIu64 "kbps", NULL },
	END,
};

#define TAG(member) MEMBER(struct ibv_tm_caps, member)

static const struct line tag_matching_lines[] = {
	DECIMAL(TAG, max_rndv_hdr_size),
	DECIMAL(TAG, max_num_tags),
	DECIMAL(TAG, max_ops),
	DECIMAL(TAG, max_sge),
	END,
};

#define MODERATION(member) MEMBER(struct ibv_cq_moderation_caps, member)

static const struct line moderation_lines[] = {
	DECIMAL(MODERATION, max_cq_count),
	{ "max_cq_period", write_number, MODERATION(max_cq_period), "%" PRIu64 " us", NULL },
	END,
};

static void print_queue_features(const struct ibv_device_attr_ex *attr)
{
	printf("\tpacket_pacing_caps:\n");
	lines_print(2, pacing_lines, &attr->packet_pacing_caps);
	if (attr->packet_pacing_caps.qp_rate_limit_max)
		print_qp_types(attr->packet_pacing_caps.supported_qpts);
	if (attr->tm_caps.max_num_tags) {
		lines_print(1, tag_matching_lines, &attr->tm_caps);
		printf("\tflags:\n");
		bits_print(tag_matching_bits, attr->tm_caps.flags);
	} else {
		printf("\ttag matching not supported\n");
	}
	if (attr->cq_mod_caps.max_cq_count && attr->cq_mod_caps.max_cq_period) {
		printf("\n\tcq moderation caps:\n");
		lines_print(2, moderation_lines, &attr->cq_mod_caps);
		printf("\n");
	}
}

void print_capabilities(const struct ibv_device_attr_ex *attr)
{
	print_limits(&attr->orig_attr);
	print_odp(attr);
	print_clock(attr);
	if (attr->raw_packet_caps) {
		printf("\traw packet caps:\n");
		bits_print(raw_packet_bits, attr->raw_packet_caps);
	}
	print_offloads(attr);
	print_queue_features(attr);
	if (attr->max_dm_size) {
		label_print(1, "maximum available device memory");
		printf("%" PRIu64 "Bytes\n\n", attr->max_dm_size);
	}
}

/* --- a port -------------------------------------------------------------- */

static const struct line port_lines[] = {
	NAMED(PORT, state),
	NAMED(PORT, max_mtu),
	NAMED(PORT, active_mtu),
	DECIMAL(PORT, sm_lid),
	{ "port_lid", write_number, PORT(lid), "%" PRIu64, NULL },
	{ "port_lmc", write_number, PORT(lmc), "0x%02" PRIx64, NULL },
	END,
};

static const struct line port_detail_lines[] = {
	HEX(PORT, max_msg_sz, PRIx64),
	HEX(PORT, port_cap_flags, "08" PRIx64),
	HEX(PORT, port_cap_flags2, "04" PRIx64),
	NAMED(PORT, max_vl_num),
	HEX(PORT, bad_pkey_cntr, PRIx64),
	HEX(PORT, qkey_viol_cntr, PRIx64),
	DECIMAL(PORT, sm_sl),
	DECIMAL(PORT, pkey_tbl_len),
	DECIMAL(PORT, gid_tbl_len),
	DECIMAL(PORT, subnet_timeout),
	DECIMAL(PORT, init_type_reply),
	NAMED(PORT, active_width),
	NAMED(PORT, active_speed),
	END,
};

static const struct line physical_lines[] = { NAMED(PORT, phys_state), END };

/* The link layer is the one value that has a name and is printed without its number. */
static void print_link_layer(uint8_t link_layer)
{
	const struct name *name = link_layer_names;

	while (name->value != link_layer && name[1].text)
		name++;
	label_print(3, "link_layer");
	printf("%s\n", name->text);
}

void print_port_state(const struct ibv_port_attr *attr)
{
	lines_print(3, port_lines, attr);
	print_link_layer(attr->link_layer);
}

void print_port_details(const struct ibv_port_attr *attr, bool has_physical_state)
{
	lines_print(3, port_detail_lines, attr);
	if (has_physical_state)
		lines_print(3, physical_lines, attr);
}
