/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which libraries a program gets, and the lists of the loader's that say so.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tools/verbena/verbena.h"

#define SHIM_NAME	"libverbena_preload.so"
#define VERBS_NAME	"libibverbs.so.1"

/* bin/verbena belongs to lib/ beside bin/, wherever the two were copied to. */
static int beside_executable(const char *name, char *out, size_t bytes)
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
	if (snprintf(out, bytes, "%s/lib/%s", self, name) >= (int)bytes)
		return -ENAMETOOLONG;
	return access(out, R_OK) ? -errno : 0;
}

int preload_find(char *out, size_t bytes)
{
	int error = beside_executable(SHIM_NAME, out, bytes);

	if (!error)
		return 0;
	snprintf(out, bytes, "%s", VERBENA_INSTALLED_LIBDIR "/" SHIM_NAME);
	return access(out, R_OK) ? error : 0;
}

int own_find(char *out, size_t bytes)
{
	/* In the build directory, and installed. */
	static const char *const names[] = { "own/" VERBS_NAME, "verbena/" VERBS_NAME };
	int error = -ENOENT;

	for (unsigned i = 0; error && i < sizeof names / sizeof *names; i++)
		error = beside_executable(names[i], out, bytes);
	if (error) {
		snprintf(out, bytes, "%s", VERBENA_INSTALLED_LIBDIR "/verbena/" VERBS_NAME);
		error = access(out, R_OK) ? error : 0;
	}
	if (!error)
		*strrchr(out, '/') = 0;
	return error;
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

/* Appends a piece and a colon if something is there. */
static void append(char *list, const char *entry, size_t length)
{
	size_t at = strlen(list);

	sprintf(list + at, "%s%.*s", at ? ":" : "", (int)length, entry);
}

char *preload_list(const char *sanitizer, const char *shim, const char *before)
{
	size_t bytes = (shim ? strlen(shim) : 0) + (sanitizer ? strlen(sanitizer) : 0) +
		       (before ? strlen(before) : 0) + 4;
	char *list = calloc(1, bytes);
	size_t length;

	if (!list)
		return NULL;
	if (sanitizer)
		append(list, sanitizer, strlen(sanitizer));
	if (shim)
		append(list, shim, strlen(shim));
	for (const char *entry = before; entry && *entry; entry += length) {
		entry += strspn(entry, ": ");
		length = strcspn(entry, ": ");
		if (length && is_kept(entry, length, sanitizer))
			append(list, entry, length);
	}
	return list;
}

static bool is_same_folder(const char *entry, size_t length, const char *folder)
{
	char name[PATH_MAX];
	struct stat there, here;

	if (length >= sizeof name)
		return false;
	memcpy(name, entry, length);
	name[length] = 0;
	return !stat(*name ? name : ".", &there) && !stat(folder, &here) &&
	       there.st_dev == here.st_dev && there.st_ino == here.st_ino;
}

char *library_path(const char *folder, bool is_wanted, const char *before)
{
	size_t bytes = strlen(folder) + (before ? strlen(before) : 0) + 3, length;
	char *list = calloc(1, bytes);
	const char *entry = before;

	if (list && is_wanted)
		append(list, folder, strlen(folder));
	if (!list || !before || !*before)
		return list;
	for (;; entry += length + 1) {
		length = strcspn(entry, ":;");
		if (!length)
			append(list, ".", 1);	/* what an empty one means */
		else if (!is_same_folder(entry, length, folder))
			append(list, entry, length);
		if (!entry[length])
			return list;
	}
}
