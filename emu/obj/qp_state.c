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
	uint32_t types;			/* bits by qp_type: for whom it is there */
	uint32_t need[QPT_COUNT];	/* must be given */
	uint32_t may[QPT_COUNT];	/* may be given  */
};

#define TYPE(type)	(1u << (type))
#define DC_TYPES	(TYPE(QPT_DCI) | TYPE(QPT_DCT))

/* The kernel's core has a table, and the mlx5 driver rules of its own for DCI and DCT. */
#define FOR_ALL		.types = ~0u
#define FOR_NO_TARGET	.types = ~TYPE(QPT_DCT)
#define FOR_CORE	.types = ~DC_TYPES
#define TO_RESET	[QP_RESET] = { FOR_NO_TARGET }
#define TO_RESET_OR_ERR	TO_RESET, [QP_ERR] = { FOR_NO_TARGET }
#define NEED(...)	.need = { __VA_ARGS__ }
#define MAY(...)	.may = { __VA_ARGS__ }
#define RC(attrs)	[QPT_RC] = (attrs)
#define UC(attrs)	[QPT_UC] = (attrs)
#define UD(attrs)	[QPT_UD] = (attrs)
#define INI(attrs)	[QPT_XRC_INI] = (attrs)
#define TGT(attrs)	[QPT_XRC_TGT] = (attrs)
#define DCI(attrs)	[QPT_DCI] = (attrs)
#define DCT(attrs)	[QPT_DCT] = (attrs)
#define RAW(attrs)	[QPT_RAW] = (attrs)

/* RTR to RTS, RTS to RTS, and SQD to RTS allow the same. */
#define MAY_WHEN_RUNNING						\
	MAY(RC(A_CUR_STATE | A_ALT | A_ACCESS | A_MIN_RNR | A_MIG),	\
	    UC(A_CUR_STATE | A_ALT | A_ACCESS | A_MIG),			\
	    UD(A_CUR_STATE | A_QKEY),					\
	    INI(A_CUR_STATE | A_ALT | A_ACCESS | A_MIG),			\
	    TGT(A_CUR_STATE | A_ALT | A_ACCESS | A_MIN_RNR | A_MIG),	\
	    DCI(A_MIN_RNR))

static const struct qp_edge qp_edges[QP_STATE_COUNT][QP_STATE_COUNT] = {
	[QP_RESET] = {
		TO_RESET,
		[QP_INIT] = { FOR_ALL,
			NEED(RC(A_PKEY | A_PORT | A_ACCESS),
			     UC(A_PKEY | A_PORT | A_ACCESS),
			     UD(A_PKEY | A_PORT | A_QKEY),
			     INI(A_PKEY | A_PORT | A_ACCESS),
			     TGT(A_PKEY | A_PORT | A_ACCESS),
			     DCI(A_PKEY | A_PORT),
			     DCT(A_PKEY | A_PORT | A_ACCESS),
			     RAW(A_PORT)) },
	},
	[QP_INIT] = {
		TO_RESET_OR_ERR,
		[QP_INIT] = { FOR_NO_TARGET,
			MAY(RC(A_PKEY | A_PORT | A_ACCESS),
			    UC(A_PKEY | A_PORT | A_ACCESS),
			    UD(A_PKEY | A_PORT | A_QKEY),
			    INI(A_PKEY | A_PORT | A_ACCESS),
			    TGT(A_PKEY | A_PORT | A_ACCESS),
			    DCI(A_PKEY | A_PORT),
			    RAW(A_PORT)) },
		[QP_RTR] = { FOR_ALL,
			NEED(RC(A_AV | A_MTU | A_DEST_QPN | A_RQ_PSN | A_MAX_DEST_RD | A_MIN_RNR),
			     UC(A_AV | A_MTU | A_DEST_QPN | A_RQ_PSN),
			     INI(A_AV | A_MTU | A_DEST_QPN | A_RQ_PSN),
			     TGT(A_AV | A_MTU | A_DEST_QPN | A_RQ_PSN | A_MAX_DEST_RD | A_MIN_RNR),
			     DCI(A_MTU),
			     DCT(A_MIN_RNR | A_AV | A_MTU)),
			MAY(RC(A_ALT | A_ACCESS | A_PKEY),
			    UC(A_ALT | A_ACCESS | A_PKEY),
			    UD(A_PKEY | A_QKEY),
			    INI(A_ALT | A_ACCESS | A_PKEY),
			    TGT(A_ALT | A_ACCESS | A_PKEY),
			    DCI(A_PKEY | A_AV)) },
	},
	[QP_RTR] = {
		TO_RESET_OR_ERR,
		[QP_RTS] = { FOR_NO_TARGET,
			NEED(RC(A_TIMEOUT | A_RETRY | A_RNR | A_SQ_PSN | A_MAX_RD),
			     UC(A_SQ_PSN),
			     UD(A_SQ_PSN),
			     INI(A_TIMEOUT | A_RETRY | A_RNR | A_SQ_PSN | A_MAX_RD),
			     TGT(A_TIMEOUT | A_SQ_PSN),
			     DCI(A_TIMEOUT | A_RETRY | A_RNR | A_MAX_RD | A_SQ_PSN)),
			MAY_WHEN_RUNNING },
	},
	[QP_RTS] = {
		TO_RESET_OR_ERR,
		[QP_RTS] = { FOR_NO_TARGET, MAY_WHEN_RUNNING },
		[QP_SQD] = { FOR_CORE,
			MAY(RC(A_EN_SQD_NOTIFY), UC(A_EN_SQD_NOTIFY), UD(A_EN_SQD_NOTIFY),
			    INI(A_EN_SQD_NOTIFY), TGT(A_EN_SQD_NOTIFY)) },
	},
	[QP_SQD] = {
		TO_RESET_OR_ERR,
		[QP_RTS] = { FOR_CORE, MAY_WHEN_RUNNING },
		[QP_SQD] = { FOR_CORE,
			MAY(RC(A_PORT | A_AV | A_TIMEOUT | A_RETRY | A_RNR | A_MAX_RD |
			       A_MAX_DEST_RD | A_ALT | A_ACCESS | A_PKEY | A_MIN_RNR | A_MIG),
			    UC(A_AV | A_ALT | A_ACCESS | A_PKEY | A_MIG),
			    UD(A_PKEY | A_QKEY),
			    INI(A_PORT | A_AV | A_TIMEOUT | A_RETRY | A_RNR | A_MAX_RD | A_ALT |
				A_ACCESS | A_PKEY | A_MIG),
			    TGT(A_PORT | A_AV | A_TIMEOUT | A_MAX_DEST_RD | A_ALT | A_ACCESS |
				A_PKEY | A_MIN_RNR | A_MIG)) },
	},
	[QP_SQE] = {
		TO_RESET_OR_ERR,
		[QP_RTS] = { FOR_CORE,
			MAY(UC(A_CUR_STATE | A_ACCESS), UD(A_CUR_STATE | A_QKEY)) },
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
	if (!(edge->types & TYPE(type)))
		return WHY_MODIFY_EDGE;
	/* The driver's rules start from the state that is asked for; the core's don't. */
	missing = (edge->need[type] | (DC_TYPES & TYPE(type) ? A_STATE : 0)) & ~mask;
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
