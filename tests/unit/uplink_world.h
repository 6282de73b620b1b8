/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A function with uplinks that a case fills and looks into, and a clock that it moves, for tests of
 * emu/engine/uplink.c.
 */
#ifndef TESTS_UNIT_UPLINK_WORLD_H
#define TESTS_UNIT_UPLINK_WORLD_H
#include "emu/engine/engine.h"
#include "emu/uplink/uplink.h"
#include "tests/unit/ether_world.h"

enum { KEPT = 64, KEPT_BYTES = 16384, MILLISECOND = 1000000, SETTLE_MS = 100, PATIENCE_MS = 2000 };

/* One side: what comes, and what went there. */
struct fake {
	struct uplink uplink;
	struct iovec in[KEPT];
	unsigned in_count, in_taken;
	bool is_held;			/* received and not released */
	uint8_t out[KEPT][256];
	uint32_t out_bytes[KEPT];
	unsigned out_count;
	int send_error;
	void (*arrived)(void *ctx);
	void *ctx;
};

static struct fake outside, host;
static uint64_t clock_ns = MILLISECOND;

static inline struct fake *fake(struct uplink *u)
{
	return (struct fake *)u;
}

static inline bool fake_receive(struct uplink *u, struct iovec *out)
{
	struct fake *f = fake(u);

	f->is_held = f->in_taken < f->in_count;
	if (f->is_held)
		*out = f->in[f->in_taken];
	return f->is_held;
}

static inline void fake_release(struct uplink *u)
{
	struct fake *f = fake(u);

	cr_assert(f->is_held);
	f->is_held = false;
	f->in_taken++;
}

static inline int fake_send(struct uplink *u, const void *frame, uint32_t bytes)
{
	struct fake *f = fake(u);

	if (f->send_error)
		return f->send_error;
	cr_assert(f->out_count < KEPT && bytes <= sizeof f->out[0]);
	memcpy(f->out[f->out_count], frame, bytes);
	f->out_bytes[f->out_count++] = bytes;
	return 0;
}

static inline void fake_listen(struct uplink *u, void (*arrived)(void *ctx), void *ctx)
{
	fake(u)->arrived = arrived;
	fake(u)->ctx = ctx;
}

static const struct uplink_ops outside_ops = {
	.name = "fake", .receive = fake_receive, .release = fake_release, .send = fake_send,
};

static const struct uplink_ops host_ops = {
	.name = "fake", .receive = fake_receive, .release = fake_release, .send = fake_send,
	.listen = fake_listen,
};

static inline uint64_t fake_now_ns(void)
{
	return clock_ns;
}

/* @has_host: its rule is made as emu/ makes it. */
static inline struct rig uplinks_new(bool has_outside, bool has_host)
{
	struct rig r = rig_new();

	r.w->dev.now_ns = fake_now_ns;
	outside.uplink.ops = &outside_ops;
	host.uplink.ops = &host_ops;
	if (has_host)
		rule(&r, (struct flow_init){ .level = STEER_LEVEL_HOST, .is_host = true });
	engine_uplinks_join(r.e, has_outside ? &outside.uplink : NULL,
			    has_host ? &host.uplink : NULL);
	return r;
}

/* Frame @i from there is told by its bytes behind the addresses. */
static inline uint8_t *frame_from(struct fake *f, const uint8_t dst[6], uint32_t bytes)
{
	static const uint8_t src[6] = { 0x02, 0, 0, 0, 0, 9 };
	uint8_t *at = calloc(1, bytes);
	struct iovec *in = &f->in[f->in_count];

	cr_assert(f->in_count < KEPT);
	*in = (struct iovec){ at, bytes };
	if (bytes < 14)
		return at;
	for (uint32_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)(f->in_count * 7 + i);
	memcpy(at, dst, 6);
	memcpy(at + 6, src, 6);
	at[12] = 0x88;
	at[13] = 0xb5;
	f->in_count++;
	return at;
}

static inline void frames_from(struct fake *f, const uint8_t dst[6], unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		frame_from(f, dst, 60 + i);
}

static inline void step(struct rig *r, uint64_t ms)
{
	clock_ns += ms * MILLISECOND;
	while (engine_run(r->e))
		;
}

static inline void settle(struct rig *r)
{
	step(r, 0);
	step(r, SETTLE_MS);
}

static inline void recvs_post(struct side *s, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		recv_post(s, 4096, 0, s->posted_recvs % WORLD_RECVS * 4096u);
}

/* The next receive of @s has frame @i of those from @f. */
static inline void expect_frame(struct rig *r, struct side *s, unsigned at, struct fake *f,
				unsigned i)
{
	cr_assert_not_null(rig_poll(r), "frame %u did not come", i);
	cr_assert(!memcmp(s->data + at % WORLD_RECVS * 4096, f->in[i].iov_base, f->in[i].iov_len),
		  "receive %u has not frame %u", at, i);
}
#endif
