/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices of other vendors, with VERBENA_NIC=hw: the system's libibverbs drives them.
 *
 * Their contexts and objects are made by that library and call it through their own tables; only
 * the exported functions have to be handed over:
 *
 *	if (!vb_is_ours(context))
 *		return FOREIGN(ibv_alloc_pd, context);
 *
 * That library has a C library of its own, and with it another errno.  FOREIGN() makes both one;
 * what a program calls through a foreign context's table sets the other one only.
 */
#ifndef VERBS_FOREIGN_H
#define VERBS_FOREIGN_H
#include <stdbool.h>

struct ibv_device;
struct channel_device;

/* What the system's library lists, NULL-terminated, or NULL: it is not there. */
struct ibv_device **foreign_list(void);
/* Is it none of the @count devices of @ours? */
bool foreign_is_wanted(const struct ibv_device *device, const struct channel_device *ours,
		       int count);
void foreign_list_free(struct ibv_device **list);

/* The program asked that memory be kept from children: now, or when the library is loaded.
 * 0 or the errno of the library. */
int foreign_fork_init(void);

enum foreign_name {
#define FOREIGN_VERB(name, answer) FOREIGN_##name,
#include "verbs/foreign.def"
#undef FOREIGN_VERB
	FOREIGN_NAMES
};

/* The function there, or one that refuses.  Loads the library if need be. */
typedef void foreign_fn(void);
foreign_fn *foreign_verb(enum foreign_name name);
/* Where errno is there, which is set to ours; and ours to what it is now. */
int *foreign_errno_lend(void);
void foreign_errno_take(int *const *there);

#define FOREIGN(verb, ...)							\
	({									\
		int *there_ __attribute__((cleanup(foreign_errno_take))) =	\
			foreign_errno_lend();					\
										\
		((__typeof__(&verb))foreign_verb(FOREIGN_##verb))(__VA_ARGS__);	\
	})
#endif
