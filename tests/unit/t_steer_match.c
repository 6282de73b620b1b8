/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which rules a frame matches: the rules of match.h one by one, and then the hash tables against
 * a look at every rule.
 *
 * The property case takes masks, values and levels from so few that most keys match several rules.
 */
#include <criterion/criterion.h>
#include <string.h>
#include "emu/steer/match.h"

enum { IDS_MAX = 256, LEVEL = STEER_LEVEL_NORMAL + 5 };

static struct steer_table *table;
static uint64_t order;

static void begin(void)
{
	cr_assert_eq(steer_table_create(&table), 0);
}

static void end(void)
{
	steer_table_destroy(table);
}

TestSuite(steer_match, .init = begin, .fini = end);

static uint32_t random_word(void)
{
	static uint64_t state = 0x9e3779b97f4a7c15;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32);
}

/* A rule about one byte of the key. */
static struct steer_rule rule_of(uint64_t id, unsigned byte, uint8_t mask, uint8_t value)
{
	struct steer_rule r = { .level = LEVEL, .id = id, .order = ++order };

	r.mask.bytes[byte] = mask;
	r.value.bytes[byte] = value;
	return r;
}

static void add(struct steer_rule r)
{
	cr_assert_eq(steer_add(table, &r), 0);
}

static union steer_key key_of(unsigned byte, uint8_t value)
{
	union steer_key key = { .bytes = { 0 } };

	key.bytes[byte] = value;
	return key;
}

#define COUNT(...) (sizeof(uint64_t[]){ __VA_ARGS__ } / sizeof(uint64_t))
/* The look-up and the plain one say these ids, in this order. */
#define EXPECT(key, ...) expect(__LINE__, key, COUNT(__VA_ARGS__), (uint64_t[]){ __VA_ARGS__ })
#define EXPECT_NONE(key) expect(__LINE__, key, 0, NULL)

static void expect(int line, union steer_key key, unsigned count, const uint64_t *id)
{
	uint64_t got[IDS_MAX], plain[IDS_MAX];

	cr_assert_eq(steer_lookup(table, &key, got, IDS_MAX), count, "line %d", line);
	cr_assert_eq(steer_lookup_plain(table, &key, plain, IDS_MAX), count, "line %d", line);
	for (unsigned i = 0; i < count; i++)
		cr_assert(got[i] == id[i] && plain[i] == id[i], "line %d: %lu and %lu at %u", line,
			  (unsigned long)got[i], (unsigned long)plain[i], i);
}

Test(steer_match, empty_table_matches_nothing)
{
	EXPECT_NONE(key_of(0, 0));
	cr_assert_eq(steer_blocks(table), 0);
	cr_assert_not(steer_remove(table, 1));
}

Test(steer_match, only_bits_of_the_mask_count)
{
	add(rule_of(1, 3, 0xf0, 0x5a));
	EXPECT(key_of(3, 0x50), 1);
	EXPECT(key_of(3, 0x5f), 1);
	EXPECT_NONE(key_of(3, 0x6a));
	EXPECT_NONE(key_of(4, 0x50));
}

Test(steer_match, empty_mask_matches_everything)
{
	add(rule_of(1, 0, 0, 7));
	EXPECT(key_of(9, 9), 1);
	EXPECT(key_of(0, 0), 1);
	cr_assert_eq(steer_blocks(table), 0);
	cr_assert(steer_remove(table, 1));
	EXPECT_NONE(key_of(9, 9));
}

/* Of two masks one may be the beginning of the other. */
struct gathered {
	uint64_t *id;
	unsigned max, count;
};

static bool gather(const void *ctx, uint64_t id)
{
	struct gathered *g = (void *)(uintptr_t)ctx;

	if (g->count < g->max)
		g->id[g->count] = id;
	g->count++;
	return false;
}

/* How many there are; @max of them, by age. */
static unsigned equals(const struct steer_rule *rule, uint64_t *id, unsigned max)
{
	struct gathered g = { id, max, 0 };
	uint64_t none;

	cr_assert_not(steer_equal(table, rule, gather, &g, &none));
	return g.count;
}

static bool is_even(const void *ctx, uint64_t id)
{
	(void)ctx;
	return id % 2 == 0;
}

