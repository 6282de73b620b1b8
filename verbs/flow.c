/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flow steering rules.
 *
 * A rule is a list of specifications: what a layer's header must be, value and mask, or what is
 * done with the packet.  They are handed on in the kernel's layout, which is nearly the program's.
 *
 * Source: device-abi B.9, H.2; inventory 1.25; ibv_create_flow(3).
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdlib.h>
#include <string.h>
#include "verbs/cmd.h"
#include "verbs/context.h"
#include "verbs/flow.h"
#include "verbs/ops.h"

/* --- what a packet must have --- */

#define SPEC_BYTES_MAX	sizeof(struct ib_uverbs_flow_spec_ipv6)
#define HEADER_BYTES	sizeof(struct ib_uverbs_flow_spec_hdr)

/* Those with a value and a mask.  Structures that have grown say by their size how long a filter of
 * this program is: bits that are not known here must not be asked for. */
static const struct filter_row {
	uint32_t type, kernel_type;
	uint16_t from;			/* where the value is in the program's */
	uint16_t bytes;			/* of each that mean something */
	uint16_t stride;		/* from the value to the mask; 0: the size says */
	uint16_t kernel_bytes;
	bool may_be_inner;
} filters[] = {
#define FILTER(type_, kernel_type_, name, bytes_, stride_, kernel_bytes_, may_be_inner_)	\
	{ .type = type_, .kernel_type = kernel_type_,						\
	  .from = offsetof(struct ibv_flow_spec_##name, val), .bytes = bytes_,			\
	  .stride = stride_, .kernel_bytes = kernel_bytes_, .may_be_inner = may_be_inner_ }
#define FIXED(type, name, kernel_name, may_be_inner)						\
	FILTER(type, type, name, sizeof(struct ibv_flow_##name##_filter),			\
	       sizeof(struct ibv_flow_##name##_filter),						\
	       sizeof(struct ib_uverbs_flow_##kernel_name), may_be_inner)
#define SIZED(type, kernel_type, name, last, kernel_name, may_be_inner)				\
	FILTER(type, kernel_type, name,								\
	       offsetof(struct ibv_flow_##name##_filter, last) +				\
	       sizeof(((struct ibv_flow_##name##_filter *)0)->last), 0,				\
	       sizeof(struct ib_uverbs_flow_##kernel_name), may_be_inner)
	FIXED(IBV_FLOW_SPEC_ETH, eth, eth_filter, true),
	/* Addresses only: as short to the kernel as in the program. */
	FILTER(IBV_FLOW_SPEC_IPV4, IBV_FLOW_SPEC_IPV4, ipv4, sizeof(struct ibv_flow_ipv4_filter),
	       sizeof(struct ibv_flow_ipv4_filter), sizeof(struct ibv_flow_ipv4_filter), true),
	SIZED(IBV_FLOW_SPEC_IPV4_EXT, IBV_FLOW_SPEC_IPV4, ipv4_ext, flags, ipv4_filter, true),
	SIZED(IBV_FLOW_SPEC_IPV6, IBV_FLOW_SPEC_IPV6, ipv6, hop_limit, ipv6_filter, true),
	FIXED(IBV_FLOW_SPEC_ESP, esp, spec_esp_filter, true),
	FIXED(IBV_FLOW_SPEC_TCP, tcp_udp, tcp_udp_filter, true),
	FIXED(IBV_FLOW_SPEC_UDP, tcp_udp, tcp_udp_filter, true),
	SIZED(IBV_FLOW_SPEC_VXLAN_TUNNEL, IBV_FLOW_SPEC_VXLAN_TUNNEL, tunnel, tunnel_id,
	      tunnel_filter, false),
	FIXED(IBV_FLOW_SPEC_GRE, gre, gre_filter, false),
	FIXED(IBV_FLOW_SPEC_MPLS, mpls, mpls_filter, true),
#undef SIZED
#undef FIXED
#undef FILTER
};

/* Specifications follow each other at any address. */
struct spec { const uint8_t *at; uint32_t type; uint16_t bytes; };

static struct spec spec_read(const uint8_t *at)
{
	struct { enum ibv_flow_spec_type type; uint16_t size; } header;

	memcpy(&header, at, sizeof header);
	return (struct spec){ .at = at, .type = header.type, .bytes = header.size };
}

static const struct filter_row *filter_of(uint32_t type)
{
	for (unsigned i = 0; i < sizeof filters / sizeof *filters; i++)
		if (filters[i].type == (type & ~(uint32_t)IBV_FLOW_SPEC_INNER))
			return filters[i].may_be_inner || !(type & IBV_FLOW_SPEC_INNER) ?
			       &filters[i] : NULL;
	return NULL;
}

static bool is_zero(const uint8_t *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (at[i])
			return false;
	return true;
}

/* From the value to the mask in @stride_out.  EINVAL: too short.  EOPNOTSUPP: asks for more. */
static int filter_check(const struct filter_row *row, const struct spec *spec,
			uint16_t *stride_out)
{
	uint16_t stride = row->stride;

	if (spec->bytes < row->from + 2 * row->bytes)
		return EINVAL;
	if (!stride) {
		stride = (uint16_t)((spec->bytes - row->from) / 2);
		if (!is_zero(spec->at + row->from + stride + row->bytes, stride - row->bytes))
			return EOPNOTSUPP;
	}
	*stride_out = stride;
	return 0;
}

static int filter_write(const struct filter_row *row, const struct spec *spec, uint8_t *out,
			uint16_t *bytes_out)
{
	const uint8_t *value = spec->at + row->from;
	struct ib_uverbs_flow_spec_hdr header = {
		.type = row->kernel_type | (spec->type & IBV_FLOW_SPEC_INNER),
		.size = (uint16_t)(HEADER_BYTES + 2 * row->kernel_bytes),
	};
	uint16_t stride;
	int error = filter_check(row, spec, &stride);

	if (error)
		return error;
	memcpy(out, &header, HEADER_BYTES);
	memcpy(out + HEADER_BYTES, value, row->bytes);
	memcpy(out + HEADER_BYTES + row->kernel_bytes, value + stride, row->bytes);
	*bytes_out = header.size;
	return 0;
}

/* --- what is done with it --- */

static bool tag_word(const struct spec *spec, uint32_t *out)
{
	struct ibv_flow_spec_action_tag tag;

	memcpy(&tag, spec->at, sizeof tag);
	*out = tag.tag_id;
	return true;
}

static bool no_word(const struct spec *spec, uint32_t *out)
{
	(void)spec;
	*out = 0;
	return true;
}

static bool action_word(const struct spec *spec, uint32_t *out)
{
	struct ibv_flow_spec_action_handle handle;

	memcpy(&handle, spec->at, sizeof handle);
	*out = handle.action ? vb_flow_action_of(handle.action)->handle : 0;
	return handle.action;
}

static struct vb_counters *counters_of(const struct spec *spec)
{
	struct ibv_flow_spec_counter_action count;

	memcpy(&count, spec->at, sizeof count);
	return count.counters ? vb_counters_of(count.counters) : NULL;
}

static bool counters_word(const struct spec *spec, uint32_t *out)
{
	struct vb_counters *counters = counters_of(spec);

	*out = counters ? counters->handle : 0;
	return counters;
}

/* The kernel's have a word behind their header, all but one, and the same layout. */
static const struct action_row {
	uint32_t type;
	uint16_t bytes, kernel_bytes;
	bool (*word)(const struct spec *spec, uint32_t *out);	/* false: there is no object */
} actions[] = {
	{ IBV_FLOW_SPEC_ACTION_TAG, sizeof(struct ibv_flow_spec_action_tag),
	  sizeof(struct ib_uverbs_flow_spec_action_tag), tag_word },
	{ IBV_FLOW_SPEC_ACTION_DROP, sizeof(struct ibv_flow_spec_action_drop),
	  sizeof(struct ib_uverbs_flow_spec_action_drop), no_word },
	{ IBV_FLOW_SPEC_ACTION_HANDLE, sizeof(struct ibv_flow_spec_action_handle),
	  sizeof(struct ib_uverbs_flow_spec_action_handle), action_word },
	{ IBV_FLOW_SPEC_ACTION_COUNT, sizeof(struct ibv_flow_spec_counter_action),
	  sizeof(struct ib_uverbs_flow_spec_action_count), counters_word },
};
_Static_assert(sizeof(struct ib_uverbs_flow_spec_action_tag) ==
	       sizeof(struct ib_uverbs_flow_spec_action_count), "actions have one layout");
_Static_assert(sizeof(struct ib_uverbs_flow_spec_action_tag) ==
	       sizeof(struct ib_uverbs_flow_spec_action_handle), "actions have one layout");

static int action_write(const struct spec *spec, uint8_t *out, uint16_t *bytes_out)
{
	for (unsigned i = 0; i < sizeof actions / sizeof *actions; i++) {
		struct ib_uverbs_flow_spec_action_tag action = {
			.type = spec->type, .size = actions[i].kernel_bytes,
		};

		if (actions[i].type != spec->type)
			continue;
		if (spec->bytes < actions[i].bytes || !actions[i].word(spec, &action.tag_id))
			return EINVAL;
		memcpy(out, &action, action.size);
		*bytes_out = action.size;
		return 0;
	}
	return EINVAL;
}

static int spec_write(const struct spec *spec, uint8_t *out, uint16_t *bytes_out)
{
	const struct filter_row *row = filter_of(spec->type);

	return row ? filter_write(row, spec, out, bytes_out) : action_write(spec, out, bytes_out);
}

/* --- rules --- */

/* Fills @ask, which has room, from the specifications behind @attr; @counters_out is what counts.
 * EINVAL, EOPNOTSUPP */
static int rule_write(const struct ibv_flow_attr *attr, struct ib_uverbs_create_flow *ask,
		      struct vb_counters **counters_out)
{
	const uint8_t *at = (const uint8_t *)(attr + 1);
	uint8_t *out = (uint8_t *)(ask + 1);

	for (unsigned i = 0; i < attr->num_of_specs; i++) {
		struct spec spec = spec_read(at);
		uint16_t bytes = 0;
		int error = spec_write(&spec, out, &bytes);

		if (error)
			return error;
		if (spec.type == IBV_FLOW_SPEC_ACTION_COUNT) {
			if (*counters_out)
				return EINVAL;	/* of one rule there is one count */
			*counters_out = counters_of(&spec);
		}
		out += bytes;
		at += spec.bytes;
	}
	ask->flow_attr = (struct ib_uverbs_flow_attr){
		.type = attr->type, .priority = attr->priority, .port = attr->port,
		.num_of_specs = attr->num_of_specs, .flags = attr->flags,
		.size = (uint16_t)(out - (uint8_t *)(ask + 1)),
	};
	return 0;
}

/* What the driver is told beside the rule. */
struct driver_part {
	struct mlx5_ib_create_flow head;
	struct mlx5_ib_flow_counters_data counters;
};
_Static_assert(offsetof(struct driver_part, counters) == offsetof(struct mlx5_ib_create_flow, data),
	       "what is counted follows directly");

static int rule_send(struct vb_flow *flow, const struct ibv_qp *qp,
		     struct ib_uverbs_create_flow *ask)
{
	struct ib_uverbs_create_flow_resp answer = { 0 };
	struct driver_part driver = { 0 };
	struct cmd_write w = {
		.command = CMD_EXTENDED | IB_USER_VERBS_EX_CMD_CREATE_FLOW,
		.in = ask, .in_bytes = sizeof *ask + ask->flow_attr.size,
		.out = &answer, .out_bytes = sizeof answer,
		.driver_in = &driver, .driver_in_bytes = sizeof driver.head,
	};
	int error = flow->counters ? vb_counters_begin(flow->counters, &driver.counters) : 0;

	if (error)
		return error;
	if (driver.counters.ncounters) {
		driver.head.ncounters_data = 1;
		w.driver_in_bytes = sizeof driver;
	}
	ask->qp_handle = qp->handle;
	error = cmd_write(&w, qp->context);
	if (flow->counters)
		vb_counters_end(flow->counters, !error);
	flow->flow.context = qp->context;
	flow->flow.handle = answer.flow_handle;
	return error;
}

static int rule_make(struct vb_flow *flow, const struct ibv_qp *qp,
		     const struct ibv_flow_attr *attr)
{
	struct ib_uverbs_create_flow *ask = calloc(1, sizeof *ask +
						   attr->num_of_specs * SPEC_BYTES_MAX);
	int error = ask ? rule_write(attr, ask, &flow->counters) : ENOMEM;

	if (!error)
		error = rule_send(flow, qp, ask);
	free(ask);
	return error;
}

struct ibv_flow *vb_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *flow_attr)
{
	struct vb_flow *flow = calloc(1, sizeof *flow);
	int error = flow ? rule_make(flow, qp, flow_attr) : ENOMEM;

	if (!error)
		return &flow->flow;
	free(flow);
	errno = error;
	return NULL;
}

int vb_destroy_flow(struct ibv_flow *flow)
{
	struct vb_flow *own = vb_flow_of(flow);
	int error = cmd_destroy(flow->context, UVERBS_OBJECT_FLOW, UVERBS_METHOD_FLOW_DESTROY,
				UVERBS_ATTR_DESTROY_FLOW_HANDLE, flow->handle);

	if (error)
		return error;
	if (own->counters)
		vb_counters_release(own->counters);
	free(own);
	return 0;
}

/* --- actions that are objects --- */

/* IPsec in the NIC: no device here has it. */
struct ibv_flow_action *vb_create_flow_action_esp(struct ibv_context *context,
						  struct ibv_flow_action_esp_attr *attr)
{
	(void)context;
	(void)attr;
	errno = EOPNOTSUPP;
	return NULL;
}

int vb_modify_flow_action_esp(struct ibv_flow_action *action,
			      struct ibv_flow_action_esp_attr *attr)
{
	(void)action;
	(void)attr;
	return EOPNOTSUPP;
}

int vb_destroy_flow_action(struct ibv_flow_action *action)
{
	int error = cmd_destroy(action->context, UVERBS_OBJECT_FLOW_ACTION,
				UVERBS_METHOD_FLOW_ACTION_DESTROY,
				UVERBS_ATTR_DESTROY_FLOW_ACTION_HANDLE,
				vb_flow_action_of(action)->handle);

	if (!error)
		free(vb_flow_action_of(action));
	return error;
}
