/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of each kind, with what is in them: typed from the formats of the RFCs, their checksums
 * worked out by a program that shares nothing with ours.
 *
 * A sample's frame is told header by header; the expected keys, too, are bytes in the order of
 * mlx5's match parameters.
 */
#ifndef TESTS_UNIT_FRAME_SAMPLES_H
#define TESTS_UNIT_FRAME_SAMPLES_H
#include <criterion/criterion.h>
#include <ctype.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "emu/steer/frame.h"

enum { SAMPLE_BYTES_MAX = 256 };

struct sample {
	const char *name, *hex;
	struct frame frame;		/* but for at and bytes */
	const char *outer, *misc, *inner, *misc2;	/* the key; NULL: zeros */
	uint16_t padding;
};

/* Blanks are for the reader.  Returns how many bytes there were. */
static inline uint32_t hex_read(const char *hex, uint8_t *out, uint32_t max)
{
	uint32_t digits = 0;

	for (; *hex; hex++) {
		int value = isdigit((unsigned char)*hex) ? *hex - '0' : *hex - 'a' + 10;

		if (*hex == ' ')
			continue;
		cr_assert(digits / 2 < max && value >= 0 && value < 16, "%s", hex);
		out[digits / 2] = (uint8_t)(out[digits / 2] << 4 | value);
		digits++;
	}
	cr_assert_eq(digits % 2, 0);
	return digits / 2;
}

/* The bytes end where a page begins that nobody may touch. */
static inline uint8_t *at_the_edge(const uint8_t *bytes, uint32_t count)
{
	static uint8_t *edge;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (!edge) {
		edge = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
		cr_assert(edge != MAP_FAILED && !mprotect(edge + page, page, PROT_NONE));
		edge += page;
	}
	cr_assert(count <= page);
	return count ? memcpy(edge - count, bytes, count) : edge;
}

/* --- pieces --- */

#define S_ETH		"020000000002 020000000001 "
#define S_INNER_ETH	"020000000012 020000000011 "
#define S_ADDRESSES4	"c0a80001 0a000002 "
#define S_SRC6		"20010db8000000000000000000000001 "
#define S_DST6		"20010db8000000000000000000000002 "
/* Class b8, label 12345, hop limit 63. */
#define S_IPV6(bytes, next)	"6b812345 " bytes next "3f " S_SRC6 S_DST6
/* Inside of a tunnel: VLAN 7 of priority 1, IPv4, and TCP without data; UDP with one byte. */
#define S_INNER_TCP	S_INNER_ETH "8100 2007 0800 " \
			"4501 0028 1234 4000 09 06 92f0 c0a80101 0a000102 " \
			"04d2 0050 01020304 05060708 5010 ffff cdf3 0000 "
#define S_INNER_UDP	"4501 001d 1234 4000 09 11 92f0 c0a80101 0a000102 " \
			"0fa0 0035 0009 a95b 7a"
#define S_INNER_UDP6	"604fedcb 0009 11 09 20010db8000000010000000000000001 " \
			"20010db8000000010000000000000002 0fa0 0035 0009 1a90 7a"

#define K_SRC4		"000000000000000000000000 c0a80001 "
#define K_DST4		"000000000000000000000000 0a000002 "
#define K_INNER_SRC4	"000000000000000000000000 c0a80101 "
#define K_INNER_DST4	"000000000000000000000000 0a000102 "
#define K_NO_IP		"00000000000000000000000000000000 00000000000000000000000000000000"
/* Source, type, destination, VLAN; @rest: protocol to IPs. */
#define K_ETH(type, vlan, rest)		"020000000001 " type "020000000002 " vlan rest
#define K_INNER_ETH(type, vlan, rest)	"020000000011 " type "020000000012 " vlan rest
#define K_NO_ETH(type, rest)		"000000000000 " type "000000000000 0000 " rest
/* Protocol, class, flags and TCP flags; TCP ports; TTL; UDP ports. */
#define K_L4(ip, tcp, ttl, udp)		ip tcp "000000" ttl udp
#define K_INNER_TCP	K_INNER_ETH("0800 ", "2007 ", \
			K_L4("06 01 8810 ", "04d2 0050 ", "09 ", "0000 0000 ") \
			K_INNER_SRC4 K_INNER_DST4)
#define K_INNER_UDP	K_NO_ETH("0800 ", \
			K_L4("11 01 0800 ", "0000 0000 ", "09 ", "0fa0 0035 ") \
			K_INNER_SRC4 K_INNER_DST4)
#define K_INNER_UDP6	K_NO_ETH("86dd ", \
			K_L4("11 04 0c00 ", "0000 0000 ", "09 ", "0fa0 0035 ") \
			"20010db8000000010000000000000001 20010db8000000010000000000000002")
