/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A libibverbs of the system that drives nothing: it notes which verb was called last, and with
 * what as its first argument.
 *
 * It is loaded into a namespace of its own, so the test reaches its memory only from the devices
 * that it lists.
 */
#ifndef TESTS_VERBS_FOREIGN_LIBRARY_H
#define TESTS_VERBS_FOREIGN_LIBRARY_H
#include <infiniband/verbs.h>
#include <stddef.h>

#define FAKE_DEVICES	3	/* other_0, mlx5_0, other_1 */
#define FAKE_ANSWER	0x5eed
#define FAKE_ERROR	ENOTRECOVERABLE

struct fake_state {
	int called;			/* enum foreign_name of the last verb */
	const void *object;		/* its first argument */
	int error_before;		/* errno as it found it */
	unsigned lists, contexts;	/* that are there now */
	unsigned forks;
	int fork_answer;
	const void *polled;		/* by the table of a context */
};

struct fake_device {
	struct ibv_device device;
	struct fake_state *state;
};

struct fake_context {
	struct verbs_context as_made;
	struct verbs_context verbs;
};

static inline struct fake_context *fake_context_of(const void *context)
{
	return (struct fake_context *)((uintptr_t)context -
				       offsetof(struct fake_context, verbs.context));
}
#endif
