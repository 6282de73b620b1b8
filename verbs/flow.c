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
#include <stdlib.h>
#include <string.h>
#include "verbs/cmd.h"
#include "verbs/context.h"
#include "verbs/counters.h"
#include "verbs/ops.h"

/* --- specifications --- */

#define SPEC_BYTES_MAX	sizeof(struct ib_uverbs_flow_spec_ipv6)
#define HEADER_BYTES	sizeof(struct ib_uverbs_flow_spec_hdr)

/* Those with a value and a mask, each of that many bytes here and there. */
static const struct filter_row {
	uint32_t type, kernel_type;
	uint16_t from, bytes, kernel_bytes;	/* `from`: where the value is in the program's */
} filters[] = {
#define FILTER(type_, kernel_type_, name, kernel_name)					\
	{ .type = type_, .kernel_type = kernel_type_,					\
	  .from = offsetof(struct ibv_flow_spec_##name, val),				\
	  .bytes = sizeof(struct ibv_flow_##name##_filter),				\
	  .kernel_bytes = sizeof(struct ib_uverbs_flow_##kernel_name##_filter) }
	FILTER(IBV_FLOW_SPEC_ETH, IBV_FLOW_SPEC_ETH, eth, eth),
	FILTER(IBV_FLOW_SPEC_IPV4, IBV_FLOW_SPEC_IPV4, ipv4, ipv4),
	FILTER(IBV_FLOW_SPEC_IPV4_EXT, IBV_FLOW_SPEC_IPV4, ipv4_ext, ipv4),
	FILTER(IBV_FLOW_SPEC_IPV6, IBV_FLOW_SPEC_IPV6, ipv6, ipv6),
	FILTER(IBV_FLOW_SPEC_TCP, IBV_FLOW_SPEC_TCP, tcp_udp, tcp_udp),
	FILTER(IBV_FLOW_SPEC_UDP, IBV_FLOW_SPEC_UDP, tcp_udp, tcp_udp),
	FILTER(IBV_FLOW_SPEC_VXLAN_TUNNEL, IBV_FLOW_SPEC_VXLAN_TUNNEL, tunnel, tunnel),
	FILTER(IBV_FLOW_SPEC_GRE, IBV_FLOW_SPEC_GRE, gre, gre),
	FILTER(IBV_FLOW_SPEC_MPLS, IBV_FLOW_SPEC_MPLS, mpls, mpls),
#undef FILTER
	{ .type = IBV_FLOW_SPEC_ESP, .kernel_type = IBV_FLOW_SPEC_ESP,
	  .from = offsetof(struct ibv_flow_spec_esp, val),
	  .bytes = sizeof(struct ibv_flow_esp_filter),
	  .kernel_bytes = sizeof(struct ib_uverbs_flow_spec_esp_filter) },
};

static const struct filter_row *filter_of(uint32_t type)
{
	for (unsigned i = 0; i < sizeof filters / sizeof *filters; i++)
		if (filters[i].type == (type & ~(uint32_t)IBV_FLOW_SPEC_INNER))
			return &filters[i];
	return NULL;
}

static uint16_t filter_write(const struct filter_row *row, const struct ibv_flow_spec *spec,
			     uint8_t *out)
{
	const uint8_t *value = (const uint8_t *)spec + row->from;
	struct ib_uverbs_flow_spec_hdr header = {
		.type = row->kernel_type | (spec->hdr.type & IBV_FLOW_SPEC_INNER),
		.size = (uint16_t)(HEADER_BYTES + 2 * row->kernel_bytes),
	};

	memcpy(out, &header, HEADER_BYTES);
	memcpy(out + HEADER_BYTES, value, row->bytes);
	memcpy(out + HEADER_BYTES + row->kernel_bytes, value + row->bytes, row->bytes);
	return header.size;
}

/* The word that an action has behind its header; DROP has none. */
static uint32_t action_word(const struct ibv_flow_spec *spec)
{
	switch ((unsigned)spec->hdr.type) {
	case IBV_FLOW_SPEC_ACTION_TAG:
		return spec->flow_tag.tag_id;
	case IBV_FLOW_SPEC_ACTION_COUNT:
		return vb_counters_of(spec->flow_count.counters)->handle;
	default:
		return 0;
	}
}

/* Bytes of each action as programs have it, from the first on; 0: is not handed on. */
#define ACTION(name)	((name) - IBV_FLOW_SPEC_ACTION_TAG)
static const uint16_t action_bytes[] = {
	[ACTION(IBV_FLOW_SPEC_ACTION_TAG)] = sizeof(struct ibv_flow_spec_action_tag),
	[ACTION(IBV_FLOW_SPEC_ACTION_DROP)] = sizeof(struct ibv_flow_spec_action_drop),
	[ACTION(IBV_FLOW_SPEC_ACTION_COUNT)] = sizeof(struct ibv_flow_spec_counter_action),
};

static bool is_action(const struct ibv_flow_spec *spec)
{
	unsigned action = ACTION((unsigned)spec->hdr.type);

	if (action >= sizeof action_bytes / sizeof *action_bytes || !action_bytes[action] ||
	    spec->hdr.size < action_bytes[action])
		return false;
	return spec->hdr.type != IBV_FLOW_SPEC_ACTION_COUNT || spec->flow_count.counters;
}
#undef ACTION

/* 0: there is no such action. */
static uint16_t action_write(const struct ibv_flow_spec *spec, uint8_t *out)
{
	struct ib_uverbs_flow_spec_action_tag action = {
		.type = spec->hdr.type, .size = sizeof action,
	};

	if (!is_action(spec))
		return 0;
	if (spec->hdr.type == IBV_FLOW_SPEC_ACTION_DROP)
		action.size = sizeof(struct ib_uverbs_flow_spec_action_drop);
	action.tag_id = action_word(spec);
	memcpy(out, &action, action.size);
	return action.size;
}
_Static_assert(sizeof(struct ib_uverbs_flow_spec_action_tag) ==
	       sizeof(struct ib_uverbs_flow_spec_action_count), "actions have one layout");

/* They follow each other at any address. */
static struct ibv_flow_spec spec_read(const uint8_t *at)
{
	struct ibv_flow_spec spec = { 0 };
	size_t bytes;

	memcpy(&spec.hdr, at, sizeof spec.hdr);
	bytes = spec.hdr.size < sizeof spec ? spec.hdr.size : sizeof spec;
	if (bytes > sizeof spec.hdr)
		memcpy(&spec, at, bytes);
	return spec;
}

/* 0: it is none. */
static uint16_t spec_write(const struct ibv_flow_spec *spec, uint8_t *out)
{
	const struct filter_row *row = filter_of(spec->hdr.type);

	if (!row)
		return action_write(spec, out);
	return spec->hdr.size < row->from + 2 * row->bytes ? 0 : filter_write(row, spec, out);
}

/* --- rules --- */

/* Fills @ask, which has room, from the specifications behind @attr.  EINVAL */
static int rule_write(const struct ibv_flow_attr *attr, struct ib_uverbs_create_flow *ask)
{
	const uint8_t *spec = (const uint8_t *)(attr + 1);
	uint8_t *out = (uint8_t *)(ask + 1);

	for (unsigned i = 0; i < attr->num_of_specs; i++) {
		struct ibv_flow_spec s = spec_read(spec);
		uint16_t bytes = spec_write(&s, out);

		if (!bytes)
			return EINVAL;
		out += bytes;
		spec += s.hdr.size;
	}
	ask->flow_attr = (struct ib_uverbs_flow_attr){
		.type = attr->type, .priority = attr->priority, .port = attr->port,
		.num_of_specs = attr->num_of_specs, .flags = attr->flags,
		.size = (uint16_t)(out - (uint8_t *)(ask + 1)),
	};
	return 0;
}

static int rule_send(struct ibv_flow *flow, const struct ibv_qp *qp,
		     const struct ibv_flow_attr *attr)
{
	struct ib_uverbs_create_flow *ask = calloc(1, sizeof *ask +
						   attr->num_of_specs * SPEC_BYTES_MAX);
	struct ib_uverbs_create_flow_resp answer = { 0 };
	struct cmd_write w = {
		.command = CMD_EXTENDED | IB_USER_VERBS_EX_CMD_CREATE_FLOW,
		.in = ask, .out = &answer, .out_bytes = sizeof answer,
	};
	int error = ask ? rule_write(attr, ask) : ENOMEM;

	if (!error) {
		ask->qp_handle = qp->handle;
		w.in_bytes = sizeof *ask + ask->flow_attr.size;
		error = cmd_write(&w, qp->context);
	}
	free(ask);
	flow->context = qp->context;
	flow->handle = answer.flow_handle;
	return error;
}

struct ibv_flow *vb_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *flow_attr)
{
	struct ibv_flow *flow = calloc(1, sizeof *flow);
	int error = !flow ? ENOMEM : flow_attr->comp_mask ? EINVAL :
			    rule_send(flow, qp, flow_attr);

	if (!error)
		return flow;
	free(flow);
	errno = error;
	return NULL;
}

int vb_destroy_flow(struct ibv_flow *flow)
{
	int error = cmd_destroy(flow->context, UVERBS_OBJECT_FLOW, UVERBS_METHOD_FLOW_DESTROY,
				UVERBS_ATTR_DESTROY_FLOW_HANDLE, flow->handle);

	if (!error)
		free(flow);
	return error;
}

/* --- IPsec in the NIC: no device here has it, so that there is no action to hand on --- */

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
	(void)action;
	return EOPNOTSUPP;
}