/* GRE bits, second VLANs and their kinds, GRE protocol, key, VNI, outer and inner flow label. */
#define K_MISC(gre, second, protocol, key, vni, outer, inner) \
	gre "00000000000000 " second protocol key vni "0000000000 " outer inner

#define L_TCP(at, l3_, l4_, end, type, l4type) \
	{ .l2 = at, .l3 = l3_, .l4 = l4_, .payload = end, .ethertype = type, \
	  .l3_type = type == 0x800 ? FRAME_IPV4 : FRAME_IPV6, .l4_type = l4type, \
	  .ip_protocol = 6, .l3_ok = true, .l4_ok = true }
#define L_UDP(at, l3_, l4_, type) \
	{ .l2 = at, .l3 = l3_, .l4 = l4_, .payload = l4_ + 8, .ethertype = type, \
	  .l3_type = type == 0x800 ? FRAME_IPV4 : FRAME_IPV6, .l4_type = FRAME_UDP, \
	  .ip_protocol = 17, .l3_ok = true, .l4_ok = true }
#define L_IP(l3_, end, type, protocol) \
	{ .l3 = l3_, .payload = end, .ethertype = type, .ip_protocol = protocol, .l3_ok = true, \
	  .l3_type = type == 0x800 ? FRAME_IPV4 : FRAME_IPV6 }

/* --- frames --- */

enum {
	SAMPLE_ARP, SAMPLE_TCP, SAMPLE_UDP_PADDED, SAMPLE_UDP_UNSUMMED, SAMPLE_EXTENSIONS,
	SAMPLE_QINQ, SAMPLE_FRAGMENT6, SAMPLE_ATOMIC, SAMPLE_FRAGMENT4, SAMPLE_VXLAN,
	SAMPLE_GRE_ETHERNET, SAMPLE_GRE_IP, SAMPLE_MPLS, SAMPLE_MPLS_GRE, SAMPLE_MPLS_UDP,
	SAMPLE_MPLS_INNER, SAMPLE_COUNT
};

