/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_create_flow(): where the bytes of each spec go, and at which level the rule stands.
 *
 * Method: one command after the other as libmlx5 sends them; wanted are whole masks and values,
 * made from a table whose numbers are offsets of the PRM's fte_match_param and not those of key.h.
 * What is refused is in t_uv_flow_refused.c.
 */
#include "tests/unit/flow_world.h"

/* --- specs --- */

enum { MISC = 64, INNER_LAYER = 128, MISC2 = 192, SECOND = 4 };

/* @bytes of the filter go to @to, with bits of the first one left out. */
struct move {
	uint8_t from, bytes, to, without;
};

struct spec_row {
	uint32_t type;
	unsigned bytes;
	struct move move[5];
	struct { uint8_t at, mask, value; } implied;	/* mask 0: nothing */
};

#define TO(...)	.move = { __VA_ARGS__ }
#define MOVE(from, bytes, to)	{ from, bytes, to, 0 }
#define IMPLIES(...)	.implied = { __VA_ARGS__ }

static const struct spec_row spec_rows[] = {
	{ ETH, 16, TO(MOVE(0, 6, 8), MOVE(6, 6, 0), MOVE(12, 2, 6), MOVE(14, 2, 14)),
	  IMPLIES(18, 0x80, 0x80) },
	{ IPV4, 12, TO(MOVE(0, 4, 44), MOVE(4, 4, 60), MOVE(8, 1, 16), MOVE(9, 1, 17)),
	  IMPLIES(18, 0x1e, 4 << 1) },
	{ IPV6, 40, TO(MOVE(0, 16, 32), MOVE(16, 16, 48), { 33, 3, MISC + 29, 0xf0 },
		       MOVE(36, 1, 16), MOVE(37, 1, 17)), IMPLIES(18, 0x1e, 6 << 1) },
	{ TCP, 4, TO(MOVE(0, 2, 22), MOVE(2, 2, 20)), IMPLIES(16, 0xff, 6) },
	{ UDP, 4, TO(MOVE(0, 2, 30), MOVE(2, 2, 28)), IMPLIES(16, 0xff, 17) },
	{ VXLAN, 4, TO(MOVE(1, 3, MISC + 20)), IMPLIES(0, 0, 0) },
	{ GRE, 8, TO(MOVE(2, 2, MISC + 14), MOVE(4, 4, MISC + 16)), IMPLIES(16, 0xff, 47) },
	{ MPLS, 4, TO(MOVE(0, 4, MISC2)), IMPLIES(0, 0, 0) },
};

/* Where a byte goes in a spec of inner headers; each block of misc has places for both. */
static unsigned inner_place(unsigned to)
{
	if (to == MISC + 29 || to == MISC2)
		return to + SECOND;
	return to < MISC ? to + INNER_LAYER : to;
}

static void move_fill(const struct move *m, uint8_t *filter, uint8_t first)
{
	for (unsigned i = 0; i < m->bytes; i++)
		filter[m->from + i] = (uint8_t)(first < 0xff ? first + i : first) &
				      (uint8_t) ~(i ? 0 : m->without);
}

/* The whole filter, all fields that there are set. */
static void row_fill(const struct spec_row *row, uint8_t *filter, uint8_t first)
{
	for (unsigned i = 0; i < 5; i++)
		move_fill(&row->move[i], filter, (uint8_t)(first < 0xff ? first + 7 * i : first));
}

static void row_expect(const struct spec_row *row, bool is_inner, const uint8_t *value,
		       const uint8_t *mask, struct steer_rule *want)
{
	unsigned at = row->implied.at + (is_inner ? INNER_LAYER : 0u);

	for (unsigned i = 0; i < 5; i++) {
		const struct move *m = &row->move[i];
		unsigned to = is_inner ? inner_place(m->to) : m->to;

		memcpy(want->value.bytes + to, value + m->from, m->bytes);
		memcpy(want->mask.bytes + to, mask + m->from, m->bytes);
	}
	want->mask.bytes[at] |= row->implied.mask;
	want->value.bytes[at] |= row->implied.value;
}

static void match_check(const struct spec_row *row, const char *what, const union steer_key *got,
		      const union steer_key *want)
{
	for (unsigned i = 0; i < STEER_KEY_BYTES; i++)
		cr_assert(got->bytes[i] == want->bytes[i],
			  "spec 0x%x: byte %u of the %s is 0x%02x, want 0x%02x", row->type, i, what,
			  got->bytes[i], want->bytes[i]);
}