Test(steer_match, of_equal_rules_the_oldest_that_fits_is_found)
{
	struct steer_rule r;
	uint64_t id = 0;

	for (unsigned i = 1; i <= 5; i += 2)
		add(r = rule_of(i, 3, 0xff, 1));
	cr_assert_not(steer_equal(table, &r, is_even, NULL, &id));
	cr_assert_eq(id, 0);
	add(rule_of(8, 3, 0xff, 1));
	add(rule_of(6, 3, 0xff, 1));
	cr_assert(steer_equal(table, &r, is_even, NULL, &id));
	cr_assert_eq(id, 8, "made before the other");
}

Test(steer_match, mask_that_has_more_is_another_one)
{
	struct steer_rule few = rule_of(1, 3, 0xff, 1), more = rule_of(2, 3, 0xff, 1);
	uint64_t id;

	more.mask.bytes[100] = 0xff;
	more.value.bytes[100] = 7;
	add(few);
	cr_assert_eq(equals(&more, &id, 1), 0);
	add(more);
	EXPECT(key_of(3, 1), 1);
	cr_assert(steer_remove(table, 1));
	EXPECT_NONE(key_of(3, 1));
	cr_assert_eq(equals(&few, &id, 1), 0);
}

Test(steer_match, oldest_of_different_masks_wins_alone)
{
	struct steer_rule late = rule_of(2, 3, 0xff, 0x50), early;

	add(late);
	add(rule_of(3, 3, 0xf0, 0x50));
	EXPECT(key_of(3, 0x50), 2);
	early = rule_of(4, 3, 0x40, 0x40);
	early.order = 0;
	add(early);
	EXPECT(key_of(3, 0x50), 4);
	cr_assert(steer_remove(table, 4));
	cr_assert(steer_remove(table, 2));
	EXPECT(key_of(3, 0x50), 3);
}

Test(steer_match, equal_rules_are_told_by_age)
{
	struct steer_rule r[4];
	uint64_t id[8];

	for (unsigned i = 0; i < 4; i++)
		r[i] = rule_of(i + 1, 3, 0xf0, 0x50 + i);
	add(r[2]);
	add(r[0]);
	add(r[3]);
	add(r[1]);
	EXPECT(key_of(3, 0x50), 1, 2, 3, 4);
	cr_assert_eq(equals(&r[1], id, 8), 4);
	cr_assert(id[0] == 1 && id[1] == 2 && id[2] == 3 && id[3] == 4);
	cr_assert(steer_remove(table, 3));
	EXPECT(key_of(3, 0x50), 1, 2, 4);
	cr_assert(steer_remove(table, 1));
	EXPECT(key_of(3, 0x50), 2, 4);
	cr_assert(steer_remove(table, 4));
	EXPECT(key_of(3, 0x50), 2);
	cr_assert_eq(equals(&r[1], id, 8), 1);
	cr_assert(steer_remove(table, 2));
	EXPECT_NONE(key_of(3, 0x50));
	cr_assert_eq(equals(&r[1], id, 8), 0);
}

Test(steer_match, rules_of_other_levels_are_not_equal)
{
	struct steer_rule a = rule_of(1, 3, 0xff, 1), b = a;
	uint64_t id;

	add(a);
	b.level++;
	cr_assert_eq(equals(&b, &id, 1), 0);
	b = rule_of(2, 3, 0xff, 2);
	cr_assert_eq(equals(&b, &id, 1), 0);
	b = rule_of(2, 3, 0x7f, 1);
	cr_assert_eq(equals(&b, &id, 1), 0);
}

Test(steer_match, levels_in_front_can_be_left_out)
{
	union steer_key key = key_of(3, 1);
	uint64_t id[3] = { 0 };

	for (unsigned level = 1; level <= 3; level++) {
		struct steer_rule r = rule_of(level, 3, 0xff, 1);

		r.level = level;
		r.continues = true;
		add(r);
	}
	cr_assert_eq(steer_lookup(table, &key, id, 3), 3);
	cr_assert_eq(steer_lookup_from(table, 2, &key, id, 3), 2);
	cr_assert(id[0] == 2 && id[1] == 3);
	cr_assert_eq(steer_lookup_from(table, 4, &key, id, 3), 0);
}

