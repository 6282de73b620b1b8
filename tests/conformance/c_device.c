/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the device says of itself, and that its answers agree with each other.
 *
 * Rules: device-abi B.7 (device), B.8 (port, GIDs, P_Keys: RoCE values, order of the GID
 * table); architecture section 5 (the default profile is a ConnectX-6 Dx on RoCE).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "harness/check.h"

TestSuite(device, .timeout = 60);

static struct ibv_context *c;

static void open_device(void)
{
	c = device_open();
	cr_assert_not_null(c, "no device: is this run under `verbena run`?");
}

static void close_device(void)
{
	cr_expect_eq(ibv_close_device(c), 0);
}

#define DEVICE_TEST(name) Test(device, name, .init = open_device, .fini = close_device)

DEVICE_TEST(identity_is_a_connectx_6_dx)
{
	struct ibv_device_attr a;

	cr_assert_eq(ibv_query_device(c, &a), 0);
	cr_expect_str_eq(ibv_get_device_name(c->device), "mlx5_0");
	cr_expect_eq(c->device->node_type, IBV_NODE_CA);
	cr_expect_eq(c->device->transport_type, IBV_TRANSPORT_IB);
	cr_expect_eq(a.vendor_id, 0x2c9);
	cr_expect_eq(a.vendor_part_id, 4125);
	cr_expect_neq(a.node_guid, 0);
	cr_expect_eq(a.node_guid, ibv_get_device_guid(c->device));
	cr_expect_gt(strlen(a.fw_ver), 0);
	cr_expect_eq(a.phys_port_cnt, 1);
}

/* B.7 [P]: limits that published logs of real parts agree on. */
DEVICE_TEST(limits_are_those_of_the_part)
{
	struct ibv_device_attr a;

	cr_assert_eq(ibv_query_device(c, &a), 0);
	cr_expect_eq(a.max_mr_size, UINT64_MAX);
	cr_expect_eq(a.max_sge, 30);
	cr_expect_eq(a.max_sge_rd, 30);
	cr_expect(a.max_qp_wr >= 8192 && a.max_qp_wr <= 32768, "%d", a.max_qp_wr);
	cr_expect_eq(a.max_cqe, 4194303);
	cr_expect_eq(a.max_qp_rd_atom, 16);
	cr_expect_eq(a.max_qp_init_rd_atom, 16);
	cr_expect_eq(a.atomic_cap, IBV_ATOMIC_HCA);
	cr_expect_gt(a.max_qp, 1000);
	cr_expect_gt(a.max_cq, 1000);
	cr_expect_gt(a.max_mr, 1000);
	cr_expect_gt(a.max_pd, 1000);
	cr_expect_geq(a.max_pkeys, 1);
}

DEVICE_TEST(the_extended_query_agrees_with_the_plain_one)
{
	struct ibv_device_attr_ex x = { 0 };
	struct ibv_device_attr a;

	cr_assert_eq(ibv_query_device(c, &a), 0);
	cr_assert_eq(ibv_query_device_ex(c, NULL, &x), 0);
	cr_expect(!memcmp(&a, &x.orig_attr, sizeof a));
	cr_expect_eq((uint32_t)x.device_cap_flags_ex, a.device_cap_flags);
}

DEVICE_TEST(the_port_is_an_active_roce_port)
{
	struct ibv_port_attr p;

	cr_assert_eq(ibv_query_port(c, 1, &p), 0);
	cr_expect_eq(p.state, IBV_PORT_ACTIVE);
	cr_expect_eq(p.phys_state, 5);
	cr_expect_eq(p.link_layer, IBV_LINK_LAYER_ETHERNET);
	cr_expect_eq(p.max_msg_sz, 1u << 30);
	cr_expect_eq(p.max_mtu, IBV_MTU_4096);
	cr_expect_eq(p.lid, 0);
	cr_expect_eq(p.pkey_tbl_len, 1);
	cr_expect_geq(p.gid_tbl_len, 4);
	cr_expect(p.port_cap_flags & IBV_PORT_CM_SUP);
	cr_expect(p.flags & IBV_QPF_GRH_REQUIRED);
	cr_expect_eq(p.active_width, 2);
}

DEVICE_TEST(only_port_1_exists)
{
	struct ibv_port_attr p;

	cr_expect_eq(ibv_query_port(c, 0, &p), EINVAL);
	cr_expect_eq(ibv_query_port(c, 2, &p), EINVAL);
}

static bool is_v4_mapped(const union ibv_gid *gid)
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid->raw, prefix, sizeof prefix) &&
	       (gid->raw[12] | gid->raw[13] | gid->raw[14] | gid->raw[15]);
}

/* B.8: pairs v1, v2 of the same address; link-local first, index 3 is RoCE v2 over IPv4. */
DEVICE_TEST(the_gid_table_has_connectx_order)
{
	struct ibv_gid_entry e[4];

	for (uint32_t i = 0; i < 4; i++) {
		cr_assert_eq(ibv_query_gid_ex(c, 1, i, &e[i], 0), 0, "index %u", i);
		cr_expect_eq(e[i].gid_index, i);
		cr_expect_eq(e[i].port_num, 1);
		cr_expect_eq(e[i].gid_type,
			     i & 1 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1);
	}
	cr_expect(!memcmp(&e[0].gid, &e[1].gid, 16));
	cr_expect(!memcmp(&e[2].gid, &e[3].gid, 16));
	cr_expect_eq(e[0].gid.raw[0], 0xfe);
	cr_expect_eq(e[0].gid.raw[1], 0x80);
	cr_expect(is_v4_mapped(&e[3].gid));
}

