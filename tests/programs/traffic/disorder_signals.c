/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cases of `disorder`: signals.  The program's handlers, faults and timers stay its own, and
 * whatever they interrupt goes on.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include "disorder.h"

static void nap_us(long us)
{
	struct timespec t = { .tv_nsec = us * 1000 };

	nanosleep(&t, NULL);
}

static void handle(int number, void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

	if (sigaction(number, &action, NULL))
		wrong("sigaction: %s", strerror(errno));
}

/* Not allowed, and done everywhere. */
static void exit_in_handler(int number)
{
	(void)number;
	exit(0);
}

static void case_exit_in_handler(void)
{
	struct world w;

	handle(SIGTERM, exit_in_handler, 0);
	world_open(&w, true);
	world_run(&w, 50);
	puts("running");
	fflush(stdout);
	for (;;)
		world_run(&w, 50);
}

/* Faults of the program */

static bool is_own_lane(void)
{
	const char *lane = getenv("VERBENA_LANE");

	return lane && !strcmp(lane, "own");
}

static __thread sigjmp_buf fault_jump;
static __thread void *volatile fault_at;

static void fault_handler(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	fault_at = info->si_addr;
	siglongjmp(fault_jump, 1);
}

/* True if touching it faults there. */
static bool faults(volatile char *at)
{
	fault_at = NULL;
	if (!sigsetjmp(fault_jump, 1))
		return *at == 1 && false;
	return fault_at == at;
}

/* A page that may not be read, and one behind the end of a file. */
static void fault_pages(char *page[2])
{
	int fd = memfd_create("short", MFD_CLOEXEC);

	page[0] = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	page[1] = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	if (page[0] == MAP_FAILED || page[1] == MAP_FAILED)
		wrong("mmap: %s", strerror(errno));
	close(fd);
}

static void *fault_thread(void *must_stop)
{
	char *page[2];

	fault_pages(page);
	for (unsigned i = 0; !__atomic_load_n((bool *)must_stop, __ATOMIC_RELAXED); i++) {
		if (!faults(page[i % 2] + i % 4096))
			wrong("a fault of the program did not reach its handler");
		nap_us(50);
	}
	return NULL;
}

static void case_own_faults(void)
{
	struct sigaction action = { .sa_sigaction = fault_handler, .sa_flags = SA_SIGINFO }, old;
	bool must_stop = false;
	pthread_t thread;
	char *page[2];
	struct world w;

	if (sigaction(SIGSEGV, &action, NULL))
		wrong("sigaction: %s", strerror(errno));
	world_open(&w, true);
	if (sigaction(SIGBUS, &action, NULL) || sigaction(SIGSEGV, NULL, &old))
		wrong("sigaction: %s", strerror(errno));
	/* Where our library has the device inside, nobody stands before sigaction(). */
	if (old.sa_sigaction != fault_handler && !is_own_lane())
		wrong("sigaction() does not know the program's handler any more");
	fault_pages(page);
	if (pthread_create(&thread, NULL, fault_thread, &must_stop))
		wrong("pthread_create");
	for (int i = 0; i < 100; i++) {
		world_run(&w, 10);
		if (!faults(page[i % 2]))
			wrong("a fault of the program did not reach its handler");
	}
	__atomic_store_n(&must_stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	world_close(&w);
}

/* Handlers that come later */

static __thread unsigned probes;

static void probe_handler(int number, siginfo_t *info, void *context)
{
	probes++;
	fault_handler(number, info, context);
}

static void handle_fault(void (*handler)(int, siginfo_t *, void *), struct sigaction *old)
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };

	if (sigaction(SIGBUS, &action, NULL) || sigaction(SIGSEGV, &action, old))
		wrong("sigaction: %s", strerror(errno));
}

/* A fault of the device in a verb is the device's, and one of the program's is the program's. */
static void check_both(struct world *w, char *bad_page)
{
	unsigned before = probes;

	if (ibv_reg_mr(w->node.pd, bad_page, 4096, 0) || errno != EFAULT)
		wrong("ibv_reg_mr of nothing: %s", strerror(errno));
	if (probes != before)
		wrong("a fault of the device reached the program");
	if (!faults(bad_page))
		wrong("a fault of the program did not reach its handler");
}

