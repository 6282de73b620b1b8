/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is read in a frame: whole ones of each kind (frame_samples.h), the same cut short, with
 * headers that lie, and damaged at random.
 *
 * Frames end at a page that can't be read, so that a byte too far ends the case.
 */
#include "emu/steer/frame.h"
#include "tests/unit/frame_samples.h"

static const unsigned all_blocks = (1u << STEER_BLOCK_COUNT) - 1;

/* The sample's bytes, and how many. */
static uint32_t sample_bytes(unsigned i, uint8_t *out)
{
	return hex_read(samples[i].hex, out, SAMPLE_BYTES_MAX);
}

static void layers_compare(const char *name, const struct frame_layer *a,
			   const struct frame_layer *b)
{
#define SAME(field)	cr_expect(a->field == b->field, "%s: " #field " is %u, not %u", name, \
				  a->field, b->field)
	SAME(l2);
	SAME(l3);
	SAME(l4);
	SAME(payload);
	SAME(l4_end);
	SAME(ethertype);
	SAME(l3_type);
	SAME(l4_type);
	SAME(ip_protocol);
	SAME(is_fragment);
	SAME(l3_ok);
	SAME(l4_ok);
}

static void frames_compare(const char *name, const struct frame *a, const struct frame *b)
{
	SAME(has_cvlan);
	SAME(has_svlan);
	SAME(vlan);
	SAME(tunnel);
	SAME(tunnel_at);
	layers_compare(name, &a->outer, &b->outer);
	layers_compare(name, &a->inner, &b->inner);
}

Test(steer_frame, every_header_is_found)
{
	for (unsigned i = 0; i < SAMPLE_COUNT; i++) {
		uint8_t bytes[SAMPLE_BYTES_MAX] = { 0 };
		uint32_t count = sample_bytes(i, bytes);
		struct frame f, want = samples[i].frame;
		uint16_t end = (uint16_t)(count - samples[i].padding);

		want.outer.l4_end = want.outer.l4 ? end : 0;
		want.inner.l4_end = want.inner.l4 ? end : 0;
		cr_assert(frame_read(&f, at_the_edge(bytes, count), count, true));
		cr_assert_eq(f.bytes, count);
		frames_compare(samples[i].name, &f, &want);
	}
}

static void block_expect(union steer_key *key, enum steer_block block, const char *hex)
{
	memset(key->block[block], 0, STEER_BLOCK_BYTES);
	if (hex)
		hex_read(hex, key->block[block], STEER_BLOCK_BYTES);
}

Test(steer_frame, key_says_what_the_frame_says)
{
	for (unsigned i = 0; i < SAMPLE_COUNT; i++) {
		uint8_t bytes[SAMPLE_BYTES_MAX] = { 0 };
		uint32_t count = sample_bytes(i, bytes);
		union steer_key key, want = { .bytes = { 0 } };
		struct frame f;

		memset(&key, 0xee, sizeof key);
		frame_read(&f, at_the_edge(bytes, count), count, false);
		frame_key(&f, all_blocks, &key);
		block_expect(&want, STEER_OUTER, samples[i].outer);
		block_expect(&want, STEER_MISC, samples[i].misc);
		block_expect(&want, STEER_INNER, samples[i].inner);
		block_expect(&want, STEER_MISC2, samples[i].misc2);
		for (unsigned k = 0; k < sizeof key; k++)
			cr_expect(key.bytes[k] == want.bytes[k], "%s: block %u byte %u: %x not %x",
				  samples[i].name, k / 64, k % 64, key.bytes[k], want.bytes[k]);
	}
}

Test(steer_frame, blocks_that_nobody_wants_stay)
{
	uint8_t bytes[SAMPLE_BYTES_MAX] = { 0 };
	uint32_t count = sample_bytes(SAMPLE_VXLAN, bytes);
	struct frame f;
	union steer_key key;

	frame_read(&f, bytes, count, false);
	for (unsigned i = 0; i < STEER_BLOCK_COUNT; i++) {
		memset(&key, 0xee, sizeof key);
		frame_key(&f, all_blocks & ~(1u << i), &key);
		for (unsigned k = 0; k < STEER_BLOCK_BYTES; k++)
			cr_assert_eq(key.block[i][k], 0xee);
	}
}

