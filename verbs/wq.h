/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work queues: rings of receives that an indirection table spreads packets over.
 */
#ifndef VERBS_WQ_H
#define VERBS_WQ_H
#include "verbs/queue.h"

struct vb_wq {
	struct ibv_wq wq;
	struct vb_queue queue;
	struct vb_ring ring;
	struct vb_buf buf;
	uint32_t *record;	/* word 0 counts receives; big-endian */
};

static inline struct vb_wq *vb_wq_of(struct ibv_wq *wq)
{
	return (struct vb_wq *)wq;
}
#endif
