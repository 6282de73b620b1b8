/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Toeplitz hash; see rss.h.
 */
#include "emu/steer/rss.h"

/* For each bit of the input that is 1 the 32 bits of the key that begin there count. */
uint32_t rss_toeplitz(const uint8_t key[RSS_KEY_BYTES], const uint8_t *bytes, unsigned count)
{
	uint32_t window = (uint32_t)key[0] << 24 | key[1] << 16 | key[2] << 8 | key[3], hash = 0;

	for (unsigned i = 0; i < count; i++) {
		uint8_t coming = i + 4 < RSS_KEY_BYTES ? key[i + 4] : 0;

		for (unsigned bit = 8; bit-- > 0;) {
			if (bytes[i] >> bit & 1)
				hash ^= window;
			window = window << 1 | (coming >> bit & 1);
		}
	}
	return hash;
}
