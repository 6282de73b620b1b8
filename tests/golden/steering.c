/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which commands are recorded about Ethernet: raw packet queues, work queues and hashing, rules of
 * flow steering, counters, matchers.
 *
 * As in commands.c, what a library refuses is in the record as it is.
 */
#include <errno.h>
#include <string.h>
#include "golden.h"

#define ROWS(table) (sizeof(table) / sizeof *(table))
#define KEY_BYTES 40

/* --- raw packet queues --- */

static void make_raw(struct tools *t, struct ibv_qp_init_attr_ex attr,
		     const struct mlx5dv_qp_init_attr *options)
{
	struct mlx5dv_qp_init_attr dv = { 0 };
	struct ibv_qp *qp;

	attr.qp_type = IBV_QPT_RAW_PACKET;
	attr.pd = t->w->pd;
	attr.comp_mask |= IBV_QP_INIT_ATTR_PD;
	if (!(attr.comp_mask & IBV_QP_INIT_ATTR_RX_HASH))
		attr.send_cq = attr.recv_cq = t->cq;
	if (options)
		dv = *options;
	qp = options ? mlx5dv_create_qp(t->w->context, &attr, &dv) :
	     ibv_create_qp_ex(t->w->context, &attr);
	if (qp)
		ibv_destroy_qp(qp);
}

static void do_raw_sizes(struct tools *t)
{
	static const struct { struct ibv_qp_cap cap; uint16_t header; } rows[] = {
		{ { 1, 1, 1, 1, 0 }, 0 }, { { 33, 100, 3, 4, 100 }, 0 }, { { 0, 10, 0, 1, 0 }, 0 },
		{ { 10, 0, 1, 0, 0 }, 0 }, { { 10, 10, 2, 1, 0 }, 54 },
		{ { 10, 10, 1, 1, 200 }, 80 }, { { 1, 1, 1, 1, 0 }, 944 },
	};

	for (unsigned i = 0; i < ROWS(rows); i++)
		make_raw(t, (struct ibv_qp_init_attr_ex){
			.cap = rows[i].cap, .max_tso_header = rows[i].header,
			.comp_mask = rows[i].header ? IBV_QP_INIT_ATTR_MAX_TSO_HEADER : 0,
		}, NULL);
}

static void do_raw_options(struct tools *t)
{
	static const uint32_t flags[] = {
		IBV_QP_CREATE_SCATTER_FCS, IBV_QP_CREATE_CVLAN_STRIPPING,
		IBV_QP_CREATE_PCI_WRITE_END_PADDING, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB,
	};
	static const uint32_t driver_flags[] = {
		MLX5DV_QP_CREATE_TUNNEL_OFFLOADS, MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC,
		MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_MC,
		MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE,
	};
	const struct ibv_qp_cap cap = { 4, 4, 1, 1, 0 };

	for (unsigned i = 0; i < ROWS(flags); i++)
		make_raw(t, (struct ibv_qp_init_attr_ex){
			.cap = cap, .comp_mask = IBV_QP_INIT_ATTR_CREATE_FLAGS,
			.create_flags = flags[i], .sq_sig_all = 1,
		}, NULL);
	for (unsigned i = 0; i < ROWS(driver_flags); i++)
		make_raw(t, (struct ibv_qp_init_attr_ex){ .cap = cap },
			 &(struct mlx5dv_qp_init_attr){
				.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
				.create_flags = driver_flags[i] });
}

static struct ibv_qp *raw_open(struct tools *t)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RAW_PACKET, .send_cq = t->cq,
					 .recv_cq = t->cq, .cap = { 4, 4, 1, 1, 0 } };

	return ibv_create_qp(t->w->pd, &init);
}

static void do_raw_modify(struct tools *t)
{
	struct ibv_qp *qp = raw_open(t);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_rate_limit_attr rate = { .rate_limit = 1000 };
	struct ibv_qp_init_attr init;

	if (!qp)
		return;
	ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT);
	attr.qp_state = IBV_QPS_RTR;
	ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	ibv_modify_qp_rate_limit(qp, &rate);
	attr.rate_limit = 500;
	ibv_modify_qp(qp, &attr, IBV_QP_RATE_LIMIT);
	ibv_query_qp(qp, &attr, IBV_QP_STATE, &init);
	ibv_destroy_qp(qp);
}

/* --- work queues and hashing --- */

