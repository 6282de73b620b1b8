/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fault handlers: a fault of a guarded access becomes a return value, any other goes
 * to whoever handled it before.
 *
 * Async-signal-safe from mem_guard_fault() on: nothing here allocates or locks.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include "emu/mem/guard.h"

#define PAGE_MASK	((uintptr_t)4095)

__thread struct guard guard __attribute__((tls_model("initial-exec")));

int (*mem_real_sigaction)(int, const struct sigaction *, struct sigaction *) = sigaction;

static const int guard_signals[] = { SIGSEGV, SIGBUS };
enum { GUARD_SIGNALS = sizeof guard_signals / sizeof *guard_signals };
static struct sigaction guard_previous[GUARD_SIGNALS];
static bool guard_is_installed;

/* Some faults report the page instead of the byte, so whole pages count. */
static bool touches(uintptr_t fault, uintptr_t addr, uintptr_t bytes)
{
	return bytes && (fault | PAGE_MASK) >= addr && (fault & ~PAGE_MASK) < addr + bytes;
}

/* x86 addresses between the halves raise a fault that has no address. */
static bool is_between_halves(uintptr_t addr, uintptr_t bytes)
{
	return bytes && addr + bytes > 1ull << 47;
}

static enum mem_side faulting_side(const siginfo_t *info)
{
	uintptr_t fault = (uintptr_t)info->si_addr;

	if (info->si_code == SI_KERNEL) {
		if (is_between_halves(guard.dst, guard.dst_bytes))
			return MEM_SIDE_DST;
		if (is_between_halves(guard.src, guard.src_bytes))
			return MEM_SIDE_SRC;
	}
	if (touches(fault, guard.dst, guard.dst_bytes))
		return MEM_SIDE_DST;
	if (touches(fault, guard.src, guard.src_bytes))
		return MEM_SIDE_SRC;
	return MEM_SIDE_NONE;
}

void mem_guard_fault(int signal, siginfo_t *info)
{
	enum mem_side side;

	(void)signal;
	if (!guard.is_armed || info->si_code <= 0)	/* sent by kill(): not a fault */
		return;
	side = faulting_side(info);
	if (side == MEM_SIDE_NONE)
		return;
	guard.is_armed = false;
	guard.side = side;
	siglongjmp(guard.env, 1);
}

static void die_as_before(int number, const siginfo_t *info)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };

	mem_real_sigaction(number, &dfl, NULL);
	if (info->si_code <= 0)
		raise(number);
	/* A real fault repeats when we return, and then kills with the right core. */
}

static void guard_handler(int number, siginfo_t *info, void *context)
{
	const struct sigaction *previous = &guard_previous[number == guard_signals[1]];

	mem_guard_fault(number, info);
	if (previous->sa_flags & SA_SIGINFO)
		previous->sa_sigaction(number, info, context);
	else if (previous->sa_handler == SIG_DFL)
		die_as_before(number, info);
	else if (previous->sa_handler != SIG_IGN)
		previous->sa_handler(number);
	else if (info->si_code > 0)
		die_as_before(number, info);	/* a fault can't be ignored */
}

int mem_guard_init(void)
{
	struct sigaction action = {
		.sa_sigaction = guard_handler,
		.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK,
	};

	if (guard_is_installed)
		return 0;
	sigemptyset(&action.sa_mask);
	for (int i = 0; i < GUARD_SIGNALS; i++)
		if (mem_real_sigaction(guard_signals[i], &action, &guard_previous[i]))
			return -errno;
	guard_is_installed = true;
	return 0;
}
