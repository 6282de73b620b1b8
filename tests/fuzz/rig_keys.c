/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rig's memory keys: regions of each sort, windows into them, and what becomes of both while
 * the device works.  See rig.h.
 */
#include <errno.h>
#include "emu/mem/mem.h"
#include "tests/fuzz/rig.h"

enum { ALL_REMOTE = KEY_REMOTE_WRITE | KEY_REMOTE_READ | KEY_REMOTE_ATOMIC,
       ALL_RIGHTS = ALL_REMOTE | KEY_LOCAL_WRITE | KEY_MW_BIND };

static struct emu_obj device_memory;	/* what keeps KEY_DEVICE */

/* What each key covers. */
static const struct {
	size_t at, bytes;
	uint32_t access;
	bool can_change;		/* to anything: all of it may be covered */
} keys[RIG_KEYS] = {
	[KEY_OWN] = { offsetof(struct rig_memory, data[0][RIG_MARGIN]),
		      RIG_DATA_BYTES - 2 * RIG_MARGIN, ALL_RIGHTS, true },
	[KEY_OTHER] = { offsetof(struct rig_memory, data[1][RIG_MARGIN]),
			RIG_DATA_BYTES - 2 * RIG_MARGIN, ALL_RIGHTS, true },
	[KEY_FIXED] = { offsetof(struct rig_memory, fixed), RIG_PAGE, KEY_REMOTE_READ, false },
	[KEY_FOREIGN] = { offsetof(struct rig_memory, foreign), RIG_PAGE, ALL_RIGHTS, false },
	[KEY_DEMAND] = { offsetof(struct rig_memory, data[0][RIG_MARGIN]),
			 RIG_DATA_BYTES - 2 * RIG_MARGIN, ALL_RIGHTS | KEY_ON_DEMAND, true },
	[KEY_DEVICE] = { offsetof(struct rig_memory, device), RIG_PAGE,
			 ALL_REMOTE | KEY_LOCAL_WRITE | KEY_ZERO_BASED, false },
};

/* Keys have addresses of their own, the same in every process. */
static uint64_t iova_of(unsigned key, uint64_t at)
{
	if (keys[key].access & KEY_ZERO_BASED)
		return 0;
	return ((uint64_t)key + 1) << 32 | (at & (RIG_PAGE - 1));
}

static uint64_t memory_of(unsigned key)
{
	return (uintptr_t)rig_memory + keys[key].at;
}

static void region_open(unsigned key)
{
	struct emu_pd *pd = rig.pd[key == KEY_FOREIGN];
	const struct mr_ask ask = { memory_of(key), keys[key].bytes,
				    iova_of(key, memory_of(key)), keys[key].access };
	int failed = key == KEY_DEVICE ?
		mr_create_device(&device, pd, &device_memory, &ask, &rig.mr[key]) :
		mr_create(&device, pd, ask.start, ask.bytes, ask.iova, ask.access, &rig.mr[key]);

	assert(!failed);
	rig.key[key] = rig.mr[key]->key;
}

/* --- windows --- */

enum { WINDOW_OWN, WINDOW_OTHER, WINDOW_ONE, WINDOW_FOREIGN };

static const struct { uint8_t type, pd; } windows[RIG_WINDOWS] = {
	[WINDOW_OWN] = { MW_TYPE_2, 0 }, [WINDOW_OTHER] = { MW_TYPE_2, 0 },
	[WINDOW_ONE] = { MW_TYPE_1, 0 }, [WINDOW_FOREIGN] = { MW_TYPE_2, 1 },
};

static void window_open(unsigned i)
{
	int failed = mw_create(&device, rig.pd[windows[i].pd], windows[i].type, &rig.mw[i]);

	assert(!failed);
	rig.window[i] = rig.mw[i]->key;
}

static void window_close(unsigned i)
{
	int failed = mw_destroy(&device, rig.mw[i]);

	assert(!failed);
	rig.mw[i] = NULL;
}

/* Its key changes when it is bound; what is known of a stale one is the last. */
static uint32_t window_key(unsigned i)
{
	if (rig.mw[i])
		rig.window[i] = rig.mw[i]->key;
	return rig.window[i];
}

/* --- all of them --- */

void rig_keys_open(void)
{
	for (unsigned key = 0; key < RIG_KEYS; key++)
		region_open(key);
	for (unsigned i = 0; i < RIG_WINDOWS; i++)
		window_open(i);
}

