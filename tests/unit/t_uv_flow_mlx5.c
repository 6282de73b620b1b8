/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Matchers of mlx5dv and the rules that are made with them.
 *
 * Method: attributes as libmlx5 sends them, one of them wrong.  Source: Linux, fs.c of mlx5_ib and
 * fs_core.c of mlx5_core, uverbs_ioctl.c.
 */
#include "tests/unit/flow_world.h"

enum { MATCH_BYTES = 512, OUTER = 1, MISC = 2, MISC5 = 64 };
enum { MISS = 1, DROPS = 2 };
enum { NIC_RX, NIC_TX, FDB, RDMA_RX, RDMA_TX };

struct matcher_ask {
	uint8_t mask[MATCH_BYTES + 8];
	unsigned mask_bytes, type, type_bytes, type_reserved;
	uint16_t priority;
	uint8_t criteria;
	int table, flags;		/* -1: not said */
};

static struct matcher_ask matcher_ask_new(void)
{
	return (struct matcher_ask){ .mask_bytes = 64, .type_bytes = 2, .criteria = OUTER,
				     .table = -1, .flags = -1 };
}

static int matcher_make(const struct flow_rig *r, const struct matcher_ask *ask, uint32_t *handle)
{
	struct cmd c = cmd_new(MLX5_IB_OBJECT_FLOW_MATCHER, MLX5_IB_METHOD_FLOW_MATCHER_CREATE);
	struct ib_uverbs_attr *type;
	int ret;

	cmd_obj(&c, MLX5_IB_ATTR_FLOW_MATCHER_CREATE_HANDLE, 0);
	cmd_in(&c, MLX5_IB_ATTR_FLOW_MATCHER_MATCH_MASK, ask->mask, ask->mask_bytes);
	cmd_in(&c, MLX5_IB_ATTR_FLOW_MATCHER_MATCH_CRITERIA, &ask->criteria, 1);
	type = cmd_attr(&c, MLX5_IB_ATTR_FLOW_MATCHER_FLOW_TYPE, ask->type_bytes, ask->priority);
	type->attr_data.enum_data.elem_id = (uint8_t)ask->type;
	type->attr_data.enum_data.reserved = (uint8_t)ask->type_reserved;
	if (ask->table >= 0)
		cmd_u64(&c, MLX5_IB_ATTR_FLOW_MATCHER_FT_TYPE, (uint64_t)ask->table);
	if (ask->flags >= 0)
		cmd_u64(&c, MLX5_IB_ATTR_FLOW_MATCHER_FLOW_FLAGS, (uint64_t)ask->flags);
	ret = cmd_run(&r->w, &c);
	*handle = ret ? OTHER : (uint32_t)c.attr[0].data;
	return ret;
}

static int matcher_free(const struct flow_rig *r, uint32_t handle)
{
	return obj_destroy(&r->w, MLX5_IB_OBJECT_FLOW_MATCHER,
			   MLX5_IB_METHOD_FLOW_MATCHER_DESTROY,
			   MLX5_IB_ATTR_FLOW_MATCHER_DESTROY_HANDLE, handle, 0);
}

struct rule_ask {
	uint8_t value[MATCH_BYTES + 8];
	unsigned value_bytes;
	uint32_t matcher;
	int64_t qp, devx, tag;		/* -1: none */
	uint32_t flags;			/* 0: not said */
	uint32_t action[3], counters[2];
	unsigned actions, counters_count;
	/* result */
	uint32_t handle;
};

/* To the QP, whatever the matcher. */
static struct rule_ask rule_ask_new(const struct flow_rig *r, uint32_t matcher)
{
	return (struct rule_ask){ .value_bytes = 64, .matcher = matcher, .qp = r->qp.handle,
				  .devx = -1, .tag = -1 };
}

