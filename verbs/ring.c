/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is remembered for the entries of a ring.
 */
#include <errno.h>
#include <stdlib.h>
#include "verbs/queue.h"

int vb_ring_alloc(struct vb_ring *r, bool is_send)
{
	if (!r->entries)
		return 0;
	r->wr_id = calloc(r->entries, sizeof *r->wr_id);
	if (is_send) {
		r->head_at = calloc(r->entries, sizeof *r->head_at);
		r->meaning = calloc(r->entries, sizeof *r->meaning);
	}
	return r->wr_id && (!is_send || (r->head_at && r->meaning)) ? 0 : ENOMEM;
}

void vb_ring_free(struct vb_ring *r)
{
	free(r->wr_id);
	free(r->head_at);
	free(r->meaning);
}

void vb_ring_reset(struct vb_ring *r)
{
	r->head = r->produced = 0;
	atomic_store_explicit(&r->tail, 0, memory_order_relaxed);
}
