/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hash of rules by number, chained through an array that has no holes.
 */
#include "emu/fabric/rule_set.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE		UINT32_MAX
#define ROOM_FIRST	64u

static uint32_t *chain_of(const struct rule_set *s, uint32_t number)
{
	return &s->first[(number * UINT32_C(0x9e3779b1) >> 8) & (s->room - 1)];
}

/* What refers to the rule, or the end of the chain that it would be in. */
static uint32_t *link_of(const struct rule_set *s, uint32_t number)
{
	uint32_t *link = chain_of(s, number);

	while (*link != NONE && s->rule[*link].number != number)
		link = &s->rule[*link].next;
	return link;
}

static void chain(struct rule_set *s, uint32_t at)
{
	uint32_t *first = chain_of(s, s->rule[at].number);

	s->rule[at].next = *first;
	*first = at;
}

int rule_set_reserve(struct rule_set *s)
{
	uint32_t room = s->room ? s->room * 2 : ROOM_FIRST;
	uint32_t *first;
	struct rule_at *rule;

	if (s->count < s->room)
		return 0;
	first = malloc(room * sizeof *first);
	rule = first ? realloc(s->rule, room * sizeof *rule) : NULL;
	if (!rule) {
		free(first);
		return -ENOMEM;
	}
	free(s->first);
	s->first = memset(first, 0xff, room * sizeof *first);
	s->rule = rule;
	s->room = room;
	for (uint32_t at = 0; at < s->count; at++)
		chain(s, at);
	return 0;
}

struct rule_at *rule_set_add(struct rule_set *s, uint32_t number, uint32_t unit, uint64_t order)
{
	assert(s->count < s->room);
	s->rule[s->count] = (struct rule_at){ .number = number, .unit = unit, .order = order };
	chain(s, s->count);
	return &s->rule[s->count++];
}

struct rule_at *rule_set_find(const struct rule_set *s, uint32_t number)
{
	uint32_t at = s->room ? *link_of(s, number) : NONE;

	return at == NONE ? NULL : &s->rule[at];
}

void rule_set_remove(struct rule_set *s, uint32_t number)
{
	uint32_t *link = link_of(s, number), at = *link, last = s->count - 1;

	assert(at != NONE);
	*link = s->rule[at].next;
	if (at != last) {
		*link_of(s, s->rule[last].number) = at;
		s->rule[at] = s->rule[last];
	}
	s->count = last;
}

void rule_set_clear(struct rule_set *s)
{
	free(s->rule);
	free(s->first);
	memset(s, 0, sizeof *s);
}
