/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_modify_qp(): is the edge there, are the attributes the right ones, are their values
 * good; then, and only then, the change.
 *
 * Source: device-abi E.2 to E.4.
 */
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include "emu/obj/obj.h"
#include "emu/obj/path.h"
#include "emu/obj/relay.h"
#include "emu/obj/srq.h"
#include "hw-models/ib_packet.h"

#define PORT_COUNT	1
#define MASK_24		0xffffffu
#define TIMEOUT_MAX	31
#define RETRY_MAX	7
#define RNR_TIMER_MAX	31
#define MTU_CODE_MAX	5
#define MIG_MAX		2	/* MIGRATED, REARM, ARMED */
#define ACCESS_KNOWN	(0x3ffu | 0x3ff00000u)

/* --- values --- */

/* What a check sees. */
struct ask {
	const struct emu_dev *dev;
	const struct emu_qp *qp;
	const struct qp_attr *attr;
	uint32_t mask;
};

static bool port_fits(uint8_t port)
{
	return port >= 1 && port <= PORT_COUNT;
}

/* The port that the QP has, or is being given. */
static uint8_t port_of(const struct ask *a)
{
	return a->mask & A_PORT ? a->attr->port : a->qp->attr.port;
}

static bool is_dc(const struct emu_qp *qp)
{
	return qp->type == QPT_DCI || qp->type == QPT_DCT;
}

/* DC learns of its peer later, and the kernel looks at this one of connected types only. */
static int path_verdict(const struct ask *a)
{
	return is_dc(a->qp) ? path_source_check(a->dev, &a->attr->path) :
	       path_check(a->dev, &a->attr->path);
}

static bool av_fits(const struct ask *a)
{
	return a->attr->path.port == port_of(a) && !path_verdict(a);
}

static bool alt_fits(const struct ask *a)
{
	/* RoCE has no path migration. */
	return a->dev->profile->link != HW_LINK_ETHERNET && port_fits(a->attr->alt_port) &&
	       a->attr->alt_pkey_index < a->dev->profile->pkey_table &&
	       a->attr->alt_timeout <= TIMEOUT_MAX;
}

static bool mtu_fits(const struct ask *a)
{
	return a->attr->path_mtu >= 1 && a->attr->path_mtu <= MTU_CODE_MAX &&
	       a->attr->path_mtu <= a->dev->profile->max_mtu;
}

static bool access_fits(const struct ask *a)
{
	return !(a->attr->access & ~ACCESS_KNOWN);
}

static bool pkey_fits(const struct ask *a)
{
	return a->attr->pkey_index < a->dev->profile->pkey_table;
}

static bool qp_port_fits(const struct ask *a)
{
	return port_fits(a->attr->port);
}

static bool timeout_fits(const struct ask *a)
{
	return a->attr->timeout <= TIMEOUT_MAX;
}

static bool retry_fits(const struct ask *a)
{
	return a->attr->retry_cnt <= RETRY_MAX;
}

static bool rnr_retry_fits(const struct ask *a)
{
	return a->attr->rnr_retry <= RETRY_MAX;
}

static bool min_rnr_fits(const struct ask *a)
{
	return a->attr->min_rnr_timer <= RNR_TIMER_MAX;
}

static bool max_rd_fits(const struct ask *a)
{
	return a->attr->max_rd_atomic <= a->dev->profile->max_rd_atomic;
}

static bool max_dest_rd_fits(const struct ask *a)
{
	return a->attr->max_dest_rd_atomic <= a->dev->profile->max_rd_atomic;
}

static bool mig_fits(const struct ask *a)
{
	return a->attr->mig_state <= MIG_MAX;
}

static const struct value_check {
	uint32_t attribute;
	bool (*fits)(const struct ask *a);
} value_checks[] = {
	{ A_PORT, qp_port_fits },
	{ A_PKEY, pkey_fits },
	{ A_ACCESS, access_fits },
	{ A_AV, av_fits },
	{ A_ALT, alt_fits },
	{ A_MTU, mtu_fits },
	{ A_MAX_RD, max_rd_fits },
	{ A_MAX_DEST_RD, max_dest_rd_fits },
	{ A_MIN_RNR, min_rnr_fits },
	{ A_TIMEOUT, timeout_fits },
	{ A_RETRY, retry_fits },
	{ A_RNR, rnr_retry_fits },
	{ A_MIG, mig_fits },
};

/* The first attribute whose value does not fit, or 0. */
static uint32_t misfit(const struct ask *a)
{
	for (size_t i = 0; i < sizeof value_checks / sizeof *value_checks; i++)
		if (a->mask & value_checks[i].attribute && !value_checks[i].fits(a))
			return value_checks[i].attribute;
	return 0;
}

