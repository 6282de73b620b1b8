/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checksum of the Internet; see sum.h.
 */
#include "emu/steer/bytes.h"
#include "emu/steer/headers.h"
#include "emu/steer/sum.h"

static uint16_t fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* In this machine's byte order: a sum of swapped halves is the swapped sum. */
static uint64_t sum_words(const uint8_t *bytes, uint32_t count)
{
	uint64_t sum = 0, word;

	for (; count >= sizeof word; count -= sizeof word, bytes += sizeof word) {
		memcpy(&word, bytes, sizeof word);
		sum += (word & 0xffffffff) + (word >> 32);
	}
	word = 0;
	memcpy(&word, bytes, count);
	return sum + (word & 0xffffffff) + (word >> 32);
}

uint16_t sum_add(uint16_t sum, const uint8_t *bytes, uint32_t count)
{
	uint16_t words = fold(sum_words(bytes, count));

	return fold(sum + (uint64_t)load16((const uint8_t *)&words));
}

uint16_t sum_l4(const uint8_t *frame, const struct frame_layer *l)
{
	uint32_t l4_bytes = l->l4_end - l->l4;
	const uint8_t *ip = frame + l->l3;
	uint8_t rest[8] = { [7] = l->ip_protocol };
	uint16_t sum;

	store32(rest, l4_bytes);
	sum = sum_add(0, rest, sizeof rest);
	sum = l->l3_type == FRAME_IPV4 ? sum_add(sum, ip + IPV4_SRC, 8) :
					 sum_add(sum, ip + IPV6_SRC, 32);
	return sum_add(sum, frame + l->l4, l4_bytes);
}
