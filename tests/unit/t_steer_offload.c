/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a NIC does to frames: checksums against those of frames that were worked out elsewhere
 * (frame_samples.h), segments put together again, tags, and the FCS against the published check
 * value and one bit at a time.
 */
#include "emu/steer/offload.h"
#include "emu/steer/sum.h"
#include "tests/unit/frame_samples.h"

enum { ALL = OFFLOAD_L3 | OFFLOAD_L4 | OFFLOAD_INNER_L3 | OFFLOAD_INNER_L4 };

static uint32_t random_word(void)
{
	static uint64_t state = 0x9e3779b97f4a7c15;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32);
}

static uint32_t load_be32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3];
}

/* --- checksums --- */

/* Two bytes at a time, as RFC 1071 has it. */
static uint16_t plain_sum(uint32_t sum, const uint8_t *bytes, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		sum += i % 2 ? bytes[i] : bytes[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

Test(steer_offload, example_of_the_rfc_adds_up)
{
	static const uint8_t example[] = { 0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7 };

	cr_assert_eq(sum_add(0, example, sizeof example), 0xddf2);
	cr_assert_eq(sum_add(sum_add(0, example, 4), example + 4, 4), 0xddf2);
}

Test(steer_offload, sums_of_every_length_add_up)
{
	uint8_t bytes[200];

	for (unsigned i = 0; i < sizeof bytes; i++)
		bytes[i] = i % 3 ? 0xff : (uint8_t)random_word();
	for (uint32_t count = 0; count <= sizeof bytes; count++) {
		uint16_t sum = (uint16_t)random_word();
		const uint8_t *at = at_the_edge(bytes, count);

		cr_assert_eq(sum_add(sum, at, count), plain_sum(sum, at, count), "%u", count);
	}
}

/* Fields of the samples that hold checksums, by the flag that writes them. */
static const struct field {
	unsigned sample, flag, at;
} fields[] = {
	{ SAMPLE_TCP, OFFLOAD_L3, 28 }, { SAMPLE_TCP, OFFLOAD_L4, 58 },
	{ SAMPLE_UDP_PADDED, OFFLOAD_L3, 24 }, { SAMPLE_UDP_PADDED, OFFLOAD_L4, 40 },
	{ SAMPLE_EXTENSIONS, OFFLOAD_L4, 102 }, { SAMPLE_QINQ, OFFLOAD_L4, 68 },
	{ SAMPLE_ATOMIC, OFFLOAD_L4, 68 }, { SAMPLE_FRAGMENT4, OFFLOAD_L3, 24 },
	{ SAMPLE_VXLAN, OFFLOAD_L3, 24 }, { SAMPLE_VXLAN, OFFLOAD_L4, 40 },
	{ SAMPLE_VXLAN, OFFLOAD_INNER_L3, 78 }, { SAMPLE_VXLAN, OFFLOAD_INNER_L4, 104 },
	{ SAMPLE_GRE_ETHERNET, OFFLOAD_INNER_L3, 94 },
	{ SAMPLE_GRE_ETHERNET, OFFLOAD_INNER_L4, 120 },
	{ SAMPLE_GRE_IP, OFFLOAD_L3, 24 }, { SAMPLE_GRE_IP, OFFLOAD_INNER_L3, 56 },
	{ SAMPLE_GRE_IP, OFFLOAD_INNER_L4, 72 },
	{ SAMPLE_MPLS, OFFLOAD_INNER_L3, 32 }, { SAMPLE_MPLS, OFFLOAD_INNER_L4, 48 },
	{ SAMPLE_MPLS_UDP, OFFLOAD_L3, 24 }, { SAMPLE_MPLS_UDP, OFFLOAD_L4, 40 },
	{ SAMPLE_MPLS_UDP, OFFLOAD_INNER_L4, 92 },
};

#define FIELD_COUNT	(sizeof fields / sizeof *fields)

/* Spoils the fields that @flags will write, or all others. */
static void fields_spoil(unsigned sample, unsigned flags, uint8_t *bytes)
{
	for (unsigned i = 0; i < FIELD_COUNT; i++)
		if (fields[i].sample == sample && (fields[i].flag & flags))
			memset(bytes + fields[i].at, 0x5a, 2);
}

static bool has_fields(unsigned sample)
{
	for (unsigned i = 0; i < FIELD_COUNT; i++)
		if (fields[i].sample == sample)
			return true;
	return false;
}

static void check_restored(unsigned sample, unsigned flags)
{
	uint8_t want[SAMPLE_BYTES_MAX] = { 0 }, bytes[SAMPLE_BYTES_MAX];
	uint32_t count = hex_read(samples[sample].hex, want, sizeof want);
	uint8_t *frame;

	memcpy(bytes, want, sizeof bytes);
	fields_spoil(sample, flags, bytes);
	frame = at_the_edge(bytes, count);
	offload_checksums(frame, count, flags);
	cr_expect(!memcmp(frame, want, count), "%s, flags %x", samples[sample].name, flags);
}

Test(steer_offload, checksums_are_those_of_the_samples)
{
	for (unsigned sample = 0; sample < SAMPLE_COUNT; sample++)
		for (unsigned flags = 0; has_fields(sample) && flags <= ALL; flags += 0x10)
			check_restored(sample, flags);
}

Test(steer_offload, checksums_that_nobody_wants_stay)
{
	for (unsigned i = 0; i < FIELD_COUNT; i++) {
		uint8_t bytes[SAMPLE_BYTES_MAX] = { 0 }, before[2] = { 0x5a, 0x5a };
		uint32_t count = hex_read(samples[fields[i].sample].hex, bytes, sizeof bytes);

		memcpy(bytes + fields[i].at, before, 2);
		offload_checksums(bytes, count, ALL & ~fields[i].flag);
		cr_expect(!memcmp(bytes + fields[i].at, before, 2), "field %u", i);
	}
}

/* No L4 begins in a later fragment, and none is in a frame without IP. */
Test(steer_offload, frames_without_such_headers_stay)
{
	static const unsigned without[] = { SAMPLE_ARP, SAMPLE_FRAGMENT4, SAMPLE_FRAGMENT6 };

	for (unsigned i = 0; i < sizeof without / sizeof *without; i++)
		check_restored(without[i], ALL);
	offload_checksums(at_the_edge((uint8_t[13]){ 0 }, 13), 13, ALL);
	offload_checksums(at_the_edge(NULL, 0), 0, ALL);
}

/* What the checksum would be of can't be known, and it may be far behind the frame. */
Test(steer_offload, packet_that_is_not_all_there_gets_no_checksum_of_l4)
{
	static const char *const lengths[] = { "ffff", "003e", "0017", "0000" };

	for (unsigned i = 0; i < 4; i++) {
		uint8_t bytes[SAMPLE_BYTES_MAX] = { 0 }, *frame;
		uint32_t count = hex_read(samples[SAMPLE_TCP].hex, bytes, sizeof bytes);
		struct frame f;

		hex_read(lengths[i], bytes + 20, 2);
		frame = at_the_edge(bytes, count);
		offload_checksums(frame, count, ALL);
		cr_assert(!memcmp(frame + 42, bytes + 42, count - 42), "%s", lengths[i]);
		cr_assert(frame_read(&f, frame, count, true) && f.outer.l3_ok && !f.outer.l4_ok);
	}
}

/* 0 would say that there is no checksum. */
Test(steer_offload, checksum_of_udp_is_never_0)
{
	uint8_t bytes[SAMPLE_BYTES_MAX] = { 0 };
	uint32_t count = hex_read(samples[SAMPLE_UDP_UNSUMMED].hex, bytes, sizeof bytes);

	offload_checksums(bytes, count, OFFLOAD_L4);
	cr_assert(bytes[40] == 0x60 && bytes[41] == 0xf5);
	bytes[34] += 0x60;		/* the source port takes up what the sum was short of */
	bytes[35] += 0xf5;
	bytes[34] += 1;			/* the carry of 0xa0 + 0xf5 */
	offload_checksums(bytes, count, OFFLOAD_L4);
	cr_assert(bytes[40] == 0xff && bytes[41] == 0xff, "%x%x", bytes[40], bytes[41]);
}

Test(steer_offload, damaged_frames_do_no_damage)
{
	for (unsigned i = 0; i < 200000; i++) {
		uint8_t bytes[SAMPLE_BYTES_MAX] = { 0 };
		uint32_t count = hex_read(samples[i % SAMPLE_COUNT].hex, bytes, sizeof bytes);

		bytes[12 + random_word() % (count - 12)] = (uint8_t)random_word();
		bytes[12 + random_word() % (count - 12)] = (uint8_t)random_word();
		count -= i % 3 ? 0 : random_word() % (count - 13);
		offload_checksums(at_the_edge(bytes, count), count, ALL);
	}
}

/* --- segments --- */

/* FIN, ECE, CWR, PSH and ACK; lengths of no use, as of a message longer than IP allows. */
#define H_TCP	"04d2 0050 fffffff0 05060708 80d9 ffff 0000 0000 0101080a0000000100000002"
#define H_IPV4	S_ETH "8100 6005 0800 462e 0000 fffe 4000 40 06 0000 " S_ADDRESSES4 "94040000 " \
		H_TCP
#define H_IPV6	S_ETH "86dd " S_IPV6("0000 ", "00 ") "0600050200000000 " H_TCP

enum { HEADER_BYTES_MAX = 128, SEGMENT_BYTES_MAX = 1600 };

static const uint32_t seq_first = 0xfffffff0;

struct message {
	uint8_t header[HEADER_BYTES_MAX];
	uint32_t header_bytes, payload_bytes, mss;
	uint8_t payload[8192];
};

static void message_begin(struct message *m, const char *header, uint32_t payload, uint32_t mss)
{
	memset(m, 0, sizeof *m);
	m->header_bytes = hex_read(header, m->header, sizeof m->header);
	m->payload_bytes = payload;
	m->mss = mss;
	for (uint32_t i = 0; i < payload; i++)
		m->payload[i] = (uint8_t)random_word();
}

/* A whole frame from a segment's header.  Returns how long it is, 0: refused. */
static uint32_t segment(const struct message *m, uint32_t index, uint8_t *out)
{
	uint32_t offset = index * m->mss, here = m->payload_bytes - offset;

	if (!offload_segment(m->header, m->header_bytes, m->payload_bytes, m->mss, index, out))
		return 0;
	here = here < m->mss ? here : m->mss;
	memcpy(out + m->header_bytes, m->payload + offset, here);
	offload_checksums(out, m->header_bytes + here, OFFLOAD_L3 | OFFLOAD_L4);
	return m->header_bytes + here;
}

/* What a receiver makes of it. */
static void segment_check(const struct message *m, uint32_t index, uint32_t count)
{
	uint8_t bytes[SEGMENT_BYTES_MAX];
	uint32_t got = segment(m, index, bytes);
	const uint8_t *tcp;
	struct frame f;

	cr_assert(frame_read(&f, bytes, got, true));
	cr_assert(f.outer.l3_ok && f.outer.l4_ok && f.outer.payload == m->header_bytes);
	cr_assert(!memcmp(bytes, m->header, f.outer.l3));
	tcp = bytes + f.outer.l4;
	cr_assert_eq(load_be32(tcp + 4), (uint32_t)(seq_first + index * m->mss));
	cr_assert_eq(tcp[13], 0x50 | (index ? 0 : 0x80) | (index + 1 < count ? 0 : 0x09));
	cr_assert(!memcmp(tcp + 20, m->header + f.outer.l4 + 20, 12));
	if (f.outer.l3_type == FRAME_IPV4)
		cr_assert_eq(load_be32(bytes + f.outer.l3 + 4) >> 16, 0xffff & (0xfffe + index));
	cr_assert(!memcmp(bytes + m->header_bytes, m->payload + index * m->mss,
			  got - m->header_bytes));
}

static void message_check(const char *header, uint32_t payload, uint32_t mss, uint32_t count)
{
	static struct message m;
	uint8_t bytes[SEGMENT_BYTES_MAX];

	message_begin(&m, header, payload, mss);
	for (uint32_t i = 0; i < count; i++)
		segment_check(&m, i, count);
	cr_assert_eq(segment(&m, count, bytes), 0, "%u segments of %u", count, payload);
}

Test(steer_offload, segments_make_the_message)
{
	static const char *const headers[] = { H_IPV4, H_IPV6 };

	for (unsigned i = 0; i < 2; i++) {
		message_check(headers[i], 5000, 1448, 4);
		message_check(headers[i], 4344, 1448, 3);	/* nothing is left */
		message_check(headers[i], 1448, 1448, 1);
		message_check(headers[i], 1, 1448, 1);
		message_check(headers[i], 0, 1448, 1);
		message_check(headers[i], 100, 1, 100);
	}
}

static const struct refusal {
	const char *header;
	unsigned at;
	uint8_t value;
	uint32_t mss;
} refusals[] = {
	{ H_IPV4, 0, 0x02, 0 },				/* no size */
	{ H_IPV4, 27, 17, 1448 },			/* UDP */
	{ H_IPV4, 24, 0x20, 1448 },			/* a fragment */
	{ H_IPV4, 18, 0x56, 1448 },			/* IP of no known version */
	{ H_IPV4, 17, 0x06, 1448 },			/* ARP */
	{ H_IPV4, 54, 0x70, 1448 },			/* bytes behind TCP */
	{ H_IPV4, 54, 0x90, 1448 },			/* TCP is not all here */
	{ H_IPV4, 54, 0x10, 1448 },
	{ H_IPV4, 0, 0x02, 65500 },			/* too much for IP */
	{ H_IPV4, 0, 0x02, 0xffffffff },
	{ H_IPV6, 20, 17, 1448 },
	{ H_IPV6, 54, 17, 1448 },
};

Test(steer_offload, what_is_no_tcp_has_no_segments)
{
	for (unsigned i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		const struct refusal *r = &refusals[i];
		uint8_t header[HEADER_BYTES_MAX] = { 0 }, out[HEADER_BYTES_MAX];
		uint32_t count = hex_read(r->header, header, sizeof header);

		header[r->at] = r->value;
		cr_expect_not(offload_segment(header, count, 1 << 20, r->mss, 0, out), "row %u",
			      i);
	}
}

Test(steer_offload, header_cut_short_has_no_segments)
{
	uint8_t header[HEADER_BYTES_MAX] = { 0 }, out[HEADER_BYTES_MAX];
	uint32_t count = hex_read(H_IPV4, header, sizeof header);

	for (uint32_t cut = 0; cut < count; cut++)
		cr_assert_not(offload_segment(at_the_edge(header, cut), cut, 5000, 1448, 0, out),
			      "%u", cut);
	cr_assert(offload_segment(at_the_edge(header, count), count, 5000, 1448, 0, out));
	cr_assert_not(offload_segment(header, count, 5000, 1448, 0xffffffff, out));
	cr_assert_not(offload_segment(header, count, 0xffffffff, 0xffffffff, 0, out));
	count = hex_read(samples[SAMPLE_VXLAN].hex, header, sizeof header);
	cr_assert_not(offload_segment(header, count, 5000, 1448, 0, out));
}

/* --- tags and FCS --- */

Test(steer_offload, tag_is_behind_the_addresses)
{
	uint8_t bytes[SAMPLE_BYTES_MAX] = { 0 }, want[SAMPLE_BYTES_MAX] = { 0 };
	uint32_t count = hex_read(S_ETH "0806 0001 02", bytes, sizeof bytes);

	cr_assert_eq(hex_read(S_ETH "8100 6005 0806 0001 02", want, sizeof want), count + 4);
	cr_assert_eq(offload_vlan_insert(bytes, count, 0x6005), count + VLAN_BYTES);
	cr_assert(!memcmp(bytes, want, sizeof want));
	hex_read(S_ETH "8100 0001 8100 6005 0806 0001 02", want, sizeof want);
	cr_assert_eq(offload_vlan_insert(bytes, count + 4, 1), count + 8);
	cr_assert(!memcmp(bytes, want, sizeof want));
}

Test(steer_offload, what_is_no_frame_gets_no_tag)
{
	uint8_t bytes[32] = { [12] = 1 }, before[32] = { [12] = 1 };

	cr_assert_eq(offload_vlan_insert(bytes, 13, 7), 13);
	cr_assert_eq(offload_vlan_insert(bytes, 0, 7), 0);
	cr_assert(!memcmp(bytes, before, sizeof bytes));
}

Test(steer_offload, fcs_is_the_published_one)
{
	uint8_t bytes[] = "123456789\0\0\0\0", residue[FCS_BYTES];

	offload_fcs(bytes, 9, bytes + 9);
	cr_assert(!memcmp(bytes + 9, "\x26\x39\xf4\xcb", 4));
	offload_fcs(bytes, 13, residue);
	cr_assert(!memcmp(residue, "\x1c\xdf\x44\x21", 4), "of any frame with its FCS");
}

static uint32_t plain_crc(const uint8_t *bytes, uint32_t count)
{
	uint32_t crc = ~0u;

	while (count--) {
		crc ^= *bytes++;
		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

Test(steer_offload, fcs_of_every_length_is_that_of_single_bits)
{
	uint8_t bytes[600], out[FCS_BYTES];

	for (unsigned i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)random_word();
	for (uint32_t count = 0; count <= sizeof bytes; count++) {
		const uint8_t *at = at_the_edge(bytes, count);
		uint32_t crc = plain_crc(at, count);

		offload_fcs(at, count, out);
		cr_assert(out[0] == (crc & 0xff) && out[1] == (crc >> 8 & 0xff) &&
			  out[2] == (crc >> 16 & 0xff) && out[3] == crc >> 24, "%u", count);
	}
}
