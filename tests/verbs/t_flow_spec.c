/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules of flow steering as the kernel gets them, and the counters and actions that they name.
 *
 * Method: each specification is written as a program would, and the command is read back.  Values
 * and masks count up, so that a byte at the wrong place shows.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <string.h>
#include "script.h"
#include "verbs/flow.h"

#define CREATE_FLOW	(0x80000000 | IB_USER_VERBS_EX_CMD_CREATE_FLOW)
#define SPECS_BYTES	2048u
#define QP_HANDLE	0x77u

static struct ibv_context *context;
static struct ibv_qp qp;

/* The last rule that was asked for. */
static struct {
	struct ib_uverbs_create_flow head;
	uint8_t specs[SPECS_BYTES];
	size_t bytes;			/* of the specifications */
	struct mlx5_ib_create_flow driver;
	struct mlx5_ib_flow_counters_data counters;
	size_t driver_bytes;
	struct mlx5_ib_flow_counters_desc desc[4];
} asked;

static void take_driver(struct ib_uverbs_ioctl_hdr *header)
{
	struct ib_uverbs_attr *attr = script_attr(header, UVERBS_ATTR_UHW_IN);
	const uint8_t *driver = attr->len > sizeof attr->data ?
				(const void *)(uintptr_t)attr->data : (const void *)&attr->data;

	asked.driver_bytes = attr->len;
	memcpy(&asked.driver, driver, sizeof asked.driver);
	if (!asked.driver.ncounters_data)
		return;
	memcpy(&asked.counters, driver + sizeof asked.driver, sizeof asked.counters);
	cr_assert_leq(asked.counters.ncounters, 4);
	memcpy(asked.desc, (const void *)(uintptr_t)asked.counters.counters_data,
	       asked.counters.ncounters * sizeof *asked.desc);
}

static void look(struct ib_uverbs_ioctl_hdr *header)
{
	const uint8_t *in = script_memory(header, UVERBS_ATTR_CORE_IN);

	if (script_value(header, UVERBS_ATTR_WRITE_CMD) != CREATE_FLOW)
		return;
	memset(&asked, 0, sizeof asked);
	memcpy(&asked.head, in, sizeof asked.head);
	asked.bytes = script_attr(header, UVERBS_ATTR_CORE_IN)->len - sizeof asked.head;
	cr_assert_leq(asked.bytes, SPECS_BYTES);
	memcpy(asked.specs, in + sizeof asked.head, asked.bytes);
	take_driver(header);
}

static void setup(void)
{
	script.on_command = look;
	context = script_open();
	qp = (struct ibv_qp){ .context = context, .handle = QP_HANDLE };
}

TestSuite(flow, .init = setup);

/* --- a rule under construction --- */

struct rule {
	struct ibv_flow_attr attr;
	uint8_t specs[SPECS_BYTES];
	uint32_t bytes;
};

static void add(struct rule *r, const void *spec, size_t bytes)
{
	memcpy(r->specs + r->bytes, spec, bytes);
	r->bytes += (uint32_t)bytes;
	r->attr.num_of_specs++;
}
_Static_assert(offsetof(struct rule, specs) == sizeof(struct ibv_flow_attr),
	       "specifications follow directly");

/* A specification of @bytes whose bytes behind the header are 1, 2, 3, ... */
static void add_counting(struct rule *r, uint32_t type, uint16_t bytes, unsigned from)
{
	uint8_t spec[256] = { 0 };

	memcpy(spec, &type, sizeof type);
	memcpy(spec + 4, &bytes, sizeof bytes);
	for (unsigned i = from; i < bytes; i++)
		spec[i] = (uint8_t)(i - from + 1);
	add(r, spec, bytes);
}

static int try_rule(struct rule *r)
{
	struct ibv_flow *flow;

	errno = 0;
	flow = ibv_create_flow(&qp, &r->attr);
	if (!flow)
		return errno;
	cr_assert_eq(flow->context, context);
	cr_assert_eq(ibv_destroy_flow(flow), 0);
	return 0;
}

/* --- the rule --- */

