/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every ioctl method and every write command with a handle or descriptor that is not what it
 * should be.
 *
 * Method: garble_fault.h.  Source of what is wanted: device-abi B.1; Linux, rdma_core.c.
 */
#include <fcntl.h>
#include "tests/unit/garble_fault.h"

static void number_set(struct command *c, unsigned i, int64_t number)
{
	c->part[i].is_given = c->method->attr[i].place == UV_ATTR;
	c->part[i].data = (uint64_t)number;
	c->core[i] = (uint32_t)number;
	core_write(c);
}

static const struct stock *stock_for(const struct command *c, unsigned i)
{
	return &stock[c->method->attr[i].obj];
}

/* The command names objects that are there in any case. */
static bool is_stocked(const struct command *c, const struct uv_attr *row)
{
	(void)c;
	return stock[row->obj].is_there;
}

static bool is_stocked_handle(const struct command *c, const struct uv_attr *row)
{
	return is_handle(c, row) && is_stocked(c, row);
}

static bool is_stocked_descriptor(const struct command *c, const struct uv_attr *row)
{
	return is_descriptor_row(c, row) && is_stocked(c, row);
}

/* --- handles --- */

static void handle_never(struct command *c, unsigned i)
{
	number_set(c, i, NEVER);
}

Test(uv_garble_objects, handle_that_never_was_is_enoent)
{
	FAULT(EVERYWHERE, is_handle, handle_never, want_enoent);
}

static void handle_stale(struct command *c, unsigned i)
{
	number_set(c, i, stock_for(c, i)->stale);
}

Test(uv_garble_objects, handle_of_a_destroyed_object_is_enoent)
{
	FAULT(EVERYWHERE, is_stocked_handle, handle_stale, want_enoent);
}

static void handle_foreign(struct command *c, unsigned i)
{
	number_set(c, i, stock_for(c, i)->foreign);
}

Test(uv_garble_objects, handle_of_another_file_is_enoent)
{
	FAULT(EVERYWHERE, is_stocked_handle, handle_foreign, want_enoent);
}

static enum obj_type wrong_type;

static void handle_wrong(struct command *c, unsigned i)
{
	number_set(c, i, stock[wrong_type].live);
}

static bool is_other_handle(const struct command *c, const struct uv_attr *row)
{
	return is_handle(c, row) && row->obj != wrong_type && stock[wrong_type].is_there &&
	       !is_descriptor(wrong_type);
}

Test(uv_garble_objects, handle_of_each_other_type_is_einval)
{
	unsigned types = 0;

	for (wrong_type = OBJ_NONE + 1; wrong_type < OBJ_TYPE_COUNT; wrong_type++)
		types += FAULT_TRY(EVERYWHERE, is_other_handle, handle_wrong, want_einval) > 0;
	cr_assert(types > 3);
	garble_end();
}

static bool is_handle_attribute(const struct command *c, const struct uv_attr *row)
{
	return is_stocked_handle(c, row) && row->place == UV_ATTR;
}

static void handle_wide(struct command *c, unsigned i)
{
	number_set(c, i, stock_for(c, i)->live | 1ll << 32);
}

Test(uv_garble_objects, handle_wider_than_32_bits_is_enoent)
{
	FAULT(EVERYWHERE, is_handle_attribute, handle_wide, want_enoent);
}

static void handle_negative(struct command *c, unsigned i)
{
	number_set(c, i, stock_for(c, i)->live | INT64_MIN);
}

Test(uv_garble_objects, negative_handle_is_einval)
{
	FAULT(EVERYWHERE, is_handle_attribute, handle_negative, want_einval);
}

/* What a new object's attribute holds before is nobody's business. */
static bool is_new(const struct command *c, const struct uv_attr *row)
{
	return is_there(c, row) && (row->kind == UV_NEW || row->kind == UV_FD_NEW);
}

static void handle_taken(struct command *c, unsigned i)
{
	c->part[i].data = (uint64_t)stock[OBJ_PD].live;
}

Test(uv_garble_objects, attribute_for_a_new_handle_may_hold_anything)
{
	FAULT(IN_IOCTL, is_new, handle_taken, want_whole);
}

/* --- descriptors --- */

static void descriptor_stale(struct command *c, unsigned i)
{
	number_set(c, i, 999);
}

Test(uv_garble_objects, descriptor_that_is_not_open_is_ebadf)
{
	FAULT(EVERYWHERE, is_descriptor_row, descriptor_stale, want_ebadf);
}

static void descriptor_foreign(struct command *c, unsigned i)
{
	number_set(c, i, stock_for(c, i)->foreign);
}

Test(uv_garble_objects, descriptor_of_another_context_is_ebadf)
{
	FAULT(EVERYWHERE, is_stocked_descriptor, descriptor_foreign, want_ebadf);
}

static void descriptor_wrong(struct command *c, unsigned i)
{
	enum obj_type type = c->method->attr[i].obj == OBJ_ASYNC ? OBJ_CHANNEL : OBJ_ASYNC;

	number_set(c, i, stock[type].live);
}

Test(uv_garble_objects, descriptor_of_the_other_sort_is_ebadf)
{
	FAULT(EVERYWHERE, is_stocked_descriptor, descriptor_wrong, want_ebadf);
}

static void descriptor_of_file(struct command *c, unsigned i)
{
	number_set(c, i, STDERR_FILENO);
}

Test(uv_garble_objects, descriptor_of_a_file_is_ebadf)
{
	FAULT(EVERYWHERE, is_descriptor_row, descriptor_of_file, want_ebadf);
}

static bool is_descriptor_attribute(const struct command *c, const struct uv_attr *row)
{
	return is_stocked_descriptor(c, row) && row->place == UV_ATTR;
}

static void descriptor_negative(struct command *c, unsigned i)
{
	number_set(c, i, -1);
}

Test(uv_garble_objects, negative_descriptor_is_ebadf)
{
	FAULT(EVERYWHERE, is_descriptor_attribute, descriptor_negative, want_ebadf);
}

static void descriptor_wide(struct command *c, unsigned i)
{
	number_set(c, i, stock_for(c, i)->live | 1ll << 32);
}

Test(uv_garble_objects, descriptor_wider_than_32_bits_is_einval)
{
	FAULT(EVERYWHERE, is_descriptor_attribute, descriptor_wide, want_einval);
}

/* Inside a core structure every negative number means none. */
static bool is_descriptor_in_core(const struct command *c, const struct uv_attr *row)
{
	return is_descriptor_row(c, row) && row->place == UV_CORE;
}

static void descriptor_none(struct command *c, unsigned i)
{
	number_set(c, i, -2);
}

Test(uv_garble_objects, negative_descriptor_in_a_core_structure_is_none)
{
	FAULT(EVERYWHERE, is_descriptor_in_core, descriptor_none, want_whole);
}
