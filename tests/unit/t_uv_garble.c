/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every ioctl method and every write command with an attribute, a size or an address wrong.
 *
 * Method: garble_fault.h.  Source of what is wanted: device-abi B.1 and B.3; Linux, uverbs_ioctl.c
 * and uverbs_main.c.
 */
#include "tests/unit/garble_fault.h"

/* --- attributes that are there or not --- */

static void drop(struct command *c, unsigned i)
{
	c->part[i].is_given = false;
}

Test(uv_garble, missing_mandatory_attribute)
{
	FAULT(EVERYWHERE, is_mandatory, drop, want_size);
}

static void double_it(struct command *c, unsigned i)
{
	c->part[UV_ATTRS_MAX] = c->part[i];
}

Test(uv_garble, doubled_attribute_is_einval)
{
	FAULT(IN_ATTRIBUTES, is_there, double_it, want_einval);
}

static void reserve(struct command *c, unsigned i)
{
	c->part[i].reserved = 1;
}

Test(uv_garble, reserved_byte_of_an_attribute_is_einval)
{
	FAULT(IN_ATTRIBUTES, is_there, reserve, want_einval);
}

/* Beyond all that the row has, and among the driver's numbers. */
static void unknown_add(struct command *c, uint16_t flags)
{
	c->part[UV_ATTRS_MAX] = (struct part){ true, 0x77, 300, flags, 0, (uintptr_t)NOWHERE };
	c->part[UV_ATTRS_MAX + 1] = (struct part){ true, 0x1077, 8, flags, 0, 0 };
}

static void unknown_mandatory(struct command *c, unsigned i)
{
	(void)i;
	unknown_add(c, UVERBS_ATTR_F_MANDATORY);
}

static void unknown_optional(struct command *c, unsigned i)
{
	(void)i;
	unknown_add(c, 0);
}

static int want_eprotonosupport(const struct command *c, const struct uv_attr *row, int whole)
{
	(void)c, (void)row, (void)whole;
	return -EPROTONOSUPPORT;
}

Test(uv_garble, unknown_mandatory_attribute_is_eprotonosupport)
{
	FAULT(IN_ATTRIBUTES, is_first, unknown_mandatory, want_eprotonosupport);
}

Test(uv_garble, unknown_optional_attribute_is_ignored)
{
	FAULT(IN_ATTRIBUTES, is_first, unknown_optional, want_whole);
}

/* --- sizes --- */

static void resize(struct command *c, unsigned i, unsigned bytes, uint8_t tail)
{
	unsigned right = c->part[i].bytes;

	if (bytes > right && !is_output(&c->method->attr[i]))
		memset(c->bytes[i] + right, tail, bytes - right);
	c->part[i].bytes = (uint16_t)bytes;
	part_point(c, i);
}

/* In write() sizes are words. */
static unsigned word_of(const struct command *c)
{
	return c->channel != BY_WRITE ? 1 : is_extended(c->method) ? 8 : 4;
}

static bool can_be_short(const struct command *c, const struct uv_attr *row)
{
	return is_there(c, row) && !is_number(row) && row->min >= word_of(c);
}

static void shorten(struct command *c, unsigned i)
{
	resize(c, i, c->method->attr[i].min - word_of(c), 0);
}

/* INVOKE_WRITE takes no CORE_IN below 4 bytes, of whatever command. */
static int want_short(const struct command *c, const struct uv_attr *row, int whole)
{
	if (c->channel == BY_INVOKE && row->id == UVERBS_ATTR_CORE_IN && row->min <= 4)
		return -EINVAL;
	return want_size(c, row, whole);
}

/* An extended command whose answer is one word goes unanswered then. */
static bool is_unanswered(const struct command *c, const struct uv_attr *row)
{
	return c->channel == BY_WRITE && is_extended(c->method) && is_output(row) &&
	       row->min <= word_of(c);
}

static bool is_shortened(const struct command *c, const struct uv_attr *row)
{
	return can_be_short(c, row) && !is_before_driver_data(c, row) && !is_unanswered(c, row);
}

Test(uv_garble, one_byte_or_word_too_short)
{
	FAULT(EVERYWHERE, is_shortened, shorten, want_short);
}

static bool is_buffer(const struct command *c, const struct uv_attr *row)
{
	return is_there(c, row) && !is_number(row);
}

static void lengthen(struct command *c, unsigned i)
{
	resize(c, i, c->part[i].bytes + LONGER, 0);
}

static void lengthen_dirty(struct command *c, unsigned i)
{
	resize(c, i, c->part[i].bytes + LONGER, 0xaa);
}

static int want_longer(const struct command *c, const struct uv_attr *row, int whole)
{
	return row->grows || c->channel != BY_IOCTL ? whole : -EINVAL;
}

/* What INVOKE_WRITE itself carries on is judged with the command that it carries; an array that is
 * longer asks for more. */
static bool is_longer(const struct command *c, const struct uv_attr *row)
{
	return is_buffer(c, row) && !is_before_driver_data(c, row) && !row->is_array &&
	       c->method->run != on_invoke_write;
}

