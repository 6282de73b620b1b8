/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading a capture; see capture.h.
 */
#include "emu/uplink/capture.h"
#include <errno.h>
#include "emu/mem/mem.h"

#define LINK_ETHERNET	1
#define LINK_MASK	0xffffu		/* above it pcap says how long the FCS is */

const char *capture_fault_text(enum capture_fault fault)
{
	static const char *const texts[CAPTURE_FAULT_COUNT] = {
		[CAPTURE_OK] = "is a capture",
		[CAPTURE_END] = "is a capture",
		[CAPTURE_EMPTY] = "is empty",
		[CAPTURE_COMPRESSED] = "is compressed: gunzip it first",
		[CAPTURE_FORMAT] = "is neither pcapng nor pcap",
		[CAPTURE_VERSION] = "is of a version that is not known",
		[CAPTURE_LINK] = "holds frames that are not Ethernet's",
		[CAPTURE_CUT] = "ends in the middle of a block",
		[CAPTURE_LENGTH] = "has a block whose lengths contradict each other",
		[CAPTURE_INTERFACE] = "has a packet of an interface that was not described",
		[CAPTURE_MEMORY] = "became shorter, or can't be read",
	};

	return texts[fault];
}

/* --- numbers --- */

static enum capture_fault load(const struct capture *c, uint64_t at, void *out, uint32_t bytes)
{
	if (at > c->bytes || bytes > c->bytes - at)
		return CAPTURE_CUT;
	return mem_copy_in(out, (uintptr_t)c->at + at, bytes) ? CAPTURE_MEMORY : CAPTURE_OK;
}

static uint32_t host32(const struct capture *c, uint32_t raw)
{
	return c->is_swapped ? __builtin_bswap32(raw) : raw;
}

static enum capture_fault load32(const struct capture *c, uint64_t at, uint32_t *out)
{
	enum capture_fault fault = load(c, at, out, sizeof *out);

	*out = fault ? 0 : host32(c, *out);
	return fault;
}

static enum capture_fault load16(const struct capture *c, uint64_t at, uint32_t *out)
{
	uint16_t raw = 0;
	enum capture_fault fault = load(c, at, &raw, sizeof raw);

	*out = c->is_swapped ? __builtin_bswap16(raw) : raw;
	return fault;
}

/* --- pcapng --- */

enum { NG_SECTION = 0x0a0d0d0a, NG_MAGIC = 0x1a2b3c4d, NG_MAJOR = 1 };
enum { NG_TYPE = 0, NG_LENGTH = 4, NG_BODY = 8, NG_TRAILER_BYTES = 4, NG_BYTES_MIN = 12 };
enum { SECTION_MAGIC = 8, SECTION_MAJOR = 12 };
enum { INTERFACE_LINK = 8, INTERFACE_SNAP = 12 };

struct block {
	uint64_t at;
	uint32_t type, bytes;
};

static enum capture_fault section_take(struct capture *c, const struct block *b,
				       struct capture_frame *out)
{
	uint32_t major;
	enum capture_fault fault = load16(c, b->at + SECTION_MAJOR, &major);

	(void)out;
	c->interface_count = 0;
	c->first_snap_bytes = 0;
	return fault ? fault : major == NG_MAJOR ? CAPTURE_OK : CAPTURE_VERSION;
}

static enum capture_fault interface_take(struct capture *c, const struct block *b,
					 struct capture_frame *out)
{
	uint32_t link, snap_bytes;
	enum capture_fault fault = load16(c, b->at + INTERFACE_LINK, &link);

	(void)out;
	if (!fault)
		fault = load32(c, b->at + INTERFACE_SNAP, &snap_bytes);
	if (fault)
		return fault;
	if (link != LINK_ETHERNET)
		return CAPTURE_LINK;
	if (!c->interface_count++)
		c->first_snap_bytes = snap_bytes;
	return CAPTURE_OK;
}