static int rule_make(const struct flow_rig *r, struct rule_ask *ask)
{
	struct cmd c = cmd_new(UVERBS_OBJECT_FLOW, MLX5_IB_METHOD_CREATE_FLOW);
	int ret;

	cmd_obj(&c, MLX5_IB_ATTR_CREATE_FLOW_HANDLE, 0);
	cmd_in(&c, MLX5_IB_ATTR_CREATE_FLOW_MATCH_VALUE, ask->value, ask->value_bytes);
	cmd_obj(&c, MLX5_IB_ATTR_CREATE_FLOW_MATCHER, ask->matcher);
	if (ask->qp >= 0)
		cmd_obj(&c, MLX5_IB_ATTR_CREATE_FLOW_DEST_QP, (uint64_t)ask->qp);
	if (ask->devx >= 0)
		cmd_obj(&c, MLX5_IB_ATTR_CREATE_FLOW_DEST_DEVX, (uint64_t)ask->devx);
	if (ask->tag >= 0)
		cmd_u32(&c, MLX5_IB_ATTR_CREATE_FLOW_TAG, (uint32_t)ask->tag);
	if (ask->flags)
		cmd_u32(&c, MLX5_IB_ATTR_CREATE_FLOW_FLAGS, ask->flags);
	if (ask->actions)
		cmd_in(&c, MLX5_IB_ATTR_CREATE_FLOW_ARR_FLOW_ACTIONS, ask->action,
		       4 * ask->actions);
	if (ask->counters_count)
		cmd_in(&c, MLX5_IB_ATTR_CREATE_FLOW_ARR_COUNTERS_DEVX, ask->counters,
		       4 * ask->counters_count);
	ret = cmd_run(&r->w, &c);
	ask->handle = ret ? OTHER : (uint32_t)c.attr[0].data;
	return ret;
}

static struct emu_flow *rule_made(const struct flow_rig *r, struct rule_ask *ask)
{
	CHECK_INT(rule_make(r, ask), 0);
	return flow_of(r, ask->handle);
}

/* --- masks and values --- */

/* As test_mlx5_flow.py has it: 6 bytes stand in the attribute itself. */
Test(uv_flow_mlx5, a_short_mask_is_filled_up_with_zeros)
{
	static const uint8_t mac[6] = { 0x24, 0x8a, 0x07, 1, 2, 3 };
	struct flow_rig r = flow_rig_new();
	struct matcher_ask m = matcher_ask_new();
	struct steer_rule want = { 0 };
	struct emu_flow *flow;
	struct rule_ask rule;
	uint32_t matcher;

	memset(m.mask, 0xff, 6);
	m.mask_bytes = 6;
	CHECK_INT(matcher_make(&r, &m, &matcher), 0);
	rule = rule_ask_new(&r, matcher);
	memcpy(rule.value, mac, 6);
	rule.value_bytes = 6;
	flow = rule_made(&r, &rule);
	memset(want.mask.bytes, 0xff, 6);
	memcpy(want.value.bytes, mac, 6);
	CHECK_INT(memcmp(&flow->rule.mask, &want.mask, sizeof want.mask), 0);
	CHECK_INT(memcmp(&flow->rule.value, &want.value, sizeof want.value), 0);
	CHECK_INT(flow->rule.level, STEER_LEVEL_NORMAL + 1);
	CHECK_INT(flow->rule.continues, false);
	CHECK_INT(flow_landing_of(flow)->qp->qpn, r.qp.qpn);
	CHECK_INT(flow_landing_of(flow)->tag, 0);
	uv_world_end(&r.w);
}

Test(uv_flow_mlx5, masks_and_values_may_have_any_length)
{
	static const unsigned good[] = { 1, 7, 8, 9, 63, 64, 65, 384, 447, 448, 449, 512 };
	static const unsigned bad[] = { 0, 513, 520 };
	struct flow_rig r = flow_rig_new();
	uint32_t matcher, refused;

	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		struct matcher_ask m = matcher_ask_new();
		struct rule_ask rule;

		m.mask[0] = 0xf0;
		m.mask_bytes = good[i];
		CHECK_INT(matcher_make(&r, &m, &matcher), 0);
		rule = rule_ask_new(&r, matcher);
		rule.value[0] = 0x10 * (uint8_t)(i + 1);
		rule.value_bytes = good[sizeof good / sizeof *good - 1 - i];
		CHECK_INT(rule_made(&r, &rule)->rule.value.bytes[0], rule.value[0]);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct matcher_ask m = matcher_ask_new();
		struct rule_ask rule = rule_ask_new(&r, matcher);

		m.mask_bytes = rule.value_bytes = bad[i];
		CHECK_REFUSED(matcher_make(&r, &m, &refused), -EINVAL, WHY_CMD_ATTRIBUTES);
		CHECK_REFUSED(rule_make(&r, &rule), -EINVAL, WHY_CMD_ATTRIBUTES);
	}
	uv_world_end(&r.w);
}

