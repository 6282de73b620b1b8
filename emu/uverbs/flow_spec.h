/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the specs of ibv_create_flow() say, as mask and value of a rule.
 *
 * In the kernel's two steps, because the first fault decides: its core takes the list apart and
 * finds what it names, then the driver looks at what each spec asks for.
 *
 * Source: device-abi H.2; Linux, uverbs_cmd.c and mlx5_ib.
 */
#ifndef EMU_UVERBS_FLOW_SPEC_H
#define EMU_UVERBS_FLOW_SPEC_H
#include "emu/obj/flow.h"
#include "emu/uverbs/dispatch.h"

/* Numbers of the uverbs ABI. */
enum flow_spec_type {
	FLOW_ETH = 0x20, FLOW_IPV4 = 0x30, FLOW_IPV6 = 0x31, FLOW_ESP = 0x34,
	FLOW_TCP = 0x40, FLOW_UDP = 0x41, FLOW_VXLAN = 0x50, FLOW_GRE = 0x51, FLOW_MPLS = 0x60,
	FLOW_INNER = 0x100,		/* added to those above: of what a tunnel carries */
	FLOW_TAG = 0x1000, FLOW_DROP = 0x1001, FLOW_HANDLE = 0x1002, FLOW_COUNT = 0x1003,
};

enum { FLOW_ALLOW_LOOP_BACK = 1, FLOW_DONT_TRAP = 2, FLOW_EGRESS = 4, FLOW_FLAGS_END = 8 };
enum { FLOW_SPECS_MAX = 10, FLOW_SPEC_BYTES_MAX = 88, FLOW_FILTER_BYTES_MAX = 40 };
#define FLOW_TAG_END		(1u << 24)
#define FLOW_MATCH_BYTES	512u		/* of mlx5's match parameters, some of no use */

/* One spec. */
struct flow_spec {
	uint32_t type;
	uint32_t tag;
	struct emu_counters *counters;
	uint8_t mask[FLOW_FILTER_BYTES_MAX], value[FLOW_FILTER_BYTES_MAX];
};

/* All of a rule. */
struct flow_match {
	union steer_key mask, value;
	bool is_multicast;		/* it can't match a frame to one station */
	bool drops, has_tag;
	uint32_t tag;
	struct emu_counters *counters;	/* or NULL */
};

/* Exactly @count specs in @size bytes.  -EINVAL; -ENOENT no such counters; -EOPNOTSUPP */
int flow_specs_read(struct uv_call *call, const uint8_t *bytes, unsigned size, unsigned count,
		    struct flow_spec *out);
/* -EINVAL they contradict each other; -EOPNOTSUPP nothing is matched by that */
int flow_specs_match(struct uv_call *call, const struct flow_spec *spec, unsigned count,
		     struct flow_match *out);

/* The hardware refuses bits of a value that its mask does not look at. */
bool flow_key_fits(const union steer_key *mask, const union steer_key *value);
#endif
