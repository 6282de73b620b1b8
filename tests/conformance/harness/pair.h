/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two connected ends: `a` here, the other behind `peer`.
 *
 * A case opens a pair with options, talks, and closes it.  CASE_EACH writes a case once
 * and runs it in every placement; CASE_TABLE also for each row of a table.
 */
#ifndef CONFORMANCE_PAIR_H
#define CONFORMANCE_PAIR_H
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include "peer.h"

struct pair_opts { struct end_opts a, b; };

struct pair {
	struct end a;
	struct peer peer;
	struct end_info ia, ib;		/* what each end told the other */
};

void pair_defaults(struct pair_opts *opts);

/* Open and connect, or fail the case.  @opts NULL: defaults. */
void pair_open(struct pair *p, enum placement placement, const struct pair_opts *opts);
/* The same without moving a QP, for cases about the way there. */
void pair_open_unconnected(struct pair *p, enum placement placement,
			   const struct pair_opts *opts);
void pair_connect(struct pair *p);
void pair_close(struct pair *p);

/* A request from a's buffer to the other's, both from offset 0; signalled. */
struct work pair_work(const struct pair *p, enum ibv_wr_opcode opcode, uint32_t bytes);
/* A receive into b's buffer at @offset. */
struct work pair_recv(const struct pair *p, uint64_t wr_id, size_t offset, uint32_t bytes);

/* A table's row and a placement as one parameter. */
struct case_param { int row, placement; };
#define CASE_ROWS_MAX 96

#define CASE_PARAMS_(suite, name, rows)                                                   \
	ParameterizedTestParameters(suite, name)                                           \
	{                                                                                   \
		static struct case_param params[CASE_ROWS_MAX * PLACEMENT_COUNT];            \
		size_t count = 0;                                                             \
		for (int r = 0; r < (int)(rows); r++)                                          \
			for (int pl = 0; pl < PLACEMENT_COUNT; pl++)                            \
				params[count++] = (struct case_param){ r, pl };                  \
		return cr_make_param_array(struct case_param, params, count, NULL);               \
	}

/* static void body(int row, enum placement where) follows the macro. */
#define CASE_TABLE(suite, name, rows)                                                     \
	static void suite##_##name(int row, enum placement where);                         \
	CASE_PARAMS_(suite, name, rows)                                                     \
	ParameterizedTest(struct case_param *param, suite, name)                             \
	{                                                                                     \
		suite##_##name(param->row, (enum placement)param->placement);                  \
	}                                                                                       \
	static void suite##_##name(int row, enum placement where)

/* static void body(enum placement where) follows the macro. */
#define CASE_EACH(suite, name)                                                            \
	static void suite##_##name(enum placement where);                                  \
	CASE_PARAMS_(suite, name, 1)                                                        \
	ParameterizedTest(struct case_param *param, suite, name)                             \
	{                                                                                     \
		suite##_##name((enum placement)param->placement);                              \
	}                                                                                       \
	static void suite##_##name(enum placement where)

#define ROWS(table) (sizeof(table) / sizeof *(table))
#endif
