/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of the examples about what went wrong; see fail.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/fail.h"

static void say(const char *before, const char *format, va_list values)
{
	fflush(stdout);
	fprintf(stderr, "%s: %s", program_invocation_short_name, before);
	vfprintf(stderr, format, values);
}

/* Only an emulated NIC can tell its reasons, and only if it does not do so already. */
static void hint(void)
{
	if (!getenv("VERBENA_EXPLAIN"))
		fprintf(stderr,
			"%s: an emulated NIC tells why with VERBENA_EXPLAIN=1 "
			"(verbena run --explain)\n",
			program_invocation_short_name);
}

static _Noreturn void refuse(int error, const char *format, va_list values)
{
	say("cannot ", format, values);
	fprintf(stderr, ": %s\n", strerror(error));
	hint();
	exit(EXIT_FAILED);
}

void fail(const char *format, ...)
{
	va_list values;

	va_start(values, format);
	say("", format, values);
	fputc('\n', stderr);
	exit(EXIT_FAILED);
}

void fail_errno(int error, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	say("cannot ", format, values);
	fprintf(stderr, ": %s\n", strerror(error));
	exit(EXIT_FAILED);
}

void fail_usage(const char *format, ...)
{
	va_list values;

	va_start(values, format);
	say("", format, values);
	fprintf(stderr, "; see %s --help\n", program_invocation_short_name);
	exit(EXIT_USAGE);
}

void fail_work(const char *format, ...)
{
	va_list values;

	va_start(values, format);
	say("", format, values);
	fputc('\n', stderr);
	hint();
	exit(EXIT_FAILED);
}

void check(int result, const char *format, ...)
{
	int error = result > 0 ? result : errno;
	va_list values;

	if (result == 0)
		return;
	va_start(values, format);
	refuse(error, format, values);
}

void *made(void *object, const char *format, ...)
{
	int error = errno;
	va_list values;

	if (object)
		return object;
	va_start(values, format);
	refuse(error, format, values);
}
