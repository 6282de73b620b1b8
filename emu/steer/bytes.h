/* SPDX-License-Identifier: BSD-2-Clause */
/* Big-endian numbers in a frame, at any address. */
#ifndef EMU_STEER_BYTES_H
#define EMU_STEER_BYTES_H
#include <stdint.h>
#include <string.h>

static inline uint16_t load16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static inline uint32_t load32(const uint8_t *at)
{
	return (uint32_t)load16(at) << 16 | load16(at + 2);
}

static inline void store16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static inline void store32(uint8_t *at, uint32_t value)
{
	store16(at, (uint16_t)(value >> 16));
	store16(at + 2, (uint16_t)value);
}
#endif
