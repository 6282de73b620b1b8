/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Can a frame hurt who reads it, steers by it or mends it?
 *
 * Nine bytes say how a message is cut into segments and which rule is made of the frame; the
 * others are the frame.  Each copy of it ends where memory does.
 */
#include <stdlib.h>
#include "emu/steer/match.h"
#include "emu/steer/offload.h"
#include "emu/steer/rss.h"
#include "tests/fuzz/world.h"

enum {
	ALL_BLOCKS = (1 << STEER_BLOCK_COUNT) - 1,
	ALL_SUMS = OFFLOAD_L3 | OFFLOAD_L4 | OFFLOAD_INNER_L3 | OFFLOAD_INNER_L4,
	PAYLOAD_BYTES_MAX = 4096,
};

struct choices {
	uint8_t mask_step;
	uint16_t header_bytes, mss;
	uint32_t payload_bytes;
};

static uint8_t *copy_of(const uint8_t *bytes, uint32_t count, uint32_t room)
{
	uint8_t *copy = malloc(count + room + !(count + room));

	assert(copy);
	if (count)
		memcpy(copy, bytes, count);
	return copy;
}

/* --- reading --- */

static void layer_check(const struct frame *f, const struct frame_layer *l)
{
	assert(l->l2 <= l->l3 && l->l3 <= f->bytes && l->payload <= f->bytes);
	assert(!l->l4 || (l->l4 > l->l3 && l->l4 + 8u <= f->bytes && !l->is_fragment));
	assert(!l->l4 == !l->l4_type && (!l->l4 || l->l3_type));
	assert(!l->l4_ok || l->l4_end);
	assert(!l->l4_end || (l->l4 && l->payload >= l->l4 && l->l4_end >= l->payload));
	assert(l->l4_end <= f->bytes);
	assert(!l->payload || (l->l3_type && l->payload > l->l3));
}

static void frame_check(const struct frame *f)
{
	layer_check(f, &f->outer);
	layer_check(f, &f->inner);
	assert(!f->tunnel == !f->tunnel_at && f->tunnel_at < f->bytes);
	assert(f->tunnel || !f->inner.l3);
	assert(!(f->has_cvlan && f->has_svlan) && (f->has_cvlan || f->has_svlan || !f->vlan));
}

/* A block at a time gives the same key, and no more than that block. */
static void blocks_check(const struct frame *f, const union steer_key *whole)
{
	union steer_key key, noise;

	memset(&noise, 0xa5, sizeof noise);
	for (unsigned i = 0; i < STEER_BLOCK_COUNT; i++) {
		key = noise;
		frame_key(f, 1u << i, &key);
		assert(!memcmp(key.block[i], whole->block[i], STEER_BLOCK_BYTES));
		memcpy(key.block[i], noise.block[i], STEER_BLOCK_BYTES);
		assert(!memcmp(&key, &noise, sizeof key));
	}
}

/* A rule that asks for some of what the frame says finds it, behind one that asks for all. */
static void match_check(const union steer_key *key, uint8_t mask_step)
{
	struct steer_rule rule = { .level = STEER_LEVEL_NORMAL, .continues = true, .value = *key };
	struct steer_table *table;
	uint64_t id[2];

	if (steer_table_create(&table))
		return;
	memset(&rule.mask, 0xff, sizeof rule.mask);
	assert(!steer_add(table, &rule));
	for (unsigned i = mask_step; i < STEER_KEY_BYTES; i += mask_step + 1u)
		rule.mask.bytes[i] = 0;
	rule.level = STEER_LEVEL_HOST;
	rule.id = 1;
	assert(!steer_add(table, &rule));
	assert(steer_lookup(table, key, id, 2) == 2 && id[0] == 0 && id[1] == 1);
	assert(steer_lookup_plain(table, key, id, 2) == 2 && id[0] == 0 && id[1] == 1);
	steer_table_destroy(table);
}

static void hash_check(const struct frame *f, uint32_t fields)
{
	struct rss rss = { .fields = fields & 0xff, .is_inner = fields >> 31 };
	uint8_t type;

	memset(rss.key, 0x6d, sizeof rss.key);
	rss_hash(&rss, f, &type);
	assert(!(type & ~0xcc));
}

