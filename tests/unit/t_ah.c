/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address handles and the rules of addresses: which are refused, and the MAC of the others.
 *
 * Method: an open device file (uv_world.h), the command as libmlx5 sends it.
 */
#include "emu/obj/path.h"
#include "hw-models/ib_packet.h"
#include "tests/unit/uv_world.h"

#define IPV4(a, b, c, d)	{ [10] = 0xff, [11] = 0xff, a, b, c, d }
#define REPLY_BYTES		10u	/* up to the MAC */

struct rig {
	struct uv_world w;
	uint32_t pd;
	struct ib_uverbs_create_ah ask;
	struct mlx5_ib_create_ah_resp mlx5;
	uint32_t handle;
};

static struct rig rig_new(const char *profile)
{
	struct rig r = { .w = uv_world_new() };

	r.w.dev->profile = hw_profile_find(profile);
	r.pd = pd_alloc(&r.w);
	r.ask = (struct ib_uverbs_create_ah){ .pd_handle = r.pd,
		.attr = { .is_global = 1, .port_num = 1, .grh = { .sgid_index = 2,
			.dgid = IPV4(10, 0, 0, 2) } } };
	return r;
}

static int ah_make(struct rig *r, size_t room)
{
	struct ib_uverbs_create_ah_resp reply = { .ah_handle = OTHER };
	struct cmd c = cmd_write(IB_USER_VERBS_CMD_CREATE_AH, &r->ask, sizeof r->ask, &reply,
				 sizeof reply);
	int ret;

	memset(&r->mlx5, 0xee, sizeof r->mlx5);
	if (room)
		cmd_out(&c, UVERBS_ATTR_UHW_OUT, &r->mlx5, room);
	ret = cmd_run(&r->w, &c);
	r->handle = reply.ah_handle;
	return ret;
}

static int ah_free(struct rig *r, uint32_t handle)
{
	return obj_destroy(&r->w, UVERBS_OBJECT_AH, UVERBS_METHOD_AH_DESTROY,
			   UVERBS_ATTR_DESTROY_AH_HANDLE, handle, 0);
}

Test(ah, the_reply_is_the_mac_and_its_length)
{
	struct rig r = rig_new(NULL);

	CHECK_INT(ah_make(&r, sizeof r.mlx5), 0);
	CHECK_INT(r.mlx5.response_length, REPLY_BYTES);
	CHECK_INT(r.mlx5.reserved[0], 0xee);
	CHECK_INT(ah_free(&r, r.handle), 0);
	CHECK_INT(ah_free(&r, r.handle), -ENOENT);
	CHECK_INT(ah_make(&r, REPLY_BYTES), 0);
	CHECK_INT(ah_free(&r, r.handle), 0);
	CHECK_REFUSED(ah_make(&r, REPLY_BYTES - 1), -EINVAL, WHY_CMD_ATTRIBUTES);
	CHECK_REFUSED(ah_make(&r, 0), -EINVAL, WHY_CMD_ATTRIBUTES);
	uv_world_end(&r.w);
}

Test(ah, the_pd_is_in_use_until_the_last_is_gone)
{
	struct rig r = rig_new(NULL);
	struct ib_uverbs_destroy_ah legacy;
	struct cmd c;

	CHECK_INT(ah_make(&r, sizeof r.mlx5), 0);
	CHECK_INT(pd_free(&r.w, r.pd), -EBUSY);
	legacy.ah_handle = r.handle;
	c = cmd_write(IB_USER_VERBS_CMD_DESTROY_AH, &legacy, sizeof legacy, NULL, 0);
	CHECK_INT(cmd_run(&r.w, &c), 0);
	CHECK_INT(pd_free(&r.w, r.pd), 0);
	uv_world_end(&r.w);
}

Test(ah, closing_the_file_frees_them)
{
	struct rig r = rig_new(NULL);

	for (unsigned i = 0; i < 100; i++)
		CHECK_INT(ah_make(&r, sizeof r.mlx5), 0);
	uv_world_end(&r.w);
}

#define REFUSED(change, rc)                                             \
	do {                                                            \
		struct ib_uverbs_create_ah was = r.ask;                 \
		r.ask.change;                                           \
		CHECK_REFUSED(ah_make(&r, sizeof r.mlx5), rc, WHY_ADDRESS); \
		r.ask = was;                                            \
	} while (0)

Test(ah, addresses_that_roce_can_not_reach)
{
	struct rig r = rig_new(NULL);

	REFUSED(attr.port_num = 0, -EINVAL);
	REFUSED(attr.port_num = 2, -EINVAL);
	REFUSED(attr.is_global = 0, -EINVAL);
	REFUSED(attr.grh.sgid_index = 1, -ENODATA);
	REFUSED(attr.grh.sgid_index = 200, -ENODATA);
	REFUSED(attr.grh.sgid_index = 255, -EINVAL);
	memset(r.ask.attr.grh.dgid, 0, 16);
	REFUSED(attr.sl = 0, -EINVAL);
	r.ask.attr.grh.dgid[0] = 0x20;			/* IPv6 from an IPv4 address */
	REFUSED(attr.sl = 0, -EINVAL);
	CHECK_INT(pd_free(&r.w, r.pd), 0);
	uv_world_end(&r.w);
}