/* An empty entry of the GID table has an errno of its own. */
static int misfit_errno(const struct ask *a, uint32_t attribute)
{
	int rc = attribute == A_AV ? path_verdict(a) : 0;

	return rc ? rc : -EINVAL;
}

/* --- what is stored --- */

/* The device keeps the logarithm of READ limits, so they are rounded up; 0 stays 0. */
static uint8_t rd_rounded(uint8_t n)
{
	unsigned power = 1;

	while (power < n)
		power *= 2;
	return n ? power : 0;
}

/* One attribute as given to one attribute as kept, if the mask has it. */
#define KEEP(bit, field) do { if (mask & (bit)) to->field = from->field; } while (0)

static void attr_keep(struct qp_attr *to, const struct qp_attr *from, uint32_t mask)
{
	KEEP(A_EN_SQD_NOTIFY, en_sqd_notify);
	KEEP(A_ACCESS, access);
	KEEP(A_PKEY, pkey_index);
	KEEP(A_PORT, port);
	KEEP(A_QKEY, qkey);
	KEEP(A_AV, path);
	KEEP(A_MTU, path_mtu);
	KEEP(A_TIMEOUT, timeout);
	KEEP(A_RETRY, retry_cnt);
	KEEP(A_RNR, rnr_retry);
	KEEP(A_MIN_RNR, min_rnr_timer);
	KEEP(A_MIG, mig_state);
	KEEP(A_ALT, alt_path);
	KEEP(A_ALT, alt_port);
	KEEP(A_ALT, alt_pkey_index);
	KEEP(A_ALT, alt_timeout);
	if (mask & A_RQ_PSN)
		to->rq_psn = from->rq_psn & MASK_24;
	if (mask & A_SQ_PSN)
		to->sq_psn = from->sq_psn & MASK_24;
	if (mask & A_DEST_QPN)
		to->dest_qpn = from->dest_qpn & MASK_24;
	if (mask & A_MAX_RD)
		to->max_rd_atomic = rd_rounded(from->max_rd_atomic);
	if (mask & A_MAX_DEST_RD)
		to->max_dest_rd_atomic = rd_rounded(from->max_dest_rd_atomic);
}

/* --- what changes with it --- */

void qp_source_apply(struct emu_qp *qp)
{
	const struct qp_path *path = &qp->attr.path;

	if (path->is_global)
		memcpy(qp->sgid, qp->dev->gid[path->sgid_index % EMU_GIDS_MAX].raw,
		       sizeof qp->sgid);
	else
		ib_lid_as_gid(port_lid(qp->dev, path->src_path_bits), qp->sgid);
	memcpy(qp->resp->sgid, qp->sgid, sizeof qp->sgid);
}

static void path_apply(struct emu_qp *qp)
{
	const struct qp_path *path = &qp->attr.path;

	qp_source_apply(qp);
	if (path->is_global)
		memcpy(qp->dgid, path->dgid, sizeof qp->dgid);
	else
		ib_lid_as_gid(path->dlid, qp->dgid);
	memcpy(qp->resp->dgid, qp->dgid, sizeof qp->dgid);
}

static void hot_apply(struct emu_qp *qp, uint32_t mask)
{
	const struct qp_attr *attr = &qp->attr;

	if (mask & A_ACCESS)
		qp->resp->access = attr->access;
	if (mask & A_PKEY)
		port_pkey_apply(qp);
	if (mask & A_AV)
		path_apply(qp);
	if (mask & A_PORT && (qp->type == QPT_UD || qp->type == QPT_RAW))
		qp->mtu_bytes = 128u << qp->dev->profile->max_mtu;	/* the port's */
	if (mask & A_MTU)
		qp->mtu_bytes = qp->resp->mtu_bytes = 128u << attr->path_mtu;
	if (mask & A_DEST_QPN)
		qp->dest_qpn = qp->resp->peer_qpn = attr->dest_qpn;
	if (mask & A_RQ_PSN)
		qp->resp->psn_expected = attr->rq_psn;
	if (mask & A_MAX_DEST_RD)
		qp->resp->resource_limit = attr->max_dest_rd_atomic < RC_RESOURCES_MAX ?
					  attr->max_dest_rd_atomic : RC_RESOURCES_MAX;
	if (mask & A_SQ_PSN)
		qp->req.psn_next = qp->req.psn_una = attr->sq_psn;
	if (mask & A_RETRY)
		qp->req.retries_left = attr->retry_cnt;
	if (mask & A_RNR)
		qp->req.rnr_left = attr->rnr_retry;
}

/* As new: everything posted is forgotten, and no completion tells of it.  What belongs to
 * the engine (its lists, its timer heap) is the engine's. */
