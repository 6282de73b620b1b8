/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fields of big-endian formats: each is written once, in a table, and everything
 * else comes from there.
 *
 * A format header lists its fields as FOO_FIELDS(F, W) and expands the list with
 * the macros below.  F is a field inside one 32-bit word; W is a whole 64-bit
 * value in two.  One line gives the getter, the setter that asserts that the value
 * fits, the checks at compile time, and a descriptor for tests and printers.
 * Bytes may lie at any address: the application decides where a queue is.
 */
#ifndef HW_MODELS_FIELDS_H
#define HW_MODELS_FIELDS_H
#include <assert.h>
#include <endian.h>
#include <stddef.h>
#include <stdint.h>

/* A structure, so that it can't take part in arithmetic by accident. */
typedef struct { uint32_t raw; } __attribute__((packed)) be32_t;

static inline uint32_t be32_load(be32_t v)    { return be32toh(v.raw); }
static inline be32_t   be32_of(uint32_t host) { return (be32_t){ htobe32(host) }; }

#define FIELD_MASK(msb, lsb) (((~UINT32_C(0)) >> (31 - ((msb) - (lsb)))) << (lsb))

struct field_desc {
	const char *name;
	const char *doc;
	uint8_t dw, msb, lsb;	/* msb 63: the 64 bits of dw and dw + 1 */
};

#define FIELD_IS_INSIDE(seg, dw_last) \
	((dw_last) < sizeof(((struct seg *)0)->dw) / sizeof(be32_t))

#define FIELD_ACCESSORS(seg, name, dw_, msb_, lsb_, doc_)                            \
	static inline uint32_t seg##_##name(const struct seg *s)                     \
	{                                                                            \
		return (be32_load(s->dw[dw_]) & FIELD_MASK(msb_, lsb_)) >> (lsb_);   \
	}                                                                            \
	static inline void seg##_set_##name(struct seg *s, uint32_t v)               \
	{                                                                            \
		uint32_t mask = FIELD_MASK(msb_, lsb_);                              \
										     \
		assert((v & (mask >> (lsb_))) == v); /* the value fits its field */  \
		s->dw[dw_] = be32_of((be32_load(s->dw[dw_]) & ~mask) | v << (lsb_)); \
	}                                                                            \
	_Static_assert((msb_) >= (lsb_) && (msb_) <= 31, #seg "." #name " bits");    \
	_Static_assert(FIELD_IS_INSIDE(seg, dw_), #seg "." #name " offset");

#define FIELD64_ACCESSORS(seg, name, dw_, doc_)                                      \
	static inline uint64_t seg##_##name(const struct seg *s)                     \
	{                                                                            \
		return (uint64_t)be32_load(s->dw[dw_]) << 32 |                       \
		       be32_load(s->dw[(dw_) + 1]);                                  \
	}                                                                            \
	static inline void seg##_set_##name(struct seg *s, uint64_t v)               \
	{                                                                            \
		s->dw[dw_] = be32_of((uint32_t)(v >> 32));                           \
		s->dw[(dw_) + 1] = be32_of((uint32_t)v);                             \
	}                                                                            \
	_Static_assert(FIELD_IS_INSIDE(seg, (dw_) + 1), #seg "." #name " offset");

#define FIELD_DESC(seg, name_, dw_, msb_, lsb_, doc_) \
	{ .name = #name_, .doc = doc_, .dw = dw_, .msb = msb_, .lsb = lsb_ },
#define FIELD64_DESC(seg, name_, dw_, doc_) \
	{ .name = #name_, .doc = doc_, .dw = dw_, .msb = 63, .lsb = 0 },

/* A format of @bytes_ bytes: its structure, its accessors, its size check. */
#define FIELD_FORMAT(seg, FIELDS, bytes_)                                            \
	struct seg { be32_t dw[(bytes_) / 4]; };                                     \
	FIELDS(FIELD_ACCESSORS, FIELD64_ACCESSORS)                                   \
	_Static_assert(sizeof(struct seg) == (bytes_), #seg " size")
#endif