static struct ibv_wq *wq_open(struct tools *t, struct ibv_wq_init_attr init)
{
	init.wq_type = IBV_WQT_RQ;
	init.pd = t->w->pd;
	init.cq = t->cq;
	return ibv_create_wq(t->w->context, &init);
}

static void wq_close(struct ibv_wq *wq)
{
	if (wq)
		ibv_destroy_wq(wq);
}

static void do_wq_options(struct tools *t)
{
	static const struct { uint32_t wr, sge; } sizes[] = {
		{ 1, 1 }, { 1, 0 }, { 33, 4 }, { 16, 32 }, { 10, 3 },
	};

	for (unsigned i = 0; i < ROWS(sizes); i++)
		wq_close(wq_open(t, (struct ibv_wq_init_attr){ .max_wr = sizes[i].wr,
							       .max_sge = sizes[i].sge }));
	for (uint32_t flag = 1; flag <= IBV_WQ_FLAGS_RESERVED; flag <<= 1)
		wq_close(wq_open(t, (struct ibv_wq_init_attr){
			.max_wr = 4, .max_sge = 1, .comp_mask = IBV_WQ_INIT_ATTR_FLAGS,
			.create_flags = flag }));
}

/* On another part: none that is emulated does that. */
static void do_wq_strides(struct tools *t)
{
	static const struct mlx5dv_striding_rq_init_attr rows[] = {
		{ 6, 9, 0 }, { 11, 9, 1 }, { 5, 9, 0 }, { 14, 9, 0 }, { 6, 2, 0 }, { 6, 17, 0 },
	};
	struct ibv_wq_init_attr init = {
		.wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1, .pd = ibv_alloc_pd(t->w->other),
		.cq = ibv_create_cq(t->w->other, 16, NULL, NULL, 0),
	};

	if (!init.pd || !init.cq)
		fail("objects of the other part");
	for (unsigned i = 0; i < ROWS(rows); i++) {
		struct mlx5dv_wq_init_attr dv = {
			.comp_mask = MLX5DV_WQ_INIT_ATTR_MASK_STRIDING_RQ,
			.striding_rq_attrs = rows[i],
		};

		wq_close(mlx5dv_create_wq(t->w->other, &init, &dv));
	}
	ibv_destroy_cq(init.cq);
	ibv_dealloc_pd(init.pd);
}

static void do_wq_modify(struct tools *t)
{
	struct ibv_wq *wq = wq_open(t, (struct ibv_wq_init_attr){ .max_wr = 4, .max_sge = 1 });
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE,
				    .wq_state = IBV_WQS_RDY, .curr_wq_state = IBV_WQS_RESET };

	if (!wq)
		return;
	ibv_modify_wq(wq, &attr);
	attr.attr_mask = IBV_WQ_ATTR_FLAGS;
	attr.flags = attr.flags_mask = IBV_WQ_FLAGS_CVLAN_STRIPPING;
	ibv_modify_wq(wq, &attr);
	attr.attr_mask = IBV_WQ_ATTR_STATE;
	attr.wq_state = IBV_WQS_ERR;
	ibv_modify_wq(wq, &attr);
	ibv_destroy_wq(wq);
}

/* A QP over a table of two. */
static void hash(struct tools *t, struct ibv_rwq_ind_table *table, uint64_t fields,
		 const struct mlx5dv_qp_init_attr *options)
{
	uint8_t key[KEY_BYTES];

	for (unsigned i = 0; i < sizeof key; i++)
		key[i] = (uint8_t)(i + 1);
	make_raw(t, (struct ibv_qp_init_attr_ex){
		.rwq_ind_tbl = table,
		.comp_mask = IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
		.rx_hash_conf = { .rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
				  .rx_hash_key_len = sizeof key, .rx_hash_key = key,
				  .rx_hash_fields_mask = fields },
	}, options);
}

static void do_hash(struct tools *t)
{
	struct ibv_wq *wq[2];
	struct ibv_rwq_ind_table_init_attr attr = { .log_ind_tbl_size = 1, .ind_tbl = wq };
	struct ibv_rwq_ind_table *table;

	for (unsigned i = 0; i < ROWS(wq); i++)
		wq[i] = wq_open(t, (struct ibv_wq_init_attr){ .max_wr = 4, .max_sge = 1 });
	if (!wq[0] || !wq[1])
		fail("ibv_create_wq");
	table = ibv_create_rwq_ind_table(t->w->context, &attr);
	if (!table)
		fail("ibv_create_rwq_ind_table");
	hash(t, table, IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 | IBV_RX_HASH_SRC_PORT_UDP,
	     NULL);
	hash(t, table, IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_INNER, &(struct mlx5dv_qp_init_attr){
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
		.create_flags = MLX5DV_QP_CREATE_TUNNEL_OFFLOADS |
				MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC });
	ibv_destroy_rwq_ind_table(table);
	for (unsigned i = 0; i < ROWS(wq); i++)
		ibv_destroy_wq(wq[i]);
}

