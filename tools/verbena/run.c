/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbena run: an environment, then exec.
 *
 * No process stays behind: exit status and signals are the program's own.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tools/verbena/verbena.h"

static int options_take(char ***arguments, bool *is_own)
{
	int error = 0;

	while (!error && **arguments && ***arguments == '-') {
		if (!strcmp(**arguments, "--")) {
			++*arguments;
			break;
		}
		if (!strcmp(**arguments, "--own")) {
			*is_own = true;
			++*arguments;
		} else {
			error = option_take("run", false, arguments);
		}
	}
	return error;
}

static int not_found(const char *what, int error)
{
	fprintf(stderr, "verbena: cannot find %s: %s\n", what, strerror(-error));
	return EXIT_CANNOT_EXECUTE;
}

/* Takes over @list; one that is empty is no variable. */
static int variable_set(const char *name, char *list)
{
	int error = !list ? -1 : *list ? setenv(name, list, 1) : unsetenv(name);

	free(list);
	return error ? EXIT_CANNOT_EXECUTE : 0;
}

/* @shim may be NULL. */
static int preload_set(const char *shim)
{
	const char *sanitizer = *VERBENA_SANITIZER_RUNTIME ? VERBENA_SANITIZER_RUNTIME : NULL;

	return variable_set("LD_PRELOAD", preload_list(sanitizer, shim, getenv("LD_PRELOAD")));
}

/* Our library alone needs no shim; with VERBENA_CHANNEL=kernel the shim is the kernel to it. */
static bool own_is_asked_for(void)
{
	const char *channel = getenv("VERBENA_CHANNEL");

	return channel && !strcmp(channel, "kernel");
}

/* The system's libraries, and the shim below them. */
static int lane_stock(void)
{
	const char *path = getenv("LD_LIBRARY_PATH");
	char shim[PATH_MAX], own[PATH_MAX];
	int error = preload_find(shim, sizeof shim);

	if (error)
		return not_found("libverbena_preload.so", error);
	if (strpbrk(shim, " :")) {
		fprintf(stderr, "verbena: LD_PRELOAD cannot hold a space or colon: %s\n", shim);
		return EXIT_CANNOT_EXECUTE;
	}
	error = preload_set(shim);
	if (!error && path && !own_is_asked_for() && !own_find(own, sizeof own))
		error = variable_set("LD_LIBRARY_PATH", library_path(own, false, path));
	if (!error)
		error = unsetenv("SYSFS_PATH");	/* libibverbs would look past the shim */
	return error ? EXIT_CANNOT_EXECUTE : 0;
}

/* Our libraries in front of the system's, and no shim. */
static int lane_own(void)
{
	char own[PATH_MAX];
	int error = own_find(own, sizeof own);

	if (error)
		return not_found("our libibverbs.so.1", error);
	if (strpbrk(own, ":;$")) {
		fprintf(stderr, "verbena: LD_LIBRARY_PATH cannot hold a colon, semicolon or "
			"dollar: %s\n", own);
		return EXIT_CANNOT_EXECUTE;
	}
	error = variable_set("LD_LIBRARY_PATH", library_path(own, true, getenv("LD_LIBRARY_PATH")));
	return error ? error : preload_set(NULL);
}

int run_main(int argc, char **argv)
{
	char **arguments = argv + 1;
	bool is_own = false;
	int error = options_take(&arguments, &is_own);

	(void)argc;
	if (error)
		return error;
	if (!*arguments)
		return usage_error("run: no command given");
	error = is_own ? lane_own() : lane_stock();
	if (error)
		return error;
	execvp(*arguments, arguments);
	error = errno;
	fprintf(stderr, "verbena: %s: %s\n", *arguments, strerror(error));
	return error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_EXECUTE;
}
