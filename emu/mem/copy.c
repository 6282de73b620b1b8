/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Guarded copies, loads, stores and atomics.
 *
 * Bytes go in ascending order, so that an application that polls the last byte of a
 * message finds everything before it; the C library's copies do not promise that.
 * The loops are invisible to sanitizers: the application's memory may be poisoned in
 * their eyes and is raced on by design.
 */
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include "emu/mem/guard.h"

#define UNCHECKED	__attribute__((no_sanitize("address", "thread", "undefined")))
/* Called from where a fault lands, so that no local of the caller lives in a register. */
#define OUTLINE		UNCHECKED __attribute__((noinline))

typedef uint64_t copy_u64 __attribute__((may_alias, aligned(1)));
typedef uint32_t copy_u32 __attribute__((may_alias, aligned(1)));
typedef uint16_t copy_u16 __attribute__((may_alias, aligned(1)));
typedef uint64_t copy_v2 __attribute__((vector_size(16), may_alias, aligned(1)));

/* One access of the width, which the compiler may neither merge, split nor turn into a call. */
#define MOVE(type, dst, src) (*(volatile type *)(dst) = *(const volatile type *)(src))

/* Up to 15 bytes, largest words first: an aligned word is stored at once. */
UNCHECKED static inline void copy_tail(uint8_t *dst, const uint8_t *src, size_t bytes)
{
	if (bytes & 8) {
		MOVE(copy_u64, dst, src);
		dst += 8;
		src += 8;
	}
	if (bytes & 4) {
		MOVE(copy_u32, dst, src);
		dst += 4;
		src += 4;
	}
	if (bytes & 2) {
		MOVE(copy_u16, dst, src);
		dst += 2;
		src += 2;
	}
	if (bytes & 1)
		MOVE(uint8_t, dst, src);
}

OUTLINE static void copy_ascending(uint8_t *dst, const uint8_t *src, size_t bytes)
{
	for (; bytes >= 64; bytes -= 64, dst += 64, src += 64) {
		MOVE(copy_v2, dst, src);
		MOVE(copy_v2, dst + 16, src + 16);
		MOVE(copy_v2, dst + 32, src + 32);
		MOVE(copy_v2, dst + 48, src + 48);
	}
	for (; bytes >= 16; bytes -= 16, dst += 16, src += 16)
		MOVE(copy_v2, dst, src);
	copy_tail(dst, src, bytes);
}

UNCHECKED static void copy_descending(uint8_t *dst, const uint8_t *src, size_t bytes)
{
	while (bytes >= 8) {
		bytes -= 8;
		MOVE(copy_u64, dst + bytes, src + bytes);
	}
	while (bytes--)
		MOVE(uint8_t, dst + bytes, src + bytes);
}

/* As memmove(), and ascending unless the overlap forbids it. */
UNCHECKED static inline void copy_move(uint8_t *dst, const uint8_t *src, size_t bytes)
{
	if ((uintptr_t)dst - (uintptr_t)src < bytes)
		copy_descending(dst, src, bytes);
	else
		copy_ascending(dst, src, bytes);
}

static inline void *at(uint64_t addr)
{
	return (void *)(uintptr_t)addr;
}

UNCHECKED int mem_copy_in(void *dst, uint64_t src_addr, size_t bytes)
{
	if (!guard_is_user(src_addr, bytes) || GUARD_ENTER())
		return -EFAULT;
	guard_aim(0, 0, src_addr, bytes);
	copy_ascending(dst, at(src_addr), bytes);
	guard_leave();
	return 0;
}

UNCHECKED int mem_copy_out(uint64_t dst_addr, const void *src, size_t bytes)
{
	if (!guard_is_user(dst_addr, bytes) || GUARD_ENTER())
		return -EFAULT;
	guard_aim(dst_addr, bytes, 0, 0);
	copy_ascending(at(dst_addr), src, bytes);
	guard_leave();
	return 0;
}

UNCHECKED int mem_load32(uint64_t addr, uint32_t *out)
{
	uint32_t value;

	if (!guard_is_user(addr, 4) || addr & 3 || GUARD_ENTER())
		return -EFAULT;
	guard_aim(0, 0, addr, 4);
	value = __atomic_load_n((const uint32_t *)at(addr), __ATOMIC_ACQUIRE);
	guard_leave();
	*out = value;
	return 0;
}

UNCHECKED int mem_store8_release(uint64_t addr, uint8_t value)
{
	if (!guard_is_user(addr, 1) || GUARD_ENTER())
		return -EFAULT;
	guard_aim(addr, 1, 0, 0);
	__atomic_store_n((uint8_t *)at(addr), value, __ATOMIC_RELEASE);
	guard_leave();
	return 0;
}

UNCHECKED int mem_store32_release(uint64_t addr, uint32_t value)
{
	if (!guard_is_user(addr, 4) || addr & 3 || GUARD_ENTER())
		return -EFAULT;
	guard_aim(addr, 4, 0, 0);
	__atomic_store_n((uint32_t *)at(addr), value, __ATOMIC_RELEASE);
	guard_leave();
	return 0;
}

