/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes to move and recognise; see end.h. */
#include "end.h"

static uint8_t pattern_byte(size_t i, uint64_t seed)
{
	uint64_t x = (i + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ seed * UINT64_C(0xbf58476d1ce4e5b9);

	return (uint8_t)(x >> 37 ^ x >> 11);
}

void pattern_fill(void *at, size_t bytes, uint64_t seed)
{
	uint8_t *b = at;

	for (size_t i = 0; i < bytes; i++)
		b[i] = pattern_byte(i, seed);
}

int64_t pattern_differs(const void *at, size_t bytes, uint64_t seed)
{
	const uint8_t *b = at;

	for (size_t i = 0; i < bytes; i++)
		if (b[i] != pattern_byte(i, seed))
			return (int64_t)i;
	return -1;
}