/* --- rules --- */

/* A rule with room for what follows it in memory. */
struct rule {
	struct ibv_flow_attr attr;
	uint8_t specs[512];
	size_t bytes;
};

static void add(struct rule *r, const void *spec, size_t bytes)
{
	memcpy(r->specs + r->bytes, spec, bytes);
	r->bytes += bytes;
	r->attr.num_of_specs++;
	r->attr.size = (uint16_t)(sizeof r->attr + r->bytes);
}

/* Datagrams may be steered as frames may, so that a rule needs no right. */
static void make_rule(struct tools *t, struct rule *r)
{
	struct ibv_flow *flow;

	r->attr.port = 1;
	flow = ibv_create_flow(t->qp, &r->attr);
	if (flow)
		ibv_destroy_flow(flow);
}

/* Value and mask count up; what is behind the mask's @used bytes is zero. */
static void make_filter(struct tools *t, unsigned type, size_t bytes, size_t from, size_t used)
{
	struct rule r = { .attr = { .type = IBV_FLOW_ATTR_NORMAL } };
	uint8_t spec[128] = { 0 };
	size_t stride = (bytes - from) / 2;

	spec[0] = (uint8_t)type;
	spec[1] = (uint8_t)(type >> 8);
	spec[4] = (uint8_t)bytes;
	for (size_t i = 0; i < stride; i++) {
		spec[from + i] = (uint8_t)(1 + i);
		spec[from + stride + i] = i < used ? (uint8_t)(0x80 + i) : 0;
	}
	add(&r, spec, bytes);
	make_rule(t, &r);
}