UNCHECKED int mem_compare_swap(uint64_t addr, uint64_t compare, uint64_t swap, uint64_t *old_out)
{
	uint64_t seen = compare;

	if (!guard_is_user(addr, 8))
		return far_compare_swap(addr, 8, compare, swap, old_out);
	if (addr & 7 || GUARD_ENTER())
		return -EFAULT;
	guard_aim(addr, 8, 0, 0);
	__atomic_compare_exchange_n((uint64_t *)at(addr), &seen, swap, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	guard_leave();
	*old_out = seen;
	return 0;
}

static int compare_swap32_far(uint64_t addr, uint32_t compare, uint32_t swap, uint32_t *old_out)
{
	uint64_t old;
	int rc = far_compare_swap(addr, 4, compare, swap, &old);

	if (!rc)
		*old_out = (uint32_t)old;
	return rc;
}

UNCHECKED int mem_compare_swap32(uint64_t addr, uint32_t compare, uint32_t swap, uint32_t *old_out)
{
	uint32_t seen = compare;

	if (!guard_is_user(addr, 4))
		return compare_swap32_far(addr, compare, swap, old_out);
	if (addr & 3 || GUARD_ENTER())
		return -EFAULT;
	guard_aim(addr, 4, 0, 0);
	__atomic_compare_exchange_n((uint32_t *)at(addr), &seen, swap, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	guard_leave();
	*old_out = seen;
	return 0;
}

UNCHECKED int mem_fetch_add(uint64_t addr, uint64_t add, uint64_t *old_out)
{
	uint64_t old;

	if (!guard_is_user(addr, 8))
		return far_fetch_add(addr, add, old_out);
	if (addr & 7 || GUARD_ENTER())
		return -EFAULT;
	guard_aim(addr, 8, 0, 0);
	old = __atomic_fetch_add((uint64_t *)at(addr), add, __ATOMIC_SEQ_CST);
	guard_leave();
	*old_out = old;
	return 0;
}

/* A place in a list of pieces. */
struct cursor {
	const struct iovec *piece, *end;
	size_t offset;
};

static inline void cursor_skip(struct cursor *c, size_t bytes)
{
	c->offset += bytes;
	while (c->piece != c->end && c->offset >= c->piece->iov_len) {
		c->offset -= c->piece->iov_len;
		c->piece++;
	}
}

static inline size_t cursor_room(const struct cursor *c)
{
	assert(c->piece != c->end);
	return c->piece->iov_len - c->offset;
}

static inline size_t min3(size_t a, size_t b, size_t c)
{
	size_t ab = a < b ? a : b;

	return ab < c ? ab : c;
}

UNCHECKED static void zero_ascending(uint8_t *dst, size_t bytes)
{
	for (; bytes >= 8; bytes -= 8, dst += 8)
		*(volatile copy_u64 *)dst = 0;
	while (bytes--)
		*(volatile uint8_t *)dst++ = 0;
}

/* Guarded: one pair of pieces of which at least one is no user's memory. */
OUTLINE static enum mem_side odd_copy(uint8_t *dst, const uint8_t *src, size_t bytes)
{
	bool takes = (uintptr_t)dst >> 62 == MEM_NOWHERE >> 62;
	bool gives = (uintptr_t)src >> 62 == MEM_NOWHERE >> 62;

	if (mem_is_far((uintptr_t)dst) || mem_is_far((uintptr_t)src))
		return far_copy((uintptr_t)dst, (uintptr_t)src, bytes);
	if (!takes && !guard_is_user((uintptr_t)dst, bytes))
		return MEM_SIDE_DST;
	if (!gives && !guard_is_user((uintptr_t)src, bytes))
		return MEM_SIDE_SRC;
	if (takes)
		return MEM_SIDE_NONE;
	guard_aim((uintptr_t)dst, bytes, 0, 0);
	zero_ascending(dst, bytes);
	guard_leave();
	return MEM_SIDE_NONE;
}

/* Guarded: one pair of pieces. */
OUTLINE static enum mem_side pair_copy(uint8_t *dst, const uint8_t *src, size_t bytes)
{
	if (!guard_is_user((uintptr_t)dst, bytes) || !guard_is_user((uintptr_t)src, bytes))
		return odd_copy(dst, src, bytes);
	guard_aim((uintptr_t)dst, bytes, (uintptr_t)src, bytes);
	copy_move(dst, src, bytes);
	guard_leave();
	return MEM_SIDE_NONE;
}

/* Guarded: pair after pair, each as long as the shorter of both pieces. */
OUTLINE static enum mem_side lists_copy(struct cursor *dst, struct cursor *src, size_t bytes)
{
	enum mem_side side = MEM_SIDE_NONE;

	while (bytes && side == MEM_SIDE_NONE) {
		size_t now = min3(bytes, cursor_room(dst), cursor_room(src));

		side = pair_copy((uint8_t *)dst->piece->iov_base + dst->offset,
				 (const uint8_t *)src->piece->iov_base + src->offset, now);
		cursor_skip(dst, now);
		cursor_skip(src, now);
		bytes -= now;
	}
	return side;
}

UNCHECKED static enum mem_side copy_lists(struct cursor to, size_t dst_skip, struct cursor from,
					  size_t src_skip, size_t bytes)
{
	cursor_skip(&to, dst_skip);
	cursor_skip(&from, src_skip);
	if (GUARD_ENTER())
		return guard.side;
	return lists_copy(&to, &from, bytes);
}

UNCHECKED enum mem_side mem_copy_spans(const struct iovec *dst, unsigned dst_count,
				       size_t dst_skip, const struct iovec *src,
				       unsigned src_count, size_t src_skip, size_t bytes)
{
	if (!bytes)
		return MEM_SIDE_NONE;
	if (dst_count != 1 || src_count != 1)
		return copy_lists((struct cursor){ dst, dst + dst_count, 0 }, dst_skip,
				  (struct cursor){ src, src + src_count, 0 }, src_skip, bytes);
	assert(dst_skip + bytes <= dst->iov_len && src_skip + bytes <= src->iov_len);
	if (GUARD_ENTER())
		return guard.side;
	return pair_copy((uint8_t *)dst->iov_base + dst_skip,
			 (const uint8_t *)src->iov_base + src_skip, bytes);
}
