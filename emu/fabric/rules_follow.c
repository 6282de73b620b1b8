/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Following the rules of all members: what has changed in their files is told, each rule that comes
 * and each that goes once.
 *
 * What was told is known by number and order, so that a look at all records, which is needed where
 * changes were missed, tells no more than the changes would have.
 */
#include <errno.h>
#include <string.h>
#include "emu/fabric/rules.h"
#include "emu/fabric/rules_local.h"
#include "emu/fabric/segment.h"
#include "include/base/cancel.h"

/* One member is being followed. */
struct follow {
	struct rules *rules;
	unsigned slot;
	struct rules_member *member;
	const struct rules_follower *follower;
	void *ctx;
};

static uint64_t change_count(const struct follow *w)
{
	const struct fabric_segment *s = w->rules->fabric->segment;

	return atomic_load_explicit(&s->rule_change[w->slot], memory_order_acquire);
}

/* --- telling --- */

static void tell_removed(const struct follow *w, uint32_t number)
{
	struct rules_member *m = w->member;
	bool is_wanted = !rule_set_find(&m->told, number)->is_unwanted;

	rule_set_remove(&m->told, number);
	if (is_wanted)
		w->follower->removed(w->ctx, w->slot, m->file.node, number);
}

/* In case of no memory all of it again, next time. */
static void tell_added(const struct follow *w, uint32_t unit, const struct fabric_rule *rule)
{
	struct rules_member *m = w->member;
	int rc = rule_set_reserve(&m->told);

	if (!rc)
		rc = w->follower->added(w->ctx, w->slot, m->file.node, rule);
	if (rc == -ENOMEM)
		m->is_behind = true;
	else
		rule_set_add(&m->told, rule->number, unit, rule->order)->is_unwanted = rc != 0;
}

/* The member has left, died, or writes what makes no sense. */
static void tell_gone(const struct follow *w)
{
	struct rules_member *m = w->member;
	uint32_t node = m->file.node;
	bool had_rules = m->told.count;

	rule_set_clear(&m->told);
	rules_file_close(&m->file);
	if (had_rules)
		w->follower->gone(w->ctx, w->slot, node);
}

/* --- one number in one record --- */

/* There is no such rule in that record any more, or not now. */
static void settle_absent(const struct follow *w, uint32_t unit, uint32_t number)
{
	const struct rule_at *told = rule_set_find(&w->member->told, number);

	if (told && told->unit == unit)
		tell_removed(w, number);
}

/* @record is there, and is to be known.  -EBADMSG; -EAGAIN it has just gone, which is still to be
 * counted. */
static int settle_present(const struct follow *w, uint32_t unit, const struct rules_record *record)
{
	const struct rule_at *told = rule_set_find(&w->member->told, record->number);
	uint8_t bytes[RULES_RULE_BYTES_MAX];
	struct fabric_rule rule = {
		.number = record->number, .level = record->level, .blocks = record->blocks,
		.continues = record->continues, .order = record->order,
		.mask = bytes, .value = bytes + rules_value_offset(record->blocks),
	};
	int rc;

	if (told && told->order == record->order)
		return 0;
	rc = rules_file_read_blocks(&w->member->file, unit, record, bytes);
	if (rc)
		return rc;
	if (told)
		tell_removed(w, rule.number);
	tell_added(w, unit, &rule);
	return 0;
}

/* Make what is told of @number true, as far as that record is concerned.  -EBADMSG */
static int settle(const struct follow *w, uint32_t unit, uint32_t number)
{
	struct rules_record record;
	int rc = rules_file_read(&w->member->file, unit, &record);

	if (!rc && record.number == number)
		rc = settle_present(w, unit, &record);
	else if (rc != -EBADMSG)
		settle_absent(w, unit, number);
	return rc == -EBADMSG ? rc : 0;
}

/* --- one member --- */

/* The changes up to @count.  -EAGAIN: they are not there any more; -EBADMSG */
static int follow_changes(const struct follow *w, uint64_t count)
{
	struct rules_member *m = w->member;

	for (; m->change != count; m->change++) {
		uint32_t number, unit;
		int rc = rules_file_change(&m->file, m->change, &number, &unit);

		if (!rc && change_count(w) - m->change >= RULES_CHANGES)
			return -EAGAIN;
		if (!rc && number)
			rc = settle(w, unit, number);
		if (rc)
			return rc;
	}
	return 0;
}

/* All records: first whether what was told is still true, then what there is.  -EBADMSG */
static int follow_records(const struct follow *w)
{
	struct rules_member *m = w->member;
	struct rules_record record;
	int rc = 0;

	/* From the end, where those that are told anew are put. */
	for (uint32_t at = m->told.count; at-- > 0 && !rc;)
		rc = settle(w, m->told.rule[at].unit, m->told.rule[at].number);
	for (uint32_t unit = 0; unit < m->file.end && !rc; unit += record.units) {
		rc = rules_file_read(&m->file, unit, &record);
		if (!rc && record.number)
			rc = settle_present(w, unit, &record);
		if (rc == -EAGAIN)
			rc = 0;
	}
	return rc;
}

static int member_open(const struct follow *w)
{
	struct rules_member *m = w->member;
	char path[512];
	int rc, held = cancel_hold();	/* callers hold locks */

	rules_path(w->rules, w->slot, m->generation, path, sizeof path);
	rc = rules_file_open(&m->file, path);
	cancel_release(held);
	m->is_behind = true;
	return rc;
}

static int catch_up(const struct follow *w, uint64_t count)
{
	struct rules_member *m = w->member;
	int rc = m->file.head ? 0 : member_open(w);

	if (!rc)
		rc = rules_file_look(&m->file);
	if (rc)
		return rc;
	rc = m->is_behind ? -EAGAIN : follow_changes(w, count);
	if (rc != -EAGAIN)
		return rc;
	m->is_behind = false;
	m->change = count;
	return follow_records(w);
}

static void member_begin(const struct follow *w, uint32_t generation)
{
	struct rules_member *m = w->member;

	tell_gone(w);
	*m = (struct rules_member){ .generation = generation };
}

static void member_follow(const struct follow *w)
{
	uint32_t generation = fabric_generation(w->rules->fabric, w->slot);
	struct rules_member *m = w->member;
	uint64_t count;
	int rc;

	if (m->generation != generation)
		member_begin(w, generation);
	count = change_count(w);
	if (!generation || m->is_refused || (count == m->change && !m->is_behind))
		return;
	rc = catch_up(w, count);
	if (rc == -EBADMSG) {
		tell_gone(w);
		m->is_refused = true;
	} else if (rc != -ENOENT && (rc || m->is_behind)) {
		w->rules->is_behind = true;
	}
}

void rules_follow(struct rules *r, const struct rules_follower *follower, void *ctx)
{
	struct fabric_segment *s = r->fabric->segment;

	r->changes = atomic_load_explicit(&s->rule_changes, memory_order_acquire);
	r->members = fabric_changes(r->fabric);
	r->is_behind = false;
	for (unsigned slot = 0; slot < FABRIC_MEMBERS_MAX; slot++) {
		struct follow w = { r, slot, &r->member[slot], follower, ctx };

		member_follow(&w);
	}
}

void rules_members_forget(struct rules *r)
{
	for (unsigned slot = 0; slot < FABRIC_MEMBERS_MAX; slot++) {
		rules_file_close(&r->member[slot].file);
		rule_set_clear(&r->member[slot].told);
	}
}
