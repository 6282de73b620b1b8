/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The framing of the ioctl channel: every method refuses every malformed attribute with the
 * errno of the kernel, and notes one reason.
 *
 * Method: a well-formed command is built from each row of the table and spoiled in one
 * place.  What spoiling must give is stated here, not taken from the table.
 */
#include "emu/uverbs/dispatch.h"
#include "tests/unit/uv_world.h"

static uint8_t room[4096];		/* inputs are zero, outputs land here too */

static bool has_number(const struct uv_attr *row)
{
	return row->kind == UV_NEW || row->kind == UV_USE || row->kind == UV_DESTROY ||
	       row->kind == UV_FD_NEW || row->kind == UV_FD_USE;
}

static bool is_in(const struct uv_attr *row)
{
	return row->kind == UV_IN || row->kind == UV_FLAGS;
}

/* Every attribute of the method, well formed; handles name nothing. */
static struct cmd whole(const struct uv_method *m)
{
	struct cmd c = cmd_new((uint16_t)m->object, (uint16_t)m->method);

	for (unsigned i = 0; i < m->attr_count; i++) {
		const struct uv_attr *row = &m->attr[i];

		if (has_number(row))
			cmd_obj(&c, row->id, 0x7fffff);
		else if (is_in(row))
			cmd_in(&c, row->id, room, row->size);
		else
			cmd_out(&c, row->id, room, row->size ? row->size : row->min);
	}
	return c;
}

static void attr_drop(struct cmd *c, unsigned index)
{
	c->attr[index] = c->attr[--c->hdr.num_attrs];
}

/* Run @code with `m`, and `c` whole, for each row `i` for which @cond holds. */
#define EACH_ATTR(w, cond, code)							\
	do {										\
		unsigned tried = 0;							\
		for (unsigned k = 0; k < uv_method_count; k++) {			\
			const struct uv_method *m = &uv_methods[k];			\
			for (unsigned i = 0; m->run && i < m->attr_count; i++) {	\
				const struct uv_attr *row = &m->attr[i];		\
				struct cmd c = whole(m);				\
				if (!(cond))						\
					continue;					\
				code;							\
				tried++;						\
			}								\
		}									\
		cr_assert(tried > 0);							\
		uv_world_end(w);							\
	} while (0)

static void check_cmd(const struct uv_world *w, struct cmd *c, const struct uv_method *m,
		      const struct uv_attr *row, int rc)
{
	uint64_t before = world_why.made;
	int got = cmd_run(w, c);

	cr_assert(got == rc, "%s, %s: %d, want %d", m->name, row->name, got, rc);
	cr_assert(world_why.made == before + 1, "%s, %s: %d reasons", m->name, row->name,
		  (int)(world_why.made - before));
}
#define CHECK_CMD(w, c, rc) check_cmd(w, &(c), m, row, rc)

Test(uv_dispatch, rows_fit_the_limits_and_are_unique)
{
	for (unsigned k = 0; k < uv_method_count; k++) {
		const struct uv_method *m = &uv_methods[k];
		unsigned in_bytes = 0;

		cr_assert_leq(m->attr_count, UV_ATTRS_MAX);
		for (unsigned i = 0; i < m->attr_count; i++) {
			in_bytes += is_in(&m->attr[i]) ? (m->attr[i].size + 7u) & ~7u : 0;
			CHECK_INT(uv_row_find(m, m->attr[i].id), i);
		}
		cr_assert_leq(in_bytes, UV_IN_BYTES_MAX);
		cr_assert_eq(uv_method_find(uv_methods, uv_method_count, m->object, m->method), m);
	}
	for (unsigned k = 0; k < uv_command_count; k++)
		cr_assert_eq(uv_method_find(uv_commands, uv_command_count, UV_WRITE_OBJECT,
					    uv_commands[k].method), &uv_commands[k]);
}

Test(uv_dispatch, missing_mandatory_attribute_is_einval)
{
	struct uv_world w = uv_world_new();

	EACH_ATTR(&w, row->need == UV_MANDATORY, {
		attr_drop(&c, i);
		CHECK_CMD(&w, c, -EINVAL);
	});
}

Test(uv_dispatch, duplicate_attribute_is_einval)
{
	struct uv_world w = uv_world_new();

	EACH_ATTR(&w, true, {
		c.attr[c.hdr.num_attrs++] = c.attr[i];
		CHECK_CMD(&w, c, -EINVAL);
	});
}

