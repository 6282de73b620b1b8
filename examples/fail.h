/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the examples end when something goes wrong: one line that says what could not be done and
 * why, then exit.  What the process holds is left to the kernel, as any program may that has
 * nobody to report to; a library would have to release it.
 */
#ifndef EXAMPLES_FAIL_H
#define EXAMPLES_FAIL_H

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

#define PRINTF_LIKE(text, values) __attribute__((format(printf, text, values)))

/* The text itself is the reason. */
_Noreturn void fail(const char *format, ...) PRINTF_LIKE(1, 2);

/* "cannot <text>: <errno in words>"; for system calls. */
_Noreturn void fail_errno(int error, const char *format, ...) PRINTF_LIKE(2, 3);

/* Bad arguments: the reason, and where to read about the right ones. */
_Noreturn void fail_usage(const char *format, ...) PRINTF_LIKE(1, 2);

/* A work request failed: the text, and how to learn why if the NIC is emulated. */
_Noreturn void fail_work(const char *format, ...) PRINTF_LIKE(1, 2);

/*
 * What a verb returned must be success.  The verbs have two habits: some return the errno, some
 * return NULL or -1 and leave it in errno.  Otherwise "cannot <text>: <errno>", with a hint.
 */
void check(int result, const char *format, ...) PRINTF_LIKE(2, 3);
void *made(void *object, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
