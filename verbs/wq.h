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
	bool has_checksums;	/* the device checks those of frames */
	uint32_t strides;	/* of each receive; 0: a receive takes one packet */
	uint32_t strides_used;	/* of the oldest receive, by completions that were read */
};

/* Receives that are cut into 2^count_log strides of 2^bytes_log bytes: a packet begins with one. */
struct vb_strides { uint32_t bytes_log, count_log; bool shifts_two_bytes; };

/* vb_create_wq() with @strides, which may be NULL. */
struct ibv_wq *vb_wq_create(struct ibv_context *context, struct ibv_wq_init_attr *attr,
			    const struct vb_strides *strides);

static inline struct vb_wq *vb_wq_of(struct ibv_wq *wq)
{
	return (struct vb_wq *)wq;
}
#endif
