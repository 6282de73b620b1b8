/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asking before a file grows: beyond RLIMIT_FSIZE the kernel refuses and also sends SIGXFSZ,
 * which kills a program that knows nothing of our files.  It counts memfd_create() too.
 */
#ifndef BASE_FILE_LIMIT_H
#define BASE_FILE_LIMIT_H
#include <errno.h>
#include <stddef.h>
#include <sys/resource.h>

/* May a file become @bytes long?  0 or -EFBIG */
static inline int file_limit_check(size_t bytes)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur ? -EFBIG : 0;
}
#endif
