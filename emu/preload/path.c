/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of paths, and the mapping of a path into the emulated sysfs.
 *
 * Only absolute paths are looked at.  A program that opens /sys and walks down with
 * openat() sees the host; none was found that does.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "emu/emu.h"
#include "emu/preload/path.h"
#include "emu/preload/shim.h"
#include "emu/preload/tree.h"
#include "emu/sysfs.h"

#define TEXT_(x)	#x
#define TEXT(x)		TEXT_(x)

enum path_rule {
	RULE_EXACT,		/* this and nothing below it         */
	RULE_BELOW,		/* this and all below it              */
	RULE_BEGINS,		/* whatever begins so, within a component too */
};

/* The first row that matches counts. */
static const struct path_row {
	const char *prefix;
	enum path_rule rule;
	enum path_kind kind;
	const char *tree;
} path_rows[] = {
	{ "/dev/infiniband/" EMU_UVERBS_NAME, RULE_EXACT, PATH_DEVICE,
	  "/dev/infiniband/" EMU_UVERBS_NAME },
	{ "/dev/char/" TEXT(EMU_DEV_MAJOR) ":" TEXT(EMU_DEV_MINOR), RULE_EXACT, PATH_DEVICE,
	  "/dev/infiniband/" EMU_UVERBS_NAME },
	{ "/dev/infiniband",		RULE_EXACT,	PATH_TREE, "/dev/infiniband" },
	{ "/dev/infiniband/.",		RULE_EXACT,	PATH_TREE, "/dev/infiniband" },
	{ "/dev/infiniband/..",		RULE_EXACT,	PATH_TREE, "/dev" },
	{ "/dev/infiniband/",		RULE_BEGINS,	PATH_HIDDEN, NULL },
	{ "/sys/class/infiniband",	RULE_BELOW,	PATH_TREE, "/class/infiniband" },
	{ "/sys/class/infiniband_verbs", RULE_BELOW,	PATH_TREE, "/class/infiniband_verbs" },
	{ "/sys/class/infiniband_",	RULE_BEGINS,	PATH_HIDDEN, NULL },
	{ "/sys/devices/" SYSFS_PCI_BUS, RULE_BELOW,	PATH_TREE, "/devices/" SYSFS_PCI_BUS },
};

/* What follows @prefix in @path, or NULL.  Slashes of @path may be doubled. */
static const char *after_prefix(const char *path, const char *prefix)
{
	for (; *prefix; prefix++, path++) {
		if (*path != *prefix)
			return NULL;
		while (*prefix == '/' && path[1] == '/')
			path++;
	}
	return path;
}

static bool is_all_slashes(const char *text)
{
	return !text[strspn(text, "/")];
}

static bool rule_holds(enum path_rule rule, const char *rest)
{
	switch (rule) {
	case RULE_EXACT:
		return is_all_slashes(rest);
	case RULE_BELOW:
		return *rest == '/' || !*rest;
	case RULE_BEGINS:
		return true;
	}
	return false;
}

struct path_match path_match(const char *path)
{
	for (size_t i = 0; i < sizeof path_rows / sizeof *path_rows; i++) {
		const struct path_row *row = &path_rows[i];
		const char *rest = after_prefix(path, row->prefix);

		if (rest && rule_holds(row->rule, rest))
			return (struct path_match){ row->kind, row->tree, rest };
	}
	return (struct path_match){ PATH_OTHER, NULL, NULL };
}

static bool refuse(int error)
{
	errno = error;
	return false;
}

bool shim_path_map(struct shim_path *p, const char *path)
{
	struct path_match match = path_match(path);
	char buffer[TREE_ROOT_BYTES];
	const char *root;
	int length;

	if (match.kind == PATH_OTHER || !shim_is_on())
		return true;
	if (match.kind == PATH_HIDDEN)
		return refuse(ENOENT);
	root = tree_root(buffer, sizeof buffer);
	if (!root)
		return false;
	length = snprintf(p->text, sizeof p->text, "%s%s%s", root, match.tree, match.rest);
	if (length >= (int)sizeof p->text)
		return refuse(ENAMETOOLONG);
	p->path = p->text;
	p->is_device = match.kind == PATH_DEVICE;
	p->is_tree = match.kind == PATH_TREE;
	return true;
}
