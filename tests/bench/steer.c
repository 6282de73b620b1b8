/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How fast a frame's rule is found among 100,000, and for the reference among 100: with the key at
 * hand ("bench_steer key"), from the bytes of a frame on ("frame"), and from a key that was not
 * known before ("alone").
 *
 * A rule is one TCP connection over IPv4, all five parts of it.  Look-ups are of rules at random,
 * and each has to find its own.  But for "alone", the next AHEAD frames are known, as those of a
 * burst are.
 */
#include <string.h>
#include "bench.h"
#include "connections.h"
#include "emu/steer/frame.h"
#include "emu/steer/match.h"

enum { AHEAD = 8 };

struct flows {
	struct steer_table *table;
	uint32_t count, random;
	struct coming {
		union steer_key key;
		uint32_t i;
	} coming[AHEAD];
	uint8_t frame[CONNECTION_FRAME_BYTES];
};

static void store_be(uint8_t *at, uint32_t value, unsigned bytes)
{
	while (bytes--) {
		at[bytes] = (uint8_t)value;
		value >>= 8;
	}
}

static void key_all(union steer_key *key)
{
	uint8_t *block = key->block[STEER_OUTER];

	block[STEER_IP_PROTOCOL] = 6;
	block[STEER_FLAGS] = 4 << STEER_IP_VERSION_SHIFT;
	store_be(block + STEER_TCP_DPORT, CONNECTION_DPORT, 2);
	store_be(block + STEER_DST_IPV4, CONNECTION_DST_IP, 4);
}

static void key_one(union steer_key *key, uint32_t i)
{
	uint8_t *block = key->block[STEER_OUTER];

	store_be(block + STEER_TCP_SPORT, connection_port(i), 2);
	store_be(block + STEER_SRC_IPV4, connection_ip(i), 4);
}

static void rule_add(struct flows *f, uint32_t i)
{
	struct steer_rule rule = { .level = STEER_LEVEL_NORMAL + 1, .id = i, .order = i };
	uint8_t *mask = rule.mask.block[STEER_OUTER];

	mask[STEER_IP_PROTOCOL] = 0xff;
	mask[STEER_FLAGS] = STEER_IP_VERSION_MASK;
	memset(mask + STEER_TCP_SPORT, 0xff, 4);
	memset(mask + STEER_SRC_IPV4, 0xff, 4);
	memset(mask + STEER_DST_IPV4, 0xff, 4);
	key_all(&rule.value);
	key_one(&rule.value, i);
	if (steer_add(f->table, &rule))
		die("bench_steer: no memory");
}

static void flows_open(struct flows *f, uint32_t count)
{
	*f = (struct flows){ .count = count };
	if (steer_table_create(&f->table))
		die("bench_steer: no memory");
	for (uint32_t i = 0; i < count; i++)
		rule_add(f, i);
	for (unsigned i = 0; i < AHEAD; i++)
		key_all(&f->coming[i].key);
	connection_frame(f->frame);
}

static void look_up(const struct flows *f, const struct coming *c)
{
	uint64_t id;

	if (steer_lookup(f->table, &c->key, &id, 1) != 1 || id != c->i)
		die("bench_steer: rule %u is not found", c->i);
}

/* Words are written whole: a part of one could not be read at once as the word it is in. */
static void key_prepare(struct flows *f, struct coming *c)
{
	uint64_t *word = c->key.word;

	c->i = connection_next(&f->random, f->count);
	word[STEER_TCP_SPORT / 8] = (word[STEER_TCP_SPORT / 8] & ~(0xffffull << 32)) |
				    (uint64_t)__builtin_bswap16(connection_port(c->i)) << 32;
	word[STEER_SRC_IPV4 / 8] = (uint64_t)__builtin_bswap32(connection_ip(c->i)) << 32;
}

static void frame_prepare(struct flows *f, struct coming *c)
{
	struct frame frame;

	c->i = connection_next(&f->random, f->count);
	connection_set(f->frame, c->i);
	frame_read(&frame, f->frame, CONNECTION_FRAME_BYTES, false);
	frame_key(&frame, steer_blocks(f->table), &c->key);
}

static void run_ahead(struct flows *f, unsigned count,
		      void (*prepare)(struct flows *, struct coming *))
{
	for (unsigned n = 0; n < count; n++) {
		struct coming *c = &f->coming[n % AHEAD];

		if (n >= AHEAD)
			look_up(f, c);
		prepare(f, c);
		steer_prefetch(f->table, &c->key);
	}
}

static void run_key(void *ctx, unsigned count)
{
	run_ahead(ctx, count, key_prepare);
}

static void run_frame(void *ctx, unsigned count)
{
	run_ahead(ctx, count, frame_prepare);
}

static void run_alone(void *ctx, unsigned count)
{
	struct flows *f = ctx;

	while (count--) {
		key_prepare(f, &f->coming[0]);
		look_up(f, &f->coming[0]);
	}
}

static const struct row {
	const char *name;
	void (*run)(void *ctx, unsigned count);
} rows[] = { { "key", run_key }, { "frame", run_frame }, { "alone", run_alone } };

static void row_run(const struct row *r)
{
	static struct flows many, few;
	struct side a = { .run = r->run, .ctx = &many }, b = { .run = r->run, .ctx = &few };

	flows_open(&many, CONNECTIONS_MANY);
	flows_open(&few, CONNECTIONS_FEW);
	alternate(&a, &b);
}

int main(int argc, char **argv)
{
	clock_start();
	pin(0);
	for (size_t i = 0; argc == 2 && i < sizeof rows / sizeof *rows; i++) {
		if (strcmp(argv[1], rows[i].name))
			continue;
		row_run(&rows[i]);
		return 0;
	}
	die("usage: bench_steer key|frame|alone");
}
