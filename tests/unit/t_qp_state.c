/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state machine against a second table, typed from the specification row by row and
 * not from the code: every edge, type, missing and superfluous attribute.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include "emu/obj/qp_state.h"

/* Numbers of the attribute bits, as <rdma/ib_user_verbs.h> users know them. */
enum {
	CUR = 1, NOTIFY = 2, ACC = 3, PKEY = 4, PORT = 5, QKEY = 6, AV = 7, MTU = 8, TMO = 9,
	RETRY = 10, RNR = 11, RQPSN = 12, MAXRD = 13, ALT = 14, MINRNR = 15, SQPSN = 16,
	MAXDEST = 17, MIG = 18, CAP = 19, DQPN = 20, RATE = 25,
};

#define LIST_MAX 14

struct want {
	const char *edge;		/* "type:from>to"; see type_letters */
	int need[LIST_MAX], may[LIST_MAX];	/* bit numbers, 0 ends */
};

/* RC, UC, UD, XRC initiator and target: what the kernel's core has in its table.  DC initiator and
 * target: what the driver has. */
static const char type_letters[] = "rcuitdD";
enum { TYPES = sizeof type_letters - 1, CORE_TYPES = 5 };

static const struct want wants[] = {
	{ "r:RESET>INIT", { PKEY, PORT, ACC }, { 0 } },
	{ "c:RESET>INIT", { PKEY, PORT, ACC }, { 0 } },
	{ "i:RESET>INIT", { PKEY, PORT, ACC }, { 0 } },
	{ "t:RESET>INIT", { PKEY, PORT, ACC }, { 0 } },
	{ "u:RESET>INIT", { PKEY, PORT, QKEY }, { 0 } },
	{ "r:INIT>INIT", { 0 }, { PKEY, PORT, ACC } },
	{ "c:INIT>INIT", { 0 }, { PKEY, PORT, ACC } },
	{ "i:INIT>INIT", { 0 }, { PKEY, PORT, ACC } },
	{ "t:INIT>INIT", { 0 }, { PKEY, PORT, ACC } },
	{ "u:INIT>INIT", { 0 }, { PKEY, PORT, QKEY } },
	{ "r:INIT>RTR", { AV, MTU, DQPN, RQPSN, MAXDEST, MINRNR }, { ALT, ACC, PKEY } },
	{ "c:INIT>RTR", { AV, MTU, DQPN, RQPSN }, { ALT, ACC, PKEY } },
	{ "i:INIT>RTR", { AV, MTU, DQPN, RQPSN }, { ALT, ACC, PKEY } },
	{ "t:INIT>RTR", { AV, MTU, DQPN, RQPSN, MAXDEST, MINRNR }, { ALT, ACC, PKEY } },
	{ "u:INIT>RTR", { 0 }, { PKEY, QKEY } },
	{ "r:RTR>RTS", { TMO, RETRY, RNR, SQPSN, MAXRD }, { CUR, ALT, ACC, MINRNR, MIG } },
	{ "c:RTR>RTS", { SQPSN }, { CUR, ALT, ACC, MIG } },
	{ "i:RTR>RTS", { TMO, RETRY, RNR, SQPSN, MAXRD }, { CUR, ALT, ACC, MIG } },
	{ "t:RTR>RTS", { TMO, SQPSN }, { CUR, ALT, ACC, MINRNR, MIG } },
	{ "u:RTR>RTS", { SQPSN }, { CUR, QKEY } },
	{ "r:RTS>RTS", { 0 }, { CUR, ACC, ALT, MIG, MINRNR } },
	{ "c:RTS>RTS", { 0 }, { CUR, ACC, ALT, MIG } },
	{ "i:RTS>RTS", { 0 }, { CUR, ACC, ALT, MIG } },
	{ "t:RTS>RTS", { 0 }, { CUR, ACC, ALT, MIG, MINRNR } },
	{ "u:RTS>RTS", { 0 }, { CUR, QKEY } },
	{ "r:RTS>SQD", { 0 }, { NOTIFY } },
	{ "c:RTS>SQD", { 0 }, { NOTIFY } },
	{ "i:RTS>SQD", { 0 }, { NOTIFY } },
	{ "t:RTS>SQD", { 0 }, { NOTIFY } },
	{ "u:RTS>SQD", { 0 }, { NOTIFY } },
	{ "r:SQD>RTS", { 0 }, { CUR, ALT, ACC, MINRNR, MIG } },
	{ "c:SQD>RTS", { 0 }, { CUR, ALT, ACC, MIG } },
	{ "i:SQD>RTS", { 0 }, { CUR, ALT, ACC, MIG } },
	{ "t:SQD>RTS", { 0 }, { CUR, ALT, ACC, MINRNR, MIG } },
	{ "u:SQD>RTS", { 0 }, { CUR, QKEY } },
	{ "r:SQD>SQD", { 0 }, { PORT, AV, TMO, RETRY, RNR, MAXRD, MAXDEST, ALT, ACC, PKEY, MINRNR,
				MIG } },
	{ "c:SQD>SQD", { 0 }, { AV, ALT, ACC, PKEY, MIG } },
	{ "i:SQD>SQD", { 0 }, { PORT, AV, TMO, RETRY, RNR, MAXRD, ALT, ACC, PKEY, MIG } },
	{ "t:SQD>SQD", { 0 }, { PORT, AV, TMO, MAXDEST, ALT, ACC, PKEY, MINRNR, MIG } },
	{ "u:SQD>SQD", { 0 }, { PKEY, QKEY } },
	{ "r:SQE>RTS", { 0 }, { 0 } },
	{ "c:SQE>RTS", { 0 }, { CUR, ACC } },
	{ "i:SQE>RTS", { 0 }, { 0 } },
	{ "t:SQE>RTS", { 0 }, { 0 } },
	{ "u:SQE>RTS", { 0 }, { CUR, QKEY } },
	{ "d:RESET>INIT", { PKEY, PORT }, { 0 } },
	{ "d:INIT>INIT", { 0 }, { PKEY, PORT } },
	{ "d:INIT>RTR", { MTU }, { PKEY, AV } },
	{ "d:RTR>RTS", { TMO, RETRY, RNR, MAXRD, SQPSN }, { MINRNR } },
	{ "d:RTS>RTS", { 0 }, { MINRNR } },
	{ "D:RESET>INIT", { ACC, PKEY, PORT }, { 0 } },
	{ "D:INIT>RTR", { MINRNR, AV, MTU }, { 0 } },
};

