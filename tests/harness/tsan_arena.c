/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lets Criterion run under the thread sanitizer.
 *
 * Criterion (2.4.1) shares an arena with each case's process and maps it at 0x200000000000 plus a
 * random multiple of 16 MiB.  The sanitizer refuses nearly all of that range and every run
 * would end before the first case.  This definition of rand_r(), which Criterion calls to
 * choose, steers it into the range that the sanitizer leaves to programs.
 *
 * Linked into test programs of the tsan preset only.
 */
#include <stdlib.h>

enum {
	ARENA_FIRST = 0x350000,		/* in units of 16 MiB: address 0x550000000000 */
	ARENA_CHOICES = 0x10000,
};

__attribute__((visibility("default"))) int rand_r(unsigned *seed)
{
	*seed = *seed * 1103515245u + 12345u;
	return (int)(ARENA_FIRST + (*seed >> 16) % ARENA_CHOICES);
}
