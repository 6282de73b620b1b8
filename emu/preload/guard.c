/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIGSEGV and SIGBUS: the emulator looks first, then whatever the application wants.
 *
 * Once the device is open, the kernel knows only our handler for the two signals; what the
 * application installs is kept here, given back when it asks, and called when a fault is
 * not the emulator's.  Other signals are not touched.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include "emu/mem/mem.h"
#include "emu/preload/real.h"
#include "emu/preload/shim.h"

/* What the application asked for.  A handler reads while sigaction() writes, so a change goes
 * to the other copy and is then made the current one. */
struct wish {
	struct sigaction copy[2];
	unsigned current;
};

static struct wish wishes[2];		/* SIGSEGV, SIGBUS */
static bool guard_is_on;
static int guard_lock;

static bool is_guarded(int number)
{
	return number == SIGSEGV || number == SIGBUS;
}

static struct wish *wish_of(int number)
{
	return &wishes[number == SIGBUS];
}

static struct sigaction wish_read(const struct wish *w)
{
	return w->copy[__atomic_load_n(&w->current, __ATOMIC_ACQUIRE)];
}

static void wish_write(struct wish *w, const struct sigaction *action)
{
	unsigned next = !w->current;

	w->copy[next] = *action;
	__atomic_store_n(&w->current, next, __ATOMIC_RELEASE);
}

/* sigaction() may be called in a signal handler: no signal may find the lock taken by its own
 * thread. */
static void lock_blocked(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, before);
	while (__atomic_exchange_n(&guard_lock, 1, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void unlock_unblock(const sigset_t *before)
{
	__atomic_store_n(&guard_lock, 0, __ATOMIC_RELEASE);
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

static void pass_on(int number, siginfo_t *info, void *context)
{
	struct wish *w = wish_of(number);
	struct sigaction action = wish_read(w), dfl = { .sa_handler = SIG_DFL };

	if (action.sa_flags & SA_RESETHAND)
		wish_write(w, &dfl);
	mem_guard_pass_on(&action, number, info, context);
}

static void guard_handler(int number, siginfo_t *info, void *context)
{
	int saved = errno;

	mem_guard_fault(number, info);	/* does not return if the fault was the emulator's */
	pass_on(number, info, context);
	errno = saved;
}

/* SA_ONSTACK for handlers that want it; without an alternate stack it changes nothing.  The
 * emulator leaves by a jump, so the signal must not stay blocked: SA_NODEFER. */
static int install(int number)
{
	struct sigaction wanted = wish_read(wish_of(number));
	struct sigaction action = {
		.sa_sigaction = guard_handler,
		.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | (wanted.sa_flags & SA_RESTART),
	};

	sigemptyset(&action.sa_mask);
	return real()->sigaction(number, &action, NULL);
}

void guard_prepare(void)
{
	sigset_t before;

	lock_blocked(&before);
	if (!guard_is_on) {
		mem_real_sigaction = real()->sigaction;
		real()->sigaction(SIGSEGV, NULL, &wish_of(SIGSEGV)->copy[0]);
		real()->sigaction(SIGBUS, NULL, &wish_of(SIGBUS)->copy[0]);
	}
	unlock_unblock(&before);
}

int guard_take(void)
{
	sigset_t before;
	int error = 0;

	lock_blocked(&before);
	if (!guard_is_on) {
		if (install(SIGSEGV) || install(SIGBUS))
			error = -errno;
		__atomic_store_n(&guard_is_on, !error, __ATOMIC_RELEASE);
	}
	unlock_unblock(&before);
	return error;
}

SHIM_EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
	struct sigaction wanted, was;
	struct wish *w = wish_of(number);
	sigset_t before;
	int result = 0;

	if (!is_guarded(number) || !__atomic_load_n(&guard_is_on, __ATOMIC_ACQUIRE))
		return real()->sigaction(number, action, old);
	if (action)
		wanted = *action;
	lock_blocked(&before);
	was = wish_read(w);
	if (action) {
		wish_write(w, &wanted);
		result = install(number);
	}
	unlock_unblock(&before);
	if (old)
		*old = was;
	return result;
}

SHIM_EXPORT sighandler_t signal(int number, sighandler_t handler)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART }, old;

	if (!is_guarded(number))
		return real()->signal(number, handler);
	sigemptyset(&action.sa_mask);
	sigaddset(&action.sa_mask, number);
	return sigaction(number, &action, &old) ? SIG_ERR : old.sa_handler;
}