Test(steer_frame, checks_are_made_for_who_wants_them)
{
	uint8_t bytes[SAMPLE_BYTES_MAX] = { 0 };
	uint32_t count = sample_bytes(SAMPLE_VXLAN, bytes);
	struct frame f;

	frame_read(&f, bytes, count, false);
	cr_assert(f.outer.l3_ok && f.inner.l3_ok && !f.outer.l4_ok && !f.inner.l4_ok);
}

/* Each bit counts. */
Test(steer_frame, damage_is_noticed)
{
	uint8_t bytes[SAMPLE_BYTES_MAX] = { 0 };
	uint32_t count = sample_bytes(SAMPLE_TCP, bytes);

	for (unsigned bit = 18 * 8; bit < count * 8; bit++) {
		struct frame f;
		bool is_in_l3 = bit < 42 * 8, is_address = bit >= 30 * 8 && bit < 38 * 8;

		bytes[bit / 8] ^= 1u << bit % 8;
		frame_read(&f, bytes, count, true);
		cr_assert_eq(f.outer.l3_ok, !is_in_l3, "bit %u", bit);
		if (!is_in_l3 || is_address)
			cr_assert_not(f.outer.l4_ok, "bit %u", bit);
		bytes[bit / 8] ^= 1u << bit % 8;
	}
}

/* --- cut short --- */

/* Offsets are those of the whole frame or 0, and inside. */
static void layer_check_cut(const char *name, const struct frame_layer *cut,
			    const struct frame_layer *whole, uint32_t count)
{
	cr_assert(cut->l2 == whole->l2 || !cut->l2, "%s, %u bytes", name, count);
	cr_assert(cut->l3 <= whole->l3 && cut->l3 <= count, "%s, %u bytes", name, count);
	cr_assert(!cut->l3_type || cut->l3_type == whole->l3_type, "%s, %u bytes", name, count);
	cr_assert(!cut->l4 || cut->l4 == whole->l4, "%s, %u bytes", name, count);
	cr_assert(!cut->payload || cut->payload == whole->payload, "%s, %u bytes", name, count);
	cr_assert(cut->l4 <= count && cut->payload <= count, "%s, %u bytes", name, count);
	cr_assert_not(cut->l4_ok || cut->l4_end, "%s, %u bytes", name, count);
}

static void cut_check(const struct sample *s, const uint8_t *bytes, uint32_t count)
{
	struct frame f;
	union steer_key key;

	cr_assert_eq(frame_read(&f, at_the_edge(bytes, count), count, true), count >= 14);
	if (count < 14)
		return;
	frame_key(&f, all_blocks, &key);
	layer_check_cut(s->name, &f.outer, &s->frame.outer, count);
	layer_check_cut(s->name, &f.inner, &s->frame.inner, count);
	/* Of labels over GRE that are not there any more, GRE is left. */
	cr_assert(!f.tunnel || f.tunnel == s->frame.tunnel ||
		  (f.tunnel == FRAME_GRE && s->frame.tunnel == FRAME_MPLS));
}

Test(steer_frame, frame_cut_short_says_nothing_wrong)
{
	for (unsigned i = 0; i < SAMPLE_COUNT; i++) {
		uint8_t bytes[SAMPLE_BYTES_MAX] = { 0 };
		uint32_t count = sample_bytes(i, bytes) - samples[i].padding;

		for (uint32_t cut = 0; cut < count; cut++)
			cut_check(&samples[i], bytes, cut);
	}
}

/* --- lies --- */

enum { NO_L3 = 1, NO_L4 = 2, NO_PAYLOAD = 4, NO_TUNNEL = 8, NO_INNER = 16, NO_VLAN = 32 };

