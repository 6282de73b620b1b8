/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hash that chooses a queue: Microsoft's vectors for RSS, whose key and results are published
 * with the definition, and what becomes of frames that have not got what is hashed.
 */
#include <arpa/inet.h>
#include "emu/steer/rss.h"
#include "tests/unit/frame_samples.h"

static const uint8_t published_key[RSS_KEY_BYTES] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
	0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
	0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

static const struct vector {
	int family;
	const char *src;
	uint16_t sport;
	const char *dst;
	uint16_t dport;
	uint32_t addresses, ports;	/* the hash without and with ports */
} vectors[] = {
	{ AF_INET, "66.9.149.187", 2794, "161.142.100.80", 1766, 0x323e8fc2, 0x51ccc178 },
	{ AF_INET, "199.92.111.2", 14230, "65.69.140.83", 4739, 0xd718262a, 0xc626b0ea },
	{ AF_INET, "24.19.198.95", 12898, "12.22.207.184", 38024, 0xd2d0a5de, 0x5c2b394a },
	{ AF_INET, "38.27.205.30", 48228, "209.142.163.6", 2217, 0x82989176, 0xafc7327f },
	{ AF_INET, "153.39.163.191", 44251, "202.188.127.2", 1303, 0x5d1809c5, 0x10e828a2 },
	{ AF_INET6, "3ffe:2501:200:1fff::7", 2794, "3ffe:2501:200:3::1", 1766,
	  0x2cc18cd5, 0x40207d3d },
	{ AF_INET6, "3ffe:501:8::260:97ff:fe40:efab", 14230, "ff02::1", 4739,
	  0x0f0c461c, 0xdde51bbf },
	{ AF_INET6, "3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251, "fe80::200:f8ff:fe21:67cf",
	  38024, 0x4b61e985, 0x02d1feef },
};

enum {
	FRAME_TCP_BYTES4 = 14 + 20 + 20, FRAME_TCP_BYTES6 = 14 + 40 + 20,
	IPV4 = RSS_SRC_IPV4 | RSS_DST_IPV4, IPV6 = RSS_SRC_IPV6 | RSS_DST_IPV6,
	TCP = RSS_SRC_PORT_TCP | RSS_DST_PORT_TCP, UDP = RSS_SRC_PORT_UDP | RSS_DST_PORT_UDP,
	TYPE_V4 = 0x04, TYPE_V6 = 0x08, TYPE_TCP = 0x40, TYPE_UDP = 0x80,
};

static void put16(uint8_t *at, uint16_t value)
{
	at[0] = value >> 8;
	at[1] = value & 0xff;
}

/* A frame with the vector's addresses and ports, and how long it is.  UDP is as long as TCP. */
static uint32_t vector_frame(const struct vector *v, uint8_t protocol, uint8_t *frame)
{
	bool is_v4 = v->family == AF_INET;
	uint8_t *ip = frame + 14, *l4 = ip + (is_v4 ? 20 : 40);

	memset(frame, 0, FRAME_TCP_BYTES6);
	put16(frame + 12, is_v4 ? 0x800 : 0x86dd);
	ip[0] = is_v4 ? 0x45 : 0x60;
	put16(ip + (is_v4 ? 2 : 4), is_v4 ? 40 : 20);
	ip[is_v4 ? 9 : 6] = protocol;
	inet_pton(v->family, v->src, ip + (is_v4 ? 12 : 8));
	inet_pton(v->family, v->dst, ip + (is_v4 ? 16 : 24));
	put16(l4, v->sport);
	put16(l4 + 2, v->dport);
	put16(l4 + 4, 20);
	l4[12] = 0x50;
	return is_v4 ? FRAME_TCP_BYTES4 : FRAME_TCP_BYTES6;
}

static void vector_check(const struct vector *v, uint8_t protocol, uint32_t fields, uint32_t want,
			 uint8_t want_type)
{
	struct rss rss = { .fields = fields };
	uint8_t bytes[FRAME_TCP_BYTES6], type = 0xee;
	struct frame f;
	uint32_t hash;

	memcpy(rss.key, published_key, sizeof rss.key);
	frame_read(&f, bytes, vector_frame(v, protocol, bytes), false);
	hash = rss_hash(&rss, &f, &type);
	cr_expect(hash == want && type == want_type, "%s, fields %x: %x %x, not %x %x", v->src,
		  fields, hash, type, want, want_type);
}

