/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Touching the application's memory without dying of it.
 *
 * Queues, doorbell records and registered memory belong to the application,
 * which may have unmapped them.  Every access of the emulator to an address
 * that an application gave goes through these functions; where the memory is
 * gone they return -EFAULT instead of raising SIGSEGV or SIGBUS.
 *
 * Threads: any.  mem_guard_init() once before the first use.
 */
#ifndef EMU_MEM_MEM_H
#define EMU_MEM_MEM_H
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* The C library's sigaction().  The preload shim, which defines a sigaction() of its own,
 * sets this before mem_guard_init(). */
extern int (*mem_real_sigaction)(int, const struct sigaction *, struct sigaction *);

/* Install the fault handlers.  0 or -errno.  Other handlers are called after ours. */
int mem_guard_init(void);

/*
 * True if the fault was ours: the handler then does not return.  For the
 * preload shim, which keeps the application's own handlers behind ours.
 */
void mem_guard_fault(int signal, siginfo_t *info);

/*
 * For those who do not stand before sigaction(): if a handler of the application's has replaced
 * ours it becomes the next one behind ours again.  Two system calls.  Callers are serialised.
 */
void mem_guard_renew(void);

/* A fault that was not ours: what @action makes of it, as if the kernel had looked there.  The
 * caller resets what has SA_RESETHAND. */
void mem_guard_pass_on(const struct sigaction *action, int number, siginfo_t *info, void *context);

int mem_copy_in(void *dst, uint64_t src_addr, size_t bytes);
int mem_copy_out(uint64_t dst_addr, const void *src, size_t bytes);
int mem_load32(uint64_t addr, uint32_t *out);		/* one aligned load, acquire; raw bytes  */
int mem_store8_release(uint64_t addr, uint8_t value);
int mem_store32_release(uint64_t addr, uint32_t value);	/* aligned; raw bytes */

/* Can @bytes at @addr be read (and written, if @writes)?  Changes no byte. */
int mem_probe(uint64_t addr, size_t bytes, int writes);

/* An address in a list of pieces that is no memory: zeros are read there, and what is written is
 * gone.  Addresses of an application are never that high. */
#define MEM_NOWHERE	(UINT64_C(1) << 62)

/*
 * An address in a list of pieces, or of an atomic, that is memory of another process; what the
 * other bits mean is the provider's business, but for the lowest 48, which count bytes.
 */
#define MEM_FAR		(UINT64_C(1) << 63)
#define MEM_FAR_BITS	48

static inline bool mem_is_far(uint64_t addr)
{
	return addr >> 62 == MEM_FAR >> 62;
}

/* 0 or -EFAULT: one of the sides can't be accessed. */
struct mem_far_ops {
	int (*read)(uint64_t addr, void *to, size_t bytes);
	int (*write)(uint64_t addr, const void *from, size_t bytes);
	int (*compare_swap)(uint64_t addr, unsigned bytes, uint64_t compare, uint64_t swap,
			    uint64_t *old_out);
};
extern const struct mem_far_ops *mem_far;	/* NULL: nobody provides it */

/* Which side of a copy faulted. */
enum mem_side { MEM_SIDE_NONE, MEM_SIDE_SRC, MEM_SIDE_DST };

/*
 * Copy @bytes from @src (from @src_skip on) to @dst (from @dst_skip on).  Both lists
 * hold enough.  Lower addresses of a piece are written no later than higher ones.
 * Overlap is allowed within what memmove allows for one pair of pieces.
 */
enum mem_side mem_copy_spans(const struct iovec *dst, unsigned dst_count, size_t dst_skip,
			     const struct iovec *src, unsigned src_count, size_t src_skip,
			     size_t bytes);

/* Atomics in host order, of 8 bytes where the name does not say; *old_out is what was there.
 * -EFAULT also if not aligned. */
int mem_compare_swap(uint64_t addr, uint64_t compare, uint64_t swap, uint64_t *old_out);
int mem_compare_swap32(uint64_t addr, uint32_t compare, uint32_t swap, uint32_t *old_out);
int mem_fetch_add(uint64_t addr, uint64_t add, uint64_t *old_out);
#endif
