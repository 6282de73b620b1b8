/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reasons: kept, found again newest first, forgotten after WHY_KEPT more, and printed in
 * one line with every value.
 */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <string.h>
#include "emu/diag/why.h"

static struct why_ring ring;

Test(why, every_reason_has_its_texts)
{
	for (unsigned i = 1; i < WHY_COUNT; i++) {
		cr_assert(!strncmp(why_name(i), "WHY_", 4), "%u", i);
		cr_assert(*why_sentence(i) && *why_look_at(i) && *why_rule(i), "%u", i);
		for (unsigned j = 1; j < i; j++)
			cr_assert(strcmp(why_name(i), why_name(j)), "%u %u", i, j);
	}
	cr_assert_str_eq(why_name(WHY_KEY_UNKNOWN), "WHY_KEY_UNKNOWN");
	cr_assert_str_eq(why_sentence(WHY_KEY_UNKNOWN), "no memory key has this index");
	cr_assert(why_name(WHY_COUNT) && why_rule((enum why)-1));
}

Test(why, the_newest_is_found)
{
	why_note(&ring, &(struct why_record){ .why = WHY_KEY_TAG, .qpn = 3, .wqe_index = 7 });
	why_note(&ring, &(struct why_record){ .why = WHY_KEY_PD, .qpn = 3, .wqe_index = 7 });
	why_note(&ring, &(struct why_record){ .why = WHY_FLUSHED, .qpn = 4, .wqe_index = 7 });
	cr_assert_eq(why_find(&ring, 3, WHY_SIDE_SEND, 7)->why, WHY_KEY_PD);
	cr_assert_eq(why_find(&ring, 4, WHY_SIDE_SEND, 7)->why, WHY_FLUSHED);
	cr_assert_null(why_find(&ring, 3, WHY_SIDE_RECV, 7));
	cr_assert_null(why_find(&ring, 3, WHY_SIDE_SEND, 8));
	cr_assert_null(why_find(&ring, 5, WHY_SIDE_SEND, 7));
}

Test(why, an_empty_ring_finds_nothing)
{
	cr_assert_null(why_find(&ring, 0, WHY_SIDE_SEND, 0));
}

Test(why, the_oldest_is_forgotten)
{
	why_note(&ring, &(struct why_record){ .why = WHY_KEY_TAG, .qpn = 3 });
	for (unsigned i = 1; i < WHY_KEPT; i++)
		why_note(&ring, &(struct why_record){ .why = WHY_FLUSHED, .qpn = 9 });
	cr_assert_not_null(why_find(&ring, 3, WHY_SIDE_SEND, 0));
	why_note(&ring, &(struct why_record){ .why = WHY_FLUSHED, .qpn = 9 });
	cr_assert_null(why_find(&ring, 3, WHY_SIDE_SEND, 0));
	cr_assert_eq(ring.made, WHY_KEPT + 1);
}

static const struct why_record full = {
	.why = WHY_KEY_RANGE, .side = WHY_SIDE_RECV, .qpn = 0x11d, .peer_qpn = 0x203,
	.wqe_index = 17, .opcode = 8, .psn = 0xa41c, .key = 0x301c04, .addr = 0x7f10, .bytes = 64,
	.found = 0x7f00, .found_bytes = 32,
};

Test(why, a_line_has_every_value)
{
	static const char *const want[] = {
		"WHY_KEY_RANGE", "recv", "qp 0x11d", "peer 0x203", "wqe 17", "opcode 0x08",
		"psn 0x00a41c", "key 0x00301c04", "asked 0x7f10+64", "found 0x7f00+32",
		"the range is not inside what the key covers",
		"address and length of the request against the MR", "IBTA vol 1 10.6.3",
	};
	char text[512];

	why_print(&full, text, sizeof text);
	for (size_t i = 0; i < sizeof want / sizeof *want; i++)
		cr_assert(strstr(text, want[i]), "%s is not in: %s", want[i], text);
	cr_assert_null(strchr(text, '\n'));
}

Test(why, a_short_buffer_is_cut_and_ended)
{
	char whole[512], cut[512];
	int need = why_print(&full, whole, sizeof whole);

	cr_assert_eq(need, (int)strlen(whole));
	cr_assert_eq(why_print(&full, NULL, 0), need);
	for (unsigned bytes = 1; bytes <= (unsigned)need + 1; bytes++) {
		memset(cut, '#', sizeof cut);
		cr_assert_eq(why_print(&full, cut, bytes), need);
		cr_assert_eq(strlen(cut), bytes - 1);
		cr_assert(!strncmp(cut, whole, bytes - 1));
		cr_assert_eq(cut[bytes], '#');
	}
}

Test(why, every_reason_fits_a_printed_line)
{
	struct why_record r = full;

	memset(&r, 0xff, sizeof r);
	r.side = WHY_SIDE_RECV;
	for (unsigned i = 0; i <= WHY_COUNT; i++) {
		r.why = i;
		cr_assert_lt(why_print(&r, NULL, 0), 510, "%s", why_name(i));
	}
}

Test(why, printing_is_off_until_asked_for)
{
	cr_redirect_stderr();
	why_note(&ring, &full);
	ring.is_printing = true;
	why_note(&ring, &(struct why_record){ .why = WHY_CMD_BUSY, .side = WHY_SIDE_COMMAND });
	cr_assert_stderr_eq_str("verbena: WHY_CMD_BUSY command: other objects still use this one; "
				"look at: destroy in reverse order of creation; "
				"rule: kernel uverbs\n");
}