/* The kernel takes such a matcher, and the hardware refuses its rules. */
static void beyond_check(const struct flow_rig *r, const struct matcher_ask *m)
{
	struct rule_ask rule;
	uint32_t matcher;

	CHECK_INT(matcher_make(r, m, &matcher), 0);
	rule = rule_ask_new(r, matcher);
	CHECK_REFUSED(rule_make(r, &rule), -EINVAL, WHY_FLOW_SPEC);
	CHECK_INT(matcher_free(r, matcher), 0);
}

Test(uv_flow_mlx5, a_mask_must_be_where_the_criteria_are)
{
	struct flow_rig r = flow_rig_new();
	struct matcher_ask m = matcher_ask_new();
	struct rule_ask rule;
	uint32_t matcher;

	m.mask[127] = 1;			/* misc */
	m.mask_bytes = 512;
	beyond_check(&r, &m);
	m.criteria = OUTER | MISC;
	CHECK_INT(matcher_make(&r, &m, &matcher), 0);
	rule = rule_ask_new(&r, matcher);
	CHECK_INT(rule_make(&r, &rule), 0);
	m.criteria = 0x80 | OUTER | MISC;	/* there is no such block */
	beyond_check(&r, &m);
	m.criteria = 0x7f;
	m.mask[511] = 1;
	beyond_check(&r, &m);
	uv_world_end(&r.w);
}

Test(uv_flow_mlx5, a_value_must_be_inside_of_its_mask)
{
	struct flow_rig r = flow_rig_new();
	struct matcher_ask m = matcher_ask_new();
	struct rule_ask rule;
	uint32_t matcher;

	m.mask[20] = 0x0f;
	CHECK_INT(matcher_make(&r, &m, &matcher), 0);
	rule = rule_ask_new(&r, matcher);
	rule.value[20] = 0x10;
	CHECK_REFUSED(rule_make(&r, &rule), -EINVAL, WHY_FLOW_SPEC);
	rule.value[20] = 0x05;
	CHECK_INT(rule_make(&r, &rule), 0);
	rule.value[511] = 1;
	rule.value_bytes = 512;
	CHECK_REFUSED(rule_make(&r, &rule), -EINVAL, WHY_FLOW_SPEC);
	uv_world_end(&r.w);
}

/* --- levels --- */

static uint32_t level_of(const struct flow_rig *r, const struct matcher_ask *m,
			 const uint8_t value[64])
{
	struct rule_ask rule;
	uint32_t matcher;

	CHECK_INT(matcher_make(r, m, &matcher), 0);
	rule = rule_ask_new(r, matcher);
	memcpy(rule.value, value, 64);
	return rule_made(r, &rule)->rule.level;
}

Test(uv_flow_mlx5, priorities_are_those_of_other_rules)
{
	static const uint8_t nothing[64];
	struct flow_rig r = flow_rig_new();
	struct matcher_ask m = matcher_ask_new();

	for (m.priority = 0; m.priority < 16; m.priority++)
		CHECK_INT(level_of(&r, &m, nothing), STEER_LEVEL_NORMAL + 2 * m.priority + 1);
	uv_world_end(&r.w);
}

