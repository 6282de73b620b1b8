/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where MAC addresses are: the switch's filtering database, which all members share.
 *
 * An address may be in any of the eight places of one set; whoever comes to a full set takes the
 * place of who was seen longest ago.  Two that learn at once may put an address in twice; the first
 * place is believed, and who writes there clears the other.  It is all a cache: what is lost or
 * wrong costs a few frames, until the station speaks again.
 */
#include <time.h>
#include "emu/fabric/rules_local.h"
#include "emu/fabric/segment.h"

#define AGE_MAX_S	300	/* IEEE 802.1Q, 8.8.3: the default ageing time */
#define SKEW_S		2	/* others' clocks and ours are read at different moments */
#define SET_BITS	10
#define KEY_MASK	(~UINT64_C(0xffff))

static_assert(FABRIC_STATION_SETS == 1u << SET_BITS, "the hash fits");

/* The same in all processes of the host, and a few nanoseconds. */
static uint32_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint32_t)now.tv_sec;
}

/* The address as it stands in a word of the table; 0 is none that a station may have. */
static uint64_t key_of(const uint8_t mac[6])
{
	uint64_t key = 0;

	for (unsigned i = 0; i < 6; i++)
		key = key << 8 | mac[i];
	return mac[0] & 1 ? 0 : key << 16;
}

static struct fabric_station_set *set_of(const struct rules *r, uint64_t key)
{
	uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);

	return &r->fabric->segment->station_set[hash >> (64 - SET_BITS)];
}

static uint64_t station_at(const struct fabric_station_set *set, unsigned way)
{
	return atomic_load_explicit(&set->station[way], memory_order_relaxed);
}

/* Seconds since it was seen, AGE_MAX_S and more: too long ago. */
static uint32_t age_s(const struct fabric_station_set *set, unsigned way, uint32_t now)
{
	uint32_t seen = atomic_load_explicit(&set->seen_s[way], memory_order_relaxed);

	return seen - now <= SKEW_S ? 0 : now - seen;
}

/* The first place of the address from @way on, or FABRIC_STATION_WAYS. */
static unsigned find(const struct fabric_station_set *set, uint64_t key, unsigned way)
{
	while (way < FABRIC_STATION_WAYS && (station_at(set, way) & KEY_MASK) != key)
		way++;
	return way;
}

static unsigned oldest(const struct fabric_station_set *set, uint32_t now)
{
	unsigned best = 0;

	for (unsigned way = 0; way < FABRIC_STATION_WAYS; way++) {
		if (!station_at(set, way))
			return way;
		if (age_s(set, way, now) > age_s(set, best, now))
			best = way;
	}
	return best;
}

static void put(struct fabric_station_set *set, unsigned way, uint64_t word)
{
	atomic_store_explicit(&set->station[way], word, memory_order_relaxed);
	for (unsigned other = way + 1; other < FABRIC_STATION_WAYS; other++)
		if ((station_at(set, other) & KEY_MASK) == (word & KEY_MASK))
			atomic_store_explicit(&set->station[other], 0, memory_order_relaxed);
}

void rules_learn(struct rules *r, const uint8_t mac[6], uint32_t node)
{
	uint64_t key = key_of(mac), word = key | node;
	struct fabric_station_set *set = set_of(r, key);
	uint32_t now = now_s();
	unsigned way;

	if (!key || node > RULES_NODE_MAX)
		return;
	way = find(set, key, 0);
	if (way == FABRIC_STATION_WAYS)
		way = oldest(set, now);
	/* Stores only where something changes: others read this for every frame. */
	if (atomic_load_explicit(&set->seen_s[way], memory_order_relaxed) != now)
		atomic_store_explicit(&set->seen_s[way], now, memory_order_relaxed);
	if (station_at(set, way) != word)
		put(set, way, word);
}

int rules_station(const struct rules *r, const uint8_t mac[6])
{
	uint64_t key = key_of(mac);
	const struct fabric_station_set *set = set_of(r, key);
	unsigned way = key ? find(set, key, 0) : FABRIC_STATION_WAYS;
	uint32_t node;

	if (way == FABRIC_STATION_WAYS || age_s(set, way, now_s()) >= AGE_MAX_S)
		return -1;
	node = (uint32_t)(station_at(set, way) & ~KEY_MASK);
	return node <= RULES_NODE_MAX ? (int)node : -1;
}