Test(flow, attributes_are_handed_on)
{
	struct rule r = { .attr = { .type = IBV_FLOW_ATTR_SNIFFER, .priority = 0x1234, .port = 2,
				    .flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP } };

	cr_assert_eq(try_rule(&r), 0);
	cr_assert_eq(asked.head.qp_handle, QP_HANDLE);
	cr_assert_eq(asked.head.comp_mask, 0);
	cr_assert_eq(asked.head.flow_attr.type, IBV_FLOW_ATTR_SNIFFER);
	cr_assert_eq(asked.head.flow_attr.priority, 0x1234);
	cr_assert_eq(asked.head.flow_attr.port, 2);
	cr_assert_eq(asked.head.flow_attr.flags, IBV_FLOW_ATTR_FLAGS_DONT_TRAP);
	cr_assert_eq(asked.head.flow_attr.num_of_specs, 0);
	cr_assert_eq(asked.head.flow_attr.size, 0);
	cr_assert_eq(asked.bytes, 0);
	cr_assert_eq(asked.driver_bytes, sizeof asked.driver);
	cr_assert_eq(asked.driver.ncounters_data, 0);
}

/* --- filters --- */

/* What a program writes of each, and what becomes of it for the kernel. */
static const struct filter {
	uint32_t type;
	uint16_t bytes, from;		/* in the program: whole, and where the value is */
	uint16_t filter;		/* bytes of value and of mask that mean something */
	uint16_t mask_at;		/* in the program, from the value on */
	uint32_t kernel_type;
	uint16_t kernel_filter;
	bool may_be_inner, is_sized;
} filters[] = {
#define SPEC(name) sizeof(struct ibv_flow_spec_##name), offsetof(struct ibv_flow_spec_##name, val)
	{ IBV_FLOW_SPEC_ETH, SPEC(eth), 16, 16, IBV_FLOW_SPEC_ETH, 16, true, false },
	{ IBV_FLOW_SPEC_IPV4, SPEC(ipv4), 8, 8, IBV_FLOW_SPEC_IPV4, 8, true, false },
	{ IBV_FLOW_SPEC_IPV4_EXT, SPEC(ipv4_ext), 12, 12, IBV_FLOW_SPEC_IPV4, 12, true, true },
	{ IBV_FLOW_SPEC_IPV6, SPEC(ipv6), 39, 40, IBV_FLOW_SPEC_IPV6, 40, true, true },
	{ IBV_FLOW_SPEC_ESP, SPEC(esp), 8, 8, IBV_FLOW_SPEC_ESP, 8, true, false },
	{ IBV_FLOW_SPEC_TCP, SPEC(tcp_udp), 4, 4, IBV_FLOW_SPEC_TCP, 4, true, false },
	{ IBV_FLOW_SPEC_UDP, SPEC(tcp_udp), 4, 4, IBV_FLOW_SPEC_UDP, 4, true, false },
	{ IBV_FLOW_SPEC_VXLAN_TUNNEL, SPEC(tunnel), 4, 4, IBV_FLOW_SPEC_VXLAN_TUNNEL, 4, false,
	  true },
	{ IBV_FLOW_SPEC_GRE, SPEC(gre), 8, 8, IBV_FLOW_SPEC_GRE, 8, false, false },
	{ IBV_FLOW_SPEC_MPLS, SPEC(mpls), 4, 4, IBV_FLOW_SPEC_MPLS, 4, true, false },
#undef SPEC
};
#define FILTERS (sizeof filters / sizeof *filters)

/* The last byte of a mask that nobody may ask for. */
static void padding_clear(struct rule *r, const struct filter *f)
{
	uint8_t *spec = r->specs;

	for (unsigned i = f->filter; i < f->mask_at; i++)
		spec[f->from + f->mask_at + i] = 0;
}

static void check_counts(const uint8_t *at, unsigned bytes, unsigned first)
{
	for (unsigned i = 0; i < bytes; i++)
		cr_assert_eq(at[i], (uint8_t)(first + i), "byte %u: %u", i, at[i]);
}

