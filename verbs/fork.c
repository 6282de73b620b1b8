/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which pages the device uses, and how often, so that forked children do not get them.
 *
 * The address space is cut into ranges that together cover all of it; each has a count, and
 * neighbours differ in it.  The C library's search tree holds them: looking for an address finds
 * the range around it, so that a step to the next one is a search, too.
 *
 * A range is put back together as soon as it can be: a million regions in a row are one range.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <search.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "verbs/context.h"
#include "verbs/foreign.h"
#include "verbs/fork.h"

struct range {
	uintptr_t start, last;		/* of its bytes */
	unsigned count;
};

static pthread_mutex_t ranges_lock = PTHREAD_MUTEX_INITIALIZER;
static void *ranges;			/* tree; NULL: nobody asked for it */
static atomic_bool is_on, is_too_late;
static bool knows_huge_pages;		/* mappings may have larger pages */
static size_t small_page_bytes;

/* --- the ranges --- */

/* They never overlap: a search for one that covers a single byte finds the one around it. */
static int range_compare(const void *a, const void *b)
{
	const struct range *left = a, *right = b;

	if (left->last < right->start)
		return -1;
	return left->start > right->last;
}

static struct range *range_at(uintptr_t at)
{
	struct range key = { .start = at, .last = at };
	struct range **found = tfind(&key, &ranges, range_compare);

	return *found;		/* all addresses are covered */
}

/* NULL: no memory. */
static struct range *range_add(uintptr_t start, uintptr_t last, unsigned count)
{
	struct range *r = malloc(sizeof *r);

	if (!r)
		return NULL;
	*r = (struct range){ .start = start, .last = last, .count = count };
	if (!tsearch(r, &ranges, range_compare)) {
		free(r);
		return NULL;
	}
	return r;
}

static struct range *range_next(const struct range *r, uintptr_t last)
{
	return r->last >= last ? NULL : range_at(r->last + 1);
}

/* Makes a range begin at @at.  ENOMEM */
static int split(uintptr_t at)
{
	struct range *r = range_at(at);
	uintptr_t last = r->last;

	if (r->start == at)
		return 0;
	r->last = at - 1;
	if (range_add(at, last, r->count))
		return 0;
	r->last = last;
	return ENOMEM;
}

/* Puts the ranges left and right of @at together if they are alike. */
static void join(uintptr_t at)
{
	struct range *right = range_at(at), *left = at ? range_at(at - 1) : right;
	uintptr_t last = right->last;

	if (left == right || left->count != right->count)
		return;
	tdelete(right, &ranges, range_compare);
	free(right);
	left->last = last;
}

static void join_ends(uintptr_t start, uintptr_t last)
{
	join(start);
	if (last != UINTPTR_MAX)
		join(last + 1);
}

/* Makes @start to @last consist of whole ranges. */
static int split_ends(uintptr_t start, uintptr_t last)
{
	int error = split(start);

	if (!error && last != UINTPTR_MAX)
		error = split(last + 1);
	if (error)
		join_ends(start, last);
	return error;
}

/* --- what the kernel is told --- */

static int advise(const struct range *r, int advice)
{
	return madvise((void *)r->start, r->last - r->start + 1, advice) ? errno : 0;
}

/* Of the ranges up to @last that nobody has used yet. */
static void share_unused(uintptr_t start, uintptr_t last)
{
	for (struct range *r = range_at(start); r; r = range_next(r, last))
		if (!r->count)
			advise(r, MADV_DOFORK);
}

static int hide_unused(uintptr_t start, uintptr_t last)
{
	int error = 0;

	for (struct range *r = range_at(start); r && !error; r = range_next(r, last)) {
		if (!r->count)
			error = advise(r, MADV_DONTFORK);
		if (error)
			share_unused(start, r->last);
	}
	return error;
}

static int keep_locked(uintptr_t start, uintptr_t last)
{
	int error = split_ends(start, last);

	if (error)
		return error;
	error = hide_unused(start, last);
	for (struct range *r = range_at(start); r && !error; r = range_next(r, last))
		r->count++;
	join_ends(start, last);
	return error;
}

/* That a child gets a page again can fail only where there is no page any more. */
static int release_locked(uintptr_t start, uintptr_t last)
{
	int error = split_ends(start, last);

	if (error)
		return error;
	for (struct range *r = range_at(start); r; r = range_next(r, last))
		if (r->count && !--r->count)
			advise(r, MADV_DOFORK);
	join_ends(start, last);
	return 0;
}

