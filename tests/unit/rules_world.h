/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members of a fabric that post and follow rules, for tests of emu/fabric/rules.h.  Whoever follows
 * keeps a view of what it was told, and complains about what can't be: a rule that comes twice, one
 * that goes without having come, or one whose bytes are not those of its number and level.
 * Each case is a process of its own and has a fabric of its own.
 */
#ifndef TESTS_UNIT_RULES_WORLD_H
#define TESTS_UNIT_RULES_WORLD_H
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "emu/fabric/rules.h"
#include "emu/fabric/rules_file.h"
#include "emu/fabric/segment.h"
#include "emu/mem/mem.h"

#ifndef NUMBERS			/* that rules may have */
#define NUMBERS		10000u
#endif
#define BLOCKS_ALL	((1u << RULES_BLOCKS) - 1)

struct told {
	bool is_there;
	uint32_t level;
	uint64_t order;
};

/* What one follower knows of one member. */
struct sight {
	struct told *told;		/* by number; NULL: nothing was ever told */
	uint32_t count, node;
	unsigned gone;
};

struct view {
	struct sight member[FABRIC_MEMBERS_MAX];
	unsigned long added, removed, wrong;
	unsigned fail_every;		/* not 0: each so many-th rule is answered with: */
	int fail_rc;
};

struct node {
	struct fabric *fabric;
	struct rules *rules;
	struct view *view;
	uint32_t host;
};

static char name[64], dir[256];

static inline void start(void)
{
	cr_assert_eq(mem_guard_init(), 0);
	snprintf(name, sizeof name, "unit-rules-%d", (int)getpid());
}

static inline int node_try(struct node *n, uint32_t host)
{
	static const uint8_t gid[1][16] = { { 0xfe, 0x80, [15] = 1 } };
	struct fabric_config config = { name, gid, 1 };
	int rc;

	memset(n, 0, sizeof *n);
	n->host = host;
	n->view = calloc(1, sizeof *n->view);
	rc = fabric_join(&config, &n->fabric);
	if (!rc)
		rc = rules_open(n->fabric, host, &n->rules);
	if (!rc)
		snprintf(dir, sizeof dir, "%s", fabric_dir(n->fabric));
	return rc;
}

static inline struct node node_up(uint32_t host)
{
	struct node n;

	cr_assert_eq(node_try(&n, host), 0);
	return n;
}

static inline void view_free(struct view *view)
{
	for (unsigned i = 0; i < FABRIC_MEMBERS_MAX; i++)
		free(view->member[i].told);
	free(view);
}

static inline void node_down(struct node *n)
{
	rules_close(n->rules);
	fabric_leave(n->fabric);
	view_free(n->view);
}

static inline unsigned member_of(const struct node *n)
{
	return fabric_self(n->fabric);
}