static void check_filter(const struct filter *f, uint32_t inner)
{
	struct ib_uverbs_flow_spec_hdr header;
	const uint8_t *value = asked.specs + sizeof header;

	memcpy(&header, asked.specs, sizeof header);
	cr_assert_eq(header.type, f->kernel_type | inner);
	cr_assert_eq(header.size, sizeof header + 2 * f->kernel_filter);
	cr_assert_eq(header.reserved, 0);
	cr_assert_eq(asked.bytes, header.size);
	cr_assert_eq(asked.head.flow_attr.size, header.size);
	cr_assert_eq(asked.head.flow_attr.num_of_specs, 1);
	check_counts(value, f->filter, 1);
	check_counts(value + f->kernel_filter, f->filter, 1 + f->mask_at);
	for (unsigned i = f->filter; i < f->kernel_filter; i++)
		cr_assert_eq(value[i] | value[f->kernel_filter + i], 0);
}

Test(flow, each_filter)
{
	for (unsigned i = 0; i < FILTERS; i++)
		for (uint32_t inner = 0; inner <= IBV_FLOW_SPEC_INNER;
		     inner += IBV_FLOW_SPEC_INNER) {
			const struct filter *f = &filters[i];
			struct rule r = { 0 };

			add_counting(&r, f->type | inner, f->bytes, f->from);
			padding_clear(&r, f);
			cr_assert_eq(try_rule(&r), inner && !f->may_be_inner ? EINVAL : 0,
				     "filter %u inner %u", i, inner);
			if (!inner || f->may_be_inner)
				check_filter(f, inner);
		}
}

/* Too short by a byte of what means something. */
Test(flow, filters_that_are_cut_short)
{
	for (unsigned i = 0; i < FILTERS; i++) {
		const struct filter *f = &filters[i];
		uint16_t least = (uint16_t)(f->from + 2 * f->filter);

		for (uint16_t bytes = 8; bytes < least; bytes++) {
			struct rule r = { 0 };

			add_counting(&r, f->type, bytes, f->from);
			cr_assert_eq(try_rule(&r), EINVAL, "filter %u of %u bytes", i, bytes);
		}
	}
}

Test(flow, sizes_that_lead_nowhere)
{
	for (uint16_t bytes = 0; bytes < 8; bytes++)
		for (unsigned i = 0; i < FILTERS; i++) {
			struct rule r = { 0 };

			add_counting(&r, filters[i].type, 8, 8);
			memcpy(r.specs + 4, &bytes, sizeof bytes);
			r.attr.num_of_specs = 255;
			cr_assert_eq(try_rule(&r), EINVAL);
		}
}

/* Programs of a later day have longer filters: as long as they do not ask for what is new. */
Test(flow, filters_that_have_grown)
{
	for (unsigned i = 0; i < FILTERS; i++) {
		const struct filter *f = &filters[i];
		uint16_t stride = (uint16_t)(f->filter + 5);
		struct rule r = { 0 };
		uint8_t *spec = r.specs;

		if (!f->is_sized)
			continue;
		add_counting(&r, f->type, (uint16_t)(f->from + 2 * stride), f->from);
		cr_assert_eq(try_rule(&r), EOPNOTSUPP, "filter %u", i);
		memset(spec + f->from + stride + f->filter, 0, 5);
		cr_assert_eq(try_rule(&r), 0);
		check_counts(asked.specs + 8, f->filter, 1);
		check_counts(asked.specs + 8 + f->kernel_filter, f->filter, 1u + stride);
		spec[f->from + 2 * stride - 1] = 1;
		cr_assert_eq(try_rule(&r), EOPNOTSUPP);
	}
}

/* A rule of all layers: each at its place. */
Test(flow, specifications_follow_each_other)
{
	struct ibv_flow_spec_action_tag tag = { IBV_FLOW_SPEC_ACTION_TAG, sizeof tag, 0xabcdef };
	struct ibv_flow_spec_action_drop drop = { IBV_FLOW_SPEC_ACTION_DROP, sizeof drop };
	uint32_t type[4];
	struct rule r = { 0 };

	add_counting(&r, IBV_FLOW_SPEC_ETH, sizeof(struct ibv_flow_spec_eth), 6);
	add_counting(&r, IBV_FLOW_SPEC_UDP, sizeof(struct ibv_flow_spec_tcp_udp), 6);
	add(&r, &tag, sizeof tag);
	add(&r, &drop, sizeof drop);
	cr_assert_eq(try_rule(&r), 0);
	cr_assert_eq(asked.head.flow_attr.num_of_specs, 4);
	cr_assert_eq(asked.head.flow_attr.size, 40 + 16 + 16 + 8);
	cr_assert_eq(asked.bytes, 80);
	memcpy(&type[0], asked.specs, 4);
	memcpy(&type[1], asked.specs + 40, 4);
	memcpy(&type[2], asked.specs + 56, 4);
	memcpy(&type[3], asked.specs + 72, 4);
	cr_assert_eq(type[0], IBV_FLOW_SPEC_ETH);
	cr_assert_eq(type[1], IBV_FLOW_SPEC_UDP);
	cr_assert_eq(type[2], IBV_FLOW_SPEC_ACTION_TAG);
	cr_assert_eq(type[3], IBV_FLOW_SPEC_ACTION_DROP);
}

