/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the death of a function shows without a system call: a robust futex in its segment.
 *
 * The kernel marks the word when the thread that holds it ends, also by SIGKILL and by exec().
 * It is not a robust mutex of the C library, because that keeps its list in the lock
 * itself, where others could write.
 */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "emu/share/share_local.h"

#define AWAIT_NAP_NS	20000
#define AWAIT_NAPS	100000

/* Where the kernel has no such thing, nobody vouches and peers use packets. */
void share_live_begin(struct share *s)
{
	struct share_live *l = &s->live;

	l->head.list.next = &l->node;
	l->node.next = &l->head.list;
	l->head.futex_offset = (long)((uintptr_t)&s->header->live - (uintptr_t)&l->node);
	l->head.list_op_pending = NULL;
	if (!syscall(SYS_get_robust_list, 0, &l->before, &l->before_bytes) &&
	    !syscall(SYS_set_robust_list, &l->head, sizeof l->head))
		atomic_store(&s->header->live, (uint32_t)syscall(SYS_gettid));
	atomic_store(&l->has_begun, true);
}

/* Not nanosleep(): the caller holds locks, and a thread may be cancelled there. */
void share_live_await(struct share *s)
{
	const struct timespec nap = { .tv_nsec = AWAIT_NAP_NS };

	for (unsigned i = 0; i < AWAIT_NAPS && !atomic_load(&s->live.has_begun); i++)
		syscall(SYS_nanosleep, &nap, NULL);
}

void share_live_end(struct share *s)
{
	atomic_store(&s->header->live, FUTEX_OWNER_DIED);
	if (s->live.before)
		syscall(SYS_set_robust_list, s->live.before, s->live.before_bytes);
}
