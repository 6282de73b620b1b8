/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rates in other units, and what enumerators are called.
 *
 * Rules: ibv_rate_to_mult(3), ibv_rate_to_mbps(3), ibv_event_type_str(3); api-inventory 1.37.
 */
#include <infiniband/verbs.h>
#include "harness/check.h"

TestSuite(names, .timeout = 60);

static const struct { enum ibv_rate rate; int multiple, mbps; } rates[] = {
	{ IBV_RATE_2_5_GBPS, 1, 2500 }, { IBV_RATE_5_GBPS, 2, 5000 },
	{ IBV_RATE_10_GBPS, 4, 10000 }, { IBV_RATE_20_GBPS, 8, 20000 },
	{ IBV_RATE_30_GBPS, 12, 30000 }, { IBV_RATE_40_GBPS, 16, 40000 },
	{ IBV_RATE_60_GBPS, 24, 60000 }, { IBV_RATE_80_GBPS, 32, 80000 },
	{ IBV_RATE_120_GBPS, 48, 120000 }, { IBV_RATE_14_GBPS, -1, 14062 },
	{ IBV_RATE_56_GBPS, -1, 56250 }, { IBV_RATE_112_GBPS, -1, 112500 },
	{ IBV_RATE_168_GBPS, -1, 168750 }, { IBV_RATE_25_GBPS, -1, 25781 },
	{ IBV_RATE_100_GBPS, -1, 103125 }, { IBV_RATE_200_GBPS, -1, 206250 },
	{ IBV_RATE_300_GBPS, -1, 309375 }, { IBV_RATE_28_GBPS, 11, 28125 },
	{ IBV_RATE_50_GBPS, 20, 53125 }, { IBV_RATE_400_GBPS, 160, 425000 },
	{ IBV_RATE_600_GBPS, 240, 637500 }, { IBV_RATE_800_GBPS, 320, 850000 },
	{ IBV_RATE_1200_GBPS, 480, 1275000 },
};

Test(names, rates_are_converted_both_ways)
{
	for (unsigned i = 0; i < sizeof rates / sizeof *rates; i++) {
		cr_expect_eq(ibv_rate_to_mult(rates[i].rate), rates[i].multiple, "row %u", i);
		cr_expect_eq(ibv_rate_to_mbps(rates[i].rate), rates[i].mbps, "row %u", i);
		cr_expect_eq(mbps_to_ibv_rate(rates[i].mbps), rates[i].rate, "row %u", i);
		if (rates[i].multiple > 0)
			cr_expect_eq(mult_to_ibv_rate(rates[i].multiple), rates[i].rate);
	}
}

Test(names, what_is_no_rate_is_the_highest)
{
	static const int none[] = { -1, 0, 3, 7, 2501, 1275001 };

	for (unsigned i = 0; i < sizeof none / sizeof *none; i++) {
		cr_expect_eq(mult_to_ibv_rate(none[i]), IBV_RATE_MAX, "row %u", i);
		cr_expect_eq(mbps_to_ibv_rate(none[i]), IBV_RATE_MAX, "row %u", i);
	}
	cr_expect_eq(ibv_rate_to_mult(IBV_RATE_MAX), -1);
	cr_expect_eq(ibv_rate_to_mbps(IBV_RATE_MAX), -1);
	cr_expect_eq(ibv_rate_to_mbps((enum ibv_rate)99), -1);
}

/* The first and the last of each, and those that scripts look for. */
Test(names, texts_are_those_that_programs_print)
{
	cr_expect_str_eq(ibv_node_type_str(IBV_NODE_CA), "InfiniBand channel adapter");
	cr_expect_str_eq(ibv_node_type_str(IBV_NODE_UNSPECIFIED), "unspecified");
	cr_expect_str_eq(ibv_port_state_str(IBV_PORT_NOP), "no state change (NOP)");
	cr_expect_str_eq(ibv_port_state_str(IBV_PORT_ACTIVE), "active");
	cr_expect_str_eq(ibv_port_state_str(IBV_PORT_ACTIVE_DEFER), "active defer");
	cr_expect_str_eq(ibv_event_type_str(IBV_EVENT_CQ_ERR), "CQ error");
	cr_expect_str_eq(ibv_event_type_str(IBV_EVENT_QP_FATAL),
			 "local work queue catastrophic error");
	cr_expect_str_eq(ibv_event_type_str(IBV_EVENT_WQ_FATAL), "WQ fatal");
	cr_expect_str_eq(ibv_wc_status_str(IBV_WC_SUCCESS), "success");
	cr_expect_str_eq(ibv_wc_status_str(IBV_WC_WR_FLUSH_ERR), "Work Request Flushed Error");
	cr_expect_str_eq(ibv_wc_status_str(IBV_WC_RETRY_EXC_ERR),
			 "transport retry counter exceeded");
	cr_expect_str_eq(ibv_wc_status_str(IBV_WC_RNR_RETRY_EXC_ERR),
			 "RNR retry counter exceeded");
	cr_expect_str_eq(ibv_wc_status_str(IBV_WC_TM_RNDV_INCOMPLETE), "TM software rendezvous");
}

/* Node types begin at -1, which has no text. */
Test(names, what_has_no_name_is_unknown)
{
	cr_expect_str_eq(ibv_node_type_str(IBV_NODE_UNKNOWN), "unknown");
	cr_expect_str_eq(ibv_node_type_str((enum ibv_node_type)99), "unknown");
	cr_expect_str_eq(ibv_port_state_str((enum ibv_port_state)99), "unknown");
	cr_expect_str_eq(ibv_event_type_str((enum ibv_event_type)99), "unknown");
	cr_expect_str_eq(ibv_wc_status_str((enum ibv_wc_status)99), "unknown");
	for (int i = 0; i <= IBV_WC_TM_RNDV_INCOMPLETE; i++)
		cr_expect_str_neq(ibv_wc_status_str((enum ibv_wc_status)i), "unknown");
}
