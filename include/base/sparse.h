/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Large tables of which little is used: zero pages from the kernel, which cost nothing until they
 * are touched.  calloc() clears what it had before, all of it.
 */
#ifndef BASE_SPARSE_H
#define BASE_SPARSE_H
#include <stddef.h>
#include <sys/mman.h>

/* NULL: no memory. */
static inline void *sparse_alloc(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static inline void sparse_free(void *at, size_t bytes)
{
	if (at)
		munmap(at, bytes);
}
#endif