/* The driver asks a mask, too, whether it is an address of a group: one of all ones is not. */
Test(uv_flow_mlx5, rules_for_groups_stand_behind_all_priorities)
{
	static const uint8_t mac[64] = { [8] = 1, [13] = 5 }, host[64] = { [8] = 2 };
	static const uint8_t group[64] = { [60] = 224, 1, 1, 1 };
	struct flow_rig r = flow_rig_new();
	struct matcher_ask m = matcher_ask_new();

	memset(m.mask + 8, 0xff, 6);
	CHECK_INT(level_of(&r, &m, mac), STEER_LEVEL_MULTICAST);
	CHECK_INT(level_of(&r, &m, host), STEER_LEVEL_NORMAL + 1);
	m = matcher_ask_new();
	memset(m.mask + 60, 0xff, 4);
	CHECK_INT(level_of(&r, &m, group), STEER_LEVEL_NORMAL + 1);
	m.mask[60] = 0xef;
	CHECK_INT(level_of(&r, &m, group), STEER_LEVEL_MULTICAST);
	uv_world_end(&r.w);
}

/* --- matchers that are refused, now or later --- */

Test(uv_flow_mlx5, a_type_is_chosen_and_only_one_has_a_priority)
{
	static const struct { unsigned type, bytes, reserved; int rc; enum why why; } rows[] = {
		{ 0, 2, 0, 0, WHY_NONE }, { 1, 0, 0, 0, WHY_NONE }, { 2, 0, 0, 0, WHY_NONE },
		{ 3, 0, 0, 0, WHY_NONE },
		{ 4, 0, 0, -EOPNOTSUPP, WHY_CMD_UNSUPPORTED },
		{ 255, 2, 1, -EOPNOTSUPP, WHY_CMD_UNSUPPORTED },
		{ 0, 2, 1, -EINVAL, WHY_CMD_ATTRIBUTES }, { 0, 0, 0, -EINVAL, WHY_CMD_ATTRIBUTES },
		{ 0, 1, 0, -EINVAL, WHY_CMD_ATTRIBUTES }, { 0, 4, 0, -EINVAL, WHY_CMD_ATTRIBUTES },
		{ 1, 2, 0, -EINVAL, WHY_CMD_ATTRIBUTES }, { 3, 1, 0, -EINVAL, WHY_CMD_ATTRIBUTES },
	};
	struct flow_rig r = flow_rig_new();
	uint32_t handle;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct matcher_ask m = matcher_ask_new();

		m.type = rows[i].type;
		m.type_bytes = rows[i].bytes;
		m.type_reserved = rows[i].reserved;
		if (rows[i].rc)
			CHECK_REFUSED(matcher_make(&r, &m, &handle), rows[i].rc, rows[i].why);
		else
			CHECK_INT(matcher_make(&r, &m, &handle), 0);
	}
	uv_world_end(&r.w);
}

static int rule_with(const struct flow_rig *r, const struct matcher_ask *m, bool has_qp,
		     uint32_t flags)
{
	struct rule_ask rule;
	uint32_t matcher;
	int ret;

	CHECK_INT(matcher_make(r, m, &matcher), 0);
	rule = rule_ask_new(r, matcher);
	rule.qp = has_qp ? rule.qp : -1;
	rule.flags = flags;
	ret = rule_make(r, &rule);
	if (!ret)
		CHECK_INT(flow_free(r, rule.handle), 0);
	CHECK_INT(matcher_free(r, matcher), 0);
	return ret;
}

Test(uv_flow_mlx5, other_types_have_no_rules)
{
	struct flow_rig r = flow_rig_new();
	struct matcher_ask m = matcher_ask_new();

	m.type_bytes = 0;
	for (m.type = 1; m.type < 4; m.type++)
		CHECK_REFUSED(rule_with(&r, &m, true, 0), -EOPNOTSUPP, WHY_CMD_UNSUPPORTED);
	m = matcher_ask_new();
	m.priority = 16;
	CHECK_REFUSED(rule_with(&r, &m, true, 0), -ENOMEM, WHY_CMD_LIMIT);
	uv_world_end(&r.w);
}

