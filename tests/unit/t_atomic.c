/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What atomics make of a value: against a model that adds and swaps bit by bit.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "emu/transport/resp_local.h"

static uint64_t seed = 88172645463325252ull;

static uint64_t random64(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* Few bits or many, and all or none now and then. */
static uint64_t random_mask(void)
{
	switch (random64() % 5) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX;
	case 2:
		return random64() & random64() & random64();
	case 3:
		return random64() | random64();
	}
	return random64();
}

static uint64_t model(const struct atomic *a, uint64_t old)
{
	unsigned bits = a->bytes * 8u, carry = 0;
	uint64_t new = 0;

	for (unsigned i = 0; i < bits && !a->is_add; i++)
		if (((old ^ a->compare) & a->compare_mask) >> i & 1)
			return old;
	for (unsigned i = 0; i < bits; i++) {
		unsigned o = old >> i & 1, x = a->operand >> i & 1, m = a->mask >> i & 1;
		unsigned sum = o + x + carry;

		if (a->is_add) {
			new |= (uint64_t)(sum & 1) << i;
			carry = m ? 0 : sum >> 1;
		} else {
			new |= (uint64_t)(m ? x : o) << i;
		}
	}
	return new;
}

static struct atomic random_atomic(void)
{
	return (struct atomic){
		.is_add = random64() & 1, .bytes = random64() & 1 ? 8 : 4, .operand = random_mask(),
		.compare = random_mask(), .mask = random_mask(), .compare_mask = random_mask(),
	};
}

static uint64_t cut(uint64_t value, unsigned bytes)
{
	return bytes == 4 ? (uint32_t)value : value;
}

Test(atomic, every_result_is_the_models)
{
	for (int i = 0; i < 200000; i++) {
		struct atomic a = random_atomic();
		uint64_t old = cut(random64() & 1 ? a.compare : random_mask(), a.bytes);

		cr_assert_eq(atomic_result(&a, old), model(&a, old),
			     "add %d bytes %d operand %lx compare %lx masks %lx %lx old %lx",
			     a.is_add, a.bytes, a.operand, a.compare, a.mask, a.compare_mask, old);
	}
}

Test(atomic, memory_holds_the_result_and_the_rest_is_untouched)
{
	uint64_t words[3];

	cr_assert_eq(mem_guard_init(), 0);
	for (int i = 0; i < 20000; i++) {
		struct atomic a = random_atomic();
		uint64_t was = random64() & 1 ? a.compare : random_mask(), old = 1, now = 0;

		memset(words, 0x5a, sizeof words);
		memcpy(&words[1], &was, a.bytes);
		cr_assert_eq(atomic_execute(&a, (uintptr_t)&words[1], &old), 0);
		cr_assert_eq(old, cut(was, a.bytes));
		memcpy(&now, &words[1], a.bytes);
		cr_assert_eq(now, model(&a, old));
		cr_assert(words[0] == 0x5a5a5a5a5a5a5a5a && words[2] == words[0]);
		cr_assert(a.bytes == 8 || words[1] >> 32 == 0x5a5a5a5a);
	}
}

Test(atomic, memory_that_is_gone_or_unaligned_is_efault)
{
	struct atomic a = { .bytes = 4, .mask = 1, .compare_mask = 1 };
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t old;

	cr_assert_eq(mem_guard_init(), 0);
	for (int is_add = 0; is_add < 2; is_add++) {
		a.is_add = is_add;
		for (a.bytes = 4; a.bytes <= 8; a.bytes += 4)
			cr_assert_eq(atomic_execute(&a, (uintptr_t)page + 2, &old), -EFAULT);
	}
	munmap(page, 4096);
	for (a.bytes = 4; a.bytes <= 8; a.bytes += 4)
		cr_assert_eq(atomic_execute(&a, (uintptr_t)page, &old), -EFAULT);
}

/* Packets that come from elsewhere may claim anything. */
Test(atomic, a_packet_is_read_as_it_is)
{
	uint64_t masks[2] = { 3, 5 };
	struct iovec span = { masks, sizeof masks };
	struct ib_packet p = { .opcode = RC_MASKED_COMPARE_SWAP, .dma_bytes = 4, .swap_add = 7,
			       .compare = 9, .span = &span, .span_count = 1, .payload_bytes = 16 };
	struct atomic a;

	cr_assert_eq(mem_guard_init(), 0);
	cr_assert(atomic_read(&p, &a));
	cr_assert(!a.is_add && a.bytes == 4 && a.operand == 7 && a.compare == 9 && a.mask == 3 &&
		  a.compare_mask == 5);
	p.opcode = RC_MASKED_FETCH_ADD;
	p.dma_bytes = 8;
	cr_assert(atomic_read(&p, &a));
	cr_assert(a.is_add && a.bytes == 8 && a.mask == 3);
	p.opcode = RC_COMPARE_SWAP;
	p.dma_bytes = 4;
	cr_assert(atomic_read(&p, &a));
	cr_assert(!a.is_add && a.bytes == 8 && a.mask == UINT64_MAX &&
		  a.compare_mask == UINT64_MAX);
	p.opcode = RC_FETCH_ADD;
	cr_assert(atomic_read(&p, &a));
	cr_assert(a.is_add && a.bytes == 8 && !a.mask);
	p.opcode = RC_MASKED_FETCH_ADD;
	span.iov_base = (void *)8;
	cr_assert_not(atomic_read(&p, &a));
}
