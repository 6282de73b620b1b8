/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The framing of write(), with every write command; and commands that a ConnectX has and this
 * device does not, with anything in them.
 *
 * Method: garble_fault.h.  Source of what is wanted: device-abi B.3; Linux, uverbs_main.c and
 * uverbs_cmd.c.
 */
#include "tests/unit/garble_fault.h"

static bool is_first_of_long(const struct command *c, const struct uv_attr *row)
{
	return is_first(c, row) && is_extended(c->method);
}

static void word_add(struct command *c, unsigned i)
{
	(void)i;
	c->words_more = 1;
}

static void word_take(struct command *c, unsigned i)
{
	(void)i;
	c->words_more = -1;
}

Test(uv_garble_frames, more_words_than_bytes_are_einval)
{
	FAULT(IN_WRITE, is_first, word_add, want_einval);
}

Test(uv_garble_frames, fewer_words_than_bytes_are_einval)
{
	FAULT(IN_WRITE, is_first, word_take, want_einval);
}

static void header_reserve(struct command *c, unsigned i)
{
	(void)i;
	c->header_reserved = 1;
}

Test(uv_garble_frames, reserved_word_of_an_extended_header_is_einval)
{
	FAULT(IN_WRITE, is_first_of_long, header_reserve, want_einval);
}

static bool is_core_out(const struct command *c, const struct uv_attr *row)
{
	return is_there(c, row) && row->id == UVERBS_ATTR_CORE_OUT;
}

static bool is_core_out_of_long(const struct command *c, const struct uv_attr *row)
{
	return is_core_out(c, row) && is_extended(c->method);
}

static void answer_nowhere(struct command *c, unsigned i)
{
	(void)i;
	c->response = (uintptr_t)NOWHERE;
}

Test(uv_garble_frames, answer_nowhere_is_efault)
{
	FAULT(IN_WRITE, is_core_out, answer_nowhere, want_efault_if_whole);
}

static void answer_unwanted(struct command *c, unsigned i)
{
	(void)i;
	c->response = 0;
}

Test(uv_garble_frames, room_without_an_address_is_einval_in_an_extended_command)
{
	FAULT(IN_WRITE, is_core_out_of_long, answer_unwanted, want_einval);
}

static void room_take(struct command *c, unsigned i)
{
	(void)i;
	for (unsigned k = 0; k < c->method->attr_count; k++)
		if (is_output(&c->method->attr[k]))
			c->part[k].is_given = false;
	c->response = (uintptr_t)uv_memory->out;
}

Test(uv_garble_frames, address_without_room_is_einval_in_an_extended_command)
{
	FAULT(IN_WRITE, is_core_out_of_long, room_take, want_einval);
}

/* Who wants no answer may ask an extended command all the same. */
static void answer_forgo(struct command *c, unsigned i)
{
	room_take(c, i);
	c->response = UINT64_MAX;
}

Test(uv_garble_frames, extended_command_may_go_unanswered)
{
	FAULT(IN_WRITE, is_core_out_of_long, answer_forgo, want_whole);
}

/* --- commands that are not here --- */

static void absent_check(const struct uv_method *m, enum channel channel)
{
	static struct command c;
	struct inventory before = inventory_take(), after;
	int got;

	command_make(&c, channel, m);
	c.part[UV_ATTRS_MAX] = (struct part){ true, UVERBS_ATTR_UHW_IN, 200, 1, 9,
					      (uintptr_t)NOWHERE };
	got = command_run(&c);
	after = inventory_take();
	cr_assert(got == (channel == BY_INVOKE ? -EINVAL : -EOPNOTSUPP), "%s: %d", m->name, got);
	cr_assert(!memcmp(&before, &after, sizeof after));
}

Test(uv_garble_frames, absent_command_is_eopnotsupp_before_anything_else_is_looked_at)
{
	garble_begin(true);
	for (unsigned k = 0; k < uv_method_count; k++)
		if (!uv_methods[k].run)
			absent_check(&uv_methods[k], BY_IOCTL);
	for (unsigned k = 0; k < uv_command_count; k++) {
		if (uv_commands[k].run)
			continue;
		absent_check(&uv_commands[k], BY_WRITE);
		absent_check(&uv_commands[k], BY_INVOKE);	/* INVOKE_WRITE's own attributes */
	}
	garble_end();
}

/* --- the rows themselves --- */

#define CMD(name)	IB_USER_VERBS_CMD_##name
#define EX(name)	(IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_##name)
#define UPTO(type, member)	(offsetof(struct type, member) + sizeof(((struct type *)0)->member))

/* What Linux wants of each command, in uverbs_cmd.c: the least of both structures, and whether a
 * plain one has driver data behind them. */