/* ibv_query_gid(3), ibv_query_gid_ex(3), ibv_query_gid_table(3) tell the same story. */
DEVICE_TEST(all_ways_to_ask_for_gids_agree)
{
	struct ibv_gid_entry table[64], one;
	struct ibv_port_attr p;
	union ibv_gid gid, zero = { { 0 } };
	ssize_t n = ibv_query_gid_table(c, table, 64, 0);
	ssize_t seen = 0;

	cr_assert_geq(n, 4);
	cr_assert_eq(ibv_query_port(c, 1, &p), 0);
	for (int i = 0; i < p.gid_tbl_len; i++) {
		int err = ibv_query_gid_ex(c, 1, (uint32_t)i, &one, 0);

		cr_expect_eq(ibv_query_gid(c, 1, i, &gid), 0, "index %d", i);
		if (err) {
			cr_expect_eq(err, ENODATA, "index %d: %s", i, strerror(err));
			cr_expect(!memcmp(&gid, &zero, 16), "index %d is empty", i);
			continue;
		}
		cr_expect(!memcmp(&gid, &one.gid, 16), "index %d", i);
		cr_assert_lt(seen, n);
		cr_expect(!memcmp(&one, &table[seen], sizeof one), "index %d", i);
		seen++;
	}
	cr_expect_eq(seen, n);
}

DEVICE_TEST(queries_out_of_range_are_refused)
{
	struct ibv_gid_entry e;
	union ibv_gid gid;
	__be16 pkey;

	cr_expect_neq(ibv_query_gid(c, 1, 100000, &gid), 0);
	cr_expect_neq(ibv_query_gid(c, 1, -1, &gid), 0);
	cr_expect_neq(ibv_query_gid(c, 2, 0, &gid), 0);
	cr_expect_neq(ibv_query_gid_ex(c, 1, 100000, &e, 0), 0);
	cr_expect_neq(ibv_query_gid_ex(c, 2, 0, &e, 0), 0);
	cr_expect_neq(ibv_query_pkey(c, 1, 1, &pkey), 0);
	cr_expect_neq(ibv_query_pkey(c, 1, -1, &pkey), 0);
}

DEVICE_TEST(the_default_pkey_is_at_index_0)
{
	__be16 pkey = 0;

	cr_expect_eq(ibv_query_pkey(c, 1, 0, &pkey), 0);
	cr_expect_eq(pkey, htobe16(0xffff));
	cr_expect_eq(ibv_get_pkey_index(c, 1, htobe16(0xffff)), 0);
	cr_expect_eq(ibv_get_pkey_index(c, 1, htobe16(0x8001)), -1);
}

/* Answers do not change from one open to the next, nor from process to process. */
DEVICE_TEST(a_second_open_sees_the_same_device)
{
	struct ibv_context *again = device_open();
	struct ibv_device_attr a, b;
	struct ibv_port_attr pa, pb;
	union ibv_gid ga, gb;

	cr_assert_not_null(again);
	cr_assert_eq(ibv_query_device(c, &a), 0);
	cr_assert_eq(ibv_query_device(again, &b), 0);
	cr_expect(!memcmp(&a, &b, sizeof a));
	cr_assert_eq(ibv_query_port(c, 1, &pa), 0);
	cr_assert_eq(ibv_query_port(again, 1, &pb), 0);
	cr_expect_eq(pa.gid_tbl_len, pb.gid_tbl_len);
	cr_expect_eq(pa.active_mtu, pb.active_mtu);
	cr_assert_eq(ibv_query_gid(c, 1, GID_INDEX, &ga), 0);
	cr_assert_eq(ibv_query_gid(again, 1, GID_INDEX, &gb), 0);
	cr_expect(!memcmp(&ga, &gb, 16));
	ibv_close_device(again);
}

/* One emulated device, and no other: the emulator hides what the host has. */
Test(device, the_list_has_one_device)
{
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);

	cr_assert_not_null(list);
	cr_expect_eq(count, 1);
	ibv_free_device_list(list);
}

/* As some programs do it, which never call ibv_free_device_list(). */
Test(device, the_list_may_be_given_to_free)
{
	struct ibv_device **list = ibv_get_device_list(NULL), *device;
	struct ibv_context *context;

	cr_assert_not_null(list);
	device = list[0];
	free(list);
	context = ibv_open_device(device);
	cr_assert_not_null(context);
	cr_expect_eq(ibv_close_device(context), 0);
}

/* A device that was listed can be opened until its list is freed, and what is opened keeps it. */
Test(device, an_open_device_outlives_its_list)
{
	struct ibv_device **list = ibv_get_device_list(NULL), **again, *device;
	struct ibv_context *opened;
	char name[IBV_SYSFS_NAME_MAX];

	cr_assert(list && list[0]);
	device = list[0];
	strcpy(name, ibv_get_device_name(device));
	again = ibv_get_device_list(NULL);
	cr_assert(again && again[0]);
	ibv_free_device_list(again);
	opened = ibv_open_device(device);
	cr_assert_not_null(opened);
	cr_expect_eq(opened->device, device);
	ibv_free_device_list(list);
	cr_expect_str_eq(ibv_get_device_name(opened->device), name);
	cr_expect_neq(ibv_get_device_guid(opened->device), 0);
	cr_expect_eq(ibv_close_device(opened), 0);
}
