/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection domains and memory regions.
 *
 * Source: device-abi B.9 (reg_mr, rereg_mr, advise_mr), D and H.4.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include "emu/mem/mem.h"
#include "emu/obj/obj.h"

#define PAGE_OFFSET	4095u
#define PAGE_BYTES	4096u

#define ACCESS_OPTIONAL	0x3ff00000u	/* unknown bits here are ignored */
#define ACCESS_KNOWN	(0xffu | ACCESS_OPTIONAL)
/* The kernel pins for writing with any of these. */
#define ACCESS_WRITES	(KEY_LOCAL_WRITE | KEY_REMOTE_WRITE | KEY_REMOTE_ATOMIC | KEY_MW_BIND)
#define ACCESS_DEVICE	(KEY_LOCAL_WRITE | KEY_REMOTE_WRITE | KEY_REMOTE_READ |		\
			 KEY_REMOTE_ATOMIC | KEY_ZERO_BASED | ACCESS_OPTIONAL)

/* Where user memory ends at the latest: a region of everything ends there too. */
#define WHOLE_BYTES	(UINT64_C(1) << 56)

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
	if (!pd->obj.proxy)
		numbers_give(&dev->pdns, pd->pdn);
	free(pd);
	return 0;
}

/* --- what may be asked for --- */

/* Whole pages, as the kernel counts them. */
static bool wraps(uint64_t start, uint64_t bytes)
{
	return start + bytes < start || start + bytes > UINT64_MAX - PAGE_OFFSET;
}

/* Needs LOCAL_WRITE who lets others write. */
static bool rights_fit(uint32_t access)
{
	return !(access & ~ACCESS_KNOWN) &&
	       (access & KEY_LOCAL_WRITE || !(access & (KEY_REMOTE_WRITE | KEY_REMOTE_ATOMIC)));
}

/* All memory of the process, whatever is mapped when it is accessed. */
static bool is_whole(const struct mr_ask *ask)
{
	return ask->access & KEY_ON_DEMAND && !ask->start && ask->bytes == UINT64_MAX;
}

static int ask_check(const struct mr_ask *ask)
{
	if ((ask->start & PAGE_OFFSET) != (ask->iova & PAGE_OFFSET) || !rights_fit(ask->access))
		return -EINVAL;
	if (is_whole(ask))
		return ask->iova || ask->access & KEY_HUGETLB ? -EINVAL : 0;
	if (!ask->bytes || wraps(ask->start, ask->bytes) || wraps(ask->iova, ask->bytes))
		return -EINVAL;
	/* On demand: what is not there now may be when it is needed. */
	if (ask->access & KEY_ON_DEMAND)
		return ask->start + ask->bytes <= WHOLE_BYTES ? 0 : -EFAULT;
	return mem_probe(ask->start, ask->bytes, (ask->access & ACCESS_WRITES) != 0);
}

static enum why ask_why(int rc)
{
	return rc == -EFAULT ? WHY_CMD_MEMORY : rc == -ENOMEM ? WHY_CMD_LIMIT :
	       rc == -EBUSY ? WHY_REGION_BOUND : WHY_CMD_VALUE;
}

static int refuse(struct emu_dev *dev, const struct mr_ask *ask, int rc)
{
	dev_why(dev, .why = ask_why(rc), .side = WHY_SIDE_COMMAND, .addr = ask->start,
		.bytes = ask->bytes, .found = ask->iova, .found_bytes = ask->access);
	return rc;
}

/* --- pinned memory --- */

static uint64_t pages_of(const struct mr_ask *ask)
{
	if (ask->access & KEY_ON_DEMAND)
		return 0;
	return ((ask->start & PAGE_OFFSET) + ask->bytes + PAGE_OFFSET) / PAGE_BYTES;
}

/* Nothing is pinned here; counting shows what a kernel would refuse.  -ENOMEM */
static int pages_pin(struct emu_dev *dev, uint64_t pages, uint64_t pages_before)
{
	uint64_t pinned = dev->pinned_pages - pages_before + pages;
	struct rlimit limit;

	if (dev->options.enforces_memlock && pages > pages_before &&
	    !getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur != RLIM_INFINITY &&
	    pinned > limit.rlim_cur / PAGE_BYTES)
		return -ENOMEM;
	dev->pinned_pages = pinned;
	return 0;
}

/* --- regions --- */

static struct key_entry entry_of(const struct emu_mr *mr)
{
	return (struct key_entry){
		.tag = (uint8_t)mr->key, .access = mr->access, .pdn = mr->pd->pdn,
		.start = mr->iova, .memory = mr->start,
		.bytes = mr->bytes < WHOLE_BYTES ? mr->bytes : WHOLE_BYTES,
	};
}

static void mr_fill(struct emu_mr *mr, struct emu_pd *pd, const struct mr_ask *ask)
{
	mr->pd = pd;
	mr->pdn = pd->pdn;
	mr->start = ask->start;
	mr->bytes = ask->bytes;
	mr->asked_iova = ask->iova;
	mr->iova = ask->access & KEY_ZERO_BASED ? 0 : ask->iova;
	mr->access = ask->access;
}

static int mr_new(struct emu_dev *dev, struct emu_pd *pd, const struct mr_ask *ask,
		  struct emu_mr **out)
{
	struct emu_mr *mr = calloc(1, sizeof *mr);
	struct key_entry entry;

	if (!mr)
		return -ENOMEM;
	mr_fill(mr, pd, ask);
	entry = entry_of(mr);
	if (dev->keys.indices.taken >= dev->profile->max_mr ||
	    key_create(&dev->keys, &entry, &mr->key)) {
		free(mr);
		return -ENOMEM;
	}
	mr->obj.type = OBJ_MR;
	key_owner_set(&dev->keys, KEY_INDEX(mr->key), mr);
	pd->obj.users++;
	*out = mr;
	return 0;
}

