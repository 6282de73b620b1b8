/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which library to preload, and beside which others.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tools/verbena/verbena.h"

#define SHIM_NAME "libverbena_preload.so"

/* bin/verbena belongs to lib/ beside bin/, wherever the two were copied to. */
static int beside_executable(char *out, size_t bytes)
{
	char self[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
	char *slash;

	if (length < 0)
		return -errno;
	self[length] = 0;
	for (int up = 0; up < 2; up++) {
		slash = strrchr(self, '/');
		if (!slash)
			return -ENOENT;
		*slash = 0;
	}
	if (snprintf(out, bytes, "%s/lib/" SHIM_NAME, self) >= (int)bytes)
		return -ENAMETOOLONG;
	return access(out, R_OK) ? -errno : 0;
}

int preload_find(char *out, size_t bytes)
{
	int error = beside_executable(out, bytes);

	if (!error)
		return 0;
	snprintf(out, bytes, "%s", VERBENA_INSTALLED_LIBDIR "/" SHIM_NAME);
	return access(out, R_OK) ? error : 0;
}

static bool is_same_file_name(const char *entry, size_t length, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	size_t name_length = strlen(name);

	return length >= name_length && !memcmp(entry + length - name_length, name, name_length) &&
	       (length == name_length || entry[length - name_length - 1] == '/');
}

static bool is_kept(const char *entry, size_t length, const char *sanitizer)
{
	return !is_same_file_name(entry, length, SHIM_NAME) &&
	       !(sanitizer && is_same_file_name(entry, length, sanitizer));
}

char *preload_list(const char *sanitizer, const char *shim, const char *before)
{
	size_t bytes = strlen(shim) + (sanitizer ? strlen(sanitizer) : 0) +
		       (before ? strlen(before) : 0) + 4;
	char *list = malloc(bytes);
	size_t length;
	int at;

	if (!list)
		return NULL;
	at = snprintf(list, bytes, "%s%s%s", sanitizer ? sanitizer : "", sanitizer ? ":" : "",
		      shim);
	for (const char *entry = before; entry && *entry; entry += length) {
		entry += strspn(entry, ": ");
		length = strcspn(entry, ": ");
		if (length && is_kept(entry, length, sanitizer))
			at += snprintf(list + at, bytes - (size_t)at, ":%.*s", (int)length, entry);
	}
	return list;
}