Test(uv_dispatch, reserved_bytes_of_an_attribute_are_einval)
{
	struct uv_world w = uv_world_new();

	EACH_ATTR(&w, true, {
		c.attr[i].attr_data.reserved = 1;
		CHECK_CMD(&w, c, -EINVAL);
	});
}

Test(uv_dispatch, short_buffer_is_einval)
{
	struct uv_world w = uv_world_new();

	EACH_ATTR(&w, !has_number(row) && row->min, {
		c.attr[i].len = row->min - 1;
		if (c.attr[i].len <= 8 && is_in(row))
			c.attr[i].data = 0;
		CHECK_CMD(&w, c, -EINVAL);
	});
}

Test(uv_dispatch, longer_input_with_a_nonzero_tail_is_eopnotsupp)
{
	struct uv_world w = uv_world_new();

	room[600] = 1;
	EACH_ATTR(&w, row->kind == UV_IN && row->grows, {
		c.attr[i].data = (uintptr_t)room;
		c.attr[i].len = 601;
		CHECK_CMD(&w, c, -EOPNOTSUPP);
	});
}

Test(uv_dispatch, value_of_another_size_is_einval)
{
	struct uv_world w = uv_world_new();

	EACH_ATTR(&w, !has_number(row) && !row->grows, {
		c.attr[i].len = row->size + 1;
		c.attr[i].data = (uintptr_t)room;
		CHECK_CMD(&w, c, -EINVAL);
	});
}

Test(uv_dispatch, unknown_flags_are_einval)
{
	struct uv_world w = uv_world_new();

	EACH_ATTR(&w, row->kind == UV_FLAGS, {
		c.attr[i].len = 8;
		c.attr[i].data = 1ull << 40;
		CHECK_CMD(&w, c, -EINVAL);
		c.attr[i].len = 6;
		c.attr[i].data = 0;
		CHECK_CMD(&w, c, -EINVAL);
	});
}

Test(uv_dispatch, object_with_a_length_is_einval)
{
	struct uv_world w = uv_world_new();

	EACH_ATTR(&w, has_number(row), {
		c.attr[i].len = 4;
		CHECK_CMD(&w, c, -EINVAL);
	});
}

Test(uv_dispatch, unknown_attribute_matters_only_if_mandatory)
{
	struct uv_world w = uv_world_new();

	EACH_ATTR(&w, i == 0, {
		cmd_attr(&c, 0x77, 300, (uintptr_t)NOWHERE);
		CHECK_CMD(&w, c, -EPROTONOSUPPORT);
	});
	w = uv_world_new();
	{
		struct cmd c = cmd_new(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);

		cmd_u64(&c, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 1);
		cmd_out(&c, UVERBS_ATTR_QUERY_PORT_RESP, room, 48);
		cmd_attr(&c, 0x77, 300, (uintptr_t)NOWHERE)->flags = 0;
		CHECK_INT(cmd_run(&w, &c), 0);
	}
	uv_world_end(&w);
}

Test(uv_dispatch, input_at_a_bad_address_is_efault)
{
	struct uv_world w = uv_world_new();

	EACH_ATTR(&w, row->kind == UV_IN && row->size > 8, {
		c.attr[i].data = (uintptr_t)NOWHERE;
		CHECK_CMD(&w, c, -EFAULT);
	});
}

Test(uv_dispatch, handle_wider_than_32_bits_names_nothing)
{
	struct uv_world w = uv_world_new();
	uint32_t pd = pd_alloc(&w);
	struct cmd c = cmd_new(UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY);

	cmd_obj(&c, UVERBS_ATTR_DESTROY_PD_HANDLE, pd | 1ull << 32);
	CHECK_REFUSED(cmd_run(&w, &c), -ENOENT, WHY_CMD_HANDLE);
	c.attr[0].data = pd | 1ull << 63;
	CHECK_REFUSED(cmd_run(&w, &c), -EINVAL, WHY_CMD_HANDLE);
	CHECK_INT(pd_free(&w, pd), 0);
	uv_world_end(&w);
}

Test(uv_dispatch, nothing_works_before_get_context)
{
	struct uv_world w = uv_world_bare("");

	EACH_ATTR(&w, i == 0 && !m->before_context, { CHECK_CMD(&w, c, -EINVAL); });
}