/* The same in the data path, which costs the QP. */
static void check_send(struct world *w)
{
	char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = ibv_reg_mr(w->node.pd, page, 4096, 0);
	struct ibv_sge sge = { (uintptr_t)page, 64, mr ? mr->lkey : 0 };
	struct ibv_send_wr *bad, wr = {
		.wr_id = ~0ull, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_wc wc = { 0 };

	if (!mr || munmap(page, 4096) || ibv_post_send(w->link[0].qp, &wr, &bad))
		wrong("ibv_reg_mr or ibv_post_send: %s", strerror(errno));
	while (wc.wr_id != wr.wr_id)
		if (ibv_poll_cq(w->node.cq, 1, &wc) < 0)
			wrong("ibv_poll_cq");
	if (wc.status != IBV_WC_LOC_PROT_ERR)
		wrong("a send from nothing: %s", ibv_wc_status_str(wc.status));
}

/* One after the device was opened, another for a while, and as often as a library may do it. */
static void case_late_handlers(void)
{
	struct sigaction old;
	char *page[2];
	struct world w;

	world_open(&w, false);
	world_run(&w, 50);
	fault_pages(page);
	handle_fault(fault_handler, &old);
	check_both(&w, page[0]);
	for (int i = 0; i < 20; i++) {
		handle_fault(probe_handler, &old);
		check_both(&w, page[0]);
		if (probes != (unsigned)i + 1)
			wrong("a fault did not reach the handler of the time");
		if (sigaction(SIGSEGV, &old, NULL))
			wrong("sigaction: %s", strerror(errno));
		check_both(&w, page[0]);
	}
	for (int i = 0; i < 20; i++) {
		handle_fault(fault_handler, &old);
		check_both(&w, page[i % 2 ? 0 : 1]);
	}
	if (probes != 20)
		wrong("a handler that was put away was called");
	world_run(&w, 50);
	check_send(&w);
}

/* Storms */

static volatile sig_atomic_t signals_seen;

static void count_signal(int number)
{
	(void)number;
	signals_seen++;
}

struct storm {
	pthread_t target;
	bool must_stop;
};

static void *storm_thread(void *arg)
{
	struct storm *storm = arg;

	while (!__atomic_load_n(&storm->must_stop, __ATOMIC_RELAXED)) {
		pthread_kill(storm->target, SIGUSR1);
		nap_us(200);
	}
	return NULL;
}

/* Sleeping for events, polling, opening and closing, all interrupted. */
static void storm_work(void)
{
	struct world w;

	for (int i = 0; i < 4; i++) {
		world_open(&w, false);
		for (int k = 0; k < 100; k++) {
			world_run(&w, 5);
			node_wait(&w.node, 1);
		}
		world_close(&w);
	}
}

static void case_storm(void)
{
	struct itimerval every = { { 0, 500 }, { 0, 500 } }, never = { 0 };
	struct storm storm = { .target = pthread_self() };
	pthread_t thread;
	int seen;

	handle(SIGUSR1, count_signal, 0);
	handle(SIGALRM, count_signal, 0);
	if (pthread_create(&thread, NULL, storm_thread, &storm))
		wrong("pthread_create");
	setitimer(ITIMER_REAL, &every, NULL);
	storm_work();
	setitimer(ITIMER_REAL, &never, NULL);
	__atomic_store_n(&storm.must_stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	seen = signals_seen;
	if (seen < 10)
		wrong("only %d signals came: the storm was none", seen);
}

/* The program blocks a signal and waits for it: no thread of ours may take it. */
static void case_sigwait(void)
{
	struct timespec patience = { .tv_sec = 20 };
	struct world w;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	world_open(&w, false);
	for (int i = 0; i < 50; i++) {
		kill(getpid(), i % 2 ? SIGTERM : SIGUSR1);
		world_run(&w, 5);
		if (sigtimedwait(&set, NULL, &patience) < 0)
			wrong("sigtimedwait: %s", strerror(errno));
	}
	world_close(&w);
}

const struct test_case signal_cases[] = {
	{ "exit-in-handler", case_exit_in_handler },
	{ "own-faults", case_own_faults },
	{ "late-handlers", case_late_handlers },
	{ "storm", case_storm },
	{ "sigwait", case_sigwait },
	{ 0 },
};
