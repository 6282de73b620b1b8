/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fault handlers: a fault of a guarded access becomes a return value, any other goes
 * to whoever handled it before, or has wanted to since.
 *
 * Async-signal-safe from mem_guard_fault() on: nothing here allocates or locks.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include "emu/mem/guard.h"

#define PAGE_MASK	((uintptr_t)4095)

__thread struct guard guard __attribute__((tls_model("initial-exec")));

int (*mem_real_sigaction)(int, const struct sigaction *, struct sigaction *) = sigaction;

static const int guard_signals[] = { SIGSEGV, SIGBUS };
enum { GUARD_SIGNALS = sizeof guard_signals / sizeof *guard_signals };
static bool guard_is_installed;

/*
 * What was there before us, by level.  An application that puts its handler over ours gets one of
 * ours over its own, of the next level.  It may call the one that it found, or put it back: each
 * level knows what is below it, so neither goes round in circles.  When the levels are used up the
 * last one serves again.
 */
enum { LEVELS = 8 };
static struct below {
	struct sigaction action[LEVELS];
	unsigned level;			/* that is installed */
} guard_below[GUARD_SIGNALS];

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

/* As the kernel does it when nobody handles the signal. */
static void die_by_default(int number, const siginfo_t *info)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };

	mem_real_sigaction(number, &dfl, NULL);
	if (info->si_code <= 0)
		raise(number);
	/* A fault repeats when the handler returns, and then kills at the right place. */
}

static void call_handler(const struct sigaction *action, int number, siginfo_t *info,
			 void *context)
{
	sigset_t mask = action->sa_mask;

	if (!(action->sa_flags & SA_NODEFER))
		sigaddset(&mask, number);
	pthread_sigmask(SIG_BLOCK, &mask, NULL);	/* undone by the kernel on return */
	if (action->sa_flags & SA_SIGINFO)
		action->sa_sigaction(number, info, context);
	else
		action->sa_handler(number);
}

void mem_guard_pass_on(const struct sigaction *action, int number, siginfo_t *info, void *context)
{
	/* With SA_SIGINFO, too: the kernel looks at the handler first. */
	if (action->sa_handler == SIG_IGN && info->si_code <= 0)
		return;
	if (action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN)
		die_by_default(number, info);	/* a real fault cannot be ignored */
	else
		call_handler(action, number, info, context);
}

static void guard_handle(unsigned level, int number, siginfo_t *info, void *context)
{
	struct sigaction *below = &guard_below[number == guard_signals[1]].action[level];
	struct sigaction action = *below, dfl = { .sa_handler = SIG_DFL };
	int saved = errno;

	mem_guard_fault(number, info);	/* does not return if the fault was ours */
	if (action.sa_flags & SA_RESETHAND)
		*below = dfl;
	mem_guard_pass_on(&action, number, info, context);
	errno = saved;
}

/* One for each level, since the kernel does not tell a handler which one it is. */
#define HANDLER int number, siginfo_t *info, void *context
static void guard_handler_0(HANDLER) { guard_handle(0, number, info, context); }
static void guard_handler_1(HANDLER) { guard_handle(1, number, info, context); }
static void guard_handler_2(HANDLER) { guard_handle(2, number, info, context); }
static void guard_handler_3(HANDLER) { guard_handle(3, number, info, context); }
static void guard_handler_4(HANDLER) { guard_handle(4, number, info, context); }
static void guard_handler_5(HANDLER) { guard_handle(5, number, info, context); }
static void guard_handler_6(HANDLER) { guard_handle(6, number, info, context); }
static void guard_handler_7(HANDLER) { guard_handle(7, number, info, context); }

static void (*const guard_handlers[LEVELS])(HANDLER) = {
	guard_handler_0, guard_handler_1, guard_handler_2, guard_handler_3,
	guard_handler_4, guard_handler_5, guard_handler_6, guard_handler_7,
};

static int install(int number, unsigned level, struct sigaction *before)
{
	struct sigaction action = {
		.sa_sigaction = guard_handlers[level],
		.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK,
	};

	sigemptyset(&action.sa_mask);
	return mem_real_sigaction(number, &action, before) ? -errno : 0;
}

int mem_guard_init(void)
{
	int error = 0;

	if (guard_is_installed)
		return 0;
	for (unsigned i = 0; i < GUARD_SIGNALS && !error; i++)
		error = install(guard_signals[i], 0, &guard_below[i].action[0]);
	guard_is_installed = !error;
	return error;
}

/* LEVELS: it is none of ours. */
static unsigned level_of(const struct sigaction *action)
{
	unsigned level = 0;

	if (!(action->sa_flags & SA_SIGINFO))
		return LEVELS;
	while (level < LEVELS && action->sa_sigaction != guard_handlers[level])
		level++;
	return level;
}

static void renew(int number, struct below *below)
{
	struct sigaction now, before;
	unsigned level;

	if (mem_real_sigaction(number, NULL, &now))
		return;
	level = level_of(&now);
	if (level < LEVELS) {
		below->level = level;
		return;
	}
	level = below->level + 1 < LEVELS ? below->level + 1 : LEVELS - 1;
	below->action[level] = now;
	if (install(number, level, &before))
		return;
	if (level_of(&before) == LEVELS)
		below->action[level] = before;	/* the application was quicker */
	below->level = level;
}

void mem_guard_renew(void)
{
	for (unsigned i = 0; guard_is_installed && i < GUARD_SIGNALS; i++)
		renew(guard_signals[i], &guard_below[i]);
}
