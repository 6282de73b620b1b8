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

static int options_take(char ***arguments)
{
	int error = 0;

	while (!error && **arguments && ***arguments == '-') {
		if (!strcmp(**arguments, "--")) {
			++*arguments;
			break;
		}
		error = option_take("run", false, arguments);
	}
	return error;
}

static int preload_set(void)
{
	const char *sanitizer = *VERBENA_SANITIZER_RUNTIME ? VERBENA_SANITIZER_RUNTIME : NULL;
	char shim[PATH_MAX];
	char *list;
	int error = preload_find(shim, sizeof shim);

	if (error) {
		fprintf(stderr, "verbena: cannot find libverbena_preload.so: %s\n",
			strerror(-error));
		return EXIT_CANNOT_EXECUTE;
	}
	if (strpbrk(shim, " :")) {
		fprintf(stderr, "verbena: LD_PRELOAD cannot hold a space or colon: %s\n", shim);
		return EXIT_CANNOT_EXECUTE;
	}
	list = preload_list(sanitizer, shim, getenv("LD_PRELOAD"));
	error = list ? setenv("LD_PRELOAD", list, 1) : -1;
	free(list);
	if (!error)
		error = unsetenv("SYSFS_PATH");	/* libibverbs would look past the shim */
	return error ? EXIT_CANNOT_EXECUTE : 0;
}

int run_main(int argc, char **argv)
{
	char **arguments = argv + 1;
	int error = options_take(&arguments);

	(void)argc;
	if (error)
		return error;
	if (!*arguments)
		return usage_error("run: no command given");
	error = preload_set();
	if (error)
		return error;
	execvp(*arguments, arguments);
	error = errno;
	fprintf(stderr, "verbena: %s: %s\n", *arguments, strerror(error));
	return error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_EXECUTE;
}
