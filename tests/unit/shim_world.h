/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shim as a test sees it: its functions by name, without standing in front of the test's own.
 *
 * The library is opened from ../../lib beside the test program, where the build puts it.
 */
#ifndef TESTS_SHIM_WORLD_H
#define TESTS_SHIM_WORLD_H
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A file of the build, by its path from the build's root. */
static inline const char *build_path(const char *name)
{
	static char path[2][PATH_MAX + 64];
	static unsigned turn;
	char self[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
	char *out = path[turn++ % 2];

	cr_assert_gt(length, 0);
	self[length] = 0;
	for (int up = 0; up < 3; up++)
		*strrchr(self, '/') = 0;
	snprintf(out, sizeof path[0], "%s/%s", self, name);
	return out;
}

static inline void *shim_symbol(const char *name)
{
	static void *shim;
	void *symbol;

	if (!shim) {
		setenv("VERBENA_QUIET", "1", 1);
		shim = dlopen(build_path("lib/libverbena_preload.so"), RTLD_NOW | RTLD_LOCAL);
	}
	cr_assert(shim, "%s", dlerror());
	symbol = dlsym(shim, name);
	cr_assert(symbol, "the shim has no %s", name);
	return symbol;
}

/* SHIM(open)(path, flags): the shim's version of a function that has a prototype. */
#define SHIM(name) ((__typeof__(&name))shim_symbol(#name))

/* Runs @body in a forked child; how waitpid() saw it end. */
static inline int status_of_child(void (*body)(void))
{
	int status = 0;
	pid_t child = fork();

	cr_assert_geq(child, 0);
	if (!child) {
		body();
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	return status;
}
#endif
