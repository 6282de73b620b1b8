/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions of one fabric for tests of emu/share: owner and peer are members in one process where
 * that is enough; forked members come to harm.  Each case is a process of its own.
 */
#ifndef TESTS_UNIT_SHARE_WORLD_H
#define TESTS_UNIT_SHARE_WORLD_H
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "emu/mem/mem.h"
#include "emu/share/share_local.h"

enum { ENTRY = 128 };

static const uint8_t gids[1][16] = { { 0xfe, 0x80, [15] = 1 } };
static const size_t entry_bytes[SHARE_KIND_COUNT] = { ENTRY, 64, 64 };
static char name[64], dir[256];

/* One function; @qpn is of its own block. */
struct node {
	struct fabric *fabric;
	struct share *share;
	uint32_t qpn;
};

static inline void start(void)
{
	cr_assert_eq(mem_guard_init(), 0);
	snprintf(name, sizeof name, "unit-segment-%d", (int)getpid());
}

/* Nothing of the fabric stays behind. */
static inline void stop(void)
{
	DIR *d = opendir(dir);
	struct dirent *entry;

	while (d && (entry = readdir(d)))
		unlinkat(dirfd(d), entry->d_name, 0);
	if (d)
		closedir(d);
	rmdir(dir);
}

static inline int node_join(struct node *n)
{
	struct fabric_config config = { name, gids, 1 };

	*n = (struct node){ 0 };
	if (fabric_join(&config, &n->fabric))
		return -1;
	n->qpn = (uint32_t)fabric_lease(n->fabric, FABRIC_QPN) << 10 | 7;
	snprintf(dir, sizeof dir, "%s", fabric_dir(n->fabric));
	return 0;
}

/* Not every case takes down what it made; to the leak sanitizer this is no loss. */
static struct share *volatile kept[16];
static unsigned kept_count;

static inline int node_try(struct node *n)
{
	int rc = node_join(n);

	if (!rc)
		rc = share_create(n->fabric, entry_bytes, false, &n->share);
	kept[kept_count++ % 16] = n->share;
	return rc;
}

static inline struct node node_up(void)
{
	struct node n;

	cr_assert_eq(node_try(&n), 0);
	share_live_begin(n.share);
	return n;
}

/* Vouched for by the calling thread, which can do that for one only. */
static inline struct node peer_up(void)
{
	struct node n;

	cr_assert_eq(node_try(&n), 0);
	return n;
}

static inline void node_down(struct node *n)
{
	share_destroy(n->share);
	fabric_leave(n->fabric);
}

static inline struct share_peer *find(const struct node *from, const struct node *to)
{
	return share_peer_find(from->share, to->qpn);
}

static inline struct share_peer *begun(const struct node *from, const struct node *to)
{
	struct share_peer *peer = find(from, to);

	cr_assert(peer);
	cr_assert(share_begin(peer));
	return peer;
}

static inline uint64_t busy_word(const struct node *owner, unsigned slot)
{
	return atomic_load(&owner->share->header->busy[slot].word);
}

/* Lines of /proc/self/maps that are segments of this case. */
static inline int map_count(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	int count = 0;

	while (f && fgets(line, sizeof line, f))
		count += strstr(line, name) && strstr(line, "-share");
	if (f)
		fclose(f);
	return count;
}

static inline int entries_of(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *entry;
	int count = 0;

	while (d && (entry = readdir(d)))
		count += entry->d_name[0] != '.';
	if (d)
		closedir(d);
	return d ? count : -1;
}

/* --- forked members --- */

/* A member that does what a case wants of it.  It tells what it is and that it is there. */
struct guest {
	_Atomic int step;		/* the guest's */
	_Atomic int go;			/* ours */
	unsigned slot;
	uint32_t qpn, generation;
	uint64_t word;			/* for the case */
};

static inline struct guest *guest_page(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	cr_assert(page != MAP_FAILED);
	return page;
}

static inline pid_t fork_child(void)
{
	pid_t pid = fork();

	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static inline void wait_step(struct guest *g, int step)
{
	while (atomic_load(&g->step) < step)
		usleep(100);
}

static inline void wait_go(struct guest *g, int go)
{
	while (atomic_load(&g->go) < go)
		usleep(100);
}

static inline pid_t guest_start(struct guest *g, const struct node *host,
			 void (*main_of)(struct guest *g, struct node *self, uint32_t host_qpn))
{
	uint32_t host_qpn = host ? host->qpn : 0;
	pid_t pid = fork_child();
	struct node self;

	if (pid)
		return pid;
	if (node_try(&self))
		_exit(101);
	g->slot = fabric_self(self.fabric);
	g->generation = fabric_generation(self.fabric, g->slot);
	g->qpn = self.qpn;
	main_of(g, &self, host_qpn);
	_exit(0);
}

static inline int guest_end(pid_t pid)
{
	int status = -1;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static inline void guest_kill(pid_t pid)
{
	kill(pid, SIGKILL);
	guest_end(pid);
}

static inline void wait_stopped(pid_t pid)
{
	int status;

	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	cr_assert(WIFSTOPPED(status));
}

/* An owner that ends by @go 1 or signal; it keeps an entry. */
static inline void owner_main(struct guest *g, struct node *self, uint32_t host_qpn)
{
	uint32_t *entry = share_take(self->share, SHARE_RESPONDER, 1);

	(void)host_qpn;
	*entry = 77;
	share_live_begin(self->share);
	atomic_store(&g->step, 1);
	wait_go(g, 1);
	execl("/bin/sleep", "sleep", "100", NULL);
}

static inline struct share_peer *begun_guest(const struct node *n, struct guest *g)
{
	struct share_peer *peer;

	wait_step(g, 1);
	peer = share_peer_find(n->share, g->qpn);
	cr_assert(peer && share_begin(peer));
	return peer;
}
#endif
