/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Guarded access: good memory is copied, bad memory is an error and never a death, and
 * faults that are not ours reach whoever handled them before.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "emu/mem/mem.h"

#define PAGE	4096u
#define ADDR(p)	((uint64_t)(uintptr_t)(p))
#define NON_CANONICAL	0x0000900000000000ull
#define KERNEL_ADDR	0xffff800000000000ull
#define GONE_ADDR	0x10ull

static void start(void)
{
	cr_assert_eq(mem_guard_init(), 0);
}

TestSuite(mem, .init = start);

static uint8_t *pages(size_t count, int prot)
{
	void *p = mmap(NULL, count * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert(p != MAP_FAILED);
	return p;
}

/* @count good pages with an unmapped one behind. */
static uint8_t *pages_before_hole(size_t count)
{
	uint8_t *p = pages(count + 1, PROT_READ | PROT_WRITE);

	munmap(p + count * PAGE, PAGE);
	return p;
}

static void fill(uint8_t *p, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		p[i] = i * 7 + 1;
}

Test(mem, every_length_and_offset_is_copied_exactly)
{
	uint8_t src[400], dst[400], want[400];

	fill(src, sizeof src);
	for (size_t bytes = 0; bytes <= 300; bytes++)
		for (size_t offset = 0; offset < 17; offset++) {
			memset(dst, 0xee, sizeof dst);
			memset(want, 0xee, sizeof want);
			memcpy(want + offset, src + 3, bytes);
			cr_assert_eq(mem_copy_out(ADDR(dst + offset), src + 3, bytes), 0);
			cr_assert(!memcmp(dst, want, sizeof dst), "out %zu at %zu", bytes, offset);
			memset(dst, 0xee, sizeof dst);
			cr_assert_eq(mem_copy_in(dst + offset, ADDR(src + 3), bytes), 0);
			cr_assert(!memcmp(dst, want, sizeof dst), "in %zu at %zu", bytes, offset);
		}
}

Test(mem, bad_addresses_are_efault_in_both_directions)
{
	static const uint64_t bad[] = {
		GONE_ADDR, NON_CANONICAL, KERNEL_ADDR, UINT64_MAX, UINT64_MAX - 15,
		0xffffffffff600000ull, 1ull << 56,
	};
	uint8_t bytes[64];
	uint64_t old;
	uint32_t word;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		cr_assert_eq(mem_copy_in(bytes, bad[i], 64), -EFAULT, "%zu", i);
		cr_assert_eq(mem_copy_out(bad[i], bytes, 64), -EFAULT, "%zu", i);
		cr_assert_eq(mem_load32(bad[i], &word), -EFAULT, "%zu", i);
		cr_assert_eq(mem_store8_release(bad[i], 1), -EFAULT, "%zu", i);
		cr_assert_eq(mem_fetch_add(bad[i], 1, &old), -EFAULT, "%zu", i);
		cr_assert_eq(mem_compare_swap(bad[i], 1, 1, &old), -EFAULT, "%zu", i);
		cr_assert_eq(mem_probe(bad[i], 64, 0), -EFAULT, "%zu", i);
		cr_assert_eq(mem_probe(bad[i], 1 << 20, 1), -EFAULT, "%zu", i);
	}
}

Test(mem, no_bytes_are_anywhere)
{
	uint8_t byte = 0;

	cr_assert_eq(mem_copy_in(&byte, KERNEL_ADDR, 0), 0);
	cr_assert_eq(mem_copy_out(GONE_ADDR, &byte, 0), 0);
	cr_assert_eq(mem_probe(UINT64_MAX, 0, 1), 0);
}

Test(mem, a_length_that_wraps_is_efault)
{
	uint8_t *p = pages(1, PROT_READ | PROT_WRITE);

	cr_assert_eq(mem_copy_in(p, ADDR(p), SIZE_MAX), -EFAULT);
	cr_assert_eq(mem_probe(ADDR(p), SIZE_MAX - ADDR(p) + 1, 0), -EFAULT);
}

Test(mem, a_fault_in_the_middle_is_efault)
{
	uint8_t *p = pages_before_hole(1), bytes[256];

	cr_assert_eq(mem_copy_in(bytes, ADDR(p + PAGE - 256), 256), 0);
	for (unsigned in = 1; in < 256; in++)
		cr_assert_eq(mem_copy_in(bytes, ADDR(p + PAGE - in), 256), -EFAULT, "%u", in);
	cr_assert_eq(mem_copy_out(ADDR(p + PAGE - 1), bytes, 2), -EFAULT);
}

