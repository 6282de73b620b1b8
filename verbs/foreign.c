/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The system's libibverbs beside ours.
 *
 * It is found by its full path in the folders of the system's libraries, because under its name the
 * loader would give us ourselves, and it is loaded into a namespace of its own, because its drivers
 * must find it and not us.
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "include/seam/channel.h"
#include "verbs/foreign.h"

/* VERBENA_SYSTEM_IBVERBS names another file. */
static const char *const places[] = {
	"/usr/lib/x86_64-linux-gnu/libibverbs.so.1", "/usr/lib/aarch64-linux-gnu/libibverbs.so.1",
	"/usr/lib64/libibverbs.so.1", "/usr/lib/libibverbs.so.1",
};

static int *errno_here(void)
{
	return &errno;
}

static int *(*errno_there)(void) = errno_here;

/* --- what a library lacks --- */

/* The answers of foreign.def, wide enough for each type that a verb returns. */
#define REFUSAL(name, value)				\
	static intptr_t refuse_##name(void)		\
	{						\
		*errno_there() = EOPNOTSUPP;		\
		return value;				\
	}
REFUSAL(NOTHING, 0)
REFUSAL(ERRNO, EOPNOTSUPP)
REFUSAL(MINUS_ERRNO, -EOPNOTSUPP)
REFUSAL(MINUS_ONE, -1)
#undef REFUSAL

static const struct { const char *name; foreign_fn *without; } rows[] = {
#define FOREIGN_VERB(name, answer) { #name, (foreign_fn *)refuse_##answer },
#include "verbs/foreign.def"
#undef FOREIGN_VERB
};

/* --- loading it --- */

static foreign_fn *found[FOREIGN_NAMES];
static atomic_bool is_loaded, wants_fork;

/* NULL: there is none.  One of us would look for another one in its turn. */
static void *library_load(void)
{
	const char *path = getenv("VERBENA_SYSTEM_IBVERBS");
	void *library;

	for (unsigned i = 0; !path && i < sizeof places / sizeof *places; i++)
		if (access(places[i], R_OK) == 0)
			path = places[i];
	library = path ? dlmopen(LM_ID_NEWLM, path, RTLD_NOW | RTLD_LOCAL) : NULL;
	if (library && dlsym(library, "vb_dv_is_ours")) {
		dlclose(library);
		library = NULL;
	}
	return library;
}

/* Its table is filled. */
static int fork_init_there(void)
{
	return ((int (*)(void))found[FOREIGN_ibv_fork_init])();
}

static void library_open(void)
{
	void *library = library_load(), *at;

	for (unsigned i = 0; i < FOREIGN_NAMES; i++) {
		at = library ? dlsym(library, rows[i].name) : NULL;
		found[i] = at ? (foreign_fn *)at : rows[i].without;
	}
	at = library ? dlsym(library, "__errno_location") : NULL;
	if (at)
		errno_there = (int *(*)(void))at;
	is_loaded = library != NULL;
	if (is_loaded && wants_fork)
		fork_init_there();
}

static void library_need(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, library_open);
}

/* --- calling it --- */

foreign_fn *foreign_verb(enum foreign_name name)
{
	library_need();
	return found[name];
}

int *foreign_errno_lend(void)
{
	int *there;

	library_need();
	there = errno_there();
	*there = errno;
	return there;
}

void foreign_errno_take(int *const *there)
{
	errno = **there;
}

/* Twice does no harm; not at all would, so it is told before the library is looked for. */
int foreign_fork_init(void)
{
	wants_fork = true;
	return is_loaded ? fork_init_there() : 0;
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
	return FOREIGN(ibv_get_device_list, NULL);
}

void foreign_list_free(struct ibv_device **list)
{
	if (list)
		FOREIGN(ibv_free_device_list, list);
}
