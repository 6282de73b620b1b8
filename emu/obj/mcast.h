/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups of this function: which QPs are attached to which.
 *
 * A QP may be attached to one group under several multicast LIDs; packets go by GID, so it is
 * listed once for each but gets one copy.  An attached QP counts as used, and can't be destroyed.
 *
 * Source: IBTA volume 1, 10.5; device-abi B.9.
 */
#ifndef EMU_OBJ_MCAST_H
#define EMU_OBJ_MCAST_H
#include <stdbool.h>
#include <stdint.h>

#define MCAST_BUCKETS	64		/* power of two */

struct emu_dev;
struct emu_qp;

struct mcast_attach {
	struct mcast_attach *next;	/* those of one QP stand together */
	struct emu_qp *qp;
	uint16_t mlid;
};

struct mcast_group {
	struct mcast_group *next;	/* of the bucket */
	uint8_t gid[16];
	struct mcast_attach *first;
	unsigned count;
};

struct mcast {
	struct mcast_group *bucket[MCAST_BUCKETS];
	unsigned group_count;
};

/* -EINVAL: no datagram QP, no group, no multicast LID; -ENOMEM: limits.  Attached already: 0.
 * *is_new_out: the function had nobody in the group before. */
int mcast_attach(struct emu_dev *dev, struct emu_qp *qp, const uint8_t gid[16], uint16_t mlid,
		 bool *is_new_out);
/* -EINVAL: it is not attached.  *is_gone_out: now the function has nobody in the group. */
int mcast_detach(struct emu_dev *dev, struct emu_qp *qp, const uint8_t gid[16], uint16_t mlid,
		 bool *is_gone_out);
/* Detach @qp from some group: true, and the group's GID if that is gone.  False: from none. */
bool mcast_detach_any(struct emu_dev *dev, struct emu_qp *qp, uint8_t gid_out[16],
		      bool *is_gone_out);

/* The group's attachments, or NULL. */
const struct mcast_attach *mcast_find(const struct emu_dev *dev, const uint8_t gid[16]);
#endif