static void row_check(const struct flow_rig *r, const struct spec_row *row, uint32_t inner)
{
	uint8_t value[40] = { 0 }, mask[40] = { 0 };
	struct steer_rule want = { 0 };
	struct emu_flow *flow;
	struct flow_ask ask;

	row_fill(row, value, 0x42);
	row_fill(row, mask, 0xff);
	flow_ask_begin(&ask, r);
	filter_add(&ask, row->type | inner, row->bytes, value, mask);
	flow = flow_made(r, &ask);
	row_expect(row, inner, value, mask, &want);
	match_check(row, "mask", &flow->rule.mask, &want.mask);
	match_check(row, "value", &flow->rule.value, &want.value);
	CHECK_INT(flow_free(r, ask.reply.flow_handle), 0);
}

Test(uv_flow, each_spec_is_matched_by_where_the_hardware_looks)
{
	struct flow_rig r = flow_rig_new();

	for (size_t i = 0; i < sizeof spec_rows / sizeof *spec_rows; i++) {
		row_check(&r, &spec_rows[i], 0);
		if (spec_rows[i].type != VXLAN)
			row_check(&r, &spec_rows[i], INNER);
	}
	uv_world_end(&r.w);
}

/* A filter from before a field existed, and one from the future that asks for nothing new. */
Test(uv_flow, filters_may_be_shorter_and_longer)
{
	static const unsigned bytes[] = { 8, 12, 16, 40 };
	struct flow_rig r = flow_rig_new();

	for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
		uint8_t value[40] = { 10, 0, 0, 1 }, mask[40] = { 255, 255, 255, 255 };
		struct flow_ask ask;

		memset(value + 12, 0x5a, 28);		/* of the mask only the tail is looked at */
		flow_ask_begin(&ask, &r);
		filter_add(&ask, IPV4, bytes[i], value, mask);
		CHECK_INT(!memcmp(flow_made(&r, &ask)->rule.value.bytes + 44, value, 4), 1);
		CHECK_INT(flow_free(&r, ask.reply.flow_handle), 0);
	}
	uv_world_end(&r.w);
}

/* Behind what an MPLS label is looked for: the spec before it says so. */
Test(uv_flow, mpls_labels_have_a_place_for_each_way_to_them)
{
	static const struct { uint32_t before, mpls; unsigned at; } rows[] = {
		{ UDP, MPLS, MISC2 + 12 }, { GRE, MPLS, MISC2 + 8 }, { TCP, MPLS, MISC2 },
		{ UDP | INNER, MPLS | INNER, MISC2 + 4 }, { ETH, MPLS | INNER, MISC2 + 4 },
		{ UDP, MPLS | INNER, MISC2 + 12 },
	};
	static const uint8_t label[4] = { 1, 2, 3, 4 }, all[4] = { 255, 255, 255, 255 };
	struct flow_rig r = flow_rig_new();

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct flow_ask ask;
		struct emu_flow *flow;

		flow_ask_begin(&ask, &r);
		any_add(&ask, rows[i].before, 8);
		filter_add(&ask, rows[i].mpls, 4, label, all);
		flow = flow_made(&r, &ask);
		CHECK_INT(memcmp(flow->rule.value.bytes + rows[i].at, label, 4), 0);
		CHECK_INT(memcmp(flow->rule.mask.bytes + rows[i].at, all, 4), 0);
		CHECK_INT(flow_free(&r, ask.reply.flow_handle), 0);
	}
	uv_world_end(&r.w);
}

/* What several specs say of one thing must agree. */
Test(uv_flow, specs_that_agree_are_one_rule)
{
	static const uint8_t tcp[12] = { [8] = 6 }, mask[12] = { [8] = 0xff };
	static const uint8_t ip[16] = { [12] = 0x08 }, mpls[16] = { [12] = 0x88, 0x48 };
	static const uint8_t ethertype[16] = { [12] = 0xff, 0xff };
	struct flow_rig r = flow_rig_new();
	struct flow_ask ask;

	flow_ask_begin(&ask, &r);
	filter_add(&ask, ETH, 16, ip, ethertype);
	filter_add(&ask, IPV4, 12, tcp, mask);
	any_add(&ask, TCP, 4);
	CHECK_INT(flow_made(&r, &ask)->rule.mask.bytes[16], 0xff);
	flow_ask_begin(&ask, &r);
	filter_add(&ask, ETH, 16, mpls, ethertype);
	any_add(&ask, IPV6, 40);
	CHECK_INT(flow_make(&r, &ask), 0);
	flow_ask_begin(&ask, &r);
	filter_add(&ask, ETH, 16, ip, ethertype);	/* outer and inner are two things */
	any_add(&ask, IPV6 | INNER, 40);
	any_add(&ask, UDP | INNER, 4);
	any_add(&ask, TCP, 4);
	CHECK_INT(flow_make(&r, &ask), 0);
	uv_world_end(&r.w);
}