static const struct lie {
	unsigned sample, at;
	const char *hex;
	unsigned missing;
} lies[] = {
	{ SAMPLE_TCP, 18, "56", NO_L3 | NO_L4 },		/* version 5 */
	{ SAMPLE_TCP, 18, "66", NO_L3 | NO_L4 },
	{ SAMPLE_TCP, 18, "44", NO_L3 | NO_L4 },		/* a header of 16 bytes */
	{ SAMPLE_TCP, 20, "0017", 0 },				/* shorter than its header */
	{ SAMPLE_GRE_IP, 16, "0013", 0 },
	{ SAMPLE_TCP, 20, "003e", 0 },				/* longer than the frame */
	{ SAMPLE_TCP, 20, "002b", NO_L4 | NO_PAYLOAD },		/* TCP doesn't fit */
	{ SAMPLE_TCP, 54, "41", NO_PAYLOAD },			/* TCP of 16 bytes */
	{ SAMPLE_TCP, 54, "f1", NO_PAYLOAD },			/* and of 60 */
	{ SAMPLE_TCP, 16, "8100", NO_L3 | NO_L4 },
	{ SAMPLE_UDP_PADDED, 38, "0007", NO_PAYLOAD },
	{ SAMPLE_UDP_PADDED, 38, "000c", NO_PAYLOAD },		/* into the padding */
	{ SAMPLE_UDP_PADDED, 16, "001b", NO_L4 | NO_PAYLOAD },	/* UDP doesn't fit */
	{ SAMPLE_EXTENSIONS, 14, "4b", NO_L3 | NO_L4 },
	{ SAMPLE_EXTENSIONS, 18, "0035", 0 },
	{ SAMPLE_EXTENSIONS, 55, "ff", NO_L4 | NO_PAYLOAD },	/* a long hop-by-hop header */
	{ SAMPLE_EXTENSIONS, 71, "05", NO_L4 | NO_PAYLOAD },	/* nothing behind the last one */
	{ SAMPLE_EXTENSIONS, 70, "3b", NO_L4 },			/* no next header */
	{ SAMPLE_FRAGMENT6, 54, "3c", 0 },			/* what follows is no header */
	{ SAMPLE_QINQ, 16, "0000", NO_L3 | NO_L4 },
	{ SAMPLE_QINQ, 12, "9100", NO_VLAN | NO_L3 | NO_L4 },
	{ SAMPLE_VXLAN, 38, "0007", NO_PAYLOAD | NO_TUNNEL | NO_INNER },
	{ SAMPLE_VXLAN, 38, "000f", NO_TUNNEL | NO_INNER },	/* VXLAN doesn't fit */
	{ SAMPLE_VXLAN, 38, "001d", NO_INNER },			/* Ethernet doesn't */
	{ SAMPLE_VXLAN, 36, "12b6", NO_TUNNEL | NO_INNER },	/* another port */
	{ SAMPLE_VXLAN, 20, "2000", NO_L4 | NO_TUNNEL | NO_INNER },	/* a fragment */
	{ SAMPLE_GRE_ETHERNET, 55, "01", NO_TUNNEL | NO_INNER },	/* another version */
	{ SAMPLE_GRE_ETHERNET, 54, "70", NO_INNER },		/* routes */
	{ SAMPLE_GRE_ETHERNET, 56, "6559", NO_INNER },
	{ SAMPLE_GRE_ETHERNET, 20, "32", NO_TUNNEL | NO_INNER },
	{ SAMPLE_GRE_ETHERNET, 18, "000b", NO_TUNNEL | NO_INNER },
	{ SAMPLE_GRE_IP, 20, "2000", NO_TUNNEL | NO_INNER },	/* a fragment */
	{ SAMPLE_GRE_IP, 36, "86dd", 0 },			/* IPv6 that is version 4 */
	{ SAMPLE_MPLS, 20, "00", NO_INNER },		/* no bottom where IP begins */
	{ SAMPLE_MPLS, 22, "55", NO_INNER },			/* neither IPv4 nor IPv6 */
	{ SAMPLE_MPLS, 12, "8849", NO_TUNNEL | NO_INNER },
	{ SAMPLE_MPLS_UDP, 38, "000b", NO_TUNNEL | NO_INNER },
	{ SAMPLE_MPLS_UDP, 38, "000c", NO_INNER },
};

static void lie_check(const struct lie *lie, unsigned n, const struct frame *f)
{
	const struct frame *whole = &samples[lie->sample].frame;

#define PRESENT(bit, field, kind)	cr_expect(!f->field == !(lie->missing & (bit) ? \
	0 : whole->field), "lie %u about %s: " kind, n, samples[lie->sample].name)
	PRESENT(NO_L3, outer.l3_type, "L3");
	PRESENT(NO_L3 | NO_L4, outer.l4, "L4");
	PRESENT(NO_L3 | NO_PAYLOAD, outer.payload, "payload");
	PRESENT(NO_TUNNEL, tunnel, "tunnel");
	PRESENT(NO_INNER, inner.l3, "inner headers");
	PRESENT(NO_VLAN, vlan, "VLAN");
	cr_expect(!f->outer.l4_type == !f->outer.l4, "lie %u", n);
	cr_expect(f->outer.l4_end || !f->outer.l4_ok, "lie %u", n);
}

