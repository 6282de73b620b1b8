/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file in which a member publishes its rules, "<slot>-<generation>-rules"; private to rules.c.
 *
 * A head, then records of whole units: one unit that says what the rule is, then mask and value of
 * the blocks that it looks at.  A record stays where and as long as it was made; without a rule
 * it has number 0 and waits for another one of its size.  The file grows at its end.
 *
 * The head has a ring of the last changes: which number is to be looked at, and in which unit.
 * How many there have been is in the fabric's segment (rule_change), so that a follower that keeps
 * up reads the changes only, and one that has fallen behind reads all records.
 *
 * A record is written in this order: sequence odd, the rest, sequence even, change, count of
 * changes.  So a change that has been counted can be read, and a record that is found half-written
 * is that of a change that is still to be counted; if its writer dies, it never is.
 *
 * Readers use guarded copies and check what they have copied, against others who write here.
 */
#ifndef EMU_FABRIC_RULES_FILE_H
#define EMU_FABRIC_RULES_FILE_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "emu/fabric/rules.h"

#define RULES_MAGIC		0x73656c7572736276ull
#define RULES_LAYOUT		1u
#define RULES_UNIT_BYTES	64u
#define RULES_UNITS_MAX		(4u << 20)	/* of a file: 256 MiB */
#define RULES_CHANGES		4096u
#define RULES_RULE_BYTES_MAX	(2 * RULES_BLOCKS * RULES_BLOCK_BYTES)
#define RULES_RECORD_UNITS_MAX	(1 + 2 * RULES_BLOCKS)
#define RULES_NODE_MAX		65534u

struct rules_change {
	_Atomic uint32_t number, unit;
};

struct rules_head {
	uint64_t magic;
	uint32_t layout, node;
	_Alignas(64) _Atomic uint32_t end;	/* units that have been made records */
	_Alignas(64) struct rules_change change[RULES_CHANGES];	/* by count modulo this */
};

struct rules_record {
	_Atomic uint32_t sequence;	/* odd: being written */
	uint32_t units;			/* never changes */
	uint32_t number, level, blocks, continues;
	uint64_t order;
	uint64_t unused[4];
};
_Static_assert(sizeof(struct rules_record) == RULES_UNIT_BYTES, "one unit");
_Static_assert(sizeof(struct rules_head) % RULES_UNIT_BYTES == 0, "records are aligned");

struct rules_file {
	struct rules_head *head;	/* NULL: there is none */
	size_t bytes;			/* mapped */
	uint32_t end;			/* as head->end was when it was last looked at */
	uint32_t node;
	dev_t device;			/* the owner's, to know it again */
	ino_t inode;
};

/* Units of a rule that looks at these blocks. */
static inline uint32_t rules_units(uint32_t blocks)
{
	return 1 + 2 * (uint32_t)__builtin_popcount(blocks);
}

/* Where the value of a rule is behind its mask. */
static inline size_t rules_value_offset(uint32_t blocks)
{
	return (size_t)__builtin_popcount(blocks) * RULES_BLOCK_BYTES;
}

void rules_file_close(struct rules_file *f);

/* --- the owner --- */

/* 0 or -errno, among them -ENOSPC, -EFBIG, -EMFILE; no file is left then.  A cancellation point. */
int rules_file_create(struct rules_file *f, const char *path, uint32_t node);
/* A new record of so many units at @unit_out; the file grows if it must: -errno as above, and
 * -ENOENT, -ESTALE somebody has taken the file away. */
int rules_file_extend(struct rules_file *f, const char *path, uint32_t units, uint32_t *unit_out);
/* @rule NULL: none any more. */
void rules_file_write(struct rules_file *f, uint32_t unit, const struct fabric_rule *rule,
		      uint64_t order);
/* The change with this count, before it is counted. */
void rules_file_log(struct rules_file *f, uint64_t change, uint32_t number, uint32_t unit);

/* --- a reader --- */

/* -ENOENT; -EBADMSG it is no such file; -errno: perhaps later.  A cancellation point. */
int rules_file_open(struct rules_file *f, const char *path);
/* See the records that have been made since.  -EBADMSG, -ENOMEM */
int rules_file_look(struct rules_file *f);
/* The first unit of a record, as it was at one moment, its fields checked.  -EAGAIN: it is being
 * written, and only @units is valid; -EBADMSG: no writer of ours has made that. */
int rules_file_read(const struct rules_file *f, uint32_t unit, struct rules_record *out);
/* Mask and value of what was read as @record.  -EAGAIN: it is not there any more; -EBADMSG */
int rules_file_read_blocks(const struct rules_file *f, uint32_t unit,
			   const struct rules_record *record, uint8_t out[RULES_RULE_BYTES_MAX]);
/* -EBADMSG.  It counts only if fewer than RULES_CHANGES later ones have been counted since. */
int rules_file_change(const struct rules_file *f, uint64_t change, uint32_t *number_out,
		      uint32_t *unit_out);
#endif
