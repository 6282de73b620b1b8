/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fuzzers' device; see world.h.
 */
#include <stdlib.h>
#include "tests/fuzz/world.h"
#include "emu/engine/engine_local.h"
#include "emu/mem/mem.h"
#include "emu/obj/flow.h"

/* Far more than any input can be the reason for. */
enum { STEPS_MAX = 10000 };

struct emu_dev device;
struct engine *engine;
uint64_t clock_ns;

static struct why_ring reasons;

/* What an input may change of the device itself. */
static struct {
	const struct hw_profile *profile;
	struct emu_port port;
	struct emu_gid gid[EMU_GIDS_MAX];
	unsigned gid_count;
} at_first;

/* On a stack for signals, each fault that the guard of emu/mem turns into an errno would make the
 * sanitizer read the list of mappings; and who allocated what is asked when something was found,
 * with ASAN_OPTIONS=malloc_context_size=30.  What was freed is kept for a hundred inputs or more;
 * kept longer, each allocation gets memory that the kernel must clear first. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "use_sigaltstack=0:malloc_context_size=2:quarantine_size_mb=16";
}

static uint64_t clock_read(void)
{
	return clock_ns;
}

void device_begin(struct wire *wire)
{
	int failed = mem_guard_init();

	pthread_mutex_init(&device.lock, NULL);
	device.profile = hw_profile_find("connectx-6dx");
	device.node_guid = 0x0200c0fffe000001;
	device.now_ns = clock_read;
	device.why = &reasons;
	device.gid_count = 3;		/* the second is empty */
	port_begin(&device);
	device.gid[0] = (struct emu_gid){ .raw = { 0xfe, 0x80, [15] = 1 }, .type = 2 };
	device.gid[2] = (struct emu_gid){ .raw = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 },
					  .type = 2, .netdev_ifindex = 7 };
	failed = failed || key_table_init(&device.keys, NULL, NULL) ||
		 numbers_init(&device.qpns, 2, NULL, NULL) ||
		 numbers_init(&device.cqns, 1, NULL, NULL) ||
		 numbers_init(&device.pdns, 1, NULL, NULL) ||
		 numbers_init(&device.srqns, 1, NULL, NULL) ||
		 numbers_init(&device.wqns, 1, NULL, NULL) || flow_steering_begin(&device) ||
		 engine_create(&device, wire, NULL, &engine);
	assert(!failed);
	at_first.profile = device.profile;
	at_first.port = device.port;
	at_first.gid_count = device.gid_count;
	memcpy(at_first.gid, device.gid, sizeof at_first.gid);
}

/* The queue of free numbers as it was before the first was taken.  For each input and each space,
 * so it is copied from where it stands. */
static void numbers_rewind(struct number_space *space)
{
	static uint32_t *in_order, count;

	assert(!space->taken);
	if (count < space->leased) {
		count = space->leased;
		in_order = realloc(in_order, count * sizeof *in_order);
		assert(in_order);
		for (uint32_t i = 0; i < count; i++)
			in_order[i] = i;
	}
	assert(space->leased - space->free_count == (space->leased ? space->reserved : 0));
	if (space->free_head)
		memcpy(space->free_ring, in_order + space->reserved,
		       space->free_count * sizeof *in_order);
	space->free_head = 0;
}

void device_rewind(void)
{
	assert(engine_deadline_ns(engine) == UINT64_MAX && !engine->timer_wanted);
	assert(!engine->armed_cqs && !engine->failed_qps && !engine->page_count);
	assert(!device.mcast.group_count);
	device.profile = at_first.profile;
	device.lid = 0;
	device.lmc = 0;
	device.port = at_first.port;
	device.gid_count = at_first.gid_count;
	memcpy(device.gid, at_first.gid, sizeof device.gid);
	numbers_rewind(&device.qpns);
	numbers_rewind(&device.cqns);
	numbers_rewind(&device.pdns);
	assert(!device.xrc_domains);
	numbers_rewind(&device.srqns);
	numbers_rewind(&device.wqns);
	numbers_rewind(&device.flows);
	device.rule_order = 0;
	numbers_rewind(&device.keys.indices);
	device.keys.next_tag = 0;
	if (device.keys.own[0])
		memset(device.keys.own[0], 0, NUMBER_BLOCK * sizeof **device.keys.own);
	reasons.made = 0;
	clock_ns = 1000;
}

void device_run(void)
{
	pthread_mutex_lock(&device.lock);
	for (int steps = 0; engine_run(engine); steps++)
		assert(steps < STEPS_MAX);
	pthread_mutex_unlock(&device.lock);
}

bool device_settle(unsigned deadlines_max)
{
	for (unsigned i = 0; i < deadlines_max; i++) {
		uint64_t deadline_ns;

		device_run();
		deadline_ns = engine_deadline_ns(engine);
		if (deadline_ns == UINT64_MAX)
			return true;
		if (deadline_ns > clock_ns)
			clock_ns = deadline_ns;
	}
	return false;
}

/* All QPs are in the first block: inputs are short. */
static void qps_check(void)
{
	struct emu_qp *const *qps = (void *)device.qpns.block[0];
	int failed = 0;

	for (uint32_t i = 0, left = device.qpns.taken; left; i++) {
		const struct emu_qp *qp = qps[i];

		if (!qp)
			continue;
		left--;
		failed += qp->is_counted_failed;
		assert(!qp->work || qp->is_ready || qp->is_blocked);
		assert((qp->state == QP_ERR && qp->rq_count) == qp->is_counted_failed);
	}
	assert(failed == engine->failed_qps);
}

void device_check(void)
{
	int is_kept = pthread_mutex_trylock(&device.lock);

	assert(!is_kept);
	qps_check();
	pthread_mutex_unlock(&device.lock);
}