/* A mask without a VLAN takes frames with and without one. */
Test(uv_flow, vlans_are_asked_for_by_their_mask)
{
	static const uint8_t vid[16] = { [14] = 0x20, 0x07 }, mask[16] = { [14] = 0x0f, 0xff };
	static const uint8_t masked[16] = { [14] = 0x00, 0x07 };
	struct flow_rig r = flow_rig_new();
	struct flow_ask ask;
	struct emu_flow *flow;

	flow_ask_begin(&ask, &r);
	filter_add(&ask, ETH, 16, masked, mask);
	flow = flow_made(&r, &ask);
	CHECK_INT(flow->rule.mask.bytes[18], 0x80);
	CHECK_INT(flow->rule.mask.bytes[14], 0x0f);
	flow_ask_begin(&ask, &r);
	filter_add(&ask, ETH, 16, vid, (uint8_t[16]){ 0 });
	flow = flow_made(&r, &ask);
	CHECK_INT(flow->rule.mask.bytes[18], 0);
	CHECK_INT(flow->rule.value.bytes[14], 0);
	uv_world_end(&r.w);
}

Test(uv_flow, no_spec_is_all_frames)
{
	static const union steer_key nothing;
	struct flow_rig r = flow_rig_new();
	struct flow_ask ask;

	flow_ask_begin(&ask, &r);
	CHECK_INT(memcmp(&flow_made(&r, &ask)->rule.mask, &nothing, sizeof nothing), 0);
	flow_ask_begin(&ask, &r);
	ask.mlx5_bytes = 0;			/* from another library */
	ask.core.flow_attr.priority = 1;
	CHECK_INT(flow_make(&r, &ask), 0);
	uv_world_end(&r.w);
}

/* --- levels --- */

Test(uv_flow, each_priority_has_two_levels)
{
	struct flow_rig r = flow_rig_new();
	struct flow_ask ask;

	for (uint16_t priority = 0; priority <= 15; priority++) {
		struct emu_flow *flow;

		flow_ask_begin(&ask, &r);
		ask.core.flow_attr.priority = priority;
		mac_add(&ask, 2, 1);
		flow = flow_made(&r, &ask);
		CHECK_INT(flow->rule.level, STEER_LEVEL_NORMAL + 2 * priority + 1);
		CHECK_INT(flow->rule.continues, false);
		ask.core.flow_attr.flags = DONT_TRAP;
		flow = flow_made(&r, &ask);
		CHECK_INT(flow->rule.level, STEER_LEVEL_NORMAL + 2 * priority);
		CHECK_INT(flow->rule.continues, true);
	}
	uv_world_end(&r.w);
}

static struct emu_flow *group_rule(const struct flow_rig *r, struct flow_ask *ask, uint32_t flags)
{
	ask->core.flow_attr.flags = flags;
	ask->core.flow_attr.priority = 3;
	return flow_made(r, ask);
}

Test(uv_flow, rules_for_groups_only_stand_behind_all_priorities)
{
	struct flow_rig r = flow_rig_new();
	static const uint8_t group[12] = { [4] = 239, 1, 1, 1 }, host[12] = { [4] = 10, 1, 1, 1 };
	static const uint8_t all[12] = { [4] = 255, 255, 255, 255 }, part[12] = { [4] = 224 };
	static const uint8_t any_group[12] = { [4] = 224 };
	struct flow_ask ask;

	flow_ask_begin(&ask, &r);
	mac_add(&ask, 1, 1);
	any_add(&ask, TCP, 4);
	CHECK_INT(group_rule(&r, &ask, 0)->rule.level, STEER_LEVEL_MULTICAST);
	CHECK_INT(group_rule(&r, &ask, DONT_TRAP)->rule.level, STEER_LEVEL_NORMAL + 6);
	flow_ask_begin(&ask, &r);
	filter_add(&ask, IPV4, 12, group, all);
	CHECK_INT(group_rule(&r, &ask, 0)->rule.level, STEER_LEVEL_MULTICAST);
	flow_ask_begin(&ask, &r);
	filter_add(&ask, IPV4, 12, any_group, part);	/* whatever the mask */
	CHECK_INT(group_rule(&r, &ask, 0)->rule.level, STEER_LEVEL_MULTICAST);
	flow_ask_begin(&ask, &r);
	filter_add(&ask, IPV4, 12, host, all);
	CHECK_INT(group_rule(&r, &ask, 0)->rule.level, STEER_LEVEL_NORMAL + 7);
	flow_ask_begin(&ask, &r);
	any_add(&ask, TCP, 4);				/* only the first spec counts */
	mac_add(&ask, 1, 2);
	CHECK_INT(group_rule(&r, &ask, 0)->rule.level, STEER_LEVEL_NORMAL + 7);
	flow_ask_begin(&ask, &r);
	filter_add(&ask, IPV4 | INNER, 12, group, all);
	CHECK_INT(group_rule(&r, &ask, 0)->rule.level, STEER_LEVEL_NORMAL + 7);
	uv_world_end(&r.w);
}

