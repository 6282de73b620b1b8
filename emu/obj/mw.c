/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows: made by a command, bound and freed by work requests.
 *
 * A window's key has an entry like a region's, where peers may look.  It is valid while the window
 * is bound; whoever frees it waits until no peer is on its way through it.  Everything that
 * decides stands in struct emu_mw, where peers can't write.
 *
 * Type 1 serves every QP of its domain and is bound again at any time.  Type 2 (2B) serves the QP
 * that bound it, must be free to be bound, and is freed by that QP or its peer.
 *
 * Source: IBTA volume 1, 10.6.7; device-abi C.3.12 and D.
 */
#include <errno.h>
#include <stdlib.h>
#include "emu/obj/obj.h"
#include "hw-models/hw.h"

#define WINDOW_RIGHTS	(KEY_REMOTE_READ | KEY_REMOTE_WRITE | KEY_REMOTE_ATOMIC)
#define WINDOW_WRITES	(KEY_REMOTE_WRITE | KEY_REMOTE_ATOMIC)

/* --- lists --- */

/* @link is the one of @mw; the next window's is found through @link_of. */
typedef struct mw_link *link_of_fn(struct emu_mw *mw);

static struct mw_link *link_in_qp(struct emu_mw *mw)
{
	return &mw->in_qp;
}

static struct mw_link *link_in_region(struct emu_mw *mw)
{
	return &mw->in_region;
}

static void list_enter(struct emu_mw **list, struct emu_mw *mw, link_of_fn *link_of)
{
	struct mw_link *link = link_of(mw);

	link->next = *list;
	link->at = list;
	if (link->next)
		link_of(link->next)->at = &link->next;
	*list = mw;
}

static void list_leave(struct emu_mw *mw, link_of_fn *link_of)
{
	struct mw_link *link = link_of(mw);

	if (!link->at)
		return;
	*link->at = link->next;
	if (link->next)
		link_of(link->next)->at = link->at;
	*link = (struct mw_link){ 0 };
}

/* --- bound and free --- */

static void window_free(struct emu_dev *dev, struct emu_mw *mw)
{
	if (!mw->is_bound)
		return;
	key_close(&dev->keys, KEY_INDEX(mw->key));
	list_leave(mw, link_in_qp);
	list_leave(mw, link_in_region);
	mw->is_bound = false;
	mw->qp = NULL;
}

static void window_bind(struct emu_dev *dev, struct emu_mw *mw, struct emu_qp *qp,
			struct emu_mr *region, const struct hw_work *work)
{
	const struct hw_umr *umr = &work->umr;
	struct key_entry entry = {
		.kind = KEY_WINDOW, .tag = umr->tag, .access = umr->access & WINDOW_RIGHTS,
		.pdn = mw->pd->pdn, .qpn = qp ? qp->qpn : KEY_QPN_ANY, .parent = work->sge[0].lkey,
		.start = umr->start, .bytes = umr->bytes, .memory = work->sge[0].addr,
	};

	window_free(dev, mw);
	if (region)
		list_enter(&region->windows, mw, link_in_region);
	if (qp)
		list_enter(&qp->windows, mw, link_in_qp);
	mw->qp = qp;
	mw->is_bound = true;
	mw->key = key_open(&dev->keys, KEY_INDEX(mw->key), &entry);
}

/* --- what a work request may do --- */

/* The object behind a key, if it is of the right type. */
static void *owner_find(struct emu_dev *dev, uint32_t key, enum obj_type type, enum why *why_out)
{
	struct emu_obj *obj = key_owner(&dev->keys, KEY_INDEX(key));

	*why_out = !obj ? WHY_KEY_UNKNOWN : obj->type != type ? WHY_UMR_KEY : WHY_NONE;
	return *why_out == WHY_NONE ? obj : NULL;
}

/* One piece of one region, of which the window takes address, length and rights; for type 2 the
 * QP. */
static enum why form_check(const struct emu_mw *mw, const struct emu_qp *qp,
			   const struct hw_work *work)
{
	const struct hw_umr *umr = &work->umr;
	const uint64_t needed = UMR_LEN | UMR_START | UMR_TAG | UMR_FREE;
	bool is_any = !(umr->mask & UMR_QPN) || umr->qpn == KEY_QPN_ANY;

	if ((umr->mask & needed) != needed || work->sge_count != 1 || work->sge[0].inline_bytes ||
	    umr->bytes != work->sge[0].bytes)
		return WHY_UMR_FORM;
	if (mw->type == MW_TYPE_1)
		return is_any ? WHY_NONE : WHY_WINDOW_QP;
	return !is_any && umr->qpn == qp->qpn ? WHY_NONE : WHY_WINDOW_QP;
}

static bool is_inside(const struct emu_mr *mr, uint64_t addr, uint64_t bytes)
{
	uint64_t offset = addr - mr->iova;

	return addr >= mr->iova && offset <= mr->bytes && bytes <= mr->bytes - offset;
}

static enum why region_check(const struct emu_mr *mr, const struct emu_qp *qp,
			     const struct hw_work *work)
{
	const struct hw_sge *piece = &work->sge[0];

	if (mr->key != piece->lkey)
		return WHY_KEY_TAG;
	if (mr->pd->pdn != qp->pdn)
		return WHY_KEY_PD;
	if (!(mr->access & KEY_MW_BIND))
		return WHY_REGION_NO_BIND;
	if (mr->access & KEY_ZERO_BASED)
		return WHY_REGION_ZERO_BASED;
	if (work->umr.access & WINDOW_WRITES && !(mr->access & KEY_LOCAL_WRITE))
		return WHY_KEY_RIGHTS;
	return is_inside(mr, piece->addr, piece->bytes) ? WHY_NONE : WHY_KEY_RANGE;
}

