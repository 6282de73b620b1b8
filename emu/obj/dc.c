/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dynamically connected queue pairs: who talks to whom.  See dc.h.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "emu/obj/dc.h"
#include "emu/obj/obj.h"
#include "emu/obj/srq.h"

#define BUCKETS		1024u		/* power of two */

static struct dct *dct_make(uint64_t key)
{
	struct dct *dct = calloc(1, sizeof *dct);

	if (!dct)
		return NULL;
	dct->key = key;
	dct->count_max = DCR_MAX;
	dct->bucket = calloc(BUCKETS, sizeof(struct emu_qp *));
	if (dct->bucket)
		return dct;
	free(dct);
	return NULL;
}

int dc_attach(struct emu_qp *qp, uint64_t key)
{
	if (qp->type == QPT_DCI)
		return (qp->dci = calloc(1, sizeof *qp->dci)) ? 0 : -ENOMEM;
	if (qp->type == QPT_DCT)
		return (qp->dct = dct_make(key)) ? 0 : -ENOMEM;
	return 0;
}

void dc_detach(struct emu_qp *qp)
{
	if (qp->type == QPT_DCI)
		free(qp->dci);
	if (qp->type != QPT_DCT || !qp->dct)
		return;
	while (qp->dct->oldest)
		dcr_free(qp->dct->oldest);
	free(qp->dct->bucket);
	free(qp->dct);
}

/* Numbers are unique in a fabric; what else tells initiators apart is compared. */
static struct emu_qp **bucket_of(const struct dct *dct, uint32_t initiator_qpn)
{
	return &dct->bucket[initiator_qpn * 0x9e3779b1u >> 16 & (BUCKETS - 1)];
}

struct emu_qp *dcr_find(const struct emu_qp *dct, uint32_t initiator_qpn,
			const uint8_t initiator_gid[16])
{
	struct emu_qp *dcr = *bucket_of(dct->dct, initiator_qpn);

	while (dcr && (dcr->dest_qpn != initiator_qpn ||
		       memcmp(dcr->dgid, initiator_gid, sizeof dcr->dgid)))
		dcr = dcr->dcr->bucket_next;
	return dcr;
}

static void list_add(struct dct *dct, struct emu_qp *dcr)
{
	dcr->dcr->newer = NULL;
	dcr->dcr->older = dct->newest;
	if (dct->newest)
		dct->newest->dcr->newer = dcr;
	else
		dct->oldest = dcr;
	dct->newest = dcr;
}

static void list_remove(struct dct *dct, struct emu_qp *dcr)
{
	struct emu_qp *newer = dcr->dcr->newer, *older = dcr->dcr->older;

	if (newer)
		newer->dcr->older = older;
	else
		dct->newest = older;
	if (older)
		older->dcr->newer = newer;
	else
		dct->oldest = newer;
}

void dcr_refresh(struct emu_qp *dcr)
{
	struct dct *dct = dcr->dcr->dct->dct;

	if (dct->newest == dcr)
		return;
	list_remove(dct, dcr);
	list_add(dct, dcr);
}

static struct emu_qp *dcr_alloc(void)
{
	struct emu_qp *dcr = calloc(1, sizeof *dcr);

	if (!dcr)
		return NULL;
	dcr->dcr = calloc(1, sizeof *dcr->dcr);
	dcr->resp = calloc(1, sizeof *dcr->resp);
	if (dcr->dcr && dcr->resp)
		return dcr;
	free(dcr->dcr);
	free(dcr->resp);
	free(dcr);
	return NULL;
}

struct emu_qp *dcr_make(struct emu_qp *dct, uint32_t initiator_qpn,
			const uint8_t initiator_gid[16])
{
	struct emu_qp *dcr = dcr_alloc(), **bucket = bucket_of(dct->dct, initiator_qpn);

	if (!dcr)
		return NULL;
	dcr->dev = dct->dev;
	dcr->type = QPT_DCR;
	dcr->qpn = dct->qpn;		/* in completions and answers it is the target */
	dcr->user_index = dct->user_index;
	dcr->pdn = dct->pdn;
	dcr->pd = dct->pd;
	dcr->recv_cq = dct->recv_cq;
	dcr->srq = dct->srq;
	dcr->dest_qpn = initiator_qpn;
	memcpy(dcr->dgid, initiator_gid, sizeof dcr->dgid);
	dcr->dcr->dct = dct;
	dcr->dcr->bucket_next = *bucket;
	*bucket = dcr;
	list_add(dct->dct, dcr);
	dct->dct->count++;
	return dcr;
}

void dcr_free(struct emu_qp *dcr)
{
	struct dct *dct = dcr->dcr->dct->dct;
	struct emu_qp **at = bucket_of(dct, dcr->dest_qpn);

	assert(!dcr->is_ready && !dcr->is_blocked);
	while (*at != dcr)
		at = &(*at)->dcr->bucket_next;
	*at = dcr->dcr->bucket_next;
	list_remove(dct, dcr);
	dct->count--;
	srq_qp_forget(dcr);
	free(dcr->dcr);
	free(dcr->resp);
	free(dcr);
}
