/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What atomics do to the value that is there, and how the owner of the memory does it.
 *
 * Masked atomics have no public wire format: between emulated devices their masks are the payload
 * of a request of its own opcode.  Source: device-abi C.3.5.
 */
#include <errno.h>
#include "emu/transport/resp_local.h"

/* Only another thread that changes the same word all the time makes more than a few necessary. */
#define TRIES_MAX	(1 << 20)

bool atomic_read(const struct ib_packet *p, struct atomic *out)
{
	uint8_t op = ib_operation(p->opcode);
	uint64_t masks[2] = { 0, UINT64_MAX };
	struct iovec to = { masks, sizeof masks };

	*out = (struct atomic){
		.is_add = op == RC_FETCH_ADD || op == RC_MASKED_FETCH_ADD,
		.bytes = (uint8_t)atomic_bytes(p), .operand = p->swap_add, .compare = p->compare,
	};
	if (!out->is_add)
		masks[0] = UINT64_MAX;
	if (ib_is_masked_atomic(op) &&
	    mem_copy_spans(&to, 1, 0, p->span, p->span_count, 0, sizeof masks) != MEM_SIDE_NONE)
		return false;
	out->mask = masks[0];
	out->compare_mask = masks[1];
	return true;
}

/*
 * Fields end where a boundary bit says that their highest bit is, and no carry crosses that.
 * Without the highest bits nothing can; they are added without a carry.
 */
static uint64_t add_fields(uint64_t a, uint64_t b, uint64_t boundaries)
{
	return ((a & ~boundaries) + (b & ~boundaries)) ^ ((a ^ b) & boundaries);
}

static uint64_t all_bits(const struct atomic *a)
{
	return a->bytes == 4 ? UINT32_MAX : UINT64_MAX;
}

uint64_t atomic_result(const struct atomic *a, uint64_t old)
{
	uint64_t all = all_bits(a);

	if (a->is_add)
		return add_fields(old, a->operand, a->mask) & all;
	if ((old ^ a->compare) & a->compare_mask & all)
		return old;
	return ((old & ~a->mask) | (a->operand & a->mask)) & all;
}

static int compare_swap(uint64_t at, unsigned bytes, uint64_t compare, uint64_t swap,
			uint64_t *old_out)
{
	uint32_t old;
	int rc;

	if (bytes == 8)
		return mem_compare_swap(at, compare, swap, old_out);
	rc = mem_compare_swap32(at, (uint32_t)compare, (uint32_t)swap, &old);
	*old_out = old;
	return rc;
}

int atomic_execute(const struct atomic *a, uint64_t at, uint64_t *old_out)
{
	uint64_t guess = a->is_add ? 0 : a->compare & all_bits(a);

	if (a->is_add && a->bytes == 8 && !a->mask)
		return mem_fetch_add(at, a->operand, old_out);
	for (int i = 0; i < TRIES_MAX; i++) {
		if (compare_swap(at, a->bytes, guess, atomic_result(a, guess), old_out))
			return -EFAULT;
		if (*old_out == guess)
			return 0;
		guess = *old_out;
	}
	return -EAGAIN;
}
