/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cases of `disorder`: limits that are reached after the device was opened.  The verb that
 * needs more answers an errno, and what works already goes on.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include "disorder.h"

#define OPERATIONS	100
#define BIG_BYTES	(1u << 20)

static void limit(int resource, rlim_t most)
{
	struct rlimit limits;

	if (getrlimit(resource, &limits))
		wrong("getrlimit: %s", strerror(errno));
	limits.rlim_cur = most;
	if (setrlimit(resource, &limits))
		wrong("setrlimit: %s", strerror(errno));
}

/* Registers more than a few pages: the emulator looks up the list of mappings. */
static void register_big(struct world *w)
{
	void *at = mmap(NULL, BIG_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = at == MAP_FAILED ? NULL :
			    ibv_reg_mr(w->node.pd, at, BIG_BYTES, IBV_ACCESS_LOCAL_WRITE);

	if (mr)
		ibv_dereg_mr(mr);
	if (at != MAP_FAILED)
		munmap(at, BIG_BYTES);
}

static void case_no_descriptors(void)
{
	struct world w;
	int fd;

	world_open(&w, true);
	world_run(&w, OPERATIONS);
	fd = dup(2);
	close(fd);
	limit(RLIMIT_NOFILE, (rlim_t)fd);
	if (ibv_create_comp_channel(w.node.context) || errno != EMFILE)
		wrong("ibv_create_comp_channel without a descriptor: %s", strerror(errno));
	register_big(&w);
	world_run(&w, OPERATIONS);
	world_close(&w);
}

/* How much is mapped now. */
static rlim_t address_space(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	if (!file || fscanf(file, "%lu", &pages) != 1)
		wrong("/proc/self/statm can't be read");
	fclose(file);
	return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* Objects until there is no memory for another one. */
static void case_no_memory(void)
{
	struct ibv_cq *cq[256];
	unsigned count = 0;
	struct world w;

	world_open(&w, true);
	world_run(&w, OPERATIONS);
	limit(RLIMIT_AS, address_space() + (4u << 20));
	while (count < 256 && (cq[count] = ibv_create_cq(w.node.context, 4095, NULL, NULL, 0)))
		count++;
	if (count == 256 || errno != ENOMEM)
		wrong("ibv_create_cq without memory: %u made, %s", count, strerror(errno));
	register_big(&w);
	world_run(&w, OPERATIONS);
	while (count)
		ibv_destroy_cq(cq[--count]);
	limit(RLIMIT_AS, RLIM_INFINITY);
	world_run(&w, OPERATIONS);
	world_close(&w);
}

/* No ring can be made when the first packet wants to leave. */
static void case_no_memory_for_rings(void)
{
	struct world w;

	world_open(&w, true);
	limit(RLIMIT_AS, address_space());
	while (!w.link[2].has_failed && w.link[2].done < OPERATIONS)
		world_turn(&w);
	if (w.link[2].has_failed && w.link[2].first_error != IBV_WC_RETRY_EXC_ERR)
		wrong("link 2 failed: %s", ibv_wc_status_str(w.link[2].first_error));
	world_drop_remote(&w);
	limit(RLIMIT_AS, RLIM_INFINITY);
	world_run(&w, OPERATIONS);
	world_close(&w);
}

const struct test_case limit_cases[] = {
	{ "no-descriptors", case_no_descriptors },
	{ "no-memory", case_no_memory },
	{ "no-memory-for-rings", case_no_memory_for_rings },
	{ 0 },
};
