/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where MAC addresses are: what one member learns all know; stations move, fall silent, and come in
 * larger numbers than there are places; and the table may hold anything.
 */
#include <pthread.h>
#include <time.h>
#include "tests/unit/rules_world.h"

TestSuite(fabric_station, .init = start, .timeout = 60);

#define PLACES	(FABRIC_STATION_SETS * FABRIC_STATION_WAYS)

struct mac { uint8_t at[6]; };

static struct mac mac_of(uint32_t number)
{
	return (struct mac){ { 0x02, 0xc9, (uint8_t)(number >> 24), (uint8_t)(number >> 16),
			       (uint8_t)(number >> 8), (uint8_t)number } };
}

static void learn(struct node *n, uint32_t number, uint32_t host)
{
	rules_learn(n->rules, mac_of(number).at, host);
}

static int station(const struct node *n, uint32_t number)
{
	return rules_station(n->rules, mac_of(number).at);
}

/* The place of a station, which must have one. */
static _Atomic uint32_t *seen_of(struct node *n, uint32_t number)
{
	struct fabric_segment *s = n->fabric->segment;
	struct mac mac = mac_of(number);
	uint64_t key = 0;

	for (unsigned i = 0; i < 6; i++)
		key = key << 8 | mac.at[i];
	for (unsigned i = 0; i < PLACES; i++) {
		struct fabric_station_set *set = &s->station_set[i / FABRIC_STATION_WAYS];

		if (set->station[i % FABRIC_STATION_WAYS] >> 16 == key)
			return &set->seen_s[i % FABRIC_STATION_WAYS];
	}
	cr_assert_fail("station %u has no place", number);
	return NULL;
}

static unsigned places_taken(const struct node *n)
{
	unsigned count = 0;

	for (unsigned i = 0; i < PLACES; i++)
		count += n->fabric->segment->station_set[i / FABRIC_STATION_WAYS]
				 .station[i % FABRIC_STATION_WAYS] != 0;
	return count;
}

Test(fabric_station, what_one_learns_all_know)
{
	struct node a = node_up(1), b = node_up(2);

	for (uint32_t i = 0; i < 1000; i++)
		cr_assert_eq(station(&a, i), -1);
	for (uint32_t i = 0; i < 1000; i++)
		learn(i % 2 ? &a : &b, i, i * 65);
	for (uint32_t i = 0; i < 1000; i++) {
		cr_assert_eq(station(&a, i), (int)i * 65);
		cr_assert_eq(station(&b, i), (int)i * 65);
	}
	cr_expect_eq(station(&a, 1001), -1);
	cr_expect_eq(file_count(), 1, "no rule, no file");
	node_down(&a);
	cr_expect_eq(station(&b, 7), 7 * 65, "it outlives who learned it");
	node_down(&b);
}

Test(fabric_station, it_is_where_it_was_seen_last)
{
	struct node a = node_up(1), b = node_up(2);

	learn(&a, 5, 1);
	learn(&b, 5, 2);
	cr_expect_eq(station(&a, 5), 2);
	learn(&a, 5, 1);
	cr_expect_eq(station(&b, 5), 1);
	learn(&a, 5, 0);
	cr_expect_eq(station(&b, 5), 0);
	learn(&a, 5, RULES_NODE_MAX);
	cr_expect_eq(station(&b, 5), RULES_NODE_MAX);
	cr_expect_eq(places_taken(&a), 1);
	node_down(&a);
	node_down(&b);
}