Test(flow, as_many_as_can_be_said)
{
	struct ibv_flow_spec_action_drop drop = { IBV_FLOW_SPEC_ACTION_DROP, sizeof drop };
	struct rule r = { 0 };

	for (unsigned i = 0; i < UINT8_MAX; i++)
		add(&r, &drop, sizeof drop);
	cr_assert_eq(try_rule(&r), 0);
	cr_assert_eq(asked.head.flow_attr.size, UINT8_MAX * sizeof drop);
}

/* --- actions --- */

static uint32_t word_at(size_t at)
{
	uint32_t word;

	memcpy(&word, asked.specs + at, sizeof word);
	return word;
}

Test(flow, a_tag)
{
	struct ibv_flow_spec_action_tag tag = { IBV_FLOW_SPEC_ACTION_TAG, sizeof tag, 0xfedcba98 };
	struct rule r = { 0 };

	add(&r, &tag, sizeof tag);
	cr_assert_eq(try_rule(&r), 0);
	cr_assert_eq(asked.bytes, 16);
	cr_assert_eq(word_at(8), 0xfedcba98);
	tag.type |= IBV_FLOW_SPEC_INNER;
	r = (struct rule){ 0 };
	add(&r, &tag, sizeof tag);
	cr_assert_eq(try_rule(&r), EINVAL);
}

Test(flow, an_action_that_is_an_object)
{
	struct vb_flow_action action = { .action = { context }, .handle = 0x4321 };
	struct ibv_flow_spec_action_handle handle = { IBV_FLOW_SPEC_ACTION_HANDLE, sizeof handle,
						      &action.action };
	struct rule r = { 0 };

	add(&r, &handle, sizeof handle);
	cr_assert_eq(try_rule(&r), 0);
	cr_assert_eq(asked.bytes, 16);
	cr_assert_eq(word_at(8), 0x4321);
}

/* --- counters --- */

static struct ibv_counters *counters_new(void)
{
	struct ibv_counters_init_attr none = { 0 };
	struct ibv_counters *counters = ibv_create_counters(context, &none);

	cr_assert(counters);
	return counters;
}

static int attach(struct ibv_counters *counters, unsigned what, uint32_t index)
{
	struct ibv_counter_attach_attr attr = {
		.counter_desc = (enum ibv_counter_description)what, .index = index,
	};

	return ibv_attach_counters_point_flow(counters, &attr, NULL);
}

static struct rule counting(struct ibv_counters *counters)
{
	struct ibv_flow_spec_counter_action count = { IBV_FLOW_SPEC_ACTION_COUNT, sizeof count,
						      counters };
	struct rule r = { 0 };

	add(&r, &count, sizeof count);
	return r;
}

