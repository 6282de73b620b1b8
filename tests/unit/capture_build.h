/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Captures made by hand, in either byte order, for tests of emu/uplink.  Frame @i of @n is told by
 * its length and its bytes.
 */
#ifndef TESTS_UNIT_CAPTURE_BUILD_H
#define TESTS_UNIT_CAPTURE_BUILD_H
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BUILT_MAX = 1 << 16 };

struct built {
	bool is_swapped;
	uint32_t bytes;
	uint8_t at[BUILT_MAX];
};

static inline void put(struct built *b, const void *from, uint32_t bytes)
{
	cr_assert_leq(b->bytes + bytes, BUILT_MAX);
	memcpy(b->at + b->bytes, from, bytes);
	b->bytes += bytes;
}

static inline void put32(struct built *b, uint32_t value)
{
	value = b->is_swapped ? __builtin_bswap32(value) : value;
	put(b, &value, sizeof value);
}

static inline void put16(struct built *b, uint16_t value)
{
	value = b->is_swapped ? __builtin_bswap16(value) : value;
	put(b, &value, sizeof value);
}

static inline void pad(struct built *b)
{
	while (b->bytes % 4)
		put(b, "\xee", 1);
}

/* --- frames --- */

static inline uint32_t frame_bytes(unsigned i)
{
	return 14 + i * 7;
}

static inline uint8_t frame_byte(unsigned i, uint32_t at)
{
	return (uint8_t)(i * 31 + at * 3 + 1);
}

static inline void put_frame(struct built *b, unsigned i, uint32_t bytes)
{
	for (uint32_t at = 0; at < bytes; at++)
		put(b, &(uint8_t){ frame_byte(i, at) }, 1);
}

static inline bool is_frame(const uint8_t *bytes, uint32_t count, unsigned i, uint32_t wanted)
{
	for (uint32_t at = 0; at < count; at++)
		if (bytes[at] != frame_byte(i, at))
			return false;
	return count == wanted;
}

/* --- pcapng --- */

/* Its length is written when it ends. */
static inline uint32_t block_begin(struct built *b, uint32_t type)
{
	uint32_t at = b->bytes;

	put32(b, type);
	put32(b, 0);
	return at;
}

static inline void set32(struct built *b, uint32_t at, uint32_t value)
{
	uint32_t end = b->bytes;

	b->bytes = at;
	put32(b, value);
	b->bytes = end;
}

static inline void block_end(struct built *b, uint32_t at)
{
	pad(b);
	put32(b, b->bytes + 4 - at);
	set32(b, at + 4, b->bytes - at);
}

static inline void put_section(struct built *b)
{
	uint32_t at = block_begin(b, 0x0a0d0d0a);

	put32(b, 0x1a2b3c4d);
	put16(b, 1);
	put16(b, 0);
	put32(b, -1u);
	put32(b, -1u);
	block_end(b, at);
}

static inline void put_interface(struct built *b, uint16_t link, uint32_t snap_bytes)
{
	uint32_t at = block_begin(b, 1);

	put16(b, link);
	put16(b, 0);
	put32(b, snap_bytes);
	block_end(b, at);
}

/* With an option behind the frame. */
static inline void put_enhanced(struct built *b, uint32_t interface, unsigned i, uint32_t bytes)
{
	uint32_t at = block_begin(b, 6);

	put32(b, interface);
	put32(b, 0x1234);
	put32(b, i);
	put32(b, bytes);
	put32(b, bytes);
	put_frame(b, i, bytes);
	pad(b);
	put16(b, 1);
	put16(b, 5);
	put(b, "hello", 5);
	pad(b);
	put32(b, 0);
	block_end(b, at);
}

static inline void put_simple(struct built *b, unsigned i, uint32_t original, uint32_t captured)
{
	uint32_t at = block_begin(b, 3);

	put32(b, original);
	put_frame(b, i, captured);
	block_end(b, at);
}

/* What was there before the enhanced one. */
static inline void put_obsolete(struct built *b, unsigned i, uint32_t bytes)
{
	uint32_t at = block_begin(b, 2);

	put16(b, 0);
	put16(b, 7);
	put32(b, 0x1234);
	put32(b, i);
	put32(b, bytes);
	put32(b, bytes);
	put_frame(b, i, bytes);
	block_end(b, at);
}

static inline void put_unknown(struct built *b)
{
	uint32_t at = block_begin(b, 0x0bad);

	put(b, "what is this?", 13);
	block_end(b, at);
}

/* One of each, @n frames of which the kinds take turns. */
static inline struct built build_ng(bool is_swapped, unsigned n)
{
	struct built b = { .is_swapped = is_swapped };

	put_section(&b);
	put_interface(&b, 1, 0);
	put_unknown(&b);
	for (unsigned i = 0; i < n; i++) {
		if (i % 4 == 3)
			put_simple(&b, i, frame_bytes(i), frame_bytes(i));
		else if (i % 4 == 2)
			put_obsolete(&b, i, frame_bytes(i));
		else
			put_enhanced(&b, 0, i, frame_bytes(i));
	}
	return b;
}

/* --- pcap --- */

static inline void put_old_header(struct built *b, uint32_t magic, uint16_t major, uint32_t link)
{
	put32(b, magic);
	put16(b, major);
	put16(b, 4);
	put32(b, 0);
	put32(b, 0);
	put32(b, 65535);
	put32(b, link);
}

static inline void put_record(struct built *b, unsigned i, uint32_t bytes)
{
	put32(b, 1700000000);
	put32(b, i);
	put32(b, bytes);
	put32(b, bytes + 100);
	put_frame(b, i, bytes);
}

static inline struct built build_old(bool is_swapped, unsigned n)
{
	struct built b = { .is_swapped = is_swapped };

	put_old_header(&b, is_swapped ? 0xa1b23c4d : 0xa1b2c3d4, 2, 1);
	for (unsigned i = 0; i < n; i++)
		put_record(&b, i, frame_bytes(i));
	return b;
}

static inline void built_write(const struct built *b, const char *path)
{
	FILE *f = fopen(path, "w");

	cr_assert(f);
	cr_assert_eq(fwrite(b->at, 1, b->bytes, f), b->bytes);
	cr_assert_eq(fclose(f), 0);
}
#endif
