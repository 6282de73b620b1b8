/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wake protocol; wake.h argues that it loses nothing.
 */
#include "emu/wire/wake.h"
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void futex_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void futex_wait(_Atomic uint32_t *word, uint32_t seen, uint64_t timeout_ns)
{
	struct timespec t = {
		.tv_sec = (time_t)(timeout_ns / 1000000000u),
		.tv_nsec = (long)(timeout_ns % 1000000000u),
	};

	/* Whatever ends it, the caller looks again: EAGAIN, EINTR and ETIMEDOUT are the same. */
	syscall(SYS_futex, word, FUTEX_WAIT, seen, timeout_ns == UINT64_MAX ? NULL : &t, NULL, 0);
}

static void rouse(struct wake_mail *mail)
{
	atomic_fetch_add(&mail->count, 1);
	futex_wake(&mail->count);
}

void wake_peer(struct wake_mail *mail)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&mail->wants_wake, memory_order_relaxed) &&
	    atomic_exchange(&mail->wants_wake, 0))
		rouse(mail);
}

void wake_listen(struct wake *w, bool wants_wake, wake_look_fn *look, void *ctx)
{
	atomic_store(&w->is_listening, wants_wake);
	atomic_store(&w->mail->wants_wake, wants_wake);
	atomic_thread_fence(memory_order_seq_cst);
	/* Another thread may sleep already, and this packet's sender did not see the wish. */
	if (wants_wake && atomic_load(&w->is_waiting) && look(ctx))
		wake_kick(w);
}

void wake_wait(struct wake *w, uint64_t timeout_ns, wake_look_fn *look, void *ctx)
{
	uint32_t seen;

	atomic_store(&w->is_waiting, true);
	seen = atomic_load(&w->mail->count);
	/* Again: a packet that somebody else has received since may have used up the wish. */
	if (atomic_load(&w->is_listening))
		atomic_store(&w->mail->wants_wake, 1);
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load(&w->is_kicked) && !look(ctx))
		futex_wait(&w->mail->count, seen, timeout_ns);
	atomic_store(&w->is_waiting, false);
	atomic_store(&w->is_kicked, false);
}

void wake_kick(struct wake *w)
{
	atomic_store(&w->is_kicked, true);
	if (atomic_load(&w->is_waiting))
		rouse(w->mail);
}