static const enum qp_type type_of[TYPES] = {
	QPT_RC, QPT_UC, QPT_UD, QPT_XRC_INI, QPT_XRC_TGT, QPT_DCI, QPT_DCT,
};

static const char *const state_names[QP_STATE_COUNT] = {
	"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR",
};

static uint32_t bits(const int *list)
{
	uint32_t mask = 0;

	for (int i = 0; i < LIST_MAX && list[i]; i++)
		mask |= 1u << list[i];
	return mask;
}

static bool is_target(int type)
{
	return type_letters[type] == 'D';
}

/* The row of an edge; an edge to RESET or ERR has none but exists without attributes, except that
 * nothing takes a DC target back. */
static int find(int type, int from, int to, struct want *out)
{
	char edge[32];

	*out = (struct want){ .edge = "" };
	if (!is_target(type) && (to == QP_RESET || (to == QP_ERR && from != QP_RESET)))
		return 1;
	snprintf(edge, sizeof edge, "%c:%s>%s", type_letters[type], state_names[from],
		 state_names[to]);
	for (size_t i = 0; i < sizeof wants / sizeof *wants; i++)
		if (!strcmp(wants[i].edge, edge)) {
			*out = wants[i];
			return 1;
		}
	return 0;
}

static void check_masks(int type, int from, int to, const struct want *w)
{
	uint32_t need = bits(w->need), may = bits(w->may), missing, extra;
	uint32_t state = type < CORE_TYPES ? 0 : A_STATE;	/* that must be given as well */

	for (int with_state = 0; with_state < 2; with_state++) {
		enum why why = state && !with_state ? WHY_MODIFY_MASK : WHY_NONE;

		cr_assert_eq(qp_edge_check(type_of[type], from, to, need | with_state, &missing,
					   &extra), why);
		cr_assert_eq(qp_edge_check(type_of[type], from, to, need | may | with_state,
					   &missing, &extra), why);
	}
	for (int bit = 1; bit < 32; bit++) {
		uint32_t mask = (need | state) ^ 1u << bit;
		enum why why;

		missing = extra = 0;
		why = qp_edge_check(type_of[type], from, to, mask, &missing, &extra);
		if (may & 1u << bit) {
			cr_assert_eq(why, WHY_NONE, "%s with %d", w->edge, bit);
			continue;
		}
		cr_assert_eq(why, WHY_MODIFY_MASK, "%c %d>%d bit %d", type_letters[type],
			     from, to, bit);
		cr_assert_eq(missing, need & 1u << bit);
		cr_assert_eq(extra, ~need & 1u << bit);
	}
}

Test(qp_state, every_edge_of_every_type_is_as_specified)
{
	unsigned legal = 0;

	for (int type = 0; type < TYPES; type++)
		for (int from = 0; from < QP_STATE_COUNT; from++)
			for (int to = 0; to < QP_STATE_COUNT; to++) {
				struct want w;
				uint32_t missing, extra;

				if (find(type, from, to, &w)) {
					legal++;
					check_masks(type, from, to, &w);
				} else {
					cr_assert_eq(qp_edge_check(type_of[type], from, to,
								   A_STATE, &missing, &extra),
						     WHY_MODIFY_EDGE, "%d %d>%d", type, from, to);
				}
			}
	cr_assert_eq(legal, CORE_TYPES * (7 + 6 + 9) + (7 + 6 + 5) + 2, "%u", legal);
}

Test(qp_state, states_have_names)
{
	for (int i = 0; i < QP_STATE_COUNT; i++)
		cr_assert_str_eq(qp_state_name(i), state_names[i]);
	cr_assert_str_eq(qp_state_name((enum qp_state)99), "?");
}
