/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where responders and keys live: in memory that peers may look into, or in private memory.
 *
 * Provided by whoever makes the device.  NULL functions mean private memory.
 */
#ifndef EMU_OBJ_HOME_H
#define EMU_OBJ_HOME_H
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum home_kind { HOME_RESPONDER, HOME_KEY };

struct home {
	/* A zeroed entry for @number, or NULL. */
	void *(*take)(void *ctx, enum home_kind kind, uint32_t number, size_t bytes);
	void (*give)(void *ctx, void *entry);
	/* Nobody looks any more at what was made invalid before. */
	void (*quiesce)(void *ctx);
	/* Atomics of peers on this function's memory are kept out in between. */
	void (*atomics_lock)(void *ctx);
	void (*atomics_unlock)(void *ctx);
	void *ctx;
};

static inline void *home_take(const struct home *home, enum home_kind kind, uint32_t number,
			      size_t bytes)
{
	return home->take ? home->take(home->ctx, kind, number, bytes) : calloc(1, bytes);
}

static inline void home_give(const struct home *home, void *entry)
{
	if (home->give)
		home->give(home->ctx, entry);
	else
		free(entry);
}

static inline void home_quiesce(const struct home *home)
{
	if (home->quiesce)
		home->quiesce(home->ctx);
}

static inline void home_atomics_lock(const struct home *home)
{
	if (home->atomics_lock)
		home->atomics_lock(home->ctx);
}

static inline void home_atomics_unlock(const struct home *home)
{
	if (home->atomics_unlock)
		home->atomics_unlock(home->ctx);
}
#endif