Test(steer_match, more_than_there_is_room_for_is_counted)
{
	struct steer_rule r;
	union steer_key key = key_of(3, 1);
	uint64_t id[3] = { 0 };

	for (unsigned i = 1; i <= 5; i++)
		add(r = rule_of(i, 3, 0xff, 1));
	cr_assert_eq(steer_lookup(table, &key, id, 2), 5);
	cr_assert(id[0] == 1 && id[1] == 2 && id[2] == 0);
	cr_assert_eq(steer_lookup(table, &key, NULL, 0), 5);
	cr_assert_eq(steer_lookup_plain(table, &key, id, 2), 5);
	cr_assert_eq(equals(&r, id, 2), 5);
	cr_assert_eq(id[2], 0);
}

Test(steer_match, first_level_with_a_match_ends_the_search)
{
	struct steer_rule last = rule_of(1, 3, 0xff, 1), first = rule_of(2, 3, 0xff, 1);

	last.level = STEER_LEVEL_COUNT - 1;
	first.level = 0;
	add(last);
	add(first);
	add(rule_of(3, 3, 0xff, 1));
	EXPECT(key_of(3, 1), 2);
	cr_assert(steer_remove(table, 2));
	EXPECT(key_of(3, 1), 3);
	cr_assert(steer_remove(table, 3));
	EXPECT(key_of(3, 1), 1);
}

Test(steer_match, search_goes_on_behind_rules_that_continue)
{
	struct steer_rule sniffer = rule_of(9, 3, 0, 0), trap = rule_of(2, 3, 0xff, 1);

	sniffer.level = STEER_LEVEL_SNIFFER;
	sniffer.continues = true;
	trap.level = LEVEL + 3;
	add(trap);
	add(sniffer);
	EXPECT(key_of(3, 1), 9, 2);
	EXPECT(key_of(3, 2), 9);
}

Test(steer_match, one_equal_rule_that_stops_ends_the_search)
{
	struct steer_rule a = rule_of(1, 3, 0xff, 1), b = rule_of(2, 3, 0xff, 1);
	struct steer_rule later = rule_of(3, 3, 0xff, 1);

	a.continues = true;
	later.level = LEVEL + 1;
	add(later);
	add(b);
	add(a);
	EXPECT(key_of(3, 1), 1, 2);
	cr_assert(steer_remove(table, 2));
	EXPECT(key_of(3, 1), 1, 3);
	add(b);
	cr_assert(steer_remove(table, 1));
	EXPECT(key_of(3, 1), 2);
}

Test(steer_match, blocks_are_those_that_rules_look_at)
{
	add(rule_of(1, 0, 1, 1));
	add(rule_of(2, 1, 1, 1));
	cr_assert_eq(steer_blocks(table), 1u << STEER_OUTER);
	add(rule_of(3, STEER_BLOCK_BYTES * STEER_MISC5 + 63, 1, 1));
	cr_assert_eq(steer_blocks(table), 1u << STEER_OUTER | 1u << STEER_MISC5);
	cr_assert(steer_remove(table, 1));
	cr_assert_eq(steer_blocks(table), 1u << STEER_OUTER | 1u << STEER_MISC5);
	cr_assert(steer_remove(table, 2));
	cr_assert_eq(steer_blocks(table), 1u << STEER_MISC5);
}

/* --- many --- */

enum { MANY = 100000 };

static struct steer_rule exact_rule(uint32_t i)
{
	struct steer_rule r = { .level = LEVEL, .id = i, .order = ++order };

	r.mask.word[5] = r.value.word[7] = r.mask.word[7] = UINT64_MAX;
	r.value.word[5] = i;
	return r;
}

static bool has_exact(uint32_t i)
{
	struct steer_rule r = exact_rule(i);
	uint64_t id = 0;
	unsigned count;

	steer_prefetch(table, &r.value);
	count = steer_lookup(table, &r.value, &id, 1);
	cr_assert(count <= 1 && (!count || id == i));
	return count;
}

/* A table that is growing, full and shrinking finds exactly what is there. */
Test(steer_match, many_rules_come_and_go)
{
	for (uint32_t i = 0; i < MANY; i++) {
		add(exact_rule(i));
		cr_assert(has_exact(random_word() % (i + 1)));
		cr_assert_not(has_exact(i + 1 + random_word() % MANY));
	}
	for (uint32_t i = 0; i < MANY; i += 2)
		cr_assert(steer_remove(table, i));
	for (uint32_t i = 0; i < MANY; i++)
		cr_assert_eq(has_exact(i), i % 2, "%u", i);
	for (uint32_t i = 1; i < MANY; i += 2)
		cr_assert(steer_remove(table, i));
	cr_assert_eq(steer_blocks(table), 0);
}