Test(mem, read_only_memory_is_read_and_not_written)
{
	uint8_t *p = pages(1, PROT_READ), byte;
	uint64_t old;

	cr_assert_eq(mem_copy_in(&byte, ADDR(p), 1), 0);
	cr_assert_eq(mem_copy_out(ADDR(p), &byte, 1), -EFAULT);
	cr_assert_eq(mem_store8_release(ADDR(p), 1), -EFAULT);
	cr_assert_eq(mem_compare_swap(ADDR(p), 0, 1, &old), -EFAULT);
}

Test(mem, a_truncated_file_is_efault)
{
	int fd = memfd_create("t", MFD_CLOEXEC);
	uint8_t *p, byte = 1;

	cr_assert_eq(ftruncate(fd, 2 * PAGE), 0);
	p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert(p != MAP_FAILED);
	cr_assert_eq(ftruncate(fd, PAGE), 0);
	cr_assert_eq(mem_copy_out(ADDR(p), &byte, 1), 0);
	cr_assert_eq(mem_copy_out(ADDR(p + PAGE), &byte, 1), -EFAULT);
	cr_assert_eq(mem_copy_in(&byte, ADDR(p + PAGE), 1), -EFAULT);
	cr_assert_eq(mem_probe(ADDR(p), 2 * PAGE, 1), -EFAULT);
}

Test(mem, words_are_loaded_raw_and_only_aligned)
{
	uint32_t word[2] = { 0x11223344, 5 }, got = 0;

	cr_assert_eq(mem_load32(ADDR(word), &got), 0);
	cr_assert_eq(got, 0x11223344);
	cr_assert_eq(mem_load32(ADDR(word) + 1, &got), -EFAULT);
}

Test(mem, atomics_return_what_was_there)
{
	uint64_t cell[2] = { 41, 0 }, old = 0;

	cr_assert_eq(mem_fetch_add(ADDR(cell), UINT64_MAX, &old), 0);
	cr_assert_eq(old, 41);
	cr_assert_eq(cell[0], 40);
	cr_assert_eq(mem_compare_swap(ADDR(cell), 41, 1, &old), 0);
	cr_assert_eq(old, 40);
	cr_assert_eq(cell[0], 40);
	cr_assert_eq(mem_compare_swap(ADDR(cell), 40, 1, &old), 0);
	cr_assert_eq(old, 40);
	cr_assert_eq(cell[0], 1);
	cr_assert_eq(mem_fetch_add(ADDR(cell) + 4, 1, &old), -EFAULT);
	cr_assert_eq(mem_compare_swap(ADDR(cell) + 1, 1, 1, &old), -EFAULT);
}

static void *add_many(void *cell)
{
	uint64_t old;

	for (int i = 0; i < 20000; i++)
		mem_fetch_add(ADDR(cell), 1, &old);
	return NULL;
}

Test(mem, atomics_of_several_threads_lose_nothing)
{
	static uint64_t cell;
	pthread_t other[3];

	for (int i = 0; i < 3; i++)
		pthread_create(&other[i], NULL, add_many, &cell);
	add_many(&cell);
	for (int i = 0; i < 3; i++)
		pthread_join(other[i], NULL);
	cr_assert_eq(cell, 80000);
}

/* --- spans --- */

Test(mem, spans_of_any_cut_copy_the_same_bytes)
{
	uint8_t src[64], want[64];
	static const size_t cut[][4] = {
		{ 64, 0, 0, 0 }, { 1, 63, 0, 0 }, { 0, 10, 0, 54 }, { 20, 20, 20, 4 },
	};

	fill(src, sizeof src);
	memcpy(want, src, sizeof want);
	for (size_t i = 0; i < 4; i++)
		for (size_t j = 0; j < 4; j++)
			for (size_t skip = 0; skip < 64; skip += 9) {
				uint8_t dst[64] = { 0 };
				struct iovec to[4], from[4];
				size_t a = 0, b = 0;

				for (int k = 0; k < 4; k++) {
					to[k] = (struct iovec){ dst + a, cut[i][k] };
					from[k] = (struct iovec){ src + b, cut[j][k] };
					a += cut[i][k];
					b += cut[j][k];
				}
				cr_assert_eq(mem_copy_spans(to, 4, skip, from, 4, skip, 64 - skip),
					     MEM_SIDE_NONE);
				cr_assert(!memcmp(dst + skip, want + skip, 64 - skip));
				for (size_t k = 0; k < skip; k++)
					cr_assert_eq(dst[k], 0);
			}
}

