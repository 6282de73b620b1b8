/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device memory and where it is mapped.
 */
#ifndef VERBS_DM_H
#define VERBS_DM_H
#include <infiniband/verbs.h>

struct vb_dm {
	struct ibv_dm dm;
	uint64_t bytes;
	uint8_t *at;
	void *pages;
	size_t page_bytes;	/* of all pages */
};

static inline struct vb_dm *vb_dm_of(struct ibv_dm *dm)
{
	return (struct vb_dm *)dm;
}
#endif
