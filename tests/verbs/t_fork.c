/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which pages a forked child gets.
 *
 * Method: the kernel is asked for the flags of a page (smaps); "dc" is what a child doesn't get.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "verbs/fork.h"

#define PAGE	4096u
#define PAGES	16u

static uint8_t *memory;

static bool is_kept(const uint8_t *at)
{
	FILE *smaps = fopen("/proc/self/smaps", "re");
	bool is_around = false, found = false;
	unsigned long start, end;
	char line[1024];

	cr_assert(smaps);
	while (fgets(line, sizeof line, smaps)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			is_around = (uintptr_t)at >= start && (uintptr_t)at < end;
		if (is_around && !strncmp(line, "VmFlags:", 8))
			found = strstr(line, " dc") != NULL;
	}
	fclose(smaps);
	return found;
}

/* One character a page: '#' is kept from children. */
static void check_pages(const char *want)
{
	char is[PAGES + 1] = "";

	for (unsigned i = 0; i < PAGES; i++)
		is[i] = is_kept(memory + i * PAGE) ? '#' : '.';
	cr_assert_str_eq(is, want);
}

static void keep(unsigned first, unsigned count)
{
	cr_assert_eq(vb_fork_keep(memory + first * PAGE, count * PAGE), 0);
}

static void release(unsigned first, unsigned count)
{
	vb_fork_release(memory + first * PAGE, count * PAGE);
}

static void setup(void)
{
	unsetenv("RDMAV_FORK_SAFE");
	unsetenv("IBV_FORK_SAFE");
	unsetenv("RDMAV_HUGEPAGES_SAFE");
	memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	cr_assert(memory != MAP_FAILED);
}

TestSuite(fork, .init = setup);

Test(fork, costs_nothing_unless_asked_for)
{
	cr_assert_eq(ibv_is_fork_initialized(), IBV_FORK_DISABLED);
	keep(0, 4);
	check_pages("................");
}

Test(fork, comes_too_late_once_there_is_memory)
{
	keep(0, 1);
	cr_assert_eq(ibv_fork_init(), EINVAL);
	cr_assert_eq(ibv_is_fork_initialized(), IBV_FORK_DISABLED);
}

Test(fork, may_be_asked_for_twice)
{
	cr_assert_eq(ibv_fork_init(), 0);
	keep(0, 1);
	cr_assert_eq(ibv_fork_init(), 0);
	cr_assert_eq(ibv_is_fork_initialized(), IBV_FORK_ENABLED);
}

Test(fork, the_environment_asks)
{
	setenv("RDMAV_FORK_SAFE", "1", 1);
	keep(1, 1);
	check_pages(".#..............");
	cr_assert_eq(ibv_is_fork_initialized(), IBV_FORK_ENABLED);
}

Test(fork, overlaps_are_counted)
{
	cr_assert_eq(ibv_fork_init(), 0);
	keep(2, 6);
	keep(4, 8);
	check_pages("..##########....");
	keep(4, 1);
	release(2, 6);
	check_pages("....########....");
	release(4, 8);
	check_pages("....#...........");
	release(4, 1);
	check_pages("................");
}

Test(fork, a_range_in_a_range)
{
	cr_assert_eq(ibv_fork_init(), 0);
	keep(0, 16);
	keep(5, 2);
	release(0, 16);
	check_pages(".....##.........");
	release(5, 2);
	check_pages("................");
}

/* Bytes at the edges of two pages are both of them; a page stays as long as anybody needs it. */
Test(fork, whole_pages)
{
	cr_assert_eq(ibv_fork_init(), 0);
	cr_assert_eq(vb_fork_keep(memory + 3 * PAGE - 1, 2), 0);
	cr_assert_eq(vb_fork_keep(memory + 3 * PAGE + 100, 8), 0);
	check_pages("..##............");
	vb_fork_release(memory + 3 * PAGE - 1, 2);
	check_pages("...#............");
	vb_fork_release(memory + 3 * PAGE + 100, 8);
	check_pages("................");
}

Test(fork, neighbours_are_put_together_and_taken_apart)
{
	cr_assert_eq(ibv_fork_init(), 0);
	for (unsigned i = 0; i < PAGES; i++)
		keep(i, 1);
	for (unsigned i = 0; i < PAGES; i += 2)
		release(i, 1);
	check_pages(".#.#.#.#.#.#.#.#");
	for (unsigned i = 1; i < PAGES; i += 2)
		release(i, 1);
	check_pages("................");
}

Test(fork, what_was_not_kept_is_released_for_nothing)
{
	cr_assert_eq(ibv_fork_init(), 0);
	release(1, 3);
	keep(1, 1);
	check_pages(".#..............");
	release(1, 1);
	release(1, 1);
	keep(1, 1);
	check_pages(".#..............");
}

/* Where there is a hole nothing is kept, not even the pages in front of it. */
Test(fork, a_hole_is_refused)
{
	cr_assert_eq(ibv_fork_init(), 0);
	keep(0, 1);
	munmap(memory + 8 * PAGE, 2 * PAGE);
	cr_assert_eq(vb_fork_keep(memory, 12 * PAGE), ENOMEM);
	check_pages("#...............");
	release(0, 1);
	check_pages("................");
}

Test(fork, no_bytes_and_too_many)
{
	cr_assert_eq(ibv_fork_init(), 0);
	cr_assert_eq(vb_fork_keep(NULL, 77), 0);
	cr_assert_eq(vb_fork_keep(memory, 0), 0);
	cr_assert_eq(vb_fork_keep(memory, SIZE_MAX), EINVAL);
	check_pages("................");
}
