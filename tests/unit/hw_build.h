/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * WQEs byte by byte, for tests of the decoder: nothing here uses the accessors under test.
 */
#ifndef TESTS_UNIT_HW_BUILD_H
#define TESTS_UNIT_HW_BUILD_H
#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>
#include "hw-models/hw.h"

#define PAGE_BYTES 4096

/* Building: a WQE grows by one big-endian word after the other. */
struct build {
	uint8_t bytes[HW_WQE_BYTES_MAX];
	size_t used;
};

static inline void word(struct build *b, uint32_t value)
{
	cr_assert(b->used + 4 <= sizeof b->bytes);
	for (int shift = 24; shift >= 0; shift -= 8)
		b->bytes[b->used++] = (uint8_t)(value >> shift);
}

static inline void long_word(struct build *b, uint64_t value)
{
	word(b, (uint32_t)(value >> 32));
	word(b, (uint32_t)value);
}

#define INDEX 0xfedcu
#define QPN   0xabcdefu
#define IMM   0x01020304u

/* Control with the last byte of its third word and its ds still to be filled. */
static inline struct build control(uint8_t opcode, uint8_t flags)
{
	struct build b = { .used = 0 };

	word(&b, INDEX << 8 | opcode);
	word(&b, QPN << 8);
	word(&b, flags);
	word(&b, IMM);
	return b;
}

static inline void remote(struct build *b)
{
	long_word(b, 0x00007f1234567890);
	word(b, 0xdeadbeef);
	word(b, 0);
}

static inline void operands(struct build *b)
{
	long_word(b, 0x0102030405060708);
	long_word(b, 0x1112131415161718);
}

static inline void piece(struct build *b, uint32_t bytes, uint32_t lkey, uint64_t addr)
{
	word(b, bytes);
	word(b, lkey);
	long_word(b, addr);
}

/* Inline bytes count up from 0; padding is 0xee as a ring may have anything there. */
static inline void inlined(struct build *b, uint32_t bytes)
{
	word(b, 0x80000000 | bytes);
	for (uint32_t i = 0; i < bytes; i++)
		b->bytes[b->used++] = (uint8_t)i;
	while (b->used % 16)
		b->bytes[b->used++] = 0xee;
}

static inline void set_ds(struct build *b, unsigned ds)
{
	b->bytes[7] = (uint8_t)(b->bytes[7] | ds);
}

/* @bytes of @from, such that the next one can't be read.  Released with the process. */
static inline const uint8_t *guarded(const uint8_t *from, size_t bytes)
{
	static uint8_t *page;

	if (!page) {
		page = mmap(NULL, 2 * PAGE_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		cr_assert(page != MAP_FAILED);
		cr_assert(mprotect(page + PAGE_BYTES, PAGE_BYTES, PROT_NONE) == 0);
	}
	return memcpy(page + PAGE_BYTES - bytes, from, bytes);
}

static inline enum hw_fault decode(struct build *b, enum hw_transport transport,
				   struct hw_work *out)
{
	memset(out, 0xa5, sizeof *out);		/* nothing may be left as it was */
	if (!(b->bytes[7] & 0x3f))
		set_ds(b, (unsigned)(b->used / 16));
	return mlx5_work_read(guarded(b->bytes, b->used), HW_WQE_DS_MAX, transport, out);
}

static inline void check_plain(const struct hw_work *w, enum hw_op op, unsigned ds)
{
	cr_assert(w->op == op && w->ds == ds, "op %s ds %u", hw_op_name(w->op), w->ds);
	cr_assert(w->index == INDEX && w->qpn == QPN);
}

static inline void check_remote(const struct hw_work *w)
{
	cr_assert(w->remote_addr == 0x00007f1234567890 && w->rkey == 0xdeadbeef);
}

static inline void check_piece(const struct hw_sge *sge, uint32_t bytes, uint32_t lkey,
			       uint64_t addr)
{
	cr_assert(sge->bytes == bytes && sge->lkey == lkey && sge->addr == addr);
	cr_assert(!sge->inline_bytes);
}

static inline void check_inlined(const struct hw_sge *sge, uint32_t bytes)
{
	cr_assert(sge->bytes == bytes && sge->inline_bytes);
	for (uint32_t i = 0; i < bytes; i++)
		cr_assert(sge->inline_bytes[i] == (uint8_t)i);
}

/* A UMR's 48 bytes of control. */
static inline void umr_control(struct build *b, uint8_t flags, unsigned units, uint64_t mask)
{
	word(b, (uint32_t)flags << 24);
	word(b, units << 16);
	long_word(b, mask);
	for (unsigned i = 0; i < 8; i++)
		word(b, 0);
}

/* Each fault leaves what identifies the WQE valid. */
static inline void check_fault(struct build *b, enum hw_transport transport, enum hw_fault want)
{
	struct hw_work w;
	enum hw_fault fault;

	b->bytes[11] |= 0x08;
	fault = decode(b, transport, &w);
	cr_assert(fault == want, "%s, not %s", hw_fault_name(fault), hw_fault_name(want));
	cr_assert(w.opcode == b->bytes[3] && w.ds == (b->bytes[7] & 0x3f));
	cr_assert(w.index == INDEX && w.qpn == QPN && w.is_signaled == true);
}

/* Random bytes, the same in every run. */
static inline uint32_t random_word(void)
{
	static uint64_t state = 0x9e3779b97f4a7c15;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32);
}

/* Words that are more often than by chance what the format gives a meaning to. */
static inline void scramble(struct build *b)
{
	static const uint32_t liked[] = {
		0, 4, 8, 16, HW_LKEY_END, 0x400, 0x80000000, 0x80000004,
		0x8000000c, 0x80000030, 0xffffffff,
	};

	for (b->used = 0; b->used < sizeof b->bytes;)
		word(b, random_word() & 1 ? random_word() :
		     liked[random_word() % (sizeof liked / sizeof *liked)]);
}
#endif
