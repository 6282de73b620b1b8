/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of flow rules: what the first rule says of them, what is read, and when they are free.
 *
 * Method: rules with a COUNT spec and the driver's data as libmlx5 sends it; frames are counted by
 * hand.  Source: Linux, uverbs_std_types_counters.c and counters.c of mlx5_ib.
 */
#include "tests/unit/flow_world.h"

enum { PACKETS, BYTES };
enum { UNTOUCHED = 0x77 };

struct counters_rig {
	struct flow_rig f;
	uint32_t counters;
	uint8_t next_mac;
	struct mlx5_ib_flow_counters_desc item[4];
	unsigned items;
	uint64_t value[8];
};

static uint32_t counters_make(const struct uv_world *w)
{
	struct cmd c = cmd_new(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE);

	cmd_obj(&c, UVERBS_ATTR_CREATE_COUNTERS_HANDLE, 0);
	CHECK_INT(cmd_run(w, &c), 0);
	return (uint32_t)c.attr[0].data;
}

static int counters_free(const struct counters_rig *r)
{
	return obj_destroy(&r->f.w, UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_DESTROY,
			   UVERBS_ATTR_DESTROY_COUNTERS_HANDLE, r->counters, 0);
}

static struct counters_rig rig_new(void)
{
	struct counters_rig r = { .f = flow_rig_new() };

	r.counters = counters_make(&r.f.w);
	return r;
}

static void item_add(struct counters_rig *r, uint32_t what, uint32_t index)
{
	r->item[r->items++] = (struct mlx5_ib_flow_counters_desc){ what, index };
}

/* A rule like no other. */
static void ask_begin(struct counters_rig *r, struct flow_ask *ask)
{
	flow_ask_begin(ask, &r->f);
	mac_add(ask, 2, r->next_mac++);
	number_add(ask, COUNT, r->counters);
}

static void describe(struct counters_rig *r, struct flow_ask *ask)
{
	ask->mlx5.count = 1;
	ask->mlx5.data[0].counters_data = (uintptr_t)r->item;
	ask->mlx5.data[0].ncounters = r->items;
	ask->mlx5_bytes = 24;
}

/* A rule that says what can be read: packets first, then bytes. */
static struct emu_flow *described(struct counters_rig *r, struct flow_ask *ask)
{
	r->items = 0;
	item_add(r, PACKETS, 0);
	item_add(r, BYTES, 1);
	ask_begin(r, ask);
	describe(r, ask);
	return flow_made(&r->f, ask);
}

static struct emu_flow *undescribed(struct counters_rig *r, struct flow_ask *ask)
{
	ask_begin(r, ask);
	return flow_made(&r->f, ask);
}

static int counters_read(struct counters_rig *r, unsigned bytes)
{
	struct cmd c = cmd_new(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_READ);

	memset(r->value, UNTOUCHED, sizeof r->value);
	cmd_obj(&c, UVERBS_ATTR_READ_COUNTERS_HANDLE, r->counters);
	cmd_out(&c, UVERBS_ATTR_READ_COUNTERS_BUFF, r->value, bytes);
	cmd_u32(&c, UVERBS_ATTR_READ_COUNTERS_FLAGS, IB_UVERBS_READ_COUNTERS_PREFER_CACHED);
	return cmd_run(&r->f.w, &c);
}

Test(uv_counters, packets_and_bytes_are_where_the_first_rule_said)
{
	struct counters_rig r = rig_new();
	struct emu_flow *flow;
	struct flow_ask ask;

	item_add(&r, BYTES, 0);
	item_add(&r, PACKETS, 3);
	ask_begin(&r, &ask);
	describe(&r, &ask);
	flow = flow_made(&r.f, &ask);
	flow_count(flow_landing_of(flow), 100);
	flow_count(flow_landing_of(flow), 60);
	CHECK_INT(counters_read(&r, 40), 0);
	CHECK_INT(r.value[0], 160);
	CHECK_INT(r.value[1] + r.value[2], 0);
	CHECK_INT(r.value[3], 2);
	CHECK_INT(r.value[4], 0);
	CHECK_INT(((uint8_t *)r.value)[40], UNTOUCHED);
	uv_world_end(&r.f.w);
}

Test(uv_counters, an_index_named_twice_has_the_sum)
{
	struct counters_rig r = rig_new();
	struct flow_ask ask;

	item_add(&r, PACKETS, 0);
	item_add(&r, BYTES, 0);
	item_add(&r, BYTES, 0);
	ask_begin(&r, &ask);
	describe(&r, &ask);
	flow_count(flow_landing_of(flow_made(&r.f, &ask)), 100);
	CHECK_INT(counters_read(&r, 8), 0);
	CHECK_INT(r.value[0], 201);
	uv_world_end(&r.f.w);
}