Test(mem, spans_without_bytes_touch_nothing)
{
	cr_assert_eq(mem_copy_spans(NULL, 0, 0, NULL, 0, 0, 0), MEM_SIDE_NONE);
}

Test(mem, overlap_is_as_memmove)
{
	for (size_t bytes = 1; bytes < 200; bytes += 7)
		for (int shift = -40; shift <= 40; shift++) {
			uint8_t got[300], want[300];
			struct iovec to = { got + 50 + shift, bytes }, from = { got + 50, bytes };

			fill(got, sizeof got);
			memcpy(want, got, sizeof want);
			memmove(want + 50 + shift, want + 50, bytes);
			cr_assert_eq(mem_copy_spans(&to, 1, 0, &from, 1, 0, bytes), MEM_SIDE_NONE);
			cr_assert(!memcmp(got, want, sizeof got), "%zu by %d", bytes, shift);
		}
}

Test(mem, spans_tell_which_side_faulted)
{
	uint8_t *good = pages(1, PROT_READ | PROT_WRITE), *edge = pages_before_hole(1);
	const struct { void *dst, *src; enum mem_side want; } row[] = {
		{ good, edge + PAGE - 8, MEM_SIDE_SRC },
		{ edge + PAGE - 8, good, MEM_SIDE_DST },
		{ good, (void *)GONE_ADDR, MEM_SIDE_SRC },
		{ (void *)GONE_ADDR, good, MEM_SIDE_DST },
		{ good, (void *)NON_CANONICAL, MEM_SIDE_SRC },
		{ (void *)NON_CANONICAL, good, MEM_SIDE_DST },
		{ good, (void *)KERNEL_ADDR, MEM_SIDE_SRC },
		{ (void *)KERNEL_ADDR, good, MEM_SIDE_DST },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct iovec to[2] = { { good + 100, 16 }, { row[i].dst, 64 } };
		struct iovec from[2] = { { good + 200, 16 }, { row[i].src, 64 } };

		cr_assert_eq(mem_copy_spans(to, 2, 0, from, 2, 0, 80), row[i].want, "%zu", i);
		cr_assert_eq(mem_copy_spans(to, 2, 0, from, 2, 0, 16), MEM_SIDE_NONE, "%zu", i);
	}
}

/* Somebody polls the last byte; then everything before it must be there. */
static uint8_t *watched;
static atomic_bool is_watching;
static atomic_uint watched_early;

/* Pieces that are no memory, among others. */
Test(mem, nowhere_gives_zeros_and_takes_anything)
{
	uint8_t *a = pages(1, PROT_READ | PROT_WRITE), *b = pages(1, PROT_READ | PROT_WRITE);
	void *nowhere = (void *)(uintptr_t)MEM_NOWHERE;
	const struct iovec src[3] = { { a, 5 }, { nowhere, 21 }, { a + 5, 7 } };
	const struct iovec dst[3] = { { b, 9 }, { nowhere, 10 }, { b + 9, 14 } };

	for (size_t skip = 0; skip < 33; skip++) {
		fill(a, 12);
		memset(b, 0xee, 64);
		cr_assert_eq(mem_copy_spans(dst, 3, skip, src, 3, skip, 33 - skip), MEM_SIDE_NONE);
		for (size_t at = skip; at < 33; at++) {
			uint8_t want = at < 5 ? a[at] : at < 26 ? 0 : a[at - 21];

			if (at < 9 || at >= 19)
				cr_assert_eq(b[at < 9 ? at : at - 10], want, "%zu of %zu", at,
					     skip);
		}
		cr_assert_eq(b[23], 0xee);
	}
}

