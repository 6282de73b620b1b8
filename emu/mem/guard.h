/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The guard around an access to the application's memory; private to emu/mem.
 *
 * A guarded stretch names the bytes it is about to touch, so that a fault anywhere
 * else (in a signal handler of the application that interrupts us, say) is never
 * taken for ours.
 *
 *	if (GUARD_ENTER())
 *		return -EFAULT;		(the fault landed here; guard.side tells which side)
 *	guard_aim(dst, dst_bytes, src, src_bytes);
 *	... touch them ...
 *	guard_leave();
 *
 * Nothing between enter and leave may return, call out, or change a local variable that
 * is used after a fault.
 */
#ifndef EMU_MEM_GUARD_H
#define EMU_MEM_GUARD_H
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include "emu/mem/mem.h"

struct guard {
	volatile bool is_armed;
	volatile enum mem_side side;		/* of the last fault */
	uintptr_t dst, dst_bytes, src, src_bytes;
	sigjmp_buf env;
};

/* The handler reads it, so it must be there without a call: the library is loaded at start. */
extern __thread struct guard guard __attribute__((tls_model("initial-exec")));

/* User addresses end far below; what is above faults without saying where. */
#define GUARD_ADDR_END	(1ull << 56)

/* The handler runs with SA_NODEFER, so no mask needs saving; but the thread sanitizer blocks
 * every signal around a handler and would leave them blocked. */
#ifdef __SANITIZE_THREAD__
#define GUARD_SAVES_MASK 1
#else
#define GUARD_SAVES_MASK 0
#endif
#define GUARD_ENTER()	(sigsetjmp(guard.env, GUARD_SAVES_MASK))

/* Keeps the compiler from moving accesses out of the guarded stretch. */
static inline void guard_fence(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void guard_aim(uint64_t dst, size_t dst_bytes, uint64_t src, size_t src_bytes)
{
	guard.dst = dst;
	guard.dst_bytes = dst_bytes;
	guard.src = src;
	guard.src_bytes = src_bytes;
	guard_fence();
	guard.is_armed = true;
	guard_fence();
}

static inline void guard_leave(void)
{
	guard_fence();
	guard.is_armed = false;
}

/* far.c: what leads to other processes. */
enum mem_side far_copy(uint64_t to, uint64_t from, size_t bytes);
int far_compare_swap(uint64_t addr, unsigned bytes, uint64_t compare, uint64_t swap,
		     uint64_t *old_out);
int far_fetch_add(uint64_t addr, uint64_t add, uint64_t *old_out);

/* Could the application have memory there at all?  No bytes are anywhere. */
static inline bool guard_is_user(uint64_t addr, size_t bytes)
{
	return !bytes || (addr < GUARD_ADDR_END && bytes <= GUARD_ADDR_END - addr);
}
#endif