Test(uv_garble, longer_with_a_clean_tail_is_as_it_was)
{
	FAULT(EVERYWHERE, is_longer, lengthen, want_longer);
}

static int want_dirty(const struct command *c, const struct uv_attr *row, int whole)
{
	if (row->kind == UV_IN && (row->grows || c->channel != BY_IOCTL))
		return -EOPNOTSUPP;
	return want_longer(c, row, whole);
}

Test(uv_garble, longer_input_with_a_dirty_tail_is_eopnotsupp)
{
	FAULT(EVERYWHERE, is_longer, lengthen_dirty, want_dirty);
}

static void number_lengthen(struct command *c, unsigned i)
{
	c->part[i].bytes = 4;
}

Test(uv_garble, handle_with_a_length_is_einval)
{
	FAULT(IN_IOCTL, is_there_as_number, number_lengthen, want_einval);
}

static bool is_flags(const struct command *c, const struct uv_attr *row)
{
	return is_there(c, row) && row->kind == UV_FLAGS;
}

static void flag_raise(struct command *c, unsigned i)
{
	c->part[i].data = 1ull << 40;
}

static void flags_cut(struct command *c, unsigned i)
{
	c->part[i].bytes = 6;
}

static void flags_halve(struct command *c, unsigned i)
{
	c->part[i].bytes = 4;
}

Test(uv_garble, unknown_flag_is_einval)
{
	FAULT(EVERYWHERE, is_flags, flag_raise, want_einval);
}

Test(uv_garble, flags_of_6_bytes_are_einval)
{
	FAULT(EVERYWHERE, is_flags, flags_cut, want_einval);
}

Test(uv_garble, flags_of_4_bytes_are_as_good)
{
	FAULT(EVERYWHERE, is_flags, flags_halve, want_whole);
}

/* --- addresses --- */

static bool is_pointed_to(const struct command *c, const struct uv_attr *row)
{
	return is_there(c, row) && row->kind == UV_IN && c->part[row - c->method->attr].bytes > 8;
}

static void point_nowhere(struct command *c, unsigned i)
{
	c->part[i].data = (uintptr_t)NOWHERE;
}

static void point_at_kernel(struct command *c, unsigned i)
{
	c->part[i].data = 0xffff888000000000;
}

/* All but the last byte is there. */
static void point_at_end(struct command *c, unsigned i)
{
	c->part[i].data = (uintptr_t)(uv_memory + 1) - c->part[i].bytes + 1;
}

static int want_efault(const struct command *c, const struct uv_attr *row, int whole)
{
	(void)c, (void)row, (void)whole;
	return -EFAULT;
}

Test(uv_garble, input_nowhere_is_efault)
{
	FAULT(IN_ATTRIBUTES, is_pointed_to, point_nowhere, want_efault);
}

Test(uv_garble, input_in_the_kernel_is_efault)
{
	FAULT(IN_ATTRIBUTES, is_pointed_to, point_at_kernel, want_efault);
}

Test(uv_garble, input_that_runs_off_its_mapping_is_efault)
{
	FAULT(IN_ATTRIBUTES, is_pointed_to, point_at_end, want_efault);
}

static bool is_output_there(const struct command *c, const struct uv_attr *row)
{
	return is_there(c, row) && is_output(row);
}

static void point_at_constant(struct command *c, unsigned i)
{
	c->part[i].data = (uintptr_t)uv_memory->constant;
}

Test(uv_garble, output_nowhere_is_efault)
{
	FAULT(IN_ATTRIBUTES, is_output_there, point_nowhere, want_efault_if_whole);
}

Test(uv_garble, output_in_the_kernel_is_efault)
{
	FAULT(IN_ATTRIBUTES, is_output_there, point_at_kernel, want_efault_if_whole);
}

Test(uv_garble, output_that_may_only_be_read_is_efault)
{
	FAULT(IN_ATTRIBUTES, is_output_there, point_at_constant, want_efault_if_whole);
}

/* The command itself. */
static void command_nowhere(struct command *c, unsigned i)
{
	(void)i;
	c->at = NOWHERE;
}

Test(uv_garble, command_nowhere_is_efault)
{
	FAULT(EVERYWHERE, is_first, command_nowhere, want_efault);
}

static void command_constant(struct command *c, unsigned i)
{
	(void)i;
	c->is_at_constant = true;
}

static bool is_answered(const struct command *c)
{
	for (unsigned i = 0; i < c->method->attr_count; i++) {
		const struct uv_attr *row = &c->method->attr[i];

		if (c->part[i].is_given && (is_output(row) || row->kind == UV_NEW ||
					    row->kind == UV_FD_NEW))
			return true;
	}
	return false;
}

/* Attributes receive handles, and marks that outputs are valid. */
static int want_efault_if_answered(const struct command *c, const struct uv_attr *row, int whole)
{
	(void)row;
	return whole || !is_answered(c) ? whole : -EFAULT;
}

Test(uv_garble, attributes_that_may_only_be_read_are_efault_where_they_are_written)
{
	FAULT(IN_ATTRIBUTES, is_first, command_constant, want_efault_if_answered);
}