int mr_create(struct emu_dev *dev, struct emu_pd *pd, uint64_t start, uint64_t bytes,
	      uint64_t iova, uint32_t access, struct emu_mr **out)
{
	const struct mr_ask ask = { start, bytes, iova, access };
	uint64_t pages = pages_of(&ask);
	int rc = ask_check(&ask);

	if (!rc)
		rc = pages_pin(dev, pages, 0);
	if (rc)
		return refuse(dev, &ask, rc);
	rc = mr_new(dev, pd, &ask, out);
	if (rc) {
		pages_pin(dev, 0, pages);
		return refuse(dev, &ask, rc);
	}
	(*out)->pinned_pages = pages;
	return 0;
}

int mr_create_device(struct emu_dev *dev, struct emu_pd *pd, struct emu_obj *backing,
		     const struct mr_ask *ask, struct emu_mr **out)
{
	int rc = 0;

	if (ask->access & ~ACCESS_DEVICE || !(ask->access & KEY_ZERO_BASED) ||
	    !rights_fit(ask->access))
		rc = -EINVAL;
	if (!rc)
		rc = mr_new(dev, pd, ask, out);
	if (rc)
		return refuse(dev, ask, rc);
	(*out)->backing = backing;
	backing->users++;
	return 0;
}

/* What the region would be after the change. */
static struct mr_ask ask_after(const struct emu_mr *mr, uint32_t what, const struct mr_ask *ask)
{
	struct mr_ask after = { mr->start, mr->bytes, mr->asked_iova, mr->access };

	if (what & MR_CHANGES_PLACE) {
		after.start = ask->start;
		after.bytes = ask->bytes;
		after.iova = ask->iova;
	}
	if (what & MR_CHANGES_ACCESS)
		after.access = ask->access;
	return after;
}

static int change_check(const struct emu_mr *mr, uint32_t what, const struct mr_ask *after)
{
	if (!what || what & ~(uint32_t)MR_CHANGES_ALL || mr->backing || mr->obj.proxy)
		return -EINVAL;
	if (mr->windows)
		return -EBUSY;
	return what == MR_CHANGES_PD ? 0 : ask_check(after);
}

int mr_change(struct emu_dev *dev, struct emu_mr *mr, uint32_t what, struct emu_pd *pd,
	      const struct mr_ask *ask)
{
	const struct mr_ask after = ask_after(mr, what, ask);
	int rc = change_check(mr, what, &after);
	struct key_entry entry;

	if (!rc)
		rc = pages_pin(dev, pages_of(&after), mr->pinned_pages);
	if (rc)
		return refuse(dev, &after, rc);
	mr->pinned_pages = pages_of(&after);
	key_close(&dev->keys, KEY_INDEX(mr->key));
	mr->pd->obj.users--;
	mr_fill(mr, what & MR_CHANGES_PD ? pd : mr->pd, &after);
	mr->pd->obj.users++;
	entry = entry_of(mr);
	key_open(&dev->keys, KEY_INDEX(mr->key), &entry);
	return 0;
}

int mr_can_go(struct emu_dev *dev, const struct emu_mr *mr)
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
	return 0;
}

int mr_destroy(struct emu_dev *dev, struct emu_mr *mr)
{
	int rc = mr_can_go(dev, mr);

	if (rc)
		return rc;
	if (mr->obj.proxy) {
		free(mr);
		return 0;
	}
	mw_leave_region(mr);
	key_destroy(&dev->keys, mr->key);
	pages_pin(dev, 0, mr->pinned_pages);
	if (mr->backing)
		mr->backing->users--;
	mr->pd->obj.users--;
	free(mr);
	return 0;
}

/* --- advice --- */

/* Memory of an on-demand region of this domain, with the rights that the advice needs. */
static int advice_check(struct emu_dev *dev, const struct emu_pd *pd, enum mr_advice advice,
			const struct mr_range *range)
{
	const struct emu_obj *obj = key_owner(&dev->keys, KEY_INDEX(range->key));
	const struct emu_mr *mr = (const struct emu_mr *)obj;

	if (!obj || obj->type != OBJ_MR || mr->key != range->key)
		return -ENOENT;
	if (!(mr->access & KEY_ON_DEMAND))
		return -EINVAL;
	if (mr->pd != pd || (advice == ADVICE_WRITE && !(mr->access & ACCESS_WRITES)))
		return -EPERM;
	return 0;
}

int mr_advise(struct emu_dev *dev, struct emu_pd *pd, enum mr_advice advice, bool waits,
	      const struct mr_range *range)
{
	bool writes = advice == ADVICE_WRITE;
	struct iovec memory;
	int rc = advice_check(dev, pd, advice, range);

	/* Only who waits for the result is told of it.  NO_FAULT asks for what is there already. */
	if (!rc && waits &&
	    key_check(&dev->keys, range->key, pd->pdn, 0, range->addr, range->bytes, &memory))
		rc = -EFAULT;
	if (!rc && waits && advice != ADVICE_NO_FAULT)
		rc = mem_probe((uintptr_t)memory.iov_base, memory.iov_len, writes);
	if (rc)
		dev_why(dev, .why = rc == -ENOENT ? WHY_CMD_HANDLE : ask_why(rc),
			.side = WHY_SIDE_COMMAND, .key = range->key, .addr = range->addr,
			.bytes = range->bytes, .found = advice);
	return rc;
}
