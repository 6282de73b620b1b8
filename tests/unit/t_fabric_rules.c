/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules that members of a fabric post: who follows is told of each once, whether it keeps up or has
 * fallen behind, also of its own and of those that were replaced in the meantime.
 */
#define NUMBERS	100001u
#include "tests/unit/rules_world.h"

TestSuite(fabric_rules, .init = start, .timeout = 120);

#define ONE	level_of(1, 1)		/* of a rule of one block */

Test(fabric_rules, without_rules_there_is_nothing_to_tell)
{
	struct node a = node_up(1), b = node_up(2);

	follow(&a);
	follow(&b);
	cr_expect_not(rules_have_changed(a.rules));
	cr_expect_not(rules_have_changed(b.rules));
	rules_withdraw(a.rules, 7);
	cr_expect_not(rules_have_changed(b.rules));
	cr_expect_eq(a.view->added + a.view->removed + a.view->wrong, 0);
	cr_expect_eq(file_count(), 1, "no file before the first rule");
	node_down(&b);
	cr_expect(rules_have_changed(a.rules), "somebody left");
	follow(&a);
	cr_expect_eq(a.view->member[1].gone, 0, "without rules");
	node_down(&a);
	cr_expect_eq(file_count(), -1);
}

Test(fabric_rules, a_rule_is_told_to_everybody_and_to_its_member)
{
	struct node n[3] = { node_up(10), node_up(0), node_up(RULES_NODE_MAX) };
	uint64_t order = 0;

	for (uint32_t blocks = 0; blocks <= BLOCKS_ALL; blocks++) {
		struct node *poster = &n[blocks % 3];
		uint64_t now = post(poster, blocks + 1, level_of(blocks, blocks));

		cr_assert_gt(now, order, "the youngest of all");
		order = now;
		for (unsigned i = 0; i < 3; i++) {
			cr_assert(rules_have_changed(n[i].rules));
			follow(&n[i]);
			cr_assert_not(rules_have_changed(n[i].rules));
			cr_assert(told_of(&n[i], poster, blocks + 1)->is_there);
			cr_assert_eq(told_of(&n[i], poster, blocks + 1)->order, order);
		}
	}
	for (unsigned i = 0; i < 3; i++) {
		cr_expect_eq(n[i].view->added, BLOCKS_ALL + 1);
		cr_expect_eq(n[i].view->member[0].node, 10);
		cr_expect_eq(n[i].view->member[1].node, 0);
		cr_expect_eq(n[i].view->member[2].node, RULES_NODE_MAX);
	}
	for (uint32_t blocks = 0; blocks <= BLOCKS_ALL; blocks++)
		rules_withdraw(n[blocks % 3].rules, blocks + 1);
	for (unsigned i = 0; i < 3; i++) {
		follow(&n[i]);
		cr_expect_eq(n[i].view->removed, BLOCKS_ALL + 1);
		cr_expect_eq(n[i].view->wrong, 0);
		cr_expect_eq(count_of(&n[i], &n[0]) + count_of(&n[i], &n[1]), 0);
	}
	for (unsigned i = 0; i < 3; i++)
		node_down(&n[i]);
}

Test(fabric_rules, who_comes_later_is_told_what_there_is)
{
	struct node a = node_up(1), b;

	for (uint32_t number = 1; number <= 100; number++)
		post(&a, number, level_of(number, number));
	for (uint32_t number = 1; number <= 100; number += 3)
		rules_withdraw(a.rules, number);
	b = node_up(2);
	follow(&b);
	cr_expect_eq(count_of(&b, &a), 66);
	cr_expect_eq(b.view->added, 66);
	cr_expect_eq(b.view->removed, 0);
	cr_expect(told_of(&b, &a, 2)->is_there);
	cr_expect_not(told_of(&b, &a, 4)->is_there);
	cr_expect_eq(b.view->wrong, 0);
	node_down(&b);
	node_down(&a);
}

Test(fabric_rules, what_was_replaced_goes_and_comes)
{
	struct node a = node_up(1), b = node_up(2);

	post(&a, 5, level_of(1, 3));
	post(&a, 6, level_of(1, 3));
	follow(&b);
	rules_withdraw(a.rules, 5);		/* in the same place */
	post(&a, 5, level_of(2, 3));
	rules_withdraw(a.rules, 6);		/* in another one */
	post(&a, 6, level_of(2, 7));
	follow(&b);
	cr_expect_eq(b.view->removed, 2);
	cr_expect_eq(b.view->added, 4);
	cr_expect_eq(told_of(&b, &a, 5)->level, level_of(2, 3));
	cr_expect_eq(told_of(&b, &a, 6)->level, level_of(2, 7));
	/* Their places swapped, and none of it was followed. */
	rules_withdraw(a.rules, 5);
	rules_withdraw(a.rules, 6);
	post(&a, 5, level_of(3, 7));
	post(&a, 6, level_of(3, 3));
	follow(&b);
	cr_expect_eq(b.view->removed, 4);
	cr_expect_eq(b.view->added, 6);
	cr_expect_eq(count_of(&b, &a), 2);
	cr_expect_eq(b.view->wrong, 0);
	node_down(&a);
	node_down(&b);
}

