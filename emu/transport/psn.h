/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 24-bit packet sequence numbers.  "Later" means within the next 2^23.
 *
 * Source: IBTA volume 1, 9.7.2.
 */
#ifndef EMU_TRANSPORT_PSN_H
#define EMU_TRANSPORT_PSN_H
#include <stdint.h>

#define PSN_MASK	0xffffffu

static inline int32_t psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

static inline uint32_t psn_add(uint32_t psn, uint32_t count)
{
	return (psn + count) & PSN_MASK;
}

/* Packets that @bytes take: an empty message takes one. */
static inline uint32_t psn_count_of(uint64_t bytes, uint32_t mtu_bytes)
{
	return bytes ? (uint32_t)((bytes + mtu_bytes - 1) / mtu_bytes) : 1;
}
#endif