static void read_check(const uint8_t *bytes, uint32_t count, const struct choices *c)
{
	uint8_t *copy = copy_of(bytes, count, 0);
	union steer_key key;
	struct frame f;

	if (frame_read(&f, copy, count, true)) {
		frame_check(&f);
		frame_key(&f, ALL_BLOCKS, &key);
		blocks_check(&f, &key);
		match_check(&key, c->mask_step);
		hash_check(&f, c->payload_bytes);
	}
	free(copy);
}

/* --- mending --- */

static void sums_right(const struct frame_layer *l)
{
	assert(!l->l3_type || l->l3_ok);
	assert(!l->l4_end || l->l4_ok);
}

static void sums_check(const uint8_t *bytes, uint32_t count)
{
	uint8_t *once = copy_of(bytes, count, 0), *twice;
	struct frame f;

	offload_checksums(once, count, ALL_SUMS);
	if (frame_read(&f, once, count, true)) {
		sums_right(&f.outer);
		sums_right(&f.inner);
	}
	twice = copy_of(once, count, 0);
	offload_checksums(twice, count, ALL_SUMS);
	assert(!count || !memcmp(once, twice, count));
	free(twice);
	free(once);
}

static void segment_check(const uint8_t *header, uint32_t header_bytes, uint32_t payload_bytes,
			  uint32_t mss, uint32_t index)
{
	uint8_t *in = copy_of(header, header_bytes, 0);
	uint8_t *out = copy_of(header, header_bytes, PAYLOAD_BYTES_MAX);
	uint64_t left = payload_bytes - (uint64_t)index * mss;
	uint32_t here = left < mss ? (uint32_t)left : mss;
	struct frame f;

	memset(out + header_bytes, 0, PAYLOAD_BYTES_MAX);
	if (offload_segment(in, header_bytes, payload_bytes, mss, index, out) &&
	    here <= PAYLOAD_BYTES_MAX) {
		offload_checksums(out, header_bytes + here, OFFLOAD_L3 | OFFLOAD_L4);
		assert(frame_read(&f, out, header_bytes + here, true));
		assert(f.outer.l3_ok && f.outer.l4_ok && f.outer.payload == header_bytes);
	}
	free(out);
	free(in);
}

static void segments_check(const uint8_t *bytes, uint32_t count, const struct choices *c)
{
	uint32_t header = c->header_bytes && c->header_bytes < count ? c->header_bytes : count;
	uint32_t last = c->mss ? c->payload_bytes / c->mss : 0;

	segment_check(bytes, header, c->payload_bytes, c->mss, 0);
	segment_check(bytes, header, c->payload_bytes, c->mss, last);
	segment_check(bytes, header, c->payload_bytes, c->mss, last + 1);
}

static void tag_check(const uint8_t *bytes, uint32_t count, uint16_t tci)
{
	uint8_t *copy = copy_of(bytes, count, VLAN_BYTES);
	uint32_t got = offload_vlan_insert(copy, count, tci);
	struct frame f;

	assert(got == count + (count < FRAME_HEADER_BYTES ? 0 : VLAN_BYTES));
	if (frame_read(&f, copy, got, false))
		assert(f.has_cvlan && f.vlan == tci);
	free(copy);
}

/* The CRC of a frame with its FCS is the same for all frames. */
static void fcs_check(const uint8_t *bytes, uint32_t count)
{
	static const uint8_t residue[FCS_BYTES] = { 0x1c, 0xdf, 0x44, 0x21 };
	uint8_t *copy = copy_of(bytes, count, FCS_BYTES), out[FCS_BYTES];

	offload_fcs(copy, count, copy + count);
	offload_fcs(copy, count + FCS_BYTES, out);
	assert(!memcmp(out, residue, sizeof residue));
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct input in = { bytes, bytes + size };
	struct choices c = {
		.mask_step = take8(&in), .header_bytes = take16(&in), .mss = take16(&in),
		.payload_bytes = take32(&in),
	};
	uint32_t count = (uint32_t)(in.end - in.at);

	read_check(in.at, count, &c);
	sums_check(in.at, count);
	segments_check(in.at, count, &c);
	tag_check(in.at, count, c.mss);
	fcs_check(in.at, count);
	return 0;
}
