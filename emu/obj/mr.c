/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection domains and memory regions.
 *
 * Source: device-abi B.9 (reg_mr) and D.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include "emu/mem/mem.h"
#include "emu/obj/obj.h"

#define PAGE_OFFSET	4095u

#define ACCESS_OPTIONAL	0x3ff00000u	/* unknown bits here are ignored */
#define ACCESS_KNOWN	(0xffu | ACCESS_OPTIONAL)
/* The kernel pins for writing with any of these. */
#define ACCESS_WRITES	(KEY_LOCAL_WRITE | KEY_REMOTE_WRITE | KEY_REMOTE_ATOMIC | KEY_MW_BIND)

int pd_create(struct emu_dev *dev, struct emu_pd **out)
{
	struct emu_pd *pd = calloc(1, sizeof *pd);

	if (!pd || dev->pdns.taken >= dev->profile->max_pd ||
	    numbers_take(&dev->pdns, pd, &pd->pdn)) {
		free(pd);
		dev_why(dev, .why = WHY_CMD_LIMIT, .side = WHY_SIDE_COMMAND,
			.found = dev->pdns.taken);
		return -ENOMEM;
	}
	pd->obj.type = OBJ_PD;
	*out = pd;
	return 0;
}

int pd_destroy(struct emu_dev *dev, struct emu_pd *pd)
{
	if (pd->obj.users) {
		dev_why(dev, .why = WHY_CMD_BUSY, .side = WHY_SIDE_COMMAND,
			.found = pd->obj.users);
		return -EBUSY;
	}
	numbers_give(&dev->pdns, pd->pdn);
	free(pd);
	return 0;
}

/* What reg_mr asks for. */
struct mr_ask {
	uint64_t start, bytes, iova;
	uint32_t access;
};

static bool wraps(uint64_t start, uint64_t bytes)
{
	return start + bytes < start;
}

/* Needs LOCAL_WRITE who lets others write. */
static bool rights_fit(uint32_t access)
{
	return access & KEY_LOCAL_WRITE || !(access & (KEY_REMOTE_WRITE | KEY_REMOTE_ATOMIC));
}

static int ask_check(const struct mr_ask *ask)
{
	if ((ask->start & PAGE_OFFSET) != (ask->iova & PAGE_OFFSET))
		return -EINVAL;
	if (ask->access & ~ACCESS_KNOWN || !rights_fit(ask->access))
		return -EINVAL;
	if (ask->access & KEY_ON_DEMAND)
		return -EOPNOTSUPP;
	if (!ask->bytes || wraps(ask->start, ask->bytes) || wraps(ask->iova, ask->bytes))
		return -EINVAL;
	return mem_probe(ask->start, ask->bytes, (ask->access & ACCESS_WRITES) != 0);
}

static enum why ask_why(int rc)
{
	if (rc == -EFAULT)
		return WHY_CMD_MEMORY;
	return rc == -EOPNOTSUPP ? WHY_CMD_UNSUPPORTED : WHY_CMD_VALUE;
}

static int mr_new(struct emu_dev *dev, struct emu_pd *pd, const struct mr_ask *ask,
		  struct emu_mr **out)
{
	struct key_entry entry = {
		.access = ask->access, .pdn = pd->pdn, .bytes = ask->bytes,
		.start = ask->access & KEY_ZERO_BASED ? 0 : ask->iova, .memory = ask->start,
	};
	struct emu_mr *mr = calloc(1, sizeof *mr);

	if (!mr || dev->keys.indices.taken >= dev->profile->max_mr ||
	    key_create(&dev->keys, &entry, &mr->key)) {
		free(mr);
		return -ENOMEM;
	}
	mr->obj.type = OBJ_MR;
	mr->pd = pd;
	mr->start = ask->start;
	mr->bytes = ask->bytes;
	mr->iova = entry.start;
	mr->access = ask->access;
	key_owner_set(&dev->keys, KEY_INDEX(mr->key), mr);
	pd->obj.users++;
	*out = mr;
	return 0;
}

int mr_create(struct emu_dev *dev, struct emu_pd *pd, uint64_t start, uint64_t bytes,
	      uint64_t iova, uint32_t access, struct emu_mr **out)
{
	struct mr_ask ask = { start, bytes, iova, access };
	int rc = ask_check(&ask);

	if (rc) {
		dev_why(dev, .why = ask_why(rc), .side = WHY_SIDE_COMMAND, .addr = start,
			.bytes = bytes, .found = iova, .found_bytes = access);
		return rc;
	}
	rc = mr_new(dev, pd, &ask, out);
	if (rc)
		dev_why(dev, .why = WHY_CMD_LIMIT, .side = WHY_SIDE_COMMAND, .addr = start,
			.bytes = bytes, .found = dev->keys.indices.taken);
	return rc;
}

int mr_destroy(struct emu_dev *dev, struct emu_mr *mr)
{
	if (mr->obj.users) {
		dev_why(dev, .why = WHY_CMD_BUSY, .side = WHY_SIDE_COMMAND, .key = mr->key,
			.found = mr->obj.users);
		return -EBUSY;
	}
	if (mr->windows && !dev->options.lets_bound_regions_go) {
		dev_why(dev, .why = WHY_REGION_BOUND, .side = WHY_SIDE_COMMAND, .key = mr->key,
			.found = mr->windows->key);
		return -EBUSY;
	}
	mw_leave_region(mr);
	key_destroy(&dev->keys, mr->key);
	mr->pd->obj.users--;
	free(mr);
	return 0;
}
