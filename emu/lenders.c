/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is inside the engine; see lenders.h.
 *
 * Why nobody is missed.  A lender (1) raises its count, (2) reads the address.  The other
 * side (a) clears the address, (b) membarrier(), which is a full barrier in every running
 * thread, (c) reads the counts.  If (2) came before that barrier, (1) did too and (c) sees it;
 * if it came after, (2) sees the cleared address.
 */
#include "emu/lenders.h"
#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WAIT_TRIES	1000		/* of a millisecond, for somebody who does not come out */

static struct engine *_Atomic nobody;
struct engine *_Atomic *lenders_address = &nobody;
bool lenders_need_fence;
__thread struct lender *lender_own __attribute__((tls_model("initial-exec")));

/* Records are used again and never freed: as many as there were threads at once. */
static struct lender *_Atomic lenders;
static pthread_key_t own_key;		/* gives the record back when its thread ends */

static void record_give(void *record)
{
	lender_own = NULL;
	atomic_store_explicit(&((struct lender *)record)->is_taken, false, memory_order_release);
}

int lenders_init(void)
{
	void *page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int error;

	if (page == MAP_FAILED)
		return -errno;
	madvise(page, (size_t)sysconf(_SC_PAGESIZE), MADV_WIPEONFORK);
	error = pthread_key_create(&own_key, record_give);
	if (error) {
		munmap(page, (size_t)sysconf(_SC_PAGESIZE));
		return -error;
	}
	lenders_need_fence =
		syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0;
	__atomic_store_n(&lenders_address, page, __ATOMIC_RELEASE);
	return 0;
}

static struct lender *record_reuse(void)
{
	for (struct lender *l = atomic_load(&lenders); l; l = l->next) {
		bool is_taken = false;

		if (atomic_compare_exchange_strong(&l->is_taken, &is_taken, true))
			return l;
	}
	return NULL;
}

static struct lender *record_make(void)
{
	struct lender *l = calloc(1, sizeof *l);

	if (!l)
		return NULL;
	atomic_store(&l->is_taken, true);
	l->next = atomic_load(&lenders);
	while (!atomic_compare_exchange_weak(&lenders, &l->next, l))
		;
	return l;
}

struct lender *lender_begin(void)
{
	struct lender *l = lenders_are_admitted() ? record_reuse() : NULL;

	if (!l && lenders_are_admitted())
		l = record_make();
	if (!l)
		return NULL;
	pthread_setspecific(own_key, l);
	lender_own = l;
	return l;
}

void lenders_admit(struct engine *e)
{
	atomic_store_explicit(lenders_address, e, memory_order_release);
}

bool lenders_are_admitted(void)
{
	return atomic_load_explicit(lenders_address, memory_order_relaxed);
}

static bool has_left(const struct lender *l)
{
	struct timespec nap = { .tv_nsec = 1000000 };

	for (unsigned tries = 0; atomic_load_explicit(&l->inside, memory_order_acquire); tries++) {
		if (tries == WAIT_TRIES)
			return false;
		nanosleep(&nap, NULL);
	}
	return true;
}

bool lenders_dismiss(void)
{
	bool have_left = true;

	atomic_store(lenders_address, NULL);
	if (!lenders_need_fence)
		syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
	for (struct lender *l = atomic_load(&lenders); l && have_left; l = l->next)
		have_left = has_left(l);
	return have_left;
}

void lenders_forget(void)
{
	atomic_store(lenders_address, NULL);
	for (struct lender *l = atomic_load(&lenders); l; l = l->next) {
		atomic_store(&l->inside, 0);
		atomic_store(&l->is_taken, l == lender_own);
	}
}
