/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finding the functions behind the shim.
 *
 * Two threads may fill the table at once: they store the same pointers.
 */
#include <assert.h>
#include <dlfcn.h>
#include "emu/preload/real.h"

struct real_calls real_calls;
bool real_is_loaded;

static void find(void *slot, const char *name)
{
	void *function = dlsym(RTLD_NEXT, name);

	assert(function);
	__atomic_store_n((void **)slot, function, __ATOMIC_RELAXED);
}

void real_load(void)
{
#define REAL_FIND(result, name, arguments) find(&real_calls.name, #name);
	REAL_LIST(REAL_FIND)
#undef REAL_FIND
	__atomic_store_n(&real_is_loaded, true, __ATOMIC_RELEASE);
}

static void __attribute__((constructor)) real_load_at_start(void)
{
	real();
}
