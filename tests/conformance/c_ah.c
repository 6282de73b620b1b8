/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address handles: which addresses have one, and what a handle needs.
 *
 * Rules: api-inventory AH-1 to AH-5; device-abi B.9 (create_ah).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include "harness/check.h"

static struct end e;
static struct ibv_ah_attr good;

static void setup(void)
{
	struct end_opts o;

	end_defaults(&o);
	cr_assert_eq(end_open(&e, &o, NULL), 0, "is this run under `verbena run`?");
	good = (struct ibv_ah_attr){ .is_global = 1, .port_num = 1,
		.grh = { .sgid_index = GID_INDEX, .hop_limit = 64 } };
	cr_assert_eq(ibv_query_gid(e.context, 1, GID_INDEX, &good.grh.dgid), 0);
}

static void teardown(void)
{
	end_close(&e);
}

TestSuite(ah, .init = setup, .fini = teardown, .timeout = 60);

static void expect_ah(const char *what, const struct ibv_ah_attr *attr, bool is_good)
{
	struct ibv_ah_attr copy = *attr;
	struct ibv_ah *ah = ibv_create_ah(e.pd, &copy);

	cr_expect_eq(ah != NULL, is_good, "%s: %s", what, ah ? "made" : strerror(errno));
	if (ah) {
		cr_expect_eq(ah->pd, e.pd);
		cr_expect_eq(ibv_destroy_ah(ah), 0);
	}
}

#define EXPECT_AH(is_good, change)                        \
	do {                                              \
		struct ibv_ah_attr attr = good;           \
		change;                                   \
		expect_ah(#change, &attr, is_good);       \
	} while (0)

Test(ah, each_address_works_or_is_refused)
{
	EXPECT_AH(true, (void)0);
	EXPECT_AH(true, attr.grh.dgid.raw[15] ^= 1);
	EXPECT_AH(true, attr.sl = 7);
	EXPECT_AH(true, attr.static_rate = IBV_RATE_10_GBPS);
	EXPECT_AH(true, attr.grh.flow_label = 0xfffff);
	EXPECT_AH(true, attr.grh.traffic_class = 0xff);
	EXPECT_AH(true, attr.grh.hop_limit = 0);
	EXPECT_AH(false, attr.is_global = 0);
	EXPECT_AH(false, attr.port_num = 0);
	EXPECT_AH(false, attr.port_num = 2);
	EXPECT_AH(false, attr.grh.sgid_index = 200);
	EXPECT_AH(false, memset(&attr.grh.dgid, 0, 16));
	EXPECT_AH(false, attr.grh.dgid.raw[0] = 0x20);
}

Test(ah, groups_have_handles)
{
	EXPECT_AH(true, inet_pton(AF_INET6, "ff0e::ffff:e00a:0b0c", &attr.grh.dgid));
	EXPECT_AH(true, inet_pton(AF_INET6, "::ffff:224.10.11.12", &attr.grh.dgid));
}

/* Each GID of the port reaches itself. */
Test(ah, every_gid_reaches_itself)
{
	for (int i = 0; i < 4; i++) {
		struct ibv_ah_attr attr = good;

		attr.grh.sgid_index = (uint8_t)i;
		cr_assert_eq(ibv_query_gid(e.context, 1, i, &attr.grh.dgid), 0);
		expect_ah("a GID of our own", &attr, true);
	}
}

Test(ah, a_pd_with_handles_stays)
{
	struct ibv_pd *pd = ibv_alloc_pd(e.context);
	struct ibv_ah *ah[64];

	for (unsigned i = 0; i < ROWS(ah); i++) {
		ah[i] = ibv_create_ah(pd, &good);
		cr_assert_not_null(ah[i]);
	}
	cr_expect_eq(ibv_dealloc_pd(pd), EBUSY);
	for (unsigned i = 0; i < ROWS(ah); i++)
		cr_expect_eq(ibv_destroy_ah(ah[i]), 0);
	cr_expect_eq(ibv_dealloc_pd(pd), 0);
}

Test(ah, the_device_says_how_many)
{
	struct ibv_device_attr attr;

	cr_assert_eq(ibv_query_device(e.context, &attr), 0);
	cr_expect_gt(attr.max_ah, 0);
}