void rig_keys_close(void)
{
	int failed = 0;

	for (unsigned i = 0; i < RIG_WINDOWS; i++)
		if (rig.mw[i])
			window_close(i);
	for (unsigned key = 0; key < RIG_KEYS; key++)
		if (rig.mr[key])
			failed |= mr_destroy(&device, rig.mr[key]);
	assert(!failed && !device_memory.users);
	memset(rig.mr, 0, sizeof rig.mr);
}

bool rig_owns(const struct iovec *span)
{
	uintptr_t at = (uintptr_t)span->iov_base - (uintptr_t)rig_memory, end = at + span->iov_len;

	/* The null key's. */
	if ((uintptr_t)span->iov_base >= MEM_NOWHERE)
		return true;
	for (unsigned key = 0; key < RIG_KEYS; key++)
		if (key != KEY_FOREIGN && at >= keys[key].at && end >= at &&
		    end <= keys[key].at + keys[key].bytes)
			return true;
	return false;
}

/* What a choice can be besides a region. */
enum { CHOICE_END = RIG_KEYS, CHOICE_NULL, CHOICE_ANY, CHOICE_WINDOW, CHOICES = 12 };
enum { ANY_ADDRESS = 16, ANY_TAG = 32 };

uint32_t rig_key(struct input *in, unsigned side, uint64_t *addr_out)
{
	uint8_t choice = take8(in), twist = choice & ~15;
	unsigned key = (choice & 15) % CHOICES, from;
	uint64_t offset = take16(in) % (RIG_DATA_BYTES + RIG_MARGIN);

	if (key < KEY_FIXED)
		key ^= side;
	/* A window shows what is under the region that it is bound to. */
	from = key < RIG_KEYS ? key : key == CHOICE_WINDOW + !side ? KEY_OTHER : KEY_OWN;
	*addr_out = iova_of(from, memory_of(from)) + offset;
	if (twist & ANY_ADDRESS)
		*addr_out = take64(in);
	if (key < RIG_KEYS)
		return rig.key[key] + (twist & ANY_TAG);
	if (key >= CHOICE_WINDOW)
		return window_key((key - CHOICE_WINDOW) % RIG_WINDOWS) + (twist & ANY_TAG);
	return key == CHOICE_END ? HW_LKEY_END : key == CHOICE_NULL ? KEY_NULL : take32(in);
}

uint32_t rig_window(struct input *in, unsigned side, struct emu_mw **out)
{
	uint8_t choice = take8(in);
	unsigned i = (choice & 7) < WINDOW_ONE ? (choice & 7) ^ side : choice & 7;

	*out = i < RIG_WINDOWS ? rig.mw[i] : NULL;
	if (i < RIG_WINDOWS)
		return window_key(i) + (choice & ANY_TAG);
	return i == 7 ? take32(in) : rig.key[i - RIG_WINDOWS];
}

/* --- changes --- */

static void region_toggle(unsigned key)
{
	int failed;

	if (!rig.mr[key]) {
		region_open(key);
		return;
	}
	failed = mr_destroy(&device, rig.mr[key]);
	assert(!failed || (failed == -EBUSY && !device.options.lets_bound_regions_go));
	if (!failed)
		rig.mr[key] = NULL;
}

/* Another part of the data, other rights, the other domain. */
static void region_change(struct input *in, unsigned key)
{
	uint8_t what = take8(in), place = take8(in);
	uint64_t skip = 8u * (place >> 1);
	uint64_t start = memory_of(place & 1 ? KEY_OTHER : KEY_OWN) + skip;
	const struct mr_ask ask = { start, keys[KEY_OWN].bytes - skip, iova_of(key, start),
				    what & 8 ? take32(in) : ALL_RIGHTS };

	if (rig.mr[key] && keys[key].can_change)
		mr_change(&device, rig.mr[key], what & 7, rig.pd[what >> 4 & 1], &ask);
}

static void region_advise(struct input *in, unsigned key)
{
	uint8_t choice = take8(in);
	struct mr_range range;

	range.key = rig_key(in, key & 1, &range.addr);
	range.bytes = choice & 16 ? take32(in) : 8;
	mr_advise(&device, rig.pd[choice >> 5 & 1], choice % ADVICE_COUNT, choice & 8, &range);
}

void rig_do_rekey(struct input *in)
{
	uint8_t choice = take8(in);
	unsigned i = (choice & 15) % (RIG_KEYS + RIG_WINDOWS);

	if (i >= RIG_KEYS && rig.mw[i - RIG_KEYS])
		window_close(i - RIG_KEYS);
	else if (i >= RIG_KEYS)
		window_open(i - RIG_KEYS);
	else if (choice & 0x40)
		region_change(in, i);
	else if (choice & 0x80)
		region_advise(in, i);
	else
		region_toggle(i);
}