/* The frame is at @header of the block. */
static enum capture_fault frame_give(const struct capture *c, const struct block *b,
				     uint32_t header, uint32_t interface, uint32_t bytes,
				     struct capture_frame *out)
{
	if (interface >= c->interface_count)
		return CAPTURE_INTERFACE;
	if (bytes > b->bytes - header - NG_TRAILER_BYTES)
		return CAPTURE_LENGTH;
	*out = (struct capture_frame){ b->at + header, bytes };
	return CAPTURE_OK;
}

enum { ENHANCED_INTERFACE = 8, ENHANCED_CAPTURED = 20, ENHANCED_FRAME = 28 };

static enum capture_fault enhanced_take(struct capture *c, const struct block *b,
					struct capture_frame *out)
{
	uint32_t interface, bytes;
	enum capture_fault fault = load32(c, b->at + ENHANCED_INTERFACE, &interface);

	if (!fault)
		fault = load32(c, b->at + ENHANCED_CAPTURED, &bytes);
	return fault ? fault : frame_give(c, b, ENHANCED_FRAME, interface, bytes, out);
}

/* What was there before the enhanced one: the interface's number is shorter. */
static enum capture_fault old_take(struct capture *c, const struct block *b,
				   struct capture_frame *out)
{
	uint32_t interface, bytes;
	enum capture_fault fault = load16(c, b->at + ENHANCED_INTERFACE, &interface);

	if (!fault)
		fault = load32(c, b->at + ENHANCED_CAPTURED, &bytes);
	return fault ? fault : frame_give(c, b, ENHANCED_FRAME, interface, bytes, out);
}

enum { SIMPLE_ORIGINAL = 8, SIMPLE_FRAME = 12 };

/* How much was captured only the interface says. */
static enum capture_fault simple_take(struct capture *c, const struct block *b,
				      struct capture_frame *out)
{
	uint32_t bytes;
	enum capture_fault fault = load32(c, b->at + SIMPLE_ORIGINAL, &bytes);

	if (fault)
		return fault;
	if (c->first_snap_bytes && bytes > c->first_snap_bytes)
		bytes = c->first_snap_bytes;
	return frame_give(c, b, SIMPLE_FRAME, 0, bytes, out);
}

static const struct block_kind {
	uint32_t type, bytes_min;
	bool has_frame;
	enum capture_fault (*take)(struct capture *c, const struct block *b,
				   struct capture_frame *out);
} block_kinds[] = {
	{ NG_SECTION,	28,	false,	section_take },
	{ 1,		20,	false,	interface_take },
	{ 2,		32,	true,	old_take },
	{ 3,		16,	true,	simple_take },
	{ 6,		32,	true,	enhanced_take },
};

/* NULL: nobody has to know it. */
static const struct block_kind *block_kind_find(uint32_t type)
{
	for (unsigned i = 0; i < sizeof block_kinds / sizeof *block_kinds; i++)
		if (block_kinds[i].type == type)
			return &block_kinds[i];
	return NULL;
}

/* A section says in which byte order it is. */
static enum capture_fault order_find(struct capture *c, uint64_t section_at)
{
	uint32_t magic;
	enum capture_fault fault;

	c->is_swapped = false;
	fault = load32(c, section_at + SECTION_MAGIC, &magic);
	if (fault)
		return fault;
	c->is_swapped = magic == __builtin_bswap32(NG_MAGIC);
	return c->is_swapped || magic == NG_MAGIC ? CAPTURE_OK : CAPTURE_FORMAT;
}

/* Its two lengths agree and all of it is there. */
static enum capture_fault block_read(struct capture *c, struct block *b)
{
	uint32_t trailer;
	enum capture_fault fault = load32(c, b->at + NG_TYPE, &b->type);

	if (!fault && b->type == NG_SECTION)
		fault = order_find(c, b->at);
	if (!fault)
		fault = load32(c, b->at + NG_LENGTH, &b->bytes);
	if (fault)
		return fault;
	if (b->bytes < NG_BYTES_MIN || b->bytes % 4)
		return CAPTURE_LENGTH;
	fault = load32(c, b->at + b->bytes - NG_TRAILER_BYTES, &trailer);
	return fault ? fault : trailer == b->bytes ? CAPTURE_OK : CAPTURE_LENGTH;
}

