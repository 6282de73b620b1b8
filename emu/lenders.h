/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads of the application that are inside the engine, so that it is not freed under them.
 *
 * A program may close the device in one thread while others still poll (static destructors do).
 * Whoever lends time enters here first and learns which engine there is; whoever takes the
 * engine away waits until all have left.  Entering costs a few stores to the thread's own
 * record: membarrier(2) on the other side makes them count.
 *
 * The engine's address stands in a page that the kernel empties in every forked child, also
 * after a fork that no handler of pthread_atfork() saw: nobody there may run the parent's engine.
 *
 * Threads: entering and leaving any; the others under the lock of emu.c.
 */
#ifndef EMU_LENDERS_H
#define EMU_LENDERS_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct engine;

/* A thread's record. */
struct lender {
	/* Above 1: a signal handler of the application polls too. */
	_Atomic unsigned inside;
	_Atomic bool is_taken;
	struct lender *next;
};

extern __thread struct lender *lender_own __attribute__((tls_model("initial-exec")));
extern struct engine *_Atomic *lenders_address;
extern bool lenders_need_fence;		/* there is no membarrier() */

/* The first time in a thread.  NULL without memory: then it does not lend. */
struct lender *lender_begin(void);

/* Only the thread itself writes here. */
static inline void lender_count(struct lender *l, unsigned by, memory_order order)
{
	unsigned inside = atomic_load_explicit(&l->inside, memory_order_relaxed);

	atomic_store_explicit(&l->inside, inside + by, order);
}

static inline void lender_leave(void)
{
	lender_count(lender_own, -1u, memory_order_release);
}

/* The engine, until lender_leave(); NULL: there is none, and nothing to leave. */
static inline struct engine *lender_enter(void)
{
	struct lender *l = lender_own;
	struct engine *e;

	if (__builtin_expect(!l, 0) && !(l = lender_begin()))
		return NULL;
	lender_count(l, 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(lenders_need_fence, 0))
		atomic_thread_fence(memory_order_seq_cst);
	e = atomic_load_explicit(lenders_address, memory_order_acquire);
	if (__builtin_expect(!e, 0))
		lender_leave();
	return e;
}

/* 0, -ENOMEM, -EAGAIN.  Once before the first lenders_admit(). */
int lenders_init(void);
void lenders_admit(struct engine *e);
/* False in a forked child too. */
bool lenders_are_admitted(void);
/* Nobody enters any more.  False: somebody is inside and does not come out. */
bool lenders_dismiss(void);
/* In a forked child: its threads are gone. */
void lenders_forget(void);
#endif