Test(ah, infiniband_wants_a_lid_and_no_grh)
{
	struct rig r = rig_new("connectx-6");

	r.ask.attr = (struct ib_uverbs_ah_attr){ .port_num = 1, .dlid = 5 };
	CHECK_INT(ah_make(&r, 0), 0);
	r.ask.attr.is_global = 1;
	r.ask.attr.grh.dgid[0] = 0xfe;
	CHECK_INT(ah_make(&r, 0), 0);
	REFUSED(attr.dlid = 0, -EINVAL);
	REFUSED(attr.grh.sgid_index = 1, -ENODATA);
	REFUSED(attr.grh.sgid_index = 8, -EINVAL);
	REFUSED(attr.grh.dgid[0] = 0, -EINVAL);
	uv_world_end(&r.w);
}

/* Link-local destinations need no route in version 1 only; groups never do. */
Test(ah, families_must_agree_where_there_is_a_route)
{
	static const struct { uint8_t type, dgid[16]; int want; } row[] = {
		{ 1, { 0xfe, 0x80, [15] = 9 }, 0 },
		{ 2, { 0xfe, 0x80, [15] = 9 }, -EINVAL },
		{ 1, { 0x20, 0x01, [15] = 9 }, -EINVAL },
		{ 1, IPV4(10, 0, 0, 9), 0 },
		{ 2, IPV4(10, 0, 0, 9), 0 },
		{ 2, { 0xff, 0x0e, [15] = 9 }, 0 },
		{ 2, IPV4(224, 1, 2, 3), 0 },
	};
	struct rig r = rig_new(NULL);
	struct qp_path path = { .port = 1, .is_global = 1, .sgid_index = 2 };

	for (unsigned i = 0; i < sizeof row / sizeof *row; i++) {
		r.w.dev->gid[2].type = row[i].type;
		memcpy(path.dgid, row[i].dgid, 16);
		cr_expect_eq(path_check(r.w.dev, &path), row[i].want, "row %u", i);
	}
	uv_world_end(&r.w);
}

Test(ah, macs_follow_from_addresses)
{
	static const struct { uint8_t gid[16], mac[6]; } row[] = {
		{ IPV4(239, 129, 2, 3), { 0x01, 0x00, 0x5e, 0x01, 2, 3 } },
		{ { 0xff, 0x12, [12] = 1, 2, 3, 4 }, { 0x33, 0x33, 1, 2, 3, 4 } },
		{ { 0xfe, 0x80, [8] = 0x10, 2, 3, 0xff, 0xfe, 4, 5, 6 }, { 0x12, 2, 3, 4, 5, 6 } },
		{ { 0xfe, 0x80, [8] = 0x10, 2, 3, 0, 1, 4, 5, 6 }, { 0x10, 2, 3, 4, 5, 6 } },
		{ IPV4(10, 86, 0, 77), { 2, 'V', 'B', 0, 0, 77 } },
		{ IPV4(10, 86, 1, 77), { 6, 'V', 10, 86, 1, 77 } },
		{ IPV4(10, 0, 0, 1), { 2, 0xc0, 1, 2, 3, 4 } },	/* our own */
	};
	struct rig r = rig_new(NULL);

	memcpy(r.w.dev->mac, (uint8_t[]){ 2, 0xc0, 1, 2, 3, 4 }, 6);
	for (unsigned i = 0; i < sizeof row / sizeof *row; i++) {
		uint8_t mac[6];

		path_mac(r.w.dev, row[i].gid, mac);
		cr_expect(!memcmp(mac, row[i].mac, 6), "row %u: %02x:%02x:%02x:%02x:%02x:%02x", i,
			  mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
	}
	uv_world_end(&r.w);
}

Test(ah, groups_are_known_by_their_first_bits)
{
	static const struct { uint8_t gid[16]; bool is; } row[] = {
		{ { 0xff }, true }, { { 0xfe }, false }, { { 0 }, false },
		{ IPV4(223, 255, 255, 255), false }, { IPV4(224, 0, 0, 0), true },
		{ IPV4(239, 255, 255, 255), true }, { IPV4(240, 0, 0, 0), false },
		{ { [9] = 1, [10] = 0xff, [11] = 0xff, [12] = 224 }, false },
	};

	for (unsigned i = 0; i < sizeof row / sizeof *row; i++)
		cr_expect_eq(ib_is_multicast(row[i].gid), row[i].is, "row %u", i);
}