static enum capture_fault ng_next(struct capture *c, struct capture_frame *out)
{
	while (c->next < c->bytes) {
		struct block b = { .at = c->next };
		enum capture_fault fault = block_read(c, &b);
		const struct block_kind *kind = fault ? NULL : block_kind_find(b.type);

		if (kind && b.bytes < kind->bytes_min)
			fault = CAPTURE_LENGTH;
		else if (kind)
			fault = kind->take(c, &b, out);
		if (fault)
			return fault;
		c->next += b.bytes;
		if (kind && kind->has_frame)
			return CAPTURE_OK;
	}
	return CAPTURE_END;
}

/* --- pcap --- */

enum { OLD_MAGIC_US = 0xa1b2c3d4, OLD_MAGIC_NS = 0xa1b23c4d, OLD_MAJOR = 2 };
enum { OLD_VERSION = 4, OLD_LINK = 20, OLD_FILE_HEADER = 24 };
enum { RECORD_CAPTURED = 8, RECORD_HEADER = 16 };

static bool is_old_magic(uint32_t magic)
{
	return magic == OLD_MAGIC_US || magic == OLD_MAGIC_NS;
}

static enum capture_fault old_begin(struct capture *c)
{
	uint32_t major, link;
	enum capture_fault fault = load16(c, OLD_VERSION, &major);

	if (!fault)
		fault = load32(c, OLD_LINK, &link);
	if (fault)
		return fault;
	c->next = OLD_FILE_HEADER;
	if (major != OLD_MAJOR)
		return CAPTURE_VERSION;
	return (link & LINK_MASK) == LINK_ETHERNET ? CAPTURE_OK : CAPTURE_LINK;
}

static enum capture_fault old_next(struct capture *c, struct capture_frame *out)
{
	uint64_t frame_at = c->next + RECORD_HEADER;
	enum capture_fault fault;
	uint32_t bytes;

	if (c->next == c->bytes)
		return CAPTURE_END;
	fault = load32(c, c->next + RECORD_CAPTURED, &bytes);
	if (fault)
		return fault;
	if (frame_at > c->bytes || bytes > c->bytes - frame_at)
		return CAPTURE_CUT;
	*out = (struct capture_frame){ frame_at, bytes };
	c->next = frame_at + bytes;
	return CAPTURE_OK;
}

/* --- either --- */

static bool is_gzip(uint32_t magic)
{
	const uint8_t *byte = (const uint8_t *)&magic;

	return byte[0] == 0x1f && byte[1] == 0x8b;
}

enum capture_fault capture_begin(struct capture *c, const void *at, uint64_t bytes)
{
	enum capture_fault fault;
	uint32_t magic;

	*c = (struct capture){ .at = at, .bytes = bytes };
	if (!bytes)
		return CAPTURE_EMPTY;
	fault = load32(c, 0, &magic);
	if (fault)
		return fault == CAPTURE_CUT ? CAPTURE_FORMAT : fault;
	c->is_ng = magic == NG_SECTION;
	if (c->is_ng)
		return order_find(c, 0);
	if (is_gzip(magic))
		return CAPTURE_COMPRESSED;
	c->is_swapped = is_old_magic(__builtin_bswap32(magic));
	return c->is_swapped || is_old_magic(magic) ? old_begin(c) : CAPTURE_FORMAT;
}

enum capture_fault capture_next(struct capture *c, struct capture_frame *out)
{
	return c->is_ng ? ng_next(c, out) : old_next(c, out);
}

enum capture_fault capture_check(struct capture *c, const void *at, uint64_t bytes)
{
	enum capture_fault fault = capture_begin(c, at, bytes);
	struct capture_frame frame;

	while (!fault)
		fault = capture_next(c, &frame);
	return fault;
}

int capture_copy(const struct capture *c, const struct capture_frame *frame, void *out)
{
	return load(c, frame->at, out, frame->bytes) ? -EFAULT : 0;
}