/* --- types --- */

static struct emu_flow *type_rule(const struct flow_rig *r, struct flow_ask *ask, uint32_t type)
{
	flow_ask_begin(ask, r);
	ask->core.flow_attr.type = type;
	ask->core.flow_attr.priority = 5;		/* no matter */
	return flow_made(r, ask);
}

static void group_bit_check(const struct emu_flow *flow, uint32_t level, uint8_t mask,
			    uint8_t value)
{
	struct steer_rule want = { .level = level, .mask.bytes[8] = mask, .value.bytes[8] = value };

	CHECK_INT(flow->rule.level, level);
	CHECK_INT(memcmp(&flow->rule.mask, &want.mask, sizeof want.mask), 0);
	CHECK_INT(memcmp(&flow->rule.value, &want.value, sizeof want.value), 0);
}

Test(uv_flow, all_default_is_two_rules_by_the_group_bit)
{
	struct flow_rig r = flow_rig_new();
	struct emu_flow *flow;
	struct flow_ask ask;

	flow = type_rule(&r, &ask, ALL_DEFAULT);
	group_bit_check(flow, STEER_LEVEL_DEFAULT_MULTICAST, 1, 1);
	group_bit_check(flow->next, STEER_LEVEL_DEFAULT, 1, 0);
	CHECK_INT(flow->next->next == NULL, 1);
	CHECK_INT(flow_landing_of(flow)->qp->qpn, r.qp.qpn);
	CHECK_INT(flow_landing_of(flow->next)->qp->qpn, r.qp.qpn);
	CHECK_INT(r.w.dev->flows.taken, 2);
	CHECK_INT(flow_free(&r, ask.reply.flow_handle), 0);
	CHECK_INT(r.w.dev->flows.taken, 0);
	uv_world_end(&r.w);
}

Test(uv_flow, mc_default_is_for_groups)
{
	struct flow_rig r = flow_rig_new();
	struct emu_flow *flow;
	struct flow_ask ask;

	flow = type_rule(&r, &ask, MC_DEFAULT);
	group_bit_check(flow, STEER_LEVEL_DEFAULT_MULTICAST, 1, 1);
	CHECK_INT(flow->rule.continues, false);
	CHECK_INT(flow->next == NULL, 1);
	uv_world_end(&r.w);
}

Test(uv_flow, a_sniffer_takes_nothing_away)
{
	struct flow_rig r = flow_rig_new();
	struct emu_flow *flow;
	struct flow_ask ask;

	flow = type_rule(&r, &ask, SNIFFER);
	group_bit_check(flow, STEER_LEVEL_SNIFFER, 0, 0);
	CHECK_INT(flow->rule.continues, true);
	ask.core.flow_attr.flags = DONT_TRAP;		/* as if it were said twice */
	CHECK_INT(flow_make(&r, &ask), 0);
	uv_world_end(&r.w);
}

/* Specs of these types are read, and then of no effect. */
Test(uv_flow, default_rules_take_no_notice_of_specs)
{
	struct flow_rig r = flow_rig_new();
	struct emu_flow *flow;
	struct flow_ask ask;

	flow_ask_begin(&ask, &r);
	ask.core.flow_attr.type = MC_DEFAULT;
	mac_add(&ask, 2, 1);
	number_add(&ask, TAG, 7);
	spec_add(&ask, DROP, 0);
	flow = flow_made(&r, &ask);
	group_bit_check(flow, STEER_LEVEL_DEFAULT_MULTICAST, 1, 1);
	CHECK_INT(flow_landing_of(flow)->tag, 0);
	CHECK_INT(flow_landing_of(flow)->qp != NULL, 1);
	uv_world_end(&r.w);
}

/* --- actions --- */