Test(fabric_rules, what_came_and_went_is_not_told)
{
	struct node a = node_up(1), b = node_up(2);

	follow(&b);
	for (unsigned i = 0; i < 100; i++) {
		post(&a, 5, level_of(i, 1));
		rules_withdraw(a.rules, 5);
	}
	follow(&b);
	cr_expect_eq(b.view->added + b.view->removed, 0);
	node_down(&a);
	node_down(&b);
}

Test(fabric_rules, room_is_used_again)
{
	struct node a = node_up(1), b = node_up(2);
	long bytes;

	for (uint32_t number = 1; number <= 2000; number++)
		post(&a, number, level_of(0, number & BLOCKS_ALL));
	bytes = file_bytes(&a);
	for (unsigned round = 1; round < 30; round++) {
		for (uint32_t number = 1; number <= 2000; number++)
			rules_withdraw(a.rules, number);
		for (uint32_t number = 2000; number > 0; number--)
			post(&a, number, level_of(round, (number + round) & BLOCKS_ALL));
		follow(&b);
		cr_assert_eq(count_of(&b, &a), 2000);
	}
	cr_expect_leq(file_bytes(&a), bytes * 3 / 2, "the sizes are not quite as many each");
	cr_expect_eq(b.view->wrong, 0);
	node_down(&a);
	node_down(&b);
}

/* --- keeping up, or not --- */

/* What is to be known of one poster. */
struct truth {
	struct told told[300];
	uint32_t count;
};

static void step(struct node *n, struct truth *truth, unsigned *seed, uint32_t salt)
{
	uint32_t number = 1 + (uint32_t)rand_r(seed) % 299;
	uint32_t level = level_of(salt, (uint32_t)rand_r(seed) & BLOCKS_ALL);
	struct told *told = &truth->told[number];

	if (told->is_there) {
		rules_withdraw(n->rules, number);
		told->is_there = false;
		truth->count--;
	} else {
		*told = (struct told){ true, level, post(n, number, level) };
		truth->count++;
	}
}

static void expect_truth(const struct node *n, const struct node *of, const struct truth *truth)
{
	cr_assert_eq(count_of(n, of), truth->count);
	for (uint32_t number = 1; number < 300; number++) {
		const struct told *told = told_of(n, of, number);

		cr_assert_eq(told->is_there, truth->told[number].is_there);
		if (told->is_there)
			cr_assert_eq(told->order, truth->told[number].order);
	}
	cr_assert_eq(n->view->wrong, 0);
}

Test(fabric_rules, the_truth_comes_out_whether_one_keeps_up_or_not)
{
	static struct truth truth[2];
	struct node n[4];
	unsigned seed = 3;

	for (uint32_t i = 0; i < 4; i++)
		n[i] = node_up(i);
	for (uint32_t i = 1; i <= 40000; i++) {
		unsigned who = (unsigned)rand_r(&seed) % 2;

		step(&n[who], &truth[who], &seed, i);
		if (i % 17 == 0)
			follow(&n[0]);
		if (i % 997 == 0)		/* within the ring of changes */
			follow(&n[2]);
		if (i % 12000 == 0)		/* far beyond it */
			follow(&n[3]);
	}
	for (unsigned i = 0; i < 4; i++) {
		follow(&n[i]);
		expect_truth(&n[i], &n[0], &truth[0]);
		expect_truth(&n[i], &n[1], &truth[1]);
	}
	for (unsigned i = 0; i < 4; i++)
		node_down(&n[i]);
}

/* One change less than the ring has, as many, and one more. */
Test(fabric_rules, the_ring_of_changes_has_an_end)
{
	struct node a = node_up(1), b = node_up(2);

	for (uint32_t count = RULES_CHANGES - 2; count <= RULES_CHANGES + 2; count++) {
		unsigned long added = b.view->added;

		for (uint32_t number = 1; number <= count; number++)
			post(&a, number, level_of(count, 1));
		follow(&b);
		cr_assert_eq(b.view->added - added, count);
		for (uint32_t number = 1; number <= count; number++)
			rules_withdraw(a.rules, number);
		follow(&b);
		cr_assert_eq(count_of(&b, &a), 0);
	}
	cr_expect_eq(b.view->wrong, 0);
	node_down(&a);
	node_down(&b);
}