/* A child that does not outlive a case that failed or hung. */
static inline pid_t fork_child(void)
{
	pid_t pid = fork();

	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

/* --- rules: all that they are follows from their number and level --- */

static inline uint32_t level_of(uint32_t salt, uint32_t blocks)
{
	return salt << RULES_BLOCKS | blocks;
}

static inline unsigned rule_bytes(uint32_t number, uint32_t level, uint8_t *mask, uint8_t *value)
{
	unsigned count = RULES_BLOCK_BYTES * (unsigned)__builtin_popcount(level & BLOCKS_ALL);

	for (unsigned i = 0; i < count; i++) {
		mask[i] = (uint8_t)(number * 31 + level * 7 + i);
		value[i] = (uint8_t)(mask[i] ^ 0x5a);
	}
	return count;
}

static inline int try_post(struct node *n, uint32_t number, uint32_t level, uint64_t *order)
{
	uint8_t mask[RULES_BLOCKS * RULES_BLOCK_BYTES], value[sizeof mask];
	struct fabric_rule rule = {
		.number = number, .level = level, .blocks = level & BLOCKS_ALL,
		.continues = (number ^ level) & 1, .mask = mask, .value = value,
	};

	rule_bytes(number, level, mask, value);
	return rules_post(n->rules, &rule, order);
}

static inline uint64_t post(struct node *n, uint32_t number, uint32_t level)
{
	uint64_t order = 0;

	cr_assert_eq(try_post(n, number, level, &order), 0);
	return order;
}

static inline bool is_whole(const struct fabric_rule *rule)
{
	uint8_t mask[RULES_BLOCKS * RULES_BLOCK_BYTES], value[sizeof mask];
	unsigned count = rule_bytes(rule->number, rule->level, mask, value);

	return rule->blocks == (rule->level & BLOCKS_ALL) &&
	       rule->continues == ((rule->number ^ rule->level) & 1) &&
	       !memcmp(rule->mask, mask, count) && !memcmp(rule->value, value, count);
}

/* --- following --- */

static inline int view_added(void *ctx, unsigned member, uint32_t node,
			     const struct fabric_rule *rule)
{
	struct view *view = ctx;
	struct sight *sight = &view->member[member];
	struct told *told;

	cr_assert(rule->number && !(rule->blocks & ~BLOCKS_ALL), "whatever the file says");
	view->added++;
	if (view->fail_every && view->added % view->fail_every == 0)
		return view->fail_rc;
	if (!sight->told)
		sight->told = calloc(NUMBERS, sizeof *sight->told);
	if (rule->number >= NUMBERS || !is_whole(rule) || sight->told[rule->number].is_there ||
	    (sight->count && sight->node != node)) {
		view->wrong++;
		return 0;
	}
	told = &sight->told[rule->number];
	*told = (struct told){ true, rule->level, rule->order };
	sight->count++;
	sight->node = node;
	return 0;
}

static inline void view_removed(void *ctx, unsigned member, uint32_t node, uint32_t number)
{
	struct view *view = ctx;
	struct sight *sight = &view->member[member];

	view->removed++;
	if (number >= NUMBERS || !sight->told || !sight->told[number].is_there ||
	    sight->node != node) {
		view->wrong++;
		return;
	}
	sight->told[number].is_there = false;
	sight->count--;
}

static inline void view_gone(void *ctx, unsigned member, uint32_t node)
{
	struct view *view = ctx;
	struct sight *sight = &view->member[member];

	if (!sight->count || sight->node != node)
		view->wrong++;
	if (sight->told)
		memset(sight->told, 0, NUMBERS * sizeof *sight->told);
	sight->count = 0;
	sight->gone++;
}

static inline void follow(struct node *n)
{
	static const struct rules_follower follower = { view_added, view_removed, view_gone };

	rules_follow(n->rules, &follower, n->view);
}

static inline uint32_t count_of(const struct node *n, const struct node *of)
{
	return n->view->member[member_of(of)].count;
}

static inline const struct told *told_of(const struct node *n, const struct node *of,
					 uint32_t number)
{
	static const struct told nothing;
	const struct sight *sight = &n->view->member[member_of(of)];

	return sight->told ? &sight->told[number] : &nothing;
}

/* --- the file --- */

static inline void rules_path_of(const struct node *n, char *path, size_t bytes)
{
	unsigned slot = member_of(n);

	snprintf(path, bytes, "%s/%u-%u-rules", dir, slot, fabric_generation(n->fabric, slot));
}

/* -1: there is none */
static inline long file_bytes(const struct node *n)
{
	char path[400];
	struct stat st;

	rules_path_of(n, path, sizeof path);
	return stat(path, &st) ? -1 : (long)st.st_size;
}

/* -1: the directory is not there. */
static inline int file_count(void)
{
	DIR *d = opendir(dir);
	struct dirent *entry;
	int count = 0;

	if (!d)
		return -1;
	while ((entry = readdir(d)))
		count += entry->d_name[0] != '.';
	closedir(d);
	return count;
}

static inline struct rules_head *map_file(const struct node *n)
{
	char path[400];
	void *at;
	int fd;

	rules_path_of(n, path, sizeof path);
	fd = open(path, O_RDWR);
	cr_assert(fd >= 0);
	at = mmap(NULL, (size_t)file_bytes(n), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert(at != MAP_FAILED);
	close(fd);
	return at;
}

static inline struct rules_record *record_of(struct rules_head *head, uint32_t unit)
{
	return (struct rules_record *)((uint8_t *)(head + 1) + (size_t)unit * RULES_UNIT_BYTES);
}
#endif
