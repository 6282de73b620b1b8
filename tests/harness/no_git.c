/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stands in for libgit2, which Criterion would compare texts with that differ: for asserts of a
 * kind that no test of ours uses.
 *
 * libgit2 brings fourteen other libraries, and Criterion reads the symbols of everything that is
 * loaded, in each process of each case: half of the time of a small case.  As it is asked for by
 * the same name ("libgit2.so.1.5", Debian 12's), the loader takes this one; where Criterion wants
 * another version both are loaded, and that is all that happens.
 */
#include <stdlib.h>

#define PUBLIC	__attribute__((visibility("default")))

PUBLIC int git_libgit2_init(void);
PUBLIC int git_libgit2_shutdown(void);
PUBLIC int git_diff_buffers(void);

int git_libgit2_init(void)
{
	return 1;
}

int git_libgit2_shutdown(void)
{
	return 0;
}

int git_diff_buffers(void)
{
	abort();
}