Test(steer_frame, header_that_lies_ends_the_reading)
{
	for (unsigned i = 0; i < sizeof lies / sizeof *lies; i++) {
		uint8_t bytes[SAMPLE_BYTES_MAX] = { 0 };
		uint32_t count = sample_bytes(lies[i].sample, bytes);
		struct frame f;

		hex_read(lies[i].hex, bytes + lies[i].at, 4);
		frame_read(&f, at_the_edge(bytes, count), count, true);
		lie_check(&lies[i], i, &f);
	}
}

/* The byte at the end could be the first one of IP. */
Test(steer_frame, labels_without_end_end_with_the_frame)
{
	uint8_t bytes[14 + 500 * 4 + 1] = { [12] = 0x88, [13] = 0x47, [14 + 500 * 4] = 0x45 };
	struct frame f;

	frame_read(&f, at_the_edge(bytes, sizeof bytes), sizeof bytes, true);
	cr_assert(f.tunnel == FRAME_MPLS && f.tunnel_at == 14 && !f.inner.l3);
}

/* Offsets have 16 bits. */
Test(steer_frame, frame_that_is_far_too_long_is_read_as_far_as_offsets_go)
{
	enum { LAST = 14 + 17500 * 4 };
	static uint8_t bytes[1 << 17] = { [12] = 0x88, [13] = 0x47 };
	struct frame f;

	bytes[LAST + 2] = 1;
	bytes[LAST + 4] = 0x45;
	cr_assert(frame_read(&f, bytes, sizeof bytes, true));
	cr_assert(f.tunnel == FRAME_MPLS && !f.inner.l3);
}

/* As a NIC does, whose rules know no more than two. */
Test(steer_frame, third_tag_is_what_the_frame_holds)
{
	uint8_t bytes[SAMPLE_BYTES_MAX] = { 0 };
	uint32_t count = sample_bytes(SAMPLE_QINQ, bytes);
	struct frame f;

	hex_read("8100", bytes + 20, 2);
	frame_read(&f, at_the_edge(bytes, count), count, true);
	cr_assert(f.outer.ethertype == 0x8100 && f.outer.l3 == 22 && !f.outer.l3_type);
}

/* A frame that ends with the type of an inner one; lengths say so. */
Test(steer_frame, label_that_is_announced_only_is_no_label)
{
	enum { END = 50 + 22 };
	uint8_t bytes[SAMPLE_BYTES_MAX] = { 0 };
	union steer_key key;
	struct frame f;

	sample_bytes(SAMPLE_MPLS_INNER, bytes);
	bytes[17] = END - 14;
	bytes[39] = END - 34;
	frame_read(&f, at_the_edge(bytes, END), END, true);
	cr_assert(f.inner.ethertype == 0x8847 && f.inner.l3 == END);
	frame_key(&f, 1u << STEER_MISC2, &key);
	for (unsigned i = 0; i < STEER_BLOCK_BYTES; i++)
		cr_assert_eq(key.block[STEER_MISC2][i], 0);
}

/* --- garbage --- */

static uint32_t random_word(void)
{
	static uint64_t state = 0x9e3779b97f4a7c15;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32);
}

static void layer_check(const struct frame *f, const struct frame_layer *l)
{
	cr_assert(l->l2 <= l->l3 && l->l3 <= f->bytes && l->payload <= f->bytes);
	cr_assert(!l->l4 || (l->l4 > l->l3 && l->l4 + 8u <= f->bytes && !l->is_fragment));
	cr_assert(!l->l4 == !l->l4_type && (!l->l4 || l->l3_type));
	cr_assert(!l->l4_ok || l->l4_end);
	cr_assert(!l->l4_end || (l->payload > l->l4 && l->l4_end >= l->payload));
	cr_assert(l->l4_end <= f->bytes);
	cr_assert(!l->payload || l->payload > l->l3);
}

Test(steer_frame, damaged_frames_do_no_damage)
{
	for (unsigned i = 0; i < 200000; i++) {
		uint8_t bytes[SAMPLE_BYTES_MAX] = { 0 };
		uint32_t count = sample_bytes(random_word() % SAMPLE_COUNT, bytes);
		struct frame f;
		union steer_key key;

		for (unsigned k = 0; k < 1 + i % 4; k++)
			bytes[12 + random_word() % (count - 12)] =
				(uint8_t)(random_word() >> random_word() % 24);
		count -= random_word() % 4 ? 0 : random_word() % (count - 13);
		cr_assert(frame_read(&f, at_the_edge(bytes, count), count, true));
		frame_key(&f, all_blocks, &key);
		layer_check(&f, &f.outer);
		layer_check(&f, &f.inner);
	}
}
