/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading captures: what is in them comes out, in any byte order; what is wrong with them is told;
 * and nothing is read that is not there.
 *
 * Method: files are made by hand, and end where memory ends, so that a byte read too far is a
 * fault.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <errno.h>
#include "emu/mem/mem.h"
#include "emu/uplink/capture.h"
#include "tests/unit/capture_build.h"

enum { FRAMES = 9, COPY_MAX = 65536 };

static uint8_t *end_of_memory;

static void start(void)
{
	long page = sysconf(_SC_PAGESIZE);
	uint8_t *at = mmap(NULL, BUILT_MAX + (size_t)page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_eq(mem_guard_init(), 0);
	cr_assert(at != MAP_FAILED);
	munmap(at + BUILT_MAX, (size_t)page);
	end_of_memory = at + BUILT_MAX;
}

TestSuite(capture, .init = start);

/* Its first bytes, at the end of memory. */
static const uint8_t *placed(const struct built *b, uint32_t bytes)
{
	return memcpy(end_of_memory - bytes, b->at, bytes);
}

/* What came of reading: how many frames were the right ones, and how it ended. */
struct outcome {
	unsigned frames;
	enum capture_fault fault;
	uint64_t next;
};

static struct outcome read_all(const struct built *b, uint32_t bytes)
{
	static uint8_t copy[COPY_MAX];
	struct outcome o = { 0 };
	struct capture_frame frame;
	struct capture c;

	o.fault = capture_begin(&c, placed(b, bytes), bytes);
	while (!o.fault && !(o.fault = capture_next(&c, &frame))) {
		cr_assert_leq(frame.at + frame.bytes, bytes);
		cr_assert_eq(capture_copy(&c, &frame, copy), 0);
		o.frames += is_frame(copy, frame.bytes, o.frames, frame_bytes(o.frames));
	}
	o.next = c.next;
	cr_assert_neq(o.fault, CAPTURE_MEMORY, "read too far");
	cr_assert(capture_fault_text(o.fault));
	return o;
}

static struct outcome read_whole(const struct built *b)
{
	struct outcome o = read_all(b, b->bytes);
	struct capture c;

	cr_assert_eq(capture_check(&c, placed(b, b->bytes), b->bytes), o.fault);
	cr_assert_eq(c.next, o.next);
	return o;
}

#define expect_fault(b, fault_)                                                                  \
	do {                                                                                     \
		struct outcome o_ = read_whole(b);                                               \
		cr_expect_eq(o_.fault, fault_, "%s", capture_fault_text(o_.fault));              \
	} while (0)

static struct built build(unsigned kind, unsigned n)
{
	return kind & 2 ? build_ng(kind & 1, n) : build_old(kind & 1, n);
}

Test(capture, frames_come_whole_and_in_order)
{
	for (unsigned kind = 0; kind < 4; kind++) {
		struct built b = build(kind, FRAMES);
		struct outcome o = read_whole(&b);

		cr_expect_eq(o.fault, CAPTURE_END, "%u: %s", kind, capture_fault_text(o.fault));
		cr_expect_eq(o.frames, FRAMES, "%u: %u", kind, o.frames);
	}
}

Test(capture, a_file_without_frames_is_none_the_less_good)
{
	for (unsigned kind = 0; kind < 4; kind++) {
		struct built b = build(kind, 0);

		expect_fault(&b, CAPTURE_END);
	}
}

/* Wherever it is cut: frames before are there, and the cut is told unless it is between blocks. */
Test(capture, every_truncation)
{
	for (unsigned kind = 0; kind < 4; kind++) {
		struct built b = build(kind, FRAMES);
		unsigned ends = 0, before = 0;

		for (uint32_t bytes = 0; bytes < b.bytes; bytes++) {
			struct outcome o = read_all(&b, bytes);

			cr_assert_geq(o.frames, before);
			before = o.frames;
			ends += o.fault == CAPTURE_END;
			if (bytes < 4)
				cr_assert_eq(o.fault, bytes ? CAPTURE_FORMAT : CAPTURE_EMPTY);
			else if (o.fault != CAPTURE_END)
				cr_assert_eq(o.fault, CAPTURE_CUT, "kind %u, %u bytes: %s", kind,
					     bytes, capture_fault_text(o.fault));
		}
		cr_expect_eq(before, FRAMES - 1);
		cr_expect_eq(ends, kind & 2 ? FRAMES + 2 : FRAMES, "%u", ends);
	}
}

/* Any byte may be anything: reading ends, and within the file. */
Test(capture, every_byte_damaged)
{
	static const uint8_t damage[] = { 0x00, 0x01, 0x04, 0x7f, 0x80, 0xff };

	for (unsigned kind = 0; kind < 4; kind++) {
		struct built b = build(kind, FRAMES);

		for (uint32_t at = 0; at < b.bytes; at++) {
			uint8_t was = b.at[at];

			for (size_t i = 0; i < sizeof damage; i++) {
				b.at[at] = damage[i];
				read_all(&b, b.bytes);
			}
			b.at[at] = was;
		}
	}
}

Test(capture, garbage_behind_a_good_beginning)
{
	for (unsigned kind = 0; kind < 4; kind++) {
		for (unsigned seed = 0; seed < 2000; seed++) {
			struct built b = build(kind, 2);

			srandom(seed);
			while (b.bytes < 2000)
				put(&b, &(uint8_t){ (uint8_t)(random() % 7 ? 0 : random()) }, 1);
			read_all(&b, b.bytes);
		}
	}
}

/* --- each thing that may be wrong --- */

Test(capture, what_is_none)
{
	static const char *const texts[] = {
		"no", "a text\n", "\x7f" "ELF", "\xd4\xc3\xb2\xa2 nearly",
		"\x0a\x0d\x0d\x0a and so on",
	};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct built b = { 0 };

		put(&b, texts[i], (uint32_t)strlen(texts[i]));
		expect_fault(&b, CAPTURE_FORMAT);
	}
}