Test(mem, nowhere_alone_and_beside_memory_that_is_gone)
{
	struct iovec nowhere = { (void *)(uintptr_t)MEM_NOWHERE, 1u << 30 };
	uint8_t *p = pages(2, PROT_READ | PROT_WRITE);
	struct iovec here = { p, 8192 }, gone = { (void *)GONE_ADDR, 8 };

	memset(p, 1, 8192);
	cr_assert_eq(mem_copy_spans(&here, 1, 3, &nowhere, 1, 100, 8000), MEM_SIDE_NONE);
	for (size_t i = 0; i < 8192; i++)
		cr_assert_eq(p[i], i < 3 || i >= 8003);
	cr_assert_eq(mem_copy_spans(&nowhere, 1, 0, &here, 1, 0, 8192), MEM_SIDE_NONE);
	cr_assert_eq(mem_copy_spans(&nowhere, 1, 0, &nowhere, 1, 0, 1u << 30), MEM_SIDE_NONE);
	cr_assert_eq(mem_copy_spans(&gone, 1, 0, &nowhere, 1, 0, 8), MEM_SIDE_DST);
	nowhere.iov_base = (void *)(uintptr_t)(MEM_NOWHERE << 1);
	cr_assert_eq(mem_copy_spans(&here, 1, 0, &nowhere, 1, 0, 8), MEM_SIDE_SRC);
}

static void *watch(void *bytes)
{
	size_t last = *(size_t *)bytes - 1;

	is_watching = true;
	for (unsigned round = 1; round <= 2000; round++) {
		volatile uint8_t *p = watched;

		while (p[last] != (uint8_t)round)
			;
		for (size_t i = 0; i < last; i++)
			if (p[i] != (uint8_t)round)
				watched_early++;
		is_watching = true;
	}
	return NULL;
}

Test(mem, the_last_byte_comes_last)
{
	size_t bytes = 513;
	uint8_t src[513];
	pthread_t other;

	watched = pages(1, PROT_READ | PROT_WRITE);
	pthread_create(&other, NULL, watch, &bytes);
	for (unsigned round = 1; round <= 2000; round++) {
		while (!is_watching)
			;
		is_watching = false;
		memset(src, round, sizeof src);
		cr_assert_eq(mem_copy_out(ADDR(watched), src, sizeof src), 0);
	}
	pthread_join(other, NULL);
	cr_assert_eq(watched_early, 0);
}

/* --- probe --- */

Test(mem, probe_knows_protection)
{
	static const size_t counts[] = { 1, 16, 17, 256 };

	for (size_t i = 0; i < 4; i++) {
		size_t n = counts[i], bytes = n * PAGE;
		uint8_t *p = pages(n, PROT_READ | PROT_WRITE);

		cr_assert_eq(mem_probe(ADDR(p), bytes, 1), 0, "%zu", n);
		mprotect(p, bytes, PROT_READ);
		cr_assert_eq(mem_probe(ADDR(p), bytes, 0), 0, "%zu", n);
		cr_assert_eq(mem_probe(ADDR(p), bytes, 1), -EFAULT, "%zu", n);
		mprotect(p, bytes, PROT_NONE);
		cr_assert_eq(mem_probe(ADDR(p), bytes, 0), -EFAULT, "%zu", n);
	}
}

Test(mem, probe_finds_one_bad_page_anywhere)
{
	static const size_t counts[] = { 3, 100 };

	for (size_t i = 0; i < 2; i++)
		for (size_t bad = 0; bad < counts[i]; bad += counts[i] / 2) {
			size_t bytes = counts[i] * PAGE;
			uint8_t *p = pages(counts[i], PROT_READ | PROT_WRITE);

			mprotect(p + bad * PAGE, PAGE, PROT_READ);
			cr_assert_eq(mem_probe(ADDR(p), bytes, 0), 0);
			cr_assert_eq(mem_probe(ADDR(p), bytes, 1), -EFAULT, "page %zu", bad);
			munmap(p + bad * PAGE, PAGE);
			cr_assert_eq(mem_probe(ADDR(p), bytes, 0), -EFAULT, "page %zu", bad);
		}
}

Test(mem, probe_stops_at_the_last_byte)
{
	uint8_t *p = pages_before_hole(1);

	cr_assert_eq(mem_probe(ADDR(p + PAGE - 1), 1, 1), 0);
	cr_assert_eq(mem_probe(ADDR(p + PAGE - 1), 2, 1), -EFAULT);
	p = pages_before_hole(40);
	cr_assert_eq(mem_probe(ADDR(p + 1), 40 * PAGE - 1, 1), 0);
	cr_assert_eq(mem_probe(ADDR(p + 1), 40 * PAGE, 1), -EFAULT);
}

/* Before Linux 6.11 the list of mappings could only be read, not asked.  This ioctl() takes the
 * place of the C library's in the whole program. */
