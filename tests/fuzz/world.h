/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the fuzzers share: bytes as a stream of choices, and a device with a clock of its own.
 *
 * An input that has ended gives zeros for ever, and everywhere zero is the sensible choice: so
 * a short input is a program that does the right thing, and each further byte can spoil one thing.
 *
 * A fuzzer keeps its device from one input to the next, since making one costs more than all the
 * rest; device_rewind() sees to it that equal inputs meet equal numbers.
 */
#ifndef TESTS_FUZZ_WORLD_H
#define TESTS_FUZZ_WORLD_H
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "emu/engine/engine.h"
#include "emu/obj/obj.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

struct input {
	const uint8_t *at, *end;
};

static inline bool input_has_more(const struct input *in)
{
	return in->at < in->end;
}

/* The next @bytes, zeros behind the end. */
static inline void take(struct input *in, void *out, size_t bytes)
{
	size_t left = (size_t)(in->end - in->at), got = bytes < left ? bytes : left;

	memset(out, 0, bytes);
	if (!got)
		return;
	memcpy(out, in->at, got);
	in->at += got;
}

static inline uint8_t take8(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

static inline uint16_t take16(struct input *in)
{
	uint16_t value;

	take(in, &value, sizeof value);
	return value;
}

static inline uint32_t take32(struct input *in)
{
	uint32_t value;

	take(in, &value, sizeof value);
	return value;
}

static inline uint64_t take64(struct input *in)
{
	uint64_t value;

	take(in, &value, sizeof value);
	return value;
}

extern struct emu_dev device;
extern struct engine *engine;
extern uint64_t clock_ns;

/* Once a process, from the first input on: the fault handlers must come after those of the
 * sanitizers and of libFuzzer. */
void device_begin(struct wire *wire);
/* Everything of the last input is gone: nothing may be left, and all starts again, the port
 * included. */
void device_rewind(void);
/* Let the engine run; at most a bounded number of steps, or it would never end. */
void device_run(void);
/* Run, and let all timers expire, until nothing will ever happen again.  False: that was not so
 * after @deadlines_max timers. */
bool device_settle(unsigned deadlines_max);
/* Nobody has kept the device lock, and no QP that has something to do is forgotten. */
void device_check(void);
#endif