Test(uv_flow, a_tag_is_kept_for_completions)
{
	struct flow_rig r = flow_rig_new();
	struct flow_ask ask;

	flow_ask_begin(&ask, &r);
	mac_add(&ask, 2, 1);
	CHECK_INT(flow_landing_of(flow_made(&r, &ask))->tag, 0);
	flow_ask_begin(&ask, &r);
	mac_add(&ask, 2, 2);
	number_add(&ask, TAG, 0xffffff);
	CHECK_INT(flow_landing_of(flow_made(&r, &ask))->tag, 0xffffff);
	uv_world_end(&r.w);
}

Test(uv_flow, a_rule_that_drops_has_no_qp_and_keeps_it)
{
	struct flow_rig r = flow_rig_new();
	struct emu_flow *flow;
	struct flow_ask ask;

	flow_ask_begin(&ask, &r);
	mac_add(&ask, 2, 1);
	spec_add(&ask, DROP, 0);
	flow = flow_made(&r, &ask);
	CHECK_INT(flow_landing_of(flow)->qp == NULL, 1);
	CHECK_INT(flow->kept_qp->qpn, r.qp.qpn);
	CHECK_REFUSED(qp_free(&r.w, r.qp.handle), -EBUSY, WHY_CMD_BUSY);
	CHECK_INT(flow_free(&r, ask.reply.flow_handle), 0);
	CHECK_INT(qp_free(&r.w, r.qp.handle), 0);
	uv_world_end(&r.w);
}

/* --- life --- */

Test(uv_flow, a_qp_with_rules_stays)
{
	struct flow_rig r = flow_rig_new();
	struct flow_ask ask[2];

	for (unsigned i = 0; i < 2; i++) {
		flow_ask_begin(&ask[i], &r);
		mac_add(&ask[i], 2, (uint8_t)i);
		CHECK_INT(flow_make(&r, &ask[i]), 0);
	}
	CHECK_REFUSED(qp_free(&r.w, r.qp.handle), -EBUSY, WHY_CMD_BUSY);
	CHECK_INT(flow_free(&r, ask[0].reply.flow_handle), 0);
	CHECK_REFUSED(qp_free(&r.w, r.qp.handle), -EBUSY, WHY_CMD_BUSY);
	CHECK_INT(flow_free(&r, ask[1].reply.flow_handle), 0);
	CHECK_REFUSED(flow_free(&r, ask[1].reply.flow_handle), -ENOENT, WHY_CMD_HANDLE);
	CHECK_INT(qp_free(&r.w, r.qp.handle), 0);
	uv_world_end(&r.w);
}

Test(uv_flow, the_older_destroy_does_as_much)
{
	struct flow_rig r = flow_rig_new();
	struct ib_uverbs_destroy_flow in = { .comp_mask = 1 };
	struct cmd c = cmd_write(EX(DESTROY_FLOW), &in, sizeof in, NULL, 0);
	struct flow_ask ask;

	flow_ask_begin(&ask, &r);
	CHECK_INT(flow_make(&r, &ask), 0);
	in.flow_handle = ask.reply.flow_handle;
	c = cmd_write(EX(DESTROY_FLOW), &in, sizeof in, NULL, 0);
	CHECK_REFUSED(cmd_run(&r.w, &c), -EINVAL, WHY_CMD_VALUE);
	in.comp_mask = 0;
	c = cmd_write(EX(DESTROY_FLOW), &in, sizeof in, NULL, 0);
	CHECK_INT(cmd_run(&r.w, &c), 0);
	CHECK_INT(r.w.dev->flows.taken, 0);
	uv_world_end(&r.w);
}

/* uv_world_end() looks whether a rule is left. */
Test(uv_flow, closing_the_file_ends_its_rules)
{
	struct flow_rig r = flow_rig_new();
	struct flow_ask ask;

	for (uint32_t type = NORMAL; type <= SNIFFER; type++)
		type_rule(&r, &ask, type);
	CHECK_INT(steer_blocks(r.w.dev->rules) != 0, 1);
	uv_world_end(&r.w);
}

Test(uv_flow, the_answer_must_have_somewhere_to_go)
{
	struct flow_rig r = flow_rig_new();
	struct flow_ask ask;
	struct cmd c;

	flow_ask_begin(&ask, &r);
	ask.core.flow_attr.type = ALL_DEFAULT;
	c = cmd_write(EX(CREATE_FLOW), &ask.core, 24, NOWHERE, sizeof ask.reply);
	CHECK_REFUSED(cmd_run(&r.w, &c), -EFAULT, WHY_CMD_MEMORY);
	CHECK_INT(r.w.dev->flows.taken, 0);
	CHECK_INT(qp_free(&r.w, r.qp.handle), 0);
	uv_world_end(&r.w);
}
