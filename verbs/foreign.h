/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices of other vendors, with VERBENA_NIC=hw: the system's libibverbs drives them.
 *
 * Their contexts and objects are made by that library and call it through their own tables; only
 * the exported functions have to be handed over:
 *
 *	if (!vb_is_ours(context))
 *		return FOREIGN(ibv_alloc_pd)(context);
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

/* The program asked that memory be kept from children: now, or when the library is loaded. */
void foreign_fork_init(void);

/* The function of that name there.  It exists: there would be no foreign object otherwise. */
void *foreign_verb(const char *name);
#define FOREIGN(verb) ((__typeof__(&verb))foreign_verb(#verb))
#endif
