/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The system's libibverbs beside ours.
 *
 * It is found by its full path in the folders of the system's libraries, because under its name the
 * loader would give us ourselves, and it is loaded into a namespace of its own, because its drivers
 * must find it and not us.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "include/seam/channel.h"
#include "verbs/foreign.h"

static _Atomic(void *) library;
static atomic_bool wants_fork;

/* VERBENA_SYSTEM_IBVERBS names another file. */
static const char *const places[] = {
	"/usr/lib/x86_64-linux-gnu/libibverbs.so.1", "/usr/lib/aarch64-linux-gnu/libibverbs.so.1",
	"/usr/lib64/libibverbs.so.1", "/usr/lib/libibverbs.so.1",
};

static void fork_init_there(void)
{
	int (*init)(void) = library ? dlsym(library, "ibv_fork_init") : NULL;

	if (init)
		init();
}

static void library_open(void)
{
	const char *path = getenv("VERBENA_SYSTEM_IBVERBS");

	for (unsigned i = 0; !path && i < sizeof places / sizeof *places; i++)
		if (access(places[i], R_OK) == 0)
			path = places[i];
	if (path)
		library = dlmopen(LM_ID_NEWLM, path, RTLD_NOW | RTLD_LOCAL);
	if (wants_fork)
		fork_init_there();
}

/* Twice does no harm; not at all would, so it is told before the library is looked for. */
void foreign_fork_init(void)
{
	wants_fork = true;
	fork_init_there();
}

void *foreign_verb(const char *name)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, library_open);
	return library ? dlsym(library, name) : NULL;
}

bool foreign_is_wanted(const struct ibv_device *device, const struct channel_device *ours,
		       int count)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(device->name, ours[i].name))
			return false;
	return true;
}

struct ibv_device **foreign_list(void)
{
	struct ibv_device **(*get)(int *) = foreign_verb("ibv_get_device_list");

	return get ? get(NULL) : NULL;
}

void foreign_list_free(struct ibv_device **list)
{
	void (*give_back)(struct ibv_device **) = foreign_verb("ibv_free_device_list");

	if (list && give_back)
		give_back(list);
}
