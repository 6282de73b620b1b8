/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions, as mr.c and dm.c make them.
 */
#ifndef VERBS_MR_H
#define VERBS_MR_H
#include "verbs/cmd.h"
#include "verbs/context.h"

enum vb_mr_kind {
	VB_MR_PROGRAM,		/* memory of this process */
	VB_MR_DEVICE,		/* device memory */
	VB_MR_DMABUF,
	VB_MR_NULL,		/* a key of the device's, nothing was registered */
	VB_MR_IMPORTED,
};

struct vb_mr {
	struct ibv_mr mr;
	enum vb_mr_kind kind;
	uint32_t access;
	bool is_kept;		/* its range was told to fork.c */
};

static inline struct vb_mr *vb_mr_of(const struct ibv_mr *mr)
{
	return (struct vb_mr *)(uintptr_t)mr;
}

/* NULL and errno: no memory. */
struct vb_mr *vb_mr_new(struct ibv_pd *pd, enum vb_mr_kind kind, void *addr, size_t length);
/* Sends the command whose attribute @handle_at is the new region; frees @mr if that fails, with
 * errno. */
struct ibv_mr *vb_mr_send(struct vb_mr *mr, struct cmd *cmd, unsigned handle_at);
#endif
