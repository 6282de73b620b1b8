/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which paths belong to the emulated device.
 *
 * Every path that a program opens passes here, so the first look is a few compares;
 * nothing is allocated and nothing is asked of the kernel.
 */
#ifndef EMU_PRELOAD_PATH_H
#define EMU_PRELOAD_PATH_H
#include <stdbool.h>
#include <stddef.h>

enum path_kind {
	PATH_OTHER,		/* none of our business */
	PATH_TREE,		/* a file of the emulated sysfs */
	PATH_DEVICE,		/* the uverbs character device */
	PATH_HIDDEN,		/* a device of the host: not to be seen */
};

struct path_match {
	enum path_kind kind;
	const char *tree;	/* where it is in the tree: tree + rest */
	const char *rest;	/* into the path that was given */
};

struct path_match path_match(const char *path);

/* False for nearly every path.  NULL is left to the kernel to refuse. */
static inline bool path_may_be_ours(const char *path)
{
	return path && path[0] == '/' &&
	       (path[1] == 's' || path[1] == 'd' || path[1] == '/');
}

/* A path as the real function is to see it. */
struct shim_path {
	const char *path;
	bool is_device, is_tree;
	char text[512];
};

/* False: the call fails, errno is set. */
bool shim_path_map(struct shim_path *p, const char *path);

static inline bool shim_path(struct shim_path *p, const char *path)
{
	p->path = path;
	p->is_device = p->is_tree = false;
	return __builtin_expect(!path_may_be_ours(path), 1) || shim_path_map(p, path);
}
#endif
