/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wake protocol; wake.h argues that it loses nothing.
 */
#include "emu/wire/wake.h"
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* How many were woken. */
static long futex_wake(_Atomic uint32_t *word, enum wake_bit bit)
{
	return syscall(SYS_futex, word, FUTEX_WAKE_BITSET, 1, NULL, NULL, bit);
}

/* Until @until, or for ever. */
static long futex_wait(_Atomic uint32_t *word, uint32_t seen, const struct timespec *until,
		       enum wake_bit bit)
{
	return syscall(SYS_futex, word, FUTEX_WAIT_BITSET, seen, until, NULL, bit);
}

static void rouse(struct wake_mail *mail, enum wake_bit bit)
{
	atomic_fetch_add(&mail->count, 1);
	if (!futex_wake(&mail->count, bit) && bit != WAKE_NIC)
		futex_wake(&mail->count, WAKE_NIC);
}

void wake_peer(struct wake_mail *mail)
{
	uint32_t wish;

	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&mail->wants_wake, memory_order_relaxed))
		return;
	wish = atomic_exchange(&mail->wants_wake, 0);
	if (wish)
		rouse(mail, wish == WAKE_DOZER ? WAKE_DOZER : WAKE_NIC);
}

static void wish(struct wake *w)
{
	atomic_store(&w->mail->wants_wake, atomic_load(&w->is_dozing) ? WAKE_DOZER : WAKE_NIC);
}

void wake_listen(struct wake *w, bool wants_wake, wake_look_fn *look, void *ctx)
{
	atomic_store(&w->is_listening, wants_wake);
	if (wants_wake)
		wish(w);
	else
		atomic_store(&w->mail->wants_wake, 0);
	atomic_thread_fence(memory_order_seq_cst);
	/* Another thread may sleep already, and this packet's sender did not see the wish. */
	if (wants_wake && atomic_load(&w->is_waiting) && look(ctx))
		wake_kick(w);
}

static struct timespec in_ns(uint64_t ns)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	ns += (uint64_t)t.tv_nsec;
	t.tv_sec += (time_t)(ns / 1000000000u);
	t.tv_nsec = (long)(ns % 1000000000u);
	return t;
}

void wake_wait(struct wake *w, uint64_t timeout_ns, wake_look_fn *look, void *ctx)
{
	bool is_endless = timeout_ns > UINT64_MAX / 2;
	struct timespec until = in_ns(is_endless ? 0 : timeout_ns);
	uint32_t seen;

	atomic_store(&w->is_waiting, true);
	seen = atomic_load(&w->mail->count);
	/* Again: a packet that somebody else has received since may have used up the wish. */
	if (atomic_load(&w->is_listening))
		wish(w);
	atomic_thread_fence(memory_order_seq_cst);
	/* Whatever ends it, the caller looks again: EAGAIN, EINTR and ETIMEDOUT are the same. */
	if (!atomic_load(&w->is_kicked) && !look(ctx))
		futex_wait(&w->mail->count, seen, is_endless ? NULL : &until, WAKE_NIC);
	atomic_store(&w->is_waiting, false);
	atomic_store(&w->is_kicked, false);
}

void wake_kick(struct wake *w)
{
	atomic_store(&w->is_kicked, true);
	if (atomic_load(&w->is_waiting))
		rouse(w->mail, WAKE_NIC);
}

/* As the C library does it for read(): nothing is changed between the two calls. */
static int sleep_cancellable(struct wake *w, uint32_t seen)
{
	int type, error;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	error = futex_wait(&w->mail->count, seen, NULL, WAKE_DOZER) ? errno : 0;
	pthread_setcanceltype(type, &type);
	return error == EINTR ? -EINTR : 0;
}

int wake_doze(struct wake *w, wake_look_fn *look, void *ctx)
{
	uint32_t seen;

	atomic_store(&w->is_dozing, true);
	seen = atomic_load(&w->mail->count);
	if (atomic_load(&w->is_listening))
		wish(w);
	atomic_thread_fence(memory_order_seq_cst);
	return look(ctx) ? 0 : sleep_cancellable(w, seen);
}

void wake_doze_end(struct wake *w, wake_look_fn *look, void *ctx)
{
	atomic_store(&w->is_dozing, false);
	if (atomic_load(&w->is_listening))
		wish(w);
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load(&w->is_waiting) && look(ctx))
		wake_kick(w);
}

void wake_rouse(struct wake *w)
{
	atomic_fetch_add(&w->mail->count, 1);
	futex_wake(&w->mail->count, WAKE_DOZER);
}