Test(uv_counters, there_must_be_room_for_every_index)
{
	struct counters_rig r = rig_new();
	struct flow_ask ask;

	described(&r, &ask);
	CHECK_REFUSED(counters_read(&r, 0), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(counters_read(&r, 15), -EINVAL, WHY_CMD_VALUE);
	CHECK_INT(counters_read(&r, 20), 0);		/* part of a number is none */
	CHECK_INT(r.value[1], 0);
	CHECK_INT(((uint8_t *)r.value)[16], UNTOUCHED);
	uv_world_end(&r.f.w);
}

/* libmlx5 describes counters with their first rule only. */
Test(uv_counters, rules_share_counters)
{
	struct counters_rig r = rig_new();
	struct flow_ask ask[3];

	flow_count(flow_landing_of(described(&r, &ask[0])), 10);
	flow_count(flow_landing_of(undescribed(&r, &ask[1])), 20);
	CHECK_INT(counters_read(&r, 16), 0);
	CHECK_INT(r.value[PACKETS], 2);
	CHECK_INT(r.value[BYTES], 30);
	CHECK_INT(flow_free(&r.f, ask[0].reply.flow_handle), 0);
	CHECK_INT(counters_read(&r, 16), 0);		/* what has gone has counted */
	CHECK_INT(r.value[BYTES], 30);
	ask_begin(&r, &ask[2]);
	describe(&r, &ask[2]);
	CHECK_REFUSED(flow_make(&r.f, &ask[2]), -EINVAL, WHY_CMD_VALUE);
	CHECK_INT(counters_read(&r, 16), 0);
	uv_world_end(&r.f.w);
}

Test(uv_counters, without_a_rule_nothing_is_read_and_nothing_forgotten)
{
	struct counters_rig r = rig_new();
	struct flow_ask ask;

	CHECK_REFUSED(counters_read(&r, 16), -EINVAL, WHY_CMD_VALUE);
	flow_count(flow_landing_of(described(&r, &ask)), 10);
	CHECK_INT(flow_free(&r.f, ask.reply.flow_handle), 0);
	CHECK_REFUSED(counters_read(&r, 16), -EINVAL, WHY_CMD_VALUE);
	ask_begin(&r, &ask);			/* what was said has gone with it */
	CHECK_REFUSED(flow_make(&r.f, &ask), -EINVAL, WHY_CMD_VALUE);
	flow_count(flow_landing_of(described(&r, &ask)), 20);
	CHECK_INT(counters_read(&r, 16), 0);
	CHECK_INT(r.value[PACKETS], 2);
	CHECK_INT(r.value[BYTES], 30);
	uv_world_end(&r.f.w);
}

Test(uv_counters, counters_in_use_stay)
{
	struct counters_rig r = rig_new();
	struct flow_ask ask;

	described(&r, &ask);
	CHECK_REFUSED(counters_free(&r), -EBUSY, WHY_CMD_BUSY);
	CHECK_INT(flow_free(&r.f, ask.reply.flow_handle), 0);
	CHECK_INT(counters_free(&r), 0);
	CHECK_REFUSED(counters_free(&r), -ENOENT, WHY_CMD_HANDLE);
	uv_world_end(&r.f.w);
}

/* --- what is refused --- */

static int item_try(struct counters_rig *r, uint32_t what)
{
	struct flow_ask ask;

	r->items = 0;
	item_add(r, PACKETS, 0);
	item_add(r, what, 1);
	ask_begin(r, &ask);
	describe(r, &ask);
	return flow_make(&r->f, &ask);
}

Test(uv_counters, only_packets_and_bytes_are_counted)
{
	struct counters_rig r = rig_new();

	CHECK_REFUSED(item_try(&r, 2), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(item_try(&r, UINT32_MAX), -EINVAL, WHY_CMD_VALUE);
	CHECK_REFUSED(counters_read(&r, 16), -EINVAL, WHY_CMD_VALUE);
	CHECK_INT(item_try(&r, BYTES), 0);
	CHECK_INT(counters_read(&r, 16), 0);
	uv_world_end(&r.f.w);
}

Test(uv_counters, descriptions_are_read_with_care)
{
	struct counters_rig r = rig_new();
	struct flow_ask ask;

	ask_begin(&r, &ask);
	CHECK_REFUSED(flow_make(&r.f, &ask), -EINVAL, WHY_CMD_VALUE);
	describe(&r, &ask);
	ask.mlx5.data[0].ncounters = 8192;
	CHECK_REFUSED(flow_make(&r.f, &ask), -EINVAL, WHY_CMD_VALUE);
	ask.mlx5.data[0].ncounters = UINT32_MAX;
	CHECK_REFUSED(flow_make(&r.f, &ask), -EINVAL, WHY_CMD_VALUE);
	ask.mlx5.data[0].ncounters = 1;
	ask.mlx5.data[0].counters_data = (uintptr_t)NOWHERE;
	CHECK_REFUSED(flow_make(&r.f, &ask), -EFAULT, WHY_CMD_MEMORY);
	ask.mlx5.data[0].counters_data = UINT64_MAX;
	CHECK_REFUSED(flow_make(&r.f, &ask), -EFAULT, WHY_CMD_MEMORY);
	CHECK_INT(r.f.w.dev->flows.taken, 0);
	CHECK_INT(counters_free(&r), 0);
	uv_world_end(&r.f.w);
}

/* As many as there can be, all over the place. */
Test(uv_counters, indices_may_be_anything)
{
	struct counters_rig r = rig_new();
	struct mlx5_ib_flow_counters_desc *item = (void *)world_pages(16);
	struct flow_ask ask;

	for (unsigned i = 0; i < 8191; i++)
		item[i].index = i;
	ask_begin(&r, &ask);
	describe(&r, &ask);
	ask.mlx5.data[0].counters_data = (uintptr_t)item;
	ask.mlx5.data[0].ncounters = 8191;
	CHECK_INT(flow_make(&r.f, &ask), 0);
	CHECK_REFUSED(counters_read(&r, 64), -EINVAL, WHY_CMD_VALUE);
	CHECK_INT(flow_free(&r.f, ask.reply.flow_handle), 0);
	item[0].index = UINT32_MAX;
	ask.mlx5.data[0].ncounters = 1;
	CHECK_INT(flow_make(&r.f, &ask), 0);
	CHECK_REFUSED(counters_read(&r, 64), -EINVAL, WHY_CMD_VALUE);
	uv_world_end(&r.f.w);
}

Test(uv_counters, nothing_can_be_asked_for_too)
{
	struct counters_rig r = rig_new();
	struct flow_ask ask;

	ask_begin(&r, &ask);
	describe(&r, &ask);
	CHECK_INT(flow_make(&r.f, &ask), 0);
	CHECK_INT(counters_read(&r, 16), 0);
	CHECK_INT(r.value[0] + r.value[1], 0);
	CHECK_INT(counters_read(&r, 0), 0);
	ask_begin(&r, &ask);			/* and then it was not said what is */
	CHECK_REFUSED(flow_make(&r.f, &ask), -EINVAL, WHY_CMD_VALUE);
	uv_world_end(&r.f.w);
}

/* A rule that does not come to be leaves no description, unless others live by it. */
Test(uv_counters, a_refused_rule_leaves_nothing)
{
	struct counters_rig r = rig_new();
	uint8_t value[4] = { 1 }, mask[4] = { 0 };
	struct flow_ask ask;

	item_add(&r, PACKETS, 0);
	ask_begin(&r, &ask);
	filter_add(&ask, TCP, 4, value, mask);
	describe(&r, &ask);
	CHECK_REFUSED(flow_make(&r.f, &ask), -EINVAL, WHY_FLOW_SPEC);
	ask_begin(&r, &ask);
	CHECK_REFUSED(flow_make(&r.f, &ask), -EINVAL, WHY_CMD_VALUE);
	described(&r, &ask);
	ask_begin(&r, &ask);
	filter_add(&ask, TCP, 4, value, mask);
	CHECK_REFUSED(flow_make(&r.f, &ask), -EINVAL, WHY_FLOW_SPEC);
	CHECK_INT(counters_read(&r, 16), 0);
	uv_world_end(&r.f.w);
}

Test(uv_counters, a_rule_counts_once)
{
	struct counters_rig r = rig_new();
	struct flow_ask ask;

	item_add(&r, PACKETS, 0);
	ask_begin(&r, &ask);
	number_add(&ask, COUNT, r.counters);
	describe(&r, &ask);
	CHECK_REFUSED(flow_make(&r.f, &ask), -EINVAL, WHY_FLOW_SPEC);
	CHECK_INT(counters_free(&r), 0);
	uv_world_end(&r.f.w);
}

/* Default rules take no notice of their specs. */
Test(uv_counters, default_rules_do_not_count)
{
	struct counters_rig r = rig_new();
	struct flow_ask ask;

	ask_begin(&r, &ask);
	ask.core.flow_attr.type = ALL_DEFAULT;
	CHECK_INT(flow_landing_of(flow_made(&r.f, &ask))->counters == NULL, 1);
	CHECK_REFUSED(counters_read(&r, 16), -EINVAL, WHY_CMD_VALUE);
	uv_world_end(&r.f.w);
}

Test(uv_counters, dropped_frames_count)
{
	struct counters_rig r = rig_new();
	struct flow_ask ask;

	item_add(&r, BYTES, 0);
	ask_begin(&r, &ask);
	spec_add(&ask, DROP, 0);
	describe(&r, &ask);
	flow_count(flow_landing_of(flow_made(&r.f, &ask)), 64);
	CHECK_INT(counters_read(&r, 8), 0);
	CHECK_INT(r.value[0], 64);
	uv_world_end(&r.f.w);
}