/* The same of a region of another function, which knows nothing of its windows. */
static enum why far_region_check(const struct emu_dev *dev, const struct emu_qp *qp,
				 const struct hw_work *work)
{
	const struct hw_sge *piece = &work->sge[0];
	struct key_use use = {
		piece->lkey, qp->pdn, KEY_QPN_LOCAL, KEY_MW_BIND, piece->addr, piece->bytes,
	};
	struct iovec memory;
	enum why why = key_far_check(&dev->keys, &use, &memory);

	if (why != WHY_NONE)
		return why == WHY_KEY_RIGHTS ? WHY_REGION_NO_BIND : why;
	use.access = KEY_ZERO_BASED;
	if (key_far_check(&dev->keys, &use, &memory) == WHY_NONE)
		return WHY_REGION_ZERO_BASED;
	use.access = work->umr.access & WINDOW_WRITES ? KEY_LOCAL_WRITE : KEY_LOCAL_READ;
	return key_far_check(&dev->keys, &use, &memory);
}

static enum why bind(struct emu_dev *dev, struct emu_mw *mw, struct emu_qp *qp,
		     const struct hw_work *work)
{
	enum why why = form_check(mw, qp, work);
	struct emu_mr *region;

	if (why != WHY_NONE)
		return why;
	region = owner_find(dev, work->sge[0].lkey, OBJ_MR, &why);
	if (region)
		why = region_check(region, qp, work);
	else if (why == WHY_KEY_UNKNOWN)
		why = far_region_check(dev, qp, work);
	if (why == WHY_NONE)
		window_bind(dev, mw, mw->type == MW_TYPE_2 ? qp : NULL, region, work);
	return why;
}

/* What the request says it needs, and what a type 2 window needs whatever it says. */
static enum why state_check(const struct emu_mw *mw, const struct emu_qp *qp,
			    const struct hw_umr *umr)
{
	bool is_type_2 = mw->type == MW_TYPE_2;

	if ((umr->needs_free || (is_type_2 && !umr->frees)) && mw->is_bound)
		return WHY_WINDOW_BOUND;
	if (!umr->needs_qpn && !(is_type_2 && umr->frees))
		return WHY_NONE;
	if (!mw->is_bound)
		return WHY_WINDOW_FREE;
	return mw->qp == qp ? WHY_NONE : WHY_WINDOW_QP;
}

enum why mw_umr(struct emu_dev *dev, struct emu_qp *qp, const struct hw_work *work)
{
	enum why why;
	struct emu_mw *mw = owner_find(dev, work->umr.key, OBJ_MW, &why);

	if (!mw)
		return why;
	if (mw->pd->pdn != qp->pdn)
		return WHY_KEY_PD;
	why = state_check(mw, qp, &work->umr);
	if (why != WHY_NONE)
		return why;
	if (!work->umr.frees)
		return bind(dev, mw, qp, work);
	window_free(dev, mw);
	return WHY_NONE;
}

bool mw_invalidate(struct emu_dev *dev, struct emu_qp *qp, uint32_t key)
{
	enum why why;
	struct emu_mw *mw = owner_find(dev, key, OBJ_MW, &why);

	if (!mw || mw->key != key || !mw->is_bound || mw->qp != qp)
		return false;
	window_free(dev, mw);
	return true;
}

void mw_free_of_qp(struct emu_qp *qp)
{
	while (qp->windows)
		window_free(qp->dev, qp->windows);
}

void mw_leave_region(struct emu_mr *mr)
{
	while (mr->windows)
		list_leave(mr->windows, link_in_region);
}

/* --- commands --- */

static int window_refuse(struct emu_dev *dev, enum why why, uint64_t found, int rc)
{
	dev_why(dev, .why = why, .side = WHY_SIDE_COMMAND, .found = found);
	return rc;
}

int mw_create(struct emu_dev *dev, struct emu_pd *pd, uint32_t type, struct emu_mw **out)
{
	const struct key_entry entry = { .kind = KEY_WINDOW, .pdn = pd->pdn };
	struct emu_mw *mw;

	if (type != MW_TYPE_1 && type != MW_TYPE_2)
		return window_refuse(dev, WHY_CMD_VALUE, type, -EINVAL);
	mw = calloc(1, sizeof *mw);
	if (!mw || dev->keys.indices.taken >= dev->profile->max_mw ||
	    key_create(&dev->keys, &entry, &mw->key)) {
		free(mw);
		return window_refuse(dev, WHY_CMD_LIMIT, dev->keys.indices.taken, -ENOMEM);
	}
	mw->obj.type = OBJ_MW;
	mw->pd = pd;
	mw->type = (enum mw_type)type;
	key_owner_set(&dev->keys, KEY_INDEX(mw->key), mw);
	pd->obj.users++;
	*out = mw;
	return 0;
}

int mw_destroy(struct emu_dev *dev, struct emu_mw *mw)
{
	window_free(dev, mw);
	key_destroy(&dev->keys, mw->key);
	mw->pd->obj.users--;
	free(mw);
	return 0;
}
