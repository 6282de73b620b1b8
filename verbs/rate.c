/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Static rates: as the enumeration, as a multiple of 2.5 Gb/s and in Mb/s.
 *
 * Rates of links that came after QDR count what a lane carries; most are no multiple.
 *
 * Source: inventory 1.37; ibv_rate_to_mult(3), ibv_rate_to_mbps(3).
 */
#include <infiniband/verbs.h>
#include "verbs/context.h"

#define NO_MULTIPLE	(-1)

static const struct { enum ibv_rate rate; int multiple, mbps; } rates[] = {
	{ IBV_RATE_2_5_GBPS,	1,		2500 },
	{ IBV_RATE_5_GBPS,	2,		5000 },
	{ IBV_RATE_10_GBPS,	4,		10000 },
	{ IBV_RATE_14_GBPS,	NO_MULTIPLE,	14062 },
	{ IBV_RATE_20_GBPS,	8,		20000 },
	{ IBV_RATE_25_GBPS,	NO_MULTIPLE,	25781 },
	{ IBV_RATE_28_GBPS,	11,		28125 },
	{ IBV_RATE_30_GBPS,	12,		30000 },
	{ IBV_RATE_40_GBPS,	16,		40000 },
	{ IBV_RATE_50_GBPS,	20,		53125 },
	{ IBV_RATE_56_GBPS,	NO_MULTIPLE,	56250 },
	{ IBV_RATE_60_GBPS,	24,		60000 },
	{ IBV_RATE_80_GBPS,	32,		80000 },
	{ IBV_RATE_100_GBPS,	NO_MULTIPLE,	103125 },
	{ IBV_RATE_112_GBPS,	NO_MULTIPLE,	112500 },
	{ IBV_RATE_120_GBPS,	48,		120000 },
	{ IBV_RATE_168_GBPS,	NO_MULTIPLE,	168750 },
	{ IBV_RATE_200_GBPS,	NO_MULTIPLE,	206250 },
	{ IBV_RATE_300_GBPS,	NO_MULTIPLE,	309375 },
	{ IBV_RATE_400_GBPS,	160,		425000 },
	{ IBV_RATE_600_GBPS,	240,		637500 },
	{ IBV_RATE_800_GBPS,	320,		850000 },
	{ IBV_RATE_1200_GBPS,	480,		1275000 },
};
#define RATES (sizeof rates / sizeof *rates)

VB_EXPORT int ibv_rate_to_mult(enum ibv_rate rate)
{
	for (unsigned i = 0; i < RATES; i++)
		if (rates[i].rate == rate)
			return rates[i].multiple;
	return NO_MULTIPLE;
}

VB_EXPORT enum ibv_rate mult_to_ibv_rate(int mult)
{
	for (unsigned i = 0; i < RATES; i++)
		if (rates[i].multiple == mult && mult != NO_MULTIPLE)
			return rates[i].rate;
	return IBV_RATE_MAX;
}

VB_EXPORT int ibv_rate_to_mbps(enum ibv_rate rate)
{
	for (unsigned i = 0; i < RATES; i++)
		if (rates[i].rate == rate)
			return rates[i].mbps;
	return -1;
}

VB_EXPORT enum ibv_rate mbps_to_ibv_rate(int mbps)
{
	for (unsigned i = 0; i < RATES; i++)
		if (rates[i].mbps == mbps)
			return rates[i].rate;
	return IBV_RATE_MAX;
}