static void enter_reset(struct emu_qp *qp)
{
	struct rc_sent *sent = qp->req.sent;

	srq_qp_forget(qp);
	relay_reset(qp);
	qp->req = (struct rc_req){ .sent = sent };
	*qp->resp = (struct rc_resp){ .pdn = qp->pdn, .pkey = qp->pkey };
	qp->answers = (struct rc_answers){ 0 };
	qp->attr = (struct qp_attr){ 0 };
	qp->work &= QP_WORK_RELAY;	/* handles elsewhere have yet to hear of events */
	qp->dest_qpn = 0;
	qp->mtu_bytes = 0;
	qp->is_armed_fatal = false;
	qp->striding.used = 0;
	qp->is_established = false;
	qp->is_last_wqe_told = false;
	qp->is_starved = false;
	memset(qp->sgid, 0, sizeof qp->sgid);
	memset(qp->dgid, 0, sizeof qp->dgid);
}

/* What was posted before now counts. */
static void enter_rts(struct emu_qp *qp)
{
	qp->work |= QP_WORK_DOORBELL;
}

static void enter_err(struct emu_qp *qp)
{
	qp->work |= QP_WORK_FLUSH;
}

static void (*const qp_enter[QP_STATE_COUNT])(struct emu_qp *qp) = {
	[QP_RESET] = enter_reset,
	[QP_RTS] = enter_rts,
	[QP_ERR] = enter_err,
};

void qp_enter_state(struct emu_qp *qp, enum qp_state to)
{
	qp_state_set(qp, to);
	if (qp_enter[to])
		qp_enter[to](qp);
	qp->attr.state = qp->attr.cur_state = to;
}

/* --- the command --- */

static int refuse(struct emu_dev *dev, const struct emu_qp *qp, enum why why, uint64_t asked,
		  uint64_t found, int rc)
{
	dev_why(dev, .why = why, .side = WHY_SIDE_COMMAND, .qpn = qp->qpn, .addr = asked,
		.bytes = qp->state, .found = found);
	return rc;
}

/* mlx5 has no firmware command for this edge, although the kernel's core allows it. */
static bool is_edge_of_core_only(enum qp_state from, enum qp_state to)
{
	return from == QP_RTS && to == QP_SQD;
}

static int edge_check(struct emu_dev *dev, const struct emu_qp *qp, enum qp_state to,
		      uint32_t mask)
{
	uint32_t missing = 0, extra = 0;
	enum why why = qp_edge_check(qp->type, qp->state, to, mask, &missing, &extra);

	if (why == WHY_NONE && is_edge_of_core_only(qp->state, to))
		why = WHY_MODIFY_EDGE;
	if (why == WHY_MODIFY_EDGE)
		return refuse(dev, qp, why, to, 0, -EINVAL);
	if (why == WHY_MODIFY_MASK)
		return refuse(dev, qp, why, missing, extra, -EINVAL);
	return 0;
}

static int states_check(struct emu_dev *dev, const struct emu_qp *qp,
			const struct qp_attr *attr, uint32_t mask)
{
	if (mask & ~(uint32_t)A_KNOWN)
		return refuse(dev, qp, WHY_MODIFY_MASK, 0, mask & ~(uint32_t)A_KNOWN,
			      -EOPNOTSUPP);
	if (mask & A_STATE && attr->state >= QP_STATE_COUNT)
		return refuse(dev, qp, WHY_MODIFY_VALUE, A_STATE, attr->state, -EINVAL);
	if (mask & A_CUR_STATE && attr->cur_state != qp->state)
		return refuse(dev, qp, WHY_MODIFY_VALUE, A_CUR_STATE, attr->cur_state, -EINVAL);
	return 0;
}

int qp_modify(struct emu_dev *dev, struct emu_qp *qp, const struct qp_attr *attr, uint32_t mask)
{
	const struct ask ask = { dev, qp, attr, mask };
	enum qp_state to;
	uint32_t bad;
	int rc = states_check(dev, qp, attr, mask);

	if (rc)
		return rc;
	to = mask & A_STATE ? (enum qp_state)attr->state : qp->state;
	rc = edge_check(dev, qp, to, mask);
	if (rc)
		return rc;
	bad = misfit(&ask);
	if (bad)
		return refuse(dev, qp, WHY_MODIFY_VALUE, bad, 0, misfit_errno(&ask, bad));
	attr_keep(&qp->attr, attr, mask);
	hot_apply(qp, mask);
	qp_enter_state(qp, to);
	if (mask & A_ACCESS && qp->resp->is_open)
		home_quiesce(&dev->home);	/* nobody goes by the old rights any more */
	return 0;
}
