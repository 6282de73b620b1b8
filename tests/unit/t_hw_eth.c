/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Ethernet segment: what is in front of a frame, and what is its header.
 */
#include <errno.h>
#include "tests/unit/hw_build.h"

enum { SEND = 0x0a, TSO = 0x0e };

/* Checksums, MSS, and a header that counts up from 0 in whole units. */
static void eth(struct build *b, uint8_t checksums, uint16_t mss, uint16_t header_bytes)
{
	word(b, 0);
	word(b, (uint32_t)checksums << 24 | mss);
	word(b, 0);
	word(b, (uint32_t)header_bytes << 16);
	for (unsigned i = 0; i < header_bytes; i++) {
		if (i < 2)
			b->bytes[b->used - 2 + i] = (uint8_t)i;
		else
			b->bytes[b->used++] = (uint8_t)i;
	}
	while (b->used % 16)
		b->bytes[b->used++] = 0xee;
}

static void check_counts_up(const uint8_t *bytes, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		cr_assert(bytes[i] == i, "byte %u", i);
}

Test(eth, without_header_the_message_is_the_data)
{
	struct build b = control(SEND, 0x08);
	struct hw_work w;

	eth(&b, 0xc0, 0, 0);
	piece(&b, 60, 0x1234, 0x7000);
	cr_assert(decode(&b, HW_RAW, &w) == HW_OK);
	cr_assert(w.op == HW_OP_SEND && w.bytes == 60 && w.sge_count == 1);
	cr_assert(w.sge[0].lkey == 0x1234 && w.eth.checksums == 0xc0 && !w.eth.header_bytes);
	cr_assert(!w.eth.inserts_vlan);
}

Test(eth, header_is_the_first_piece_of_a_frame)
{
	static const struct { uint16_t header; size_t segment; } sizes[] = {
		{ 1, 16 }, { 2, 16 }, { 3, 32 }, { 18, 32 }, { 19, 48 }, { 54, 80 },
	};

	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct build b = control(SEND, 0);
		struct hw_work w;

		eth(&b, 0, 0, sizes[i].header);
		cr_assert(b.used == 16 + sizes[i].segment);
		piece(&b, 100, 0x1234, 0x7000);
		cr_assert(decode(&b, HW_RAW, &w) == HW_OK, "%u", sizes[i].header);
		cr_assert(w.bytes == 100u + sizes[i].header && w.sge_count == 2);
		cr_assert(w.sge[0].bytes == sizes[i].header);
		check_counts_up(w.sge[0].inline_bytes, sizes[i].header);
		cr_assert(w.sge[1].addr == 0x7000);
	}
}

Test(eth, a_tag_stands_where_a_header_would)
{
	struct build b = control(SEND, 0);
	struct hw_work w;

	word(&b, 0);
	word(&b, 0);
	word(&b, 0);
	word(&b, 0x8000a123);
	piece(&b, 60, 1, 0x7000);
	cr_assert(decode(&b, HW_RAW, &w) == HW_OK);
	cr_assert(w.eth.inserts_vlan && w.eth.vlan == 0xa123 && !w.eth.header_bytes);
	cr_assert(w.bytes == 60 && w.sge_count == 1);
}

Test(eth, the_header_of_tso_is_not_its_message)
{
	struct build b = control(TSO, 0);
	struct hw_work w;

	eth(&b, 0xc0, 1460, 54);
	piece(&b, 5000, 1, 0x7000);
	cr_assert(decode(&b, HW_RAW, &w) == HW_OK);
	cr_assert(w.op == HW_OP_TSO && w.bytes == 5000 && w.sge_count == 1);
	cr_assert(w.eth.mss == 1460 && w.eth.header_bytes == 54);
	check_counts_up(w.eth.header, 54);
}

Test(eth, faults)
{
	struct build segmentless = control(SEND, 0), headerless = control(TSO, 0);
	struct build beyond = control(SEND, 0), padding = control(SEND, 0);

	check_fault(&segmentless, HW_RAW, HW_FAULT_DS_SHORT);
	eth(&headerless, 0, 1460, 0);
	piece(&headerless, 5000, 1, 0x7000);
	check_fault(&headerless, HW_RAW, HW_FAULT_ETH_HEADER);
	eth(&beyond, 0, 0, 18);
	beyond.bytes[29] = 19;			/* of 18 that are there */
	check_fault(&beyond, HW_RAW, HW_FAULT_ETH_HEADER);
	eth(&padding, 0, 0, 2);
	padding.bytes[29] = 3;
	check_fault(&padding, HW_RAW, HW_FAULT_ETH_HEADER);
}

Test(eth, a_nop_has_no_segment)
{
	struct build b = control(0, 0);
	struct hw_work w;

	cr_assert(decode(&b, HW_RAW, &w) == HW_OK);
}
