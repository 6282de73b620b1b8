/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Can a capture hurt who plays it?
 *
 * The file ends where memory does, so whoever reads behind it gets a fault, which is none of a
 * capture's own.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "emu/mem/mem.h"
#include "emu/uplink/capture.h"

enum { FILE_BYTES_MAX = 1 << 16, PAGE_BYTES = 4096 };

static uint8_t *file_end(void)
{
	static uint8_t *end;

	if (end)
		return end;
	assert(!mem_guard_init());
	end = mmap(NULL, FILE_BYTES_MAX + PAGE_BYTES, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert(end != MAP_FAILED);
	end += FILE_BYTES_MAX;
	assert(!mprotect(end, PAGE_BYTES, PROT_NONE));
	return end;
}

static void frame_check(const struct capture *c, const struct capture_frame *frame)
{
	uint8_t *copy;

	assert(frame->at <= c->bytes && frame->bytes <= c->bytes - frame->at);
	copy = malloc(frame->bytes + 1);
	assert(copy && !capture_copy(c, frame, copy));
	assert(!memcmp(copy, c->at + frame->at, frame->bytes));
	free(copy);
}

/* From the front to the end or a fault, and never back. */
static enum capture_fault walk(struct capture *c, const uint8_t *at, size_t bytes)
{
	struct capture_frame frame;
	enum capture_fault fault = capture_begin(c, at, bytes);
	uint64_t before;

	while (fault == CAPTURE_OK) {
		before = c->next;
		fault = capture_next(c, &frame);
		assert(c->next >= before && c->next <= bytes);
		if (fault != CAPTURE_OK)
			break;
		assert(c->next > before);
		frame_check(c, &frame);
	}
	return fault;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	size_t count = size < FILE_BYTES_MAX ? size : FILE_BYTES_MAX;
	uint8_t *at = file_end() - count;
	struct capture walked, checked;
	enum capture_fault fault;

	if (count)
		memcpy(at, bytes, count);
	fault = walk(&walked, at, count);
	assert(fault != CAPTURE_MEMORY && fault != CAPTURE_OK && fault < CAPTURE_FAULT_COUNT);
	assert(capture_check(&checked, at, count) == fault && checked.next == walked.next);
	assert(capture_fault_text(fault)[0]);
	return 0;
}
