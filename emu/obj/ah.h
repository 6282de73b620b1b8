/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address handles.  The device keeps next to nothing of them: each work request carries its
 * address vector, and what the kernel adds is the MAC.
 *
 * Source: device-abi B.9 (create_ah).
 */
#ifndef EMU_OBJ_AH_H
#define EMU_OBJ_AH_H
#include "emu/obj/obj.h"

struct emu_ah {
	struct emu_obj obj;
	struct emu_pd *pd;
	uint8_t dmac[6];		/* RoCE */
};

/* -EINVAL, -ENODATA as path_check(), and -EINVAL for LID 0 on InfiniBand; -ENOMEM */
int ah_create(struct emu_dev *dev, struct emu_pd *pd, const struct qp_path *path,
	      struct emu_ah **out);
int ah_destroy(struct emu_ah *ah);
#endif
