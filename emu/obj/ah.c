/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address handles; see ah.h.
 */
#include <errno.h>
#include <stdlib.h>
#include "emu/obj/ah.h"
#include "emu/obj/path.h"

static int address_check(const struct emu_dev *dev, const struct qp_path *path)
{
	int rc = path_check(dev, path);

	if (!rc && dev->profile->link == HW_LINK_INFINIBAND && !path->dlid)
		rc = -EINVAL;
	return rc;
}

int ah_create(struct emu_dev *dev, struct emu_pd *pd, const struct qp_path *path,
	      struct emu_ah **out)
{
	int rc = address_check(dev, path);
	struct emu_ah *ah;

	if (rc) {
		dev_why(dev, .why = WHY_ADDRESS, .side = WHY_SIDE_COMMAND, .addr = path->dlid,
			.bytes = path->sgid_index, .found = path->port);
		return rc;
	}
	ah = calloc(1, sizeof *ah);
	if (!ah)
		return -ENOMEM;
	ah->obj.type = OBJ_AH;
	ah->pd = pd;
	pd->obj.users++;
	if (dev->profile->link == HW_LINK_ETHERNET)
		path_mac(dev, path->dgid, ah->dmac);
	*out = ah;
	return 0;
}

int ah_destroy(struct emu_ah *ah)
{
	ah->pd->obj.users--;
	free(ah);
	return 0;
}
