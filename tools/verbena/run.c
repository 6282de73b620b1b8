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
#include "hw-models/profile.h"
#include "tools/verbena/verbena.h"

#define NODE_MAX 250		/* as emu/identity.h has it */

static int check_nic(const char *value)
{
	if (!strcmp(value, "hw") || (*value && hw_profile_find(value)))
		return 0;
	return usage_error("--nic: no NIC is called \"%s\"", value);
}

static int check_node(const char *value)
{
	size_t digits = strspn(value, "0123456789");
	long node = strtol(value, NULL, 10);

	if (digits && digits < 4 && !value[digits] && node >= 1 && node <= NODE_MAX)
		return 0;
	return usage_error("--node: \"%s\" is not a number from 1 to %d", value, NODE_MAX);
}

/* The name becomes part of a file name. */
static int check_fabric(const char *value)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-_.";

	if (*value && *value != '.' && !value[strspn(value, allowed)])
		return 0;
	return usage_error("--fabric: \"%s\" is not made of letters, digits, '-', '_' and '.'",
			   value);
}

static const struct run_option {
	const char *name, *variable;
	int (*check)(const char *value);	/* NULL: a switch, which sets "1" */
} run_options[] = {
	{ "--nic",	"VERBENA_NIC",		check_nic },
	{ "--fabric",	"VERBENA_FABRIC",	check_fabric },
	{ "--node",	"VERBENA_NODE",		check_node },
	{ "--explain",	"VERBENA_EXPLAIN",	NULL },
	{ "--quiet",	"VERBENA_QUIET",	NULL },
};

/* The row of "--name" or "--name=value". */
static const struct run_option *option_find(const char *argument)
{
	size_t length = strcspn(argument, "=");

	for (size_t i = 0; i < sizeof run_options / sizeof *run_options; i++)
		if (!strncmp(argument, run_options[i].name, length) && !run_options[i].name[length])
			return &run_options[i];
	return NULL;
}

/* Takes the option at **arguments, and its value; the caller has seen that it begins with '-'. */
static int option_take(char ***arguments)
{
	const char *argument = *(*arguments)++;
	const struct run_option *option = option_find(argument);
	const char *equals = strchr(argument, '=');
	const char *value = equals ? equals + 1 : NULL;
	int error;

	if (!option)
		return usage_error("run: unknown option \"%s\"", argument);
	if (!option->check && value)
		return usage_error("run: %s takes no value", option->name);
	if (option->check && !value) {
		if (!**arguments)
			return usage_error("run: %s needs a value", option->name);
		value = *(*arguments)++;
	}
	error = option->check ? option->check(value) : 0;
	if (!error && setenv(option->variable, option->check ? value : "1", 1))
		error = EXIT_CANNOT_EXECUTE;
	return error;
}

static int options_take(char ***arguments)
{
	int error = 0;

	while (!error && **arguments && ***arguments == '-') {
		if (!strcmp(**arguments, "--")) {
			++*arguments;
			break;
		}
		error = option_take(arguments);
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