static bool is_old_kernel;

int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *argument;

	va_start(args, request);
	argument = va_arg(args, void *);
	va_end(args);
	if (is_old_kernel && (request >> 8 & 0xff) == 'f') {
		errno = ENOTTY;
		return -1;
	}
	return syscall(SYS_ioctl, fd, request, argument);
}

Test(mem, probe_reads_the_list_on_an_old_kernel)
{
	uint8_t *p = pages(300, PROT_READ | PROT_WRITE);

	is_old_kernel = true;
	cr_assert_eq(mem_probe(ADDR(p), 300 * PAGE, 1), 0);
	for (int i = 1; i < 200; i += 2)	/* many mappings: the list takes several reads */
		mprotect(p + i * PAGE, PAGE, PROT_READ);
	cr_assert_eq(mem_probe(ADDR(p), 300 * PAGE, 0), 0);
	cr_assert_eq(mem_probe(ADDR(p), 300 * PAGE, 1), -EFAULT);
	cr_assert_eq(mem_probe(ADDR(p + 200 * PAGE), 100 * PAGE, 1), 0);
	munmap(p + 299 * PAGE, PAGE);
	cr_assert_eq(mem_probe(ADDR(p), 299 * PAGE, 0), 0);
	cr_assert_eq(mem_probe(ADDR(p), 300 * PAGE, 0), -EFAULT);
	mprotect(p + 150 * PAGE, PAGE, PROT_NONE);
	cr_assert_eq(mem_probe(ADDR(p), 299 * PAGE, 0), -EFAULT);
}

static long resident_pages(void)
{
	long size = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	cr_assert(f && fscanf(f, "%ld %ld", &size, &resident) == 2);
	fclose(f);
	return resident;
}

Test(mem, probe_of_a_gibibyte_populates_nothing)
{
	size_t bytes = 1ul << 30;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	long before = resident_pages();

	cr_assert(p != MAP_FAILED);
	cr_assert_eq(mem_probe(ADDR(p), bytes, 1), 0);
	cr_assert_lt(resident_pages() - before, 64);
}

Test(mem, probe_changes_no_byte)
{
	uint8_t *p = pages(20, PROT_READ | PROT_WRITE), want[16 * PAGE];

	fill(p, sizeof want);
	memcpy(want, p, sizeof want);
	cr_assert_eq(mem_probe(ADDR(p), sizeof want, 1), 0);
	cr_assert(!memcmp(p, want, sizeof want));
}

/* Closing descriptors would cut off the test runner, so these happen in a child: the line
 * that failed is its exit status. */
#define CHILD_CHECK(what) do { if (!(what)) _exit(__LINE__ & 0xff); } while (0)