Test(uv_flow_mlx5, only_frames_that_come_in_are_steered)
{
	static const struct {
		int table, flags;
		bool has_qp;
		uint32_t rule_flags;
		int rc;
	} rows[] = {
		{ NIC_RX, -1, true, 0, 0 }, { -1, 0, true, 0, 0 },
		{ NIC_TX, -1, true, 0, -EINVAL }, { NIC_TX, -1, false, DROPS, -EOPNOTSUPP },
		{ NIC_TX, -1, false, 0, -EOPNOTSUPP }, { -1, EGRESS, true, 0, -EINVAL },
		{ -1, EGRESS, false, DROPS, -EOPNOTSUPP },
		{ RDMA_RX, -1, true, 0, -EOPNOTSUPP }, { RDMA_RX, -1, false, 0, -EINVAL },
		{ RDMA_RX, -1, true, DROPS, -EOPNOTSUPP }, { RDMA_RX, -1, false, DROPS, -EINVAL },
		{ RDMA_TX, -1, true, 0, -EINVAL }, { RDMA_TX, -1, false, DROPS, -EOPNOTSUPP },
	};
	struct flow_rig r = flow_rig_new();

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct matcher_ask m = matcher_ask_new();

		m.table = rows[i].table;
		m.flags = rows[i].flags;
		CHECK_INT(rule_with(&r, &m, rows[i].has_qp, rows[i].rule_flags), rows[i].rc);
	}
	uv_world_end(&r.w);
}

Test(uv_flow_mlx5, a_table_is_named_once_and_exists)
{
	static const struct { int table, flags; enum why why; } rows[] = {
		{ FDB, -1, WHY_CMD_VALUE }, { RDMA_TX + 1, -1, WHY_CMD_VALUE },
		{ NIC_RX, 0, WHY_CMD_ATTRIBUTES }, { NIC_TX, EGRESS, WHY_CMD_ATTRIBUTES },
		{ -1, DONT_TRAP, WHY_CMD_VALUE },
	};
	struct flow_rig r = flow_rig_new();
	uint32_t handle;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct matcher_ask m = matcher_ask_new();

		m.table = rows[i].table;
		m.flags = rows[i].flags;
		CHECK_REFUSED(matcher_make(&r, &m, &handle), -EINVAL, rows[i].why);
	}
	uv_world_end(&r.w);
}

/* --- where frames go --- */