Test(fabric_station, what_can_be_no_station_is_not_learned)
{
	static const uint8_t mac[][6] = {
		{ 0 }, { 1 }, { 0x01, 0x00, 0x5e, 0, 0, 1 }, { 0x33, 0x33, 0, 0, 0, 1 },
		{ 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
	};
	struct node a = node_up(1);

	for (size_t i = 0; i < sizeof mac / sizeof *mac; i++) {
		rules_learn(a.rules, mac[i], 1);
		cr_expect_eq(rules_station(a.rules, mac[i]), -1);
	}
	learn(&a, 5, 1);
	learn(&a, 5, RULES_NODE_MAX + 1);
	learn(&a, 6, UINT32_MAX);
	cr_expect_eq(station(&a, 5), 1);
	cr_expect_eq(station(&a, 6), -1);
	cr_expect_eq(places_taken(&a), 1);
	node_down(&a);
}

Test(fabric_station, who_is_silent_for_long_is_forgotten)
{
	struct node a = node_up(1);

	for (uint32_t i = 0; i < 3; i++)
		learn(&a, i, 7);
	*seen_of(&a, 0) -= 295;
	*seen_of(&a, 1) -= 300;
	*seen_of(&a, 2) += 100;		/* by no clock of ours */
	cr_expect_eq(station(&a, 0), 7);
	cr_expect_eq(station(&a, 1), -1);
	cr_expect_eq(station(&a, 2), -1);
	for (uint32_t i = 0; i < 3; i++)
		learn(&a, i, 7);
	*seen_of(&a, 0) -= 295;		/* from when it spoke again */
	*seen_of(&a, 1) += 1;		/* somebody read the clock a moment later than we */
	for (uint32_t i = 0; i < 3; i++)
		cr_expect_eq(station(&a, i), 7);
	node_down(&a);
}

/* Other stations that come to the same set as station 0. */
static void same_set(struct node *n, uint32_t *number, unsigned count)
{
	uintptr_t set;

	learn(n, 0, 9);
	set = (uintptr_t)seen_of(n, 0) / sizeof(struct fabric_station_set);
	for (uint32_t i = 1; count; i++) {
		memset(n->fabric->segment->station_set, 0,
		       sizeof n->fabric->segment->station_set);
		learn(n, i, 9);
		if ((uintptr_t)seen_of(n, i) / sizeof(struct fabric_station_set) == set)
			number[--count] = i;
	}
	memset(n->fabric->segment->station_set, 0, sizeof n->fabric->segment->station_set);
}

Test(fabric_station, the_longest_silent_one_makes_room)
{
	struct node a = node_up(1);
	uint32_t number[FABRIC_STATION_WAYS + 2];

	same_set(&a, number, FABRIC_STATION_WAYS + 2);
	for (uint32_t i = 0; i < FABRIC_STATION_WAYS; i++) {
		learn(&a, number[i], i);
		*seen_of(&a, number[i]) -= i == 3 ? 200 : i == 5 ? 100 : 10;
	}
	learn(&a, number[FABRIC_STATION_WAYS], 50);
	learn(&a, number[FABRIC_STATION_WAYS + 1], 51);
	for (uint32_t i = 0; i < FABRIC_STATION_WAYS; i++)
		cr_expect_eq(station(&a, number[i]), i == 3 || i == 5 ? -1 : (int)i);
	cr_expect_eq(station(&a, number[FABRIC_STATION_WAYS]), 50);
	cr_expect_eq(station(&a, number[FABRIC_STATION_WAYS + 1]), 51);
	node_down(&a);
}

Test(fabric_station, many_more_than_there_are_places_is_no_harm)
{
	struct node a = node_up(1);
	unsigned known = 0;

	for (uint32_t i = 0; i < 20 * PLACES; i++) {
		learn(&a, i, i % 100);
		cr_assert_eq(station(&a, i), (int)i % 100, "the newest is always known");
	}
	for (uint32_t i = 0; i < 20 * PLACES; i++) {
		int host = station(&a, i);

		cr_assert(host == -1 || host == (int)i % 100);
		known += host >= 0;
	}
	cr_expect_eq(known, PLACES);
	node_down(&a);
}

/* Two have put it in at the same moment. */
Test(fabric_station, an_address_that_is_there_twice_is_where_it_was_seen_last)
{
	struct node a = node_up(1);
	struct fabric_station_set *set;
	uint32_t number[2];

	same_set(&a, number, 2);
	learn(&a, number[0], 1);
	learn(&a, number[1], 2);
	set = a.fabric->segment->station_set;
	while (!set->station[0])
		set++;
	set->station[2] = (set->station[0] & ~UINT64_C(0xffff)) | 8;
	set->seen_s[2] = set->seen_s[0];
	cr_expect_eq(station(&a, number[0]), 1);
	learn(&a, number[0], 3);
	cr_expect_eq(station(&a, number[0]), 3);
	cr_expect_eq(set->station[2], 0);
	cr_expect_eq(station(&a, number[1]), 2);
	node_down(&a);
}

/* Dies of the first store, unless another second has begun: exit status 2. */
static void learn_read_only(struct node *n)
{
	struct fabric_segment *s = n->fabric->segment;
	struct timespec before, after;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &before);
	learn(n, 5, 1);
	mprotect(s, sizeof *s, PROT_READ);
	for (unsigned i = 0; i < 100; i++)
		learn(n, 5, 1);
	clock_gettime(CLOCK_MONOTONIC_COARSE, &after);
	_exit(before.tv_sec == after.tv_sec ? 0 : 2);
}

/* A frame of a station that is known changes nothing within a second, so that all may read. */
Test(fabric_station, learning_the_same_again_stores_nothing)
{
	struct node a = node_up(1);
	int status = -1;

	for (unsigned tries = 0; status && tries < 20; tries++) {
		pid_t pid = fork_child();

		if (!pid)
			learn_read_only(&a);
		waitpid(pid, &status, 0);
	}
	cr_expect_eq(status, 0);
	node_down(&a);
}

static void *learn_many(void *arg)
{
	struct node *n = arg;
	unsigned seed = n->host;

	for (unsigned i = 0; i < 200000; i++)
		learn(n, (uint32_t)rand_r(&seed) % 64, n->host);
	return NULL;
}

Test(fabric_station, many_learn_at_once)
{
	struct node n[4];
	pthread_t thread[4];

	for (uint32_t i = 0; i < 4; i++) {
		n[i] = node_up(i + 1);
		cr_assert_eq(pthread_create(&thread[i], NULL, learn_many, &n[i]), 0);
	}
	for (unsigned i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	for (uint32_t i = 0; i < 64; i++) {
		int host = station(&n[0], i);

		cr_expect(host >= 1 && host <= 4);
		learn(&n[1], i, 55);
		cr_expect_eq(station(&n[2], i), 55, "whatever it was before");
	}
	for (unsigned i = 0; i < 4; i++)
		node_down(&n[i]);
}

Test(fabric_station, the_table_may_hold_anything)
{
	struct node a = node_up(1);
	uint8_t *at = (uint8_t *)a.fabric->segment->station_set;
	unsigned seed = 4;

	for (unsigned round = 0; round < 10; round++) {
		for (size_t i = 0; i < sizeof a.fabric->segment->station_set; i++)
			at[i] = (uint8_t)rand_r(&seed);
		for (uint32_t i = 0; i < 1000; i++) {
			cr_assert_leq(station(&a, i), (int)RULES_NODE_MAX);
			learn(&a, i, i);
			cr_assert_eq(station(&a, i), (int)i);
		}
	}
	for (size_t i = 0; i < PLACES; i++)
		a.fabric->segment->station_set[i / FABRIC_STATION_WAYS]
			.station[i % FABRIC_STATION_WAYS] |= 0xffff;
	for (uint32_t i = 0; i < 1000; i++)
		cr_assert_eq(station(&a, i), -1);
	node_down(&a);
}