static const struct size_rule {
	uint32_t command;
	uint16_t in, out;
	bool has_driver_data;
} size_rules[] = {
	{ CMD(GET_CONTEXT), 8, 8, true }, { CMD(QUERY_DEVICE), 8, 176, false },
	{ CMD(QUERY_PORT), 16, 40, false }, { CMD(ALLOC_PD), 8, 4, true },
	{ CMD(DEALLOC_PD), 4, 0, false }, { CMD(CREATE_AH), 56, 4, true },
	{ CMD(DESTROY_AH), 4, 0, false }, { CMD(REG_MR), 40, 12, true },
	{ CMD(REREG_MR), 48, 8, true }, { CMD(DEREG_MR), 4, 0, false },
	{ CMD(ALLOC_MW), 16, 8, true }, { CMD(DEALLOC_MW), 4, 0, false },
	{ CMD(CREATE_COMP_CHANNEL), 8, 4, false }, { CMD(CREATE_CQ), 32, 8, true },
	{ CMD(RESIZE_CQ), 16, 8, true }, { CMD(DESTROY_CQ), 16, 8, false },
	{ CMD(CREATE_QP), 56, 32, true }, { CMD(QUERY_QP), 16, 128, false },
	{ CMD(MODIFY_QP), 112, 0, false }, { CMD(DESTROY_QP), 16, 4, false },
	{ CMD(ATTACH_MCAST), 24, 0, false }, { CMD(DETACH_MCAST), 24, 0, false },
	{ CMD(CREATE_SRQ), 32, 16, true }, { CMD(CREATE_XSRQ), 48, 16, true },
	{ CMD(MODIFY_SRQ), 16, 0, true }, { CMD(QUERY_SRQ), 16, 16, false },
	{ CMD(DESTROY_SRQ), 16, 4, false }, { CMD(OPEN_XRCD), 16, 4, true },
	{ CMD(CLOSE_XRCD), 4, 0, false }, { CMD(OPEN_QP), 32, 32, true },
	{ EX(QUERY_DEVICE), 8, UPTO(ib_uverbs_ex_query_device_resp, response_length), true },
	{ EX(CREATE_CQ), 32, 16, true }, { EX(MODIFY_CQ), 16, 0, true },
	{ EX(CREATE_QP), UPTO(ib_uverbs_ex_create_qp, comp_mask), 40, true },
	{ EX(MODIFY_QP), 112, 8, true },
	{ EX(CREATE_FLOW), 24, 8, true }, { EX(DESTROY_FLOW), 8, 0, true },
	{ EX(CREATE_WQ), UPTO(ib_uverbs_ex_create_wq, max_sge), 24, true },
	{ EX(MODIFY_WQ), UPTO(ib_uverbs_ex_modify_wq, curr_wq_state), 0, true },
	{ EX(DESTROY_WQ), 8, 16, true }, { EX(CREATE_RWQ_IND_TBL), 8, 16, true },
	{ EX(DESTROY_RWQ_IND_TBL), 8, 0, true },
};

static const struct size_rule *size_rule(const struct uv_method *m)
{
	for (size_t i = 0; i < sizeof size_rules / sizeof *size_rules; i++)
		if (size_rules[i].command == m->method)
			return &size_rules[i];
	return NULL;
}

static unsigned least(const struct uv_method *m, uint16_t id)
{
	int row = buffer_row(m, id);

	return row < 0 ? 0 : m->attr[row].min;
}

static bool has_driver_data(const struct uv_method *m)
{
	return buffer_row(m, UVERBS_ATTR_UHW_IN) >= 0 || buffer_row(m, UVERBS_ATTR_UHW_OUT) >= 0;
}

Test(uv_garble_frames, structures_are_as_long_as_the_kernel_wants_them)
{
	for (unsigned k = 0; k < uv_command_count; k++) {
		const struct uv_method *m = &uv_commands[k];
		const struct size_rule *rule = size_rule(m);

		if (!m->run)
			continue;
		cr_assert(rule, "%s: no rule", m->name);
		cr_assert_eq(least(m, UVERBS_ATTR_CORE_IN), rule->in, "%s", m->name);
		cr_assert_eq(least(m, UVERBS_ATTR_CORE_OUT), rule->out, "%s", m->name);
		cr_assert(is_extended(m) || has_driver_data(m) == rule->has_driver_data,
			  "%s: driver data, or UHW_IGNORED, where there is none", m->name);
	}
}

/* What no values make work here, and its errno. */
static const struct { uint32_t object, method; int rc; } never_work[] = {
	/* only target QPs can be opened, and what is here is a UD QP */
	{ UV_WRITE_OBJECT, CMD(OPEN_QP), -EINVAL },
	/* of a group that the QP is not in */
	{ UV_WRITE_OBJECT, IB_USER_VERBS_CMD_DETACH_MCAST, -EINVAL },
};

static int want_without_fault(const struct uv_method *m)
{
	for (size_t i = 0; i < sizeof never_work / sizeof *never_work; i++)
		if (never_work[i].object == m->object && never_work[i].method == m->method)
			return never_work[i].rc;
	return 0;
}

/* The faults are only as good as the commands that they are put into. */
Test(uv_garble_frames, every_row_works_without_a_fault)
{
	static struct command c;

	garble_begin(true);
	for (enum channel by = BY_IOCTL; by < CHANNEL_COUNT; by++) {
		unsigned count = by == BY_IOCTL ? uv_method_count : uv_command_count;

		for (unsigned k = 0; k < count; k++) {
			const struct uv_method *m = by == BY_IOCTL ? &uv_methods[k] :
								     &uv_commands[k];
			int got;

			if (!m->run || m->before_context)
				continue;
			command_make(&c, by, m);
			got = command_run(&c);
			cr_assert(got == want_without_fault(m),
				  "%s: %d; has tests/fuzz/uv_values.c values for it?", m->name,
				  got);
			garble_again(true);
		}
	}
	garble_end();
}
