/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions that the shim stands in front of, as the next library has them.
 *
 * Other libraries' constructors may call us before ours has run, so the table fills
 * itself at its first use.
 */
#ifndef EMU_PRELOAD_REAL_H
#define EMU_PRELOAD_REAL_H
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

/*    result        name       arguments */
#define REAL_LIST(X)                                                              \
	X(int,          open,      (const char *, int, ...))                      \
	X(int,          openat,    (int, const char *, int, ...))                 \
	X(FILE *,       fopen,     (const char *, const char *))                  \
	X(DIR *,        opendir,   (const char *))                                \
	X(int,          scandir,   (const char *, struct dirent ***,              \
				    int (*)(const struct dirent *),               \
				    int (*)(const struct dirent **,               \
					    const struct dirent **)))             \
	X(int,          access,    (const char *, int))                           \
	X(int,          euidaccess, (const char *, int))                          \
	X(int,          faccessat, (int, const char *, int, int))                 \
	X(ssize_t,      readlink,  (const char *, char *, size_t))                \
	X(ssize_t,      readlinkat, (int, const char *, char *, size_t))          \
	X(char *,       realpath,  (const char *, char *))                        \
	X(int,          chdir,     (const char *))                                \
	X(ssize_t,      getxattr,  (const char *, const char *, void *, size_t))  \
	X(ssize_t,      lgetxattr, (const char *, const char *, void *, size_t))  \
	X(int,          stat,      (const char *, struct stat *))                 \
	X(int,          lstat,     (const char *, struct stat *))                 \
	X(int,          fstat,     (int, struct stat *))                          \
	X(int,          fstatat,   (int, const char *, struct stat *, int))       \
	X(int,          statx,     (int, const char *, int, unsigned, struct statx *)) \
	X(int,          ioctl,     (int, unsigned long, ...))                     \
	X(ssize_t,      write,     (int, const void *, size_t))                   \
	X(void *,       mmap,      (void *, size_t, int, int, int, off_t))        \
	X(long,         syscall,   (long, ...))                                   \
	X(int,          close,     (int))                                         \
	X(int,          close_range, (unsigned, unsigned, int))                   \
	X(void,         closefrom, (int))                                         \
	X(int,          dup,       (int))                                         \
	X(int,          dup2,      (int, int))                                    \
	X(int,          dup3,      (int, int, int))                               \
	X(int,          fcntl,     (int, int, ...))                               \
	X(int,          socket,    (int, int, int))                               \
	X(int,          sigaction, (int, const struct sigaction *, struct sigaction *)) \
	X(sighandler_t, signal,    (int, sighandler_t))

struct real_calls {
#define REAL_MEMBER(result, name, arguments) result (*name) arguments;
	REAL_LIST(REAL_MEMBER)
#undef REAL_MEMBER
};

extern struct real_calls real_calls;
extern bool real_is_loaded;
void real_load(void);

static inline const struct real_calls *real(void)
{
	if (__builtin_expect(!__atomic_load_n(&real_is_loaded, __ATOMIC_ACQUIRE), 0))
		real_load();
	return &real_calls;
}

/* What stands in front of a function of the C library is visible; nothing else is. */
#define SHIM_EXPORT __attribute__((visibility("default")))
#endif
