/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIGSEGV and SIGBUS belong to the application and to the emulator: the kernel knows the shim's
 * handler, the application sees its own, and its faults arrive there.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include "shim_world.h"

static sigjmp_buf back;
static volatile sig_atomic_t seen_signal, seen_usr1_blocked, seen_segv_blocked;
static void *volatile seen_address;
static char *unreadable;

static void begin(void)
{
	unreadable = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(unreadable, MAP_FAILED);
}

static void open_device(void)
{
	cr_assert_geq(SHIM(open)("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC), 0);
}

TestSuite(preload_signal, .init = begin);

static void on_fault(int number, siginfo_t *info, void *context)
{
	sigset_t blocked;

	(void)context;
	seen_signal = number;
	seen_address = info->si_addr;
	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	seen_usr1_blocked = sigismember(&blocked, SIGUSR1);
	seen_segv_blocked = sigismember(&blocked, number);
	siglongjmp(back, 1);
}

static void on_signal(int number)
{
	seen_signal = number;
}

static void fault(void)
{
	*(volatile char *)unreadable = 1;
}

static void handle_faults(int flags)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | flags };

	sigemptyset(&action.sa_mask);
	sigaddset(&action.sa_mask, SIGUSR1);
	cr_assert_eq(SHIM(sigaction)(SIGSEGV, &action, NULL), 0);
}

static void expect_fault_arrives(void)
{
	seen_signal = 0;
	seen_address = NULL;
	if (!sigsetjmp(back, 1))
		fault();
	cr_expect_eq(seen_signal, SIGSEGV);
	cr_expect_eq(seen_address, unreadable);
}

Test(preload_signal, a_handler_installed_before_the_device_is_chained)
{
	handle_faults(0);
	open_device();
	expect_fault_arrives();
	expect_fault_arrives();
	cr_expect(seen_usr1_blocked);
	cr_expect(seen_segv_blocked);
}

Test(preload_signal, a_handler_installed_after_the_device_is_chained)
{
	struct sigaction kernel;

	open_device();
	handle_faults(SA_NODEFER);
	cr_assert_eq(sigaction(SIGSEGV, NULL, &kernel), 0);
	cr_expect_neq((void *)kernel.sa_sigaction, (void *)on_fault, "the guard must be in front");
	expect_fault_arrives();
	cr_expect(seen_usr1_blocked);
	cr_expect_not(seen_segv_blocked);
}

Test(preload_signal, the_application_is_told_its_own_handler)
{
	struct sigaction seen;

	open_device();
	handle_faults(SA_RESTART);
	cr_assert_eq(SHIM(sigaction)(SIGSEGV, NULL, &seen), 0);
	cr_expect_eq((void *)seen.sa_sigaction, (void *)on_fault);
	cr_expect_eq(seen.sa_flags & (SA_SIGINFO | SA_RESTART | SA_NODEFER | SA_ONSTACK),
		     SA_SIGINFO | SA_RESTART);
	cr_expect(sigismember(&seen.sa_mask, SIGUSR1));
	cr_expect_eq((void *)SHIM(signal)(SIGSEGV, SIG_DFL), (void *)on_fault);
	cr_assert_eq(SHIM(sigaction)(SIGSEGV, NULL, &seen), 0);
	cr_expect_eq((void *)seen.sa_handler, (void *)SIG_DFL);
}

Test(preload_signal, signal_installs_a_plain_handler)
{
	open_device();
	cr_expect_neq((void *)SHIM(signal)(SIGBUS, on_signal), (void *)SIG_ERR);
	raise(SIGBUS);
	cr_expect_eq(seen_signal, SIGBUS);
}

Test(preload_signal, other_signals_go_straight_to_the_kernel)
{
	struct sigaction kernel;

	open_device();
	SHIM(signal)(SIGUSR2, on_signal);
	cr_assert_eq(sigaction(SIGUSR2, NULL, &kernel), 0);
	cr_expect_eq((void *)kernel.sa_handler, (void *)on_signal);
	cr_expect_eq(SHIM(sigaction)(SIGKILL, &kernel, NULL), -1);
	cr_expect_eq(errno, EINVAL);
	cr_expect_eq(SHIM(sigaction)(-1, &kernel, NULL), -1);
	cr_expect_eq(errno, EINVAL);
}

static void fault_by_default(void)
{
	open_device();
	SHIM(signal)(SIGSEGV, SIG_DFL);
	fault();
}

static void fault_ignored(void)
{
	open_device();
	SHIM(signal)(SIGSEGV, SIG_IGN);
	fault();
}

static void raise_by_default(void)
{
	open_device();
	SHIM(signal)(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
}

static void raise_ignored(void)
{
	open_device();
	SHIM(signal)(SIGSEGV, SIG_IGN);
	raise(SIGSEGV);
}

static void fault_twice_with_one_shot(void)
{
	open_device();
	handle_faults(SA_RESETHAND);
	if (!sigsetjmp(back, 1))
		fault();
	if (seen_signal != SIGSEGV)
		_exit(1);
	fault();
}

Test(preload_signal, what_kills_kills_as_without_the_shim)
{
	static const struct { const char *name; void (*body)(void); int signal; } row[] = {
		{ "default", fault_by_default, SIGSEGV },
		{ "ignored fault", fault_ignored, SIGSEGV },
		{ "raised", raise_by_default, SIGSEGV },
		{ "raised and ignored", raise_ignored, 0 },
		{ "one shot", fault_twice_with_one_shot, SIGSEGV },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		int status = status_of_child(row[i].body);

		cr_expect_eq(WIFSIGNALED(status) ? WTERMSIG(status) : 0, row[i].signal, "%s: %x",
			     row[i].name, (unsigned)status);
	}
}
