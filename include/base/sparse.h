/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Large tables of which little is used: zero pages from the kernel, which cost nothing until they
 * are touched.  calloc() clears what it had before, all of it.
 */
#ifndef BASE_SPARSE_H
#define BASE_SPARSE_H
#include <stddef.h>
#include <sys/mman.h>

/* The leak sanitizer follows pointers in such a table only if it is told of it. */
extern void __lsan_register_root_region(const void *at, size_t bytes) __attribute__((weak));
extern void __lsan_unregister_root_region(const void *at, size_t bytes) __attribute__((weak));

/* NULL: no memory. */
static inline void *sparse_alloc(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	if (__lsan_register_root_region)
		__lsan_register_root_region(at, bytes);
	return at;
}

static inline void sparse_free(void *at, size_t bytes)
{
	if (!at)
		return;
	if (__lsan_unregister_root_region)
		__lsan_unregister_root_region(at, bytes);
	munmap(at, bytes);
}
#endif
