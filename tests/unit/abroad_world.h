/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two functions of direct_world.h, of which a has imported b's domain: a's QPs are on it, and
 * memory of b is far for a.
 */
#ifndef TESTS_UNIT_ABROAD_WORLD_H
#define TESTS_UNIT_ABROAD_WORLD_H
#include "tests/unit/direct_world.h"

static struct emu_proxy proxy;
static struct emu_pd proxy_pd;

static inline uint32_t generation_of(void *ctx, uint32_t slot)
{
	return fabric_generation(((struct end *)ctx)->fabric, slot);
}

/* a has imported a domain of the member @slot. */
static inline void import(uint32_t slot, uint32_t generation, uint32_t pdn)
{
	static struct abroad_hold hold;

	proxy_pd.pdn = pdn;
	proxy = (struct emu_proxy){
		.obj = &proxy_pd.obj, .hold = &hold, .ref = { slot, generation, 0 },
	};
	a->w.dev.proxies = &proxy;
}

static inline void abroad_start(void)
{
	start();
	a->w.dev.abroad = (struct abroad){ .ctx = a, .generation_of = generation_of };
	abroad_keys_begin(a->e);
	import(fabric_self(b->fabric), b->share->generation, b->w.pd->pdn);
}

static inline struct key_use use_of(uint32_t access, size_t offset, size_t bytes)
{
	return (struct key_use){
		.key = b->w.a.mr->key, .pdn = b->w.pd->pdn, .qpn = KEY_QPN_LOCAL,
		.access = access, .addr = (uintptr_t)b->w.a.data + offset, .bytes = bytes,
	};
}

static inline struct iovec far_memory(uint32_t access, size_t offset, size_t bytes)
{
	const struct key_use use = use_of(access, offset, bytes);
	struct iovec out;

	cr_assert_eq(key_use_check(&a->w.dev.keys, &use, &out), WHY_NONE);
	cr_assert(mem_is_far((uintptr_t)out.iov_base));
	cr_assert_eq(out.iov_len, bytes);
	return out;
}

static inline enum mem_side copy(const struct iovec *to, const struct iovec *from, size_t bytes)
{
	return mem_copy_spans(to, 1, 0, from, 1, 0, bytes);
}

/* Atomics of every kind on b's first word. */
static inline void atomics_check(void)
{
	struct iovec there = far_memory(KEY_LOCAL_WRITE, 0, 8);
	uint64_t at = (uintptr_t)there.iov_base, old, value = 5;
	uint32_t old32;

	memcpy(b->w.a.data, &value, sizeof value);
	cr_assert_eq(mem_fetch_add(at, 2, &old), 0);
	cr_assert_eq(old, 5);
	cr_assert_eq(mem_compare_swap(at, 7, 9, &old), 0);
	cr_assert_eq(old, 7);
	cr_assert_eq(mem_compare_swap(at, 7, 10, &old), 0);
	cr_assert_eq(old, 9);
	cr_assert_eq(mem_compare_swap32(at, 9, 11, &old32), 0);
	cr_assert_eq(old32, 9);
	cr_assert_eq(mem_compare_swap(at + 1, 0, 1, &old), -EFAULT, "not aligned");
	memcpy(&value, b->w.a.data, sizeof value);
	cr_assert_eq(value, 11);
}

static inline void sides_check(void)
{
	struct iovec there = far_memory(KEY_LOCAL_WRITE, 0, 8192), here = { a->w.a.data, 8192 };
	struct iovec bad = { (void *)16, 8192 };

	cr_assert_eq(copy(&bad, &there, 8192), MEM_SIDE_DST);
	cr_assert_eq(copy(&there, &bad, 8192), MEM_SIDE_SRC);
	munmap(b->w.a.data + 4096, 4096);
	cr_assert_eq(copy(&here, &there, 8192), MEM_SIDE_SRC);
	cr_assert_eq(copy(&there, &here, 8192), MEM_SIDE_DST);
}
#endif
