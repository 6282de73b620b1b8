/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups; see mcast.h.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "emu/obj/obj.h"
#include "hw-models/ib_packet.h"

enum { MLID_FIRST = 0xc000, MLID_LAST = 0xfffe };

static unsigned bucket_of(const uint8_t gid[16])
{
	uint64_t half[2];

	memcpy(half, gid, sizeof half);
	return (unsigned)((half[0] ^ half[1]) * UINT64_C(0x9e3779b97f4a7c15) >> 58);
}

static_assert(MCAST_BUCKETS == 1 << (64 - 58), "the shift makes a bucket");

/* The link that leads to the group, or the end of its bucket. */
static struct mcast_group **group_link(struct mcast *m, const uint8_t gid[16])
{
	struct mcast_group **at = &m->bucket[bucket_of(gid)];

	while (*at && memcmp((*at)->gid, gid, sizeof(*at)->gid))
		at = &(*at)->next;
	return at;
}

const struct mcast_attach *mcast_find(const struct emu_dev *dev, const uint8_t gid[16])
{
	const struct mcast_group *g = dev->mcast.bucket[bucket_of(gid)];

	while (g && memcmp(g->gid, gid, sizeof g->gid))
		g = g->next;
	return g ? g->first : NULL;
}

/* Where an attachment is, or where it belongs: behind the QP's others. */
static struct mcast_attach **attach_link(struct mcast_group *g, const struct emu_qp *qp,
					 uint16_t mlid)
{
	struct mcast_attach **at = &g->first;

	while (*at && (*at)->qp != qp)
		at = &(*at)->next;
	while (*at && (*at)->qp == qp && (*at)->mlid != mlid)
		at = &(*at)->next;
	return at;
}

static bool is_attached(const struct mcast_attach *a, const struct emu_qp *qp, uint16_t mlid)
{
	return a && a->qp == qp && a->mlid == mlid;
}

static int refuse(struct emu_dev *dev, const struct emu_qp *qp, enum why why, uint64_t found,
		  int rc)
{
	dev_why(dev, .why = why, .side = WHY_SIDE_COMMAND, .qpn = qp->qpn, .found = found);
	return rc;
}

/* An InfiniBand port's switches go by LID; Ethernet has none, and any value will do. */
static int group_check(struct emu_dev *dev, const struct emu_qp *qp, const uint8_t gid[16],
		       uint16_t mlid)
{
	bool has_lids = dev->profile->link == HW_LINK_INFINIBAND;

	if (qp->type != QPT_UD || !ib_is_multicast(gid) ||
	    (has_lids && (mlid < MLID_FIRST || mlid > MLID_LAST)))
		return refuse(dev, qp, WHY_MULTICAST_GROUP, mlid, -EINVAL);
	return 0;
}

static struct mcast_group *group_add(struct emu_dev *dev, struct mcast_group **link,
				     const uint8_t gid[16])
{
	struct mcast_group *g;

	if (dev->mcast.group_count >= dev->profile->max_mcast_grp)
		return NULL;
	g = calloc(1, sizeof *g);
	if (!g)
		return NULL;
	memcpy(g->gid, gid, sizeof g->gid);
	*link = g;
	dev->mcast.group_count++;
	return g;
}

/* True if nobody is in it. */
static bool group_drop_empty(struct emu_dev *dev, struct mcast_group **link)
{
	struct mcast_group *g = *link;

	if (g->first)
		return false;
	*link = g->next;
	free(g);
	dev->mcast.group_count--;
	return true;
}

static int attach_add(struct emu_dev *dev, struct mcast_group *g, struct mcast_attach **link,
		      struct emu_qp *qp, uint16_t mlid)
{
	struct mcast_attach *a;

	if (g->count >= dev->profile->max_mcast_qp)
		return -ENOMEM;
	a = calloc(1, sizeof *a);
	if (!a)
		return -ENOMEM;
	*a = (struct mcast_attach){ .next = *link, .qp = qp, .mlid = mlid };
	*link = a;
	g->count++;
	qp->obj.users++;
	return 0;
}

int mcast_attach(struct emu_dev *dev, struct emu_qp *qp, const uint8_t gid[16], uint16_t mlid,
		 bool *is_new_out)
{
	struct mcast_group **link = group_link(&dev->mcast, gid), *g = *link;
	bool is_new = !g;
	struct mcast_attach **at;
	int rc = group_check(dev, qp, gid, mlid);

	if (rc)
		return rc;
	*is_new_out = false;
	if (is_new)
		g = group_add(dev, link, gid);
	if (!g)
		return refuse(dev, qp, WHY_CMD_LIMIT, dev->mcast.group_count, -ENOMEM);
	at = attach_link(g, qp, mlid);
	if (is_attached(*at, qp, mlid))
		return 0;
	rc = attach_add(dev, g, at, qp, mlid);
	if (rc) {
		refuse(dev, qp, WHY_CMD_LIMIT, g->count, rc);
		group_drop_empty(dev, link);
		return rc;
	}
	*is_new_out = is_new;
	return 0;
}

static void attach_drop(struct mcast_group *g, struct mcast_attach **at)
{
	struct mcast_attach *a = *at;

	a->qp->obj.users--;
	g->count--;
	*at = a->next;
	free(a);
}

int mcast_detach(struct emu_dev *dev, struct emu_qp *qp, const uint8_t gid[16], uint16_t mlid,
		 bool *is_gone_out)
{
	struct mcast_group **link = group_link(&dev->mcast, gid);
	struct mcast_attach **at = *link ? attach_link(*link, qp, mlid) : NULL;

	if (!at || !is_attached(*at, qp, mlid))
		return refuse(dev, qp, WHY_MULTICAST_GROUP, mlid, -EINVAL);
	attach_drop(*link, at);
	*is_gone_out = group_drop_empty(dev, link);
	return 0;
}

/* The QP's first attachment of a group, or NULL. */
static struct mcast_attach **attach_of(struct mcast_group *g, const struct emu_qp *qp)
{
	struct mcast_attach **at = &g->first;

	while (*at && (*at)->qp != qp)
		at = &(*at)->next;
	return *at ? at : NULL;
}

bool mcast_detach_any(struct emu_dev *dev, struct emu_qp *qp, uint8_t gid_out[16],
		      bool *is_gone_out)
{
	for (unsigned i = 0; dev->mcast.group_count && i < MCAST_BUCKETS; i++) {
		struct mcast_group **link = &dev->mcast.bucket[i];

		for (; *link; link = &(*link)->next) {
			struct mcast_attach **at = attach_of(*link, qp);

			if (!at)
				continue;
			memcpy(gid_out, (*link)->gid, 16);
			attach_drop(*link, at);
			*is_gone_out = group_drop_empty(dev, link);
			return true;
		}
	}
	return false;
}