/* The last one first, as libmlx5 does it. */
Test(flow, the_first_rule_says_what_is_counted)
{
	struct ibv_counters *counters = counters_new();
	struct rule r = counting(counters);
	struct ibv_flow *first, *second;

	vb_counters_of(counters)->handle = 0x99;
	cr_assert_eq(attach(counters, IBV_COUNTER_PACKETS, 3), 0);
	cr_assert_eq(attach(counters, IBV_COUNTER_BYTES, 1), 0);
	first = ibv_create_flow(&qp, &r.attr);
	cr_assert(first);
	cr_assert_eq(word_at(0), IBV_FLOW_SPEC_ACTION_COUNT);
	cr_assert_eq(word_at(8), 0x99);
	cr_assert_eq(asked.driver.ncounters_data, 1);
	cr_assert_eq(asked.driver_bytes, 24);
	cr_assert_eq(asked.counters.ncounters, 2);
	cr_assert_eq(asked.desc[0].description, IBV_COUNTER_BYTES);
	cr_assert_eq(asked.desc[0].index, 1);
	cr_assert_eq(asked.desc[1].description, IBV_COUNTER_PACKETS);
	cr_assert_eq(asked.desc[1].index, 3);
	second = ibv_create_flow(&qp, &r.attr);
	cr_assert(second);
	cr_assert_eq(asked.driver.ncounters_data, 0, "it knows");
	cr_assert_eq(asked.driver_bytes, 8);
	cr_assert_eq(ibv_destroy_flow(first), 0);
	cr_assert_eq(attach(counters, IBV_COUNTER_BYTES, 0), EBUSY, "the second still counts");
	cr_assert_eq(ibv_destroy_flow(second), 0);
	cr_assert_eq(attach(counters, IBV_COUNTER_BYTES, 0), 0);
	cr_assert_eq(ibv_destroy_counters(counters), 0);
}

Test(flow, attaching_that_is_refused)
{
	struct ibv_counters *counters = counters_new();
	struct ibv_counter_attach_attr attr = { .comp_mask = 1 };
	struct ibv_flow flow = { .context = context };

	cr_assert_eq(attach(counters, IBV_COUNTER_BYTES + 1, 0), ENOTSUP);
	cr_assert_eq(attach(counters, UINT32_MAX, 0), ENOTSUP);
	cr_assert_eq(ibv_attach_counters_point_flow(counters, &attr, NULL), EOPNOTSUPP);
	attr.comp_mask = 0;
	cr_assert_eq(ibv_attach_counters_point_flow(counters, &attr, &flow), ENOTSUP);
	cr_assert_eq(vb_counters_of(counters)->count, 0);
	cr_assert_eq(ibv_destroy_counters(counters), 0);
}

Test(flow, counters_twice_in_one_rule)
{
	struct ibv_counters *counters = counters_new();
	struct rule r = counting(counters);
	struct ibv_flow_spec_counter_action again = { IBV_FLOW_SPEC_ACTION_COUNT, sizeof again,
						      counters };

	cr_assert_eq(attach(counters, IBV_COUNTER_PACKETS, 0), 0);
	add(&r, &again, sizeof again);
	cr_assert_eq(try_rule(&r), EINVAL);
	cr_assert_eq(vb_counters_of(counters)->flows, 0);
	cr_assert_eq(ibv_destroy_counters(counters), 0);
}

/* What the device refuses is attached to nothing. */
Test(flow, a_rule_that_fails_leaves_its_counters)
{
	struct ibv_counters *counters = counters_new();
	struct rule r = counting(counters);

	cr_assert_eq(attach(counters, IBV_COUNTER_PACKETS, 0), 0);
	script.fail_object = UVERBS_OBJECT_DEVICE;
	script.fail_method = UVERBS_METHOD_INVOKE_WRITE;
	script.fail_error = EPERM;
	cr_assert_eq(try_rule(&r), EPERM);
	cr_assert_eq(attach(counters, IBV_COUNTER_BYTES, 1), 0);
	cr_assert_eq(ibv_destroy_counters(counters), 0);
}

Test(flow, a_rule_that_is_still_there_keeps_its_counters)
{
	struct ibv_counters *counters = counters_new();
	struct rule r = counting(counters);
	struct ibv_flow *flow;

	cr_assert_eq(attach(counters, IBV_COUNTER_PACKETS, 0), 0);
	flow = ibv_create_flow(&qp, &r.attr);
	cr_assert(flow);
	script.fail_object = UVERBS_OBJECT_FLOW;
	script.fail_method = UVERBS_METHOD_FLOW_DESTROY;
	script.fail_error = EBUSY;
	cr_assert_eq(ibv_destroy_flow(flow), EBUSY);
	cr_assert_eq(attach(counters, IBV_COUNTER_BYTES, 1), EBUSY);
	cr_assert_eq(ibv_destroy_flow(flow), 0);
	cr_assert_eq(ibv_destroy_counters(counters), 0);
}
