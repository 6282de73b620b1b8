/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A member's own rules: posting and withdrawing them; see rules_file.h for what others see of it.
 */
#include "emu/fabric/rules.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "emu/fabric/rules_local.h"
#include "emu/fabric/segment.h"
#include "include/base/cancel.h"

#define FREE_ROOM_FIRST	64u

int rules_open(struct fabric *f, uint32_t node, struct rules **out)
{
	struct rules *r = calloc(1, sizeof *r);

	assert(node <= RULES_NODE_MAX);
	if (!r)
		return -ENOMEM;
	r->fabric = f;
	r->pid = getpid();
	r->node = node;
	r->is_behind = true;		/* the first call of rules_follow() looks at everybody */
	*out = r;
	return 0;
}

void rules_path(const struct rules *r, unsigned slot, uint32_t generation, char *path,
		size_t bytes)
{
	snprintf(path, bytes, "%s/%u-%u-rules", fabric_dir(r->fabric), slot, generation);
}

static void own_path(const struct rules *r, char *path, size_t bytes)
{
	rules_path(r, r->fabric->self, seat_generation(r->fabric->seat), path, bytes);
}

void rules_close(struct rules *r)
{
	char path[512];

	if (r->file.head && r->pid == getpid()) {
		own_path(r, path, sizeof path);
		unlink(path);
	}
	rules_file_close(&r->file);
	rule_set_clear(&r->posted);
	for (unsigned blocks = 0; blocks <= RULES_BLOCKS; blocks++)
		free(r->free[blocks].unit);
	rules_members_forget(r);
	free(r);
}

/* One record more is made: it will be free some day. */
static int free_reserve(struct rules_free *f)
{
	uint32_t room = f->room ? f->room * 2 : FREE_ROOM_FIRST, *unit;

	if (f->made < f->room)
		return 0;
	unit = realloc(f->unit, room * sizeof *unit);
	if (!unit)
		return -ENOMEM;
	f->unit = unit;
	f->room = room;
	return 0;
}

static int record_make(struct rules *r, struct rules_free *f, uint32_t units, uint32_t *unit_out)
{
	char path[512];
	int rc = free_reserve(f);

	if (rc)
		return rc;
	own_path(r, path, sizeof path);
	if (!r->file.head)
		rc = rules_file_create(&r->file, path, r->node);
	if (!rc)
		rc = rules_file_extend(&r->file, path, units, unit_out);
	if (!rc)
		f->made++;
	return rc;
}

static struct rules_free *free_of(struct rules *r, uint32_t blocks)
{
	return &r->free[__builtin_popcount(blocks)];
}

/* A record for a rule that looks at these blocks. */
static int record_take(struct rules *r, uint32_t blocks, uint32_t *unit_out)
{
	struct rules_free *f = free_of(r, blocks);
	int rc, held;

	if (f->count) {
		*unit_out = f->unit[--f->count];
		return 0;
	}
	held = cancel_hold();		/* callers hold locks */
	rc = record_make(r, f, rules_units(blocks), unit_out);
	cancel_release(held);
	return rc;
}

/* The record has changed: tell who follows. */
static void publish(struct rules *r, uint32_t number, uint32_t unit)
{
	struct fabric_segment *s = r->fabric->segment;

	rules_file_log(&r->file, r->change++, number, unit);
	atomic_store_explicit(&s->rule_change[r->fabric->self], r->change, memory_order_release);
	atomic_fetch_add_explicit(&s->rule_changes, 1, memory_order_release);
}

int rules_post(struct rules *r, const struct fabric_rule *rule, uint64_t *order_out)
{
	uint64_t order;
	uint32_t unit;
	int rc;

	assert(rule->number && !(rule->blocks >> RULES_BLOCKS));
	assert(!rule_set_find(&r->posted, rule->number));
	rc = rule_set_reserve(&r->posted);
	if (!rc)
		rc = record_take(r, rule->blocks, &unit);
	if (rc)
		return rc;
	order = atomic_fetch_add(&r->fabric->segment->rule_order, 1) + 1;
	rules_file_write(&r->file, unit, rule, order);
	rule_set_add(&r->posted, rule->number, unit, order)->blocks = (uint8_t)rule->blocks;
	publish(r, rule->number, unit);
	*order_out = order;
	return 0;
}

void rules_withdraw(struct rules *r, uint32_t number)
{
	const struct rule_at *rule = rule_set_find(&r->posted, number);
	struct rules_free *f;
	uint32_t unit;

	if (!rule)
		return;
	unit = rule->unit;
	f = free_of(r, rule->blocks);
	f->unit[f->count++] = unit;
	rule_set_remove(&r->posted, number);
	rules_file_write(&r->file, unit, NULL, 0);
	publish(r, number, unit);
}

bool rules_have_changed(const struct rules *r)
{
	return atomic_load_explicit(&r->fabric->segment->rule_changes, memory_order_acquire) !=
		       r->changes ||
	       fabric_changes(r->fabric) != r->members || r->is_behind;
}