Test(uv_flow_mlx5, frames_go_to_one_place)
{
	struct flow_rig r = flow_rig_new();
	struct matcher_ask m = matcher_ask_new();

	CHECK_INT(rule_with(&r, &m, true, 0), 0);
	CHECK_INT(rule_with(&r, &m, false, DROPS), 0);
	CHECK_INT(rule_with(&r, &m, false, MISS), 0);
	CHECK_REFUSED(rule_with(&r, &m, false, 0), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(rule_with(&r, &m, false, MISS | DROPS), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(rule_with(&r, &m, true, DROPS), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(rule_with(&r, &m, true, MISS), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(rule_with(&r, &m, true, 4), -EINVAL, WHY_CMD_VALUE);
	uv_world_end(&r.w);
}

Test(uv_flow_mlx5, rules_that_drop_and_that_miss_differ)
{
	struct flow_rig r = flow_rig_new();
	struct matcher_ask m = matcher_ask_new();
	struct rule_ask drop, miss;
	uint32_t matcher;

	CHECK_INT(matcher_make(&r, &m, &matcher), 0);
	drop = miss = rule_ask_new(&r, matcher);
	drop.qp = miss.qp = -1;
	drop.flags = DROPS;
	miss.flags = MISS;
	CHECK_INT(rule_made(&r, &miss)->number & FLOW_MISSES, FLOW_MISSES);
	CHECK_REFUSED(rule_make(&r, &drop), -EEXIST, WHY_FLOW_CONFLICT);
	CHECK_INT(flow_free(&r, miss.handle), 0);
	CHECK_INT(rule_made(&r, &drop)->number & FLOW_MISSES, 0);
	CHECK_INT(flow_landing_of(flow_of(&r, drop.handle))->qp == NULL, 1);
	CHECK_REFUSED(rule_make(&r, &miss), -EEXIST, WHY_FLOW_CONFLICT);
	uv_world_end(&r.w);
}

Test(uv_flow_mlx5, a_tag_is_kept_for_completions)
{
	struct flow_rig r = flow_rig_new();
	struct matcher_ask m = matcher_ask_new();
	struct rule_ask rule;
	uint32_t matcher;

	CHECK_INT(matcher_make(&r, &m, &matcher), 0);
	rule = rule_ask_new(&r, matcher);
	rule.tag = 0x1000000;
	CHECK_REFUSED(rule_make(&r, &rule), -EINVAL, WHY_CMD_VALUE);
	rule.tag = 0xffffff;
	CHECK_INT(flow_landing_of(rule_made(&r, &rule))->tag, 0xffffff);
	rule.tag = 1;
	CHECK_REFUSED(rule_make(&r, &rule), -EEXIST, WHY_FLOW_CONFLICT);
	uv_world_end(&r.w);
}

Test(uv_flow_mlx5, what_devx_would_make_is_not_there)
{
	struct flow_rig r = flow_rig_new();
	struct matcher_ask m = matcher_ask_new();
	struct rule_ask rule;
	uint32_t matcher;

	CHECK_INT(matcher_make(&r, &m, &matcher), 0);
	rule = rule_ask_new(&r, matcher);
	rule.devx = OTHER;
	CHECK_REFUSED(rule_make(&r, &rule), -ENOENT, WHY_CMD_HANDLE);
	rule.devx = r.qp.handle;
	CHECK_REFUSED(rule_make(&r, &rule), -EINVAL, WHY_CMD_HANDLE);
	rule = rule_ask_new(&r, matcher);
	rule.action[0] = rule.counters[0] = OTHER;
	rule.actions = 1;
	CHECK_REFUSED(rule_make(&r, &rule), -ENOENT, WHY_CMD_HANDLE);
	rule.actions = 2;
	CHECK_REFUSED(rule_make(&r, &rule), -ENOENT, WHY_CMD_HANDLE);
	rule.actions = 3;
	CHECK_REFUSED(rule_make(&r, &rule), -EINVAL, WHY_CMD_ATTRIBUTES);
	rule.actions = 0;
	rule.counters_count = 1;
	CHECK_REFUSED(rule_make(&r, &rule), -ENOENT, WHY_CMD_HANDLE);
	rule.counters[0] = r.qp.handle;
	CHECK_REFUSED(rule_make(&r, &rule), -EINVAL, WHY_CMD_HANDLE);
	rule.counters_count = 2;
	CHECK_REFUSED(rule_make(&r, &rule), -EINVAL, WHY_CMD_ATTRIBUTES);
	uv_world_end(&r.w);
}

Test(uv_flow_mlx5, rules_are_for_raw_packet_qps_only)
{
	static const uint64_t types[] = { IB_UVERBS_QPT_RC, IB_UVERBS_QPT_UD };
	struct flow_rig r = flow_rig_new();
	struct matcher_ask m = matcher_ask_new();
	struct rule_ask rule;
	uint32_t matcher;

	CHECK_INT(matcher_make(&r, &m, &matcher), 0);
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		struct qp_ask qp = qp_ask_new(&r.w, r.pd, r.cq);

		qp.type = types[i];
		CHECK_INT(qp_make(&r.w, &qp), 0);
		rule = rule_ask_new(&r, matcher);
		rule.qp = qp.handle;
		CHECK_REFUSED(rule_make(&r, &rule), -EINVAL, WHY_CMD_VALUE);
	}
	uv_world_end(&r.w);
}

/* --- life --- */

static int rule_free(const struct flow_rig *r, uint32_t handle)
{
	return obj_destroy(&r->w, UVERBS_OBJECT_FLOW, MLX5_IB_METHOD_DESTROY_FLOW,
			   MLX5_IB_ATTR_DESTROY_FLOW_HANDLE, handle, 0);
}

Test(uv_flow_mlx5, matchers_and_qps_with_rules_stay)
{
	struct flow_rig r = flow_rig_new();
	struct matcher_ask m = matcher_ask_new();
	struct rule_ask rule[2];
	uint32_t matcher;

	CHECK_INT(matcher_make(&r, &m, &matcher), 0);
	for (unsigned i = 0; i < 2; i++) {
		rule[i] = rule_ask_new(&r, matcher);
		CHECK_INT(rule_make(&r, &rule[i]), 0);
	}
	CHECK_REFUSED(matcher_free(&r, matcher), -EBUSY, WHY_CMD_BUSY);
	CHECK_REFUSED(qp_free(&r.w, r.qp.handle), -EBUSY, WHY_CMD_BUSY);
	CHECK_INT(rule_free(&r, rule[0].handle), 0);
	CHECK_REFUSED(matcher_free(&r, matcher), -EBUSY, WHY_CMD_BUSY);
	CHECK_INT(flow_free(&r, rule[1].handle), 0);
	CHECK_INT(matcher_free(&r, matcher), 0);
	CHECK_INT(qp_free(&r.w, r.qp.handle), 0);
	CHECK_REFUSED(matcher_free(&r, matcher), -ENOENT, WHY_CMD_HANDLE);
	uv_world_end(&r.w);
}

/* Either command destroys both sorts. */
Test(uv_flow_mlx5, rules_are_rules)
{
	struct flow_rig r = flow_rig_new();
	struct flow_ask ask;

	flow_ask_begin(&ask, &r);
	CHECK_INT(flow_make(&r, &ask), 0);
	CHECK_INT(rule_free(&r, ask.reply.flow_handle), 0);
	CHECK_INT(r.w.dev->flows.taken, 0);
	uv_world_end(&r.w);
}

Test(uv_flow_mlx5, closing_the_file_ends_rules_before_matchers)
{
	struct flow_rig r = flow_rig_new();
	struct matcher_ask m = matcher_ask_new();
	struct rule_ask rule;
	uint32_t matcher;

	CHECK_INT(matcher_make(&r, &m, &matcher), 0);
	rule = rule_ask_new(&r, matcher);
	CHECK_INT(rule_make(&r, &rule), 0);
	uv_world_end(&r.w);
}

/* --- what the environment says --- */

Test(uv_flow_mlx5, rules_can_be_denied_and_matchers_not)
{
	struct flow_rig r = flow_rig_new();
	struct matcher_ask m = matcher_ask_new();

	r.w.dev->options.net_raw = NET_RAW_DENY;
	CHECK_REFUSED(rule_with(&r, &m, true, 0), -EPERM, WHY_CMD_CAPABILITY);
	CHECK_REFUSED(rule_with(&r, &m, true, DROPS), -EPERM, WHY_CMD_CAPABILITY);
	r.w.dev->options.net_raw = NET_RAW_UNSAID;
	r.w.dev->options.is_steering_off = true;
	CHECK_REFUSED(rule_with(&r, &m, true, 0), -EOPNOTSUPP, WHY_CMD_UNSUPPORTED);
	uv_world_end(&r.w);
}

static uint32_t handles_of(const struct uv_world *w, uint64_t object)
{
	struct cmd c = cmd_new(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES);
	uint32_t list[8], count = 0;

	cmd_u64(&c, UVERBS_ATTR_INFO_OBJECT_ID, object);
	cmd_out(&c, UVERBS_ATTR_INFO_TOTAL_HANDLES, &count, 4);
	cmd_out(&c, UVERBS_ATTR_INFO_HANDLES_LIST, list, sizeof list);
	CHECK_INT(cmd_run(w, &c), 0);
	return count;
}

Test(uv_flow_mlx5, matchers_and_rules_are_listed)
{
	struct flow_rig r = flow_rig_new();
	struct matcher_ask m = matcher_ask_new();
	struct rule_ask rule;
	uint32_t matcher;

	CHECK_INT(matcher_make(&r, &m, &matcher), 0);
	rule = rule_ask_new(&r, matcher);
	CHECK_INT(rule_make(&r, &rule), 0);
	CHECK_INT(rule_make(&r, &rule), 0);
	CHECK_INT(handles_of(&r.w, UVERBS_OBJECT_FLOW), 2);
	CHECK_INT(handles_of(&r.w, MLX5_IB_OBJECT_FLOW_MATCHER), 1);
	CHECK_INT(handles_of(&r.w, UVERBS_OBJECT_COUNTERS), 0);
	uv_world_end(&r.w);
}