Test(uv_dispatch, header_rules)
{
	struct uv_world w = uv_world_new();
	struct cmd good = cmd_new(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT), c;

	cmd_u64(&good, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 1);
	cmd_out(&good, UVERBS_ATTR_QUERY_PORT_RESP, room, 48);
	CHECK_INT(cmd_run(&w, &good), 0);
	c = good, c.hdr.reserved1 = 1;
	CHECK_REFUSED(cmd_run(&w, &c), -EPROTONOSUPPORT, WHY_CMD_ATTRIBUTES);
	c = good, c.hdr.reserved2 = 1;
	CHECK_REFUSED(cmd_run(&w, &c), -EPROTONOSUPPORT, WHY_CMD_ATTRIBUTES);
	c = good, c.hdr.driver_id = 2;
	CHECK_REFUSED(cmd_run(&w, &c), -EINVAL, WHY_CMD_ATTRIBUTES);
	c = good, c.hdr.length--;
	CHECK_REFUSED(uv_ioctl(w.file, &c), -EINVAL, WHY_CMD_ATTRIBUTES);
	c = good, c.hdr.num_attrs = 255, c.hdr.length = 24 + 16 * 255;
	CHECK_REFUSED(uv_ioctl(w.file, &c), -EINVAL, WHY_CMD_ATTRIBUTES);
	c = good, c.hdr.num_attrs = UINT16_MAX;
	CHECK_REFUSED(uv_ioctl(w.file, &c), -EINVAL, WHY_CMD_ATTRIBUTES);
	CHECK_REFUSED(uv_ioctl(w.file, NOWHERE), -EFAULT, WHY_CMD_MEMORY);
	uv_world_end(&w);
}

Test(uv_dispatch, attributes_that_run_off_the_mapping_are_efault)
{
	struct uv_world w = uv_world_new();
	uint8_t *pages = world_pages(2);
	struct cmd c = cmd_new(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);

	munmap(pages + WORLD_PAGE, WORLD_PAGE);
	c.hdr.num_attrs = 2;
	c.hdr.length = 24 + 32;
	memcpy(pages + WORLD_PAGE - 40, &c, 40);
	CHECK_REFUSED(uv_ioctl(w.file, pages + WORLD_PAGE - 40), -EFAULT, WHY_CMD_MEMORY);
	uv_world_end(&w);
}

Test(uv_dispatch, unknown_and_absent_methods_differ)
{
	static const struct { uint16_t object, method; int rc; } rows[] = {
		{ UVERBS_OBJECT_FLOW_ACTION, UVERBS_METHOD_FLOW_ACTION_DESTROY, -EOPNOTSUPP },
		{ UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR, -EOPNOTSUPP },
		{ MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER, -EPROTONOSUPPORT },
		{ MLX5_IB_OBJECT_VAR, MLX5_IB_METHOD_VAR_OBJ_ALLOC, -EPROTONOSUPPORT },
		{ MLX5_IB_OBJECT_STEERING_ANCHOR, MLX5_IB_METHOD_STEERING_ANCHOR_CREATE,
		  -EPROTONOSUPPORT },
		{ UVERBS_OBJECT_FLOW_ACTION, MLX5_IB_METHOD_FLOW_ACTION_CREATE_MODIFY_HEADER,
		  -EOPNOTSUPP },
		{ UVERBS_OBJECT_FLOW_ACTION, MLX5_IB_METHOD_FLOW_ACTION_CREATE_PACKET_REFORMAT,
		  -EOPNOTSUPP },
		{ UVERBS_OBJECT_DEVICE, 7, -EPROTONOSUPPORT },
		{ 0x7777, 0, -EPROTONOSUPPORT },
	};
	struct uv_world w = uv_world_new();

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct cmd c = cmd_new(rows[i].object, rows[i].method);

		CHECK_REFUSED(cmd_run(&w, &c), rows[i].rc, WHY_CMD_UNSUPPORTED);
	}
	uv_world_end(&w);
}

Test(uv_dispatch, output_is_marked_valid_and_a_longer_structure_filled_up)
{
	struct uv_world w = uv_world_new();
	struct cmd c = cmd_new(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);

	memset(room, 0xee, sizeof room);
	cmd_u64(&c, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 1);
	cmd_out(&c, UVERBS_ATTR_QUERY_PORT_RESP, room, 700);
	CHECK_INT(cmd_run(&w, &c), 0);
	CHECK_INT(c.attr[0].flags, UVERBS_ATTR_F_MANDATORY);
	CHECK_INT(c.attr[1].flags, UVERBS_ATTR_F_MANDATORY | UVERBS_ATTR_F_VALID_OUTPUT);
	for (unsigned i = 48; i < 700; i++)
		CHECK_INT(room[i], 0);
	CHECK_INT(room[700], 0xee);
	uv_world_end(&w);
}
