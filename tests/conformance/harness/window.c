/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory windows of an end; see window.h. */
#include "window.h"
#include <errno.h>

static int window_alloc(struct end *e, struct window_ask *ask)
{
	int slot = 0;
	struct end_window *w;

	while (slot < END_WINDOWS_MAX && e->window[slot].mw)
		slot++;
	if (slot == END_WINDOWS_MAX)
		return ENOSPC;
	w = &e->window[slot];
	w->pd = ask->other_pd ? ibv_alloc_pd(e->context) : NULL;
	w->mw = ibv_alloc_mw(w->pd ? w->pd : e->pd, (enum ibv_mw_type)ask->type);
	if (!w->mw)
		return errno;
	ask->slot = slot;
	ask->rkey = w->mw->rkey;
	return 0;
}

static struct ibv_mr *region_of(struct end *e, const struct window_ask *ask)
{
	return ask->region < 0 ? e->mr : e->key[ask->region].mr;
}

/* The library changes the key of a type 1 window, the application that of type 2. */
static int bind_type_1(struct end *e, struct ibv_mw *mw, const struct window_ask *ask)
{
	struct ibv_mw_bind bind = {
		.wr_id = ask->wr_id, .send_flags = ask->flags,
		.bind_info = { region_of(e, ask), ask->addr, ask->bytes, ask->access },
	};

	return ibv_bind_mw(e->qp, mw, &bind);
}

static int bind_type_2(struct end *e, struct ibv_mw *mw, const struct window_ask *ask)
{
	uint32_t key = (mw->rkey & ~0xffu) | ((mw->rkey + ask->tag_step) & 0xff);
	struct ibv_send_wr *bad, wr = {
		.wr_id = ask->wr_id, .send_flags = ask->flags, .opcode = IBV_WR_BIND_MW,
		.bind_mw = { mw, key,
			     { region_of(e, ask), ask->addr, ask->bytes, ask->access } },
	};
	int err = ibv_post_send(e->qp, &wr, &bad);

	if (!err)
		mw->rkey = key;
	return err;
}

static int window_bind(struct end *e, struct window_ask *ask)
{
	struct ibv_mw *mw = e->window[ask->slot].mw;
	int err = mw->type == IBV_MW_TYPE_1 ? bind_type_1(e, mw, ask) : bind_type_2(e, mw, ask);

	ask->rkey = mw->rkey;
	return err;
}

static int window_free(struct end *e, struct window_ask *ask)
{
	struct end_window *w = &e->window[ask->slot];
	int err = w->mw ? ibv_dealloc_mw(w->mw) : 0;

	if (err)
		return err;
	if (w->pd)
		err = ibv_dealloc_pd(w->pd);
	*w = (struct end_window){ NULL, NULL };
	return err;
}

static int (*const verbs[])(struct end *, struct window_ask *) = {
	[WINDOW_ALLOC] = window_alloc, [WINDOW_BIND] = window_bind, [WINDOW_FREE] = window_free,
};

int end_window(struct end *e, struct window_ask *ask)
{
	return verbs[ask->verb](e, ask);
}

void end_windows_close(struct end *e)
{
	for (int slot = 0; slot < END_WINDOWS_MAX; slot++)
		window_free(e, &(struct window_ask){ .slot = slot });
}