static void do_filters(struct tools *t)
{
	static const struct { unsigned type; size_t bytes, from, used; } rows[] = {
#define SPEC(name, used) sizeof(struct ibv_flow_spec_##name),				\
	offsetof(struct ibv_flow_spec_##name, val), used
		{ IBV_FLOW_SPEC_ETH, SPEC(eth, 16) },
		{ IBV_FLOW_SPEC_IPV4, SPEC(ipv4, 8) },
		{ IBV_FLOW_SPEC_IPV4_EXT, SPEC(ipv4_ext, 12) },
		{ IBV_FLOW_SPEC_IPV6, SPEC(ipv6, 39) },
		{ IBV_FLOW_SPEC_ESP, SPEC(esp, 8) },
		{ IBV_FLOW_SPEC_TCP, SPEC(tcp_udp, 4) },
		{ IBV_FLOW_SPEC_UDP, SPEC(tcp_udp, 4) },
		{ IBV_FLOW_SPEC_VXLAN_TUNNEL, SPEC(tunnel, 4) },
		{ IBV_FLOW_SPEC_GRE, SPEC(gre, 8) },
		{ IBV_FLOW_SPEC_MPLS, SPEC(mpls, 4) },
#undef SPEC
	};

	for (unsigned inner = 0; inner <= IBV_FLOW_SPEC_INNER; inner += IBV_FLOW_SPEC_INNER)
		for (unsigned i = 0; i < ROWS(rows); i++)
			make_filter(t, rows[i].type | inner, rows[i].bytes, rows[i].from,
				    rows[i].used);
	/* Longer than ours, and such that ask for what is not known; too short. */
	make_filter(t, IBV_FLOW_SPEC_IPV6, 8 + 2 * 44, 8, 39);
	make_filter(t, IBV_FLOW_SPEC_IPV6, 8 + 2 * 44, 8, 40);
	make_filter(t, IBV_FLOW_SPEC_IPV4_EXT, 8 + 2 * 16, 8, 12);
	make_filter(t, IBV_FLOW_SPEC_IPV4_EXT, 8 + 2 * 16, 8, 16);
	make_filter(t, IBV_FLOW_SPEC_IPV4_EXT, 8 + 2 * 10, 8, 10);
	make_filter(t, IBV_FLOW_SPEC_VXLAN_TUNNEL, 8 + 2 * 8, 8, 4);
	make_filter(t, 0x70, 8 + 2 * 4, 8, 4);
}

static void do_rules(struct tools *t)
{
	static const struct ibv_flow_attr rows[] = {
		{ .type = IBV_FLOW_ATTR_NORMAL, .priority = 3 },
		{ .type = IBV_FLOW_ATTR_ALL_DEFAULT }, { .type = IBV_FLOW_ATTR_MC_DEFAULT },
		{ .type = IBV_FLOW_ATTR_SNIFFER },
		{ .type = IBV_FLOW_ATTR_NORMAL, .flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP },
		{ .type = IBV_FLOW_ATTR_NORMAL, .flags = IBV_FLOW_ATTR_FLAGS_EGRESS },
		{ .type = IBV_FLOW_ATTR_NORMAL, .comp_mask = 1 },
	};
	struct ibv_flow_spec_tcp_udp udp = { IBV_FLOW_SPEC_UDP, sizeof udp, { 1, 2 }, { 3, 4 } };
	struct ibv_flow_spec_action_tag tag = { IBV_FLOW_SPEC_ACTION_TAG, sizeof tag, 0x123456 };
	struct ibv_flow_spec_action_drop drop = { IBV_FLOW_SPEC_ACTION_DROP, sizeof drop };
	struct rule r = { .attr = { .priority = 1 } };

	for (unsigned i = 0; i < ROWS(rows); i++)
		make_rule(t, &(struct rule){ .attr = rows[i] });
	add(&r, &udp, sizeof udp);
	add(&r, &tag, sizeof tag);
	add(&r, &drop, sizeof drop);
	make_rule(t, &r);
}

static void make_counted_rule(struct tools *t, struct ibv_counters *counters, unsigned times)
{
	struct ibv_flow_spec_counter_action count = { IBV_FLOW_SPEC_ACTION_COUNT, sizeof count,
						      counters };
	struct rule r = { .attr = { .type = IBV_FLOW_ATTR_NORMAL } };

	while (times--)
		add(&r, &count, sizeof count);
	make_rule(t, &r);
}

/* What counts nothing is used once only: libmlx5 44 keeps its lock then. */
static void do_counted_rules(struct tools *t)
{
	struct ibv_counters_init_attr none = { 0 };
	struct ibv_counters *counters = ibv_create_counters(t->w->context, &none);
	struct ibv_counters *empty = ibv_create_counters(t->w->context, &none);
	struct ibv_counter_attach_attr packets = { .counter_desc = IBV_COUNTER_PACKETS };
	struct ibv_counter_attach_attr bytes = { .counter_desc = IBV_COUNTER_BYTES, .index = 1 };
	uint64_t values[2];

	if (!counters || !empty)
		fail("ibv_create_counters");
	make_counted_rule(t, empty, 1);
	ibv_attach_counters_point_flow(counters, &packets, NULL);
	ibv_attach_counters_point_flow(counters, &bytes, NULL);
	make_counted_rule(t, counters, 1);
	ibv_read_counters(counters, values, 2, IBV_READ_COUNTERS_ATTR_PREFER_CACHED);
	make_counted_rule(t, counters, 2);
	ibv_destroy_counters(counters);
	ibv_destroy_counters(empty);
}

/* --- matchers --- */

#define MATCH_BYTES	64
#define DMAC_AT		8

/* The headers outside of a tunnel, of which the destination's address counts. */
static struct mlx5dv_flow_match_parameters *parameters(void *memory, const uint8_t dmac[6])
{
	struct mlx5dv_flow_match_parameters *p = memory;

	p->match_sz = MATCH_BYTES;
	memset(p->match_buf, 0, MATCH_BYTES);
	memcpy((uint8_t *)p->match_buf + DMAC_AT, dmac, 6);
	return p;
}

static const uint8_t dmac_mask[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
static const uint8_t dmac_value[6] = { 0x02, 0x11, 0x22, 0x33, 0x44, 0x55 };

static struct mlx5dv_flow_matcher *matcher_open(struct tools *t,
						struct mlx5dv_flow_matcher_attr attr)
{
	uint64_t mask[1 + MATCH_BYTES / 8];

	attr.match_mask = parameters(mask, dmac_mask);
	return mlx5dv_create_flow_matcher(t->w->context, &attr);
}

static void do_matchers(struct tools *t)
{
	static const struct mlx5dv_flow_matcher_attr rows[] = {
		{ .match_criteria_enable = 1 }, { .priority = 7, .match_criteria_enable = 1 },
		{ .match_criteria_enable = 1, .comp_mask = MLX5DV_FLOW_MATCHER_MASK_FT_TYPE,
		  .ft_type = MLX5DV_FLOW_TABLE_TYPE_NIC_RX },
		{ .match_criteria_enable = 1, .comp_mask = MLX5DV_FLOW_MATCHER_MASK_FT_TYPE,
		  .ft_type = MLX5DV_FLOW_TABLE_TYPE_NIC_TX },
		{ .match_criteria_enable = 1, .flags = IBV_FLOW_ATTR_FLAGS_EGRESS },
		{ .match_criteria_enable = 1, .type = IBV_FLOW_ATTR_SNIFFER },
		{ .match_criteria_enable = 1, .comp_mask = 2 },
	};

	for (unsigned i = 0; i < ROWS(rows); i++) {
		struct mlx5dv_flow_matcher *m = matcher_open(t, rows[i]);

		if (m)
			mlx5dv_destroy_flow_matcher(m);
	}
}

static void do_matched_rules(struct tools *t)
{
	struct mlx5dv_flow_matcher *m =
		matcher_open(t, (struct mlx5dv_flow_matcher_attr){ .match_criteria_enable = 1 });
	struct ibv_qp *qp = raw_open(t);
	struct mlx5dv_flow_action_attr to_qp = { .type = MLX5DV_FLOW_ACTION_DEST_IBV_QP,
						 .qp = qp };
	struct mlx5dv_flow_action_attr tag = { .type = MLX5DV_FLOW_ACTION_TAG, .tag_value = 7 };
	struct mlx5dv_flow_action_attr drop = { .type = MLX5DV_FLOW_ACTION_DROP };
	struct mlx5dv_flow_action_attr miss = { .type = MLX5DV_FLOW_ACTION_DEFAULT_MISS };
	struct mlx5dv_flow_action_attr rows[][2] = {
		{ to_qp, tag }, { drop, tag }, { miss, tag }, { to_qp, drop }, { tag, tag },
		{ to_qp, { .type = MLX5DV_FLOW_ACTION_IBV_COUNTER } },
	};
	uint64_t value[1 + MATCH_BYTES / 8];
	struct ibv_flow *flow;

	if (!m || !qp)
		fail("a matcher and a queue");
	for (unsigned i = 0; i < ROWS(rows); i++)
		for (unsigned count = 1; count <= 2; count++) {
			flow = mlx5dv_create_flow(m, parameters(value, dmac_value), count,
						  rows[i]);
			if (flow)
				ibv_destroy_flow(flow);
		}
	mlx5dv_destroy_flow_matcher(m);
	ibv_destroy_qp(qp);
}

static void action_close(struct ibv_flow_action *action)
{
	if (action)
		ibv_destroy_flow_action(action);
}

static void do_changes(struct tools *t)
{
	uint64_t list[] = { 0x1122334455667788, 0x99aabbccddeeff00 };
	uint8_t header[50] = { 1, 2, 3 };
	struct ibv_context *c = t->w->context;

	action_close(mlx5dv_create_flow_action_modify_header(c, sizeof list, list,
							     MLX5DV_FLOW_TABLE_TYPE_NIC_RX));
	action_close(mlx5dv_create_flow_action_packet_reformat(
		c, 0, NULL, MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_L2_TUNNEL_TO_L2,
		MLX5DV_FLOW_TABLE_TYPE_NIC_RX));
	action_close(mlx5dv_create_flow_action_packet_reformat(
		c, sizeof header, header, MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_L2_TO_L2_TUNNEL,
		MLX5DV_FLOW_TABLE_TYPE_NIC_TX));
	action_close(mlx5dv_create_flow_action_packet_reformat(
		c, sizeof header, NULL, MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_L2_TO_L2_TUNNEL,
		MLX5DV_FLOW_TABLE_TYPE_NIC_TX));
}

/* --- all --- */

const struct section steering_sections[] = {
	{ "raw_sizes", do_raw_sizes }, { "raw_options", do_raw_options },
	{ "raw_modify", do_raw_modify }, { "wq_options", do_wq_options },
	{ "wq_strides", do_wq_strides }, { "wq_modify", do_wq_modify }, { "hash", do_hash },
	{ "filters", do_filters }, { "rules", do_rules }, { "counted_rules", do_counted_rules },
	{ "matchers", do_matchers }, { "matched_rules", do_matched_rules },
	{ "changes", do_changes }, { NULL, NULL },
};