/* Equal rules from different programs: the next one is the youngest, any may be the first to go. */
Test(steer_match, many_equal_rules_come_and_go)
{
	union steer_key key = key_of(3, 1);
	uint64_t id;

	for (uint32_t i = 0; i < MANY; i++)
		add(rule_of(i, 3, 0xff, 1));
	for (uint32_t i = 0; i < MANY - 1; i++)
		cr_assert(steer_remove(table, i % 2 ? i : MANY - 2 - i));
	cr_assert_eq(steer_lookup(table, &key, &id, 1), 1);
	cr_assert_eq(id, MANY - 1);
}

/* --- against a look at every rule --- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { PACKETS = 100000 };
#else
enum { PACKETS = 1000000 };
#endif
enum { MASKS = 6, RULES = 24, PACKETS_PER_CHANGE = 40, CHANGES_PER_SET = 250 };

static union steer_key masks[MASKS];
static struct steer_rule rules[RULES];	/* what the table should know, by id */
static bool is_there[RULES];

/* Few bits here and there, so that masks overlap; mask 0 may be empty. */
static void masks_choose(void)
{
	for (unsigned i = 0; i < MASKS; i++) {
		masks[i] = (union steer_key){ .bytes = { 0 } };
		for (unsigned k = 0; k < i + random_word() % 3; k++)
			masks[i].bytes[random_word() % 6 * 75] |= 1u << random_word() % 2;
	}
}

static void scramble(union steer_key *key)
{
	*key = (union steer_key){ .bytes = { 0 } };
	for (unsigned i = 0; i < 6; i++)
		key->bytes[i * 75] = random_word() & 7;
}

static void add_random(unsigned id)
{
	static const uint8_t levels[] = { 0, 6, 7, STEER_LEVEL_COUNT - 1 };
	struct steer_rule r = {
		.level = levels[random_word() % 4],
		.continues = random_word() % 2,
		.id = id,
		.order = ++order | (uint64_t)(random_word() % 4) << 32,
		.mask = masks[random_word() % MASKS],
	};

	scramble(&r.value);
	add(r);
	rules[id] = r;
}

static void change(void)
{
	unsigned id = random_word() % RULES;

	cr_assert_eq(steer_remove(table, id), is_there[id]);
	is_there[id] = !is_there[id];
	if (is_there[id])
		add_random(id);
}

static bool matches(unsigned id, const union steer_key *key)
{
	const struct steer_rule *r = &rules[id];

	for (unsigned i = 0; is_there[id] && i < 6; i++)
		if ((key->bytes[i * 75] ^ r->value.bytes[i * 75]) & r->mask.bytes[i * 75])
			return false;
	return is_there[id];
}

/* What can be said without the table: the first one is the oldest of the first level that has any,
 * and none is told that doesn't match. */
static void check_first(const union steer_key *key, const uint64_t *got, unsigned count)
{
	const struct steer_rule *first = count ? &rules[got[0]] : NULL;

	for (unsigned i = 0; i < count; i++)
		cr_assert(matches((unsigned)got[i], key));
	for (unsigned i = 0; i < RULES; i++)
		cr_assert(!matches(i, key) ||
			  (first && (rules[i].level > first->level ||
				     (rules[i].level == first->level &&
				      rules[i].order >= first->order))));
}

static void compare(void)
{
	uint64_t got[RULES], plain[RULES];
	union steer_key key;
	unsigned count;

	scramble(&key);
	count = steer_lookup(table, &key, got, RULES);
	cr_assert_eq(steer_lookup_plain(table, &key, plain, RULES), count);
	cr_assert(count <= RULES && !memcmp(got, plain, count * sizeof *got));
	check_first(&key, got, count);
}

Test(steer_match, finds_what_a_look_at_every_rule_finds)
{
	for (unsigned done = 0; done < PACKETS;) {
		masks_choose();
		for (unsigned i = 0; i < CHANGES_PER_SET; i++) {
			change();
			for (unsigned k = 0; k < PACKETS_PER_CHANGE; k++, done++)
				compare();
		}
	}
}

Test(steer_match, rules_of_one_owner_go_together)
{
	for (uint64_t i = 0; i < 6; i++)
		add(rule_of((i % 2) << 32 | i, 0, 0, 0));
	steer_remove_all(table, UINT64_C(1) << 32, UINT64_C(0xffffffff) << 32);
	EXPECT(key_of(0, 0), 0, 2, 4);
}
