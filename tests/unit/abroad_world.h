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
#endif
