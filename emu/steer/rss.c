/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which hash a frame has; see rss.h.
 */
#include <string.h>
#include "emu/steer/headers.h"
#include "emu/steer/rss.h"

/* For each bit of the input that is 1 the 32 bits of the key that begin there count.  No branch:
 * bits of addresses can't be predicted. */
uint32_t rss_toeplitz(const uint8_t key[RSS_KEY_BYTES], const uint8_t *bytes, unsigned count)
{
	uint64_t window = (uint64_t)key[0] << 24 | key[1] << 16 | key[2] << 8 | key[3], hash = 0;

	for (unsigned i = 0; i < count; i++) {
		window = window << 8 | key[i + 4];
		for (unsigned bit = 0; bit < 8; bit++)
			hash ^= window >> (bit + 1) & -(uint64_t)(bytes[i] >> bit & 1);
	}
	return (uint32_t)hash;
}

/* In the order in which they are hashed.  TCP stands for all kinds of it. */
static const struct part {
	uint32_t field;
	uint8_t l3_type, l4_type;	/* which a frame must have; 0: any */
	uint8_t at, bytes;		/* in that header */
	uint8_t type;			/* of the CQE */
} parts[] = {
	{ RSS_SRC_IPV4,		FRAME_IPV4, 0,	IPV4_SRC, 4,	1 << 2 },
	{ RSS_DST_IPV4,		FRAME_IPV4, 0,	IPV4_DST, 4,	1 << 2 },
	{ RSS_SRC_IPV6,		FRAME_IPV6, 0,	IPV6_SRC, 16,	2 << 2 },
	{ RSS_DST_IPV6,		FRAME_IPV6, 0,	IPV6_DST, 16,	2 << 2 },
	{ RSS_SRC_PORT_TCP,	0, FRAME_TCP,	L4_SPORT, 2,	1 << 6 },
	{ RSS_DST_PORT_TCP,	0, FRAME_TCP,	L4_DPORT, 2,	1 << 6 },
	{ RSS_SRC_PORT_UDP,	0, FRAME_UDP,	L4_SPORT, 2,	2 << 6 },
	{ RSS_DST_PORT_UDP,	0, FRAME_UDP,	L4_DPORT, 2,	2 << 6 },
};

/* NULL: the frame has no such header. */
static const uint8_t *part_find(const struct frame *f, const struct frame_layer *l,
				const struct part *p)
{
	uint8_t l4_type = frame_is_tcp(l) ? FRAME_TCP : l->l4_type;

	if (p->l3_type)
		return l->l3_type == p->l3_type ? f->at + l->l3 + p->at : NULL;
	return l4_type == p->l4_type ? f->at + l->l4 + p->at : NULL;
}

/* All that is asked for must be there: a frame has one L3 and one L4, so that is 36 bytes. */
uint32_t rss_hash(const struct rss *rss, const struct frame *f, uint8_t *type_out)
{
	const struct frame_layer *l = rss->is_inner ? &f->inner : &f->outer;
	uint8_t input[RSS_INPUT_BYTES_MAX], type = 0;
	unsigned count = 0;

	*type_out = 0;
	for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++) {
		const struct part *p = &parts[i];
		const uint8_t *found;

		if (!(rss->fields & p->field))
			continue;
		found = part_find(f, l, p);
		if (!found)
			return 0;
		memcpy(input + count, found, p->bytes);
		count += p->bytes;
		type |= p->type;
	}
	*type_out = type;
	return rss_toeplitz(rss->key, input, count);
}
