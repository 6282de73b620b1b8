/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RSS: the Toeplitz hash of a frame's addresses and ports.
 *
 * Source: device-abi H.3; the Toeplitz function of Microsoft's RSS documents.
 */
#ifndef EMU_STEER_RSS_H
#define EMU_STEER_RSS_H
#include <stdbool.h>
#include <stdint.h>
#include "emu/steer/frame.h"

#define RSS_KEY_BYTES		40
#define RSS_INPUT_BYTES_MAX	36	/* of IPv6 addresses and ports: the key is made for it */

/* Field mask: numbers of the uverbs ABI (MLX5_RX_HASH_). */
enum rss_field {
	RSS_SRC_IPV4 = 1 << 0, RSS_DST_IPV4 = 1 << 1, RSS_SRC_IPV6 = 1 << 2, RSS_DST_IPV6 = 1 << 3,
	RSS_SRC_PORT_TCP = 1 << 4, RSS_DST_PORT_TCP = 1 << 5,
	RSS_SRC_PORT_UDP = 1 << 6, RSS_DST_PORT_UDP = 1 << 7,
};

struct rss {
	uint32_t fields;
	bool is_inner;			/* of a tunnelled frame: the inner headers */
	uint8_t key[RSS_KEY_BYTES];
};

/* Bits MSB first, as the standard vectors have it; @count at most RSS_INPUT_BYTES_MAX. */
uint32_t rss_toeplitz(const uint8_t key[RSS_KEY_BYTES], const uint8_t *bytes, unsigned count);

/* The hash, and rx_hash_type of the CQE: L3 [3:2] (1 IPv4, 2 IPv6), L4 [7:6] (1 TCP, 2 UDP), each
 * 0 if none of its fields is hashed; 0 and 0: the frame has not got all that is to be hashed. */
uint32_t rss_hash(const struct rss *rss, const struct frame *f, uint8_t *type_out);
#endif