Test(fabric_rules, a_hundred_thousand_rules_are_as_good_as_one)
{
	struct node a = node_up(1), b = node_up(2);
	const uint32_t count = 100000;

	for (uint32_t number = 1; number <= count; number++) {
		post(&a, number, ONE);
		if (number % 10000 == 0)
			follow(&b);
	}
	cr_expect_eq(count_of(&b, &a), count);
	follow(&a);
	cr_expect_eq(count_of(&a, &a), count);
	rules_withdraw(a.rules, 50000);
	follow(&b);
	cr_expect_eq(b.view->removed, 1);
	for (uint32_t number = 1; number <= count; number++)
		rules_withdraw(a.rules, number);
	follow(&b);
	cr_expect_eq(count_of(&b, &a), 0);
	cr_expect_eq(b.view->wrong, 0);
	node_down(&a);
	cr_expect_eq(file_count(), 1);
	node_down(&b);
}

/* --- followers that can't or won't --- */

Test(fabric_rules, who_had_no_memory_is_told_again)
{
	struct node a = node_up(1), b = node_up(2);

	b.view->fail_every = 3;
	b.view->fail_rc = -ENOMEM;
	for (uint32_t number = 1; number <= 500; number++)
		post(&a, number, level_of(number, number & BLOCKS_ALL));
	follow(&b);
	cr_expect_lt(count_of(&b, &a), 500);
	for (unsigned tries = 0; rules_have_changed(b.rules) && tries < 20; tries++)
		follow(&b);
	cr_expect_eq(count_of(&b, &a), 500);
	cr_expect_not(rules_have_changed(b.rules));
	/* Also of changes one by one. */
	for (uint32_t number = 1; number <= 200; number++)
		rules_withdraw(a.rules, number);
	for (uint32_t number = 1; number <= 200; number++) {
		post(&a, number, level_of(number + 1, 1));
		follow(&b);
	}
	for (unsigned tries = 0; rules_have_changed(b.rules) && tries < 20; tries++)
		follow(&b);
	cr_expect_eq(count_of(&b, &a), 500);
	cr_expect_eq(b.view->wrong, 0);
	node_down(&a);
	node_down(&b);
}

Test(fabric_rules, who_did_not_want_a_rule_hears_no_more_of_it)
{
	struct node a = node_up(1), b = node_up(2);

	b.view->fail_every = 2;
	b.view->fail_rc = -EINVAL;
	for (uint32_t number = 1; number <= 10; number++)
		post(&a, number, ONE);
	follow(&b);
	cr_expect_not(rules_have_changed(b.rules));
	cr_expect_eq(count_of(&b, &a), 5);
	for (unsigned i = 0; i < RULES_CHANGES; i++) {	/* so that all records are read */
		post(&a, 11, ONE);
		rules_withdraw(a.rules, 11);
	}
	follow(&b);
	cr_expect_eq(b.view->added, 10);
	for (uint32_t number = 1; number <= 10; number++)
		rules_withdraw(a.rules, number);
	follow(&b);
	cr_expect_eq(b.view->removed, 5);
	cr_expect_eq(b.view->wrong, 0);
	node_down(&a);
	node_down(&b);
}

/* --- members that leave --- */

Test(fabric_rules, the_file_goes_with_the_rules)
{
	struct node a = node_up(1), b = node_up(2);

	post(&a, 1, ONE);
	follow(&b);
	cr_expect_eq(file_count(), 2);
	rules_close(a.rules);
	cr_expect_eq(file_count(), 1);
	follow(&b);
	cr_expect_eq(count_of(&b, &a), 1, "until it has left");
	fabric_leave(a.fabric);
	view_free(a.view);
	follow(&b);
	cr_expect_eq(b.view->member[0].gone, 1);
	node_down(&b);
}

Test(fabric_rules, who_leaves_takes_its_rules_along)
{
	struct node a = node_up(1), b, c;
	unsigned slot;

	follow(&a);
	b = node_up(2);
	slot = member_of(&b);
	post(&b, 1, ONE);
	post(&b, 2, ONE);
	follow(&a);
	cr_expect_eq(a.view->member[slot].count, 2);
	node_down(&b);
	cr_expect(rules_have_changed(a.rules));
	follow(&a);
	cr_expect_eq(a.view->member[slot].gone, 1);
	follow(&a);
	cr_expect_eq(a.view->member[slot].gone, 1, "once");

	/* Between two looks one leaves and another one sits down there. */
	b = node_up(2);
	post(&b, 1, ONE);
	follow(&a);
	node_down(&b);
	c = node_up(3);
	cr_assert_eq(member_of(&c), slot);
	cr_expect_eq(c.fabric->segment->rule_change[slot], 0, "it has changed nothing yet");
	post(&c, 1, level_of(9, 5));
	follow(&a);
	cr_expect_eq(a.view->member[slot].gone, 2);
	cr_expect_eq(a.view->member[slot].count, 1);
	cr_expect_eq(a.view->member[slot].node, 3);
	cr_expect_eq(a.view->wrong, 0);
	/* All of its rules withdrawn: then none is left to go. */
	rules_withdraw(c.rules, 1);
	follow(&a);
	node_down(&c);
	follow(&a);
	cr_expect_eq(a.view->member[slot].gone, 2);
	cr_expect_eq(file_count(), 1);
	node_down(&a);
	cr_expect_eq(file_count(), -1);
}
