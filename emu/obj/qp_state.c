/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The edges of the QP state machine and the attributes each needs and allows.
 *
 * Data only: what an edge does is in qp_modify.c.
 */
#include <assert.h>
#include <stddef.h>
#include "emu/obj/qp_state.h"

struct qp_edge {
	bool is_legal;
	uint32_t need[QPT_COUNT];	/* must be given */
	uint32_t may[QPT_COUNT];	/* may be given  */
};

#define LEGAL		.is_legal = true
#define TO_RESET	[QP_RESET] = { LEGAL }
#define TO_RESET_OR_ERR	TO_RESET, [QP_ERR] = { LEGAL }
#define NEED(rc, uc, ud) .need = { [QPT_RC] = rc, [QPT_UC] = uc, [QPT_UD] = ud }
#define MAY(rc, uc, ud)	.may = { [QPT_RC] = rc, [QPT_UC] = uc, [QPT_UD] = ud }

/* RTR to RTS, RTS to RTS, and SQD to RTS allow the same. */
#define MAY_WHEN_RUNNING						\
	MAY(A_CUR_STATE | A_ALT | A_ACCESS | A_MIN_RNR | A_MIG,		\
	    A_CUR_STATE | A_ALT | A_ACCESS | A_MIG,			\
	    A_CUR_STATE | A_QKEY)

static const struct qp_edge qp_edges[QP_STATE_COUNT][QP_STATE_COUNT] = {
	[QP_RESET] = {
		TO_RESET,
		[QP_INIT] = { LEGAL,
			NEED(A_PKEY | A_PORT | A_ACCESS,
			     A_PKEY | A_PORT | A_ACCESS,
			     A_PKEY | A_PORT | A_QKEY) },
	},
	[QP_INIT] = {
		TO_RESET_OR_ERR,
		[QP_INIT] = { LEGAL,
			MAY(A_PKEY | A_PORT | A_ACCESS,
			    A_PKEY | A_PORT | A_ACCESS,
			    A_PKEY | A_PORT | A_QKEY) },
		[QP_RTR] = { LEGAL,
			NEED(A_AV | A_MTU | A_DEST_QPN | A_RQ_PSN | A_MAX_DEST_RD | A_MIN_RNR,
			     A_AV | A_MTU | A_DEST_QPN | A_RQ_PSN,
			     0),
			MAY(A_ALT | A_ACCESS | A_PKEY,
			    A_ALT | A_ACCESS | A_PKEY,
			    A_PKEY | A_QKEY) },
	},
	[QP_RTR] = {
		TO_RESET_OR_ERR,
		[QP_RTS] = { LEGAL,
			NEED(A_TIMEOUT | A_RETRY | A_RNR | A_SQ_PSN | A_MAX_RD,
			     A_SQ_PSN,
			     A_SQ_PSN),
			MAY_WHEN_RUNNING },
	},
	[QP_RTS] = {
		TO_RESET_OR_ERR,
		[QP_RTS] = { LEGAL, MAY_WHEN_RUNNING },
		[QP_SQD] = { LEGAL, MAY(A_EN_SQD_NOTIFY, A_EN_SQD_NOTIFY, A_EN_SQD_NOTIFY) },
	},
	[QP_SQD] = {
		TO_RESET_OR_ERR,
		[QP_RTS] = { LEGAL, MAY_WHEN_RUNNING },
		[QP_SQD] = { LEGAL,
			MAY(A_PORT | A_AV | A_TIMEOUT | A_RETRY | A_RNR | A_MAX_RD |
			    A_MAX_DEST_RD | A_ALT | A_ACCESS | A_PKEY | A_MIN_RNR | A_MIG,
			    A_AV | A_ALT | A_ACCESS | A_PKEY | A_MIG,
			    A_PKEY | A_QKEY) },
	},
	[QP_SQE] = {
		TO_RESET_OR_ERR,
		[QP_RTS] = { LEGAL,
			MAY(0, A_CUR_STATE | A_ACCESS, A_CUR_STATE | A_QKEY) },
	},
	[QP_ERR] = {
		TO_RESET_OR_ERR,
	},
};

enum why qp_edge_check(enum qp_type type, enum qp_state from, enum qp_state to, uint32_t mask,
		       uint32_t *missing_out, uint32_t *extra_out)
{
	const struct qp_edge *edge;
	uint32_t missing, extra;

	assert(type < QPT_COUNT && from < QP_STATE_COUNT && to < QP_STATE_COUNT);
	edge = &qp_edges[from][to];
	if (!edge->is_legal)
		return WHY_MODIFY_EDGE;
	missing = edge->need[type] & ~mask;
	extra = mask & ~(edge->need[type] | edge->may[type] | A_STATE);
	if (!missing && !extra)
		return WHY_NONE;
	*missing_out = missing;
	*extra_out = extra;
	return WHY_MODIFY_MASK;
}

const char *qp_state_name(enum qp_state state)
{
	static const char *const names[QP_STATE_COUNT] = {
		[QP_RESET] = "RESET", [QP_INIT] = "INIT", [QP_RTR] = "RTR", [QP_RTS] = "RTS",
		[QP_SQD] = "SQD", [QP_SQE] = "SQE", [QP_ERR] = "ERR",
	};

	return (unsigned)state < QP_STATE_COUNT ? names[state] : "?";
}
