/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The frame check sequence, eight bytes at a time; see offload.h.
 *
 * Source: IEEE 802.3 3.2.9: the CRC of x^32 + x^26 + x^23 + x^22 + x^16 + x^12 + x^11 + x^10 + x^8
 * + x^7 + x^5 + x^4 + x^2 + x + 1, bits of a byte LSB first.
 */
#include "emu/steer/offload.h"

enum { SLICE = 8 };

/* A CRC of a sum is the sum of the CRCs, so eight of them, for the bits of a byte from the most
 * significant one on, make the table. */
#define ENTRY(n, c7, c6, c5, c4, c3, c2, c1, c0)                                     \
	(((n) & 128 ? c7 : 0) ^ ((n) & 64 ? c6 : 0) ^ ((n) & 32 ? c5 : 0) ^          \
	 ((n) & 16 ? c4 : 0) ^ ((n) & 8 ? c3 : 0) ^ ((n) & 4 ? c2 : 0) ^             \
	 ((n) & 2 ? c1 : 0) ^ ((n) & 1 ? c0 : 0))
#define ENTRIES4(n, ...)	ENTRY((n), __VA_ARGS__), ENTRY((n) + 1, __VA_ARGS__), \
				ENTRY((n) + 2, __VA_ARGS__), ENTRY((n) + 3, __VA_ARGS__)
#define ENTRIES16(n, ...)	ENTRIES4((n), __VA_ARGS__), ENTRIES4((n) + 4, __VA_ARGS__), \
				ENTRIES4((n) + 8, __VA_ARGS__), ENTRIES4((n) + 12, __VA_ARGS__)
#define ENTRIES64(n, ...)	ENTRIES16((n), __VA_ARGS__), ENTRIES16((n) + 16, __VA_ARGS__), \
				ENTRIES16((n) + 32, __VA_ARGS__), ENTRIES16((n) + 48, __VA_ARGS__)
#define TABLE(...)                                                                   \
	{ ENTRIES64(0, __VA_ARGS__), ENTRIES64(64, __VA_ARGS__),                     \
	  ENTRIES64(128, __VA_ARGS__), ENTRIES64(192, __VA_ARGS__) }

/* The CRC of a byte with so many zeros behind it. */
static const uint32_t crc_of[SLICE][256] = {
	TABLE(0xedb88320, 0x76dc4190, 0x3b6e20c8, 0x1db71064,
	      0x0edb8832, 0x076dc419, 0xee0e612c, 0x77073096),
	TABLE(0x3b83984b, 0xf0794f05, 0x958424a2, 0x4ac21251,
	      0xc8d98a08, 0x646cc504, 0x32366282, 0x191b3141),
	TABLE(0xe1351b80, 0x709a8dc0, 0x384d46e0, 0x1c26a370,
	      0x0e1351b8, 0x0709a8dc, 0x0384d46e, 0x01c26a37),
	TABLE(0xed59b63b, 0x9b14583d, 0xa032af3e, 0x5019579f,
	      0xc5b428ef, 0x8f629757, 0xaa09c88b, 0xb8bc6765),
	TABLE(0xb1e6b092, 0x58f35849, 0xc1c12f04, 0x60e09782,
	      0x30704bc1, 0xf580a6c0, 0x7ac05360, 0x3d6029b0),
	TABLE(0x1eb014d8, 0x0f580a6c, 0x07ac0536, 0x03d6029b,
	      0xec53826d, 0x9b914216, 0x4dc8a10b, 0xcb5cd3a5),
	TABLE(0x8816eaf2, 0x440b7579, 0xcfbd399c, 0x67de9cce,
	      0x33ef4e67, 0xf44f2413, 0x979f1129, 0xa6770bb4),
	TABLE(0x533b85da, 0x299dc2ed, 0xf9766256, 0x7cbb312b,
	      0xd3e51bb5, 0x844a0efa, 0x4225077d, 0xccaa009e),
};

static uint32_t load_le32(const uint8_t *at)
{
	return (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

static uint32_t crc_slice(uint32_t crc, const uint8_t *bytes)
{
	uint32_t a = crc ^ load_le32(bytes), b = load_le32(bytes + 4);

	return crc_of[7][a & 0xff] ^ crc_of[6][a >> 8 & 0xff] ^ crc_of[5][a >> 16 & 0xff] ^
	       crc_of[4][a >> 24] ^ crc_of[3][b & 0xff] ^ crc_of[2][b >> 8 & 0xff] ^
	       crc_of[1][b >> 16 & 0xff] ^ crc_of[0][b >> 24];
}

void offload_fcs(const uint8_t *frame, uint32_t bytes, uint8_t out[FCS_BYTES])
{
	uint32_t crc = ~0u;

	for (; bytes >= SLICE; bytes -= SLICE, frame += SLICE)
		crc = crc_slice(crc, frame);
	for (; bytes; bytes--, frame++)
		crc = crc >> 8 ^ crc_of[0][(crc ^ *frame) & 0xff];
	for (unsigned i = 0; i < FCS_BYTES; i++)
		out[i] = (uint8_t)(~crc >> 8 * i);
}