static const struct sample samples[SAMPLE_COUNT] = {
	[SAMPLE_ARP] = {
		.name = "ARP",
		.hex = S_ETH "0806 0001 0800 0604 0001 020000000001 c0a80001 000000000000 0a000002",
		.frame = { .outer = { .l3 = 14, .ethertype = 0x806 } },
		.outer = K_ETH("0806 ", "0000 ", K_L4("00000000 ", "00000000 ", "00 ", "00000000 ")
			       K_NO_IP),
	},
	[SAMPLE_TCP] = {
		.name = "C-VLAN, IPv4 and TCP with options, ACK with data",
		.hex = S_ETH "8100 6005 0800 "
		       "462e 003d 1234 4000 40 06 c8a9 " S_ADDRESSES4 "94040000 "
		       "04d2 0050 01020304 05060708 8118 ffff 51fa 0000 "
		       "0101080a 00000001 00000002 68656c6c6f",
		.frame = { .has_cvlan = true, .vlan = 0x6005,
			   .outer = L_TCP(0, 18, 42, 74, 0x800, FRAME_TCP_ACK) },
		.outer = K_ETH("0800 ", "6005 ", K_L4("06 2e 8918 ", "04d2 0050 ", "40 ",
			       "00000000 ") K_SRC4 K_DST4),
	},
	[SAMPLE_UDP_PADDED] = {
		.name = "IPv4, UDP and padding",
		.hex = S_ETH "0800 452e 001f 1234 4000 40 11 5dc1 " S_ADDRESSES4
		       "0fa0 0035 000b 60f5 616263 000000000000000000000000000000",
		.frame = { .outer = L_UDP(0, 14, 34, 0x800) },
		.outer = K_ETH("0800 ", "0000 ", K_L4("11 2e 0800 ", "00000000 ", "40 ",
			       "0fa0 0035 ") K_SRC4 K_DST4),
		.padding = 15,
	},
	[SAMPLE_UDP_UNSUMMED] = {
		.name = "UDP without checksum",
		.hex = S_ETH "0800 452e 001f 1234 4000 40 11 5dc1 " S_ADDRESSES4
		       "0fa0 0035 000b 0000 616263",
		.frame = { .outer = L_UDP(0, 14, 34, 0x800) },
		.outer = K_ETH("0800 ", "0000 ", K_L4("11 2e 0800 ", "00000000 ", "40 ",
			       "0fa0 0035 ") K_SRC4 K_DST4),
	},
	[SAMPLE_EXTENSIONS] = {
		.name = "IPv6 with hop-by-hop, routing, destination options, then TCP SYN",
		.hex = S_ETH "86dd " S_IPV6("0034 ", "00 ") "2b00050200000000 3c00000000000000 "
		       "0601010c000000000000000000000000 "
		       "04d2 0050 01020304 05060708 5002 ffff 3f38 0000",
		.frame = { .outer = L_TCP(0, 14, 86, 106, 0x86dd, FRAME_TCP) },
		.outer = K_ETH("86dd ", "0000 ", K_L4("06 b8 0c02 ", "04d2 0050 ", "3f ",
			       "00000000 ") S_SRC6 S_DST6),
		.misc = K_MISC("00", "00000000 0000", "0000", "00000000", "000000", "00012345", ""),
	},
	[SAMPLE_QINQ] = {
		.name = "S-VLAN, C-VLAN, IPv6, UDP",
		.hex = S_ETH "88a8 0064 8100 e0c8 86dd " S_IPV6("0009 ", "11 ")
		       "0fa0 0035 0009 2392 71",
		.frame = { .has_svlan = true, .vlan = 0x64, .outer = L_UDP(0, 22, 62, 0x86dd) },
		.outer = K_ETH("86dd ", "0064 ", K_L4("11 b8 4c00 ", "00000000 ", "3f ",
			       "0fa0 0035 ") S_SRC6 S_DST6),
		.misc = K_MISC("00", "e0c80000 8000", "0000", "00000000", "000000", "00012345", ""),
	},
	[SAMPLE_FRAGMENT6] = {
		.name = "a fragment of IPv6",
		.hex = S_ETH "86dd " S_IPV6("0010 ", "2c ") "1100000900000001 6461746164617461",
		.frame = { .outer = { .l3 = 14, .payload = 62, .ethertype = 0x86dd,
				      .l3_type = FRAME_IPV6, .ip_protocol = 17, .l3_ok = true,
				      .is_fragment = true } },
		.outer = K_ETH("86dd ", "0000 ", K_L4("11 b8 2c00 ", "00000000 ", "3f ",
			       "00000000 ") S_SRC6 S_DST6),
		.misc = K_MISC("00", "00000000 0000", "0000", "00000000", "000000", "00012345", ""),
	},
	[SAMPLE_ATOMIC] = {
		.name = "the only fragment of a packet",
		.hex = S_ETH "86dd " S_IPV6("0011 ", "2c ") "1100000000000001 "
		       "0fa0 0035 0009 2392 71",
		.frame = { .outer = L_UDP(0, 14, 62, 0x86dd) },
		.outer = K_ETH("86dd ", "0000 ", K_L4("11 b8 0c00 ", "00000000 ", "3f ",
			       "0fa0 0035 ") S_SRC6 S_DST6),
		.misc = K_MISC("00", "00000000 0000", "0000", "00000000", "000000", "00012345", ""),
	},
	[SAMPLE_FRAGMENT4] = {
		.name = "the first fragment of IPv4",
		.hex = S_ETH "0800 452e 0028 1234 2000 40 06 7dc3 " S_ADDRESSES4
		       "6461746164617461646174616461746164617461",
		.frame = { .outer = { .l3 = 14, .payload = 34, .ethertype = 0x800,
				      .l3_type = FRAME_IPV4, .ip_protocol = 6, .l3_ok = true,
				      .is_fragment = true } },
		.outer = K_ETH("0800 ", "0000 ", K_L4("06 2e 2800 ", "00000000 ", "40 ",
			       "00000000 ") K_SRC4 K_DST4),
	},
	[SAMPLE_VXLAN] = {
		.name = "VXLAN",
		.hex = S_ETH "0800 452e 005e 1234 4000 40 11 5d82 " S_ADDRESSES4
		       "0fa0 12b5 004a f5e2 0800000000123400 " S_INNER_TCP,
		.frame = { .tunnel = FRAME_VXLAN, .tunnel_at = 42,
			   .outer = L_UDP(0, 14, 34, 0x800),
			   .inner = L_TCP(50, 68, 88, 108, 0x800, FRAME_TCP_EMPTY_ACK) },
		.outer = K_ETH("0800 ", "0000 ", K_L4("11 2e 0800 ", "00000000 ", "40 ",
			       "0fa0 12b5 ") K_SRC4 K_DST4),
		.misc = K_MISC("00", "00000000 0000", "0000", "00000000", "001234", "", ""),
		.inner = K_INNER_TCP,
	},
	[SAMPLE_GRE_ETHERNET] = {
		.name = "Ethernet in GRE with key and sequence number",
		.hex = S_ETH "86dd " S_IPV6("0046 ", "2f ") "3000 6558 cafe0001 00000007 "
		       S_INNER_TCP,
		.frame = { .tunnel = FRAME_GRE, .tunnel_at = 54,
			   .outer = L_IP(14, 54, 0x86dd, 47),
			   .inner = L_TCP(66, 84, 104, 124, 0x800, FRAME_TCP_EMPTY_ACK) },
		.outer = K_ETH("86dd ", "0000 ", K_L4("2f b8 0c00 ", "00000000 ", "3f ",
			       "00000000 ") S_SRC6 S_DST6),
		.misc = K_MISC("30", "00000000 0000", "6558", "cafe0001", "000000", "00012345", ""),
		.inner = K_INNER_TCP,
	},
	[SAMPLE_GRE_IP] = {
		.name = "IPv4 in GRE with checksum and key",
		.hex = S_ETH "0800 452e 003d 1234 4000 40 2f 5d85 " S_ADDRESSES4
		       "a000 0800 00000000 cafe0001 " S_INNER_UDP,
		.frame = { .tunnel = FRAME_GRE, .tunnel_at = 34,
			   .outer = L_IP(14, 34, 0x800, 47),
			   .inner = L_UDP(46, 46, 66, 0x800) },
		.outer = K_ETH("0800 ", "0000 ", K_L4("2f 2e 0800 ", "00000000 ", "40 ",
			       "00000000 ") K_SRC4 K_DST4),
		.misc = K_MISC("a0", "00000000 0000", "0800", "cafe0001", "", "", ""),
		.inner = K_INNER_UDP,
	},
	[SAMPLE_MPLS] = {
		.name = "two labels",
		.hex = S_ETH "8847 0001003f 0002013f " S_INNER_UDP,
		.frame = { .tunnel = FRAME_MPLS, .tunnel_at = 14,
			   .outer = { .l3 = 14, .ethertype = 0x8847 },
			   .inner = L_UDP(22, 22, 42, 0x800) },
		.outer = K_ETH("8847 ", "0000 ", K_L4("00000000 ", "00000000 ", "00 ", "00000000 ")
			       K_NO_IP),
		.inner = K_INNER_UDP,
		.misc2 = "0001003f",
	},
	[SAMPLE_MPLS_GRE] = {
		.name = "a label in GRE with key",
		.hex = S_ETH "0800 452e 0051 1234 4000 40 2f 5d71 " S_ADDRESSES4
		       "2000 8848 cafe0001 0003013f " S_INNER_UDP6,
		.frame = { .tunnel = FRAME_MPLS, .tunnel_at = 42,
			   .outer = L_IP(14, 34, 0x800, 47),
			   .inner = L_UDP(46, 46, 86, 0x86dd) },
		.outer = K_ETH("0800 ", "0000 ", K_L4("2f 2e 0800 ", "00000000 ", "40 ",
			       "00000000 ") K_SRC4 K_DST4),
		.misc = K_MISC("20", "00000000 0000", "8848", "cafe0001", "000000", "00000000",
			       "000fedcb"),
		.inner = K_INNER_UDP6,
		.misc2 = "00000000 00000000 0003013f",
	},
	[SAMPLE_MPLS_UDP] = {
		.name = "a label in UDP",
		.hex = S_ETH "0800 452e 0051 1234 4000 40 11 5d8f " S_ADDRESSES4
		       "0fa0 19eb 003d a4e8 0003073f " S_INNER_UDP6,
		.frame = { .tunnel = FRAME_MPLS, .tunnel_at = 42,
			   .outer = L_UDP(0, 14, 34, 0x800),
			   .inner = L_UDP(46, 46, 86, 0x86dd) },
		.outer = K_ETH("0800 ", "0000 ", K_L4("11 2e 0800 ", "00000000 ", "40 ",
			       "0fa0 19eb ") K_SRC4 K_DST4),
		.misc = K_MISC("00", "00000000 0000", "0000", "00000000", "000000", "00000000",
			       "000fedcb"),
		.inner = K_INNER_UDP6,
		.misc2 = "00000000 00000000 00000000 0003073f",
	},
	[SAMPLE_MPLS_INNER] = {
		.name = "S-VLAN, C-VLAN and a label in VXLAN",
		.hex = S_ETH "0800 452e 003f 1234 4000 40 11 5da1 " S_ADDRESSES4
		       "0fa0 12b5 002b 3f2c 0800000000123400 "
		       S_INNER_ETH "88a8 0001 8100 0002 8847 0004013f 00",
		.frame = { .tunnel = FRAME_VXLAN, .tunnel_at = 42,
			   .outer = L_UDP(0, 14, 34, 0x800),
			   .inner = { .l2 = 50, .l3 = 72, .ethertype = 0x8847 } },
		.outer = K_ETH("0800 ", "0000 ", K_L4("11 2e 0800 ", "00000000 ", "40 ",
			       "0fa0 12b5 ") K_SRC4 K_DST4),
		.misc = K_MISC("00", "00000002 4000", "0000", "00000000", "001234", "", ""),
		.inner = K_INNER_ETH("8847 ", "0001 ", K_L4("00004000 ", "00000000 ", "00 ",
				     "00000000 ") K_NO_IP),
		.misc2 = "00000000 0004013f",
	},
};
#endif