Test(steer_rss, published_vectors_come_out)
{
	for (unsigned i = 0; i < sizeof vectors / sizeof *vectors; i++) {
		const struct vector *v = &vectors[i];
		uint32_t ip = v->family == AF_INET ? IPV4 : IPV6;
		uint8_t type = v->family == AF_INET ? TYPE_V4 : TYPE_V6;

		vector_check(v, 6, ip, v->addresses, type);
		vector_check(v, 17, ip, v->addresses, type);
		vector_check(v, 6, ip | TCP, v->ports, type | TYPE_TCP);
		vector_check(v, 17, ip | UDP, v->ports, type | TYPE_UDP);
	}
}

/* Zeros in place of what is left out would move what follows. */
Test(steer_rss, only_selected_fields_are_hashed)
{
	const struct vector *v = &vectors[0];
	uint8_t in[] = { 161, 142, 100, 80, 2794 >> 8, 2794 & 0xff };

	vector_check(v, 6, RSS_DST_IPV4 | RSS_SRC_PORT_TCP, rss_toeplitz(published_key, in, 6),
		     TYPE_V4 | TYPE_TCP);
	vector_check(v, 6, RSS_DST_IPV4, rss_toeplitz(published_key, in, 4), TYPE_V4);
	vector_check(v, 6, RSS_SRC_PORT_TCP, rss_toeplitz(published_key, in + 4, 2), TYPE_TCP);
}

Test(steer_rss, frame_without_all_fields_has_no_hash)
{
	vector_check(&vectors[0], 6, 0, 0, 0);
	vector_check(&vectors[0], 6, IPV6, 0, 0);
	vector_check(&vectors[0], 6, UDP, 0, 0);
	vector_check(&vectors[0], 17, IPV4 | TCP, 0, 0);
	vector_check(&vectors[0], 1, IPV4 | TCP, 0, 0);
	vector_check(&vectors[0], 1, IPV4, vectors[0].addresses, TYPE_V4);
	vector_check(&vectors[5], 6, IPV4, 0, 0);
	vector_check(&vectors[5], 6, IPV4 | IPV6, 0, 0);
	vector_check(&vectors[5], 6, TCP | UDP, 0, 0);
}

static uint32_t sample_hash(unsigned sample, uint32_t fields, bool is_inner, uint8_t *type)
{
	struct rss rss = { .fields = fields, .is_inner = is_inner };
	uint8_t bytes[SAMPLE_BYTES_MAX] = { 0 };
	struct frame f;

	memcpy(rss.key, published_key, sizeof rss.key);
	frame_read(&f, bytes, hex_read(samples[sample].hex, bytes, sizeof bytes), false);
	return rss_hash(&rss, &f, type);
}

Test(steer_rss, inner_headers_are_hashed_if_asked_for)
{
	static const uint8_t in[] = { 192, 168, 1, 1, 10, 0, 1, 2, 1234 >> 8, 1234 & 0xff, 0, 80 };
	static const uint8_t out[] = { 192, 168, 0, 1, 10, 0, 0, 2 };
	uint8_t type;

	cr_assert_eq(sample_hash(SAMPLE_VXLAN, IPV4 | TCP, true, &type),
		     rss_toeplitz(published_key, in, sizeof in));
	cr_assert_eq(type, TYPE_V4 | TYPE_TCP);
	cr_assert_eq(sample_hash(SAMPLE_VXLAN, IPV4, false, &type),
		     rss_toeplitz(published_key, out, sizeof out));
	cr_assert_eq(type, TYPE_V4);
	cr_assert_eq(sample_hash(SAMPLE_TCP, IPV4, true, &type), 0);
	cr_assert_eq(type, 0);
}

/* No ports are in a fragment, though its protocol is known. */
Test(steer_rss, fragment_has_no_ports)
{
	uint8_t type = 0xee;

	cr_assert_eq(sample_hash(SAMPLE_FRAGMENT4, IPV4 | TCP, false, &type), 0);
	cr_assert_eq(type, 0);
	cr_assert_neq(sample_hash(SAMPLE_FRAGMENT4, IPV4, false, &type), 0);
	cr_assert_eq(type, TYPE_V4);
}