Test(capture, what_is_compressed)
{
	struct built b = { 0 };

	put(&b, "\x1f\x8b\x08\x00\x00\x00\x00\x00", 8);
	expect_fault(&b, CAPTURE_COMPRESSED);
}

Test(capture, other_versions)
{
	struct built ng = build_ng(false, 1), old = { 0 };

	ng.at[12] = 2;
	expect_fault(&ng, CAPTURE_VERSION);
	put_old_header(&old, 0xa1b2c3d4, 3, 1);
	expect_fault(&old, CAPTURE_VERSION);
}

Test(capture, other_links)
{
	struct built ng = { 0 }, old = { 0 }, second = build_ng(true, 1);

	put_section(&ng);
	put_interface(&ng, 113, 0);
	expect_fault(&ng, CAPTURE_LINK);
	put_old_header(&old, 0xa1b2c3d4, 2, 113);
	expect_fault(&old, CAPTURE_LINK);
	put_interface(&second, 276, 0);
	expect_fault(&second, CAPTURE_LINK);
}

/* Its upper half says that frames end with a check sequence of four bytes. */
Test(capture, a_link_with_a_check_sequence_is_ethernet)
{
	struct built b = { 0 };

	put_old_header(&b, 0xa1b2c3d4, 2, 0x24000001);
	put_record(&b, 0, frame_bytes(0));
	expect_fault(&b, CAPTURE_END);
}

Test(capture, packets_of_no_interface)
{
	struct built none = { 0 }, other = build_ng(true, 3), simple = { 0 };
	struct built again = build_ng(false, 1);

	put_section(&none);
	put_enhanced(&none, 0, 0, 20);
	expect_fault(&none, CAPTURE_INTERFACE);
	put_section(&simple);
	put_simple(&simple, 0, 20, 20);
	expect_fault(&simple, CAPTURE_INTERFACE);
	put_interface(&other, 1, 0);
	put_enhanced(&other, 1, 3, frame_bytes(3));
	expect_fault(&other, CAPTURE_END);
	put_enhanced(&other, 2, 4, frame_bytes(4));
	expect_fault(&other, CAPTURE_INTERFACE);
	put_section(&again);			/* it forgets those of the one before */
	put_enhanced(&again, 0, 1, 20);
	expect_fault(&again, CAPTURE_INTERFACE);
}

/* @change to a 32-bit word of the last block, counted from its beginning or (< 0) its end. */
static void expect_length_fault(const struct built *good, uint32_t block, int word, int change)
{
	struct built b = *good;
	uint32_t at = word < 0 ? b.bytes - 4u * (uint32_t)-word : block + 4u * (uint32_t)word;
	uint32_t value;

	memcpy(&value, b.at + at, 4);
	set32(&b, at, (b.is_swapped ? __builtin_bswap32(value) : value) + (uint32_t)change);
	expect_fault(&b, CAPTURE_LENGTH);
}