static int status_of(void (*run)(void))
{
	int status = -1;
	pid_t child = fork();

	if (!child) {
		run();
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	return status;
}

static void close_and_probe(void)
{
	uint8_t *p = mmap(NULL, 64 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHILD_CHECK(mem_probe(ADDR(p), 64 * PAGE, 0) == 0);
	CHILD_CHECK(close_range(3, 100, 0) == 0);
	CHILD_CHECK(mem_probe(ADDR(p), 64 * PAGE, 0) == 0);
	for (int fd = 3; fd < 20; fd++)
		dup2(STDERR_FILENO, fd);
	CHILD_CHECK(mem_probe(ADDR(p), 64 * PAGE, 0) == 0);
	munmap(p + PAGE, PAGE);
	CHILD_CHECK(mem_probe(ADDR(p), 64 * PAGE, 0) == -EFAULT);
}

Test(mem, probe_survives_that_the_application_closes_everything)
{
	cr_assert_eq(status_of(close_and_probe), 0);
}

static void probe_without_descriptors(void)
{
	struct rlimit none = { 3, 3 };
	uint8_t *p = mmap(NULL, 64 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHILD_CHECK(close_range(3, 100, 0) == 0);
	CHILD_CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
	CHILD_CHECK(mem_probe(ADDR(p), 64 * PAGE, 0) == 0);
	CHILD_CHECK(mem_probe(ADDR(p), 64 * PAGE, 1) == -EFAULT);
	munmap(p + 63 * PAGE, PAGE);
	CHILD_CHECK(mem_probe(ADDR(p), 64 * PAGE, 0) == -EFAULT);
}

Test(mem, probe_without_descriptors_still_answers)
{
#ifdef __SANITIZE_ADDRESS__
	cr_skip("the address sanitizer itself opens a file after each fault");
#endif
	cr_assert_eq(status_of(probe_without_descriptors), 0);
}

static uint8_t *childs_pages;

static void unmap_and_probe(void)
{
	munmap(childs_pages, 64 * PAGE);
	CHILD_CHECK(mem_probe(ADDR(childs_pages), 64 * PAGE, 1) == -EFAULT);
}

Test(mem, probe_in_a_child_looks_at_the_child)
{
	childs_pages = pages(64, PROT_READ | PROT_WRITE);
	cr_assert_eq(mem_probe(ADDR(childs_pages), 64 * PAGE, 1), 0);
	cr_assert_eq(status_of(unmap_and_probe), 0);
}

/* --- faults that are not ours --- */

static sigjmp_buf escape;
static volatile sig_atomic_t seen_faults;

static void app_handler(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info, (void)context;
	seen_faults++;
	siglongjmp(escape, 1);
}

__attribute__((noipa, no_sanitize("address", "undefined")))
static void die_at(uint64_t addr)
{
	*(volatile uint8_t *)(uintptr_t)addr = 1;
}

/* The suite's init would come first, so this one has none. */
Test(mem_before, an_earlier_handler_still_gets_its_faults)
{
	struct sigaction action = { .sa_sigaction = app_handler, .sa_flags = SA_SIGINFO };
	uint8_t byte;

	sigaction(SIGSEGV, &action, NULL);
	cr_assert_eq(mem_guard_init(), 0);
	if (!sigsetjmp(escape, 1))
		die_at(GONE_ADDR);
	cr_assert_eq(seen_faults, 1);
	cr_assert_eq(mem_copy_in(&byte, GONE_ADDR, 1), -EFAULT);
	cr_assert_eq(seen_faults, 1);
	if (!sigsetjmp(escape, 1))
		die_at(GONE_ADDR);
	cr_assert_eq(seen_faults, 2);
}

static volatile int real_calls;

static int count_sigaction(int number, const struct sigaction *new, struct sigaction *old)
{
	real_calls++;
	return sigaction(number, new, old);
}

Test(mem_before, the_shims_sigaction_is_used)
{
	mem_real_sigaction = count_sigaction;
	cr_assert_eq(mem_guard_init(), 0);
	cr_assert_eq(real_calls, 2);
	cr_assert_eq(mem_guard_init(), 0);
	cr_assert_eq(real_calls, 2);
}

static void with_default_handlers(void)
{
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	CHILD_CHECK(mem_guard_init() == 0);
}

static void fault(void)
{
	with_default_handlers();
	die_at(GONE_ADDR);
}

static void raise_segv(void)
{
	with_default_handlers();
	raise(SIGSEGV);
}

Test(mem_before, other_faults_still_kill)
{
	int status = status_of(fault);

	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "status 0x%x", status);
	status = status_of(raise_segv);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "status 0x%x", status);
}

/* The kernel does not ask whether what it must not call wants a siginfo_t. */
static void raise_ignored(void)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN, .sa_flags = SA_SIGINFO };

	sigaction(SIGSEGV, &ignore, NULL);
	CHILD_CHECK(mem_guard_init() == 0);
	raise(SIGSEGV);
}

Test(mem_before, an_ignored_signal_stays_ignored)
{
	cr_assert_eq(status_of(raise_ignored), 0);
}

static void *fault_in_thread(void *unused)
{
	uint8_t byte;

	(void)unused;
	for (int i = 0; i < 1000; i++)
		if (mem_copy_in(&byte, GONE_ADDR, 1) != -EFAULT)
			return (void *)1;
	return NULL;
}

Test(mem, threads_fault_at_once)
{
	pthread_t other[4];
	void *bad;

	for (int i = 0; i < 4; i++)
		pthread_create(&other[i], NULL, fault_in_thread, NULL);
	for (int i = 0; i < 4; i++) {
		pthread_join(other[i], &bad);
		cr_assert_null(bad);
	}
}

Test(mem, a_fault_on_an_alternative_stack_returns)
{
	static uint8_t room[1 << 16];
	stack_t stack = { .ss_sp = room, .ss_size = sizeof room };
	uint8_t byte;

	cr_assert_eq(sigaltstack(&stack, NULL), 0);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(mem_copy_in(&byte, GONE_ADDR, 1), -EFAULT);
}
