/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files behind rules.h have in common.
 */
#ifndef EMU_FABRIC_RULES_LOCAL_H
#define EMU_FABRIC_RULES_LOCAL_H
#include <sys/types.h>
#include "emu/fabric/rule_set.h"
#include "emu/fabric/rules_file.h"

/* Records of one size that are without a rule.  There is always room for all that were made. */
struct rules_free {
	uint32_t *unit;
	uint32_t count, room, made;
};

/* What the follower knows of a member. */
struct rules_member {
	uint32_t generation;		/* the rest is about this one */
	bool is_behind;			/* all records are to be read */
	bool is_refused;		/* its file made no sense */
	uint64_t change;		/* so many of its changes have been followed */
	struct rules_file file;
	struct rule_set told;
};

struct rules {
	struct fabric *fabric;
	pid_t pid;			/* a forked child has another one */
	uint32_t node;

	/* Our own */
	struct rules_file file;
	uint64_t change;		/* as rule_change; that one may be scribbled on */
	struct rule_set posted;
	struct rules_free free[RULES_BLOCKS + 1];	/* by number of blocks */

	/* Everybody's, as followed */
	uint32_t changes, members;	/* rule_changes, fabric_changes() */
	bool is_behind;			/* something could not be told, or not yet */
	struct rules_member member[FABRIC_MEMBERS_MAX];
};

void rules_path(const struct rules *r, unsigned slot, uint32_t generation, char *path,
		size_t bytes);

/* rules_follow.c */
void rules_members_forget(struct rules *r);
#endif