Test(capture, lengths_that_contradict_each_other)
{
	for (unsigned order = 0; order < 2; order++) {
		struct built b = build_ng(order, 2);
		uint32_t block = b.bytes;

		put_enhanced(&b, 0, 2, 41);
		expect_length_fault(&b, block, -1, 4);		/* the trailer */
		expect_length_fault(&b, block, 1, -2);		/* no multiple of 4 */
		expect_length_fault(&b, block, 1, -(int)(b.bytes - block));	/* nothing */
		expect_length_fault(&b, block, 5, 100);		/* a longer frame than block */
		expect_length_fault(&b, block, 5, -42);		/* -1 bytes */
	}
}

/* Both say the same, but nothing after it would be where it should. */
Test(capture, a_length_that_is_no_multiple_of_four)
{
	struct built b = build_ng(false, 1);

	put32(&b, 0x0bad);
	put32(&b, 13);
	put(&b, "x", 1);
	put32(&b, 13);
	expect_fault(&b, CAPTURE_LENGTH);
}

/* A known block that is shorter than what it must have. */
Test(capture, blocks_that_are_too_short)
{
	static const uint32_t types[] = { 1, 2, 3, 6, 0x0a0d0d0a };

	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		struct built b = build_ng(false, 1);
		uint32_t at = block_begin(&b, types[i]);

		if (types[i] > 6)
			put32(&b, 0x1a2b3c4d);
		block_end(&b, at);
		expect_fault(&b, CAPTURE_LENGTH);
	}
}

/* --- less common, and right --- */

Test(capture, simple_packets_are_as_long_as_the_interface_lets_them)
{
	struct built b = { 0 };

	put_section(&b);
	put_interface(&b, 1, frame_bytes(1));
	put_simple(&b, 0, frame_bytes(0), frame_bytes(0));
	put_simple(&b, 1, 1500, frame_bytes(1));
	cr_expect_eq(read_whole(&b).frames, 2);
	expect_fault(&b, CAPTURE_END);
	put_simple(&b, 2, 20, 19);		/* a byte is padding's */
	expect_fault(&b, CAPTURE_END);
	put_simple(&b, 3, 20, 16);
	expect_fault(&b, CAPTURE_LENGTH);
}

Test(capture, sections_of_both_orders)
{
	struct built b = { .is_swapped = true };

	put_section(&b);
	put_interface(&b, 1, 0);
	put_enhanced(&b, 0, 0, frame_bytes(0));
	b.is_swapped = false;
	put_section(&b);
	put_unknown(&b);
	put_interface(&b, 1, 0);
	put_enhanced(&b, 0, 1, frame_bytes(1));
	b.is_swapped = true;
	put_section(&b);
	put_interface(&b, 1, 0);
	put_obsolete(&b, 2, frame_bytes(2));
	cr_expect_eq(read_whole(&b).frames, 3);
	expect_fault(&b, CAPTURE_END);
}

Test(capture, frames_of_no_bytes)
{
	struct built b = build_ng(false, 0);

	put_enhanced(&b, 0, 0, 0);
	put_simple(&b, 0, 0, 0);
	expect_fault(&b, CAPTURE_END);
}

/* --- a file that changes --- */

Test(capture, a_file_that_is_cut_while_it_is_mapped)
{
	struct built b = build_ng(true, FRAMES);
	char path[] = "/tmp/verbena-capture-XXXXXX";
	struct capture_frame frame;
	struct capture c;
	uint8_t copy[64];
	void *at;
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	unlink(path);
	cr_assert_eq(write(fd, b.at, b.bytes), b.bytes);
	at = mmap(NULL, b.bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	cr_assert(at != MAP_FAILED);
	cr_assert_eq(capture_begin(&c, at, b.bytes), CAPTURE_OK);
	cr_assert_eq(capture_next(&c, &frame), CAPTURE_OK);
	cr_assert_eq(ftruncate(fd, 0), 0);
	cr_expect_eq(capture_copy(&c, &frame, copy), -EFAULT);
	cr_expect_eq(capture_next(&c, &frame), CAPTURE_MEMORY);
	cr_expect_eq(capture_check(&c, at, b.bytes), CAPTURE_MEMORY);
}