/* --- whole pages --- */

/* In what @line of smaps says "KernelPageSize:       4 kB" of. */
static bool line_is_around(const char *line, uintptr_t at)
{
	unsigned long start, end;

	return sscanf(line, "%lx-%lx ", &start, &end) == 2 && at >= start && at < end;
}

static size_t mapping_page_bytes(uintptr_t at)
{
	FILE *smaps = fopen("/proc/self/smaps", "re");
	unsigned long kilobytes = 0;
	bool is_around = false;
	char line[512];

	while (smaps && !kilobytes && fgets(line, sizeof line, smaps)) {
		is_around = is_around || line_is_around(line, at);
		if (is_around && sscanf(line, "KernelPageSize: %lu", &kilobytes) != 1)
			kilobytes = 0;
	}
	if (smaps)
		fclose(smaps);
	return kilobytes ? kilobytes * 1024 : small_page_bytes;
}

typedef int change_fn(uintptr_t start, uintptr_t last);

static int pages_change(const void *at, size_t bytes, change_fn *change)
{
	uintptr_t first = (uintptr_t)at, last = first + bytes - 1;
	size_t page = small_page_bytes;
	int error;

	if (!at || !bytes)
		return 0;
	if (last < first)
		return EINVAL;
	if (knows_huge_pages)
		page = mapping_page_bytes(first);
	pthread_mutex_lock(&ranges_lock);
	error = change(first & ~(uintptr_t)(page - 1), last | (page - 1));
	pthread_mutex_unlock(&ranges_lock);
	return error;
}

/* --- turning it on --- */

/* ENOSYS: the kernel can't do it. */
static int kernel_check(void)
{
	void *page = mmap(NULL, small_page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool is_able;

	if (page == MAP_FAILED)
		return ENOMEM;
	is_able = !madvise(page, small_page_bytes, MADV_DONTFORK) &&
		  !madvise(page, small_page_bytes, MADV_DOFORK);
	munmap(page, small_page_bytes);
	return is_able ? 0 : ENOSYS;
}

static int turn_on_locked(void)
{
	int error;

	if (atomic_load(&is_on))
		return 0;
	if (atomic_load(&is_too_late))
		return EINVAL;
	small_page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	error = kernel_check();
	if (!error && !range_add(0, UINTPTR_MAX, 0))
		error = ENOMEM;
	if (!error)
		atomic_store(&is_on, true);
	return error;
}

static int turn_on(void)
{
	int error;

	pthread_mutex_lock(&ranges_lock);
	knows_huge_pages = knows_huge_pages || getenv("RDMAV_HUGEPAGES_SAFE");
	error = turn_on_locked();
	pthread_mutex_unlock(&ranges_lock);
	return error;
}

static void ask_environment(void)
{
	if ((getenv("RDMAV_FORK_SAFE") || getenv("IBV_FORK_SAFE")) && turn_on())
		fputs("libibverbs: this kernel can't keep memory from forked children, although "
		      "the environment asks for it\n", stderr);
}

/* A program may ask by the environment, which counts from the first use on. */
static bool is_on_by_now(void)
{
	static pthread_once_t asked = PTHREAD_ONCE_INIT;

	pthread_once(&asked, ask_environment);
	return atomic_load_explicit(&is_on, memory_order_acquire);
}

static bool is_wanted(void)
{
	if (is_on_by_now())
		return true;
	atomic_store_explicit(&is_too_late, true, memory_order_relaxed);
	return false;
}

/* --- what others call --- */

int vb_fork_keep(const void *at, size_t bytes)
{
	return is_wanted() ? pages_change(at, bytes, keep_locked) : 0;
}

void vb_fork_release(const void *at, size_t bytes)
{
	if (is_wanted())
		pages_change(at, bytes, release_locked);
}

VB_EXPORT int ibv_fork_init(void)
{
	int error = turn_on();

	return error ? error : foreign_fork_init();
}

VB_EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return is_on_by_now() ? IBV_FORK_ENABLED : IBV_FORK_DISABLED;
}

/* Known to old providers, not to any header. */
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

VB_EXPORT int ibv_dontfork_range(void *base, size_t size)
{
	return vb_fork_keep(base, size) ? -1 : 0;
}

VB_EXPORT int ibv_dofork_range(void *base, size_t size)
{
	return is_wanted() && pages_change(base, size, release_locked) ? -1 : 0;
}
